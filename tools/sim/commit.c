/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens to the store in the end: an object is added, replaced, marked as being deleted, or
 * removed. Finalizers and grace periods decide which, as in k8s.io/apiserver's
 * pkg/registry/generic/registry/store.go.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api_internal.h"
#include "base/time.h"
#include "base/util.h"
#include "value.h"

static bool is_core(const struct sw_sim_object *object, const char *plural)
{
    return !*object->kind->group && strcmp(object->kind->plural, plural) == 0;
}

const struct sw_sim_object *sw_sim_commit_create(struct sw_sim_api *api,
                                                 const struct sw_sim_kind *stored, json_t *object)
{
    const char *namespace_ = sw_sim_text_at(object, "metadata.namespace");
    const char *name = sw_sim_text_at(object, "metadata.name");
    if (sw_sim_store_get(api->store, stored, namespace_, name)) {
        json_decref(object);
        return NULL;
    }
    return sw_sim_store_put(api->store, stored, object);
}

/* Nothing holds an object that is being deleted any more. */
static bool is_free_to_go(const json_t *object)
{
    const json_t *metadata = json_object_get(object, "metadata");
    return json_object_get(metadata, "deletionTimestamp") &&
           json_array_size(json_object_get(metadata, "finalizers")) == 0 &&
           json_array_size(sw_sim_at(object, "spec.finalizers")) == 0 &&
           sw_sim_int_at(object, "metadata.deletionGracePeriodSeconds", 0) == 0;
}

const struct sw_sim_object *sw_sim_commit_update(struct sw_sim_api *api,
                                                 const struct sw_sim_object *old, json_t *object,
                                                 bool *ret_is_gone)
{
    *ret_is_gone = false;
    if (is_free_to_go(object)) {
        /* The finalizers that went are seen in the last state. */
        const struct sw_sim_object *last = sw_sim_store_remove_as(api->store, old, object);
        *ret_is_gone = true;
        return last;
    }
    if (json_equal(object, sw_sim_object_json(old))) {
        json_decref(object);
        return sw_sim_object_ref(old);
    }
    return sw_sim_object_ref(sw_sim_store_put(api->store, old->kind, object));
}

json_t *sw_sim_delete_check(const struct sw_sim_object *object,
                            const struct sw_sim_deletion *deletion)
{
    /* The real server names the kind here, not the resource. */
    struct sw_sim_kind shown = *object->kind;
    shown.plural = shown.kind;
    if (deletion->uid && strcmp(deletion->uid, object->uid) != 0) {
        SW_AUTO(char, sw_free)
        why = sw_asprintf("the UID in the precondition (%s) does not match the UID in record (%s). "
                          "The object might have been deleted and then recreated",
                          deletion->uid, object->uid);
        return sw_sim_conflict(&shown, object->name, why);
    }
    const char *version = sw_sim_text_at(sw_sim_object_json(object), "metadata.resourceVersion");
    if (deletion->version && strcmp(deletion->version, version) != 0) {
        SW_AUTO(char, sw_free)
        why = sw_asprintf("the ResourceVersion in the precondition (%s) does not match the "
                          "ResourceVersion in record (%s). The object might have been modified",
                          deletion->version, version);
        return sw_sim_conflict(&shown, object->name, why);
    }
    return NULL;
}

/* Only Pods stop gracefully; one that never ran, or has ended, is gone at once. */
static int64_t grace_of(const struct sw_sim_object *object, int64_t asked)
{
    if (!is_core(object, "pods")) {
        return 0;
    }
    const char *phase = sw_sim_text_at(sw_sim_object_json(object), "status.phase");
    if (!*sw_sim_text_at(sw_sim_object_json(object), "spec.nodeName") ||
        strcmp(phase, "Failed") == 0 || strcmp(phase, "Succeeded") == 0) {
        return 0;
    }
    int64_t own =
        sw_sim_int_at(sw_sim_object_json(object), "spec.terminationGracePeriodSeconds", 30);
    return asked >= 0 ? asked : own;
}

