/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A status as a merge patch. Lists are replaced whole; a member that is absent but stored is
 * deleted by null.
 */
#include <slipway/json.h>
#include <slipway/time.h>

#include "plan.h"

static void set_time(struct sw_arena *arena, struct sw_json *object, const char *key, int64_t us)
{
    if (us)
        sw_json_set_string(object, key, sw_time_text(arena, us));
}

static void set_text(struct sw_json *object, const char *key, const char *text)
{
    if (text[0])
        sw_json_set_string(object, key, text);
}

static void append_entry(struct sw_arena *arena, struct sw_json *list,
                         const struct coord_entry *entry)
{
    struct sw_json *object = sw_json_append_object(list);

    sw_json_set_string(object, "name", entry->name);
    sw_json_set_bool(object, "hasPendingChanges", entry->has_pending_changes);
    sw_json_set_int(object, "generation", entry->generation);
    set_time(arena, object, "lastRolloutStarted", entry->started_us);
    set_time(arena, object, "lastRolloutFinished", entry->finished_us);
    set_time(arena, object, "pendingSince", entry->pending_since_us);
    if (entry->position >= 0)
        sw_json_set_int(object, "position", entry->position);
    set_text(object, "message", entry->message);
    set_text(object, "failedTemplate", entry->failed_template);
}

static void append_condition(struct sw_arena *arena, struct sw_json *list,
                             const struct sw_condition *condition)
{
    struct sw_json *object = sw_json_append_object(list);

    sw_json_set_string(object, "type", condition->type);
    sw_json_set_string(object, "status", condition->status);
    sw_json_set_string(object, "reason", condition->reason);
    sw_json_set_string(object, "message", condition->message);
    sw_json_set_string(object, "lastTransitionTime",
                       sw_time_text(arena, condition->last_transition_us));
    if (condition->observed_generation)
        sw_json_set_int(object, "observedGeneration", condition->observed_generation);
}

static void set_names(struct sw_json *object, const char *key, const char *const *names,
                      uint32_t count)
{
    struct sw_json *list = sw_json_set_array(object, key);

    for (uint32_t i = 0; i < count; i++)
        sw_json_append_string(list, names[i]);
}

static void set_facts(struct sw_arena *arena, struct sw_json *object,
                      const struct coord_status *status, const struct coordination *stored)
{
    if (status->active_count > 0)
        sw_json_set_string(object, "activeDeployment", status->active[0]);
    else if (stored->active_deployment[0])
        sw_json_set(object, "activeDeployment", NULL);
    set_names(object, "activeDeployments", status->active, status->active_count);
    set_names(object, "deployments", status->deployments, status->deployment_count);
    struct sw_json *entries = sw_json_set_array(object, "deploymentStates");
    for (uint32_t i = 0; i < status->entry_count; i++)
        append_entry(arena, entries, &status->entries[i]);
    sw_json_set_int(object, "selected", status->selected);
    sw_json_set_int(object, "pending", status->pending);
    if (status->is_truncated)
        sw_json_set_bool(object, "truncated", true);
    else if (stored->is_truncated)
        sw_json_set(object, "truncated", NULL);
    sw_json_set_int(object, "turn", status->turn);
    sw_json_set_int(object, "observedGeneration", status->observed_generation);
}

struct sw_json *coord_status_patch(struct sw_arena *arena, const struct coord_status *status,
                                   const struct coordination *stored)
{
    struct sw_json *patch = sw_json_object(arena);
    struct sw_json *object = sw_json_set_object(patch, "status");

    if (!status->has_conditions_only)
        set_facts(arena, object, status, stored);
    struct sw_json *conditions = sw_json_set_array(object, "conditions");
    for (uint32_t i = 0; i < status->condition_count; i++)
        append_condition(arena, conditions, &status->conditions[i]);
    return patch;
}
