/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where one stands in the shape of a kind while walking through an object: in the tables of a
 * built-in kind (types.h), in the schema of a custom resource, or where nothing is known (then maps
 * are merged and lists are one value).
 */
#ifndef TOOLS_SIM_CURSOR_H
#define TOOLS_SIM_CURSOR_H

#include <jansson.h>
#include <stdbool.h>

struct sw_error;
struct sw_sim_field;
struct sw_sim_kind;

struct sw_sim_cursor {
    const struct sw_sim_field *fields; /* of the struct here; NULL: not one of a built-in kind */
    const struct sw_sim_field *field;  /* what led here; NULL at the root and in elements */
    const json_t *openapi;             /* of a custom resource */
    bool is_root;
    bool is_opaque; /* a member that its schema lets in without a name: one value */
    bool is_known;  /* false: nothing is known from here on */
};

struct sw_sim_cursor sw_sim_cursor_root(const struct sw_sim_kind *kind);
struct sw_sim_cursor sw_sim_cursor_member(const struct sw_sim_cursor *at, const char *name);
struct sw_sim_cursor sw_sim_cursor_element(const struct sw_sim_cursor *at);

/* An object that is one value, whatever is in it. */
bool sw_sim_cursor_is_atomic(const struct sw_sim_cursor *at);
/* The name is a field here, and not a key of a map. */
bool sw_sim_cursor_has_field(const struct sw_sim_cursor *at, const char *name);
/* The name may stand here at all. */
bool sw_sim_cursor_allows(const struct sw_sim_cursor *at, const char *name);

enum sw_sim_list { SW_SIM_LIST_ATOMIC, SW_SIM_LIST_SET, SW_SIM_LIST_MAP };
enum sw_sim_list sw_sim_cursor_list(const struct sw_sim_cursor *at);

/* How managedFields names the element: k:{"name":"a"} or v:"a", new text (free with sw_free).
 * -EINVAL: it lacks a key. */
int sw_sim_cursor_element_name(const struct sw_sim_cursor *at, const json_t *element,
                               char **ret_name, struct sw_error *error);

#endif
