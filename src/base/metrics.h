/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters, gauges and histograms, and their text exposition (Prometheus 0.0.4 and
 * OpenMetrics 1.0). A metric family is registered once with its label names; a child (one set of
 * label values) is looked up once and kept, so that counting is an addition. Names of objects never
 * become label values.
 */
#ifndef SW_BASE_METRICS_H
#define SW_BASE_METRICS_H

#include <stddef.h>
#include <stdint.h>

struct sw_buf;
struct sw_metrics;
struct sw_metric_family;
struct sw_metric; /* one time series */

enum sw_metric_type {
    SW_METRIC_COUNTER,
    SW_METRIC_GAUGE,
    SW_METRIC_HISTOGRAM,
};

struct sw_metrics *sw_metrics_new(void);
struct sw_metrics *sw_metrics_free(struct sw_metrics *metrics);

/*
 * labels: NULL-terminated names, or NULL. buckets: upper bounds in rising order, count of them;
 * histograms only (NULL: 1 ms to 60 s, in seconds). Registered again with the same name: the family
 * that is there (type and labels must agree). A counter's samples end in "_total", whether name
 * does or not. Strings are copied.
 */
struct sw_metric_family *sw_metrics_family(struct sw_metrics *metrics, enum sw_metric_type type,
                                           const char *name, const char *help,
                                           const char *const *labels, const double *buckets,
                                           size_t bucket_count);
/* values: one for each label name, in order; NULL where there are no labels. Beyond 1 000 children
 * a family gives all further ones the same child, whose values are "(other)". Lives as long as the
 * family. */
struct sw_metric *sw_metric_child(struct sw_metric_family *family, const char *const *values);
/* Forgets the child; what was returned for it must not be used again. */
void sw_metric_remove(struct sw_metric_family *family, const char *const *values);

void sw_metric_add(struct sw_metric *metric, double value);     /* counter: value >= 0 */
void sw_metric_set(struct sw_metric *metric, double value);     /* gauge */
void sw_metric_observe(struct sw_metric *metric, double value); /* histogram */
double sw_metric_value(const struct sw_metric *metric); /* counter, gauge; histogram: its count */

/* Calls fn before each exposition, for gauges that are cheaper to read than to keep. */
void sw_metrics_on_collect(struct sw_metrics *metrics, void (*fn)(void *arg), void *arg);
/* Takes the same fn and arg back. */
void sw_metrics_off_collect(struct sw_metrics *metrics, void (*fn)(void *arg), void *arg);

enum sw_metrics_format {
    SW_METRICS_TEXT,        /* text/plain; version=0.0.4; charset=utf-8 */
    SW_METRICS_OPENMETRICS, /* application/openmetrics-text; version=1.0.0; charset=utf-8 */
};
/* Appends the exposition. -ENOBUFS beyond the buffer's limit; then nothing was added. */
int sw_metrics_write(struct sw_metrics *metrics, enum sw_metrics_format format, struct sw_buf *out);
/* By the Accept header of the request (RFC 9110 section 12.5.1); NULL: text. */
enum sw_metrics_format sw_metrics_negotiate(const char *accept);
const char *sw_metrics_content_type(enum sw_metrics_format format);

#endif
