/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controller of Deployments: which ReplicaSet belongs to the template, its revision, and what
 * is done in what order. A write that meets something newer ends the look; the key comes again.
 * https://kubernetes.io/docs/concepts/workloads/controllers/deployment/
 */
#include "deployment.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "base/util.h"
#include "controllers.h"
#include "look.h"

enum { HISTORY_CHARS = 2000 }; /* of the annotation of former revisions, as the real one's limit */

int64_t sw_rollout_wanted(const struct sw_rollout *rollout)
{
    int64_t sum = 0;
    for (size_t i = 0; i < rollout->count; i++)
        sum += rollout->sets[i].replicas;
    return sum;
}

bool sw_rollout_is_old(const struct sw_rollout *rollout, const struct sw_rollout_set *set)
{
    return set != rollout->current;
}

int sw_rollout_write(struct sw_rollout *rollout)
{
    if (rollout->has_written)
        return -EAGAIN; /* as the API server would answer */
    json_t *json = sw_look_with_status(rollout->object, sw_look_copy(rollout->status));
    if (json_object_size(rollout->annotations)) {
        json_t *meta = sw_look_own(json, "metadata");
        json_object_set_new(meta, "annotations", sw_look_copy(rollout->annotations));
    }
    int result = sw_sim_update_status(rollout->workloads->api, rollout->object->kind, json);
    rollout->has_written = result == 0;
    return result;
}

/* ---- ReplicaSets ---- */

static struct sw_rollout_set read_set(const struct sw_sim_object *object)
{
    const json_t *spec = json_object_get(sw_sim_object_json(object), "spec");
    const json_t *status = json_object_get(sw_sim_object_json(object), "status");
    return (struct sw_rollout_set){
        .object = sw_sim_object_ref(object),
        .replicas = sw_look_int(spec, "replicas", 1),
        .present = sw_look_int(status, "replicas", 0),
        .ready = sw_look_int(status, "readyReplicas", 0),
        .available = sw_look_int(status, "availableReplicas", 0),
        .created_us = sw_look_created_us(object),
    };
}

static int by_age(const void *left, const void *right)
{
    const struct sw_rollout_set *a = left, *b = right;
    if (a->created_us != b->created_us)
        return a->created_us < b->created_us ? -1 : 1;
    return strcmp(a->object->name, b->object->name);
}

/* The oldest with that template: there may be several after an adoption. */
static struct sw_rollout_set *find_template(const struct sw_rollout *rollout)
{
    const json_t *template = json_object_get(rollout->spec, "template");
    for (size_t i = 0; i < rollout->count; i++) {
        const json_t *other =
            sw_look_at(sw_sim_object_json(rollout->sets[i].object), "spec", "template", NULL);
        if (sw_look_same_template(template, other))
            return &rollout->sets[i];
    }
    return NULL;
}

/* Of what was written just now, so that the next write of this look finds it. */
static void take_written(struct sw_rollout *rollout, struct sw_rollout_set *set)
{
    const struct sw_sim_object *now = sw_sim_store_get(rollout->workloads->store, set->object->kind,
                                                       set->object->namespace_, set->object->name);
    if (now && strcmp(now->uid, set->object->uid) == 0) {
        const struct sw_sim_object *before = set->object;
        set->object = sw_sim_object_ref(now);
        sw_sim_object_unref(before);
    }
}

/* ---- revisions ---- */

static int64_t revision_of(const json_t *annotations)
{
    return strtoll(sw_look_string(annotations, SW_DEPLOYMENT_REVISION), NULL, 10);
}

static int64_t next_revision(const struct sw_rollout *rollout)
{
    int64_t highest = 0;
    for (size_t i = 0; i < rollout->count; i++) {
        if (sw_rollout_is_old(rollout, &rollout->sets[i])) {
            int64_t one =
                revision_of(json_object_get(sw_look_meta(rollout->sets[i].object), "annotations"));
            highest = SW_MAX(highest, one);
        }
    }
    return highest + 1;
}

