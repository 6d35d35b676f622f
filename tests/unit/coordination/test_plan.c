/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan, sentence by sentence of its specification, on Deployments written down by hand. No
 * answer comes unless a test gives one: what is looked at is the one decision in question.
 */
#include "fixture.h"

#include "opinion.h"

/* ---- who is next ---- */

TEST(records_the_first_in_line_before_it_is_released)
{
    struct fixture *f = fixture_new();

    rest(f, 0);
    wait_(f, 1);
    wait_(f, 2);
    plan(f);
    const struct coord_action *record = assert_record(f, "n/d1");
    assert_null(action_on(f, "d1"));
    assert_int_equal(record->status->pending, 1);
    assert_int_equal(record->status->entries[1].position, 0);
    assert_int_equal(record->status->entries[2].position, 1);
    assert_string_equal(record->resource_version, "9");

    set_active(f, 1);
    f->c.turn = 1;
    f->c.meta.resource_version = "10";
    answer(f, record, SW_OK, "10");
    plan(f);
    assert_hold(f, "d1", SW_HOLD_RELEASE);
    assert_string_equal(must(f, "d1")->resource_version, f->subjects[1].version);
    assert_remarks(must(f, "d1")->remarks, "DeploymentActivated DeploymentUnpaused "
                                           "ActiveDeploymentChanged RolloutReleased");
    fixture_free(f);
}

TEST(records_again_when_the_chosen_one_has_changed)
{
    struct fixture *f = fixture_new();

    wait_(f, 0);
    plan(f);
    const struct coord_action *record = assert_record(f, "n/d0");
    set_active(f, 0);
    f->c.meta.resource_version = "10";
    answer(f, record, SW_OK, "10");
    touch(&f->subjects[0]);
    plan(f);
    assert_null(action_on(f, "d0"));
    assert_record(f, "n/d0");
    fixture_free(f);
}

TEST(a_new_leader_records_the_same_set_before_it_releases)
{
    struct fixture *f = fixture_new();

    wait_(f, 0);
    set_active(f, 0);
    plan(f);
    assert_record(f, "n/d0");
    assert_null(action_on(f, "d0"));
    fixture_free(f);
}

TEST(waits_until_everybody_is_marked)
{
    struct fixture *f = fixture_new();

    wait_(f, 0);
    rest(f, 1);
    strip(&f->subjects[1], SW_COORDINATED_BY);
    plan(f);
    assert_no_record(f);
    assert_hold(f, "d1", SW_HOLD_MARK);
    fixture_free(f);
}

TEST(waits_until_everybody_else_is_observed)
{
    struct fixture *f = fixture_new();

    wait_(f, 0);
    rest(f, 1);
    f->subjects[1].d.observed_generation = 2;
    plan(f);
    assert_no_record(f);
    fixture_free(f);
}

static const char *progressing_message(const struct fixture *f)
{
    assert_condition(f, "Progressing", "True", "DeploymentsPending");
    return status_of(f)->conditions[1].message;
}

static void refuse_status(struct fixture *f)
{
    static const char *const versions[] = {"20", "21", "22", "23", "24", "25"};
    static unsigned at;

    answer(f, must(f, "a"), SW_CONFLICT, "");
    f->c.meta.resource_version = versions[at++ % 6];
}

TEST(says_after_ten_seconds_for_whom_the_choice_waits)
{
    struct fixture *f = fixture_new();

    wait_(f, 0);
    rest(f, 1);
    rest(f, 2);
    f->subjects[1].d.observed_generation = 2;
    plan(f);
    assert_string_equal(progressing_message(f), "1 waiting");
    assert_int_equal(f->result.look_again_ms, 10000);
    refuse_status(f);
    f->snapshot.now_ms += 9999;
    plan(f);
    assert_string_equal(progressing_message(f), "1 waiting");
    assert_int_equal(f->result.look_again_ms, 1);
    refuse_status(f);
    f->snapshot.now_ms += 1;
    plan(f);
    assert_string_equal(progressing_message(f),
                        "1 waiting; the Deployment controller has not observed n/d1 yet");
    refuse_status(f);

    /* The text stays while it is in the way, whoever else is. */
    f->subjects[0].d.observed_generation = 2;
    plan(f);
    assert_string_equal(progressing_message(f),
                        "1 waiting; the Deployment controller has not observed n/d1 yet");
    refuse_status(f);

    /* Another one is named, but not within ten seconds. */
    f->subjects[0].d.observed_generation = f->subjects[1].d.observed_generation = 3;
    f->subjects[2].d.observed_generation = 2;
    f->subjects[2].d.is_paused = false;
    touch(&f->subjects[2]);
    plan(f);
    assert_int_equal(f->result.look_again_ms, 10000);
    refuse_status(f);
    f->snapshot.now_ms += 10000;
    plan(f);
    assert_string_equal(progressing_message(f),
                        "1 waiting; the Deployment controller has not observed n/d2 yet");
    refuse_status(f);

    /* It is over, and begins anew. */
    rest(f, 2);
    plan(f);
    assert_record(f, "n/d0");
    refuse_status(f);
    f->subjects[1].d.observed_generation = 2;
    f->subjects[1].d.meta.generation = 5;
    touch(&f->subjects[1]);
    plan(f);
    assert_string_equal(progressing_message(f), "1 waiting");
    fixture_free(f);
}

TEST(says_that_the_choice_waits_for_a_mark_or_for_the_one_that_would_be_next)
{
    struct fixture *f = fixture_new();

    wait_(f, 0);
    rest(f, 1);
    strip(&f->subjects[1], SW_COORDINATED_BY);
    plan(f);
    refuse_status(f);
    f->snapshot.now_ms += 10000;
    plan(f);
    assert_string_equal(progressing_message(f), "1 waiting; n/d1 is not marked yet");
    fixture_free(f);

    f = fixture_new();
    wait_(f, 0);
    plan(f);
    refuse_status(f);
    f->subjects[0].d.meta.generation = 5;
    f->subjects[0].d.template_hash.low = 3;
    touch(&f->subjects[0]);
    plan(f);
    refuse_status(f);
    f->snapshot.now_ms += 10000;
    plan(f);
    assert_string_equal(progressing_message(f),
                        "1 waiting; the Deployment controller has not observed n/d0 yet");
    fixture_free(f);
}

TEST(takes_the_lower_order_first)
{
    struct fixture *f = fixture_new();

    wait_(f, 0);
    wait_(f, 1);
    annotate(&f->subjects[1], SW_ORDER, "-1");
    plan(f);
    assert_record(f, "n/d1");
    fixture_free(f);
}

TEST(takes_first_whoever_had_no_turn_since_the_longest_began_to_wait)
{
    const struct coord_entry entries[] = {
        {.name = "n/d0",
         .has_pending_changes = true,
         .position = 1,
         .message = "",
         .failed_template = "",
         .started_us = 100 * INT64_C(1000000),
         .finished_us = 150 * INT64_C(1000000),
         .pending_since_us = 160 * INT64_C(1000000)},
        {.name = "n/d1",
         .has_pending_changes = true,
         .position = 2,
         .message = "",
         .failed_template = "",
         .pending_since_us = 120 * INT64_C(1000000)},
    };
    struct fixture *f = fixture_new();

    wait_(f, 0);
    wait_(f, 1);
    f->c.states = (struct sw_list){entries, 2};
    plan(f);
    assert_record(f, "n/d1");
    fixture_free(f);
}

static void set_waits(struct fixture *f, struct coord_entry entries[2], int64_t first_s,
                      int64_t second_s)
{
    for (size_t i = 0; i < 2; i++)
        entries[i] = (struct coord_entry){
            .name = full[i],
            .has_pending_changes = true,
            .position = (int32_t)i + 1,
            .message = "",
            .failed_template = "",
            .pending_since_us = (i ? second_s : first_s) * 1000000,
        };
    f->c.states = (struct sw_list){entries, 2};
}

