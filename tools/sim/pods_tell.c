/* SPDX-License-Identifier: Apache-2.0 */
/* The requests by which scheduler and kubelets are told what to do, as tools/kubelets has them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <slipway/selector.h>

#include "api.h"
#include "base/error.h"
#include "base/map.h"
#include "base/util.h"
#include "kube/selector.h"
#include "look.h"
#include "pod_rules.h"
#include "pods.h"
#include "pods_internal.h"

enum { PARTS = 4 };

struct path {
    char *text; /* cut at its slashes */
    const char *parts[PARTS];
    size_t count;
};

static int mistake(json_t **ret, const char *text)
{
    *ret = json_pack("{s:s}", "error", text);
    return 400;
}

/* ---- which Pods ---- */

struct which {
    const char *namespace_, *pod, *node; /* "": any */
    struct sw_selector *selector;
};

static bool is_meant(const struct which *which, const struct sw_sim_object *pod)
{
    return (!*which->namespace_ || strcmp(which->namespace_, pod->namespace_) == 0) &&
           (!*which->pod || strcmp(which->pod, pod->name) == 0) &&
           (!*which->node ||
            strcmp(which->node, sw_look_string(json_object_get(sw_sim_object_json(pod), "spec"),
                                               "nodeName")) == 0) &&
           (!which->selector ||
            sw_sim_pod_selected(which->selector, json_object_get(sw_look_meta(pod), "labels")));
}

static bool has_unknown(const json_t *body)
{
    const char *key;
    json_t *value;
    json_object_foreach(sw_look_loose(body), key, value)
    {
        if (strcmp(key, "namespace") != 0 && strcmp(key, "pod") != 0 && strcmp(key, "node") != 0 &&
            strcmp(key, "selector") != 0 && strcmp(key, "down") != 0)
            return true;
    }
    return false;
}

static char *key_of(const struct sw_sim_object *pod)
{
    return sw_asprintf("%s/%s", pod->namespace_, pod->name);
}

/* ---- the requests ---- */

static int crash_pods(struct sw_sim_pods *pods, const struct which *which, uint64_t down_ms,
                      json_t **ret)
{
    json_t *crashed = json_array();
    struct sw_sim_pod_moment moment = sw_sim_pods_now(pods);
    struct sw_map_iter it = {0};
    while (sw_map_next(pods->played, &it)) {
        struct sw_sim_played *played = it.value;
        const struct sw_sim_object *pod = sw_sim_played_pod(played);
        if (!pod || !is_meant(which, pod) || !played->is_bound ||
            !sw_sim_pod_has_run(&played->record))
            continue;
        sw_sim_pod_crash(&played->record, down_ms, moment);
        sw_sim_played_wake(played);
        SW_AUTO(char, sw_free) key = key_of(pod);
        json_array_append_new(crashed, json_string(key));
        sw_sim_store_trim(pods->store);
    }
    if (!json_array_size(crashed)) {
        json_decref(crashed);
        *ret = json_pack("{s:s}", "error", "no running Pod is meant by that");
        return 404;
    }
    *ret = json_pack("{s:o}", "crashed", crashed);
    return 200;
}

static int crash(struct sw_sim_pods *pods, const json_t *body, json_t **ret)
{
    struct which which = {
        .namespace_ = sw_look_string(body, "namespace"),
        .pod = sw_look_string(body, "pod"),
        .node = sw_look_string(body, "node"),
    };
    const char *selector = sw_look_string(body, "selector");
    if (has_unknown(body) || (!*which.namespace_ && !*which.pod && !*which.node && !*selector))
        return mistake(ret, "say which Pods: namespace, pod, selector, node");
    struct sw_error error = {0};
    uint64_t down_ms = 1000;
    const char *down = sw_look_string(body, "down");
    if (*down && sw_sim_pod_duration(down, &down_ms, &error))
        return mistake(ret, error.text);
    char why[256];
    if (*selector && sw_selector_parse_text(selector, &which.selector, why, sizeof(why)))
        return mistake(ret, why);
    int status = crash_pods(pods, &which, down_ms, ret);
    sw_selector_free(which.selector);
    return status;
}

