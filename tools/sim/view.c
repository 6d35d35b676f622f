/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An informer's cache: a queue of changes that have happened but are not yet known, a table of what
 * is known, and the index by controller.
 */
#include "view.h"

#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/util.h"
#include "kind.h"
#include "look.h"

struct sw_sim_family {
    char *uid;
    struct sw_link items;
};

struct change {
    enum sw_sim_change_type type;
    const struct sw_sim_object *object; /* counted */
    uint64_t version, due_ms;
};

struct sw_sim_view {
    struct sw_loop *loop;
    const struct sw_sim_kind *kind;
    bool is_pods;
    sw_sim_view_fn on_change;
    void *arg;
    uint64_t lag_min_ms, lag_max_ms;

    struct sw_map *items;    /* "namespace/name" -> struct sw_sim_item */
    struct sw_map *families; /* uid -> struct sw_sim_family */
    struct sw_link orphans;
    struct sw_map *names; /* that Pods point at; they stay */

    struct change *coming; /* a ring */
    size_t first, count, room;
    struct sw_timer timer;
};

/* ---- Pods ---- */

bool sw_sim_pod_is_active(const struct sw_sim_pod *pod)
{
    return pod->phase != SW_SIM_SUCCEEDED && pod->phase != SW_SIM_FAILED && !pod->is_deleted;
}

bool sw_sim_pod_is_available(const struct sw_sim_pod *pod, int64_t min_ready_s, int64_t wall_us)
{
    return pod->is_ready && (min_ready_s == 0 || pod->ready_us + min_ready_s * 1000000 < wall_us);
}

static enum sw_sim_phase phase_of(const char *text)
{
    static const char *const names[] = {"Pending", "Unknown", "Running", "Succeeded", "Failed"};
    for (size_t i = 0; i < SW_ARRAY_SIZE(names); i++) {
        if (strcmp(text, names[i]) == 0)
            return (enum sw_sim_phase)i;
    }
    return SW_SIM_PENDING;
}

/* Names of Nodes are few, and the same again and again. */
static const char *keep_name(struct sw_sim_view *view, const char *name)
{
    static char marker;
    if (!sw_map_get(view->names, name))
        sw_map_set(view->names, name, &marker);
    return sw_map_key(view->names, name);
}

static struct sw_sim_pod read_pod(struct sw_sim_view *view, const struct sw_sim_object *object)
{
    const json_t *spec = json_object_get(sw_sim_object_json(object), "spec");
    const json_t *status = json_object_get(sw_sim_object_json(object), "status");
    const json_t *ready = sw_look_element(json_object_get(status, "conditions"), "type", "Ready");
    struct sw_sim_pod pod = {
        .phase = phase_of(sw_look_string(status, "phase")),
        .is_ready = strcmp(sw_look_string(ready, "status"), "True") == 0,
        .is_deleted = sw_look_is_deleted(object),
        .created_us = sw_look_created_us(object),
        .node = keep_name(view, sw_look_string(spec, "nodeName")),
    };
    if (pod.is_ready)
        pod.ready_us = sw_look_time_us(ready, "lastTransitionTime");
    size_t at;
    json_t *one;
    json_array_foreach(json_object_get(status, "containerStatuses"), at, one)
    {
        int64_t restarts = sw_look_int(one, "restartCount", 0);
        pod.restarts = SW_MAX(pod.restarts, restarts);
    }
    return pod;
}

/* ---- items and families ---- */

const char *sw_sim_key(char key[SW_SIM_KEY_SIZE], const char *namespace_, const char *name)
{
    size_t first = SW_MIN(strlen(namespace_), (size_t)SW_SIM_KEY_SIZE / 2);
    size_t second = SW_MIN(strlen(name), (size_t)SW_SIM_KEY_SIZE / 2 - 2);
    memcpy(key, namespace_, first);
    key[first] = '/';
    memcpy(key + first + 1, name, second);
    key[first + 1 + second] = 0;
    return key;
}

static void leave_family(struct sw_sim_view *view, struct sw_sim_item *item)
{
    struct sw_sim_family *family = item->family;
    sw_link_remove(&item->sibling);
    item->family = NULL;
    if (family && !sw_link_is_used(&family->items)) {
        sw_map_remove(view->families, family->uid);
        sw_free(family->uid);
        sw_free(family);
    }
}

