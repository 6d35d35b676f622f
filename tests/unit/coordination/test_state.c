/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the plan sees in a Deployment (unavailable, failed, complete for long enough), whom the
 * guard counts, and what the status says of all of them.
 */
#include "fixture.h"

#include <slipway/memory.h>

#include "opinion.h"

#define SECOND INT64_C(1000000)

static void set_available(struct subject *subject, const char *status)
{
    subject->conditions[1] = (struct sw_condition){
        .type = "Available",
        .status = status,
        .reason = "",
        .message = "",
    };
    subject->d.conditions = (struct sw_conditions){subject->conditions, 2};
}

static struct coord_entry entry_of(const char *name)
{
    return (struct coord_entry){
        .name = name,
        .position = -1,
        .message = "",
        .failed_template = "",
    };
}

/* ---- the guard ---- */

TEST(the_guard_counts_only_those_that_serve)
{
    enum { SERVES, NOT_YET_MADE, WANTS_NONE, FIRST_ROLLOUT, SECOND_OF_FIRST, ASIDE, PEERS };

    for (int peer = 0; peer < PEERS; peer++) {
        struct fixture *f = fixture_new();
        struct coord_entry entry = entry_of("n/d1");
        char failed[33];
        wait_(f, 0);
        rest(f, 1);
        f->subjects[1].d.available_replicas = 0;
        if (peer == NOT_YET_MADE)
            strip(&f->subjects[1], COORD_REVISION);
        if (peer == WANTS_NONE)
            f->subjects[1].d.replicas = 0;
        if (peer == FIRST_ROLLOUT || peer == SECOND_OF_FIRST)
            annotate(&f->subjects[1], COORD_REVISION, "1");
        if (peer == SECOND_OF_FIRST) {
            entry.started_us = 100 * SECOND;
            entry.finished_us = 110 * SECOND;
        }
        if (peer == ASIDE) {
            f->subjects[1].d.updated_replicas = 0;
            sw_hash128_text(f->subjects[1].d.template_hash, failed);
            entry.started_us = 100 * SECOND;
            entry.failed_template = failed;
        }
        f->c.states = (struct sw_list){&entry, 1};
        plan(f);
        if (peer == SERVES || peer == SECOND_OF_FIRST)
            assert_no_record(f);
        else
            assert_record(f, "n/d0");
        fixture_free(f);
    }
}

TEST(an_annotation_overrides_the_guard)
{
    const struct sw_label skip = {COORD_SKIP_GUARD, "true"};
    struct fixture *f = fixture_new();

    wait_(f, 0);
    rest(f, 1);
    f->subjects[1].d.available_replicas = 0;
    f->c.meta.annotations = (struct sw_labels){&skip, 1};
    plan(f);
    assert_record(f, "n/d0");
    fixture_free(f);
}

TEST(of_two_unavailable_ones_the_smaller_share_goes_first)
{
    struct fixture *f = fixture_new();

    for (size_t i = 0; i < 2; i++) {
        wait_(f, i);
        f->subjects[i].d.available_replicas = 1;
        set_available(&f->subjects[i], "False");
    }
    f->subjects[1].d.replicas = f->subjects[1].d.status_replicas = 4;
    annotate(&f->subjects[0], SW_ORDER, "-1");
    plan(f);
    assert_record(f, "n/d1");
    fixture_free(f);
}

/* Whoever is activated in this run is an active one. */
TEST(the_guard_does_not_count_the_one_that_it_lets_go_first)
{
    struct fixture *f = fixture_new();

    f->c.max_active = 2;
    wait_(f, 0);
    wait_(f, 1);
    f->subjects[1].d.available_replicas = 0;
    plan(f);
    assert_int_equal(assert_record(f, "n/d0")->status->active_count, 2);
    assert_condition(f, "Degraded", "False", "NoErrors");
    fixture_free(f);
}

/* ---- the wait ---- */

/* Complete for 20 of 30 s; the coordination's status is not to be written any more. */
static struct fixture *in_the_wait(void)
{
    struct fixture *f = fixture_new();

