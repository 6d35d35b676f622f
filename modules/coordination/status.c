/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status of a coordination as it should be: who is active, who waits and why, the history, the
 * conditions. It is written only when it differs from what is stored, so nothing in it may move by
 * itself: no running times, no counters but `turn`.
 */
#include "work.h"

#include <stdlib.h>

#define ERROR_MAX 1024
#define WORDS_MAX 200 /* bytes of a text that others have written */
#define NAMED_MAX 3   /* of those that select the same */

/* ---- the active set ---- */

static int compare_active(const void *a, const void *b)
{
    const struct member *x = *(struct member *const *)a, *y = *(struct member *const *)b;

    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* With (b): without those that may be dropped, with those that join or are chosen. */
static void set_active(struct work *work, struct group *group, bool is_record,
                       struct coord_status *status)
{
    uint32_t most = group->place_count + group->joining + group->chosen, count = 0;
    struct member **active = SW_ARENA_ARRAY(work->arena, most + 1, struct member *);
    const char **names = SW_ARENA_ARRAY(work->arena, most + 1, const char *);
    uint32_t room = group->max_active;

    for (uint32_t i = 0; i < group->place_count; i++) {
        const struct place *place = &group->places[i];
        bool is_twice = false;
        for (uint32_t k = 0; k < i; k++)
            is_twice |= place->member && group->places[k].member == place->member;
        if (is_twice || (is_record && place->leaves && place->is_ready))
            continue;
        if (place->member)
            active[count++] = place->member;
        else
            names[status->active_count++] = sw_arena_strdup(work->arena, place->name);
    }
    room = room > count + group->chosen ? room - count - group->chosen : 0;
    for (uint32_t i = 0; is_record && i < group->member_count; i++) {
        struct member *member = group->members[i];
        bool joins = member->is_active && !coord_place(group, member) && room > 0;
        if (joins)
            room--;
        if (joins || member->is_chosen)
            active[count++] = member;
    }
    qsort(active, count, sizeof(struct member *), compare_active);
    for (uint32_t i = 0; i < count; i++)
        names[status->active_count++] = sw_arena_strdup(work->arena, active[i]->m->full);
    status->active = names;
}

static bool is_in(const struct coord_status *status, const struct member *member)
{
    if (!member->is_recorded && !member->is_active && !member->is_chosen)
        return false;
    for (uint32_t i = 0; i < status->active_count; i++)
        if (strcmp(status->active[i], member->m->full) == 0)
            return true;
    return false;
}

/* ---- entries ---- */

/* The first of them: many could make the status larger than can be stored. */
static const char *overlap_text(struct work *work, const struct group *group,
                                const struct member *member)
{
    const char *text = "";
    uint32_t named = 0;

    if (member->group_count < 2)
        return text;
    for (uint32_t i = 0; i < member->group_count && named < NAMED_MAX; i++)
        if (member->groups[i] != group) {
            text = sw_arena_printf(work->arena, "%s%s%s", text, text[0] ? ", " : "",
                                   member->groups[i]->name);
            named++;
        }
    if (member->group_count - 1 > named)
        text =
            sw_arena_printf(work->arena, "%s and %u more", text, member->group_count - 1 - named);
    return sw_arena_printf(work->arena, "also selected by %s", text);
}

static const char *held_text(struct work *work, const struct member *member)
{
    const struct coord_seen_deployment *seen = member->seen;

    return sw_arena_printf(work->arena, "held by %s%s%.*s", seen->others_owners,
                           seen->others_words[0] ? ": " : "",
                           (int)coord_cut(seen->others_words, WORDS_MAX), seen->others_words);
}

static const char *own_text(struct work *work, const struct member *member, bool is_active)
{
    if (member->is_users_pause && !(is_active && member->is_complete))
        return "paused by its owner";
    if (member->is_given_up && (member->is_aside || is_active))
        return sw_arena_printf(work->arena, "failed; %s", held_text(work, member));
    if (member->is_aside)
        return "failed; waits for another template";
    if (is_active && member->is_failed)
        return "its rollout has failed";
    if (member->seen->others != SW_VERDICT_FREE && (member->is_pending || is_active))
        return held_text(work, member);
    return "";
}

static const char *message_of(struct work *work, const struct group *group,
                              const struct member *member, bool is_active)
{
    const char *own = own_text(work, member, is_active);
    const char *overlap = overlap_text(work, group, member);

    if (own[0] && overlap[0])
        return sw_arena_printf(work->arena, "%s; %s", own, overlap);
    return own[0] ? own : overlap;
}

static bool entries_differ(const struct coord_entry *a, const struct coord_entry *b)
{
    return a->has_pending_changes != b->has_pending_changes || a->started_us != b->started_us ||
           a->finished_us != b->finished_us || a->pending_since_us != b->pending_since_us ||
           a->position != b->position || strcmp(a->message, b->message) != 0 ||
           strcmp(a->failed_template, b->failed_template) != 0;
}

static int compare_entries(const void *a, const void *b)
{
    const struct coord_entry *x = *(const struct coord_entry *const *)a,
                             *y = *(const struct coord_entry *const *)b;

    return strcmp(x->name, y->name);
}

static int compare_key_to_entry(const void *key, const void *at)
{
    return strcmp(key, (*(const struct coord_entry *const *)at)->name);
}

struct stored {
    const struct coord_entry **by_name;
    uint32_t count;
};

static struct stored stored_by_name(struct work *work, const struct coordination *c)
{
    const struct coord_entry *entries = c->states.at;
    struct stored stored = {
        .by_name = SW_ARENA_ARRAY(work->arena, c->states.count + 1, const struct coord_entry *),
        .count = c->states.count,
    };
    bool is_sorted = true;

    for (uint32_t i = 0; i < stored.count; i++) {
        stored.by_name[i] = &entries[i];
        is_sorted = is_sorted && (i == 0 || strcmp(entries[i - 1].name, entries[i].name) < 0);
    }
    if (!is_sorted)
        qsort(stored.by_name, stored.count, sizeof(struct coord_entry *), compare_entries);
    return stored;
}

static const struct coord_entry *stored_entry(const struct stored *stored, const char *name)
{
    const struct coord_entry *const *at = bsearch(
        name, stored->by_name, stored->count, sizeof(struct coord_entry *), compare_key_to_entry);

    return at ? *at : NULL;
}

static void fill_entry(struct work *work, const struct group *group, const struct member *member,
                       const struct coord_status *status, const struct stored *stored,
                       struct coord_entry *entry)
{
    const struct member_memory *m = member->m;
    bool is_active = is_in(status, member);
    bool begins = member->is_chosen && is_active;

    *entry = (struct coord_entry){
        .name = m->full,
        .has_pending_changes = member->is_pending,
        .generation = member->d->meta.generation,
        .started_us = begins ? coord_state_now(work) : m->started_us,
        .finished_us = m->finished_us,
        .pending_since_us = m->pending_since_us,
        .position = is_active            ? 0
                    : member->is_waiting ? member->position
                                         : -1,
        .message = message_of(work, group, member, is_active),
        .failed_template = m->failed_template,
    };
    const struct coord_entry *before = stored_entry(stored, m->full);
    if (before && !entries_differ(before, entry))
        entry->generation = before->generation;
}

/* Those that the lists show: all, or the first of: active, failed, waiting in order, by name. */
static uint32_t choose_shown(struct work *work, const struct group *group,
                             const struct coord_status *status, struct member **shown)
{
    uint32_t count = 0;
    uint32_t most = group->m->is_too_large ? 0 : COORD_LIST_MAX;

    (void)work;
    if (group->member_count <= most) {
        memcpy(shown, group->members, group->member_count * sizeof(struct member *));
        return group->member_count;
    }
    for (uint32_t i = 0; i < group->member_count && count < COORD_LIST_MAX; i++)
        if (is_in(status, group->members[i]))
            shown[count++] = group->members[i];
    for (uint32_t i = 0; i < group->member_count && count < most; i++)
        if (group->members[i]->is_aside && !is_in(status, group->members[i]))
            shown[count++] = group->members[i];
    for (uint32_t i = 0; i < group->queue_count && count < most; i++)
        if (!is_in(status, group->queue[i]))
            shown[count++] = group->queue[i];
    for (uint32_t i = 0; i < group->member_count && count < most; i++) {
        struct member *member = group->members[i];
        if (!member->is_waiting && !member->is_aside && !is_in(status, member))
            shown[count++] = member;
    }
    return count;
}

static int compare_names(const void *a, const void *b)
{
    const struct member *x = *(struct member *const *)a, *y = *(struct member *const *)b;

    return strcmp(x->name, y->name);
}

static void set_entries(struct work *work, struct group *group, struct coord_status *status)
{
    uint32_t most = SW_MIN(group->member_count, (uint32_t)COORD_LIST_MAX);
    struct member **shown = SW_ARENA_ARRAY(work->arena, group->member_count + 1, struct member *);
    struct coord_entry *entries = SW_ARENA_ARRAY(work->arena, most + 1, struct coord_entry);
    const char **names = SW_ARENA_ARRAY(work->arena, most + 1, const char *);
    struct stored stored = stored_by_name(work, group->c);
    uint32_t count = choose_shown(work, group, status, shown);

    for (uint32_t i = 0; i < group->queue_count; i++)
        if (!is_in(status, group->queue[i]))
            group->queue[i]->position = ++status->pending;

    if (count < group->member_count)
        qsort(shown, count, sizeof(struct member *), compare_names);
    for (uint32_t i = 0; i < count; i++) {
        fill_entry(work, group, shown[i], status, &stored, &entries[i]);
        names[i] = shown[i]->m->full;
    }
    status->deployments = names;
    status->deployment_count = count;
    status->entries = entries;
    status->entry_count = count;
    status->selected = (int32_t)group->member_count;
    status->is_truncated = count < group->member_count;
}

/* ---- conditions ---- */

static void set_condition(struct work *work, const struct group *group, struct coord_status *status,
                          struct sw_condition *list, const struct sw_condition *condition)
{
    const struct sw_condition *before = sw_condition_get(&group->c->conditions, condition->type);
    struct sw_condition *to = &list[status->condition_count++];

    *to = *condition;
    to->observed_generation = group->c->meta.generation;
    if (before && strcmp(before->status, to->status) == 0)
        to->last_transition_us = before->last_transition_us;
    else
        to->last_transition_us = coord_state_now(work);
}

/* In the arena: the memory may forget it before the status is sent. */
static const char *error_of(struct work *work, const struct group *group)
{
    const char *error = NULL;

    for (uint32_t i = 0; i < group->member_count && !error; i++)
        error = group->members[i]->m->error;
    for (uint32_t i = 0; i < group->place_count && !error; i++)
        if (group->places[i].member)
            error = group->places[i].member->m->error;
    return error ? sw_arena_strdup(work->arena, error) : NULL;
}

static const char *stopped_text(struct work *work, const struct member *member)
{
    const char *hold = sw_annotation(&member->d->meta, SW_HOLD_BY_USER);

    if (member->is_users_pause || !hold)
        return sw_arena_printf(work->arena, "%s is paused by its owner in the middle of its turn",
                               member->m->full);
    return sw_arena_printf(work->arena, "%s is held by %s in the middle of its turn%s%.*s",
                           member->m->full, SW_HOLD_BY_USER, hold[0] ? ": " : "",
                           (int)coord_cut(hold, ERROR_MAX), hold);
}

/* The first one, or NULL. */
static const struct member *failed_of(const struct group *group, const struct coord_status *status)
{
    for (uint32_t i = 0; i < group->member_count; i++) {
        const struct member *member = group->members[i];
        if (member->is_aside || (member->is_failed && is_in(status, member)))
            return member;
    }
    return NULL;
}

static const char *failed_text(struct work *work, const struct member *failed)
{
    const char *name = failed->m->full;

    if (failed->is_given_up)
        return sw_arena_printf(work->arena, "%s has failed, %s%s", name, held_text(work, failed),
                               failed->is_aside ? ""
                                                : "; it keeps its turn until it is tried again or "
                                                  "gets another template");
    if (failed->is_aside)
        return sw_arena_printf(work->arena,
                               "%s has failed and is held until it gets another template", name);
    return sw_arena_printf(
        work->arena,
        "%s makes no progress; it keeps its turn until it is cured or gets another template", name);
}

static struct sw_condition degraded(struct work *work, const struct group *group,
                                    const struct coord_status *status)
{
    struct sw_condition condition = {.type = "Degraded", .status = "True"};
    const char *error = error_of(work, group);
    const struct member *failed = failed_of(group, status), *stopped = NULL;

    for (uint32_t i = 0; i < group->member_count && !stopped; i++)
        if (is_in(status, group->members[i]) && coord_is_stopped(group->members[i]))
            stopped = group->members[i];
    if (error && group->is_adopting) {
        condition.reason = "TakeOverFailed";
        condition.message = sw_arena_printf(
            work->arena,
            "what was paused before slipway came cannot be marked, and nobody rolls "
            "until it is: %s",
            error);
    } else if (error) {
        condition.reason = "Error";
        condition.message = error;
    } else if (!group->seen->selector) {
        condition.reason = "InvalidSelector";
        condition.message = sw_arena_printf(work->arena, "spec.labelSelector: %.*s",
                                            (int)coord_cut(group->seen->selector_error, ERROR_MAX),
                                            group->seen->selector_error);
    } else if (failed) {
        condition.reason = "RolloutFailed";
        condition.message = failed_text(work, failed);
    } else if (group->blocked_by) {
        condition.reason = "PeerUnavailable";
        condition.message =
            sw_arena_printf(work->arena, "%s is unavailable, so nobody else is activated",
                            group->blocked_by->m->full);
    } else if (stopped) {
        condition.reason = "PausedByUser";
        condition.message = stopped_text(work, stopped);
    } else {
        condition.status = "False";
        condition.reason = "NoErrors";
        condition.message = "nothing is wrong";
    }
    return condition;
}

static const char *blocked_text(struct work *work, const struct group *group)
{
    const char *full =
        sw_arena_printf(work->arena, "%s/%s", work->snapshot->namespace_, group->m->blocker);
    const char *format = group->m->blocked_text, *at = strstr(format, "%s");

    return sw_arena_printf(work->arena, "%.*s%s%s", (int)(at - format), format, full, at + 2);
}

static const char *turn_text(struct work *work, const struct group *group,
                             const struct coord_status *status)
{
    if (status->active_count == 0 && status->pending > 0 && group->m->blocker)
        return sw_arena_printf(work->arena, "%d waiting; %s", (int)status->pending,
                               blocked_text(work, group));
    if (status->active_count == 0)
        return sw_arena_printf(work->arena, "%d waiting", (int)status->pending);
    return sw_arena_printf(work->arena, "%s is rolling out, %d waiting", status->active[0],
                           (int)status->pending);
}

static struct sw_condition ready(struct work *work, const struct group *group,
                                 const struct coord_status *status)
{
    struct sw_condition condition = {.type = "Ready", .status = "False"};
    const char *error = error_of(work, group);

    if (error) {
        condition.reason = "Error";
        condition.message = error;
    } else if (status->active_count > 0 || status->pending > 0) {
        condition.reason = "DeploymentsInProgress";
        condition.message = turn_text(work, group, status);
    } else {
        condition.status = "True";
        condition.reason = "AllDeploymentsReady";
        condition.message = sw_arena_printf(work->arena, "%d Deployments, nothing to roll out",
                                            (int)status->selected);
    }
    return condition;
}

static struct sw_condition progressing(struct work *work, const struct group *group,
                                       const struct coord_status *status)
{
    struct sw_condition condition = {.type = "Progressing", .status = "True"};
    const char *error = error_of(work, group);

    condition.message = turn_text(work, group, status);
    if (error) {
        condition.status = "False";
        condition.reason = "Error";
        condition.message = error;
    } else if (status->active_count > 0) {
        condition.reason = "DeploymentRollingOut";
    } else if (status->pending > 0 && group->c->is_suspended) {
        condition.status = "False";
        condition.reason = "Suspended";
    } else if (status->pending > 0) {
        condition.reason = "DeploymentsPending";
    } else {
        condition.status = "False";
        condition.reason = "AllDeploymentsReady";
        condition.message = "nothing to roll out";
    }
    return condition;
}

static bool is_ours(const char *type)
{
    return strcmp(type, "Ready") == 0 || strcmp(type, "Progressing") == 0 ||
           strcmp(type, "Degraded") == 0;
}

static void set_conditions(struct work *work, const struct group *group,
                           struct coord_status *status)
{
    const struct sw_conditions *stored = &group->c->conditions;
    struct sw_condition *list = SW_ARENA_ARRAY(work->arena, stored->count + 3, struct sw_condition);
    struct sw_condition one;

    one = ready(work, group, status);
    set_condition(work, group, status, list, &one);
    one = progressing(work, group, status);
    set_condition(work, group, status, list, &one);
    one = degraded(work, group, status);
    set_condition(work, group, status, list, &one);
    for (uint32_t i = 0; i < stored->count; i++)
        if (!is_ours(stored->at[i].type))
            list[status->condition_count++] = stored->at[i];
    status->conditions = list;
}

/* Somebody may have written the largest number there is; what counts is that each is another. */
static int64_t next_turn(int64_t turn)
{
    return turn < INT64_MAX ? turn + 1 : 1;
}

struct coord_status *coord_status_build(struct work *work, struct group *group, bool is_record)
{
    struct coord_status *status = SW_ARENA_NEW(work->arena, struct coord_status);

    if (group->is_adopting && !is_record) {
        status->has_conditions_only = true;
        set_conditions(work, group, status);
        return status;
    }
    set_active(work, group, is_record, status);
    set_entries(work, group, status);
    status->turn = is_record ? next_turn(group->c->turn) : group->c->turn;
    status->observed_generation = group->c->meta.generation;
    set_conditions(work, group, status);
    return status;
}

/* ---- against what is stored ---- */

static bool names_differ(const char *const *a, uint32_t a_count, const struct sw_strings *b)
{
    if (a_count != b->count)
        return true;
    for (uint32_t i = 0; i < a_count; i++)
        if (strcmp(a[i], b->at[i]) != 0)
            return true;
    return false;
}

static bool conditions_differ(const struct coord_status *status, const struct coordination *stored)
{
    if (status->condition_count != stored->conditions.count)
        return true;
    for (uint32_t i = 0; i < status->condition_count; i++) {
        const struct sw_condition *to = &status->conditions[i];
        const struct sw_condition *from = sw_condition_get(&stored->conditions, to->type);
        if (!from || strcmp(from->status, to->status) != 0 ||
            strcmp(from->reason, to->reason) != 0 || strcmp(from->message, to->message) != 0 ||
            from->last_transition_us != to->last_transition_us ||
            from->observed_generation != to->observed_generation)
            return true;
    }
    return false;
}

bool coord_status_differs(const struct coord_status *status, const struct coordination *stored)
{
    const struct coord_entry *entries = stored->states.at;
    const char *first = status->active_count > 0 ? status->active[0] : "";

    if (status->has_conditions_only)
        return conditions_differ(status, stored);
    if (strcmp(first, stored->active_deployment) != 0 ||
        names_differ(status->active, status->active_count, &stored->active_deployments) ||
        names_differ(status->deployments, status->deployment_count, &stored->deployments) ||
        status->entry_count != stored->states.count || status->selected != stored->selected ||
        status->pending != stored->pending || status->is_truncated != stored->is_truncated ||
        status->turn != stored->turn || status->observed_generation != stored->observed_generation)
        return true;
    for (uint32_t i = 0; i < status->entry_count; i++)
        if (strcmp(status->entries[i].name, entries[i].name) != 0 ||
            status->entries[i].generation != entries[i].generation ||
            entries_differ(&status->entries[i], &entries[i]))
            return true;
    return conditions_differ(status, stored);
}

/* While it is being taken over our status is not written: a leader that comes after us would take
 * the rest of the pauses for people's. That it cannot be taken over is said all the same. */
void coord_statuses(struct work *work)
{
    for (uint32_t g = 0; g < work->group_count; g++) {
        struct group *group = &work->groups[g];
        bool has_word = !group->is_adopting || error_of(work, group);
        if (has_word && !group->is_in_chain && coord_group_is_free(work, group))
            coord_write_status(work, group, false);
    }
}

/* ---- what is new in it ---- */

static void remark_entry(struct work *work, const struct group *group,
                         const struct coord_entry *entry, const struct coord_entry *before,
                         struct coord_remark **list)
{
    const char *name = strchr(entry->name, '/') + 1;
    const char *overlap = strstr(entry->message, "also selected by ");
    const struct member *member = coord_memory_find(work, name);

    if (member && entry->position > 0 && entry->pending_since_us &&
        (!before || !before->pending_since_us || before->position < 0))
        coord_remark_add(
            list, coord_about(member, coord_remark(
                                          work->arena, false, name, SW_NORMAL, "RolloutHeld",
                                          "waiting for its turn in coordination %s", group->name)));
    if (overlap && (!before || !strstr(before->message, "also selected by ")))
        coord_remark_add(list, coord_remark(work->arena, true, group->name, SW_NORMAL, "Overlap",
                                            "%s is %s", entry->name, overlap));
}

static void remark_degraded(struct work *work, const struct group *group,
                            const struct coord_status *status, struct coord_remark **list)
{
    const struct sw_condition *before = sw_condition_get(&group->c->conditions, "Degraded");
    const struct sw_condition *now = NULL;
    const struct member *failed = failed_of(group, status);
    const char *reason;

    for (uint32_t i = 0; i < status->condition_count; i++)
        if (strcmp(status->conditions[i].type, "Degraded") == 0)
            now = &status->conditions[i];
    if (!now || (before && strcmp(before->reason, now->reason) == 0 &&
                 strcmp(before->message, now->message) == 0))
        return;
    if (strcmp(now->reason, "PeerUnavailable") == 0)
        reason = "ActivationBlocked";
    else if (strcmp(now->reason, "RolloutFailed") == 0)
        reason = "RolloutFailed";
    else
        return;
    struct coord_remark *remark =
        coord_remark(work->arena, true, group->name, SW_WARNING, reason, "%s", now->message);
    bool is_failure = strcmp(reason, "RolloutFailed") == 0;
    coord_remark_add(list, is_failure && failed ? coord_about(failed, remark) : remark);
}

struct coord_remark *coord_status_remarks(struct work *work, struct group *group,
                                          const struct coord_status *status)
{
    struct stored stored = stored_by_name(work, group->c);
    struct coord_remark *list = NULL;

    for (uint32_t i = 0; i < status->entry_count; i++)
        remark_entry(work, group, &status->entries[i],
                     stored_entry(&stored, status->entries[i].name), &list);
    remark_degraded(work, group, status, &list);
    return list;
}
