/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounds: which questions are asked in which, and what comes of them together.
 */
#include "round.h"

#include <errno.h>
#include <string.h>

#include <slipway/memory.h>
#include <slipway/read.h>
#include <slipway/telemetry.h>
#include <slipway/time.h>

#include "ask.h"

/* An event on its way to a webhook. */
struct telling {
    struct step_rounds *rounds;
    struct sw_arena *arena;
    struct step_ask ask;
    const char *rollout; /* "namespace/name" */
    struct telling *next, *previous;
};

struct step_rounds {
    struct step_asks asks;
    struct step_runner *runners;
    struct telling *tellings;
    size_t telling_count;
};

struct round {
    struct step_runner *runner;
    struct sw_arena *arena;
    enum step_round_type type;
    struct member *members; /* in the order of the result */
    size_t member_count, open_count;
    const struct member *rollback; /* the one that asked for it */
};

struct member {
    struct round *round;
    struct step_ask ask;
    bool is_rollback; /* a rollback webhook: a 2xx is what fails */
    bool has_ended;
};

struct step_runner {
    struct step_rounds *rounds;
    step_round_fn on_end;
    step_check_fn on_check;
    void *arg;
    struct round *round;    /* NULL: none is under way */
    struct sw_alarm *alarm; /* ends a round that has nothing to ask */
    struct step_pods_memory *pods;
    char *pods_checksum; /* of the template whose Pods they are */
    struct step_runner *next, *previous;
};

/* ---- of the module ---- */

struct step_rounds *step_rounds_new(struct sw_instance *self)
{
    struct step_rounds *rounds = SW_NEW(struct step_rounds);

    step_asks_init(&rounds->asks, self);
    /* Secrets are not declared: they may be read only where a provider needs one, perhaps in some
     * namespaces alone. Where that is missing the check says so. */
    sw_read_declare(self, &sw_kind_pod, true);
    return rounds;
}

static struct telling *telling_free(struct telling *telling)
{
    struct step_rounds *rounds = telling->rounds;

    if (telling->previous)
        telling->previous->next = telling->next;
    else
        rounds->tellings = telling->next;
    if (telling->next)
        telling->next->previous = telling->previous;
    rounds->telling_count--;
    sw_arena_free(telling->arena);
    return sw_free(telling);
}

/* All that it holds but requests and alarms. */
static struct step_runner *forget(struct step_runner *runner)
{
    if (runner->previous)
        runner->previous->next = runner->next;
    else
        runner->rounds->runners = runner->next;
    if (runner->next)
        runner->next->previous = runner->previous;
    if (runner->round)
        sw_arena_free(runner->round->arena);
    step_pods_memory_free(runner->pods);
    sw_free(runner->pods_checksum);
    return sw_free(runner);
}

struct step_rounds *step_rounds_free(struct step_rounds *rounds)
{
    if (!rounds)
        return NULL;
    step_asks_done(&rounds->asks);
    while (rounds->runners)
        forget(rounds->runners);
    while (rounds->tellings)
        telling_free(rounds->tellings);
    return sw_free(rounds);
}

/* ---- the result ---- */

/* Goes into the result: what has ended, but for rollback webhooks that asked for nothing. */
static bool is_told(const struct member *member)
{
    return member->has_ended && (!member->is_rollback || member == member->round->rollback);
}

static const char *joined(struct sw_arena *arena, const char *list, const char *separator,
                          const char *text)
{
    return list[0] ? sw_arena_printf(arena, "%s%s%s", list, separator, text) : text;
}

static void add_check(struct round *round, struct step_round_result *result,
                      struct step_check *checks, const struct step_check *check)
{
    checks[result->check_count++] = *check;
    if (check->has_passed)
        return;
    result->has_passed = false;
    result->failed = joined(round->arena, result->failed, ", ", check->name);
    result->words = joined(round->arena, result->words, "; ",
                           sw_arena_printf(round->arena, "%s: %s", check->name, check->message));
}

static struct step_round_result result_of(struct round *round)
{
    struct step_check *checks =
        SW_ARENA_ARRAY(round->arena, round->member_count * STEP_POD_CHECKS + 1, struct step_check);
    struct step_round_result result = {
        .type = round->type,
        .has_passed = true,
        .checks = checks,
        .failed = "",
        .words = "",
        .rollback_by = round->rollback ? round->rollback->ask.checks[0].name : "",
    };

