/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan, row by row of what is promised. What comes of the rows together is played in
 * test_world.c.
 */
#include "plan_fixture.h"

/* ---- the first sight, a new template ---- */

TEST(notes_a_complete_target_behind_its_finalizer)
{
    struct fixture f;

    begin(&f);
    f.s.phase = f.s.last_applied_hash = f.s.last_promoted_hash = f.s.promoted_revision = "";
    f.s.finalizers.count = 0;
    run(&f);
    assert_int_equal(need(&f, STEP_META)->has_finalizer, 1);
    assert_null(find(&f, STEP_HOLD));
    answer(&f, need(&f, STEP_META), SW_OK);
    f.s.finalizers.count = 1;
    run(&f);
    assert_non_null(find(&f, STEP_LOOK));
    look(&f, 0, 10);
    f.revisions[1].is_promoted = false;
    settle(&f);
    assert_string_equal(f.s.phase, "Initialized");
    assert_string_equal(f.s.last_promoted_hash, OLD);
    assert_string_equal(f.s.promoted_revision, "web-2");
    end(&f);
}

TEST(takes_new_defaults_for_no_new_template)
{
    struct fixture f;

    begin(&f);
    memcpy(f.t.hash, NEW, sizeof f.t.hash);
    look(&f, 10, 0);
    f.revisions[1].is_newest = true; /* its controller has made no other ReplicaSet */
    f.revisions[0].is_newest = false;
    settle(&f);
    assert_null(find(&f, STEP_HOLD));
    assert_string_equal(f.s.phase, "Initialized");
    assert_string_equal(f.s.last_promoted_hash, NEW);
    memcpy(f.t.hash, NEWER, sizeof f.t.hash);
    touch(&f);
    look(&f, 0, 10); /* and this one rolled while nobody looked */
    run(&f);
    assert_non_null(find(&f, STEP_HOLD));
    assert_string_equal(need(&f, STEP_STATUS)->status->activity, "Questions");
    end(&f);
}

TEST(waits_for_a_target_that_is_not_complete)
{
    struct fixture f;

    begin(&f);
    f.s.phase = f.s.last_promoted_hash = "";
    f.t.available = 9;
    look(&f, 0, 10);
    settle(&f);
    assert_string_equal(f.s.phase, "Initializing");
    assert_string_equal(f.s.last_promoted_hash, "");
    end(&f);
}

TEST(holds_a_new_template_before_anything_else)
{
    struct fixture f;

    begin(&f);
    memcpy(f.t.hash, NEW, sizeof f.t.hash);
    f.t.is_observed = false;
    run(&f);
    assert_int_equal(need(&f, STEP_HOLD)->stop, 0);
    assert_true(says(need(&f, STEP_STATUS), "Synced", "New revision detected!"));
    assert_string_equal(need(&f, STEP_STATUS)->status->activity, "Questions");
    assert_null(find(&f, STEP_ROUND));
    end(&f);
}

TEST(asks_before_its_turn_and_writes_before_it_releases)
{
    struct fixture f;

    begin(&f);
    put(&f, STEP_QUESTIONS, 0, 0);
    f.t.others = SW_VERDICT_HOLD; /* not its turn: asked all the same */
    settle(&f);
    end_round(&f, STEP_ROUND_CONFIRM_ROLLOUT, true);
    settle(&f);
    end_round(&f, STEP_ROUND_PRE_ROLLOUT, true);
    f.t.others = SW_VERDICT_FREE;
    run(&f);
    assert_null(find(&f, STEP_ADVANCE));
    store(&f);
    assert_string_equal(f.s.activity, "Advancing");
    assert_int_equal(f.s.stop, 2);
    assert_int_equal(f.s.current_step, 1);
    run(&f);
    assert_int_equal(need(&f, STEP_ADVANCE)->stop, 2);
    end(&f);
}

TEST(asks_again_each_interval_while_nobody_agrees)
{
    struct fixture f;

    begin(&f);
    put(&f, STEP_QUESTIONS, 0, 0);
    run(&f);
    end_round(&f, STEP_ROUND_CONFIRM_ROLLOUT, false);
    settle(&f);
    assert_string_equal(f.s.phase, "Waiting");
    assert_int_equal(f.s.failed_checks, 0);
    assert_null(find(&f, STEP_ROUND));
    assert_true(f.result.look_again_ms <= 10000);
    pass(&f, 600000); /* no deadline counts here */
    run(&f);
    assert_int_equal(need(&f, STEP_ROUND)->round, STEP_ROUND_CONFIRM_ROLLOUT);
    end(&f);
}

TEST(fails_by_pre_rollout_at_the_threshold)
{
    struct fixture f;

    begin(&f);
    put(&f, STEP_QUESTIONS, 0, 0);
    for (int i = 0; i < 2; i++) {
        settle(&f);
        if (f.round->round == STEP_ROUND_CONFIRM_ROLLOUT) {
            end_round(&f, STEP_ROUND_CONFIRM_ROLLOUT, true);
            settle(&f);
        }
        end_round(&f, STEP_ROUND_PRE_ROLLOUT, false);
        settle(&f);
        assert_int_equal(f.s.failed_checks, i + 1);
        pass(&f, 10000);
    }
    assert_string_equal(f.s.phase, "Failed");
    assert_string_equal(f.s.failed_hash, NEW);
    end(&f);
}

/* ---- steps ---- */

TEST(holds_at_the_stop_while_the_status_is_under_way)
{
    struct fixture f;

    begin(&f);
    put(&f, STEP_ADVANCING, 1, 1);
    release(&f);
    run(&f); /* a status is under way: updated 1/10 */
    assert_non_null(find(&f, STEP_STATUS));
    assert_null(find(&f, STEP_HOLD));
    f.t.updated = 2;
    touch(&f);
    run(&f);
    assert_non_null(find(&f, STEP_HOLD));
    assert_null(find(&f, STEP_STATUS));
    run(&f); /* one write at a time */
    assert_null(find(&f, STEP_HOLD));
    end(&f);
}

