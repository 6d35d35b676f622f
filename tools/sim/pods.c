/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scheduler and kubelets. A Pod without a Node is bound to one; one with a Node gets the status
 * that pod_status.h says; one that is being deleted is removed after its `stop`, at the latest
 * after its grace period; one whose Node is gone is removed at once. Each is looked at by a timer
 * of its own: shortly after a change, and when its plan says so.
 */
#include "pods.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api.h"
#include "base/error.h"
#include "base/map.h"
#include "base/util.h"
#include "look.h"
#include "pod_rules.h"
#include "pods_internal.h"

enum { LAG_MIN_MS = 1, LAG_MAX_MS = 3 }; /* until a change is seen, as of the controllers */

struct sw_sim_pod_moment sw_sim_pods_now(const struct sw_sim_pods *pods)
{
    return (struct sw_sim_pod_moment){sw_now_ms(pods->loop), sw_wall_us(pods->loop)};
}

uint64_t sw_sim_pods_lag(const struct sw_sim_pods *pods)
{
    return sw_random_between(pods->loop, LAG_MIN_MS, LAG_MAX_MS);
}

const struct sw_sim_object *sw_sim_played_pod(const struct sw_sim_played *played)
{
    const struct sw_sim_object *pod = sw_sim_store_get(played->pods->store, played->pods->pod_kind,
                                                       played->namespace_, played->name);
    return pod && strcmp(pod->uid, played->uid) == 0 ? pod : NULL;
}

static void wake_at(struct sw_sim_played *played, uint64_t due_ms)
{
    if (!sw_timer_is_active(&played->timer) || played->timer.due_ms > due_ms)
        sw_timer_start_at(&played->timer, due_ms);
}

void sw_sim_played_wake(struct sw_sim_played *played)
{
    wake_at(played, sw_now_ms(played->pods->loop) + sw_sim_pods_lag(played->pods));
}

void sw_sim_pods_wake_all(struct sw_sim_pods *pods)
{
    struct sw_map_iter it = {0};
    while (sw_map_next(pods->played, &it))
        sw_sim_played_wake(it.value);
}

void sw_sim_pods_wake_unplaced(struct sw_sim_pods *pods)
{
    SW_LIST_EACH (link, &pods->unplaced) {
        struct sw_sim_played *played = container_of(link, struct sw_sim_played, unplaced);
        sw_link_remove(link);
        sw_sim_played_wake(played);
    }
}

/* ---- writing ---- */

static int write_status(struct sw_sim_pods *pods, const struct sw_sim_object *pod,
                        json_t *status_take)
{
    if (json_equal(status_take, json_object_get(sw_sim_object_json(pod), "status"))) {
        json_decref(status_take);
        return 0;
    }
    pods->is_writing = true;
    int result =
        sw_sim_update_status(pods->api, pods->pod_kind, sw_look_with_status(pod, status_take));
    pods->is_writing = false;
    return result;
}

static const char *node_of(const struct sw_sim_object *pod)
{
    return sw_look_string(json_object_get(sw_sim_object_json(pod), "spec"), "nodeName");
}

/* ---- placing ---- */

static void say_unplaced(struct sw_sim_pods *pods, const struct sw_sim_object *pod)
{
    char message[64];
    snprintf(message, sizeof(message), "none of %zu Nodes takes it", sw_map_size(pods->nodes));
    const json_t *before = sw_look_element(
        sw_look_at(sw_sim_object_json(pod), "status", "conditions", NULL), "type", "PodScheduled");
    if (strcmp(sw_look_string(before, "message"), message) != 0)
        write_status(pods, pod, sw_sim_pod_scheduled(pod, false, message, sw_wall_us(pods->loop)));
}

