/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of the built-in kinds' tables, for kinds.c alone; cells come from rows_*.c. */
#ifndef TOOLS_SIM_COLUMNS_H
#define TOOLS_SIM_COLUMNS_H

#include "kind.h"

#define TEXT_COLUMN(name)           \
    {                               \
        name, "string", "", NULL, 0 \
    }
#define COUNT_COLUMN(name)           \
    {                                \
        name, "integer", "", NULL, 0 \
    }
#define WIDE_COLUMN(name)           \
    {                               \
        name, "string", "", NULL, 1 \
    }

static const struct sw_sim_column columns_deployment[] = {
    TEXT_COLUMN("Ready"),    TEXT_COLUMN("Up-to-date"), TEXT_COLUMN("Available"),
    TEXT_COLUMN("Age"),      WIDE_COLUMN("Containers"), WIDE_COLUMN("Images"),
    WIDE_COLUMN("Selector"),
};
static const struct sw_sim_column columns_replicaset[] = {
    COUNT_COLUMN("Desired"),   COUNT_COLUMN("Current"), COUNT_COLUMN("Ready"),   TEXT_COLUMN("Age"),
    WIDE_COLUMN("Containers"), WIDE_COLUMN("Images"),   WIDE_COLUMN("Selector"),
};
static const struct sw_sim_column columns_statefulset[] = {
    TEXT_COLUMN("Ready"),
    TEXT_COLUMN("Age"),
    WIDE_COLUMN("Containers"),
    WIDE_COLUMN("Images"),
};
static const struct sw_sim_column columns_daemonset[] = {
    COUNT_COLUMN("Desired"),    COUNT_COLUMN("Current"),   COUNT_COLUMN("Ready"),
    COUNT_COLUMN("Up-to-date"), COUNT_COLUMN("Available"), TEXT_COLUMN("Node Selector"),
    TEXT_COLUMN("Age"),         WIDE_COLUMN("Containers"), WIDE_COLUMN("Images"),
    WIDE_COLUMN("Selector"),
};
static const struct sw_sim_column columns_revision[] = {
    TEXT_COLUMN("Controller"),
    TEXT_COLUMN("Revision"),
    TEXT_COLUMN("Age"),
};
static const struct sw_sim_column columns_lease[] = {TEXT_COLUMN("Holder"), TEXT_COLUMN("Age")};
static const struct sw_sim_column columns_budget[] = {
    TEXT_COLUMN("Min Available"),
    TEXT_COLUMN("Max Unavailable"),
    COUNT_COLUMN("Allowed Disruptions"),
    TEXT_COLUMN("Age"),
};
static const struct sw_sim_column columns_webhooks[] = {COUNT_COLUMN("Webhooks"),
                                                        TEXT_COLUMN("Age")};
static const struct sw_sim_column columns_pod[] = {
    TEXT_COLUMN("Ready"),
    TEXT_COLUMN("Status"),
    COUNT_COLUMN("Restarts"),
    TEXT_COLUMN("Age"),
    WIDE_COLUMN("IP"),
    WIDE_COLUMN("Node"),
    WIDE_COLUMN("Nominated Node"),
    WIDE_COLUMN("Readiness Gates"),
};
static const struct sw_sim_column columns_node[] = {
    TEXT_COLUMN("Status"),   TEXT_COLUMN("Roles"),          TEXT_COLUMN("Age"),
    TEXT_COLUMN("Version"),  WIDE_COLUMN("Internal-IP"),    WIDE_COLUMN("External-IP"),
    WIDE_COLUMN("OS-Image"), WIDE_COLUMN("Kernel-Version"), WIDE_COLUMN("Container-Runtime"),
};
static const struct sw_sim_column columns_namespace[] = {TEXT_COLUMN("Status"), TEXT_COLUMN("Age")};
static const struct sw_sim_column columns_event[] = {
    TEXT_COLUMN("Last Seen"), TEXT_COLUMN("Type"),
    TEXT_COLUMN("Reason"),    TEXT_COLUMN("Object"),
    WIDE_COLUMN("Subobject"), WIDE_COLUMN("Source"),
    TEXT_COLUMN("Message"),   WIDE_COLUMN("First Seen"),
    WIDE_COLUMN("Count"),     {"Name", "string", "name", NULL, 1},
};
static const struct sw_sim_column columns_service[] = {
    TEXT_COLUMN("Type"),    TEXT_COLUMN("Cluster-IP"), TEXT_COLUMN("External-IP"),
    TEXT_COLUMN("Port(s)"), TEXT_COLUMN("Age"),        WIDE_COLUMN("Selector"),
};
static const struct sw_sim_column columns_endpoints[] = {TEXT_COLUMN("Endpoints"),
                                                         TEXT_COLUMN("Age")};
static const struct sw_sim_column columns_configmap[] = {TEXT_COLUMN("Data"), TEXT_COLUMN("Age")};
static const struct sw_sim_column columns_secret[] = {TEXT_COLUMN("Type"), TEXT_COLUMN("Data"),
                                                      TEXT_COLUMN("Age")};
static const struct sw_sim_column columns_serviceaccount[] = {TEXT_COLUMN("Secrets"),
                                                              TEXT_COLUMN("Age")};
/* Of kinds without a table of their own. */
static const struct sw_sim_column columns_plain[] = {
    {"Created At", "date", "", ".metadata.creationTimestamp", 0},
};

#endif
