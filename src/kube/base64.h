/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Base64 (RFC 4648): the *-data of a kubeconfig, the parts of a JWT, patches of reviews, caBundle.
 */
#ifndef SW_KUBE_BASE64_H
#define SW_KUBE_BASE64_H

#include <stddef.h>

struct sw_buf;

/* Both alphabets, padded or not, white space skipped. -EINVAL on anything else. New memory, with a
 * NUL behind the bytes. */
int sw_base64_decode(const char *text, size_t len, char **ret_bytes, size_t *ret_len);
/* Appends the standard alphabet, padded. -ENOBUFS as of sw_buf_append. */
int sw_base64_encode(struct sw_buf *out, const char *bytes, size_t len);

#endif
