/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP client against a scripted peer: each connection is a pipe in memory whose other end the
 * test holds, on virtual time. (Against a real server: test_http_nginx.c.)
 */
#include "net/http_client.h"

#include <errno.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/util.h"
#include "net/stream.h"
#include "test.h"

enum { PEERS_MAX = 16 };

struct peer {
    struct sw_stream *stream;
    struct sw_buf in;
    bool has_ended;
    int end_code;
};

static struct {
    struct sw_loop *loop;
    struct sw_http_client *client;
    struct peer peers[PEERS_MAX];
    int peer_count;
    size_t max_piece;
    size_t limit_bytes;
    int connect_code;
} w;

static const struct sw_log no_log;

/* ---- the peers ---- */

static void peer_read(void *arg, const char *bytes, size_t len)
{
    struct peer *peer = arg;
    sw_buf_append(&peer->in, bytes, len);
}

static void peer_end(void *arg, int code)
{
    struct peer *peer = arg;
    peer->has_ended = true;
    peer->end_code = code;
}

static const struct sw_stream_events peer_events = {peer_read, peer_end, NULL};

static int connect_peer(void *arg, struct sw_stream **ret_stream)
{
    (void)arg;
    if (w.connect_code) {
        return w.connect_code;
    }
    assert_in_range(w.peer_count, 0, PEERS_MAX - 1);
    struct peer *peer = &w.peers[w.peer_count++];
    sw_buf_init(&peer->in, SIZE_MAX);
    sw_pipe_open(w.loop, w.limit_bytes, w.max_piece, ret_stream, &peer->stream);
    sw_stream_start(peer->stream, &peer_events, peer);
    return 0;
}

static void turn(void)
{
    sw_loop_virtual_advance(w.loop, 0);
}

static void say(int peer, const char *text)
{
    assert_int_equal(sw_stream_write(w.peers[peer].stream, text, strlen(text)), 0);
    turn();
}

static void hang_up(int peer)
{
    sw_stream_close(sw_steal(&w.peers[peer].stream));
    turn();
}

/* What the peer has read since the last call. */
static void assert_heard(int peer, const char *text)
{
    turn();
    assert_in_range(peer, 0, w.peer_count - 1);
    assert_string_equal(w.peers[peer].in.bytes, text);
    sw_buf_clear(&w.peers[peer].in);
}

/* The same, but only that it is a request for the target. */
static void assert_asked(int peer, const char *target)
{
    turn();
    assert_in_range(peer, 0, w.peer_count - 1);
    char *at = strchr(w.peers[peer].in.bytes, ' ');
    assert_non_null(at);
    assert_memory_equal(at + 1, target, strlen(target));
    assert_int_equal(at[1 + strlen(target)], ' ');
    sw_buf_clear(&w.peers[peer].in);
}

static void open_client(const struct sw_http_client_options *options)
{
    struct sw_http_client_options o = {0};
    if (options) {
        o = *options;
    }
    w.peer_count = 0; /* where an earlier test has failed */
    o.host = "api.example";
    o.port = 80;
    w.loop = sw_loop_virtual_new(0, 1);
    if (w.limit_bytes == 0) {
        w.limit_bytes = (size_t)1024 * 1024;
    }
    assert_int_equal(sw_http_client_open(w.loop, &o, &no_log, &w.client), 0);
    sw_http_client_set_connector(w.client, connect_peer, NULL);
}

static void close_all(void)
{
    sw_http_client_close(sw_steal(&w.client));
    turn();
    for (int i = 0; i < w.peer_count; i++) {
        sw_stream_close(w.peers[i].stream);
        sw_buf_done(&w.peers[i].in);
    }
    turn();
    assert_int_equal(sw_loop_close(w.loop), 0);
    memset(&w, 0, sizeof(w));
}

/* ---- calls: what came of one request, as text ---- */

struct call {
    struct sw_http_exchange *exchange;
    struct sw_buf text; /* "200 [body] end" */
    bool is_in_body;
    int ends;
    int code;
    char why[480];
    /* what to do at the event of that name */
    const char *at;
    void (*act)(struct call *call);
    unsigned asked;  /* whether it may be sent */
    int may_be_sent; /* the answer */
};

static void act(struct call *call, const char *event)
{
    if (call->at && strcmp(call->at, event) == 0) {
        call->act(call);
    }
}

static void call_head(void *arg, const struct sw_http_head *head)
{
    struct call *call = arg;
    sw_buf_printf(&call->text, "%d", head->status);
    act(call, "head");
}

static void call_body(void *arg, const char *bytes, size_t len)
{
    struct call *call = arg;
    sw_buf_puts(&call->text, call->is_in_body ? "" : " ");
    call->is_in_body = true;
    sw_buf_append(&call->text, bytes, len);
    act(call, "body");
}

static void call_end(void *arg, int code, const struct sw_error *error)
{
    struct call *call = arg;
    sw_buf_puts(&call->text, " end");
    call->ends++;
    call->code = code;
    assert_int_equal(error->code, code);
    snprintf(call->why, sizeof(call->why), "%s", error->text);
    act(call, "end");
}

static int call_may_be_sent(void *arg)
{
    struct call *call = arg;
    call->asked++;
    return call->may_be_sent;
}

static const struct sw_http_exchange_events call_events = {call_head, call_body, call_end,
                                                           call_may_be_sent};

