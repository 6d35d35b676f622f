/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 client for one origin: a pool of keep-alive connections and the requests on them. It
 * knows nothing of Kubernetes. One request at a time on a connection, no pipelining.
 *
 * Lanes: a request of the ordinary lane waits while max_connections are busy; a request with
 * own_connection (a watch, a lease renewal) gets a connection beside the pool at once, and that is
 * kept for the next one of the same lane name.
 */
#ifndef SW_NET_HTTP_CLIENT_H
#define SW_NET_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/http.h"

struct sw_error;
struct sw_http_client;
struct sw_http_exchange;
struct sw_log;
struct sw_loop;
struct sw_proxy;
struct sw_stream;
struct sw_tls_config;

struct sw_http_client_options {
    const char *host; /* name, IPv4 or IPv6 literal without brackets */
    uint16_t port;
    struct sw_tls_config *tls;    /* a reference is taken; NULL: plain http */
    const char *tls_name;         /* NULL: host */
    const struct sw_proxy *proxy; /* copied; NULL, or of no kind: the host is reached directly. One
                                     of the kind https is trusted as the host is, by tls */
    const char *user_agent;       /* NULL: none is sent */
    unsigned max_connections;     /* of the ordinary lane; 0: 4 */
    uint64_t idle_timeout_ms;     /* 0: 60 000, below the 90 s after which an API server closes */
    uint64_t connect_timeout_ms;  /* 0: 10 000; for TCP, and again for TLS */
    size_t head_limit_bytes;      /* 0: 64 KiB */
};

/* -EINVAL: host or user_agent cannot stand in a head, or an https proxy without tls. log outlives
 * the client. */
int sw_http_client_open(struct sw_loop *loop, const struct sw_http_client_options *options,
                        const struct sw_log *log, struct sw_http_client **ret_client);
/* Every exchange ends with -ECANCELED, then the client frees itself. Takes NULL. */
void sw_http_client_close(struct sw_http_client *client);
/* Credentials or trust have changed: new connections use it, idle ones close, busy ones finish. */
void sw_http_client_set_tls(struct sw_http_client *client, struct sw_tls_config *tls);
/* Closes every connection with a TCP reset: nothing on its way may arrive. Exchanges, also those
 * that wait for a connection, end with -ECONNRESET. */
void sw_http_client_reset(struct sw_http_client *client);

struct sw_http_request {
    const char *method;                 /* "GET" */
    const char *target;                 /* "/api/v1/pods?limit=1", encoded */
    const struct sw_http_field *fields; /* Host, User-Agent and Content-Length are added */
    size_t field_count;
    const void *body; /* copied; NULL: none */
    size_t body_len;
    const char *own_connection; /* name of a lane of its own ("lease", "watch deployments"); NULL:
                                   ordinary */
    bool may_replay; /* idempotent or guarded: sent once more, on a new connection, where a *reused*
                        one broke before the first byte of the answer. GETs always may */
    uint64_t
        head_timeout_ms; /* to the answer's head, waiting for a connection included; 0: 30 000 */
    uint64_t total_timeout_ms;   /* to the end of the body; 0: none */
    uint64_t silence_timeout_ms; /* between two pieces of the body; 0: none */
    uint64_t body_limit_bytes;   /* of the answer; 0: none */
};

/* on_end comes exactly once, after sw_http_send has returned 0, and is the last: 0 only after a
 * whole message; -ECANCELED after a cancel is *not* delivered. Events may cancel their own
 * exchange, send new requests and close the client. Each may be NULL.
 * Codes: -ETIMEDOUT; -ECONNRESET, before anything was answered; SW_E_TRUNCATED, in the middle of
 * the answer; SW_E_PROTOCOL; SW_E_TOO_LARGE; what connecting failed with. */
struct sw_http_exchange_events {
    void (*on_head)(void *arg, const struct sw_http_head *head);
    void (*on_body)(void *arg, const char *bytes, size_t len);
    void (*on_end)(void *arg, int code, const struct sw_error *error);
    /* Right before the first byte leaves, and again before it is sent once more: the request may
     * have waited long for a connection. A negative code: it is not sent, and ends with that.
     * Decides and does nothing else. NULL: 0. */
    int (*on_send)(void *arg);
};

/* Method, target and fields would not break the head (line feeds, spaces), and no field is one of
 * those that are added. */
bool sw_http_is_sendable(const struct sw_http_request *request);
/* -EINVAL: it is not sendable. */
int sw_http_send(struct sw_http_client *client, const struct sw_http_request *request,
                 const struct sw_http_exchange_events *events, void *arg,
                 struct sw_http_exchange **ret_exchange);
/* No event comes any more; a connection in the middle of an answer is closed. Within on_end it does
 * nothing. */
void sw_http_exchange_cancel(struct sw_http_exchange *exchange);
/* As cancel, and the connection that carries it is closed with a TCP reset: what is still on its
 * way shall not arrive. */
void sw_http_exchange_reset(struct sw_http_exchange *exchange);
/* Off: no event but on_end with a failure comes until it is on again, and the server is held up. */
void sw_http_exchange_set_reading(struct sw_http_exchange *exchange, bool is_on);
/* Did any byte of the request leave? False means that the server cannot have seen it. */
bool sw_http_exchange_was_sent(const struct sw_http_exchange *exchange);

/* For metrics: connections open now, and opened since the start. */
unsigned sw_http_client_connections(const struct sw_http_client *client);
uint64_t sw_http_client_connects(const struct sw_http_client *client);

/* For tests and the simulator: connections come from fn, not from TCP and TLS. It returns 0 and a
 * stream, not started, or a negative code. */
typedef int (*sw_http_connector_fn)(void *arg, struct sw_stream **ret_stream);
void sw_http_client_set_connector(struct sw_http_client *client, sw_http_connector_fn fn,
                                  void *arg);

#endif
