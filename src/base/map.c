/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash map from strings to pointers that remembers the order of insertion.
 *
 * The entries lie one after the other in an array, in the order in which they came; a table of
 * 32-bit numbers (open addressing, linear probing, at most half full) leads from hash to entry.
 * Walking is a walk over the array. A removed entry leaves a hole in the array, none in the table:
 * what follows in its probe sequence is moved up. Holes go when the array is full, and at once when
 * they are at one of its ends, so that a map used as a queue stays fast. An entry is never moved by
 * a removal: this is what lets a walk remove where it stands.
 */
#include "base/map.h"

#include <string.h>

#include "base/util.h"

enum { FIRST_ROOM = 8 };

struct entry {
    char *key; /* NULL: a hole */
    void *value;
    uint32_t hash;
    uint32_t len;
};

struct sw_map {
    struct entry *entries;
    uint32_t *table; /* 2 * room places; 0: empty, else the entry's place + 1 */
    uint32_t room;   /* of entries; 0 or a power of two */
    uint32_t first;  /* no entry before this place */
    uint32_t used;   /* no entry from this place on */
    uint32_t size;
};

struct sw_map *sw_map_new(void)
{
    return SW_NEW(struct sw_map);
}

struct sw_map *sw_map_free(struct sw_map *map)
{
    if (map) {
        for (uint32_t i = map->first; i < map->used; i++) {
            sw_free(map->entries[i].key);
        }
        sw_free(map->entries);
        sw_free(map->table);
        sw_free(map);
    }
    return NULL;
}

static uint32_t table_mask(const struct sw_map *map)
{
    return map->room * 2 - 1;
}

/* The place in the table where the key is; there must be room in the map. False where it is not,
 * and *ret_slot is then the empty place where it would go. */
static bool find(const struct sw_map *map, const char *key, size_t len, uint32_t hash,
                 uint32_t *ret_slot)
{
    uint32_t mask = table_mask(map);
    uint32_t slot = hash & mask;
    for (; map->table[slot]; slot = (slot + 1) & mask) {
        const struct entry *e = &map->entries[map->table[slot] - 1];
        if (e->hash == hash && e->len == len && (len == 0 || memcmp(e->key, key, len) == 0)) {
            *ret_slot = slot;
            return true;
        }
    }
    *ret_slot = slot;
    return false;
}

static const struct entry *lookup(const struct sw_map *map, const char *key, size_t len)
{
    uint32_t slot;
    if (map->size == 0 || len > UINT32_MAX ||
        !find(map, key, len, (uint32_t)sw_hash(key, len), &slot)) {
        return NULL;
    }
    return &map->entries[map->table[slot] - 1];
}

/* Drops the holes and takes the size that leaves at least a third of the places free. */
static void rebuild(struct sw_map *map)
{
    uint64_t want = (uint64_t)map->size + map->size / 2 + 4;
    uint32_t room = FIRST_ROOM;
    while (room < want) {
        sw_assert(room < UINT32_C(1) << 30);
        room *= 2;
    }
    uint32_t kept = 0;
    for (uint32_t i = map->first; i < map->used; i++) {
        if (map->entries[i].key) {
            map->entries[kept++] = map->entries[i];
        }
    }
    sw_assert(kept == map->size);
    map->entries = sw_realloc(map->entries, room, sizeof(*map->entries));
    sw_free(map->table);
    map->table = sw_calloc((size_t)room * 2, sizeof(*map->table));
    map->room = room;
    map->first = 0;
    map->used = kept;
    for (uint32_t i = 0; i < kept; i++) {
        uint32_t slot = map->entries[i].hash & table_mask(map);
        while (map->table[slot]) {
            slot = (slot + 1) & table_mask(map);
        }
        map->table[slot] = i + 1;
    }
}

void *sw_map_set(struct sw_map *map, const char *key, void *value)
{
    sw_assert(value);
    size_t len = strlen(key);
    sw_assert(len < UINT32_MAX);
    uint32_t hash = (uint32_t)sw_hash(key, len);
    uint32_t slot = 0;
    if (map->room && find(map, key, len, hash, &slot)) {
        struct entry *e = &map->entries[map->table[slot] - 1];
        void *old = e->value;
        e->value = value;
        return old;
    }
    if (map->used == map->room) {
        rebuild(map);
        find(map, key, len, hash, &slot);
    }
    map->entries[map->used] = (struct entry){
        .key = sw_strndup(key, len),
        .value = value,
        .hash = hash,
        .len = (uint32_t)len,
    };
    map->table[slot] = ++map->used;
    map->size++;
    return NULL;
}

void *sw_map_get(const struct sw_map *map, const char *key)
{
    return sw_map_getn(map, key, strlen(key));
}

void *sw_map_getn(const struct sw_map *map, const char *key, size_t len)
{
    const struct entry *e = lookup(map, key, len);
    return e ? e->value : NULL;
}

const char *sw_map_key(const struct sw_map *map, const char *key)
{
    const struct entry *e = lookup(map, key, strlen(key));
    return e ? e->key : NULL;
}

/* Empties a place of the table and moves up what was pushed past it. */
static void clear_slot(struct sw_map *map, uint32_t hole)
{
    uint32_t mask = table_mask(map);
    for (uint32_t slot = (hole + 1) & mask; map->table[slot]; slot = (slot + 1) & mask) {
        uint32_t home = map->entries[map->table[slot] - 1].hash & mask;
        /* It may move if the hole lies on its way from home to here. */
        if (((slot - home) & mask) >= ((slot - hole) & mask)) {
            map->table[hole] = map->table[slot];
            hole = slot;
        }
    }
    map->table[hole] = 0;
}

void *sw_map_remove(struct sw_map *map, const char *key)
{
    size_t len = strlen(key);
    uint32_t slot;
    if (map->size == 0 || !find(map, key, len, (uint32_t)sw_hash(key, len), &slot)) {
        return NULL;
    }
    struct entry *e = &map->entries[map->table[slot] - 1];
    void *old = e->value;
    char *copy = e->key;
    clear_slot(map, slot);
    *e = (struct entry){0};
    map->size--;
    while (map->first < map->used && !map->entries[map->first].key) {
        map->first++;
    }
    while (map->used > map->first && !map->entries[map->used - 1].key) {
        map->used--;
    }
    if (map->size == 0) {
        map->first = map->used = 0;
    }
    sw_free(copy); /* last: key may be this very string */
    return old;
}

size_t sw_map_size(const struct sw_map *map)
{
    return map->size;
}

bool sw_map_next(const struct sw_map *map, struct sw_map_iter *iter)
{
    for (size_t i = SW_MAX(iter->at, (size_t)map->first); i < map->used; i++) {
        if (map->entries[i].key) {
            iter->key = map->entries[i].key;
            iter->value = map->entries[i].value;
            iter->at = i + 1;
            return true;
        }
    }
    iter->key = NULL;
    iter->value = NULL;
    return false;
}
