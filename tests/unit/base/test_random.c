/* SPDX-License-Identifier: Apache-2.0 */
/* The generator: its first numbers, and that ranges are kept and even. */
#include "base/random.h"

#include "base/util.h"
#include "test.h"

/* xoshiro256** from state 1, 2, 3, 4, computed by hand from the definition: result = rotl(2 * 5, 7)
 * * 9 = 11520; the second is 0 because s[1] becomes 2 ^ 3 ^ 1 = 0. */
TEST(computes_xoshiro256)
{
    struct sw_rng rng = {.state = {1, 2, 3, 4}};
    assert_int_equal(sw_rng_next(&rng), 11520);
    assert_int_equal(sw_rng_next(&rng), 0);
    assert_int_equal(sw_rng_next(&rng), 1509978240);
}

/* splitmix64 from 0: its first number is widely published. */
TEST(seeds_by_splitmix64)
{
    struct sw_rng rng;
    sw_rng_seed(&rng, 0);
    assert_true(rng.state[0] == UINT64_C(0xe220a8397b1dcdaf));
    assert_true(rng.state[1] == UINT64_C(0x6e789e6aa1b965f4));
}

TEST(keeps_to_its_range)
{
    struct sw_rng rng;
    sw_rng_seed(&rng, 1);
    bool seen[7] = {false};
    for (int i = 0; i < 1000; i++) {
        uint64_t n = sw_rng_between(&rng, 10, 16);
        assert_in_range(n, 10, 16);
        seen[n - 10] = true;
    }
    for (size_t i = 0; i < SW_ARRAY_SIZE(seen); i++) {
        assert_true(seen[i]);
    }
    assert_int_equal(sw_rng_between(&rng, 5, 5), 5);
    assert_true(sw_rng_between(&rng, UINT64_MAX, UINT64_MAX) == UINT64_MAX);
    sw_rng_between(&rng, 0, UINT64_MAX);
    assert_aborts(sw_rng_between(&rng, 2, 1));
}

TEST(is_even_over_a_range_that_does_not_divide)
{
    struct sw_rng rng;
    sw_rng_seed(&rng, 2);
    /* Two thirds of all numbers: a plain remainder would give the lower half twice as often. */
    uint64_t span = UINT64_MAX / 3 * 2;
    int low = 0;
    for (int i = 0; i < 10000; i++) {
        low += sw_rng_between(&rng, 0, span) < span / 2;
    }
    assert_in_range(low, 4800, 5200); /* four standard deviations */
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("random", computes_xoshiro256),
        CASE("random", seeds_by_splitmix64),
        CASE("random", keeps_to_its_range),
        CASE("random", is_even_over_a_range_that_does_not_divide),
    };
    return RUN(tests);
}
