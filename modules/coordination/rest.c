/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everybody who is selected and has no place: held and marked, or left running where that is how it
 * rests. A user's pause is left as it is.
 */
#include "work.h"

static bool holds_exactly(const struct member *member)
{
    const char *list = member->held_by, *at, *name;
    size_t len, name_len;
    uint32_t ours = 0;

    for (uint32_t i = 0; i < member->group_count; i++) {
        bool is_named = false;
        list = member->held_by;
        while (!is_named && (at = coord_list_next(&list, &len)))
            is_named = (name = coord_owner_name(at, len, &name_len)) &&
                       strlen(member->groups[i]->name) == name_len &&
                       memcmp(name, member->groups[i]->name, name_len) == 0;
        if (!is_named)
            return false;
    }
    list = member->held_by;
    while ((at = coord_list_next(&list, &len)))
        ours += coord_owner_name(at, len, &name_len) != NULL;
    return ours == member->group_count;
}

static bool is_adopted_now(const struct member *member)
{
    for (uint32_t i = 0; i < member->group_count; i++)
        if (coord_is_adopted(member->groups[i], member))
            return true;
    return false;
}

enum wish {
    AS_IT_IS, /* marks only */
    HELD,
    FREED,
    STRIPPED, /* of the right to roll */
    ADOPTED,
};

static enum wish wish_of_paused(const struct member *member)
{
    if (member->is_users_pause)
        return member->has_right ? STRIPPED : AS_IT_IS;
    if (member->has_right)
        return HELD;
    bool is_free =
        member->is_observed && (member->is_empty || (member->rests_running && member->is_complete));
    if (is_free)
        return member->has_hold ? FREED : AS_IT_IS;
    return holds_exactly(member) ? AS_IT_IS : HELD;
}

static enum wish wish_of_running(const struct member *member)
{
    bool may_run = member->is_empty || (member->rests_running && !member->is_rolling);

    if (member->is_spared)
        return AS_IT_IS;
    if (member->has_right)
        return may_run && member->is_complete ? STRIPPED : HELD;
    /* Scaled up from nothing, its Pods are of the new template already; it is held when they are
     * there. */
    bool is_coming_up = member->m->from_zero && !member->is_complete && !member->is_rolling;
    if (!may_run && !is_coming_up)
        return HELD;
    /* Resumed past the webhook, it still says that it is held. */
    return member->has_hold ? FREED : AS_IT_IS;
}

static void pause_member(struct work *work, struct member *member)
{
    struct coord_action *action = coord_hold(work, member, SW_HOLD_PAUSE, "PauseFailed");

    if (!action || member->d->is_paused || member->m->is_first)
        return;
    for (uint32_t i = 0; i < member->group_count; i++)
        coord_remark_add(
            &action->remarks,
            coord_about(member, coord_remark(work->arena, true, member->groups[i]->name, SW_NORMAL,
                                             "DeploymentPaused", "paused %s", member->m->full)));
}

static void free_member(struct work *work, struct member *member)
{
    struct coord_action *action = coord_hold(work, member, SW_HOLD_FREE, "UnpauseFailed");

    if (!action)
        return;
    for (uint32_t i = 0; i < member->group_count; i++)
        coord_remark_add(
            &action->remarks,
            coord_about(member, coord_remark(work->arena, true, member->groups[i]->name, SW_NORMAL,
                                             "DeploymentUnpaused",
                                             "%s has nothing to roll and runs", member->m->full)));
}

static void rest(struct work *work, struct member *member, enum wish wish)
{
    switch (wish) {
    case AS_IT_IS:
        if (strcmp(member->marks, member->marked) != 0)
            coord_hold(work, member, SW_HOLD_MARK, "PauseFailed");
        break;
    case HELD:
        pause_member(work, member);
        break;
    case FREED:
        free_member(work, member);
        break;
    case STRIPPED:
        coord_hold(work, member, SW_HOLD_TAKE_BACK, "PauseFailed");
        break;
    case ADOPTED:
        coord_hold(work, member, SW_HOLD_ADOPT, "PauseFailed");
        break;
    }
}

/* ---- the first sight of a group: one remark for all that are paused ---- */

static void note_first(struct group *group)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < group->member_count; i++) {
        const struct member *member = group->members[i];
        count += !member->d->is_paused && !member->is_recorded && wish_of_running(member) == HELD;
    }
    group->m->is_known = true;
    group->m->has_first = count > 1;
    if (count > 1)
        for (uint32_t i = 0; i < group->member_count; i++)
            if (!group->members[i]->d->is_paused && !group->members[i]->is_recorded)
                group->members[i]->m->is_first = true;
}

static void say_first(struct work *work, struct group *group)
{
    if (!group->m->has_first)
        return;
    for (uint32_t i = 0; i < group->member_count; i++)
        if (group->members[i]->m->is_first)
            return;
    group->m->has_first = false;
    if (group->m->first_paused > 0)
        coord_say(work, coord_remark(work->arena, true, group->name, SW_NORMAL, "DeploymentPaused",
                                     "paused %u Deployments", group->m->first_paused));
}

static void look_at(struct work *work, struct member *member)
{
    enum wish wish = member->d->is_paused ? wish_of_paused(member) : wish_of_running(member);

    if (member->is_recorded || wish != HELD)
        member->m->is_first = false;
    bool is_adopted = is_adopted_now(member);
    if (member->is_recorded && !is_adopted)
        return;
    rest(work, member, is_adopted ? ADOPTED : wish);
}

void coord_rest(struct work *work)
{
    for (uint32_t g = 0; g < work->group_count; g++)
        if (!work->groups[g].m->is_known)
            note_first(&work->groups[g]);
    /* Only so many requests are under way at a time: what rolls is paused first. */
    for (int is_rolling = 1; is_rolling >= 0; is_rolling--)
        for (uint32_t i = 0; i < work->member_count; i++) {
            struct member *member = &work->members[i];
            if (member->d && member->group_count > 0 && !member->is_leaving_cluster &&
                member->is_rolling == is_rolling)
                look_at(work, member);
        }
    for (uint32_t g = 0; g < work->group_count; g++)
        say_first(work, &work->groups[g]);
}
