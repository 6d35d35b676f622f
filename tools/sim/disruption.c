/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Budgets are counted anew by namespace, a moment after something changed that they look at. As
 * the real controller (pkg/controller/disruption) does: a percentage and maxUnavailable are of
 * what the Pods' workloads ask for, a number in minAvailable of the Pods that are there; a Pod
 * whose eviction was allowed counts as gone until it is, for two minutes at most.
 */
#include "disruption.h"

#include <stdbool.h>
#include <string.h>

#include "api.h"
#include "base/loop.h"
#include "base/map.h"
#include "base/util.h"
#include "kind.h"
#include "look.h"
#include "store.h"

enum {
    LAG_MS = 2,
    GONE_US = 2 * 60 * 1000 * 1000, /* an eviction that was allowed and did not come to be */
};

struct sw_sim_disruption {
    struct sw_loop *loop;
    struct sw_sim_store *store;
    struct sw_sim_api *api;
    const struct sw_sim_kind *budgets, *pods;
    struct sw_map *dirty; /* namespaces; the values mean nothing */
    struct sw_timer timer;
};

static char marker;

/* ---- what the workloads of the Pods ask for ---- */

struct counting {
    struct sw_sim_disruption *disruption;
    const struct sw_sim_object *budget;
    const json_t *selector;
    json_t *disrupted; /* those that still count; new */
    struct sw_map *seen;
    int64_t pods, healthy, wanted;
};

/* Of the workload that a reference names: a ReplicaSet's Deployment stands for it. */
static void count_workload(struct counting *counting, const json_t *reference)
{
    const struct sw_sim_disruption *disruption = counting->disruption;
    static const char *const known[][2] = {{"ReplicaSet", "replicasets"},
                                           {"Deployment", "deployments"},
                                           {"StatefulSet", "statefulsets"}};
    const struct sw_sim_object *workload = NULL;
    for (size_t i = 0; i < SW_ARRAY_SIZE(known) && !workload; i++) {
        if (strcmp(sw_look_string(reference, "kind"), known[i][0]) == 0) {
            workload = sw_sim_store_get(
                disruption->store, sw_sim_api_kind(disruption->api, "apps", "v1", known[i][1]),
                counting->budget->namespace_, sw_look_string(reference, "name"));
        }
    }
    if (!workload) {
        return;
    }
    const json_t *json = sw_sim_object_json(workload);
    const json_t *above = sw_look_controller_of(json);
    if (above) {
        count_workload(counting, above);
    } else if (!sw_map_set(counting->seen, workload->uid, &marker)) {
        counting->wanted += sw_look_int(json_object_get(json, "spec"), "replicas", 1);
    }
}

/* Whether it was let go a short while ago: then it counts as gone. */
static bool is_disrupted(struct counting *counting, const struct sw_sim_object *pod,
                         bool is_deleted)
{
    const json_t *list =
        sw_look_at(sw_sim_object_json(counting->budget), "status", "disruptedPods", NULL);
    const json_t *since = json_object_get(list, pod->name);
    int64_t wall_us = sw_wall_us(counting->disruption->loop);
    if (!since || is_deleted || sw_look_time_us(list, pod->name) + GONE_US < wall_us) {
        return false;
    }
    json_object_set(counting->disrupted, pod->name, sw_look_loose(since));
    return true;
}

static int count_pod(void *arg, const struct sw_sim_object *pod)
{
    struct counting *counting = arg;
    json_t *labels = sw_sim_object_at(pod, "metadata.labels");
    bool is_meant = sw_look_selects(counting->selector, labels);
    json_decref(labels);
    if (!is_meant) {
        return 0;
    }
    const json_t *json = sw_sim_object_json(pod);
    const json_t *ready =
        sw_look_element(sw_look_at(json, "status", "conditions", NULL), "type", "Ready");
    bool is_deleted = sw_look_is_deleted(pod);
    counting->pods++;
    counting->healthy += strcmp(sw_look_string(ready, "status"), "True") == 0 && !is_deleted &&
                         !is_disrupted(counting, pod, is_deleted);
    const json_t *owner = sw_look_controller_of(json);
    if (owner) {
        count_workload(counting, owner);
    }
    return 0;
}

/* ---- one budget ---- */

