/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One or two HTTP servers, and what they serve. They are freed when the last of them has closed,
 * which it does after the last request is answered: also those that wait for a verdict.
 */
#include "runtime/endpoints.h"

#include <stdio.h>
#include <string.h>

#include <slipway/arena.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/util.h"
#include "net/http_server.h"
#include "net/tls.h"
#include "runtime/health.h"
#include "runtime/metrics_access.h"
#include "runtime/metrics_certificate.h"

enum {
    PAGE_LIMIT_BYTES = 16 * 1024 * 1024, /* 1 000 series of 100 families at 100 bytes */
    CONNECTIONS = 64, /* kubelet and a few scrapers; over TLS they hold 2.5 MiB */
};

struct endpoint {
    struct sw_endpoints *endpoints;
    struct sw_http_server *server; /* NULL: not opened */
    bool has_health, has_metrics;
};

struct sw_endpoints {
    const struct sw_health *health;
    struct sw_metrics *metrics;
    struct sw_metrics_access *access;           /* NULL: everybody may read the metrics */
    struct sw_metrics_certificate *certificate; /* NULL: they are plain */
    struct sw_tls_config *tls;                  /* the newest */
    struct sw_metric_family *scrapes;           /* by status; NULL: not counted */
    struct endpoint at[2];
    unsigned open_count;
    bool is_closing;
};

bool sw_address_is_off(const char *address)
{
    return !address || !address[0] || strcmp(address, "0") == 0;
}

static void serve_health(const struct sw_endpoints *endpoints, struct sw_http_incoming *request)
{
    /* Names from the query stand in the answer. */
    static const struct sw_http_field nosniff = {"X-Content-Type-Options", "nosniff"};
    struct sw_buf text;

    sw_buf_init(&text, PAGE_LIMIT_BYTES);
    int status = sw_health_answer(endpoints->health, request->path, request->query, &text);
    struct sw_http_answer answer = {
        .status = status,
        .content_type = "text/plain; charset=utf-8",
        .fields = &nosniff,
        .field_count = 1,
        .body = text.bytes,
        .body_len = text.len,
    };
    sw_http_answer(request, &answer);
    sw_buf_done(&text);
}

static void write_metrics(const struct sw_endpoints *endpoints, struct sw_http_incoming *request)
{
    const char *accept = sw_http_field_get(&request->fields, "Accept");
    enum sw_metrics_format format = sw_metrics_negotiate(accept);
    struct sw_buf text;

    sw_buf_init(&text, PAGE_LIMIT_BYTES);
    if (sw_metrics_write(endpoints->metrics, format, &text)) {
        sw_http_answer_text(request, 500, "there are too many series to be shown");
    } else {
        struct sw_http_answer answer = {
            .status = 200,
            .content_type = sw_metrics_content_type(format),
            .body = text.bytes,
            .body_len = text.len,
        };
        sw_http_answer(request, &answer);
    }
    sw_buf_done(&text);
}

/* ---- those who may read the metrics ---- */

struct waiting {
    struct sw_access_waiter waiter;
    const struct sw_endpoints *endpoints;
    struct sw_http_incoming *request;
};

static void count_scrape(const struct sw_endpoints *endpoints, int status)
{
    char code[16];

    snprintf(code, sizeof(code), "%d", status);
    sw_metric_add(sw_metric_child(endpoints->scrapes, (const char *const[]){code}), 1);
}

/* RFC 6750 section 3: what is to be done about a 401; RFC 9110 section 10.2.3: about a 503. */
static void refuse(struct sw_http_incoming *request, const struct sw_access_verdict *verdict)
{
    static const struct sw_http_field authenticate = {"WWW-Authenticate",
                                                      "Bearer realm=\"slipway\""};
    static const struct sw_http_field again = {"Retry-After", "10"};
    const char *text = sw_arena_printf(request->arena, "%s\n", verdict->why);
    struct sw_http_answer answer = {
        .status = verdict->status,
        .content_type = "text/plain; charset=utf-8",
        .fields = verdict->status == 401 ? &authenticate : &again,
        .field_count = verdict->status == 401 || verdict->status == 503,
        .body = text,
        .body_len = strlen(text),
    };

    sw_http_answer(request, &answer);
}

static void answer_scrape(const struct sw_endpoints *endpoints, struct sw_http_incoming *request,
                          const struct sw_access_verdict *verdict)
{
    count_scrape(endpoints, verdict->status);
    if (verdict->status == 200)
        write_metrics(endpoints, request);
    else
        refuse(request, verdict);
}

static void on_verdict(struct sw_access_waiter *waiter, const struct sw_access_verdict *verdict)
{
    struct waiting *waiting = container_of(waiter, struct waiting, waiter);

    answer_scrape(waiting->endpoints, waiting->request, verdict);
}

static void serve_metrics(const struct sw_endpoints *endpoints, struct sw_http_incoming *request)
{
    struct sw_access_verdict verdict = {.status = 200};

    if (endpoints->access) {
        struct waiting *waiting = SW_ARENA_NEW(request->arena, struct waiting);
        const char *authorization = sw_http_field_get(&request->fields, "Authorization");
        *waiting = (struct waiting){{.fn = on_verdict}, endpoints, request};
        if (!sw_metrics_access_ask(endpoints->access, authorization, &waiting->waiter, &verdict))
            return;
    }
    answer_scrape(endpoints, request, &verdict);
}

/* ---- requests ---- */

