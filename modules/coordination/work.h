/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the plan share: the memory of one namespace, and the working picture that one
 * run of coord_plan makes of snapshot and memory. Times in milliseconds are monotonic.
 *
 *   memory.c    the memory's life, and its union with the snapshot
 *   select.c    who selects whom; marks and owners
 *   state.c     what one Deployment is doing (section 2 of the behaviour)
 *   places.c    who keeps and who leaves a place in an active set
 *   queue.c     who waits, in which order, and who is next
 *   chain.c     the hand-over: take back, record, release
 *   rest.c      everybody else: held, marked, freed
 *   residual.c  what is left of a vanished coordination
 *   status.c    the status as it should be; status_json.c: as a patch
 *   answer.c    what an answer changes in the memory
 */
#ifndef SW_COORDINATION_WORK_H
#define SW_COORDINATION_WORK_H

#include <string.h>

#include <slipway/memory.h>

#include <slipway/time.h>

#include "plan.h"

#define NEVER UINT64_MAX
#define NO_TIME INT64_MIN /* where 0 is a condition's that was written without one */
#define SW_MIN(a, b) ((a) < (b) ? (a) : (b))
#define SW_MAX(a, b) ((a) > (b) ? (a) : (b))

/* ---- memory ---- */

/* Of one recorded name, while it leaves. */
struct leaver {
    char *name;
    uint64_t sent_epoch; /* the coordination's epoch when the write under way was sent */
    bool is_fenced;      /* own write on it, or 404, since the status was read */
    bool is_taken;       /* own take back of a complete one: goes on to (b) whatever comes */
    uint64_t taking;     /* number of that take back while it is under way; 0: none */
};

struct missing {
    char *name;
    uint64_t list;       /* number of the first list without it */
    uint64_t since_ms;   /* when that was */
    uint64_t asked_list; /* another list was asked for when this one was the last */
    bool is_vanished;
    bool is_named; /* in this run: an object bears its name */
};

/* To one object. */
struct requests {
    uint64_t writing; /* number of the action under way; 0: none */
    uint64_t reading;
    bool must_read;        /* before the next write */
    char *refused_version; /* a write on this version got a 409 */
    uint32_t failures;
    bool has_failed; /* since the last run: the next try waits */
    uint64_t retry_ms;
};

struct group_memory {
    char *name;
    char *uid;
    int64_t generation;
    char *version;         /* as last read, or as last written by us */
    char *read_version;    /* whose history the memory has */
    uint64_t epoch;        /* raised when somebody else has written it */
    uint64_t own_sequence; /* of our (b) that stands; 0: none */
    uint64_t sent_sequence;
    struct leaver *leavers;
    uint32_t leaver_count;
    struct requests requests;
    bool is_too_large; /* a status with lists was refused */
    /* the choice of the next one waits for somebody */
    uint64_t blocked_since_ms; /* NEVER */
    char *blocker;             /* named in the status, after some time; NULL */
    const char *blocked_text;  /* why; with a place for the name */
    uint64_t named_ms;
    uint64_t handing_since_ms; /* somebody leaves, or whoever came next is not released; NEVER */
    /* the first sight of its members: one remark for all */
    bool is_known;
    bool has_first; /* some of them are still to be paused */
    uint32_t first_paused;
};

struct member_memory {
    char *name;
    char *full; /* "namespace/name" */
    char *uid;
    char *version;
    uint32_t *groups; /* indices of those that select it; valid for that version and selection */
    uint32_t group_count;
    uint64_t selection;
    /* sightings */
    bool is_sighted;
    bool is_paused;
    int64_t generation;
    int64_t changed_generation;
    struct sw_hash128 template_hash;
    bool from_zero;          /* scaled up from nothing, and not yet complete since */
    uint64_t empty_since_ms; /* paused, observed and without Pods; NEVER */
    bool was_pending;
    /* history; also in the status, in whole seconds */
    bool has_history; /* read from the status, or known to have none */
    int64_t pending_since_us;
    int64_t started_us;
    int64_t finished_us;
    char failed_template[33];
    /* its turn */
    uint64_t complete_since_ms; /* NEVER */
    bool saw_incomplete;        /* so that the completion was our own observation */
    int32_t served; /* available Pods when it was last available; INT32_MAX: not known */
    int32_t updated_mark, available_mark; /* the most there ever were */
    uint64_t stalled_ms;                  /* so long without a new mark, while it could */
    uint64_t ticked_ms;
    bool is_ticking;
    /* ProgressDeadlineExceeded of this time speaks of an older template; NO_TIME */
    int64_t stale_deadline_us;
    char *known_version; /* the version that may be released; NULL: none */
    uint64_t known_sequence;
    uint32_t lost_releases;
    bool is_stranger; /* bears the name of a recorded one that is gone */
    struct requests requests;
    char *error;
    bool is_fenced; /* of a residual group: written once by us */
    bool is_first;  /* its pause is one of the first of its groups */
};

