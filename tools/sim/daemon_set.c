/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controller of DaemonSets: a Pod on each Node that takes it, replaced a few Nodes at a time
 * when the template changes (maxUnavailable), or when the Pod is deleted (OnDelete).
 * https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "base/map.h"
#include "base/util.h"
#include "controllers.h"
#include "look.h"
#include "placing.h"

#define HASH_LABEL "controller-revision-hash"
#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"

struct place {
    const struct sw_sim_object *node; /* NULL: there is none any more */
    bool should_run, may_stay;
    struct sw_sim_items pods; /* the one to keep first */
};

struct set {
    struct sw_sim_workloads *workloads;
    struct sw_sim_job *job;
    const struct sw_sim_object *object;
    const json_t *spec;
    json_t *template; /* with what every Pod of the set gets; its own */
    const char *hash; /* of the template as it is now */
    int64_t min_ready_s, wall_us;
    struct place *places;
    size_t count;
    struct sw_map *by_name;   /* of the Node -> struct place */
    struct sw_sim_items pods; /* all */
    bool did;                 /* Pods were made or deleted */
};

/* ---- the template ---- */

static void tolerate(json_t *tolerations, const char *key, const char *effect)
{
    json_t *one = json_pack("{s:s, s:s, s:s}", "key", key, "operator", "Exists", "effect", effect);
    size_t at;
    json_t *other;
    json_array_foreach(tolerations, at, other)
    {
        if (json_equal(one, other)) {
            json_decref(one);
            return;
        }
    }
    json_array_append_new(tolerations, one);
}

/* https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/#taints-and-tolerations */
static json_t *make_template(const struct sw_sim_object *object, const char *hash)
{
    json_t *template = json_deep_copy(
        sw_look_loose(sw_look_at(sw_sim_object_json(object), "spec", "template", NULL)));
    json_t *spec = json_object_get(template, "spec");
    json_t *tolerations = json_object_get(spec, "tolerations");
    if (!json_is_array(tolerations)) {
        tolerations = json_array();
        json_object_set_new(spec, "tolerations", tolerations);
    }
    tolerate(tolerations, "node.kubernetes.io/not-ready", "NoExecute");
    tolerate(tolerations, "node.kubernetes.io/unreachable", "NoExecute");
    tolerate(tolerations, "node.kubernetes.io/disk-pressure", "NoSchedule");
    tolerate(tolerations, "node.kubernetes.io/memory-pressure", "NoSchedule");
    tolerate(tolerations, "node.kubernetes.io/pid-pressure", "NoSchedule");
    tolerate(tolerations, "node.kubernetes.io/unschedulable", "NoSchedule");
    if (sw_look_bool(spec, "hostNetwork", false))
        tolerate(tolerations, "node.kubernetes.io/network-unavailable", "NoSchedule");
    json_t *labels = sw_look_own(sw_look_own(template, "metadata"), "labels");
    json_object_set_new(labels, HASH_LABEL, json_string(hash));
    const char *generation = sw_look_string(json_object_get(sw_look_meta(object), "annotations"),
                                            "deprecated.daemonset.template.generation");
    if (*generation)
        json_object_set_new(labels, "pod-template-generation", json_string(generation));
    return template;
}

/* The scheduler binds it, but only to that Node. */
static void aim_at(json_t *spec, const char *node)
{
    json_t *affinity = sw_look_own(sw_look_own(spec, "affinity"), "nodeAffinity");
    json_object_set_new(affinity, REQUIRED,
                        json_pack("{s:[{s:[{s:s, s:s, s:[s]}]}]}", "nodeSelectorTerms",
                                  "matchFields", "key", "metadata.name", "operator", "In", "values",
                                  node));
}

