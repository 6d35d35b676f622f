/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS from end to end in memory, on virtual time: in any pieces, cut at every position, cancelled,
 * blocked, corrupted; and what is said of configurations that cannot be used.
 *
 * Between client and server stands a relay that counts, cuts and changes bytes:
 *     client - pipe - relay - pipe - server
 */
#include "net/tls.h"

#include <errno.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/loop.h"
#include "base/util.h"
#include "foreign.h"
#include "net/stream.h"
#include "side.h"
#include "test.h"

#define WALL_US INT64_C(1893456000000000) /* 2030-01-01, within the life of the certificates */
#define UNTOUCHED SIZE_MAX

enum action {
    END,     /* both sides see an orderly end of the connection */
    RESET,   /* both see a reset */
    CANCEL,  /* the client cancels */
    CORRUPT, /* the byte is changed */
};

/* One direction of the relay. */
struct way {
    struct sw_stream *from, *to;
    struct sw_buf backlog; /* to be written to `to` */
    bool has_ended;        /* `to` is finished after that */
    size_t passed;
    size_t stop_at; /* there the action happens, once */
    enum action action;
};

static struct {
    struct sw_loop *loop;
    struct sw_tls_config *client_config, *server_config;
    struct side client, server;
    struct way up, down; /* towards the server, towards the client */
} w;

/* ---- the sides ---- */

static void side_ready(void *arg, struct sw_stream *stream, const struct sw_error *error)
{
    struct side *side = arg;
    assert_non_null(side->handshake);
    assert_int_equal(side->ready_calls, 0);
    side->ready_calls++;
    side->handshake = NULL;
    side->stream = stream;
    if (!stream) {
        assert_true(error->code < 0);
        assert_true(error->text[0]);
        side->error = *error;
    } else if (side->close_when == ON_READY) {
        close_side(side);
    } else if (!side->is_idle) {
        sw_stream_start(stream, &side_events, side);
    }
}

/* ---- the relay ---- */

static void close_relay(bool with_reset)
{
    struct sw_stream *ends[] = {w.up.from, w.down.from};
    for (int i = 0; i < 2; i++) {
        if (with_reset) {
            sw_stream_reset(ends[i]);
        } else {
            sw_stream_finish(ends[i]);
            sw_stream_close(ends[i]);
        }
    }
    w.up.from = w.up.to = w.down.from = w.down.to = NULL;
    sw_buf_done(&w.up.backlog);
    sw_buf_done(&w.down.backlog);
}

static void flush(struct way *way)
{
    if (!way->to) {
        return;
    }
    size_t room = sw_stream_limit(way->to) - sw_stream_pending(way->to);
    size_t len = SW_MIN(way->backlog.len, room);
    int rc = sw_stream_write(way->to, way->backlog.bytes, len);
    assert_true(rc == 0 || rc == -EPIPE); /* the side may have gone */
    sw_buf_consume(&way->backlog, len);
    if (way->backlog.len > 0) {
        sw_stream_ask_drain(way->to);
    } else if (way->has_ended) {
        sw_stream_finish(way->to);
    }
}

static void pass(struct way *way, const char *bytes, size_t len)
{
    way->passed += len;
    sw_buf_append(&way->backlog, bytes, len);
    flush(way);
}

static void act(struct way *way, const char *bytes)
{
    char changed;
    switch (way->action) {
    case END:
    case RESET:
        close_relay(way->action == RESET);
        return;
    case CANCEL:
        if (w.client.handshake) {
            sw_tls_handshake_cancel(w.client.handshake);
            w.client.handshake = NULL;
        }
        pass(way, bytes, 1);
        return;
    case CORRUPT:
        changed = (char)(*bytes ^ 0x40);
        pass(way, &changed, 1);
        return;
    }
}

