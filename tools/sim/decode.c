/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What reading an object into the server's types and writing it again does to it: fields that are
 * not known go, and so do null and what counts as empty; what is always written appears ("status":
 * {}, "creationTimestamp": null); a value of the wrong type is refused.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/time.h"
#include "base/util.h"
#include "document.h"
#include "kind.h"
#include "quantity.h"
#include "types.h"

/* Where we are: what is above, and one step down from it. Only a refusal makes a text of it. */
struct decoding {
    const struct decoding *up; /* NULL: the object itself */
    const char *name;          /* of a member, or the key in a map; NULL: an element */
    size_t index;              /* of the element */
    bool is_key;               /* in a map */
    struct sw_error *error;
};

static int decode_fields(const struct sw_sim_field *fields, json_t *object,
                         const struct decoding *up);

const struct sw_sim_field *sw_sim_field_find(const struct sw_sim_field *fields, const char *name,
                                             size_t len)
{
    for (; fields && fields->name; fields++) {
        if (strncmp(fields->name, name, len) == 0 && !fields->name[len]) {
            return fields;
        }
    }
    return NULL;
}

/* ---- one value ---- */

static const char *shape_name(const struct sw_sim_field *field)
{
    switch (field->shape) {
    case TEXT:
    case BYTES:
    case TIME:
    case MICRO_TIME:
        return "string";
    case INT:
        return "int";
    case BOOL:
        return "bool";
    case NUMBER:
        return "float64";
    case INT_OR_TEXT:
        return "intstr.IntOrString";
    case QUANTITY:
        return "resource.Quantity";
    default:
        return "struct";
    }
}

static bool has_shape(const json_t *value, enum sw_sim_shape shape)
{
    switch (shape) {
    case TEXT:
    case BYTES:
    case TIME:
    case MICRO_TIME:
        return json_is_string(value);
    case INT:
        return json_is_integer(value);
    case BOOL:
        return json_is_boolean(value);
    case NUMBER:
        return json_is_number(value);
    case INT_OR_TEXT:
        return json_is_integer(value) || json_is_string(value);
    case QUANTITY:
        return json_is_number(value) || json_is_string(value);
    case STRUCT:
        return json_is_object(value);
    default:
        return true;
    }
}

static void write_path(struct sw_buf *out, const struct decoding *at)
{
    if (!at->up)
        return;
    write_path(out, at->up);
    if (!at->name)
        sw_buf_printf(out, "[%zu]", at->index);
    else if (at->is_key)
        sw_buf_printf(out, "[%s]", at->name);
    else
        sw_buf_printf(out, "%s%s", out->len ? "." : "", at->name);
}

static int refuse(const struct decoding *at, const char *wanted)
{
    struct sw_buf path;

    sw_buf_init(&path, SIZE_MAX);
    write_path(&path, at);
    sw_error_set(at->error, -EINVAL, "%s: cannot be read as %s", path.bytes, wanted);
    sw_buf_done(&path);
    return -EINVAL;
}

/* A time is written as whole seconds or microseconds, whatever was given. */
static int rewrite_time(const json_t *value, bool is_micro, json_t **ret_value)
{
    int64_t wall_us;
    const char *dot = strchr(json_string_value(value), '.');
    if (is_micro && (!dot || strspn(dot + 1, "0123456789") != 6)) {
        return -EINVAL; /* its parser wants exactly six decimals */
    }
    if (sw_time_parse(json_string_value(value), json_string_length(value), &wall_us)) {
        return -EINVAL;
    }
    char text[SW_TIME_SIZE];
    if (is_micro) {
        sw_time_format_micro(wall_us, text);
    } else {
        sw_time_format(wall_us, text);
    }
    *ret_value = json_string(text);
    return 0;
}

/* *ret_value is what to write instead, or NULL where it stays. */
static int decode_value(const struct sw_sim_field *field, json_t *value, const struct decoding *at,
                        json_t **ret_value)
{
    *ret_value = NULL;
    if (!has_shape(value, field->shape)) {
        return refuse(at, shape_name(field));
    }
    switch (field->shape) {
    case STRUCT:
        return decode_fields(field->fields, value, at);
    case TIME:
    case MICRO_TIME:
        return rewrite_time(value, field->shape == MICRO_TIME, ret_value) ? refuse(at, "a time")
                                                                          : 0;
    case QUANTITY:
        *ret_value = sw_sim_quantity_write(value);
        return *ret_value ? 0 : refuse(at, shape_name(field));
    default:
        return 0;
    }
}

/* ---- lists and maps ---- */

static json_t *zero_of(const struct sw_sim_field *field);

