/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dependents by the uid of their owner, as the garbage collector and the controllers look for them.
 */
#include <string.h>

#include "base/map.h"
#include "base/util.h"
#include "store_internal.h"
#include "value.h"

struct dependents {
    const struct sw_sim_object **at; /* in the order in which they came */
    size_t count, room;
};

static void add(struct sw_map *owned, const char *uid, const struct sw_sim_object *object)
{
    struct dependents *list = sw_map_get(owned, uid);
    if (!list) {
        list = SW_NEW(struct dependents);
        sw_map_set(owned, uid, list);
    }
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 4;
        list->at = sw_realloc(list->at, list->room, sizeof(*list->at));
    }
    list->at[list->count++] = object;
}

static size_t find(const struct dependents *list, const struct sw_sim_object *object)
{
    size_t at = 0;
    while (list && at < list->count && list->at[at] != object) {
        at++;
    }
    return at;
}

static void drop(struct sw_map *owned, const char *uid, const struct sw_sim_object *object)
{
    struct dependents *list = sw_map_get(owned, uid);
    size_t at = find(list, object);
    if (!list || at == list->count) {
        return;
    }
    list->count--;
    memmove(list->at + at, list->at + at + 1, (list->count - at) * sizeof(*list->at));
    if (list->count == 0) {
        sw_map_remove(owned, uid);
        sw_free(list->at);
        sw_free(list);
    }
}

static const json_t *references(const struct sw_sim_object *object)
{
    return object ? sw_sim_at(sw_sim_object_json(object), "metadata.ownerReferences") : NULL;
}

static void replace_all(struct sw_map *owned, const json_t *list,
                        const struct sw_sim_object *before, const struct sw_sim_object *after)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *uid = sw_sim_text(json_array_get(list, i), "uid", "");
        struct dependents *dependents = sw_map_get(owned, uid);
        size_t at = find(dependents, before);
        if (dependents && at < dependents->count) {
            dependents->at[at] = after;
        }
    }
}

/* One object of that uid only once, although it may name it twice. */
static bool named_before(const json_t *list, size_t number, const char *uid)
{
    for (size_t i = 0; i < number; i++) {
        if (strcmp(sw_sim_text(json_array_get(list, i), "uid", ""), uid) == 0) {
            return true;
        }
    }
    return false;
}

void sw_sim_owned_change(struct sw_map *owned, const struct sw_sim_object *before,
                         const struct sw_sim_object *after)
{
    const json_t *old = references(before);
    const json_t *new = references(after);
    if (!old && !new) {
        return;
    }
    if (old && new &&json_equal(old, new)) {
        replace_all(owned, new, before, after);
        return;
    }
    for (size_t i = 0; i < json_array_size(old); i++) {
        drop(owned, sw_sim_text(json_array_get(old, i), "uid", ""), before);
    }
    for (size_t i = 0; i < json_array_size(new); i++) {
        const char *uid = sw_sim_text(json_array_get(new, i), "uid", "");
        if (!named_before(new, i, uid)) {
            add(owned, uid, after);
        }
    }
}

void sw_sim_owned_done(struct sw_map *owned)
{
    struct sw_map_iter it = {0};
    while (sw_map_next(owned, &it)) {
        struct dependents *list = it.value;
        sw_free(list->at);
        sw_free(list);
    }
    sw_map_free(owned);
}

int sw_sim_owned_each(const struct sw_map *owned, const char *uid,
                      int (*fn)(void *arg, const struct sw_sim_object *object), void *arg)
{
    const struct dependents *list = sw_map_get(owned, uid);
    for (size_t i = 0; list && i < list->count; i++) {
        int code = fn(arg, list->at[i]);
        if (code) {
            return code;
        }
    }
    return 0;
}
