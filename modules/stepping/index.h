/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SteppedRollouts that there are, found by their own name and by that of their target; with
 * each what the leader has under way for it. Of several on one target the oldest counts.
 */
#ifndef SW_STEPPING_INDEX_H
#define SW_STEPPING_INDEX_H

#include "look.h"
#include "plan.h"

struct step_entry {
    char *namespace_, *name, *uid;
    int64_t created_us;
    bool has_target; /* targetRef names a kind that we know */
    enum step_target_kind target_kind;
    char *target_name;
    uint64_t number; /* no two of a process are alike: another one under the same name is another */
    struct step_entry *next_by_name, *next_by_target;
    /* shell.c: on the leader, from the first run on */
    struct step_memory *memory;
    char *look_error;               /* why the last one failed; NULL: it did not */
    struct step_look *look;         /* the last one; NULL: none, or something was written since */
    struct step_looking *looking;   /* one for the plan */
    struct step_rounding *rounding; /* rounds.c */
    int64_t stop_seen_us;           /* when a delta first showed the stop; 0: not yet */
    bool is_stopping;               /* held at a stop; how far it went beyond is not known yet */
};

struct step_index;

SW_NONNULL struct step_index *step_index_new(void);
/* What hangs on the entries is freed already. Takes NULL; returns NULL. */
struct step_index *step_index_free(struct step_index *index);
struct step_entry *step_index_get(const struct step_index *index, const char *namespace_,
                                  const char *name);
/* It has come, or has changed. */
SW_NONNULL struct step_entry *step_index_put(struct step_index *index,
                                             const struct stepped *object);
/* Frees it; what hangs on it is freed already. */
void step_index_remove(struct step_index *index, struct step_entry *entry);

/* The one that counts for a target; NULL: nobody steps it. */
struct step_entry *step_index_oldest(const struct step_index *index, enum step_target_kind kind,
                                     const char *namespace_, const char *target_name);
typedef void (*step_entry_fn)(void *arg, struct step_entry *entry);
void step_index_each_of(const struct step_index *index, enum step_target_kind kind,
                        const char *namespace_, const char *target_name, step_entry_fn fn,
                        void *arg);
void step_index_each(const struct step_index *index, step_entry_fn fn, void *arg);

#endif
