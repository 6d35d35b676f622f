/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of leases, new events, webhook configurations, roles and disruption budgets. */
#include "types.h"

static const struct sw_sim_field lease_spec[] = {
    {"acquireTime", ONE, MICRO_TIME, PTR},   {"holderIdentity", ONE, TEXT, PTR},
    {"leaseDurationSeconds", ONE, INT, PTR}, {"leaseTransitions", ONE, INT, PTR},
    {"renewTime", ONE, MICRO_TIME, PTR},     {0},
};

const struct sw_sim_field sw_sim_fields_lease[] = {
    {"apiVersion", ONE, TEXT},
    {"kind", ONE, TEXT},
    {"metadata", ONE, STRUCT, KEEP, .fields = sw_sim_fields_object_meta},
    {"spec", ONE, STRUCT, KEEP, .fields = lease_spec},
    {0},
};

static const struct sw_sim_field new_event_series[] = {
    {"count", ONE, INT, KEEP},
    {"lastObservedTime", ONE, MICRO_TIME, KEEP},
    {0},
};

const struct sw_sim_field sw_sim_fields_new_event[] = {
    {"action", ONE, TEXT},
    {"apiVersion", ONE, TEXT},
    {"deprecatedCount", ONE, INT},
    {"deprecatedFirstTimestamp", ONE, TIME, KEEP},
    {"deprecatedLastTimestamp", ONE, TIME, KEEP},
    {"deprecatedSource", ONE, STRUCT, KEEP, .fields = sw_sim_fields_event_source},
    {"eventTime", ONE, MICRO_TIME, KEEP},
    {"kind", ONE, TEXT},
    {"metadata", ONE, STRUCT, KEEP, .fields = sw_sim_fields_object_meta},
    {"note", ONE, TEXT},
    {"reason", ONE, TEXT},
    {"regarding", ONE, STRUCT, KEEP, .fields = sw_sim_fields_object_reference},
    {"related", ONE, STRUCT, PTR, .fields = sw_sim_fields_object_reference},
    {"reportingController", ONE, TEXT},
    {"reportingInstance", ONE, TEXT},
    {"series", ONE, STRUCT, PTR, .fields = new_event_series},
    {"type", ONE, TEXT},
    {0},
};

static const struct sw_sim_field service_reference[] = {
    {"name", ONE, TEXT, KEEP},
    {"namespace", ONE, TEXT, KEEP},
    {"path", ONE, TEXT, PTR},
    {"port", ONE, INT, PTR},
    {0},
};

static const struct sw_sim_field webhook_client_config[] = {
    {"caBundle", ONE, BYTES, PTR},
    {"service", ONE, STRUCT, PTR, .fields = service_reference},
    {"url", ONE, TEXT, PTR},
    {0},
};

static const struct sw_sim_field rule_with_operations[] = {
    {"apiGroups", LIST, TEXT}, {"apiVersions", LIST, TEXT}, {"operations", LIST, TEXT},
    {"resources", LIST, TEXT}, {"scope", ONE, TEXT, PTR},   {0},
};

static const struct sw_sim_field mutating_webhook[] = {
    {"admissionReviewVersions", LIST, TEXT, KEEP},
    {"clientConfig", ONE, STRUCT, KEEP, .fields = webhook_client_config},
    {"failurePolicy", ONE, TEXT, PTR},
    {"matchPolicy", ONE, TEXT, PTR},
    {"name", ONE, TEXT, KEEP},
    {"namespaceSelector", ONE, STRUCT, PTR | ATOMIC, .fields = sw_sim_fields_label_selector},
    {"objectSelector", ONE, STRUCT, PTR | ATOMIC, .fields = sw_sim_fields_label_selector},
    {"reinvocationPolicy", ONE, TEXT, PTR},
    {"rules", LIST, STRUCT, 0, .fields = rule_with_operations},
    {"sideEffects", ONE, TEXT, KEEP | PTR},
    {"timeoutSeconds", ONE, INT, PTR},
    {0},
};

const struct sw_sim_field sw_sim_fields_mutating_webhook_configuration[] = {
    {"apiVersion", ONE, TEXT},
    {"kind", ONE, TEXT},
    {"metadata", ONE, STRUCT, KEEP, .fields = sw_sim_fields_object_meta},
    {"webhooks", LIST, STRUCT, 0, .fields = mutating_webhook, .merge = "name", .keys = "name"},
    {0},
};

