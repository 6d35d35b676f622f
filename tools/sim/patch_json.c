/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON patch (RFC 6902) as the real server of v1.20 does it, which is more lenient than the RFC:
 * "replace" adds a member that is absent, "test" takes an absent member for null, and an index may
 * count from the end (-1). The texts are those that its clients see.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "document.h"
#include "patch.h"

/* Where an operation points: the member "key" of that object or list. */
struct place {
    json_t *holder;
    char *key;
};

static void place_done(struct place *place)
{
    free(place->key);
}

#define PLACE __attribute__((cleanup(place_done))) struct place

/* RFC 6901: ~1 is /, ~0 is ~. */
static char *decode_key(const char *text, size_t len)
{
    char *key = sw_malloc(len + 1);
    size_t at = 0;
    for (size_t i = 0; i < len; i++) {
        bool is_escape =
            text[i] == '~' && i + 1 < len && (text[i + 1] == '0' || text[i + 1] == '1');
        key[at++] = !is_escape ? text[i] : text[++i] == '0' ? '~' : '/';
    }
    key[at] = '\0';
    return key;
}

static bool parse_index(const char *key, long *ret_index)
{
    char *end;
    errno = 0;
    long index = strtol(key, &end, 10);
    if (end == key || *end || errno || *key == ' ') {
        return false;
    }
    *ret_index = index;
    return true;
}

/* NULL: it is not there. */
static json_t *get(json_t *holder, const char *key)
{
    if (json_is_object(holder)) {
        return json_object_get(holder, key);
    }
    long index;
    if (!parse_index(key, &index) || index < 0) {
        return NULL;
    }
    return json_array_get(holder, (size_t)index);
}

/* The holder may be absent, the member as well. */
static bool find(json_t *document, const char *path, struct place *ret_place)
{
    json_t *holder = document;
    if (*path != '/') {
        return false;
    }
    for (;;) {
        size_t len = strcspn(++path, "/");
        char *key = decode_key(path, len);
        path += len;
        if (!*path) {
            *ret_place = (struct place){.holder = holder, .key = key};
            return true;
        }
        holder = get(holder, key);
        sw_free(key);
        if (!json_is_object(holder) && !json_is_array(holder)) {
            return false;
        }
    }
}

static int bad_index(const char *verb, const char *path, const char *key, struct sw_error *error)
{
    long index;
    if (parse_index(key, &index)) {
        return sw_error_set(error, -EINVAL,
                            "error in %s for path: '%s': Unable to access invalid index: %ld: "
                            "invalid index referenced",
                            verb, path, index);
    }
    return sw_error_set(error, -EINVAL,
                        "error in %s for path: '%s': value was not a proper array index: '%s': "
                        "strconv.Atoi: parsing \"%s\": invalid syntax",
                        verb, path, key, key);
}

/* Takes value. */
static int add_take(const struct place *place, json_t *value, const char *verb, const char *path,
                    struct sw_error *error)
{
    if (json_is_object(place->holder)) {
        json_object_set_new(place->holder, place->key, value);
        return 0;
    }
    if (strcmp(place->key, "-") == 0) {
        json_array_append_new(place->holder, value);
        return 0;
    }
    long size = (long)json_array_size(place->holder) + 1;
    long index;
    if (!parse_index(place->key, &index) || index >= size || index < -size) {
        json_decref(value);
        return bad_index(verb, path, place->key, error);
    }
    json_array_insert_new(place->holder, (size_t)(index < 0 ? index + size : index), value);
    return 0;
}

static int drop(const struct place *place, const char *verb, const char *path,
                struct sw_error *error)
{
    if (json_is_object(place->holder)) {
        if (json_object_del(place->holder, place->key)) {
            return sw_error_set(error, -EINVAL,
                                "error in %s for path: '%s': Unable to remove nonexistent key: "
                                "%s: missing value",
                                verb, path, place->key);
        }
        return 0;
    }
    long size = (long)json_array_size(place->holder);
    long index;
    if (!parse_index(place->key, &index) || index >= size || index < -size) {
        return bad_index(verb, path, place->key, error);
    }
    json_array_remove(place->holder, (size_t)(index < 0 ? index + size : index));
    return 0;
}

/* ---- the operations ---- */

struct operation {
    json_t *document;
    const char *path, *from;
    json_t *value; /* borrowed; NULL: none was given */
};

static int do_add(const struct operation *op, struct sw_error *error)
{
    PLACE place = {0};
    if (!find(op->document, op->path, &place)) {
        return sw_error_set(error, -EINVAL,
                            "add operation does not apply: doc is missing path: \"%s\": missing "
                            "value",
                            op->path);
    }
    json_t *value = op->value ? json_deep_copy(op->value) : json_null();
    return add_take(&place, value, "add", op->path, error);
}

static int do_remove(const struct operation *op, struct sw_error *error)
{
    PLACE place = {0};
    if (!find(op->document, op->path, &place)) {
        return sw_error_set(error, -EINVAL,
                            "remove operation does not apply: doc is missing path: \"%s\": "
                            "missing value",
                            op->path);
    }
    return drop(&place, "remove", op->path, error);
}

