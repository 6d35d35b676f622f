/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Key and value beside a log message: SW_STR("namespace", ns), SW_INT("code", 410). Borrowed for
 * the call; nothing is allocated.
 */
#ifndef SLIPWAY_FIELD_H
#define SLIPWAY_FIELD_H

#include <stdbool.h>
#include <stdint.h>

enum sw_field_type {
    SW_FIELD_END,
    SW_FIELD_STRING, /* NULL prints as null */
    SW_FIELD_INT,
    SW_FIELD_BOOL,
    SW_FIELD_SECONDS, /* a duration; printed in seconds with three decimals */
    SW_FIELD_ERROR,   /* a negative code; printed as its text */
};

struct sw_field {
    enum sw_field_type type;
    const char *key;
    union {
        const char *string;
        int64_t integer;
        bool boolean;
        uint64_t milliseconds;
    } value;
};

#define SW_STR(k, v) ((struct sw_field){SW_FIELD_STRING, (k), {.string = (v)}})
#define SW_INT(k, v) ((struct sw_field){SW_FIELD_INT, (k), {.integer = (int64_t)(v)}})
#define SW_BOOL(k, v) ((struct sw_field){SW_FIELD_BOOL, (k), {.boolean = (v)}})
#define SW_MS(k, v) ((struct sw_field){SW_FIELD_SECONDS, (k), {.milliseconds = (uint64_t)(v)}})
#define SW_FIELD_LAST ((struct sw_field){SW_FIELD_END, 0, {0}})
#define SW_ERR(v) ((struct sw_field){SW_FIELD_ERROR, "error", {.integer = (int64_t)(v)}})

enum sw_level {
    SW_LEVEL_DEBUG,
    SW_LEVEL_INFO,
    SW_LEVEL_WARN,
    SW_LEVEL_ERROR,
};

#endif
