/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of the core kinds other than Pods. */
#include "types.h"

static const struct sw_sim_field namespace_spec[] = {
    {"finalizers", LIST, TEXT},
    {0},
};

static const struct sw_sim_field namespace_condition[] = {
    {"lastTransitionTime", ONE, TIME, KEEP},
    {"message", ONE, TEXT},
    {"reason", ONE, TEXT},
    {"status", ONE, TEXT, KEEP},
    {"type", ONE, TEXT, KEEP},
    {0},
};

static const struct sw_sim_field namespace_status[] = {
    {"conditions", LIST, STRUCT, 0, .fields = namespace_condition, .merge = "type", .keys = "type"},
    {"phase", ONE, TEXT},
    {0},
};

const struct sw_sim_field sw_sim_fields_namespace[] = {
    {"apiVersion", ONE, TEXT},
    {"kind", ONE, TEXT},
    {"metadata", ONE, STRUCT, KEEP, .fields = sw_sim_fields_object_meta},
    {"spec", ONE, STRUCT, KEEP, .fields = namespace_spec},
    {"status", ONE, STRUCT, KEEP, .fields = namespace_status},
    {0},
};

static const struct sw_sim_field config_map_node_config_source[] = {
    {"kubeletConfigKey", ONE, TEXT, KEEP},
    {"name", ONE, TEXT, KEEP},
    {"namespace", ONE, TEXT, KEEP},
    {"resourceVersion", ONE, TEXT},
    {"uid", ONE, TEXT},
    {0},
};

static const struct sw_sim_field node_config_source[] = {
    {"configMap", ONE, STRUCT, PTR, .fields = config_map_node_config_source},
    {0},
};

static const struct sw_sim_field taint[] = {
    {"effect", ONE, TEXT, KEEP},
    {"key", ONE, TEXT, KEEP},
    {"timeAdded", ONE, TIME, PTR},
    {"value", ONE, TEXT},
    {0},
};

static const struct sw_sim_field node_spec[] = {
    {"configSource", ONE, STRUCT, PTR, .fields = node_config_source},
    {"externalID", ONE, TEXT},
    {"podCIDR", ONE, TEXT},
    {"podCIDRs", LIST, TEXT, 0, .merge = "", .keys = ""},
    {"providerID", ONE, TEXT},
    {"taints", LIST, STRUCT, 0, .fields = taint},
    {"unschedulable", ONE, BOOL},
    {0},
};

static const struct sw_sim_field node_address[] = {
    {"address", ONE, TEXT, KEEP},
    {"type", ONE, TEXT, KEEP},
    {0},
};

static const struct sw_sim_field node_condition[] = {
    {"lastHeartbeatTime", ONE, TIME, KEEP},
    {"lastTransitionTime", ONE, TIME, KEEP},
    {"message", ONE, TEXT},
    {"reason", ONE, TEXT},
    {"status", ONE, TEXT, KEEP},
    {"type", ONE, TEXT, KEEP},
    {0},
};

static const struct sw_sim_field node_config_status[] = {
    {"active", ONE, STRUCT, PTR, .fields = node_config_source},
    {"assigned", ONE, STRUCT, PTR, .fields = node_config_source},
    {"error", ONE, TEXT},
    {"lastKnownGood", ONE, STRUCT, PTR, .fields = node_config_source},
    {0},
};

static const struct sw_sim_field daemon_endpoint[] = {
    {"Port", ONE, INT, KEEP},
    {0},
};

static const struct sw_sim_field node_daemon_endpoints[] = {
    {"kubeletEndpoint", ONE, STRUCT, KEEP, .fields = daemon_endpoint},
    {0},
};

static const struct sw_sim_field container_image[] = {
    {"names", LIST, TEXT, KEEP},
    {"sizeBytes", ONE, INT},
    {0},
};

