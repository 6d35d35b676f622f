/* SPDX-License-Identifier: Apache-2.0 */
/* The two forms of an Event (event_form.h): the same members under other names. */
#include "event_form.h"

#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "kind.h"

/* In the core group, and in events.k8s.io. */
static const char *const names[][2] = {
    {"count", "deprecatedCount"},
    {"firstTimestamp", "deprecatedFirstTimestamp"},
    {"involvedObject", "regarding"},
    {"lastTimestamp", "deprecatedLastTimestamp"},
    {"message", "note"},
    {"reportingComponent", "reportingController"},
    {"source", "deprecatedSource"},
};

/* What the real server maps of field selectors (pkg/apis/events/v1/conversion.go). */
static const char *const fields[][2] = {
    {"involvedObject.kind", "regarding.kind"},
    {"involvedObject.namespace", "regarding.namespace"},
    {"involvedObject.name", "regarding.name"},
    {"involvedObject.uid", "regarding.uid"},
    {"involvedObject.apiVersion", "regarding.apiVersion"},
    {"involvedObject.resourceVersion", "regarding.resourceVersion"},
    {"involvedObject.fieldPath", "regarding.fieldPath"},
    {"reportingComponent", "reportingController"},
};

bool sw_sim_is_event(const struct sw_sim_kind *kind)
{
    return strcmp(kind->plural, "events") == 0 &&
           (!*kind->group || strcmp(kind->group, "events.k8s.io") == 0);
}

json_t *sw_sim_event_as(const json_t *event, const struct sw_sim_kind *kind)
{
    int to = *kind->group != 0;
    json_t *made = json_deep_copy(event);
    for (size_t i = 0; i < SW_ARRAY_SIZE(names); i++) {
        json_t *value = json_object_get(made, names[i][!to]);
        if (value) {
            json_object_set(made, names[i][to], value);
            json_object_del(made, names[i][!to]);
        }
    }
    json_object_set_new(made, "apiVersion", json_string(to ? "events.k8s.io/v1" : "v1"));
    /* What this form always writes, and leaves out. It was decoded before, so nothing is wrong. */
    struct sw_error error = {0};
    int code = sw_sim_decode(kind, made, &error);
    sw_assert(code == 0);
    return made;
}

const char *sw_sim_event_field(const struct sw_sim_kind *kind, const char *path)
{
    for (size_t i = 0; sw_sim_is_event(kind) && *kind->group && i < SW_ARRAY_SIZE(fields); i++) {
        if (strcmp(path, fields[i][1]) == 0) {
            return fields[i][0];
        }
    }
    return path;
}
