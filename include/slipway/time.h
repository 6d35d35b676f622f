/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clock and timers of the core. Nothing else may be asked for the time, so that tests can replace
 * it.
 */
#ifndef SLIPWAY_TIME_H
#define SLIPWAY_TIME_H

#include <stdint.h>

#include <slipway/module.h>

struct sw_alarm;

SW_API uint64_t sw_time_ms(const struct sw_instance *self);     /* monotonic */
SW_API int64_t sw_time_wall_us(const struct sw_instance *self); /* microseconds since 1970, UTC */
SW_API uint64_t sw_time_random(struct sw_instance *self);

/* RFC 3339 in whole seconds, as metav1.Time; and back (-EINVAL). */
SW_API SW_NONNULL const char *sw_time_text(struct sw_arena *arena, int64_t wall_us);
SW_API int sw_time_from_text(const char *text, int64_t *ret_wall_us);

typedef void (*sw_alarm_fn)(struct sw_instance *self, void *arg);
/* A timer that belongs to the module; freed by the core when it stops. */
SW_API SW_NONNULL struct sw_alarm *sw_alarm_new(struct sw_instance *self, sw_alarm_fn fn,
                                                void *arg);
/* Fires once; set again, the new time counts. */
SW_API void sw_alarm_set(struct sw_alarm *alarm, uint64_t after_ms);
SW_API void sw_alarm_clear(struct sw_alarm *alarm);
SW_API void sw_alarm_free(struct sw_alarm *alarm); /* takes NULL */

#endif
