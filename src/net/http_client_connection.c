/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection of the client.
 *
 *     CONNECTING   TCP, the way through a proxy   IDLE or BUSY; a failure ends the exchange that it
 *                  where there is one, TLS        was opened for
 *     IDLE         kept; whatever is read or      BUSY; closed after idle_timeout_ms
 *                  ends on it closes it
 *     BUSY         a request is sent, its         IDLE, or closed
 *                  answer read
 *     CLOSED
 *
 * A connection goes back to IDLE only if nothing can be left over on it: the request was sent to
 * its end, the answer was whole and not followed by anything, and both sides keep it alive.
 *
 * Events of an answer (head, body) may cancel the exchange and so close the connection while its
 * parser is running: the memory stays while calls is above 0.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "net/http_client_internal.h"
#include "net/stream.h"
#include "net/tcp.h"
#include "net/tls.h"
#include "net/tunnel.h"

/* A request is given to the stream in pieces; with four of them on their way the next one waits. */
#define PIECE_BYTES ((size_t)64 * 1024)
#define WRITE_LIMIT_BYTES (4 * PIECE_BYTES)
/* Reading was turned off within a piece; a TLS stream may hand on a record or two besides. */
#define HELD_LIMIT_BYTES ((size_t)1024 * 1024)

/* ---- end of a connection ---- */

static void leave(struct sw_http_connection *c)
{
    c->calls--;
    if (c->calls == 0 && c->state == SW_HTTP_CLOSED) {
        sw_http_parser_free(c->parser);
        sw_free(c);
    }
}

static void abandon_connecting(struct sw_http_connection *c)
{
    if (c->connect) {
        sw_tcp_connect_cancel(sw_steal(&c->connect));
    }
    if (c->tunnel) {
        sw_tunnel_cancel(sw_steal(&c->tunnel));
    }
    if (c->handshake) {
        sw_tls_handshake_cancel(sw_steal(&c->handshake));
    }
}

static void close_with(struct sw_http_connection *c, void (*close_stream)(struct sw_stream *))
{
    if (c->state == SW_HTTP_CLOSED) {
        return;
    }
    sw_assert(!c->exchange);
    c->calls++;
    abandon_connecting(c);
    if (c->stream) {
        c->client->open--;
    }
    close_stream(sw_steal(&c->stream));
    c->state = SW_HTTP_CLOSED;
    sw_timer_stop(&c->idle);
    sw_defer_stop(&c->resume);
    sw_link_remove(&c->link);
    sw_link_remove(&c->idle_link);
    if (c->intended) {
        c->intended->attempt = NULL;
    }
    sw_buf_done(&c->held);
    sw_http_client_wake(c->client);
    c->lane->connections--;
    leave(c);
}

void sw_http_connection_close(struct sw_http_connection *c)
{
    close_with(c, sw_stream_close);
}

void sw_http_connection_reset(struct sw_http_connection *c)
{
    close_with(c, sw_stream_reset);
}

/* With a TLS close_notify, so that the server need not suspect an attack. */
static void close_orderly(struct sw_http_connection *c)
{
    sw_stream_finish(c->stream);
    sw_http_connection_close(c);
}

static void avoid(struct sw_http_connection *c)
{
    snprintf(c->client->avoided, sizeof(c->client->avoided), "%s", c->peer);
}

/* ---- sending ---- */

/* The connection is of no use any more, and its exchange has no whole answer. */
static void broken(struct sw_http_connection *c, int code)
{
    struct sw_http_exchange *e = c->exchange;

    if (!e) {
        sw_http_connection_close(c);
        return;
    }
    if (c->is_reused && !c->is_answering && e->may_replay && !e->is_replay) {
        /* The server closed the idle connection while the request was on its way (RFC 9112 section
         * 9.3.1). */
        sw_log_debug(c->client->log, "kept connection was dead, sending again on a new one",
                     SW_STR("peer", c->peer), SW_ERR(code));
        sw_http_exchange_detach(e);
        e->is_replay = true;
        sw_link_add_first(&c->lane->queue, &e->link);
        sw_http_connection_close(c);
        return;
    }
    const char *why = code < 0 ? sw_strerror(code) : "closed by the server";
    avoid(c);
    if (c->is_answering) {
        sw_http_exchange_end(e, SW_E_TRUNCATED,
                             "%s: connection ended in the middle of an answer: %s", c->peer, why);
    } else {
        sw_http_exchange_end(e, code < 0 && code != SW_E_TRUNCATED ? code : -ECONNRESET,
                             "%s: %s connection ended before the answer: %s", c->peer,
                             c->is_reused ? "kept" : "new", why);
    }
    sw_http_connection_close(c);
}

