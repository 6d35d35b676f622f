/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the text by the tree of keys. What is not in the tree is skipped; what is bound is read by
 * decode_value.c. A key that comes again first undoes all that is bound below it, so that the last
 * one counts.
 */
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "kube/table.h"

enum { SEEN_WORDS = SW_TABLE_NODES / 64, KEPT_SCRATCH = 64 * 1024 };

/* ---- scratch memory ---- */

void *sw_area_push(struct sw_area *area, size_t size)
{
    if (area->room - area->len < size) {
        area->room = SW_MAX(area->room * 2, area->len + size + 256);
        area->bytes = sw_realloc(area->bytes, area->room, 1);
    }
    void *at = area->bytes + area->len;
    area->len += size;
    return at;
}

size_t sw_area_align(struct sw_area *area)
{
    size_t pad = (size_t)-area->len % 8;
    memset(sw_area_push(area, pad + 1), 0, pad); /* one more: it has bytes even when empty */
    return --area->len;
}

static void area_clear(struct sw_area *area)
{
    area->len = 0;
    if (area->room > KEPT_SCRATCH) { /* one huge object does not keep its memory for ever */
        area->bytes = sw_free(area->bytes);
        area->room = 0;
    }
}

void sw_run_init(struct sw_run *run, const struct sw_table *table)
{
    *run = (struct sw_run){.table = table, .kept = table->size};
}

void sw_run_done(struct sw_run *run)
{
    sw_free(run->root.bytes);
    sw_free(run->arrays.bytes);
    sw_free(run->stack.bytes);
    sw_free(run->texts.bytes);
}

/* ---- the walk ---- */

struct seen {
    uint64_t bits[SEEN_WORDS];
};

static void forget(struct sw_run *run, const struct sw_table *table, const struct sw_node *node,
                   struct sw_place place, struct seen *seen)
{
    for (size_t i = (size_t)(node - table->nodes); i < node->node_end; i++) {
        seen->bits[i / 64] &= ~(UINT64_C(1) << i % 64);
    }
    for (size_t i = node->first_slot; i < node->slot_end; i++) {
        const struct sw_slot *slot = &table->slots[i];
        if (slot->type == SW_BIND_OBJECT) {
            run->on_no_object(run, slot->limit);
            continue;
        }
        memcpy(place.area->bytes + place.at + slot->offset, table->blank + slot->offset,
               slot->size);
    }
}

static bool read_children(struct sw_run *run, const struct sw_table *table,
                          const struct sw_node *node, struct sw_place place, struct seen *seen);

static bool read_node(struct sw_run *run, const struct sw_table *table, const struct sw_node *node,
                      struct sw_place place, struct seen *seen)
{
    size_t index = (size_t)(node - table->nodes);
    uint64_t bit = UINT64_C(1) << index % 64;
    if (seen->bits[index / 64] & bit) {
        forget(run, table, node, place, seen);
    }
    seen->bits[index / 64] |= bit;
    if (sw_scan_peek(run->scan) == 'n') {
        return sw_scan_word(run->scan, "null");
    }
    const char *start = run->scan->at;
    for (size_t i = 0; i < node->slot_count; i++) {
        run->scan->at = start; /* a value that is bound more than once is read as often */
        if (!sw_run_slot(run, &table->slots[node->first_slot + i], place)) {
            return false;
        }
    }
    if (node->edge_count > 0) {
        run->scan->at = start;
        return read_children(run, table, node, place, seen);
    }
    return true;
}

static const struct sw_node *find_child(const struct sw_table *table, const struct sw_node *node,
                                        const struct sw_text *key)
{
    const struct sw_edge *edge = &table->edges[node->first_edge];
    const struct sw_edge *end = edge + node->edge_count;
    if (key->size == key->len) {
        for (uint32_t tag = sw_key_tag(key->at, key->len); edge < end; edge++) {
            const struct sw_node *child = &table->nodes[edge->node];
            if (edge->tag == tag && memcmp(child->key, key->at, child->key_len) == 0) {
                return child;
            }
        }
        return NULL;
    }
    for (; edge < end; edge++) { /* written with escapes */
        const struct sw_node *child = &table->nodes[edge->node];
        if (sw_text_is(key, child->key, child->key_len)) {
            return child;
        }
    }
    return NULL;
}

