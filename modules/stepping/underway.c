/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A template on its way, by status.activity:
 *
 *     Questions   held; confirm-rollout, then pre-rollout     -> Advancing, Promoting
 *     Advancing   released up to the stop of currentStep; at the stop it is held
 *                                                             -> Analysing
 *     Analysing   held; all updated Pods ready (lastRoundAt is 0 until they were), rounds of
 *                 checks, confirm-step, confirm-promotion     -> Advancing, Promoting
 *     Promoting   released to the end                         -> Succeeded
 *
 * Each may fail (failed.c). What is released is written in the status first.
 */
#include <string.h>

#include "work.h"

/* ---- rounds ---- */

static void start_round(struct work *work, enum step_round_type type)
{
    struct step_memory *memory = work->memory;
    struct step_action *action = step_act(work, STEP_ROUND);

    action->round = type;
    memory->round = action->number;
    memory->round_type = type;
    memory->round_activity = work->activity;
    memory->round_step = work->s->current_step;
    memcpy(memory->round_hash, work->t->hash, sizeof memory->round_hash);
}

/* Until the next round may begin, an interval after the last one. What this leader saw itself is
 * known better than to the second. */
static uint64_t pause_ms(const struct work *work)
{
    const struct step_memory *memory = work->memory;
    uint64_t interval_ms = work->spec->interval_ms, now_ms = work->snapshot->now_ms;

    if (memory->ended_ms)
        return memory->ended_ms + interval_ms > now_ms ? memory->ended_ms + interval_ms - now_ms
                                                       : 0;
    int64_t since_ms = (work->snapshot->wall_us - work->s->last_round_us) / 1000;
    if (since_ms < 0)
        return interval_ms;
    return (uint64_t)since_ms < interval_ms ? interval_ms - (uint64_t)since_ms : 0;
}

/* The result of a round of this type, if it has just ended. A rollback that was asked for ends
 * everything. */
static const struct step_round_result *take_result(struct work *work, enum step_round_type type,
                                                   bool *ret_has_failed)
{
    const struct step_round_result *result = work->memory->result;

    *ret_has_failed = false;
    if (!result || result->type != type)
        return NULL;
    step_status_take_checks(work, result);
    work->uses_result = true;
    work->next.last_round_us = work->memory->result_us;
    if (result->rollback_by[0]) {
        step_fail(work, "rollback webhook %s asks for a rollback", result->rollback_by);
        *ret_has_failed = true;
    }
    return result;
}

static void say_failed_checks(struct work *work, const struct step_round_result *result)
{
    for (size_t i = 0; i < result->check_count; i++) {
        const struct step_check *check = &result->checks[i];
        if (check->has_passed)
            continue;
        step_say(work, SW_WARNING, "CheckFailed", "%s: %s%s%s%s%s%s%s", check->name,
                 check->value[0] ? "value " : "", check->value, check->value[0] ? ", " : "",
                 check->range[0] ? "range " : "", check->range, check->range[0] ? ": " : "",
                 check->message);
    }
}

/* ---- questions ---- */

enum answer {
    OPEN,   /* asked, or to be asked again later */
    AGREED, /* in this run or before */
    ENDED,  /* the rollout has failed */
};

static enum answer ask(struct work *work, enum step_round_type type, const char *phase)
{
    struct step_memory *memory = work->memory;
    bool is_waiting = strcmp(work->s->phase, phase) == 0;
    bool has_failed;

    if (memory->confirmed & 1U << type)
        return AGREED;
    const struct step_round_result *result = take_result(work, type, &has_failed);
    if (has_failed)
        return ENDED;
    if (result && result->has_passed) {
        memory->confirmed |= 1U << type;
        memory->confirmed_step = work->s->current_step;
        memcpy(memory->confirmed_hash, work->t->hash, sizeof memory->confirmed_hash);
        return AGREED;
    }
    if (result) {
        work->next.phase = phase;
        work->next.message =
            sw_arena_printf(work->arena, "waiting for approval: %s", result->words);
        return OPEN;
    }
    if (is_waiting)
        work->next.message = work->s->message;
    if (memory->round)
        return OPEN;
    uint64_t pause = is_waiting ? pause_ms(work) : 0;
    if (pause > 0)
        step_look_again(work, pause);
    else
        start_round(work, type);
    return OPEN;
}

