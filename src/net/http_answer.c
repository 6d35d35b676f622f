/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers of the server: their bytes, sending them as fast as the client reads, and what comes
 * after. What is written here comes from our own side, so a field that could not be sent is a
 * mistake in this process.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "net/http_server_internal.h"
#include "net/stream.h"

#include <slipway/arena.h>

/* Given to the stream at once: its limit of 64 KiB is filled in four steps. */
#define PIECE_BYTES ((size_t)16 * 1024)
/* A larger body is written from where it is: copying it would cost more than a second write. */
#define SMALL_BODY_BYTES ((size_t)16 * 1024)

/* ---- bytes ---- */

struct frame {
    bool closes;
    bool is_head;    /* the answer to a HEAD request: no body follows */
    bool is_chunked; /* else body_len of the answer */
    bool is_endless; /* neither: until the connection closes */
};

static void put(struct sw_buf *out, const char *text)
{
    sw_buf_append(out, text, strlen(text));
}

/* printf would be a tenth of the cost of a small answer. */
static void put_number(struct sw_buf *out, size_t number)
{
    char digits[24];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    sw_buf_append(out, digits + at, sizeof(digits) - at);
}

static void put_field(struct sw_buf *out, const char *name, const char *value)
{
    sw_assert(sw_http_is_token(name) && sw_http_is_field_value(value));
    put(out, name);
    put(out, ": ");
    put(out, value);
    put(out, "\r\n");
}

static void put_answer(struct sw_buf *out, const struct sw_http_answer *answer,
                       const struct frame *frame, bool *ret_rest)
{
    /* RFC 9110 section 8.6: neither has a body, and a length would be that of another answer. */
    bool is_bodyless = answer->status == 204 || answer->status == 304;
    bool has_body = !is_bodyless && !frame->is_head && !frame->is_chunked && !frame->is_endless &&
                    answer->body_len > 0;

    sw_assert(answer->status >= 200 && answer->status <= 599);
    put(out, "HTTP/1.1 ");
    put_number(out, (size_t)answer->status);
    put(out, " ");
    put(out, sw_http_reason(answer->status));
    put(out, "\r\n");
    if (answer->content_type) {
        put_field(out, "Content-Type", answer->content_type);
    }
    if (frame->is_chunked) {
        put(out, "Transfer-Encoding: chunked\r\n");
    } else if (!frame->is_endless && !is_bodyless) {
        put(out, "Content-Length: ");
        put_number(out, answer->body_len);
        put(out, "\r\n");
    }
    if (frame->closes) {
        put(out, "Connection: close\r\n");
    }
    for (size_t i = 0; i < answer->field_count; i++) {
        put_field(out, answer->fields[i].name, answer->fields[i].value);
    }
    put(out, "\r\n");
    *ret_rest = has_body && answer->body_len > SMALL_BODY_BYTES;
    if (has_body && !*ret_rest) {
        sw_buf_append(out, answer->body, answer->body_len);
    }
}

/* ---- sending ---- */

static struct sw_http_session *session_of_request(struct sw_http_incoming *request)
{
    struct sw_http_session *c = container_of(request, struct sw_http_session, request);

    sw_assert(c->magic == SW_HTTP_SESSION_MAGIC && c->has_request);
    return c;
}

int sw_http_session_push_out(struct sw_http_session *c)
{
    int rc = 0;

    while (rc == 0 && c->out_at < c->out.len) {
        size_t n = SW_MIN(c->out.len - c->out_at, PIECE_BYTES);
        rc = sw_stream_write(c->stream, c->out.bytes + c->out_at, n);
        c->out_at += rc == 0 ? n : 0;
    }
    if (c->out_at == c->out.len && c->out.room > 0) {
        sw_buf_done(&c->out);
        c->out_at = 0;
    }
    return rc;
}

/* -ENOBUFS is no failure: the rest waits in c->out. */
static bool is_broken(int rc)
{
    return rc < 0 && rc != -ENOBUFS;
}

/* What the stream does not take waits here. Its size is that of one answer, which is our own. */
static int send_bytes(struct sw_http_session *c, const void *bytes, size_t len)
{
    if (c->out.len == 0) {
        int rc = sw_stream_write(c->stream, bytes, len);
        if (rc != -ENOBUFS) {
            return rc;
        }
    }
    sw_buf_append(&c->out, bytes, len);
    return sw_http_session_push_out(c);
}

/* Puts the head together, and the body unless it follows in pieces. */
static int send_answer(struct sw_http_session *c, const struct sw_http_answer *answer,
                       const struct frame *frame)
{
    struct sw_buf *out = &c->server->out;
    bool has_rest;

    sw_buf_clear(out);
    put_answer(out, answer, frame, &has_rest);
    int rc = send_bytes(c, out->bytes, out->len);
    if (has_rest && !is_broken(rc)) {
        rc = send_bytes(c, answer->body, answer->body_len);
    }
    return rc;
}

