/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is posted to webhooks, and what their answers mean.
 */
#include "../test.h"
#include "hook.h"
#include "sample.h"

static const struct step_hook_subject subject = {
    .name = "web",
    .namespace_ = "shop",
    .phase = "Waiting",
    .checksum = "0123",
};

static void assert_payload(enum step_hook_type type, const struct sw_labels *metadata,
                           const struct step_hook_event *event, const char *want)
{
    struct sw_arena *arena = sw_arena_new(0);
    struct sample s;
    size_t len = 0;

    sample_init(&s);
    struct step_webhook *webhook = sample_hook(&s, type, "h", "http://h");
    if (metadata)
        webhook->metadata = *metadata;
    const char *payload = step_hook_payload(&s.hooks[0], &subject, event, arena, &len);
    assert_string_equal(payload, want);
    assert_int_equal(len, strlen(want));
    sw_arena_free(arena);
}

TEST(posts_what_flagger_posts)
{
    static const struct sw_label labels[] = {{"cmd", "hey -z 1m \"http://web\""}, {"type", "cmd"}};
    const struct sw_labels metadata = {labels, 2};

    assert_payload(
        STEP_ROLLOUT, NULL, NULL,
        "{\"name\":\"web\",\"namespace\":\"shop\",\"phase\":\"Progressing\",\"checksum\":"
        "\"0123\"}");
    assert_payload(STEP_CONFIRM_ROLLOUT, &metadata, NULL,
                   "{\"name\":\"web\",\"namespace\":\"shop\",\"phase\":\"Waiting\",\"checksum\":"
                   "\"0123\",\"metadata\":{\"cmd\":\"hey -z 1m \\\"http://web\\\"\",\"type\":"
                   "\"cmd\"}}");
}

TEST(posts_events_in_metadata)
{
    static const struct sw_label labels[] = {
        {"environment", "test"}, {"eventMessage", "mine"}, {"timestamp", "mine"}};
    const struct sw_labels metadata = {labels, 3};
    const struct step_hook_event event = {.message = "step 1 passed",
                                          .wall_us = INT64_C(1700000000123456)};
    const struct step_hook_event warning = {.message = "", .is_warning = true};

    assert_payload(STEP_EVENT, &metadata, &event,
                   "{\"name\":\"web\",\"namespace\":\"shop\",\"phase\":\"Waiting\",\"checksum\":"
                   "\"0123\",\"metadata\":{\"environment\":\"test\",\"eventMessage\":\"step 1 "
                   "passed\",\"timestamp\":\"1700000000123\",\"eventType\":\"Normal\"}}");
    assert_payload(STEP_EVENT, NULL, &warning,
                   "{\"name\":\"web\",\"namespace\":\"shop\",\"phase\":\"Waiting\",\"checksum\":"
                   "\"0123\",\"metadata\":{\"eventMessage\":\"\",\"eventType\":\"Warning\","
                   "\"timestamp\":\"0\"}}");
}

TEST(posts_the_phase_that_flagger_posts)
{
    assert_string_equal(step_hook_phase(STEP_CONFIRM_ROLLOUT, "Waiting"), "Waiting");
    assert_string_equal(step_hook_phase(STEP_ROLLBACK_HOOK, "WaitingPromotion"),
                        "WaitingPromotion");
    assert_string_equal(step_hook_phase(STEP_EVENT, "Failed"), "Failed");
    assert_string_equal(step_hook_phase(STEP_PRE_ROLLOUT, "Waiting"), "Progressing");
    assert_string_equal(step_hook_phase(STEP_ROLLOUT, "Progressing"), "Progressing");
    assert_string_equal(step_hook_phase(STEP_CONFIRM_STEP, "Progressing"), "Progressing");
    assert_string_equal(step_hook_phase(STEP_CONFIRM_PROMOTION, "WaitingPromotion"), "Progressing");
    assert_string_equal(step_hook_phase(STEP_POST_ROLLOUT, "Promoting"), "Succeeded");
}

static struct sw_fetch_answer answer_of(int status)
{
    return (struct sw_fetch_answer){.status = status, .why = "no answer", .body = ""};
}

TEST(takes_a_2xx_for_a_yes)
{
    static const struct {
        int status;
        bool is_yes, may_repeat;
    } cases[] = {
        {0, false, true},    {100, false, false}, {199, false, false}, {200, true, false},
        {202, true, false},  {204, true, false},  {299, true, false},  {300, false, false},
        {302, false, false}, {400, false, false}, {403, false, false}, {404, false, false},
        {429, false, true},  {500, false, true},  {501, false, false}, {502, false, true},
        {503, false, true},  {599, false, true},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sw_fetch_answer answer = answer_of(cases[i].status);
        assert_int_equal(step_hook_is_yes(&answer), cases[i].is_yes);
        assert_int_equal(step_hook_may_repeat(&answer), cases[i].may_repeat);
    }
}

TEST(waits_longer_before_each_attempt)
{
    static const uint32_t want_ms[] = {1000, 2000, 4000, 8000, 16000, 30000, 30000};

    for (int32_t i = 0; i < 7; i++)
        assert_int_equal(step_hook_pause_ms(i + 2), want_ms[i]);
    assert_int_equal(step_hook_pause_ms(INT32_MAX), 30000);
}

TEST(says_what_was_answered)
{
    struct sw_arena *arena = sw_arena_new(0);
    const struct sw_fetch_answer no = {
        .status = 403, .why = "", .body = "not before nine\n", .body_len = 16};
    struct sw_fetch_answer none = answer_of(0);
    struct sw_fetch_answer empty = answer_of(500);

    assert_string_equal(step_hook_words(&no, arena), "HTTP 403: not before nine");
    assert_string_equal(step_hook_words(&none, arena), "no answer");
    assert_string_equal(step_hook_words(&empty, arena), "HTTP 500");
    sw_arena_free(arena);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("hook", posts_what_flagger_posts),           CASE("hook", posts_events_in_metadata),
        CASE("hook", posts_the_phase_that_flagger_posts), CASE("hook", takes_a_2xx_for_a_yes),
        CASE("hook", waits_longer_before_each_attempt),   CASE("hook", says_what_was_answered),
    };
    return RUN(tests);
}
