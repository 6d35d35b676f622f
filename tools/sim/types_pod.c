/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of Pods and of templates of Pods. */
#include "types.h"

static const struct sw_sim_field node_selector_requirement[] = {
    {"key", ONE, TEXT, KEEP},
    {"operator", ONE, TEXT, KEEP},
    {"values", LIST, TEXT},
    {0},
};

static const struct sw_sim_field node_selector_term[] = {
    {"matchExpressions", LIST, STRUCT, 0, .fields = node_selector_requirement},
    {"matchFields", LIST, STRUCT, 0, .fields = node_selector_requirement},
    {0},
};

static const struct sw_sim_field preferred_scheduling_term[] = {
    {"preference", ONE, STRUCT, KEEP, .fields = node_selector_term},
    {"weight", ONE, INT, KEEP},
    {0},
};

static const struct sw_sim_field node_selector[] = {
    {"nodeSelectorTerms", LIST, STRUCT, KEEP, .fields = node_selector_term},
    {0},
};

static const struct sw_sim_field node_affinity[] = {
    {"preferredDuringSchedulingIgnoredDuringExecution", LIST, STRUCT, 0,
     .fields = preferred_scheduling_term},
    {"requiredDuringSchedulingIgnoredDuringExecution", ONE, STRUCT, PTR, .fields = node_selector},
    {0},
};

static const struct sw_sim_field pod_affinity_term[] = {
    {"labelSelector", ONE, STRUCT, PTR | ATOMIC, .fields = sw_sim_fields_label_selector},
    {"namespaces", LIST, TEXT},
    {"topologyKey", ONE, TEXT, KEEP},
    {0},
};

static const struct sw_sim_field weighted_pod_affinity_term[] = {
    {"podAffinityTerm", ONE, STRUCT, KEEP, .fields = pod_affinity_term},
    {"weight", ONE, INT, KEEP},
    {0},
};

static const struct sw_sim_field pod_affinity[] = {
    {"preferredDuringSchedulingIgnoredDuringExecution", LIST, STRUCT, 0,
     .fields = weighted_pod_affinity_term},
    {"requiredDuringSchedulingIgnoredDuringExecution", LIST, STRUCT, 0,
     .fields = pod_affinity_term},
    {0},
};

static const struct sw_sim_field pod_anti_affinity[] = {
    {"preferredDuringSchedulingIgnoredDuringExecution", LIST, STRUCT, 0,
     .fields = weighted_pod_affinity_term},
    {"requiredDuringSchedulingIgnoredDuringExecution", LIST, STRUCT, 0,
     .fields = pod_affinity_term},
    {0},
};

static const struct sw_sim_field affinity[] = {
    {"nodeAffinity", ONE, STRUCT, PTR, .fields = node_affinity},
    {"podAffinity", ONE, STRUCT, PTR, .fields = pod_affinity},
    {"podAntiAffinity", ONE, STRUCT, PTR, .fields = pod_anti_affinity},
    {0},
};

static const struct sw_sim_field config_map_key_selector[] = {
    {"key", ONE, TEXT, KEEP},
    {"name", ONE, TEXT},
    {"optional", ONE, BOOL, PTR},
    {0},
};

const struct sw_sim_field sw_sim_fields_object_field_selector[] = {
    {"apiVersion", ONE, TEXT},
    {"fieldPath", ONE, TEXT, KEEP},
    {0},
};

const struct sw_sim_field sw_sim_fields_resource_field_selector[] = {
    {"containerName", ONE, TEXT},
    {"divisor", ONE, QUANTITY, KEEP},
    {"resource", ONE, TEXT, KEEP},
    {0},
};

static const struct sw_sim_field secret_key_selector[] = {
    {"key", ONE, TEXT, KEEP},
    {"name", ONE, TEXT},
    {"optional", ONE, BOOL, PTR},
    {0},
};

static const struct sw_sim_field env_var_source[] = {
    {"configMapKeyRef", ONE, STRUCT, PTR, .fields = config_map_key_selector},
    {"fieldRef", ONE, STRUCT, PTR, .fields = sw_sim_fields_object_field_selector},
    {"resourceFieldRef", ONE, STRUCT, PTR, .fields = sw_sim_fields_resource_field_selector},
    {"secretKeyRef", ONE, STRUCT, PTR, .fields = secret_key_selector},
    {0},
};

