/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the values that are bound, one function for each type. null never comes here: it counts as
 * absent. In arrays and in objects of strings a null is left out.
 */
#include <stdio.h>
#include <string.h>

#include "base/time.h"
#include "base/util.h"
#include "kube/siphash.h"
#include "kube/table.h"

const struct sw_bind sw_condition_fields[] = {
    SW_BIND("/type", SW_BIND_ENUM, struct sw_condition, type),
    SW_BIND("/status", SW_BIND_ENUM, struct sw_condition, status),
    SW_BIND("/reason", SW_BIND_ENUM, struct sw_condition, reason),
    SW_BIND("/message", SW_BIND_STRING, struct sw_condition, message),
    SW_BIND("/lastUpdateTime", SW_BIND_TIME, struct sw_condition, last_update_us),
    SW_BIND("/lastTransitionTime", SW_BIND_TIME, struct sw_condition, last_transition_us),
    SW_BIND("/observedGeneration", SW_BIND_INT64, struct sw_condition, observed_generation),
    SW_BIND_END,
};

const struct sw_bind sw_owner_fields[] = {
    SW_BIND("/uid", SW_BIND_STRING, struct sw_owner, uid),
    SW_BIND("/controller", SW_BIND_BOOL, struct sw_owner, is_controller),
    SW_BIND_END,
};

/* ---- strings ---- */

/* Notes a text; its place in the list stands for it until the run is settled. */
static uintptr_t note(struct sw_run *run, const struct sw_text *text)
{
    uintptr_t index = run->texts.len / sizeof(*text);
    memcpy(sw_area_push(&run->texts, sizeof(*text)), text, sizeof(*text));
    return index;
}

static void reserve(struct sw_run *run, const struct sw_text *text)
{
    run->string_bytes += text->size > 0 ? (size_t)text->size + 1 : 0;
}

static bool read_text(struct sw_run *run, struct sw_text *ret_text)
{
    if (sw_scan_peek(run->scan) != '"') {
        return sw_run_mistyped(run, "a string");
    }
    const char *start = run->scan->at;
    if (!sw_scan_string(run->scan, ret_text)) {
        return false;
    }
    if (sw_text_has_nul(ret_text)) {
        run->scan->at = start;
        return sw_scan_fail(run->scan, "\\u0000 in a string"); /* C would see its end there */
    }
    return true;
}

static bool read_string(struct sw_run *run, const struct sw_slot *slot, struct sw_place place)
{
    struct sw_text text;
    if (!read_text(run, &text)) {
        return false;
    }
    if (slot->type == SW_BIND_STRING) {
        reserve(run, &text);
    }
    uintptr_t index = note(run, &text);
    SW_PLACE_PUT(place, slot->offset, index);
    return true;
}

/* ---- numbers, booleans, times ---- */

static bool read_integer(struct sw_run *run, const char *expected, int64_t *ret_value)
{
    struct sw_number number;
    char first = sw_scan_peek(run->scan);
    const char *start = run->scan->at;
    if (first != '-' && (first < '0' || first > '9')) {
        return sw_run_mistyped(run, expected);
    }
    if (!sw_scan_number(run->scan, &number)) {
        return false;
    }
    if (!number.is_integer || !number.is_in_range) {
        run->scan->at = start;
        return sw_scan_fail(run->scan,
                            number.is_integer ? "integer out of range" : "expected an integer");
    }
    *ret_value = number.integer;
    return true;
}

static bool read_int32(struct sw_run *run, int32_t *ret_value)
{
    int64_t value = 0;
    const char *start = run->scan->at;
    if (!read_integer(run, "an integer", &value)) {
        return false;
    }
    if (value < INT32_MIN || value > INT32_MAX) {
        run->scan->at = start;
        return sw_scan_fail(run->scan, "integer out of range");
    }
    *ret_value = (int32_t)value;
    return true;
}

static bool read_bool(struct sw_run *run, bool *ret_value)
{
    char first = sw_scan_peek(run->scan);
    if (first != 't' && first != 'f') {
        return sw_run_mistyped(run, "a boolean");
    }
    *ret_value = first == 't';
    return sw_scan_word(run->scan, first == 't' ? "true" : "false");
}

/* The plain text of a short string; false where it does not fit. */
static bool short_text(const struct sw_text *text, char *room, size_t size)
{
    if (text->size >= size) {
        return false;
    }
    sw_text_copy(text, room);
    room[text->size] = 0;
    return true;
}

static bool read_time(struct sw_run *run, int64_t *ret_us)
{
    struct sw_text text;
    char room[64]; /* 35 with nanoseconds and an offset */
    sw_scan_peek(run->scan);
    const char *start = run->scan->at;
    if (!read_text(run, &text)) {
        return false;
    }
    if (!short_text(&text, room, sizeof(room)) || sw_time_parse(room, text.size, ret_us) != 0) {
        run->scan->at = start;
        return sw_scan_fail(run->scan, "not a time of RFC 3339");
    }
    return true;
}

