/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the API server fills into a Pod's specification, whether of a Pod or of a template, and what
 * only a Pod itself gets: there the default settings of the admission plugins come in as well,
 * since users meet them just as much (tolerations, priority); but not the service account and the
 * volume with its token, which the control plane that we compare with leaves out too.
 * https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/
 */
#include <string.h>

#include "base/util.h"
#include "document.h"
#include "kinds.h"

#define FILE_MODE 0644 /* of files in volumes from secrets, config maps and the like */

/* ---- containers ---- */

/* "latest" where no tag and no digest is named. */
static bool is_latest(const char *image)
{
    if (strchr(image, '@')) {
        return false;
    }
    const char *slash = strrchr(image, '/');
    const char *tag = strrchr(slash ? slash : image, ':');
    return !tag || strcmp(tag, ":latest") == 0;
}

static void default_http_get(json_t *action)
{
    json_t *get = sw_sim_at(action, "httpGet");
    if (get) {
        sw_sim_default_text(get, "path", "/");
        sw_sim_default_text(get, "scheme", "HTTP");
    }
}

static void default_number(json_t *object, const char *name, int64_t value)
{
    if (sw_sim_int_at(object, name, 0) == 0) {
        json_object_set_new(object, name, json_integer(value));
    }
}

static void default_probe(json_t *probe)
{
    if (!json_is_object(probe)) {
        return;
    }
    default_http_get(probe);
    default_number(probe, "timeoutSeconds", 1);
    default_number(probe, "periodSeconds", 10);
    default_number(probe, "successThreshold", 1);
    default_number(probe, "failureThreshold", 3);
}

static void default_field_ref(json_t *holder)
{
    json_t *field = sw_sim_at(holder, "fieldRef");
    if (field) {
        sw_sim_default_text(field, "apiVersion", "v1");
    }
}

static void default_ports(json_t *container, bool is_host_network)
{
    size_t i;
    json_t *port;
    json_array_foreach(json_object_get(container, "ports"), i, port)
    {
        sw_sim_default_text(port, "protocol", "TCP");
        if (is_host_network) {
            default_number(port, "hostPort", sw_sim_int_at(port, "containerPort", 0));
        }
    }
}

static void default_container(json_t *container, bool is_host_network)
{
    sw_sim_default_text(container, "terminationMessagePath", "/dev/termination-log");
    sw_sim_default_text(container, "terminationMessagePolicy", "File");
    sw_sim_default_text(container, "imagePullPolicy",
                        is_latest(sw_sim_text_at(container, "image")) ? "Always" : "IfNotPresent");
    sw_sim_need_object(container, "resources");
    default_ports(container, is_host_network);
    default_probe(json_object_get(container, "livenessProbe"));
    default_probe(json_object_get(container, "readinessProbe"));
    default_probe(json_object_get(container, "startupProbe"));
    default_http_get(sw_sim_at(container, "lifecycle.postStart"));
    default_http_get(sw_sim_at(container, "lifecycle.preStop"));
    size_t i;
    json_t *env;
    json_array_foreach(json_object_get(container, "env"), i, env)
    {
        default_field_ref(sw_sim_at(env, "valueFrom"));
    }
}

static void default_containers(json_t *list, bool is_host_network)
{
    size_t i;
    json_t *container;
    json_array_foreach(list, i, container)
    {
        default_container(container, is_host_network);
    }
}

/* ---- volumes ---- */

static void default_items(json_t *source)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(source, "items"), i, item)
    {
        default_field_ref(item);
    }
}

static void default_projected(json_t *projected)
{
    sw_sim_default_int(projected, "defaultMode", FILE_MODE);
    size_t i;
    json_t *source;
    json_array_foreach(json_object_get(projected, "sources"), i, source)
    {
        json_t *token = sw_sim_at(source, "serviceAccountToken");
        if (token) {
            sw_sim_default_int(token, "expirationSeconds", 3600);
        }
        default_items(sw_sim_at(source, "downwardAPI"));
    }
}

static bool has_source(json_t *volume)
{
    const char *name;
    json_t *value;
    json_object_foreach(volume, name, value)
    {
        if (strcmp(name, "name") != 0 && !json_is_null(value)) {
            return true;
        }
    }
    return false;
}

static void default_volume(json_t *volume)
{
    if (!json_is_object(volume)) {
        return;
    }
    if (!has_source(volume)) {
        json_object_set_new(volume, "emptyDir", json_object());
    }
    static const char *const with_mode[] = {"secret", "configMap", "downwardAPI"};
    for (size_t i = 0; i < SW_ARRAY_SIZE(with_mode); i++) {
        json_t *source = sw_sim_at(volume, with_mode[i]);
        if (source) {
            sw_sim_default_int(source, "defaultMode", FILE_MODE);
        }
    }
    default_items(sw_sim_at(volume, "downwardAPI"));
    json_t *projected = sw_sim_at(volume, "projected");
    if (projected) {
        default_projected(projected);
    }
    json_t *host_path = sw_sim_at(volume, "hostPath");
    if (host_path && sw_sim_is_unset(host_path, "type")) {
        json_object_set_new(host_path, "type", json_string(""));
    }
}

