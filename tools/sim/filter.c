/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Label and field selectors of lists and watches. Labels are read as the core reads them
 * (slipway/selector.h); fields are those that the real server knows of a kind.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slipway/selector.h>

#include "api_internal.h"
#include "base/util.h"
#include "event_form.h"
#include "value.h"

static const char *const pod_fields[] = {
    "spec.nodeName", "spec.restartPolicy", "spec.schedulerName",       "spec.serviceAccountName",
    "status.phase",  "status.podIP",       "status.nominatedNodeName", NULL};
static const char *const event_fields[] = {"involvedObject.kind",
                                           "involvedObject.namespace",
                                           "involvedObject.name",
                                           "involvedObject.uid",
                                           "involvedObject.apiVersion",
                                           "involvedObject.resourceVersion",
                                           "involvedObject.fieldPath",
                                           "reason",
                                           "reportingComponent",
                                           "source",
                                           "type",
                                           NULL};
static const char *const replicaset_fields[] = {"status.replicas", NULL};
static const char *const secret_fields[] = {"type", NULL};
static const char *const node_fields[] = {"spec.unschedulable", NULL};
static const char *const namespace_fields[] = {"status.phase", NULL};

static const struct {
    const char *group, *plural;
    const char *const *fields;
} known_fields[] = {
    {"", "pods", pod_fields},
    {"", "events", event_fields},
    {"events.k8s.io", "events", event_fields},
    {"", "secrets", secret_fields},
    {"", "nodes", node_fields},
    {"apps", "replicasets", replicaset_fields},
    {"", "namespaces", namespace_fields},
};

