/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle: the same table, looked up path by path in the DOM. Hashes and raw texts need the
 * text itself; a naive walker finds them (it may be naive: jansson has accepted the text).
 */
#include "oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/time.h"
#include "kube/siphash.h"

struct check {
    const struct sw_kind *kind;
    bool is_bad; /* the text should have been refused */
    char why[300];
};

static const char *differs(struct check *check, const char *path, const char *what)
{
    if (!check->why[0]) {
        snprintf(check->why, sizeof(check->why), "%s: %s", path, what);
    }
    return check->why;
}

/* ---- the text ---- */

static const char *pass_space(const char *p, const char *end)
{
    while (p < end && strchr(" \t\r\n", *p)) {
        p++;
    }
    return p;
}

static const char *pass_string(const char *p)
{
    for (p++; *p != '"'; p++) {
        p += *p == '\\';
    }
    return p + 1;
}

static const char *pass_value(const char *p, const char *end)
{
    p = pass_space(p, end);
    if (*p == '"') {
        return pass_string(p);
    }
    if (*p != '{' && *p != '[') {
        while (p < end && !strchr(" \t\r\n,]}", *p)) {
            p++;
        }
        return p;
    }
    int depth = 0;
    do {
        depth += *p == '{' || *p == '[';
        depth -= *p == '}' || *p == ']';
        p = *p == '"' ? pass_string(p) : p + 1;
    } while (depth > 0);
    return p;
}

static bool is_key(const char *p, const char *end, const char *key, size_t len)
{
    json_t *string = json_loadb(p, (size_t)(end - p), JSON_DECODE_ANY, NULL);
    bool is_it = string && json_string_length(string) == len &&
                 memcmp(json_string_value(string), key, len) == 0;
    json_decref(string);
    return is_it;
}

/* The last member of that key in the object at p; NULL. */
static const char *member(const char *p, const char *end, const char *key, size_t len)
{
    const char *found = NULL;
    p = pass_space(p, end);
    if (*p != '{') {
        return NULL;
    }
    p = pass_space(p + 1, end);
    while (*p != '}') {
        const char *key_end = pass_string(p);
        bool is_it = is_key(p, key_end, key, len);
        p = pass_space(key_end, end) + 1;
        found = is_it ? pass_space(p, end) : found;
        p = pass_space(pass_value(p, end), end);
        p = *p == ',' ? pass_space(p + 1, end) : p;
    }
    return found;
}

/* One part of a JSON pointer, unescaped. Returns what is behind it. */
static const char *next_part(const char *path, char part[100])
{
    size_t len = 0;
    for (path++; *path && *path != '/'; path++) {
        part[len++] = *path == '~' ? (*++path == '0' ? '~' : '/') : *path;
    }
    part[len] = 0;
    return path;
}

static const char *text_at(const char *text, const char *end, const char *path)
{
    char part[100];
    while (text && *path) {
        path = next_part(path, part);
        text = member(text, end, part, strlen(part));
    }
    return text;
}

/* The tokens of a value, save members creationTimestamp that are null. Returns how many bytes. */
static size_t tokens_of(const char *p, const char *end, char *to)
{
    static const char unset[] = "\"creationTimestamp\"";
    char *const from = to;
    char close = *p == '{' ? '}' : ']';
    if (*p != '{' && *p != '[') {
        size_t len = (size_t)(pass_value(p, end) - p);
        memcpy(to, p, len);
        return len;
    }
    *to++ = *p;
    for (p = pass_space(p + 1, end); *p != close; p = *p == ',' ? pass_space(p + 1, end) : p) {
        char *const begin = to;
        if (to[-1] != '{' && to[-1] != '[') {
            *to++ = ',';
        }
        if (close == '}') {
            size_t len = (size_t)(pass_string(p) - p);
            bool is_unset = len == sizeof(unset) - 1 && memcmp(p, unset, len) == 0;
            memcpy(to, p, len);
            to[len] = ':';
            p = pass_space(pass_space(p + len, end) + 1, end);
            to = is_unset && *p == 'n' ? begin : to + len + 1;
            to += to == begin ? 0 : tokens_of(p, end, to);
        } else {
            to += tokens_of(p, end, to);
        }
        p = pass_space(pass_value(p, end), end);
    }
    *to++ = close;
    return (size_t)(to - from);
}

static struct sw_hash128 hash_of(const char *from, const char *end)
{
    struct sw_hash128 hash;
    struct sw_siphash state;
    size_t len = (size_t)(pass_value(from, end) - from);
    char *tokens = malloc(len + 1);
    if (!tokens) {
        abort();
    }
    sw_siphash_init(&state, NULL);
    sw_siphash_add(&state, tokens, tokens_of(from, end, tokens));
    sw_siphash_done(&state, &hash.high, &hash.low);
    free(tokens);
    return hash;
}

