/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission reviews: from a request to an answer, without a socket. Everything is decided in one
 * call, from memory. A review that cannot be read is a call failure for the API server (any status
 * but 200), and its failurePolicy decides.
 *
 *   status  when
 *   200     answered; also for what was not registered for: allowed, unchanged
 *   400     not JSON, not an admission.k8s.io/v1 AdmissionReview, no uid, an object that is none
 *   404     no module has registered the path
 *   405     not POST
 *   503     a kind is not listed yet, or our own name is not known
 */
#ifndef SW_RUNTIME_ADMISSION_H
#define SW_RUNTIME_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slipway/admission.h>

#include "runtime/registry.h"

struct sw_arena;
struct sw_buf;
struct sw_core;
struct sw_decoder;
struct sw_metric;

struct sw_admission_route {
    struct sw_registration registration;
    struct sw_admission admission; /* path and webhook_name follow the struct in memory */
    struct sw_decoder *decoder;
    struct sw_metric *answered, *bad, *unready; /* requests by code: 200, 400, 503 */
    struct sw_metric *latency;
};

struct sw_admission_request {
    const char *method;
    const char *path;
    const char *content_type; /* NULL: none */
    const char *body;
    size_t body_len;
    struct sw_arena *arena;
};

/* Appends the answer's body to out (empty before) and returns the status; *ret_content_type is a
 * constant. */
int sw_admission_answer(struct sw_core *core, const struct sw_admission_request *request,
                        struct sw_buf *out, const char **ret_content_type);

/* ---- for tests and the webhook configuration ---- */

/* Appends the AdmissionReview that answers the review with that uid. */
void sw_admission_write(struct sw_buf *out, struct sw_arena *arena, const char *uid,
                        const struct sw_review_answer *answer, bool is_mutating);

#endif
