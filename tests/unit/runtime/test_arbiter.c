/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbiters and the hand: how opinions combine, and what becomes of a policy's request. And records,
 * which go to every sink.
 */
#include <errno.h>
#include <slipway/arbiter.h>
#include <slipway/record.h>
#include <slipway/watch.h>
#include <slipway/workloads.h>

#include "base/error.h"

#include "../test.h"
#include "fixture.h"

/* One module: an arbiter with a fixed opinion, if it has one. */
struct judge {
    struct made_up made_up;
    const struct sw_opinion *opinion; /* NULL: no arbiter */
    bool is_hand;
    enum sw_outcome hand_outcome;
    unsigned hand_asked;
    unsigned answers;
    enum sw_outcome outcome;
    bool has_object;
    char recorded[4096];
};

static void ask(struct sw_instance *self, const struct sw_question *question,
                struct sw_opinion *opinion)
{
    const struct judge *j = (*(struct made_up **)sw_state(self))->arg;

    assert_ptr_equal(question->object->kind, &sw_kind_deployment);
    assert_string_equal(opinion->owners, "");
    assert_string_equal(opinion->words, "");
    assert_null(opinion->marks);
    *opinion = *j->opinion;
}

static enum sw_outcome hand(struct sw_instance *self, struct sw_instance *asker,
                            const struct sw_hold_request *request, const struct sw_object *object,
                            struct sw_arena *arena, struct sw_json **ret_patch)
{
    struct judge *j = (*(struct made_up **)sw_state(self))->arg;

    assert_string_equal(sw_name(asker), "two");
    assert_string_equal(object->resource_version, request->resource_version);
    j->hand_asked++;
    *ret_patch = sw_json_object(arena);
    sw_json_set_bool(sw_json_set_object(*ret_patch, "spec"), "paused", true);
    return j->hand_outcome;
}

static void sink(struct sw_instance *self, const struct sw_record *record)
{
    struct judge *j = (*(struct made_up **)sw_state(self))->arg;

    snprintf(j->recorded, sizeof(j->recorded), "%s %s %s %s/%s %s: %s", record->component,
             record->type == SW_WARNING ? "warning" : "normal", record->kind->kind,
             record->namespace_, record->name, record->reason, record->message);
}

static int start(struct sw_instance *self, void *arg)
{
    struct judge *j = arg;
    struct sw_watch_options watch = {.arg = j};

    if (j->is_hand)
        assert_int_equal(sw_hand_register(self, hand), 0);
    if (j->opinion)
        assert_int_equal(sw_arbiter_register(self, &sw_kind_deployment, ask), 0);
    assert_int_equal(sw_sink_register(self, sink), 0);
    return sw_watch(self, &sw_kind_deployment, &watch);
}

static void add(struct fixture *f, const struct sw_module *module, struct judge *j)
{
    j->made_up = (struct made_up){.start = start, .arg = j};
    fixture_add(f, module, &j->made_up);
}

static void open_with_deployment(struct fixture *f)
{
    fixture_open(f);
    serve_deployments(f, "10", deployment("n", "a", "u1", "5", "{}"));
}

#define FREE SW_VERDICT_FREE
#define HOLD SW_VERDICT_HOLD
#define OUT SW_VERDICT_HOLD_OUT_OF_LINE

/* What two arbiters say together. */
static void expect_sum(struct sw_opinion a, struct sw_opinion b, struct sw_opinion wanted)
{
    struct fixture f;
    struct judge one = {.opinion = &a}, two = {.opinion = &b}, three = {0};
    struct sw_opinion got;
    struct sw_arena *arena = sw_arena_new(0);

    fixture_init(&f, NULL);
    add(&f, &module_one, &one);
    add(&f, &module_two, &two);
    add(&f, &module_three, &three);
    open_with_deployment(&f);
    struct sw_question question = {
        .object = sw_lookup(three.made_up.self, &sw_kind_deployment, "n", "a"), .arena = arena};
    sw_arbiters_ask(three.made_up.self, &question, &got);
    assert_int_equal(got.verdict, wanted.verdict);
    assert_int_equal(got.is_selected, wanted.is_selected);
    assert_int_equal(got.rests_running, wanted.rests_running);
    assert_string_equal(got.owners, wanted.owners);
    assert_string_equal(got.words, wanted.words);
    if (wanted.marks)
        assert_string_equal(got.marks, wanted.marks);
    else
        assert_null(got.marks);
    sw_arena_free(arena);
    fixture_done(&f);
}

