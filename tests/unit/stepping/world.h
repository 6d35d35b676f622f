/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small model of the world that the plan lives in: one target with its controller and kubelets,
 * one SteppedRollout, people, a second arbiter, and slipways that see old versions, lose answers
 * and die. Time goes in ticks; everything is decided by one seed.
 *
 *     world.c              versions of the two objects, what is submitted, the run of a tick
 *     world_controllers.c  Deployment, StatefulSet, DaemonSet, kubelets
 *     world_leader.c       a slipway: what it sees, what its requests do
 *     world_check.c        what must hold
 */
#ifndef TESTS_STEPPING_WORLD_H
#define TESTS_STEPPING_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slipway/apps.h>
#include <slipway/arena.h>
#include <slipway/workloads.h>

#include "plan.h"

#define TICK_MS 100
#define TEMPLATES 5
#define PODS_MAX 64
#define REQUESTS_MAX 8
#define PARTITION_MAX 2147483647

struct config {
    enum step_target_kind kind;
    int32_t replicas, surge, unavailable;
    enum step_on_failure on_failure;
    int32_t iterations, threshold;
    bool has_dead_man, skips_analysis;
    bool has_gates;           /* confirm webhooks that say no for a while */
    bool is_calm;             /* nobody scales, dies or meddles: every bound holds */
    bool is_bad[TEMPLATES];   /* Pods of it never become ready */
    bool is_wrong[TEMPLATES]; /* its checks fail */
    int fail_percent;         /* of rounds by chance */
    bool is_open;             /* the webhook may be missed */
};

/* One stored version of the target. */
struct version {
    union {
        struct sw_object meta;
        struct sw_deployment deployment;
        struct sw_stateful_set stateful_set;
        struct sw_daemon_set daemon_set;
    } object;
    struct sw_label annotations[4];
    char text[16];
    uint64_t number;
    int64_t generation;
    int template_;
    int32_t replicas;
    bool is_paused;    /* Deployment */
    int32_t partition; /* StatefulSet */
    bool is_on_delete; /* DaemonSet */
    bool is_raised, has_saved;
    bool is_held_by_us, is_held_by_other, is_released, is_marked;
    /* status */
    int64_t observed;
    int32_t status_replicas, updated, ready, available;
};

struct pod {
    bool exists, is_broken;
    int template_;
    int ordinal;
    uint64_t ready_ms;
};

struct set { /* a ReplicaSet */
    bool exists, is_raised;
    int32_t wanted;
    int32_t desired, most; /* annotations of its Deployment's controller */
    uint64_t created_ms;
    int64_t revision;
    uint64_t number;                /* its resourceVersion */
    int32_t pods, ready, available; /* status */
    bool is_observed;
};

enum stage { FREE_SLOT, UNDER_WAY, APPLIED };

struct request {
    enum stage stage;
    int leader; /* which life of slipway waits for it */
    struct step_action action;
    struct sw_arena *arena;       /* what the action points into */
    const struct stepped *status; /* what a STATUS writes */
    uint64_t apply_ms, answer_ms;
    enum sw_outcome outcome;
    bool is_lost; /* applied or not, the answer does not come */
};

struct world {
    struct config config;
    struct sw_arena *arena;
    uint64_t random, now_ms, numbers;
    bool is_ending;

    struct version *target;
    struct version *before; /* the one before: what slow ones see */
    struct pod pods[PODS_MAX];
    struct set sets[TEMPLATES];
    bool kept[TEMPLATES]; /* there is a ControllerRevision of it */
    int current;          /* StatefulSet: template of currentRevision */
    uint64_t next_sync_ms;

    struct stepped *rollout; /* NULL: gone */
    struct stepped *rollout_before;
    struct step_spec spec;
    bool other_holds; /* the second arbiter */
    bool users_pause;

    int leader; /* which life; 0: none lives */
    int lives;
    uint64_t reborn_ms;
    struct step_memory *memory;
    const struct version *seen;
    const struct stepped *seen_rollout;
    uint64_t look_again_ms;
    bool must_plan;
    struct request requests[REQUESTS_MAX];
    /* its round */
    uint64_t round;
    enum step_round_type round_type;
    uint64_t round_ends_ms;
    int round_template;
    bool round_denies;
    /* its look */
    bool is_looking;
    uint64_t look_ends_ms, look_sent_ms;
    const char *look_version, *revisions_version;
    struct step_revision looked_at[TEMPLATES];
    char names[TEMPLATES][16], versions[TEMPLATES][16];
    struct step_revision revisions[TEMPLATES];
    size_t revision_count;
    uint64_t revisions_sent_ms, revisions_came_ms;
    bool has_revisions;

    /* for the checks */
    bool is_excused;   /* the bound of this template's rollout */
    bool is_missed;    /* the next version comes past the webhook */
    int32_t allowed;   /* its highest stop that was written down */
    int rounds_in_row; /* of this template, passed since the step was reached */
    bool by_hand;      /* somebody has promoted */
    bool has_scaled;
    uint64_t writes, last_write_ms, actions;
    uint64_t checks, passed, succeeded, failed, retreated, rolled_back;
    bool is_loud;
    char failure[512];
};

void world_begin(struct world *world, uint64_t seed);
void world_tick(struct world *world);
/* People stop; everything must come to rest as it should. */
void world_end(struct world *world);
void world_done(struct world *world);

uint32_t world_random(struct world *world, uint32_t below);
bool world_chance(struct world *world, uint32_t percent);
void world_fail(struct world *world, const char *format, ...) SW_PRINTF(2, 3);
void world_note(const struct world *world, const char *format, ...) SW_PRINTF(2, 3);
int64_t world_wall_us(const struct world *world);
/* A copy of what is stored, to be changed and stored. */
struct version *world_change(struct world *world);
void world_store(struct world *world, struct version *version, bool is_spec);
struct stepped *world_change_rollout(struct world *world);
void world_store_rollout(struct world *world, struct stepped *rollout);
void world_view(const struct world *world, const struct version *version,
                struct step_target *ret_target);
/* The admission review of what somebody else submits: false: refused. */
bool world_admit(struct world *world, struct version *now, const struct version *old);
/* What the second arbiter does with a Deployment. */
void world_other_hand(struct world *world);

void world_controllers(struct world *world);
int world_add_pod(struct world *world, int template_, int ordinal);
void world_remove_pod(struct world *world, int which);
bool world_is_ready(const struct world *world, const struct pod *pod);
int32_t world_count(const struct world *world, int template_); /* -1: all */

void world_leader(struct world *world);
void world_leader_dies(struct world *world);

void world_check(struct world *world);
void world_check_status(struct world *world, const struct stepped *from, const struct stepped *to);
void world_check_end(struct world *world);

#endif
