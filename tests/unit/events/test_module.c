/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module whole, in a core on virtual time: what reaches the API server for what is recorded,
 * whatever it answers.
 */
#include <errno.h>
#include <slipway/json.h>
#include <slipway/record.h>

#include "base/buf.h"
#include "base/error.h"

#include "../memory.h"
#include "../runtime/fixture.h"
#include "../test.h"

extern const struct sw_module sw_module_events;

#define EVENTS "/namespaces/n/events"

struct stage {
    struct fixture f;
    struct made_up speaker;
    struct sw_arena *arena;
};

static struct stage *begin(void)
{
    struct stage *s = calloc(1, sizeof(*s));
    struct sw_error error = {0};

    s->arena = sw_arena_new(0);
    fixture_init(&s->f, NULL);
    assert_int_equal(sw_core_add(s->f.core, &sw_module_events, NULL, &error), 0);
    fixture_add(&s->f, &module_one, &s->speaker);
    fixture_open(&s->f);
    return s;
}

static void end(struct stage *s)
{
    fixture_done(&s->f);
    sw_arena_free(s->arena);
    free(s);
}

static void say_of(struct stage *s, const char *name, const char *uid, const char *message)
{
    const struct sw_object object = {
        .kind = &sw_kind_deployment,
        .namespace_ = "n",
        .name = name,
        .uid = uid,
        .resource_version = "7",
    };

    sw_record(s->speaker.self, &object, SW_NORMAL, "Happened", "%s", message);
    fixture_turn(&s->f);
}

static void say(struct stage *s, const char *message)
{
    say_of(s, "web", "u1", message);
}

static struct fake_request *the(struct stage *s)
{
    return fake_the(s->f.transport, EVENTS);
}

static bool is_quiet(struct stage *s)
{
    return fake_find(s->f.transport, EVENTS) == NULL;
}

static const struct sw_json *body_of(struct stage *s, const struct fake_request *request)
{
    struct sw_json *body = NULL;

    assert_int_equal(sw_json_parse(s->arena, request->body, strlen(request->body), &body, NULL), 0);
    return body;
}

static int64_t count_of(struct stage *s, const struct fake_request *request)
{
    return sw_json_get_int(body_of(s, request), "count", -1);
}

static const char *name_of(struct stage *s, const struct fake_request *request)
{
    return sw_json_get_string(sw_json_get(body_of(s, request), "metadata"), "name");
}

/* As the API server does: with the Event itself. */
static void accept(struct stage *s, struct fake_request *request)
{
    char text[512], name[300];
    const char *slash = strrchr(request->target, '/') + 1;

    if (strcmp(request->method, "POST") == 0)
        snprintf(name, sizeof(name), "%s", name_of(s, request));
    else
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(slash, "?"), slash);
    snprintf(text, sizeof(text),
             "{\"kind\":\"Event\",\"apiVersion\":\"v1\",\"metadata\":{\"namespace\":\"n\","
             "\"name\":\"%s\",\"uid\":\"e\",\"resourceVersion\":\"9\"}}",
             name);
    fake_answer(request, 200, NULL, text);
}

static void refuse(struct fake_request *request, int status, const char *reason)
{
    char text[512];

    snprintf(text, sizeof(text),
             "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"no\","
             "\"reason\":\"%s\",\"code\":%d}",
             reason, status);
    fake_answer(request, status, NULL, text);
}

static void check_metric(struct stage *s, const char *line)
{
    struct sw_buf text;

    sw_buf_init(&text, SIZE_MAX);
    assert_int_equal(sw_metrics_write(s->f.metrics, SW_METRICS_TEXT, &text), 0);
    if (!strstr(text.bytes, line))
        fail_msg("no \"%s\" in:\n%s", line, text.bytes);
    sw_buf_done(&text);
}

