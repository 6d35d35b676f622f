/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may enter the store, what is told of it, and when objects are freed. Finding and listing is
 * store_table.c.
 *
 * A change is made at once and told at once, but never from within the telling of another: then it
 * waits in the queue. What was replaced is freed by a timer that is due now: timers run after all
 * that was deferred in this turn, so whoever has a pointer from the same turn may still use it.
 */
#include "kube/store.h"

#include <string.h>

#include "base/loop.h"
#include "base/map.h"
#include "base/util.h"
#include "kube/decode.h"
#include "kube/store_table.h"

enum {
    GRAVE_MS = 5 * 60 * 1000,
    /* A namespace with ten thousand Pods may go within the five minutes; 16 384 graves take 2 MiB.
     */
    GRAVES = 16384,
};

/* Of an object that is gone. Nothing of that uid up to this version comes back. */
struct grave {
    uint64_t until_ms;
    char *version; /* NULL: no version ever */
};

struct objects {
    struct sw_object **at;
    size_t count, room;
};

struct entries {
    struct sw_store_entry **at;
    size_t count, room;
};

struct sw_store {
    struct sw_loop *loop;
    struct sw_decoder *decoder;
    sw_change_fn fn;
    void *arg;
    struct sw_store_table table;
    size_t object_bytes;
    struct sw_map *graves; /* uid -> struct grave, the oldest first */
    struct objects garbage;
    struct sw_timer collect;
    struct {
        struct sw_change *at;
        size_t count, room, told;
    } changes;
    bool is_telling;
    bool is_replacing;
    uint64_t replacements; /* begun */
    struct entries side;   /* in the order of the list */
};

/* ---- freeing ---- */

static void free_object(struct sw_store *store, struct sw_object *object)
{
    if (object) {
        store->object_bytes -= sw_object_size(object);
        sw_object_free(store->decoder, object);
    }
}

static void collect_garbage(struct sw_timer *timer)
{
    struct sw_store *store = container_of(timer, struct sw_store, collect);
    for (size_t i = 0; i < store->garbage.count; i++) {
        free_object(store, store->garbage.at[i]);
    }
    store->garbage.at = sw_free(store->garbage.at);
    store->garbage.count = store->garbage.room = 0;
}

static void discard(struct sw_store *store, struct sw_object *object)
{
    struct objects *garbage = &store->garbage;
    if (garbage->count == garbage->room) {
        garbage->room = SW_MAX(garbage->room * 2, (size_t)8);
        garbage->at = sw_realloc(garbage->at, garbage->room, sizeof(struct sw_object *));
    }
    garbage->at[garbage->count++] = object;
    if (!sw_timer_is_active(&store->collect)) {
        sw_timer_start(&store->collect, 0);
    }
}

/* ---- telling ---- */

static void note_change(struct sw_store *store, enum sw_change_type type,
                        const struct sw_object *old, const struct sw_object *now, bool is_from_list)
{
    if (store->changes.count == store->changes.room) {
        store->changes.room = SW_MAX(store->changes.room * 2, (size_t)8);
        store->changes.at =
            sw_realloc(store->changes.at, store->changes.room, sizeof(struct sw_change));
    }
    store->changes.at[store->changes.count++] = (struct sw_change){
        .type = type,
        .old = old,
        .now = now,
        .is_from_list = is_from_list,
    };
}

static void tell(struct sw_store *store)
{
    if (store->is_telling) {
        return;
    }
    store->is_telling = true;
    while (store->changes.told < store->changes.count) {
        struct sw_change change = store->changes.at[store->changes.told++];
        if (store->fn) {
            store->fn(store->arg, &change);
        }
    }
    store->is_telling = false;
    store->changes.count = store->changes.told = 0;
    if (store->changes.room > 1024) { /* after a relist */
        store->changes.at = sw_free(store->changes.at);
        store->changes.room = 0;
    }
}

/* ---- graves ---- */

static void dig_up(struct sw_store *store, const char *uid)
{
    struct grave *grave = sw_map_remove(store->graves, uid);
    if (grave) {
        sw_free(grave->version);
        sw_free(grave);
    }
}