    for (size_t i = 0; i < round->member_count; i++) {
        const struct step_ask *ask = &round->members[i].ask;
        for (size_t j = 0; is_told(&round->members[i]) && j < ask->check_count; j++)
            add_check(round, &result, checks, &ask->checks[j]);
    }
    return result;
}

/* ---- a round ---- */

static void close_all(struct round *round)
{
    for (size_t i = 0; i < round->member_count; i++)
        step_ask_close(&round->members[i].ask);
}

/* The runner may start another one, or be freed, by whom it tells. */
static void end_round(struct round *round)
{
    struct step_runner *runner = round->runner;
    struct step_round_result result = result_of(round);

    close_all(round);
    runner->round = NULL;
    runner->on_end(runner->rounds->asks.self, runner->arg, &result);
    sw_arena_free(round->arena);
}

/* A 2xx of a rollback webhook is a yes to what nobody hopes for. */
static void turn_rollback(struct member *member)
{
    struct step_check *check = &member->ask.checks[0];

    if (!check->has_passed)
        return;
    check->has_passed = false;
    check->range = "not 2xx";
    check->message = "asks for a rollback";
    member->round->rollback = member;
}

static void member_done(struct step_ask *ask)
{
    struct member *member = ask->owner;
    struct round *round = member->round;
    struct step_runner *runner = round->runner;

    member->has_ended = true;
    round->open_count--;
    if (member->is_rollback)
        turn_rollback(member);
    for (size_t i = 0; runner->on_check && is_told(member) && i < ask->check_count; i++)
        runner->on_check(runner->rounds->asks.self, runner->arg, &ask->checks[i], ask->took_ms);
    if (round->rollback || round->open_count == 0)
        end_round(round);
}

static struct step_ask *add_member(struct round *round)
{
    struct member *member = &round->members[round->member_count++];

    member->round = round;
    member->ask.asks = &round->runner->rounds->asks;
    member->ask.arena = round->arena;
    member->ask.fn = member_done;
    member->ask.owner = member;
    round->open_count++;
    return &member->ask;
}

static bool is_asked_in(enum step_hook_type hook, enum step_round_type round)
{
    switch (hook) {
    case STEP_CONFIRM_ROLLOUT:
        return round == STEP_ROUND_CONFIRM_ROLLOUT;
    case STEP_PRE_ROLLOUT:
        return round == STEP_ROUND_PRE_ROLLOUT;
    case STEP_ROLLOUT:
        return round == STEP_ROUND_ANALYSIS;
    case STEP_CONFIRM_STEP:
        return round == STEP_ROUND_CONFIRM_STEP;
    case STEP_CONFIRM_PROMOTION:
        return round == STEP_ROUND_CONFIRM_PROMOTION;
    case STEP_POST_ROLLOUT:
        return round == STEP_ROUND_POST_ROLLOUT;
    case STEP_ROLLBACK_HOOK:
        return round != STEP_ROUND_POST_ROLLOUT;
    case STEP_EVENT:
        break;
    }
    return false;
}

/* What is remembered of Pods is of one template. */
static struct step_pods_memory *pods_of(struct step_runner *runner, const char *checksum)
{
    if (!runner->pods_checksum || strcmp(runner->pods_checksum, checksum) != 0) {
        step_pods_memory_free(runner->pods);
        runner->pods = step_pods_memory_new();
        sw_free(runner->pods_checksum);
        runner->pods_checksum = sw_strdup(checksum);
    }
    return runner->pods;
}

static void ask_all(struct round *round, const struct step_round_order *order)
{
    const struct step_spec *spec = order->spec;
    bool is_analysis = order->type == STEP_ROUND_ANALYSIS;
    const struct step_hook_subject subject = {
        .name = spec->object->meta.name,
        .namespace_ = spec->object->meta.namespace_,
        .phase = order->phase,
        .checksum = order->checksum,
    };

    if (is_analysis && spec->has_pods)
        step_ask_pods(add_member(round), spec, order->pod_selector, order->pod_owner_uid,
                      pods_of(round->runner, order->checksum));
    for (size_t i = 0; is_analysis && i < spec->measure_count; i++)
        step_ask_metric(add_member(round), spec->object, &spec->measures[i]);
    for (size_t i = 0; i < spec->hook_count; i++) {
        if (!is_asked_in(spec->hooks[i].type, order->type))
            continue;
        step_ask_hook(add_member(round), &spec->hooks[i], &subject, NULL);
        round->members[round->member_count - 1].is_rollback =
            spec->hooks[i].type == STEP_ROLLBACK_HOOK;
    }
}

