/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP on the loopback: connecting to the right one of several addresses, listening, both kinds of
 * end, back pressure, and closing from every callback. The peer is either a stream of ours or a
 * bare socket that does what streams would not.
 */
#include "net/tcp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <uv.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/loop.h"
#include "base/util.h"
#include "net/stream.h"
#include "net/tcp_connect.h"
#include "side.h"
#include "test.h"

static struct {
    struct sw_loop *loop;
    uv_async_t alive; /* or uv_run would not even begin where only deferred calls wait */
    struct sw_tcp_listener *listener;
    struct side client, server;
    struct sw_tcp_connect *connect;
    unsigned connected_calls;
    struct sw_error error;
} w;

/* ---- the sides ---- */

static void accepted(void *arg, struct sw_stream *stream)
{
    struct side *side = arg;
    assert_null(side->stream);
    side->stream = stream;
    sw_stream_start(stream, &side_events, side);
}

static void connected(void *arg, struct sw_stream *stream, const struct sw_error *error)
{
    struct side *side = arg;
    w.connected_calls++;
    w.connect = NULL;
    if (stream) {
        side->stream = stream;
        sw_stream_start(stream, &side_events, side);
    } else {
        assert_true(error->code < 0);
        w.error = *error;
    }
}

/* ---- the stage ---- */

static void begin(void)
{
    memset(&w, 0, sizeof(w));
    sw_buf_init(&w.client.got, SIZE_MAX);
    sw_buf_init(&w.server.got, SIZE_MAX);
    assert_int_equal(sw_loop_open(&w.loop), 0);
    assert_int_equal(uv_async_init(sw_loop_uv(w.loop), &w.alive, NULL), 0);
}

static void turn(void)
{
    uv_run(sw_loop_uv(w.loop), UV_RUN_NOWAIT);
}

/* Turns the loop until that is so; the time limit of the test ends a hopeless wait. The turn that
 * does not wait is for what deferred calls bring about. */
#define UNTIL(condition)                         \
    while (turn(), !(condition)) {               \
        uv_run(sw_loop_uv(w.loop), UV_RUN_ONCE); \
    }

static void finish(void)
{
    sw_stream_close(w.client.stream);
    sw_stream_close(w.server.stream);
    sw_tcp_listener_close(w.listener);
    uv_close((uv_handle_t *)&w.alive, NULL);
    sw_loop_run(w.loop);
    assert_int_equal(sw_loop_close(w.loop), 0);
    sw_buf_done(&w.client.got);
    sw_buf_done(&w.server.got);
}

static uint16_t listen_on(const char *address, size_t write_limit)
{
    struct sw_error error;
    if (sw_tcp_listen(w.loop, address, write_limit, accepted, &w.server, &w.listener, &error)) {
        fail_msg("%s", error.text);
    }
    uint16_t port = sw_tcp_listener_port(w.listener);
    assert_int_not_equal(port, 0);
    return port;
}

static void connect_to(const char *host, uint16_t port, size_t write_limit)
{
    struct sw_tcp_options options = {
        .host = host, .port = port, .write_limit_bytes = write_limit, .timeout_ms = 5000};
    assert_int_equal(sw_tcp_connect(w.loop, &options, connected, &w.client, &w.connect), 0);
    assert_int_equal(w.connected_calls, 0);
}

static void open_pair(size_t client_limit, size_t server_limit)
{
    begin();
    connect_to("127.0.0.1", listen_on("127.0.0.1:0", server_limit), client_limit);
    UNTIL(w.client.stream && w.server.stream);
}

/* ---- bare sockets ---- */

static int bare_listener(struct sockaddr_storage *ret_address, int backlog)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    if (backlog >= 0) {
        assert_int_equal(listen(fd, backlog), 0);
    }
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    memset(ret_address, 0, sizeof(*ret_address));
    memcpy(ret_address, &address, sizeof(address));
    return fd;
}

static uint16_t port_of(const struct sockaddr_storage *address)
{
    return ntohs(((const struct sockaddr_in *)address)->sin_port);
}

