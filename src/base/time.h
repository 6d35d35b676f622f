/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times as text: RFC 3339 as the API server writes it (metav1.Time: whole seconds, "Z";
 * metav1.MicroTime: exactly six decimals), and durations as Go writes them ("1m30s"). Microseconds
 * since 1970, UTC.
 */
#ifndef SW_BASE_TIME_H
#define SW_BASE_TIME_H

#include <stddef.h>
#include <stdint.h>

#define SW_TIME_SIZE 32 /* of a buffer for either form, with the NUL */

/* The first cuts the fraction off (towards the past). Years 0 to 9999; a time beyond is written as
 * the nearest of them. */
void sw_time_format(int64_t wall_us, char text[SW_TIME_SIZE]); /* 2006-01-02T15:04:05Z */
void sw_time_format_micro(int64_t wall_us,
                          char text[SW_TIME_SIZE]); /* 2006-01-02T15:04:05.000000Z */
/* Accepts any fraction (what is finer than a microsecond is dropped) and offset of RFC 3339.
 * -EINVAL. */
int sw_time_parse(const char *text, size_t len, int64_t *ret_wall_us);
/* "300ms", "1.5h", "1m30s", "0". Rounded up, so that only zero is zero. -EINVAL: unknown unit, no
 * unit, negative, over 292 years. */
int sw_duration_parse(const char *text, uint64_t *ret_ms);

#endif
