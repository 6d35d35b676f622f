/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A case: a beginning from a seed, events one by one, and the end: users stop, one leader is left,
 * and everything that can happen happens until nothing is left to do.
 */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <slipway/memory.h>

const char *const mutation_names[MUTATIONS] = {
    [NO_MUTATION] = "none",
    [RELEASE_WITHOUT_PRECONDITION] = "release-without-precondition",
    [RECORD_WITHOUT_PRECONDITION] = "record-without-precondition",
    [TAKE_BACK_AFTER_RECORD] = "take-back-after-record",
    [OWN_WRITE_STALE] = "own-write-stale",
    [FENCE_LEFT_OUT] = "fence-left-out",
    [GONE_BY_CACHE] = "gone-by-cache",
    [WEBHOOK_BY_CACHED_STATUS] = "webhook-by-cached-status",
    [WEBHOOK_WITHOUT_STRIP] = "webhook-without-strip",
    [WEBHOOK_ABSENT_MARKS] = "webhook-absent-marks",
    [ANYBODY_IS_US] = "anybody-is-us",
    [PAUSE_TAKEN_AS_OBSERVED] = "pause-taken-as-observed",
    [OTHER_POLICY_UNASKED] = "other-policy-unasked",
};

void world_fail(struct world *world, const char *format, ...)
{
    va_list args;

    if (world->failure)
        return;
    va_start(args, format);
    vsnprintf(world->failure_text, sizeof world->failure_text, format, args);
    va_end(args);
    world->failure = world->failure_text;
    world_say(world, "FAILED: %s", world->failure);
}

void world_say(const struct world *world, const char *format, ...)
{
    va_list args;

    if (!world->is_loud)
        return;
    printf("# %7llu ", (unsigned long long)world->now_ms);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
}

int64_t world_wall_us(const struct world *world)
{
    return INT64_C(1700000000000000) + (int64_t)world->now_ms * 1000;
}

/* ---- the beginning ---- */

