/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A document as compact text (dump.h), the same to the byte as json_dumps(JSON_COMPACT |
 * JSON_ENCODE_ANY). Every state of every object is written once, so this is a large part of what
 * the server does; jansson's own calls a function for each quote and comma.
 */
#include "dump.h"

#include <stdint.h>

#include "base/buf.h"
#include "base/util.h"

/* Room for so many bytes more, which are then written without another look. */
static char *room(struct sw_buf *out, size_t len)
{
    char *space = NULL;
    int code = sw_buf_reserve(out, len, &space);
    sw_assert(code == 0);
    return space;
}

static void put(struct sw_buf *out, char letter)
{
    *room(out, 1) = letter;
    sw_buf_commit(out, 1);
}

/* What stands behind the backslash; 0 where the byte stands for itself. */
static char escape_of(unsigned char byte)
{
    switch (byte) {
    case '"':
    case '\\':
        return (char)byte;
    case '\b':
        return 'b';
    case '\f':
        return 'f';
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    default:
        return byte < 0x20 ? 'u' : 0;
    }
}

static void dump_string(struct sw_buf *out, const char *text, size_t len)
{
    enum { LONGEST = 6 /* \u001F */ };
    char *begin = room(out, LONGEST * len + 2);
    char *at = begin;
    *at++ = '"';
    for (size_t i = 0; i < len; i++) {
        char escape = escape_of((unsigned char)text[i]);
        if (!escape) {
            *at++ = text[i];
            continue;
        }
        *at++ = '\\';
        *at++ = escape;
        if (escape == 'u') {
            static const char digits[] = "0123456789ABCDEF";
            *at++ = '0';
            *at++ = '0';
            *at++ = digits[text[i] >> 4];
            *at++ = digits[text[i] & 15];
        }
    }
    *at++ = '"';
    sw_buf_commit(out, (size_t)(at - begin));
}

static void dump_object(struct sw_buf *out, json_t *object)
{
    char before = '{';
    for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
        put(out, before);
        before = ',';
        dump_string(out, json_object_iter_key(at), json_object_iter_key_len(at));
        put(out, ':');
        sw_sim_dump(out, json_object_iter_value(at));
    }
    if (before == '{') {
        put(out, before);
    }
    put(out, '}');
}

static void dump_array(struct sw_buf *out, const json_t *array)
{
    put(out, '[');
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (i) {
            put(out, ',');
        }
        sw_sim_dump(out, json_array_get(array, i));
    }
    put(out, ']');
}

static void dump_real(struct sw_buf *out, const json_t *real)
{
    char text[64];
    size_t len = json_dumpb(real, text, sizeof(text), JSON_COMPACT | JSON_ENCODE_ANY);
    sw_assert(len > 0 && len <= sizeof(text));
    sw_buf_append(out, text, len);
}

void sw_sim_dump(struct sw_buf *out, const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        dump_object(out, (json_t *)(uintptr_t)value);
        break;
    case JSON_ARRAY:
        dump_array(out, value);
        break;
    case JSON_STRING:
        dump_string(out, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER:
        sw_buf_printf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        break;
    case JSON_REAL:
        dump_real(out, value);
        break;
    case JSON_TRUE:
        sw_buf_append(out, "true", 4);
        break;
    case JSON_FALSE:
        sw_buf_append(out, "false", 5);
        break;
    case JSON_NULL:
        sw_buf_append(out, "null", 4);
        break;
    }
}

char *sw_sim_dump_text(const json_t *value, size_t *ret_len)
{
    struct sw_buf out;
    sw_buf_init(&out, SIZE_MAX);
    sw_sim_dump(&out, value);
    if (ret_len) {
        *ret_len = out.len;
    }
    return sw_buf_steal(&out);
}

static int append(const char *bytes, size_t len, void *arg)
{
    return sw_buf_append(arg, bytes, len);
}

char *sw_sim_dump_as(const json_t *value, size_t flags)
{
    struct sw_buf out;
    sw_buf_init(&out, SIZE_MAX);
    if (json_dump_callback(value, append, &out, flags)) {
        sw_buf_done(&out);
        return NULL;
    }
    return sw_buf_steal(&out);
}
