/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole of slipway in virtual time: a simulated cluster (tools/sim), replicas of slipway as
 * they ship (the core with all built-in modules), a network with faults between them, and people,
 * appliers and autoscalers that interfere. Everything comes from one seed.
 *
 *   world.c            the cluster, the clocks, and what happens next
 *   world_replica.c    processes: started, killed, stopped in order, suspended
 *   world_admission.c  how the API server reaches the webhook of a replica
 *   world_users.c      what people, GitOps and autoscalers do
 *   world_trouble.c    what befalls processes and network; traps that wait for a certain request
 *   world_plots.c      what befalls a hand-over while one of its requests is under way
 *   world_judge.c      what must never be seen in the store
 *   world_rights.c     and who must not be given the right to roll
 *   world_outage.c     five minutes without an API server
 *   world_steps.h      workloads with SteppedRollouts, in some of the cases: four files more
 *   world_end.c        how everything must end when users stop and faults are off
 *   world_bugs.c       deliberate bugs: the test of the test
 *   sim_world.c        options, cases, shrinking
 *
 * Time: world->now_ms is the time of the world. The server's loop keeps it; each replica's loop has
 * a rate of its own. A step is a turn of any of the loops.
 */
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slipway/attr.h>

#include "base/log.h"
#include "base/loop.h"
#include "base/random.h"
#include "direct.h"
#include "store.h"

#define NAMESPACE "n"
#define OUR_NAME "system:serviceaccount:slipway:slipway"
#define DEPLOYMENTS_MAX 6
#define GROUPS_MAX 3
#define REPLICAS_MAX 3
#define CACHES_MAX 2
#define EVENTS_MAX 160
#define NODES 3

struct sw_core;
struct sw_metrics;
struct sw_sim_api;
struct sw_sim_cache;
struct sw_sim_kind;
struct sw_sim_pods;
struct sw_sim_workloads;

/* ---- a case ---- */

enum event_kind {
    EVENT_USER,    /* world_users.c */
    EVENT_TROUBLE, /* world_trouble.c */
    EVENT_TRAP,    /* the same, but when a certain request arrives */
    EVENT_NETWORK, /* other faults from now on */
    EVENT_PLOT,    /* world_plots.c */
    EVENT_KINDS,
};

struct event {
    uint64_t at_ms; /* from the beginning */
    enum event_kind kind;
    uint32_t a, b;
};

/* Bits of case_.faults: what may befall anybody. */
enum {
    FAULT_LOSS = 1,      /* requests and answers are lost */
    FAULT_ERRORS = 2,    /* the API server answers with errors */
    FAULT_STREAMS = 4,   /* watches break or are silent */
    FAULT_SLOW = 8,      /* much delay */
    FAULT_LATE = 16,     /* late packets */
    FAULT_SKEW = 32,     /* clocks run at different rates */
    FAULT_NO_LEASE = 64, /* every replica believes to lead */
    FAULT_IGNORE = 128,  /* failurePolicy Ignore */
    FAULT_KILL = 256,    /* replicas are killed, suspended, cut off */
    FAULT_BEHIND = 512,  /* some of the API servers serve the past */
    FAULT_ALL = 1023,
};