struct coord_memory {
    struct member_memory **members; /* sorted by name */
    uint32_t member_count;
    struct group_memory **groups; /* sorted by name */
    uint32_t group_count;
    struct missing *missing;
    uint32_t missing_count;
    uint64_t selection; /* raised when a coordination comes, goes or changes its spec */
    uint64_t sequence;  /* of (b) */
    uint64_t number;    /* of actions */
    uint32_t under_way;
};

/* ---- one run ---- */

struct group;

struct member {
    const struct coord_seen_deployment *seen; /* NULL: recorded, but not there */
    const struct sw_deployment *d;
    const char *name;
    struct member_memory *m;
    struct group **groups; /* that select it, by name */
    uint32_t group_count;
    int64_t order;
    int64_t skip_us;
    /* what is on it */
    const char *held_by;
    const char *released_by;
    const char *marked;
    bool has_hold;  /* held-by names us */
    bool has_right; /* released-by names us */
    bool is_users_pause;
    bool is_held;     /* another policy holds it, or has paused what we let roll and does not say so
                         any more: it is about to let it go on */
    bool is_given_up; /* because what it would roll to has failed */
    /* what should be */
    const char *owners;
    const char *marks; /* the names alone, as the mark shows them */
    bool rests_running;
    /* state; see state.c */
    bool is_leaving_cluster; /* deletionTimestamp */
    bool is_observed, is_new, is_outdated, is_complete, is_done, is_pending, is_moving, is_rolling;
    bool is_settled, is_unavailable, is_failed, is_aside, is_empty;
    bool is_counted_by_guard;
    /* decisions */
    bool is_recorded;    /* in some coordination */
    bool is_active;      /* keeps its place in all of its coordinations */
    bool is_confirmed;   /* bears the right, and nothing contradicts it */
    bool is_finished;    /* its turn is over */
    bool leaves_all;     /* gives up every place it has */
    bool is_chosen;      /* gets a place in this run */
    bool is_spared;      /* found rolling, and first in line: not paused */
    bool is_waiting;     /* in the queue */
    int32_t position;    /* of the status that is being built */
    bool had_turn;       /* since the longest waiting one began to wait */
    const char *blocked; /* why it is passed over; NULL */
    uint32_t component;
};

/* A name in a recorded active set. */
struct place {
    const char *name;
    struct member *member; /* NULL: of another namespace */
    struct leaver *leaver;
    bool leaves;
    bool is_ready; /* (b) may drop it */
};

struct group {
    const struct coord_seen_group *seen;
    const struct coordination *c;
    struct group_memory *m;
    const char *name;
    struct member **members; /* selected and not being deleted, by name */
    uint32_t member_count;
    struct place *places;
    uint32_t place_count;
    uint32_t max_active;
    bool has_guard;
    bool rests_running;
    bool skips_failed;
    bool is_adopting; /* taken over from the reference, not all marked yet */
    bool may_record;  /* nothing under way on it, and the version is the one the chain builds on */
    uint32_t component;
    /* of its members without a place here */
    uint32_t unsettled_count;
    struct member *unsettled; /* one of them */
    uint32_t rolling_count;
    struct member *rolling;
    uint32_t unmarked_count; /* of all members */
    uint32_t unavailable_count;
    struct member *unavailable;
    const struct member *blocked_by; /* the guard keeps somebody waiting because of this one */
    const struct member *candidate;  /* would be next, but for the blocker */
    const struct member *blocker;    /* not settled, or not marked */
    const char *blocked_text;
    /* places */
    uint32_t kept;    /* active ones recorded here */
    uint32_t joining; /* active ones not yet recorded here */
    uint32_t unready; /* leaving, and not to be dropped yet */
    uint32_t chosen;
    uint32_t reserved;
    uint32_t spared; /* found rolling, with a place reserved: they wait for each other only */
    bool needs_record;
    bool is_in_chain;      /* between (a) and (b): a mere status write would be in the way */
    struct member **queue; /* waiting ones in order */
    uint32_t queue_count;
    uint32_t active_count;
};

