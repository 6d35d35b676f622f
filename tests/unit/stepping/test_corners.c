/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan and the arbiter at the corners, which the model of test_world.c does not reach: one
 * SteppedRollout as it is stored, one target as it is, and what the next run makes of them.
 */
#include "../test.h"

#include <slipway/apps.h>
#include <slipway/arena.h>
#include <slipway/time.h>
#include <slipway/workloads.h>

#include "mode.h"
#include "plan.h"

#define OLD "11111111111111111111111111111111"
#define NEW "22222222222222222222222222222222"
#define AT(seconds) (INT64_C(1700000000000000) + (seconds)*INT64_C(1000000))

struct fixture {
    struct sw_arena *arena;
    struct step_memory *memory;
    struct sw_deployment deployment;
    struct stepped stepped;
    struct step_spec spec;
    struct sw_int_or_percent steps[2];
    struct step_target target;
    struct step_revision revisions[2];
    struct sw_label annotations[2];
    struct step_snapshot snapshot;
    struct step_result result;
};

static struct fixture f;
static const char *const finalizers[] = {STEP_FINALIZER};

/* Ten Pods of the promoted template, all well; steps at 2 and 5. */
static void begin(void)
{
    f = (struct fixture){.arena = sw_arena_new(0), .memory = step_memory_new()};
    f.deployment.meta = (struct sw_object){
        .kind = &sw_kind_deployment,
        .namespace_ = "shop",
        .name = "web",
        .uid = "u",
        .resource_version = "7",
        .generation = 3,
        .created_us = AT(0),
    };
    f.stepped = (struct stepped){
        .meta = {.namespace_ = "shop", .name = "web", .resource_version = "9", .generation = 1},
        .finalizers = {finalizers, 1},
        .target_api_version = "apps/v1",
        .target_kind = "Deployment",
        .target_name = "web",
        .on_failure = "",
        .phase = "Initialized",
        .activity = "",
        .message = "",
        .last_applied_hash = OLD,
        .last_promoted_hash = OLD,
        .failed_hash = "",
        .promoted_revision = "web-old",
        .last_transition_us = AT(60),
        .step_text = "",
        .updated_text = "",
    };
    f.steps[0] = (struct sw_int_or_percent){.value = 2, .is_set = true};
    f.steps[1] = (struct sw_int_or_percent){.value = 5, .is_set = true};
    f.spec = (struct step_spec){
        .object = &f.stepped,
        .steps = f.steps,
        .step_count = 2,
        .deadline_ms = 600000,
        .interval_ms = 60000,
        .iterations = 1,
        .threshold = 1,
    };
    f.target = (struct step_target){
        .kind = STEP_DEPLOYMENT,
        .object = &f.deployment.meta,
        .hash = OLD,
        .is_observed = true,
        .replicas = 10,
        .status_replicas = 10,
        .updated = 10,
        .ready = 10,
        .available = 10,
        .surge = 1,
        .others_words = "",
        .others_owners = "",
        .revisions = f.revisions,
        .revision_count = 2,
        .revisions_version = "7",
    };
    f.revisions[0] = (struct step_revision){.name = "web-new", .revision = 2, .is_observed = true};
    f.revisions[1] = (struct step_revision){.name = "web-old",
                                            .revision = 1,
                                            .wanted = 10,
                                            .pods = 10,
                                            .ready = 10,
                                            .available = 10,
                                            .is_newest = true,
                                            .is_promoted = true,
                                            .is_observed = true};
    f.snapshot = (struct step_snapshot){
        .object = &f.stepped,
        .spec = &f.spec,
        .spec_error = "",
        .target = &f.target,
        .target_kinds_are_synced = true,
        .now_ms = 1000000,
        .wall_us = AT(100),
    };
}

static void end(void)
{
    step_memory_free(f.memory);
    sw_arena_free(f.arena);
}

static void plan(void)
{
    step_plan(f.memory, &f.snapshot, f.arena, &f.result);
}

static const struct step_action *action_of(enum step_action_type type)
{
    for (const struct step_action *action = f.result.actions; action; action = action->next)
        if (action->type == type)
            return action;
    return NULL;
}

static bool does(enum step_action_type type)
{
    return action_of(type) != NULL;
}

static const struct step_action *must(enum step_action_type type)
{
    const struct step_action *action = action_of(type);

    assert_non_null(action);
    if (!action)
        abort();
    return action;
}

static const struct step_status *status(void)
{
    return must(STEP_STATUS)->status;
}

