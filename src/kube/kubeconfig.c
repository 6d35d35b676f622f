/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kubeconfig files: YAML with more keys than we know, written by many tools. The trees are walked
 * by hand and not checked against a schema, as our own configuration is: everything that does not
 * belong to the wanted context may be anything.
 *
 * What we cannot honour is refused with what to do instead: a key that is silently left out would
 * make us somebody else, or nobody.
 */
#include "kube/kubeconfig.h"

#include <slipway/arena.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"
#include "kube/base64.h"
#include "kube/kubeconfig_internal.h"

/* ---- the tree ---- */

const struct sw_yaml *sw_kubeconfig_get(const struct sw_yaml *mapping, const char *key)
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
    const struct sw_yaml *node = sw_kubeconfig_get(mapping, key);
    return node && node->type == SW_YAML_SCALAR ? node->text : NULL;
}

int sw_kubeconfig_get_text(struct sw_kubeconfig_reader *r, const struct sw_kubeconfig_part *part,
                           const char *key, const char **ret_text)
{
    const struct sw_yaml *node = sw_kubeconfig_get(part->node, key);
    *ret_text = NULL;
    if (!node) {
        return 0;
    }
    if (node->type != SW_YAML_SCALAR) {
        return sw_error_set(r->error, SW_E_SYNTAX, "%s:%zu: %s is not a text", part->doc->name,
                            node->line, key);
    }
    if (node->text[0]) {
        *ret_text = node->text;
    }
    return 0;
}

int sw_kubeconfig_copy_text(struct sw_kubeconfig_reader *r, const struct sw_kubeconfig_part *part,
                            const char *key, char **ret_text)
{
    const char *text;
    int rc = sw_kubeconfig_get_text(r, part, key, &text);
    *ret_text = !rc && text ? sw_strdup(text) : NULL;
    return rc;
}

char *sw_kubeconfig_path(const struct sw_kubeconfig_part *part, const char *path)
{
    return path[0] == '/' ? sw_strdup(path) : sw_asprintf("%s/%s", part->doc->folder, path);
}

static int copy_path(struct sw_kubeconfig_reader *r, const struct sw_kubeconfig_part *part,
                     const char *key, char **ret_path)
{
    const char *path;
    int rc = sw_kubeconfig_get_text(r, part, key, &path);
    *ret_path = !rc && path ? sw_kubeconfig_path(part, path) : NULL;
    return rc;
}

/* The base64 of a text, as PEM always is. */
static int copy_data(struct sw_kubeconfig_reader *r, const struct sw_kubeconfig_part *part,
                     const char *key, char **ret_text)
{
    const char *data;
    size_t len;
    int rc = sw_kubeconfig_get_text(r, part, key, &data);
    *ret_text = NULL;
    if (rc || !data) {
        return rc;
    }
    if (sw_base64_decode(data, strlen(data), ret_text, &len)) {
        return sw_error_set(r->error, SW_E_SYNTAX, SW_PART_FORMAT "%s is not base64",
                            SW_PART_ARGS(part), key);
    }
    if (strlen(*ret_text) != len) {
        return sw_error_set(r->error, SW_E_SYNTAX, SW_PART_FORMAT "%s is not the base64 of PEM",
                            SW_PART_ARGS(part), key);
    }
    return 0;
}

int sw_kubeconfig_get_bool(struct sw_kubeconfig_reader *r, const struct sw_kubeconfig_part *part,
                           const char *key, bool *ret_value)
{
    const char *text;
    int rc = sw_kubeconfig_get_text(r, part, key, &text);
    if (rc) {
        return rc;
    }
    *ret_value = text && strcasecmp(text, "true") == 0;
    if (text && !*ret_value && strcasecmp(text, "false") != 0) {
        return sw_error_set(r->error, SW_E_SYNTAX, SW_PART_FORMAT "%s is neither true nor false",
                            SW_PART_ARGS(part), key);
    }
    return 0;
}

/* ---- named entries ---- */

