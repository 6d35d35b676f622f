/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API client itself: paths, and what is looked at in every answer whoever asked: warnings,
 * Retry-After, Audit-Id, the counters, a 401. Calls and streams are in files of their own.
 */
#include "kube/client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/loop.h"
#include "base/map.h"
#include "base/metrics.h"
#include "base/util.h"
#include "kube/client_internal.h"
#include "kube/gate.h"
#include "net/url.h"

enum {
    /* Names are at most 253 characters (RFC 1123 subdomain), those of RBAC included. */
    NAME_MAX_BYTES = 253,
    WARNINGS_MAX = 500, /* texts remembered; a server that makes up new ones all the time is not
                           worth more memory */
    ERROR_LINES_MAX = 10,
};

#define ERROR_WINDOW_MS UINT64_C(10000)
/* An upgrade, or a feature gate, may turn it on. */
#define NO_STREAMS_MS UINT64_C(3600000)
/* A storm of 401s reads the token file once a second, not once an answer. */
#define REFRESH_AGAIN_MS UINT64_C(1000)

/* ---- paths ---- */

/* What the API server calls a path segment name; everything else is left to it. */
static bool is_name(const char *text)
{
    size_t len = strlen(text);
    if (len == 0 || len > NAME_MAX_BYTES || strcmp(text, ".") == 0 || strcmp(text, "..") == 0) {
        return false;
    }
    for (const char *c = text; *c; c++) {
        if ((unsigned char)*c <= ' ' || *c == 0x7f || *c == '/' || *c == '%') {
            return false;
        }
    }
    return true;
}

/* A label of RFC 1123: a namespace, a resource, a subresource. */
static bool is_label(const char *text)
{
    size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-");
    return len > 0 && len <= 63 && text[len] == '\0' && text[0] != '-' && text[len - 1] != '-';
}

int sw_client_path(const struct sw_kind *kind, const char *namespace_, const char *name,
                   const char *subresource, char **ret_path)
{
    bool has_namespace = namespace_ && !kind->is_cluster_scoped;
    if ((has_namespace && !is_label(namespace_)) || (name && !is_name(name)) ||
        (subresource && (!name || !is_label(subresource))) ||
        (name && !has_namespace && !kind->is_cluster_scoped)) {
        return -EINVAL;
    }
    struct sw_buf path;
    sw_buf_init(&path, SIZE_MAX);
    if (kind->group[0]) {
        sw_buf_printf(&path, "/apis/%s/%s", kind->group, kind->version);
    } else {
        sw_buf_printf(&path, "/api/%s", kind->version);
    }
    if (has_namespace) {
        sw_buf_printf(&path, "/namespaces/%s", namespace_);
    }
    sw_buf_printf(&path, "/%s", kind->plural);
    if (name) {
        sw_buf_puts(&path, "/");
        sw_url_encode(&path, name);
    }
    if (subresource) {
        sw_buf_printf(&path, "/%s", subresource);
    }
    *ret_path = sw_buf_steal(&path);
    sw_buf_done(&path);
    return 0;
}

char *sw_client_target(const struct sw_client *client, const char *path)
{
    return sw_asprintf("%s%s", client->path_prefix, path);
}

/* ---- life ---- */

static void open_metrics(struct sw_client *client, struct sw_metrics *metrics)
{
    static const char *const by_code[] = {"code", "method", "host", NULL};
    static const char *const by_verb[] = {"verb", "host", NULL};
    static const char *const by_code_and_verb[] = {"code", "verb", "host", NULL};
    client->requests_total = sw_metrics_family(
        metrics, SW_METRIC_COUNTER, "rest_client_requests_total",
        "Requests to the API server, by status, method and host.", by_code, NULL, 0);
    client->request_duration =
        sw_metrics_family(metrics, SW_METRIC_HISTOGRAM, "rest_client_request_duration_seconds",
                          "Time to the answer; of a stream: to its head.", by_verb, NULL, 0);
    client->retries_total = sw_metrics_family(
        metrics, SW_METRIC_COUNTER, "rest_client_request_retries_total",
        "Requests sent again because the server asked for it.", by_code_and_verb, NULL, 0);
    client->limiter_duration =
        sw_metrics_family(metrics, SW_METRIC_HISTOGRAM, "rest_client_rate_limiter_duration_seconds",
                          "Time spent waiting for our own rate limit.", by_verb, NULL, 0);
}

