/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds that the simulated API server serves: the built-in ones, and those that
 * CustomResourceDefinitions add. A kind is data plus, for the built-in ones, a few functions that
 * do what the real server's strategy of that kind does.
 */
#ifndef TOOLS_SIM_KIND_H
#define TOOLS_SIM_KIND_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct sw_error;
struct sw_sim_field;
struct sw_sim_schema;

/* A column of kubectl's table (additionalPrinterColumns of a CRD, or the built-in kind's own). */
struct sw_sim_column {
    const char *name;
    const char *type;      /* "string", "integer", "date", ... */
    const char *format;    /* "" or "name" */
    const char *json_path; /* ".status.pending"; NULL: the kind's row function makes it */
    int priority;          /* above 0: only with -o wide */
};

struct sw_sim_kind {
    const char *group; /* "" is the core group */
    const char *version;
    const char *kind;
    const char *plural;
    const char *singular;
    const char *const *short_names; /* NULL ends it; may be NULL */
    const char *const *categories;  /* the same */
    bool is_namespaced;
    bool has_status;
    bool has_scale;
    /* metadata.generation rises when anything but metadata and status changes (Deployments, custom
     * resources with a status subresource, ...). */
    bool has_generation;
    bool is_virtual; /* reviews and the like: create answers, nothing is stored */

    /* Each may be NULL. Fills in what the server defaults (Deployment: replicas 1, strategy, ...).
     */
    void (*set_defaults)(json_t *object);
    /* What must hold beyond the common metadata rules; causes are appended as
     * {"field", "reason", "message"}. old is NULL on create. */
    void (*validate)(const json_t *object, const json_t *old, json_t *causes);
    /* Cells of a table row, one for each column with json_path NULL, in their order. */
    json_t *(*make_row)(const json_t *object, int64_t wall_us);

    const struct sw_sim_column *columns; /* after Name; Age is among them where it is shown */
    size_t column_count;
    bool hides_name; /* no Name in front of the columns: events have theirs at the end */
    const struct sw_sim_field *fields;  /* of a built-in kind (types.h); NULL: none */
    const struct sw_sim_schema *schema; /* of a custom resource; NULL: none */
    /* Of the scale subresource of a custom resource; ".spec.replicas" by default. */
    const char *scale_spec_path, *scale_status_path;
    json_t *definition; /* the CustomResourceDefinition that all its texts stand in; else NULL */
};

/* What reading the object into the types of a built-in kind does, before set_defaults: drops what
 * is not known, null and empty; writes what is always written. -EINVAL: a value of the wrong type
 * (400 in the real server), *error says where. Nothing happens to custom resources. */
int sw_sim_decode(const struct sw_sim_kind *kind, json_t *object, struct sw_error *error);

/* The built-in ones; *ret_count says how many. */
const struct sw_sim_kind *sw_sim_builtin_kinds(size_t *ret_count);

/* From a CustomResourceDefinition (apiextensions.k8s.io/v1), one for each served version, appended
 * to ret_kinds (a new array that the caller frees with sw_sim_crd_kinds_free). -EINVAL: *error has
 * the path and what is wrong with it. */
int sw_sim_crd_kinds(const json_t *crd, struct sw_sim_kind **ret_kinds, size_t *ret_count,
                     struct sw_error *error);
void sw_sim_crd_kinds_free(struct sw_sim_kind *kinds, size_t count);

#endif
