/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a Deployment does not roll, or that it may. Pure: from the world to a reason in one word,
 * sentences, and what to do.
 */
#ifndef KS_WHY_H
#define KS_WHY_H

#include <stdint.h>

#include "world.h"

struct ks_why {
    const char *reason; /* for programs: "WaitsForTurn"; the list is in why.c */
    const char *headline;
    const char *lines[24];                             /* more, in order; NULL at the end */
    const char *advice;                                /* what a person can do; "" */
    const char *held_by, *released_by, *coordinations; /* as on the object; "" */
    int64_t since_us;                                  /* of what the headline says; 0: not known */
    int32_t position; /* in the queue; 0: has the turn; -1: neither */
    int32_t of;       /* how many wait */
};

/* In the arena; texts are borrowed from the world. */
void ks_why(struct sw_arena *arena, const struct ks_world *world,
            const struct sw_deployment *deployment, int64_t now_us, struct ks_why *ret_why);

#endif
