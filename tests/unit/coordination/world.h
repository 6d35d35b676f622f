/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A slow, obvious model of everything around the plan: an API server with versions and
 * preconditions, the Deployment controller, kubelets, replicas of the webhook, users, and leaders
 * that each believe to lead, with stores as old as they like and requests under way for any time.
 * What ships is called as it is: coord_plan, coord_answered, coord_opinion, hold_apply and
 * hold_review; nothing of them is imitated here.
 *
 *   world_server.c    objects, versions, the writes that reach the store, admission
 *   world_cluster.c   the Deployment controller and the kubelets
 *   world_users.c     what people, GitOps and autoscalers do
 *   world_leaders.c   leaders: store, plan, requests, answers
 *   world_stepping.c  another policy that has a say in the same Deployments
 *   world_check.c     what must never be seen from the cluster's side, and how all must end
 *   world.c           a case: events from a seed, and the end when users stop
 */
#ifndef TESTS_COORDINATION_WORLD_H
#define TESTS_COORDINATION_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "hold.h"
#include "opinion.h"
#include "plan.h"

#define DEPLOYMENTS_MAX 6
#define GROUPS_MAX 3
#define LEADERS_MAX 3
#define WEBHOOKS 2
#define TEMPLATES 6
#define REQUESTS_MAX 256
#define NAMESPACE "n"

/* ---- objects ---- */

/* One stored version of an object; versions of one name are chained. */
struct version {
    struct version *next;
    uint64_t number;
    bool exists;
    struct sw_deployment d;
    struct coordination c;
    const struct sw_selector *selector;
    int template_;
    bool needs_rollout; /* truths at that moment, unknown to anybody but the checks */
    bool has_begun;
};

/* What the other policy keeps of one: its resource, and where it stands. Templates; -1: none. */
struct stepper {
    bool exists;
    bool asks; /* a new template is out of line until somebody has answered */
    uint64_t uid;
    int promoted, applied, failed;
    int stop; /* of `applied`: so many updated Pods are allowed */
};

struct deployment {
    int index;
    const char *name;
    const char *full;
    bool exists;
    struct version *now;
    uint64_t uid;
    int64_t created_us;
    int64_t generation;
    /* spec */
    int template_;
    int replicas;
    bool is_paused;
    bool is_recreate;
    bool is_surging; /* maxSurge 1, maxUnavailable 0; else the other way round */
    int deadline_s;
    unsigned labels; /* bit g: the label that group g selects by */
    /* annotations; "" where absent */
    const char *held_by, *released_by, *coordinated_by, *fence, *hold, *ignore, *skip, *order;
    const char *stepped_by;
    struct stepper stepper;
    int revision;
    /* status */
    int64_t observed_generation;
    int s_replicas, s_updated, s_available;
    const char *progressing_status, *progressing_reason; /* NULL: no condition */
    int64_t progressing_us;
    bool is_available;
    /* what the controller saw last, and what it made */
    bool c_exists, c_paused;
    struct version *c_version;
    int c_template, c_replicas;
    bool has_set[TEMPLATES]; /* a ReplicaSet of that template */
    int pods[TEMPLATES], ready[TEMPLATES];
    int newest; /* template of the newest ReplicaSet; -1 */
    int terminating;
    bool is_mid;       /* a rollout has begun and is not complete */
    bool was_complete; /* status of the last sync */
    /* truths for the checks */
    bool is_users_pause;
    bool is_references; /* paused by the reference, and nobody has touched it or the groups since */
    bool is_forged;     /* released-by was written by somebody else */
    bool has_passed;  /* and past the webhook; until we have written it, its changes are excused */
    bool has_begun;   /* recorded as active, and not complete since */
    bool has_slipped; /* excused: changed past the webhook, or selected while it ran */
};