static void relay_read(void *arg, const char *bytes, size_t len)
{
    struct way *way = arg;
    if (way->stop_at == UNTOUCHED || way->stop_at < way->passed ||
        way->stop_at - way->passed >= len) {
        pass(way, bytes, len);
        return;
    }
    size_t before = way->stop_at - way->passed;
    pass(way, bytes, before);
    act(way, bytes + before);
    if (way->from) {
        pass(way, bytes + before + 1, len - before - 1);
    }
}

static void relay_end(void *arg, int code)
{
    struct way *way = arg;
    if (code) {
        close_relay(true);
    } else {
        way->has_ended = true;
        flush(way);
    }
}

static void relay_drain(void *arg)
{
    flush(arg == &w.up ? &w.down : &w.up);
}

static const struct sw_stream_events relay_events = {relay_read, relay_end, relay_drain};

/* ---- the stage ---- */

static void run(void)
{
    sw_loop_virtual_advance(w.loop, 0);
}

static void init_side(struct side *side, const char *name)
{
    *side = (struct side){.name = name};
    sw_buf_init(&side->got, SIZE_MAX);
}

static void begin(void)
{
    w.loop = sw_loop_virtual_new(WALL_US, 1);
    init_side(&w.client, "client");
    init_side(&w.server, "server");
    w.up = w.down = (struct way){.stop_at = UNTOUCHED};
    sw_buf_init(&w.up.backlog, SIZE_MAX);
    sw_buf_init(&w.down.backlog, SIZE_MAX);
}

static void shake_hands(size_t limit, size_t max_piece, const char *name)
{
    struct sw_stream *client_end, *server_end;
    sw_pipe_open(w.loop, limit, max_piece, &client_end, &w.up.from);
    sw_pipe_open(w.loop, SIZE_MAX, max_piece, &server_end, &w.down.from);
    w.up.to = w.down.from;
    w.down.to = w.up.from;
    sw_stream_start(w.up.from, &relay_events, &w.up);
    sw_stream_start(w.down.from, &relay_events, &w.down);
    assert_int_equal(sw_tls_connect(w.loop, client_end, w.client_config, name, 0, side_ready,
                                    &w.client, &w.client.handshake),
                     0);
    assert_int_equal(sw_tls_accept(w.loop, server_end, w.server_config, 0, side_ready, &w.server,
                                   &w.server.handshake),
                     0);
    assert_int_equal(w.client.ready_calls + w.server.ready_calls, 0);
    run();
}

static void finish(void)
{
    struct side *sides[] = {&w.client, &w.server};
    for (int i = 0; i < 2; i++) {
        if (sides[i]->handshake) {
            sw_tls_handshake_cancel(sides[i]->handshake);
        }
        sw_stream_close(sides[i]->stream);
        sw_buf_done(&sides[i]->got);
    }
    if (w.up.from) {
        close_relay(false);
    }
    sw_loop_virtual_advance(w.loop, 10000);
    assert_int_equal(sw_loop_close(w.loop), 0);
}

static void open_pair(size_t limit, size_t max_piece)
{
    begin();
    shake_hands(limit, max_piece, "server.test");
    if (w.client.error.code || w.server.error.code) {
        fail_msg("client: %s; server: %s", w.client.error.text, w.server.error.text);
    }
    assert_non_null(w.client.stream);
    assert_non_null(w.server.stream);
}

static struct sw_tls_config *make_client(const char *ca, const char *certificate, const char *key,
                                         struct sw_error *error)
{
    SW_AUTO(char, sw_free) ca_pem = ca ? folder_read(ca) : NULL;
    SW_AUTO(char, sw_free) certificate_pem = certificate ? folder_read(certificate) : NULL;
    SW_AUTO(char, sw_free) key_pem = key ? folder_read(key) : NULL;
    struct sw_tls_config *config = NULL;
    struct sw_tls_client_options options = {
        .ca_pem = ca_pem, .certificate_pem = certificate_pem, .key_pem = key_pem};
    int rc = sw_tls_client_config_new(&options, &config, error);
    assert_int_equal(rc, config ? 0 : error->code);
    return config;
}

