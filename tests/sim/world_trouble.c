/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What befalls replicas and the network, at a time, or when a certain request arrives at the API
 * server: so the narrow moments of the hand-over are hit as often as the wide ones.
 */
#include <stdio.h>
#include <string.h>

#include "api.h"
#include "base/util.h"
#include "cache.h"
#include "runtime/core.h"
#include "workloads.h"
#include "world.h"

/* Requests that traps wait for. */
enum {
    TRAP_DEPLOYMENT_PATCH,
    TRAP_STATUS_PATCH,
    TRAP_LEASE,
    TRAP_LIST,
    TRAPS_WHAT,
};

static struct replica *victim(struct world *world, uint32_t b)
{
    int count = world->case_.replicas;

    if (b % 4 != 0) /* mostly whoever leads */
        for (int i = 0; i < count; i++)
            if (replica_is_leading(&world->replicas[i]))
                return &world->replicas[i];
    return &world->replicas[(int)(b / 4) % count];
}

static uint64_t some_time(uint32_t b)
{
    static const uint64_t times[] = {1, 15, 300, 2500, 9000, 14000, 20000, 45000};

    return times[b / 64 % SW_ARRAY_SIZE(times)] + b / 512 % 10;
}

static void befall(struct world *world, struct replica *r, uint32_t what, uint32_t b)
{
    uint64_t until = world->now_ms + some_time(b);

    if (!(world->case_.faults & FAULT_KILL))
        return;
    switch (what) {
    case 0:
    case 1:
        replica_kill(r, until);
        break;
    case 2:
    case 3:
    case 4:
        if (replica_is_awake(r)) {
            world_say(world, "replica %d is suspended", r->index);
            r->asleep_until_ms = until;
        }
        break;
    case 5:
    case 6:
        world_say(world, "replica %d does not reach the API server", r->index);
        r->cut_until_ms = until;
        sw_sim_wire_set_broken(r->wire, true);
        break;
    case 7:
        world_say(world, "replica %d hears nothing from its watches", r->index);
        r->frozen_until_ms = until;
        replica_set_faults(r, true);
        break;
    case 8:
        replica_stop(r);
        break;
    default:
        if (r->loop && world->case_.faults & FAULT_SKEW) {
            int64_t most = b / 16 % 4 == 0 ? 24 * 3600 : 3600;
            sw_loop_virtual_shift_wall(r->loop, ((int64_t)b % (2 * most) - most) * 1000000);
        }
        break;
    }
}

/* One of the other API servers is as old as that, and catches up where it was older before. */
static void fall_behind(struct world *world, uint32_t b)
{
    static const uint64_t lags[] = {0, 40, 400, 1500, 4000, 10000, 25000, 60000};
    uint64_t lag_ms = lags[b / 2 % SW_ARRAY_SIZE(lags)];

    world_say(world, "API server %u is %llu ms behind", b % CACHES_MAX, (unsigned long long)lag_ms);
    sw_sim_cache_set_lag(world->caches[b % CACHES_MAX], lag_ms);
}

void trouble_act(struct world *world, uint32_t a, uint32_t b)
{
    struct replica *r = victim(world, b);

    switch (a % 16) {
    case 10:
        world_say(world, "the API server ends all watches");
        sw_sim_api_end_watches(world->api, NULL, b & 1);
        break;
    case 11:
        sw_sim_store_compact(world->store, sw_sim_store_version(world->store));
        sw_sim_api_end_watches(world->api, NULL, b & 1);
        break;
    case 12:
        world_say(world, "no review reaches a webhook");
        world->webhook_down_until_ms = world->now_ms + SW_MIN(some_time(b), 9000);
        break;
    case 13:
        r->deaf_until_ms = world->now_ms + some_time(b);
        break;
    case 14:
        world_say(world, "kube-controller-manager stops");
        sw_sim_workloads_set_running(world->workloads, false);
        world->controllers_down_until_ms = world->now_ms + some_time(b);
        break;
    case 15:
        if (world->case_.faults & FAULT_BEHIND)
            fall_behind(world, b);
        else
            befall(world, r, 2, b);
        break;
    default:
        befall(world, r, a % 16, b);
        break;
    }
}

void network_change(struct world *world, uint32_t a, uint32_t b)
{
    replica_set_faults(&world->replicas[a % (uint32_t)world->case_.replicas], true);
    if (world->case_.faults & FAULT_BEHIND)
        fall_behind(world, b);
}

/* ---- traps ---- */

void trap_set(struct world *world, uint32_t a, uint32_t b)
{
    for (size_t i = 0; i < TRAPS_MAX; i++) {
        struct trap *trap = &world->traps[i];
        if (trap->what >= 0)
            continue;
        *trap = (struct trap){
            .what = a % 8 < 3   ? TRAP_DEPLOYMENT_PATCH
                    : a % 8 < 6 ? TRAP_STATUS_PATCH
                                : (int)(a % TRAPS_WHAT),
            .count = 1 + a / 8 % 5,
            .action = a / 64 % 10,
            .b = b,
        };
        return;
    }
}

static int what_is(const struct sw_sim_wire_request *request)
{
    if (strstr(request->target, "/leases"))
        return TRAP_LEASE;
    bool is_workload = strstr(request->target, "/deployments/") ||
                       strstr(request->target, "/statefulsets/") ||
                       strstr(request->target, "/daemonsets/");
    if (strcmp(request->method, "PATCH") == 0 && is_workload)
        return TRAP_DEPLOYMENT_PATCH;
    if (strcmp(request->method, "PATCH") == 0 && strstr(request->target, "/status"))
        return TRAP_STATUS_PATCH;
    return strstr(request->target, "limit=") ? TRAP_LIST : -1;
}

void trap_look(struct world *world, struct replica *replica,
               const struct sw_sim_wire_request *request)
{
    int what = what_is(request);

    if (what < 0 || world->is_ending)
        return;
    for (size_t i = 0; i < TRAPS_MAX; i++) {
        struct trap *trap = &world->traps[i];
        if (trap->what != what || --trap->count > 0)
            continue;
        trap->what = -1;
        /* Not from within its own request: at once afterwards. */
        world_say(world, "trap: %s %s", request->method, request->target);
        world->sprung[world->sprung_count % TRAPS_MAX] =
            (struct sprung){replica->index, trap->action, trap->b};
        world->sprung_count++;
    }
}

void trap_spring(struct world *world)
{
    while (world->sprung_count > 0) {
        const struct sprung *s = &world->sprung[--world->sprung_count % TRAPS_MAX];
        befall(world, &world->replicas[s->replica], s->action, s->b);
    }
}
