/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controller of StatefulSets: Pods with ordinals, made from the first on and deleted from the
 * last on, one at a time unless podManagementPolicy is Parallel; the update from the last ordinal
 * down to the partition, one at a time in any case.
 * https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "base/util.h"
#include "controllers.h"
#include "look.h"

#define POD_NAME_LABEL "statefulset.kubernetes.io/pod-name"
#define REVISION_LABEL "controller-revision-hash"

struct counts {
    int64_t replicas, ready, current, updated;
};

struct set {
    struct sw_sim_workloads *workloads;
    const struct sw_sim_object *object;
    const json_t *spec;
    const struct sw_sim_object *current, *update; /* revisions */
    int64_t replicas, partition;
    bool has_partition; /* spec.updateStrategy.rollingUpdate is there */
    bool is_rolling, is_parallel;
    struct sw_sim_items pods;
    struct sw_sim_item **wanted; /* by ordinal; NULL: not there */
    struct sw_sim_items surplus; /* from the lowest ordinal to the highest */
    const struct sw_sim_item *first_unhealthy;
    bool has_missing; /* a wanted one is not there: that is the first unhealthy one */
    struct counts counts;
};

/* ---- Pods ---- */

/* -1: no Pod of that set by its name. */
static int64_t ordinal_of(const struct sw_sim_object *set, const struct sw_sim_item *item)
{
    size_t len = strlen(set->name);
    const char *name = item->object->name;
    if (strncmp(name, set->name, len) != 0 || name[len] != '-' || !name[len + 1] ||
        name[len + 1 + strspn(name + len + 1, "0123456789")])
        return -1;
    return strtoll(name + len + 1, NULL, 10);
}

static bool is_member(const struct sw_sim_object *set, const struct sw_sim_item *item)
{
    return ordinal_of(set, item) >= 0;
}

static const char *revision_of(const struct sw_sim_item *item)
{
    return sw_look_string(json_object_get(sw_look_meta(item->object), "labels"), REVISION_LABEL);
}

static bool is_of(const struct sw_sim_item *item, const struct sw_sim_object *revision)
{
    return strcmp(revision_of(item), revision->name) == 0;
}

static bool is_running_and_ready(const struct sw_sim_item *item)
{
    return item->pod.phase == SW_SIM_RUNNING && item->pod.is_ready;
}

static bool is_healthy(const struct sw_sim_item *item)
{
    return is_running_and_ready(item) && !item->pod.is_deleted;
}

static void count_revision(struct set *set, const char *revision, int64_t change)
{
    if (strcmp(revision, set->current->name) == 0)
        set->counts.current += change;
    if (strcmp(revision, set->update->name) == 0)
        set->counts.updated += change;
}

/* Volumes of claims, which take the place of volumes with their name. */
static void add_claims(const struct set *set, json_t *spec, int64_t ordinal)
{
    const json_t *claims = json_object_get(set->spec, "volumeClaimTemplates");
    if (!json_array_size(claims))
        return;
    json_t *volumes = json_array();
    size_t at;
    json_t *one;
    json_array_foreach(claims, at, one)
    {
        const char *name = sw_look_string(json_object_get(one, "metadata"), "name");
        SW_AUTO(char, sw_free)
        claim = sw_asprintf("%s-%s-%" PRId64, name, set->object->name, ordinal);
        json_array_append_new(volumes, json_pack("{s:s, s:{s:s}}", "name", name,
                                                 "persistentVolumeClaim", "claimName", claim));
    }
    json_array_foreach(json_object_get(spec, "volumes"), at, one)
    {
        if (!sw_look_element(volumes, "name", sw_look_string(one, "name")))
            json_array_append(volumes, one);
    }
    json_object_set_new(spec, "volumes", volumes);
}

/* Below the partition the Pods stay at the revision from which the update began. */
static const struct sw_sim_object *revision_for(const struct set *set, int64_t ordinal)
{
    int64_t kept = 0;
    if (set->has_partition)
        kept = set->partition;
    else if (set->is_rolling)
        kept = sw_look_int(json_object_get(sw_sim_object_json(set->object), "status"),
                           "currentReplicas", 0);
    return ordinal < kept ? set->current : set->update;
}

static void record(const struct set *set, const char *verb, const char *reason, const char *pod)
{
    sw_sim_record(set->workloads->recorder, set->object, "statefulset-controller", reason,
                  "%s Pod %s in StatefulSet %s successful", verb, pod, set->object->name);
}

