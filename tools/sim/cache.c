/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of changes that have happened but are not known here yet, and a timer for the first. */
#include "cache.h"

#include <string.h>

#include "api_internal.h"
#include "base/util.h"

struct coming {
    struct sw_sim_change change; /* its objects are counted */
    uint64_t at_ms;              /* when it happened */
};

struct sw_sim_cache {
    struct sw_sim_store_watcher watcher;
    struct sw_sim_api *api;
    uint64_t lag_ms;
    struct coming *ring;
    size_t first, count, room;
    struct sw_timer timer;
};

static const struct coming *at(const struct sw_sim_cache *cache, size_t number)
{
    return &cache->ring[(cache->first + number) % cache->room];
}

static void forget_first(struct sw_sim_cache *cache)
{
    const struct sw_sim_change *change = &at(cache, 0)->change;

    sw_sim_object_unref(change->object);
    sw_sim_object_unref(change->before);
    cache->first = (cache->first + 1) % cache->room;
    cache->count--;
}

static void wait_for_first(struct sw_sim_cache *cache)
{
    if (cache->count > 0)
        sw_timer_start_at(&cache->timer, at(cache, 0)->at_ms + cache->lag_ms);
    else
        sw_timer_stop(&cache->timer);
}

/* Who is told may make requests that change the store: what is new comes in at the end. */
static void on_timer(struct sw_timer *timer)
{
    struct sw_sim_cache *cache = container_of(timer, struct sw_sim_cache, timer);
    uint64_t now_ms = sw_now_ms(cache->api->loop);

    while (cache->count > 0 && at(cache, 0)->at_ms + cache->lag_ms <= now_ms) {
        struct sw_sim_change change = at(cache, 0)->change;
        sw_sim_object_ref(change.object);
        if (change.before)
            sw_sim_object_ref(change.before);
        forget_first(cache);
        sw_sim_watch_change(cache->api, cache, &change);
        sw_sim_object_unref(change.object);
        sw_sim_object_unref(change.before);
    }
    wait_for_first(cache);
}

static void grow(struct sw_sim_cache *cache)
{
    size_t room = cache->room ? cache->room * 2 : 64;
    struct coming *ring = sw_calloc(room, sizeof *ring);

    for (size_t i = 0; i < cache->count; i++)
        ring[i] = *at(cache, i);
    sw_free(cache->ring);
    cache->ring = ring;
    cache->first = 0;
    cache->room = room;
}

static void on_change(struct sw_sim_store_watcher *watcher, const struct sw_sim_change *change)
{
    struct sw_sim_cache *cache = container_of(watcher, struct sw_sim_cache, watcher);

    if (cache->lag_ms == 0 && cache->count == 0) {
        sw_sim_watch_change(cache->api, cache, change);
        return;
    }
    if (cache->count == cache->room)
        grow(cache);
    cache->ring[(cache->first + cache->count) % cache->room] =
        (struct coming){*change, sw_now_ms(cache->api->loop)};
    sw_sim_object_ref(change->object);
    if (change->before)
        sw_sim_object_ref(change->before);
    if (cache->count++ == 0)
        wait_for_first(cache);
}

void sw_sim_cache_set_lag(struct sw_sim_cache *cache, uint64_t lag_ms)
{
    cache->lag_ms = lag_ms;
    wait_for_first(cache);
}

uint64_t sw_sim_cache_version(const struct sw_sim_cache *cache)
{
    return cache->count > 0 ? at(cache, 0)->change.version - 1
                            : sw_sim_store_version(cache->api->store);
}

uint64_t sw_sim_cache_reaches_ms(const struct sw_sim_cache *cache, uint64_t version)
{
    for (size_t i = cache->count; i > 0; i--)
        if (at(cache, i - 1)->change.version <= version)
            return at(cache, i - 1)->at_ms + cache->lag_ms;
    return 0;
}

int sw_sim_cache_missing(const struct sw_sim_cache *cache, const struct sw_sim_kind *kind,
                         int (*fn)(void *arg, const struct sw_sim_change *change), void *arg)
{
    for (size_t i = 0; i < cache->count; i++) {
        const struct sw_sim_change *change = &at(cache, i)->change;
        int code = sw_sim_same_resource(change->object->kind, kind) ? fn(arg, change) : 0;
        if (code)
            return code;
    }
    return 0;
}

const struct sw_sim_object *sw_sim_cache_get(const struct sw_sim_cache *cache,
                                             const struct sw_sim_kind *kind, const char *namespace_,
                                             const char *name)
{
    for (size_t i = 0; i < cache->count; i++) {
        const struct sw_sim_change *change = &at(cache, i)->change;
        if (sw_sim_same_resource(change->object->kind, kind) &&
            strcmp(change->object->name, name) == 0 &&
            strcmp(change->object->namespace_, namespace_) == 0)
            return change->before;
    }
    return sw_sim_store_get(cache->api->store, kind, namespace_, name);
}

struct sw_sim_cache *sw_sim_cache_new(struct sw_sim_api *api)
{
    struct sw_sim_cache *cache = SW_NEW(struct sw_sim_cache);

    cache->api = api;
    sw_timer_init(&cache->timer, api->loop, on_timer);
    cache->watcher.on_change = on_change;
    sw_sim_store_watch(api->store, &cache->watcher);
    return cache;
}

struct sw_sim_cache *sw_sim_cache_free(struct sw_sim_cache *cache)
{
    if (!cache)
        return NULL;
    sw_sim_store_unwatch(cache->api->store, &cache->watcher);
    sw_timer_stop(&cache->timer);
    while (cache->count > 0)
        forget_first(cache);
    sw_free(cache->ring);
    return sw_free(cache);
}
