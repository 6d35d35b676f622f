/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a run's scratch memory to one block: the struct, behind it the arrays, behind them the
 * strings. Here the numbers that stood for texts and arrays become pointers, and what repeats from
 * object to object is interned. What a key that came twice left in the arrays is copied too and
 * lies idle: rare, and not worth a second way of doing this.
 */
#include <stdlib.h>
#include <string.h>

#include <slipway/arena.h>

#include "base/map.h"
#include "base/util.h"
#include "kube/table.h"

struct settling {
    const struct sw_run *run;
    struct sw_intern *intern;
    char *arrays;
    char *strings; /* where the next one goes */
};

static size_t round8(size_t size)
{
    return (size + 7) & ~(size_t)7;
}

size_t sw_run_size(const struct sw_run *run)
{
    return round8(run->kept) + round8(run->arrays.len) + run->string_bytes;
}

static const struct sw_text *text_at(const struct sw_run *run, uintptr_t index)
{
    return (const struct sw_text *)(const void *)run->texts.bytes + index;
}

const struct sw_text *sw_run_text(const struct sw_run *run, size_t offset)
{
    uintptr_t index;
    if (run->root.len == 0) {
        return NULL;
    }
    memcpy(&index, run->root.bytes + offset, sizeof(index));
    return index ? text_at(run, index) : NULL;
}

/* ---- strings ---- */

static uintptr_t number_in(const char *member)
{
    uintptr_t number;
    memcpy(&number, member, sizeof(number));
    return number;
}

static void put_pointer(char *member, const void *pointer)
{
    memcpy(member, &pointer, sizeof(pointer));
}

static const char *copy_text(struct settling *s, uintptr_t index)
{
    const struct sw_text *text = text_at(s->run, index);
    if (index == 0 || text->size == 0) {
        return sw_empty;
    }
    char *to = s->strings;
    sw_text_copy(text, to);
    to[text->size] = 0;
    s->strings += text->size + 1;
    return to;
}

static const char *intern_text(struct settling *s, uintptr_t index)
{
    const struct sw_text *text = text_at(s->run, index);
    if (index == 0 || text->size == 0) {
        return sw_empty;
    }
    if (text->size == text->len) {
        return sw_intern_ref(s->intern, text->at, text->len);
    }
    char *plain = sw_malloc(text->size); /* with escapes: rare */
    sw_text_copy(text, plain);
    const char *interned = sw_intern_ref(s->intern, plain, text->size);
    sw_free(plain);
    return interned;
}

static void unref(struct sw_intern *intern, const char *text)
{
    if (text != sw_empty) {
        sw_intern_unref(intern, text);
    }
}

/* ---- labels ---- */

struct sorted_label {
    struct sw_label label; /* value NULL: absent after all */
    uint32_t at;
};

static int compare_labels(const void *a, const void *b)
{
    const struct sorted_label *left = a;
    const struct sorted_label *right = b;
    int order = strcmp(left->label.key, right->label.key);
    return order ? order : left->at < right->at ? -1 : 1;
}

/* Sorts, and leaves of equal keys the last. Returns how many remain. */
static uint32_t sort_labels(struct settling *s, int type, struct sw_label *labels, uint32_t count)
{
    struct sorted_label *sorted = sw_calloc(count, sizeof(*sorted));
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        sorted[i] = (struct sorted_label){labels[i], i};
    }
    qsort(sorted, count, sizeof(*sorted), compare_labels);
    for (uint32_t i = 0; i < count; i++) {
        const struct sw_label *label = &sorted[i].label;
        bool is_last = i + 1 == count || strcmp(label->key, sorted[i + 1].label.key) != 0;
        if (is_last && label->value) {
            labels[kept++] = *label;
        } else {
            unref(s->intern, label->key);
            unref(s->intern, type == SW_BIND_LABELS && label->value ? label->value : sw_empty);
        }
    }
    sw_free(sorted);
    return kept;
}

/* The API server prints the keys in order; then nothing has to be done. */
static bool is_sorted(const struct sw_label *labels, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!labels[i].value || (i > 0 && strcmp(labels[i - 1].key, labels[i].key) >= 0)) {
            return false;
        }
    }
    return true;
}

static void unref_labels(struct sw_intern *intern, int type, const struct sw_label *labels,
                         uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        unref(intern, labels[i].key);
        if (type == SW_BIND_LABELS) {
            unref(intern, labels[i].value);
        }
    }
}

