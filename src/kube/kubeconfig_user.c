/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who a user of a kubeconfig is where it does not say so itself: a plugin that is asked (exec), and
 * somebody else for whom we speak (as, as-uid, as-groups, as-user-extra). The rules are
 * client-go's.
 */
#include <math.h>
#include <slipway/json.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"
#include "kube/kubeconfig_internal.h"
#include "net/http.h"

/* ---- lists ---- */

/* The sequence or mapping of a key; *ret_node NULL: absent or null. */
static int get_node(struct sw_kubeconfig_reader *r, const struct sw_kubeconfig_part *part,
                    const char *key, enum sw_yaml_type type, const struct sw_yaml **ret_node)
{
    const struct sw_yaml *node = sw_kubeconfig_get(part->node, key);
    if (node && node->type != type) {
        return sw_error_set(r->error, SW_E_SYNTAX, "%s:%zu: %s is not a %s", part->doc->name,
                            node->line, key, type == SW_YAML_SEQUENCE ? "list" : "mapping");
    }
    *ret_node = node;
    return 0;
}

/* ---- the cluster's word to plugins, as JSON ---- */

static struct sw_json *to_json(const struct sw_yaml *node, struct sw_arena *arena);

static struct sw_json *scalar_to_json(const struct sw_yaml *node, struct sw_arena *arena)
{
    const char *text = node->text;
    if (sw_yaml_is_null(node)) {
        return sw_json_null(arena);
    }
    if (node->is_plain && (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)) {
        return sw_json_bool(arena, text[0] == 't');
    }
    size_t digits = strspn(text, "+-.0123456789eE");
    if (node->is_plain && text[0] && text[digits] == '\0') {
        char *end;
        bool is_whole = strspn(text, "-0123456789") == digits && digits < 19;
        long long whole = is_whole ? strtoll(text, &end, 10) : 0;
        if (is_whole && *end == '\0') {
            return sw_json_int(arena, whole);
        }
        double real = strtod(text, &end);
        if (*end == '\0' && end != text && isfinite(real)) {
            return sw_json_real(arena, real);
        }
    }
    return sw_json_string(arena, text);
}

static struct sw_json *to_json(const struct sw_yaml *node, struct sw_arena *arena)
{
    if (node->type == SW_YAML_SCALAR) {
        return scalar_to_json(node, arena);
    }
    bool is_list = node->type == SW_YAML_SEQUENCE;
    struct sw_json *value = is_list ? sw_json_array(arena) : sw_json_object(arena);
    for (const struct sw_yaml *child = node->first; child; child = child->next) {
        if (is_list) {
            sw_json_append(value, to_json(child, arena));
        } else {
            sw_json_set(value, child->key, to_json(child, arena));
        }
    }
    return value;
}

/* extensions: [{name: client.authentication.k8s.io/exec, extension: ANY}] of the cluster. */
static char *cluster_config(const struct sw_kubeconfig_part *cluster)
{
    const struct sw_yaml *list = sw_kubeconfig_get(cluster->node, "extensions");
    for (const struct sw_yaml *e = list ? list->first : NULL; e; e = e->next) {
        const struct sw_yaml *name = sw_kubeconfig_get(e, "name");
        const struct sw_yaml *extension = sw_kubeconfig_get(e, "extension");
        if (extension && name && name->type == SW_YAML_SCALAR &&
            strcmp(name->text, "client.authentication.k8s.io/exec") == 0) {
            struct sw_arena *arena = sw_arena_new(0);
            char *text = sw_strdup(sw_json_dump(to_json(extension, arena), arena, NULL));
            sw_arena_free(arena);
            return text;
        }
    }
    return NULL;
}

/* ---- exec ---- */

#define API_GROUP "client.authentication.k8s.io/"

static int check_version(struct sw_kubeconfig_reader *r, const struct sw_kubeconfig_part *part,
                         const char *version)
{
    if (version &&
        (strcmp(version, API_GROUP "v1") == 0 || strcmp(version, API_GROUP "v1beta1") == 0)) {
        return 0;
    }
    return sw_error_set(r->error, SW_E_CONFIG,
                        SW_PART_FORMAT "exec: its apiVersion is %s%.64s%s, not " API_GROUP
                                       "v1 or v1beta1; update the plugin and write the kubeconfig "
                                       "anew",
                        SW_PART_ARGS(part), version ? "\"" : "missing", version ? version : "",
                        version ? "\"" : "");
}

/* We have no terminal to lend, also where we were started from one. */
static int check_mode(struct sw_kubeconfig_reader *r, const struct sw_kubeconfig_part *part,
                      const char *version, const char *mode)
{
    bool is_optional = strcmp(version, API_GROUP "v1beta1") == 0;
    if (mode ? strcmp(mode, "Never") == 0 || strcmp(mode, "IfAvailable") == 0 : is_optional) {
        return 0;
    }
    if (mode && strcmp(mode, "Always") == 0) {
        return sw_error_set(r->error, SW_E_CONFIG,
                            SW_PART_FORMAT
                            "exec: its plugin wants to ask a person (interactiveMode "
                            "Always), and slipway runs without one; use another way "
                            "to log in, for machines",
                            SW_PART_ARGS(part));
    }
    return sw_error_set(r->error, SW_E_CONFIG,
                        SW_PART_FORMAT "exec: its interactiveMode is %s%.64s%s; write Never or "
                                       "IfAvailable",
                        SW_PART_ARGS(part), mode ? "\"" : "missing", mode ? mode : "",
                        mode ? "\"" : "");
}

