/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of the plan: who may go on at all, the hold that comes before everything else, what
 * people have asked for, and then what the template's state asks for. Each run makes at most one
 * step in the status; a release follows only from what is stored there, so that a new leader goes
 * on where this one was.
 */
#include <stdarg.h>
#include <string.h>

#include "work.h"

/* ---- remarks, actions ---- */

void step_look_again(struct work *work, uint64_t after_ms)
{
    if (after_ms < 1)
        after_ms = 1;
    if (after_ms < work->result->look_again_ms)
        work->result->look_again_ms = after_ms;
}

void step_say(struct work *work, enum sw_record_type type, const char *reason, const char *format,
              ...)
{
    struct step_remark *remark = SW_ARENA_NEW(work->arena, struct step_remark), **end;
    va_list args;

    va_start(args, format);
    *remark = (struct step_remark){
        .is_also_of_target = type == SW_NORMAL,
        .type = type,
        .reason = reason,
        .message = sw_arena_vprintf(work->arena, format, args),
    };
    va_end(args);
    for (end = &work->remarks; *end; end = &(*end)->next)
        ;
    *end = remark;
}

struct step_action *step_act(struct work *work, enum step_action_type type)
{
    struct step_action *action = SW_ARENA_NEW(work->arena, struct step_action);

    *action = (struct step_action){
        .type = type,
        .number = ++work->memory->number,
        .resource_version = "",
        .has_marks = true,
        .name = "",
        .has_finalizer = -1,
    };
    *work->next_action = action;
    work->next_action = &action->next;
    return action;
}

struct step_action *step_act_on_target(struct work *work, enum step_action_type type)
{
    struct step_slot *slot = &work->memory->target;
    const char *version = work->t->object->resource_version;

    if (!step_is_free(work, slot, version, type))
        return NULL;
    struct step_action *action = step_act(work, type);
    action->resource_version = sw_arena_strdup(work->arena, version);
    step_sent(slot, action);
    return action;
}

static struct step_action *act_on_meta(struct work *work)
{
    struct step_slot *slot = &work->memory->own;
    const char *version = work->s->meta.resource_version;

    if (!step_is_free(work, slot, version, STEP_META))
        return NULL;
    struct step_action *action = step_act(work, STEP_META);
    action->resource_version = sw_arena_strdup(work->arena, version);
    step_sent(slot, action);
    return action;
}

void step_cancel(struct work *work)
{
    if (work->memory->round)
        step_act(work, STEP_CANCEL);
    work->memory->round = 0;
    step_forget_result(work->memory);
}

bool step_has_looked(struct work *work)
{
    const struct step_target *t = work->t;
    uint64_t now = work->snapshot->now_ms, age = t->revisions_age_ms;
    bool is_known = t->revisions && age <= now && now - age >= work->memory->look_after_ms;

    step_look_again(work, STEP_LOOK_MS);
    if (!is_known || age > STEP_LOOK_MS)
        step_act(work, STEP_LOOK);
    /* Of an API server that needs longer than that for an answer nothing newer can be had. */
    return is_known && (age <= STEP_LOOK_OLD_MS || t->revisions_idle_ms <= STEP_LOOK_MS);
}

const struct step_revision *step_newest(const struct work *work)
{
    for (size_t i = 0; i < work->t->revision_count; i++)
        if (work->t->revisions[i].is_newest)
            return &work->t->revisions[i];
    return NULL;
}

const struct step_revision *step_newest_complete(struct work *work)
{
    const struct step_target *t = work->t;

    if (!step_has_looked(work))
        return NULL;
    const struct step_revision *newest = step_newest(work);
    bool is_of_this =
        t->revisions_version && strcmp(t->revisions_version, t->object->resource_version) == 0;
    if (newest && is_of_this && newest->pods == t->replicas)
        return newest;
    if (t->revisions_age_ms <= STEP_LOOK_MS)
        step_act(work, STEP_LOOK);
    return NULL;
}

/* ---- steps in the status ---- */

void step_go(struct work *work, enum step_activity activity, const char *phase)
{
    work->next.activity = step_activity_text(activity);
    work->next.phase = phase;
    work->next.step_started_us = work->now_us;
}

