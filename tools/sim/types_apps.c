/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of workloads. */
#include "types.h"

static const struct sw_sim_field rolling_update_deployment[] = {
    {"maxSurge", ONE, INT_OR_TEXT, PTR},
    {"maxUnavailable", ONE, INT_OR_TEXT, PTR},
    {0},
};

static const struct sw_sim_field deployment_strategy[] = {
    {"rollingUpdate", ONE, STRUCT, PTR, .fields = rolling_update_deployment},
    {"type", ONE, TEXT},
    {0},
};

static const struct sw_sim_field deployment_spec[] = {
    {"minReadySeconds", ONE, INT},
    {"paused", ONE, BOOL},
    {"progressDeadlineSeconds", ONE, INT, PTR},
    {"replicas", ONE, INT, PTR},
    {"revisionHistoryLimit", ONE, INT, PTR},
    {"selector", ONE, STRUCT, PTR | KEEP | ATOMIC, .fields = sw_sim_fields_label_selector},
    {"strategy", ONE, STRUCT, KEEP | RETAIN, .fields = deployment_strategy},
    {"template", ONE, STRUCT, KEEP, .fields = sw_sim_fields_pod_template_spec},
    {0},
};

static const struct sw_sim_field deployment_condition[] = {
    {"lastTransitionTime", ONE, TIME, KEEP},
    {"lastUpdateTime", ONE, TIME, KEEP},
    {"message", ONE, TEXT},
    {"reason", ONE, TEXT},
    {"status", ONE, TEXT, KEEP},
    {"type", ONE, TEXT, KEEP},
    {0},
};

static const struct sw_sim_field deployment_status[] = {
    {"availableReplicas", ONE, INT},
    {"collisionCount", ONE, INT, PTR},
    {"conditions", LIST, STRUCT, 0, .fields = deployment_condition, .merge = "type",
     .keys = "type"},
    {"observedGeneration", ONE, INT},
    {"readyReplicas", ONE, INT},
    {"replicas", ONE, INT},
    {"unavailableReplicas", ONE, INT},
    {"updatedReplicas", ONE, INT},
    {0},
};

const struct sw_sim_field sw_sim_fields_deployment[] = {
    {"apiVersion", ONE, TEXT},
    {"kind", ONE, TEXT},
    {"metadata", ONE, STRUCT, KEEP, .fields = sw_sim_fields_object_meta},
    {"spec", ONE, STRUCT, KEEP, .fields = deployment_spec},
    {"status", ONE, STRUCT, KEEP, .fields = deployment_status},
    {0},
};

static const struct sw_sim_field replica_set_spec[] = {
    {"minReadySeconds", ONE, INT},
    {"replicas", ONE, INT, PTR},
    {"selector", ONE, STRUCT, PTR | KEEP | ATOMIC, .fields = sw_sim_fields_label_selector},
    {"template", ONE, STRUCT, KEEP, .fields = sw_sim_fields_pod_template_spec},
    {0},
};

static const struct sw_sim_field replica_set_condition[] = {
    {"lastTransitionTime", ONE, TIME, KEEP},
    {"message", ONE, TEXT},
    {"reason", ONE, TEXT},
    {"status", ONE, TEXT, KEEP},
    {"type", ONE, TEXT, KEEP},
    {0},
};

static const struct sw_sim_field replica_set_status[] = {
    {"availableReplicas", ONE, INT},
    {"conditions", LIST, STRUCT, 0, .fields = replica_set_condition, .merge = "type",
     .keys = "type"},
    {"fullyLabeledReplicas", ONE, INT},
    {"observedGeneration", ONE, INT},
    {"readyReplicas", ONE, INT},
    {"replicas", ONE, INT, KEEP},
    {0},
};

const struct sw_sim_field sw_sim_fields_replica_set[] = {
    {"apiVersion", ONE, TEXT},
    {"kind", ONE, TEXT},
    {"metadata", ONE, STRUCT, KEEP, .fields = sw_sim_fields_object_meta},
    {"spec", ONE, STRUCT, KEEP, .fields = replica_set_spec},
    {"status", ONE, STRUCT, KEEP, .fields = replica_set_status},
    {0},
};

static const struct sw_sim_field rolling_update_stateful_set_strategy[] = {
    {"partition", ONE, INT, PTR},
    {0},
};

static const struct sw_sim_field stateful_set_update_strategy[] = {
    {"rollingUpdate", ONE, STRUCT, PTR, .fields = rolling_update_stateful_set_strategy},
    {"type", ONE, TEXT},
    {0},
};