/* ---- on to the next stop ---- */

static void promote(struct work *work, bool is_by_hand)
{
    struct step_status *next = &work->next;

    next->current_step = step_stop_count(work->spec, work->t->replicas);
    next->stop = work->t->replicas;
    next->passed_rounds = 0;
    /* By hand it goes to the end, however it is scaled. */
    next->last_round_us = is_by_hand ? work->now_us : 0;
    step_go(work, STEP_PROMOTING, "Promoting");
}

static int32_t next_step(const struct work *work)
{
    const struct step_target *t = work->t;

    if (work->activity == STEP_QUESTIONS)
        return 1;
    int32_t step = step_of(work->spec, t->replicas, t->updated + 1);
    return step > work->s->current_step ? step : work->s->current_step + 1;
}

static bool is_last(const struct work *work, int32_t step)
{
    return step >= step_stop_count(work->spec, work->t->replicas) || work->s->skips_analysis;
}

static void advance_to(struct work *work, int32_t step)
{
    struct step_status *next = &work->next;

    if (is_last(work, step)) {
        promote(work, false);
        return;
    }
    next->current_step = step;
    next->stop = step_stop(work->spec, work->t->replicas, step);
    next->passed_rounds = 0;
    next->last_round_us = 0;
    step_go(work, STEP_ADVANCING, "Progressing");
}

static void go_on(struct work *work, bool was_passed)
{
    int32_t step = next_step(work);

    if (is_last(work, step) &&
        ask(work, STEP_ROUND_CONFIRM_PROMOTION, "WaitingPromotion") != AGREED)
        return;
    if (was_passed)
        step_say(work, SW_NORMAL, "StepPassed", "Step %d/%d of %s.%s passed: %d of %d Pods",
                 work->s->current_step, step_stop_count(work->spec, work->t->replicas),
                 work->s->target_name, work->s->meta.namespace_, work->t->updated,
                 work->t->replicas);
    advance_to(work, step);
}

/* ---- a new template ---- */

void step_start(struct work *work)
{
    struct step_status *next = &work->next;
    const struct stepped *s = work->s;
    bool is_restart =
        s->current_step > 0 && work->activity >= STEP_QUESTIONS && work->activity <= STEP_PROMOTING;

    step_cancel(work);
    next->last_applied_hash = work->t->hash;
    next->current_step = next->stop = next->passed_rounds = next->failed_checks = 0;
    next->last_round_us = 0;
    if (next->check_count > 0)
        work->has_checks = true;
    next->checks = NULL;
    next->check_count = 0;
    step_go(work, STEP_QUESTIONS, "Progressing");
    step_say(work, SW_NORMAL, "Synced", "New revision detected! %s analysis for %s.%s",
             is_restart ? "Restarting" : "Starting", s->target_name, s->meta.namespace_);
}

/* Held so that nothing more is updated, and seen so by its controller. */
static bool is_standing(const struct work *work)
{
    const struct step_target *t = work->t;

    int32_t stop = step_stop_now(work->s, work->spec, t);

    if (!t->is_observed)
        return false;
    if (t->kind == STEP_DEPLOYMENT)
        return t->is_held && !t->is_raised;
    return t->is_ours &&
           (t->kind == STEP_DAEMON_SET || t->allowed <= stop || t->allowed <= t->updated);
}

/* Promoted now, it would have been checked by nobody when it is scaled up. */
static bool waits_for_pods(struct work *work)
{
    if (work->t->replicas > 0 || work->s->skips_analysis)
        return false;
    work->blocked = "has no Pods: goes on when it is scaled up";
    return true;
}

