/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Base64 (RFC 4648), reading only: the *-data of a kubeconfig and the parts of a JWT.
 */
#ifndef SW_KUBE_BASE64_H
#define SW_KUBE_BASE64_H

#include <stddef.h>

/* Both alphabets, padded or not, white space skipped. -EINVAL on anything else. New memory, with a
 * NUL behind the bytes. */
int sw_base64_decode(const char *text, size_t len, char **ret_bytes, size_t *ret_len);

#endif
