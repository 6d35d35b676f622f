/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the API server itself does to an object before it is stored: decoding (version, namespace,
 * schema, defaults), and the steps of a create and of an update. As k8s.io/apiserver's
 * pkg/registry/rest has them (BeforeCreate, BeforeUpdate), with the differences that the kinds'
 * strategies make.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "api_internal.h"
#include "base/error.h"
#include "base/time.h"
#include "base/util.h"
#include "event_form.h"
#include "patch.h"
#include "schema.h"
#include "value.h"

static bool is_resource(const struct sw_sim_kind *kind, const char *group, const char *plural)
{
    return strcmp(kind->plural, plural) == 0 && strcmp(kind->group, group) == 0;
}

static char *group_version(const struct sw_sim_kind *kind)
{
    return *kind->group ? sw_asprintf("%s/%s", kind->group, kind->version)
                        : sw_strdup(kind->version);
}

bool sw_sim_may_create_on_update(const struct sw_sim_kind *kind)
{
    /* AllowCreateOnUpdate of the strategies. */
    return is_resource(kind, "coordination.k8s.io", "leases") ||
           is_resource(kind, "", "services") || is_resource(kind, "", "endpoints") ||
           is_resource(kind, "", "events") || is_resource(kind, "events.k8s.io", "events") ||
           strcmp(kind->group, "rbac.authorization.k8s.io") == 0;
}

/* AllowUnconditionalUpdate: an update need not say which version it knows. */
static bool may_update_blindly(const struct sw_sim_kind *kind)
{
    size_t count = 0;
    const struct sw_sim_kind *builtin = sw_sim_builtin_kinds(&count);
    bool is_builtin = kind >= builtin && kind < builtin + count;
    return is_builtin && !is_resource(kind, "coordination.k8s.io", "leases") &&
           !is_resource(kind, "apiextensions.k8s.io", "customresourcedefinitions") &&
           !is_resource(kind, "policy", "poddisruptionbudgets") &&
           strcmp(kind->group, "admissionregistration.k8s.io") != 0;
}

/* ---- decoding ---- */

static json_t *check_type(const struct sw_sim_change_of *of, const json_t *object)
{
    if (!json_is_object(object)) {
        return sw_sim_status(400, "BadRequest",
                             "the object provided is unrecognized (must be of type object)");
    }
    SW_AUTO(char, sw_free) want = group_version(of->kind);
    SW_AUTO(char, sw_free) also = group_version(of->stored);
    const char *version = sw_sim_text(object, "apiVersion", "");
    const char *kind = sw_sim_text(object, "kind", "");
    const char *shown_kind = *kind ? kind : of->kind->kind;
    bool is_other = *version && strcmp(version, want) != 0 && strcmp(version, also) != 0;
    if (is_other && !of->kind->schema) {
        return sw_sim_statusf(400, "BadRequest",
                              "%s in version \"%s\" cannot be handled as a %s: no kind \"%s\" is "
                              "registered for version \"%s\" in scheme "
                              "\"k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30\"",
                              shown_kind, version, of->kind->kind, shown_kind, version);
    }
    if (is_other) {
        return sw_sim_statusf(400, "BadRequest",
                              "the API version in the data (%s) does not match the expected API "
                              "version (%s)",
                              version, want);
    }
    if (*kind && strcmp(kind, of->kind->kind) != 0) {
        return sw_sim_statusf(400, "BadRequest",
                              "%s in version \"%s\" cannot be handled as a %s: converting "
                              "(%s.%s) to (%s.%s): unknown conversion",
                              kind, of->kind->version, of->kind->kind, of->kind->version, kind,
                              *of->kind->group ? of->kind->group : "core", of->kind->kind);
    }
    if (!*kind && of->kind->schema) {
        SW_AUTO(char, sw_free) shown = sw_sim_dump_text(object, NULL);
        return sw_sim_statusf(400, "BadRequest", "Object 'Kind' is missing in '%s'", shown);
    }
    const json_t *metadata = json_object_get(object, "metadata");
    if (metadata && !json_is_object(metadata) && !json_is_null(metadata)) {
        return sw_sim_status(400, "BadRequest", "metadata must be an object");
    }
    return NULL;
}