static struct sw_tls_config *make_server(const char *certificate, const char *key,
                                         const char *client_ca, struct sw_error *error)
{
    SW_AUTO(char, sw_free) certificate_pem = certificate ? folder_read(certificate) : NULL;
    SW_AUTO(char, sw_free) key_pem = key ? folder_read(key) : NULL;
    SW_AUTO(char, sw_free) ca_pem = client_ca ? folder_read(client_ca) : NULL;
    struct sw_tls_config *config = NULL;
    struct sw_tls_server_options options = {
        .certificate_pem = certificate_pem, .key_pem = key_pem, .client_ca_pem = ca_pem};
    int rc = sw_tls_server_config_new(&options, &config, error);
    assert_int_equal(rc, config ? 0 : error->code);
    return config;
}

static void make_configs(const char *server, const char *client_ca, const char *client)
{
    char pem[64], key[64], client_pem[64], client_key[64];
    struct sw_error error = {0};
    snprintf(pem, sizeof(pem), "%s.pem", server);
    snprintf(key, sizeof(key), "%s.key", server);
    snprintf(client_pem, sizeof(client_pem), "%s.pem", client ? client : "");
    snprintf(client_key, sizeof(client_key), "%s.key", client ? client : "");
    w.client_config =
        make_client("ca.pem", client ? client_pem : NULL, client ? client_key : NULL, &error);
    w.server_config = make_server(pem, key, client_ca, &error);
    if (!w.client_config || !w.server_config) {
        fail_msg("%s", error.text);
    }
}

static void drop_configs(void)
{
    w.client_config = sw_tls_config_unref(w.client_config);
    w.server_config = sw_tls_config_unref(w.server_config);
}

/* A run of bytes in which a lost or doubled one shows. */
static char *pattern(size_t len)
{
    char *bytes = sw_malloc(len);
    for (size_t i = 0; i < len; i++) {
        bytes[i] = (char)(i * 7 + i / 251);
    }
    return bytes;
}

/* ---- tests ---- */

TEST(carries_bytes_in_pieces_of_any_size)
{
    static const size_t pieces[] = {1, 2, 3, 5, 7, 64, 1000, 0};
    make_configs("dns", NULL, NULL);
    for (size_t i = 0; i < SW_ARRAY_SIZE(pieces); i++) {
        open_pair(SIZE_MAX, pieces[i]);
        assert_int_equal(sw_stream_write(w.client.stream, "hello ", 6), 0);
        assert_int_equal(sw_stream_write(w.client.stream, "server", 6), 0);
        assert_int_equal(sw_stream_write(w.server.stream, "hello client", 12), 0);
        assert_int_equal(w.client.reads + w.server.reads, 0);
        run();
        assert_string_equal(w.server.got.bytes, "hello server");
        assert_string_equal(w.client.got.bytes, "hello client");
        sw_stream_finish(w.client.stream);
        run();
        assert_true(w.server.has_ended && w.server.end_code == 0);
        finish();
    }
    drop_configs();
}

TEST(makes_one_record_of_what_is_written_in_one_turn)
{
    make_configs("dns", NULL, NULL);
    open_pair(SIZE_MAX, 0);
    size_t before = w.up.passed;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(sw_stream_write(w.client.stream, "0123456789", 10), 0);
    }
    run();
    assert_int_equal(w.server.got.len, 200);
    assert_int_equal(w.server.reads, 1);
    assert_in_range(w.up.passed - before, 200 + 5 + 16, 200 + 5 + 8 + 16 + 1);
    finish();
    drop_configs();
}

