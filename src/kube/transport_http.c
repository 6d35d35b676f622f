/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP transport: the HTTP client of one server with who we are put into each request. The
 * token goes with the request, so streams that run keep the one they began with: the server looks
 * at it once. Certificates go with the connection, so the client is told when they change.
 *
 * Where a plugin says who we are, a request may have to wait for it: then it is kept here, and what
 * the caller holds is not the exchange, but what becomes one.
 */
#include "kube/transport.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/list.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/util.h"
#include "kube/credentials.h"
#include "kube/kubeconfig.h"
#include "net/proxy.h"

#define HEAD_TIMEOUT_MS UINT64_C(30000) /* as of the client below */

struct transport_http {
    struct sw_transport base;
    struct sw_loop *loop;
    struct sw_credentials *credentials;
    struct sw_http_client *client;
    struct sw_tls_config *tls; /* that the client has; borrowed from there */
    struct sw_link waiting;    /* requests for which there are no credentials yet */
    bool may_wait;             /* so every handle is a struct request */
};

/* With a plugin: a request, from its beginning to its end. */
struct request {
    struct transport_http *transport;
    struct sw_link link; /* while it waits */
    const struct sw_http_exchange_events *events;
    void *arg;
    struct sw_http_request what; /* its texts are our own while it waits */
    struct sw_http_field *fields;
    uint64_t began_ms;
    struct sw_timer timer; /* while it waits */
    struct sw_defer fail;
    struct sw_error error;
    struct sw_http_exchange *exchange; /* NULL: it waits */
};

static struct transport_http *of(struct sw_transport *transport)
{
    return container_of(transport, struct transport_http, base);
}

/* ---- sending ---- */

/* With who we are. */
static int send_now(struct transport_http *t, const struct sw_http_request *request,
                    const struct sw_http_exchange_events *events, void *arg,
                    struct sw_http_exchange **ret_exchange)
{
    const char *authorization = sw_credentials_authorization(t->credentials);
    const struct sw_kubeconfig_header *as;
    size_t as_count = sw_credentials_impersonation(t->credentials, &as);
    size_t count = request->field_count;
    struct sw_http_field *fields = sw_calloc(count + 1 + as_count, sizeof(*fields));
    for (size_t i = 0; i < count; i++) {
        fields[i] = request->fields[i];
    }
    if (authorization) {
        fields[count++] = (struct sw_http_field){"Authorization", authorization};
    }
    for (size_t i = 0; i < as_count; i++) {
        fields[count++] = (struct sw_http_field){as[i].name, as[i].value};
    }
    struct sw_http_request with_us = *request;
    with_us.fields = fields;
    with_us.field_count = count;
    int rc = sw_http_send(t->client, &with_us, events, arg, ret_exchange);
    sw_free(fields);
    return rc;
}

/* ---- requests that may have to wait ---- */

static char *copy(const char *text)
{
    return text ? sw_strdup(text) : NULL;
}

/* What the caller's pointers point to is only lent. */
static void copy_request(struct request *r, const struct sw_http_request *from)
{
    r->what = *from;
    r->what.method = sw_strdup(from->method);
    r->what.target = sw_strdup(from->target);
    r->what.own_connection = copy(from->own_connection);
    if (from->body_len > 0) {
        char *body = sw_malloc(from->body_len);
        memcpy(body, from->body, from->body_len);
        r->what.body = body;
    }
    r->fields = sw_calloc(from->field_count + 1, sizeof(*r->fields));
    for (size_t i = 0; i < from->field_count; i++) {
        r->fields[i].name = sw_strdup(from->fields[i].name);
        r->fields[i].value = sw_strdup(from->fields[i].value);
    }
    r->what.fields = r->fields;
}

/* The copies are ours to free, whatever the type says. */
static void drop(const void *copied)
{
    union {
        const void *given;
        void *ours;
    } memory = {.given = copied};
    sw_free(memory.ours);
}

static void drop_copy(struct request *r)
{
    if (!r->fields) {
        return;
    }
    for (size_t i = 0; i < r->what.field_count; i++) {
        drop(r->fields[i].name);
        drop(r->fields[i].value);
    }
    r->fields = sw_free(r->fields);
    drop(r->what.method);
    drop(r->what.target);
    drop(r->what.own_connection);
    if (r->what.body_len > 0) {
        union {
            const void *given;
            void *ours;
        } body = {.given = r->what.body};
        sw_free_secret(body.ours, r->what.body_len);
    }
}

static void stop_waiting(struct request *r)
{
    sw_link_remove(&r->link);
    sw_timer_stop(&r->timer);
    sw_defer_stop(&r->fail);
    drop_copy(r);
}

static void request_free(struct request *r)
{
    stop_waiting(r);
    sw_free(r);
}

static void on_head(void *arg, const struct sw_http_head *head)
{
    struct request *r = arg;
    if (r->events->on_head) {
        r->events->on_head(r->arg, head);
    }
}

