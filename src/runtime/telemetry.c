/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log and metrics for modules: a thin layer over those of the core.
 */
#include <slipway/telemetry.h>

#include "base/log.h"
#include "base/metrics.h"
#include "base/util.h"
#include "runtime/core.h"
#include "runtime/instance.h"

void sw_say(struct sw_instance *self, enum sw_level level, const char *message,
            const struct sw_field *fields)
{
    sw_log_write(&self->log, level, message, fields);
}

void sw_say_about(struct sw_instance *self, const char *rollout, const char *reconcile_id)
{
    struct sw_field *field = self->log.fields;

    if (rollout)
        *field++ = SW_STR("rollout", rollout);
    if (reconcile_id)
        *field++ = SW_STR("reconcileID", reconcile_id);
    *field = SW_FIELD_LAST;
}

static struct sw_metric *metric(struct sw_instance *self, enum sw_metric_type type,
                                const char *name, const char *help, const char *label,
                                const char *value)
{
    const char *labels[] = {label, NULL};
    const char *values[] = {value, NULL};
    struct sw_metric_family *family =
        sw_metrics_family(self->core->metrics, type, name, help, label ? labels : NULL, NULL, 0);

    return sw_metric_child(family, label ? values : NULL);
}

struct sw_metric *sw_counter(struct sw_instance *self, const char *name, const char *help,
                             const char *label, const char *value)
{
    return metric(self, SW_METRIC_COUNTER, name, help, label, value);
}

struct sw_metric *sw_gauge(struct sw_instance *self, const char *name, const char *help,
                           const char *label, const char *value)
{
    return metric(self, SW_METRIC_GAUGE, name, help, label, value);
}

struct sw_metric *sw_histogram(struct sw_instance *self, const char *name, const char *help,
                               const double *buckets, size_t count)
{
    struct sw_metric_family *family = sw_metrics_family(self->core->metrics, SW_METRIC_HISTOGRAM,
                                                        name, help, NULL, buckets, count);

    return sw_metric_child(family, NULL);
}

void sw_count(struct sw_metric *counter, double by)
{
    sw_metric_add(counter, by);
}

void sw_measure(struct sw_metric *gauge, double value)
{
    sw_metric_set(gauge, value);
}

void sw_observe(struct sw_metric *histogram, double value)
{
    sw_metric_observe(histogram, value);
}

struct sw_metric_family *sw_counter_family(struct sw_instance *self, const char *name,
                                           const char *help, const char *const *labels)
{
    return sw_metrics_family(self->core->metrics, SW_METRIC_COUNTER, name, help, labels, NULL, 0);
}

struct sw_metric_family *sw_gauge_family(struct sw_instance *self, const char *name,
                                         const char *help, const char *const *labels)
{
    return sw_metrics_family(self->core->metrics, SW_METRIC_GAUGE, name, help, labels, NULL, 0);
}

struct sw_metric *sw_series(struct sw_metric_family *family, const char *const *values)
{
    return sw_metric_child(family, values);
}

void sw_series_remove(struct sw_metric_family *family, const char *const *values)
{
    sw_metric_remove(family, values);
}

static void collect(void *arg)
{
    struct sw_instance *self = arg;

    self->collect_fn(self);
}

void sw_on_collect(struct sw_instance *self, sw_collect_fn fn)
{
    sw_assert(!self->collect_fn);
    self->collect_fn = fn;
    sw_metrics_on_collect(self->core->metrics, collect, self);
}

void sw_telemetry_forget(struct sw_instance *self)
{
    if (self->collect_fn)
        sw_metrics_off_collect(self->core->metrics, collect, self);
    self->collect_fn = NULL;
}
