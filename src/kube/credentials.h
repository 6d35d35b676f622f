/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the API server is and who we are: from the ServiceAccount files in a Pod, or from a
 * kubeconfig. The files that hold token, CA and client certificate are looked at again when they
 * change, every 60 s and at a 401, and users are told; the kubeconfig itself is read once.
 */
#ifndef SW_KUBE_CREDENTIALS_H
#define SW_KUBE_CREDENTIALS_H

#include <stdbool.h>
#include <stddef.h>

#include "net/url.h"

struct sw_credentials;
struct sw_error;
struct sw_kubeconfig;
struct sw_kubeconfig_header;
struct sw_log;
struct sw_loop;
struct sw_tls_config;

/* Where to look; zeroed memory means that nothing was said. */
struct sw_credentials_options {
    const char *kubeconfig; /* of the flag; NULL: not given */
    const char *context;    /* of the kubeconfig; NULL: its current one. Not in a Pod */
};

/* Search order: kubeconfig if not NULL; the environment's KUBECONFIG, a list of files (colons
 * between them) that are merged, of which some may be missing; in-cluster
 * (KUBERNETES_SERVICE_HOST); ~/.kube/config. The error says what was looked at and why it did not
 * do. */
int sw_credentials_open(struct sw_loop *loop, const struct sw_credentials_options *options,
                        const struct sw_log *log, struct sw_credentials **ret_credentials,
                        struct sw_error *error);
/* From what was read already, which is taken, also on failure. name: for messages. */
int sw_credentials_open_take(struct sw_loop *loop, const char *name,
                             struct sw_kubeconfig *config_taken, const struct sw_log *log,
                             struct sw_credentials **ret_credentials, struct sw_error *error);
/* From the text of a kubeconfig; relative paths in it are relative to folder. */
int sw_credentials_parse(struct sw_loop *loop, const char *name, const char *text, size_t len,
                         const char *folder, const struct sw_log *log,
                         struct sw_credentials **ret_credentials, struct sw_error *error);
/* What sw_credentials_open does in a Pod: host and port as in the environment, folder with the
 * files token, ca.crt and namespace. */
int sw_credentials_open_pod(struct sw_loop *loop, const char *host, const char *port,
                            const char *folder, const struct sw_log *log,
                            struct sw_credentials **ret_credentials, struct sw_error *error);
void sw_credentials_close(struct sw_credentials *credentials); /* takes NULL */

const struct sw_url *sw_credentials_server(const struct sw_credentials *credentials);
const char *sw_credentials_tls_name(const struct sw_credentials *credentials); /* NULL: the host */
struct sw_tls_config *
sw_credentials_tls(const struct sw_credentials *credentials); /* NULL: plain http; borrowed */
/* "Bearer ..." or "Basic ..."; NULL: none (a client certificate, or anonymous). A secret: never
 * logged. Borrowed until the loop turns or the credentials are read again. */
const char *sw_credentials_authorization(const struct sw_credentials *credentials);
/* The headers that say for whom we speak; borrowed for its life. */
size_t sw_credentials_impersonation(const struct sw_credentials *credentials,
                                    const struct sw_kubeconfig_header **ret_headers);
/* The cluster's proxy-url, a secret where a password is in it; NULL: none is named. */
const char *sw_credentials_proxy(const struct sw_credentials *credentials);
/* Of the context, or of the Pod; "default" where neither says. */
const char *sw_credentials_namespace(const struct sw_credentials *credentials);
/* Whom we impersonate, else the token's `sub` (a JWT is decoded, not verified):
 * "system:serviceaccount:kube-system:slipway"; NULL where there is no token or it is opaque. */
const char *sw_credentials_subject(const struct sw_credentials *credentials);
/* Reads everything again; true if anything differs. An empty or missing token file keeps the token
 * that is there. */
bool sw_credentials_reload(struct sw_credentials *credentials);

/* ---- a credential plugin ---- */

/* There is one: credentials may have to be waited for. */
bool sw_credentials_may_wait(const struct sw_credentials *credentials);
/* Before each request. 0: what is there now may be sent. -EAGAIN: the plugin is running; who was
 * told of a change asks again. Else, with words: the plugin has failed. Without a plugin always 0.
 */
int sw_credentials_prepare(struct sw_credentials *credentials, struct sw_error *error);
/* At a 401. True: others are there, or are being asked for (sw_credentials_prepare says when). */
bool sw_credentials_refresh(struct sw_credentials *credentials);

/* Changes with the TLS configuration or the authorization. */
unsigned sw_credentials_number(const struct sw_credentials *credentials);
/* Told when that has changed, and when a plugin has come to its end. At most four listeners. */
void sw_credentials_on_change(struct sw_credentials *credentials, void (*fn)(void *arg), void *arg);
/* Takes the same fn and arg back. */
void sw_credentials_off_change(struct sw_credentials *credentials, void (*fn)(void *arg),
                               void *arg);

#endif
