/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In a review the right to roll is read from the stored object: what is submitted may be a copy of
 * an older one. The labels are those submitted.
 */
#include "opinion.h"

#include <string.h>

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

static enum sw_verdict verdict(const struct sw_question *question, bool rests_running)
{
    const struct sw_object *stored = question->is_review ? question->old : question->object;

    if (!stored)
        return SW_VERDICT_HOLD;
    if (strstr(annotation(stored, SW_RELEASED_BY), COORD_POLICY "/"))
        return SW_VERDICT_FREE;
    if (!question->is_review && rests_running && is_at_rest(sw_as_deployment(stored)))
        return SW_VERDICT_FREE;
    return SW_VERDICT_HOLD;
}

void coord_opinion(const struct coord_seen_group *groups, size_t group_count, bool rests_running,
                   const struct sw_question *question, struct sw_opinion *opinion)
{
    const struct sw_object *object = question->object;
    struct sw_arena *arena = question->arena;
    size_t size = 1;

    if (strcmp(annotation(object, SW_IGNORE), "true") == 0)
        return;
    /* Room for the names of all: joined one by one, many would take room for their square. */
    for (size_t i = 0; i < group_count; i++)
        size += strlen(groups[i].object->meta.name) + sizeof COORD_POLICY + 1;
    char *owners = sw_arena_alloc(arena, size), *marks = sw_arena_alloc(arena, size);
    char *owner = owners, *mark = marks;
    opinion->rests_running = true;
    for (size_t i = 0; i < group_count; i++) {
        const struct coordination *c = groups[i].object;
        if (!groups[i].selector || !sw_selector_matches(groups[i].selector, &object->labels))
            continue;
        if (opinion->is_selected)
            *mark++ = *owner++ = ',';
        else
            opinion->words = words(arena, c, object);
        opinion->is_selected = true;
        opinion->rests_running &= group_rests_running(c, rests_running);
        mark = stpcpy(mark, c->meta.name);
        owner = stpcpy(stpcpy(owner, COORD_POLICY "/"), c->meta.name);
    }
    if (!opinion->is_selected) {
        opinion->rests_running = false;
        return;
    }
    opinion->owners = owners;
    opinion->marks = marks;
    opinion->verdict = verdict(question, opinion->rests_running);
}
