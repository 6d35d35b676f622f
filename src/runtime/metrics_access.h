/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may read the metrics: whoever shows a bearer token that the API server knows (TokenReview)
 * and may "get" the path /metrics (SubjectAccessReview), as with controller-runtime's
 * filters.WithAuthenticationAndAuthorization. What was found out is kept for a while, by a keyed
 * digest of the token and never by the token itself; those who come with the same token meanwhile
 * share one answer.
 *
 *   found          kept      as controller-runtime
 *   may            60 s      its token cache; it keeps the right itself for 5 min
 *   may not        30 s      the same
 *   nobody's       10 s      it does not keep them: each is asked about again
 *   no answer      not       the same; but who could before still may, for 5 min after it was found
 *                            out: an outage of the API server is when metrics are looked at
 *
 * Strangers cost the API server little, however many come: 4 are asked about at once and 10 a
 * second (20 after a pause), over a connection that nothing else of slipway waits for. As many
 * as stand below may wait, and the next ones are told 503 at once, so that they do not hold the
 * connections; as many are remembered. Who may already does not queue with strangers, and is
 * forgotten last.
 */
#ifndef SW_RUNTIME_METRICS_ACCESS_H
#define SW_RUNTIME_METRICS_ACCESS_H

#include <stdbool.h>

#include "base/list.h"

struct sw_client;
struct sw_log;
struct sw_loop;
struct sw_metrics_access;

enum {
    SW_ACCESS_KNOWN_MAX = 256,    /* tokens, at some 700 bytes */
    SW_ACCESS_ASKED_MAX = 4,      /* strangers */
    SW_ACCESS_STRANGERS_MAX = 32, /* requests of strangers that wait: half the connections, and what
                                     2 s suffice for */
    SW_ACCESS_WAITING_MAX = 128,  /* of all: twice the connections, since who goes away waits on */
};

/* What HTTP is to answer: 200, 401 (no token, or nobody's), 403, 500 (the API server does not take
 * our question: a permission of ours is missing), 503 (it does not answer). */
struct sw_access_verdict {
    int status;
    const char *why; /* for people; without secrets. Borrowed for the call */
};

/* Member of whoever waits. */
struct sw_access_waiter;
typedef void (*sw_access_fn)(struct sw_access_waiter *waiter,
                             const struct sw_access_verdict *verdict);
struct sw_access_waiter {
    sw_access_fn fn;
    /* private */
    struct sw_link link;
    const char *token;
};

/* client is borrowed. */
struct sw_metrics_access *sw_metrics_access_new(struct sw_loop *loop, struct sw_client *client,
                                                const struct sw_log *log);
/* Whoever waits is told 503. Takes NULL; returns NULL. */
struct sw_metrics_access *sw_metrics_access_free(struct sw_metrics_access *access);
/* authorization: of the request's field of that name; NULL: there is none. It stays where it is
 * until the verdict. True: that is it. False: waiter->fn comes later, once. */
bool sw_metrics_access_ask(struct sw_metrics_access *access, const char *authorization,
                           struct sw_access_waiter *waiter, struct sw_access_verdict *ret_verdict);

#endif