static const struct sw_sim_field validating_webhook[] = {
    {"admissionReviewVersions", LIST, TEXT, KEEP},
    {"clientConfig", ONE, STRUCT, KEEP, .fields = webhook_client_config},
    {"failurePolicy", ONE, TEXT, PTR},
    {"matchPolicy", ONE, TEXT, PTR},
    {"name", ONE, TEXT, KEEP},
    {"namespaceSelector", ONE, STRUCT, PTR | ATOMIC, .fields = sw_sim_fields_label_selector},
    {"objectSelector", ONE, STRUCT, PTR | ATOMIC, .fields = sw_sim_fields_label_selector},
    {"rules", LIST, STRUCT, 0, .fields = rule_with_operations},
    {"sideEffects", ONE, TEXT, KEEP | PTR},
    {"timeoutSeconds", ONE, INT, PTR},
    {0},
};

const struct sw_sim_field sw_sim_fields_validating_webhook_configuration[] = {
    {"apiVersion", ONE, TEXT},
    {"kind", ONE, TEXT},
    {"metadata", ONE, STRUCT, KEEP, .fields = sw_sim_fields_object_meta},
    {"webhooks", LIST, STRUCT, 0, .fields = validating_webhook, .merge = "name", .keys = "name"},
    {0},
};

static const struct sw_sim_field policy_rule[] = {
    {"apiGroups", LIST, TEXT}, {"nonResourceURLs", LIST, TEXT}, {"resourceNames", LIST, TEXT},
    {"resources", LIST, TEXT}, {"verbs", LIST, TEXT, KEEP},     {0},
};

const struct sw_sim_field sw_sim_fields_role[] = {
    {"apiVersion", ONE, TEXT},
    {"kind", ONE, TEXT},
    {"metadata", ONE, STRUCT, KEEP, .fields = sw_sim_fields_object_meta},
    {"rules", LIST, STRUCT, 0, .fields = policy_rule},
    {0},
};

static const struct sw_sim_field role_ref[] = {
    {"apiGroup", ONE, TEXT, KEEP},
    {"kind", ONE, TEXT, KEEP},
    {"name", ONE, TEXT, KEEP},
    {0},
};

static const struct sw_sim_field subject[] = {
    {"apiGroup", ONE, TEXT, PTR},
    {"kind", ONE, TEXT, KEEP},
    {"name", ONE, TEXT, KEEP},
    {"namespace", ONE, TEXT, PTR},
    {0},
};

const struct sw_sim_field sw_sim_fields_role_binding[] = {
    {"apiVersion", ONE, TEXT},
    {"kind", ONE, TEXT},
    {"metadata", ONE, STRUCT, KEEP, .fields = sw_sim_fields_object_meta},
    {"roleRef", ONE, STRUCT, KEEP, .fields = role_ref},
    {"subjects", LIST, STRUCT, 0, .fields = subject},
    {0},
};

static const struct sw_sim_field aggregation_rule[] = {
    {"clusterRoleSelectors", LIST, STRUCT, 0, .fields = sw_sim_fields_label_selector},
    {0},
};

const struct sw_sim_field sw_sim_fields_cluster_role[] = {
    {"aggregationRule", ONE, STRUCT, PTR, .fields = aggregation_rule},
    {"apiVersion", ONE, TEXT},
    {"kind", ONE, TEXT},
    {"metadata", ONE, STRUCT, KEEP, .fields = sw_sim_fields_object_meta},
    {"rules", LIST, STRUCT, 0, .fields = policy_rule},
    {0},
};

const struct sw_sim_field sw_sim_fields_cluster_role_binding[] = {
    {"apiVersion", ONE, TEXT},
    {"kind", ONE, TEXT},
    {"metadata", ONE, STRUCT, KEEP, .fields = sw_sim_fields_object_meta},
    {"roleRef", ONE, STRUCT, KEEP, .fields = role_ref},
    {"subjects", LIST, STRUCT, 0, .fields = subject},
    {0},
};

static const struct sw_sim_field pod_disruption_budget_spec[] = {
    {"maxUnavailable", ONE, INT_OR_TEXT, PTR},
    {"minAvailable", ONE, INT_OR_TEXT, PTR},
    {"selector", ONE, STRUCT, PTR | ATOMIC, .fields = sw_sim_fields_label_selector},
    {0},
};

static const struct sw_sim_field pod_disruption_budget_status[] = {
    {"currentHealthy", ONE, INT, KEEP},
    {"desiredHealthy", ONE, INT, KEEP},
    {"disruptedPods", MAP, TIME},
    {"disruptionsAllowed", ONE, INT, KEEP},
    {"expectedPods", ONE, INT, KEEP},
    {"observedGeneration", ONE, INT, PTR},
    {0},
};

const struct sw_sim_field sw_sim_fields_pod_disruption_budget[] = {
    {"apiVersion", ONE, TEXT},
    {"kind", ONE, TEXT},
    {"metadata", ONE, STRUCT, KEEP, .fields = sw_sim_fields_object_meta},
    {"spec", ONE, STRUCT, KEEP, .fields = pod_disruption_budget_spec},
    {"status", ONE, STRUCT, KEEP, .fields = pod_disruption_budget_status},
    {0},
};
