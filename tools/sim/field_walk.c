/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects to sets of paths, and sets back to objects. When an empty list or object counts as a
 * value of its own, and that a container which appears or vanishes is in the set beside what is in
 * it, is as in sigs.k8s.io/structured-merge-diff, which the real server uses.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "cursor.h"
#include "document.h"
#include "field_set.h"

static json_t *unconst(const json_t *value)
{
    return (json_t *)(uintptr_t)value;
}

static json_t *member_name(const char *name)
{
    return json_sprintf("f:%s", name);
}

/* Puts a set that is not empty below a name. */
static void put_below(json_t *set, const char *name, json_t *below_take)
{
    if (!sw_sim_set_is_empty(below_take)) {
        json_object_set_nocheck(set, name, below_take);
    }
    json_decref(below_take);
}

static void put_self(json_t *set)
{
    json_object_set_new(set, ".", json_object());
}

/* Puts a step of the path in front of the text: ".spec" and ".a: wrong" make ".spec.a: wrong". */
static void prefix_step(struct sw_error *error, const char *name)
{
    if (error && *error->text == '.') {
        struct sw_error rest = *error;
        sw_error_set(error, rest.code, ".%s%s", name, rest.text);
    } else {
        sw_error_prefix(error, ".%s", name);
    }
}

/* ---- the elements of a list, by name ---- */

/* An object from names to elements, in their order. */
static int index_list(const struct sw_sim_cursor *at, const json_t *list, json_t **ret_index,
                      struct sw_error *error)
{
    json_t *index = json_object();
    int code = 0;
    for (size_t i = 0; !code && i < json_array_size(list); i++) {
        char *name = NULL;
        code = sw_sim_cursor_element_name(at, json_array_get(list, i), &name, error);
        if (code) {
            sw_error_prefix(error, "element %zu", i);
            break;
        }
        if (json_object_get(index, name) && sw_sim_cursor_list(at) == SW_SIM_LIST_MAP) {
            code = sw_error_set(error, -EINVAL, "duplicate entries for key %s", name + 2);
        }
        json_object_set_nocheck(index, name, json_array_get(list, i));
        sw_free(name);
    }
    if (code) {
        json_decref(index);
        return code;
    }
    *ret_index = index;
    return 0;
}

static bool is_open_list(const struct sw_sim_cursor *at)
{
    return sw_sim_cursor_list(at) != SW_SIM_LIST_ATOMIC;
}

/* ---- what an applied object names ---- */

static int set_of_list(const struct sw_sim_cursor *at, const json_t *list, json_t *set,
                       struct sw_error *error)
{
    json_t *index;
    int code = index_list(at, list, &index, error);
    if (code) {
        return code;
    }
    struct sw_sim_cursor of_element = sw_sim_cursor_element(at);
    const char *name;
    json_t *element;
    json_object_foreach(index, name, element)
    {
        json_t *below = NULL;
        code = code ? code : sw_sim_set_of(&of_element, element, &below, error);
        if (!code) {
            put_self(below);
            put_below(set, name, below);
        }
    }
    json_decref(index);
    return code;
}

static int set_of_object(const struct sw_sim_cursor *at, const json_t *object, json_t *set,
                         struct sw_error *error)
{
    int code = 0;
    const char *name;
    json_t *member;
    json_object_foreach(unconst(object), name, member)
    {
        struct sw_sim_cursor of_member = sw_sim_cursor_member(at, name);
        json_t *below = NULL;
        code = sw_sim_cursor_allows(at, name)
                   ? sw_sim_set_of(&of_member, member, &below, error)
                   : sw_error_set(error, -EINVAL, "field not declared in schema");
        if (code) {
            prefix_step(error, name);
            return code;
        }
        if (!sw_sim_cursor_has_field(at, name)) {
            put_self(below);
        }
        json_t *key = member_name(name);
        put_below(set, json_string_value(key), below);
        json_decref(key);
    }
    return code;
}

int sw_sim_set_of(const struct sw_sim_cursor *at, const json_t *object, json_t **ret_set,
                  struct sw_error *error)
{
    json_t *set = json_object();
    int code = 0;
    if (json_is_object(object) && !sw_sim_cursor_is_atomic(at)) {
        code = set_of_object(at, object, set, error);
    } else if (json_is_array(object) && is_open_list(at)) {
        code = set_of_list(at, object, set, error);
    } else {
        put_self(set);
    }
    if (code) {
        json_decref(set);
        return code;
    }
    *ret_set = set;
    return 0;
}

