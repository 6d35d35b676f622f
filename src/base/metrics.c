/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry of metrics and its exposition. The label text of a series is put together once, when
 * the series is made; an exposition only prints numbers behind it.
 *
 * The formats: https://prometheus.io/docs/instrumenting/exposition_formats/ (0.0.4) and
 * https://github.com/prometheus/OpenMetrics, specification 1.0. Where they differ: OpenMetrics
 * names a counter's family without "_total", escapes quotes in HELP, writes bounds of buckets as
 * floating point numbers ("1.0"), and ends with "# EOF".
 */
#include "base/metrics.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/utf8.h"
#include "base/util.h"

enum { MAX_CHILDREN = 1000 };

/* Seconds: from what a review may take to what a person would wait. */
static const double default_buckets[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                         0.5,   1,      2.5,   5,    10,    30,   60};

struct sw_metric {
    struct sw_metric_family *family;
    char *labels;    /* a="b",c="d", escaped; "" without labels */
    double value;    /* histogram: the sum */
    uint64_t count;  /* histogram: of observations */
    uint64_t *below; /* histogram: one for each bucket, not added up */
};

struct sw_metric_family {
    enum sw_metric_type type;
    char *name; /* a counter's without _total */
    char *help;
    char **labels;
    size_t label_count;
    double *buckets;
    size_t bucket_count;
    struct sw_map *children; /* key of the label values -> struct sw_metric */
    struct sw_metric *other; /* not in children */
};

struct collector {
    void (*fn)(void *arg);
    void *arg;
};

struct sw_metrics {
    struct sw_map *families;
    struct collector *collectors;
    size_t collector_count;
};

/* ---- registry ---- */

struct sw_metrics *sw_metrics_new(void)
{
    struct sw_metrics *metrics = SW_NEW(struct sw_metrics);
    metrics->families = sw_map_new();
    return metrics;
}

static void metric_free(struct sw_metric *metric)
{
    if (metric) {
        sw_free(metric->labels);
        sw_free(metric->below);
        sw_free(metric);
    }
}

static void family_free(struct sw_metric_family *family)
{
    struct sw_map_iter it = {0};
    while (sw_map_next(family->children, &it)) {
        metric_free(it.value);
    }
    sw_map_free(family->children);
    metric_free(family->other);
    for (size_t i = 0; i < family->label_count; i++) {
        sw_free(family->labels[i]);
    }
    sw_free(family->labels);
    sw_free(family->buckets);
    sw_free(family->name);
    sw_free(family->help);
    sw_free(family);
}

struct sw_metrics *sw_metrics_free(struct sw_metrics *metrics)
{
    if (metrics) {
        struct sw_map_iter it = {0};
        while (sw_map_next(metrics->families, &it)) {
            family_free(it.value);
        }
        sw_map_free(metrics->families);
        sw_free(metrics->collectors);
        sw_free(metrics);
    }
    return NULL;
}

static bool is_name(const char *name, bool may_have_colon)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:";
    static const char rest[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789:";
    return *name && strchr(first, *name) && name[strspn(name, rest)] == '\0' &&
           (may_have_colon || !strchr(name, ':'));
}

/* "le" is the bucket's own label, and two underscores are kept for Prometheus itself. */
static bool is_label(const char *name)
{
    return is_name(name, false) && strncmp(name, "__", 2) != 0 && strcmp(name, "le") != 0;
}

static size_t count_labels(const char *const *labels)
{
    size_t count = 0;
    while (labels && labels[count]) {
        count++;
    }
    return count;
}

static void check_agrees(const struct sw_metric_family *family, enum sw_metric_type type,
                         const char *const *labels)
{
    sw_assert(family->type == type && family->label_count == count_labels(labels));
    for (size_t i = 0; i < family->label_count; i++) {
        sw_assert(strcmp(family->labels[i], labels[i]) == 0);
    }
}

static void set_buckets(struct sw_metric_family *family, const double *buckets, size_t count)
{
    if (!buckets) {
        buckets = default_buckets;
        count = SW_ARRAY_SIZE(default_buckets);
    }
    if (count > 0 && isinf(buckets[count - 1])) {
        count--; /* +Inf is always there */
    }
    family->buckets = sw_calloc(count, sizeof(*family->buckets));
    family->bucket_count = count;
    for (size_t i = 0; i < count; i++) {
        sw_assert(isfinite(buckets[i]) && (i == 0 || buckets[i] > buckets[i - 1]));
        family->buckets[i] = buckets[i];
    }
}

