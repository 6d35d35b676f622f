/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CustomResourceDefinitions: their kinds are served once Established is true, and while the
 * definition is there. Kinds are kept until the server ends, since objects and watches point at
 * them.
 */
#include <string.h>

#include "api_internal.h"
#include "base/error.h"
#include "base/log.h"
#include "base/map.h"
#include "base/time.h"
#include "base/util.h"
#include "value.h"

enum { ESTABLISH_MS = 5 }; /* the naming controller's work; a second or two in a real cluster */

/* The kinds as they were at one time. */
struct generation {
    struct sw_sim_kind *kinds;
    size_t count;
    struct generation *next;
};

struct sw_sim_definitions {
    struct sw_sim_api *api;
    struct generation *all;
    struct sw_map *current; /* name of the CRD -> its struct generation that is served */
    struct sw_timer establish;
    json_t *waiting; /* names of CRDs, in their order */
};

static bool is_crd(const struct sw_sim_kind *kind)
{
    return strcmp(kind->plural, "customresourcedefinitions") == 0 &&
           strcmp(kind->group, "apiextensions.k8s.io") == 0;
}

static bool is_true(const json_t *crd, const char *type)
{
    const json_t *conditions = sw_sim_at(crd, "status.conditions");
    for (size_t i = 0; i < json_array_size(conditions); i++) {
        const json_t *condition = json_array_get(conditions, i);
        if (strcmp(sw_sim_text(condition, "type", ""), type) == 0) {
            return strcmp(sw_sim_text(condition, "status", ""), "True") == 0;
        }
    }
    return false;
}

/* ---- serving ---- */

static const struct sw_sim_kind *stored_kind(const struct generation *generation, const json_t *crd)
{
    const json_t *versions = sw_sim_at(crd, "spec.versions");
    for (size_t i = 0; i < json_array_size(versions); i++) {
        const json_t *version = json_array_get(versions, i);
        const char *name = sw_sim_text(version, "name", "");
        for (size_t k = 0;
             json_is_true(json_object_get(version, "storage")) && k < generation->count; k++) {
            if (strcmp(generation->kinds[k].version, name) == 0) {
                return &generation->kinds[k];
            }
        }
    }
    return &generation->kinds[0];
}

/* What was served, or NULL. */
static const struct generation *withdraw(struct sw_sim_definitions *definitions, const char *name)
{
    struct sw_sim_api *api = definitions->api;
    const struct generation *generation = sw_map_remove(definitions->current, name);
    if (!generation) {
        return NULL;
    }
    size_t left = 0;
    for (size_t i = 0; i < api->served_count; i++) {
        const struct sw_sim_kind *kind = api->served[i].kind;
        if (kind < generation->kinds || kind >= generation->kinds + generation->count) {
            api->served[left++] = api->served[i];
        }
    }
    api->served_count = left;
    return generation;
}

static void serve(struct sw_sim_definitions *definitions, const char *name, const json_t *crd)
{
    struct sw_sim_api *api = definitions->api;
    struct generation *generation = SW_NEW(struct generation);
    struct sw_error error = {0};
    if (sw_sim_crd_kinds(crd, &generation->kinds, &generation->count, &error) ||
        generation->count == 0) {
        sw_log_warn(api->log, "a CustomResourceDefinition cannot be served", SW_STR("name", name),
                    SW_STR("why", error.text));
        sw_free(generation);
        return;
    }
    generation->next = definitions->all;
    definitions->all = generation;
    withdraw(definitions, name);
    sw_map_set(definitions->current, name, generation);
    const struct sw_sim_kind *stored = stored_kind(generation, crd);
    api->served = sw_realloc(api->served, api->served_count + generation->count,
                             sizeof(struct sw_sim_served));
    for (size_t i = 0; i < generation->count; i++) {
        api->served[api->served_count++] =
            (struct sw_sim_served){.kind = &generation->kinds[i], .stored = stored};
    }
    sw_sim_store_set_kind(api->store, stored);
}

/* ---- becoming established ---- */

static json_t *condition(const char *type, const char *reason, const char *message,
                         const char *time)
{
    return json_pack("{s:s,s:s,s:s,s:s,s:s}", "type", type, "status", "True", "lastTransitionTime",
                     time, "reason", reason, "message", message);
}

static json_t *accepted_names(const json_t *crd)
{
    json_t *names = json_copy(sw_sim_at(crd, "spec.names"));
    return names ? names : json_object();
}

