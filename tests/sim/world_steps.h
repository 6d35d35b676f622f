/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stepped half of the world: workloads of the three kinds with SteppedRollouts, servers outside
 * the cluster that they ask, people who are at them, and what must not be seen. A case has it if
 * case_.is_stepped; the Deployments are those of world.h, and everything that holds for them holds
 * on.
 *
 *   world_steps.c          workloads and SteppedRollouts, and what people do with them
 *   world_provider.c       the metrics provider and the webhooks, behind the seam net/fetcher.h
 *   world_steps_judge.c    how far each may be, by what the servers have answered
 *   world_steps_end.c      how it must end, and what may be left of us
 *   world_overshoot.c      a figure: how many Pods too many there are when the hold stands
 *
 * A target is numbered through all kinds: Deployments, then StatefulSets, then DaemonSets. Its
 * SteppedRollout has the same number; a second one on the same target, which must wait for the
 * first to go, has no checks at all: were it obeyed, the judge would see it.
 */
#ifndef TESTS_SIM_WORLD_STEPS_H
#define TESTS_SIM_WORLD_STEPS_H

#include "world.h"

#define TARGETS_MAX 6
#define RUNS_MAX 6

enum target_kind {
    TARGET_DEPLOYMENT,
    TARGET_STATEFUL_SET,
    TARGET_DAEMON_SET,
};

/* What is asked outside, for each SteppedRollout. */
enum question {
    ASK_METRIC_0,
    ASK_METRIC_1,
    ASK_ROLLOUT, /* webhooks, by type, from here on */
    ASK_CONFIRM_ROLLOUT,
    ASK_PRE_ROLLOUT,
    ASK_CONFIRM_STEP,
    ASK_CONFIRM_PROMOTION,
    ASK_ROLLBACK,
    ASK_POST_ROLLOUT,
    ASK_EVENT,
    QUESTIONS,
};

extern const char *const question_names[QUESTIONS]; /* as in the URL */

/* How the servers answer about one SteppedRollout. */
enum mood {
    MOOD_GOOD,
    MOOD_BAD,     /* out of range, 403 */
    MOOD_MIXED,   /* anything, mostly good */
    MOOD_WORDS,   /* what is no answer: NaN, an empty vector, HTML, 2 MiB, half of one */
    MOOD_SILENT,  /* nothing comes */
    MOOD_REFUSED, /* nobody is there */
    MOODS,
};

/* One template of a target, as the judge has seen it. */
struct run {
    char hash[33]; /* "": unused */
    uint64_t used; /* the last time, in steps of the world */
    int step;      /* that it may be let go on to, from 1; 0: before the first */
    bool is_reached;
    bool is_whole;   /* promoted by hand */
    bool is_excused; /* nothing is said of it */
    bool is_failed;  /* and must not become more */
    bool is_seen;
    uint64_t failed_ms;
    int64_t base;              /* so many were there already when nobody could help it */
    uint64_t goods[QUESTIONS]; /* answers since the step was reached, or since it began */
};

struct target {
    enum target_kind kind;
    char name[16];
    /* As its people made it: what must stand there when nobody holds it. */
    json_t *strategy; /* NULL: not yet */
    int64_t min_ready_seconds, deadline_seconds;
    int templates;
    uint64_t excused_until_ms; /* what comes until then went past us */
    uint64_t mended_ms;
    int mends;
    uint64_t scaled_ms, stirred_ms; /* its size, its Pods were changed by others */
    int64_t replicas;
    char hash[33];
    char stepped_uid[64]; /* of the SteppedRollout that counts; "" */
    bool is_granted;      /* its annotation promote was seen */
    struct run runs[RUNS_MAX];
    enum mood mood;
    bool is_gate_open; /* confirm webhooks agree */
};

struct steps {
    struct world *world;
    struct target targets[TARGETS_MAX];
    int count;
    const struct sw_sim_kind *kinds[3], *stepped, *pods, *revisions;
    struct sw_intern *intern;
    struct sw_decoder *decoders[3];
    uint64_t ill_ms;               /* when somebody of us was last not well */
    uint64_t frozen[REPLICAS_MAX]; /* watches that fell silent, as counted */
    uint64_t answers, goods, releases, uses, overshoot_most;
    bool is_quiet; /* the servers answer well: the end */
};

/* ---- world_steps.c ---- */

void steps_begin(struct world *world); /* the cluster is made; no replica yet */
void steps_done(struct world *world);
/* Size and strategy of a manifest, as its people want them. */
void steps_shape(struct world *world, int t, json_t *manifest, uint32_t b);
int steps_some_replicas(uint32_t b);
void steps_users_begin(struct world *world);
void steps_users_act(struct world *world, uint32_t a, uint32_t b);
/* They put right what cannot come to an end, and the servers answer well. */
void steps_users_stop(struct world *world);
void steps_users_mend(struct world *world);
void steps_delete_all(struct world *world);
/* NULL: there is none. */
const json_t *steps_target(const struct world *world, int t);
/* The one that counts: the oldest; NULL. */
const json_t *steps_stepped(const struct world *world, int t);
int steps_target_named(const struct world *world, const char *name);
int64_t steps_replicas(const struct target *target, const json_t *object);
int64_t steps_updated(const struct target *target, const json_t *object);
bool steps_is_observed(const json_t *object);

/* ---- world_provider.c ---- */

struct sw_fetcher *provider_new(struct replica *replica);
struct sw_fetcher *provider_free(struct sw_fetcher *fetcher); /* takes NULL */

/* ---- world_steps_judge.c ---- */

void steps_see(struct world *world, const struct sw_sim_change *change);
/* At each turn of the world. */
void steps_look(struct world *world);
/* An answer was given to a living replica. */
void steps_answered(struct world *world, int t, enum question question, bool is_good);
/* A replica deletes a Pod. */
void steps_see_delete(struct world *world, const char *path);
/* What is done to it now goes past us. */
void steps_excuse(struct world *world, int t);
/* Does the replica know what a review of the target hangs on, as it is stored now? */
bool steps_knows(const struct world *world, const struct replica *replica, int t);

/* ---- world_steps_end.c ---- */

/* Before people put anything right: each is at an end, or says what it waits for. */
void steps_settle(struct world *world);
bool steps_rest(struct world *world, char *why, size_t size);
/* All SteppedRollouts go: nothing of ours may be left. */
void steps_leave(struct world *world);

/* ---- world_overshoot.c ---- */

#define OVERSHOOTS 3

struct overshoot {
    uint64_t rollouts, holds, sum, most; /* Pods beyond the stop */
};

extern const char *const overshoot_surges[OVERSHOOTS];
/* A rollout with each of the surges, in a case of its own; world_done is still due. */
void world_overshoot(struct world *world, uint64_t seed, bool is_loud, struct overshoot *found);

#endif
