/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kubeconfig files: YAML with more keys than we know, written by many tools. The tree is walked by
 * hand and not checked against a schema, as our own configuration is: everything that does not
 * belong to the current context may be anything.
 *
 * What we cannot honour is refused with what to do instead: a key that is silently left out would
 * make us somebody else (impersonation), or nobody (plugins).
 */
#include "kube/kubeconfig.h"

#include <slipway/arena.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"
#include "base/yaml.h"
#include "kube/base64.h"

/* One parse: the tree and where messages go. */
struct reader {
    const struct sw_yaml *root;
    const char *name;
    const char *folder;
    struct sw_error *error;
};

/* A mapping in it and what to call it: cluster "prod". */
struct part {
    const struct sw_yaml *node;
    const char *what;
    const char *name;
};

#define PART_FORMAT "%s: %s \"%.64s\": "
#define PART_ARGS(r, p) (r)->name, (p)->what, (p)->name

/* ---- the tree ---- */

/* The value of a key, or NULL where it is absent or null. */
static const struct sw_yaml *get(const struct sw_yaml *mapping, const char *key)
{
    if (!mapping || mapping->type != SW_YAML_MAPPING) {
        return NULL;
    }
    const struct sw_yaml *node = sw_yaml_get(mapping, key);
    return node && !sw_yaml_is_null(node) ? node : NULL;
}

/* The same where it is a text; borrowed from the tree. */
static const char *text_of(const struct sw_yaml *mapping, const char *key)
{
    const struct sw_yaml *node = get(mapping, key);
    return node && node->type == SW_YAML_SCALAR ? node->text : NULL;
}

/* *ret_text NULL: absent, null or empty. Borrowed from the tree. */
static int get_text(struct reader *r, const struct part *part, const char *key,
                    const char **ret_text)
{
    const struct sw_yaml *node = get(part->node, key);
    *ret_text = NULL;
    if (!node) {
        return 0;
    }
    if (node->type != SW_YAML_SCALAR) {
        return sw_error_set(r->error, SW_E_SYNTAX, "%s:%zu: %s is not a text", r->name, node->line,
                            key);
    }
    if (node->text[0]) {
        *ret_text = node->text;
    }
    return 0;
}

static int copy_text(struct reader *r, const struct part *part, const char *key, char **ret_text)
{
    const char *text;
    int rc = get_text(r, part, key, &text);
    *ret_text = !rc && text ? sw_strdup(text) : NULL;
    return rc;
}

static int copy_path(struct reader *r, const struct part *part, const char *key, char **ret_path)
{
    const char *path;
    int rc = get_text(r, part, key, &path);
    *ret_path = NULL;
    if (!rc && path) {
        *ret_path = path[0] == '/' ? sw_strdup(path) : sw_asprintf("%s/%s", r->folder, path);
    }
    return rc;
}

/* The base64 of a text, as PEM always is. */
static int copy_data(struct reader *r, const struct part *part, const char *key, char **ret_text)
{
    const char *data;
    size_t len;
    int rc = get_text(r, part, key, &data);
    *ret_text = NULL;
    if (rc || !data) {
        return rc;
    }
    if (sw_base64_decode(data, strlen(data), ret_text, &len)) {
        return sw_error_set(r->error, SW_E_SYNTAX, PART_FORMAT "%s is not base64",
                            PART_ARGS(r, part), key);
    }
    if (strlen(*ret_text) != len) {
        return sw_error_set(r->error, SW_E_SYNTAX, PART_FORMAT "%s is not the base64 of PEM",
                            PART_ARGS(r, part), key);
    }
    return 0;
}

static int get_bool(struct reader *r, const struct part *part, const char *key, bool *ret_value)
{
    const char *text;
    int rc = get_text(r, part, key, &text);
    if (rc) {
        return rc;
    }
    *ret_value = text && strcasecmp(text, "true") == 0;
    if (text && !*ret_value && strcasecmp(text, "false") != 0) {
        return sw_error_set(r->error, SW_E_SYNTAX, PART_FORMAT "%s is neither true nor false",
                            PART_ARGS(r, part), key);
    }
    return 0;
}

/* ---- named entries ---- */

/* "a, b, c": what there is, for a message that says what there is not. */
static char *names_in(const struct sw_yaml *list)
{
    struct sw_buf names;
    sw_buf_init(&names, 200);
    for (const struct sw_yaml *entry = list ? list->first : NULL; entry; entry = entry->next) {
        const char *name = text_of(entry, "name");
        if (name && sw_buf_printf(&names, "%s\"%.64s\"", names.len ? ", " : "", name)) {
            break;
        }
    }
    char *text = sw_strdup(names.len ? names.bytes : "none");
    sw_buf_done(&names);
    return text;
}