static int nesting(json_t *json)
{
    int most = 0;
    const char *key;
    json_t *value;
    size_t i;
    if (json_is_object(json)) {
        json_object_foreach(json, key, value)
        {
            int inner = nesting(value);
            most = inner > most ? inner : most;
        }
    } else if (json_is_array(json)) {
        json_array_foreach(json, i, value)
        {
            int inner = nesting(value);
            most = inner > most ? inner : most;
        }
    }
    return most + (json_is_object(json) || json_is_array(json));
}

/* ---- values ---- */

/* NULL: absent or null. What stands on the way and is no object is a mistake. */
static json_t *at_path(struct check *check, json_t *json, const char *path)
{
    char part[100];
    while (*path && json && !json_is_null(json)) {
        if (!json_is_object(json)) {
            check->is_bad = true;
            return NULL;
        }
        path = next_part(path, part);
        json = json_object_get(json, part);
    }
    return json_is_null(json) ? NULL : json;
}

static void check_string(struct check *check, const char *path, json_t *json, const char *have)
{
    check->is_bad |= json && !json_is_string(json);
    const char *want = json_is_string(json) ? json_string_value(json) : "";
    if (have && strcmp(have, want) != 0) {
        differs(check, path, "another string");
    }
}

static void check_integer(struct check *check, const struct sw_bind *bind, json_t *json,
                          int64_t low, int64_t high, const int64_t *have)
{
    int64_t want = bind->otherwise;
    if (json) {
        want = json_integer_value(json);
        check->is_bad |= !json_is_integer(json) || want < low || want > high;
    }
    if (have && *have != want) {
        differs(check, bind->path, "another integer");
    }
}

static void check_time(struct check *check, const char *path, json_t *json, const int64_t *have)
{
    int64_t want = 0;
    if (json) {
        check->is_bad |= !json_is_string(json) ||
                         sw_time_parse(json_string_value(json), json_string_length(json), &want);
    }
    if (have && *have != want) {
        differs(check, path, "another time");
    }
}

static void check_share(struct check *check, const char *path, json_t *json,
                        const struct sw_int_or_percent *have)
{
    struct sw_int_or_percent want = {.is_set = json != NULL};
    if (json_is_string(json)) {
        const char *text = json_string_value(json);
        size_t digits = strspn(text, "0123456789");
        char *end;
        long long value = strtoll(text, &end, 10);
        want.is_percent = true;
        want.value = (int32_t)value;
        check->is_bad |=
            digits == 0 || strcmp(text + digits, "%") != 0 || value < 0 || value > INT32_MAX;
    } else if (json) {
        json_int_t value = json_integer_value(json);
        want.value = (int32_t)value;
        check->is_bad |= !json_is_integer(json) || value < INT32_MIN || value > INT32_MAX;
    }
    if (have && (have->is_set != want.is_set || have->is_percent != want.is_percent ||
                 have->value != want.value)) {
        differs(check, path, "another integer or percentage");
    }
}

static void check_strings(struct check *check, const struct sw_bind *bind, json_t *json,
                          const struct sw_strings *have)
{
    size_t i;
    json_t *value;
    size_t count = 0;
    check->is_bad |= json && !json_is_array(json);
    json_array_foreach(json, i, value)
    {
        if (!json_is_null(value)) {
            check_string(check, bind->path, value,
                         have && count < have->count ? have->at[count] : NULL);
            count++;
        }
    }
    check->is_bad |= count > (bind->limit ? bind->limit : 10000);
    if (have && (have->count != count || (count == 0) != !have->at)) {
        differs(check, bind->path, "another number of strings");
    }
}

static bool is_kept(const struct check *check, const char *key)
{
    for (const char *const *a = check->kind->annotations; a && *a; a++) {
        size_t len = strlen(*a);
        if ((*a)[len - 1] == '/' ? strncmp(key, *a, len) == 0 : strcmp(key, *a) == 0) {
            return true;
        }
    }
    return false;
}

static void check_labels(struct check *check, const char *path, size_t limit, json_t *json,
                         bool only_kept, const struct sw_labels *have)
{
    const char *key;
    json_t *value;
    size_t count = 0;
    size_t listed = 0;
    check->is_bad |= json && !json_is_object(json);
    json_object_foreach(json, key, value)
    {
        if (only_kept && !is_kept(check, key)) {
            continue;
        }
        listed++;
        if (json_is_null(value)) {
            continue;
        }
        count++;
        check->is_bad |= !json_is_string(value);
        const char *there = NULL;
        for (uint32_t i = 0; have && i < have->count; i++) {
            there = strcmp(have->at[i].key, key) == 0 ? have->at[i].value : there;
        }
        if (have && (!there || strcmp(there, json_string_value(value)) != 0)) {
            differs(check, path, "another value of a key");
        }
    }
    check->is_bad |= listed > limit;
    if (have && have->count != count) {
        differs(check, path, "another number of keys");
    }
    for (uint32_t i = 1; have && i < have->count; i++) {
        if (strcmp(have->at[i - 1].key, have->at[i].key) >= 0) {
            differs(check, path, "not in order");
        }
    }
}

