/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validation of objects against a structural schema. The sentences are those of the real server
 * (v1.20), down to "in body"; like it, formats of numbers are not looked at, and the path
 * to an element of a list does not say which.
 */
#include <inttypes.h>
#include <math.h>
#include <regex.h>
#include <string.h>

#include "base/buf.h"
#include "base/time.h"
#include "base/util.h"
#include "document.h"
#include "dump.h"
#include "schema.h"
#include "schema_internal.h"

static void validate(const json_t *schema, const json_t *value, const char *path, json_t *causes);

static void invalid(json_t *causes, const char *path, const json_t *value, const char *format, ...)
    SW_PRINTF(4, 5);
static void invalid(json_t *causes, const char *path, const json_t *value, const char *format, ...)
{
    struct sw_buf detail;
    sw_buf_init(&detail, SIZE_MAX);
    sw_buf_printf(&detail, "%s in body ", path);
    va_list args;
    va_start(args, format);
    sw_buf_vprintf(&detail, format, args);
    va_end(args);
    sw_sim_cause_invalid(causes, path, value, detail.bytes);
    sw_buf_done(&detail);
}

/* ---- types ---- */

static const char *type_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "object";
    case JSON_ARRAY:
        return "array";
    case JSON_STRING:
        return "string";
    case JSON_INTEGER:
        return "integer";
    case JSON_REAL:
        return "number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "boolean";
    default:
        return "null";
    }
}

static bool has_type(const json_t *value, const char *type)
{
    if (strcmp(type, "integer") == 0) {
        double real = json_number_value(value);
        return json_is_integer(value) || (json_is_real(value) && !(floor(real) < real));
    }
    if (strcmp(type, "number") == 0) {
        return json_is_number(value);
    }
    return strcmp(type, type_name(value)) == 0;
}

static bool validate_type(const json_t *schema, const json_t *value, const char *path,
                          json_t *causes)
{
    const char *type = sw_sim_text_at(schema, "type");
    const char *wanted = type;
    if (sw_sim_bool_at(schema, "x-kubernetes-int-or-string")) {
        wanted = "integer,string";
        if (has_type(value, "integer") || json_is_string(value)) {
            return true;
        }
    } else if (!*type || has_type(value, type)) {
        return true;
    }
    json_t *got = json_string(type_name(value));
    invalid(causes, path, got, "must be of type %s: \"%s\"", wanted, type_name(value));
    json_decref(got);
    return false;
}

/* ---- numbers and texts ---- */

/* As Go's %v of a float64, for the numbers that stand in schemas. */
static void number_text(double number, char text[32])
{
    snprintf(text, 32, "%.15g", number);
}

static void validate_number(const json_t *schema, const json_t *value, const char *path,
                            json_t *causes)
{
    double number = json_number_value(value);
    char limit_text[32];
    const json_t *limit = json_object_get(schema, "minimum");
    bool is_exclusive = sw_sim_bool_at(schema, "exclusiveMinimum");
    double bound = json_number_value(limit);
    number_text(bound, limit_text);
    if (limit && (is_exclusive ? number <= bound : number < bound)) {
        invalid(causes, path, value, "should be greater than %s%s",
                is_exclusive ? "" : "or equal to ", limit_text);
    }
    limit = json_object_get(schema, "maximum");
    is_exclusive = sw_sim_bool_at(schema, "exclusiveMaximum");
    bound = json_number_value(limit);
    number_text(bound, limit_text);
    if (limit && (is_exclusive ? number >= bound : number > bound)) {
        invalid(causes, path, value, "should be less than %s%s", is_exclusive ? "" : "or equal to ",
                limit_text);
    }
    limit = json_object_get(schema, "multipleOf");
    bound = json_number_value(limit);
    number_text(bound, limit_text);
    if (limit && bound > 0 && fabs(fmod(number, bound)) > 0) {
        invalid(causes, path, value, "should be a multiple of %s", limit_text);
    }
}

static int64_t characters(const json_t *text)
{
    int64_t count = 0;
    const char *bytes = json_string_value(text);
    for (size_t i = 0; i < json_string_length(text); i++) {
        count += ((unsigned char)bytes[i] & 0xc0) != 0x80;
    }
    return count;
}

/* RE2's \d, \w and \s are not in POSIX' language; the rest that CRDs use is. */
static char *to_posix(const char *pattern)
{
    struct sw_buf made;
    sw_buf_init(&made, SIZE_MAX);
    bool is_in_set = false;
    for (const char *c = pattern; *c; c++) {
        if (*c == '\\' && c[1] && strchr("dws", c[1])) {
            const char *set = c[1] == 'd' ? "0-9" : c[1] == 'w' ? "0-9A-Za-z_" : "\t\n\f\r ";
            sw_buf_printf(&made, is_in_set ? "%s" : "[%s]", set);
            c++;
        } else if (*c == '\\' && c[1]) {
            sw_buf_append(&made, c, is_in_set ? 0 : 1);
            sw_buf_append(&made, ++c, 1);
        } else if (*c == '(' && !is_in_set && c[1] == '?' && c[2] == ':') {
            sw_buf_puts(&made, "(");
            c += 2;
        } else {
            is_in_set = *c == '[' ? true : *c == ']' ? false : is_in_set;
            sw_buf_append(&made, c, 1);
        }
    }
    return sw_buf_steal(&made);
}

