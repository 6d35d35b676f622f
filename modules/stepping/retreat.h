/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The retreat in place: which bite comes next, so that a paused Deployment's controller, which
 * keeps the total at replicas plus surge by adding to and taking from the largest ReplicaSet,
 * brings its Pods back to one old ReplicaSet while the template stays as it is. Pure.
 *
 * The controller, while paused, as read in its source and seen in 1.20:
 *   - one ReplicaSet has Pods: it gets `replicas`; none has: the template's;
 *   - the template's has `replicas`, all available: all others are emptied;
 *   - else what is missing of replicas + surge goes to the largest (of equal ones the newest), what
 *     is too much is taken from the largest (of equal ones the oldest).
 */
#ifndef SW_STEPPING_RETREAT_H
#define SW_STEPPING_RETREAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct step_size {
    int32_t wanted; /* spec.replicas of the ReplicaSet */
    int32_t available;
    bool is_target;   /* the one to go back to; exactly one */
    bool is_template; /* the one of the template as it is; exactly one, another one */
};

struct step_bite {
    size_t which; /* index of the ReplicaSet whose size is to be written */
    int32_t size;
};

enum step_retreat {
    STEP_RETREAT_BITE, /* *ret_bite */
    STEP_RETREAT_WAIT, /* not all Pods of the target are available, or the controller is not done */
    STEP_RETREAT_DONE, /* nothing but the target has Pods, and it has `replicas` */
    STEP_RETREAT_IMPOSSIBLE, /* no Pod of the target is left, the template's is complete, or no bite
                                leads back */
};

enum { STEP_SIZES_MAX = 64 };

/* sizes: the oldest first, by creationTimestamp, then by name, as the controller breaks ties; at
 * most STEP_SIZES_MAX. */
enum step_retreat step_retreat(const struct step_size *sizes, size_t count, int32_t replicas,
                               int32_t surge, int32_t unavailable, struct step_bite *ret_bite);

/* The sizes that the controller will have made of them after the bite: in ret_wanted, count
 * numbers. */
void step_retreat_predict(const struct step_size *sizes, size_t count, int32_t replicas,
                          int32_t surge, const struct step_bite *bite, int32_t *ret_wanted);

#endif
