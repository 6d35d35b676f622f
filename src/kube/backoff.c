/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exponential back-off with jitter. It keeps numbers, no timer: whoever waits has its own.
 */
#include "kube/backoff.h"

#include "base/loop.h"
#include "base/util.h"

void sw_backoff_succeed(struct sw_backoff *backoff, struct sw_loop *loop)
{
    if (!backoff->healthy_since_ms) {
        backoff->healthy_since_ms = sw_now_ms(loop);
    }
}

uint64_t sw_backoff_fail(struct sw_backoff *backoff, struct sw_loop *loop, uint64_t at_least_ms)
{
    uint64_t since = backoff->healthy_since_ms;
    if (since && sw_now_ms(loop) - since >= SW_BACKOFF_HEALTH_MS) {
        backoff->failures = 0;
    }
    backoff->healthy_since_ms = 0;
    uint64_t wait = backoff->first_ms;
    for (unsigned i = 0; i < backoff->failures && wait < backoff->limit_ms; i++) {
        wait *= 2;
    }
    wait = SW_MIN(wait, backoff->limit_ms);
    backoff->failures++;
    uint64_t jitter = sw_random_between(loop, 0, wait);
    return SW_MAX(wait, at_least_ms) + jitter;
}