TEST(a_skip_puts_it_behind_all_that_waited_at_that_time)
{
    static const struct {
        int64_t first_s, second_s;
        const char *next;
    } cases[] = {
        /* 1970-01-01T00:03:20Z is second 200 */
        {100, 150, "n/d1"}, /* the other waited */
        {100, 200, "n/d1"},
        {100, 201, "n/d0"}, /* came later: the order counts */
        {210, 190, "n/d1"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct coord_entry entries[2];
        struct fixture *f = fixture_new();
        wait_(f, 0);
        wait_(f, 1);
        annotate(&f->subjects[0], SW_SKIP, "1970-01-01T00:03:20Z");
        set_waits(f, entries, cases[i].first_s, cases[i].second_s);
        plan(f);
        assert_record(f, cases[i].next);
        fixture_free(f);
    }
}

TEST(whose_wait_began_in_the_second_in_which_its_turn_ended_is_not_last_for_ever)
{
    const struct coord_entry entries[] = {
        {.name = "n/d0",
         .has_pending_changes = true,
         .position = 1,
         .message = "",
         .failed_template = "",
         .started_us = 161 * INT64_C(1000000),
         .finished_us = 162 * INT64_C(1000000),
         .pending_since_us = 163 * INT64_C(1000000)},
        {.name = "n/d1",
         .has_pending_changes = true,
         .position = 2,
         .message = "",
         .failed_template = "",
         .started_us = 159 * INT64_C(1000000),
         .finished_us = 160 * INT64_C(1000000),
         .pending_since_us = 160 * INT64_C(1000000)},
    };
    struct fixture *f = fixture_new();

    wait_(f, 0);
    wait_(f, 1);
    f->c.states = (struct sw_list){entries, 2};
    plan(f);
    assert_record(f, "n/d1");
    fixture_free(f);
}

/* Two leaders with different clocks would else write the status in turns for ever. */
TEST(takes_over_when_the_wait_began_from_another_leader_that_saw_it_earlier)
{
    struct coord_entry entries[] = {
        {.name = "n/d0",
         .has_pending_changes = true,
         .position = 1,
         .message = "",
         .failed_template = "",
         .pending_since_us = INT64_C(1699999990000000)},
        {.name = "n/d1",
         .has_pending_changes = true,
         .position = 2,
         .message = "",
         .failed_template = "",
         .pending_since_us = INT64_C(1700000010000000)},
    };
    struct fixture *f = fixture_new();

    wait_(f, 0);
    wait_(f, 1);
    f->c.is_suspended = true;
    plan(f);
    assert_true(status_of(f)->entries[0].pending_since_us == INT64_C(1700000000000000));
    answer(f, must(f, "a"), SW_OK, "ours");
    f->c.states = (struct sw_list){entries, 2};
    f->c.meta.resource_version = "another";
    plan(f);
    assert_true(status_of(f)->entries[0].pending_since_us == entries[0].pending_since_us);
    assert_true(status_of(f)->entries[1].pending_since_us == INT64_C(1700000000000000));
    fixture_free(f);
}

TEST(passes_over_whoever_another_arbiter_holds)
{
    struct fixture *f = fixture_new();

    wait_(f, 0);
    wait_(f, 1);
    f->seen[0].others = SW_VERDICT_HOLD_OUT_OF_LINE;
    f->seen[0].others_owners = "user";
    plan(f);
    assert_record(f, "n/d1");
    assert_string_equal(status_of(f)->entries[0].message, "held by user");
    fixture_free(f);
}

TEST(leaves_a_users_pause_alone)
{
    struct fixture *f = fixture_new();

    wait_(f, 0);
    strip(&f->subjects[0], SW_HELD_BY);
    plan(f);
    assert_null(action_on(f, "d0"));
    assert_no_record(f);
    assert_string_equal(status_of(f)->entries[0].message, "paused by its owner");
    assert_int_equal(status_of(f)->pending, 0);
    fixture_free(f);
}

TEST(activates_nobody_while_suspended)
{
    struct fixture *f = fixture_new();

    wait_(f, 0);
    f->c.is_suspended = true;
    plan(f);
    assert_no_record(f);
    assert_condition(f, "Progressing", "False", "Suspended");
    fixture_free(f);
}

TEST(gives_as_many_places_as_max_active)
{
    struct fixture *f = fixture_new();

    for (size_t i = 0; i < 3; i++)
        wait_(f, i);
    f->c.max_active = 2;
    plan(f);
    assert_int_equal(assert_record(f, "n/d0")->status->active_count, 2);
    fixture_free(f);
}

/* ---- the guard ---- */

TEST(the_guard_waits_for_an_unavailable_peer)
{
    struct fixture *f = fixture_new();

    wait_(f, 0);
    rest(f, 1);
    f->subjects[1].d.available_replicas = 0;
    plan(f);
    assert_no_record(f);
    assert_condition(f, "Degraded", "True", "PeerUnavailable");
    assert_string_equal(must(f, "a")->remarks->reason, "RolloutHeld");
    assert_string_equal(must(f, "a")->remarks->next->reason, "ActivationBlocked");
    fixture_free(f);
}

TEST(the_guard_lets_the_unavailable_one_go_first)
{
    struct fixture *f = fixture_new();

    wait_(f, 0);
    wait_(f, 1);
    f->subjects[1].d.available_replicas = 0;
    plan(f);
    assert_record(f, "n/d1");
    fixture_free(f);
}

TEST(the_guard_can_be_turned_off)
{
    struct fixture *f = fixture_new();

    wait_(f, 0);
    rest(f, 1);
    f->subjects[1].d.available_replicas = 0;
    f->c.availability_guard = "Off";
    plan(f);
    assert_record(f, "n/d0");
    fixture_free(f);
}

/* ---- what is no rollout ---- */

TEST(a_lost_pod_takes_no_turn)
{
    struct fixture *f = fixture_new();

    rest(f, 0);
    f->subjects[0].d.available_replicas = 1;
    plan(f);
    assert_no_record(f);
    assert_int_equal(status_of(f)->pending, 0);
    assert_false(status_of(f)->entries[0].has_pending_changes);
    fixture_free(f);
}

TEST(scaling_takes_no_turn)
{
    struct fixture *f = fixture_new();

    rest(f, 0);
    plan(f);
    f->subjects[0].d.replicas = 5;
    f->subjects[0].d.meta.generation = 4;
    touch(&f->subjects[0]);
    plan(f);
    assert_no_record(f);
    fixture_free(f);
}

TEST(nothing_is_held_at_zero)
{
    struct fixture *f = fixture_new();

    rest(f, 0);
    f->subjects[0].d.replicas = f->subjects[0].d.status_replicas = 0;
    f->subjects[0].d.updated_replicas = f->subjects[0].d.available_replicas = 0;
    plan(f);
    assert_hold(f, "d0", SW_HOLD_FREE);
    fixture_free(f);
}

TEST(a_copied_revision_is_new_after_ten_seconds_without_pods)
{
    struct fixture *f = fixture_new();

    rest(f, 0);
    f->subjects[0].d.status_replicas = f->subjects[0].d.updated_replicas = 0;
    f->subjects[0].d.available_replicas = 0;
    plan(f);
    assert_no_record(f);
    assert_int_equal(f->result.look_again_ms, 10000);
    answer(f, must(f, "a"), SW_CONFLICT, "");
    f->c.meta.resource_version = "10";
    f->snapshot.now_ms += 10000;
    plan(f);
    assert_record(f, "n/d0");
    fixture_free(f);
}

/* ---- the turn ---- */

TEST(takes_back_and_records_and_releases_the_next)
{
    struct fixture *f = fixture_new();

    roll(f, 0);
    wait_(f, 1);
    set_active(f, 0);
    plan(f);
    assert_null(action_on(f, "d0"));
    answer(f, must(f, "a"), SW_CONFLICT, "");
    f->c.meta.resource_version = "10";
    finish(f, 0);
    plan(f);
    assert_hold(f, "d0", SW_HOLD_PAUSE);
    assert_null(action_on(f, "d1"));
    const struct coord_action *taken = must(f, "d0");
    assert_remarks(taken->remarks, "DeploymentPaused");

    /* Taken back; that it is not observed yet does not matter. */
    rest(f, 0);
    f->subjects[0].d.template_hash.low = 2;
    f->subjects[0].d.meta.generation = 4;
    answer(f, taken, SW_OK, f->subjects[0].version);
    plan(f);
    const struct coord_action *record = assert_record(f, "n/d1");
    assert_remarks(record->remarks, "ActiveDeploymentReady ActiveDeploymentCleared");
    fixture_free(f);
}

TEST(waits_min_ready_seconds_from_the_completion)
{
    struct fixture *f = fixture_new();

    f->c.min_ready_seconds = 30;
    roll(f, 0);
    set_active(f, 0);
    plan(f);
    finish(f, 0);
    plan(f);
    assert_null(action_on(f, "d0"));
    assert_int_equal(f->result.look_again_ms, 30000);
    f->snapshot.now_ms += 30000;
    plan(f);
    assert_hold(f, "d0", SW_HOLD_PAUSE);
    fixture_free(f);
}

TEST(scaling_does_not_start_the_wait_again)
{
    struct fixture *f = fixture_new();

    f->c.min_ready_seconds = 30;
    roll(f, 0);
    set_active(f, 0);
    plan(f);
    finish(f, 0);
    plan(f);
    f->snapshot.now_ms += 20000;
    f->subjects[0].d.replicas = 3;
    f->subjects[0].d.meta.generation = 4;
    touch(&f->subjects[0]);
    plan(f);
    f->subjects[0].d.replicas = 2;
    f->subjects[0].d.meta.generation = f->subjects[0].d.observed_generation = 5;
    touch(&f->subjects[0]);
    f->snapshot.now_ms += 10000;
    plan(f);
    assert_hold(f, "d0", SW_HOLD_PAUSE);
    fixture_free(f);
}

TEST(after_a_restart_the_wait_counts_from_what_the_controller_says)
{
    struct fixture *f = fixture_new();

    f->c.min_ready_seconds = 30;
    roll(f, 0);
    finish(f, 0);
    set_progressing(&f->subjects[0], "True", "NewReplicaSetAvailable",
                    f->snapshot.wall_us - 25 * INT64_C(1000000));
    set_active(f, 0);
    plan(f);
    assert_int_equal(f->result.look_again_ms, 5000);
    fixture_free(f);
}

TEST(rests_running_where_the_coordination_says_so)
{
    struct fixture *f = fixture_new();

    f->c.at_rest = "Running";
    roll(f, 0);
    finish(f, 0);
    set_active(f, 0);
    rest(f, 1);
    plan(f);
    assert_hold(f, "d0", SW_HOLD_TAKE_BACK);
    assert_hold(f, "d1", SW_HOLD_FREE);
    fixture_free(f);
}

TEST(asks_the_server_whether_the_active_one_is_gone)
{
    struct fixture *f = fixture_new();

    rest(f, 0);
    set_active(f, 1);
    plan(f);
    assert_int_equal(must(f, "d1")->type, COORD_GET_DEPLOYMENT);
    assert_no_record(f);
    answer(f, must(f, "d1"), SW_NOT_FOUND, "");
    plan(f);
    assert_record(f, "");
    fixture_free(f);
}

TEST(says_that_the_active_one_is_paused_by_its_owner)
{
    struct fixture *f = fixture_new();

    roll(f, 0);
    f->subjects[0].d.is_paused = true;
    set_active(f, 0);
    plan(f);
    assert_null(action_on(f, "d0"));
    assert_condition(f, "Degraded", "True", "PausedByUser");
    fixture_free(f);
}

static void hold(struct fixture *f, size_t i, const char *reason)
{
    annotate(&f->subjects[i], SW_HOLD_BY_USER, reason);
    annotate(&f->subjects[i], SW_HELD_BY, "user");
    f->subjects[i].d.is_paused = true;
    f->seen[i].others = SW_VERDICT_HOLD_OUT_OF_LINE;
    f->seen[i].others_owners = "user";
    f->seen[i].others_words = reason;
}

TEST(says_that_a_person_holds_the_active_one_in_the_middle_of_its_turn)
{
    struct fixture *f = fixture_new();

    roll(f, 0);
    wait_(f, 1);
    set_active(f, 0);
    hold(f, 0, "the database first");
    plan(f);
    assert_null(action_on(f, "d0"));
    assert_no_record(f);
    assert_condition(f, "Degraded", "True", "PausedByUser");
    assert_string_equal(
        status_of(f)->conditions[2].message,
        "n/d0 is held by slipway.dev/hold in the middle of its turn: the database first");
    assert_string_equal(status_of(f)->entries[0].message, "held by user: the database first");
    fixture_free(f);
}

TEST(one_that_is_held_before_its_release_loses_its_place)
{
    for (int is_suspended = 0; is_suspended < 2; is_suspended++) {
        struct fixture *f = fixture_new();
        wait_(f, 0);
        set_active(f, 0);
        f->c.is_suspended = is_suspended;
        if (!is_suspended)
            hold(f, 0, "freeze");
        plan(f);
        assert_hold(f, "d0", SW_HOLD_FENCE);
        assert_string_equal(must(f, "d0")->fence, "9");
        answer(f, must(f, "d0"), SW_OK, "");
        plan(f);
        const struct coord_action *record = assert_record(f, "");
        assert_string_equal(record->resource_version, "9");
        fixture_free(f);
    }
}

TEST(a_complete_one_finishes_its_turn_whoever_pauses_it_in_the_wait)
{
    for (int is_held = 0; is_held < 2; is_held++) {
        struct fixture *f = fixture_new();
        f->c.min_ready_seconds = 30;
        roll(f, 0);
        set_active(f, 0);
        plan(f);
        answer(f, must(f, "a"), SW_CONFLICT, "");
        f->c.meta.resource_version = "10";
        finish(f, 0);
        plan(f);
        answer(f, must(f, "a"), SW_CONFLICT, "");
        f->c.meta.resource_version = "11";
        /* Paused, and not observed yet. */
        f->subjects[0].d.is_paused = true;
        f->subjects[0].d.meta.generation = 4;
        if (is_held)
            hold(f, 0, "freeze");
        touch(&f->subjects[0]);
        plan(f);
        assert_condition(f, "Degraded", "False", "NoErrors");
        f->snapshot.now_ms += 30000;
        f->subjects[0].d.observed_generation = 4;
        plan(f);
        assert_hold(f, "d0", is_held ? SW_HOLD_PAUSE : SW_HOLD_TAKE_BACK);
        fixture_free(f);
    }
}

/* It needs a place in both coordinations, and waits for one that a person holds back. */
TEST(no_place_is_kept_for_one_that_waits_for_a_person)
{
    for (int is_held = 0; is_held < 2; is_held++) {
        struct fixture *f = fixture_new();
        char why[256];
        f->selector = sw_selector_free(f->selector);
        assert_int_equal(sw_selector_parse_text("a", &f->selector, why, sizeof why), 0);
        f->groups[0].selector = f->selector;
        with_other(f, "!only-a");
        roll(f, 0); /* a only */
        f->subjects[0].labels[0] = (struct sw_label){"a", "1"};
        f->subjects[0].labels[1] = (struct sw_label){"only-a", "1"};
        f->subjects[0].d.meta.labels = (struct sw_labels){f->subjects[0].labels, 2};
        wait_(f, 1); /* both */
        label(f, 1, "a");
        annotate(&f->subjects[1], SW_COORDINATED_BY, "a,b");
        annotate(&f->subjects[1], SW_HELD_BY, "coordination/a,coordination/b");
        wait_(f, 2); /* b only */
        annotate(&f->subjects[2], SW_COORDINATED_BY, "b");
        annotate(&f->subjects[2], SW_HELD_BY, "coordination/b");
        set_active(f, 0);
        if (is_held)
            hold(f, 0, "freeze");
        plan(f);
        assert_false(must(f, "a")->is_record);
        assert_true(must(f, "b")->is_record == is_held);
        if (is_held)
            assert_string_equal(must(f, "b")->status->active[0], "n/d2");
        fixture_free(f);
    }
}

/* ---- found rolling ---- */

TEST(pauses_what_is_found_rolling_while_another_is_active)
{
    struct fixture *f = fixture_new();

    roll(f, 0);
    roll(f, 1);
    strip(&f->subjects[1], SW_RELEASED_BY);
    set_active(f, 0);
    plan(f);
    assert_hold(f, "d1", SW_HOLD_PAUSE);
    fixture_free(f);
}

TEST(what_is_found_rolling_becomes_active_if_a_place_is_free)
{
    struct fixture *f = fixture_new();

    rest(f, 0);
    roll(f, 1);
    strip(&f->subjects[1], SW_RELEASED_BY);
    plan(f);
    assert_null(action_on(f, "d1"));
    assert_record(f, "n/d1");
    fixture_free(f);
}

/* ---- failure ---- */

TEST(stop_keeps_the_turn_of_one_that_has_failed)
{
    struct fixture *f = fixture_new();

    roll_and_fail(f, 0, f->snapshot.wall_us);
    wait_(f, 1);
    plan(f);
    assert_null(action_on(f, "d0"));
    assert_no_record(f);
    assert_condition(f, "Degraded", "True", "RolloutFailed");
    fixture_free(f);
}

TEST(skip_writes_down_the_failed_template_before_it_holds)
{
    struct fixture *f = fixture_new();

    f->c.failure_policy = "Skip";
    roll_and_fail(f, 0, f->snapshot.wall_us);
    wait_(f, 1);
    plan(f);
    assert_null(action_on(f, "d0"));
    const struct coord_action *written = must(f, "a");
    assert_false(written->is_record);
    assert_int_equal(strlen(written->status->entries[0].failed_template), 32);

    f->c.states = (struct sw_list){written->status->entries, written->status->entry_count};
    f->c.meta.resource_version = "10";
    answer(f, written, SW_OK, "10");
    plan(f);
    assert_hold(f, "d0", SW_HOLD_PAUSE);
    fixture_free(f);
}

TEST(has_a_deadline_of_its_own)
{
    struct fixture *f = fixture_new();

    roll(f, 0);
    set_active(f, 0);
    plan(f);
    assert_int_equal(f->result.look_again_ms, 600000);
    answer(f, must(f, "a"), SW_CONFLICT, "");
    f->c.meta.resource_version = "10";
    f->snapshot.now_ms += 600000;
    plan(f);
    assert_condition(f, "Degraded", "True", "RolloutFailed");
    fixture_free(f);
}

/* ---- what fails ---- */

TEST(what_has_failed_together_is_not_tried_again_together)
{
    uint64_t after[2];

    for (uint64_t i = 0; i < 2; i++) {
        struct fixture *f = fixture_new();
        rest(f, 0);
        strip(&f->subjects[0], SW_COORDINATED_BY);
        plan(f);
        answer(f, must(f, "a"), SW_OK, "9");
        answer(f, must(f, "d0"), SW_REFUSED, "");
        f->snapshot.random = i << 63;
        plan(f);
        assert_null(action_on(f, "d0"));
        after[i] = f->result.look_again_ms;
        assert_in_range(after[i], 200, 400);
        f->snapshot.now_ms += after[i];
        answer(f, must(f, "a"), SW_OK, "9");
        plan(f);
        assert_hold(f, "d0", SW_HOLD_MARK);
        fixture_free(f);
    }
    assert_int_not_equal(after[0], after[1]);
}

/* ---- who selects nothing, and who is gone ---- */

TEST(an_invalid_selector_is_reported)
{
    struct fixture *f = fixture_new();

    f->groups[0].selector = NULL;
    f->groups[0].selector_error = "is absent, so nothing is selected";
    plan(f);
    assert_condition(f, "Degraded", "True", "InvalidSelector");
    fixture_free(f);
}

TEST(members_of_a_deleted_coordination_are_freed_one_at_a_time)
{
    struct fixture *f = fixture_new();

    rest(f, 0);
    wait_(f, 1);
    wait_(f, 2);
    f->snapshot.group_count = 0;
    coord_saw_deleted(f->memory, "a");
    plan(f);
    for (size_t i = 0; i < 3; i++)
        assert_hold(f, names[i], SW_HOLD_FENCE);
    for (size_t i = 0; i < 3; i++)
        answer(f, must(f, names[i]), SW_OK, "");
    plan(f);
    assert_hold(f, "d0", SW_HOLD_FREE);
    assert_null(action_on(f, "d1"));
    answer(f, must(f, "d0"), SW_OK, "");
    rest(f, 0);
    strip(&f->subjects[0], SW_HELD_BY);
    strip(&f->subjects[0], SW_COORDINATED_BY);
    f->subjects[0].d.is_paused = false;
    plan(f);
    assert_hold(f, "d1", SW_HOLD_RELEASE);
    assert_null(action_on(f, "d2"));
    fixture_free(f);
}

/* A residual group of which one rolls and one waits, both written once by this leader. */
static struct fixture *residual(bool is_users)
{
    struct fixture *f = fixture_new();

    roll(f, 0);
    wait_(f, 1);
    f->subjects[0].d.is_paused = is_users;
    f->snapshot.group_count = 0;
    coord_saw_deleted(f->memory, "a");
    plan(f);
    for (size_t i = 0; i < 2; i++) {
        assert_hold(f, names[i], SW_HOLD_FENCE);
        answer(f, must(f, names[i]), SW_OK, "");
    }
    return f;
}

TEST(of_a_deleted_coordination_one_that_fails_is_freed_and_the_next_follows)
{
    struct fixture *f = residual(false);

    plan(f);
    assert_null(f->result.actions);
    set_progressing(&f->subjects[0], "False", "ProgressDeadlineExceeded", f->snapshot.wall_us);
    touch(&f->subjects[0]);
    plan(f);
    assert_hold(f, "d0", SW_HOLD_FREE);
    assert_null(action_on(f, "d1"));
    answer(f, must(f, "d0"), SW_OK, "");
    strip(&f->subjects[0], SW_RELEASED_BY);
    strip(&f->subjects[0], SW_COORDINATED_BY);
    touch(&f->subjects[0]);
    plan(f);
    assert_hold(f, "d1", SW_HOLD_RELEASE);
    fixture_free(f);
}

TEST(of_a_deleted_coordination_a_users_pause_stays)
{
    struct fixture *f = residual(true);

    plan(f);
    assert_hold(f, "d0", SW_HOLD_TAKE_BACK);
    assert_string_equal(must(f, "d0")->marks, "");
    fixture_free(f);
}

/* d1 was of both: d0 and d2 wait for each other, d3 waits for nobody. */
TEST(of_deleted_coordinations_that_overlapped_one_goes_at_a_time)
{
    static const char *const owners[] = {"coordination/a", "coordination/a,coordination/b",
                                         "coordination/b", "coordination/c"};
    struct fixture *f = fixture_new();

    for (size_t i = 0; i < 4; i++) {
        wait_(f, i);
        annotate(&f->subjects[i], SW_HELD_BY, owners[i]);
    }
    f->snapshot.group_count = 0;
    for (int i = 0; i < 3; i++)
        coord_saw_deleted(f->memory, (const char *[]){"a", "b", "c"}[i]);
    plan(f);
    for (size_t i = 0; i < 4; i++)
        answer(f, must(f, names[i]), SW_OK, "");
    plan(f);
    assert_hold(f, "d0", SW_HOLD_RELEASE);
    assert_null(action_on(f, "d1"));
    assert_null(action_on(f, "d2"));
    assert_hold(f, "d3", SW_HOLD_RELEASE);
    fixture_free(f);
}

TEST(a_coordination_missing_in_one_list_is_not_gone)
{
    struct fixture *f = fixture_new();

    rest(f, 0);
    f->snapshot.group_count = 0;
    plan(f);
    assert_null(f->result.actions);
    assert_int_equal(f->result.look_again_ms, 30000);
    f->snapshot.now_ms += 30000;
    f->snapshot.list_age_ms = 30000;
    plan(f);
    assert_true(f->result.wants_relist);
    f->snapshot.lists++;
    f->snapshot.list_age_ms = 0;
    plan(f);
    assert_hold(f, "d0", SW_HOLD_FENCE);
    fixture_free(f);
}

TEST(what_the_reference_has_paused_is_taken_over_first)
{
    struct fixture *f = fixture_new();

    wait_(f, 0);
    strip(&f->subjects[0], SW_HELD_BY);
    f->c.observed_generation = 0;
    f->c.deployments = (struct sw_strings){full, 1};
    plan(f);
    assert_hold(f, "d0", SW_HOLD_ADOPT);
    assert_null(action_on(f, "a"));
    fixture_free(f);
}

/* The reference resumes the active one whenever it looks, so a pause on it is not a person's. */
TEST(also_the_active_one_that_the_reference_has_left_paused_is_taken_over)
{
    struct fixture *f = fixture_new();

    wait_(f, 0);
    strip(&f->subjects[0], SW_HELD_BY);
    f->c.observed_generation = 0;
    f->c.deployments = (struct sw_strings){full, 1};
    set_active(f, 0);
    plan(f);
    assert_hold(f, "d0", SW_HOLD_ADOPT);
    assert_null(action_on(f, "a"));
    answer(f, must(f, "d0"), SW_OK, "");
    annotate(&f->subjects[0], SW_HELD_BY, "coordination/a");
    touch(&f->subjects[0]);
    plan(f);
    assert_record(f, "n/d0");
    fixture_free(f);
}

TEST(what_the_reference_did_not_select_is_a_persons_pause)
{
    struct fixture *f = fixture_new();

    wait_(f, 0);
    strip(&f->subjects[0], SW_HELD_BY);
    f->c.observed_generation = 0;
    plan(f);
    assert_null(action_on(f, "d0"));
    assert_int_equal(status_of(f)->observed_generation, 1);
    fixture_free(f);
}

/* ---- the status ---- */

TEST(an_absent_active_deployment_is_deleted_from_the_status)
{
    struct fixture *f = fixture_new();

    rest(f, 0);
    plan(f);
    set_active(f, 0);
    const struct sw_json *patch = coord_status_patch(f->arena, status_of(f), &f->c);
    const struct sw_json *status = sw_json_get(patch, "status");
    assert_int_equal(sw_json_type(sw_json_get(status, "activeDeployment")), SW_JSON_NULL);
    assert_int_equal(sw_json_size(sw_json_get(status, "deploymentStates")), 1);
    assert_int_equal(sw_json_size(sw_json_get(status, "conditions")), 3);
    assert_null(sw_json_get(status, "truncated"));
    fixture_free(f);
}

/* Each of them would be written for ever if it did not come back as it was sent. */
TEST(a_text_is_cut_between_characters)
{
    static const char euro[] = "\xe2\x82\xac";
    char reason[256];
    struct fixture *f = fixture_new();

    for (int before = 197; before <= 200; before++) {
        wait_(f, 0);
        snprintf(reason, sizeof reason, "%0*d%sand more", before, 0, euro);
        f->seen[0].others = SW_VERDICT_HOLD_OUT_OF_LINE;
        f->seen[0].others_owners = "user";
        f->seen[0].others_words = reason;
        f->groups[0].selector_error = reason;
        plan(f);
        const struct coord_action *written = must(f, "a");
        const char *message = written->status->entries[0].message;
        assert_string_equal(message + strlen(message) - 3, before == 197 ? euro : "000");
        answer(f, written, SW_OK, "9");
    }
    fixture_free(f);
}

TEST(half_a_character_of_a_selector_is_not_shown)
{
    struct fixture *f = fixture_new();

    f->groups[0].selector = NULL;
    f->groups[0].selector_error = "is not \xe2\x82";
    plan(f);
    assert_string_equal(status_of(f)->conditions[2].message, "spec.labelSelector: is not ");
    fixture_free(f);
}

TEST(half_a_character_of_an_answer_is_not_shown)
{
    char message[300];
    struct fixture *f = fixture_new();
    struct coord_answer what = {SW_REFUSED, "", message, ""};

    snprintf(message, sizeof message, "%0255d\xc3\xa9", 0);
    rest(f, 0);
    strip(&f->subjects[0], SW_COORDINATED_BY);
    plan(f);
    answer(f, must(f, "a"), SW_OK, "9");
    coord_answered(f->memory, must(f, "d0"), &what, f->arena);
    plan(f);
    assert_condition(f, "Degraded", "True", "Error");
    assert_int_equal(strlen(status_of(f)->conditions[2].message), strlen("d0: ") + 255);
    fixture_free(f);
}

/* That the coordination says so, as a Warning with the reason and with what the API server said. */
static void refuse(struct fixture *f, const char *name, const char *reason)
{
    const struct coord_answer what = {SW_REFUSED, "Forbidden", "not allowed", ""};
    const struct coord_remark *said = coord_answered(f->memory, must(f, name), &what, f->arena);
    char message[32];

    assert_remarks(said, reason);
    assert_true(said->is_of_coordination);
    assert_string_equal(said->name, "a");
    assert_int_equal(said->type, SW_WARNING);
    snprintf(message, sizeof message, "%s: not allowed", name);
    assert_string_equal(said->message, message);
}

/* d0 is chosen, and that is recorded. */
static void record_d0(struct fixture *f)
{
    plan(f);
    const struct coord_action *record = assert_record(f, "n/d0");
    set_active(f, 0);
    f->c.turn = 1;
    f->c.meta.resource_version = "10";
    answer(f, record, SW_OK, "10");
    plan(f);
}

static void pass_back_off(struct fixture *f)
{
    assert_true(f->result.look_again_ms <= 60000);
    f->snapshot.now_ms += f->result.look_again_ms;
    plan(f);
}

TEST(a_refused_pause_is_said_as_pause_failed)
{
    struct fixture *f = fixture_new();

    rest(f, 0);
    f->subjects[0].d.is_paused = false;
    strip(&f->subjects[0], SW_HELD_BY);
    plan(f);
    assert_hold(f, "d0", SW_HOLD_PAUSE);
    refuse(f, "d0", "PauseFailed");
    fixture_free(f);
}

TEST(a_refused_take_back_is_said_as_pause_failed)
{
    struct fixture *f = fixture_new();

    roll(f, 0);
    set_active(f, 0);
    plan(f);
    answer(f, must(f, "a"), SW_CONFLICT, "");
    f->c.meta.resource_version = "10";
    finish(f, 0);
    plan(f);
    assert_hold(f, "d0", SW_HOLD_PAUSE);
    refuse(f, "d0", "PauseFailed");
    fixture_free(f);
}

TEST(a_refused_end_of_a_hold_is_said_as_unpause_failed)
{
    struct fixture *f = fixture_new();

    f->c.at_rest = "Running";
    rest(f, 0);
    plan(f);
    assert_hold(f, "d0", SW_HOLD_FREE);
    refuse(f, "d0", "UnpauseFailed");
    fixture_free(f);
}

TEST(a_refused_release_is_said_as_unpause_failed)
{
    struct fixture *f = fixture_new();

    wait_(f, 0);
    record_d0(f);
    assert_hold(f, "d0", SW_HOLD_RELEASE);
    refuse(f, "d0", "UnpauseFailed");
    fixture_free(f);
}

TEST(a_refused_release_of_one_that_rolls_already_is_said_as_activation_failed)
{
    struct fixture *f = fixture_new();

    roll(f, 0);
    strip(&f->subjects[0], SW_RELEASED_BY);
    record_d0(f);
    assert_hold(f, "d0", SW_HOLD_RELEASE);
    refuse(f, "d0", "ActivationFailed");
    fixture_free(f);
}

TEST(a_refused_status_is_said_as_status_update_failed)
{
    struct fixture *f = fixture_new();

    wait_(f, 0);
    plan(f);
    assert_record(f, "n/d0");
    refuse(f, "a", "StatusUpdateFailed");
    fixture_free(f);
}

TEST(a_lost_answer_to_a_status_is_said_when_it_happens_twice_in_a_row)
{
    const struct coord_answer lost = {SW_UNKNOWN, "", "", ""}, read = {SW_OK, "", "", "9"};
    struct fixture *f = fixture_new();

    wait_(f, 0);
    plan(f);
    assert_null(coord_answered(f->memory, must(f, "a"), &lost, f->arena));
    plan(f);
    pass_back_off(f);
    assert_int_equal(must(f, "a")->type, COORD_GET_COORDINATION);
    coord_answered(f->memory, must(f, "a"), &read, f->arena);
    plan(f);
    assert_record(f, "n/d0");
    assert_remarks(coord_answered(f->memory, must(f, "a"), &lost, f->arena), "StatusUpdateFailed");
    fixture_free(f);
}

/* The status beside a step of the chain, or after it. */
static void take_status(struct fixture *f, const char *version)
{
    answer(f, must(f, "a"), SW_OK, version);
    f->c.meta.resource_version = version;
}

TEST(an_action_that_failed_is_an_error_in_all_conditions_until_it_succeeds)
{
    struct fixture *f = fixture_new();

    wait_(f, 0);
    record_d0(f);
    take_status(f, "11");
    refuse(f, "d0", "UnpauseFailed");
    plan(f);
    assert_condition(f, "Ready", "False", "Error");
    assert_condition(f, "Progressing", "False", "Error");
    assert_condition(f, "Degraded", "True", "Error");
    for (uint32_t i = 0; i < 3; i++)
        assert_string_equal(status_of(f)->conditions[i].message, "d0: not allowed");
    assert_null(action_on(f, "d0"));
    take_status(f, "12");
    pass_back_off(f);
    assert_record(f, "n/d0");
    assert_condition(f, "Ready", "False", "Error");
    take_status(f, "13");
    f->c.turn = 2;
    plan(f);
    assert_hold(f, "d0", SW_HOLD_RELEASE);
    assert_condition(f, "Ready", "False", "Error");
    take_status(f, "14");
    const struct coord_action *release = must(f, "d0");
    roll(f, 0);
    answer(f, release, SW_OK, f->subjects[0].version);
    plan(f);
    assert_condition(f, "Ready", "False", "DeploymentsInProgress");
    assert_condition(f, "Progressing", "True", "DeploymentRollingOut");
    assert_condition(f, "Degraded", "False", "NoErrors");
    fixture_free(f);
}

/* Ours would be written when the group is ours; what stands in the way must be told before. */
TEST(a_take_over_that_is_refused_is_told_by_conditions_alone)
{
    struct fixture *f = fixture_new();

    wait_(f, 0);
    strip(&f->subjects[0], SW_HELD_BY);
    f->c.observed_generation = 0;
    f->c.deployments = (struct sw_strings){full, 1};
    plan(f);
    refuse(f, "d0", "PauseFailed");
    plan(f);
    assert_condition(f, "Ready", "False", "Error");
    assert_condition(f, "Progressing", "False", "Error");
    assert_condition(f, "Degraded", "True", "TakeOverFailed");
    const struct sw_json *patch = coord_status_patch(f->arena, status_of(f), &f->c);
    const struct sw_json *status = sw_json_get(patch, "status");
    assert_int_equal(sw_json_size(status), 1);
    assert_int_equal(sw_json_size(sw_json_get(status, "conditions")), 3);
    struct sw_condition said[3];
    memcpy(said, status_of(f)->conditions, sizeof said);
    f->c.conditions = (struct sw_conditions){said, 3};
    take_status(f, "11");
    plan(f);
    assert_null(action_on(f, "a")); /* said once */
    pass_back_off(f);
    assert_hold(f, "d0", SW_HOLD_ADOPT);
    answer(f, must(f, "d0"), SW_OK, "");
    annotate(&f->subjects[0], SW_HELD_BY, "coordination/a");
    touch(&f->subjects[0]);
    plan(f);
    assert_record(f, "n/d0");
    fixture_free(f);
}

TEST(a_release_that_is_refused_again_and_again_waits_longer_each_time)
{
    struct fixture *f = fixture_new();
    uint64_t first_ms = 0, last_ms = 0;

    wait_(f, 0);
    record_d0(f);
    take_status(f, "11");
    for (int tries = 0; tries < 6; tries++) {
        refuse(f, "d0", "UnpauseFailed");
        plan(f);
        take_status(f, "12");
        plan(f);
        last_ms = f->result.look_again_ms;
        first_ms = tries == 0 ? last_ms : first_ms;
        take_status(f, "12");
        pass_back_off(f);
        assert_record(f, "n/d0");
        take_status(f, "13");
        f->c.turn++;
        plan(f);
        assert_hold(f, "d0", SW_HOLD_RELEASE);
        take_status(f, "14");
    }
    assert_true(last_ms >= 8 * first_ms);
    fixture_free(f);
}

TEST(a_group_in_which_somebody_rolls_is_progressing)
{
    struct fixture *f = fixture_new();

    roll(f, 0);
    wait_(f, 1);
    set_active(f, 0);
    plan(f);
    assert_condition(f, "Ready", "False", "DeploymentsInProgress");
    assert_condition(f, "Progressing", "True", "DeploymentRollingOut");
    const struct sw_conditions list = {status_of(f)->conditions, status_of(f)->condition_count};
    assert_string_equal(sw_condition_get(&list, "Progressing")->message,
                        "n/d0 is rolling out, 1 waiting");
    fixture_free(f);
}

/* ---- what it says of its own work ---- */

static void assert_about(const struct fixture *f, size_t i, const char *rollout)
{
    char text[SW_ROLLOUT_SIZE];

    sw_rollout_text(&f->subjects[i].d, text);
    assert_string_equal(rollout, text);
}

TEST(all_that_is_said_of_a_rollout_bears_its_identifier)
{
    struct fixture *f = fixture_new();

    roll(f, 0);
    wait_(f, 1);
    set_active(f, 0);
    f->subjects[0].d.updated_replicas = 2;
    finish(f, 0);
    plan(f);
    const struct coord_action *back = must(f, "d0");
    assert_about(f, 0, back->rollout);
    assert_string_equal(back->remarks->reason, "DeploymentPaused");
    assert_about(f, 0, back->remarks->rollout);
    answer(f, back, SW_OK, "20");
    rest(f, 0);
    f->subjects[0].d.template_hash.low = 2;
    plan(f);
    const struct coord_action *record = assert_record(f, "n/d1");
    assert_int_equal(record->begun_count, 1);
    assert_string_equal(record->begun[0], "d1");
    assert_about(f, 1, record->begun_rollouts[0]);
    int about[2] = {0, 0};
    for (const struct coord_remark *r = record->remarks; r; r = r->next) {
        bool is_second = strcmp(r->reason, "RolloutHeld") == 0;
        assert_about(f, is_second, r->rollout);
        about[is_second]++;
    }
    assert_int_equal(about[0], 2); /* ready, and cleared */
    set_active(f, 1);
    f->c.turn = 1;
    f->c.meta.resource_version = "10";
    answer(f, record, SW_OK, "10");
    plan(f);
    const struct coord_action *given = must(f, "d1");
    assert_about(f, 1, given->rollout);
    for (const struct coord_remark *r = given->remarks; r; r = r->next)
        assert_about(f, 1, r->rollout);
    fixture_free(f);
}

TEST(a_refusal_and_a_failure_are_about_their_rollout)
{
    struct fixture *f = fixture_new();

    roll_and_fail(f, 0, f->snapshot.wall_us);
    wait_(f, 1);
    plan(f);
    const struct coord_remark *failed = must(f, "a")->remarks;
    while (failed && strcmp(failed->reason, "RolloutFailed") != 0)
        failed = failed->next;
    assert_non_null(failed);
    assert_about(f, 0, failed->rollout);
    fixture_free(f);

    f = fixture_new();
    rest(f, 0);
    f->subjects[0].d.is_paused = false;
    strip(&f->subjects[0], SW_HELD_BY);
    plan(f);
    const struct coord_answer refused = {SW_REFUSED, "Forbidden", "no", ""};
    const struct coord_remark *warning =
        coord_answered(f->memory, must(f, "d0"), &refused, f->arena);
    assert_non_null(warning);
    assert_about(f, 0, warning->rollout);
    fixture_free(f);
}

TEST(a_hand_over_is_timed_from_the_end_of_one_turn_to_the_release_of_the_next)
{
    struct fixture *f = fixture_new();

    roll(f, 0);
    wait_(f, 1);
    set_active(f, 0);
    finish(f, 0);
    plan(f);
    answer(f, must(f, "d0"), SW_OK, "20");
    rest(f, 0);
    f->snapshot.now_ms += 30;
    plan(f);
    const struct coord_action *record = assert_record(f, "n/d1");
    set_active(f, 1);
    f->c.turn = 1;
    f->c.meta.resource_version = "10";
    answer(f, record, SW_OK, "10");
    f->snapshot.now_ms += 12;
    plan(f);
    const struct coord_action *given = must(f, "d1");
    assert_int_equal(given->verb, SW_HOLD_RELEASE);
    assert_true(given->is_handover);
    assert_int_equal(given->handing_ms, 42);
    fixture_free(f);
}

TEST(the_first_turn_of_a_group_is_no_hand_over)
{
    struct fixture *f = fixture_new();

    rest(f, 0);
    wait_(f, 1);
    plan(f);
    const struct coord_action *record = assert_record(f, "n/d1");
    set_active(f, 1);
    f->c.turn = 1;
    f->c.meta.resource_version = "10";
    answer(f, record, SW_OK, "10");
    f->snapshot.now_ms += 12;
    plan(f);
    assert_hold(f, "d1", SW_HOLD_RELEASE);
    assert_false(must(f, "d1")->is_handover);
    fixture_free(f);
}

TEST(a_time_that_somebody_has_written_is_read_in_whole_seconds)
{
    const struct coord_entry entries[] = {
        {.name = "n/d0",
         .has_pending_changes = true,
         .position = 1,
         .message = "",
         .failed_template = "",
         .started_us = 100 * INT64_C(1000000) + 1,
         .finished_us = INT64_MAX,
         .pending_since_us = 160 * INT64_C(1000000) + 999999},
    };
    struct fixture *f = fixture_new();

    wait_(f, 0);
    f->c.is_suspended = true;
    f->c.states = (struct sw_list){entries, 1};
    plan(f);
    const struct coord_entry *entry = &status_of(f)->entries[0];
    assert_int_equal(entry->started_us, 100 * INT64_C(1000000));
    assert_int_equal(entry->finished_us, 0);
    assert_int_equal(entry->pending_since_us, 160 * INT64_C(1000000));
    fixture_free(f);
}

/* Whose turn it is must not begin: written once (the fence), it may be dropped. But while our (b)
 * was under way another leader has written the status behind it, and may have released it since. */
TEST(a_status_written_by_another_behind_ours_voids_the_fence)
{
    struct fixture *f = fixture_new();

    wait_(f, 0);
    wait_(f, 1);
    set_active(f, 0);
    plan(f);
    const struct coord_action *ours = assert_record(f, "n/d0");
    f->seen[0].others = SW_VERDICT_HOLD_OUT_OF_LINE;
    touch(&f->subjects[0]);
    plan(f);
    assert_hold(f, "d0", SW_HOLD_FENCE);
    touch(&f->subjects[0]);
    answer(f, must(f, "d0"), SW_OK, f->subjects[0].version);
    f->c.meta.resource_version = "11";
    answer(f, ours, SW_OK, "10");
    plan(f);
    assert_hold(f, "d0", SW_HOLD_FENCE);
    assert_no_record(f);
    fixture_free(f);
}

TEST(several_found_rolling_get_the_places_that_are_free)
{
    static const char *const both[] = {"n/d0", "n/d1"};
    struct fixture *f = fixture_new();

    f->c.max_active = 2;
    for (size_t i = 0; i < 3; i++) {
        roll(f, i);
        strip(&f->subjects[i], SW_RELEASED_BY);
    }
    plan(f);
    assert_hold(f, "d2", SW_HOLD_PAUSE);
    f->c.meta.resource_version = "10";
    answer(f, must(f, "a"), SW_CONFLICT, "");
    rest(f, 2);
    plan(f);
    const struct coord_action *record = must(f, "a");
    assert_true(record->is_record);
    f->c.active_deployment = record->status->active[0];
    f->c.active_deployments = (struct sw_strings){record->status->active, 1};
    f->c.turn++;
    f->c.meta.resource_version = "11";
    answer(f, record, SW_OK, "11");
    plan(f);
    record = must(f, "a");
    assert_true(record->is_record);
    assert_int_equal(record->status->active_count, 2);
    for (size_t i = 0; i < 2; i++)
        assert_string_equal(record->status->active[i], both[i]);
    fixture_free(f);
}

TEST(one_put_aside_is_not_called_complete)
{
    struct fixture *f = fixture_new();

    f->c.failure_policy = "Skip";
    roll_and_fail(f, 0, f->snapshot.wall_us);
    wait_(f, 1);
    plan(f);
    const struct coord_action *written = must(f, "a");
    f->c.states = (struct sw_list){written->status->entries, written->status->entry_count};
    f->c.meta.resource_version = "10";
    answer(f, written, SW_OK, "10");
    plan(f);
    assert_hold(f, "d0", SW_HOLD_PAUSE);
    const struct coord_action *held = must(f, "d0");
    wait_(f, 0);
    f->subjects[0].d.updated_replicas = 1;
    answer(f, held, SW_OK, f->subjects[0].version);
    plan(f);
    assert_remarks(assert_record(f, "n/d1")->remarks, "RolloutFailed ActiveDeploymentCleared");
    fixture_free(f);
}

/* Such an object cannot be; whoever has written the name there does not stop the group. */
TEST(a_recorded_name_that_no_object_can_have_is_dropped)
{
    static const char *const strange[] = {"n/a/b", "n/..", "n/A B"};

    for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++) {
        struct fixture *f = fixture_new();
        wait_(f, 0);
        f->c.active_deployment = strange[i];
        f->c.active_deployments = (struct sw_strings){&strange[i], 1};
        plan(f);
        assert_record(f, "n/d0");
        fixture_free(f);
    }
}

