/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every object of Kubernetes has: names, versions, labels. The typed struct of a kind begins
 * with a struct sw_object. Objects are const. One from the store is valid until the loop turns; one
 * from a review until it is answered; one from an answer for the call. Keep the key, not the
 * pointer.
 */
#ifndef SLIPWAY_OBJECT_H
#define SLIPWAY_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slipway/attr.h>

struct sw_kind;

struct sw_label {
    const char *key;
    const char *value;
};

/* Labels or annotations, sorted by key. */
struct sw_labels {
    const struct sw_label *at;
    uint32_t count;
};

struct sw_object {
    const struct sw_kind *kind;
    const char *namespace_; /* "" for cluster-scoped kinds */
    const char *name;
    const char *uid;
    const char *resource_version; /* opaque: sent back and compared for equality, nothing else */
    int64_t generation;
    int64_t created_us; /* microseconds since 1970, UTC */
    int64_t deleted_us; /* deletionTimestamp; 0: not being deleted */
    struct sw_labels labels;
    struct sw_labels annotations; /* those that the kind asks for */
    const char *owner_uid;        /* of the controlling ownerReference; "" where there is none */
};

/* The value, or NULL. */
SW_API const char *sw_labels_get(const struct sw_labels *labels, const char *key);
SW_API const char *sw_annotation(const struct sw_object *object, const char *key);

/* metav1.Condition and the conditions of apps/v1. Absent strings are "", absent times 0. */
struct sw_condition {
    const char *type;
    const char *status; /* "True", "False", "Unknown" */
    const char *reason;
    const char *message;
    int64_t last_update_us;
    int64_t last_transition_us;
    int64_t observed_generation;
};

struct sw_conditions {
    const struct sw_condition *at;
    uint32_t count;
};

/* The condition of that type, or NULL. */
SW_API const struct sw_condition *sw_condition_get(const struct sw_conditions *conditions,
                                                   const char *type);
SW_API bool sw_condition_is(const struct sw_conditions *conditions, const char *type,
                            const char *status);

#endif
