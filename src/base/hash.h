/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SipHash-1-3 with a key of the caller's, and bytes of entropy. sw_hash (map.h) is what everybody
 * else wants; this is here for the loop's seed and so that the hash can be tested against the
 * values of another implementation.
 */
#ifndef SW_BASE_HASH_H
#define SW_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t sw_siphash13(const uint64_t key[2], const void *bytes, size_t len);
/* From the kernel, by getrandom(2). Does not fail. */
void sw_entropy(void *bytes, size_t len);
/* Instead of a key by chance; before the first sw_hash of the process. For a simulation, whose runs
 * repeat to the byte: tables are walked in the order of their hashes. */
void sw_hash_set_key(const uint64_t key[2]);

#endif
