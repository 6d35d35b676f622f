/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls admission webhooks by HTTPS: clientConfig.url with clientConfig.caBundle, as in
 * admissionregistration.k8s.io/v1. clientConfig.service needs a cluster's network and is answered
 * as unreachable, with a reason that says so.
 */
#ifndef TOOLS_SIM_WEBHOOKS_H
#define TOOLS_SIM_WEBHOOKS_H

#include "api.h"

struct sw_log;
struct sw_loop;
struct sw_sim_webhooks;

struct sw_sim_webhooks *sw_sim_webhooks_new(struct sw_loop *loop, const struct sw_log *log);
/* Calls under way end as unreachable. */
struct sw_sim_webhooks *sw_sim_webhooks_free(struct sw_sim_webhooks *webhooks);
struct sw_sim_admission_caller sw_sim_webhooks_caller(struct sw_sim_webhooks *webhooks);

#endif
