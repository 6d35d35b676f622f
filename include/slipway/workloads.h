/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Further built-in kinds. StatefulSets and DaemonSets are small enough to be watched. ReplicaSets,
 * Pods, ControllerRevisions and Secrets are meant to be read when they are needed (read.h).
 * https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/
 */
#ifndef SLIPWAY_WORKLOADS_H
#define SLIPWAY_WORKLOADS_H

#include <slipway/arena.h>
#include <slipway/kind.h>

struct sw_stateful_set {
    struct sw_object meta;
    /* spec */
    int32_t replicas; /* absent: 1 */
    struct sw_hash128 template_hash;
    struct sw_raw update_strategy;            /* as it is, to be saved and put back */
    const char *strategy;                     /* "RollingUpdate" or "OnDelete"; absent: "" */
    int32_t partition;                        /* absent: 0 */
    struct sw_int_or_percent max_unavailable; /* absent: not set, which means 1 */
    int32_t min_ready_seconds;
    /* status */
    int64_t observed_generation;
    int32_t status_replicas;
    int32_t ready_replicas;
    int32_t available_replicas; /* 0 on servers that do not know it (before 1.22) */
    int32_t current_replicas;
    int32_t updated_replicas;
    const char *current_revision; /* name of a ControllerRevision */
    const char *update_revision;
};

struct sw_daemon_set {
    struct sw_object meta;
    /* spec */
    struct sw_hash128 template_hash;
    struct sw_raw update_strategy;
    const char *strategy; /* "RollingUpdate" or "OnDelete"; absent: "" */
    struct sw_int_or_percent max_unavailable;
    int32_t min_ready_seconds;
    /* status */
    int64_t observed_generation;
    int32_t desired; /* desiredNumberScheduled */
    int32_t current;
    int32_t ready;
    int32_t available;
    int32_t updated; /* updatedNumberScheduled */
};

struct sw_replica_set {
    struct sw_object meta; /* annotation deployment.kubernetes.io/revision */
    int32_t replicas;
    int32_t min_ready_seconds;
    int64_t observed_generation;
    int32_t status_replicas;
    int32_t ready_replicas;
    int32_t available_replicas;
};

struct sw_container_status {
    const char *name;
    int32_t restart_count;
    bool is_ready;
    const char *waiting_reason; /* "CrashLoopBackOff"; "" */
};

struct sw_pod {
    struct sw_object meta;
    const char *phase;
    const char *node_name;
    int64_t started_us; /* status.startTime */
    struct sw_conditions conditions;
    struct sw_list containers;      /* struct sw_container_status */
    struct sw_list init_containers; /* the same */
};

struct sw_controller_revision {
    struct sw_object meta;
    int64_t revision;
    struct sw_raw data; /* at most 1 MiB */
};

struct sw_secret {
    struct sw_object meta;
    const char *type;
    struct sw_labels data; /* values in base64 */
};

/* Annotations kept: those of slipway.dev/, and deployment.kubernetes.io/revision of ReplicaSets. */
SW_API extern const struct sw_kind sw_kind_stateful_set;
SW_API extern const struct sw_kind sw_kind_daemon_set;
SW_API extern const struct sw_kind sw_kind_replica_set;
SW_API extern const struct sw_kind sw_kind_pod;
SW_API extern const struct sw_kind sw_kind_controller_revision;
SW_API extern const struct sw_kind sw_kind_secret; /* is_secret */

/* The decoded value of a key, NUL-terminated, in the arena, overwritten when that is freed; NULL:
 * no such key, or not base64. ret_len may be NULL. */
SW_API const char *sw_secret_value(const struct sw_secret *secret, const char *key,
                                   struct sw_arena *arena, size_t *ret_len);

#endif
