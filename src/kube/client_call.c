/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call: one request with a whole answer, with the tries that the API server asks for.
 *
 *   state     what happens                         next
 *   QUEUED    waits for the rate limit             SENT; ENDED at the deadline
 *   SENT      one try is under way                 WAITING on 429, or 5xx with Retry-After;
 *                                                  SENT once more on 401 with new credentials;
 *                                                  else ENDED
 *   WAITING   Retry-After and jitter               SENT (through the rate limit: QUEUED)
 *   ENDED     fenced: the callback is on its way   gone
 *
 * The callback is the last thing that happens: the call has left the client before, and is freed
 * after without another look at anything else.
 */
#include <errno.h>
#include <slipway/arena.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/util.h"
#include "kube/client_internal.h"

enum { RETRIES_MAX = 10 };

#define DEADLINE_MS UINT64_C(60000)
#define HEAD_TIMEOUT_MS UINT64_C(30000)
#define BODY_LIMIT (UINT64_C(32) << 20)
/* 429 without Retry-After does not happen with the API server; a proxy may do it. */
#define RETRY_UNNAMED_MS UINT64_C(1000)
/* Calls that were refused together shall not come back together. */
#define JITTER_MIN_MS UINT64_C(250)

enum state {
    CALL_QUEUED,
    CALL_SENT,
    CALL_WAITING,
    CALL_ENDED,
};

struct sw_call {
    struct sw_client *client;
    struct sw_link link;
    enum state state;
    sw_reply_fn fn;
    void *arg;

    char *method, *target, *content_type, *body, *lane;
    size_t body_len;
    bool is_guarded, is_fenced, logs_itself;

    uint64_t due_ms;
    unsigned retries;
    unsigned credentials; /* of this try */
    bool was_refreshed;
    bool may_have_arrived;

    struct sw_rate_waiter waiter;
    struct sw_timer timer; /* QUEUED: the deadline; WAITING: the next try */
    struct sw_defer defer; /* ENDED */
    uint64_t asked_ns;     /* for the rate limit */
    uint64_t sent_ns;
    void *exchange;
    struct sw_answer answer;
    struct sw_buf received;
};

struct sw_call *sw_call_of_link(struct sw_link *link)
{
    return container_of(link, struct sw_call, link);
}

/* Takes it out of everything, so that nothing comes any more. */
static void detach(struct sw_call *call)
{
    struct sw_client *client = call->client;
    if (call->exchange) {
        client->transport->ops->cancel(client->transport, call->exchange);
        call->exchange = NULL;
    }
    sw_rate_limit_forget(&client->limit, &call->waiter);
    sw_timer_stop(&call->timer);
    sw_defer_stop(&call->defer);
    sw_link_remove(&call->link);
}

static void destroy(struct sw_call *call)
{
    sw_buf_done(&call->received);
    sw_free(call->method);
    sw_free(call->target);
    sw_free(call->content_type);
    sw_free_secret(call->body, call->body_len); /* of a Secret, say */
    sw_free(call->lane);
    sw_free(call);
}

void sw_call_free(struct sw_call *call)
{
    detach(call);
    destroy(call);
}

void sw_call_cancel(struct sw_call *call)
{
    sw_call_free(call);
}

/* ---- the end ---- */

static bool is_trouble(int status)
{
    return status >= 500 || status == 429 || status == 401 || status == 403;
}

static void finish(struct sw_call *call, int code, const struct sw_error *error)
{
    detach(call);
    struct sw_error words = {.code = code};
    struct sw_arena *arena = NULL;
    struct sw_reply reply = {
        .code = code,
        .was_sent = call->may_have_arrived,
        .audit_id = call->answer.audit_id,
        .why = {.reason = "", .message = ""},
    };
    if (code) {
        if (!error || !error->text[0]) {
            sw_error_set(&words, code, "%s", sw_strerror(code));
            error = &words;
        }
        reply.error = error;
    } else {
        reply.status = call->answer.status;
        reply.body = call->received.bytes;
        reply.body_len = call->received.len;
    }
    if (reply.status >= 400) {
        arena = sw_arena_new(0);
        sw_decode_status(arena, reply.body, reply.body_len, &reply.why);
    }
    if (is_trouble(reply.status) && !call->logs_itself) {
        sw_client_log_answer(call->client, call->method, call->target, &call->answer,
                             reply.why.message);
    }
    call->fn(call->arg, &reply);
    sw_arena_free(arena);
    destroy(call);
}

