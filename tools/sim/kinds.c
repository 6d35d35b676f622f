/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of built-in kinds. Singular names are empty, as the real server (v1.20) answers
 * discovery; clients then take the kind in lower case.
 */
#include "kind.h"

#include "base/util.h"
#include "columns.h"
#include "kinds.h"
#include "rows.h"
#include "types.h"

#define TABLE(name)                                                           \
    .columns = columns_##name, .column_count = SW_ARRAY_SIZE(columns_##name), \
    .make_row = sw_sim_row_##name
#define PLAIN_TABLE .columns = columns_plain, .column_count = SW_ARRAY_SIZE(columns_plain)

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})
#define ALL NAMES("all")

#define APPS .group = "apps", .version = "v1", .is_namespaced = true
#define CORE .group = "", .version = "v1"
#define RBAC .group = "rbac.authorization.k8s.io", .version = "v1"
#define ADMISSION \
    .group = "admissionregistration.k8s.io", .version = "v1", .categories = NAMES("api-extensions")
#define REVIEW .version = "v1", .is_virtual = true, .singular = ""

static const struct sw_sim_kind builtin_kinds[] = {
    {CORE, .kind = "Namespace", TABLE(namespace), .fields = sw_sim_fields_namespace,
     .plural = "namespaces", .singular = "", .short_names = NAMES("ns"), .has_status = true,
     .set_defaults = sw_sim_default_namespace},
    {CORE, .kind = "Node", TABLE(node), .fields = sw_sim_fields_node, .plural = "nodes",
     .singular = "", .short_names = NAMES("no"), .has_status = true,
     .set_defaults = sw_sim_default_node},
    {CORE, .kind = "Pod", TABLE(pod), .fields = sw_sim_fields_pod, .plural = "pods", .singular = "",
     .short_names = NAMES("po"), .categories = ALL, .is_namespaced = true, .has_status = true,
     .set_defaults = sw_sim_default_pod, .validate = sw_sim_validate_pod},
    {CORE, .kind = "ConfigMap", TABLE(configmap), .fields = sw_sim_fields_config_map,
     .plural = "configmaps", .singular = "", .short_names = NAMES("cm"), .is_namespaced = true},
    {CORE, .kind = "Secret", TABLE(secret), .fields = sw_sim_fields_secret, .plural = "secrets",
     .singular = "", .is_namespaced = true, .set_defaults = sw_sim_default_secret},
    {CORE, .kind = "ServiceAccount", TABLE(serviceaccount), .fields = sw_sim_fields_service_account,
     .plural = "serviceaccounts", .singular = "", .short_names = NAMES("sa"),
     .is_namespaced = true},
    {CORE, .kind = "Service", TABLE(service), .fields = sw_sim_fields_service, .plural = "services",
     .singular = "", .short_names = NAMES("svc"), .categories = ALL, .is_namespaced = true,
     .has_status = true, .set_defaults = sw_sim_default_service,
     .validate = sw_sim_validate_service},
    {CORE, .kind = "Endpoints", TABLE(endpoints), .fields = sw_sim_fields_endpoints,
     .plural = "endpoints", .singular = "", .short_names = NAMES("ep"), .is_namespaced = true,
     .set_defaults = sw_sim_default_endpoints},
    {CORE, .kind = "Event", TABLE(event), .hides_name = true, .fields = sw_sim_fields_event,
     .plural = "events", .singular = "", .short_names = NAMES("ev"), .is_namespaced = true},
    {APPS, .kind = "Deployment", TABLE(deployment), .fields = sw_sim_fields_deployment,
     .plural = "deployments", .singular = "", .short_names = NAMES("deploy"), .categories = ALL,
     .has_status = true, .has_scale = true, .has_generation = true,
     .set_defaults = sw_sim_default_deployment, .validate = sw_sim_validate_deployment},
    {APPS, .kind = "ReplicaSet", TABLE(replicaset), .fields = sw_sim_fields_replica_set,
     .plural = "replicasets", .singular = "", .short_names = NAMES("rs"), .categories = ALL,
     .has_status = true, .has_scale = true, .has_generation = true,
     .set_defaults = sw_sim_default_replicaset, .validate = sw_sim_validate_replicaset},
    {APPS, .kind = "StatefulSet", TABLE(statefulset), .fields = sw_sim_fields_stateful_set,
     .plural = "statefulsets", .singular = "", .short_names = NAMES("sts"), .categories = ALL,
     .has_status = true, .has_scale = true, .has_generation = true,
     .set_defaults = sw_sim_default_statefulset, .validate = sw_sim_validate_statefulset},
    {APPS, .kind = "DaemonSet", TABLE(daemonset), .fields = sw_sim_fields_daemon_set,
     .plural = "daemonsets", .singular = "", .short_names = NAMES("ds"), .categories = ALL,
     .has_status = true, .has_generation = true, .set_defaults = sw_sim_default_daemonset,
     .validate = sw_sim_validate_daemonset},
    {APPS, .kind = "ControllerRevision", TABLE(revision),
     .fields = sw_sim_fields_controller_revision, .plural = "controllerrevisions", .singular = ""},
    {.group = "coordination.k8s.io",
     .version = "v1",
     .kind = "Lease",
     TABLE(lease),
     .fields = sw_sim_fields_lease,
     .plural = "leases",
     .singular = "",
     .is_namespaced = true},
    {.group = "events.k8s.io",
     .version = "v1",
     .kind = "Event",
     TABLE(event),
     .hides_name = true,
     .fields = sw_sim_fields_new_event,
     .plural = "events",
     .singular = "",
     .short_names = NAMES("ev"),
     .is_namespaced = true},
    {.group = "apiextensions.k8s.io",
     .version = "v1",
     .kind = "CustomResourceDefinition",
     PLAIN_TABLE,
     .plural = "customresourcedefinitions",
     .singular = "",
     .short_names = NAMES("crd", "crds"),
     .categories = NAMES("api-extensions"),
     .has_status = true,
     .has_generation = true,
     .set_defaults = sw_sim_default_crd},
    {ADMISSION, .kind = "MutatingWebhookConfiguration", TABLE(webhooks),
     .fields = sw_sim_fields_mutating_webhook_configuration,
     .plural = "mutatingwebhookconfigurations", .singular = "", .has_generation = true,
     .set_defaults = sw_sim_default_mutating_webhooks},
    {ADMISSION, .kind = "ValidatingWebhookConfiguration", TABLE(webhooks),
     .fields = sw_sim_fields_validating_webhook_configuration,
     .plural = "validatingwebhookconfigurations", .singular = "", .has_generation = true,
     .set_defaults = sw_sim_default_validating_webhooks},
    {RBAC, .kind = "Role", PLAIN_TABLE, .fields = sw_sim_fields_role, .plural = "roles",
     .singular = "", .is_namespaced = true},
    {RBAC, .kind = "RoleBinding", PLAIN_TABLE, .fields = sw_sim_fields_role_binding,
     .plural = "rolebindings", .singular = "", .is_namespaced = true,
     .set_defaults = sw_sim_default_binding},
    {RBAC, .kind = "ClusterRole", PLAIN_TABLE, .fields = sw_sim_fields_cluster_role,
     .plural = "clusterroles", .singular = ""},
    {RBAC, .kind = "ClusterRoleBinding", PLAIN_TABLE, .fields = sw_sim_fields_cluster_role_binding,
     .plural = "clusterrolebindings", .singular = "", .set_defaults = sw_sim_default_binding},
    {.group = "policy",
     .version = "v1",
     .kind = "PodDisruptionBudget",
     TABLE(budget),
     .fields = sw_sim_fields_pod_disruption_budget,
     .plural = "poddisruptionbudgets",
     .singular = "",
     .short_names = NAMES("pdb"),
     .is_namespaced = true,
     .has_status = true,
     .has_generation = true},
    {.group = "policy",
     .version = "v1beta1",
     .kind = "PodDisruptionBudget",
     TABLE(budget),
     .fields = sw_sim_fields_pod_disruption_budget,
     .plural = "poddisruptionbudgets",
     .singular = "",
     .short_names = NAMES("pdb"),
     .is_namespaced = true,
     .has_status = true,
     .has_generation = true},
    {REVIEW, .group = "authentication.k8s.io", .kind = "TokenReview", .plural = "tokenreviews"},
    {REVIEW, .group = "authorization.k8s.io", .kind = "SubjectAccessReview",
     .plural = "subjectaccessreviews"},
    {REVIEW, .group = "authorization.k8s.io", .kind = "SelfSubjectAccessReview",
     .plural = "selfsubjectaccessreviews"},
};

const struct sw_sim_kind *sw_sim_builtin_kinds(size_t *ret_count)
{
    *ret_count = SW_ARRAY_SIZE(builtin_kinds);
    return builtin_kinds;
}
