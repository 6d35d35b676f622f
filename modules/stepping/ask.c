/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking. What fails at once fails by an alarm of 0 ms, so that no owner is called from within what
 * it called.
 */
#include "ask.h"

#include <stdio.h>
#include <string.h>

#include <slipway/memory.h>
#include <slipway/read.h>
#include <slipway/watch.h>

#include "round.h"

/* The argument of a read: it lives until the answer has come, whether anybody still waits for it or
 * not. */
struct step_reading {
    struct step_asks *asks;
    struct step_ask *ask; /* NULL: nobody does */
    struct step_reading *next, *previous;
};

void step_asks_init(struct step_asks *asks, struct sw_instance *self)
{
    *asks = (struct step_asks){.self = self};
}

static struct step_reading *reading_new(struct step_ask *ask)
{
    struct step_reading *reading = SW_NEW(struct step_reading);

    *reading = (struct step_reading){.asks = ask->asks, .ask = ask, .next = ask->asks->readings};
    if (reading->next)
        reading->next->previous = reading;
    ask->asks->readings = reading;
    ask->reading = reading;
    return reading;
}

/* Returns who waits for it, or NULL. */
static struct step_ask *reading_free(struct step_reading *reading)
{
    struct step_ask *ask = reading->ask;

    if (reading->previous)
        reading->previous->next = reading->next;
    else
        reading->asks->readings = reading->next;
    if (reading->next)
        reading->next->previous = reading->previous;
    if (ask)
        ask->reading = NULL;
    sw_free(reading);
    return ask;
}

void step_asks_done(struct step_asks *asks)
{
    while (asks->readings)
        reading_free(asks->readings);
}

/* ---- beginning and end ---- */

static void fire(struct sw_instance *self, void *arg)
{
    struct step_ask *ask = arg;

    (void)self;
    ask->on_alarm(ask);
}

static void wake(struct step_ask *ask, uint64_t after_ms, void (*on_alarm)(struct step_ask *ask))
{
    ask->on_alarm = on_alarm;
    sw_alarm_set(ask->alarm, after_ms);
}

static void begin(struct step_ask *ask, const char *name, const char *type, const char *range)
{
    ask->started_ms = sw_time_ms(ask->asks->self);
    ask->alarm = sw_alarm_new(ask->asks->self, fire, ask);
    ask->check_count = 1;
    ask->checks[0] = (struct step_check){
        .name = sw_arena_strdup(ask->arena, name),
        .type = sw_arena_strdup(ask->arena, type),
        .value = "",
        .range = sw_arena_strdup(ask->arena, range),
        .message = "",
    };
}

void step_ask_close(struct step_ask *ask)
{
    if (ask->reading)
        ask->reading->ask = NULL;
    ask->reading = NULL;
    sw_fetch_cancel(ask->fetching);
    ask->fetching = NULL;
    sw_alarm_free(ask->alarm);
    ask->alarm = NULL;
}

static void finish(struct step_ask *ask)
{
    struct sw_instance *self = ask->asks->self;

    ask->took_ms = sw_time_ms(self) - ask->started_ms;
    for (size_t i = 0; i < ask->check_count; i++)
        ask->checks[i].at_us = sw_time_wall_us(self);
    step_ask_close(ask);
    ask->fn(ask);
}

/* message: in the arena, or for ever. */
static void fail(struct step_ask *ask, const char *message)
{
    ask->checks[0].message = message;
    finish(ask);
}

static void fail_later(struct step_ask *ask, const char *message)
{
    ask->checks[0].message = message;
    wake(ask, 0, finish);
}

/* Why a read found nothing. */
static const char *read_words(struct step_ask *ask, enum sw_outcome outcome, const char *message)
{
    return outcome == SW_NOT_FOUND ? "there is none"
           : message[0]            ? sw_arena_strdup(ask->arena, message)
                                   : sw_outcome_text(outcome);
}

/* ---- metrics ---- */

static void got_value(struct sw_instance *self, void *arg, const struct sw_fetch_answer *answer)
{
    struct step_ask *ask = arg;
    struct step_check *check = &ask->checks[0];
    struct sw_arena *arena = sw_arena_new(0); /* an answer may be long; little is kept of it */
    struct step_value value;
    const char *text = "";
    const char *why = "";

    (void)self;
    ask->fetching = NULL;
    if (step_prometheus_read(answer, arena, &value, &text, &why))
        why = sw_arena_printf(arena, "%s: %s", ask->query.place, why);
    else
        check->has_passed = step_value_is_within(&value, &ask->measure, arena, &why);
    check->value = sw_arena_strdup(ask->arena, text);
    check->message = check->has_passed ? "" : sw_arena_strdup(ask->arena, why);
    sw_arena_free(arena);
    finish(ask);
}