TEST(skips_a_step_that_a_batch_has_passed)
{
    struct fixture f;

    begin(&f);
    put(&f, STEP_ADVANCING, 1, 4); /* stop 2, and a batch of 2 */
    f.steps[1] = (struct sw_int_or_percent){4, false, true};
    run(&f);
    const struct step_action *action = need(&f, STEP_STATUS);
    assert_string_equal(action->status->activity, "Analysing");
    assert_int_equal(action->status->current_step, 2);
    assert_true(says(action, "StepReached", "Step 2/3"));
    assert_false(says(action, "StepMissed", ""));
    end(&f);
}

TEST(makes_the_checks_where_it_rolled_on_unseen)
{
    struct fixture f;

    begin(&f);
    put(&f, STEP_ADVANCING, 1, 10); /* all of them, while nobody looked */
    release(&f);
    run(&f);
    assert_non_null(find(&f, STEP_HOLD));
    assert_null(find(&f, STEP_ADVANCE));
    answer(&f, need(&f, STEP_HOLD), SW_OK);
    if (find(&f, STEP_STATUS))
        store(&f);
    hold(&f);
    run(&f);
    const struct step_action *action = need(&f, STEP_STATUS);
    assert_string_equal(action->status->activity, "Analysing");
    assert_int_equal(action->status->current_step, 2);
    assert_true(says(action, "StepMissed", "10 of 10 Pods are updated"));
    end(&f);
}

static void analyse(struct fixture *f, bool has_passed)
{
    settle(f);
    pass(f, 10000);
    run(f);
    end_round(f, STEP_ROUND_ANALYSIS, has_passed);
    settle(f);
}

TEST(passes_a_step_after_enough_rounds_in_a_row)
{
    struct fixture f;

    begin(&f);
    put(&f, STEP_ANALYSING, 1, 2);
    run(&f); /* ready: the first round comes an interval later */
    assert_null(find(&f, STEP_ROUND));
    analyse(&f, true);
    assert_int_equal(f.s.passed_rounds, 1);
    analyse(&f, false);
    assert_int_equal(f.s.passed_rounds, 0);
    assert_int_equal(f.s.failed_checks, 1);
    analyse(&f, true);
    forget(&f); /* a new leader loses none of it */
    analyse(&f, true);
    assert_int_equal(f.s.passed_rounds, 2);
    end_round(&f, STEP_ROUND_CONFIRM_STEP, true);
    run(&f);
    assert_true(says(need(&f, STEP_STATUS), "StepPassed", "Step 1/3"));
    store(&f);
    assert_string_equal(f.s.activity, "Advancing");
    assert_int_equal(f.s.current_step, 2);
    assert_int_equal(f.s.stop, 5);
    end(&f);
}

TEST(asks_for_the_promotion_before_the_last_step)
{
    struct fixture f;

    begin(&f);
    put(&f, STEP_ANALYSING, 2, 5);
    f.s.passed_rounds = 2;
    f.s.last_round_us = f.snapshot.wall_us;
    run(&f);
    end_round(&f, STEP_ROUND_CONFIRM_STEP, true);
    settle(&f);
    end_round(&f, STEP_ROUND_CONFIRM_PROMOTION, false);
    settle(&f);
    assert_string_equal(f.s.phase, "WaitingPromotion");
    pass(&f, 10000);
    run(&f);
    end_round(&f, STEP_ROUND_CONFIRM_PROMOTION, true);
    run(&f);
    store(&f);
    assert_string_equal(f.s.phase, "Promoting");
    run(&f);
    assert_int_equal(need(&f, STEP_ADVANCE)->stop, 10);
    end(&f);
}

TEST(does_not_analyse_before_its_pods_are_ready)
{
    struct fixture f;

    begin(&f);
    put(&f, STEP_ANALYSING, 1, 2);
    f.t.ready = 9;
    settle(&f);
    assert_non_null(find(&f, STEP_LOOK));
    look(&f, 8, 2);
    f.revisions[0].ready = 1;
    settle(&f);
    assert_int_equal(f.s.last_round_us, 0);
    f.revisions[0].ready = 2; /* the one that is not ready is an old one */
    settle(&f);
    assert_true(f.s.last_round_us > 0);
    end(&f);
}

TEST(fails_at_the_threshold_and_says_value_and_range)
{
    struct fixture f;

    begin(&f);
    put(&f, STEP_ANALYSING, 1, 2);
    f.s.failed_checks = 1;
    settle(&f);
    pass(&f, 10000);
    run(&f);
    end_round(&f, STEP_ROUND_ANALYSIS, false);
    run(&f);
    const struct step_action *action = need(&f, STEP_STATUS);
    assert_true(says(action, "CheckFailed", "errors: value 0.5, range <= 0.1: too many"));
    assert_string_equal(action->status->phase, "Failed");
    assert_string_equal(action->status->failed_hash, NEW);
    assert_string_equal(action->status->activity, "Retreating");
    assert_string_equal(action->status->checks[0].value, "0.5");
    end(&f);
}

TEST(fails_late_and_not_while_others_hold_it)
{
    struct fixture f;

    begin(&f);
    put(&f, STEP_ADVANCING, 1, 1);
    f.t.others = SW_VERDICT_HOLD;
    f.t.others_words = "position 2 of 3";
    f.t.others_owners = "coordination/a";
    pass(&f, 40000);
    settle(&f);
    assert_string_equal(f.s.phase, "Held");
    assert_string_equal(f.s.message, "held by coordination/a: position 2 of 3");
    pass(&f, 100000);
    settle(&f);
    assert_string_equal(f.s.phase, "Held");
    forget(&f);
    f.t.others = SW_VERDICT_FREE;
    settle(&f);
    assert_string_equal(f.s.phase, "Progressing");
    pass(&f, 19000); /* 40 s went before, 100 s did not count */
    settle(&f);
    assert_string_equal(f.s.phase, "Progressing");
    pass(&f, 2000);
    settle(&f);
    assert_string_equal(f.s.phase, "Failed");
    end(&f);
}

