/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What people, GitOps and autoscalers do. Names, templates and times are drawn from the event.
 */
#include "world.h"

#include <string.h>

static bool is_reached(const struct world *world, uint32_t b)
{
    return !(world->config.is_ignored && b % 4 == 0);
}

static void submit(struct world *world, struct deployment *d, struct submission what, uint32_t b)
{
    world_submit(world, d, what, (int)(b >> 8) % WEBHOOKS, is_reached(world, b >> 4));
}

static void create(struct world *world, struct deployment *d, uint32_t b)
{
    struct submission what = {
        .template_ = (int)(b % TEMPLATES),
        .is_paused = b % 7 == 0,
        .labels = d->labels ? d->labels : 1,
        .held_by = b % 11 == 0 ? "coordination/a" : "",
        .released_by = b % 13 == 0 ? "coordination/a" : "",
        .coordinated_by = "",
        .stepped_by = "",
        .fence = "",
        .hold = "",
        .ignore = "",
        .skip = "",
        .order = d->order,
    };

    submit(world, d, what, b);
}

static void scale(struct world *world, struct deployment *d, int replicas)
{
    if (d->replicas == replicas)
        return;
    /* Through /scale: no webhook is asked. One that rests at zero is not held; scaled up before its
     * controller has taken the template over, it starts. */
    if (d->replicas == 0 && !d->is_paused && world_needs_rollout(d))
        d->has_slipped = true;
    d->replicas = replicas;
    world_store_deployment(world, d, true);
    world_say(world, "user: %s scaled to %d", d->name, replicas);
}

static void change_deployment(struct world *world, struct deployment *d, uint32_t kind, uint32_t b)
{
    struct submission what = world_submission(d);

    switch (kind) {
    case 0:
    case 1:
    case 2:
    case 3:
        what.template_ = (int)(b % TEMPLATES);
        break;
    case 4: /* kubectl replace: our annotations are gone, and the pause with them */
        what.template_ = (int)(b % TEMPLATES);
        what.held_by = what.released_by = what.coordinated_by = what.fence = "";
        what.stepped_by = "";
        what.is_paused = false;
        break;
    case 5:
        what.is_paused = true;
        break;
    case 6:
        what.is_paused = false;
        break;
    case 7: /* a copy of an older object */
        what.released_by = "coordination/a";
        what.held_by = "";
        what.template_ = (int)(b % TEMPLATES);
        what.is_paused = false;
        break;
    case 8:
        what.labels ^= 1U << b % GROUPS_MAX;
        break;
    case 9:
        what.hold = what.hold[0] ? "" : "freeze";
        break;
    case 10:
        what.ignore = what.ignore[0] ? "" : "true";
        break;
    case 11:
        what.order = b & 1 ? "-1" : "1";
        break;
    default: /* pauses and drops the mark of whose pause it is */
        what.is_paused = true;
        what.held_by = "";
        break;
    }
    submit(world, d, what, b);
}

/* ---- coordinations ---- */

void world_excuse_running(struct world *world, const struct group_object *g)
{
    for (int i = 0; i < world->config.deployments; i++) {
        struct deployment *d = &world->deployments[i];
        if (world_selects(world, g, d) && (!d->is_paused || !d->c_paused))
            d->has_slipped = true;
    }
}

static void create_group(struct world *world, struct group_object *g)
{
    g->exists = true;
    g->uid = ++world->uids;
    g->generation = 1;
    g->status = (struct coordination){
        .active_deployment = "",
    };
    world_store_group(world, g);
    world_excuse_running(world, g);
    world_say(world, "user: coordination %s created", g->name);
}

static void change_group(struct world *world, struct group_object *g, uint32_t kind, uint32_t b)
{
    switch (kind) {
    case 0:
        if (g->max_checked < g->max_active)
            g->max_checked = g->max_active;
        g->max_active = 1 + (int)(b % 2);
        break;
    case 1:
        g->is_suspended = !g->is_suspended;
        break;
    case 2:
        g->is_running = !g->is_running;
        break;
    case 3:
        g->skips_failed = !g->skips_failed;
        break;
    case 4:
        g->has_guard = !g->has_guard;
        break;
    case 5:
        g->min_ready_s = (int)(b % 3) * 5;
        break;
    case 6:
        g->selects = b % 4 == 0 ? 0 : 1U << b % GROUPS_MAX;
        break;
    case 7:
        g->is_invalid = !g->is_invalid;
        break;
    default:
        g->skips_guard = !g->skips_guard;
        world_store_group(world, g);
        return;
    }
    g->generation++;
    world_store_group(world, g);
    world_excuse_running(world, g);
    world_say(world,
              "user: coordination %s max %d suspended %d running %d skip %d guard %d min %d "
              "selects %x invalid %d",
              g->name, g->max_active, g->is_suspended, g->is_running, g->skips_failed, g->has_guard,
              g->min_ready_s, g->selects, g->is_invalid);
}

static void on_group(struct world *world, struct group_object *g, uint32_t b)
{
    world_forget_reference(world);
    if (!g->exists) {
        create_group(world, g);
        return;
    }
    if (b % 8 == 0) {
        world_say(world, "user: coordination %s deleted", g->name);
        g->exists = false;
        world_store_group(world, g);
        return;
    }
    change_group(world, g, b / 8 % 10, b / 128);
}

/* ---- one operation ---- */

void world_user(struct world *world, uint32_t a, uint32_t b)
{
    struct deployment *d = &world->deployments[a % (uint32_t)world->config.deployments];
    uint32_t what = a / 16 % 32;

    if (what >= 30) {
        on_group(world, &world->groups[a / 512 % (uint32_t)world->config.groups], b);
        return;
    }
    if (!d->exists) {
        create(world, d, b);
        return;
    }
    if (what == 29 && b % 3 == 0) {
        world_say(world, "user: %s deleted", d->name);
        world_delete_deployment(world, d);
    } else if (what >= 24) {
        scale(world, d, b % 9 == 0 ? 0 : 1 + (int)(b % 4));
    } else if (what >= 13) {
        change_deployment(world, d, b / 4096 % 4, b);
    } else {
        change_deployment(world, d, what, b);
    }
}

/* Everybody resumes what they have paused, puts right what cannot work, and goes home. */
void world_users_stop(struct world *world)
{
    bool was_bad[TEMPLATES];

    memcpy(was_bad, world->is_bad, sizeof was_bad);
    memset(world->is_bad, 0, sizeof world->is_bad);
    for (int i = 0; i < world->config.groups; i++) {
        struct group_object *g = &world->groups[i];
        if (!g->exists || (!g->is_suspended && !g->is_invalid))
            continue;
        g->is_suspended = g->is_invalid = false;
        g->generation++;
        world_store_group(world, g);
        world_excuse_running(world, g);
    }
    for (int w = 0; w < WEBHOOKS; w++)
        for (int g = 0; g < world->config.groups; g++)
            world->webhooks[w][g] = world->groups[g].now;
    for (int i = 0; i < world->config.deployments; i++) {
        struct deployment *d = &world->deployments[i];
        if (!d->exists)
            continue;
        struct submission what = world_submission(d);
        d->stepper.failed = -1;
        bool is_resumed = d->is_users_pause && !d->is_references;
        bool is_changed = is_resumed || d->hold[0];
        if (is_resumed)
            what.is_paused = false;
        what.hold = "";
        if (was_bad[d->template_]) {
            is_changed = true;
            for (int t = 0; t < TEMPLATES; t++)
                if (!was_bad[t])
                    what.template_ = t;
        }
        if (is_changed)
            world_submit(world, d, what, 0, true);
    }
}