/* ---- a try ---- */

static void on_head(void *arg, const struct sw_http_head *head)
{
    struct sw_call *call = arg;
    sw_client_read_head(call->client, head, &call->answer);
}

static void on_body(void *arg, const char *bytes, size_t len)
{
    struct sw_call *call = arg;
    /* The transport ends an answer beyond the limit; the buffer has the same one. */
    sw_buf_append(&call->received, bytes, len);
}

static void on_end(void *arg, int code, const struct sw_error *error);

/* By the clock, whatever was noticed meanwhile. */
static int may_send(const struct sw_call *call)
{
    const struct sw_client *client = call->client;
    bool is_asked = call->is_fenced && client->may_write;
    return !is_asked || client->may_write(client->may_write_arg) ? 0 : SW_E_NOT_LEADER;
}

/* It may have waited long for a connection. */
static int on_send(void *arg)
{
    return may_send(arg);
}

static const struct sw_http_exchange_events exchange_events = {on_head, on_body, on_end, on_send};

/* 0: under way. */
static int send_now(struct sw_call *call)
{
    struct sw_client *client = call->client;
    int may_rc = may_send(call);
    if (may_rc) {
        return may_rc;
    }
    uint64_t now = sw_now_ms(client->loop);
    if (now >= call->due_ms) {
        return -ETIMEDOUT;
    }
    struct sw_http_field fields[2] = {{"Accept", "application/json"}};
    size_t count = 1;
    if (call->body) {
        fields[count++] = (struct sw_http_field){"Content-Type", call->content_type};
    }
    uint64_t left_ms = call->due_ms - now;
    struct sw_http_request request = {
        .method = call->method,
        .target = call->target,
        .fields = fields,
        .field_count = count,
        .body = call->body,
        .body_len = call->body_len,
        .own_connection = call->lane,
        .may_replay = call->is_guarded,
        .head_timeout_ms = SW_MIN(left_ms, HEAD_TIMEOUT_MS),
        .total_timeout_ms = left_ms,
        .body_limit_bytes = BODY_LIMIT,
    };
    call->answer = (struct sw_answer){0};
    sw_buf_clear(&call->received);
    call->credentials = sw_client_credentials(client);
    call->sent_ns = sw_now_ns(client->loop);
    int rc = client->transport->ops->send(client->transport, &request, &exchange_events, call,
                                          &call->exchange);
    if (rc == 0) {
        call->state = CALL_SENT;
    }
    return rc;
}

static void send_or_finish(struct sw_call *call)
{
    int rc = send_now(call);
    if (rc) {
        finish(call, rc, NULL);
    }
}

static void on_token(struct sw_rate_waiter *waiter)
{
    struct sw_call *call = container_of(waiter, struct sw_call, waiter);
    sw_timer_stop(&call->timer);
    sw_client_got_token(call->client, call->method, call->asked_ns);
    send_or_finish(call);
}

/* Through the rate limit, unless the call has a lane of its own. 0, also when it has to wait. */
static int queue_or_send(struct sw_call *call)
{
    call->asked_ns = sw_now_ns(call->client->loop);
    if (call->lane || sw_client_take_token(call->client, call->method, &call->waiter)) {
        return send_now(call);
    }
    call->state = CALL_QUEUED;
    sw_timer_start_at(&call->timer, call->due_ms);
    return 0;
}

static void on_timer(struct sw_timer *timer)
{
    struct sw_call *call = container_of(timer, struct sw_call, timer);
    int rc = call->state == CALL_QUEUED ? -ETIMEDOUT : queue_or_send(call);
    if (rc) {
        finish(call, rc, NULL);
    }
}

