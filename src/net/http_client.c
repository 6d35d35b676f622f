/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client: its lanes, and who gets which connection. All of that happens in one deferred call
 * (work), so that requests sent, cancelled and answered in one turn of the loop are seen together.
 */
#include "net/http_client.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "net/http_client_internal.h"
#include "net/stream.h"
#include "net/tls.h"
#include "net/url.h"

#define MAX_CONNECTIONS_DEFAULT 4
#define IDLE_TIMEOUT_DEFAULT_MS 60000
#define CONNECT_TIMEOUT_DEFAULT_MS 10000

/* ---- lanes ---- */

static void lane_init(struct sw_http_lane *lane, struct sw_http_client *client, const char *name)
{
    lane->client = client;
    lane->name = name ? sw_strdup(name) : NULL;
    sw_link_init(&lane->link);
    sw_link_init(&lane->queue);
    sw_link_init(&lane->idle);
    sw_link_add_last(&client->lanes, &lane->link);
}

struct sw_http_lane *sw_http_lane_get(struct sw_http_client *client, const char *name)
{
    if (!name) {
        return &client->ordinary;
    }
    SW_LIST_EACH (link, &client->lanes) {
        struct sw_http_lane *lane = container_of(link, struct sw_http_lane, link);
        if (lane->name && strcmp(lane->name, name) == 0) {
            return lane;
        }
    }
    struct sw_http_lane *lane = SW_NEW(struct sw_http_lane);
    lane_init(lane, client, name);
    return lane;
}

static void lane_free_maybe(struct sw_http_lane *lane)
{
    if (lane->name && lane->connections == 0 && !sw_link_is_used(&lane->queue)) {
        sw_link_remove(&lane->link);
        sw_free(lane->name);
        sw_free(lane);
    }
}

static struct sw_http_connection *first_idle(const struct sw_http_lane *lane)
{
    struct sw_link *link = sw_link_first(&lane->idle);

    return link ? container_of(link, struct sw_http_connection, idle_link) : NULL;
}

/* Lanes of their own have no limit: whoever uses the name twice at once gets two connections. */
static bool has_room(const struct sw_http_lane *lane)
{
    return lane->name || lane->connections < lane->client->options.max_connections;
}

/* Gives the exchange an idle connection, or has one opened for it. */
static void serve(struct sw_http_lane *lane, struct sw_http_exchange *e)
{
    struct sw_http_connection *idle = first_idle(lane);

    if (idle && !e->is_replay) {
        sw_http_connection_start(idle, e);
        return;
    }
    if (e->attempt) {
        return;
    }
    /* Where one kept connection was dead on use, the others are the next to be found so. */
    if (idle && !has_room(lane)) {
        sw_http_connection_close(idle);
    }
    if (has_room(lane)) {
        sw_http_connection_open(lane, e);
    }
}

static void serve_lane(struct sw_http_lane *lane)
{
    SW_LIST_EACH (link, &lane->queue) {
        serve(lane, container_of(link, struct sw_http_exchange, link));
    }
    lane_free_maybe(lane);
}

/* ---- the deferred call ---- */

static void client_free(struct sw_http_client *c)
{
    SW_LIST_EACH (lane, &c->lanes) {
        lane_free_maybe(container_of(lane, struct sw_http_lane, link));
    }
    sw_assert(!sw_link_is_used(&c->connections));
    sw_defer_stop(&c->work);
    sw_tls_config_unref(c->tls);
    sw_free(c->host);
    sw_free(c->tls_name);
    sw_free(c->user_agent);
    sw_proxy_done(&c->proxy);
    sw_free(c->authority);
    sw_free(c);
}

static void work(struct sw_defer *defer)
{
    struct sw_http_client *c = container_of(defer, struct sw_http_client, work);

    SW_LIST_EACH (lane, &c->lanes) {
        serve_lane(container_of(lane, struct sw_http_lane, link));
    }
    for (struct sw_link *link; (link = sw_link_first(&c->ended));) {
        struct sw_http_exchange *e = container_of(link, struct sw_http_exchange, link);
        sw_link_remove(link);
        e->is_delivering = true;
        if (e->events->on_end) {
            e->events->on_end(e->arg, e->error.code, &e->error);
        }
        sw_http_exchange_free(e);
    }
    if (c->is_closing) {
        client_free(c);
    }
}

void sw_http_client_wake(struct sw_http_client *c)
{
    sw_defer_start(&c->work);
}

/* ---- opening and closing ---- */

