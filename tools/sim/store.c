/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects and who is told about their changes. An object belongs to whoever holds a reference:
 * the index holds one, the window one for each change, and whoever writes an answer from it.
 *
 * A change that a watcher makes while it is told of another waits its turn: changes are told in
 * the order of their versions, each to all.
 */
#include "store.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/map.h"
#include "base/util.h"
#include "kind.h"
#include "store_internal.h"
#include "value.h"

/* A resource: every version of a kind is the same one. */
struct resource {
    char *group;
    char *plural;
    struct sw_sim_index index;
};

struct told {
    struct sw_sim_change change;
    struct told *next;
};

struct sw_sim_store {
    uint64_t version;
    struct resource **resources;
    size_t resource_count;
    struct sw_map *owned;
    struct sw_sim_shelf *shelf;
    struct sw_sim_window window;
    struct sw_sim_store_watcher *watchers;
    struct sw_sim_store_watcher *telling; /* the one that comes next in the round under way */
    struct told *waiting, **waiting_end;
    bool is_telling;
};

/* ---- resources ---- */

bool sw_sim_same_resource(const struct sw_sim_kind *a, const struct sw_sim_kind *b)
{
    return a == b || (strcmp(a->plural, b->plural) == 0 && strcmp(a->group, b->group) == 0);
}

static struct resource *find_resource(const struct sw_sim_store *store,
                                      const struct sw_sim_kind *kind)
{
    for (size_t i = 0; i < store->resource_count; i++) {
        struct resource *resource = store->resources[i];
        if (strcmp(resource->plural, kind->plural) == 0 &&
            strcmp(resource->group, kind->group) == 0) {
            return resource;
        }
    }
    return NULL;
}

static struct resource *make_resource(struct sw_sim_store *store, const struct sw_sim_kind *kind)
{
    struct resource *resource = find_resource(store, kind);
    if (!resource) {
        resource = SW_NEW(struct resource);
        resource->group = sw_strdup(kind->group);
        resource->plural = sw_strdup(kind->plural);
        store->resources =
            sw_realloc(store->resources, store->resource_count + 1, sizeof(struct resource *));
        store->resources[store->resource_count++] = resource;
    }
    return resource;
}

/* ---- the store ---- */

struct sw_sim_store *sw_sim_store_new(uint64_t first_version, size_t window)
{
    struct sw_sim_store *store = SW_NEW(struct sw_sim_store);
    store->version = first_version;
    store->owned = sw_map_new();
    store->shelf = sw_sim_shelf_new();
    store->waiting_end = &store->waiting;
    sw_sim_window_init(&store->window, window, first_version);
    return store;
}

struct sw_sim_store *sw_sim_store_free(struct sw_sim_store *store)
{
    if (!store) {
        return NULL;
    }
    sw_assert(!store->is_telling);
    sw_sim_window_done(&store->window);
    sw_sim_owned_done(store->owned);
    for (size_t i = 0; i < store->resource_count; i++) {
        struct resource *resource = store->resources[i];
        sw_sim_index_done(&resource->index);
        sw_free(resource->group);
        sw_free(resource->plural);
        sw_free(resource);
    }
    sw_free(store->resources);
    store->shelf->on_full = NULL;
    sw_sim_shelf_unref(store->shelf);
    return sw_free(store);
}

void sw_sim_store_limit(struct sw_sim_store *store, const struct sw_sim_limits *limits)
{
    store->shelf->max = limits->documents;
    store->window.bytes_max = limits->window_bytes;
}

void sw_sim_store_on_full(struct sw_sim_store *store, void (*fn)(void *arg), void *arg)
{
    store->shelf->on_full = fn;
    store->shelf->arg = arg;
}

void sw_sim_store_trim(struct sw_sim_store *store)
{
    sw_sim_shelf_trim(store->shelf);
}

uint64_t sw_sim_store_version(const struct sw_sim_store *store)
{
    return store->version;
}

