/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small steps over JSON documents. The wordings of causes are those of apimachinery's field errors,
 * which clients show as they are.
 */
#include "document.h"

#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "dump.h"

json_t *sw_sim_at(const json_t *object, const char *path)
{
    const json_t *found = object;
    while (*path) {
        size_t len = strcspn(path, ".");
        found = json_object_getn(found, path, len);
        path += len + (path[len] == '.');
    }
    /* Who holds the document as const gets its parts as jansson hands them out. */
    return found && !json_is_null(found) ? (json_t *)(uintptr_t)found : NULL;
}

const char *sw_sim_text_at(const json_t *object, const char *path)
{
    const char *text = json_string_value(sw_sim_at(object, path));
    return text ? text : "";
}

int64_t sw_sim_int_at(const json_t *object, const char *path, int64_t absent)
{
    const json_t *found = sw_sim_at(object, path);
    return json_is_integer(found) ? json_integer_value(found) : absent;
}

bool sw_sim_bool_at(const json_t *object, const char *path)
{
    return json_is_true(sw_sim_at(object, path));
}

json_t *sw_sim_need_object(json_t *object, const char *name)
{
    json_t *found = json_object_get(object, name);
    if (!found || json_is_null(found)) {
        json_object_set_new(object, name, json_object());
        found = json_object_get(object, name);
    }
    return json_is_object(found) ? found : NULL;
}

bool sw_sim_is_unset(const json_t *object, const char *name)
{
    const json_t *found = json_object_get(object, name);
    return !found || json_is_null(found) ||
           (json_is_string(found) && json_string_length(found) == 0);
}

void sw_sim_default_text(json_t *object, const char *name, const char *text)
{
    if (sw_sim_is_unset(object, name)) {
        json_object_set_new(object, name, json_string(text));
    }
}

void sw_sim_default_int(json_t *object, const char *name, int64_t value)
{
    if (sw_sim_is_unset(object, name)) {
        json_object_set_new(object, name, json_integer(value));
    }
}

void sw_sim_default_bool(json_t *object, const char *name, bool value)
{
    if (sw_sim_is_unset(object, name)) {
        json_object_set_new(object, name, json_boolean(value));
    }
}

static bool is_same_object(const json_t *a, const json_t *b)
{
    if (json_object_size(a) != json_object_size(b)) {
        return false;
    }
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)a, name, value)
    {
        if (!sw_sim_is_same(value, json_object_get(b, name))) {
            return false;
        }
    }
    return true;
}

static bool is_same_array(const json_t *a, const json_t *b)
{
    if (json_array_size(a) != json_array_size(b)) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(a); i++) {
        if (!sw_sim_is_same(json_array_get(a, i), json_array_get(b, i))) {
            return false;
        }
    }
    return true;
}

bool sw_sim_is_same(const json_t *a, const json_t *b)
{
    if (a == b) {
        return true;
    }
    if (json_is_number(a) && json_is_number(b) && json_typeof(a) != json_typeof(b)) {
        double left = json_number_value(a);
        double right = json_number_value(b);
        return left >= right && left <= right;
    }
    if (!a || !b || json_typeof(a) != json_typeof(b)) {
        return false;
    }
    if (json_is_object(a)) {
        return is_same_object(a, b);
    }
    return json_is_array(a) ? is_same_array(a, b) : json_equal(a, b);
}

void sw_sim_cause(json_t *causes, const char *field, const char *reason, const char *format, ...)
{
    struct sw_buf message;
    sw_buf_init(&message, SIZE_MAX);
    va_list args;
    va_start(args, format);
    sw_buf_vprintf(&message, format, args);
    va_end(args);
    json_array_append_new(causes, json_pack("{s:s, s:s, s:s}", "field", field, "reason", reason,
                                            "message", message.bytes));
    sw_buf_done(&message);
}

void sw_sim_cause_required(json_t *causes, const char *field, const char *detail)
{
    sw_sim_cause(causes, field, "FieldValueRequired", "Required value%s%s", *detail ? ": " : "",
                 detail);
}

void sw_sim_cause_invalid(json_t *causes, const char *field, const json_t *value,
                          const char *detail)
{
    char *shown = sw_sim_dump_as(value ? value : json_null(), JSON_ENCODE_ANY | JSON_COMPACT);
    sw_sim_cause(causes, field, "FieldValueInvalid", "Invalid value: %s: %s", shown ? shown : "",
                 detail);
    sw_free(shown);
}

void sw_sim_cause_unsupported(json_t *causes, const char *field, const json_t *value,
                              const char *const *known)
{
    struct sw_buf list;
    sw_buf_init(&list, SIZE_MAX);
    for (size_t i = 0; known[i]; i++) {
        sw_buf_printf(&list, "%s\"%s\"", i ? ", " : "", known[i]);
    }
    char *shown = sw_sim_dump_as(value ? value : json_null(), JSON_ENCODE_ANY | JSON_COMPACT);
    sw_sim_cause(causes, field, "FieldValueNotSupported",
                 "Unsupported value: %s: supported values: %s", shown ? shown : "", list.bytes);
    sw_free(shown);
    sw_buf_done(&list);
}
