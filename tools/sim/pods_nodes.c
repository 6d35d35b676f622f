/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Nodes of the kubelets: those that were asked for at the start or later, and those that others
 * create; each is made Ready. The scheduler takes the emptiest Node that a Pod may run on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "base/map.h"
#include "base/util.h"
#include "look.h"
#include "placing.h"
#include "pods_internal.h"

#define NOT_READY_TAINT "node.kubernetes.io/not-ready"

/* ---- making ---- */

static json_t *make_status(const char *name, int64_t wall_us)
{
    const char *digits = strrchr(name, '-');
    unsigned long number = digits && digits[1] ? strtoul(digits + 1, NULL, 10) : 250;
    number %= 65000;
    char ip[24];
    snprintf(ip, sizeof(ip), "10.0.%lu.%lu", number / 250, number % 250);
    json_t *now = sw_look_time(wall_us);
    json_t *room = json_pack("{s:s, s:s, s:s, s:s}", "cpu", "64", "memory", "256Gi",
                             "ephemeral-storage", "1Ti", "pods", "10k");
    json_t *status =
        json_pack("{s:O, s:o, s:[{s:s, s:s}, {s:s, s:s}], s:[{s:s, s:s, s:s, s:s, s:O, s:o}]}",
                  "capacity", room, "allocatable", room, "addresses", "type", "InternalIP",
                  "address", ip, "type", "Hostname", "address", name, "conditions", "type", "Ready",
                  "status", "True", "reason", "KubeletReady", "message", "played by slipway-sim",
                  "lastHeartbeatTime", now, "lastTransitionTime", now);
    json_t *info = json_object();
    static const char *const texts[][2] = {
        {"machineID", ""},
        {"systemUUID", ""},
        {"bootID", ""},
        {"kernelVersion", "played"},
        {"osImage", "played"},
        {"containerRuntimeVersion", "played://1"},
        {"kubeletVersion", "v0.0.0-played"},
        {"kubeProxyVersion", "v0.0.0-played"},
        {"operatingSystem", "linux"},
        {"architecture", "amd64"},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(texts); i++)
        json_object_set_new(info, texts[i][0], json_string(texts[i][1]));
    json_object_set_new(status, "nodeInfo", info);
    return status;
}

void sw_sim_pods_make_nodes(struct sw_sim_pods *pods, unsigned count)
{
    static const char *const zones[] = {"a", "b", "c"};
    for (unsigned number = 1; number <= count; number++) {
        char name[24];
        snprintf(name, sizeof(name), "node-%u", number);
        json_t *node =
            json_pack("{s:s, s:s, s:{s:s, s:{s:s, s:s, s:s, s:s, s:s}}, s:o}", "apiVersion", "v1",
                      "kind", "Node", "metadata", "name", name, "labels", "kubernetes.io/hostname",
                      name, "kubernetes.io/os", "linux", "kubernetes.io/arch", "amd64",
                      "topology.kubernetes.io/region", "region", "topology.kubernetes.io/zone",
                      zones[(number - 1) % SW_ARRAY_SIZE(zones)], "status",
                      make_status(name, sw_wall_us(pods->loop)));
        const struct sw_sim_object *made;
        sw_sim_create(pods->api, pods->node_kind, node, &made); /* it may be there already */
    }
}

/* ---- making Ready ---- */

static json_t *other_taints(const struct sw_sim_object *object)
{
    json_t *rest = json_array();
    size_t at;
    json_t *one;
    json_array_foreach(sw_look_at(sw_sim_object_json(object), "spec", "taints", NULL), at, one)
    {
        if (strcmp(sw_look_string(one, "key"), NOT_READY_TAINT) != 0)
            json_array_append(rest, one);
    }
    return rest;
}

/* One write at a time: each makes the next look. */
static void on_timer(struct sw_timer *timer)
{
    struct sw_sim_played_node *node = container_of(timer, struct sw_sim_played_node, timer);
    struct sw_sim_pods *pods = node->pods;
    const struct sw_sim_object *object = sw_sim_object_ref(node->object);
    json_t *rest = other_taints(object);
    if (!sw_sim_node_is_ready(sw_sim_object_json(object))) {
        sw_sim_update_status(
            pods->api, pods->node_kind,
            sw_look_with_status(object, make_status(object->name, sw_wall_us(pods->loop))));
    } else if (json_array_size(rest) !=
               json_array_size(sw_look_at(sw_sim_object_json(object), "spec", "taints", NULL))) {
        json_t *json = sw_look_copy(sw_sim_object_json(object));
        json_t *spec = sw_look_own(json, "spec");
        if (json_array_size(rest))
            json_object_set(spec, "taints", rest);
        else
            json_object_del(spec, "taints");
        sw_sim_update(pods->api, pods->node_kind, json);
    }
    json_decref(rest);
    sw_sim_object_unref(object);
}