    f->c.min_ready_seconds = 30;
    roll(f, 0);
    set_available(&f->subjects[0], "True");
    set_active(f, 0);
    plan(f);
    finish(f, 0);
    set_available(&f->subjects[0], "True");
    plan(f);
    assert_int_equal(f->result.look_again_ms, 30000);
    f->snapshot.now_ms += 20000;
    return f;
}

TEST(the_loss_of_available_starts_the_wait_again_and_a_lost_pod_does_not)
{
    for (int is_lost = 0; is_lost < 2; is_lost++) {
        struct fixture *f = in_the_wait();
        f->subjects[0].d.available_replicas = 1;
        set_available(&f->subjects[0], is_lost ? "False" : "True");
        touch(&f->subjects[0]);
        plan(f);
        f->subjects[0].d.available_replicas = 2;
        set_available(&f->subjects[0], "True");
        touch(&f->subjects[0]);
        plan(f);
        assert_int_equal(f->result.look_again_ms, is_lost ? 30000 : 10000);
        fixture_free(f);
    }
}

/* With maxUnavailable 0 scaling up takes the condition away until the new Pods are there. */
TEST(available_that_is_lost_by_scaling_up_does_not_start_the_wait_again)
{
    struct fixture *f = in_the_wait();

    f->subjects[0].d.replicas = 4;
    f->subjects[0].d.meta.generation = f->subjects[0].d.observed_generation = 4;
    f->subjects[0].d.status_replicas = f->subjects[0].d.updated_replicas = 4;
    set_available(&f->subjects[0], "False");
    touch(&f->subjects[0]);
    plan(f);
    assert_int_equal(f->result.look_again_ms, 10000);
    fixture_free(f);
}

TEST(an_outdated_template_in_the_wait_starts_it_again)
{
    struct fixture *f = in_the_wait();

    f->subjects[0].d.template_hash.low = 3;
    f->subjects[0].d.meta.generation = f->subjects[0].d.observed_generation = 4;
    f->subjects[0].d.updated_replicas = 0;
    touch(&f->subjects[0]);
    plan(f);
    f->subjects[0].d.updated_replicas = 2;
    touch(&f->subjects[0]);
    f->snapshot.now_ms += 10000;
    plan(f);
    assert_null(action_on(f, "d0"));
    assert_int_equal(f->result.look_again_ms, 30000);
    fixture_free(f);
}

TEST(a_completion_in_the_future_counts_as_now)
{
    struct fixture *f = fixture_new();

    f->c.min_ready_seconds = 30;
    roll(f, 0);
    finish(f, 0);
    set_progressing(&f->subjects[0], "True", "NewReplicaSetAvailable",
                    f->snapshot.wall_us + 500 * SECOND);
    set_active(f, 0);
    plan(f);
    assert_int_equal(f->result.look_again_ms, 30000);
    fixture_free(f);
}

/* ---- failure ---- */

static void refuse(struct fixture *f)
{
    const struct coord_action *action = action_on(f, "a");

    if (action)
        answer(f, action, SW_OK, f->c.meta.resource_version);
}

TEST(the_deadline_stands_still_while_it_is_paused)
{
    struct fixture *f = fixture_new();

    roll(f, 0);
    set_active(f, 0);
    plan(f);
    refuse(f);
    f->snapshot.now_ms += 400000;
    f->subjects[0].d.is_paused = true;
    f->subjects[0].d.meta.generation = f->subjects[0].d.observed_generation = 4;
    touch(&f->subjects[0]);
    plan(f);
    refuse(f);
    f->snapshot.now_ms += 1000000;
    plan(f);
    refuse(f);
    f->subjects[0].d.is_paused = false;
    f->subjects[0].d.meta.generation = f->subjects[0].d.observed_generation = 5;
    touch(&f->subjects[0]);
    plan(f);
    assert_int_equal(f->result.look_again_ms, 200000);
    assert_condition(f, "Degraded", "False", "NoErrors");
    fixture_free(f);
}

