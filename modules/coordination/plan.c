/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of the plan, and how it emits what is to be done: at most one request for an object is
 * under way; after a conflict or an answer that did not come the object is read before it is
 * written again; what fails is tried again more and more slowly.
 */
#include "work.h"

#include <stdarg.h>

/* Housekeeping beyond this waits for answers, so that the first sight of a large namespace does not
 * stand in the way of another one's hand-over. */
#define UNDER_WAY_MAX 64
#define RETRY_FIRST_MS 200
#define RETRY_MOST_MS 300000

void coord_look_again(struct work *work, uint64_t at_ms)
{
    uint64_t now = work->snapshot->now_ms;
    uint64_t after = at_ms > now ? at_ms - now : 1;

    if (after < work->result->look_again_ms)
        work->result->look_again_ms = after;
}

size_t coord_cut(const char *text, size_t most)
{
    size_t len = strnlen(text, most), last = len;

    while (last > 0 && ((unsigned char)text[last - 1] & 0xc0) == 0x80)
        last--;
    if (last == 0)
        return 0;
    unsigned char lead = (unsigned char)text[last - 1];
    size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    return len - (last - 1) < size ? last - 1 : len;
}

/* ---- remarks ---- */

struct coord_remark *coord_remark(struct sw_arena *arena, bool is_of_coordination, const char *name,
                                  enum sw_record_type type, const char *reason, const char *format,
                                  ...)
{
    struct coord_remark *remark = SW_ARENA_NEW(arena, struct coord_remark);
    va_list args;

    va_start(args, format);
    *remark = (struct coord_remark){
        .is_of_coordination = is_of_coordination,
        .name = sw_arena_strdup(arena, name),
        .type = type,
        .reason = reason,
        .message = sw_arena_vprintf(arena, format, args),
    };
    va_end(args);
    return remark;
}

struct coord_remark *coord_about(const struct member *member, struct coord_remark *remark)
{
    if (member->d)
        sw_rollout_text(member->d, remark->rollout);
    return remark;
}

void coord_remark_add(struct coord_remark **list, struct coord_remark *remark)
{
    while (*list)
        list = &(*list)->next;
    *list = remark;
}

void coord_say(struct work *work, struct coord_remark *remark)
{
    *work->next_remark = remark;
    work->next_remark = &remark->next;
}

/* ---- actions ---- */

static struct coord_action *action_add(struct work *work, enum coord_action_type type,
                                       const char *name)
{
    struct coord_action *action = SW_ARENA_NEW(work->arena, struct coord_action);

    action->type = type;
    action->number = ++work->memory->number;
    action->name = sw_arena_strdup(work->arena, name);
    action->wall_us = work->snapshot->wall_us;
    *work->next_action = action;
    work->next_action = &action->next;
    work->memory->under_way++;
    return action;
}

/* Up to half of the delay is taken off, so that what has failed together is not tried again
 * together. In one run the steps of a Weyl sequence keep them apart. */
static uint64_t with_jitter(struct work *work, uint64_t delay)
{
    work->random += UINT64_C(0x9e3779b97f4a7c15);
    return delay - ((work->random >> 32) * (delay / 2) >> 32);
}

static bool is_waiting_to_retry(struct work *work, struct requests *r)
{
    uint64_t now = work->snapshot->now_ms;

    if (r->has_failed) {
        uint64_t delay = (uint64_t)RETRY_FIRST_MS << SW_MIN(r->failures, 12U);
        r->retry_ms = now + with_jitter(work, SW_MIN(delay, (uint64_t)RETRY_MOST_MS));
        r->has_failed = false;
    }
    if (r->retry_ms > now) {
        coord_look_again(work, r->retry_ms);
        return true;
    }
    return false;
}

static bool get(struct work *work, struct requests *r, enum coord_action_type type,
                const char *name)
{
    if (r->writing || r->reading || is_waiting_to_retry(work, r))
        return false;
    r->reading = action_add(work, type, name)->number;
    return true;
}

/* version: of the object as it was last seen. */
static bool is_free(struct work *work, struct requests *r, const char *version,
                    enum coord_action_type getting, const char *name)
{
    if (r->writing || r->reading)
        return false;
    if (r->refused_version) {
        if (strcmp(r->refused_version, version) == 0)
            r->must_read = true;
        coord_memory_set(&r->refused_version, NULL);
    }
    if (r->must_read) {
        get(work, r, getting, name);
        return false;
    }
    return !is_waiting_to_retry(work, r);
}

/* None is under way, and none is to follow. */
static bool is_at_rest(const struct work *work, const struct requests *r)
{
    return !r->writing && !r->reading && !r->must_read && !r->has_failed &&
           r->retry_ms <= work->snapshot->now_ms;
}

static const char *const *group_names(struct work *work, struct group *const *groups,
                                      uint32_t count)
{
    const char **names = SW_ARENA_ARRAY(work->arena, count + 1, const char *);

    for (uint32_t i = 0; i < count; i++)
        names[i] = sw_arena_strdup(work->arena, groups[i]->name);
    return names;
}

bool coord_get_member(struct work *work, struct member *member)
{
    return get(work, &member->m->requests, COORD_GET_DEPLOYMENT, member->name);
}

bool coord_member_is_free(struct work *work, struct member *member)
{
    return is_free(work, &member->m->requests, member->d->meta.resource_version,
                   COORD_GET_DEPLOYMENT, member->name);
}

bool coord_group_is_free(struct work *work, struct group *group)
{
    return is_free(work, &group->m->requests, group->c->meta.resource_version,
                   COORD_GET_COORDINATION, group->name);
}

