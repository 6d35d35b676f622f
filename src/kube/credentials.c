/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credentials: where they come from, and keeping up with files that are replaced under us. What a
 * file held last stays in force until the file holds something usable again: a token file is empty
 * for a moment while some tools write it, and a certificate does not fit the key while only one of
 * the two has been replaced.
 *
 * Secrets are in no message; their memory is overwritten when it is freed.
 */
#include "kube/credentials.h"

#include <errno.h>
#include <slipway/json.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/util.h"
#include "kube/base64.h"
#include "kube/kubeconfig.h"
#include "net/tls.h"

enum {
    KUBECONFIG_LIMIT = 1 << 20,
    TOKEN_LIMIT = 64 << 10, /* tokens of some clouds exceed 1 KiB; all must fit in a header */
    PEM_LIMIT = 1 << 20,
};

/* client-go's period; the kubelet replaces a token when a fifth of its life is left, two minutes at
 * least. */
#define LOOK_AGAIN_MS UINT64_C(60000)
#define POD_FOLDER "/var/run/secrets/kubernetes.io/serviceaccount"

/* Text that is replaced as a whole and may hold a secret. */
struct material {
    char *ca_pem, *certificate_pem, *key_pem;
};

/* The transport, and whoever asks who we are. */
enum { LISTENERS_MAX = 4 };

struct sw_credentials {
    struct sw_loop *loop;
    struct sw_log log;
    struct sw_kubeconfig config; /* in a Pod: filled in from what is there */
    struct sw_url url;
    char *namespace_;

    struct material material; /* what tls was made of */
    struct sw_tls_config *tls;
    char *token;         /* as read last; NULL: none */
    char *authorization; /* NULL: none */
    char *subject;
    char *retired; /* an authorization that may still be borrowed */
    struct sw_defer retire;

    struct sw_file_watch *watch;
    struct listener {
        void (*fn)(void *arg); /* NULL: free */
        void *arg;
    } listeners[LISTENERS_MAX];
};

static void free_secret(char *text)
{
    sw_free_secret(text, text ? strlen(text) : 0);
}

static bool is_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* ---- the token ---- */

/* White space around it goes; a control character within would end the header it is sent in. */
static int take_token(const char *bytes, size_t len, char **ret_token)
{
    static const char white[] = " \t\r\n";
    while (len > 0 && strchr(white, bytes[len - 1])) {
        len--; /* a NUL counts as white here, and nowhere else */
    }
    while (len > 0 && strchr(white, bytes[0]) && bytes[0]) {
        bytes++;
        len--;
    }
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)bytes[i] <= ' ' || (unsigned char)bytes[i] >= 0x7f) {
            return SW_E_SYNTAX;
        }
    }
    if (len == 0) {
        return -ENODATA;
    }
    *ret_token = sw_strndup(bytes, len);
    return 0;
}

static int read_token_file(const char *path, char **ret_token, struct sw_error *error)
{
    char *bytes;
    size_t len;
    int rc = sw_file_read(path, TOKEN_LIMIT, &bytes, &len, error);
    if (rc) {
        return rc;
    }
    rc = take_token(bytes, len, ret_token);
    sw_free_secret(bytes, len);
    if (rc == -ENODATA) {
        sw_error_set(error, rc, "%s: the token file is empty", path);
    } else if (rc) {
        sw_error_set(error, rc, "%s: this is not a token: it has characters no token has", path);
    }
    return rc;
}

/* `sub` of the payload of a JWT, not verified: it is for messages and for rules about ourselves. */
static char *subject_of(const char *token)
{
    const char *dot = token ? strchr(token, '.') : NULL;
    const char *end = dot ? strchr(dot + 1, '.') : NULL;
    char *payload;
    size_t len;
    if (!end || sw_base64_decode(dot + 1, (size_t)(end - dot - 1), &payload, &len)) {
        return NULL;
    }
    struct sw_arena *arena = sw_arena_new(0);
    struct sw_json *claims;
    char *subject = NULL;
    if (sw_json_parse(arena, payload, len, &claims, NULL) == 0) {
        const char *sub = sw_json_get_string(claims, "sub");
        subject = sub ? sw_strdup(sub) : NULL;
    }
    sw_arena_free(arena);
    sw_free_secret(payload, len);
    return subject;
}