TEST(a_new_mark_renews_the_deadline_and_flapping_does_not)
{
    for (int is_new = 0; is_new < 2; is_new++) {
        struct fixture *f = fixture_new();
        roll(f, 0);
        set_active(f, 0);
        plan(f);
        refuse(f);
        f->snapshot.now_ms += 300000;
        f->subjects[0].d.available_replicas = 1;
        plan(f);
        refuse(f);
        f->subjects[0].d.available_replicas = 2;
        f->subjects[0].d.updated_replicas = is_new ? 2 : 1;
        f->subjects[0].d.status_replicas = 3;
        plan(f);
        assert_int_equal(f->result.look_again_ms, is_new ? 600000 : 300000);
        fixture_free(f);
    }
}

TEST(an_exceeded_deadline_speaks_of_the_template_that_was_there)
{
    struct fixture *f = fixture_new();

    roll_and_fail(f, 0, 5 * SECOND);
    plan(f);
    assert_condition(f, "Degraded", "True", "RolloutFailed");
    refuse(f);
    f->subjects[0].d.template_hash.low = 3;
    f->subjects[0].d.meta.generation = f->subjects[0].d.observed_generation = 4;
    touch(&f->subjects[0]);
    plan(f);
    assert_condition(f, "Degraded", "False", "NoErrors");
    refuse(f);
    set_progressing(&f->subjects[0], "False", "ProgressDeadlineExceeded", 700 * SECOND);
    touch(&f->subjects[0]);
    plan(f);
    assert_condition(f, "Degraded", "True", "RolloutFailed");
    fixture_free(f);
}

TEST(an_exceeded_deadline_counts_without_the_time_of_its_condition)
{
    struct fixture *f = fixture_new();

    roll_and_fail(f, 0, 0);
    plan(f);
    assert_condition(f, "Degraded", "True", "RolloutFailed");
    fixture_free(f);
}

/* Another release of the API server, which knows more defaults, shows what is stored otherwise. */
TEST(a_failure_is_not_forgotten_when_the_api_server_is_upgraded)
{
    struct fixture *f = fixture_new();

    roll_and_fail(f, 0, 5 * SECOND);
    plan(f);
    assert_condition(f, "Degraded", "True", "RolloutFailed");
    refuse(f);
    f->subjects[0].d.template_hash.low = 3;
    touch(&f->subjects[0]);
    plan(f);
    assert_condition(f, "Degraded", "True", "RolloutFailed");
    fixture_free(f);
}

TEST(one_put_aside_waits_again_with_another_template)
{
    struct fixture *f = fixture_new();
    struct coord_entry entry = entry_of("n/d0");
    char failed[33];

    wait_(f, 0);
    sw_hash128_text(f->subjects[0].d.template_hash, failed);
    entry.started_us = 100 * SECOND;
    entry.failed_template = failed;
    f->c.states = (struct sw_list){&entry, 1};
    plan(f);
    assert_no_record(f);
    assert_int_equal(status_of(f)->pending, 0);
    assert_condition(f, "Degraded", "True", "RolloutFailed");
    refuse(f);
    f->subjects[0].d.template_hash.low = 3;
    f->subjects[0].d.meta.generation = f->subjects[0].d.observed_generation = 4;
    touch(&f->subjects[0]);
    plan(f);
    assert_record(f, "n/d0");
    assert_string_equal(status_of(f)->entries[0].failed_template, "");
    fixture_free(f);
}

/* ---- several coordinations ---- */

TEST(where_coordinations_differ_it_rests_paused)
{
    for (int is_paused = 0; is_paused < 2; is_paused++) {
        struct fixture *f = fixture_new();
        f->c.at_rest = "Running";
        with_other(f, "");
        f->other.at_rest = is_paused ? "Paused" : "Running";
        rest(f, 0);
        annotate(&f->subjects[0], SW_COORDINATED_BY, "a,b");
        annotate(&f->subjects[0], SW_HELD_BY, "coordination/a,coordination/b");
        plan(f);
        if (is_paused)
            assert_null(action_on(f, "d0"));
        else
            assert_hold(f, "d0", SW_HOLD_FREE);
        fixture_free(f);
    }
}

