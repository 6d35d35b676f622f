/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds that modules speak of: for each one decoder and, where anybody watches it, one store
 * and one stream, however many subscribe. The stream is as narrow as all subscribers allow: one
 * namespace or one label selector if they agree on it, else everything; each subscriber gets what
 * it asked for.
 */
#ifndef SW_RUNTIME_KINDS_H
#define SW_RUNTIME_KINDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slipway/watch.h>

#include "base/list.h"

struct sw_buf;
struct sw_core;
struct sw_decoder;
struct sw_intern;
struct sw_reflector;
struct sw_store;

struct sw_kinds {
    struct sw_core *core;
    struct sw_intern *intern;
    struct sw_link all; /* struct sw_kind_entry, in the order in which they were first named */
    size_t unlisted;    /* waited for, and not listed yet */
};

struct sw_kind_entry {
    struct sw_link link;
    struct sw_core *core;
    const struct sw_kind *kind;
    char *name; /* "deployments.apps", for people */
    struct sw_decoder *decoder;
    struct sw_link subscriptions;
    /* from sw_kinds_open on, where it is watched; else NULL */
    struct sw_store *store;
    struct sw_reflector *reflector;
    char *namespace_;             /* of the stream; NULL: all */
    char *object_name;            /* the stream is of the object of this name alone; NULL: of all */
    struct sw_selector *selector; /* of the stream; NULL: none */
    bool is_optional;             /* to all who watch it */
    bool is_aside; /* to all who watch it: neither readiness nor leading waits for it */
    bool is_listed;
    bool is_awaited; /* a consistent list, by leading.c */
    uint64_t opened_ms;
};

void sw_kinds_init(struct sw_kinds *kinds, struct sw_core *core);
/* Streams end, stores are freed. Every instance was forgotten before. */
void sw_kinds_done(struct sw_kinds *kinds);
/* The entry of the kind, made when it is named for the first time. */
struct sw_kind_entry *sw_kinds_entry(struct sw_kinds *kinds, const struct sw_kind *kind);
/* The same, or NULL. */
struct sw_kind_entry *sw_kinds_find(const struct sw_kinds *kinds, const struct sw_kind *kind);
/* As sw_watch, for a part of the core: the object of that name alone (name is copied), in
 * whatever namespace, and nobody waits for the kind: the process is ready, and leads, while it
 * cannot be listed. */
void sw_kinds_watch_aside(struct sw_instance *self, const struct sw_kind *kind, const char *name,
                          const struct sw_watch_options *options);
void sw_kinds_open(struct sw_kinds *kinds);
void sw_kinds_forget(struct sw_kinds *kinds, const struct sw_instance *instance);

/* Every kind that is watched, not optional and not aside has been listed. */
bool sw_kinds_are_listed(const struct sw_kinds *kinds);
/* The names of those that are not, "deployments.apps, pods". */
void sw_kinds_unlisted_text(const struct sw_kinds *kinds, struct sw_buf *out);

/* What the API server answered about one object: it goes into the store where the kind is watched,
 * and the object as it is known now is returned; *ret_own is set where the caller has to free it
 * (sw_object_free with the entry's decoder), because there is no store that has it. */
const struct sw_object *sw_kind_learn_take(struct sw_kind_entry *entry,
                                           struct sw_object *object_taken,
                                           struct sw_object **ret_own);
/* The API server answered that it is not there; uid: the one known when the question was sent, ""
 * where none was: then nothing is concluded. */
void sw_kind_learn_gone(struct sw_kind_entry *entry, const char *namespace_, const char *name,
                        const char *uid);

#endif
