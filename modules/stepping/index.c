/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two hash tables over the same entries; they double together.
 */
#include "index.h"

#include <string.h>

#include <slipway/memory.h>

#include "target.h"

struct step_index {
    struct step_entry **by_name, **by_target;
    size_t slot_count; /* a power of two */
    size_t count;
    uint64_t number;
};

/* FNV-1a. */
static uint64_t mix(uint64_t hash, const char *text)
{
    do {
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    } while (*text++);
    return hash;
}

static size_t slot_of(const struct step_index *index, unsigned kind, const char *namespace_,
                      const char *name)
{
    uint64_t hash = mix(mix(UINT64_C(14695981039346656037) + kind, namespace_), name);

    return (size_t)(hash ^ hash >> 32) & (index->slot_count - 1);
}

static struct step_entry **name_slot(const struct step_index *index, const char *namespace_,
                                     const char *name)
{
    return &index->by_name[slot_of(index, 0, namespace_, name)];
}

static struct step_entry **target_slot(const struct step_index *index, enum step_target_kind kind,
                                       const char *namespace_, const char *name)
{
    return &index->by_target[slot_of(index, (unsigned)kind, namespace_, name)];
}

static void link_target(struct step_index *index, struct step_entry *entry)
{
    struct step_entry **slot;

    if (!entry->has_target)
        return;
    slot = target_slot(index, entry->target_kind, entry->namespace_, entry->target_name);
    entry->next_by_target = *slot;
    *slot = entry;
}

static void unlink_target(struct step_index *index, struct step_entry *entry)
{
    struct step_entry **slot;

    if (!entry->has_target)
        return;
    slot = target_slot(index, entry->target_kind, entry->namespace_, entry->target_name);
    while (*slot != entry)
        slot = &(*slot)->next_by_target;
    *slot = entry->next_by_target;
}

static void make_tables(struct step_index *index, size_t slot_count)
{
    index->slot_count = slot_count;
    index->by_name = sw_calloc(slot_count, sizeof(struct step_entry *));
    index->by_target = sw_calloc(slot_count, sizeof(struct step_entry *));
}

struct step_index *step_index_new(void)
{
    struct step_index *index = SW_NEW(struct step_index);

    make_tables(index, 64);
    return index;
}

static void entry_free(struct step_entry *entry)
{
    sw_free(entry->namespace_);
    sw_free(entry->name);
    sw_free(entry->uid);
    sw_free(entry->target_name);
    sw_free(entry);
}

struct step_index *step_index_free(struct step_index *index)
{
    if (!index)
        return NULL;
    for (size_t i = 0; i < index->slot_count; i++)
        while (index->by_name[i]) {
            struct step_entry *entry = index->by_name[i];
            index->by_name[i] = entry->next_by_name;
            entry_free(entry);
        }
    sw_free(index->by_name);
    sw_free(index->by_target);
    return sw_free(index);
}

struct step_entry *step_index_get(const struct step_index *index, const char *namespace_,
                                  const char *name)
{
    struct step_entry *entry = *name_slot(index, namespace_, name);

    while (entry && (strcmp(entry->name, name) != 0 || strcmp(entry->namespace_, namespace_) != 0))
        entry = entry->next_by_name;
    return entry;
}

static void grow(struct step_index *index)
{
    struct step_entry **old = index->by_name;
    size_t old_count = index->slot_count;

    sw_free(index->by_target);
    make_tables(index, old_count * 2);
    for (size_t i = 0; i < old_count; i++)
        while (old[i]) {
            struct step_entry *entry = old[i];
            struct step_entry **slot = name_slot(index, entry->namespace_, entry->name);
            old[i] = entry->next_by_name;
            entry->next_by_name = *slot;
            *slot = entry;
            link_target(index, entry);
        }
    sw_free(old);
}

static struct step_entry *add(struct step_index *index, const struct stepped *object)
{
    if (index->count >= index->slot_count)
        grow(index);
    struct step_entry *entry = SW_NEW(struct step_entry);
    struct step_entry **slot = name_slot(index, object->meta.namespace_, object->meta.name);
    entry->namespace_ = sw_strdup(object->meta.namespace_);
    entry->name = sw_strdup(object->meta.name);
    entry->uid = sw_strdup(object->meta.uid);
    entry->created_us = object->meta.created_us;
    entry->number = ++index->number;
    entry->next_by_name = *slot;
    *slot = entry;
    index->count++;
    return entry;
}

struct step_entry *step_index_put(struct step_index *index, const struct stepped *object)
{
    struct step_entry *entry = step_index_get(index, object->meta.namespace_, object->meta.name);
    enum step_target_kind kind = STEP_DEPLOYMENT;
    bool has_target =
        step_target_kind_named(object->target_api_version, object->target_kind, &kind) &&
        object->target_name[0];

    if (!entry)
        entry = add(index, object);
    if (entry->has_target && has_target && entry->target_kind == kind &&
        strcmp(entry->target_name, object->target_name) == 0)
        return entry;
    unlink_target(index, entry);
    sw_free(entry->target_name);
    entry->has_target = has_target;
    entry->target_kind = kind;
    entry->target_name = sw_strdup(object->target_name);
    link_target(index, entry);
    return entry;
}

void step_index_remove(struct step_index *index, struct step_entry *entry)
{
    struct step_entry **slot = name_slot(index, entry->namespace_, entry->name);

    while (*slot != entry)
        slot = &(*slot)->next_by_name;
    *slot = entry->next_by_name;
    unlink_target(index, entry);
    index->count--;
    entry_free(entry);
}

/* ---- looking ---- */

static bool is_of(const struct step_entry *entry, enum step_target_kind kind,
                  const char *namespace_, const char *target_name)
{
    return entry->target_kind == kind && strcmp(entry->target_name, target_name) == 0 &&
           strcmp(entry->namespace_, namespace_) == 0;
}

static bool is_older(const struct step_entry *a, const struct step_entry *b)
{
    if (a->created_us != b->created_us)
        return a->created_us < b->created_us;
    return strcmp(a->name, b->name) < 0;
}

struct step_entry *step_index_oldest(const struct step_index *index, enum step_target_kind kind,
                                     const char *namespace_, const char *target_name)
{
    struct step_entry *entry = *target_slot(index, kind, namespace_, target_name), *oldest = NULL;

    for (; entry; entry = entry->next_by_target)
        if (is_of(entry, kind, namespace_, target_name) && (!oldest || is_older(entry, oldest)))
            oldest = entry;
    return oldest;
}

void step_index_each_of(const struct step_index *index, enum step_target_kind kind,
                        const char *namespace_, const char *target_name, step_entry_fn fn,
                        void *arg)
{
    struct step_entry *entry = *target_slot(index, kind, namespace_, target_name);

    for (; entry; entry = entry->next_by_target)
        if (is_of(entry, kind, namespace_, target_name))
            fn(arg, entry);
}

void step_index_each(const struct step_index *index, step_entry_fn fn, void *arg)
{
    for (size_t i = 0; i < index->slot_count; i++)
        for (struct step_entry *entry = index->by_name[i]; entry; entry = entry->next_by_name)
            fn(arg, entry);
}
