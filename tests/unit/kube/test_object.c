/* SPDX-License-Identifier: Apache-2.0 */
/* Reading objects: labels, conditions, shares. */
#include "test.h"

#include <slipway/kind.h>

#include "base/util.h"

TEST(finds_labels_by_key)
{
    static const struct sw_label at[] = {
        {"", "0"}, {"a", "1"}, {"aa", "2"}, {"b", ""}, {"z/y", "5"}};
    for (uint32_t count = 0; count <= SW_ARRAY_SIZE(at); count++) {
        struct sw_labels labels = {at, count};
        for (uint32_t i = 0; i < SW_ARRAY_SIZE(at); i++) {
            assert_ptr_equal(sw_labels_get(&labels, at[i].key), i < count ? at[i].value : NULL);
        }
        assert_null(sw_labels_get(&labels, "ab"));
        assert_null(sw_labels_get(&labels, "zz"));
    }
    struct sw_object object = {.annotations = {at, 3}};
    assert_string_equal(sw_annotation(&object, "aa"), "2");
    assert_null(sw_annotation(&object, "b"));
}

TEST(finds_conditions_by_type)
{
    static const struct sw_condition at[] = {{.type = "A", .status = "True"},
                                             {.type = "B", .status = "False"}};
    struct sw_conditions conditions = {at, 2};
    assert_ptr_equal(sw_condition_get(&conditions, "B"), &at[1]);
    assert_null(sw_condition_get(&conditions, "C"));
    assert_true(sw_condition_is(&conditions, "A", "True"));
    assert_false(sw_condition_is(&conditions, "B", "True"));
    assert_false(sw_condition_is(&conditions, "C", "True"));
    assert_null(sw_condition_get(&(struct sw_conditions){NULL, 0}, "A"));
}

TEST(writes_hashes)
{
    char text[33];
    sw_hash128_text((struct sw_hash128){UINT64_C(0x0123456789abcdef), 0xf}, text);
    assert_string_equal(text, "0123456789abcdef000000000000000f");
    assert_true(sw_hash128_equal((struct sw_hash128){1, 2}, (struct sw_hash128){1, 2}));
    assert_false(sw_hash128_equal((struct sw_hash128){1, 2}, (struct sw_hash128){2, 1}));
}

TEST(rounds_shares_as_kubernetes_does)
{
    static const struct {
        struct sw_int_or_percent value;
        int32_t want, up, down;
    } known[] = {
        {{25, true, true}, 10, 3, 2},
        {{25, true, true}, 4, 1, 1},
        {{25, true, true}, 0, 0, 0},
        {{1, true, true}, 1, 1, 0},
        {{100, true, true}, 7, 7, 7},
        {{150, true, true}, 3, 5, 4},
        {{0, true, true}, 7, 0, 0},
        {{3, false, true}, 10, 3, 3},
        {{0, false, true}, 10, 0, 0},
        {{7, false, false}, 10, 0, 0},
        {{INT32_MAX, true, true}, INT32_MAX, INT32_MAX, INT32_MAX},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(known); i++) {
        assert_int_equal(sw_int_or_percent_of(known[i].value, known[i].want, true), known[i].up);
        assert_int_equal(sw_int_or_percent_of(known[i].value, known[i].want, false), known[i].down);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("object", finds_labels_by_key),
        CASE("object", finds_conditions_by_type),
        CASE("object", writes_hashes),
        CASE("object", rounds_shares_as_kubernetes_does),
    };
    return RUN(tests);
}