static void push_request(struct sw_http_connection *c)
{
    struct sw_http_exchange *e = c->exchange;
    int rc = 0;

    while (rc == 0 && c->sent < e->wire.len) {
        size_t n = SW_MIN(e->wire.len - c->sent, PIECE_BYTES);
        rc = sw_stream_write(c->stream, e->wire.bytes + c->sent, n);
        if (rc == 0) {
            c->sent += n;
            e->was_sent = true;
        }
    }
    /* A server may answer before it has read everything and then end its side. What it said counts
     * more than our failure to go on; the end of the stream follows in any case. */
    if (rc < 0 && rc != -ENOBUFS && !c->is_answering) {
        broken(c, rc);
    }
}

static void become_idle(struct sw_http_connection *c);

void sw_http_connection_start(struct sw_http_connection *c, struct sw_http_exchange *e)
{
    sw_assert(c->state == SW_HTTP_IDLE && !c->exchange);
    int rc = e->events->on_send ? e->events->on_send(e->arg) : 0;
    if (rc < 0) {
        sw_http_exchange_end(e, rc, "not sent: %s", sw_strerror(rc));
        if (!sw_link_is_used(&c->idle_link)) {
            become_idle(c); /* it was made for this one */
        }
        return;
    }
    sw_http_exchange_detach(e);
    sw_timer_stop(&c->idle);
    sw_link_remove(&c->idle_link);
    c->state = SW_HTTP_BUSY;
    c->exchange = e;
    c->sent = 0;
    c->is_answering = false;
    c->has_answer = false;
    c->keeps_alive = false;
    e->connection = c;
    sw_http_parser_expect(c->parser, e->is_head, e->body_limit);
    if (!e->is_reading) {
        sw_http_connection_set_reading(c, false);
    }
    push_request(c);
}

/* ---- answers ---- */

static int on_head(void *arg, const struct sw_http_head *head)
{
    struct sw_http_connection *c = arg;
    struct sw_http_exchange *e = c->exchange;

    c->keeps_alive = head->keeps_alive;
    e->has_head = true;
    if (e->events->on_head) {
        e->events->on_head(e->arg, head);
    }
    if (c->state == SW_HTTP_CLOSED) {
        return -ECANCELED;
    }
    sw_http_exchange_heard(e);
    return 0;
}

static int on_body(void *arg, const char *bytes, size_t len)
{
    struct sw_http_connection *c = arg;
    struct sw_http_exchange *e = c->exchange;

    if (e->events->on_body) {
        e->events->on_body(e->arg, bytes, len);
    }
    if (c->state == SW_HTTP_CLOSED) {
        return -ECANCELED;
    }
    sw_http_exchange_heard(e);
    return 0;
}

static int on_message_end(void *arg)
{
    struct sw_http_connection *c = arg;

    c->has_answer = true;
    sw_http_parser_pause(c->parser);
    return 0;
}

static const struct sw_http_parser_events parser_events = {on_head, on_body, on_message_end};

static void become_idle(struct sw_http_connection *c)
{
    /* A lane of its own keeps one connection; a second one was opened beside it. */
    if (c->lane->name && sw_link_is_used(&c->lane->idle)) {
        close_orderly(c);
        return;
    }
    c->state = SW_HTTP_IDLE;
    sw_link_add_first(&c->lane->idle, &c->idle_link);
    sw_timer_start(&c->idle, c->client->options.idle_timeout_ms);
    sw_http_client_wake(c->client);
}

static void answered(struct sw_http_connection *c, bool has_rest)
{
    struct sw_http_exchange *e = c->exchange;
    bool is_sent = c->sent == e->wire.len && sw_stream_pending(c->stream) == 0;

    if (strcmp(c->client->avoided, c->peer) == 0) {
        c->client->avoided[0] = '\0';
    }
    sw_http_exchange_end(e, 0, "%s", "");
    if (!is_sent) {
        sw_http_connection_close(c);
        return;
    }
    if (!c->keeps_alive || c->is_stale || c->has_ended || has_rest) {
        close_orderly(c);
        return;
    }
    sw_http_parser_resume(c->parser);
    sw_http_parser_trim(c->parser);
    c->is_reused = true;
    become_idle(c);
}

