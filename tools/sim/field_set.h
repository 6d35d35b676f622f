/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of paths into an object, as metadata.managedFields writes them (fieldsV1): a tree of names
 * f:NAME, k:{KEYS} and v:VALUE. Within this program a path that is in the set has a "." below it,
 * always; written, that is left out of the ends of the tree.
 * https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management
 */
#ifndef TOOLS_SIM_FIELD_SET_H
#define TOOLS_SIM_FIELD_SET_H

#include <jansson.h>
#include <stdbool.h>

struct sw_error;
struct sw_sim_cursor;

/* All of these return new objects. */
json_t *sw_sim_set_read(const json_t *fields_v1);
json_t *sw_sim_set_write(const json_t *set);
json_t *sw_sim_set_union(const json_t *a, const json_t *b);
json_t *sw_sim_set_difference(const json_t *a, const json_t *b);
json_t *sw_sim_set_intersection(const json_t *a, const json_t *b);
static inline bool sw_sim_set_is_empty(const json_t *set)
{
    return json_object_size(set) == 0;
}
/* Appends one text for each path: .spec.containers[name="a"].image */
void sw_sim_set_paths(const json_t *set, json_t *ret_texts);

/* What an object that is applied names. */
int sw_sim_set_of(const struct sw_sim_cursor *at, const json_t *object, json_t **ret_set,
                  struct sw_error *error);
struct sw_sim_comparison {
    json_t *added, *modified, *removed;
};
int sw_sim_compare(const struct sw_sim_cursor *at, const json_t *before, const json_t *after,
                   struct sw_sim_comparison *ret_comparison, struct sw_error *error);
void sw_sim_comparison_done(struct sw_sim_comparison *comparison);
/* Object with what is applied laid over it. */
int sw_sim_lay_over(const struct sw_sim_cursor *at, const json_t *object, const json_t *applied,
                    json_t **ret_object, struct sw_error *error);
/* Without the items and members that the set names. */
json_t *sw_sim_without(const struct sw_sim_cursor *at, const json_t *object, const json_t *set);

#endif