TEST(carries_much_through_little)
{
    enum { LEN = 300 * 1000 };
    SW_AUTO(char, sw_free) bytes = pattern(LEN);
    static const size_t limits[] = {100, 1000, 16500, 100000};
    make_configs("dns", NULL, NULL);
    for (size_t i = 0; i < SW_ARRAY_SIZE(limits); i++) {
        open_pair(limits[i], 0);
        size_t limit = limits[i];
        assert_int_equal(sw_stream_limit(w.client.stream), limit);
        size_t sent = 0;
        while (sent < LEN) {
            size_t len = SW_MIN((size_t)LEN - sent, limit / 3);
            unsigned drains = w.client.drains;
            int rc = sw_stream_write(w.client.stream, bytes + sent, len);
            assert_true(sw_stream_pending(w.client.stream) <= limit + 100);
            if (rc == -ENOBUFS) {
                run();
                assert_int_equal(w.client.drains, drains + 1);
            } else {
                assert_int_equal(rc, 0);
                sent += len;
            }
        }
        sw_stream_finish(w.client.stream);
        close_side(&w.client);
        run();
        assert_int_equal(w.server.got.len, LEN);
        assert_memory_equal(w.server.got.bytes, bytes, LEN);
        assert_true(w.server.has_ended && w.server.end_code == 0);
        finish();
    }
    drop_configs();
}

TEST(holds_the_writer_while_the_reader_pauses)
{
    enum { LEN = 200 * 1000 };
    SW_AUTO(char, sw_free) bytes = pattern(LEN);
    make_configs("dns", NULL, NULL);
    open_pair(SIZE_MAX, 0);
    sw_stream_set_reading(w.server.stream, false);
    assert_int_equal(sw_stream_write(w.client.stream, bytes, LEN), 0);
    sw_stream_finish(w.client.stream);
    run();
    assert_int_equal(w.server.reads, 0);
    assert_false(w.server.has_ended);
    sw_stream_set_reading(w.server.stream, true);
    assert_int_equal(w.server.reads, 0);
    run();
    assert_int_equal(w.server.got.len, LEN);
    assert_memory_equal(w.server.got.bytes, bytes, LEN);
    assert_true(w.server.has_ended);
    finish();
    drop_configs();
}

/* What came behind the last message of the handshake waits for whoever starts the stream. */
TEST(keeps_what_comes_before_the_start)
{
    make_configs("dns", NULL, NULL);
    begin();
    w.server.is_idle = true;
    shake_hands(SIZE_MAX, 0, "server.test");
    sw_stream_write(w.client.stream, "early", 5);
    sw_stream_finish(w.client.stream);
    run();
    assert_int_equal(w.server.reads, 0);
    sw_stream_start(w.server.stream, &side_events, &w.server);
    assert_int_equal(w.server.reads, 0);
    run();
    assert_string_equal(w.server.got.bytes, "early");
    assert_true(w.server.has_ended && w.server.end_code == 0);
    finish();
    drop_configs();
}

TEST(may_still_write_after_the_other_side_has_ended)
{
    make_configs("dns", NULL, NULL);
    open_pair(SIZE_MAX, 0);
    sw_stream_finish(w.client.stream);
    run();
    assert_true(w.server.has_ended && w.server.end_code == 0);
    assert_int_equal(sw_stream_write(w.client.stream, "x", 1), -EPIPE);
    assert_int_equal(sw_stream_write(w.server.stream, "late", 4), 0);
    run();
    assert_string_equal(w.client.got.bytes, "late");
    finish();
    drop_configs();
}

TEST(tells_a_truncated_stream_from_an_ended_one)
{
    make_configs("dns", NULL, NULL);
    open_pair(SIZE_MAX, 0);
    sw_stream_write(w.server.stream, "half a li", 9);
    run();
    close_relay(false);
    run();
    assert_string_equal(w.client.got.bytes, "half a li");
    assert_true(w.client.has_ended);
    assert_int_equal(w.client.end_code, SW_E_TRUNCATED);
    assert_int_equal(w.server.end_code, SW_E_TRUNCATED);
    finish();

    open_pair(SIZE_MAX, 0);
    close_relay(true);
    run();
    assert_int_equal(w.client.end_code, -ECONNRESET);
    assert_true(sw_stream_write(w.client.stream, "x", 1) < 0);
    finish();
    drop_configs();
}

