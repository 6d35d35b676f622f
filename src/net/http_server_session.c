/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection of the server and the request on it.
 *
 *     state       waits for                 ends by                    when it takes too long
 *     HANDSHAKE   TLS                       IDLE                       closed (head timeout)
 *     IDLE        the first byte            HEAD                       closed (idle timeout)
 *     HEAD        the end of the head       BODY, or a refusal         408, LINGERING
 *     BODY        the end of the body       HANDLING, or a refusal     408, LINGERING
 *     HANDLING    the handler's answer      ANSWERING, SENDING, IDLE   (the handler's business)
 *     ANSWERING   the rest of an answer     SENDING, IDLE, CLOSED      closed (body timeout; only
 *                 in pieces                                            while the client must read)
 *     SENDING     the client reading what   IDLE, LINGERING            closed (body timeout)
 *                 the stream did not take
 *     LINGERING   the client's end          CLOSED                     closed (5 s)
 *     CLOSED      a handler that has not
 *                 answered yet
 *
 * LINGERING is there because closing a socket with unread bytes resets it, and the reset overtakes
 * the answer: a client that is still sending would never see the 413.
 *
 * Whatever calls out of here (the handler, an event of an answer) may come back and close the
 * connection or the server. The memory stays while calls is above 0, and until the request is
 * answered.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/util.h"
#include "net/http_server_internal.h"
#include "net/stream.h"
#include "net/tls.h"
#include "net/url.h"

#include <slipway/arena.h>

#define LINGER_MS 5000
#define DRAIN_QUIET_MS 1000
/* A client that sends the next request before it has the answer. One read has up to 64 KiB, and a
 * TLS stream may hold a record besides. */
#define HELD_LIMIT_BYTES ((size_t)1024 * 1024)
/* What Content-Length is believed before a byte has come. */
#define BODY_TRUSTED_BYTES ((size_t)256 * 1024)

struct sw_http_session *sw_http_session_of(struct sw_link *link)
{
    return container_of(link, struct sw_http_session, link);
}

/* ---- time ---- */

void sw_http_session_set_deadline(struct sw_http_session *c, uint64_t ms)
{
    c->due_ms = ms ? sw_now_ms(c->server->loop) + ms : 0;
    if (c->due_ms && (!sw_timer_is_active(&c->timer) || c->due_ms < c->armed_ms)) {
        c->armed_ms = c->due_ms;
        sw_timer_start_at(&c->timer, c->due_ms);
    }
}

/* ---- end of a connection ---- */

void sw_http_session_free_maybe(struct sw_http_session *c)
{
    struct sw_http_server *s = c->server;

    if (c->state != SW_SESSION_CLOSED || c->calls > 0 || c->has_request) {
        return;
    }
    if (c->workspace) {
        sw_http_workspace_give(s, c->workspace);
    }
    sw_defer_stop(&c->later);
    sw_http_parser_free(c->parser);
    c->magic = 0;
    sw_free(c);
    s->alive--;
    sw_http_server_update(s);
}

static void leave(struct sw_http_session *c)
{
    c->calls--;
    sw_http_session_free_maybe(c);
}

static void close_with(struct sw_http_session *c, void (*close_stream)(struct sw_stream *))
{
    if (c->state == SW_SESSION_CLOSED) {
        return;
    }
    c->state = SW_SESSION_CLOSED;
    if (c->handshake) {
        sw_tls_handshake_cancel(sw_steal(&c->handshake));
    }
    close_stream(sw_steal(&c->stream));
    sw_timer_stop(&c->timer);
    sw_link_remove(&c->link);
    c->server->open--;
    sw_buf_done(&c->held);
    sw_buf_done(&c->out);
    if (c->events) {
        sw_defer_start(&c->later);
    }
    sw_http_server_update(c->server);
    sw_http_session_free_maybe(c);
}

/* What was answered a moment ago may still be on its way out, and goes out. Not so an answer that
 * is not whole: one without a length would be taken for whole at an orderly end. */
void sw_http_session_close(struct sw_http_session *c)
{
    if (c->stream && c->state != SW_SESSION_ANSWERING && c->state != SW_SESSION_SENDING) {
        sw_stream_finish(c->stream);
    }
    close_with(c, sw_stream_close);
}

void sw_http_session_reset(struct sw_http_session *c)
{
    close_with(c, sw_stream_reset);
}

static void spare(struct sw_http_session *c)
{
    c->spared_until_ms = sw_http_server_clock_ms(c->server) + c->server->options.patience_ms;
}

void sw_http_session_hear(struct sw_http_server *s)
{
    struct sw_link *link;

    while ((link = sw_link_first(&s->silent))) {
        struct sw_http_session *c = sw_http_session_of(link);
        if (!c->handshake || !sw_tls_handshake_has_begun(c->handshake)) {
            return;
        }
        c->spared_until_ms += s->options.patience_ms; /* since it was heard, about */
        sw_link_add_last(&s->quiet, &c->link);
    }
}

