/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CustomResourceDefinitions to kinds. A kind owns its strings: they stand in a copy of the
 * definition that all kinds of it share, counted by jansson.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "document.h"
#include "kind.h"
#include "schema.h"

static const char *const *text_list(const json_t *array)
{
    size_t count = json_array_size(array);
    const char **list = sw_calloc(count + 1, sizeof(*list));
    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(array, i));
        list[i] = text ? text : "";
    }
    return list;
}

static int check_texts(const json_t *crd, struct sw_error *error)
{
    static const char *const needed[] = {"metadata.name", "spec.group", "spec.names.plural",
                                         "spec.names.kind"};
    for (size_t i = 0; i < SW_ARRAY_SIZE(needed); i++) {
        if (!*sw_sim_text_at(crd, needed[i])) {
            return sw_error_set(error, -EINVAL, "%s: Required value", needed[i]);
        }
    }
    json_t *wanted = json_sprintf("%s.%s", sw_sim_text_at(crd, "spec.names.plural"),
                                  sw_sim_text_at(crd, "spec.group"));
    int code = 0;
    if (strcmp(json_string_value(wanted), sw_sim_text_at(crd, "metadata.name")) != 0) {
        code = sw_error_set(error, -EINVAL,
                            "metadata.name: Invalid value: \"%s\": must be "
                            "spec.names.plural+\".\"+spec.group",
                            sw_sim_text_at(crd, "metadata.name"));
    }
    json_decref(wanted);
    if (code) {
        return code;
    }
    const char *scope = sw_sim_text_at(crd, "spec.scope");
    if (strcmp(scope, "Namespaced") != 0 && strcmp(scope, "Cluster") != 0) {
        return sw_error_set(error, -EINVAL,
                            "spec.scope: Unsupported value: \"%s\": supported values: "
                            "\"Cluster\", \"Namespaced\"",
                            scope);
    }
    return 0;
}

static int check_versions(const json_t *crd, struct sw_error *error)
{
    const json_t *versions = sw_sim_at(crd, "spec.versions");
    size_t stored = 0;
    for (size_t i = 0; i < json_array_size(versions); i++) {
        const json_t *version = json_array_get(versions, i);
        stored += sw_sim_bool_at(version, "storage");
        if (!*sw_sim_text_at(version, "name")) {
            return sw_error_set(error, -EINVAL, "spec.versions[%zu].name: Required value", i);
        }
        if (!sw_sim_at(version, "schema.openAPIV3Schema")) {
            return sw_error_set(error, -EINVAL,
                                "spec.versions[%zu].schema.openAPIV3Schema: Required value: "
                                "schemas are required",
                                i);
        }
    }
    if (stored != 1) {
        return sw_error_set(error, -EINVAL,
                            "spec.versions: Invalid value: must have exactly one version marked "
                            "as storage version");
    }
    return 0;
}

static void make_columns(const json_t *version, struct sw_sim_kind *kind)
{
    static const struct sw_sim_column age[] = {
        {.name = "Age", .type = "date", .format = "", .json_path = ".metadata.creationTimestamp"},
    };
    const json_t *given = json_object_get(version, "additionalPrinterColumns");
    size_t count = json_array_size(given);
    if (count == 0) {
        given = NULL;
    }
    kind->column_count = given ? count : 1;
    struct sw_sim_column *columns = sw_calloc(kind->column_count, sizeof(*columns));
    columns[0] = age[0];
    for (size_t i = 0; given && i < count; i++) {
        const json_t *one = json_array_get(given, i);
        columns[i] = (struct sw_sim_column){
            .name = sw_sim_text_at(one, "name"),
            .type = sw_sim_text_at(one, "type"),
            .format = sw_sim_text_at(one, "format"),
            .json_path = sw_sim_text_at(one, "jsonPath"),
            .priority = (int)sw_sim_int_at(one, "priority", 0),
        };
    }
    kind->columns = columns;
}

static int make_kind(const json_t *crd, size_t index, struct sw_sim_kind *ret_kind,
                     struct sw_error *error)
{
    const json_t *version = json_array_get(sw_sim_at(crd, "spec.versions"), index);
    struct sw_sim_schema *schema;
    int code = sw_sim_schema_new(sw_sim_at(version, "schema.openAPIV3Schema"), &schema, error);
    if (code) {
        sw_error_prefix(error, "spec.versions[%zu].schema", index);
        return code;
    }
    const json_t *names = sw_sim_at(crd, "spec.names");
    const json_t *scale = sw_sim_at(version, "subresources.scale");
    const char *spec_path = sw_sim_text_at(scale, "specReplicasPath");
    const char *status_path = sw_sim_text_at(scale, "statusReplicasPath");
    const char *singular = sw_sim_text_at(names, "singular");
    *ret_kind = (struct sw_sim_kind){
        .group = sw_sim_text_at(crd, "spec.group"),
        .version = sw_sim_text_at(version, "name"),
        .kind = sw_sim_text_at(names, "kind"),
        .plural = sw_sim_text_at(names, "plural"),
        .singular = singular,
        .short_names = text_list(json_object_get(names, "shortNames")),
        .categories = text_list(json_object_get(names, "categories")),
        .is_namespaced = strcmp(sw_sim_text_at(crd, "spec.scope"), "Namespaced") == 0,
        .has_status = sw_sim_at(version, "subresources.status") != NULL,
        .has_scale = scale != NULL,
        .has_generation = true,
        .schema = schema,
        .scale_spec_path = *spec_path ? spec_path : ".spec.replicas",
        .scale_status_path = *status_path ? status_path : ".status.replicas",
        .definition = json_incref((json_t *)(uintptr_t)crd),
    };
    make_columns(version, ret_kind);
    return 0;
}

int sw_sim_crd_kinds(const json_t *crd, struct sw_sim_kind **ret_kinds, size_t *ret_count,
                     struct sw_error *error)
{
    int code = check_texts(crd, error);
    code = code ? code : check_versions(crd, error);
    if (code) {
        return code;
    }
    json_t *definition = json_deep_copy(crd);
    const json_t *versions = sw_sim_at(definition, "spec.versions");
    struct sw_sim_kind *kinds = sw_calloc(json_array_size(versions), sizeof(*kinds));
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(versions) && !code; i++) {
        if (sw_sim_bool_at(json_array_get(versions, i), "served")) {
            code = make_kind(definition, i, &kinds[count], error);
            count += code == 0;
        }
    }
    json_decref(definition);
    if (code) {
        sw_sim_crd_kinds_free(kinds, count);
        return code;
    }
    *ret_kinds = kinds;
    *ret_count = count;
    return 0;
}

void sw_sim_crd_kinds_free(struct sw_sim_kind *kinds, size_t count)
{
    for (size_t i = 0; kinds && i < count; i++) {
        struct sw_sim_schema *schema = (struct sw_sim_schema *)(uintptr_t)kinds[i].schema;
        sw_sim_schema_free(schema);
        sw_free((void *)(uintptr_t)kinds[i].short_names);
        sw_free((void *)(uintptr_t)kinds[i].categories);
        sw_free((void *)(uintptr_t)kinds[i].columns);
        json_decref(kinds[i].definition);
    }
    sw_free(kinds);
}
