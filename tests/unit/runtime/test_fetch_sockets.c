/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to other servers over real connections on 127.0.0.1: TLS and who is trusted, servers
 * that hang, that send too much, that send garbage, and many of them at once.
 */
#include <slipway/fetch.h>

#include "base/error.h"
#include "base/metrics.h"
#include "base/util.h"
#include "net/fetcher.h"
#include "net/http_server.h"
#include "net/stream.h"
#include "net/tcp.h"
#include "net/tls.h"
#include "net/tls_issue.h"

#include "../test.h"
#include "fixture.h"

enum {
    GUARD_MS = 60000, /* nothing here takes a second */
    FETCHES_MAX = 128,
    BIG = 10 * 1024 * 1024,
};

/* What has come of one fetch. */
struct fetched {
    struct sw_fetching *fetching;
    bool is_done;
    int status;
    char why[512], body[512];
    size_t body_len;
};

static struct {
    struct sw_loop *loop;
    struct sw_metrics *metrics;
    struct sw_log log;
    struct fake_transport *transport;
    struct sw_core *core;
    struct made_up made_up;
    struct sw_timer guard;
    char *folder;
    struct sw_tls_pair authority, pair;

    struct fetched fetches[FETCHES_MAX];
    unsigned fetch_count, done_count, wanted;

    struct sw_http_server *server, *tls_server;
    struct sw_tls_config *tls;
    unsigned requests;
    char seen[1024]; /* the last request: method, path, query, fields that matter, body */
    char redirect[256];

    /* a server that says what it is told to, whatever it hears */
    struct sw_tcp_listener *listener;
    struct sw_stream *streams[FETCHES_MAX];
    unsigned stream_count;
    const char *says;
    size_t says_len;
    bool ends, never_stops;
    char heard[1024];
} w;

/* ---- the HTTP server ---- */

static void answer_big(struct sw_http_incoming *request)
{
    static char bytes[BIG];

    memset(bytes, 'x', sizeof(bytes));
    sw_http_answer(
        request, &(struct sw_http_answer){.status = 200, .body = bytes, .body_len = sizeof(bytes)});
}

static void on_request(void *arg, struct sw_http_incoming *request)
{
    const char *agent = sw_http_field_get(&request->fields, "User-Agent");
    const char *authorization = sw_http_field_get(&request->fields, "Authorization");
    struct sw_http_field location = {"Location", w.redirect};

    (void)arg;
    w.requests++;
    snprintf(w.seen, sizeof(w.seen), "%s %s ?%s agent=%s authorization=%s body=%s", request->method,
             request->path, request->query, agent ? agent : "", authorization ? authorization : "",
             request->body);
    if (strcmp(request->path, "/big") == 0)
        answer_big(request);
    else if (strcmp(request->path, "/redirect") == 0)
        sw_http_answer(request, &(struct sw_http_answer){
                                    .status = 302, .fields = &location, .field_count = 1});
    else if (strcmp(request->path, "/broken") == 0)
        sw_http_answer_text(request, 500, "broken");
    else
        sw_http_answer_text(request, 200, "here");
}

static struct sw_http_server *open_server(struct sw_tls_config *tls)
{
    struct sw_http_server_options options = {.address = "127.0.0.1:0", .tls = tls};
    struct sw_http_server *server;
    struct sw_error error = {0};

    if (sw_http_server_open(w.loop, &options, on_request, NULL, &w.log, &server, &error))
        fail_msg("%s", error.text);
    return server;
}

/* ---- the server that says anything ---- */

static void say(struct sw_stream *stream)
{
    if (w.says_len)
        assert_int_equal(sw_stream_write(stream, w.says, w.says_len), 0);
    if (w.ends)
        sw_stream_finish(stream);
}

static void on_heard(void *arg, const char *bytes, size_t len)
{
    struct sw_stream **stream = arg;
    size_t had = strlen(w.heard);

    snprintf(w.heard + had, sizeof(w.heard) - had, "%.*s", (int)len, bytes);
    if (*stream)
        say(*stream);
}