TEST(says_that_its_user_has_paused_it)
{
    struct fixture f;

    begin(&f);
    put(&f, STEP_ADVANCING, 1, 1);
    f.t.is_ours = false;
    f.t.is_users_pause = true;
    settle(&f);
    assert_string_equal(f.s.phase, "Held");
    assert_non_null(strstr(f.s.message, "spec.paused"));
    assert_null(find(&f, STEP_ADVANCE));
    end(&f);
}

TEST(succeeds_when_it_is_complete_and_tells)
{
    static const struct step_hook hook = {.type = STEP_POST_ROLLOUT};
    struct fixture f;

    begin(&f);
    put(&f, STEP_PROMOTING, 3, 10);
    f.spec.hooks = &hook;
    f.spec.hook_count = 1;
    release(&f);
    look(&f, 0, 10);
    run(&f);
    assert_true(says(need(&f, STEP_STATUS), "Promoted", "Promotion completed!"));
    store(&f);
    assert_string_equal(f.s.phase, "Succeeded");
    assert_string_equal(f.s.last_promoted_hash, NEW);
    assert_string_equal(f.s.promoted_revision, "web-2");
    run(&f);
    assert_true(need(&f, STEP_SETTLE)->has_marks);
    end_round(&f, STEP_ROUND_POST_ROLLOUT, false);
    settle(&f);
    assert_string_equal(f.s.phase, "Succeeded");
    assert_string_equal(f.s.activity, "");
    end(&f);
}

TEST(does_not_take_another_templates_revision_for_the_promoted_one)
{
    struct fixture f;

    begin(&f);
    put(&f, STEP_PROMOTING, 3, 10);
    release(&f);
    look(&f, 10, 0); /* a newer template's, which has no Pod yet */
    run(&f);
    assert_non_null(find(&f, STEP_LOOK));
    assert_string_not_equal(need(&f, STEP_STATUS)->status->phase, "Succeeded");
    look(&f, 0, 10);
    f.t.revisions_version = "t0";
    run(&f);
    assert_null(find(&f, STEP_SETTLE));
    end(&f);
}

TEST(starts_again_with_a_newer_template)
{
    struct fixture f;

    begin(&f);
    put(&f, STEP_ANALYSING, 2, 5);
    f.s.last_round_us = START_US;
    f.s.failed_checks = 1;
    settle(&f);
    run(&f);
    const struct step_action *round = find(&f, STEP_ROUND);
    memcpy(f.t.hash, NEWER, sizeof f.t.hash);
    run(&f);
    if (round)
        assert_non_null(find(&f, STEP_CANCEL));
    store(&f);
    assert_string_equal(f.s.activity, "Questions");
    assert_string_equal(f.s.last_applied_hash, NEWER);
    assert_int_equal(f.s.failed_checks, 0);
    assert_int_equal(f.s.current_step, 0);
    end(&f);
}

TEST(goes_where_the_stops_are_after_scaling)
{
    struct fixture f;

    begin(&f);
    put(&f, STEP_ANALYSING, 2, 5);
    f.s.last_round_us = f.snapshot.wall_us;
    f.t.replicas = f.t.status_replicas = f.t.ready = 20; /* 50 % are 10 now */
    settle(&f);
    assert_string_equal(f.s.activity, "Advancing");
    assert_int_equal(f.s.stop, 10);
    end(&f);
}

TEST(goes_back_to_steps_that_scaling_has_made)
{
    struct fixture f;

    begin(&f);
    f.t.replicas = 1;
    put(&f, STEP_PROMOTING, 1, 1);
    release(&f);
    f.t.replicas = 10;
    settle(&f);
    assert_string_equal(f.s.activity, "Advancing");
    assert_int_equal(f.s.current_step, 2);
    end(&f);
}

/* ---- by hand ---- */

TEST(promotes_a_step_once)
{
    struct fixture f;

    begin(&f);
    put(&f, STEP_ANALYSING, 1, 2);
    annotate(&f, STEP_PROMOTE, "step");
    run(&f);
    store(&f);
    assert_string_equal(f.s.activity, "Advancing");
    assert_int_equal(f.s.current_step, 2);
    forget(&f); /* who sees it next only takes it away */
    run(&f);
    assert_true(need(&f, STEP_META)->removes_promote);
    assert_null(find(&f, STEP_STATUS));
    end(&f);
}

TEST(promotes_to_the_end_from_a_failure)
{
    struct fixture f;

    begin(&f);
    put(&f, STEP_HELD, 1, 2);
    f.s.phase = "Failed";
    f.s.failed_hash = NEW;
    annotate(&f, STEP_PROMOTE, "full");
    run(&f);
    store(&f);
    assert_string_equal(f.s.phase, "Promoting");
    assert_string_equal(f.s.failed_hash, "");
    end(&f);
}

TEST(aborts_what_is_under_way_and_nothing_else)
{
    struct fixture f;

    begin(&f);
    annotate(&f, STEP_ABORT, "true");
    run(&f);
    assert_true(need(&f, STEP_META)->removes_abort);
    answer(&f, need(&f, STEP_META), SW_OK);
    put(&f, STEP_ADVANCING, 1, 1);
    release(&f);
    run(&f);
    assert_non_null(find(&f, STEP_HOLD));
    store(&f);
    assert_string_equal(f.s.phase, "Failed");
    assert_string_equal(f.s.message, "aborted by hand");
    end(&f);
}