static void ask_before(struct work *work)
{
    bool has_failed;

    work->next.message = "questions before the rollout";
    if (waits_for_pods(work))
        return;
    if (!is_standing(work) || ask(work, STEP_ROUND_CONFIRM_ROLLOUT, "Waiting") != AGREED)
        return;
    if (!work->s->skips_analysis && !(work->memory->confirmed & 1U << STEP_ROUND_PRE_ROLLOUT)) {
        const struct step_round_result *result =
            take_result(work, STEP_ROUND_PRE_ROLLOUT, &has_failed);
        if (has_failed)
            return;
        work->next.phase = "Progressing";
        if (result && !result->has_passed) {
            work->next.failed_checks++;
            say_failed_checks(work, result);
            work->next.message = sw_arena_printf(work->arena, "pre-rollout: %s", result->words);
            if (work->next.failed_checks >= work->spec->threshold)
                step_fail(work, "pre-rollout: %s", result->words);
            return;
        }
        if (!result) {
            uint64_t pause = work->s->failed_checks > 0 ? pause_ms(work) : 0;
            if (work->memory->round)
                return;
            if (pause > 0)
                step_look_again(work, pause);
            else
                start_round(work, STEP_ROUND_PRE_ROLLOUT);
            return;
        }
        work->memory->confirmed |= 1U << STEP_ROUND_PRE_ROLLOUT;
    }
    go_on(work, false);
}

/* ---- advancing ---- */

/* What others say may change without a change of the target. */
#define BLOCKED_LOOK_MS 5000
/* deadMan: a release may move nothing, when its raise comes before the first Pod has gone. */
#define BATCH_MS 2000

/* Who else does not let it go on. */
static bool is_blocked(struct work *work)
{
    const struct step_target *t = work->t;

    if (t->is_users_pause)
        work->blocked = "held by its user: spec.paused is set";
    else if (t->others != SW_VERDICT_FREE)
        work->blocked = sw_arena_printf(work->arena, "held by %s%s%s",
                                        t->others_owners && t->others_owners[0] ? t->others_owners
                                                                                : "another policy",
                                        t->others_words && t->others_words[0] ? ": " : "",
                                        t->others_words ? t->others_words : "");
    if (work->blocked)
        step_look_again(work, BLOCKED_LOOK_MS);
    return work->blocked != NULL;
}

static void send_advance(struct work *work, int32_t stop, bool is_raised)
{
    const struct step_target *t = work->t;
    struct step_memory *memory = work->memory;
    uint64_t now_ms = work->snapshot->now_ms;

    /* What was deleted is seen in the status a little later. */
    if (t->kind == STEP_DAEMON_SET) {
        step_look_again(work, STEP_LOOK_MS);
        if (memory->advanced_ms && now_ms - memory->advanced_ms < STEP_LOOK_MS &&
            strcmp(memory->target.version ? memory->target.version : "",
                   t->object->resource_version) == 0)
            return;
        /* "Nothing could be deleted" is not of this version alone. */
        if (memory->target.outcome == SW_UNCHANGED && !memory->target.writing)
            memory->target.retry_ms = memory->target.has_failed = 0;
    }
    struct step_action *action = step_act_on_target(work, STEP_ADVANCE);
    if (!action)
        return;
    memory->advanced_ms = now_ms;
    action->stop = stop;
    action->is_raised = is_raised;
    action->pods = t->kind == STEP_DAEMON_SET ? stop - t->updated : 0;
}

static void send_raise(struct work *work)
{
    struct step_action *action = step_act_on_target(work, STEP_HOLD);

    if (action)
        action->is_raised = true;
}

