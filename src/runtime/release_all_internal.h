/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of release_all share: one Deployment that is let go of (release_item.c), the table
 * of what was done (release_report.c), and the whole (release_all.c).
 *
 *   state     in order only                                 next
 *   WAITING   for its place, or for a pause after a failure ASKING
 *   ASKING    a GET or a PATCH is under way                 WAITING, ROLLING or DONE
 *   ROLLING   looked at each second                         DONE: complete, or the time is over
 */
#ifndef SW_RUNTIME_RELEASE_ALL_INTERNAL_H
#define SW_RUNTIME_RELEASE_ALL_INTERNAL_H

#include <slipway/apps.h>

#include "base/error.h"
#include "base/loop.h"
#include "base/util.h"
#include "runtime/release_all.h"
#include "runtime/release_order.h"

struct sw_call;
struct sw_object;

enum { SW_RELEASE_TRIES_MAX = 10 }; /* of one Deployment, and of the list */

enum sw_release_state {
    SW_RELEASE_ITEM_WAITING,
    SW_RELEASE_ITEM_ASKING,
    SW_RELEASE_ITEM_ROLLING,
    SW_RELEASE_ITEM_DONE,
};

/* The kinds, in their order; Deployments are last. */
extern const struct sw_kind *const sw_release_kinds[];

/* One object of the list that has something of ours. */
struct sw_release_item {
    struct sw_release_all *all;
    const struct sw_kind *kind;
    char *namespace_, *name, *held_by;
    char *body; /* of the patch; NULL: read it again first */
    size_t body_len;
    bool resumes;
    char *wish; /* slipway.dev/hold; NULL: none */
    enum sw_release_turn turn;
    int64_t order;
    enum sw_release_state state;
    bool is_resting;                               /* until the next tick, after a failure */
    uint64_t began_ms;                             /* SW_RELEASE_ITEM_ROLLING: since when */
    bool is_left_paused, is_left_rolling, is_late; /* SW_RELEASE_ITEM_DONE: in order */
    bool is_hidden;                                /* another of a later or earlier round says it */
    unsigned tries;
    struct sw_call *call;
    bool has_failed;
    char result[200];
};

struct sw_release_all {
    struct sw_client *client;
    struct sw_release_all_options options;
    char *namespace_, *field_manager;
    struct sw_buf *out;
    sw_release_all_fn fn;
    void *arg;
    struct sw_intern *intern;
    const struct sw_kind *const *kind; /* that is being let go of, of sw_release_kinds */
    struct sw_decoder *decoder;        /* of that */
    struct sw_defer step;
    struct sw_release_item **items;
    size_t item_count, asking;
    unsigned list_tries;
    char *continue_; /* of the next page */
    bool is_listing;
    struct sw_error list_error;
    struct sw_release_all_result result;
    /* in order */
    struct sw_loop *loop;
    struct sw_timer tick;
    uint64_t end_ms;
    bool is_over; /* the time is */
    size_t first; /* items of this round; those before it are done */
    size_t again; /* items of all rounds but the first */
    unsigned rounds;
};

static inline bool sw_release_is_in_order(const struct sw_release_all *all)
{
    return all->options.in_order_ms > 0 && *all->kind == &sw_kind_deployment;
}

/* What is to be done with it as object is now. False: there is nothing of ours on it. */
bool sw_release_item_decide(struct sw_release_item *item, const struct sw_object *object);
/* Sends what was decided, or says what would be; step follows when the answer is there. */
void sw_release_item_begin(struct sw_release_item *item);
/* ROLLING: asks how far it is. */
void sw_release_item_look(struct sw_release_item *item);
SW_PRINTF(2, 3) void sw_release_item_done(struct sw_release_item *item, const char *format, ...);
void sw_release_item_free(struct sw_release_item *item);

/* In the end: counts into all->result, and writes the table and the sum. */
void sw_release_report(struct sw_release_all *all);

#endif