/* ---- of one SteppedRollout ---- */

static void end_empty(struct sw_instance *self, void *arg)
{
    struct step_runner *runner = arg;

    (void)self;
    if (runner->round)
        end_round(runner->round);
}

struct step_runner *step_runner_new(struct step_rounds *rounds, step_round_fn on_end,
                                    step_check_fn on_check, void *arg)
{
    struct step_runner *runner = SW_NEW(struct step_runner);

    *runner = (struct step_runner){
        .rounds = rounds,
        .on_end = on_end,
        .on_check = on_check,
        .arg = arg,
        .next = rounds->runners,
    };
    runner->alarm = sw_alarm_new(rounds->asks.self, end_empty, runner);
    if (runner->next)
        runner->next->previous = runner;
    rounds->runners = runner;
    return runner;
}

struct step_runner *step_runner_free(struct step_runner *runner)
{
    if (!runner)
        return NULL;
    step_runner_cancel(runner);
    sw_alarm_free(runner->alarm);
    return forget(runner);
}

int step_runner_start(struct step_runner *runner, const struct step_round_order *order)
{
    const struct step_spec *spec = order->spec;

    if (runner->round)
        return -EBUSY;
    struct sw_arena *arena = sw_arena_new(0);
    struct round *round = SW_ARENA_NEW(arena, struct round);
    *round = (struct round){
        .runner = runner,
        .arena = arena,
        .type = order->type,
        .members = SW_ARENA_ARRAY(arena, 1 + spec->measure_count + spec->hook_count, struct member),
    };
    runner->round = round;
    ask_all(round, order);
    if (!round->member_count)
        sw_alarm_set(runner->alarm, 0);
    return 0;
}

void step_runner_cancel(struct step_runner *runner)
{
    if (!runner->round)
        return;
    sw_alarm_clear(runner->alarm);
    close_all(runner->round);
    sw_arena_free(runner->round->arena);
    runner->round = NULL;
}

bool step_runner_is_busy(const struct step_runner *runner)
{
    return runner->round != NULL;
}

/* ---- events ---- */

static void telling_done(struct step_ask *ask)
{
    struct telling *telling = ask->owner;
    struct sw_instance *self = telling->rounds->asks.self;

    /* The message would have the body in it, which no log shall have. */
    if (!ask->checks[0].has_passed)
        sw_warn(self, "event webhook did not take an event, which is dropped",
                SW_STR("steppedrollout", telling->rollout), SW_STR("webhook", ask->checks[0].name),
                SW_INT("status", ask->status));
    telling_free(telling);
}

static void tell(struct step_rounds *rounds, const struct step_hook *hook,
                 const struct step_hook_subject *subject, const struct step_hook_event *event)
{
    struct telling *telling = SW_NEW(struct telling);

    telling->rounds = rounds;
    telling->arena = sw_arena_new(1024);
    telling->rollout = sw_arena_printf(telling->arena, "%s/%s", subject->namespace_, subject->name);
    telling->next = rounds->tellings;
    if (telling->next)
        telling->next->previous = telling;
    rounds->tellings = telling;
    rounds->telling_count++;
    telling->ask.asks = &rounds->asks;
    telling->ask.arena = telling->arena;
    telling->ask.fn = telling_done;
    telling->ask.owner = telling;
    step_ask_hook(&telling->ask, hook, subject, event);
}

void step_rounds_tell(struct step_rounds *rounds, const struct step_spec *spec, const char *phase,
                      const char *checksum, bool is_warning, const char *message)
{
    const struct step_hook_subject subject = {
        .name = spec->object->meta.name,
        .namespace_ = spec->object->meta.namespace_,
        .phase = phase,
        .checksum = checksum,
    };
    const struct step_hook_event event = {
        .message = message,
        .is_warning = is_warning,
        .wall_us = sw_time_wall_us(rounds->asks.self),
    };

    for (size_t i = 0; i < spec->hook_count; i++) {
        if (spec->hooks[i].type != STEP_EVENT)
            continue;
        if (rounds->telling_count < STEP_EVENTS_AT_ONCE)
            tell(rounds, &spec->hooks[i], &subject, &event);
        else
            sw_warn(rounds->asks.self, "too many events on their way to webhooks, one is dropped",
                    SW_STR("steppedrollout", subject.name),
                    SW_STR("webhook", spec->hooks[i].object->name));
    }
}
