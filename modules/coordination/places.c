/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who keeps a place in the recorded active sets, who leaves one and why, and what stands in the way
 * of somebody new. Active means recorded in all coordinations that select it; whoever cannot have
 * all of its places gives up those it has. The order of members is the same everywhere, so that
 * several coordinations come to one answer.
 */
#include "work.h"

#include <stdlib.h>

struct place *coord_place(const struct group *group, const struct member *member)
{
    if (!member->is_recorded)
        return NULL;
    for (uint32_t i = 0; i < group->place_count; i++)
        if (group->places[i].member == member)
            return &group->places[i];
    return NULL;
}

static bool is_selected_by(const struct member *member, const struct group *group)
{
    for (uint32_t i = 0; i < member->group_count; i++)
        if (member->groups[i] == group)
            return true;
    return false;
}

/* ---- whose turn is over ---- */

static uint64_t wait_ms(const struct member *member)
{
    int32_t seconds = 0;

    for (uint32_t i = 0; i < member->group_count; i++)
        if (member->groups[i]->c->min_ready_seconds > seconds)
            seconds = member->groups[i]->c->min_ready_seconds;
    return (uint64_t)seconds * 1000;
}

/*
 * One that bears the right ends its turn when it has been complete for the wait; that it lost a Pod
 * or was scaled since then changes nothing. One without the right has nothing to wait for: either
 * its turn ended before (the write that records it got lost), or its template was put back.
 */
static bool is_turn_over(struct work *work, const struct member *member)
{
    const struct member_memory *m = member->m;

    if (!member->has_right)
        return member->is_observed && !member->is_pending && !member->is_rolling;
    if (m->complete_since_ms == NEVER)
        return false;
    uint64_t end = m->complete_since_ms + wait_ms(member);
    if (work->snapshot->now_ms >= end)
        return true;
    coord_look_again(work, end);
    return false;
}

static bool is_put_aside(const struct member *member)
{
    if (!member->is_aside || member->is_given_up)
        return member->is_aside;
    /* Held only after every coordination has it in writing. */
    for (uint32_t i = 0; i < member->group_count; i++) {
        const struct coordination *c = member->groups[i]->c;
        const struct coord_entry *entries = c->states.at;
        bool is_written = false;
        for (uint32_t k = 0; k < c->states.count && !is_written; k++)
            is_written = strcmp(entries[k].name, member->m->full) == 0 &&
                         strcmp(entries[k].failed_template, member->m->failed_template) == 0;
        if (!is_written)
            return false;
    }
    return true;
}

/* Recorded, but its rollout has not begun, and now it must not. */
static bool has_lost_its_start(const struct member *member)
{
    if (member->has_right || !member->d->is_paused || member->is_users_pause)
        return false;
    if (member->seen->others != SW_VERDICT_FREE)
        return true;
    for (uint32_t i = 0; i < member->group_count; i++)
        if (member->groups[i]->c->is_suspended)
            return true;
    return false;
}

/* In the middle of its turn another policy has something to wait for, so that it may be long: a
 * newer template, and somebody who is asked whether it may roll. It queues again. What a person
 * holds keeps its place. */
static bool is_sent_back(const struct member *member)
{
    return member->is_held && !member->is_given_up &&
           member->seen->others == SW_VERDICT_HOLD_OUT_OF_LINE &&
           !sw_annotation(&member->d->meta, SW_HOLD_BY_USER);
}

/* Taken back, or about to be: the watch may show the take back, and what others wrote behind it,
 * before its answer is here. A take back that fails is under way no more. */
static bool is_taken_anywhere(const struct work *work, const struct member *member)
{
    for (uint32_t g = 0; g < work->group_count; g++) {
        struct leaver *leaver = coord_memory_leaver(work->groups[g].m, member->name, false);
        if (leaver &&
            (leaver->is_taken || (leaver->taking && leaver->taking == member->m->requests.writing)))
            return true;
    }
    return false;
}

static bool leaves_all(struct work *work, struct member *member)
{
    if (!member->d || member->is_leaving_cluster || member->m->is_stranger ||
        member->group_count == 0)
        return true;
    if (is_taken_anywhere(work, member)) {
        member->is_finished = true;
        return true;
    }
    bool is_over = is_turn_over(work, member);
    member->is_finished = is_over && !member->is_aside;
    return is_over || is_put_aside(member) || is_sent_back(member) || has_lost_its_start(member);
}

/* With Skip, what has failed is put aside; the status says so before anything else happens. */
static void put_aside_failed(struct member *member)
{
    bool is_skipped = member->group_count > 0;

    /* What another policy has given up is put aside for as long as it says so. */
    if (!member->is_failed || !member->is_recorded || member->is_given_up)
        return;
    for (uint32_t i = 0; i < member->group_count; i++)
        is_skipped = is_skipped && member->groups[i]->skips_failed;
    if (!is_skipped)
        return;
    sw_hash128_text(member->d->template_hash, member->m->failed_template);
    member->is_aside = true;
    member->is_pending = member->m->was_pending = false;
    member->m->pending_since_us = 0;
}

bool coord_is_stopped(const struct member *member)
{
    if (!member->d || !member->is_active || member->is_complete ||
        member->m->complete_since_ms != NEVER)
        return false;
    return member->is_users_pause || sw_annotation(&member->d->meta, SW_HOLD_BY_USER);
}

/* ---- who keeps ---- */

