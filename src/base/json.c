/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON values: struct sw_json is jansson's json_t by another name. The arena holds one reference to
 * each value that was made with it and drops it at its end; containers hold their own.
 */
#include "base/json.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "base/util.h"

enum { MAX_NESTING = 200 };

/* ---- from and to jansson ---- */

static json_t *in(const struct sw_json *value)
{
    return (json_t *)(uintptr_t)value; /* jansson counts references in const values as well */
}

static struct sw_json *out(json_t *value)
{
    return (struct sw_json *)value;
}

/* Makes of NULL, which means no memory (all else is checked before), the end of the process. */
static json_t *made(json_t *value)
{
    sw_assert(value);
    return value;
}

static void drop(void *value)
{
    json_decref(value);
}

static struct sw_json *owned(struct sw_arena *arena, json_t *value)
{
    sw_arena_on_free(arena, drop, made(value));
    return out(value);
}

/* As text if it is UTF-8, else a repaired copy, which goes with *ret_copy. */
static const char *repaired(const char *text, char **ret_copy)
{
    *ret_copy = sw_utf8_repair(text, strlen(text));
    return *ret_copy ? *ret_copy : text;
}

static json_t *string_new(const char *text)
{
    if (!text) {
        return json_null();
    }
    SW_AUTO(char, sw_free) copy = NULL;
    return made(json_string_nocheck(repaired(text, &copy)));
}

/* Takes the reference to value. */
static void set_take(struct sw_json *object, const char *key, json_t *value)
{
    SW_AUTO(char, sw_free) copy = NULL;
    sw_assert(json_is_object(in(object)) && value != in(object));
    sw_assert(json_object_set_new_nocheck(in(object), repaired(key, &copy), value) == 0);
}

static void append_take(struct sw_json *array, json_t *value)
{
    sw_assert(json_is_array(in(array)) && value != in(array));
    sw_assert(json_array_append_new(in(array), value) == 0);
}

static json_t *another(struct sw_json *value)
{
    return value ? json_incref(in(value)) : json_null();
}

/* ---- making ---- */

struct sw_json *sw_json_object(struct sw_arena *arena)
{
    return owned(arena, json_object());
}

struct sw_json *sw_json_array(struct sw_arena *arena)
{
    return owned(arena, json_array());
}

struct sw_json *sw_json_string(struct sw_arena *arena, const char *text)
{
    return owned(arena, string_new(text));
}

struct sw_json *sw_json_int(struct sw_arena *arena, int64_t value)
{
    return owned(arena, json_integer(value));
}

struct sw_json *sw_json_real(struct sw_arena *arena, double value)
{
    sw_assert(isfinite(value));
    return owned(arena, json_real(value));
}

struct sw_json *sw_json_bool(struct sw_arena *arena, bool value)
{
    (void)arena; /* jansson has one true, one false and one null, which are not counted */
    return out(json_boolean(value));
}

struct sw_json *sw_json_null(struct sw_arena *arena)
{
    (void)arena;
    return out(json_null());
}

void sw_json_set(struct sw_json *object, const char *key, struct sw_json *value)
{
    set_take(object, key, another(value));
}

void sw_json_set_string(struct sw_json *object, const char *key, const char *text)
{
    set_take(object, key, string_new(text));
}

void sw_json_set_int(struct sw_json *object, const char *key, int64_t value)
{
    set_take(object, key, made(json_integer(value)));
}

void sw_json_set_bool(struct sw_json *object, const char *key, bool value)
{
    set_take(object, key, json_boolean(value));
}

void sw_json_remove(struct sw_json *object, const char *key)
{
    json_object_del(in(object), key);
}

struct sw_json *sw_json_set_object(struct sw_json *object, const char *key)
{
    json_t *there = in(sw_json_get(object, key));
    if (!json_is_object(there)) {
        there = made(json_object());
        set_take(object, key, there);
    }
    return out(there);
}

struct sw_json *sw_json_set_array(struct sw_json *object, const char *key)
{
    json_t *there = in(sw_json_get(object, key));
    if (!json_is_array(there)) {
        there = made(json_array());
        set_take(object, key, there);
    }
    return out(there);
}

void sw_json_append(struct sw_json *array, struct sw_json *value)
{
    append_take(array, another(value));
}

void sw_json_append_string(struct sw_json *array, const char *text)
{
    append_take(array, string_new(text));
}

struct sw_json *sw_json_append_object(struct sw_json *array)
{
    json_t *object = made(json_object());
    append_take(array, object);
    return out(object);
}

struct sw_json *sw_json_copy(struct sw_arena *arena, const struct sw_json *object)
{
    sw_assert(json_is_object(in(object)));
    return owned(arena, json_copy(in(object)));
}

/* ---- reading ---- */

