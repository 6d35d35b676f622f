/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each Deployment is doing: observed, new, outdated, complete, pending, rolling, settled,
 * unavailable, failed. Everything is about the Pod template; counts alone never make anything
 * pending or rolling, so that a crash loop, a drain or an autoscaler takes no turn.
 */
#include "work.h"

#define SECOND_MS 1000
/* A paused Deployment with a copied revision annotation starts nothing by itself; its controller
 * would have made a Pod within milliseconds. */
#define EMPTY_MS (10 * SECOND_MS)

int64_t coord_state_now(const struct work *work)
{
    return work->snapshot->wall_us / SECOND_US * SECOND_US;
}

/* ---- history ---- */

/* As it would be written again; 0 of what could not: somebody else has put it there. What begins
 * a second later must be writable too. */
static int64_t whole(int64_t us)
{
    static const int64_t end_us = INT64_C(253402300799) * SECOND_US; /* last second of year 9999 */

    return us > 0 && us < end_us ? us / SECOND_US * SECOND_US : 0;
}

/* Another leader may have seen what we missed: the later time counts. Of a wait that it speaks of
 * as we do, the earlier beginning: two that each insisted on their own would write for ever. */
static void merge_times(struct member_memory *m, const struct coord_entry *entry)
{
    int64_t pending_since_us = whole(entry->pending_since_us);

    if (pending_since_us && pending_since_us < m->pending_since_us &&
        whole(entry->finished_us) >= m->finished_us)
        m->pending_since_us = pending_since_us;
    if (whole(entry->started_us) > m->started_us)
        m->started_us = whole(entry->started_us);
    if (whole(entry->finished_us) > m->finished_us)
        m->finished_us = whole(entry->finished_us);
}

static void inherit(struct member_memory *m, const struct coord_entry *entry)
{
    int64_t since_us = whole(entry->pending_since_us);

    if (since_us && (!m->pending_since_us || since_us < m->pending_since_us))
        m->pending_since_us = since_us;
    if (entry->has_pending_changes)
        m->was_pending = true;
    if (strlen(entry->failed_template) == sizeof m->failed_template - 1)
        memcpy(m->failed_template, entry->failed_template, sizeof m->failed_template);
}

/* Of the object itself, not of one of that name that was there before it. */
static bool speaks_of(const struct coord_entry *entry, const struct member *member)
{
    int64_t created_us = member->d->meta.created_us;

    return entry->started_us >= created_us || entry->finished_us >= created_us ||
           entry->pending_since_us >= created_us;
}

static void read_group_history(struct work *work, const struct group *group, bool is_changed)
{
    const struct coord_entry *entries = group->c->states.at;
    size_t skip = strlen(work->snapshot->namespace_) + 1;

    for (uint32_t i = 0; i < group->c->states.count; i++) {
        if (strlen(entries[i].name) <= skip)
            continue;
        struct member *member = coord_memory_find(work, entries[i].name + skip);
        if (!member || !member->d || strcmp(member->m->full, entries[i].name) != 0 ||
            !speaks_of(&entries[i], member))
            continue;
        if (is_changed || !member->m->has_history)
            merge_times(member->m, &entries[i]);
        if (!member->m->has_history)
            inherit(member->m, &entries[i]);
    }
}

/* The status of a coordination is read again when it has changed, or when somebody is new. */
static void read_history(struct work *work)
{
    bool is_needed = false;

    for (uint32_t i = 0; i < work->member_count; i++)
        is_needed |= work->members[i].d && !work->members[i].m->has_history;
    for (uint32_t g = 0; g < work->group_count; g++) {
        struct group *group = &work->groups[g];
        const char *version = group->c->meta.resource_version;
        bool is_changed = !group->m->read_version || strcmp(group->m->read_version, version) != 0;
        if (is_needed || is_changed)
            read_group_history(work, group, is_changed);
        coord_memory_set(&group->m->read_version, version);
    }
    for (uint32_t i = 0; i < work->member_count; i++)
        work->members[i].m->has_history |= work->members[i].d != NULL;
}