static void set_revision(json_t *annotations, int64_t revision)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRId64, revision);
    json_object_set_new(annotations, SW_DEPLOYMENT_REVISION, json_string(text));
}

/* A revision that comes back leaves its former number here. The oldest make room. */
static void remember_revision(json_t *annotations, const char *former)
{
    const char *history = sw_look_string(annotations, SW_DEPLOYMENT_HISTORY);
    while (*history && strlen(history) + strlen(former) + 1 > HISTORY_CHARS) {
        const char *comma = strchr(history, ',');
        history = comma ? comma + 1 : "";
    }
    SW_AUTO(char, sw_free)
    text = *history ? sw_asprintf("%s,%s", history, former) : sw_strdup(former);
    json_object_set_new(annotations, SW_DEPLOYMENT_HISTORY, json_string(text));
}

static bool is_copied(const char *key)
{
    static const char *const apart[] = {
        "kubectl.kubernetes.io/last-applied-configuration",
        SW_DEPLOYMENT_REVISION,
        SW_DEPLOYMENT_HISTORY,
        SW_DEPLOYMENT_DESIRED,
        SW_DEPLOYMENT_MAX,
        "deprecated.deployment.rollback.to",
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(apart); i++) {
        if (strcmp(key, apart[i]) == 0)
            return false;
    }
    return true;
}

/* What the ReplicaSet of the template has to carry; true: it differed. */
static bool sync_annotations(const struct sw_rollout *rollout, json_t *annotations)
{
    bool differs = false;
    const char *key;
    json_t *value;
    json_object_foreach(
        sw_look_loose(json_object_get(sw_look_meta(rollout->object), "annotations")), key, value)
    {
        if (is_copied(key) && !json_equal(value, json_object_get(annotations, key))) {
            json_object_set(annotations, key, value);
            differs = true;
        }
    }
    int64_t revision = next_revision(rollout);
    SW_AUTO(char, sw_free) former = sw_strdup(sw_look_string(annotations, SW_DEPLOYMENT_REVISION));
    if (revision_of(annotations) < revision) {
        set_revision(annotations, revision);
        if (*former)
            remember_revision(annotations, former);
        differs = true;
    }
    return differs;
}

/* ---- the ReplicaSet of the template ---- */

static int sync_found(struct sw_rollout *rollout)
{
    struct sw_rollout_set *set = rollout->current;
    const json_t *json = sw_sim_object_json(set->object);
    json_t *annotations = json_object();
    json_object_update(annotations,
                       sw_look_loose(json_object_get(sw_look_meta(set->object), "annotations")));
    bool differs =
        sync_annotations(rollout, annotations) ||
        sw_look_int(json_object_get(json, "spec"), "minReadySeconds", 0) != rollout->min_ready_s;
    if (differs) {
        json_t *changed = sw_look_copy(json);
        json_object_set_new(sw_look_own(changed, "metadata"), "annotations", annotations);
        sw_look_set_count(sw_look_own(changed, "spec"), "minReadySeconds", rollout->min_ready_s);
        int result = sw_sim_update(rollout->workloads->api, set->object->kind, changed);
        if (result == 0)
            take_written(rollout, set);
        return result;
    }
    bool must_write = !json_equal(json_object_get(annotations, SW_DEPLOYMENT_REVISION),
                                  json_object_get(rollout->annotations, SW_DEPLOYMENT_REVISION));
    json_object_set(rollout->annotations, SW_DEPLOYMENT_REVISION,
                    json_object_get(annotations, SW_DEPLOYMENT_REVISION));
    json_decref(annotations);
    if (rollout->deadline_s >= 0 && !sw_rollout_condition(rollout->status, "Progressing")) {
        sw_rollout_set_condition(rollout, rollout->status, "Progressing", SW_ROLLOUT_TRUE,
                                 "FoundNewReplicaSet", "Found new replica set \"%s\"",
                                 set->object->name);
        must_write = true;
    }
    return must_write ? sw_rollout_write(rollout) : 0;
}