/* Connects to a listener of ours without turning the loop: the kernel completes it. */
static int bare_client(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* An address that swallows the SYN: a listener whose queue is full. fds: to be closed. */
static void black_hole(struct sockaddr_storage *ret_address, int fds[8])
{
    fds[0] = bare_listener(ret_address, 0);
    for (int i = 1; i < 8; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        connect(fds[i], (struct sockaddr *)ret_address, sizeof(struct sockaddr_in));
    }
}

static void close_all(int fds[8])
{
    for (int i = 0; i < 8; i++) {
        close(fds[i]);
    }
}

/* A port that nobody listens on, and that nobody else gets meanwhile. */
static int closed_port(struct sockaddr_storage *ret_address)
{
    return bare_listener(ret_address, -1);
}

/* ---- connecting ---- */

TEST(connects_and_names_the_peer)
{
    begin();
    uint16_t port = listen_on("127.0.0.1:0", 0);
    connect_to("127.0.0.1", port, 0);
    UNTIL(w.client.stream && w.server.stream);
    char name[32];
    snprintf(name, sizeof(name), "127.0.0.1:%u", (unsigned)port);
    assert_string_equal(sw_stream_peer(w.client.stream), name);
    assert_memory_equal(sw_stream_peer(w.server.stream), "127.0.0.1:", 10);
    assert_int_equal(sw_stream_limit(w.client.stream), 8 * 1024 * 1024);
    finish();
}

TEST(connects_over_ipv6)
{
    begin();
    uint16_t port = listen_on("[::1]:0", 0);
    connect_to("::1", port, 0);
    UNTIL(w.client.stream);
    char name[32];
    snprintf(name, sizeof(name), "[::1]:%u", (unsigned)port);
    assert_string_equal(sw_stream_peer(w.client.stream), name);
    UNTIL(w.server.stream);
    finish();
}

TEST(connects_by_name)
{
    begin();
    connect_to("localhost", listen_on("127.0.0.1:0", 0), 0);
    UNTIL(w.connected_calls);
    assert_non_null(w.client.stream);
    UNTIL(w.server.stream);
    finish();
}

TEST(says_that_it_was_refused)
{
    begin();
    struct sockaddr_storage address;
    int fd = closed_port(&address);
    connect_to("127.0.0.1", port_of(&address), 0);
    UNTIL(w.connected_calls);
    assert_int_equal(w.error.code, -ECONNREFUSED);
    char wanted[128];
    snprintf(wanted, sizeof(wanted), "cannot connect to 127.0.0.1: 127.0.0.1:%u: %s",
             (unsigned)port_of(&address), sw_strerror(-ECONNREFUSED));
    assert_string_equal(w.error.text, wanted);
    close(fd);
    finish();
}

TEST(says_that_a_name_is_unknown)
{
    begin();
    /* A label that no name server can be asked for. */
    connect_to("a-label-of-more-than-sixty-three-characters-is-not-a-name-in-the-dns-at-all", 1, 0);
    UNTIL(w.connected_calls);
    assert_true(w.error.code < 0);
    assert_non_null(strstr(w.error.text, "cannot look up the address of a-label-of"));
    finish();
}

static void connect_several(const struct sockaddr_storage *addresses, size_t count,
                            uint64_t timeout_ms, const char *avoid)
{
    struct sw_tcp_options options = {
        .host = "several.test", .timeout_ms = timeout_ms, .avoid = avoid};
    assert_int_equal(
        sw_tcp_connect_to(w.loop, addresses, count, &options, connected, &w.client, &w.connect), 0);
    UNTIL(w.connected_calls);
}

TEST(takes_the_next_address_where_one_refuses)
{
    begin();
    struct sockaddr_storage addresses[16];
    int refusing = closed_port(&addresses[0]);
    for (int i = 1; i < 15; i++) {
        addresses[i] = addresses[0];
    }
    int fd = bare_listener(&addresses[15], 10);
    /* At once; each in its turn would take 15 times 250 ms. */
    connect_several(addresses, 16, 2000, NULL);
    assert_non_null(w.client.stream);
    close(fd);
    close(refusing);
    finish();
}

TEST(takes_the_next_address_where_one_is_silent)
{
    begin();
    struct sockaddr_storage addresses[2];
    int fds[8];
    black_hole(&addresses[0], fds);
    int fd = bare_listener(&addresses[1], 10);
    connect_several(addresses, 2, 5000, NULL);
    assert_non_null(w.client.stream);
    close(fd);
    close_all(fds);
    finish();
}

TEST(tells_every_address_that_it_tried)
{
    begin();
    struct sockaddr_storage addresses[2];
    int fds[8];
    black_hole(&addresses[0], fds);
    int fd = closed_port(&addresses[1]);
    connect_several(addresses, 2, 400, NULL);
    assert_null(w.client.stream);
    assert_int_equal(w.error.code, -ETIMEDOUT);
    char wanted[200];
    snprintf(wanted, sizeof(wanted),
             "cannot connect to several.test: 127.0.0.1:%u: no answer; 127.0.0.1:%u: %s",
             (unsigned)port_of(&addresses[0]), (unsigned)port_of(&addresses[1]),
             sw_strerror(-ECONNREFUSED));
    assert_string_equal(w.error.text, wanted);
    close(fd);
    close_all(fds);
    finish();
}

TEST(tries_the_avoided_address_last)
{
    begin();
    struct sockaddr_storage addresses[2];
    int fds[] = {bare_listener(&addresses[0], 10), bare_listener(&addresses[1], 10)};
    char first[32], second[32];
    snprintf(first, sizeof(first), "127.0.0.1:%u", (unsigned)port_of(&addresses[0]));
    snprintf(second, sizeof(second), "127.0.0.1:%u", (unsigned)port_of(&addresses[1]));
    connect_several(addresses, 2, 5000, first);
    assert_string_equal(sw_stream_peer(w.client.stream), second);
    close_side(&w.client);
    w.connected_calls = 0;
    connect_several(addresses, 2, 5000, second);
    assert_string_equal(sw_stream_peer(w.client.stream), first);
    close_side(&w.client);
    w.connected_calls = 0;
    connect_several(addresses, 1, 5000, first); /* better than none */
    assert_string_equal(sw_stream_peer(w.client.stream), first);
    close(fds[0]);
    close(fds[1]);
    finish();
}

TEST(may_be_cancelled_at_any_time)
{
    static const char *const hosts[] = {"127.0.0.1", "localhost"};
    for (size_t i = 0; i < SW_ARRAY_SIZE(hosts); i++) {
        for (int turns = 0; turns < 3; turns++) {
            begin();
            struct sockaddr_storage address;
            int fds[8];
            black_hole(&address, fds);
            connect_to(hosts[i], port_of(&address), 0);
            for (int t = 0; t < turns; t++) {
                turn();
            }
            if (w.connect) {
                sw_tcp_connect_cancel(w.connect);
                unsigned calls = w.connected_calls;
                finish();
                assert_int_equal(w.connected_calls, calls);
            } else {
                finish();
            }
            close_all(fds);
        }
    }
}

TEST(does_not_work_on_a_virtual_loop)
{
    struct sw_loop *loop = sw_loop_virtual_new(0, 1);
    struct sw_tcp_connect *connect;
    struct sw_tcp_listener *listener;
    struct sw_error error;
    struct sw_tcp_options options = {.host = "127.0.0.1", .port = 1};
    assert_int_equal(sw_tcp_connect(loop, &options, connected, NULL, &connect), -ENOTSUP);
    options.host = "localhost";
    assert_int_equal(sw_tcp_connect(loop, &options, connected, NULL, &connect), -ENOTSUP);
    assert_int_equal(sw_tcp_listen(loop, "127.0.0.1:0", 0, accepted, NULL, &listener, &error),
                     -ENOTSUP);
    assert_int_equal(sw_loop_close(loop), 0);
}

/* ---- listening ---- */

TEST(listens_on_all_addresses)
{
    begin();
    uint16_t port = listen_on(":0", 0);
    connect_to("127.0.0.1", port, 0);
    UNTIL(w.client.stream && w.server.stream);
    close_side(&w.client);
    close_side(&w.server);
    w.connected_calls = 0;
    connect_to("::1", port, 0);
    UNTIL(w.client.stream && w.server.stream);
    finish();
    begin();
    connect_to("127.0.0.1", listen_on("localhost:0", 0), 0);
    UNTIL(w.connected_calls);
    finish();
}

TEST(says_why_it_cannot_listen)
{
    begin();
    struct sockaddr_storage taken;
    int fd = bare_listener(&taken, 1);
    char address[32];
    snprintf(address, sizeof(address), "127.0.0.1:%u", (unsigned)port_of(&taken));
    struct sw_error error;
    assert_int_equal(sw_tcp_listen(w.loop, address, 0, accepted, NULL, &w.listener, &error),
                     -EADDRINUSE);
    assert_non_null(strstr(error.text, address));
    assert_int_equal(sw_tcp_listen(w.loop, "192.0.2.1:0", 0, accepted, NULL, &w.listener, &error),
                     -EADDRNOTAVAIL);
    assert_int_equal(sw_tcp_listen(w.loop, "8443", 0, accepted, NULL, &w.listener, &error),
                     SW_E_SYNTAX);
    assert_null(w.listener);
    close(fd);
    finish();
}

TEST(lets_connections_wait_while_it_does_not_accept)
{
    begin();
    uint16_t port = listen_on("127.0.0.1:0", 0);
    sw_tcp_listener_set_accepting(w.listener, false);
    connect_to("127.0.0.1", port, 0);
    UNTIL(w.client.stream);
    sw_stream_write(w.client.stream, "waiting", 7);
    for (int i = 0; i < 10; i++) {
        turn();
    }
    assert_null(w.server.stream);
    sw_tcp_listener_set_accepting(w.listener, true);
    UNTIL(w.server.got.len == 7);
    close_side(&w.server);
    int fd = bare_client(port); /* and those behind it */
    UNTIL(w.server.stream);
    close(fd);
    finish();
}

static void accept_and_close_listener(void *arg, struct sw_stream *stream)
{
    (void)arg;
    sw_stream_close(stream);
    sw_tcp_listener_close(w.listener);
    sw_tcp_listener_close(w.listener);
    w.listener = NULL;
}

TEST(may_be_closed_while_it_accepts)
{
    begin();
    assert_int_equal(
        sw_tcp_listen(w.loop, "127.0.0.1:0", 0, accept_and_close_listener, NULL, &w.listener, NULL),
        0);
    uint16_t port = sw_tcp_listener_port(w.listener);
    int fds[] = {bare_client(port), bare_client(port)};
    UNTIL(!w.listener);
    close(fds[0]);
    close(fds[1]);
    finish();
}

/* ---- bytes ---- */

TEST(sends_what_is_written_in_one_turn_at_once)
{
    begin();
    int fd = bare_client(listen_on("127.0.0.1:0", 0));
    UNTIL(w.server.stream);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(sw_stream_write(w.server.stream, "0123456789", 10), 0);
    }
    assert_int_equal(sw_stream_pending(w.server.stream), 1000);
    char bytes[2000];
    assert_int_equal(recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT), -1);
    turn();
    assert_int_equal(sw_stream_pending(w.server.stream), 0);
    assert_int_equal(recv(fd, bytes, sizeof(bytes), 0), 1000);
    close(fd);
    finish();
}

