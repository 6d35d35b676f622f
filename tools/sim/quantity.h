/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Amounts of resources: "1500m" is written as "1500m", "1000m" as "1", 0.5 as "500m", "1024Mi" as
 * "1Gi". https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
 */
#ifndef TOOLS_SIM_QUANTITY_H
#define TOOLS_SIM_QUANTITY_H

#include <jansson.h>

/* The one way to write it, as a new string; NULL: it is none, or over 2^63 thousandths. */
json_t *sw_sim_quantity_write(const json_t *value);

#endif