static void check_struct(struct check *check, const struct sw_bind *binds, json_t *json,
                         const char *text, const char *end, const char *base);

static const struct sw_bind condition_fields[] = {
    SW_BIND("/type", SW_BIND_ENUM, struct sw_condition, type),
    SW_BIND("/status", SW_BIND_ENUM, struct sw_condition, status),
    SW_BIND("/reason", SW_BIND_ENUM, struct sw_condition, reason),
    SW_BIND("/message", SW_BIND_STRING, struct sw_condition, message),
    SW_BIND("/lastUpdateTime", SW_BIND_TIME, struct sw_condition, last_update_us),
    SW_BIND("/lastTransitionTime", SW_BIND_TIME, struct sw_condition, last_transition_us),
    SW_BIND("/observedGeneration", SW_BIND_INT64, struct sw_condition, observed_generation),
    SW_BIND_END,
};

static void check_list(struct check *check, const struct sw_bind *bind, json_t *json,
                       const struct sw_list *have)
{
    bool are_conditions = bind->type == SW_BIND_CONDITIONS;
    const struct sw_bind *fields = are_conditions ? condition_fields : bind->element;
    size_t size = are_conditions ? sizeof(struct sw_condition) : bind->element_size;
    size_t i;
    json_t *value;
    size_t count = 0;
    check->is_bad |= json && !json_is_array(json);
    json_array_foreach(json, i, value)
    {
        if (json_is_null(value)) {
            continue;
        }
        check->is_bad |= !json_is_object(value);
        const char *at = have && count < have->count ? (const char *)have->at + count * size : NULL;
        check_struct(check, fields, value, NULL, NULL, at);
        count++;
    }
    check->is_bad |= count > (bind->limit ? bind->limit : 10000);
    if (have && have->count != count) {
        differs(check, bind->path, "another number of elements");
    }
}

static void check_raw(struct check *check, const struct sw_bind *bind, const char *text,
                      const char *end, const struct sw_raw *have)
{
    size_t len = text ? (size_t)(pass_value(text, end) - text) : 0;
    check->is_bad |= len > (bind->limit ? bind->limit : 65536);
    if (have && ((text != NULL) != (have->text != NULL) || have->len != len ||
                 (text && (memcmp(have->text, text, len) != 0 || have->text[len] != 0)))) {
        differs(check, bind->path, "another text");
    }
}

/* base NULL: only whether it is bad. text NULL: hashes and raw texts are not bound here. */
static void check_field(struct check *check, const struct sw_bind *bind, json_t *root,
                        const char *text, const char *end, const char *base)
{
    const void *have = base ? base + bind->offset : NULL;
    const char *path = bind->path;
    json_t *json = at_path(check, root, path);
    const char *at = text && json ? text_at(text, end, path) : NULL;
    int64_t wide = 0;
    struct sw_hash128 hash = {0, 0};
    if (have && bind->type == SW_BIND_INT32) {
        wide = *(const int32_t *)have;
    } else if (have && bind->type == SW_BIND_INT64) {
        wide = *(const int64_t *)have;
    }
    switch (bind->type) {
    case SW_BIND_STRING:
    case SW_BIND_ENUM:
        check_string(check, path, json, have ? *(const char *const *)have : NULL);
        break;
    case SW_BIND_INT32:
        check_integer(check, bind, json, INT32_MIN, INT32_MAX, have ? &wide : NULL);
        break;
    case SW_BIND_INT64:
        check_integer(check, bind, json, INT64_MIN, INT64_MAX, have ? &wide : NULL);
        break;
    case SW_BIND_BOOL:
        check->is_bad |= json && !json_is_boolean(json);
        if (have && *(const bool *)have != (json ? json_is_true(json) : bind->otherwise != 0)) {
            differs(check, path, "another boolean");
        }
        break;
    case SW_BIND_PRESENT:
        if (have && *(const bool *)have != (json != NULL)) {
            differs(check, path, "another presence");
        }
        break;
    case SW_BIND_TIME:
        check_time(check, path, json, have);
        break;
    case SW_BIND_INT_OR_PERCENT:
        check_share(check, path, json, have);
        break;
    case SW_BIND_STRINGS:
        check_strings(check, bind, json, have);
        break;
    case SW_BIND_LABELS:
        check_labels(check, path, bind->limit ? bind->limit : 10000, json, false, have);
        break;
    case SW_BIND_CONDITIONS:
    case SW_BIND_LIST:
        check_list(check, bind, json, have);
        break;
    case SW_BIND_HASH:
        hash = at ? hash_of(at, end) : hash;
        if (have && !sw_hash128_equal(*(const struct sw_hash128 *)have, hash)) {
            differs(check, path, "another hash");
        }
        break;
    case SW_BIND_RAW:
        check_raw(check, bind, at, end, have);
        break;
    case SW_BIND_NONE:
        abort();
    }
}

