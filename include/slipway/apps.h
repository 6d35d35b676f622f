/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The built-in kinds that several modules look at. Numbers that are absent from the status are 0.
 */
#ifndef SLIPWAY_APPS_H
#define SLIPWAY_APPS_H

#include <slipway/kind.h>

struct sw_deployment {
    struct sw_object meta;
    /* spec */
    int32_t replicas; /* absent: 1 */
    bool is_paused;
    struct sw_hash128 template_hash;
    const char *strategy; /* "RollingUpdate" or "Recreate"; absent: "" */
    struct sw_int_or_percent max_surge;
    struct sw_int_or_percent max_unavailable;
    int32_t min_ready_seconds;
    int32_t progress_deadline_seconds; /* absent: 600; 2147483647: none */
    /* status */
    int64_t observed_generation;
    int32_t status_replicas;
    int32_t updated_replicas;
    int32_t ready_replicas;
    int32_t available_replicas;
    struct sw_conditions conditions;
};

/* apps/v1 Deployment; struct sw_deployment. Keeps the annotations of slipway.dev/ and
 * deployment.kubernetes.io/revision. */
SW_API extern const struct sw_kind sw_kind_deployment;

/* The typed view of an object of that kind, as the store, a question or a review delivers it; NULL
 * of NULL. */
static inline const struct sw_deployment *sw_as_deployment(const struct sw_object *object)
{
    return (const struct sw_deployment *)(const void *)object;
}

/* The identifier of the rollout to the template that it has now: of namespace, name and template
 * alone, so that every replica, before and after a restart, and also an admission review of one
 * that has no uid yet, come to the same. A Deployment that goes back to a template gets back the
 * identifier. */
#define SW_ROLLOUT_SIZE 17
SW_API void sw_rollout_text(const struct sw_deployment *deployment, char text[SW_ROLLOUT_SIZE]);

#endif