static int decode_list(const struct sw_sim_field *field, json_t *list, const struct decoding *up)
{
    if (!json_is_array(list)) {
        return refuse(up, "a list");
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *element = json_array_get(list, i);
        json_t *instead = NULL;
        if (json_is_null(element) && field->shape != ANY) {
            /* Go reads null into a zero value. */
            struct sw_sim_field kept = *field;
            kept.many = ONE;
            kept.flags = KEEP;
            json_array_set_new(list, i, zero_of(&kept));
            element = json_array_get(list, i);
        }
        struct decoding at = {.up = up, .index = i, .error = up->error};
        int code = decode_value(field, element, &at, &instead);
        if (code) {
            return code;
        }
        if (instead) {
            json_array_set_new(list, i, instead);
        }
    }
    return 0;
}

static int decode_map(const struct sw_sim_field *field, json_t *map, const struct decoding *up)
{
    if (!json_is_object(map)) {
        return refuse(up, "a map");
    }
    const char *name;
    json_t *member;
    void *next;
    json_object_foreach_safe(map, next, name, member)
    {
        json_t *instead = NULL;
        if (json_is_null(member)) {
            if (field->shape == TEXT) {
                json_object_set_new(map, name, json_string(""));
            }
            continue;
        }
        struct decoding at = {.up = up, .name = name, .is_key = true, .error = up->error};
        int code = decode_value(field, member, &at, &instead);
        if (code) {
            return code;
        }
        if (instead) {
            json_object_set_new(map, name, instead);
        }
    }
    return 0;
}

/* ---- objects ---- */

/* What is written for a field that is absent and never left out. */
static json_t *zero_of(const struct sw_sim_field *field)
{
    if (field->many != ONE || (field->flags & PTR)) {
        return json_null();
    }
    switch (field->shape) {
    case TEXT:
        return json_string("");
    case INT:
    case INT_OR_TEXT:
        return json_integer(0);
    case NUMBER:
        return json_real(0);
    case BOOL:
        return json_false();
    case QUANTITY:
        return json_string("0");
    case STRUCT: {
        json_t *made = json_object();
        struct decoding nothing = {.up = NULL};
        decode_fields(field->fields, made, &nothing);
        return made;
    }
    default:
        return json_null();
    }
}

static bool is_zero(const struct sw_sim_field *field, const json_t *value)
{
    if (json_is_array(value)) {
        return json_array_size(value) == 0;
    }
    if (json_is_object(value)) {
        return field->many == MAP && json_object_size(value) == 0;
    }
    return json_is_false(value) || (json_is_string(value) && json_string_length(value) == 0) ||
           (json_is_number(value) &&
            !(json_number_value(value) < 0 || json_number_value(value) > 0));
}

static int decode_field(const struct sw_sim_field *field, json_t *object, json_t *value,
                        const struct decoding *up)
{
    struct decoding at = {.up = up, .name = field->name, .error = up->error};
    json_t *instead = NULL;
    int code = field->many == LIST  ? decode_list(field, value, &at)
               : field->many == MAP ? decode_map(field, value, &at)
                                    : decode_value(field, value, &at, &instead);
    if (code) {
        return code;
    }
    if (instead) {
        json_object_set_new(object, field->name, instead);
    }
    bool is_left_out =
        !(field->flags & (KEEP | PTR)) || (field->many != ONE && !(field->flags & KEEP));
    if (is_left_out && is_zero(field, json_object_get(object, field->name))) {
        json_object_del(object, field->name);
    }
    return 0;
}

static int decode_fields(const struct sw_sim_field *fields, json_t *object,
                         const struct decoding *up)
{
    const char *name;
    json_t *member;
    void *next;
    json_object_foreach_safe(object, next, name, member)
    {
        const struct sw_sim_field *field = sw_sim_field_find(fields, name, strlen(name));
        if (!field || json_is_null(member)) {
            json_object_del(object, name);
            continue;
        }
        int code = decode_field(field, object, member, up);
        if (code) {
            return code;
        }
    }
    for (const struct sw_sim_field *field = fields; field->name; field++) {
        if ((field->flags & KEEP) && !json_object_get(object, field->name)) {
            json_object_set_new(object, field->name, zero_of(field));
        }
    }
    return 0;
}

int sw_sim_decode(const struct sw_sim_kind *kind, json_t *object, struct sw_error *error)
{
    if (!kind->fields) {
        return 0;
    }
    struct decoding top = {.error = error};
    int code = decode_fields(kind->fields, object, &top);
    if (code) {
        sw_error_prefix(error, "%s in version \"%s\" cannot be handled as a %s", kind->kind,
                        kind->version, kind->kind);
        return code;
    }
    /* Of the object itself the server has filled it in, or will; only templates show the null. */
    json_t *metadata = json_object_get(object, "metadata");
    if (json_is_null(json_object_get(metadata, "creationTimestamp"))) {
        json_object_del(metadata, "creationTimestamp");
    }
    return 0;
}