static void on_retire(struct sw_defer *defer)
{
    struct sw_credentials *credentials = container_of(defer, struct sw_credentials, retire);
    free_secret(sw_steal(&credentials->retired));
}

static void set_authorization(struct sw_credentials *credentials, char *authorization_taken)
{
    /* A second change in the same turn: whoever borrowed before the first has been told. */
    free_secret(credentials->retired);
    credentials->retired = credentials->authorization;
    credentials->authorization = authorization_taken;
    sw_defer_start(&credentials->retire);
}

static void set_token(struct sw_credentials *credentials, char *token_taken)
{
    free_secret(credentials->token);
    sw_free(credentials->subject);
    credentials->token = token_taken;
    credentials->subject = subject_of(token_taken);
    set_authorization(credentials, sw_asprintf("Bearer %s", token_taken));
}

/* "Basic ..." (RFC 7617). */
static char *basic_authorization(const char *username, const char *password)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *plain = sw_asprintf("%s:%s", username, password ? password : "");
    size_t len = strlen(plain);
    struct sw_buf text;
    sw_buf_init(&text, SIZE_MAX);
    sw_buf_puts(&text, "Basic ");
    for (size_t i = 0; i < len; i += 3) {
        size_t left = SW_MIN(len - i, (size_t)3);
        unsigned char in[3] = {0};
        memcpy(in, plain + i, left);
        char out[4] = {digits[in[0] >> 2], digits[(in[0] & 3) << 4 | in[1] >> 4],
                       left > 1 ? digits[(in[1] & 15) << 2 | in[2] >> 6] : '=',
                       left > 2 ? digits[in[2] & 63] : '='};
        sw_buf_append(&text, out, sizeof(out));
    }
    free_secret(plain);
    char *authorization = sw_buf_steal(&text);
    sw_buf_done(&text);
    return authorization;
}

/* At the start: the file, else what the kubeconfig holds itself. */
static int open_token(struct sw_credentials *credentials, struct sw_error *error)
{
    const struct sw_kubeconfig *config = &credentials->config;
    if (config->username) {
        set_authorization(credentials, basic_authorization(config->username, config->password));
        return 0;
    }
    char *token;
    int rc = config->token_path ? read_token_file(config->token_path, &token, error) : -ENOENT;
    if (rc && config->token) {
        if (config->token_path) {
            sw_log_warn(&credentials->log, "token file cannot be used, taking the token beside it",
                        SW_STR("path", config->token_path), SW_ERR(rc));
        }
        rc = take_token(config->token, strlen(config->token), &token);
        if (rc) {
            sw_error_set(error, rc, "user \"%s\": its token has characters no token has",
                         config->user);
        }
    } else if (rc && !config->token_path) {
        return 0; /* a client certificate, or anonymous */
    }
    if (!rc) {
        set_token(credentials, token);
    }
    return rc;
}

static bool reload_token(struct sw_credentials *credentials)
{
    const char *path = credentials->config.token_path;
    char *token;
    struct sw_error error;
    if (!path) {
        return false;
    }
    if (read_token_file(path, &token, &error)) {
        sw_log_warn(&credentials->log, "token cannot be read again, keeping the one that was there",
                    SW_STR("why", error.text));
        return false;
    }
    if (is_same(token, credentials->token)) {
        free_secret(token);
        return false;
    }
    set_token(credentials, token);
    return true;
}

/* ---- TLS ---- */

static void material_done(struct material *material)
{
    sw_free(material->ca_pem);
    sw_free(material->certificate_pem);
    free_secret(material->key_pem);
    *material = (struct material){0};
}