static void on_gone(void *arg, int code)
{
    struct sw_stream **stream = arg;

    (void)code;
    sw_stream_close(*stream);
    *stream = NULL;
}

static void pour(void *arg)
{
    static char bytes[64 * 1024];
    struct sw_stream **stream = arg;

    memset(bytes, 'x', sizeof(bytes));
    while (w.never_stops && *stream && sw_stream_write(*stream, bytes, sizeof(bytes)) == 0) {
    }
}

static void on_pouring(void *arg, const char *bytes, size_t len)
{
    on_heard(arg, bytes, len);
    pour(arg);
}

static void on_accept(void *arg, struct sw_stream *stream)
{
    static const struct sw_stream_events events = {on_pouring, on_gone, pour};

    (void)arg;
    assert_true(w.stream_count < SW_ARRAY_SIZE(w.streams));
    w.streams[w.stream_count] = stream;
    sw_stream_start(stream, &events, &w.streams[w.stream_count++]);
}

/* Its port. */
static unsigned listen_and_say(const char *says, size_t len, bool ends)
{
    struct sw_error error = {0};

    w.says = says;
    w.says_len = len;
    w.ends = ends;
    if (!w.listener &&
        sw_tcp_listen(w.loop, "127.0.0.1:0", (size_t)1 << 20, on_accept, NULL, &w.listener, &error))
        fail_msg("%s", error.text);
    return sw_tcp_listener_port(w.listener);
}

/* ---- fetching ---- */

static void on_answer(struct sw_instance *self, void *arg, const struct sw_fetch_answer *answer)
{
    struct fetched *f = arg;

    assert_ptr_equal(self, w.made_up.self);
    assert_false(f->is_done);
    f->is_done = true;
    f->status = answer->status;
    snprintf(f->why, sizeof(f->why), "%s", answer->why);
    snprintf(f->body, sizeof(f->body), "%s", answer->body);
    f->body_len = answer->body_len;
    if (++w.done_count == w.wanted)
        sw_loop_stop(w.loop);
}

static struct fetched *send(const struct sw_fetch *fetch)
{
    struct fetched *f = &w.fetches[w.fetch_count++];

    assert_true(w.fetch_count <= FETCHES_MAX);
    assert_int_equal(sw_fetch(w.made_up.self, fetch, on_answer, f, &f->fetching), 0);
    assert_false(f->is_done);
    return f;
}

static void run_until_done(unsigned count)
{
    w.wanted = count;
    if (w.done_count < count)
        sw_loop_run(w.loop);
    assert_int_equal(w.done_count, count);
}

static struct fetched *fetch(const struct sw_fetch *fetch)
{
    struct fetched *f = send(fetch);

    run_until_done(w.done_count + 1);
    assert_true(f->is_done);
    return f;
}

static const char *url(const char *scheme_and_host, unsigned port, const char *path)
{
    static char texts[8][256];
    static unsigned at;
    char *text = texts[at++ % 8];

    snprintf(text, sizeof(texts[0]), "%s:%u%s", scheme_and_host, port, path);
    return text;
}

static struct fetched *get(const char *url)
{
    return fetch(&(struct sw_fetch){.method = "GET", .url = url, .timeout_ms = GUARD_MS});
}

static const char *plain_url(const char *path)
{
    return url("http://127.0.0.1", sw_http_server_port(w.server), path);
}

static const char *tls_url(const char *path)
{
    return url("https://localhost", sw_http_server_port(w.tls_server), path);
}

/* ---- begin and end ---- */

static void too_long(struct sw_timer *timer)
{
    (void)timer;
    fail_msg("waited in vain; %u of %u fetches are done", w.done_count, w.wanted);
}