/* authorization: NULL: none. Returns why it cannot be sent, or NULL. */
static const char *send_query(struct step_ask *ask, const char *authorization)
{
    struct sw_instance *self = ask->asks->self;
    const struct step_query *query = &ask->query;
    struct sw_fetch_field fields[STEP_QUERY_FIELDS + 1];
    uint64_t gone_ms = sw_time_ms(self) - ask->started_ms;
    struct sw_fetch fetch = {
        .method = "GET",
        .url = query->url,
        .fields = fields,
        .field_count = query->field_count,
        .timeout_ms =
            gone_ms < STEP_CHECK_TIMEOUT_MS ? (uint32_t)(STEP_CHECK_TIMEOUT_MS - gone_ms) : 1,
        .insecure_skip_verify = query->insecure_skip_verify,
    };

    for (size_t i = 0; i < query->field_count; i++)
        fields[i] = query->fields[i];
    if (authorization)
        fields[fetch.field_count++] = (struct sw_fetch_field){"Authorization", authorization};
    return sw_fetch(self, &fetch, got_value, ask, &ask->fetching)
               ? "provider.headers or provider.address cannot be sent"
               : NULL;
}

static const char *secret_words(struct step_ask *ask, const char *words)
{
    return sw_arena_printf(ask->arena, "Secret %s/%s: %s", ask->query.secret_namespace,
                           ask->query.secret, words);
}

static void got_secret(struct sw_instance *self, void *arg, const struct sw_answer *answer)
{
    struct step_ask *ask = reading_free(arg);
    const char *authorization = NULL;
    const char *why = NULL;

    (void)self;
    if (!ask)
        return;
    sw_alarm_clear(ask->alarm);
    if (answer->outcome != SW_OK || !answer->object) {
        fail(ask, secret_words(ask, read_words(ask, answer->outcome, answer->message)));
        return;
    }
    struct sw_arena *arena = sw_arena_new(0);
    if (step_query_authorization((const struct sw_secret *)(const void *)answer->object, arena,
                                 &authorization, &why))
        why = secret_words(ask, why);
    else
        why = send_query(ask, authorization);
    sw_arena_free(arena);
    if (why)
        fail(ask, why);
}

static void secret_is_late(struct step_ask *ask)
{
    fail(ask, secret_words(ask, "no answer from the API server in time"));
}

static void read_secret(struct step_ask *ask)
{
    struct step_reading *reading = reading_new(ask);

    wake(ask, STEP_CHECK_TIMEOUT_MS, secret_is_late);
    if (sw_read(ask->asks->self, &sw_kind_secret, ask->query.secret_namespace, ask->query.secret,
                got_secret, reading)) {
        reading_free(reading);
        fail_later(ask, secret_words(ask, "that is no name of one"));
    }
}

/* The MetricTemplate that it names; *ret_why says why there is none. */
static const struct step_metric_template *find_template(struct step_ask *ask,
                                                        const struct stepped *object,
                                                        const struct step_metric *metric,
                                                        const char **ret_why)
{
    const struct sw_instance *self = ask->asks->self;
    const char *namespace_ =
        metric->template_namespace[0] ? metric->template_namespace : object->meta.namespace_;
    const struct sw_object *found =
        sw_lookup(self, &step_metric_template_kind, namespace_, metric->template_name);

    if (!found)
        *ret_why = sw_arena_printf(
            ask->arena, "MetricTemplate %s/%s: there is none%s", namespace_, metric->template_name,
            sw_is_synced(self, &step_metric_template_kind)
                ? ""
                : "; MetricTemplates (flagger.app/v1beta1) cannot be listed");
    return found ? step_as_metric_template(found) : NULL;
}

void step_ask_metric(struct step_ask *ask, const struct stepped *object,
                     const struct step_measure *measure)
{
    const struct step_metric *metric = measure->object;
    const struct step_metric_template *metric_template = NULL;
    const char *why = NULL;

    begin(ask, metric->name, "metric", measure->range);
    ask->measure = *measure; /* but for its pointers, which are not used */
    if (metric->template_name[0] && !(metric_template = find_template(ask, object, metric, &why))) {
        fail_later(ask, why);
        return;
    }
    if (step_query_make(object, measure, metric_template, ask->arena, &ask->query, &why)) {
        fail_later(ask, why);
        return;
    }
    if (ask->query.secret[0])
        read_secret(ask);
    else if ((why = send_query(ask, NULL)))
        fail_later(ask, why);
}

