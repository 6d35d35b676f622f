/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One exchange is one request and its answer:
 *
 *   side     state                                          ends when
 *   client   waits; parts (head, pieces, end) come on a     its end was delivered, a deadline
 *            timer of the client's loop, in order           passed, or the client let go
 *   server   the request travels on a timer of the          the answer's last part was handed
 *            server's loop, then is being answered          over, or the request was lost
 *
 * It is freed when both have ended. A whole answer is gathered at the server and sent as one; the
 * pieces of a watch travel each by itself.
 */
#include "direct.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/list.h"
#include "base/loop.h"
#include "base/random.h"
#include "base/util.h"
#include "kube/transport.h"

#define HEAD_TIMEOUT_MS 30000
#define ANSWER_LIMIT ((size_t)64 << 20)

struct sw_sim_wire {
    struct sw_loop *server_loop;
    struct sw_sim_api *api;
    struct sw_rng rng;
    struct sw_sim_wire_faults faults;
    const struct sw_sim_wire_liar *liar;
    struct sw_sim_wire_counts counts;
    struct sw_sim_cache *const *caches;
    size_t cache_count;
    struct sw_link exchanges;
    unsigned transports;
    bool is_broken;
    bool has_late_packets;
};

struct wire_transport {
    struct sw_transport base;
    struct sw_sim_wire *wire;
    struct sw_loop *loop;
    char *username, *user_agent;
};

enum part_type {
    PART_HEAD,
    PART_BODY,
    PART_END,
};

/* On its way to the client. */
struct part {
    struct part *next;
    enum part_type type;
    uint64_t due_ms; /* on the client's clock */
    int code;        /* PART_HEAD: the status; PART_END: how it ends */
    unsigned retry_after_s;
    size_t len;
    char bytes[];
};

struct exchange {
    struct sw_link link;
    struct sw_sim_wire *wire;
    struct wire_transport *transport; /* NULL: the client has let go */
    struct sw_sim_wire_request request;
    char *method, *content_type, *username, *user_agent;
    struct sw_http_exchange_events events;
    void *arg;

    /* server */
    struct sw_timer arrival;
    bool is_travelling;
    bool was_postponed;
    struct sw_sim_call *call; /* NULL: is not being answered */
    int status;
    unsigned retry_after_s;
    struct sw_buf answer;
    bool loses_answer;
    int hidden_status; /* carried out, but the client is told this; 0: the truth */
    bool is_server_done;

    /* client */
    struct sw_timer delivery, deadline;
    struct part *parts, **last_part;
    uint64_t last_due_ms;
    uint64_t head_timeout_ms, total_timeout_ms, silence_timeout_ms;
    uint64_t sent_ms, heard_ms;
    bool has_head;
    bool is_frozen;
    bool was_sent;
    bool may_replay;
    bool is_delivering;
};

/* ---- chance ---- */

static bool happens(struct sw_sim_wire *wire, unsigned of_10000)
{
    return of_10000 > 0 && sw_rng_between(&wire->rng, 0, 9999) < of_10000;
}

static uint64_t delay_ms(struct sw_sim_wire *wire)
{
    const struct sw_sim_wire_faults *f = &wire->faults;
    uint64_t delay =
        sw_rng_between(&wire->rng, f->delay_min_ms, SW_MAX(f->delay_min_ms, f->delay_max_ms));

    if (f->slow_max_ms > 0 && happens(wire, f->slow)) {
        wire->counts.slowed++;
        delay += sw_rng_between(&wire->rng, 0, f->slow_max_ms);
    }
    return delay;
}

/* ---- life ---- */

static void drop_parts(struct exchange *e)
{
    while (e->parts) {
        struct part *part = e->parts;
        e->parts = part->next;
        sw_free(part);
    }
    e->last_part = &e->parts;
}

static void free_if_done(struct exchange *e)
{
    if (e->transport || !e->is_server_done || e->is_delivering) {
        return;
    }
    sw_timer_stop(&e->arrival);
    drop_parts(e);
    sw_link_remove(&e->link);
    sw_buf_done(&e->answer);
    sw_free(e->request.target);
    sw_free(e->request.body);
    sw_free(e->method);
    sw_free(e->content_type);
    sw_free(e->username);
    sw_free(e->user_agent);
    sw_free(e);
}