TEST(an_event_names_its_object_as_people_ask_for_it)
{
    struct stage *s = begin();

    say(s, "it happened");
    struct fake_request *request = the(s);
    const struct sw_json *event = body_of(s, request);
    const struct sw_json *object = sw_json_get(event, "involvedObject");
    assert_string_equal(request->method, "POST");
    assert_string_equal(sw_json_get_string(object, "apiVersion"), "apps/v1");
    assert_string_equal(sw_json_get_string(object, "kind"), "Deployment");
    assert_string_equal(sw_json_get_string(object, "namespace"), "n");
    assert_string_equal(sw_json_get_string(object, "name"), "web");
    assert_string_equal(sw_json_get_string(object, "uid"), "u1");
    assert_string_equal(sw_json_get_string(event, "firstTimestamp"), "2026-01-01T00:00:00Z");
    assert_string_equal(sw_json_get_string(event, "lastTimestamp"), "2026-01-01T00:00:00Z");
    assert_string_equal(sw_json_get_string(sw_json_get(event, "source"), "component"), "one");
    assert_int_equal(count_of(s, request), 1);
    end(s);
}

TEST(what_happens_again_during_the_write_raises_the_count_once_it_is_written)
{
    struct stage *s = begin();

    say(s, "m");
    struct fake_request *create = the(s);
    say(s, "m");
    say(s, "m");
    assert_int_equal(count_of(s, create), 1);
    accept(s, create);
    struct fake_request *patch = the(s);
    assert_string_equal(patch->method, "PATCH");
    assert_int_equal(count_of(s, patch), 3);
    accept(s, patch);
    assert_true(is_quiet(s));
    check_metric(s, "slipway_events_written_total 2");
    end(s);
}

TEST(an_expired_event_is_created_again_with_its_count)
{
    struct stage *s = begin();

    say(s, "m");
    struct fake_request *first = the(s);
    accept(s, first);
    say(s, "m");
    refuse(the(s), 404, "NotFound");
    struct fake_request *again = the(s);
    assert_string_equal(again->method, "POST");
    assert_string_not_equal(name_of(s, again), name_of(s, first));
    assert_int_equal(count_of(s, again), 2);
    /* The namespace is gone as well: that was the last try. */
    refuse(again, 404, "NotFound");
    assert_true(is_quiet(s));
    check_metric(s, "slipway_events_dropped_total{why=\"error\"} 1");
    end(s);
}

TEST(in_a_terminating_namespace_it_is_dropped_and_the_next_follows)
{
    struct stage *s = begin();

    say(s, "one");
    struct fake_request *first = the(s);
    say(s, "two");
    refuse(first, 403, "Forbidden");
    assert_string_equal(sw_json_get_string(body_of(s, the(s)), "message"), "two");
    accept(s, the(s));
    assert_true(is_quiet(s));
    end(s);
}

TEST(what_is_told_of_a_request_goes_after_it)
{
    struct stage *s = begin();
    struct sw_object object = {.kind = &sw_kind_deployment, .namespace_ = "n", .name = "web"};

    object.uid = object.resource_version = "1";
    sw_record(s->speaker.self, &object, SW_NORMAL, "Asked", "m");
    assert_int_equal(sw_get(s->speaker.self, &sw_kind_deployment, "n", "web", NULL, NULL), 0);
    assert_non_null(fake_find(s->f.transport, "/namespaces/n/deployments/web"));
    assert_true(is_quiet(s));
    fixture_turn(&s->f);
    accept(s, the(s));
    end(s);
}

TEST(a_lost_answer_is_tried_again_in_some_seconds_and_not_sooner)
{
    struct stage *s = begin();

    say(s, "m");
    struct fake_request *first = the(s);
    fake_break(first, -ECONNRESET);
    for (int i = 0; i < 20; i++)
        say(s, i % 2 ? "m" : "something else");
    assert_true(is_quiet(s));
    sw_loop_virtual_advance(s->f.loop, 4999);
    assert_true(is_quiet(s));
    sw_loop_virtual_advance(s->f.loop, 10001);
    struct fake_request *second = the(s);
    assert_string_equal(second->method, "POST");
    assert_string_equal(name_of(s, second), name_of(s, first));
    end(s);
}

TEST(a_create_that_came_through_unanswered_does_not_lose_what_happened_since)
{
    struct stage *s = begin();

    say(s, "m");
    fake_break(the(s), -ECONNRESET); /* stored, with count 1 */
    say(s, "m");
    sw_loop_virtual_advance(s->f.loop, 15000);
    assert_int_equal(count_of(s, the(s)), 2);
    refuse(the(s), 409, "AlreadyExists");
    struct fake_request *patch = the(s);
    assert_string_equal(patch->method, "PATCH");
    assert_int_equal(count_of(s, patch), 2);
    accept(s, patch);
    assert_true(is_quiet(s));
    end(s);
}