/* kind and apiVersion come first, so that lists can leave them out by cutting the text. */
static json_t *in_order(const struct sw_sim_change_of *of, const json_t *object)
{
    SW_AUTO(char, sw_free) version = group_version(of->stored);
    json_t *ordered = json_object();
    if (of->stored->schema) {
        sw_sim_put_text(ordered, "apiVersion", version);
        sw_sim_put_text(ordered, "kind", of->stored->kind);
    } else {
        sw_sim_put_text(ordered, "kind", of->stored->kind);
        sw_sim_put_text(ordered, "apiVersion", version);
    }
    json_t *metadata = json_object_get(object, "metadata");
    json_object_set_new_nocheck(ordered, "metadata",
                                json_is_object(metadata) ? json_copy(metadata) : json_object());
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        if (strcmp(key, "kind") != 0 && strcmp(key, "apiVersion") != 0 &&
            strcmp(key, "metadata") != 0) {
            json_object_set_nocheck(ordered, key, value);
        }
    }
    return ordered;
}

static json_t *decode_namespace(const struct sw_sim_change_of *of, json_t *object)
{
    json_t *metadata = json_object_get(object, "metadata");
    const char *given = sw_sim_text(metadata, "namespace", "");
    if (!of->kind->is_namespaced) {
        json_object_del(metadata, "namespace");
    } else if (!*given) {
        sw_sim_put_text(metadata, "namespace", of->namespace_);
    } else if (strcmp(given, of->namespace_) != 0) {
        return sw_sim_status(400, "BadRequest",
                             "the namespace of the provided object does not match the namespace "
                             "sent on the request");
    }
    return NULL;
}

/* Members of metadata that are null, or empty, are absent in what Go decodes. */
static void drop_empty(json_t *metadata)
{
    void *iter = json_object_iter(metadata);
    while (iter) {
        const char *key = json_object_iter_key(iter);
        const json_t *value = json_object_iter_value(iter);
        iter = json_object_iter_next(metadata, iter);
        if (json_is_null(value) || (json_is_string(value) && json_string_length(value) == 0) ||
            (json_is_object(value) && json_object_size(value) == 0) ||
            (json_is_array(value) && json_array_size(value) == 0)) {
            json_object_del(metadata, key);
        }
    }
}

/* Of the group events.k8s.io: stored in the form of the other. */
static bool is_event_of_other_form(const struct sw_sim_change_of *of)
{
    return of->kind != of->stored && sw_sim_is_event(of->kind);
}

json_t *sw_sim_rules_decode(const struct sw_sim_change_of *of, json_t **object)
{
    json_t *refusal = check_type(of, *object);
    if (refusal) {
        return refusal;
    }
    json_t *decoded = in_order(of, *object);
    refusal = decode_namespace(of, decoded);
    if (refusal) {
        json_decref(decoded);
        return refusal;
    }
    drop_empty(json_object_get(decoded, "metadata"));
    if (of->kind->schema) {
        sw_sim_schema_prune(of->kind->schema, decoded);
        sw_sim_schema_default(of->kind->schema, decoded);
    }
    struct sw_error error = {0};
    bool is_stored_form = is_event_of_other_form(of) &&
                          strcmp(sw_sim_text(*object, "apiVersion", ""), of->stored->version) == 0;
    if (sw_sim_decode(is_stored_form ? of->stored : of->kind, decoded, &error)) {
        json_decref(decoded);
        return sw_sim_status(400, "BadRequest", error.text);
    }
    if (is_event_of_other_form(of) && !is_stored_form) {
        json_t *event = sw_sim_event_as(decoded, of->stored);
        json_decref(decoded);
        decoded = event;
    }
    if (of->kind->set_defaults) {
        of->kind->set_defaults(decoded);
    }
    json_decref(*object);
    *object = decoded;
    return NULL;
}

