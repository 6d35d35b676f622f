/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server: its listener, how many connections there may be, draining and closing. What happens
 * on a connection is in http_server_session.c.
 *
 * A connection is in one of four lists. Silent ones have not sent a byte since they came; quiet
 * ones owe us the head of a request (in the handshake, between two requests, or slow with it) or
 * nothing but their end; waiting ones owe us the rest of a body, or do not read their answer;
 * active ones have a request that we work on. Where there are too many, the one that has been
 * silent for longest makes room, then the one that has been quiet for longest, and where none is
 * quiet the one that has been waited for longest: a crowd of silent or slow clients does not keep
 * others out. Who is in the middle of something has some time for it before he has to go, or a
 * burst of reviews would cut off its own beginning; who has not begun has less of it. Until then,
 * and where all are active, the next ones wait in the kernel's queue.
 */
#include "net/http_server.h"

#include <errno.h>

#include "base/error.h"
#include "base/util.h"
#include "net/http_server_internal.h"
#include "net/stream.h"
#include "net/tcp.h"
#include "net/tls.h"

#include <slipway/arena.h>

/*
 * An API server keeps up to 25 idle connections to a webhook (Go's default for a host in client-go)
 * and opens more only while that many reviews are under way: three servers and their bursts fit.
 * With mbedTLS 2.28, which never gives its two buffers of 17 KB back, 256 TLS connections hold
 * 10 MiB; 1 024 would hold 40 MiB, more than all the rest of the process.
 */
#define MAX_CONNECTIONS_DEFAULT 256
#define BODY_LIMIT_DEFAULT (UINT64_C(8) * 1024 * 1024)
/* Of one; a review has 7 KB. Without a limit of all, clients that send all but the last byte could
 * make us hold the largest body once for each connection. */
#define BODIES_LIMIT_FACTOR 4
#define BODIES_LIMIT_MIN (UINT64_C(1024) * 1024)
#define HEAD_TIMEOUT_DEFAULT_MS 10000
#define BODY_TIMEOUT_DEFAULT_MS 30000
#define IDLE_TIMEOUT_DEFAULT_MS 120000
/* A handshake and a review take a few ms; API servers give up after 2 or 3 s. */
#define PATIENCE_DEFAULT_MS 1000
/* The first bytes follow the connection after one way through the network, which may be a tunnel
 * from another continent. A thousand who never send any cost the next one 0.8 s, with 256 at once.
 */
#define SILENCE_DEFAULT_MS 200
/* How often it is looked whether somebody's time is over, where nobody can make room. A tick that
 * comes late shows that we were busy: a thousand handshakes at once take us a second or more. */
#define TICK_MS 20

/* What the kernel has not taken yet; an answer that is larger waits in its connection. A thousand
 * clients that do not read hold 64 MiB. */
#define WRITE_LIMIT_BYTES ((size_t)64 * 1024)

/* Requests that are answered at once use one workspace after the other; more are held ready for
 * those that are answered later, and none beyond that. */
#define SPARES_MAX 8
#define SPARE_BODY_BYTES ((size_t)64 * 1024)

/* ---- workspaces ---- */

struct sw_http_workspace *sw_http_workspace_take(struct sw_http_server *s)
{
    struct sw_http_workspace *w = s->spares;

    if (w) {
        s->spares = w->next;
        s->spare_count--;
        return w;
    }
    w = SW_NEW(struct sw_http_workspace);
    sw_buf_init(&w->body, SIZE_MAX); /* the parser keeps the limit */
    w->arena = sw_arena_new(0);
    return w;
}

static void workspace_free(struct sw_http_workspace *w)
{
    sw_buf_done(&w->body);
    sw_arena_free(w->arena);
    sw_free(w);
}

void sw_http_workspace_give(struct sw_http_server *s, struct sw_http_workspace *w)
{
    s->bodies_bytes -= w->body.len;
    if (s->spare_count == SPARES_MAX) {
        workspace_free(w);
        return;
    }
    sw_arena_reset(w->arena);
    if (w->body.room > SPARE_BODY_BYTES) {
        sw_buf_done(&w->body);
        sw_buf_init(&w->body, SIZE_MAX);
    }
    sw_buf_clear(&w->body);
    w->next = s->spares;
    s->spares = w;
    s->spare_count++;
}

/* ---- opening and closing ---- */

static void server_free(struct sw_http_server *s)
{
    while (s->spares) {
        struct sw_http_workspace *w = s->spares;
        s->spares = w->next;
        workspace_free(w);
    }
    sw_buf_done(&s->out);
    sw_tls_config_unref(s->tls);
    sw_free(s);
}

static void finish(struct sw_defer *defer)
{
    struct sw_http_server *s = container_of(defer, struct sw_http_server, finish);
    void (*fn_closed)(void *arg) = s->fn_closed;
    void *arg = s->closed_arg;

    server_free(s);
    if (fn_closed) {
        fn_closed(arg);
    }
}