TEST(a_turn_that_somebody_has_written_is_counted_on_from_anywhere)
{
    struct fixture *f = fixture_new();

    wait_(f, 0);
    f->c.turn = INT64_MAX;
    plan(f);
    const struct coord_action *record = must(f, "a");
    assert_true(record->is_record);
    assert_int_equal(record->status->turn, 1);
    fixture_free(f);
}

/* Of the first rollout of one that slipped past the webhook, after a history of the last second
 * that can be written. */
TEST(a_rollout_does_not_begin_in_the_year_10000)
{
    const struct coord_entry entry = {
        .name = "n/d0",
        .position = -1,
        .message = "",
        .failed_template = "",
        .finished_us = INT64_C(253402300799) * INT64_C(1000000),
    };
    struct fixture *f = fixture_new();

    roll(f, 0);
    strip(&f->subjects[0], SW_RELEASED_BY);
    annotate(&f->subjects[0], COORD_REVISION, "1");
    f->subjects[0].d.updated_replicas = 2;
    f->subjects[0].d.available_replicas = 0;
    f->c.is_suspended = true;
    f->c.states = (struct sw_list){&entry, 1};
    plan(f);
    assert_true(status_of(f)->entries[0].started_us < INT64_C(253402300800) * INT64_C(1000000));
    fixture_free(f);
}

