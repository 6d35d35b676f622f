/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A YAML tree against a schema: finds the first mistake and says it in a way that can be acted on,
 * and stores the members that are ours and not libcyaml's (slipway/config.h).
 */
#ifndef SW_BASE_CONFIG_CHECK_H
#define SW_BASE_CONFIG_CHECK_H

struct cyaml_schema_value;
struct sw_arena;
struct sw_config_value;
struct sw_error;
struct sw_yaml;

/* The member if it is ours (slipway/config.h), or NULL where it is libcyaml's or one to ignore. */
const struct sw_config_value *sw_config_own_value(const struct cyaml_schema_value *schema);
/* root NULL: a mapping without keys. SW_E_CONFIG with the message. */
int sw_config_check(struct sw_arena *arena, const char *name,
                    const struct cyaml_schema_value *schema, const struct sw_yaml *root,
                    struct sw_error *error);
/* Stores our members, or their defaults, in what libcyaml has loaded. root has been checked. */
void sw_config_fill(const struct cyaml_schema_value *schema, void *value,
                    const struct sw_yaml *root);

#endif
