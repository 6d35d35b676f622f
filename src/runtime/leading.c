/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the lease to the modules and back. What it costs to lose the lead is decided here: calls
 * that wait are dropped, connections that carry a write are reset, queues forget their keys; only
 * then are the modules told.
 */
#include "runtime/leading.h"

#include "base/log.h"
#include "base/util.h"
#include "kube/client.h"
#include "kube/lease.h"
#include "kube/reflector.h"
#include "runtime/core.h"
#include "runtime/instance.h"
#include "runtime/queue.h"

/* ---- winning ---- */

static void await_lists(struct sw_leading *leading)
{
    struct sw_kinds *kinds = &leading->core->kinds;

    for (struct sw_link *l = kinds->all.next; l != &kinds->all; l = l->next) {
        struct sw_kind_entry *entry = container_of(l, struct sw_kind_entry, link);
        if (!entry->reflector || entry->is_aside)
            continue;
        entry->is_awaited = true;
        sw_reflector_relist(entry->reflector);
    }
}

static bool are_lists_there(const struct sw_leading *leading)
{
    const struct sw_kinds *kinds = &leading->core->kinds;

    for (struct sw_link *l = kinds->all.next; l != &kinds->all; l = l->next) {
        const struct sw_kind_entry *entry = container_of(l, struct sw_kind_entry, link);
        if (entry->is_aside)
            continue;
        if (entry->is_awaited || (entry->reflector && !entry->is_listed))
            return false;
    }
    return true;
}

static void tell(struct sw_leading *leading, bool is_leading)
{
    struct sw_core *core = leading->core;

    for (size_t i = 0; i < core->instance_count; i++)
        sw_instance_tell_leading(core->instances[i], is_leading);
}

void sw_leading_look(struct sw_leading *leading)
{
    struct sw_core *core = leading->core;

    if (leading->state != SW_LISTING || !core->username || !are_lists_there(leading))
        return;
    if (leading->lease && !sw_lease_is_held(leading->lease))
        return; /* has run out; we are about to be told */
    leading->state = SW_LEADING;
    sw_log_info(&core->log, "leading", SW_INT("term", sw_leading_term(leading)));
    tell(leading, true);
}

void sw_leading_on_listed(struct sw_leading *leading, struct sw_kind_entry *entry,
                          bool is_consistent)
{
    if (is_consistent || !leading->options)
        entry->is_awaited = false;
    sw_leading_look(leading);
}

/* ---- losing ---- */

static void drop_queues(struct sw_core *core)
{
    for (size_t i = 0; i < core->instance_count; i++) {
        struct sw_link *queues = &core->instances[i]->queues;
        for (struct sw_link *l = queues->next; l != queues; l = l->next) {
            struct sw_queue *queue = container_of(l, struct sw_queue, link);
            if (!queue->also_on_followers)
                sw_queue_drop(queue);
        }
    }
}

static void stop_leading(struct sw_leading *leading, enum sw_leading_state next)
{
    bool was_leading = leading->state == SW_LEADING;

    leading->state = next;
    if (!was_leading)
        return;
    drop_queues(leading->core);
    tell(leading, false);
}

static void on_lease(void *arg, bool is_leading)
{
    struct sw_leading *leading = arg;
    struct sw_core *core = leading->core;

    if (leading->state == SW_ENDED)
        return;
    if (is_leading) {
        sw_log_info(&core->log, "lease won, listing before leading",
                    SW_STR("lease", leading->options->name));
        leading->state = SW_LISTING;
        await_lists(leading);
        sw_leading_look(leading); /* where nothing is watched */
        return;
    }
    sw_client_fence(core->client);
    sw_log_warn(&core->log, "leading no more", SW_STR("lease", leading->options->name));
    stop_leading(leading, SW_FOLLOWING);
}

/* ---- the core's side ---- */

void sw_leading_init(struct sw_leading *leading, struct sw_core *core,
                     const struct sw_lease_options *options)
{
    leading->core = core;
    leading->state = options ? SW_FOLLOWING : SW_LISTING;
    if (!options)
        return;
    leading->options = SW_NEW(struct sw_lease_options);
    *leading->options = *options;
    leading->options->namespace_ = sw_strdup(options->namespace_);
    leading->options->name = sw_strdup(options->name);
    leading->options->identity = sw_strdup(options->identity);
}

void sw_leading_done(struct sw_leading *leading)
{
    sw_client_set_may_write(leading->core->client, NULL, NULL);
    leading->lease = sw_lease_free(leading->lease);
    if (!leading->options)
        return;
    sw_free((char *)(uintptr_t)leading->options->namespace_);
    sw_free((char *)(uintptr_t)leading->options->name);
    sw_free((char *)(uintptr_t)leading->options->identity);
    leading->options = sw_free(leading->options);
}

/* Of a write that waited for its turn: by the clock, whatever was noticed meanwhile. */
static bool may_write(void *arg)
{
    const struct sw_leading *leading = arg;

    return sw_lease_is_held(leading->lease);
}

void sw_leading_open(struct sw_leading *leading)
{
    struct sw_core *core = leading->core;

    if (leading->options) {
        leading->lease = sw_lease_new(core->loop, core->client, leading->options, core->metrics,
                                      &core->log, on_lease, leading);
        sw_client_set_may_write(core->client, may_write, leading);
    }
    sw_leading_look(leading);
}

bool sw_leading_is_on(const struct sw_leading *leading)
{
    return leading->state == SW_LEADING && (!leading->lease || sw_lease_is_held(leading->lease));
}

int64_t sw_leading_term(const struct sw_leading *leading)
{
    return leading->lease ? sw_lease_transitions(leading->lease) : 0;
}

uint64_t sw_leading_overdue_ms(struct sw_leading *leading)
{
    uint64_t now = sw_now_ms(leading->core->loop);

    if (leading->state != SW_LEADING || sw_leading_is_on(leading))
        leading->overdue_since_ms = 0;
    else if (!leading->overdue_since_ms)
        leading->overdue_since_ms = now;
    return leading->overdue_since_ms ? now - leading->overdue_since_ms : 0;
}

void sw_leading_end(struct sw_leading *leading)
{
    stop_leading(leading, SW_ENDED);
}

void sw_leading_release(struct sw_leading *leading, void (*done)(void *arg), void *arg)
{
    if (leading->lease)
        sw_lease_release(leading->lease, done, arg);
    else
        done(arg);
}
