/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which paths of a DeploymentCoordination are read, and where they go.
 */
#include "kind.h"

static const struct sw_bind entry_fields[] = {
    SW_BIND("/name", SW_BIND_STRING, struct coord_entry, name),
    SW_BIND("/hasPendingChanges", SW_BIND_BOOL, struct coord_entry, has_pending_changes),
    SW_BIND("/generation", SW_BIND_INT64, struct coord_entry, generation),
    SW_BIND("/lastRolloutStarted", SW_BIND_TIME, struct coord_entry, started_us),
    SW_BIND("/lastRolloutFinished", SW_BIND_TIME, struct coord_entry, finished_us),
    SW_BIND("/pendingSince", SW_BIND_TIME, struct coord_entry, pending_since_us),
    SW_BIND("/position", SW_BIND_INT32, struct coord_entry, position, .otherwise = -1),
    SW_BIND("/message", SW_BIND_STRING, struct coord_entry, message),
    SW_BIND("/failedTemplate", SW_BIND_STRING, struct coord_entry, failed_template),
    SW_BIND_END,
};

static const struct sw_bind fields[] = {
    /* 64 KiB, as the core limits raw values: a selector with more is a bad object. */
    SW_BIND("/spec/labelSelector", SW_BIND_RAW, struct coordination, selector),
    SW_BIND("/spec/minReadySeconds", SW_BIND_INT32, struct coordination, min_ready_seconds),
    SW_BIND("/spec/maxActive", SW_BIND_INT32, struct coordination, max_active, .otherwise = 1),
    SW_BIND("/spec/suspend", SW_BIND_BOOL, struct coordination, is_suspended),
    SW_BIND("/spec/availabilityGuard", SW_BIND_ENUM, struct coordination, availability_guard),
    SW_BIND("/spec/atRest", SW_BIND_ENUM, struct coordination, at_rest),
    SW_BIND("/spec/failurePolicy", SW_BIND_ENUM, struct coordination, failure_policy),
    SW_BIND("/status/activeDeployment", SW_BIND_STRING, struct coordination, active_deployment),
    SW_BIND("/status/activeDeployments", SW_BIND_STRINGS, struct coordination, active_deployments),
    SW_BIND("/status/deployments", SW_BIND_STRINGS, struct coordination, deployments),
    SW_BIND("/status/deploymentStates", SW_BIND_LIST, struct coordination, states,
            .element = entry_fields, .element_size = sizeof(struct coord_entry)),
    SW_BIND("/status/selected", SW_BIND_INT32, struct coordination, selected),
    SW_BIND("/status/pending", SW_BIND_INT32, struct coordination, pending),
    SW_BIND("/status/truncated", SW_BIND_BOOL, struct coordination, is_truncated),
    SW_BIND("/status/turn", SW_BIND_INT64, struct coordination, turn),
    SW_BIND("/status/observedGeneration", SW_BIND_INT64, struct coordination, observed_generation),
    SW_BIND("/status/conditions", SW_BIND_CONDITIONS, struct coordination, conditions),
    SW_BIND_END,
};

static const char *const annotations[] = {"slipway.dev/", NULL};

const struct sw_kind coord_kind = {
    .group = "apps.containerinfra.nl",
    .version = "v1",
    .kind = "DeploymentCoordination",
    .plural = "deploymentcoordinations",
    .size = sizeof(struct coordination),
    .fields = fields,
    .annotations = annotations,
};
