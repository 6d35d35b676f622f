/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is left of a coordination that is gone, or that selects a Deployment no more: the residual
 * group, which needs no other memory than what its members bear. Those with nothing to roll are
 * freed at once, the others one at a time.
 *
 * There is no status to record in, so here the lease decides. Every member is written once by this
 * leader before the first release, so that no release of an earlier leader can still arrive.
 */
#include "work.h"

#include <stdlib.h>

/* Missing in two lists at least this far apart: one list may come from a server that is behind. */
#define VANISHED_MS 30000

struct token {
    const char *at;
    size_t len;
};

/* ---- is it gone? ---- */

static bool is_group(const struct work *work, struct token name)
{
    for (uint32_t g = 0; g < work->group_count; g++)
        if (strlen(work->groups[g].name) == name.len &&
            memcmp(work->groups[g].name, name.at, name.len) == 0)
            return true;
    return false;
}

/* Gone for good, as far as can be known; else asks for another list when the time has come. */
static bool is_vanished(struct work *work, struct token name)
{
    const struct coord_snapshot *snapshot = work->snapshot;
    struct missing *missing = coord_memory_missing(work->memory, name.at, name.len);
    uint64_t listed_ms =
        snapshot->now_ms > snapshot->list_age_ms ? snapshot->now_ms - snapshot->list_age_ms : 0;

    missing->is_named = true;
    if (missing->is_vanished)
        return true;
    if (!missing->list) {
        missing->list = snapshot->lists;
        missing->since_ms = listed_ms;
    }
    if (snapshot->lists != missing->list && listed_ms >= missing->since_ms + VANISHED_MS) {
        missing->is_vanished = true;
        return true;
    }
    if (snapshot->now_ms >= missing->since_ms + VANISHED_MS) {
        work->result->wants_relist |= missing->asked_list != snapshot->lists;
        missing->asked_list = snapshot->lists;
    } else {
        coord_look_again(work, missing->since_ms + VANISHED_MS);
    }
    return false;
}

/* ---- members and their groups ---- */

struct orphan {
    struct member *member;
    uint32_t root; /* index of the first orphan of its group */
};

static bool next_name(const char **list, struct token *ret_name)
{
    const char *at;
    size_t len;

    while ((at = coord_list_next(list, &len)))
        if ((ret_name->at = coord_owner_name(at, len, &ret_name->len)))
            return true;
    return false;
}

static bool all_are_gone(struct work *work, const struct member *member)
{
    const char *lists[] = {member->held_by, member->released_by};
    const char *marks = member->marked;
    struct token name;
    bool is_gone = true;

    for (int i = 0; i < 2; i++)
        while (next_name(&lists[i], &name))
            is_gone &= is_group(work, name) || is_vanished(work, name);
    while ((name.at = coord_list_next(&marks, &name.len)))
        is_gone &= is_group(work, name) || is_vanished(work, name);
    return is_gone;
}

static uint32_t root_of(struct orphan *orphans, uint32_t i)
{
    while (orphans[i].root != i)
        i = orphans[i].root = orphans[orphans[i].root].root;
    return i;
}

/* A name that one of them bears. */
struct bearer {
    struct token name;
    uint32_t orphan;
};

static int compare_bearers(const void *a, const void *b)
{
    const struct bearer *x = a, *y = b;
    int order = memcmp(x->name.at, y->name.at, SW_MIN(x->name.len, y->name.len));

    return order ? order : (x->name.len > y->name.len) - (x->name.len < y->name.len);
}

/* How many names they bear; written down where there is room for them. */
static uint32_t list_bearers(const struct orphan *orphans, uint32_t count, struct bearer *ret_list)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < count; i++) {
        const char *lists[] = {orphans[i].member->held_by, orphans[i].member->released_by};
        struct token name;
        for (int k = 0; k < 2; k++)
            while (next_name(&lists[k], &name)) {
                if (ret_list)
                    ret_list[found] = (struct bearer){name, i};
                found++;
            }
    }
    return found;
}

/* Those that share a name are of one group; so are, by the few that bear several, those of all of
 * these. */
static void find_groups(struct work *work, struct orphan *orphans, uint32_t count)
{
    uint32_t found = list_bearers(orphans, count, NULL);
    struct bearer *list = SW_ARENA_ARRAY(work->arena, found + 1, struct bearer);

    for (uint32_t i = 0; i < count; i++)
        orphans[i].root = i;
    list_bearers(orphans, count, list);
    qsort(list, found, sizeof *list, compare_bearers);
    for (uint32_t i = 1; i < found; i++) {
        if (compare_bearers(&list[i - 1], &list[i]) != 0)
            continue;
        uint32_t a = root_of(orphans, list[i - 1].orphan), b = root_of(orphans, list[i].orphan);
        orphans[a < b ? b : a].root = a < b ? a : b;
    }
}

/* ---- what becomes of one ---- */

static const char *fence_text(struct work *work, const struct member *member)
{
    const char *now = sw_annotation(&member->d->meta, SW_FENCE);
    const char *text = sw_arena_printf(work->arena, "%lld", (long long)work->snapshot->term);

    return now && strcmp(now, text) == 0 ? sw_arena_printf(work->arena, "%s+", text) : text;
}

static const char *own_owners(struct work *work, const struct member *member)
{
    const char *lists[] = {member->held_by, member->released_by}, *owners = "";
    struct token name;

    for (int i = 0; i < 2 && !owners[0]; i++)
        while (next_name(&lists[i], &name))
            owners = sw_arena_printf(work->arena, "%s%s" COORD_POLICY "/%.*s", owners,
                                     owners[0] ? "," : "", (int)name.len, name.at);
    return owners;
}

