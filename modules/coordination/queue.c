/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who waits, in which order, and who is next.
 *
 * First those that had no turn since the longest waiting one began to wait, so that everyone waits
 * for at most one turn of each other; then the annotation slipway.dev/order; then the name. Where
 * coordinations overlap the order is one for all of them: with two orders, two members could each
 * wait for the place that the other is first in line for.
 */
#include "work.h"

#include <stdlib.h>

/* ---- components: coordinations that share a member have one line ---- */

static uint32_t root_of(struct work *work, uint32_t g)
{
    while (work->groups[g].component != g) {
        work->groups[g].component = work->groups[work->groups[g].component].component;
        g = work->groups[g].component;
    }
    return g;
}

static void find_components(struct work *work)
{
    for (uint32_t g = 0; g < work->group_count; g++)
        work->groups[g].component = g;
    for (uint32_t i = 0; i < work->member_count; i++) {
        const struct member *member = &work->members[i];
        for (uint32_t k = 1; k < member->group_count; k++) {
            uint32_t a = root_of(work, (uint32_t)(member->groups[0] - work->groups));
            uint32_t b = root_of(work, (uint32_t)(member->groups[k] - work->groups));
            work->groups[a < b ? b : a].component = a < b ? a : b;
        }
    }
}

/* ---- the line ---- */

/* Its first rollout, paused, would look as if it had nothing to do. It has begun, and the history
 * says so. (Later ones have outdated Pods, or only wait for the last ones to become available.) */
static void note_begun(struct work *work, struct member *member)
{
    const char *revision = sw_annotation(&member->d->meta, COORD_REVISION);
    struct member_memory *m = member->m;

    if (member->is_pending || !member->is_moving || member->is_aside ||
        (revision && strcmp(revision, "1") != 0))
        return;
    member->is_pending = m->was_pending = true;
    m->started_us = coord_state_now(work);
    if (m->started_us <= m->finished_us)
        m->started_us = m->finished_us + SECOND_US;
    m->pending_since_us = coord_state_now(work);
}

static bool waits(const struct member *member)
{
    return member->d && member->group_count > 0 && !member->is_leaving_cluster &&
           !member->is_recorded && (member->is_pending || member->is_moving) && !member->is_aside &&
           !member->is_users_pause && member->seen->others != SW_VERDICT_HOLD_OUT_OF_LINE;
}

/* When the longest waiting one of a line began to wait, and the one after it; 0: there is none. */
struct longest {
    int64_t first_us, second_us;
};

/* Since the longest waiting one began to wait, or sent behind another that waited at that time. The
 * times are of whole seconds: whose own wait began in the second in which its last turn ended has
 * had none since, else it would be last in line for ever. */
static bool had_turn(const struct member *member, const struct longest *longest)
{
    const struct member_memory *m = member->m;
    int64_t since_us = longest->first_us;
    int64_t others_us = m->pending_since_us == since_us ? longest->second_us : since_us;
    int64_t last_us = m->finished_us > m->started_us ? m->finished_us : m->started_us;

    if (!since_us)
        return false;
    if ((others_us && member->skip_us >= others_us) || last_us > since_us)
        return true;
    return last_us == since_us && m->pending_since_us > since_us;
}

static bool is_cure(const struct member *member)
{
    bool has_guard = false;

    for (uint32_t i = 0; i < member->group_count; i++)
        has_guard |= member->groups[i]->has_guard;
    return has_guard && member->is_counted_by_guard;
}

static int compare_share(const struct member *a, const struct member *b)
{
    int64_t x = (int64_t)a->d->available_replicas * b->d->replicas;
    int64_t y = (int64_t)b->d->available_replicas * a->d->replicas;

    return (x > y) - (x < y);
}