static void call_send(struct call *call, const struct sw_http_request *request)
{
    sw_buf_init(&call->text, SIZE_MAX);
    assert_int_equal(sw_http_send(w.client, request, &call_events, call, &call->exchange), 0);
    assert_int_equal(call->ends, 0);
}

static void call_get(struct call *call, const char *target)
{
    call_send(call, &(struct sw_http_request){.method = "GET", .target = target});
}

static void assert_call(struct call *call, const char *text, int code)
{
    turn();
    assert_string_equal(call->text.bytes, text);
    assert_int_equal(call->ends, strstr(text, "end") ? 1 : 0);
    assert_int_equal(call->code, code);
    sw_buf_done(&call->text);
    call->ends = 0;
    call->is_in_body = false;
}

#define OK_LENGTH(n) "HTTP/1.1 200 OK\r\nContent-Length: " #n "\r\n\r\n"

/* ---- requests ---- */

TEST(sends_a_request_and_reads_its_answer)
{
    struct call call = {0};
    open_client(&(struct sw_http_client_options){.user_agent = "test/1"});
    call_get(&call, "/a?b=c");
    assert_false(sw_http_exchange_was_sent(call.exchange));
    assert_heard(0, "GET /a?b=c HTTP/1.1\r\nHost: api.example\r\nUser-Agent: test/1\r\n\r\n");
    assert_true(sw_http_exchange_was_sent(call.exchange));
    say(0, OK_LENGTH(5) "hello");
    assert_call(&call, "200 hello end", 0);
    assert_int_equal(sw_http_client_connections(w.client), 1);
    assert_int_equal(sw_http_client_connects(w.client), 1);
    close_all();
}

TEST(sends_fields_and_a_body)
{
    static const struct sw_http_field fields[] = {{"Accept", "text/plain"}, {"X", ""}};
    struct call call = {0};
    open_client(NULL);
    call_send(&call, &(struct sw_http_request){.method = "PATCH",
                                               .target = "/",
                                               .fields = fields,
                                               .field_count = 2,
                                               .body = "{}",
                                               .body_len = 2});
    assert_heard(0, "PATCH / HTTP/1.1\r\nHost: api.example\r\nAccept: text/plain\r\nX: \r\n"
                    "Content-Length: 2\r\n\r\n{}");
    say(0, OK_LENGTH(0));
    assert_call(&call, "200 end", 0);
    call_send(&call, &(struct sw_http_request){.method = "POST", .target = "/"});
    assert_heard(0, "POST / HTTP/1.1\r\nHost: api.example\r\nContent-Length: 0\r\n\r\n");
    say(0, OK_LENGTH(0));
    assert_call(&call, "200 end", 0);
    close_all();
}

TEST(refuses_what_would_break_the_head)
{
    static const struct sw_http_request requests[] = {
        {.method = "G T", .target = "/"},
        {.method = "GET\r\n", .target = "/"},
        {.method = "", .target = "/"},
        {.method = "GET", .target = ""},
        {.method = "GET", .target = "a"},
        {.method = "GET", .target = "/a b"},
        {.method = "GET", .target = "/a\r\nX: y"},
        {.method = "GET", .target = "/a#b"},
        {.method = "GET", .target = "/\xc3\xa4"},
        {.method = "GET", .target = "http://x/"},
    };
    static const struct sw_http_field fields[] = {
        {"A", "b\r\nC: d"},  {"A", "b\nc"},
        {"A", "b\rc"},       {"A:", "b"},
        {"", "b"},           {"A B", "c"},
        {"Host", "x"},       {"content-length", "1"},
        {"Connection", "x"}, {"Transfer-Encoding", "chunked"},
    };
    struct sw_http_exchange *exchange = NULL;
    open_client(NULL);
    for (size_t i = 0; i < SW_ARRAY_SIZE(requests); i++) {
        assert_int_equal(sw_http_send(w.client, &requests[i], &call_events, NULL, &exchange),
                         -EINVAL);
    }
    for (size_t i = 0; i < SW_ARRAY_SIZE(fields); i++) {
        struct sw_http_request r = {
            .method = "GET", .target = "/", .fields = &fields[i], .field_count = 1};
        assert_int_equal(sw_http_send(w.client, &r, &call_events, NULL, &exchange), -EINVAL);
    }
    turn();
    assert_int_equal(w.peer_count, 0);
    close_all();
}

TEST(refuses_a_host_that_would_break_the_head)
{
    struct sw_http_client *client = NULL;
    struct sw_loop *loop = sw_loop_virtual_new(0, 1);
    static const char *const hosts[] = {"a b", "a\r\nX: y", "a/b", "u@a"};
    for (size_t i = 0; i < SW_ARRAY_SIZE(hosts); i++) {
        struct sw_http_client_options o = {.host = hosts[i], .port = 80};
        assert_int_equal(sw_http_client_open(loop, &o, &no_log, &client), -EINVAL);
    }
    struct sw_http_client_options o = {.host = "a", .port = 80, .user_agent = "x\ny"};
    assert_int_equal(sw_http_client_open(loop, &o, &no_log, &client), -EINVAL);
    assert_int_equal(sw_loop_close(loop), 0);
}

/* ---- answers ---- */

