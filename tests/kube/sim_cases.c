/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does to documents what the simulated API server does, for test_sim_documents.py, which compares
 * with the real one. A line of stdin is a case:
 *     {"group": "apps", "kind": "Deployment", "given": {...}, "patch": ..., "how": "strategic"}
 * and a line of stdout its answer: {"object": {...}} or {"error": "..."}. how: "merge", "json",
 * "strategic", "apply" (with "manager", "force"), or absent: given alone, with its defaults. given
 * may be absent with "apply"; or "table", which answers {"columns": [...], "cells": [...]}. A
 * CustomResourceDefinition in "crd" makes the kind. "tracked": true: managedFields are kept, given
 * was written by "creator".
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "document.h"
#include "event_form.h"
#include "kind.h"
#include "patch.h"
#include "schema.h"

static const struct sw_sim_kind *find_kind(const char *group, const char *name)
{
    size_t count;
    const struct sw_sim_kind *kinds = sw_sim_builtin_kinds(&count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(kinds[i].group, group) == 0 && strcmp(kinds[i].kind, name) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}

static void put_causes(const json_t *causes, struct sw_error *error)
{
    json_t *texts = json_array();
    for (size_t i = 0; i < json_array_size(causes); i++) {
        const json_t *cause = json_array_get(causes, i);
        json_array_append_new(texts, json_sprintf("%s: %s", sw_sim_text_at(cause, "field"),
                                                  sw_sim_text_at(cause, "message")));
    }
    char *text = json_dumps(texts, JSON_COMPACT);
    sw_error_set(error, -1, "causes %s", text);
    free(text);
    json_decref(texts);
}

/* What the API server does with every object that comes in. */
static bool settle(const struct sw_sim_kind *kind, json_t *object, const json_t *old,
                   struct sw_error *error)
{
    if (sw_sim_decode(kind, object, error)) {
        return false;
    }
    if (kind->set_defaults) {
        kind->set_defaults(object);
    }
    json_t *causes = json_array();
    if (kind->schema) {
        sw_sim_schema_prune(kind->schema, object);
        sw_sim_schema_default(kind->schema, object);
        sw_sim_schema_validate(kind->schema, object, causes);
    }
    if (kind->validate) {
        kind->validate(object, old, causes);
    }
    bool is_valid = json_array_size(causes) == 0;
    if (!is_valid) {
        put_causes(causes, error);
    }
    json_decref(causes);
    return is_valid;
}

static json_t *patch(const json_t *test, const struct sw_sim_kind *kind, const json_t *before,
                     struct sw_error *error)
{
    const char *how = sw_sim_text_at(test, "how");
    const json_t *with = json_object_get(test, "patch");
    if (strcmp(how, "merge") == 0) {
        return sw_sim_merge_patch(before, with);
    }
    if (strcmp(how, "json") == 0) {
        return sw_sim_json_patch(before, with, error);
    }
    if (strcmp(how, "strategic") == 0) {
        return sw_sim_strategic_patch(before, with, error);
    }
    const struct sw_sim_apply apply = {
        .kind = kind,
        .manager = sw_sim_text_at(test, "manager"),
        .subresource = "",
        .is_forced = sw_sim_bool_at(test, "force"),
    };
    return sw_sim_apply_patch(before, with, &apply, error);
}

static void track(const json_t *test, const struct sw_sim_kind *kind, const json_t *before,
                  json_t *after, const char *manager)
{
    const struct sw_sim_apply by = {.kind = kind, .manager = manager, .subresource = ""};
    if (sw_sim_bool_at(test, "tracked")) {
        sw_sim_track_fields(before, after, &by);
    }
}

/* New; NULL: *error says why. */
static json_t *run(const json_t *test, const struct sw_sim_kind *kind, struct sw_error *error)
{
    json_t *before = json_deep_copy(sw_sim_at(test, "given"));
    const char *how = sw_sim_text_at(test, "how");
    if (before) {
        if (!settle(kind, before, NULL, error)) {
            json_decref(before);
            return NULL;
        }
        track(test, kind, NULL, before, "creator");
    }
    if (!*how) {
        return before;
    }
    if (strcmp(how, "event") == 0) { /* stored in the form of the core group, shown in another's */
        json_t *stored = sw_sim_event_as(before, find_kind("", "Event"));
        json_t *shown = sw_sim_event_as(stored, find_kind(sw_sim_text_at(test, "as"), "Event"));
        json_decref(stored);
        json_decref(before);
        return shown;
    }
    json_t *after = patch(test, kind, before, error);
    if (after && !settle(kind, after, before, error)) {
        json_decref(after);
        after = NULL;
    }
    if (after && strcmp(how, "apply") != 0) {
        track(test, kind, before, after, sw_sim_text_at(test, "manager"));
    }
    json_decref(before);
    return after;
}

/* As the API server would answer, without the ages' meaning: the time is 0. */
static json_t *make_table(const struct sw_sim_kind *kind, const json_t *object)
{
    json_t *columns = json_array();
    if (!kind->hides_name) {
        json_array_append_new(columns, json_pack("[s, s, s, i]", "Name", "string", "name", 0));
    }
    for (size_t i = 0; i < kind->column_count; i++) {
        const struct sw_sim_column *one = &kind->columns[i];
        json_array_append_new(
            columns, json_pack("[s, s, s, i]", one->name, one->type, one->format, one->priority));
    }
    json_t *cells = kind->make_row ? kind->make_row(object, 0) : json_array();
    if (!kind->hides_name) {
        json_array_insert(cells, 0, sw_sim_at(object, "metadata.name"));
    }
    return json_pack("{s:o, s:o}", "columns", columns, "cells", cells);
}

static json_t *answer(const json_t *test)
{
    struct sw_error error = {0};
    struct sw_sim_kind *made = NULL;
    size_t count = 0;
    const struct sw_sim_kind *kind = NULL;
    const json_t *crd = sw_sim_at(test, "crd");
    if (crd && sw_sim_crd_kinds(crd, &made, &count, &error) == 0) {
        kind = made;
    } else if (!crd) {
        kind = find_kind(sw_sim_text_at(test, "group"), sw_sim_text_at(test, "kind"));
    }
    if (kind && strcmp(sw_sim_text_at(test, "how"), "table") == 0) {
        return make_table(kind, sw_sim_at(test, "given"));
    }
    json_t *object = kind ? run(test, kind, &error) : NULL;
    sw_sim_crd_kinds_free(made, count);
    if (object) {
        return json_pack("{s:o}", "object", object);
    }
    return json_pack("{s:s}", "error", *error.text ? error.text : "no such kind");
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t len;
    while ((len = getline(&line, &room, stdin)) > 0) {
        json_error_t why;
        json_t *test = json_loadb(line, (size_t)len, 0, &why);
        if (!test) {
            fprintf(stderr, "sim_cases: %s\n", why.text);
            free(line);
            return 1;
        }
        json_t *made = answer(test);
        char *text = json_dumps(made, JSON_COMPACT);
        puts(text);
        free(text);
        json_decref(made);
        json_decref(test);
    }
    free(line);
    return 0;
}