bool step_is_late(struct work *work, int64_t since_us)
{
    int64_t left_ms =
        (int64_t)work->spec->deadline_ms - (work->snapshot->wall_us - since_us) / 1000;

    /* It stands still; how long it stood is written down before it counts again. */
    if (strcmp(work->s->phase, "Held") == 0 || work->blocked)
        return false;
    if (left_ms > 0)
        step_look_again(work, (uint64_t)left_ms);
    return left_ms <= 0;
}

int64_t step_since(const struct work *work, int64_t recorded_us)
{
    const struct step_memory *memory = work->memory;

    return memory->gives_anew && memory->began_us > recorded_us ? memory->began_us : recorded_us;
}

void step_fail(struct work *work, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    const char *why = sw_arena_vprintf(work->arena, format, args);
    va_end(args);
    work->next.failed_hash = work->t->hash;
    work->next.phase = "Failed";
    step_say(work, SW_WARNING, "Synced", "%s %s.%s failed: %s", work->s->target_kind,
             work->s->target_name, work->s->meta.namespace_, why);
    step_bring_back(work);
    work->next.message = why;
    step_hold(work);
}

/* ---- the hold ---- */

/* What was read of this very object says that its Pods are of another revision than those that were
 * promoted. An API server that fills in new defaults changes every template, and no Pod. */
static bool is_other_revision(const struct work *work)
{
    const struct step_target *t = work->t;
    const struct step_revision *newest = step_newest(work);

    return newest && !newest->is_promoted && t->revisions_version &&
           strcmp(t->revisions_version, t->object->resource_version) == 0;
}

/* Pods that may stay updated while it is held; false: it need not be held. */
static bool must_hold(const struct work *work, int32_t *ret_stop)
{
    const struct step_target *t = work->t;
    int32_t stop;

    *ret_stop = 0;
    switch (work->mode) {
    case STEP_MODE_UNKNOWN:
        return false;
    case STEP_MODE_REST:
        /* Where no hand holds for a person, we do. */
        *ret_stop = t->updated;
        return t->kind != STEP_DEPLOYMENT && t->others != SW_VERDICT_FREE && !step_is_complete(t);
    case STEP_MODE_QUARANTINE:
        if (work->activity == STEP_HELD)
            *ret_stop = t->updated;
        return true;
    case STEP_MODE_NEW:
        return !step_is_unsteppable(t) && (!step_is_complete(t) || is_other_revision(work));
    case STEP_MODE_UNDERWAY:
        break;
    }
    if (work->activity == STEP_QUESTIONS)
        return true;
    stop = step_stop_now(work->s, work->spec, t);
    *ret_stop = stop > t->updated ? stop : t->updated;
    if (t->kind != STEP_DEPLOYMENT && t->others != SW_VERDICT_FREE &&
        work->activity != STEP_ANALYSING) {
        *ret_stop = t->updated;
        return true;
    }
    if (work->activity == STEP_PROMOTING)
        return false;
    if (work->activity == STEP_ANALYSING || step_is_reached(work->s, work->spec, t))
        return true;
    /* deadMan: one batch is all that its controller does by itself. */
    return step_is_raising(work->s, t) && t->is_raised && !t->is_held && t->is_observed &&
           t->status_replicas >= t->replicas + t->surge &&
           t->available <= t->replicas - t->unavailable;
}

static bool is_kept(const struct step_target *t, int32_t stop)
{
    switch (t->kind) {
    case STEP_DEPLOYMENT:
        return t->is_held && !t->is_raised;
    case STEP_STATEFUL_SET:
        return t->is_ours && t->allowed <= stop;
    default:
        return t->is_ours && t->is_held;
    }
}

static void send_hold(struct work *work, int32_t stop)
{
    if (is_kept(work->t, stop))
        return;
    struct step_action *action = step_act_on_target(work, STEP_HOLD);
    if (action)
        action->stop = stop < work->t->replicas ? stop : work->t->replicas;
}

void step_hold(struct work *work)
{
    int32_t stop;

    send_hold(work, must_hold(work, &stop) ? stop : work->t->updated);
}

static void hold_first(struct work *work)
{
    int32_t stop;

    if (must_hold(work, &stop))
        send_hold(work, stop);
}

/* ---- what people ask for ---- */

static const char *wish(const struct work *work, const char *key)
{
    const char *value = sw_annotation(&work->s->meta, key);

    return value ? value : "";
}

static bool is_under_way(const struct work *work)
{
    return work->mode == STEP_MODE_UNDERWAY;
}

/* Obeyed in the status, or there is nothing to obey any more: then it is removed. Each wish is such
 * that one who sees it a second time, because the first did not live to remove it, finds it
 * obeyed. */
