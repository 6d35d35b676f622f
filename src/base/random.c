/* SPDX-License-Identifier: Apache-2.0 */
/* xoshiro256** and splitmix64, from their public descriptions. */
#include "base/random.h"

#include "base/util.h"

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

void sw_rng_seed(struct sw_rng *rng, uint64_t seed)
{
    for (size_t i = 0; i < SW_ARRAY_SIZE(rng->state); i++) {
        rng->state[i] = splitmix64(&seed);
    }
}

static inline uint64_t rotate(uint64_t word, unsigned by)
{
    return word << by | word >> (64 - by);
}

uint64_t sw_rng_next(struct sw_rng *rng)
{
    uint64_t *s = rng->state;
    uint64_t result = rotate(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

uint64_t sw_rng_between(struct sw_rng *rng, uint64_t from, uint64_t to)
{
    sw_assert(from <= to);
    uint64_t span = to - from + 1;
    if (span == 0) {
        return sw_rng_next(rng); /* all 64 bits */
    }
    /* 2^64 mod span numbers at the low end would make some results likelier: draw again. */
    uint64_t least = (0 - span) % span;
    uint64_t drawn;
    do {
        drawn = sw_rng_next(rng);
    } while (drawn < least);
    return from + drawn % span;
}
