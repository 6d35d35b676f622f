/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The serving certificate of the metrics: that of a folder, as the webhook's; where there is none,
 * or none yet, one that is made here and signed by itself. It encrypts, and convinces nobody:
 * Prometheus then needs insecure_skip_verify, as it does with controller-runtime's default and with
 * kube-controller-manager's.
 */
#ifndef SW_RUNTIME_METRICS_CERTIFICATE_H
#define SW_RUNTIME_METRICS_CERTIFICATE_H

#include "runtime/certificate_files.h"

struct sw_error;
struct sw_metrics_certificate;

/* folder NULL: made here. fn: as of certificate_files.h; it is called before this returns, and with
 * each new one. Does not keep the loop alive. */
int sw_metrics_certificate_open(struct sw_loop *loop, const char *folder,
                                struct sw_metrics *metrics, const struct sw_log *log,
                                sw_certificate_files_fn fn, void *arg,
                                struct sw_metrics_certificate **ret_certificate,
                                struct sw_error *error);
void sw_metrics_certificate_close(struct sw_metrics_certificate *certificate); /* takes NULL */

#endif