struct sw_metric_family *sw_metrics_family(struct sw_metrics *metrics, enum sw_metric_type type,
                                           const char *name, const char *help,
                                           const char *const *labels, const double *buckets,
                                           size_t bucket_count)
{
    size_t len = strlen(name);
    if (type == SW_METRIC_COUNTER && len > 6 && strcmp(name + len - 6, "_total") == 0) {
        len -= 6;
    }
    SW_AUTO(char, sw_free) base = sw_strndup(name, len);
    struct sw_metric_family *family = sw_map_get(metrics->families, base);
    if (family) {
        check_agrees(family, type, labels);
        return family;
    }
    sw_assert(is_name(base, true));
    family = SW_NEW(struct sw_metric_family);
    family->type = type;
    family->name = sw_steal(&base);
    family->help = sw_utf8_repair(help, strlen(help));
    family->help = family->help ? family->help : sw_strdup(help);
    family->label_count = count_labels(labels);
    family->labels = sw_calloc(family->label_count, sizeof(*family->labels));
    for (size_t i = 0; i < family->label_count; i++) {
        sw_assert(is_label(labels[i]));
        family->labels[i] = sw_strdup(labels[i]);
    }
    if (type == SW_METRIC_HISTOGRAM) {
        set_buckets(family, buckets, bucket_count);
    }
    family->children = sw_map_new();
    sw_map_set(metrics->families, family->name, family);
    return family;
}

void sw_metrics_on_collect(struct sw_metrics *metrics, void (*fn)(void *arg), void *arg)
{
    metrics->collectors =
        sw_realloc(metrics->collectors, metrics->collector_count + 1, sizeof(struct collector));
    metrics->collectors[metrics->collector_count++] = (struct collector){fn, arg};
}

void sw_metrics_off_collect(struct sw_metrics *metrics, void (*fn)(void *arg), void *arg)
{
    struct collector *c = metrics->collectors;
    for (size_t i = 0; i < metrics->collector_count; i++) {
        if (c[i].fn == fn && c[i].arg == arg) {
            metrics->collector_count--;
            memmove(&c[i], &c[i + 1], (metrics->collector_count - i) * sizeof(*c));
            return;
        }
    }
}

/* ---- series ---- */

/* Backslash and new line always; quotes where they would end something. */
static void put_escaped(struct sw_buf *out, const char *text, bool has_quotes)
{
    for (; *text; text++) {
        if (*text == '\n') {
            sw_buf_puts(out, "\\n");
        } else if (*text == '\\' || (*text == '"' && has_quotes)) {
            sw_buf_append(out, (const char[]){'\\', *text}, 2);
        } else {
            sw_buf_append(out, text, 1);
        }
    }
}

/* One text for a set of values, and a different one for every other set. */
static char *child_key(const struct sw_metric_family *family, const char *const *values)
{
    struct sw_buf key;
    sw_buf_init(&key, SIZE_MAX);
    for (size_t i = 0; i < family->label_count; i++) {
        sw_buf_printf(&key, "%zu:%s", strlen(values[i]), values[i]);
    }
    return sw_buf_steal(&key);
}

/* values NULL: "(other)" for every label. */
static struct sw_metric *metric_new(struct sw_metric_family *family, const char *const *values)
{
    struct sw_metric *metric = SW_NEW(struct sw_metric);
    struct sw_buf labels;
    sw_buf_init(&labels, SIZE_MAX);
    for (size_t i = 0; i < family->label_count; i++) {
        const char *value = values ? values[i] : "(other)";
        SW_AUTO(char, sw_free) copy = sw_utf8_repair(value, strlen(value));
        sw_buf_printf(&labels, "%s%s=\"", i ? "," : "", family->labels[i]);
        put_escaped(&labels, copy ? copy : value, true);
        sw_buf_puts(&labels, "\"");
    }
    metric->family = family;
    metric->labels = sw_buf_steal(&labels);
    if (family->type == SW_METRIC_HISTOGRAM) {
        metric->below = sw_calloc(family->bucket_count, sizeof(*metric->below));
    }
    return metric;
}

struct sw_metric *sw_metric_child(struct sw_metric_family *family, const char *const *values)
{
    sw_assert(values || family->label_count == 0);
    SW_AUTO(char, sw_free) key = child_key(family, values);
    struct sw_metric *metric = sw_map_get(family->children, key);
    if (metric) {
        return metric;
    }
    if (sw_map_size(family->children) < MAX_CHILDREN) {
        metric = metric_new(family, values);
        sw_map_set(family->children, key, metric);
        return metric;
    }
    if (!family->other) {
        family->other = metric_new(family, NULL);
    }
    return family->other;
}

void sw_metric_remove(struct sw_metric_family *family, const char *const *values)
{
    SW_AUTO(char, sw_free) key = child_key(family, values);
    metric_free(sw_map_remove(family->children, key));
}

void sw_metric_add(struct sw_metric *metric, double value)
{
    sw_assert(metric->family->type == SW_METRIC_GAUGE ||
              (metric->family->type == SW_METRIC_COUNTER && value >= 0));
    metric->value += value;
}