/* The key of what was asked for; NULL where it is longer than any name may be. */
static const char *make_key(const struct sw_sim_kind *kind, const char *namespace_,
                            const char *name, char *room, size_t size)
{
    if (!kind->is_namespaced) {
        return name;
    }
    size_t space_len = strlen(namespace_);
    size_t name_len = strlen(name);
    if (space_len + name_len + 2 > size) {
        return NULL;
    }
    memcpy(room, namespace_, space_len);
    room[space_len] = '/';
    memcpy(room + space_len + 1, name, name_len + 1);
    return room;
}

const struct sw_sim_object *sw_sim_store_get(const struct sw_sim_store *store,
                                             const struct sw_sim_kind *kind, const char *namespace_,
                                             const char *name)
{
    const struct resource *resource = find_resource(store, kind);
    char room[512];
    const char *key = make_key(kind, namespace_, name, room, sizeof(room));
    struct sw_sim_place place;
    if (!resource || !key || !sw_sim_index_find(&resource->index, key, &place)) {
        return NULL;
    }
    return sw_sim_index_at(&resource->index, place);
}

size_t sw_sim_store_count(const struct sw_sim_store *store, const struct sw_sim_kind *kind)
{
    const struct resource *resource = find_resource(store, kind);
    return resource ? resource->index.objects : 0;
}

int sw_sim_store_each(const struct sw_sim_store *store, const struct sw_sim_kind *kind,
                      const char *namespace_, const char *after,
                      int (*fn)(void *arg, const struct sw_sim_object *object), void *arg)
{
    const struct resource *resource = find_resource(store, kind);
    if (!resource) {
        return 0;
    }
    SW_AUTO(char, sw_free) prefix = NULL;
    if (namespace_ && kind->is_namespaced) {
        prefix = sw_asprintf("%s/", namespace_);
    }
    size_t prefix_len = prefix ? strlen(prefix) : 0;
    const char *from = after && (!prefix || strcmp(after, prefix) > 0) ? after : prefix;
    struct sw_sim_place place = {0};
    bool is_there = from && sw_sim_index_find(&resource->index, from, &place);
    const struct sw_sim_object *object = sw_sim_index_at(&resource->index, place);
    if (is_there && from == after) {
        object = sw_sim_index_next(&resource->index, &place);
    }
    for (; object; object = sw_sim_index_next(&resource->index, &place)) {
        if (prefix && strncmp(object->key, prefix, prefix_len) != 0) {
            break;
        }
        int code = fn(arg, object);
        if (code) {
            return code;
        }
    }
    return 0;
}

int sw_sim_store_each_owned(const struct sw_sim_store *store, const char *uid,
                            int (*fn)(void *arg, const struct sw_sim_object *object), void *arg)
{
    return sw_sim_owned_each(store->owned, uid, fn, arg);
}

void sw_sim_store_set_kind(struct sw_sim_store *store, const struct sw_sim_kind *kind)
{
    struct resource *resource = find_resource(store, kind);
    for (size_t i = 0; resource && i < resource->index.count; i++) {
        struct sw_sim_block *block = resource->index.blocks[i];
        for (size_t k = 0; k < block->count; k++) {
            block->at[k]->kind = kind;
        }
    }
}

/* ---- changes ---- */

static void tell(struct sw_sim_store *store, const struct sw_sim_change *change)
{
    struct sw_sim_store_watcher *watcher = store->watchers;
    while (watcher) {
        store->telling = watcher->next;
        watcher->on_change(watcher, change);
        watcher = store->telling;
    }
    store->telling = NULL;
}

static void tell_waiting(struct sw_sim_store *store)
{
    if (store->is_telling) {
        return;
    }
    store->is_telling = true;
    while (store->waiting) {
        struct told *told = store->waiting;
        store->waiting = told->next;
        if (!store->waiting) {
            store->waiting_end = &store->waiting;
        }
        tell(store, &told->change);
        sw_sim_object_unref(told->change.object);
        sw_sim_object_unref(told->change.before);
        sw_free(told);
    }
    store->is_telling = false;
}

