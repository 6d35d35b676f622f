/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The admission table, row by row. A review is answered by a JSON patch; what the test looks at is
 * the object that comes out when the patch is applied, as the API server would.
 */
#include "test.h"

#include "hold.h"

#define LABELS_MAX 8

/* A Deployment as far as admission looks at it. */
struct subject {
    struct sw_deployment deployment;
    struct sw_label annotations[LABELS_MAX];
};

/* In the order of their keys, as the decoder delivers them. */
static void annotate(struct subject *subject, const char *key, const char *value)
{
    uint32_t count = subject->deployment.meta.annotations.count;

    if (!value)
        return;
    assert_true(count < LABELS_MAX);
    uint32_t at = count;
    for (; at > 0 && strcmp(subject->annotations[at - 1].key, key) > 0; at--)
        subject->annotations[at] = subject->annotations[at - 1];
    subject->annotations[at] = (struct sw_label){key, value};
    subject->deployment.meta.annotations.at = subject->annotations;
    subject->deployment.meta.annotations.count = count + 1;
}

static void make(struct subject *subject, bool is_paused, const char *coordinated_by,
                 const char *held_by, const char *released_by, uint64_t template_)
{
    *subject = (struct subject){
        .deployment = {.meta = {.namespace_ = "n", .name = "d"},
                       .replicas = 2,
                       .status_replicas = 2},
    };
    subject->deployment.is_paused = is_paused;
    subject->deployment.template_hash.low = template_;
    annotate(subject, SW_COORDINATED_BY, coordinated_by);
    annotate(subject, SW_HELD_BY, held_by);
    annotate(subject, SW_RELEASED_BY, released_by);
}

struct outcome {
    struct hold_state state;
    bool has_warning;
    bool has_patch;
    char warning[256];
    const char *further; /* what the arbiters warn of; NULL */
    const struct sw_json *patch;
};

static struct sw_opinion selected(void)
{
    return (struct sw_opinion){
        .verdict = SW_VERDICT_HOLD,
        .is_selected = true,
        .owners = "coordination/web",
        .marks = "coordination/web",
        .words = "position 1 of 2",
    };
}

static struct sw_opinion selected_running(void)
{
    struct sw_opinion opinion = selected();

    opinion.rests_running = true;
    return opinion;
}

static struct sw_opinion unselected(void)
{
    return (struct sw_opinion){.owners = "", .words = ""};
}

/* Applies the operations to the state; dies on one that the API server would refuse. */
static void apply_patch(struct hold_state *state, bool has_annotations, const struct sw_json *patch)
{
    static const char *const paths[] = {
        "/metadata/annotations/slipway.dev~1held-by",
        "/metadata/annotations/slipway.dev~1released-by",
        "/metadata/annotations/slipway.dev~1coordinated-by",
        "/metadata/annotations/slipway.dev~1fence",
        "/metadata/annotations/slipway.dev~1stepped-by",
        "/metadata/annotations/slipway.dev~1saved",
    };
    const char **members[] = {&state->held_by, &state->released_by, &state->marks[0],
                              &state->fence,   &state->marks[1],    &state->saved};

    for (size_t i = 0; i < sw_json_size(patch); i++) {
        const struct sw_json *operation = sw_json_element(patch, i);
        const char *op = sw_json_get_string(operation, "op");
        const char *path = sw_json_get_string(operation, "path");
        bool is_known = false;
        if (strcmp(path, "/metadata/annotations") == 0) {
            assert_false(has_annotations);
            has_annotations = is_known = true;
        }
        if (strcmp(path, "/spec/paused") == 0) {
            state->is_paused = sw_json_get_bool(operation, "value", false);
            is_known = true;
        }
        for (size_t k = 0; k < sizeof paths / sizeof paths[0]; k++) {
            if (strcmp(path, paths[k]) != 0)
                continue;
            assert_true(has_annotations);
            if (strcmp(op, "remove") == 0)
                assert_true((*members[k])[0] != '\0');
            *members[k] = strcmp(op, "remove") == 0 ? "" : sw_json_get_string(operation, "value");
            is_known = true;
        }
        if (strncmp(path, "/spec/", 6) == 0)
            is_known = true; /* an arbiter's */
        assert_true(is_known);
    }
}

static struct sw_arena *arena;

