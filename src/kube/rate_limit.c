/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The token bucket. It is filled when somebody looks, so an idle client wakes nobody.
 */
#include "kube/rate_limit.h"

#include <math.h>

#include "base/util.h"

void sw_rate_waiter_init(struct sw_rate_waiter *waiter, sw_rate_fn fn)
{
    waiter->fn = fn;
    sw_link_init(&waiter->link);
}

static void fill(struct sw_rate_limit *limit)
{
    uint64_t now = sw_now_ms(limit->loop);
    limit->tokens += (double)(now - limit->filled_ms) * limit->per_ms;
    limit->filled_ms = now;
    if (limit->tokens >= limit->burst) {
        limit->tokens = limit->burst;
        limit->is_biting = false;
    }
}

static void arm(struct sw_rate_limit *limit)
{
    double missing = SW_MAX(1.0 - limit->tokens, 0.0);
    sw_timer_start(&limit->timer, (uint64_t)ceil(missing / limit->per_ms));
}

/* One a call: fn may do anything, to this limit as well. */
static void on_timer(struct sw_timer *timer)
{
    struct sw_rate_limit *limit = container_of(timer, struct sw_rate_limit, timer);
    struct sw_link *first = sw_link_first(&limit->waiting);
    if (!first) {
        return;
    }
    fill(limit);
    if (limit->tokens < 1.0) {
        arm(limit);
        return;
    }
    limit->tokens -= 1.0;
    sw_link_remove(first);
    if (sw_link_first(&limit->waiting)) {
        arm(limit);
    }
    struct sw_rate_waiter *waiter = container_of(first, struct sw_rate_waiter, link);
    waiter->fn(waiter);
}

void sw_rate_limit_init(struct sw_rate_limit *limit, struct sw_loop *loop, double per_second,
                        unsigned burst)
{
    *limit = (struct sw_rate_limit){
        .loop = loop,
        .per_ms = per_second / 1000.0,
        .burst = burst,
        .tokens = burst,
        .filled_ms = sw_now_ms(loop),
    };
    sw_link_init(&limit->waiting);
    sw_timer_init(&limit->timer, loop, on_timer);
}

void sw_rate_limit_set(struct sw_rate_limit *limit, double per_second, unsigned burst)
{
    fill(limit);
    limit->per_ms = per_second / 1000.0;
    limit->burst = burst;
    limit->tokens = SW_MIN(limit->tokens, limit->burst);
    if (sw_link_first(&limit->waiting)) {
        arm(limit);
    }
}

void sw_rate_limit_done(struct sw_rate_limit *limit)
{
    sw_assert(!sw_link_first(&limit->waiting));
    sw_timer_stop(&limit->timer);
}

bool sw_rate_limit_take(struct sw_rate_limit *limit, struct sw_rate_waiter *waiter,
                        bool *ret_bites_first)
{
    fill(limit);
    *ret_bites_first = false;
    if (limit->tokens >= 1.0 && !sw_link_first(&limit->waiting)) {
        limit->tokens -= 1.0;
        return true;
    }
    *ret_bites_first = !limit->is_biting;
    limit->is_biting = true;
    sw_link_add_last(&limit->waiting, &waiter->link);
    if (!sw_timer_is_active(&limit->timer)) {
        arm(limit);
    }
    return false;
}

void sw_rate_limit_forget(struct sw_rate_limit *limit, struct sw_rate_waiter *waiter)
{
    sw_link_remove(&waiter->link);
    if (!sw_link_first(&limit->waiting)) {
        sw_timer_stop(&limit->timer);
    }
}
