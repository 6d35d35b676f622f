/* SPDX-License-Identifier: Apache-2.0 */
/*
 * About the Pod template alone, as everywhere in slipway: one with Pods that are down, or too few,
 * has nothing to roll. A paused one with a new template has updatedReplicas absent (seen).
 */
#include "runtime/release_order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <slipway/apps.h>
#include <slipway/arbiter.h>

static bool is_observed(const struct sw_deployment *d)
{
    return d->observed_generation >= d->meta.generation;
}

bool sw_release_is_complete(const struct sw_deployment *d)
{
    return is_observed(d) && d->updated_replicas == d->replicas &&
           d->status_replicas == d->replicas && d->available_replicas == d->replicas;
}

/* That its controller calls its last rollout done: what is missing since is no rollout's. */
static bool is_done(const struct sw_deployment *d)
{
    const struct sw_condition *progressing = sw_condition_get(&d->conditions, "Progressing");

    return progressing && strcmp(progressing->reason, "NewReplicaSetAvailable") == 0;
}

static bool would_roll(const struct sw_deployment *d)
{
    return d->replicas > 0 &&
           (!is_observed(d) || d->status_replicas == 0 || d->updated_replicas < d->status_replicas);
}

enum sw_release_turn sw_release_turn_of(const struct sw_deployment *d)
{
    bool has_right = sw_annotation(&d->meta, SW_RELEASED_BY) != NULL;

    if (d->is_paused)
        return would_roll(d) ? SW_RELEASE_WAITS : SW_RELEASE_AT_REST;
    if (sw_release_is_complete(d))
        return SW_RELEASE_AT_REST;
    return has_right || would_roll(d) || !is_done(d) ? SW_RELEASE_ROLLS : SW_RELEASE_AT_REST;
}

int64_t sw_release_order_of(const struct sw_deployment *d)
{
    const char *text = sw_annotation(&d->meta, SW_ORDER);
    char *end = NULL;

    if (!text || !text[0])
        return 0;
    errno = 0;
    long long order = strtoll(text, &end, 10);
    return errno || *end ? 0 : order;
}