static void consume(struct sw_http_connection *c, const char *bytes, size_t len)
{
    size_t used;

    c->calls++;
    int rc = sw_http_parser_feed(c->parser, bytes, len, &used);
    if (c->state == SW_HTTP_CLOSED) {
        leave(c);
        return;
    }
    if (rc < 0) {
        sw_http_exchange_end(c->exchange, rc, "%s: bad answer: %s", c->peer,
                             sw_http_parser_why(c->parser));
        sw_http_connection_close(c);
    } else if (c->has_answer) {
        answered(c, used < len);
    } else if (used < len && sw_buf_append(&c->held, bytes + used, len - used) < 0) {
        sw_http_exchange_end(c->exchange, SW_E_TOO_LARGE, "%s: too much came at once", c->peer);
        sw_http_connection_close(c);
    }
    leave(c);
}

static void on_read(void *arg, const char *bytes, size_t len)
{
    struct sw_http_connection *c = arg;

    if (c->state != SW_HTTP_BUSY) {
        sw_log_debug(c->client->log, "bytes on an idle connection, closing it",
                     SW_STR("peer", c->peer));
        sw_http_connection_close(c);
        return;
    }
    c->is_answering = true;
    if (c->exchange->is_reading && c->held.len == 0) {
        consume(c, bytes, len);
    } else if (sw_buf_append(&c->held, bytes, len) < 0) {
        sw_http_exchange_end(c->exchange, SW_E_TOO_LARGE, "%s: too much came at once", c->peer);
        sw_http_connection_close(c);
    }
}

/* The end may be that of a body without a length. */
static void ended(struct sw_http_connection *c)
{
    if (c->is_answering && sw_http_parser_finish(c->parser) == 0 && c->has_answer) {
        c->keeps_alive = false;
        answered(c, false);
    } else {
        broken(c, 0);
    }
}

static void on_end(void *arg, int code)
{
    struct sw_http_connection *c = arg;

    if (c->state != SW_HTTP_BUSY || code < 0) {
        broken(c, code);
    } else if (!c->exchange->is_reading || c->held.len > 0) {
        c->has_ended = true;
    } else {
        ended(c);
    }
}

static void on_drain(void *arg)
{
    struct sw_http_connection *c = arg;

    if (c->state == SW_HTTP_BUSY) {
        push_request(c);
    }
}

static const struct sw_stream_events stream_events = {on_read, on_end, on_drain};

/* ---- holding up ---- */

static void resume(struct sw_defer *defer)
{
    struct sw_http_connection *c = container_of(defer, struct sw_http_connection, resume);
    struct sw_buf held = c->held;

    if (c->state != SW_HTTP_BUSY || !c->exchange->is_reading) {
        return;
    }
    c->calls++;
    sw_buf_init(&c->held, HELD_LIMIT_BYTES);
    consume(c, held.bytes, held.len);
    sw_buf_done(&held);
    if (c->state == SW_HTTP_BUSY && c->exchange->is_reading) {
        if (c->has_ended) {
            ended(c);
        }
    }
    leave(c);
}

void sw_http_connection_set_reading(struct sw_http_connection *c, bool is_on)
{
    sw_stream_set_reading(c->stream, is_on);
    if (is_on) {
        sw_http_parser_resume(c->parser);
        sw_defer_start(&c->resume);
    } else {
        sw_http_parser_pause(c->parser);
    }
}

/* ---- begin of a connection ---- */

/* Whoever it was opened for may have been served meanwhile; then the first one that waits. */
static void ready(struct sw_http_connection *c, struct sw_stream *stream)
{
    const struct sw_http_limits limits = {.head_bytes = c->client->options.head_limit_bytes};
    struct sw_http_exchange *e = c->intended;
    struct sw_link *first = sw_link_first(&c->lane->queue);

    c->stream = stream;
    c->client->open++;
    c->client->connects++;
    c->parser = sw_http_parser_new(SW_HTTP_RESPONSES, &limits, &parser_events, c);
    c->state = SW_HTTP_IDLE;
    sw_stream_start(stream, &stream_events, c);
    if (!e && first) {
        e = container_of(first, struct sw_http_exchange, link);
    }
    if (e) {
        sw_http_connection_start(c, e);
    } else {
        become_idle(c);
    }
}

static void failed(struct sw_http_connection *c, int code, const char *why)
{
    if (c->intended) {
        sw_http_exchange_end(c->intended, code, "%s", why);
    } else {
        sw_log_debug(c->client->log, "a connection that nobody waits for any more failed",
                     SW_STR("error", why));
    }
    sw_http_connection_close(c);
}

static void on_tls(void *arg, struct sw_stream *stream, const struct sw_error *error)
{
    struct sw_http_connection *c = arg;

    c->handshake = NULL;
    if (stream) {
        ready(c, stream);
        return;
    }
    avoid(c);
    failed(c, error->code, error->text);
}

