/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a template is to a SteppedRollout, and what it was doing with it, by the status alone: the
 * arbiter and the plan ask the same questions.
 */
#ifndef SW_STEPPING_MODE_H
#define SW_STEPPING_MODE_H

#include "plan.h"

enum step_mode {
    STEP_MODE_UNKNOWN,    /* nothing was ever promoted */
    STEP_MODE_REST,       /* the promoted template */
    STEP_MODE_QUARANTINE, /* the one that failed */
    STEP_MODE_UNDERWAY,   /* the one that is rolled out in steps */
    STEP_MODE_NEW,        /* one that the status does not know yet */
};

enum step_activity {
    STEP_IDLE, /* "" or what is not known */
    STEP_QUESTIONS,
    STEP_ADVANCING,
    STEP_ANALYSING,
    STEP_PROMOTING,
    STEP_POST_QUESTIONS, /* post-rollout webhooks are told */
    STEP_RETREATING,
    STEP_RETREATED,
    STEP_ROLLING_BACK,
    STEP_ROLLED_BACK,
    STEP_HELD, /* failed, and held where it is */
};

enum step_activity step_activity_of(const struct stepped *object);
const char *step_activity_text(enum step_activity activity);
/* A target that was made after the last change of the phase is another one of the same name:
 * nothing is known of it. */
enum step_mode step_mode_of(const struct stepped *object, const struct step_target *target);

/* Pods that may be updated now; in mode UNDERWAY. */
int32_t step_stop_now(const struct stepped *object, const struct step_spec *spec,
                      const struct step_target *target);
/* Advancing, and its step is there (or is none any more since the target was scaled). */
bool step_is_reached(const struct stepped *object, const struct step_spec *spec,
                     const struct step_target *target);
/* deadMan counts for what it is doing now: all but the last stretch of a Deployment. */
bool step_is_raising(const struct stepped *object, const struct step_target *target);
/* deadMan: Pods of the batch before are not available yet, and must be before the next one. */
bool step_is_between_batches(const struct stepped *object, const struct step_target *target);
/* deadMan: others may not release it, for they would not raise anything: before the first Pod it is
 * raised while it is held, if they hold it; later ones are released by us alone. But where another
 * policy holds it too, each would wait for the other: it may release, and its write is raised at
 * admission (opinion.c), or by us right behind it. */
bool step_waits_for_raise(const struct stepped *object, const struct step_target *target);
/* Nothing is to be done any more by its controller. */
bool step_is_complete(const struct step_target *target);
/* Why it has no steps at all; NULL: it has. */
const char *step_is_unsteppable(const struct step_target *target);

#endif
