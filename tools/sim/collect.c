/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes after something else went: dependents of an owner (the garbage collector), the content
 * of a namespace, the objects of a CustomResourceDefinition. All three are controllers of the real
 * kube-controller-manager or API server; they look a few milliseconds after the change.
 *
 *   an owner is gone           dependents without another owner are deleted; others forget it
 *   finalizer "orphan"         dependents forget the owner, which then goes
 *   "foregroundDeletion"       dependents are deleted; the owner goes when none blocks it
 *   a namespace, a definition  its objects are deleted; it goes when none is left
 *
 * https://kubernetes.io/docs/concepts/architecture/garbage-collection/
 */
#include <string.h>

#include "api_internal.h"
#include "base/map.h"
#include "base/util.h"
#include "value.h"

enum { LAG_MIN_MS = 1, LAG_MAX_MS = 4 };

#define FOREGROUND "foregroundDeletion"
#define ORPHAN "orphan"
#define CLEANUP "customresourcecleanup.apiextensions.k8s.io"

struct sw_sim_collector {
    struct sw_sim_api *api;
    struct sw_timer timer;
    bool is_off;
    struct sw_map *gone;    /* uid of an owner that is not there -> &marker */
    struct sw_map *waiting; /* uid of an object that waits for others to go -> reference */
};

static char marker;

/* Objects that were picked while the store was walked; references. */
struct picked {
    const struct sw_sim_object **at;
    size_t count, room;
};

static int pick(void *arg, const struct sw_sim_object *object)
{
    struct picked *picked = arg;
    if (picked->count == picked->room) {
        picked->room = picked->room ? 2 * picked->room : 16;
        picked->at = sw_realloc(picked->at, picked->room, sizeof(*picked->at));
    }
    picked->at[picked->count++] = sw_sim_object_ref(object);
    return 0;
}

static void picked_done(struct picked *picked)
{
    for (size_t i = 0; i < picked->count; i++) {
        sw_sim_object_unref(picked->at[i]);
    }
    sw_free(picked->at);
}

/* As it is now; NULL where it is gone. */
static const struct sw_sim_object *current(const struct sw_sim_collector *collector,
                                           const struct sw_sim_object *object)
{
    const struct sw_sim_object *now =
        sw_sim_store_get(collector->api->store, object->kind, object->namespace_, object->name);
    return now && strcmp(now->uid, object->uid) == 0 ? now : NULL;
}

static bool is_deleting(const struct sw_sim_object *object)
{
    return sw_sim_at(sw_sim_object_json(object), "metadata.deletionTimestamp") != NULL;
}

static bool has_finalizer(const struct sw_sim_object *object, const char *name)
{
    return sw_sim_holds(sw_sim_at(sw_sim_object_json(object), "metadata.finalizers"), name);
}

static bool is_kind(const struct sw_sim_object *object, const char *group, const char *plural)
{
    return strcmp(object->kind->plural, plural) == 0 && strcmp(object->kind->group, group) == 0;
}

static bool is_namespace(const struct sw_sim_object *object)
{
    return is_kind(object, "", "namespaces");
}

static bool is_definition(const struct sw_sim_object *object)
{
    return is_kind(object, "apiextensions.k8s.io", "customresourcedefinitions");
}

/* ---- writing ---- */

static void write_back(struct sw_sim_collector *collector, const struct sw_sim_object *object,
                       json_t *made)
{
    bool is_gone = false;
    sw_sim_object_unref(sw_sim_commit_update(collector->api, object, made, &is_gone));
}

static void remove_finalizer(struct sw_sim_collector *collector, const struct sw_sim_object *object,
                             const char *name)
{
    json_t *made = sw_sim_own(sw_sim_object_json(object));
    json_t *metadata = json_object_get(made, "metadata");
    json_t *left = sw_sim_without_text(json_object_get(metadata, "finalizers"), name);
    if (json_array_size(left)) {
        json_object_set_new(metadata, "finalizers", left);
    } else {
        json_decref(left);
        json_object_del(metadata, "finalizers");
    }
    write_back(collector, object, made);
}

/* ---- owners ---- */

enum owner_state {
    IS_THERE,
    IS_ABSENT,
    WAITS, /* deleted in the foreground: it goes after its dependents */
};

