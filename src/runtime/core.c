/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Putting the parts together, starting them in order and taking them down again.
 */
#include "runtime/core.h"

#include <string.h>

#include "base/map.h"
#include "base/util.h"
#include "kube/client.h"
#include "runtime/instance.h"
#include "runtime/permissions.h"
#include "runtime/queue.h"

static void quiesce_is_late(struct sw_timer *timer);
static void quiesce_look(struct sw_defer *defer);

struct sw_core *sw_core_new(struct sw_loop *loop, struct sw_transport *transport,
                            const struct sw_core_options *options, struct sw_metrics *metrics,
                            const struct sw_log *log)
{
    struct sw_core *core = SW_NEW(struct sw_core);
    struct sw_client_options client = {
        .requests_per_second = options->requests_per_second,
        .burst = options->burst,
        .path_prefix = options->path_prefix,
        .host = options->host,
    };

    core->loop = loop;
    core->metrics = metrics;
    core->log = *log;
    core->started_us = sw_wall_us(loop);
    core->client = sw_client_new(loop, transport, &client, metrics, &core->log);
    core->namespace_ = options->namespace_ ? sw_strdup(options->namespace_) : NULL;
    core->checks_permissions = options->checks_permissions;
    core->verifies_callers = options->verifies_callers;
    core->streams_lists = options->streams_lists;
    core->username = options->username ? sw_strdup(options->username) : NULL;
    sw_kinds_init(&core->kinds, core);
    sw_writes_init(&core->writes, core);
    sw_reads_init(&core->reads, core);
    sw_fetches_init(&core->fetches, core, options->fetcher);
    sw_registry_init(&core->registry);
    sw_leading_init(&core->leading, core, options->lease);
    sw_timer_init(&core->quiesce.timeout, loop, quiesce_is_late);
    sw_defer_init(&core->quiesce.look, loop, quiesce_look);
    return core;
}

int sw_core_add(struct sw_core *core, const struct sw_module *module, const void *config,
                struct sw_error *error)
{
    sw_assert(!core->is_open);
    struct sw_instance *instance = sw_instance_start(core, module, config, error);

    if (!instance)
        return error->code;
    core->instances =
        sw_realloc(core->instances, core->instance_count + 1, sizeof(struct sw_instance *));
    core->instances[core->instance_count++] = instance;
    return 0;
}

/* ---- another configuration ---- */

/* olds: what those before `end` had. One that takes its old configuration no more keeps the new one
 * whole: that is the most that can be promised. */
static void put_back(struct sw_core *core, size_t end, const void *const *olds)
{
    for (size_t i = end; i > 0; i--) {
        struct sw_instance *instance = core->instances[i - 1];
        struct sw_error error = {0};
        if (olds[i - 1] != instance->config &&
            sw_instance_reconfigure(instance, olds[i - 1], &error))
            sw_log_error(&core->log,
                         "configuration of a module cannot be put back, it keeps the new one",
                         SW_STR("why", error.text));
    }
}

int sw_core_reconfigure(struct sw_core *core, const void *const *configs, size_t count,
                        struct sw_error *error)
{
    const void **olds = sw_calloc(count, sizeof(void *));
    int code = 0;

    sw_assert(count <= core->instance_count);
    for (size_t i = 0; i < count && !code; i++) {
        struct sw_instance *instance = core->instances[i];
        olds[i] = instance->config;
        if (configs[i] != instance->config)
            code = sw_instance_reconfigure(instance, configs[i], error);
        if (code)
            put_back(core, i, olds);
    }
    sw_free(olds);
    return code;
}

const void *sw_core_config(const struct sw_core *core, size_t index)
{
    return core->instances[index]->config;
}

void sw_core_set_rate(struct sw_core *core, unsigned requests_per_second, unsigned burst)
{
    sw_client_set_rate(core->client, requests_per_second, burst);
}

/* ---- running ---- */

void sw_core_open(struct sw_core *core)
{
    core->is_open = true;
    sw_kinds_open(&core->kinds);
    sw_leading_open(&core->leading);
    if (core->checks_permissions)
        core->permissions = sw_permissions_check(core);
}

void sw_core_set_username(struct sw_core *core, const char *username)
{
    char *old = core->username;

    core->username = sw_strdup(username);
    sw_free(old);
    if (core->is_open)
        sw_leading_look(&core->leading);
}

bool sw_core_is_ready(const struct sw_core *core)
{
    return core->is_open && core->username && sw_kinds_are_listed(&core->kinds);
}

/* ---- stopping ---- */

/* What was recorded may still be written, but not for long: an Event may be lost. Whoever leads
 * next does not wait for it: a record needs no lead. */
