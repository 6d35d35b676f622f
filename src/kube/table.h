/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A field table (struct sw_bind) compiled into a tree of keys, and the engine that is driven by it.
 * Private to the decoder's files: decode_table.c compiles, decode_run.c walks the text by the tree,
 * decode_value.c reads what is bound, decode_settle.c turns the result into one block of memory.
 *
 * A run reads a value into scratch memory that it keeps: the struct itself, the arrays, and a list
 * of the strings, which stay where they are in the text. Until it is settled every pointer in the
 * struct holds a number instead: of a string its place in the list, of an array its offset. So a
 * run that fails, or a key that comes twice, has nothing to give back.
 */
#ifndef SW_KUBE_TABLE_H
#define SW_KUBE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slipway/kind.h>

#include "kube/scan.h"

struct sw_arena;
struct sw_error;
struct sw_intern;
struct sw_run;

/* ---- the compiled table ---- */

/* Behind enum sw_bind_type: what only the decoder's own tables bind. */
enum {
    SW_BIND_OWN_FIRST = 100,
    SW_BIND_ANNOTATIONS = SW_BIND_OWN_FIRST, /* struct sw_labels: those that the kind keeps */
    SW_BIND_CONTROLLER, /* const char *: uid of the ownerReference that says controller: true */
    SW_BIND_VALUES,     /* struct sw_labels: all keys; the values are secret, and not interned */
    SW_BIND_OBJECT,     /* calls run->on_object with .limit; nothing is stored */
};

enum { SW_TABLE_NODES = 192 }; /* keys of one table; three words of bits */

struct sw_slot {
    int type; /* enum sw_bind_type and the above */
    uint32_t limit;
    size_t offset;
    size_t size; /* of the member */
    int64_t otherwise;
    const char *path;
    struct sw_table *element;
};

struct sw_edge {
    uint32_t tag; /* of the key, so that most others are told apart without looking at it */
    uint16_t node;
};

/* A key that is bound, or leads to one that is. Nodes and slots are in the order of a walk through
 * the tree, so that those below a node follow it. */
struct sw_node {
    const char *key;
    uint32_t key_len;
    uint16_t first_edge, edge_count;
    uint16_t first_slot, slot_count; /* bound to this very value */
    uint16_t node_end, slot_end;     /* behind the last one below */
};

struct sw_table {
    struct sw_node *nodes; /* 0: the root */
    struct sw_edge *edges;
    struct sw_slot *slots;
    uint16_t node_count, slot_count;
    size_t size;
    char *blank; /* the struct with every default in it */
    char *keys;
};

/* size: of the struct. own: a table of the decoder, bound before fields, or NULL. Asserts on a
 * mistake. */
struct sw_table *sw_table_new(const struct sw_bind *own, const struct sw_bind *fields, size_t size);
/* Right after: what SW_BIND_LABELS binds are SW_BIND_VALUES. The intern table is never overwritten.
 */
void sw_table_set_secret(struct sw_table *table);
struct sw_table *sw_table_free(struct sw_table *table);

static inline uint32_t sw_key_tag(const char *key, size_t len)
{
    return len == 0 ? 0
                    : (uint32_t)len << 16 | (uint32_t)(unsigned char)key[0] << 8 |
                          (uint32_t)(unsigned char)key[len - 1];
}

/* ---- a run ---- */

struct sw_area {
    char *bytes;
    size_t len;
    size_t room;
};

typedef bool (*sw_run_object_fn)(struct sw_run *run, size_t which);

struct sw_run {
    const struct sw_table *table;
    const char *const *annotations; /* as in struct sw_kind */
    size_t
        kept; /* bytes of the struct that settling keeps; behind them is what only the run needs */
    sw_run_object_fn on_object;    /* SW_BIND_OBJECT: reads the value at run->scan */
    sw_run_object_fn on_no_object; /* ... forgets it again */

    struct sw_scan *scan; /* while it runs */
    struct sw_area root;
    struct sw_area arrays;
    struct sw_area stack; /* elements of the arrays that are being read */
    struct sw_area texts; /* of struct sw_text; the first is not used, so that 0 is none */
    size_t string_bytes;  /* of what becomes text in the block, with NULs */
    char path[200];       /* where the mistake is, as far as it lies in a field */
    const char *type_why; /* what was expected there */
};

/* The table is borrowed. */
void sw_run_init(struct sw_run *run, const struct sw_table *table);
void sw_run_done(struct sw_run *run);
/* Reads one value. False: scan->why, run->path. */
bool sw_run_read(struct sw_run *run, struct sw_scan *scan);
/* SW_E_SYNTAX with field, mistake and place. */
int sw_run_explain(const struct sw_run *run, const struct sw_scan *scan, struct sw_error *error);
/* A string of the root struct, by the offset of its member, before settling; NULL where absent. */
const struct sw_text *sw_run_text(const struct sw_run *run, size_t offset);

/* Bytes that settling needs: struct, arrays, strings. */
size_t sw_run_size(const struct sw_run *run);
/* Writes the struct with all that hangs on it to memory of that size (zeroed, aligned to 8). intern
 * may be NULL where the table interns nothing. */
void sw_run_settle(struct sw_run *run, struct sw_intern *intern, void *to);
/* The same in an arena. */
void *sw_run_settle_in(struct sw_run *run, struct sw_arena *arena);
/* Gives back what settling took from the intern table. */
void sw_table_release(const struct sw_table *table, struct sw_intern *intern, const void *settled);

/* ---- between the files of the engine ---- */

/* A struct that is being filled: areas move when they grow, so it is a place in one of them. */
struct sw_place {
    struct sw_area *area;
    size_t at;
};

bool sw_run_object(struct sw_run *run, const struct sw_table *table, struct sw_place place);
bool sw_run_slot(struct sw_run *run, const struct sw_slot *slot, struct sw_place place);
/* The value at the cursor is not of the type that the slot wants. */
bool sw_run_mistyped(struct sw_run *run, const char *expected);

void *sw_area_push(struct sw_area *area, size_t size); /* not zeroed, not aligned */
size_t sw_area_align(struct sw_area *area);            /* to 8; returns the length then */
#define SW_PLACE_PUT(place, offset, value) \
    memcpy((place).area->bytes + (place).at + (offset), &(value), sizeof(value))

extern const char sw_empty[1]; /* every string that is absent or empty */
extern const struct sw_bind sw_condition_fields[];
extern const struct sw_bind sw_owner_fields[];

struct sw_owner {
    const char *uid;
    bool is_controller;
};

#endif