/* The Node on which it is, or to which it is aimed. */
static const char *target_of(const struct sw_sim_item *item)
{
    if (*item->pod.node)
        return item->pod.node;
    size_t at;
    json_t *term;
    json_array_foreach(sw_look_at(sw_sim_object_json(item->object), "spec", "affinity",
                                  "nodeAffinity", REQUIRED, "nodeSelectorTerms", NULL),
                       at, term)
    {
        const json_t *field =
            sw_look_element(json_object_get(term, "matchFields"), "key", "metadata.name");
        const char *name = json_string_value(json_array_get(json_object_get(field, "values"), 0));
        if (name)
            return name;
    }
    return "";
}

/* ---- Nodes and Pods ---- */

static struct place *place_of(struct set *set, const char *name)
{
    return sw_map_get(set->by_name, name);
}

static void judge(const struct set *set, struct place *place)
{
    const json_t *spec = json_object_get(set->template, "spec");
    const char *name = sw_look_string(spec, "nodeName");
    if ((*name && strcmp(name, place->node->name) != 0) ||
        !sw_sim_node_is_selected(spec, sw_sim_object_json(place->node)))
        return;
    const json_t *tolerations = json_object_get(spec, "tolerations");
    place->should_run =
        sw_sim_node_is_tolerated(tolerations, sw_sim_object_json(place->node), false);
    place->may_stay = sw_sim_node_is_tolerated(tolerations, sw_sim_object_json(place->node), true);
}

static int add_place(void *arg, struct sw_sim_item *item)
{
    struct set *set = arg;
    set->places = sw_realloc(set->places, set->count + 1, sizeof(*set->places));
    set->places[set->count++] = (struct place){.node = item->object};
    return 0;
}

static int by_preference(const void *left, const void *right)
{
    const struct sw_sim_item *a = *(struct sw_sim_item *const *)left;
    const struct sw_sim_item *b = *(struct sw_sim_item *const *)right;
    if (!*a->pod.node != !*b->pod.node)
        return *a->pod.node ? -1 : 1;
    if (a->pod.created_us != b->pod.created_us)
        return a->pod.created_us < b->pod.created_us ? -1 : 1;
    return strcmp(a->object->name, b->object->name);
}

static void sort_pods(struct set *set)
{
    sw_sim_view_each(set->workloads->views[SW_SIM_NODES], add_place, set);
    for (size_t i = 0; i < set->count; i++) {
        judge(set, &set->places[i]);
        sw_map_set(set->by_name, set->places[i].node->name, &set->places[i]);
    }
    for (size_t i = 0; i < set->pods.count; i++) {
        struct place *place = place_of(set, target_of(set->pods.at[i]));
        if (place)
            sw_sim_items_add(&place->pods, set->pods.at[i]);
    }
    for (size_t i = 0; i < set->count; i++) {
        struct sw_sim_items *pods = &set->places[i].pods;
        if (pods->count)
            qsort(pods->at, pods->count, sizeof(struct sw_sim_item *), by_preference);
    }
}

static bool is_available(const struct set *set, const struct sw_sim_item *item)
{
    return sw_sim_pod_is_available(&item->pod, set->min_ready_s, set->wall_us);
}

static bool is_updated(const struct set *set, const struct sw_sim_item *item)
{
    return strcmp(sw_look_string(json_object_get(sw_look_meta(item->object), "labels"), HASH_LABEL),
                  set->hash) == 0;
}

static int create_pod(struct set *set, const char *node)
{
    json_t *pod = sw_sim_pod_of(set->object, set->template);
    SW_AUTO(char, sw_free) prefix = sw_asprintf("%s-", set->object->name);
    json_object_set_new(json_object_get(pod, "metadata"), "generateName", json_string(prefix));
    aim_at(json_object_get(pod, "spec"), node);
    const struct sw_sim_object *made;
    set->did = true;
    int result =
        sw_sim_create(set->workloads->api, sw_sim_kind_of(set->workloads, SW_SIM_PODS), pod, &made);
    if (result == 0)
        sw_sim_record(set->workloads->recorder, set->object, "daemonset-controller",
                      "SuccessfulCreate", "Created pod: %s", made->name);
    return result;
}