TEST(a_repeat_that_meets_a_conflict_is_sent_again)
{
    struct stage *s = begin();

    say(s, "m");
    accept(s, the(s));
    say(s, "m");
    refuse(the(s), 409, "Conflict");
    assert_true(is_quiet(s));
    sw_loop_virtual_advance(s->f.loop, 15000);
    assert_int_equal(count_of(s, the(s)), 2);
    accept(s, the(s));
    assert_true(is_quiet(s));
    end(s);
}

TEST(without_any_answer_it_is_given_up_and_the_next_follows)
{
    struct stage *s = begin();

    say(s, "one");
    say(s, "two");
    for (int tries = 0; tries < 12; tries++) {
        assert_string_equal(sw_json_get_string(body_of(s, the(s)), "message"), "one");
        fake_break(the(s), -ECONNRESET);
        if (tries < 11)
            sw_loop_virtual_advance(s->f.loop, 15000);
    }
    assert_string_equal(sw_json_get_string(body_of(s, the(s)), "message"), "two");
    end(s);
}

TEST(a_storm_does_not_reach_the_api_server)
{
    struct stage *s = begin();
    char message[32];
    int written = 0;

    for (int i = 0; i < 1000; i++) {
        snprintf(message, sizeof(message), "m%d", i);
        say(s, message);
    }
    for (; !is_quiet(s); written++)
        accept(s, the(s));
    assert_int_equal(written, 25);
    check_metric(s, "slipway_events_dropped_total{why=\"rate\"} 975");
    end(s);
}

/* A hundred a second, of two thousand objects, while the API server does not answer. */
TEST(a_flood_of_a_hundred_thousand_is_bounded)
{
    enum { FLOOD = 100000, OBJECTS = 2000, QUEUE = 1000, GROWTH_BYTES = 256 * 1024 };
    struct stage *s = begin();
    char name[32], message[32];
    size_t before = 0;
    int written = 0;

    for (int i = 0; i < FLOOD; i++) {
        snprintf(name, sizeof(name), "web-%d", i % OBJECTS);
        snprintf(message, sizeof(message), "m%d", i);
        say_of(s, name, name, message);
        sw_loop_virtual_advance(s->f.loop, 10);
        if (i == FLOOD / 2)
            before = test_allocated();
    }
    assert_in_range(test_allocated(), 0, before + GROWTH_BYTES);
    assert_true(s->f.transport->count < 250); /* one at a time, each given some seconds */
    /* What was queued comes as fast as the client's own rate allows, and no more than that. */
    for (int quiet_s = 0; quiet_s < 60; quiet_s++) {
        for (; !is_quiet(s); written++, quiet_s = 0)
            accept(s, the(s));
        sw_loop_virtual_advance(s->f.loop, 1000);
    }
    assert_in_range(written, QUEUE / 2, QUEUE + 1);
    say(s, "and after");
    assert_string_equal(sw_json_get_string(body_of(s, the(s)), "message"), "and after");
    accept(s, the(s));
    end(s);
}

TEST(it_may_stop_during_a_write_and_before_a_try)
{
    struct stage *s = begin();

    say(s, "m");
    end(s);
    s = begin();
    say(s, "m");
    fake_break(the(s), -ECONNRESET);
    end(s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("events", an_event_names_its_object_as_people_ask_for_it),
        CASE("events", what_happens_again_during_the_write_raises_the_count_once_it_is_written),
        CASE("events", an_expired_event_is_created_again_with_its_count),
        CASE("events", in_a_terminating_namespace_it_is_dropped_and_the_next_follows),
        CASE("events", what_is_told_of_a_request_goes_after_it),
        CASE("events", a_lost_answer_is_tried_again_in_some_seconds_and_not_sooner),
        CASE("events", a_create_that_came_through_unanswered_does_not_lose_what_happened_since),
        CASE("events", a_repeat_that_meets_a_conflict_is_sent_again),
        CASE("events", without_any_answer_it_is_given_up_and_the_next_follows),
        CASE("events", a_storm_does_not_reach_the_api_server),
        CASE("events", a_flood_of_a_hundred_thousand_is_bounded),
        CASE("events", it_may_stop_during_a_write_and_before_a_try),
    };
    return RUN(tests);
}