static void join_family(struct sw_sim_view *view, struct sw_sim_item *item)
{
    const char *uid =
        sw_look_string(sw_look_controller_of(sw_sim_object_json(item->object)), "uid");
    if (item->family && strcmp(item->family->uid, uid) == 0)
        return;
    if (!item->family && !*uid && sw_link_is_used(&item->sibling))
        return;
    leave_family(view, item);
    if (!*uid) {
        sw_link_add_last(&view->orphans, &item->sibling);
        return;
    }
    struct sw_sim_family *family = sw_map_get(view->families, uid);
    if (!family) {
        family = SW_NEW(struct sw_sim_family);
        family->uid = sw_strdup(uid);
        sw_link_init(&family->items);
        sw_map_set(view->families, uid, family);
    }
    item->family = family;
    sw_link_add_last(&family->items, &item->sibling);
}

static void take_object(struct sw_sim_view *view, struct sw_sim_item *item,
                        const struct sw_sim_object *object)
{
    item->object = sw_sim_object_ref(object);
    if (view->is_pods)
        item->pod = read_pod(view, object);
    join_family(view, item);
}

static void free_item(struct sw_sim_view *view, struct sw_sim_item *item)
{
    leave_family(view, item);
    sw_sim_object_unref(item->object);
    sw_free(item);
}

static void put(struct sw_sim_view *view, const char *key, const struct sw_sim_object *object)
{
    struct sw_sim_item *item = sw_map_get(view->items, key);
    struct sw_sim_item before = {0};
    bool is_new = !item;
    if (is_new) {
        item = SW_NEW(struct sw_sim_item);
        sw_link_init(&item->sibling);
        sw_map_set(view->items, key, item);
    } else {
        before = *item;
    }
    take_object(view, item, object);
    view->on_change(view->arg, view, is_new ? NULL : &before, item);
    sw_sim_object_unref(before.object);
}

static void drop(struct sw_sim_view *view, const char *key)
{
    struct sw_sim_item *item = sw_map_remove(view->items, key);
    if (!item)
        return;
    /* Whoever asks for its family meanwhile must not find it there any more. */
    leave_family(view, item);
    view->on_change(view->arg, view, item, NULL);
    free_item(view, item);
}

/* ---- what is on its way ---- */

static void apply(struct sw_sim_view *view, const struct change *change)
{
    char key[SW_SIM_KEY_SIZE];
    sw_sim_key(key, change->object->namespace_, change->object->name);
    if (change->type == SW_SIM_DELETED)
        drop(view, key);
    else
        put(view, key, change->object);
}

static void wait_for_next(struct sw_sim_view *view)
{
    if (view->count)
        sw_timer_start_at(&view->timer, view->coming[view->first].due_ms);
    else
        sw_timer_stop(&view->timer);
}

static void on_timer(struct sw_timer *timer)
{
    struct sw_sim_view *view = container_of(timer, struct sw_sim_view, timer);
    uint64_t now_ms = sw_now_ms(view->loop);
    while (view->count && view->coming[view->first].due_ms <= now_ms) {
        struct change change = view->coming[view->first];
        view->first = (view->first + 1) % view->room;
        view->count--;
        apply(view, &change);
        sw_sim_object_unref(change.object);
    }
    wait_for_next(view);
}

static void grow(struct sw_sim_view *view)
{
    size_t room = view->room ? view->room * 2 : 64;
    struct change *ring = sw_calloc(room, sizeof(*ring));
    for (size_t i = 0; i < view->count; i++)
        ring[i] = view->coming[(view->first + i) % view->room];
    sw_free(view->coming);
    view->coming = ring;
    view->first = 0;
    view->room = room;
}

void sw_sim_view_tell(struct sw_sim_view *view, const struct sw_sim_change *change)
{
    if (view->count == view->room)
        grow(view);
    uint64_t due_ms =
        sw_now_ms(view->loop) + sw_random_between(view->loop, view->lag_min_ms, view->lag_max_ms);
    if (view->count) {
        /* One stream: nothing overtakes. */
        uint64_t last_ms = view->coming[(view->first + view->count - 1) % view->room].due_ms;
        due_ms = SW_MAX(due_ms, last_ms);
    }
    view->coming[(view->first + view->count) % view->room] = (struct change){
        .type = change->type,
        .object = sw_sim_object_ref(change->object),
        .version = change->version,
        .due_ms = due_ms,
    };
    if (view->count++ == 0)
        wait_for_next(view);
}