/* ---- what the status says ---- */

TEST(the_first_sight_of_a_group_is_one_remark)
{
    struct fixture *f = fixture_new();

    for (size_t i = 0; i < 3; i++) {
        rest(f, i);
        f->subjects[i].d.is_paused = false;
        strip(&f->subjects[i], SW_HELD_BY);
        set_progressing(&f->subjects[i], "True", "NewReplicaSetAvailable", SECOND);
    }
    plan(f);
    for (size_t i = 0; i < 3; i++) {
        assert_hold(f, names[i], SW_HOLD_PAUSE);
        assert_null(must(f, names[i])->remarks);
        answer(f, must(f, names[i]), SW_OK, "");
        f->subjects[i].d.is_paused = true;
        annotate(&f->subjects[i], SW_HELD_BY, "coordination/a");
        touch(&f->subjects[i]);
    }
    plan(f);
    assert_remarks(f->result.remarks, "DeploymentPaused");
    assert_string_equal(f->result.remarks->message, "paused 3 Deployments");
    plan(f);
    assert_null(f->result.remarks);
    fixture_free(f);
}

/* What was written is stored. */
static void store(struct fixture *f, const char *version)
{
    const struct coord_action *action = must(f, "a");
    const struct coord_status *to = action->status;
    struct sw_condition *conditions =
        SW_ARENA_ARRAY(f->arena, to->condition_count + 1, struct sw_condition);

    memcpy(conditions, to->conditions, to->condition_count * sizeof *conditions);
    f->c.states = (struct sw_list){to->entries, to->entry_count};
    f->c.deployments = (struct sw_strings){to->deployments, to->deployment_count};
    f->c.conditions = (struct sw_conditions){conditions, to->condition_count};
    f->c.selected = to->selected;
    f->c.pending = to->pending;
    f->c.is_truncated = to->is_truncated;
    f->c.meta.resource_version = version;
    answer(f, action, SW_OK, version);
}

TEST(a_status_is_written_only_when_something_else_than_a_generation_differs)
{
    struct fixture *f = fixture_new();

    rest(f, 0);
    plan(f);
    assert_int_equal(status_of(f)->entries[0].generation, 3);
    store(f, "20");
    f->snapshot.wall_us += 60 * SECOND;
    f->subjects[0].d.meta.generation = f->subjects[0].d.observed_generation = 4;
    f->subjects[0].d.replicas = f->subjects[0].d.status_replicas = 3;
    f->subjects[0].d.updated_replicas = f->subjects[0].d.available_replicas = 3;
    touch(&f->subjects[0]);
    plan(f);
    assert_null(action_on(f, "a"));
    f->c.is_suspended = true;
    wait_(f, 0);
    f->subjects[0].d.meta.generation = f->subjects[0].d.observed_generation = 5;
    plan(f);
    assert_int_equal(status_of(f)->entries[0].generation, 5);
    fixture_free(f);
}

TEST(a_transition_time_moves_only_with_the_status_of_its_condition)
{
    struct fixture *f = fixture_new();

    rest(f, 0);
    plan(f);
    store(f, "20");
    f->snapshot.wall_us += 60 * SECOND;
    f->c.is_suspended = true;
    wait_(f, 0);
    plan(f);
    /* Ready: True, then False; Progressing: False twice. */
    assert_condition(f, "Ready", "False", "DeploymentsInProgress");
    assert_condition(f, "Progressing", "False", "Suspended");
    const struct sw_condition *to = status_of(f)->conditions;
    assert_int_equal(to[0].last_transition_us, f->snapshot.wall_us);
    assert_int_equal(to[1].last_transition_us, f->snapshot.wall_us - 60 * SECOND);
    fixture_free(f);
}

