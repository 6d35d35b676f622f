/* SPDX-License-Identifier: Apache-2.0 */
/*
 * StatefulSets: Pods from ordinal `partition` on get the new template, exactly. Their controller
 * counts and stops by itself: what is not released stays where it is without us.
 * https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#partitions
 */
#include "target.h"

#include <string.h>

int32_t step_partition(int32_t replicas, int32_t stop)
{
    return stop >= replicas ? 0 : replicas - stop;
}

static bool is_on_delete(const char *type)
{
    return type && strcmp(type, "OnDelete") == 0;
}

void step_stateful_set_target(const struct sw_stateful_set *set, const char *name,
                              struct sw_arena *arena, struct step_target *ret_target)
{
    const struct sw_object *object = &set->meta;
    const struct sw_json *saved = step_saved(object, arena);
    const struct sw_json *own = sw_json_at(saved, "updateStrategy", NULL);
    const char *mark = sw_annotation(object, SW_STEPPED_BY);
    const char *released = sw_annotation(object, SW_RELEASED_BY);
    int32_t unavailable = sw_int_or_percent_of(set->max_unavailable, set->replicas, false);

    ret_target->kind = STEP_STATEFUL_SET;
    sw_hash128_text(set->template_hash, ret_target->hash);
    ret_target->is_observed = set->observed_generation >= object->generation;
    ret_target->replicas = set->replicas;
    ret_target->status_replicas = set->status_replicas;
    ret_target->updated = set->updated_replicas;
    ret_target->ready = set->ready_replicas;
    /* Before 1.22 there is neither minReadySeconds nor availableReplicas. */
    ret_target->available =
        set->min_ready_seconds > 0 ? set->available_replicas : set->ready_replicas;
    ret_target->unavailable = unavailable > 1 ? unavailable : 1;
    ret_target->min_ready_seconds = set->min_ready_seconds;
    ret_target->has_saved = sw_annotation(object, SW_SAVED) != NULL;
    ret_target->is_ours = ret_target->has_saved && mark && strcmp(mark, name) == 0;
    ret_target->is_recreate = is_on_delete(saved ? sw_json_get_string(own, "type") : set->strategy);
    ret_target->allowed = set->partition < set->replicas ? set->replicas - set->partition : 0;
    ret_target->is_held =
        ret_target->is_ours && set->partition > 0 && ret_target->allowed <= set->updated_replicas;
    ret_target->is_released = released && step_list_has(released, step_owner(arena, name));
}

static void set_strategy(struct sw_json **patch, struct sw_json *strategy, struct sw_arena *arena)
{
    if (!*patch)
        *patch = sw_json_object(arena);
    sw_json_set(sw_json_set_object(*patch, "spec"), "updateStrategy", strategy);
}

static struct sw_json *with_partition(int32_t partition, struct sw_arena *arena)
{
    struct sw_json *strategy = sw_json_object(arena);

    sw_json_set_string(strategy, "type", "RollingUpdate");
    sw_json_set_int(sw_json_set_object(strategy, "rollingUpdate"), "partition", partition);
    return strategy;
}

struct sw_json *step_stateful_set_patch(const struct sw_stateful_set *set,
                                        const struct step_grip *grip, struct sw_arena *arena)
{
    struct sw_json *patch = NULL;
    const char *saved = NULL;

    if (grip->type == STEP_GRIP_NONE) {
        struct sw_json *strategy = step_restored_strategy(&set->meta, arena);
        if (strategy)
            set_strategy(&patch, strategy, arena);
    } else {
        saved = step_saved_strategy(&set->meta, &set->update_strategy, arena);
        if (is_on_delete(set->strategy) || set->partition != grip->partition)
            set_strategy(&patch, with_partition(grip->partition, arena), arena);
    }
    step_grip_annotations(&set->meta, grip, saved, &patch, arena);
    return patch;
}