/* That somebody can make room may accept a connection at once, and c may be the one that goes:
 * unless it is held, it is dead afterwards. */
static void list_first(struct sw_http_session *c, struct sw_link *list)
{
    sw_link_add_first(list, &c->link);
    sw_http_server_update(c->server);
}

static void list_last(struct sw_http_session *c, struct sw_link *list)
{
    sw_link_add_last(list, &c->link);
    sw_http_server_update(c->server);
}

void sw_http_session_send_rest(struct sw_http_session *c)
{
    c->state = SW_SESSION_SENDING;
    sw_http_session_set_deadline(c, c->server->options.body_timeout_ms);
    spare(c);
    list_last(c, &c->server->waiting);
}

void sw_http_session_linger(struct sw_http_session *c)
{
    sw_stream_finish(c->stream);
    if (c->peer_has_ended) {
        sw_http_session_close(c);
        return;
    }
    c->state = SW_SESSION_LINGERING;
    sw_stream_set_reading(c->stream, true);
    sw_http_session_set_deadline(c, LINGER_MS);
    c->spared_until_ms = 0;
    list_first(c, &c->server->quiet); /* nothing is lost with it: the first to make room */
}

/* ---- between two requests ---- */

static uint64_t idle_ms(const struct sw_http_server *s)
{
    return s->is_draining ? DRAIN_QUIET_MS : s->options.idle_timeout_ms;
}

void sw_http_session_go_on(struct sw_http_session *c)
{
    struct sw_http_server *s = c->server;

    if (c->closes) {
        sw_http_session_linger(c);
        return;
    }
    if (c->peer_has_ended && c->held.len == 0 && !c->is_consuming_held) {
        sw_http_session_close(c);
        return;
    }
    sw_http_parser_trim(c->parser);
    c->state = SW_SESSION_IDLE;
    sw_http_session_set_deadline(c, idle_ms(s));
    if (c->held.len > 0) {
        sw_defer_start(&c->later);
    }
    c->spared_until_ms = 0;
    list_last(c, &s->quiet);
}

/* ---- requests ---- */

/* Cuts the target into path and query, and decodes the path. A "#" has no business in a request. */
static bool split_target(struct sw_http_incoming *r, const char *target)
{
    if (strncasecmp(target, "http://", 7) == 0 || strncasecmp(target, "https://", 8) == 0) {
        target = strchr(target, ':') + 3;
        target += strcspn(target, "/?");
    }
    char *path = *target == '?' || *target == '\0' ? sw_arena_printf(r->arena, "/%s", target)
                                                   : sw_arena_strdup(r->arena, target);
    if ((*path != '/' && strcmp(path, "*") != 0) || strchr(path, '#')) {
        return false;
    }
    char *query = strchr(path, '?');
    if (query) {
        *query++ = '\0';
    }
    r->query = query ? query : "";
    r->path = path;

    if (strchr(path, '%')) {
        SW_AUTO(char, sw_free) decoded = NULL;
        if (sw_url_decode(path, strlen(path), &decoded) < 0) {
            return false;
        }
        r->path = sw_arena_strdup(r->arena, decoded);
    }
    return true;
}

static int on_head(void *arg, const struct sw_http_head *head)
{
    struct sw_http_session *c = arg;
    struct sw_http_server *s = c->server;

    c->state = SW_SESSION_BODY;
    spare(c);
    sw_link_add_last(&s->waiting, &c->link);
    c->workspace = sw_http_workspace_take(s);
    c->request = (struct sw_http_incoming){
        .method = head->method,
        .fields = head->fields,
        .peer = c->peer,
        .arena = c->workspace->arena,
    };
    c->is_head = strcmp(head->method, "HEAD") == 0;
    c->is_http10 = head->is_http10;
    c->closes = !head->keeps_alive;
    c->owes_continue = head->expects_continue && head->has_body;
    if (!split_target(&c->request, head->target)) {
        return -EINVAL;
    }
    if (head->content_length > 0) {
        char *space;
        sw_buf_reserve(&c->workspace->body,
                       SW_MIN((size_t)head->content_length, BODY_TRUSTED_BYTES), &space);
    }
    return 0;
}

static int on_body(void *arg, const char *bytes, size_t len)
{
    struct sw_http_session *c = arg;

    c->owes_continue = false;
    int rc = sw_buf_append(&c->workspace->body, bytes, len);
    return rc ? rc : sw_http_server_count_body(c->server, c, len);
}

static int on_message_end(void *arg)
{
    struct sw_http_session *c = arg;

    c->has_message = true;
    sw_http_parser_pause(c->parser);
    return 0;
}

static const struct sw_http_parser_events parser_events = {on_head, on_body, on_message_end};