static int list_pods(struct sw_sim_pods *pods, json_t **ret)
{
    json_t *all = json_array();
    struct sw_map_iter it = {0};
    while (sw_map_next(pods->played, &it)) {
        const struct sw_sim_object *pod = sw_sim_played_pod(it.value);
        if (!pod)
            continue;
        struct sw_sim_pod_settings settings;
        struct sw_error error = {0};
        int result = sw_sim_pod_rules_resolve(pods->rules, pod, &settings, &error);
        const json_t *status = json_object_get(sw_sim_object_json(pod), "status");
        const json_t *ready =
            sw_look_element(json_object_get(status, "conditions"), "type", "Ready");
        const char *node =
            sw_look_string(json_object_get(sw_sim_object_json(pod), "spec"), "nodeName");
        json_t *row = json_pack(
            "{s:s, s:s, s:s*, s:s, s:b, s:b, s:o}", "namespace", pod->namespace_, "name", pod->name,
            "node", *node ? node : NULL, "phase", sw_look_string(status, "phase"), "ready",
            strcmp(sw_look_string(ready, "status"), "True") == 0, "deleting",
            sw_look_is_deleted(pod), "settings", sw_sim_pod_settings_json(&settings));
        if (result)
            json_object_set_new(row, "mistake", json_string(error.text));
        json_array_append_new(all, row);
        sw_sim_store_trim(pods->store);
    }
    *ret = json_pack("{s:o}", "pods", all);
    return 200;
}

static int make_nodes(struct sw_sim_pods *pods, const json_t *body, json_t **ret)
{
    int64_t count = sw_look_int(body, "count", 0);
    if (count <= 0 || count > 1000)
        return mistake(ret, "count is a number from 1 to 1000");
    sw_sim_pods_make_nodes(pods, (unsigned)count);
    *ret = json_pack("{s:I}", "count", (json_int_t)count);
    return 200;
}

static bool is_of_daemon_set(const struct sw_sim_object *pod)
{
    return sw_look_element(json_object_get(sw_look_meta(pod), "ownerReferences"), "kind",
                           "DaemonSet") != NULL;
}

/* First all, then the deletions: each of them changes the table of Pods. */
static int drain(struct sw_sim_pods *pods, const char *node, json_t **ret)
{
    sw_sim_pods_cordon(pods, node, true);
    struct which which = {.namespace_ = "", .pod = "", .node = node};
    const struct sw_sim_object **found =
        sw_calloc(sw_map_size(pods->played) + 1, sizeof(struct sw_sim_object *));
    size_t count = 0;
    struct sw_map_iter it = {0};
    while (sw_map_next(pods->played, &it)) {
        const struct sw_sim_object *pod = sw_sim_played_pod(it.value);
        if (pod && is_meant(&which, pod) && !is_of_daemon_set(pod))
            found[count++] = sw_sim_object_ref(pod);
    }
    json_t *deleted = json_array();
    for (size_t i = 0; i < count; i++) {
        if (sw_sim_delete(pods->api, found[i], -1, NULL) == 0) {
            SW_AUTO(char, sw_free) key = key_of(found[i]);
            json_array_append_new(deleted, json_string(key));
        }
        sw_sim_object_unref(found[i]);
    }
    sw_free(found);
    *ret = json_pack("{s:o}", "deleted", deleted);
    return 200;
}

static int change_node(struct sw_sim_pods *pods, const char *node, const char *verb, json_t **ret)
{
    bool is_cordon = strcmp(verb, "cordon") == 0;
    bool is_drain = strcmp(verb, "drain") == 0;
    if (!is_cordon && !is_drain && strcmp(verb, "uncordon") != 0) {
        *ret = json_pack("{s:s}", "error", "a Node can be told drain, cordon, uncordon");
        return 404;
    }
    if (!sw_map_get(pods->nodes, node)) {
        *ret = json_pack("{s:s}", "error", "there is no such Node");
        return 404;
    }
    if (is_drain)
        return drain(pods, node, ret);
    sw_sim_pods_cordon(pods, node, is_cordon);
    *ret = json_object();
    return 200;
}

