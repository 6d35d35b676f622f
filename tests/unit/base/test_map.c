/* SPDX-License-Identifier: Apache-2.0 */
/* Maps against a slow and obvious model, their order, and SipHash against published values. */
#include "base/map.h"

#include "base/hash.h"
#include "base/random.h"
#include "base/util.h"
#include "test.h"

TEST(finds_what_was_set)
{
    int a, b;
    struct sw_map *map = sw_map_new();
    assert_null(sw_map_get(map, "a"));
    assert_null(sw_map_remove(map, "a"));
    assert_null(sw_map_key(map, "a"));
    assert_null(sw_map_set(map, "a", &a));
    assert_ptr_equal(sw_map_set(map, "a", &b), &a);
    assert_ptr_equal(sw_map_get(map, "a"), &b);
    assert_int_equal(sw_map_size(map), 1);
    assert_null(sw_map_set(map, "", &a));
    assert_ptr_equal(sw_map_get(map, ""), &a);
    assert_ptr_equal(sw_map_remove(map, "a"), &b);
    assert_null(sw_map_get(map, "a"));
    assert_null(sw_map_free(map));
    sw_map_free(NULL);
}

TEST(copies_its_keys)
{
    char key[] = "first";
    struct sw_map *map = sw_map_new();
    sw_map_set(map, key, map);
    memcpy(key, "other", 5);
    assert_null(sw_map_get(map, "other"));
    assert_ptr_equal(sw_map_get(map, "first"), map);
    assert_string_equal(sw_map_key(map, "first"), "first");
    assert_ptr_not_equal(sw_map_key(map, "first"), key);
    /* A key that is the map's own may be given to remove. */
    assert_ptr_equal(sw_map_remove(map, sw_map_key(map, "first")), map);
    sw_map_free(map);
}

TEST(compares_keys_by_length_as_well)
{
    struct sw_map *map = sw_map_new();
    sw_map_set(map, "ab", map);
    assert_ptr_equal(sw_map_getn(map, "abc", 2), map);
    assert_null(sw_map_getn(map, "abc", 3));
    assert_null(sw_map_getn(map, "ab\0", 3));
    assert_null(sw_map_getn(map, "ab", 0));
    sw_map_set(map, "", map);
    assert_ptr_equal(sw_map_getn(map, NULL, 0), map);
    sw_map_free(map);
}

TEST(walks_in_the_order_of_insertion)
{
    struct sw_map *map = sw_map_new();
    char key[16];
    for (int i = 0; i < 500; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        sw_map_set(map, key, map);
    }
    sw_map_set(map, "k7", key); /* keeps its place */
    for (int i = 0; i < 500; i += 3) {
        snprintf(key, sizeof(key), "k%d", i);
        sw_map_remove(map, key);
    }
    sw_map_set(map, "k0", map); /* goes to the end */
    struct sw_map_iter it = {0};
    for (int i = 0; i < 500; i++) {
        if (i % 3 != 0) {
            snprintf(key, sizeof(key), "k%d", i);
            assert_true(sw_map_next(map, &it));
            assert_string_equal(it.key, key);
        }
    }
    assert_true(sw_map_next(map, &it));
    assert_string_equal(it.key, "k0");
    assert_false(sw_map_next(map, &it));
    assert_false(sw_map_next(map, &it));
    sw_map_free(map);
}

TEST(lets_a_walk_remove_where_it_stands)
{
    struct sw_map *map = sw_map_new();
    char key[16];
    for (int i = 0; i < 300; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        sw_map_set(map, key, map);
    }
    int seen = 0;
    struct sw_map_iter it = {0};
    while (sw_map_next(map, &it)) {
        snprintf(key, sizeof(key), "k%d", seen);
        assert_string_equal(it.key, key);
        if (seen % 2 == 0) {
            sw_map_remove(map, it.key);
        }
        seen++;
    }
    assert_int_equal(seen, 300);
    assert_int_equal(sw_map_size(map), 150);
    it = (struct sw_map_iter){0};
    while (sw_map_next(map, &it)) {
        sw_map_remove(map, it.key);
    }
    assert_int_equal(sw_map_size(map), 0);
    sw_map_free(map);
}

/* A queue of 4 keys through which 400 000 pass: with holes that stay this takes minutes. */
TEST(stays_fast_when_used_as_a_queue)
{
    struct sw_map *map = sw_map_new();
    char key[16];
    for (int i = 0; i < 400000; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        sw_map_set(map, key, map);
        if (i >= 4) {
            struct sw_map_iter it = {0};
            assert_true(sw_map_next(map, &it));
            sw_map_remove(map, it.key);
        }
    }
    assert_int_equal(sw_map_size(map), 4);
    sw_map_free(map);
}

