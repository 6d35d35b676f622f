/* SPDX-License-Identifier: Apache-2.0 */
/* What the table of built-in kinds (kinds.c) is made of; seen by the files of the kinds alone. */
#ifndef TOOLS_SIM_KINDS_H
#define TOOLS_SIM_KINDS_H

#include <jansson.h>

/* defaults_pod.c: what every Pod has, and what the Pods of a template have before they are Pods. */
void sw_sim_default_pod_spec(json_t *spec);
void sw_sim_default_pod(json_t *object);

/* defaults.c: the other kinds */
void sw_sim_default_deployment(json_t *object);
void sw_sim_default_replicaset(json_t *object);
void sw_sim_default_statefulset(json_t *object);
void sw_sim_default_daemonset(json_t *object);
void sw_sim_default_service(json_t *object);
void sw_sim_default_endpoints(json_t *object);
void sw_sim_default_secret(json_t *object);
void sw_sim_default_namespace(json_t *object);
void sw_sim_default_node(json_t *object);
void sw_sim_default_crd(json_t *object);
void sw_sim_default_mutating_webhooks(json_t *object);
void sw_sim_default_validating_webhooks(json_t *object);
void sw_sim_default_binding(json_t *object);

/* validate.c */
void sw_sim_validate_pod(const json_t *object, const json_t *old, json_t *causes);
void sw_sim_validate_deployment(const json_t *object, const json_t *old, json_t *causes);
void sw_sim_validate_replicaset(const json_t *object, const json_t *old, json_t *causes);
void sw_sim_validate_statefulset(const json_t *object, const json_t *old, json_t *causes);
void sw_sim_validate_daemonset(const json_t *object, const json_t *old, json_t *causes);
void sw_sim_validate_service(const json_t *object, const json_t *old, json_t *causes);

#endif
