/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Letting go of everything: each Deployment that carries an annotation of ours is unpaused if the
 * pause is ours, and loses those annotations, at once and in no order. For before slipway is
 * removed from a cluster. A person's own pause, and the wishes that people annotate, stay.
 */
#ifndef SW_RUNTIME_RELEASE_ALL_H
#define SW_RUNTIME_RELEASE_ALL_H

#include <stdbool.h>
#include <stddef.h>

struct sw_arena;
struct sw_buf;
struct sw_client;
struct sw_deployment;
struct sw_json;
struct sw_log;
struct sw_loop;
struct sw_release_all;

struct sw_release_all_options {
    const char *namespace_; /* NULL: all */
    bool is_dry_run;
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
 * it. *ret_resumes: it will be unpaused. Pure. */
struct sw_json *sw_release_all_patch(struct sw_arena *arena, const struct sw_deployment *deployment,
                                     bool *ret_resumes);

#endif
