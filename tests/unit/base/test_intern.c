/* SPDX-License-Identifier: Apache-2.0 */
/* Interned strings: one pointer a text, for as long as somebody holds it. */
#include "base/map.h"

#include "base/random.h"
#include "base/util.h"
#include "test.h"

TEST(gives_equal_strings_one_pointer)
{
    struct sw_intern *table = sw_intern_new();
    const char *a = sw_intern_ref(table, "app", 3);
    const char *b = sw_intern_ref(table, "apps", 3);
    const char *c = sw_intern_ref(table, "apps", 4);
    assert_ptr_equal(a, b);
    assert_ptr_not_equal(a, c);
    assert_string_equal(a, "app");
    assert_string_equal(c, "apps");
    assert_int_equal(sw_intern_size(table), 2);
    sw_intern_unref(table, a);
    assert_string_equal(b, "app");
    sw_intern_unref(table, b);
    sw_intern_unref(table, c);
    sw_intern_unref(table, NULL);
    assert_int_equal(sw_intern_size(table), 0);
    assert_null(sw_intern_free(table));
    sw_intern_free(NULL);
}

TEST(knows_the_empty_string)
{
    struct sw_intern *table = sw_intern_new();
    const char *empty = sw_intern_ref(table, NULL, 0);
    assert_string_equal(empty, "");
    assert_ptr_equal(sw_intern_ref(table, "x", 0), empty);
    assert_ptr_equal(sw_intern_ref(table, NULL, 0), empty);
    sw_intern_unref(table, empty);
    sw_intern_unref(table, empty);
    sw_intern_unref(table, empty);
    sw_intern_free(table);
}

TEST(notices_a_string_that_was_not_given_back)
{
    struct sw_intern *table = sw_intern_new();
    const char *a = sw_intern_ref(table, "a", 1);
    assert_aborts(sw_intern_free(table));
    sw_intern_unref(table, a);
    sw_intern_free(table);
}

TEST(agrees_with_a_model)
{
    enum { TEXTS = 500, STEPS = 200000 };
    static const char *held[TEXTS];
    static unsigned counts[TEXTS];
    struct sw_intern *table = sw_intern_new();
    struct sw_rng rng;
    sw_rng_seed(&rng, 99);
    size_t size = 0;
    for (int i = 0; i < STEPS; i++) {
        uint64_t k = sw_rng_between(&rng, 0, TEXTS - 1);
        uint64_t odds = i / 20000 % 2 ? 20 : 70;
        char text[16];
        int len = snprintf(text, sizeof(text), "label-%llu", (unsigned long long)k);
        if (sw_rng_between(&rng, 0, 99) < odds) {
            const char *got = sw_intern_ref(table, text, (size_t)len);
            assert_string_equal(got, text);
            assert_true(counts[k] == 0 || got == held[k]);
            held[k] = got;
            size += counts[k]++ == 0;
        } else if (counts[k] > 0) {
            sw_intern_unref(table, held[k]);
            size -= --counts[k] == 0;
        }
        assert_int_equal(sw_intern_size(table), size);
    }
    for (size_t k = 0; k < TEXTS; k++) {
        while (counts[k] > 0) {
            sw_intern_unref(table, held[k]);
            counts[k]--;
        }
    }
    sw_intern_free(table);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("intern", gives_equal_strings_one_pointer),
        CASE("intern", knows_the_empty_string),
        CASE("intern", notices_a_string_that_was_not_given_back),
        CASE("intern", agrees_with_a_model),
    };
    return RUN(tests);
}
