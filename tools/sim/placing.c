/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a Pod may run on a Node. */
#include "placing.h"

#include <stdlib.h>
#include <string.h>

#include "look.h"

/* ---- selectors of Nodes ---- */

static bool holds(const json_t *values, const char *value)
{
    size_t at;
    json_t *one;
    json_array_foreach(values, at, one)
    {
        if (json_is_string(one) && strcmp(json_string_value(one), value) == 0)
            return true;
    }
    return false;
}

static bool compares(const char *operation, const char *value, const json_t *values)
{
    const char *limit = json_string_value(json_array_get(values, 0));
    if (!value || !limit)
        return false;
    long long left = strtoll(value, NULL, 10), right = strtoll(limit, NULL, 10);
    return strcmp(operation, "Gt") == 0 ? left > right : left < right;
}

static bool requirement_holds(const json_t *requirement, const char *value)
{
    const char *operation = sw_look_string(requirement, "operator");
    const json_t *values = json_object_get(requirement, "values");
    if (strcmp(operation, "In") == 0)
        return value && holds(values, value);
    if (strcmp(operation, "NotIn") == 0)
        return !value || !holds(values, value);
    if (strcmp(operation, "Exists") == 0)
        return value != NULL;
    if (strcmp(operation, "DoesNotExist") == 0)
        return !value;
    if (strcmp(operation, "Gt") == 0 || strcmp(operation, "Lt") == 0)
        return compares(operation, value, values);
    return false;
}

static bool labels_match(const json_t *requirements, const json_t *labels)
{
    size_t at;
    json_t *one;
    json_array_foreach(requirements, at, one)
    {
        const char *key = sw_look_string(one, "key");
        if (!requirement_holds(one, json_string_value(json_object_get(labels, key))))
            return false;
    }
    return true;
}

/* The only field there is. */
static bool name_matches(const json_t *requirements, const char *name)
{
    size_t at;
    json_t *one;
    json_array_foreach(requirements, at, one)
    {
        bool is_name = strcmp(sw_look_string(one, "key"), "metadata.name") == 0;
        if (!requirement_holds(one, is_name ? name : NULL))
            return false;
    }
    return true;
}

static bool affinity_allows(const json_t *pod_spec, const json_t *labels, const char *name)
{
    const json_t *required = sw_look_at(pod_spec, "affinity", "nodeAffinity",
                                        "requiredDuringSchedulingIgnoredDuringExecution", NULL);
    if (!json_is_object(required))
        return true;
    size_t at;
    json_t *term;
    json_array_foreach(json_object_get(required, "nodeSelectorTerms"), at, term)
    {
        const json_t *by_label = json_object_get(term, "matchExpressions");
        const json_t *by_field = json_object_get(term, "matchFields");
        if (!json_array_size(by_label) && !json_array_size(by_field))
            continue; /* an empty term selects nothing */
        if (labels_match(by_label, labels) && name_matches(by_field, name))
            return true;
    }
    return false;
}

bool sw_sim_node_is_selected(const json_t *pod_spec, const json_t *node)
{
    const json_t *meta = json_object_get(node, "metadata");
    const json_t *labels = json_object_get(meta, "labels");
    const char *key;
    json_t *value;
    json_object_foreach(sw_look_loose(json_object_get(pod_spec, "nodeSelector")), key, value)
    {
        if (!json_equal(value, json_object_get(labels, key)))
            return false;
    }
    return affinity_allows(pod_spec, labels, sw_look_string(meta, "name"));
}

/* ---- taints ---- */

static bool tolerates(const json_t *toleration, const json_t *taint)
{
    const char *effect = sw_look_string(toleration, "effect");
    const char *key = sw_look_string(toleration, "key");
    if (*effect && strcmp(effect, sw_look_string(taint, "effect")) != 0)
        return false;
    bool same_key = strcmp(key, sw_look_string(taint, "key")) == 0;
    if (strcmp(sw_look_string(toleration, "operator"), "Exists") == 0)
        return !*key || same_key;
    return same_key &&
           strcmp(sw_look_string(toleration, "value"), sw_look_string(taint, "value")) == 0;
}

static bool is_tolerated(const json_t *tolerations, const json_t *taint)
{
    size_t at;
    json_t *one;
    json_array_foreach(tolerations, at, one)
    {
        if (tolerates(one, taint))
            return true;
    }
    return false;
}

bool sw_sim_node_is_tolerated(const json_t *tolerations, const json_t *node, bool only_execute)
{
    size_t at;
    json_t *one;
    json_array_foreach(sw_look_at(node, "spec", "taints", NULL), at, one)
    {
        const char *effect = sw_look_string(one, "effect");
        bool counts = strcmp(effect, "NoExecute") == 0 ||
                      (!only_execute && strcmp(effect, "NoSchedule") == 0);
        if (counts && !is_tolerated(tolerations, one))
            return false;
    }
    return true;
}

static bool tolerates_cordon(const json_t *tolerations)
{
    json_t *cordon =
        json_pack("{s:s, s:s}", "key", "node.kubernetes.io/unschedulable", "effect", "NoSchedule");
    bool result = is_tolerated(tolerations, cordon);
    json_decref(cordon);
    return result;
}

bool sw_sim_node_fits(const json_t *pod_spec, const json_t *node)
{
    const json_t *tolerations = json_object_get(pod_spec, "tolerations");
    return sw_sim_node_is_selected(pod_spec, node) &&
           sw_sim_node_is_tolerated(tolerations, node, false) &&
           (!sw_look_bool(json_object_get(node, "spec"), "unschedulable", false) ||
            tolerates_cordon(tolerations));
}

bool sw_sim_node_is_ready(const json_t *node)
{
    const json_t *ready =
        sw_look_element(sw_look_at(node, "status", "conditions", NULL), "type", "Ready");
    return strcmp(sw_look_string(ready, "status"), "True") == 0;
}
