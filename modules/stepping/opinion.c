/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arbiter: what the policy says of a target, by the status and the object alone. The status is
 * written first, so that whoever asks while a write is under way, or after another process has
 * taken over, hears the same.
 */
#include <stdlib.h>
#include <string.h>

#include <slipway/apps.h>
#include <slipway/arena.h>
#include <slipway/workloads.h>

#include "mode.h"

struct view {
    const struct stepped *object;
    const struct step_spec *spec;
    const struct step_target *target;
    const struct sw_question *question;
    struct sw_arena *arena;
    struct sw_opinion *opinion;
};

/* ---- deadMan ---- */

static void replace(struct sw_json *patch, const char *path, struct sw_json *value)
{
    struct sw_json *operation = sw_json_append_object(patch);

    sw_json_set_string(operation, "op", "add");
    sw_json_set_string(operation, "path", path);
    sw_json_set(operation, "value", value);
}

/* What is submitted unpaused runs, or is paused again because it is held: then the plan, which
 * holds without a raise, takes it back. */
static bool will_run(const struct sw_question *question)
{
    return !sw_as_deployment(question->object)->is_paused && question->old;
}

/* Whoever writes it sets back what is raised: a manifest that names it. */
static bool lowers(const struct sw_question *question)
{
    const struct sw_deployment *now = sw_as_deployment(question->object);
    const struct sw_deployment *old = sw_as_deployment(question->old);

    return (old->min_ready_seconds >= STEP_RAISED_READY_SECONDS &&
            now->min_ready_seconds != old->min_ready_seconds) ||
           (old->progress_deadline_seconds >= STEP_RAISED_DEADLINE_SECONDS &&
            now->progress_deadline_seconds != old->progress_deadline_seconds);
}

static int64_t saved_number(struct sw_arena *arena, const struct sw_object *object, const char *key,
                            int64_t otherwise)
{
    const char *text = sw_annotation(object, SW_SAVED);
    struct sw_json *saved = NULL;

    if (!text || sw_json_parse(arena, text, strlen(text), &saved, NULL))
        return otherwise;
    return sw_json_get_int(saved, key, otherwise);
}

/* A manifest that names the raised fields would set them back, and a release that is not ours does
 * not raise them: they stay raised, and what the manifest says is saved. */
static void keep_raised(const struct view *view)
{
    const struct sw_deployment *now = sw_as_deployment(view->question->object);
    struct sw_arena *arena = view->arena;
    int64_t ready = now->min_ready_seconds, deadline = now->progress_deadline_seconds;
    bool is_ready_raised = ready >= STEP_RAISED_READY_SECONDS;
    bool is_deadline_raised = deadline >= STEP_RAISED_DEADLINE_SECONDS;

    if ((is_ready_raised && is_deadline_raised) || !will_run(view->question))
        return;
    struct sw_json *saved = sw_json_object(arena), *patch = sw_json_array(arena);
    sw_json_set_int(saved, "minReadySeconds",
                    is_ready_raised ? saved_number(arena, &now->meta, "minReadySeconds", 0)
                                    : ready);
    sw_json_set_int(saved, "progressDeadlineSeconds",
                    is_deadline_raised
                        ? saved_number(arena, &now->meta, "progressDeadlineSeconds", deadline)
                        : deadline);
    if (!is_ready_raised)
        replace(patch, "/spec/minReadySeconds", sw_json_int(arena, STEP_RAISED_READY_SECONDS));
    if (!is_deadline_raised)
        replace(patch, "/spec/progressDeadlineSeconds",
                sw_json_int(arena, STEP_RAISED_DEADLINE_SECONDS));
    replace(patch, "/metadata/annotations/slipway.dev~1saved",
            sw_json_string(arena, sw_json_dump(saved, arena, NULL)));
    view->opinion->patch = patch;
    if (lowers(view->question))
        view->opinion->warning =
            sw_arena_printf(arena,
                            "minReadySeconds and progressDeadlineSeconds are raised by "
                            "SteppedRollout %s for now; yours are put back",
                            view->object->meta.name);
}

