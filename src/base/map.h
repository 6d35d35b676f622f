/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash map from strings to pointers, and a table of interned strings. Hashes are keyed with a
 * random number per process (SipHash-1-3), since labels and names come from outside.
 */
#ifndef SW_BASE_MAP_H
#define SW_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slipway/attr.h>

/* ---- map ---- */

struct sw_map; /* string -> void *; keys are copied */

SW_NONNULL struct sw_map *sw_map_new(void);
struct sw_map *sw_map_free(struct sw_map *map); /* the values are not touched */
/* Stores and returns what was there before, or NULL. value is not NULL. */
void *sw_map_set(struct sw_map *map, const char *key, void *value);
void *sw_map_get(const struct sw_map *map, const char *key);
void *sw_map_getn(const struct sw_map *map, const char *key, size_t len);
void *sw_map_remove(struct sw_map *map, const char *key); /* returns what was there, or NULL */
size_t sw_map_size(const struct sw_map *map);
/* The map's own copy of the key, with the life of the entry; NULL where there is none. */
const char *sw_map_key(const struct sw_map *map, const char *key);

/*
 * Walks the entries in the order in which they were added (so that runs repeat). The entry just
 * returned may be removed during the walk; any other change makes the rest of it undefined.
 *     struct sw_map_iter it = {0};
 *     while (sw_map_next(map, &it)) use(it.key, it.value);
 */
struct sw_map_iter {
    const char *key;
    void *value;
    size_t at; /* private */
};
bool sw_map_next(const struct sw_map *map, struct sw_map_iter *iter);

/* ---- interned strings ---- */

/* Equal strings are one pointer while somebody holds a reference. Single thread. */
struct sw_intern;

SW_NONNULL struct sw_intern *sw_intern_new(void);
/* Every string must have been given back. */
struct sw_intern *sw_intern_free(struct sw_intern *table);
/* A counted reference; give it back with sw_intern_unref. */
SW_NONNULL const char *sw_intern_ref(struct sw_intern *table, const char *text, size_t len);
void sw_intern_unref(struct sw_intern *table, const char *text); /* takes NULL */
size_t sw_intern_size(const struct sw_intern *table);

/* SipHash-1-3 of the bytes under the process's random key; not stable from run to run. */
uint64_t sw_hash(const void *bytes, size_t len);

#endif