json_t *sw_sim_rules_namespace(struct sw_sim_api *api, const struct sw_sim_change_of *of,
                               const char *name)
{
    if (!of->kind->is_namespaced || of->kind->is_virtual) {
        return NULL;
    }
    const struct sw_sim_served *served = sw_sim_served(api, "", "v1", "namespaces");
    const struct sw_sim_object *space =
        served ? sw_sim_store_get(api->store, served->kind, "", of->namespace_) : NULL;
    if (!space) {
        return served ? sw_sim_not_found(served->kind, of->namespace_) : NULL;
    }
    if (!sw_sim_at(sw_sim_object_json(space), "metadata.deletionTimestamp")) {
        return NULL;
    }
    SW_AUTO(char, sw_free)
    why = sw_asprintf("unable to create new content in namespace %s because it is being terminated",
                      of->namespace_);
    json_t *refusal = sw_sim_forbidden(of->kind, name, why);
    SW_AUTO(char, sw_free)
    detail = sw_asprintf("namespace %s is being terminated", of->namespace_);
    json_object_set_new(json_object_get(refusal, "details"), "causes",
                        json_pack("[{s:s,s:s,s:s}]", "reason", "NamespaceTerminating", "message",
                                  detail, "field", "metadata.namespace"));
    return refusal;
}

/* ---- who owns which field ---- */

static void track(const struct sw_sim_api *api, const struct sw_sim_change_of *of,
                  const json_t *before, json_t *after)
{
    if (api->options.keeps_no_managed_fields) {
        json_object_del(json_object_get(after, "metadata"), "managedFields");
        return;
    }
    if (of->is_applied) {
        return; /* apply has done it */
    }
    const struct sw_sim_apply apply = {
        .kind = of->kind,
        .manager = of->manager,
        .subresource = of->subresource,
        .wall_us = sw_wall_us(api->loop),
    };
    if (!is_event_of_other_form(of)) {
        sw_sim_track_fields(before, after, &apply);
        return;
    }
    /* Fields are told by the names that the client knows. */
    json_t *old = before ? sw_sim_event_as(before, of->kind) : NULL;
    json_t *new = sw_sim_event_as(after, of->kind);
    sw_sim_track_fields(old, new, &apply);
    sw_sim_put(json_object_get(after, "metadata"), "managedFields",
               sw_sim_share(sw_sim_at(new, "metadata.managedFields")));
    json_decref(new);
    json_decref(old);
}

/* ---- create ---- */

/* As k8s.io/apiserver's names.SimpleNameGenerator: no vowels, and nothing that looks like another.
 */
static void generate_name(struct sw_sim_api *api, json_t *metadata)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    enum { SUFFIX = 5, BASE_MAX = 63 - SUFFIX };
    const char *base = sw_sim_text(metadata, "generateName", "");
    if (!*base || *sw_sim_text(metadata, "name", "")) {
        return;
    }
    char name[BASE_MAX + SUFFIX + 1];
    int len = snprintf(name, sizeof(name), "%.*s", BASE_MAX, base);
    for (int i = 0; i < SUFFIX; i++) {
        name[len++] = letters[sw_random_between(api->loop, 0, sizeof(letters) - 2)];
    }
    name[len] = 0;
    json_object_set_new(metadata, "name", json_string(name));
}

void sw_sim_make_uid(struct sw_sim_api *api, char *text)
{
    uint64_t high = sw_random(api->loop);
    uint64_t low = sw_random(api->loop);
    snprintf(text, 40, "%08x-%04x-4%03x-%04x-%012" PRIx64, (unsigned)(high >> 32),
             (unsigned)(high >> 16) & 0xffff, (unsigned)high & 0xfff,
             ((unsigned)(low >> 48) & 0x3fff) | 0x8000, low & 0xffffffffffff);
}

static json_t *now_text(struct sw_sim_api *api)
{
    char text[SW_TIME_SIZE];
    sw_time_format(sw_wall_us(api->loop), text);
    return json_string_nocheck(text);
}

/* What the strategies' PrepareForCreate does with the status. */
static void reset_status(const struct sw_sim_change_of *of, json_t *object)
{
    const struct sw_sim_kind *kind = of->kind;
    if (!kind->has_status || is_resource(kind, "", "nodes")) {
        return;
    }
    json_object_del(object, "status");
    if (!kind->schema) {
        json_object_set_new_nocheck(object, "status", json_object());
    }
    if (kind->set_defaults) {
        kind->set_defaults(object);
    }
}

