/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the kubeconfig reader share: kubeconfig.c (merging, contexts, clusters, users)
 * and kubeconfig_user.c (plugins and impersonation).
 */
#ifndef SW_KUBE_KUBECONFIG_INTERNAL_H
#define SW_KUBE_KUBECONFIG_INTERNAL_H

#include "base/yaml.h"
#include "kube/kubeconfig.h"

/* One text, as a tree. */
struct sw_kubeconfig_doc {
    const struct sw_yaml *root; /* NULL: it is empty */
    const char *name;
    const char *folder;
};

/* One parse, and where messages go. */
struct sw_kubeconfig_reader {
    struct sw_kubeconfig_doc *docs;
    size_t count;
    const char *name; /* of all of them together */
    const char *context;
    struct sw_error *error;
};

/* A mapping in one of them and what to call it: cluster "prod". */
struct sw_kubeconfig_part {
    const struct sw_kubeconfig_doc *doc;
    const struct sw_yaml *node;
    const char *what;
    const char *name;
};

#define SW_PART_FORMAT "%s: %s \"%.64s\": "
#define SW_PART_ARGS(p) (p)->doc->name, (p)->what, (p)->name

/* The value of a key, or NULL where it is absent or null. */
const struct sw_yaml *sw_kubeconfig_get(const struct sw_yaml *mapping, const char *key);
/* *ret_text NULL: absent, null or empty. Borrowed from the tree. */
int sw_kubeconfig_get_text(struct sw_kubeconfig_reader *r, const struct sw_kubeconfig_part *part,
                           const char *key, const char **ret_text);
int sw_kubeconfig_copy_text(struct sw_kubeconfig_reader *r, const struct sw_kubeconfig_part *part,
                            const char *key, char **ret_text);
int sw_kubeconfig_get_bool(struct sw_kubeconfig_reader *r, const struct sw_kubeconfig_part *part,
                           const char *key, bool *ret_value);
char *sw_kubeconfig_path(const struct sw_kubeconfig_part *part, const char *path);

/* ---- kubeconfig_user.c ---- */

int sw_kubeconfig_read_exec(struct sw_kubeconfig_reader *r, const struct sw_kubeconfig_part *user,
                            const struct sw_kubeconfig_part *cluster, struct sw_kubeconfig *config);
struct sw_kubeconfig_exec *sw_kubeconfig_exec_free(struct sw_kubeconfig_exec *exec);
int sw_kubeconfig_read_impersonation(struct sw_kubeconfig_reader *r,
                                     const struct sw_kubeconfig_part *user,
                                     struct sw_kubeconfig *config);

#endif
