/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spec of a SteppedRollout, checked and in numbers: what a CRD without CEL cannot say. The same
 * function answers the validating review and fills the condition Ready. Pure.
 */
#ifndef SW_STEPPING_SPEC_H
#define SW_STEPPING_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kind.h"

struct sw_arena;

enum step_on_failure {
    STEP_RETREAT,
    STEP_ROLLBACK,
    STEP_STAY, /* Hold */
};

enum step_hook_type {
    STEP_CONFIRM_ROLLOUT,
    STEP_PRE_ROLLOUT,
    STEP_ROLLOUT,
    STEP_CONFIRM_STEP, /* also "confirm-traffic-increase" */
    STEP_CONFIRM_PROMOTION,
    STEP_POST_ROLLOUT,
    STEP_ROLLBACK_HOOK,
    STEP_EVENT,
};

struct step_hook {
    const struct step_webhook *object;
    enum step_hook_type type;
    uint32_t timeout_ms;
};

struct step_measure {
    const struct step_metric *object;
    bool has_min, has_max;
    double min, max;
    const char *range;    /* for people: "0.99 .. 1", ">= 0.99", "<= 500" */
    uint64_t interval_ms; /* the window of {{ interval }} */
};

struct step_spec {
    const struct stepped *object;          /* borrowed: the spec lives no longer than it */
    const struct sw_int_or_percent *steps; /* rising; NULL: by step_size */
    size_t step_count;
    struct sw_int_or_percent step_size;
    uint64_t deadline_ms;
    uint64_t interval_ms;
    int32_t iterations, threshold;
    const struct step_measure *measures;
    size_t measure_count;
    const struct step_hook *hooks;
    size_t hook_count;
    bool has_pods;
    int32_t max_restarts;
    uint64_t max_unready_ms;
    enum step_on_failure on_failure;
};

/* 0, and *ret_spec in the arena; -EINVAL, and *ret_error names the field first:
 * "spec.steps[2]: 25% is not more than the step before it (50%)". */
int step_spec_parse(const struct stepped *object, struct sw_arena *arena,
                    struct step_spec *ret_spec, const char **ret_error);

/* Flagger's and Go's durations: "1m30s", "500ms", "1h"; -EINVAL. */
int step_duration(const char *text, uint64_t *ret_ms);

/* ---- stops ---- */

/* How many stops a rollout of so many Pods has, the last (all of them) included; at least 1. Each
 * is at least one Pod more than the one before, and none is more than replicas: those that would be
 * are left out. */
int32_t step_stop_count(const struct step_spec *spec, int32_t replicas);
/* Pods that may be updated at stop number `step`, counted from 1. Beyond the last: replicas. */
int32_t step_stop(const struct step_spec *spec, int32_t replicas, int32_t step);
/* The first step whose stop is not below so many updated Pods: those before were passed. */
int32_t step_of(const struct step_spec *spec, int32_t replicas, int32_t updated);

#endif
