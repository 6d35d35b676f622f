/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One change of one object, on the version that it was decided on: read, decide, patch; decided
 * anew where somebody else was faster.
 */
#ifndef KS_EDIT_H
#define KS_EDIT_H

#include "options.h"

struct ks_session;
struct sw_json;
struct sw_kind;

/* Puts into the merge patch (which has the resourceVersion already) what is to change. False:
 * nothing. */
typedef bool (*ks_edit_fn)(void *arg, const struct sw_json *object, struct sw_json *patch);

/* KS_DONE with the object as the API server has it now in *ret_object, and *ret_is_changed. Else it
 * has been said why not. The namespace is the session's. */
enum ks_exit ks_edit(struct ks_session *session, const struct sw_kind *kind, const char *name,
                     ks_edit_fn fn, void *arg, const struct sw_json **ret_object,
                     bool *ret_is_changed);

/* "deployment.apps/cart held (server dry run): ..." in the session's out. */
void ks_tell(struct ks_session *session, const struct sw_kind *kind, const char *name,
             const char *what);

#endif
