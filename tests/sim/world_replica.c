/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A replica of slipway: the core as it ships, with all built-in modules, on a loop and a clock of
 * its own.
 */
#include <stdio.h>
#include <string.h>

#include <slipway/memory.h>
#include <slipway/module.h>

#include "base/error.h"
#include "base/metrics.h"
#include "base/util.h"
#include "kube/lease.h"
#include "kube/transport.h"
#include "runtime/core.h"
#include "runtime/module_loader.h"
#include "world_steps.h"

#define WALL_US INT64_C(1767225600000000)

static void on_line(void *arg, const char *line, size_t len)
{
    const struct replica *replica = arg;

    world_say(replica->world, "replica %d: %.*s", replica->index, (int)len - 1, line);
}

void replica_init(struct replica *replica, struct world *world, int index)
{
    *replica = (struct replica){.world = world, .index = index};
    replica->wire =
        sw_sim_wire_new(world->loop, world->api, world_random(world, 0, UINT64_MAX - 1));
    sw_sim_wire_set_liar(replica->wire, &world->liars[index]);
    sw_sim_wire_set_caches(replica->wire, world->caches, CACHES_MAX);
    sw_sim_wire_set_late_packets(replica->wire, world->case_.faults & FAULT_LATE);
    replica_set_faults(replica, true);
}

static void add_modules(struct replica *replica)
{
    struct sw_error error = {0};

    /* In the order in which needs are met: pausing before coordination. */
    static const char *const order[] = {"events", "pausing", "coordination", "stepping"};
    size_t count = SW_ARRAY_SIZE(order) - !replica->world->stepping;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; sw_builtin_modules[k]; k++)
            if (strcmp(sw_builtin_modules[k]->name, order[i]) == 0 &&
                sw_core_add(replica->core, sw_builtin_modules[k], NULL, &error))
                world_fail(replica->world, "%s", error.text);
}

void replica_start(struct replica *replica)
{
    struct world *world = replica->world;
    bool is_skewed = world->case_.faults & FAULT_SKEW && !world->is_ending;
    uint64_t seed = world_random(world, 0, UINT64_MAX - 1);
    int64_t wall_us = WALL_US + (int64_t)world->now_ms * 1000;

    if (is_skewed)
        wall_us += (int64_t)world_random(world, 0, 20000000) - 10000000;
    replica->loop = sw_loop_virtual_new(wall_us, seed);
    replica->born_ms = world->now_ms;
    replica->born_local_ms = sw_now_ms(replica->loop);
    replica->rate_ppm = is_skewed ? (int64_t)world_random(world, 950000, 1050000) : 1000000;
    replica->dead_until_ms = 0;
    replica->is_stopping = false;
    replica->lives++;
    if (world->is_loud) {
        replica->sink = sw_log_sink_new(replica->loop, -1, SW_LOG_CONSOLE, SW_LEVEL_DEBUG);
        sw_log_sink_set_fn(replica->sink, on_line, replica);
    }
    replica->log = (struct sw_log){.sink = replica->sink, .name = "slipway"};
    replica->metrics = sw_metrics_new();
    replica->transport =
        sw_sim_wire_open(replica->wire, replica->loop, OUR_NAME, "slipway/0.1.0 (linux/amd64)");
    char identity[64];
    snprintf(identity, sizeof identity, "slipway-%d_%u", replica->index, replica->lives);
    const struct sw_lease_options lease = {
        .namespace_ = "kube-system", .name = "slipway", .identity = identity};
    if (world->stepping)
        replica->fetcher = provider_new(replica);
    const struct sw_core_options options = {
        .host = "sim",
        .lease = world->case_.faults & FAULT_NO_LEASE ? NULL : &lease,
        .streams_lists = world->case_.seed % 2 == 1, /* not drawn: old seeds stay what they were */
        .fetcher = replica->fetcher,
    };
    replica->core =
        sw_core_new(replica->loop, replica->transport, &options, replica->metrics, &replica->log);
    add_modules(replica);
    sw_core_open(replica->core);
    replica->name_known_ms = world->now_ms + world_random(world, 1, 300);
    world_say(world, "replica %d starts, clock at %lld ppm", replica->index,
              (long long)replica->rate_ppm);
}

static void dispose(struct replica *replica)
{
    replica->core = sw_core_free(replica->core);
    replica->fetcher = provider_free(replica->fetcher);
    replica->transport->ops->close(replica->transport);
    replica->transport = NULL;
    replica->metrics = sw_metrics_free(replica->metrics);
    replica->sink = sw_log_sink_free(replica->sink);
    if (sw_loop_close(replica->loop))
        world_fail(replica->world, "replica %d leaves a timer behind", replica->index);
    replica->loop = NULL;
}

void replica_kill(struct replica *replica, uint64_t until_ms)
{
    if (!replica->core)
        return;
    world_say(replica->world, "replica %d is killed", replica->index);
    dispose(replica);
    replica->asleep_until_ms = 0;
    replica->dead_until_ms = until_ms;
}

static void on_quiet(void *arg)
{
    struct replica *replica = arg;

    replica->is_stopping = false;
    replica->dead_until_ms = replica->world->now_ms + 500; /* and then it is disposed of */
}

