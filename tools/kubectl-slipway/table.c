/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows are kept until the widths are known.
 */
#include "table.h"

#include <string.h>

#include <slipway/arena.h>

#include "base/buf.h"
#include "base/util.h"
#include "text.h"

enum { GAP = 3 };

struct row {
    struct row *next;
    struct ks_cell cells[KS_COLUMNS_MAX];
};

struct ks_table {
    struct sw_arena *arena;
    const char *const *heads;
    size_t columns, rows;
    size_t widths[KS_COLUMNS_MAX];
    struct row *first, **last;
};

/* ECMA-48 SGR; only the eight colours that every terminal has, so that a theme can choose. */
static const char *const codes[] = {
    [KS_BOLD] = "\033[1m",    [KS_DIM] = "\033[2m",  [KS_GREEN] = "\033[32m",
    [KS_YELLOW] = "\033[33m", [KS_RED] = "\033[31m", [KS_CYAN] = "\033[36m",
};

/* What others wrote must not move the cursor. */
static const char *without_controls(struct sw_arena *arena, const char *text)
{
    const char *p = text;

    while (*p && (unsigned char)*p >= 0x20 && *p != 0x7f)
        p++;
    if (!*p)
        return text;
    char *copy = sw_arena_strdup(arena, text);
    for (char *q = copy; *q; q++)
        if ((unsigned char)*q < 0x20 || *q == 0x7f)
            *q = ' ';
    return copy;
}

struct ks_table *ks_table_new(struct sw_arena *arena, const char *const *heads)
{
    struct ks_table *table = SW_ARENA_NEW(arena, struct ks_table);

    table->arena = arena;
    table->heads = heads;
    table->last = &table->first;
    for (; heads[table->columns]; table->columns++) {
        sw_assert(table->columns < KS_COLUMNS_MAX);
        table->widths[table->columns] = ks_width(heads[table->columns]);
    }
    return table;
}

void ks_table_add(struct ks_table *table, const struct ks_cell *cells)
{
    struct row *row = SW_ARENA_NEW(table->arena, struct row);

    for (size_t i = 0; i < table->columns; i++) {
        row->cells[i] = cells[i];
        row->cells[i].text = without_controls(table->arena, cells[i].text ? cells[i].text : "");
        table->widths[i] = SW_MAX(table->widths[i], ks_width(row->cells[i].text));
    }
    *table->last = row;
    table->last = &row->next;
    table->rows++;
}

size_t ks_table_rows(const struct ks_table *table)
{
    return table->rows;
}

static void paint(struct sw_buf *out, const char *text, size_t len, enum ks_colour colour,
                  bool is_coloured)
{
    bool is_painted = is_coloured && colour != KS_PLAIN && len > 0;

    if (is_painted)
        sw_buf_puts(out, codes[colour]);
    sw_buf_append(out, text, len);
    if (is_painted)
        sw_buf_puts(out, "\033[0m");
}

void ks_paint(struct sw_buf *out, const char *text, enum ks_colour colour, bool is_coloured)
{
    paint(out, text, strlen(text), colour, is_coloured);
}

static void print_line(const struct ks_table *table, const struct ks_cell *cells, bool is_coloured,
                       size_t columns, struct sw_buf *out)
{
    size_t used = 0, last = 0, room = columns ? columns : SIZE_MAX;

    for (size_t i = 0; i < table->columns; i++)
        if (cells[i].text[0])
            last = i;
    for (size_t i = 0; i <= last && used < room; i++) {
        size_t len = ks_fit(cells[i].text, room - used);
        paint(out, cells[i].text, len, cells[i].colour, is_coloured);
        used += ks_width(cells[i].text);
        size_t pad = i < last ? table->widths[i] + GAP - ks_width(cells[i].text) : 0;
        for (; pad > 0 && used < room; pad--, used++)
            sw_buf_puts(out, " ");
    }
    sw_buf_puts(out, "\n");
}

void ks_table_print(const struct ks_table *table, bool is_coloured, size_t columns,
                    struct sw_buf *out)
{
    struct ks_cell heads[KS_COLUMNS_MAX];

    for (size_t i = 0; i < table->columns; i++)
        heads[i] = (struct ks_cell){table->heads[i], KS_BOLD};
    print_line(table, heads, is_coloured, columns, out);
    for (const struct row *row = table->first; row; row = row->next)
        print_line(table, row->cells, is_coloured, columns, out);
}
