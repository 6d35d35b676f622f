/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The serving certificate of the webhook: tls.crt and tls.key of a folder (a mounted Secret), read
 * again whenever they change. A pair that cannot be used is reported and the one before stays.
 */
#ifndef SW_RUNTIME_WEBHOOK_CERTIFICATE_H
#define SW_RUNTIME_WEBHOOK_CERTIFICATE_H

struct sw_log;
struct sw_loop;
struct sw_metrics;
struct sw_tls_config;
struct sw_webhook_certificate;

/* config: of the new pair; borrowed for the call. Also for the first one, before open returns. */
typedef void (*sw_webhook_certificate_fn)(void *arg, struct sw_tls_config *config);

/* folder and whoever is told are borrowed. Does not keep the loop alive. */
int sw_webhook_certificate_open(struct sw_loop *loop, const char *folder,
                                struct sw_metrics *metrics, const struct sw_log *log,
                                sw_webhook_certificate_fn fn, void *arg,
                                struct sw_webhook_certificate **ret_certificate);
void sw_webhook_certificate_close(struct sw_webhook_certificate *certificate); /* takes NULL */
/* Why there is none that can be used; "" where there is one. */
const char *sw_webhook_certificate_why(const struct sw_webhook_certificate *certificate);

#endif
