/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the process is to do: the configuration file slipway.yaml, with the flags on top and the
 * defaults below.
 *
 *     namespace: shop
 *     modules: [coordination, pausing, events]
 *     webhook:
 *       bindAddress: ":9443"
 *       certDir: /etc/slipway/tls
 *       configurationName: slipway
 *     client:
 *       qps: 50
 *       burst: 100
 *     leaderElection:
 *       enabled: true
 */
#ifndef SW_RUNTIME_SETTINGS_H
#define SW_RUNTIME_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"

struct sw_arguments;
struct sw_error;
struct sw_settings_file;

/* Strings belong to the file, to argv, or are constants. */
struct sw_settings {
    const char *config_path;    /* of slipway.yaml, whether it is there or not */
    const char *kubeconfig;     /* NULL: to be looked for */
    const char *context;        /* of it; NULL: its current one */
    const char *namespace_;     /* NULL: all */
    const char *module_dir;     /* NULL: to be looked for */
    const char *const *modules; /* NULL: the three that come with slipway, if they are found */
    size_t module_count;
    const char *webhook_address;
    const char *webhook_cert_dir;
    const char *webhook_configuration_name; /* NULL: not kept */
    bool webhook_is_self_signed;            /* certificates of our own, not those of cert_dir */
    const char *webhook_secret_name, *webhook_service_name;
    const char *health_address;
    const char *metrics_address;
    bool metrics_is_secure;
    const char *metrics_cert_dir; /* NULL: none, a certificate is made */
    unsigned kube_api_qps;        /* requests a second, at most */
    unsigned kube_api_burst;
    bool watch_list; /* lists come as streams where the server can */
    bool leader_elect;
    const char *leader_election_id;
    const char *leader_election_namespace; /* NULL: our own */
    uint64_t lease_duration_ms, renew_deadline_ms, retry_period_ms;
    enum sw_level log_level;
    bool has_log_format; /* else: console on a terminal, json elsewhere */
    enum sw_log_format log_format;
    uint64_t stop_delay_ms;
    bool has_stop_delay; /* else: 5 s in a Pod, none elsewhere */
    /* private */
    struct sw_settings_file *file;
};

/* SW_E_CONFIG or -EINVAL with a message that names the file and the line, or the flag. */
int sw_settings_load(const struct sw_arguments *arguments, struct sw_settings *ret_settings,
                     struct sw_error *error);
void sw_settings_done(struct sw_settings *settings);
/* "DIR/modules.d" beside the file (the caller frees it). */
char *sw_settings_module_folder(const struct sw_settings *settings);

#endif
