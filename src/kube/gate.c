/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate: see the table in the header. Those who may go are called one in each deferred call, so
 * that any of them may close the gate again, or free it.
 */
#include "kube/gate.h"

#include "base/loop.h"
#include "base/util.h"
#include "kube/backoff.h"

enum state {
    GATE_OPEN,
    GATE_CLOSED,
    GATE_PROBING,
};

struct sw_gate {
    struct sw_loop *loop;
    enum state state;
    struct sw_backoff backoff;
    struct sw_timer timer;
    struct sw_defer release;
    struct sw_link waiting;
    struct sw_gate_pass *probe;
};

void sw_gate_pass_init(struct sw_gate_pass *pass, sw_gate_fn fn)
{
    pass->fn = fn;
    sw_link_init(&pass->link);
}

static struct sw_gate_pass *take_first(struct sw_gate *gate)
{
    struct sw_link *link = sw_link_first(&gate->waiting);
    if (!link) {
        return NULL;
    }
    sw_link_remove(link);
    return container_of(link, struct sw_gate_pass, link);
}

/* One of those who wait; touches nothing afterwards. */
static void on_release(struct sw_defer *release)
{
    struct sw_gate *gate = container_of(release, struct sw_gate, release);
    if (gate->state == GATE_CLOSED && sw_timer_is_active(&gate->timer)) {
        return;
    }
    if (gate->state == GATE_PROBING && gate->probe) {
        return;
    }
    struct sw_gate_pass *pass = take_first(gate);
    if (!pass) {
        return;
    }
    if (gate->state == GATE_OPEN) {
        sw_defer_start(&gate->release);
    } else {
        gate->state = GATE_PROBING;
        gate->probe = pass;
    }
    pass->fn(pass);
}

static void on_timer(struct sw_timer *timer)
{
    sw_defer_start(&container_of(timer, struct sw_gate, timer)->release);
}

struct sw_gate *sw_gate_new(struct sw_loop *loop, uint64_t first_ms, uint64_t limit_ms)
{
    struct sw_gate *gate = SW_NEW(struct sw_gate);
    gate->loop = loop;
    gate->backoff = (struct sw_backoff){.first_ms = first_ms, .limit_ms = limit_ms};
    sw_timer_init(&gate->timer, loop, on_timer);
    sw_defer_init(&gate->release, loop, on_release);
    sw_link_init(&gate->waiting);
    return gate;
}

struct sw_gate *sw_gate_free(struct sw_gate *gate)
{
    if (gate) {
        sw_assert(!sw_link_first(&gate->waiting));
        sw_timer_stop(&gate->timer);
        sw_defer_stop(&gate->release);
        sw_free(gate);
    }
    return NULL;
}

bool sw_gate_enter(struct sw_gate *gate, struct sw_gate_pass *pass)
{
    bool is_idle = gate->state == GATE_CLOSED && !sw_timer_is_active(&gate->timer) &&
                   !sw_link_first(&gate->waiting);
    if (gate->state == GATE_OPEN) {
        return true;
    }
    if (is_idle) {
        gate->state = GATE_PROBING;
        gate->probe = pass;
        return true;
    }
    sw_link_add_last(&gate->waiting, &pass->link);
    return false;
}

void sw_gate_succeed(struct sw_gate *gate)
{
    sw_backoff_succeed(&gate->backoff, gate->loop);
    if (gate->state != GATE_OPEN) {
        gate->state = GATE_OPEN;
        gate->probe = NULL;
        sw_timer_stop(&gate->timer);
        sw_defer_start(&gate->release);
    }
}

void sw_gate_fail(struct sw_gate *gate, struct sw_gate_pass *pass, uint64_t retry_after_ms)
{
    /* Streams of many kinds break together when the server goes: one failure, not many. */
    if (gate->state == GATE_CLOSED || (gate->state == GATE_PROBING && gate->probe != pass)) {
        return;
    }
    gate->state = GATE_CLOSED;
    gate->probe = NULL;
    sw_timer_start(&gate->timer, sw_backoff_fail(&gate->backoff, gate->loop, retry_after_ms));
}

void sw_gate_forget(struct sw_gate *gate, struct sw_gate_pass *pass)
{
    sw_link_remove(&pass->link);
    if (gate->probe == pass) {
        gate->probe = NULL;
        gate->state = GATE_CLOSED; /* its time is over: the next one may probe at once */
        sw_defer_start(&gate->release);
    }
}