static void on_request(void *arg, struct sw_http_incoming *request)
{
    const struct endpoint *endpoint = arg;
    const struct sw_endpoints *endpoints = endpoint->endpoints;
    static const struct sw_http_field allow = {"Allow", "GET, HEAD"};

    if (endpoints->is_closing) {
        sw_http_answer_text(request, 503, "closing");
    } else if (strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0) {
        sw_http_answer(request,
                       &(struct sw_http_answer){.status = 405, .fields = &allow, .field_count = 1});
    } else if (endpoint->has_metrics && strcmp(request->path, "/metrics") == 0) {
        serve_metrics(endpoints, request);
    } else if (endpoint->has_health) {
        serve_health(endpoints, request);
    } else {
        sw_http_answer_text(request, 404, "try /metrics");
    }
}

/* ---- life ---- */

static int open_one(struct sw_endpoints *endpoints, struct sw_loop *loop, struct endpoint *endpoint,
                    const char *address, const struct sw_log *log, struct sw_error *error)
{
    struct sw_http_server_options options = {
        .address = address,
        .tls = endpoint->has_health ? NULL : endpoints->tls,
        .max_connections = CONNECTIONS,
        .body_limit_bytes = 1024,
    };

    endpoint->endpoints = endpoints;
    int code =
        sw_http_server_open(loop, &options, on_request, endpoint, log, &endpoint->server, error);
    endpoints->open_count += code == 0;
    return code;
}

static void on_certificate(void *arg, struct sw_tls_config *config)
{
    struct sw_endpoints *endpoints = arg;

    sw_tls_config_unref(endpoints->tls);
    endpoints->tls = sw_tls_config_ref(config);
    if (endpoints->at[1].server)
        sw_http_server_set_tls(endpoints->at[1].server, config);
}

static int open_metrics(struct sw_endpoints *endpoints, struct sw_loop *loop,
                        const struct sw_endpoints_options *options, const struct sw_log *log,
                        struct sw_error *error)
{
    int code = 0;

    if (options->is_metrics_secure) {
        endpoints->access = sw_metrics_access_new(loop, options->client, log);
        code =
            sw_metrics_certificate_open(loop, options->metrics_cert_folder, endpoints->metrics, log,
                                        on_certificate, endpoints, &endpoints->certificate, error);
        if (code)
            return code;
    }
    code = open_one(endpoints, loop, &endpoints->at[1], options->metrics_address, log, error);
    if (code)
        sw_error_prefix(error, "--metrics-bind-address %s", options->metrics_address);
    return code;
}

int sw_endpoints_open(struct sw_loop *loop, const struct sw_endpoints_options *options,
                      const struct sw_health *health, struct sw_metrics *metrics,
                      const struct sw_log *log, struct sw_endpoints **ret_endpoints,
                      struct sw_error *error)
{
    struct sw_endpoints *endpoints = SW_NEW(struct sw_endpoints);
    bool has_health = !sw_address_is_off(options->health_address);
    bool has_metrics = !sw_address_is_off(options->metrics_address);
    bool are_one =
        has_health && has_metrics && strcmp(options->health_address, options->metrics_address) == 0;
    static const char *const by_code[] = {"code", NULL};
    int code = 0;

    sw_assert(!are_one || !options->is_metrics_secure);
    endpoints->health = health;
    endpoints->metrics = metrics;
    endpoints->scrapes = sw_metrics_family(
        metrics, SW_METRIC_COUNTER, "slipway_metrics_requests_total",
        "Requests for the metrics, by the status of the answer.", by_code, NULL, 0);
    endpoints->at[0].has_health = has_health;
    endpoints->at[0].has_metrics = are_one;
    endpoints->at[1].has_metrics = has_metrics && !are_one;
    if (has_health) {
        code = open_one(endpoints, loop, &endpoints->at[0], options->health_address, log, error);
        if (code)
            sw_error_prefix(error, "--health-probe-bind-address %s", options->health_address);
    }
    if (!code && endpoints->at[1].has_metrics)
        code = open_metrics(endpoints, loop, options, log, error);
    if (code)
        sw_endpoints_close(endpoints);
    else
        *ret_endpoints = endpoints;
    return code;
}

static void on_closed(void *arg)
{
    struct sw_endpoints *endpoints = arg;

    if (--endpoints->open_count == 0)
        sw_free(endpoints);
}

void sw_endpoints_close(struct sw_endpoints *endpoints)
{
    if (!endpoints || endpoints->is_closing)
        return;
    endpoints->is_closing = true;
    sw_metrics_certificate_close(endpoints->certificate);
    endpoints->tls = sw_tls_config_unref(endpoints->tls);
    endpoints->access = sw_metrics_access_free(endpoints->access);
    if (endpoints->open_count == 0) {
        sw_free(endpoints);
        return;
    }
    for (size_t i = 0; i < SW_ARRAY_SIZE(endpoints->at); i++)
        if (endpoints->at[i].server)
            sw_http_server_close(endpoints->at[i].server, on_closed, endpoints);
}

static uint16_t port_of(const struct sw_http_server *server)
{
    return server ? sw_http_server_port(server) : 0;
}

uint16_t sw_endpoints_health_port(const struct sw_endpoints *endpoints)
{
    return port_of(endpoints->at[0].server);
}

uint16_t sw_endpoints_metrics_port(const struct sw_endpoints *endpoints)
{
    const struct endpoint *first = &endpoints->at[0];

    return port_of(first->has_metrics ? first->server : endpoints->at[1].server);
}