TEST(carries_bytes_both_ways)
{
    open_pair(0, 0);
    assert_int_equal(sw_stream_write(w.client.stream, "hello", 5), 0);
    assert_int_equal(sw_stream_write(w.server.stream, "hi", 2), 0);
    UNTIL(w.server.got.len == 5 && w.client.got.len == 2);
    assert_string_equal(w.server.got.bytes, "hello");
    assert_string_equal(w.client.got.bytes, "hi");
    finish();
}

TEST(may_still_write_after_the_other_side_has_ended)
{
    open_pair(0, 0);
    sw_stream_write(w.client.stream, "last", 4);
    sw_stream_finish(w.client.stream);
    assert_int_equal(sw_stream_write(w.client.stream, "x", 1), -EPIPE);
    UNTIL(w.server.has_ended);
    assert_int_equal(w.server.end_code, 0);
    assert_string_equal(w.server.got.bytes, "last");
    assert_int_equal(sw_stream_write(w.server.stream, "late", 4), 0);
    UNTIL(w.client.got.len == 4);
    assert_false(w.client.has_ended);
    finish();
}

static char pattern_at(size_t at)
{
    return (char)(at * 13 + at / 509);
}

/* Writes as much as is taken. */
static size_t fill(struct side *side, size_t from, size_t to)
{
    char piece[10000];
    while (from < to) {
        size_t len = SW_MIN(to - from, sizeof(piece));
        for (size_t i = 0; i < len; i++) {
            piece[i] = pattern_at(from + i);
        }
        int rc = sw_stream_write(side->stream, piece, len);
        if (rc == -ENOBUFS) {
            break;
        }
        assert_int_equal(rc, 0);
        from += len;
    }
    return from;
}

