/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A module: one exported descriptor, loaded as a shared object (sw_module.so exports the symbol
 * sw_module_NAME and nothing else) or linked in. In start it registers what it wants to be called
 * for; after that it only reacts. What it registered is removed by the core when it stops. All
 * state hangs on the instance; a module has no writable static. Everything is called on the loop's
 * one thread.
 *
 *     SW_API const struct sw_module sw_module_hello = {
 *         SW_MODULE_HEAD("hello"),
 *         .summary = "says hello to every Deployment that it sees",
 *         .state_size = sizeof(struct state),
 *         .start = start,
 *     };
 *
 * ABI: what changed with each number.
 *   1  first
 *   2  sw_answer.resource_version
 *   3  sw_say_about, sw_run_id, sw_rollout_text; series that come and go, sw_on_collect
 *   4  fetch.h, read.h, workloads.h; marks are owners; sw_opinion's refusal, warning, patch and
 *      has_given_up; sw_opinion_changed; sw_hold_request.also; sw_kind.is_secret; sw_json_each,
 *      sw_json_remove
 */
#ifndef SLIPWAY_MODULE_H
#define SLIPWAY_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slipway/arena.h>
#include <slipway/attr.h>

#define SW_ABI 4

struct cyaml_schema_value; /* libcyaml's schema is data and may cross this border */
struct sw_instance;        /* a running module */

struct sw_module {
    /* SW_MODULE_HEAD */
    uint32_t abi;
    uint32_t size;
    const char *name;

    const char *summary; /* one line, for --list-modules */
    const char *const
        *needs; /* names of modules that must be started before; NULL-terminated; or NULL */
    const struct cyaml_schema_value
        *config_schema; /* of modules.d/NAME.yaml: a mapping; NULL: no configuration */
    size_t config_size;
    size_t state_size; /* allocated and zeroed by the core: sw_state */

    /* 0, or a negative code with the reason said by sw_fail. config: NULL without a schema; valid
     * until reconfigure has succeeded or the module is stopped. */
    int (*start)(struct sw_instance *self, const void *config);
    /* All or nothing: 0 takes the new configuration over; a negative code, with the reason said by
     * sw_fail, keeps the old one. Until it returns, sw_config is the old one. Called a second time
     * with the old one where a later module refuses its own. NULL: needs a restart. */
    int (*reconfigure)(struct sw_instance *self, const void *config);
    /* Frees what hangs on the state. What was registered is already removed. */
    void (*stop)(struct sw_instance *self);
};

#define SW_MODULE_HEAD(module_name) \
    .abi = SW_ABI, .size = sizeof(struct sw_module), .name = (module_name)

/* ---- the instance ---- */

SW_API SW_NONNULL void *sw_state(struct sw_instance *self);
SW_API SW_NONNULL const char *sw_name(const struct sw_instance *self);
SW_API const void *sw_config(const struct sw_instance *self);
/* Says why start or reconfigure fails; returns code: return sw_fail(self, -EINVAL, "...", ...). */
SW_API SW_PRINTF(3, 4) int sw_fail(struct sw_instance *self, int code, const char *format, ...);

/* ---- leadership ---- */

/* Writes of a module that does not lead fail with SW_NOT_LEADER. fn(self, true) comes when this
 * process leads and every kind that is subscribed to has been listed anew by a consistent read sent
 * after the lease was won; fn(self, false) at once when it leads no more, or is about to stop; the
 * answers to writes under way still come. Without leader election
 * it leads from the first lists on. */
typedef void (*sw_leading_fn)(struct sw_instance *self, bool is_leading);
SW_API void sw_on_leading(struct sw_instance *self, sw_leading_fn fn);
SW_API bool sw_is_leading(const struct sw_instance *self);
/* leaseTransitions of our lease: one more with each change of the holder. 0 without leader
 * election. */
SW_API int64_t sw_term(const struct sw_instance *self);

/* The name under which the API server knows us (request.userInfo.username in reviews); "" while
 * unknown. */
SW_API SW_NONNULL const char *sw_self_username(const struct sw_instance *self);
/* fieldManager of every write. */
#define SW_FIELD_MANAGER "slipway"

#endif