/* ---- beside another policy ---- */

static void others_say(struct fixture *f, size_t i, enum sw_verdict verdict, const char *words)
{
    f->seen[i].others = verdict;
    f->seen[i].others_owners = "stepping/x";
    f->seen[i].others_words = words;
    f->seen[i].others_select = true;
    f->seen[i].others_gave_it_up = false;
}

/* Active, and paused by the other policy at a stop. */
static void stop_at(struct fixture *f, size_t i, int32_t updated, const char *words)
{
    roll(f, i);
    set_active(f, i);
    f->subjects[i].d.is_paused = true;
    f->subjects[i].d.updated_replicas = updated;
    annotate(&f->subjects[i], SW_HELD_BY, "stepping/x");
    annotate(&f->subjects[i], SW_STEPPED_BY, "x");
    set_progressing(&f->subjects[i], "Unknown", "DeploymentPaused", f->snapshot.wall_us);
    others_say(f, i, SW_VERDICT_HOLD, words);
}

static void give_up(struct fixture *f, size_t i, const char *words)
{
    stop_at(f, i, 1, words);
    f->seen[i].others = SW_VERDICT_HOLD_OUT_OF_LINE;
    f->seen[i].others_gave_it_up = true;
}

/* The status is stored as it was asked for. */
static void store_status(struct fixture *f)
{
    const struct coord_action *action = action_on(f, "a");

    if (!action)
        return;
    const struct coord_status *to = action->status;
    const char *version = sw_arena_printf(f->arena, "%s1", f->c.meta.resource_version);
    f->c.active_deployment = to->active_count > 0 ? to->active[0] : "";
    f->c.active_deployments = (struct sw_strings){to->active, to->active_count};
    f->c.deployments = (struct sw_strings){to->deployments, to->deployment_count};
    f->c.states = (struct sw_list){to->entries, to->entry_count};
    f->c.conditions = (struct sw_conditions){to->conditions, to->condition_count};
    f->c.selected = to->selected;
    f->c.pending = to->pending;
    f->c.turn = to->turn;
    f->c.meta.resource_version = version;
    answer(f, action, SW_OK, version);
}

