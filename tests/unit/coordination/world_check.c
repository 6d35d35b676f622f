/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must never be seen from the cluster's side, and how everything must end when users stop.
 */
#include "world.h"

#include <stdio.h>
#include <string.h>

/* Its controller makes Pods of a new template, as far as it has observed. Scaled down to those that
 * are there already, it has rolled out before the controller knows. */
static bool rolls(const struct deployment *d)
{
    if (!d->exists || !d->c_exists || d->c_paused || !d->is_mid)
        return false;
    for (int t = 0; t < TEMPLATES; t++)
        if (t != d->c_template && d->pods[t] > 0)
            return true;
    return d->ready[d->c_template] < d->replicas || d->pods[d->c_template] == 0;
}

static bool has_right(const struct deployment *d)
{
    return hold_list_has_policy(d->released_by, COORD_POLICY);
}

static int most_allowed(struct world *world, int index)
{
    struct group_object *g = &world->groups[index];
    int bearers = 0;

    for (int k = 0; k < world->config.deployments; k++)
        bearers += world_selects(world, g, &world->deployments[k]) &&
                   (has_right(&world->deployments[k]) || rolls(&world->deployments[k]));
    if (g->max_checked < g->max_active ||
        (bearers <= g->max_active && g->status.active_deployments.count <= (uint32_t)g->max_active))
        g->max_checked = g->max_active;
    return g->max_checked;
}

void world_check_rolling(struct world *world, const struct deployment *d)
{
    if (!rolls(d) || d->has_slipped)
        return;
    for (int i = 0; i < world->config.groups; i++) {
        const struct group_object *g = &world->groups[i];
        int count = 0;
        if (!world_selects(world, g, d))
            continue;
        for (int k = 0; k < world->config.deployments; k++) {
            const struct deployment *other = &world->deployments[k];
            count += world_selects(world, g, other) && rolls(other) && !other->has_slipped;
        }
        if (count > most_allowed(world, i))
            world_fail(world, "%d of coordination %s roll at once, %s the last", count, g->name,
                       d->name);
    }
}

/* Nobody is released while others of its group bear the right. */
void world_check_release(struct world *world, const struct deployment *d)
{
    for (int i = 0; i < world->config.groups; i++) {
        const struct group_object *g = &world->groups[i];
        int count = 1;
        if (!world_selects(world, g, d) || d->has_slipped)
            continue;
        for (int k = 0; k < world->config.deployments; k++) {
            const struct deployment *other = &world->deployments[k];
            count += other != d && world_selects(world, g, other) && has_right(other) &&
                     !other->has_slipped && !other->is_forged &&
                     hold_list_has(other->coordinated_by, g->name);
        }
        if (count > most_allowed(world, i))
            world_fail(world, "%s is released while another of coordination %s has the right",
                       d->name, g->name);
    }
}

/* ---- the end ---- */

static const char *expected_names(struct world *world, const struct deployment *d,
                                  const char *prefix)
{
    const char *names = "";

    for (int g = 0; g < world->config.groups; g++)
        if (world_selects(world, &world->groups[g], d))
            names = sw_arena_printf(world->arena, "%s%s%s%s", names, names[0] ? "," : "", prefix,
                                    world->groups[g].name);
    return names;
}

static bool rests_running(const struct world *world, const struct deployment *d)
{
    for (int g = 0; g < world->config.groups; g++)
        if (world_selects(world, &world->groups[g], d) && !world->groups[g].is_running)
            return false;
    return true;
}

static void check_deployment(struct world *world, struct deployment *d)
{
    const char *marks = expected_names(world, d, "");
    const char *owners = expected_names(world, d, "coordination/");

    if (world_needs_rollout(d))
        world_fail(world, "%s is left with something to roll", d->name);
    else if (d->released_by[0])
        world_fail(world, "%s keeps released-by", d->name);
    else if (strcmp(d->stepped_by, d->stepper.exists && !d->ignore[0] ? "x" : "") != 0)
        world_fail(world, "%s is marked by the other policy '%s'", d->name, d->stepped_by);
    else if (strcmp(d->coordinated_by, marks) != 0)
        world_fail(world, "%s is marked '%s', not '%s'", d->name, d->coordinated_by, marks);
    else if (!marks[0] && (d->is_paused || d->held_by[0]))
        world_fail(world, "%s is left held, and nobody holds it", d->name);
    else if (marks[0] && (d->replicas == 0 || rests_running(world, d)) &&
             (d->is_paused || d->held_by[0]))
        world_fail(world, "%s is held, but should rest running", d->name);
    else if (marks[0] && d->replicas > 0 && !rests_running(world, d) &&
             (!d->is_paused || strcmp(d->held_by, owners) != 0))
        world_fail(world, "%s rests paused %d held-by '%s', not '%s'", d->name, d->is_paused,
                   d->held_by, owners);
}

static void check_group(struct world *world, const struct group_object *g)
{
    const struct coordination *status = &g->status;
    int32_t selected = 0;

    for (int i = 0; i < world->config.deployments; i++)
        selected += world_selects(world, g, &world->deployments[i]);
    if (status->active_deployment[0])
        world_fail(world, "coordination %s ends with %s active", g->name,
                   status->active_deployment);
    else if (!sw_condition_is(&status->conditions, "Ready", "True"))
        world_fail(world, "coordination %s ends without Ready", g->name);
    else if (!sw_condition_is(&status->conditions, "Degraded", "False"))
        world_fail(world, "coordination %s ends Degraded", g->name);
    else if (status->pending != 0 || status->selected != selected)
        world_fail(world, "coordination %s ends with %d pending and %d selected", g->name,
                   status->pending, status->selected);
    else if (status->is_truncated != (status->deployments.count < (uint32_t)selected) ||
             status->deployments.count != status->states.count)
        world_fail(world, "coordination %s ends with %u of %d listed, truncated %d", g->name,
                   status->deployments.count, selected, status->is_truncated);
    else if (status->is_truncated != (world->config.is_small && selected > 0))
        world_fail(world, "coordination %s ends truncated %d", g->name, status->is_truncated);
    else if (status->observed_generation != g->generation)
        world_fail(world, "coordination %s ends with an old observedGeneration", g->name);
}

void world_check_end(struct world *world)
{
    for (int i = 0; i < world->config.deployments; i++)
        if (world->deployments[i].exists)
            check_deployment(world, &world->deployments[i]);
    for (int i = 0; i < world->config.groups; i++)
        if (world->groups[i].exists)
            check_group(world, &world->groups[i]);
}
