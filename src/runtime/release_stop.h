/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Before everything is let go of: those who would hold it again are stopped. First the webhook
 * configuration is deleted (with nobody behind it, it could stop every write to a Deployment), then
 * our own Deployment is scaled to 0, then its Pods are waited for.
 *
 * Whoever wants slipway back installs it again: both objects are the chart's, or the manifest's.
 */
#ifndef SW_RUNTIME_RELEASE_STOP_H
#define SW_RUNTIME_RELEASE_STOP_H

#include <stdint.h>

struct sw_buf;
struct sw_client;
struct sw_error;
struct sw_loop;

struct sw_release_stop_options {
    const char *namespace_;            /* our own */
    const char *deployment;            /* of slipway, in it */
    const char *webhook_configuration; /* NULL: there is none */
    uint64_t limit_ms; /* how long to wait for the Pods; 0: 60 s. Those of a lost node never end */
};

/* Once, after the call has returned. error: NULL, or why the rest must not be begun. What was done
 * is in out (of sw_release_stop), a line each. */
typedef void (*sw_release_stop_fn)(void *arg, const struct sw_error *error);

/* What is not there is not there any more, and no error. client, options and out are borrowed until
 * fn has come. */
void sw_release_stop(struct sw_loop *loop, struct sw_client *client,
                     const struct sw_release_stop_options *options, struct sw_buf *out,
                     sw_release_stop_fn fn, void *arg);

#endif