/* For localhost, and those who sign it. */
static void make_certificates(void)
{
    static const char *const names[] = {"localhost", NULL};
    int64_t now = sw_wall_us(w.loop), hour = INT64_C(3600) * 1000000;
    struct sw_tls_issue_options options = {
        .common_name = "those who sign", .not_before_us = now - hour, .not_after_us = now + hour};
    struct sw_error error = {0};

    if (sw_tls_issue(&options, &w.authority, &error))
        fail_msg("%s", error.text);
    options.common_name = "server";
    options.dns_names = names;
    options.issuer = &w.authority;
    if (sw_tls_issue(&options, &w.pair, &error))
        fail_msg("%s", error.text);
    struct sw_tls_server_options server = {.certificate_pem = w.pair.certificate_pem,
                                           .key_pem = w.pair.key_pem};
    assert_int_equal(sw_tls_server_config_new(&server, &w.tls, &error), 0);
}

static void trust(const char *pem)
{
    SW_AUTO(char, sw_free) path = sw_asprintf("%s/trusted.pem", w.folder);

    if (pem)
        test_write_file(path, pem, strlen(pem));
    else
        unlink(path);
    setenv("SSL_CERT_FILE", path, 1);
}

static void begin(void)
{
    static const struct sw_core_options options = {.username = "me"};
    struct sw_error error = {0};

    memset(&w, 0, sizeof(w));
    unsetenv("HTTP_PROXY");
    unsetenv("HTTPS_PROXY");
    assert_int_equal(sw_loop_open(&w.loop), 0);
    w.folder = test_folder_new();
    w.metrics = sw_metrics_new();
    w.transport = fake_transport_new(w.loop);
    w.core = sw_core_new(w.loop, &w.transport->base, &options, w.metrics, &w.log);
    assert_int_equal(sw_core_add(w.core, &module_one, &w.made_up, &error), 0);
    sw_core_open(w.core);
    sw_timer_init(&w.guard, w.loop, too_long);
    sw_timer_start(&w.guard, GUARD_MS);
    make_certificates();
    trust(NULL);
    w.server = open_server(NULL);
    w.tls_server = open_server(w.tls);
}

static void end(void)
{
    w.core = sw_core_free(w.core);
    sw_timer_stop(&w.guard);
    sw_http_server_close(w.server, NULL, NULL);
    sw_http_server_close(w.tls_server, NULL, NULL);
    sw_tls_config_unref(w.tls);
    w.never_stops = false;
    for (unsigned i = 0; i < w.stream_count; i++)
        sw_stream_close(w.streams[i]);
    sw_tcp_listener_close(w.listener);
    sw_loop_run(w.loop);
    fake_transport_free(w.transport);
    sw_metrics_free(w.metrics);
    sw_tls_pair_done(&w.authority);
    sw_tls_pair_done(&w.pair);
    test_folder_done(w.folder);
    unsetenv("SSL_CERT_FILE");
    assert_int_equal(sw_loop_close(w.loop), 0);
}

/* ---- ordinary ---- */

TEST(asks_a_server)
{
    struct fetched *f;

    begin();
    f = get(plain_url("/api/v1/query?query=up%7B%7D"));
    assert_int_equal(f->status, 200);
    assert_string_equal(f->body, "here\n");
    assert_string_equal(w.seen, "GET /api/v1/query ?query=up%7B%7D agent=slipway/" SW_VERSION
                                " authorization= body=");
    f = fetch(
        &(struct sw_fetch){.method = "POST",
                           .url = url("http://ann:pw@127.0.0.1", sw_http_server_port(w.server), ""),
                           .body = "{\"a\":1}",
                           .body_len = 7});
    assert_int_equal(f->status, 200);
    assert_string_equal(w.seen, "POST / ? agent=slipway/" SW_VERSION
                                " authorization=Basic YW5uOnB3 body={\"a\":1}");
    assert_int_equal(get(plain_url("/broken"))->status, 500);
    end();
}

TEST(keeps_a_connection_between_requests)
{
    begin();
    for (int i = 0; i < 10; i++)
        assert_int_equal(get(plain_url("/"))->status, 200);
    assert_int_equal(sw_http_server_connections(w.server), 1);
    end();
}