static int create_pod(struct set *set, int64_t ordinal)
{
    const struct sw_sim_object *revision = revision_for(set, ordinal);
    SW_AUTO(char, sw_free) name = sw_asprintf("%s-%" PRId64, set->object->name, ordinal);
    json_t *pod = sw_sim_pod_of(set->object, sw_sim_revision_template(revision));
    json_t *meta = json_object_get(pod, "metadata"), *spec = json_object_get(pod, "spec");
    json_object_set_new(meta, "name", json_string(name));
    json_t *labels = sw_look_own(meta, "labels");
    json_object_set_new(labels, POD_NAME_LABEL, json_string(name));
    json_object_set_new(labels, REVISION_LABEL, json_string(revision->name));
    json_object_set_new(spec, "hostname", json_string(name));
    const char *service = sw_look_string(set->spec, "serviceName");
    if (*service)
        json_object_set_new(spec, "subdomain", json_string(service));
    add_claims(set, spec, ordinal);
    const struct sw_sim_object *made;
    int result =
        sw_sim_create(set->workloads->api, sw_sim_kind_of(set->workloads, SW_SIM_PODS), pod, &made);
    if (result == 0) {
        set->counts.replicas++;
        count_revision(set, revision->name, 1);
        record(set, "create", "SuccessfulCreate", made->name);
    }
    return result;
}

static int delete_pod(struct set *set, const struct sw_sim_item *item)
{
    int result = sw_sim_delete(set->workloads->api, item->object, -1, NULL);
    if (result == 0)
        record(set, "delete", "SuccessfulDelete", item->object->name);
    return result == -ENOENT ? 0 : result;
}

static int label_pod(const struct set *set, const struct sw_sim_item *item)
{
    const json_t *labels = json_object_get(sw_look_meta(item->object), "labels");
    if (strcmp(sw_look_string(labels, POD_NAME_LABEL), item->object->name) == 0)
        return 0;
    json_t *json = sw_look_copy(sw_sim_object_json(item->object));
    json_object_set_new(sw_look_own(sw_look_own(json, "metadata"), "labels"), POD_NAME_LABEL,
                        json_string(item->object->name));
    return sw_sim_update(set->workloads->api, item->object->kind, json);
}

/* ---- sorting ---- */

static int by_ordinal(const void *left, const void *right)
{
    const struct sw_sim_item *a = *(struct sw_sim_item *const *)left;
    const struct sw_sim_item *b = *(struct sw_sim_item *const *)right;
    size_t len_a = strlen(a->object->name), len_b = strlen(b->object->name);
    if (len_a != len_b) /* the same name before the number, which has no leading 0 */
        return len_a < len_b ? -1 : 1;
    return strcmp(a->object->name, b->object->name);
}

static void sort_pods(struct set *set)
{
    set->wanted = sw_calloc((size_t)set->replicas + 1, sizeof(*set->wanted));
    for (size_t i = 0; i < set->pods.count; i++) {
        struct sw_sim_item *item = set->pods.at[i];
        int64_t ordinal = ordinal_of(set->object, item);
        set->counts.replicas++;
        set->counts.ready += is_running_and_ready(item);
        if (!item->pod.is_deleted)
            count_revision(set, revision_of(item), 1);
        if (ordinal >= set->replicas)
            sw_sim_items_add(&set->surplus, item);
        else
            set->wanted[ordinal] = item;
    }
    if (set->surplus.count)
        qsort(set->surplus.at, set->surplus.count, sizeof(struct sw_sim_item *), by_ordinal);
    for (int64_t i = 0; i < set->replicas && !set->first_unhealthy; i++) {
        set->has_missing = set->has_missing || !set->wanted[i];
        if (!set->has_missing && !is_healthy(set->wanted[i]))
            set->first_unhealthy = set->wanted[i];
    }
    for (size_t i = 0; i < set->surplus.count && !set->first_unhealthy && !set->has_missing; i++) {
        if (!is_healthy(set->surplus.at[i]))
            set->first_unhealthy = set->surplus.at[i];
    }
}

/* ---- the steps; *ret_wait: enough for this look ---- */

static int replace_failed(struct set *set, int64_t ordinal)
{
    struct sw_sim_item *item = set->wanted[ordinal];
    int result = delete_pod(set, item);
    if (result)
        return result;
    count_revision(set, revision_of(item), -1);
    set->counts.replicas--;
    set->wanted[ordinal] = NULL;
    return 0;
}

static int bring_up(struct set *set, bool *ret_wait)
{
    for (int64_t i = 0; i < set->replicas; i++) {
        int result = 0;
        if (set->wanted[i] && set->wanted[i]->pod.phase == SW_SIM_FAILED)
            result = replace_failed(set, i);
        if (result)
            return result;
        if (!set->wanted[i]) {
            result = create_pod(set, i);
            *ret_wait = !set->is_parallel;
            if (result || *ret_wait)
                return result;
            continue;
        }
        if (!set->is_parallel && !is_healthy(set->wanted[i])) {
            *ret_wait = true;
            return 0;
        }
        result = label_pod(set, set->wanted[i]);
        if (result)
            return result;
    }
    return 0;
}