enum { SINKS_FIRST_MS = 250, SINKS_REST_MS = 1750 };

/* Of the leader's work, or of all. */
static bool is_idle(const struct sw_core *core, bool sinks_too)
{
    if (!sw_writes_are_idle(&core->writes, sinks_too))
        return false;
    for (size_t i = 0; i < core->instance_count; i++) {
        const struct sw_link *queues = &core->instances[i]->queues;
        for (struct sw_link *l = queues->next; l != queues; l = l->next) {
            struct sw_queue *queue = container_of(l, struct sw_queue, link);
            if ((sinks_too || !queue->also_on_followers) && !sw_queue_is_idle(queue))
                return false;
        }
    }
    return true;
}

static void quiesce_finish(struct sw_core *core)
{
    void (*done)(void *arg) = core->quiesce.done;

    sw_timer_stop(&core->quiesce.timeout);
    core->quiesce.done = NULL;
    done(core->quiesce.arg);
}

static void quiesce_rest(void *arg)
{
    struct sw_core *core = arg;

    core->quiesce.stage = SW_QUIESCE_REST;
    if (is_idle(core, true)) {
        quiesce_finish(core);
        return;
    }
    sw_timer_start(&core->quiesce.timeout, SINKS_REST_MS);
}

/* Only after every write has been answered, or was cut off: else two could write. */
static void quiesce_release(struct sw_core *core)
{
    core->quiesce.stage = SW_QUIESCE_LEASE;
    sw_timer_stop(&core->quiesce.timeout);
    sw_leading_release(&core->leading, quiesce_rest, core);
}

static void quiesce_sinks(struct sw_core *core)
{
    core->quiesce.stage = SW_QUIESCE_SINKS;
    sw_timer_start(&core->quiesce.timeout, SINKS_FIRST_MS);
    sw_core_look_at_quiesce(core);
}

static void quiesce_look(struct sw_defer *defer)
{
    struct sw_core *core = container_of(defer, struct sw_core, quiesce.look);
    struct sw_quiesce *quiesce = &core->quiesce;

    if (!quiesce->done || quiesce->stage == SW_QUIESCE_LEASE)
        return;
    if (quiesce->stage == SW_QUIESCE_WRITES && is_idle(core, false))
        quiesce_sinks(core);
    else if (quiesce->stage == SW_QUIESCE_SINKS && is_idle(core, true))
        quiesce_release(core);
    else if (quiesce->stage == SW_QUIESCE_REST && is_idle(core, true))
        quiesce_finish(core);
}

static void quiesce_is_late(struct sw_timer *timer)
{
    struct sw_core *core = container_of(timer, struct sw_core, quiesce.timeout);

    switch (core->quiesce.stage) {
    case SW_QUIESCE_WRITES:
        sw_log_warn(&core->log, "writes not answered in time, cut off");
        sw_client_fence(core->client);
        quiesce_sinks(core);
        break;
    case SW_QUIESCE_SINKS:
        quiesce_release(core);
        break;
    case SW_QUIESCE_LEASE:
        break;
    case SW_QUIESCE_REST:
        sw_log_warn(&core->log, "records not written in time, dropped");
        quiesce_finish(core);
        break;
    }
}

void sw_core_look_at_quiesce(struct sw_core *core)
{
    if (core->quiesce.done)
        sw_defer_start(&core->quiesce.look);
}

void sw_core_quiesce(struct sw_core *core, uint64_t timeout_ms, void (*done)(void *arg), void *arg)
{
    sw_assert(!core->quiesce.done);
    core->quiesce.done = done;
    core->quiesce.arg = arg;
    core->quiesce.stage = SW_QUIESCE_WRITES;
    sw_leading_end(&core->leading);
    sw_timer_start(&core->quiesce.timeout, timeout_ms);
    sw_core_look_at_quiesce(core);
}

struct sw_core *sw_core_free(struct sw_core *core)
{
    if (!core)
        return NULL;
    sw_timer_stop(&core->quiesce.timeout);
    sw_defer_stop(&core->quiesce.look);
    /* In the reverse order of their start, so that what a module needs outlives it. */
    while (core->instance_count > 0)
        sw_instance_stop(core->instances[--core->instance_count]);
    sw_free(core->instances);
    sw_permissions_free(core->permissions);
    sw_leading_done(&core->leading);
    sw_writes_done(&core->writes);
    sw_reads_done(&core->reads);
    sw_fetches_done(&core->fetches);
    sw_kinds_done(&core->kinds);
    sw_client_free(core->client);
    sw_free(core->namespace_);
    sw_free(core->username);
    return sw_free(core);
}