static uint32_t settle_labels(struct settling *s, int type, struct sw_label *labels, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uintptr_t key = (uintptr_t)labels[i].key;
        uintptr_t value = (uintptr_t)labels[i].value;
        labels[i].key = intern_text(s, key);
        labels[i].value = value == 0               ? NULL
                          : type == SW_BIND_LABELS ? intern_text(s, value)
                                                   : copy_text(s, value);
    }
    return is_sorted(labels, count) ? count : sort_labels(s, type, labels, count);
}

/* ---- structs ---- */

static void settle_struct(struct settling *s, const struct sw_table *table, size_t kept,
                          char *base);

static void settle_array(struct settling *s, const struct sw_slot *slot, char *member)
{
    struct sw_list list;
    memcpy(&list, member, sizeof(list));
    char *at = s->arrays + (uintptr_t)list.at;
    if (list.count > 0 && slot->element) {
        for (uint32_t i = 0; i < list.count; i++) {
            settle_struct(s, slot->element, slot->element->size, at + i * slot->element->size);
        }
    } else if (list.count > 0 && slot->type == SW_BIND_STRINGS) {
        for (uint32_t i = 0; i < list.count; i++) {
            char *string = at + i * sizeof(const char *);
            put_pointer(string, copy_text(s, number_in(string)));
        }
    } else if (list.count > 0) {
        struct sw_label *labels = (struct sw_label *)(void *)at;
        list.count = settle_labels(s, slot->type, labels, list.count);
    }
    list.at = list.count > 0 ? at : NULL;
    memcpy(member, &list, sizeof(list));
}

/* kept: the bytes of the struct that there are. */
static void settle_struct(struct settling *s, const struct sw_table *table, size_t kept, char *base)
{
    for (size_t i = 0; i < table->slot_count; i++) {
        const struct sw_slot *slot = &table->slots[i];
        char *member = base + slot->offset;
        if (slot->offset >= kept) {
            continue;
        }
        switch (slot->type) {
        case SW_BIND_STRING:
        case SW_BIND_CONTROLLER:
            put_pointer(member, copy_text(s, number_in(member)));
            break;
        case SW_BIND_ENUM:
            put_pointer(member, intern_text(s, number_in(member)));
            break;
        case SW_BIND_RAW:
            put_pointer(member, number_in(member) ? copy_text(s, number_in(member)) : NULL);
            break;
        case SW_BIND_STRINGS:
        case SW_BIND_LABELS:
        case SW_BIND_ANNOTATIONS:
        case SW_BIND_VALUES:
        case SW_BIND_CONDITIONS:
        case SW_BIND_LIST:
            settle_array(s, slot, member);
            break;
        default:
            break; /* a plain value */
        }
    }
}

void sw_run_settle(struct sw_run *run, struct sw_intern *intern, void *to)
{
    struct settling settling = {.run = run, .intern = intern};
    char *base = to;
    settling.arrays = base + round8(run->kept);
    settling.strings = settling.arrays + round8(run->arrays.len);
    memcpy(base, run->root.bytes, run->kept);
    if (run->arrays.len > 0) {
        memcpy(settling.arrays, run->arrays.bytes, run->arrays.len);
    }
    settle_struct(&settling, run->table, run->kept, base);
    sw_assert(settling.strings <= base + sw_run_size(run));
}

void *sw_run_settle_in(struct sw_run *run, struct sw_arena *arena)
{
    void *to = sw_arena_alloc(arena, sw_run_size(run));
    sw_run_settle(run, NULL, to);
    return to;
}

/* ---- giving back ---- */

static void release_array(const struct sw_slot *slot, struct sw_intern *intern, const char *member)
{
    struct sw_list list;
    memcpy(&list, member, sizeof(list));
    if (slot->element) {
        for (uint32_t i = 0; i < list.count; i++) {
            sw_table_release(slot->element, intern,
                             (const char *)list.at + i * slot->element->size);
        }
    } else if (slot->type != SW_BIND_STRINGS) {
        unref_labels(intern, slot->type, list.at, list.count);
    }
}

void sw_table_release(const struct sw_table *table, struct sw_intern *intern, const void *settled)
{
    for (size_t i = 0; i < table->slot_count; i++) {
        const struct sw_slot *slot = &table->slots[i];
        const char *member = (const char *)settled + slot->offset;
        const char *text;
        switch (slot->type) {
        case SW_BIND_ENUM:
            memcpy(&text, member, sizeof(text));
            unref(intern, text);
            break;
        case SW_BIND_STRINGS:
        case SW_BIND_LABELS:
        case SW_BIND_ANNOTATIONS:
        case SW_BIND_VALUES:
        case SW_BIND_CONDITIONS:
        case SW_BIND_LIST:
            release_array(slot, intern, member);
            break;
        default:
            break;
        }
    }
}