/* What was decided is stored, and seen. */
static void store(void)
{
    const struct step_action *action = must(STEP_STATUS);
    const struct step_status *now = action->status;

    f.stepped.phase = sw_arena_strdup(f.arena, now->phase);
    f.stepped.activity = sw_arena_strdup(f.arena, now->activity);
    f.stepped.message = sw_arena_strdup(f.arena, now->message);
    f.stepped.current_step = now->current_step;
    f.stepped.stop = now->stop;
    f.stepped.step_count = now->step_count;
    f.stepped.passed_rounds = now->passed_rounds;
    f.stepped.failed_checks = now->failed_checks;
    f.stepped.last_applied_hash = sw_arena_strdup(f.arena, now->last_applied_hash);
    f.stepped.last_promoted_hash = sw_arena_strdup(f.arena, now->last_promoted_hash);
    f.stepped.failed_hash = sw_arena_strdup(f.arena, now->failed_hash);
    f.stepped.promoted_revision = sw_arena_strdup(f.arena, now->promoted_revision);
    f.stepped.step_started_us = now->step_started_us;
    f.stepped.last_round_us = now->last_round_us;
    f.stepped.last_transition_us = now->last_transition_us;
    f.stepped.meta.resource_version = sw_arena_printf(f.arena, "9%p", (const void *)now);
    step_answered(f.memory, action, SW_OK, "");
}

static void template_is_new(int32_t updated)
{
    memcpy(f.target.hash, NEW, sizeof NEW);
    f.target.updated = updated;
    f.target.is_held = f.target.is_ours = true;
    f.stepped.last_applied_hash = NEW;
    f.revisions[0].is_newest = true;
    f.revisions[1].is_newest = false;
    f.revisions[0].wanted = f.revisions[0].pods = f.revisions[0].ready = updated;
    f.revisions[0].available = updated;
}

static void stands(const char *phase, const char *activity, int32_t step)
{
    f.stepped.phase = phase;
    f.stepped.activity = activity;
    f.stepped.current_step = step;
    f.stepped.stop = step ? step_stop(&f.spec, f.target.replicas, step) : 0;
    f.stepped.step_started_us = AT(90);
}

static void annotate(const char *key, const char *value)
{
    f.annotations[0] = (struct sw_label){key, value};
    f.stepped.meta.annotations = (struct sw_labels){f.annotations, 1};
}

static void opine(bool is_review, const struct sw_object *old, struct sw_opinion *ret_opinion)
{
    const struct sw_question question = {
        .object = &f.deployment.meta, .old = old, .is_review = is_review, .arena = f.arena};

    *ret_opinion = (struct sw_opinion){.owners = "", .words = ""};
    step_opinion(&f.stepped, f.snapshot.spec, &f.target, &question, ret_opinion);
}

/* ---- made anew ---- */

TEST(a_target_that_was_made_anew_and_is_complete_is_known_after_one_status)
{
    begin();
    /* Deleted and made again while nobody looked, or made by a server whose clock is ahead. */
    f.deployment.meta.created_us = AT(130);
    assert_int_equal(step_mode_of(&f.stepped, &f.target), STEP_MODE_UNKNOWN);
    plan();
    store();
    assert_int_equal(step_mode_of(&f.stepped, &f.target), STEP_MODE_REST);
    memcpy(f.target.hash, NEW, sizeof NEW);
    struct sw_opinion opinion;
    opine(true, &f.deployment.meta, &opinion);
    assert_int_equal(opinion.verdict, SW_VERDICT_HOLD);
    end();
}

/* ---- wishes ---- */

TEST(an_abort_that_is_seen_twice_is_obeyed_once)
{
    begin();
    f.spec.on_failure = STEP_STAY;
    template_is_new(2);
    stands("Progressing", "Analysing", 1);
    annotate(STEP_ABORT, "true");
    plan();
    store();
    assert_string_equal(f.stepped.phase, "Failed");
    assert_string_equal(f.stepped.activity, "Held");
    plan();
    assert_false(does(STEP_STATUS));
    assert_true(must(STEP_META)->removes_abort);
    end();
}

/* ---- quarantine ---- */

static void quarantine(void)
{
    template_is_new(0);
    f.stepped.failed_hash = NEW;
}

TEST(a_template_that_failed_gets_no_pods_by_scaling_to_nothing_and_back)
{
    begin();
    quarantine();
    stands("Initialized", "", 0); /* another one was there meanwhile */
    plan();
    store();
    assert_string_equal(f.stepped.phase, "Failed");
    assert_false(does(STEP_BITE));
    /* Paused, its controller fills the newest when none has Pods. */
    template_is_new(f.target.replicas);
    plan();
    assert_string_not_equal(status()->activity, "Held");
    end();
}

TEST(what_has_failed_stays_so_for_others_while_it_is_suspended)
{
    begin();
    struct sw_opinion opinion;
    quarantine();
    stands("Failed", "Retreated", 1);
    opine(false, NULL, &opinion);
    assert_int_equal(opinion.verdict, SW_VERDICT_HOLD_OUT_OF_LINE);
    assert_true(opinion.has_given_up);
    f.stepped.is_suspended = true;
    opine(false, NULL, &opinion);
    assert_int_equal(opinion.verdict, SW_VERDICT_HOLD_OUT_OF_LINE);
    assert_true(opinion.has_given_up);
    f.stepped.is_suspended = false;
    f.snapshot.spec = NULL;
    opine(false, NULL, &opinion);
    assert_true(opinion.has_given_up);
    end();
}

