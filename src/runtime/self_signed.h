/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Secret with the webhook's own certificates: every replica watches it, by its name alone, and
 * serves the pair in it; the leader makes it, renews it and goes through the steps of
 * self_signed_plan.h. A part of webhook_configuration.h, whose instance it works for: that one
 * writes the authorities into caBundle, and says what is stored there.
 *
 * Two that make the Secret at once: it is created by POST, and who comes second reads what the
 * first has made; every later write is on the version that was seen. A Secret that is gone or
 * garbled takes nothing from who serves already.
 *
 * What we hold of private keys (objects of the store included) is overwritten before it is freed.
 * What libraries and the kernel keep of bytes sent and received is not in our hands.
 */
#ifndef SW_RUNTIME_SELF_SIGNED_H
#define SW_RUNTIME_SELF_SIGNED_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/self_signed_plan.h"

struct sw_instance;
struct sw_self_signed;
struct sw_tls_config;

struct sw_self_signed_options {
    const char *namespace_; /* our own: of the Secret and of the service */
    const char *secret_name;
    const char *service_name; /* by which the API server reaches us */
    struct sw_signed_times times;
    /* A new pair to serve; config is borrowed for the call. */
    void (*on_pair)(void *arg, struct sw_tls_config *config);
    void *arg;
};

/* authorities: PEM, what caBundle is to be; whenever it changes. */
typedef void (*sw_authorities_fn)(void *arg, const char *authorities);

/* In start of the instance. options are borrowed. */
struct sw_self_signed *sw_self_signed_new(struct sw_instance *self,
                                          const struct sw_self_signed_options *options,
                                          sw_authorities_fn fn, void *arg);
/* Takes NULL; returns NULL. After the instance was unregistered. */
struct sw_self_signed *sw_self_signed_free(struct sw_self_signed *signed_);
/* What caBundle of each of our entries is (PEM); count 0: there are none. Nothing is made before
 * this is known. Taken: the array and its texts. */
void sw_self_signed_set_stored_take(struct sw_self_signed *signed_, char **bundles_taken,
                                    size_t count);
/* This process leads now. */
void sw_self_signed_look(struct sw_self_signed *signed_);

#endif
