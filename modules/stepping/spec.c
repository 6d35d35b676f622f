/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what is written in a spec to numbers, or to a sentence that names the field that is wrong.
 * A CRD's schema refuses much of this already; where it was changed, left out or is of another
 * version, this is what stands between a mistake and a workload.
 */
#include "spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <slipway/arena.h>
#include <slipway/fetch.h>
#include <slipway/json.h>

#include "provider.h"

#define SECOND_MS 1000
#define INTERVAL_MIN_MS 100 /* shorter ones would only be load */
#define TIMEOUT_MAX_MS (3600 * SECOND_MS)
#define RETRIES_MAX 100
#define STEPS_MAX 1000
#define DURATION_MAX_MS (UINT64_C(10) * 365 * 24 * 3600 * SECOND_MS)

struct reading {
    const struct stepped *object;
    struct sw_arena *arena;
    struct step_spec *spec;
    const char *error; /* NULL: none */
};

static SW_PRINTF(2, 3) int refuse(struct reading *reading, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    reading->error = sw_arena_vprintf(reading->arena, format, args);
    va_end(args);
    return -EINVAL;
}

/* ---- durations ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The unit at *p, in milliseconds; 0: none. */
static double unit_at(const char **p)
{
    static const struct {
        const char *name;
        double ms;
    } units[] = {
        {"ms", 1},         {"ns", 1e-6}, {"us", 1e-3}, {"\u00b5s", 1e-3},
        {"\u03bcs", 1e-3}, {"s", 1e3},   {"m", 60e3},  {"h", 3600e3},
    };

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        size_t len = strlen(units[i].name);
        if (strncmp(*p, units[i].name, len) == 0) {
            *p += len;
            return units[i].ms;
        }
    }
    return 0;
}

int step_duration(const char *text, uint64_t *ret_ms)
{
    const char *p = text + (*text == '+');
    double sum = 0;

    if (strcmp(p, "0") == 0) {
        *ret_ms = 0;
        return 0;
    }
    if (!*p)
        return -EINVAL;
    while (*p) {
        double value = 0, part = 1;
        bool has_digits = is_digit(*p);
        for (; is_digit(*p); p++)
            value = value * 10 + (*p - '0');
        if (*p == '.')
            for (p++; is_digit(*p); p++) {
                has_digits = true;
                part /= 10;
                value += (*p - '0') * part;
            }
        double unit = unit_at(&p);
        if (!has_digits || unit == 0)
            return -EINVAL;
        sum += value * unit;
    }
    if (!(sum <= (double)DURATION_MAX_MS))
        return -EINVAL;
    *ret_ms = (uint64_t)(sum + 0.5);
    return 0;
}

static int read_duration(struct reading *reading, const char *field, const char *text,
                         uint64_t otherwise_ms, uint64_t *ret_ms)
{
    if (!text[0]) {
        *ret_ms = otherwise_ms;
        return 0;
    }
    if (step_duration(text, ret_ms))
        return refuse(reading, "%s: \"%s\" is no duration like 30s, 1m30s or 500ms", field, text);
    return 0;
}

static int read_interval(struct reading *reading, const char *field, const char *text,
                         uint64_t otherwise_ms, uint64_t *ret_ms)
{
    uint64_t ms;
    int result = read_duration(reading, field, text, otherwise_ms, &ms);

    if (result)
        return result;
    if (ms < INTERVAL_MIN_MS)
        return refuse(reading, "%s: %s is too short: it must be %d ms or more", field, text,
                      INTERVAL_MIN_MS);
    *ret_ms = ms;
    return 0;
}

/* ---- numbers of Pods ---- */

static const char *amount_text(struct reading *reading, struct sw_int_or_percent value)
{
    return sw_arena_printf(reading->arena, "%d%s", value.value, value.is_percent ? "%" : "");
}

static int read_percent(struct reading *reading, const char *field, const char *text,
                        struct sw_int_or_percent *ret_value)
{
    char *end;
    long value = is_digit(text[0]) ? strtol(text, &end, 10) : -1;

