/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server: its listener, how many connections there may be, draining and closing. What happens
 * on a connection is in http_server_session.c.
 *
 * A connection is in one of three lists. Quiet ones owe us the head of a request (in the handshake,
 * fresh, between two requests, or slow with it) or nothing but their end; waiting ones owe us the
 * rest of a body, or do not read their answer; active ones have a request that we work on. Where
 * there are too many, the one that has been quiet for longest makes room, and where none is quiet
 * the one that has been waited for longest: a crowd of silent or slow clients does not keep others
 * out. Who is in the middle of something has some time for it before he has to go, or a burst of
 * reviews would cut off its own beginning. Until then, and where all are active, the next ones wait
 * in the kernel's queue.
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

static void on_patience(struct sw_timer *timer)
{
    sw_http_server_update(container_of(timer, struct sw_http_server, patience));
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
    sw_link_init(&s->quiet);
    sw_link_init(&s->waiting);
    sw_link_init(&s->active);
    sw_buf_init(&s->out, SIZE_MAX);
    sw_defer_init(&s->finish, loop, finish);
    sw_timer_init(&s->patience, loop, on_patience);
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
    struct sw_link *const lists[] = {&s->quiet, &s->waiting, &s->active};
    for (size_t i = 0; i < SW_ARRAY_SIZE(lists); i++) {
        SW_LIST_EACH (link, lists[i]) {
            sw_http_session_close(sw_http_session_of(link));
        }
    }
    sw_http_server_update(s);
}

/* ---- connections ---- */

/* Who makes room for another one; NULL: nobody. */
static struct sw_link *first_to_go(const struct sw_http_server *s)
{
    struct sw_link *quiet = sw_link_first(&s->quiet), *waiting = sw_link_first(&s->waiting);
    uint64_t now = sw_now_ms(s->loop);

    if (quiet && waiting && sw_http_session_of(quiet)->spared_until_ms > now &&
        sw_http_session_of(waiting)->spared_until_ms <= now) {
        return waiting;
    }
    return quiet ? quiet : waiting;
}

/* From when on somebody may be made to go; UINT64_MAX: all are active. */
static uint64_t room_at_ms(const struct sw_http_server *s)
{
    const struct sw_link *const lists[] = {&s->quiet, &s->waiting};
    uint64_t at_ms = UINT64_MAX;

    for (size_t i = 0; i < SW_ARRAY_SIZE(lists); i++) {
        struct sw_link *link = sw_link_first(lists[i]);
        if (link) {
            at_ms = SW_MIN(at_ms, sw_http_session_of(link)->spared_until_ms);
        }
    }
    return at_ms;
}

void sw_http_server_update(struct sw_http_server *s)
{
    if (s->is_closing) {
        if (s->alive == 0) {
            sw_defer_start(&s->finish);
        }
        return;
    }
    uint64_t at_ms = s->open < s->options.max_connections ? 0 : room_at_ms(s);
    bool has_room = at_ms <= sw_now_ms(s->loop);
    if (s->listener && !has_room && at_ms != UINT64_MAX) {
        sw_timer_start_at(&s->patience, at_ms);
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
    struct sw_link *longest = first_to_go(s);
    if (s->open >= s->options.max_connections && longest) {
        sw_log_debug(s->log, "too many connections, closing the one that was waited for longest",
                     SW_INT("connections", s->open));
        sw_http_session_close(sw_http_session_of(longest));
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
    s->is_draining = true;
    SW_LIST_EACH (link, &s->quiet) {
        sw_http_session_drain(sw_http_session_of(link));
    }
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