/* The stream leads to the server. */
static void reached(struct sw_http_connection *c, struct sw_stream *stream)
{
    struct sw_http_client *client = c->client;

    if (!client->tls) {
        ready(c, stream);
        return;
    }
    int rc = sw_tls_connect(client->loop, stream, client->tls, client->tls_name,
                            client->options.connect_timeout_ms, on_tls, c, &c->handshake);
    if (rc < 0) {
        failed(c, rc, sw_strerror(rc));
    }
}

static void on_tunnel(void *arg, struct sw_stream *stream, const struct sw_error *error)
{
    struct sw_http_connection *c = arg;

    c->tunnel = NULL;
    if (stream) {
        reached(c, stream);
        return;
    }
    avoid(c);
    failed(c, error->code, error->text);
}

static void open_tunnel(struct sw_http_connection *c, struct sw_stream *stream)
{
    struct sw_http_client *client = c->client;
    int rc = sw_tunnel_open(client->loop, stream, &client->proxy, client->host,
                            client->options.port, client->user_agent,
                            client->options.connect_timeout_ms, on_tunnel, c, &c->tunnel);
    if (rc < 0) {
        failed(c, rc, sw_strerror(rc));
    }
}

static void on_proxy_tls(void *arg, struct sw_stream *stream, const struct sw_error *error)
{
    struct sw_http_connection *c = arg;

    c->handshake = NULL;
    if (stream) {
        open_tunnel(c, stream);
        return;
    }
    struct sw_error words = *error;
    sw_error_prefix(&words, "the proxy");
    avoid(c);
    failed(c, words.code, words.text);
}

static void on_tcp(void *arg, struct sw_stream *stream, const struct sw_error *error)
{
    struct sw_http_connection *c = arg;
    struct sw_http_client *client = c->client;

    c->connect = NULL;
    if (!stream) {
        failed(c, error->code, error->text);
        return;
    }
    snprintf(c->peer, sizeof(c->peer), "%s", sw_stream_peer(stream));
    if (client->proxy.kind == SW_PROXY_NONE) {
        reached(c, stream);
    } else if (client->proxy.kind != SW_PROXY_HTTPS) {
        open_tunnel(c, stream);
    } else {
        int rc = sw_tls_connect(client->loop, stream, client->tls, client->proxy.host,
                                client->options.connect_timeout_ms, on_proxy_tls, c, &c->handshake);
        if (rc < 0) {
            failed(c, rc, sw_strerror(rc));
        }
    }
}

static void begin(struct sw_http_connection *c)
{
    struct sw_http_client *client = c->client;
    bool is_direct = client->proxy.kind == SW_PROXY_NONE;
    const struct sw_tcp_options options = {
        .host = is_direct ? client->host : client->proxy.host,
        .port = is_direct ? client->options.port : client->proxy.port,
        .timeout_ms = client->options.connect_timeout_ms,
        .write_limit_bytes = WRITE_LIMIT_BYTES,
        .avoid = client->avoided[0] ? client->avoided : NULL,
    };
    struct sw_stream *stream;
    int rc;

    if (client->connector) {
        rc = client->connector(client->connector_arg, &stream);
        if (rc == 0) {
            snprintf(c->peer, sizeof(c->peer), "%s", sw_stream_peer(stream));
            ready(c, stream);
            return;
        }
    } else {
        rc = sw_tcp_connect(client->loop, &options, on_tcp, c, &c->connect);
    }
    if (rc < 0) {
        failed(c, rc, sw_strerror(rc));
    }
}

static void on_idle(struct sw_timer *timer)
{
    close_orderly(container_of(timer, struct sw_http_connection, idle));
}

void sw_http_connection_open(struct sw_http_lane *lane, struct sw_http_exchange *intended)
{
    struct sw_http_connection *c = SW_NEW(struct sw_http_connection);

    c->state = SW_HTTP_CONNECTING;
    c->client = lane->client;
    c->lane = lane;
    lane->connections++;
    c->intended = intended;
    intended->attempt = c;
    snprintf(c->peer, sizeof(c->peer), "%s", lane->client->authority);
    sw_link_init(&c->link);
    sw_link_init(&c->idle_link);
    sw_link_add_last(&lane->client->connections, &c->link);
    sw_timer_init(&c->idle, lane->client->loop, on_idle);
    sw_defer_init(&c->resume, lane->client->loop, resume);
    sw_buf_init(&c->held, HELD_LIMIT_BYTES);
    begin(c);
}

void sw_http_connection_restart(struct sw_http_connection *c)
{
    abandon_connecting(c);
    begin(c);
}
