/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading and changing Kubernetes objects as jansson documents, for the controllers and kubelets of
 * the simulation. A stored document never changes: a change makes a shallow copy of what lies on
 * the way to the changed member (sw_look_copy, sw_look_own) and shares the rest.
 */
#ifndef TOOLS_SIM_LOOK_H
#define TOOLS_SIM_LOOK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sw_sim_object;

/* ---- reading; what is not there, or of another type, is NULL, "", or the given default ---- */

const json_t *sw_look_at(const json_t *json, ...) __attribute__((sentinel)); /* keys of objects */
const char *sw_look_string(const json_t *object, const char *key);
int64_t sw_look_int(const json_t *object, const char *key, int64_t otherwise);
bool sw_look_bool(const json_t *object, const char *key, bool otherwise);
/* The element of an array of objects whose member key is that string. */
const json_t *sw_look_element(const json_t *array, const char *key, const char *value);

const json_t *sw_look_meta(const struct sw_sim_object *object);
bool sw_look_is_deleted(const struct sw_sim_object *object); /* has a deletionTimestamp */
int64_t sw_look_generation(const struct sw_sim_object *object);
int64_t sw_look_created_us(const struct sw_sim_object *object);
/* The owner reference that says controller: true. */
const json_t *sw_look_controller_of(const json_t *json);
/* Microseconds since 1970; 0 where there is no time. */
int64_t sw_look_time_us(const json_t *object, const char *key);
/* An int, or a percentage of total, as of maxSurge. */
int64_t sw_look_scaled(const json_t *value, int64_t total, bool rounds_up, int64_t otherwise);

/* metav1.LabelSelector; an absent or empty one selects nothing, since no workload may have it. */
bool sw_look_selects(const json_t *selector, const json_t *labels);
/* Of Pod templates, pod-template-hash apart. */
bool sw_look_same_template(const json_t *a, const json_t *b);

/* ---- changing ---- */

/* For jansson's calls and macros that take no const although they change nothing. */
static inline json_t *sw_look_loose(const json_t *json)
{
    return (json_t *)(uintptr_t)json;
}

json_t *sw_look_share(const json_t *json); /* one more reference */
json_t *sw_look_copy(const json_t *json);  /* shallow */
/* Makes the member a copy of its own (or a new object) and returns it, borrowed. */
json_t *sw_look_own(json_t *object, const char *key);
/* Sets the number, or removes it where it is 0 (Go's omitempty). */
void sw_look_set_count(json_t *object, const char *key, int64_t count);
/* The object's document with that status. Takes it. */
json_t *sw_look_with_status(const struct sw_sim_object *object, json_t *status_take);

json_t *sw_look_time(int64_t wall_us);
json_t *sw_look_controller_reference(const struct sw_sim_object *owner);

/* A name's ending, from the document and the number of collisions so far: the letters that
 * Kubernetes uses, not its very hash. */
enum { SW_LOOK_HASH_SIZE = 12 };
void sw_look_hash(const json_t *json, int64_t collisions, char text[SW_LOOK_HASH_SIZE]);

#endif
