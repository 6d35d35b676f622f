/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status: begun as it is stored, changed by the plan, compared with what is stored, and as a
 * merge patch, in which lists are replaced whole and what is absent but stored is deleted by null.
 */
#include <string.h>

#include <slipway/time.h>

#include "work.h"

void step_status_begin(struct work *work)
{
    const struct stepped *s = work->s;

    work->next = (struct step_status){
        .phase = s->phase,
        .activity = s->activity,
        .message = "",
        .current_step = s->current_step,
        .step_count = s->step_count,
        .stop = s->stop,
        .updated_replicas = s->updated_replicas,
        .replicas = s->replicas,
        .passed_rounds = s->passed_rounds,
        .failed_checks = s->failed_checks,
        .last_applied_hash = s->last_applied_hash,
        .last_promoted_hash = s->last_promoted_hash,
        .failed_hash = s->failed_hash,
        .promoted_revision = s->promoted_revision,
        .checks = s->checks.at,
        .check_count = s->checks.count,
        .step_started_us = s->step_started_us,
        .last_round_us = s->last_round_us,
        .last_transition_us = s->last_transition_us,
    };
    work->ready_status = "True";
    work->ready_reason = "Ready";
    work->ready_message = "";
}

void step_status_take_checks(struct work *work, const struct step_round_result *result)
{
    size_t most = work->next.check_count + result->check_count, count = 0;
    struct step_check *checks = SW_ARENA_ARRAY(work->arena, most + 1, struct step_check);

    for (size_t i = 0; i < work->next.check_count; i++) {
        const struct step_check *old = &work->next.checks[i];
        bool is_replaced = false;
        for (size_t j = 0; j < result->check_count; j++)
            is_replaced = is_replaced || (strcmp(result->checks[j].name, old->name) == 0 &&
                                          strcmp(result->checks[j].type, old->type) == 0);
        if (!is_replaced)
            checks[count++] = *old;
    }
    for (size_t i = 0; i < result->check_count; i++) { /* the result goes with its answer */
        const struct step_check *check = &result->checks[i];
        checks[count++] = (struct step_check){
            .name = sw_arena_strdup(work->arena, check->name),
            .type = sw_arena_strdup(work->arena, check->type),
            .value = sw_arena_strdup(work->arena, check->value),
            .range = sw_arena_strdup(work->arena, check->range),
            .has_passed = check->has_passed,
            .at_us = check->at_us,
            .message = sw_arena_strdup(work->arena, check->message),
        };
    }
    work->next.checks = checks;
    work->next.check_count = count;
    work->has_checks = work->has_checks || result->check_count > 0;
}

/* ---- conditions ---- */

static void set_condition(struct work *work, struct sw_condition *condition, const char *type,
                          const char *status, const char *reason, const char *message)
{
    const struct sw_condition *stored = sw_condition_get(&work->s->conditions, type);
    bool is_same = stored && strcmp(stored->status, status) == 0;

    *condition = (struct sw_condition){
        .type = type,
        .status = status,
        .reason = reason,
        .message = message,
        .last_transition_us = is_same ? stored->last_transition_us : work->now_us,
        .observed_generation = work->s->meta.generation,
    };
}

/* As Flagger words it, by phase; reason is the phase. */
static void set_promoted(struct work *work, struct sw_condition *condition)
{
    static const struct {
        const char *phase, *status, *message;
    } rows[] = {
        {"Initializing", "Unknown", "New %s detected, starting initialization."},
        {"Initialized", "True", "%s initialization completed."},
        {"Waiting", "Unknown", "Waiting for approval."},
        {"WaitingPromotion", "Unknown", "Waiting for approval."},
        {"Progressing", "Unknown", "New revision detected, progressing in steps."},
        {"Promoting", "Unknown", "Analysis completed, rolling out to all Pods."},
        {"Succeeded", "True", "Analysis completed successfully, promotion finished."},
        {"Failed", "False", "Analysis failed, %s not promoted."},
        {"Held", "Unknown", "Held by something else."},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].phase, work->next.phase) != 0)
            continue;
        const char *of = strstr(rows[i].message, "%s");
        const char *message = rows[i].message;
        if (of)
            message = sw_arena_printf(work->arena, "%.*s%s%s", (int)(of - rows[i].message),
                                      rows[i].message, work->s->target_kind, of + strlen("%s"));
        set_condition(work, condition, "Promoted", rows[i].status, rows[i].phase, message);
        return;
    }
    *condition = (struct sw_condition){.type = "", .status = "", .reason = "", .message = ""};
}

static bool condition_differs(const struct sw_condition *condition,
                              const struct sw_conditions *stored)
{
    if (!condition->type[0])
        return false;
    const struct sw_condition *old = sw_condition_get(stored, condition->type);
    return !old || strcmp(old->status, condition->status) != 0 ||
           strcmp(old->reason, condition->reason) != 0 ||
           strcmp(old->message, condition->message) != 0;
}

