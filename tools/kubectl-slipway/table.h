/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table as kubectl prints one: columns as wide as they have to be, three spaces between, nothing
 * behind the last cell of a line. Colours do not count as width. Pure: it writes into a buffer.
 */
#ifndef KS_TABLE_H
#define KS_TABLE_H

#include <stdbool.h>
#include <stddef.h>

struct sw_arena;
struct sw_buf;

enum ks_colour {
    KS_PLAIN,
    KS_BOLD,
    KS_DIM,
    KS_GREEN,
    KS_YELLOW,
    KS_RED,
    KS_CYAN,
};

enum { KS_COLUMNS_MAX = 8 };

struct ks_cell {
    const char *text; /* NULL: "" */
    enum ks_colour colour;
};

struct ks_table;

/* heads: NULL-terminated; at most KS_COLUMNS_MAX. All that a table gets is borrowed until it is
 * printed; the table is the arena's. */
struct ks_table *ks_table_new(struct sw_arena *arena, const char *const *heads);
/* One cell for each head, in order. Control characters in texts are shown as spaces. */
void ks_table_add(struct ks_table *table, const struct ks_cell *cells);
size_t ks_table_rows(const struct ks_table *table);
/* columns: lines are cut there; 0: never. */
void ks_table_print(const struct ks_table *table, bool is_coloured, size_t columns,
                    struct sw_buf *out);

/* One text in a colour, or as it is. */
void ks_paint(struct sw_buf *out, const char *text, enum ks_colour colour, bool is_coloured);

#endif