static uint64_t next(uint64_t *seed)
{
    uint64_t x = *seed += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static void begin_deployment(struct world *world, int i, uint64_t *seed)
{
    static const char *const names[DEPLOYMENTS_MAX] = {"d0", "d1", "d2", "d3", "d4", "d5"};
    static const char *const full[DEPLOYMENTS_MAX] = {"n/d0", "n/d1", "n/d2",
                                                      "n/d3", "n/d4", "n/d5"};
    struct deployment *d = &world->deployments[i];
    uint64_t r = next(seed);

    *d = (struct deployment){
        .index = i,
        .name = names[i],
        .full = full[i],
        .replicas = 1 + (int)(r % 3),
        .is_recreate = r / 4 % 8 == 0,
        .is_surging = r / 32 % 2,
        .deadline_s = r / 64 % 8 == 0 ? 60 : 600,
        .labels = 1U | (r / 512 % 8 == 0 ? 2U : 0U),
        .held_by = "",
        .released_by = "",
        .coordinated_by = "",
        .stepped_by = "",
        .fence = "",
        .hold = "",
        .ignore = "",
        .skip = "",
        .order = r / 4096 % 8 == 0 ? "-1" : "",
        .newest = -1,
    };
    if (world->config.is_narrow) {
        d->replicas = 1;
        d->labels = 1;
        d->is_recreate = false;
    } else if (r / 32768 % 16 == 0) {
        return;
    }
    struct submission what = world_submission(d);
    world_submit(world, d, what, 0, true);
    if (world->config.is_stepped && r >> 40 & 1)
        world_stepper_changes(world, d, (uint32_t)(r >> 41));
    if (world->config.is_narrow || r / 524288 % 4 != 0)
        world_settle(world, d); /* it has run for long */
    world_stepper_acts(world, d, 0);
}

static void run_once(struct world *world, struct leader *leader)
{
    for (int i = 0; i < world->config.deployments + world->config.groups; i++)
        world_leader_sees(world, leader, (uint32_t)i, true);
    world_leader_runs(world, leader);
    for (uint32_t i = 0; i < world->request_count; i++) {
        if (world->requests[i].state == UNDER_WAY)
            world_apply_request(world, &world->requests[i]);
        world_deliver(world, &world->requests[i]);
    }
}

/* The first is recorded and not released; it is deleted, and another of its name created. */
static void be_reborn(struct world *world)
{
    struct deployment *d = &world->deployments[0];
    struct submission what = world_submission(d);

    world_leader_start(world, &world->leaders[0]);
    run_once(world, &world->leaders[0]);
    world_leader_crash(world, &world->leaders[0]);
    world_delete_deployment(world, d);
    if (world->leaders[1].is_alive)
        world_leader_crash(world, &world->leaders[1]);
    if (world->config.has_two_leaders)
        world_leader_start(world, &world->leaders[1]);
    what.is_paused = false;
    what.held_by = what.released_by = what.coordinated_by = what.fence = what.stepped_by = "";
    world_submit(world, d, what, 0, true);
    world_settle(world, d);
}

/* All are held, and the first two have a new template and wait. */
static void let_wait(struct world *world)
{
    struct leader *leader = &world->leaders[0];

    world_leader_start(world, leader);
    for (int round = 0; round < 3; round++) {
        run_once(world, leader);
        for (int i = 0; i < world->config.deployments; i++)
            world_settle(world, &world->deployments[i]);
    }
    world_leader_crash(world, leader);
    if (world->config.is_behind && world->config.has_two_leaders)
        world_leader_start(world, &world->leaders[1]);
    for (int i = 0; i < 2; i++) {
        struct submission what = world_submission(&world->deployments[i]);
        what.template_ = 1;
        world_submit(world, &world->deployments[i], what, 0, true);
        world_settle(world, &world->deployments[i]);
    }
    if (world->config.is_reborn)
        be_reborn(world);
}

/* As the reference leaves it: a status of its own kind, everybody selected paused without a mark,
 * the active one perhaps resumed already; some wait, and some that are paused are none of its
 * doing. */
static void begin_with_reference(struct world *world, uint64_t *seed)
{
    for (int i = 0; i < world->config.deployments; i++) {
        struct deployment *d = &world->deployments[i];
        uint64_t r = next(seed);
        if (!d->exists)
            continue;
        d->is_paused = true;
        world_store_deployment(world, d, true);
        world_settle(world, d);
        if (r % 2 == 0) {
            d->template_ = (d->template_ + 1) % (TEMPLATES - 1);
            world_store_deployment(world, d, true);
            world_settle(world, d);
        }
    }
    for (int g = 0; g < world->config.groups; g++) {
        struct group_object *group = &world->groups[g];
        struct coordination *status = &group->status;
        const char **names = SW_ARENA_ARRAY(world->arena, DEPLOYMENTS_MAX, const char *);
        uint64_t r = next(seed);
        for (int i = 0; i < world->config.deployments; i++) {
            struct deployment *d = &world->deployments[i];
            if (!world_selects(world, group, d))
                continue;
            names[status->deployments.count++] = d->full;
            d->is_references = d->is_paused;
            if (status->active_deployment[0] || r % 2 || !world_needs_rollout(d))
                continue;
            status->active_deployment = d->full;
            if (r / 2 % 2)
                continue;
            d->is_paused = d->is_references = false;
            world_store_deployment(world, d, true);
        }
        status->deployments.at = names;
        if (group->exists)
            world_store_group(world, group);
    }
    for (int i = 0; i < world->config.deployments; i++)
        world->deployments[i].is_users_pause = world->deployments[i].is_paused;
}

void world_begin(struct world *world, const struct config *config, uint64_t seed)
{
    static const char *const names[GROUPS_MAX] = {"a", "b", "c"};
    struct sw_arena *arena = world->arena;
    bool is_loud = world->is_loud;

    memset(world, 0, sizeof *world);
    world->is_loud = is_loud;
    world->config = *config;
    world->arena = arena ? arena : sw_arena_new(1 << 18);
    world->now_ms = 100000;
    for (int t = 0; t < TEMPLATES; t++)
        world->is_bad[t] = t == TEMPLATES - 1;
    for (int i = 0; i < config->deployments; i++)
        begin_deployment(world, i, &seed);
    for (int i = 0; i < config->groups; i++) {
        struct group_object *g = &world->groups[i];
        uint64_t r = next(&seed);
        *g = (struct group_object){
            .index = i,
            .name = names[i],
            .selects = 1U << i,
            .max_active = r % 8 == 0 ? 2 : 1,
            .min_ready_s = r / 8 % 4 == 0 ? 5 : 0,
            .is_running = r / 32 % 3 == 0,
            .skips_failed = r / 128 % 3 == 0,
            .has_guard = r / 1024 % 4 != 0,
            .status = {.active_deployment = ""},
        };
        if (config->is_narrow) {
            g->max_active = 1;
            g->min_ready_s = 0;
        }
        if (i == 0 || r / 8192 % 2 == 0) {
            g->exists = true;
            g->uid = ++world->uids;
            g->generation = 1;
            world_store_group(world, g);
            world_excuse_running(world, g);
        }
    }
    if (config->is_taken_over)
        begin_with_reference(world, &seed);
    for (int w = 0; w < WEBHOOKS; w++)
        for (int g = 0; g < config->groups; g++)
            world->webhooks[w][g] = world->groups[g].now;
    for (int i = 0; i < config->leaders; i++)
        world->leaders[i].index = i;
    if (config->is_narrow)
        let_wait(world);
    for (int g = 0; config->is_blind && g < GROUPS_MAX; g++)
        world->webhooks[1][g] = NULL;
    world_leader_start(world, &world->leaders[0]);
    if (config->has_two_leaders && !world->leaders[1].is_alive)
        world_leader_start(world, &world->leaders[1]);
}

/* ---- events ---- */

static struct leader *any_leader(struct world *world, uint32_t a)
{
    uint32_t count = (uint32_t)world->config.leaders;

    for (uint32_t i = 0; i < count; i++)
        if (world->leaders[(a + i) % count].is_alive)
            return &world->leaders[(a + i) % count];
    return NULL;
}

static struct request *any_request(struct world *world, uint32_t a, enum request_state state)
{
    for (uint32_t i = 0; i < world->request_count; i++) {
        struct request *request = &world->requests[(a + i) % world->request_count];
        if (request->state == state)
            return request;
    }
    return NULL;
}

static void wake(struct world *world)
{
    for (int i = 0; i < world->config.leaders; i++)
        if (world->leaders[i].is_alive && world->leaders[i].wake_ms <= world->now_ms)
            world->leaders[i].is_dirty = true;
}

static void run_if_dirty(struct world *world, struct leader *leader)
{
    wake(world);
    if (leader && leader->is_dirty)
        world_leader_runs(world, leader);
}

static void see_all(struct world *world, struct leader *leader)
{
    int count = world->config.deployments + world->config.groups;

    for (int i = 0; leader && i < count; i++)
        world_leader_sees(world, leader, (uint32_t)i, true);
}

static void change_leader(struct world *world, uint32_t a, uint32_t b)
{
    struct leader *leader = &world->leaders[a % (uint32_t)world->config.leaders];
    int alive = 0;

    for (int i = 0; i < world->config.leaders; i++)
        alive += world->leaders[i].is_alive;
    if (leader->is_alive)
        world_leader_crash(world, leader);
    if (b % 2 == 0 || alive <= 1 || world->config.has_two_leaders)
        world_leader_start(world, leader);
    if (alive > 1 && !world->config.has_two_leaders)
        for (int i = 0; i < world->config.leaders; i++)
            if (world->leaders[i].is_alive && &world->leaders[i] != leader)
                world_leader_crash(world, &world->leaders[i]);
}

static void request_event(struct world *world, const struct event *event)
{
    struct request *request = any_request(world, event->a, UNDER_WAY);

    if (request)
        world_apply_request(world, request);
}

static void deliver_event(struct world *world, const struct event *event)
{
    struct request *request = any_request(world, event->a, ANSWERED);

    if (request)
        world_deliver(world, request);
}

/* What a leader that is up to date and undisturbed does in one go. */
static void quick_event(struct world *world, const struct event *event)
{
    struct leader *leader = any_leader(world, event->a);

    see_all(world, leader);
    run_if_dirty(world, leader);
    for (uint32_t i = 0; i < 4; i++) {
        request_event(world, event);
        deliver_event(world, event);
    }
    run_if_dirty(world, leader);
}

static void cluster_event(struct world *world, const struct event *event)
{
    struct deployment *d = &world->deployments[event->a % (uint32_t)world->config.deployments];

    if (world->config.is_stepped && event->b >> 12 & 1) {
        if (event->b >> 13 & 31)
            world_stepper_acts(world, d, event->b >> 18);
        else
            world_stepper_changes(world, d, event->b >> 18);
        return;
    }
    switch (event->b % 8) {
    case 0:
        world_controller_sees(world, d);
        break;
    case 1:
        world_controller_syncs(world, d, event->b / 8 % 4 != 0);
        world_carry_wish(world, d);
        break;
    case 2:
    case 3:
        world_kubelet(world, d, event->b / 8 % 8 == 0);
        break;
    default:
        for (uint32_t i = 0; i < 1 + event->b / 8 % 6; i++) {
            world_controller_sees(world, d);
            world_controller_syncs(world, d, true);
            world_kubelet(world, d, false);
            world_controller_syncs(world, d, true);
        }
    }
}

void world_event(struct world *world, const struct event *event)
{
    static const uint32_t steps_ms[] = {1, 20, 700, 3000, 12000, 40000};
    struct leader *leader = any_leader(world, event->b);
    struct request *request;

    switch (event->kind % 32) {
    case 0:
    case 1:
    case 2:
    case 3:
        if (leader)
            world_leader_sees(world, leader, event->a, event->b / 4 % 2);
        break;
    case 4:
    case 5:
    case 6:
    case 7:
        run_if_dirty(world, leader);
        break;
    case 8:
    case 9:
    case 10:
        request_event(world, event);
        break;
    case 11:
    case 12:
    case 13:
        deliver_event(world, event);
        break;
    case 14:
    case 15:
    case 16:
        quick_event(world, event);
        break;
    case 17:
    case 18:
    case 19:
    case 20:
    case 21:
    case 22:
        cluster_event(world, event);
        break;
    case 23:
    case 24:
    case 25:
    case 26:
        world_user(world, event->a, event->b);
        break;
    case 27:
        world_webhook_sees(world, (int)(event->b % WEBHOOKS), event->a);
        break;
    case 28:
        world->now_ms += steps_ms[event->a % 6];
        wake(world);
        break;
    case 29:
        if (event->b % 4 == 0)
            change_leader(world, event->a, event->b / 4);
        break;
    case 30:
        request = any_request(world, event->a, event->b % 2 ? UNDER_WAY : ANSWERED);
        if (request)
            world_lose(world, request);
        break;
    default:
        if (leader)
            world_leader_relists(world, leader);
        break;
    }
}

/* ---- the end ---- */

static bool advance_requests(struct world *world)
{
    bool has_moved = false;

    for (uint32_t i = 0; i < world->request_count; i++) {
        struct request *request = &world->requests[i];
        if (request->state == UNDER_WAY) {
            world_apply_request(world, request);
            has_moved = true;
        }
        has_moved |= world_deliver(world, request);
    }
    return has_moved;
}

static bool advance_cluster(struct world *world)
{
    bool has_moved = false;

    for (int i = 0; i < world->config.deployments; i++) {
        struct deployment *d = &world->deployments[i];
        has_moved |= world_carry_wish(world, d);
        has_moved |= world_controller_sees(world, d);
        has_moved |= world_controller_syncs(world, d, true);
        has_moved |= world_kubelet(world, d, false);
        has_moved |= world_controller_syncs(world, d, true);
        has_moved |= world_stepper_acts(world, d, 1);
    }
    return has_moved;
}

static bool advance_leader(struct world *world, struct leader *leader)
{
    int count = world->config.deployments + world->config.groups;
    bool has_moved = world_leader_relists(world, leader);

    for (int i = 0; i < count; i++)
        has_moved |= world_leader_sees(world, leader, (uint32_t)i, true);
    wake(world);
    if (leader->is_dirty) {
        world_leader_runs(world, leader);
        has_moved = true;
    }
    return has_moved;
}

/* At rest a run of the plan has nothing to do, and nothing to wait for. */
static void check_quiet(struct world *world, struct leader *leader)
{
    uint64_t writes = world->writes;

    world_leader_runs(world, leader);
    advance_requests(world);
    if (world->writes != writes)
        world_fail(world, "there is always something to write");
}

void world_end(struct world *world)
{
    struct leader *leader = any_leader(world, 0);
    uint64_t writes, rounds = 0;

    world->is_ending = true;
    world_say(world, "users stop");
    world_users_stop(world);
    for (int i = 0; i < world->config.leaders; i++)
        if (&world->leaders[i] != leader && world->leaders[i].is_alive)
            world_leader_crash(world, &world->leaders[i]);
    if (!leader) {
        leader = &world->leaders[0];
        world_leader_start(world, leader);
    }
    writes = world->writes;
    for (;;) {
        bool has_moved = advance_requests(world);
        has_moved |= advance_cluster(world);
        has_moved |= advance_leader(world, leader);
        if (world->failure)
            return;
        if (++rounds > 3000) {
            world_fail(world, "it does not come to rest");
            return;
        }
        if (has_moved)
            continue;
        if (leader->wake_ms == UINT64_MAX)
            break;
        if (leader->wake_ms > world->now_ms)
            world->now_ms = leader->wake_ms;
        wake(world);
    }
    uint64_t allowed = 60 * (uint64_t)(world->config.deployments + world->config.groups);
    if (world->writes - writes > allowed)
        world_fail(world, "%llu writes to come to rest",
                   (unsigned long long)(world->writes - writes));
    check_quiet(world, leader);
    if (!world->failure)
        world_check_end(world);
}

void world_done(struct world *world)
{
    for (uint32_t i = 0; i < world->request_count; i++) {
        struct request *request = &world->requests[i];
        if (request->state == FREE_SLOT)
            continue;
        request->state = FREE_SLOT;
        if (--request->batch->open == 0) {
            sw_arena_free(request->batch->arena);
            sw_free(request->batch);
        }
    }
    for (int i = 0; i < LEADERS_MAX; i++)
        world->leaders[i].memory = coord_memory_free(world->leaders[i].memory);
    sw_arena_reset(world->arena);
}