/* ---- quarantine ---- */

static bool is_new_template(const struct view *view)
{
    const struct sw_object *old = view->question->old;
    struct sw_hash128 hash;
    char text[33];

    if (!old)
        return true;
    if (view->target->kind == STEP_DEPLOYMENT)
        hash = sw_as_deployment(old)->template_hash;
    else if (view->target->kind == STEP_STATEFUL_SET)
        hash = ((const struct sw_stateful_set *)(const void *)old)->template_hash;
    else
        hash = ((const struct sw_daemon_set *)(const void *)old)->template_hash;
    sw_hash128_text(hash, text);
    return strcmp(text, view->target->hash) != 0;
}

static void speak_of_quarantine(const struct view *view)
{
    const struct sw_object *meta = &view->object->meta;
    struct sw_opinion *opinion = view->opinion;

    opinion->has_given_up = true;
    opinion->verdict = SW_VERDICT_HOLD_OUT_OF_LINE;
    opinion->words =
        sw_arena_printf(view->arena, "SteppedRollout %s: this template has failed", meta->name);
    if (!view->question->is_review || !is_new_template(view))
        return;
    if (step_activity_of(view->object) == STEP_ROLLING_BACK && view->question->old)
        opinion->refusal = sw_arena_printf(
            view->arena,
            "SteppedRollout %s: this template has failed, and the rollback to the last promoted "
            "one is under way: apply another template, or this one again when it is complete",
            meta->name);
    else
        opinion->warning = sw_arena_printf(
            view->arena,
            "SteppedRollout %s: this template has failed: held; apply another, or: kubectl slipway "
            "retry %s",
            meta->name, meta->name);
}

/* ---- under way ---- */

static const char *step_words(const struct view *view, const char *what)
{
    return sw_arena_printf(view->arena, "SteppedRollout %s: step %d/%d: %s",
                           view->object->meta.name, view->object->current_step,
                           step_stop_count(view->spec, view->target->replicas), what);
}

/* A question that nobody answers stops nobody else; where nobody is asked it keeps its turn. */
static enum sw_verdict before_its_turn(const struct view *view)
{
    for (size_t i = 0; i < view->spec->hook_count; i++)
        if (view->spec->hooks[i].type == STEP_CONFIRM_ROLLOUT ||
            view->spec->hooks[i].type == STEP_PRE_ROLLOUT ||
            view->spec->hooks[i].type == STEP_CONFIRM_PROMOTION)
            return SW_VERDICT_HOLD_OUT_OF_LINE;
    return SW_VERDICT_HOLD;
}

static void speak_of_step(const struct view *view)
{
    const struct stepped *object = view->object;
    struct sw_opinion *opinion = view->opinion;

    switch (step_activity_of(object)) {
    case STEP_QUESTIONS:
        opinion->verdict = before_its_turn(view);
        opinion->words =
            sw_arena_printf(view->arena, "SteppedRollout %s: questions before the rollout are open",
                            object->meta.name);
        break;
    case STEP_ADVANCING:
        if (step_is_reached(object, view->spec, view->target)) {
            opinion->verdict = SW_VERDICT_HOLD;
            opinion->words = step_words(view, "reached");
        } else if (step_is_between_batches(object, view->target)) {
            opinion->verdict = SW_VERDICT_HOLD;
            opinion->words = step_words(view, "the Pods of this batch are not available yet");
        } else if (step_waits_for_raise(object, view->target)) {
            opinion->verdict = SW_VERDICT_HOLD;
            opinion->words = step_words(view, "released with its raise only");
        } else {
            opinion->words = step_words(view, "advancing");
        }
        if (step_is_raising(object, view->target) && view->question->is_review &&
            opinion->verdict == SW_VERDICT_FREE && !view->target->is_held)
            keep_raised(view);
        break;
    case STEP_ANALYSING:
        /* Without a Pod there is nothing to see: nobody waits for that. */
        opinion->verdict =
            view->target->replicas == 0 ? SW_VERDICT_HOLD_OUT_OF_LINE : SW_VERDICT_HOLD;
        opinion->words = step_words(view, "analysed");
        break;
    default: /* promoting */
        opinion->words =
            sw_arena_printf(view->arena, "SteppedRollout %s: promoting", object->meta.name);
        break;
    }
}

