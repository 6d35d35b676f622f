/* SPDX-License-Identifier: Apache-2.0 */
/* What the API server fills into the built-in kinds other than Pods (defaults_pod.c). */
#include <ctype.h>
#include <string.h>

#include "base/util.h"
#include "document.h"
#include "kinds.h"

/* ---- workloads ---- */

static void default_template(json_t *spec)
{
    sw_sim_default_pod_spec(sw_sim_at(spec, "template.spec"));
}

void sw_sim_default_deployment(json_t *object)
{
    json_t *spec = sw_sim_need_object(object, "spec");
    json_t *strategy = spec ? sw_sim_need_object(spec, "strategy") : NULL;
    if (!strategy) {
        return;
    }
    sw_sim_default_int(spec, "replicas", 1);
    sw_sim_default_text(strategy, "type", "RollingUpdate");
    if (strcmp(sw_sim_text_at(strategy, "type"), "RollingUpdate") == 0) {
        json_t *rolling = sw_sim_need_object(strategy, "rollingUpdate");
        if (rolling) {
            sw_sim_default_text(rolling, "maxUnavailable", "25%");
            sw_sim_default_text(rolling, "maxSurge", "25%");
        }
    }
    sw_sim_default_int(spec, "revisionHistoryLimit", 10);
    sw_sim_default_int(spec, "progressDeadlineSeconds", 600);
    default_template(spec);
}

void sw_sim_default_replicaset(json_t *object)
{
    json_t *spec = sw_sim_need_object(object, "spec");
    if (spec) {
        sw_sim_default_int(spec, "replicas", 1);
        default_template(spec);
    }
}

static void default_claim(json_t *claim)
{
    sw_sim_default_text(claim, "apiVersion", "v1");
    sw_sim_default_text(claim, "kind", "PersistentVolumeClaim");
    json_t *spec = sw_sim_need_object(claim, "spec");
    json_t *status = sw_sim_need_object(claim, "status");
    if (spec && status) {
        sw_sim_default_text(spec, "volumeMode", "Filesystem");
        sw_sim_default_text(status, "phase", "Pending");
    }
}

void sw_sim_default_statefulset(json_t *object)
{
    json_t *spec = sw_sim_need_object(object, "spec");
    json_t *strategy = spec ? sw_sim_need_object(spec, "updateStrategy") : NULL;
    if (!strategy) {
        return;
    }
    sw_sim_default_text(spec, "podManagementPolicy", "OrderedReady");
    if (sw_sim_is_unset(strategy, "type")) {
        json_object_set_new(strategy, "type", json_string("RollingUpdate"));
        sw_sim_need_object(strategy, "rollingUpdate");
    }
    json_t *rolling = sw_sim_at(strategy, "rollingUpdate");
    if (rolling && strcmp(sw_sim_text_at(strategy, "type"), "RollingUpdate") == 0) {
        sw_sim_default_int(rolling, "partition", 0);
    }
    sw_sim_default_int(spec, "replicas", 1);
    sw_sim_default_int(spec, "revisionHistoryLimit", 10);
    default_template(spec);
    size_t i;
    json_t *claim;
    json_array_foreach(json_object_get(spec, "volumeClaimTemplates"), i, claim)
    {
        default_claim(claim);
    }
}

void sw_sim_default_daemonset(json_t *object)
{
    json_t *spec = sw_sim_need_object(object, "spec");
    json_t *strategy = spec ? sw_sim_need_object(spec, "updateStrategy") : NULL;
    if (!strategy) {
        return;
    }
    sw_sim_default_text(strategy, "type", "RollingUpdate");
    if (strcmp(sw_sim_text_at(strategy, "type"), "RollingUpdate") == 0) {
        json_t *rolling = sw_sim_need_object(strategy, "rollingUpdate");
        if (rolling) {
            sw_sim_default_int(rolling, "maxUnavailable", 1);
        }
    }
    sw_sim_default_int(spec, "revisionHistoryLimit", 10);
    default_template(spec);
}

/* ---- core ---- */

static void default_service_port(json_t *port)
{
    sw_sim_default_text(port, "protocol", "TCP");
    if (sw_sim_is_unset(port, "targetPort") || sw_sim_int_at(port, "targetPort", 1) == 0) {
        json_object_set_new(port, "targetPort", json_integer(sw_sim_int_at(port, "port", 0)));
    }
}

void sw_sim_default_service(json_t *object)
{
    json_t *spec = sw_sim_need_object(object, "spec");
    if (!spec) {
        return;
    }
    sw_sim_default_text(spec, "sessionAffinity", "None");
    if (strcmp(sw_sim_text_at(spec, "sessionAffinity"), "ClientIP") != 0) {
        json_object_del(spec, "sessionAffinityConfig");
    } else if (sw_sim_int_at(spec, "sessionAffinityConfig.clientIP.timeoutSeconds", -1) < 0) {
        json_object_set_new(spec, "sessionAffinityConfig",
                            json_pack("{s:{s:i}}", "clientIP", "timeoutSeconds", 10800));
    }
    sw_sim_default_text(spec, "type", "ClusterIP");
    const char *type = sw_sim_text_at(spec, "type");
    if (strcmp(type, "NodePort") == 0 || strcmp(type, "LoadBalancer") == 0) {
        sw_sim_default_text(spec, "externalTrafficPolicy", "Cluster");
    }
    size_t i;
    json_t *port;
    json_array_foreach(json_object_get(spec, "ports"), i, port)
    {
        default_service_port(port);
    }
}