/* It is, or is brought, on its way to so many updated Pods. */
static void let_go(struct work *work, int32_t stop, bool is_raised)
{
    const struct step_target *t = work->t;

    if (is_blocked(work)) {
        /* So that others may release it. */
        if (is_raised && t->updated == 0 && t->is_held && !t->is_raised && !t->is_users_pause)
            send_raise(work);
        return;
    }
    if (t->kind == STEP_DEPLOYMENT) {
        uint64_t since_ms = work->snapshot->now_ms - work->memory->advanced_ms;
        if (is_raised && t->is_held && work->memory->advanced_ms && since_ms < BATCH_MS)
            step_look_again(work, BATCH_MS - since_ms);
        else if (t->is_held || t->is_raised != is_raised)
            send_advance(work, stop, is_raised);
    } else if (t->kind == STEP_STATEFUL_SET) {
        /* Without Pods the partition alone says whether it is let go. */
        if (!t->is_ours || t->allowed != stop || (stop >= t->replicas && t->is_held))
            send_advance(work, stop, false);
        else
            step_clear(work);
    } else if (!t->is_ours) {
        step_hold(work); /* its Pods are replaced one by one by us alone */
    } else if (t->updated < stop) {
        send_advance(work, stop, false);
    }
}

/* The last step whose stop so many updated Pods have come to; what is complete has come to the last
 * but one, at which its checks are made. */
static int32_t reached_step(const struct work *work)
{
    const struct step_target *t = work->t;
    int32_t count = step_stop_count(work->spec, t->replicas);
    int32_t step = step_of(work->spec, t->replicas, t->updated + 1) - 1;

    if (step >= count)
        step = count - 1;
    return step > work->s->current_step ? step : work->s->current_step;
}

static void note_reached(struct work *work)
{
    const struct step_target *t = work->t;
    struct step_status *next = &work->next;
    int32_t step = reached_step(work), from = work->s->current_step;
    int32_t count = step_stop_count(work->spec, t->replicas);
    int32_t stop = step_stop(work->spec, t->replicas, from);
    int64_t batch = (int64_t)t->surge + t->unavailable;

    if (t->updated > stop + (batch > 1 ? batch : 1))
        step_say(work, SW_WARNING, "StepMissed",
                 "%d of %d Pods are updated, and step %d was to stop at %d: it rolled on unseen; "
                 "the checks are made here",
                 t->updated, t->replicas, from, stop);
    next->current_step = step;
    next->stop = step_stop(work->spec, t->replicas, step);
    next->passed_rounds = 0;
    next->last_round_us = 0;
    next->activity = step_activity_text(STEP_ANALYSING);
    step_say(work, SW_NORMAL, "StepReached", "Step %d/%d of %s.%s reached: %d of %d Pods", step,
             step > count ? step : count, work->s->target_name, work->s->meta.namespace_,
             t->updated, t->replicas);
}

static void advance(struct work *work)
{
    const struct step_target *t = work->t;
    int32_t step = work->s->current_step;
    int32_t stop = step_stop_now(work->s, work->spec, t);

    work->next.phase = "Progressing";
    work->next.stop = stop;
    work->next.message = sw_arena_printf(work->arena, "advancing to step %d: %d Pods", step, stop);
    if (waits_for_pods(work))
        return;
    if (work->s->skips_analysis || (is_last(work, step) && t->updated == 0)) {
        go_on(work, false);
        return;
    }
    if (step_is_reached(work->s, work->spec, t)) {
        if (is_standing(work))
            note_reached(work);
        return;
    }
    if (!is_blocked(work) && step_is_late(work, step_since(work, work->s->step_started_us)))
        step_fail(work, "progress deadline exceeded: %d of %d Pods of step %d are updated",
                  t->updated, stop, step);
    else if (!step_is_between_batches(work->s, t))
        let_go(work, stop, step_is_raising(work->s, t));
    else if (t->is_raised)
        step_hold(work);
}

/* ---- analysing ---- */

enum readiness {
    UNSEEN, /* not held, or not looked at yet */
    UNREADY,
    READY,
};

static enum readiness readiness(struct work *work)
{
    const struct step_target *t = work->t;

