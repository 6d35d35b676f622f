/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Events of the controllers, counted as client-go's recorder counts them
 * (tools/record/events_cache.go): one that is the same again raises a count; of more than ten that
 * differ only in their message within ten minutes the rest are one "combined" Event; and of one
 * object there are 25 at once, then one in five minutes.
 *
 * The real one knows the Event of each message from a cache. Here its name is made of what it says,
 * so the store knows it; the rest is forgotten where it would become more than the real cache
 * holds.
 */
#include "recorder.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api.h"
#include "base/buf.h"
#include "base/loop.h"
#include "base/map.h"
#include "base/util.h"
#include "kind.h"
#include "look.h"
#include "store.h"

enum {
    SIMILAR_MAX = 10,
    SIMILAR_MS = 10 * 60 * 1000,
    BURST = 25,
    REFILL_MS = 5 * 60 * 1000,
    CACHE = 4096,
};

/* Of an object, or of an object and a reason. */
struct account {
    unsigned count;
    uint64_t since_ms;
};

struct sw_sim_recorder {
    struct sw_loop *loop;
    struct sw_sim_store *store;
    struct sw_sim_api *api;
    const struct sw_sim_kind *kind;
    struct sw_map *spent;   /* uid -> struct account: taken out of the burst */
    struct sw_map *similar; /* uid/reason -> struct account */
};

struct sw_sim_recorder *sw_sim_recorder_new(struct sw_loop *loop, struct sw_sim_store *store,
                                            struct sw_sim_api *api)
{
    struct sw_sim_recorder *recorder = SW_NEW(struct sw_sim_recorder);
    *recorder = (struct sw_sim_recorder){
        .loop = loop,
        .store = store,
        .api = api,
        .kind = sw_sim_api_kind(api, "", "v1", "events"),
        .spent = sw_map_new(),
        .similar = sw_map_new(),
    };
    return recorder;
}

/* Down to so many, the oldest first. */
static void forget(struct sw_map *map, size_t left)
{
    struct sw_map_iter it = {0};
    while (sw_map_size(map) > left && sw_map_next(map, &it)) {
        sw_map_remove(map, it.key);
        sw_free(it.value);
    }
}

struct sw_sim_recorder *sw_sim_recorder_free(struct sw_sim_recorder *recorder)
{
    if (!recorder)
        return NULL;
    forget(recorder->spent, 0);
    forget(recorder->similar, 0);
    sw_map_free(recorder->spent);
    sw_map_free(recorder->similar);
    return sw_free(recorder);
}

static struct account *account_of(struct sw_map *map, const char *key, uint64_t now_ms)
{
    struct account *account = sw_map_get(map, key);
    if (!account) {
        if (sw_map_size(map) >= CACHE)
            forget(map, CACHE / 2);
        account = SW_NEW(struct account);
        account->since_ms = now_ms;
        sw_map_set(map, key, account);
    }
    return account;
}

/* ---- how many ---- */

static bool may_speak(struct sw_sim_recorder *recorder, const struct sw_sim_object *object)
{
    uint64_t now_ms = sw_now_ms(recorder->loop);
    struct account *spent = account_of(recorder->spent, object->uid, now_ms);
    uint64_t refilled = (now_ms - spent->since_ms) / REFILL_MS;
    spent->since_ms += refilled * REFILL_MS;
    spent->count -= (unsigned)SW_MIN(refilled, (uint64_t)spent->count);
    if (spent->count == BURST)
        return false;
    spent->count++;
    return true;
}

/* Whether those before it that said the like are so many that this one is counted with the rest. */
static bool is_one_of_many(struct sw_sim_recorder *recorder, const struct sw_sim_object *object,
                           const char *reason)
{
    uint64_t now_ms = sw_now_ms(recorder->loop);
    SW_AUTO(char, sw_free) key = sw_asprintf("%s/%s", object->uid, reason);
    struct account *similar = account_of(recorder->similar, key, now_ms);
    if (now_ms - similar->since_ms > SIMILAR_MS)
        similar->count = 0;
    similar->since_ms = now_ms;
    return ++similar->count >= SIMILAR_MAX;
}

/* ---- the Event ---- */

static char *name_of(const struct sw_sim_object *object, const char *reason, const char *message)
{
    SW_AUTO(char, sw_free) said = sw_asprintf("%s/%s/%s", object->uid, reason, message);
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (const char *at = said; *at; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
    return sw_asprintf("%s.%016" PRIx64, object->name, hash);
}

static json_t *make(const struct sw_sim_recorder *recorder, const struct sw_sim_object *object,
                    const char *component, const char *reason)
{
    json_t *now = sw_look_time(sw_wall_us(recorder->loop));
    char version[24];
    snprintf(version, sizeof(version), "%" PRIu64, object->version);
    return json_pack("{s:s, s:s, s:{s:s}, s:{s:s, s:s, s:s, s:s, s:s, s:s}, s:s, s:{s:s}, s:O, "
                     "s:o, s:i, s:s}",
                     "apiVersion", "v1", "kind", "Event", "metadata", "namespace",
                     object->namespace_, "involvedObject", "kind", object->kind->kind, "namespace",
                     object->namespace_, "name", object->name, "uid", object->uid, "apiVersion",
                     sw_look_string(sw_sim_object_json(object), "apiVersion"), "resourceVersion",
                     version, "reason", reason, "source", "component", component, "firstTimestamp",
                     now, "lastTimestamp", now, "count", 1, "type", "Normal");
}

static void count_again(struct sw_sim_recorder *recorder, const struct sw_sim_object *event,
                        const char *message)
{
    json_t *json = sw_look_copy(sw_sim_object_json(event));
    json_object_set_new(json, "count", json_integer(sw_look_int(json, "count", 1) + 1));
    json_object_set_new(json, "lastTimestamp", sw_look_time(sw_wall_us(recorder->loop)));
    json_object_set_new(json, "message", json_string(message));
    sw_sim_update(recorder->api, recorder->kind, json);
}

void sw_sim_record(struct sw_sim_recorder *recorder, const struct sw_sim_object *object,
                   const char *component, const char *reason, const char *format, ...)
{
    if (!recorder || !may_speak(recorder, object))
        return;
    struct sw_buf message;
    sw_buf_init(&message, SIZE_MAX);
    va_list args;
    va_start(args, format);
    bool is_combined = is_one_of_many(recorder, object, reason);
    if (is_combined)
        sw_buf_puts(&message, "(combined from similar events): ");
    sw_buf_vprintf(&message, format, args);
    va_end(args);
    SW_AUTO(char, sw_free) name = name_of(object, reason, is_combined ? "" : message.bytes);
    const struct sw_sim_object *before =
        sw_sim_store_get(recorder->store, recorder->kind, object->namespace_, name);
    if (before) {
        count_again(recorder, before, message.bytes);
    } else {
        json_t *event = make(recorder, object, component, reason);
        json_object_set_new(json_object_get(event, "metadata"), "name", json_string(name));
        json_object_set_new(event, "message", json_string(message.bytes));
        /* Nothing hangs on it: in a namespace that goes, say, there are no new ones. */
        sw_sim_create(recorder->api, recorder->kind, event, NULL);
    }
    sw_buf_done(&message);
}