static void end_call(struct exchange *e)
{
    if (e->call) {
        sw_sim_api_cancel(e->wire->api, sw_steal(&e->call));
    }
}

/* The server does no more for it. */
static void end_server(struct exchange *e)
{
    sw_timer_stop(&e->arrival);
    e->is_travelling = false;
    end_call(e);
    e->is_server_done = true;
}

/* No event comes any more. is_late: what has not arrived does all the same. */
static void let_go(struct exchange *e, bool is_late)
{
    sw_timer_stop(&e->delivery);
    sw_timer_stop(&e->deadline);
    drop_parts(e);
    e->transport = NULL;
    if (e->request.is_watch || (e->is_travelling && !is_late)) {
        end_server(e);
    }
    free_if_done(e);
}

/* ---- to the client ---- */

static void arm_deadline(struct exchange *e)
{
    uint64_t due = UINT64_MAX;

    if (!e->has_head) {
        due = e->sent_ms + e->head_timeout_ms;
    } else if (e->silence_timeout_ms) {
        due = e->heard_ms + e->silence_timeout_ms;
    }
    if (e->total_timeout_ms) {
        due = SW_MIN(due, e->sent_ms + e->total_timeout_ms);
    }
    if (due == UINT64_MAX) {
        sw_timer_stop(&e->deadline);
    } else {
        sw_timer_start_at(&e->deadline, due);
    }
}

/* The last event. May free the transport's owner, and all. */
static void finish(struct exchange *e, int code)
{
    struct sw_error error = {.code = code};

    sw_timer_stop(&e->delivery);
    sw_timer_stop(&e->deadline);
    drop_parts(e);
    if (code) {
        sw_error_set(&error, code, "the simulated network: %s", sw_strerror(code));
    }
    e->is_delivering = true;
    if (e->events.on_end) {
        e->events.on_end(e->arg, code, code ? &error : NULL);
    }
    e->is_delivering = false;
    e->transport = NULL;
    if (e->request.is_watch) {
        end_server(e);
    }
    free_if_done(e);
}

static void on_deadline(struct sw_timer *timer)
{
    finish(container_of(timer, struct exchange, deadline), -ETIMEDOUT);
}

static void deliver_head(struct exchange *e, const struct part *part)
{
    char seconds[16];
    struct sw_http_field fields[2] = {{"Content-Type", "application/json"}};
    struct sw_http_head head = {
        .status = part->code, .fields = {fields, 1}, .keeps_alive = true, .content_length = -1};

    if (part->retry_after_s) {
        snprintf(seconds, sizeof(seconds), "%u", part->retry_after_s);
        fields[head.fields.count++] = (struct sw_http_field){"Retry-After", seconds};
    }
    e->has_head = true;
    if (e->events.on_head) {
        e->events.on_head(e->arg, &head);
    }
}

static void on_delivery(struct sw_timer *timer)
{
    struct exchange *e = container_of(timer, struct exchange, delivery);
    struct part *part = e->parts;
    int code = part->code;

    e->parts = part->next;
    if (!e->parts) {
        e->last_part = &e->parts;
    } else {
        sw_timer_start_at(&e->delivery, e->parts->due_ms);
    }
    if (part->type == PART_END) {
        sw_free(part);
        finish(e, code);
        return;
    }
    e->heard_ms = sw_now_ms(e->transport->loop);
    e->is_delivering = true;
    if (part->type == PART_HEAD) {
        deliver_head(e, part);
    } else if (e->events.on_body) {
        e->events.on_body(e->arg, part->bytes, part->len);
    }
    e->is_delivering = false;
    sw_free(part);
    if (e->transport) {
        arm_deadline(e);
    } else {
        free_if_done(e);
    }
}

/* Puts a part on its way, behind those that are. */
static void hand_over(struct exchange *e, enum part_type type, int code, const char *bytes,
                      size_t len, uint64_t delay)
{
    if (!e->transport || e->is_frozen) {
        return;
    }
    struct part *part = sw_malloc(sizeof(struct part) + len + 1);
    part->next = NULL;
    part->type = type;
    part->code = code;
    part->retry_after_s = e->retry_after_s;
    part->len = len;
    if (len > 0) {
        memcpy(part->bytes, bytes, len);
    }
    part->bytes[len] = '\0';
    part->due_ms = SW_MAX(e->last_due_ms, sw_now_ms(e->transport->loop) + delay);
    e->last_due_ms = part->due_ms;
    *e->last_part = part;
    e->last_part = &part->next;
    if (e->parts == part) {
        sw_timer_start_at(&e->delivery, part->due_ms);
    }
}

