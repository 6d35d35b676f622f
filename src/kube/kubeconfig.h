/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kubeconfig says about its current context. Text only: no file but the given one is read.
 */
#ifndef SW_KUBE_KUBECONFIG_H
#define SW_KUBE_KUBECONFIG_H

#include <stdbool.h>
#include <stddef.h>

struct sw_error;

/* NULL: not said. A *_pem is the decoded inline data and wins over the *_path, which is absolute
 * (or relative to the current folder, if the kubeconfig was named so). */
struct sw_kubeconfig {
    char *context, *cluster, *user;
    char *namespace_;
    char *server;
    char *tls_name;
    bool is_insecure;
    char *ca_pem, *ca_path;
    char *certificate_pem, *certificate_path;
    char *key_pem, *key_path;
    char *token, *token_path; /* the file wins where it can be read */
    char *username, *password;
};

/*
 * name stands for the file in messages; relative paths are relative to folder. SW_E_SYNTAX: not
 * YAML, or a value of the wrong kind; SW_E_CONFIG: it says something that cannot be used, with what
 * to do. *ret_config is written on success and ended with sw_kubeconfig_done.
 */
int sw_kubeconfig_parse(const char *name, const char *text, size_t len, const char *folder,
                        struct sw_kubeconfig *ret_config, struct sw_error *error);
/* Overwrites the secrets. */
void sw_kubeconfig_done(struct sw_kubeconfig *config);

#endif
