/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is wrong with a webhook configuration, and the JSON patch that mends it. Pure.
 *
 * An entry is found by its name; where nobody has that, by the path that it asks, since a manifest
 * may call it otherwise (as one for kube-deployment-coordinator does). What slipway knows better
 * than whoever wrote the manifest is kept:
 *
 *   what                    is
 *   rules                   one rule: group, version and resource of the kind, the operations that
 *                           the module asked for, its scope ("*" means the same, and stays)
 *   reinvocationPolicy      IfNeeded or Never, as the module asked; of mutating webhooks
 *   clientConfig.caBundle   the CA that is given; left alone where none is, or where cert-manager
 *                           has been told to fill it in (an annotation on the object)
 *   clientConfig, the path  of the service: the module's; of the url: it ends in the module's, so
 *                           that a proxy may have one of its own before it
 *
 * All else is the operator's: failurePolicy, the selectors, timeoutSeconds, matchConditions, where
 * service or url point to, and every other entry.
 *
 * An entry that is missing is reported and not added. Whoever removed it wanted it gone, or the
 * manifest is of another release; and made up here it would have neither an address nor the
 * namespaceSelector and failurePolicy without which it could stop every write in the cluster.
 */
#ifndef SW_RUNTIME_WEBHOOK_MEND_H
#define SW_RUNTIME_WEBHOOK_MEND_H

#include <stdbool.h>
#include <stddef.h>

#include <slipway/kind.h>

struct sw_admission;
struct sw_arena;
struct sw_json;

struct sw_webhook_entry {
    const char *name;
    const char *reinvocation_policy;
    const char *ca_bundle; /* base64 */
    const char *url;       /* "": by a service */
    bool has_service;
    const char *service_path;
    struct sw_raw rules;
};

struct sw_webhook_object {
    struct sw_object meta;
    struct sw_list entries; /* struct sw_webhook_entry */
};

extern const struct sw_kind sw_kind_mutating_webhooks, sw_kind_validating_webhooks;

/* The entry for it, or NULL. */
const struct sw_webhook_entry *sw_webhook_find(const struct sw_webhook_object *object,
                                               const struct sw_admission *admission);

struct sw_webhook_mend {
    struct sw_json
        *patch;          /* with a test that each entry is still where it was; NULL: all is right */
    const char *changes; /* "deployments.slipway.dev: caBundle, rules"; "" */
    const char *missing; /* names of entries that are not there, with commas; "" */
    bool is_injected;    /* caBundle is cert-manager's to fill in */
};

/* wanted: those whose entries the object should have. ca_bundle: base64; NULL: left alone. The
 * result is in the arena. */
struct sw_webhook_mend sw_webhook_mend(struct sw_arena *arena,
                                       const struct sw_webhook_object *object,
                                       const struct sw_admission *const *wanted, size_t count,
                                       const char *ca_bundle);

#endif
