/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structural schemas: what makes one, what it drops and fills in, how it tells lists apart. The
 * schema is kept as the JSON that it came as, and read as such; validation is in schema_validate.c.
 */
#include "schema.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "document.h"
#include "schema_internal.h"

/* ---- checks of the schema itself ---- */

static const char *const known_keywords[] = {
    "additionalProperties",
    "allOf",
    "anyOf",
    "default",
    "description",
    "enum",
    "example",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "externalDocs",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "nullable",
    "oneOf",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
    "uniqueItems",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
};

static const char *const known_types[] = {"array",  "boolean", "integer", "number",
                                          "object", "string",  NULL};

static bool is_in(const char *text, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count && list[i]; i++) {
        if (strcmp(text, list[i]) == 0) {
            return true;
        }
    }
    return false;
}

static int check_schema(const json_t *schema, const char *path, struct sw_error *error);

static int check_part(const json_t *part, const char *path, const char *name, const char *key,
                      struct sw_error *error)
{
    json_t *where =
        key ? json_sprintf("%s.%s[%s]", path, name, key) : json_sprintf("%s.%s", path, name);
    int code = check_schema(part, json_string_value(where), error);
    json_decref(where);
    return code;
}

static int check_parts(const json_t *schema, const char *path, struct sw_error *error)
{
    const char *name;
    json_t *part;
    int code = 0;
    json_object_foreach(json_object_get(schema, "properties"), name, part)
    {
        if ((code = check_part(part, path, "properties", name, error))) {
            return code;
        }
    }
    static const char *const single[] = {"items", "additionalProperties"};
    for (size_t i = 0; i < SW_ARRAY_SIZE(single); i++) {
        part = json_object_get(schema, single[i]);
        if (part && !json_is_boolean(part) &&
            (code = check_part(part, path, single[i], NULL, error))) {
            return code;
        }
    }
    return 0;
}

static int check_list(const json_t *schema, const char *path, struct sw_error *error)
{
    const char *type = sw_sim_text_at(schema, "x-kubernetes-list-type");
    if (*type && strcmp(type, "atomic") != 0 && strcmp(type, "set") != 0 &&
        strcmp(type, "map") != 0) {
        return sw_error_set(error, -EINVAL,
                            "%s.x-kubernetes-list-type: Unsupported value: \"%s\": supported "
                            "values: \"atomic\", \"map\", \"set\"",
                            path, type);
    }
    if (strcmp(type, "map") == 0 &&
        json_array_size(json_object_get(schema, "x-kubernetes-list-map-keys")) == 0) {
        return sw_error_set(error, -EINVAL,
                            "%s.x-kubernetes-list-map-keys: Required value: must not be empty if "
                            "x-kubernetes-list-type is map",
                            path);
    }
    return 0;
}

static int check_type(const json_t *schema, const char *path, struct sw_error *error)
{
    const char *type = sw_sim_text_at(schema, "type");
    if (*type && !is_in(type, known_types, SW_ARRAY_SIZE(known_types))) {
        return sw_error_set(error, -EINVAL,
                            "%s.type: Unsupported value: \"%s\": supported values: \"array\", "
                            "\"boolean\", \"integer\", \"number\", \"object\", \"string\"",
                            path, type);
    }
    if (!*type && !sw_sim_bool_at(schema, "x-kubernetes-int-or-string") &&
        !sw_sim_bool_at(schema, "x-kubernetes-preserve-unknown-fields")) {
        return sw_error_set(error, -EINVAL,
                            "%s.type: Required value: must not be empty for specified %s", path,
                            strstr(path, "items") ? "array items" : "object fields");
    }
    if (strcmp(type, "array") == 0 && !sw_sim_at(schema, "items")) {
        return sw_error_set(error, -EINVAL, "%s.items: Required value: must be specified", path);
    }
    return 0;
}

static int check_schema(const json_t *schema, const char *path, struct sw_error *error)
{
    if (!json_is_object(schema)) {
        return sw_error_set(error, -EINVAL, "%s: is not an object", path);
    }
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)schema, name, value)
    {
        if (!is_in(name, known_keywords, SW_ARRAY_SIZE(known_keywords))) {
            return sw_error_set(error, -EINVAL, "%s.%s: Forbidden: not known in a schema", path,
                                name);
        }
    }
    int code = check_type(schema, path, error);
    code = code ? code : check_list(schema, path, error);
    return code ? code : check_parts(schema, path, error);
}

int sw_sim_schema_new(const json_t *openapi, struct sw_sim_schema **ret_schema,
                      struct sw_error *error)
{
    int code = check_schema(openapi, "openAPIV3Schema", error);
    if (code) {
        return code;
    }
    if (strcmp(sw_sim_text_at(openapi, "type"), "object") != 0) {
        return sw_error_set(error, -EINVAL,
                            "openAPIV3Schema.type: Invalid value: \"%s\": must be object at the "
                            "root",
                            sw_sim_text_at(openapi, "type"));
    }
    struct sw_sim_schema *schema = SW_NEW(struct sw_sim_schema);
    schema->openapi = json_deep_copy(openapi);
    *ret_schema = schema;
    return 0;
}

