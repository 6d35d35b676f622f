/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to other servers: what is sent, where redirects lead, when it ends and in what words.
 * Over sockets: test_sockets.c and net/test_fetcher_http.c.
 */
#include <slipway/fetch.h>

#include <errno.h>

#include "base/error.h"
#include "base/util.h"

#include "../test.h"
#include "fixture.h"

struct asker {
    struct fixture f;
    struct made_up made_up;
    unsigned answers;
    int status;
    char why[512], body[4096];
    size_t body_len;
    struct sw_fetching *fetching;
    struct sw_fetching *victim; /* cancelled from the callback */
    const char *then;           /* fetched from the callback */
};

static void on_answer(struct sw_instance *self, void *arg, const struct sw_fetch_answer *answer)
{
    struct asker *a = arg;

    assert_ptr_equal(self, a->made_up.self);
    assert_int_equal(answer->body[answer->body_len], '\0');
    assert_int_equal(answer->why[0] == '\0', answer->status != 0);
    a->answers++;
    a->status = answer->status;
    snprintf(a->why, sizeof(a->why), "%s", answer->why);
    snprintf(a->body, sizeof(a->body), "%s", answer->body);
    a->body_len = answer->body_len;
    sw_fetch_cancel(sw_steal(&a->victim));
    if (a->then) {
        const struct sw_fetch next = {.method = "GET", .url = sw_steal(&a->then)};
        assert_int_equal(sw_fetch(self, &next, on_answer, a, NULL), 0);
    }
}

static struct asker *begin(void)
{
    struct asker *a = calloc(1, sizeof(*a));

    fixture_init(&a->f, NULL);
    fixture_add(&a->f, &module_one, &a->made_up);
    fixture_open(&a->f);
    return a;
}

static void end(struct asker *a)
{
    fixture_done(&a->f);
    free(a);
}

static struct fake_fetch *fetch(struct asker *a, const struct sw_fetch *fetch)
{
    unsigned before = a->answers;

    assert_int_equal(sw_fetch(a->made_up.self, fetch, on_answer, a, &a->fetching), 0);
    assert_int_equal(a->answers, before); /* never from within */
    return a->f.fetcher->count ? a->f.fetcher->requests[a->f.fetcher->count - 1] : NULL;
}

static struct fake_fetch *get(struct asker *a, const char *url)
{
    return fetch(a, &(struct sw_fetch){.method = "GET", .url = url});
}

/* Answers with a redirect; what is asked then. */
static struct fake_fetch *redirect(struct asker *a, struct fake_fetch *r, const char *location)
{
    SW_AUTO(char, sw_free) field = sw_asprintf("Location: %s", location);
    unsigned sent = a->f.fetcher->count;

    fake_fetch_answer(r, 302, field, "<a href=there>");
    return a->f.fetcher->count > sent ? a->f.fetcher->requests[sent] : NULL;
}

/* ---- what is sent ---- */

TEST(sends_what_is_asked)
{
    static const struct sw_fetch_field fields[] = {{"X-Scope-OrgID", "shop"},
                                                   {"Content-Type", "application/json"}};
    struct asker *a = begin();
    struct fake_fetch *r = fetch(a, &(struct sw_fetch){.method = "POST",
                                                       .url = "https://h:8443/hook?a=b#c",
                                                       .fields = fields,
                                                       .field_count = 2,
                                                       .body = "{}",
                                                       .body_len = 2,
                                                       .timeout_ms = 3000,
                                                       .body_limit_bytes = 100,
                                                       .insecure_skip_verify = true,
                                                       .ca_pem = "CA"});

    assert_string_equal(r->method, "POST");
    assert_string_equal(r->url, "https://h:8443/hook?a=b");
    assert_string_equal(r->fields, "X-Scope-OrgID: shop\nContent-Type: application/json\n");
    assert_string_equal(r->body, "{}");
    assert_int_equal(r->timeout_ms, 3000);
    assert_true(r->insecure_skip_verify);
    assert_string_equal(r->ca_pem, "CA");
    fake_fetch_answer(r, 204, NULL, "");
    assert_int_equal(a->answers, 1);
    assert_int_equal(a->status, 204);
    assert_int_equal(a->body_len, 0);
    end(a);
}

