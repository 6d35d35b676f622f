/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a hold is on the object, and how it changes: pure functions, without I/O and without policy.
 * Owners are tokens joined by commas, "coordination/nginx,user"; the part before the "/" is the
 * policy they belong to.
 */
#ifndef SW_PAUSING_HOLD_H
#define SW_PAUSING_HOLD_H

#include <stdbool.h>

#include <slipway/admission.h>
#include <slipway/apps.h>
#include <slipway/arbiter.h>

/* ---- lists of tokens ---- */

bool hold_list_has(const char *list, const char *token);
/* Does any token belong to the policy: is it, or begins with it and "/"? */
bool hold_list_has_policy(const char *list, const char *policy);
/* Sorted, without repetitions; "" where both are empty. */
const char *hold_list_union(struct sw_arena *arena, const char *a, const char *b);
/* list without the tokens of the policy. */
const char *hold_list_without(struct sw_arena *arena, const char *list, const char *policy);

/* ---- what is on an object ---- */

/* The mark of a policy: names, where owners are "POLICY/NAME". A further policy is a further line.
 */
static const struct hold_policy {
    const char *name;
    const char *annotation;
} hold_policies[] = {
    {"coordination", SW_COORDINATED_BY},
    {"stepping", SW_STEPPED_BY},
};
#define HOLD_POLICIES (sizeof hold_policies / sizeof hold_policies[0])

/* Strings are never NULL; "" means that the annotation is absent. Empty annotations count as
 * absent. */
struct hold_state {
    bool is_paused;
    const char *held_by;
    const char *released_by;
    const char *marks[HOLD_POLICIES]; /* as they stand there: "nginx,api" */
    const char *fence;
    const char *saved; /* what a policy writes by `also`; no verb changes it */
};

void hold_state_of(const struct sw_deployment *deployment, struct hold_state *ret_state);
/* Paused without held-by: a person's, never ours to resume. */
bool hold_is_users_pause(const struct hold_state *state);
/* released-by names somebody, and every owner that the marks name. */
bool hold_is_released(const struct hold_state *state);
/* The owners that the marks name, but for those of a policy that has an owner in `known`: whoever
 * has left a mark, and is not among those who have spoken. known "": all of them. */
const char *hold_owners_of_marks(struct sw_arena *arena, const struct hold_state *state,
                                 const char *known);
/* "coordination/a,stepping/b" -> "a": the names of the policy's owners, as its mark shows them. */
const char *hold_names_of(struct sw_arena *arena, const char *owners, const char *policy);

/* ---- a change that a policy asks for ---- */

enum hold_outcome {
    HOLD_CHANGES,   /* *ret_state is what is to be written */
    HOLD_UNCHANGED, /* it is so already */
    HOLD_REFUSED,   /* a release, and somebody else holds it */
};

/* policy: whose tokens the request may add and remove. others: what all other arbiters say of it.
 * Strings of *ret_state are borrowed from the arguments or in the arena. */
enum hold_outcome hold_apply(struct sw_arena *arena, const struct hold_state *state,
                             const struct sw_hold_request *request, const char *policy,
                             const struct sw_opinion *others, struct hold_state *ret_state);
/* The merge patch (RFC 7396) from one state to another, together with also (NULL: nothing else);
 * what the hold says itself comes before what also says. NULL where nothing differs and nothing
 * else is to be written. */
struct sw_json *hold_merge_patch(struct sw_arena *arena, const struct hold_state *from,
                                 const struct hold_state *to, const struct sw_json *also);

/* ---- admission ---- */

/* The table of admission: answers a review of a Deployment by what is stored (review->old), not by
 * any cached status. opinion: what all arbiters say of the object as submitted; from the cache.
 * is_by_us: the user name and the field manager are ours; of what the arbiters keep as it is only
 * what belongs to a resumption is added then. Fills *answer (zeroed before); a hold is
 * said in its first warning, what the arbiters warn of in the second. */
void hold_review(const struct sw_review *review, const struct sw_opinion *opinion, bool is_by_us,
                 struct sw_review_answer *answer);

#endif