/* True if the answer asks for another try and there is time for it. */
static bool waits_for_retry(struct sw_call *call)
{
    const struct sw_answer *answer = &call->answer;
    bool is_asked = answer->status == 429 || (answer->status >= 500 && answer->has_retry_after);
    if (!is_asked || call->retries >= RETRIES_MAX) {
        return false;
    }
    struct sw_client *client = call->client;
    uint64_t wait = answer->has_retry_after ? answer->retry_after_ms : RETRY_UNNAMED_MS;
    wait += sw_random_between(client->loop, 0, SW_MAX(wait / 4, JITTER_MIN_MS));
    if (sw_now_ms(client->loop) + wait >= call->due_ms) {
        return false;
    }
    sw_client_log_answer(client, call->method, call->target, answer, "trying again");
    char code[16];
    snprintf(code, sizeof(code), "%d", answer->status);
    const char *const values[] = {code, call->method, client->host};
    sw_metric_add(sw_metric_child(client->retries_total, values), 1);
    call->retries++;
    call->state = CALL_WAITING;
    sw_timer_start(&call->timer, wait);
    return true;
}

static void on_end(void *arg, int code, const struct sw_error *error)
{
    struct sw_call *call = arg;
    struct sw_client *client = call->client;
    int status = code ? 0 : call->answer.status;
    /* 401 and 429 are refused before anything is done; after 5xx nobody knows. */
    if (status != 401 && status != 429) {
        call->may_have_arrived = call->may_have_arrived || client->transport->ops->was_sent(
                                                               client->transport, call->exchange);
    }
    call->exchange = NULL;
    sw_client_count(client, call->method, status);
    sw_client_observe(client, call->method, call->sent_ns);
    if (status == 401 && !call->was_refreshed && sw_client_refresh(client, call->credentials)) {
        call->was_refreshed = true;
        send_or_finish(call);
    } else if (code || !waits_for_retry(call)) {
        finish(call, code, error);
    }
}

/* ---- from outside ---- */

static char *copy_text(const char *text)
{
    return text ? sw_strdup(text) : NULL;
}

static void on_defer(struct sw_defer *defer)
{
    finish(container_of(defer, struct sw_call, defer), -ECANCELED, NULL);
}

int sw_client_call(struct sw_client *client, const struct sw_call_options *options, sw_reply_fn fn,
                   void *arg, struct sw_call **ret_call)
{
    struct sw_call *call = SW_NEW(struct sw_call);
    call->client = client;
    call->fn = fn;
    call->arg = arg;
    call->method = sw_strdup(options->method);
    call->target = sw_client_target(client, options->path);
    call->content_type =
        sw_strdup(options->content_type ? options->content_type : "application/json");
    call->body = options->body ? sw_strndup(options->body, options->body_len) : NULL;
    call->body_len = options->body ? options->body_len : 0;
    call->lane = copy_text(options->lane);
    call->is_guarded = options->is_guarded || strcmp(options->method, "GET") == 0;
    call->is_fenced = options->is_fenced;
    call->logs_itself = options->logs_itself;
    call->due_ms =
        sw_now_ms(client->loop) + (options->deadline_ms ? options->deadline_ms : DEADLINE_MS);
    sw_rate_waiter_init(&call->waiter, on_token);
    sw_link_init(&call->link);
    sw_buf_init(&call->received, BODY_LIMIT);
    call->received.is_secret = options->is_secret;
    sw_timer_init(&call->timer, client->loop, on_timer);
    sw_defer_init(&call->defer, client->loop, on_defer);
    sw_link_add_last(&client->calls, &call->link);
    int rc = queue_or_send(call);
    if (rc) {
        sw_call_free(call);
        return rc;
    }
    *ret_call = call;
    return 0;
}

void sw_client_fence(struct sw_client *client)
{
    const struct sw_transport_ops *ops = client->transport->ops;
    SW_LIST_EACH (link, &client->calls) {
        struct sw_call *call = sw_call_of_link(link);
        if (!call->is_fenced || call->state == CALL_ENDED) {
            continue;
        }
        if (call->exchange) {
            call->may_have_arrived =
                call->may_have_arrived || ops->was_sent(client->transport, call->exchange);
            ops->abort(client->transport, call->exchange);
            call->exchange = NULL;
        }
        sw_rate_limit_forget(&client->limit, &call->waiter);
        sw_timer_stop(&call->timer);
        call->state = CALL_ENDED;
        sw_defer_start(&call->defer);
    }
}