static void forget_graves(struct sw_store *store)
{
    struct sw_map_iter it = {0};
    while (sw_map_next(store->graves, &it)) {
        dig_up(store, it.key);
    }
}

static void forget_old_graves(struct sw_store *store)
{
    struct sw_map_iter it = {0};
    while (sw_map_next(store->graves, &it)) {
        const struct grave *grave = it.value;
        if (grave->until_ms > sw_now_ms(store->loop) && sw_map_size(store->graves) <= GRAVES) {
            break;
        }
        dig_up(store, it.key);
    }
}

static bool is_newer(const char *version, const char *than)
{
    bool is_known;
    return sw_version_compare(version, than, &is_known) > 0 && is_known;
}

static bool is_older(const char *version, const char *than)
{
    bool is_known;
    return sw_version_compare(version, than, &is_known) < 0 && is_known;
}

/* version "": it is gone for good. */
static void bury(struct sw_store *store, const char *uid, const char *version)
{
    if (!uid[0]) {
        return;
    }
    const struct grave *there = sw_map_get(store->graves, uid);
    if (there && (!there->version || is_newer(there->version, version))) {
        return;
    }
    dig_up(store, uid);
    struct grave *grave = SW_NEW(struct grave);
    grave->until_ms = sw_now_ms(store->loop) + GRAVE_MS;
    grave->version = version[0] ? sw_strdup(version) : NULL;
    sw_map_set(store->graves, uid, grave);
    forget_old_graves(store);
}

/* Was the list of that version made after this one? as_of NULL: no list. */
static bool knows(const char *as_of, const char *version)
{
    bool is_known;
    return as_of && sw_version_compare(as_of, version, &is_known) >= 0 && is_known;
}

static bool is_buried(struct sw_store *store, const struct sw_object *object, const char *as_of)
{
    const struct grave *grave = sw_map_get(store->graves, object->uid);
    if (!grave || grave->until_ms <= sw_now_ms(store->loop)) {
        return false;
    }
    if (!grave->version) {
        return true;
    }
    if (knows(as_of, grave->version)) {
        return false;
    }
    bool is_known;
    int order = sw_version_compare(object->resource_version, grave->version, &is_known);
    return is_known && order <= 0;
}

/* ---- changing ---- */

static void remove_entry(struct sw_store *store, struct sw_store_entry *entry, const char *version,
                         bool is_from_list)
{
    struct sw_object *old = entry->object;
    bury(store, old->uid, version);
    sw_store_table_set(&store->table, entry, NULL);
    sw_store_table_tidy(&store->table, entry);
    note_change(store, SW_CHANGE_DELETED, old, NULL, is_from_list);
    discard(store, old);
}

static void set_entry(struct sw_store *store, struct sw_store_entry *entry,
                      struct sw_object *object, bool is_from_list)
{
    struct sw_object *old = entry->object;
    bool is_same = old && strcmp(old->uid, object->uid) == 0;
    dig_up(store, object->uid);
    sw_store_table_set(&store->table, entry, object);
    if (old && !is_same) {
        bury(store, old->uid, object->resource_version);
        note_change(store, SW_CHANGE_DELETED, old, NULL, is_from_list);
    }
    note_change(store, is_same ? SW_CHANGE_MODIFIED : SW_CHANGE_ADDED, is_same ? old : NULL, object,
                is_from_list);
    if (old) {
        discard(store, old);
    }
}

enum verdict {
    ACCEPT,
    SAME,
    REFUSE,
};

/* May the object take the place of what the store has? Of one name there is one object at a time,
 * so an older one is an older one whatever its uid. as_of: the version of the list that names it;
 * NULL: none does. */
static enum verdict judge(struct sw_store *store, const struct sw_store_entry *entry,
                          const struct sw_object *object, const char *as_of)
{
    if (is_buried(store, object, as_of)) {
        return REFUSE;
    }
    const struct sw_object *there = entry ? entry->object : NULL;
    if (!there) {
        return ACCEPT;
    }
    if (object->resource_version[0] && strcmp(object->uid, there->uid) == 0 &&
        strcmp(object->resource_version, there->resource_version) == 0) {
        return SAME;
    }
    if (knows(as_of, there->resource_version)) {
        return ACCEPT;
    }
    return is_older(object->resource_version, there->resource_version) ? REFUSE : ACCEPT;
}