static void tell_finished(struct sw_http_server *s)
{
    void (*finished)(void *arg) = s->finished;

    s->finished = NULL;
    sw_timer_stop(&s->finish_timer);
    sw_defer_stop(&s->finish_defer);
    finished(s->finished_arg);
}

static void on_finish_defer(struct sw_defer *defer)
{
    tell_finished(container_of(defer, struct sw_http_server, finish_defer));
}

static void on_finish_timer(struct sw_timer *timer)
{
    struct sw_http_server *s = container_of(timer, struct sw_http_server, finish_timer);

    sw_log_warn(s->log, "connections not finished in time, cut off",
                SW_INT("connections", s->open));
    tell_finished(s);
}

uint64_t sw_http_server_clock_ms(const struct sw_http_server *s)
{
    return sw_now_ms(s->loop) - s->late_ms;
}

/* Time that we took for others is none that we have waited for somebody. */
static void on_patience(struct sw_timer *timer)
{
    struct sw_http_server *s = container_of(timer, struct sw_http_server, patience);
    uint64_t now = sw_now_ms(s->loop);

    if (now > s->tick_ms + TICK_MS) {
        s->late_ms += now - s->tick_ms;
    }
    sw_http_server_update(s);
}

static void on_accept(void *arg, struct sw_stream *stream)
{
    sw_http_server_serve(arg, stream);
}

static void set_defaults(struct sw_http_server_options *o)
{
    o->max_connections = o->max_connections ? o->max_connections : MAX_CONNECTIONS_DEFAULT;
    o->body_limit_bytes = o->body_limit_bytes ? o->body_limit_bytes : BODY_LIMIT_DEFAULT;
    if (o->bodies_limit_bytes == 0) {
        o->bodies_limit_bytes = SW_MAX(BODIES_LIMIT_FACTOR * o->body_limit_bytes, BODIES_LIMIT_MIN);
    }
    o->head_timeout_ms = o->head_timeout_ms ? o->head_timeout_ms : HEAD_TIMEOUT_DEFAULT_MS;
    o->body_timeout_ms = o->body_timeout_ms ? o->body_timeout_ms : BODY_TIMEOUT_DEFAULT_MS;
    o->patience_ms = o->patience_ms ? o->patience_ms : PATIENCE_DEFAULT_MS;
    o->silence_ms = o->silence_ms ? o->silence_ms : SILENCE_DEFAULT_MS;
    o->idle_timeout_ms = o->idle_timeout_ms ? o->idle_timeout_ms : IDLE_TIMEOUT_DEFAULT_MS;
}

int sw_http_server_open(struct sw_loop *loop, const struct sw_http_server_options *options,
                        sw_http_request_fn fn, void *arg, const struct sw_log *log,
                        struct sw_http_server **ret_server, struct sw_error *error)
{
    struct sw_http_server *s = SW_NEW(struct sw_http_server);

    s->loop = loop;
    s->log = log;
    s->options = *options;
    s->options.address = NULL;
    s->options.tls = NULL;
    set_defaults(&s->options);
    s->fn = fn;
    s->arg = arg;
    s->is_accepting = true;
    sw_link_init(&s->silent);
    sw_link_init(&s->quiet);
    sw_link_init(&s->waiting);
    sw_link_init(&s->active);
    sw_buf_init(&s->out, SIZE_MAX);
    sw_defer_init(&s->finish, loop, finish);
    sw_timer_init(&s->patience, loop, on_patience);
    sw_timer_init(&s->finish_timer, loop, on_finish_timer);
    sw_defer_init(&s->finish_defer, loop, on_finish_defer);
    if (options->tls) {
        s->tls = sw_tls_config_ref(options->tls);
    }
    if (options->address) {
        int rc = sw_tcp_listen(loop, options->address, WRITE_LIMIT_BYTES, on_accept, s,
                               &s->listener, error);
        if (rc < 0) {
            server_free(s);
            return rc;
        }
    }
    *ret_server = s;
    return 0;
}

void sw_http_server_close(struct sw_http_server *s, void (*fn_closed)(void *arg), void *arg)
{
    sw_assert(!s->is_closing);
    s->is_closing = true;
    s->fn_closed = fn_closed;
    s->closed_arg = arg;
    sw_tcp_listener_close(sw_steal(&s->listener));
    sw_timer_stop(&s->patience);
    sw_timer_stop(&s->finish_timer);
    sw_defer_stop(&s->finish_defer);
    struct sw_link *const lists[] = {&s->silent, &s->quiet, &s->waiting, &s->active};
    for (size_t i = 0; i < SW_ARRAY_SIZE(lists); i++) {
        SW_LIST_EACH (link, lists[i]) {
            sw_http_session_close(sw_http_session_of(link));
        }
    }
    sw_http_server_update(s);
}

