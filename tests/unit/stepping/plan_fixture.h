/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One SteppedRollout and its target written down by hand, and one run of the plan at a time. No
 * answer comes unless a test gives one; `store` puts what a run wants to write into the status.
 */
#ifndef TESTS_STEPPING_PLAN_FIXTURE_H
#define TESTS_STEPPING_PLAN_FIXTURE_H

#include "test.h"

#include <slipway/apps.h>
#include <slipway/json.h>

#include "mode.h"
#include "plan.h"

#define OLD "00000000000000000000000000000001"
#define NEW "00000000000000000000000000000002"
#define NEWER "00000000000000000000000000000003"
#define START_US INT64_C(1700000000000000)

struct fixture {
    struct stepped s;
    struct sw_deployment d;
    struct step_target t;
    struct step_spec spec;
    struct sw_int_or_percent steps[2];
    struct sw_label notes[2], marks[2];
    struct step_revision revisions[2];
    char version[16];
    struct step_snapshot snapshot;
    struct step_memory *memory;
    struct sw_arena *arena;
    struct step_result result;
    const struct step_action *round, *bite; /* the last ones; NULL */
    bool is_stored;                         /* what the last run wanted to write */
};

/* 10 Pods, surge 2; steps 2 and 50 %; initialised with template OLD, which is complete. */
static inline void begin(struct fixture *f)
{
    static const char *const finalizers[] = {STEP_FINALIZER};

    *f = (struct fixture){
        .s = {.meta = {.namespace_ = "n", .name = "s", .resource_version = "s1", .generation = 1},
              .finalizers = {finalizers, 1},
              .target_api_version = "apps/v1",
              .target_kind = "Deployment",
              .target_name = "web",
              .phase = "Initialized",
              .activity = "",
              .message = "",
              .last_applied_hash = OLD,
              .last_promoted_hash = OLD,
              .failed_hash = "",
              .promoted_revision = "web-1",
              .step_text = "",
              .updated_text = "",
              .last_transition_us = START_US},
        .d = {.meta = {.namespace_ = "n", .name = "web", .resource_version = "t1"},
              .strategy = "RollingUpdate",
              .progress_deadline_seconds = 600},
        .t = {.hash = OLD,
              .is_observed = true,
              .replicas = 10,
              .status_replicas = 10,
              .updated = 10,
              .ready = 10,
              .available = 10,
              .surge = 2,
              .others_words = "",
              .others_owners = "",
              .revisions_age_ms = UINT64_MAX},
        .steps = {{2, false, true}, {50, true, true}},
        .spec = {.step_count = 2,
                 .deadline_ms = 60000,
                 .interval_ms = 10000,
                 .iterations = 2,
                 .threshold = 2},
        .memory = step_memory_new(),
        .arena = sw_arena_new(0),
    };
    f->spec.steps = f->steps;
    f->marks[0] = (struct sw_label){SW_STEPPED_BY, "s"};
    f->d.meta.annotations = (struct sw_labels){f->marks, 1};
    f->t.object = &f->d.meta;
    f->snapshot = (struct step_snapshot){
        .object = &f->s,
        .spec = &f->spec,
        .target = &f->t,
        .target_kinds_are_synced = true,
        .now_ms = 1000000,
        .wall_us = START_US + 60000000,
    };
}

static inline void end(struct fixture *f)
{
    step_memory_free(f->memory);
    sw_arena_free(f->arena);
}

static inline void run(struct fixture *f)
{
    step_plan(f->memory, &f->snapshot, f->arena, &f->result);
    f->is_stored = false;
    for (const struct step_action *action = f->result.actions; action; action = action->next) {
        f->round = action->type == STEP_ROUND ? action : f->round;
        f->bite = action->type == STEP_BITE ? action : f->bite;
    }
}

static inline void pass(struct fixture *f, uint64_t ms)
{
    f->snapshot.now_ms += ms;
    f->snapshot.wall_us += (int64_t)ms * 1000;
}

/* NULL: none of the type. */
static inline const struct step_action *find(const struct fixture *f, enum step_action_type type)
{
    for (const struct step_action *action = f->result.actions; action; action = action->next)
        if (action->type == type)
            return action;
    return NULL;
}

static inline const struct step_action *need(const struct fixture *f, enum step_action_type type)
{
    const struct step_action *action = find(f, type);

    if (!action) {
        fail_msg("no action of type %d", type);
        abort(); /* the compiler does not know that fail_msg does not return */
    }
    return action;
}

static inline bool says(const struct step_action *action, const char *reason, const char *words)
{
    for (const struct step_remark *remark = action->remarks; remark; remark = remark->next)
        if (strcmp(remark->reason, reason) == 0 && strstr(remark->message, words))
            return true;
    return false;
}

static inline void answer(struct fixture *f, const struct step_action *action,
                          enum sw_outcome outcome)
{
    step_answered(f->memory, action, outcome, "said by the test");
}

static inline void touch(struct fixture *f)
{
    static int number = 10;

    snprintf(f->version, sizeof f->version, "t%d", number++);
    f->d.meta.resource_version = f->version;
}

