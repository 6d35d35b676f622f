/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DaemonSets: with OnDelete their controller replaces only what somebody deletes, so each Pod that
 * goes is ours to choose.
 * https://kubernetes.io/docs/tasks/manage-daemon/update-daemon-set/#daemonset-update-strategy
 */
#include "target.h"

#include <stdlib.h>
#include <string.h>

/* "3" or "25%" of so many, as the DaemonSet controller rounds: up. At least 1, also where it is not
 * a number. */
static int32_t at_once(const struct sw_object *object, int32_t desired)
{
    const char *text = sw_annotation(object, STEP_MAX_UNAVAILABLE);
    char *end;

    if (!text)
        return 1;
    long value = strtol(text, &end, 10);
    if (end == text || value < 1)
        return 1;
    if (strcmp(end, "%") == 0)
        value = ((value < 100 ? value : 100) * desired + 99) / 100;
    else if (*end)
        return 1;
    if (value > desired)
        value = desired;
    return value < 1 ? 1 : (int32_t)value;
}

static bool is_on_delete(const struct sw_daemon_set *set)
{
    return strcmp(set->strategy, "OnDelete") == 0;
}

/* By its owner's wish, whatever stands there while it is held. */
static bool is_its_owners_business(const struct sw_daemon_set *set, struct sw_arena *arena)
{
    const struct sw_json *saved = step_saved(&set->meta, arena);
    const char *type = sw_json_get_string(sw_json_at(saved, "updateStrategy", NULL), "type");

    if (!sw_annotation(&set->meta, SW_SAVED))
        return is_on_delete(set);
    return type && strcmp(type, "OnDelete") == 0;
}

void step_daemon_set_target(const struct sw_daemon_set *set, const char *name,
                            struct sw_arena *arena, struct step_target *ret_target)
{
    const struct sw_object *object = &set->meta;
    const char *mark = sw_annotation(object, SW_STEPPED_BY);
    const char *released = sw_annotation(object, SW_RELEASED_BY);

    ret_target->kind = STEP_DAEMON_SET;
    sw_hash128_text(set->template_hash, ret_target->hash);
    ret_target->is_observed = set->observed_generation >= object->generation;
    ret_target->replicas = set->desired;
    ret_target->status_replicas = set->current;
    ret_target->updated = set->updated;
    ret_target->ready = set->ready;
    ret_target->available = set->available;
    ret_target->unavailable = at_once(object, set->desired);
    ret_target->min_ready_seconds = set->min_ready_seconds;
    ret_target->has_saved = sw_annotation(object, SW_SAVED) != NULL;
    ret_target->is_ours =
        ret_target->has_saved && is_on_delete(set) && mark && strcmp(mark, name) == 0;
    ret_target->is_held = ret_target->is_ours;
    ret_target->is_recreate = is_its_owners_business(set, arena);
    ret_target->is_released = released && step_list_has(released, step_owner(arena, name));
    ret_target->allowed = is_on_delete(set) ? set->updated : set->desired;
}

struct sw_json *step_daemon_set_patch(const struct sw_daemon_set *set, const struct step_grip *grip,
                                      struct sw_arena *arena)
{
    struct sw_json *patch = NULL, *strategy = NULL;
    const char *saved = NULL;

    if (grip->type == STEP_GRIP_NONE) {
        strategy = step_restored_strategy(&set->meta, arena);
    } else {
        saved = step_saved_strategy(&set->meta, &set->update_strategy, arena);
        if (!is_on_delete(set)) {
            strategy = sw_json_object(arena);
            sw_json_set_string(strategy, "type", "OnDelete");
            sw_json_set(strategy, "rollingUpdate", NULL);
        }
    }
    if (strategy) {
        patch = sw_json_object(arena);
        sw_json_set(sw_json_set_object(patch, "spec"), "updateStrategy", strategy);
    }
    step_grip_annotations(&set->meta, grip, saved, &patch, arena);
    return patch;
}