struct sw_client *sw_client_new(struct sw_loop *loop, struct sw_transport *transport,
                                const struct sw_client_options *options, struct sw_metrics *metrics,
                                const struct sw_log *log)
{
    static const struct sw_client_options defaults;
    const struct sw_client_options *o = options ? options : &defaults;
    struct sw_client *client = SW_NEW(struct sw_client);
    client->loop = loop;
    client->transport = transport;
    client->log = *log;
    client->log.name = "client";
    client->path_prefix = sw_strdup(o->path_prefix ? o->path_prefix : "");
    client->host = sw_strdup(o->host ? o->host : "");
    client->warnings = sw_map_new();
    client->backoff = (struct sw_backoff){
        .first_ms = o->backoff_first_ms ? o->backoff_first_ms : 800,
        .limit_ms = o->backoff_limit_ms ? o->backoff_limit_ms : 30000,
    };
    client->gate = sw_gate_new(loop, client->backoff.first_ms, client->backoff.limit_ms);
    sw_rate_limit_init(&client->limit, loop,
                       o->requests_per_second > 0 ? o->requests_per_second : 50,
                       o->burst ? o->burst : 100);
    sw_link_init(&client->calls);
    sw_link_init(&client->streams);
    open_metrics(client, metrics);
    return client;
}

struct sw_client *sw_client_free(struct sw_client *client)
{
    if (!client) {
        return NULL;
    }
    struct sw_link *link;
    while ((link = sw_link_first(&client->calls))) {
        sw_call_free(sw_call_of_link(link));
    }
    while ((link = sw_link_first(&client->streams))) {
        sw_client_stream_call_free(sw_client_stream_call_of_link(link));
    }
    sw_rate_limit_done(&client->limit);
    sw_gate_free(client->gate);
    sw_map_free(client->warnings);
    sw_free(client->path_prefix);
    sw_free(client->host);
    sw_free(client);
    return NULL;
}

struct sw_gate *sw_client_gate(struct sw_client *client)
{
    return client->gate;
}

struct sw_backoff sw_client_backoff(const struct sw_client *client)
{
    return client->backoff;
}

bool sw_client_may_stream_lists(const struct sw_client *client)
{
    return sw_now_ms(client->loop) >= client->no_streams_until_ms;
}

void sw_client_refuse_streamed_lists(struct sw_client *client, const char *why)
{
    if (sw_client_may_stream_lists(client)) {
        sw_log_info(&client->log, "the API server has no lists as streams, reading them in pages",
                    SW_STR("why", why));
    }
    client->no_streams_until_ms = sw_now_ms(client->loop) + NO_STREAMS_MS;
}

void sw_client_set_may_write(struct sw_client *client, bool (*fn)(void *arg), void *arg)
{
    client->may_write = fn;
    client->may_write_arg = arg;
}

/* ---- what is in a head ---- */

/* 299 - "text" (RFC 9111 has dropped the field, Kubernetes uses it): the text without quotes and
 * escapes, or NULL. New memory. */
static char *warning_text(const char *value)
{
    const char *from = strchr(value, '"');
    if (strncmp(value, "299 ", 4) != 0 || !from) {
        return NULL;
    }
    struct sw_buf text;
    sw_buf_init(&text, 1024);
    for (const char *c = from + 1; *c && *c != '"'; c++) {
        c += *c == '\\' && c[1];
        if (sw_buf_append(&text, c, 1)) {
            break;
        }
    }
    char *copy = sw_buf_steal(&text);
    sw_buf_done(&text);
    return copy;
}

static void surface_warning(struct sw_client *client, const char *value)
{
    SW_AUTO(char, sw_free) text = warning_text(value);
    if (!text || sw_map_size(client->warnings) >= WARNINGS_MAX ||
        sw_map_get(client->warnings, text)) {
        return;
    }
    sw_map_set(client->warnings, text, client);
    sw_log_warn(&client->log, "the API server warns", SW_STR("warning", text));
}

static void copy_field(char *to, size_t size, const struct sw_http_fields *fields, const char *name)
{
    const char *value = sw_http_field_get(fields, name);
    snprintf(to, size, "%s", value ? value : "");
}

void sw_client_read_head(struct sw_client *client, const struct sw_http_head *head,
                         struct sw_answer *ret_answer)
{
    struct sw_answer answer = {.status = head->status};
    for (size_t i = 0; i < head->fields.count; i++) {
        const struct sw_http_field *field = &head->fields.at[i];
        if (strcasecmp(field->name, "Warning") == 0) {
            surface_warning(client, field->value);
        }
    }
    const char *wait = sw_http_field_get(&head->fields, "Retry-After");
    if (wait) {
        answer.has_retry_after =
            sw_http_retry_after(wait, sw_wall_us(client->loop), &answer.retry_after_ms) == 0;
    }
    copy_field(answer.audit_id, sizeof(answer.audit_id), &head->fields, "Audit-Id");
    copy_field(answer.flow_schema, sizeof(answer.flow_schema), &head->fields,
               "X-Kubernetes-PF-FlowSchema-UID");
    copy_field(answer.priority_level, sizeof(answer.priority_level), &head->fields,
               "X-Kubernetes-PF-PriorityLevel-UID");
    *ret_answer = answer;
}

