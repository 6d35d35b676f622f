/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a policy may ask of the hand, and what it writes for it: each verb on each state that
 * matters.
 */
#include "test.h"

#include "hold.h"

struct fixture {
    struct sw_arena *arena;
    struct sw_opinion others;
};

static struct fixture fixture_new(void)
{
    return (struct fixture){
        .arena = sw_arena_new(0),
        .others = {.owners = "", .words = "", .marks = NULL},
    };
}

#define HELD ((struct hold_state){true, "coordination/web", "", {"web", ""}, "", ""})
#define RELEASED ((struct hold_state){false, "", "coordination/web", {"web", ""}, "", ""})
#define RESTING ((struct hold_state){false, "", "", {"web", ""}, "", ""})
#define USERS ((struct hold_state){true, "", "", {"web", ""}, "", ""})
/* The same with a SteppedRollout beside the coordination. */
#define STEPPED_HELD \
    ((struct hold_state){true, "coordination/web,stepping/x", "", {"web", "x"}, "", ""})
#define STEPPED_RELEASED \
    ((struct hold_state){false, "", "coordination/web,stepping/x", {"web", "x"}, "", ""})
/* At a stop: the coordination's right stays. */
#define AT_STOP ((struct hold_state){true, "stepping/x", "coordination/web", {"web", "x"}, "", ""})

static enum hold_outcome apply_for(struct fixture *f, const char *policy, struct hold_state state,
                                   enum sw_hold_verb verb, const char *owners,
                                   struct hold_state *ret_state)
{
    struct sw_hold_request request = {.verb = verb, .owners = owners};

    return hold_apply(f->arena, &state, &request, policy, &f->others, ret_state);
}

static enum hold_outcome apply(struct fixture *f, struct hold_state state, enum sw_hold_verb verb,
                               const char *owners, struct hold_state *ret_state)
{
    return apply_for(f, "coordination", state, verb, owners, ret_state);
}

static void check_state(const struct hold_state *got, struct hold_state wanted)
{
    assert_int_equal(got->is_paused, wanted.is_paused);
    assert_string_equal(got->held_by, wanted.held_by);
    assert_string_equal(got->released_by, wanted.released_by);
    for (size_t i = 0; i < HOLD_POLICIES; i++)
        assert_string_equal(got->marks[i], wanted.marks[i]);
    assert_string_equal(got->fence, wanted.fence);
}

TEST(lists_are_united_sorted_and_without_repetitions)
{
    struct sw_arena *arena = sw_arena_new(0);

    assert_string_equal(hold_list_union(arena, "", ""), "");
    assert_string_equal(hold_list_union(arena, "b,a", "a"), "a,b");
    assert_string_equal(hold_list_union(arena, " user , ,coordination/x", "coordination/xy"),
                        "coordination/x,coordination/xy,user");
    assert_string_equal(
        hold_list_without(arena, "coordination/a,user,coordination/b", "coordination"), "user");
    assert_string_equal(hold_list_without(arena, "coordinations/a", "coordination"),
                        "coordinations/a");
    assert_true(hold_list_has("a,b", "b"));
    assert_false(hold_list_has("ab", "a"));
    assert_true(hold_list_has_policy("x/1,user", "user"));
    assert_false(hold_list_has_policy("users", "user"));
    sw_arena_free(arena);
}

TEST(released_means_released_by_all_that_coordinate_it)
{
    struct hold_state on = {false, "", "coordination/a", {"a,b", ""}, "", ""};

    assert_false(hold_is_released(&on));
    on.released_by = "coordination/b,coordination/a";
    assert_true(hold_is_released(&on));
    on.marks[0] = "";
    assert_true(hold_is_released(&on));
    on.released_by = "";
    assert_false(hold_is_released(&on));
    on = (struct hold_state){false, "", "coordination/ab", {"a", ""}, "", ""};
    assert_false(hold_is_released(&on));
    on.released_by = "stepping/a"; /* another policy's word for something else of that name */
    assert_false(hold_is_released(&on));
}

TEST(released_means_released_by_every_policy_that_has_marked_it)
{
    struct hold_state on = STEPPED_RELEASED;

    assert_true(hold_is_released(&on));
    on.released_by = "coordination/web";
    assert_false(hold_is_released(&on));
    on.released_by = "stepping/x";
    assert_false(hold_is_released(&on));
    on.marks[0] = "";
    assert_true(hold_is_released(&on));
    on.released_by = "coordination/x";
    assert_false(hold_is_released(&on));
}

