/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store of one kind: objects by key, by namespace and by controlling owner. It owns the
 * objects. What it hands out is const and valid until the loop turns: replaced objects are freed
 * only after that.
 *
 * It never goes back: an object with an older resourceVersion than the one of that name that is
 * there is refused (versions of one kind in one cluster are compared as decimal numbers where both
 * are decimal, as current API servers guarantee; otherwise the newcomer is accepted). A deletion
 * that was seen is remembered (uid and version, 5 min), so that a late answer to our own write does
 * not bring the object back. (Only a list goes back, where the cluster has.) Something newer of the
 * same uid is taken in again: to a watch with a selector an object that stops matching is deleted,
 * and may come back.
 */
#ifndef SW_KUBE_STORE_H
#define SW_KUBE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slipway/object.h>

struct sw_decoder;
struct sw_loop;
struct sw_store;

enum sw_change_type {
    SW_CHANGE_ADDED,
    SW_CHANGE_MODIFIED,
    SW_CHANGE_DELETED,
};

struct sw_change {
    enum sw_change_type type;
    const struct sw_object *old; /* NULL on ADDED */
    const struct sw_object *now; /* NULL on DELETED; the store holds it already */
    bool is_from_list;           /* found by a relist: versions in between may have been missed */
};

/* May read the store and write to it: changes made meanwhile are delivered afterwards, in order. */
typedef void (*sw_change_fn)(void *arg, const struct sw_change *change);

struct sw_store *sw_store_new(struct sw_loop *loop, struct sw_decoder *decoder, sw_change_fn fn,
                              void *arg);
struct sw_store *sw_store_free(struct sw_store *store); /* not from a callback of the store */

/* From a watch event or an answer. Same version as there: nothing. Another uid: DELETED, then
 * ADDED. False if refused, as older or as deleted. Takes the object either way. */
bool sw_store_put_take(struct sw_store *store, struct sw_object *object_taken);
/* resource_version: of the deletion; older than what is there: refused. "": unknown, it is gone for
 * good (404). uid "": whatever is there. True if something was deleted. */
bool sw_store_delete(struct sw_store *store, const char *namespace_, const char *name,
                     const char *uid, const char *resource_version);

/* A relist: begin, add each item, then commit replaces the contents in one step and reports what
 * differs, deletions first. What the list could not know of, because it has happened at a version
 * newer than list_version, stays: newer objects and deletions, named or not; the watch from there
 * on will tell of them. Of all else the list is right, even where it goes back: then the cluster
 * has (etcd was restored from a backup). Puts and deletes meanwhile take effect at once. Begin
 * anew, or abort, forgets what was added. */
void sw_store_replace_begin(struct sw_store *store);
void sw_store_replace_add_take(struct sw_store *store, struct sw_object *object_taken);
/* Takes back what was added: it has been deleted since, before the list was whole. */
void sw_store_replace_remove(struct sw_store *store, const char *namespace_, const char *name);
/* Of an item of the list that cannot be read: what is known of it stays; nothing, if nothing is. */
void sw_store_replace_keep(struct sw_store *store, const char *namespace_, const char *name);
void sw_store_replace_commit(struct sw_store *store, const char *list_version);
/* The same after the versions themselves have gone back: none of those known means anything any
 * more, and one of them may stand for something else now. The list alone counts, all of it is told.
 */
void sw_store_replace_commit_anew(struct sw_store *store, const char *list_version);
void sw_store_replace_abort(struct sw_store *store);

const struct sw_object *sw_store_get(const struct sw_store *store, const char *namespace_,
                                     const char *name);
size_t sw_store_size(const struct sw_store *store);
/* Of the objects, those waiting to be freed or committed too, and of the tables; not of interned
 * strings. */
size_t sw_store_bytes(const struct sw_store *store);
/* false ends the walk. The store may be changed from here: what is deleted or added meanwhile is
 * not visited. */
typedef bool (*sw_store_visit_fn)(void *arg, const struct sw_object *object);
/* namespace_ NULL: all. In the order in which they came. */
void sw_store_each(const struct sw_store *store, const char *namespace_, sw_store_visit_fn visit,
                   void *arg);
void sw_store_each_owned(const struct sw_store *store, const char *owner_uid,
                         sw_store_visit_fn visit, void *arg);

/* a newer than b, as far as can be said: > 0, 0 (equal), < 0; *ret_is_known false where not both
 * are decimal. */
int sw_version_compare(const char *a, const char *b, bool *ret_is_known);

#endif
