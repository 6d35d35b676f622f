/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP transport: the HTTP client of one server with who we are put into each request. The
 * token goes with the request, so streams that run keep the one they began with: the server looks
 * at it once. Certificates go with the connection, so the client is told when they change.
 */
#include "kube/transport.h"

#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/util.h"
#include "kube/credentials.h"

struct transport_http {
    struct sw_transport base;
    struct sw_credentials *credentials;
    struct sw_http_client *client;
    unsigned credentials_number;
};

static struct transport_http *of(struct sw_transport *transport)
{
    return container_of(transport, struct transport_http, base);
}

static int transport_send(struct sw_transport *transport, const struct sw_http_request *request,
                          const struct sw_http_exchange_events *events, void *arg,
                          void **ret_exchange)
{
    struct transport_http *t = of(transport);
    const char *authorization = sw_credentials_authorization(t->credentials);
    struct sw_http_field fields[8];
    sw_assert(request->field_count < SW_ARRAY_SIZE(fields));
    memcpy(fields, request->fields, request->field_count * sizeof(fields[0]));
    struct sw_http_request with_us = *request;
    with_us.fields = fields;
    if (authorization) {
        fields[with_us.field_count++] = (struct sw_http_field){"Authorization", authorization};
    }
    struct sw_http_exchange *exchange;
    int rc = sw_http_send(t->client, &with_us, events, arg, &exchange);
    if (!rc) {
        *ret_exchange = exchange;
    }
    return rc;
}

static void transport_cancel(struct sw_transport *transport, void *exchange)
{
    (void)transport;
    sw_http_exchange_cancel(exchange);
}

static void transport_abort(struct sw_transport *transport, void *exchange)
{
    (void)transport;
    sw_http_exchange_reset(exchange);
}

static bool transport_was_sent(struct sw_transport *transport, const void *exchange)
{
    (void)transport;
    return sw_http_exchange_was_sent(exchange);
}

static bool transport_refresh(struct sw_transport *transport)
{
    return sw_credentials_reload(of(transport)->credentials);
}

static unsigned transport_credentials_number(struct sw_transport *transport)
{
    return of(transport)->credentials_number;
}

static void on_change(void *arg);

static void transport_close(struct sw_transport *transport)
{
    struct transport_http *t = of(transport);
    sw_credentials_off_change(t->credentials, on_change, t);
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
    t->credentials_number++;
    sw_http_client_set_tls(t->client, sw_credentials_tls(t->credentials));
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

int sw_transport_http_open(struct sw_loop *loop, struct sw_credentials *credentials,
                           const char *component, const struct sw_log *log,
                           struct sw_transport **ret_transport, struct sw_error *error)
{
    const struct sw_url *server = sw_credentials_server(credentials);
    SW_AUTO(char, sw_free)
    agent = sw_asprintf("slipway/%s (linux/%s) %s", SW_VERSION, architecture(), component);
    struct sw_http_client_options options = {
        .host = server->host,
        .port = server->port,
        .tls = sw_credentials_tls(credentials),
        .tls_name = sw_credentials_tls_name(credentials),
        .user_agent = agent,
    };
    struct transport_http *t = SW_NEW(struct transport_http);
    t->base.ops = &ops;
    t->credentials = credentials;
    int rc = sw_http_client_open(loop, &options, log, &t->client);
    if (rc) {
        sw_free(t);
        return sw_error_set(error, rc, "no client for the API server at %s: %s", server->host,
                            sw_strerror(rc));
    }
    sw_credentials_on_change(credentials, on_change, t);
    *ret_transport = &t->base;
    return 0;
}