static void remove_wish(struct work *work, const char *key)
{
    struct step_action *action = act_on_meta(work);

    work->is_silent = true;
    if (!action)
        return;
    action->removes_promote = strcmp(key, STEP_PROMOTE) == 0;
    action->removes_abort = strcmp(key, STEP_ABORT) == 0;
    action->removes_retry = strcmp(key, STEP_RETRY) == 0;
}

static bool obey_retry(struct work *work)
{
    if (!wish(work, STEP_RETRY)[0])
        return false;
    if (!work->s->failed_hash[0] || strcmp(wish(work, STEP_RETRY), "true") != 0) {
        remove_wish(work, STEP_RETRY);
        return true;
    }
    step_say(work, SW_NORMAL, "Synced", "Retry: the failed template of %s.%s is forgotten",
             work->s->target_name, work->s->meta.namespace_);
    work->next.failed_hash = "";
    work->next.message = work->s->message;
    if (work->mode == STEP_MODE_QUARANTINE)
        step_start(work);
    return true;
}

static bool obey_abort(struct work *work)
{
    const char *value = wish(work, STEP_ABORT);
    bool is_stuck = work->mode == STEP_MODE_QUARANTINE && work->activity == STEP_HELD &&
                    work->t->updated > 0 &&
                    strcmp(work->s->message, STEP_ABORTED) != 0; /* by this very wish */

    if (!value[0] || strcmp(value, "release") == 0)
        return false;
    if (strcmp(value, "true") == 0 && is_under_way(work)) {
        step_fail(work, STEP_ABORTED);
        return true;
    }
    if (strcmp(value, "true") == 0 && is_stuck) {
        step_bring_back(work);
        if (strcmp(work->next.activity, step_activity_text(STEP_HELD)) == 0)
            step_go(work, STEP_RETREATING, "Failed");
        work->next.message = STEP_ABORTED;
        return true;
    }
    remove_wish(work, STEP_ABORT);
    return true;
}

static bool obey_promote(struct work *work)
{
    const char *value = wish(work, STEP_PROMOTE);
    bool is_full = strcmp(value, "full") == 0, is_step = strcmp(value, "step") == 0;

    if (!value[0])
        return false;
    bool is_of_use = (is_full || is_step) &&
                     (work->mode == STEP_MODE_QUARANTINE || is_under_way(work)) &&
                     work->activity != STEP_PROMOTING && work->activity != STEP_ROLLING_BACK;
    if (is_step && work->activity == STEP_ADVANCING && is_under_way(work))
        is_of_use = false;
    if (!is_of_use) {
        remove_wish(work, STEP_PROMOTE);
        return true;
    }
    step_promote(work, is_full);
    return true;
}

/* ---- leaving ---- */

static bool is_marked(const struct work *work)
{
    const char *mark = sw_annotation(work->t->object, SW_STEPPED_BY);

    return mark && strcmp(mark, work->s->meta.name) == 0;
}

static bool has_finalizer(const struct stepped *s)
{
    for (uint32_t i = 0; i < s->finalizers.count; i++)
        if (strcmp(s->finalizers.at[i], STEP_FINALIZER) == 0)
            return true;
    return false;
}

/* It would let roll what is known to be bad. */
static bool must_stay(const struct work *work)
{
    return work->mode == STEP_MODE_QUARANTINE && !work->snapshot->conflict &&
           strcmp(wish(work, STEP_ABORT), "release") != 0;
}

static bool has_ours(const struct work *work)
{
    const struct step_target *t = work->t;
    bool is_owner = is_marked(work) || t->is_ours || t->is_released;

    return is_owner || (t->has_saved && !work->snapshot->conflict);
}

static void leave(struct work *work)
{
    step_cancel(work);
    if (!work->t && !work->snapshot->target_kinds_are_synced)
        return;
    if (work->t && has_ours(work)) {
        struct step_action *action = step_act_on_target(work, STEP_SETTLE);
        if (action)
            action->has_marks = false;
        return;
    }
    if (work->memory->target.writing || !has_finalizer(work->s))
        return;
    struct step_action *action = act_on_meta(work);
    if (action)
        action->has_finalizer = 0;
}

/* ---- who may go on ---- */

/* Why it has failed is worth more. */
static void say_instead(struct work *work, const char *message)
{
    work->next.message = strcmp(work->s->phase, "Failed") == 0 ? work->s->message : message;
}

