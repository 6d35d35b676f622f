/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kind that binds one of everything, for tests and fuzz targets.
 */
#ifndef TESTS_UNIT_KUBE_WIDGET_H
#define TESTS_UNIT_KUBE_WIDGET_H

#include <slipway/kind.h>

struct widget_part {
    const char *name;
    const char *colour; /* interned */
    int32_t count;
    struct sw_strings tags;
    struct sw_list screws; /* of struct widget_screw */
};

struct widget_screw {
    int32_t size; /* makes a struct that is no multiple of 8 */
};

struct widget {
    struct sw_object meta;
    const char *text;
    const char *colour;
    int32_t small;
    int64_t large;
    bool is_on;
    bool has_extra;
    int64_t since_us;
    struct sw_int_or_percent share;
    struct sw_strings strings;
    struct sw_labels map;
    struct sw_conditions conditions;
    struct sw_list parts; /* of struct widget_part */
    struct sw_hash128 hash;
    struct sw_hash128 part_hash; /* of what is bound in another way too */
    struct sw_raw raw;
    const char *odd;
    int32_t inner; /* below what is hashed */
};

extern const struct sw_kind widget_kind;

#endif