static int delete_pod(struct set *set, const struct sw_sim_item *item)
{
    if (item->pod.is_deleted)
        return 0;
    set->did = true;
    int result = sw_sim_delete(set->workloads->api, item->object, -1, NULL);
    if (result == 0)
        sw_sim_record(set->workloads->recorder, set->object, "daemonset-controller",
                      "SuccessfulDelete", "Deleted pod: %s", item->object->name);
    return result == -ENOENT ? 0 : result;
}

/* ---- a Pod where one belongs, none where it does not ---- */

/* All but the first that runs; those that failed as well. */
static int thin_out(struct set *set, const struct place *place)
{
    bool has_one = false;
    int result = 0;
    for (size_t i = 0; i < place->pods.count && !result; i++) {
        const struct sw_sim_item *item = place->pods.at[i];
        if (item->pod.is_deleted)
            continue;
        if (item->pod.phase == SW_SIM_FAILED || has_one)
            result = delete_pod(set, item);
        else
            has_one = true;
    }
    return result;
}

static int delete_all(struct set *set, const struct place *place)
{
    int result = 0;
    for (size_t i = 0; i < place->pods.count && !result; i++)
        result = delete_pod(set, place->pods.at[i]);
    return result;
}

static int manage_place(struct set *set, const struct place *place)
{
    if (place->should_run && !place->pods.count)
        return create_pod(set, place->node->name);
    return place->may_stay ? thin_out(set, place) : delete_all(set, place);
}

static int manage(struct set *set)
{
    int result = 0;
    for (size_t i = 0; i < set->count && !result; i++)
        result = manage_place(set, &set->places[i]);
    /* Those aimed at a Node that is gone will never be bound, and nobody else deletes them. */
    for (size_t i = 0; i < set->pods.count && !result; i++) {
        const struct sw_sim_item *item = set->pods.at[i];
        if (!*item->pod.node && *target_of(item) && !place_of(set, target_of(item)))
            result = delete_pod(set, item);
    }
    return result;
}

/* ---- the update ---- */

static bool has_available(const struct set *set, const struct place *place)
{
    for (size_t i = 0; i < place->pods.count; i++) {
        if (is_available(set, place->pods.at[i]) && !place->pods.at[i]->pod.is_deleted)
            return true;
    }
    return false;
}

/* How many more Nodes may be without. */
static int64_t room_for_update(const struct set *set)
{
    int64_t wanted = 0, missing = 0;
    for (size_t i = 0; i < set->count; i++) {
        if (set->places[i].should_run) {
            wanted++;
            missing += !has_available(set, &set->places[i]);
        }
    }
    const json_t *limit =
        sw_look_at(set->spec, "updateStrategy", "rollingUpdate", "maxUnavailable", NULL);
    return sw_look_scaled(limit, wanted, true, 1) - missing;
}

static int update_pods(struct set *set)
{
    int64_t room = room_for_update(set);
    int result = 0;
    for (size_t i = 0; i < set->count; i++) {
        const struct sw_sim_items *pods = &set->places[i].pods;
        for (size_t k = 0; k < pods->count && !result; k++) {
            const struct sw_sim_item *item = pods->at[k];
            if (is_updated(set, item))
                continue;
            if (!is_available(set, item)) {
                result = delete_pod(set, item);
            } else if (room > 0) {
                result = delete_pod(set, item);
                room--;
            }
        }
    }
    return result;
}

/* ---- status ---- */

