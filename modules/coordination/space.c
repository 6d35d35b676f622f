/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table that doubles; groups of one namespace are few and stand in an array.
 */
#include "space.h"

#include <string.h>

#include <slipway/memory.h>

struct space_table {
    struct space **slots;
    size_t slot_count; /* a power of two */
    size_t count;
};

/* FNV-1a. Names of namespaces are chosen by whoever may create them; a long chain costs them and
 * us a comparison for each. */
static size_t hash(const char *name)
{
    uint64_t h = UINT64_C(14695981039346656037);

    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * UINT64_C(1099511628211);
    return (size_t)(h ^ h >> 32);
}

struct space_table *coord_spaces_new(void)
{
    struct space_table *table = SW_NEW(struct space_table);

    table->slot_count = 64;
    table->slots = sw_calloc(table->slot_count, sizeof(struct space *));
    return table;
}

static void group_done(struct space_group *group)
{
    sw_free(group->name);
    sw_free(group->uid);
    sw_free(group->error);
    sw_free(group->series);
    sw_selector_free(group->selector);
}

static void space_free(struct space *space)
{
    for (uint32_t i = 0; i < space->group_count; i++)
        group_done(&space->groups[i]);
    sw_free(space->groups);
    coord_observer_free(space->observer);
    coord_memory_free(space->memory);
    sw_free(space->namespace_);
    sw_free(space);
}

struct space_table *coord_spaces_free(struct space_table *table)
{
    if (!table)
        return NULL;
    for (size_t i = 0; i < table->slot_count; i++)
        while (table->slots[i]) {
            struct space *space = table->slots[i];
            table->slots[i] = space->next;
            space_free(space);
        }
    sw_free(table->slots);
    return sw_free(table);
}

struct space *coord_space_get(const struct space_table *table, const char *namespace_)
{
    struct space *space = table->slots[hash(namespace_) & (table->slot_count - 1)];

    while (space && strcmp(space->namespace_, namespace_) != 0)
        space = space->next;
    return space;
}

static void grow(struct space_table *table)
{
    size_t count = table->slot_count * 2;
    struct space **slots = sw_calloc(count, sizeof(struct space *));

    for (size_t i = 0; i < table->slot_count; i++)
        while (table->slots[i]) {
            struct space *space = table->slots[i];
            struct space **slot = &slots[hash(space->namespace_) & (count - 1)];
            table->slots[i] = space->next;
            space->next = *slot;
            *slot = space;
        }
    sw_free(table->slots);
    table->slots = slots;
    table->slot_count = count;
}

struct space *coord_space_add(struct space_table *table, const char *namespace_)
{
    struct space *space = coord_space_get(table, namespace_);

    if (space)
        return space;
    if (table->count >= table->slot_count)
        grow(table);
    space = SW_NEW(struct space);
    space->namespace_ = sw_strdup(namespace_);
    struct space **slot = &table->slots[hash(namespace_) & (table->slot_count - 1)];
    space->next = *slot;
    *slot = space;
    table->count++;
    return space;
}

void coord_space_tidy(struct space_table *table, struct space *space)
{
    if (space->memory && coord_memory_is_idle(space->memory))
        space->memory = coord_memory_free(space->memory);
    if (space->group_count > 0 || space->memory)
        return;
    struct space **slot = &table->slots[hash(space->namespace_) & (table->slot_count - 1)];
    while (*slot != space)
        slot = &(*slot)->next;
    *slot = space->next;
    table->count--;
    space_free(space);
}

void coord_spaces_each(const struct space_table *table, void (*visit)(void *arg, struct space *),
                       void *arg)
{
    for (size_t i = 0; i < table->slot_count; i++)
        for (struct space *space = table->slots[i], *next; space; space = next) {
            next = space->next;
            visit(arg, space);
        }
}

/* ---- groups ---- */

static uint32_t position_of(const struct space *space, const char *name)
{
    uint32_t i = 0;

    while (i < space->group_count && strcmp(space->groups[i].name, name) < 0)
        i++;
    return i;
}

static bool is_at(const struct space *space, uint32_t i, const char *name)
{
    return i < space->group_count && strcmp(space->groups[i].name, name) == 0;
}

static void parse(struct space_group *group, const struct coordination *c)
{
    char why[256] = "";

    group->selector = sw_selector_free(group->selector);
    group->error = sw_free(group->error);
    group->generation = c->meta.generation;
    group->max_active = c->max_active > 1 ? (uint32_t)c->max_active : 1;
    if (!c->selector.text) {
        group->error = sw_strdup("is absent, so nothing is selected");
        return;
    }
    if (sw_selector_parse(c->selector.text, c->selector.len, &group->selector, why, sizeof why)) {
        group->selector = NULL;
        group->error = sw_strdup(why[0] ? why : "is not a label selector");
    }
}

void coord_space_put(struct space *space, const struct coordination *c)
{
    uint32_t i = position_of(space, c->meta.name);

    if (is_at(space, i, c->meta.name)) {
        struct space_group *group = &space->groups[i];
        if (strcmp(group->uid, c->meta.uid) == 0 && group->generation == c->meta.generation)
            return;
        sw_free(group->uid);
        group->uid = sw_strdup(c->meta.uid);
        parse(group, c);
        return;
    }
    space->groups =
        sw_realloc(space->groups, (size_t)space->group_count + 1, sizeof *space->groups);
    memmove(space->groups + i + 1, space->groups + i,
            (space->group_count - i) * sizeof *space->groups);
    space->group_count++;
    space->groups[i] = (struct space_group){
        .name = sw_strdup(c->meta.name),
        .uid = sw_strdup(c->meta.uid),
    };
    parse(&space->groups[i], c);
}

struct space_group *coord_space_group(const struct space *space, const char *name)
{
    uint32_t i = position_of(space, name);

    return is_at(space, i, name) ? &space->groups[i] : NULL;
}

void coord_space_remove(struct space *space, const char *name)
{
    uint32_t i = position_of(space, name);

    if (!is_at(space, i, name))
        return;
    group_done(&space->groups[i]);
    space->group_count--;
    memmove(space->groups + i, space->groups + i + 1,
            (space->group_count - i) * sizeof *space->groups);
}
