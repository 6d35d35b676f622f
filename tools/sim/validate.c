/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the real server refuses of workloads, Pods and Services, as far as users of slipway would
 * meet it, in its words; where those words show a value of Go, they are made to look the same.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "document.h"
#include "dump.h"
#include "kinds.h"

/* ---- small rules ---- */

static void invalid(json_t *causes, const char *field, const char *shown, const char *detail)
{
    sw_sim_cause(causes, field, "FieldValueInvalid", "Invalid value: %s: %s", shown, detail);
}

static void check_not_negative(const json_t *object, const char *path, json_t *causes)
{
    int64_t value = sw_sim_int_at(object, path, 0);
    if (value < 0) {
        sw_sim_cause_invalid(causes, path, sw_sim_at(object, path),
                             "must be greater than or equal to 0");
    }
}

static bool is_dns_label(const char *text)
{
    size_t len = strlen(text);
    if (len == 0 || len > 63 || text[0] == '-' || text[len - 1] == '-') {
        return false;
    }
    return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

static void check_dns_label(json_t *causes, const char *field, const json_t *value)
{
    if (!is_dns_label(json_string_value(value) ? json_string_value(value) : "")) {
        sw_sim_cause_invalid(
            causes, field, value,
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
            "and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "
            "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')");
    }
}

/* map[string]string{"a":"b"}, names sorted, as Go shows it. */
static char *show_map(const json_t *map)
{
    if (!map) {
        return sw_strdup("map[string]string(nil)");
    }
    char *text = sw_sim_dump_as(map, JSON_COMPACT | JSON_SORT_KEYS);
    struct sw_buf shown;
    sw_buf_init(&shown, SIZE_MAX);
    sw_buf_puts(&shown, "map[string]string");
    for (const char *c = text; *c; c++) {
        bool is_between = *c == ',' && c[-1] == '"' && c[1] == '"';
        sw_buf_append(&shown, c, 1);
        sw_buf_puts(&shown, is_between ? " " : "");
    }
    sw_free(text);
    return sw_buf_steal(&shown);
}

static char *show_selector(const json_t *selector)
{
    char *labels = show_map(sw_sim_at(selector, "matchLabels"));
    struct sw_buf shown;
    sw_buf_init(&shown, SIZE_MAX);
    sw_buf_printf(&shown,
                  "v1.LabelSelector{MatchLabels:%s, "
                  "MatchExpressions:[]v1.LabelSelectorRequirement(nil)}",
                  labels);
    sw_free(labels);
    return sw_buf_steal(&shown);
}

/* ---- selectors ---- */

static bool is_among(const json_t *list, const char *text)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *one = json_string_value(json_array_get(list, i));
        if (one && strcmp(one, text) == 0) {
            return true;
        }
    }
    return false;
}

static bool expression_matches(const json_t *expression, const json_t *labels)
{
    const char *operator= sw_sim_text_at(expression, "operator");
    const char *value =
        json_string_value(json_object_get(labels, sw_sim_text_at(expression, "key")));
    const json_t *values = json_object_get(expression, "values");
    if (strcmp(operator, "In") == 0) {
        return value && is_among(values, value);
    }
    if (strcmp(operator, "NotIn") == 0) {
        return !value || !is_among(values, value);
    }
    return (strcmp(operator, "Exists") == 0) == (value != NULL);
}

static bool selector_matches(const json_t *selector, const json_t *labels)
{
    if (!selector) {
        return false;
    }
    const char *name;
    json_t *value;
    json_object_foreach(sw_sim_at(selector, "matchLabels"), name, value)
    {
        const json_t *found = json_object_get(labels, name);
        if (!found || !sw_sim_is_same(found, value)) {
            return false;
        }
    }
    size_t i;
    json_t *expression;
    json_array_foreach(sw_sim_at(selector, "matchExpressions"), i, expression)
    {
        if (!expression_matches(expression, labels)) {
            return false;
        }
    }
    return true;
}

static void check_selector(const json_t *object, const json_t *old, const char *kind,
                           json_t *causes)
{
    const json_t *selector = sw_sim_at(object, "spec.selector");
    size_t terms = json_object_size(sw_sim_at(selector, "matchLabels")) +
                   json_array_size(sw_sim_at(selector, "matchExpressions"));
    if (!selector) {
        sw_sim_cause_required(causes, "spec.selector", "");
    } else if (terms == 0) {
        char *shown = show_selector(selector);
        json_t *detail = json_sprintf("empty selector is invalid for %s", kind);
        invalid(causes, "spec.selector", shown, json_string_value(detail));
        json_decref(detail);
        sw_free(shown);
    }
    const json_t *labels = sw_sim_at(object, "spec.template.metadata.labels");
    if (!selector_matches(selector, labels)) {
        char *shown = show_map(labels);
        invalid(causes, "spec.template.metadata.labels", shown,
                "`selector` does not match template `labels`");
        sw_free(shown);
    }
    if (old && !sw_sim_is_same(selector, sw_sim_at(old, "spec.selector"))) {
        char *shown = show_selector(selector);
        invalid(causes, "spec.selector", shown, "field is immutable");
        sw_free(shown);
    }
}