/* "25%": digits and a percent sign, as the API server wants it. */
static bool parse_percent(const char *text, int32_t *ret_value)
{
    int32_t value = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *p - '0', &value)) {
            return false;
        }
    }
    *ret_value = value;
    return p > text && p[0] == '%' && p[1] == 0;
}

static bool read_int_or_percent(struct sw_run *run, struct sw_int_or_percent *ret_value)
{
    struct sw_text text;
    char room[32];
    ret_value->is_set = true;
    if (sw_scan_peek(run->scan) != '"') {
        return read_int32(run, &ret_value->value);
    }
    const char *start = run->scan->at;
    if (!read_text(run, &text)) {
        return false;
    }
    ret_value->is_percent = true;
    if (!short_text(&text, room, sizeof(room)) || !parse_percent(room, &ret_value->value)) {
        run->scan->at = start;
        return sw_scan_fail(run->scan, "neither an integer nor a percentage");
    }
    return true;
}

/* ---- whole values ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* What servers before 1.34 write into every template, and later ones leave out: an upgrade of the
 * API server makes no other template of it. */
static const char unset_time[] = "\"creationTimestamp\":null";

/* A value that was checked, without white space between its tokens. */
static void hash_tight(struct sw_siphash *hash, const char *p, const char *end)
{
    size_t len = sizeof(unset_time) - 1;
    const char *found;
    while ((found = memmem(p, (size_t)(end - p), unset_time, len)) != NULL) {
        const char *upto = found;
        const char *rest = found + len;
        if (found == p || found[-1] == '{') {
            rest += *rest == ',';
        } else if (found[-1] == ',') {
            upto--;
        } else {
            upto = rest; /* the end of a longer key: its first quote is escaped */
        }
        sw_siphash_add(hash, p, (size_t)(upto - p));
        p = rest;
    }
    sw_siphash_add(hash, p, (size_t)(end - p));
}

/* Tokens of a value that was checked, without what stands between them. No server sends such. */
static void hash_spaced(struct sw_siphash *hash, const char *p, const char *end)
{
    char *tight = sw_malloc((size_t)(end - p));
    size_t len = 0;
    while (p < end) {
        const char *token = p;
        while (p < end && !is_space(*p)) {
            const char *why;
            bool is_string = *p++ == '"';
            p += is_string ? sw_span_string(p, (size_t)(end - p), &why) : 0;
        }
        memcpy(tight + len, token, (size_t)(p - token));
        len += (size_t)(p - token);
        while (p < end && is_space(*p)) {
            p++;
        }
    }
    hash_tight(hash, tight, tight + len);
    sw_free(tight);
}

static bool read_hash(struct sw_run *run, struct sw_hash128 *ret_hash)
{
    struct sw_siphash hash;
    sw_scan_peek(run->scan);
    const char *start = run->scan->at;
    bool had_space = run->scan->has_space;
    run->scan->has_space = false;
    if (!sw_scan_value(run->scan)) {
        return false;
    }
    sw_siphash_init(&hash, NULL);
    if (run->scan->has_space) {
        hash_spaced(&hash, start, run->scan->at);
    } else {
        hash_tight(&hash, start, run->scan->at);
    }
    run->scan->has_space |= had_space;
    sw_siphash_done(&hash, &ret_hash->high, &ret_hash->low);
    return true;
}

static bool read_raw(struct sw_run *run, const struct sw_slot *slot, struct sw_place place)
{
    sw_scan_peek(run->scan);
    const char *start = run->scan->at;
    if (!sw_scan_value(run->scan)) {
        return false;
    }
    uint32_t len = (uint32_t)(run->scan->at - start);
    if (len > slot->limit) {
        run->scan->at = start;
        return sw_scan_fail(run->scan, "more text than is accepted here");
    }
    struct sw_text text = {start, len, len}; /* with its escapes */
    uintptr_t index = note(run, &text);
    reserve(run, &text);
    SW_PLACE_PUT(place, slot->offset + offsetof(struct sw_raw, text), index);
    SW_PLACE_PUT(place, slot->offset + offsetof(struct sw_raw, len), len);
    return true;
}

/* ---- arrays ---- */

/* What is on the stack from base on becomes an array; the stack is as before. All of the bound
 * pairs of pointer and count have the layout of struct sw_list. */
