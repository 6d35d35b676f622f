/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTPS server of the webhook: it listens as soon as there is a certificate, and hands every
 * request to admission.h.
 */
#ifndef SW_RUNTIME_WEBHOOK_H
#define SW_RUNTIME_WEBHOOK_H

#include <stdbool.h>
#include <stdint.h>

struct sw_buf;
struct sw_core;
struct sw_error;
struct sw_log;
struct sw_loop;
struct sw_metrics;
struct sw_tls_config;
struct sw_webhook;

struct sw_webhook_options {
    const char *address;     /* as sw_tcp_listen */
    const char *cert_folder; /* with tls.crt and tls.key; NULL: sw_webhook_set_tls comes */
};

/* core is borrowed. A missing certificate is waited for; an address that cannot be bound is an
 * error if the certificate is there, else it is tried again with each certificate. */
int sw_webhook_open(struct sw_loop *loop, struct sw_core *core,
                    const struct sw_webhook_options *options, struct sw_metrics *metrics,
                    const struct sw_log *log, struct sw_webhook **ret_webhook,
                    struct sw_error *error);
/* From now on new connections get this certificate. For one that was opened without a folder. */
void sw_webhook_set_tls(struct sw_webhook *webhook, struct sw_tls_config *tls);
/* It listens, with a certificate; else *why says why not. A check of readiness (health.h). */
bool sw_webhook_check(void *webhook, struct sw_buf *why);
uint16_t sw_webhook_port(const struct sw_webhook *webhook); /* 0: does not listen yet */
/* Answers on, but closes connections after each answer. */
void sw_webhook_drain(struct sw_webhook *webhook);
/* Stops listening; reviews under way are answered, within timeout_ms. Then done comes, once; at
 * once where it does not listen. sw_webhook_close is still due. */
void sw_webhook_finish(struct sw_webhook *webhook, uint64_t timeout_ms, void (*done)(void *arg),
                       void *arg);
/* What it borrowed may be freed at once. Takes NULL. */
void sw_webhook_close(struct sw_webhook *webhook);

#endif