TEST(takes_answers_in_any_pieces)
{
    w.max_piece = 1;
    struct call call = {0};
    open_client(NULL);
    call_get(&call, "/");
    assert_asked(0, "/");
    say(0, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
           "5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nT: v\r\n\r\n");
    assert_call(&call, "200 hello world end", 0);
    call_get(&call, "/2");
    assert_asked(0, "/2");
    say(0, "HTTP/1.1 204 No Content\r\n\r\n");
    assert_call(&call, "204 end", 0);
    call_get(&call, "/3");
    assert_asked(0, "/3");
    say(0, "HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n");
    assert_call(&call, "304 end", 0);
    assert_int_equal(w.peer_count, 1);
    close_all();
}

TEST(the_answer_to_head_has_no_body)
{
    struct call call = {0};
    open_client(NULL);
    call_send(&call, &(struct sw_http_request){.method = "HEAD", .target = "/"});
    assert_asked(0, "/");
    say(0, OK_LENGTH(1000));
    assert_call(&call, "200 end", 0);
    call_get(&call, "/2");
    assert_asked(0, "/2");
    say(0, OK_LENGTH(1) "x");
    assert_call(&call, "200 x end", 0);
    close_all();
}

TEST(an_answer_without_length_lasts_until_the_orderly_end)
{
    struct call call = {0};
    open_client(NULL);
    call_get(&call, "/");
    assert_asked(0, "/");
    say(0, "HTTP/1.1 200 OK\r\n\r\nall of ");
    say(0, "it");
    assert_int_equal(call.ends, 0);
    hang_up(0);
    assert_call(&call, "200 all of it end", 0);
    call_get(&call, "/2");
    assert_asked(1, "/2");
    say(1, "HTTP/1.0 200 OK\r\n\r\nsome of");
    sw_stream_reset(sw_steal(&w.peers[1].stream));
    assert_call(&call, "200 some of end", SW_E_TRUNCATED);
    close_all();
}

/* Whatever is missing at the end, it is never taken for whole. */
TEST(an_answer_cut_anywhere_is_never_whole)
{
    static const char *const answers[] = {
        OK_LENGTH(5) "hello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(answers); i++) {
        for (size_t len = 0; len < strlen(answers[i]); len++) {
            struct call call = {0};
            open_client(NULL);
            call_send(&call, &(struct sw_http_request){.method = "PATCH",
                                                       .target = "/",
                                                       .body = "x",
                                                       .body_len = 1,
                                                       .may_replay = true});
            assert_asked(0, "/");
            assert_int_equal(sw_stream_write(w.peers[0].stream, answers[i], len), 0);
            sw_stream_finish(w.peers[0].stream);
            turn();
            assert_int_equal(call.ends, 1);
            assert_int_equal(call.code, len == 0 ? -ECONNRESET : SW_E_TRUNCATED);
            assert_int_equal(w.peer_count, 1); /* not replayed: the connection was new */
            sw_buf_done(&call.text);
            close_all();
        }
    }
}

TEST(a_malformed_answer_fails_with_its_reason)
{
    struct call call = {0};
    open_client(NULL);
    call_get(&call, "/");
    assert_asked(0, "/");
    say(0, "<html>Welcome</html>");
    assert_call(&call, " end", SW_E_PROTOCOL);
    assert_non_null(strstr(call.why, "pipe: bad answer: "));
    assert_true(w.peers[0].has_ended);
    close_all();
}

