/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status of a Deployment: its counts and its conditions, with the reasons and messages that
 * people and tools know.
 * https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#deployment-status
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "controllers.h"
#include "deployment.h"
#include "look.h"

/* ---- conditions ---- */

const json_t *sw_rollout_condition(const json_t *status, const char *type)
{
    return sw_look_element(json_object_get(status, "conditions"), "type", type);
}

static bool has_reason(const json_t *condition, const char *reason)
{
    return condition && strcmp(sw_look_string(condition, "reason"), reason) == 0;
}

static void remove_condition(json_t *status, const char *type)
{
    if (!sw_rollout_condition(status, type))
        return;
    json_t *rest = json_array();
    size_t at;
    json_t *one;
    json_array_foreach(json_object_get(status, "conditions"), at, one)
    {
        if (strcmp(sw_look_string(one, "type"), type) != 0)
            json_array_append(rest, one);
    }
    if (json_array_size(rest)) {
        json_object_set_new(status, "conditions", rest);
    } else {
        json_decref(rest);
        json_object_del(status, "conditions");
    }
}

/* In the place of the one of its type, which goes to the end. */
static void replace_condition(json_t *status, json_t *condition_take)
{
    remove_condition(status, sw_look_string(condition_take, "type"));
    const json_t *before = json_object_get(status, "conditions");
    json_t *conditions = before ? sw_look_copy(before) : json_array();
    json_array_append_new(conditions, condition_take);
    json_object_set_new(status, "conditions", conditions);
}

static json_t *make_condition(const struct sw_rollout *rollout, const json_t *before,
                              const char *type, const char *value, const char *reason,
                              const char *message)
{
    json_t *now = sw_look_time(sw_wall_us(rollout->workloads->loop));
    const json_t *since = json_object_get(before, "lastTransitionTime");
    bool is_same = since && strcmp(sw_look_string(before, "status"), value) == 0;
    json_t *condition =
        json_pack("{s:s, s:s, s:O, s:O, s:s, s:s}", "type", type, "status", value, "lastUpdateTime",
                  now, "lastTransitionTime", is_same ? sw_look_loose(since) : now, "reason", reason,
                  "message", message);
    json_decref(now);
    return condition;
}

static const char *text_of(enum sw_rollout_condition value)
{
    return value == SW_ROLLOUT_TRUE ? "True" : value == SW_ROLLOUT_FALSE ? "False" : "Unknown";
}

void sw_rollout_set_condition(const struct sw_rollout *rollout, json_t *status, const char *type,
                              enum sw_rollout_condition value, const char *reason,
                              const char *format, ...)
{
    const json_t *before = sw_rollout_condition(status, type);
    if (has_reason(before, reason) && strcmp(sw_look_string(before, "status"), text_of(value)) == 0)
        return;
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    replace_condition(status,
                      make_condition(rollout, before, type, text_of(value), reason, message));
}

int sw_rollout_tell_paused(struct sw_rollout *rollout)
{
    const json_t *before = sw_rollout_condition(rollout->status, "Progressing");
    bool was_paused = has_reason(before, "DeploymentPaused");
    if (rollout->deadline_s < 0 || has_reason(before, "ProgressDeadlineExceeded") ||
        was_paused == rollout->is_paused)
        return 0;
    if (rollout->is_paused)
        sw_rollout_set_condition(rollout, rollout->status, "Progressing", SW_ROLLOUT_MAYBE,
                                 "DeploymentPaused", "Deployment is paused");
    else
        sw_rollout_set_condition(rollout, rollout->status, "Progressing", SW_ROLLOUT_MAYBE,
                                 "DeploymentResumed", "Deployment is resumed");
    return sw_rollout_write(rollout);
}

/* ---- counts ---- */

static json_t *count(const struct sw_rollout *rollout)
{
    int64_t present = 0, ready = 0, available = 0;
    for (size_t i = 0; i < rollout->count; i++) {
        present += rollout->sets[i].present;
        ready += rollout->sets[i].ready;
        available += rollout->sets[i].available;
    }
    int64_t missing = sw_rollout_wanted(rollout) - available;
    json_t *status = sw_look_copy(rollout->status);
    sw_look_set_count(status, "observedGeneration", rollout->generation);
    sw_look_set_count(status, "replicas", present);
    sw_look_set_count(status, "updatedReplicas", rollout->current ? rollout->current->present : 0);
    sw_look_set_count(status, "readyReplicas", ready);
    sw_look_set_count(status, "availableReplicas", available);
    sw_look_set_count(status, "unavailableReplicas", SW_MAX(missing, 0));
    if (available >= rollout->replicas - rollout->unavailable)
        sw_rollout_set_condition(rollout, status, "Available", SW_ROLLOUT_TRUE,
                                 "MinimumReplicasAvailable",
                                 "Deployment has minimum availability.");
    else
        sw_rollout_set_condition(rollout, status, "Available", SW_ROLLOUT_FALSE,
                                 "MinimumReplicasUnavailable",
                                 "Deployment does not have minimum availability.");
    return status;
}

/* ---- progress ---- */

bool sw_rollout_is_complete(const struct sw_rollout *rollout, const json_t *status)
{
    return sw_look_int(status, "updatedReplicas", 0) == rollout->replicas &&
           sw_look_int(status, "replicas", 0) == rollout->replicas &&
           sw_look_int(status, "availableReplicas", 0) == rollout->replicas &&
           sw_look_int(status, "observedGeneration", 0) >= rollout->generation;
}

