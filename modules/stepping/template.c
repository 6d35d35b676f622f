/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a query from left to right: text is copied, a placeholder is looked up. Done twice, first
 * to measure: a variable may be long and may stand in a query a thousand times.
 */
#include "template.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define SHOWN_BYTES 80 /* of a placeholder in a message */

struct output {
    char *at; /* NULL: only measured */
    size_t len;
};

struct slice {
    const char *at;
    size_t len;
};

/* What stands between {{ and }}. */
struct action {
    struct slice inside; /* without white space and trim marks */
    bool trims_before, trims_behind;
    const char *end; /* behind }} */
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static struct slice trimmed(const char *from, const char *to)
{
    while (from < to && is_space(*from))
        from++;
    while (to > from && is_space(to[-1]))
        to--;
    return (struct slice){from, (size_t)(to - from)};
}

static bool is_word(struct slice slice, const char *word)
{
    return slice.len == strlen(word) && memcmp(slice.at, word, slice.len) == 0;
}

static void put(struct output *output, const char *at, size_t len)
{
    if (output->at)
        memcpy(output->at + output->len, at, len);
    output->len += len;
}

/* `at` is behind "{{". A trim mark is one only with white space beside it, as in Go: {{-3}} is a
 * number there. A comment ends at its own end, and may contain "}}". */
static int read_action(const char *at, struct action *ret_action)
{
    struct action action = {.trims_before = at[0] == '-' && is_space(at[1])};
    const char *from = action.trims_before ? at + 1 : at;
    const char *first = from + strspn(from, " \t\r\n");
    const char *behind = strncmp(first, "/*", 2) == 0 ? strstr(first + 2, "*/") : from;
    const char *close = behind ? strstr(behind, "}}") : NULL;

    if (!close)
        return -EINVAL;
    action.end = close + 2;
    if (close - from >= 2 && close[-1] == '-' && is_space(close[-2])) {
        action.trims_behind = true;
        close--;
    }
    action.inside = trimmed(from, close);
    *ret_action = action;
    return 0;
}

static bool is_comment(struct slice inside)
{
    return inside.len >= 4 && memcmp(inside.at, "/*", 2) == 0 &&
           memcmp(inside.at + inside.len - 2, "*/", 2) == 0;
}

/* The X of `variables.X` and of `index variables "X"`. */
static bool is_variable(struct slice inside, struct slice *ret_key)
{
    static const char dotted[] = "variables.";
    static const char function[] = "index";
    static const char variables[] = "variables";

    if (inside.len > strlen(dotted) && memcmp(inside.at, dotted, strlen(dotted)) == 0) {
        *ret_key = (struct slice){inside.at + strlen(dotted), inside.len - strlen(dotted)};
        return true;
    }
    const char *end = inside.at + inside.len;
    if (inside.len <= strlen(function) || memcmp(inside.at, function, strlen(function)) != 0 ||
        !is_space(inside.at[strlen(function)]))
        return false;
    struct slice rest = trimmed(inside.at + strlen(function), end);
    if (rest.len <= strlen(variables) || memcmp(rest.at, variables, strlen(variables)) != 0)
        return false;
    rest = trimmed(rest.at + strlen(variables), end);
    if (rest.len < 3 || rest.at[0] != '"' || rest.at[rest.len - 1] != '"')
        return false;
    *ret_key = (struct slice){rest.at + 1, rest.len - 2};
    return !memchr(ret_key->at, '"', ret_key->len) && !memchr(ret_key->at, '\\', ret_key->len);
}

static const char *variable(const struct sw_labels *variables, struct slice key)
{
    for (uint32_t i = 0; i < variables->count; i++) {
        if (is_word(key, variables->at[i].key))
            return variables->at[i].value;
    }
    return NULL;
}

static const char *placeholder(const struct step_template_model *model, struct slice word)
{
    const struct {
        const char *name, *value;
    } known[] = {
        {"name", model->name},         {"namespace", model->namespace_}, {"target", model->target},
        {"service", model->service},   {"ingress", model->ingress},      {"route", model->route},
        {"interval", model->interval},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (is_word(word, known[i].name))
            return known[i].value;
    }
    return NULL;
}

static int shown(struct slice inside)
{
    return (int)(inside.len < SHOWN_BYTES ? inside.len : SHOWN_BYTES);
}

static const char *value_of(const struct step_template_model *model, struct slice inside,
                            struct sw_arena *arena, const char **ret_why)
{
    struct slice key;
    const char *value;

    if (is_comment(inside))
        return "";
    if (is_variable(inside, &key)) {
        if (!(value = variable(&model->variables, key)))
            *ret_why = sw_arena_printf(
                arena, "{{ %.*s }}: templateVariables has no \"%.*s\"; add it there", shown(inside),
                inside.at, shown(key), key.at);
        return value;
    }
    if (!(value = placeholder(model, inside)))
        *ret_why = sw_arena_printf(arena,
                                   "{{ %.*s }} is unknown; known are name, namespace, target, "
                                   "service, ingress, route, interval and variables.NAME",
                                   shown(inside), inside.at);
    return value;
}

static int fill_in(const char *query, const struct step_template_model *model,
                   struct sw_arena *arena, struct output *output, const char **ret_why)
{
    const char *at = query;

    for (;;) {
        const char *open = strstr(at, "{{");
        if (!open) {
            put(output, at, strlen(at));
            return 0;
        }
        struct action action;
        if (read_action(open + 2, &action)) {
            *ret_why = sw_arena_printf(arena, "the {{ at byte %zu is never closed by }}",
                                       (size_t)(open - query) + 1);
            return -EINVAL;
        }
        const char *end = open;
        while (action.trims_before && end > at && is_space(end[-1]))
            end--;
        put(output, at, (size_t)(end - at));
        const char *value = value_of(model, action.inside, arena, ret_why);
        if (!value)
            return -EINVAL;
        put(output, value, strlen(value));
        if (output->len > STEP_QUERY_LIMIT) {
            *ret_why = sw_arena_printf(arena, "longer than %d bytes when it is filled in",
                                       STEP_QUERY_LIMIT);
            return -EINVAL;
        }
        at = action.end;
        while (action.trims_behind && is_space(*at))
            at++;
    }
}

int step_template_render(const char *query, const struct step_template_model *model,
                         struct sw_arena *arena, const char **ret_text, const char **ret_why)
{
    struct output measured = {0};
    int code = fill_in(query, model, arena, &measured, ret_why);

    if (code)
        return code;
    if (measured.len > STEP_QUERY_LIMIT) {
        *ret_why =
            sw_arena_printf(arena, "longer than %d bytes when it is filled in", STEP_QUERY_LIMIT);
        return -EINVAL;
    }
    struct output written = {.at = sw_arena_alloc(arena, measured.len + 1)};
    code = fill_in(query, model, arena, &written, ret_why);
    *ret_text = written.at;
    return code;
}