static const struct sw_sim_field env_var[] = {
    {"name", ONE, TEXT, KEEP},
    {"value", ONE, TEXT},
    {"valueFrom", ONE, STRUCT, PTR, .fields = env_var_source},
    {0},
};

static const struct sw_sim_field config_map_env_source[] = {
    {"name", ONE, TEXT},
    {"optional", ONE, BOOL, PTR},
    {0},
};

static const struct sw_sim_field secret_env_source[] = {
    {"name", ONE, TEXT},
    {"optional", ONE, BOOL, PTR},
    {0},
};

static const struct sw_sim_field env_from_source[] = {
    {"configMapRef", ONE, STRUCT, PTR, .fields = config_map_env_source},
    {"prefix", ONE, TEXT},
    {"secretRef", ONE, STRUCT, PTR, .fields = secret_env_source},
    {0},
};

static const struct sw_sim_field exec_action[] = {
    {"command", LIST, TEXT},
    {0},
};

static const struct sw_sim_field http_header[] = {
    {"name", ONE, TEXT, KEEP},
    {"value", ONE, TEXT, KEEP},
    {0},
};

static const struct sw_sim_field http_get_action[] = {
    {"host", ONE, TEXT},   {"httpHeaders", LIST, STRUCT, 0, .fields = http_header},
    {"path", ONE, TEXT},   {"port", ONE, INT_OR_TEXT, KEEP},
    {"scheme", ONE, TEXT}, {0},
};

static const struct sw_sim_field tcp_socket_action[] = {
    {"host", ONE, TEXT},
    {"port", ONE, INT_OR_TEXT, KEEP},
    {0},
};

static const struct sw_sim_field handler[] = {
    {"exec", ONE, STRUCT, PTR, .fields = exec_action},
    {"httpGet", ONE, STRUCT, PTR, .fields = http_get_action},
    {"tcpSocket", ONE, STRUCT, PTR, .fields = tcp_socket_action},
    {0},
};

static const struct sw_sim_field lifecycle[] = {
    {"postStart", ONE, STRUCT, PTR, .fields = handler},
    {"preStop", ONE, STRUCT, PTR, .fields = handler},
    {0},
};

static const struct sw_sim_field probe[] = {
    {"exec", ONE, STRUCT, PTR, .fields = exec_action},
    {"failureThreshold", ONE, INT},
    {"httpGet", ONE, STRUCT, PTR, .fields = http_get_action},
    {"initialDelaySeconds", ONE, INT},
    {"periodSeconds", ONE, INT},
    {"successThreshold", ONE, INT},
    {"tcpSocket", ONE, STRUCT, PTR, .fields = tcp_socket_action},
    {"timeoutSeconds", ONE, INT},
    {0},
};

static const struct sw_sim_field container_port[] = {
    {"containerPort", ONE, INT, KEEP},
    {"hostIP", ONE, TEXT},
    {"hostPort", ONE, INT},
    {"name", ONE, TEXT},
    {"protocol", ONE, TEXT},
    {0},
};

const struct sw_sim_field sw_sim_fields_resource_requirements[] = {
    {"limits", MAP, QUANTITY},
    {"requests", MAP, QUANTITY},
    {0},
};

static const struct sw_sim_field capabilities[] = {
    {"add", LIST, TEXT},
    {"drop", LIST, TEXT},
    {0},
};

static const struct sw_sim_field se_linux_options[] = {
    {"level", ONE, TEXT}, {"role", ONE, TEXT}, {"type", ONE, TEXT}, {"user", ONE, TEXT}, {0},
};

static const struct sw_sim_field seccomp_profile[] = {
    {"localhostProfile", ONE, TEXT, PTR},
    {"type", ONE, TEXT, KEEP},
    {0},
};

static const struct sw_sim_field windows_security_context_options[] = {
    {"gmsaCredentialSpec", ONE, TEXT, PTR},
    {"gmsaCredentialSpecName", ONE, TEXT, PTR},
    {"runAsUserName", ONE, TEXT, PTR},
    {0},
};

