/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In which order the waiting Deployments of a namespace would roll: the controller's own plan
 * (modules/coordination) and hand (modules/pausing), played on copies. Whoever has its turn
 * completes, all of them at the same moment, until nobody waits or nobody may go on. Pure; no twin
 * of the queue's rules.
 */
#ifndef KS_FORECAST_H
#define KS_FORECAST_H

#include <stdbool.h>
#include <stdint.h>

#include "world.h"

struct ks_turn {
    const char *name;
    uint32_t step; /* in its coordination; 0: has its turn now; those of one step roll together */
};

/* Somebody who would like to, and does not get a turn. */
struct ks_left {
    const char *name;
    int32_t position;   /* in the queue; -1: passed over */
    const char *reason; /* "" where the coordination as a whole stands still */
};

struct ks_forecast {
    const char *namespace_, *coordination;
    const struct ks_turn *turns;
    uint32_t turn_count;
    const struct ks_left *left; /* in queue order, then those passed over */
    uint32_t left_count;
    const char *still; /* why nobody goes on in the end; "" where nobody waits */
};

/* Of each coordination of the namespace, by name; in the arena. */
const struct ks_forecast *ks_forecast(struct sw_arena *arena, const struct ks_world *world,
                                      const char *namespace_, int64_t now_us, uint32_t *ret_count);

#endif
