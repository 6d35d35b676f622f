/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log and metrics of a module. Message and names are constants; what varies are fields and label
 * values. No names of objects in labels; no token, key or body in a log.
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

#endif
