/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hand-over, a chain of writes, each sent only after the one before was answered:
 *
 *   (a) take back   a patch on whoever leaves, after the status was read
 *   (b) record      the status with the new active set; precondition: the version read before (a)
 *   (c) release     a patch on whoever is recorded; only after an own (b), and with the version of
 *                   the Deployment that was known before that (b) was sent
 *
 * Why no two ever roll: every (c) follows a (b) that names it and knows nothing newer of the
 * Deployment; every (b) that drops somebody follows a write on it, and that write follows the
 * reading of the status that (b) replaces. So of a drop and a release either the release was first,
 * and the take back has seen it, or its precondition fails. This holds whoever else believes to
 * lead, and whenever a packet arrives.
 *
 * What the memory keeps of it: per coordination the sequence number of the own (b) that stands, and
 * who of those that leave has been written ("fenced"); per Deployment the version that may be
 * released and the sequence number before which it was known. A version of the coordination that is
 * not our own writing voids the first two.
 */
#include "work.h"

#include <stdlib.h>

/* ---- (a) ---- */

static const char *leaving_owners(struct work *work, const struct member *member)
{
    const char *owners = member->owners;

    for (uint32_t g = 0; g < work->group_count && !owners[0]; g++)
        if (coord_place(&work->groups[g], member))
            owners = sw_arena_printf(work->arena, COORD_POLICY "/%s", work->groups[g].name);
    return owners;
}

/* A text that the object does not bear yet, so that the patch changes something. */
static const char *fence_text(struct work *work, const struct member *member)
{
    const char *now = sw_annotation(&member->d->meta, SW_FENCE), *text = "0";

    for (uint32_t g = 0; g < work->group_count; g++) {
        const struct place *place = coord_place(&work->groups[g], member);
        if (place && place->leaves)
            text = work->groups[g].m->version;
    }
    return now && strcmp(now, text) == 0 ? sw_arena_printf(work->arena, "%s+", text) : text;
}

/* Must it be paused before it may leave, or as it leaves? */
static bool is_pause_due(const struct member *member)
{
    if (member->is_active || member->d->is_paused || member->is_leaving_cluster)
        return false;
    if (!member->is_complete)
        return true;
    return member->group_count > 0 && !member->rests_running && !member->is_empty;
}

static bool needs_write(struct work *work, const struct member *member)
{
    if (member->d && !member->is_active && (member->has_right || is_pause_due(member)))
        return true;
    for (uint32_t g = 0; g < work->group_count; g++) {
        const struct place *place = coord_place(&work->groups[g], member);
        if (place && place->leaves && !place->leaver->is_fenced)
            return true;
    }
    return false;
}

static enum sw_hold_verb take_back_verb(const struct member *member)
{
    if (member->is_active)
        return SW_HOLD_FENCE;
    if (is_pause_due(member))
        return SW_HOLD_PAUSE;
    if (!member->has_right)
        return SW_HOLD_FENCE;
    return member->d->is_paused && !member->is_users_pause ? SW_HOLD_PAUSE : SW_HOLD_TAKE_BACK;
}

/* `taking` is the number of the take back of a complete one that bore the right; 0: another write.
 */
static void note_sent(struct work *work, const struct member *member, uint64_t taking)
{
    for (uint32_t g = 0; g < work->group_count; g++) {
        struct place *place = coord_place(&work->groups[g], member);
        if (!place || !place->leaves)
            continue;
        place->leaver->sent_epoch = work->groups[g].m->epoch;
        place->leaver->taking = taking;
    }
}

static void paused_remarks(struct work *work, const struct member *member,
                           struct coord_action *action)
{
    for (uint32_t g = 0; g < work->group_count; g++) {
        const struct place *place = coord_place(&work->groups[g], member);
        if (place && place->leaves)
            coord_remark_add(
                &action->remarks,
                coord_about(member,
                            coord_remark(work->arena, true, work->groups[g].name, SW_NORMAL,
                                         "DeploymentPaused", "paused %s", member->m->full)));
    }
}

static void take_back(struct work *work, struct member *member)
{
    if (!member->d) {
        if (needs_write(work, member) && coord_get_member(work, member))
            note_sent(work, member, 0);
        return;
    }
    if (!needs_write(work, member))
        return;
    struct coord_action *action = coord_hold(work, member, take_back_verb(member), "PauseFailed");
    if (!action)
        return;
    action->is_chain = true;
    action->owners = leaving_owners(work, member);
    if (action->verb == SW_HOLD_FENCE)
        action->fence = fence_text(work, member);
    if (action->verb == SW_HOLD_PAUSE && !member->d->is_paused)
        paused_remarks(work, member, action);
    if (member->group_count == 0)
        action->marks = NULL;
    bool is_taking = action->had_right && action->was_complete && action->verb != SW_HOLD_FENCE;
    note_sent(work, member, is_taking ? action->number : 0);
}

static bool leaves_somewhere(const struct work *work, const struct member *member)
{
    for (uint32_t g = 0; g < work->group_count; g++) {
        const struct place *place = coord_place(&work->groups[g], member);
        if (place && place->leaves && !place->is_ready)
            return true;
    }
    return false;
}

/* ---- who may be released ---- */

static bool others_roll(const struct group *group, const struct member *member)
{
    bool counts_itself = !coord_place(group, member) && (member->is_rolling || member->has_right);

    return group->rolling_count > (counts_itself ? 1U : 0U);
}

static bool may_release(struct work *work, struct member *member)
{
    if (!member->is_active || member->is_confirmed || member->is_users_pause ||
        member->is_finished || member->seen->others != SW_VERDICT_FREE)
        return false;
    for (uint32_t i = 0; i < member->group_count; i++) {
        const struct group *group = member->groups[i];
        if (others_roll(group, member) || group->is_adopting ||
            strcmp(group->m->version, group->c->meta.resource_version) != 0)
            return false;
    }
    return coord_member_is_free(work, member);
}

