/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A template that failed, by status.activity:
 *
 *     Retreating   bite after bite the Pods go back to the last promoted revision, the template
 *                  stays                                      -> Retreated, RollingBack, Held
 *     RollingBack  the last promoted template is put back, and rolls (rest.c)
 *                                                             -> RolledBack, Held
 *     Retreated, Held    held until another template comes, or somebody says what to do
 *
 * It stays in quarantine when it is applied again later: held before its first Pod.
 */
#include <stdlib.h>
#include <string.h>

#include <slipway/memory.h>

#include "work.h"

/* What comes out differently from its prediction so often ends the retreat. */
#define MISSES_MAX 2

/* ---- what is done about it ---- */

void step_bring_back(struct work *work)
{
    enum step_activity activity = STEP_RETREATING;

    if (work->spec->on_failure == STEP_STAY)
        activity = STEP_HELD;
    else if (work->spec->on_failure == STEP_ROLLBACK || work->t->kind == STEP_DAEMON_SET)
        activity = STEP_ROLLING_BACK;
    step_forget_prediction(work->memory);
    step_memory_set(&work->memory->rollback_failure, NULL);
    work->memory->misses = work->memory->left = 0;
    step_go(work, activity, "Failed");
}

static SW_PRINTF(2, 3) void roll_back(struct work *work, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    work->next.message = sw_arena_vprintf(work->arena, format, args);
    va_end(args);
    step_say(work, SW_WARNING, "Synced", "A retreat of %s.%s is impossible: %s; rolling back",
             work->s->target_name, work->s->meta.namespace_, work->next.message);
    step_go(work, STEP_ROLLING_BACK, "Failed");
}

static SW_PRINTF(3, 4) void give_up(struct work *work, const char *reason, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    work->next.message = sw_arena_vprintf(work->arena, format, args);
    va_end(args);
    step_say(work, SW_WARNING, reason, "%s.%s: %s; held where it is", work->s->target_name,
             work->s->meta.namespace_, work->next.message);
    step_forget_prediction(work->memory);
    step_go(work, STEP_HELD, "Failed");
}

static void end_retreat(struct work *work)
{
    work->next.message = "retreated: its Pods are of the last promoted revision, and its template "
                         "is held; apply another one, or retry";
    step_say(work, SW_NORMAL, "Retreated", "%s %s.%s: all Pods are of the last promoted revision",
             work->s->target_kind, work->s->target_name, work->s->meta.namespace_);
    step_forget_prediction(work->memory);
    step_go(work, STEP_RETREATED, "Failed");
}

/* ---- retreat of a Deployment ---- */

struct field {
    const struct step_revision *revisions[STEP_SIZES_MAX + 1];
    struct step_size sizes[STEP_SIZES_MAX + 1];
    size_t count;
    bool has_target;
};

/* The oldest first, by the second of its creation, then by name. */
static int by_age(const void *left, const void *right)
{
    const struct step_revision *a = *(const struct step_revision *const *)left;
    const struct step_revision *b = *(const struct step_revision *const *)right;
    int64_t older = a->created_us / STEP_SECOND_US - b->created_us / STEP_SECOND_US;

    return older ? older < 0 ? -1 : 1 : strcmp(a->name, b->name);
}

static bool counts(const struct step_revision *revision)
{
    return revision->wanted > 0 || revision->pods > 0 || revision->is_promoted ||
           revision->is_newest;
}

/* False: its controllers have not yet done what was written. */
static bool look_at(const struct step_target *t, struct field *field)
{
    bool has_template = false, is_done = true;

    *field = (struct field){.count = 0};
    for (size_t i = 0; i < t->revision_count && field->count < STEP_SIZES_MAX - 1; i++)
        if (counts(&t->revisions[i]))
            field->revisions[field->count++] = &t->revisions[i];
    qsort(field->revisions, field->count, sizeof field->revisions[0], by_age);
    for (size_t i = 0; i < field->count; i++) {
        const struct step_revision *revision = field->revisions[i];
        field->sizes[i] = (struct step_size){
            .wanted = revision->wanted,
            .available = revision->available,
            .is_target = revision->is_promoted,
            .is_template = revision->is_newest && !revision->is_promoted,
        };
        field->has_target = field->has_target || revision->is_promoted;
        has_template = has_template || field->sizes[i].is_template;
        is_done = is_done && revision->is_observed;
    }
    if (!has_template) /* not made yet: it was held before its first Pod */
        field->sizes[field->count++] = (struct step_size){.is_template = true};
    return is_done;
}

static void predict(struct work *work, const struct field *field, const struct step_bite *bite)
{
    struct step_prediction *prediction = &work->memory->prediction;

    step_forget_prediction(work->memory);
    step_retreat_predict(field->sizes, field->count, work->t->replicas, work->t->surge, bite,
                         prediction->wanted);
    prediction->replicas = work->t->replicas;
    prediction->count = field->count;
    for (size_t i = 0; i < field->count; i++)
        prediction->names[i] = sw_strdup(field->revisions[i] ? field->revisions[i]->name : "");
}