TEST(breaks_at_a_changed_byte)
{
    SW_AUTO(char, sw_free) bytes = pattern(100);
    make_configs("dns", NULL, NULL);
    for (size_t at = 0; at < 5 + 100 + 16; at += 4) { /* header, text, tag */
        open_pair(SIZE_MAX, 0);
        w.up.stop_at = w.up.passed + at;
        w.up.action = CORRUPT;
        sw_stream_write(w.client.stream, bytes, 100);
        sw_stream_finish(w.client.stream);
        run();
        assert_true(w.server.has_ended);
        if (w.server.end_code != SW_E_TLS && w.server.end_code != SW_E_TRUNCATED) {
            fail_msg("byte %zu changed: end with %d", at, w.server.end_code);
        }
        assert_int_equal(w.server.got.len, 0);
        finish();
    }
    drop_configs();
}

/* One handshake with something happening at byte `at` of one direction. False when it had ended
 * before. */
static bool disturb(bool is_up, size_t at, enum action action)
{
    begin();
    struct way *way = is_up ? &w.up : &w.down;
    way->stop_at = at;
    way->action = action;
    shake_hands(SIZE_MAX, 0, "server.test");
    sw_loop_virtual_advance(w.loop, 20000); /* beyond every time-out */
    bool was_reached = way->passed > at || !way->from;
    bool was_cancelled = action == CANCEL && was_reached;
    assert_true(w.server.ready_calls == 1);
    assert_true(w.client.ready_calls == 1 || was_cancelled);
    finish();
    return was_reached;
}

TEST(survives_a_cut_at_every_position_of_the_handshake)
{
    for (int is_up = 0; is_up < 2; is_up++) {
        size_t at = 0;
        bool was_reached = true;
        while (was_reached) {
            /* New ones, so that no session is resumed. */
            if (at % 64 == 0) {
                drop_configs();
                make_configs("dns", NULL, NULL);
            }
            was_reached = disturb(is_up, at, at % 5 == 0 ? RESET : END);
            at++;
        }
        assert_true(at > 200);
    }
    drop_configs();
}

TEST(survives_a_cancel_at_many_positions_of_the_handshake)
{
    make_configs("dns", NULL, NULL);
    for (int is_up = 0; is_up < 2; is_up++) {
        for (size_t at = 0; disturb(is_up, at, CANCEL); at += 13) {
        }
    }
    drop_configs();
}

TEST(survives_a_changed_byte_at_many_positions_of_the_handshake)
{
    make_configs("dns", NULL, NULL);
    for (int is_up = 0; is_up < 2; is_up++) {
        for (size_t at = 0; disturb(is_up, at, CORRUPT); at += 7) {
        }
    }
    drop_configs();
}

TEST(says_where_the_handshake_was_cut)
{
    make_configs("dns", NULL, NULL);
    begin();
    w.down.stop_at = 0;
    shake_hands(SIZE_MAX, 0, "server.test");
    assert_int_equal(w.client.error.code, SW_E_TRUNCATED);
    assert_string_equal(w.client.error.text,
                        "TLS handshake failed: the server closed the connection at once");
    finish();
    begin();
    w.down.stop_at = 300;
    shake_hands(SIZE_MAX, 0, "server.test");
    assert_string_equal(
        w.client.error.text,
        "TLS handshake failed: the server closed the connection in the middle of it");
    finish();
    begin();
    w.down.stop_at = 300;
    w.down.action = RESET;
    shake_hands(SIZE_MAX, 0, "server.test");
    assert_int_equal(w.client.error.code, -ECONNRESET);
    finish();
    drop_configs();
}