/* The mapping under `what` of the entry with that name in the list `what`s. */
static int find(struct reader *r, const char *what, const char *name, struct part *ret_part)
{
    SW_AUTO(char, sw_free) key = sw_asprintf("%ss", what);
    const struct sw_yaml *list = get(r->root, key);
    if (!list || list->type != SW_YAML_SEQUENCE) {
        return sw_error_set(r->error, SW_E_CONFIG,
                            "%s: %s \"%.64s\" is wanted, but there is no list \"%s\"", r->name,
                            what, name, key);
    }
    for (const struct sw_yaml *entry = list->first; entry; entry = entry->next) {
        const char *entry_name = text_of(entry, "name");
        if (entry_name && strcmp(entry_name, name) == 0) {
            *ret_part = (struct part){.node = get(entry, what), .what = what, .name = name};
            return 0;
        }
    }
    SW_AUTO(char, sw_free) names = names_in(list);
    return sw_error_set(r->error, SW_E_CONFIG, "%s: there is no %s \"%.64s\"; there are: %s",
                        r->name, what, name, names);
}

/* Keys that change who we are or how we get there, and that we do not honour. */
struct refusal {
    const char *key;
    const char *why;
};

static int refuse(struct reader *r, const struct part *part, const struct refusal *refusals,
                  size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct sw_yaml *node = get(part->node, refusals[i].key);
        bool is_empty = node && node->type == SW_YAML_SCALAR && !node->text[0];
        if (node && !is_empty) {
            return sw_error_set(r->error, SW_E_CONFIG, PART_FORMAT "%s is not supported: %s",
                                PART_ARGS(r, part), refusals[i].key, refusals[i].why);
        }
    }
    return 0;
}

/* ---- cluster and user ---- */

static int read_cluster(struct reader *r, struct sw_kubeconfig *config)
{
    static const struct refusal refusals[] = {
        {"proxy-url", "reach the API server directly, or through a tunnel such as kubectl proxy"},
    };
    struct part part;
    int rc = find(r, "cluster", config->cluster, &part);
    rc = rc ? rc : refuse(r, &part, refusals, SW_ARRAY_SIZE(refusals));
    rc = rc ? rc : copy_text(r, &part, "server", &config->server);
    rc = rc ? rc : copy_text(r, &part, "tls-server-name", &config->tls_name);
    rc = rc ? rc : copy_path(r, &part, "certificate-authority", &config->ca_path);
    rc = rc ? rc : copy_data(r, &part, "certificate-authority-data", &config->ca_pem);
    rc = rc ? rc : get_bool(r, &part, "insecure-skip-tls-verify", &config->is_insecure);
    if (rc) {
        return rc;
    }
    if (!config->server) {
        return sw_error_set(r->error, SW_E_CONFIG,
                            PART_FORMAT "it has no server; set it with "
                                        "kubectl config set-cluster",
                            PART_ARGS(r, &part));
    }
    if (config->is_insecure && (config->ca_pem || config->ca_path)) {
        return sw_error_set(r->error, SW_E_CONFIG,
                            PART_FORMAT
                            "insecure-skip-tls-verify and a "
                            "certificate authority exclude each other; remove one of them",
                            PART_ARGS(r, &part));
    }
    return 0;
}

static int check_user(struct reader *r, const struct part *part, const struct sw_kubeconfig *config)
{
    bool has_certificate = config->certificate_pem || config->certificate_path;
    bool has_key = config->key_pem || config->key_path;
    bool has_token = config->token || config->token_path;
    if (has_certificate != has_key) {
        return sw_error_set(r->error, SW_E_CONFIG,
                            PART_FORMAT "client-%s is there, but no "
                                        "client-%s",
                            PART_ARGS(r, part), has_key ? "key" : "certificate",
                            has_key ? "certificate" : "key");
    }
    if (has_token && config->username) {
        return sw_error_set(r->error, SW_E_CONFIG,
                            PART_FORMAT "it has both a token and a "
                                        "username; remove one of them",
                            PART_ARGS(r, part));
    }
    if (config->username && strchr(config->username, ':')) {
        /* RFC 7617 section 2: what follows would be read as the password. */
        return sw_error_set(r->error, SW_E_CONFIG, PART_FORMAT "its username has a colon in it",
                            PART_ARGS(r, part));
    }
    return 0;
}

