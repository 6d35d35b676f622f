/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream: one request whose answer is handed on as it comes. Nothing is tried again here, but for
 * one 401: whoever lists or watches knows better when and from where to go on.
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

/* Of the body of an error: a Status is a few hundred bytes, of a proxy's page the beginning says
 * enough. */
enum { ERROR_BODY_LIMIT = 65536 };

struct sw_client_stream_call {
    struct sw_client *client;
    struct sw_link link;
    const struct sw_client_stream_events *events;
    void *arg;

    char *target, *lane;
    uint64_t head_timeout_ms, silence_timeout_ms, total_timeout_ms;

    struct sw_rate_waiter waiter;
    uint64_t asked_ns, sent_ns;
    void *exchange;
    unsigned credentials; /* of this try */
    bool was_refreshed;
    bool is_ending; /* on_end is being called */
    struct sw_answer answer;
    struct sw_buf error_body;
};

struct sw_client_stream_call *sw_client_stream_call_of_link(struct sw_link *link)
{
    return container_of(link, struct sw_client_stream_call, link);
}

static void detach(struct sw_client_stream_call *call)
{
    struct sw_client *client = call->client;
    if (call->exchange) {
        client->transport->ops->cancel(client->transport, call->exchange);
        call->exchange = NULL;
    }
    sw_rate_limit_forget(&client->limit, &call->waiter);
    sw_link_remove(&call->link);
}

static void destroy(struct sw_client_stream_call *call)
{
    sw_buf_done(&call->error_body);
    sw_free(call->target);
    sw_free(call->lane);
    sw_free(call);
}

void sw_client_stream_call_free(struct sw_client_stream_call *call)
{
    detach(call);
    destroy(call);
}

void sw_client_stream_call_cancel(struct sw_client_stream_call *call)
{
    if (call && !call->is_ending) {
        sw_client_stream_call_free(call);
    }
}

static void finish(struct sw_client_stream_call *call, int code, const struct sw_error *error)
{
    detach(call);
    call->is_ending = true;
    struct sw_error words = {.code = code};
    struct sw_arena *arena = NULL;
    const struct sw_answer *answer = &call->answer;
    if (code && (!error || !error->text[0])) {
        sw_error_set(&words, code, "%s", sw_strerror(code));
        error = &words;
    }
    struct sw_stream_reply reply = {
        .code = code,
        .status = answer->status,
        .why = {.reason = "", .message = ""},
        .retry_after_ms = answer->has_retry_after ? answer->retry_after_ms : 0,
        .audit_id = answer->audit_id,
        .flow_schema = answer->flow_schema,
        .priority_level = answer->priority_level,
        .error = code ? error : NULL,
    };
    if (!code && answer->status != 200) {
        arena = sw_arena_new(0);
        sw_decode_status(arena, call->error_body.bytes, call->error_body.len, &reply.why);
    }
    call->events->on_end(call->arg, &reply);
    sw_arena_free(arena);
    destroy(call);
}

/* ---- the exchange ---- */

static void on_head(void *arg, const struct sw_http_head *head)
{
    struct sw_client_stream_call *call = arg;
    struct sw_client *client = call->client;
    sw_client_read_head(client, head, &call->answer);
    sw_client_count(client, "GET", head->status);
    sw_client_observe(client, "GET", call->sent_ns);
    if (head->status != 401 || call->was_refreshed) {
        call->events->on_open(call->arg, head->status);
    }
}

static void on_body(void *arg, const char *bytes, size_t len)
{
    struct sw_client_stream_call *call = arg;
    if (call->answer.status == 200) {
        call->events->on_bytes(call->arg, bytes, len);
        return;
    }
    size_t room = call->error_body.limit_bytes - call->error_body.len;
    sw_buf_append(&call->error_body, bytes, SW_MIN(len, room));
}

static void on_end(void *arg, int code, const struct sw_error *error);

static const struct sw_http_exchange_events exchange_events = {on_head, on_body, on_end};

static int send_now(struct sw_client_stream_call *call)
{
    static const struct sw_http_field fields[] = {{"Accept", "application/json"}};
    struct sw_client *client = call->client;
    struct sw_http_request request = {
        .method = "GET",
        .target = call->target,
        .fields = fields,
        .field_count = SW_ARRAY_SIZE(fields),
        .own_connection = call->lane,
        .may_replay = true,
        .head_timeout_ms = call->head_timeout_ms,
        .total_timeout_ms = call->total_timeout_ms,
        .silence_timeout_ms = call->silence_timeout_ms,
    };
    call->answer = (struct sw_answer){0};
    sw_buf_clear(&call->error_body);
    call->credentials = sw_client_credentials(client);
    call->sent_ns = sw_now_ns(client->loop);
    return client->transport->ops->send(client->transport, &request, &exchange_events, call,
                                        &call->exchange);
}

static void send_or_finish(struct sw_client_stream_call *call)
{
    int rc = send_now(call);
    if (rc) {
        finish(call, rc, NULL);
    }
}

static void on_end(void *arg, int code, const struct sw_error *error)
{
    struct sw_client_stream_call *call = arg;
    struct sw_client *client = call->client;
    call->exchange = NULL;
    if (call->answer.status == 0) {
        sw_client_count(client, "GET", 0);
    }
    if (!code && call->answer.status == 401 && !call->was_refreshed) {
        call->was_refreshed = true;
        if (sw_client_refresh(client, call->credentials)) {
            send_or_finish(call);
            return;
        }
    }
    finish(call, code, error);
}

static void on_token(struct sw_rate_waiter *waiter)
{
    struct sw_client_stream_call *call = container_of(waiter, struct sw_client_stream_call, waiter);
    sw_client_got_token(call->client, "GET", call->asked_ns);
    send_or_finish(call);
}

int sw_client_stream(struct sw_client *client, const struct sw_client_stream_options *options,
                     const struct sw_client_stream_events *events, void *arg,
                     struct sw_client_stream_call **ret_call)
{
    struct sw_client_stream_call *call = SW_NEW(struct sw_client_stream_call);
    call->client = client;
    call->events = events;
    call->arg = arg;
    call->target = sw_client_target(client, options->path);
    call->lane = options->lane ? sw_strdup(options->lane) : NULL;
    call->head_timeout_ms = options->head_timeout_ms;
    call->silence_timeout_ms = options->silence_timeout_ms;
    call->total_timeout_ms = options->total_timeout_ms;
    sw_rate_waiter_init(&call->waiter, on_token);
    sw_link_init(&call->link);
    call->asked_ns = sw_now_ns(client->loop);
    sw_buf_init(&call->error_body, ERROR_BODY_LIMIT);
    sw_link_add_last(&client->streams, &call->link);
    if (call->lane || sw_client_take_token(client, "GET", &call->waiter)) {
        int rc = send_now(call);
        if (rc) {
            sw_client_stream_call_free(call);
            return rc;
        }
    }
    *ret_call = call;
    return 0;
}
