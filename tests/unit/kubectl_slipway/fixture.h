/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small cluster, written down as the API server would: coordinations, SteppedRollouts and
 * Deployments in the namespace "shop". Their template is 1 where it is old and 2 where it is new.
 */
#ifndef TESTS_KUBECTL_SLIPWAY_FIXTURE_H
#define TESTS_KUBECTL_SLIPWAY_FIXTURE_H

#include "test.h"

#include <slipway/apps.h>
#include <slipway/arena.h>

#include "base/error.h"
#include "base/map.h"
#include "base/time.h"
#include "kube/decode.h"
#include "world.h"

#define OBJECTS 8

struct cluster {
    struct sw_arena *arena;
    struct sw_intern *intern;
    struct sw_decoder *decoders[3]; /* coordinations, Deployments, SteppedRollouts */
    struct sw_object *groups[OBJECTS], *deployments[OBJECTS], *rollouts[OBJECTS];
    size_t group_count, deployment_count, rollout_count;
};

/* 2030-01-01T00:01:00Z; what is written down began a minute before. */
#define NOW_US (INT64_C(1893456060) * 1000000)
#define MINUTE_AGO "2030-01-01T00:00:00Z"

static inline struct cluster *cluster_new(void)
{
    struct cluster *cluster = calloc(1, sizeof *cluster);

    cluster->arena = sw_arena_new(0);
    cluster->intern = sw_intern_new();
    cluster->decoders[0] = sw_decoder_new(&coord_kind, cluster->intern);
    cluster->decoders[1] = sw_decoder_new(&sw_kind_deployment, cluster->intern);
    cluster->decoders[2] = sw_decoder_new(&step_kind, cluster->intern);
    return cluster;
}

static inline void cluster_free(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->group_count; i++)
        sw_object_free(cluster->decoders[0], cluster->groups[i]);
    for (size_t i = 0; i < cluster->deployment_count; i++)
        sw_object_free(cluster->decoders[1], cluster->deployments[i]);
    for (size_t i = 0; i < cluster->rollout_count; i++)
        sw_object_free(cluster->decoders[2], cluster->rollouts[i]);
    sw_arena_free(cluster->arena);
    for (size_t i = 0; i < sizeof cluster->decoders / sizeof cluster->decoders[0]; i++)
        sw_decoder_free(cluster->decoders[i]);
    sw_intern_free(cluster->intern);
    free(cluster);
}

static inline struct sw_object *decoded(struct sw_decoder *decoder, const char *text)
{
    struct sw_object *object = NULL;
    struct sw_error error = {0};

    if (sw_decode_object(decoder, text, strlen(text), "shop", &object, &error))
        fail_msg("%s in %s", error.text, text);
    return object;
}

/* spec and status: members of theirs, as JSON; "" for none. */
static inline void group(struct cluster *cluster, const char *name, const char *spec,
                         const char *status)
{
    const char *text = sw_arena_printf(
        cluster->arena,
        "{\"metadata\":{\"name\":\"%s\",\"uid\":\"%s\",\"resourceVersion\":\"7\",\"generation\":1,"
        "\"creationTimestamp\":\"2029-01-01T00:00:00Z\"},"
        "\"spec\":{\"labelSelector\":{\"matchLabels\":{\"app\":\"web\"}}%s%s},"
        "\"status\":{\"observedGeneration\":1%s%s}}",
        name, name, spec[0] ? "," : "", spec, status[0] ? "," : "", status);

    assert_true(cluster->group_count < OBJECTS);
    cluster->groups[cluster->group_count++] = decoded(cluster->decoders[0], text);
}