static int set_defaults(struct sw_sim_pods *pods, const json_t *body, json_t **ret)
{
    struct sw_error error = {0};
    if (sw_sim_pod_rules_default(pods->rules, body, &error))
        return mistake(ret, error.text);
    sw_sim_pods_wake_all(pods);
    *ret = json_pack("{s:o}", "defaults", sw_sim_pod_rules_defaults(pods->rules));
    return 200;
}

static int set_rule(struct sw_sim_pods *pods, const char *name, const json_t *body, json_t **ret)
{
    struct sw_error error = {0};
    if (sw_sim_pod_rules_set(pods->rules, name, body, &error))
        return mistake(ret, error.text);
    sw_sim_pods_wake_all(pods);
    *ret = json_pack("{s:o}", "rules", sw_sim_pod_rules_list(pods->rules));
    return 200;
}

static int remove_rules(struct sw_sim_pods *pods, const char *name, json_t **ret)
{
    size_t count = sw_sim_pod_rules_remove(pods->rules, name);
    if (name && !count) {
        SW_AUTO(char, sw_free) text = sw_asprintf("there is no rule \"%s\"", name);
        *ret = json_pack("{s:s}", "error", text);
        return 404;
    }
    sw_sim_pods_wake_all(pods);
    *ret = json_pack("{s:I}", "removed", (json_int_t)count);
    return 200;
}

/* ---- telling them apart ---- */

static void split(const char *text, struct path *path)
{
    *path = (struct path){.text = sw_strdup(text)};
    char *rest = path->text;
    rest[strcspn(rest, "?")] = 0;
    for (char *part; (part = strsep(&rest, "/"));) {
        if (!*part)
            continue;
        if (path->count < PARTS)
            path->parts[path->count] = part;
        path->count++;
    }
}

static bool is(const struct path *path, const char *method, const char *want_method, size_t count,
               const char *first)
{
    return strcmp(method, want_method) == 0 && path->count == count &&
           strcmp(path->parts[0], first) == 0;
}

static int answer(struct sw_sim_pods *pods, const char *method, const struct path *path,
                  const json_t *body, json_t **ret)
{
    if (is(path, method, "GET", 1, "pods"))
        return list_pods(pods, ret);
    if (is(path, method, "GET", 1, "settings")) {
        *ret = json_pack("{s:o, s:o}", "defaults", sw_sim_pod_rules_defaults(pods->rules), "rules",
                         sw_sim_pod_rules_list(pods->rules));
        return 200;
    }
    if (is(path, method, "PATCH", 1, "settings"))
        return set_defaults(pods, body, ret);
    if (is(path, method, "PUT", 2, "settings"))
        return set_rule(pods, path->parts[1], body, ret);
    if (is(path, method, "DELETE", 1, "settings"))
        return remove_rules(pods, NULL, ret);
    if (is(path, method, "DELETE", 2, "settings"))
        return remove_rules(pods, path->parts[1], ret);
    if (is(path, method, "POST", 1, "crash"))
        return crash(pods, body, ret);
    if (is(path, method, "POST", 1, "nodes"))
        return make_nodes(pods, body, ret);
    if (is(path, method, "POST", 3, "nodes"))
        return change_node(pods, path->parts[1], path->parts[2], ret);
    *ret = json_pack("{s:s}", "error", "nothing is there");
    return 404;
}

int sw_sim_pods_tell(struct sw_sim_pods *pods, const char *method, const char *path,
                     const json_t *body, json_t **ret)
{
    if (body && !json_is_object(body))
        return mistake(ret, "the body is not a JSON object");
    struct path split_path;
    split(path, &split_path);
    int status = answer(pods, method, &split_path, body, ret);
    sw_free(split_path.text);
    return status;
}