/* The take back of one that leaves in mid-rollout is stored, and its pause observed. */
static void store_take_back(struct fixture *f, size_t i)
{
    assert_hold(f, names[i], SW_HOLD_PAUSE);
    const struct coord_action *action = must(f, names[i]);
    strip(&f->subjects[i], SW_RELEASED_BY);
    annotate(&f->subjects[i], SW_HELD_BY, "coordination/a,stepping/x");
    touch(&f->subjects[i]);
    answer(f, action, SW_OK, f->subjects[i].version);
}

TEST(one_that_another_policy_pauses_keeps_its_place_and_is_left_alone)
{
    /* Even with all its Pods updated and available: it may still go back. */
    for (int32_t updated = 1; updated <= 2; updated++) {
        struct fixture *f = fixture_new();
        struct coord_entry begun = {
            .name = full[0],
            .started_us = f->snapshot.wall_us,
            .message = "",
            .failed_template = "",
        };
        f->c.states = (struct sw_list){&begun, 1};
        stop_at(f, 0, updated, "at step 1 of 3");
        wait_(f, 1);
        plan(f);
        assert_null(action_on(f, "d0"));
        assert_null(action_on(f, "d1"));
        assert_no_record(f);
        assert_condition(f, "Degraded", "False", "NoErrors");
        assert_condition(f, "Progressing", "True", "DeploymentRollingOut");
        assert_string_equal(status_of(f)->entries[0].message, "held by stepping/x: at step 1 of 3");
        assert_int_equal(status_of(f)->entries[0].position, 0);
        assert_int_equal(status_of(f)->entries[0].finished_us, 0);
        store_status(f);
        /* No deadline passes, however long it is analysed. */
        for (int i = 0; i < 5; i++) {
            f->snapshot.now_ms += 3600000;
            f->snapshot.wall_us += INT64_C(3600000000);
            touch(&f->subjects[0]);
            plan(f);
            assert_null(f->result.actions);
        }
        assert_true(f->result.look_again_ms == UINT64_MAX);
        fixture_free(f);
    }
}

