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
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/util.h"
#include "kube/exec_credential.h"
#include "kube/exec_plugin.h"
#include "kube/kubeconfig.h"
#include "kube/token.h"
#include "net/http.h"
#include "net/tls.h"

enum {
    TOKEN_LIMIT = 64 << 10, /* tokens of some clouds exceed 1 KiB; all must fit in a header */
    PEM_LIMIT = 1 << 20,
};

/* client-go's period; the kubelet replaces a token when a fifth of its life is left, two minutes at
 * least. */
#define LOOK_AGAIN_MS UINT64_C(60000)

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

    struct sw_exec_plugin *plugin;         /* NULL: somebody else says who we are */
    struct sw_exec_credential from_plugin; /* what tls and token are made of then */
    bool has_from_plugin;
    bool is_refused; /* a better one is being asked for */
    unsigned number;

    struct sw_file_watch *watch;
    struct listener {
        void (*fn)(void *arg); /* NULL: free */
        void *arg;
    } listeners[LISTENERS_MAX];
};

static bool is_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* ---- the token ---- */

static int read_token_file(const char *path, char **ret_token, struct sw_error *error)
{
    char *bytes;
    size_t len;
    int rc = sw_file_read(path, TOKEN_LIMIT, &bytes, &len, error);
    if (rc) {
        return rc;
    }
    rc = sw_token_take(bytes, len, ret_token);
    sw_free_secret(bytes, len);
    if (rc == -ENODATA) {
        sw_error_set(error, rc, "%s: the token file is empty", path);
    } else if (rc) {
        sw_error_set(error, rc, "%s: this is not a token: it has characters no token has", path);
    }
    return rc;
}

static void on_retire(struct sw_defer *defer)
{
    struct sw_credentials *credentials = container_of(defer, struct sw_credentials, retire);
    sw_free_secret_text(sw_steal(&credentials->retired));
}

static void set_authorization(struct sw_credentials *credentials, char *authorization_taken)
{
    /* A second change in the same turn: whoever borrowed before the first has been told. */
    sw_free_secret_text(credentials->retired);
    credentials->retired = credentials->authorization;
    credentials->authorization = authorization_taken;
    sw_defer_start(&credentials->retire);
}

/* NULL: there is none any more. */
static void set_token(struct sw_credentials *credentials, char *token_taken)
{
    sw_free_secret_text(credentials->token);
    sw_free(credentials->subject);
    credentials->token = token_taken;
    credentials->subject = sw_token_subject(token_taken);
    set_authorization(credentials, token_taken ? sw_asprintf("Bearer %s", token_taken) : NULL);
}