enum bug {
    NO_BUG,
    BUG_RELEASE_WITHOUT_PRECONDITION, /* resourceVersion is taken out of patches of Deployments */
    BUG_CONFLICT_HIDDEN,              /* 409 is told as success */
    BUG_TAKE_BACK_AFTER_RECORD,       /* a take back is answered at once, and done later */
    BUG_HOLD_NOT_WRITTEN,             /* patches that hold are answered, not done */
    BUG_FREE_NOT_WRITTEN,             /* and those that free or release */
    BUG_MARKS_NOT_WRITTEN,            /* patches lose coordinated-by */
    BUG_STATUS_NOT_WRITTEN,           /* status writes are answered, not done */
    BUG_REVIEW_SKIPPED,               /* the webhook is not asked: allowed */
    BUG_REVIEW_PATCH_DROPPED,         /* what the webhook patches is not applied */
    BUG_ANYBODY_IS_US,                /* every review says that slipway asks */
    BUG_DELETION_HIDDEN,              /* watches and lists do not tell of deletions */
    BUG_EVENTS_DROPPED,               /* watches leave changes out */
    BUG_RELEASED_UNASKED,             /* somebody resumes as slipway, without a turn */
    BUG_RECORD_WITHOUT_PRECONDITION,  /* resourceVersion is taken out of status writes */
    BUG_FENCE_NOT_WRITTEN,            /* patches of a fence alone are answered, not done */
    BUG_TURN_NOT_WRITTEN,             /* status writes lose the turn */
    BUG_OWN_WRITE_STALE,              /* answers to own writes hold what was there before */
    BUG_RESIDUAL_AT_ONCE,             /* with one that nobody selects all such are released */
    BUG_STEP_HOLD_LEFT_OUT,           /* holds of stepping are answered, not done */
    BUG_STEP_STATUS_LATE,             /* what a release is for is written down after it */
    BUG_STEP_CHECKS_SKIPPED,          /* who takes over takes every check for passed, unasked */
    BUG_STEP_FINALIZER_LEFT,          /* the finalizer is not taken away */
    BUG_STEP_SAVED_NOT_PUT_BACK,      /* saved goes, what it says is not put back */
    BUGS,
};

extern const char *const bug_names[BUGS];

struct case_ {
    uint64_t seed;
    int deployments, groups, replicas;
    unsigned faults;
    enum bug bug;
    bool is_tight; /* requests overtake each other, watches lag: make_tight */
    /* With the module stepping and SteppedRollouts: world_steps.h. */
    bool is_stepped;
    bool is_alone;  /* no coordination beside them */
    bool is_prompt; /* no review is slow */
    int stateful_sets, daemon_sets;
    uint64_t duration_ms; /* until users stop */
    struct event events[EVENTS_MAX];
    size_t count;
};

/* ---- replicas ---- */

struct world;

struct replica {
    struct world *world;
    int index;
    struct sw_loop *loop;
    struct sw_sim_wire *wire; /* outlives the processes */
    struct sw_transport *transport;
    struct sw_metrics *metrics;
    struct sw_log_sink *sink;
    struct sw_log log;
    struct sw_core *core; /* NULL: dead */
    unsigned lives;
    uint64_t born_ms;       /* of the world, and */
    uint64_t born_local_ms; /* of the loop */
    int64_t rate_ppm;       /* of its clock, against the world's */
    uint64_t name_known_ms; /* 0: told already */
    uint64_t asleep_until_ms;
    uint64_t dead_until_ms;
    uint64_t cut_until_ms;    /* no connections to the API server */
    uint64_t deaf_until_ms;   /* not reached by reviews */
    uint64_t frozen_until_ms; /* watches are silent */
    bool is_stopping;
    unsigned fault_scale;       /* of the network, now; 0: a good hour */
    struct sw_fetcher *fetcher; /* servers outside; NULL: none is asked */
};

/* ---- the judge ---- */

struct member {
    char *uid;
    bool is_rolling;
    bool is_excused;
    int64_t excused_generation;
    bool is_forged;         /* released-by was written by somebody else */
    uint64_t unselected_ms; /* since when no coordination selects it; 0: one does */
};

struct group {
    int max_checked; /* what maxActive was before it was lowered, until no more are left */
    uint64_t excess_since_ms;
    int last_max; /* maxActive, also when it is gone */
};

struct steps;
struct sw_fetcher;
struct owner; /* what ReplicaSets tell of one Deployment */

struct judge {
    struct sw_sim_store_watcher watcher;
    struct member members[DEPLOYMENTS_MAX];
    struct group groups[GROUPS_MAX];
    struct owner *owners;
    uint64_t hash;    /* of all writes */
    uint64_t changes; /* of all kinds but Leases */
    uint64_t releases, records, rollouts;
};

struct trap {
    int what;       /* which request; -1: none */
    unsigned count; /* the so manyth */
    uint32_t action, b;
};

#define TRAPS_MAX 8

