/* SPDX-License-Identifier: Apache-2.0 */
/* Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012; the output of 128 bits as in the
 * authors' later reference code (0xee into v1 and v2, 0xdd before the second half). */
#include "kube/siphash.h"

#include <string.h>

#include "base/util.h"

static inline uint64_t rotate(uint64_t word, unsigned by)
{
    return word << by | word >> (64 - by);
}

static inline uint64_t load64(const void *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static inline void rounds(uint64_t v[4], int count)
{
    for (int i = 0; i < count; i++) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] = rotate(v[0], 32) + v[3];
        v[2] += v[1];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[2] = rotate(v[2], 32);
    }
}

static inline void mix(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    rounds(v, 2);
    v[0] ^= word;
}

void sw_siphash_init(struct sw_siphash *hash, const uint8_t key[16])
{
    uint64_t k0 = key ? load64(key) : 0;
    uint64_t k1 = key ? load64(key + 8) : 0;
    *hash = (struct sw_siphash){
        .v =
            {
                k0 ^ UINT64_C(0x736f6d6570736575),
                k1 ^ UINT64_C(0x646f72616e646f6d) ^ 0xee,
                k0 ^ UINT64_C(0x6c7967656e657261),
                k1 ^ UINT64_C(0x7465646279746573),
            },
    };
}

/* Puts up to 8 - (len mod 8) bytes behind those of the tail; mixes a word that is full. */
static size_t fill_tail(struct sw_siphash *hash, const uint8_t *p, size_t len)
{
    unsigned have = (unsigned)(hash->len % 8);
    size_t take = SW_MIN(len, (size_t)(8 - have));
    for (size_t i = 0; i < take; i++) {
        hash->tail |= (uint64_t)p[i] << (8 * (have + i));
    }
    hash->len += take;
    if (hash->len % 8 == 0 && take > 0) {
        mix(hash->v, hash->tail);
        hash->tail = 0;
    }
    return take;
}

void sw_siphash_add(struct sw_siphash *hash, const void *bytes, size_t len)
{
    const uint8_t *p = bytes;
    if (hash->len % 8 != 0) {
        size_t taken = fill_tail(hash, p, len);
        p += taken;
        len -= taken;
    }
    if (len >= 8) {
        uint64_t v[4]; /* in registers */
        memcpy(v, hash->v, sizeof(v));
        hash->len += len & ~(size_t)7;
        for (; len >= 8; p += 8, len -= 8) {
            mix(v, load64(p));
        }
        memcpy(hash->v, v, sizeof(v));
    }
    fill_tail(hash, p, len);
}

static uint64_t half(const uint64_t v[4])
{
    uint64_t word = v[0] ^ v[1] ^ v[2] ^ v[3];
    return __builtin_bswap64(word); /* the output is that number with its lowest byte first */
}

void sw_siphash_done(const struct sw_siphash *hash, uint64_t *ret_high, uint64_t *ret_low)
{
    uint64_t v[4];
    memcpy(v, hash->v, sizeof(v));
    mix(v, hash->tail | hash->len << 56);
    v[2] ^= 0xee;
    rounds(v, 4);
    *ret_high = half(v);
    v[1] ^= 0xdd;
    rounds(v, 4);
    *ret_low = half(v);
}