/* ---- Pods ---- */

static bool has_name(const json_t *list, const char *name, size_t count)
{
    for (size_t i = 0; i < count && i < json_array_size(list); i++) {
        if (strcmp(sw_sim_text_at(json_array_get(list, i), "name"), name) == 0) {
            return true;
        }
    }
    return false;
}

static void check_mounts(const json_t *container, const json_t *volumes, const char *path,
                         json_t *causes)
{
    size_t i;
    json_t *mount;
    json_array_foreach(json_object_get(container, "volumeMounts"), i, mount)
    {
        const char *name = sw_sim_text_at(mount, "name");
        json_t *field = json_sprintf("%s.volumeMounts[%zu].name", path, i);
        if (!*name) {
            sw_sim_cause_required(causes, json_string_value(field), "");
        } else if (!has_name(volumes, name, SIZE_MAX)) {
            sw_sim_cause(causes, json_string_value(field), "FieldValueNotFound",
                         "Not found: \"%s\"", name);
        }
        json_decref(field);
    }
}

static void check_container(const json_t *list, size_t index, const char *path, json_t *causes)
{
    const json_t *container = json_array_get(list, index);
    const char *name = sw_sim_text_at(container, "name");
    json_t *field = json_sprintf("%s.name", path);
    if (!*name) {
        sw_sim_cause_required(causes, json_string_value(field), "");
    } else {
        check_dns_label(causes, json_string_value(field), json_object_get(container, "name"));
    }
    if (*name && has_name(list, name, index)) {
        sw_sim_cause(causes, json_string_value(field), "FieldValueDuplicate",
                     "Duplicate value: \"%s\"", name);
    }
    json_decref(field);
    if (!*sw_sim_text_at(container, "image")) {
        field = json_sprintf("%s.image", path);
        sw_sim_cause_required(causes, json_string_value(field), "");
        json_decref(field);
    }
    size_t i;
    json_t *env;
    json_array_foreach(json_object_get(container, "env"), i, env)
    {
        if (!*sw_sim_text_at(env, "name")) {
            field = json_sprintf("%s.env[%zu].name", path, i);
            sw_sim_cause_required(causes, json_string_value(field), "");
            json_decref(field);
        }
    }
}

static void check_pod_spec(const json_t *spec, const char *path, json_t *causes)
{
    static const char *const lists[] = {"containers", "initContainers"};
    for (size_t l = 0; l < SW_ARRAY_SIZE(lists); l++) {
        const json_t *list = sw_sim_at(spec, lists[l]);
        for (size_t i = 0; i < json_array_size(list); i++) {
            json_t *where = json_sprintf("%s.%s[%zu]", path, lists[l], i);
            check_container(list, i, json_string_value(where), causes);
            check_mounts(json_array_get(list, i), sw_sim_at(spec, "volumes"),
                         json_string_value(where), causes);
            json_decref(where);
        }
    }
    if (json_array_size(sw_sim_at(spec, "containers")) == 0) {
        json_t *where = json_sprintf("%s.containers", path);
        sw_sim_cause_required(causes, json_string_value(where), "");
        json_decref(where);
    }
}

