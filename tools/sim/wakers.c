/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which workloads have to be looked at when something changes in a view: the object itself, the one
 * that controls it or did before, and, for an orphan, whoever would adopt it.
 */
#include <string.h>

#include "controllers.h"
#include "kind.h"
#include "look.h"

static enum sw_sim_which which_of(const struct sw_sim_workloads *workloads,
                                  const struct sw_sim_view *view)
{
    size_t at = 0;
    while (workloads->views[at] != view)
        at++;
    return (enum sw_sim_which)at;
}

static bool which_controller(const char *kind, enum sw_sim_which *ret_which)
{
    static const char *const names[SW_SIM_CONTROLLERS] = {
        [SW_SIM_DEPLOYMENTS] = "Deployment",
        [SW_SIM_REPLICA_SETS] = "ReplicaSet",
        [SW_SIM_STATEFUL_SETS] = "StatefulSet",
        [SW_SIM_DAEMON_SETS] = "DaemonSet",
    };
    for (size_t i = 0; i < SW_SIM_CONTROLLERS; i++) {
        if (strcmp(kind, names[i]) == 0) {
            *ret_which = (enum sw_sim_which)i;
            return true;
        }
    }
    return false;
}

/* The workload that controls the object, where the view knows it. */
static const struct sw_sim_item *owner_of(const struct sw_sim_workloads *workloads,
                                          const struct sw_sim_object *object,
                                          enum sw_sim_which *ret_which)
{
    const json_t *reference = sw_look_controller_of(sw_sim_object_json(object));
    if (!reference || !which_controller(sw_look_string(reference, "kind"), ret_which))
        return NULL;
    const struct sw_sim_item *owner = sw_sim_view_get(
        workloads->views[*ret_which], object->namespace_, sw_look_string(reference, "name"));
    if (!owner || strcmp(owner->object->uid, sw_look_string(reference, "uid")) != 0)
        return NULL;
    return owner;
}

static void wake(struct sw_sim_workloads *workloads, enum sw_sim_which which,
                 const struct sw_sim_object *object)
{
    sw_sim_wake(workloads, which, object->namespace_, object->name);
}

static void wake_owner(struct sw_sim_workloads *workloads, const struct sw_sim_item *item)
{
    enum sw_sim_which which;
    const struct sw_sim_item *owner = item ? owner_of(workloads, item->object, &which) : NULL;
    if (owner)
        wake(workloads, which, owner->object);
}

static void wake_owners(struct sw_sim_workloads *workloads, const struct sw_sim_item *before,
                        const struct sw_sim_item *after)
{
    enum sw_sim_which unused;
    wake_owner(workloads, after);
    if (before && (!after || owner_of(workloads, before->object, &unused) !=
                                 owner_of(workloads, after->object, &unused)))
        wake_owner(workloads, before);
}

/* ---- orphans ---- */

struct search {
    struct sw_sim_workloads *workloads;
    enum sw_sim_which which;
    const struct sw_sim_object *orphan;
};

static int wake_if_it_selects(void *arg, struct sw_sim_item *item)
{
    struct search *search = arg;
    const json_t *selector = sw_look_at(sw_sim_object_json(item->object), "spec", "selector", NULL);
    const json_t *labels = json_object_get(sw_look_meta(search->orphan), "labels");
    if (strcmp(item->object->namespace_, search->orphan->namespace_) == 0 &&
        sw_look_selects(selector, labels))
        wake(search->workloads, search->which, item->object);
    return 0;
}

static void wake_adopters(struct sw_sim_workloads *workloads, enum sw_sim_which which,
                          const struct sw_sim_item *before, const struct sw_sim_item *after)
{
    if (!after || sw_look_controller_of(sw_sim_object_json(after->object)) ||
        !json_object_size(json_object_get(sw_look_meta(after->object), "labels")))
        return;
    if (before && !sw_look_controller_of(sw_sim_object_json(before->object)) &&
        json_equal(json_object_get(sw_look_meta(before->object), "labels"),
                   json_object_get(sw_look_meta(after->object), "labels")))
        return;
    struct search search = {workloads, which, after->object};
    sw_sim_view_each(workloads->views[which], wake_if_it_selects, &search);
}

/* ---- kinds ---- */