static struct outcome ask_as(struct subject *now, struct subject *old, struct sw_opinion opinion,
                             bool is_by_us)
{
    struct sw_review review = {
        .operation = old ? SW_OPERATION_UPDATE : SW_OPERATION_CREATE,
        .namespace_ = "n",
        .name = "d",
        .object = &now->deployment.meta,
        .old = old ? &old->deployment.meta : NULL,
        .has_annotations = now->deployment.meta.annotations.count > 0,
        .arena = arena,
    };
    struct sw_review_answer answer = {0};
    struct outcome outcome = {0};

    hold_review(&review, &opinion, is_by_us, &answer);
    assert_false(answer.is_denied);
    hold_state_of(&now->deployment, &outcome.state);
    apply_patch(&outcome.state, review.has_annotations, answer.patch);
    outcome.has_patch = sw_json_size(answer.patch) > 0;
    outcome.patch = answer.patch;
    outcome.further = answer.warnings[1];
    outcome.has_warning = answer.warnings[0] != NULL;
    if (outcome.has_warning)
        snprintf(outcome.warning, sizeof(outcome.warning), "%s", answer.warnings[0]);
    return outcome;
}

static struct outcome ask(struct subject *now, struct subject *old, struct sw_opinion opinion)
{
    return ask_as(now, old, opinion, false);
}

