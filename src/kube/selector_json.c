/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metav1.LabelSelector. An unknown member is refused: "matchlabels" read as {} would select
 * everything.
 */
#include "kube/selector.h"

#include <stdio.h>
#include <string.h>

#include <jansson.h>

static int read_match_labels(struct sw_selector *selector, json_t *labels,
                             const struct sw_selector_why *why)
{
    const char *key;
    json_t *value;
    if (!labels || json_is_null(labels)) {
        return 0;
    }
    if (!json_is_object(labels)) {
        return sw_selector_complain(why, "matchLabels: expected an object");
    }
    json_object_foreach(labels, key, value)
    {
        int code = sw_selector_check_key(why, "matchLabels", key);
        if (code) {
            return code;
        }
        if (!json_is_string(value)) {
            return sw_selector_complain(why, "matchLabels: the value of %s is no string", key);
        }
        code = sw_selector_check_value(why, "matchLabels", json_string_value(value));
        if (code) {
            return code;
        }
        sw_selector_add_value(selector, sw_selector_add(selector, key, SW_SELECTOR_IN, 1),
                              json_string_value(value));
    }
    return 0;
}

static int read_operator(json_t *text, const char *where, enum sw_selector_op *ret_operation,
                         const struct sw_selector_why *why)
{
    static const char *const names[] = {"In", "NotIn", "Exists", "DoesNotExist"};
    char room[SW_SELECTOR_QUOTED + 4];
    const char *name = json_is_string(text) ? json_string_value(text) : "";
    for (size_t i = 0; i < SW_ARRAY_SIZE(names); i++) {
        if (strcmp(name, names[i]) == 0) {
            *ret_operation = (enum sw_selector_op)i;
            return 0;
        }
    }
    return sw_selector_complain(why,
                                "%s.operator: \"%s\" is none of In, NotIn, Exists, DoesNotExist",
                                where, sw_selector_quoted(name, room));
}

static int read_values(struct sw_selector *selector, struct sw_requirement *requirement,
                       json_t *values, const char *where, const struct sw_selector_why *why)
{
    size_t i;
    json_t *value;
    json_array_foreach(values, i, value)
    {
        if (!json_is_string(value)) {
            return sw_selector_complain(why, "%s.values: expected strings", where);
        }
        int code = sw_selector_check_value(why, where, json_string_value(value));
        if (code) {
            return code;
        }
        sw_selector_add_value(selector, requirement, json_string_value(value));
    }
    return 0;
}

static int check_members(json_t *object, const char *const *allowed, size_t count,
                         const char *where, const struct sw_selector_why *why)
{
    const char *key;
    json_t *value;
    char room[SW_SELECTOR_QUOTED + 4];
    json_object_foreach(object, key, value)
    {
        bool is_known = false;
        for (size_t i = 0; i < count; i++) {
            is_known |= strcmp(key, allowed[i]) == 0;
        }
        if (!is_known) {
            return sw_selector_complain(why, "%s: unknown member \"%s\"", where,
                                        sw_selector_quoted(key, room));
        }
    }
    return 0;
}

static int read_expression(struct sw_selector *selector, json_t *expression, const char *where,
                           const struct sw_selector_why *why)
{
    static const char *const members[] = {"key", "operator", "values"};
    enum sw_selector_op operation = SW_SELECTOR_IN;
    if (!json_is_object(expression)) {
        return sw_selector_complain(why, "%s: expected an object", where);
    }
    int code = check_members(expression, members, SW_ARRAY_SIZE(members), where, why);
    if (code) {
        return code;
    }
    json_t *key = json_object_get(expression, "key");
    code = sw_selector_check_key(why, where, json_is_string(key) ? json_string_value(key) : "");
    if (code) {
        return code;
    }
    code = read_operator(json_object_get(expression, "operator"), where, &operation, why);
    if (code) {
        return code;
    }
    json_t *values = json_object_get(expression, "values");
    if (values && !json_is_array(values) && !json_is_null(values)) {
        return sw_selector_complain(why, "%s.values: expected an array", where);
    }
    size_t count = json_array_size(values); /* 0 where it is none */
    bool wants_values = operation == SW_SELECTOR_IN || operation == SW_SELECTOR_NOT_IN;
    if (wants_values != (count > 0)) {
        return sw_selector_complain(why, "%s.values: %s", where,
                                    wants_values ? "In and NotIn want at least one"
                                                 : "Exists and DoesNotExist allow none");
    }
    struct sw_requirement *requirement =
        sw_selector_add(selector, json_string_value(key), operation, count);
    return read_values(selector, requirement, values, where, why);
}

static int read_expressions(struct sw_selector *selector, json_t *expressions,
                            const struct sw_selector_why *why)
{
    size_t i;
    json_t *expression;
    if (!expressions || json_is_null(expressions)) {
        return 0;
    }
    if (!json_is_array(expressions)) {
        return sw_selector_complain(why, "matchExpressions: expected an array");
    }
    json_array_foreach(expressions, i, expression)
    {
        char where[64];
        snprintf(where, sizeof(where), "matchExpressions[%zu]", i);
        int code = read_expression(selector, expression, where, why);
        if (code) {
            return code;
        }
    }
    return 0;
}

static int read_json(struct sw_selector *selector, json_t *json, const struct sw_selector_why *why)
{
    static const char *const members[] = {"matchLabels", "matchExpressions"};
    if (!json_is_object(json)) {
        return sw_selector_complain(why, "a selector is an object");
    }
    int code = check_members(json, members, SW_ARRAY_SIZE(members), "the selector", why);
    if (code) {
        return code;
    }
    code = read_match_labels(selector, json_object_get(json, "matchLabels"), why);
    return code ? code : read_expressions(selector, json_object_get(json, "matchExpressions"), why);
}

int sw_selector_parse(const char *json, size_t len, struct sw_selector **ret_selector, char *why,
                      size_t why_size)
{
    json_error_t error;
    const struct sw_selector_why complaints = {why, why_size};
    json_t *root = json_loadb(json, len, JSON_DECODE_ANY, &error);
    if (!root) {
        return sw_selector_complain(&complaints, "not JSON: %s", error.text);
    }
    SW_AUTO(struct sw_selector, sw_selector_free) selector = sw_selector_new();
    int code = read_json(selector, root, &complaints);
    json_decref(root);
    if (code) {
        return code;
    }
    sw_selector_sort(selector);
    *ret_selector = sw_steal(&selector);
    return 0;
}