struct plot {
    int what; /* world_plots.c; 0: none */
    int stage;
    int member, group, replica;
    uint32_t b;
    uint64_t due_ms; /* 0: waits for a request */
    uint64_t until_ms;
};

struct world {
    struct case_ case_;
    struct sw_rng rng;
    uint64_t now_ms;
    struct sw_loop *loop; /* the server's */
    struct sw_sim_store *store;
    struct sw_sim_api *api;
    struct sw_sim_cache *caches[CACHES_MAX]; /* of the other API servers */
    struct sw_sim_workloads *workloads;
    struct sw_sim_pods *pods;
    const struct sw_sim_kind *deployments, *replicasets, *coordinations, *leases, *events;
    struct replica replicas[REPLICAS_MAX];
    struct sw_sim_wire_liar liars[REPLICAS_MAX];
    struct judge judge;
    struct trap traps[TRAPS_MAX];
    struct sprung {
        int replica;
        uint32_t action, b;
    } sprung[TRAPS_MAX];
    size_t sprung_count;
    struct plot plot;
    size_t next_event;
    uint64_t started_ms;
    uint64_t webhook_down_until_ms, controllers_down_until_ms;
    struct hpa {
        uint64_t until_ms, next_ms;
        uint32_t state;
    } hpas[DEPLOYMENTS_MAX];
    struct gitops {
        uint64_t until_ms, next_ms;
        uint64_t every_ms;
        int template_;
    } gitops[DEPLOYMENTS_MAX];
    struct drain { /* of all Nodes, one after the other */
        int node;  /* that is drained; 0: none */
        uint64_t next_ms, every_ms;
    } drain;
    bool users_pause[DEPLOYMENTS_MAX];
    int templates;    /* given out so far */
    unsigned reviews; /* under way */
    uint64_t writes_by_us;
    uint64_t looked_ms, looked_writes;
    bool is_ending;
    bool is_loud;
    void *bug_state;
    struct steps *stepping; /* NULL: the case has no such thing */
    uint64_t steps;
    char failure[1024]; /* the first thing that must not be; "" */
    uint64_t failed_step;
};

void world_begin(struct world *world, const struct case_ *case_, bool is_loud);
/* One turn of what is next, not beyond that time of the world; false: nothing before it, and the
 * clocks stand there. */
bool world_turn(struct world *world, uint64_t until_ms);
/* The whole case: events, and the end. Stops at the first failure. */
void world_run(struct world *world);
void world_done(struct world *world);

SW_PRINTF(2, 3) void world_fail(struct world *world, const char *format, ...);
SW_PRINTF(2, 3) void world_say(const struct world *world, const char *format, ...);
uint64_t world_random(struct world *world, uint64_t from, uint64_t to);

/* ---- replicas ---- */

void replica_init(struct replica *replica, struct world *world, int index);
void replica_start(struct replica *replica);
/* SIGKILL: nothing is finished. */
void replica_kill(struct replica *replica, uint64_t until_ms);
/* SIGTERM. */
void replica_stop(struct replica *replica);
void replica_done(struct replica *replica);
bool replica_is_awake(const struct replica *replica);
/* Its clock, when the world's is that. */
uint64_t replica_local_ms(const struct replica *replica, uint64_t now_ms);
/* When it has something to do, in time of the world. UINT64_MAX: never. */
uint64_t replica_next_ms(const struct replica *replica);
/* Runs what is due. */
void replica_turn(struct replica *replica);
/* What is due by the world's time: waking up, coming to life. */
void replica_look(struct replica *replica);
bool replica_is_leading(const struct replica *replica);
/* The faults of the network as the case has them. is_on false: a perfect one. */
void replica_set_faults(struct replica *replica, bool is_on);

/* ---- admission ---- */

struct sw_sim_admission_caller;
struct sw_sim_admission_caller admission_caller(struct world *world);

/* ---- users ---- */

