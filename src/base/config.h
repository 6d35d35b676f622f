/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configuration files: YAML checked against a libcyaml schema. An unknown key is an error. A
 * mistake is answered with file, line, path of the key and what was expected:
 *     /etc/slipway/slipway.yaml:12: webhook.port: expected an integer from 1 to 65535, got "https"
 */
#ifndef SW_BASE_CONFIG_H
#define SW_BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

struct cyaml_schema_value;
struct sw_error;

/* Reads and checks; at most 1 MiB, one document, no aliases, no tags. Integers and durations with
 * bounds and defaults: slipway/config.h. schema: a mapping with CYAML_FLAG_POINTER; *ret_value is
 * new and freed with sw_config_free. An empty file is a mapping without keys. -ENOENT where there
 * is no such file; SW_E_CONFIG with the message above otherwise. */
int sw_config_load(const char *path, const struct cyaml_schema_value *schema, void **ret_value,
                   struct sw_error *error);
/* The same from text; name stands for the file in messages. */
int sw_config_parse(const char *name, const char *text, size_t len,
                    const struct cyaml_schema_value *schema, void **ret_value,
                    struct sw_error *error);
/* For what no schema can say: puts "FILE:LINE: KEY: " in front of the error's text. key is a path
 * as in the message above; where it is not in the file (any more), the line is that of the
 * innermost mapping or list around it that is, or left out. The file is read again. */
void sw_config_blame(const char *path, const char *key, struct sw_error *error);
/* Whether two values that were loaded with the schema say the same; comments, order and what is
 * left out for its default make no difference. */
bool sw_config_is_same(const struct cyaml_schema_value *schema, const void *a, const void *b);
void *sw_config_free(const struct cyaml_schema_value *schema, void *value); /* returns NULL */

#endif
