/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Label selectors: requirements that are all to be met, in one canonical order, so that two
 * selectors that say the same have the same text.
 */
#include "kube/selector.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slipway/arena.h>

#include "base/buf.h"

SW_PRINTF(2, 3) int sw_selector_complain(const struct sw_selector_why *why, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why->text, why->size, format, args);
    va_end(args);
    return -EINVAL;
}

/* ---- what is allowed ---- */

enum { NAME_MAX_LEN = 63, PREFIX_MAX_LEN = 253 };

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Letters, digits, '-', '_', '.', with a letter or digit at both ends. */
static bool is_name(const char *text, size_t len)
{
    if (len == 0 || len > NAME_MAX_LEN || !is_alnum(text[0]) || !is_alnum(text[len - 1])) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (!is_alnum(text[i]) && !memchr("-_.", text[i], 3)) {
            return false;
        }
    }
    return true;
}

static bool is_lower_alnum(char c)
{
    return is_alnum(c) && !(c >= 'A' && c <= 'Z');
}

/* RFC 1123: lower-case labels with dots between them. */
static bool is_subdomain(const char *text, size_t len)
{
    if (len == 0 || len > PREFIX_MAX_LEN) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        bool is_edge = i == 0 || i + 1 == len || text[i - 1] == '.' || text[i + 1] == '.';
        bool is_fine = is_lower_alnum(text[i]) || (!is_edge && text[i] == '-') ||
                       (text[i] == '.' && i > 0 && i + 1 < len && text[i - 1] != '.');
        if (!is_fine) {
            return false;
        }
    }
    return true;
}

static bool is_key(const char *key)
{
    const char *slash = strchr(key, '/');
    const char *name = slash ? slash + 1 : key;
    return is_name(name, strlen(name)) && (!slash || is_subdomain(key, (size_t)(slash - key)));
}

static bool is_value(const char *value)
{
    return !value[0] || is_name(value, strlen(value));
}

const char *sw_selector_quoted(const char *text, char room[SW_SELECTOR_QUOTED + 4])
{
    size_t len = SW_MIN(strlen(text), (size_t)SW_SELECTOR_QUOTED);
    for (size_t i = 0; i < len; i++) {
        room[i] = text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?';
    }
    memcpy(room + len, text[len] ? "..." : "", text[len] ? 4 : 1);
    return room;
}

int sw_selector_check_key(const struct sw_selector_why *why, const char *where, const char *key)
{
    char room[SW_SELECTOR_QUOTED + 4];
    return is_key(key)
               ? 0
               : sw_selector_complain(
                     why,
                     "%s: \"%s\" is no label key: at most 63 letters, digits, '-', '_', '.' "
                     "between letters or digits; in front of it may be a DNS name and '/'",
                     where, sw_selector_quoted(key, room));
}

int sw_selector_check_value(const struct sw_selector_why *why, const char *where, const char *value)
{
    char room[SW_SELECTOR_QUOTED + 4];
    return is_value(value)
               ? 0
               : sw_selector_complain(
                     why,
                     "%s: \"%s\" is no label value: at most 63 letters, digits, '-', '_', "
                     "'.' between letters or digits, or nothing",
                     where, sw_selector_quoted(value, room));
}

/* ---- building ---- */

struct sw_selector *sw_selector_new(void)
{
    struct sw_selector *selector = SW_NEW(struct sw_selector);
    selector->arena = sw_arena_new(256);
    return selector;
}

struct sw_selector *sw_selector_free(struct sw_selector *selector)
{
    if (selector) {
        sw_arena_free(selector->arena);
        sw_free(selector->at);
        sw_free(selector);
    }
    return NULL;
}

struct sw_requirement *sw_selector_add(struct sw_selector *selector, const char *key,
                                       enum sw_selector_op operation, size_t value_count)
{
    if (selector->count == selector->room) {
        selector->room = SW_MAX(selector->room * 2, (size_t)2);
        selector->at = sw_realloc(selector->at, selector->room, sizeof(*selector->at));
    }
    struct sw_requirement *requirement = &selector->at[selector->count++];
    *requirement = (struct sw_requirement){
        .key = sw_arena_strdup(selector->arena, key),
        .operation = operation,
    };
    if (value_count > 0) {
        requirement->values = SW_ARENA_ARRAY(selector->arena, value_count, const char *);
    }
    return requirement;
}

