/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One struct exchange for each request, from its arrival until its answer has ended at both sides:
 * the API server's call and the HTTP answer end independently of each other.
 */
#include "front.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/list.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/time.h"
#include "base/util.h"
#include "dump.h"
#include "fault_rules.h"
#include "net/http_server.h"
#include "token.h"
#include "trace.h"

/* What may wait for a slow reader of a watch; then it is cut, as the real server does. */
enum { WAITING_LIMIT_BYTES = 64 * 1024 * 1024 };

struct sw_sim_front {
    struct sw_loop *loop;
    struct sw_sim_api *api;
    struct sw_sim_fault_rules *rules;
    struct sw_log log;
    struct sw_http_server *server;
    struct sw_sim_trace *trace; /* NULL: none */
    char *admin_token;
    struct sw_link exchanges; /* struct exchange */
    bool is_closing;
};

struct exchange {
    struct sw_link link;
    struct sw_sim_front *front;
    struct sw_http_incoming *incoming; /* NULL: answered */
    struct sw_sim_call *call;          /* NULL: none, or ended */
    struct sw_sim_fault fault;
    struct sw_timer delay;
    uint64_t id; /* in the trace */
    char *username;
    /* the answer */
    int status;
    char *content_type;
    char retry_after[16];
    char **warnings; /* header values */
    size_t warning_count;
    struct sw_buf body; /* of a whole answer; of a stream what waits for its reader */
    size_t sent;        /* bytes handed over, for cutting */
    bool is_stream;     /* the head was sent, and pieces follow */
    bool is_over;       /* the call has ended; what waits is still to be sent */
    bool is_whole;
};

/* ---- ends ---- */

static void exchange_free(struct exchange *x)
{
    sw_link_remove(&x->link);
    sw_timer_stop(&x->delay);
    if (x->call)
        sw_sim_api_cancel(x->front->api, x->call);
    for (size_t i = 0; i < x->warning_count; i++)
        sw_free(x->warnings[i]);
    sw_free(x->warnings);
    sw_free(x->content_type);
    sw_free(x->username);
    sw_buf_done(&x->body);
    sw_free(x);
}

static void answer_text(struct exchange *x, int status, const char *reason, const char *message)
{
    json_t *body = json_pack("{s:s, s:s, s:{}, s:s, s:s, s:s, s:i}", "kind", "Status", "apiVersion",
                             "v1", "metadata", "status", "Failure", "message", message, "reason",
                             reason, "code", status);
    char *text = sw_sim_dump_as(body, JSON_COMPACT);
    struct sw_http_field retry = {"Retry-After", x->retry_after};
    struct sw_http_answer answer = {
        .status = status,
        .content_type = "application/json",
        .fields = &retry,
        .field_count = x->retry_after[0] != '\0',
        .body = text,
        .body_len = strlen(text),
    };
    uint64_t now = sw_sim_trace_now();

    sw_http_answer(sw_steal(&x->incoming), &answer);
    sw_sim_trace_answer(x->front->trace, now, x->id, status, answer.body_len);
    sw_free(text);
    json_decref(body);
}

/* ---- the answer goes out ---- */

static void answer_head(const struct exchange *x, struct sw_http_field *fields,
                        struct sw_http_answer *answer)
{
    size_t count = 0;

    for (size_t i = 0; i < x->warning_count; i++)
        fields[count++] = (struct sw_http_field){"Warning", x->warnings[i]};
    if (x->retry_after[0])
        fields[count++] = (struct sw_http_field){"Retry-After", x->retry_after};
    *answer = (struct sw_http_answer){
        .status = x->status,
        .content_type = x->content_type,
        .fields = fields,
        .field_count = count,
    };
}

static void end_stream(struct exchange *x, bool is_whole)
{
    sw_http_answer_end(sw_steal(&x->incoming), is_whole);
    exchange_free(x);
}

/* Sends what waits. The exchange may be freed. */
static void flush(struct exchange *x)
{
    size_t len = x->body.len;
    bool is_cut = x->fault.action == SW_SIM_FAULT_CUT && x->sent + len >= x->fault.cut_after;

    if (is_cut)
        len = x->fault.cut_after - x->sent;
    uint64_t now = sw_sim_trace_now();
    int code = len ? sw_http_answer_write(x->incoming, x->body.bytes, len) : 0;
    if (len && !code)
        sw_sim_trace_piece(x->front->trace, now, x->id, x->body.bytes, len);
    if (code == -ENOBUFS && x->body.len <= WAITING_LIMIT_BYTES)
        return; /* on_drain comes */
    if (code || is_cut) {
        end_stream(x, false);
        return;
    }
    x->sent += len;
    sw_buf_clear(&x->body);
    if (x->is_over)
        end_stream(x, x->is_whole);
}

static void on_drain(void *arg)
{
    flush(arg);
}

static void on_gone(void *arg)
{
    end_stream(arg, false);
}