TEST(has_bounds_where_none_are_named)
{
    static const char kib[1024] = "x";
    struct asker *a = begin();
    struct fake_fetch *r = get(a, "http://h");

    assert_string_equal(r->url, "http://h/");
    assert_int_equal(r->timeout_ms, 10000);
    fake_fetch_answer(r, 200, NULL, "up 1");
    assert_string_equal(a->body, "up 1");
    r = get(a, "http://h");
    fake_fetch_head(r, 200, NULL);
    for (int i = 0; i < 1024; i++)
        fake_fetch_body(r, kib, sizeof(kib));
    assert_true(r->is_open);
    fake_fetch_body(r, kib, 1);
    assert_false(r->is_open);
    fixture_turn(&a->f);
    assert_string_equal(a->why, "answer longer than 1048576 bytes");
    end(a);
}

TEST(a_user_in_the_url_becomes_authorization)
{
    static const struct sw_fetch_field own = {"authorization", "Bearer t"};
    struct asker *a = begin();
    struct fake_fetch *r = get(a, "http://ann:p%40ss@h/");

    assert_string_equal(r->url, "http://h/");
    assert_string_equal(fake_fetch_field(r, "Authorization"), "Basic YW5uOnBAc3M=");
    fake_fetch_answer(r, 200, NULL, "");
    r = fetch(a, &(struct sw_fetch){
                     .method = "GET", .url = "http://ann@h/", .fields = &own, .field_count = 1});
    assert_string_equal(r->fields, "authorization: Bearer t\n");
    fake_fetch_answer(r, 200, NULL, "");
    end(a);
}

TEST(refuses_what_would_break_the_head)
{
    static const struct sw_fetch_field bad[] = {
        {"A", "x\r\nB: y"}, {"A:", "x"}, {"", "x"}, {"Host", "x"}, {"content-length", "0"},
    };
    struct asker *a = begin();
    struct sw_instance *self = a->made_up.self;
    const struct sw_fetch method = {.method = "PUT", .url = "http://h/"};
    const struct sw_fetch body = {.method = "GET", .url = "http://h/", .body = "x", .body_len = 1};
    const struct sw_fetch url = {.method = "GET", .url = "ftp://h/"};

    for (size_t i = 0; i < SW_ARRAY_SIZE(bad); i++) {
        const struct sw_fetch field = {
            .method = "GET", .url = "http://h/", .fields = &bad[i], .field_count = 1};
        assert_int_equal(sw_fetch(self, &field, on_answer, a, NULL), -EINVAL);
    }
    assert_int_equal(sw_fetch(self, &method, on_answer, a, NULL), -EINVAL);
    assert_int_equal(sw_fetch(self, &body, on_answer, a, NULL), -EINVAL);
    assert_int_equal(sw_fetch(self, &url, on_answer, a, NULL), -EINVAL);
    sw_loop_virtual_advance(a->f.loop, 60000);
    assert_int_equal(a->answers, 0);
    assert_int_equal(a->f.fetcher->count, 0);
    end(a);
}

TEST(says_what_is_wrong_with_a_url)
{
    char why[256] = "";

    assert_int_equal(sw_url_check("https://h:8080/a?b=c", why, sizeof(why)), 0);
    assert_string_equal(why, "");
    assert_int_equal(sw_url_check("prometheus:9090", why, sizeof(why)), -EINVAL);
    assert_string_equal(why, "URL begins with neither \"https://\" nor \"http://\"");
    assert_int_equal(sw_url_check("http://h/a b", why, sizeof(why)), -EINVAL);
    assert_string_equal(why, "path has a character that must be escaped: 0x20");
}

TEST(escapes_values_of_a_query)
{
    struct sw_arena *arena = sw_arena_new(0);

    assert_string_equal(sw_url_escape(arena, "up{a=\"b c\"} > 1%"),
                        "up%7Ba%3D%22b%20c%22%7D%20%3E%201%25");
    assert_string_equal(sw_url_escape(arena, ""), "");
    sw_arena_free(arena);
}

/* ---- redirects ---- */

