/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deployments written down by hand, one or two coordinations, and one run of the plan at a time. No
 * answer comes unless a test gives one.
 */
#ifndef TESTS_COORDINATION_FIXTURE_H
#define TESTS_COORDINATION_FIXTURE_H

#include "test.h"

#include <slipway/json.h>

#include "plan.h"

#define DEPLOYMENTS 4
#define ANNOTATIONS 8

struct subject {
    struct sw_deployment d;
    struct sw_label annotations[ANNOTATIONS];
    struct sw_condition conditions[2];
    struct sw_label labels[2];
    char version[8];
};

struct fixture {
    struct subject subjects[DEPLOYMENTS];
    struct coord_seen_deployment seen[DEPLOYMENTS];
    size_t count;
    struct coordination c, other; /* the other one is there once with_other was called */
    struct coord_seen_group groups[2];
    struct sw_selector *selector, *other_selector;
    struct coord_snapshot snapshot;
    struct coord_memory *memory;
    struct sw_arena *arena;
    struct coord_result result;
};

static const char *const names[DEPLOYMENTS] = {"d0", "d1", "d2", "d3"};
static const char *const full[DEPLOYMENTS] = {"n/d0", "n/d1", "n/d2", "n/d3"};

static inline void annotate(struct subject *subject, const char *key, const char *value)
{
    struct sw_labels *list = &subject->d.meta.annotations;
    uint32_t i = 0;

    while (i < list->count && strcmp(subject->annotations[i].key, key) < 0)
        i++;
    if (i < list->count && strcmp(subject->annotations[i].key, key) == 0) {
        subject->annotations[i].value = value;
        return;
    }
    assert_true(list->count < ANNOTATIONS);
    memmove(subject->annotations + i + 1, subject->annotations + i,
            (list->count - i) * sizeof subject->annotations[0]);
    subject->annotations[i] = (struct sw_label){key, value};
    list->at = subject->annotations;
    list->count++;
}

static inline void set_progressing(struct subject *subject, const char *status, const char *reason,
                                   int64_t update_us)
{
    subject->conditions[0] = (struct sw_condition){
        .type = "Progressing",
        .status = status,
        .reason = reason,
        .message = "",
        .last_update_us = update_us,
    };
    subject->d.conditions = (struct sw_conditions){subject->conditions, 1};
}

/* A new version of it, as if somebody had written it. */
static inline void touch(struct subject *subject)
{
    static int number = 100;

    snprintf(subject->version, sizeof subject->version, "%d", ++number);
}

/* Complete, marked, and held at rest. */
static inline void rest(struct fixture *f, size_t i)
{
    struct subject *subject = &f->subjects[i];

    *subject = (struct subject){
        .d =
            {
                .meta = {.namespace_ = "n",
                         .name = names[i],
                         .uid = names[i],
                         .resource_version = subject->version,
                         .generation = 3,
                         .owner_uid = ""},
                .replicas = 2,
                .is_paused = true,
                .template_hash = {.low = 1},
                .strategy = "RollingUpdate",
                .progress_deadline_seconds = 600,
                .observed_generation = 3,
                .status_replicas = 2,
                .updated_replicas = 2,
                .ready_replicas = 2,
                .available_replicas = 2,
            },
    };
    touch(subject);
    annotate(subject, COORD_REVISION, "4");
    annotate(subject, SW_COORDINATED_BY, "a");
    annotate(subject, SW_HELD_BY, "coordination/a");
    set_progressing(subject, "Unknown", "DeploymentPaused", 0);
    f->seen[i] = (struct coord_seen_deployment){&subject->d, SW_VERDICT_FREE, "", ""};
    if (f->count <= i)
        f->count = i + 1;
}

/* Held, and with a new template. */
static inline void wait_(struct fixture *f, size_t i)
{
    rest(f, i);
    f->subjects[i].d.template_hash.low = 2;
    f->subjects[i].d.updated_replicas = 0;
}

static inline void strip(struct subject *subject, const char *key)
{
    struct sw_labels *list = &subject->d.meta.annotations;

    for (uint32_t i = 0; i < list->count; i++)
        if (strcmp(subject->annotations[i].key, key) == 0) {
            memmove(subject->annotations + i, subject->annotations + i + 1,
                    (list->count - i - 1) * sizeof subject->annotations[0]);
            list->count--;
            return;
        }
}

/* Released, and in the middle of its rollout. */
static inline void roll(struct fixture *f, size_t i)
{
    struct subject *subject = &f->subjects[i];

    wait_(f, i);
    subject->d.is_paused = false;
    subject->d.updated_replicas = 1;
    strip(subject, SW_HELD_BY);
    annotate(subject, SW_RELEASED_BY, "coordination/a");
    set_progressing(subject, "True", "ReplicaSetUpdated", f->snapshot.wall_us);
}

static inline void finish(struct fixture *f, size_t i)
{
    struct subject *subject = &f->subjects[i];

    subject->d.updated_replicas = 2;
    set_progressing(subject, "True", "NewReplicaSetAvailable", f->snapshot.wall_us);
    touch(subject);
}