/* ---- the specification ---- */

/* The older name of the same field is written beside the newer one. */
static void mirror_service_account(json_t *spec)
{
    if (!sw_sim_is_unset(spec, "serviceAccountName")) {
        json_object_set(spec, "serviceAccount", json_object_get(spec, "serviceAccountName"));
    } else if (!sw_sim_is_unset(spec, "serviceAccount")) {
        json_object_set(spec, "serviceAccountName", json_object_get(spec, "serviceAccount"));
    }
}

void sw_sim_default_pod_spec(json_t *spec)
{
    if (!json_is_object(spec)) {
        return;
    }
    sw_sim_default_text(spec, "restartPolicy", "Always");
    sw_sim_default_text(spec, "dnsPolicy", "ClusterFirst");
    sw_sim_default_text(spec, "schedulerName", "default-scheduler");
    sw_sim_default_int(spec, "terminationGracePeriodSeconds", 30);
    sw_sim_need_object(spec, "securityContext");
    mirror_service_account(spec);
    bool is_host_network = sw_sim_bool_at(spec, "hostNetwork");
    default_containers(json_object_get(spec, "containers"), is_host_network);
    default_containers(json_object_get(spec, "initContainers"), is_host_network);
    size_t i;
    json_t *volume;
    json_array_foreach(json_object_get(spec, "volumes"), i, volume)
    {
        default_volume(volume);
    }
}

/* ---- a Pod itself ---- */

static void default_requests(json_t *list)
{
    size_t i;
    json_t *container;
    json_array_foreach(list, i, container)
    {
        json_t *resources = sw_sim_at(container, "resources");
        json_t *limits = sw_sim_at(resources, "limits");
        json_t *requests = limits ? sw_sim_need_object(resources, "requests") : NULL;
        if (requests) {
            json_object_update_missing(requests, limits);
        }
    }
}

static bool tolerates(const json_t *tolerations, const char *taint)
{
    size_t i;
    json_t *one;
    json_array_foreach(tolerations, i, one)
    {
        const char *key = sw_sim_text_at(one, "key");
        const char *effect = sw_sim_text_at(one, "effect");
        if ((!*key || strcmp(key, taint) == 0) && (!*effect || strcmp(effect, "NoExecute") == 0)) {
            return true;
        }
    }
    return false;
}

static void default_tolerations(json_t *spec)
{
    static const char *const taints[] = {"node.kubernetes.io/not-ready",
                                         "node.kubernetes.io/unreachable"};
    json_t *tolerations = json_object_get(spec, "tolerations");
    if (!json_is_array(tolerations)) {
        json_object_set_new(spec, "tolerations", json_array());
        tolerations = json_object_get(spec, "tolerations");
    }
    for (size_t i = 0; i < SW_ARRAY_SIZE(taints); i++) {
        if (!tolerates(tolerations, taints[i])) {
            json_array_append_new(tolerations, json_pack("{s:s, s:s, s:s, s:i}", "key", taints[i],
                                                         "operator", "Exists", "effect",
                                                         "NoExecute", "tolerationSeconds", 300));
        }
    }
}

/* Guaranteed: every container limits both to what it requests. BestEffort: none says anything. */
static const char *service_class(const json_t *spec)
{
    static const char *const lists[] = {"containers", "initContainers"};
    bool is_any = false;
    bool is_all = true;
    for (size_t l = 0; l < SW_ARRAY_SIZE(lists); l++) {
        size_t i;
        json_t *container;
        json_array_foreach(json_object_get(spec, lists[l]), i, container)
        {
            for (int r = 0; r < 2; r++) {
                const char *name = r ? "memory" : "cpu";
                const json_t *limit =
                    json_object_get(sw_sim_at(container, "resources.limits"), name);
                const json_t *request =
                    json_object_get(sw_sim_at(container, "resources.requests"), name);
                is_any = is_any || limit || request;
                is_all = is_all && limit && sw_sim_is_same(limit, request);
            }
        }
    }
    return !is_any ? "BestEffort" : is_all ? "Guaranteed" : "Burstable";
}

void sw_sim_default_pod(json_t *object)
{
    json_t *spec = sw_sim_need_object(object, "spec");
    if (!spec) {
        return;
    }
    default_requests(json_object_get(spec, "containers"));
    default_requests(json_object_get(spec, "initContainers"));
    sw_sim_default_bool(spec, "enableServiceLinks", true);
    sw_sim_default_int(spec, "priority", 0);
    sw_sim_default_text(spec, "preemptionPolicy", "PreemptLowerPriority");
    sw_sim_default_pod_spec(spec);
    default_tolerations(spec);
    json_t *status = sw_sim_need_object(object, "status");
    if (status) {
        sw_sim_default_text(status, "phase", "Pending");
        sw_sim_default_text(status, "qosClass", service_class(spec));
    }
}