TEST(a_mark_shows_the_names_of_its_policys_owners)
{
    struct sw_arena *arena = sw_arena_new(0);
    struct hold_state on = STEPPED_HELD;

    assert_string_equal(
        hold_names_of(arena, "coordination/a,stepping/x,coordination/b, user", "coordination"),
        "a,b");
    assert_string_equal(
        hold_names_of(arena, "coordination/,coordination,coordinations/a", "coordination"), "");
    on.marks[0] = "b,a";
    assert_string_equal(hold_owners_of_marks(arena, &on, ""),
                        "coordination/a,coordination/b,stepping/x");
    assert_string_equal(hold_owners_of_marks(arena, &on, "coordination/a"), "stepping/x");
    assert_string_equal(hold_owners_of_marks(arena, &on, "stepping/x,coordination/b"), "");
    sw_arena_free(arena);
}

TEST(a_pause_takes_the_right_to_roll_and_names_its_owner)
{
    struct fixture f = fixture_new();
    struct hold_state to;

    assert_int_equal(apply(&f, RELEASED, SW_HOLD_PAUSE, "coordination/web", &to), HOLD_CHANGES);
    check_state(&to, HELD);
    assert_int_equal(apply(&f, HELD, SW_HOLD_PAUSE, "coordination/web", &to), HOLD_UNCHANGED);
    f.others.verdict = SW_VERDICT_HOLD_OUT_OF_LINE;
    f.others.owners = "user";
    assert_int_equal(apply(&f, RESTING, SW_HOLD_PAUSE, "coordination/web", &to), HOLD_CHANGES);
    assert_string_equal(to.held_by, "coordination/web,user");
    sw_arena_free(f.arena);
}

TEST(a_persons_pause_is_neither_adopted_nor_undone)
{
    struct fixture f = fixture_new();
    struct hold_state on = USERS, to;

    assert_int_equal(apply(&f, on, SW_HOLD_PAUSE, "coordination/web", &to), HOLD_UNCHANGED);
    assert_int_equal(apply(&f, on, SW_HOLD_FREE, "coordination/web", &to), HOLD_UNCHANGED);
    assert_int_equal(apply(&f, on, SW_HOLD_RELEASE, "coordination/web", &to), HOLD_REFUSED);
    on.released_by = "coordination/web";
    assert_int_equal(apply(&f, on, SW_HOLD_PAUSE, "coordination/web", &to), HOLD_CHANGES);
    check_state(&to, USERS);
    assert_int_equal(apply(&f, on, SW_HOLD_TAKE_BACK, "coordination/web", &to), HOLD_CHANGES);
    check_state(&to, USERS);
    sw_arena_free(f.arena);
}

TEST(a_release_unpauses_and_writes_the_right)
{
    struct fixture f = fixture_new();
    struct hold_state to;

    assert_int_equal(apply(&f, HELD, SW_HOLD_RELEASE, "coordination/web", &to), HOLD_CHANGES);
    check_state(&to, RELEASED);
    /* An owner that holds no longer does not keep it from rolling. */
    struct hold_state on = HELD;
    on.held_by = "coordination/web,stepping/old";
    assert_int_equal(apply(&f, on, SW_HOLD_RELEASE, "coordination/web", &to), HOLD_CHANGES);
    check_state(&to, RELEASED);
    sw_arena_free(f.arena);
}

TEST(a_release_is_refused_while_another_holds)
{
    struct fixture f = fixture_new();
    struct hold_state to;

    f.others.verdict = SW_VERDICT_HOLD;
    f.others.owners = "stepping/x";
    assert_int_equal(apply(&f, HELD, SW_HOLD_RELEASE, "coordination/web", &to), HOLD_REFUSED);
    sw_arena_free(f.arena);
}

/* One write by whoever is last: who is free lets it roll as well. */
TEST(a_release_names_all_the_others_that_are_free)
{
    struct fixture f = fixture_new();
    struct hold_state to;

    f.others.is_selected = true;
    f.others.owners = "stepping/x";
    assert_int_equal(apply(&f, STEPPED_HELD, SW_HOLD_RELEASE, "coordination/web", &to),
                     HOLD_CHANGES);
    check_state(&to, STEPPED_RELEASED);
    assert_true(hold_is_released(&to));
    f.others.owners = "coordination/web";
    assert_int_equal(apply_for(&f, "stepping", AT_STOP, SW_HOLD_RELEASE, "stepping/x", &to),
                     HOLD_CHANGES);
    check_state(&to, STEPPED_RELEASED);
    sw_arena_free(f.arena);
}