static void begin_stream(struct exchange *x)
{
    static const struct sw_http_answer_events events = {.on_drain = on_drain, .on_gone = on_gone};
    struct sw_http_field *fields = sw_calloc(x->warning_count + 1, sizeof(*fields));
    struct sw_http_answer answer;

    answer_head(x, fields, &answer);
    x->is_stream = true;
    sw_http_answer_start(x->incoming, &answer, &events, x);
    sw_free(fields);
}

static void answer_whole(struct exchange *x)
{
    struct sw_http_field *fields = sw_calloc(x->warning_count + 1, sizeof(*fields));
    struct sw_http_answer answer;

    answer_head(x, fields, &answer);
    answer.body = x->body.bytes;
    answer.body_len = x->body.len;
    uint64_t now = sw_sim_trace_now();
    sw_http_answer(sw_steal(&x->incoming), &answer);
    sw_sim_trace_answer(x->front->trace, now, x->id, x->status, x->body.len);
    sw_free(fields);
    exchange_free(x);
}

/* ---- events of the call ---- */

static char *warning_field(const char *text)
{
    struct sw_buf out;

    sw_buf_init(&out, 4096);
    sw_buf_puts(&out, "299 - \"");
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            sw_buf_printf(&out, "\\%c", *text);
        else
            sw_buf_append(&out, text, 1);
    sw_buf_puts(&out, "\"");
    return sw_buf_steal(&out);
}

static void on_head(void *arg, int status, const char *content_type, unsigned retry_after_s,
                    const char *const *warnings, size_t warning_count)
{
    struct exchange *x = arg;

    x->status = status;
    x->content_type = sw_strdup(content_type ? content_type : "application/json");
    if (retry_after_s)
        snprintf(x->retry_after, sizeof(x->retry_after), "%u", retry_after_s);
    x->warnings = sw_calloc(warning_count + 1, sizeof(*x->warnings));
    while (x->warning_count < warning_count) {
        x->warnings[x->warning_count] = warning_field(warnings[x->warning_count]);
        x->warning_count++;
    }
    bool is_watch = strstr(x->incoming->query, "watch=") != NULL && status == 200;
    if (is_watch || x->fault.action == SW_SIM_FAULT_CUT)
        begin_stream(x);
}

static void on_body(void *arg, const char *bytes, size_t len)
{
    struct exchange *x = arg;

    if (x->fault.action == SW_SIM_FAULT_SILENCE)
        return;
    sw_buf_append(&x->body, bytes, len);
    if (x->is_stream)
        flush(x);
}

static void on_end(void *arg, bool is_whole)
{
    struct exchange *x = arg;

    x->call = NULL;
    x->is_over = true;
    x->is_whole = is_whole;
    if (x->fault.action == SW_SIM_FAULT_SILENCE)
        return; /* until the server closes */
    if (x->is_stream)
        flush(x);
    else
        answer_whole(x);
}

/* ---- the request comes in ---- */

static void call(struct exchange *x)
{
    static const struct sw_sim_answer_events events = {
        .on_head = on_head, .on_body = on_body, .on_end = on_end};
    static const char *const masters[] = {"system:masters", "system:authenticated", NULL};
    static const char *const accounts[] = {"system:serviceaccounts", "system:authenticated", NULL};
    const struct sw_http_incoming *in = x->incoming;
    struct sw_buf target;

    sw_buf_init(&target, SIZE_MAX);
    sw_buf_printf(&target, "%s%s%s", in->path, in->query[0] ? "?" : "", in->query);
    struct sw_sim_request request = {
        .method = in->method,
        .target = target.bytes,
        .accept = sw_http_field_get(&in->fields, "Accept"),
        .content_type = sw_http_field_get(&in->fields, "Content-Type"),
        .user_agent = sw_http_field_get(&in->fields, "User-Agent"),
        .username = x->username,
        .groups = strcmp(x->username, "admin") == 0 ? masters : accounts,
        .body = in->body,
        .body_len = in->body_len,
    };
    sw_sim_api_send(x->front->api, &request, &events, x, &x->call);
    sw_buf_done(&target);
}

static void on_delayed(struct sw_timer *timer)
{
    call(container_of(timer, struct exchange, delay));
}

/* Who the bearer of the request's token is; NULL: nobody we know. */
static char *authenticate(const struct sw_sim_front *front, const struct sw_http_incoming *in)
{
    const char *field = sw_http_field_get(&in->fields, "Authorization");

    if (!field || strncmp(field, "Bearer ", 7) != 0)
        return NULL;
    if (strcmp(field + 7, front->admin_token) == 0)
        return sw_strdup("admin");
    return sw_sim_token_subject(field + 7, sw_wall_us(front->loop) / 1000000);
}

