/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kubeconfigs say about one context. Text only: no file but the given ones is read.
 */
#ifndef SW_KUBE_KUBECONFIG_H
#define SW_KUBE_KUBECONFIG_H

#include <stdbool.h>
#include <stddef.h>

struct sw_error;

/* The user's `exec`: a program that prints credentials. */
struct sw_kubeconfig_exec {
    char *api_version;  /* client.authentication.k8s.io/v1, or v1beta1 */
    char *command;      /* with a slash in it: a path, as those below; else to be searched for */
    char **args;        /* argv, without the command; NULL at the end */
    char **env;         /* "NAME=value" beside our own environment; NULL at the end */
    char *install_hint; /* NULL: none */
    bool provides_cluster;
    char *cluster_config; /* JSON: the cluster's extension for plugins; NULL: none */
};

/* A header that says for whom we speak. */
struct sw_kubeconfig_header {
    char *name, *value;
};

/* NULL: not said. A *_pem is the decoded inline data and wins over the *_path, which is absolute
 * (or relative to the current folder, if the kubeconfig was named so). */
struct sw_kubeconfig {
    char *context, *cluster, *user;
    char *namespace_;
    char *server;
    char *proxy_url;
    char *tls_name;
    bool is_insecure;
    char *ca_pem, *ca_path;
    char *certificate_pem, *certificate_path;
    char *key_pem, *key_path;
    char *token, *token_path; /* the file wins where it can be read */
    char *username, *password;
    struct sw_kubeconfig_exec *exec;            /* asked where nothing else says who we are */
    char *as;                                   /* who we are for the API server, whoever we are */
    struct sw_kubeconfig_header *impersonation; /* user, uid, groups, extra; ready to be sent */
    size_t impersonation_count;
};

/* name stands for the file in messages; relative paths in it are relative to folder. */
struct sw_kubeconfig_text {
    const char *name;
    const char *text;
    size_t len;
    const char *folder;
};

/*
 * Merges as kubectl does: of each cluster, user and context the first text that has it counts, with
 * nothing of the others mixed in; so does the first current-context. context: that one instead;
 * NULL: the current one. At least one text; empty ones say nothing.
 *
 * SW_E_SYNTAX: not YAML, or a value of the wrong kind; SW_E_CONFIG: it says something that cannot
 * be used, with what to do. *ret_config is written on success and ended with sw_kubeconfig_done.
 */
int sw_kubeconfig_parse(const struct sw_kubeconfig_text *texts, size_t count, const char *context,
                        struct sw_kubeconfig *ret_config, struct sw_error *error);
/* Overwrites the secrets. */
void sw_kubeconfig_done(struct sw_kubeconfig *config);

#endif
