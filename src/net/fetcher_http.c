/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP client for each origin that is asked just now. A place is such a client with its trust:
 * requests that trust differently never share a connection, nor a TLS session.
 *
 * A place stays for a while when it is not used, so that TLS sessions can be resumed in the next
 * round of an analysis (every minute, usually); its connections do not: they would cost memory, and
 * a server that closes idle ones just when a POST is under way would make it fail.
 */
#include "net/fetcher.h"

#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/loop.h"
#include "base/map.h"
#include "base/util.h"
#include "net/proxy.h"
#include "net/tls.h"

enum {
    PLACE_IDLE_MS = 150 * 1000,
    CONNECTION_IDLE_MS = 4000, /* many servers close after 5 s, hardly any sooner */
};

struct fetcher_http {
    struct sw_fetcher base;
    struct sw_loop *loop;
    const struct sw_log *log;
    char *user_agent;
    unsigned at_once;
    struct sw_tls_config *system; /* trusts the system's authorities; NULL: not needed yet */
    struct sw_map *places;        /* key -> struct place */
};

struct place {
    struct fetcher_http *fetcher;
    char *key;
    struct sw_http_client *client;
    unsigned active; /* exchanges */
    struct sw_timer idle;
};

struct exchange {
    struct place *place;
    const struct sw_http_exchange_events *events;
    void *arg;
    struct sw_http_exchange *exchange;
};

static struct fetcher_http *of(struct sw_fetcher *fetcher)
{
    return container_of(fetcher, struct fetcher_http, base);
}

/* ---- places ---- */

static void place_free(struct place *place)
{
    sw_assert(place->active == 0);
    sw_map_remove(place->fetcher->places, place->key);
    sw_timer_stop(&place->idle);
    sw_http_client_close(place->client);
    sw_free(place->key);
    sw_free(place);
}

static void on_idle(struct sw_timer *timer)
{
    place_free(container_of(timer, struct place, idle));
}

static char *key_of(const struct sw_fetcher_request *request)
{
    const struct sw_url *origin = request->origin;
    const char *trust = !origin->is_https               ? "none"
                        : request->insecure_skip_verify ? "anybody"
                        : request->ca_pem               ? request->ca_pem
                                                        : "system";
    return sw_asprintf("%s %u %s", origin->host, (unsigned)origin->port, trust);
}

/* The caller's reference. NULL: plain HTTP. */
static int tls_for(struct fetcher_http *fetcher, const struct sw_fetcher_request *request,
                   struct sw_tls_config **ret_tls, struct sw_error *error)
{
    struct sw_tls_client_options options = {
        .insecure_skip_verify = request->insecure_skip_verify,
        .ca_pem = request->insecure_skip_verify ? NULL : request->ca_pem,
    };
    *ret_tls = NULL;
    if (!request->origin->is_https) {
        return 0;
    }
    if (options.insecure_skip_verify || options.ca_pem) {
        return sw_tls_client_config_new(&options, ret_tls, error);
    }
    int rc = fetcher->system ? 0 : sw_tls_client_config_new(&options, &fetcher->system, error);
    if (!rc) {
        *ret_tls = sw_tls_config_ref(fetcher->system);
    }
    return rc;
}

static int open_client(struct fetcher_http *fetcher, const struct sw_fetcher_request *request,
                       struct sw_http_client **ret_client, struct sw_error *error)
{
    const struct sw_url *origin = request->origin;
    struct sw_proxy proxy;
    struct sw_tls_config *tls;
    int rc = sw_proxy_from_environment(origin->is_https, origin->host, origin->port, &proxy, error);
    if (rc) {
        return rc;
    }
    rc = tls_for(fetcher, request, &tls, error);
    if (!rc && proxy.kind == SW_PROXY_HTTPS && !tls) {
        rc = sw_error_set(error, SW_E_CONFIG,
                          "an https:// proxy is for https:// servers; HTTP_PROXY must begin with "
                          "http://");
    }
    if (!rc) {
        struct sw_http_client_options options = {
            .host = origin->host,
            .port = origin->port,
            .tls = tls,
            .proxy = &proxy,
            .user_agent = fetcher->user_agent,
            .max_connections = fetcher->at_once,
            .idle_timeout_ms = CONNECTION_IDLE_MS,
        };
        rc = sw_http_client_open(fetcher->loop, &options, fetcher->log, ret_client);
        if (rc) {
            sw_error_set(error, rc, "no client for %s: %s", origin->host, sw_strerror(rc));
        }
        sw_tls_config_unref(tls);
    }
    sw_proxy_done(&proxy);
    return rc;
}

