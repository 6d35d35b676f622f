/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table (open addressing, linear probing, at most half full) of pointers to entries, and the
 * lists through them. An entry has no key of its own: its object, or the one at its side, has it.
 */
#include "kube/store_table.h"

#include <string.h>

#include "base/map.h"
#include "base/util.h"

enum { FIRST_ROOM = 16 };

void sw_store_table_init(struct sw_store_table *table)
{
    *table = (struct sw_store_table){
        .namespaces = sw_map_new(),
        .owners = sw_map_new(),
    };
}

static void free_buckets(struct sw_map *map)
{
    struct sw_map_iter it = {0};
    while (sw_map_next(map, &it)) {
        sw_free(it.value);
    }
    sw_map_free(map);
}

void sw_store_table_done(struct sw_store_table *table)
{
    sw_assert(!table->walks);
    for (uint32_t i = 0; i < table->room; i++) {
        sw_free(table->slots[i]);
    }
    sw_free(table->slots);
    free_buckets(table->namespaces);
    free_buckets(table->owners);
}

/* ---- by key ---- */

static uint32_t hash_key(const char *namespace_, const char *name)
{
    uint64_t first = sw_hash(namespace_, strlen(namespace_));
    return (uint32_t)((first << 1 | first >> 63) ^ sw_hash(name, strlen(name)));
}

static bool has_key(const struct sw_store_entry *entry, const char *namespace_, const char *name)
{
    const struct sw_object *object = entry->object ? entry->object : entry->side;
    return strcmp(object->name, name) == 0 && strcmp(object->namespace_, namespace_) == 0;
}

static struct sw_store_entry *find(const struct sw_store_table *table, uint32_t hash,
                                   const char *namespace_, const char *name)
{
    uint32_t mask = table->room - 1;
    for (uint32_t i = hash & mask; table->room && table->slots[i]; i = (i + 1) & mask) {
        if (table->slots[i]->hash == hash && has_key(table->slots[i], namespace_, name)) {
            return table->slots[i];
        }
    }
    return NULL;
}

struct sw_store_entry *sw_store_table_find(const struct sw_store_table *table,
                                           const char *namespace_, const char *name)
{
    return find(table, hash_key(namespace_, name), namespace_, name);
}

static void place(struct sw_store_table *table, struct sw_store_entry *entry)
{
    uint32_t mask = table->room - 1;
    uint32_t i = entry->hash & mask;
    while (table->slots[i]) {
        i = (i + 1) & mask;
    }
    table->slots[i] = entry;
}

static void resize(struct sw_store_table *table, uint32_t room)
{
    struct sw_store_entry **old = table->slots;
    uint32_t old_room = table->room;
    table->slots = sw_calloc(room, sizeof(*table->slots));
    table->room = room;
    for (uint32_t i = 0; i < old_room; i++) {
        if (old[i]) {
            place(table, old[i]);
        }
    }
    sw_free(old);
}

struct sw_store_entry *sw_store_table_get(struct sw_store_table *table,
                                          const struct sw_object *object)
{
    uint32_t hash = hash_key(object->namespace_, object->name);
    struct sw_store_entry *entry = find(table, hash, object->namespace_, object->name);
    if (!entry) {
        if (table->size >= table->room / 2) {
            sw_assert(table->room < UINT32_C(1) << 31);
            resize(table, table->room ? table->room * 2 : (uint32_t)FIRST_ROOM);
        }
        entry = SW_NEW(struct sw_store_entry);
        entry->hash = hash;
        place(table, entry);
        table->size++;
    }
    return entry;
}

void sw_store_table_tidy(struct sw_store_table *table, struct sw_store_entry *entry)
{
    if (entry->object || entry->side) {
        return;
    }
    uint32_t mask = table->room - 1;
    uint32_t hole = entry->hash & mask;
    while (table->slots[hole] != entry) {
        hole = (hole + 1) & mask;
    }
    for (uint32_t i = (hole + 1) & mask; table->slots[i]; i = (i + 1) & mask) {
        uint32_t home = table->slots[i]->hash & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) { /* it may move up to the hole */
            table->slots[hole] = table->slots[i];
            hole = i;
        }
    }
    table->slots[hole] = NULL;
    table->size--;
    sw_free(entry);
    if (table->room > FIRST_ROOM && table->size < table->room / 16) {
        resize(table, table->room / 2);
    }
}

/* ---- lists ---- */