static bool may_change(const char *name)
{
    static const char *const free_fields[] = {"containers", "initContainers",
                                              "activeDeadlineSeconds", "tolerations"};
    for (size_t i = 0; i < SW_ARRAY_SIZE(free_fields); i++) {
        if (strcmp(name, free_fields[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_changed_but_images(const json_t *new, const json_t *old)
{
    if (json_array_size(new) != json_array_size(old)) {
        return true;
    }
    for (size_t i = 0; i < json_array_size(new); i++) {
        json_t *left = json_copy(json_array_get(new, i));
        json_t *right = json_copy(json_array_get(old, i));
        json_object_del(left, "image");
        json_object_del(right, "image");
        bool is_same = sw_sim_is_same(left, right);
        json_decref(left);
        json_decref(right);
        if (!is_same) {
            return true;
        }
    }
    return false;
}

static bool is_pod_changed(const json_t *new, const json_t *old)
{
    json_t *both = json_copy((json_t *)(uintptr_t) new);
    json_object_update_missing(both, (json_t *)(uintptr_t)old);
    bool found = is_changed_but_images(json_object_get(new, "containers"),
                                       json_object_get(old, "containers")) ||
                 is_changed_but_images(json_object_get(new, "initContainers"),
                                       json_object_get(old, "initContainers"));
    const char *name;
    json_t *member;
    json_object_foreach(both, name, member)
    {
        /* A Pod without a Node gets one by its binding. */
        bool is_bound = strcmp(name, "nodeName") == 0 && !*sw_sim_text_at(old, "nodeName");
        bool is_same = sw_sim_is_same(json_object_get(new, name), json_object_get(old, name));
        found = found || (!may_change(name) && !is_bound && !is_same);
    }
    json_decref(both);
    return found;
}

void sw_sim_validate_pod(const json_t *object, const json_t *old, json_t *causes)
{
    const json_t *spec = sw_sim_at(object, "spec");
    check_pod_spec(spec, "spec", causes);
    if (old && is_pod_changed(spec, sw_sim_at(old, "spec"))) {
        sw_sim_cause(causes, "spec", "FieldValueForbidden",
                     "Forbidden: pod updates may not change fields other than "
                     "`spec.containers[*].image`, `spec.initContainers[*].image`, "
                     "`spec.activeDeadlineSeconds` or `spec.tolerations` (only additions to "
                     "existing tolerations)");
    }
}

/* ---- workloads ---- */

static void check_template(const json_t *object, json_t *causes)
{
    static const char *const always[] = {"Always", NULL};
    static const char path[] = "spec.template.spec.restartPolicy";
    check_pod_spec(sw_sim_at(object, "spec.template.spec"), "spec.template.spec", causes);
    if (strcmp(sw_sim_text_at(object, path), "Always") != 0) {
        sw_sim_cause_unsupported(causes, path, sw_sim_at(object, path), always);
    }
}

static char *show_amount(const json_t *amount)
{
    json_t *shown = json_is_string(amount)
                        ? json_sprintf("intstr.IntOrString{Type:1, IntVal:0, StrVal:\"%s\"}",
                                       json_string_value(amount))
                        : json_sprintf("intstr.IntOrString{Type:0, IntVal:%" JSON_INTEGER_FORMAT
                                       ", StrVal:\"\"}",
                                       json_integer_value(amount));
    char *text = sw_strdup(json_string_value(shown));
    json_decref(shown);
    return text;
}

/* A number or a percentage; its value, and -1 where it is neither. */
static int64_t amount_of(const json_t *amount, bool *ret_is_percent)
{
    *ret_is_percent = json_is_string(amount);
    if (!*ret_is_percent) {
        return json_integer_value(amount);
    }
    const char *text = json_string_value(amount);
    size_t digits = strspn(text, "0123456789");
    return digits && digits < 10 && strcmp(text + digits, "%") == 0 ? strtol(text, NULL, 10) : -1;
}

static void check_amount(const json_t *rolling, const char *name, bool has_limit, json_t *causes)
{
    const json_t *amount = sw_sim_at(rolling, name);
    bool is_percent;
    int64_t value = amount_of(amount, &is_percent);
    json_t *field = json_sprintf("spec.strategy.rollingUpdate.%s", name);
    char *shown = show_amount(amount);
    if (value < 0) {
        invalid(causes, json_string_value(field), shown,
                is_percent ? "a valid percent string must be a numeric string followed by an "
                             "ending '%' (e.g. '1%',  or '93%', regex used for validation is "
                             "'[0-9]+%')"
                           : "must be greater than or equal to 0");
    } else if (has_limit && is_percent && value > 100) {
        invalid(causes, json_string_value(field), shown, "must not be greater than 100%");
    }
    sw_free(shown);
    json_decref(field);
}

static void check_rolling(const json_t *rolling, json_t *causes)
{
    check_amount(rolling, "maxUnavailable", true, causes);
    check_amount(rolling, "maxSurge", false, causes);
    bool is_percent;
    if (amount_of(sw_sim_at(rolling, "maxUnavailable"), &is_percent) == 0 &&
        amount_of(sw_sim_at(rolling, "maxSurge"), &is_percent) == 0) {
        char *shown = show_amount(sw_sim_at(rolling, "maxUnavailable"));
        invalid(causes, "spec.strategy.rollingUpdate.maxUnavailable", shown,
                "may not be 0 when `maxSurge` is 0");
        sw_free(shown);
    }
}

static void check_strategy(const json_t *object, json_t *causes)
{
    const char *type = sw_sim_text_at(object, "spec.strategy.type");
    const json_t *rolling = sw_sim_at(object, "spec.strategy.rollingUpdate");
    if (strcmp(type, "Recreate") == 0) {
        if (rolling) {
            sw_sim_cause(causes, "spec.strategy.rollingUpdate", "FieldValueForbidden",
                         "Forbidden: may not be specified when strategy `type` is 'Recreate'");
        }
    } else if (strcmp(type, "RollingUpdate") == 0) {
        check_rolling(rolling, causes);
    } else {
        sw_sim_cause(causes, "spec.strategy", "FieldValueNotSupported",
                     "Unsupported value: apps.DeploymentStrategy{Type:\"%s\", "
                     "RollingUpdate:(*apps.RollingUpdateDeployment)(nil)}: supported values: "
                     "\"Recreate\", \"RollingUpdate\"",
                     type);
    }
}

void sw_sim_validate_deployment(const json_t *object, const json_t *old, json_t *causes)
{
    check_not_negative(object, "spec.replicas", causes);
    check_selector(object, old, "deployment", causes);
    check_template(object, causes);
    check_strategy(object, causes);
    check_not_negative(object, "spec.minReadySeconds", causes);
    check_not_negative(object, "spec.revisionHistoryLimit", causes);
    check_not_negative(object, "spec.progressDeadlineSeconds", causes);
    int64_t deadline = sw_sim_int_at(object, "spec.progressDeadlineSeconds", INT64_MAX);
    if (deadline <= sw_sim_int_at(object, "spec.minReadySeconds", 0)) {
        sw_sim_cause_invalid(causes, "spec.progressDeadlineSeconds",
                             sw_sim_at(object, "spec.progressDeadlineSeconds"),
                             "must be greater than minReadySeconds");
    }
}

void sw_sim_validate_replicaset(const json_t *object, const json_t *old, json_t *causes)
{
    check_not_negative(object, "spec.replicas", causes);
    check_not_negative(object, "spec.minReadySeconds", causes);
    check_selector(object, old, "replicaset", causes);
    check_template(object, causes);
}

void sw_sim_validate_statefulset(const json_t *object, const json_t *old, json_t *causes)
{
    static const char *const free_fields[] = {"replicas", "template", "updateStrategy"};
    check_not_negative(object, "spec.replicas", causes);
    check_selector(object, NULL, "statefulset", causes);
    json_t *new_rest = json_copy(sw_sim_at(object, "spec"));
    json_t *old_rest = json_copy(sw_sim_at(old, "spec"));
    for (size_t i = 0; i < SW_ARRAY_SIZE(free_fields); i++) {
        json_object_del(new_rest, free_fields[i]);
        json_object_del(old_rest, free_fields[i]);
    }
    if (old && !sw_sim_is_same(new_rest, old_rest)) {
        sw_sim_cause(causes, "spec", "FieldValueForbidden",
                     "Forbidden: updates to statefulset spec for fields other than 'replicas', "
                     "'template', and 'updateStrategy' are forbidden");
    }
    json_decref(new_rest);
    json_decref(old_rest);
}

void sw_sim_validate_daemonset(const json_t *object, const json_t *old, json_t *causes)
{
    check_selector(object, old, "daemonset", causes);
    check_template(object, causes);
    check_not_negative(object, "spec.minReadySeconds", causes);
    check_not_negative(object, "spec.revisionHistoryLimit", causes);
}

/* ---- services ---- */

static void check_port(const json_t *port, const char *name, size_t index, json_t *causes)
{
    const json_t *value = json_object_get(port, name);
    int64_t number = json_integer_value(value);
    if (json_is_integer(value) && (number < 1 || number > 65535)) {
        json_t *field = json_sprintf("spec.ports[%zu].%s", index, name);
        sw_sim_cause_invalid(causes, json_string_value(field), value,
                             "must be between 1 and 65535, inclusive");
        json_decref(field);
    }
}

void sw_sim_validate_service(const json_t *object, const json_t *old, json_t *causes)
{
    (void)old;
    const json_t *ports = sw_sim_at(object, "spec.ports");
    bool needs_none = strcmp(sw_sim_text_at(object, "spec.clusterIP"), "None") == 0 ||
                      strcmp(sw_sim_text_at(object, "spec.type"), "ExternalName") == 0;
    if (json_array_size(ports) == 0 && !needs_none) {
        sw_sim_cause_required(causes, "spec.ports", "");
    }
    for (size_t i = 0; i < json_array_size(ports); i++) {
        const json_t *port = json_array_get(ports, i);
        if (json_array_size(ports) > 1 && !*sw_sim_text_at(port, "name")) {
            json_t *field = json_sprintf("spec.ports[%zu].name", i);
            sw_sim_cause_required(causes, json_string_value(field), "");
            json_decref(field);
        }
        check_port(port, "port", i, causes);
        check_port(port, "targetPort", i, causes);
    }
}