void replica_stop(struct replica *replica)
{
    if (!replica->core || replica->is_stopping || replica->dead_until_ms)
        return;
    world_say(replica->world, "replica %d is told to stop", replica->index);
    replica->is_stopping = true;
    sw_core_quiesce(replica->core, 20000, on_quiet, replica);
}

void replica_done(struct replica *replica)
{
    if (replica->core)
        dispose(replica);
    replica->wire = sw_sim_wire_free(replica->wire);
}

bool replica_is_awake(const struct replica *replica)
{
    return replica->core && !replica->asleep_until_ms;
}

bool replica_is_leading(const struct replica *replica)
{
    return replica->core && sw_leading_is_on(&replica->core->leading);
}

/* ---- time ---- */

uint64_t replica_local_ms(const struct replica *replica, uint64_t now_ms)
{
    uint64_t since = now_ms - replica->born_ms;

    return replica->born_local_ms + since * (uint64_t)replica->rate_ppm / 1000000;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return b && b < a ? b : a;
}

uint64_t replica_next_ms(const struct replica *replica)
{
    uint64_t next = UINT64_MAX;

    next = earlier(next, replica->dead_until_ms);
    next = earlier(next, replica->asleep_until_ms);
    next = earlier(next, replica->cut_until_ms);
    next = earlier(next, replica->frozen_until_ms);
    if (!replica_is_awake(replica))
        return next;
    next = earlier(next, replica->name_known_ms);
    uint64_t local = sw_loop_virtual_next(replica->loop);
    if (local == UINT64_MAX)
        return next;
    if (local <= replica->born_local_ms)
        return earlier(next, replica->born_ms);
    uint64_t rate = (uint64_t)replica->rate_ppm;
    uint64_t since = ((local - replica->born_local_ms) * 1000000 + rate - 1) / rate;
    return earlier(next, replica->born_ms + since);
}

static void sync_clock(struct replica *replica)
{
    uint64_t local = replica_local_ms(replica, replica->world->now_ms);
    uint64_t now = sw_now_ms(replica->loop);

    if (local > now)
        sw_loop_virtual_stall(replica->loop, local - now);
}

void replica_turn(struct replica *replica)
{
    if (!replica_is_awake(replica))
        return;
    uint64_t turns = sw_loop_turn(replica->loop);
    sw_loop_virtual_advance(replica->loop, 0);
    replica->world->steps += sw_loop_turn(replica->loop) - turns;
}

static bool is_over(const struct replica *replica, uint64_t *until_ms)
{
    if (!*until_ms || *until_ms > replica->world->now_ms)
        return false;
    *until_ms = 0;
    return true;
}

void replica_look(struct replica *replica)
{
    struct world *world = replica->world;

    if (is_over(replica, &replica->cut_until_ms)) {
        world_say(world, "replica %d reaches the API server again", replica->index);
        sw_sim_wire_set_broken(replica->wire, false);
    }
    if (is_over(replica, &replica->frozen_until_ms))
        replica_set_faults(replica, !world->is_ending);
    if (is_over(replica, &replica->dead_until_ms)) {
        if (replica->core)
            dispose(replica);
        replica_start(replica);
    }
    if (is_over(replica, &replica->asleep_until_ms))
        world_say(world, "replica %d wakes up", replica->index);
    if (!replica_is_awake(replica))
        return;
    sync_clock(replica);
    if (is_over(replica, &replica->name_known_ms))
        sw_core_set_username(replica->core, OUR_NAME);
}

/* ---- faults ---- */

void replica_set_faults(struct replica *replica, bool is_on)
{
    struct world *world = replica->world;
    unsigned mask = is_on ? world->case_.faults : 0;
    struct sw_sim_wire_faults faults = {.delay_min_ms = 1, .delay_max_ms = 3};
    unsigned scale = is_on ? (unsigned)world_random(world, 0, 3) : 0; /* 0: a good hour */

    replica->fault_scale = mask ? scale : 0;
    if (mask & FAULT_LOSS) {
        faults.lose_request = 60 * scale;
        faults.lose_answer = 60 * scale;
    }
    if (mask & FAULT_ERRORS) {
        faults.answer_409 = 50 * scale;
        faults.answer_410 = 20 * scale;
        faults.answer_429 = 50 * scale;
        faults.answer_500 = 30 * scale;
        faults.answer_503 = 30 * scale;
        faults.answer_504 = 30 * scale;
    }
    if (mask & FAULT_STREAMS) {
        faults.break_stream = 50 * scale;
        faults.freeze_stream = 10 * scale;
    }
    if (mask & FAULT_SLOW) {
        faults.delay_max_ms = 3 + 20 * scale;
        faults.slow = 300 * scale;
        faults.slow_max_ms = scale == 3 ? 12000 : 2000;
    }
    if (is_on && world->case_.is_tight) {
        faults.slow = 2500;
        faults.slow_max_ms = 1500;
        faults.behind = 7000;
    }
    if (mask & FAULT_BEHIND)
        faults.behind = 3000 * scale;
    if (is_on && replica->frozen_until_ms)
        faults.freeze_stream = 10000;
    sw_sim_wire_set_faults(replica->wire, &faults);
}