static int32_t predicted(const struct step_prediction *prediction, const char *name)
{
    for (size_t i = 0; i < prediction->count; i++)
        if (strcmp(prediction->names[i], name) == 0)
            return prediction->wanted[i];
    return 0;
}

static bool is_as_predicted(const struct step_prediction *prediction, const struct field *field)
{
    bool is_same = true;

    for (size_t i = 0; i < field->count; i++) {
        const char *name = field->revisions[i] ? field->revisions[i]->name : "";
        is_same = is_same && predicted(prediction, name) == field->sizes[i].wanted;
    }
    return is_same;
}

/* The controller has done all that it does after a bite. */
static bool is_settled(const struct work *work, const struct field *field)
{
    int64_t sum = 0;
    size_t active = 0;

    for (size_t i = 0; i < field->count; i++) {
        sum += field->sizes[i].wanted;
        active += field->sizes[i].wanted > 0;
    }
    int64_t all = work->t->replicas + (active > 1 ? work->t->surge : 0);
    return sum == all;
}

/* Compares what came with what was said to come; false: the retreat has ended over it. */
static bool learn(struct work *work, const struct field *field)
{
    struct step_memory *memory = work->memory;
    struct step_prediction *prediction = &memory->prediction;

    if (prediction->count == 0 || !is_settled(work, field))
        return true;
    if (prediction->replicas != work->t->replicas) {
        step_forget_prediction(memory); /* scaled meanwhile */
        return true;
    }
    bool is_same = is_as_predicted(prediction, field);
    memory->misses = is_same ? 0 : memory->misses + 1;
    step_forget_prediction(memory);
    if (is_same)
        work->next.step_started_us = work->now_us; /* each bite has the whole deadline */
    if (memory->misses < MISSES_MAX)
        return true;
    give_up(work, "RetreatStuck",
            "its controller does not do with the ReplicaSets what was predicted");
    return false;
}

static void bite_off(struct work *work, const struct field *field, const struct step_bite *bite)
{
    const struct step_revision *revision = field->revisions[bite->which];
    struct step_action *action = step_act_on_target(work, STEP_BITE);

    if (!action)
        return;
    action->name = sw_arena_strdup(work->arena, revision->name);
    action->resource_version = sw_arena_strdup(work->arena, revision->resource_version);
    action->size = bite->size;
    predict(work, field, bite);
}

static void retreat_deployment(struct work *work)
{
    const struct step_target *t = work->t;
    struct field field;
    struct step_bite bite;

    if (!step_has_looked(work))
        return;
    bool is_done = look_at(t, &field);
    if (!field.has_target) {
        roll_back(work, "ReplicaSet %s, which was promoted last, is gone",
                  work->s->promoted_revision);
        return;
    }
    /* Until a bite is answered, what is read may be of before it. */
    if (!is_done || work->memory->target.writing || !learn(work, &field))
        return;
    switch (step_retreat(field.sizes, field.count, t->replicas, t->surge, t->unavailable, &bite)) {
    case STEP_RETREAT_DONE:
        end_retreat(work);
        break;
    case STEP_RETREAT_IMPOSSIBLE:
        roll_back(work, "no Pod of the last promoted revision is left, or the new one is complete");
        break;
    case STEP_RETREAT_BITE:
        bite_off(work, &field, &bite);
        break;
    case STEP_RETREAT_WAIT:
        break;
    }
}

/* ---- retreat of a StatefulSet ---- */

/* Pods that are to go: all that are not of the promoted revision. */
struct heap {
    int32_t pods, ready;
};

static struct heap to_go(const struct step_target *t)
{
    struct heap heap = {0, 0};

    for (size_t i = 0; i < t->revision_count; i++)
        if (!t->revisions[i].is_promoted) {
            heap.pods += t->revisions[i].pods;
            heap.ready += t->revisions[i].ready;
        }
    return heap;
}

/* Pods that are not to go must all be ready; those that are gone must have come back, unless a
 * broken one that is to go stands in the way of that, as it does with podManagementPolicy
 * OrderedReady. */
static bool may_delete(const struct step_target *t, struct heap heap)
{
    int32_t rest = t->status_replicas - heap.pods, rest_ready = t->ready - heap.ready;

    return rest_ready >= rest && (t->status_replicas >= t->replicas || heap.ready < heap.pods);
}

/* In which Pods that are deleted come back, where that is not the promoted one. */
static const struct step_revision *wrong_way_back(const struct step_target *t)
{
    for (size_t i = 0; i < t->revision_count; i++)
        if (t->revisions[i].is_current && !t->revisions[i].is_promoted)
            return &t->revisions[i];
    return NULL;
}