TEST(a_pause_at_a_stop_leaves_the_right_of_the_coordination_and_the_end_leaves_it_running)
{
    struct fixture f = fixture_new();
    struct hold_state on = AT_STOP, to;

    f.others.is_selected = true;
    f.others.owners = "coordination/web";
    assert_int_equal(apply_for(&f, "stepping", STEPPED_RELEASED, SW_HOLD_PAUSE, "stepping/x", &to),
                     HOLD_CHANGES);
    check_state(&to, AT_STOP);
    assert_int_equal(apply_for(&f, "stepping", STEPPED_RELEASED, SW_HOLD_FREE, "stepping/x", &to),
                     HOLD_CHANGES);
    check_state(&to, (struct hold_state){false, "", "coordination/web", {"web", "x"}, "", ""});
    assert_int_equal(apply_for(&f, "stepping", on, SW_HOLD_FREE, "stepping/x", &to), HOLD_CHANGES);
    check_state(&to, (struct hold_state){false, "", "coordination/web", {"web", "x"}, "", ""});
    /* The turn has ended meanwhile: it stays paused for the coordination. */
    f.others.verdict = SW_VERDICT_HOLD;
    on.released_by = "";
    assert_int_equal(apply_for(&f, "stepping", on, SW_HOLD_FREE, "stepping/x", &to), HOLD_CHANGES);
    check_state(&to, (struct hold_state){true, "coordination/web", "", {"web", "x"}, "", ""});
    assert_int_equal(apply_for(&f, "stepping", on, SW_HOLD_RELEASE, "stepping/x", &to),
                     HOLD_REFUSED);
    sw_arena_free(f.arena);
}

TEST(freeing_leaves_the_holds_of_others)
{
    struct fixture f = fixture_new();
    struct hold_state on = HELD, to;

    assert_int_equal(apply(&f, on, SW_HOLD_FREE, "", &to), HOLD_CHANGES);
    check_state(&to, RESTING);
    on.held_by = "coordination/web,user";
    assert_int_equal(apply(&f, on, SW_HOLD_FREE, "", &to), HOLD_CHANGES);
    assert_true(to.is_paused);
    assert_string_equal(to.held_by, "user");
    /* Somebody else began to hold it and is not in the annotation yet. */
    on.held_by = "coordination/web";
    f.others.verdict = SW_VERDICT_HOLD;
    f.others.owners = "stepping/x";
    assert_int_equal(apply(&f, on, SW_HOLD_FREE, "", &to), HOLD_CHANGES);
    assert_true(to.is_paused);
    assert_string_equal(to.held_by, "stepping/x");
    sw_arena_free(f.arena);
}

TEST(a_hold_of_one_policy_leaves_the_right_that_another_gave)
{
    struct fixture f = fixture_new();
    struct hold_state to;
    struct sw_hold_request request = {.verb = SW_HOLD_PAUSE, .owners = "user"};
    struct hold_state on = RELEASED;

    assert_int_equal(hold_apply(f.arena, &on, &request, "user", &f.others, &to), HOLD_CHANGES);
    assert_string_equal(to.released_by, "coordination/web");
    assert_string_equal(to.held_by, "user");
    assert_true(to.is_paused);
    sw_arena_free(f.arena);
}

