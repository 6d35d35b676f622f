/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seam below the API client: send a request, receive an answer that may stream. Two
 * implementations: HTTP, and a direct call into a simulated cluster. Requests and events are those
 * of the HTTP client; the transport adds who we are.
 */
#ifndef SW_KUBE_TRANSPORT_H
#define SW_KUBE_TRANSPORT_H

#include "net/http_client.h"

struct sw_transport;

struct sw_transport_ops {
    /* As sw_http_send; what the request points to is copied. */
    int (*send)(struct sw_transport *transport, const struct sw_http_request *request,
                const struct sw_http_exchange_events *events, void *arg, void **ret_exchange);
    /* No event comes any more. */
    void (*cancel)(struct sw_transport *transport, void *exchange);
    /* As cancel, and the connection that carries it is reset: what has not arrived at the server
     * yet shall not. */
    void (*abort)(struct sw_transport *transport, void *exchange);
    /* Did any byte of the request leave? May be asked until on_end has returned. */
    bool (*was_sent)(struct sw_transport *transport, const void *exchange);
    /* 401: credentials may be out of date; reload them. True if they differ now, or will: what is
     * sent from now on waits for them. */
    bool (*refresh_credentials)(struct sw_transport *transport);
    /* A number that changes with the credentials, whoever noticed that they did: what is sent now
     * carries those of this number. */
    unsigned (*credentials_number)(struct sw_transport *transport);
    /* What is under way is dropped. */
    void (*close)(struct sw_transport *transport);
};

/* First member of every transport. */
struct sw_transport {
    const struct sw_transport_ops *ops;
};

struct sw_credentials;
struct sw_error;
struct sw_log;
struct sw_loop;

/* The HTTP transport: a client for the server of the credentials, whose changes it follows. The
 * credentials are borrowed and must outlive it. component: for User-Agent: "slipway/VERSION
 * (linux/amd64) COMPONENT". */
int sw_transport_http_open(struct sw_loop *loop, struct sw_credentials *credentials,
                           const char *component, const struct sw_log *log,
                           struct sw_transport **ret_transport, struct sw_error *error);

#endif