    if (value < 0 || strcmp(end, "%") != 0)
        return refuse(reading, "%s: \"%s\" is neither a number of Pods nor a percentage like 25%%",
                      field, text);
    if (value > 100)
        return refuse(reading, "%s: %s is more than 100%%", field, text);
    if (value == 0)
        return refuse(reading, "%s: %s would update no Pod: it must be at least 1%%", field, text);
    *ret_value = (struct sw_int_or_percent){(int32_t)value, true, true};
    return 0;
}

static int read_amount(struct reading *reading, const char *field, const struct sw_json *json,
                       struct sw_int_or_percent *ret_value)
{
    if (sw_json_type(json) == SW_JSON_STRING)
        return read_percent(reading, field, sw_json_text(json), ret_value);
    const char *text = sw_json_dump(json, reading->arena, NULL);
    if (sw_json_type(json) != SW_JSON_INT)
        return refuse(reading, "%s: %s is neither a number of Pods nor a percentage like \"25%%\"",
                      field, text);
    long long value = strtoll(text, NULL, 10);
    if (value < 1 || value > INT32_MAX)
        return refuse(reading, "%s: %s is not at least 1 Pod%s", field, text,
                      value < 1 ? "" : ", or is too many");
    *ret_value = (struct sw_int_or_percent){(int32_t)value, false, true};
    return 0;
}

static int read_raw(struct reading *reading, const char *field, const struct sw_raw *raw,
                    struct sw_json **ret_json)
{
    const char *why = "";

    if (sw_json_parse(reading->arena, raw->text, raw->len, ret_json, &why))
        return refuse(reading, "%s: %s", field, why);
    return 0;
}

static int read_steps(struct reading *reading)
{
    struct sw_json *json;
    int result = read_raw(reading, "spec.steps", &reading->object->steps, &json);

    if (result)
        return result;
    size_t count = sw_json_size(json);
    if (sw_json_type(json) != SW_JSON_ARRAY || count == 0 || count > STEPS_MAX)
        return refuse(reading,
                      "spec.steps: must be a list of 1 to %d numbers of Pods or "
                      "percentages, like [1, \"25%%\", \"50%%\"]",
                      STEPS_MAX);
    struct sw_int_or_percent *steps =
        SW_ARENA_ARRAY(reading->arena, count, struct sw_int_or_percent);
    /* Numbers and percentages can be compared only with their own kind: the next of the other kind
     * is at least one Pod more. */
    const struct sw_int_or_percent *last[2] = {NULL, NULL};
    for (size_t i = 0; i < count; i++) {
        const char *field = sw_arena_printf(reading->arena, "spec.steps[%zu]", i);
        result = read_amount(reading, field, sw_json_element(json, i), &steps[i]);
        if (result)
            return result;
        const struct sw_int_or_percent *before = last[steps[i].is_percent];
        if (before && steps[i].value <= before->value)
            return refuse(reading, "%s: %s is not more than the step before it (%s)", field,
                          amount_text(reading, steps[i]), amount_text(reading, *before));
        last[steps[i].is_percent] = &steps[i];
    }
    reading->spec->steps = steps;
    reading->spec->step_count = count;
    return 0;
}

static int read_stops(struct reading *reading)
{
    const struct stepped *object = reading->object;
    struct sw_json *json;

    reading->spec->step_size = (struct sw_int_or_percent){1, false, true};
    if (object->steps.text && object->step_size.text)
        return refuse(reading, "spec.stepSize: is not possible beside spec.steps: leave one out");
    if (object->steps.text)
        return read_steps(reading);
    if (!object->step_size.text)
        return 0;
    int result = read_raw(reading, "spec.stepSize", &object->step_size, &json);
    return result ? result : read_amount(reading, "spec.stepSize", json, &reading->spec->step_size);
}

/* ---- the target ---- */

static int read_target(struct reading *reading)
{
    const struct stepped *object = reading->object;
    static const char *const kinds[] = {"Deployment", "StatefulSet", "DaemonSet"};
    bool is_known = false;

    for (size_t i = 0; i < 3; i++)
        is_known = is_known || strcmp(object->target_kind, kinds[i]) == 0;
    if (!is_known)
        return refuse(reading,
                      "spec.targetRef.kind: \"%s\" is none of Deployment, StatefulSet, DaemonSet",
                      object->target_kind);
    if (strcmp(object->target_api_version, "apps/v1") != 0)
        return refuse(reading, "spec.targetRef.apiVersion: \"%s\" must be apps/v1",
                      object->target_api_version);
    if (!object->target_name[0])
        return refuse(reading, "spec.targetRef.name: is missing");
    return 0;
}

