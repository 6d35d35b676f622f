/* SPDX-License-Identifier: Apache-2.0 */
/* Walking along tables and schemas. */
#include "cursor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "document.h"
#include "dump.h"
#include "kind.h"
#include "schema.h"
#include "schema_internal.h"
#include "types.h"

struct sw_sim_cursor sw_sim_cursor_root(const struct sw_sim_kind *kind)
{
    return (struct sw_sim_cursor){
        .fields = kind->fields,
        .openapi = kind->schema ? kind->schema->openapi : NULL,
        .is_root = true,
        .is_known = kind->fields || kind->schema,
    };
}

static struct sw_sim_cursor schema_cursor(const json_t *openapi)
{
    return (struct sw_sim_cursor){.openapi = openapi, .is_known = json_is_object(openapi)};
}

struct sw_sim_cursor sw_sim_cursor_member(const struct sw_sim_cursor *at, const char *name)
{
    if (!at->is_known) {
        return (struct sw_sim_cursor){0};
    }
    if (at->openapi) {
        if (at->is_root && strcmp(name, "metadata") == 0) {
            return (struct sw_sim_cursor){.fields = sw_sim_fields_object_meta, .is_known = true};
        }
        const json_t *part = sw_sim_schema_of_member(at->openapi, name);
        return json_is_object(part) ? schema_cursor(part)
                                    : (struct sw_sim_cursor){.is_opaque = true};
    }
    if (at->field && at->field->many == MAP) {
        return sw_sim_cursor_element(at);
    }
    const struct sw_sim_field *field = sw_sim_field_find(at->fields, name, strlen(name));
    return (struct sw_sim_cursor){
        .fields = field ? field->fields : NULL, .field = field, .is_known = field != NULL};
}

struct sw_sim_cursor sw_sim_cursor_element(const struct sw_sim_cursor *at)
{
    if (at->openapi) {
        return schema_cursor(json_object_get(at->openapi, "items"));
    }
    return (struct sw_sim_cursor){.fields = at->fields, .is_known = at->is_known};
}

bool sw_sim_cursor_is_atomic(const struct sw_sim_cursor *at)
{
    if (!at->is_known) {
        return at->is_opaque;
    }
    if (at->openapi) {
        bool is_open = sw_sim_bool_at(at->openapi, "x-kubernetes-preserve-unknown-fields") ||
                       json_object_get(at->openapi, "properties") ||
                       json_object_get(at->openapi, "additionalProperties");
        return !is_open ||
               strcmp(sw_sim_text_at(at->openapi, "x-kubernetes-map-type"), "atomic") == 0;
    }
    return at->field &&
           ((at->field->flags & ATOMIC) || (at->field->many == ONE && at->field->shape == ANY));
}

bool sw_sim_cursor_has_field(const struct sw_sim_cursor *at, const char *name)
{
    if (at->openapi) {
        bool is_meta = at->is_root && (strcmp(name, "metadata") == 0 || strcmp(name, "kind") == 0 ||
                                       strcmp(name, "apiVersion") == 0);
        return is_meta || json_object_get(json_object_get(at->openapi, "properties"), name);
    }
    if (!at->is_known || (at->field && at->field->many == MAP)) {
        return false;
    }
    return sw_sim_field_find(at->fields, name, strlen(name)) != NULL;
}

bool sw_sim_cursor_allows(const struct sw_sim_cursor *at, const char *name)
{
    if (!at->is_known || sw_sim_cursor_has_field(at, name)) {
        return true;
    }
    if (at->openapi) {
        return sw_sim_bool_at(at->openapi, "x-kubernetes-preserve-unknown-fields") ||
               json_is_object(json_object_get(at->openapi, "additionalProperties")) ||
               json_is_true(json_object_get(at->openapi, "additionalProperties"));
    }
    return !at->fields || (at->field && at->field->many == MAP);
}

enum sw_sim_list sw_sim_cursor_list(const struct sw_sim_cursor *at)
{
    if (at->openapi) {
        const char *type = sw_sim_text_at(at->openapi, "x-kubernetes-list-type");
        return strcmp(type, "map") == 0   ? SW_SIM_LIST_MAP
               : strcmp(type, "set") == 0 ? SW_SIM_LIST_SET
                                          : SW_SIM_LIST_ATOMIC;
    }
    if (!at->field || at->field->many != LIST || !at->field->keys) {
        return SW_SIM_LIST_ATOMIC;
    }
    return *at->field->keys ? SW_SIM_LIST_MAP : SW_SIM_LIST_SET;
}

/* What an absent key counts as. Only these have a default in the real server's tables. */
static const json_t *key_default(const struct sw_sim_cursor *at, const char *key)
{
    if (at->openapi) {
        const json_t *items = json_object_get(at->openapi, "items");
        return json_object_get(sw_sim_schema_of_member(items, key), "default");
    }
    return NULL;
}

static int add_key(const struct sw_sim_cursor *at, const json_t *element, const char *key,
                   json_t *keys, struct sw_error *error)
{
    const json_t *value = json_object_get(element, key);
    value = value ? value : key_default(at, key);
    if (!value && at->field && strcmp(key, "protocol") == 0) {
        json_object_set_new(keys, key, json_string("TCP"));
        return 0;
    }
    if (!value) {
        return sw_error_set(error, -EINVAL,
                            "associative list with keys has an element that omits key field "
                            "\"%s\"",
                            key);
    }
    json_object_set(keys, key, (json_t *)(uintptr_t)value);
    return 0;
}

static int key_name(const struct sw_sim_cursor *at, const json_t *element, json_t *keys,
                    struct sw_error *error)
{
    int code = 0;
    if (at->openapi) {
        const json_t *names = json_object_get(at->openapi, "x-kubernetes-list-map-keys");
        for (size_t i = 0; !code && i < json_array_size(names); i++) {
            code = add_key(at, element, json_string_value(json_array_get(names, i)), keys, error);
        }
        return code;
    }
    const char *list = at->field->keys;
    while (!code && *list) {
        char key[64];
        size_t len = strcspn(list, ",");
        sw_assert(len < sizeof(key));
        memcpy(key, list, len);
        key[len] = '\0';
        code = add_key(at, element, key, keys, error);
        list += len + (list[len] == ',');
    }
    return code;
}

int sw_sim_cursor_element_name(const struct sw_sim_cursor *at, const json_t *element,
                               char **ret_name, struct sw_error *error)
{
    bool is_map = sw_sim_cursor_list(at) == SW_SIM_LIST_MAP;
    json_t *keys = json_object();
    int code = is_map ? key_name(at, element, keys, error) : 0;
    if (!code) {
        char *text = sw_sim_dump_as(is_map ? keys : element,
                                    JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
        size_t size = strlen(text) + 3;
        *ret_name = sw_malloc(size);
        snprintf(*ret_name, size, "%c:%s", is_map ? 'k' : 'v', text);
        sw_free(text);
    }
    json_decref(keys);
    return code;
}