enum sw_json_type sw_json_type(const struct sw_json *value)
{
    if (!value) {
        return SW_JSON_NULL;
    }
    switch (json_typeof(in(value))) {
    case JSON_OBJECT:
        return SW_JSON_OBJECT;
    case JSON_ARRAY:
        return SW_JSON_ARRAY;
    case JSON_STRING:
        return SW_JSON_STRING;
    case JSON_INTEGER:
        return SW_JSON_INT;
    case JSON_REAL:
        return SW_JSON_REAL;
    case JSON_TRUE:
    case JSON_FALSE:
        return SW_JSON_BOOL;
    case JSON_NULL:
        break;
    }
    return SW_JSON_NULL;
}

const struct sw_json *sw_json_get(const struct sw_json *object, const char *key)
{
    SW_AUTO(char, sw_free) copy = NULL; /* a key that was repaired when it was set is found again */
    return out(json_object_get(in(object), repaired(key, &copy)));
}

const struct sw_json *sw_json_at(const struct sw_json *object, ...)
{
    va_list keys;
    va_start(keys, object);
    const char *key;
    while (object && (key = va_arg(keys, const char *))) {
        object = sw_json_get(object, key);
    }
    va_end(keys);
    return object;
}

const char *sw_json_get_string(const struct sw_json *object, const char *key)
{
    return sw_json_text(sw_json_get(object, key));
}

int64_t sw_json_get_int(const struct sw_json *object, const char *key, int64_t otherwise)
{
    const json_t *value = in(sw_json_get(object, key));
    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

bool sw_json_get_bool(const struct sw_json *object, const char *key, bool otherwise)
{
    const json_t *value = in(sw_json_get(object, key));
    return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

const char *sw_json_text(const struct sw_json *string)
{
    return json_string_value(in(string)); /* NULL for any other type, and for NULL */
}

size_t sw_json_size(const struct sw_json *value)
{
    return json_is_array(in(value)) ? json_array_size(in(value)) : json_object_size(in(value));
}

const struct sw_json *sw_json_element(const struct sw_json *array, size_t index)
{
    return out(json_array_get(in(array), index));
}

void sw_json_each(const struct sw_json *object, sw_json_visit_fn visit, void *arg)
{
    json_t *value = NULL;
    const char *key = NULL;

    json_object_foreach(in(object), key, value)
    {
        if (!visit(arg, key, out(value)))
            return;
    }
}

bool sw_json_equal(const struct sw_json *a, const struct sw_json *b)
{
    return json_equal(a ? in(a) : json_null(), b ? in(b) : json_null());
}

/* ---- text ---- */

/* Where the nesting passes the limit, or len. jansson's own limit is 2 048 levels, and json_decref
 * and json_equal recurse without any. */
static size_t find_too_deep(const char *text, size_t len)
{
    size_t depth = 0;
    bool is_string = false;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (is_string) {
            i += c == '\\';
            is_string = c != '"';
        } else if (c == '"') {
            is_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > MAX_NESTING) {
                return i;
            }
        } else if ((c == '}' || c == ']') && depth > 0) {
            depth--;
        }
    }
    return len;
}

int sw_json_parse(struct sw_arena *arena, const char *text, size_t len, struct sw_json **ret_value,
                  const char **ret_why)
{
    size_t deep = find_too_deep(text, len);
    if (deep < len) {
        if (ret_why) {
            *ret_why = sw_arena_printf(arena, "nesting beyond %d levels at byte %zu", MAX_NESTING,
                                       deep + 1);
        }
        return -EINVAL;
    }
    json_error_t error;
    json_t *value = json_loadb(text, len, JSON_DECODE_ANY, &error);
    if (!value) {
        sw_assert(json_error_code(&error) != json_error_out_of_memory);
        if (ret_why) {
            *ret_why = sw_arena_printf(arena, "%s (line %d, column %d)", error.text, error.line,
                                       error.column);
        }
        return -EINVAL;
    }
    *ret_value = owned(arena, value);
    return 0;
}

static int to_buf(const char *bytes, size_t len, void *arg)
{
    return sw_buf_append(arg, bytes, len);
}

char *sw_json_dump(const struct sw_json *value, struct sw_arena *arena, size_t *ret_len)
{
    struct sw_buf buf;
    sw_buf_init(&buf, SIZE_MAX);
    int rc = json_dump_callback(value ? in(value) : json_null(), to_buf, &buf,
                                JSON_COMPACT | JSON_ENCODE_ANY);
    sw_assert(rc == 0); /* else a value contains itself */
    char *text = sw_arena_strndup(arena, buf.bytes, buf.len);
    if (ret_len) {
        *ret_len = buf.len;
    }
    sw_buf_done(&buf);
    return text;
}
