/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interleavings that chance puts together once in a thousand cases, and each of which one part of
 * the hand-over is there for (coordination, section 3, rule 4). A plot waits for a request of the
 * hand-over, lets it travel longer, and has users do meanwhile what makes another leader see things
 * differently. Nothing in it is more than a slow packet and a person who changes their mind.
 *
 *   plot    waits for                 then                                 what prevents two
 *   ------  ------------------------  -----------------------------------  --------------------
 *   BLINK   a release                 it is late; the group is suspended:  the fence, which its
 *                                     another leader drops whom it names;  precondition does
 *                                     suspended no more: and releases      not survive
 *                                     somebody else
 *   FLIP    a record of one who is    the other leaders die; users undo    the turn, which makes
 *           not released              its template: it is to be dropped;   each record a change
 *                                     the record that drops it is late,
 *                                     and its sender hears nothing; a new
 *                                     template; the others live again,
 *                                     record it once more, and release it
 *   LATE    a record                  it is late: another records          its precondition
 *   PRUNE   a record                  the coordination is deleted, with    the residual group
 *                                     all that wait in it, and made anew
 *                                     after a while
 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "document.h"
#include "world.h"

enum {
    NO_PLOT,
    BLINK,
    FLIP,
    LATE,
    PRUNE, /* the last */
};

#define PLOT_MS 30000 /* it gives up */
#define DEAD_MS 5000

void plot_set(struct world *world, uint32_t a, uint32_t b)
{
    if (world->plot.what != NO_PLOT)
        return;
    /* The others are about two that lead. */
    bool is_alone = !(world->case_.faults & FAULT_NO_LEASE);
    int what = is_alone && a / 8 % 3 ? PRUNE : (int)(1 + a % (PRUNE - 1));
    if (world->case_.bug == BUG_RESIDUAL_AT_ONCE)
        what = PRUNE;
    world->plot = (struct plot){.what = what, .b = b, .until_ms = world->now_ms + PLOT_MS};
    /* So that there is something to hand over. */
    for (int i = 0; i < world->case_.deployments; i++)
        if (world_deployment(world, i))
            user_sets_template(world, i);
}

/* ---- what the requests are ---- */

static int first_group_of(const struct world *world, int member)
{
    for (int g = 0; g < world->case_.groups; g++) {
        const json_t *group = world_group(world, g);
        const json_t *d = world_deployment(world, member);
        if (group && d && judge_selects(group, d))
            return g;
    }
    return -1;
}

/* The member whose name ends the path, or whose coordination does. */
static int named_in(const char *target, const char *plural, int (*index_of)(const char *name))
{
    const char *at = strstr(target, plural);
    char name[16];

    if (!at)
        return -1;
    at += strlen(plural);
    size_t len = strcspn(at, "/?");
    if (len >= sizeof name)
        return -1;
    memcpy(name, at, len);
    name[len] = '\0';
    return index_of(name);
}

static bool is_active_in(const json_t *group, int member)
{
    size_t i;
    json_t *full;

    json_array_foreach(sw_sim_at(group, "status.activeDeployments"), i, full)
    {
        const char *name = strrchr(json_string_value(full), '/');
        if (name && deployment_index(name + 1) == member)
            return true;
    }
    return false;
}

static bool bears_right(const struct world *world, int member)
{
    return annotation_of(world_deployment(world, member), "slipway.dev/released-by")[0];
}

/* A member that the status records and that may be released now; -1. */
static int recorded_by(const struct world *world, const json_t *status)
{
    for (int i = 0; i < world->case_.deployments; i++)
        if (is_active_in(status, i) && world_deployment(world, i) && !bears_right(world, i))
            return i;
    return -1;
}

/* ---- the plots ---- */

static uint64_t longer(struct plot *plot, uint64_t from, uint64_t to)
{
    return from + plot->b / 16 % (to - from + 1);
}

/* The group is suspended until another leader has dropped whom it recorded, or has not for long. */
static uint64_t blink(struct world *world, struct plot *plot, const struct replica *replica,
                      int member, int g, const json_t *body)
{
    if (plot->stage == 1) {
        const json_t *active = sw_sim_at(body, "status.activeDeployments");
        if (g == plot->group && replica->index != plot->replica && active &&
            !is_active_in(body, plot->member))
            plot->due_ms = world->now_ms + 1;
        return 0;
    }
    if (member < 0 || !annotation_of(body, "slipway.dev/released-by")[0])
        return 0;
    plot->group = first_group_of(world, member);
    if (plot->group < 0)
        return 0;
    world_say(world, "plot: the release of %s is late, and the group blinks",
              deployment_name(member));
    user_suspends(world, plot->group, true);
    for (int i = 0; i < world->case_.deployments; i++)
        if (i != member && world_deployment(world, i))
            user_hurries(world, i); /* or the same one would be the next again */
    plot->stage = 1;
    plot->member = member;
    plot->replica = replica->index;
    plot->due_ms = world->now_ms + 3000;
    return longer(plot, 1500, 9000);
}

