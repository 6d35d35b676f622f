/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated API server as a whole: which kinds it serves, its life, the ways in from outside
 * (calls) and for the control plane (writes at once).
 */
#include "api.h"

#include <errno.h>
#include <string.h>

#include "admission_internal.h"
#include "base/log.h"
#include "base/util.h"
#include "event_form.h"
#include "value.h"

/* ---- kinds ---- */

const struct sw_sim_served *sw_sim_served(const struct sw_sim_api *api, const char *group,
                                          const char *version, const char *plural)
{
    for (size_t i = 0; i < api->served_count; i++) {
        const struct sw_sim_served *served = &api->served[i];
        if (strcmp(served->kind->plural, plural) == 0 && strcmp(served->kind->group, group) == 0 &&
            (version ? strcmp(served->kind->version, version) == 0
                     : served->kind == served->stored)) {
            return served;
        }
    }
    return NULL;
}

const struct sw_sim_served *sw_sim_served_kind(const struct sw_sim_api *api, const char *group,
                                               const char *version, const char *kind)
{
    for (size_t i = 0; i < api->served_count; i++) {
        const struct sw_sim_served *served = &api->served[i];
        if (strcmp(served->kind->kind, kind) == 0 && strcmp(served->kind->group, group) == 0 &&
            (!version || strcmp(served->kind->version, version) == 0)) {
            return served;
        }
    }
    return NULL;
}

const struct sw_sim_kind *sw_sim_stored(const struct sw_sim_api *api,
                                        const struct sw_sim_kind *kind)
{
    for (size_t i = 0; i < api->served_count; i++) {
        if (api->served[i].kind == kind) {
            return api->served[i].stored;
        }
    }
    return kind;
}

const struct sw_sim_kind *sw_sim_api_kind(const struct sw_sim_api *api, const char *group,
                                          const char *version, const char *plural)
{
    const struct sw_sim_served *served = sw_sim_served(api, group, version, plural);
    return served ? served->kind : NULL;
}

static void serve_builtin(struct sw_sim_api *api)
{
    size_t count = 0;
    const struct sw_sim_kind *kinds = sw_sim_builtin_kinds(&count);
    api->served = sw_calloc(count, sizeof(struct sw_sim_served));
    api->served_count = count;
    for (size_t i = 0; i < count; i++) {
        api->served[i] = (struct sw_sim_served){.kind = &kinds[i], .stored = &kinds[i]};
    }
    for (size_t i = 0; i < count; i++) {
        if (sw_sim_is_event(&kinds[i])) {
            api->served[i].stored = sw_sim_served(api, "", "v1", "events")->kind;
        } else if (strcmp(kinds[i].version, "v1beta1") == 0) {
            api->served[i].stored = sw_sim_served(api, kinds[i].group, "v1", kinds[i].plural)->kind;
        }
    }
}

/* ---- life ---- */

static void on_change(struct sw_sim_store_watcher *watcher, const struct sw_sim_change *change)
{
    struct sw_sim_api *api = container_of(watcher, struct sw_sim_api, watcher);
    sw_sim_definitions_change(api->definitions, change);
    sw_sim_admission_change(api, change);
    sw_sim_watch_change(api, NULL, change);
    sw_sim_collector_change(api->collector, change);
    sw_sim_expiry_change(api->expiry, change);
}

/* Of all who look at documents none is in the middle of it when this comes. */
static void on_trim(struct sw_defer *defer)
{
    sw_sim_store_trim(container_of(defer, struct sw_sim_api, trim)->store);
}

static void on_full(void *arg)
{
    struct sw_sim_api *api = arg;
    sw_defer_start(&api->trim);
}

static void make_namespaces(struct sw_sim_api *api)
{
    static const char *const names[] = {"default", "kube-node-lease", "kube-public", "kube-system"};
    const struct sw_sim_kind *kind = sw_sim_api_kind(api, "", "v1", "namespaces");
    for (size_t i = 0; i < SW_ARRAY_SIZE(names); i++) {
        if (!sw_sim_store_get(api->store, kind, "", names[i])) {
            sw_sim_create(api, kind, json_pack("{s:{s:s}}", "metadata", "name", names[i]), NULL);
        }
    }
}

struct sw_sim_api *sw_sim_api_new(struct sw_loop *loop, struct sw_sim_store *store,
                                  const struct sw_sim_api_options *options,
                                  const struct sw_log *log)
{
    struct sw_sim_api *api = SW_NEW(struct sw_sim_api);
    api->loop = loop;
    api->store = store;
    api->options = options ? *options : (struct sw_sim_api_options){0};
    if (!api->options.bookmark_ms) {
        api->options.bookmark_ms = 60000;
    }
    if (!api->options.git_version) {
        api->options.git_version = "v1.20.2";
    }
    api->log = log;
    sw_link_init(&api->calls);
    sw_link_init(&api->writes);
    sw_link_init(&api->watches);
    serve_builtin(api);
    api->collector = sw_sim_collector_new(api);
    api->definitions = sw_sim_definitions_new(api);
    api->expiry = sw_sim_expiry_new(api);
    api->watcher.on_change = on_change;
    sw_sim_store_watch(store, &api->watcher);
    sw_defer_init(&api->trim, loop, on_trim);
    sw_sim_store_on_full(store, on_full, api);
    make_namespaces(api);
    return api;
}