TEST(a_post_without_a_body_says_so)
{
    begin();
    unsigned port = listen_and_say("HTTP/1.1 204 No Content\r\n\r\n", 27, false);
    struct fetched *f =
        fetch(&(struct sw_fetch){.method = "POST", .url = url("http://127.0.0.1", port, "/")});

    assert_int_equal(f->status, 204);
    assert_int_equal(f->body_len, 0);
    assert_non_null(strstr(w.heard, "Content-Length: 0\r\n"));
    end();
}

/* ---- TLS ---- */

TEST(trusts_whom_it_is_told_to)
{
    begin();
    struct sw_fetch ask = {.method = "GET", .url = tls_url("/"), .timeout_ms = GUARD_MS};
    ask.ca_pem = w.authority.certificate_pem;
    assert_int_equal(fetch(&ask)->status, 200);
    ask.url = url("https://127.0.0.1", sw_http_server_port(w.tls_server), "/");
    struct fetched *f = fetch(&ask);
    assert_int_equal(f->status, 0);
    assert_non_null(strstr(f->why, "not for 127.0.0.1"));
    ask.ca_pem = "no certificate";
    f = fetch(&ask);
    assert_int_equal(f->status, 0);
    assert_non_null(strstr(f->why, "CA is not PEM"));
    end();
}

TEST(verifies_unless_it_is_told_not_to)
{
    struct sw_tls_pair stranger = {0};
    struct sw_tls_issue_options options = {.common_name = "stranger"};

    begin();
    options.not_after_us = sw_wall_us(w.loop) + INT64_C(3600) * 1000000;
    assert_int_equal(sw_tls_issue(&options, &stranger, NULL), 0);
    struct sw_fetch ask = {.method = "GET", .url = tls_url("/"), .timeout_ms = GUARD_MS};
    ask.insecure_skip_verify = true;
    ask.ca_pem = stranger.certificate_pem;
    assert_int_equal(fetch(&ask)->status, 200);
    /* What was not verified is not used by whoever wants to. */
    ask.insecure_skip_verify = false;
    struct fetched *f = fetch(&ask);
    assert_int_equal(f->status, 0);
    assert_non_null(strstr(f->why, "is not among the CAs"));
    sw_tls_pair_done(&stranger);
    end();
}

TEST(reads_the_systems_authorities_once_and_when_needed)
{
    begin();
    /* They are not there, and nobody asks for them. */
    assert_int_equal(get(plain_url("/"))->status, 200);
    struct fetched *f = get(tls_url("/"));
    assert_int_equal(f->status, 0);
    assert_non_null(strstr(f->why, "those of the system cannot be read"));
    assert_non_null(strstr(f->why, "trusted.pem"));
    trust(w.authority.certificate_pem);
    assert_int_equal(get(tls_url("/"))->status, 200);
    /* Another place is asked with what is known. */
    trust(NULL);
    struct sw_http_server *other = open_server(w.tls);
    assert_int_equal(get(url("https://localhost", sw_http_server_port(other), "/"))->status, 200);
    sw_http_server_close(other, NULL, NULL);
    end();
}

TEST(the_wrong_scheme_is_no_answer)
{
    begin();
    trust(w.authority.certificate_pem);
    struct fetched *f = get(url("https://localhost", sw_http_server_port(w.server), "/"));
    assert_int_equal(f->status, 0);
    assert_true(f->why[0]);
    f = get(url("http://localhost", sw_http_server_port(w.tls_server), "/"));
    assert_int_equal(f->status, 0);
    assert_true(f->why[0]);
    end();
}

/* ---- redirects ---- */