static int setup(void **state)
{
    (void)state;
    arena = sw_arena_new(0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena = sw_arena_free(arena);
    return 0;
}

static void check_held(const struct outcome *outcome, const char *owners)
{
    assert_true(outcome->state.is_paused);
    assert_string_equal(outcome->state.held_by, owners);
    assert_string_equal(outcome->state.released_by, "");
}

TEST(a_created_one_is_held_and_marked)
{
    struct subject now;

    make(&now, false, NULL, NULL, NULL, 1);
    struct outcome outcome = ask(&now, NULL, selected());
    check_held(&outcome, "coordination/web");
    assert_string_equal(outcome.state.marks[0], "web");
    assert_string_equal(outcome.warning, "held by coordination/web: position 1 of 2");
}

TEST(a_created_one_that_nobody_selects_passes)
{
    struct subject now;

    make(&now, false, NULL, NULL, NULL, 1);
    struct outcome outcome = ask(&now, NULL, unselected());
    assert_false(outcome.has_patch);
    assert_false(outcome.has_warning);
}

TEST(one_created_paused_is_a_persons_pause)
{
    struct subject now;

    make(&now, true, NULL, NULL, NULL, 1);
    struct outcome outcome = ask(&now, NULL, selected());
    assert_false(outcome.has_patch);
}

TEST(a_backup_of_a_held_one_counts_as_not_paused)
{
    struct subject now;

    make(&now, true, "web", "coordination/web", NULL, 1);
    struct outcome outcome = ask(&now, NULL, selected());
    check_held(&outcome, "coordination/web");
    make(&now, true, "web", "coordination/web", NULL, 1);
    outcome = ask(&now, NULL, unselected());
    assert_false(outcome.state.is_paused);
    assert_string_equal(outcome.state.held_by, "");
    assert_string_equal(outcome.state.marks[0], "");
}

TEST(a_forged_right_is_removed_on_create_and_update)
{
    struct subject now, old;

    make(&now, false, NULL, NULL, "coordination/web", 1);
    struct outcome outcome = ask(&now, NULL, selected());
    check_held(&outcome, "coordination/web");
    make(&now, false, NULL, NULL, "coordination/web", 2);
    make(&old, true, "web", "coordination/web", NULL, 1);
    outcome = ask(&now, &old, unselected());
    check_held(&outcome, "coordination/web");
    assert_string_equal(outcome.state.marks[0], "web");
}

TEST(the_held_stays_held_whatever_is_submitted)
{
    struct subject now, old;

    make(&old, true, "web", "coordination/web", NULL, 1);
    make(&now, false, NULL, NULL, NULL, 2);
    struct outcome outcome = ask(&now, &old, selected());
    check_held(&outcome, "coordination/web");
    assert_true(outcome.has_warning);
    make(&now, true, "web", "coordination/web", NULL, 1);
    outcome = ask(&now, &old, selected());
    assert_false(outcome.has_patch);
    assert_false(outcome.has_warning);
}

TEST(the_released_rolls_whatever_the_cache_says)
{
    struct subject now, old;
    struct sw_opinion opinion = selected();

    /* The policy answers by the stored object. */
    opinion.verdict = SW_VERDICT_FREE;
    opinion.owners = "";
    make(&old, false, "web", NULL, "coordination/web", 1);
    make(&now, false, NULL, NULL, NULL, 2);
    struct outcome outcome = ask(&now, &old, opinion);
    assert_false(outcome.state.is_paused);
    assert_string_equal(outcome.state.released_by, "coordination/web");
    assert_string_equal(outcome.state.marks[0], "web");
    /* A person may pause it, and resume it. */
    make(&now, true, "web", NULL, "coordination/web", 1);
    outcome = ask(&now, &old, opinion);
    assert_true(outcome.state.is_paused);
    assert_string_equal(outcome.state.held_by, "");
    make(&old, true, "web", NULL, "coordination/web", 1);
    make(&now, false, "web", NULL, "coordination/web", 1);
    outcome = ask(&now, &old, opinion);
    assert_false(outcome.state.is_paused);
}

TEST(another_arbiter_may_hold_the_released)
{
    struct subject now, old;
    struct sw_opinion opinion = selected();

    opinion.owners = "stepping/x";
    make(&old, false, "web", NULL, "coordination/web", 1);
    make(&now, false, "web", NULL, "coordination/web", 2);
    struct outcome outcome = ask(&now, &old, opinion);
    assert_true(outcome.state.is_paused);
    assert_string_equal(outcome.state.held_by, "stepping/x");
    assert_string_equal(outcome.state.released_by, "coordination/web");
}

TEST(released_for_one_of_two_is_not_released)
{
    struct subject now, old;

    make(&old, false, "api,web", NULL, "coordination/web", 1);
    make(&now, false, "api,web", NULL, "coordination/web", 2);
    struct outcome outcome = ask(&now, &old, selected());
    assert_true(outcome.state.is_paused);
    assert_string_equal(outcome.state.held_by, "coordination/web");
}

TEST(with_both_annotations_it_counts_as_held)
{
    struct subject now, old;

    make(&old, true, "web", "coordination/web", "coordination/web", 1);
    make(&now, false, "web", NULL, "coordination/web", 2);
    struct outcome outcome = ask(&now, &old, selected());
    assert_true(outcome.state.is_paused);
    assert_string_equal(outcome.state.held_by, "coordination/web");
}

TEST(at_rest_paused_the_unpaused_is_held_by_any_update)
{
    struct subject now, old;

    make(&old, false, NULL, NULL, NULL, 1);
    make(&now, false, NULL, NULL, NULL, 1);
    struct outcome outcome = ask(&now, &old, selected());
    check_held(&outcome, "coordination/web");
}

TEST(at_rest_running_only_a_new_template_or_a_resume_is_held)
{
    struct subject now, old;

    make(&old, false, "web", NULL, NULL, 1);
    make(&now, false, "web", NULL, NULL, 1);
    assert_false(ask(&now, &old, selected_running()).has_patch);
    make(&now, false, "web", NULL, NULL, 2);
    struct outcome outcome = ask(&now, &old, selected_running());
    check_held(&outcome, "coordination/web");
    make(&old, true, "web", NULL, NULL, 1);
    make(&now, false, "web", NULL, NULL, 1);
    outcome = ask(&now, &old, selected_running());
    check_held(&outcome, "coordination/web");
}

TEST(a_persons_pause_stays_theirs)
{
    struct subject now, old;

    make(&old, false, "web", NULL, NULL, 1);
    make(&now, true, "web", NULL, NULL, 2);
    assert_false(ask(&now, &old, selected()).has_patch);
}

TEST(with_no_pods_and_none_wanted_it_passes)
{
    struct subject now, old;

    make(&old, false, "web", NULL, NULL, 1);
    make(&now, false, "web", NULL, NULL, 2);
    now.deployment.replicas = old.deployment.replicas = 0;
    old.deployment.status_replicas = 0;
    assert_false(ask(&now, &old, selected()).has_patch);
    old.deployment.status_replicas = 1;
    assert_true(ask(&now, &old, selected()).has_patch);
}

TEST(the_mark_counts_where_the_cache_does_not_know_yet)
{
    struct subject now, old;

    make(&old, false, "web", NULL, NULL, 1);
    make(&now, false, NULL, NULL, NULL, 2);
    struct outcome outcome = ask(&now, &old, unselected());
    check_held(&outcome, "coordination/web");
    assert_string_equal(outcome.state.marks[0], "web");
}

TEST(ignored_means_that_the_pause_is_the_persons_business)
{
    struct subject now, old;

    make(&old, true, "web", "coordination/web", NULL, 1);
    make(&now, false, "web", "coordination/web", NULL, 1);
    annotate(&now, SW_IGNORE, "true");
    assert_false(ask(&now, &old, selected()).state.is_paused);
}

TEST(a_hold_counts_also_on_the_ignored)
{
    struct sw_opinion wish = {
        .verdict = SW_VERDICT_HOLD_OUT_OF_LINE,
        .owners = "user",
        .words = "freeze",
    };
    struct subject now, old;

    make(&old, false, NULL, NULL, NULL, 1);
    make(&now, false, NULL, NULL, NULL, 2);
    annotate(&now, SW_IGNORE, "true");
    assert_false(ask(&now, &old, unselected()).state.is_paused);
    struct outcome outcome = ask(&now, &old, wish);
    check_held(&outcome, "user");
    outcome = ask(&now, NULL, wish);
    check_held(&outcome, "user");

    /* What is held stays held, while the hold stands. */
    make(&old, true, NULL, "user", NULL, 1);
    outcome = ask(&now, &old, wish);
    check_held(&outcome, "user");
    assert_string_equal(outcome.state.marks[0], "");

    /* The same for a write of ours that another webhook has given a template. */
    make(&old, false, NULL, NULL, NULL, 1);
    assert_true(ask_as(&now, &old, wish, true).state.is_paused);
    assert_false(ask_as(&now, &old, unselected(), true).state.is_paused);
}

/* The object as our answer has left it, with the stored one as before: what the API server sends
 * when another webhook has changed something after us. */
static void check_second_round(struct subject *old, bool is_old_paused, const struct outcome *first,
                               struct sw_opinion opinion)
{
    const struct hold_state *state = &first->state;
    struct subject again;

    assert_int_equal(old ? old->deployment.is_paused : false, is_old_paused);
    make(&again, state->is_paused, state->marks[0], state->held_by,
         state->released_by[0] ? state->released_by : NULL, 3);
    struct outcome second = ask(&again, old, opinion);
    assert_false(second.has_patch);
    assert_int_equal(second.state.is_paused, state->is_paused);
    assert_string_equal(second.state.held_by, state->held_by);
    assert_true(second.has_warning);
}

TEST(asked_again_after_another_webhook_the_answer_stays)
{
    struct subject now, old;
    struct sw_opinion stepping = selected();

    make(&now, false, NULL, NULL, NULL, 2);
    struct outcome first = ask(&now, NULL, selected());
    check_held(&first, "coordination/web");
    check_second_round(NULL, false, &first, selected());

    make(&old, false, "web", NULL, NULL, 1);
    make(&now, false, "web", NULL, NULL, 2);
    first = ask(&now, &old, selected_running());
    check_held(&first, "coordination/web");
    check_second_round(&old, false, &first, selected_running());

    /* A person resumes. */
    make(&old, true, "web", NULL, NULL, 1);
    make(&now, false, "web", NULL, NULL, 1);
    first = ask(&now, &old, selected());
    check_held(&first, "coordination/web");
    check_second_round(&old, true, &first, selected());

    stepping.owners = "stepping/x";
    make(&old, false, "web", NULL, "coordination/web", 1);
    make(&now, false, "web", NULL, "coordination/web", 2);
    first = ask(&now, &old, stepping);
    assert_string_equal(first.state.held_by, "stepping/x");
    check_second_round(&old, false, &first, stepping);
}

TEST(an_older_copy_of_a_held_one_does_not_pause_the_released)
{
    struct subject now, old;
    struct sw_opinion opinion = selected();

    opinion.verdict = SW_VERDICT_FREE;
    make(&old, false, "web", NULL, "coordination/web", 1);
    make(&now, true, "web", "coordination/web", NULL, 2);
    struct outcome outcome = ask(&now, &old, opinion);
    assert_false(outcome.state.is_paused);
    assert_string_equal(outcome.state.held_by, "");
    assert_string_equal(outcome.state.released_by, "coordination/web");
}

TEST(an_older_copy_of_a_held_one_does_not_resume_what_a_person_paused)
{
    struct subject now, old;

    make(&old, true, NULL, NULL, NULL, 1);
    make(&now, true, "web", "coordination/web", NULL, 2);
    struct outcome outcome = ask(&now, &old, unselected());
    assert_true(outcome.state.is_paused);
    assert_string_equal(outcome.state.held_by, "");
    /* Nobody has paused it: nobody would ever resume it. */
    make(&old, false, NULL, NULL, NULL, 1);
    outcome = ask(&now, &old, unselected());
    assert_false(outcome.state.is_paused);
    assert_string_equal(outcome.state.held_by, "");
}

TEST(a_persons_wish_to_hold_is_obeyed_without_any_coordination)
{
    struct subject now, old;
    struct sw_opinion opinion = unselected();

    opinion.verdict = SW_VERDICT_HOLD_OUT_OF_LINE;
    opinion.owners = "user";
    opinion.words = "database first";
    make(&old, false, NULL, NULL, NULL, 1);
    make(&now, false, NULL, NULL, NULL, 1);
    struct outcome outcome = ask(&now, &old, opinion);
    check_held(&outcome, "user");
    assert_string_equal(outcome.warning, "held by user: database first");
}

TEST(what_we_write_ourselves_passes)
{
    struct subject now, old;

    make(&old, true, "web", "coordination/web", NULL, 1);
    make(&now, false, "web", NULL, "coordination/web", 1);
    assert_false(ask_as(&now, &old, selected(), true).has_patch);
}

TEST(what_another_webhook_does_to_our_own_write_is_undone)
{
    struct subject now, old;

    /* We paused it; the other one resumed it in the same write. */
    make(&old, false, "web", NULL, NULL, 1);
    make(&now, false, "web", "coordination/web", NULL, 1);
    struct outcome outcome = ask_as(&now, &old, selected(), true);
    check_held(&outcome, "coordination/web");
    /* We marked it; the other one changed its template. */
    make(&old, false, NULL, NULL, NULL, 1);
    make(&now, false, "web", NULL, NULL, 2);
    outcome = ask_as(&now, &old, selected_running(), true);
    check_held(&outcome, "coordination/web");
    /* We released it: it may have any template. */
    make(&old, true, "web", "coordination/web", NULL, 1);
    make(&now, false, "web", NULL, "coordination/web", 2);
    assert_false(ask_as(&now, &old, selected(), true).has_patch);
    /* We let it go: nobody holds it. */
    make(&now, false, NULL, NULL, NULL, 2);
    assert_false(ask_as(&now, &old, unselected(), true).has_patch);
}

/* ---- with a SteppedRollout ---- */

static void make_stepped(struct subject *subject, bool is_paused, const char *held_by,
                         const char *released_by, uint64_t template_)
{
    make(subject, is_paused, "web", held_by, released_by, template_);
    annotate(subject, SW_STEPPED_BY, "x");
}

/* What both say together; a verdict of FREE of both where nobody holds. */
static struct sw_opinion of_both(enum sw_verdict verdict, const char *holders)
{
    return (struct sw_opinion){
        .verdict = verdict,
        .is_selected = true,
        .owners = holders,
        .marks = "coordination/web,stepping/x",
        .words = "",
    };
}

static const char both[] = "coordination/web,stepping/x";

TEST(a_template_that_stepping_has_not_seen_is_held_on_one_that_has_the_right)
{
    struct subject now, old;

    make_stepped(&old, false, NULL, both, 1);
    make_stepped(&now, false, NULL, both, 2);
    struct outcome outcome = ask(&now, &old, of_both(SW_VERDICT_HOLD, "stepping/x"));
    assert_true(outcome.state.is_paused);
    assert_string_equal(outcome.state.held_by, "stepping/x");
    assert_string_equal(outcome.state.released_by, both);
    /* And one that it lets pass, passes. */
    assert_false(ask(&now, &old, of_both(SW_VERDICT_FREE, both)).has_patch);
}

TEST(released_by_one_policy_of_two_is_held_by_the_other)
{
    struct subject now, old;

    make_stepped(&old, false, NULL, "stepping/x", 1);
    make_stepped(&now, false, NULL, "stepping/x", 2);
    struct outcome outcome = ask(&now, &old, of_both(SW_VERDICT_HOLD, "coordination/web"));
    assert_true(outcome.state.is_paused);
    assert_string_equal(outcome.state.held_by, "coordination/web");
    /* The cache knows the SteppedRollout only, which is free. */
    struct sw_opinion blind = of_both(SW_VERDICT_FREE, "stepping/x");
    blind.marks = "stepping/x";
    outcome = ask(&now, &old, blind);
    assert_true(outcome.state.is_paused);
    assert_string_equal(outcome.state.held_by, "coordination/web");
    assert_string_equal(outcome.state.marks[0], "web");
    assert_string_equal(outcome.state.marks[1], "x");
}

TEST(a_policy_that_lets_a_new_template_pass_does_not_hold_it_by_its_mark)
{
    struct subject now, old;
    struct sw_opinion suspended = {
        .is_selected = true,
        .rests_running = true,
        .owners = "stepping/x",
        .marks = "stepping/x",
        .words = "",
    };

    make(&old, false, NULL, NULL, NULL, 1);
    annotate(&old, SW_STEPPED_BY, "x");
    make(&now, false, NULL, NULL, NULL, 2);
    annotate(&now, SW_STEPPED_BY, "x");
    assert_false(ask(&now, &old, suspended).has_patch);
    assert_false(ask(&now, NULL, suspended).state.is_paused);
    /* One that nothing is known of is held. */
    struct outcome outcome = ask(&now, &old, unselected());
    check_held(&outcome, "stepping/x");
}

TEST(marks_and_what_is_saved_are_nobody_elses_to_give_or_take)
{
    struct subject now, old;

    make_stepped(&old, true, "stepping/x", "coordination/web", 1);
    annotate(&old, SW_SAVED, "{\"minReadySeconds\":null}");
    make(&now, false, NULL, NULL, both, 1);
    annotate(&now, SW_SAVED, "{}");
    struct outcome outcome = ask(&now, &old, of_both(SW_VERDICT_HOLD, "stepping/x"));
    assert_true(outcome.state.is_paused);
    assert_string_equal(outcome.state.held_by, "stepping/x");
    assert_string_equal(outcome.state.released_by, "coordination/web");
    assert_string_equal(outcome.state.marks[0], "web");
    assert_string_equal(outcome.state.marks[1], "x");
    assert_string_equal(outcome.state.saved, "{\"minReadySeconds\":null}");
    /* A copy brings nothing with it. */
    make(&now, false, NULL, NULL, NULL, 1);
    annotate(&now, SW_STEPPED_BY, "x");
    annotate(&now, SW_SAVED, "{}");
    outcome = ask(&now, NULL, unselected());
    assert_string_equal(outcome.state.marks[1], "");
    assert_string_equal(outcome.state.saved, "");
}

static struct sw_json *parsed(const char *text)
{
    struct sw_json *value = NULL;

    assert_int_equal(sw_json_parse(arena, text, strlen(text), &value, NULL), 0);
    return value;
}

TEST(what_an_arbiter_keeps_is_added_behind_the_hold_with_annotations_to_build_on)
{
    struct subject now, old;
    struct sw_opinion opinion = unselected();

    opinion.warning = "spec.minReadySeconds is kept at 86400";
    opinion.patch = parsed("[{\"op\":\"add\",\"path\":\"/spec/minReadySeconds\",\"value\":86400},"
                           "{\"op\":\"add\",\"path\":\"/metadata/annotations/slipway.dev~1saved\","
                           "\"value\":\"{}\"}]");
    make(&old, false, NULL, NULL, NULL, 1);
    make(&now, false, NULL, NULL, NULL, 1);
    struct outcome outcome = ask(&now, &old, opinion);
    assert_string_equal(sw_json_dump(outcome.patch, arena, NULL),
                        "[{\"op\":\"add\",\"path\":\"/metadata/annotations\",\"value\":{}},"
                        "{\"op\":\"add\",\"path\":\"/spec/minReadySeconds\",\"value\":86400},"
                        "{\"op\":\"add\",\"path\":\"/metadata/annotations/slipway.dev~1saved\","
                        "\"value\":\"{}\"}]");
    assert_false(outcome.has_warning);
    assert_string_equal(outcome.further, opinion.warning);
    assert_string_equal(outcome.state.saved, "{}");
    /* Our own writes are what the policy wants. */
    outcome = ask_as(&now, &old, opinion, true);
    assert_false(outcome.has_patch);
    assert_null(outcome.further);
    /* But one policy resumes for all of them. */
    make(&old, true, "web", "coordination/web,stepping/x", NULL, 1);
    make(&now, false, "web", NULL, "coordination/web,stepping/x", 1);
    outcome = ask_as(&now, &old, opinion, true);
    assert_true(outcome.has_patch);
    assert_string_equal(outcome.state.saved, "{}");
    make(&old, false, NULL, NULL, NULL, 1);
    make(&now, false, NULL, NULL, NULL, 1);
    /* Nobody has a say in the ignored. */
    annotate(&now, SW_IGNORE, "true");
    outcome = ask(&now, &old, opinion);
    assert_false(outcome.has_patch);
    assert_null(outcome.further);
}

TEST(what_an_arbiter_refuses_is_refused_unless_it_is_our_own)
{
    struct subject now, old;
    struct sw_opinion opinion = selected();
    struct sw_review review = {
        .operation = SW_OPERATION_UPDATE, .object = &now.deployment.meta, .arena = arena};
    struct sw_review_answer answer = {0};

    opinion.refusal = "it is being rolled back";
    make(&old, true, "web", "coordination/web", NULL, 1);
    make(&now, true, "web", "coordination/web", NULL, 2);
    review.old = &old.deployment.meta;
    hold_review(&review, &opinion, false, &answer);
    assert_true(answer.is_denied);
    assert_string_equal(answer.deny_message, "it is being rolled back");
    assert_null(answer.patch);
    answer = (struct sw_review_answer){0};
    hold_review(&review, &opinion, true, &answer);
    assert_false(answer.is_denied);
    annotate(&now, SW_IGNORE, "true");
    answer = (struct sw_review_answer){0};
    hold_review(&review, &opinion, false, &answer);
    assert_false(answer.is_denied);
}

int main(void)
{
#define ROW(does_this)                                                                \
    {                                                                                 \
        .name = "review: " #does_this, .test_func = (does_this), .setup_func = setup, \
        .teardown_func = teardown                                                     \
    }
    static const struct CMUnitTest tests[] = {
        ROW(a_created_one_is_held_and_marked),
        ROW(a_created_one_that_nobody_selects_passes),
        ROW(one_created_paused_is_a_persons_pause),
        ROW(a_backup_of_a_held_one_counts_as_not_paused),
        ROW(a_forged_right_is_removed_on_create_and_update),
        ROW(the_held_stays_held_whatever_is_submitted),
        ROW(the_released_rolls_whatever_the_cache_says),
        ROW(another_arbiter_may_hold_the_released),
        ROW(released_for_one_of_two_is_not_released),
        ROW(with_both_annotations_it_counts_as_held),
        ROW(at_rest_paused_the_unpaused_is_held_by_any_update),
        ROW(at_rest_running_only_a_new_template_or_a_resume_is_held),
        ROW(a_persons_pause_stays_theirs),
        ROW(with_no_pods_and_none_wanted_it_passes),
        ROW(the_mark_counts_where_the_cache_does_not_know_yet),
        ROW(ignored_means_that_the_pause_is_the_persons_business),
        ROW(a_hold_counts_also_on_the_ignored),
        ROW(asked_again_after_another_webhook_the_answer_stays),
        ROW(an_older_copy_of_a_held_one_does_not_pause_the_released),
        ROW(an_older_copy_of_a_held_one_does_not_resume_what_a_person_paused),
        ROW(a_persons_wish_to_hold_is_obeyed_without_any_coordination),
        ROW(what_we_write_ourselves_passes),
        ROW(what_another_webhook_does_to_our_own_write_is_undone),
        ROW(a_template_that_stepping_has_not_seen_is_held_on_one_that_has_the_right),
        ROW(released_by_one_policy_of_two_is_held_by_the_other),
        ROW(a_policy_that_lets_a_new_template_pass_does_not_hold_it_by_its_mark),
        ROW(marks_and_what_is_saved_are_nobody_elses_to_give_or_take),
        ROW(what_an_arbiter_keeps_is_added_behind_the_hold_with_annotations_to_build_on),
        ROW(what_an_arbiter_refuses_is_refused_unless_it_is_our_own),
    };
    return RUN(tests);
}