static void place(struct sw_sim_played *played, const struct sw_sim_object *pod)
{
    struct sw_sim_pods *pods = played->pods;
    const json_t *spec = json_object_get(sw_sim_object_json(pod), "spec");
    const char *scheduler = sw_look_string(spec, "schedulerName");
    if (sw_look_is_deleted(pod) || (*scheduler && strcmp(scheduler, "default-scheduler") != 0))
        return;
    struct sw_sim_played_node *node = sw_sim_pods_choose(pods, pod);
    if (!node) {
        sw_link_add_last(&pods->unplaced, &played->unplaced);
        say_unplaced(pods, pod);
        return;
    }
    json_t *json = sw_look_copy(sw_sim_object_json(pod));
    json_object_set_new(sw_look_own(json, "spec"), "nodeName", json_string(node->object->name));
    if (sw_sim_update(pods->api, pods->pod_kind, json))
        sw_sim_played_wake(played); /* it changed meanwhile */
}

/* ---- the end ---- */

static void end(struct sw_sim_played *played, const struct sw_sim_object *pod,
                const struct sw_sim_pod_settings *settings)
{
    struct sw_sim_pods *pods = played->pods;
    uint64_t now_ms = sw_now_ms(pods->loop);
    if (!played->is_deleted) {
        played->is_deleted = true;
        played->deleted_ms = now_ms;
    }
    int64_t grace_s = sw_look_int(sw_look_meta(pod), "deletionGracePeriodSeconds", 0);
    uint64_t grace_ms = (uint64_t)SW_MAX(grace_s, 0) * 1000;
    uint64_t due_ms = played->deleted_ms + SW_MIN(settings->stop_ms, grace_ms);
    if (due_ms > now_ms)
        wake_at(played, due_ms);
    else
        sw_sim_finish_delete(pods->api, pod);
}

/* ---- a look ---- */

static void play(struct sw_sim_played *played, const struct sw_sim_object *pod,
                 const struct sw_sim_played_node *node)
{
    struct sw_sim_pods *pods = played->pods;
    struct sw_sim_pod_moment moment = sw_sim_pods_now(pods);
    if (!played->is_bound) {
        sw_sim_pod_record_init(&played->record, pod, pods->next_ip++, moment);
        played->is_bound = true;
    }
    struct sw_sim_pod_settings settings;
    struct sw_error error = {0};
    bool is_wrong = sw_sim_pod_rules_resolve(pods->rules, pod, &settings, &error) != 0;
    if (sw_look_is_deleted(pod)) {
        end(played, pod, &settings);
        return;
    }
    const char *phase = sw_look_string(json_object_get(sw_sim_object_json(pod), "status"), "phase");
    if (strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0)
        return;
    uint64_t wake_ms;
    json_t *status = sw_sim_pod_plan(pod, &played->record, &settings, is_wrong ? error.text : NULL,
                                     sw_sim_played_node_ip(node), moment, &wake_ms);
    if (wake_ms)
        wake_at(played, wake_ms);
    if (write_status(pods, pod, status) == -EAGAIN)
        sw_sim_played_wake(played);
}

static void on_timer(struct sw_timer *timer)
{
    struct sw_sim_played *played = container_of(timer, struct sw_sim_played, timer);
    struct sw_sim_pods *pods = played->pods;
    const struct sw_sim_object *pod = sw_sim_played_pod(played);
    if (!pod)
        return;
    sw_sim_object_ref(pod);
    const struct sw_sim_played_node *node = sw_map_get(pods->nodes, node_of(pod));
    if (!*node_of(pod))
        place(played, pod);
    else if (!node)
        sw_sim_delete(pods->api, pod, 0, NULL);
    else
        play(played, pod, node);
    sw_sim_object_unref(pod);
}

/* ---- changes ---- */

static struct sw_sim_played *played_new(struct sw_sim_pods *pods, const struct sw_sim_object *pod)
{
    struct sw_sim_played *played = SW_NEW(struct sw_sim_played);
    played->pods = pods;
    played->namespace_ = sw_strdup(pod->namespace_);
    played->name = sw_strdup(pod->name);
    played->uid = sw_strdup(pod->uid);
    sw_timer_init(&played->timer, pods->loop, on_timer);
    sw_link_init(&played->unplaced);
    sw_map_set(pods->played, pod->uid, played);
    return played;
}

