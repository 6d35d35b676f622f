/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A running module, and the rings of what it has registered. Whatever hangs on a ring is freed when
 * the module stops, in the order of this file.
 */
#ifndef SW_RUNTIME_INSTANCE_H
#define SW_RUNTIME_INSTANCE_H

#include <stdbool.h>
#include <stddef.h>

#include <slipway/module.h>
#include <slipway/telemetry.h>

#include "base/error.h"
#include "base/list.h"
#include "base/log.h"

struct sw_core;

struct sw_instance {
    struct sw_core *core;
    const struct sw_module *module;
    void *state;
    const void *config;
    struct sw_log log;
    struct sw_error failure; /* what sw_fail said */
    bool is_starting;        /* registering is allowed */
    sw_leading_fn *leading_fns;
    size_t leading_count;
    sw_collect_fn collect_fn; /* NULL: none */
    struct sw_link queues;    /* struct sw_queue */
    struct sw_link alarms;    /* struct sw_alarm */
};

/* Starts it. On failure everything is undone, *error has the reason, and NULL is returned. */
struct sw_instance *sw_instance_start(struct sw_core *core, const struct sw_module *module,
                                      const void *config, struct sw_error *error);
/* Hands it another configuration: *error has the reason if it refuses, and the old one stays. Only
 * where the module has a reconfigure. */
int sw_instance_reconfigure(struct sw_instance *instance, const void *config,
                            struct sw_error *error);
/* Removes what was registered, calls stop, frees it. */
void sw_instance_stop(struct sw_instance *instance);
/* Takes back what sw_on_collect has registered (telemetry.c). */
void sw_telemetry_forget(struct sw_instance *instance);
void sw_instance_tell_leading(struct sw_instance *instance, bool is_leading);

#endif
