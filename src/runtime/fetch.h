/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests of slipway/fetch.h that are under way: each is known from the call until its
 * callback. Redirects, deadlines, limits and metrics are here; what carries a request is the
 * fetcher, which is made when it is first needed.
 */
#ifndef SW_RUNTIME_FETCH_H
#define SW_RUNTIME_FETCH_H

#include <slipway/fetch.h>

#include "base/list.h"

struct sw_core;
struct sw_fetcher;
struct sw_metric;

enum { SW_FETCH_CLASSES = 5 }; /* of a status, and none at all */

struct sw_fetches {
    struct sw_core *core;
    struct sw_fetcher *fetcher; /* NULL: none yet */
    bool is_own;                /* and closed at the end */
    struct sw_link all;
    struct sw_metric *requests[SW_FETCH_CLASSES];
    struct sw_metric *seconds;
};

/* fetcher: borrowed; NULL: HTTP. */
void sw_fetches_init(struct sw_fetches *fetches, struct sw_core *core, struct sw_fetcher *fetcher);
/* Cancels what is under way; no callback comes. */
void sw_fetches_done(struct sw_fetches *fetches);
/* Cancels those of the instance. */
void sw_fetches_forget(struct sw_fetches *fetches, const struct sw_instance *instance);

#endif
