/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One case that no seed is left to find: the API server is away for five minutes while a group
 * rolls. Replicas stay ready meanwhile (their caches answer reviews), none believes to lead, none
 * hammers; afterwards one leads, everything rolls to its end, and they do not come down on the
 * server all at once.
 */
#include "base/util.h"
#include "direct.h"
#include "runtime/core.h"
#include "world.h"

enum {
    AWAY_MS = 5 * 60 * 1000,
    STEP_MS = 500,
    LEASE_MS = 10 * 1000, /* the renewal deadline */
    /* Of one replica. The lease is tried every 2 to 4.4 s, or 5 s later where nothing answers;
     * streams every 30 to 60 s in the end, through one gate. */
    REQUESTS_AWAY_MOST = 120,
    BACK_MS = 10 * 1000,
    REQUESTS_BACK_MOST = 60,
};

static uint64_t requests(const struct world *world)
{
    uint64_t sum = 0;

    for (int i = 0; i < world->case_.replicas; i++)
        sum += sw_sim_wire_counts(world->replicas[i].wire).requests;
    return sum;
}

static void run_for(struct world *world, uint64_t ms)
{
    uint64_t until = world->now_ms + ms;

    while (!world->failure[0] && world_turn(world, until))
        ;
}

static int leaders(const struct world *world)
{
    int count = 0;

    for (int i = 0; i < world->case_.replicas; i++)
        count += replica_is_leading(&world->replicas[i]);
    return count;
}

static int incomplete(const struct world *world)
{
    int count = 0;

    for (int i = 0; i < world->case_.deployments; i++)
        count += !judge_is_complete(world_deployment(world, i));
    return count;
}

static void look(struct world *world, uint64_t since_ms)
{
    for (int i = 0; i < world->case_.replicas; i++)
        if (!sw_core_is_ready(world->replicas[i].core))
            world_fail(world, "replica %d is not ready any more", i);
    if (since_ms > LEASE_MS + STEP_MS && leaders(world) > 0)
        world_fail(world, "one leads without a lease after %llu ms", (unsigned long long)since_ms);
}

static void be_away(struct world *world)
{
    uint64_t before = requests(world);

    for (int i = 0; i < world->case_.replicas; i++) {
        world->replicas[i].cut_until_ms = world->now_ms + AWAY_MS;
        sw_sim_wire_set_broken(world->replicas[i].wire, true);
    }
    for (uint64_t ms = 0; ms < AWAY_MS && !world->failure[0]; ms += STEP_MS) {
        run_for(world, STEP_MS);
        look(world, ms);
    }
    uint64_t tries = requests(world) - before;
    world_say(world, "%llu requests meanwhile", (unsigned long long)tries);
    if (tries == 0 || tries > (uint64_t)(REQUESTS_AWAY_MOST * world->case_.replicas))
        world_fail(world, "%llu requests in five minutes without an API server",
                   (unsigned long long)tries);
}

void world_outage(struct world *world, bool is_loud)
{
    const struct case_ case_ = {.seed = 1, .deployments = 4, .groups = 1, .replicas = 3};

    world_begin(world, &case_, is_loud);
    run_for(world, 1000); /* until reviews are answered */
    users_begin(world);
    run_for(world, 1000);
    if (!world_group(world, 0))
        user_creates_group(world, 0, 0);
    run_for(world, 60000);
    if (!world_group(world, 0) || incomplete(world) > 0 || leaders(world) != 1) {
        world_fail(world, "it does not begin: %d incomplete, %d leaders", incomplete(world),
                   leaders(world));
        return;
    }
    for (int i = 0; i < case_.deployments; i++)
        user_sets_template(world, i);
    run_for(world, 100);
    int before = incomplete(world);
    int at_once = judge_max_of(world_group(world, 0));
    if (before <= at_once)
        world_fail(world, "nothing is left to be handed over");
    be_away(world);
    if (incomplete(world) < before - at_once)
        world_fail(world, "somebody rolled without a turn");
    uint64_t sent = requests(world);
    run_for(world, BACK_MS);
    sent = requests(world) - sent;
    world_say(world, "%llu requests in the first ten seconds", (unsigned long long)sent);
    if (sent > (uint64_t)(REQUESTS_BACK_MOST * case_.replicas))
        world_fail(world, "%llu requests right after the API server came back",
                   (unsigned long long)sent);
    run_for(world, 90000); /* the longest back-off */
    if (leaders(world) != 1)
        world_fail(world, "%d lead again", leaders(world));
    if (!world->failure[0])
        world_end(world);
}
