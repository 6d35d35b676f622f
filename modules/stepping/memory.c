/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the leader remembers of one SteppedRollout: requests under way, what a round has found until
 * it is written down, what was agreed to. All of it can be lost: then it is asked again.
 */
#include <string.h>

#include <slipway/memory.h>

#include "work.h"

#define RETRY_FIRST_MS 200
#define RETRY_MOST_MS 300000
#define RETRY_SHIFT_MAX 11

struct step_memory *step_memory_new(void)
{
    return SW_NEW(struct step_memory);
}

static void slot_done(struct step_slot *slot)
{
    sw_free(slot->version);
    sw_free(slot->refusal);
}

struct step_memory *step_memory_free(struct step_memory *memory)
{
    if (!memory)
        return NULL;
    slot_done(&memory->target);
    slot_done(&memory->own);
    step_forget_result(memory);
    step_forget_prediction(memory);
    sw_free(memory->rollback_failure);
    return sw_free(memory);
}

void step_memory_set(char **text, const char *value)
{
    char *copy = value ? sw_strdup(value) : NULL;

    sw_free(*text);
    *text = copy;
}

void step_forget_result(struct step_memory *memory)
{
    memory->result_arena = sw_arena_free(memory->result_arena);
    memory->result = NULL;
    memory->is_result_sent = false;
}

void step_forget_prediction(struct step_memory *memory)
{
    for (size_t i = 0; i < memory->prediction.count; i++)
        sw_free(memory->prediction.names[i]);
    memory->prediction.count = 0;
}

/* ---- requests ---- */

/* What was answered by the version of the object can be tried again as soon as there is another. */
static bool is_of_version(enum sw_outcome outcome)
{
    return outcome == SW_CONFLICT || outcome == SW_UNCHANGED || outcome == SW_HELD;
}

static uint64_t delay_of(const struct work *work, const struct step_slot *slot)
{
    unsigned shift = slot->failures < RETRY_SHIFT_MAX ? slot->failures : RETRY_SHIFT_MAX;
    uint64_t delay = (uint64_t)RETRY_FIRST_MS << shift;

    delay = delay < RETRY_MOST_MS ? delay : RETRY_MOST_MS;
    /* Up to half of it is taken off: what failed together is not tried again together. */
    return delay - (work->snapshot->random >> 32) * (delay / 2) / UINT32_MAX;
}

bool step_is_free(struct work *work, struct step_slot *slot, const char *version,
                  enum step_action_type type)
{
    uint64_t now = work->snapshot->now_ms;

    if (slot->writing)
        return false;
    if (slot->has_failed) {
        slot->retry_ms = now + delay_of(work, slot);
        slot->failures++;
        slot->has_failed = false;
    }
    if (slot->retry_ms <= now)
        return true;
    if (is_of_version(slot->outcome) && slot->version && strcmp(slot->version, version) != 0)
        return true;
    if ((slot->outcome == SW_UNCHANGED || slot->outcome == SW_HELD) && slot->type != type)
        return true;
    step_look_again(work, slot->retry_ms - now);
    return false;
}

void step_sent(struct step_slot *slot, const struct step_action *action)
{
    slot->writing = action->number;
    slot->type = action->type;
    slot->retry_ms = 0;
    step_memory_set(&slot->version, action->resource_version);
}

static void answer(struct step_slot *slot, enum sw_outcome outcome, const char *message)
{
    slot->writing = 0;
    slot->outcome = outcome;
    slot->has_failed = outcome != SW_OK;
    if (outcome == SW_OK)
        slot->failures = 0;
    step_memory_set(&slot->refusal, outcome == SW_REFUSED ? message : NULL);
}

void step_answered(struct step_memory *memory, const struct step_action *action,
                   enum sw_outcome outcome, const char *message)
{
    if (memory->own.writing == action->number) {
        answer(&memory->own, outcome, message);
        if (action->type == STEP_STATUS && outcome == SW_OK && memory->is_result_sent)
            step_forget_result(memory);
        return;
    }
    if (memory->target.writing != action->number)
        return;
    answer(&memory->target, outcome, message);
    if (action->type == STEP_BITE || action->type == STEP_CLEAR || action->type == STEP_ADVANCE)
        memory->has_changed = true;
    if (action->type == STEP_BITE && outcome != SW_OK)
        step_forget_prediction(memory);
    if (action->type == STEP_ROLL_BACK) {
        bool is_final = outcome == SW_REFUSED || outcome == SW_NOT_FOUND;
        step_memory_set(&memory->rollback_failure, !is_final               ? NULL
                                                   : message && message[0] ? message
                                                   : outcome == SW_REFUSED
                                                       ? "refused"
                                                       : "its last promoted revision is gone");
    }
}

/* ---- rounds ---- */

static const char *copy(struct sw_arena *arena, const char *text)
{
    return sw_arena_strdup(arena, text ? text : "");
}

static const struct step_round_result *copy_result(struct sw_arena *arena,
                                                   const struct step_round_result *from)
{
    struct step_round_result *to = SW_ARENA_NEW(arena, struct step_round_result);
    struct step_check *checks = SW_ARENA_ARRAY(arena, from->check_count + 1, struct step_check);

    for (size_t i = 0; i < from->check_count; i++) {
        const struct step_check *check = &from->checks[i];
        checks[i] = (struct step_check){
            .name = copy(arena, check->name),
            .type = copy(arena, check->type),
            .value = copy(arena, check->value),
            .range = copy(arena, check->range),
            .has_passed = check->has_passed,
            .at_us = check->at_us,
            .message = copy(arena, check->message),
        };
    }
    *to = (struct step_round_result){
        .type = from->type,
        .has_passed = from->has_passed,
        .checks = checks,
        .check_count = from->check_count,
        .failed = copy(arena, from->failed),
        .words = copy(arena, from->words),
        .rollback_by = copy(arena, from->rollback_by),
    };
    return to;
}

void step_round_ended(struct step_memory *memory, uint64_t number,
                      const struct step_round_result *result)
{
    if (memory->round != number)
        return;
    memory->round = 0;
    memory->has_ended = true;
    step_forget_result(memory);
    memory->result_arena = sw_arena_new(0);
    memory->result = copy_result(memory->result_arena, result);
}