static void kill_others(struct world *world, const struct replica *replica)
{
    for (int i = 0; i < world->case_.replicas; i++)
        if (i != replica->index && world->case_.faults & FAULT_KILL)
            replica_kill(&world->replicas[i], world->now_ms + DEAD_MS);
}

static void revive_others(struct world *world, const struct replica *replica)
{
    for (int i = 0; i < world->case_.replicas; i++)
        if (i != replica->index && world->replicas[i].dead_until_ms)
            world->replicas[i].dead_until_ms = world->now_ms + 1;
}

static uint64_t flip(struct world *world, struct plot *plot, struct replica *replica, int g,
                     const json_t *body)
{
    if (g < 0)
        return 0;
    if (plot->stage == 0) {
        plot->member = recorded_by(world, body);
        if (plot->member < 0)
            return 0;
        world_say(world, "plot: %s is recorded, and its template put back",
                  deployment_name(plot->member));
        kill_others(world, replica);
        user_undoes_template(world, plot->member);
        plot->stage++;
        plot->group = g;
        plot->replica = replica->index;
        return 0;
    }
    const json_t *active = sw_sim_at(body, "status.activeDeployments");
    if (plot->group != g || plot->replica != replica->index || !active ||
        is_active_in(body, plot->member) || !is_active_in(world_group(world, g), plot->member) ||
        bears_right(world, plot->member))
        return 0;
    world_say(world, "plot: the record that drops %s is late, and it has a new template",
              deployment_name(plot->member));
    user_sets_template(world, plot->member);
    replica->frozen_until_ms = world->now_ms + 3000;
    replica_set_faults(replica, true);
    revive_others(world, replica);
    plot->what = NO_PLOT;
    return longer(plot, 500, 4000);
}

static uint64_t be_late(struct world *world, struct plot *plot, int g, const json_t *body)
{
    if (g < 0 || recorded_by(world, body) < 0)
        return 0;
    world_say(world, "plot: the record of %s is late", group_name(g));
    plot->what = NO_PLOT;
    return longer(plot, 100, 3000);
}

static void prune(struct world *world, struct plot *plot, int g, const json_t *body)
{
    if (plot->due_ms || g < 0 || recorded_by(world, body) < 0)
        return;
    world_say(world, "plot: %s is deleted", group_name(g));
    user_deletes_group(world, g);
    plot->group = g;
    plot->due_ms = world->now_ms + longer(plot, 500, 40000);
}

uint64_t plot_look(struct world *world, struct replica *replica,
                   const struct sw_sim_wire_request *request)
{
    struct plot *plot = &world->plot;
    uint64_t longer_ms = 0;

    if (plot->what == NO_PLOT || !request->body || world->is_ending ||
        strcmp(request->method, "PATCH") != 0)
        return 0;
    bool is_status = strstr(request->target, "/status");
    int g = is_status ? named_in(request->target, "/deploymentcoordinations/", group_index) : -1;
    int member = is_status ? -1 : named_in(request->target, "/deployments/", deployment_index);
    json_t *body = json_loadb(request->body, request->body_len, 0, NULL);
    if (plot->what == BLINK)
        longer_ms = blink(world, plot, replica, member, g, body);
    else if (plot->what == FLIP)
        longer_ms = flip(world, plot, replica, g, body);
    else if (plot->what == LATE)
        longer_ms = be_late(world, plot, g, body);
    else
        prune(world, plot, g, body);
    json_decref(body);
    return longer_ms;
}

uint64_t plot_next_ms(const struct world *world)
{
    const struct plot *plot = &world->plot;

    if (plot->what == NO_PLOT)
        return UINT64_MAX;
    return plot->due_ms ? plot->due_ms : plot->until_ms;
}

void plot_go_on(struct world *world)
{
    struct plot *plot = &world->plot;

    if (plot_next_ms(world) > world->now_ms)
        return;
    if (plot->what == BLINK && plot->due_ms)
        user_suspends(world, plot->group, false);
    if (plot->what == PRUNE && plot->due_ms && !world_group(world, plot->group))
        user_creates_group(world, plot->group, plot->b);
    plot->what = NO_PLOT;
}