static void assert_pattern(const struct sw_buf *got, size_t len)
{
    assert_int_equal(got->len, len);
    for (size_t i = 0; i < len; i++) {
        if (got->bytes[i] != pattern_at(i)) {
            fail_msg("byte %zu is wrong", i);
        }
    }
}

TEST(holds_the_writer_back_and_says_when_there_is_room)
{
    enum { LEN = 20 * 1000 * 1000 };
    open_pair(100 * 1000, 0);
    sw_stream_set_reading(w.server.stream, false);
    size_t sent = 0;
    size_t before;
    do { /* until the kernel's buffers are full as well */
        before = sent;
        sent = fill(&w.client, sent, LEN);
        assert_true(sw_stream_pending(w.client.stream) <= 100 * 1000);
        turn();
        turn();
    } while (sent > before);
    assert_true(sent < LEN);
    unsigned drains = w.client.drains;
    for (int i = 0; i < 5; i++) {
        turn();
    }
    assert_int_equal(w.client.drains, drains);
    assert_int_equal(w.server.got.len, 0);
    sw_stream_set_reading(w.server.stream, true);
    while (sent < LEN) {
        UNTIL(w.client.drains > drains);
        drains = w.client.drains;
        sent = fill(&w.client, sent, LEN);
    }
    sw_stream_finish(w.client.stream);
    close_side(&w.client); /* what is pending still goes */
    UNTIL(w.server.has_ended);
    assert_int_equal(w.server.end_code, 0);
    assert_pattern(&w.server.got, LEN);
    finish();
}

