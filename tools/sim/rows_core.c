/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the tables of the core kinds: how a Pod, a Node, an event are shown in a line. */
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "document.h"
#include "rows.h"

static const json_t *condition(const json_t *object, const char *type)
{
    const json_t *list = sw_sim_at(object, "status.conditions");
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (strcmp(sw_sim_text_at(json_array_get(list, i), "type"), type) == 0) {
            return json_array_get(list, i);
        }
    }
    return NULL;
}

static bool is_true(const json_t *object, const char *type)
{
    return strcmp(sw_sim_text_at(condition(object, type), "status"), "True") == 0;
}

/* ---- Pods ---- */

struct pod_state {
    json_t *text;
    int64_t restarts, ready;
};

static void say(struct pod_state *state, json_t *text_take)
{
    json_decref(state->text);
    state->text = text_take;
}

static json_t *ended(const json_t *terminated, const char *prefix)
{
    const char *reason = sw_sim_text_at(terminated, "reason");
    int64_t signal = sw_sim_int_at(terminated, "signal", 0);
    if (*reason) {
        return json_sprintf("%s%s", prefix, reason);
    }
    return json_sprintf("%s%s:%" PRId64, prefix, signal ? "Signal" : "ExitCode",
                        signal ? signal : sw_sim_int_at(terminated, "exitCode", 0));
}

/* True while an init container is not through. */
static bool show_init(const json_t *pod, struct pod_state *state)
{
    const json_t *list = sw_sim_at(pod, "status.initContainerStatuses");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        const json_t *terminated = sw_sim_at(one, "state.terminated");
        const char *waiting = sw_sim_text_at(one, "state.waiting.reason");
        state->restarts += sw_sim_int_at(one, "restartCount", 0);
        if (terminated && sw_sim_int_at(terminated, "exitCode", 0) == 0) {
            continue;
        }
        if (terminated) {
            say(state, ended(terminated, "Init:"));
        } else if (*waiting && strcmp(waiting, "PodInitializing") != 0) {
            say(state, json_sprintf("Init:%s", waiting));
        } else {
            size_t count = json_array_size(sw_sim_at(pod, "spec.initContainers"));
            say(state, json_sprintf("Init:%zu/%zu", i, count));
        }
        return true;
    }
    return false;
}

static void show_containers(const json_t *pod, struct pod_state *state)
{
    const json_t *list = sw_sim_at(pod, "status.containerStatuses");
    bool is_running = false;
    state->restarts = 0;
    for (size_t i = json_array_size(list); i-- > 0;) {
        const json_t *one = json_array_get(list, i);
        const char *waiting = sw_sim_text_at(one, "state.waiting.reason");
        const json_t *terminated = sw_sim_at(one, "state.terminated");
        state->restarts += sw_sim_int_at(one, "restartCount", 0);
        if (*waiting) {
            say(state, json_string(waiting));
        } else if (terminated) {
            say(state, ended(terminated, ""));
        } else if (sw_sim_bool_at(one, "ready") && sw_sim_at(one, "state.running")) {
            is_running = true;
            state->ready++;
        }
    }
    if (is_running && strcmp(json_string_value(state->text), "Completed") == 0) {
        say(state, json_string(is_true(pod, "Ready") ? "Running" : "NotReady"));
    }
}

static struct pod_state show_pod(const json_t *pod)
{
    const char *reason = sw_sim_text_at(pod, "status.reason");
    struct pod_state state = {
        .text = json_string(*reason ? reason : sw_sim_text_at(pod, "status.phase"))};
    if (!show_init(pod, &state)) {
        show_containers(pod, &state);
    }
    if (sw_sim_at(pod, "metadata.deletionTimestamp")) {
        say(&state, json_string(strcmp(reason, "NodeLost") == 0 ? "Unknown" : "Terminating"));
    }
    return state;
}

static json_t *readiness_gates(const json_t *pod)
{
    const json_t *gates = sw_sim_at(pod, "spec.readinessGates");
    size_t passed = 0;
    for (size_t i = 0; i < json_array_size(gates); i++) {
        passed += is_true(pod, sw_sim_text_at(json_array_get(gates, i), "conditionType"));
    }
    return json_array_size(gates) ? json_sprintf("%zu/%zu", passed, json_array_size(gates))
                                  : json_string("<none>");
}

