/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the plan: what one run of it works on, and what its parts offer each other.
 *
 *     plan.c      the run: who may go on at all, people's annotations, leaving; requests
 *     underway.c  a template that is rolled out in steps: questions, advancing, analysing,
 * promoting failed.c    a template that failed: retreat, rollback, quarantine rest.c      the
 * promoted template, and the first sight of a target memory.c    what the leader remembers, and the
 * answers that change it status.c    the status: built, compared, as a patch
 */
#ifndef SW_STEPPING_WORK_H
#define SW_STEPPING_WORK_H

#include "mode.h"
#include "retreat.h"

#define STEP_NEVER UINT64_MAX
/* status.message until the wish is removed */
#define STEP_ABORTED "aborted by hand"
#define STEP_SECOND_US INT64_C(1000000)
/* What was read is read again after this while it is needed, and counts no more after that. */
#define STEP_LOOK_MS 2000
#define STEP_LOOK_OLD_MS 10000

/* Requests to one object: one at a time. */
struct step_slot {
    uint64_t writing; /* number of the action; 0: none */
    enum step_action_type type;
    char *version;           /* of the object when the last one was sent */
    enum sw_outcome outcome; /* of the last one */
    char *refusal;           /* why it was refused; NULL */
    unsigned failures;
    bool has_failed; /* and the time of the next try is not yet set */
    uint64_t retry_ms;
};

/* What the controller will have made of a bite. */
struct step_prediction {
    size_t count; /* 0: none */
    int32_t replicas;
    char *names[STEP_SIZES_MAX];
    int32_t wanted[STEP_SIZES_MAX];
};

struct step_memory {
    uint64_t number;
    struct step_slot target, own;
    int64_t began_us; /* when it first looked; 0: it has not yet */
    bool gives_anew;  /* what it found had stood still, and its deadline was nearly over */

    uint64_t round; /* under way; 0: none */
    enum step_round_type round_type;
    enum step_activity round_activity;
    char round_hash[33];
    int32_t round_step;

    struct sw_arena *result_arena; /* NULL: there is no result that is not yet written down */
    const struct step_round_result *result;
    bool is_result_sent; /* in the status that is under way, or whose answer did not come */
    int32_t sent_passed, sent_failed;
    int64_t sent_round_us;
    uint64_t ended_ms; /* when the last round ended; 0: none did */
    bool has_ended;    /* and neither ended_ms nor result_us is set */
    int64_t result_us; /* when the result came: the same in each write that tells of it, so that one
                          whose answer did not come is known again */

    char confirmed_hash[33]; /* what was agreed to, of this template at this step */
    int32_t confirmed_step;
    unsigned confirmed; /* bits by enum step_round_type */

    bool has_changed;       /* by a bite: what was read before does not count */
    uint64_t look_after_ms; /* reads must have begun after this */
    uint64_t advanced_ms;   /* a DaemonSet's Pods were deleted */
    struct step_prediction prediction;
    int misses;
    int32_t left;           /* Pods of a StatefulSet that were still to go; 0: not known */
    char *rollback_failure; /* why the last rollback was refused; NULL */
};

struct work {
    struct step_memory *memory;
    const struct step_snapshot *snapshot;
    struct sw_arena *arena;
    struct step_result *result;
    struct step_action **next_action;
    const struct stepped *s;
    const struct step_spec *spec;
    const struct step_target *t;
    enum step_mode mode;
    enum step_activity activity; /* as stored */
    int64_t now_us;              /* in whole seconds, as the API server keeps times */

    struct step_status next;     /* what the status is to be */
    struct step_remark *remarks; /* said when it has become so */
    bool has_checks;             /* next.checks differ */
    bool uses_result;            /* next says what the round has found */
    bool is_silent;              /* the status waits for the next run */
    const char *blocked;         /* who else holds it, while it would go on; NULL */
    const char *ready_status, *ready_reason, *ready_message;
};

/* ---- plan.c ---- */

void step_look_again(struct work *work, uint64_t after_ms);
SW_PRINTF(4, 5)
void step_say(struct work *work, enum sw_record_type type, const char *reason, const char *format,
              ...);
struct step_action *step_act(struct work *work, enum step_action_type type);
/* NULL: a request is under way, or it is too early for another try. */
struct step_action *step_act_on_target(struct work *work, enum step_action_type type);
void step_hold(struct work *work);
/* False, and a look is asked for: what is known of revisions is not fresh enough. */
bool step_has_looked(struct work *work);
const struct step_revision *step_newest(const struct work *work);
/* Of a complete target: the one that has all its Pods, read of the very object that is looked at: a
 * newer template may have come since, or before. NULL: a look is asked for. */
const struct step_revision *step_newest_complete(struct work *work);
void step_go(struct work *work, enum step_activity activity, const char *phase);
SW_PRINTF(2, 3) void step_fail(struct work *work, const char *format, ...);
bool step_is_late(struct work *work, int64_t since_us);
/* From when a deadline counts: the recorded time; or this leader's first look, where it found less
 * than a quarter of it left, and nothing that went on while nobody led. */
int64_t step_since(const struct work *work, int64_t recorded_us);
void step_cancel(struct work *work);

/* ---- the parts ---- */

void step_start(struct work *work); /* of a new template */
void step_under_way(struct work *work);
/* By hand: on to the next step, or to the end, without what is still to be asked or checked. */
void step_promote(struct work *work, bool is_full);
void step_quarantine(struct work *work);
/* Brings a failed one back as the spec says. */
void step_bring_back(struct work *work);
/* A StatefulSet's controller waits for Pods that will never be ready: they are deleted, unless they
 * are of the newest revision or of the promoted one. */
void step_clear(struct work *work);
void step_rest(struct work *work);
void step_first_sight(struct work *work);

/* ---- memory.c ---- */

void step_memory_set(char **text, const char *value); /* NULL: frees it */
void step_forget_result(struct step_memory *memory);
void step_forget_prediction(struct step_memory *memory);
bool step_is_free(struct work *work, struct step_slot *slot, const char *version,
                  enum step_action_type type);
void step_sent(struct step_slot *slot, const struct step_action *action);

/* ---- status.c ---- */

void step_status_begin(struct work *work);
/* The checks of a round take the place of those of the same name and type. */
void step_status_take_checks(struct work *work, const struct step_round_result *result);
void step_status_end(struct work *work);
/* The time of a transition: now, but never before the target was made. The API server's clock may
 * be ahead of ours, and the target would be taken for another one of its name for ever. */
int64_t step_after_making(const struct work *work);

#endif
