/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads that are not kept: one object, and lists in pages, however the API server answers.
 */
#include <slipway/read.h>

#include <errno.h>
#include <slipway/apps.h>
#include <slipway/watch.h>
#include <slipway/workloads.h>

#include "base/error.h"
#include "base/util.h"

#include "../overwritten.h"
#include "../test.h"
#include "fixture.h"

struct reader {
    struct fixture f;
    struct made_up made_up;
    unsigned answers;
    enum sw_outcome outcome;
    int status;
    char reason[64], message[256], version[64];
    char names[8192]; /* of the objects, "a b c " */
    size_t count;
    bool is_cut;
    char token[64]; /* of a Secret */
    bool lists_again;
};

static void note(struct reader *r, enum sw_outcome outcome, int status, const char *reason,
                 const char *message)
{
    r->answers++;
    r->outcome = outcome;
    r->status = status;
    snprintf(r->reason, sizeof(r->reason), "%s", reason);
    snprintf(r->message, sizeof(r->message), "%s", message);
    r->names[0] = '\0';
    r->count = 0;
}

static void note_object(struct reader *r, const struct sw_object *object)
{
    size_t len = strlen(r->names);

    assert_non_null(object->kind);
    snprintf(r->names + len, sizeof(r->names) - len, "%s ", object->name);
    r->count++;
}

static void on_answer(struct sw_instance *self, void *arg, const struct sw_answer *answer)
{
    struct reader *r = arg;

    assert_ptr_equal(self, r->made_up.self);
    note(r, answer->outcome, answer->status, answer->reason, answer->message);
    assert_int_equal(answer->object != NULL, answer->outcome == SW_OK);
    snprintf(r->version, sizeof(r->version), "%s", answer->resource_version);
    if (!answer->object)
        return;
    note_object(r, answer->object);
    if (answer->object->kind == &sw_kind_secret) {
        struct sw_arena *arena = sw_arena_new(0);
        size_t len;
        const char *token = sw_secret_value((const struct sw_secret *)(const void *)answer->object,
                                            "token", arena, &len);
        assert_non_null(token);
        assert_int_equal(strlen(token), len);
        snprintf(r->token, sizeof(r->token), "%s", token);
        sw_arena_free(arena);
    }
}

static void on_list(struct sw_instance *self, void *arg, const struct sw_list_answer *answer)
{
    struct reader *r = arg;

    assert_ptr_equal(self, r->made_up.self);
    note(r, answer->outcome, answer->status, answer->reason, answer->message);
    assert_true(answer->outcome == SW_OK || answer->count == 0);
    r->is_cut = answer->is_cut;
    for (size_t i = 0; i < answer->count; i++)
        note_object(r, answer->objects[i]);
    if (r->lists_again) {
        r->lists_again = false;
        assert_int_equal(sw_list_now(self, &sw_kind_pod, "n", NULL, 0, on_list, r), 0);
    }
}

static int start(struct sw_instance *self, void *arg)
{
    struct sw_watch_options options = {.arg = arg};

    sw_read_declare(self, &sw_kind_pod, true);
    sw_read_declare(self, &sw_kind_secret, false);
    return sw_watch(self, &sw_kind_deployment, &options);
}

static struct reader *begin_with(const struct sw_core_options *options)
{
    struct reader *r = calloc(1, sizeof(*r));

    r->made_up = (struct made_up){.start = start, .arg = r};
    fixture_init(&r->f, options);
    fixture_add(&r->f, &module_one, &r->made_up);
    fixture_open(&r->f);
    return r;
}

static struct reader *begin(void)
{
    struct reader *r = begin_with(NULL);

    serve_deployments(&r->f, "10", deployment("n", "a", "u1", "5", "{}"));
    return r;
}

static void end(struct reader *r)
{
    fixture_done(&r->f);
    free(r);
}

static struct fake_request *read_named(struct reader *r, const struct sw_kind *kind,
                                       const char *name, const char *target)
{
    unsigned before = r->answers;

    assert_int_equal(sw_read(r->made_up.self, kind, "n", name, on_answer, r), 0);
    assert_int_equal(r->answers, before);
    struct fake_request *request = fake_the(r->f.transport, target);
    assert_string_equal(request->method, "GET");
    assert_string_equal(request->target, target);
    return request;
}

static struct fake_request *list(struct reader *r, const char *selector, size_t most)
{
    unsigned before = r->answers;