/* The finalizers that the propagation asks for, in place of one that it does not; new. */
static json_t *finalizers_of(const struct sw_sim_object *object,
                             const struct sw_sim_deletion *deletion)
{
    const json_t *before = sw_sim_at(sw_sim_object_json(object), "metadata.finalizers");
    const char *propagation = deletion->orphans ? "Orphan" : deletion->propagation;
    if (!propagation || !*propagation) {
        return before ? sw_sim_share(before) : json_array();
    }
    json_t *half = sw_sim_without_text(before, "orphan");
    json_t *list = sw_sim_without_text(half, "foregroundDeletion");
    json_decref(half);
    if (strcmp(propagation, "Orphan") == 0) {
        json_array_append_new(list, json_string("orphan"));
    } else if (strcmp(propagation, "Foreground") == 0) {
        json_array_append_new(list, json_string("foregroundDeletion"));
    }
    return list;
}

/* The object with the marks of being deleted; new. */
static json_t *mark(struct sw_sim_api *api, const struct sw_sim_object *object, int64_t grace_s,
                    json_t *finalizers)
{
    json_t *made = sw_sim_own(sw_sim_object_json(object));
    json_t *metadata = json_object_get(made, "metadata");
    const json_t *since = json_object_get(metadata, "deletionTimestamp");
    int64_t before =
        sw_sim_int_at(sw_sim_object_json(object), "metadata.deletionGracePeriodSeconds", 0);
    if (!since || grace_s < before) {
        char text[SW_TIME_SIZE];
        int64_t now_us = sw_wall_us(api->loop);
        int64_t start_us = now_us;
        const char *old = json_string_value(since);
        if (old && sw_time_parse(old, strlen(old), &start_us) == 0) {
            start_us -= before * 1000000; /* when the deletion began */
        }
        sw_time_format(start_us + grace_s * 1000000, text);
        json_object_set_new_nocheck(metadata, "deletionTimestamp", json_string_nocheck(text));
        json_object_set_new_nocheck(metadata, "deletionGracePeriodSeconds", json_integer(grace_s));
        if (!since && json_object_get(metadata, "generation")) {
            int64_t generation = sw_sim_int_at(made, "metadata.generation", 0);
            json_object_set_new_nocheck(metadata, "generation", json_integer(generation + 1));
        }
    }
    if (json_array_size(finalizers)) {
        json_object_set_nocheck(metadata, "finalizers", finalizers);
    } else {
        json_object_del(metadata, "finalizers");
    }
    if (is_core(object, "namespaces")) {
        json_object_set_new_nocheck(sw_sim_own_member(made, "status"), "phase",
                                    json_string("Terminating"));
    }
    return made;
}

void sw_sim_commit_delete(struct sw_sim_api *api, const struct sw_sim_object *object,
                          const struct sw_sim_deletion *deletion,
                          const struct sw_sim_object **ret_left)
{
    bool is_marked = sw_sim_at(sw_sim_object_json(object), "metadata.deletionTimestamp") != NULL;
    int64_t grace_s = grace_of(object, deletion->grace_s);
    int64_t before =
        sw_sim_int_at(sw_sim_object_json(object), "metadata.deletionGracePeriodSeconds", 0);
    if (is_marked && grace_s > before) {
        grace_s = before; /* it only gets shorter */
    }
    json_t *finalizers = finalizers_of(object, deletion);
    bool is_crd = strcmp(object->kind->plural, "customresourcedefinitions") == 0;
    if (is_crd && !is_marked) {
        static const char cleanup[] = "customresourcecleanup.apiextensions.k8s.io";
        json_t *list = sw_sim_without_text(finalizers, cleanup);
        json_array_append_new(list, json_string(cleanup));
        json_decref(finalizers);
        finalizers = list;
    }
    bool is_held = json_array_size(finalizers) > 0 ||
                   json_array_size(sw_sim_at(sw_sim_object_json(object), "spec.finalizers")) > 0;
    if (!is_held && grace_s == 0) {
        json_decref(finalizers);
        *ret_left = NULL;
        if (!deletion->is_dry_run) {
            sw_sim_store_remove(api->store, object);
        }
        return;
    }
    json_t *made = mark(api, object, grace_s, finalizers);
    json_decref(finalizers);
    if (deletion->is_dry_run || json_equal(made, sw_sim_object_json(object))) {
        json_decref(made);
        *ret_left = sw_sim_object_ref(object);
        return;
    }
    *ret_left = sw_sim_object_ref(sw_sim_store_put(api->store, object->kind, made));
}