static void handle(struct sw_http_session *c)
{
    c->has_message = false;
    c->owes_continue = false;
    c->request.body = c->workspace->body.bytes;
    c->request.body_len = c->workspace->body.len;
    c->state = SW_SESSION_HANDLING;
    c->due_ms = 0;
    c->has_request = true;
    list_last(c, &c->server->active);
    c->server->fn(c->server->arg, &c->request);
}

static void read_failed(struct sw_http_session *c, int rc)
{
    if (c->workspace) {
        sw_http_workspace_give(c->server, sw_steal(&c->workspace));
    }
    if (rc == -EINVAL) {
        sw_http_session_refuse(c, 400, "malformed target");
    } else if (rc == -ENOBUFS) {
        sw_http_session_refuse(c, 503, "too many large requests at once");
    } else {
        sw_http_session_refuse(c, sw_http_parser_refusal(c->parser), sw_http_parser_why(c->parser));
    }
}

/* The request is not whole yet: how long may the rest take? */
static void await_rest(struct sw_http_session *c, enum sw_http_session_state before)
{
    const struct sw_http_server_options *options = &c->server->options;

    if (c->state == SW_SESSION_HEAD && before == SW_SESSION_IDLE) {
        sw_http_session_set_deadline(c, options->head_timeout_ms);
    } else if (c->state == SW_SESSION_BODY && before != SW_SESSION_BODY) {
        sw_http_session_set_deadline(c, options->body_timeout_ms);
    }
    if (c->state == SW_SESSION_BODY && c->owes_continue) {
        static const char go_ahead[] = "HTTP/1.1 100 Continue\r\n\r\n";
        c->owes_continue = false;
        if (sw_stream_write(c->stream, go_ahead, sizeof(go_ahead) - 1) < 0) {
            sw_http_session_close(c);
        }
    }
}

/* Takes bytes as far as requests are answered at once; returns how many. */
static size_t consume(struct sw_http_session *c, const char *bytes, size_t len)
{
    enum sw_http_session_state before = c->state;
    size_t used = 0;

    while (used < len && (c->state == SW_SESSION_IDLE || c->state == SW_SESSION_HEAD ||
                          c->state == SW_SESSION_BODY)) {
        size_t n;
        if (c->state == SW_SESSION_IDLE) {
            before = SW_SESSION_IDLE;
            c->state = SW_SESSION_HEAD;
            spare(c);
            sw_link_add_last(&c->server->quiet, &c->link); /* the last to make room */
        }
        sw_http_parser_resume(c->parser);
        int rc = sw_http_parser_feed(c->parser, bytes + used, len - used, &n);
        used += n;
        if (rc < 0) {
            read_failed(c, rc);
            return len;
        }
        if (c->has_message) {
            handle(c);
        }
    }
    await_rest(c, before);
    return used;
}

static void on_read(void *arg, const char *bytes, size_t len)
{
    struct sw_http_session *c = arg;

    if (c->state == SW_SESSION_LINGERING) {
        return;
    }
    c->calls++;
    size_t used = c->held.len == 0 ? consume(c, bytes, len) : 0;
    if (used < len && c->state != SW_SESSION_CLOSED && c->state != SW_SESSION_LINGERING) {
        sw_stream_set_reading(c->stream, false);
        if (sw_buf_append(&c->held, bytes + used, len - used) < 0) {
            sw_http_session_close(c);
        }
    }
    leave(c);
}

static void on_end(void *arg, int code)
{
    struct sw_http_session *c = arg;

    c->peer_has_ended = true;
    /* A client that has only ended its side may still want its answer; one that broke, or listens
     * to an answer without end, has gone. */
    bool is_patient =
        c->state == SW_SESSION_HANDLING || c->state == SW_SESSION_SENDING || c->held.len > 0;
    if (code < 0 || !is_patient) {
        sw_http_session_close(c);
    }
}

static void on_drain(void *arg)
{
    struct sw_http_session *c = arg;

    c->calls++;
    int rc = sw_http_session_push_out(c);
    if (rc == -ENOBUFS) {
        sw_http_session_set_deadline(c, c->server->options.body_timeout_ms);
    } else if (rc < 0) {
        sw_http_session_close(c);
    } else if (c->state == SW_SESSION_SENDING) {
        sw_http_session_go_on(c);
    } else if (c->state == SW_SESSION_ANSWERING) {
        c->due_ms = 0;
        if (c->was_refused) {
            c->was_refused = false;
            c->events->on_drain(c->events_arg);
        }
    }
    leave(c);
}

static const struct sw_stream_events stream_events = {on_read, on_end, on_drain};