TEST(let_the_hardest_verdict_count)
{
    const struct sw_opinion nothing = {FREE, false, false, "", NULL, ""};

    expect_sum(nothing, nothing, nothing);
    expect_sum((struct sw_opinion){HOLD, true, false, "c/x", "x", "position 1"},
               (struct sw_opinion){OUT, false, false, "user", NULL, "because"},
               (struct sw_opinion){OUT, true, false, "c/x,user", "x", "position 1; because"});
    expect_sum((struct sw_opinion){OUT, false, false, "user", NULL, "because"},
               (struct sw_opinion){FREE, true, true, "c/x", "x", "active"},
               (struct sw_opinion){OUT, true, true, "user", "x", "because"});
    expect_sum((struct sw_opinion){FREE, true, true, "c/x", "x", "active"},
               (struct sw_opinion){HOLD, true, false, "s/y", "y", "step 1"},
               (struct sw_opinion){HOLD, true, false, "s/y", "x,y", "step 1"});
    expect_sum((struct sw_opinion){FREE, true, true, "c/x", "x", ""},
               (struct sw_opinion){FREE, true, true, "s/y", NULL, ""},
               (struct sw_opinion){FREE, true, true, "c/x,s/y", "x", ""});
    expect_sum((struct sw_opinion){FREE, true, false, "c/x", "x", ""},
               (struct sw_opinion){FREE, true, true, "s/y", NULL, ""},
               (struct sw_opinion){FREE, true, false, "c/x,s/y", "x", ""});
}

TEST(leave_the_asker_out_where_others_are_asked)
{
    struct fixture f;
    struct sw_opinion a = {HOLD, true, false, "c/x", "x", ""},
                      b = {OUT, false, false, "u", NULL, ""};
    struct judge one = {.opinion = &a}, two = {.opinion = &b};
    struct sw_arena *arena = sw_arena_new(0);
    struct sw_opinion got;

    fixture_init(&f, NULL);
    add(&f, &module_one, &one);
    add(&f, &module_two, &two);
    open_with_deployment(&f);
    struct sw_question question = {
        .object = sw_lookup(one.made_up.self, &sw_kind_deployment, "n", "a"), .arena = arena};
    sw_arbiters_ask_others(one.made_up.self, &question, &got);
    assert_int_equal(got.verdict, OUT);
    assert_string_equal(got.owners, "u");
    assert_false(got.is_selected);
    sw_arbiters_ask_others(two.made_up.self, &question, &got);
    assert_int_equal(got.verdict, HOLD);
    assert_string_equal(got.owners, "c/x");
    sw_arena_free(arena);
    fixture_done(&f);
}

/* ---- the hand ---- */

static void on_answer(struct sw_instance *self, void *arg, const struct sw_answer *answer)
{
    struct judge *j = arg;

    assert_string_equal(sw_name(self), "two");
    j->answers++;
    j->outcome = answer->outcome;
    j->has_object = answer->object != NULL;
}

static void hold(struct fixture *f, struct judge *j, const char *version)
{
    struct sw_hold_request request = {.kind = &sw_kind_deployment,
                                      .namespace_ = "n",
                                      .name = "a",
                                      .resource_version = version,
                                      .verb = SW_HOLD_PAUSE,
                                      .owners = "two/x"};

    j->answers = 0;
    assert_int_equal(sw_hold_send(j->made_up.self, &request, on_answer, j), 0);
    assert_int_equal(j->answers, 0);
    fixture_turn(f);
}

TEST(sends_what_the_hand_says_with_the_version_that_was_decided_on)
{
    struct fixture f;
    struct judge one = {.is_hand = true, .hand_outcome = SW_OK}, two = {0};

    fixture_init(&f, NULL);
    add(&f, &module_one, &one);
    add(&f, &module_two, &two);
    open_with_deployment(&f);
    hold(&f, &two, "5");
    assert_int_equal(one.hand_asked, 1);
    struct fake_request *patch = fake_the(f.transport, "/deployments/a");
    assert_string_equal(patch->body,
                        "{\"spec\":{\"paused\":true},\"metadata\":{\"resourceVersion\":\"5\"}}");
    fake_answer(patch, 200, NULL, deployment("n", "a", "u1", "20", "{}"));
    assert_int_equal(two.outcome, SW_OK);
    assert_true(two.has_object);
    fixture_done(&f);
}