    assert_int_equal(sw_list_now(r->made_up.self, &sw_kind_pod, "n", selector, most, on_list, r),
                     0);
    fixture_turn(&r->f);
    assert_int_equal(r->answers, before);
    return fake_the(r->f.transport, "/api/v1/namespaces/n/pods?");
}

/* Pods named NAME0 to NAME(count - 1). */
static char *page(const char *name, unsigned count, const char *next)
{
    char *text = sw_asprintf("{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{"
                             "\"resourceVersion\":\"10\",\"continue\":\"%s\"},\"items\":[",
                             next);

    for (unsigned i = 0; i < count; i++) {
        char *longer = sw_asprintf("%s%s{\"metadata\":{\"name\":\"%s%u\",\"namespace\":\"n\"}}",
                                   text, i ? "," : "", name, i);
        sw_free(text);
        text = longer;
    }
    char *whole = sw_asprintf("%s]}", text);
    sw_free(text);
    return whole;
}

static void answer_page(struct fake_request *request, const char *name, unsigned count,
                        const char *next)
{
    SW_AUTO(char, sw_free) body = page(name, count, next);

    fake_answer(request, 200, NULL, body);
}

static const char *status(int code, const char *reason)
{
    static char text[256];

    snprintf(text, sizeof(text),
             "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"it "
             "says why\",\"reason\":\"%s\",\"code\":%d}",
             reason, code);
    return text;
}

/* ---- one object ---- */

TEST(lends_an_object_and_keeps_nothing)
{
    struct reader *r = begin();
    struct fake_request *request =
        read_named(r, &sw_kind_deployment, "a", "/apis/apps/v1/namespaces/n/deployments/a");

    fake_answer(request, 200, NULL, deployment("n", "a", "u1", "77", "{}"));
    assert_int_equal(r->outcome, SW_OK);
    assert_string_equal(r->names, "a ");
    assert_string_equal(r->version, "77");
    /* The store has what the watch said. */
    const struct sw_object *kept = sw_lookup(r->made_up.self, &sw_kind_deployment, "n", "a");
    assert_string_equal(kept->resource_version, "5");
    request = read_named(r, &sw_kind_deployment, "a", "/apis/apps/v1/namespaces/n/deployments/a");
    fake_answer(request, 404, NULL, status(404, "NotFound"));
    assert_int_equal(r->outcome, SW_NOT_FOUND);
    assert_non_null(sw_lookup(r->made_up.self, &sw_kind_deployment, "n", "a"));
    end(r);
}

TEST(says_what_an_answer_means)
{
    static const struct {
        int status;
        const char *reason;
        enum sw_outcome outcome;
    } rows[] = {
        {404, "NotFound", SW_NOT_FOUND}, {403, "Forbidden", SW_REFUSED},
        {400, "BadRequest", SW_REFUSED}, {500, "InternalError", SW_UNKNOWN},
        {504, "Timeout", SW_UNKNOWN},
    };
    struct reader *r = begin();

    for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
        struct fake_request *request =
            read_named(r, &sw_kind_pod, "p", "/api/v1/namespaces/n/pods/p");
        fake_answer(request, rows[i].status, NULL, status(rows[i].status, rows[i].reason));
        assert_int_equal(r->answers, i + 1);
        assert_int_equal(r->outcome, rows[i].outcome);
        assert_int_equal(r->status, rows[i].status);
        assert_string_equal(r->reason, rows[i].reason);
        assert_string_equal(r->message, "it says why");
    }
    fake_break(read_named(r, &sw_kind_pod, "p", "/api/v1/namespaces/n/pods/p"), -ECONNRESET);
    assert_int_equal(r->outcome, SW_UNKNOWN);
    assert_int_equal(r->status, 0);
    assert_non_null(strstr(r->message, "the test broke it"));
    end(r);
}

TEST(an_answer_that_is_something_else_is_none)
{
    static const char *const bodies[] = {"{\"metadata\":{\"name\":\"other\",\"namespace\":\"n\"}}",
                                         "{\"kind\":\"Node\",\"metadata\":{\"name\":\"p\"}}",
                                         "<html>", "{\"metadata\":{}}"};
    struct reader *r = begin();

    for (size_t i = 0; i < SW_ARRAY_SIZE(bodies); i++) {
        fake_answer(read_named(r, &sw_kind_pod, "p", "/api/v1/namespaces/n/pods/p"), 200, NULL,
                    bodies[i]);
        assert_int_equal(r->outcome, SW_UNKNOWN);
        assert_string_equal(r->message, "the answer does not hold the object");
    }
    end(r);
}