static void finish_array(struct sw_run *run, size_t base, size_t size, struct sw_place place,
                         size_t offset)
{
    struct sw_list list = {NULL, (uint32_t)((run->stack.len - base) / size)};
    uintptr_t at = sw_area_align(&run->arrays);
    size_t bytes = list.count * size;
    if (bytes > 0) {
        memcpy(sw_area_push(&run->arrays, bytes), run->stack.bytes + base, bytes);
    }
    run->stack.len = base;
    SW_PLACE_PUT(place, offset + offsetof(struct sw_list, at), at);
    SW_PLACE_PUT(place, offset + offsetof(struct sw_list, count), list.count);
}

static bool is_over(struct sw_run *run, const struct sw_slot *slot, size_t count)
{
    return count > slot->limit && !sw_scan_fail(run->scan, "more entries than are accepted here");
}

static bool enter(struct sw_run *run, char bracket)
{
    if (sw_scan_peek(run->scan) != bracket) {
        return sw_run_mistyped(run, bracket == '{' ? "an object" : "an array");
    }
    return sw_scan_enter(run->scan, bracket);
}

static bool is_null(struct sw_run *run)
{
    return sw_scan_peek(run->scan) == 'n';
}

static bool read_strings(struct sw_run *run, const struct sw_slot *slot, struct sw_place place)
{
    bool is_first = true;
    size_t base = sw_area_align(&run->stack);
    if (!enter(run, '[')) {
        return false;
    }
    for (size_t count = 0; sw_scan_next_element(run->scan, &is_first);) {
        struct sw_text text;
        if (is_null(run)) {
            if (!sw_scan_word(run->scan, "null")) {
                return false;
            }
            continue;
        }
        if (is_over(run, slot, ++count) || !read_text(run, &text)) {
            return false;
        }
        reserve(run, &text);
        uintptr_t index = note(run, &text);
        memcpy(sw_area_push(&run->stack, sizeof(index)), &index, sizeof(index));
    }
    finish_array(run, base, sizeof(const char *), place, slot->offset);
    return !run->scan->why;
}

/* "/spec/list" and "/size" in its third element: "/spec/list/2/size". A long path is cut. */
static void prefix_path(struct sw_run *run, const struct sw_slot *slot, size_t index)
{
    char inner[sizeof(run->path)];
    size_t most = sizeof(inner) - 1;
    memcpy(inner, run->path, sizeof(inner));
    int len = snprintf(run->path, sizeof(run->path), "%s/%zu", slot->path, index);
    size_t used = SW_MIN((size_t)SW_MAX(len, 0), most);
    size_t more = SW_MIN(strlen(inner), most - used);
    memcpy(run->path + used, inner, more);
    run->path[used + more] = 0;
}

static bool read_list(struct sw_run *run, const struct sw_slot *slot, struct sw_place place)
{
    bool is_first = true;
    const struct sw_table *table = slot->element;
    size_t base = sw_area_align(&run->stack);
    if (!enter(run, '[')) {
        return false;
    }
    for (size_t i = 0, count = 0; sw_scan_next_element(run->scan, &is_first); i++) {
        if (is_null(run)) {
            if (!sw_scan_word(run->scan, "null")) {
                return false;
            }
            continue;
        }
        if (is_over(run, slot, ++count)) {
            return false;
        }
        struct sw_place element = {&run->stack, run->stack.len};
        memcpy(sw_area_push(&run->stack, table->size), table->blank, table->size);
        if (!sw_run_object(run, table, element)) {
            prefix_path(run, slot, i);
            return false;
        }
        run->stack.len = element.at + table->size; /* without what arrays in it were padded with */
    }
    finish_array(run, base, table->size, place, slot->offset);
    return !run->scan->why;
}

/* metadata.ownerReferences: the uid of the first that is a controller. */
static bool read_controller(struct sw_run *run, const struct sw_slot *slot, struct sw_place place)
{
    bool is_found = false;
    size_t bytes_before = run->string_bytes;
    struct sw_place owners = {&run->arrays, sw_area_align(&run->arrays)};
    size_t arrays_before = run->arrays.len;
    struct sw_list list;
    sw_area_push(&run->arrays, sizeof(list));
    struct sw_slot as_list = *slot;
    as_list.offset = 0;
    if (!read_list(run, &as_list, owners)) {
        return false;
    }
    memcpy(&list, run->arrays.bytes + owners.at, sizeof(list));
    const char *at = run->arrays.bytes + (uintptr_t)list.at;
    run->string_bytes = bytes_before;
    for (uint32_t i = 0; i < list.count && !is_found; i++) {
        struct sw_owner owner;
        memcpy(&owner, at + i * sizeof(owner), sizeof(owner));
        if (owner.is_controller) {
            is_found = true;
            SW_PLACE_PUT(place, slot->offset, owner.uid);
            struct sw_text text;
            memcpy(&text, run->texts.bytes + (uintptr_t)owner.uid * sizeof(text), sizeof(text));
            run->string_bytes += (uintptr_t)owner.uid ? (size_t)text.size + 1 : 0;
        }
    }
    run->arrays.len = arrays_before;
    return true;
}

