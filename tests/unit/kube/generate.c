/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two documents are made as jansson's DOM; then one is written out, with now and then a member of
 * the other in front of its own, which makes a key that comes twice.
 */
#include "generate.h"

#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/time.h"
#include "base/util.h"

/* SplitMix64 (Steele, Lea, Flood 2014). */
uint64_t chance_next(struct chance *chance)
{
    uint64_t z = chance->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

unsigned chance_below(struct chance *chance, unsigned below)
{
    return (unsigned)(chance_next(chance) >> 32) % below;
}

static bool one_in(struct chance *chance, unsigned n)
{
    return chance_below(chance, n) == 0;
}

/* ---- values ---- */

static json_t *any_string(struct chance *chance)
{
    static const char *const pieces[] = {
        "a",
        "Z",
        "0",
        "-",
        "\"",
        "\\",
        "/",
        "\n",
        "\t",
        "\b\f\r",
        "\x1f",
        "\x7f",
        "é",
        "€",
        "😀",
        "\xef\xbf\xbf",
        "long plain text here",
        "{\"a\":[1]}",
        "true",
        "[[[{{{",
        "}}]]",
        "\\\\\\\"",
        " ",
        "slipway.dev/",
    };
    char text[400] = "";
    size_t len = 0;
    for (unsigned n = chance_below(chance, one_in(chance, 20) ? 15 : 4); n > 0; n--) {
        const char *piece = pieces[chance_below(chance, SW_ARRAY_SIZE(pieces))];
        memcpy(text + len, piece, strlen(piece) + 1);
        len += strlen(piece);
    }
    return json_string(text);
}

static json_t *any_integer(struct chance *chance)
{
    static const int64_t edges[] = {0,         1,         -1,         INT32_MAX, INT32_MIN,
                                    INT64_MAX, INT64_MIN, 2147483648, 100,       -2147483649};
    return one_in(chance, 3) ? json_integer(edges[chance_below(chance, SW_ARRAY_SIZE(edges))])
                             : json_integer((json_int_t)chance_below(chance, 1000));
}

static json_t *any_value(struct chance *chance, int depth)
{
    json_t *value;
    switch (chance_below(chance, depth > 0 ? 9 : 6)) {
    case 0:
        return json_null();
    case 1:
        return json_boolean(one_in(chance, 2));
    case 2:
        return json_real((double)chance_below(chance, 1000) / 8 - 50);
    case 3:
        return any_integer(chance);
    case 4:
    case 5:
        return any_string(chance);
    case 6:
        value = json_array();
        for (unsigned n = chance_below(chance, 5); n > 0; n--) {
            json_array_append_new(value, any_value(chance, depth - 1));
        }
        return value;
    default:
        value = json_object();
        for (unsigned n = chance_below(chance, 5); n > 0; n--) {
            json_t *key = any_string(chance);
            json_object_set_new(value, json_string_value(key), any_value(chance, depth - 1));
            json_decref(key);
        }
        return value;
    }
}

static json_t *any_time(struct chance *chance)
{
    char text[SW_TIME_SIZE];
    int64_t us = (int64_t)(chance_next(chance) % 4000000000) * 1000000 + 123456;
    if (one_in(chance, 10)) {
        return json_string(one_in(chance, 20) ? "2024-02-30T00:00:00Z"
                                              : "2024-02-01T00:00:00+05:30");
    }
    (one_in(chance, 2) ? sw_time_format : sw_time_format_micro)(us, text);
    return json_string(text);
}

static json_t *any_percent(struct chance *chance)
{
    char text[32];
    snprintf(text, sizeof(text), "%u%s", chance_below(chance, 200), one_in(chance, 60) ? "" : "%");
    return json_string(text);
}

static json_t *any_labels(struct chance *chance, const struct sw_kind *kind)
{
    static const char *const keys[] = {"b", "a", "é", "app.kubernetes.io/name", "a\"b", "aa", ""};
    json_t *labels = json_object();
    for (unsigned n = chance_below(chance, one_in(chance, 20) ? 60 : 6); n > 0; n--) {
        char key[64];
        snprintf(key, sizeof(key), "%s", keys[chance_below(chance, SW_ARRAY_SIZE(keys))]);
        if (one_in(chance, 3)) {
            snprintf(key, sizeof(key), "key%u", chance_below(chance, 100));
        } else if (kind->annotations && one_in(chance, 2)) {
            snprintf(key, sizeof(key), "%s%s", kind->annotations[0], one_in(chance, 2) ? "" : "x");
        } else if (kind->annotations && kind->annotations[1] && one_in(chance, 3)) {
            snprintf(key, sizeof(key), "%s%s", kind->annotations[1], one_in(chance, 2) ? "" : "x");
        }
        json_object_set_new(labels, key, one_in(chance, 20) ? json_null() : any_string(chance));
    }
    return labels;
}

static void put_fields(struct chance *chance, const struct sw_kind *kind,
                       const struct sw_bind *fields, json_t *object);

static const struct sw_bind condition_fields[] = {
    {.path = "/type", .type = SW_BIND_ENUM},
    {.path = "/status", .type = SW_BIND_ENUM},
    {.path = "/reason", .type = SW_BIND_ENUM},
    {.path = "/message", .type = SW_BIND_STRING},
    {.path = "/lastUpdateTime", .type = SW_BIND_TIME},
    {.path = "/lastTransitionTime", .type = SW_BIND_TIME},
    {.path = "/observedGeneration", .type = SW_BIND_INT64},
    SW_BIND_END,
};

static json_t *any_list(struct chance *chance, const struct sw_kind *kind,
                        const struct sw_bind *fields)
{
    json_t *list = json_array();
    for (unsigned n = chance_below(chance, 5); n > 0; n--) {
        json_t *element = one_in(chance, 300) ? any_value(chance, 1) : json_object();
        if (json_is_object(element)) {
            put_fields(chance, kind, fields, element);
        }
        json_array_append_new(list, element);
    }
    return list;
}

static json_t *value_of(struct chance *chance, const struct sw_kind *kind,
                        const struct sw_bind *bind)
{
    json_t *value;
    if (one_in(chance, 250)) {
        return any_value(chance, 2);
    }
    switch (bind->type) {
    case SW_BIND_STRING:
    case SW_BIND_ENUM:
        return any_string(chance);
    case SW_BIND_INT32:
        return json_integer((json_int_t)(int32_t)(uint32_t)chance_next(chance) >>
                            chance_below(chance, 32));
    case SW_BIND_INT64:
        return any_integer(chance);
    case SW_BIND_BOOL:
        return json_boolean(one_in(chance, 2));
    case SW_BIND_TIME:
        return any_time(chance);
    case SW_BIND_INT_OR_PERCENT:
        return one_in(chance, 2) ? any_percent(chance) : json_integer(chance_below(chance, 9));
    case SW_BIND_STRINGS:
        value = json_array();
        for (unsigned n = chance_below(chance, one_in(chance, 20) ? 60 : 5); n > 0; n--) {
            json_array_append_new(value, one_in(chance, 20) ? json_null() : any_string(chance));
        }
        return value;
    case SW_BIND_LABELS:
        return any_labels(chance, kind);
    case SW_BIND_CONDITIONS:
        return any_list(chance, kind, condition_fields);
    case SW_BIND_LIST:
        return any_list(chance, kind, bind->element);
    case SW_BIND_RAW:
        return any_value(chance, one_in(chance, 10) ? 3 : 1);
    case SW_BIND_HASH: /* other fields may be bound below */
        value = any_value(chance, 3);
        if (!json_is_object(value) && !one_in(chance, 20)) {
            json_decref(value);
            value = json_object();
        }
        return value;
    default:
        return any_value(chance, 3);
    }
}

/* Sets the member; what stands on the way becomes an object, except now and then. */
static void put_at(struct chance *chance, json_t *object, const char *path, json_t *value)
{
    for (path++;; path++) {
        char key[100];
        size_t len = 0;
        for (; *path && *path != '/'; path++) {
            key[len++] = *path == '~' ? (*++path == '0' ? '~' : '/') : *path;
        }
        key[len] = 0;
        if (!*path) {
            if (json_object_get(object, key)) { /* bound twice: the first decides */
                json_decref(value);
            } else {
                json_object_set_new(object, key, value);
            }
            return;
        }
        json_t *next = json_object_get(object, key);
        if (!next && one_in(chance, 200)) {
            json_object_set_new(object, key, any_value(chance, 1));
            next = json_object_get(object, key);
        } else if (!next) {
            next = json_object();
            json_object_set_new(object, key, next);
        }
        if (!json_is_object(next)) {
            json_decref(value);
            return;
        }
        object = next;
    }
}

static void put_fields(struct chance *chance, const struct sw_kind *kind,
                       const struct sw_bind *fields, json_t *object)
{
    for (; fields->path; fields++) {
        if (!one_in(chance, 4)) {
            put_at(chance, object, fields->path,
                   one_in(chance, 12) ? json_null() : value_of(chance, kind, fields));
        }
    }
    while (one_in(chance, 3)) {
        json_t *key = any_string(chance);
        json_object_set_new(object, json_string_value(key), any_value(chance, 3));
        json_decref(key);
    }
}

static json_t *any_object(struct chance *chance, const struct sw_kind *kind)
{
    static const struct sw_bind object_fields[] = {
        {.path = "/metadata/namespace", .type = SW_BIND_ENUM},
        {.path = "/metadata/uid", .type = SW_BIND_STRING},
        {.path = "/metadata/resourceVersion", .type = SW_BIND_STRING},
        {.path = "/metadata/generation", .type = SW_BIND_INT64},
        {.path = "/metadata/creationTimestamp", .type = SW_BIND_TIME},
        {.path = "/metadata/deletionTimestamp", .type = SW_BIND_TIME},
        {.path = "/metadata/labels", .type = SW_BIND_LABELS},
        {.path = "/metadata/annotations", .type = SW_BIND_LABELS},
        {.path = "/metadata/managedFields", .type = SW_BIND_HASH},
        SW_BIND_END,
    };
    static const struct sw_bind owner_fields[] = {
        {.path = "/uid", .type = SW_BIND_STRING},
        {.path = "/controller", .type = SW_BIND_BOOL},
        SW_BIND_END,
    };
    json_t *object = json_object();
    put_fields(chance, kind, object_fields, object);
    put_fields(chance, kind, kind->fields, object);
    if (one_in(chance, 2)) {
        put_at(chance, object, "/metadata/ownerReferences", any_list(chance, kind, owner_fields));
    }
    if (one_in(chance, 2)) {
        put_at(chance, object, "/kind", json_string(one_in(chance, 50) ? "Other" : kind->kind));
    }
    if (!one_in(chance, 50)) {
        put_at(chance, object, "/metadata/name", json_string("name"));
    }
    return object;
}

/* ---- text ---- */

static void put_text(struct sw_buf *buf, const char *text, size_t len)
{
    sw_assert(sw_buf_append(buf, text, len) == 0);
}

static void put_space(struct chance *chance, struct sw_buf *buf)
{
    while (one_in(chance, 12)) {
        put_text(buf, &" \t\n\r"[chance_below(chance, 4)], 1);
    }
}

static void put_unit(struct sw_buf *buf, unsigned unit, bool is_upper)
{
    sw_assert(sw_buf_printf(buf, is_upper ? "\\u%04X" : "\\u%04x", unit) == 0);
}

/* As \u, in two halves where it takes them. */
static void put_escaped(struct chance *chance, struct sw_buf *buf, uint32_t point)
{
    bool is_upper = one_in(chance, 2);
    if (point >= 0x10000) {
        put_unit(buf, 0xd800 + (point - 0x10000) / 0x400, is_upper);
        point = 0xdc00 + (point - 0x10000) % 0x400;
    }
    put_unit(buf, point, is_upper);
}

static uint32_t point_at(const unsigned char *p, size_t *ret_len)
{
    *ret_len = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    switch (*ret_len) {
    case 1:
        return p[0];
    case 2:
        return (p[0] & 0x1fU) << 6 | (p[1] & 0x3fU);
    case 3:
        return (p[0] & 0x0fU) << 12 | (p[1] & 0x3fU) << 6 | (p[2] & 0x3fU);
    default:
        return (p[0] & 0x07U) << 18 | (p[1] & 0x3fU) << 12 | (p[2] & 0x3fU) << 6 | (p[3] & 0x3fU);
    }
}

static void put_string(struct chance *chance, struct sw_buf *buf, const char *text)
{
    static const char letters[] = "\"\\/\b\f\n\r\t";
    static const char names[] = "\"\\/bfnrt";
    bool is_escaped = one_in(chance, 10); /* in every letter */
    put_text(buf, "\"", 1);
    while (*text) {
        size_t len;
        uint32_t point = point_at((const unsigned char *)text, &len);
        const char *short_form = strchr(letters, *text);
        if (short_form && (*text != '/' || one_in(chance, 2)) && !is_escaped) {
            put_text(buf, "\\", 1);
            put_text(buf, &names[short_form - letters], 1);
        } else if (point < 0x20 || is_escaped || one_in(chance, 100)) {
            put_escaped(chance, buf, point);
        } else {
            put_text(buf, text, len);
        }
        text += len;
    }
    put_text(buf, "\"", 1);
}

static void put_value(struct chance *chance, struct sw_buf *buf, json_t *value, json_t *other);

static void put_member(struct chance *chance, struct sw_buf *buf, const char *key, json_t *value,
                       json_t *other)
{
    put_space(chance, buf);
    put_string(chance, buf, key);
    put_space(chance, buf);
    put_text(buf, ":", 1);
    put_value(chance, buf, value, other);
}

static void put_object(struct chance *chance, struct sw_buf *buf, json_t *object, json_t *other)
{
    const char *key;
    json_t *value;
    bool is_first = true;
    put_text(buf, "{", 1);
    json_object_foreach(object, key, value)
    {
        json_t *twin = json_object_get(other, key);
        put_text(buf, ",", is_first ? 0 : 1);
        is_first = false;
        if (twin && one_in(chance, 40)) {
            put_member(chance, buf, key, twin, NULL);
            put_text(buf, ",", 1);
        }
        put_member(chance, buf, key, value, twin);
    }
    put_space(chance, buf);
    put_text(buf, "}", 1);
}

static void put_array(struct chance *chance, struct sw_buf *buf, json_t *array)
{
    size_t i;
    json_t *value;
    put_text(buf, "[", 1);
    json_array_foreach(array, i, value)
    {
        put_text(buf, ",", i > 0 ? 1 : 0);
        put_value(chance, buf, value, NULL);
    }
    put_space(chance, buf);
    put_text(buf, "]", 1);
}

/* other: what the second document has in this place; NULL. */
static void put_value(struct chance *chance, struct sw_buf *buf, json_t *value, json_t *other)
{
    put_space(chance, buf);
    if (json_is_object(value)) {
        put_object(chance, buf, value, other);
    } else if (json_is_array(value)) {
        put_array(chance, buf, value);
    } else if (json_is_string(value)) {
        put_string(chance, buf, json_string_value(value));
    } else {
        char *text = json_dumps(value, JSON_ENCODE_ANY);
        put_text(buf, text, strlen(text));
        free(text);
    }
    put_space(chance, buf);
}

void generate_object(struct chance *chance, const struct sw_kind *kind, struct sw_buf *buf)
{
    json_t *object = any_object(chance, kind);
    json_t *other = one_in(chance, 4) ? any_object(chance, kind) : NULL;
    put_value(chance, buf, object, other);
    json_decref(other);
    json_decref(object);
}
