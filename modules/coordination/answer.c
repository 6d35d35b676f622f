/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the answer to an action changes in the memory. It never decides: the next run of the plan
 * does.
 */
#include "work.h"

/* Releases lost in a row before the next try waits: somebody writes the Deployment all the time. */
#define LOST_RELEASES_MAX 4
#define ERROR_MAX 256

/* What failed, in words that do not change from try to try. */
static char *error_text(const struct coord_action *action, const struct coord_answer *answer)
{
    const char *text = answer->message[0] ? answer->message : sw_outcome_text(answer->outcome);

    return sw_asprintf("%s: %.*s", action->name, (int)coord_cut(text, ERROR_MAX), text);
}

static struct coord_remark *warnings(struct sw_arena *arena, const struct coord_action *action,
                                     const struct coord_answer *answer)
{
    struct coord_remark *remarks = NULL;
    const char *text = answer->message[0] ? answer->message : sw_outcome_text(answer->outcome);

    for (uint32_t i = 0; i < action->group_count && action->failure; i++) {
        struct coord_remark *remark =
            coord_remark(arena, true, action->groups[i], SW_WARNING, action->failure, "%s: %.*s",
                         action->name, (int)coord_cut(text, ERROR_MAX), text);
        memcpy(remark->rollout, action->rollout, sizeof remark->rollout);
        coord_remark_add(&remarks, remark);
    }
    return remarks;
}

/* ---- writes on a Deployment ---- */

/* Step (a), or the 404 that stands for it, counts for every coordination whose status nobody else
 * has written since it was sent. */
static void fence(struct coord_memory *memory, const struct coord_action *action)
{
    for (uint32_t g = 0; g < memory->group_count; g++) {
        struct group_memory *group = memory->groups[g];
        struct leaver *leaver = coord_memory_leaver(group, action->name, false);
        if (!leaver || leaver->sent_epoch != group->epoch)
            continue;
        leaver->is_fenced = true;
        if (action->type == COORD_HOLD && action->had_right && action->was_complete &&
            action->verb != SW_HOLD_FENCE)
            leaver->is_taken = true;
    }
}

static struct coord_remark *hold_done(struct coord_memory *memory, struct member_memory *m,
                                      const struct coord_action *action,
                                      const struct coord_answer *answer)
{
    if (answer->outcome == SW_UNCHANGED && action->verb != SW_HOLD_RELEASE) {
        /* The plan wanted a change where the hand sees none: not at once again. */
        m->requests.failures++;
        m->requests.has_failed = true;
        return NULL;
    }
    m->requests.failures = 0;
    m->lost_releases = 0;
    coord_memory_set(&m->error, NULL);
    if (action->is_chain && action->verb != SW_HOLD_RELEASE)
        fence(memory, action);
    if (action->verb == SW_HOLD_FENCE)
        m->is_fenced = true;
    if (action->verb == SW_HOLD_PAUSE && m->is_first) {
        m->is_first = false;
        for (uint32_t i = 0; i < action->group_count; i++) {
            struct group_memory *group = coord_memory_group(memory, action->groups[i]);
            if (group)
                group->first_paused++;
        }
    }
    return answer->outcome == SW_UNCHANGED ? NULL : action->remarks;
}

static void hold_conflict(struct member_memory *m, const struct coord_action *action)
{
    coord_memory_set(&m->requests.refused_version, action->resource_version);
    if (action->verb == SW_HOLD_RELEASE && ++m->lost_releases > LOST_RELEASES_MAX)
        m->requests.has_failed = true;
}

static void fail_member(struct member_memory *m, const struct coord_action *action,
                        const struct coord_answer *answer)
{
    m->requests.failures++;
    m->requests.has_failed = true;
    /* A lost answer happens; twice in a row is worth a word. */
    if (answer->outcome == SW_UNKNOWN && m->requests.failures < 2)
        return;
    sw_free(m->error);
    m->error = error_text(action, answer);
}

static struct coord_remark *hold_answered(struct coord_memory *memory,
                                          const struct coord_action *action,
                                          const struct coord_answer *answer, struct sw_arena *arena)
{
    struct member_memory *m = coord_memory_member(memory, action->name);

    if (!m || m->requests.writing != action->number)
        return NULL;
    m->requests.writing = 0;
    switch (answer->outcome) {
    case SW_OK:
    case SW_UNCHANGED:
        return hold_done(memory, m, action, answer);
    case SW_CONFLICT:
        hold_conflict(m, action);
        return NULL;
    case SW_HELD:
        m->requests.has_failed = true;
        return NULL;
    case SW_NOT_FOUND:
        m->requests.must_read = true;
        return NULL;
    case SW_UNKNOWN:
        m->requests.must_read = true;
        /* It may still arrive: in a residual group nobody is released before it cannot. */
        m->is_fenced = false;
        break;
    case SW_REFUSED:
        break;
    case SW_NOT_LEADER:
        return NULL;
    }
    fail_member(m, action, answer);
    return m->error ? warnings(arena, action, answer) : NULL;
}