static void establish(struct sw_sim_definitions *definitions, const struct sw_sim_object *object)
{
    struct sw_sim_api *api = definitions->api;
    char time[SW_TIME_SIZE];
    sw_time_format(sw_wall_us(api->loop), time);
    json_t *crd = sw_sim_own(sw_sim_object_json(object));
    json_t *stored = json_array();
    const json_t *versions = sw_sim_at(crd, "spec.versions");
    for (size_t i = 0; i < json_array_size(versions); i++) {
        const json_t *version = json_array_get(versions, i);
        if (json_is_true(json_object_get(version, "storage"))) {
            json_array_append(stored, json_object_get(version, "name"));
        }
    }
    json_t *status =
        json_pack("{s:[o,o],s:o,s:o}", "conditions",
                  condition("NamesAccepted", "NoConflicts", "no conflicts found", time),
                  condition("Established", "InitialNamesAccepted",
                            "the initial names have been accepted", time),
                  "acceptedNames", accepted_names(crd), "storedVersions", stored);
    json_object_set_new(crd, "status", status);
    sw_sim_update_status(api, object->kind, crd);
}

static void on_establish(struct sw_timer *timer)
{
    struct sw_sim_definitions *definitions =
        container_of(timer, struct sw_sim_definitions, establish);
    json_t *names = definitions->waiting;
    definitions->waiting = json_array();
    const struct sw_sim_kind *kind = sw_sim_api_kind(definitions->api, "apiextensions.k8s.io", "v1",
                                                     "customresourcedefinitions");
    for (size_t i = 0; i < json_array_size(names); i++) {
        const struct sw_sim_object *crd = sw_sim_store_get(
            definitions->api->store, kind, "", json_string_value(json_array_get(names, i)));
        if (crd && !is_true(sw_sim_object_json(crd), "Established")) {
            establish(definitions, crd);
        }
    }
    json_decref(names);
}

static void look_at(struct sw_sim_definitions *definitions, const struct sw_sim_object *object)
{
    if (is_true(sw_sim_object_json(object), "Established")) {
        serve(definitions, object->name, sw_sim_object_json(object));
        return;
    }
    json_array_append_new(definitions->waiting, json_string(object->name));
    sw_timer_start(&definitions->establish, ESTABLISH_MS);
}

void sw_sim_definitions_change(struct sw_sim_definitions *definitions,
                               const struct sw_sim_change *change)
{
    if (!is_crd(change->object->kind)) {
        return;
    }
    if (change->type == SW_SIM_DELETED) {
        const struct generation *gone = withdraw(definitions, change->object->name);
        if (gone) {
            sw_sim_watches_finish(definitions->api, &gone->kinds[0]);
        }
        return;
    }
    bool is_same = change->before && is_true(sw_sim_object_json(change->before), "Established") &&
                   json_equal(json_object_get(sw_sim_object_json(change->before), "spec"),
                              json_object_get(sw_sim_object_json(change->object), "spec"));
    if (!is_same) {
        look_at(definitions, change->object);
    }
}

/* ---- life ---- */

static int look_at_old(void *arg, const struct sw_sim_object *object)
{
    look_at(arg, object);
    return 0;
}

struct sw_sim_definitions *sw_sim_definitions_new(struct sw_sim_api *api)
{
    struct sw_sim_definitions *definitions = SW_NEW(struct sw_sim_definitions);
    definitions->api = api;
    definitions->current = sw_map_new();
    definitions->waiting = json_array();
    sw_timer_init(&definitions->establish, api->loop, on_establish);
    const struct sw_sim_kind *kind =
        sw_sim_api_kind(api, "apiextensions.k8s.io", "v1", "customresourcedefinitions");
    sw_sim_store_each(api->store, kind, NULL, NULL, look_at_old, definitions);
    return definitions;
}

struct sw_sim_definitions *sw_sim_definitions_free(struct sw_sim_definitions *definitions)
{
    if (!definitions) {
        return NULL;
    }
    sw_timer_stop(&definitions->establish);
    while (definitions->all) {
        struct generation *generation = definitions->all;
        definitions->all = generation->next;
        sw_sim_crd_kinds_free(generation->kinds, generation->count);
        sw_free(generation);
    }
    sw_map_free(definitions->current);
    json_decref(definitions->waiting);
    return sw_free(definitions);
}
