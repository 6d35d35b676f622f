/* SPDX-License-Identifier: Apache-2.0 */
/* https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/deployment-v1/ */
#include <slipway/apps.h>

#include <inttypes.h>
#include <stdio.h>

#define DEPLOYMENT(json_path, type, member, ...) \
    SW_BIND(json_path, type, struct sw_deployment, member, ##__VA_ARGS__)

static const struct sw_bind deployment_fields[] = {
    DEPLOYMENT("/spec/replicas", SW_BIND_INT32, replicas, .otherwise = 1),
    DEPLOYMENT("/spec/paused", SW_BIND_BOOL, is_paused),
    DEPLOYMENT("/spec/template", SW_BIND_HASH, template_hash),
    DEPLOYMENT("/spec/strategy/type", SW_BIND_ENUM, strategy),
    DEPLOYMENT("/spec/strategy/rollingUpdate/maxSurge", SW_BIND_INT_OR_PERCENT, max_surge),
    DEPLOYMENT("/spec/strategy/rollingUpdate/maxUnavailable", SW_BIND_INT_OR_PERCENT,
               max_unavailable),
    DEPLOYMENT("/spec/minReadySeconds", SW_BIND_INT32, min_ready_seconds),
    DEPLOYMENT("/spec/progressDeadlineSeconds", SW_BIND_INT32, progress_deadline_seconds,
               .otherwise = 600),
    DEPLOYMENT("/status/observedGeneration", SW_BIND_INT64, observed_generation),
    DEPLOYMENT("/status/replicas", SW_BIND_INT32, status_replicas),
    DEPLOYMENT("/status/updatedReplicas", SW_BIND_INT32, updated_replicas),
    DEPLOYMENT("/status/readyReplicas", SW_BIND_INT32, ready_replicas),
    DEPLOYMENT("/status/availableReplicas", SW_BIND_INT32, available_replicas),
    DEPLOYMENT("/status/conditions", SW_BIND_CONDITIONS, conditions),
    SW_BIND_END,
};

static const char *const deployment_annotations[] = {
    "slipway.dev/",
    "deployment.kubernetes.io/revision",
    NULL,
};

const struct sw_kind sw_kind_deployment = {
    .group = "apps",
    .version = "v1",
    .kind = "Deployment",
    .plural = "deployments",
    .size = sizeof(struct sw_deployment),
    .fields = deployment_fields,
    .annotations = deployment_annotations,
};

/* FNV-1a; stable, unlike sw_hash. Nobody gains by a collision: it is for reading logs. */
static uint64_t mix_text(uint64_t hash, const char *text)
{
    do {
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    } while (*text++);
    return hash;
}

static uint64_t mix_number(uint64_t hash, uint64_t number)
{
    for (int i = 0; i < 64; i += 8) {
        hash = (hash ^ ((number >> i) & 0xff)) * UINT64_C(1099511628211);
    }
    return hash;
}

void sw_rollout_text(const struct sw_deployment *deployment, char text[SW_ROLLOUT_SIZE])
{
    uint64_t hash = mix_text(UINT64_C(14695981039346656037), deployment->meta.namespace_);

    hash = mix_text(hash, deployment->meta.name);
    hash = mix_number(hash, deployment->template_hash.high);
    hash = mix_number(hash, deployment->template_hash.low);
    snprintf(text, SW_ROLLOUT_SIZE, "%016" PRIx64, hash);
}