#define SECRET                                                                          \
    "{\"kind\":\"Secret\",\"metadata\":{\"name\":\"s\",\"namespace\":\"n\"},\"data\":{" \
    "\"token\":\"c2VzYW1l\"},\"type\":\"Opaque\"}"

TEST(lends_a_secret_and_tells_nobody)
{
    struct reader *r = begin();
    struct fake_request *request =
        read_named(r, &sw_kind_secret, "s", "/api/v1/namespaces/n/secrets/s");

    overwritten_text = "c2VzYW1l"; /* sesame */
    fake_answer(request, 200, NULL, SECRET);
    assert_int_equal(r->outcome, SW_OK);
    assert_string_equal(r->token, "sesame");
    assert_int_equal(overwritten(), 2); /* the answer and the object */
    request = read_named(r, &sw_kind_secret, "s", "/api/v1/namespaces/n/secrets/s");
    overwritten_text = "sesame";
    fake_answer(request, 200, NULL, SECRET);
    assert_int_equal(overwritten(), 1); /* the value in the arena */
    request = read_named(r, &sw_kind_secret, "s", "/api/v1/namespaces/n/secrets/s");
    fake_answer(request, 200, NULL,
                "{\"metadata\":{\"name\":\"s\"},\"data\":{\"token\":\"c2VzYW1l\",\"x\":1}}");
    assert_int_equal(r->outcome, SW_UNKNOWN);
    assert_true(fake_log_has(&r->f.log, "answer does not hold the object asked for"));
    assert_false(fake_log_has(&r->f.log, "c2VzYW1l"));
    end(r);
}

TEST(overwrites_the_secrets_of_a_list)
{
    struct reader *r = begin();

    assert_int_equal(sw_list_now(r->made_up.self, &sw_kind_secret, "n", NULL, 0, on_list, r), 0);
    struct fake_request *request = fake_the(r->f.transport, "/api/v1/namespaces/n/secrets?");
    overwritten_text = "c2VzYW1l";
    overwritten();
    fake_head(request, 200, NULL);
    fake_body(request, "{\"kind\":\"SecretList\",\"metadata\":{},\"items\":[" SECRET ",{\"data\":{"
                       "\"token\":\"c2VzYW1l\"},");
    assert_int_equal(overwritten(), 0);
    fake_body(request, "\"metadata\":{\"name\":\"t\"}}]}");
    fake_end(request, 0);
    assert_string_equal(r->names, "s t ");
    assert_int_equal(overwritten(), 3); /* two objects, and what came in two pieces */
    overwritten_text = NULL;
    end(r);
}

TEST(refuses_names_that_are_none)
{
    struct reader *r = begin();
    struct sw_instance *self = r->made_up.self;

    assert_int_equal(sw_read(self, &sw_kind_pod, "n", "a/b", on_answer, r), -EINVAL);
    assert_int_equal(sw_read(self, &sw_kind_pod, "n", "", on_answer, r), -EINVAL);
    assert_int_equal(sw_read(self, &sw_kind_pod, "", "a", on_answer, r), -EINVAL);
    assert_int_equal(sw_read(self, &sw_kind_pod, NULL, "a", on_answer, r), -EINVAL);
    assert_int_equal(sw_list_now(self, &sw_kind_pod, "../x", NULL, 0, on_list, r), -EINVAL);
    assert_int_equal(sw_list_now(self, &sw_kind_pod, "n", "a in (", 0, on_list, r), -EINVAL);
    sw_loop_virtual_advance(r->f.loop, 120000);
    assert_int_equal(r->answers, 0);
    end(r);
}

/* ---- lists ---- */

TEST(lists_what_matches)
{
    struct reader *r = begin();
    struct fake_request *request = list(r, "app=web,tier in (a, b)", 0);

    assert_string_equal(request->target, "/api/v1/namespaces/n/pods?labelSelector="
                                         "app%3Dweb%2Ctier%20in%20%28a%2C%20b%29&limit=500");
    answer_page(request, "p", 3, "");
    assert_int_equal(r->answers, 1);
    assert_int_equal(r->outcome, SW_OK);
    assert_string_equal(r->names, "p0 p1 p2 ");
    assert_false(r->is_cut);
    answer_page(list(r, NULL, 0), "p", 0, "");
    assert_int_equal(r->outcome, SW_OK);
    assert_int_equal(r->count, 0);
    end(r);
}

TEST(goes_through_all_pages)
{
    struct reader *r = begin();
    struct fake_request *request = list(r, NULL, 0);

    answer_page(request, "a", 2, "to/ken=");
    request = fake_the(r->f.transport, "continue=to%2Fken%3D");
    assert_int_equal(r->answers, 0);
    answer_page(request, "b", 1, "t2");
    answer_page(fake_the(r->f.transport, "continue=t2"), "c", 1, "");
    assert_string_equal(r->names, "a0 a1 b0 c0 ");
    end(r);
}

