/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the API server does with jansson values all the time, besides document.h: share a value that
 * is const, and make the copy of an object whose metadata may be changed while everything
 * else stays shared with the original.
 */
#ifndef TOOLS_SIM_VALUE_H
#define TOOLS_SIM_VALUE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "document.h"
#include "dump.h"

/* The same value with one reference more; NULL stays NULL. Who shares it does not change it. */
json_t *sw_sim_share(const json_t *value);
/* Texts of members; otherwise where it is missing or no string. */
const char *sw_sim_text(const json_t *object, const char *key, const char *otherwise);
/* Another value of the same members: what it holds is shared. */
json_t *sw_sim_shallow(const json_t *object);
/* As shallow, and metadata is its own as well (made where it is missing). */
json_t *sw_sim_own(const json_t *object);
/* The same of a reference that is given away; the value itself where nobody else holds it. */
json_t *sw_sim_own_take(json_t *object);
/* Makes the member an object of its own that may be changed. */
json_t *sw_sim_own_member(json_t *object, const char *key);
/* Sets the member, or removes it where value is NULL (the reference is taken). */
void sw_sim_put(json_t *object, const char *key, json_t *value);
void sw_sim_put_text(json_t *object, const char *key, const char *text);
/* Whether an array of strings holds the text. */
bool sw_sim_holds(const json_t *array, const char *text);
/* A new array without that string. */
json_t *sw_sim_without_text(const json_t *array, const char *text);

#endif