static int read_args(struct sw_kubeconfig_reader *r, const struct sw_kubeconfig_part *part,
                     struct sw_kubeconfig_exec *exec)
{
    const struct sw_yaml *list;
    int rc = get_node(r, part, "args", SW_YAML_SEQUENCE, &list);
    if (rc) {
        return rc;
    }
    exec->args = sw_calloc(list ? list->count + 1 : 1, sizeof(*exec->args));
    size_t count = 0;
    for (const struct sw_yaml *arg = list ? list->first : NULL; arg; arg = arg->next) {
        if (arg->type != SW_YAML_SCALAR) {
            return sw_error_set(r->error, SW_E_SYNTAX, "%s:%zu: an argument is not a text",
                                part->doc->name, arg->line);
        }
        exec->args[count++] = sw_strdup(arg->text);
    }
    return 0;
}

static int read_env(struct sw_kubeconfig_reader *r, const struct sw_kubeconfig_part *part,
                    struct sw_kubeconfig_exec *exec)
{
    const struct sw_yaml *list;
    int rc = get_node(r, part, "env", SW_YAML_SEQUENCE, &list);
    exec->env = sw_calloc(!rc && list ? list->count + 1 : 1, sizeof(*exec->env));
    size_t count = 0;
    for (const struct sw_yaml *e = !rc && list ? list->first : NULL; e; e = e->next) {
        struct sw_kubeconfig_part variable = {part->doc, e, part->what, part->name};
        const char *name = NULL;
        const char *value = NULL;
        rc = sw_kubeconfig_get_text(r, &variable, "name", &name);
        rc = rc ? rc : sw_kubeconfig_get_text(r, &variable, "value", &value);
        if (!rc && (!name || strchr(name, '='))) {
            rc = sw_error_set(r->error, SW_E_CONFIG,
                              SW_PART_FORMAT "exec: a variable of env has no name, or none that "
                                             "can be one",
                              SW_PART_ARGS(part));
        }
        if (rc) {
            return rc;
        }
        exec->env[count++] = sw_asprintf("%s=%s", name, value ? value : "");
    }
    return rc;
}

static int read_command(struct sw_kubeconfig_reader *r, const struct sw_kubeconfig_part *part,
                        struct sw_kubeconfig_exec *exec)
{
    const char *command;
    int rc = sw_kubeconfig_get_text(r, part, "command", &command);
    if (rc) {
        return rc;
    }
    if (!command) {
        return sw_error_set(r->error, SW_E_CONFIG, SW_PART_FORMAT "exec: it names no command",
                            SW_PART_ARGS(part));
    }
    /* A name is searched for; a path is relative to the file that it stands in. */
    exec->command = strchr(command, '/') ? sw_kubeconfig_path(part, command) : sw_strdup(command);
    return 0;
}

static int fill_exec(struct sw_kubeconfig_reader *r, const struct sw_kubeconfig_part *part,
                     struct sw_kubeconfig_exec *exec)
{
    const char *mode = NULL;
    int rc = read_command(r, part, exec);
    rc = rc ? rc : sw_kubeconfig_copy_text(r, part, "apiVersion", &exec->api_version);
    rc = rc ? rc : check_version(r, part, exec->api_version);
    rc = rc ? rc : sw_kubeconfig_get_text(r, part, "interactiveMode", &mode);
    rc = rc ? rc : check_mode(r, part, exec->api_version, mode);
    rc = rc ? rc : sw_kubeconfig_copy_text(r, part, "installHint", &exec->install_hint);
    rc = rc ? rc : sw_kubeconfig_get_bool(r, part, "provideClusterInfo", &exec->provides_cluster);
    rc = rc ? rc : read_args(r, part, exec);
    return rc ? rc : read_env(r, part, exec);
}

int sw_kubeconfig_read_exec(struct sw_kubeconfig_reader *r, const struct sw_kubeconfig_part *user,
                            const struct sw_kubeconfig_part *cluster, struct sw_kubeconfig *config)
{
    struct sw_kubeconfig_part part = *user;
    int rc = get_node(r, user, "exec", SW_YAML_MAPPING, &part.node);
    if (rc || !part.node) {
        return rc;
    }
    config->exec = SW_NEW(struct sw_kubeconfig_exec);
    rc = fill_exec(r, &part, config->exec);
    if (!rc && config->exec->provides_cluster) {
        config->exec->cluster_config = cluster_config(cluster);
    }
    return rc;
}

