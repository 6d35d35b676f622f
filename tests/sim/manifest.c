/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A manifest of the repository as JSON: the CRD and the webhook configuration are those that ship.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slipway/arena.h>
#include <slipway/memory.h>

#include "base/error.h"
#include "base/util.h"
#include "base/yaml.h"
#include "world.h"

static json_t *scalar(const struct sw_yaml *node)
{
    char *end;

    if (!node->is_plain)
        return json_string(node->text);
    if (sw_yaml_is_null(node))
        return json_null();
    if (strcmp(node->text, "true") == 0 || strcmp(node->text, "false") == 0)
        return json_boolean(node->text[0] == 't');
    long long number = strtoll(node->text, &end, 10);
    return *end ? json_string(node->text) : json_integer(number);
}

static json_t *convert(const struct sw_yaml *node)
{
    if (node->type == SW_YAML_SCALAR)
        return scalar(node);
    json_t *value = node->type == SW_YAML_MAPPING ? json_object() : json_array();
    for (const struct sw_yaml *at = node->first; at; at = at->next) {
        if (node->type == SW_YAML_MAPPING)
            json_object_set_new(value, at->key, convert(at));
        else
            json_array_append_new(value, convert(at));
    }
    return value;
}

/* Cuts it out of the documents of a file: from behind a line "---" to before the next. */
static char *document_of(char *text, const char *kind)
{
    char line[64], *next;

    snprintf(line, sizeof line, "\nkind: %s\n", kind);
    for (char *at = text; at; at = next) {
        next = strstr(at, "\n---\n");
        if (next) {
            *next = '\0';
            next += strlen("\n---");
        }
        if (strstr(at, line))
            return at;
    }
    return NULL;
}

json_t *manifest_read(const char *name, const char *kind)
{
    static char text[1 << 18];
    char path[1024];
    struct sw_error error = {0};
    const struct sw_yaml *root = NULL;

    snprintf(path, sizeof path, "%s/%s", SIM_MANIFESTS, name);
    FILE *file = fopen(path, "re");
    if (!file) {
        fprintf(stderr, "sim_world: %s cannot be read\n", path);
        exit(2);
    }
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    char *document = document_of(text, kind);
    if (!document) {
        fprintf(stderr, "sim_world: %s holds no %s\n", path, kind);
        exit(2);
    }
    struct sw_arena *arena = sw_arena_new(0);
    if (sw_yaml_parse(arena, name, document, strlen(document), &root, &error)) {
        fprintf(stderr, "sim_world: %s\n", error.text);
        exit(2);
    }
    json_t *value = convert(root);
    sw_arena_free(arena);
    return value;
}