static int read_pem(const char *pem, const char *path, char **ret_pem, struct sw_error *error)
{
    size_t len;
    if (!pem && path) {
        return sw_file_read(path, PEM_LIMIT, ret_pem, &len, error);
    }
    *ret_pem = pem ? sw_strdup(pem) : NULL;
    return 0;
}

static int read_material(const struct sw_kubeconfig *config, struct material *ret_material,
                         struct sw_error *error)
{
    struct material material = {0};
    int rc = read_pem(config->ca_pem, config->ca_path, &material.ca_pem, error);
    if (!rc) {
        rc = read_pem(config->certificate_pem, config->certificate_path, &material.certificate_pem,
                      error);
    }
    if (!rc) {
        rc = read_pem(config->key_pem, config->key_path, &material.key_pem, error);
    }
    if (rc) {
        material_done(&material);
        return rc;
    }
    *ret_material = material;
    return 0;
}

/* Reads the files and makes a configuration of them. *ret_is_new false: they are as they were. */
static int load_tls(struct sw_credentials *credentials, bool *ret_is_new, struct sw_error *error)
{
    struct material material;
    *ret_is_new = false;
    int rc = read_material(&credentials->config, &material, error);
    if (rc) {
        return rc;
    }
    const struct material *old = &credentials->material;
    if (credentials->tls && is_same(material.ca_pem, old->ca_pem) &&
        is_same(material.certificate_pem, old->certificate_pem) &&
        is_same(material.key_pem, old->key_pem)) {
        material_done(&material);
        return 0;
    }
    struct sw_tls_client_options options = {
        .ca_pem = material.ca_pem,
        .certificate_pem = material.certificate_pem,
        .key_pem = material.key_pem,
        .insecure_skip_verify = credentials->config.is_insecure,
    };
    struct sw_tls_config *tls;
    rc = sw_tls_client_config_new(&options, &tls, error);
    if (rc) {
        material_done(&material);
        return rc;
    }
    sw_tls_config_unref(credentials->tls);
    material_done(&credentials->material);
    credentials->tls = tls;
    credentials->material = material;
    *ret_is_new = true;
    return 0;
}

static bool reload_tls(struct sw_credentials *credentials)
{
    struct sw_error error;
    bool is_new;
    if (!credentials->url.is_https) {
        return false;
    }
    if (load_tls(credentials, &is_new, &error)) {
        sw_log_warn(&credentials->log, "certificates cannot be read again, keeping those in use",
                    SW_STR("why", error.text));
        return false;
    }
    if (is_new) {
        sw_log_info(&credentials->log, "certificates were replaced, new connections use them");
    }
    return is_new;
}

/* ---- life ---- */

bool sw_credentials_reload(struct sw_credentials *credentials)
{
    bool has_token = reload_token(credentials);
    bool has_tls = reload_tls(credentials);
    for (size_t i = 0; (has_token || has_tls) && i < LISTENERS_MAX; i++) {
        if (credentials->listeners[i].fn) {
            credentials->listeners[i].fn(credentials->listeners[i].arg);
        }
    }
    return has_token || has_tls;
}

static void on_file(void *arg)
{
    sw_credentials_reload(arg);
}

static int watch_files(struct sw_credentials *credentials, struct sw_error *error)
{
    const struct sw_kubeconfig *config = &credentials->config;
    const char *paths[4];
    size_t count = 0;
    const char *const all[] = {
        config->token_path,
        config->ca_pem ? NULL : config->ca_path,
        config->certificate_pem ? NULL : config->certificate_path,
        config->key_pem ? NULL : config->key_path,
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(all); i++) {
        if (all[i]) {
            paths[count++] = all[i];
        }
    }
    if (count == 0) {
        return 0;
    }
    int rc = sw_file_watch_open(credentials->loop, paths, count, LOOK_AGAIN_MS, on_file,
                                credentials, &credentials->watch);
    return rc ? sw_error_set(error, rc, "credential files cannot be watched: %s", sw_strerror(rc))
              : 0;
}

