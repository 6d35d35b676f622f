/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Letting go of everything: each Deployment that carries an annotation of ours is unpaused if the
 * pause is ours, and loses those annotations. For before slipway is removed from a cluster. A
 * person's own pause, and the wishes that people annotate, stay.
 *
 * At once, or in order (release_order.h) for a while: what has nothing to roll at once, of the
 * others in a namespace one at a time, each when the one before is complete. What still waits when
 * the time is over goes at once, since nobody would ever resume it. A Deployment with the
 * annotation slipway.dev/hold is then left paused, and the pause is the person's: it was wished
 * for, and nobody would be there who keeps it. In the end all is listed again, since what was under
 * way while the list was read may have marked one more.
 *
 * Before that the other kinds, all at once: StatefulSets and DaemonSets that bear annotations of
 * ours, and the finalizer of SteppedRollouts, which would keep them (and their CRD) for ever when
 * nobody is there who removes it. Of every kind what stands in slipway.dev/saved (arbiter.h) is put
 * back in the same write.
 */
#ifndef SW_RUNTIME_RELEASE_ALL_H
#define SW_RUNTIME_RELEASE_ALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sw_arena;
struct sw_buf;
struct sw_client;
struct sw_object;
struct sw_json;
struct sw_log;
struct sw_loop;
struct sw_release_all;

struct sw_release_all_options {
    const char *namespace_; /* NULL: all */
    bool is_dry_run;
    uint64_t in_order_ms;      /* how long in order; 0: all at once */
    const char *field_manager; /* NULL: ours */
};

struct sw_release_all_result {
    size_t resumed;
    size_t unmarked; /* lost annotations only */
    size_t failed;
    bool is_list_complete; /* else the list of Deployments could not be read */
};

/* Once, after the call has returned. The table of what was done is in out (of sw_release_all). */
typedef void (*sw_release_all_fn)(void *arg, const struct sw_release_all_result *result);

/* client and out are borrowed until fn has come. */
void sw_release_all(struct sw_loop *loop, struct sw_client *client,
                    const struct sw_release_all_options *options, struct sw_buf *out,
                    sw_release_all_fn fn, void *arg);

/* The merge patch that lets go of it, with its version as precondition; NULL: nothing of ours is on
 * it. keeps_wishes: a Deployment with slipway.dev/hold stays paused. *ret_resumes: it will be
 * unpaused, or gets its own strategy back. *ret_error: why it cannot be let go of; NULL where it
 * can. Pure. */
struct sw_json *sw_release_all_patch(struct sw_arena *arena, const struct sw_object *object,
                                     bool keeps_wishes, bool *ret_resumes, const char **ret_error);

#endif
