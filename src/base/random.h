/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The generator behind sw_random: xoshiro256** (Blackman and Vigna, 2018), seeded by splitmix64.
 * Fast and repeatable, for jitter, back-off and tests; not for keys.
 */
#ifndef SW_BASE_RANDOM_H
#define SW_BASE_RANDOM_H

#include <stdint.h>

struct sw_rng {
    uint64_t state[4];
};

void sw_rng_seed(struct sw_rng *rng, uint64_t seed);
uint64_t sw_rng_next(struct sw_rng *rng);
/* Uniform in [from, to], from <= to. */
uint64_t sw_rng_between(struct sw_rng *rng, uint64_t from, uint64_t to);

#endif