static int read_user(struct reader *r, struct sw_kubeconfig *config)
{
    static const struct refusal refusals[] = {
        {"exec", "slipway runs no credential plugins; use the token of a ServiceAccount "
                 "(kubectl create token), best in a file named by tokenFile"},
        {"auth-provider", "use the token of a ServiceAccount (kubectl create token), best in a "
                          "file named by tokenFile"},
        {"as", "slipway impersonates nobody; give it credentials of its own"},
        {"as-uid", "slipway impersonates nobody; give it credentials of its own"},
        {"as-groups", "slipway impersonates nobody; give it credentials of its own"},
        {"as-user-extra", "slipway impersonates nobody; give it credentials of its own"},
    };
    struct part part;
    int rc = find(r, "user", config->user, &part);
    rc = rc ? rc : refuse(r, &part, refusals, SW_ARRAY_SIZE(refusals));
    rc = rc ? rc : copy_path(r, &part, "client-certificate", &config->certificate_path);
    rc = rc ? rc : copy_data(r, &part, "client-certificate-data", &config->certificate_pem);
    rc = rc ? rc : copy_path(r, &part, "client-key", &config->key_path);
    rc = rc ? rc : copy_data(r, &part, "client-key-data", &config->key_pem);
    rc = rc ? rc : copy_text(r, &part, "token", &config->token);
    rc = rc ? rc : copy_path(r, &part, "tokenFile", &config->token_path);
    rc = rc ? rc : copy_text(r, &part, "username", &config->username);
    rc = rc ? rc : copy_text(r, &part, "password", &config->password);
    return rc ? rc : check_user(r, &part, config);
}

/* ---- the whole ---- */

static int read_context(struct reader *r, struct sw_kubeconfig *config)
{
    struct part root = {.node = r->root};
    int rc = copy_text(r, &root, "current-context", &config->context);
    if (rc) {
        return rc;
    }
    if (!config->context) {
        SW_AUTO(char, sw_free) names = names_in(get(r->root, "contexts"));
        return sw_error_set(r->error, SW_E_CONFIG,
                            "%s: it has no current-context; choose one with "
                            "kubectl config use-context; there are: %s",
                            r->name, names);
    }
    struct part part;
    rc = find(r, "context", config->context, &part);
    rc = rc ? rc : copy_text(r, &part, "cluster", &config->cluster);
    rc = rc ? rc : copy_text(r, &part, "user", &config->user);
    rc = rc ? rc : copy_text(r, &part, "namespace", &config->namespace_);
    if (!rc && !config->cluster) {
        rc = sw_error_set(r->error, SW_E_CONFIG, PART_FORMAT "it names no cluster",
                          PART_ARGS(r, &part));
    }
    return rc;
}

static int read_all(struct reader *r, struct sw_kubeconfig *config)
{
    if (!r->root) {
        return sw_error_set(r->error, SW_E_CONFIG, "%s: it is empty", r->name);
    }
    if (r->root->type != SW_YAML_MAPPING) {
        return sw_error_set(r->error, SW_E_SYNTAX,
                            "%s:%zu: this is not a kubeconfig: it has no keys", r->name,
                            r->root->line);
    }
    int rc = read_context(r, config);
    rc = rc ? rc : read_cluster(r, config);
    /* Without a user: anonymous, as kubectl does it. */
    return rc || !config->user ? rc : read_user(r, config);
}

int sw_kubeconfig_parse(const char *name, const char *text, size_t len, const char *folder,
                        struct sw_kubeconfig *ret_config, struct sw_error *error)
{
    struct sw_arena *arena = sw_arena_new(0);
    struct reader r = {.name = name, .folder = folder, .error = error};
    struct sw_kubeconfig config = {0};
    int rc = sw_yaml_parse(arena, name, text, len, &r.root, error);
    rc = rc ? rc : read_all(&r, &config);
    sw_arena_free(arena);
    if (rc) {
        sw_kubeconfig_done(&config);
        return rc;
    }
    *ret_config = config;
    return 0;
}

static void free_secret(char *text)
{
    sw_free_secret(text, text ? strlen(text) : 0);
}

void sw_kubeconfig_done(struct sw_kubeconfig *config)
{
    free_secret(config->key_pem);
    free_secret(config->token);
    free_secret(config->password);
    sw_free(config->context);
    sw_free(config->cluster);
    sw_free(config->user);
    sw_free(config->namespace_);
    sw_free(config->server);
    sw_free(config->tls_name);
    sw_free(config->ca_pem);
    sw_free(config->ca_path);
    sw_free(config->certificate_pem);
    sw_free(config->certificate_path);
    sw_free(config->key_path);
    sw_free(config->token_path);
    sw_free(config->username);
    *config = (struct sw_kubeconfig){0};
}
