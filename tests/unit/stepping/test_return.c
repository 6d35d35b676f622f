/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of a leader that comes to what another one has begun, perhaps hours ago: its deadlines,
 * and what it finds on a target of which nothing is known.
 */
#include "plan_fixture.h"

#define HOUR_MS 3600000

static void put_failed(struct fixture *f, enum step_activity activity, int32_t updated)
{
    put(f, activity, 1, updated);
    f->s.phase = "Failed";
    f->s.failed_hash = NEW;
    f->s.message = "because";
}

/* Nobody led for an hour. */
static void come_back(struct fixture *f)
{
    forget(f);
    pass(f, HOUR_MS);
}

/* ---- deadlines ---- */

TEST(goes_on_with_a_retreat_that_stood_still_while_nobody_led)
{
    struct fixture f;

    begin(&f);
    put_failed(&f, STEP_RETREATING, 2);
    f.t.status_replicas = 12;
    come_back(&f);
    look(&f, 10, 2);
    run(&f);
    assert_non_null(find(&f, STEP_BITE));
    settle(&f);
    assert_string_equal(f.s.activity, "Retreating");
    /* And then it has one deadline, not for ever. */
    pass(&f, 61000);
    look(&f, 10, 2);
    settle(&f);
    assert_string_equal(f.s.activity, "Held");
    end(&f);
}

TEST(goes_on_with_a_rollback_that_stood_still_while_nobody_led)
{
    struct fixture f;

    begin(&f);
    put_failed(&f, STEP_ROLLING_BACK, 2);
    come_back(&f);
    look(&f, 10, 2);
    run(&f);
    assert_non_null(find(&f, STEP_ROLL_BACK));
    settle(&f);
    assert_string_equal(f.s.activity, "RollingBack");
    /* It is put back, but was not let go before nobody led any more. */
    memcpy(f.t.hash, OLD, sizeof f.t.hash);
    touch(&f);
    come_back(&f);
    run(&f);
    assert_non_null(find(&f, STEP_SETTLE));
    settle(&f);
    assert_string_equal(f.s.activity, "RollingBack");
    pass(&f, 61000);
    settle(&f);
    assert_string_equal(f.s.activity, "RolledBack");
    assert_non_null(strstr(f.s.message, "did not become complete"));
    end(&f);
}

TEST(lets_go_what_was_not_let_go_while_nobody_led)
{
    struct fixture f;

    begin(&f);
    put(&f, STEP_ADVANCING, 1, 0);
    come_back(&f);
    run(&f);
    assert_non_null(find(&f, STEP_ADVANCE));
    settle(&f);
    assert_string_equal(f.s.phase, "Progressing");
    release(&f);
    pass(&f, 59000);
    settle(&f);
    assert_string_equal(f.s.phase, "Progressing");
    pass(&f, 2000);
    settle(&f);
    assert_string_equal(f.s.phase, "Failed");
    end(&f);
}

TEST(is_late_by_the_recorded_time_with_what_went_on_by_itself)
{
    struct fixture f;

    begin(&f);
    put(&f, STEP_ADVANCING, 1, 1);
    release(&f);
    come_back(&f);
    settle(&f);
    assert_string_equal(f.s.phase, "Failed");
    end(&f);
}

TEST(looks_before_it_says_that_pods_are_not_ready)
{
    struct fixture f;

    begin(&f);
    put(&f, STEP_ANALYSING, 1, 2);
    f.t.ready = f.t.available = 8; /* of the old ones some are not ready */
    come_back(&f);
    settle(&f);
    assert_string_equal(f.s.phase, "Progressing");
    look(&f, 8, 2);
    settle(&f);
    assert_string_equal(f.s.phase, "Progressing");
    assert_true(f.s.last_round_us > 0);
    end(&f);
}

TEST(is_late_when_it_sees_that_pods_are_not_ready)
{
    struct fixture f;

    begin(&f);
    put(&f, STEP_ANALYSING, 1, 2);
    f.t.ready = f.t.available = 9;
    come_back(&f);
    look(&f, 8, 2);
    f.revisions[0].ready = 1;
    settle(&f);
    assert_string_equal(f.s.phase, "Failed");
    end(&f);
}