/* The connection is gone. */
static void break_off(struct exchange *e)
{
    hand_over(e, PART_END, e->has_head || e->parts ? SW_E_TRUNCATED : -ECONNRESET, NULL, 0,
              delay_ms(e->wire));
}

/* What the HTTP client does where a connection that was used before breaks without an answer. */
static bool is_repeated(struct exchange *e);

/* ---- at the server ---- */

static void send_whole(struct exchange *e)
{
    struct sw_sim_wire *wire = e->wire;
    const char *bytes = e->answer.bytes ? e->answer.bytes : "";
    size_t len = e->answer.len;
    uint64_t delay = delay_ms(wire);

    if (e->status == 200 && len > 1 && happens(wire, wire->faults.break_stream)) {
        wire->counts.broken++;
        hand_over(e, PART_HEAD, e->status, NULL, 0, delay);
        hand_over(e, PART_BODY, 0, bytes, sw_rng_between(&wire->rng, 1, len - 1), delay);
        hand_over(e, PART_END, SW_E_TRUNCATED, NULL, 0, delay);
        return;
    }
    hand_over(e, PART_HEAD, e->status, NULL, 0, delay);
    if (len > 1) {
        size_t cut = sw_rng_between(&wire->rng, 0, len);
        if (cut > 0) {
            hand_over(e, PART_BODY, 0, bytes, cut, delay);
        }
        if (cut < len) {
            hand_over(e, PART_BODY, 0, bytes + cut, len - cut, delay);
        }
    }
    hand_over(e, PART_END, 0, NULL, 0, delay);
}

static void set_answer(struct exchange *e, int status, const char *body)
{
    e->status = status;
    sw_buf_clear(&e->answer);
    sw_buf_puts(&e->answer, body);
}

static void say_status(struct exchange *e, int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {{409, "Conflict"},           {410, "Expired"},
                   {429, "TooManyRequests"},    {500, "InternalError"},
                   {503, "ServiceUnavailable"}, {504, "Timeout"}};
    const char *reason = "";
    char text[256];

    for (size_t i = 0; i < SW_ARRAY_SIZE(reasons); i++) {
        if (reasons[i].status == status) {
            reason = reasons[i].reason;
        }
    }
    snprintf(text, sizeof(text),
             "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
             "\"message\":\"the simulated network says so\",\"reason\":\"%s\",\"code\":%d}",
             reason, status);
    e->wire->counts.errors++;
    e->retry_after_s = status == 429 ? 1 : 0;
    set_answer(e, status, text);
}

static void lie_about_answer(struct exchange *e, char **body, size_t *len)
{
    const struct sw_sim_wire_liar *liar = e->wire->liar;

    if (liar && liar->on_answer) {
        liar->on_answer(liar->arg, &e->request, &e->status, body, len);
    }
}

static void server_finishes(struct exchange *e)
{
    e->is_server_done = true;
    if (e->hidden_status) {
        say_status(e, e->hidden_status);
    } else if (e->wire->liar && e->wire->liar->on_answer) {
        char *body = sw_strndup(e->answer.bytes ? e->answer.bytes : "", e->answer.len);
        size_t len = e->answer.len;
        lie_about_answer(e, &body, &len);
        sw_buf_clear(&e->answer);
        sw_buf_append(&e->answer, body, len);
        sw_free(body);
    }
    if (e->transport && e->loses_answer) {
        e->wire->counts.lost_answers++;
        if (is_repeated(e)) {
            return;
        }
        if (sw_rng_between(&e->wire->rng, 0, 1)) {
            break_off(e); /* else: silence, until the deadline */
        }
    } else if (e->transport) {
        send_whole(e);
    }
    free_if_done(e);
}

static void on_answer_head(void *arg, int status, const char *content_type, unsigned retry_after_s,
                           const char *const *warnings, size_t warning_count)
{
    struct exchange *e = arg;

    (void)content_type;
    (void)warnings;
    (void)warning_count;
    e->status = status;
    e->retry_after_s = retry_after_s;
    if (e->request.is_watch) {
        hand_over(e, PART_HEAD, status, NULL, 0, delay_ms(e->wire));
    }
}

