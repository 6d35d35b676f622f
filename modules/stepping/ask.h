/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One question to somebody else: a metric, a webhook, or how the new Pods do. It is asked, perhaps
 * again and again (a webhook's retries), until it has an answer or its time is over; then it is
 * done, once. Rounds (round.h) are made of them.
 *
 *     metric    read the Secret, if it needs one -> fetch -> done
 *     webhook   fetch -> done, or pause -> fetch -> ...
 *     Pods      list them -> done
 *
 * What is fetched can be cancelled; what is read from the API server cannot: its answer finds
 * nobody. An ask lives in memory of its owner, and its strings in an arena that lives as long.
 */
#ifndef SW_STEPPING_ASK_H
#define SW_STEPPING_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slipway/arena.h>
#include <slipway/module.h>
#include <slipway/time.h>

#include "hook.h"
#include "kind.h"
#include "pods.h"
#include "provider.h"
#include "spec.h"

struct step_ask;
struct step_reading;

/* Of a module: the reads under way, so that what they hold can be freed when it stops. */
struct step_asks {
    struct sw_instance *self;
    struct step_reading *readings;
};

void step_asks_init(struct step_asks *asks, struct sw_instance *self);
/* In the module's stop: no answer comes any more. */
void step_asks_done(struct step_asks *asks);

/* Exactly once after a start, never from within it, unless it is closed before. The ask may be
 * freed from within. */
typedef void (*step_ask_fn)(struct step_ask *ask);

struct step_ask {
    struct step_asks *asks;
    struct sw_arena *arena;
    step_ask_fn fn;
    void *owner;

    /* What it has found. */
    struct step_check checks[STEP_POD_CHECKS];
    size_t check_count;
    int status;       /* of a webhook's last answer; 0: none */
    uint64_t took_ms; /* over all attempts */

    /* What is asked. */
    struct step_measure measure;
    struct step_query query;
    struct sw_fetch post;
    struct step_pods_memory *pods;
    const char *pod_owner_uid;
    int32_t retries, attempt;
    int32_t max_restarts;
    uint64_t max_unready_ms;

    /* What is under way. */
    uint64_t started_ms;
    struct sw_alarm *alarm;
    void (*on_alarm)(struct step_ask *ask);
    struct sw_fetching *fetching;
    struct step_reading *reading;
};

/* The owner has set asks, arena, fn and owner. What is borrowed is copied into the arena. */
void step_ask_metric(struct step_ask *ask, const struct stepped *object,
                     const struct step_measure *measure);
void step_ask_hook(struct step_ask *ask, const struct step_hook *hook,
                   const struct step_hook_subject *subject, const struct step_hook_event *event);
/* memory outlives the ask. selector NULL or "": it is not known which Pods are new. */
void step_ask_pods(struct step_ask *ask, const struct step_spec *spec, const char *selector,
                   const char *owner_uid, struct step_pods_memory *memory);

/* fn does not come any more. May be called twice, and after fn. */
void step_ask_close(struct step_ask *ask);

#endif
