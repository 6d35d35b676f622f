/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scheduler and kubelets: Pods get a Node, start, become ready, crash, stop. How a Pod behaves is
 * told by rules, by annotations kubelets.slipway.dev/NAME of the Pod, and by defaults: the same
 * settings with the same meaning as tools/kubelets, which does this beside a real API server.
 */
#ifndef TOOLS_SIM_PODS_H
#define TOOLS_SIM_PODS_H

#include <jansson.h>
#include <stddef.h>

struct sw_error;
struct sw_loop;
struct sw_sim_api;
struct sw_sim_pods;
struct sw_sim_store;

/* nodes: how many Nodes there are at the start ("node-1", ...), Ready, with labels for zones. */
struct sw_sim_pods *sw_sim_pods_new(struct sw_loop *loop, struct sw_sim_store *store,
                                    struct sw_sim_api *api, unsigned nodes);
struct sw_sim_pods *sw_sim_pods_free(struct sw_sim_pods *pods);

/* The requests of tools/kubelets: GET /pods, GET|PATCH /settings, PUT|DELETE /settings/NAME,
 * POST /crash, POST /nodes, POST /nodes/NAME/drain|cordon|uncordon. Returns the HTTP status; *ret
 * is a new JSON value, on 400 {"error": "a sentence"}. */
int sw_sim_pods_tell(struct sw_sim_pods *pods, const char *method, const char *path,
                     const json_t *body, json_t **ret);

#endif