TEST(forgets_the_failure_on_retry)
{
    struct fixture f;

    begin(&f);
    put(&f, STEP_RETREATED, 1, 0);
    f.s.phase = "Failed";
    f.s.failed_hash = NEW;
    annotate(&f, STEP_RETRY, "true");
    run(&f);
    store(&f);
    assert_string_equal(f.s.failed_hash, "");
    assert_string_equal(f.s.activity, "Questions");
    run(&f);
    assert_true(need(&f, STEP_META)->removes_retry);
    end(&f);
}

/* ---- failed ---- */

static void put_failed(struct fixture *f, enum step_activity activity, int32_t updated)
{
    put(f, activity, 1, updated);
    f->s.phase = "Failed";
    f->s.failed_hash = NEW;
    f->s.message = "because";
}

TEST(retreats_bite_by_bite)
{
    struct fixture f;

    begin(&f);
    put_failed(&f, STEP_RETREATING, 2);
    f.t.status_replicas = 12;
    look(&f, 10, 2);
    run(&f);
    const struct step_action *bite = need(&f, STEP_BITE);
    assert_string_equal(bite->name, "web-2");
    assert_int_equal(bite->size, 0);
    assert_string_equal(bite->resource_version, "r2");
    if (find(&f, STEP_STATUS))
        store(&f);
    answer(&f, bite, SW_OK);
    pass(&f, 100);
    f.t.revisions_age_ms = 200;
    run(&f); /* what was read before the bite does not count */
    assert_null(find(&f, STEP_BITE));
    pass(&f, 1000);
    f.t.revisions_age_ms = 1500;
    run(&f);
    assert_non_null(find(&f, STEP_LOOK));
    look(&f, 10, 0);
    f.t.updated = 0;
    settle(&f);
    assert_string_equal(f.s.activity, "Retreated");
    assert_string_equal(f.s.phase, "Failed");
    end(&f);
}

TEST(goes_on_by_what_took_long_to_read)
{
    struct fixture f;

    begin(&f);
    put_failed(&f, STEP_RETREATING, 2);
    look(&f, 10, 2);
    f.t.revisions_age_ms = 60000;
    f.t.revisions_idle_ms = 11000;
    settle(&f);
    assert_null(f.bite);
    assert_non_null(find(&f, STEP_LOOK));
    f.t.revisions_idle_ms = 0;
    settle(&f);
    assert_non_null(f.bite);
    end(&f);
}

TEST(is_stuck_when_it_comes_out_differently_twice)
{
    struct fixture f;

    begin(&f);
    put_failed(&f, STEP_RETREATING, 8);
    for (int i = 0; i < 2; i++) {
        look(&f, 4 - i, 8 + i);
        settle(&f);
        assert_non_null(f.bite);
        answer(&f, f.bite, SW_OK);
        f.bite = NULL;
        pass(&f, 100);
        f.t.revisions_age_ms = 200;
        settle(&f); /* what was read before does not count any more */
        assert_null(f.bite);
        pass(&f, 100);
    }
    look(&f, 2, 10); /* twice not what it was to become */
    run(&f);
    assert_true(says(need(&f, STEP_STATUS), "RetreatStuck", "held where it is"));
    store(&f);
    assert_string_equal(f.s.activity, "Held");
    end(&f);
}

/* What is read until then is of before the bite: the sizes that the controller left alone. */
TEST(is_not_stuck_because_a_bite_is_answered_late)
{
    struct fixture f;

    begin(&f);
    put_failed(&f, STEP_RETREATING, 8);
    for (int i = 0; i < 3; i++) {
        look(&f, 4 + 2 * i, 8 - 2 * i);
        settle(&f);
        assert_non_null(f.bite);
        for (int j = 0; j < 3; j++) {
            pass(&f, 1000);
            look(&f, 4 + 2 * i, 8 - 2 * i);
            settle(&f);
            assert_string_equal(f.s.activity, "Retreating");
        }
        answer(&f, f.bite, SW_OK);
        f.bite = NULL;
        pass(&f, 1000);
    }
    end(&f);
}

TEST(rolls_back_where_a_retreat_is_impossible)
{
    struct fixture f;

    begin(&f);
    put_failed(&f, STEP_RETREATING, 10);
    look(&f, 0, 10);
    settle(&f);
    assert_string_equal(f.s.activity, "RollingBack");
    run(&f);
    assert_non_null(find(&f, STEP_HOLD) ? NULL : &f);
    end(&f);
}

TEST(puts_the_promoted_template_back)
{
    struct fixture f;

    begin(&f);
    put_failed(&f, STEP_ROLLING_BACK, 2);
    look(&f, 10, 2);
    run(&f);
    assert_string_equal(need(&f, STEP_ROLL_BACK)->name, "web-1");
    answer(&f, need(&f, STEP_ROLL_BACK), SW_OK);
    if (find(&f, STEP_STATUS))
        store(&f);
    memcpy(f.t.hash, OLD, sizeof f.t.hash);
    f.t.updated = 10;
    f.t.available = 9;
    touch(&f);
    run(&f);
    assert_non_null(find(&f, STEP_SETTLE));
    if (find(&f, STEP_STATUS))
        store(&f);
    f.t.available = 10;
    run(&f);
    assert_true(says(need(&f, STEP_STATUS), "RolledBack", "last promoted template"));
    store(&f);
    assert_string_equal(f.s.activity, "RolledBack");
    assert_string_equal(f.s.phase, "Failed");
    end(&f);
}

TEST(says_when_it_cannot_be_put_back)
{
    struct fixture f;

    begin(&f);
    put_failed(&f, STEP_ROLLING_BACK, 2);
    look(&f, 10, 2);
    f.revisions[1].is_promoted = false;
    run(&f);
    assert_true(says(need(&f, STEP_STATUS), "RollbackFailed", "web-1"));
    store(&f);
    assert_string_equal(f.s.activity, "Held");
    end(&f);
}