bool sw_sim_view_has(const struct sw_sim_view *view, uint64_t version)
{
    return !view->count || view->coming[view->first].version > version;
}

bool sw_sim_view_is_quiet(const struct sw_sim_view *view)
{
    return !view->count;
}

void sw_sim_view_clear(struct sw_sim_view *view)
{
    for (; view->count; view->count--) {
        sw_sim_object_unref(view->coming[view->first].object);
        view->first = (view->first + 1) % view->room;
    }
    sw_timer_stop(&view->timer);
    struct sw_map_iter it = {0};
    while (sw_map_next(view->items, &it)) {
        struct sw_sim_item *item = it.value;
        sw_map_remove(view->items, it.key);
        free_item(view, item);
    }
}

/* The first list of an informer: no controller begins before it is there whole. */
struct filling {
    struct sw_sim_view *view;
    struct sw_sim_store *store;
};

static int fill_one(void *arg, const struct sw_sim_object *object)
{
    const struct filling *filling = arg;
    const struct change change = {
        .version = object->version, .type = SW_SIM_ADDED, .object = object};
    apply(filling->view, &change);
    sw_sim_store_trim(filling->store);
    return 0;
}

void sw_sim_view_fill(struct sw_sim_view *view, struct sw_sim_store *store)
{
    struct filling filling = {view, store};
    sw_sim_store_each(store, view->kind, NULL, NULL, fill_one, &filling);
}

/* ---- asking ---- */

struct sw_sim_item *sw_sim_view_get(const struct sw_sim_view *view, const char *namespace_,
                                    const char *name)
{
    char key[SW_SIM_KEY_SIZE];
    return sw_map_get(view->items, sw_sim_key(key, namespace_, name));
}

static int each_sibling(const struct sw_link *head, int (*fn)(void *, struct sw_sim_item *),
                        void *arg)
{
    SW_LIST_EACH (link, head) {
        int result = fn(arg, container_of(link, struct sw_sim_item, sibling));
        if (result)
            return result;
    }
    return 0;
}

int sw_sim_view_each_controlled(const struct sw_sim_view *view, const char *uid,
                                int (*fn)(void *arg, struct sw_sim_item *item), void *arg)
{
    const struct sw_sim_family *family = sw_map_get(view->families, uid);
    return family ? each_sibling(&family->items, fn, arg) : 0;
}

int sw_sim_view_each_orphan(const struct sw_sim_view *view,
                            int (*fn)(void *arg, struct sw_sim_item *item), void *arg)
{
    return each_sibling(&view->orphans, fn, arg);
}

int sw_sim_view_each(const struct sw_sim_view *view, int (*fn)(void *arg, struct sw_sim_item *item),
                     void *arg)
{
    struct sw_map_iter it = {0};
    while (sw_map_next(view->items, &it)) {
        int result = fn(arg, it.value);
        if (result)
            return result;
    }
    return 0;
}

/* ---- life ---- */

struct sw_sim_view *sw_sim_view_new(struct sw_loop *loop, const struct sw_sim_kind *kind,
                                    bool is_pods, sw_sim_view_fn on_change, void *arg)
{
    struct sw_sim_view *view = SW_NEW(struct sw_sim_view);
    view->loop = loop;
    view->kind = kind;
    view->is_pods = is_pods;
    view->on_change = on_change;
    view->arg = arg;
    view->items = sw_map_new();
    view->families = sw_map_new();
    view->names = sw_map_new();
    sw_link_init(&view->orphans);
    sw_timer_init(&view->timer, loop, on_timer);
    return view;
}

struct sw_sim_view *sw_sim_view_free(struct sw_sim_view *view)
{
    if (!view)
        return NULL;
    sw_sim_view_clear(view);
    sw_map_free(view->items);
    sw_map_free(view->families);
    sw_map_free(view->names);
    sw_free(view->coming);
    return sw_free(view);
}

const struct sw_sim_kind *sw_sim_view_kind(const struct sw_sim_view *view)
{
    return view->kind;
}

void sw_sim_view_set_lag(struct sw_sim_view *view, uint64_t min_ms, uint64_t max_ms)
{
    view->lag_min_ms = min_ms;
    view->lag_max_ms = max_ms;
}