static enum owner_state state_of(const struct sw_sim_collector *collector,
                                 const struct sw_sim_object *dependent, const json_t *reference)
{
    const char *version = sw_sim_text(reference, "apiVersion", "");
    const char *slash = strchr(version, '/');
    SW_AUTO(char, sw_free)
    group = slash ? sw_strndup(version, (size_t)(slash - version)) : sw_strdup("");
    const struct sw_sim_served *served =
        sw_sim_served_kind(collector->api, group, NULL, sw_sim_text(reference, "kind", ""));
    if (!served) {
        return IS_THERE; /* the real collector waits until it knows the kind */
    }
    const char *namespace_ = served->kind->is_namespaced ? dependent->namespace_ : "";
    const struct sw_sim_object *owner = sw_sim_store_get(
        collector->api->store, served->stored, namespace_, sw_sim_text(reference, "name", ""));
    if (!owner || strcmp(owner->uid, sw_sim_text(reference, "uid", "")) != 0) {
        return IS_ABSENT;
    }
    return is_deleting(owner) && has_finalizer(owner, FOREGROUND) ? WAITS : IS_THERE;
}

/* Leaves out what is not there (uid NULL), or the owner of that uid. */
static void forget_owners(struct sw_sim_collector *collector, const struct sw_sim_object *object,
                          const char *uid)
{
    const json_t *owners = sw_sim_at(sw_sim_object_json(object), "metadata.ownerReferences");
    json_t *left = json_array();
    for (size_t i = 0; i < json_array_size(owners); i++) {
        json_t *owner = json_array_get(owners, i);
        bool stays = uid ? strcmp(sw_sim_text(owner, "uid", ""), uid) != 0
                         : state_of(collector, object, owner) == IS_THERE;
        if (stays) {
            json_array_append(left, owner);
        }
    }
    if (json_array_size(left) == json_array_size(owners)) {
        json_decref(left);
        return;
    }
    json_t *made = sw_sim_own(sw_sim_object_json(object));
    sw_sim_put(json_object_get(made, "metadata"), "ownerReferences",
               json_array_size(left) ? json_incref(left) : NULL);
    json_decref(left);
    write_back(collector, object, made);
}

static int found_one(void *arg, const struct sw_sim_object *object)
{
    (void)arg;
    (void)object;
    return 1;
}

static bool has_dependents(const struct sw_sim_collector *collector, const char *uid)
{
    return sw_sim_store_each_owned(collector->api->store, uid, found_one, NULL) != 0;
}

/* Deletes the object where nobody owns it any more. */
static void judge(struct sw_sim_collector *collector, const struct sw_sim_object *object)
{
    const json_t *owners = sw_sim_at(sw_sim_object_json(object), "metadata.ownerReferences");
    size_t count[3] = {0};
    for (size_t i = 0; i < json_array_size(owners); i++) {
        count[state_of(collector, object, json_array_get(owners, i))]++;
    }
    if (is_deleting(object) || count[IS_ABSENT] + count[WAITS] == 0) {
        return;
    }
    if (count[IS_THERE] > 0) {
        forget_owners(collector, object, NULL);
        return;
    }
    const char *propagation = has_finalizer(object, ORPHAN)       ? "Orphan"
                              : has_finalizer(object, FOREGROUND) ? "Foreground"
                                                                  : "Background";
    if (count[WAITS] > 0 && has_dependents(collector, object->uid)) {
        propagation = "Foreground";
    }
    sw_sim_delete(collector->api, object, -1, propagation);
}

static void judge_dependents(struct sw_sim_collector *collector, const char *uid)
{
    struct picked picked = {0};
    sw_sim_store_each_owned(collector->api->store, uid, pick, &picked);
    for (size_t i = 0; i < picked.count; i++) {
        const struct sw_sim_object *now = current(collector, picked.at[i]);
        if (now) {
            judge(collector, now);
        }
    }
    picked_done(&picked);
}

/* ---- what waits for others to go ---- */

static void orphan(struct sw_sim_collector *collector, const struct sw_sim_object *object)
{
    struct picked picked = {0};
    sw_sim_store_each_owned(collector->api->store, object->uid, pick, &picked);
    for (size_t i = 0; i < picked.count; i++) {
        const struct sw_sim_object *now = current(collector, picked.at[i]);
        if (now) {
            forget_owners(collector, now, object->uid);
        }
    }
    picked_done(&picked);
    remove_finalizer(collector, object, ORPHAN);
}

