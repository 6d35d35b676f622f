/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judgements.
 */
#include "doctor.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <slipway/json.h>

#include "base/error.h"
#include "base/time.h"
#include "base/util.h"
#include "kube/base64.h"
#include "net/tls.h"
#include "text.h"
#include "view.h"
#include "world.h"

#define WEBHOOK_NAME "deployments.slipway.dev"
#define WEBHOOK_PATH "/mutate-apps-v1-deployment"
#define ANSWER_US (30 * INT64_C(1000000)) /* so long a change may go unseen: a leader's lease */

#define LEASES "coordination.k8s.io", "leases", ""
#define ELECTION "leaderElection.enabled"

const struct ks_permission ks_permissions[] = {
    {"apps",
     "deployments",
     "",
     NULL,
     KS_CLUSTER,
     {"get", "list", "watch", "patch"},
     "pause and resume Deployments",
     NULL},
    {"apps.containerinfra.nl",
     "deploymentcoordinations",
     "",
     NULL,
     KS_CLUSTER,
     {"get", "list", "watch"},
     "read coordinations",
     NULL},
    {"apps.containerinfra.nl",
     "deploymentcoordinations",
     "status",
     NULL,
     KS_CLUSTER,
     {"patch"},
     "record whose turn it is",
     NULL},
    {"", "events", "", NULL, KS_CLUSTER, {"create", "patch"}, "write Events", "module events"},
    {LEASES, NULL, KS_OWN, {"create"}, "elect a leader", ELECTION},
    {LEASES, "slipway", KS_OWN, {"get", "update", "watch"}, "elect a leader", ELECTION},
    {"admissionregistration.k8s.io",
     "mutatingwebhookconfigurations",
     "",
     "slipway",
     KS_CLUSTER,
     {"get", "list", "watch", "patch"},
     "keep its webhook configuration right",
     "webhook.configurationName"},
    {"",
     "secrets",
     "",
     "slipway-webhook",
     KS_OWN,
     {"list", "watch", "patch"},
     "keep its certificate",
     "webhook.certificates: self"},
    {"authentication.k8s.io",
     "tokenreviews",
     "",
     NULL,
     KS_CLUSTER,
     {"create"},
     "know who asks for metrics",
     "metrics.secure"},
    {"authorization.k8s.io",
     "subjectaccessreviews",
     "",
     NULL,
     KS_CLUSTER,
     {"create"},
     "know who may read metrics",
     "metrics.secure"},
    {0},
};

#define STEPPED "slipway.dev", "steppedrollouts"

const struct ks_permission ks_stepping_permissions[] = {
    {STEPPED,
     "",
     NULL,
     KS_CLUSTER,
     {"get", "list", "watch", "patch"},
     "obey SteppedRollouts",
     NULL},
    {STEPPED, "status", NULL, KS_CLUSTER, {"patch"}, "record where a rollout stands", NULL},
    {"apps",
     "statefulsets",
     "",
     NULL,
     KS_CLUSTER,
     {"get", "list", "watch", "patch"},
     "step StatefulSets",
     NULL},
    {"apps",
     "daemonsets",
     "",
     NULL,
     KS_CLUSTER,
     {"get", "list", "watch", "patch"},
     "step DaemonSets",
     NULL},
    {"apps",
     "controllerrevisions",
     "",
     NULL,
     KS_CLUSTER,
     {"get", "list"},
     "see the revisions of StatefulSets and DaemonSets",
     NULL},
    {"apps",
     "replicasets",
     "",
     NULL,
     KS_CLUSTER,
     {"get", "list"},
     "see the revisions of Deployments",
     NULL},
    {"apps",
     "replicasets",
     "scale",
     NULL,
     KS_CLUSTER,
     {"patch"},
     "take a Deployment back in place",
     NULL},
    {"", "pods", "", NULL, KS_CLUSTER, {"get", "list"}, "see how new Pods do", NULL},
    {"",
     "pods",
     "",
     NULL,
     KS_CLUSTER,
     {"delete"},
     "step DaemonSets and take StatefulSets back",
     "StatefulSets and DaemonSets that are stepped"},
    {"flagger.app",
     "metrictemplates",
     "",
     NULL,
     KS_CLUSTER,
     {"get", "list", "watch"},
     "use MetricTemplates",
     "MetricTemplates"},
    {"admissionregistration.k8s.io",
     "validatingwebhookconfigurations",
     "",
     "slipway",
     KS_CLUSTER,
     {"get", "list", "watch", "patch"},
     "keep its webhook configuration right",
     "webhook.configurationName"},
    {0},
};