static int64_t gained(const json_t *before, const json_t *after, const char *key)
{
    return sw_look_int(after, key, 0) - sw_look_int(before, key, 0);
}

static bool is_progressing(const json_t *before, const json_t *after)
{
    int64_t updated = gained(before, after, "updatedReplicas");
    return updated > 0 || gained(before, after, "replicas") < updated ||
           gained(before, after, "readyReplicas") > 0 ||
           gained(before, after, "availableReplicas") > 0;
}

static int64_t deadline_us(const struct sw_rollout *rollout, const json_t *condition)
{
    return sw_look_time_us(condition, "lastUpdateTime") + rollout->deadline_s * 1000000;
}

static bool is_late(const struct sw_rollout *rollout, const json_t *condition)
{
    if (!condition || has_reason(condition, "NewReplicaSetAvailable"))
        return false;
    return has_reason(condition, "ProgressDeadlineExceeded") ||
           deadline_us(rollout, condition) < sw_wall_us(rollout->workloads->loop);
}

/* "ReplicaSet "web-abc" is progressing." */
static char *progress_text(const struct sw_rollout *rollout, const char *what)
{
    if (rollout->current)
        return sw_asprintf("ReplicaSet \"%s\" %s", rollout->current->object->name, what);
    return sw_asprintf("Deployment \"%s\" %s", rollout->object->name, what);
}

static void tell_progress(const struct sw_rollout *rollout, json_t *status)
{
    const json_t *before = sw_rollout_condition(rollout->status, "Progressing");
    if (sw_rollout_is_complete(rollout, status)) {
        SW_AUTO(char, sw_free) text = progress_text(rollout, "has successfully progressed.");
        sw_rollout_set_condition(rollout, status, "Progressing", SW_ROLLOUT_TRUE,
                                 "NewReplicaSetAvailable", "%s", text);
    } else if (is_progressing(rollout->status, status)) {
        /* Also where it says so already: its lastUpdateTime is what the deadline counts from. */
        SW_AUTO(char, sw_free) text = progress_text(rollout, "is progressing.");
        replace_condition(status, make_condition(rollout, before, "Progressing", "True",
                                                 "ReplicaSetUpdated", text));
    } else if (is_late(rollout, before)) {
        SW_AUTO(char, sw_free) text = progress_text(rollout, "has timed out progressing.");
        sw_rollout_set_condition(rollout, status, "Progressing", SW_ROLLOUT_FALSE,
                                 "ProgressDeadlineExceeded", "%s", text);
    }
}

/* Pods that cannot be made are the Deployment's trouble too; the current ReplicaSet's first. */
static const json_t *find_failure(const struct sw_rollout *rollout)
{
    const json_t *found = NULL;
    for (size_t i = 0; i < rollout->count; i++) {
        const struct sw_rollout_set *set = &rollout->sets[i];
        const json_t *one = sw_rollout_condition(
            json_object_get(sw_sim_object_json(set->object), "status"), "ReplicaFailure");
        if (one && (!found || !sw_rollout_is_old(rollout, set)))
            found = one;
    }
    return found;
}

static void tell_failure(const struct sw_rollout *rollout, json_t *status)
{
    const json_t *failure = find_failure(rollout);
    if (!failure) {
        remove_condition(status, "ReplicaFailure");
        return;
    }
    const json_t *before = sw_rollout_condition(status, "ReplicaFailure");
    if (before && has_reason(before, sw_look_string(failure, "reason")))
        return;
    json_t *condition = sw_look_copy(failure);
    json_object_set(condition, "lastUpdateTime", json_object_get(failure, "lastTransitionTime"));
    replace_condition(status, condition);
}

/* Nothing will happen by itself when the deadline passes. A second more, since the time in the
 * condition has no fraction. */
static void wait_for_deadline(const struct sw_rollout *rollout, const json_t *status)
{
    const json_t *condition = sw_rollout_condition(rollout->status, "Progressing");
    if (rollout->deadline_s < 0 || !condition || sw_rollout_is_complete(rollout, status) ||
        has_reason(condition, "ProgressDeadlineExceeded"))
        return;
    int64_t left_us = deadline_us(rollout, condition) - sw_wall_us(rollout->workloads->loop);
    uint64_t wait_ms = left_us < 0 ? 1000 : (uint64_t)left_us / 1000 + 1000;
    sw_sim_wake_after(rollout->workloads, SW_SIM_DEPLOYMENTS, rollout->object->namespace_,
                      rollout->object->name, wait_ms);
}

int sw_rollout_tell(struct sw_rollout *rollout, bool with_progress)
{
    json_t *status = count(rollout);
    if (with_progress) {
        const json_t *before = sw_rollout_condition(rollout->status, "Progressing");
        bool is_done =
            sw_look_int(status, "replicas", 0) == sw_look_int(status, "updatedReplicas", 0) &&
            has_reason(before, "NewReplicaSetAvailable");
        if (rollout->deadline_s < 0)
            remove_condition(status, "Progressing");
        else if (!is_done)
            tell_progress(rollout, status);
        tell_failure(rollout, status);
    }
    if (json_equal(status, rollout->status)) {
        if (with_progress)
            wait_for_deadline(rollout, status);
        json_decref(status);
        return 0;
    }
    json_decref(rollout->status);
    rollout->status = status;
    return sw_rollout_write(rollout);
}