static bool refuse(struct work *work, const char *reason, const char *message)
{
    const struct sw_condition *ready = sw_condition_get(&work->s->conditions, "Ready");

    work->ready_status = "False";
    work->ready_reason = reason;
    work->ready_message = message;
    say_instead(work, message);
    if (!ready || strcmp(ready->reason, reason) != 0 || strcmp(ready->message, message) != 0)
        step_say(work, SW_WARNING, reason, "%s", message);
    return false;
}

static bool may_go_on(struct work *work)
{
    const struct step_snapshot *snapshot = work->snapshot;
    const struct stepped *s = work->s;

    if (!work->spec)
        return refuse(work, "InvalidSpec", snapshot->spec_error);
    if (snapshot->conflict)
        return refuse(work, "Conflict",
                      sw_arena_printf(work->arena,
                                      "SteppedRollout %s is older and steps %s %s already: delete "
                                      "one of them",
                                      snapshot->conflict, s->target_kind, s->target_name));
    if (!work->t)
        return refuse(work, "TargetNotFound",
                      sw_arena_printf(work->arena, "spec.targetRef: there is no %s %s",
                                      s->target_kind, s->target_name));
    bool has_begun = work->mode == STEP_MODE_UNDERWAY || work->mode == STEP_MODE_QUARANTINE;
    const char *why = step_is_unsteppable(work->t);
    if (why && !has_begun) {
        refuse(work, "InvalidSpec", sw_arena_printf(work->arena, "spec.targetRef: %s", why));
        return work->mode == STEP_MODE_REST; /* what is still to be put back is put back */
    }
    if (s->is_suspended) {
        work->ready_reason = "Suspended";
        work->ready_message = "suspended by spec.suspend";
        say_instead(work, work->ready_message);
        if (is_under_way(work))
            work->blocked = work->ready_message;
        return false;
    }
    return true;
}

/* Nothing is touched, but that a mark of ours would hold the next template. */
static void stand_aside(struct work *work)
{
    const struct step_target *t = work->t;

    step_cancel(work);
    if (!work->next.phase[0])
        work->next.phase = "Initializing";
    if (!t || work->snapshot->conflict)
        return;
    /* What rolled while it was suspended is what is there now. */
    if (work->s->is_suspended && work->mode == STEP_MODE_NEW && step_is_complete(t) && !t->is_ours)
        step_first_sight(work);
    /* One that cannot be stepped is promoted by itself. */
    if (work->spec && step_is_unsteppable(t) && work->mode == STEP_MODE_NEW &&
        work->activity != STEP_IDLE)
        step_go(work, STEP_IDLE, "Initializing");
    if (work->spec && step_is_unsteppable(t) && step_is_complete(t) && !t->is_held) {
        step_first_sight(work);
        if (strcmp(work->next.phase, work->s->phase) == 0 &&
            strcmp(work->next.last_promoted_hash, work->s->last_promoted_hash) == 0)
            work->remarks = NULL;
        say_instead(work, work->ready_message);
    }
    bool is_at_rest = work->mode != STEP_MODE_UNDERWAY && work->mode != STEP_MODE_QUARANTINE;
    bool is_free = !t->is_ours || (work->spec && step_is_unsteppable(t));
    if (is_at_rest && is_free && (is_marked(work) || t->is_ours)) {
        struct step_action *action = step_act_on_target(work, STEP_SETTLE);
        if (action)
            action->has_marks = false;
    }
}

/* ---- the run ---- */

/* What a round found is of this template, at this step, in this activity; or it is nothing. */
static void drop_old_rounds(struct work *work)
{
    struct step_memory *memory = work->memory;
    const struct stepped *s = work->s;

    if ((memory->round || memory->result) &&
        (strcmp(memory->round_hash, work->t->hash) != 0 || memory->round_step != s->current_step ||
         memory->round_activity != work->activity))
        step_cancel(work);
    if (strcmp(memory->confirmed_hash, work->t->hash) != 0 ||
        memory->confirmed_step != s->current_step || !is_under_way(work))
        memory->confirmed = 0;
    /* It is written down already: the answer to that did not come, but what it wrote did. */
    if (memory->is_result_sent && !memory->own.writing && s->passed_rounds == memory->sent_passed &&
        s->failed_checks == memory->sent_failed && s->last_round_us == memory->sent_round_us)
        step_forget_result(memory);
}