/* ---- what differs ---- */

static bool is_hollow(const json_t *value)
{
    return !value || json_is_null(value) || (json_is_object(value) && !json_object_size(value)) ||
           (json_is_array(value) && !json_array_size(value));
}

/* Both are compared as wholes: texts and numbers, what is atomic, and nothing against nothing. */
static bool is_leaf(const struct sw_sim_cursor *at, const json_t *before, const json_t *after)
{
    bool is_object = json_is_object(before) || json_is_object(after);
    bool is_list = json_is_array(before) || json_is_array(after);
    if ((!is_object && !is_list) || (is_hollow(before) && is_hollow(after))) {
        return true;
    }
    return is_object ? sw_sim_cursor_is_atomic(at) : !is_open_list(at);
}

static void comparison_init(struct sw_sim_comparison *comparison)
{
    comparison->added = json_object();
    comparison->modified = json_object();
    comparison->removed = json_object();
}

void sw_sim_comparison_done(struct sw_sim_comparison *comparison)
{
    json_decref(comparison->added);
    json_decref(comparison->modified);
    json_decref(comparison->removed);
}

/* Takes what is in below. */
static void put_comparison(struct sw_sim_comparison *to, const char *name,
                           struct sw_sim_comparison *below)
{
    put_below(to->added, name, below->added);
    put_below(to->modified, name, below->modified);
    put_below(to->removed, name, below->removed);
}

static int compare_part(const struct sw_sim_cursor *at, const char *name, const json_t *before,
                        const json_t *after, struct sw_sim_comparison *to, struct sw_error *error)
{
    struct sw_sim_comparison below;
    int code = sw_sim_compare(at, before, after, &below, error);
    if (!code) {
        put_comparison(to, name, &below);
    }
    return code;
}

static int compare_lists(const struct sw_sim_cursor *at, const json_t *before, const json_t *after,
                         struct sw_sim_comparison *to, struct sw_error *error)
{
    json_t *left = NULL;
    json_t *right = NULL;
    int code = index_list(at, before, &left, error);
    code = code ? code : index_list(at, after, &right, error);
    struct sw_sim_cursor of_element = sw_sim_cursor_element(at);
    const char *name;
    json_t *element;
    json_object_foreach(left, name, element)
    {
        code = code ? code
                    : compare_part(&of_element, name, element, json_object_get(right, name), to,
                                   error);
    }
    json_object_foreach(right, name, element)
    {
        if (!code && !json_object_get(left, name)) {
            code = compare_part(&of_element, name, NULL, element, to, error);
        }
    }
    json_decref(left);
    json_decref(right);
    return code;
}

static int compare_objects(const struct sw_sim_cursor *at, const json_t *before,
                           const json_t *after, struct sw_sim_comparison *to,
                           struct sw_error *error)
{
    json_t *both = json_copy(unconst(json_is_object(before) ? before : after));
    if (json_is_object(before) && json_is_object(after)) {
        json_object_update_missing(both, unconst(after));
    }
    int code = 0;
    const char *name;
    json_t *member;
    json_object_foreach(both, name, member)
    {
        struct sw_sim_cursor of_member = sw_sim_cursor_member(at, name);
        json_t *key = member_name(name);
        code = code
                   ? code
                   : compare_part(&of_member, json_string_value(key), json_object_get(before, name),
                                  json_object_get(after, name), to, error);
        json_decref(key);
    }
    json_decref(both);
    return code;
}

int sw_sim_compare(const struct sw_sim_cursor *at, const json_t *before, const json_t *after,
                   struct sw_sim_comparison *ret_comparison, struct sw_error *error)
{
    struct sw_sim_comparison made;
    comparison_init(&made);
    int code = 0;
    if (!is_leaf(at, before, after)) {
        /* A list against an object: each as if the other were not there. */
        bool has_lists = json_is_array(before) || json_is_array(after);
        bool has_objects = json_is_object(before) || json_is_object(after);
        code = has_lists ? compare_lists(at, before, after, &made, error) : 0;
        code = !code && has_objects ? compare_objects(at, before, after, &made, error) : code;
    } else if (before && after && !sw_sim_is_same(before, after)) {
        put_self(made.modified);
    }
    if (!before || !after) {
        put_self(before ? made.removed : made.added);
    }
    if (code) {
        sw_sim_comparison_done(&made);
        return code;
    }
    *ret_comparison = made;
    return 0;
}

