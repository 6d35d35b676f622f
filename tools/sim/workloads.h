/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kube-controller-manager does with workloads: Deployment, ReplicaSet, StatefulSet and
 * DaemonSet, with their ControllerRevisions. (Garbage is collected by the API server, api.h.) Each
 * works from its own view of the cluster, which lags behind the store by a time that can be set,
 * and does one key at a time, as the real ones do.
 *
 * Deployment, as the real one shows it: surge and unavailable (percentages rounded up and down),
 * minReadySeconds, paused (scales, proportionally with the real tie rules, and makes no
 * ReplicaSet), progressDeadlineSeconds and the Progressing and Available conditions with their
 * reasons and messages, revision annotations and history, collisions of the template hash,
 * revisionHistoryLimit, Recreate (waits until the old Pods are gone), rollback by putting an older
 * template back. https://kubernetes.io/docs/concepts/workloads/controllers/deployment/
 */
#ifndef TOOLS_SIM_WORKLOADS_H
#define TOOLS_SIM_WORKLOADS_H

#include <stdbool.h>
#include <stdint.h>

struct sw_loop;
struct sw_sim_api;
struct sw_sim_store;
struct sw_sim_workloads;

struct sw_sim_workloads_options {
    /* How long after a change a controller looks at it, uniform; both 0: 1 to 3 ms. */
    uint64_t lag_min_ms, lag_max_ms;
    /* They say in Events what they do (recorder.h). Off: fewer writes, and the same otherwise. */
    bool records_events;
};

struct sw_sim_workloads *sw_sim_workloads_new(struct sw_loop *loop, struct sw_sim_store *store,
                                              struct sw_sim_api *api,
                                              const struct sw_sim_workloads_options *options);
struct sw_sim_workloads *sw_sim_workloads_free(struct sw_sim_workloads *workloads);
/* Stopped (as if kube-controller-manager were down), and on again: it then looks at everything. */
void sw_sim_workloads_set_running(struct sw_sim_workloads *workloads, bool is_running);
/* The controllers have nothing to do now and wait for no time. */
bool sw_sim_workloads_is_quiet(const struct sw_sim_workloads *workloads);

#endif