TEST(stays_where_it_is_if_so_wished)
{
    struct fixture f;

    begin(&f);
    f.spec.on_failure = STEP_STAY;
    put(&f, STEP_ADVANCING, 1, 1);
    settle(&f);
    pass(&f, 61000);
    settle(&f);
    assert_string_equal(f.s.phase, "Failed");
    assert_string_equal(f.s.activity, "Held");
    assert_null(find(&f, STEP_BITE));
    assert_null(find(&f, STEP_ROLL_BACK));
    assert_null(find(&f, STEP_ADVANCE));
    end(&f);
}

TEST(keeps_a_failed_template_that_is_applied_again)
{
    struct fixture f;

    begin(&f);
    put_failed(&f, STEP_ROLLED_BACK, 0);
    release(&f);
    run(&f);
    assert_non_null(find(&f, STEP_HOLD));
    assert_true(says(need(&f, STEP_STATUS), "Synced", "applied again"));
    store(&f);
    assert_string_equal(f.s.activity, "Held");
    assert_string_equal(f.s.phase, "Failed");
    end(&f);
}

/* ---- who may not ---- */

static const struct sw_condition *ready(const struct fixture *f)
{
    return sw_condition_get(&f->s.conditions, "Ready");
}

TEST(touches_nothing_with_an_invalid_spec)
{
    struct fixture f;

    begin(&f);
    put(&f, STEP_ADVANCING, 1, 2);
    release(&f);
    f.snapshot.spec = NULL;
    f.snapshot.spec_error = "spec.steps[0]: 101% is more than 100%";
    run(&f);
    assert_null(find(&f, STEP_HOLD));
    assert_null(find(&f, STEP_SETTLE));
    assert_true(says(need(&f, STEP_STATUS), "InvalidSpec", "spec.steps[0]"));
    store(&f);
    assert_string_equal(ready(&f)->status, "False");
    assert_string_equal(ready(&f)->reason, "InvalidSpec");
    end(&f);
}

TEST(leaves_the_target_to_the_oldest)
{
    struct fixture f;

    begin(&f);
    memcpy(f.t.hash, NEW, sizeof f.t.hash);
    f.t.updated = 0;
    f.snapshot.conflict = "older";
    run(&f);
    assert_null(find(&f, STEP_HOLD));
    assert_true(says(need(&f, STEP_STATUS), "Conflict", "older"));
    store(&f);
    assert_string_equal(ready(&f)->reason, "Conflict");
    end(&f);
}

TEST(refuses_what_has_no_steps)
{
    struct fixture f;

    begin(&f);
    memcpy(f.t.hash, NEW, sizeof f.t.hash);
    f.t.is_recreate = true;
    settle(&f);
    assert_null(find(&f, STEP_HOLD));
    assert_string_equal(ready(&f)->reason, "InvalidSpec");
    f.t.is_recreate = false;
    f.t.unavailable = 8; /* with surge 2 all of it */
    settle(&f);
    assert_string_equal(ready(&f)->reason, "InvalidSpec");
    assert_non_null(strstr(ready(&f)->message, "maxSurge"));
    end(&f);
}

TEST(leaves_no_mark_on_what_has_no_steps)
{
    struct fixture f;

    begin(&f);
    f.t.is_recreate = true; /* at its promoted template, and marked from before */
    run(&f);
    assert_false(need(&f, STEP_SETTLE)->has_marks);
    answer(&f, need(&f, STEP_SETTLE), SW_OK);
    touch(&f);
    f.d.meta.annotations.count = 0;
    settle(&f);
    assert_null(find(&f, STEP_SETTLE));
    f.t.is_recreate = false;
    run(&f);
    assert_true(need(&f, STEP_SETTLE)->has_marks);
    end(&f);
}

TEST(says_that_there_is_no_target)
{
    struct fixture f;

    begin(&f);
    f.snapshot.target = NULL;
    f.snapshot.target_kinds_are_synced = false;
    run(&f);
    assert_null(f.result.actions);
    f.snapshot.target_kinds_are_synced = true;
    settle(&f);
    assert_string_equal(ready(&f)->reason, "TargetNotFound");
    assert_non_null(strstr(ready(&f)->message, "spec.targetRef"));
    end(&f);
}

TEST(does_nothing_while_suspended)
{
    struct fixture f;

    begin(&f);
    put(&f, STEP_ADVANCING, 1, 2);
    release(&f);
    f.s.is_suspended = true;
    settle(&f);
    assert_null(f.result.actions);
    assert_string_equal(f.s.phase, "Held");
    assert_non_null(strstr(f.s.message, "suspend"));
    end(&f);
}

TEST(takes_one_that_was_made_anew_as_never_seen)
{
    struct fixture f;

    begin(&f);
    memcpy(f.t.hash, NEW, sizeof f.t.hash);
    f.d.meta.created_us = START_US + 1000000;
    f.t.status_replicas = f.t.updated = f.t.available = 0;
    settle(&f);
    assert_null(find(&f, STEP_HOLD));
    assert_string_equal(f.s.phase, "Initializing");
    assert_string_equal(f.s.last_promoted_hash, "");
    end(&f);
}

/* ---- leaving ---- */

TEST(leaves_nothing_behind)
{
    struct fixture f;

    begin(&f);
    put(&f, STEP_ANALYSING, 1, 2);
    f.s.meta.deleted_us = START_US;
    run(&f);
    assert_false(need(&f, STEP_SETTLE)->has_marks);
    assert_null(find(&f, STEP_META));
    answer(&f, need(&f, STEP_SETTLE), SW_OK);
    touch(&f);
    f.t.is_held = f.t.is_ours = false;
    f.d.meta.annotations.count = 0;
    run(&f);
    assert_int_equal(need(&f, STEP_META)->has_finalizer, 0);
    end(&f);
}