static void on_body(void *arg, const char *bytes, size_t len)
{
    struct request *r = arg;
    if (r->events->on_body) {
        r->events->on_body(r->arg, bytes, len);
    }
}

static void on_end(void *arg, int code, const struct sw_error *error)
{
    struct request *r = arg;
    if (r->events->on_end) {
        r->events->on_end(r->arg, code, error);
    }
    request_free(r);
}

static int on_send(void *arg)
{
    struct request *r = arg;
    return r->events->on_send ? r->events->on_send(r->arg) : 0;
}

static const struct sw_http_exchange_events request_events = {on_head, on_body, on_end, on_send};

static void on_fail(struct sw_defer *defer)
{
    struct request *r = container_of(defer, struct request, fail);
    on_end(r, r->error.code, &r->error);
}

static void fail(struct request *r, const struct sw_error *error)
{
    r->error = *error;
    sw_link_remove(&r->link);
    sw_timer_stop(&r->timer);
    sw_defer_start(&r->fail);
}

static void on_timer(struct sw_timer *timer)
{
    struct request *r = container_of(timer, struct request, timer);
    struct sw_error error;
    sw_error_set(&error, -ETIMEDOUT, "no credentials: the plugin is still running");
    fail(r, &error);
}

/* What it has waited counts. */
static uint64_t left_of(const struct request *r, uint64_t timeout_ms, uint64_t otherwise_ms)
{
    uint64_t waited = sw_now_ms(r->transport->loop) - r->began_ms;
    uint64_t all = timeout_ms ? timeout_ms : otherwise_ms;
    return all == 0 ? 0 : all > waited ? all - waited : 1;
}

static int send_request(struct request *r, const struct sw_http_request *what)
{
    struct sw_http_request now = *what;
    now.head_timeout_ms = left_of(r, what->head_timeout_ms, HEAD_TIMEOUT_MS);
    now.total_timeout_ms = left_of(r, what->total_timeout_ms, 0);
    int rc = send_now(r->transport, &now, &request_events, r, &r->exchange);
    if (!rc) {
        stop_waiting(r);
    }
    return rc;
}

static void begin_waiting(struct request *r, const struct sw_http_request *what)
{
    uint64_t limit_ms = left_of(r, what->head_timeout_ms, HEAD_TIMEOUT_MS);
    if (what->total_timeout_ms) {
        limit_ms = SW_MIN(limit_ms, what->total_timeout_ms);
    }
    copy_request(r, what);
    sw_link_add_last(&r->transport->waiting, &r->link);
    sw_timer_start(&r->timer, limit_ms);
}

static int send_or_wait(struct transport_http *t, const struct sw_http_request *what,
                        const struct sw_http_exchange_events *events, void *arg, void **ret_request)
{
    struct sw_error error = {0};
    struct request *r = SW_NEW(struct request);
    r->transport = t;
    r->events = events;
    r->arg = arg;
    r->began_ms = sw_now_ms(t->loop);
    sw_link_init(&r->link);
    sw_timer_init(&r->timer, t->loop, on_timer);
    sw_defer_init(&r->fail, t->loop, on_fail);
    int rc = sw_credentials_prepare(t->credentials, &error);
    if (rc == -EAGAIN) {
        begin_waiting(r, what);
    } else if (rc) {
        fail(r, &error);
    } else {
        rc = send_request(r, what);
        if (rc) {
            request_free(r);
            return rc;
        }
    }
    *ret_request = r;
    return 0;
}

/* A run of the plugin is over, one way or another. */
static void send_waiting(struct transport_http *t)
{
    SW_LIST_EACH (link, &t->waiting) {
        struct request *r = container_of(link, struct request, link);
        struct sw_error error = {0};
        int rc = sw_credentials_prepare(t->credentials, &error);
        if (rc == -EAGAIN) {
            return;
        }
        if (!rc) {
            rc = send_request(r, &r->what);
            error.code = rc;
        }
        if (rc) {
            fail(r, &error);
        }
    }
}

/* ---- the transport ---- */

static int transport_send(struct sw_transport *transport, const struct sw_http_request *request,
                          const struct sw_http_exchange_events *events, void *arg,
                          void **ret_exchange)
{
    struct transport_http *t = of(transport);
    if (t->may_wait) {
        return send_or_wait(t, request, events, arg, ret_exchange);
    }
    struct sw_http_exchange *exchange;
    int rc = send_now(t, request, events, arg, &exchange);
    if (!rc) {
        *ret_exchange = exchange;
    }
    return rc;
}

static void give_up(struct sw_transport *transport, void *exchange,
                    void (*fn)(struct sw_http_exchange *exchange))
{
    if (!of(transport)->may_wait) {
        fn(exchange);
        return;
    }
    struct request *r = exchange;
    if (r->exchange) {
        fn(r->exchange);
    }
    request_free(r);
}