/* Bit of a, in a stepped case: something about steps. */
#define STEPPED_ACT UINT32_C(0x80000000)
void users_begin(struct world *world);
void users_act(struct world *world, uint32_t a, uint32_t b);
/* Autoscalers and appliers. */
uint64_t users_next_ms(const struct world *world);
void users_look(struct world *world);
/* They resume what they have paused, and put right what cannot work. */
void users_stop(struct world *world);
/* Sends the body (taken; NULL: none) as that user; nobody waits for the answer. */
void user_sends(struct world *world, const char *user, const char *method, const char *path,
                const char *content_type, json_t *body_take);

/* Another template; kubectl rollout undo, to what runs. */
void user_sets_template(struct world *world, int index);
void user_undoes_template(struct world *world, int index);
/* It goes before all others from now on. */
void user_hurries(struct world *world, int index);
/* A freeze, or its end. */
void user_suspends(struct world *world, int g, bool is_suspended);
void user_deletes_group(struct world *world, int g);
void user_creates_group(struct world *world, int g, uint32_t b);

/* ---- plots ---- */

void plot_set(struct world *world, uint32_t a, uint32_t b);
/* A request arrives: how many ms it is to take longer. */
uint64_t plot_look(struct world *world, struct replica *replica,
                   const struct sw_sim_wire_request *request);
/* When something is due by itself. UINT64_MAX: never. */
uint64_t plot_next_ms(const struct world *world);
void plot_go_on(struct world *world);

/* ---- trouble ---- */

void trouble_act(struct world *world, uint32_t a, uint32_t b);
void trap_set(struct world *world, uint32_t a, uint32_t b);
void network_change(struct world *world, uint32_t a, uint32_t b);
/* A request has arrived: traps may go off. */
void trap_look(struct world *world, struct replica *replica,
               const struct sw_sim_wire_request *request);
/* What the traps that went off have in store; not from within a turn. */
void trap_spring(struct world *world);

/* ---- judge ---- */

void judge_begin(struct world *world);
void judge_done(struct world *world);
int deployment_index(const char *name); /* -1: none of ours */
int group_index(const char *name);
const char *deployment_name(int index);
const char *group_name(int index);
/* NULL where it does not exist. */
const json_t *world_deployment(const struct world *world, int index);
const json_t *world_group(const struct world *world, int index);
const char *annotation_of(const json_t *object, const char *key); /* "" */
bool list_has(const char *list, const char *entry);               /* comma-separated */
bool judge_selects(const json_t *coordination, const json_t *deployment);
bool judge_is_complete(const json_t *deployment);
bool judge_is_observed(const json_t *deployment);
const char *condition_of(const json_t *object, const char *type, const char *member); /* "" */
/* What was done to it went past the webhook, or past one that could not know: what follows is the
 * exception that section 8 names. */
void judge_excuse(struct world *world, int index);
void judge_look(struct world *world); /* what lasts too long */
bool judge_is_gone(const json_t *deployment);
bool judge_bears_right(const json_t *deployment);
int judge_max_of(const json_t *coordination);
/* maxActive, or what it was while those who began then are not done. */
int judge_most_allowed(struct world *world, int g);

/* world_rights.c: before is NULL for a new one. */
void judge_see_right(struct world *world, int index, const json_t *before, const json_t *d);
/* Who selects it may be another now. */
void judge_look_at_selection(struct world *world, int index);

/* ---- the end ---- */

void world_end(struct world *world);

/* ---- the outage ---- */

/* Begins and runs a case of its own; world_done is still due. */
void world_outage(struct world *world, bool is_loud);

/* ---- bugs ---- */

void bugs_done(struct world *world);
/* The bug's part in a request that arrives, and in an answer; as in sw_sim_wire_liar. */
bool bugs_on_request(struct world *world, struct replica *replica,
                     struct sw_sim_wire_request *request, int *ret_status, char **ret_body);
void bugs_on_answer(struct world *world, struct replica *replica,
                    const struct sw_sim_wire_request *request, int *status, char **body,
                    size_t *len);

/* ---- manifests ---- */

/* The document of that kind in a YAML file below manifests/, as JSON; new. Fails the program if
 * there is none. */
json_t *manifest_read(const char *name, const char *kind);

#endif