static int compare_order(const void *a, const void *b)
{
    const struct member *x = *(struct member *const *)a, *y = *(struct member *const *)b;

    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Whoever else has paused it resumes it: its right has not ended. */
static bool is_confirmed(const struct member *member)
{
    bool is_paused_by_us =
        member->d->is_paused && !member->is_users_pause && (member->has_hold || !member->is_held);

    if (!member->has_right || is_paused_by_us)
        return false;
    for (uint32_t i = 0; i < member->group_count; i++) {
        const char *list = member->released_by, *at, *name = member->groups[i]->name;
        size_t len, name_len;
        bool is_named = false;
        while (!is_named && (at = coord_list_next(&list, &len)))
            is_named = (at = coord_owner_name(at, len, &name_len)) && strlen(name) == name_len &&
                       memcmp(at, name, name_len) == 0;
        if (!is_named)
            return false;
    }
    return true;
}

static void give_places(struct member *member)
{
    for (uint32_t i = 0; i < member->group_count; i++) {
        const struct group *group = member->groups[i];
        if (group->kept + group->joining >= group->max_active)
            return;
    }
    for (uint32_t i = 0; i < member->group_count; i++) {
        struct group *group = member->groups[i];
        if (coord_place(group, member))
            group->kept++;
        else
            group->joining++;
    }
    member->is_active = true;
    member->is_confirmed = is_confirmed(member);
}

static void keep(struct work *work)
{
    struct member **recorded = SW_ARENA_ARRAY(work->arena, work->member_count + 1, struct member *);
    uint32_t count = 0;

    for (uint32_t i = 0; i < work->member_count; i++) {
        struct member *member = &work->members[i];
        if (!member->is_recorded)
            continue;
        if (member->d)
            put_aside_failed(member);
        member->leaves_all = leaves_all(work, member);
        bool is_selected_where_recorded = false;
        for (uint32_t k = 0; k < member->group_count; k++)
            is_selected_where_recorded |= coord_place(member->groups[k], member) != NULL;
        if (!is_selected_where_recorded)
            member->leaves_all = true;
        if (!member->leaves_all)
            recorded[count++] = member;
    }
    qsort(recorded, count, sizeof(struct member *), compare_order);
    for (uint32_t i = 0; i < count; i++)
        give_places(recorded[i]);
}

/* ---- who leaves ---- */

/* May (b) drop it? Only after an own write on it since the status was read; and one that was not
 * complete when its right ended must be seen paused. */
static bool is_ready(const struct place *place)
{
    const struct member *member = place->member;
    const struct leaver *leaver = place->leaver;

    if (!member)
        return true;
    if (!leaver->is_fenced)
        return false;
    if (!member->d || member->is_active)
        return true;
    if (member->has_right)
        return false;
    if (member->is_leaving_cluster || leaver->is_taken || member->is_complete)
        return true;
    return member->is_settled && member->d->is_paused;
}

static void leave(struct group *group)
{
    for (uint32_t i = 0; i < group->place_count; i++) {
        struct place *place = &group->places[i];
        struct member *member = place->member;
        place->leaves = !member || !member->is_active || !is_selected_by(member, group);
        if (!place->leaves) {
            coord_memory_forget_leaver(group->m, place->name);
            continue;
        }
        if (member)
            coord_memory_leaver(group->m, place->name, true);
    }
    /* The array of leavers stands still from here on. */
    for (uint32_t i = 0; i < group->place_count; i++) {
        struct place *place = &group->places[i];
        if (!place->leaves)
            continue;
        place->leaver = coord_memory_leaver(group->m, place->name, false);
        place->is_ready = is_ready(place);
        if (!place->is_ready)
            group->unready++;
    }
}

/* Leavers that are recorded no more: somebody else has dropped them. */
static void forget_dropped(struct group *group)
{
    for (uint32_t i = 0; i < group->m->leaver_count;) {
        bool is_recorded = false;
        for (uint32_t k = 0; k < group->place_count && !is_recorded; k++)
            is_recorded = strcmp(group->places[k].name, group->m->leavers[i].name) == 0;
        if (is_recorded)
            i++;
        else
            coord_memory_forget_leaver(group->m, group->m->leavers[i].name);
    }
}

/* ---- what stands in the way ---- */

bool coord_is_adopted(const struct group *group, const struct member *member)
{
    const struct coordination *c = group->c;

    if (c->observed_generation != 0 || !member->is_users_pause || member->has_right)
        return false;
    for (uint32_t i = 0; i < c->deployments.count; i++)
        if (strcmp(c->deployments.at[i], member->m->full) == 0)
            return true;
    return false;
}

/* Until the last of them is marked; then our own status ends it for good. */
static bool is_adopting(const struct group *group)
{
    for (uint32_t i = 0; i < group->member_count; i++)
        if (coord_is_adopted(group, group->members[i]))
            return true;
    return false;
}

static void count_obstacles(struct group *group)
{
    for (uint32_t i = 0; i < group->member_count; i++) {
        struct member *member = group->members[i];
        if (!coord_list_names(member->marked, group->name))
            group->unmarked_count++;
        if (coord_place(group, member))
            continue;
        if (!member->is_settled || member->has_right) {
            group->unsettled_count++;
            group->unsettled = member;
        }
        if (member->is_rolling || member->has_right) {
            group->rolling_count++;
            group->rolling = member;
        }
        if (member->is_counted_by_guard) {
            group->unavailable_count++;
            group->unavailable = member;
        }
    }
}

void coord_places(struct work *work)
{
    for (uint32_t g = 0; g < work->group_count; g++)
        forget_dropped(&work->groups[g]);
    keep(work);
    for (uint32_t g = 0; g < work->group_count; g++) {
        struct group *group = &work->groups[g];
        leave(group);
        count_obstacles(group);
        group->is_adopting = is_adopting(group);
        group->may_record = coord_group_is_free(work, group);
    }
}
