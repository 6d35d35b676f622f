/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a case: faults are off, everybody lives, users put right what cannot work and go home.
 * Everything must then come to rest, say so in the status, and stay at rest without a write.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "cache.h"
#include "document.h"
#include "kind.h"
#include "runtime/core.h"
#include "workloads.h"
#include "world_steps.h"

#define TIDY_MS 8000 /* how often users look whether anything is left to put right */
#define TIDIES 4     /* and how many times */
#define PATIENCE_MS                                                              \
    3600000 /* until everything must rest: rollouts one by one, deadlines, waits \
             */
#define LOOK_MS 2000
/* With something to roll, nobody at it, and no word why. A watch that a fault has made silent is
 * found dead when its time is over, 10 minutes at most, and 15 s. */
#define STALL_MS 660000
#define SETTLE_MS \
    45000 /* what is bound to time, as a coordination missing in two lists 30 s apart */
#define STILL_MS 90000 /* and then: longer than a minute, in which bookmarks come */

static void make_whole(struct world *world)
{
    world->is_ending = true;
    world->webhook_down_until_ms = 0;
    if (world->controllers_down_until_ms)
        sw_sim_workloads_set_running(world->workloads, true);
    world->controllers_down_until_ms = 0;
    for (size_t i = 0; i < CACHES_MAX; i++)
        sw_sim_cache_set_lag(world->caches[i], 0);
    for (int i = 0; i < world->case_.replicas; i++) {
        struct replica *replica = &world->replicas[i];
        /* Those who believe to lead without a lease would go on for ever: one is left. */
        if (world->case_.faults & FAULT_NO_LEASE && i > 0) {
            replica_kill(replica, 0);
            replica->dead_until_ms = replica->deaf_until_ms = 0;
            continue;
        }
        replica->deaf_until_ms = replica->frozen_until_ms = replica->cut_until_ms = 0;
        if (replica->asleep_until_ms)
            replica->asleep_until_ms = world->now_ms;
        if (replica->dead_until_ms)
            replica->dead_until_ms = world->now_ms;
        sw_sim_wire_set_broken(replica->wire, false);
        replica_set_faults(replica, false);
    }
}

/* ---- what must be ---- */

static char why[512];

SW_PRINTF(1, 2) static bool no(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    return false;
}

/* The names of all groups that select it, comma-separated, each behind the prefix; sorted. */
static const char *expected(struct world *world, const json_t *d, const char *prefix)
{
    static char text[2][128];
    static int turn;
    char *out = text[turn++ % 2];
    size_t len = 0;

    out[0] = '\0';
    for (int g = 0; g < world->case_.groups; g++) {
        const json_t *group = world_group(world, g);
        if (group && judge_selects(group, d))
            len += (size_t)snprintf(out + len, 128 - len, "%s%s%s", len ? "," : "", prefix,
                                    group_name(g));
    }
    return out;
}

static bool rests_running(const struct world *world, const json_t *d)
{
    for (int g = 0; g < world->case_.groups; g++) {
        const json_t *group = world_group(world, g);
        if (group && judge_selects(group, d) &&
            strcmp(sw_sim_text_at(group, "spec.atRest"), "Running") != 0)
            return false;
    }
    return true;
}

static bool deployment_rests(struct world *world, int index)
{
    const json_t *d = world_deployment(world, index);
    const char *name = deployment_name(index);

    if (!d)
        return true;
    const char *marks = expected(world, d, ""), *owners = expected(world, d, "coordination/");
    const char *held = annotation_of(d, "slipway.dev/held-by");
    bool is_paused = sw_sim_bool_at(d, "spec.paused");
    int64_t want = sw_sim_int_at(d, "spec.replicas", 1);

    if (want > 0 && !judge_is_complete(d))
        return no("%s is left with something to roll", name);
    if (annotation_of(d, "slipway.dev/released-by")[0])
        return no("%s keeps released-by", name);
    if (strcmp(annotation_of(d, "slipway.dev/coordinated-by"), marks) != 0)
        return no("%s is marked '%s', not '%s'", name,
                  annotation_of(d, "slipway.dev/coordinated-by"), marks);
    bool is_free = !marks[0] || want == 0 || rests_running(world, d);
    if (is_free && (is_paused || held[0]))
        return no("%s is left paused %d, held by '%s', and nobody holds it", name, is_paused, held);
    if (!is_free && (!is_paused || strcmp(held, owners) != 0))
        return no("%s rests paused %d held by '%s', not '%s'", name, is_paused, held, owners);
    return true;
}

