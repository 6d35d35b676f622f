/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queues of slipway/queue.h. A struct sw_run is one key, from the first wish until nothing is
 * left to remember of it:
 *
 *   state      what it means                          next
 *   IDLE       a timer or a failure is remembered     READY when wished for or the timer fires
 *   READY      waits for its call                     RUNNING
 *   RUNNING    called, not finished                   READY if wished for meanwhile, else IDLE
 */
#ifndef SW_RUNTIME_QUEUE_H
#define SW_RUNTIME_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slipway/queue.h>

#include "base/list.h"
#include "base/loop.h"

struct sw_core;
struct sw_map;
struct sw_metric;

struct sw_queue {
    struct sw_link link;
    struct sw_instance *instance;
    struct sw_core *core;
    char *name;
    sw_reconcile_fn fn;
    void *arg;
    bool also_on_followers;
    struct sw_map *runs;    /* key -> struct sw_run */
    struct sw_link ready;   /* in the order of the wishes */
    struct sw_link running; /* longest first */
    size_t ready_count;
    struct sw_timer work;
    struct {
        struct sw_metric *depth, *adds, *retries, *waited, *worked, *unfinished, *longest;
        struct sw_metric *success, *requeue_after, *error, *errors, *took, *active;
    } metrics;
};

/* Forgets everything; runs under way are not waited for. */
void sw_queue_free(struct sw_queue *queue);
/* Forgets wishes and failures: the leader's queues when the process leads no more. */
void sw_queue_drop(struct sw_queue *queue);
/* Nothing is ready or running. */
bool sw_queue_is_idle(const struct sw_queue *queue);

#endif