    if (!is_standing(work))
        return UNSEEN;
    if (t->ready >= t->status_replicas && t->status_replicas >= t->replicas)
        return READY;
    if (!step_has_looked(work))
        return UNSEEN;
    const struct step_revision *newest = step_newest(work);
    bool is_ready = newest && newest->pods > 0 && newest->pods >= newest->wanted &&
                    newest->ready >= newest->pods;
    return is_ready ? READY : UNREADY;
}

/* The Pods of the step have to be ready within the deadline; and again when the next round is due.
 * Who leads anew looks first, and does not know since when they are not ready any more. */
static int64_t unready_since(const struct work *work, enum readiness readiness)
{
    const struct stepped *s = work->s;

    if (s->last_round_us) {
        int64_t due_us = s->last_round_us + (int64_t)work->spec->interval_ms * 1000;
        return due_us > work->memory->began_us ? due_us : work->memory->began_us;
    }
    return readiness == UNSEEN ? step_since(work, s->step_started_us) : s->step_started_us;
}

static void wait_until_ready(struct work *work, enum readiness readiness)
{
    int32_t step = work->s->current_step;

    work->next.message =
        sw_arena_printf(work->arena, "step %d: waits until all updated Pods are ready", step);
    step_look_again(work, STEP_LOOK_MS);
    if (step_is_late(work, unready_since(work, readiness)))
        step_fail(work, "progress deadline exceeded: the Pods of step %d are not ready", step);
}

/* Scaled so that the step's stop is farther away than it has come: it goes there, and is checked
 * there. */
static bool is_scaled_away(struct work *work)
{
    const struct step_target *t = work->t;
    int32_t stop = step_stop_now(work->s, work->spec, t);

    if (t->is_observed && t->updated == 0) { /* a set that is scaled down loses those first */
        work->next.current_step = 1;
        work->next.stop = step_stop(work->spec, t->replicas, 1);
        work->next.passed_rounds = 0;
        work->next.last_round_us = 0;
        step_go(work, STEP_ADVANCING, "Progressing");
        return true;
    }
    if (stop == work->s->stop || !t->is_observed || is_last(work, work->s->current_step))
        return false;
    work->next.stop = stop;
    if (t->updated >= stop)
        return false;
    work->next.last_round_us = 0;
    step_go(work, STEP_ADVANCING, "Progressing");
    return true;
}

static void end_round(struct work *work, const struct step_round_result *result)
{
    struct step_status *next = &work->next;

    if (result->has_passed) {
        next->passed_rounds++;
        return;
    }
    next->passed_rounds = 0;
    next->failed_checks++;
    say_failed_checks(work, result);
    if (next->failed_checks >= work->spec->threshold)
        step_fail(work, "step %d: %s", work->s->current_step, result->words);
}

/* Rounds of checks until enough have passed; true: they have. */
static bool have_checks_passed(struct work *work)
{
    const struct stepped *s = work->s;
    struct step_memory *memory = work->memory;
    bool has_failed;

    if (s->skips_analysis || (s->passed_rounds >= work->spec->iterations && s->last_round_us))
        return true;
    work->next.phase = "Progressing";
    const struct step_round_result *result = take_result(work, STEP_ROUND_ANALYSIS, &has_failed);
    if (has_failed)
        return false;
    if (result) {
        end_round(work, result);
        return false;
    }
    if (memory->round)
        return false;
    if (s->last_round_us == 0 || pause_ms(work) == 0) {
        enum readiness now = readiness(work);
        if (now != READY) {
            wait_until_ready(work, now);
            return false;
        }
        if (s->last_round_us == 0) { /* the first round comes an interval later */
            work->next.last_round_us = work->now_us;
            memory->ended_ms = work->snapshot->now_ms;
        } else {
            start_round(work, STEP_ROUND_ANALYSIS);
        }
        return false;
    }
    step_look_again(work, pause_ms(work));
    return false;
}

/* Scaled to nothing: there is nothing to check until it has Pods again, and then it has the whole
 * deadline. */
