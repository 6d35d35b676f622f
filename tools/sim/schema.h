/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structural schemas (apiextensions.k8s.io/v1, openAPIV3Schema), with every keyword that a
 * CustomResourceDefinition may use but $ref and its kin. As in the real server of v1.20, of the
 * formats only date-time is looked at (int32 and int64 are not), and the path to an element of a
 * list does not say which. Other formats of texts, uniqueItems, externalDocs, title and example are
 * taken and mean nothing.
 * https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
 */
#ifndef TOOLS_SIM_SCHEMA_H
#define TOOLS_SIM_SCHEMA_H

#include <jansson.h>

struct sw_error;
struct sw_sim_schema;

/* -EINVAL: a keyword that is not known here, or makes no sense; *error has its path. */
int sw_sim_schema_new(const json_t *openapi, struct sw_sim_schema **ret_schema,
                      struct sw_error *error);
struct sw_sim_schema *sw_sim_schema_free(struct sw_sim_schema *schema);

/* Drops what the schema does not name (metadata of the root is left alone). */
void sw_sim_schema_prune(const struct sw_sim_schema *schema, json_t *object);
/* Fills in defaults, from the outside in; null where nullable is false counts as absent. */
void sw_sim_schema_default(const struct sw_sim_schema *schema, json_t *object);
/* Appends causes {"field": "spec.maxActive", "reason": "FieldValueInvalid", "message": ...}. */
void sw_sim_schema_validate(const struct sw_sim_schema *schema, const json_t *object,
                            json_t *causes);

/* How apply treats a list: "atomic", "set" or "map"; *ret_keys are the keys of "map" (borrowed
 * JSON array of strings). path: a JSON array of member names, "[]" for an element. */
const char *sw_sim_schema_list_type(const struct sw_sim_schema *schema, const json_t *path,
                                    const json_t **ret_keys);

#endif