TEST(follows_redirects_of_a_get)
{
    static const int statuses[] = {301, 302, 303, 307, 308};
    struct asker *a = begin();

    for (size_t i = 0; i < SW_ARRAY_SIZE(statuses); i++) {
        fake_fetch_answer(get(a, "http://h/a/b?c"), statuses[i], "Location: ../d?e=f", "moved");
        struct fake_fetch *r = fake_fetch_the(a->f.fetcher, "http://h/d?e=f");
        fake_fetch_answer(r, 200, NULL, "here");
        assert_int_equal(a->answers, i + 1);
        assert_int_equal(a->status, 200);
        assert_string_equal(a->body, "here");
    }
    end(a);
}

TEST(a_redirect_of_a_post_is_an_answer)
{
    struct asker *a = begin();
    struct fake_fetch *r = fetch(a, &(struct sw_fetch){.method = "POST", .url = "http://h/"});

    assert_null(redirect(a, r, "http://elsewhere/"));
    assert_int_equal(a->status, 302);
    assert_string_equal(a->body, "<a href=there>");
    end(a);
}

TEST(a_redirect_to_nowhere_is_an_answer)
{
    struct asker *a = begin();

    fake_fetch_answer(get(a, "http://h/"), 302, NULL, "lost");
    assert_int_equal(a->status, 302);
    fake_fetch_answer(get(a, "http://h/"), 304, "Location: /x", "");
    assert_int_equal(a->status, 304);
    end(a);
}

TEST(credentials_stay_with_their_origin)
{
    static const struct sw_fetch_field fields[] = {
        {"Authorization", "Bearer t"}, {"Accept", "text/plain"}, {"X-Api-Key", "k"}};
    static const char *const others[] = {"http://h2/", "http://h:81/", "https://h/", "//h3/"};
    struct asker *a = begin();

    for (size_t i = 0; i < SW_ARRAY_SIZE(others); i++) {
        struct fake_fetch *r =
            fetch(a, &(struct sw_fetch){
                         .method = "GET", .url = "http://h/", .fields = fields, .field_count = 3});
        r = redirect(a, r, "http://H:80/same");
        assert_string_equal(r->fields,
                            "Authorization: Bearer t\nAccept: text/plain\nX-Api-Key: k\n");
        r = redirect(a, r, others[i]);
        assert_string_equal(r->fields, "Accept: text/plain\n");
        r = redirect(a, r, "https://h/"); /* nor do they come back */
        assert_string_equal(r->fields, "Accept: text/plain\n");
        fake_fetch_answer(r, 200, NULL, "");
    }
    end(a);
}

TEST(a_user_in_a_redirect_is_nobody)
{
    struct asker *a = begin();
    struct fake_fetch *r = redirect(a, get(a, "http://h/"), "http://eve:pw@h/x");

    assert_string_equal(r->url, "http://h/x");
    assert_string_equal(r->fields, "");
    fake_fetch_answer(r, 200, NULL, "");
    end(a);
}

TEST(does_not_follow_from_https_to_http)
{
    struct asker *a = begin();

    assert_null(redirect(a, get(a, "https://h/"), "http://h/"));
    assert_int_equal(a->answers, 1);
    assert_string_equal(a->why, "redirected from https to http: not followed");
    end(a);
}

TEST(does_not_follow_for_ever)
{
    struct asker *a = begin();
    struct fake_fetch *r = get(a, "http://h/");

    for (int i = 0; i < 5; i++)
        r = redirect(a, r, "/");
    assert_non_null(r);
    assert_int_equal(a->answers, 0);
    assert_null(redirect(a, r, "/"));
    assert_string_equal(a->why, "redirected more than 5 times");
    end(a);
}

TEST(a_location_that_is_no_url_is_named)
{
    struct asker *a = begin();

    assert_null(redirect(a, get(a, "http://h/"), "mailto:ann@h"));
    assert_string_equal(a->why, "redirected to what is no URL of ours: URL begins with neither "
                                "\"https://\" nor \"http://\"");
    end(a);
}

/* ---- ends ---- */

TEST(times_out_on_its_own_clock)
{
    struct asker *a = begin();
    struct fake_fetch *r = get(a, "http://h/");

    sw_loop_virtual_advance(a->f.loop, 9999);
    assert_int_equal(a->answers, 0);
    sw_loop_virtual_advance(a->f.loop, 1);
    assert_int_equal(a->answers, 1);
    assert_int_equal(a->status, 0);
    assert_string_equal(a->why, "no answer within 10 s");
    assert_true(r->was_cancelled);
    end(a);
}