TEST(gives_up_on_a_silent_peer)
{
    make_configs("dns", NULL, NULL);
    begin();
    struct sw_stream *lower;
    struct sw_stream *silent;
    sw_pipe_open(w.loop, SIZE_MAX, 0, &lower, &silent);
    assert_int_equal(sw_tls_connect(w.loop, lower, w.client_config, "server.test", 3000, side_ready,
                                    &w.client, &w.client.handshake),
                     0);
    sw_loop_virtual_advance(w.loop, 2999);
    assert_int_equal(w.client.ready_calls, 0);
    sw_loop_virtual_advance(w.loop, 1);
    assert_int_equal(w.client.ready_calls, 1);
    assert_int_equal(w.client.error.code, -ETIMEDOUT);
    assert_non_null(strstr(w.client.error.text, "did not answer in time (it sent nothing at all)"));
    sw_stream_close(silent);
    finish();
    drop_configs();
}

TEST(names_a_peer_that_speaks_plain_http)
{
    make_configs("dns", NULL, NULL);
    for (int is_server = 0; is_server < 2; is_server++) {
        begin();
        struct sw_stream *lower, *other;
        sw_pipe_open(w.loop, SIZE_MAX, 1, &lower, &other);
        if (is_server) {
            sw_tls_accept(w.loop, lower, w.server_config, 0, side_ready, &w.client,
                          &w.client.handshake);
            sw_stream_write(other, "GET / HTTP/1.1\r\n\r\n", 18);
        } else {
            sw_tls_connect(w.loop, lower, w.client_config, "server.test", 0, side_ready, &w.client,
                           &w.client.handshake);
            sw_stream_write(other, "HTTP/1.1 400 Bad Request\r\n\r\n", 28);
        }
        run();
        assert_int_equal(w.client.error.code, SW_E_TLS);
        assert_non_null(strstr(w.client.error.text, is_server ? "the client speaks plain HTTP"
                                                              : "the server speaks plain HTTP"));
        sw_stream_close(other);
        finish();
    }
    drop_configs();
}

TEST(may_be_closed_from_every_callback)
{
    make_configs("dns", NULL, NULL);
    for (int when = ON_READY; when <= ON_DRAIN; when++) {
        for (int is_server = 0; is_server < 2; is_server++) {
            begin();
            struct side *closer = is_server ? &w.server : &w.client;
            struct side *other = is_server ? &w.client : &w.server;
            closer->close_when = (enum close_when)when;
            shake_hands(1000, 7, "server.test");
            assert_int_equal(other->ready_calls, 1);
            if (when == ON_DRAIN) {
                sw_stream_ask_drain(closer->stream);
            } else if (other->stream) {
                sw_stream_write(other->stream, "12345", 5);
                sw_stream_finish(other->stream);
            }
            run();
            assert_null(closer->stream);
            assert_int_equal(closer->reads, when == ON_READ || when == ON_END ? 1 : 0);
            finish();
        }
    }
    drop_configs();
}

TEST(resumes_sessions_by_configuration_and_name)
{
    make_configs("dns", NULL, NULL);
    open_pair(SIZE_MAX, 0);
    sw_stream_write(w.server.stream, "x", 1); /* TLS 1.3 sends its tickets when all is done */
    run();
    size_t full = w.down.passed;
    finish();
    open_pair(SIZE_MAX, 0);
    size_t resumed = w.down.passed;
    assert_true(resumed + 300 < full); /* no certificate is sent */
    finish();
    /* Another name is another session. */
    begin();
    shake_hands(SIZE_MAX, 0, "a.wild.test");
    assert_non_null(w.client.stream);
    assert_true(w.down.passed > resumed + 300);
    finish();
    /* And a name that is refused stays so. */
    begin();
    shake_hands(SIZE_MAX, 0, "other.test");
    assert_null(w.client.stream);
    finish();
    drop_configs();
}

TEST(falls_back_to_a_full_handshake)
{
    make_configs("dns", NULL, NULL);
    open_pair(SIZE_MAX, 0);
    sw_stream_write(w.server.stream, "x", 1);
    run();
    finish();
    /* The server is another one and cannot read the ticket. */
    struct sw_error error;
    sw_tls_config_unref(w.server_config);
    w.server_config = make_server("both.pem", "both.key", NULL, &error);
    open_pair(SIZE_MAX, 0);
    finish();
    drop_configs();
}