/* Complete, and yet of another hash: was there a rollout at all? */
static void compare_revisions(struct work *work)
{
    const struct step_revision *newest = step_newest_complete(work);

    work->next.message = work->s->message;
    if (!newest)
        return;
    if (newest->is_promoted)
        work->next.last_applied_hash = work->next.last_promoted_hash = work->t->hash;
    else
        step_start(work);
}

static void go_on(struct work *work)
{
    if (!has_finalizer(work->s) && !work->s->meta.deleted_us) {
        struct step_action *action = act_on_meta(work);
        if (action)
            action->has_finalizer = 1;
        if (work->mode == STEP_MODE_UNKNOWN)
            return;
    }
    hold_first(work);
    drop_old_rounds(work);
    if (obey_retry(work) || obey_abort(work) || obey_promote(work))
        return;
    switch (work->mode) {
    case STEP_MODE_UNKNOWN:
        step_first_sight(work);
        break;
    case STEP_MODE_REST:
        step_rest(work);
        break;
    case STEP_MODE_QUARANTINE:
        step_quarantine(work);
        break;
    case STEP_MODE_UNDERWAY:
        step_under_way(work);
        break;
    case STEP_MODE_NEW:
        if (!step_is_complete(work->t))
            step_start(work);
        else
            compare_revisions(work);
        break;
    }
}

/* Let go on, and its controller needs nobody to go there. */
static bool goes_by_itself(const struct work *work)
{
    const struct step_target *t = work->t;
    bool is_on_its_way = work->activity == STEP_PROMOTING ||
                         (work->activity == STEP_ADVANCING && t && !step_is_raising(work->s, t));

    if (!work->spec || work->mode != STEP_MODE_UNDERWAY || !is_on_its_way)
        return false;
    return t->kind == STEP_DEPLOYMENT ? !t->is_held
                                      : t->kind == STEP_STATEFUL_SET &&
                                            t->allowed >= step_stop_now(work->s, work->spec, t);
}

/* Less than a quarter of its deadline is left. It stands still while others hold it. */
static bool is_nearly_over(const struct work *work)
{
    const struct stepped *s = work->s;
    int64_t until_us = strcmp(s->phase, "Held") == 0 ? s->last_transition_us : work->now_us;

    return work->spec && (until_us - s->step_started_us) / 1000 >
                             (int64_t)(work->spec->deadline_ms - work->spec->deadline_ms / 4);
}

/* Times that wait for the clock of a run. */
static void set_times(struct work *work)
{
    struct step_memory *memory = work->memory;

    if (!memory->began_us) {
        memory->began_us = work->now_us;
        memory->gives_anew = is_nearly_over(work) && !goes_by_itself(work);
    }
    if (memory->has_changed)
        memory->look_after_ms = work->snapshot->now_ms;
    memory->has_changed = false;
    if (memory->has_ended) {
        memory->ended_ms = work->snapshot->now_ms;
        memory->result_us = work->now_us;
    }
    memory->has_ended = false;
}

void step_plan(struct step_memory *memory, const struct step_snapshot *snapshot,
               struct sw_arena *arena, struct step_result *ret_result)
{
    struct work work = {
        .memory = memory,
        .snapshot = snapshot,
        .arena = arena,
        .result = ret_result,
        .next_action = &ret_result->actions,
        .s = snapshot->object,
        .spec = snapshot->spec,
        .t = snapshot->target,
        .activity = step_activity_of(snapshot->object),
        .now_us = snapshot->wall_us / STEP_SECOND_US * STEP_SECOND_US,
    };

    *ret_result = (struct step_result){.look_again_ms = STEP_NEVER};
    work.mode = work.t ? step_mode_of(work.s, work.t) : STEP_MODE_UNKNOWN;
    set_times(&work);
    if (work.s->meta.deleted_us && !must_stay(&work)) {
        leave(&work);
        return;
    }
    if (!work.t && !snapshot->target_kinds_are_synced)
        return;
    step_status_begin(&work);
    if (may_go_on(&work))
        go_on(&work);
    else
        stand_aside(&work);
    if (work.s->meta.deleted_us) {
        work.ready_status = "False";
        work.ready_reason = "FailedTemplate";
        work.ready_message = "deleted, but its target has a template that failed: apply another "
                             "one, or let this one roll with annotation " STEP_ABORT "=release";
    }
    if (!work.is_silent)
        step_status_end(&work);
}