static bool matches(const char *pattern, const char *text)
{
    char *posix = to_posix(pattern);
    regex_t regex;
    int code = regcomp(&regex, posix, REG_EXTENDED | REG_NOSUB);
    sw_free(posix);
    if (code) {
        return false;
    }
    bool found = regexec(&regex, text, 0, NULL, 0) == 0;
    regfree(&regex);
    return found;
}

static void validate_text(const json_t *schema, const json_t *value, const char *path,
                          json_t *causes)
{
    const char *text = json_string_value(value);
    int64_t count = characters(value);
    int64_t limit = sw_sim_int_at(schema, "maxLength", INT64_MAX);
    if (count > limit) {
        invalid(causes, path, value, "should be at most %" PRId64 " chars long", limit);
    }
    limit = sw_sim_int_at(schema, "minLength", 0);
    if (count < limit) {
        invalid(causes, path, value, "should be at least %" PRId64 " chars long", limit);
    }
    const char *pattern = sw_sim_text_at(schema, "pattern");
    if (*pattern && !matches(pattern, text)) {
        invalid(causes, path, value, "should match '%s'", pattern);
    }
    int64_t wall_us;
    const char *format = sw_sim_text_at(schema, "format");
    if ((strcmp(format, "date-time") == 0 || strcmp(format, "datetime") == 0) &&
        sw_time_parse(text, json_string_length(value), &wall_us)) {
        invalid(causes, path, value, "must be of type %s: \"%s\"", format, text);
    }
}

static void validate_enum(const json_t *schema, const json_t *value, const char *path,
                          json_t *causes)
{
    const json_t *allowed = json_object_get(schema, "enum");
    if (!allowed) {
        return;
    }
    size_t count = json_array_size(allowed);
    const char **names = sw_calloc(count + 1, sizeof(*names));
    json_t *texts = json_array();
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        json_t *one = json_array_get(allowed, i);
        found = found || sw_sim_is_same(one, value);
        char *text = sw_sim_dump_as(one, JSON_ENCODE_ANY | JSON_COMPACT);
        json_array_append_new(texts, json_is_string(one) ? json_incref(one) : json_string(text));
        sw_free(text);
        names[i] = json_string_value(json_array_get(texts, i));
    }
    if (!found) {
        sw_sim_cause_unsupported(causes, path, value, names);
    }
    json_decref(texts);
    sw_free(names);
}

/* ---- lists ---- */

static bool is_twice(const json_t *list, size_t at, const json_t *keys)
{
    const json_t *one = json_array_get(list, at);
    for (size_t i = 0; i < at; i++) {
        const json_t *other = json_array_get(list, i);
        bool is_same = !keys && sw_sim_is_same(one, other);
        if (keys) {
            is_same = true;
            for (size_t k = 0; k < json_array_size(keys); k++) {
                const char *key = json_string_value(json_array_get(keys, k));
                const json_t *left = json_object_get(one, key);
                const json_t *right = json_object_get(other, key);
                is_same = is_same && (left == right || sw_sim_is_same(left, right));
            }
        }
        if (is_same) {
            return true;
        }
    }
    return false;
}

static void validate_duplicates(const json_t *schema, const json_t *list, const char *path,
                                json_t *causes)
{
    const char *type = sw_sim_text_at(schema, "x-kubernetes-list-type");
    const json_t *keys =
        strcmp(type, "map") == 0 ? json_object_get(schema, "x-kubernetes-list-map-keys") : NULL;
    if (!keys && strcmp(type, "set") != 0) {
        return;
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (!is_twice(list, i, keys)) {
            continue;
        }
        json_t *shown = keys ? json_object() : json_incref(json_array_get(list, i));
        for (size_t k = 0; k < json_array_size(keys); k++) {
            const char *key = json_string_value(json_array_get(keys, k));
            json_object_set(shown, key, json_object_get(json_array_get(list, i), key));
        }
        char *text = sw_sim_dump_as(shown, JSON_ENCODE_ANY | JSON_SORT_KEYS | JSON_COMPACT);
        json_t *field = json_sprintf("%s[%zu]", path, i);
        sw_sim_cause(causes, json_string_value(field), "FieldValueDuplicate",
                     "Duplicate value: %s%s", keys ? "map[string]interface {}" : "", text);
        json_decref(field);
        sw_free(text);
        json_decref(shown);
    }
}