/* ---- findings ---- */

void ks_findings_init(struct ks_findings *findings, struct sw_arena *arena)
{
    *findings = (struct ks_findings){.arena = arena};
    findings->last = &findings->first;
}

void ks_find(struct ks_findings *findings, enum ks_result result, const char *check,
             const char *advice, const char *format, ...)
{
    struct ks_finding *finding = SW_ARENA_NEW(findings->arena, struct ks_finding);
    va_list args;

    va_start(args, format);
    *finding = (struct ks_finding){
        .result = result,
        .check = check,
        .what = sw_arena_vprintf(findings->arena, format, args),
        .advice = sw_arena_strdup(findings->arena, advice),
    };
    va_end(args);
    *findings->last = finding;
    findings->last = &finding->next;
    findings->counts[result]++;
}

const char *ks_text_at(const struct sw_json *object, const char *key)
{
    const char *text = sw_json_get_string(object, key);

    return text ? text : "";
}

static bool has_text(const struct sw_json *array, const char *wanted)
{
    for (size_t i = 0; i < sw_json_size(array); i++) {
        const char *text = sw_json_text(sw_json_element(array, i));
        if (text && (strcmp(text, wanted) == 0 || strcmp(text, "*") == 0))
            return true;
    }
    return false;
}

/* The element whose member `key` is that text; NULL. */
static const struct sw_json *element_of(const struct sw_json *array, const char *key,
                                        const char *text)
{
    for (size_t i = 0; i < sw_json_size(array); i++)
        if (strcmp(ks_text_at(sw_json_element(array, i), key), text) == 0)
            return sw_json_element(array, i);
    return NULL;
}

/* ---- the CRD ---- */

static const char apply_crd[] =
    "apply slipway's CRD: kubectl apply -f manifests/crds, or the chart "
    "slipway-crds";

static const char *missing_fields(struct ks_findings *findings, const struct sw_json *schema)
{
    static const char *const spec[] = {"maxActive", "suspend", "availabilityGuard", "atRest",
                                       "failurePolicy"};
    static const char *const status[] = {"activeDeployments", "turn", "observedGeneration"};
    const struct sw_json *properties = sw_json_get(schema, "properties");
    const struct sw_json *of_spec = sw_json_at(properties, "spec", "properties", NULL);
    const struct sw_json *of_status = sw_json_at(properties, "status", "properties", NULL);
    const char *missing = "";

    for (size_t i = 0; i < SW_ARRAY_SIZE(spec); i++)
        if (!sw_json_get(of_spec, spec[i]))
            missing = sw_arena_printf(findings->arena, "%s%sspec.%s", missing,
                                      missing[0] ? ", " : "", spec[i]);
    for (size_t i = 0; i < SW_ARRAY_SIZE(status); i++)
        if (!sw_json_get(of_status, status[i]))
            missing = sw_arena_printf(findings->arena, "%s%sstatus.%s", missing,
                                      missing[0] ? ", " : "", status[i]);
    return missing;
}

void ks_check_crd(struct ks_findings *findings, const struct sw_json *crd)
{
    const struct sw_json *established =
        element_of(sw_json_at(crd, "status", "conditions", NULL), "type", "Established");
    const struct sw_json *v1 = element_of(sw_json_at(crd, "spec", "versions", NULL), "name", "v1");

    if (!established || strcmp(ks_text_at(established, "status"), "True") != 0) {
        ks_find(findings, KS_BAD, "crd", "kubectl describe crd says why",
                "the CRD of DeploymentCoordination is not established");
        return;
    }
    if (!v1 || !sw_json_get_bool(v1, "served", false)) {
        ks_find(findings, KS_BAD, "crd", apply_crd,
                "the CRD of DeploymentCoordination does not serve v1");
        return;
    }
    if (!sw_json_at(v1, "subresources", "status", NULL)) {
        ks_find(findings, KS_BAD, "crd", apply_crd,
                "the CRD of DeploymentCoordination has no subresource status");
        return;
    }
    const char *missing =
        missing_fields(findings, sw_json_at(v1, "schema", "openAPIV3Schema", NULL));
    if (missing[0])
        ks_find(findings, KS_BAD, "crd", apply_crd,
                "the CRD of DeploymentCoordination is another one's, or old: it drops %s", missing);
    else
        ks_find(findings, KS_GOOD, "crd", "", "the CRD of DeploymentCoordination is served as v1");
}

