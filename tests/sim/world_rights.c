/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges the right to roll at each write that gives it: nobody else of the group may bear it, be it
 * the members of a coordination or what one has left. It is the sharper half of what the judge
 * looks for: two that bear the right need not roll at once, but nothing keeps them from it.
 */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "document.h"
#include "world.h"

#define LATE_MS 15000 /* what was released before may arrive as late as that */

static bool is_selected(const struct world *world, const json_t *d)
{
    for (int g = 0; g < world->case_.groups; g++) {
        const json_t *group = world_group(world, g);
        if (group && judge_selects(group, d))
            return true;
    }
    return false;
}

void judge_look_at_selection(struct world *world, int index)
{
    struct member *member = &world->judge.members[index];
    const json_t *d = world_deployment(world, index);

    if (!d || is_selected(world, d))
        member->unselected_ms = 0;
    else if (!member->unselected_ms)
        member->unselected_ms = world->now_ms;
}

static bool bears(const json_t *d, const char *owner)
{
    return list_has(annotation_of(d, "slipway.dev/held-by"), owner) ||
           list_has(annotation_of(d, "slipway.dev/released-by"), owner);
}

/*
 * A residual group: whom nobody selects, and who bear the name of a coordination. One at a time,
 * too; here the lease decides who leads, and where there is none several may. What was released
 * while the coordination still selected it arrives beside those whom it has selected no more for
 * longer.
 */
static void see_residual_right(struct world *world, int index, const json_t *d)
{
    const struct member *member = &world->judge.members[index];
    bool is_late = world->now_ms - member->unselected_ms < LATE_MS;

    if (world->case_.faults & FAULT_NO_LEASE && world->case_.replicas > 1)
        return;
    for (int g = 0; g < world->case_.groups; g++) {
        char owner[32];
        snprintf(owner, sizeof owner, "coordination/%s", group_name(g));
        if (!bears(d, owner))
            continue;
        world_say(world, "judge: %s is released of what %s left", deployment_name(index),
                  group_name(g));
        int count = 1;
        for (int i = 0; i < world->case_.deployments; i++) {
            const struct member *known = &world->judge.members[i];
            const json_t *other = world_deployment(world, i);
            if (i == index || !other || judge_is_gone(other) || !known->unselected_ms ||
                known->is_excused || known->is_forged ||
                (is_late && known->unselected_ms < member->unselected_ms))
                continue;
            count += bears(other, owner) && (judge_bears_right(other) || known->is_rolling);
        }
        if (count > SW_MAX(world->judge.groups[g].last_max, 1))
            world_fail(world, "%s is given the right while another of what %s left has it",
                       deployment_name(index), group_name(g));
    }
}

/* The version that is released is the one that was decided on: where all Pods run the template and
 * serve, there is nothing to roll. */
static void see_needless_right(struct world *world, int index, const json_t *before)
{
    if (sw_sim_int_at(before, "spec.replicas", 1) > 0 && judge_is_complete(before))
        world_fail(world, "%s is given the right with nothing to roll", deployment_name(index));
}

/* Nothing is given to those who leave. */
static bool names_another(const char *before, const char *now)
{
    char owner[64];

    for (const char *at = now; *at; at += strcspn(at, ","), at += *at == ',') {
        snprintf(owner, sizeof owner, "%.*s", (int)strcspn(at, ","), at);
        if (!list_has(before, owner))
            return true;
    }
    return false;
}

void judge_see_right(struct world *world, int index, const json_t *before, const json_t *d)
{
    struct member *member = &world->judge.members[index];
    const char *now = annotation_of(d, "slipway.dev/released-by");

    if (!now[0]) {
        member->is_forged = false;
        return;
    }
    if (before && !names_another(annotation_of(before, "slipway.dev/released-by"), now))
        return;
    world->judge.releases++;
    if (member->is_forged || member->is_excused)
        return;
    if (before)
        see_needless_right(world, index, before);
    if (member->unselected_ms)
        see_residual_right(world, index, d);
    for (int g = 0; g < world->case_.groups; g++) {
        const json_t *group = world_group(world, g);
        char owner[32];
        int count = 1;
        snprintf(owner, sizeof owner, "coordination/%s", group_name(g));
        if (!group || !judge_selects(group, d) || !list_has(now, owner))
            continue;
        for (int i = 0; i < world->case_.deployments; i++) {
            const json_t *other = world_deployment(world, i);
            const struct member *known = &world->judge.members[i];
            count += i != index && other && !judge_is_gone(other) && judge_selects(group, other) &&
                     list_has(annotation_of(other, "slipway.dev/released-by"), owner) &&
                     list_has(annotation_of(other, "slipway.dev/coordinated-by"), group_name(g)) &&
                     !known->is_excused && !known->is_forged;
        }
        if (count > judge_most_allowed(world, g))
            world_fail(world, "%s is given the right while another of %s has it",
                       deployment_name(index), group_name(g));
    }
}