bool sw_store_put_take(struct sw_store *store, struct sw_object *object_taken)
{
    store->object_bytes += sw_object_size(object_taken);
    struct sw_store_entry *entry =
        sw_store_table_find(&store->table, object_taken->namespace_, object_taken->name);
    enum verdict verdict = judge(store, entry, object_taken, NULL);
    if (verdict != ACCEPT) {
        free_object(store, object_taken);
        return verdict == SAME;
    }
    entry = entry ? entry : sw_store_table_get(&store->table, object_taken);
    set_entry(store, entry, object_taken, false);
    tell(store);
    return true;
}

bool sw_store_delete(struct sw_store *store, const char *namespace_, const char *name,
                     const char *uid, const char *resource_version)
{
    uid = uid ? uid : "";
    resource_version = resource_version ? resource_version : "";
    struct sw_store_entry *entry = sw_store_table_find(&store->table, namespace_, name);
    const struct sw_object *there = entry ? entry->object : NULL;
    bool is_it = there && (!uid[0] || strcmp(uid, there->uid) == 0);
    if (is_it && is_older(resource_version, there->resource_version)) {
        return false;
    }
    if (!is_it) {
        bury(store, uid, resource_version);
        return false;
    }
    remove_entry(store, entry, resource_version, false);
    tell(store);
    return true;
}

/* ---- replacing ---- */

void sw_store_replace_begin(struct sw_store *store)
{
    sw_store_replace_abort(store);
    store->is_replacing = true;
    store->replacements++;
}

void sw_store_replace_add_take(struct sw_store *store, struct sw_object *object_taken)
{
    sw_assert(store->is_replacing);
    store->object_bytes += sw_object_size(object_taken);
    struct sw_store_entry *entry = sw_store_table_get(&store->table, object_taken);
    if (!entry->side) {
        if (store->side.count == store->side.room) {
            store->side.room = SW_MAX(store->side.room * 2, (size_t)64);
            store->side.at =
                sw_realloc(store->side.at, store->side.room, sizeof(struct sw_store_entry *));
        }
        store->side.at[store->side.count++] = entry;
    }
    free_object(store, entry->side); /* twice in the list: the last counts */
    entry->side = object_taken;
}

void sw_store_replace_remove(struct sw_store *store, const char *namespace_, const char *name)
{
    sw_assert(store->is_replacing);
    struct sw_store_entry *entry = sw_store_table_find(&store->table, namespace_, name);
    if (!entry || !entry->side) {
        return;
    }
    size_t i = 0; /* rare, so that looking for it is good enough */
    while (store->side.at[i] != entry) {
        i++;
    }
    store->side.at[i] = store->side.at[--store->side.count];
    free_object(store, sw_steal(&entry->side));
    sw_store_table_tidy(&store->table, entry);
}

void sw_store_replace_keep(struct sw_store *store, const char *namespace_, const char *name)
{
    sw_assert(store->is_replacing);
    struct sw_store_entry *entry = sw_store_table_find(&store->table, namespace_, name);
    if (entry) {
        entry->kept = store->replacements;
    }
}

static void forget_side(struct sw_store *store)
{
    store->side.at = sw_free(store->side.at);
    store->side.count = store->side.room = 0;
    store->is_replacing = false;
}

static void apply_side(struct sw_store *store, struct sw_store_entry *entry,
                       const char *list_version, bool is_anew)
{
    struct sw_object *item = sw_steal(&entry->side);
    if (is_anew || judge(store, entry, item, list_version) == ACCEPT) {
        set_entry(store, entry, item, true);
    } else {
        free_object(store, item);
        sw_store_table_tidy(&store->table, entry);
    }
}

