/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy of the module, pure: from one SteppedRollout, its target as it is, and what the leader
 * remembers of it, to what is to be written, asked, said and looked at again. No I/O, no clock. The
 * shell collects the snapshot, carries the actions out and reports each answer; property tests
 * drive the very same functions.
 *
 *     step_plan      -> hold, at the stop              step_answered(ok)
 *     step_plan      -> status: Analysing              step_answered(ok)
 *     step_plan      -> round                          step_round_ended(results)
 *     step_plan      -> status: next stop              step_answered(ok)
 *     step_plan      -> advance to it                  step_answered(ok)
 *
 * At most one write to the target and one to the SteppedRollout are under way, and one round; the
 * memory knows. What has been written down in the status is never forgotten; what has not is done
 * again by a new leader.
 */
#ifndef SW_STEPPING_PLAN_H
#define SW_STEPPING_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slipway/arbiter.h>
#include <slipway/record.h>
#include <slipway/write.h>

#include "kind.h"
#include "round.h"
#include "spec.h"

/* ---- what it looks like ---- */

enum step_target_kind {
    STEP_DEPLOYMENT,
    STEP_STATEFUL_SET,
    STEP_DAEMON_SET,
};

/* A generation of Pods: a ReplicaSet of a Deployment, or the Pods of one ControllerRevision. */
struct step_revision {
    const char *name; /* of the ReplicaSet, of the ControllerRevision of a StatefulSet or
                         DaemonSet */
    const char *resource_version; /* of the ReplicaSet */
    int32_t wanted;               /* spec.replicas of the ReplicaSet; else Pods that are there */
    int32_t pods, ready, available;
    int64_t created_us;
    int64_t revision; /* annotation, or .revision; the newest is the largest */
    bool is_newest;   /* the revision of the template as it is now */
    bool is_promoted; /* status.promotedRevision */
    bool is_observed; /* its controller has seen the last change of its size */
    bool is_current;  /* of a StatefulSet: in which Pods that are held back come back */
};

/* A target, the same for the three kinds. */
struct step_target {
    enum step_target_kind kind;
    const struct sw_object *object;
    char hash[33];    /* of the Pod template */
    bool is_observed; /* status.observedGeneration >= generation */
    int32_t replicas; /* wanted: spec.replicas; desiredNumberScheduled */
    int32_t status_replicas, updated, ready, available;
    int32_t surge,
        unavailable;  /* as numbers of replicas, as its controller rounds; StatefulSet:
                         0 and 1 (or its maxUnavailable); DaemonSet: 0 and the annotation */
    bool is_recreate; /* strategy Recreate, or a StatefulSet that was OnDelete by its user */
    int32_t min_ready_seconds;
    int32_t progress_deadline_seconds; /* of the Deployment itself; 0 elsewhere */
    bool is_held;        /* Deployment: paused; others: nothing more will be updated */
    bool is_ours;        /* and by us: held-by names us; the saved strategy is there */
    bool is_users_pause; /* paused, and by none of ours */
    bool is_shared;      /* held-by names another policy beside us */
    bool is_released;    /* released-by names us */
    bool is_raised;      /* deadMan: minReadySeconds is raised */
    int32_t allowed;     /* Pods that may be updated as it stands: StatefulSet: replicas -
                            partition; Deployment: all, or those updated while held */
    bool has_saved;
    enum sw_verdict others; /* arbiters of other modules */
    const char *others_words, *others_owners;
    /* Read when asked for (STEP_LOOK); age_ms UINT64_MAX: not yet */
    const struct step_revision *revisions; /* the newest first */
    size_t revision_count;
    uint64_t revisions_age_ms;     /* since the request for them was sent */
    uint64_t revisions_idle_ms;    /* since they came */
    const char *revisions_version; /* resourceVersion of the target when they were read */
    const char *look_error;        /* why the last look failed; NULL: it did not */
};

/* deadMan: what spec.minReadySeconds is raised to, and progressDeadlineSeconds at least (it must be
 * larger, says the API). */
#define STEP_RAISED_READY_SECONDS 86400
#define STEP_RAISED_DEADLINE_SECONDS (86400 + 600)

struct step_snapshot {
    const struct stepped *object;
    const struct step_spec
        *spec; /* parsed; NULL: invalid, and spec_error says which field and why */
    const char *spec_error;
    const char *conflict;             /* name of an older one on the same target; NULL */
    const struct step_target *target; /* NULL: there is none */
    bool target_kinds_are_synced;
    uint64_t now_ms; /* monotonic */
    int64_t wall_us;
    uint64_t random;
    int64_t term;
};

/* ---- what is to be done ---- */

