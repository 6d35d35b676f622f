/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the client share: http_client.c owns the client and its lanes, and decides
 * which exchange gets which connection; http_client_exchange.c owns requests, their deadlines and
 * ends; http_client_connection.c owns one connection. Nobody else includes this.
 *
 * An exchange is in exactly one place: in the queue of its lane; on a connection; in the client's
 * list of ended ones, from where on_end is delivered in a deferred call; or in that call. So nobody
 * is called back from within a function of ours, except with head and body.
 */
#ifndef SW_NET_HTTP_CLIENT_INTERNAL_H
#define SW_NET_HTTP_CLIENT_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/list.h"
#include "base/log.h"
#include "base/loop.h"
#include "net/http_client.h"
#include "net/proxy.h"

struct sw_tcp_connect;
struct sw_tls_handshake;
struct sw_tunnel;

struct sw_http_lane {
    struct sw_link link; /* in the client */
    struct sw_http_client *client;
    char *name;           /* NULL: the ordinary one */
    struct sw_link queue; /* exchanges without a connection, the next one first */
    struct sw_link idle;  /* connections, the one used last first */
    unsigned connections; /* in any state */
};

struct sw_http_client {
    struct sw_loop *loop;
    const struct sw_log *log;
    struct sw_http_client_options options; /* numbers only; what points is below */
    struct sw_tls_config *tls;
    char *host;
    char *tls_name;
    char *user_agent; /* or NULL */
    struct sw_proxy proxy;
    char *authority; /* the value of Host */
    sw_http_connector_fn connector;
    void *connector_arg;

    struct sw_http_lane ordinary;
    struct sw_link lanes;
    struct sw_link connections;
    struct sw_link ended;
    struct sw_defer work; /* gives connections to exchanges, delivers ends, frees the client */
    bool is_closing;

    char avoided[64]; /* the address that failed last; "": none */
    unsigned open;
    uint64_t connects;
};

enum sw_http_connection_state {
    SW_HTTP_CONNECTING, /* TCP, the proxy's tunnel, TLS */
    SW_HTTP_IDLE,
    SW_HTTP_BUSY,
    SW_HTTP_CLOSED, /* freed as soon as nobody of ours is on the stack */
};

struct sw_http_connection {
    enum sw_http_connection_state state;
    struct sw_http_client *client;
    struct sw_http_lane *lane;
    struct sw_link link;      /* in the client */
    struct sw_link idle_link; /* in the lane */
    struct sw_tcp_connect *connect;
    struct sw_tunnel *tunnel;
    struct sw_tls_handshake *handshake;
    struct sw_stream *stream;
    struct sw_http_parser *parser;
    char peer[64];
    struct sw_timer idle;
    struct sw_defer resume;
    unsigned calls; /* of ours, on the stack */

    struct sw_http_exchange *intended; /* for which it is being opened; may be served elsewhere */
    struct sw_http_exchange *exchange;
    size_t sent;        /* bytes of the request given to the stream */
    struct sw_buf held; /* received while reading was off */
    bool is_reused;     /* has carried an exchange before this one */
    bool is_stale;      /* made with credentials that have been replaced */
    bool is_answering;  /* at least one byte of the answer has come */
    bool has_answer;    /* the whole of it */
    bool keeps_alive;
    bool has_ended; /* orderly, while reading was off */
};

struct sw_http_exchange {
    struct sw_http_client *client;
    struct sw_http_lane *lane;
    struct sw_link link; /* queue or ended list */
    struct sw_http_connection *connection;
    struct sw_http_connection *attempt; /* whose intended this is */
    const struct sw_http_exchange_events *events;
    void *arg;
    struct sw_buf wire; /* the request as it is sent */
    uint64_t body_limit;
    bool is_head;
    bool may_replay;
    bool is_replay; /* takes no connection that was used before */
    bool was_sent;
    bool has_head;
    bool is_reading;
    bool is_ended;
    bool is_delivering;

    struct sw_timer timer;
    uint64_t head_timeout_ms;
    uint64_t total_timeout_ms;
    uint64_t silence_timeout_ms;
    uint64_t head_due_ms;
    uint64_t total_due_ms;   /* 0: none */
    uint64_t silence_due_ms; /* 0: none */
    uint64_t armed_ms;       /* what the timer is set to, while it is active */
    struct sw_error error;
};

/* ---- http_client.c ---- */

/* Something has changed: look again at who may have which connection, and at who has ended. */
void sw_http_client_wake(struct sw_http_client *client);
struct sw_http_lane *sw_http_lane_get(struct sw_http_client *client, const char *name);

/* ---- http_client_exchange.c ---- */

/* Takes the exchange off its connection or out of its queue; on_end follows. */
SW_PRINTF(3, 4)
void sw_http_exchange_end(struct sw_http_exchange *exchange, int code, const char *format, ...);
void sw_http_exchange_free(struct sw_http_exchange *exchange);
void sw_http_exchange_detach(struct sw_http_exchange *exchange);
/* A piece of the answer has come, or reading is on again. */
void sw_http_exchange_heard(struct sw_http_exchange *exchange);

/* ---- http_client_connection.c ---- */

/* The connection tells its fate by sw_http_exchange_end(intended) or by taking an exchange. */
void sw_http_connection_open(struct sw_http_lane *lane, struct sw_http_exchange *intended);
void sw_http_connection_start(struct sw_http_connection *connection,
                              struct sw_http_exchange *exchange);
void sw_http_connection_close(struct sw_http_connection *connection);
void sw_http_connection_reset(struct sw_http_connection *connection);
/* While it is connecting: once more, with what the client has now. */
void sw_http_connection_restart(struct sw_http_connection *connection);
void sw_http_connection_set_reading(struct sw_http_connection *connection, bool is_on);

#endif