void sw_http_session_refuse(struct sw_http_session *c, int status, const char *why)
{
    char text[160];
    bool has_rest;
    int len = snprintf(text, sizeof(text), "%s\n", why);
    struct sw_http_answer answer = {.status = status,
                                    .content_type = "text/plain; charset=utf-8",
                                    .body = text,
                                    .body_len = (size_t)len};
    struct frame frame = {.closes = true};
    struct sw_buf *out = &c->server->out;

    sw_log_debug(c->server->log, "request refused", SW_STR("peer", c->peer),
                 SW_INT("status", status), SW_STR("reason", why));
    sw_buf_clear(out);
    put_answer(out, &answer, &frame, &has_rest);
    /* A client that does not even take this has lost it. */
    int rc = sw_stream_write(c->stream, out->bytes, out->len);
    if (rc < 0) {
        sw_http_session_close(c);
    } else {
        sw_http_session_linger(c);
    }
}

/* The answer has been handed over as far as it is ours to do. */
static void after_answer(struct sw_http_session *c, int rc)
{
    struct sw_http_server *s = c->server;

    c->has_request = false;
    c->events = NULL;
    sw_http_workspace_give(s, sw_steal(&c->workspace));
    if (c->state == SW_SESSION_CLOSED) {
        sw_http_session_free_maybe(c);
    } else if (rc == -ENOBUFS) {
        sw_http_session_send_rest(c);
    } else if (rc < 0) {
        sw_http_session_close(c);
    } else {
        sw_http_session_go_on(c);
    }
}

/* ---- answers ---- */

void sw_http_answer(struct sw_http_incoming *request, const struct sw_http_answer *answer)
{
    struct sw_http_session *c = session_of_request(request);
    int rc = 0;

    sw_assert(c->state == SW_SESSION_HANDLING || c->state == SW_SESSION_CLOSED);
    if (c->state == SW_SESSION_HANDLING) {
        c->closes |= c->server->is_draining;
        struct frame frame = {.closes = c->closes, .is_head = c->is_head};
        rc = send_answer(c, answer, &frame);
    }
    after_answer(c, rc);
}

void sw_http_answer_text(struct sw_http_incoming *request, int status, const char *text)
{
    size_t len = strlen(text);
    char *body = sw_arena_alloc(request->arena, len + 1);

    memcpy(body, text, len);
    body[len] = '\n';
    sw_http_answer(request, &(struct sw_http_answer){
                                .status = status,
                                .content_type = "text/plain; charset=utf-8",
                                .body = body,
                                .body_len = len + 1,
                            });
}

void sw_http_answer_start(struct sw_http_incoming *request, const struct sw_http_answer *answer,
                          const struct sw_http_answer_events *events, void *arg)
{
    struct sw_http_session *c = session_of_request(request);

    sw_assert(!c->events);
    c->events = events;
    c->events_arg = arg;
    if (c->state == SW_SESSION_CLOSED) {
        sw_defer_start(&c->later);
        return;
    }
    sw_assert(c->state == SW_SESSION_HANDLING);
    c->state = SW_SESSION_ANSWERING;
    c->is_chunked = !c->is_http10 && !c->is_head;
    c->closes |= c->server->is_draining;
    c->was_refused = false;
    struct frame frame = {
        .closes = c->closes,
        .is_head = c->is_head,
        .is_chunked = !c->is_http10,
        .is_endless = c->is_http10,
    };
    int rc = send_answer(c, answer, &frame);
    if (is_broken(rc) || c->peer_has_ended) {
        sw_http_session_close(c);
    } else if (rc == -ENOBUFS) {
        sw_http_session_set_deadline(c, c->server->options.body_timeout_ms);
    }
}

int sw_http_answer_write(struct sw_http_incoming *request, const void *bytes, size_t len)
{
    struct sw_http_session *c = session_of_request(request);
    char size[24];
    int rc;

    if (c->state == SW_SESSION_CLOSED) {
        return -EPIPE;
    }
    sw_assert(c->state == SW_SESSION_ANSWERING);
    if (c->is_head || len == 0) {
        return 0;
    }
    if (c->out.len > 0) {
        c->was_refused = true;
        return -ENOBUFS;
    }
    if (c->is_chunked) {
        int n = snprintf(size, sizeof(size), "%zx\r\n", len);
        rc = send_bytes(c, size, (size_t)n);
        rc = is_broken(rc) ? rc : send_bytes(c, bytes, len);
        rc = is_broken(rc) ? rc : send_bytes(c, "\r\n", 2);
    } else {
        rc = send_bytes(c, bytes, len);
    }
    if (is_broken(rc)) {
        sw_http_session_close(c);
        return -EPIPE;
    }
    if (rc == -ENOBUFS) {
        sw_http_session_set_deadline(c, c->server->options.body_timeout_ms);
    }
    return 0;
}

void sw_http_answer_end(struct sw_http_incoming *request, bool is_whole)
{
    struct sw_http_session *c = session_of_request(request);
    int rc = 0;

    sw_assert(c->events);
    if (c->state == SW_SESSION_ANSWERING && !is_whole) {
        sw_http_session_reset(c);
    } else if (c->state == SW_SESSION_ANSWERING && c->is_chunked) {
        rc = send_bytes(c, "0\r\n\r\n", 5);
    } else if (c->state == SW_SESSION_ANSWERING) {
        rc = sw_http_session_push_out(c);
    }
    after_answer(c, rc);
}
