/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas: alignment, zeroed memory, cleanups, and what a reset keeps. */
#include <slipway/arena.h>

#include "base/util.h"
#include "test.h"

TEST(gives_zeroed_and_aligned_memory_of_every_size)
{
    struct sw_arena *arena = sw_arena_new(0);
    for (int round = 0; round < 2; round++) {
        for (size_t size = 0; size < 3000; size += 7) {
            unsigned char *bytes = sw_arena_alloc(arena, size);
            assert_int_equal((uintptr_t)bytes % _Alignof(max_align_t), 0);
            for (size_t i = 0; i < size; i++) {
                assert_int_equal(bytes[i], 0);
            }
            memset(bytes, 0xff, size); /* must not be seen by the round after the reset */
            sw_arena_strdup(arena, "x");
        }
        sw_arena_reset(arena);
    }
    assert_null(sw_arena_free(arena));
}

TEST(keeps_allocations_apart)
{
    enum { COUNT = 2000 };
    struct sw_arena *arena = sw_arena_new(256);
    unsigned char *at[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        at[i] = sw_arena_alloc(arena, i % 97 + 1);
        memset(at[i], (int)(i % 251), i % 97 + 1);
    }
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(at[i][0], i % 251);
        assert_int_equal(at[i][i % 97], i % 251);
    }
    sw_arena_free(arena);
}

TEST(gives_a_large_allocation_a_block_of_its_own)
{
    struct sw_arena *arena = sw_arena_new(4096);
    char *before = sw_arena_strdup(arena, "a");
    char *large = sw_arena_alloc(arena, 10 * 1024 * 1024);
    char *after = sw_arena_strdup(arena, "b");
    large[10 * 1024 * 1024 - 1] = 1;
    /* The block that was being filled goes on being filled. */
    assert_true(after > before && after - before < 4096);
    assert_true(sw_arena_size(arena) < 10 * 1024 * 1024 + 16384);
    sw_arena_free(arena);
}

TEST(returns_to_its_first_block_on_reset)
{
    struct sw_arena *arena = sw_arena_new(0);
    size_t at_first = sw_arena_size(arena);
    for (int i = 0; i < 100; i++) {
        sw_arena_alloc(arena, 1000);
    }
    assert_true(sw_arena_size(arena) >= 100000);
    sw_arena_reset(arena);
    assert_int_equal(sw_arena_size(arena), at_first);
    sw_arena_free(arena);
}

TEST(formats_and_copies_text)
{
    struct sw_arena *arena = sw_arena_new(256);
    SW_AUTO(char, sw_free) long_text = sw_calloc(1, 1001);
    memset(long_text, 'y', 1000);
    assert_string_equal(sw_arena_printf(arena, "%s/%d", "web", 3), "web/3");
    assert_string_equal(sw_arena_printf(arena, "%s", long_text), long_text);
    assert_string_equal(sw_arena_strndup(arena, "abcdef", 3), "abc");
    assert_string_equal(sw_arena_strndup(arena, NULL, 0), "");
    sw_arena_free(arena);
}

TEST(checks_the_size_of_arrays)
{
    struct sw_arena *arena = sw_arena_new(0);
    assert_non_null(SW_ARENA_ARRAY(arena, 0, int));
    int *numbers = SW_ARENA_ARRAY(arena, 100, int);
    assert_int_equal(numbers[99], 0);
    assert_aborts(sw_arena_array(arena, SIZE_MAX / 2, 4));
    sw_arena_free(arena);
}

struct trace {
    struct sw_arena *arena;
    char text[16];
};

static struct trace trace;

static void leave(void *arg)
{
    const char *letter = arg;
    size_t len = strlen(trace.text);
    trace.text[len] = *letter;
    trace.text[len + 1] = '\0';
}

static void leave_two(void *arg)
{
    leave(arg);
    sw_arena_on_free(trace.arena, leave, sw_arena_strdup(trace.arena, "z"));
}

TEST(calls_cleanups_in_reverse_order)
{
    trace = (struct trace){.arena = sw_arena_new(0)};
    sw_arena_on_free(trace.arena, leave, sw_arena_strdup(trace.arena, "a"));
    sw_arena_on_free(trace.arena, leave_two, sw_arena_strdup(trace.arena, "b"));
    sw_arena_on_free(trace.arena, leave, sw_arena_strdup(trace.arena, "c"));
    sw_arena_reset(trace.arena);
    assert_string_equal(trace.text, "cbza");
    sw_arena_free(trace.arena);
    assert_string_equal(trace.text, "cbza");
    sw_arena_free(NULL);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("arena", gives_zeroed_and_aligned_memory_of_every_size),
        CASE("arena", keeps_allocations_apart),
        CASE("arena", gives_a_large_allocation_a_block_of_its_own),
        CASE("arena", returns_to_its_first_block_on_reset),
        CASE("arena", formats_and_copies_text),
        CASE("arena", checks_the_size_of_arrays),
        CASE("arena", calls_cleanups_in_reverse_order),
    };
    return RUN(tests);
}
