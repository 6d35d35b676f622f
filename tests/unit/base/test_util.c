/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that does not return NULL, assertions, and the macros of util.h. */
#include "base/util.h"

#include "test.h"

/* AddressSanitizer asks for this, and would otherwise end the process itself for lack of memory. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

TEST(zeroes_new_memory)
{
    char *bytes = sw_malloc(1000);
    for (size_t i = 0; i < 1000; i++) {
        assert_int_equal(bytes[i], 0);
    }
    assert_null(sw_free(bytes));
}

TEST(gives_memory_for_no_bytes)
{
    SW_AUTO(char, sw_free) a = sw_malloc(0);
    SW_AUTO(char, sw_free) b = sw_realloc(NULL, 0, 8);
    assert_non_null(a);
    assert_non_null(b);
}

TEST(ends_the_process_on_overflow)
{
    assert_aborts(sw_calloc(SIZE_MAX / 2, 3));
    assert_aborts(sw_realloc(NULL, SIZE_MAX / 2, 3));
    assert_aborts(sw_strndup("x", SIZE_MAX));
}

TEST(ends_the_process_when_there_is_no_memory)
{
    assert_aborts(sw_malloc(SIZE_MAX / 2 - 1));
}

TEST(copies_and_formats_text)
{
    SW_AUTO(char, sw_free) a = sw_strdup("hello");
    SW_AUTO(char, sw_free) b = sw_strndup("hello", 4);
    SW_AUTO(char, sw_free) c = sw_asprintf("%s-%d", a, 7);
    SW_AUTO(char, sw_free) d = sw_strndup(NULL, 0);
    assert_string_equal(a, "hello");
    assert_string_equal(b, "hell");
    assert_string_equal(c, "hello-7");
    assert_string_equal(d, "");
}

TEST(frees_nothing)
{
    assert_null(sw_free(NULL));
    assert_null(sw_free_secret(NULL, 10));
    assert_null(sw_free_secret(sw_strdup("secret"), 6));
}

TEST(aborts_on_a_broken_assertion)
{
    int one = 1;
    sw_assert(one == 1);
    assert_aborts(sw_assert_failed("c", "f", 1));
}

struct inner {
    int x;
};
struct outer {
    uint32_t magic;
    char before;
    struct inner inner;
};
#define OUTER_MAGIC SW_MAGIC('O', 'U', 'T', 'R')

TEST(leads_from_a_member_to_its_owner)
{
    struct outer outer = {.before = 1};
    struct inner *inner = &outer.inner;
    assert_ptr_equal(container_of(inner, struct outer, inner), &outer);
}

static void cast(void *arg)
{
    (void)SW_CAST(struct outer, OUTER_MAGIC, arg);
}

TEST(checks_the_magic_number)
{
    struct outer outer = {.magic = OUTER_MAGIC};
    void *arg = &outer;
    assert_ptr_equal(SW_CAST(struct outer, OUTER_MAGIC, arg), &outer);
    outer.magic++;
    assert_aborts(cast(arg));
    assert_aborts(cast(NULL));
}

TEST(hands_over_what_would_free_itself)
{
    char *kept;
    {
        SW_AUTO(char, sw_free) text = sw_strdup("kept");
        kept = sw_steal(&text);
        assert_null(text);
    }
    assert_string_equal(kept, "kept");
    sw_free(kept);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("util", zeroes_new_memory),
        CASE("util", gives_memory_for_no_bytes),
        CASE("util", ends_the_process_on_overflow),
        CASE("util", ends_the_process_when_there_is_no_memory),
        CASE("util", copies_and_formats_text),
        CASE("util", frees_nothing),
        CASE("util", aborts_on_a_broken_assertion),
        CASE("util", leads_from_a_member_to_its_owner),
        CASE("util", checks_the_magic_number),
        CASE("util", hands_over_what_would_free_itself),
    };
    return RUN(tests);
}
