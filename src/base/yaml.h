/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A YAML text as a tree of nodes that know their lines. It exists for messages: libcyaml, which
 * loads configurations, reports the line of a neighbour for an unknown or missing key, and takes
 * several mistakes for something sensible (any word for a boolean, "010" for 8, a second document
 * for none). Only what configuration files need: no aliases, no tags, keys are text.
 */
#ifndef SW_BASE_YAML_H
#define SW_BASE_YAML_H

#include <stdbool.h>
#include <stddef.h>

struct sw_arena;
struct sw_error;

enum sw_yaml_type {
    SW_YAML_SCALAR,
    SW_YAML_SEQUENCE,
    SW_YAML_MAPPING,
};

struct sw_yaml {
    enum sw_yaml_type type;
    size_t line; /* of the value, from 1 */
    const char *text;
    bool is_plain; /* a scalar without quotes */

    const char *key; /* NULL outside a mapping */
    size_t key_line;
    size_t index; /* in a sequence, from 0 */
    const struct sw_yaml *parent;

    struct sw_yaml *first, *last, *next;
    size_t count; /* of members or elements */
};

/* *ret_root is NULL where the text has no document, or an empty one. SW_E_SYNTAX with a message
 * that begins with name and line. All memory is the arena's. */
int sw_yaml_parse(struct sw_arena *arena, const char *name, const char *text, size_t len,
                  const struct sw_yaml **ret_root, struct sw_error *error);
/* NULL where there is none. */
const struct sw_yaml *sw_yaml_get(const struct sw_yaml *mapping, const char *key);
/* True for nothing at all, ~ and null. */
bool sw_yaml_is_null(const struct sw_yaml *node);
/* "webhook.hosts[2].port"; "" of the root. With last: one more key behind it. */
const char *sw_yaml_path(struct sw_arena *arena, const struct sw_yaml *node, const char *last);
/* Text from outside, cut and escaped for a message. */
const char *sw_yaml_show(struct sw_arena *arena, const char *text);

#endif