struct work {
    struct coord_memory *memory;
    const struct coord_snapshot *snapshot;
    struct sw_arena *arena;
    struct coord_result *result;
    struct member *members; /* by name; those of the snapshot and those recorded */
    uint32_t member_count;
    struct group *groups; /* by name */
    uint32_t group_count;
    struct member **line; /* all that wait, in the namespace's one order */
    uint32_t line_count;
    struct coord_action **next_action;
    struct coord_remark **next_remark;
    uint64_t random;
};

/* memory.c */
void coord_memory_sync(struct work *work);
struct member *coord_memory_find(const struct work *work, const char *name);
struct member_memory *coord_memory_member(const struct coord_memory *memory, const char *name);
struct group_memory *coord_memory_group(const struct coord_memory *memory, const char *name);
struct leaver *coord_memory_leaver(struct group_memory *group, const char *name, bool is_added);
void coord_memory_forget_leaver(struct group_memory *group, const char *name);
struct missing *coord_memory_missing(struct coord_memory *memory, const char *name, size_t len);
void coord_memory_set(char **at, const char *text); /* frees the old one; text may be NULL */

/* select.c */
void coord_select(struct work *work);
bool coord_list_names(const char *list, const char *token);
/* The next token of a list joined by commas: its start, with *ret_len; NULL at the end. */
const char *coord_list_next(const char **list, size_t *ret_len);
/* "coordination/NAME" -> NAME with *ret_len; NULL for other owners. */
const char *coord_owner_name(const char *token, size_t len, size_t *ret_len);
bool coord_list_names_us(const char *list);

/* state.c */
void coord_states(struct work *work);
#define SECOND_US INT64_C(1000000)
/* Now, as it will read in a status: whole seconds. */
int64_t coord_state_now(const struct work *work);

/* places.c */
void coord_places(struct work *work);
struct place *coord_place(const struct group *group, const struct member *member);
/* Its pause was set by the reference, which put no mark on it, and is still to be marked. */
bool coord_is_adopted(const struct group *group, const struct member *member);
/* Active, and in the middle of its turn a person keeps it from going on: by its pause, or by
 * slipway.dev/hold. One that was complete finishes its turn. */
bool coord_is_stopped(const struct member *member);

/* queue.c */
void coord_queue(struct work *work);

/* chain.c */
void coord_chain(struct work *work);

/* rest.c */
void coord_rest(struct work *work);

/* residual.c */
void coord_residual(struct work *work);

/* status.c */
SW_NONNULL struct coord_status *coord_status_build(struct work *work, struct group *group,
                                                   bool is_record);
bool coord_status_differs(const struct coord_status *status, const struct coordination *stored);
void coord_statuses(struct work *work);
/* What is to be said once this status is stored. */
struct coord_remark *coord_status_remarks(struct work *work, struct group *group,
                                          const struct coord_status *status);

/* plan.c: actions and remarks */
/* How many bytes of text to show: at most so many, and no character in part. What a status says
 * must come back as it was sent, else it would be written for ever. */
size_t coord_cut(const char *text, size_t most);
void coord_look_again(struct work *work, uint64_t at_ms);
/* May a request go to it now? Asks for a read first where that is needed. */
bool coord_member_is_free(struct work *work, struct member *member);
bool coord_group_is_free(struct work *work, struct group *group);
/* NULL: not now. Otherwise the memory says that it is under way. */
struct coord_action *coord_hold(struct work *work, struct member *member, enum sw_hold_verb verb,
                                const char *failure);
/* A consistent read; false: not now. */
bool coord_get_member(struct work *work, struct member *member);
struct coord_action *coord_write_status(struct work *work, struct group *group, bool is_record);
SW_NONNULL SW_PRINTF(6, 7) struct coord_remark *coord_remark(
    struct sw_arena *arena, bool is_of_coordination, const char *name, enum sw_record_type type,
    const char *reason, const char *format, ...);
/* Returns the remark, which is about the rollout of that member. */
SW_NONNULL struct coord_remark *coord_about(const struct member *member,
                                            struct coord_remark *remark);
void coord_remark_add(struct coord_remark **list, struct coord_remark *remark);
/* The same remark on every coordination that selects it. */
void coord_say(struct work *work, struct coord_remark *remark);

#endif
