/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading what is not kept: one object, or a list of some, by a consistent read, decoded by the
 * kind's table, lent for one call and forgotten. For what is too much to watch (Pods), too big to
 * keep (templates), or nobody's to keep (Secrets): a kind may be declared a second time with
 * another table for this. It neither looks at the store nor changes it.
 *
 * A kind that is_secret is overwritten before its memory is freed, and never logged.
 */
#ifndef SLIPWAY_READ_H
#define SLIPWAY_READ_H

#include <stddef.h>

#include <slipway/kind.h>
#include <slipway/module.h>
#include <slipway/write.h>

/* answer->object lives for the call. SW_NOT_FOUND, SW_REFUSED (403 with words), SW_UNKNOWN. Also on
 * followers. Exactly once, after the call has returned 0, unless the module is stopped. -EINVAL: a
 * bad name, or no namespace. */
SW_API SW_MUST_USE int sw_read(struct sw_instance *self, const struct sw_kind *kind,
                               const char *namespace_, const char *name, sw_answer_fn fn,
                               void *arg);

struct sw_list_answer {
    enum sw_outcome outcome;
    int status;
    const char *reason;
    const char *message;
    const struct sw_object *const *objects; /* live for the call; in the API server's order */
    size_t count;
    bool is_cut; /* there are more than `most`, or than fit into 64 MiB */
};

typedef void (*sw_list_fn)(struct sw_instance *self, void *arg,
                           const struct sw_list_answer *answer);

/* All objects of the namespace that match, in pages, in one call of fn; an object that cannot be
 * decoded is logged and left out. namespace_ NULL: as --namespace says, or all. label_selector:
 * text form; NULL: everything. most: objects at most; 0: 10 000. -EINVAL: a selector or a namespace
 * that is none. It takes at most a minute; then, and in every other way in which it does not become
 * whole, there are no objects and `outcome` says why. */
SW_API SW_MUST_USE int sw_list_now(struct sw_instance *self, const struct sw_kind *kind,
                                   const char *namespace_, const char *label_selector, size_t most,
                                   sw_list_fn fn, void *arg);

/* In start: says that the module will read such objects, and list them, so that a permission that
 * is missing is named when the process starts. */
SW_API void sw_read_declare(struct sw_instance *self, const struct sw_kind *kind, bool also_lists);

#endif
