/* SPDX-License-Identifier: Apache-2.0 */
/* The Events in which the controllers say what they do. */
#ifndef TOOLS_SIM_RECORDER_H
#define TOOLS_SIM_RECORDER_H

#include <slipway/attr.h>

struct sw_loop;
struct sw_sim_api;
struct sw_sim_object;
struct sw_sim_recorder;
struct sw_sim_store;

struct sw_sim_recorder *sw_sim_recorder_new(struct sw_loop *loop, struct sw_sim_store *store,
                                            struct sw_sim_api *api);
struct sw_sim_recorder *sw_sim_recorder_free(struct sw_sim_recorder *recorder);
/* A Normal Event on the object; nothing where recorder is NULL. component: "deployment-controller".
 */
SW_PRINTF(5, 6)
void sw_sim_record(struct sw_sim_recorder *recorder, const struct sw_sim_object *object,
                   const char *component, const char *reason, const char *format, ...);

#endif