static void on_watch_piece(struct exchange *e, const char *bytes, size_t len)
{
    struct sw_sim_wire *wire = e->wire;

    if (e->is_frozen || e->loses_answer) {
        return;
    }
    if (happens(wire, wire->faults.freeze_stream)) {
        wire->counts.frozen++;
        e->is_frozen = true;
        return;
    }
    if (happens(wire, wire->faults.break_stream)) {
        wire->counts.broken++;
        if (len > 1) {
            hand_over(e, PART_BODY, 0, bytes, sw_rng_between(&wire->rng, 1, len - 1),
                      delay_ms(wire));
        }
        break_off(e);
        e->loses_answer = true; /* nothing comes behind the break */
        return;
    }
    char *body = sw_strndup(bytes, len);
    lie_about_answer(e, &body, &len);
    if (len > 0) {
        hand_over(e, PART_BODY, 0, body, len, delay_ms(wire));
    }
    sw_free(body);
}

static void on_answer_body(void *arg, const char *bytes, size_t len)
{
    struct exchange *e = arg;

    if (e->request.is_watch) {
        on_watch_piece(e, bytes, len);
    } else {
        sw_buf_append(&e->answer, bytes, len);
    }
}

static void on_answer_end(void *arg, bool is_whole)
{
    struct exchange *e = arg;

    e->call = NULL;
    if (!e->request.is_watch) {
        server_finishes(e);
        return;
    }
    e->is_server_done = true;
    if (!e->loses_answer) {
        hand_over(e, PART_END, is_whole ? 0 : SW_E_TRUNCATED, NULL, 0, delay_ms(e->wire));
    }
    free_if_done(e);
}

/* Each request may be on a connection of its own, and each connection is to some server. NULL: one
 * that is up to date. */
static const struct sw_sim_cache *cache_for(struct exchange *e)
{
    struct sw_sim_wire *wire = e->wire;

    if (wire->cache_count == 0 || strcmp(e->method, "GET") != 0 ||
        !happens(wire, wire->faults.behind)) {
        return NULL;
    }
    wire->counts.behind++;
    return wire->caches[sw_rng_between(&wire->rng, 0, wire->cache_count - 1)];
}

static void carry_out(struct exchange *e)
{
    static const struct sw_sim_answer_events events = {on_answer_head, on_answer_body,
                                                       on_answer_end};
    const struct sw_sim_request request = {
        .method = e->method,
        .target = e->request.target,
        .content_type = e->content_type,
        .user_agent = e->user_agent,
        .username = e->username,
        .body = e->request.body,
        .body_len = e->request.body_len,
        .cache = cache_for(e),
    };

    sw_sim_api_send(e->wire->api, &request, &events, e, &e->call);
}

/* The error that comes instead of an answer; 0: none. *ret_is_after: it is carried out first. */
static int chosen_error(struct sw_sim_wire *wire, const struct exchange *e, bool *ret_is_after)
{
    const struct sw_sim_wire_faults *f = &wire->faults;
    bool is_get = strcmp(e->method, "GET") == 0;

    *ret_is_after = false;
    if (!is_get && happens(wire, f->answer_409)) {
        return 409;
    }
    if (is_get && happens(wire, f->answer_410)) {
        return 410;
    }
    if (happens(wire, f->answer_429)) {
        return 429;
    }
    *ret_is_after = !e->request.is_watch && sw_rng_between(&wire->rng, 0, 1);
    if (happens(wire, f->answer_500)) {
        return 500;
    }
    if (happens(wire, f->answer_503)) {
        return 503;
    }
    return happens(wire, f->answer_504) ? 504 : 0;
}

/* An error comes as a whole answer, also to a watch. */
static void answer_error(struct exchange *e, int status)
{
    say_status(e, status);
    e->is_server_done = true;
    send_whole(e);
    free_if_done(e);
}

static bool is_postponed(struct exchange *e)
{
    const struct sw_sim_wire_liar *liar = e->wire->liar;

    if (!liar || !liar->postpone || e->was_postponed) {
        return false;
    }
    e->was_postponed = true;
    uint64_t longer_ms = liar->postpone(liar->arg, &e->request);
    if (longer_ms > 0) {
        sw_timer_start(&e->arrival, longer_ms);
    }
    return longer_ms > 0;
}