TEST(a_deadline_stands_still_while_another_policy_holds)
{
    struct fixture *f = fixture_new();

    roll(f, 0);
    set_active(f, 0);
    plan(f);
    store_status(f);
    f->snapshot.now_ms += 500000;
    stop_at(f, 0, 1, "at step 1 of 3");
    plan(f);
    store_status(f);
    f->snapshot.now_ms += 5000000;
    plan(f);
    roll(f, 0);
    set_active(f, 0);
    plan(f);
    assert_true(f->result.look_again_ms == 100000);
    store_status(f);
    f->snapshot.now_ms += 100000;
    plan(f);
    assert_condition(f, "Degraded", "True", "RolloutFailed");
    fixture_free(f);
}

TEST(one_that_another_policy_is_about_to_let_go_on_is_not_released_by_us)
{
    struct fixture *f = fixture_new();

    stop_at(f, 0, 2, "");
    others_say(f, 0, SW_VERDICT_FREE, "");
    plan(f);
    assert_null(action_on(f, "d0"));
    assert_no_record(f);
    store_status(f);
    f->snapshot.now_ms += 1000;
    plan(f);
    assert_null(f->result.actions);
    /* Nobody of that policy has a say in it any more, so nobody else will. */
    f->seen[0].others_select = false;
    f->subjects[0].d.updated_replicas = 1;
    touch(&f->subjects[0]);
    plan(f);
    assert_record(f, "n/d0");
    fixture_free(f);
}

