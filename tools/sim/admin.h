/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The endpoint through which a test or a person tells slipway-sim things that no API server could
 * be told. JSON in and out; what makes no sense is answered with 400 and {"error": "a sentence"}.
 *
 *   GET    /faults              the rules and how often each has hit (fault_rules.h)
 *   PUT    /faults/NAME         makes or replaces one
 *   DELETE /faults/NAME         forgets it; without /NAME all
 *   POST   /watches/end         {"whole": false}: every watch ends now, cut or whole
 *   POST   /compact             older versions are gone: the next watch from one gets 410
 *   PUT    /controllers         {"running": false}: as if kube-controller-manager were down
 *   GET    /healthz             200
 *   and all paths of tools/kubelets (pods.h): /pods, /settings, /crash, /nodes
 */
#ifndef TOOLS_SIM_ADMIN_H
#define TOOLS_SIM_ADMIN_H

#include <stdint.h>

struct sw_error;
struct sw_log;
struct sw_loop;
struct sw_sim_admin;
struct sw_sim_api;
struct sw_sim_fault_rules;
struct sw_sim_pods;
struct sw_sim_store;
struct sw_sim_workloads;

/* All borrowed. */
struct sw_sim_admin_options {
    const char *address; /* "127.0.0.1:0" */
    struct sw_sim_api *api;
    struct sw_sim_store *store;
    struct sw_sim_pods *pods;
    struct sw_sim_workloads *workloads;
    struct sw_sim_fault_rules *rules;
};

int sw_sim_admin_open(struct sw_loop *loop, const struct sw_sim_admin_options *options,
                      const struct sw_log *log, struct sw_sim_admin **ret_admin,
                      struct sw_error *error);
uint16_t sw_sim_admin_port(const struct sw_sim_admin *admin);
void sw_sim_admin_close(struct sw_sim_admin *admin); /* takes NULL */

#endif