static void transport_cancel(struct sw_transport *transport, void *exchange)
{
    give_up(transport, exchange, sw_http_exchange_cancel);
}

static void transport_abort(struct sw_transport *transport, void *exchange)
{
    give_up(transport, exchange, sw_http_exchange_reset);
}

static bool transport_was_sent(struct sw_transport *transport, const void *exchange)
{
    if (!of(transport)->may_wait) {
        return sw_http_exchange_was_sent(exchange);
    }
    const struct request *r = exchange;
    return r->exchange && sw_http_exchange_was_sent(r->exchange);
}

static bool transport_refresh(struct sw_transport *transport)
{
    return sw_credentials_refresh(of(transport)->credentials);
}

static unsigned transport_credentials_number(struct sw_transport *transport)
{
    return sw_credentials_number(of(transport)->credentials);
}

static void on_change(void *arg);

static void transport_close(struct sw_transport *transport)
{
    struct transport_http *t = of(transport);
    sw_credentials_off_change(t->credentials, on_change, t);
    SW_LIST_EACH (link, &t->waiting) {
        request_free(container_of(link, struct request, link));
    }
    sw_http_client_close(t->client);
    sw_free(t);
}

static const struct sw_transport_ops ops = {
    .send = transport_send,
    .cancel = transport_cancel,
    .abort = transport_abort,
    .was_sent = transport_was_sent,
    .refresh_credentials = transport_refresh,
    .credentials_number = transport_credentials_number,
    .close = transport_close,
};

static void on_change(void *arg)
{
    struct transport_http *t = arg;
    struct sw_tls_config *tls = sw_credentials_tls(t->credentials);
    if (tls != t->tls) {
        t->tls = tls;
        sw_http_client_set_tls(t->client, tls);
    }
    send_waiting(t);
}

/* As Go names them: kubectl and audit logs show these. */
static const char *architecture(void)
{
#if defined(__x86_64__)
    return "amd64";
#elif defined(__aarch64__)
    return "arm64";
#elif defined(__arm__)
    return "arm";
#elif defined(__riscv)
    return "riscv64";
#elif defined(__powerpc64__)
    return "ppc64le";
#elif defined(__s390x__)
    return "s390x";
#else
    return "unknown";
#endif
}

/* The cluster's own, else what the environment says. */
static int choose_proxy(const struct sw_credentials *credentials, const struct sw_log *log,
                        struct sw_proxy *ret_proxy, struct sw_error *error)
{
    const struct sw_url *server = sw_credentials_server(credentials);
    const char *url = sw_credentials_proxy(credentials);
    int rc;
    if (url) {
        rc = sw_proxy_parse(url, ret_proxy, error);
        if (rc) {
            sw_error_prefix(error, "proxy-url of the cluster");
        }
    } else {
        rc = sw_proxy_from_environment(server->is_https, server->host, server->port, ret_proxy,
                                       error);
    }
    if (!rc && ret_proxy->kind == SW_PROXY_HTTPS && !server->is_https) {
        sw_proxy_done(ret_proxy);
        return sw_error_set(error, SW_E_CONFIG,
                            "an https:// proxy is for an https:// server; use one with http://");
    }
    if (!rc && ret_proxy->kind != SW_PROXY_NONE) {
        sw_log_info(log, "the API server is reached through a proxy",
                    SW_STR("host", ret_proxy->host), SW_INT("port", ret_proxy->port));
    }
    return rc;
}

int sw_transport_http_open(struct sw_loop *loop, struct sw_credentials *credentials,
                           const char *component, const struct sw_log *log,
                           struct sw_transport **ret_transport, struct sw_error *error)
{
    const struct sw_url *server = sw_credentials_server(credentials);
    SW_AUTO(char, sw_free)
    agent = sw_asprintf("slipway/%s (linux/%s) %s", SW_VERSION, architecture(), component);
    struct sw_proxy proxy;
    int rc = choose_proxy(credentials, log, &proxy, error);
    if (rc) {
        return rc;
    }
    struct sw_http_client_options options = {
        .host = server->host,
        .port = server->port,
        .tls = sw_credentials_tls(credentials),
        .tls_name = sw_credentials_tls_name(credentials),
        .proxy = &proxy,
        .user_agent = agent,
    };
    struct transport_http *t = SW_NEW(struct transport_http);
    t->base.ops = &ops;
    t->loop = loop;
    t->credentials = credentials;
    t->may_wait = sw_credentials_may_wait(credentials);
    t->tls = options.tls;
    sw_link_init(&t->waiting);
    rc = sw_http_client_open(loop, &options, log, &t->client);
    sw_proxy_done(&proxy);
    if (rc) {
        sw_free(t);
        return sw_error_set(error, rc, "no client for the API server at %s: %s", server->host,
                            sw_strerror(rc));
    }
    sw_credentials_on_change(credentials, on_change, t);
    *ret_transport = &t->base;
    return 0;
}