TEST(its_turn_ends_when_the_other_policy_lets_it_go)
{
    struct fixture *f = fixture_new();

    stop_at(f, 0, 2, "at step 3 of 3");
    wait_(f, 1);
    plan(f);
    assert_no_record(f);
    store_status(f);
    roll(f, 0);
    set_active(f, 0);
    finish(f, 0);
    others_say(f, 0, SW_VERDICT_FREE, "");
    plan(f);
    assert_hold(f, "d0", SW_HOLD_PAUSE);
    fixture_free(f);
}

TEST(one_that_another_policy_gives_up_is_put_aside_and_the_next_goes_on)
{
    struct fixture *f = fixture_new();

    f->c.failure_policy = "Skip";
    give_up(f, 0, "errors 7 > 1");
    wait_(f, 1);
    plan(f);
    assert_no_record(f);
    store_take_back(f, 0);
    plan(f);
    const struct coord_action *record = assert_record(f, "n/d1");
    assert_remarks(record->remarks, "RolloutFailed ActiveDeploymentCleared");
    assert_condition(f, "Degraded", "True", "RolloutFailed");
    assert_string_equal(record->status->conditions[2].message,
                        "n/d0 has failed, held by stepping/x: errors 7 > 1");
    const struct coord_entry *entry = &record->status->entries[0];
    assert_false(entry->has_pending_changes);
    assert_int_equal(entry->position, -1);
    assert_string_equal(entry->message, "failed; held by stepping/x: errors 7 > 1");
    assert_string_equal(entry->failed_template, "");
    store_status(f);
    /* Tried again it queues: whoever gave it up says so no more. */
    others_say(f, 0, SW_VERDICT_FREE, "");
    plan(f);
    assert_true(status_of(f)->entries[0].has_pending_changes);
    assert_int_equal(status_of(f)->entries[0].position, 1);
    assert_condition(f, "Degraded", "False", "NoErrors");
    fixture_free(f);
}

TEST(one_that_another_policy_gives_up_stops_the_others_where_failures_do)
{
    struct fixture *f = fixture_new();

    give_up(f, 0, "errors 7 > 1");
    wait_(f, 1);
    plan(f);
    assert_null(action_on(f, "d0"));
    assert_no_record(f);
    assert_condition(f, "Degraded", "True", "RolloutFailed");
    assert_string_equal(status_of(f)->conditions[2].message,
                        "n/d0 has failed, held by stepping/x: errors 7 > 1; it keeps its turn "
                        "until it is tried again or gets another template");
    assert_remarks(must(f, "a")->remarks, "RolloutHeld RolloutFailed");
    store_status(f);
    /* Its Pods have been brought back. */
    f->subjects[0].d.updated_replicas = 0;
    touch(&f->subjects[0]);
    plan(f);
    assert_null(f->result.actions);
    fixture_free(f);
}

TEST(whoever_has_to_be_asked_first_gives_its_place_back_without_having_failed)
{
    struct fixture *f = fixture_new();

    stop_at(f, 0, 0, "asking confirm-rollout");
    f->seen[0].others = SW_VERDICT_HOLD_OUT_OF_LINE;
    wait_(f, 1);
    plan(f);
    store_take_back(f, 0);
    plan(f);
    assert_record(f, "n/d1");
    assert_condition(f, "Degraded", "False", "NoErrors");
    assert_true(status_of(f)->entries[0].has_pending_changes);
    assert_int_equal(status_of(f)->entries[0].position, -1);
    store_status(f);
    others_say(f, 0, SW_VERDICT_FREE, "");
    plan(f);
    assert_int_equal(status_of(f)->entries[0].position, 1);
    fixture_free(f);
}

TEST(what_a_person_holds_beside_another_policy_keeps_its_place)
{
    struct fixture *f = fixture_new();

    stop_at(f, 0, 1, "at step 1 of 3");
    wait_(f, 1);
    annotate(&f->subjects[0], SW_HOLD_BY_USER, "freeze");
    annotate(&f->subjects[0], SW_HELD_BY, "stepping/x,user");
    f->seen[0].others = SW_VERDICT_HOLD_OUT_OF_LINE;
    f->seen[0].others_owners = "stepping/x,user";
    plan(f);
    assert_null(action_on(f, "d0"));
    assert_no_record(f);
    assert_condition(f, "Degraded", "True", "PausedByUser");
    fixture_free(f);
}

TEST(one_that_was_given_up_before_its_turn_is_passed_over)
{
    for (int is_skip = 0; is_skip < 2; is_skip++) {
        struct fixture *f = fixture_new();
        f->c.failure_policy = is_skip ? "Skip" : "";
        wait_(f, 0);
        annotate(&f->subjects[0], SW_HELD_BY, "coordination/a,stepping/x");
        others_say(f, 0, SW_VERDICT_HOLD_OUT_OF_LINE, "quarantined");
        f->seen[0].others_gave_it_up = true;
        wait_(f, 1);
        plan(f);
        assert_record(f, "n/d1");
        assert_false(status_of(f)->entries[0].has_pending_changes);
        assert_int_equal(status_of(f)->pending, 0);
        assert_condition(f, "Degraded", "True", "RolloutFailed");
        fixture_free(f);
    }
}

TEST(one_that_another_policy_prepares_is_not_passed_over)
{
    struct fixture *f = fixture_new();

    wait_(f, 0);
    annotate(&f->subjects[0], SW_HELD_BY, "coordination/a,stepping/x");
    others_say(f, 0, SW_VERDICT_HOLD, "before its first step");
    wait_(f, 1);
    plan(f);
    assert_no_record(f);
    assert_null(action_on(f, "d1"));
    store_status(f);
    others_say(f, 0, SW_VERDICT_FREE, "");
    plan(f);
    assert_record(f, "n/d0");
    fixture_free(f);
}

TEST(what_a_person_holds_before_its_turn_is_passed_over_whoever_else_does)
{
    struct fixture *f = fixture_new();

    wait_(f, 0);
    annotate(&f->subjects[0], SW_HELD_BY, "coordination/a,stepping/x,user");
    annotate(&f->subjects[0], SW_HOLD_BY_USER, "lunch");
    others_say(f, 0, SW_VERDICT_HOLD, "before its first step");
    f->seen[0].others_owners = "stepping/x,user";
    wait_(f, 1);
    plan(f);
    assert_record(f, "n/d1");
    fixture_free(f);
}

/* ---- the opinion ---- */

static struct sw_opinion opinion_of(struct fixture *f, size_t i, bool rests_running)
{
    const struct sw_question question = {.object = &f->subjects[i].d.meta, .arena = f->arena};
    struct sw_opinion opinion = {.owners = "", .words = ""};

    coord_opinion(f->groups, f->snapshot.group_count, rests_running, &question, &opinion);
    return opinion;
}

TEST(a_right_is_lent_by_nobody_who_has_none)
{
    struct fixture *f = fixture_new();

    roll(f, 0);
    struct sw_opinion opinion = opinion_of(f, 0, true);
    assert_int_equal(opinion.verdict, SW_VERDICT_FREE);
    assert_string_equal(opinion.owners, "coordination/a");
    /* At rest and running it is free, but has no right to roll that another could pass on. */
    strip(&f->subjects[0], SW_RELEASED_BY);
    finish(f, 0);
    opinion = opinion_of(f, 0, true);
    assert_int_equal(opinion.verdict, SW_VERDICT_FREE);
    assert_true(opinion.is_selected);
    assert_string_equal(opinion.owners, "");
    /* Released by one of two that have marked it. */
    annotate(&f->subjects[0], SW_RELEASED_BY, "coordination/a");
    annotate(&f->subjects[0], SW_COORDINATED_BY, "a,b");
    opinion = opinion_of(f, 0, false);
    assert_int_equal(opinion.verdict, SW_VERDICT_HOLD);
    fixture_free(f);
}

TEST(what_is_left_of_a_coordination_is_released_by_its_policy_only)
{
    struct fixture *f = fixture_new();

    wait_(f, 0);
    annotate(&f->subjects[0], SW_HELD_BY, "coordination/a,coordination/b,stepping/x");
    f->snapshot.group_count = 0;
    struct sw_opinion opinion = opinion_of(f, 0, false);
    assert_int_equal(opinion.verdict, SW_VERDICT_HOLD);
    assert_string_equal(opinion.owners, "coordination/a,coordination/b");
    assert_false(opinion.is_selected);
    annotate(&f->subjects[0], SW_HELD_BY, "stepping/x");
    opinion = opinion_of(f, 0, false);
    assert_int_equal(opinion.verdict, SW_VERDICT_FREE);
    fixture_free(f);
}

