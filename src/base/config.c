/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configuration files in three steps: the text becomes a tree that knows lines (yaml.c), the tree
 * is held against the schema (config_check.c), and what passes is loaded by libcyaml, into which
 * our own members are filled. libcyaml should have nothing to say by then; if it does, its first
 * sentence and the line it names are passed on.
 */
#include "base/config.h"

#include <cyaml/cyaml.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slipway/arena.h>

#include "base/config_check.h"
#include "base/error.h"
#include "base/file.h"
#include "base/util.h"
#include "base/yaml.h"

enum { LIMIT_BYTES = 1024 * 1024 }; /* as etcd and so any ConfigMap */

/* ---- libcyaml ---- */

static void *memory(void *arg, void *old, size_t size)
{
    (void)arg;
    return size ? sw_realloc(old, 1, size) : sw_free(old);
}

/* What libcyaml says first is the reason; the lines "in mapping field ... (line: 3, column: 1)"
 * that follow go from the inside outwards. */
struct complaint {
    char text[160];
    unsigned line;
};

__attribute__((format(printf, 3, 0))) static void on_log(cyaml_log_t level, void *arg,
                                                         const char *format, va_list args)
{
    struct complaint *complaint = arg;
    char text[sizeof(complaint->text)];
    unsigned line;
    vsnprintf(text, sizeof(text), format, args);
    text[strcspn(text, "\n")] = '\0';
    if (!complaint->text[0] && level == CYAML_LOG_ERROR) {
        memcpy(complaint->text, text, sizeof(text));
    }
    const char *where = strstr(text, "(line: ");
    if (!complaint->line && where && sscanf(where, "(line: %u", &line) == 1) {
        complaint->line = line;
    }
}

static int load(const char *name, const char *text, size_t len,
                const struct cyaml_schema_value *schema, void **ret_value, struct sw_error *error)
{
    struct complaint complaint = {.text = ""};
    const cyaml_config_t config = {
        .log_fn = on_log,
        .log_ctx = &complaint,
        .mem_fn = memory,
        .log_level = CYAML_LOG_ERROR,
        .flags = CYAML_CFG_NO_ALIAS,
    };
    void *value = NULL;
    cyaml_err_t rc = cyaml_load_data((const uint8_t *)text, len, &config, schema, &value, NULL);
    if (rc != CYAML_OK) {
        return sw_error_set(error, SW_E_CONFIG, "%s:%u: %s", name, SW_MAX(complaint.line, 1U),
                            complaint.text[0] ? complaint.text : cyaml_strerror(rc));
    }
    sw_assert(value);
    *ret_value = value;
    return 0;
}

void *sw_config_free(const struct cyaml_schema_value *schema, void *value)
{
    if (value) {
        const cyaml_config_t config = {.mem_fn = memory};
        sw_assert(cyaml_free(&config, schema, value, 0) == CYAML_OK);
    }
    return NULL;
}

/* ---- where a key stands ---- */

/* The member that the next part of the path names; *at moves behind that part. */
static const struct sw_yaml *step(const struct sw_yaml *node, const char **at)
{
    bool is_index = **at == '[';
    const char *part = *at + (**at == '.' || is_index);
    size_t len = strcspn(part, is_index ? "]" : ".[");

    *at = part + len + is_index;
    for (const struct sw_yaml *m = node->first; m; m = m->next) {
        bool is_it = is_index ? m->index == strtoul(part, NULL, 10)
                              : m->key && strlen(m->key) == len && !memcmp(m->key, part, len);
        if (is_it) {
            return m;
        }
    }
    return NULL;
}

/* 0: not known. */
static size_t line_of(struct sw_arena *arena, const char *path, const char *key)
{
    SW_AUTO(char, sw_free) text = NULL;
    struct sw_error ignored = {0};
    const struct sw_yaml *node = NULL;
    size_t len, line = 0;

    if (sw_file_read(path, LIMIT_BYTES, &text, &len, &ignored) ||
        sw_yaml_parse(arena, path, text, len, &node, &ignored)) {
        return 0;
    }
    while (node && *key) {
        node = step(node, &key);
        line = node ? node->line : line;
    }
    return line;
}

void sw_config_blame(const char *path, const char *key, struct sw_error *error)
{
    struct sw_arena *arena = sw_arena_new(0);
    size_t line = line_of(arena, path, key);

    if (line) {
        sw_error_prefix(error, "%s:%zu: %s", path, line, key);
    } else {
        sw_error_prefix(error, "%s: %s", path, key);
    }
    sw_arena_free(arena);
}

/* ---- the three steps ---- */

static int parse(struct sw_arena *arena, const char *name, const char *text, size_t len,
                 const struct cyaml_schema_value *schema, void **ret_value, struct sw_error *error)
{
    const struct sw_yaml *root;
    int rc = sw_yaml_parse(arena, name, text, len, &root, error);
    if (!rc) {
        rc = sw_config_check(arena, name, schema, root, error);
    }
    void *value = NULL;
    if (!rc) {
        /* Of nothing libcyaml makes NULL; of an empty mapping what we want. */
        rc = root ? load(name, text, len, schema, &value, error)
                  : load(name, "{}", 2, schema, &value, error);
    }
    if (!rc) {
        sw_config_fill(schema, value, root);
        *ret_value = value;
    }
    return rc;
}

int sw_config_parse(const char *name, const char *text, size_t len,
                    const struct cyaml_schema_value *schema, void **ret_value,
                    struct sw_error *error)
{
    sw_assert(schema->type == CYAML_MAPPING && (schema->flags & CYAML_FLAG_POINTER));
    if (len > LIMIT_BYTES) {
        return sw_error_set(error, SW_E_CONFIG, "%s:1: larger than %d bytes", name, LIMIT_BYTES);
    }
    struct sw_error found = {0};
    struct sw_arena *arena = sw_arena_new(0);
    int rc = parse(arena, name, text, len, schema, ret_value, &found);
    sw_arena_free(arena);
    return rc ? sw_error_set(error, SW_E_CONFIG, "%s", found.text) : 0;
}

int sw_config_load(const char *path, const struct cyaml_schema_value *schema, void **ret_value,
                   struct sw_error *error)
{
    SW_AUTO(char, sw_free) text = NULL;
    size_t len = 0;
    struct sw_error found = {0};
    int rc = sw_file_read(path, LIMIT_BYTES, &text, &len, &found);
    if (rc) {
        return sw_error_set(error, rc == -ENOENT ? rc : SW_E_CONFIG, "%s", found.text);
    }
    return sw_config_parse(path, text, len, schema, ret_value, error);
}