static json_t *with_hash_label(const json_t *labels, const char *hash)
{
    json_t *mine = json_object();
    json_object_update(mine, sw_look_loose(labels));
    json_object_set_new(mine, "pod-template-hash", json_string(hash));
    return mine;
}

static json_t *make_set(const struct sw_rollout *rollout, const char *name, const char *hash)
{
    const json_t *template = json_object_get(rollout->spec, "template");
    json_t *labels = with_hash_label(sw_look_at(template, "metadata", "labels", NULL), hash);

    json_t *meta = json_pack("{s:s, s:s, s:O}", "name", name, "namespace",
                             rollout->object->namespace_, "labels", labels);
    json_t *references = json_array();
    json_array_append_new(references, sw_look_controller_reference(rollout->object));
    json_object_set_new(meta, "ownerReferences", references);
    json_t *annotations = json_object();
    sync_annotations(rollout, annotations);
    sw_rollout_annotate(rollout, annotations);
    json_object_set_new(meta, "annotations", annotations);

    json_t *copy = json_deep_copy(sw_look_loose(template));
    json_object_set_new(sw_look_own(copy, "metadata"), "labels", labels);
    json_t *selector = sw_look_copy(json_object_get(rollout->spec, "selector"));
    json_object_set_new(selector, "matchLabels",
                        with_hash_label(json_object_get(selector, "matchLabels"), hash));
    json_t *spec =
        json_pack("{s:I, s:o, s:o}", "replicas", (json_int_t)sw_rollout_new_size(rollout, 0),
                  "selector", selector, "template", copy);
    sw_look_set_count(spec, "minReadySeconds", rollout->min_ready_s);
    return json_pack("{s:s, s:s, s:o, s:o}", "apiVersion", "apps/v1", "kind", "ReplicaSet",
                     "metadata", meta, "spec", spec);
}

static void add_set(struct sw_rollout *rollout, const struct sw_sim_object *object)
{
    size_t current = rollout->count;
    rollout->sets = sw_realloc(rollout->sets, rollout->count + 1, sizeof(*rollout->sets));
    rollout->sets[rollout->count++] = read_set(object);
    rollout->current = &rollout->sets[current];
}

/* There is one of that name: ours, which the view does not have yet, or another template's. */
static int meet_namesake(struct sw_rollout *rollout, const char *name, int64_t collisions)
{
    const struct sw_sim_object *other = sw_sim_store_get(
        rollout->workloads->store, sw_sim_kind_of(rollout->workloads, SW_SIM_REPLICA_SETS),
        rollout->object->namespace_, name);
    if (!other)
        return -EEXIST;
    const json_t *owner = sw_look_controller_of(sw_sim_object_json(other));
    if (owner && strcmp(sw_look_string(owner, "uid"), rollout->object->uid) == 0 &&
        sw_look_same_template(json_object_get(rollout->spec, "template"),
                              sw_look_at(sw_sim_object_json(other), "spec", "template", NULL))) {
        add_set(rollout, other);
        return 0;
    }
    json_object_set_new(rollout->status, "collisionCount", json_integer(collisions + 1));
    sw_rollout_write(rollout);
    return -EEXIST;
}

