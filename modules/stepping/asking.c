/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounds of checks (round.h): one at a time for a SteppedRollout, and so many of all together as
 * the configuration says; what comes beyond waits in order. An analysis of Pods looks first which
 * Pods are the new ones.
 */
#include "shell.h"

#include <string.h>

#include <slipway/memory.h>
#include <slipway/telemetry.h>
#include <slipway/time.h>

struct step_rounding {
    struct sw_instance *self;
    struct step_entry *entry;
    struct step_runner *runner;
    enum {
        IDLE,
        LOOKING,
        WAITING,
        RUNNING,
    } state;
    uint64_t number; /* of the action */
    enum step_round_type type;
    uint64_t asked_ms;
    struct step_looking *looking;
    struct sw_alarm *again; /* to look again, where the API server had no answer */
    char *pod_selector, *pod_owner_uid;
    struct step_rounding *next; /* of those that wait */
};

enum { LOOK_AGAIN_MS = 1000 };

static void start_waiting(struct sw_instance *self);

/* ---- the end ---- */

static void report(struct step_rounding *rounding, const struct step_round_result *result)
{
    struct step_entry *entry = rounding->entry;

    rounding->state = IDLE;
    if (entry->memory)
        step_round_ended(entry->memory, rounding->number, result);
    step_shell_wake(rounding->self, entry);
}

static void on_end(struct sw_instance *self, void *arg, const struct step_round_result *result)
{
    struct step_rounding *rounding = arg;
    struct step_state *state = sw_state(self);

    sw_debug(self, "round ended", SW_STR("namespace", rounding->entry->namespace_),
             SW_STR("name", rounding->entry->name), SW_BOOL("passed", result->has_passed),
             SW_STR("failed", result->failed),
             SW_MS("took", sw_time_ms(self) - rounding->asked_ms));
    state->rounds_under_way--;
    report(rounding, result);
    start_waiting(self);
}

static void on_check(struct sw_instance *self, void *arg, const struct step_check *check,
                     uint64_t took_ms)
{
    struct step_rounding *rounding = arg;
    struct step_state *state = sw_state(self);

    step_meter_check(&state->meter, check);
    sw_debug(self, "check ended", SW_STR("namespace", rounding->entry->namespace_),
             SW_STR("name", rounding->entry->name), SW_STR("check", check->name),
             SW_STR("type", check->type), SW_BOOL("passed", check->has_passed),
             SW_STR("value", check->value), SW_MS("took", took_ms));
}

/* It could not be asked at all: that is a failed one. */
static void fail(struct step_rounding *rounding, const char *why)
{
    const struct step_round_result failed = {
        .type = rounding->type,
        .failed = "",
        .words = why,
        .rollback_by = "",
    };

    report(rounding, &failed);
}

/* ---- the start ---- */

static void run(struct sw_instance *self, struct step_rounding *rounding)
{
    struct step_state *state = sw_state(self);
    struct step_entry *entry = rounding->entry;
    const struct stepped *object = step_shell_object(self, entry);
    struct sw_arena *arena = sw_arena_new(0);
    struct step_spec spec;
    struct step_target target;
    const char *error = "";

    if (!object || step_spec_parse(object, arena, &spec, &error)) {
        fail(rounding, object ? error : "the SteppedRollout is gone");
    } else if (!step_shell_target(self, entry, arena, &target)) {
        fail(rounding, "the target is gone");
    } else {
        const struct step_round_order order = {
            .type = rounding->type,
            .spec = &spec,
            .phase = object->phase,
            .checksum = target.hash,
            .pod_selector = rounding->pod_selector ? rounding->pod_selector : "",
            .pod_owner_uid = rounding->pod_owner_uid ? rounding->pod_owner_uid : "",
        };
        rounding->state = RUNNING;
        state->rounds_under_way++;
        if (step_runner_start(rounding->runner, &order)) {
            state->rounds_under_way--;
            fail(rounding, "the round could not be started");
        }
    }
    sw_arena_free(arena);
}

static void start_waiting(struct sw_instance *self)
{
    struct step_state *state = sw_state(self);

    while (state->waiting && state->rounds_under_way < state->rounds_at_once) {
        struct step_rounding *rounding = state->waiting;
        state->waiting = rounding->next;
        if (!state->waiting)
            state->waiting_end = &state->waiting;
        rounding->next = NULL;
        run(self, rounding);
    }
}

static void wait_for_turn(struct sw_instance *self, struct step_rounding *rounding)
{
    struct step_state *state = sw_state(self);

    rounding->state = WAITING;
    rounding->next = NULL;
    *state->waiting_end = rounding;
    state->waiting_end = &rounding->next;
    start_waiting(self);
}

