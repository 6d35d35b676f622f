/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watching kinds and looking at the store. There is one stream and one store per kind however many
 * subscribe.
 */
#ifndef SLIPWAY_WATCH_H
#define SLIPWAY_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include <slipway/kind.h>
#include <slipway/module.h>
#include <slipway/selector.h>

enum sw_delta_type {
    SW_ADDED, /* old is NULL */
    SW_MODIFIED,
    SW_DELETED, /* now is NULL; old is the last state known */
};

struct sw_delta {
    enum sw_delta_type type;
    const struct sw_object *old;
    const struct sw_object *now;
    bool is_from_list; /* found by comparing with a list: versions in between may have been missed.
                          A DELETED one may have had a later state than old */
};

/* Every change in order; a new uid under an old name comes as DELETED and ADDED. The store already
 * holds `now`. With a namespace or a selector: an object that begins or ceases to match comes as
 * ADDED or DELETED, though it may live on. */
typedef void (*sw_delta_fn)(struct sw_instance *self, void *arg, const struct sw_delta *delta);
/* A whole list has been applied: the first makes the kind synced. */
typedef void (*sw_listed_fn)(struct sw_instance *self, void *arg);

struct sw_watch_options {
    const char *namespace_;     /* NULL: as --namespace says, or all */
    const char *label_selector; /* text form; NULL: everything */
    sw_delta_fn on_delta;       /* may be NULL */
    sw_listed_fn on_listed;     /* may be NULL */
    void *arg;
    bool is_optional; /* a kind that may be missing from the cluster (404): does not hold up
                         readiness */
};

/* In start; several times for one kind is allowed. Streams open when all modules have started, and
 * are as narrow as all subscribers agree on: what nobody asked for is not in the store. -EINVAL
 * with sw_fail said: a selector that is none, or a namespace other than that of --namespace. */
SW_API int sw_watch(struct sw_instance *self, const struct sw_kind *kind,
                    const struct sw_watch_options *options);
/* Listed at least once. */
SW_API bool sw_is_synced(const struct sw_instance *self, const struct sw_kind *kind);
/* Asks for a new list by a consistent read; on_listed tells when. */
SW_API void sw_relist(struct sw_instance *self, const struct sw_kind *kind);

/* ---- store ---- */

SW_API const struct sw_object *sw_lookup(const struct sw_instance *self, const struct sw_kind *kind,
                                         const char *namespace_, const char *name);
/* Called for each object until it returns false. namespace_ NULL: all; selector NULL: all. In no
 * order. */
typedef bool (*sw_visit_fn)(void *arg, const struct sw_object *object);
SW_API void sw_each(const struct sw_instance *self, const struct sw_kind *kind,
                    const char *namespace_, const struct sw_selector *selector, sw_visit_fn visit,
                    void *arg);
SW_API void sw_each_owned(const struct sw_instance *self, const struct sw_kind *kind,
                          const char *owner_uid, sw_visit_fn visit, void *arg);

#endif