static int do_replace(const struct operation *op, struct sw_error *error)
{
    PLACE place = {0};
    if (!find(op->document, op->path, &place)) {
        return sw_error_set(error, -EINVAL,
                            "replace operation does not apply: doc is missing path: %s: missing "
                            "value",
                            op->path);
    }
    json_t *value = op->value ? json_deep_copy(op->value) : json_null();
    if (json_is_object(place.holder)) {
        json_object_set_new(place.holder, place.key, value);
        return 0;
    }
    long index;
    if (!get(place.holder, place.key) || !parse_index(place.key, &index)) {
        json_decref(value);
        return sw_error_set(error, -EINVAL,
                            "replace operation does not apply: doc is missing key: %s: missing "
                            "value",
                            op->path);
    }
    json_array_set_new(place.holder, (size_t)index, value);
    return 0;
}

/* The value at from as a new reference, for copy and move. */
static int take_from(const struct operation *op, bool is_move, json_t **ret_value,
                     struct sw_error *error)
{
    const char *verb = is_move ? "move" : "copy";
    PLACE place = {0};
    if (!find(op->document, op->from, &place)) {
        return sw_error_set(error, -EINVAL,
                            "%s operation does not apply: doc is missing from path: %s: missing "
                            "value",
                            verb, op->from);
    }
    json_t *value = get(place.holder, place.key);
    if (!value && json_is_array(place.holder)) {
        return bad_index(verb, op->from, place.key, error);
    }
    value = value ? json_deep_copy(value) : json_null();
    int code = is_move ? drop(&place, verb, place.key, error) : 0;
    if (code) {
        json_decref(value);
        return code;
    }
    *ret_value = value;
    return 0;
}

static int do_transfer(const struct operation *op, bool is_move, struct sw_error *error)
{
    json_t *value = NULL;
    int code = take_from(op, is_move, &value, error);
    if (code) {
        return code;
    }
    PLACE place = {0};
    if (!find(op->document, op->path, &place)) {
        json_decref(value);
        return sw_error_set(error, -EINVAL,
                            "%s operation does not apply: doc is missing destination path: %s: "
                            "missing value",
                            is_move ? "move" : "copy", op->path);
    }
    return add_take(&place, value, is_move ? "move" : "copy", op->path, error);
}

static int do_test(const struct operation *op, struct sw_error *error)
{
    PLACE place = {0};
    if (!find(op->document, op->path, &place)) {
        return sw_error_set(error, -EINVAL,
                            "test operation does not apply: is missing path: %s: missing value",
                            op->path);
    }
    const json_t *value = get(place.holder, place.key);
    if (!value && json_is_array(place.holder)) {
        return bad_index("test", op->path, place.key, error);
    }
    bool is_absent = !value || json_is_null(value);
    bool wants_absent = !op->value || json_is_null(op->value);
    if (is_absent && wants_absent) {
        return 0;
    }
    if (is_absent || wants_absent || !sw_sim_is_same(value, op->value)) {
        return sw_error_set(error, -EINVAL, "testing value %s failed: test failed", op->path);
    }
    return 0;
}

static int apply(json_t *document, const json_t *one, struct sw_error *error)
{
    const char *kind = json_string_value(json_object_get(one, "op"));
    struct operation op = {
        .document = document,
        .path = json_string_value(json_object_get(one, "path")),
        .from = json_string_value(json_object_get(one, "from")),
        .value = json_object_get(one, "value"),
    };
    kind = kind ? kind : "unknown";
    bool has_from = strcmp(kind, "move") == 0 || strcmp(kind, "copy") == 0;
    bool is_known = has_from || strcmp(kind, "add") == 0 || strcmp(kind, "remove") == 0 ||
                    strcmp(kind, "replace") == 0 || strcmp(kind, "test") == 0;
    if (!is_known) {
        return sw_error_set(error, -EINVAL, "Unexpected kind: %s", kind);
    }
    if (has_from && !op.from) {
        return sw_error_set(error, -EINVAL,
                            "%s operation failed to decode from: operation, missing from field: "
                            "missing value",
                            kind);
    }
    if (!op.path) {
        return sw_error_set(error, -EINVAL, "%s operation failed to decode path: missing value",
                            kind);
    }
    switch (*kind) {
    case 'a':
        return do_add(&op, error);
    case 't':
        return do_test(&op, error);
    case 'r':
        return kind[2] == 'm' ? do_remove(&op, error) : do_replace(&op, error);
    default:
        return do_transfer(&op, *kind == 'm', error);
    }
}

json_t *sw_sim_json_patch(const json_t *document, const json_t *patch, struct sw_error *error)
{
    if (!json_is_array(patch)) {
        sw_error_set(error, -EINVAL,
                     "json: cannot unmarshal object into Go value of type jsonpatch.Patch");
        return NULL;
    }
    json_t *made = json_deep_copy(document);
    size_t i;
    json_t *one;
    json_array_foreach((json_t *)(uintptr_t)patch, i, one)
    {
        if (apply(made, one, error)) {
            json_decref(made);
            return NULL;
        }
    }
    return made;
}
