/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `status` and `why` say of a SteppedRollout: its phase, step and checks, who holds it and
 * what it waits for. Pure: from the world and the time to rows, sentences and JSON.
 */
#ifndef KS_ROLLOUT_H
#define KS_ROLLOUT_H

#include <stdint.h>

#include "view.h"
#include "why.h"
#include "world.h"

struct sw_json;

enum ks_rollout_state {
    KS_ROLLOUT_RESTS,     /* Initialized, Succeeded */
    KS_ROLLOUT_BEGINS,    /* Initializing: its target was never seen complete */
    KS_ROLLOUT_WAITS,     /* somebody has to confirm */
    KS_ROLLOUT_STEPS,     /* Progressing, Promoting */
    KS_ROLLOUT_HELD,      /* somebody else holds the target */
    KS_ROLLOUT_FAILED,    /* and what follows from it */
    KS_ROLLOUT_SUSPENDED, /* spec.suspend */
    KS_ROLLOUT_DISOBEYED, /* Ready is False: the spec, the target, another one on the same target */
    KS_ROLLOUT_UNSEEN,    /* slipway has not looked at it since it was last changed */
};

enum ks_rollout_state ks_rollout_state_of(const struct stepped *rollout);
/* Its phase, or the state where that says more: "Suspended", "InvalidSpec", "Unseen". */
const char *ks_rollout_word(const struct stepped *rollout);

/* The oldest one on that target; NULL: none. */
const struct stepped *ks_rollout_on(const struct ks_world *world, const char *namespace_,
                                    const char *kind, const char *name);
const struct stepped *ks_rollout_named(const struct ks_world *world, const char *namespace_,
                                       const char *name);

/* A table of them, each with its checks where something is under way or has failed. */
void ks_rollouts_print(struct sw_arena *arena, const struct stepped *const *rollouts, size_t count,
                       const struct ks_look *look, struct sw_buf *out);
/* What status shows of both: coordinations, then SteppedRollouts. */
void ks_status_print(struct sw_arena *arena, struct ks_group_view *const *views, size_t count,
                     const struct stepped *const *rollouts, size_t rollout_count,
                     const struct ks_look *look, struct sw_buf *out);
struct sw_json *ks_rollouts_json(struct sw_arena *arena, const struct stepped *const *rollouts,
                                 size_t count, int64_t now_us);
/* "shop/web: Progressing, step 2/4, Deployment web 3/10 updated (2 of 4 rounds have passed)". */
const char *ks_rollout_line(struct sw_arena *arena, const struct stepped *rollout);

/* Why its target stands where it stands: reasons are Stepped (nothing to roll), StepBegins,
 * WaitsForConfirmation, Asking, Advancing, Analysing, Promoting, Retreating, RollingBack,
 * StepFailed, HeldByOther, Suspended, Unseen, and that of the condition Ready. In the arena;
 * held_by and its like are left as they are. */
void ks_rollout_why(struct sw_arena *arena, const struct stepped *rollout, int64_t now_us,
                    struct ks_why *why);

#endif