/* The path of a node, for a message: that of the first field at or below it, cut after the node. */
static void note_path(struct sw_run *run, const struct sw_table *table, const struct sw_node *node)
{
    if (run->path[0] || node->first_slot == node->slot_end) {
        return;
    }
    const char *path = table->slots[node->first_slot].path;
    size_t depth = 0;
    for (const struct sw_node *above = table->nodes; above < node; above++) {
        depth += above->node_end >= node->node_end;
    }
    size_t len = 0;
    while (depth-- > 0) {
        len += 1 + strcspn(path + len + 1, "/");
    }
    len = SW_MIN(len, sizeof(run->path) - 1);
    memcpy(run->path, path, len);
    run->path[len] = 0;
}

static bool read_children(struct sw_run *run, const struct sw_table *table,
                          const struct sw_node *node, struct sw_place place, struct seen *seen)
{
    bool is_first = true;
    struct sw_text key;
    if (sw_scan_peek(run->scan) != '{') {
        return sw_run_mistyped(run, "an object");
    }
    if (!sw_scan_enter(run->scan, '{')) {
        return false;
    }
    while (sw_scan_next_member(run->scan, &is_first, &key)) {
        const struct sw_node *child = find_child(table, node, &key);
        if (!child) {
            if (!sw_scan_skip(run->scan)) {
                return false;
            }
        } else if (!read_node(run, table, child, place, seen)) {
            note_path(run, table, child);
            return false;
        }
    }
    return !run->scan->why;
}

bool sw_run_object(struct sw_run *run, const struct sw_table *table, struct sw_place place)
{
    struct seen seen = {{0}};
    const struct sw_node *root = table->nodes;
    const char *start = run->scan->at;
    for (size_t i = 0; i < root->slot_count; i++) { /* the path "" */
        run->scan->at = start;
        if (!sw_run_slot(run, &table->slots[root->first_slot + i], place)) {
            return false;
        }
    }
    run->scan->at = start;
    return read_children(run, table, root, place, &seen);
}

bool sw_run_read(struct sw_run *run, struct sw_scan *scan)
{
    area_clear(&run->root);
    area_clear(&run->arrays);
    area_clear(&run->stack);
    area_clear(&run->texts);
    run->scan = scan;
    run->string_bytes = 0;
    run->path[0] = 0;
    run->type_why = NULL;
    memcpy(sw_area_push(&run->root, run->table->size), run->table->blank, run->table->size);
    sw_area_push(&run->texts, sizeof(struct sw_text));
    return sw_run_object(run, run->table, (struct sw_place){&run->root, 0});
}

/* ---- mistakes ---- */

static const char *value_name(char first)
{
    switch (first) {
    case '{':
        return "an object";
    case '[':
        return "an array";
    case '"':
        return "a string";
    case 't':
    case 'f':
        return "a boolean";
    case 'n':
        return "null";
    default:
        return (first >= '0' && first <= '9') || first == '-' ? "a number" : NULL;
    }
}

bool sw_run_mistyped(struct sw_run *run, const char *expected)
{
    if (value_name(sw_scan_peek(run->scan))) {
        run->type_why = expected;
        return sw_scan_fail(run->scan, "wrong type");
    }
    return sw_scan_fail(run->scan,
                        run->scan->at < run->scan->end ? "not a value" : "ends too early");
}

int sw_run_explain(const struct sw_run *run, const struct sw_scan *scan, struct sw_error *error)
{
    const char *colon = run->path[0] ? ": " : "";
    size_t at = (size_t)(scan->at - scan->start);
    if (run->type_why) {
        const char *found = scan->at < scan->end ? value_name(*scan->at) : NULL;
        return sw_error_set(error, SW_E_SYNTAX, "%s%sexpected %s, found %s (byte %zu)", run->path,
                            colon, run->type_why, found ? found : "something else", at);
    }
    return sw_error_set(error, SW_E_SYNTAX, "%s%s%s (byte %zu)", run->path, colon,
                        scan->why ? scan->why : "no mistake", at);
}
