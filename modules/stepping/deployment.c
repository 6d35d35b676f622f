/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deployments: the hand pauses and resumes; ours is only what goes with it.
 */
#include "target.h"

#include <string.h>

/* As their controller resolves them: surge up, unavailable down, and never both 0.
 * https://pkg.go.dev/k8s.io/kubectl/pkg/util/deployment#ResolveFenceposts */
static void resolve(const struct sw_deployment *deployment, struct step_target *target)
{
    const struct sw_int_or_percent quarter = {.value = 25, .is_percent = true, .is_set = true};
    struct sw_int_or_percent surge = deployment->max_surge,
                             unavailable = deployment->max_unavailable;
    int32_t replicas = deployment->replicas;

    target->surge = sw_int_or_percent_of(surge.is_set ? surge : quarter, replicas, true);
    target->unavailable =
        sw_int_or_percent_of(unavailable.is_set ? unavailable : quarter, replicas, false);
    if (target->surge == 0 && target->unavailable == 0)
        target->unavailable = 1;
    if (target->unavailable > replicas)
        target->unavailable = replicas;
}

/* Another policy than ours; a person is none. */
static bool names_another(const char *list)
{
    static const char ours[] = STEP_POLICY "/";

    while (*list) {
        size_t len = strcspn(list, ",");
        if (memchr(list, '/', len) && strncmp(list, ours, sizeof ours - 1) != 0)
            return true;
        list += len + (list[len] == ',');
        list += strspn(list, " ");
    }
    return false;
}

void step_deployment_target(const struct sw_deployment *deployment, const char *name,
                            struct sw_arena *arena, struct step_target *ret_target)
{
    const struct sw_object *object = &deployment->meta;
    const char *held = sw_annotation(object, SW_HELD_BY);
    const char *released = sw_annotation(object, SW_RELEASED_BY);
    const char *owner = step_owner(arena, name);
    bool is_paused = deployment->is_paused;

    ret_target->kind = STEP_DEPLOYMENT;
    sw_hash128_text(deployment->template_hash, ret_target->hash);
    ret_target->is_observed = deployment->observed_generation >= object->generation;
    ret_target->replicas = deployment->replicas;
    ret_target->status_replicas = deployment->status_replicas;
    ret_target->updated = deployment->updated_replicas;
    ret_target->ready = deployment->ready_replicas;
    ret_target->available = deployment->available_replicas;
    resolve(deployment, ret_target);
    ret_target->is_recreate = strcmp(deployment->strategy, "Recreate") == 0;
    ret_target->min_ready_seconds = deployment->min_ready_seconds;
    ret_target->progress_deadline_seconds = deployment->progress_deadline_seconds;
    ret_target->is_held = is_paused;
    ret_target->is_ours = held && step_list_has(held, owner);
    ret_target->is_users_pause = is_paused && !(held && held[0]);
    ret_target->is_shared = ret_target->is_ours && names_another(held);
    ret_target->is_released = released && step_list_has(released, owner);
    ret_target->has_saved = sw_annotation(object, SW_SAVED) != NULL;
    ret_target->is_raised =
        ret_target->has_saved && deployment->min_ready_seconds == STEP_RAISED_READY_SECONDS;
    ret_target->allowed = is_paused ? deployment->updated_replicas : deployment->replicas;
}

/* ---- deadMan ---- */

static int64_t raised_deadline(int64_t seconds)
{
    return seconds > STEP_RAISED_DEADLINE_SECONDS ? seconds : STEP_RAISED_DEADLINE_SECONDS;
}

static void set_saved(struct sw_json *patch, const char *text)
{
    struct sw_json *annotations =
        sw_json_set_object(sw_json_set_object(patch, "metadata"), "annotations");

    if (text)
        sw_json_set_string(annotations, SW_SAVED, text);
    else
        sw_json_set(annotations, SW_SAVED, NULL);
}

/* What is raised already keeps what was saved of it; what somebody has set since is what they want
 * now. */
struct sw_json *step_deployment_raise(const struct sw_deployment *deployment,
                                      struct sw_arena *arena)
{
    const struct sw_json *old = step_saved(&deployment->meta, arena);
    int64_t ready = deployment->min_ready_seconds, deadline = deployment->progress_deadline_seconds;

    if (ready == STEP_RAISED_READY_SECONDS && deadline >= STEP_RAISED_DEADLINE_SECONDS && old)
        return NULL;
    struct sw_json *saved = sw_json_object(arena);
    sw_json_set_int(saved, "minReadySeconds",
                    ready == STEP_RAISED_READY_SECONDS ? sw_json_get_int(old, "minReadySeconds", 0)
                                                       : ready);
    sw_json_set_int(saved, "progressDeadlineSeconds",
                    deadline == STEP_RAISED_DEADLINE_SECONDS
                        ? sw_json_get_int(old, "progressDeadlineSeconds", 600)
                        : deadline);
    struct sw_json *patch = sw_json_object(arena);
    set_saved(patch, sw_json_dump(saved, arena, NULL));
    struct sw_json *spec = sw_json_set_object(patch, "spec");
    sw_json_set_int(spec, "minReadySeconds", STEP_RAISED_READY_SECONDS);
    sw_json_set_int(spec, "progressDeadlineSeconds", raised_deadline(deadline));
    return patch;
}

struct sw_json *step_deployment_restore(const struct sw_deployment *deployment,
                                        struct sw_arena *arena)
{
    const struct sw_json *saved = step_saved(&deployment->meta, arena);
    struct sw_json *patch = sw_json_object(arena);

    if (!sw_annotation(&deployment->meta, SW_SAVED))
        return NULL;
    set_saved(patch, NULL);
    if (deployment->min_ready_seconds == STEP_RAISED_READY_SECONDS)
        sw_json_set_int(sw_json_set_object(patch, "spec"), "minReadySeconds",
                        sw_json_get_int(saved, "minReadySeconds", 0));
    if (deployment->progress_deadline_seconds == STEP_RAISED_DEADLINE_SECONDS)
        sw_json_set_int(sw_json_set_object(patch, "spec"), "progressDeadlineSeconds",
                        sw_json_get_int(saved, "progressDeadlineSeconds", 600));
    return patch;
}