static const struct sw_yaml *list_in(const struct sw_kubeconfig_doc *doc, const char *key)
{
    const struct sw_yaml *list = sw_kubeconfig_get(doc->root, key);
    return list && list->type == SW_YAML_SEQUENCE ? list : NULL;
}

/* "a, b, c": what there is, for a message that says what there is not. */
static char *names_in(const struct sw_kubeconfig_reader *r, const char *key)
{
    struct sw_buf names;
    sw_buf_init(&names, 200);
    for (size_t i = 0; i < r->count; i++) {
        const struct sw_yaml *list = list_in(&r->docs[i], key);
        for (const struct sw_yaml *entry = list ? list->first : NULL; entry; entry = entry->next) {
            const char *name = text_of(entry, "name");
            if (name && sw_buf_printf(&names, "%s\"%.64s\"", names.len ? ", " : "", name)) {
                break;
            }
        }
    }
    char *text = sw_strdup(names.len ? names.bytes : "none");
    sw_buf_done(&names);
    return text;
}

/* The mapping under `what` of the first entry with that name in the lists `what`s. */
static int find(struct sw_kubeconfig_reader *r, const char *what, const char *name,
                struct sw_kubeconfig_part *ret_part)
{
    SW_AUTO(char, sw_free) key = sw_asprintf("%ss", what);
    bool has_list = false;
    for (size_t i = 0; i < r->count; i++) {
        const struct sw_yaml *list = list_in(&r->docs[i], key);
        has_list = has_list || list;
        for (const struct sw_yaml *entry = list ? list->first : NULL; entry; entry = entry->next) {
            const char *entry_name = text_of(entry, "name");
            if (entry_name && strcmp(entry_name, name) == 0) {
                const struct sw_yaml *node = sw_kubeconfig_get(entry, what);
                *ret_part = (struct sw_kubeconfig_part){&r->docs[i], node, what, name};
                return 0;
            }
        }
    }
    if (!has_list) {
        return sw_error_set(r->error, SW_E_CONFIG,
                            "%s: %s \"%.64s\" is wanted, but there is no list \"%s\"", r->name,
                            what, name, key);
    }
    SW_AUTO(char, sw_free) names = names_in(r, key);
    return sw_error_set(r->error, SW_E_CONFIG, "%s: there is no %s \"%.64s\"; there are: %s",
                        r->name, what, name, names);
}

/* Keys that change who we are or how we get there, and that we do not honour. */
struct refusal {
    const char *key;
    const char *why;
};

static int refuse(struct sw_kubeconfig_reader *r, const struct sw_kubeconfig_part *part,
                  const struct refusal *refusals, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct sw_yaml *node = sw_kubeconfig_get(part->node, refusals[i].key);
        bool is_empty = node && node->type == SW_YAML_SCALAR && !node->text[0];
        if (node && !is_empty) {
            return sw_error_set(r->error, SW_E_CONFIG, SW_PART_FORMAT "%s is not supported: %s",
                                SW_PART_ARGS(part), refusals[i].key, refusals[i].why);
        }
    }
    return 0;
}

/* ---- cluster and user ---- */

static int read_cluster(struct sw_kubeconfig_reader *r, struct sw_kubeconfig_part *ret_part,
                        struct sw_kubeconfig *config)
{
    struct sw_kubeconfig_part part;
    int rc = find(r, "cluster", config->cluster, &part);
    if (rc) {
        return rc;
    }
    *ret_part = part;
    rc = sw_kubeconfig_copy_text(r, &part, "server", &config->server);
    rc = rc ? rc : sw_kubeconfig_copy_text(r, &part, "proxy-url", &config->proxy_url);
    rc = rc ? rc : sw_kubeconfig_copy_text(r, &part, "tls-server-name", &config->tls_name);
    rc = rc ? rc : copy_path(r, &part, "certificate-authority", &config->ca_path);
    rc = rc ? rc : copy_data(r, &part, "certificate-authority-data", &config->ca_pem);
    rc = rc ? rc
            : sw_kubeconfig_get_bool(r, &part, "insecure-skip-tls-verify", &config->is_insecure);
    if (rc) {
        return rc;
    }
    if (!config->server) {
        return sw_error_set(r->error, SW_E_CONFIG,
                            SW_PART_FORMAT "it has no server; set it with "
                                           "kubectl config set-cluster",
                            SW_PART_ARGS(&part));
    }
    if (config->is_insecure && (config->ca_pem || config->ca_path)) {
        return sw_error_set(r->error, SW_E_CONFIG,
                            SW_PART_FORMAT
                            "insecure-skip-tls-verify and a "
                            "certificate authority exclude each other; remove one of them",
                            SW_PART_ARGS(&part));
    }
    return 0;
}

