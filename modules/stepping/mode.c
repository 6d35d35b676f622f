/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of activities, and what follows from status and target without any memory.
 */
#include "mode.h"

#include <string.h>

static const char *const texts[] = {
    [STEP_IDLE] = "",
    [STEP_QUESTIONS] = "Questions",
    [STEP_ADVANCING] = "Advancing",
    [STEP_ANALYSING] = "Analysing",
    [STEP_PROMOTING] = "Promoting",
    [STEP_POST_QUESTIONS] = "PostRollout",
    [STEP_RETREATING] = "Retreating",
    [STEP_RETREATED] = "Retreated",
    [STEP_ROLLING_BACK] = "RollingBack",
    [STEP_ROLLED_BACK] = "RolledBack",
    [STEP_HELD] = "Held",
};

enum step_activity step_activity_of(const struct stepped *object)
{
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (strcmp(texts[i], object->activity) == 0)
            return (enum step_activity)i;
    return STEP_IDLE;
}

const char *step_activity_text(enum step_activity activity)
{
    return texts[activity];
}

static bool is_under_way(enum step_activity activity)
{
    return activity >= STEP_QUESTIONS && activity <= STEP_PROMOTING;
}

enum step_mode step_mode_of(const struct stepped *object, const struct step_target *target)
{
    const char *hash = target->hash;

    if (!object->last_promoted_hash[0] || target->object->created_us > object->last_transition_us)
        return STEP_MODE_UNKNOWN;
    if (strcmp(hash, object->last_promoted_hash) == 0)
        return STEP_MODE_REST;
    if (strcmp(hash, object->failed_hash) == 0)
        return STEP_MODE_QUARANTINE;
    if (strcmp(hash, object->last_applied_hash) == 0 && is_under_way(step_activity_of(object)))
        return STEP_MODE_UNDERWAY;
    return STEP_MODE_NEW;
}

int32_t step_stop_now(const struct stepped *object, const struct step_spec *spec,
                      const struct step_target *target)
{
    switch (step_activity_of(object)) {
    case STEP_ADVANCING:
    case STEP_ANALYSING:
        return step_stop(spec, target->replicas, object->current_step);
    case STEP_PROMOTING:
        return target->replicas;
    default:
        return 0;
    }
}

bool step_is_reached(const struct stepped *object, const struct step_spec *spec,
                     const struct step_target *target)
{
    if (object->current_step >= step_stop_count(spec, target->replicas))
        return true;
    return target->updated >= step_stop_now(object, spec, target);
}

bool step_is_raising(const struct stepped *object, const struct step_target *target)
{
    return object->has_dead_man && target->kind == STEP_DEPLOYMENT &&
           step_activity_of(object) == STEP_ADVANCING;
}

bool step_is_between_batches(const struct stepped *object, const struct step_target *target)
{
    return step_is_raising(object, target) && target->is_held && target->updated > 0 &&
           (target->is_raised || target->available < target->status_replicas);
}

bool step_waits_for_raise(const struct stepped *object, const struct step_target *target)
{
    return step_is_raising(object, target) && target->is_held &&
           (target->updated > 0 ? !target->is_shared : !target->is_raised);
}

bool step_is_complete(const struct step_target *t)
{
    return t->is_observed && t->updated == t->replicas && t->status_replicas == t->replicas &&
           t->available >= t->replicas &&
           !(t->kind == STEP_DEPLOYMENT && t->replicas == 0 && t->is_held);
}

const char *step_is_unsteppable(const struct step_target *target)
{
    if (target->is_recreate)
        return target->kind == STEP_DEPLOYMENT
                   ? "strategy Recreate replaces all Pods at once: it has no steps"
                   : "updateStrategy OnDelete leaves updates to its user: it has no steps";
    if (target->kind == STEP_DEPLOYMENT && target->replicas > 0 &&
        (int64_t)target->surge + target->unavailable >= target->replicas)
        return "maxSurge plus maxUnavailable is all of it: it has no steps";
    return NULL;
}