void sw_metric_set(struct sw_metric *metric, double value)
{
    sw_assert(metric->family->type == SW_METRIC_GAUGE);
    metric->value = value;
}

void sw_metric_observe(struct sw_metric *metric, double value)
{
    const struct sw_metric_family *family = metric->family;
    sw_assert(family->type == SW_METRIC_HISTOGRAM);
    size_t i = 0;
    while (i < family->bucket_count && !(value <= family->buckets[i])) {
        i++;
    }
    if (i < family->bucket_count) {
        metric->below[i]++;
    }
    metric->count++;
    metric->value += value;
}

double sw_metric_value(const struct sw_metric *metric)
{
    return metric->family->type == SW_METRIC_HISTOGRAM ? (double)metric->count : metric->value;
}

/* ---- exposition ---- */

struct writer {
    struct sw_buf *out;
    bool is_open; /* OpenMetrics */
};

/* The shortest form that reads back as the same number. is_float: with a point or an exponent. */
static void put_number(struct writer *w, double value, bool is_float)
{
    char text[40];
    if (isnan(value) || isinf(value)) {
        sw_buf_puts(w->out, isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    sw_buf_puts(w->out, text);
    if (is_float && !strpbrk(text, ".e")) {
        sw_buf_puts(w->out, ".0");
    }
}

static void put_head(struct writer *w, const struct sw_metric_family *family)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    const char *suffix = family->type == SW_METRIC_COUNTER && !w->is_open ? "_total" : "";
    sw_buf_printf(w->out, "# HELP %s%s ", family->name, suffix);
    put_escaped(w->out, family->help, w->is_open);
    sw_buf_printf(w->out, "\n# TYPE %s%s %s\n", family->name, suffix, types[family->type]);
}

static void put_name(struct writer *w, const struct sw_metric *metric, const char *suffix)
{
    const char *labels = metric->labels;
    sw_buf_printf(w->out, *labels ? "%s%s{%s} " : "%s%s%s ", metric->family->name, suffix, labels);
}

static void put_bucket(struct writer *w, const struct sw_metric *metric, double bound,
                       uint64_t count)
{
    sw_buf_printf(w->out, "%s_bucket{%s%sle=\"", metric->family->name, metric->labels,
                  *metric->labels ? "," : "");
    put_number(w, bound, w->is_open);
    sw_buf_printf(w->out, "\"} %llu\n", (unsigned long long)count);
}

static void put_histogram(struct writer *w, const struct sw_metric *metric)
{
    uint64_t count = 0;
    for (size_t i = 0; i < metric->family->bucket_count; i++) {
        count += metric->below[i];
        put_bucket(w, metric, metric->family->buckets[i], count);
    }
    put_bucket(w, metric, (double)INFINITY, metric->count);
    put_name(w, metric, "_sum");
    put_number(w, metric->value, false);
    sw_buf_puts(w->out, "\n");
    put_name(w, metric, "_count");
    sw_buf_printf(w->out, "%llu\n", (unsigned long long)metric->count);
}

static void put_metric(struct writer *w, const struct sw_metric *metric)
{
    if (metric->family->type == SW_METRIC_HISTOGRAM) {
        put_histogram(w, metric);
        return;
    }
    put_name(w, metric, metric->family->type == SW_METRIC_COUNTER ? "_total" : "");
    put_number(w, metric->value, false);
    sw_buf_puts(w->out, "\n");
}

static void put_family(struct writer *w, const struct sw_metric_family *family)
{
    if (sw_map_size(family->children) == 0 && !family->other) {
        return;
    }
    put_head(w, family);
    struct sw_map_iter it = {0};
    while (sw_map_next(family->children, &it)) {
        put_metric(w, it.value);
    }
    if (family->other) {
        put_metric(w, family->other);
    }
}

int sw_metrics_write(struct sw_metrics *metrics, enum sw_metrics_format format, struct sw_buf *out)
{
    for (size_t i = 0; i < metrics->collector_count; i++) {
        metrics->collectors[i].fn(metrics->collectors[i].arg);
    }
    /* Into a buffer without a limit: it is our own text, and so only one append can fail. */
    struct sw_buf text;
    sw_buf_init(&text, SIZE_MAX);
    struct writer w = {.out = &text, .is_open = format == SW_METRICS_OPENMETRICS};
    struct sw_map_iter it = {0};
    while (sw_map_next(metrics->families, &it)) {
        put_family(&w, it.value);
    }
    if (w.is_open) {
        sw_buf_puts(&text, "# EOF\n");
    }
    int rc = sw_buf_append(out, text.bytes, text.len);
    sw_buf_done(&text);
    return rc;
}

const char *sw_metrics_content_type(enum sw_metrics_format format)
{
    return format == SW_METRICS_OPENMETRICS
               ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
               : "text/plain; version=0.0.4; charset=utf-8";
}