TEST(pieces_of_a_page_may_come_as_they_like)
{
    struct reader *r = begin();
    struct fake_request *request = list(r, NULL, 0);
    SW_AUTO(char, sw_free) body = page("p", 3, "");

    fake_head(request, 200, NULL);
    for (const char *at = body; *at; at++) {
        char byte[2] = {*at};
        fake_body(request, byte);
    }
    fake_end(request, 0);
    assert_string_equal(r->names, "p0 p1 p2 ");
    end(r);
}

TEST(starts_over_where_the_pages_expired)
{
    struct reader *r = begin();

    answer_page(list(r, NULL, 0), "old", 2, "t");
    fake_answer(fake_the(r->f.transport, "continue=t"), 410, NULL, status(410, "Expired"));
    assert_int_equal(r->answers, 0);
    struct fake_request *again = fake_the(r->f.transport, "/pods?limit=500");
    assert_null(strstr(again->target, "continue"));
    answer_page(again, "new", 1, "");
    assert_string_equal(r->names, "new0 ");
    end(r);
}

TEST(does_not_start_over_for_ever)
{
    struct reader *r = begin();

    list(r, NULL, 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(r->answers, 0);
        answer_page(fake_the(r->f.transport, "/pods?limit=500"), "p", 1, "t");
        fake_answer(fake_the(r->f.transport, "continue=t"), 410, NULL, status(410, "Expired"));
    }
    assert_int_equal(r->answers, 1);
    assert_int_equal(r->status, 410);
    assert_int_equal(r->count, 0);
    end(r);
}

TEST(stops_at_the_most)
{
    struct reader *r = begin();

    answer_page(list(r, NULL, 3), "p", 3, "");
    assert_int_equal(r->count, 3);
    assert_false(r->is_cut);
    answer_page(list(r, NULL, 3), "p", 4, "t");
    assert_int_equal(r->outcome, SW_OK);
    assert_int_equal(r->count, 3);
    assert_true(r->is_cut);
    assert_int_equal(fake_find(r->f.transport, "/pods") != NULL, 0);
    end(r);
}

TEST(waits_where_the_server_asks_for_it)
{
    struct reader *r = begin();

    fake_answer(list(r, NULL, 0), 429, "Retry-After: 2", status(429, "TooManyRequests"));
    assert_null(fake_find(r->f.transport, "/pods"));
    sw_loop_virtual_advance(r->f.loop, 1999);
    assert_null(fake_find(r->f.transport, "/pods"));
    sw_loop_virtual_advance(r->f.loop, 1000);
    answer_page(fake_the(r->f.transport, "/pods"), "p", 1, "");
    assert_string_equal(r->names, "p0 ");
    end(r);
}

TEST(gives_up_after_a_minute)
{
    struct reader *r = begin();

    list(r, NULL, 0);
    for (int i = 0; i < 120 && r->answers == 0; i++) {
        struct fake_request *request = fake_find(r->f.transport, "/pods");
        if (request)
            fake_answer(request, 429, "Retry-After: 1", status(429, "TooManyRequests"));
        sw_loop_virtual_advance(r->f.loop, 500);
    }
    assert_int_equal(r->answers, 1);
    assert_int_equal(r->outcome, SW_UNKNOWN);
    assert_int_equal(r->status, 429);
    end(r);
}

TEST(a_list_that_breaks_has_no_objects)
{
    struct reader *r = begin();
    struct fake_request *request = list(r, NULL, 0);

    answer_page(request, "p", 2, "t");
    fake_break(fake_the(r->f.transport, "continue=t"), -ECONNRESET);
    assert_int_equal(r->outcome, SW_UNKNOWN);
    assert_int_equal(r->status, 0);
    fake_answer(list(r, NULL, 0), 403, NULL, status(403, "Forbidden"));
    assert_int_equal(r->outcome, SW_REFUSED);
    assert_string_equal(r->message, "it says why");
    fake_answer(list(r, NULL, 0), 200, NULL, "{\"kind\":\"NodeList\",\"items\":[]}");
    assert_int_equal(r->outcome, SW_UNKNOWN);
    fake_answer(list(r, NULL, 0), 200, NULL, "{\"kind\":\"PodList\",\"items\":[");
    assert_int_equal(r->outcome, SW_UNKNOWN);
    assert_int_equal(r->answers, 4);
    end(r);
}

