/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Webhooks: what is posted, and what an answer means. Pure; round.c does the posting.
 *
 * As Flagger does it, so that its load tester and gates serve unchanged: a POST of JSON with
 * Content-Type application/json, `name`, `namespace`, `phase`, `checksum` and, where there is any,
 * `metadata` (texts). A 2xx is a yes. Each attempt has the whole `timeout`; after no answer, 429
 * and 5xx but 501 it is tried again, `retries` times, after 1, 2, 4 ... 30 s (the defaults of
 * hashicorp/go-retryablehttp, which Flagger uses). Unlike there, Retry-After is not looked at.
 * disableTLS: the certificate is not verified. muteAlert is accepted and changes nothing: it is
 * about alerts that slipway does not send. Flagger: pkg/controller/webhook.go, which takes 200 to
 * 202 for a yes where its manual says 2xx.
 */
#ifndef SW_STEPPING_HOOK_H
#define SW_STEPPING_HOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slipway/arena.h>
#include <slipway/fetch.h>

#include "spec.h"

/* What is told of a SteppedRollout. */
struct step_hook_subject {
    const char *name, *namespace_;
    const char *phase;    /* status.phase; "" */
    const char *checksum; /* hash of the Pod template */
};

/* An event's. */
struct step_hook_event {
    const char *message;
    bool is_warning; /* eventType: "Normal" or "Warning" */
    int64_t wall_us;
};

/* The phase that Flagger posts to a webhook of this type while the status says `phase`: from
 * pre-rollout to promotion always Progressing, after it Succeeded, elsewhere the status's own. */
SW_NONNULL const char *step_hook_phase(enum step_hook_type type, const char *phase);

/* JSON text in the arena. event: of an event webhook; else NULL. An event's own members of metadata
 * go before those of the user. */
SW_NONNULL const char *step_hook_payload(const struct step_hook *hook,
                                         const struct step_hook_subject *subject,
                                         const struct step_hook_event *event,
                                         struct sw_arena *arena, size_t *ret_len);

/* A 2xx. */
bool step_hook_is_yes(const struct sw_fetch_answer *answer);
/* The same request may succeed when it is sent again. */
bool step_hook_may_repeat(const struct sw_fetch_answer *answer);
/* Before attempt number `attempt`, counted from 1: the first repetition is attempt 2. */
uint32_t step_hook_pause_ms(int32_t attempt);
/* For people: "HTTP 403: not before nine", "no answer within 10 s". */
SW_NONNULL const char *step_hook_words(const struct sw_fetch_answer *answer,
                                       struct sw_arena *arena);

#endif