/* ---- sightings ---- */

/* ProgressDeadlineExceeded outlives pause and resume: seen together with a template that does not
 * run yet, it speaks of the one before. */
static bool is_deadline_stale(const struct member *member, bool has_template_changed)
{
    const struct sw_deployment *d = member->d;
    const struct sw_condition *progressing = sw_condition_get(&d->conditions, "Progressing");

    if (has_template_changed || member->m->is_sighted || !progressing)
        return has_template_changed;
    return d->is_paused || progressing->last_update_us < member->m->started_us;
}

/* Whether the status speaks of the template and the pause that are there now. */
static void sight(struct member *member)
{
    const struct sw_deployment *d = member->d;
    struct member_memory *m = member->m;
    int64_t generation = d->meta.generation;
    bool is_first = !m->is_sighted || generation > m->generation + 1 || generation < m->generation;
    /* With the same generation it is the API server that writes the same template otherwise: one
     * of another release, which knows other defaults. */
    bool has_template_changed = m->is_sighted && generation != m->generation &&
                                !sw_hash128_equal(m->template_hash, d->template_hash);

    if (is_first || has_template_changed || m->is_paused != d->is_paused)
        m->changed_generation = generation;
    if (is_deadline_stale(member, has_template_changed)) {
        const struct sw_condition *progressing = sw_condition_get(&d->conditions, "Progressing");
        m->stale_deadline_us = progressing ? progressing->last_update_us : NO_TIME;
    }
    if (has_template_changed) {
        m->complete_since_ms = NEVER;
        m->stalled_ms = 0;
        m->updated_mark = m->available_mark = 0;
    }
    m->is_sighted = true;
    m->generation = generation;
    m->is_paused = d->is_paused;
    m->template_hash = d->template_hash;
    member->is_observed = d->observed_generation >= m->changed_generation;
}

static bool is_new(struct work *work, struct member *member)
{
    const struct sw_deployment *d = member->d;
    struct member_memory *m = member->m;
    uint64_t now = work->snapshot->now_ms;

    /* A controller that is behind has not even seen how many are wanted. */
    if (d->replicas == 0 || !d->is_paused || d->status_replicas > 0 || !member->is_observed ||
        d->observed_generation < d->meta.generation)
        m->empty_since_ms = NEVER;
    else if (m->empty_since_ms == NEVER)
        m->empty_since_ms = now;
    if (d->replicas == 0)
        return false;
    if (!sw_annotation(&d->meta, COORD_REVISION))
        return true;
    if (m->empty_since_ms == NEVER)
        return false;
    if (now - m->empty_since_ms >= EMPTY_MS)
        return true;
    coord_look_again(work, m->empty_since_ms + EMPTY_MS);
    return false;
}

/* ---- rolling ---- */

static bool controller_is_busy(const struct sw_deployment *d)
{
    const struct sw_condition *progressing = sw_condition_get(&d->conditions, "Progressing");

    if (!progressing)
        return d->updated_replicas < d->replicas;
    return strcmp(progressing->status, "Unknown") != 0 &&
           strcmp(progressing->reason, "NewReplicaSetAvailable") != 0;
}

/* By what its status says; whoever bears the right and is not complete counts as rolling too. */
static bool is_moving(const struct member *member)
{
    const struct sw_deployment *d = member->d;

    if (d->is_paused || !member->is_observed || member->is_complete)
        return false;
    if (member->is_outdated || controller_is_busy(d))
        return true;
    /* The gap of Recreate; one that is only being scaled up from nothing has none. */
    return strcmp(d->strategy, "Recreate") == 0 && d->replicas > 0 && d->status_replicas == 0 &&
           !member->m->from_zero;
}

static bool is_pending(const struct member *member)
{
    const struct member_memory *m = member->m;

    if (!member->is_observed)
        return m->was_pending;
    if (member->is_complete || member->is_aside)
        return false;
    return member->is_outdated || m->started_us > m->finished_us;
}