/* The one in mid-rollout is paused by the other policy at a stop. */
static struct fixture *residual_at_a_stop(void)
{
    struct fixture *f = fixture_new();

    stop_at(f, 0, 1, "step 1/3: analysed");
    wait_(f, 1);
    f->snapshot.group_count = 0;
    coord_saw_deleted(f->memory, "a");
    plan(f);
    for (size_t i = 0; i < 2; i++) {
        assert_hold(f, names[i], SW_HOLD_FENCE);
        answer(f, must(f, names[i]), SW_OK, "");
    }
    return f;
}

TEST(of_a_deleted_coordination_one_that_another_policy_pauses_keeps_its_right)
{
    struct fixture *f = residual_at_a_stop();

    plan(f);
    assert_null(action_on(f, "d0"));
    assert_null(action_on(f, "d1"));
    /* But not one that is given up: it would keep the next waiting for ever. */
    give_up(f, 0, "this template has failed");
    touch(&f->subjects[0]);
    plan(f);
    assert_hold(f, "d0", SW_HOLD_PAUSE);
    fixture_free(f);
}

/* Its right was taken back when its label went. The other policy lets it go on by itself alone, and
 * only when it is held by nobody else: they would wait for each other. */
TEST(what_is_left_in_the_middle_of_its_steps_is_left_to_the_policy_that_steps_it)
{
    struct fixture *f = residual_at_a_stop();

    strip(&f->subjects[0], SW_RELEASED_BY);
    annotate(&f->subjects[0], SW_HELD_BY, "coordination/a,stepping/x");
    touch(&f->subjects[0]);
    plan(f);
    assert_hold(f, "d0", SW_HOLD_FREE);
    assert_null(action_on(f, "d1"));
    fixture_free(f);
}

/* Before its first Pod it waits for its turn among those that are left. */
TEST(what_is_left_before_its_first_step_is_released_in_its_turn)
{
    struct fixture *f = residual_at_a_stop();

    strip(&f->subjects[0], SW_RELEASED_BY);
    annotate(&f->subjects[0], SW_HELD_BY, "coordination/a,stepping/x");
    f->subjects[0].d.updated_replicas = 0;
    touch(&f->subjects[0]);
    plan(f);
    assert_null(action_on(f, "d0"));
    assert_hold(f, "d1", SW_HOLD_RELEASE);
    fixture_free(f);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("plan", records_the_first_in_line_before_it_is_released),
        CASE("plan", records_again_when_the_chosen_one_has_changed),
        CASE("plan", a_new_leader_records_the_same_set_before_it_releases),
        CASE("plan", waits_until_everybody_is_marked),
        CASE("plan", waits_until_everybody_else_is_observed),
        CASE("plan", says_after_ten_seconds_for_whom_the_choice_waits),
        CASE("plan", says_that_the_choice_waits_for_a_mark_or_for_the_one_that_would_be_next),
        CASE("plan", takes_the_lower_order_first),
        CASE("plan", takes_first_whoever_had_no_turn_since_the_longest_began_to_wait),
        CASE("plan", a_skip_puts_it_behind_all_that_waited_at_that_time),
        CASE("plan", whose_wait_began_in_the_second_in_which_its_turn_ended_is_not_last_for_ever),
        CASE("plan", takes_over_when_the_wait_began_from_another_leader_that_saw_it_earlier),
        CASE("plan", passes_over_whoever_another_arbiter_holds),
        CASE("plan", leaves_a_users_pause_alone),
        CASE("plan", activates_nobody_while_suspended),
        CASE("plan", gives_as_many_places_as_max_active),
        CASE("plan", the_guard_waits_for_an_unavailable_peer),
        CASE("plan", the_guard_lets_the_unavailable_one_go_first),
        CASE("plan", the_guard_can_be_turned_off),
        CASE("plan", a_lost_pod_takes_no_turn),
        CASE("plan", scaling_takes_no_turn),
        CASE("plan", nothing_is_held_at_zero),
        CASE("plan", a_copied_revision_is_new_after_ten_seconds_without_pods),
        CASE("plan", takes_back_and_records_and_releases_the_next),
        CASE("plan", waits_min_ready_seconds_from_the_completion),
        CASE("plan", scaling_does_not_start_the_wait_again),
        CASE("plan", after_a_restart_the_wait_counts_from_what_the_controller_says),
        CASE("plan", rests_running_where_the_coordination_says_so),
        CASE("plan", asks_the_server_whether_the_active_one_is_gone),
        CASE("plan", says_that_the_active_one_is_paused_by_its_owner),
        CASE("plan", says_that_a_person_holds_the_active_one_in_the_middle_of_its_turn),
        CASE("plan", one_that_is_held_before_its_release_loses_its_place),
        CASE("plan", a_complete_one_finishes_its_turn_whoever_pauses_it_in_the_wait),
        CASE("plan", no_place_is_kept_for_one_that_waits_for_a_person),
        CASE("plan", pauses_what_is_found_rolling_while_another_is_active),
        CASE("plan", what_is_found_rolling_becomes_active_if_a_place_is_free),
        CASE("plan", stop_keeps_the_turn_of_one_that_has_failed),
        CASE("plan", skip_writes_down_the_failed_template_before_it_holds),
        CASE("plan", has_a_deadline_of_its_own),
        CASE("plan", what_has_failed_together_is_not_tried_again_together),
        CASE("plan", an_invalid_selector_is_reported),
        CASE("plan", members_of_a_deleted_coordination_are_freed_one_at_a_time),
        CASE("plan", of_a_deleted_coordination_one_that_fails_is_freed_and_the_next_follows),
        CASE("plan", of_a_deleted_coordination_a_users_pause_stays),
        CASE("plan", of_deleted_coordinations_that_overlapped_one_goes_at_a_time),
        CASE("plan", a_coordination_missing_in_one_list_is_not_gone),
        CASE("plan", what_the_reference_has_paused_is_taken_over_first),
        CASE("plan", also_the_active_one_that_the_reference_has_left_paused_is_taken_over),
        CASE("plan", a_take_over_that_is_refused_is_told_by_conditions_alone),
        CASE("plan", what_the_reference_did_not_select_is_a_persons_pause),
        CASE("plan", an_absent_active_deployment_is_deleted_from_the_status),
        CASE("plan", a_text_is_cut_between_characters),
        CASE("plan", half_a_character_of_a_selector_is_not_shown),
        CASE("plan", half_a_character_of_an_answer_is_not_shown),
        CASE("plan", a_time_that_somebody_has_written_is_read_in_whole_seconds),
        CASE("plan", a_status_written_by_another_behind_ours_voids_the_fence),
        CASE("plan", several_found_rolling_get_the_places_that_are_free),
        CASE("plan", one_put_aside_is_not_called_complete),
        CASE("plan", a_recorded_name_that_no_object_can_have_is_dropped),
        CASE("plan", a_turn_that_somebody_has_written_is_counted_on_from_anywhere),
        CASE("plan", a_rollout_does_not_begin_in_the_year_10000),
        CASE("plan", a_refused_pause_is_said_as_pause_failed),
        CASE("plan", a_refused_take_back_is_said_as_pause_failed),
        CASE("plan", a_refused_end_of_a_hold_is_said_as_unpause_failed),
        CASE("plan", a_refused_release_is_said_as_unpause_failed),
        CASE("plan", a_refused_release_of_one_that_rolls_already_is_said_as_activation_failed),
        CASE("plan", a_refused_status_is_said_as_status_update_failed),
        CASE("plan", a_lost_answer_to_a_status_is_said_when_it_happens_twice_in_a_row),
        CASE("plan", an_action_that_failed_is_an_error_in_all_conditions_until_it_succeeds),
        CASE("plan", a_release_that_is_refused_again_and_again_waits_longer_each_time),
        CASE("plan", a_group_in_which_somebody_rolls_is_progressing),
        CASE("plan", all_that_is_said_of_a_rollout_bears_its_identifier),
        CASE("plan", a_refusal_and_a_failure_are_about_their_rollout),
        CASE("plan", a_hand_over_is_timed_from_the_end_of_one_turn_to_the_release_of_the_next),
        CASE("plan", the_first_turn_of_a_group_is_no_hand_over),
        CASE("plan", one_that_another_policy_pauses_keeps_its_place_and_is_left_alone),
        CASE("plan", a_deadline_stands_still_while_another_policy_holds),
        CASE("plan", one_that_another_policy_is_about_to_let_go_on_is_not_released_by_us),
        CASE("plan", its_turn_ends_when_the_other_policy_lets_it_go),
        CASE("plan", one_that_another_policy_gives_up_is_put_aside_and_the_next_goes_on),
        CASE("plan", one_that_another_policy_gives_up_stops_the_others_where_failures_do),
        CASE("plan", whoever_has_to_be_asked_first_gives_its_place_back_without_having_failed),
        CASE("plan", what_a_person_holds_beside_another_policy_keeps_its_place),
        CASE("plan", one_that_was_given_up_before_its_turn_is_passed_over),
        CASE("plan", one_that_another_policy_prepares_is_not_passed_over),
        CASE("plan", what_a_person_holds_before_its_turn_is_passed_over_whoever_else_does),
        CASE("plan", a_right_is_lent_by_nobody_who_has_none),
        CASE("plan", what_is_left_of_a_coordination_is_released_by_its_policy_only),
        CASE("plan", of_a_deleted_coordination_one_that_another_policy_pauses_keeps_its_right),
        CASE("plan", what_is_left_in_the_middle_of_its_steps_is_left_to_the_policy_that_steps_it),
        CASE("plan", what_is_left_before_its_first_step_is_released_in_its_turn),
    };

    return RUN(tests);
}