/* What was held is used up. A request that is not whole after the client's end will never be. */
static void go_on_reading(struct sw_http_session *c)
{
    bool is_reading =
        c->state == SW_SESSION_IDLE || c->state == SW_SESSION_HEAD || c->state == SW_SESSION_BODY;

    if (c->peer_has_ended && is_reading) {
        sw_http_session_close(c);
    } else {
        sw_stream_set_reading(c->stream, true);
    }
}

static void later(struct sw_defer *defer)
{
    struct sw_http_session *c = container_of(defer, struct sw_http_session, later);

    c->calls++;
    if (c->state == SW_SESSION_CLOSED) {
        if (c->events && !c->has_told_gone) {
            c->has_told_gone = true;
            c->events->on_gone(c->events_arg);
        }
    } else if (c->state == SW_SESSION_IDLE && c->held.len > 0) {
        struct sw_buf held = c->held;
        sw_buf_init(&c->held, HELD_LIMIT_BYTES);
        c->is_consuming_held = true;
        size_t used = consume(c, held.bytes, held.len);
        c->is_consuming_held = false;
        if (c->state != SW_SESSION_CLOSED && used < held.len) {
            sw_buf_append(&c->held, held.bytes + used, held.len - used);
        } else if (c->state != SW_SESSION_CLOSED) {
            go_on_reading(c);
        }
        sw_buf_done(&held);
    }
    leave(c);
}

static void on_timer(struct sw_timer *timer)
{
    struct sw_http_session *c = container_of(timer, struct sw_http_session, timer);
    uint64_t now = sw_now_ms(c->server->loop);

    if (c->due_ms == 0) {
        return;
    }
    if (now < c->due_ms) {
        c->armed_ms = c->due_ms;
        sw_timer_start_at(&c->timer, c->due_ms);
        return;
    }
    c->calls++;
    if (c->state == SW_SESSION_HEAD || c->state == SW_SESSION_BODY) {
        if (c->workspace) {
            sw_http_workspace_give(c->server, sw_steal(&c->workspace));
        }
        sw_http_session_refuse(c, 408, "the request took too long");
    } else {
        sw_http_session_close(c);
    }
    leave(c);
}

/* ---- begin of a connection ---- */

static void start(struct sw_http_session *c, struct sw_stream *stream)
{
    const struct sw_http_limits limits = {.body_bytes = c->server->options.body_limit_bytes};

    c->stream = stream;
    c->parser = sw_http_parser_new(SW_HTTP_REQUESTS, &limits, &parser_events, c);
    c->state = SW_SESSION_IDLE;
    sw_http_session_set_deadline(c, idle_ms(c->server));
    sw_stream_start(stream, &stream_events, c);
}

static void on_tls(void *arg, struct sw_stream *stream, const struct sw_error *error)
{
    struct sw_http_session *c = arg;

    c->handshake = NULL;
    if (stream) {
        sw_link_add_last(&c->server->quiet, &c->link);
        spare(c);
        start(c, stream);
        return;
    }
    sw_log_debug(c->server->log, "TLS handshake failed", SW_STR("peer", c->peer),
                 SW_STR("error", error->text));
    sw_http_session_close(c);
}

void sw_http_session_open(struct sw_http_server *s, struct sw_stream *stream)
{
    struct sw_http_session *c = SW_NEW(struct sw_http_session);

    c->magic = SW_HTTP_SESSION_MAGIC;
    c->state = SW_SESSION_HANDSHAKE;
    c->server = s;
    snprintf(c->peer, sizeof(c->peer), "%s", sw_stream_peer(stream));
    sw_link_init(&c->link);
    c->spared_until_ms = sw_http_server_clock_ms(s) + s->options.silence_ms;
    sw_link_add_last(&s->silent, &c->link);
    s->open++;
    s->alive++;
    sw_timer_init(&c->timer, s->loop, on_timer);
    sw_defer_init(&c->later, s->loop, later);
    sw_buf_init(&c->held, HELD_LIMIT_BYTES);
    sw_buf_init(&c->out, SIZE_MAX);
    if (!s->tls) {
        start(c, stream);
        return;
    }
    int rc = sw_tls_accept(s->loop, stream, s->tls, s->options.head_timeout_ms, on_tls, c,
                           &c->handshake);
    if (rc < 0) {
        sw_log_debug(s->log, "TLS handshake failed", SW_STR("peer", c->peer), SW_ERR(rc));
        sw_http_session_close(c);
    }
}

void sw_http_session_drain(struct sw_http_session *c)
{
    uint64_t now = sw_now_ms(c->server->loop);
    uint64_t quiet_since = c->due_ms - SW_MIN(c->due_ms, c->server->options.idle_timeout_ms);

    if (c->state != SW_SESSION_IDLE) {
        return;
    }
    if (now >= quiet_since + DRAIN_QUIET_MS) {
        sw_http_session_close(c);
    } else {
        sw_http_session_set_deadline(c, quiet_since + DRAIN_QUIET_MS - now);
    }
}
