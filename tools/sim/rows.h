/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables that kubectl shows: columns behind Name (columns.h has them as data) and the functions
 * that make their cells. Shared by the table of kinds and the files of the rows.
 */
#ifndef TOOLS_SIM_ROWS_H
#define TOOLS_SIM_ROWS_H

#include <jansson.h>
#include <stdint.h>

/* "5s", "2m30s", "3h", "12d": how kubectl writes the time since then. New. */
json_t *sw_sim_cell_since(const char *then, int64_t wall_us);
json_t *sw_sim_cell_age(const json_t *object, int64_t wall_us);
/* The texts of that name in each of the list, with commas between. */
json_t *sw_sim_cell_names(const json_t *list, const char *name);
/* a=b,c in (d,e); "<none>". */
json_t *sw_sim_cell_selector(const json_t *selector);
json_t *sw_sim_cell_labels(const json_t *labels);
/* What stands there, or what is shown where nothing does. */
json_t *sw_sim_cell_text(const json_t *object, const char *path, const char *absent);

/* rows_apps.c */
json_t *sw_sim_row_deployment(const json_t *object, int64_t wall_us);
json_t *sw_sim_row_replicaset(const json_t *object, int64_t wall_us);
json_t *sw_sim_row_statefulset(const json_t *object, int64_t wall_us);
json_t *sw_sim_row_daemonset(const json_t *object, int64_t wall_us);
json_t *sw_sim_row_revision(const json_t *object, int64_t wall_us);
json_t *sw_sim_row_lease(const json_t *object, int64_t wall_us);
json_t *sw_sim_row_budget(const json_t *object, int64_t wall_us);
json_t *sw_sim_row_webhooks(const json_t *object, int64_t wall_us);

/* rows_core.c */
json_t *sw_sim_row_pod(const json_t *object, int64_t wall_us);
json_t *sw_sim_row_node(const json_t *object, int64_t wall_us);
json_t *sw_sim_row_namespace(const json_t *object, int64_t wall_us);
json_t *sw_sim_row_event(const json_t *object, int64_t wall_us);
json_t *sw_sim_row_service(const json_t *object, int64_t wall_us);
json_t *sw_sim_row_endpoints(const json_t *object, int64_t wall_us);
json_t *sw_sim_row_configmap(const json_t *object, int64_t wall_us);
json_t *sw_sim_row_secret(const json_t *object, int64_t wall_us);
json_t *sw_sim_row_serviceaccount(const json_t *object, int64_t wall_us);

#endif
