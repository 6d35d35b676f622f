/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What rolls in one namespace, as an observer sees it who reads the Deployments and knows nothing
 * of turns, holds and rights: by generation, observedGeneration, the replica counts and the
 * condition Progressing. One that is not observed still does what it did. Pure, and apart from the
 * plan, which it is there to contradict.
 */
#ifndef SW_COORDINATION_OBSERVER_H
#define SW_COORDINATION_OBSERVER_H

#include <stdbool.h>
#include <stdint.h>

#include <slipway/apps.h>
#include <slipway/selector.h>

struct coord_observer;

SW_NONNULL struct coord_observer *coord_observer_new(void);
struct coord_observer *coord_observer_free(struct coord_observer *observer);

/* One Deployment as it is now (NULL: gone), and as it was before (NULL: first sight). True if it
 * rolls or did: then who is counted where may be another. */
bool coord_observer_see(struct coord_observer *observer, const struct sw_deployment *old,
                        const struct sw_deployment *now);

/* The Deployment of that name as it is now, or NULL. */
typedef const struct sw_object *(*coord_find_fn)(void *arg, const char *name);
/* How many of those that roll the selector selects. */
uint32_t coord_observer_count(const struct coord_observer *observer,
                              const struct sw_selector *selector, coord_find_fn find, void *arg);

#endif
