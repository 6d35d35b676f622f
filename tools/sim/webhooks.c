/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client with keep-alive connections for each server and CA bundle, kept until the end; a call is
 * one exchange of it.
 */
#include "webhooks.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/list.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/map.h"
#include "base/util.h"
#include "kube/base64.h"
#include "net/http_client.h"
#include "net/tls.h"
#include "net/url.h"

enum { ANSWER_LIMIT_BYTES = 8 * 1024 * 1024 };

struct sw_sim_webhooks {
    struct sw_loop *loop;
    struct sw_log log;
    struct sw_map *servers; /* URL's origin and CA bundle -> struct sw_http_client */
    struct sw_link calls;   /* struct call */
};

struct call {
    struct sw_link link;
    struct sw_http_exchange *exchange; /* NULL: could not be begun */
    struct sw_defer refused;
    struct sw_error error;
    sw_sim_admission_done_fn done;
    void *done_arg;
    int status;
    struct sw_buf body;
};

struct sw_sim_webhooks *sw_sim_webhooks_new(struct sw_loop *loop, const struct sw_log *log)
{
    struct sw_sim_webhooks *webhooks = SW_NEW(struct sw_sim_webhooks);

    webhooks->loop = loop;
    webhooks->log = *log;
    webhooks->servers = sw_map_new();
    sw_link_init(&webhooks->calls);
    return webhooks;
}

/* ---- one call ---- */

static void finish(struct call *call, const char *why)
{
    sw_link_remove(&call->link);
    sw_defer_stop(&call->refused);
    call->done(call->done_arg, why ? 0 : call->status, call->body.bytes, call->body.len, why);
    sw_buf_done(&call->body);
    sw_free(call);
}

static void on_head(void *arg, const struct sw_http_head *head)
{
    struct call *call = arg;

    call->status = head->status;
}

static void on_body(void *arg, const char *bytes, size_t len)
{
    struct call *call = arg;

    sw_buf_append(&call->body, bytes, len);
}

static void on_end(void *arg, int code, const struct sw_error *error)
{
    struct call *call = arg;

    call->exchange = NULL;
    finish(call, !code ? NULL : error ? error->text : sw_strerror(code));
}

static void on_refused(struct sw_defer *defer)
{
    struct call *call = container_of(defer, struct call, refused);

    finish(call, call->error.text);
}

/* ---- servers ---- */

static int trust(const char *bundle, struct sw_tls_config **ret_tls, struct sw_error *error)
{
    char *pem;
    size_t len;

    if (!bundle)
        return sw_tls_client_config_new(&(struct sw_tls_client_options){.ca_pem = NULL}, ret_tls,
                                        error);
    if (sw_base64_decode(bundle, strlen(bundle), &pem, &len))
        return sw_error_set(error, SW_E_SYNTAX, "caBundle is not base64");
    int code =
        sw_tls_client_config_new(&(struct sw_tls_client_options){.ca_pem = pem}, ret_tls, error);
    sw_free(pem);
    return code;
}

static int open_server(struct sw_sim_webhooks *webhooks, const struct sw_url *url,
                       const char *bundle, struct sw_http_client **ret, struct sw_error *error)
{
    struct sw_tls_config *tls = NULL;

    if (!url->is_https)
        return sw_error_set(error, SW_E_SYNTAX, "clientConfig.url must begin with https://");
    int code = trust(bundle, &tls, error);
    if (code)
        return code;
    struct sw_http_client_options options = {
        .host = url->host,
        .port = url->port,
        .tls = tls,
        .user_agent = "kube-apiserver-admission",
        .max_connections = 64,
    };
    code = sw_http_client_open(webhooks->loop, &options, &webhooks->log, ret);
    sw_tls_config_unref(tls);
    return code ? sw_error_set(error, code, "%s cannot be called", url->host) : 0;
}

static int find_server(struct sw_sim_webhooks *webhooks, const struct sw_url *url,
                       const char *bundle, struct sw_http_client **ret, struct sw_error *error)
{
    SW_AUTO(char, sw_free)
    key = sw_asprintf("%s:%u %s", url->host, url->port, bundle ? bundle : "");

    *ret = sw_map_get(webhooks->servers, key);
    if (*ret)
        return 0;
    int code = open_server(webhooks, url, bundle, ret, error);
    if (!code)
        sw_map_set(webhooks->servers, key, *ret);
    return code;
}

/* ---- calling ---- */

static int send(struct sw_sim_webhooks *webhooks, struct call *call, const struct sw_url *url,
                const char *bundle, const char *review, size_t len, uint64_t timeout_ms)
{
    static const struct sw_http_field json = {"Content-Type", "application/json"};
    static const struct sw_http_exchange_events events = {on_head, on_body, on_end};
    struct sw_http_client *client;
    int code = find_server(webhooks, url, bundle, &client, &call->error);

    if (code)
        return code;
    SW_AUTO(char, sw_free)
    target = sw_asprintf("%s?timeout=%llus", url->path[0] ? url->path : "/",
                         (unsigned long long)(timeout_ms / 1000));
    struct sw_http_request request = {
        .method = "POST",
        .target = target,
        .fields = &json,
        .field_count = 1,
        .body = review,
        .body_len = len,
        .may_replay = true,
        .head_timeout_ms = timeout_ms,
        .total_timeout_ms = timeout_ms,
        .body_limit_bytes = ANSWER_LIMIT_BYTES,
    };
    code = sw_http_send(client, &request, &events, call, &call->exchange);
    return code ? sw_error_set(&call->error, code, "the request cannot be sent") : 0;
}

static void call_webhook(void *arg, const json_t *client_config, const char *review, size_t len,
                         uint64_t timeout_ms, sw_sim_admission_done_fn done, void *done_arg)
{
    struct sw_sim_webhooks *webhooks = arg;
    const char *text = json_string_value(json_object_get(client_config, "url"));
    struct call *call = SW_NEW(struct call);
    struct sw_url url = {0};
    int code;

    call->done = done;
    call->done_arg = done_arg;
    sw_buf_init(&call->body, ANSWER_LIMIT_BYTES);
    sw_link_init(&call->link);
    sw_link_add_last(&webhooks->calls, &call->link);
    sw_defer_init(&call->refused, webhooks->loop, on_refused);
    if (text)
        code = sw_url_parse(text, &url, &call->error);
    else
        code = sw_error_set(&call->error, -EHOSTUNREACH,
                            "a service cannot be called here: there is no cluster network. Use "
                            "clientConfig.url");
    if (!code)
        code = send(webhooks, call, &url,
                    json_string_value(json_object_get(client_config, "caBundle")), review, len,
                    timeout_ms);
    if (code)
        sw_defer_start(&call->refused);
    sw_url_done(&url);
}

struct sw_sim_admission_caller sw_sim_webhooks_caller(struct sw_sim_webhooks *webhooks)
{
    return (struct sw_sim_admission_caller){.call = call_webhook, .arg = webhooks};
}

struct sw_sim_webhooks *sw_sim_webhooks_free(struct sw_sim_webhooks *webhooks)
{
    struct sw_map_iter iter = {0};

    if (!webhooks)
        return NULL;
    SW_LIST_EACH (link, &webhooks->calls) {
        struct call *call = container_of(link, struct call, link);
        if (call->exchange)
            sw_http_exchange_cancel(call->exchange);
        finish(call, "the API server is closing");
    }
    while (sw_map_next(webhooks->servers, &iter))
        sw_http_client_close(iter.value);
    sw_map_free(webhooks->servers);
    return sw_free(webhooks);
}