/* An interval longer than the deadline. */
TEST(pods_that_are_not_ready_for_a_moment_between_rounds_are_waited_for)
{
    struct fixture f;

    begin(&f);
    f.spec.interval_ms = 600000;
    put(&f, STEP_ANALYSING, 1, 2);
    look(&f, 8, 2);
    settle(&f);
    pass(&f, 600000);
    f.t.ready = 9;
    look(&f, 8, 2);
    f.revisions[0].ready = 1;
    settle(&f);
    assert_string_equal(f.s.phase, "Progressing");
    pass(&f, 61000);
    look(&f, 8, 2);
    f.revisions[0].ready = 1;
    settle(&f);
    assert_string_equal(f.s.phase, "Failed");
    end(&f);
}

/* ---- made anew ---- */

/* As if nothing of it were known, on a target of which an earlier one has not let go. */
static void begin_unknown(struct fixture *f, enum step_target_kind kind)
{
    begin(f);
    memcpy(f->t.hash, NEW, sizeof f->t.hash);
    f->s.phase = f->s.last_applied_hash = f->s.last_promoted_hash = f->s.promoted_revision = "";
    f->t.kind = kind;
    f->t.updated = 2;
}

TEST(lets_go_of_what_an_earlier_one_of_its_name_has_held)
{
    for (int kind = STEP_DEPLOYMENT; kind <= STEP_DAEMON_SET; kind++) {
        struct fixture f;
        begin_unknown(&f, (enum step_target_kind)kind);
        hold(&f);
        f.t.has_saved = kind != STEP_DEPLOYMENT;
        f.marks[1] = (struct sw_label){SW_HELD_BY, "stepping/s"};
        f.d.meta.annotations.count = 2;
        run(&f);
        assert_true(need(&f, STEP_SETTLE)->has_marks);
        assert_null(find(&f, STEP_HOLD));
        end(&f);
    }
}

TEST(lets_go_of_what_one_of_another_name_has_held)
{
    struct fixture f;

    begin_unknown(&f, STEP_DEPLOYMENT);
    f.t.is_held = true;
    f.marks[0] = (struct sw_label){SW_STEPPED_BY, "gone"};
    f.marks[1] = (struct sw_label){SW_HELD_BY, "stepping/gone"};
    f.d.meta.annotations.count = 2;
    run(&f);
    assert_non_null(find(&f, STEP_SETTLE));
    end(&f);
}

/* minReadySeconds is raised: it would not be complete for a day. */
TEST(puts_back_what_an_earlier_one_has_raised)
{
    struct fixture f;

    begin_unknown(&f, STEP_DEPLOYMENT);
    f.t.is_raised = f.t.has_saved = true;
    run(&f);
    assert_non_null(find(&f, STEP_SETTLE));
    end(&f);
}

TEST(leaves_a_pause_of_others_alone_while_nothing_is_known)
{
    struct fixture f;

    begin_unknown(&f, STEP_DEPLOYMENT);
    f.t.is_held = true;
    f.marks[1] = (struct sw_label){SW_HELD_BY, "coordination/g,user"};
    f.d.meta.annotations.count = 2;
    run(&f);
    assert_null(find(&f, STEP_SETTLE));
    end(&f);
    begin_unknown(&f, STEP_STATEFUL_SET); /* held for a person */
    hold(&f);
    f.t.has_saved = true;
    f.t.others = SW_VERDICT_HOLD_OUT_OF_LINE;
    f.t.others_owners = "user";
    run(&f);
    assert_null(find(&f, STEP_SETTLE));
    end(&f);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("stepping return", goes_on_with_a_retreat_that_stood_still_while_nobody_led),
        CASE("stepping return", goes_on_with_a_rollback_that_stood_still_while_nobody_led),
        CASE("stepping return", lets_go_what_was_not_let_go_while_nobody_led),
        CASE("stepping return", is_late_by_the_recorded_time_with_what_went_on_by_itself),
        CASE("stepping return", looks_before_it_says_that_pods_are_not_ready),
        CASE("stepping return", is_late_when_it_sees_that_pods_are_not_ready),
        CASE("stepping return", pods_that_are_not_ready_for_a_moment_between_rounds_are_waited_for),
        CASE("stepping return", lets_go_of_what_an_earlier_one_of_its_name_has_held),
        CASE("stepping return", lets_go_of_what_one_of_another_name_has_held),
        CASE("stepping return", puts_back_what_an_earlier_one_has_raised),
        CASE("stepping return", leaves_a_pause_of_others_alone_while_nothing_is_known),
    };
    return RUN(tests);
}