static int check_user(struct sw_kubeconfig_reader *r, const struct sw_kubeconfig_part *part,
                      const struct sw_kubeconfig *config)
{
    bool has_certificate = config->certificate_pem || config->certificate_path;
    bool has_key = config->key_pem || config->key_path;
    bool has_token = config->token || config->token_path;
    if (has_certificate != has_key) {
        return sw_error_set(r->error, SW_E_CONFIG,
                            SW_PART_FORMAT "client-%s is there, but no "
                                           "client-%s",
                            SW_PART_ARGS(part), has_key ? "key" : "certificate",
                            has_key ? "certificate" : "key");
    }
    if (has_token && config->username) {
        return sw_error_set(r->error, SW_E_CONFIG,
                            SW_PART_FORMAT "it has both a token and a "
                                           "username; remove one of them",
                            SW_PART_ARGS(part));
    }
    if (config->username && strchr(config->username, ':')) {
        /* RFC 7617 section 2: what follows would be read as the password. */
        return sw_error_set(r->error, SW_E_CONFIG, SW_PART_FORMAT "its username has a colon in it",
                            SW_PART_ARGS(part));
    }
    return 0;
}

static int read_user(struct sw_kubeconfig_reader *r, const struct sw_kubeconfig_part *cluster,
                     struct sw_kubeconfig *config)
{
    static const struct refusal refusals[] = {
        {"auth-provider", "use a credential plugin (exec) of your cloud, or the token of a "
                          "ServiceAccount (kubectl create token), best in a file named by "
                          "tokenFile"},
    };
    struct sw_kubeconfig_part part;
    int rc = find(r, "user", config->user, &part);
    rc = rc ? rc : refuse(r, &part, refusals, SW_ARRAY_SIZE(refusals));
    rc = rc ? rc : copy_path(r, &part, "client-certificate", &config->certificate_path);
    rc = rc ? rc : copy_data(r, &part, "client-certificate-data", &config->certificate_pem);
    rc = rc ? rc : copy_path(r, &part, "client-key", &config->key_path);
    rc = rc ? rc : copy_data(r, &part, "client-key-data", &config->key_pem);
    rc = rc ? rc : sw_kubeconfig_copy_text(r, &part, "token", &config->token);
    rc = rc ? rc : copy_path(r, &part, "tokenFile", &config->token_path);
    rc = rc ? rc : sw_kubeconfig_copy_text(r, &part, "username", &config->username);
    rc = rc ? rc : sw_kubeconfig_copy_text(r, &part, "password", &config->password);
    rc = rc ? rc : sw_kubeconfig_read_exec(r, &part, cluster, config);
    rc = rc ? rc : sw_kubeconfig_read_impersonation(r, &part, config);
    return rc ? rc : check_user(r, &part, config);
}

/* ---- the whole ---- */

static int choose_context(struct sw_kubeconfig_reader *r, struct sw_kubeconfig *config)
{
    int rc = 0;
    config->context = r->context ? sw_strdup(r->context) : NULL;
    for (size_t i = 0; i < r->count && !config->context && !rc; i++) {
        struct sw_kubeconfig_part root = {.doc = &r->docs[i], .node = r->docs[i].root};
        rc = sw_kubeconfig_copy_text(r, &root, "current-context", &config->context);
    }
    if (rc || config->context) {
        return rc;
    }
    SW_AUTO(char, sw_free) names = names_in(r, "contexts");
    return sw_error_set(r->error, SW_E_CONFIG,
                        "%s: it has no current-context; choose one with --context or "
                        "kubectl config use-context; there are: %s",
                        r->name, names);
}

