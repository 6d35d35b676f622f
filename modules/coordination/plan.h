/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy of the module, pure: from what one namespace looks like and what the leader remembers
 * of it, to what is to be written, said and looked at again. No I/O, no clock. The shell collects
 * the snapshot, carries the actions out and reports each answer; property tests drive the very same
 * functions.
 *
 * One run of a hand-over (the protocol is in chain.c):
 *
 *     coord_plan      -> action: take back a        coord_answered(ok)
 *     coord_plan      -> action: record {b}         coord_answered(ok)
 *     coord_plan      -> action: release b          coord_answered(ok)
 *
 * Actions for one object never overlap: the memory knows what is under way.
 */
#ifndef SW_COORDINATION_PLAN_H
#define SW_COORDINATION_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slipway/apps.h>
#include <slipway/arbiter.h>
#include <slipway/record.h>
#include <slipway/selector.h>
#include <slipway/write.h>

#include "kind.h"

#define COORD_POLICY "coordination"
#define COORD_LIST_MAX 500 /* entries of the lists in a status */

/* ---- what the namespace looks like ---- */

struct coord_seen_group {
    const struct coordination *object;
    const struct sw_selector *selector; /* NULL: absent or invalid */
    const char *selector_error;         /* why; "" with a selector */
};

struct coord_seen_deployment {
    const struct sw_deployment *object;
    enum sw_verdict others; /* what the arbiters of other modules say */
    const char *others_words;
    const char *others_owners;
    bool others_select;     /* another policy has a say in it */
    bool others_gave_it_up; /* what it would roll to has failed there */
};

/* Everything is borrowed for the call; the arrays may be in any order. */
struct coord_snapshot {
    const char *namespace_;
    uint64_t now_ms; /* monotonic */
    int64_t wall_us;
    uint64_t random;      /* another one for each run: jitter of retries */
    int64_t term;         /* of our lease */
    bool rests_running;   /* atRest where a coordination does not say */
    uint64_t lists;       /* how many lists of the coordinations have been applied */
    uint64_t list_age_ms; /* since the last of them */
    const struct coord_seen_group *groups;
    size_t group_count;
    const struct coord_seen_deployment *deployments;
    size_t deployment_count;
};

/* ---- what is to be done ---- */

enum coord_action_type {
    COORD_HOLD,           /* sw_hold_send with verb, owners, marks and fence */
    COORD_STATUS,         /* the status of a coordination becomes `status` */
    COORD_GET_DEPLOYMENT, /* a consistent read */
    COORD_GET_COORDINATION,
};

struct coord_status {
    bool has_conditions_only; /* all else, observedGeneration above all, stays as the reference left
                                 it */
    const char *const *active;
    uint32_t active_count;
    const char *const *deployments;
    uint32_t deployment_count;
    const struct coord_entry *entries;
    uint32_t entry_count;
    int32_t selected;
    int32_t pending;
    bool is_truncated;
    int64_t turn;
    int64_t observed_generation;
    const struct sw_condition *conditions;
    uint32_t condition_count;
};

/* Something to be said of an object: a coordination, or a Deployment. */
struct coord_remark {
    bool is_of_coordination;
    const char *name; /* of the object */
    enum sw_record_type type;
    const char *reason;
    const char *message;
    char rollout[SW_ROLLOUT_SIZE]; /* that it is about; "": none */
    struct coord_remark *next;
};

struct coord_action {
    enum coord_action_type type;
    uint64_t number; /* unique in the memory's life */
    const char *name;
    const char *resource_version;  /* the precondition */
    char rollout[SW_ROLLOUT_SIZE]; /* of the Deployment that it goes to; COORD_STATUS: "" */
    /* COORD_HOLD */
    enum sw_hold_verb verb;
    const char *owners;
    const char *marks; /* owners too; NULL: left as they are */
    const char *fence;
    bool is_chain; /* a step of a hand-over, not housekeeping */
    /* COORD_STATUS */
    const struct coord_status *status;
    bool is_record; /* step (b) of a hand-over */
    /* What the answer will mean; only coord_answered reads these. */
    struct coord_remark *remarks; /* to be said when it has succeeded */
    const char *failure;          /* reason of the Warning when it has failed; NULL: none */
    const char *const *groups;    /* coordinations on which the Warning is said */
    uint32_t group_count;
    const char *const *begun; /* COORD_STATUS: those whose rollout begins with this record */
    const char *const *begun_rollouts;
    uint32_t begun_count;
    int64_t wall_us;
    bool was_complete; /* COORD_HOLD: as decided on */
    bool had_right;
    int64_t waited_us;   /* of a release: since it began to wait; 0: unknown */
    bool is_handover;    /* of a release: another one's turn has just ended */
    uint64_t handing_ms; /* so long ago */
    struct coord_action *next;
};

struct coord_result {
    struct coord_action *actions;
    struct coord_remark *remarks; /* to be said now */
    uint64_t look_again_ms;       /* after so long; UINT64_MAX: only when something changes */
    bool wants_relist;            /* of the coordinations, by a consistent read, now */
    uint32_t selected, pending, active, groups; /* of the namespace, for metrics */
};

/* ---- what the leader remembers ---- */

/* Of one namespace; from the moment it leads. A new leader begins with a new one. */
struct coord_memory;

SW_NONNULL struct coord_memory *coord_memory_new(void);
struct coord_memory *coord_memory_free(struct coord_memory *memory);
/* Nothing in it that a new one would not have: it may be freed. */
bool coord_memory_is_idle(const struct coord_memory *memory);

/* What is in *ret_result lives as long as the arena; but what only matters while it is being sent
 * (marks, fence, the entries and conditions of a status) is borrowed from snapshot and memory. */
void coord_plan(struct coord_memory *memory, const struct coord_snapshot *snapshot,
                struct sw_arena *arena, struct coord_result *ret_result);

/* A copy in another arena of what coord_answered reads of it: so that the run's own arena need not
 * wait for the answer. */
SW_NONNULL struct coord_action *coord_action_keep(const struct coord_action *action,
                                                  struct sw_arena *arena);

struct coord_answer {
    enum sw_outcome outcome;
    const char *reason;
    const char *message;
    /* Of the object in the answer, as this very request made it: a newer one that the store has by
     * now is somebody else's. "" without an object. */
    const char *resource_version;
};

/* What the answer to an action (or what was kept of it) means. To be called before the next
 * coord_plan; afterwards the namespace is to be looked at again. Returns what is to be said, in the
 * arena, or NULL. */
struct coord_remark *coord_answered(struct coord_memory *memory, const struct coord_action *action,
                                    const struct coord_answer *answer, struct sw_arena *arena);

/* The coordination was seen deleted by the watch (not merely missing in a list). */
void coord_saw_deleted(struct coord_memory *memory, const char *name);

/* ---- the status as JSON ---- */

/* The merge patch {"status": ...}: what is absent from status but stored is deleted. */
SW_NONNULL struct sw_json *coord_status_patch(struct sw_arena *arena,
                                              const struct coord_status *status,
                                              const struct coordination *stored);

#endif