/* ---- scaled to nothing ---- */

TEST(no_round_is_made_of_no_pods)
{
    begin();
    template_is_new(0);
    stands("Progressing", "Analysing", 1);
    f.stepped.last_round_us = AT(20);
    f.target.replicas = f.target.status_replicas = f.target.ready = f.target.available = 0;
    plan();
    assert_false(does(STEP_ROUND));
    end();
}

/* A StatefulSet that is scaled down loses its updated Pods first. */
TEST(no_round_is_made_where_no_pod_is_updated_any_more)
{
    begin();
    template_is_new(0);
    stands("Progressing", "Analysing", 3);
    f.stepped.last_round_us = AT(20);
    f.target.replicas = f.target.status_replicas = f.target.ready = f.target.available = 3;
    plan();
    assert_false(does(STEP_ROUND));
    assert_string_equal(status()->activity, "Advancing");
    assert_int_equal(status()->current_step, 1);
    assert_int_equal(status()->stop, 2);
    assert_int_equal(status()->step_started_us, AT(100));
    end();
}

TEST(what_was_scaled_to_nothing_has_its_whole_deadline_when_it_comes_back)
{
    begin();
    template_is_new(0);
    stands("Progressing", "Analysing", 1);
    f.target.replicas = f.target.status_replicas = f.target.ready = f.target.available = 0;
    plan();
    store();
    assert_int_equal(f.stepped.step_started_us, 0);
    struct sw_opinion opinion;
    opine(false, NULL, &opinion);
    assert_int_equal(opinion.verdict, SW_VERDICT_HOLD_OUT_OF_LINE);
    assert_false(opinion.has_given_up);
    /* An hour later. */
    f.snapshot.wall_us = AT(3700);
    f.snapshot.now_ms += 3600000;
    template_is_new(4);
    f.target.replicas = f.target.status_replicas = 10;
    plan();
    store();
    assert_string_equal(f.stepped.activity, "Analysing");
    assert_int_equal(f.stepped.step_started_us, AT(3700));
    assert_string_equal(f.stepped.failed_hash, "");
    plan();
    assert_string_equal(status()->failed_hash, "");
    end();
}

/* It would be complete at once, and get all its Pods unchecked when it is scaled up. */
TEST(a_new_template_of_what_has_no_pods_waits_for_some)
{
    begin();
    template_is_new(0);
    stands("Progressing", "Questions", 0);
    f.target.replicas = f.target.status_replicas = f.target.ready = f.target.available = 0;
    plan();
    assert_false(does(STEP_ROUND));
    store();
    assert_string_equal(f.stepped.phase, "Held");
    assert_string_equal(f.stepped.activity, "Questions");
    assert_non_null(strstr(f.stepped.message, "no Pods"));
    f.target.replicas = f.target.status_replicas = f.target.ready = f.target.available = 10;
    plan();
    assert_true(does(STEP_ROUND));
    end();
}

TEST(whoever_waits_for_pods_in_the_middle_says_so)
{
    begin();
    template_is_new(0);
    stands("Progressing", "Analysing", 1);
    f.target.replicas = f.target.status_replicas = f.target.ready = f.target.available = 0;
    plan();
    store();
    assert_string_equal(f.stepped.phase, "Held");
    assert_string_equal(f.stepped.activity, "Analysing");
    assert_non_null(strstr(f.stepped.message, "no Pods"));
    end();
}

TEST(what_is_not_checked_needs_no_pods)
{
    begin();
    f.stepped.skips_analysis = true;
    template_is_new(0);
    stands("Progressing", "Questions", 0);
    f.target.replicas = f.target.status_replicas = f.target.ready = f.target.available = 0;
    plan();
    assert_true(does(STEP_ROUND));
    end();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("corners", a_target_that_was_made_anew_and_is_complete_is_known_after_one_status),
        CASE("corners", an_abort_that_is_seen_twice_is_obeyed_once),
        CASE("corners", a_template_that_failed_gets_no_pods_by_scaling_to_nothing_and_back),
        CASE("corners", what_has_failed_stays_so_for_others_while_it_is_suspended),
        CASE("corners", no_round_is_made_of_no_pods),
        CASE("corners", no_round_is_made_where_no_pod_is_updated_any_more),
        CASE("corners", what_was_scaled_to_nothing_has_its_whole_deadline_when_it_comes_back),
        CASE("corners", a_new_template_of_what_has_no_pods_waits_for_some),
        CASE("corners", whoever_waits_for_pods_in_the_middle_says_so),
        CASE("corners", what_is_not_checked_needs_no_pods),
    };
    return RUN(tests);
}
