/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seam below requests to any server: send one, receive its answer. Two kinds of implementation:
 * HTTP clients, one for each origin, and what tests and the simulated world put in their place.
 * Requests and events are those of the HTTP client.
 */
#ifndef SW_NET_FETCHER_H
#define SW_NET_FETCHER_H

#include <stdbool.h>

#include "net/http_client.h"
#include "net/url.h"

struct sw_error;
struct sw_fetcher;
struct sw_log;
struct sw_loop;

/* Borrowed for the call. */
struct sw_fetcher_request {
    const struct sw_url *origin; /* without a path */
    bool insecure_skip_verify;
    const char *ca_pem; /* NULL: the system's authorities */
    struct sw_http_request http;
};

struct sw_fetcher_ops {
    /* As sw_http_send; what fails otherwise, before anything could be sent, is said in *error. */
    int (*send)(struct sw_fetcher *fetcher, const struct sw_fetcher_request *request,
                const struct sw_http_exchange_events *events, void *arg, void **ret_exchange,
                struct sw_error *error);
    /* No event comes any more. Not after on_end has begun. */
    void (*cancel)(struct sw_fetcher *fetcher, void *exchange);
    /* Exchanges under way were cancelled before. */
    void (*close)(struct sw_fetcher *fetcher);
};

/* First member of every one. */
struct sw_fetcher {
    const struct sw_fetcher_ops *ops;
};

/* Over HTTP. At most at_once of an origin and its trust (ca_pem, insecure_skip_verify) are under
 * way; the rest waits. What is not used for some seconds is closed and freed, but for the system's
 * authorities, which are read when they are first needed and then kept. Proxies are those of the
 * environment. log outlives it. */
struct sw_fetcher *sw_fetcher_http_new(struct sw_loop *loop, const char *user_agent,
                                       unsigned at_once, const struct sw_log *log);
/* For tests and metrics: clients, each of an origin and its trust, that there are now. */
unsigned sw_fetcher_http_clients(const struct sw_fetcher *fetcher);

#endif