void sw_selector_add_value(struct sw_selector *selector, struct sw_requirement *requirement,
                           const char *value)
{
    requirement->values[requirement->count++] = sw_arena_strdup(selector->arena, value);
}

static int compare_values(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int compare_requirements(const void *a, const void *b)
{
    const struct sw_requirement *left = a;
    const struct sw_requirement *right = b;
    int order = strcmp(left->key, right->key);
    if (order || left->operation != right->operation) {
        return order ? order : (int)left->operation - (int)right->operation;
    }
    for (size_t i = 0; i < left->count && i < right->count; i++) {
        order = strcmp(left->values[i], right->values[i]);
        if (order) {
            return order;
        }
    }
    return left->count < right->count ? -1 : left->count > right->count;
}

static void sort_values(struct sw_requirement *requirement)
{
    size_t kept = 0;
    if (requirement->count == 0) {
        return;
    }
    qsort(requirement->values, requirement->count, sizeof(*requirement->values), compare_values);
    for (size_t i = 0; i < requirement->count; i++) {
        if (kept == 0 || strcmp(requirement->values[kept - 1], requirement->values[i]) != 0) {
            requirement->values[kept++] = requirement->values[i];
        }
    }
    requirement->count = kept;
}

void sw_selector_sort(struct sw_selector *selector)
{
    size_t kept = 0;
    for (size_t i = 0; i < selector->count; i++) {
        sort_values(&selector->at[i]);
    }
    if (selector->count > 0) {
        qsort(selector->at, selector->count, sizeof(*selector->at), compare_requirements);
    }
    for (size_t i = 0; i < selector->count; i++) {
        if (kept == 0 || compare_requirements(&selector->at[kept - 1], &selector->at[i]) != 0) {
            selector->at[kept++] = selector->at[i];
        }
    }
    selector->count = kept;
}

/* ---- use ---- */

static bool has_value(const struct sw_requirement *requirement, const char *value)
{
    for (size_t i = 0; i < requirement->count; i++) {
        if (strcmp(requirement->values[i], value) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_met(const struct sw_requirement *requirement, const struct sw_labels *labels)
{
    const char *value = sw_labels_get(labels, requirement->key);
    switch (requirement->operation) {
    case SW_SELECTOR_IN:
        return value && has_value(requirement, value);
    case SW_SELECTOR_NOT_IN:
        return !value || !has_value(requirement, value);
    case SW_SELECTOR_EXISTS:
        return value;
    case SW_SELECTOR_MISSING:
        return !value;
    }
    return false;
}

bool sw_selector_matches(const struct sw_selector *selector, const struct sw_labels *labels)
{
    for (size_t i = 0; selector && i < selector->count; i++) {
        if (!is_met(&selector->at[i], labels)) {
            return false;
        }
    }
    return selector; /* none selects nothing */
}

/* ---- text ---- */

static void put_list(struct sw_buf *buf, const struct sw_requirement *requirement)
{
    for (size_t i = 0; i < requirement->count; i++) {
        (void)sw_buf_printf(buf, "%s%s", i > 0 ? "," : "", requirement->values[i]);
    }
}

/* "k in (v)" is the same as "k=v", and is written so. */
static void put_requirement(struct sw_buf *buf, const struct sw_requirement *requirement)
{
    bool is_in = requirement->operation == SW_SELECTOR_IN;
    switch (requirement->operation) {
    case SW_SELECTOR_IN:
    case SW_SELECTOR_NOT_IN:
        if (requirement->count == 1) {
            (void)sw_buf_printf(buf, "%s%s%s", requirement->key,
                                is_in ? "=" : "!=", requirement->values[0]);
        } else {
            (void)sw_buf_printf(buf, "%s %s (", requirement->key, is_in ? "in" : "notin");
            put_list(buf, requirement);
            (void)sw_buf_puts(buf, ")");
        }
        break;
    case SW_SELECTOR_EXISTS:
        (void)sw_buf_puts(buf, requirement->key);
        break;
    case SW_SELECTOR_MISSING:
        (void)sw_buf_printf(buf, "!%s", requirement->key);
        break;
    }
}

char *sw_selector_text(const struct sw_selector *selector)
{
    struct sw_buf buf; /* without a limit, so that appending cannot fail */
    sw_buf_init(&buf, SIZE_MAX);
    for (size_t i = 0; i < selector->count; i++) {
        (void)sw_buf_puts(&buf, i > 0 ? "," : "");
        put_requirement(&buf, &selector->at[i]);
    }
    return sw_buf_steal(&buf);
}