/* ---- lists that are cut ---- */

#define MANY 510

struct crowd {
    struct subject subjects[MANY];
    struct coord_seen_deployment seen[MANY];
    char names[MANY][8];
};

/* Copies of the fixture's first; the last one is active, the one before waits. */
static struct crowd *crowd_new(struct fixture *f)
{
    struct crowd *crowd = test_calloc(1, sizeof *crowd);

    for (size_t i = 0; i < MANY; i++) {
        struct subject *subject = &crowd->subjects[i];
        if (i == MANY - 1)
            roll(f, 0);
        else if (i == MANY - 2)
            wait_(f, 0);
        else
            rest(f, 0);
        *subject = f->subjects[0];
        snprintf(crowd->names[i], sizeof crowd->names[i], "e%03zu", i);
        subject->d.meta.name = subject->d.meta.uid = crowd->names[i];
        subject->d.meta.resource_version = subject->version;
        subject->d.meta.annotations.at = subject->annotations;
        subject->d.conditions.at = subject->conditions;
        crowd->seen[i] = (struct coord_seen_deployment){&subject->d, SW_VERDICT_FREE, "", ""};
    }
    f->snapshot.deployments = crowd->seen;
    f->count = MANY;
    return crowd;
}

TEST(a_list_of_more_than_500_shows_the_active_the_waiting_and_the_first)
{
    static const char *const active[] = {"n/e509"};
    struct fixture *f = fixture_new();
    struct crowd *crowd = crowd_new(f);

    f->c.active_deployment = active[0];
    f->c.active_deployments = (struct sw_strings){active, 1};
    plan(f);
    const struct coord_status *status = status_of(f);
    assert_true(status->is_truncated);
    assert_int_equal(status->selected, MANY);
    assert_int_equal(status->pending, 1);
    assert_int_equal(status->deployment_count, 500);
    assert_int_equal(status->entry_count, 500);
    assert_string_equal(status->deployments[0], "n/e000");
    assert_string_equal(status->deployments[497], "n/e497");
    assert_string_equal(status->deployments[498], "n/e508");
    assert_string_equal(status->deployments[499], "n/e509");
    assert_int_equal(status->entries[498].position, 1);
    assert_int_equal(status->entries[499].position, 0);

    /* Too large as it is: the active ones alone. */
    const struct coord_answer refused = {SW_REFUSED, "RequestEntityTooLarge", "", ""};
    coord_answered(f->memory, must(f, "a"), &refused, f->arena);
    plan(f);
    status = status_of(f);
    assert_true(status->is_truncated);
    assert_int_equal(status->selected, MANY);
    assert_int_equal(status->pending, 1);
    assert_int_equal(status->entry_count, 1);
    assert_string_equal(status->entries[0].name, "n/e509");
    assert_int_equal(status->condition_count, 3);
    fixture_free(f);
    test_free(crowd);
}

/* Of a large group at first sight: sixty-four requests at a time are under way. */
TEST(what_is_found_rolling_is_paused_before_all_that_only_rest)
{
    struct fixture *f = fixture_new();
    struct crowd *crowd = crowd_new(f);
    struct subject *rolling = &crowd->subjects[MANY - 2];
    static const char *const active[] = {"n/e509"};

    for (size_t i = 0; i < MANY - 1; i++) {
        crowd->subjects[i].d.is_paused = false;
        strip(&crowd->subjects[i], SW_HELD_BY);
        set_progressing(&crowd->subjects[i], "True", "NewReplicaSetAvailable", 0);
    }
    set_progressing(rolling, "True", "ReplicaSetUpdated", f->snapshot.wall_us);
    f->c.active_deployment = active[0];
    f->c.active_deployments = (struct sw_strings){active, 1};
    plan(f);
    assert_hold(f, "e508", SW_HOLD_PAUSE);
    fixture_free(f);
    test_free(crowd);
}