TEST(answers_without_a_request_where_nothing_is_to_be_sent)
{
    struct fixture f;
    struct judge one = {.is_hand = true}, two = {0};

    fixture_init(&f, NULL);
    add(&f, &module_one, &one);
    add(&f, &module_two, &two);
    open_with_deployment(&f);
    one.hand_outcome = SW_UNCHANGED;
    hold(&f, &two, "5");
    assert_int_equal(two.outcome, SW_UNCHANGED);
    assert_true(two.has_object);
    one.hand_outcome = SW_HELD;
    hold(&f, &two, "5");
    assert_int_equal(two.outcome, SW_HELD);
    assert_int_equal(one.hand_asked, 2);
    hold(&f, &two, "4");
    assert_int_equal(two.outcome, SW_CONFLICT);
    assert_int_equal(one.hand_asked, 2);
    assert_int_equal(fake_open_count(f.transport), 1);
    fixture_done(&f);
}

static const struct sw_lease_options lease = {.namespace_ = "n", .name = "l", .identity = "i"};

TEST(does_not_ask_the_hand_on_a_follower)
{
    struct fixture f;
    struct sw_core_options options = {.username = "me", .lease = &lease};
    struct judge one = {.is_hand = true}, two = {0};

    fixture_init(&f, &options);
    add(&f, &module_one, &one);
    add(&f, &module_two, &two);
    open_with_deployment(&f);
    hold(&f, &two, "5");
    assert_int_equal(two.outcome, SW_NOT_LEADER);
    assert_int_equal(one.hand_asked, 0);
    fixture_done(&f);
}

static int start_second_hand(struct sw_instance *self, void *arg)
{
    (void)arg;
    return sw_fail(self, sw_hand_register(self, hand), "there is a hand already");
}

TEST(is_only_one)
{
    struct fixture f;
    struct judge one = {.is_hand = true};
    struct made_up second = {.start = start_second_hand};
    struct sw_error error = {0};

    fixture_init(&f, NULL);
    add(&f, &module_one, &one);
    assert_int_equal(sw_core_add(f.core, &module_two, &second, &error), -EEXIST);
    assert_string_equal(error.text, "module two does not start: there is a hand already");
    fixture_done(&f);
}

/* ---- records ---- */

TEST(go_to_every_sink_and_to_the_log)
{
    struct fixture f;
    struct judge one = {0}, two = {0};

    fixture_init(&f, NULL);
    add(&f, &module_one, &one);
    add(&f, &module_two, &two);
    open_with_deployment(&f);
    sw_record(one.made_up.self, sw_lookup(one.made_up.self, &sw_kind_deployment, "n", "a"),
              SW_WARNING, "PauseFailed", "%s did not work", "it");
    assert_string_equal(one.recorded, "one warning Deployment n/a PauseFailed: it did not work");
    assert_string_equal(two.recorded, one.recorded);
    assert_true(fake_log_has(&f.log, "PauseFailed"));
    fixture_done(&f);
}

TEST(are_cut_between_characters)
{
    struct fixture f;
    struct judge one = {0};
    char long_text[1100];

    memset(long_text, 'x', sizeof(long_text));
    memcpy(long_text + 1022, "\xe2\x82\xac", 3); /* the euro sign lies across the limit */
    long_text[1099] = '\0';
    fixture_init(&f, NULL);
    add(&f, &module_one, &one);
    open_with_deployment(&f);
    const struct sw_object *object = sw_lookup(one.made_up.self, &sw_kind_deployment, "n", "a");
    sw_record(one.made_up.self, object, SW_NORMAL, "Long", "%s", long_text);
    assert_int_equal(strlen(strstr(one.recorded, ": ") + 2), 1022);
    memcpy(long_text + 1021, "\xe2\x82\xacx", 4);
    sw_record(one.made_up.self, object, SW_NORMAL, "Long", "%s", long_text);
    assert_int_equal(strlen(strstr(one.recorded, ": ") + 2), 1024);
    fixture_done(&f);
}

