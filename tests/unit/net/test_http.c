/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Header fields and their values.
 */
#include "net/http.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"

#include "test.h"

TEST(a_field_is_found_without_case)
{
    static const struct sw_http_field at[] = {{"Host", "a"}, {"x-y", "1"}, {"X-Y", "2"}};
    struct sw_http_fields fields = {at, 3};

    assert_string_equal(sw_http_field_get(&fields, "hOST"), "a");
    assert_string_equal(sw_http_field_get(&fields, "X-Y"), "1");
    assert_null(sw_http_field_get(&fields, "X"));
    assert_null(sw_http_field_get(&(struct sw_http_fields){0}, "X"));
}

TEST(media_types_are_compared_without_parameters)
{
    assert_true(sw_http_media_type_is("text/html; charset=utf-8", "text/html"));
    assert_true(sw_http_media_type_is("Text/HTML", "text/html"));
    assert_true(sw_http_media_type_is("text/html ;x=y", "text/html"));
    assert_false(sw_http_media_type_is("text/htmlx", "text/html"));
    assert_false(sw_http_media_type_is("text/htm", "text/html"));
    assert_false(sw_http_media_type_is("text/html, x", "text/html"));
    assert_false(sw_http_media_type_is("", "text/html"));
    assert_false(sw_http_media_type_is(NULL, "text/html"));
}

/* 1994-11-06T08:49:37Z, the date of the RFC's examples. */
#define RFC_DATE_US INT64_C(784111777000000)

TEST(retry_after_is_understood)
{
    static const struct {
        const char *value;
        int64_t wall_us;
        int rc;
        uint64_t ms;
    } cases[] = {
        {"0", 0, 0, 0},
        {"1", 0, 0, 1000},
        {"030", 0, 0, 30000},
        {"300", 0, 0, 300000},
        {"301", 0, 0, 300000},
        {"99999999999999999999999999", 0, 0, 300000},
        {"Sun, 06 Nov 1994 08:49:37 GMT", RFC_DATE_US - 10000000, 0, 10000},
        {"Sun, 06 Nov 1994 08:49:37 GMT", RFC_DATE_US - 1, 0, 1},
        {"Sun, 06 Nov 1994 08:49:37 GMT", RFC_DATE_US, 0, 0},
        {"Sun, 06 Nov 1994 08:49:37 GMT", RFC_DATE_US + 1, 0, 0},
        {"Sun, 06 Nov 1994 08:49:37 GMT", 0, 0, 300000},
        {"Sunday, 06-Nov-94 08:49:37 GMT", RFC_DATE_US - 10000000, 0, 10000},
        {"Sun Nov  6 08:49:37 1994", RFC_DATE_US - 10000000, 0, 10000},
        /* 2030-01-01: "94" is 1994 there, not 2094 */
        {"Sunday, 06-Nov-94 08:49:37 GMT", INT64_C(1893456000000000), 0, 0},
        {"", 0, -EINVAL, 0},
        {"-1", 0, -EINVAL, 0},
        {"+1", 0, -EINVAL, 0},
        {"1.5", 0, -EINVAL, 0},
        {"1 s", 0, -EINVAL, 0},
        {" 1", 0, -EINVAL, 0},
        {"soon", 0, -EINVAL, 0},
        {"Sun, 06 Nov 1994 08:49:37", 0, -EINVAL, 0},
        {"Sun, 06 Nov 1994 08:49:37 GMT ", 0, -EINVAL, 0},
        {"Sun, 06 ovN 1994 08:49:37 GMT", 0, -EINVAL, 0},
        {"Sun, 31 Feb 1994 08:49:37 GMT", 0, -EINVAL, 0},
        {"Sun, 06 Nov 1994 25:49:37 GMT", 0, -EINVAL, 0},
        {"Sun, -6 Nov 1994 08:49:37 GMT", 0, -EINVAL, 0},
    };

    for (size_t i = 0; i < SW_ARRAY_SIZE(cases); i++) {
        uint64_t ms = 0;
        int rc = sw_http_retry_after(cases[i].value, cases[i].wall_us, &ms);
        if (rc != cases[i].rc || ms != cases[i].ms) {
            fail_msg("Retry-After <<%s>>: got %d, %llu ms; want %d, %llu ms", cases[i].value, rc,
                     (unsigned long long)ms, cases[i].rc, (unsigned long long)cases[i].ms);
        }
    }
}

TEST(what_would_add_a_line_is_not_sent)
{
    assert_true(sw_http_is_token("X-Y_1"));
    assert_false(sw_http_is_token(""));
    assert_false(sw_http_is_token("a b"));
    assert_false(sw_http_is_token("a:"));
    assert_false(sw_http_is_token("a\r\n"));
    assert_false(sw_http_is_token("\xc3\xa4"));
    assert_true(sw_http_is_field_value(""));
    assert_true(sw_http_is_field_value("a\tb \xc3\xa4"));
    assert_false(sw_http_is_field_value("a\r\nb: c"));
    assert_false(sw_http_is_field_value("a\nb"));
    assert_false(sw_http_is_field_value("a\x7f"));
}

TEST(reasons_are_known)
{
    assert_string_equal(sw_http_reason(404), "Not Found");
    assert_string_equal(sw_http_reason(505), "HTTP Version Not Supported");
    assert_string_equal(sw_http_reason(299), "");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("http", a_field_is_found_without_case),
        CASE("http", media_types_are_compared_without_parameters),
        CASE("http", retry_after_is_understood),
        CASE("http", what_would_add_a_line_is_not_sent),
        CASE("http", reasons_are_known),
    };

    return RUN(tests);
}