/* ---- laying over ---- */

static int lay_over_list(const struct sw_sim_cursor *at, const json_t *list, const json_t *applied,
                         json_t **ret_list, struct sw_error *error)
{
    json_t *left = NULL;
    json_t *right = NULL;
    int code = index_list(at, list, &left, error);
    code = code ? code : index_list(at, applied, &right, error);
    struct sw_sim_cursor of_element = sw_sim_cursor_element(at);
    json_t *made = json_array();
    const char *name;
    json_t *element;
    json_object_foreach(left, name, element)
    {
        json_t *merged = NULL;
        code = code ? code
                    : sw_sim_lay_over(&of_element, element, json_object_get(right, name), &merged,
                                      error);
        if (!code) {
            json_array_append_new(made, merged);
        }
    }
    json_object_foreach(right, name, element)
    {
        if (!json_object_get(left, name)) {
            json_array_append(made, element);
        }
    }
    json_decref(left);
    json_decref(right);
    if (code) {
        json_decref(made);
        return code;
    }
    *ret_list = made;
    return 0;
}

static int lay_over_object(const struct sw_sim_cursor *at, const json_t *object,
                           const json_t *applied, json_t **ret_object, struct sw_error *error)
{
    json_t *made = json_copy(unconst(object));
    const char *name;
    json_t *member;
    json_object_foreach(unconst(applied), name, member)
    {
        struct sw_sim_cursor of_member = sw_sim_cursor_member(at, name);
        json_t *merged = NULL;
        int code =
            sw_sim_lay_over(&of_member, json_object_get(object, name), member, &merged, error);
        if (code) {
            prefix_step(error, name);
            json_decref(made);
            return code;
        }
        json_object_set_new_nocheck(made, name, merged);
    }
    *ret_object = made;
    return 0;
}

int sw_sim_lay_over(const struct sw_sim_cursor *at, const json_t *object, const json_t *applied,
                    json_t **ret_object, struct sw_error *error)
{
    bool is_absent = !applied;
    if (is_absent || (is_leaf(at, object, applied) && !is_absent)) {
        *ret_object = json_incref(unconst(is_absent ? object : applied));
        return 0;
    }
    if (json_is_object(object) && json_is_object(applied)) {
        return lay_over_object(at, object, applied, ret_object, error);
    }
    if (json_is_array(object) && json_is_array(applied)) {
        return lay_over_list(at, object, applied, ret_object, error);
    }
    *ret_object = json_incref(unconst(json_is_null(applied) ? object : applied));
    return 0;
}

/* ---- taking away ---- */

static json_t *list_without(const struct sw_sim_cursor *at, const json_t *list, const json_t *set)
{
    struct sw_sim_cursor of_element = sw_sim_cursor_element(at);
    json_t *made = json_array();
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *element = json_array_get(list, i);
        char *name = NULL;
        const json_t *below = NULL;
        if (!sw_sim_cursor_element_name(at, element, &name, NULL)) {
            below = json_object_get(set, name);
        }
        sw_free(name);
        if (!json_object_get(below, ".")) {
            json_array_append_new(made, below ? sw_sim_without(&of_element, element, below)
                                              : json_incref(element));
        }
    }
    return made;
}

static json_t *object_without(const struct sw_sim_cursor *at, const json_t *object,
                              const json_t *set)
{
    json_t *made = json_object();
    const char *name;
    json_t *member;
    json_object_foreach(unconst(object), name, member)
    {
        json_t *key = member_name(name);
        const json_t *below = json_object_get(set, json_string_value(key));
        json_decref(key);
        if (json_object_get(below, ".")) {
            continue;
        }
        struct sw_sim_cursor of_member = sw_sim_cursor_member(at, name);
        json_object_set_new_nocheck(
            made, name, below ? sw_sim_without(&of_member, member, below) : json_incref(member));
    }
    return made;
}

json_t *sw_sim_without(const struct sw_sim_cursor *at, const json_t *object, const json_t *set)
{
    json_t *made = NULL;
    if (json_is_object(object) && !sw_sim_cursor_is_atomic(at)) {
        made = object_without(at, object, set);
    } else if (json_is_array(object) && is_open_list(at)) {
        made = list_without(at, object, set);
    }
    if (!made) {
        return json_incref(unconst(object));
    }
    if (is_hollow(made)) {
        json_decref(made);
        return json_null();
    }
    return made;
}