static const struct sw_sim_field node_system_info[] = {
    {"architecture", ONE, TEXT, KEEP},
    {"bootID", ONE, TEXT, KEEP},
    {"containerRuntimeVersion", ONE, TEXT, KEEP},
    {"kernelVersion", ONE, TEXT, KEEP},
    {"kubeProxyVersion", ONE, TEXT, KEEP},
    {"kubeletVersion", ONE, TEXT, KEEP},
    {"machineID", ONE, TEXT, KEEP},
    {"operatingSystem", ONE, TEXT, KEEP},
    {"osImage", ONE, TEXT, KEEP},
    {"systemUUID", ONE, TEXT, KEEP},
    {0},
};

static const struct sw_sim_field attached_volume[] = {
    {"devicePath", ONE, TEXT, KEEP},
    {"name", ONE, TEXT, KEEP},
    {0},
};

static const struct sw_sim_field node_status[] = {
    {"addresses", LIST, STRUCT, 0, .fields = node_address, .merge = "type", .keys = "type"},
    {"allocatable", MAP, QUANTITY},
    {"capacity", MAP, QUANTITY},
    {"conditions", LIST, STRUCT, 0, .fields = node_condition, .merge = "type", .keys = "type"},
    {"config", ONE, STRUCT, PTR, .fields = node_config_status},
    {"daemonEndpoints", ONE, STRUCT, KEEP, .fields = node_daemon_endpoints},
    {"images", LIST, STRUCT, 0, .fields = container_image},
    {"nodeInfo", ONE, STRUCT, KEEP, .fields = node_system_info},
    {"phase", ONE, TEXT},
    {"volumesAttached", LIST, STRUCT, 0, .fields = attached_volume},
    {"volumesInUse", LIST, TEXT},
    {0},
};

const struct sw_sim_field sw_sim_fields_node[] = {
    {"apiVersion", ONE, TEXT},
    {"kind", ONE, TEXT},
    {"metadata", ONE, STRUCT, KEEP, .fields = sw_sim_fields_object_meta},
    {"spec", ONE, STRUCT, KEEP, .fields = node_spec},
    {"status", ONE, STRUCT, KEEP, .fields = node_status},
    {0},
};

const struct sw_sim_field sw_sim_fields_config_map[] = {
    {"apiVersion", ONE, TEXT},
    {"binaryData", MAP, BYTES},
    {"data", MAP, TEXT},
    {"immutable", ONE, BOOL, PTR},
    {"kind", ONE, TEXT},
    {"metadata", ONE, STRUCT, KEEP, .fields = sw_sim_fields_object_meta},
    {0},
};

const struct sw_sim_field sw_sim_fields_secret[] = {
    {"apiVersion", ONE, TEXT},
    {"data", MAP, BYTES},
    {"immutable", ONE, BOOL, PTR},
    {"kind", ONE, TEXT},
    {"metadata", ONE, STRUCT, KEEP, .fields = sw_sim_fields_object_meta},
    {"stringData", MAP, TEXT},
    {"type", ONE, TEXT},
    {0},
};

const struct sw_sim_field sw_sim_fields_object_reference[] = {
    {"apiVersion", ONE, TEXT}, {"fieldPath", ONE, TEXT},
    {"kind", ONE, TEXT},       {"name", ONE, TEXT},
    {"namespace", ONE, TEXT},  {"resourceVersion", ONE, TEXT},
    {"uid", ONE, TEXT},        {0},
};

const struct sw_sim_field sw_sim_fields_service_account[] = {
    {"apiVersion", ONE, TEXT},
    {"automountServiceAccountToken", ONE, BOOL, PTR},
    {"imagePullSecrets", LIST, STRUCT, 0, .fields = sw_sim_fields_local_object_reference},
    {"kind", ONE, TEXT},
    {"metadata", ONE, STRUCT, KEEP, .fields = sw_sim_fields_object_meta},
    {"secrets", LIST, STRUCT, 0, .fields = sw_sim_fields_object_reference, .merge = "name",
     .keys = "name"},
    {0},
};

static const struct sw_sim_field service_port[] = {
    {"appProtocol", ONE, TEXT, PTR},
    {"name", ONE, TEXT},
    {"nodePort", ONE, INT},
    {"port", ONE, INT, KEEP},
    {"protocol", ONE, TEXT},
    {"targetPort", ONE, INT_OR_TEXT, KEEP},
    {0},
};

