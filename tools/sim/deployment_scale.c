/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many Pods each ReplicaSet of a Deployment is to have: one step of a rollout, the proportions
 * when the Deployment is scaled in the middle of one or while it is paused, and which ReplicaSets
 * are old enough to go.
 * https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#proportional-scaling
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "base/util.h"
#include "controllers.h"
#include "deployment.h"
#include "look.h"

/* ---- one ReplicaSet ---- */

static bool annotate_one(json_t *annotations, const char *key, int64_t value)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRId64, value);
    if (strcmp(sw_look_string(annotations, key), text) == 0)
        return false;
    json_object_set_new(annotations, key, json_string(text));
    return true;
}

bool sw_rollout_annotate(const struct sw_rollout *rollout, json_t *annotations)
{
    bool desired = annotate_one(annotations, SW_DEPLOYMENT_DESIRED, rollout->replicas);
    bool max = annotate_one(annotations, SW_DEPLOYMENT_MAX, rollout->replicas + rollout->surge);
    return desired || max;
}

void sw_rollout_record(const struct sw_rollout *rollout, const struct sw_rollout_set *set,
                       bool is_up, int64_t replicas)
{
    sw_sim_record(rollout->workloads->recorder, rollout->object, "deployment-controller",
                  "ScalingReplicaSet", "Scaled %s replica set %s to %" PRId64,
                  is_up ? "up" : "down", set->object->name, replicas);
}

int sw_rollout_resize(struct sw_rollout *rollout, struct sw_rollout_set *set, int64_t replicas)
{
    json_t *json = sw_look_copy(sw_sim_object_json(set->object));
    bool differs =
        sw_rollout_annotate(rollout, sw_look_own(sw_look_own(json, "metadata"), "annotations"));
    if (!differs && set->replicas == replicas) {
        json_decref(json);
        return 0;
    }
    json_object_set_new(sw_look_own(json, "spec"), "replicas", json_integer(replicas));
    int result = sw_sim_update(rollout->workloads->api, set->object->kind, json);
    if (result)
        return result;
    const struct sw_sim_object *now = sw_sim_store_get(rollout->workloads->store, set->object->kind,
                                                       set->object->namespace_, set->object->name);
    sw_assert(now); /* it was written just now */
    const struct sw_sim_object *before = set->object;
    set->object = sw_sim_object_ref(now);
    sw_sim_object_unref(before);
    if (set->replicas != replicas)
        sw_rollout_record(rollout, set, set->replicas < replicas, replicas);
    set->replicas = replicas;
    return 0;
}

/* Changes the ReplicaSet, but not what this look counts: the status is of what the view has. */
static int resize_unseen(struct sw_rollout *rollout, struct sw_rollout_set *set, int64_t replicas)
{
    int64_t before = set->replicas;
    if (before == replicas)
        return 0;
    int result = sw_rollout_resize(rollout, set, replicas);
    set->replicas = before;
    return result;
}

int64_t sw_rollout_new_size(const struct sw_rollout *rollout, int64_t size)
{
    if (!rollout->is_rolling)
        return rollout->replicas;
    int64_t room = rollout->replicas + rollout->surge - sw_rollout_wanted(rollout);
    if (room <= 0)
        return size;
    return size + SW_MIN(room, rollout->replicas - size);
}

/* ---- scaling ---- */

bool sw_rollout_is_scaling(const struct sw_rollout *rollout)
{
    for (size_t i = 0; i < rollout->count; i++) {
        const struct sw_rollout_set *set = &rollout->sets[i];
        const char *text = sw_look_string(json_object_get(sw_look_meta(set->object), "annotations"),
                                          SW_DEPLOYMENT_DESIRED);
        if (set->replicas > 0 && *text && strtoll(text, NULL, 10) != rollout->replicas)
            return true;
    }
    return false;
}

/* The one to give everything to: the only one that has Pods, or, where none has, the current or
 * the newest. NULL: there are several. */
static struct sw_rollout_set *sole(const struct sw_rollout *rollout)
{
    struct sw_rollout_set *found = NULL;
    for (size_t i = 0; i < rollout->count; i++) {
        if (rollout->sets[i].replicas > 0) {
            if (found)
                return NULL;
            found = &rollout->sets[i];
        }
    }
    if (found || !rollout->count)
        return found;
    return rollout->current ? rollout->current : &rollout->sets[rollout->count - 1];
}