/* All of its coordinations go on without it. */
static bool skips_failed(const struct member *member)
{
    for (uint32_t i = 0; i < member->group_count; i++)
        if (!member->groups[i]->skips_failed)
            return false;
    return member->group_count > 0;
}

static bool is_aside(struct member *member)
{
    struct member_memory *m = member->m;
    char text[33];

    /* Where a failed one stops the others it keeps its place; see places.c. */
    if (member->is_given_up && !member->is_complete &&
        (!member->is_recorded || skips_failed(member)))
        return true;
    if (!m->failed_template[0])
        return false;
    sw_hash128_text(member->d->template_hash, text);
    if (!member->is_complete && strcmp(text, m->failed_template) == 0)
        return true;
    m->failed_template[0] = '\0';
    return false;
}

static bool is_unavailable(const struct member *member)
{
    const struct sw_deployment *d = member->d;

    return member->is_observed && d->replicas > 0 &&
           (d->available_replicas == 0 || sw_condition_is(&d->conditions, "Available", "False"));
}

/* First rollouts serve nobody yet. */
static bool is_counted_by_guard(const struct member *member)
{
    const char *revision = sw_annotation(&member->d->meta, COORD_REVISION);
    bool is_first = revision && strcmp(revision, "1") == 0 && !member->m->finished_us;

    return member->is_unavailable && !member->is_new && !member->is_aside && !is_first;
}

/* ---- its turn ---- */

/* Since when it has been complete: our own observation, or what its controller says of it. */
static uint64_t completion(const struct work *work, const struct member *member)
{
    const struct coord_snapshot *snapshot = work->snapshot;
    const struct sw_condition *progressing =
        sw_condition_get(&member->d->conditions, "Progressing");

    if (member->m->saw_incomplete || !progressing ||
        strcmp(progressing->reason, "NewReplicaSetAvailable") != 0 ||
        progressing->last_update_us >= snapshot->wall_us)
        return snapshot->now_ms;
    uint64_t age_ms = (uint64_t)(snapshot->wall_us - progressing->last_update_us) / 1000;
    return age_ms < snapshot->now_ms ? snapshot->now_ms - age_ms : 0;
}

/* Pods were lost, more than its maxUnavailable allows. Scaling up takes the condition away too,
 * until the added ones are there: with maxUnavailable 0, which 25 % of three Pods is, every time.
 * Then no fewer serve than before. */
static bool is_no_longer_available(struct member *member)
{
    const struct sw_deployment *d = member->d;
    struct member_memory *m = member->m;

    if (sw_condition_is(&d->conditions, "Available", "False"))
        return d->available_replicas < SW_MIN(d->replicas, m->served);
    m->served = d->available_replicas;
    return false;
}

static void watch_completion(const struct work *work, struct member *member)
{
    struct member_memory *m = member->m;

    if (!member->is_recorded) {
        m->complete_since_ms = NEVER;
        m->saw_incomplete = false;
        m->served = INT32_MAX;
        return;
    }
    bool is_lost = member->is_held ||
                   (member->is_observed && (is_no_longer_available(member) || member->is_outdated));
    if (member->is_observed && (is_lost || !member->is_complete))
        m->saw_incomplete = true;
    if (is_lost)
        m->complete_since_ms = NEVER;
    else if (member->is_done && m->complete_since_ms == NEVER)
        m->complete_since_ms = completion(work, member);
}

static bool controller_gave_up(const struct member *member)
{
    const struct sw_condition *progressing =
        sw_condition_get(&member->d->conditions, "Progressing");

    return progressing && strcmp(progressing->status, "False") == 0 &&
           strcmp(progressing->reason, "ProgressDeadlineExceeded") == 0 &&
           progressing->last_update_us != member->m->stale_deadline_us;
}