struct group_object {
    int index;
    const char *name;
    bool exists;
    struct version *now;
    uint64_t uid;
    int64_t generation;
    /* spec */
    unsigned selects; /* labels, any of which is enough; 0: everything; */
    bool is_invalid;
    int max_active, min_ready_s;
    int max_checked; /* what it was before it was lowered, until no more than now are left */
    bool is_suspended, is_running, skips_failed, has_guard, skips_guard;
    struct coordination status; /* only the status part */
};

/* ---- leaders ---- */

struct leader {
    bool is_alive;
    int index;
    struct version *deployments[DEPLOYMENTS_MAX];
    struct version *groups[GROUPS_MAX];
    struct coord_memory *memory;
    uint64_t lists, listed_ms;
    int64_t term;
    uint64_t wake_ms;
    bool wants_relist;
    bool is_dirty;
    uint32_t idle_runs; /* runs in a row that changed nothing */
};

enum request_state {
    FREE_SLOT,
    UNDER_WAY,
    ANSWERED,
};

struct batch {
    struct sw_arena *arena;
    uint32_t open;
};

struct request {
    enum request_state state;
    int leader; /* -1: nobody waits for the answer any more */
    struct batch *batch;
    const struct coord_action *action;
    struct coordination *status; /* the body of a status write, as sent */
    const char *marks, *fence;   /* of a hold, as sent */
    struct sw_opinion others;    /* what the hand heard when it was asked */
    enum sw_outcome outcome;
    const char *reason, *message; /* of a refusal; NULL */
    struct version *version;      /* in the answer */
};

/* ---- mutations of the protocol: the test of the test ---- */

enum mutation {
    NO_MUTATION,
    RELEASE_WITHOUT_PRECONDITION,
    RECORD_WITHOUT_PRECONDITION,
    TAKE_BACK_AFTER_RECORD, /* answered at once, done later */
    OWN_WRITE_STALE,        /* what an answer holds is not put into the store */
    FENCE_LEFT_OUT,         /* answered, not done */
    GONE_BY_CACHE,          /* a read answers what the store has */
    WEBHOOK_BY_CACHED_STATUS,
    WEBHOOK_WITHOUT_STRIP,
    WEBHOOK_ABSENT_MARKS, /* who is coordinated is what the cache says */
    ANYBODY_IS_US,
    PAUSE_TAKEN_AS_OBSERVED,
    OTHER_POLICY_UNASKED, /* it releases without a look at what coordination says */
    MUTATIONS,
};

extern const char *const mutation_names[MUTATIONS];

/* ---- the world ---- */

struct config {
    int deployments, groups, leaders;
    bool is_ignored;      /* the webhook may be unreached, failurePolicy Ignore */
    bool has_two_leaders; /* that both believe to lead */
    bool is_blind;        /* a replica of the webhook has never seen a coordination */
    bool is_behind;       /* the second leader knows nothing of the templates that wait */
    bool is_reborn;       /* the recorded one has ended, and another of its name begun */
    bool is_taken_over;   /* the reference was there before us */
    bool is_refusing;     /* some writes are answered with 403 or 500 */
    bool is_small;        /* a status that lists more than the active ones is too large */
    bool is_stepped;      /* another policy holds and releases some of them as well */
    bool is_narrow;       /* everybody waits, and the step of an event is as small as can be */
    enum mutation mutation;
};

struct event {
    uint8_t kind;
    uint32_t a, b;
};

struct world {
    struct config config;
    struct sw_arena *arena;
    uint64_t now_ms;
    uint64_t versions, uids;
    int64_t terms;
    struct deployment deployments[DEPLOYMENTS_MAX];
    struct group_object groups[GROUPS_MAX];
    bool is_bad[TEMPLATES]; /* templates whose Pods never become ready */
    struct leader leaders[LEADERS_MAX];
    struct request requests[REQUESTS_MAX];
    uint32_t request_count;
    struct version *webhooks[WEBHOOKS][GROUPS_MAX];
    bool rests_running;
    /* counts for the checks */
    uint64_t writes, records, releases, runs;
    bool is_ending;
    bool is_loud;
    const char *failure; /* the first thing that must not be; NULL */
    char failure_text[512];
};