static void replace(struct sw_store *store, const char *list_version, bool is_anew)
{
    sw_assert(store->is_replacing);
    struct sw_store_walk walk;
    struct sw_store_entry *entry;
    for (size_t i = 0; i < store->side.count; i++) {
        store->side.at[i]->is_named = true;
    }
    entry = sw_store_walk_begin(&store->table, &walk, SW_STORE_ALL, NULL);
    for (; entry; entry = sw_store_walk_next(&store->table, &walk)) {
        bool is_unknown = !is_anew && is_newer(entry->object->resource_version, list_version);
        bool is_kept = !is_anew && entry->kept == store->replacements;
        if (!entry->is_named && !is_unknown && !is_kept) {
            remove_entry(store, entry, list_version, true);
        }
    }
    sw_store_walk_end(&store->table, &walk);
    for (size_t i = 0; i < store->side.count; i++) {
        store->side.at[i]->is_named = false;
        apply_side(store, store->side.at[i], list_version, is_anew);
    }
    forget_side(store);
    tell(store);
}

void sw_store_replace_commit(struct sw_store *store, const char *list_version)
{
    replace(store, list_version, false);
}

void sw_store_replace_commit_anew(struct sw_store *store, const char *list_version)
{
    forget_graves(store);
    replace(store, list_version, true);
}

void sw_store_replace_abort(struct sw_store *store)
{
    for (size_t i = 0; i < store->side.count; i++) {
        struct sw_store_entry *entry = store->side.at[i];
        free_object(store, sw_steal(&entry->side));
        sw_store_table_tidy(&store->table, entry);
    }
    forget_side(store);
}

/* ---- looking ---- */

const struct sw_object *sw_store_get(const struct sw_store *store, const char *namespace_,
                                     const char *name)
{
    const struct sw_store_entry *entry = sw_store_table_find(&store->table, namespace_, name);
    return entry ? entry->object : NULL;
}

size_t sw_store_size(const struct sw_store *store)
{
    return store->table.listed;
}

size_t sw_store_bytes(const struct sw_store *store)
{
    return store->object_bytes + sw_store_table_bytes(&store->table);
}

static void visit_each(const struct sw_store *store, enum sw_store_index index, const char *which,
                       sw_store_visit_fn visit, void *arg)
{
    /* The contents stay as they are; but while the walk lasts the table knows of it. */
    struct sw_store_table *table = &((struct sw_store *)(uintptr_t)store)->table;
    struct sw_store_walk walk;
    struct sw_store_entry *entry = sw_store_walk_begin(table, &walk, index, which);
    while (entry && visit(arg, entry->object)) {
        entry = sw_store_walk_next(table, &walk);
    }
    sw_store_walk_end(table, &walk);
}

void sw_store_each(const struct sw_store *store, const char *namespace_, sw_store_visit_fn visit,
                   void *arg)
{
    visit_each(store, namespace_ ? SW_STORE_NAMESPACE : SW_STORE_ALL, namespace_, visit, arg);
}

void sw_store_each_owned(const struct sw_store *store, const char *owner_uid,
                         sw_store_visit_fn visit, void *arg)
{
    visit_each(store, SW_STORE_OWNER, owner_uid, visit, arg);
}

/* ---- life ---- */

struct sw_store *sw_store_new(struct sw_loop *loop, struct sw_decoder *decoder, sw_change_fn fn,
                              void *arg)
{
    struct sw_store *store = SW_NEW(struct sw_store);
    store->loop = loop;
    store->decoder = decoder;
    store->fn = fn;
    store->arg = arg;
    store->graves = sw_map_new();
    sw_store_table_init(&store->table);
    sw_timer_init(&store->collect, loop, collect_garbage);
    return store;
}

static void free_objects(struct sw_store *store)
{
    struct sw_store_walk walk;
    struct sw_store_entry *entry = sw_store_walk_begin(&store->table, &walk, SW_STORE_ALL, NULL);
    for (; entry; entry = sw_store_walk_next(&store->table, &walk)) {
        free_object(store, entry->object);
    }
    sw_store_walk_end(&store->table, &walk);
}

struct sw_store *sw_store_free(struct sw_store *store)
{
    if (store) {
        sw_assert(!store->is_telling);
        sw_store_replace_abort(store);
        sw_timer_stop(&store->collect);
        collect_garbage(&store->collect);
        free_objects(store);
        sw_assert(store->object_bytes == 0);
        sw_store_table_done(&store->table);
        forget_graves(store);
        sw_map_free(store->graves);
        sw_free(store->changes.at);
        sw_free(store);
    }
    return NULL;
}