static int take_down(struct set *set, bool *ret_wait)
{
    for (size_t i = set->surplus.count; i-- > 0;) {
        struct sw_sim_item *item = set->surplus.at[i];
        *ret_wait = !set->is_parallel;
        if (item->pod.is_deleted) {
            if (*ret_wait)
                return 0;
            continue;
        }
        if (!is_running_and_ready(item) && !set->is_parallel && item != set->first_unhealthy)
            return 0;
        int result = delete_pod(set, item);
        if (result)
            return result;
        count_revision(set, revision_of(item), -1);
        if (*ret_wait)
            return 0;
    }
    return 0;
}

static int update_one(struct set *set)
{
    if (!set->is_rolling)
        return 0;
    int64_t first = set->has_partition ? set->partition : 0;
    for (int64_t i = set->replicas - 1; i >= first; i--) {
        struct sw_sim_item *item = set->wanted[i];
        if (!item) /* made in this look */
            return 0;
        if (!is_of(item, set->update) && !item->pod.is_deleted) {
            int result = delete_pod(set, item);
            set->counts.current--;
            return result;
        }
        if (!is_healthy(item))
            return 0;
    }
    return 0;
}

static int step(struct set *set)
{
    bool waits = false;
    if (sw_look_is_deleted(set->object))
        return 0;
    int result = bring_up(set, &waits);
    if (!result && !waits)
        result = take_down(set, &waits);
    if (!result && !waits)
        result = update_one(set);
    return result;
}

/* ---- status ---- */

static int tell(struct set *set, int64_t collisions)
{
    struct counts *counts = &set->counts;
    const char *current = set->current->name;
    if (set->is_rolling && counts->updated == counts->replicas &&
        counts->ready == counts->replicas) {
        counts->current = counts->updated;
        current = set->update->name;
    }
    json_t *status = json_pack("{s:I, s:s, s:s, s:I}", "replicas", (json_int_t)counts->replicas,
                               "currentRevision", current, "updateRevision", set->update->name,
                               "collisionCount", (json_int_t)collisions);
    sw_look_set_count(status, "observedGeneration", sw_look_generation(set->object));
    sw_look_set_count(status, "readyReplicas", counts->ready);
    sw_look_set_count(status, "currentReplicas", counts->current);
    sw_look_set_count(status, "updatedReplicas", counts->updated);
    return sw_sim_write_status(set->workloads, set->object, status);
}

/* ---- one look ---- */

static bool is_live(void *arg, const struct sw_sim_object *revision)
{
    const struct set *set = arg;
    if (strcmp(revision->name, set->current->name) == 0 ||
        strcmp(revision->name, set->update->name) == 0)
        return true;
    for (size_t i = 0; i < set->pods.count; i++) {
        if (is_of(set->pods.at[i], revision))
            return true;
    }
    return false;
}

static void choose_revisions(struct set *set, const struct sw_sim_revisions *revisions)
{
    const char *name = sw_look_string(json_object_get(sw_sim_object_json(set->object), "status"),
                                      "currentRevision");
    set->update = set->current = revisions->update;
    for (size_t i = 0; i < revisions->count; i++) {
        if (strcmp(revisions->at[i]->name, name) == 0)
            set->current = revisions->at[i];
    }
}

int sw_sim_sync_stateful_set(struct sw_sim_workloads *workloads, struct sw_sim_job *job,
                             const struct sw_sim_object *object)
{
    (void)job;
    const json_t *spec = json_object_get(sw_sim_object_json(object), "spec");
    const json_t *strategy = json_object_get(spec, "updateStrategy");
    const json_t *rolling = json_object_get(strategy, "rollingUpdate");
    struct set set = {
        .workloads = workloads,
        .object = object,
        .spec = spec,
        .replicas = sw_look_int(spec, "replicas", 1),
        .partition = sw_look_int(rolling, "partition", 0),
        .has_partition = json_is_object(rolling),
        .is_rolling = strcmp(sw_look_string(strategy, "type"), "OnDelete") != 0,
        .is_parallel = strcmp(sw_look_string(spec, "podManagementPolicy"), "Parallel") == 0,
    };
    struct sw_sim_revisions revisions;
    int result =
        sw_sim_revisions_find(workloads, object, "controller.kubernetes.io/hash", &revisions);
    if (result == 0) {
        choose_revisions(&set, &revisions);
        result = sw_sim_claim(workloads, SW_SIM_PODS, object, is_member, &set.pods);
    }
    if (result == 0) {
        sort_pods(&set);
        result = step(&set);
        if (!result)
            result = tell(&set, revisions.collisions);
        sw_sim_revisions_truncate(workloads, object, &revisions, is_live, &set);
    }
    sw_sim_revisions_done(&revisions);
    sw_sim_items_done(&set.pods);
    sw_sim_items_done(&set.surplus);
    sw_free(set.wanted);
    return result;
}