static bool is_saturated(const struct sw_rollout *rollout)
{
    const struct sw_rollout_set *set = rollout->current;
    if (!set)
        return false;
    const char *text = sw_look_string(json_object_get(sw_look_meta(set->object), "annotations"),
                                      SW_DEPLOYMENT_DESIRED);
    return *text && strtoll(text, NULL, 10) == rollout->replicas &&
           set->replicas == rollout->replicas && set->available == rollout->replicas;
}

/* From the largest; among equal ones the newer first when there is more to give, the older first
 * when there is less. */
static int by_size_newer(const void *left, const void *right)
{
    const struct sw_rollout_set *a = *(struct sw_rollout_set *const *)left;
    const struct sw_rollout_set *b = *(struct sw_rollout_set *const *)right;
    if (a->replicas != b->replicas)
        return a->replicas > b->replicas ? -1 : 1;
    if (a->created_us != b->created_us)
        return a->created_us > b->created_us ? -1 : 1;
    return strcmp(b->object->name, a->object->name);
}

static int by_size_older(const void *left, const void *right)
{
    const struct sw_rollout_set *a = *(struct sw_rollout_set *const *)left;
    const struct sw_rollout_set *b = *(struct sw_rollout_set *const *)right;
    if (a->replicas != b->replicas)
        return a->replicas > b->replicas ? -1 : 1;
    return by_size_newer(right, left);
}

/* What the ReplicaSet gets (or loses) so that its part of the whole stays the same. */
static int64_t share_of(const struct sw_rollout *rollout, const struct sw_rollout_set *set,
                        int64_t to_add, int64_t added)
{
    if (set->replicas == 0 || to_add == 0 || to_add == added)
        return 0;
    int64_t part = -set->replicas;
    if (rollout->replicas) {
        const char *text = sw_look_string(json_object_get(sw_look_meta(set->object), "annotations"),
                                          SW_DEPLOYMENT_MAX);
        int64_t known =
            *text ? strtoll(text, NULL, 10) : sw_look_int(rollout->status, "replicas", 0);
        int64_t whole = rollout->replicas + rollout->surge;
        part = known
                   ? (int64_t)round((double)(set->replicas * whole) / (double)known) - set->replicas
                   : 0;
    }
    int64_t left = to_add - added;
    return to_add > 0 ? SW_MIN(part, left) : SW_MAX(part, left);
}

static int scale_in_proportion(struct sw_rollout *rollout)
{
    struct sw_rollout_set **sets = sw_calloc(rollout->count + 1, sizeof(*sets));
    int64_t *sizes = sw_calloc(rollout->count + 1, sizeof(*sizes));
    size_t count = 0;
    for (size_t i = 0; i < rollout->count; i++) {
        if (rollout->sets[i].replicas > 0)
            sets[count++] = &rollout->sets[i];
    }
    int64_t allowed = rollout->replicas ? rollout->replicas + rollout->surge : 0;
    int64_t to_add = allowed - sw_rollout_wanted(rollout), added = 0;
    if (to_add)
        qsort(sets, count, sizeof(struct sw_rollout_set *),
              to_add > 0 ? by_size_newer : by_size_older);
    for (size_t i = 0; i < count; i++) {
        int64_t part = share_of(rollout, sets[i], to_add, added);
        sizes[i] = sets[i]->replicas + part;
        added += part;
    }
    /* What rounding leaves is the largest one's. */
    sizes[0] = SW_MAX(sizes[0] + to_add - added, 0);
    int result = 0;
    for (size_t i = 0; i < count && !result; i++) {
        int64_t before = sets[i]->replicas;
        result = sw_rollout_resize(rollout, sets[i], sizes[i]);
        sets[i]->replicas = before;
    }
    sw_free(sizes);
    sw_free(sets);
    return result;
}

int sw_rollout_scale(struct sw_rollout *rollout)
{
    struct sw_rollout_set *only = sole(rollout);
    if (only)
        return resize_unseen(rollout, only, rollout->replicas);
    if (!rollout->count)
        return 0;
    if (!is_saturated(rollout))
        return rollout->is_rolling ? scale_in_proportion(rollout) : 0;
    int result = 0;
    for (size_t i = 0; i < rollout->count && !result; i++) {
        if (sw_rollout_is_old(rollout, &rollout->sets[i]))
            result = resize_unseen(rollout, &rollout->sets[i], 0);
    }
    return result;
}