static inline void set_active(struct fixture *f, size_t i)
{
    f->c.active_deployment = full[i];
    f->c.active_deployments = (struct sw_strings){&full[i], 1};
}

/* Active, and its progress deadline was exceeded at that time. */
static inline void roll_and_fail(struct fixture *f, size_t i, int64_t update_us)
{
    roll(f, i);
    set_progressing(&f->subjects[i], "False", "ProgressDeadlineExceeded", update_us);
    set_active(f, i);
}

static inline struct fixture *fixture_new(void)
{
    struct fixture *f = test_calloc(1, sizeof *f);
    char why[256];

    f->arena = sw_arena_new(0);
    f->memory = coord_memory_new();
    f->c = (struct coordination){
        .meta = {.namespace_ = "n",
                 .name = "a",
                 .uid = "u",
                 .resource_version = "9",
                 .generation = 1,
                 .owner_uid = ""},
        .max_active = 1,
        .availability_guard = "",
        .at_rest = "",
        .failure_policy = "",
        .active_deployment = "",
        .observed_generation = 1,
    };
    assert_int_equal(sw_selector_parse_text("", &f->selector, why, sizeof why), 0);
    f->groups[0] = (struct coord_seen_group){&f->c, f->selector, ""};
    f->snapshot = (struct coord_snapshot){
        .namespace_ = "n",
        .now_ms = 1000000,
        .wall_us = INT64_C(1700000000000000),
        .lists = 1,
        .groups = f->groups,
        .group_count = 1,
        .deployments = f->seen,
    };
    return f;
}

/* A second coordination, "b", that selects by a label. */
static inline void with_other(struct fixture *f, const char *selector)
{
    char why[256];

    f->other = f->c;
    f->other.meta.name = "b";
    f->other.meta.uid = "v";
    assert_int_equal(sw_selector_parse_text(selector, &f->other_selector, why, sizeof why), 0);
    f->groups[1] = (struct coord_seen_group){&f->other, f->other_selector, ""};
    f->snapshot.group_count = 2;
}

static inline void label(struct fixture *f, size_t i, const char *key)
{
    f->subjects[i].labels[0] = (struct sw_label){key, "1"};
    f->subjects[i].d.meta.labels = (struct sw_labels){f->subjects[i].labels, 1};
}

static inline void fixture_free(struct fixture *f)
{
    coord_memory_free(f->memory);
    sw_selector_free(f->selector);
    sw_selector_free(f->other_selector);
    sw_arena_free(f->arena);
    test_free(f);
}

static inline void plan(struct fixture *f)
{
    f->snapshot.deployment_count = f->count;
    coord_plan(f->memory, &f->snapshot, f->arena, &f->result);
}

static inline const struct coord_action *action_on(const struct fixture *f, const char *name)
{
    for (const struct coord_action *action = f->result.actions; action; action = action->next)
        if (strcmp(action->name, name) == 0)
            return action;
    return NULL;
}

static inline SW_NONNULL const struct coord_action *must(const struct fixture *f, const char *name)
{
    const struct coord_action *action = action_on(f, name);

    if (!action) {
        fail_msg("nothing is done with %s", name);
        abort();
    }
    return action;
}

static inline void answer(struct fixture *f, const struct coord_action *action,
                          enum sw_outcome outcome, const char *version)
{
    const struct coord_answer what = {outcome, "", "", version};

    coord_answered(f->memory, action, &what, f->arena);
}

static inline void assert_hold(const struct fixture *f, const char *name, enum sw_hold_verb verb)
{
    const struct coord_action *action = must(f, name);

    assert_int_equal(action->type, COORD_HOLD);
    assert_int_equal(action->verb, verb);
}

/* That (b) is sent, and who is active by it ("" : nobody). */
static inline const struct coord_action *assert_record(const struct fixture *f, const char *active)
{
    const struct coord_action *action = must(f, "a");

    assert_true(action->is_record);
    assert_string_equal(action->status->active_count > 0 ? action->status->active[0] : "", active);
    assert_int_equal(action->status->turn, f->c.turn + 1);
    return action;
}

/* The reasons of all remarks, in their order. */
static inline void assert_remarks(const struct coord_remark *remark, const char *reasons)
{
    char text[512] = "";

    for (; remark; remark = remark->next)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", text[0] ? " " : "",
                 remark->reason);
    assert_string_equal(text, reasons);
}

static inline void assert_no_record(const struct fixture *f)
{
    const struct coord_action *action = action_on(f, "a");

    assert_true(!action || !action->is_record);
}

static inline const struct coord_status *status_of(const struct fixture *f)
{
    const struct coord_action *action = must(f, "a");

    assert_int_equal(action->type, COORD_STATUS);
    return action->status;
}

static inline void assert_condition(const struct fixture *f, const char *type, const char *status,
                                    const char *reason)
{
    const struct coord_status *to = status_of(f);
    const struct sw_conditions list = {to->conditions, to->condition_count};
    const struct sw_condition *condition = sw_condition_get(&list, type);

    if (!condition) {
        fail_msg("no condition %s", type);
        abort();
    }
    assert_string_equal(condition->status, status);
    assert_string_equal(condition->reason, reason);
}

#endif