/* At the start: the file, else what the kubeconfig holds itself. */
static int open_token(struct sw_credentials *credentials, struct sw_error *error)
{
    const struct sw_kubeconfig *config = &credentials->config;
    if (config->username) {
        set_authorization(
            credentials, sw_http_basic(config->username, config->password ? config->password : ""));
        return 0;
    }
    char *token;
    int rc = config->token_path ? read_token_file(config->token_path, &token, error) : -ENOENT;
    if (rc && config->token) {
        if (config->token_path) {
            sw_log_warn(&credentials->log, "token file cannot be used, taking the token beside it",
                        SW_STR("path", config->token_path), SW_ERR(rc));
        }
        rc = sw_token_take(config->token, strlen(config->token), &token);
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
        sw_free_secret_text(token);
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
    sw_free_secret_text(material->key_pem);
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

/* A plugin is asked only where the kubeconfig has no certificate. */
static int read_material(const struct sw_credentials *credentials,
                         const struct sw_exec_credential *from_plugin,
                         struct material *ret_material, struct sw_error *error)
{
    const struct sw_kubeconfig *config = &credentials->config;
    const char *certificate_pem = config->certificate_pem;
    const char *key_pem = config->key_pem;
    if (from_plugin->certificate_pem) {
        certificate_pem = from_plugin->certificate_pem;
        key_pem = from_plugin->key_pem;
    }
    struct material material = {0};
    int rc = read_pem(config->ca_pem, config->ca_path, &material.ca_pem, error);
    if (!rc) {
        rc = read_pem(certificate_pem, config->certificate_path, &material.certificate_pem, error);
    }
    if (!rc) {
        rc = read_pem(key_pem, config->key_path, &material.key_pem, error);
    }
    if (rc) {
        material_done(&material);
        return rc;
    }
    *ret_material = material;
    return 0;
}

/* Reads the files and makes a configuration of them. *ret_is_new false: they are as they were. */
static int load_tls(struct sw_credentials *credentials,
                    const struct sw_exec_credential *from_plugin, bool *ret_is_new,
                    struct sw_error *error)
{
    struct material material;
    *ret_is_new = false;
    int rc = read_material(credentials, from_plugin, &material, error);
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
    if (load_tls(credentials, &credentials->from_plugin, &is_new, &error)) {
        sw_log_warn(&credentials->log, "certificates cannot be read again, keeping those in use",
                    SW_STR("why", error.text));
        return false;
    }
    if (is_new) {
        sw_log_info(&credentials->log, "certificates were replaced, new connections use them");
    }
    return is_new;
}

/* ---- whoever is told ---- */

static void tell(struct sw_credentials *credentials)
{
    for (size_t i = 0; i < LISTENERS_MAX; i++) {
        if (credentials->listeners[i].fn) {
            credentials->listeners[i].fn(credentials->listeners[i].arg);
        }
    }
}

bool sw_credentials_reload(struct sw_credentials *credentials)
{
    bool has_token = reload_token(credentials);
    bool has_tls = reload_tls(credentials);
    if (has_token || has_tls) {
        credentials->number++;
        tell(credentials);
    }
    return has_token || has_tls;
}

/* ---- a plugin's ---- */

/* Some clocks differ from ours; those credentials may be good nevertheless. */
#define NOT_EXPIRED_MS INT64_C(60000)

static void expect_expiry(struct sw_credentials *credentials, struct sw_exec_credential *got)
{
    int64_t now_us = sw_wall_us(credentials->loop);
    int64_t until_us = got->expires_us;
    if (until_us <= now_us) {
        sw_log_warn(&credentials->log,
                    "the credential plugin gave credentials that have expired already, trying "
                    "them: is the clock right?");
        until_us = now_us + NOT_EXPIRED_MS * 1000;
        got->expires_us = INT64_MAX;
    }
    sw_exec_plugin_expect(credentials->plugin, until_us);
}

static int on_plugin(void *arg, struct sw_exec_credential *got, struct sw_error *error)
{
    struct sw_credentials *credentials = arg;
    bool has_tls = false;
    int rc = credentials->url.is_https ? load_tls(credentials, got, &has_tls, error) : 0;
    if (rc) {
        return rc;
    }
    bool has_token = !is_same(got->token, credentials->token);
    if (has_token) {
        set_token(credentials, got->token ? sw_strdup(got->token) : NULL);
    }
    expect_expiry(credentials, got);
    sw_log_info(&credentials->log, "credentials from the plugin",
                SW_BOOL("new", has_token || has_tls));
    credentials->number += has_token || has_tls;
    credentials->has_from_plugin = true;
    struct sw_exec_credential old = credentials->from_plugin;
    credentials->from_plugin = *got;
    *got = old;
    return 0;
}

static void on_plugin_done(void *arg)
{
    struct sw_credentials *credentials = arg;
    credentials->is_refused = false; /* where there is no better one this is tried again */
    tell(credentials);
}

static int open_plugin(struct sw_credentials *credentials, struct sw_error *error)
{
    static const struct sw_exec_plugin_events events = {on_plugin, on_plugin_done};
    const struct sw_kubeconfig *config = &credentials->config;
    if (!config->exec) {
        return 0;
    }
    if (config->token || config->token_path || config->username || config->certificate_pem ||
        config->certificate_path) {
        sw_log_info(&credentials->log,
                    "the kubeconfig says itself who we are, its credential plugin is not asked",
                    SW_STR("user", config->user));
        return 0;
    }
    return sw_exec_plugin_open(credentials->loop, config, &credentials->log, &events, credentials,
                               &credentials->plugin, error);
}

int sw_credentials_prepare(struct sw_credentials *credentials, struct sw_error *error)
{
    if (!credentials->plugin ||
        (credentials->has_from_plugin && !credentials->is_refused &&
         sw_wall_us(credentials->loop) < credentials->from_plugin.expires_us)) {
        return 0;
    }
    if (sw_exec_plugin_run(credentials->plugin, credentials->material.ca_pem)) {
        return -EAGAIN;
    }
    *error = *sw_exec_plugin_error(credentials->plugin);
    return error->code;
}

bool sw_credentials_refresh(struct sw_credentials *credentials)
{
    if (!credentials->plugin) {
        return sw_credentials_reload(credentials);
    }
    credentials->is_refused =
        sw_exec_plugin_run_refused(credentials->plugin, credentials->material.ca_pem);
    return credentials->is_refused;
}

bool sw_credentials_may_wait(const struct sw_credentials *credentials)
{
    return credentials->plugin;
}

unsigned sw_credentials_number(const struct sw_credentials *credentials)
{
    return credentials->number;
}

/* ---- life ---- */

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

int sw_credentials_open_take(struct sw_loop *loop, const char *name,
                             struct sw_kubeconfig *config_taken, const struct sw_log *log,
                             struct sw_credentials **ret_credentials, struct sw_error *error)
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
        rc = load_tls(credentials, &credentials->from_plugin, &is_new, error);
    }
    rc = rc ? rc : open_token(credentials, error);
    rc = rc ? rc : open_plugin(credentials, error);
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
    sw_exec_plugin_close(credentials->plugin);
    sw_exec_credential_done(&credentials->from_plugin);
    sw_defer_stop(&credentials->retire);
    sw_tls_config_unref(credentials->tls);
    material_done(&credentials->material);
    sw_free_secret_text(credentials->token);
    sw_free_secret_text(credentials->authorization);
    sw_free_secret_text(credentials->retired);
    sw_free(credentials->subject);
    sw_free(credentials->namespace_);
    sw_url_done(&credentials->url);
    sw_kubeconfig_done(&credentials->config);
    sw_free(credentials);
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

size_t sw_credentials_impersonation(const struct sw_credentials *credentials,
                                    const struct sw_kubeconfig_header **ret_headers)
{
    *ret_headers = credentials->config.impersonation;
    return credentials->config.impersonation_count;
}

const char *sw_credentials_proxy(const struct sw_credentials *credentials)
{
    return credentials->config.proxy_url;
}

const char *sw_credentials_namespace(const struct sw_credentials *credentials)
{
    return credentials->namespace_;
}

const char *sw_credentials_subject(const struct sw_credentials *credentials)
{
    const char *as = credentials->config.as;
    return as ? as : credentials->subject;
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