static int compare_line(const void *a, const void *b)
{
    const struct member *x = *(struct member *const *)a, *y = *(struct member *const *)b;
    bool x_cures = is_cure(x), y_cures = is_cure(y);

    if (x->component != y->component)
        return x->component < y->component ? -1 : 1;
    if (x_cures != y_cures)
        return x_cures ? -1 : 1;
    if (x_cures && compare_share(x, y) != 0)
        return compare_share(x, y);
    if (x->had_turn != y->had_turn)
        return x->had_turn ? 1 : -1;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void note_wait(struct longest *longest, int64_t began_us)
{
    if (!began_us)
        return;
    if (!longest->first_us || began_us < longest->first_us) {
        longest->second_us = longest->first_us;
        longest->first_us = began_us;
    } else if (!longest->second_us || began_us < longest->second_us) {
        longest->second_us = began_us;
    }
}

static void line_up(struct work *work)
{
    struct longest *longest = SW_ARENA_ARRAY(work->arena, work->group_count + 1, struct longest);

    work->line = SW_ARENA_ARRAY(work->arena, work->member_count + 1, struct member *);
    for (uint32_t i = 0; i < work->member_count; i++) {
        struct member *member = &work->members[i];
        if (member->d && member->group_count > 0 && !member->is_recorded)
            note_begun(work, member);
        if (!waits(member))
            continue;
        member->is_waiting = true;
        member->component = root_of(work, (uint32_t)(member->groups[0] - work->groups));
        note_wait(&longest[member->component], member->m->pending_since_us);
        work->line[work->line_count++] = member;
    }
    for (uint32_t i = 0; i < work->line_count; i++) {
        struct member *member = work->line[i];
        member->had_turn = had_turn(member, &longest[member->component]);
    }
    qsort(work->line, work->line_count, sizeof(struct member *), compare_line);
}

static void fill_queues(struct work *work)
{
    for (uint32_t i = 0; i < work->line_count; i++)
        for (uint32_t k = 0; k < work->line[i]->group_count; k++)
            work->line[i]->groups[k]->queue_count++;
    for (uint32_t g = 0; g < work->group_count; g++) {
        struct group *group = &work->groups[g];
        group->queue = SW_ARENA_ARRAY(work->arena, group->queue_count + 1, struct member *);
        group->queue_count = 0;
    }
    for (uint32_t i = 0; i < work->line_count; i++)
        for (uint32_t k = 0; k < work->line[i]->group_count; k++) {
            struct group *group = work->line[i]->groups[k];
            group->queue[group->queue_count++] = work->line[i];
        }
}

/* ---- who is next ---- */

enum obstacle {
    NOTHING,
    NOT_YET,   /* passes by itself in a moment: keep the place for it */
    NO_PLACE,  /* another one has its turn */
    FORBIDDEN, /* passed over */
};

static bool has_place(const struct group *group)
{
    return group->kept + group->joining + group->unready + group->chosen + group->reserved <
           group->max_active;
}

static bool is_guarded(struct group *group, const struct member *member)
{
    if (!group->has_guard || group->unavailable_count == 0 || member->is_unavailable)
        return false;
    group->blocked_by = group->unavailable;
    return true;
}

static bool is_found_rolling(const struct member *member)
{
    return member->is_rolling && !member->d->is_paused;
}

/* The others are settled and everybody is marked. The candidate itself may be rolling; so may
 * others beside it for which a place is kept, else they would wait for each other. */
static bool are_others_settled(const struct group *group, const struct member *member)
{
    uint32_t own = !member->is_settled || member->has_right ? 1 : 0;

    if (is_found_rolling(member))
        own += group->spared;
    return group->unmarked_count == 0 && group->unsettled_count == own;
}

/* Whoever has a place there goes on, and will give it up. */
static bool is_place_moving(const struct group *group)
{
    for (uint32_t i = 0; i < group->place_count; i++) {
        const struct member *member = group->places[i].member;
        if (member && !group->places[i].leaves && (member->is_failed || coord_is_stopped(member)))
            return false;
    }
    return true;
}

/* ---- for whom the choice waits ---- */

/* In one run this changes within milliseconds; what lasts longer is said in the status. The text
 * stays while the same one is in the way, and another is named only after the same time. */
#define BLOCKED_MS 10000

/* Why the choice in a group has to wait for a member of it; NULL: it has not. */
static const char *why_blocks(const struct group *group, const struct member *member,
                              const struct member *candidate)
{
    if (!coord_list_names(member->marked, group->name))
        return "%s is not marked yet";
    if (coord_place(group, member))
        return NULL;
    if (!member->is_observed)
        return "the Deployment controller has not observed %s yet";
    if (member == candidate)
        return NULL;
    if (member->has_right)
        return "%s still has the right to roll";
    return member->is_rolling ? "%s is still rolling" : NULL;
}

static void note_blocker(const struct member *candidate)
{
    const struct member *blocker = NULL;
    const char *text = NULL;

    for (uint32_t i = 0; i < candidate->group_count && !text; i++) {
        const struct group *group = candidate->groups[i];
        for (uint32_t k = 0; k < group->member_count && !text; k++) {
            blocker = group->members[k];
            text = why_blocks(group, blocker, candidate);
        }
    }
    for (uint32_t i = 0; i < candidate->group_count && text; i++) {
        struct group *group = candidate->groups[i];
        if (group->blocker)
            continue;
        group->candidate = candidate;
        group->blocker = blocker;
        group->blocked_text = text;
    }
}

static bool still_blocks(const struct work *work, const struct group *group)
{
    const struct member *member = coord_memory_find(work, group->m->blocker);

    for (uint32_t i = 0; member && member->d && i < member->group_count; i++)
        if (why_blocks(member->groups[i], member, group->candidate))
            return true;
    return false;
}

static void name_blocker(struct work *work, struct group *group)
{
    struct group_memory *m = group->m;
    uint64_t now = work->snapshot->now_ms;

    if (!group->blocker || group->kept + group->joining + group->unready + group->chosen > 0) {
        m->blocked_since_ms = NEVER;
        coord_memory_set(&m->blocker, NULL);
        return;
    }
    if (m->blocked_since_ms == NEVER)
        m->blocked_since_ms = now;
    if (m->blocker && still_blocks(work, group))
        return;
    uint64_t at_ms = (m->blocker ? m->named_ms : m->blocked_since_ms) + BLOCKED_MS;
    if (now < at_ms) {
        coord_look_again(work, at_ms);
        return;
    }
    coord_memory_set(&m->blocker, group->blocker->name);
    m->blocked_text = group->blocked_text;
    m->named_ms = now;
}

/* ---- is it the next? ---- */

/* Another policy prepares it in its turn, as when it writes down where it begins: that takes a
 * moment. What a person holds is passed over. */
static bool is_being_prepared(const struct member *member)
{
    return member->seen->others == SW_VERDICT_HOLD && member->is_held &&
           !sw_annotation(&member->d->meta, SW_HOLD_BY_USER);
}

static enum obstacle obstacle_of(struct work *work, struct member *member)
{
    enum obstacle worst = NOTHING;
    const struct member_memory *m = member->m;

    bool is_prepared = is_being_prepared(member);

    if (member->seen->others != SW_VERDICT_FREE && !is_prepared)
        return FORBIDDEN;
    if (m->requests.retry_ms > work->snapshot->now_ms) {
        coord_look_again(work, m->requests.retry_ms);
        return FORBIDDEN;
    }
    for (uint32_t i = 0; i < member->group_count; i++) {
        struct group *group = member->groups[i];
        bool is_free = has_place(group);
        if (group->c->is_suspended || (is_free && is_guarded(group, member)))
            return FORBIDDEN;
        if (!is_free)
            worst = is_place_moving(group) && worst != FORBIDDEN ? NO_PLACE : FORBIDDEN;
        else if (worst == NOTHING &&
                 (group->is_adopting || !group->may_record || !are_others_settled(group, member)))
            worst = NOT_YET;
    }
    if (worst == NOTHING && is_prepared)
        return NOT_YET;
    if (worst == NOTHING && (!member->is_observed || m->requests.writing || m->requests.reading ||
                             m->requests.must_read))
        worst = NOT_YET;
    if (worst == NOT_YET)
        note_blocker(member);
    return worst;
}

static void reserve(struct member *member)
{
    for (uint32_t i = 0; i < member->group_count; i++)
        member->groups[i]->reserved++;
}

/* It is active now, and the guard counts no active ones. */
static void uncount(struct group *group, const struct member *member)
{
    if (!member->is_counted_by_guard)
        return;
    group->unavailable_count--;
    for (uint32_t i = 0; i < group->member_count && group->unavailable_count > 0; i++) {
        struct member *other = group->members[i];
        if (other->is_counted_by_guard && !other->is_chosen && !coord_place(group, other))
            group->unavailable = other;
    }
}

static void choose(struct member *member)
{
    member->is_chosen = true;
    for (uint32_t i = 0; i < member->group_count; i++) {
        uncount(member->groups[i], member);
        member->groups[i]->chosen++;
        member->groups[i]->needs_record = true;
    }
}

/* Found rolling without a place: it gets one that is free, or is paused (rest.c). */
static void consider_rolling(struct work *work, struct member *member)
{
    switch (obstacle_of(work, member)) {
    case NOTHING:
        member->is_spared = true;
        choose(member);
        break;
    case NOT_YET:
        member->is_spared = true;
        reserve(member);
        for (uint32_t i = 0; member->is_observed && i < member->group_count; i++)
            member->groups[i]->spared++;
        break;
    case NO_PLACE:
    case FORBIDDEN:
        break;
    }
}

static void consider_waiting(struct work *work, struct member *member)
{
    switch (obstacle_of(work, member)) {
    case NOTHING:
        choose(member);
        break;
    case NOT_YET:
    case NO_PLACE:
        /* In one coordination this changes nothing; in several it keeps the others of the line from
         * taking turns for ever with places that it needs together. */
        reserve(member);
        break;
    case FORBIDDEN:
        break;
    }
}

void coord_queue(struct work *work)
{
    find_components(work);
    line_up(work);
    fill_queues(work);
    for (uint32_t i = 0; i < work->line_count; i++)
        if (is_found_rolling(work->line[i]))
            consider_rolling(work, work->line[i]);
    for (uint32_t i = 0; i < work->line_count; i++)
        if (!is_found_rolling(work->line[i]))
            consider_waiting(work, work->line[i]);
    for (uint32_t g = 0; g < work->group_count; g++)
        name_blocker(work, &work->groups[g]);
}
