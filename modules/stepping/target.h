/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a target of each kind is to the policy (struct step_target), and what holding it, letting it
 * go on and leaving it mean as a write. Pure translation: nothing is decided here, nothing is sent.
 *
 *     kind         held                              goes on to `stop`
 *     Deployment   paused, by the hand (arbiter.h)   unpaused
 *     StatefulSet  partition 2147483647              partition replicas - stop
 *     DaemonSet    OnDelete                          old Pods are deleted
 *
 * What is changed in spec for as long as that lasts stands in slipway.dev/saved as it was: a JSON
 * object of members of spec, each of which replaces spec's when it is put back.
 *
 *     Deployment (deadMan)     {"minReadySeconds":0,"progressDeadlineSeconds":600}
 *     StatefulSet, DaemonSet   {"updateStrategy":{"type":"RollingUpdate",...}}
 */
#ifndef SW_STEPPING_TARGET_H
#define SW_STEPPING_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include <slipway/apps.h>
#include <slipway/arena.h>
#include <slipway/json.h>
#include <slipway/workloads.h>

#include "plan.h"

/* Not `replicas`: Pods that a scale-up adds would have the new template. */
#define STEP_PARTITION_HELD INT32_MAX

static inline const struct sw_stateful_set *step_as_stateful_set(const struct sw_object *object)
{
    return (const struct sw_stateful_set *)(const void *)object;
}

static inline const struct sw_daemon_set *step_as_daemon_set(const struct sw_object *object)
{
    return (const struct sw_daemon_set *)(const void *)object;
}

/* "Deployment", "StatefulSet", "DaemonSet" of apps/v1. False: none of these. */
bool step_target_kind_named(const char *api_version, const char *kind,
                            enum step_target_kind *ret_kind);
SW_NONNULL const struct sw_kind *step_kind_of(enum step_target_kind kind);

/* The owner of a SteppedRollout's holds: "stepping/NAME". */
SW_NONNULL const char *step_owner(struct sw_arena *arena, const char *name);
/* Does the list of owners, joined by commas, name this one? */
bool step_list_has(const char *list, const char *owner);

/* What the object says by itself; what others say of it, and its revisions, are the caller's. name:
 * of the SteppedRollout. */
void step_target_of(const struct sw_object *object, const char *name, struct sw_arena *arena,
                    struct step_target *ret_target);

/* The JSON of slipway.dev/saved; NULL: there is none, or it is none that we wrote. New in the
 * arena, to be changed at will. */
struct sw_json *step_saved(const struct sw_object *object, struct sw_arena *arena);

/* ---- Deployments: what goes with a request to the hand ---- */

void step_deployment_target(const struct sw_deployment *deployment, const char *name,
                            struct sw_arena *arena, struct step_target *ret_target);
/* A merge patch that raises what deadMan raises; NULL: it is so already. */
struct sw_json *step_deployment_raise(const struct sw_deployment *deployment,
                                      struct sw_arena *arena);
/* A merge patch that puts back what is saved; NULL: nothing is. What somebody has changed since
 * stays. */
struct sw_json *step_deployment_restore(const struct sw_deployment *deployment,
                                        struct sw_arena *arena);

/* ---- StatefulSets and DaemonSets: what we make of them ---- */

enum step_grip_type {
    STEP_GRIP_HELD,     /* held-by names us, and others who hold */
    STEP_GRIP_RELEASED, /* released-by names us */
    STEP_GRIP_NONE,     /* what is saved is put back, none of our owners is left */
};

struct step_grip {
    enum step_grip_type type;
    const char *name;          /* of the SteppedRollout */
    bool has_mark;             /* slipway.dev/stepped-by */
    const char *others_owners; /* who holds it beside us; "" */
    int32_t partition;         /* of a StatefulSet, unless NONE */
};

/* A merge patch; NULL: it is so already. */
struct sw_json *step_stateful_set_patch(const struct sw_stateful_set *set,
                                        const struct step_grip *grip, struct sw_arena *arena);
struct sw_json *step_daemon_set_patch(const struct sw_daemon_set *set, const struct step_grip *grip,
                                      struct sw_arena *arena);
void step_stateful_set_target(const struct sw_stateful_set *set, const char *name,
                              struct sw_arena *arena, struct step_target *ret_target);
void step_daemon_set_target(const struct sw_daemon_set *set, const char *name,
                            struct sw_arena *arena, struct step_target *ret_target);
/* The partition with which `stop` Pods may be updated. */
int32_t step_partition(int32_t replicas, int32_t stop);

/* Shared by the two: the annotations of a grip in a merge patch that has spec.updateStrategy, or
 * NULL for it, already. saved_text: what slipway.dev/saved becomes; NULL: it goes. */
void step_grip_annotations(const struct sw_object *object, const struct step_grip *grip,
                           const char *saved_text, struct sw_json **patch, struct sw_arena *arena);
/* The user's own strategy as slipway.dev/saved keeps it: what is saved already, else the strategy
 * that stands there. */
SW_NONNULL const char *step_saved_strategy(const struct sw_object *object,
                                           const struct sw_raw *strategy, struct sw_arena *arena);
/* The strategy of slipway.dev/saved as a merge patch over any other strategy; NULL: none is saved.
 */
struct sw_json *step_restored_strategy(const struct sw_object *object, struct sw_arena *arena);

/* ---- going back to an older template ---- */

/* A JSON patch that replaces the Pod template. text: spec.template of a ReplicaSet (its
 * pod-template-hash is left out), or data of a ControllerRevision. -EINVAL: there is none in it. */
int step_template_patch(enum step_target_kind kind, const struct sw_raw *text,
                        struct sw_arena *arena, struct sw_json **ret_patch);
/* Is it the same template? text: of a ReplicaSet, wanted: of its Deployment. */
bool step_template_is(const struct sw_raw *text, const struct sw_raw *wanted);

#endif
