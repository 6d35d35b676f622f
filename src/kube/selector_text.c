/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text form of a selector, as in a query:
 *
 *     selector     requirement { "," requirement }, or nothing
 *     requirement  key | "!" key | key ("=" | "==" | "!=") value | key ("in" | "notin") list
 *     list         "(" value { "," value } ")"
 *
 * White space may stand between any two of these; a value may be empty.
 */
#include "kube/selector.h"

#include <string.h>

#include <slipway/arena.h>

struct parser {
    struct sw_selector *selector;
    const char *at;
    const struct sw_selector_why *why;
};

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static char peek(struct parser *p)
{
    while (is_space(*p->at)) {
        p->at++;
    }
    return *p->at;
}

static bool take(struct parser *p, const char *token)
{
    size_t len = strlen(token);
    peek(p);
    if (strncmp(p->at, token, len) != 0) {
        return false;
    }
    p->at += len;
    return true;
}

/* Up to the next sign or white space; "" where there is none. In the selector's arena. */
static const char *take_word(struct parser *p)
{
    peek(p);
    size_t len = strcspn(p->at, " \t\n\v\f\r,()=!<>");
    const char *word = sw_arena_strndup(p->selector->arena, p->at, len);
    p->at += len;
    return word;
}

static int unexpected(struct parser *p, const char *expected)
{
    char room[SW_SELECTOR_QUOTED + 4];
    if (!peek(p)) {
        return sw_selector_complain(p->why, "expected %s, found the end", expected);
    }
    return sw_selector_complain(p->why, "expected %s, found \"%s\"", expected,
                                sw_selector_quoted(p->at, room));
}

static int read_value(struct parser *p, struct sw_requirement *requirement)
{
    const char *value = take_word(p);
    int code = sw_selector_check_value(p->why, requirement->key, value);
    if (code == 0) {
        sw_selector_add_value(p->selector, requirement, value);
    }
    return code;
}

/* At most as many values as there are commas up to the bracket, and one more. */
static size_t count_values(const char *text)
{
    size_t count = 1;
    for (; *text && *text != ')'; text++) {
        count += *text == ',';
    }
    return count;
}

static int read_list(struct parser *p, const char *key, enum sw_selector_op operation)
{
    if (!take(p, "(")) {
        return unexpected(p, "(");
    }
    if (peek(p) == ')') {
        return sw_selector_complain(p->why, "%s: in and notin want at least one value", key);
    }
    struct sw_requirement *requirement =
        sw_selector_add(p->selector, key, operation, count_values(p->at));
    int code;
    do {
        code = read_value(p, requirement);
    } while (code == 0 && take(p, ","));
    if (code) {
        return code;
    }
    return take(p, ")") ? 0 : unexpected(p, ", or )");
}

static int read_operation(struct parser *p, const char *key)
{
    struct sw_selector *selector = p->selector;
    char next = peek(p);
    if (next == 0 || next == ',') {
        sw_selector_add(selector, key, SW_SELECTOR_EXISTS, 0);
        return 0;
    }
    if (take(p, "!=")) {
        return read_value(p, sw_selector_add(selector, key, SW_SELECTOR_NOT_IN, 1));
    }
    if (take(p, "==") || take(p, "=")) {
        return read_value(p, sw_selector_add(selector, key, SW_SELECTOR_IN, 1));
    }
    const char *before = p->at;
    const char *word = take_word(p);
    if (strcmp(word, "in") == 0) {
        return read_list(p, key, SW_SELECTOR_IN);
    }
    if (strcmp(word, "notin") == 0) {
        return read_list(p, key, SW_SELECTOR_NOT_IN);
    }
    p->at = before;
    return unexpected(p, "=, ==, !=, in, notin or ,");
}

static int read_requirement(struct parser *p)
{
    bool is_missing = take(p, "!");
    if (!peek(p) || strchr(",()=!<>", *p->at)) {
        return unexpected(p, "a label key");
    }
    const char *key = take_word(p);
    int code = sw_selector_check_key(p->why, "the selector", key);
    if (code || !is_missing) {
        return code ? code : read_operation(p, key);
    }
    sw_selector_add(p->selector, key, SW_SELECTOR_MISSING, 0);
    return 0;
}

static int read_selector(struct parser *p)
{
    if (!peek(p)) {
        return 0; /* everything */
    }
    do {
        int code = read_requirement(p);
        if (code) {
            return code;
        }
    } while (take(p, ","));
    return peek(p) ? unexpected(p, "a comma") : 0;
}

int sw_selector_parse_text(const char *text, struct sw_selector **ret_selector, char *why,
                           size_t why_size)
{
    const struct sw_selector_why complaints = {why, why_size};
    SW_AUTO(struct sw_selector, sw_selector_free) selector = sw_selector_new();
    struct parser parser = {.selector = selector, .at = text, .why = &complaints};
    int code = read_selector(&parser);
    if (code) {
        return code;
    }
    sw_selector_sort(selector);
    *ret_selector = sw_steal(&selector);
    return 0;
}