void sw_sim_default_endpoints(json_t *object)
{
    size_t i;
    json_t *subset;
    json_array_foreach(json_object_get(object, "subsets"), i, subset)
    {
        size_t p;
        json_t *port;
        json_array_foreach(json_object_get(subset, "ports"), p, port)
        {
            sw_sim_default_text(port, "protocol", "TCP");
        }
    }
}

static char *encode_base64(const char *bytes, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = sw_malloc((len + 2) / 3 * 4 + 1);
    size_t at = 0;
    for (size_t i = 0; i < len; i += 3) {
        uint32_t group = 0;
        for (size_t b = 0; b < 3; b++) {
            group = group << 8 | (i + b < len ? (unsigned char)bytes[i + b] : 0);
        }
        for (size_t d = 0; d < 4; d++) {
            bool is_padding = i + d > len;
            text[at++] = is_padding ? '=' : digits[group >> (18 - 6 * d) & 63];
        }
    }
    text[at] = '\0';
    return text;
}

/* What is given as text is kept as bytes. */
static void encode_texts(json_t *object, const json_t *texts)
{
    json_t *data = sw_sim_need_object(object, "data");
    const char *name;
    json_t *text;
    json_object_foreach((json_t *)(uintptr_t)texts, name, text)
    {
        size_t len = json_string_length(text);
        char *encoded = encode_base64(json_string_value(text), len);
        json_object_set_new(data, name, json_string(encoded));
        sw_free(encoded);
    }
}

void sw_sim_default_secret(json_t *object)
{
    json_t *texts = sw_sim_at(object, "stringData");
    if (texts) {
        encode_texts(object, texts);
        json_object_del(object, "stringData");
    }
    sw_sim_default_text(object, "type", "Opaque");
}

void sw_sim_default_namespace(json_t *object)
{
    json_t *status = sw_sim_need_object(object, "status");
    json_t *spec = sw_sim_need_object(object, "spec");
    if (status && spec) {
        sw_sim_default_text(status, "phase", "Active");
        if (!json_object_get(spec, "finalizers") && !sw_sim_at(object, "metadata.uid")) {
            json_object_set_new(spec, "finalizers", json_pack("[s]", "kubernetes"));
        }
    }
}

void sw_sim_default_node(json_t *object)
{
    json_t *status = sw_sim_at(object, "status");
    if (status && !sw_sim_at(status, "allocatable") && sw_sim_at(status, "capacity")) {
        json_object_set_new(status, "allocatable", json_deep_copy(sw_sim_at(status, "capacity")));
    }
}

/* ---- what extends the API ---- */

void sw_sim_default_crd(json_t *object)
{
    json_t *spec = sw_sim_need_object(object, "spec");
    json_t *names = spec ? sw_sim_need_object(spec, "names") : NULL;
    if (!names) {
        return;
    }
    const char *kind = sw_sim_text_at(names, "kind");
    if (*kind && sw_sim_is_unset(names, "singular")) {
        char *lower = sw_strdup(kind);
        for (char *c = lower; *c; c++) {
            *c = (char)tolower((unsigned char)*c);
        }
        json_object_set_new(names, "singular", json_string(lower));
        sw_free(lower);
    }
    if (*kind && sw_sim_is_unset(names, "listKind")) {
        json_object_set_new(names, "listKind", json_sprintf("%sList", kind));
    }
    json_t *conversion = sw_sim_need_object(spec, "conversion");
    if (conversion) {
        sw_sim_default_text(conversion, "strategy", "None");
    }
}

static void default_webhook(json_t *webhook, bool is_mutating)
{
    if (!json_is_object(webhook)) {
        return;
    }
    sw_sim_default_text(webhook, "failurePolicy", "Fail");
    sw_sim_default_text(webhook, "matchPolicy", "Equivalent");
    sw_sim_need_object(webhook, "namespaceSelector");
    sw_sim_need_object(webhook, "objectSelector");
    sw_sim_default_int(webhook, "timeoutSeconds", 10);
    if (is_mutating) {
        sw_sim_default_text(webhook, "reinvocationPolicy", "Never");
    }
    json_t *service = sw_sim_at(webhook, "clientConfig.service");
    if (service) {
        sw_sim_default_int(service, "port", 443);
    }
    size_t i;
    json_t *rule;
    json_array_foreach(json_object_get(webhook, "rules"), i, rule)
    {
        sw_sim_default_text(rule, "scope", "*");
    }
}

static void default_webhooks(json_t *object, bool is_mutating)
{
    size_t i;
    json_t *webhook;
    json_array_foreach(json_object_get(object, "webhooks"), i, webhook)
    {
        default_webhook(webhook, is_mutating);
    }
}

void sw_sim_default_mutating_webhooks(json_t *object)
{
    default_webhooks(object, true);
}

void sw_sim_default_validating_webhooks(json_t *object)
{
    default_webhooks(object, false);
}

void sw_sim_default_binding(json_t *object)
{
    json_t *role = sw_sim_at(object, "roleRef");
    if (role) {
        sw_sim_default_text(role, "apiGroup", "rbac.authorization.k8s.io");
    }
    size_t i;
    json_t *subject;
    json_array_foreach(json_object_get(object, "subjects"), i, subject)
    {
        bool is_account = strcmp(sw_sim_text_at(subject, "kind"), "ServiceAccount") == 0;
        if (!is_account) {
            sw_sim_default_text(subject, "apiGroup", "rbac.authorization.k8s.io");
        }
    }
}
