/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the arbiter says, for each state of a template and each thing that it may not say.
 */
#include "plan_fixture.h"

#define WARNING_MAX 120 /* <slipway/admission.h>: what is longer is cut */

static struct sw_opinion ask(struct fixture *f)
{
    const struct sw_question question = {&f->d.meta, NULL, false, f->arena};
    struct sw_opinion opinion = {.owners = "", .words = ""};

    step_opinion(f->snapshot.object, f->snapshot.spec, &f->t, &question, &opinion);
    return opinion;
}

static struct sw_opinion review(struct fixture *f, const struct sw_deployment *old)
{
    const struct sw_question question = {&f->d.meta, old ? &old->meta : NULL, true, f->arena};
    struct sw_opinion opinion = {.owners = "", .words = ""};

    step_opinion(f->snapshot.object, f->snapshot.spec, &f->t, &question, &opinion);
    return opinion;
}

TEST(has_nothing_to_say_of_what_it_does_not_know)
{
    struct fixture f;

    begin(&f);
    f.d.meta.annotations.count = 0;
    f.s.last_promoted_hash = "";
    assert_false(ask(&f).is_selected);
    assert_string_equal(ask(&f).marks, "");
    f.snapshot.object = NULL;
    assert_false(ask(&f).is_selected);
    end(&f);
}

TEST(lets_the_promoted_template_rest_running)
{
    struct fixture f;

    begin(&f);
    const struct sw_opinion opinion = ask(&f);
    assert_true(opinion.is_selected && opinion.rests_running);
    assert_int_equal(opinion.verdict, SW_VERDICT_FREE);
    assert_string_equal(opinion.owners, "stepping/s");
    assert_string_equal(opinion.marks, "stepping/s");
    end(&f);
}

TEST(says_what_each_activity_means)
{
    static const struct {
        enum step_activity activity;
        int32_t step, updated;
        enum sw_verdict verdict;
    } rows[] = {
        {STEP_QUESTIONS, 0, 0, SW_VERDICT_HOLD},  {STEP_ADVANCING, 1, 1, SW_VERDICT_FREE},
        {STEP_ADVANCING, 1, 2, SW_VERDICT_HOLD},  {STEP_ADVANCING, 1, 7, SW_VERDICT_HOLD},
        {STEP_ANALYSING, 1, 1, SW_VERDICT_HOLD},  {STEP_PROMOTING, 3, 7, SW_VERDICT_FREE},
        {STEP_PROMOTING, 3, 10, SW_VERDICT_FREE},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture f;
        begin(&f);
        put(&f, rows[i].activity, rows[i].step, rows[i].updated);
        const struct sw_opinion opinion = ask(&f);
        assert_true(opinion.is_selected);
        assert_false(opinion.rests_running);
        assert_int_equal(opinion.verdict, rows[i].verdict);
        end(&f);
    }
}

TEST(holds_out_of_line_only_while_somebody_is_to_be_asked)
{
    static const struct step_hook hook = {.type = STEP_CONFIRM_ROLLOUT};
    struct fixture f;

    begin(&f);
    f.t.updated = 0;
    memcpy(f.t.hash, NEW, sizeof f.t.hash);
    assert_int_equal(ask(&f).verdict, SW_VERDICT_HOLD);
    f.spec.hooks = &hook;
    f.spec.hook_count = 1;
    assert_int_equal(ask(&f).verdict, SW_VERDICT_HOLD_OUT_OF_LINE);
    put(&f, STEP_QUESTIONS, 0, 0);
    assert_int_equal(ask(&f).verdict, SW_VERDICT_HOLD_OUT_OF_LINE);
    end(&f);
}

TEST(gives_up_and_refuses_what_has_failed)
{
    struct fixture f;
    struct sw_deployment old;

    begin(&f);
    put(&f, STEP_ROLLING_BACK, 1, 2);
    f.s.failed_hash = NEW;
    assert_int_equal(ask(&f).verdict, SW_VERDICT_HOLD_OUT_OF_LINE);
    assert_true(ask(&f).has_given_up);
    assert_null(ask(&f).refusal);
    old = f.d;
    old.template_hash = (struct sw_hash128){0, 1};
    assert_non_null(strstr(review(&f, &old).refusal, "rollback"));
    f.s.activity = "RolledBack";
    assert_null(review(&f, &old).refusal);
    assert_non_null(strstr(review(&f, &old).warning, "kubectl slipway retry s"));
    assert_true(strlen(review(&f, &old).warning) <= WARNING_MAX);
    old.template_hash = (struct sw_hash128){0, 2}; /* it is no new one: nothing is said */
    assert_null(review(&f, &old).warning);
    end(&f);
}