static void validate_list(const json_t *schema, const json_t *list, const char *path,
                          json_t *causes)
{
    int64_t count = (int64_t)json_array_size(list);
    int64_t limit = sw_sim_int_at(schema, "maxItems", INT64_MAX);
    json_t *shown = json_integer(count);
    if (count > limit) {
        invalid(causes, path, shown, "should have at most %" PRId64 " items", limit);
    }
    limit = sw_sim_int_at(schema, "minItems", 0);
    if (count < limit) {
        invalid(causes, path, shown, "should have at least %" PRId64 " items", limit);
    }
    json_decref(shown);
    validate_duplicates(schema, list, path, causes);
    const json_t *items = json_object_get(schema, "items");
    for (size_t i = 0; i < json_array_size(list); i++) {
        validate(items, json_array_get(list, i), path, causes);
    }
}

/* ---- objects ---- */

static json_t *below(const char *path, const char *name)
{
    return *path ? json_sprintf("%s.%s", path, name) : json_string(name);
}

static void validate_object(const json_t *schema, const json_t *object, const char *path,
                            json_t *causes)
{
    int64_t count = (int64_t)json_object_size(object);
    int64_t limit = sw_sim_int_at(schema, "maxProperties", INT64_MAX);
    if (count > limit) {
        invalid(causes, path, object, "should have at most %" PRId64 " properties", limit);
    }
    limit = sw_sim_int_at(schema, "minProperties", 0);
    if (count < limit) {
        invalid(causes, path, object, "should have at least %" PRId64 " properties", limit);
    }
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)(uintptr_t)object, name, member)
    {
        const json_t *part = sw_sim_schema_of_member(schema, name);
        if (json_is_object(part)) {
            json_t *where = below(path, name);
            validate(part, member, json_string_value(where), causes);
            json_decref(where);
        }
    }
    size_t i;
    json_t *needed;
    json_array_foreach(json_object_get(schema, "required"), i, needed)
    {
        if (!json_object_get(object, json_string_value(needed))) {
            json_t *where = below(path, json_string_value(needed));
            sw_sim_cause_required(causes, json_string_value(where), "");
            json_decref(where);
        }
    }
}

/* ---- all of it ---- */

static bool is_valid(const json_t *schema, const json_t *value)
{
    json_t *causes = json_array();
    validate(schema, value, "", causes);
    bool found = json_array_size(causes) == 0;
    json_decref(causes);
    return found;
}

static size_t count_valid(const json_t *list, const json_t *value)
{
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        count += is_valid(json_array_get(list, i), value);
    }
    return count;
}

static void validate_combined(const json_t *schema, const json_t *value, const char *path,
                              json_t *causes)
{
    json_t *all = json_object_get(schema, "allOf");
    for (size_t i = 0; i < json_array_size(all); i++) {
        validate(json_array_get(all, i), value, path, causes);
    }
    json_t *nothing = json_string("");
    const json_t *any = json_object_get(schema, "anyOf");
    if (any && count_valid(any, value) == 0) {
        json_t *detail = json_sprintf("\"%s\" must validate at least one schema (anyOf)", path);
        sw_sim_cause_invalid(causes, path, nothing, json_string_value(detail));
        json_decref(detail);
    }
    const json_t *one = json_object_get(schema, "oneOf");
    size_t count = one ? count_valid(one, value) : 1;
    if (count != 1) {
        json_t *detail = json_sprintf("\"%s\" must validate one and only one schema (oneOf). %s",
                                      path, count ? "Found more" : "Found none valid");
        sw_sim_cause_invalid(causes, path, nothing, json_string_value(detail));
        json_decref(detail);
    }
    const json_t *not_this = json_object_get(schema, "not");
    if (not_this && is_valid(not_this, value)) {
        json_t *detail = json_sprintf("\"%s\" must not validate the schema (not)", path);
        sw_sim_cause_invalid(causes, path, nothing, json_string_value(detail));
        json_decref(detail);
    }
    json_decref(nothing);
}

static void validate(const json_t *schema, const json_t *value, const char *path, json_t *causes)
{
    if (json_is_null(value) && sw_sim_bool_at(schema, "nullable")) {
        return;
    }
    if (!validate_type(schema, value, path, causes)) {
        return;
    }
    validate_enum(schema, value, path, causes);
    validate_combined(schema, value, path, causes);
    if (json_is_number(value)) {
        validate_number(schema, value, path, causes);
    } else if (json_is_string(value)) {
        validate_text(schema, value, path, causes);
    } else if (json_is_array(value)) {
        validate_list(schema, value, path, causes);
    } else if (json_is_object(value)) {
        validate_object(schema, value, path, causes);
    }
}

void sw_sim_schema_validate(const struct sw_sim_schema *schema, const json_t *object,
                            json_t *causes)
{
    validate(schema->openapi, object, "", causes);
}
