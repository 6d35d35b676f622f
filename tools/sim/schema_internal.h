/* SPDX-License-Identifier: Apache-2.0 */
/* What schema.c, schema_validate.c and apply share of a schema. */
#ifndef TOOLS_SIM_SCHEMA_INTERNAL_H
#define TOOLS_SIM_SCHEMA_INTERNAL_H

#include <jansson.h>

struct sw_sim_schema {
    json_t *openapi; /* checked */
};

/* The part of the schema for that member: an object, true, false, or NULL where there is none. */
const json_t *sw_sim_schema_of_member(const json_t *schema, const char *name);

#endif
