/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line: one table says of each flag what it is for, which key of the configuration file
 * means the same, and what holds where neither is given; parsing and --help both follow it.
 */
#ifndef SW_RUNTIME_ARGUMENTS_H
#define SW_RUNTIME_ARGUMENTS_H

#include <stdbool.h>

struct sw_buf;
struct sw_error;

enum sw_flag {
    SW_FLAG_CONFIG,
    SW_FLAG_KUBECONFIG,
    SW_FLAG_CONTEXT,
    SW_FLAG_NAMESPACE,
    SW_FLAG_MODULE_DIR,
    SW_FLAG_WEBHOOK_ADDRESS,
    SW_FLAG_WEBHOOK_CERT_DIR,
    SW_FLAG_WEBHOOK_CONFIGURATION_NAME,
    SW_FLAG_WEBHOOK_CERTIFICATES,
    SW_FLAG_HEALTH_ADDRESS,
    SW_FLAG_METRICS_ADDRESS,
    SW_FLAG_METRICS_SECURE,
    SW_FLAG_METRICS_CERT_DIR,
    SW_FLAG_KUBE_API_QPS,
    SW_FLAG_KUBE_API_BURST,
    SW_FLAG_LEADER_ELECT,
    SW_FLAG_LEADER_ELECTION_ID,
    SW_FLAG_LOG_LEVEL,
    SW_FLAG_LOG_FORMAT,
    SW_FLAG_CHECK_CONFIG,
    SW_FLAG_LIST_MODULES,
    SW_FLAG_DRY_RUN,
    SW_FLAG_TIME_LIMIT,
    SW_FLAG_STOP,
    SW_FLAG_VERSION,
    SW_FLAG_HELP,
    SW_FLAG_COUNT,
};

enum sw_command {
    SW_COMMAND_RUN,
    SW_COMMAND_RELEASE_ALL,
};

struct sw_arguments {
    enum sw_command command;
    /* By enum sw_flag; NULL: not given. Of the flags without a value: "true" or "false". Borrowed
     * from argv. */
    const char *values[SW_FLAG_COUNT];
};

/* "--flag=value", "--flag value", and with one dash; given twice, the last counts. -EINVAL: the
 * error says what was wrong and what is near to it. */
int sw_arguments_parse(int argc, char *const argv[], struct sw_arguments *ret_arguments,
                       struct sw_error *error);
bool sw_arguments_has(const struct sw_arguments *arguments, enum sw_flag flag);
/* The value that holds where neither flag nor key is given; NULL: none. */
const char *sw_flag_default(enum sw_flag flag);
const char *sw_flag_name(enum sw_flag flag); /* "--log-level" */
void sw_arguments_help(enum sw_command command, struct sw_buf *out);

#endif
