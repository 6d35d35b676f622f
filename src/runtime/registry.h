/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What modules registered to be asked or told: arbiters, the hand, sinks of records, admission
 * paths. Each registration is one block of memory that begins with a struct sw_registration.
 */
#ifndef SW_RUNTIME_REGISTRY_H
#define SW_RUNTIME_REGISTRY_H

#include <slipway/arbiter.h>
#include <slipway/record.h>

#include "base/list.h"

struct sw_core;

struct sw_registration {
    struct sw_link link;
    struct sw_instance *instance;
};

struct sw_registry {
    struct sw_instance *hand; /* NULL: none */
    sw_hand_fn hand_fn;
    struct sw_link arbiters;   /* arbiter.c */
    struct sw_link listeners;  /* the same: of opinions that change */
    struct sw_link sinks;      /* record.c */
    struct sw_link admissions; /* struct sw_admission_route, admission.h */
    struct sw_link writes;     /* struct sw_declared_write */
    struct sw_link reads;      /* struct sw_declared_read */
};

struct sw_declared_write {
    struct sw_registration registration;
    const struct sw_kind *kind;
    enum sw_write_verb verb;
    enum sw_subresource subresource;
};

struct sw_declared_read {
    struct sw_registration registration;
    const struct sw_kind *kind;
    bool also_lists;
};

void sw_registry_init(struct sw_registry *registry);
void sw_registry_forget(struct sw_registry *registry, const struct sw_instance *instance);

/* New zeroed memory of that size, at the end of the ring. In start. */
void *sw_registry_add(struct sw_link *ring, struct sw_instance *instance, size_t size);

#endif
