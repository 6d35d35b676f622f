/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a selector, for the files that read one from JSON (selector_json.c) and from text
 * (selector_text.c). Private to them.
 */
#ifndef SW_KUBE_SELECTOR_H
#define SW_KUBE_SELECTOR_H

#include <stddef.h>

#include <slipway/selector.h>

#include "base/util.h"

struct sw_arena;

enum sw_selector_op {
    SW_SELECTOR_IN,
    SW_SELECTOR_NOT_IN,
    SW_SELECTOR_EXISTS,
    SW_SELECTOR_MISSING,
};

struct sw_requirement {
    const char *key;
    enum sw_selector_op operation;
    const char **values; /* sorted, each once */
    size_t count;
};

struct sw_selector {
    struct sw_arena *arena;
    struct sw_requirement *at; /* sorted, each once */
    size_t count, room;
};

/* Where complaints go. */
struct sw_selector_why {
    char *text;
    size_t size;
};

enum { SW_SELECTOR_QUOTED = 80 };

/* Says it and returns -EINVAL. */
SW_PRINTF(2, 3)
int sw_selector_complain(const struct sw_selector_why *why, const char *format, ...);
/* For a message: not too long, and without what would spoil a line. */
const char *sw_selector_quoted(const char *text, char room[SW_SELECTOR_QUOTED + 4]);
int sw_selector_check_key(const struct sw_selector_why *why, const char *where, const char *key);
int sw_selector_check_value(const struct sw_selector_why *why, const char *where,
                            const char *value);

struct sw_selector *sw_selector_new(void);
/* A requirement without values yet; there will be at most value_count. Borrowed until the next. */
struct sw_requirement *sw_selector_add(struct sw_selector *selector, const char *key,
                                       enum sw_selector_op operation, size_t value_count);
void sw_selector_add_value(struct sw_selector *selector, struct sw_requirement *requirement,
                           const char *value);
/* The canonical order; the last step. */
void sw_selector_sort(struct sw_selector *selector);

SW_AUTO_DEFINE(struct sw_selector, sw_selector_free)

#endif