/* A kind without fields of its own says what every kind knows. */
static bool has_own_fields(const struct sw_sim_kind *kind)
{
    for (size_t i = 0; i < SW_ARRAY_SIZE(known_fields); i++) {
        if (strcmp(known_fields[i].plural, kind->plural) == 0 &&
            strcmp(known_fields[i].group, kind->group) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_known_field(const struct sw_sim_kind *kind, const char *field)
{
    if (strcmp(field, "metadata.name") == 0 || strcmp(field, "metadata.namespace") == 0) {
        return true;
    }
    for (size_t i = 0; i < SW_ARRAY_SIZE(known_fields); i++) {
        if (strcmp(known_fields[i].plural, kind->plural) != 0 ||
            strcmp(known_fields[i].group, kind->group) != 0) {
            continue;
        }
        for (size_t k = 0; known_fields[i].fields[k]; k++) {
            if (strcmp(known_fields[i].fields[k], field) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* One term "path=value", "path==value" or "path!=value" of the text; -EINVAL. */
static int read_term(json_t *fields, const char *term, size_t len)
{
    SW_AUTO(char, sw_free) text = sw_strndup(term, len);
    char *operator_at = strpbrk(text, "=!");
    if (!operator_at || (*operator_at == '!' && operator_at[1] != '=')) {
        return -EINVAL;
    }
    bool is_not = *operator_at == '!';
    const char *value = operator_at + 1 + (is_not || operator_at[1] == '=');
    *operator_at = 0;
    json_array_append_new(fields, json_pack("[s,b,s]", text, !is_not, value));
    return 0;
}

static json_t *read_fields(struct sw_sim_filter *filter, const char *text,
                           const struct sw_sim_kind *kind)
{
    filter->fields = json_array();
    for (const char *rest = text; *rest;) {
        size_t len = strcspn(rest, ",");
        if (len > 0 && read_term(filter->fields, rest, len)) {
            return sw_sim_statusf(400, "BadRequest",
                                  "unable to parse requirement: invalid selector: '%s'; can't "
                                  "understand '%.*s'",
                                  text, (int)len, rest);
        }
        rest += len;
        rest += *rest == ',';
    }
    for (size_t i = 0; i < json_array_size(filter->fields); i++) {
        json_t *term = json_array_get(filter->fields, i);
        const char *asked = json_string_value(json_array_get(term, 0));
        const char *field = sw_sim_event_field(kind, asked);
        if (field != asked) {
            json_array_set_new(term, 0, json_string(field));
        }
        if (!is_known_field(kind, field) && !has_own_fields(kind)) {
            return sw_sim_statusf(400, "BadRequest",
                                  "\"%s\" is not a known field selector: only \"metadata.name\", "
                                  "\"metadata.namespace\"",
                                  field);
        }
        if (!is_known_field(kind, field)) {
            return sw_sim_statusf(400, "BadRequest",
                                  "Unable to find \"%s%s%s, Resource=%s\" that match label "
                                  "selector \"\", field selector \"%s\": field label not "
                                  "supported: %s",
                                  kind->group, *kind->group ? "/" : "", kind->version, kind->plural,
                                  text, field);
        }
    }
    return NULL;
}

json_t *sw_sim_filter_read(struct sw_sim_filter *filter, const struct sw_sim_query *query,
                           const struct sw_sim_kind *kind)
{
    *filter = (struct sw_sim_filter){0};
    const char *labels = sw_sim_query_get(query, "labelSelector");
    if (labels && *labels) {
        char why[256] = "";
        if (sw_selector_parse_text(labels, &filter->labels, why, sizeof(why))) {
            return sw_sim_statusf(400, "BadRequest", "unable to parse requirement: %s", why);
        }
    }
    const char *fields = sw_sim_query_get(query, "fieldSelector");
    json_t *refusal = fields && *fields ? read_fields(filter, fields, kind) : NULL;
    if (refusal) {
        sw_sim_filter_done(filter);
    }
    return refusal;
}

void sw_sim_filter_done(struct sw_sim_filter *filter)
{
    filter->labels = sw_selector_free(filter->labels);
    json_decref(filter->fields);
    filter->fields = NULL;
}

bool sw_sim_filter_is_empty(const struct sw_sim_filter *filter)
{
    return !filter->labels && json_array_size(filter->fields) == 0;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct sw_label *)a)->key, ((const struct sw_label *)b)->key);
}

bool sw_sim_labels_match(const struct sw_selector *selector, const json_t *labels)
{
    enum { FEW = 16 };
    struct sw_label few[FEW];
    size_t size = json_object_size(labels);
    struct sw_label *at = size > FEW ? sw_calloc(size, sizeof(*at)) : few;
    struct sw_labels list = {.at = at};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)labels, key, value)
    {
        const char *text = json_string_value(value);
        at[list.count++] = (struct sw_label){.key = key, .value = text ? text : ""};
    }
    qsort(at, list.count, sizeof(*at), by_key);
    bool matches = sw_selector_matches(selector, &list);
    if (at != few) {
        sw_free(at);
    }
    return matches;
}

static bool field_matches(const json_t *term, const struct sw_sim_object *object)
{
    const char *path = json_string_value(json_array_get(term, 0));
    bool wants_same = json_is_true(json_array_get(term, 1));
    const char *want = json_string_value(json_array_get(term, 2));
    if (strcmp(path, "source") == 0) {
        path = "source.component";
    }
    json_t *found = sw_sim_object_at(object, path);
    char number[24] = "";
    const char *value = json_string_value(found);
    if (json_is_integer(found)) {
        snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(found));
        value = number;
    } else if (json_is_boolean(found) || strcmp(path, "spec.unschedulable") == 0) {
        value = json_is_true(found) ? "true" : "false";
    } else if (!found && strcmp(path, "status.replicas") == 0) {
        value = "0";
    }
    bool matches = (strcmp(value ? value : "", want) == 0) == wants_same;
    json_decref(found);
    return matches;
}

bool sw_sim_filter_matches(const struct sw_sim_filter *filter, const struct sw_sim_object *object)
{
    for (size_t i = 0; i < json_array_size(filter->fields); i++) {
        if (!field_matches(json_array_get(filter->fields, i), object)) {
            return false;
        }
    }
    if (!filter->labels) {
        return true;
    }
    json_t *labels = sw_sim_object_at(object, "metadata.labels");
    bool matches = sw_sim_labels_match(filter->labels, labels);
    json_decref(labels);
    return matches;
}
