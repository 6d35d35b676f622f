/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controller of ReplicaSets: as many Pods as spec.replicas, those that are least use deleted
 * first, and a status that counts them.
 * https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "base/util.h"
#include "controllers.h"
#include "look.h"

enum { BURST = 500 }; /* Pods made or deleted in one go, as the real one's burstReplicas */

/* ---- which Pods go first ---- */

struct candidate {
    const struct sw_sim_item *item;
    size_t neighbours; /* Pods of the same workload on its Node */
};

static int sign(bool is_less, bool is_more)
{
    return is_less ? -1 : is_more ? 1 : 0;
}

/* In the order of
 * https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/#scaling-a-replicaset and of
 * the real controller where the page is silent. Equal ones by name, so that runs repeat. */
static int compare(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    const struct sw_sim_pod *p = &a->item->pod, *q = &b->item->pod;
    int order = sign(!*p->node && *q->node, *p->node && !*q->node);
    if (!order)
        order = sign(p->phase<q->phase, p->phase> q->phase);
    if (!order)
        order = sign(!p->is_ready && q->is_ready, p->is_ready && !q->is_ready);
    if (!order)
        order = sign(a->neighbours > b->neighbours, a->neighbours < b->neighbours);
    if (!order && p->is_ready)
        order = sign(p->ready_us > q->ready_us, p->ready_us < q->ready_us);
    if (!order)
        order = sign(p->restarts > q->restarts, p->restarts < q->restarts);
    if (!order)
        order = sign(p->created_us > q->created_us, p->created_us < q->created_us);
    return order ? order : strcmp(a->item->object->name, b->item->object->name);
}

struct ranking {
    const struct sw_sim_workloads *workloads;
    struct candidate *candidates;
    size_t count;
};

static int count_neighbour(void *arg, struct sw_sim_item *item)
{
    struct ranking *ranking = arg;
    if (!sw_sim_pod_is_active(&item->pod) || !*item->pod.node)
        return 0;
    for (size_t i = 0; i < ranking->count; i++) {
        if (strcmp(ranking->candidates[i].item->pod.node, item->pod.node) == 0)
            ranking->candidates[i].neighbours++;
    }
    return 0;
}

static int count_neighbours_of_set(void *arg, struct sw_sim_item *set)
{
    struct ranking *ranking = arg;
    return sw_sim_view_each_controlled(ranking->workloads->views[SW_SIM_PODS], set->object->uid,
                                       count_neighbour, ranking);
}

static void rank(struct ranking *ranking, const struct sw_sim_object *object)
{
    const json_t *owner = sw_look_controller_of(sw_sim_object_json(object));
    if (owner)
        sw_sim_view_each_controlled(ranking->workloads->views[SW_SIM_REPLICA_SETS],
                                    sw_look_string(owner, "uid"), count_neighbours_of_set, ranking);
    qsort(ranking->candidates, ranking->count, sizeof(struct candidate), compare);
}

/* ---- making and deleting ---- */

static int delete_pods(struct sw_sim_workloads *workloads, struct sw_sim_job *job,
                       const struct sw_sim_object *object, const struct sw_sim_items *pods,
                       size_t surplus)
{
    struct ranking ranking = {workloads, sw_calloc(pods->count, sizeof(struct candidate)),
                              pods->count};
    for (size_t i = 0; i < pods->count; i++)
        ranking.candidates[i].item = pods->at[i];
    if (surplus < pods->count)
        rank(&ranking, object);
    int result = 0;
    for (size_t i = 0; i < SW_MIN(surplus, (size_t)BURST); i++) {
        const struct sw_sim_object *pod = ranking.candidates[i].item->object;
        int error = sw_sim_delete(workloads->api, pod, -1, NULL);
        if (!error)
            sw_sim_record(workloads->recorder, object, "replicaset-controller", "SuccessfulDelete",
                          "Deleted pod: %s", pod->name);
        else if (error != -ENOENT)
            result = error;
    }
    job->expects = sw_sim_store_version(workloads->store);
    sw_free(ranking.candidates);
    return result;
}

static int create_pods(struct sw_sim_workloads *workloads, struct sw_sim_job *job,
                       const struct sw_sim_object *object, size_t missing)
{
    const json_t *template = sw_look_at(sw_sim_object_json(object), "spec", "template", NULL);
    SW_AUTO(char, sw_free) prefix = sw_asprintf("%s-", object->name);
    int result = 0;
    for (size_t i = 0; i < SW_MIN(missing, (size_t)BURST) && !result; i++) {
        json_t *pod = sw_sim_pod_of(object, template);
        json_object_set_new(json_object_get(pod, "metadata"), "generateName", json_string(prefix));
        const struct sw_sim_object *made;
        result = sw_sim_create(workloads->api, sw_sim_kind_of(workloads, SW_SIM_PODS), pod, &made);
        if (!result)
            sw_sim_record(workloads->recorder, object, "replicaset-controller", "SuccessfulCreate",
                          "Created pod: %s", made->name);
    }
    job->expects = sw_sim_store_version(workloads->store);
    return result;
}

