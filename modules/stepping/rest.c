/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The promoted template: nothing is to be stepped. What was done while another one was under way is
 * put back, and it rolls natively, should it have something to roll.
 */
#include <string.h>

#include "work.h"

/* Of one of its name that is gone, or of another name; or what was held at admission for a person
 * who has let go since. It would never be complete. Where no hand holds for a person, it stays. */
static void let_go_of_traces(struct work *work)
{
    const struct step_target *t = work->t;
    const char *held_by = sw_annotation(t->object, SW_HELD_BY);
    bool is_held = t->kind == STEP_DEPLOYMENT && held_by && strstr(held_by, STEP_POLICY "/");

    if ((is_held || t->has_saved) && (t->kind == STEP_DEPLOYMENT || t->others == SW_VERDICT_FREE))
        step_act_on_target(work, STEP_SETTLE);
}

void step_first_sight(struct work *work)
{
    struct step_status *next = &work->next;
    const struct step_target *t = work->t;

    if (!next->phase[0] || work->mode == STEP_MODE_UNKNOWN)
        next->phase = "Initializing";
    if (work->mode == STEP_MODE_UNKNOWN) { /* what is known is of another one of its name */
        next->activity = "";
        next->last_applied_hash = next->last_promoted_hash = next->failed_hash = "";
        next->promoted_revision = "";
        next->current_step = next->stop = next->passed_rounds = next->failed_checks = 0;
    }
    if (!step_is_complete(t)) {
        let_go_of_traces(work);
        next->message = sw_arena_printf(work->arena, "waits until %s %s is complete",
                                        work->s->target_kind, work->s->target_name);
        return;
    }
    if (strcmp(t->hash, next->last_promoted_hash) == 0)
        return;
    const struct step_revision *newest = step_newest_complete(work);
    if (!newest) {
        next->message = "waits for the revision of its template";
        return;
    }
    next->last_applied_hash = next->last_promoted_hash = t->hash;
    next->promoted_revision = newest->name;
    if (work->mode == STEP_MODE_UNKNOWN) /* the phase may be the same */
        next->last_transition_us = step_after_making(work);
    step_go(work, STEP_IDLE, "Initialized");
    next->step_started_us = 0;
    next->current_step = next->stop = 0;
    step_say(work, SW_NORMAL, "Synced", "Initialization done! %s.%s", work->s->meta.name,
             work->s->meta.namespace_);
}

static void settle(struct work *work)
{
    const struct step_target *t = work->t;
    const char *mark = sw_annotation(t->object, SW_STEPPED_BY);
    bool is_marked = mark && strcmp(mark, work->s->meta.name) == 0;

    if (t->kind != STEP_DEPLOYMENT && t->others != SW_VERDICT_FREE && !step_is_complete(t))
        return; /* held for a person */
    bool has_steps = !step_is_unsteppable(t);
    if (is_marked == has_steps && !t->is_ours && !t->is_released && !t->has_saved)
        return;
    struct step_action *action = step_act_on_target(work, STEP_SETTLE);
    if (action)
        action->has_marks = has_steps; /* what cannot be stepped is not touched */
}

/* Another one was under way, or had failed, and its user has put this one back. */
static void take_back(struct work *work)
{
    struct step_status *next = &work->next;

    step_cancel(work);
    step_go(work, STEP_IDLE, "Initialized");
    next->step_started_us = next->last_round_us = 0;
    next->current_step = next->stop = next->passed_rounds = next->failed_checks = 0;
    next->last_applied_hash = work->t->hash;
    step_say(work, SW_NORMAL, "Synced", "The promoted template of %s.%s is back",
             work->s->target_name, work->s->meta.namespace_);
}

/* https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#forced-rollback */
void step_clear(struct work *work)
{
    const struct step_target *t = work->t;

    if (t->kind != STEP_STATEFUL_SET || !t->is_observed || t->others != SW_VERDICT_FREE ||
        t->ready >= t->status_replicas || !step_has_looked(work))
        return;
    for (size_t i = 0; i < t->revision_count; i++) {
        const struct step_revision *revision = &t->revisions[i];
        if (revision->is_newest || revision->is_promoted || revision->ready >= revision->pods)
            continue;
        struct step_action *action = step_act_on_target(work, STEP_CLEAR);
        if (action)
            action->pods = 1;
        return;
    }
}

static void roll_back(struct work *work)
{
    const struct stepped *s = work->s;

    work->next.last_applied_hash = work->t->hash;
    if (!step_is_complete(work->t) && work->t->others == SW_VERDICT_FREE &&
        step_is_late(work, step_since(work, s->step_started_us))) {
        work->next.activity = step_activity_text(STEP_ROLLED_BACK);
        work->next.message = "the last promoted template is back, but did not become complete "
                             "within the progress deadline";
        step_say(work, SW_WARNING, "RollbackFailed", "%s.%s: %s", s->target_name,
                 s->meta.namespace_, work->next.message);
        return;
    }
    if (!step_is_complete(work->t)) {
        step_clear(work);
        work->next.message = "the last promoted template is back, and rolls";
        if (work->t->others != SW_VERDICT_FREE)
            work->next.message =
                sw_arena_printf(work->arena, "the last promoted template is back; held by %s",
                                work->t->others_words);
        return;
    }
    work->next.activity = step_activity_text(STEP_ROLLED_BACK);
    work->next.message = "rolled back to the last promoted template";
    step_say(work, SW_WARNING, "RolledBack", "%s %s.%s is back at its last promoted template",
             s->target_kind, s->target_name, s->meta.namespace_);
}

static void tell_success(struct work *work)
{
    struct step_memory *memory = work->memory;

    if (memory->result) {
        work->next.activity = step_activity_text(STEP_IDLE);
        work->uses_result = true;
        step_status_take_checks(work, memory->result);
        if (!memory->result->has_passed)
            step_say(work, SW_WARNING, "Synced", "post-rollout: %s", memory->result->words);
        return;
    }
    if (memory->round)
        return;
    struct step_action *action = step_act(work, STEP_ROUND);
    action->round = memory->round_type = STEP_ROUND_POST_ROLLOUT;
    memory->round = action->number;
    memory->round_activity = work->activity;
    memory->round_step = work->s->current_step;
    memcpy(memory->round_hash, work->t->hash, sizeof memory->round_hash);
}

void step_rest(struct work *work)
{
    settle(work);
    switch (work->activity) {
    case STEP_IDLE:
        if (strcmp(work->s->phase, "Succeeded") != 0)
            work->next.phase = "Initialized";
        if (!work->next.message[0] && strcmp(work->s->phase, "Succeeded") == 0)
            work->next.message = "promotion completed";
        break;
    case STEP_ROLLED_BACK:
        work->next.message = work->s->message;
        break;
    case STEP_POST_QUESTIONS:
        tell_success(work);
        break;
    case STEP_ROLLING_BACK:
        roll_back(work);
        break;
    default:
        take_back(work);
        break;
    }
}