enum step_action_type {
    STEP_HOLD,    /* the target is held: nothing more is updated. A StatefulSet with `stop` > 0 is
                     held where it is (partition replicas - stop); 0: 2147483647. What was raised is
                     put back, but with `is_raised` deadMan's raise comes with it */
    STEP_ADVANCE, /* let go on up to `stop` updated Pods; `is_raised`: with deadMan's raise, else
                     what was raised is put back. A DaemonSet: at most `pods` of its old Pods are
                     deleted, so many that replicas - stop old ones stay that are not being deleted
                     already, and no more than maxUnavailable allows */
    STEP_SETTLE,  /* nothing is under way: what was saved is put back, our owners leave it, it rolls
                     natively if it has something to roll; `marks` says whether the mark stays */
    STEP_BITE,    /* retreat: ReplicaSet `name` to `size` (Deployment); `pods` Pods that are not of
                     revision `name` are deleted, those that are not ready first, then the highest
                     ordinal (StatefulSet) */
    STEP_CLEAR,   /* of a StatefulSet: up to `pods` Pods that are neither of the newest revision nor
                     ready are deleted, the highest ordinal first: its controller would wait for
                     them for ever (OrderedReady). But none that would come back as it is.
                     SW_UNCHANGED where there is none */
    STEP_ROLL_BACK, /* the template of revision `name` is put back */
    STEP_STATUS,    /* the status becomes `status` */
    STEP_META,      /* annotations of people that were obeyed, and the finalizer */
    STEP_LOOK,      /* read revisions and Pods; asked for again until they are there: to be left
                       alone while one is under way */
    STEP_ROUND,     /* start a round (round.h): `round` says which checks */
    STEP_CANCEL,    /* of a round that matters no more */
};

struct step_status {
    const char *phase, *activity, *message;
    int32_t current_step, step_count, stop, updated_replicas, replicas, passed_rounds,
        failed_checks;
    const char *last_applied_hash, *last_promoted_hash, *failed_hash, *promoted_revision;
    const struct step_check *checks;
    size_t check_count;
    int64_t step_started_us, last_round_us, last_transition_us, observed_generation;
    struct sw_condition conditions[2]; /* Ready, Promoted; type "" where there is none */
};

struct step_remark {
    bool is_also_of_target;
    enum sw_record_type type;
    const char *reason;
    const char *message;
    struct step_remark *next;
};

struct step_action {
    enum step_action_type type;
    uint64_t number; /* unique in the memory's life */
    const char
        *resource_version; /* precondition: of the target, the ReplicaSet, the SteppedRollout */
    int32_t stop;
    bool is_raised;
    bool has_marks;
    int32_t pods;
    const char *name;
    int32_t size;
    enum step_round_type round;
    const struct step_status *status;
    bool removes_promote, removes_abort, removes_retry;
    int has_finalizer;           /* 1: it shall be there, 0: shall not, -1: as it is */
    struct step_remark *remarks; /* to be said when it has succeeded */
    struct step_action *next;
};

struct step_result {
    struct step_action *actions;
    struct step_remark *remarks; /* to be said now */
    uint64_t look_again_ms;      /* UINT64_MAX: only when something changes */
};

/* ---- what the leader remembers ---- */

struct step_memory; /* of one SteppedRollout, from the moment it leads; a new leader begins anew */

SW_NONNULL struct step_memory *step_memory_new(void);
struct step_memory *step_memory_free(struct step_memory *memory); /* takes NULL */

/* What is in *ret_result lives as long as the arena. */
void step_plan(struct step_memory *memory, const struct step_snapshot *snapshot,
               struct sw_arena *arena, struct step_result *ret_result);

/* To be called with the answer to each action but LOOK, ROUND and CANCEL, before the next
 * step_plan. */
void step_answered(struct step_memory *memory, const struct step_action *action,
                   enum sw_outcome outcome, const char *message);
/* A round has ended; results are copied. */
void step_round_ended(struct step_memory *memory, uint64_t number,
                      const struct step_round_result *result);

/* The merge patch {"status": ...}: what is absent from status but stored is deleted. */
SW_NONNULL struct sw_json *step_status_patch(struct sw_arena *arena,
                                             const struct step_status *status,
                                             const struct stepped *stored);

/* ---- the arbiter ---- */

/* What the policy says of a target, from memory alone. object: the SteppedRollout that counts for
 * it (the oldest), or NULL. spec: NULL where invalid. */
void step_opinion(const struct stepped *object, const struct step_spec *spec,
                  const struct step_target *target, const struct sw_question *question,
                  struct sw_opinion *opinion);

#endif