static int read_context(struct sw_kubeconfig_reader *r, struct sw_kubeconfig *config)
{
    struct sw_kubeconfig_part part;
    int rc = choose_context(r, config);
    rc = rc ? rc : find(r, "context", config->context, &part);
    rc = rc ? rc : sw_kubeconfig_copy_text(r, &part, "cluster", &config->cluster);
    rc = rc ? rc : sw_kubeconfig_copy_text(r, &part, "user", &config->user);
    rc = rc ? rc : sw_kubeconfig_copy_text(r, &part, "namespace", &config->namespace_);
    if (!rc && !config->cluster) {
        rc = sw_error_set(r->error, SW_E_CONFIG, SW_PART_FORMAT "it names no cluster",
                          SW_PART_ARGS(&part));
    }
    return rc;
}

static int read_all(struct sw_kubeconfig_reader *r, struct sw_kubeconfig *config)
{
    bool is_empty = true;
    for (size_t i = 0; i < r->count; i++) {
        const struct sw_kubeconfig_doc *doc = &r->docs[i];
        is_empty = is_empty && !doc->root;
        if (doc->root && doc->root->type != SW_YAML_MAPPING) {
            return sw_error_set(r->error, SW_E_SYNTAX,
                                "%s:%zu: this is not a kubeconfig: it has no keys", doc->name,
                                doc->root->line);
        }
    }
    if (is_empty) {
        return sw_error_set(r->error, SW_E_CONFIG, "%s: it is empty", r->name);
    }
    struct sw_kubeconfig_part cluster;
    int rc = read_context(r, config);
    rc = rc ? rc : read_cluster(r, &cluster, config);
    /* Without a user: anonymous, as kubectl does it. */
    return rc || !config->user ? rc : read_user(r, &cluster, config);
}

static char *names_of(const struct sw_kubeconfig_text *texts, size_t count)
{
    struct sw_buf names;
    sw_buf_init(&names, SIZE_MAX);
    for (size_t i = 0; i < count; i++) {
        sw_buf_printf(&names, "%s%s", i > 0 ? ":" : "", texts[i].name);
    }
    char *text = sw_buf_steal(&names);
    sw_buf_done(&names);
    return text;
}

int sw_kubeconfig_parse(const struct sw_kubeconfig_text *texts, size_t count, const char *context,
                        struct sw_kubeconfig *ret_config, struct sw_error *error)
{
    struct sw_arena *arena = sw_arena_new(0);
    SW_AUTO(char, sw_free) name = names_of(texts, count);
    struct sw_kubeconfig_reader r = {
        .docs = sw_arena_alloc(arena, count * sizeof(*r.docs)),
        .name = name,
        .context = context,
        .error = error,
    };
    struct sw_kubeconfig config = {0};
    int rc = 0;
    for (; r.count < count && !rc; r.count++) {
        const struct sw_kubeconfig_text *text = &texts[r.count];
        struct sw_kubeconfig_doc *doc = &r.docs[r.count];
        *doc = (struct sw_kubeconfig_doc){.name = text->name, .folder = text->folder};
        rc = sw_yaml_parse(arena, text->name, text->text, text->len, &doc->root, error);
    }
    rc = rc ? rc : read_all(&r, &config);
    sw_arena_free(arena);
    if (rc) {
        sw_kubeconfig_done(&config);
        return rc;
    }
    *ret_config = config;
    return 0;
}

void sw_kubeconfig_done(struct sw_kubeconfig *config)
{
    sw_free_secret_text(config->key_pem);
    sw_free_secret_text(config->token);
    sw_free_secret_text(config->password);
    sw_free_secret_text(config->proxy_url); /* it may hold a password */
    for (size_t i = 0; i < config->impersonation_count; i++) {
        sw_free(config->impersonation[i].name);
        sw_free(config->impersonation[i].value);
    }
    sw_free(config->impersonation);
    sw_kubeconfig_exec_free(config->exec);
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
    sw_free(config->as);
    *config = (struct sw_kubeconfig){0};
}