static void check_struct(struct check *check, const struct sw_bind *binds, json_t *json,
                         const char *text, const char *end, const char *base)
{
    for (; binds->path; binds++) {
        check_field(check, binds, json, text, end, base);
    }
}

/* ---- objects ---- */

static const struct sw_bind object_fields[] = {
    SW_BIND("/metadata/namespace", SW_BIND_ENUM, struct sw_object, namespace_),
    SW_BIND("/metadata/name", SW_BIND_STRING, struct sw_object, name),
    SW_BIND("/metadata/uid", SW_BIND_STRING, struct sw_object, uid),
    SW_BIND("/metadata/resourceVersion", SW_BIND_STRING, struct sw_object, resource_version),
    SW_BIND("/metadata/generation", SW_BIND_INT64, struct sw_object, generation),
    SW_BIND("/metadata/creationTimestamp", SW_BIND_TIME, struct sw_object, created_us),
    SW_BIND("/metadata/deletionTimestamp", SW_BIND_TIME, struct sw_object, deleted_us),
    SW_BIND("/metadata/labels", SW_BIND_LABELS, struct sw_object, labels),
    SW_BIND_END,
};

struct owner {
    const char *uid;
    bool is_controller;
};

static const struct sw_bind owner_fields[] = {
    SW_BIND("/uid", SW_BIND_STRING, struct owner, uid),
    SW_BIND("/controller", SW_BIND_BOOL, struct owner, is_controller),
    SW_BIND_END,
};

static void check_owner(struct check *check, json_t *root, const struct sw_object *object)
{
    static const struct sw_bind list = {
        .path = "/metadata/ownerReferences",
        .type = SW_BIND_LIST,
        .element = owner_fields,
        .element_size = sizeof(struct owner),
    };
    size_t i;
    json_t *owner;
    const char *want = NULL;
    json_t *owners = at_path(check, root, list.path);
    check_list(check, &list, owners, NULL);
    json_array_foreach(owners, i, owner)
    {
        if (!want && json_is_true(json_object_get(owner, "controller"))) {
            want = json_string_value(json_object_get(owner, "uid"));
            want = want ? want : "";
        }
    }
    if (object && strcmp(object->owner_uid, want ? want : "") != 0) {
        differs(check, list.path, "another owner");
    }
}

static void check_object(struct check *check, json_t *root, const char *text, const char *end,
                         const struct sw_object *object)
{
    const char *base = (const char *)object;
    json_t *kind = at_path(check, root, "/kind");
    json_t *name = at_path(check, root, "/metadata/name");
    check->is_bad |= !json_is_object(root) || nesting(root) > 200;
    check->is_bad |= kind && !json_is_string(kind);
    check->is_bad |=
        kind &&
        strcmp(json_string_value(kind) ? json_string_value(kind) : "", check->kind->kind) != 0 &&
        strcmp(json_string_value(kind) ? json_string_value(kind) : "", "PartialObjectMetadata") !=
            0;
    check->is_bad |= !json_is_string(name) || json_string_length(name) == 0;
    check_struct(check, object_fields, root, NULL, NULL, base);
    check_labels(check, "/metadata/annotations", 10000,
                 at_path(check, root, "/metadata/annotations"), true,
                 object ? &object->annotations : NULL);
    check_owner(check, root, object);
    check_struct(check, check->kind->fields, root, text, end, base);
}

const char *oracle_check(const struct sw_kind *kind, const char *text, size_t len,
                         const struct sw_object *object)
{
    static struct check check;
    check = (struct check){.kind = kind};
    json_t *root = json_loadb(text, len, 0, NULL);
    /* jansson swallows a NUL behind a number. */
    if (!root || (!object && memchr(text, 0, len))) {
        json_decref(root);
        return NULL;
    }
    json_t *unique = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
    check_object(&check, root, text, text + len, object);
    if (object && check.is_bad) {
        differs(&check, "accepted", "should have been refused");
    } else if (!object && !check.is_bad && unique) {
        differs(&check, "refused", "should have been accepted");
    } else if (!object) {
        check.why[0] = 0;
    }
    json_decref(unique);
    json_decref(root);
    return check.why[0] ? check.why : NULL;
}