struct blocking {
    const char *uid;
    size_t count;
};

static int count_blocking(void *arg, const struct sw_sim_object *object)
{
    struct blocking *blocking = arg;
    const json_t *owners = sw_sim_at(sw_sim_object_json(object), "metadata.ownerReferences");
    for (size_t i = 0; i < json_array_size(owners); i++) {
        const json_t *owner = json_array_get(owners, i);
        if (strcmp(sw_sim_text(owner, "uid", ""), blocking->uid) == 0) {
            blocking->count += json_is_true(json_object_get(owner, "blockOwnerDeletion"));
        }
    }
    return 0;
}

static void go_after_dependents(struct sw_sim_collector *collector,
                                const struct sw_sim_object *object)
{
    judge_dependents(collector, object->uid);
    struct blocking blocking = {.uid = object->uid};
    sw_sim_store_each_owned(collector->api->store, object->uid, count_blocking, &blocking);
    const struct sw_sim_object *now = current(collector, object);
    if (now && blocking.count == 0) {
        remove_finalizer(collector, now, FOREGROUND);
    }
}

/* Deletes all objects of a kind, in a namespace or in all; whether any is left. */
static bool empty(struct sw_sim_collector *collector, const struct sw_sim_kind *kind,
                  const char *namespace_)
{
    struct picked picked = {0};
    sw_sim_store_each(collector->api->store, kind, namespace_, NULL, pick, &picked);
    bool any_left = false;
    for (size_t i = 0; i < picked.count; i++) {
        const struct sw_sim_object *now = current(collector, picked.at[i]);
        if (now && !is_deleting(now)) {
            sw_sim_delete(collector->api, now, -1, "Background");
        }
        any_left |= current(collector, picked.at[i]) != NULL;
    }
    picked_done(&picked);
    return any_left;
}

static void empty_namespace(struct sw_sim_collector *collector, const struct sw_sim_object *object)
{
    struct sw_sim_api *api = collector->api;
    bool any_left = false;
    for (size_t i = 0; i < api->served_count; i++) {
        const struct sw_sim_served *served = &api->served[i];
        if (served->kind == served->stored && served->kind->is_namespaced &&
            !served->kind->is_virtual) {
            any_left |= empty(collector, served->kind, object->name);
        }
    }
    const struct sw_sim_object *now = current(collector, object);
    if (any_left || !now) {
        return;
    }
    json_t *made = sw_sim_own(sw_sim_object_json(now));
    json_t *spec = sw_sim_own_member(made, "spec");
    json_t *left = sw_sim_without_text(json_object_get(spec, "finalizers"), "kubernetes");
    sw_sim_put(spec, "finalizers", json_array_size(left) ? json_incref(left) : NULL);
    json_decref(left);
    write_back(collector, now, made);
}

static void empty_definition(struct sw_sim_collector *collector, const struct sw_sim_object *object)
{
    const struct sw_sim_served *served =
        sw_sim_served(collector->api, sw_sim_text_at(sw_sim_object_json(object), "spec.group"),
                      NULL, sw_sim_text_at(sw_sim_object_json(object), "spec.names.plural"));
    if (served && empty(collector, served->stored, NULL)) {
        return;
    }
    const struct sw_sim_object *now = current(collector, object);
    if (now) {
        remove_finalizer(collector, now, CLEANUP);
    }
}

static bool must_wait(const struct sw_sim_object *object)
{
    return is_deleting(object) &&
           (has_finalizer(object, FOREGROUND) || has_finalizer(object, ORPHAN) ||
            (is_namespace(object) &&
             sw_sim_holds(sw_sim_at(sw_sim_object_json(object), "spec.finalizers"),
                          "kubernetes")) ||
            (is_definition(object) && has_finalizer(object, CLEANUP)));
}

/* One step; false once it waits no more. */
static bool go_on(struct sw_sim_collector *collector, const struct sw_sim_object *object)
{
    const struct sw_sim_object *now = current(collector, object);
    if (!now || !must_wait(now)) {
        return false;
    }
    sw_sim_object_ref(now);
    if (has_finalizer(now, ORPHAN)) {
        orphan(collector, now);
    } else if (has_finalizer(now, FOREGROUND)) {
        go_after_dependents(collector, now);
    } else if (is_namespace(now)) {
        empty_namespace(collector, now);
    } else {
        empty_definition(collector, now);
    }
    const struct sw_sim_object *after = current(collector, now);
    bool still_waits = after && must_wait(after);
    sw_sim_object_unref(now);
    return still_waits;
}