/* Our own deadline: Pods that flap renew the controller's for ever. */
static bool has_stalled(struct work *work, struct member *member)
{
    const struct sw_deployment *d = member->d;
    struct member_memory *m = member->m;
    uint64_t now = work->snapshot->now_ms;
    bool can_progress = member->is_observed && !d->is_paused && !member->is_complete &&
                        m->complete_since_ms == NEVER && !member->is_held;

    if (!(member->is_recorded || member->has_right) || member->is_complete) {
        m->stalled_ms = 0;
        m->updated_mark = m->available_mark = 0;
        m->is_ticking = false;
        return false;
    }
    if (m->is_ticking)
        m->stalled_ms += now - m->ticked_ms;
    m->ticked_ms = now;
    m->is_ticking = can_progress;
    if (d->updated_replicas > m->updated_mark || d->available_replicas > m->available_mark) {
        m->stalled_ms = 0;
        if (d->updated_replicas > m->updated_mark)
            m->updated_mark = d->updated_replicas;
        if (d->available_replicas > m->available_mark)
            m->available_mark = d->available_replicas;
    }
    if (!can_progress || d->progress_deadline_seconds == INT32_MAX)
        return false;
    uint64_t limit = (uint64_t)d->progress_deadline_seconds * SECOND_MS;
    if (m->stalled_ms >= limit)
        return true;
    coord_look_again(work, now + (limit - m->stalled_ms));
    return false;
}

/* All its Pods are there. But one that another policy holds in the middle of its turn may still go
 * back. */
static bool is_complete(const struct member *member)
{
    const struct sw_deployment *d = member->d;

    return member->is_observed && d->updated_replicas == d->replicas &&
           d->status_replicas == d->replicas && d->available_replicas == d->replicas &&
           !(member->is_held && member->has_right);
}

/* Complete, or has been: its controller says so as long as nothing but a Pod is lost. */
static bool is_done(const struct member *member)
{
    const struct sw_condition *progressing =
        sw_condition_get(&member->d->conditions, "Progressing");

    if (member->is_complete || member->is_held)
        return member->is_complete;
    return member->is_observed && !member->d->is_paused && !member->is_outdated && progressing &&
           strcmp(progressing->reason, "NewReplicaSetAvailable") == 0;
}

static void note_finished(const struct work *work, struct member *member)
{
    struct member_memory *m = member->m;
    int64_t now = coord_state_now(work);

    if (m->started_us > m->finished_us)
        m->finished_us = now > m->started_us ? now : m->started_us;
}

static void keep_history(const struct work *work, struct member *member)
{
    struct member_memory *m = member->m;
    int64_t now = coord_state_now(work);

    if (!member->is_pending || (member->is_users_pause && !member->is_recorded))
        m->pending_since_us = 0;
    else if (!m->pending_since_us)
        m->pending_since_us = now;
    m->was_pending = member->is_pending;
}

static void look_at(struct work *work, struct member *member)
{
    const struct sw_deployment *d = member->d;
    struct member_memory *m = member->m;

    sight(member);
    member->is_new = is_new(work, member);
    member->is_outdated =
        member->is_observed && (d->status_replicas > d->updated_replicas || member->is_new);
    member->is_complete = is_complete(member);
    if (member->is_empty)
        m->from_zero = true;
    else if (member->is_complete)
        m->from_zero = false;
    member->is_done = is_done(member);
    if (member->is_done)
        note_finished(work, member);
    member->is_aside = is_aside(member);
    member->is_pending = is_pending(member);
    member->is_moving = is_moving(member);
    member->is_rolling = member->is_moving || (member->has_right && !member->is_complete);
    member->is_settled = member->is_observed && !member->is_rolling;
    member->is_unavailable = is_unavailable(member);
    member->is_counted_by_guard = is_counted_by_guard(member);
    watch_completion(work, member);
    bool is_stalled = has_stalled(work, member);
    member->is_failed = (!d->is_paused && member->is_observed && !member->is_complete &&
                         (is_stalled || controller_gave_up(member))) ||
                        (member->is_given_up && member->is_recorded);
    keep_history(work, member);
}

void coord_states(struct work *work)
{
    read_history(work);
    for (uint32_t i = 0; i < work->member_count; i++)
        if (work->members[i].d)
            look_at(work, &work->members[i]);
}
