/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A keyed digest, HMAC-SHA-256 (RFC 2104): under a key of random bytes it stands for a secret that
 * is to be recognised and not to be kept.
 */
#ifndef SW_NET_TLS_DIGEST_H
#define SW_NET_TLS_DIGEST_H

#include <stddef.h>
#include <stdint.h>

enum { SW_DIGEST_BYTES = 32 };

void sw_digest(const uint8_t key[SW_DIGEST_BYTES], const void *bytes, size_t len,
               uint8_t ret_digest[SW_DIGEST_BYTES]);

#endif