TEST(say_what_they_refuse_warn_of_and_keep_one_after_the_other)
{
    struct fixture f;
    struct sw_arena *arena = sw_arena_new(0);
    struct sw_json *a_patch = sw_json_array(arena), *b_patch = sw_json_array(arena);
    sw_json_set_string(sw_json_append_object(a_patch), "op", "a");
    sw_json_set_string(sw_json_append_object(b_patch), "op", "b");
    sw_json_set_string(sw_json_append_object(b_patch), "op", "c");
    struct sw_opinion a = {OUT, true, false, "c/x", "c/x", "", .refusal = "no", .patch = a_patch},
                      b = {HOLD,
                           true,
                           false,
                           "s/y",
                           "s/y",
                           "",
                           .has_given_up = true,
                           .refusal = "never",
                           .warning = "look out",
                           .patch = b_patch},
                      got;
    struct judge one = {.opinion = &a}, two = {.opinion = &b}, three = {0};

    fixture_init(&f, NULL);
    add(&f, &module_one, &one);
    add(&f, &module_two, &two);
    add(&f, &module_three, &three);
    open_with_deployment(&f);
    struct sw_question question = {
        .object = sw_lookup(three.made_up.self, &sw_kind_deployment, "n", "a"), .arena = arena};
    sw_arbiters_ask(three.made_up.self, &question, &got);
    assert_true(got.has_given_up);
    assert_string_equal(got.refusal, "no; never");
    assert_string_equal(got.warning, "look out");
    assert_string_equal(sw_json_dump(got.patch, arena, NULL),
                        "[{\"op\":\"a\"},{\"op\":\"b\"},{\"op\":\"c\"}]");
    assert_string_equal(got.marks, "c/x,s/y");
    /* What one of them keeps of its own patch is as it was. */
    assert_int_equal(sw_json_size(a_patch), 1);
    sw_arbiters_ask_others(two.made_up.self, &question, &got);
    assert_false(got.has_given_up);
    assert_string_equal(got.refusal, "no");
    assert_null(got.warning);
    sw_arena_free(arena);
    fixture_done(&f);
}

static void on_opinion(struct sw_instance *self, const char *namespace_, const char *name)
{
    struct judge *j = (*(struct made_up **)sw_state(self))->arg;

    snprintf(j->recorded, sizeof(j->recorded), "%s/%s", namespace_, name);
    j->answers++;
}

static int start_listening(struct sw_instance *self, void *arg)
{
    (void)arg;
    return sw_on_opinion(self, &sw_kind_deployment, on_opinion);
}

TEST(tell_the_others_that_they_have_changed_their_mind)
{
    struct fixture f;
    struct judge one = {0}, two = {0};

    one.made_up = (struct made_up){.start = start_listening, .arg = &one};
    two.made_up = (struct made_up){.start = start_listening, .arg = &two};
    fixture_init(&f, NULL);
    fixture_add(&f, &module_one, &one.made_up);
    fixture_add(&f, &module_two, &two.made_up);
    fixture_open(&f);
    sw_opinion_changed(one.made_up.self, &sw_kind_deployment, "n", "a");
    assert_int_equal(one.answers, 0);
    assert_int_equal(two.answers, 1);
    assert_string_equal(two.recorded, "n/a");
    sw_opinion_changed(one.made_up.self, &sw_kind_stateful_set, "n", "a");
    assert_int_equal(two.answers, 1);
    fixture_done(&f);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("arbiters", let_the_hardest_verdict_count),
        CASE("arbiters", leave_the_asker_out_where_others_are_asked),
        CASE("hand", sends_what_the_hand_says_with_the_version_that_was_decided_on),
        CASE("hand", answers_without_a_request_where_nothing_is_to_be_sent),
        CASE("hand", does_not_ask_the_hand_on_a_follower),
        CASE("hand", is_only_one),
        CASE("records", go_to_every_sink_and_to_the_log),
        CASE("records", are_cut_between_characters),
        CASE("arbiters", say_what_they_refuse_warn_of_and_keep_one_after_the_other),
        CASE("arbiters", tell_the_others_that_they_have_changed_their_mind),
    };
    return RUN(tests);
}
