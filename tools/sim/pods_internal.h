/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the scheduler and kubelets share (pods.c, pods_nodes.c, pods_tell.c). */
#ifndef TOOLS_SIM_PODS_INTERNAL_H
#define TOOLS_SIM_PODS_INTERNAL_H

#include "base/list.h"
#include "base/loop.h"
#include "pod_status.h"
#include "store.h"

struct sw_map;
struct sw_sim_api;
struct sw_sim_pod_rules;

struct sw_sim_pods {
    struct sw_loop *loop;
    struct sw_sim_store *store;
    struct sw_sim_api *api;
    const struct sw_sim_kind *pod_kind, *node_kind;
    struct sw_sim_store_watcher watcher;
    struct sw_sim_pod_rules *rules;
    struct sw_map *played;   /* uid -> struct sw_sim_played */
    struct sw_map *nodes;    /* name -> struct sw_sim_played_node */
    struct sw_link unplaced; /* struct sw_sim_played.unplaced */
    unsigned next_ip;
    bool is_writing; /* what changes now was changed here */
};

struct sw_sim_played {
    struct sw_sim_pods *pods;
    char *namespace_, *name, *uid;
    struct sw_timer timer;
    struct sw_link unplaced;
    bool is_bound, is_deleted;
    uint64_t deleted_ms;             /* since when, of is_deleted */
    struct sw_sim_pod_record record; /* of is_bound */
};

struct sw_sim_played_node {
    struct sw_sim_pods *pods;
    const struct sw_sim_object *object; /* counted */
    size_t count;                       /* Pods bound to it */
    struct sw_timer timer;              /* to be made Ready */
};

/* ---- pods.c ---- */

/* The Pod as it is stored now; NULL: gone, or another of that name. */
const struct sw_sim_object *sw_sim_played_pod(const struct sw_sim_played *played);
/* Looks at it soon. */
void sw_sim_played_wake(struct sw_sim_played *played);
void sw_sim_pods_wake_all(struct sw_sim_pods *pods);
void sw_sim_pods_wake_unplaced(struct sw_sim_pods *pods);
struct sw_sim_pod_moment sw_sim_pods_now(const struct sw_sim_pods *pods);
uint64_t sw_sim_pods_lag(const struct sw_sim_pods *pods);

/* ---- pods_nodes.c: Nodes, and the one for a Pod ---- */

void sw_sim_pods_make_nodes(struct sw_sim_pods *pods, unsigned count);
void sw_sim_pods_on_node(struct sw_sim_pods *pods, const struct sw_sim_change *change);
/* The emptiest of those that it may run on; NULL: none. */
struct sw_sim_played_node *sw_sim_pods_choose(const struct sw_sim_pods *pods,
                                              const struct sw_sim_object *pod);
const char *sw_sim_played_node_ip(const struct sw_sim_played_node *node);
int sw_sim_pods_cordon(struct sw_sim_pods *pods, const char *node, bool is_on);
void sw_sim_pods_free_nodes(struct sw_sim_pods *pods);

#endif
