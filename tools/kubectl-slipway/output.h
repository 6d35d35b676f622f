/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts for programs: JSON that a person can read, or YAML.
 */
#ifndef KS_OUTPUT_H
#define KS_OUTPUT_H

struct sw_buf;
struct sw_json;

/* Indented by two spaces, and a newline at the end. */
void ks_put_json(const struct sw_json *value, struct sw_buf *out);
/* Block style, as kubectl writes it; a string that YAML would take for something else is quoted. */
void ks_put_yaml(const struct sw_json *value, struct sw_buf *out);
/* format: "json" or "yaml". */
void ks_put(const char *format, const struct sw_json *value, struct sw_buf *out);

#endif