static void changed(struct sw_sim_store *store, const struct sw_sim_change *change)
{
    sw_sim_window_add(&store->window, change);
    struct told *told = SW_NEW(struct told);
    told->change = *change;
    sw_sim_object_ref(change->object);
    if (change->before) {
        sw_sim_object_ref(change->before);
    }
    *store->waiting_end = told;
    store->waiting_end = &told->next;
    tell_waiting(store);
}

const struct sw_sim_object *sw_sim_store_put(struct sw_sim_store *store,
                                             const struct sw_sim_kind *kind, json_t *json)
{
    struct sw_sim_object *object = sw_sim_object_new(store->shelf, kind, json, ++store->version);
    struct resource *resource = make_resource(store, kind);
    struct sw_sim_object *before = sw_sim_index_set(&resource->index, object);
    sw_sim_owned_change(store->owned, before, object);
    struct sw_sim_change change = {
        .version = object->version,
        .type = before ? SW_SIM_MODIFIED : SW_SIM_ADDED,
        .object = object,
        .before = before,
    };
    changed(store, &change);
    sw_sim_object_unref(before);
    return object;
}

const struct sw_sim_object *sw_sim_store_remove_as(struct sw_sim_store *store,
                                                   const struct sw_sim_object *object, json_t *json)
{
    struct resource *resource = find_resource(store, object->kind);
    sw_assert(resource);
    struct sw_sim_object *before = sw_sim_index_remove(&resource->index, object->key);
    sw_assert(before == object);
    sw_sim_owned_change(store->owned, before, NULL);
    struct sw_sim_object *last =
        sw_sim_object_new(store->shelf, before->kind, json, ++store->version);
    struct sw_sim_change change = {
        .version = last->version,
        .type = SW_SIM_DELETED,
        .object = last,
        .before = before,
    };
    changed(store, &change);
    sw_sim_object_unref(before);
    return last;
}

void sw_sim_store_remove(struct sw_sim_store *store, const struct sw_sim_object *object)
{
    sw_sim_object_unref(
        sw_sim_store_remove_as(store, object, sw_sim_share(sw_sim_object_json(object))));
}

int sw_sim_store_changes(const struct sw_sim_store *store, const struct sw_sim_kind *kind,
                         uint64_t behind, int (*fn)(void *arg, const struct sw_sim_change *change),
                         void *arg)
{
    const struct sw_sim_window *window = &store->window;
    if (behind < window->floor) {
        return -ESTALE;
    }
    for (size_t i = sw_sim_window_behind(window, behind); i < window->count; i++) {
        const struct sw_sim_change *change = sw_sim_window_at(window, i);
        if (sw_sim_same_resource(change->object->kind, kind)) {
            int code = fn(arg, change);
            if (code) {
                return code;
            }
        }
    }
    return 0;
}

uint64_t sw_sim_store_floor(const struct sw_sim_store *store)
{
    return store->window.floor;
}

void sw_sim_store_compact(struct sw_sim_store *store, uint64_t upto)
{
    sw_sim_window_forget(&store->window, SW_MIN(upto, store->version));
}

/* ---- watchers ---- */

void sw_sim_store_watch(struct sw_sim_store *store, struct sw_sim_store_watcher *watcher)
{
    struct sw_sim_store_watcher **end = &store->watchers;
    while (*end) {
        end = &(*end)->next;
    }
    watcher->next = NULL;
    *end = watcher;
}

void sw_sim_store_unwatch(struct sw_sim_store *store, struct sw_sim_store_watcher *watcher)
{
    for (struct sw_sim_store_watcher **at = &store->watchers; *at; at = &(*at)->next) {
        if (*at == watcher) {
            *at = watcher->next;
            if (store->telling == watcher) {
                store->telling = watcher->next;
            }
            return;
        }
    }
}