TEST(follows_to_another_server)
{
    begin();
    trust(w.authority.certificate_pem);
    snprintf(w.redirect, sizeof(w.redirect), "%s", tls_url("/there?a=b"));
    struct fetched *f =
        get(url("http://ann:pw@127.0.0.1", sw_http_server_port(w.server), "/redirect"));
    assert_int_equal(f->status, 200);
    assert_string_equal(w.seen,
                        "GET /there ?a=b agent=slipway/" SW_VERSION " authorization= body=");
    snprintf(w.redirect, sizeof(w.redirect), "%s", plain_url("/"));
    f = get(tls_url("/redirect"));
    assert_string_equal(f->why, "redirected from https to http: not followed");
    snprintf(w.redirect, sizeof(w.redirect), "/redirect");
    w.requests = 0;
    f = get(plain_url("/redirect"));
    assert_string_equal(f->why, "redirected more than 5 times");
    assert_int_equal(w.requests, 6);
    end();
}

/* ---- servers that do not behave ---- */

TEST(ten_mebibytes_are_too_many)
{
    struct sw_fetch large = {.method = "GET", .timeout_ms = GUARD_MS, .body_limit_bytes = BIG};

    begin();
    struct fetched *f = get(plain_url("/big"));
    assert_int_equal(f->status, 0);
    assert_string_equal(f->why, "answer longer than 1048576 bytes");
    assert_int_equal(f->body_len, 0);
    large.url = plain_url("/big");
    f = fetch(&large);
    assert_int_equal(f->status, 200);
    assert_int_equal(f->body_len, BIG);
    large.body_limit_bytes--;
    assert_int_equal(fetch(&large)->status, 0);
    end();
}

TEST(an_answer_without_an_end_is_cut_off)
{
    static const char head[] = "HTTP/1.1 200 OK\r\n\r\n";

    begin();
    unsigned port = listen_and_say(head, sizeof(head) - 1, false);
    w.never_stops = true;
    struct fetched *f = get(url("http://127.0.0.1", port, "/"));
    assert_string_equal(f->why, "answer longer than 1048576 bytes");
    end();
}

TEST(garbage_is_no_answer)
{
    static const struct {
        const char *bytes;
        size_t len;
    } rows[] = {
        {"\0\xff\x80 garbage\r\n\r\n", 15},
        {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", 39},
        {"HTTP/1.1 2000 OK\r\n\r\n", 20},
        {"SSH-2.0-OpenSSH_9.2\r\n", 21},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 51},
        {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", 41},
        {"HTTP/1.1 200 OK\r\nA", 18},
        {"", 0},
    };

    begin();
    for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
        unsigned port = listen_and_say(rows[i].bytes, rows[i].len, true);
        struct fetched *f = get(url("http://127.0.0.1", port, "/"));
        assert_int_equal(f->status, 0);
        assert_true(f->why[0]);
        assert_int_equal(f->body_len, 0);
    }
    end();
}

TEST(nobody_there_is_said_so)
{
    begin();
    unsigned port = listen_and_say("", 0, false);
    sw_tcp_listener_close(w.listener);
    w.listener = NULL;
    struct fetched *f = get(url("http://127.0.0.1", port, "/"));
    assert_int_equal(f->status, 0);
    assert_non_null(strstr(f->why, "refused"));
    end();
}

TEST(a_server_that_hangs_ends_at_the_deadline)
{
    begin();
    unsigned port = listen_and_say("", 0, false);
    struct sw_fetch ask = {.method = "GET", .timeout_ms = 100};
    ask.url = url("http://127.0.0.1", port, "/");
    struct fetched *f = fetch(&ask);
    assert_int_equal(f->status, 0);
    assert_string_equal(f->why, "no answer within 100 ms");
    listen_and_say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", 41, false);
    assert_string_equal(fetch(&ask)->why, "answer not complete within 100 ms");
    /* TLS to a server that never says hello. */
    listen_and_say("", 0, false);
    ask.url = url("https://127.0.0.1", port, "/");
    ask.insecure_skip_verify = true;
    assert_string_equal(fetch(&ask)->why, "no connection within 100 ms");
    end();
}