/* ---- is there something to write? ---- */

static const char *step_text(struct sw_arena *arena, const struct step_status *status)
{
    return status->step_count > 0
               ? sw_arena_printf(arena, "%d/%d", status->current_step, status->step_count)
               : "";
}

static const char *updated_text(struct sw_arena *arena, const struct step_status *status)
{
    return sw_arena_printf(arena, "%d/%d", status->updated_replicas, status->replicas);
}

static bool differs(const struct work *work)
{
    const struct step_status *a = &work->next;
    const struct stepped *b = work->s;
    const char *const texts[][2] = {
        {a->phase, b->phase},
        {a->activity, b->activity},
        {a->message, b->message},
        {a->last_applied_hash, b->last_applied_hash},
        {a->last_promoted_hash, b->last_promoted_hash},
        {a->failed_hash, b->failed_hash},
        {a->promoted_revision, b->promoted_revision},
        {step_text(work->arena, a), b->step_text},
        {updated_text(work->arena, a), b->updated_text},
    };
    const int64_t numbers[][2] = {
        {a->current_step, b->current_step},
        {a->step_count, b->step_count},
        {a->stop, b->stop},
        {a->updated_replicas, b->updated_replicas},
        {a->replicas, b->replicas},
        {a->passed_rounds, b->passed_rounds},
        {a->failed_checks, b->failed_checks},
        {a->step_started_us, b->step_started_us},
        {a->last_round_us, b->last_round_us},
        {a->last_transition_us, b->last_transition_us},
        {a->observed_generation, b->observed_generation},
        {(int64_t)a->check_count, (int64_t)b->checks.count},
    };
    bool is_other = work->has_checks;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        is_other = is_other || strcmp(texts[i][0], texts[i][1]) != 0;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        is_other = is_other || numbers[i][0] != numbers[i][1];
    for (size_t i = 0; i < 2; i++)
        is_other = is_other || condition_differs(&a->conditions[i], &b->conditions);
    return is_other;
}

/* ---- the end of a run ---- */

int64_t step_after_making(const struct work *work)
{
    int64_t made_us = work->t ? work->t->object->created_us : 0;

    return made_us > work->now_us ? made_us : work->now_us;
}

static bool is_standing(const char *phase)
{
    return strcmp(phase, "Held") == 0;
}

/* While others hold it its deadline stands still: when it goes on, it has as long as it had. */
static void stand_or_go_on(struct work *work)
{
    struct step_status *next = &work->next;
    const struct stepped *s = work->s;

    if (work->blocked) {
        next->phase = "Held";
        next->message = work->blocked;
    } else if (is_standing(s->phase) && !is_standing(next->phase) && s->last_transition_us &&
               next->step_started_us == s->step_started_us && s->step_started_us) {
        int64_t stood_us = work->now_us - s->last_transition_us;
        next->step_started_us += stood_us > 0 ? stood_us : 0;
    }
}

/* What failed to be written, where nothing better is to be said. */
static void tell_refusals(struct work *work)
{
    const struct step_memory *memory = work->memory;

    if (memory->target.refusal)
        work->next.message =
            sw_arena_printf(work->arena, "cannot write %s %s: %s", work->s->target_kind,
                            work->s->target_name, memory->target.refusal);
    else if (work->t && work->t->look_error && memory->has_changed)
        work->next.message =
            sw_arena_printf(work->arena, "cannot see its revisions: %s", work->t->look_error);
}

static void fill_in(struct work *work)
{
    struct step_status *next = &work->next;
    const struct step_target *t = work->t;

    stand_or_go_on(work);
    tell_refusals(work);
    next->observed_generation = work->s->meta.generation;
    if (t) {
        next->replicas = t->replicas;
        next->updated_replicas = t->updated;
        if (work->spec)
            next->step_count = step_stop_count(work->spec, t->replicas);
        if (next->current_step > next->step_count)
            next->step_count = next->current_step;
    }
    if (strcmp(next->phase, work->s->phase) != 0)
        next->last_transition_us = step_after_making(work);
    if (!work->ready_message[0])
        work->ready_message = "stepping its target";
    set_condition(work, &next->conditions[0], "Ready", work->ready_status, work->ready_reason,
                  work->ready_message);
    set_promoted(work, &next->conditions[1]);
}

static void note_result(struct work *work)
{
    struct step_memory *memory = work->memory;

    memory->is_result_sent = true;
    memory->sent_passed = work->next.passed_rounds;
    memory->sent_failed = work->next.failed_checks;
    memory->sent_round_us = work->next.last_round_us;
}