TEST(marks_and_fences_go_with_any_verb)
{
    struct fixture f = fixture_new();
    struct hold_state on = RESTING, to;
    struct sw_hold_request request = {
        .verb = SW_HOLD_MARK, .owners = "", .marks = "coordination/web,coordination/api"};

    assert_int_equal(hold_apply(f.arena, &on, &request, "coordination", &f.others, &to),
                     HOLD_CHANGES);
    assert_string_equal(to.marks[0], "web,api");
    assert_string_equal(to.marks[1], "");
    /* Each policy writes its own mark only. */
    request.marks = "stepping/x";
    assert_int_equal(hold_apply(f.arena, &on, &request, "stepping", &f.others, &to), HOLD_CHANGES);
    assert_string_equal(to.marks[0], "web");
    assert_string_equal(to.marks[1], "x");
    request.marks = "";
    on = to;
    assert_int_equal(hold_apply(f.arena, &on, &request, "stepping", &f.others, &to), HOLD_CHANGES);
    assert_string_equal(to.marks[0], "web");
    assert_string_equal(to.marks[1], "");
    request = (struct sw_hold_request){.verb = SW_HOLD_FENCE, .owners = "", .fence = "123"};
    assert_int_equal(hold_apply(f.arena, &on, &request, "coordination", &f.others, &to),
                     HOLD_CHANGES);
    assert_string_equal(to.fence, "123");
    assert_false(to.is_paused);
    request = (struct sw_hold_request){
        .verb = SW_HOLD_ADOPT, .owners = "coordination/web", .marks = "coordination/web"};
    on = USERS;
    assert_int_equal(hold_apply(f.arena, &on, &request, "coordination", &f.others, &to),
                     HOLD_CHANGES);
    check_state(&to, HELD);
    sw_arena_free(f.arena);
}

TEST(a_patch_holds_only_what_differs)
{
    struct sw_arena *arena = sw_arena_new(0);
    struct hold_state held = HELD, released = RELEASED;

    assert_null(hold_merge_patch(arena, &held, &held, NULL));
    struct sw_json *patch = hold_merge_patch(arena, &held, &released, NULL);
    assert_string_equal(
        sw_json_dump(patch, arena, NULL),
        "{\"metadata\":{\"annotations\":{\"slipway.dev/held-by\":null,"
        "\"slipway.dev/released-by\":\"coordination/web\"}},\"spec\":{\"paused\":false}}");
    sw_arena_free(arena);
}

TEST(what_a_policy_changes_beside_the_hold_goes_into_the_same_patch)
{
    static const char text[] =
        "{\"metadata\":{\"annotations\":{\"slipway.dev/saved\":\"{}\"}},"
        "\"spec\":{\"minReadySeconds\":86400,\"progressDeadlineSeconds\":null}}";
    struct sw_arena *arena = sw_arena_new(0);
    struct hold_state held = STEPPED_HELD, marked = HELD;
    struct sw_json *also;

    marked.held_by = "coordination/web,stepping/x";
    assert_int_equal(sw_json_parse(arena, text, sizeof text - 1, &also, NULL), 0);
    assert_string_equal(sw_json_dump(hold_merge_patch(arena, &held, &held, also), arena, NULL),
                        text);
    struct sw_json *patch = hold_merge_patch(arena, &marked, &STEPPED_RELEASED, also);
    assert_string_equal(sw_json_dump(patch, arena, NULL),
                        "{\"metadata\":{\"annotations\":{\"slipway.dev/saved\":\"{}\","
                        "\"slipway.dev/held-by\":null,"
                        "\"slipway.dev/released-by\":\"coordination/web,stepping/x\","
                        "\"slipway.dev/stepped-by\":\"x\"}},"
                        "\"spec\":{\"minReadySeconds\":86400,"
                        "\"progressDeadlineSeconds\":null,\"paused\":false}}");
    /* The asker's own is as it was. */
    assert_string_equal(sw_json_dump(also, arena, NULL), text);
    sw_arena_free(arena);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("hold", lists_are_united_sorted_and_without_repetitions),
        CASE("hold", released_means_released_by_all_that_coordinate_it),
        CASE("hold", released_means_released_by_every_policy_that_has_marked_it),
        CASE("hold", a_mark_shows_the_names_of_its_policys_owners),
        CASE("hold", a_release_names_all_the_others_that_are_free),
        CASE("hold",
             a_pause_at_a_stop_leaves_the_right_of_the_coordination_and_the_end_leaves_it_running),
        CASE("hold", what_a_policy_changes_beside_the_hold_goes_into_the_same_patch),
        CASE("hold", a_pause_takes_the_right_to_roll_and_names_its_owner),
        CASE("hold", a_persons_pause_is_neither_adopted_nor_undone),
        CASE("hold", a_release_unpauses_and_writes_the_right),
        CASE("hold", a_release_is_refused_while_another_holds),
        CASE("hold", freeing_leaves_the_holds_of_others),
        CASE("hold", a_hold_of_one_policy_leaves_the_right_that_another_gave),
        CASE("hold", marks_and_fences_go_with_any_verb),
        CASE("hold", a_patch_holds_only_what_differs),
    };
    return RUN(tests);
}
