/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What belongs to a workload: what names it as its controller. An orphan with the right labels is
 * adopted, what has lost them is released.
 * https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/#non-template-pod-acquisitions
 */
#include <errno.h>
#include <string.h>

#include "api.h"
#include "base/util.h"
#include "controllers.h"
#include "kind.h"
#include "look.h"

void sw_sim_items_add(struct sw_sim_items *items, struct sw_sim_item *item)
{
    if (items->count == items->room) {
        items->room = items->room ? items->room * 2 : 8;
        items->at = sw_realloc(items->at, items->room, sizeof(struct sw_sim_item *));
    }
    items->at[items->count++] = item;
}

void sw_sim_items_done(struct sw_sim_items *items)
{
    sw_free(items->at);
    *items = (struct sw_sim_items){0};
}

bool sw_sim_wants_active(const struct sw_sim_object *owner, const struct sw_sim_item *item)
{
    (void)owner;
    return sw_sim_pod_is_active(&item->pod);
}

struct claim {
    const struct sw_sim_object *owner;
    const json_t *selector;
    sw_sim_wants_fn wants;
    struct sw_sim_items keep, adopt, release;
};

static bool is_selected(const struct claim *claim, const struct sw_sim_item *item)
{
    return sw_look_selects(claim->selector, json_object_get(sw_look_meta(item->object), "labels"));
}

static int sort_controlled(void *arg, struct sw_sim_item *item)
{
    struct claim *claim = arg;
    if (claim->wants && !claim->wants(claim->owner, item))
        return 0;
    if (is_selected(claim, item))
        sw_sim_items_add(&claim->keep, item);
    else if (!sw_look_is_deleted(claim->owner))
        sw_sim_items_add(&claim->release, item);
    return 0;
}

static int sort_orphan(void *arg, struct sw_sim_item *item)
{
    struct claim *claim = arg;
    if (strcmp(item->object->namespace_, claim->owner->namespace_) == 0 &&
        (!claim->wants || claim->wants(claim->owner, item)) && !sw_look_is_deleted(item->object) &&
        is_selected(claim, item))
        sw_sim_items_add(&claim->adopt, item);
    return 0;
}

/* The real ones patch: what is stored now, and not what the view has, gets these. NULL: gone. */
static const struct sw_sim_object *stored(const struct sw_sim_workloads *workloads,
                                          const struct sw_sim_item *item)
{
    const struct sw_sim_object *object = item->object;
    const struct sw_sim_object *now =
        sw_sim_store_get(workloads->store, object->kind, object->namespace_, object->name);
    return now && strcmp(now->uid, object->uid) == 0 ? now : NULL;
}

static int write_references(struct sw_sim_workloads *workloads, const struct sw_sim_object *object,
                            json_t *references_take)
{
    json_t *json = sw_look_copy(sw_sim_object_json(object));
    json_t *meta = sw_look_own(json, "metadata");
    if (json_array_size(references_take)) {
        json_object_set_new(meta, "ownerReferences", references_take);
    } else {
        json_decref(references_take);
        json_object_del(meta, "ownerReferences");
    }
    return sw_sim_update(workloads->api, object->kind, json);
}

static int release(struct sw_sim_workloads *workloads, const struct sw_sim_object *owner,
                   const struct sw_sim_item *item)
{
    const struct sw_sim_object *now = stored(workloads, item);
    if (!now)
        return 0;
    json_t *rest = json_array();
    size_t at;
    json_t *one;
    json_array_foreach(json_object_get(sw_look_meta(now), "ownerReferences"), at, one)
    {
        if (strcmp(sw_look_string(one, "uid"), owner->uid) != 0)
            json_array_append(rest, one);
    }
    return write_references(workloads, now, rest);
}

static int adopt(struct sw_sim_workloads *workloads, const struct sw_sim_object *owner,
                 const struct sw_sim_item *item)
{
    const struct sw_sim_object *now = stored(workloads, item);
    if (!now)
        return -ENOENT;
    if (sw_look_controller_of(sw_sim_object_json(now)))
        return -EAGAIN; /* another was faster, or the view is late */
    const json_t *before = json_object_get(sw_look_meta(now), "ownerReferences");
    json_t *references = before ? sw_look_copy(before) : json_array();
    json_array_append_new(references, sw_look_controller_reference(owner));
    return write_references(workloads, now, references);
}

int sw_sim_claim(struct sw_sim_workloads *workloads, enum sw_sim_which which,
                 const struct sw_sim_object *owner, sw_sim_wants_fn wants,
                 struct sw_sim_items *items)
{
    struct claim claim = {
        .owner = owner,
        .selector = sw_look_at(sw_sim_object_json(owner), "spec", "selector", NULL),
        .wants = wants,
    };
    const struct sw_sim_view *view = workloads->views[which];
    sw_sim_view_each_controlled(view, owner->uid, sort_controlled, &claim);
    if (!sw_look_is_deleted(owner))
        sw_sim_view_each_orphan(view, sort_orphan, &claim);
    int result = 0;
    for (size_t i = 0; i < claim.release.count; i++) {
        int error = release(workloads, owner, claim.release.at[i]);
        result = result ? result : error;
    }
    for (size_t i = 0; i < claim.adopt.count; i++) {
        int error = adopt(workloads, owner, claim.adopt.at[i]);
        if (error == 0)
            sw_sim_items_add(&claim.keep, claim.adopt.at[i]);
        else if (error != -ENOENT)
            result = result ? result : error;
    }
    sw_sim_items_done(&claim.release);
    sw_sim_items_done(&claim.adopt);
    *items = claim.keep;
    return result;
}

json_t *sw_sim_pod_of(const struct sw_sim_object *owner, const json_t *template)
{
    json_t *pod = json_pack("{s:s, s:s, s:{s:s}}", "apiVersion", "v1", "kind", "Pod", "metadata",
                            "namespace", owner->namespace_);
    json_t *meta = json_object_get(pod, "metadata");
    static const char *const shared[] = {"labels", "annotations", "finalizers"};
    for (size_t i = 0; i < SW_ARRAY_SIZE(shared); i++) {
        const json_t *part = sw_look_at(template, "metadata", shared[i], NULL);
        if (part)
            json_object_set_new(meta, shared[i], sw_look_copy(part));
    }
    json_t *references = json_array();
    json_array_append_new(references, sw_look_controller_reference(owner));
    json_object_set_new(meta, "ownerReferences", references);
    /* The API server fills in what is missing; the template must not see it. */
    json_object_set_new(pod, "spec",
                        json_deep_copy(sw_look_loose(json_object_get(template, "spec"))));
    return pod;
}

int sw_sim_write_status(struct sw_sim_workloads *workloads, const struct sw_sim_object *object,
                        json_t *status_take)
{
    if (json_equal(status_take, json_object_get(sw_sim_object_json(object), "status"))) {
        json_decref(status_take);
        return 0;
    }
    return sw_sim_update_status(workloads->api, object->kind,
                                sw_look_with_status(object, status_take));
}