/* The status that the run wants is written, and seen. */
static inline const struct step_status *store(struct fixture *f)
{
    static char versions[64][8];
    static size_t next;
    const struct step_action *action = need(f, STEP_STATUS);
    const struct step_status *to = action->status;
    struct stepped *s = &f->s;

    f->is_stored = true;
    s->phase = to->phase;
    s->activity = to->activity;
    s->message = to->message;
    s->current_step = to->current_step;
    s->step_count = to->step_count;
    s->stop = to->stop;
    s->updated_replicas = to->updated_replicas;
    s->replicas = to->replicas;
    s->passed_rounds = to->passed_rounds;
    s->failed_checks = to->failed_checks;
    s->last_applied_hash = sw_arena_strdup(f->arena, to->last_applied_hash);
    s->last_promoted_hash = sw_arena_strdup(f->arena, to->last_promoted_hash);
    s->failed_hash = sw_arena_strdup(f->arena, to->failed_hash);
    s->promoted_revision = to->promoted_revision;
    s->checks = (struct sw_list){to->checks, (uint32_t)to->check_count};
    s->step_started_us = to->step_started_us;
    s->last_round_us = to->last_round_us;
    s->last_transition_us = to->last_transition_us;
    s->observed_generation = to->observed_generation;
    s->conditions = (struct sw_conditions){to->conditions, 2};
    s->step_text = to->step_count > 0
                       ? sw_arena_printf(f->arena, "%d/%d", to->current_step, to->step_count)
                       : "";
    s->updated_text = sw_arena_printf(f->arena, "%d/%d", to->updated_replicas, to->replicas);
    snprintf(versions[next % 64], sizeof versions[0], "s%zu", next % 10000);
    s->meta.resource_version = versions[next++ % 64];
    answer(f, action, SW_OK);
    return to;
}

/* Runs and stores until the status says nothing new. */
static inline void settle(struct fixture *f)
{
    if (find(f, STEP_STATUS) && !f->is_stored)
        store(f);
    for (int i = 0; i < 10; i++) {
        run(f);
        if (!find(f, STEP_STATUS))
            return;
        store(f);
    }
    fail_msg("the status never comes to rest");
}

static inline void annotate(struct fixture *f, const char *key, const char *value)
{
    f->notes[0] = (struct sw_label){key, value};
    f->s.meta.annotations = (struct sw_labels){f->notes, 1};
}

static inline void hold(struct fixture *f)
{
    touch(f);
    f->t.is_held = f->t.is_ours = true;
    f->t.is_released = f->t.is_raised = f->t.has_saved = false;
}

static inline void release(struct fixture *f)
{
    touch(f);
    f->t.is_held = f->t.is_ours = false;
    f->t.is_released = true;
}

/* Template NEW, held, of which `updated` Pods are there and ready; the status is at `activity`. */
static inline void put(struct fixture *f, enum step_activity activity, int32_t step,
                       int32_t updated)
{
    memcpy(f->t.hash, NEW, sizeof f->t.hash);
    f->s.last_applied_hash = NEW;
    f->s.activity = step_activity_text(activity);
    f->s.phase = activity == STEP_PROMOTING ? "Promoting" : "Progressing";
    f->s.current_step = step;
    f->s.step_count = 3;
    f->s.stop = step_stop(&f->spec, f->t.replicas, step);
    f->s.step_started_us = f->snapshot.wall_us;
    f->t.updated = updated;
    hold(f);
}

static inline void look(struct fixture *f, int32_t old, int32_t new)
{
    f->revisions[0] = (struct step_revision){.name = "web-2",
                                             .resource_version = "r2",
                                             .wanted = new,
                                             .pods = new,
                                             .ready = new,
                                             .available = new,
                                             .created_us = 2000000,
                                             .revision = 2,
                                             .is_newest = true,
                                             .is_observed = true};
    f->revisions[1] = (struct step_revision){.name = "web-1",
                                             .resource_version = "r1",
                                             .wanted = old,
                                             .pods = old,
                                             .ready = old,
                                             .available = old,
                                             .created_us = 1000000,
                                             .revision = 1,
                                             .is_promoted = true,
                                             .is_observed = true};
    f->t.revisions = f->revisions;
    f->t.revision_count = 2;
    f->t.revisions_age_ms = f->t.revisions_idle_ms = 0;
    f->t.revisions_version = f->d.meta.resource_version;
}

/* The round that this run starts ends so. */
static inline void end_round(struct fixture *f, enum step_round_type type, bool has_passed)
{
    const struct step_action *action = f->round;
    const struct step_check check = {.name = "errors",
                                     .type = "metric",
                                     .value = "0.5",
                                     .range = "<= 0.1",
                                     .has_passed = has_passed,
                                     .message = "too many"};
    const struct step_round_result result = {.type = type,
                                             .has_passed = has_passed,
                                             .checks = &check,
                                             .check_count = 1,
                                             .failed = has_passed ? "" : "errors",
                                             .words = has_passed ? "" : "errors: 0.5 is not <= 0.1",
                                             .rollback_by = ""};

    assert_non_null(action);
    assert_int_equal(action->round, type);
    f->round = NULL;
    step_round_ended(f->memory, action->number, &result);
}

/* As a new leader: nothing is remembered. */
static inline void forget(struct fixture *f)
{
    step_memory_free(f->memory);
    f->memory = step_memory_new();
}

#endif