struct coord_action *coord_hold(struct work *work, struct member *member, enum sw_hold_verb verb,
                                const char *failure)
{
    if (!coord_member_is_free(work, member))
        return NULL;
    if (work->memory->under_way >= UNDER_WAY_MAX && !member->is_recorded)
        return NULL;
    struct coord_action *action = action_add(work, COORD_HOLD, member->name);

    action->resource_version = sw_arena_strdup(work->arena, member->d->meta.resource_version);
    action->verb = verb;
    action->owners = member->owners;
    action->marks = member->owners;
    action->failure = failure;
    action->groups = group_names(work, member->groups, member->group_count);
    action->group_count = member->group_count;
    action->was_complete = member->is_complete;
    action->had_right = member->has_right;
    sw_rollout_text(member->d, action->rollout);
    member->m->requests.writing = action->number;
    return action;
}

static void note_begun(struct work *work, struct group *group, struct coord_action *action)
{
    const char **begun = SW_ARENA_ARRAY(work->arena, group->chosen + 1, const char *);
    const char **rollouts = SW_ARENA_ARRAY(work->arena, group->chosen + 1, const char *);
    uint32_t count = 0;

    for (uint32_t i = 0; i < group->member_count && group->chosen > 0; i++) {
        char rollout[SW_ROLLOUT_SIZE];
        if (!group->members[i]->is_chosen)
            continue;
        sw_rollout_text(group->members[i]->d, rollout);
        rollouts[count] = sw_arena_strdup(work->arena, rollout);
        begun[count++] = sw_arena_strdup(work->arena, group->members[i]->name);
    }
    action->begun = begun;
    action->begun_rollouts = rollouts;
    action->begun_count = count;
}

static void note_cleared(struct work *work, struct group *group, struct coord_action *action)
{
    for (uint32_t i = 0; i < group->place_count; i++) {
        const struct place *place = &group->places[i];
        const struct member *member = place->member;
        if (!place->leaves || !place->is_ready)
            continue;
        const char *full = member ? member->m->full : place->name;
        bool is_finished = member && member->is_finished;
        struct coord_remark *cleared =
            coord_remark(work->arena, true, group->name, SW_NORMAL, "ActiveDeploymentCleared",
                         "%s is no longer active", full);
        if (is_finished)
            coord_remark_add(
                &action->remarks,
                coord_about(member, coord_remark(work->arena, true, group->name, SW_NORMAL,
                                                 "ActiveDeploymentReady", "%s is complete", full)));
        coord_remark_add(&action->remarks, member ? coord_about(member, cleared) : cleared);
    }
}

struct coord_action *coord_write_status(struct work *work, struct group *group, bool is_record)
{
    struct coord_status *status = coord_status_build(work, group, is_record);

    if (!is_record && !coord_status_differs(status, group->c))
        return NULL;
    struct coord_action *action = action_add(work, COORD_STATUS, group->name);

    action->resource_version = sw_arena_strdup(work->arena, group->m->version);
    action->status = status;
    action->is_record = is_record;
    action->is_chain = is_record;
    action->failure = "StatusUpdateFailed";
    action->groups = group_names(work, &group, 1);
    action->group_count = 1;
    action->remarks = coord_status_remarks(work, group, status);
    if (is_record) {
        note_cleared(work, group, action);
        note_begun(work, group, action);
        group->m->sent_sequence = ++work->memory->sequence;
    }
    group->m->requests.writing = action->number;
    return action;
}

/* ---- the run ---- */

/* What is not known after a conflict or a lost answer is read, whether or not it is to be written:
 * others may wait for it. */
static void read_doubtful(struct work *work)
{
    for (uint32_t i = 0; i < work->member_count; i++) {
        struct member *member = &work->members[i];
        const struct requests *r = &member->m->requests;
        if (member->d && (r->must_read || r->refused_version || r->has_failed || member->m->error))
            coord_member_is_free(work, member);
    }
}

/* A status on the way may be the record behind which the release is tried again. */
static bool may_go_on(const struct work *work, const struct member *member)
{
    for (uint32_t i = 0; i < member->group_count; i++)
        if (!is_at_rest(work, &member->groups[i]->m->requests))
            return true;
    return false;
}

/* What had failed is wished for no more, or has been put right by others. */
static void forget_errors(struct work *work)
{
    for (uint32_t i = 0; i < work->member_count; i++) {
        struct member_memory *m = work->members[i].m;
        if (m->requests.failures == 0 || !is_at_rest(work, &m->requests) ||
            may_go_on(work, &work->members[i]))
            continue;
        m->requests.failures = 0;
        coord_memory_set(&m->error, NULL);
    }
}

static void count_facts(struct work *work)
{
    struct coord_result *result = work->result;

    result->groups = work->group_count;
    for (uint32_t i = 0; i < work->member_count; i++) {
        const struct member *member = &work->members[i];
        if (!member->d || member->group_count == 0)
            continue;
        result->selected++;
        result->pending += member->is_waiting && !member->is_chosen;
        result->active += member->is_active || member->is_chosen;
    }
}

void coord_plan(struct coord_memory *memory, const struct coord_snapshot *snapshot,
                struct sw_arena *arena, struct coord_result *ret_result)
{
    struct work work = {
        .memory = memory,
        .snapshot = snapshot,
        .arena = arena,
        .result = ret_result,
        .next_action = &ret_result->actions,
        .next_remark = &ret_result->remarks,
        .random = snapshot->random,
    };

    *ret_result = (struct coord_result){.look_again_ms = NEVER};
    coord_memory_sync(&work);
    coord_select(&work);
    coord_states(&work);
    read_doubtful(&work);
    coord_places(&work);
    coord_queue(&work);
    coord_chain(&work);
    coord_rest(&work);
    coord_residual(&work);
    forget_errors(&work);
    coord_statuses(&work);
    count_facts(&work);
}