TEST(keeps_the_configuration_it_began_with)
{
    make_configs("dns", NULL, NULL);
    open_pair(SIZE_MAX, 0);
    drop_configs();
    sw_stream_write(w.client.stream, "still", 5);
    run();
    assert_string_equal(w.server.got.bytes, "still");
    finish();
}

TEST(demands_certificates_of_clients)
{
    static const struct {
        const char *client, *server_says;
    } rows[] = {
        {"client", NULL},
        {NULL, "the client shows no certificate"},
        {"badclient", "its issuer CN=stranger is not among the CAs"},
        {"dns", "extended key usage"},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
        make_configs("dns", "ca.pem", rows[i].client);
        begin();
        shake_hands(SIZE_MAX, 0, "server.test");
        if (rows[i].server_says) {
            assert_null(w.server.stream);
            assert_int_equal(w.server.error.code, SW_E_CERTIFICATE);
            if (!strstr(w.server.error.text, rows[i].server_says)) {
                fail_msg("wanted \"%s\", got \"%s\"", rows[i].server_says, w.server.error.text);
            }
        } else {
            assert_non_null(w.server.stream);
            assert_non_null(w.client.stream);
        }
        finish();
        drop_configs();
    }
}

/* The loop's clock decides, not the system's. */
TEST(goes_by_the_clock_of_the_loop)
{
    make_configs("dns", NULL, NULL);
    int64_t not_after = sw_tls_config_not_after(w.server_config);
    assert_true(not_after > WALL_US);
    assert_true(sw_tls_config_not_after(w.client_config) == INT64_MAX);
    begin();
    /* The CA was made some seconds earlier, and ends as much earlier. */
    sw_loop_virtual_shift_wall(w.loop, not_after - 60 * 1000000 - WALL_US);
    shake_hands(SIZE_MAX, 0, "server.test");
    assert_non_null(w.client.stream);
    finish();
    drop_configs();
    make_configs("dns", NULL, NULL);
    begin();
    sw_loop_virtual_shift_wall(w.loop, not_after + 1000000 - WALL_US);
    shake_hands(SIZE_MAX, 0, "server.test");
    assert_int_equal(w.client.error.code, SW_E_CERTIFICATE);
    assert_non_null(strstr(w.client.error.text, "expired on"));
    finish();
    drop_configs();
}

/* ---- configurations ---- */

TEST(takes_every_form_of_key)
{
    static const char *const pairs[][2] = {
        {"dns.pem", "dns.key"},       {"dns.pem", "dns-pkcs8.key"}, {"rsa.pem", "rsa.key"},
        {"rsa.pem", "rsa-pkcs1.key"}, {"p384.pem", "p384.key"},     {"chain.pem", "end.key"},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(pairs); i++) {
        struct sw_error error = {0};
        struct sw_tls_config *config = make_client("ca.pem", pairs[i][0], pairs[i][1], &error);
        if (!config) {
            fail_msg("%s: %s", pairs[i][1], error.text);
        }
        assert_true(sw_tls_config_not_after(config) < INT64_MAX);
        assert_ptr_equal(sw_tls_config_ref(config), config);
        sw_tls_config_unref(config);
        sw_tls_config_unref(config);
    }
    assert_null(sw_tls_config_unref(NULL));
}

