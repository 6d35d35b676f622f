/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the controllers of the simulated cluster share: the views, the queue of keys, the claim of
 * objects by their selector, and the history of templates. Private to them.
 */
#ifndef TOOLS_SIM_CONTROLLERS_H
#define TOOLS_SIM_CONTROLLERS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/loop.h"
#include "disruption.h"
#include "recorder.h"
#include "store.h"
#include "view.h"

struct sw_map;
struct sw_sim_api;
struct sw_sim_workloads;

/* The first four have a controller. */
enum sw_sim_which {
    SW_SIM_DEPLOYMENTS,
    SW_SIM_REPLICA_SETS,
    SW_SIM_STATEFUL_SETS,
    SW_SIM_DAEMON_SETS,
    SW_SIM_CONTROLLERS,
    SW_SIM_REVISIONS = SW_SIM_CONTROLLERS,
    SW_SIM_PODS,
    SW_SIM_NODES,
    SW_SIM_VIEWS,
};

/* A key of a controller's queue: the name of a workload. */
struct sw_sim_job {
    struct sw_sim_workloads *workloads;
    enum sw_sim_which which;
    char *namespace_, *name;
    /* Pods were made or deleted up to this version; until the view has them, no more are. */
    uint64_t expects;
    /* private */
    struct sw_link link; /* in the queue */
    struct sw_timer later;
    unsigned failures;
};

/* Brings one workload a step on. object is what the view has, valid during the call. A negative
 * code: to be tried again, later each time. */
typedef int (*sw_sim_sync_fn)(struct sw_sim_workloads *workloads, struct sw_sim_job *job,
                              const struct sw_sim_object *object);

struct sw_sim_workloads {
    struct sw_loop *loop;
    struct sw_sim_store *store;
    struct sw_sim_api *api;
    struct sw_sim_disruption *disruption;
    struct sw_sim_recorder *recorder; /* NULL: nothing is said */
    struct sw_sim_view *views[SW_SIM_VIEWS];
    struct sw_map *jobs[SW_SIM_CONTROLLERS]; /* "namespace/name" -> struct sw_sim_job */
    struct sw_link queue;
    size_t sleeping; /* jobs with a time */
    struct sw_defer run;
    struct sw_sim_store_watcher watcher;
    bool is_running;
};

/* ---- the queue (workloads.c) ---- */

void sw_sim_wake(struct sw_sim_workloads *workloads, enum sw_sim_which which,
                 const char *namespace_, const char *name);
/* The earliest time that was asked for counts. */
void sw_sim_wake_after(struct sw_sim_workloads *workloads, enum sw_sim_which which,
                       const char *namespace_, const char *name, uint64_t ms);
/* The time that was asked for before counts no more. */
void sw_sim_wake_no_more(struct sw_sim_job *job);
const struct sw_sim_kind *sw_sim_kind_of(const struct sw_sim_workloads *workloads,
                                         enum sw_sim_which which);
/* Something changed in a view: who has to look (wakers.c). */
void sw_sim_on_change(void *arg, struct sw_sim_view *view, const struct sw_sim_item *before,
                      const struct sw_sim_item *after);

/* ---- the controllers, a file each ---- */

int sw_sim_sync_deployment(struct sw_sim_workloads *workloads, struct sw_sim_job *job,
                           const struct sw_sim_object *object);
int sw_sim_sync_replica_set(struct sw_sim_workloads *workloads, struct sw_sim_job *job,
                            const struct sw_sim_object *object);
int sw_sim_sync_stateful_set(struct sw_sim_workloads *workloads, struct sw_sim_job *job,
                             const struct sw_sim_object *object);
int sw_sim_sync_daemon_set(struct sw_sim_workloads *workloads, struct sw_sim_job *job,
                           const struct sw_sim_object *object);

/* ---- what belongs to a workload (claim.c) ---- */

struct sw_sim_items {
    struct sw_sim_item **at;
    size_t count, room;
};
void sw_sim_items_add(struct sw_sim_items *items, struct sw_sim_item *item);
void sw_sim_items_done(struct sw_sim_items *items);

typedef bool (*sw_sim_wants_fn)(const struct sw_sim_object *owner, const struct sw_sim_item *item);

/*
 * All items of the view that the owner controls. An orphan that the selector takes is adopted, one
 * that the selector no longer takes is released, unless the owner or it is being deleted. wants may
 * be NULL; what it does not want is left alone. An error: one could not be adopted or released, and
 * items, which are to be freed all the same, are only a part: nobody may act on them.
 */
int sw_sim_claim(struct sw_sim_workloads *workloads, enum sw_sim_which which,
                 const struct sw_sim_object *owner, sw_sim_wants_fn wants,
                 struct sw_sim_items *items);
bool sw_sim_wants_active(const struct sw_sim_object *owner, const struct sw_sim_item *item);

/* A Pod as its template says, controlled by the owner. The caller may add to it: metadata, its
 * labels, and spec are its own. */
json_t *sw_sim_pod_of(const struct sw_sim_object *owner, const json_t *template);
/* Writes the status where it differs from the object's; the status is taken. */
int sw_sim_write_status(struct sw_sim_workloads *workloads, const struct sw_sim_object *object,
                        json_t *status_take);

/* ---- ControllerRevisions (revisions.c) ---- */

struct sw_sim_revisions {
    /* Counted; from the oldest to the newest, the one of the template included. */
    const struct sw_sim_object **at;
    size_t count;
    const struct sw_sim_object *update; /* of the template as it is now */
    int64_t collisions;                 /* names that another template's revision had */
};
/* Finds the history, and makes or renews the revision of the template as it is now. label: of the
 * revision, holds the hash in its name. */
int sw_sim_revisions_find(struct sw_sim_workloads *workloads, const struct sw_sim_object *owner,
                          const char *label, struct sw_sim_revisions *revisions);
/* Deletes the oldest of those that is_live does not want, down to spec.revisionHistoryLimit. */
void sw_sim_revisions_truncate(struct sw_sim_workloads *workloads,
                               const struct sw_sim_object *owner,
                               const struct sw_sim_revisions *revisions,
                               bool (*is_live)(void *arg, const struct sw_sim_object *revision),
                               void *arg);
void sw_sim_revisions_done(struct sw_sim_revisions *revisions);
const json_t *sw_sim_revision_template(const struct sw_sim_object *revision); /* with "$patch" */

#endif