/* Whoever may create coordinations may create many that select the same. */
TEST(a_message_names_only_the_first_of_many_that_overlap)
{
    enum { COORDINATIONS = 100 };
    struct fixture *f = fixture_new();
    struct coordination *objects = test_calloc(COORDINATIONS, sizeof *objects);
    struct coord_seen_group *groups = test_calloc(COORDINATIONS, sizeof *groups);
    char(*texts)[64] = test_calloc(COORDINATIONS, sizeof *texts);

    for (size_t i = 0; i < COORDINATIONS; i++) {
        objects[i] = f->c;
        snprintf(texts[i], sizeof texts[i], "%s-%02zu",
                 "coordination-with-a-name-of-usual-length-for-such-names", i);
        objects[i].meta.name = objects[i].meta.uid = texts[i];
        groups[i] = (struct coord_seen_group){&objects[i], f->selector, ""};
    }
    f->snapshot.groups = groups;
    f->snapshot.group_count = COORDINATIONS;
    rest(f, 0);
    plan(f);
    const struct coord_status *status = must(f, texts[0])->status;
    assert_true(strlen(status->entries[0].message) < 300);
    assert_non_null(strstr(status->entries[0].message, " and 96 more"));
    fixture_free(f);
    test_free(objects);
    test_free(groups);
    test_free(texts);
}

/* ---- what the arbiter says ---- */

TEST(an_opinion_names_all_that_select_it)
{
    struct fixture *f = fixture_new();
    struct sw_opinion opinion = {.owners = "", .words = ""};

    rest(f, 0);
    label(f, 0, "app");
    with_other(f, "app");
    f->c.pending = INT32_MAX; /* whoever has written it there */
    const struct sw_question question = {
        .object = &f->subjects[0].d.meta,
        .old = &f->subjects[0].d.meta,
        .is_review = true,
        .arena = f->arena,
    };
    coord_opinion(f->groups, 2, false, &question, &opinion);
    assert_true(opinion.is_selected);
    assert_int_equal(opinion.verdict, SW_VERDICT_HOLD);
    assert_string_equal(opinion.owners, "coordination/a,coordination/b");
    assert_string_equal(opinion.marks, "coordination/a,coordination/b");
    assert_string_equal(opinion.words, "position 2147483647 of 2147483647");
    fixture_free(f);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("state", the_guard_counts_only_those_that_serve),
        CASE("state", an_annotation_overrides_the_guard),
        CASE("state", of_two_unavailable_ones_the_smaller_share_goes_first),
        CASE("state", the_guard_does_not_count_the_one_that_it_lets_go_first),
        CASE("state", the_loss_of_available_starts_the_wait_again_and_a_lost_pod_does_not),
        CASE("state", available_that_is_lost_by_scaling_up_does_not_start_the_wait_again),
        CASE("state", an_outdated_template_in_the_wait_starts_it_again),
        CASE("state", a_completion_in_the_future_counts_as_now),
        CASE("state", the_deadline_stands_still_while_it_is_paused),
        CASE("state", a_new_mark_renews_the_deadline_and_flapping_does_not),
        CASE("state", an_exceeded_deadline_speaks_of_the_template_that_was_there),
        CASE("state", an_exceeded_deadline_counts_without_the_time_of_its_condition),
        CASE("state", one_put_aside_waits_again_with_another_template),
        CASE("state", a_failure_is_not_forgotten_when_the_api_server_is_upgraded),
        CASE("state", where_coordinations_differ_it_rests_paused),
        CASE("state", the_first_sight_of_a_group_is_one_remark),
        CASE("state", a_status_is_written_only_when_something_else_than_a_generation_differs),
        CASE("state", a_transition_time_moves_only_with_the_status_of_its_condition),
        CASE("state", a_list_of_more_than_500_shows_the_active_the_waiting_and_the_first),
        CASE("state", what_is_found_rolling_is_paused_before_all_that_only_rest),
        CASE("state", a_message_names_only_the_first_of_many_that_overlap),
        CASE("state", an_opinion_names_all_that_select_it),
    };

    return RUN(tests);
}
