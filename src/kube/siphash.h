/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SipHash-2-4 with 128 bits of output, of bytes that come in pieces. Under the zero key it is a
 * fingerprint that is the same in every process; it does not keep those out who look for
 * collisions.
 */
#ifndef SW_KUBE_SIPHASH_H
#define SW_KUBE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

struct sw_siphash {
    uint64_t v[4];
    uint64_t tail; /* the bytes that do not fill a word yet */
    uint64_t len;
};

void sw_siphash_init(struct sw_siphash *hash, const uint8_t key[16]); /* NULL: the zero key */
void sw_siphash_add(struct sw_siphash *hash, const void *bytes, size_t len);
/* The 16 bytes of output as two numbers, each read with its most significant byte first. */
void sw_siphash_done(const struct sw_siphash *hash, uint64_t *ret_high, uint64_t *ret_low);

#endif
