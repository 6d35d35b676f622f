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

#define HELD ((struct hold_state){true, "coordination/web", "", "web", ""})
#define RELEASED ((struct hold_state){false, "", "coordination/web", "web", ""})
#define RESTING ((struct hold_state){false, "", "", "web", ""})
#define USERS ((struct hold_state){true, "", "", "web", ""})

static enum hold_outcome apply(struct fixture *f, struct hold_state state, enum sw_hold_verb verb,
                               const char *owners, struct hold_state *ret_state)
{
    struct sw_hold_request request = {.verb = verb, .owners = owners};

    return hold_apply(f->arena, &state, &request, "coordination", &f->others, ret_state);
}

static void check_state(const struct hold_state *got, struct hold_state wanted)
{
    assert_int_equal(got->is_paused, wanted.is_paused);
    assert_string_equal(got->held_by, wanted.held_by);
    assert_string_equal(got->released_by, wanted.released_by);
    assert_string_equal(got->coordinated_by, wanted.coordinated_by);
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
    struct hold_state on = {false, "", "coordination/a", "a,b", ""};

    assert_false(hold_is_released(&on));
    on.released_by = "coordination/b,coordination/a";
    assert_true(hold_is_released(&on));
    on.coordinated_by = "";
    assert_true(hold_is_released(&on));
    on.released_by = "";
    assert_false(hold_is_released(&on));
    on = (struct hold_state){false, "", "coordination/ab", "a", ""};
    assert_false(hold_is_released(&on));
    on.released_by = "stepping/a"; /* another policy's word for something else of that name */
    assert_false(hold_is_released(&on));
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
    struct sw_hold_request request = {.verb = SW_HOLD_MARK, .owners = "", .marks = "web,api"};

    assert_int_equal(hold_apply(f.arena, &on, &request, "coordination", &f.others, &to),
                     HOLD_CHANGES);
    assert_string_equal(to.coordinated_by, "web,api");
    request = (struct sw_hold_request){.verb = SW_HOLD_FENCE, .owners = "", .fence = "123"};
    assert_int_equal(hold_apply(f.arena, &on, &request, "coordination", &f.others, &to),
                     HOLD_CHANGES);
    assert_string_equal(to.fence, "123");
    assert_false(to.is_paused);
    request = (struct sw_hold_request){
        .verb = SW_HOLD_ADOPT, .owners = "coordination/web", .marks = "web"};
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

    assert_null(hold_merge_patch(arena, &held, &held));
    struct sw_json *patch = hold_merge_patch(arena, &held, &released);
    assert_string_equal(
        sw_json_dump(patch, arena, NULL),
        "{\"metadata\":{\"annotations\":{\"slipway.dev/held-by\":null,"
        "\"slipway.dev/released-by\":\"coordination/web\"}},\"spec\":{\"paused\":false}}");
    sw_arena_free(arena);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("hold", lists_are_united_sorted_and_without_repetitions),
        CASE("hold", released_means_released_by_all_that_coordinate_it),
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