/* ---- metrics ---- */

static int read_bound(struct reading *reading, const char *field, const struct sw_json *json,
                      double *ret_value, const char **ret_text)
{
    *ret_text = sw_json_dump(json, reading->arena, NULL);
    if (sw_json_type(json) != SW_JSON_INT && sw_json_type(json) != SW_JSON_REAL)
        return refuse(reading, "%s: %s is no number", field, *ret_text);
    *ret_value = strtod(*ret_text, NULL);
    /* As it was written, most likely: 0.05 and not 0.050000000000000003. */
    *ret_text = sw_arena_printf(reading->arena, "%.15g", *ret_value);
    return 0;
}

static int read_range(struct reading *reading, const char *field, const struct sw_raw *raw,
                      struct step_measure *measure)
{
    struct sw_json *json = NULL;
    const char *min_text = "", *max_text = "";

    if (raw->text) {
        int result = read_raw(reading, field, raw, &json);
        if (result)
            return result;
    }
    const struct sw_json *min = sw_json_get(json, "min"), *max = sw_json_get(json, "max");
    measure->has_min = sw_json_type(min) != SW_JSON_NULL;
    measure->has_max = sw_json_type(max) != SW_JSON_NULL;
    if (!measure->has_min && !measure->has_max)
        return refuse(reading, "%s: neither min nor max is there: no value could ever fail", field);
    if (measure->has_min) {
        int result = read_bound(reading, sw_arena_printf(reading->arena, "%s.min", field), min,
                                &measure->min, &min_text);
        if (result)
            return result;
    }
    if (measure->has_max) {
        int result = read_bound(reading, sw_arena_printf(reading->arena, "%s.max", field), max,
                                &measure->max, &max_text);
        if (result)
            return result;
    }
    if (measure->has_min && measure->has_max && measure->min > measure->max)
        return refuse(reading, "%s: min (%s) is more than max (%s): no value could ever pass",
                      field, min_text, max_text);
    if (measure->has_min && measure->has_max)
        measure->range = sw_arena_printf(reading->arena, "%s .. %s", min_text, max_text);
    else if (measure->has_min)
        measure->range = sw_arena_printf(reading->arena, ">= %s", min_text);
    else
        measure->range = sw_arena_printf(reading->arena, "<= %s", max_text);
    return 0;
}

static int read_url(struct reading *reading, const char *field, const char *url)
{
    char why[256] = "";

    if (!url[0])
        return refuse(reading, "%s: is missing", field);
    if (sw_url_check(url, why, sizeof why))
        return refuse(reading, "%s: %s", field, why); /* it may have a password in it */
    return 0;
}

static int read_source(struct reading *reading, const char *field,
                       const struct step_measure *measure)
{
    const struct step_metric *metric = measure->object;
    struct sw_arena *arena = reading->arena;
    struct step_query query;
    const char *why = "";

    if (metric->template_name[0]) {
        if (metric->query[0] || metric->has_provider)
            return refuse(reading, "%s.templateRef: is not possible beside query and provider",
                          field);
        return 0;
    }
    if (metric->template_namespace[0])
        return refuse(reading, "%s.templateRef.name: is missing", field);
    if (!metric->query[0])
        return refuse(reading, "%s: there is neither a query with a provider nor a templateRef",
                      field);
    if (!metric->has_provider)
        return refuse(reading, "%s.provider: is missing: the query needs one to be sent to", field);
    if (strcmp(metric->provider_type, "prometheus") != 0)
        return refuse(reading, "%s.provider.type: \"%s\" is unknown: it must be prometheus", field,
                      metric->provider_type);
    if (!metric->provider_address[0])
        return refuse(reading, "%s.provider.address: is missing", field);
    if (step_query_make(reading->object, measure, NULL, arena, &query, &why))
        return refuse(reading, "%s.%s", field, why);
    return 0;
}