/* ---- labels ---- */

/* Whole keys, and prefixes that end in a slash. */
static bool is_wanted(const struct sw_run *run, const char *key, size_t key_len)
{
    for (const char *const *wanted = run->annotations; wanted && *wanted; wanted++) {
        size_t len = strlen(*wanted);
        bool is_prefix = len > 0 && (*wanted)[len - 1] == '/';
        if ((is_prefix ? key_len >= len : key_len == len) && memcmp(key, *wanted, len) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_kept(const struct sw_run *run, const struct sw_text *key)
{
    if (key->size == key->len) {
        return is_wanted(run, key->at, key->len);
    }
    char *plain = sw_malloc(key->size + 1); /* written with escapes: rare */
    sw_text_copy(key, plain);
    bool is_it = is_wanted(run, plain, key->size);
    sw_free(plain);
    return is_it;
}

/* Pairs of numbers of texts; a value of 0 says that this key is absent after all. */
struct pair {
    uintptr_t key, value;
};

static bool read_pair(struct sw_run *run, const struct sw_slot *slot, const struct sw_text *key)
{
    struct sw_text text;
    struct pair pair = {note(run, key), 0};
    if (sw_text_has_nul(key)) {
        return sw_scan_fail(run->scan, "\\u0000 in a key");
    }
    if (is_null(run)) {
        if (!sw_scan_word(run->scan, "null")) {
            return false;
        }
    } else {
        if (!read_text(run, &text)) {
            return false;
        }
        if (slot->type != SW_BIND_LABELS) { /* whose values are interned */
            reserve(run, &text);
        }
        pair.value = note(run, &text);
    }
    memcpy(sw_area_push(&run->stack, sizeof(pair)), &pair, sizeof(pair));
    return true;
}

static bool read_labels(struct sw_run *run, const struct sw_slot *slot, struct sw_place place)
{
    bool is_first = true;
    struct sw_text key;
    size_t base = sw_area_align(&run->stack);
    if (!enter(run, '{')) {
        return false;
    }
    for (size_t count = 0; sw_scan_next_member(run->scan, &is_first, &key);) {
        if (slot->type == SW_BIND_ANNOTATIONS && !is_kept(run, &key)) {
            if (!sw_scan_skip(run->scan)) {
                return false;
            }
            continue;
        }
        if (is_over(run, slot, ++count) || !read_pair(run, slot, &key)) {
            return false;
        }
    }
    finish_array(run, base, sizeof(struct pair), place, slot->offset);
    return !run->scan->why;
}

/* ---- by type ---- */

static bool read_scalar(struct sw_run *run, const struct sw_slot *slot, struct sw_place place)
{
    union {
        int32_t narrow;
        int64_t wide;
        bool truth;
        struct sw_int_or_percent amount;
        struct sw_hash128 hash;
    } value = {0};
    bool is_read;
    switch (slot->type) {
    case SW_BIND_INT32:
        is_read = read_int32(run, &value.narrow);
        break;
    case SW_BIND_INT64:
        is_read = read_integer(run, "an integer", &value.wide);
        break;
    case SW_BIND_BOOL:
        is_read = read_bool(run, &value.truth);
        break;
    case SW_BIND_TIME:
        is_read = read_time(run, &value.wide);
        break;
    case SW_BIND_INT_OR_PERCENT:
        value.amount = (struct sw_int_or_percent){0};
        is_read = read_int_or_percent(run, &value.amount);
        break;
    case SW_BIND_HASH:
        is_read = read_hash(run, &value.hash);
        break;
    default:
        sw_assert(slot->type == SW_BIND_PRESENT);
        value.truth = true;
        is_read = sw_scan_skip(run->scan);
    }
    memcpy(place.area->bytes + place.at + slot->offset, &value, slot->size);
    return is_read;
}

bool sw_run_slot(struct sw_run *run, const struct sw_slot *slot, struct sw_place place)
{
    switch (slot->type) {
    case SW_BIND_STRING:
    case SW_BIND_ENUM:
        return read_string(run, slot, place);
    case SW_BIND_STRINGS:
        return read_strings(run, slot, place);
    case SW_BIND_LABELS:
    case SW_BIND_ANNOTATIONS:
    case SW_BIND_VALUES:
        return read_labels(run, slot, place);
    case SW_BIND_LIST:
    case SW_BIND_CONDITIONS:
        return read_list(run, slot, place);
    case SW_BIND_CONTROLLER:
        return read_controller(run, slot, place);
    case SW_BIND_RAW:
        return read_raw(run, slot, place);
    case SW_BIND_OBJECT:
        return run->on_object(run, slot->limit);
    default:
        return read_scalar(run, slot, place);
    }
}