/* ---- turns ---- */

static void wake(struct sw_sim_collector *collector)
{
    if (!collector->is_off && !sw_timer_is_active(&collector->timer)) {
        sw_timer_start(&collector->timer,
                       sw_random_between(collector->api->loop, LAG_MIN_MS, LAG_MAX_MS));
    }
}

static void on_timer(struct sw_timer *timer)
{
    struct sw_sim_collector *collector = container_of(timer, struct sw_sim_collector, timer);
    /* What is added meanwhile waits for the next turn. */
    struct sw_map *gone = collector->gone;
    collector->gone = sw_map_new();
    struct sw_map_iter it = {0};
    while (sw_map_next(gone, &it)) {
        judge_dependents(collector, it.key);
    }
    sw_map_free(gone);
    struct sw_map *waiting = collector->waiting;
    collector->waiting = sw_map_new();
    it = (struct sw_map_iter){0};
    while (sw_map_next(waiting, &it)) {
        const struct sw_sim_object *object = it.value;
        if (go_on(collector, object) && !sw_map_get(collector->waiting, it.key)) {
            sw_map_set(collector->waiting, it.key, it.value);
        } else {
            sw_sim_object_unref(object);
        }
    }
    sw_map_free(waiting);
}

static void wait_for(struct sw_sim_collector *collector, const struct sw_sim_object *object)
{
    if (!sw_map_get(collector->waiting, object->uid)) {
        sw_map_set(collector->waiting, object->uid, (void *)(uintptr_t)sw_sim_object_ref(object));
    }
    wake(collector);
}

/* New references may name an owner that is not there, or one that waits for its dependents. */
static void look_at_owners(struct sw_sim_collector *collector, const struct sw_sim_object *object)
{
    const json_t *owners = sw_sim_at(sw_sim_object_json(object), "metadata.ownerReferences");
    for (size_t i = 0; i < json_array_size(owners); i++) {
        const json_t *owner = json_array_get(owners, i);
        if (state_of(collector, object, owner) != IS_THERE) {
            sw_map_set(collector->gone, sw_sim_text(owner, "uid", ""), &marker);
            wake(collector);
        }
    }
}

void sw_sim_collector_change(struct sw_sim_collector *collector, const struct sw_sim_change *change)
{
    const struct sw_sim_object *object = change->object;
    if (change->type == SW_SIM_DELETED) {
        if (has_dependents(collector, object->uid)) {
            sw_map_set(collector->gone, object->uid, &marker);
            wake(collector);
        }
    } else {
        const json_t *owners = sw_sim_at(sw_sim_object_json(object), "metadata.ownerReferences");
        const json_t *before = change->before ? sw_sim_at(sw_sim_object_json(change->before),
                                                          "metadata.ownerReferences")
                                              : NULL;
        if (owners && !(before && json_equal(owners, before))) {
            look_at_owners(collector, object);
        }
        if (must_wait(object)) {
            wait_for(collector, object);
        }
    }
    if (change->before && sw_map_size(collector->waiting)) {
        wake(collector);
    }
}

void sw_sim_api_set_collecting(struct sw_sim_api *api, bool is_on)
{
    struct sw_sim_collector *collector = api->collector;
    collector->is_off = !is_on;
    if (is_on) {
        wake(collector);
    } else {
        sw_timer_stop(&collector->timer);
    }
}

/* ---- life ---- */

struct sw_sim_collector *sw_sim_collector_new(struct sw_sim_api *api)
{
    struct sw_sim_collector *collector = SW_NEW(struct sw_sim_collector);
    collector->api = api;
    collector->gone = sw_map_new();
    collector->waiting = sw_map_new();
    sw_timer_init(&collector->timer, api->loop, on_timer);
    return collector;
}

struct sw_sim_collector *sw_sim_collector_free(struct sw_sim_collector *collector)
{
    if (!collector) {
        return NULL;
    }
    sw_timer_stop(&collector->timer);
    struct sw_map_iter it = {0};
    while (sw_map_next(collector->waiting, &it)) {
        sw_sim_object_unref(it.value);
    }
    sw_map_free(collector->waiting);
    sw_map_free(collector->gone);
    return sw_free(collector);
}