void world_begin(struct world *world, const struct config *config, uint64_t seed);
void world_event(struct world *world, const struct event *event);
/* Users stop; everything must come to rest as it should. */
void world_end(struct world *world);
void world_done(struct world *world);
void world_fail(struct world *world, const char *format, ...) SW_PRINTF(2, 3);
void world_say(const struct world *world, const char *format, ...) SW_PRINTF(2, 3);
int64_t world_wall_us(const struct world *world);

/* server */
void world_store_deployment(struct world *world, struct deployment *d, bool is_spec_changed);
void world_store_group(struct world *world, struct group_object *g);
/* Somebody has changed a coordination: what the reference had paused is anybody's pause now. */
void world_forget_reference(struct world *world);
void world_delete_deployment(struct world *world, struct deployment *d);
bool world_selects(const struct world *world, const struct group_object *g,
                   const struct deployment *d);
void world_keep_status(struct world *world, const struct coord_status *from,
                       struct coordination *to);
void world_apply_request(struct world *world, struct request *request);
/* Module pausing, on the leader: brings slipway.dev/hold and the hold of "user" together. */
bool world_carry_wish(struct world *world, struct deployment *d);
/* What coordination says of it, by what is stored now. */
struct sw_opinion world_coordination_of(struct world *world, const struct sw_object *object,
                                        const struct sw_object *old);
void world_store_state(struct world *world, struct deployment *d, const struct hold_state *to);
struct submission {
    int template_;
    bool is_paused;
    unsigned labels;
    const char *held_by, *released_by, *coordinated_by, *fence, *hold, *ignore, *skip, *order;
    const char *stepped_by;
};
struct submission world_submission(const struct deployment *d);
/* CREATE or UPDATE by somebody else, through a replica of the webhook or past all of them. */
void world_submit(struct world *world, struct deployment *d, struct submission what, int webhook,
                  bool is_reached);

/* cluster; true if something changed */
void world_settle(struct world *world, struct deployment *d);
bool world_controller_sees(struct world *world, struct deployment *d);
bool world_controller_syncs(struct world *world, struct deployment *d, bool writes_status);
bool world_kubelet(struct world *world, struct deployment *d, bool crashes);
bool world_needs_rollout(const struct deployment *d);

/* stepping */
/* What everybody but coordination says of an object, as stored or as submitted. */
struct sw_opinion world_others(struct world *world, const struct deployment *d,
                               const struct sw_object *object);
struct sw_opinion world_all(struct world *world, const struct deployment *d,
                            const struct sw_object *object, const struct sw_opinion *coordination);
/* One step of what it has to do; true if something changed. */
bool world_stepper_acts(struct world *world, struct deployment *d, uint32_t b);
void world_stepper_changes(struct world *world, struct deployment *d, uint32_t b);

/* users */
void world_user(struct world *world, uint32_t a, uint32_t b);
void world_users_stop(struct world *world);

/* leaders */
void world_leader_start(struct world *world, struct leader *leader);
void world_leader_crash(struct world *world, struct leader *leader);
/* Moves its view of one object on, by one version or to the latest. */
bool world_leader_sees(struct world *world, struct leader *leader, uint32_t which, bool is_latest);
bool world_leader_relists(struct world *world, struct leader *leader);
void world_leader_runs(struct world *world, struct leader *leader);
bool world_deliver(struct world *world, struct request *request);
void world_lose(struct world *world, struct request *request);
bool world_webhook_sees(struct world *world, int webhook, uint32_t group);

/* checks */
void world_check_rolling(struct world *world, const struct deployment *d);
void world_check_release(struct world *world, const struct deployment *d);
void world_check_end(struct world *world);
void world_excuse_running(struct world *world, const struct group_object *g);

#endif