static json_t *validate(const struct sw_sim_change_of *of, const json_t *object, const json_t *old)
{
    json_t *causes = json_array();
    if (old) {
        sw_sim_check_metadata_update(old, object, causes);
    }
    sw_sim_check_metadata(of->kind, object, causes);
    if (of->kind->validate) {
        of->kind->validate(object, old, causes);
    }
    if (of->kind->schema) {
        sw_sim_schema_validate(of->kind->schema, object, causes);
    }
    json_t *refusal =
        json_array_size(causes)
            ? sw_sim_invalid(of->kind, sw_sim_text_at(object, "metadata.name"), causes)
            : NULL;
    json_decref(causes);
    return refusal;
}

json_t *sw_sim_rules_create(struct sw_sim_api *api, const struct sw_sim_change_of *of,
                            json_t **object)
{
    json_t *metadata = json_object_get(*object, "metadata");
    if (*sw_sim_text(metadata, "resourceVersion", "")) {
        return sw_sim_status(500, "", "resourceVersion should not be set on objects to be created");
    }
    json_t *made = sw_sim_own(*object);
    metadata = json_object_get(made, "metadata");
    generate_name(api, metadata);
    json_object_del(metadata, "deletionTimestamp");
    json_object_del(metadata, "deletionGracePeriodSeconds");
    json_object_del(metadata, "selfLink");
    json_object_del(metadata, "generation");
    char uid[40];
    sw_sim_make_uid(api, uid);
    json_object_set_new_nocheck(metadata, "uid", json_string_nocheck(uid));
    json_object_set_new_nocheck(metadata, "creationTimestamp", now_text(api));
    if (of->kind->has_generation) {
        json_object_set_new_nocheck(metadata, "generation", json_integer(1));
    }
    reset_status(of, made);
    json_t *refusal = validate(of, made, NULL);
    if (refusal) {
        json_decref(made);
        return refusal;
    }
    track(api, of, NULL, made);
    json_decref(*object);
    *object = made;
    return NULL;
}

/* ---- update ---- */

static json_t *check_version(const struct sw_sim_change_of *of, const struct sw_sim_object *old,
                             const json_t *object)
{
    const json_t *metadata = json_object_get(object, "metadata");
    const char *name = sw_sim_text(metadata, "name", "");
    const char *version = sw_sim_text(metadata, "resourceVersion", "");
    if (*version && strspn(version, "0123456789") != strlen(version)) {
        return sw_sim_statusf(500, "", "strconv.ParseUint: parsing \"%s\": invalid syntax",
                              version);
    }
    if (!*version || strcmp(version, "0") == 0) {
        if (may_update_blindly(of->kind)) {
            return NULL;
        }
        json_t *causes = json_array();
        sw_sim_cause(causes, "metadata.resourceVersion", "FieldValueInvalid",
                     "Invalid value: 0x0: must be specified for an update");
        json_t *refusal = sw_sim_invalid(of->kind, name, causes);
        json_decref(causes);
        return refusal;
    }
    const char *current = sw_sim_text_at(sw_sim_object_json(old), "metadata.resourceVersion");
    return strcmp(version, current) == 0 ? NULL : sw_sim_modified(of->kind, name);
}

/* Members of metadata that the server alone sets. */
static void keep_server_metadata(const json_t *old, json_t *metadata)
{
    static const char *const kept[] = {"uid", "creationTimestamp", "deletionTimestamp",
                                       "deletionGracePeriodSeconds", "generation"};
    const json_t *before = json_object_get(old, "metadata");
    for (size_t i = 0; i < SW_ARRAY_SIZE(kept); i++) {
        json_t *value = json_object_get(before, kept[i]);
        bool is_given = strcmp(kept[i], "uid") == 0 && json_object_get(metadata, "uid");
        if (!is_given) {
            sw_sim_put(metadata, kept[i], sw_sim_share(value));
        }
    }
    json_object_set(metadata, "resourceVersion", json_object_get(before, "resourceVersion"));
}

/* The status subresource changes the status; of a custom resource nothing else, of a built-in kind
 * the metadata besides labels, too. */