static void played_free(struct sw_sim_played *played)
{
    sw_timer_stop(&played->timer);
    sw_link_remove(&played->unplaced);
    sw_sim_pod_record_done(&played->record);
    sw_free(played->namespace_);
    sw_free(played->name);
    sw_free(played->uid);
    sw_free(played);
}

static void count_on_node(struct sw_sim_pods *pods, const struct sw_sim_object *pod, bool is_more)
{
    struct sw_sim_played_node *node =
        pod && *node_of(pod) ? sw_map_get(pods->nodes, node_of(pod)) : NULL;
    if (node)
        node->count += is_more ? 1 : (size_t)-1;
}

static void on_pod(struct sw_sim_pods *pods, const struct sw_sim_change *change)
{
    const struct sw_sim_object *pod = change->object;
    count_on_node(pods, change->before, false);
    if (change->type == SW_SIM_DELETED) {
        struct sw_sim_played *gone = sw_map_remove(pods->played, pod->uid);
        if (gone)
            played_free(gone);
        sw_sim_pods_wake_unplaced(pods);
        return;
    }
    count_on_node(pods, pod, true);
    struct sw_sim_played *played = sw_map_get(pods->played, pod->uid);
    if (!played)
        played = played_new(pods, pod);
    if (!pods->is_writing)
        sw_sim_played_wake(played);
}

static void on_store_change(struct sw_sim_store_watcher *watcher,
                            const struct sw_sim_change *change)
{
    struct sw_sim_pods *pods = container_of(watcher, struct sw_sim_pods, watcher);
    if (change->object->kind == pods->pod_kind)
        on_pod(pods, change);
    else if (change->object->kind == pods->node_kind)
        sw_sim_pods_on_node(pods, change);
}

static int take_over(void *arg, const struct sw_sim_object *object)
{
    struct sw_sim_pods *pods = arg;
    struct sw_sim_change change = {
        .version = object->version, .type = SW_SIM_ADDED, .object = object};
    on_store_change(&pods->watcher, &change);
    return 0;
}

/* ---- life ---- */

struct sw_sim_pods *sw_sim_pods_new(struct sw_loop *loop, struct sw_sim_store *store,
                                    struct sw_sim_api *api, unsigned nodes)
{
    struct sw_sim_pods *pods = SW_NEW(struct sw_sim_pods);
    pods->loop = loop;
    pods->store = store;
    pods->api = api;
    pods->pod_kind = sw_sim_api_kind(api, "", "v1", "pods");
    pods->node_kind = sw_sim_api_kind(api, "", "v1", "nodes");
    sw_assert(pods->pod_kind && pods->node_kind);
    pods->rules = sw_sim_pod_rules_new();
    pods->played = sw_map_new();
    pods->nodes = sw_map_new();
    sw_link_init(&pods->unplaced);
    pods->watcher.on_change = on_store_change;
    sw_sim_store_each(store, pods->node_kind, NULL, NULL, take_over, pods);
    sw_sim_store_each(store, pods->pod_kind, NULL, NULL, take_over, pods);
    sw_sim_store_watch(store, &pods->watcher);
    sw_sim_pods_make_nodes(pods, nodes);
    return pods;
}

struct sw_sim_pods *sw_sim_pods_free(struct sw_sim_pods *pods)
{
    if (!pods)
        return NULL;
    sw_sim_store_unwatch(pods->store, &pods->watcher);
    struct sw_map_iter it = {0};
    while (sw_map_next(pods->played, &it))
        played_free(it.value);
    sw_map_free(pods->played);
    sw_sim_pods_free_nodes(pods);
    sw_map_free(pods->nodes);
    sw_sim_pod_rules_free(pods->rules);
    return sw_free(pods);
}