json_t *sw_sim_row_pod(const json_t *object, int64_t wall_us)
{
    struct pod_state state = show_pod(object);
    size_t count = json_array_size(sw_sim_at(object, "spec.containers"));
    return json_pack(
        "[o, o, I, o, o, o, o, o]", json_sprintf("%" PRId64 "/%zu", state.ready, count), state.text,
        (json_int_t)state.restarts, sw_sim_cell_age(object, wall_us),
        sw_sim_cell_text(object, "status.podIP", "<none>"),
        sw_sim_cell_text(object, "spec.nodeName", "<none>"),
        sw_sim_cell_text(object, "status.nominatedNodeName", "<none>"), readiness_gates(object));
}

/* ---- Nodes and namespaces ---- */

static json_t *node_status(const json_t *node)
{
    const json_t *ready = condition(node, "Ready");
    const char *text = !ready ? "Unknown" : is_true(node, "Ready") ? "Ready" : "NotReady";
    bool is_cordoned = sw_sim_bool_at(node, "spec.unschedulable");
    return json_sprintf("%s%s", text, is_cordoned ? ",SchedulingDisabled" : "");
}

static json_t *node_roles(const json_t *node)
{
    static const char prefix[] = "node-role.kubernetes.io/";
    struct sw_buf text;
    sw_buf_init(&text, SIZE_MAX);
    const char *name;
    json_t *value;
    json_object_foreach(sw_sim_at(node, "metadata.labels"), name, value)
    {
        bool is_role = strncmp(name, prefix, strlen(prefix)) == 0;
        if (is_role && name[strlen(prefix)]) {
            sw_buf_printf(&text, "%s%s", text.len ? "," : "", name + strlen(prefix));
        }
    }
    json_t *made = json_string(text.len ? text.bytes : "<none>");
    sw_buf_done(&text);
    return made;
}

static json_t *node_address(const json_t *node, const char *type)
{
    const json_t *list = sw_sim_at(node, "status.addresses");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        if (strcmp(sw_sim_text_at(one, "type"), type) == 0) {
            return sw_sim_cell_text(one, "address", "<none>");
        }
    }
    return json_string("<none>");
}

json_t *sw_sim_row_node(const json_t *object, int64_t wall_us)
{
    return json_pack(
        "[o, o, o, o, o, o, o, o, o]", node_status(object), node_roles(object),
        sw_sim_cell_age(object, wall_us),
        sw_sim_cell_text(object, "status.nodeInfo.kubeletVersion", ""),
        node_address(object, "InternalIP"), node_address(object, "ExternalIP"),
        sw_sim_cell_text(object, "status.nodeInfo.osImage", "<unknown>"),
        sw_sim_cell_text(object, "status.nodeInfo.kernelVersion", "<unknown>"),
        sw_sim_cell_text(object, "status.nodeInfo.containerRuntimeVersion", "<unknown>"));
}

json_t *sw_sim_row_namespace(const json_t *object, int64_t wall_us)
{
    return json_pack("[o, o]", sw_sim_cell_text(object, "status.phase", ""),
                     sw_sim_cell_age(object, wall_us));
}

/* ---- events ---- */

/* The first of the two names that has a text; the two groups of events name things differently. */
static const char *either(const json_t *object, const char *one, const char *other)
{
    const char *text = sw_sim_text_at(object, one);
    return *text ? text : sw_sim_text_at(object, other);
}

static json_t *event_object(const json_t *event)
{
    const char *kind = either(event, "involvedObject.kind", "regarding.kind");
    const char *name = either(event, "involvedObject.name", "regarding.name");
    char *lower = sw_strdup(kind);
    for (char *c = lower; *c; c++) {
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    }
    json_t *made = json_sprintf("%s/%s", lower, name);
    sw_free(lower);
    return made;
}

/* Who, and the Node or the instance that it runs on. */
static json_t *event_source(const json_t *event)
{
    const char *who = either(event, "source.component", "deprecatedSource.component");
    const char *where = either(event, "source.host", "deprecatedSource.host");
    if (!*who) {
        who = either(event, "reportingController", "reportingComponent");
        where = sw_sim_text_at(event, "reportingInstance");
    }
    return json_sprintf("%s%s%s", who, *where ? ", " : "", where);
}

