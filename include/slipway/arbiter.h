/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hold and release. Policies are arbiters: pure functions that say whether a workload may roll. One
 * module, the hand (`pausing`), is the only writer of what pauses and resumes; policies ask it for
 * changes, each with the version of the object that they decided on. A workload rolls only when
 * nobody holds it, and the right to roll is written on the object:
 *
 *   slipway.dev/held-by         owners of the hold, "coordination/nginx,user"; only while paused
 *   slipway.dev/released-by     owners who let it roll
 *   slipway.dev/coordinated-by  names of the coordinations that select it: their mark
 *   slipway.dev/stepped-by      name of the SteppedRollout that steps it: its mark
 *   slipway.dev/fence           changes, so that older writes under way fail their precondition
 *   slipway.dev/hold            set by a person: held by "user", out of line, until removed
 *   slipway.dev/ignore          "true", set by a person: nobody selects it
 *   slipway.dev/skip            set by a person: RFC 3339 time; behind all that waited then
 *   slipway.dev/order           set by a person: integer; lower first
 *   slipway.dev/saved           JSON: what a module has changed in spec while it holds
 *
 * It may roll as soon as released-by names every owner that the marks name.
 *
 * What stands in slipway.dev/saved goes back into the object's spec when the hold ends, by whoever
 * ends it: the module, or `slipway release-all` when no module is there any more. null: the member
 * was absent and is removed again. Whoever puts it back removes the annotation in the same write.
 *
 *   Deployment               {"minReadySeconds": N|null, "progressDeadlineSeconds": N|null}
 *   StatefulSet, DaemonSet   {"updateStrategy": {...}|null}
 */
#ifndef SLIPWAY_ARBITER_H
#define SLIPWAY_ARBITER_H

#include <stdbool.h>

#include <slipway/json.h>
#include <slipway/module.h>
#include <slipway/object.h>
#include <slipway/write.h>

#define SW_HELD_BY "slipway.dev/held-by"
#define SW_RELEASED_BY "slipway.dev/released-by"
#define SW_COORDINATED_BY "slipway.dev/coordinated-by"
#define SW_STEPPED_BY "slipway.dev/stepped-by"
#define SW_SAVED "slipway.dev/saved"
#define SW_FENCE "slipway.dev/fence"
#define SW_HOLD_BY_USER "slipway.dev/hold"
#define SW_IGNORE "slipway.dev/ignore"
#define SW_SKIP "slipway.dev/skip"
#define SW_ORDER "slipway.dev/order"

/* ---- arbiters ---- */

enum sw_verdict {
    SW_VERDICT_FREE,
    SW_VERDICT_HOLD,             /* in its turn: keeps its place in a queue */
    SW_VERDICT_HOLD_OUT_OF_LINE, /* is passed over */
};

struct sw_question {
    const struct sw_object *object; /* as stored, or as submitted */
    const struct sw_object *old;    /* in a review of an update: what is stored; else NULL */
    bool is_review;
    struct sw_arena *arena; /* for the strings of the opinion */
};

struct sw_opinion {
    enum sw_verdict verdict;
    bool is_selected;   /* the arbiter has a say in this workload at all */
    bool rests_running; /* a selected one with nothing to roll is left unpaused */
    const char
        *owners; /* "coordination/nginx[,...]": who would stand in held-by; "" where not selected */
    const char *marks; /* owners that should be marked on it, "coordination/nginx[,...]"; "": none
                          of this policy; NULL: nothing to say of it */
    const char *words; /* for people: "position 2 of 3, behind nginx-a"; "" */
    bool has_given_up; /* beside SW_VERDICT_HOLD_OUT_OF_LINE: what it would roll to has failed, and
                          is held for that. Who has a turn loses it as failed, and is put aside for
                          as long as this is said. Without it one out of line only waits for
                          something, and queues again afterwards */
    /* Of a review only: */
    const char *refusal;   /* what is submitted is refused, with this message; NULL: it is not */
    const char *warning;   /* beside that of the hold; NULL: none */
    struct sw_json *patch; /* array of RFC 6902 operations that are added to the answer: what the
                              arbiter keeps as it is while it holds; NULL: none.
                              metadata.annotations is there when they are applied, and what is
                              stored of the annotations above is in it */
};

/* Pure: from memory, the same answer to the same question until something changes. *opinion is
 * zeroed with all strings "" (marks NULL). */
typedef void (*sw_arbiter_fn)(struct sw_instance *self, const struct sw_question *question,
                              struct sw_opinion *opinion);