static void deployment_read(struct coord_memory *memory, const struct coord_action *action,
                            const struct coord_answer *answer)
{
    struct member_memory *m = coord_memory_member(memory, action->name);

    if (!m || m->requests.reading != action->number)
        return;
    m->requests.reading = 0;
    if (answer->outcome == SW_OK) {
        m->requests.must_read = false;
    } else if (answer->outcome == SW_NOT_FOUND) {
        m->requests.must_read = false;
        fence(memory, action);
    } else {
        fail_member(m, action, answer);
    }
}

/* ---- writes of a status ---- */

static bool names(const struct coord_status *status, const char *full)
{
    for (uint32_t i = 0; i < status->active_count; i++)
        if (strcmp(status->active[i], full) == 0)
            return true;
    return false;
}

static void recorded(struct coord_memory *memory, struct group_memory *group,
                     const struct coord_action *action)
{
    group->own_sequence = group->sent_sequence;
    for (uint32_t i = 0; i < group->leaver_count;) {
        const struct member_memory *m = coord_memory_member(memory, group->leavers[i].name);
        if (m && names(action->status, m->full))
            i++;
        else
            coord_memory_forget_leaver(group, group->leavers[i].name);
    }
    for (uint32_t i = 0; i < action->begun_count; i++) {
        struct member_memory *m = coord_memory_member(memory, action->begun[i]);
        if (!m)
            continue;
        m->started_us = action->wall_us / SECOND_US * SECOND_US;
        m->complete_since_ms = NEVER;
        m->saw_incomplete = true;
        m->stalled_ms = 0;
        m->updated_mark = m->available_mark = 0;
    }
}

/* etcd's limit comes as 500, the API server's as 413. */
static bool is_too_large(const struct coord_answer *answer)
{
    return strstr(answer->message, "too large") != NULL ||
           strcmp(answer->reason, "RequestEntityTooLarge") == 0;
}

static struct coord_remark *status_answered(struct coord_memory *memory,
                                            const struct coord_action *action,
                                            const struct coord_answer *answer,
                                            struct sw_arena *arena)
{
    struct group_memory *group = coord_memory_group(memory, action->name);

    if (!group || group->requests.writing != action->number)
        return NULL;
    group->requests.writing = 0;
    switch (answer->outcome) {
    case SW_OK:
    case SW_UNCHANGED:
        coord_memory_set(&group->version, answer->resource_version);
        group->requests.failures = 0;
        if (action->is_record)
            recorded(memory, group, action);
        return action->remarks;
    case SW_CONFLICT:
        coord_memory_set(&group->requests.refused_version, action->resource_version);
        return NULL;
    case SW_NOT_FOUND:
        group->requests.must_read = true;
        return NULL;
    case SW_NOT_LEADER:
        return NULL;
    case SW_UNKNOWN:
        group->requests.must_read = true;
        break;
    case SW_REFUSED:
    case SW_HELD:
        break;
    }
    if (is_too_large(answer) && !group->is_too_large) {
        group->is_too_large = true;
        return NULL;
    }
    bool is_worth_a_word = ++group->requests.failures > 1 || answer->outcome != SW_UNKNOWN;
    group->requests.has_failed = true;
    return is_worth_a_word ? warnings(arena, action, answer) : NULL;
}

static void coordination_read(struct coord_memory *memory, const struct coord_action *action,
                              const struct coord_answer *answer)
{
    struct group_memory *group = coord_memory_group(memory, action->name);

    if (!group || group->requests.reading != action->number)
        return;
    group->requests.reading = 0;
    if (answer->outcome == SW_OK || answer->outcome == SW_NOT_FOUND) {
        group->requests.must_read = false;
        return;
    }
    group->requests.failures++;
    group->requests.has_failed = true;
}

struct coord_remark *coord_answered(struct coord_memory *memory, const struct coord_action *action,
                                    const struct coord_answer *answer, struct sw_arena *arena)
{
    memory->under_way--;
    switch (action->type) {
    case COORD_HOLD:
        return hold_answered(memory, action, answer, arena);
    case COORD_STATUS:
        return status_answered(memory, action, answer, arena);
    case COORD_GET_DEPLOYMENT:
        deployment_read(memory, action, answer);
        return NULL;
    case COORD_GET_COORDINATION:
        coordination_read(memory, action, answer);
        return NULL;
    }
    return NULL;
}