static void free_texts(char **texts)
{
    for (size_t i = 0; texts && texts[i]; i++) {
        sw_free_secret(texts[i], strlen(texts[i])); /* people do write passwords there */
    }
    sw_free(texts);
}

struct sw_kubeconfig_exec *sw_kubeconfig_exec_free(struct sw_kubeconfig_exec *exec)
{
    if (exec) {
        free_texts(exec->args);
        free_texts(exec->env);
        sw_free(exec->api_version);
        sw_free(exec->command);
        sw_free(exec->install_hint);
        sw_free(exec->cluster_config);
        sw_free(exec);
    }
    return NULL;
}

/* ---- for whom we speak ---- */

static int add_header(struct sw_kubeconfig_reader *r, const struct sw_kubeconfig_part *part,
                      struct sw_kubeconfig *config, const char *name, const char *value)
{
    if (!sw_http_is_field_value(value)) {
        return sw_error_set(r->error, SW_E_CONFIG,
                            SW_PART_FORMAT "a value for %s has characters that no header may have",
                            SW_PART_ARGS(part), name);
    }
    size_t count = config->impersonation_count++;
    config->impersonation =
        sw_realloc(config->impersonation, count + 1, sizeof(*config->impersonation));
    config->impersonation[count] = (struct sw_kubeconfig_header){sw_strdup(name), sw_strdup(value)};
    return 0;
}

/* One header for each element. */
static int add_headers(struct sw_kubeconfig_reader *r, const struct sw_kubeconfig_part *part,
                       struct sw_kubeconfig *config, const char *name, const struct sw_yaml *list)
{
    int rc = 0;
    for (const struct sw_yaml *e = list ? list->first : NULL; e && !rc; e = e->next) {
        if (e->type != SW_YAML_SCALAR) {
            return sw_error_set(r->error, SW_E_SYNTAX, "%s:%zu: a value for %s is not a text",
                                part->doc->name, e->line, name);
        }
        rc = add_header(r, part, config, name, e->text);
    }
    return rc;
}

/* The API server undoes it (url.PathUnescape), so "%" is escaped too. */
static char *extra_name(const char *key)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "!#$&'*+-.^_`|~"; /* of a token, RFC 9110 section 5.6.2 */
    struct sw_buf name;
    sw_buf_init(&name, SIZE_MAX);
    sw_buf_puts(&name, "Impersonate-Extra-");
    for (const char *c = key; *c; c++) {
        if (strchr(plain, *c)) {
            sw_buf_append(&name, c, 1);
        } else {
            sw_buf_printf(&name, "%%%02X", (unsigned)(unsigned char)*c);
        }
    }
    char *text = sw_buf_steal(&name);
    sw_buf_done(&name);
    return text;
}

static int add_extras(struct sw_kubeconfig_reader *r, const struct sw_kubeconfig_part *part,
                      struct sw_kubeconfig *config, const struct sw_yaml *extras)
{
    int rc = 0;
    for (const struct sw_yaml *e = extras ? extras->first : NULL; e && !rc; e = e->next) {
        SW_AUTO(char, sw_free) name = extra_name(e->key);
        if (e->type != SW_YAML_SEQUENCE && !sw_yaml_is_null(e)) {
            return sw_error_set(r->error, SW_E_SYNTAX, "%s:%zu: %s of as-user-extra is not a list",
                                part->doc->name, e->line, e->key);
        }
        rc = add_headers(r, part, config, name, e->type == SW_YAML_SEQUENCE ? e : NULL);
    }
    return rc;
}

int sw_kubeconfig_read_impersonation(struct sw_kubeconfig_reader *r,
                                     const struct sw_kubeconfig_part *user,
                                     struct sw_kubeconfig *config)
{
    const char *uid = NULL;
    const struct sw_yaml *groups = NULL;
    const struct sw_yaml *extras = NULL;
    int rc = sw_kubeconfig_copy_text(r, user, "as", &config->as);
    rc = rc ? rc : sw_kubeconfig_get_text(r, user, "as-uid", &uid);
    rc = rc ? rc : get_node(r, user, "as-groups", SW_YAML_SEQUENCE, &groups);
    rc = rc ? rc : get_node(r, user, "as-user-extra", SW_YAML_MAPPING, &extras);
    if (rc) {
        return rc;
    }
    if (!config->as) {
        bool is_meant = uid || (groups && groups->count) || (extras && extras->count);
        return is_meant ? sw_error_set(r->error, SW_E_CONFIG,
                                       SW_PART_FORMAT "it has as-uid, as-groups or as-user-extra, "
                                                      "but does not say as whom; add as",
                                       SW_PART_ARGS(user))
                        : 0;
    }
    rc = add_header(r, user, config, "Impersonate-User", config->as);
    rc = rc || !uid ? rc : add_header(r, user, config, "Impersonate-Uid", uid);
    rc = rc ? rc : add_headers(r, user, config, "Impersonate-Group", groups);
    return rc ? rc : add_extras(r, user, config, extras);
}
