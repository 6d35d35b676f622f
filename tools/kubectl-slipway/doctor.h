/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What doctor judges, without I/O: from objects as the API server has them to findings, each with
 * what to do. Asking for them is run_doctor.c's.
 */
#ifndef KS_DOCTOR_H
#define KS_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slipway/attr.h>

struct ks_world;
struct sw_arena;
struct sw_json;

enum ks_result {
    KS_GOOD,
    KS_WARNING, /* works, but not as it should */
    KS_BAD,     /* does not work */
    KS_UNKNOWN, /* may not be looked at, or cannot be told from here */
};

struct ks_finding {
    struct ks_finding *next;
    enum ks_result result;
    const char *check; /* "webhook" */
    const char *what;
    const char *advice; /* ""; never with KS_GOOD */
};

struct ks_findings {
    struct sw_arena *arena;
    struct ks_finding *first, **last;
    size_t counts[KS_UNKNOWN + 1];
};

void ks_findings_init(struct ks_findings *findings, struct sw_arena *arena);
/* The advice; "" or the text that stands behind it in the call, made by format. */
SW_PRINTF(5, 6)
void ks_find(struct ks_findings *findings, enum ks_result result, const char *check,
             const char *advice, const char *format, ...);

/* A member that is text; "" else. */
const char *ks_text_at(const struct sw_json *object, const char *key);

/* The CustomResourceDefinition: established, served as v1, with what slipway writes. */
void ks_check_crd(struct ks_findings *findings, const struct sw_json *crd);
/* An entry of a MutatingWebhookConfiguration: rules, policies, the form of caBundle. *ret_ca_pem,
 * in the arena: the CA in it; NULL where there is none that can be read. */
void ks_check_webhook(struct ks_findings *findings, const char *configuration,
                      const struct sw_json *webhook, const char **ret_ca_pem);
/* Is it one of slipway's? */
bool ks_is_our_webhook(const struct sw_json *webhook);
/* Where stepping is used: has a MutatingWebhookConfiguration (is_mutating) or a
 * ValidatingWebhookConfiguration of the list what that module needs? */
void ks_check_stepping_webhooks(struct ks_findings *findings, const struct sw_json *list,
                                bool is_mutating);
/* slipway's own Deployment: replicas, version. */
void ks_check_replicas(struct ks_findings *findings, const struct sw_json *deployment,
                       const char *own_version);
/* lease NULL: there is none. replicas: of slipway's Deployment; -1: not known. */
void ks_check_lease(struct ks_findings *findings, const struct sw_json *lease, int64_t replicas,
                    int64_t now_us);
void ks_check_coordinations(struct ks_findings *findings, const struct ks_world *world,
                            int64_t now_us);
/* Says nothing where there are none. */
void ks_check_rollouts(struct ks_findings *findings, const struct ks_world *world, int64_t now_us);
/* "0.2.1" of "example.org/slipway:v0.2.1@sha256:..."; NULL: the image has no version as tag. */
const char *ks_image_version(struct sw_arena *arena, const char *image);

/* ---- permissions ---- */

enum ks_scope {
    KS_CLUSTER, /* wherever slipway looks */
    KS_OWN,     /* its own namespace */
};

struct ks_permission {
    const char *group, *resource, *subresource;
    const char *name; /* NULL: any */
    enum ks_scope scope;
    const char *verbs[5];
    const char *what_for;
    const char *only_with; /* a setting without which it is not needed; NULL: always */
};

/* Those that slipway's manifests give, which the tests compare. NULL resource at the end. */
extern const struct ks_permission ks_permissions[];
/* What is needed beside them where stepping is used. */
extern const struct ks_permission ks_stepping_permissions[];

#endif