static int create_current(struct sw_rollout *rollout)
{
    int64_t collisions = sw_look_int(rollout->status, "collisionCount", 0);
    int64_t revision = next_revision(rollout);
    char hash[SW_LOOK_HASH_SIZE];
    sw_look_hash(json_object_get(rollout->spec, "template"), collisions, hash);
    SW_AUTO(char, sw_free) name = sw_asprintf("%s-%s", rollout->object->name, hash);

    const struct sw_sim_object *made = NULL;
    int result = sw_sim_create(rollout->workloads->api,
                               sw_sim_kind_of(rollout->workloads, SW_SIM_REPLICA_SETS),
                               make_set(rollout, name, hash), &made);
    bool is_ours = result == 0;
    if (is_ours) {
        add_set(rollout, made);
        if (rollout->current->replicas > 0)
            sw_rollout_record(rollout, rollout->current, true, rollout->current->replicas);
    } else if (result == -EEXIST) {
        result = meet_namesake(rollout, name, collisions);
        if (result)
            return result;
    } else {
        if (rollout->deadline_s >= 0) {
            sw_rollout_set_condition(
                rollout, rollout->status, "Progressing", SW_ROLLOUT_FALSE, "ReplicaSetCreateError",
                "Failed to create new replica set \"%s\": %s", name, strerror(-result));
            sw_rollout_write(rollout);
        }
        return result;
    }
    bool must_write = revision_of(rollout->annotations) != revision;
    set_revision(rollout->annotations, revision);
    if (is_ours && rollout->deadline_s >= 0) {
        sw_rollout_set_condition(rollout, rollout->status, "Progressing", SW_ROLLOUT_TRUE,
                                 "NewReplicaSetCreated", "Created new replica set \"%s\"", name);
        must_write = true;
    }
    return must_write ? sw_rollout_write(rollout) : 0;
}

int sw_rollout_find_current(struct sw_rollout *rollout, bool may_create)
{
    if (rollout->current)
        return sync_found(rollout);
    return may_create ? create_current(rollout) : 0;
}

/* ---- one look ---- */

static void read_sets(struct sw_rollout *rollout, const struct sw_sim_items *items)
{
    rollout->sets = sw_calloc(items->count + 1, sizeof(*rollout->sets));
    for (size_t i = 0; i < items->count; i++)
        rollout->sets[rollout->count++] = read_set(items->at[i]->object);
    qsort(rollout->sets, rollout->count, sizeof(*rollout->sets), by_age);
    rollout->current = find_template(rollout);
}

/* Both rounded towards more Pods; not both 0, or nothing would ever move. */
static void resolve_fenceposts(struct sw_rollout *rollout)
{
    const json_t *limits = sw_look_at(rollout->spec, "strategy", "rollingUpdate", NULL);
    rollout->surge =
        sw_look_scaled(json_object_get(limits, "maxSurge"), rollout->replicas, true, 0);
    rollout->unavailable =
        sw_look_scaled(json_object_get(limits, "maxUnavailable"), rollout->replicas, false, 0);
    if (!rollout->surge && !rollout->unavailable)
        rollout->unavailable = 1;
    rollout->unavailable = SW_MIN(rollout->unavailable, rollout->replicas);
}

static void read_rollout(struct sw_rollout *rollout)
{
    const json_t *spec = rollout->spec;
    const json_t *status = json_object_get(sw_sim_object_json(rollout->object), "status");
    const json_t *annotations = json_object_get(sw_look_meta(rollout->object), "annotations");
    rollout->status = status ? sw_look_copy(status) : json_object();
    rollout->annotations = annotations ? sw_look_copy(annotations) : json_object();
    rollout->generation = sw_look_generation(rollout->object);
    rollout->replicas = sw_look_int(spec, "replicas", 1);
    rollout->min_ready_s = sw_look_int(spec, "minReadySeconds", 0);
    rollout->deadline_s = sw_look_int(spec, "progressDeadlineSeconds", -1);
    rollout->history_limit = sw_look_int(spec, "revisionHistoryLimit", -1);
    if (rollout->deadline_s == INT32_MAX) /* means none */
        rollout->deadline_s = -1;
    if (rollout->history_limit == INT32_MAX)
        rollout->history_limit = -1;
    rollout->is_paused = sw_look_bool(spec, "paused", false);
    rollout->is_rolling =
        strcmp(sw_look_string(json_object_get(spec, "strategy"), "type"), "Recreate") != 0;
    if (rollout->is_rolling)
        resolve_fenceposts(rollout);
}

static int is_running(void *arg, struct sw_sim_item *item)
{
    (void)arg;
    return item->pod.phase != SW_SIM_FAILED && item->pod.phase != SW_SIM_SUCCEEDED;
}