json_t *sw_sim_row_event(const json_t *object, int64_t wall_us)
{
    const char *event_time = sw_sim_text_at(object, "eventTime");
    const char *first = either(object, "firstTimestamp", "deprecatedFirstTimestamp");
    const char *last = either(object, "lastTimestamp", "deprecatedLastTimestamp");
    const char *series = sw_sim_text_at(object, "series.lastObservedTime");
    first = *first ? first : event_time;
    last = *last ? last : *series ? series : first;
    int64_t count = sw_sim_int_at(object, "series.count", sw_sim_int_at(object, "count", 0));
    count = count ? count : sw_sim_int_at(object, "deprecatedCount", 1);
    return json_pack(
        "[o, o, o, o, s, o, s, o, I, o]", sw_sim_cell_since(last, wall_us),
        sw_sim_cell_text(object, "type", ""), sw_sim_cell_text(object, "reason", ""),
        event_object(object), either(object, "involvedObject.fieldPath", "regarding.fieldPath"),
        event_source(object), either(object, "message", "note"), sw_sim_cell_since(first, wall_us),
        (json_int_t)count, sw_sim_cell_text(object, "metadata.name", ""));
}

/* ---- services and what is only counted ---- */

static json_t *service_ports(const json_t *service)
{
    struct sw_buf text;
    sw_buf_init(&text, SIZE_MAX);
    const json_t *ports = sw_sim_at(service, "spec.ports");
    for (size_t i = 0; i < json_array_size(ports); i++) {
        const json_t *port = json_array_get(ports, i);
        int64_t node_port = sw_sim_int_at(port, "nodePort", 0);
        sw_buf_printf(&text, "%s%" PRId64, i ? "," : "", sw_sim_int_at(port, "port", 0));
        if (node_port) {
            sw_buf_printf(&text, ":%" PRId64, node_port);
        }
        sw_buf_printf(&text, "/%s", sw_sim_text_at(port, "protocol"));
    }
    json_t *made = json_string(text.len ? text.bytes : "<none>");
    sw_buf_done(&text);
    return made;
}

json_t *sw_sim_row_service(const json_t *object, int64_t wall_us)
{
    bool is_balanced = strcmp(sw_sim_text_at(object, "spec.type"), "LoadBalancer") == 0;
    return json_pack("[o, o, s, o, o, o]", sw_sim_cell_text(object, "spec.type", ""),
                     sw_sim_cell_text(object, "spec.clusterIP", "<none>"),
                     is_balanced ? "<pending>" : "<none>", service_ports(object),
                     sw_sim_cell_age(object, wall_us),
                     sw_sim_cell_labels(sw_sim_at(object, "spec.selector")));
}

json_t *sw_sim_row_endpoints(const json_t *object, int64_t wall_us)
{
    struct sw_buf text;
    sw_buf_init(&text, SIZE_MAX);
    const json_t *subsets = sw_sim_at(object, "subsets");
    for (size_t s = 0; s < json_array_size(subsets); s++) {
        const json_t *subset = json_array_get(subsets, s);
        const json_t *addresses = sw_sim_at(subset, "addresses");
        const json_t *ports = sw_sim_at(subset, "ports");
        for (size_t p = 0; p < json_array_size(ports); p++) {
            for (size_t a = 0; a < json_array_size(addresses); a++) {
                sw_buf_printf(&text, "%s%s:%" PRId64, text.len ? "," : "",
                              sw_sim_text_at(json_array_get(addresses, a), "ip"),
                              sw_sim_int_at(json_array_get(ports, p), "port", 0));
            }
        }
    }
    json_t *row =
        json_pack("[s, o]", text.len ? text.bytes : "<none>", sw_sim_cell_age(object, wall_us));
    sw_buf_done(&text);
    return row;
}

json_t *sw_sim_row_configmap(const json_t *object, int64_t wall_us)
{
    size_t count = json_object_size(sw_sim_at(object, "data")) +
                   json_object_size(sw_sim_at(object, "binaryData"));
    return json_pack("[I, o]", (json_int_t)count, sw_sim_cell_age(object, wall_us));
}

json_t *sw_sim_row_secret(const json_t *object, int64_t wall_us)
{
    size_t count = json_object_size(sw_sim_at(object, "data"));
    return json_pack("[o, I, o]", sw_sim_cell_text(object, "type", ""), (json_int_t)count,
                     sw_sim_cell_age(object, wall_us));
}

json_t *sw_sim_row_serviceaccount(const json_t *object, int64_t wall_us)
{
    size_t count = json_array_size(sw_sim_at(object, "secrets"));
    return json_pack("[I, o]", (json_int_t)count, sw_sim_cell_age(object, wall_us));
}