static json_t *only_status(const struct sw_sim_change_of *of, const json_t *old,
                           const json_t *object)
{
    json_t *made = sw_sim_own(old);
    sw_sim_put(made, "status", sw_sim_share(json_object_get(object, "status")));
    if (!of->kind->schema) {
        json_t *metadata = json_copy(json_object_get(object, "metadata"));
        const json_t *before = json_object_get(old, "metadata");
        sw_sim_put(metadata, "labels", sw_sim_share(json_object_get(before, "labels")));
        json_object_set_new_nocheck(made, "metadata", metadata);
    }
    return made;
}

/* The main resource of a kind with that subresource leaves the status alone. */
static json_t *without_status(const struct sw_sim_change_of *of, const json_t *old,
                              const json_t *object)
{
    json_t *made = sw_sim_own(object);
    if (of->kind->has_status) {
        sw_sim_put(made, "status", sw_sim_share(json_object_get(old, "status")));
    }
    return made;
}

/* Of a namespace, /finalize changes spec.finalizers and nothing else, and nothing else does. */
static json_t *with_finalizers(const json_t *object, const json_t *from)
{
    json_t *made = sw_sim_own(object);
    json_t *list = sw_sim_at(from, "spec.finalizers");
    sw_sim_put(sw_sim_own_member(made, "spec"), "finalizers", sw_sim_share(list));
    return made;
}

static json_t *only_what_may_change(const struct sw_sim_change_of *of, const json_t *old,
                                    const json_t *object)
{
    if (strcmp(of->subresource, "status") == 0) {
        return only_status(of, old, object);
    }
    if (strcmp(of->subresource, "finalize") == 0) {
        return with_finalizers(old, object);
    }
    json_t *made = without_status(of, old, object);
    if (!is_resource(of->kind, "", "namespaces")) {
        return made;
    }
    json_t *kept = with_finalizers(made, old);
    json_decref(made);
    return kept;
}

/* Whether anything but metadata and status differs. */
static bool has_other_intent(const struct sw_sim_change_of *of, const json_t *old,
                             const json_t *object)
{
    bool counts_status = !of->kind->has_status;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        if (strcmp(key, "metadata") != 0 && (counts_status || strcmp(key, "status") != 0) &&
            !sw_sim_is_same(value, json_object_get(old, key))) {
            return true;
        }
    }
    json_object_foreach((json_t *)(uintptr_t)old, key, value)
    {
        if (strcmp(key, "metadata") != 0 && (counts_status || strcmp(key, "status") != 0) &&
            !json_object_get(object, key)) {
            return true;
        }
    }
    return false;
}

static json_t *check_uid(const struct sw_sim_change_of *of, const struct sw_sim_object *old,
                         const json_t *object)
{
    const char *uid = sw_sim_text_at(object, "metadata.uid");
    if (!*uid || strcmp(uid, old->uid) == 0) {
        return NULL;
    }
    SW_AUTO(char, sw_free)
    why = sw_asprintf("StorageError: invalid object, Code: 4, Key: /registry/%s/%s, "
                      "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in "
                      "precondition: %s, UID in object meta: %s",
                      of->kind->plural, old->key, uid, old->uid);
    return sw_sim_conflict(of->kind, old->name, why);
}

json_t *sw_sim_rules_update(struct sw_sim_api *api, const struct sw_sim_change_of *of,
                            const struct sw_sim_object *old, json_t **object)
{
    json_t *refusal = check_uid(of, old, *object);
    refusal = refusal ? refusal : check_version(of, old, *object);
    if (refusal) {
        return refusal;
    }
    bool is_status = strcmp(of->subresource, "status") == 0;
    json_t *made = only_what_may_change(of, sw_sim_object_json(old), *object);
    json_t *metadata = json_object_get(made, "metadata");
    keep_server_metadata(sw_sim_object_json(old), metadata);
    if (of->kind->has_generation && !is_status &&
        has_other_intent(of, sw_sim_object_json(old), made)) {
        int64_t generation = sw_sim_int_at(sw_sim_object_json(old), "metadata.generation", 0);
        json_object_set_new_nocheck(metadata, "generation", json_integer(generation + 1));
    }
    refusal = validate(of, made, sw_sim_object_json(old));
    if (refusal) {
        json_decref(made);
        return refusal;
    }
    if (!json_equal(made, sw_sim_object_json(old))) {
        track(api, of, sw_sim_object_json(old), made);
    }
    json_decref(*object);
    *object = made;
    return NULL;
}