static int place_for(struct fetcher_http *fetcher, const struct sw_fetcher_request *request,
                     struct place **ret_place, struct sw_error *error)
{
    SW_AUTO(char, sw_free) key = key_of(request);
    struct place *place = sw_map_get(fetcher->places, key);
    struct sw_http_client *client;
    if (!place) {
        int rc = open_client(fetcher, request, &client, error);
        if (rc) {
            return rc;
        }
        place = SW_NEW(struct place);
        place->fetcher = fetcher;
        place->key = sw_steal(&key);
        place->client = client;
        sw_timer_init_weak(&place->idle, fetcher->loop, on_idle);
        sw_timer_start(&place->idle, PLACE_IDLE_MS);
        sw_map_set(fetcher->places, place->key, place);
    }
    *ret_place = place;
    return 0;
}

/* ---- exchanges ---- */

static void exchange_free(struct exchange *exchange)
{
    struct place *place = exchange->place;
    if (--place->active == 0) {
        sw_timer_start(&place->idle, PLACE_IDLE_MS);
    }
    sw_free(exchange);
}

static void on_head(void *arg, const struct sw_http_head *head)
{
    struct exchange *exchange = arg;
    exchange->events->on_head(exchange->arg, head);
}

static void on_body(void *arg, const char *bytes, size_t len)
{
    struct exchange *exchange = arg;
    exchange->events->on_body(exchange->arg, bytes, len);
}

static void on_end(void *arg, int code, const struct sw_error *error)
{
    struct exchange *exchange = arg;
    const struct sw_http_exchange_events *events = exchange->events;
    void *events_arg = exchange->arg;
    exchange_free(exchange);
    events->on_end(events_arg, code, error);
}

static int on_send(void *arg)
{
    struct exchange *exchange = arg;
    return exchange->events->on_send ? exchange->events->on_send(exchange->arg) : 0;
}

static int fetcher_send(struct sw_fetcher *fetcher, const struct sw_fetcher_request *request,
                        const struct sw_http_exchange_events *events, void *arg,
                        void **ret_exchange, struct sw_error *error)
{
    static const struct sw_http_exchange_events ours = {on_head, on_body, on_end, on_send};
    struct place *place;
    int rc = place_for(of(fetcher), request, &place, error);
    if (rc) {
        return rc;
    }
    struct exchange *exchange = SW_NEW(struct exchange);
    exchange->place = place;
    exchange->events = events;
    exchange->arg = arg;
    rc = sw_http_send(place->client, &request->http, &ours, exchange, &exchange->exchange);
    if (rc) {
        sw_free(exchange);
        return sw_error_set(error, rc, "not sent: %s", sw_strerror(rc));
    }
    place->active++;
    sw_timer_stop(&place->idle);
    *ret_exchange = exchange;
    return 0;
}

static void fetcher_cancel(struct sw_fetcher *fetcher, void *exchange)
{
    struct exchange *e = exchange;
    (void)fetcher;
    sw_http_exchange_cancel(e->exchange);
    exchange_free(e);
}

/* ---- life ---- */

static void fetcher_close(struct sw_fetcher *fetcher)
{
    struct fetcher_http *f = of(fetcher);
    struct sw_map_iter iter = {0};
    while (sw_map_next(f->places, &iter)) {
        place_free(iter.value);
    }
    sw_map_free(f->places);
    sw_tls_config_unref(f->system);
    sw_free(f->user_agent);
    sw_free(f);
}

struct sw_fetcher *sw_fetcher_http_new(struct sw_loop *loop, const char *user_agent,
                                       unsigned at_once, const struct sw_log *log)
{
    static const struct sw_fetcher_ops ops = {fetcher_send, fetcher_cancel, fetcher_close};
    struct fetcher_http *fetcher = SW_NEW(struct fetcher_http);
    fetcher->base.ops = &ops;
    fetcher->loop = loop;
    fetcher->log = log;
    fetcher->user_agent = sw_strdup(user_agent);
    fetcher->at_once = at_once;
    fetcher->places = sw_map_new();
    return &fetcher->base;
}

unsigned sw_fetcher_http_clients(const struct sw_fetcher *fetcher)
{
    const struct fetcher_http *f = (const struct fetcher_http *)(const void *)fetcher;
    return (unsigned)sw_map_size(f->places);
}
