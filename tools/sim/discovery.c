/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is no resource: which groups, versions and kinds there are, the version of the server, its
 * health, and an OpenAPI document without definitions (kubectl then validates nothing).
 */
#include <string.h>

#include "api_internal.h"
#include "base/util.h"
#include "value.h"

static void append_texts(json_t *object, const char *key, const char *const *texts)
{
    if (!texts || !texts[0]) {
        return;
    }
    json_t *array = json_array();
    for (size_t i = 0; texts[i]; i++) {
        json_array_append_new(array, json_string(texts[i]));
    }
    json_object_set_new(object, key, array);
}

static json_t *resource(const struct sw_sim_kind *kind, const char *name, const char *shown_kind,
                        const char *const *verbs)
{
    json_t *entry = json_pack("{s:s,s:s,s:b,s:s}", "name", name, "singularName",
                              strchr(name, '/') ? "" : kind->singular, "namespaced",
                              kind->is_namespaced, "kind", shown_kind);
    append_texts(entry, "verbs", verbs);
    return entry;
}

static void append_kind(json_t *list, const struct sw_sim_kind *kind)
{
    static const char *const all[] = {
        "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch", NULL};
    static const char *const custom[] = {"delete", "deletecollection", "get",   "list", "patch",
                                         "create", "update",           "watch", NULL};
    static const char *const only_create[] = {"create", NULL};
    static const char *const change[] = {"get", "patch", "update", NULL};
    static const char *const finalize[] = {"update", NULL};
    json_t *entry = resource(kind, kind->plural, kind->kind,
                             kind->is_virtual ? only_create
                             : kind->schema   ? custom
                                              : all);
    append_texts(entry, "shortNames", kind->short_names);
    append_texts(entry, "categories", kind->categories);
    json_array_append_new(list, entry);
    if (strcmp(kind->plural, "namespaces") == 0 && !*kind->group) {
        json_array_append_new(list, resource(kind, "namespaces/finalize", kind->kind, finalize));
    }
    if (strcmp(kind->plural, "pods") == 0 && !*kind->group) {
        json_t *eviction = resource(kind, "pods/eviction", "Eviction", only_create);
        sw_sim_put_text(eviction, "group", "policy");
        sw_sim_put_text(eviction, "version", "v1beta1");
        json_array_append_new(list, eviction);
    }
    if (kind->has_scale) {
        SW_AUTO(char, sw_free) name = sw_asprintf("%s/scale", kind->plural);
        json_t *scale = resource(kind, name, "Scale", change);
        sw_sim_put_text(scale, "group", "autoscaling");
        sw_sim_put_text(scale, "version", "v1");
        json_array_append_new(list, scale);
    }
    if (kind->has_status) {
        SW_AUTO(char, sw_free) name = sw_asprintf("%s/status", kind->plural);
        json_array_append_new(list, resource(kind, name, kind->kind, change));
    }
}

static json_t *resources(const struct sw_sim_api *api, const struct sw_sim_route *route)
{
    SW_AUTO(char, sw_free)
    version = sw_asprintf("%s%s%s", route->group, *route->group ? "/" : "", route->version);
    json_t *list = json_array();
    for (size_t i = 0; i < api->served_count; i++) {
        const struct sw_sim_kind *kind = api->served[i].kind;
        if (strcmp(kind->group, route->group) == 0 && strcmp(kind->version, route->version) == 0) {
            append_kind(list, kind);
        }
    }
    json_t *answer = json_pack("{s:s,s:s,s:o}", "kind", "APIResourceList", "groupVersion", version,
                               "resources", list);
    if (*route->group) {
        sw_sim_put_text(answer, "apiVersion", "v1");
    }
    return answer;
}

static bool has_version(const json_t *versions, const char *version)
{
    for (size_t i = 0; i < json_array_size(versions); i++) {
        if (strcmp(sw_sim_text(json_array_get(versions, i), "version", ""), version) == 0) {
            return true;
        }
    }
    return false;
}

/* The versions of a group in the order in which they are served; the first is preferred. */
static json_t *group(const struct sw_sim_api *api, const char *name)
{
    json_t *versions = json_array();
    for (size_t i = 0; i < api->served_count; i++) {
        const struct sw_sim_kind *kind = api->served[i].kind;
        if (strcmp(kind->group, name) == 0 && !has_version(versions, kind->version)) {
            SW_AUTO(char, sw_free) whole = sw_asprintf("%s/%s", name, kind->version);
            json_array_append_new(
                versions, json_pack("{s:s,s:s}", "groupVersion", whole, "version", kind->version));
        }
    }
    json_t *first = json_array_get(versions, 0);
    return json_pack("{s:s,s:o,s:O}", "name", name, "versions", versions, "preferredVersion",
                     first);
}

