/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members of a configuration that libcyaml's own field macros cannot describe in every version that
 * we build with: integers and durations with bounds and a default, booleans with a default. They
 * stand in a schema among libcyaml's:
 *
 *     static const cyaml_schema_field_t webhook_fields[] = {
 *         SW_CONFIG_INT("port", CYAML_FLAG_OPTIONAL, struct webhook, port, 1, 65535, 9443),
 *         SW_CONFIG_DURATION("timeout", CYAML_FLAG_OPTIONAL, struct webhook, timeout_ms,
 *                            100, 30000, 10000),
 *         CYAML_FIELD_STRING_PTR("host", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
 *                                struct webhook, host, 0, CYAML_UNLIMITED),
 *         CYAML_FIELD_END,
 *     };
 *
 * To libcyaml they are keys to ignore; the core checks and stores them. A mapping that is left out
 * gets the defaults of its members, unless it is a pointer (which is NULL then).
 */
#ifndef SLIPWAY_CONFIG_H
#define SLIPWAY_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include <cyaml/cyaml.h>

enum sw_config_kind {
    SW_CONFIG_KIND_INT = 0x53434601, /* so that a schema of something else is noticed */
    SW_CONFIG_KIND_BOOL,
    SW_CONFIG_KIND_DURATION,
};

struct sw_config_value {
    struct cyaml_schema_value head; /* what the field's schema points to */
    enum sw_config_kind kind;
    int64_t min, max;
    int64_t otherwise; /* stored where the key is missing */
};

#define SW_CONFIG_FIELD_(key_, flags_, structure_, member_, ...)                                   \
    {                                                                                              \
        .key = (key_), .data_offset = offsetof(structure_, member_),                               \
        .value = {                                                                                 \
            .type = CYAML_IGNORE,                                                                  \
            .flags = (enum cyaml_flag)(flags_),                                                    \
            .data_size = sizeof(((structure_ *)NULL)->member_),                                    \
            .sequence = {.entry = &((const struct sw_config_value){.head = {.type = CYAML_IGNORE}, \
                                                                   __VA_ARGS__}                    \
                                        .head)},                                                   \
        },                                                                                         \
    }

/* An integer member of any size. flags: CYAML_FLAG_OPTIONAL or CYAML_FLAG_DEFAULT (required). */
#define SW_CONFIG_INT(key, flags, structure, member, min_, max_, otherwise_)                   \
    SW_CONFIG_FIELD_(key, flags, structure, member, .kind = SW_CONFIG_KIND_INT, .min = (min_), \
                     .max = (max_), .otherwise = (otherwise_))
/* "1m30s" in the file, milliseconds in the member. Bounds and default are milliseconds. */
#define SW_CONFIG_DURATION(key, flags, structure, member, min_, max_, otherwise_)    \
    SW_CONFIG_FIELD_(key, flags, structure, member, .kind = SW_CONFIG_KIND_DURATION, \
                     .min = (min_), .max = (max_), .otherwise = (otherwise_))
#define SW_CONFIG_BOOL(key, flags, structure, member, otherwise_)                          \
    SW_CONFIG_FIELD_(key, flags, structure, member, .kind = SW_CONFIG_KIND_BOOL, .max = 1, \
                     .otherwise = (otherwise_))

#endif
