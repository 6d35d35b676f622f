/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exchanges: the request as bytes, its deadlines, cancelling and ending.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "net/http_client_internal.h"

#define HEAD_TIMEOUT_DEFAULT_MS 30000

/* ---- the request as bytes ---- */

/* Origin form (RFC 9112 section 3.2.1), or "*". */
static bool is_target(const char *target)
{
    if (*target != '/' && strcmp(target, "*") != 0) {
        return false;
    }
    for (const char *at = target; *at; at++) {
        if (*at <= 0x20 || *at >= 0x7f || *at == '#') {
            return false;
        }
    }
    return true;
}

static bool is_ours(const char *name)
{
    static const char *const names[] = {
        "Host", "User-Agent", "Content-Length", "Transfer-Encoding", "Connection", "Expect"};

    for (size_t i = 0; i < SW_ARRAY_SIZE(names); i++) {
        if (strcasecmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

bool sw_http_is_sendable(const struct sw_http_request *r)
{
    if (!sw_http_is_token(r->method) || !is_target(r->target)) {
        return false;
    }
    for (size_t i = 0; i < r->field_count; i++) {
        if (!sw_http_is_token(r->fields[i].name) || is_ours(r->fields[i].name) ||
            !sw_http_is_field_value(r->fields[i].value)) {
            return false;
        }
    }
    return true;
}

/* A server may wait for a body where a method usually has one and no length is said. */
static bool needs_length(const struct sw_http_request *r)
{
    return r->body_len > 0 || strcmp(r->method, "POST") == 0 || strcmp(r->method, "PUT") == 0 ||
           strcmp(r->method, "PATCH") == 0;
}

static void put_field(struct sw_buf *out, const char *name, const char *value)
{
    sw_buf_puts(out, name);
    sw_buf_puts(out, ": ");
    sw_buf_puts(out, value);
    sw_buf_puts(out, "\r\n");
}

static void write_request(const struct sw_http_client *c, const struct sw_http_request *r,
                          struct sw_buf *out)
{
    sw_buf_printf(out, "%s %s HTTP/1.1\r\n", r->method, r->target);
    put_field(out, "Host", c->authority);
    if (c->user_agent) {
        put_field(out, "User-Agent", c->user_agent);
    }
    for (size_t i = 0; i < r->field_count; i++) {
        put_field(out, r->fields[i].name, r->fields[i].value);
    }
    if (needs_length(r)) {
        sw_buf_printf(out, "Content-Length: %zu\r\n", r->body_len);
    }
    sw_buf_puts(out, "\r\n");
    if (r->body_len > 0) {
        sw_buf_append(out, r->body, r->body_len);
    }
}

/* ---- time ---- */

static uint64_t earlier(uint64_t a, uint64_t b)
{
    if (a == 0 || b == 0) {
        return a ? a : b;
    }
    return SW_MIN(a, b);
}

/* 0: none. */
static uint64_t next_due(const struct sw_http_exchange *e)
{
    uint64_t due = earlier(e->total_due_ms, e->has_head ? 0 : e->head_due_ms);

    return earlier(due, e->silence_due_ms);
}

/* A deadline that moves on, as the one of silence does with every piece, leaves the timer alone: it
 * fires too early, and is started again then. */
static void arm(struct sw_http_exchange *e)
{
    uint64_t due = next_due(e);

    if (due == 0) {
        sw_timer_stop(&e->timer);
    } else if (!sw_timer_is_active(&e->timer) || due < e->armed_ms) {
        e->armed_ms = due;
        sw_timer_start_at(&e->timer, due);
    }
}

void sw_http_exchange_heard(struct sw_http_exchange *e)
{
    e->silence_due_ms = 0;
    if (e->has_head && e->silence_timeout_ms > 0 && e->is_reading) {
        e->silence_due_ms = sw_now_ms(e->client->loop) + e->silence_timeout_ms;
    }
    arm(e);
}

static void timed_out(struct sw_http_exchange *e, uint64_t now)
{
    struct sw_http_connection *connection = e->connection;
    const char *peer = connection ? connection->peer : e->client->authority;

    if (e->silence_due_ms && e->silence_due_ms <= now) {
        sw_http_exchange_end(e, -ETIMEDOUT, "%s: silent for %llu ms in the middle of an answer",
                             peer, (unsigned long long)e->silence_timeout_ms);
    } else if (!e->has_head && e->head_due_ms <= now) {
        sw_http_exchange_end(e, -ETIMEDOUT, "%s: no %s within %llu ms", peer,
                             connection   ? "answer"
                             : e->attempt ? "connection"
                                          : "connection free",
                             (unsigned long long)e->head_timeout_ms);
    } else {
        sw_http_exchange_end(e, -ETIMEDOUT, "%s: answer not complete within %llu ms", peer,
                             (unsigned long long)e->total_timeout_ms);
    }
    if (connection) {
        /* Nothing tells whether it is the server or the way to it: the next one goes elsewhere. */
        snprintf(e->client->avoided, sizeof(e->client->avoided), "%s", connection->peer);
        sw_http_connection_close(connection);
    }
}

static void on_timer(struct sw_timer *timer)
{
    struct sw_http_exchange *e = container_of(timer, struct sw_http_exchange, timer);
    uint64_t now = sw_now_ms(e->client->loop);
    uint64_t due = next_due(e);

    if (due && due <= now) {
        timed_out(e, now);
    } else {
        arm(e);
    }
}

/* ---- life ---- */

int sw_http_send(struct sw_http_client *c, const struct sw_http_request *r,
                 const struct sw_http_exchange_events *events, void *arg,
                 struct sw_http_exchange **ret_exchange)
{
    if (c->is_closing) {
        return -ECANCELED;
    }
    if (!sw_http_is_sendable(r)) {
        return -EINVAL;
    }
    struct sw_http_exchange *e = SW_NEW(struct sw_http_exchange);
    e->client = c;
    e->lane = sw_http_lane_get(c, r->own_connection);
    e->events = events;
    e->arg = arg;
    e->body_limit = r->body_limit_bytes;
    e->is_head = strcmp(r->method, "HEAD") == 0;
    e->may_replay = r->may_replay || e->is_head || strcmp(r->method, "GET") == 0;
    e->is_reading = true;
    sw_link_init(&e->link);
    sw_buf_init(&e->wire, SIZE_MAX);
    write_request(c, r, &e->wire);

    uint64_t now = sw_now_ms(c->loop);
    e->head_timeout_ms = r->head_timeout_ms ? r->head_timeout_ms : HEAD_TIMEOUT_DEFAULT_MS;
    e->total_timeout_ms = r->total_timeout_ms;
    e->silence_timeout_ms = r->silence_timeout_ms;
    e->head_due_ms = now + e->head_timeout_ms;
    e->total_due_ms = r->total_timeout_ms ? now + r->total_timeout_ms : 0;
    sw_timer_init(&e->timer, c->loop, on_timer);
    arm(e);

    sw_link_add_last(&e->lane->queue, &e->link);
    sw_http_client_wake(c);
    if (ret_exchange) {
        *ret_exchange = e;
    }
    return 0;
}

void sw_http_exchange_detach(struct sw_http_exchange *e)
{
    sw_link_remove(&e->link);
    if (e->attempt) {
        e->attempt->intended = NULL;
        e->attempt = NULL;
    }
    if (e->connection) {
        e->connection->exchange = NULL;
        e->connection = NULL;
    }
}

void sw_http_exchange_end(struct sw_http_exchange *e, int code, const char *format, ...)
{
    va_list args;

    sw_assert(!e->is_ended);
    va_start(args, format);
    vsnprintf(e->error.text, sizeof(e->error.text), format, args);
    va_end(args);
    e->error.code = code;
    sw_http_exchange_detach(e);
    sw_timer_stop(&e->timer);
    e->is_ended = true;
    sw_link_add_last(&e->client->ended, &e->link);
    sw_http_client_wake(e->client);
}

void sw_http_exchange_free(struct sw_http_exchange *e)
{
    size_t len = e->wire.len;

    sw_timer_stop(&e->timer);
    sw_free_secret(sw_buf_steal(&e->wire), len); /* it may carry a token */
    sw_free(e);
}

static void give_up(struct sw_http_exchange *e,
                    void (*close)(struct sw_http_connection *connection))
{
    struct sw_http_connection *connection = e->connection;

    if (e->is_delivering) {
        return;
    }
    sw_http_exchange_detach(e);
    sw_http_client_wake(e->client);
    sw_http_exchange_free(e);
    if (connection) {
        close(connection);
    }
}

void sw_http_exchange_cancel(struct sw_http_exchange *e)
{
    give_up(e, sw_http_connection_close);
}

void sw_http_exchange_reset(struct sw_http_exchange *e)
{
    give_up(e, sw_http_connection_reset);
}

void sw_http_exchange_set_reading(struct sw_http_exchange *e, bool is_on)
{
    if (e->is_ended || e->is_reading == is_on) {
        return;
    }
    e->is_reading = is_on;
    sw_http_exchange_heard(e);
    if (e->connection) {
        sw_http_connection_set_reading(e->connection, is_on);
    }
}

bool sw_http_exchange_was_sent(const struct sw_http_exchange *e)
{
    return e->was_sent;
}