struct sw_sim_api *sw_sim_api_free(struct sw_sim_api *api)
{
    if (!api) {
        return NULL;
    }
    api->is_closing = true;
    sw_sim_store_unwatch(api->store, &api->watcher);
    sw_sim_store_on_full(api->store, NULL, NULL);
    sw_defer_stop(&api->trim);
    sw_sim_writes_drop(api);
    SW_LIST_EACH (link, &api->calls) {
        sw_sim_api_cancel(api, container_of(link, struct sw_sim_call, link));
    }
    api->collector = sw_sim_collector_free(api->collector);
    api->definitions = sw_sim_definitions_free(api->definitions);
    api->expiry = sw_sim_expiry_free(api->expiry);
    sw_sim_hooks_unref(api->hooks);
    sw_free(api->served);
    return sw_free(api);
}

/* ---- writes of the control plane ---- */

static int code_of(json_t *refusal)
{
    int status = sw_sim_status_code(refusal);
    json_decref(refusal);
    return status == 404 ? -ENOENT : status == 409 ? -EAGAIN : -EINVAL;
}

static struct sw_sim_change_of change_of(const struct sw_sim_api *api,
                                         const struct sw_sim_kind *kind, const json_t *object,
                                         const char *subresource)
{
    return (struct sw_sim_change_of){
        .kind = kind,
        .stored = sw_sim_stored(api, kind),
        .namespace_ = kind->is_namespaced ? sw_sim_text_at(object, "metadata.namespace") : "",
        .name = sw_sim_text_at(object, "metadata.name"),
        .subresource = subresource,
        .manager = "kube-controller-manager",
    };
}

/* What a controller writes wrongly is its mistake; the log says what. */
static int refuse(struct sw_sim_api *api, const struct sw_sim_kind *kind, json_t *object,
                  json_t *refusal)
{
    int code = code_of(json_incref(refusal));
    if (code == -EINVAL) {
        sw_log_warn(api->log, "a write of the control plane was refused",
                    SW_STR("kind", kind->kind), SW_STR("why", sw_sim_text(refusal, "message", "")));
    }
    json_decref(refusal);
    json_decref(object);
    return code;
}

int sw_sim_create(struct sw_sim_api *api, const struct sw_sim_kind *kind, json_t *object_take,
                  const struct sw_sim_object **ret_object)
{
    json_t *object = object_take;
    json_t *given = json_incref(object); /* of points into it */
    struct sw_sim_change_of of = change_of(api, kind, given, "");
    json_t *refusal = sw_sim_rules_namespace(api, &of, of.name);
    refusal = refusal ? refusal : sw_sim_rules_decode(&of, &object);
    refusal = refusal ? refusal : sw_sim_rules_create(api, &of, &object);
    json_decref(given);
    if (refusal) {
        return refuse(api, kind, object, refusal);
    }
    const struct sw_sim_object *made = sw_sim_commit_create(api, of.stored, object);
    if (made && ret_object) {
        *ret_object = made;
    }
    return made ? 0 : -EEXIST;
}

static int update(struct sw_sim_api *api, const struct sw_sim_kind *kind, json_t *object,
                  const char *subresource)
{
    json_t *given = json_incref(object);
    struct sw_sim_change_of of = change_of(api, kind, given, subresource);
    const struct sw_sim_object *old =
        sw_sim_store_get(api->store, of.stored, of.namespace_, of.name);
    if (!old) {
        json_decref(given);
        json_decref(object);
        return -ENOENT;
    }
    json_t *refusal = sw_sim_rules_decode(&of, &object);
    refusal = refusal ? refusal : sw_sim_rules_update(api, &of, old, &object);
    json_decref(given);
    if (refusal) {
        return refuse(api, kind, object, refusal);
    }
    bool is_gone = false;
    sw_sim_object_unref(sw_sim_commit_update(api, old, object, &is_gone));
    return 0;
}

int sw_sim_update(struct sw_sim_api *api, const struct sw_sim_kind *kind, json_t *object_take)
{
    return update(api, kind, object_take, "");
}

int sw_sim_update_status(struct sw_sim_api *api, const struct sw_sim_kind *kind,
                         json_t *object_take)
{
    return update(api, kind, object_take, "status");
}

int sw_sim_delete(struct sw_sim_api *api, const struct sw_sim_object *object, int64_t grace_s,
                  const char *propagation)
{
    const struct sw_sim_object *current =
        sw_sim_store_get(api->store, object->kind, object->namespace_, object->name);
    if (!current || strcmp(current->uid, object->uid) != 0) {
        return -ENOENT;
    }
    const struct sw_sim_deletion deletion = {.grace_s = grace_s, .propagation = propagation};
    const struct sw_sim_object *left = NULL;
    sw_sim_commit_delete(api, current, &deletion, &left);
    sw_sim_object_unref(left);
    return 0;
}

void sw_sim_finish_delete(struct sw_sim_api *api, const struct sw_sim_object *object)
{
    sw_sim_delete(api, object, 0, NULL);
}
