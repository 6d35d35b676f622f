/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The built-in check: how the new Pods themselves do. Pure; round.c lists them.
 *
 *   pods/maxRestarts  container restarts of all new Pods together, init containers included, as
 *                     their statuses count them
 *   pods/maxUnready   of the new Pod that was unready for longest: how long it has been so since it
 *                     was first ready
 *
 * The second is more than a look can tell: a Pod that is ready again does not say how long it was
 * not. So the looks are remembered: what is unready now counts from its last transition; what was
 * unready between two looks (it is ready, since later than it was before) counts as a second for
 * each time that it is found out: it is known to have been, but not for how long. That a Pod
 * was ready before the first look is seen by its transition: a Pod that never was ready has been
 * unready since it was started.
 *
 * A Pod that was never ready is not unready for this: its step is not complete then, and
 * progressDeadlineSeconds counts. Pods that are being deleted, or have ended (Failed, Succeeded:
 * evicted), are no longer the target's, as its controller sees it, and do not count. No Pod at all
 * is a failed check: somebody is looking at the wrong ones.
 */
#ifndef SW_STEPPING_PODS_H
#define SW_STEPPING_PODS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slipway/arena.h>
#include <slipway/workloads.h>

#include "kind.h"

struct step_pods_memory; /* of the new Pods of one rollout */

SW_NONNULL struct step_pods_memory *step_pods_memory_new(void);
struct step_pods_memory *step_pods_memory_free(struct step_pods_memory *memory); /* takes NULL */

#define STEP_POD_CHECKS 2

/* pods: all that match the selector; those that do not count are passed over. owner_uid: only Pods
 * of this owner; "": all. memory forgets Pods that are gone. Fills both checks; strings live in the
 * arena or for ever. */
void step_pods_judge(struct step_pods_memory *memory, const struct sw_object *const *pods,
                     size_t count, const char *owner_uid, int32_t max_restarts,
                     uint64_t max_unready_ms, int64_t wall_us, struct sw_arena *arena,
                     struct step_check ret_checks[STEP_POD_CHECKS]);

/* The same two, failed, where the Pods could not be seen. */
void step_pods_unseen(int32_t max_restarts, uint64_t max_unready_ms, int64_t wall_us,
                      const char *why, struct sw_arena *arena,
                      struct step_check ret_checks[STEP_POD_CHECKS]);

#endif
