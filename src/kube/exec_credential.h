/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a credential plugin is told, and what it answers: an ExecCredential of
 * client.authentication.k8s.io, v1 or v1beta1.
 * https://kubernetes.io/docs/reference/config-api/client-authentication.v1/
 */
#ifndef SW_KUBE_EXEC_CREDENTIAL_H
#define SW_KUBE_EXEC_CREDENTIAL_H

#include <stddef.h>
#include <stdint.h>

struct sw_error;
struct sw_kubeconfig;

/* NULL: not there. A token, or both others, or all. */
struct sw_exec_credential {
    char *token;
    char *certificate_pem, *key_pem;
    int64_t expires_us; /* since 1970; INT64_MAX: not said */
};

/* Reads what the plugin printed. SW_E_SYNTAX with what is wrong and nothing of what it said, which
 * may be secret. */
int sw_exec_credential_parse(const char *api_version, const char *bytes, size_t len,
                             struct sw_exec_credential *ret_credential, struct sw_error *error);
/* Overwrites the secrets. */
void sw_exec_credential_done(struct sw_exec_credential *credential);

/* The value of KUBERNETES_EXEC_INFO. ca_pem: the authority that is in use, from wherever; NULL:
 * none is named. New memory. */
char *sw_exec_info(const struct sw_kubeconfig *config, const char *ca_pem);

#endif