/* A ready Pod becomes available without any event. */
static void wake_when_available(struct sw_sim_workloads *workloads,
                                const struct sw_sim_item *before, const struct sw_sim_item *after)
{
    if (!after || !after->pod.is_ready || (before && before->pod.is_ready))
        return;
    enum sw_sim_which which;
    const struct sw_sim_item *owner = owner_of(workloads, after->object, &which);
    int64_t wait_s = owner ? sw_look_int(json_object_get(sw_sim_object_json(owner->object), "spec"),
                                         "minReadySeconds", 0)
                           : 0;
    if (wait_s > 0) /* and a second, since the time in the condition has no fraction */
        sw_sim_wake_after(workloads, which, owner->object->namespace_, owner->object->name,
                          (uint64_t)(wait_s + 1) * 1000);
}

/* A Deployment that recreates waits until the last old Pod is gone. */
static void wake_recreating(struct sw_sim_workloads *workloads, const struct sw_sim_item *gone)
{
    enum sw_sim_which which;
    const struct sw_sim_item *set = owner_of(workloads, gone->object, &which);
    if (!set || which != SW_SIM_REPLICA_SETS)
        return;
    const struct sw_sim_item *owner = owner_of(workloads, set->object, &which);
    if (owner && which == SW_SIM_DEPLOYMENTS &&
        strcmp(sw_look_string(
                   sw_look_at(sw_sim_object_json(owner->object), "spec", "strategy", NULL), "type"),
               "Recreate") == 0)
        wake(workloads, which, owner->object);
}

static bool same_at(const struct sw_sim_item *before, const struct sw_sim_item *after,
                    const char *part, const char *key)
{
    const json_t *a = sw_look_at(sw_sim_object_json(before->object), part, key, NULL);
    const json_t *b = sw_look_at(sw_sim_object_json(after->object), part, key, NULL);
    return a == b || json_equal(a, b);
}

/* Most changes of a Pod, such as that it got a Node, change nothing that its owner looks at. */
static bool is_news(const struct sw_sim_item *before, const struct sw_sim_item *after)
{
    if (!before || !after)
        return true;
    const struct sw_sim_pod *a = &before->pod, *b = &after->pod;
    return a->phase != b->phase || a->is_ready != b->is_ready || a->is_deleted != b->is_deleted ||
           a->ready_us != b->ready_us || !same_at(before, after, "metadata", "labels") ||
           !same_at(before, after, "metadata", "ownerReferences");
}

static void on_pod(struct sw_sim_workloads *workloads, const struct sw_sim_item *before,
                   const struct sw_sim_item *after)
{
    if (!is_news(before, after))
        return;
    wake_owners(workloads, before, after);
    wake_when_available(workloads, before, after);
    if (!after)
        wake_recreating(workloads, before);
    wake_adopters(workloads, SW_SIM_REPLICA_SETS, before, after);
    wake_adopters(workloads, SW_SIM_STATEFUL_SETS, before, after);
    wake_adopters(workloads, SW_SIM_DAEMON_SETS, before, after);
}

static int wake_item(void *arg, struct sw_sim_item *item)
{
    wake(arg, SW_SIM_DAEMON_SETS, item->object);
    return 0;
}

/* DaemonSets care for what decides whether their Pods belong there, not for heartbeats. */
static void on_node(struct sw_sim_workloads *workloads, const struct sw_sim_item *before,
                    const struct sw_sim_item *after)
{
    if (before && after && same_at(before, after, "metadata", "labels") &&
        same_at(before, after, "spec", "taints") && same_at(before, after, "spec", "unschedulable"))
        return;
    sw_sim_view_each(workloads->views[SW_SIM_DAEMON_SETS], wake_item, workloads);
}

void sw_sim_on_change(void *arg, struct sw_sim_view *view, const struct sw_sim_item *before,
                      const struct sw_sim_item *after)
{
    struct sw_sim_workloads *workloads = arg;
    enum sw_sim_which which = which_of(workloads, view);
    switch (which) {
    case SW_SIM_PODS:
        on_pod(workloads, before, after);
        return;
    case SW_SIM_NODES:
        on_node(workloads, before, after);
        return;
    case SW_SIM_REVISIONS:
        wake_owners(workloads, before, after);
        return;
    case SW_SIM_REPLICA_SETS:
        wake_owners(workloads, before, after);
        wake_adopters(workloads, SW_SIM_DEPLOYMENTS, before, after);
        break;
    case SW_SIM_DEPLOYMENTS:
    case SW_SIM_STATEFUL_SETS:
    case SW_SIM_DAEMON_SETS:
    case SW_SIM_VIEWS:
        break;
    }
    wake(workloads, which, after ? after->object : before->object);
}
