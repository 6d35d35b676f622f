/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long to wait after a failure: first_ms, doubled by each further failure up to limit_ms, and
 * as much again by chance, so that the replicas that failed together do not come back together.
 * Two minutes of health forget the failures: a server that answers once between two outages is not
 * well yet.
 */
#ifndef SW_KUBE_BACKOFF_H
#define SW_KUBE_BACKOFF_H

#include <stdint.h>

struct sw_loop;

#define SW_BACKOFF_HEALTH_MS UINT64_C(120000)

struct sw_backoff {
    uint64_t first_ms;
    uint64_t limit_ms;
    unsigned failures;
    uint64_t healthy_since_ms; /* 0: it is not */
};

/* What failed works again, or still. */
void sw_backoff_succeed(struct sw_backoff *backoff, struct sw_loop *loop);
/* It failed: the time to wait, in [d, 2d]. at_least_ms: what the server asked for (Retry-After),
 * which counts if it is longer; 0: nothing. */
uint64_t sw_backoff_fail(struct sw_backoff *backoff, struct sw_loop *loop, uint64_t at_least_ms);

#endif