static const struct sw_sim_field stateful_set_spec[] = {
    {"podManagementPolicy", ONE, TEXT},
    {"replicas", ONE, INT, PTR},
    {"revisionHistoryLimit", ONE, INT, PTR},
    {"selector", ONE, STRUCT, PTR | KEEP | ATOMIC, .fields = sw_sim_fields_label_selector},
    {"serviceName", ONE, TEXT, KEEP},
    {"template", ONE, STRUCT, KEEP, .fields = sw_sim_fields_pod_template_spec},
    {"updateStrategy", ONE, STRUCT, KEEP, .fields = stateful_set_update_strategy},
    {"volumeClaimTemplates", LIST, STRUCT, 0, .fields = sw_sim_fields_persistent_volume_claim},
    {0},
};

static const struct sw_sim_field stateful_set_condition[] = {
    {"lastTransitionTime", ONE, TIME, KEEP},
    {"message", ONE, TEXT},
    {"reason", ONE, TEXT},
    {"status", ONE, TEXT, KEEP},
    {"type", ONE, TEXT, KEEP},
    {0},
};

static const struct sw_sim_field stateful_set_status[] = {
    {"collisionCount", ONE, INT, PTR},
    {"conditions", LIST, STRUCT, 0, .fields = stateful_set_condition, .merge = "type",
     .keys = "type"},
    {"currentReplicas", ONE, INT},
    {"currentRevision", ONE, TEXT},
    {"observedGeneration", ONE, INT},
    {"readyReplicas", ONE, INT},
    {"replicas", ONE, INT, KEEP},
    {"updateRevision", ONE, TEXT},
    {"updatedReplicas", ONE, INT},
    {0},
};

const struct sw_sim_field sw_sim_fields_stateful_set[] = {
    {"apiVersion", ONE, TEXT},
    {"kind", ONE, TEXT},
    {"metadata", ONE, STRUCT, KEEP, .fields = sw_sim_fields_object_meta},
    {"spec", ONE, STRUCT, KEEP, .fields = stateful_set_spec},
    {"status", ONE, STRUCT, KEEP, .fields = stateful_set_status},
    {0},
};

static const struct sw_sim_field rolling_update_daemon_set[] = {
    {"maxUnavailable", ONE, INT_OR_TEXT, PTR},
    {0},
};

static const struct sw_sim_field daemon_set_update_strategy[] = {
    {"rollingUpdate", ONE, STRUCT, PTR, .fields = rolling_update_daemon_set},
    {"type", ONE, TEXT},
    {0},
};

static const struct sw_sim_field daemon_set_spec[] = {
    {"minReadySeconds", ONE, INT},
    {"revisionHistoryLimit", ONE, INT, PTR},
    {"selector", ONE, STRUCT, PTR | KEEP | ATOMIC, .fields = sw_sim_fields_label_selector},
    {"template", ONE, STRUCT, KEEP, .fields = sw_sim_fields_pod_template_spec},
    {"updateStrategy", ONE, STRUCT, KEEP, .fields = daemon_set_update_strategy},
    {0},
};

static const struct sw_sim_field daemon_set_condition[] = {
    {"lastTransitionTime", ONE, TIME, KEEP},
    {"message", ONE, TEXT},
    {"reason", ONE, TEXT},
    {"status", ONE, TEXT, KEEP},
    {"type", ONE, TEXT, KEEP},
    {0},
};

static const struct sw_sim_field daemon_set_status[] = {
    {"collisionCount", ONE, INT, PTR},
    {"conditions", LIST, STRUCT, 0, .fields = daemon_set_condition, .merge = "type",
     .keys = "type"},
    {"currentNumberScheduled", ONE, INT, KEEP},
    {"desiredNumberScheduled", ONE, INT, KEEP},
    {"numberAvailable", ONE, INT},
    {"numberMisscheduled", ONE, INT, KEEP},
    {"numberReady", ONE, INT, KEEP},
    {"numberUnavailable", ONE, INT},
    {"observedGeneration", ONE, INT},
    {"updatedNumberScheduled", ONE, INT},
    {0},
};

const struct sw_sim_field sw_sim_fields_daemon_set[] = {
    {"apiVersion", ONE, TEXT},
    {"kind", ONE, TEXT},
    {"metadata", ONE, STRUCT, KEEP, .fields = sw_sim_fields_object_meta},
    {"spec", ONE, STRUCT, KEEP, .fields = daemon_set_spec},
    {"status", ONE, STRUCT, KEEP, .fields = daemon_set_status},
    {0},
};

const struct sw_sim_field sw_sim_fields_controller_revision[] = {
    {"apiVersion", ONE, TEXT},
    {"data", ONE, ANY},
    {"kind", ONE, TEXT},
    {"metadata", ONE, STRUCT, KEEP, .fields = sw_sim_fields_object_meta},
    {"revision", ONE, INT, KEEP},
    {0},
};
