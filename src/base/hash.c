/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012, with one round a
 * word and three at the end), under a key that is drawn once a process: names and labels come from
 * outside, and whoever can choose them must not be able to choose collisions.
 */
#include "base/hash.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>

#include "base/map.h"
#include "base/util.h"

static inline uint64_t rotate(uint64_t word, unsigned by)
{
    return word << by | word >> (64 - by);
}

static inline void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

/* Little-endian whatever the machine is; compilers make one load of it. */
static inline uint64_t load64(const unsigned char *p)
{
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 |
           (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 |
           (uint64_t)p[7] << 56;
}

uint64_t sw_siphash13(const uint64_t key[2], const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    uint64_t v[4] = {
        key[0] ^ UINT64_C(0x736f6d6570736575), /* "somepseu" */
        key[1] ^ UINT64_C(0x646f72616e646f6d), /* "dorandom" */
        key[0] ^ UINT64_C(0x6c7967656e657261), /* "lygenera" */
        key[1] ^ UINT64_C(0x7465646279746573), /* "tedbytes" */
    };
    uint64_t last = (uint64_t)(len & 0xff) << 56;
    for (; len >= 8; p += 8, len -= 8) {
        uint64_t word = load64(p);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    for (size_t i = 0; i < len; i++) {
        last |= (uint64_t)p[i] << (8 * i);
    }
    v[3] ^= last;
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    sip_round(v);
    sip_round(v);
    sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void sw_entropy(void *bytes, size_t len)
{
    char *at = bytes;
    while (len > 0) {
        ssize_t got = getrandom(at, len, 0);
        if (got < 0) {
            sw_assert(errno == EINTR); /* Linux 3.17 and newer have no other way to fail here */
            continue;
        }
        at += got;
        len -= (size_t)got;
    }
}

static uint64_t hash_key[2];
static bool has_hash_key;

void sw_hash_set_key(const uint64_t key[2])
{
    sw_assert(!has_hash_key);
    memcpy(hash_key, key, sizeof(hash_key));
    has_hash_key = true;
}

uint64_t sw_hash(const void *bytes, size_t len)
{
    if (!has_hash_key) {
        sw_entropy(hash_key, sizeof(hash_key));
        has_hash_key = true;
    }
    return sw_siphash13(hash_key, bytes, len);
}