TEST(limits_of_an_answer_are_kept)
{
    static const struct sw_http_request request = {
        .method = "GET", .target = "/", .body_limit_bytes = 4};
    struct call call = {0};
    open_client(&(struct sw_http_client_options){.head_limit_bytes = 60});
    call_send(&call, &request);
    assert_asked(0, "/");
    say(0, OK_LENGTH(4) "four");
    assert_call(&call, "200 four end", 0);
    call_send(&call, &request);
    assert_asked(0, "/");
    say(0, OK_LENGTH(5) "fives");
    assert_call(&call, " end", SW_E_TOO_LARGE);
    call_send(&call, &request);
    assert_asked(1, "/");
    say(1, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n");
    assert_call(&call, "200 abcd end", SW_E_TOO_LARGE);
    call_send(&call, &request);
    assert_asked(2, "/");
    say(2, "HTTP/1.1 200 OK\r\nX: 01234567890123456789012345678901234567890");
    assert_call(&call, " end", SW_E_TOO_LARGE);
    close_all();
}

/* ---- connections ---- */

TEST(a_connection_is_used_again_the_last_one_first)
{
    struct call a = {0}, b = {0};
    open_client(NULL);
    call_get(&a, "/a");
    call_get(&b, "/b");
    assert_asked(0, "/a");
    assert_asked(1, "/b");
    say(1, OK_LENGTH(0));
    say(0, OK_LENGTH(0));
    assert_call(&a, "200 end", 0);
    assert_call(&b, "200 end", 0);
    for (int i = 0; i < 3; i++) {
        call_get(&a, "/again");
        assert_asked(0, "/again");
        say(0, OK_LENGTH(0));
        assert_call(&a, "200 end", 0);
    }
    assert_int_equal(w.peer_count, 2);
    close_all();
}

TEST(more_requests_than_connections_wait_in_order)
{
    struct call calls[6] = {0};
    open_client(&(struct sw_http_client_options){.max_connections = 2});
    for (int i = 0; i < 6; i++) {
        char target[8];
        snprintf(target, sizeof(target), "/%d", i);
        call_get(&calls[i], target);
    }
    turn();
    assert_int_equal(w.peer_count, 2);
    for (int i = 0; i < 6; i++) {
        char target[8];
        snprintf(target, sizeof(target), "/%d", i);
        assert_asked(i % 2, target);
        if (i % 2 == 1) {
            say(0, OK_LENGTH(0));
            say(1, OK_LENGTH(0));
            assert_call(&calls[i - 1], "200 end", 0);
            assert_call(&calls[i], "200 end", 0);
        }
    }
    assert_int_equal(w.peer_count, 2);
    close_all();
}

TEST(a_place_that_becomes_free_goes_to_the_next)
{
    struct call a = {0}, b = {0};
    open_client(&(struct sw_http_client_options){.max_connections = 1});
    call_get(&a, "/a");
    call_get(&b, "/b");
    assert_asked(0, "/a");
    assert_int_equal(w.peer_count, 1);
    say(0, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    assert_call(&a, "200 end", 0);
    assert_true(w.peers[0].has_ended);
    assert_asked(1, "/b");
    sw_http_exchange_cancel(b.exchange);
    call_get(&a, "/c");
    assert_asked(2, "/c");
    sw_http_exchange_cancel(a.exchange);
    sw_buf_done(&a.text);
    sw_buf_done(&b.text);
    close_all();
}

TEST(an_idle_connection_is_closed_after_a_minute)
{
    struct call call = {0};
    open_client(NULL);
    call_get(&call, "/");
    assert_asked(0, "/");
    say(0, OK_LENGTH(0));
    assert_call(&call, "200 end", 0);
    sw_loop_virtual_advance(w.loop, 59999);
    assert_int_equal(sw_http_client_connections(w.client), 1);
    assert_false(w.peers[0].has_ended);
    sw_loop_virtual_advance(w.loop, 1);
    assert_int_equal(sw_http_client_connections(w.client), 0);
    assert_true(w.peers[0].has_ended);
    assert_int_equal(w.peers[0].end_code, 0);
    close_all();
}

TEST(an_idle_connection_that_ends_or_speaks_is_not_used_again)
{
    struct call call = {0};
    open_client(NULL);
    for (int i = 0; i < 3; i++) {
        call_get(&call, "/");
        assert_asked(i, "/");
        say(i, OK_LENGTH(0));
        assert_call(&call, "200 end", 0);
        if (i == 0) {
            hang_up(i);
        } else if (i == 1) {
            say(i, "HTTP/1.1 408 Request Timeout\r\n\r\n");
        } else {
            sw_stream_reset(sw_steal(&w.peers[i].stream));
        }
        turn();
        assert_int_equal(sw_http_client_connections(w.client), 0);
    }
    close_all();
}

TEST(a_connection_with_something_left_over_is_not_used_again)
{
    static const char *const answers[] = {
        OK_LENGTH(2) "okHTTP/1.1",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: Close\r\n\r\nok",
        "HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok",
    };
    open_client(NULL);
    for (int i = 0; i < (int)SW_ARRAY_SIZE(answers); i++) {
        struct call call = {0};
        call_get(&call, "/");
        assert_asked(i, "/");
        say(i, answers[i]);
        assert_call(&call, "200 ok end", 0);
        assert_true(w.peers[i].has_ended);
        assert_int_equal(sw_http_client_connections(w.client), 0);
    }
    close_all();
}

TEST(a_connection_that_cannot_be_made_fails_the_request)
{
    struct call call = {0};
    w.connect_code = -ECONNREFUSED;
    open_client(NULL);
    call_get(&call, "/");
    assert_call(&call, " end", -ECONNREFUSED);
    w.connect_code = 0;
    call_get(&call, "/");
    assert_asked(0, "/");
    say(0, OK_LENGTH(0));
    assert_call(&call, "200 end", 0);
    close_all();
}

/* ---- sending again ---- */

static void make_reused(void)
{
    struct call call = {0};
    call_get(&call, "/first");
    assert_asked(0, "/first");
    say(0, OK_LENGTH(0));
    assert_call(&call, "200 end", 0);
}

static const struct sw_http_request patch = {
    .method = "PATCH", .target = "/", .body = "x", .body_len = 1};

TEST(a_get_on_a_kept_connection_that_was_dead_is_sent_again)
{
    struct call call = {0};
    open_client(NULL);
    make_reused();
    call_get(&call, "/2");
    assert_asked(0, "/2");
    hang_up(0);
    assert_asked(1, "/2");
    say(1, OK_LENGTH(0));
    assert_call(&call, "200 end", 0);
    close_all();
}

TEST(what_is_guarded_is_sent_again_and_nothing_else)
{
    struct call call = {0};
    struct sw_http_request guarded = patch;
    guarded.may_replay = true;

    open_client(NULL);
    make_reused();
    call_send(&call, &patch);
    assert_asked(0, "/");
    hang_up(0);
    assert_call(&call, " end", -ECONNRESET);
    assert_non_null(strstr(call.why, "kept connection ended before the answer"));
    assert_int_equal(w.peer_count, 1);
    close_all();

    open_client(NULL);
    make_reused();
    call_send(&call, &guarded);
    assert_asked(0, "/");
    sw_stream_reset(sw_steal(&w.peers[0].stream));
    assert_heard(1, "PATCH / HTTP/1.1\r\nHost: api.example\r\nContent-Length: 1\r\n\r\nx");
    say(1, OK_LENGTH(0));
    assert_call(&call, "200 end", 0);
    close_all();
}

TEST(whoever_waited_is_asked_before_it_is_sent)
{
    struct call a = {0}, b = {0}, c = {0};
    open_client(&(struct sw_http_client_options){.max_connections = 1});
    call_get(&a, "/a");
    call_send(&b, &patch);
    call_get(&c, "/c");
    assert_asked(0, "/a");
    assert_int_equal(a.asked, 1);
    assert_int_equal(b.asked, 0);
    b.may_be_sent = -EPERM; /* things have changed since */
    say(0, OK_LENGTH(0));
    assert_call(&a, "200 end", 0);
    assert_call(&b, " end", -EPERM);
    assert_false(w.peers[0].has_ended);
    assert_asked(0, "/c"); /* nothing of b, and the connection serves the next */
    say(0, OK_LENGTH(0));
    assert_call(&c, "200 end", 0);
    assert_int_equal(w.peer_count, 1);
    close_all();
}

TEST(a_connection_made_for_what_is_not_sent_serves_the_next)
{
    struct call a = {.may_be_sent = -EPERM}, b = {0};
    open_client(NULL);
    call_send(&a, &patch);
    turn();
    assert_int_equal(a.asked, 1);
    assert_call(&a, " end", -EPERM);
    assert_int_equal(w.peer_count, 1);
    call_get(&b, "/b");
    assert_asked(0, "/b");
    say(0, OK_LENGTH(0));
    assert_call(&b, "200 end", 0);
    close_all();
}

TEST(whoever_is_sent_again_is_asked_again)
{
    struct call call = {0};
    struct sw_http_request guarded = patch;
    guarded.may_replay = true;
    open_client(NULL);
    make_reused();
    call_send(&call, &guarded);
    assert_asked(0, "/");
    assert_int_equal(call.asked, 1);
    call.may_be_sent = -EPERM;
    hang_up(0);
    assert_call(&call, " end", -EPERM);
    assert_int_equal(call.asked, 2);
    assert_string_equal(w.peers[1].in.bytes, "");
    close_all();
}

TEST(a_request_is_sent_again_once_and_on_a_new_connection)
{
    struct call a = {0}, b = {0};
    open_client(&(struct sw_http_client_options){.max_connections = 2});
    call_get(&a, "/a");
    call_get(&b, "/b");
    assert_asked(0, "/a");
    assert_asked(1, "/b");
    say(0, OK_LENGTH(0));
    say(1, OK_LENGTH(0));
    assert_call(&a, "200 end", 0);
    assert_call(&b, "200 end", 0);
    /* The server has gone: both kept ones are dead, only one of them known to be. */
    call_get(&a, "/c");
    assert_asked(1, "/c");
    hang_up(1);
    assert_asked(2, "/c");
    assert_true(w.peers[0].in.len == 0);
    hang_up(2);
    assert_call(&a, " end", -ECONNRESET);
    assert_non_null(strstr(a.why, "new connection ended before the answer"));
    assert_int_equal(w.peer_count, 3);
    close_all();
}

TEST(after_the_first_byte_of_the_answer_nothing_is_sent_again)
{
    struct call call = {0};
    open_client(NULL);
    make_reused();
    call_get(&call, "/");
    assert_asked(0, "/");
    say(0, "H");
    hang_up(0);
    assert_call(&call, " end", SW_E_TRUNCATED);
    assert_int_equal(w.peer_count, 1);
    close_all();
}

/* ---- sending much ---- */

TEST(a_large_body_is_sent_as_the_peer_reads)
{
    static char body[300000];
    struct call call = {0};
    w.limit_bytes = 100000;
    w.max_piece = 999;
    memset(body, 'x', sizeof(body));
    open_client(NULL);
    call_send(&call, &(struct sw_http_request){
                         .method = "PUT", .target = "/", .body = body, .body_len = sizeof(body)});
    turn();
    assert_true(w.peers[0].in.len > sizeof(body));
    assert_memory_equal(w.peers[0].in.bytes + w.peers[0].in.len - sizeof(body), body, sizeof(body));
    say(0, OK_LENGTH(0));
    assert_call(&call, "200 end", 0);
    assert_int_equal(sw_http_client_connections(w.client), 1);
    close_all();
}

/* The peer stops reading after the first piece and says so. */
static void stop_at_once(void *arg, const char *bytes, size_t len)
{
    struct peer *peer = arg;
    peer_read(arg, bytes, len);
    sw_stream_set_reading(peer->stream, false);
}

TEST(an_early_answer_counts_and_ends_the_connection)
{
    static const struct sw_stream_events events = {stop_at_once, peer_end, NULL};
    static char body[300000];
    struct call call = {0};
    w.limit_bytes = 100000;
    w.max_piece = 1000;
    open_client(NULL);
    make_reused();
    memset(body, 'x', sizeof(body));
    sw_stream_set_events(w.peers[0].stream, &events, &w.peers[0]);
    call_send(&call, &(struct sw_http_request){
                         .method = "PUT", .target = "/", .body = body, .body_len = sizeof(body)});
    assert_asked(0, "/");
    say(0, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno");
    assert_call(&call, "413 no end", 0);
    assert_int_equal(sw_http_client_connections(w.client), 0);
    close_all();
}

/* ---- deadlines ---- */

TEST(no_answer_in_time_fails_and_closes_the_connection)
{
    struct call call = {0};
    open_client(NULL);
    call_get(&call, "/");
    assert_asked(0, "/");
    sw_loop_virtual_advance(w.loop, 29999);
    say(0, "HTTP/1.1 200 OK\r\n");
    assert_int_equal(call.ends, 0);
    sw_loop_virtual_advance(w.loop, 1);
    assert_call(&call, " end", -ETIMEDOUT);
    assert_string_equal(call.why, "pipe: no answer within 30000 ms");
    assert_true(w.peers[0].has_ended);
    close_all();
}

TEST(waiting_for_a_connection_counts)
{
    struct call a = {0}, b = {0};
    open_client(&(struct sw_http_client_options){.max_connections = 1});
    call_get(&a, "/a");
    turn();
    call_send(&b,
              &(struct sw_http_request){.method = "GET", .target = "/b", .head_timeout_ms = 1000});
    sw_loop_virtual_advance(w.loop, 1000);
    assert_call(&b, " end", -ETIMEDOUT);
    assert_non_null(strstr(b.why, "no connection free within 1000 ms"));
    assert_asked(0, "/a");
    say(0, OK_LENGTH(0));
    assert_call(&a, "200 end", 0);
    close_all();
}

TEST(the_whole_answer_has_a_deadline)
{
    struct call call = {0};
    open_client(NULL);
    call_send(&call,
              &(struct sw_http_request){.method = "GET", .target = "/", .total_timeout_ms = 5000});
    assert_asked(0, "/");
    say(0, OK_LENGTH(10) "0");
    for (int i = 1; i < 5; i++) {
        sw_loop_virtual_advance(w.loop, 1000);
        say(0, "1");
    }
    assert_int_equal(call.ends, 0);
    sw_loop_virtual_advance(w.loop, 1000);
    assert_call(&call, "200 01111 end", -ETIMEDOUT);
    assert_string_equal(call.why, "pipe: answer not complete within 5000 ms");
    close_all();
}

TEST(silence_has_a_deadline_that_moves_on)
{
    struct call call = {0};
    open_client(NULL);
    call_send(&call, &(struct sw_http_request){
                         .method = "GET", .target = "/", .silence_timeout_ms = 5000});
    assert_asked(0, "/");
    sw_loop_virtual_advance(w.loop, 6000);
    say(0, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 10; i++) {
        sw_loop_virtual_advance(w.loop, 4999);
        say(0, "1\r\nx\r\n");
    }
    assert_int_equal(call.ends, 0);
    sw_loop_virtual_advance(w.loop, 4999);
    assert_int_equal(call.ends, 0);
    sw_loop_virtual_advance(w.loop, 1);
    assert_call(&call, "200 xxxxxxxxxx end", -ETIMEDOUT);
    assert_string_equal(call.why, "pipe: silent for 5000 ms in the middle of an answer");
    close_all();
}

/* ---- lanes ---- */

TEST(a_lane_of_its_own_does_not_wait_and_keeps_its_connection)
{
    static const struct sw_http_request lease = {
        .method = "GET", .target = "/lease", .own_connection = "lease"};
    struct call a = {0}, b = {0}, c = {0};
    open_client(&(struct sw_http_client_options){.max_connections = 1});
    call_get(&a, "/a");
    call_send(&b, &lease);
    assert_asked(0, "/a");
    assert_asked(1, "/lease");
    /* The same lane while it is busy: beside it, and one of the two is kept. */
    call_send(&c, &lease);
    assert_asked(2, "/lease");
    say(1, OK_LENGTH(0));
    assert_call(&b, "200 end", 0);
    say(2, OK_LENGTH(0));
    assert_call(&c, "200 end", 0);
    assert_true(w.peers[2].has_ended);
    call_send(&b, &lease);
    assert_asked(1, "/lease");
    say(1, OK_LENGTH(0));
    assert_call(&b, "200 end", 0);
    say(0, OK_LENGTH(0));
    assert_call(&a, "200 end", 0);
    /* The ordinary lane takes its own connection, not the idle one of the lease. */
    call_get(&a, "/d");
    assert_asked(0, "/d");
    say(0, OK_LENGTH(0));
    assert_call(&a, "200 end", 0);
    assert_int_equal(w.peer_count, 3);
    close_all();
}

/* ---- holding up ---- */

static void stop_reading(struct call *call)
{
    sw_http_exchange_set_reading(call->exchange, false);
}

TEST(reading_stops_at_once_and_goes_on_where_it_stopped)
{
    static const char *const places[] = {"head", "body"};
    for (int i = 0; i < 2; i++) {
        struct call call = {.at = places[i], .act = stop_reading};
        w.max_piece = i == 0 ? 0 : 7;
        open_client(NULL);
        call_get(&call, "/");
        assert_asked(0, "/");
        say(0, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n"
               "0\r\n\r\n");
        assert_string_equal(call.text.bytes, i == 0 ? "200" : "200 abc");
        sw_loop_virtual_advance(w.loop, 100000);
        assert_int_equal(call.ends, 0);
        call.at = NULL;
        sw_http_exchange_set_reading(call.exchange, true);
        assert_call(&call, "200 abcdef end", 0);
        assert_int_equal(sw_http_client_connections(w.client), 1);
        /* And the connection is as good as before. */
        call_get(&call, "/2");
        assert_asked(0, "/2");
        say(0, OK_LENGTH(1) "x");
        assert_call(&call, "200 x end", 0);
        close_all();
    }
}

TEST(an_end_waits_until_reading_goes_on)
{
    struct call call = {.at = "body", .act = stop_reading};
    open_client(NULL);
    call_get(&call, "/");
    assert_asked(0, "/");
    say(0, "HTTP/1.1 200 OK\r\n\r\nabc");
    hang_up(0);
    assert_string_equal(call.text.bytes, "200 abc");
    call.at = NULL;
    sw_http_exchange_set_reading(call.exchange, true);
    assert_call(&call, "200 abc end", 0);
    /* The same for an answer that has no body. */
    call = (struct call){.at = "head", .act = stop_reading};
    call_get(&call, "/");
    assert_asked(1, "/");
    say(1, "HTTP/1.1 204 No Content\r\n\r\n");
    hang_up(1);
    assert_string_equal(call.text.bytes, "204");
    sw_http_exchange_set_reading(call.exchange, true);
    assert_call(&call, "204 end", 0);
    assert_int_equal(sw_http_client_connections(w.client), 0);
    close_all();
}

TEST(while_reading_is_off_silence_is_not_the_peers_fault)
{
    struct call call = {.at = "head", .act = stop_reading};
    open_client(NULL);
    call_send(&call, &(struct sw_http_request){
                         .method = "GET", .target = "/", .silence_timeout_ms = 1000});
    assert_asked(0, "/");
    say(0, OK_LENGTH(3) "a");
    sw_loop_virtual_advance(w.loop, 50000);
    call.at = NULL;
    sw_http_exchange_set_reading(call.exchange, true);
    turn();
    assert_string_equal(call.text.bytes, "200 a");
    sw_loop_virtual_advance(w.loop, 1000);
    assert_call(&call, "200 a end", -ETIMEDOUT);
    close_all();
}

/* ---- cancelling and closing ---- */

static void cancel(struct call *call)
{
    sw_http_exchange_cancel(call->exchange);
}

static void close_client(struct call *call)
{
    (void)call;
    sw_http_client_close(sw_steal(&w.client));
}

static void send_another(struct call *call)
{
    static const struct sw_http_exchange_events no_events;
    (void)call;
    assert_int_equal(sw_http_send(w.client,
                                  &(struct sw_http_request){.method = "GET", .target = "/another"},
                                  &no_events, NULL, NULL),
                     0);
}

TEST(an_exchange_may_be_cancelled_at_any_time)
{
    static const char *const answers[] = {
        "", "HTTP/1.1 200 OK\r\n", OK_LENGTH(5) "he",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"};
    struct call call = {0};

    open_client(NULL);
    call_get(&call, "/");
    sw_http_exchange_cancel(call.exchange); /* not even looked at */
    assert_call(&call, "", 0);
    assert_int_equal(w.peer_count, 0);
    close_all();

    for (size_t i = 0; i < SW_ARRAY_SIZE(answers); i++) {
        open_client(NULL);
        call_get(&call, "/");
        assert_asked(0, "/");
        say(0, answers[i]);
        sw_http_exchange_cancel(call.exchange);
        turn();
        assert_int_equal(call.ends, 0);
        assert_true(w.peers[0].has_ended);
        assert_int_equal(sw_http_client_connections(w.client), 0);
        sw_buf_done(&call.text);
        close_all();
    }
}

TEST(an_exchange_may_be_cancelled_from_its_events)
{
    static const char *const places[] = {"head", "body", "end"};
    static const char *const texts[] = {"200", "200 abc", "200 abcdef end"};
    for (size_t i = 0; i < 3; i++) {
        struct call call = {.at = places[i], .act = cancel};
        open_client(NULL);
        call_get(&call, "/");
        assert_asked(0, "/");
        say(0, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n"
               "0\r\n\r\n");
        assert_call(&call, texts[i], 0);
        assert_int_equal(sw_http_client_connections(w.client), i == 2 ? 1 : 0);
        close_all();
    }
}

TEST(the_client_may_be_closed_from_any_event)
{
    static const char *const places[] = {"head", "body", "end"};
    static const char *const texts[] = {"200 end", "200 abc end", "200 abcdef end"};
    for (size_t i = 0; i < 3; i++) {
        struct call call = {.at = places[i], .act = close_client}, other = {0}, lane = {0};
        open_client(NULL);
        call_get(&call, "/");
        assert_asked(0, "/");
        call_get(&other, "/other");
        call_send(&lane,
                  &(struct sw_http_request){.method = "GET", .target = "/", .own_connection = "x"});
        turn();
        say(0, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n"
               "0\r\n\r\n");
        assert_call(&call, texts[i], i == 2 ? 0 : -ECANCELED);
        assert_call(&other, " end", -ECANCELED);
        assert_call(&lane, " end", -ECANCELED);
        assert_true(w.peers[0].has_ended);
        assert_true(w.peers[1].has_ended);
        close_all();
    }
}

TEST(a_request_may_be_sent_from_any_event)
{
    static const char *const places[] = {"head", "body", "end"};
    for (size_t i = 0; i < 3; i++) {
        struct call call = {.at = places[i], .act = send_another};
        open_client(NULL);
        call_get(&call, "/");
        assert_asked(0, "/");
        say(0, OK_LENGTH(3) "abc");
        assert_call(&call, "200 abc end", 0);
        assert_asked(0, "/another"); /* the connection was free before anybody was told */
        assert_int_equal(w.peer_count, 1);
        close_all();
    }
}

TEST(a_cancelled_answer_to_another_does_not_hurt)
{
    struct call a = {0}, b = {0};
    open_client(NULL);
    call_get(&a, "/a");
    call_get(&b, "/b");
    assert_asked(0, "/a");
    assert_asked(1, "/b");
    /* Both are whole in the same turn; the first one told cancels the other. */
    assert_int_equal(sw_stream_write(w.peers[0].stream, OK_LENGTH(0), 38), 0);
    assert_int_equal(sw_stream_write(w.peers[1].stream, OK_LENGTH(0), 38), 0);
    sw_http_exchange_cancel(b.exchange);
    assert_call(&a, "200 end", 0);
    assert_call(&b, "", 0);
    close_all();
}

TEST(reset_ends_everything_and_the_peers_see_a_reset)
{
    struct call a = {0}, b = {0}, c = {0};
    open_client(&(struct sw_http_client_options){.max_connections = 2});
    call_get(&a, "/a");
    call_get(&b, "/b");
    call_get(&c, "/c");
    assert_asked(0, "/a");
    say(0, OK_LENGTH(5) "he");
    sw_http_client_reset(w.client);
    assert_int_equal(a.ends, 0); /* not from within the call */
    assert_call(&a, "200 he end", -ECONNRESET);
    assert_call(&b, " end", -ECONNRESET);
    assert_call(&c, " end", -ECONNRESET);
    assert_int_equal(w.peers[0].end_code, -ECONNRESET);
    assert_int_equal(w.peers[1].end_code, -ECONNRESET);
    assert_int_equal(sw_http_client_connections(w.client), 0);
    call_get(&a, "/d");
    assert_asked(2, "/d");
    say(2, OK_LENGTH(0));
    assert_call(&a, "200 end", 0);
    close_all();
}

TEST(after_closing_nothing_is_sent)
{
    struct sw_http_exchange *exchange;
    open_client(NULL);
    sw_http_client_close(w.client);
    assert_int_equal(sw_http_send(w.client,
                                  &(struct sw_http_request){.method = "GET", .target = "/"},
                                  &call_events, NULL, &exchange),
                     -ECANCELED);
    sw_http_client_close(w.client);
    w.client = NULL;
    sw_http_client_close(NULL);
    close_all();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("http client", sends_a_request_and_reads_its_answer),
        CASE("http client", sends_fields_and_a_body),
        CASE("http client", refuses_what_would_break_the_head),
        CASE("http client", refuses_a_host_that_would_break_the_head),
        CASE("http client", takes_answers_in_any_pieces),
        CASE("http client", the_answer_to_head_has_no_body),
        CASE("http client", an_answer_without_length_lasts_until_the_orderly_end),
        CASE("http client", an_answer_cut_anywhere_is_never_whole),
        CASE("http client", a_malformed_answer_fails_with_its_reason),
        CASE("http client", limits_of_an_answer_are_kept),
        CASE("http client", a_connection_is_used_again_the_last_one_first),
        CASE("http client", more_requests_than_connections_wait_in_order),
        CASE("http client", a_place_that_becomes_free_goes_to_the_next),
        CASE("http client", an_idle_connection_is_closed_after_a_minute),
        CASE("http client", an_idle_connection_that_ends_or_speaks_is_not_used_again),
        CASE("http client", a_connection_with_something_left_over_is_not_used_again),
        CASE("http client", a_connection_that_cannot_be_made_fails_the_request),
        CASE("http client", a_get_on_a_kept_connection_that_was_dead_is_sent_again),
        CASE("http client", what_is_guarded_is_sent_again_and_nothing_else),
        CASE("http client", whoever_waited_is_asked_before_it_is_sent),
        CASE("http client", a_connection_made_for_what_is_not_sent_serves_the_next),
        CASE("http client", whoever_is_sent_again_is_asked_again),
        CASE("http client", a_request_is_sent_again_once_and_on_a_new_connection),
        CASE("http client", after_the_first_byte_of_the_answer_nothing_is_sent_again),
        CASE("http client", a_large_body_is_sent_as_the_peer_reads),
        CASE("http client", an_early_answer_counts_and_ends_the_connection),
        CASE("http client", no_answer_in_time_fails_and_closes_the_connection),
        CASE("http client", waiting_for_a_connection_counts),
        CASE("http client", the_whole_answer_has_a_deadline),
        CASE("http client", silence_has_a_deadline_that_moves_on),
        CASE("http client", a_lane_of_its_own_does_not_wait_and_keeps_its_connection),
        CASE("http client", reading_stops_at_once_and_goes_on_where_it_stopped),
        CASE("http client", an_end_waits_until_reading_goes_on),
        CASE("http client", while_reading_is_off_silence_is_not_the_peers_fault),
        CASE("http client", an_exchange_may_be_cancelled_at_any_time),
        CASE("http client", an_exchange_may_be_cancelled_from_its_events),
        CASE("http client", the_client_may_be_closed_from_any_event),
        CASE("http client", a_request_may_be_sent_from_any_event),
        CASE("http client", a_cancelled_answer_to_another_does_not_hurt),
        CASE("http client", reset_ends_everything_and_the_peers_see_a_reset),
        CASE("http client", after_closing_nothing_is_sent),
    };
    return RUN(tests);
}
