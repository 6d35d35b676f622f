/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's entries: found by key, and listed as a whole, by namespace and by owner, in the order
 * in which they came. It knows nothing of versions and owns no object. Private to the store.
 */
#ifndef SW_KUBE_STORE_TABLE_H
#define SW_KUBE_STORE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slipway/object.h>

struct sw_map;

enum sw_store_index {
    SW_STORE_ALL,
    SW_STORE_NAMESPACE,
    SW_STORE_OWNER,
    SW_STORE_INDICES,
};

struct sw_store_bucket {
    struct sw_store_entry *first, *last;
};

struct sw_store_entry {
    struct sw_object *object; /* listed while it is there */
    struct sw_object *side;   /* of the replacement that is under way */
    uint64_t serial;          /* of being listed: later ones are higher */
    uint32_t hash;
    bool is_named; /* in the replacement that is being committed */
    uint64_t kept; /* by the replacement of this number, as it is */
    struct {
        struct sw_store_bucket *bucket; /* NULL: not in this list */
        struct sw_store_entry *prev, *next;
    } links[SW_STORE_INDICES];
};

/* A walk over a list that others may change meanwhile. */
struct sw_store_walk {
    enum sw_store_index index;
    struct sw_store_entry *next;
    uint64_t last_serial; /* what is listed later is not visited */
    struct sw_store_walk *outer;
};

struct sw_store_table {
    struct sw_store_entry **slots;
    uint32_t room; /* 0 or a power of two */
    uint32_t size; /* entries */
    size_t listed; /* of them with an object */
    uint64_t serial;
    struct sw_store_bucket all;
    struct sw_map *namespaces; /* name -> struct sw_store_bucket */
    struct sw_map *owners;     /* uid -> the same */
    struct sw_store_walk *walks;
};

void sw_store_table_init(struct sw_store_table *table);
/* Frees the entries; their objects must be gone. */
void sw_store_table_done(struct sw_store_table *table);

/* NULL where there is none. */
struct sw_store_entry *sw_store_table_find(const struct sw_store_table *table,
                                           const char *namespace_, const char *name);
/* Of the object's key; made if there is none: then without object and side, and the caller sets one
 * before anything else is looked for, since the entry is found by their key. */
struct sw_store_entry *sw_store_table_get(struct sw_store_table *table,
                                          const struct sw_object *object);
/* Puts the object there (NULL: takes away what is there), keeps the lists right. */
void sw_store_table_set(struct sw_store_table *table, struct sw_store_entry *entry,
                        struct sw_object *object);
/* Frees the entry if it has neither object nor side. */
void sw_store_table_tidy(struct sw_store_table *table, struct sw_store_entry *entry);

/* Of the table alone. */
size_t sw_store_table_bytes(const struct sw_store_table *table);

/* which: the namespace or the uid; nothing for SW_STORE_ALL.
 *     for (e = sw_store_walk_begin(...); e; e = sw_store_walk_next(table, &walk)) ...
 *     sw_store_walk_end(table, &walk); */
struct sw_store_entry *sw_store_walk_begin(struct sw_store_table *table, struct sw_store_walk *walk,
                                           enum sw_store_index index, const char *which);
struct sw_store_entry *sw_store_walk_next(struct sw_store_table *table, struct sw_store_walk *walk);
void sw_store_walk_end(struct sw_store_table *table, struct sw_store_walk *walk);

#endif
