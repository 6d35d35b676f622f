/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log and metrics of a module. Message and names are constants; what varies are fields and label
 * values. No names of objects in labels but those of coordinations, whose number is bounded; no
 * token, key or body in a log.
 *
 *     sw_info(self, "turn handed over", SW_STR("from", a), SW_STR("to", b));
 */
#ifndef SLIPWAY_TELEMETRY_H
#define SLIPWAY_TELEMETRY_H

#include <stddef.h>

#include <slipway/field.h>
#include <slipway/module.h>

SW_API void sw_say(struct sw_instance *self, enum sw_level level, const char *message,
                   const struct sw_field *fields);

#define sw_debug(self, ...) sw_say_at_(self, SW_LEVEL_DEBUG, __VA_ARGS__, SW_FIELD_LAST)
#define sw_info(self, ...) sw_say_at_(self, SW_LEVEL_INFO, __VA_ARGS__, SW_FIELD_LAST)
#define sw_warn(self, ...) sw_say_at_(self, SW_LEVEL_WARN, __VA_ARGS__, SW_FIELD_LAST)
#define sw_error(self, ...) sw_say_at_(self, SW_LEVEL_ERROR, __VA_ARGS__, SW_FIELD_LAST)
#define sw_say_at_(self, level, message, ...) \
    sw_say(self, level, message, (const struct sw_field[]){__VA_ARGS__})

/* What the lines that follow (sw_say, sw_record) are about: each bears "rollout" (sw_rollout_text)
 * and "reconcileID" (sw_run_id) until something else is said here. NULL: none. Borrowed until then.
 */
SW_API void sw_say_about(struct sw_instance *self, const char *rollout, const char *reconcile_id);

struct sw_metric;

/* In start; the metric lives as long as the process. label NULL: none. Names begin with "slipway_".
 */
SW_API SW_NONNULL struct sw_metric *sw_counter(struct sw_instance *self, const char *name,
                                               const char *help, const char *label,
                                               const char *value);
SW_API SW_NONNULL struct sw_metric *sw_gauge(struct sw_instance *self, const char *name,
                                             const char *help, const char *label,
                                             const char *value);
/* Upper bounds in rising order. */
SW_API SW_NONNULL struct sw_metric *sw_histogram(struct sw_instance *self, const char *name,
                                                 const char *help, const double *buckets,
                                                 size_t count);
SW_API void sw_count(struct sw_metric *counter, double by);
SW_API void sw_measure(struct sw_metric *gauge, double value);
SW_API void sw_observe(struct sw_metric *histogram, double value);

/* ---- series that come and go ---- */

struct sw_metric_family;

/* In start. labels: names, NULL-terminated. */
SW_API SW_NONNULL struct sw_metric_family *sw_counter_family(struct sw_instance *self,
                                                             const char *name, const char *help,
                                                             const char *const *labels);
SW_API SW_NONNULL struct sw_metric_family *sw_gauge_family(struct sw_instance *self,
                                                           const char *name, const char *help,
                                                           const char *const *labels);
/* values: one for each label, in order. Allocates where there is none yet: keep what it returns,
 * which is valid until sw_series_remove. Beyond 1 000 series all further ones are one, "(other)":
 * whoever does not know a bound sets one. */
SW_API SW_NONNULL struct sw_metric *sw_series(struct sw_metric_family *family,
                                              const char *const *values);
SW_API void sw_series_remove(struct sw_metric_family *family, const char *const *values);

/* In start, once. fn is called before the metrics are read, for gauges that are cheaper to find out
 * than to keep. */
typedef void (*sw_collect_fn)(struct sw_instance *self);
SW_API void sw_on_collect(struct sw_instance *self, sw_collect_fn fn);

#endif
