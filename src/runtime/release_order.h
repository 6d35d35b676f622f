/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may go when everything is let go of in order: of a namespace one at a time. That is never
 * more than any coordination in it allows, and needs nothing but the Deployments. Pure.
 */
#ifndef SW_RUNTIME_RELEASE_ORDER_H
#define SW_RUNTIME_RELEASE_ORDER_H

#include <stdbool.h>
#include <stdint.h>

struct sw_deployment;

enum sw_release_turn {
    SW_RELEASE_AT_REST, /* to be resumed at once: nothing follows from it */
    SW_RELEASE_ROLLS,   /* rolls already, and takes the place of its namespace */
    SW_RELEASE_WAITS,   /* paused, and begins to roll when it is resumed */
};

/* One whose status speaks of something older waits, if it is paused: nobody knows better yet. */
enum sw_release_turn sw_release_turn_of(const struct sw_deployment *deployment);
/* All Pods that it wants run its template and are available. */
bool sw_release_is_complete(const struct sw_deployment *deployment);
/* slipway.dev/order; 0 where it is absent or no number. */
int64_t sw_release_order_of(const struct sw_deployment *deployment);

#endif