static bool needs_work(const struct sw_sim_object *object)
{
    return !sw_sim_node_is_ready(sw_sim_object_json(object)) ||
           sw_look_element(sw_look_at(sw_sim_object_json(object), "spec", "taints", NULL), "key",
                           NOT_READY_TAINT);
}

/* ---- changes ---- */

static void wake_pods_on(struct sw_sim_pods *pods, const char *name)
{
    struct sw_map_iter it = {0};
    while (sw_map_next(pods->played, &it)) {
        const struct sw_sim_object *pod = sw_sim_played_pod(it.value);
        if (pod &&
            strcmp(sw_look_string(json_object_get(sw_sim_object_json(pod), "spec"), "nodeName"),
                   name) == 0)
            sw_sim_played_wake(it.value);
    }
}

static void node_free(struct sw_sim_played_node *node)
{
    sw_timer_stop(&node->timer);
    sw_sim_object_unref(node->object);
    sw_free(node);
}

static bool same_room(const struct sw_sim_object *a, const struct sw_sim_object *b)
{
    return json_equal(json_object_get(sw_sim_object_json(a), "spec"),
                      json_object_get(sw_sim_object_json(b), "spec")) &&
           json_equal(sw_look_loose(json_object_get(sw_look_meta(a), "labels")),
                      sw_look_loose(json_object_get(sw_look_meta(b), "labels"))) &&
           sw_sim_node_is_ready(sw_sim_object_json(a)) ==
               sw_sim_node_is_ready(sw_sim_object_json(b));
}

void sw_sim_pods_on_node(struct sw_sim_pods *pods, const struct sw_sim_change *change)
{
    const struct sw_sim_object *object = change->object;
    if (change->type == SW_SIM_DELETED) {
        struct sw_sim_played_node *gone = sw_map_remove(pods->nodes, object->name);
        if (gone)
            node_free(gone);
        wake_pods_on(pods, object->name);
        return;
    }
    struct sw_sim_played_node *node = sw_map_get(pods->nodes, object->name);
    bool is_new = !node;
    if (is_new) {
        node = SW_NEW(struct sw_sim_played_node);
        node->pods = pods;
        sw_timer_init(&node->timer, pods->loop, on_timer);
        sw_map_set(pods->nodes, object->name, node);
    }
    const struct sw_sim_object *before = node->object;
    node->object = sw_sim_object_ref(object);
    if (needs_work(object))
        sw_timer_start(&node->timer, sw_sim_pods_lag(pods));
    if (is_new || !same_room(before, object))
        sw_sim_pods_wake_unplaced(pods);
    sw_sim_object_unref(before);
}

void sw_sim_pods_free_nodes(struct sw_sim_pods *pods)
{
    struct sw_map_iter it = {0};
    while (sw_map_next(pods->nodes, &it))
        node_free(it.value);
}

/* ---- asking ---- */

/* Of status.allocatable.pods; 10k is 10 000. */
static size_t room_of(const struct sw_sim_object *object)
{
    const json_t *value =
        sw_look_at(sw_sim_object_json(object), "status", "allocatable", "pods", NULL);
    if (json_is_integer(value))
        return (size_t)SW_MAX(json_integer_value(value), 0);
    const char *text = json_string_value(value);
    if (!text)
        return 0;
    char *end;
    size_t number = strtoul(text, &end, 10);
    return *end == 'k' ? number * 1000 : *end == 'M' ? number * 1000000 : number;
}

struct sw_sim_played_node *sw_sim_pods_choose(const struct sw_sim_pods *pods,
                                              const struct sw_sim_object *pod)
{
    const json_t *spec = json_object_get(sw_sim_object_json(pod), "spec");
    struct sw_sim_played_node *best = NULL;
    struct sw_map_iter it = {0};
    while (sw_map_next(pods->nodes, &it)) {
        struct sw_sim_played_node *node = it.value;
        if (best &&
            (node->count > best->count ||
             (node->count == best->count && strcmp(node->object->name, best->object->name) > 0)))
            continue;
        if (sw_sim_node_is_ready(sw_sim_object_json(node->object)) &&
            node->count < room_of(node->object) &&
            sw_sim_node_fits(spec, sw_sim_object_json(node->object)))
            best = node;
    }
    return best;
}

const char *sw_sim_played_node_ip(const struct sw_sim_played_node *node)
{
    const json_t *address =
        sw_look_element(sw_look_at(sw_sim_object_json(node->object), "status", "addresses", NULL),
                        "type", "InternalIP");
    return address ? sw_look_string(address, "address") : "10.0.0.1";
}

int sw_sim_pods_cordon(struct sw_sim_pods *pods, const char *name, bool is_on)
{
    const struct sw_sim_played_node *node = sw_map_get(pods->nodes, name);
    json_t *json = sw_look_copy(sw_sim_object_json(node->object));
    json_t *spec = sw_look_own(json, "spec");
    if (is_on)
        json_object_set_new(spec, "unschedulable", json_true());
    else
        json_object_del(spec, "unschedulable");
    return sw_sim_update(pods->api, pods->node_kind, json);
}