/* Also those that are being deleted: Recreate waits until they are gone. */
static bool old_pods_run(const struct sw_rollout *rollout)
{
    const struct sw_sim_view *pods = rollout->workloads->views[SW_SIM_PODS];
    for (size_t i = 0; i < rollout->count; i++) {
        const struct sw_rollout_set *set = &rollout->sets[i];
        if (sw_rollout_is_old(rollout, set) &&
            (set->present > 0 ||
             sw_sim_view_each_controlled(pods, set->object->uid, is_running, NULL)))
            return true;
    }
    return false;
}

static int recreate(struct sw_rollout *rollout)
{
    int result = sw_rollout_find_current(rollout, false);
    bool did = false;
    for (size_t i = 0; i < rollout->count && !result; i++) {
        struct sw_rollout_set *set = &rollout->sets[i];
        if (!sw_rollout_is_old(rollout, set) || set->replicas == 0)
            continue;
        int64_t before = set->replicas;
        result = sw_rollout_resize(rollout, set, 0);
        set->replicas = before; /* the status counts what the view has */
        did = true;
    }
    if (result)
        return result;
    if (did || old_pods_run(rollout))
        return sw_rollout_tell(rollout, true);
    if (!rollout->current)
        result = sw_rollout_find_current(rollout, true);
    if (!result && rollout->current->replicas != rollout->replicas) {
        int64_t before = rollout->current->replicas;
        result = sw_rollout_resize(rollout, rollout->current, rollout->replicas);
        rollout->current->replicas = before;
    }
    if (!result && sw_rollout_is_complete(rollout, rollout->status))
        result = sw_rollout_clean(rollout);
    return result ? result : sw_rollout_tell(rollout, true);
}

static int roll(struct sw_rollout *rollout)
{
    int result = sw_rollout_find_current(rollout, true);
    bool did = false;
    if (!result)
        result = sw_rollout_step(rollout, &did);
    if (!result && !did && sw_rollout_is_complete(rollout, rollout->status))
        result = sw_rollout_clean(rollout);
    return result ? result : sw_rollout_tell(rollout, true);
}

static int scale(struct sw_rollout *rollout)
{
    int result = sw_rollout_find_current(rollout, false);
    if (!result)
        result = sw_rollout_scale(rollout);
    if (!result && rollout->is_paused)
        result = sw_rollout_clean(rollout);
    return result ? result : sw_rollout_tell(rollout, false);
}

static int look(struct sw_rollout *rollout)
{
    int result = 0;
    if (sw_look_is_deleted(rollout->object)) {
        result = sw_rollout_find_current(rollout, false);
        return result ? result : sw_rollout_tell(rollout, false);
    }
    result = sw_rollout_tell_paused(rollout);
    if (result)
        return result;
    if (rollout->is_paused)
        return scale(rollout);
    result = sw_rollout_find_current(rollout, false);
    if (result)
        return result;
    if (sw_rollout_is_scaling(rollout))
        return scale(rollout);
    return rollout->is_rolling ? roll(rollout) : recreate(rollout);
}

int sw_sim_sync_deployment(struct sw_sim_workloads *workloads, struct sw_sim_job *job,
                           const struct sw_sim_object *object)
{
    struct sw_rollout rollout = {
        .workloads = workloads,
        .job = job,
        .object = object,
        .spec = json_object_get(sw_sim_object_json(object), "spec"),
    };
    sw_sim_wake_no_more(job); /* this look says anew whether there is a deadline to wait for */
    struct sw_sim_items items;
    int result = sw_sim_claim(workloads, SW_SIM_REPLICA_SETS, object, NULL, &items);
    read_rollout(&rollout);
    read_sets(&rollout, &items);
    sw_sim_items_done(&items);
    if (!result)
        result = look(&rollout);
    for (size_t i = 0; i < rollout.count; i++)
        sw_sim_object_unref(rollout.sets[i].object);
    sw_free(rollout.sets);
    json_decref(rollout.status);
    json_decref(rollout.annotations);
    return result;
}
