/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bearer tokens as they come out of files, kubeconfigs and plugins.
 */
#ifndef SW_KUBE_TOKEN_H
#define SW_KUBE_TOKEN_H

#include <stddef.h>

/* Without the white space around it. -ENODATA: nothing is left; SW_E_SYNTAX: it has characters that
 * no token has, and that would end the header it is sent in. New memory, a secret. */
int sw_token_take(const char *bytes, size_t len, char **ret_token);
/* `sub` of a JWT, which is not verified: for messages, and for rules about ourselves. NULL where
 * the token is another kind, or NULL. New memory. */
char *sw_token_subject(const char *token);

#endif
