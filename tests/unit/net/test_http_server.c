/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP server with scripted clients: each connection is a pipe in memory whose other end the
 * test holds, on virtual time. (With real clients: test_http_foreign.c.)
 */
#include "net/http_server.h"

#include <errno.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/util.h"
#include "net/stream.h"
#include "test.h"

#include <slipway/arena.h>

enum { CLIENTS_MAX = 1100, KEPT_MAX = 8 };

struct client {
    struct sw_stream *stream;
    struct sw_buf in;
    bool has_ended;
    int end_code;
};

static struct {
    struct sw_loop *loop;
    struct sw_http_server *server;
    struct client clients[CLIENTS_MAX];
    int client_count;
    size_t max_piece;
    size_t limit_bytes;
    int closed;

    /* the handler */
    void (*handle)(struct sw_http_incoming *request);
    struct sw_http_incoming *kept[KEPT_MAX];
    int kept_count;
    int requests;
    int drains;
    int gones;
} w;

static const struct sw_log no_log;

/* ---- handlers ---- */

/* "POST /path query [body]" */
static void echo(struct sw_http_incoming *r)
{
    assert_int_equal(r->body[r->body_len], '\0');
    assert_string_equal(r->peer, "pipe");
    sw_http_answer_text(
        r, 200, sw_arena_printf(r->arena, "%s %s %s [%s]", r->method, r->path, r->query, r->body));
}

static void keep(struct sw_http_incoming *r)
{
    assert_in_range(w.kept_count, 0, KEPT_MAX - 1);
    w.kept[w.kept_count++] = r;
}

enum { LARGE = 1000000 };
static char large_body[LARGE + 1];

static void answer_large(struct sw_http_incoming *r)
{
    memset(large_body, 'x', LARGE);
    sw_http_answer(r,
                   &(struct sw_http_answer){.status = 200, .body = large_body, .body_len = LARGE});
}

static void on_request(void *arg, struct sw_http_incoming *r)
{
    (void)arg;
    w.requests++;
    w.handle(r);
}

/* ---- clients ---- */

static void client_read(void *arg, const char *bytes, size_t len)
{
    struct client *client = arg;
    sw_buf_append(&client->in, bytes, len);
}

static void client_end(void *arg, int code)
{
    struct client *client = arg;
    client->has_ended = true;
    client->end_code = code;
}

static const struct sw_stream_events client_events = {client_read, client_end, NULL};

static void turn(void)
{
    sw_loop_virtual_advance(w.loop, 0);
}

static int connect_client(void)
{
    struct sw_stream *theirs;
    assert_in_range(w.client_count, 0, CLIENTS_MAX - 1);
    struct client *client = &w.clients[w.client_count];
    *client = (struct client){0};
    sw_buf_init(&client->in, SIZE_MAX);
    sw_pipe_open(w.loop, w.limit_bytes ? w.limit_bytes : 4000000, w.max_piece, &theirs,
                 &client->stream);
    sw_stream_start(client->stream, &client_events, client);
    sw_http_server_serve(w.server, theirs);
    turn();
    return w.client_count++;
}

static void say(int client, const char *text)
{
    assert_int_equal(sw_stream_write(w.clients[client].stream, text, strlen(text)), 0);
    turn();
}

/* What the client has read since the last call. */
static void assert_heard(int client, const char *text)
{
    turn();
    assert_string_equal(w.clients[client].in.bytes, text);
    sw_buf_clear(&w.clients[client].in);
}

/* The same, but only of the status, and that nothing follows the one answer. */
static void assert_status(int client, int status)
{
    char want[32];
    turn();
    const char *got = w.clients[client].in.bytes;
    snprintf(want, sizeof(want), "HTTP/1.1 %d ", status);
    if (strncmp(got, want, strlen(want)) != 0) {
        fail_msg("got <<%s>>, want status %d", got, status);
    }
    assert_null(strstr(got + 1, "HTTP/1.1"));
    sw_buf_clear(&w.clients[client].in);
}

static void assert_ended(int client, int code)
{
    turn();
    assert_true(w.clients[client].has_ended);
    assert_int_equal(w.clients[client].end_code, code);
}

static void hang_up(int client)
{
    sw_stream_close(sw_steal(&w.clients[client].stream));
    turn();
}

static void open_server(const struct sw_http_server_options *options)
{
    static const struct sw_http_server_options none;
    struct sw_error error;
    w.client_count = w.kept_count = w.requests = w.drains = w.gones = w.closed = 0;
    w.handle = echo;
    w.loop = sw_loop_virtual_new(0, 1);
    assert_int_equal(sw_http_server_open(w.loop, options ? options : &none, on_request, NULL,
                                         &no_log, &w.server, &error),
                     0);
}

static void on_closed(void *arg)
{
    (void)arg;
    w.closed++;
}

static void close_all(void)
{
    if (w.server) {
        sw_http_server_close(sw_steal(&w.server), on_closed, NULL);
        assert_int_equal(w.closed, 0);
    }
    turn();
    assert_int_equal(w.closed, 1);
    for (int i = 0; i < w.client_count; i++) {
        sw_stream_close(w.clients[i].stream);
        sw_buf_done(&w.clients[i].in);
    }
    turn();
    assert_int_equal(sw_loop_close(w.loop), 0);
    w.max_piece = w.limit_bytes = 0;
}