/* ---- the webhook configuration ---- */

bool ks_is_our_webhook(const struct sw_json *webhook)
{
    const struct sw_json *client = sw_json_get(webhook, "clientConfig");
    const char *path = ks_text_at(sw_json_get(client, "service"), "path");
    const char *url = ks_text_at(client, "url");
    size_t len = strlen(url), of_path = sizeof(WEBHOOK_PATH) - 1;

    return strcmp(ks_text_at(webhook, "name"), WEBHOOK_NAME) == 0 ||
           strcmp(path, WEBHOOK_PATH) == 0 ||
           (len > of_path && strcmp(url + len - of_path, WEBHOOK_PATH) == 0);
}

static bool has_rule(const struct sw_json *webhook, const char *operation, const char *group,
                     const char *version, const char *resource)
{
    const struct sw_json *rules = sw_json_get(webhook, "rules");

    for (size_t i = 0; i < sw_json_size(rules); i++) {
        const struct sw_json *rule = sw_json_element(rules, i);
        if (has_text(sw_json_get(rule, "apiGroups"), group) &&
            has_text(sw_json_get(rule, "apiVersions"), version) &&
            has_text(sw_json_get(rule, "resources"), resource) &&
            has_text(sw_json_get(rule, "operations"), operation))
            return true;
    }
    return false;
}

static void check_ca(struct ks_findings *findings, const char *label, const char *bundle,
                     const char **ret_ca_pem)
{
    static const char advice[] =
        "with webhook.configurationName slipway keeps it right; else put the CA of its "
        "certificate there, or let cert-manager do so";
    struct sw_tls_config *config;
    struct sw_error error = {0};
    char *pem;
    size_t len;

    if (!bundle[0]) {
        ks_find(findings, KS_BAD, "webhook", advice, "%s: caBundle is empty", label);
        return;
    }
    if (sw_base64_decode(bundle, strlen(bundle), &pem, &len)) {
        ks_find(findings, KS_BAD, "webhook", advice, "%s: caBundle is no Base64", label);
        return;
    }
    const struct sw_tls_client_options options = {.ca_pem = pem};
    if (strlen(pem) != len || sw_tls_client_config_new(&options, &config, &error)) {
        ks_find(findings, KS_BAD, "webhook", advice, "%s: caBundle cannot be used: %s", label,
                error.text[0] ? error.text : "it is no text");
    } else {
        *ret_ca_pem = sw_arena_strdup(findings->arena, pem);
        sw_tls_config_unref(config);
    }
    sw_free(pem);
}

static const char apply[] = "set it as slipway's manifests have it, or let slipway do so "
                            "(webhook.configurationName)";

void ks_check_webhook(struct ks_findings *findings, const char *configuration,
                      const struct sw_json *webhook, const char **ret_ca_pem)
{
    const char *label = sw_arena_printf(findings->arena, "webhook %s of %s",
                                        ks_text_at(webhook, "name"), configuration);
    size_t before = findings->counts[KS_BAD] + findings->counts[KS_WARNING];

    *ret_ca_pem = NULL;
    check_ca(findings, label, ks_text_at(sw_json_get(webhook, "clientConfig"), "caBundle"),
             ret_ca_pem);
    if (!has_rule(webhook, "CREATE", "apps", "v1", "deployments") ||
        !has_rule(webhook, "UPDATE", "apps", "v1", "deployments"))
        ks_find(findings, KS_BAD, "webhook", apply,
                "%s: its rules do not name both CREATE and UPDATE of apps/v1 deployments", label);
    if (strcmp(ks_text_at(webhook, "reinvocationPolicy"), "IfNeeded") != 0)
        ks_find(findings, KS_WARNING, "webhook", apply,
                "%s: reinvocationPolicy is not IfNeeded: a template that another webhook changes "
                "after slipway is not seen",
                label);
    if (findings->counts[KS_BAD] + findings->counts[KS_WARNING] == before)
        ks_find(findings, KS_GOOD, "webhook", "", "%s is as it should be (failurePolicy %s)", label,
                ks_text_at(webhook, "failurePolicy"));
}