TEST(an_answer_that_never_ends_times_out)
{
    struct asker *a = begin();
    struct fake_fetch *r =
        fetch(a, &(struct sw_fetch){.method = "GET", .url = "http://h/", .timeout_ms = 1500});

    fake_fetch_head(r, 200, NULL);
    for (int i = 0; i < 14; i++) {
        sw_loop_virtual_advance(a->f.loop, 100);
        fake_fetch_body(r, "x", 1);
    }
    sw_loop_virtual_advance(a->f.loop, 100);
    assert_string_equal(a->why, "answer not complete within 1500 ms");
    assert_string_equal(a->body, "");
    end(a);
}

TEST(redirects_share_one_deadline)
{
    struct asker *a = begin();
    struct fake_fetch *r = get(a, "http://h/");

    sw_loop_virtual_advance(a->f.loop, 6000);
    r = redirect(a, r, "/next");
    assert_int_equal(r->timeout_ms, 4000);
    sw_loop_virtual_advance(a->f.loop, 4000);
    assert_true(r->was_cancelled);
    assert_string_equal(a->why, "no answer within 10 s");
    end(a);
}

TEST(an_answer_beyond_the_limit_fails)
{
    struct asker *a = begin();
    struct fake_fetch *r =
        fetch(a, &(struct sw_fetch){.method = "GET", .url = "http://h/", .body_limit_bytes = 3});

    fake_fetch_head(r, 200, NULL);
    fake_fetch_body(r, "abc", 3);
    assert_true(r->is_open);
    fake_fetch_body(r, "d", 1);
    assert_true(r->was_cancelled);
    assert_int_equal(a->answers, 0); /* not from within */
    fixture_turn(&a->f);
    assert_int_equal(a->answers, 1);
    assert_int_equal(a->status, 0);
    assert_string_equal(a->why, "answer longer than 3 bytes");
    end(a);
}

TEST(a_body_may_hold_anything)
{
    struct asker *a = begin();
    struct fake_fetch *r = get(a, "http://h/");

    fake_fetch_head(r, 200, NULL);
    fake_fetch_body(r, "a\0b", 3);
    fake_fetch_end(r, 0);
    assert_int_equal(a->body_len, 3);
    end(a);
}

TEST(what_breaks_says_so)
{
    struct asker *a = begin();

    fake_fetch_break(get(a, "http://h/"), -ECONNREFUSED);
    assert_int_equal(a->status, 0);
    assert_non_null(strstr(a->why, "refused"));
    a->f.fetcher->send_result = SW_E_CONFIG;
    fetch(a, &(struct sw_fetch){.method = "GET", .url = "http://h/"});
    fixture_turn(&a->f);
    assert_int_equal(a->answers, 2);
    assert_string_equal(a->why, "the test does not let it be sent");
    end(a);
}

/* ---- cancelling and stopping ---- */

TEST(nothing_comes_after_a_cancel)
{
    struct asker *a = begin();
    struct fake_fetch *r = get(a, "http://h/");

    sw_fetch_cancel(a->fetching);
    sw_fetch_cancel(NULL);
    assert_true(r->was_cancelled);
    a->f.fetcher->send_result = -ENOBUFS; /* what has failed already may be cancelled too */
    get(a, "http://h/");
    sw_fetch_cancel(a->fetching);
    sw_loop_virtual_advance(a->f.loop, 60000);
    assert_int_equal(a->answers, 0);
    end(a);
}

TEST(the_callback_may_do_anything)
{
    struct asker *a = begin();
    struct fake_fetch *other = get(a, "http://other/");

    a->victim = a->fetching;
    a->then = "http://third/";
    fake_fetch_answer(get(a, "http://h/"), 200, NULL, "");
    assert_true(other->was_cancelled);
    assert_int_equal(a->answers, 1);
    fake_fetch_answer(fake_fetch_the(a->f.fetcher, "third"), 200, NULL, "");
    assert_int_equal(a->answers, 2);
    end(a);
}

TEST(one_that_stops_is_not_called)
{
    struct asker *a = begin();
    struct fake_fetch *r = get(a, "http://h/");

    get(a, "http://i/");
    a->f.core = sw_core_free(a->f.core);
    assert_true(r->was_cancelled);
    assert_int_equal(fake_fetch_open_count(a->f.fetcher), 0);
    assert_int_equal(a->answers, 0);
    end(a);
}