static const struct sw_sim_field security_context[] = {
    {"allowPrivilegeEscalation", ONE, BOOL, PTR},
    {"capabilities", ONE, STRUCT, PTR, .fields = capabilities},
    {"privileged", ONE, BOOL, PTR},
    {"procMount", ONE, TEXT, PTR},
    {"readOnlyRootFilesystem", ONE, BOOL, PTR},
    {"runAsGroup", ONE, INT, PTR},
    {"runAsNonRoot", ONE, BOOL, PTR},
    {"runAsUser", ONE, INT, PTR},
    {"seLinuxOptions", ONE, STRUCT, PTR, .fields = se_linux_options},
    {"seccompProfile", ONE, STRUCT, PTR, .fields = seccomp_profile},
    {"windowsOptions", ONE, STRUCT, PTR, .fields = windows_security_context_options},
    {0},
};

static const struct sw_sim_field volume_device[] = {
    {"devicePath", ONE, TEXT, KEEP},
    {"name", ONE, TEXT, KEEP},
    {0},
};

static const struct sw_sim_field volume_mount[] = {
    {"mountPath", ONE, TEXT, KEEP},
    {"mountPropagation", ONE, TEXT, PTR},
    {"name", ONE, TEXT, KEEP},
    {"readOnly", ONE, BOOL},
    {"subPath", ONE, TEXT},
    {"subPathExpr", ONE, TEXT},
    {0},
};

static const struct sw_sim_field container[] = {
    {"args", LIST, TEXT},
    {"command", LIST, TEXT},
    {"env", LIST, STRUCT, 0, .fields = env_var, .merge = "name", .keys = "name"},
    {"envFrom", LIST, STRUCT, 0, .fields = env_from_source},
    {"image", ONE, TEXT},
    {"imagePullPolicy", ONE, TEXT},
    {"lifecycle", ONE, STRUCT, PTR, .fields = lifecycle},
    {"livenessProbe", ONE, STRUCT, PTR, .fields = probe},
    {"name", ONE, TEXT, KEEP},
    {"ports", LIST, STRUCT, 0, .fields = container_port, .merge = "containerPort",
     .keys = "containerPort,protocol"},
    {"readinessProbe", ONE, STRUCT, PTR, .fields = probe},
    {"resources", ONE, STRUCT, KEEP, .fields = sw_sim_fields_resource_requirements},
    {"securityContext", ONE, STRUCT, PTR, .fields = security_context},
    {"startupProbe", ONE, STRUCT, PTR, .fields = probe},
    {"stdin", ONE, BOOL},
    {"stdinOnce", ONE, BOOL},
    {"terminationMessagePath", ONE, TEXT},
    {"terminationMessagePolicy", ONE, TEXT},
    {"tty", ONE, BOOL},
    {"volumeDevices", LIST, STRUCT, 0, .fields = volume_device, .merge = "devicePath",
     .keys = "devicePath"},
    {"volumeMounts", LIST, STRUCT, 0, .fields = volume_mount, .merge = "mountPath",
     .keys = "mountPath"},
    {"workingDir", ONE, TEXT},
    {0},
};

static const struct sw_sim_field pod_dns_config_option[] = {
    {"name", ONE, TEXT},
    {"value", ONE, TEXT, PTR},
    {0},
};

static const struct sw_sim_field pod_dns_config[] = {
    {"nameservers", LIST, TEXT},
    {"options", LIST, STRUCT, 0, .fields = pod_dns_config_option},
    {"searches", LIST, TEXT},
    {0},
};

static const struct sw_sim_field ephemeral_container[] = {
    {"args", LIST, TEXT},
    {"command", LIST, TEXT},
    {"env", LIST, STRUCT, 0, .fields = env_var, .merge = "name", .keys = "name"},
    {"envFrom", LIST, STRUCT, 0, .fields = env_from_source},
    {"image", ONE, TEXT},
    {"imagePullPolicy", ONE, TEXT},
    {"lifecycle", ONE, STRUCT, PTR, .fields = lifecycle},
    {"livenessProbe", ONE, STRUCT, PTR, .fields = probe},
    {"name", ONE, TEXT, KEEP},
    {"ports", LIST, STRUCT, 0, .fields = container_port},
    {"readinessProbe", ONE, STRUCT, PTR, .fields = probe},
    {"resources", ONE, STRUCT, KEEP, .fields = sw_sim_fields_resource_requirements},
    {"securityContext", ONE, STRUCT, PTR, .fields = security_context},
    {"startupProbe", ONE, STRUCT, PTR, .fields = probe},
    {"stdin", ONE, BOOL},
    {"stdinOnce", ONE, BOOL},
    {"targetContainerName", ONE, TEXT},
    {"terminationMessagePath", ONE, TEXT},
    {"terminationMessagePolicy", ONE, TEXT},
    {"tty", ONE, BOOL},
    {"volumeDevices", LIST, STRUCT, 0, .fields = volume_device, .merge = "devicePath",
     .keys = "devicePath"},
    {"volumeMounts", LIST, STRUCT, 0, .fields = volume_mount, .merge = "mountPath",
     .keys = "mountPath"},
    {"workingDir", ONE, TEXT},
    {0},
};

