/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where credentials are looked for. The order is that of controller-runtime, which differs from
 * kubectl's in the end: a Pod is in its cluster before it is anywhere that ~/.kube/config says.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/util.h"
#include "kube/credentials.h"
#include "kube/kubeconfig.h"

enum {
    KUBECONFIG_LIMIT = 1 << 20,
    FILES_MAX = 64,
};

#define POD_FOLDER "/var/run/secrets/kubernetes.io/serviceaccount"

int sw_credentials_parse(struct sw_loop *loop, const char *name, const char *text, size_t len,
                         const char *folder, const struct sw_log *log,
                         struct sw_credentials **ret_credentials, struct sw_error *error)
{
    struct sw_kubeconfig_text one = {name, text, len, folder};
    struct sw_kubeconfig config;
    int rc = sw_kubeconfig_parse(&one, 1, NULL, &config, error);
    return rc ? rc : sw_credentials_open_take(loop, name, &config, log, ret_credentials, error);
}

/* ---- files ---- */

struct file {
    char *path;
    char *folder;
    char *text;
    size_t len;
};

struct files {
    struct file at[FILES_MAX];
    size_t count;
};

static void files_done(struct files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        sw_free(files->at[i].path);
        sw_free(files->at[i].folder);
        sw_free_secret(files->at[i].text, files->at[i].len);
    }
}

static int read_file(struct files *files, const char *path, size_t path_len, struct sw_error *error)
{
    SW_AUTO(char, sw_free) copy = sw_strndup(path, path_len);
    struct file *file = &files->at[files->count];
    if (files->count == FILES_MAX) {
        return sw_error_set(error, SW_E_CONFIG, "more than %d files are named", FILES_MAX);
    }
    int rc = sw_file_read(copy, KUBECONFIG_LIMIT, &file->text, &file->len, error);
    if (!rc) {
        const char *slash = strrchr(copy, '/');
        file->folder = slash ? sw_strndup(copy, (size_t)(slash - copy)) : sw_strdup(".");
        file->path = sw_steal(&copy);
        files->count++;
    }
    return rc;
}

/* Those that are not there say nothing; but one must be. */
static int read_list(struct files *files, const char *list, struct sw_error *error)
{
    int rc = 0;
    for (const char *at = list; at && !rc; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
        size_t len = strcspn(at, ":");
        rc = len > 0 ? read_file(files, at, len, error) : 0;
        rc = rc == -ENOENT ? 0 : rc;
    }
    if (!rc && files->count == 0) {
        rc = sw_error_set(error, -ENOENT,
                          strchr(list, ':') ? "none of %s is there" : "%s is not there", list);
    }
    return rc;
}

static int open_files(struct sw_loop *loop, const struct files *files, const char *context,
                      const struct sw_log *log, struct sw_credentials **ret_credentials,
                      struct sw_error *error)
{
    struct sw_kubeconfig_text texts[FILES_MAX];
    struct sw_kubeconfig config;
    for (size_t i = 0; i < files->count; i++) {
        const struct file *file = &files->at[i];
        texts[i] = (struct sw_kubeconfig_text){file->path, file->text, file->len, file->folder};
    }
    int rc = sw_kubeconfig_parse(texts, files->count, context, &config, error);
    return rc ? rc
              : sw_credentials_open_take(loop, files->at[0].path, &config, log, ret_credentials,
                                         error);
}

static int open_file(struct sw_loop *loop, const char *path, const char *context,
                     const struct sw_log *log, struct sw_credentials **ret_credentials,
                     struct sw_error *error)
{
    struct files files = {0};
    int rc = read_file(&files, path, strlen(path), error);
    rc = rc ? rc : open_files(loop, &files, context, log, ret_credentials, error);
    files_done(&files);
    return rc;
}

static int open_list(struct sw_loop *loop, const char *list, const char *context,
                     const struct sw_log *log, struct sw_credentials **ret_credentials,
                     struct sw_error *error)
{
    struct files files = {0};
    int rc = read_list(&files, list, error);
    rc = rc ? rc : open_files(loop, &files, context, log, ret_credentials, error);
    files_done(&files);
    return rc;
}

/* ---- a Pod ---- */

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
    int rc = sw_credentials_open_take(loop, "the Pod's ServiceAccount", &config, log,
                                      ret_credentials, error);
    if (rc == -ENOENT) {
        sw_error_prefix(error, "is automountServiceAccountToken switched off?");
    }
    return rc;
}

/* ---- the search ---- */

int sw_credentials_open(struct sw_loop *loop, const struct sw_credentials_options *options,
                        const struct sw_log *log, struct sw_credentials **ret_credentials,
                        struct sw_error *error)
{
    const char *context = options->context;
    const char *named = getenv("KUBECONFIG");
    const char *host = getenv("KUBERNETES_SERVICE_HOST");
    const char *port = getenv("KUBERNETES_SERVICE_PORT");
    const char *home = getenv("HOME");
    int rc;
    if (options->kubeconfig) {
        rc = open_file(loop, options->kubeconfig, context, log, ret_credentials, error);
        if (rc) {
            sw_error_prefix(error, "--kubeconfig");
        }
        return rc;
    }
    if (named && named[0]) {
        rc = open_list(loop, named, context, log, ret_credentials, error);
        if (rc) {
            sw_error_prefix(error, "KUBECONFIG");
        }
        return rc;
    }
    if (host && host[0]) {
        if (context) {
            return sw_error_set(error, SW_E_CONFIG,
                                "a context (\"%.64s\") is of a kubeconfig, but there is no "
                                "--kubeconfig or KUBECONFIG, and this is a Pod",
                                context);
        }
        return sw_credentials_open_pod(loop, host, port && port[0] ? port : "443", POD_FOLDER, log,
                                       ret_credentials, error);
    }
    if (!home || !home[0]) {
        return sw_error_set(error, -ENOENT,
                            "no API server: there is no --kubeconfig, KUBECONFIG, "
                            "KUBERNETES_SERVICE_HOST (this is not a Pod) or HOME");
    }
    SW_AUTO(char, sw_free) path = sw_asprintf("%s/.kube/config", home);
    rc = open_file(loop, path, context, log, ret_credentials, error);
    if (rc == -ENOENT) {
        sw_error_prefix(error, "no API server: there is no --kubeconfig, KUBECONFIG or "
                               "KUBERNETES_SERVICE_HOST (this is not a Pod), and");
    }
    return rc;
}