static struct sw_store_bucket *bucket_for(struct sw_map *map, const char *name)
{
    struct sw_store_bucket *bucket = sw_map_get(map, name);
    if (!bucket) {
        bucket = SW_NEW(struct sw_store_bucket);
        sw_map_set(map, name, bucket);
    }
    return bucket;
}

static void append(struct sw_store_entry *entry, enum sw_store_index index,
                   struct sw_store_bucket *bucket)
{
    entry->links[index].bucket = bucket;
    entry->links[index].prev = bucket->last;
    entry->links[index].next = NULL;
    if (bucket->last) {
        bucket->last->links[index].next = entry;
    } else {
        bucket->first = entry;
    }
    bucket->last = entry;
}

/* Returns whether the bucket is empty now. */
static bool detach(struct sw_store_table *table, struct sw_store_entry *entry,
                   enum sw_store_index index)
{
    struct sw_store_bucket *bucket = entry->links[index].bucket;
    struct sw_store_entry *prev = entry->links[index].prev;
    struct sw_store_entry *next = entry->links[index].next;
    for (struct sw_store_walk *walk = table->walks; walk; walk = walk->outer) {
        if (walk->index == index && walk->next == entry) {
            walk->next = next;
        }
    }
    if (prev) {
        prev->links[index].next = next;
    } else {
        bucket->first = next;
    }
    if (next) {
        next->links[index].prev = prev;
    } else {
        bucket->last = prev;
    }
    entry->links[index].bucket = NULL;
    return !bucket->first;
}

static void detach_from(struct sw_store_table *table, struct sw_store_entry *entry,
                        enum sw_store_index index, struct sw_map *map, const char *name)
{
    if (entry->links[index].bucket && detach(table, entry, index)) {
        sw_free(sw_map_remove(map, name));
    }
}

void sw_store_table_set(struct sw_store_table *table, struct sw_store_entry *entry,
                        struct sw_object *object)
{
    const struct sw_object *old = entry->object;
    if (old && !(object && strcmp(old->owner_uid, object->owner_uid) == 0)) {
        detach_from(table, entry, SW_STORE_OWNER, table->owners, old->owner_uid);
    }
    if (old && !object) {
        detach_from(table, entry, SW_STORE_NAMESPACE, table->namespaces, old->namespace_);
        detach(table, entry, SW_STORE_ALL);
        table->listed--;
    }
    entry->object = object;
    if (object && !old) {
        entry->serial = ++table->serial;
        append(entry, SW_STORE_ALL, &table->all);
        append(entry, SW_STORE_NAMESPACE, bucket_for(table->namespaces, object->namespace_));
        table->listed++;
    }
    if (object && object->owner_uid[0] && !entry->links[SW_STORE_OWNER].bucket) {
        append(entry, SW_STORE_OWNER, bucket_for(table->owners, object->owner_uid));
    }
}

/* ---- walks ---- */

static struct sw_store_entry *step(struct sw_store_walk *walk, struct sw_store_entry *entry)
{
    while (entry && entry->serial > walk->last_serial) {
        entry = entry->links[walk->index].next;
    }
    walk->next = entry ? entry->links[walk->index].next : NULL;
    return entry;
}

struct sw_store_entry *sw_store_walk_begin(struct sw_store_table *table, struct sw_store_walk *walk,
                                           enum sw_store_index index, const char *which)
{
    const struct sw_store_bucket *bucket = index == SW_STORE_ALL ? &table->all
                                           : index == SW_STORE_NAMESPACE
                                               ? sw_map_get(table->namespaces, which)
                                               : sw_map_get(table->owners, which);
    *walk = (struct sw_store_walk){
        .index = index,
        .last_serial = table->serial,
        .outer = table->walks,
    };
    table->walks = walk;
    return step(walk, bucket ? bucket->first : NULL);
}

struct sw_store_entry *sw_store_walk_next(struct sw_store_table *table, struct sw_store_walk *walk)
{
    sw_assert(table->walks == walk); /* walks are nested, and left from within */
    return step(walk, walk->next);
}

void sw_store_walk_end(struct sw_store_table *table, struct sw_store_walk *walk)
{
    sw_assert(table->walks == walk);
    table->walks = walk->outer;
}

size_t sw_store_table_bytes(const struct sw_store_table *table)
{
    return table->room * sizeof(*table->slots) + table->size * sizeof(struct sw_store_entry);
}
