/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writes of slipway/write.h that are under way: each is known from the call until its callback,
 * so that stopping can wait for them and a module that stopped is never called.
 */
#ifndef SW_RUNTIME_WRITE_H
#define SW_RUNTIME_WRITE_H

#include <stdbool.h>

#include <slipway/write.h>

#include "base/list.h"

struct sw_arena;
struct sw_core;
struct sw_reply;

struct sw_writes {
    struct sw_core *core;
    struct sw_link all;
};

void sw_writes_init(struct sw_writes *writes, struct sw_core *core);
/* Cancels what is under way; no callback comes. */
void sw_writes_done(struct sw_writes *writes);
/* Those of the instance go on, but nobody is told. */
void sw_writes_forget(struct sw_writes *writes, const struct sw_instance *instance);
/* None under way: of those that only the leader may send, or of all. */
bool sw_writes_are_idle(const struct sw_writes *writes, bool of_followers_too);

/* An answer that comes in a later turn without a request. object: borrowed until then where the
 * store has it; NULL: none. */
void sw_write_answer_later(struct sw_instance *self, const struct sw_kind *kind,
                           const char *namespace_, const char *name, enum sw_outcome outcome,
                           const char *message, sw_answer_fn fn, void *arg);

/* ---- pure parts, for tests ---- */

/* What an answer of the API server means for a write. has_test: a JSON patch with a test in it. */
enum sw_outcome sw_write_outcome(const struct sw_reply *reply, bool has_test);
/* The body to send, with preconditions and what the API server demands in it, in the arena; NULL:
 * none. */
const char *sw_write_body(struct sw_arena *arena, const struct sw_write *write, size_t *ret_len);

#endif
