/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission: what becomes of a StatefulSet or DaemonSet that somebody submits, and which
 * SteppedRollouts are refused. Pure: decided by what is submitted, what is stored (as the review
 * carries it) and what the arbiters say.
 *
 *     stored      submitted                           becomes
 *     not ours    a new template that we hold         held in the same write; the strategy is saved
 *     ours        another strategy                    ours stays, with a warning; theirs is saved
 *     ours        a new template that we hold         held: nothing more is updated
 *     any         one that is refused                 denied
 *     any         annotations of ours                 as stored: nobody else grants or takes
 */
#ifndef SW_STEPPING_REVIEW_H
#define SW_STEPPING_REVIEW_H

#include <slipway/admission.h>
#include <slipway/arbiter.h>

/* Of an update or a creation by somebody else. name: of the SteppedRollout that counts for it;
 * NULL: there is none. opinion: of all arbiters. */
void step_review_set(const struct sw_review *review, const struct sw_opinion *opinion,
                     const char *name, struct sw_review_answer *answer);

/* older: name of an older SteppedRollout on the same target; NULL. has_target: false where it is
 * known that there is none. */
void step_review_stepped(const struct sw_review *review, const char *older, bool has_target,
                         struct sw_review_answer *answer);

#endif