TEST(says_what_is_wrong_with_a_configuration)
{
    static const struct {
        const char *ca, *certificate, *key, *why;
    } rows[] = {
        {"ca.key", NULL, NULL, "CA is not PEM: there is no \"-----BEGIN CERTIFICATE-----\" in it"},
        {"edca.pem", NULL, NULL, "CA has an Ed25519 key"},
        {"ca.pem", "dns.pem", NULL, "certificate without its private key"},
        {"ca.pem", NULL, "dns.key", "private key without its certificate"},
        {"ca.pem", "dns.pem", "ip.key", "does not fit the certificate (CN=by DNS)"},
        {"ca.pem", "dns.pem", "rsa.key", "does not fit"},
        {"ca.pem", "dns.key", "dns.key", "certificate is not PEM"},
        {"ca.pem", "dns.pem", "dns.pem", "private key is not PEM"},
        {"ca.pem", "dns.pem", "dns-encrypted.key", "encrypted"},
        {"ca.pem", "dns.pem", "dns-encrypted-sec1.key", "encrypted"},
        {"ca.pem", "ed25519.pem", "ed25519.key", "certificate has an Ed25519 key"},
        {"ca.pem", "dns.pem", "ed25519.key", "private key is an Ed25519 key"},
        {"ca.pem", "dns.pem", "cut.key", "private key cannot be used"},
        {"cut.pem", NULL, NULL, "CA cannot be used"},
    };
    char *whole = folder_read("dns.key");
    whole[strlen(whole) - 60] = '\n';
    test_write_file(folder_path("cut.key"), whole, strlen(whole));
    sw_free(whole);
    whole = folder_read("ca.pem");
    test_write_file(folder_path("cut.pem"), whole, strlen(whole) - 40);
    sw_free(whole);
    for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
        struct sw_error error = {0};
        assert_null(make_client(rows[i].ca, rows[i].certificate, rows[i].key, &error));
        assert_int_equal(error.code, SW_E_SYNTAX);
        if (!strstr(error.text, rows[i].why)) {
            fail_msg("wanted \"%s\", got \"%s\"", rows[i].why, error.text);
        }
    }
    struct sw_error error = {0};
    assert_null(make_server(NULL, NULL, NULL, &error));
    assert_null(make_server("dns.pem", "dns.key", "dns.key", &error));
    assert_non_null(strstr(error.text, "CA of the clients"));
}

TEST(refuses_a_ca_that_is_not_to_be_checked)
{
    SW_AUTO(char, sw_free) ca = folder_read("ca.pem");
    struct sw_tls_config *config = NULL;
    struct sw_error error;
    assert_int_equal(
        sw_tls_client_config_new(
            &(struct sw_tls_client_options){.ca_pem = ca, .insecure_skip_verify = true}, &config,
            &error),
        SW_E_CONFIG);
    assert_null(config);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("tls", carries_bytes_in_pieces_of_any_size),
        CASE("tls", makes_one_record_of_what_is_written_in_one_turn),
        CASE("tls", carries_much_through_little),
        CASE("tls", holds_the_writer_while_the_reader_pauses),
        CASE("tls", keeps_what_comes_before_the_start),
        CASE("tls", may_still_write_after_the_other_side_has_ended),
        CASE("tls", tells_a_truncated_stream_from_an_ended_one),
        CASE("tls", breaks_at_a_changed_byte),
        CASE("tls", survives_a_cut_at_every_position_of_the_handshake),
        CASE("tls", survives_a_cancel_at_many_positions_of_the_handshake),
        CASE("tls", survives_a_changed_byte_at_many_positions_of_the_handshake),
        CASE("tls", says_where_the_handshake_was_cut),
        CASE("tls", gives_up_on_a_silent_peer),
        CASE("tls", names_a_peer_that_speaks_plain_http),
        CASE("tls", may_be_closed_from_every_callback),
        CASE("tls", resumes_sessions_by_configuration_and_name),
        CASE("tls", falls_back_to_a_full_handshake),
        CASE("tls", keeps_the_configuration_it_began_with),
        CASE("tls", demands_certificates_of_clients),
        CASE("tls", goes_by_the_clock_of_the_loop),
        CASE("tls", takes_every_form_of_key),
        CASE("tls", says_what_is_wrong_with_a_configuration),
        CASE("tls", refuses_a_ca_that_is_not_to_be_checked),
    };
    folder_make();
    int rc = RUN(tests);
    folder_remove();
    return rc;
}
