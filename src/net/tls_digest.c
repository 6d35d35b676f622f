/* SPDX-License-Identifier: Apache-2.0 */
/*
 * By mbedTLS, whose files these are.
 */
#include "net/tls_digest.h"

#include <mbedtls/md.h>

#include "base/util.h"

void sw_digest(const uint8_t key[SW_DIGEST_BYTES], const void *bytes, size_t len,
               uint8_t ret_digest[SW_DIGEST_BYTES])
{
    const mbedtls_md_info_t *sha256 = mbedtls_md_info_from_type(MBEDTLS_MD_SHA256);

    /* It fails where there is no memory, as sw_malloc does, and where SHA-256 was left out. */
    sw_assert(mbedtls_md_hmac(sha256, key, SW_DIGEST_BYTES, bytes, len, ret_digest) == 0);
}