static void on_arrival(struct sw_timer *timer)
{
    struct exchange *e = container_of(timer, struct exchange, arrival);
    if (is_postponed(e)) {
        return;
    }
    struct sw_sim_wire *wire = e->wire;
    const struct sw_sim_wire_liar *liar = wire->liar;
    bool is_after;
    int status = chosen_error(wire, e, &is_after);
    char *body = NULL;

    e->is_travelling = false;
    if (status && !is_after) {
        answer_error(e, status);
        return;
    }
    e->hidden_status = status;
    e->loses_answer = !e->request.is_watch && happens(wire, wire->faults.lose_answer);
    if (liar && liar->on_request && !liar->on_request(liar->arg, &e->request, &status, &body)) {
        set_answer(e, status, body);
        sw_free(body);
        e->is_server_done = true;
        send_whole(e);
        free_if_done(e);
        return;
    }
    carry_out(e);
}

/* ---- the transport ---- */

static struct wire_transport *of(struct sw_transport *transport)
{
    return container_of(transport, struct wire_transport, base);
}

/* Sends it off, or breaks. */
static void set_out(struct exchange *e)
{
    struct sw_sim_wire *wire = e->wire;
    uint64_t delay = delay_ms(wire);

    e->was_sent = e->was_sent || !wire->is_broken;
    if (wire->is_broken) {
        /* Refused at once, or swallowed until the deadline. */
        e->is_server_done = true;
        if (sw_rng_between(&wire->rng, 0, 1)) {
            hand_over(e, PART_END, -ECONNREFUSED, NULL, 0, delay);
        }
        return;
    }
    if (happens(wire, wire->faults.lose_request)) {
        wire->counts.lost_requests++;
        e->is_server_done = true;
        if (sw_rng_between(&wire->rng, 0, 1)) {
            break_off(e);
        }
        return;
    }
    e->is_server_done = false;
    e->is_travelling = true;
    sw_timer_start(&e->arrival, delay);
}

static bool is_repeated(struct exchange *e)
{
    if (!e->may_replay || sw_rng_between(&e->wire->rng, 0, 1)) {
        return false;
    }
    e->may_replay = false; /* once */
    e->loses_answer = false;
    e->hidden_status = 0;
    e->retry_after_s = 0;
    sw_buf_clear(&e->answer);
    set_out(e);
    return true;
}

static const char *field_of(const struct sw_http_request *request, const char *name)
{
    struct sw_http_fields fields = {request->fields, request->field_count};

    return sw_http_field_get(&fields, name);
}

static char *copy(const char *text)
{
    return text ? sw_strdup(text) : NULL;
}

static int wire_send(struct sw_transport *base, const struct sw_http_request *request,
                     const struct sw_http_exchange_events *events, void *arg, void **ret_exchange)
{
    struct wire_transport *t = of(base);
    struct sw_sim_wire *wire = t->wire;
    struct exchange *e = SW_NEW(struct exchange);

    e->wire = wire;
    e->transport = t;
    e->method = sw_strdup(request->method);
    e->content_type = copy(field_of(request, "Content-Type"));
    e->username = sw_strdup(t->username);
    e->user_agent = sw_strdup(t->user_agent);
    e->request.method = e->method;
    e->request.content_type = e->content_type;
    e->request.target = sw_strdup(request->target);
    e->request.body = request->body ? sw_strndup(request->body, request->body_len) : NULL;
    e->request.body_len = request->body ? request->body_len : 0;
    const char *query = strchr(request->target, '?');
    e->request.is_watch = query && strstr(query, "watch=");
    e->events = *events;
    e->arg = arg;
    e->may_replay = request->may_replay;
    e->head_timeout_ms = request->head_timeout_ms ? request->head_timeout_ms : HEAD_TIMEOUT_MS;
    e->total_timeout_ms = request->total_timeout_ms;
    e->silence_timeout_ms = request->silence_timeout_ms;
    e->sent_ms = e->heard_ms = sw_now_ms(t->loop);
    e->last_part = &e->parts;
    sw_buf_init(&e->answer, ANSWER_LIMIT);
    sw_timer_init(&e->arrival, wire->server_loop, on_arrival);
    sw_timer_init(&e->delivery, t->loop, on_delivery);
    sw_timer_init(&e->deadline, t->loop, on_deadline);
    sw_link_init(&e->link);
    sw_link_add_last(&wire->exchanges, &e->link);
    wire->counts.requests++;
    set_out(e);
    arm_deadline(e);
    *ret_exchange = e;
    return 0;
}