static int read_metric(struct reading *reading, size_t i, struct step_measure *measure)
{
    const struct step_metric *metrics = reading->object->metrics.at, *metric = &metrics[i];
    const char *field = sw_arena_printf(reading->arena, "spec.analysis.metrics[%zu]", i);

    measure->object = metric;
    if (!metric->name[0])
        return refuse(reading, "%s.name: is missing", field);
    for (size_t j = 0; j < i; j++)
        if (strcmp(metrics[j].name, metric->name) == 0)
            return refuse(reading, "%s.name: \"%s\" is the name of metrics[%zu] already", field,
                          metric->name, j);
    int result = read_range(reading, sw_arena_printf(reading->arena, "%s.thresholdRange", field),
                            &metric->threshold_range, measure);
    if (!result)
        result = read_interval(reading, sw_arena_printf(reading->arena, "%s.interval", field),
                               metric->interval, reading->spec->interval_ms, &measure->interval_ms);
    return result ? result : read_source(reading, field, measure);
}

static int read_metrics(struct reading *reading)
{
    size_t count = reading->object->metrics.count;
    struct step_measure *measures = SW_ARENA_ARRAY(reading->arena, count + 1, struct step_measure);

    for (size_t i = 0; i < count; i++) {
        int result = read_metric(reading, i, &measures[i]);
        if (result)
            return result;
    }
    reading->spec->measures = measures;
    reading->spec->measure_count = count;
    return 0;
}

/* ---- webhooks ---- */

static bool read_hook_type(const char *text, enum step_hook_type *ret_type)
{
    static const struct {
        const char *text;
        enum step_hook_type type;
    } types[] = {
        {"", STEP_ROLLOUT},
        {"confirm-rollout", STEP_CONFIRM_ROLLOUT},
        {"pre-rollout", STEP_PRE_ROLLOUT},
        {"rollout", STEP_ROLLOUT},
        {"confirm-step", STEP_CONFIRM_STEP},
        {"confirm-traffic-increase", STEP_CONFIRM_STEP},
        {"confirm-promotion", STEP_CONFIRM_PROMOTION},
        {"post-rollout", STEP_POST_ROLLOUT},
        {"rollback", STEP_ROLLBACK_HOOK},
        {"event", STEP_EVENT},
    };

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i].text, text) == 0) {
            *ret_type = types[i].type;
            return true;
        }
    return false;
}

static int read_hook(struct reading *reading, size_t i, struct step_hook *hook)
{
    const struct step_webhook *webhooks = reading->object->webhooks.at, *webhook = &webhooks[i];
    struct sw_arena *arena = reading->arena;
    const char *field = sw_arena_printf(arena, "spec.analysis.webhooks[%zu]", i);
    uint64_t timeout_ms;

    hook->object = webhook;
    if (!webhook->name[0])
        return refuse(reading, "%s.name: is missing", field);
    if (!read_hook_type(webhook->type, &hook->type))
        return refuse(reading,
                      "%s.type: \"%s\" is none of confirm-rollout, pre-rollout, rollout, "
                      "confirm-step, confirm-promotion, post-rollout, rollback, event",
                      field, webhook->type);
    for (size_t j = 0; j < i; j++)
        if (strcmp(webhooks[j].name, webhook->name) == 0 &&
            strcmp(webhooks[j].type, webhook->type) == 0)
            return refuse(reading, "%s.name: \"%s\" is the name of webhooks[%zu] already", field,
                          webhook->name, j);
    int result = read_url(reading, sw_arena_printf(arena, "%s.url", field), webhook->url);
    if (result)
        return result;
    field = sw_arena_printf(arena, "spec.analysis.webhooks[%zu].timeout", i);
    result = read_duration(reading, field, webhook->timeout, 10 * SECOND_MS, &timeout_ms);
    if (result)
        return result;
    if (timeout_ms == 0 || timeout_ms > TIMEOUT_MAX_MS)
        return refuse(reading, "%s: %s must be more than 0 and at most 1h", field,
                      webhook->timeout);
    hook->timeout_ms = (uint32_t)timeout_ms;
    if (webhook->retries < 0 || webhook->retries > RETRIES_MAX)
        return refuse(reading, "spec.analysis.webhooks[%zu].retries: %d must be between 0 and %d",
                      i, webhook->retries, RETRIES_MAX);
    return 0;
}

