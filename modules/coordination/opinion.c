/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In a review the right to roll is read from the stored object: what is submitted may be a copy of
 * an older one. The labels are those submitted.
 */
#include "opinion.h"

#include "work.h"

static const char *annotation(const struct sw_object *object, const char *key)
{
    const char *value = object ? sw_annotation(object, key) : NULL;

    return value ? value : "";
}

static bool group_rests_running(const struct coordination *c, bool otherwise)
{
    return c->at_rest[0] ? strcmp(c->at_rest, "Running") == 0 : otherwise;
}

/* "position 2 of 3, behind nginx-a": the position that it has, or will get. */
static const char *words(struct sw_arena *arena, const struct coordination *c,
                         const struct sw_object *object)
{
    const struct coord_entry *entries = c->states.at;
    const char *full = sw_arena_printf(arena, "%s/%s", object->namespace_, object->name);
    int32_t position = c->pending < INT32_MAX ? c->pending + 1 : c->pending, of;

    for (uint32_t i = 0; i < c->states.count; i++)
        if (entries[i].position > 0 && strcmp(entries[i].name, full) == 0)
            position = entries[i].position;
    of = position > c->pending ? position : c->pending;
    const char *slash = strchr(c->active_deployment, '/');
    const char *active = slash ? slash + 1 : c->active_deployment;
    if (active[0] && strcmp(active, object->name) != 0)
        return sw_arena_printf(arena, "position %d of %d, behind %s", (int)position, (int)of,
                               active);
    return sw_arena_printf(arena, "position %d of %d", (int)position, (int)of);
}

static bool is_at_rest(const struct sw_deployment *d)
{
    return d->observed_generation >= d->meta.generation && d->updated_replicas == d->replicas &&
           d->status_replicas == d->replicas && d->available_replicas == d->replicas;
}

/* Released by all that have marked it. */
static bool is_released(const struct sw_object *object)
{
    const char *released_by = annotation(object, SW_RELEASED_BY);
    const char *marks = annotation(object, SW_COORDINATED_BY), *mark, *owner, *name;
    size_t len, owner_len, name_len;

    if (!coord_list_names_us(released_by))
        return false;
    while ((mark = coord_list_next(&marks, &len))) {
        const char *owners = released_by;
        bool is_named = false;
        while (!is_named && (owner = coord_list_next(&owners, &owner_len)))
            is_named = (name = coord_owner_name(owner, owner_len, &name_len)) && name_len == len &&
                       memcmp(name, mark, len) == 0;
        if (!is_named)
            return false;
    }
    return true;
}

/* Nobody selects it, and it still bears the hold of one that did: it waits for its turn among those
 * that are left of that one (residual.c). A review looks at the marks itself. */
static void left_over(const struct sw_question *question, struct sw_opinion *opinion)
{
    const char *held_by = annotation(question->object, SW_HELD_BY), *owner;
    size_t len, name_len;

    if (question->is_review || !coord_list_names_us(held_by) || is_released(question->object))
        return;
    opinion->verdict = SW_VERDICT_HOLD;
    opinion->words = "its coordination is gone, and one after the other is released";
    while ((owner = coord_list_next(&held_by, &len)))
        if (coord_owner_name(owner, len, &name_len))
            opinion->owners = sw_arena_printf(question->arena, "%s%s%.*s", opinion->owners,
                                              opinion->owners[0] ? "," : "", (int)len, owner);
}

void coord_opinion(const struct coord_seen_group *groups, size_t group_count, bool rests_running,
                   const struct sw_question *question, struct sw_opinion *opinion)
{
    const struct sw_object *object = question->object;
    struct sw_arena *arena = question->arena;
    const struct sw_object *stored = question->is_review ? question->old : object;
    size_t size = 1;

    if (strcmp(annotation(object, SW_IGNORE), "true") == 0)
        return;
    /* Room for the names of all: joined one by one, many would take room for their square. */
    for (size_t i = 0; i < group_count; i++)
        size += strlen(groups[i].object->meta.name) + sizeof COORD_POLICY + 1;
    char *owners = sw_arena_alloc(arena, size), *owner = owners;
    opinion->rests_running = true;
    for (size_t i = 0; i < group_count; i++) {
        const struct coordination *c = groups[i].object;
        if (!groups[i].selector || !sw_selector_matches(groups[i].selector, &object->labels))
            continue;
        if (opinion->is_selected)
            *owner++ = ',';
        else
            opinion->words = words(arena, c, object);
        opinion->is_selected = true;
        opinion->rests_running &= group_rests_running(c, rests_running);
        owner = stpcpy(stpcpy(owner, COORD_POLICY "/"), c->meta.name);
    }
    if (!opinion->is_selected) {
        opinion->rests_running = false;
        left_over(question, opinion);
        return;
    }
    opinion->marks = owners;
    opinion->owners = owners;
    if (stored && is_released(stored))
        return;
    /* Nothing to roll: it may run, but that is no right to roll that others could pass on. */
    if (stored && !question->is_review && is_at_rest(sw_as_deployment(stored)) &&
        (opinion->rests_running || sw_as_deployment(stored)->replicas == 0))
        opinion->owners = "";
    else
        opinion->verdict = SW_VERDICT_HOLD;
}