void step_status_end(struct work *work)
{
    struct step_memory *memory = work->memory;

    fill_in(work);
    if (!differs(work)) {
        if (work->uses_result)
            step_forget_result(memory);
        return;
    }
    if (!step_is_free(work, &memory->own, work->s->meta.resource_version, STEP_STATUS))
        return;
    struct step_action *action = step_act(work, STEP_STATUS);
    struct step_status *status = SW_ARENA_NEW(work->arena, struct step_status);
    *status = work->next;
    action->status = status;
    action->remarks = work->remarks;
    action->resource_version = sw_arena_strdup(work->arena, work->s->meta.resource_version);
    step_sent(&memory->own, action);
    if (work->uses_result)
        note_result(work);
}

/* ---- as a patch ---- */

struct patch {
    struct sw_arena *arena;
    struct sw_json *object;
};

static void put_text(struct patch *patch, const char *key, const char *text, const char *stored)
{
    if (text[0])
        sw_json_set_string(patch->object, key, text);
    else if (stored[0])
        sw_json_set(patch->object, key, NULL);
}

static void put_time(struct patch *patch, const char *key, int64_t us, int64_t stored_us)
{
    if (us)
        sw_json_set_string(patch->object, key, sw_time_text(patch->arena, us));
    else if (stored_us)
        sw_json_set(patch->object, key, NULL);
}

static void put_checks(struct patch *patch, const struct step_status *status)
{
    struct sw_json *list = sw_json_set_array(patch->object, "checks");

    for (size_t i = 0; i < status->check_count; i++) {
        const struct step_check *check = &status->checks[i];
        struct patch entry = {patch->arena, sw_json_append_object(list)};
        sw_json_set_string(entry.object, "name", check->name);
        put_text(&entry, "type", check->type, "");
        put_text(&entry, "value", check->value, "");
        put_text(&entry, "range", check->range, "");
        sw_json_set_bool(entry.object, "passed", check->has_passed);
        put_time(&entry, "at", check->at_us, 0);
        put_text(&entry, "message", check->message, "");
    }
}

static void put_conditions(struct patch *patch, const struct step_status *status)
{
    struct sw_json *list = sw_json_set_array(patch->object, "conditions");

    for (size_t i = 0; i < 2; i++) {
        const struct sw_condition *condition = &status->conditions[i];
        if (!condition->type[0])
            continue;
        struct sw_json *entry = sw_json_append_object(list);
        sw_json_set_string(entry, "type", condition->type);
        sw_json_set_string(entry, "status", condition->status);
        sw_json_set_string(entry, "reason", condition->reason);
        sw_json_set_string(entry, "message", condition->message);
        sw_json_set_string(entry, "lastTransitionTime",
                           sw_time_text(patch->arena, condition->last_transition_us));
        sw_json_set_int(entry, "observedGeneration", condition->observed_generation);
    }
}

struct sw_json *step_status_patch(struct sw_arena *arena, const struct step_status *status,
                                  const struct stepped *stored)
{
    struct sw_json *whole = sw_json_object(arena);
    struct patch patch = {arena, sw_json_set_object(whole, "status")};

    put_text(&patch, "phase", status->phase, stored->phase);
    put_text(&patch, "activity", status->activity, stored->activity);
    put_text(&patch, "message", status->message, stored->message);
    put_text(&patch, "step", step_text(arena, status), stored->step_text);
    put_text(&patch, "updated", updated_text(arena, status), stored->updated_text);
    sw_json_set_int(patch.object, "currentStep", status->current_step);
    sw_json_set_int(patch.object, "steps", status->step_count);
    sw_json_set_int(patch.object, "stop", status->stop);
    sw_json_set_int(patch.object, "updatedReplicas", status->updated_replicas);
    sw_json_set_int(patch.object, "replicas", status->replicas);
    sw_json_set_int(patch.object, "iterations", status->passed_rounds);
    sw_json_set_int(patch.object, "failedChecks", status->failed_checks);
    put_text(&patch, "lastAppliedHash", status->last_applied_hash, stored->last_applied_hash);
    put_text(&patch, "lastPromotedHash", status->last_promoted_hash, stored->last_promoted_hash);
    put_text(&patch, "failedHash", status->failed_hash, stored->failed_hash);
    put_text(&patch, "promotedRevision", status->promoted_revision, stored->promoted_revision);
    put_checks(&patch, status);
    put_time(&patch, "stepStartedAt", status->step_started_us, stored->step_started_us);
    put_time(&patch, "lastRoundAt", status->last_round_us, stored->last_round_us);
    put_time(&patch, "lastTransitionTime", status->last_transition_us, stored->last_transition_us);
    sw_json_set_int(patch.object, "observedGeneration", status->observed_generation);
    put_conditions(&patch, status);
    return whole;
}