/* Random operations against an array indexed by the number in the key. */
TEST(agrees_with_a_model)
{
    enum { KEYS = 200, STEPS = 100000 };
    static void *model[KEYS];
    static int values[KEYS * 2];
    memset(model, 0, sizeof(model));
    struct sw_map *map = sw_map_new();
    struct sw_rng rng;
    sw_rng_seed(&rng, 4711);
    size_t size = 0;
    for (int i = 0; i < STEPS; i++) {
        uint64_t k = sw_rng_between(&rng, 0, KEYS - 1);
        /* Ups and downs, so that holes of all kinds come and go. */
        uint64_t odds = i / 5000 % 2 ? 30 : 70;
        char key[16];
        snprintf(key, sizeof(key), "%llu", (unsigned long long)k);
        if (sw_rng_between(&rng, 0, 99) < odds) {
            void *value = &values[sw_rng_between(&rng, 0, KEYS * 2 - 1)];
            assert_ptr_equal(sw_map_set(map, key, value), model[k]);
            size += !model[k];
            model[k] = value;
        } else {
            assert_ptr_equal(sw_map_remove(map, key), model[k]);
            size -= model[k] != NULL;
            model[k] = NULL;
        }
        assert_int_equal(sw_map_size(map), size);
        if (i % 1000 == 0) {
            size_t seen = 0;
            struct sw_map_iter it = {0};
            while (sw_map_next(map, &it)) {
                assert_ptr_equal(it.value, model[strtoul(it.key, NULL, 10)]);
                seen++;
            }
            assert_int_equal(seen, size);
        }
        uint64_t other = sw_rng_between(&rng, 0, KEYS - 1);
        snprintf(key, sizeof(key), "%llu", (unsigned long long)other);
        assert_ptr_equal(sw_map_get(map, key), model[other]);
    }
    sw_map_free(map);
}

/* Input of length n: 00 01 .. (n - 1), key 0. CPython 3.11 and newer hash bytes by SipHash-1-3, and
 * under that key with PYTHONHASHSEED=0: hash(bytes(range(n))). */
TEST(computes_siphash_1_3)
{
    static const struct {
        size_t len;
        uint64_t hash;
    } wanted[] = {
        {1, UINT64_C(0x68a914128e01e473)},  {7, UINT64_C(0x2f098ab0c751325a)},
        {8, UINT64_C(0xead411e67ebe2eea)},  {9, UINT64_C(0x75927f9d95124362)},
        {15, UINT64_C(0xf30eb725bb91c9ea)}, {16, UINT64_C(0x8972188433a5c5b7)},
        {17, UINT64_C(0x4883c49a2c009c1d)}, {63, UINT64_C(0x385d3e39e5f37359)},
    };
    static const uint64_t zero[2] = {0, 0};
    uint8_t input[64] = {0};
    for (size_t i = 0; i < sizeof(input); i++) {
        input[i] = (uint8_t)i;
    }
    for (size_t i = 0; i < SW_ARRAY_SIZE(wanted); i++) {
        uint64_t hash = sw_siphash13(zero, input, wanted[i].len);
        if (hash != wanted[i].hash) {
            fail_msg("length %zu: got %016llx, wanted %016llx", wanted[i].len,
                     (unsigned long long)hash, (unsigned long long)wanted[i].hash);
        }
    }
    /* The other half of the key counts as well: the value that Rust's library tests its own by,
     * for the key 00 01 .. 0f and no bytes. */
    static const uint64_t key[2] = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};
    assert_true(sw_siphash13(key, input, 0) == UINT64_C(0xabac0158050fc4dc));
}

TEST(hashes_the_same_for_a_process)
{
    assert_true(sw_hash("abc", 3) == sw_hash("abcd", 3));
    assert_true(sw_hash("abc", 3) != sw_hash("abcd", 4));
    assert_true(sw_hash("", 0) != sw_hash("\0", 1));
}

/* Ends with 0 where it agrees: the key can be set but once in a process, before the first hash. */
static _Noreturn void hash_with_a_given_key(void)
{
    static const uint64_t key[2] = {1, 2};
    sw_hash_set_key(key);
    _exit(sw_hash("name", 4) == sw_siphash13(key, "name", 4) ? 0 : 1);
}

static void hash_then_set_the_key(void)
{
    static const uint64_t key[2] = {1, 2};
    sw_hash("name", 4);
    sw_hash_set_key(key);
}

TEST(hashes_with_the_key_of_a_simulation)
{
    int status = -1;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        hash_with_a_given_key();
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_aborts(hash_then_set_the_key());
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        /* First, before anything is hashed. */
        CASE("hash", hashes_with_the_key_of_a_simulation),
        CASE("map", finds_what_was_set),
        CASE("map", copies_its_keys),
        CASE("map", compares_keys_by_length_as_well),
        CASE("map", walks_in_the_order_of_insertion),
        CASE("map", lets_a_walk_remove_where_it_stands),
        CASE("map", stays_fast_when_used_as_a_queue),
        CASE("map", agrees_with_a_model),
        CASE("hash", computes_siphash_1_3),
        CASE("hash", hashes_the_same_for_a_process),
    };
    return RUN(tests);
}