/* The peer sends on and on and we do not read it; still it gets our last word. */
TEST(gets_the_last_word_through)
{
    begin();
    int fd = bare_client(listen_on("127.0.0.1:0", 0));
    UNTIL(w.server.stream);
    sw_stream_set_reading(w.server.stream, false);
    char bytes[4096] = {0};
    for (int i = 0; i < 50; i++) {
        assert_int_equal(send(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
    }
    sw_stream_write(w.server.stream, "too much", 8);
    sw_stream_finish(w.server.stream);
    close_side(&w.server);
    for (int i = 0; i < 20; i++) {
        turn();
        assert_int_equal(send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL), sizeof(bytes));
    }
    assert_int_equal(recv(fd, bytes, sizeof(bytes), 0), 8);
    assert_int_equal(recv(fd, bytes, sizeof(bytes), 0), 0);
    close(fd);
    finish();
}

TEST(does_not_wait_for_ever_for_a_peer_to_end)
{
    begin();
    int fd = bare_client(listen_on("127.0.0.1:0", 0));
    UNTIL(w.server.stream);
    sw_stream_write(w.server.stream, "bye", 3);
    sw_stream_finish(w.server.stream);
    close_side(&w.server);
    finish(); /* runs until all is closed, though the peer never is */
    char bytes[8];
    assert_int_equal(recv(fd, bytes, sizeof(bytes), 0), 3);
    close(fd);
}

static void drops_what_is_pending(bool with_reset)
{
    begin();
    int fd = bare_client(listen_on("127.0.0.1:0", 0));
    UNTIL(w.server.stream);
    sw_stream_write(w.server.stream, "never", 5);
    if (with_reset) {
        sw_stream_reset(w.server.stream);
    } else {
        sw_stream_close(w.server.stream);
    }
    w.server.stream = NULL;
    turn();
    turn();
    char bytes[8];
    ssize_t len = recv(fd, bytes, sizeof(bytes), 0);
    if (with_reset) {
        assert_int_equal(len, -1);
        assert_int_equal(errno, ECONNRESET);
    } else {
        assert_int_equal(len, 0);
    }
    close(fd);
    finish();
}

TEST(drops_what_is_pending_when_closed)
{
    drops_what_is_pending(false);
}

TEST(resets_if_told)
{
    drops_what_is_pending(true);
}

TEST(resets_even_after_its_end)
{
    begin();
    int fd = bare_client(listen_on("127.0.0.1:0", 0));
    UNTIL(w.server.stream);
    sw_stream_finish(w.server.stream);
    turn();
    turn();
    sw_stream_reset(w.server.stream);
    w.server.stream = NULL;
    turn();
    turn();
    char bytes[8];
    assert_int_equal(recv(fd, bytes, sizeof(bytes), 0), 0); /* the FIN */
    assert_int_equal(send(fd, "x", 1, MSG_NOSIGNAL), -1);
    close(fd);
    finish();
}

TEST(tells_a_reset)
{
    begin();
    int fd = bare_client(listen_on("127.0.0.1:0", 0));
    UNTIL(w.server.stream);
    struct linger at_once = {.l_onoff = 1};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
    close(fd);
    UNTIL(w.server.has_ended);
    assert_int_equal(w.server.end_code, -ECONNRESET);
    assert_true(sw_stream_write(w.server.stream, "x", 1) == 0); /* it learns by trying */
    turn();
    turn();
    assert_true(sw_stream_write(w.server.stream, "x", 1) < 0);
    finish();
}

/* A peer that answers early and hangs up resets us while we still write; the answer counts. */
TEST(reads_the_answer_that_came_before_the_reset)
{
    struct sockaddr_storage address;
    int listener = bare_listener(&address, 10);
    begin();
    connect_to("127.0.0.1", port_of(&address), 0);
    UNTIL(w.client.stream);
    int fd = accept(listener, NULL, NULL);
    assert_true(fd >= 0);
    sw_stream_write(w.client.stream, "a long request", 14);
    turn();
    assert_int_equal(send(fd, "no", 2, 0), 2);
    close(fd); /* unread bytes: a reset */
    sw_stream_write(w.client.stream, "and more of it", 14);
    UNTIL(w.client.has_ended);
    assert_string_equal(w.client.got.bytes, "no");
    assert_true(w.client.end_code < 0);
    close(listener);
    finish();
}

TEST(fails_to_write_to_a_peer_that_has_gone_while_paused)
{
    begin();
    int fd = bare_client(listen_on("127.0.0.1:0", 0));
    UNTIL(w.server.stream);
    sw_stream_set_reading(w.server.stream, false);
    struct linger at_once = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(fd);
    sw_stream_write(w.server.stream, "x", 1);
    UNTIL(w.server.has_ended);
    assert_true(w.server.end_code < 0);
    finish();
}

TEST(may_be_closed_from_every_callback)
{
    for (int when = ON_READ; when <= ON_DRAIN; when++) {
        open_pair(1000, 0);
        struct side *closer = when == ON_DRAIN ? &w.client : &w.server;
        closer->close_when = (enum close_when)when;
        char bytes[1000] = {0};
        assert_int_equal(sw_stream_write(w.client.stream, bytes, 1000), 0);
        assert_int_equal(sw_stream_write(w.client.stream, bytes, 1), -ENOBUFS);
        sw_stream_finish(w.client.stream);
        UNTIL(!closer->stream);
        finish();
    }
}

TEST(stops_reading_while_paused)
{
    open_pair(0, 0);
    sw_stream_set_reading(w.server.stream, false);
    sw_stream_write(w.client.stream, "x", 1);
    for (int i = 0; i < 10; i++) {
        turn();
    }
    assert_int_equal(w.server.reads, 0);
    sw_stream_set_reading(w.server.stream, true);
    sw_stream_set_reading(w.server.stream, true);
    UNTIL(w.server.reads == 1);
    finish();
}

static void check_options(uv_handle_t *handle, void *arg)
{
    static const struct {
        int level, name, value;
    } wanted[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},   {IPPROTO_TCP, TCP_NODELAY, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, 30}, {IPPROTO_TCP, TCP_KEEPINTVL, 10},
        {IPPROTO_TCP, TCP_KEEPCNT, 3},   {IPPROTO_TCP, TCP_USER_TIMEOUT, 60000},
    };
    unsigned *count = arg;
    int fd;
    if (handle->type != UV_TCP || !uv_is_readable((uv_stream_t *)handle) ||
        uv_fileno(handle, &fd)) {
        return;
    }
    for (size_t i = 0; i < SW_ARRAY_SIZE(wanted); i++) {
        int value = -1;
        socklen_t len = sizeof(value);
        assert_int_equal(getsockopt(fd, wanted[i].level, wanted[i].name, &value, &len), 0);
        assert_int_equal(value, wanted[i].value);
    }
    ++*count;
}

