/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controller of PodDisruptionBudgets: how many Pods of each are healthy, how many have to be,
 * and so how many evictions are allowed. Where there are no budgets it does nothing at all.
 * https://kubernetes.io/docs/tasks/run-application/configure-pdb/
 */
#ifndef TOOLS_SIM_DISRUPTION_H
#define TOOLS_SIM_DISRUPTION_H

struct sw_loop;
struct sw_sim_api;
struct sw_sim_change;
struct sw_sim_disruption;
struct sw_sim_store;

struct sw_sim_disruption *sw_sim_disruption_new(struct sw_loop *loop, struct sw_sim_store *store,
                                                struct sw_sim_api *api);
struct sw_sim_disruption *sw_sim_disruption_free(struct sw_sim_disruption *disruption);
void sw_sim_disruption_change(struct sw_sim_disruption *disruption,
                              const struct sw_sim_change *change);
/* Looks at all budgets; or at none any more, until it is told to look again. */
void sw_sim_disruption_look(struct sw_sim_disruption *disruption);
void sw_sim_disruption_rest(struct sw_sim_disruption *disruption);

#endif
