/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the store: objects of a kind in the order of their keys (store_index.c), dependents
 * by the uid of their owner (store_owned.c), and the window of changes (store_window.c).
 */
#ifndef TOOLS_SIM_STORE_INTERNAL_H
#define TOOLS_SIM_STORE_INTERNAL_H

#include "base/buf.h"
#include "store.h"

/* ---- objects (store_object.c) ---- */

/* The objects of a store that have a document. Counted: objects may outlive the store. */
struct sw_sim_shelf {
    unsigned refs;
    struct sw_link objects; /* struct sw_sim_object.link, as they came */
    size_t count, max;
    void (*on_full)(void *arg);
    void *arg;
    bool is_told;
    struct sw_buf scratch; /* texts are made here, and then have the very size */
};

struct sw_sim_shelf *sw_sim_shelf_new(void);
void sw_sim_shelf_unref(struct sw_sim_shelf *shelf);
void sw_sim_shelf_trim(struct sw_sim_shelf *shelf);
/* Takes json, and sets its metadata.resourceVersion. */
struct sw_sim_object *sw_sim_object_new(struct sw_sim_shelf *shelf, const struct sw_sim_kind *kind,
                                        json_t *json, uint64_t version);

/* ---- index ---- */

/* Objects ordered by key ("namespace/name", or "name"), in blocks of up to SW_SIM_BLOCK, so that an
 * insertion moves little. */
enum { SW_SIM_BLOCK = 128 };

struct sw_sim_block {
    size_t count;
    struct sw_sim_object *at[SW_SIM_BLOCK];
};

struct sw_sim_index {
    struct sw_sim_block **blocks; /* none is empty */
    size_t count, room;
    size_t objects;
};

struct sw_sim_place {
    size_t block, at;
};

void sw_sim_index_done(struct sw_sim_index *index);
/* The first object whose key is not below; true where it has exactly that key. */
bool sw_sim_index_find(const struct sw_sim_index *index, const char *key,
                       struct sw_sim_place *ret_place);
struct sw_sim_object *sw_sim_index_at(const struct sw_sim_index *index, struct sw_sim_place place);
/* To the next object; NULL behind the last. */
struct sw_sim_object *sw_sim_index_next(const struct sw_sim_index *index,
                                        struct sw_sim_place *place);
/* Adds, or replaces what had the same key and returns that. References move with the pointers. */
struct sw_sim_object *sw_sim_index_set(struct sw_sim_index *index, struct sw_sim_object *object);
struct sw_sim_object *sw_sim_index_remove(struct sw_sim_index *index, const char *key);

/* ---- dependents ---- */

struct sw_map;

/* before or after may be NULL. Holds no references. */
void sw_sim_owned_change(struct sw_map *owned, const struct sw_sim_object *before,
                         const struct sw_sim_object *after);
void sw_sim_owned_done(struct sw_map *owned);
int sw_sim_owned_each(const struct sw_map *owned, const char *uid,
                      int (*fn)(void *arg, const struct sw_sim_object *object), void *arg);

/* ---- window ---- */

struct sw_sim_window {
    struct sw_sim_change *ring;
    size_t room, first, count;
    size_t bytes, bytes_max; /* max 0: not counted */
    uint64_t floor;          /* what was up to here is not known any more */
};

void sw_sim_window_init(struct sw_sim_window *window, size_t room, uint64_t floor);
void sw_sim_window_done(struct sw_sim_window *window);
/* Takes a reference of each object. */
void sw_sim_window_add(struct sw_sim_window *window, const struct sw_sim_change *change);
void sw_sim_window_forget(struct sw_sim_window *window, uint64_t upto);
/* The number of the first change behind the version; the count where there is none. */
size_t sw_sim_window_behind(const struct sw_sim_window *window, uint64_t version);
const struct sw_sim_change *sw_sim_window_at(const struct sw_sim_window *window, size_t number);

/* Of the same resource: group and plural. */
bool sw_sim_same_resource(const struct sw_sim_kind *a, const struct sw_sim_kind *b);

#endif