/* ---- connections ---- */

/* Who makes room for another one, and from when on; NULL and UINT64_MAX: nobody, all are active.
 * Where several may go, the silent one; where nobody may yet, the one who may first. */
static struct sw_link *first_to_go(struct sw_http_server *s, uint64_t *ret_at_ms)
{
    struct sw_link *const lists[] = {&s->silent, &s->quiet, &s->waiting};
    struct sw_link *found = NULL;
    uint64_t now = sw_http_server_clock_ms(s), at_ms = UINT64_MAX;

    sw_http_session_hear(s);
    for (size_t i = 0; i < SW_ARRAY_SIZE(lists) && at_ms > now; i++) {
        struct sw_link *link = sw_link_first(lists[i]);
        if (link && sw_http_session_of(link)->spared_until_ms < at_ms) {
            found = link;
            at_ms = sw_http_session_of(link)->spared_until_ms;
        }
    }
    *ret_at_ms = at_ms;
    return found;
}

void sw_http_server_update(struct sw_http_server *s)
{
    if (s->is_closing) {
        if (s->alive == 0) {
            sw_defer_start(&s->finish);
        }
        return;
    }
    if (s->finished && s->open == 0) {
        sw_defer_start(&s->finish_defer);
    }
    uint64_t at_ms = 0;
    if (s->open >= s->options.max_connections) {
        first_to_go(s, &at_ms);
    }
    bool has_room = at_ms <= sw_http_server_clock_ms(s);
    if (s->listener && !has_room && at_ms != UINT64_MAX && !sw_timer_is_active(&s->patience)) {
        s->tick_ms = sw_now_ms(s->loop) + TICK_MS;
        sw_timer_start_at(&s->patience, s->tick_ms);
    }
    if (s->listener && has_room != s->is_accepting) {
        s->is_accepting = has_room;
        sw_tcp_listener_set_accepting(s->listener, has_room);
    }
}

void sw_http_server_serve(struct sw_http_server *s, struct sw_stream *stream)
{
    if (s->is_closing) {
        sw_stream_close(stream);
        return;
    }
    if (s->open >= s->options.max_connections) {
        uint64_t at_ms;
        struct sw_link *longest = first_to_go(s, &at_ms);
        if (longest) {
            sw_log_debug(s->log,
                         "too many connections, closing the one that was waited for longest",
                         SW_INT("connections", s->open));
            sw_http_session_close(sw_http_session_of(longest));
        }
    }
    sw_http_session_open(s, stream);
    sw_http_server_update(s);
}

int sw_http_server_count_body(struct sw_http_server *s, const struct sw_http_session *c, size_t len)
{
    s->bodies_bytes += len;
    SW_LIST_EACH (link, &s->waiting) {
        struct sw_http_session *other = sw_http_session_of(link);
        if (s->bodies_bytes <= s->options.bodies_limit_bytes) {
            break;
        }
        if (other != c && other->state == SW_SESSION_BODY) {
            sw_log_debug(s->log, "too many bytes of bodies, closing the one received for longest",
                         SW_STR("peer", other->peer));
            sw_http_session_close(other);
        }
    }
    return s->bodies_bytes <= s->options.bodies_limit_bytes ? 0 : -ENOBUFS;
}

void sw_http_server_drain(struct sw_http_server *s)
{
    struct sw_link *const lists[] = {&s->silent, &s->quiet};

    if (s->is_draining) {
        return; /* everybody has his second already, or what is left of it */
    }
    s->is_draining = true;
    for (size_t i = 0; i < SW_ARRAY_SIZE(lists); i++) {
        SW_LIST_EACH (link, lists[i]) {
            sw_http_session_drain(sw_http_session_of(link));
        }
    }
}

void sw_http_server_finish(struct sw_http_server *s, uint64_t timeout_ms, void (*done)(void *arg),
                           void *arg)
{
    sw_assert(!s->is_closing && !s->finished);
    s->finished = done;
    s->finished_arg = arg;
    sw_tcp_listener_close(sw_steal(&s->listener));
    sw_timer_stop(&s->patience);
    sw_timer_start(&s->finish_timer, timeout_ms);
    sw_http_server_drain(s);
    sw_http_server_update(s);
}

void sw_http_server_set_tls(struct sw_http_server *s, struct sw_tls_config *tls)
{
    struct sw_tls_config *old = s->tls;

    s->tls = tls ? sw_tls_config_ref(tls) : NULL;
    sw_tls_config_unref(old);
}

uint16_t sw_http_server_port(const struct sw_http_server *s)
{
    return s->listener ? sw_tcp_listener_port(s->listener) : 0;
}

unsigned sw_http_server_connections(const struct sw_http_server *s)
{
    return s->open;
}
