/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One or two HTTP servers, and what they serve. They are freed when the last of them has closed.
 */
#include "runtime/endpoints.h"

#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/metrics.h"
#include "base/util.h"
#include "net/http_server.h"
#include "runtime/health.h"

/* 1 000 series of 100 families at 100 bytes. */
enum { PAGE_LIMIT_BYTES = 16 * 1024 * 1024 };

struct endpoint {
    struct sw_endpoints *endpoints;
    struct sw_http_server *server; /* NULL: not opened */
    bool has_health, has_metrics;
};

struct sw_endpoints {
    const struct sw_health *health;
    struct sw_metrics *metrics;
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
    struct sw_buf text;

    sw_buf_init(&text, PAGE_LIMIT_BYTES);
    int status = sw_health_answer(endpoints->health, request->path, request->query, &text);
    struct sw_http_answer answer = {
        .status = status,
        .content_type = "text/plain; charset=utf-8",
        .body = text.bytes,
        .body_len = text.len,
    };
    sw_http_answer(request, &answer);
    sw_buf_done(&text);
}

static void serve_metrics(const struct sw_endpoints *endpoints, struct sw_http_incoming *request)
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

static int open_one(struct sw_endpoints *endpoints, struct sw_loop *loop, struct endpoint *endpoint,
                    const char *address, const struct sw_log *log, struct sw_error *error)
{
    struct sw_http_server_options options = {
        .address = address,
        .max_connections = 64, /* kubelet and a few scrapers */
        .body_limit_bytes = 1024,
    };

    endpoint->endpoints = endpoints;
    int code =
        sw_http_server_open(loop, &options, on_request, endpoint, log, &endpoint->server, error);
    endpoints->open_count += code == 0;
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
    int code = 0;

    endpoints->health = health;
    endpoints->metrics = metrics;
    endpoints->at[0].has_health = has_health;
    endpoints->at[0].has_metrics = are_one;
    endpoints->at[1].has_metrics = has_metrics && !are_one;
    if (has_health) {
        code = open_one(endpoints, loop, &endpoints->at[0], options->health_address, log, error);
        if (code)
            sw_error_prefix(error, "--health-probe-bind-address %s", options->health_address);
    }
    if (!code && endpoints->at[1].has_metrics) {
        code = open_one(endpoints, loop, &endpoints->at[1], options->metrics_address, log, error);
        if (code)
            sw_error_prefix(error, "--metrics-bind-address %s", options->metrics_address);
    }
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