static int tell(const struct set *set, bool has_observed)
{
    int64_t desired = 0, current = 0, stray = 0, ready = 0, updated = 0, available = 0;
    for (size_t i = 0; i < set->count; i++) {
        const struct place *place = &set->places[i];
        desired += place->should_run;
        if (!place->pods.count)
            continue;
        if (!place->should_run) {
            stray++;
            continue;
        }
        const struct sw_sim_item *first = place->pods.at[0];
        current++;
        ready += first->pod.is_ready;
        available += is_available(set, first);
        updated += is_updated(set, first);
    }
    const json_t *old = json_object_get(sw_sim_object_json(set->object), "status");
    json_t *status = old ? sw_look_copy(old) : json_object();
    if (has_observed)
        sw_look_set_count(status, "observedGeneration", sw_look_generation(set->object));
    json_object_set_new(status, "desiredNumberScheduled", json_integer(desired));
    json_object_set_new(status, "currentNumberScheduled", json_integer(current));
    json_object_set_new(status, "numberMisscheduled", json_integer(stray));
    json_object_set_new(status, "numberReady", json_integer(ready));
    sw_look_set_count(status, "updatedNumberScheduled", updated);
    sw_look_set_count(status, "numberAvailable", available);
    sw_look_set_count(status, "numberUnavailable", desired - available);
    int result = sw_sim_write_status(set->workloads, set->object, status);
    if (!result && set->min_ready_s > 0 && ready != available)
        sw_sim_wake_after(set->workloads, SW_SIM_DAEMON_SETS, set->object->namespace_,
                          set->object->name, (uint64_t)set->min_ready_s * 1000);
    return result;
}

/* ---- one look ---- */

static bool is_live(void *arg, const struct sw_sim_object *revision)
{
    const struct set *set = arg;
    const char *hash =
        sw_look_string(json_object_get(sw_look_meta(revision), "labels"), HASH_LABEL);
    if (strcmp(hash, set->hash) == 0)
        return true;
    for (size_t i = 0; i < set->pods.count; i++) {
        const json_t *labels = json_object_get(sw_look_meta(set->pods.at[i]->object), "labels");
        if (strcmp(sw_look_string(labels, HASH_LABEL), hash) == 0)
            return true;
    }
    return false;
}

static int look(struct set *set, const struct sw_sim_revisions *revisions)
{
    const struct sw_sim_view *pods = set->workloads->views[SW_SIM_PODS];
    if (!sw_sim_view_has(pods, set->job->expects))
        return tell(set, false);
    int result = manage(set);
    bool is_rolling = strcmp(sw_look_string(json_object_get(set->spec, "updateStrategy"), "type"),
                             "OnDelete") != 0;
    if (!result && !set->did && is_rolling)
        result = update_pods(set);
    if (set->did)
        set->job->expects = sw_sim_store_version(set->workloads->store);
    if (result)
        return result;
    sw_sim_revisions_truncate(set->workloads, set->object, revisions, is_live, set);
    return tell(set, true);
}

int sw_sim_sync_daemon_set(struct sw_sim_workloads *workloads, struct sw_sim_job *job,
                           const struct sw_sim_object *object)
{
    if (sw_look_is_deleted(object))
        return 0;
    struct sw_sim_revisions revisions;
    int result = sw_sim_revisions_find(workloads, object, HASH_LABEL, &revisions);
    if (result == 0) {
        struct set set = {
            .workloads = workloads,
            .job = job,
            .object = object,
            .spec = json_object_get(sw_sim_object_json(object), "spec"),
            .hash = sw_look_string(json_object_get(sw_look_meta(revisions.update), "labels"),
                                   HASH_LABEL),
            .wall_us = sw_wall_us(workloads->loop),
            .by_name = sw_map_new(),
        };
        set.min_ready_s = sw_look_int(set.spec, "minReadySeconds", 0);
        set.template = make_template(object, set.hash);
        result = sw_sim_claim(workloads, SW_SIM_PODS, object, NULL, &set.pods);
        if (result == 0) {
            sort_pods(&set);
            result = look(&set, &revisions);
        }
        for (size_t i = 0; i < set.count; i++)
            sw_sim_items_done(&set.places[i].pods);
        sw_free(set.places);
        sw_map_free(set.by_name);
        sw_sim_items_done(&set.pods);
        json_decref(set.template);
    }
    sw_sim_revisions_done(&revisions);
    return result;
}
