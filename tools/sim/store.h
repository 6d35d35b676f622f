/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What etcd and the watch cache are to the real API server: the objects, one version counter for
 * all of them, and a window of the latest changes. It knows no rules: those are the API server's
 * (api.h). Everything is done at once; nothing waits.
 */
#ifndef TOOLS_SIM_STORE_H
#define TOOLS_SIM_STORE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

struct sw_sim_kind;
struct sw_sim_shelf;
struct sw_sim_store;

/* Never changes: a change makes a new one. Counted references. */
struct sw_sim_object {
    const struct sw_sim_kind *kind; /* of the stored version */
    const char *namespace_;         /* "" where the kind is not namespaced */
    const char *name;
    const char *uid;
    uint64_t version; /* metadata.resourceVersion */
    const char *key;  /* "namespace/name", or "name" where the kind is not namespaced */
    /* private */
    unsigned refs;
    bool was_used;    /* the document, since it was last thought of being dropped */
    json_t *document; /* NULL: as text alone */
    char *text;       /* NULL: not made yet */
    size_t text_len;
    struct sw_link link; /* of those that have a document */
    struct sw_sim_shelf *shelf;
    char names[]; /* what key, namespace_ and uid point into */
};

const struct sw_sim_object *sw_sim_object_ref(const struct sw_sim_object *object);
void sw_sim_object_unref(const struct sw_sim_object *object); /* takes NULL */
/* Compact JSON, made once. Valid as long as the object. */
const char *sw_sim_object_text(const struct sw_sim_object *object, size_t *ret_len);
/*
 * The object as a document: a dozen times as large as its text. A store with limits drops those
 * that were not used for long, and makes them again from the text when they are asked for.
 * Borrowed until the store is trimmed (sw_sim_store_trim), which happens between the callbacks of
 * the loop; who needs it for longer takes a reference of the json_t.
 */
const json_t *sw_sim_object_json(const struct sw_sim_object *object);
/* A new reference, for those who look at many objects once: nothing is kept for the next time. */
json_t *sw_sim_object_share(const struct sw_sim_object *object);
/* The same of one member ("metadata.labels"); NULL: there is none, or null. */
json_t *sw_sim_object_at(const struct sw_sim_object *object, const char *path);

enum sw_sim_change_type {
    SW_SIM_ADDED,
    SW_SIM_MODIFIED,
    SW_SIM_DELETED,
};

struct sw_sim_change {
    uint64_t version;
    enum sw_sim_change_type type;
    const struct sw_sim_object
        *object; /* DELETED: the last state, with the version of the deletion */
    const struct sw_sim_object *before; /* NULL when ADDED */
};

struct sw_sim_store *sw_sim_store_new(uint64_t first_version, size_t window);
struct sw_sim_store *sw_sim_store_free(struct sw_sim_store *store);

/* Without them documents stay, and the window is as long as it is. */
struct sw_sim_limits {
    /* Documents of namespaced kinds. (Of Nodes, definitions and the like there are few, and each is
     * looked at all the time.) */
    size_t documents;
    size_t window_bytes; /* texts of the states in the window, one that two changes have twice */
};
/* Before the first object. */
void sw_sim_store_limit(struct sw_sim_store *store, const struct sw_sim_limits *limits);
/* fn: there are more documents than that. Called once until the next trim, from wherever one was
 * asked for: it sees to a trim as soon as nobody has one borrowed. */
void sw_sim_store_on_full(struct sw_sim_store *store, void (*fn)(void *arg), void *arg);
/* Drops what is too many, those that were not used since the last time first. */
void sw_sim_store_trim(struct sw_sim_store *store);

uint64_t sw_sim_store_version(const struct sw_sim_store *store);
/* Borrowed until the object changes; NULL where there is none. */
const struct sw_sim_object *sw_sim_store_get(const struct sw_sim_store *store,
                                             const struct sw_sim_kind *kind, const char *namespace_,
                                             const char *name);
/* In the order of "namespace/name", as etcd's keys are. after: NULL, or the key behind which to
 * begin ("name" where the kind is not namespaced). namespace_ NULL: all. Returns what fn returned
 * other than 0. fn must not change the store. */
int sw_sim_store_each(const struct sw_sim_store *store, const struct sw_sim_kind *kind,
                      const char *namespace_, const char *after,
                      int (*fn)(void *arg, const struct sw_sim_object *object), void *arg);
size_t sw_sim_store_count(const struct sw_sim_store *store, const struct sw_sim_kind *kind);
/* Objects of all kinds whose ownerReferences hold the uid. */
int sw_sim_store_each_owned(const struct sw_sim_store *store, const char *uid,
                            int (*fn)(void *arg, const struct sw_sim_object *object), void *arg);

/* Takes json (a reference; what others hold too is copied as far as it changes); sets
 * metadata.resourceVersion to the next version and tells the watchers. The name and namespace are
 * read from its metadata. */
const struct sw_sim_object *sw_sim_store_put(struct sw_sim_store *store,
                                             const struct sw_sim_kind *kind, json_t *json);
/* object is the one that sw_sim_store_get returns. */
void sw_sim_store_remove(struct sw_sim_store *store, const struct sw_sim_object *object);
/* The same with another last state (taken), of which a reference is returned. */
const struct sw_sim_object *sw_sim_store_remove_as(struct sw_sim_store *store,
                                                   const struct sw_sim_object *object,
                                                   json_t *json);
/* The CustomResourceDefinition changed: objects of the group and plural are of this kind now. Kinds
 * that objects of the window still have must live as long as the API server. */
void sw_sim_store_set_kind(struct sw_sim_store *store, const struct sw_sim_kind *kind);

/* Changes of a kind behind a version, oldest first. -ESTALE: they are not all in the window any
 * more (410 Gone). */
int sw_sim_store_changes(const struct sw_sim_store *store, const struct sw_sim_kind *kind,
                         uint64_t behind, int (*fn)(void *arg, const struct sw_sim_change *change),
                         void *arg);
/* The oldest version behind which the changes are known. */
uint64_t sw_sim_store_floor(const struct sw_sim_store *store);
/* Forgets the window up to the version, as a compaction does. */
void sw_sim_store_compact(struct sw_sim_store *store, uint64_t upto);

/* Called within put and remove, after the change, in the order of registration. It may change the
 * store: that change is told after this one has been told to all. */
struct sw_sim_store_watcher {
    void (*on_change)(struct sw_sim_store_watcher *watcher, const struct sw_sim_change *change);
    /* private */
    struct sw_sim_store_watcher *next;
};
void sw_sim_store_watch(struct sw_sim_store *store, struct sw_sim_store_watcher *watcher);
void sw_sim_store_unwatch(struct sw_sim_store *store, struct sw_sim_store_watcher *watcher);

#endif