static void on_quiet(void *arg)
{
    *(bool *)arg = true;
}

TEST(stopping_in_order_does_not_wait_for_it)
{
    struct asker *a = begin();
    bool is_quiet = false;
    struct fake_fetch *r = get(a, "http://h/");

    sw_core_quiesce(a->f.core, 20000, on_quiet, &is_quiet);
    fixture_turn(&a->f);
    assert_true(is_quiet);
    fake_fetch_answer(r, 200, NULL, "");
    assert_int_equal(a->answers, 1);
    end(a);
}

/* ---- what is told of it ---- */

TEST(counts_by_the_class_of_the_status)
{
    struct asker *a = begin();

    assert_true(fixture_shows(&a->f, "slipway_fetch_requests_total{code=\"2xx\"} 0"));
    fake_fetch_answer(get(a, "http://h/"), 200, NULL, "");
    fake_fetch_answer(get(a, "http://h/"), 204, NULL, "");
    fake_fetch_answer(get(a, "http://h/"), 404, NULL, "");
    fake_fetch_answer(get(a, "http://h/"), 503, NULL, "");
    fake_fetch_answer(get(a, "http://h/"), 999, NULL, "");
    fake_fetch_break(get(a, "http://h/"), -ECONNREFUSED);
    assert_true(fixture_shows(&a->f, "slipway_fetch_requests_total{code=\"2xx\"} 2"));
    assert_true(fixture_shows(&a->f, "slipway_fetch_requests_total{code=\"4xx\"} 1"));
    assert_true(fixture_shows(&a->f, "slipway_fetch_requests_total{code=\"5xx\"} 2"));
    assert_true(fixture_shows(&a->f, "slipway_fetch_requests_total{code=\"<error>\"} 1"));
    assert_true(fixture_shows(&a->f, "slipway_fetch_seconds_count 6"));
    end(a);
}

TEST(the_log_holds_no_secret)
{
    static const struct sw_fetch_field field = {"Authorization", "Bearer sesame"};
    struct asker *a = begin();
    struct fake_fetch *r = fetch(a, &(struct sw_fetch){.method = "GET",
                                                       .url = "http://ann:sesame@h:81/a?t=sesame",
                                                       .fields = &field,
                                                       .field_count = 1});

    fake_fetch_answer(redirect(a, r, "/b?t=sesame"), 200, NULL, "sesame");
    fake_fetch_break(get(a, "http://ann:sesame@h/?t=sesame"), -ECONNRESET);
    assert_true(fake_log_has(&a->f.log, "url=http://h:81/b "));
    assert_false(fake_log_has(&a->f.log, "sesame"));
    assert_null(strstr(a->why, "sesame"));
    end(a);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("fetch", sends_what_is_asked),
        CASE("fetch", has_bounds_where_none_are_named),
        CASE("fetch", a_user_in_the_url_becomes_authorization),
        CASE("fetch", refuses_what_would_break_the_head),
        CASE("fetch", says_what_is_wrong_with_a_url),
        CASE("fetch", escapes_values_of_a_query),
        CASE("fetch", follows_redirects_of_a_get),
        CASE("fetch", a_redirect_of_a_post_is_an_answer),
        CASE("fetch", a_redirect_to_nowhere_is_an_answer),
        CASE("fetch", credentials_stay_with_their_origin),
        CASE("fetch", a_user_in_a_redirect_is_nobody),
        CASE("fetch", does_not_follow_from_https_to_http),
        CASE("fetch", does_not_follow_for_ever),
        CASE("fetch", a_location_that_is_no_url_is_named),
        CASE("fetch", times_out_on_its_own_clock),
        CASE("fetch", an_answer_that_never_ends_times_out),
        CASE("fetch", redirects_share_one_deadline),
        CASE("fetch", an_answer_beyond_the_limit_fails),
        CASE("fetch", a_body_may_hold_anything),
        CASE("fetch", what_breaks_says_so),
        CASE("fetch", nothing_comes_after_a_cancel),
        CASE("fetch", the_callback_may_do_anything),
        CASE("fetch", one_that_stops_is_not_called),
        CASE("fetch", stopping_in_order_does_not_wait_for_it),
        CASE("fetch", counts_by_the_class_of_the_status),
        CASE("fetch", the_log_holds_no_secret),
    };
    return RUN(tests);
}