/* ---- rolling ---- */

static int grow_current(struct sw_rollout *rollout, bool *ret_did)
{
    struct sw_rollout_set *set = rollout->current;
    if (set->replicas == rollout->replicas)
        return 0;
    int64_t size = set->replicas > rollout->replicas ? rollout->replicas
                                                     : sw_rollout_new_size(rollout, set->replicas);
    *ret_did = size != set->replicas;
    return resize_unseen(rollout, set, size);
}

/* Takes from the old ReplicaSets, from the oldest on, up to limit Pods: of those that are not
 * available, or of any. */
static int shrink_old(struct sw_rollout *rollout, int64_t limit, bool only_unavailable,
                      bool *ret_did)
{
    int64_t taken = 0;
    for (size_t i = 0; i < rollout->count && taken < limit; i++) {
        struct sw_rollout_set *set = &rollout->sets[i];
        int64_t most = only_unavailable ? set->replicas - set->available : set->replicas;
        if (!sw_rollout_is_old(rollout, set) || set->replicas == 0 || most == 0)
            continue;
        if (most < 0) /* its status is of before it was made smaller: too early to tell */
            return -EAGAIN;
        int64_t part = SW_MIN(most, limit - taken);
        int result = sw_rollout_resize(rollout, set, set->replicas - part);
        if (result)
            return result;
        taken += part;
        *ret_did = true;
    }
    return 0;
}

static int64_t sum_available(const struct sw_rollout *rollout)
{
    int64_t sum = 0;
    for (size_t i = 0; i < rollout->count; i++)
        sum += rollout->sets[i].available;
    return sum;
}

static int64_t sum_old(const struct sw_rollout *rollout)
{
    return sw_rollout_wanted(rollout) - rollout->current->replicas;
}

/*
 * Pods that are not available anyway go first, as far as the new ones that are not yet available
 * leave room; then as many as there are available beyond the minimum.
 */
static int shrink(struct sw_rollout *rollout, bool *ret_did)
{
    if (sum_old(rollout) == 0)
        return 0;
    int64_t minimum = rollout->replicas - rollout->unavailable;
    int64_t coming = rollout->current->replicas - rollout->current->available;
    int64_t surplus = sw_rollout_wanted(rollout) - minimum - coming;
    if (surplus <= 0)
        return 0;
    /* The status of this look is of what the view has. */
    int64_t *before = sw_calloc(rollout->count, sizeof(*before));
    for (size_t i = 0; i < rollout->count; i++)
        before[i] = rollout->sets[i].replicas;
    int result = shrink_old(rollout, surplus, true, ret_did);
    if (!result)
        result = shrink_old(rollout, sum_available(rollout) - minimum, false, ret_did);
    for (size_t i = 0; i < rollout->count; i++)
        rollout->sets[i].replicas = before[i];
    sw_free(before);
    if (result)
        *ret_did = false; /* the real one goes on to its status; a newer look comes anyway */
    return 0;
}

int sw_rollout_step(struct sw_rollout *rollout, bool *ret_did)
{
    int result = grow_current(rollout, ret_did);
    return result || *ret_did ? result : shrink(rollout, ret_did);
}

/* ---- history ---- */

static bool is_idle(const struct sw_rollout_set *set)
{
    return set->present == 0 && set->replicas == 0 &&
           sw_look_int(json_object_get(sw_sim_object_json(set->object), "status"),
                       "observedGeneration", 0) >= sw_look_generation(set->object);
}

int sw_rollout_clean(struct sw_rollout *rollout)
{
    if (rollout->history_limit < 0)
        return 0;
    int64_t surplus = -rollout->history_limit;
    for (size_t i = 0; i < rollout->count; i++) {
        const struct sw_rollout_set *set = &rollout->sets[i];
        surplus += sw_rollout_is_old(rollout, set) && !sw_look_is_deleted(set->object);
    }
    for (size_t i = 0; i < rollout->count && surplus > 0; i++) {
        const struct sw_rollout_set *set = &rollout->sets[i];
        if (!sw_rollout_is_old(rollout, set) || sw_look_is_deleted(set->object))
            continue;
        surplus--; /* one that is busy still counts: younger ones do not go in its place */
        if (!is_idle(set))
            continue;
        int result = sw_sim_delete(rollout->workloads->api, set->object, -1, "Background");
        if (result && result != -ENOENT)
            return result;
    }
    return 0;
}