static bool has_no_pods(struct work *work)
{
    struct step_status *next = &work->next;

    if (work->t->replicas > 0 && work->s->step_started_us)
        return false;
    step_cancel(work);
    next->passed_rounds = 0;
    next->last_round_us = 0;
    next->step_started_us = work->t->replicas > 0 ? work->now_us : 0;
    if (work->t->replicas == 0)
        work->blocked = "has no Pods: goes on when it is scaled up";
    return true;
}

static void analyse(struct work *work)
{
    work->next.message =
        sw_arena_printf(work->arena, "step %d: %d of %d rounds passed", work->s->current_step,
                        work->s->passed_rounds, work->spec->iterations);
    if (has_no_pods(work))
        return;
    /* It went on behind our back: what was checked here says nothing of where it is now. */
    if (is_standing(work) && reached_step(work) > work->s->current_step) {
        note_reached(work);
        return;
    }
    if (is_scaled_away(work) || !have_checks_passed(work))
        return;
    if (!is_standing(work) || ask(work, STEP_ROUND_CONFIRM_STEP, "Waiting") != AGREED)
        return;
    go_on(work, true);
}

/* ---- to the end ---- */

static void succeed(struct work *work)
{
    struct step_status *next = &work->next;
    const struct stepped *s = work->s;
    bool has_questions = false;

    const struct step_revision *newest = step_newest_complete(work);
    if (!newest)
        return;
    for (size_t i = 0; i < work->spec->hook_count; i++)
        has_questions = has_questions || work->spec->hooks[i].type == STEP_POST_ROLLOUT;
    step_go(work, has_questions ? STEP_POST_QUESTIONS : STEP_IDLE, "Succeeded");
    next->message = "promotion completed";
    next->last_promoted_hash = next->last_applied_hash = work->t->hash;
    next->promoted_revision = newest->name;
    step_say(work, SW_NORMAL, "Promoted", "Promotion completed! %s.%s", s->target_name,
             s->meta.namespace_);
}

static void finish(struct work *work)
{
    const struct step_target *t = work->t;

    work->next.phase = "Promoting";
    work->next.stop = t->replicas;
    work->next.message =
        sw_arena_printf(work->arena, "promoting: %d of %d Pods", t->updated, t->replicas);
    /* Scaled up: there are steps that have not been made. */
    if (step_stop_count(work->spec, t->replicas) > work->s->current_step &&
        work->s->last_round_us == 0 && !work->s->skips_analysis) {
        advance_to(work, next_step(work));
        step_hold(work);
        return;
    }
    if (step_is_complete(t)) {
        succeed(work);
        return;
    }
    if (!is_blocked(work) && step_is_late(work, step_since(work, work->s->step_started_us)))
        step_fail(work, "progress deadline exceeded: %d of %d Pods are updated, %d available",
                  t->updated, t->replicas, t->available);
    else
        let_go(work, t->replicas, false);
}

/* ---- */

void step_promote(struct work *work, bool is_full)
{
    const struct step_target *t = work->t;

    step_cancel(work);
    work->next.failed_hash = work->mode == STEP_MODE_QUARANTINE ? "" : work->next.failed_hash;
    work->next.last_applied_hash = t->hash;
    work->next.failed_checks = 0;
    step_say(work, SW_NORMAL, "Synced", "Promoted by hand: %s.%s goes on to %s",
             work->s->target_name, work->s->meta.namespace_, is_full ? "the end" : "the next step");
    if (is_full)
        promote(work, true);
    else
        advance_to(work, work->activity == STEP_ANALYSING || t->updated > 0
                             ? step_of(work->spec, t->replicas, t->updated + 1)
                             : 1);
}

void step_under_way(struct work *work)
{
    switch (work->activity) {
    case STEP_QUESTIONS:
        ask_before(work);
        break;
    case STEP_ADVANCING:
        advance(work);
        break;
    case STEP_ANALYSING:
        analyse(work);
        break;
    default:
        finish(work);
        break;
    }
}