static int read_hooks(struct reading *reading)
{
    size_t count = reading->object->webhooks.count;
    struct step_hook *hooks = SW_ARENA_ARRAY(reading->arena, count + 1, struct step_hook);

    for (size_t i = 0; i < count; i++) {
        int result = read_hook(reading, i, &hooks[i]);
        if (result)
            return result;
    }
    reading->spec->hooks = hooks;
    reading->spec->hook_count = count;
    return 0;
}

/* ---- the rest ---- */

static int read_least(struct reading *reading, const char *field, int32_t value, int32_t least)
{
    if (value < least)
        return refuse(reading, "%s: %d must be at least %d", field, value, least);
    return 0;
}

static int read_pods(struct reading *reading)
{
    static const char *const field = "spec.analysis.pods.maxUnready";
    const struct sw_raw *raw = &reading->object->max_unready;
    struct step_spec *spec = reading->spec;
    struct sw_json *json;

    spec->has_pods = reading->object->has_pods;
    spec->max_restarts = reading->object->max_restarts;
    int result = read_least(reading, "spec.analysis.pods.maxRestarts", spec->max_restarts, 0);
    if (result || !raw->text)
        return result;
    result = read_raw(reading, field, raw, &json);
    if (result)
        return result;
    if (sw_json_type(json) == SW_JSON_STRING)
        return read_duration(reading, field, sw_json_text(json), 0, &spec->max_unready_ms);
    const char *text = sw_json_dump(json, reading->arena, NULL);
    double seconds = strtod(text, NULL);
    if ((sw_json_type(json) != SW_JSON_INT && sw_json_type(json) != SW_JSON_REAL) || seconds < 0 ||
        seconds * SECOND_MS > (double)DURATION_MAX_MS)
        return refuse(reading, "%s: %s is neither a duration like 30s nor a number of seconds",
                      field, text);
    spec->max_unready_ms = (uint64_t)(seconds * SECOND_MS + 0.5);
    return 0;
}

static int read_on_failure(struct reading *reading)
{
    const char *text = reading->object->on_failure;

    if (!text[0] || strcmp(text, "Retreat") == 0)
        reading->spec->on_failure = STEP_RETREAT;
    else if (strcmp(text, "Rollback") == 0)
        reading->spec->on_failure = STEP_ROLLBACK;
    else if (strcmp(text, "Hold") == 0)
        reading->spec->on_failure = STEP_STAY;
    else
        return refuse(reading, "spec.onFailure: \"%s\" is none of Retreat, Rollback, Hold", text);
    return 0;
}

static int read_numbers(struct reading *reading)
{
    const struct stepped *object = reading->object;
    struct step_spec *spec = reading->spec;
    int result =
        read_least(reading, "spec.progressDeadlineSeconds", object->progress_deadline_seconds, 1);

    if (!result)
        result = read_interval(reading, "spec.analysis.interval", object->interval, 60 * SECOND_MS,
                               &spec->interval_ms);
    if (!result)
        result = read_least(reading, "spec.analysis.iterations", object->iterations, 1);
    if (!result)
        result = read_least(reading, "spec.analysis.threshold", object->threshold, 1);
    if (result)
        return result;
    spec->deadline_ms = (uint64_t)object->progress_deadline_seconds * SECOND_MS;
    spec->iterations = object->iterations;
    spec->threshold = object->threshold;
    return 0;
}

int step_spec_parse(const struct stepped *object, struct sw_arena *arena,
                    struct step_spec *ret_spec, const char **ret_error)
{
    static int (*const readers[])(struct reading *) = {
        read_target, read_stops, read_numbers, read_metrics, read_hooks, read_pods, read_on_failure,
    };
    struct step_spec spec = {.object = object};
    struct reading reading = {.object = object, .arena = arena, .spec = &spec};

    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++)
        if (readers[i](&reading)) {
            *ret_error = reading.error;
            return -EINVAL;
        }
    *ret_spec = spec;
    return 0;
}
