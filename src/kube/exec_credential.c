/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ExecCredential, both ways.
 */
#include "kube/exec_credential.h"

#include <errno.h>
#include <slipway/json.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/time.h"
#include "base/util.h"
#include "kube/base64.h"
#include "kube/kubeconfig.h"
#include "kube/token.h"

/* ---- the answer ---- */

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static int check_version(const struct sw_json *root, const char *api_version,
                         struct sw_error *error)
{
    const char *kind = or_empty(sw_json_get_string(root, "kind"));
    const char *version = or_empty(sw_json_get_string(root, "apiVersion"));
    if (strcmp(kind, "ExecCredential") != 0) {
        return sw_error_set(error, SW_E_SYNTAX, "what it printed is JSON, but no ExecCredential");
    }
    if (strcmp(version, api_version) != 0) {
        return sw_error_set(error, SW_E_SYNTAX,
                            "it speaks apiVersion \"%.64s\", but the kubeconfig says \"%s\"; write "
                            "there what the plugin speaks, or update the plugin",
                            version, api_version);
    }
    return 0;
}

/* A text that is not empty, as new memory; NULL where there is none. */
static char *copy_text(const struct sw_json *status, const char *key)
{
    const char *text = sw_json_get_string(status, key);
    return text && text[0] ? sw_strdup(text) : NULL;
}

static int read_status(const struct sw_json *status, struct sw_exec_credential *credential,
                       struct sw_error *error)
{
    const char *token = sw_json_get_string(status, "token");
    const char *expires = sw_json_get_string(status, "expirationTimestamp");
    credential->certificate_pem = copy_text(status, "clientCertificateData");
    credential->key_pem = copy_text(status, "clientKeyData");
    credential->expires_us = INT64_MAX;
    int rc = token ? sw_token_take(token, strlen(token), &credential->token) : -ENODATA;
    if (rc && rc != -ENODATA) {
        return sw_error_set(error, SW_E_SYNTAX, "its token has characters that no token has");
    }
    if (!credential->certificate_pem != !credential->key_pem) {
        return sw_error_set(error, SW_E_SYNTAX, "it gave a client certificate or a key, not both");
    }
    if (!credential->token && !credential->key_pem) {
        return sw_error_set(error, SW_E_SYNTAX, "it gave neither a token nor a client certificate");
    }
    if (expires && sw_time_parse(expires, strlen(expires), &credential->expires_us)) {
        return sw_error_set(error, SW_E_SYNTAX, "its expirationTimestamp is not a time: \"%.40s\"",
                            expires);
    }
    return 0;
}

static int read_root(const struct sw_json *root, const char *api_version,
                     struct sw_exec_credential *credential, struct sw_error *error)
{
    int rc = check_version(root, api_version, error);
    const struct sw_json *status = sw_json_get(root, "status");
    if (!rc && sw_json_type(status) != SW_JSON_OBJECT) {
        rc = sw_error_set(error, SW_E_SYNTAX, "its ExecCredential has no status");
    }
    return rc ? rc : read_status(status, credential, error);
}

int sw_exec_credential_parse(const char *api_version, const char *bytes, size_t len,
                             struct sw_exec_credential *ret_credential, struct sw_error *error)
{
    struct sw_exec_credential credential = {0};
    struct sw_arena *arena = sw_arena_new(0);
    struct sw_json *root;
    int rc;
    if (strspn(bytes, " \t\r\n") == len) {
        rc = sw_error_set(error, SW_E_SYNTAX, "it printed nothing");
    } else if (sw_json_parse(arena, bytes, len, &root, NULL)) {
        rc = sw_error_set(error, SW_E_SYNTAX, "what it printed is not JSON");
    } else {
        rc = read_root(root, api_version, &credential, error);
    }
    sw_arena_free(arena);
    if (rc) {
        sw_exec_credential_done(&credential);
        return rc;
    }
    *ret_credential = credential;
    return 0;
}

void sw_exec_credential_done(struct sw_exec_credential *credential)
{
    sw_free_secret_text(credential->token);
    sw_free_secret_text(credential->key_pem);
    sw_free(credential->certificate_pem);
    *credential = (struct sw_exec_credential){0};
}

/* ---- the question ---- */

static void set_if(struct sw_json *object, const char *key, const char *text)
{
    if (text) {
        sw_json_set_string(object, key, text);
    }
}

static void add_cluster(struct sw_json *cluster, struct sw_arena *arena,
                        const struct sw_kubeconfig *config, const char *ca_pem)
{
    struct sw_json *extension;
    sw_json_set_string(cluster, "server", config->server);
    set_if(cluster, "tls-server-name", config->tls_name);
    set_if(cluster, "proxy-url", config->proxy_url);
    if (config->is_insecure) {
        sw_json_set_bool(cluster, "insecure-skip-tls-verify", true);
    }
    if (ca_pem) {
        struct sw_buf data;
        sw_buf_init(&data, SIZE_MAX);
        sw_base64_encode(&data, ca_pem, strlen(ca_pem));
        sw_json_set_string(cluster, "certificate-authority-data", data.bytes);
        sw_buf_done(&data);
    }
    const char *text = config->exec->cluster_config;
    if (text && sw_json_parse(arena, text, strlen(text), &extension, NULL) == 0) {
        sw_json_set(cluster, "config", extension);
    }
}

char *sw_exec_info(const struct sw_kubeconfig *config, const char *ca_pem)
{
    struct sw_arena *arena = sw_arena_new(0);
    struct sw_json *root = sw_json_object(arena);
    sw_json_set_string(root, "kind", "ExecCredential");
    sw_json_set_string(root, "apiVersion", config->exec->api_version);
    struct sw_json *spec = sw_json_set_object(root, "spec");
    if (config->exec->provides_cluster) {
        add_cluster(sw_json_set_object(spec, "cluster"), arena, config, ca_pem);
    }
    sw_json_set_bool(spec, "interactive", false);
    char *text = sw_strdup(sw_json_dump(root, arena, NULL));
    sw_arena_free(arena);
    return text;
}
