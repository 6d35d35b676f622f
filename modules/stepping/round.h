/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A round: the checks of one SteppedRollout, or the questions to its webhooks, all at the same
 * time, each with its own timeout. It answers with one result. Nothing is decided here: what a
 * failed round means is the plan's business (plan.h).
 *
 *     type               what is asked                          has_passed
 *     CONFIRM_ROLLOUT    confirm-rollout webhooks               all agreed
 *     PRE_ROLLOUT        pre-rollout webhooks                   all answered 2xx
 *     ANALYSIS           analysis.pods, metrics, rollout        all checks passed
 *     CONFIRM_STEP       confirm-step webhooks                  all agreed
 *     CONFIRM_PROMOTION  confirm-promotion webhooks             all agreed
 *     POST_ROLLOUT       post-rollout webhooks                  all answered 2xx
 *
 * With all but the last, the rollback webhooks are asked as well (as Flagger does, also while it
 * waits): the first that answers 2xx ends the round at once. One that does not answer asks for
 * nothing.
 *
 * A round without anything to ask ends as passed, with no checks, when the loop comes round again.
 *
 * The end comes exactly once, never from within step_runner_start, unless the round is cancelled.
 * Nobody waits for a hanging server longer than its timeouts: a webhook has timeout for each of
 * 1 + retries attempts and waits 1, 2, 4 ... 30 s between them; everything else has
 * STEP_CHECK_TIMEOUT_MS as a whole.
 */
#ifndef SW_STEPPING_ROUND_H
#define SW_STEPPING_ROUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slipway/module.h>

#include "kind.h"
#include "spec.h"

#define STEP_CHECK_TIMEOUT_MS 10000

enum step_round_type {
    STEP_ROUND_CONFIRM_ROLLOUT,
    STEP_ROUND_PRE_ROLLOUT,
    STEP_ROUND_ANALYSIS,
    STEP_ROUND_CONFIRM_STEP,
    STEP_ROUND_CONFIRM_PROMOTION,
    STEP_ROUND_POST_ROLLOUT,
};

/* What it is to ask, and about what. All is copied. */
struct step_round_order {
    enum step_round_type type;
    const struct step_spec *spec;
    const char *phase;         /* status.phase, for the payload */
    const char *checksum;      /* hash of the Pod template, for the payload */
    const char *pod_selector;  /* label selector of the new Pods, in text form, with the label of
                                  their revision; used by ANALYSIS where spec->has_pods, and
                                 fails then where it is NULL or "" */
    const char *pod_owner_uid; /* and only those that this one owns; "" or NULL: all of them */
};

struct step_round_result {
    enum step_round_type type;
    bool has_passed; /* false as well where a rollback was asked for */
    /* In the order Pods, metrics, webhooks, as the spec has them: what goes into status.checks.
     * Where a rollback was asked for, only those that had ended by then, and the webhook that did.
     */
    const struct step_check *checks;
    size_t check_count;
    const char *failed;      /* names of those that did not pass, "a, b"; "" */
    const char *words;       /* for people: "error-rate: 0.52 is not <= 0.01; gate: HTTP 403"; "" */
    const char *rollback_by; /* name of the rollback webhook that answered 2xx; "" */
};

/* result is borrowed for the call. Another round may be started from within; the runner may be
 * freed. */
typedef void (*step_round_fn)(struct sw_instance *self, void *arg,
                              const struct step_round_result *result);
/* One check has ended, before the round has; borrowed for the call. For metrics and the log;
 * nothing may be started, cancelled or freed from within. */
typedef void (*step_check_fn)(struct sw_instance *self, void *arg, const struct step_check *check,
                              uint64_t took_ms);

/* ---- of the module ---- */

struct step_rounds;

/* In the module's start; declares what it will read. */
SW_NONNULL struct step_rounds *step_rounds_new(struct sw_instance *self);
/* In the module's stop, when no answer comes any more: frees all runners as well, and touches no
 * request or alarm, which the core has dropped by then. Takes NULL; returns NULL. */
struct step_rounds *step_rounds_free(struct step_rounds *rounds);

/* ---- of one SteppedRollout ---- */

struct step_runner;

/* on_check may be NULL. */
SW_NONNULL struct step_runner *step_runner_new(struct step_rounds *rounds, step_round_fn on_end,
                                               step_check_fn on_check, void *arg);
/* Cancels. Takes NULL; returns NULL. Not in the module's stop: step_rounds_free does it. */
struct step_runner *step_runner_free(struct step_runner *runner);

/* -EBUSY: a round is under way. */
SW_MUST_USE int step_runner_start(struct step_runner *runner, const struct step_round_order *order);
/* Its end does not come. Nothing happens where none is under way. */
void step_runner_cancel(struct step_runner *runner);
bool step_runner_is_busy(const struct step_runner *runner);

/* Tells the event webhooks of the spec, and forgets about it: whether they answer is logged. At
 * most STEP_EVENTS_AT_ONCE are under way, what comes beyond is dropped and logged. Runs beside a
 * round. `phase` and `checksum` as in an order. */
#define STEP_EVENTS_AT_ONCE 1000
void step_rounds_tell(struct step_rounds *rounds, const struct step_spec *spec, const char *phase,
                      const char *checksum, bool is_warning, const char *message);

#endif