TEST(a_list_that_cannot_be_sent_says_so_later)
{
    struct reader *r = begin();

    r->f.transport->send_result = -ENOBUFS;
    assert_int_equal(sw_list_now(r->made_up.self, &sw_kind_pod, "n", NULL, 0, on_list, r), 0);
    assert_int_equal(r->answers, 0);
    fixture_turn(&r->f);
    assert_int_equal(r->answers, 1);
    assert_int_equal(r->outcome, SW_UNKNOWN);
    r->f.transport->send_result = 0;
    end(r);
}

TEST(what_cannot_be_read_is_left_out)
{
    struct reader *r = begin();

    fake_answer(list(r, NULL, 0), 200, NULL,
                "{\"kind\":\"PodList\",\"metadata\":{},\"items\":["
                "{\"metadata\":{\"name\":\"a\"}},{\"metadata\":{\"name\":\"b\"},\"status\":{"
                "\"phase\":7}},{\"metadata\":{\"name\":\"c\"}}]}");
    assert_string_equal(r->names, "a c ");
    assert_true(fake_log_has(&r->f.log, "object cannot be read, left out"));
    end(r);
}

TEST(lists_where_slipway_may_look)
{
    static const struct sw_core_options options = {.username = "me", .namespace_ = "here"};
    struct reader *limited = begin_with(&options), *r = begin();

    assert_int_equal(
        sw_list_now(limited->made_up.self, &sw_kind_pod, NULL, NULL, 0, on_list, limited), 0);
    answer_page(fake_the(limited->f.transport, "/api/v1/namespaces/here/pods?limit=500"), "p", 1,
                "");
    assert_int_equal(limited->count, 1);
    assert_int_equal(sw_list_now(r->made_up.self, &sw_kind_pod, NULL, NULL, 0, on_list, r), 0);
    answer_page(fake_the(r->f.transport, "/api/v1/pods?limit=500"), "p", 1, "");
    assert_int_equal(r->count, 1);
    fake_break(fake_the(limited->f.transport, "/deployments"), -ECONNRESET);
    end(limited);
    end(r);
}

/* ---- stopping ---- */

TEST(the_callback_may_list_again)
{
    struct reader *r = begin();

    r->lists_again = true;
    answer_page(list(r, NULL, 1), "p", 2, ""); /* told in the middle of the page */
    answer_page(fake_the(r->f.transport, "/pods"), "q", 1, "");
    assert_int_equal(r->answers, 2);
    assert_string_equal(r->names, "q0 ");
    end(r);
}

TEST(one_that_stops_is_not_called)
{
    struct reader *r = begin();
    struct fake_request *listed, *got;

    answer_page(list(r, NULL, 0), "p", 2, "t");
    listed = fake_the(r->f.transport, "continue=t");
    got = read_named(r, &sw_kind_secret, "s", "/api/v1/namespaces/n/secrets/s");
    r->f.core = sw_core_free(r->f.core);
    assert_true(listed->was_cancelled);
    assert_true(got->was_cancelled);
    assert_int_equal(r->answers, 0);
    end(r);
}

TEST(one_that_waits_may_stop)
{
    struct reader *r = begin();

    fake_answer(list(r, NULL, 0), 429, "Retry-After: 2", status(429, "TooManyRequests"));
    end(r);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("read", lends_an_object_and_keeps_nothing),
        CASE("read", says_what_an_answer_means),
        CASE("read", an_answer_that_is_something_else_is_none),
        CASE("read", lends_a_secret_and_tells_nobody),
        CASE("read", overwrites_the_secrets_of_a_list),
        CASE("read", refuses_names_that_are_none),
        CASE("read", lists_what_matches),
        CASE("read", goes_through_all_pages),
        CASE("read", pieces_of_a_page_may_come_as_they_like),
        CASE("read", starts_over_where_the_pages_expired),
        CASE("read", does_not_start_over_for_ever),
        CASE("read", stops_at_the_most),
        CASE("read", waits_where_the_server_asks_for_it),
        CASE("read", gives_up_after_a_minute),
        CASE("read", a_list_that_breaks_has_no_objects),
        CASE("read", a_list_that_cannot_be_sent_says_so_later),
        CASE("read", what_cannot_be_read_is_left_out),
        CASE("read", lists_where_slipway_may_look),
        CASE("read", the_callback_may_list_again),
        CASE("read", one_that_stops_is_not_called),
        CASE("read", one_that_waits_may_stop),
    };
    return RUN(tests);
}