static json_t *groups(const struct sw_sim_api *api)
{
    json_t *seen = json_object();
    json_t *list = json_array();
    for (size_t i = 0; i < api->served_count; i++) {
        const char *name = api->served[i].kind->group;
        if (*name && !json_object_get(seen, name)) {
            json_object_set_new(seen, name, json_true());
            json_array_append_new(list, group(api, name));
        }
    }
    json_decref(seen);
    return json_pack("{s:s,s:s,s:o}", "kind", "APIGroupList", "apiVersion", "v1", "groups", list);
}

static json_t *version(const struct sw_sim_api *api)
{
    const char *text = api->options.git_version;
    const char *major = text + (*text == 'v');
    size_t major_len = strcspn(major, ".");
    const char *minor = major + major_len + (major[major_len] == '.');
    return json_pack("{s:s%,s:s%,s:s,s:s,s:s,s:s,s:s,s:s,s:s}", "major", major, major_len, "minor",
                     minor, strspn(minor, "0123456789"), "gitVersion", text, "gitCommit", "",
                     "gitTreeState", "clean", "buildDate", "1970-01-01T00:00:00Z", "goVersion", "",
                     "compiler", "", "platform", "linux/amd64");
}

static json_t *document(const struct sw_sim_call *call)
{
    const struct sw_sim_api *api = call->api;
    switch (call->route.target) {
    case SW_SIM_VERSION:
        return version(api);
    case SW_SIM_PATHS:
        return json_pack("{s:[s,s,s,s,s]}", "paths", "/api", "/apis", "/healthz", "/openapi/v2",
                         "/version");
    case SW_SIM_CORE_VERSIONS:
        return json_pack("{s:s,s:[s],s:[{s:s,s:s}]}", "kind", "APIVersions", "versions", "v1",
                         "serverAddressByClientCIDRs", "clientCIDR", "0.0.0.0/0", "serverAddress",
                         "127.0.0.1:6443");
    case SW_SIM_GROUPS:
        return groups(api);
    case SW_SIM_RESOURCES:
        return resources(api, &call->route);
    case SW_SIM_GROUP: {
        json_t *answer = group(api, call->route.group);
        sw_sim_put_text(answer, "kind", "APIGroup");
        sw_sim_put_text(answer, "apiVersion", "v1");
        return answer;
    }
    default:
        return NULL;
    }
}

static void answer_openapi(struct sw_sim_call *call)
{
    /* openapi.v2.Document{swagger: "2.0", info: {title: "Kubernetes", version: "v1"}, paths: {}} */
    static const char protobuf[] = "\x0a\x03"
                                   "2.0"
                                   "\x12\x10"
                                   "\x0a\x0a"
                                   "Kubernetes"
                                   "\x12\x02"
                                   "v1"
                                   "\x42\x00";
    static const char json[] =
        "{\"swagger\":\"2.0\",\"info\":{\"title\":\"Kubernetes\",\"version\":"
        "\"v1\"},\"paths\":{},\"definitions\":{}}";
    if (strstr(call->accept, "protobuf")) {
        sw_sim_answer_text(call, 200, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
                           protobuf, sizeof(protobuf) - 1);
    } else {
        sw_sim_answer_text(call, 200, "application/json", json, sizeof(json) - 1);
    }
}

static bool is_group_served(const struct sw_sim_api *api, const struct sw_sim_route *route)
{
    for (size_t i = 0; i < api->served_count; i++) {
        if (*route->version && strcmp(api->served[i].kind->group, route->group) == 0 &&
            strcmp(api->served[i].kind->version, route->version) == 0) {
            return true;
        }
    }
    return false;
}

static void refuse(struct sw_sim_call *call)
{
    json_t *refusal =
        sw_sim_plain_status(404, "NotFound", "the server could not find the requested resource");
    sw_sim_answer_refusal(call, refusal);
}

void sw_sim_discover(struct sw_sim_call *call)
{
    json_t *answer = document(call);
    if (answer) {
        sw_sim_answer_json(call, 200, answer);
        json_decref(answer);
    } else if (call->route.target == SW_SIM_HEALTH) {
        sw_sim_answer_text(call, 200, "text/plain; charset=utf-8", "ok", 2);
    } else if (call->route.target == SW_SIM_OPENAPI) {
        answer_openapi(call);
    } else if (is_group_served(call->api, &call->route)) {
        refuse(call);
    } else {
        static const char text[] = "404 page not found\n";
        sw_sim_answer_text(call, 404, "text/plain; charset=utf-8", text, sizeof(text) - 1);
    }
}