/* config is taken, also on failure. */
static int open_config(struct sw_loop *loop, const char *name, struct sw_kubeconfig *config_taken,
                       const struct sw_log *log, struct sw_credentials **ret_credentials,
                       struct sw_error *error)
{
    struct sw_credentials *credentials = SW_NEW(struct sw_credentials);
    credentials->loop = loop;
    credentials->log = *log;
    credentials->log.name = "credentials";
    credentials->config = *config_taken;
    const struct sw_kubeconfig *config = &credentials->config;
    credentials->namespace_ = sw_strdup(config->namespace_ ? config->namespace_ : "default");
    sw_defer_init(&credentials->retire, loop, on_retire);
    bool is_new;
    int rc = sw_url_parse(config->server, &credentials->url, error);
    if (rc) {
        sw_error_prefix(error, "server \"%.128s\"", config->server);
    }
    if (!rc && credentials->url.is_https) {
        rc = load_tls(credentials, &is_new, error);
    }
    rc = rc ? rc : open_token(credentials, error);
    rc = rc ? rc : watch_files(credentials, error);
    if (rc) {
        sw_error_prefix(error, "%s", name);
        sw_credentials_close(credentials);
        return rc;
    }
    if (config->is_insecure) {
        sw_log_warn(&credentials->log, "the API server's certificate is not verified: whoever is "
                                       "in between reads and writes everything");
    }
    *ret_credentials = credentials;
    return 0;
}

void sw_credentials_close(struct sw_credentials *credentials)
{
    if (!credentials) {
        return;
    }
    sw_file_watch_close(credentials->watch);
    sw_defer_stop(&credentials->retire);
    sw_tls_config_unref(credentials->tls);
    material_done(&credentials->material);
    free_secret(credentials->token);
    free_secret(credentials->authorization);
    free_secret(credentials->retired);
    sw_free(credentials->subject);
    sw_free(credentials->namespace_);
    sw_url_done(&credentials->url);
    sw_kubeconfig_done(&credentials->config);
    sw_free(credentials);
}

/* ---- where from ---- */

int sw_credentials_parse(struct sw_loop *loop, const char *name, const char *text, size_t len,
                         const char *folder, const struct sw_log *log,
                         struct sw_credentials **ret_credentials, struct sw_error *error)
{
    struct sw_kubeconfig config;
    int rc = sw_kubeconfig_parse(name, text, len, folder, &config, error);
    return rc ? rc : open_config(loop, name, &config, log, ret_credentials, error);
}

static int open_kubeconfig(struct sw_loop *loop, const char *path, const struct sw_log *log,
                           struct sw_credentials **ret_credentials, struct sw_error *error)
{
    char *text;
    size_t len;
    int rc = sw_file_read(path, KUBECONFIG_LIMIT, &text, &len, error);
    if (rc) {
        return rc;
    }
    const char *slash = strrchr(path, '/');
    SW_AUTO(char, sw_free)
    folder = slash ? sw_strndup(path, (size_t)(slash - path)) : sw_strdup(".");
    rc = sw_credentials_parse(loop, path, text, len, folder, log, ret_credentials, error);
    sw_free_secret(text, len);
    return rc;
}

int sw_credentials_open_pod(struct sw_loop *loop, const char *host, const char *port,
                            const char *folder, const struct sw_log *log,
                            struct sw_credentials **ret_credentials, struct sw_error *error)
{
    bool is_v6 = strchr(host, ':');
    struct sw_kubeconfig config = {
        .server = sw_asprintf(is_v6 ? "https://[%s]:%s" : "https://%s:%s", host, port),
        .ca_path = sw_asprintf("%s/ca.crt", folder),
        .token_path = sw_asprintf("%s/token", folder),
    };
    SW_AUTO(char, sw_free) path = sw_asprintf("%s/namespace", folder);
    char *text;
    size_t len;
    if (sw_file_read(path, 1024, &text, &len, NULL) == 0) {
        len = strcspn(text, " \t\r\n");
        config.namespace_ = len > 0 ? sw_strndup(text, len) : NULL;
        sw_free(text);
    }
    int rc = open_config(loop, "the Pod's ServiceAccount", &config, log, ret_credentials, error);
    if (rc == -ENOENT) {
        sw_error_prefix(error, "is automountServiceAccountToken switched off?");
    }
    return rc;
}