struct sw_sim_schema *sw_sim_schema_free(struct sw_sim_schema *schema)
{
    if (schema) {
        json_decref(schema->openapi);
        sw_free(schema);
    }
    return NULL;
}

/* ---- parts ---- */

const json_t *sw_sim_schema_of_member(const json_t *schema, const char *name)
{
    const json_t *property = json_object_get(json_object_get(schema, "properties"), name);
    return property ? property : json_object_get(schema, "additionalProperties");
}

static bool is_meta(const char *name)
{
    return strcmp(name, "apiVersion") == 0 || strcmp(name, "kind") == 0 ||
           strcmp(name, "metadata") == 0;
}

/* ---- pruning ---- */

static void prune(const json_t *schema, json_t *value, bool is_resource);

static void prune_object(const json_t *schema, json_t *object, bool is_resource)
{
    bool keeps = sw_sim_bool_at(schema, "x-kubernetes-preserve-unknown-fields");
    const char *name;
    json_t *member;
    void *next;
    json_object_foreach_safe(object, next, name, member)
    {
        if (is_resource && is_meta(name)) {
            continue;
        }
        const json_t *part = sw_sim_schema_of_member(schema, name);
        if (part && !json_is_false(part)) {
            prune(json_is_true(part) ? NULL : part, member, false);
        } else if (!keeps) {
            json_object_del(object, name);
        }
    }
}

static void prune(const json_t *schema, json_t *value, bool is_resource)
{
    is_resource = is_resource || sw_sim_bool_at(schema, "x-kubernetes-embedded-resource");
    if (json_is_object(value)) {
        prune_object(schema, value, is_resource);
        return;
    }
    const json_t *items = json_object_get(schema, "items");
    if (!items && sw_sim_bool_at(schema, "x-kubernetes-preserve-unknown-fields")) {
        return;
    }
    size_t i;
    json_t *element;
    json_array_foreach(value, i, element)
    {
        prune(items, element, false);
    }
}

void sw_sim_schema_prune(const struct sw_sim_schema *schema, json_t *object)
{
    prune(schema->openapi, object, true);
}

/* ---- defaults ---- */

static void fill_in(const json_t *schema, json_t *value);

static bool is_stray_null(const json_t *value, const json_t *schema)
{
    return json_is_null(value) && json_is_object(schema) && !sw_sim_bool_at(schema, "nullable");
}

static void fill_in_object(const json_t *schema, json_t *object)
{
    const char *name;
    json_t *member, *part;
    void *next;
    json_object_foreach(json_object_get(schema, "properties"), name, part)
    {
        const json_t *found = json_object_get(object, name);
        const json_t *value = json_object_get(part, "default");
        if (value && (!found || is_stray_null(found, part))) {
            json_object_set_new(object, name, json_deep_copy(value));
        }
    }
    json_object_foreach_safe(object, next, name, member)
    {
        const json_t *of_member = sw_sim_schema_of_member(schema, name);
        if (is_stray_null(member, of_member)) {
            const json_t *value = json_object_get(of_member, "default");
            if (value) {
                json_object_set_new(object, name, json_deep_copy(value));
            } else {
                json_object_del(object, name);
            }
            continue;
        }
        fill_in(of_member, member);
    }
}

static void fill_in(const json_t *schema, json_t *value)
{
    if (!json_is_object(schema)) {
        return;
    }
    if (json_is_object(value)) {
        fill_in_object(schema, value);
        return;
    }
    const json_t *items = json_object_get(schema, "items");
    size_t i;
    json_t *element;
    json_array_foreach(value, i, element)
    {
        const json_t *preset = json_object_get(items, "default");
        if (preset && is_stray_null(element, items)) {
            json_array_set_new(value, i, json_deep_copy(preset));
        }
        fill_in(items, json_array_get(value, i));
    }
}

void sw_sim_schema_default(const struct sw_sim_schema *schema, json_t *object)
{
    fill_in(schema->openapi, object);
}

/* ---- lists ---- */

const char *sw_sim_schema_list_type(const struct sw_sim_schema *schema, const json_t *path,
                                    const json_t **ret_keys)
{
    const json_t *at = schema->openapi;
    size_t i;
    json_t *step;
    json_array_foreach((json_t *)(uintptr_t)path, i, step)
    {
        const char *name = json_string_value(step);
        if (!name || !json_is_object(at)) {
            return "atomic";
        }
        at = strcmp(name, "[]") == 0 ? json_object_get(at, "items")
                                     : sw_sim_schema_of_member(at, name);
    }
    const char *type = sw_sim_text_at(at, "x-kubernetes-list-type");
    if (strcmp(type, "map") == 0) {
        *ret_keys = json_object_get(at, "x-kubernetes-list-map-keys");
        return "map";
    }
    return strcmp(type, "set") == 0 ? "set" : "atomic";
}