TEST(keeps_the_raise_against_a_manifest)
{
    struct fixture f;
    struct sw_deployment old;
    struct sw_json *patch;

    begin(&f);
    f.s.has_dead_man = true;
    put(&f, STEP_ADVANCING, 1, 1);
    release(&f);
    old = f.d;
    f.d.min_ready_seconds = 5;
    f.d.progress_deadline_seconds = 30;
    patch = review(&f, &old).patch;
    assert_int_equal(sw_json_size(patch), 3);
    assert_string_equal(sw_json_get_string(sw_json_element(patch, 0), "path"),
                        "/spec/minReadySeconds");
    assert_int_equal(sw_json_get_int(sw_json_element(patch, 0), "value", 0), 86400);
    assert_string_equal(sw_json_get_string(sw_json_element(patch, 2), "value"),
                        "{\"minReadySeconds\":5,\"progressDeadlineSeconds\":30}");
    assert_null(review(&f, &old).warning); /* a release that is not ours: nobody named them */
    old.min_ready_seconds = STEP_RAISED_READY_SECONDS;
    assert_non_null(strstr(review(&f, &old).warning, "minReadySeconds"));
    assert_true(strlen(review(&f, &old).warning) <= WARNING_MAX);
    f.d.min_ready_seconds = STEP_RAISED_READY_SECONDS;
    f.d.progress_deadline_seconds = STEP_RAISED_DEADLINE_SECONDS;
    assert_null(review(&f, &old).patch);
    assert_null(review(&f, &old).warning);
    f.s.activity = "Promoting"; /* the last stretch is not raised */
    f.d.min_ready_seconds = 5;
    assert_null(review(&f, &old).patch);
    end(&f);
}

TEST(lets_nobody_else_release_without_the_raise)
{
    struct fixture f;

    begin(&f);
    f.s.has_dead_man = true;
    put(&f, STEP_ADVANCING, 1, 0);
    assert_int_equal(ask(&f).verdict, SW_VERDICT_HOLD);
    f.t.is_raised = true;
    assert_int_equal(ask(&f).verdict, SW_VERDICT_FREE);
    f.t.updated = 1; /* now the raise would take the Pods that are there for unavailable */
    assert_int_equal(ask(&f).verdict, SW_VERDICT_HOLD);
    release(&f);
    assert_int_equal(ask(&f).verdict, SW_VERDICT_FREE);
    end(&f);
}

/* As one that comes under a coordination in the middle: they would wait for each other. */
TEST(lets_another_policy_that_holds_it_too_release_it_and_raises_at_admission)
{
    struct fixture f;
    struct sw_deployment old;

    begin(&f);
    f.s.has_dead_man = true;
    put(&f, STEP_ADVANCING, 1, 1);
    f.t.is_shared = true;
    assert_int_equal(ask(&f).verdict, SW_VERDICT_FREE);
    f.t.available = 9; /* not yet: Pods of the batch before are not there */
    assert_int_equal(ask(&f).verdict, SW_VERDICT_HOLD);
    f.t.available = 10;
    old = f.d;
    old.is_paused = true;
    release(&f);
    assert_int_equal(sw_json_size(review(&f, &old).patch), 3);
    end(&f);
}

TEST(lets_templates_pass_while_suspended_and_keeps_what_it_holds)
{
    struct fixture f;

    begin(&f);
    f.s.is_suspended = true;
    memcpy(f.t.hash, NEW, sizeof f.t.hash);
    assert_int_equal(ask(&f).verdict, SW_VERDICT_FREE);
    assert_true(ask(&f).rests_running);
    hold(&f);
    assert_int_equal(ask(&f).verdict, SW_VERDICT_HOLD_OUT_OF_LINE);
    f.s.is_suspended = false;
    f.t.is_ours = false;
    f.t.is_recreate = true; /* it has no steps */
    assert_int_equal(ask(&f).verdict, SW_VERDICT_FREE);
    end(&f);
}

TEST(has_no_say_on_its_way_out_but_of_a_failure)
{
    struct fixture f;

    begin(&f);
    f.s.meta.deleted_us = START_US;
    put(&f, STEP_ANALYSING, 1, 2);
    assert_int_equal(ask(&f).verdict, SW_VERDICT_FREE);
    f.s.failed_hash = NEW;
    assert_int_equal(ask(&f).verdict, SW_VERDICT_HOLD_OUT_OF_LINE);
    annotate(&f, STEP_ABORT, "release");
    assert_int_equal(ask(&f).verdict, SW_VERDICT_FREE);
    end(&f);
}

TEST(knows_nothing_of_one_that_is_made_just_now)
{
    struct fixture f;

    begin(&f);
    memcpy(f.t.hash, NEW, sizeof f.t.hash);
    f.d.meta.annotations.count = 0;
    assert_false(review(&f, NULL).is_selected);
    end(&f);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("stepping opinion", has_nothing_to_say_of_what_it_does_not_know),
        CASE("stepping opinion", lets_the_promoted_template_rest_running),
        CASE("stepping opinion", says_what_each_activity_means),
        CASE("stepping opinion", holds_out_of_line_only_while_somebody_is_to_be_asked),
        CASE("stepping opinion", gives_up_and_refuses_what_has_failed),
        CASE("stepping opinion", keeps_the_raise_against_a_manifest),
        CASE("stepping opinion", lets_nobody_else_release_without_the_raise),
        CASE("stepping opinion",
             lets_another_policy_that_holds_it_too_release_it_and_raises_at_admission),
        CASE("stepping opinion", lets_templates_pass_while_suspended_and_keeps_what_it_holds),
        CASE("stepping opinion", has_no_say_on_its_way_out_but_of_a_failure),
        CASE("stepping opinion", knows_nothing_of_one_that_is_made_just_now),
    };
    return RUN(tests);
}