static int set_authority(struct sw_http_client *c)
{
    struct sw_url url = {.is_https = c->tls != NULL, .port = c->options.port};
    struct sw_buf text;

    if (strlen(c->host) >= sizeof(url.host)) {
        return -EINVAL;
    }
    memcpy(url.host, c->host, strlen(c->host));
    sw_buf_init(&text, SIZE_MAX);
    sw_url_authority(&url, &text);
    c->authority = sw_buf_steal(&text);
    return 0;
}

static char *copy(const char *text)
{
    return text ? sw_strdup(text) : NULL;
}

int sw_http_client_open(struct sw_loop *loop, const struct sw_http_client_options *options,
                        const struct sw_log *log, struct sw_http_client **ret_client)
{
    if (!sw_http_is_field_value(options->host) || strpbrk(options->host, " \t/?#@") ||
        (options->user_agent && !sw_http_is_field_value(options->user_agent)) ||
        (options->proxy && options->proxy->kind == SW_PROXY_HTTPS && !options->tls)) {
        return -EINVAL;
    }
    struct sw_http_client *c = SW_NEW(struct sw_http_client);
    struct sw_http_client_options *o = &c->options;
    c->loop = loop;
    c->log = log;
    *o = *options;
    o->tls = NULL;
    o->host = o->tls_name = o->user_agent = NULL;
    o->proxy = NULL;
    c->host = sw_strdup(options->host);
    c->tls_name = sw_strdup(options->tls_name ? options->tls_name : options->host);
    c->user_agent = options->user_agent ? sw_strdup(options->user_agent) : NULL;
    if (options->proxy) {
        c->proxy = *options->proxy;
        c->proxy.username = copy(c->proxy.username);
        c->proxy.password = copy(c->proxy.password);
    }
    o->max_connections = o->max_connections ? o->max_connections : MAX_CONNECTIONS_DEFAULT;
    o->idle_timeout_ms = o->idle_timeout_ms ? o->idle_timeout_ms : IDLE_TIMEOUT_DEFAULT_MS;
    o->connect_timeout_ms =
        o->connect_timeout_ms ? o->connect_timeout_ms : CONNECT_TIMEOUT_DEFAULT_MS;
    c->tls = options->tls ? sw_tls_config_ref(options->tls) : NULL;
    sw_link_init(&c->lanes);
    sw_link_init(&c->connections);
    sw_link_init(&c->ended);
    lane_init(&c->ordinary, c, NULL);
    sw_defer_init(&c->work, loop, work);
    int rc = set_authority(c);
    if (rc < 0) {
        client_free(c);
        return rc;
    }
    *ret_client = c;
    return 0;
}

static void end_queued(struct sw_http_lane *lane, int code, const char *why)
{
    SW_LIST_EACH (link, &lane->queue) {
        sw_http_exchange_end(container_of(link, struct sw_http_exchange, link), code, "%s", why);
    }
}

static void end_all(struct sw_http_client *c, int code, const char *why,
                    void (*close_one)(struct sw_http_connection *connection))
{
    SW_LIST_EACH (link, &c->lanes) {
        end_queued(container_of(link, struct sw_http_lane, link), code, why);
    }
    SW_LIST_EACH (link, &c->connections) {
        struct sw_http_connection *connection = container_of(link, struct sw_http_connection, link);
        if (connection->exchange) {
            sw_http_exchange_end(connection->exchange, code, "%s", why);
        }
        close_one(connection);
    }
    sw_http_client_wake(c);
}

void sw_http_client_close(struct sw_http_client *c)
{
    if (!c || c->is_closing) {
        return;
    }
    c->is_closing = true;
    end_all(c, -ECANCELED, "the client was closed", sw_http_connection_close);
}

void sw_http_client_reset(struct sw_http_client *c)
{
    end_all(c, -ECONNRESET, "all connections were reset on our side", sw_http_connection_reset);
}

void sw_http_client_set_tls(struct sw_http_client *c, struct sw_tls_config *tls)
{
    struct sw_tls_config *old = c->tls;

    c->tls = tls ? sw_tls_config_ref(tls) : NULL;
    sw_tls_config_unref(old);
    SW_LIST_EACH (link, &c->connections) {
        struct sw_http_connection *connection = container_of(link, struct sw_http_connection, link);
        switch (connection->state) {
        case SW_HTTP_CONNECTING:
            sw_http_connection_restart(connection);
            break;
        case SW_HTTP_IDLE:
            sw_http_connection_close(connection);
            break;
        default:
            connection->is_stale = true;
            break;
        }
    }
}

void sw_http_client_set_connector(struct sw_http_client *c, sw_http_connector_fn fn, void *arg)
{
    c->connector = fn;
    c->connector_arg = arg;
}

unsigned sw_http_client_connections(const struct sw_http_client *c)
{
    return c->open;
}

uint64_t sw_http_client_connects(const struct sw_http_client *c)
{
    return c->connects;
}
