/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission webhooks (admission.k8s.io/v1). A module registers a path, what it wants to be asked
 * about, and a handler that answers at once, from memory. It must not remember anything of a
 * review: the write may never happen.
 * https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/
 */
#ifndef SLIPWAY_ADMISSION_H
#define SLIPWAY_ADMISSION_H

#include <stdbool.h>

#include <slipway/json.h>
#include <slipway/kind.h>
#include <slipway/module.h>

enum sw_operation {
    SW_OPERATION_CREATE,
    SW_OPERATION_UPDATE,
    SW_OPERATION_DELETE,
};

struct sw_review {
    enum sw_operation operation;
    const char *namespace_; /* request.namespace */
    const char *name;       /* "" with generateName */
    const char *username;
    const char *field_manager; /* request.options.fieldManager; "" */
    bool is_dry_run;
    const struct sw_object
        *object; /* NULL on DELETE. Its namespace_ is the request's where the object has none */
    const struct sw_object *old; /* NULL on CREATE */
    bool has_annotations; /* object has metadata.annotations: an "add" below it is possible */
    struct sw_arena *arena;
};

/* Filled by the handler; zeroed means: allowed, unchanged, silent. Strings and values in the
 * review's arena. */
struct sw_review_answer {
    bool is_denied;
    int deny_status; /* 403 where 0 */
    const char *deny_message;
    struct sw_json *patch;   /* array of RFC 6902 operations; NULL or empty: none. Mutating only */
    const char *warnings[4]; /* at most 120 characters are shown; longer ones are cut */
};

/* Before every kind that the module watches is synced, reviews are answered with HTTP 503 without
 * asking. */
typedef void (*sw_review_fn)(struct sw_instance *self, const struct sw_review *review,
                             struct sw_review_answer *answer);

struct sw_admission {
    const char *path;           /* "/mutate-apps-v1-deployment" */
    const char *webhook_name;   /* in the webhook configuration: "deployments.slipway.dev" */
    const struct sw_kind *kind; /* typed view of object and old */
    bool is_mutating;
    bool on_create, on_update, on_delete;
    bool is_reinvoked; /* reinvocationPolicy: IfNeeded */
    sw_review_fn fn;
};

/* In start. -EEXIST: the path is taken. Only admission.k8s.io/v1 is answered. Whatever else comes
 * to the path (another resource, version or operation, a subresource) is allowed as it is, without
 * asking. */
SW_API int sw_admission_register(struct sw_instance *self, const struct sw_admission *admission);

#endif
