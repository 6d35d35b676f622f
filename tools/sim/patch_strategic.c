/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strategic merge patch. Which lists merge, and by which key, stands in the tables of fields
 * (types.h). What the real server (v1.20) does with the order of merged lists is done here as well:
 * the elements of the patch in the patch's order (or that of $setElementOrder), and between them,
 * as far as possible, the others where the document had them.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "document.h"
#include "dump.h"
#include "kind.h"
#include "patch.h"
#include "types.h"

#define ORDER "$setElementOrder/"
#define DROP "$deleteFromPrimitiveList/"

static int merge_object(const struct sw_sim_field *fields, json_t *object, json_t *patch,
                        json_t **ret_object, struct sw_error *error);

/* ---- elements of lists ---- */

/* What tells the element from others: the value of its key, or itself. */
static const json_t *identity(const json_t *element, const char *key)
{
    return *key ? json_object_get(element, key) : element;
}

static int index_of(const json_t *list, const json_t *element, const char *key)
{
    const json_t *wanted = identity(element, key);
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (sw_sim_is_same(identity(json_array_get(list, i), key), wanted)) {
            return (int)i;
        }
    }
    return -1;
}

static int need_key(const json_t *list, const char *key, struct sw_error *error)
{
    for (size_t i = 0; *key && i < json_array_size(list); i++) {
        const json_t *element = json_array_get(list, i);
        if (!json_object_get(element, key)) {
            char *shown = sw_sim_dump_as(element, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
            sw_error_set(error, -EINVAL, "map: %s does not contain declared merge key: %s",
                         shown ? shown : "", key);
            sw_free(shown);
            return -EINVAL;
        }
    }
    return 0;
}

/* Stable, in the order of another list that holds all of them. */
static json_t *sorted_by(const json_t *list, const json_t *order, const char *key)
{
    json_t *made = json_array();
    for (size_t i = 0; i < json_array_size(order); i++) {
        int at = index_of(list, json_array_get(order, i), key);
        if (at >= 0 && index_of(made, json_array_get(list, (size_t)at), key) < 0) {
            json_array_append(made, json_array_get(list, (size_t)at));
        }
    }
    return made;
}

/* Puts the elements that only the document has between those of the patch. */
static json_t *interleave(const json_t *own, const json_t *patched, const json_t *document,
                          const char *key)
{
    json_t *made = json_array();
    size_t i = 0;
    size_t j = 0;
    while (i < json_array_size(own) || j < json_array_size(patched)) {
        json_t *left = json_array_get(own, i);
        json_t *right = json_array_get(patched, j);
        int at_left = left ? index_of(document, left, key) : -1;
        int at_right = right ? index_of(document, right, key) : -1;
        bool is_left = !right || (left && at_left >= 0 && at_right >= 0 && at_left < at_right);
        json_array_append(made, is_left ? left : right);
        i += is_left;
        j += !is_left;
    }
    return made;
}

/* Splits what was merged by whether the order names it, and puts it together again. */
static json_t *put_in_order(const json_t *merged, const json_t *order, const json_t *document,
                            const char *key)
{
    json_t *own = json_array();
    json_t *patched = json_array();
    for (size_t i = 0; i < json_array_size(merged); i++) {
        json_t *element = json_array_get(merged, i);
        json_array_append(index_of(order, element, key) >= 0 ? patched : own, element);
    }
    json_t *patched_sorted = sorted_by(patched, order, key);
    json_t *made = interleave(own, patched_sorted, document, key);
    json_decref(own);
    json_decref(patched);
    json_decref(patched_sorted);
    return made;
}

/* ---- merging lists ---- */

static json_t *merge_values(const json_t *list, const json_t *patch)
{
    json_t *made = json_array();
    const json_t *both[] = {list, patch};
    for (size_t b = 0; b < 2; b++) {
        for (size_t i = 0; i < json_array_size(both[b]); i++) {
            json_t *element = json_array_get(both[b], i);
            if (index_of(made, element, "") < 0) {
                json_array_append(made, element);
            }
        }
    }
    return made;
}

static void remove_matching(json_t *list, const json_t *element, const char *key)
{
    int at;
    while ((at = index_of(list, element, key)) >= 0) {
        json_array_remove(list, (size_t)at);
    }
}

/* Carries out {"$patch": "delete"} and {"$patch": "replace"}; *ret_patch is what is left to merge.
 * list is changed. */
static int do_directives(json_t *list, const json_t *patch, const char *key, json_t *ret_patch,
                         struct sw_error *error)
{
    bool is_replaced = false;
    for (size_t i = 0; i < json_array_size(patch); i++) {
        json_t *element = json_array_get(patch, i);
        const json_t *directive = json_object_get(element, "$patch");
        const char *text = json_string_value(directive);
        if (!directive) {
            json_array_append(ret_patch, element);
        } else if (text && strcmp(text, "delete") == 0) {
            json_t *one = json_pack("[O]", element);
            int code = need_key(one, key, error);
            json_decref(one);
            if (code) {
                return code;
            }
            remove_matching(list, element, key);
        } else if (text && strcmp(text, "replace") == 0) {
            is_replaced = true;
        } else if (text && strcmp(text, "merge") == 0) {
            return sw_error_set(error, -EINVAL,
                                "merging lists cannot yet be specified in the patch");
        } else {
            return sw_error_set(error, -EINVAL, "unknown patch type found: %s", text ? text : "");
        }
    }
    if (is_replaced) {
        json_array_clear(list);
        json_array_extend(list, ret_patch);
        json_array_clear(ret_patch);
    }
    return 0;
}

static int merge_elements(const struct sw_sim_field *field, json_t *list, const json_t *patch,
                          struct sw_error *error)
{
    int code = need_key(patch, field->merge, error);
    for (size_t i = 0; !code && i < json_array_size(patch); i++) {
        json_t *element = json_array_get(patch, i);
        int at = index_of(list, element, field->merge);
        if (at < 0) {
            json_array_append(list, element);
            continue;
        }
        json_t *merged = NULL;
        code =
            merge_object(field->fields, json_array_get(list, (size_t)at), element, &merged, error);
        if (!code) {
            json_array_set_new(list, (size_t)at, merged);
        }
    }
    return code;
}

static int merge_list(const struct sw_sim_field *field, json_t *list, json_t *patch,
                      json_t **ret_list, struct sw_error *error)
{
    if (!field || !field->merge) {
        *ret_list = json_incref(patch);
        return 0;
    }
    if (!*field->merge) {
        json_t *merged = merge_values(list, patch);
        *ret_list = put_in_order(merged, patch, list, "");
        json_decref(merged);
        return 0;
    }
    json_t *plain = json_array();
    json_t *before = json_copy(list);
    json_t *merged = json_copy(list);
    int code = do_directives(merged, patch, field->merge, plain, error);
    if (!code) {
        json_array_clear(before);
        json_array_extend(before, merged);
        code = merge_elements(field, merged, plain, error);
    }
    if (!code) {
        *ret_list = put_in_order(merged, plain, before, field->merge);
    }
    json_decref(plain);
    json_decref(before);
    json_decref(merged);
    return code;
}

/* ---- directives of objects ---- */

static int retain_keys(json_t *object, json_t *patch, struct sw_error *error)
{
    json_t *keys = json_incref(json_object_get(patch, "$retainKeys"));
    if (!keys) {
        return 0;
    }
    json_object_del(patch, "$retainKeys");
    int code = 0;
    const char *name;
    json_t *member;
    void *next;
    json_object_foreach(patch, name, member)
    {
        json_t *text = json_string(name);
        bool is_named = *name == '$' || json_is_null(member) || index_of(keys, text, "") >= 0;
        json_decref(text);
        if (!is_named || !json_is_array(keys)) {
            code = sw_error_set(error, -EINVAL, "invalid patch format of $retainKeys");
            break;
        }
    }
    json_object_foreach_safe(object, next, name, member)
    {
        json_t *text = json_string(name);
        if (!code && index_of(keys, text, "") < 0) {
            json_object_del(object, name);
        }
        json_decref(text);
    }
    json_decref(keys);
    return code;
}

static int order_list(const struct sw_sim_field *fields, json_t *object, json_t *patch,
                      const char *name, const json_t *order, struct sw_error *error)
{
    const struct sw_sim_field *field = sw_sim_field_find(fields, name, strlen(name));
    const char *key = field && field->merge ? field->merge : "";
    json_t *given = json_object_get(patch, name);
    json_t *own = json_object_get(object, name);
    bool is_bad =
        !json_is_array(order) || (given && !json_is_array(given)) || (own && !json_is_array(own));
    if (is_bad) {
        return sw_error_set(error, -EINVAL, "invalid patch format of setElementOrder list");
    }
    int code = need_key(order, key, error);
    for (size_t i = 0; !code && i < json_array_size(given); i++) {
        const json_t *element = json_array_get(given, i);
        if (!json_object_get(element, "$patch") && index_of(order, element, key) < 0) {
            code = sw_error_set(error, -EINVAL,
                                "The order in patch list:\n%s doesn't match %s list", name, ORDER);
        }
    }
    if (code || (!own && !given)) {
        return code;
    }
    json_t *merged = own && !given ? json_incref(own) : json_incref(given);
    if (own && given) {
        json_decref(merged);
        merged = NULL;
        code = merge_list(field, own, given, &merged, error);
    }
    if (!code) {
        json_object_set_new(object, name, put_in_order(merged, order, own, key));
        json_object_del(patch, name);
    }
    json_decref(merged);
    return code;
}

static int do_orders(const struct sw_sim_field *fields, json_t *object, json_t *patch,
                     struct sw_error *error)
{
    const char *name;
    json_t *order;
    void *next;
    json_t *names = json_copy(patch);
    int code = 0;
    json_object_foreach_safe(names, next, name, order)
    {
        if (!code && strncmp(name, ORDER, strlen(ORDER)) == 0) {
            code = order_list(fields, object, patch, name + strlen(ORDER), order, error);
            json_object_del(patch, name);
        }
    }
    json_decref(names);
    return code;
}

static void drop_values(json_t *object, const char *name, const json_t *values)
{
    json_t *own = json_object_get(object, name);
    if (!json_is_array(own)) {
        return;
    }
    json_t *left = json_copy(own);
    for (size_t i = 0; i < json_array_size(values); i++) {
        remove_matching(left, json_array_get(values, i), "");
    }
    json_object_set_new(object, name, left);
}

/* ---- objects ---- */

static int merge_member(const struct sw_sim_field *fields, json_t *object, const char *name,
                        json_t *value, struct sw_error *error)
{
    if (strncmp(name, DROP, strlen(DROP)) == 0) {
        drop_values(object, name + strlen(DROP), value);
        return 0;
    }
    json_t *own = json_object_get(object, name);
    if (json_is_null(value)) {
        json_object_del(object, name);
        return 0;
    }
    if (!own || json_typeof(own) != json_typeof(value) ||
        (!json_is_object(value) && !json_is_array(value))) {
        json_object_set(object, name, value);
        return 0;
    }
    const struct sw_sim_field *field = sw_sim_field_find(fields, name, strlen(name));
    json_t *merged = NULL;
    int code = json_is_array(value)
                   ? merge_list(field, own, value, &merged, error)
                   : merge_object(field ? field->fields : NULL, own, value, &merged, error);
    if (!code) {
        json_object_set_new(object, name, merged);
    }
    return code;
}

/* *ret_object is a new object; neither of the two is changed. */
static int merge_object(const struct sw_sim_field *fields, json_t *object, json_t *patch,
                        json_t **ret_object, struct sw_error *error)
{
    const json_t *directive = json_object_get(patch, "$patch");
    if (directive) {
        const char *text = json_string_value(directive);
        bool is_delete = text && strcmp(text, "delete") == 0;
        if (!text || (!is_delete && strcmp(text, "replace") != 0)) {
            return sw_error_set(error, -EINVAL, "unknown patch type found: %s", text ? text : "");
        }
        *ret_object = is_delete ? json_object() : json_copy(patch);
        json_object_del(*ret_object, "$patch");
        return 0;
    }
    json_t *made = json_copy(object);
    json_t *left = json_copy(patch);
    int code = retain_keys(made, left, error);
    code = code ? code : do_orders(fields, made, left, error);
    const char *name;
    json_t *value;
    json_object_foreach(left, name, value)
    {
        code = code ? code : merge_member(fields, made, name, value, error);
    }
    json_decref(left);
    if (code) {
        json_decref(made);
        return code;
    }
    *ret_object = made;
    return 0;
}

static const struct sw_sim_field *fields_of(const json_t *document)
{
    const char *api = sw_sim_text_at(document, "apiVersion");
    const char *name = sw_sim_text_at(document, "kind");
    size_t count;
    const struct sw_sim_kind *kinds = sw_sim_builtin_kinds(&count);
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(kinds[i].group);
        bool is_group = strncmp(api, kinds[i].group, len) == 0 && (len ? api[len] == '/' : true);
        if (is_group && strcmp(api + len + (len > 0), kinds[i].version) == 0 &&
            strcmp(name, kinds[i].kind) == 0) {
            return kinds[i].fields;
        }
    }
    return NULL;
}

json_t *sw_sim_strategic_patch(const json_t *document, const json_t *patch, struct sw_error *error)
{
    json_t *before = json_deep_copy(document);
    json_t *copy = json_deep_copy(patch);
    json_t *after = NULL;
    if (!json_is_object(copy)) {
        sw_error_set(error, -EINVAL, "json: cannot unmarshal into Go value of type map");
    } else if (merge_object(fields_of(document), before, copy, &after, error)) {
        after = NULL;
    }
    json_decref(before);
    json_decref(copy);
    return after;
}