TEST(stays_while_it_would_let_a_bad_template_roll)
{
    struct fixture f;

    begin(&f);
    put_failed(&f, STEP_RETREATED, 0);
    f.s.meta.deleted_us = START_US;
    settle(&f);
    assert_null(find(&f, STEP_SETTLE));
    assert_null(find(&f, STEP_META));
    assert_string_equal(ready(&f)->reason, "FailedTemplate");
    assert_non_null(strstr(ready(&f)->message, STEP_ABORT "=release"));
    annotate(&f, STEP_ABORT, "release");
    run(&f);
    assert_false(need(&f, STEP_SETTLE)->has_marks);
    end(&f);
}

TEST(a_status_that_is_written_late_begins_no_second_retreat)
{
    struct fixture f;

    begin(&f);
    put_failed(&f, STEP_RETREATED, 1);
    f.s.replicas = f.t.replicas;
    look(&f, 5, 0);
    settle(&f);
    assert_null(find(&f, STEP_BITE));
    assert_string_equal(f.s.activity, "Retreated");
    look(&f, 4, 2);
    touch(&f);
    run(&f);
    store(&f);
    assert_string_equal(f.s.activity, "Retreating");
    end(&f);
}

/* ---- deadMan ---- */

TEST(raises_with_each_release_but_the_last)
{
    struct fixture f;

    begin(&f);
    f.s.has_dead_man = true;
    put(&f, STEP_ADVANCING, 2, 2);
    run(&f);
    assert_true(need(&f, STEP_ADVANCE)->is_raised);
    end(&f);
    begin(&f);
    f.s.has_dead_man = true;
    put(&f, STEP_PROMOTING, 3, 5);
    run(&f);
    assert_false(need(&f, STEP_ADVANCE)->is_raised);
    end(&f);
}

TEST(holds_when_a_batch_is_used_up_and_waits_for_it)
{
    struct fixture f;

    begin(&f);
    f.s.has_dead_man = true;
    put(&f, STEP_ADVANCING, 2, 4);
    release(&f);
    f.t.is_raised = f.t.has_saved = true;
    f.t.status_replicas = 12;
    f.t.available = 9;
    f.t.unavailable = 0;
    run(&f);
    assert_non_null(find(&f, STEP_HOLD));
    assert_false(need(&f, STEP_HOLD)->is_raised);
    answer(&f, need(&f, STEP_HOLD), SW_OK);
    if (find(&f, STEP_STATUS))
        store(&f);
    hold(&f);
    pass(&f, 5000);
    settle(&f);
    assert_null(find(&f, STEP_ADVANCE));
    f.t.available = 12;
    touch(&f);
    run(&f);
    assert_true(need(&f, STEP_ADVANCE)->is_raised);
    end(&f);
}

TEST(raises_before_others_may_release_it)
{
    struct fixture f;

    begin(&f);
    f.s.has_dead_man = true;
    put(&f, STEP_ADVANCING, 1, 0);
    f.t.others = SW_VERDICT_HOLD;
    run(&f);
    assert_true(need(&f, STEP_HOLD)->is_raised);
    assert_null(find(&f, STEP_ADVANCE));
    end(&f);
}

/* ---- the other kinds ---- */

TEST(moves_a_partition_to_the_stop)
{
    struct fixture f;

    begin(&f);
    f.t.kind = STEP_STATEFUL_SET;
    f.t.surge = 0;
    f.t.unavailable = 1;
    put(&f, STEP_ADVANCING, 2, 2);
    f.t.has_saved = true;
    f.t.allowed = 2;
    run(&f);
    assert_int_equal(need(&f, STEP_ADVANCE)->stop, 5);
    end(&f);
    begin(&f);
    f.t.kind = STEP_STATEFUL_SET;
    put(&f, STEP_ANALYSING, 1, 2);
    f.t.has_saved = true;
    f.t.replicas = f.t.status_replicas = f.t.ready = 12;
    f.t.allowed = 4; /* scaled up by two: they are to be new */
    run(&f);
    assert_int_equal(need(&f, STEP_HOLD)->stop, 2);
    end(&f);
}

TEST(deletes_pods_of_a_daemon_set)
{
    struct fixture f;

    begin(&f);
    f.t.kind = STEP_DAEMON_SET;
    f.t.surge = 0;
    f.t.unavailable = 1;
    put(&f, STEP_ADVANCING, 2, 2);
    f.t.has_saved = true;
    run(&f);
    assert_int_equal(need(&f, STEP_ADVANCE)->pods, 3);
    assert_int_equal(need(&f, STEP_ADVANCE)->stop, 5);
    end(&f);
}

TEST(takes_a_stateful_set_back_pod_by_pod)
{
    struct fixture f;

    begin(&f);
    f.t.kind = STEP_STATEFUL_SET;
    f.t.surge = 0;
    f.t.unavailable = 1;
    put_failed(&f, STEP_RETREATING, 2);
    f.t.has_saved = true;
    f.t.allowed = 2;
    run(&f);
    assert_int_equal(need(&f, STEP_HOLD)->stop, 0);
    answer(&f, need(&f, STEP_HOLD), SW_OK);
    if (find(&f, STEP_STATUS))
        store(&f);
    f.t.allowed = 0;
    touch(&f);
    look(&f, 8, 2);
    run(&f);
    assert_int_equal(need(&f, STEP_BITE)->pods, 1);
    assert_string_equal(need(&f, STEP_BITE)->name, "web-1");
    end(&f);
}

