/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metav1.Table, which kubectl get shows, and PartialObjectMetadata. Columns are the kind's; a cell
 * is read by its path, or made by the kind's row function.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api_internal.h"
#include "base/util.h"
#include "rows.h"
#include "value.h"

static const struct sw_sim_column age = {
    .name = "Age", .type = "date", .format = "", .json_path = ".metadata.creationTimestamp"};

static json_t *column(const struct sw_sim_column *from)
{
    return json_pack("{s:s,s:s,s:s,s:s,s:i}", "name", from->name, "type",
                     from->type ? from->type : "string", "format", from->format ? from->format : "",
                     "description", "", "priority", from->priority);
}

json_t *sw_sim_table_columns(const struct sw_sim_kind *kind)
{
    const struct sw_sim_column name = {.name = "Name", .type = "string", .format = "name"};
    json_t *columns = json_array();
    if (!kind->hides_name) {
        json_array_append_new(columns, column(&name));
    }
    for (size_t i = 0; i < kind->column_count; i++) {
        json_array_append_new(columns, column(&kind->columns[i]));
    }
    if (kind->column_count == 0) {
        json_array_append_new(columns, column(&age));
    }
    return columns;
}

/* Paths like ".status.pending", and ".status.conditions[?(@.type==\"Ready\")].status". */
static const json_t *by_path(const json_t *object, const char *path)
{
    const json_t *at = object;
    while (at && *path) {
        if (*path == '.') {
            path++;
            size_t len = strcspn(path, ".[");
            at = json_object_getn(at, path, len);
            path += len;
        } else if (strncmp(path, "[?(@.", 5) == 0) {
            path += 5;
            size_t key_len = strcspn(path, "=");
            SW_AUTO(char, sw_free) key = sw_strndup(path, key_len);
            path += key_len;
            path += strspn(path, "=");
            char quote[2] = {*path, 0};
            path += *path != 0;
            size_t len = strcspn(path, quote);
            SW_AUTO(char, sw_free) want = sw_strndup(path, len);
            const json_t *found = NULL;
            for (size_t i = 0; !found && i < json_array_size(at); i++) {
                const json_t *element = json_array_get(at, i);
                found = strcmp(sw_sim_text(element, key, ""), want) == 0 ? element : NULL;
            }
            at = found;
            path += len;
            path += strcspn(path, "]");
            path += *path == ']';
        } else if (*path == '[') {
            size_t number = strtoul(path + 1, NULL, 10);
            at = json_array_get(at, number);
            path += strcspn(path, "]");
            path += *path == ']';
        } else {
            return NULL;
        }
    }
    return at;
}

static json_t *cell(const struct sw_sim_column *from, const json_t *object, int64_t wall_us)
{
    const json_t *value = by_path(object, from->json_path);
    if (from->type && strcmp(from->type, "date") == 0) {
        return sw_sim_cell_since(json_string_value(value), wall_us);
    }
    if (!value) {
        return json_null();
    }
    if (from->type && strcmp(from->type, "string") == 0 && !json_is_string(value)) {
        SW_AUTO(char, sw_free) text = sw_sim_dump_text(value, NULL);
        return json_string(text);
    }
    return sw_sim_share(value);
}

json_t *sw_sim_partial(const json_t *object)
{
    return json_pack("{s:s,s:s,s:O}", "kind", "PartialObjectMetadata", "apiVersion",
                     "meta.k8s.io/v1", "metadata", json_object_get(object, "metadata"));
}

json_t *sw_sim_table_row(const struct sw_sim_kind *kind, const json_t *object, const char *include,
                         int64_t wall_us)
{
    json_t *cells = json_array();
    if (!kind->hides_name) {
        json_array_append_new(cells, json_string(sw_sim_text_at(object, "metadata.name")));
    }
    json_t *made = kind->make_row ? kind->make_row(object, wall_us) : NULL;
    size_t used = 0;
    for (size_t i = 0; i < kind->column_count; i++) {
        if (kind->columns[i].json_path) {
            json_array_append_new(cells, cell(&kind->columns[i], object, wall_us));
        } else {
            json_t *value = json_array_get(made, used++);
            json_array_append_new(cells, value ? json_incref(value) : json_null());
        }
    }
    if (kind->column_count == 0) {
        json_array_append_new(cells, cell(&age, object, wall_us));
    }
    json_decref(made);
    json_t *row = json_pack("{s:o}", "cells", cells);
    if (strcmp(include, "Object") == 0) {
        json_object_set_new(row, "object", sw_sim_share(object));
    } else if (strcmp(include, "None") == 0) {
        json_object_set_new(row, "object", json_null());
    } else {
        json_object_set_new(row, "object", sw_sim_partial(object));
    }
    return row;
}