static const struct sw_sim_field client_ip_config[] = {
    {"timeoutSeconds", ONE, INT, PTR},
    {0},
};

static const struct sw_sim_field session_affinity_config[] = {
    {"clientIP", ONE, STRUCT, PTR, .fields = client_ip_config},
    {0},
};

static const struct sw_sim_field service_spec[] = {
    {"allocateLoadBalancerNodePorts", ONE, BOOL, PTR},
    {"clusterIP", ONE, TEXT},
    {"clusterIPs", LIST, TEXT},
    {"externalIPs", LIST, TEXT},
    {"externalName", ONE, TEXT},
    {"externalTrafficPolicy", ONE, TEXT},
    {"healthCheckNodePort", ONE, INT},
    {"ipFamilies", LIST, TEXT},
    {"ipFamilyPolicy", ONE, TEXT, PTR},
    {"loadBalancerIP", ONE, TEXT},
    {"loadBalancerSourceRanges", LIST, TEXT},
    {"ports", LIST, STRUCT, 0, .fields = service_port, .merge = "port", .keys = "port,protocol"},
    {"publishNotReadyAddresses", ONE, BOOL},
    {"selector", MAP, TEXT},
    {"sessionAffinity", ONE, TEXT},
    {"sessionAffinityConfig", ONE, STRUCT, PTR, .fields = session_affinity_config},
    {"topologyKeys", LIST, TEXT},
    {"type", ONE, TEXT},
    {0},
};

static const struct sw_sim_field port_status[] = {
    {"error", ONE, TEXT, PTR},
    {"port", ONE, INT, KEEP},
    {"protocol", ONE, TEXT, KEEP},
    {0},
};

static const struct sw_sim_field load_balancer_ingress[] = {
    {"hostname", ONE, TEXT},
    {"ip", ONE, TEXT},
    {"ports", LIST, STRUCT, 0, .fields = port_status},
    {0},
};

static const struct sw_sim_field load_balancer_status[] = {
    {"ingress", LIST, STRUCT, 0, .fields = load_balancer_ingress},
    {0},
};

static const struct sw_sim_field service_status[] = {
    {"conditions", LIST, STRUCT, 0, .fields = sw_sim_fields_condition, .merge = "type",
     .keys = "type"},
    {"loadBalancer", ONE, STRUCT, KEEP, .fields = load_balancer_status},
    {0},
};

const struct sw_sim_field sw_sim_fields_service[] = {
    {"apiVersion", ONE, TEXT},
    {"kind", ONE, TEXT},
    {"metadata", ONE, STRUCT, KEEP, .fields = sw_sim_fields_object_meta},
    {"spec", ONE, STRUCT, KEEP, .fields = service_spec},
    {"status", ONE, STRUCT, KEEP, .fields = service_status},
    {0},
};

static const struct sw_sim_field endpoint_address[] = {
    {"hostname", ONE, TEXT},
    {"ip", ONE, TEXT, KEEP},
    {"nodeName", ONE, TEXT, PTR},
    {"targetRef", ONE, STRUCT, PTR, .fields = sw_sim_fields_object_reference},
    {0},
};

static const struct sw_sim_field endpoint_port[] = {
    {"appProtocol", ONE, TEXT, PTR},
    {"name", ONE, TEXT},
    {"port", ONE, INT, KEEP},
    {"protocol", ONE, TEXT},
    {0},
};

static const struct sw_sim_field endpoint_subset[] = {
    {"addresses", LIST, STRUCT, 0, .fields = endpoint_address},
    {"notReadyAddresses", LIST, STRUCT, 0, .fields = endpoint_address},
    {"ports", LIST, STRUCT, 0, .fields = endpoint_port},
    {0},
};

const struct sw_sim_field sw_sim_fields_endpoints[] = {
    {"apiVersion", ONE, TEXT},
    {"kind", ONE, TEXT},
    {"metadata", ONE, STRUCT, KEEP, .fields = sw_sim_fields_object_meta},
    {"subsets", LIST, STRUCT, 0, .fields = endpoint_subset},
    {0},
};