static void look(struct sw_instance *self, void *arg);

static void looked(struct sw_instance *self, void *arg, struct step_look *seen,
                   enum sw_outcome outcome, const char *message)
{
    struct step_rounding *rounding = arg;

    rounding->looking = NULL;
    if (outcome == SW_UNKNOWN) {
        sw_alarm_set(rounding->again, LOOK_AGAIN_MS);
        return;
    }
    if (outcome != SW_OK) {
        struct sw_arena *arena = sw_arena_new(0);
        fail(rounding, sw_arena_printf(arena, "which Pods are the new ones could not be read: %s",
                                       message[0] ? message : sw_outcome_text(outcome)));
        sw_arena_free(arena);
        return;
    }
    sw_free(rounding->pod_selector);
    sw_free(rounding->pod_owner_uid);
    rounding->pod_selector = sw_strdup(seen->pod_selector);
    rounding->pod_owner_uid = sw_strdup(seen->pod_owner_uid);
    step_look_free(seen);
    if (rounding->pod_selector[0])
        wait_for_turn(self, rounding);
    else
        fail(rounding, "there is no revision of the new template yet");
}

static void look(struct sw_instance *self, void *arg)
{
    struct step_rounding *rounding = arg;
    struct step_state *state = sw_state(self);
    struct step_entry *entry = rounding->entry;

    rounding->looking = step_look_start(self, &state->lookings, entry->target_kind,
                                        entry->namespace_, entry->target_name, looked, rounding);
    if (!rounding->looking)
        fail(rounding, "which Pods are the new ones could not be read");
}

static struct step_rounding *rounding_of(struct sw_instance *self, struct step_entry *entry)
{
    struct step_state *state = sw_state(self);
    struct step_rounding *rounding = entry->rounding;

    if (rounding)
        return rounding;
    rounding = entry->rounding = SW_NEW(struct step_rounding);
    rounding->self = self;
    rounding->entry = entry;
    rounding->runner = step_runner_new(state->rounds, on_end, on_check, rounding);
    rounding->again = sw_alarm_new(self, look, rounding);
    return rounding;
}

static bool looks_at_pods(const struct stepped *object, enum step_round_type type)
{
    return object && object->has_pods && type == STEP_ROUND_ANALYSIS;
}

void step_ask(struct sw_instance *self, struct step_entry *entry, const struct step_action *action)
{
    struct step_rounding *rounding = rounding_of(self, entry);

    step_ask_cancel(self, entry); /* of one that the plan has forgotten */
    rounding->number = action->number;
    rounding->type = action->round;
    rounding->asked_ms = sw_time_ms(self);
    if (!looks_at_pods(step_shell_object(self, entry), action->round)) {
        wait_for_turn(self, rounding);
        return;
    }
    rounding->state = LOOKING;
    look(self, rounding);
}

/* ---- cancelling ---- */

static void leave_line(struct step_state *state, struct step_rounding *rounding)
{
    struct step_rounding **link = &state->waiting;

    while (*link != rounding)
        link = &(*link)->next;
    *link = rounding->next;
    if (!*link)
        state->waiting_end = link;
}

static void cancel(struct step_state *state, struct step_rounding *rounding)
{
    step_look_cancel(rounding->looking);
    rounding->looking = NULL;
    sw_alarm_clear(rounding->again);
    if (rounding->state == WAITING)
        leave_line(state, rounding);
    if (rounding->state == RUNNING) {
        step_runner_cancel(rounding->runner);
        state->rounds_under_way--;
    }
    rounding->state = IDLE;
}

void step_ask_cancel(struct sw_instance *self, struct step_entry *entry)
{
    if (!entry->rounding)
        return;
    cancel(sw_state(self), entry->rounding);
    start_waiting(self);
}

void step_ask_free(struct sw_instance *self, struct step_entry *entry)
{
    struct step_rounding *rounding = entry->rounding;

    if (!rounding)
        return;
    step_ask_cancel(self, entry);
    step_runner_free(rounding->runner);
    sw_alarm_free(rounding->again);
    sw_free(rounding->pod_selector);
    sw_free(rounding->pod_owner_uid);
    entry->rounding = sw_free(rounding);
}

void step_ask_drop(struct step_entry *entry)
{
    if (!entry->rounding)
        return;
    sw_free(entry->rounding->pod_selector);
    sw_free(entry->rounding->pod_owner_uid);
    entry->rounding = sw_free(entry->rounding);
}