/* ---- the webhooks of stepping ---- */

static const struct stepping_webhook {
    const char *name, *group, *version, *resource;
    bool is_mutating;
    const char *otherwise;
} stepping_webhooks[] = {
    {"statefulsets.slipway.dev", "apps", "v1", "statefulsets", true,
     "a new template of a StatefulSet rolls before it is held"},
    {"daemonsets.slipway.dev", "apps", "v1", "daemonsets", true,
     "a new template of a DaemonSet rolls before it is held"},
    {"steppedrollouts.slipway.dev", "slipway.dev", "v1alpha1", "steppedrollouts", false,
     "a mistake in a SteppedRollout is seen in its conditions only"},
};

/* The entry of that name in one of the configurations; NULL. */
static const struct sw_json *webhook_named(const struct sw_json *list, const char *name,
                                           const char **ret_configuration)
{
    const struct sw_json *items = sw_json_get(list, "items");

    for (size_t i = 0; i < sw_json_size(items); i++) {
        const struct sw_json *item = sw_json_element(items, i);
        const struct sw_json *found = element_of(sw_json_get(item, "webhooks"), "name", name);
        *ret_configuration = ks_text_at(sw_json_get(item, "metadata"), "name");
        if (found)
            return found;
    }
    return NULL;
}

static void check_stepping_webhook(struct ks_findings *findings, const struct sw_json *list,
                                   const struct stepping_webhook *wanted)
{
    const char *configuration = "", *ca_pem;
    const struct sw_json *webhook = webhook_named(list, wanted->name, &configuration);
    size_t before = findings->counts[KS_BAD] + findings->counts[KS_WARNING];

    if (!webhook) {
        ks_find(findings, wanted->is_mutating ? KS_BAD : KS_WARNING, "webhook",
                "set modules.stepping.enabled of the chart, or apply install-stepping.yaml",
                "no configuration has the webhook %s: %s", wanted->name, wanted->otherwise);
        return;
    }
    const char *label =
        sw_arena_printf(findings->arena, "webhook %s of %s", wanted->name, configuration);
    check_ca(findings, label, ks_text_at(sw_json_get(webhook, "clientConfig"), "caBundle"),
             &ca_pem);
    if (!has_rule(webhook, "CREATE", wanted->group, wanted->version, wanted->resource) ||
        !has_rule(webhook, "UPDATE", wanted->group, wanted->version, wanted->resource))
        ks_find(findings, KS_BAD, "webhook", apply,
                "%s: its rules do not name both CREATE and UPDATE of %s/%s %s", label,
                wanted->group, wanted->version, wanted->resource);
    if (wanted->is_mutating && strcmp(ks_text_at(webhook, "reinvocationPolicy"), "IfNeeded") != 0)
        ks_find(findings, KS_WARNING, "webhook", apply,
                "%s: reinvocationPolicy is not IfNeeded: a template that another webhook changes "
                "after slipway is not seen",
                label);
    if (findings->counts[KS_BAD] + findings->counts[KS_WARNING] == before)
        ks_find(findings, KS_GOOD, "webhook", "", "%s is as it should be (failurePolicy %s)", label,
                ks_text_at(webhook, "failurePolicy"));
}

void ks_check_stepping_webhooks(struct ks_findings *findings, const struct sw_json *list,
                                bool is_mutating)
{
    for (size_t i = 0; i < SW_ARRAY_SIZE(stepping_webhooks); i++)
        if (stepping_webhooks[i].is_mutating == is_mutating)
            check_stepping_webhook(findings, list, &stepping_webhooks[i]);
}

/* ---- replicas ---- */

const char *ks_image_version(struct sw_arena *arena, const char *image)
{
    size_t len = strcspn(image, "@");
    const char *tag = image + len;

    while (tag > image && tag[-1] != ':' && tag[-1] != '/')
        tag--;
    if (tag == image || tag[-1] != ':')
        return NULL;
    if (*tag == 'v')
        tag++;
    const char *text = sw_arena_strndup(arena, tag, len - (size_t)(tag - image));
    unsigned major, minor;
    return sscanf(text, "%u.%u", &major, &minor) == 2 ? text : NULL;
}