static const struct sw_sim_field host_alias[] = {
    {"hostnames", LIST, TEXT},
    {"ip", ONE, TEXT},
    {0},
};

const struct sw_sim_field sw_sim_fields_local_object_reference[] = {
    {"name", ONE, TEXT},
    {0},
};

static const struct sw_sim_field pod_readiness_gate[] = {
    {"conditionType", ONE, TEXT, KEEP},
    {0},
};

static const struct sw_sim_field sysctl[] = {
    {"name", ONE, TEXT, KEEP},
    {"value", ONE, TEXT, KEEP},
    {0},
};

static const struct sw_sim_field pod_security_context[] = {
    {"fsGroup", ONE, INT, PTR},
    {"fsGroupChangePolicy", ONE, TEXT, PTR},
    {"runAsGroup", ONE, INT, PTR},
    {"runAsNonRoot", ONE, BOOL, PTR},
    {"runAsUser", ONE, INT, PTR},
    {"seLinuxOptions", ONE, STRUCT, PTR, .fields = se_linux_options},
    {"seccompProfile", ONE, STRUCT, PTR, .fields = seccomp_profile},
    {"supplementalGroups", LIST, INT},
    {"sysctls", LIST, STRUCT, 0, .fields = sysctl},
    {"windowsOptions", ONE, STRUCT, PTR, .fields = windows_security_context_options},
    {0},
};

static const struct sw_sim_field toleration[] = {
    {"effect", ONE, TEXT},   {"key", ONE, TEXT},
    {"operator", ONE, TEXT}, {"tolerationSeconds", ONE, INT, PTR},
    {"value", ONE, TEXT},    {0},
};

static const struct sw_sim_field topology_spread_constraint[] = {
    {"labelSelector", ONE, STRUCT, PTR | ATOMIC, .fields = sw_sim_fields_label_selector},
    {"maxSkew", ONE, INT, KEEP},
    {"topologyKey", ONE, TEXT, KEEP},
    {"whenUnsatisfiable", ONE, TEXT, KEEP},
    {0},
};

const struct sw_sim_field sw_sim_fields_pod_spec[] = {
    {"activeDeadlineSeconds", ONE, INT, PTR},
    {"affinity", ONE, STRUCT, PTR, .fields = affinity},
    {"automountServiceAccountToken", ONE, BOOL, PTR},
    {"containers", LIST, STRUCT, KEEP, .fields = container, .merge = "name", .keys = "name"},
    {"dnsConfig", ONE, STRUCT, PTR, .fields = pod_dns_config},
    {"dnsPolicy", ONE, TEXT},
    {"enableServiceLinks", ONE, BOOL, PTR},
    {"ephemeralContainers", LIST, STRUCT, 0, .fields = ephemeral_container, .merge = "name",
     .keys = "name"},
    {"hostAliases", LIST, STRUCT, 0, .fields = host_alias, .merge = "ip", .keys = "ip"},
    {"hostIPC", ONE, BOOL},
    {"hostNetwork", ONE, BOOL},
    {"hostPID", ONE, BOOL},
    {"hostname", ONE, TEXT},
    {"imagePullSecrets", LIST, STRUCT, 0, .fields = sw_sim_fields_local_object_reference,
     .merge = "name", .keys = "name"},
    {"initContainers", LIST, STRUCT, 0, .fields = container, .merge = "name", .keys = "name"},
    {"nodeName", ONE, TEXT},
    {"nodeSelector", MAP, TEXT},
    {"overhead", MAP, QUANTITY},
    {"preemptionPolicy", ONE, TEXT, PTR},
    {"priority", ONE, INT, PTR},
    {"priorityClassName", ONE, TEXT},
    {"readinessGates", LIST, STRUCT, 0, .fields = pod_readiness_gate},
    {"restartPolicy", ONE, TEXT},
    {"runtimeClassName", ONE, TEXT, PTR},
    {"schedulerName", ONE, TEXT},
    {"securityContext", ONE, STRUCT, PTR, .fields = pod_security_context},
    {"serviceAccount", ONE, TEXT},
    {"serviceAccountName", ONE, TEXT},
    {"setHostnameAsFQDN", ONE, BOOL, PTR},
    {"shareProcessNamespace", ONE, BOOL, PTR},
    {"subdomain", ONE, TEXT},
    {"terminationGracePeriodSeconds", ONE, INT, PTR},
    {"tolerations", LIST, STRUCT, 0, .fields = toleration},
    {"topologySpreadConstraints", LIST, STRUCT, 0, .fields = topology_spread_constraint,
     .merge = "topologyKey", .keys = "topologyKey,whenUnsatisfiable"},
    {"volumes", LIST, STRUCT, RETAIN, .fields = sw_sim_fields_volume, .merge = "name",
     .keys = "name"},
    {0},
};

