/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which client a request gets, and how long clients stay. No connection is made here: requests are
 * cancelled before. Over sockets: runtime/test_fetch_sockets.c.
 */
#include "net/fetcher.h"

#include <errno.h>

#include "base/error.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/util.h"
#include "test.h"

static const struct sw_log no_log;

static void on_end(void *arg, int code, const struct sw_error *error)
{
    (void)arg;
    (void)code;
    (void)error;
    fail_msg("a cancelled request ends");
}

static const struct sw_http_exchange_events events = {.on_end = on_end};

struct world {
    struct sw_loop *loop;
    struct sw_fetcher *fetcher;
    struct sw_error error;
};

static struct world begin(void)
{
    struct world w = {.loop = sw_loop_virtual_new(0, 1)};
    unsetenv("HTTP_PROXY");
    unsetenv("HTTPS_PROXY");
    w.fetcher = sw_fetcher_http_new(w.loop, "test", 2, &no_log);
    return w;
}

static void end(struct world *w)
{
    w->fetcher->ops->close(w->fetcher);
    sw_loop_virtual_advance(w->loop, 0);
    assert_int_equal(sw_loop_close(w->loop), 0);
}

static int send(struct world *w, struct sw_url origin, bool is_insecure, const char *target,
                void **ret_exchange)
{
    const struct sw_fetcher_request request = {
        .origin = &origin,
        .insecure_skip_verify = is_insecure,
        .http = {.method = "GET", .target = target},
    };
    return w->fetcher->ops->send(w->fetcher, &request, &events, NULL, ret_exchange, &w->error);
}

/* Sends, and gives it up. */
static void ask(struct world *w, struct sw_url origin, bool is_insecure)
{
    void *exchange;
    assert_int_equal(send(w, origin, is_insecure, "/", &exchange), 0);
    w->fetcher->ops->cancel(w->fetcher, exchange);
}

TEST(a_client_is_of_an_origin_and_a_trust)
{
    struct world w = begin();
    ask(&w, (struct sw_url){.host = "h", .port = 80}, false);
    ask(&w, (struct sw_url){.host = "h", .port = 80}, false);
    assert_int_equal(sw_fetcher_http_clients(w.fetcher), 1);
    ask(&w, (struct sw_url){.host = "h", .port = 81}, false);
    assert_int_equal(sw_fetcher_http_clients(w.fetcher), 2);
    ask(&w, (struct sw_url){.host = "i", .port = 80}, false);
    assert_int_equal(sw_fetcher_http_clients(w.fetcher), 3);
    ask(&w, (struct sw_url){.host = "h", .port = 80, .is_https = true}, true);
    assert_int_equal(sw_fetcher_http_clients(w.fetcher), 4);
    ask(&w, (struct sw_url){.host = "h", .port = 80}, true); /* no matter without TLS */
    assert_int_equal(sw_fetcher_http_clients(w.fetcher), 4);
    end(&w);
}

TEST(what_is_not_used_goes)
{
    struct world w = begin();
    ask(&w, (struct sw_url){.host = "h", .port = 80}, false);
    sw_loop_virtual_advance(w.loop, 149000);
    ask(&w, (struct sw_url){.host = "h", .port = 80}, false);
    sw_loop_virtual_advance(w.loop, 149000);
    assert_int_equal(sw_fetcher_http_clients(w.fetcher), 1);
    sw_loop_virtual_advance(w.loop, 1000);
    assert_int_equal(sw_fetcher_http_clients(w.fetcher), 0);
    end(&w);
}

TEST(what_cannot_be_sent_says_why_and_goes)
{
    struct world w = begin();
    void *exchange;
    assert_int_equal(
        send(&w, (struct sw_url){.host = "h", .port = 80}, false, "no target", &exchange), -EINVAL);
    assert_non_null(strstr(w.error.text, "not sent"));
    sw_loop_virtual_advance(w.loop, 150000);
    assert_int_equal(sw_fetcher_http_clients(w.fetcher), 0);
    end(&w);
}

TEST(a_proxy_over_tls_is_for_servers_over_tls)
{
    struct world w = begin();
    void *exchange;
    setenv("HTTP_PROXY", "https://proxy.test", 1);
    assert_int_equal(send(&w, (struct sw_url){.host = "h", .port = 80}, false, "/", &exchange),
                     SW_E_CONFIG);
    assert_non_null(strstr(w.error.text, "HTTP_PROXY must begin with http://"));
    setenv("HTTP_PROXY", "gopher://proxy.test", 1);
    assert_int_equal(send(&w, (struct sw_url){.host = "h", .port = 80}, false, "/", &exchange),
                     SW_E_SYNTAX);
    assert_non_null(strstr(w.error.text, "HTTP_PROXY in the environment"));
    assert_int_equal(sw_fetcher_http_clients(w.fetcher), 0);
    unsetenv("HTTP_PROXY");
    end(&w);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("fetcher", a_client_is_of_an_origin_and_a_trust),
        CASE("fetcher", what_is_not_used_goes),
        CASE("fetcher", what_cannot_be_sent_says_why_and_goes),
        CASE("fetcher", a_proxy_over_tls_is_for_servers_over_tls),
    };
    return RUN(tests);
}