static bool group_rests(struct world *world, int g)
{
    const json_t *group = world_group(world, g);
    const char *name = group_name(g);
    int64_t selected = 0;

    if (!group)
        return true;
    for (int i = 0; i < world->case_.deployments; i++) {
        const json_t *d = world_deployment(world, i);
        selected += d && judge_selects(group, d);
    }
    if (sw_sim_text_at(group, "status.activeDeployment")[0])
        return no("%s ends with %s active", name, sw_sim_text_at(group, "status.activeDeployment"));
    if (strcmp(condition_of(group, "Ready", "status"), "True") != 0)
        return no("%s ends without Ready: %s", name, condition_of(group, "Degraded", "message"));
    if (strcmp(condition_of(group, "Degraded", "status"), "False") != 0)
        return no("%s ends Degraded: %s", name, condition_of(group, "Degraded", "message"));
    if (sw_sim_int_at(group, "status.pending", -1) != 0 ||
        sw_sim_int_at(group, "status.selected", -1) != selected)
        return no("%s ends with %lld pending and %lld selected, not %lld", name,
                  (long long)sw_sim_int_at(group, "status.pending", -1),
                  (long long)sw_sim_int_at(group, "status.selected", -1), (long long)selected);
    if (sw_sim_int_at(group, "status.observedGeneration", 0) !=
        sw_sim_int_at(group, "metadata.generation", 0))
        return no("%s ends with an old observedGeneration", name);
    return true;
}

static bool all_rests(struct world *world)
{
    for (int i = 0; i < world->case_.deployments; i++)
        if (!deployment_rests(world, i))
            return false;
    for (int g = 0; g < world->case_.groups; g++)
        if (!group_rests(world, g))
            return false;
    return !world->stepping || steps_rest(world, why, sizeof why);
}

/* ---- coming to rest ---- */

/* A member could roll, and no coordination says who rolls or what is in the way. */
static bool stands_still(struct world *world)
{
    for (int g = 0; g < world->case_.groups; g++) {
        const json_t *group = world_group(world, g);
        if (group && (sw_sim_text_at(group, "status.activeDeployment")[0] ||
                      strcmp(condition_of(group, "Degraded", "status"), "False") != 0))
            return false;
    }
    for (int i = 0; i < world->case_.deployments; i++) {
        const json_t *d = world_deployment(world, i);
        if (d && expected(world, d, "")[0] && sw_sim_int_at(d, "spec.replicas", 1) > 0 &&
            !judge_is_complete(d))
            return true;
    }
    return false;
}

static void run_for(struct world *world, uint64_t ms)
{
    uint64_t until = world->now_ms + ms;

    while (!world->failure[0] && world_turn(world, until))
        ;
    judge_look(world);
}

static bool comes_to_rest(struct world *world)
{
    uint64_t until = world->now_ms + PATIENCE_MS;
    uint64_t tidied = world->now_ms, moved = world->now_ms;
    int tidies = 0;

    while (!world->failure[0] && world->now_ms < until) {
        if (tidies < TIDIES && world->now_ms >= tidied) {
            users_stop(world);
            tidied += TIDY_MS;
            tidies++;
        }
        run_for(world, LOOK_MS);
        if (world->stepping)
            steps_users_mend(world);
        if (tidies < TIDIES || !stands_still(world))
            moved = world->now_ms;
        if (world->now_ms - moved >= STALL_MS && !world->failure[0])
            world_fail(world, "it stands still, and no condition says why");
        /* Not by chance in between. */
        if (tidies == TIDIES && all_rests(world)) {
            run_for(world, LOOK_MS);
            if (all_rests(world))
                return true;
        }
    }
    if (!world->failure[0])
        world_fail(world, "it does not come to rest: %s", why);
    return false;
}

static void stays_at_rest(struct world *world)
{
    run_for(world, SETTLE_MS);
    uint64_t changes = world->judge.changes, writes = world->writes_by_us, steps = world->steps;
    run_for(world, STILL_MS);
    if (world->failure[0])
        return;
    if (world->judge.changes != changes)
        world_fail(world, "%llu changes of the store at rest",
                   (unsigned long long)(world->judge.changes - changes));
    else if (world->writes_by_us != writes)
        world_fail(world, "%llu writes at rest, which change nothing",
                   (unsigned long long)(world->writes_by_us - writes));
    /* Renewals and reads of the Lease every 2 s, bookmarks once a minute: 3 replicas make less than
     * 20 turns a second of it. */
    else if (world->steps - steps > STILL_MS / 1000 * 100)
        world_fail(world, "%llu turns in %d s at rest: a busy loop",
                   (unsigned long long)(world->steps - steps), STILL_MS / 1000);
    else if (!all_rests(world))
        world_fail(world, "it does not stay at rest: %s", why);
}

void world_end(struct world *world)
{
    world_say(world, "users stop, faults are off");
    make_whole(world);
    run_for(world, 20000); /* a new leader is found, everybody is listed */
    if (world->stepping)
        steps_settle(world);
    if (comes_to_rest(world))
        stays_at_rest(world);
    if (world->stepping && !world->failure[0])
        steps_leave(world);
}