/* As after a template that was rolled out while nobody looked, and was not promoted. */
TEST(deletes_no_pod_that_would_come_back_in_a_third_revision)
{
    struct fixture f;
    struct step_revision revisions[3];

    begin(&f);
    f.t.kind = STEP_STATEFUL_SET;
    f.t.surge = 0;
    f.t.unavailable = 1;
    put_failed(&f, STEP_RETREATING, 2);
    f.t.has_saved = true;
    look(&f, 0, 2);
    revisions[0] = f.revisions[0];
    revisions[1] = f.revisions[1];
    revisions[1].name = "web-between";
    revisions[1].pods = revisions[1].ready = revisions[1].available = 8;
    revisions[1].is_promoted = false;
    revisions[1].is_current = true;
    revisions[2] = f.revisions[1];
    f.t.revisions = revisions;
    f.t.revision_count = 3;
    run(&f);
    assert_null(find(&f, STEP_BITE));
    assert_true(says(need(&f, STEP_STATUS), "Synced", "would come back in revision web-between"));
    store(&f);
    assert_string_equal(f.s.activity, "RollingBack");
    end(&f);
}

/* ---- answers ---- */

TEST(waits_for_another_version_after_a_conflict)
{
    struct fixture f;

    begin(&f);
    f.t.updated = 0;
    memcpy(f.t.hash, NEW, sizeof f.t.hash);
    run(&f);
    answer(&f, need(&f, STEP_HOLD), SW_CONFLICT);
    run(&f);
    assert_null(find(&f, STEP_HOLD));
    touch(&f);
    run(&f);
    assert_non_null(find(&f, STEP_HOLD));
    end(&f);
}

TEST(tries_again_more_and_more_slowly)
{
    struct fixture f;
    uint64_t before = 0;

    begin(&f);
    f.t.updated = 0;
    memcpy(f.t.hash, NEW, sizeof f.t.hash);
    for (int i = 0; i < 6; i++) {
        run(&f);
        answer(&f, need(&f, STEP_HOLD), SW_UNKNOWN);
        if (find(&f, STEP_STATUS))
            store(&f);
        run(&f);
        assert_null(find(&f, STEP_HOLD));
        assert_true(f.result.look_again_ms > before);
        before = f.result.look_again_ms;
        pass(&f, before);
    }
    end(&f);
}

TEST(does_not_count_a_round_twice_whose_answer_was_lost)
{
    struct fixture f;

    begin(&f);
    put(&f, STEP_ANALYSING, 1, 2);
    settle(&f);
    pass(&f, 10000);
    run(&f);
    end_round(&f, STEP_ROUND_ANALYSIS, true);
    run(&f);
    const struct step_action *action = need(&f, STEP_STATUS);
    store(&f); /* it was written ... */
    assert_int_equal(f.s.passed_rounds, 1);
    end(&f);
    begin(&f);
    put(&f, STEP_ANALYSING, 1, 2);
    settle(&f);
    pass(&f, 10000);
    run(&f);
    end_round(&f, STEP_ROUND_ANALYSIS, true);
    run(&f);
    action = need(&f, STEP_STATUS);
    f.s.passed_rounds = action->status->passed_rounds;
    f.s.last_round_us = action->status->last_round_us;
    f.s.meta.resource_version = "other";
    answer(&f, action, SW_UNKNOWN); /* ... and here nobody knows whether */
    pass(&f, 5000);
    settle(&f);
    assert_int_equal(f.s.passed_rounds, 1);
    end(&f);
    /* It is tried again before what was written is seen. */
    begin(&f);
    put(&f, STEP_ANALYSING, 1, 2);
    settle(&f);
    pass(&f, 10000);
    run(&f);
    end_round(&f, STEP_ROUND_ANALYSIS, true);
    run(&f);
    action = need(&f, STEP_STATUS);
    answer(&f, action, SW_UNKNOWN);
    run(&f);
    pass(&f, 5000);
    run(&f);
    const struct step_action *again = need(&f, STEP_STATUS);
    f.s.passed_rounds = action->status->passed_rounds;
    f.s.last_round_us = action->status->last_round_us;
    f.s.meta.resource_version = "other";
    answer(&f, again, SW_CONFLICT);
    run(&f);
    pass(&f, 2000);
    settle(&f);
    assert_int_equal(f.s.passed_rounds, 1);
    end(&f);
}

/* ---- the status ---- */

TEST(writes_a_status_that_deletes_what_is_gone)
{
    static const struct step_check check = {"errors", "metric", "0.5", "<= 1", true, START_US, ""};
    struct fixture f;

    begin(&f);
    f.s.message = "old";
    f.s.failed_hash = NEW;
    f.s.step_started_us = START_US;
    struct step_status status = {.phase = "Progressing",
                                 .activity = "Analysing",
                                 .message = "",
                                 .current_step = 1,
                                 .step_count = 3,
                                 .stop = 2,
                                 .updated_replicas = 2,
                                 .replicas = 10,
                                 .passed_rounds = 1,
                                 .last_applied_hash = NEW,
                                 .last_promoted_hash = OLD,
                                 .failed_hash = "",
                                 .promoted_revision = "web-1",
                                 .checks = &check,
                                 .check_count = 1,
                                 .conditions = {{.type = "Ready",
                                                 .status = "True",
                                                 .reason = "Ready",
                                                 .message = "",
                                                 .last_transition_us = START_US},
                                                {.type = ""}}};
    const struct sw_json *patch = step_status_patch(f.arena, &status, &f.s);
    const struct sw_json *object = sw_json_get(patch, "status");
    assert_string_equal(sw_json_get_string(object, "phase"), "Progressing");
    assert_string_equal(sw_json_get_string(object, "step"), "1/3");
    assert_string_equal(sw_json_get_string(object, "updated"), "2/10");
    assert_int_equal(sw_json_get_int(object, "iterations", -1), 1);
    assert_int_equal(sw_json_type(sw_json_get(object, "message")), SW_JSON_NULL);
    assert_non_null(sw_json_get(object, "message"));
    assert_non_null(sw_json_get(object, "failedHash"));
    assert_non_null(sw_json_get(object, "stepStartedAt"));
    assert_null(sw_json_get(object, "lastRoundAt"));
    assert_int_equal(sw_json_size(sw_json_get(object, "conditions")), 1);
    const struct sw_json *entry = sw_json_element(sw_json_get(object, "checks"), 0);
    assert_string_equal(sw_json_get_string(entry, "range"), "<= 1");
    assert_true(sw_json_get_bool(entry, "passed", false));
    assert_string_equal(sw_json_get_string(entry, "at"), "2023-11-14T22:13:20Z");
    end(&f);
}

