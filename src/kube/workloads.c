/* SPDX-License-Identifier: Apache-2.0 */
/* https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/ and config-and-storage-
 * resources/secret-v1/ */
#include <slipway/workloads.h>

#include <string.h>

#include "base/util.h"
#include "kube/base64.h"

static const char *const own_annotations[] = {"slipway.dev/", NULL};

/* ---- StatefulSet ---- */

#define STATEFUL_SET(json_path, type, member, ...) \
    SW_BIND(json_path, type, struct sw_stateful_set, member, ##__VA_ARGS__)

static const struct sw_bind stateful_set_fields[] = {
    STATEFUL_SET("/spec/replicas", SW_BIND_INT32, replicas, .otherwise = 1),
    STATEFUL_SET("/spec/template", SW_BIND_HASH, template_hash),
    STATEFUL_SET("/spec/updateStrategy", SW_BIND_RAW, update_strategy),
    STATEFUL_SET("/spec/updateStrategy/type", SW_BIND_ENUM, strategy),
    STATEFUL_SET("/spec/updateStrategy/rollingUpdate/partition", SW_BIND_INT32, partition),
    STATEFUL_SET("/spec/updateStrategy/rollingUpdate/maxUnavailable", SW_BIND_INT_OR_PERCENT,
                 max_unavailable),
    STATEFUL_SET("/spec/minReadySeconds", SW_BIND_INT32, min_ready_seconds),
    STATEFUL_SET("/status/observedGeneration", SW_BIND_INT64, observed_generation),
    STATEFUL_SET("/status/replicas", SW_BIND_INT32, status_replicas),
    STATEFUL_SET("/status/readyReplicas", SW_BIND_INT32, ready_replicas),
    STATEFUL_SET("/status/availableReplicas", SW_BIND_INT32, available_replicas),
    STATEFUL_SET("/status/currentReplicas", SW_BIND_INT32, current_replicas),
    STATEFUL_SET("/status/updatedReplicas", SW_BIND_INT32, updated_replicas),
    STATEFUL_SET("/status/currentRevision", SW_BIND_STRING, current_revision),
    STATEFUL_SET("/status/updateRevision", SW_BIND_STRING, update_revision),
    SW_BIND_END,
};

const struct sw_kind sw_kind_stateful_set = {
    .group = "apps",
    .version = "v1",
    .kind = "StatefulSet",
    .plural = "statefulsets",
    .size = sizeof(struct sw_stateful_set),
    .fields = stateful_set_fields,
    .annotations = own_annotations,
};

/* ---- DaemonSet ---- */

#define DAEMON_SET(json_path, type, member, ...) \
    SW_BIND(json_path, type, struct sw_daemon_set, member, ##__VA_ARGS__)

static const struct sw_bind daemon_set_fields[] = {
    DAEMON_SET("/spec/template", SW_BIND_HASH, template_hash),
    DAEMON_SET("/spec/updateStrategy", SW_BIND_RAW, update_strategy),
    DAEMON_SET("/spec/updateStrategy/type", SW_BIND_ENUM, strategy),
    DAEMON_SET("/spec/updateStrategy/rollingUpdate/maxUnavailable", SW_BIND_INT_OR_PERCENT,
               max_unavailable),
    DAEMON_SET("/spec/minReadySeconds", SW_BIND_INT32, min_ready_seconds),
    DAEMON_SET("/status/observedGeneration", SW_BIND_INT64, observed_generation),
    DAEMON_SET("/status/desiredNumberScheduled", SW_BIND_INT32, desired),
    DAEMON_SET("/status/currentNumberScheduled", SW_BIND_INT32, current),
    DAEMON_SET("/status/numberReady", SW_BIND_INT32, ready),
    DAEMON_SET("/status/numberAvailable", SW_BIND_INT32, available),
    DAEMON_SET("/status/updatedNumberScheduled", SW_BIND_INT32, updated),
    SW_BIND_END,
};

const struct sw_kind sw_kind_daemon_set = {
    .group = "apps",
    .version = "v1",
    .kind = "DaemonSet",
    .plural = "daemonsets",
    .size = sizeof(struct sw_daemon_set),
    .fields = daemon_set_fields,
    .annotations = own_annotations,
};

/* ---- ReplicaSet ---- */

#define REPLICA_SET(json_path, type, member, ...) \
    SW_BIND(json_path, type, struct sw_replica_set, member, ##__VA_ARGS__)

static const struct sw_bind replica_set_fields[] = {
    REPLICA_SET("/spec/replicas", SW_BIND_INT32, replicas, .otherwise = 1),
    REPLICA_SET("/spec/minReadySeconds", SW_BIND_INT32, min_ready_seconds),
    REPLICA_SET("/status/observedGeneration", SW_BIND_INT64, observed_generation),
    REPLICA_SET("/status/replicas", SW_BIND_INT32, status_replicas),
    REPLICA_SET("/status/readyReplicas", SW_BIND_INT32, ready_replicas),
    REPLICA_SET("/status/availableReplicas", SW_BIND_INT32, available_replicas),
    SW_BIND_END,
};

static const char *const replica_set_annotations[] = {
    "slipway.dev/",
    "deployment.kubernetes.io/revision",
    NULL,
};

const struct sw_kind sw_kind_replica_set = {
    .group = "apps",
    .version = "v1",
    .kind = "ReplicaSet",
    .plural = "replicasets",
    .size = sizeof(struct sw_replica_set),
    .fields = replica_set_fields,
    .annotations = replica_set_annotations,
};

/* ---- Pod ---- */

#define CONTAINER(json_path, type, member, ...) \
    SW_BIND(json_path, type, struct sw_container_status, member, ##__VA_ARGS__)
#define POD(json_path, type, member, ...) \
    SW_BIND(json_path, type, struct sw_pod, member, ##__VA_ARGS__)

static const struct sw_bind container_fields[] = {
    CONTAINER("/name", SW_BIND_ENUM, name),
    CONTAINER("/restartCount", SW_BIND_INT32, restart_count),
    CONTAINER("/ready", SW_BIND_BOOL, is_ready),
    CONTAINER("/state/waiting/reason", SW_BIND_ENUM, waiting_reason),
    SW_BIND_END,
};

static const struct sw_bind pod_fields[] = {
    POD("/status/phase", SW_BIND_ENUM, phase),
    POD("/spec/nodeName", SW_BIND_ENUM, node_name),
    POD("/status/startTime", SW_BIND_TIME, started_us),
    POD("/status/conditions", SW_BIND_CONDITIONS, conditions),
    POD("/status/containerStatuses", SW_BIND_LIST, containers, .element = container_fields,
        .element_size = sizeof(struct sw_container_status)),
    POD("/status/initContainerStatuses", SW_BIND_LIST, init_containers, .element = container_fields,
        .element_size = sizeof(struct sw_container_status)),
    SW_BIND_END,
};

const struct sw_kind sw_kind_pod = {
    .group = "",
    .version = "v1",
    .kind = "Pod",
    .plural = "pods",
    .size = sizeof(struct sw_pod),
    .fields = pod_fields,
    .annotations = own_annotations,
};

/* ---- ControllerRevision ---- */

enum { REVISION_LIMIT_BYTES = 1024 * 1024 }; /* a whole template; etcd refuses above 1.5 MiB */

static const struct sw_bind controller_revision_fields[] = {
    SW_BIND("/revision", SW_BIND_INT64, struct sw_controller_revision, revision),
    SW_BIND("/data", SW_BIND_RAW, struct sw_controller_revision, data,
            .limit = REVISION_LIMIT_BYTES),
    SW_BIND_END,
};

const struct sw_kind sw_kind_controller_revision = {
    .group = "apps",
    .version = "v1",
    .kind = "ControllerRevision",
    .plural = "controllerrevisions",
    .size = sizeof(struct sw_controller_revision),
    .fields = controller_revision_fields,
    .annotations = own_annotations,
};

/* ---- Secret ---- */

static const struct sw_bind secret_fields[] = {
    SW_BIND("/type", SW_BIND_ENUM, struct sw_secret, type),
    SW_BIND("/data", SW_BIND_LABELS, struct sw_secret, data),
    SW_BIND_END,
};

const struct sw_kind sw_kind_secret = {
    .group = "",
    .version = "v1",
    .kind = "Secret",
    .plural = "secrets",
    .is_secret = true,
    .size = sizeof(struct sw_secret),
    .fields = secret_fields,
    .annotations = own_annotations,
};

struct value {
    char *bytes;
    size_t len;
};

static void value_free(void *arg)
{
    struct value *value = arg;
    sw_free_secret(value->bytes, value->len);
}

const char *sw_secret_value(const struct sw_secret *secret, const char *key, struct sw_arena *arena,
                            size_t *ret_len)
{
    const char *text = sw_labels_get(&secret->data, key);
    struct value value;
    if (!text || sw_base64_decode(text, strlen(text), &value.bytes, &value.len)) {
        return NULL;
    }
    struct value *kept = SW_ARENA_NEW(arena, struct value);
    *kept = value;
    sw_arena_on_free(arena, value_free, kept);
    if (ret_len) {
        *ret_len = value.len;
    }
    return value.bytes;
}