static void send(struct work *work, struct member *member, enum sw_hold_verb verb)
{
    struct coord_action *action = coord_hold(work, member, verb, NULL);

    if (!action)
        return;
    action->owners = own_owners(work, member);
    action->marks =
        verb == SW_HOLD_FREE || verb == SW_HOLD_TAKE_BACK || verb == SW_HOLD_MARK ? "" : NULL;
    if (verb == SW_HOLD_FENCE)
        action->fence = fence_text(work, member);
    if (verb == SW_HOLD_RELEASE || (verb == SW_HOLD_FREE && member->d->is_paused))
        coord_remark_add(&action->remarks,
                         coord_about(member, coord_remark(work->arena, false, member->name,
                                                          SW_NORMAL, "RolloutReleased",
                                                          "no coordination holds it any more")));
}

/* Nothing to roll, or what rolls has failed: it is nobody's any more. */
static bool is_to_be_freed(const struct member *member)
{
    if (member->is_empty)
        return member->is_observed;
    if (member->has_right && !member->d->is_paused)
        return member->is_complete || member->is_failed;
    return member->is_observed && !member->is_outdated && !member->is_rolling;
}

/* Does it keep the next one waiting? */
static bool is_in_the_way(const struct member *member)
{
    return !member->m->is_fenced || !member->is_settled || member->has_right ||
           member->m->requests.writing || member->m->requests.reading;
}

/* Another policy has paused it in the middle of its turn, and will let it go on. */
static bool is_stepped(const struct member *member)
{
    return member->is_held && !member->is_given_up && member->d->updated_replicas > 0 &&
           member->seen->others != SW_VERDICT_HOLD_OUT_OF_LINE;
}

static void tend(struct work *work, struct member *member)
{
    if (!member->m->is_fenced) {
        send(work, member, SW_HOLD_FENCE);
    } else if (member->is_users_pause) {
        send(work, member, SW_HOLD_TAKE_BACK);
    } else if (is_to_be_freed(member)) {
        send(work, member, SW_HOLD_FREE);
    } else if (member->has_right && member->d->is_paused && !is_stepped(member)) {
        send(work, member, SW_HOLD_PAUSE);
    }
}

static bool goes_before(const struct member *a, const struct member *b)
{
    bool a_cures = a->is_counted_by_guard, b_cures = b->is_counted_by_guard;

    if (a_cures != b_cures)
        return a_cures;
    if (a_cures) {
        int64_t x = (int64_t)a->d->available_replicas * b->d->replicas;
        int64_t y = (int64_t)b->d->available_replicas * a->d->replicas;
        if (x != y)
            return x < y;
    }
    if (a->order != b->order)
        return a->order < b->order;
    return strcmp(a->name, b->name) < 0;
}

/* One that another policy holds in its middle may be let go on by that policy alone, and only when
 * nobody else holds it. */
static bool may_be_next(struct work *work, struct member *member)
{
    bool is_free = member->seen->others == SW_VERDICT_FREE || is_stepped(member);

    return member->has_hold && !member->is_users_pause && member->is_outdated && is_free &&
           coord_member_is_free(work, member);
}

/* The next of each group, where all of it have been written and nobody rolls. */
static void release_next(struct work *work, struct orphan *orphans, uint32_t count)
{
    struct member **next = SW_ARENA_ARRAY(work->arena, count + 1, struct member *);
    bool *is_blocked = SW_ARENA_ARRAY(work->arena, count + 1, bool);

    for (uint32_t i = 0; i < count; i++) {
        struct member *member = orphans[i].member;
        uint32_t root = root_of(orphans, i);
        if (is_in_the_way(member))
            is_blocked[root] = true;
        else if (may_be_next(work, member) && (!next[root] || goes_before(member, next[root])))
            next[root] = member;
    }
    for (uint32_t i = 0; i < count; i++)
        if (next[i] && !is_blocked[i])
            send(work, next[i],
                 next[i]->seen->others == SW_VERDICT_FREE ? SW_HOLD_RELEASE : SW_HOLD_FREE);
}

static bool is_orphan(const struct member *member)
{
    return member->d && member->group_count == 0 && !member->is_recorded &&
           !member->is_leaving_cluster && (member->has_hold || member->has_right);
}

static void forget_found(struct work *work)
{
    struct coord_memory *memory = work->memory;

    for (uint32_t i = 0; i < memory->missing_count;) {
        struct missing *missing = &memory->missing[i];
        if (missing->is_named) {
            missing->is_named = false;
            i++;
            continue;
        }
        sw_free(missing->name);
        *missing = memory->missing[--memory->missing_count];
    }
}

void coord_residual(struct work *work)
{
    struct orphan *orphans = NULL;
    uint32_t count = 0;

    for (uint32_t i = 0; i < work->member_count; i++) {
        struct member *member = &work->members[i];
        bool is_marked_only = member->d && member->group_count == 0 && !member->is_recorded &&
                              !member->is_leaving_cluster && member->marked[0] &&
                              !member->has_hold && !member->has_right;
        if (is_marked_only && all_are_gone(work, member))
            send(work, member, SW_HOLD_MARK);
        if (!is_orphan(member) || !all_are_gone(work, member))
            continue;
        if (!orphans)
            orphans = SW_ARENA_ARRAY(work->arena, work->member_count, struct orphan);
        orphans[count++].member = member;
    }
    forget_found(work);
    if (count == 0)
        return;
    find_groups(work, orphans, count);
    for (uint32_t i = 0; i < count; i++)
        tend(work, orphans[i].member);
    release_next(work, orphans, count);
}
