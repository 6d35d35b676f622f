/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The typed view of a DeploymentCoordination, spec and status.
 */
#ifndef SW_COORDINATION_KIND_H
#define SW_COORDINATION_KIND_H

#include <stdbool.h>
#include <stdint.h>

#include <slipway/kind.h>

#define COORD_SKIP_GUARD "slipway.dev/skip-guard"
#define COORD_REVISION "deployment.kubernetes.io/revision"

/* An element of status.deploymentStates. Absent times are 0, an absent position is -1. */
struct coord_entry {
    const char *name; /* "namespace/name" */
    bool has_pending_changes;
    int64_t generation;
    int64_t started_us;
    int64_t finished_us;
    int64_t pending_since_us;
    int32_t position;
    const char *message;
    const char *failed_template; /* 32 hexadecimal digits, or "" */
};

struct coordination {
    struct sw_object meta;
    /* spec */
    struct sw_raw selector; /* text NULL: absent */
    int32_t min_ready_seconds;
    int32_t max_active;
    bool is_suspended;
    const char *availability_guard; /* "Enforce", "Off", "" */
    const char *at_rest;            /* "Paused", "Running", "" */
    const char *failure_policy;     /* "Stop", "Skip", "" */
    /* status */
    const char *active_deployment;
    struct sw_strings active_deployments;
    struct sw_strings deployments;
    struct sw_list states; /* of struct coord_entry */
    int32_t selected;
    int32_t pending;
    bool is_truncated;
    int64_t turn;
    int64_t observed_generation; /* 0: the status is not ours */
    struct sw_conditions conditions;
};

extern const struct sw_kind coord_kind;

#endif