/* ---- webhooks ---- */

static void post(struct step_ask *ask);

static void got_answer(struct sw_instance *self, void *arg, const struct sw_fetch_answer *answer)
{
    struct step_ask *ask = arg;
    struct step_check *check = &ask->checks[0];

    (void)self;
    ask->fetching = NULL;
    ask->status = answer->status;
    if (ask->attempt <= ask->retries && step_hook_may_repeat(answer)) {
        wake(ask, step_hook_pause_ms(++ask->attempt), post);
        return;
    }
    check->has_passed = step_hook_is_yes(answer);
    if (answer->status)
        check->value = sw_arena_printf(ask->arena, "%d", answer->status);
    if (!check->has_passed)
        check->message = step_hook_words(answer, ask->arena);
    finish(ask);
}

static void post(struct step_ask *ask)
{
    if (sw_fetch(ask->asks->self, &ask->post, got_answer, ask, &ask->fetching))
        fail_later(ask, "url: it is none that can be asked");
}

void step_ask_hook(struct step_ask *ask, const struct step_hook *hook,
                   const struct step_hook_subject *subject, const struct step_hook_event *event)
{
    static const struct sw_fetch_field json = {"Content-Type", "application/json"};

    begin(ask, hook->object->name, hook->object->type, "2xx");
    ask->post = (struct sw_fetch){
        .method = "POST",
        .url = sw_arena_strdup(ask->arena, hook->object->url),
        .fields = &json,
        .field_count = 1,
        .timeout_ms = hook->timeout_ms,
        .insecure_skip_verify = hook->object->disable_tls,
    };
    ask->post.body = step_hook_payload(hook, subject, event, ask->arena, &ask->post.body_len);
    ask->retries = hook->object->retries;
    ask->attempt = 1;
    post(ask);
}

/* ---- Pods ---- */

static void unseen(struct step_ask *ask, const char *why)
{
    step_pods_unseen(ask->max_restarts, ask->max_unready_ms, 0, why, ask->arena, ask->checks);
}

static void got_pods(struct sw_instance *self, void *arg, const struct sw_list_answer *answer)
{
    struct step_ask *ask = reading_free(arg);

    if (!ask)
        return;
    if (answer->outcome != SW_OK)
        unseen(ask, sw_arena_printf(ask->arena, "the Pods cannot be listed: %s",
                                    read_words(ask, answer->outcome, answer->message)));
    else if (answer->is_cut)
        unseen(ask, "more Pods match the target's selector than can be looked at");
    else
        step_pods_judge(ask->pods, answer->objects, answer->count, ask->pod_owner_uid,
                        ask->max_restarts, ask->max_unready_ms, sw_time_wall_us(self), ask->arena,
                        ask->checks);
    finish(ask);
}

static void pods_are_late(struct step_ask *ask)
{
    unseen(ask, "the Pods cannot be listed: no answer from the API server in time");
    finish(ask);
}

void step_ask_pods(struct step_ask *ask, const struct step_spec *spec, const char *selector,
                   const char *owner_uid, struct step_pods_memory *memory)
{
    begin(ask, "pods", "pods", "");
    ask->check_count = STEP_POD_CHECKS;
    ask->max_restarts = spec->max_restarts;
    ask->max_unready_ms = spec->max_unready_ms;
    ask->pod_owner_uid = sw_arena_strdup(ask->arena, owner_uid ? owner_uid : "");
    ask->pods = memory;
    if (!selector || !selector[0]) { /* an empty one would match every Pod of the namespace */
        unseen(ask, "it is not known yet which Pods are the new ones");
        wake(ask, 0, finish);
        return;
    }
    struct step_reading *reading = reading_new(ask);
    wake(ask, STEP_CHECK_TIMEOUT_MS, pods_are_late);
    if (sw_list_now(ask->asks->self, &sw_kind_pod, spec->object->meta.namespace_, selector, 0,
                    got_pods, reading)) {
        reading_free(reading);
        unseen(ask, "the selector of the new Pods is none");
        wake(ask, 0, finish);
    }
}