/* Two replicas wanted; updated and available of them are new and serve. */
static inline void deployment(struct cluster *cluster, const char *name, const char *annotations,
                              bool is_paused, int updated, int available, const char *reason)
{
    const char *text = sw_arena_printf(
        cluster->arena,
        "{\"metadata\":{\"name\":\"%s\",\"uid\":\"%s\",\"resourceVersion\":\"8\",\"generation\":3,"
        "\"creationTimestamp\":\"2029-01-01T00:00:00Z\",\"labels\":{\"app\":\"web\"},"
        "\"annotations\":{\"deployment.kubernetes.io/revision\":\"4\"%s%s}},"
        "\"spec\":{\"replicas\":2,\"paused\":%s,\"template\":{\"v\":%d}},"
        "\"status\":{\"observedGeneration\":3,\"replicas\":2,\"updatedReplicas\":%d,"
        "\"readyReplicas\":%d,\"availableReplicas\":%d,\"conditions\":[{\"type\":\"Progressing\","
        "\"status\":\"%s\",\"reason\":\"%s\",\"message\":\"has timed out\","
        "\"lastUpdateTime\":\"" MINUTE_AGO "\"}]}}",
        name, name, annotations[0] ? "," : "", annotations, is_paused ? "true" : "false",
        updated == 2 ? 1 : 2, updated, available, available,
        strcmp(reason, "ProgressDeadlineExceeded") == 0 ? "False"
        : strcmp(reason, "DeploymentPaused") == 0       ? "Unknown"
                                                        : "True",
        reason);

    assert_true(cluster->deployment_count < OBJECTS);
    cluster->deployments[cluster->deployment_count++] = decoded(cluster->decoders[1], text);
}

/* Of Deployment target, at step 2 of 3; phase and more of the status. */
static inline void rollout(struct cluster *cluster, const char *name, const char *target,
                           const char *created, const char *phase, const char *status)
{
    const char *text = sw_arena_printf(
        cluster->arena,
        "{\"metadata\":{\"name\":\"%s\",\"uid\":\"%s\",\"resourceVersion\":\"9\",\"generation\":1,"
        "\"creationTimestamp\":\"%s\"},\"spec\":{\"targetRef\":{\"kind\":\"Deployment\","
        "\"name\":\"%s\"},\"analysis\":{\"iterations\":4,\"threshold\":2}},\"status\":{"
        "\"observedGeneration\":1,\"phase\":\"%s\",\"currentStep\":2,\"steps\":3,\"stop\":1,"
        "\"updatedReplicas\":1,\"replicas\":2,\"lastTransitionTime\":\"" MINUTE_AGO "\"%s%s}}",
        name, name, created, target, phase, status[0] ? "," : "", status);

    assert_true(cluster->rollout_count < OBJECTS);
    cluster->rollouts[cluster->rollout_count++] = decoded(cluster->decoders[2], text);
}

#define MARK "\"slipway.dev/coordinated-by\":\"g\""
#define HELD MARK ",\"slipway.dev/held-by\":\"coordination/g\""
#define RIGHT MARK ",\"slipway.dev/released-by\":\"coordination/g\""

static inline void rests(struct cluster *cluster, const char *name)
{
    deployment(cluster, name, HELD, true, 2, 2, "DeploymentPaused");
}

/* Held, with a new template; more annotations behind a comma. */
static inline void waits(struct cluster *cluster, const char *name, const char *more)
{
    deployment(cluster, name, sw_arena_printf(cluster->arena, "%s%s", HELD, more), true, 0, 2,
               "DeploymentPaused");
}

static inline void rolls(struct cluster *cluster, const char *name)
{
    deployment(cluster, name, RIGHT, false, 1, 2, "ReplicaSetUpdated");
}

/* An element of deploymentStates. */
#define STATE(name, position)                                                        \
    "{\"name\":\"shop/" name "\",\"hasPendingChanges\":true,\"position\":" #position \
    ",\"pendingSince\":\"" MINUTE_AGO "\",\"lastRolloutStarted\":\"" MINUTE_AGO "\"}"

static inline struct ks_world *world_of(struct cluster *cluster)
{
    struct ks_world *world = ks_world_new(
        cluster->arena, (const struct coordination *const *)(const void *)cluster->groups,
        cluster->group_count,
        (const struct sw_deployment *const *)(const void *)cluster->deployments,
        cluster->deployment_count);

    ks_world_set_rollouts(cluster->arena, world,
                          (const struct stepped *const *)(const void *)cluster->rollouts,
                          cluster->rollout_count);
    return world;
}

#endif
