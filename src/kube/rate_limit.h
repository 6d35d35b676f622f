/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A token bucket: so many requests a second, so many at once; who finds it empty waits in order.
 * It is there for safety (a loop of ours that runs wild must not take the API server with it), not
 * for pacing. Lives inside its owner.
 */
#ifndef SW_KUBE_RATE_LIMIT_H
#define SW_KUBE_RATE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/loop.h"

/* Member of whoever waits. */
struct sw_rate_waiter;
typedef void (*sw_rate_fn)(struct sw_rate_waiter *waiter);
struct sw_rate_waiter {
    sw_rate_fn fn;
    struct sw_link link;
};
void sw_rate_waiter_init(struct sw_rate_waiter *waiter, sw_rate_fn fn);

struct sw_rate_limit {
    struct sw_loop *loop;
    double per_ms;
    double burst;
    double tokens;
    uint64_t filled_ms;
    bool is_biting; /* from the first that had to wait until the bucket is full again */
    struct sw_link waiting;
    struct sw_timer timer;
};

void sw_rate_limit_init(struct sw_rate_limit *limit, struct sw_loop *loop, double per_second,
                        unsigned burst);
/* From now on; who waits goes on waiting, by the new rate. */
void sw_rate_limit_set(struct sw_rate_limit *limit, double per_second, unsigned burst);
/* Nobody may wait any more. */
void sw_rate_limit_done(struct sw_rate_limit *limit);
/* True: a token was taken. False: fn comes with it later, in the order of asking.
 * *ret_bites_first: true once an episode, for the log. */
bool sw_rate_limit_take(struct sw_rate_limit *limit, struct sw_rate_waiter *waiter,
                        bool *ret_bites_first);
void sw_rate_limit_forget(struct sw_rate_limit *limit, struct sw_rate_waiter *waiter);

#endif