static const struct sw_sim_field pod_condition[] = {
    {"lastProbeTime", ONE, TIME, KEEP},
    {"lastTransitionTime", ONE, TIME, KEEP},
    {"message", ONE, TEXT},
    {"reason", ONE, TEXT},
    {"status", ONE, TEXT, KEEP},
    {"type", ONE, TEXT, KEEP},
    {0},
};

static const struct sw_sim_field container_state_running[] = {
    {"startedAt", ONE, TIME, KEEP},
    {0},
};

static const struct sw_sim_field container_state_terminated[] = {
    {"containerID", ONE, TEXT},      {"exitCode", ONE, INT, KEEP},
    {"finishedAt", ONE, TIME, KEEP}, {"message", ONE, TEXT},
    {"reason", ONE, TEXT},           {"signal", ONE, INT},
    {"startedAt", ONE, TIME, KEEP},  {0},
};

static const struct sw_sim_field container_state_waiting[] = {
    {"message", ONE, TEXT},
    {"reason", ONE, TEXT},
    {0},
};

static const struct sw_sim_field container_state[] = {
    {"running", ONE, STRUCT, PTR, .fields = container_state_running},
    {"terminated", ONE, STRUCT, PTR, .fields = container_state_terminated},
    {"waiting", ONE, STRUCT, PTR, .fields = container_state_waiting},
    {0},
};

static const struct sw_sim_field container_status[] = {
    {"containerID", ONE, TEXT},
    {"image", ONE, TEXT, KEEP},
    {"imageID", ONE, TEXT, KEEP},
    {"lastState", ONE, STRUCT, KEEP, .fields = container_state},
    {"name", ONE, TEXT, KEEP},
    {"ready", ONE, BOOL, KEEP},
    {"restartCount", ONE, INT, KEEP},
    {"started", ONE, BOOL, PTR},
    {"state", ONE, STRUCT, KEEP, .fields = container_state},
    {0},
};

static const struct sw_sim_field pod_ip[] = {
    {"ip", ONE, TEXT},
    {0},
};

static const struct sw_sim_field pod_status[] = {
    {"conditions", LIST, STRUCT, 0, .fields = pod_condition, .merge = "type", .keys = "type"},
    {"containerStatuses", LIST, STRUCT, 0, .fields = container_status},
    {"ephemeralContainerStatuses", LIST, STRUCT, 0, .fields = container_status},
    {"hostIP", ONE, TEXT},
    {"initContainerStatuses", LIST, STRUCT, 0, .fields = container_status},
    {"message", ONE, TEXT},
    {"nominatedNodeName", ONE, TEXT},
    {"phase", ONE, TEXT},
    {"podIP", ONE, TEXT},
    {"podIPs", LIST, STRUCT, 0, .fields = pod_ip, .merge = "ip", .keys = "ip"},
    {"qosClass", ONE, TEXT},
    {"reason", ONE, TEXT},
    {"startTime", ONE, TIME, PTR},
    {0},
};

const struct sw_sim_field sw_sim_fields_pod[] = {
    {"apiVersion", ONE, TEXT},
    {"kind", ONE, TEXT},
    {"metadata", ONE, STRUCT, KEEP, .fields = sw_sim_fields_object_meta},
    {"spec", ONE, STRUCT, KEEP, .fields = sw_sim_fields_pod_spec},
    {"status", ONE, STRUCT, KEEP, .fields = pod_status},
    {0},
};
