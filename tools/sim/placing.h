/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a Pod may run on a Node: nodeSelector, the required part of node affinity, taints against
 * tolerations, cordons. Requests, preferences, Pod affinity and topology spread are not looked at.
 * https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/
 */
#ifndef TOOLS_SIM_PLACING_H
#define TOOLS_SIM_PLACING_H

#include <jansson.h>
#include <stdbool.h>

/* pod_spec and node are as the API has them. */
bool sw_sim_node_is_selected(const json_t *pod_spec, const json_t *node);
/* Taints that keep new Pods away, or, with only_execute, those that drive Pods out. */
bool sw_sim_node_is_tolerated(const json_t *tolerations, const json_t *node, bool only_execute);
/* Both, and no cordon that is not tolerated. */
bool sw_sim_node_fits(const json_t *pod_spec, const json_t *node);
bool sw_sim_node_is_ready(const json_t *node);

#endif