/* KUBECONFIG may be a list for kubectl, which merges; that is not done here. */
static int open_named(struct sw_loop *loop, const char *path, const struct sw_log *log,
                      struct sw_credentials **ret_credentials, struct sw_error *error)
{
    int rc = open_kubeconfig(loop, path, log, ret_credentials, error);
    if (rc == -ENOENT && strchr(path, ':')) {
        return sw_error_set(
            error, SW_E_CONFIG,
            "KUBECONFIG names several files; slipway reads one: write them into one "
            "with kubectl config view --flatten");
    }
    return rc;
}

int sw_credentials_open(struct sw_loop *loop, const char *kubeconfig, const struct sw_log *log,
                        struct sw_credentials **ret_credentials, struct sw_error *error)
{
    const char *named = getenv("KUBECONFIG");
    const char *host = getenv("KUBERNETES_SERVICE_HOST");
    const char *port = getenv("KUBERNETES_SERVICE_PORT");
    const char *home = getenv("HOME");
    int rc;
    if (kubeconfig) {
        rc = open_kubeconfig(loop, kubeconfig, log, ret_credentials, error);
        if (rc) {
            sw_error_prefix(error, "--kubeconfig");
        }
        return rc;
    }
    if (named && named[0]) {
        rc = open_named(loop, named, log, ret_credentials, error);
        if (rc) {
            sw_error_prefix(error, "KUBECONFIG");
        }
        return rc;
    }
    if (host && host[0]) {
        return sw_credentials_open_pod(loop, host, port && port[0] ? port : "443", POD_FOLDER, log,
                                       ret_credentials, error);
    }
    if (!home || !home[0]) {
        return sw_error_set(error, -ENOENT,
                            "no API server: there is no --kubeconfig, KUBECONFIG, "
                            "KUBERNETES_SERVICE_HOST (this is not a Pod) or HOME");
    }
    SW_AUTO(char, sw_free) path = sw_asprintf("%s/.kube/config", home);
    rc = open_kubeconfig(loop, path, log, ret_credentials, error);
    if (rc == -ENOENT) {
        sw_error_prefix(error, "no API server: there is no --kubeconfig, KUBECONFIG or "
                               "KUBERNETES_SERVICE_HOST (this is not a Pod), and");
    }
    return rc;
}

/* ---- what is known ---- */

const struct sw_url *sw_credentials_server(const struct sw_credentials *credentials)
{
    return &credentials->url;
}

const char *sw_credentials_tls_name(const struct sw_credentials *credentials)
{
    return credentials->config.tls_name;
}

struct sw_tls_config *sw_credentials_tls(const struct sw_credentials *credentials)
{
    return credentials->tls;
}

const char *sw_credentials_authorization(const struct sw_credentials *credentials)
{
    return credentials->authorization;
}

const char *sw_credentials_namespace(const struct sw_credentials *credentials)
{
    return credentials->namespace_;
}

const char *sw_credentials_subject(const struct sw_credentials *credentials)
{
    return credentials->subject;
}

void sw_credentials_on_change(struct sw_credentials *credentials, void (*fn)(void *arg), void *arg)
{
    size_t i = 0;
    while (i < LISTENERS_MAX && credentials->listeners[i].fn) {
        i++;
    }
    sw_assert(i < LISTENERS_MAX);
    credentials->listeners[i] = (struct listener){fn, arg};
}

void sw_credentials_off_change(struct sw_credentials *credentials, void (*fn)(void *arg), void *arg)
{
    for (size_t i = 0; i < LISTENERS_MAX; i++) {
        struct listener *listener = &credentials->listeners[i];
        if (listener->fn == fn && listener->arg == arg) {
            *listener = (struct listener){0};
        }
    }
}
