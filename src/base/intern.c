/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interned strings: a table (open addressing, linear probing, at most half full) of pointers to
 * counted strings. The count, hash and length stand in front of the text, so that giving a
 * reference back needs no look-up until it was the last one.
 */
#include <string.h>

#include "base/map.h"
#include "base/util.h"

enum { FIRST_ROOM = 64 };

struct string {
    uint32_t references;
    uint32_t hash;
    uint32_t len;
    char text[];
};

struct sw_intern {
    struct string **table;
    uint32_t room; /* 0 or a power of two */
    uint32_t size;
};

struct sw_intern *sw_intern_new(void)
{
    return SW_NEW(struct sw_intern);
}

struct sw_intern *sw_intern_free(struct sw_intern *table)
{
    if (table) {
        sw_assert(table->size == 0);
        sw_free(table->table);
        sw_free(table);
    }
    return NULL;
}

static void insert(struct sw_intern *table, struct string *string)
{
    uint32_t slot = string->hash & (table->room - 1);
    while (table->table[slot]) {
        slot = (slot + 1) & (table->room - 1);
    }
    table->table[slot] = string;
}

static void resize(struct sw_intern *table, uint32_t room)
{
    struct string **old = table->table;
    uint32_t old_room = table->room;
    table->table = sw_calloc(room, sizeof(*table->table));
    table->room = room;
    for (uint32_t i = 0; i < old_room; i++) {
        if (old[i]) {
            insert(table, old[i]);
        }
    }
    sw_free(old);
}

const char *sw_intern_ref(struct sw_intern *table, const char *text, size_t len)
{
    sw_assert(len < UINT32_MAX);
    uint32_t hash = (uint32_t)sw_hash(text, len);
    uint32_t mask = table->room - 1;
    for (uint32_t slot = hash & mask; table->room && table->table[slot]; slot = (slot + 1) & mask) {
        struct string *there = table->table[slot];
        if (there->hash == hash && there->len == len &&
            (len == 0 || memcmp(there->text, text, len) == 0)) {
            sw_assert(there->references < UINT32_MAX);
            there->references++;
            return there->text;
        }
    }
    if (table->size >= table->room / 2) {
        sw_assert(table->room < UINT32_C(1) << 31);
        resize(table, table->room ? table->room * 2 : (uint32_t)FIRST_ROOM);
    }
    struct string *string = sw_malloc(offsetof(struct string, text) + len + 1);
    string->references = 1;
    string->hash = hash;
    string->len = (uint32_t)len;
    if (len > 0) {
        memcpy(string->text, text, len);
    }
    insert(table, string);
    table->size++;
    return string->text;
}

static void drop(struct sw_intern *table, struct string *string)
{
    uint32_t mask = table->room - 1;
    uint32_t hole = string->hash & mask;
    while (table->table[hole] != string) {
        sw_assert(table->table[hole]); /* else it is not of this table */
        hole = (hole + 1) & mask;
    }
    for (uint32_t slot = (hole + 1) & mask; table->table[slot]; slot = (slot + 1) & mask) {
        uint32_t home = table->table[slot]->hash & mask;
        if (((slot - home) & mask) >= ((slot - hole) & mask)) {
            table->table[hole] = table->table[slot];
            hole = slot;
        }
    }
    table->table[hole] = NULL;
    table->size--;
    sw_free(string);
    if (table->room > FIRST_ROOM && table->size < table->room / 16) {
        resize(table, table->room / 2);
    }
}

void sw_intern_unref(struct sw_intern *table, const char *text)
{
    if (!text) {
        return;
    }
    struct string *string =
        (struct string *)((uintptr_t)text - offsetof(struct string, text)); /* drops the const */
    sw_assert(string->references > 0);
    if (--string->references == 0) {
        drop(table, string);
    }
}

size_t sw_intern_size(const struct sw_intern *table)
{
    return table->size;
}