static void wire_cancel(struct sw_transport *base, void *exchange)
{
    struct exchange *e = exchange;

    (void)base;
    let_go(e, true);
}

static void wire_abort(struct sw_transport *base, void *exchange)
{
    struct exchange *e = exchange;

    (void)base;
    let_go(e, e->wire->has_late_packets && sw_rng_between(&e->wire->rng, 0, 1));
}

static bool wire_was_sent(struct sw_transport *base, const void *exchange)
{
    (void)base;
    return ((const struct exchange *)exchange)->was_sent;
}

static bool wire_refresh(struct sw_transport *base)
{
    (void)base;
    return false;
}

/* They never change here. */
static unsigned wire_credentials_number(struct sw_transport *base)
{
    (void)base;
    return 1;
}

static void wire_close(struct sw_transport *base)
{
    struct wire_transport *t = of(base);
    struct sw_sim_wire *wire = t->wire;

    SW_LIST_EACH (link, &wire->exchanges) {
        struct exchange *e = container_of(link, struct exchange, link);
        if (e->transport == t) {
            let_go(e, wire->has_late_packets);
        }
    }
    wire->transports--;
    sw_free(t->username);
    sw_free(t->user_agent);
    sw_free(t);
}

struct sw_transport *sw_sim_wire_open(struct sw_sim_wire *wire, struct sw_loop *client_loop,
                                      const char *username, const char *user_agent)
{
    static const struct sw_transport_ops ops = {
        .send = wire_send,
        .cancel = wire_cancel,
        .abort = wire_abort,
        .was_sent = wire_was_sent,
        .refresh_credentials = wire_refresh,
        .credentials_number = wire_credentials_number,
        .close = wire_close,
    };
    struct wire_transport *t = SW_NEW(struct wire_transport);

    t->base.ops = &ops;
    t->wire = wire;
    t->loop = client_loop;
    t->username = sw_strdup(username);
    t->user_agent = sw_strdup(user_agent);
    wire->transports++;
    return &t->base;
}

/* ---- the wire ---- */

struct sw_sim_wire *sw_sim_wire_new(struct sw_loop *server_loop, struct sw_sim_api *api,
                                    uint64_t seed)
{
    struct sw_sim_wire *wire = SW_NEW(struct sw_sim_wire);

    wire->server_loop = server_loop;
    wire->api = api;
    sw_rng_seed(&wire->rng, seed);
    sw_link_init(&wire->exchanges);
    return wire;
}

struct sw_sim_wire *sw_sim_wire_free(struct sw_sim_wire *wire)
{
    if (!wire) {
        return NULL;
    }
    sw_assert(wire->transports == 0);
    SW_LIST_EACH (link, &wire->exchanges) {
        struct exchange *e = container_of(link, struct exchange, link);
        end_server(e);
        free_if_done(e);
    }
    return sw_free(wire);
}

void sw_sim_wire_set_faults(struct sw_sim_wire *wire, const struct sw_sim_wire_faults *faults)
{
    wire->faults = *faults;
}

void sw_sim_wire_set_liar(struct sw_sim_wire *wire, const struct sw_sim_wire_liar *liar)
{
    wire->liar = liar;
}

void sw_sim_wire_set_late_packets(struct sw_sim_wire *wire, bool is_on)
{
    wire->has_late_packets = is_on;
}

void sw_sim_wire_set_caches(struct sw_sim_wire *wire, struct sw_sim_cache *const *caches,
                            size_t count)
{
    wire->caches = caches;
    wire->cache_count = count;
}

void sw_sim_wire_set_broken(struct sw_sim_wire *wire, bool is_broken)
{
    wire->is_broken = is_broken;
    if (!is_broken) {
        return;
    }
    SW_LIST_EACH (link, &wire->exchanges) {
        struct exchange *e = container_of(link, struct exchange, link);
        if (!e->transport) {
            continue;
        }
        if (e->is_travelling && !wire->has_late_packets) {
            end_server(e);
        }
        drop_parts(e);
        sw_timer_stop(&e->delivery);
        if (sw_rng_between(&wire->rng, 0, 1)) {
            break_off(e);
        }
        e->is_frozen = true; /* nothing else comes: half open, or ended already */
    }
}

struct sw_sim_wire_counts sw_sim_wire_counts(const struct sw_sim_wire *wire)
{
    return wire->counts;
}