/* ---- counting and telling ---- */

void sw_client_count(struct sw_client *client, const char *method, int status)
{
    char code[16] = "<error>";
    if (status) {
        snprintf(code, sizeof(code), "%d", status);
    }
    const char *const values[] = {code, method, client->host};
    sw_metric_add(sw_metric_child(client->requests_total, values), 1);
}

void sw_client_observe(struct sw_client *client, const char *method, uint64_t started_ns)
{
    const char *const values[] = {method, client->host};
    double seconds = (double)(sw_now_ns(client->loop) - started_ns) / 1e9;
    sw_metric_observe(sw_metric_child(client->request_duration, values), seconds);
}

unsigned sw_client_credentials(const struct sw_client *client)
{
    return client->transport->ops->credentials_number(client->transport);
}

bool sw_client_refresh(struct sw_client *client, unsigned credentials)
{
    if (credentials != sw_client_credentials(client)) {
        return true; /* somebody else's 401, or whoever watches the files, has done it meanwhile */
    }
    uint64_t now = sw_now_ms(client->loop);
    if (client->refused_ms && now - client->refused_ms < REFRESH_AGAIN_MS) {
        return false;
    }
    if (!client->transport->ops->refresh_credentials(client->transport)) {
        client->refused_ms = now;
        return false;
    }
    client->refused_ms = 0;
    if (credentials != sw_client_credentials(client)) {
        sw_log_info(&client->log,
                    "credentials read again after the API server refused the old ones");
    }
    return true;
}

void sw_client_log_answer(struct sw_client *client, const char *method, const char *target,
                          const struct sw_answer *answer, const char *message)
{
    uint64_t now = sw_now_ms(client->loop);
    if (now - client->error_window_ms >= ERROR_WINDOW_MS) {
        if (client->error_lines_left_out) {
            sw_log_warn(&client->log, "more answers of this kind were not logged",
                        SW_INT("count", client->error_lines_left_out));
        }
        client->error_window_ms = now;
        client->error_lines = client->error_lines_left_out = 0;
    }
    if (client->error_lines >= ERROR_LINES_MAX) {
        client->error_lines_left_out++;
        return;
    }
    client->error_lines++;
    /* The path alone: a query may be long and says little. */
    char path[256];
    snprintf(path, sizeof(path), "%.*s", (int)SW_MIN(strcspn(target, "?"), (size_t)255), target);
    if (answer->status == 429) {
        sw_log_warn(&client->log, "the API server asks for patience", SW_STR("method", method),
                    SW_STR("path", path), SW_INT("status", answer->status),
                    SW_MS("retryAfter", answer->retry_after_ms),
                    SW_STR("flowSchemaUID", answer->flow_schema),
                    SW_STR("priorityLevelUID", answer->priority_level),
                    SW_STR("auditID", answer->audit_id));
    } else {
        sw_log_warn(&client->log, "the API server answered with an error", SW_STR("method", method),
                    SW_STR("path", path), SW_INT("status", answer->status),
                    SW_STR("message", message), SW_STR("auditID", answer->audit_id));
    }
}

void sw_client_set_rate(struct sw_client *client, double requests_per_second, unsigned burst)
{
    sw_rate_limit_set(&client->limit, requests_per_second, burst);
}

static void observe_limiter(struct sw_client *client, const char *method, double seconds)
{
    const char *const values[] = {method, client->host};
    sw_metric_observe(sw_metric_child(client->limiter_duration, values), seconds);
}

bool sw_client_take_token(struct sw_client *client, const char *method,
                          struct sw_rate_waiter *waiter)
{
    bool bites_first;
    bool is_free = sw_rate_limit_take(&client->limit, waiter, &bites_first);
    if (bites_first) {
        sw_log_warn(&client->log, "our own rate limit delays requests",
                    SW_INT("perSecond", (int64_t)(client->limit.per_ms * 1000.0)),
                    SW_INT("burst", (int64_t)client->limit.burst));
    }
    if (is_free) {
        observe_limiter(client, method, 0);
    }
    return is_free;
}

void sw_client_got_token(struct sw_client *client, const char *method, uint64_t since_ns)
{
    observe_limiter(client, method, (double)(sw_now_ns(client->loop) - since_ns) / 1e9);
}