#define GET(target) "GET " target " HTTP/1.1\r\nHost: a\r\n\r\n"
#define TEXT_OK(len, text)                                                                \
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: " #len \
    "\r\n\r\n" text "\n"
#define TEXT_OK_CLOSE(len, text)                                                          \
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: " #len \
    "\r\nConnection: close\r\n\r\n" text "\n"

/* ---- requests ---- */

TEST(answers_requests_one_after_the_other)
{
    open_server(NULL);
    int c = connect_client();
    say(c, GET("/x"));
    assert_heard(c, TEXT_OK(11, "GET /x  []"));
    say(c, "POST /y?a=b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
    assert_heard(c, TEXT_OK(18, "POST /y a=b [abc]"));
    say(c, "PUT /z HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n"
           "0\r\n\r\n");
    assert_heard(c, TEXT_OK(14, "PUT /z  [abc]"));
    assert_false(w.clients[c].has_ended);
    assert_int_equal(sw_http_server_connections(w.server), 1);
    close_all();
    assert_true(w.clients[c].has_ended);
}

TEST(takes_requests_in_any_pieces)
{
    w.max_piece = 1;
    open_server(NULL);
    int c = connect_client();
    say(c, "POST /y HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc" GET("/2"));
    assert_heard(c, TEXT_OK(15, "POST /y  [abc]") TEXT_OK(11, "GET /2  []"));
    close_all();
}

TEST(pipelined_requests_are_answered_in_order)
{
    open_server(NULL);
    w.handle = keep;
    int c = connect_client();
    say(c, GET("/1") GET("/2") GET("/3"));
    assert_int_equal(w.requests, 1); /* one at a time */
    say(c, GET("/4"));
    for (int i = 0; i < 4; i++) {
        assert_int_equal(w.requests, i + 1);
        assert_heard(c, "");
        char path[4];
        snprintf(path, sizeof(path), "/%d", i + 1);
        assert_string_equal(w.kept[i]->path, path);
        sw_http_answer_text(w.kept[i], 200, path);
        assert_int_equal(w.requests, i + 1); /* not from within the call */
        turn();
        char want[200];
        snprintf(want, sizeof(want), TEXT_OK(3, "%s"), path);
        assert_heard(c, want);
    }
    say(c, GET("/5"));
    assert_int_equal(w.requests, 5);
    sw_http_answer_text(w.kept[4], 200, "5");
    close_all();
}

TEST(targets_are_taken_apart)
{
    static const struct {
        const char *target, *want;
    } cases[] = {
        {"/a%20b%2Fc?d%20e?f", "GET /a b/c d%20e?f []"},
        {"/?", "GET /  []"},
        {"http://host:1/p?q", "GET /p q []"},
        {"http://host?q", "GET / q []"},
        {"https://host", "GET /  []"},
        {"*", "GET *  []"},
    };
    static const char *const bad[] = {"/a%2", "/a%zz", "/a%00", "/a#b"};
    open_server(NULL);
    for (size_t i = 0; i < SW_ARRAY_SIZE(cases); i++) {
        char text[200];
        int c = connect_client();
        snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", cases[i].target);
        say(c, text);
        const char *body = strstr(w.clients[c].in.bytes, "\r\n\r\n");
        assert_non_null(body);
        assert_memory_equal(body + 4, cases[i].want, strlen(cases[i].want));
    }
    for (size_t i = 0; i < SW_ARRAY_SIZE(bad); i++) {
        char text[200];
        int c = connect_client();
        snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", bad[i]);
        say(c, text);
        assert_status(c, 400);
        assert_ended(c, 0);
    }
    close_all();
}

static void answer_with_fields(struct sw_http_incoming *r)
{
    static const struct sw_http_field fields[] = {{"Allow", "POST"}, {"X", "y"}};
    assert_string_equal(sw_http_field_get(&r->fields, "host"), "a");
    sw_http_answer(r, &(struct sw_http_answer){.status = 405, .fields = fields, .field_count = 2});
}

static void answer_204(struct sw_http_incoming *r)
{
    sw_http_answer(r, &(struct sw_http_answer){.status = 204, .body = "x", .body_len = 1});
}

TEST(answers_have_the_frame_that_belongs_to_them)
{
    open_server(NULL);
    int c = connect_client();
    say(c, "HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_heard(c, "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
                    "Content-Length: 12\r\n\r\n");
    w.handle = answer_with_fields;
    say(c, GET("/"));
    assert_heard(c, "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\nAllow: POST\r\n"
                    "X: y\r\n\r\n");
    w.handle = answer_204;
    say(c, GET("/"));
    assert_heard(c, "HTTP/1.1 204 No Content\r\n\r\n");
    close_all();
}

TEST(the_connection_ends_where_one_side_says_so)
{
    open_server(NULL);
    int c = connect_client();
    say(c, "GET / HTTP/1.0\r\n\r\n");
    assert_heard(c, TEXT_OK_CLOSE(10, "GET /  []"));
    assert_ended(c, 0);
    c = connect_client();
    say(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" GET("/never"));
    assert_heard(c, TEXT_OK_CLOSE(10, "GET /  []"));
    assert_ended(c, 0);
    assert_int_equal(w.requests, 2);
    close_all();
}

TEST(a_client_that_has_ended_its_side_gets_its_answer)
{
    open_server(NULL);
    w.handle = keep;
    int c = connect_client();
    say(c, GET("/1") GET("/2"));
    sw_stream_finish(w.clients[c].stream);
    turn();
    sw_http_answer_text(w.kept[0], 200, "1");
    turn();
    sw_http_answer_text(w.kept[1], 200, "2");
    assert_heard(c, TEXT_OK(2, "1") TEXT_OK(2, "2"));
    assert_ended(c, 0);
    assert_int_equal(sw_http_server_connections(w.server), 0);
    close_all();
}

TEST(all_requests_before_the_end_are_answered)
{
    open_server(NULL);
    w.handle = keep;
    int c = connect_client();
    say(c, GET("/1") GET("/2") GET("/3") "GET / HT");
    sw_stream_finish(w.clients[c].stream);
    turn();
    w.handle = echo;
    sw_http_answer_text(w.kept[0], 200, "x");
    assert_heard(c, TEXT_OK(2, "x") TEXT_OK(11, "GET /2  []") TEXT_OK(11, "GET /3  []"));
    assert_ended(c, 0); /* the last one cannot become whole */
    assert_int_equal(sw_http_server_connections(w.server), 0);
    close_all();
}

TEST(go_ahead_is_said_where_it_is_waited_for)
{
    open_server(NULL);
    int c = connect_client();
    say(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
    assert_heard(c, "HTTP/1.1 100 Continue\r\n\r\n");
    say(c, "a");
    assert_heard(c, "");
    say(c, "bc");
    assert_heard(c, TEXT_OK(14, "POST /  [abc]"));
    say(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc");
    assert_heard(c, TEXT_OK(14, "POST /  [abc]"));
    say(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nExpect: 100-continue\r\n\r\n");
    assert_heard(c, TEXT_OK(11, "POST /  []"));
    /* Not for a body that will not be taken. */
    say(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\nExpect: 100-continue\r\n"
           "\r\n");
    assert_status(c, 413);
    close_all();
}

/* ---- refusals ---- */

TEST(bad_requests_are_refused_with_the_right_status)
{
    static const struct {
        int status;
        const char *text;
    } cases[] = {
        {400, "nonsense\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n\r\n"},
        {400, "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n"
              "\r\n"},
        {413, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n"},
        {413, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n"},
        {501, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"},
        {505, "GET / HTTP/2.0\r\nHost: a\r\n\r\n"},
        {505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
    };
    static char thousand[1002];
    memset(thousand, 'x', 1001);
    open_server(&(struct sw_http_server_options){.body_limit_bytes = 1000});
    for (size_t i = 0; i < SW_ARRAY_SIZE(cases); i++) {
        int c = connect_client();
        say(c, cases[i].text);
        if (i == 5) {
            say(c, thousand);
        }
        assert_non_null(strstr(w.clients[c].in.bytes, "\r\nConnection: close\r\n"));
        assert_status(c, cases[i].status);
        assert_ended(c, 0);
        say(c, "and more of it");
        assert_heard(c, "");
    }
    assert_int_equal(w.requests, 0);
    close_all();
}

TEST(heads_that_are_too_large_are_refused)
{
    static char large[70000];
    open_server(NULL);
    memset(large, 'x', sizeof(large) - 1);
    int c = connect_client();
    say(c, "GET /");
    say(c, large);
    assert_status(c, 414);
    c = connect_client();
    say(c, "GET / HTTP/1.1\r\nHost: a\r\nX: ");
    say(c, large);
    assert_status(c, 431);
    close_all();
}

/* The client is still sending: it is read until it has seen the answer, for a while. */
TEST(a_refused_client_may_finish_sending)
{
    open_server(&(struct sw_http_server_options){.body_limit_bytes = 10});
    int a = connect_client(), b = connect_client();
    say(a, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n0123");
    say(b, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n0123");
    assert_status(a, 413);
    assert_status(b, 413);
    say(a, "456789x");
    assert_int_equal(sw_http_server_connections(w.server), 2);
    hang_up(a);
    assert_int_equal(sw_http_server_connections(w.server), 1);
    sw_loop_virtual_advance(w.loop, 5000);
    assert_int_equal(sw_http_server_connections(w.server), 0);
    close_all();
}

/* ---- time ---- */

TEST(slow_clients_are_turned_away)
{
    open_server(NULL);
    static const char *const drops[] = {"G", "E", "T", " ", "/", " ", "H", "T", "T"};
    int head = connect_client(), body = connect_client();
    sw_loop_virtual_advance(w.loop, 60000); /* quiet is no fault */
    for (size_t i = 0; i < SW_ARRAY_SIZE(drops); i++) {
        say(head, drops[i]);
        sw_loop_virtual_advance(w.loop, 1000);
    }
    assert_heard(head, "");
    sw_loop_virtual_advance(w.loop, 1000);
    assert_status(head, 408);
    assert_ended(head, 0);

    say(body, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n");
    for (int i = 0; i < 29; i++) {
        say(body, "x");
        sw_loop_virtual_advance(w.loop, 1000);
    }
    assert_heard(body, "");
    sw_loop_virtual_advance(w.loop, 1000);
    assert_status(body, 408);
    assert_ended(body, 0);
    close_all();
}

TEST(idle_connections_are_closed_after_two_minutes)
{
    open_server(NULL);
    int a = connect_client(), b = connect_client();
    sw_loop_virtual_advance(w.loop, 100000);
    say(b, GET("/"));
    assert_status(b, 200);
    sw_loop_virtual_advance(w.loop, 19999);
    assert_false(w.clients[a].has_ended);
    sw_loop_virtual_advance(w.loop, 1);
    assert_ended(a, 0);
    assert_heard(a, "");
    sw_loop_virtual_advance(w.loop, 99999);
    assert_false(w.clients[b].has_ended);
    sw_loop_virtual_advance(w.loop, 1);
    assert_ended(b, 0);
    close_all();
}

TEST(a_handler_may_take_its_time)
{
    open_server(NULL);
    w.handle = keep;
    int c = connect_client();
    say(c, GET("/"));
    sw_loop_virtual_advance(w.loop, 1000000);
    sw_http_answer_text(w.kept[0], 200, "x");
    assert_heard(c, TEXT_OK(2, "x"));
    sw_loop_virtual_advance(w.loop, 119999);
    assert_false(w.clients[c].has_ended);
    close_all();
}

/* ---- going away ---- */

TEST(an_answer_to_a_client_that_has_gone_is_dropped)
{
    open_server(NULL);
    w.handle = keep;
    int a = connect_client(), b = connect_client();
    say(a, GET("/a"));
    say(b, GET("/b"));
    hang_up(a);
    sw_stream_reset(sw_steal(&w.clients[b].stream));
    turn();
    assert_string_equal(w.kept[0]->path, "/a"); /* still there to be read */
    assert_string_equal(w.kept[1]->path, "/b");
    sw_http_answer_text(w.kept[0], 200, "x");
    sw_http_answer_text(w.kept[1], 200, "x");
    turn();
    assert_int_equal(sw_http_server_connections(w.server), 0);
    close_all();
}

TEST(closing_waits_for_the_answers_into_the_void)
{
    open_server(NULL);
    w.handle = keep;
    int c = connect_client();
    say(c, GET("/a"));
    sw_http_server_close(sw_steal(&w.server), on_closed, NULL);
    turn();
    assert_ended(c, 0);
    assert_int_equal(w.closed, 0);
    sw_http_answer_text(w.kept[0], 200, "x");
    assert_int_equal(w.closed, 0); /* not from within the call */
    turn();
    assert_int_equal(w.closed, 1);
    assert_heard(c, "");
    close_all();
}

static void close_then_answer(struct sw_http_incoming *r)
{
    sw_http_server_close(sw_steal(&w.server), on_closed, NULL);
    sw_http_answer_text(r, 200, "x");
}

static void answer_then_close(struct sw_http_incoming *r)
{
    sw_http_answer_text(r, 200, "x");
    sw_http_server_close(sw_steal(&w.server), on_closed, NULL);
}

static void close_and_keep(struct sw_http_incoming *r)
{
    sw_http_server_close(sw_steal(&w.server), on_closed, NULL);
    keep(r);
}

TEST(a_handler_may_close_the_server)
{
    static void (*const handlers[])(struct sw_http_incoming *) = {
        close_then_answer, answer_then_close, close_and_keep};
    for (int i = 0; i < 3; i++) {
        open_server(NULL);
        w.handle = handlers[i];
        int c = connect_client();
        connect_client();
        say(c, GET("/1") GET("/2"));
        assert_int_equal(w.requests, 1);
        if (w.kept_count > 0) {
            sw_http_answer_text(w.kept[0], 200, "x");
        }
        /* What was answered before the close is sent. */
        assert_heard(c, i == 1 ? TEXT_OK(2, "x") : "");
        close_all();
    }
}

TEST(draining_ends_connections_without_hitting_a_request)
{
    open_server(NULL);
    int quiet = connect_client(), fresh = connect_client(), busy = connect_client();
    sw_loop_virtual_advance(w.loop, 5000);
    say(fresh, GET("/"));
    assert_status(fresh, 200);
    w.handle = keep;
    say(busy, GET("/busy"));
    sw_http_server_drain(w.server);
    assert_ended(quiet, 0);
    /* It has just been used: the next request may be on its way. */
    assert_false(w.clients[fresh].has_ended);
    sw_loop_virtual_advance(w.loop, 500);
    w.handle = echo;
    say(fresh, GET("/"));
    assert_heard(fresh, TEXT_OK_CLOSE(10, "GET /  []"));
    assert_ended(fresh, 0);
    sw_loop_virtual_advance(w.loop, 10000);
    sw_http_answer_text(w.kept[0], 200, "x");
    assert_heard(busy, TEXT_OK_CLOSE(2, "x"));
    assert_ended(busy, 0);
    /* The listener stays: whoever comes now is served, once. */
    int late = connect_client();
    say(late, GET("/"));
    assert_heard(late, TEXT_OK_CLOSE(10, "GET /  []"));
    int silent = connect_client();
    sw_loop_virtual_advance(w.loop, 1000);
    assert_ended(silent, 0);
    close_all();
}

static void count_finished(void *arg)
{
    ++*(int *)arg;
}

TEST(finishing_waits_for_those_in_the_middle_of_something)
{
    w.limit_bytes = 100000;
    open_server(NULL);
    int finished = 0;
    int idle = connect_client(), head = connect_client(), body = connect_client();
    int busy = connect_client(), reader = connect_client();
    sw_loop_virtual_advance(w.loop, 2000);
    say(head, "GET /head HTTP");
    say(body, "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na");
    w.handle = keep;
    say(busy, GET("/busy"));
    w.handle = answer_large;
    sw_stream_set_reading(w.clients[reader].stream, false);
    say(reader, GET("/"));
    w.handle = echo;
    sw_http_server_finish(w.server, 2500, count_finished, &finished);
    assert_ended(idle, 0);
    assert_int_equal(sw_http_server_connections(w.server), 4);
    sw_loop_virtual_advance(w.loop, 100);
    say(head, "/1.1\r\nHost: a\r\n\r\n");
    assert_heard(head, TEXT_OK_CLOSE(14, "GET /head  []"));
    assert_ended(head, 0);
    say(body, "b");
    assert_heard(body, TEXT_OK_CLOSE(17, "POST /body  [ab]"));
    assert_ended(body, 0);
    sw_stream_set_reading(w.clients[reader].stream, true);
    turn();
    assert_true(w.clients[reader].in.len > LARGE);
    assert_false(w.clients[reader].has_ended); /* its answer began when more might follow */
    sw_loop_virtual_advance(w.loop, 1000);
    assert_ended(reader, 0);
    hang_up(reader); /* all that is left to wait for is the client's own end */
    hang_up(head);
    hang_up(body);
    assert_int_equal(sw_http_server_connections(w.server), 1);
    assert_int_equal(finished, 0);
    sw_http_answer_text(w.kept[0], 200, "x");
    assert_heard(busy, TEXT_OK_CLOSE(2, "x"));
    hang_up(busy);
    assert_int_equal(finished, 1);
    sw_loop_virtual_advance(w.loop, 5000);
    assert_int_equal(finished, 1);
    close_all();
}

/* Who came while it was drained has a second to begin, also when it stops listening meanwhile. */
TEST(finishing_after_draining_hits_no_request_on_its_way)
{
    open_server(NULL);
    int finished = 0;
    sw_http_server_drain(w.server);
    int late = connect_client();
    sw_loop_virtual_advance(w.loop, 500);
    sw_http_server_finish(w.server, 2500, count_finished, &finished);
    sw_loop_virtual_advance(w.loop, 499);
    assert_false(w.clients[late].has_ended);
    say(late, GET("/"));
    assert_heard(late, TEXT_OK_CLOSE(10, "GET /  []"));
    assert_ended(late, 0);
    hang_up(late);
    assert_int_equal(finished, 1);
    close_all();
}

TEST(finishing_does_not_wait_for_ever)
{
    open_server(NULL);
    int finished = 0;
    int body = connect_client();
    say(body, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na");
    sw_http_server_finish(w.server, 2500, count_finished, &finished);
    sw_loop_virtual_advance(w.loop, 2499);
    assert_int_equal(finished, 0);
    assert_false(w.clients[body].has_ended);
    sw_loop_virtual_advance(w.loop, 1);
    assert_int_equal(finished, 1);
    close_all();
    assert_int_equal(finished, 1);
}

TEST(finishing_with_nobody_there_is_done_at_once_and_may_be_cut_short)
{
    for (int is_cut = 0; is_cut < 2; is_cut++) {
        open_server(NULL);
        int finished = 0;
        sw_http_server_finish(w.server, 2500, count_finished, &finished);
        assert_int_equal(finished, 0);
        if (!is_cut) {
            turn();
            assert_int_equal(finished, 1);
        }
        close_all();
        assert_int_equal(finished, !is_cut);
    }
}

TEST(the_longest_quiet_connection_makes_room)
{
    open_server(&(struct sw_http_server_options){.max_connections = 3});
    w.handle = keep;
    int busy = connect_client();
    say(busy, GET("/"));
    int a = connect_client(), b = connect_client();
    sw_loop_virtual_advance(w.loop, 200);
    w.handle = echo;
    say(a, GET("/")); /* now b is quiet for longer */
    assert_status(a, 200);
    int c = connect_client();
    assert_ended(b, 0);
    assert_false(w.clients[a].has_ended);
    assert_false(w.clients[busy].has_ended);
    say(c, GET("/"));
    assert_status(c, 200);
    assert_int_equal(sw_http_server_connections(w.server), 3);
    sw_http_answer_text(w.kept[0], 200, "x");
    assert_status(busy, 200);
    close_all();
}

TEST(who_has_sent_nothing_makes_room_before_who_is_idle_but_not_at_once)
{
    open_server(&(struct sw_http_server_options){.max_connections = 3});
    int idle = connect_client(), slow = connect_client(), silent = connect_client();
    say(idle, GET("/"));
    assert_status(idle, 200);
    say(slow, "GET");
    sw_loop_virtual_advance(w.loop, 199);
    int first = connect_client();
    assert_ended(idle, 0); /* the silent one has just come: what it says may be on its way */
    sw_loop_virtual_advance(w.loop, 1);
    say(first, GET("/"));
    assert_status(first, 200);
    int second = connect_client();
    assert_ended(silent, 0);
    assert_false(w.clients[first].has_ended);
    say(slow, " / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_status(slow, 200);
    say(second, GET("/"));
    assert_status(second, 200);
    close_all();
}

TEST(slow_clients_do_not_keep_others_out)
{
    open_server(&(struct sw_http_server_options){.max_connections = 10});
    int body = connect_client();
    say(body, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na");
    for (int i = 0; i < 100; i++) {
        say(connect_client(), "GET / HT");
    }
    int honest = connect_client();
    say(honest, GET("/"));
    assert_status(honest, 200);
    say(body, "bc"); /* has shown its head, and is not to make room */
    assert_status(body, 200);
    assert_int_equal(sw_http_server_connections(w.server), 10);
    close_all();
}

TEST(one_connection_too_many_costs_the_oldest_idle_one)
{
    enum { MOST = 256 };
    open_server(NULL);
    for (int i = 0; i < MOST; i++) {
        connect_client();
    }
    sw_loop_virtual_advance(w.loop, 200);
    say(0, GET("/")); /* now 1 is the oldest */
    assert_status(0, 200);
    assert_int_equal(sw_http_server_connections(w.server), MOST);
    int more = connect_client();
    assert_ended(1, 0);
    assert_false(w.clients[0].has_ended);
    assert_false(w.clients[2].has_ended);
    assert_int_equal(sw_http_server_connections(w.server), MOST);
    say(more, GET("/"));
    assert_status(more, 200);
    close_all();
}

TEST(clients_that_withhold_a_body_do_not_keep_others_out)
{
    open_server(&(struct sw_http_server_options){.max_connections = 3});
    for (int i = 0; i < 3; i++) {
        say(connect_client(), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na");
    }
    int honest = connect_client();
    assert_ended(0, 0); /* had the most time */
    say(honest, GET("/"));
    assert_status(honest, 200);
    say(1, "bc");
    assert_status(1, 200);
    close_all();
}

TEST(bodies_are_bounded_together)
{
    static const char head[] = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n";
    static char most[1000];
    memset(most, 'x', 999);
    open_server(&(struct sw_http_server_options){.bodies_limit_bytes = 3000});
    for (int i = 0; i < 3; i++) {
        say(connect_client(), head);
        say(i, most); /* all but the last byte */
    }
    say(connect_client(), head);
    assert_false(w.clients[0].has_ended);
    say(3, most);
    assert_ended(0, 0);
    assert_false(w.clients[1].has_ended);
    say(1, "x");
    assert_status(1, 200);
    /* What was answered does not count any more. */
    say(connect_client(), head);
    say(4, most);
    assert_false(w.clients[2].has_ended);
    w.handle = keep;
    for (int i = 2; i < 5; i++) {
        say(i, "x");
    }
    assert_int_equal(w.kept_count, 3);
    /* The handler holds all there may be: nobody can go. */
    say(connect_client(), head);
    say(5, most);
    assert_status(5, 503);
    for (int i = 0; i < 3; i++) {
        sw_http_answer_text(w.kept[i], 200, "x");
        assert_status(i + 2, 200);
    }
    w.handle = echo;
    say(connect_client(), head);
    say(6, most);
    say(6, "x");
    assert_status(6, 200);
    close_all();
}

TEST(clients_that_do_not_end_do_not_keep_others_out)
{
    open_server(&(struct sw_http_server_options){.max_connections = 3});
    int idle = connect_client();
    for (int i = 1; i < 3; i++) {
        say(connect_client(), "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        assert_status(i, 200);
    }
    int honest = connect_client();
    assert_false(w.clients[idle].has_ended); /* of the others nothing is expected any more */
    say(honest, GET("/"));
    assert_status(honest, 200);
    say(idle, GET("/"));
    assert_status(idle, 200);
    close_all();
}

TEST(clients_that_do_not_read_do_not_keep_others_out)
{
    w.limit_bytes = 100000;
    open_server(&(struct sw_http_server_options){.max_connections = 2});
    w.handle = answer_large;
    for (int i = 0; i < 2; i++) {
        sw_stream_set_reading(w.clients[connect_client()].stream, false);
        say(i, GET("/"));
    }
    w.handle = echo;
    int honest = connect_client();
    say(honest, GET("/"));
    assert_status(honest, 200);
    sw_stream_set_reading(w.clients[0].stream, true);
    sw_stream_set_reading(w.clients[1].stream, true);
    assert_ended(0, 0);
    assert_false(w.clients[1].has_ended);
    close_all();
}

TEST(a_thousand_connections_are_served)
{
    open_server(&(struct sw_http_server_options){.max_connections = 1000});
    for (int i = 0; i < 1000; i++) {
        connect_client();
    }
    assert_int_equal(sw_http_server_connections(w.server), 1000);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 1000; i++) {
            assert_int_equal(sw_stream_write(w.clients[i].stream, GET("/"), strlen(GET("/"))), 0);
        }
        for (int i = 0; i < 1000; i++) {
            assert_status(i, 200);
        }
    }
    /* A thousand clients that hold a piece of a request do not keep the next one out for ever. */
    for (int i = 0; i < 1000; i++) {
        say(i, "GET");
    }
    sw_loop_virtual_advance(w.loop, 10000);
    for (int i = 0; i < 1000; i++) {
        assert_status(i, 408);
    }
    close_all();
}

/* ---- large answers, and such in pieces ---- */

TEST(a_large_answer_follows_its_reader)
{
    w.limit_bytes = 100000;
    open_server(NULL);
    w.handle = answer_large;
    int c = connect_client();
    sw_stream_set_reading(w.clients[c].stream, false);
    say(c, GET("/1") GET("/2"));
    assert_int_equal(w.requests, 1); /* the second one waits until the first is sent */
    sw_loop_virtual_advance(w.loop, 29000);
    w.handle = echo;
    sw_stream_set_reading(w.clients[c].stream, true);
    turn();
    const char *body = strstr(w.clients[c].in.bytes, "\r\n\r\n");
    assert_non_null(body);
    assert_memory_equal(body + 4, large_body, LARGE);
    assert_string_equal(body + 4 + LARGE, TEXT_OK(11, "GET /2  []"));
    close_all();
}

TEST(a_client_that_does_not_read_is_cut_off)
{
    w.limit_bytes = 100000;
    open_server(NULL);
    w.handle = answer_large;
    int c = connect_client();
    sw_stream_set_reading(w.clients[c].stream, false);
    say(c, GET("/1"));
    sw_loop_virtual_advance(w.loop, 29999);
    assert_int_equal(sw_http_server_connections(w.server), 1);
    sw_loop_virtual_advance(w.loop, 1);
    assert_int_equal(sw_http_server_connections(w.server), 0);
    close_all();
}

static void count_drain(void *arg)
{
    (void)arg;
    w.drains++;
}

static void count_gone(void *arg)
{
    (void)arg;
    w.gones++;
}

static const struct sw_http_answer_events counting = {count_drain, count_gone};

static void begin(struct sw_http_incoming *r)
{
    sw_http_answer_start(r, &(struct sw_http_answer){.status = 200}, &counting, NULL);
    keep(r);
}

TEST(an_answer_comes_in_pieces)
{
    open_server(NULL);
    w.handle = begin;
    int c = connect_client();
    say(c, GET("/1") GET("/2"));
    assert_heard(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert_int_equal(sw_http_answer_write(w.kept[0], "hello", 5), 0);
    assert_heard(c, "5\r\nhello\r\n");
    assert_int_equal(sw_http_answer_write(w.kept[0], "", 0), 0);
    assert_heard(c, "");
    sw_loop_virtual_advance(w.loop, 1000000); /* no deadline: a watch lasts */
    assert_int_equal(sw_http_answer_write(w.kept[0], "0123456789abcdef", 16), 0);
    w.handle = echo;
    sw_http_answer_end(w.kept[0], true);
    assert_heard(c, "10\r\n0123456789abcdef\r\n0\r\n\r\n" TEXT_OK(11, "GET /2  []"));
    w.handle = begin;
    say(c, "GET / HTTP/1.0\r\n\r\n");
    assert_heard(c, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    assert_int_equal(sw_http_answer_write(w.kept[1], "hello", 5), 0);
    sw_http_answer_end(w.kept[1], true);
    assert_heard(c, "hello");
    assert_ended(c, 0);
    c = connect_client();
    say(c, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_int_equal(sw_http_answer_write(w.kept[2], "hello", 5), 0);
    sw_http_answer_end(w.kept[2], true);
    assert_heard(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    w.handle = echo;
    say(c, GET("/3"));
    assert_heard(c, TEXT_OK(11, "GET /3  []"));
    assert_int_equal(w.gones + w.drains, 0);
    close_all();
}

TEST(an_answer_in_pieces_that_is_not_whole_is_cut)
{
    open_server(NULL);
    w.handle = begin;
    int c = connect_client();
    say(c, GET("/"));
    assert_int_equal(sw_http_answer_write(w.kept[0], "hello", 5), 0);
    turn();
    sw_http_answer_end(w.kept[0], false);
    assert_ended(c, -ECONNRESET);
    assert_int_equal(w.gones, 0);
    close_all();
}

TEST(pieces_wait_for_their_reader)
{
    w.limit_bytes = 50000;
    open_server(NULL);
    w.handle = begin;
    int c = connect_client();
    sw_stream_set_reading(w.clients[c].stream, false);
    say(c, GET("/"));
    memset(large_body, 'y', LARGE);
    int taken = 0;
    while (sw_http_answer_write(w.kept[0], large_body, 10000) == 0) {
        assert_in_range(++taken, 1, 10);
        turn();
    }
    assert_int_equal(sw_http_answer_write(w.kept[0], large_body, 10000), -ENOBUFS);
    turn();
    assert_int_equal(w.drains, 0);
    sw_stream_set_reading(w.clients[c].stream, true);
    turn();
    assert_int_equal(w.drains, 1);
    assert_int_equal(sw_http_answer_write(w.kept[0], large_body, 10), 0);
    sw_http_answer_end(w.kept[0], true);
    turn();
    assert_int_equal(w.clients[c].in.len,
                     strlen("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n") +
                         (size_t)taken * (4 + 2 + 10000 + 2) + (1 + 2 + 10 + 2) + 5);
    /* One that never reads on is cut off. */
    w.kept_count = 0;
    sw_stream_set_reading(w.clients[c].stream, false);
    say(c, GET("/"));
    while (sw_http_answer_write(w.kept[0], large_body, 10000) == 0) {
        turn();
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(w.gones, 0);
        sw_loop_virtual_advance(w.loop, 10000);
        assert_int_equal(sw_http_answer_write(w.kept[0], large_body, 1), i < 2 ? -ENOBUFS : -EPIPE);
    }
    assert_int_equal(w.gones, 1);
    sw_http_answer_end(w.kept[0], true);
    close_all();
}

TEST(who_answers_in_pieces_is_told_that_the_client_has_gone)
{
    open_server(NULL);
    w.handle = begin;
    int a = connect_client(), b = connect_client(), c = connect_client();
    say(a, GET("/"));
    say(b, GET("/"));
    say(c, GET("/"));
    hang_up(a);
    assert_int_equal(w.gones, 1);
    sw_stream_reset(sw_steal(&w.clients[b].stream));
    turn();
    assert_int_equal(w.gones, 2);
    assert_int_equal(sw_http_answer_write(w.kept[0], "x", 1), -EPIPE);
    sw_http_answer_end(w.kept[0], true);
    sw_http_answer_end(w.kept[1], false);
    sw_http_server_close(sw_steal(&w.server), on_closed, NULL);
    assert_int_equal(w.gones, 2);
    turn();
    assert_int_equal(w.gones, 3);
    assert_int_equal(w.closed, 0);
    sw_http_answer_end(w.kept[2], true);
    close_all();
    assert_int_equal(w.gones, 3);
}

static void end_on_drain(void *arg)
{
    (void)arg;
    w.drains++;
    sw_http_answer_end(w.kept[0], true);
}

static void end_on_gone(void *arg)
{
    (void)arg;
    w.gones++;
    sw_http_answer_end(w.kept[0], false);
}

static void close_on_drain(void *arg)
{
    end_on_drain(arg);
    sw_http_server_close(sw_steal(&w.server), on_closed, NULL);
}

static const struct sw_http_answer_events ending = {end_on_drain, end_on_gone};
static const struct sw_http_answer_events closing = {close_on_drain, end_on_gone};
static const struct sw_http_answer_events *begin_with;

static void begin_ending(struct sw_http_incoming *r)
{
    sw_http_answer_start(r, &(struct sw_http_answer){.status = 200}, begin_with, NULL);
    keep(r);
}

TEST(an_answer_in_pieces_may_end_from_its_events)
{
    for (int i = 0; i < 3; i++) {
        w.limit_bytes = 20000;
        open_server(NULL);
        w.handle = begin_ending;
        begin_with = i == 2 ? &closing : &ending;
        int c = connect_client();
        sw_stream_set_reading(w.clients[c].stream, false);
        say(c, GET("/"));
        while (sw_http_answer_write(w.kept[0], large_body, 10000) == 0) {
            turn();
        }
        if (i == 0) {
            hang_up(c);
            assert_int_equal(w.gones, 1);
        } else {
            sw_stream_set_reading(w.clients[c].stream, true);
            turn();
            assert_int_equal(w.drains, 1);
            assert_string_equal(w.clients[c].in.bytes + w.clients[c].in.len - 5, "0\r\n\r\n");
            assert_int_equal(w.clients[c].has_ended, i == 2);
        }
        close_all();
    }
}

static void answer_badly(struct sw_http_incoming *r)
{
    static const struct sw_http_field field = {"X", "a\r\nSet-Cookie: b"};
    sw_http_answer(r, &(struct sw_http_answer){.status = 200, .fields = &field, .field_count = 1});
}

TEST(a_field_with_a_line_feed_is_a_mistake_of_ours)
{
    open_server(NULL);
    w.handle = answer_badly;
    int c = connect_client();
    assert_aborts((say(c, GET("/")), 0));
    close_all();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("http server", answers_requests_one_after_the_other),
        CASE("http server", takes_requests_in_any_pieces),
        CASE("http server", pipelined_requests_are_answered_in_order),
        CASE("http server", targets_are_taken_apart),
        CASE("http server", answers_have_the_frame_that_belongs_to_them),
        CASE("http server", the_connection_ends_where_one_side_says_so),
        CASE("http server", a_client_that_has_ended_its_side_gets_its_answer),
        CASE("http server", all_requests_before_the_end_are_answered),
        CASE("http server", go_ahead_is_said_where_it_is_waited_for),
        CASE("http server", bad_requests_are_refused_with_the_right_status),
        CASE("http server", heads_that_are_too_large_are_refused),
        CASE("http server", a_refused_client_may_finish_sending),
        CASE("http server", slow_clients_are_turned_away),
        CASE("http server", idle_connections_are_closed_after_two_minutes),
        CASE("http server", a_handler_may_take_its_time),
        CASE("http server", an_answer_to_a_client_that_has_gone_is_dropped),
        CASE("http server", closing_waits_for_the_answers_into_the_void),
        CASE("http server", a_handler_may_close_the_server),
        CASE("http server", draining_ends_connections_without_hitting_a_request),
        CASE("http server", finishing_waits_for_those_in_the_middle_of_something),
        CASE("http server", finishing_after_draining_hits_no_request_on_its_way),
        CASE("http server", finishing_does_not_wait_for_ever),
        CASE("http server", finishing_with_nobody_there_is_done_at_once_and_may_be_cut_short),
        CASE("http server", the_longest_quiet_connection_makes_room),
        CASE("http server", who_has_sent_nothing_makes_room_before_who_is_idle_but_not_at_once),
        CASE("http server", slow_clients_do_not_keep_others_out),
        CASE("http server", one_connection_too_many_costs_the_oldest_idle_one),
        CASE("http server", clients_that_withhold_a_body_do_not_keep_others_out),
        CASE("http server", bodies_are_bounded_together),
        CASE("http server", clients_that_do_not_end_do_not_keep_others_out),
        CASE("http server", clients_that_do_not_read_do_not_keep_others_out),
        CASE("http server", a_thousand_connections_are_served),
        CASE("http server", a_large_answer_follows_its_reader),
        CASE("http server", a_client_that_does_not_read_is_cut_off),
        CASE("http server", an_answer_comes_in_pieces),
        CASE("http server", an_answer_in_pieces_that_is_not_whole_is_cut),
        CASE("http server", pieces_wait_for_their_reader),
        CASE("http server", who_answers_in_pieces_is_told_that_the_client_has_gone),
        CASE("http server", an_answer_in_pieces_may_end_from_its_events),
        CASE("http server", a_field_with_a_line_feed_is_a_mistake_of_ours),
    };
    return RUN(tests);
}