TEST(sets_what_finds_a_dead_peer)
{
    open_pair(0, 0);
    unsigned count = 0;
    uv_walk(sw_loop_uv(w.loop), check_options, &count);
    assert_int_equal(count, 2);
    finish();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("tcp", connects_and_names_the_peer),
        CASE("tcp", connects_over_ipv6),
        CASE("tcp", connects_by_name),
        CASE("tcp", says_that_it_was_refused),
        CASE("tcp", says_that_a_name_is_unknown),
        CASE("tcp", takes_the_next_address_where_one_refuses),
        CASE("tcp", takes_the_next_address_where_one_is_silent),
        CASE("tcp", tells_every_address_that_it_tried),
        CASE("tcp", tries_the_avoided_address_last),
        CASE("tcp", may_be_cancelled_at_any_time),
        CASE("tcp", does_not_work_on_a_virtual_loop),
        CASE("tcp", listens_on_all_addresses),
        CASE("tcp", says_why_it_cannot_listen),
        CASE("tcp", lets_connections_wait_while_it_does_not_accept),
        CASE("tcp", may_be_closed_while_it_accepts),
        CASE("tcp", sends_what_is_written_in_one_turn_at_once),
        CASE("tcp", carries_bytes_both_ways),
        CASE("tcp", may_still_write_after_the_other_side_has_ended),
        CASE("tcp", holds_the_writer_back_and_says_when_there_is_room),
        CASE("tcp", gets_the_last_word_through),
        CASE("tcp", does_not_wait_for_ever_for_a_peer_to_end),
        CASE("tcp", drops_what_is_pending_when_closed),
        CASE("tcp", resets_if_told),
        CASE("tcp", resets_even_after_its_end),
        CASE("tcp", tells_a_reset),
        CASE("tcp", reads_the_answer_that_came_before_the_reset),
        CASE("tcp", fails_to_write_to_a_peer_that_has_gone_while_paused),
        CASE("tcp", may_be_closed_from_every_callback),
        CASE("tcp", stops_reading_while_paused),
        CASE("tcp", sets_what_finds_a_dead_peer),
    };
    return RUN(tests);
}