static int manage(struct sw_sim_workloads *workloads, struct sw_sim_job *job,
                  const struct sw_sim_object *object, const struct sw_sim_items *pods,
                  int64_t replicas)
{
    int64_t missing = replicas - (int64_t)pods->count;
    if (missing > 0)
        return create_pods(workloads, job, object, (size_t)missing);
    if (missing < 0)
        return delete_pods(workloads, job, object, pods, (size_t)-missing);
    return 0;
}

/* ---- status ---- */

static bool has_all_labels(const json_t *template, const struct sw_sim_item *item)
{
    const json_t *labels = json_object_get(sw_look_meta(item->object), "labels");
    const char *key;
    json_t *value;
    json_object_foreach(sw_look_loose(sw_look_at(template, "metadata", "labels", NULL)), key, value)
    {
        if (!json_equal(value, json_object_get(labels, key)))
            return false;
    }
    return true;
}

/* The only condition: ReplicaFailure, while Pods cannot be made or deleted. */
static void set_failure(json_t *status, int error, bool is_short, int64_t wall_us)
{
    const json_t *before =
        sw_look_element(json_object_get(status, "conditions"), "type", "ReplicaFailure");
    if (error && !before) {
        json_t *condition =
            json_pack("{s:s, s:s, s:o, s:s, s:s}", "type", "ReplicaFailure", "status", "True",
                      "lastTransitionTime", sw_look_time(wall_us), "reason",
                      is_short ? "FailedCreate" : "FailedDelete", "message", strerror(-error));
        json_t *conditions = json_array();
        json_array_append_new(conditions, condition);
        json_object_set_new(status, "conditions", conditions);
    } else if (!error && before) {
        json_object_del(status, "conditions");
    }
}

struct counts {
    int64_t labeled, ready, available;
};

static struct counts count(const struct sw_sim_object *object, const struct sw_sim_items *pods,
                           int64_t min_ready_s, int64_t wall_us)
{
    const json_t *template = sw_look_at(sw_sim_object_json(object), "spec", "template", NULL);
    struct counts counts = {0};
    for (size_t i = 0; i < pods->count; i++) {
        const struct sw_sim_pod *pod = &pods->at[i]->pod;
        counts.labeled += has_all_labels(template, pods->at[i]);
        counts.ready += pod->is_ready;
        counts.available += sw_sim_pod_is_available(pod, min_ready_s, wall_us);
    }
    return counts;
}

/* A conflict is tried once more upon what is stored, as the real one does: the counts are true
 * whatever else has changed. */
static int write_status(struct sw_sim_workloads *workloads, const struct sw_sim_object *object,
                        json_t *status_take)
{
    json_incref(status_take);
    int result = sw_sim_write_status(workloads, object, status_take);
    if (result == -EAGAIN) {
        const struct sw_sim_object *now =
            sw_sim_store_get(workloads->store, object->kind, object->namespace_, object->name);
        if (now && strcmp(now->uid, object->uid) == 0) {
            json_incref(status_take);
            result = sw_sim_write_status(workloads, now, status_take);
        }
    }
    json_decref(status_take);
    return result;
}

int sw_sim_sync_replica_set(struct sw_sim_workloads *workloads, struct sw_sim_job *job,
                            const struct sw_sim_object *object)
{
    const json_t *spec = json_object_get(sw_sim_object_json(object), "spec");
    int64_t replicas = sw_look_int(spec, "replicas", 1);
    int64_t min_ready_s = sw_look_int(spec, "minReadySeconds", 0);
    int64_t wall_us = sw_wall_us(workloads->loop);
    struct sw_sim_items pods;
    int result = sw_sim_claim(workloads, SW_SIM_PODS, object, sw_sim_wants_active, &pods);
    if (result) {
        sw_sim_items_done(&pods);
        return result;
    }
    /* Before anything is made or deleted: that is counted when the view has it. */
    struct counts counts = count(object, &pods, min_ready_s, wall_us);
    int64_t total = (int64_t)pods.count;

    if (sw_sim_view_has(workloads->views[SW_SIM_PODS], job->expects) && !sw_look_is_deleted(object))
        result = manage(workloads, job, object, &pods, replicas);
    sw_sim_items_done(&pods);

    const json_t *old = json_object_get(sw_sim_object_json(object), "status");
    json_t *status = old ? sw_look_copy(old) : json_object();
    set_failure(status, result, total < replicas, wall_us);
    json_object_set_new(status, "replicas", json_integer(total));
    sw_look_set_count(status, "fullyLabeledReplicas", counts.labeled);
    sw_look_set_count(status, "readyReplicas", counts.ready);
    sw_look_set_count(status, "availableReplicas", counts.available);
    sw_look_set_count(status, "observedGeneration", sw_look_generation(object));
    int error = write_status(workloads, object, status);
    if (!result && !error && min_ready_s > 0 && counts.ready == replicas &&
        counts.available != replicas)
        sw_sim_wake_after(workloads, SW_SIM_REPLICA_SETS, object->namespace_, object->name,
                          (uint64_t)min_ready_s * 1000);
    return result ? result : error;
}
