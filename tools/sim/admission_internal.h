/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Webhooks as they are configured (admission_hooks.c), the review that one gets and how its answer
 * is read (admission_review.c), and who is asked in which order (admission.c).
 */
#ifndef TOOLS_SIM_ADMISSION_INTERNAL_H
#define TOOLS_SIM_ADMISSION_INTERNAL_H

#include "api_internal.h"

struct sw_sim_hook {
    char *name;
    json_t *json; /* the webhook of the configuration */
    bool is_mutating;
    struct sw_selector *namespaces, *objects; /* NULL: all */
};

/* All webhooks of a moment, mutating and validating, in the order of configurations' names. */
struct sw_sim_hooks {
    unsigned refs;
    struct sw_sim_hook *at;
    size_t count;
};

struct sw_sim_hooks *sw_sim_hooks_read(const struct sw_sim_api *api);
void sw_sim_hooks_unref(struct sw_sim_hooks *hooks);

/* How a webhook is to see the object. */
struct sw_sim_view {
    const struct sw_sim_kind *kind; /* the version that its rules name */
};

/* Whether the webhook wants to be asked. */
bool sw_sim_hook_wants(const struct sw_sim_api *api, const struct sw_sim_hook *hook,
                       const struct sw_sim_admission_request *request,
                       struct sw_sim_view *ret_view);

/* The AdmissionReview; object may differ from the request's. */
char *sw_sim_review_text(const struct sw_sim_admission_request *request,
                         const struct sw_sim_view *view, const json_t *object, const char *uid,
                         size_t *ret_len);

struct sw_sim_verdict {
    json_t *refusal; /* NULL: allowed */
    char *failure;   /* the webhook could not be called, and why; its failurePolicy decides */
    json_t *patch;   /* NULL: none */
    json_t *warnings;
};

/* What is in the verdict is new. */
void sw_sim_verdict_read(const struct sw_sim_hook *hook, const char *uid, int status,
                         const char *body, size_t len, const char *why,
                         struct sw_sim_verdict *ret_verdict);
void sw_sim_verdict_done(struct sw_sim_verdict *verdict);

#endif