/* The hanging ones would end after a minute, and the test fails before: whatever is answered here
 * has not waited for them. */
TEST(one_origin_that_hangs_delays_no_other)
{
    enum { EACH = 50 };

    begin();
    unsigned port = listen_and_say("", 0, false);
    struct fetched *hanging[EACH];
    for (int i = 0; i < EACH; i++) {
        hanging[i] = send(&(struct sw_fetch){.method = "GET",
                                             .url = url("http://127.0.0.1", port, "/"),
                                             .timeout_ms = 10 * GUARD_MS});
        send(&(struct sw_fetch){.method = "GET", .url = plain_url("/"), .timeout_ms = GUARD_MS});
    }
    run_until_done(EACH);
    assert_int_equal(w.requests, EACH);
    assert_true(sw_http_server_connections(w.server) <= SW_FETCH_AT_ONCE);
    for (int i = 0; i < EACH; i++)
        assert_false(hanging[i]->is_done);
    /* Of the one that hangs some have a connection, the rest waits within its deadline. */
    struct fetched *late = fetch(&(struct sw_fetch){
        .method = "GET", .url = url("http://127.0.0.1", port, "/"), .timeout_ms = 50});
    assert_string_equal(late->why, "no connection within 50 ms");
    assert_int_equal(w.stream_count, SW_FETCH_AT_ONCE);
    sw_fetch_cancel(hanging[0]->fetching);
    for (int i = 1; i < EACH; i++)
        if (i % 2)
            sw_fetch_cancel(hanging[i]->fetching);
    end(); /* stops the module: the rest */
    for (int i = 0; i < EACH; i++)
        assert_false(hanging[i]->is_done);
}

/* ---- proxies ---- */

TEST(goes_through_the_proxy_of_the_environment)
{
    static const char says[] = "HTTP/1.1 200 OK\r\n\r\n";

    begin();
    unsigned port = listen_and_say(says, sizeof(says) - 1, false);
    SW_AUTO(char, sw_free) proxy = sw_asprintf("http://127.0.0.1:%u", port);
    setenv("HTTP_PROXY", proxy, 1);
    /* The proxy says yes to everything, and then nothing more: enough to see what it was asked. */
    struct fetched *f = fetch(&(struct sw_fetch){
        .method = "GET", .url = "http://prometheus.test:9090/x", .timeout_ms = 200});
    assert_int_equal(f->status, 0);
    assert_non_null(strstr(w.heard, "CONNECT prometheus.test:9090 HTTP/1.1\r\n"));
    setenv("HTTP_PROXY", "ftp://x", 1);
    f = get("http://other.test/");
    assert_non_null(strstr(f->why, "HTTP_PROXY in the environment"));
    assert_int_equal(get(plain_url("/"))->status, 200); /* what is near is reached directly */
    unsetenv("HTTP_PROXY");
    end();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("fetch over sockets", asks_a_server),
        CASE("fetch over sockets", keeps_a_connection_between_requests),
        CASE("fetch over sockets", a_post_without_a_body_says_so),
        CASE("fetch over sockets", trusts_whom_it_is_told_to),
        CASE("fetch over sockets", verifies_unless_it_is_told_not_to),
        CASE("fetch over sockets", reads_the_systems_authorities_once_and_when_needed),
        CASE("fetch over sockets", the_wrong_scheme_is_no_answer),
        CASE("fetch over sockets", follows_to_another_server),
        CASE("fetch over sockets", ten_mebibytes_are_too_many),
        CASE("fetch over sockets", an_answer_without_an_end_is_cut_off),
        CASE("fetch over sockets", garbage_is_no_answer),
        CASE("fetch over sockets", nobody_there_is_said_so),
        CASE("fetch over sockets", a_server_that_hangs_ends_at_the_deadline),
        CASE("fetch over sockets", one_origin_that_hangs_delays_no_other),
        CASE("fetch over sockets", goes_through_the_proxy_of_the_environment),
    };
    return RUN(tests);
}