/* TokenRequest (authentication.k8s.io/v1) for a service account, whether it is there or not. */
static bool answer_token_request(struct exchange *x)
{
    char namespace_[64], name[254];
    int end = 0;
    const struct sw_http_incoming *in = x->incoming;

    sscanf(in->path, "/api/v1/namespaces/%63[^/]/serviceaccounts/%253[^/]/token%n", namespace_,
           name, &end);
    if (!end || in->path[end] || strcmp(in->method, "POST") != 0)
        return false;
    json_t *body = json_loads(in->body, 0, NULL);
    json_int_t seconds =
        json_integer_value(json_object_get(json_object_get(body, "spec"), "expirationSeconds"));
    int64_t until_us = sw_wall_us(x->front->loop) + (seconds ? seconds : 3600) * 1000000;
    char until[SW_TIME_SIZE];
    SW_AUTO(char, sw_free) token = sw_sim_token_new(namespace_, name, until_us / 1000000);

    sw_time_format(until_us, until);
    json_t *answer = json_pack("{s:s, s:s, s:{s:s, s:s}}", "kind", "TokenRequest", "apiVersion",
                               "authentication.k8s.io/v1", "status", "token", token,
                               "expirationTimestamp", until);
    char *text = sw_sim_dump_as(answer, JSON_COMPACT);
    sw_buf_puts(&x->body, text);
    x->status = 201;
    x->content_type = sw_strdup("application/json");
    sw_free(text);
    json_decref(answer);
    json_decref(body);
    answer_whole(x);
    return true;
}

static bool is_probe(const char *path)
{
    return strcmp(path, "/healthz") == 0 || strcmp(path, "/readyz") == 0 ||
           strcmp(path, "/livez") == 0;
}

static void answer_fault(struct exchange *x)
{
    if (x->fault.retry_after_s)
        snprintf(x->retry_after, sizeof(x->retry_after), "%u", x->fault.retry_after_s);
    answer_text(x, x->fault.status, sw_http_reason(x->fault.status), "a fault that was asked for");
    exchange_free(x);
}

static void serve(struct exchange *x)
{
    const struct sw_http_incoming *in = x->incoming;
    uint64_t now = sw_sim_trace_now();

    x->username = authenticate(x->front, in);
    x->id = sw_sim_trace_number(x->front->trace);
    struct sw_sim_trace_request traced = {
        .user = x->username,
        .peer = in->peer,
        .method = in->method,
        .path = in->path,
        .query = in->query,
        .body = in->body,
        .body_len = in->body_len,
    };
    sw_sim_trace_request(x->front->trace, now, x->id, &traced);
    if (!x->username && is_probe(in->path))
        x->username = sw_strdup("system:anonymous");
    if (!x->username) {
        answer_text(x, 401, "Unauthorized", "Unauthorized");
        exchange_free(x);
        return;
    }
    x->fault = sw_sim_fault_rules_draw(x->front->rules, in->method, in->path, in->query,
                                       sw_http_field_get(&in->fields, "User-Agent"));
    if (x->fault.action == SW_SIM_FAULT_STATUS)
        answer_fault(x);
    else if (answer_token_request(x))
        return;
    else if (x->fault.action == SW_SIM_FAULT_DELAY)
        sw_timer_start(&x->delay, x->fault.delay_ms);
    else
        call(x);
}

static void on_request(void *arg, struct sw_http_incoming *incoming)
{
    struct sw_sim_front *front = arg;

    if (front->is_closing) {
        sw_http_answer_text(incoming, 503, "closing");
        return;
    }
    struct exchange *x = SW_NEW(struct exchange);
    x->front = front;
    x->incoming = incoming;
    sw_link_init(&x->link);
    sw_link_add_last(&front->exchanges, &x->link);
    sw_timer_init(&x->delay, front->loop, on_delayed);
    sw_buf_init(&x->body, SIZE_MAX);
    serve(x);
}

/* ---- open and close ---- */

static void on_closed(void *arg)
{
    struct sw_sim_front *front = arg;

    sw_free(front->admin_token);
    sw_free(front);
}

int sw_sim_front_open(struct sw_loop *loop, struct sw_sim_api *api,
                      struct sw_sim_fault_rules *rules, const struct sw_sim_front_options *options,
                      const struct sw_log *log, struct sw_sim_front **ret_front,
                      struct sw_error *error)
{
    struct sw_sim_front *front = SW_NEW(struct sw_sim_front);
    struct sw_http_server_options http = {
        .address = options->address,
        .tls = options->tls,
        .max_connections = 4096, /* a watch for each kind of each client */
    };

    front->loop = loop;
    front->api = api;
    front->rules = rules;
    front->log = *log;
    front->admin_token = sw_strdup(options->admin_token);
    front->trace = options->trace;
    sw_link_init(&front->exchanges);
    int code =
        sw_http_server_open(loop, &http, on_request, front, &front->log, &front->server, error);
    if (code) {
        on_closed(front);
        return code;
    }
    *ret_front = front;
    return 0;
}

uint16_t sw_sim_front_port(const struct sw_sim_front *front)
{
    return sw_http_server_port(front->server);
}

void sw_sim_front_close(struct sw_sim_front *front)
{
    if (!front)
        return;
    front->is_closing = true;
    SW_LIST_EACH (link, &front->exchanges) {
        struct exchange *x = container_of(link, struct exchange, link);
        if (x->is_stream) {
            end_stream(x, false);
        } else {
            answer_text(x, 503, "ServiceUnavailable", "closing");
            exchange_free(x);
        }
    }
    sw_http_server_close(front->server, on_closed, front);
}