static void check_version(struct ks_findings *findings, const char *image, const char *own)
{
    const char *version = ks_image_version(findings->arena, image);
    unsigned major = 0, minor = 0, own_major = 0, own_minor = 0;

    if (!version) {
        ks_find(findings, KS_UNKNOWN, "version", "", "the image %s does not say its version",
                image);
        return;
    }
    sscanf(version, "%u.%u", &major, &minor);
    sscanf(own, "%u.%u", &own_major, &own_minor);
    if (major == own_major && minor == own_minor)
        ks_find(findings, KS_GOOD, "version", "", "slipway is %s, this plugin %s", version, own);
    else
        ks_find(findings, KS_WARNING, "version",
                "use the plugin that was released with that slipway: another one may read its "
                "status wrongly",
                "slipway is %s, this plugin %s", version, own);
}

void ks_check_replicas(struct ks_findings *findings, const struct sw_json *deployment,
                       const char *own_version)
{
    const struct sw_json *metadata = sw_json_get(deployment, "metadata");
    const struct sw_json *status = sw_json_get(deployment, "status");
    const char *namespace_ = ks_text_at(metadata, "namespace"),
               *name = ks_text_at(metadata, "name");
    int64_t want = sw_json_get_int(sw_json_get(deployment, "spec"), "replicas", 1);
    int64_t ready = sw_json_get_int(status, "readyReplicas", 0);
    int64_t updated = sw_json_get_int(status, "updatedReplicas", 0);
    const char *logs = sw_arena_printf(
        findings->arena, "kubectl describe deployment %s -n %s; kubectl logs deployment/%s -n %s",
        name, namespace_, name, namespace_);

    if (want == 0)
        ks_find(findings, KS_BAD, "replicas",
                sw_arena_printf(findings->arena, "kubectl scale deployment/%s -n %s --replicas=2",
                                name, namespace_),
                "Deployment %s/%s is scaled to zero: nobody hands on turns", namespace_, name);
    else if (ready == 0)
        ks_find(findings, KS_BAD, "replicas", logs,
                "Deployment %s/%s: none of %" PRId64 " replicas is ready", namespace_, name, want);
    else if (ready < want)
        ks_find(findings, KS_WARNING, "replicas", logs,
                "Deployment %s/%s: %" PRId64 " of %" PRId64 " replicas are ready", namespace_, name,
                ready, want);
    else
        ks_find(findings, KS_GOOD, "replicas", "",
                "Deployment %s/%s: %" PRId64 " of %" PRId64 " replicas are ready", namespace_, name,
                ready, want);
    if (updated < want && want > 0)
        ks_find(findings, KS_WARNING, "version", "wait until its own rollout is over",
                "Deployment %s/%s is being updated: replicas of two versions run", namespace_,
                name);
    const struct sw_json *containers =
        sw_json_at(deployment, "spec", "template", "spec", "containers", NULL);
    check_version(findings, ks_text_at(sw_json_element(containers, 0), "image"), own_version);
}

void ks_check_lease(struct ks_findings *findings, const struct sw_json *lease, int64_t replicas,
                    int64_t now_us)
{
    const struct sw_json *spec = sw_json_get(lease, "spec");
    const char *holder = ks_text_at(spec, "holderIdentity"),
               *renewed = ks_text_at(spec, "renewTime");
    int64_t seconds = sw_json_get_int(spec, "leaseDurationSeconds", 15), renewed_us = 0;
    char age[KS_DURATION_SIZE];

    if (!lease && replicas > 1) {
        ks_find(findings, KS_BAD, "lease", "run it with --leader-elect (leaderElection.enabled)",
                "there is no Lease, and several replicas: all of them write");
        return;
    }
    if (!lease) {
        ks_find(findings, KS_UNKNOWN, "lease", "",
                "there is no Lease: right for a single slipway without --leader-elect");
        return;
    }
    if (sw_time_parse(renewed, strlen(renewed), &renewed_us) || !holder[0]) {
        ks_find(findings, KS_BAD, "lease",
                "is any replica ready? kubectl logs of slipway says why none leads",
                "nobody holds the Lease: no slipway leads");
        return;
    }
    ks_duration(now_us - renewed_us, age);
    /* Half as much again for two clocks that differ. */
    if (now_us - renewed_us > seconds * 1500000)
        ks_find(findings, KS_BAD, "lease",
                "is any replica ready? kubectl logs of slipway says why none leads",
                "the Lease was renewed %s ago, by %s: no slipway leads", age, holder);
    else
        ks_find(findings, KS_GOOD, "lease", "", "%s leads", holder);
}