/* The own (b) of all its coordinations stands, and nothing newer is known of it. */
static bool is_release_backed(const struct member *member)
{
    const struct member_memory *m = member->m;

    if (!m->known_version || strcmp(m->known_version, member->d->meta.resource_version) != 0)
        return false;
    for (uint32_t i = 0; i < member->group_count; i++)
        if (member->groups[i]->m->own_sequence < m->known_sequence ||
            !coord_place(member->groups[i], member))
            return false;
    return true;
}

static void know(struct work *work, struct member *member)
{
    coord_memory_set(&member->m->known_version, member->d->meta.resource_version);
    member->m->known_sequence = ++work->memory->sequence;
}

static void release_remarks(struct work *work, const struct member *member,
                            struct coord_action *action)
{
    const char *name = member->m->full;

    if (member->has_right)
        return;
    for (uint32_t i = 0; i < member->group_count; i++) {
        const char *group = member->groups[i]->name;
        coord_remark_add(
            &action->remarks,
            coord_about(member, coord_remark(work->arena, true, group, SW_NORMAL,
                                             "DeploymentActivated", "it is the turn of %s", name)));
        if (member->d->is_paused)
            coord_remark_add(
                &action->remarks,
                coord_about(member, coord_remark(work->arena, true, group, SW_NORMAL,
                                                 "DeploymentUnpaused", "resumed %s", name)));
        coord_remark_add(
            &action->remarks,
            coord_about(member, coord_remark(work->arena, true, group, SW_NORMAL,
                                             "ActiveDeploymentChanged", "active is %s", name)));
    }
    coord_remark_add(
        &action->remarks,
        coord_about(member,
                    coord_remark(work->arena, false, member->name, SW_NORMAL, "RolloutReleased",
                                 "its turn in coordination %s", member->marks)));
}

static void release(struct work *work, struct member *member)
{
    struct coord_action *action = coord_hold(work, member, SW_HOLD_RELEASE, "ActivationFailed");

    if (!action)
        return;
    action->is_chain = true;
    if (member->d->is_paused)
        action->failure = "UnpauseFailed";
    if (member->m->pending_since_us)
        action->waited_us = work->snapshot->wall_us - member->m->pending_since_us;
    for (uint32_t i = 0; i < member->group_count; i++) {
        uint64_t since_ms = member->groups[i]->m->handing_since_ms;
        if (since_ms == NEVER)
            continue;
        action->is_handover = true;
        action->handing_ms = SW_MAX(action->handing_ms, work->snapshot->now_ms - since_ms);
    }
    release_remarks(work, member, action);
    /* Whatever comes of it: never (c) again on the strength of the same (b). */
    coord_memory_set(&member->m->known_version, NULL);
}

/* ---- (b) and (c) ---- */

static void renew(struct work *work, struct member *member)
{
    struct member_memory *m = member->m;

    for (uint32_t i = 0; i < member->group_count; i++)
        if (!member->groups[i]->may_record)
            return;
    if (!m->known_version || strcmp(m->known_version, member->d->meta.resource_version) != 0)
        know(work, member);
    for (uint32_t i = 0; i < member->group_count; i++)
        if (member->groups[i]->m->own_sequence < m->known_sequence)
            member->groups[i]->needs_record = true;
}

static bool has_room_to_join(const struct group *group)
{
    return group->kept + group->unready + group->chosen < group->max_active;
}

static void advance(struct work *work, struct member *member)
{
    if (!may_release(work, member))
        return;
    if (is_release_backed(member)) {
        release(work, member);
        return;
    }
    for (uint32_t i = 0; i < member->group_count; i++)
        if (!coord_place(member->groups[i], member) && !has_room_to_join(member->groups[i]))
            return;
    renew(work, member);
}

static void record(struct work *work, struct group *group)
{
    for (uint32_t i = 0; i < group->place_count; i++) {
        struct place *place = &group->places[i];
        if (place->leaves && place->is_ready)
            group->needs_record = true;
        const struct member_memory *m = place->member ? place->member->m : NULL;
        if (place->leaves && m && (place->is_ready || m->requests.writing || m->requests.reading))
            group->is_in_chain = true;
    }
    if (!group->needs_record)
        return;
    group->is_in_chain = true;
    if (group->may_record)
        coord_write_status(work, group, true);
}

/* A hand-over begins when somebody is to leave, and ends when nobody is and all that have a place
 * are released. */
static void time_hand_over(const struct work *work, struct group *group)
{
    struct group_memory *m = group->m;
    bool leaves = false, waits = group->chosen > 0;

    for (uint32_t i = 0; i < group->place_count; i++) {
        const struct place *place = &group->places[i];
        leaves |= place->leaves;
        waits |= place->member && place->member->is_active && !place->member->is_confirmed;
    }
    if (!leaves && !waits)
        m->handing_since_ms = NEVER;
    else if (leaves && m->handing_since_ms == NEVER)
        m->handing_since_ms = work->snapshot->now_ms;
}

void coord_chain(struct work *work)
{
    for (uint32_t i = 0; i < work->member_count; i++) {
        struct member *member = &work->members[i];
        if (member->is_recorded && leaves_somewhere(work, member))
            take_back(work, member);
        if (member->is_active)
            advance(work, member);
        if (member->is_chosen)
            know(work, member);
    }
    for (uint32_t g = 0; g < work->group_count; g++) {
        if (!work->groups[g].is_adopting)
            record(work, &work->groups[g]);
        time_hand_over(work, &work->groups[g]);
    }
}
