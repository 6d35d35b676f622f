/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small steps over JSON documents that the parts of tools/sim share: reach into one, fill in what
 * is absent, name what is wrong. null counts as absent, as it does where the real server decodes.
 */
#ifndef TOOLS_SIM_DOCUMENT_H
#define TOOLS_SIM_DOCUMENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include <slipway/attr.h>

/* What stands at "spec.template.metadata" (borrowed); NULL where a step is absent or null. Names
 * with dots in them cannot be reached this way. */
json_t *sw_sim_at(const json_t *object, const char *path);
/* The string there; "" where there is none. */
const char *sw_sim_text_at(const json_t *object, const char *path);
/* The integer there, or what absent says. */
int64_t sw_sim_int_at(const json_t *object, const char *path, int64_t absent);
bool sw_sim_bool_at(const json_t *object, const char *path);

/* The object under that name, made where it is absent; NULL where something else stands there. */
json_t *sw_sim_need_object(json_t *object, const char *name);
/* Absent, null or, for a text, "". */
bool sw_sim_is_unset(const json_t *object, const char *name);
void sw_sim_default_text(json_t *object, const char *name, const char *text);
void sw_sim_default_int(json_t *object, const char *name, int64_t value);
void sw_sim_default_bool(json_t *object, const char *name, bool value);

/* A number without a fraction may be written as a real ("1.0"), and stays the same number. */
bool sw_sim_is_same(const json_t *a, const json_t *b);

/* Appends {"field", "reason", "message"}. Each reason has its own wording in the real server. */
SW_PRINTF(4, 5)
void sw_sim_cause(json_t *causes, const char *field, const char *reason, const char *format, ...);
void sw_sim_cause_required(json_t *causes, const char *field, const char *detail);
/* Value is what was found there, quoted if it is text. */
void sw_sim_cause_invalid(json_t *causes, const char *field, const json_t *value,
                          const char *detail);
void sw_sim_cause_unsupported(json_t *causes, const char *field, const json_t *value,
                              const char *const *known);

#endif