/* ---- coordinations ---- */

static void check_coordination(struct ks_findings *findings, const struct ks_group *group,
                               int64_t now_us)
{
    const struct coordination *c = group->c;
    const char *label =
        sw_arena_printf(findings->arena, "coordination %s/%s", c->meta.namespace_, c->meta.name);
    const struct sw_condition *degraded = sw_condition_get(&c->conditions, "Degraded");

    if (!c->selector.text)
        ks_find(findings, KS_WARNING, "coordinations",
                "name what it selects; {} is every Deployment of the namespace, which is what "
                "kube-deployment-coordinator takes an absent one for",
                "%s has no labelSelector: it selects nobody", label);
    else if (!group->selector)
        ks_find(findings, KS_BAD, "coordinations", "correct the selector", "%s: %s", label,
                group->selector_error);
    else if (c->observed_generation < c->meta.generation && now_us - c->meta.created_us > ANSWER_US)
        ks_find(findings, KS_BAD, "coordinations",
                "does slipway run, does it lead, and does it look at this namespace (--namespace)?",
                "%s has been changed, and slipway has not looked at it", label);
    else if (degraded && strcmp(degraded->status, "True") == 0)
        ks_find(findings, KS_WARNING, "coordinations",
                "kubectl slipway why DEPLOYMENT tells what it means for one of them",
                "%s is degraded: %s: %s", label, degraded->reason, degraded->message);
}

void ks_check_coordinations(struct ks_findings *findings, const struct ks_world *world,
                            int64_t now_us)
{
    size_t before = findings->counts[KS_BAD] + findings->counts[KS_WARNING];

    for (size_t i = 0; i < world->group_count; i++)
        check_coordination(findings, &world->groups[i], now_us);
    if (findings->counts[KS_BAD] + findings->counts[KS_WARNING] == before)
        ks_find(findings, KS_GOOD, "coordinations", "", "%zu coordination%s, none in trouble",
                world->group_count, world->group_count == 1 ? "" : "s");
}

/* ---- stepped rollouts ---- */

static void check_rollout(struct ks_findings *findings, const struct stepped *r, int64_t now_us)
{
    const char *label =
        sw_arena_printf(findings->arena, "SteppedRollout %s/%s", r->meta.namespace_, r->meta.name);
    const struct sw_condition *ready = sw_condition_get(&r->conditions, "Ready");

    if (r->observed_generation < r->meta.generation) {
        if (now_us - r->meta.created_us > ANSWER_US)
            ks_find(findings, KS_BAD, "rollouts",
                    "is the module stepping enabled (modules.stepping.enabled), does slipway lead, "
                    "and does it look at this namespace?",
                    "%s has been changed, and slipway has not looked at it", label);
    } else if (ready && strcmp(ready->status, "False") == 0) {
        ks_find(findings, KS_WARNING, "rollouts", "until then its target rolls natively, or stays",
                "%s is not obeyed: %s: %s", label, ready->reason, ready->message);
    } else if (strcmp(r->phase, "Failed") == 0) {
        ks_find(findings, KS_WARNING, "rollouts",
                "kubectl slipway why says which check; another template, or kubectl slipway retry",
                "%s has failed: %s", label, r->message);
    }
}

void ks_check_rollouts(struct ks_findings *findings, const struct ks_world *world, int64_t now_us)
{
    size_t before = findings->counts[KS_BAD] + findings->counts[KS_WARNING];

    for (size_t i = 0; i < world->rollout_count; i++)
        check_rollout(findings, world->rollouts[i], now_us);
    if (findings->counts[KS_BAD] + findings->counts[KS_WARNING] == before &&
        world->rollout_count > 0)
        ks_find(findings, KS_GOOD, "rollouts", "", "%zu SteppedRollout%s, none in trouble",
                world->rollout_count, world->rollout_count == 1 ? "" : "s");
}