static void retreat_stateful_set(struct work *work)
{
    const struct step_target *t = work->t;
    struct step_memory *memory = work->memory;

    if (t->updated >= t->replicas && t->replicas > 0) {
        roll_back(work, "all its Pods are updated");
        return;
    }
    if (!step_has_looked(work))
        return;
    const struct step_revision *wrong = wrong_way_back(t);
    if (wrong) {
        roll_back(work, "deleted Pods would come back in revision %s", wrong->name);
        return;
    }
    struct heap heap = to_go(t);
    if (heap.pods == 0) {
        if (t->updated == 0 && t->ready >= t->replicas && t->status_replicas >= t->replicas)
            end_retreat(work);
        return;
    }
    /* Each Pod that went has the whole deadline; one that comes back as it was has not. */
    if (memory->left == 0 || heap.pods < memory->left)
        work->next.step_started_us = work->now_us;
    memory->left = heap.pods;
    if (!may_delete(t, heap))
        return;
    struct step_action *action = step_act_on_target(work, STEP_BITE);
    if (!action)
        return;
    action->pods = t->unavailable > 1 ? t->unavailable : 1;
    action->name = sw_arena_strdup(work->arena, work->s->promoted_revision);
}

static void retreat(struct work *work)
{
    const struct step_target *t = work->t;

    work->next.message = sw_arena_printf(work->arena, "retreating: %d of %d Pods are still updated",
                                         t->updated, t->replicas);
    bool is_held =
        t->kind == STEP_DEPLOYMENT ? t->is_held && !t->is_raised : t->is_ours && t->allowed == 0;
    if (step_is_late(work, step_since(work, work->s->step_started_us))) {
        give_up(work, "RetreatStuck", "a bite was not done within the progress deadline");
        return;
    }
    if (!is_held || !t->is_observed)
        return;
    if (t->kind == STEP_DEPLOYMENT)
        retreat_deployment(work);
    else
        retreat_stateful_set(work);
}

/* ---- rollback ---- */

static const struct step_revision *promoted(const struct work *work)
{
    for (size_t i = 0; i < work->t->revision_count; i++)
        if (work->t->revisions[i].is_promoted)
            return &work->t->revisions[i];
    return NULL;
}

/* The template is put back here; that it rolls then is the business of rest.c. */
static void put_back(struct work *work)
{
    struct step_memory *memory = work->memory;

    work->next.message = "rolling back: the last promoted template is to be put back";
    if (memory->rollback_failure) {
        give_up(work, "RollbackFailed", "the last promoted template could not be put back: %s",
                memory->rollback_failure);
        return;
    }
    if (step_is_late(work, step_since(work, work->s->step_started_us))) {
        give_up(work, "RollbackFailed",
                "the last promoted template could not be put back within the progress deadline");
        return;
    }
    if (!step_has_looked(work))
        return;
    const struct step_revision *revision = promoted(work);
    if (!revision) {
        give_up(work, "RollbackFailed", "revision %s, which was promoted last, is gone",
                work->s->promoted_revision);
        return;
    }
    struct step_action *action = step_act_on_target(work, STEP_ROLL_BACK);
    if (action)
        action->name = sw_arena_strdup(work->arena, revision->name);
}

/* ---- */

/* Applied again, after something else was there. */
static void isolate(struct work *work)
{
    work->next.last_applied_hash = work->t->hash;
    work->next.current_step = work->next.stop = 0;
    if (work->t->updated > 0 && work->t->is_observed)
        step_bring_back(work);
    else
        step_go(work, STEP_HELD, "Failed");
    work->next.message = "this template has failed before: held; apply another one, or retry";
    step_say(work, SW_WARNING, "Synced",
             "The template that failed was applied again to %s.%s: held", work->s->target_name,
             work->s->meta.namespace_);
}

/* Pods of another revision than the promoted one are there: scaled to nothing and up again, say,
 * its controller fills the template's. The status alone may tell of what was: it is written late.
 */
static bool has_gone_forth(struct work *work)
{
    const struct step_target *t = work->t;
    bool has_others = false;

    if (!t->is_observed || t->updated == 0 || !step_has_looked(work))
        return false;
    for (size_t i = 0; i < t->revision_count; i++)
        has_others = has_others || (!t->revisions[i].is_promoted &&
                                    (t->revisions[i].wanted > 0 || t->revisions[i].pods > 0));
    return has_others;
}

void step_quarantine(struct work *work)
{
    const struct step_target *t = work->t;

    step_cancel(work);
    work->next.phase = "Failed";
    work->next.message = work->s->message;
    switch (work->activity) {
    case STEP_RETREATING:
        retreat(work);
        break;
    case STEP_ROLLING_BACK:
        put_back(work);
        break;
    case STEP_RETREATED:
        if (has_gone_forth(work) || (work->s->replicas == 0 && t->replicas > 0))
            step_bring_back(work);
        break;
    case STEP_HELD:
        if (strcmp(work->s->message, STEP_ABORTED) == 0)
            work->next.message = STEP_ABORTED "; held where it is";
        /* It was held before its first Pod. */
        if (work->s->updated_replicas == 0 && work->spec->on_failure != STEP_STAY &&
            has_gone_forth(work))
            step_bring_back(work);
        break;
    default:
        if (t->is_observed)
            isolate(work);
        else
            work->is_silent = true; /* how many it has is not known yet */
        break;
    }
}