static json_t *status_of(struct counting *counting)
{
    const json_t *json = sw_sim_object_json(counting->budget);
    const json_t *spec = json_object_get(json, "spec");
    const json_t *most = json_object_get(spec, "maxUnavailable");
    const json_t *least = json_object_get(spec, "minAvailable");
    int64_t expected = counting->wanted, desired = 0;
    if (most) {
        desired = expected - sw_look_scaled(most, expected, true, 0);
    } else if (json_is_integer(least)) {
        expected = counting->pods;
        desired = json_integer_value(least);
    } else if (least) {
        desired = sw_look_scaled(least, expected, true, 0);
    }
    desired = SW_MAX(desired, 0);
    int64_t allowed = expected > 0 ? SW_MAX(counting->healthy - desired, 0) : 0;
    json_t *before = sw_look_loose(json_object_get(json, "status"));
    json_t *status = before ? json_copy(before) : json_object();
    json_object_set_new(status, "currentHealthy", json_integer(counting->healthy));
    json_object_set_new(status, "desiredHealthy", json_integer(desired));
    json_object_set_new(status, "disruptionsAllowed", json_integer(allowed));
    json_object_set_new(status, "expectedPods", json_integer(expected));
    json_object_set_new(status, "observedGeneration",
                        json_integer(sw_look_generation(counting->budget)));
    if (json_object_size(counting->disrupted))
        json_object_set(status, "disruptedPods", counting->disrupted);
    else
        json_object_del(status, "disruptedPods");
    return status;
}

static void count(struct sw_sim_disruption *disruption, const struct sw_sim_object *budget)
{
    struct counting counting = {
        .disruption = disruption,
        .budget = budget,
        .selector = sw_look_at(sw_sim_object_json(budget), "spec", "selector", NULL),
        .disrupted = json_object(),
        .seen = sw_map_new(),
    };
    sw_sim_store_each(disruption->store, disruption->pods, budget->namespace_, NULL, count_pod,
                      &counting);
    json_t *status = status_of(&counting);
    if (json_equal(status, json_object_get(sw_sim_object_json(budget), "status")))
        json_decref(status);
    else
        sw_sim_update_status(disruption->api, budget->kind, sw_look_with_status(budget, status));
    json_decref(counting.disrupted);
    sw_map_free(counting.seen);
}

/* ---- turns ---- */

struct picked {
    const struct sw_sim_object **at;
    size_t count;
};

static int pick(void *arg, const struct sw_sim_object *budget)
{
    struct picked *picked = arg;
    picked->at = sw_realloc(picked->at, picked->count + 1, sizeof(struct sw_sim_object *));
    picked->at[picked->count++] = sw_sim_object_ref(budget);
    return 0;
}

static void on_timer(struct sw_timer *timer)
{
    struct sw_sim_disruption *disruption = container_of(timer, struct sw_sim_disruption, timer);
    struct sw_map *dirty = disruption->dirty;
    disruption->dirty = sw_map_new();
    struct picked picked = {0};
    struct sw_map_iter it = {0};
    while (sw_map_next(dirty, &it)) {
        sw_sim_store_each(disruption->store, disruption->budgets, it.key, NULL, pick, &picked);
    }
    for (size_t i = 0; i < picked.count; i++) {
        count(disruption, picked.at[i]);
        sw_sim_object_unref(picked.at[i]);
    }
    sw_free(picked.at);
    sw_map_free(dirty);
}

static void mark(struct sw_sim_disruption *disruption, const char *namespace_)
{
    sw_map_set(disruption->dirty, namespace_, &marker);
    if (!sw_timer_is_active(&disruption->timer)) {
        sw_timer_start(&disruption->timer, LAG_MS);
    }
}

void sw_sim_disruption_change(struct sw_sim_disruption *disruption,
                              const struct sw_sim_change *change)
{
    const struct sw_sim_kind *kind = change->object->kind;
    if (sw_sim_store_count(disruption->store, disruption->budgets) &&
        (kind == disruption->budgets || kind == disruption->pods ||
         strcmp(kind->group, "apps") == 0)) {
        mark(disruption, change->object->namespace_);
    }
}

static int mark_one(void *arg, const struct sw_sim_object *budget)
{
    mark(arg, budget->namespace_);
    return 0;
}

void sw_sim_disruption_look(struct sw_sim_disruption *disruption)
{
    sw_sim_store_each(disruption->store, disruption->budgets, NULL, NULL, mark_one, disruption);
}

void sw_sim_disruption_rest(struct sw_sim_disruption *disruption)
{
    sw_timer_stop(&disruption->timer);
}

/* ---- life ---- */

struct sw_sim_disruption *sw_sim_disruption_new(struct sw_loop *loop, struct sw_sim_store *store,
                                                struct sw_sim_api *api)
{
    struct sw_sim_disruption *disruption = SW_NEW(struct sw_sim_disruption);
    *disruption = (struct sw_sim_disruption){
        .loop = loop,
        .store = store,
        .api = api,
        .budgets = sw_sim_api_kind(api, "policy", "v1", "poddisruptionbudgets"),
        .pods = sw_sim_api_kind(api, "", "v1", "pods"),
        .dirty = sw_map_new(),
    };
    sw_timer_init(&disruption->timer, loop, on_timer);
    return disruption;
}

struct sw_sim_disruption *sw_sim_disruption_free(struct sw_sim_disruption *disruption)
{
    if (!disruption) {
        return NULL;
    }
    sw_timer_stop(&disruption->timer);
    sw_map_free(disruption->dirty);
    return sw_free(disruption);
}