static const struct sw_sim_field event_series[] = {
    {"count", ONE, INT},
    {"lastObservedTime", ONE, MICRO_TIME, KEEP},
    {0},
};

const struct sw_sim_field sw_sim_fields_event_source[] = {
    {"component", ONE, TEXT},
    {"host", ONE, TEXT},
    {0},
};

const struct sw_sim_field sw_sim_fields_event[] = {
    {"action", ONE, TEXT},
    {"apiVersion", ONE, TEXT},
    {"count", ONE, INT},
    {"eventTime", ONE, MICRO_TIME, KEEP},
    {"firstTimestamp", ONE, TIME, KEEP},
    {"involvedObject", ONE, STRUCT, KEEP, .fields = sw_sim_fields_object_reference},
    {"kind", ONE, TEXT},
    {"lastTimestamp", ONE, TIME, KEEP},
    {"message", ONE, TEXT},
    {"metadata", ONE, STRUCT, KEEP, .fields = sw_sim_fields_object_meta},
    {"reason", ONE, TEXT},
    {"related", ONE, STRUCT, PTR, .fields = sw_sim_fields_object_reference},
    {"reportingComponent", ONE, TEXT, KEEP},
    {"reportingInstance", ONE, TEXT, KEEP},
    {"series", ONE, STRUCT, PTR, .fields = event_series},
    {"source", ONE, STRUCT, KEEP, .fields = sw_sim_fields_event_source},
    {"type", ONE, TEXT},
    {0},
};

const struct sw_sim_field sw_sim_fields_pod_template_spec[] = {
    {"metadata", ONE, STRUCT, KEEP, .fields = sw_sim_fields_object_meta},
    {"spec", ONE, STRUCT, KEEP, .fields = sw_sim_fields_pod_spec},
    {0},
};

static const struct sw_sim_field typed_local_object_reference[] = {
    {"apiGroup", ONE, TEXT, PTR | KEEP},
    {"kind", ONE, TEXT, KEEP},
    {"name", ONE, TEXT, KEEP},
    {0},
};

static const struct sw_sim_field persistent_volume_claim_spec[] = {
    {"accessModes", LIST, TEXT},
    {"dataSource", ONE, STRUCT, PTR, .fields = typed_local_object_reference},
    {"resources", ONE, STRUCT, KEEP, .fields = sw_sim_fields_resource_requirements},
    {"selector", ONE, STRUCT, PTR | ATOMIC, .fields = sw_sim_fields_label_selector},
    {"storageClassName", ONE, TEXT, PTR},
    {"volumeMode", ONE, TEXT, PTR},
    {"volumeName", ONE, TEXT},
    {0},
};

static const struct sw_sim_field persistent_volume_claim_condition[] = {
    {"lastProbeTime", ONE, TIME, KEEP},
    {"lastTransitionTime", ONE, TIME, KEEP},
    {"message", ONE, TEXT},
    {"reason", ONE, TEXT},
    {"status", ONE, TEXT, KEEP},
    {"type", ONE, TEXT, KEEP},
    {0},
};

static const struct sw_sim_field persistent_volume_claim_status[] = {
    {"accessModes", LIST, TEXT},
    {"capacity", MAP, QUANTITY},
    {"conditions", LIST, STRUCT, 0, .fields = persistent_volume_claim_condition, .merge = "type",
     .keys = "type"},
    {"phase", ONE, TEXT},
    {0},
};

const struct sw_sim_field sw_sim_fields_persistent_volume_claim[] = {
    {"apiVersion", ONE, TEXT},
    {"kind", ONE, TEXT},
    {"metadata", ONE, STRUCT, KEEP, .fields = sw_sim_fields_object_meta},
    {"spec", ONE, STRUCT, KEEP, .fields = persistent_volume_claim_spec},
    {"status", ONE, STRUCT, KEEP, .fields = persistent_volume_claim_status},
    {0},
};