SW_API int sw_arbiter_register(struct sw_instance *self, const struct sw_kind *kind,
                               sw_arbiter_fn fn);

/* The opinions of all arbiters of the object's kind but self's own, combined: the hardest verdict;
 * owners and words of those who hold, or of all while nobody holds, joined by "," and "; "; marks,
 * refusals and warnings joined; patches one after the other; is_selected and has_given_up if
 * anybody says so; rests_running if all that select it say so. */
SW_API void sw_arbiters_ask_others(struct sw_instance *self, const struct sw_question *question,
                                   struct sw_opinion *ret_opinion);
/* Of all, self's own included. */
SW_API void sw_arbiters_ask(struct sw_instance *self, const struct sw_question *question,
                            struct sw_opinion *ret_opinion);

/* An arbiter's opinion of this object may be another now, though the object itself has not changed:
 * its own resource has. Tells everybody else who listens for the kind, at once. To be called
 * whenever that is so, on every replica; the object need not exist. */
SW_API void sw_opinion_changed(struct sw_instance *self, const struct sw_kind *kind,
                               const char *namespace_, const char *name);
/* Put the key into a queue: the opinions are asked when it is its turn. */
typedef void (*sw_opinion_fn)(struct sw_instance *self, const char *namespace_, const char *name);
/* In start. */
SW_API int sw_on_opinion(struct sw_instance *self, const struct sw_kind *kind, sw_opinion_fn fn);

/* ---- the hand ---- */

enum sw_hold_verb {
    SW_HOLD_PAUSE, /* paused; held-by: owners and all others who hold; released-by removed. A pause
                      that is a user's (paused without held-by) is left alone: only released-by goes
                    */
    SW_HOLD_TAKE_BACK, /* released-by removed; nothing else changes: for one that may go on unpaused
                          (complete, at rest Running), or whose pause stays as it is */
    SW_HOLD_RELEASE,   /* unpaused, held-by removed, released-by: owners, and those of all other
                          arbiters that select it: they are free, so they let it roll as well.
                          SW_HELD if another arbiter or slipway.dev/hold holds it, or if the pause is
                          a user's */
    SW_HOLD_FREE,  /* our owners leave released-by and held-by; unpaused if nobody else holds. For
                      what has nothing to roll, or is selected no more. A user's pause is left alone
                    */
    SW_HOLD_FENCE, /* fence set to the given text; nothing else */
    SW_HOLD_MARK,  /* marks only */
    SW_HOLD_ADOPT, /* held-by: owners, on one that is paused without it (taken over from the
                      reference) */
};

struct sw_hold_request {
    const struct sw_kind *kind;
    const char *namespace_;
    const char *name;
    const char *resource_version; /* what was decided on; always a precondition */
    enum sw_hold_verb verb;
    const char *policy; /* whose owners these are; NULL: the asking module's name */
    const char *owners; /* the asking policy's: "coordination/nginx[,...]" */
    const char *marks;  /* owners of this policy, "coordination/nginx[,...]": its mark becomes this,
                           "" removes it; NULL leaves it */
    const char *fence;  /* SW_HOLD_FENCE; with other verbs set too unless NULL */
    const struct sw_json *also; /* a merge patch that goes with it in the same write, "spec" and
                                   "metadata": what the policy changes for as long as it holds. It
                                   is written also where the hold itself stays as it is, but not
                                   where the answer is SW_HELD. NULL: none */
};

/*
 * Policies call this. The core looks the object up, refuses with SW_CONFLICT (without a request) if
 * the store does not have exactly that version, with SW_NOT_FOUND if it has none, and asks the hand
 * what to write. Only what differs is patched, in one merge patch; where nothing would change the
 * answer is SW_UNCHANGED.
 */
SW_API SW_MUST_USE int sw_hold_send(struct sw_instance *self, const struct sw_hold_request *request,
                                    sw_answer_fn fn, void *arg);

/*
 * The hand says what a request means for the object as it is. SW_OK: *ret_patch, in the arena, is
 * the merge patch that the core sends for the asker, with request->resource_version as
 * precondition. SW_UNCHANGED, SW_HELD: nothing is sent, and that is the answer. Pure but for its
 * metrics.
 */
typedef enum sw_outcome (*sw_hand_fn)(struct sw_instance *self, struct sw_instance *asker,
                                      const struct sw_hold_request *request,
                                      const struct sw_object *object, struct sw_arena *arena,
                                      struct sw_json **ret_patch);
/* In start. -EEXIST: there is one already. */
SW_API int sw_hand_register(struct sw_instance *self, sw_hand_fn fn);

#endif