TEST(words_the_condition_promoted_as_flagger_does)
{
    static const struct {
        enum step_activity activity;
        const char *phase, *status;
    } rows[] = {
        {STEP_ADVANCING, "Progressing", "Unknown"},
        {STEP_PROMOTING, "Promoting", "Unknown"},
        {STEP_HELD, "Failed", "False"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture f;
        begin(&f);
        put(&f, rows[i].activity, rows[i].activity == STEP_PROMOTING ? 3 : 1, 1);
        f.s.phase = rows[i].phase;
        f.s.failed_hash = rows[i].activity == STEP_HELD ? NEW : "";
        settle(&f);
        const struct sw_condition *promoted = sw_condition_get(&f.s.conditions, "Promoted");
        assert_string_equal(promoted->reason, rows[i].phase);
        assert_string_equal(promoted->status, rows[i].status);
        end(&f);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("stepping plan", notes_a_complete_target_behind_its_finalizer),
        CASE("stepping plan", takes_new_defaults_for_no_new_template),
        CASE("stepping plan", waits_for_a_target_that_is_not_complete),
        CASE("stepping plan", holds_a_new_template_before_anything_else),
        CASE("stepping plan", asks_before_its_turn_and_writes_before_it_releases),
        CASE("stepping plan", asks_again_each_interval_while_nobody_agrees),
        CASE("stepping plan", fails_by_pre_rollout_at_the_threshold),
        CASE("stepping plan", holds_at_the_stop_while_the_status_is_under_way),
        CASE("stepping plan", skips_a_step_that_a_batch_has_passed),
        CASE("stepping plan", makes_the_checks_where_it_rolled_on_unseen),
        CASE("stepping plan", passes_a_step_after_enough_rounds_in_a_row),
        CASE("stepping plan", asks_for_the_promotion_before_the_last_step),
        CASE("stepping plan", does_not_analyse_before_its_pods_are_ready),
        CASE("stepping plan", fails_at_the_threshold_and_says_value_and_range),
        CASE("stepping plan", fails_late_and_not_while_others_hold_it),
        CASE("stepping plan", says_that_its_user_has_paused_it),
        CASE("stepping plan", succeeds_when_it_is_complete_and_tells),
        CASE("stepping plan", does_not_take_another_templates_revision_for_the_promoted_one),
        CASE("stepping plan", starts_again_with_a_newer_template),
        CASE("stepping plan", goes_where_the_stops_are_after_scaling),
        CASE("stepping plan", goes_back_to_steps_that_scaling_has_made),
        CASE("stepping plan", promotes_a_step_once),
        CASE("stepping plan", promotes_to_the_end_from_a_failure),
        CASE("stepping plan", aborts_what_is_under_way_and_nothing_else),
        CASE("stepping plan", forgets_the_failure_on_retry),
        CASE("stepping plan", retreats_bite_by_bite),
        CASE("stepping plan", goes_on_by_what_took_long_to_read),
        CASE("stepping plan", is_stuck_when_it_comes_out_differently_twice),
        CASE("stepping plan", is_not_stuck_because_a_bite_is_answered_late),
        CASE("stepping plan", rolls_back_where_a_retreat_is_impossible),
        CASE("stepping plan", puts_the_promoted_template_back),
        CASE("stepping plan", says_when_it_cannot_be_put_back),
        CASE("stepping plan", stays_where_it_is_if_so_wished),
        CASE("stepping plan", keeps_a_failed_template_that_is_applied_again),
        CASE("stepping plan", touches_nothing_with_an_invalid_spec),
        CASE("stepping plan", leaves_the_target_to_the_oldest),
        CASE("stepping plan", refuses_what_has_no_steps),
        CASE("stepping plan", leaves_no_mark_on_what_has_no_steps),
        CASE("stepping plan", says_that_there_is_no_target),
        CASE("stepping plan", does_nothing_while_suspended),
        CASE("stepping plan", takes_one_that_was_made_anew_as_never_seen),
        CASE("stepping plan", leaves_nothing_behind),
        CASE("stepping plan", stays_while_it_would_let_a_bad_template_roll),
        CASE("stepping plan", a_status_that_is_written_late_begins_no_second_retreat),
        CASE("stepping plan", raises_with_each_release_but_the_last),
        CASE("stepping plan", holds_when_a_batch_is_used_up_and_waits_for_it),
        CASE("stepping plan", raises_before_others_may_release_it),
        CASE("stepping plan", moves_a_partition_to_the_stop),
        CASE("stepping plan", deletes_pods_of_a_daemon_set),
        CASE("stepping plan", takes_a_stateful_set_back_pod_by_pod),
        CASE("stepping plan", deletes_no_pod_that_would_come_back_in_a_third_revision),
        CASE("stepping plan", waits_for_another_version_after_a_conflict),
        CASE("stepping plan", tries_again_more_and_more_slowly),
        CASE("stepping plan", does_not_count_a_round_twice_whose_answer_was_lost),
        CASE("stepping plan", writes_a_status_that_deletes_what_is_gone),
        CASE("stepping plan", words_the_condition_promoted_as_flagger_does),
    };
    return RUN(tests);
}
