/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue of keys with one function. A key says "look again", never what happened. One call per key
 * at a time; a key added while it waits is there once; added while it is worked on, it comes again
 * afterwards. Works only on the leader: others drop what they are given, and on becoming leader the
 * module adds what matters.
 */
#ifndef SLIPWAY_QUEUE_H
#define SLIPWAY_QUEUE_H

#include <stdint.h>

#include <slipway/module.h>

struct sw_queue;
struct sw_run; /* one call for one key, until it is finished */

enum sw_result {
    SW_DONE,  /* forget earlier failures */
    SW_RETRY, /* failed: again after 5 ms * 2^n, at most 5 min, with jitter */
    SW_LATER, /* goes on asynchronously: sw_run_finish comes exactly once */
};

/* key, arena and run live until the run is finished. */
typedef enum sw_result (*sw_reconcile_fn)(struct sw_instance *self, void *arg, struct sw_run *run);

struct sw_queue_options {
    const char *name; /* for metrics */
    sw_reconcile_fn fn;
    void *arg;
    bool also_on_followers;
};

SW_API SW_NONNULL struct sw_queue *sw_queue_new(struct sw_instance *self,
                                                const struct sw_queue_options *options);
SW_API void sw_queue_add(struct sw_queue *queue, const char *key);
/* The earliest of several wishes counts. */
SW_API void sw_queue_add_after(struct sw_queue *queue, const char *key, uint64_t after_ms);
/* Forgets wishes and failures; a run under way goes on. */
SW_API void sw_queue_remove(struct sw_queue *queue, const char *key);

SW_API SW_NONNULL const char *sw_run_key(const struct sw_run *run);
SW_API SW_NONNULL struct sw_arena *sw_run_arena(const struct sw_run *run);
/* "reconcileID" of the lines said while its function is called: 16 hexadecimal digits. */
SW_API SW_NONNULL const char *sw_run_id(const struct sw_run *run);
/* With SW_DONE or SW_RETRY, for a run that returned SW_LATER. */
SW_API void sw_run_finish(struct sw_run *run, enum sw_result result);

#endif