/* ---- */

/* Nobody is told what it does not know, and a new template passes. What stands as held by us stays
 * so. */
static bool has_a_say(const struct view *view, enum step_mode mode)
{
    const char *abort = sw_annotation(&view->object->meta, STEP_ABORT);

    if (mode == STEP_MODE_UNKNOWN)
        return false;
    /* On its way out it keeps only what is known to be bad. */
    if (view->object->meta.deleted_us &&
        (mode != STEP_MODE_QUARANTINE || (abort && strcmp(abort, "release") == 0)))
        return false;
    if (!view->spec || view->object->is_suspended)
        return view->target->is_ours;
    return mode != STEP_MODE_NEW || !step_is_unsteppable(view->target);
}

static bool is_marked(const struct view *view)
{
    const struct sw_object *old = view->question->old;
    const char *mark = sw_annotation(view->target->object, SW_STEPPED_BY);

    if (!mark && old)
        mark = sw_annotation(old, SW_STEPPED_BY);
    return mark && strcmp(mark, view->object->meta.name) == 0;
}

void step_opinion(const struct stepped *object, const struct step_spec *spec,
                  const struct step_target *target, const struct sw_question *question,
                  struct sw_opinion *opinion)
{
    struct view view = {object, spec, target, question, question->arena, opinion};

    opinion->marks = "";
    if (!object || !target)
        return;
    /* One that is made just now has nothing of what is known of its name. */
    bool is_made = question->is_review && !question->old;
    enum step_mode mode = is_made ? STEP_MODE_UNKNOWN : step_mode_of(object, target);
    bool has_say = has_a_say(&view, mode);
    if (!has_say && !is_marked(&view))
        return;
    opinion->is_selected = true;
    opinion->owners = opinion->marks =
        sw_arena_printf(view.arena, STEP_POLICY "/%s", object->meta.name);
    if (!has_say) {
        /* Nothing to say of one that bears our mark: it is said, or the mark would hold it. */
        opinion->rests_running = true;
        return;
    }
    if (!spec || object->is_suspended) {
        opinion->verdict = mode == STEP_MODE_REST ? SW_VERDICT_FREE : SW_VERDICT_HOLD_OUT_OF_LINE;
        opinion->rests_running = mode == STEP_MODE_REST;
        opinion->has_given_up = mode == STEP_MODE_QUARANTINE;
        opinion->words = sw_arena_printf(view.arena, "SteppedRollout %s: %s", object->meta.name,
                                         spec ? "suspended" : "its spec is invalid");
        return;
    }
    switch (mode) {
    case STEP_MODE_UNKNOWN:
    case STEP_MODE_REST:
        opinion->rests_running = true;
        break;
    case STEP_MODE_QUARANTINE:
        speak_of_quarantine(&view);
        break;
    case STEP_MODE_UNDERWAY:
        speak_of_step(&view);
        break;
    case STEP_MODE_NEW:
        /* Complete: it rolled unseen, or the API server has filled in new defaults; the plan finds
         * out. Nothing rolls meanwhile. */
        if (step_is_complete(target) && !(question->is_review && is_new_template(&view))) {
            opinion->rests_running = true;
            break;
        }
        opinion->verdict = before_its_turn(&view);
        opinion->words =
            sw_arena_printf(view.arena, "SteppedRollout %s: a new template, before its first step",
                            object->meta.name);
        break;
    }
}
