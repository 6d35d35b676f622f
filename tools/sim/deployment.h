/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One look at a Deployment and its ReplicaSets, shared by the files of its controller
 * (deployment.c, deployment_scale.c, deployment_status.c). Private to them.
 */
#ifndef TOOLS_SIM_DEPLOYMENT_H
#define TOOLS_SIM_DEPLOYMENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slipway/attr.h>

#define SW_DEPLOYMENT_REVISION "deployment.kubernetes.io/revision"
#define SW_DEPLOYMENT_HISTORY "deployment.kubernetes.io/revision-history"
#define SW_DEPLOYMENT_DESIRED "deployment.kubernetes.io/desired-replicas"
#define SW_DEPLOYMENT_MAX "deployment.kubernetes.io/max-replicas"

struct sw_sim_job;
struct sw_sim_object;
struct sw_sim_workloads;

/* A ReplicaSet of the Deployment, as the view has it or as this look has just written it. */
struct sw_rollout_set {
    const struct sw_sim_object *object; /* counted */
    int64_t replicas;                   /* wanted */
    int64_t present, ready, available;  /* of its status */
    int64_t created_us;
};

struct sw_rollout {
    struct sw_sim_workloads *workloads;
    struct sw_sim_job *job;
    const struct sw_sim_object *object;
    const json_t *spec;
    json_t *status; /* as the controller has it so far; its conditions may be ahead of the view */
    json_t *annotations; /* the same */
    int64_t replicas, generation, min_ready_s;
    int64_t surge, unavailable; /* resolved, 0 with Recreate */
    int64_t deadline_s;         /* -1: none */
    int64_t history_limit;      /* -1: none */
    bool is_rolling, is_paused;
    bool has_written; /* status or annotations: what the view has is old now */
    /* From the oldest to the newest. The one with the template as it is now may be missing. */
    struct sw_rollout_set *sets;
    size_t count;
    struct sw_rollout_set *current; /* NULL: there is none yet */
};

/* ---- deployment.c ---- */

/* Finds the ReplicaSet of the template, or makes it where asked to, and brings revisions up to
 * date. */
int sw_rollout_find_current(struct sw_rollout *rollout, bool may_create);
/* Writes status and annotations as they are in the look. -EAGAIN: something is newer. */
int sw_rollout_write(struct sw_rollout *rollout);
int64_t sw_rollout_wanted(const struct sw_rollout *rollout); /* by all ReplicaSets together */
bool sw_rollout_is_old(const struct sw_rollout *rollout, const struct sw_rollout_set *set);

/* ---- deployment_scale.c ---- */

/* Paused, or another number of replicas is wanted than the ReplicaSets know of. */
int sw_rollout_scale(struct sw_rollout *rollout);
bool sw_rollout_is_scaling(const struct sw_rollout *rollout);
/* One step of the rollout; *ret_did: a ReplicaSet was changed, so the rest waits. */
int sw_rollout_step(struct sw_rollout *rollout, bool *ret_did);
int64_t sw_rollout_new_size(const struct sw_rollout *rollout, int64_t size);
int sw_rollout_resize(struct sw_rollout *rollout, struct sw_rollout_set *set, int64_t replicas);
/* The Event of it. */
void sw_rollout_record(const struct sw_rollout *rollout, const struct sw_rollout_set *set,
                       bool is_up, int64_t replicas);
/* Sets the annotations by which ReplicaSets know the size of the whole; true: they differed. */
bool sw_rollout_annotate(const struct sw_rollout *rollout, json_t *annotations);
/* Deletes the oldest, down to spec.revisionHistoryLimit. */
int sw_rollout_clean(struct sw_rollout *rollout);

/* ---- deployment_status.c ---- */

enum sw_rollout_condition { SW_ROLLOUT_FALSE, SW_ROLLOUT_TRUE, SW_ROLLOUT_MAYBE };
/* Unless it is there with that status and reason. */
SW_PRINTF(6, 7)
void sw_rollout_set_condition(const struct sw_rollout *rollout, json_t *status, const char *type,
                              enum sw_rollout_condition value, const char *reason,
                              const char *format, ...);
const json_t *sw_rollout_condition(const json_t *status, const char *type);
int sw_rollout_tell_paused(struct sw_rollout *rollout);
bool sw_rollout_is_complete(const struct sw_rollout *rollout, const json_t *status);
/* Counts, and with_progress: the conditions of progress and failure. */
int sw_rollout_tell(struct sw_rollout *rollout, bool with_progress);

#endif
