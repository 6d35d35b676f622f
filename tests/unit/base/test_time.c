/* SPDX-License-Identifier: Apache-2.0 */
/* Times and durations as text. */
#include "base/time.h"

#include <errno.h>
#include <time.h>

#include "base/util.h"
#include "test.h"

static int64_t parsed(const char *text)
{
    int64_t us = -1;
    if (sw_time_parse(text, strlen(text), &us)) {
        fail_msg("\"%s\" was refused", text);
    }
    return us;
}

static void is_refused(const char *text)
{
    int64_t us = 42;
    if (sw_time_parse(text, strlen(text), &us) != -EINVAL) {
        fail_msg("\"%s\" was taken for %lld", text, (long long)us);
    }
    assert_int_equal(us, 42);
}

TEST(writes_the_two_forms)
{
    char text[SW_TIME_SIZE];
    sw_time_format(0, text);
    assert_string_equal(text, "1970-01-01T00:00:00Z");
    sw_time_format_micro(0, text);
    assert_string_equal(text, "1970-01-01T00:00:00.000000Z");
    sw_time_format(INT64_C(1136214245999999), text);
    assert_string_equal(text, "2006-01-02T15:04:05Z");
    sw_time_format_micro(INT64_C(1136214245000001), text);
    assert_string_equal(text, "2006-01-02T15:04:05.000001Z");
    sw_time_format_micro(-1, text);
    assert_string_equal(text, "1969-12-31T23:59:59.999999Z");
    sw_time_format(-1, text);
    assert_string_equal(text, "1969-12-31T23:59:59Z");
}

TEST(keeps_to_years_of_four_digits)
{
    char text[SW_TIME_SIZE];
    sw_time_format(INT64_MAX, text);
    assert_string_equal(text, "9999-12-31T23:59:59Z");
    sw_time_format_micro(INT64_MIN, text);
    assert_string_equal(text, "0000-01-01T00:00:00.000000Z");
    sw_time_format(parsed("0000-03-01T00:00:00Z"), text);
    assert_string_equal(text, "0000-03-01T00:00:00Z");
}

/* The C library as the oracle, every 27.3 days over eight centuries, leap days in between. */
TEST(agrees_with_the_c_library)
{
    for (int64_t s = -INT64_C(12622780800); s < INT64_C(13569465600); s += 2358719) {
        char wanted[SW_TIME_SIZE];
        char got[SW_TIME_SIZE];
        time_t t = (time_t)s;
        struct tm tm;
        gmtime_r(&t, &tm);
        strftime(wanted, sizeof(wanted), "%Y-%m-%dT%H:%M:%SZ", &tm);
        sw_time_format(s * 1000000, got);
        assert_string_equal(got, wanted);
        assert_true(parsed(got) == s * 1000000);
    }
}

TEST(reads_fractions_and_offsets)
{
    int64_t base = parsed("2006-01-02T15:04:05Z");
    assert_true(base == INT64_C(1136214245000000));
    assert_true(parsed("2006-01-02T15:04:05.1Z") == base + 100000);
    assert_true(parsed("2006-01-02T15:04:05.000001Z") == base + 1);
    assert_true(parsed("2006-01-02T15:04:05.123456789Z") == base + 123456);
    assert_true(parsed("2006-01-02T15:04:05.00000000000000000000000001Z") == base);
    assert_true(parsed("2006-01-02T17:04:05+02:00") == base);
    assert_true(parsed("2006-01-02T07:34:05-07:30") == base);
    assert_true(parsed("2006-01-03T00:04:05.5+09:00") == base + 500000);
    assert_true(parsed("2006-01-02t15:04:05z") == base);
    assert_true(parsed("2006-01-02 15:04:05Z") == base);
}

TEST(reads_leap_days_and_leap_seconds)
{
    assert_true(parsed("2000-02-29T00:00:00Z") == INT64_C(951782400000000));
    assert_true(parsed("2016-12-31T23:59:60Z") == parsed("2017-01-01T00:00:00Z"));
    assert_true(parsed("2017-01-01T00:59:60+01:00") == parsed("2017-01-01T00:00:00Z"));
    is_refused("1900-02-29T00:00:00Z");
    is_refused("2001-02-29T00:00:00Z");
    is_refused("2016-12-31T22:59:60Z");
}

TEST(refuses_what_is_not_rfc_3339)
{
    static const char *const bad[] = {
        "",
        "2006",
        "2006-01-02",
        "2006-01-02T15:04:05",
        "2006-01-02T15:04Z",
        "2006-01-02T15:04:05.Z",
        "2006-01-02T15:04:05,5Z",
        "2006-1-02T15:04:05Z",
        "2006-00-02T15:04:05Z",
        "2006-13-02T15:04:05Z",
        "2006-01-00T15:04:05Z",
        "2006-01-32T15:04:05Z",
        "2006-04-31T15:04:05Z",
        "2006-01-02T24:00:00Z",
        "2006-01-02T15:60:05Z",
        "2006-01-02T15:04:61Z",
        "2006-01-02T15:04:05Z ",
        " 2006-01-02T15:04:05Z",
        "2006-01-02T15:04:05ZZ",
        "2006-01-02T15:04:05+0200",
        "2006-01-02T15:04:05+02",
        "2006-01-02T15:04:05+24:00",
        "2006-01-02T15:04:05+02:60",
        "2006-01-02X15:04:05Z",
        "-006-01-02T15:04:05Z",
        "+2006-01-02T15:04:05Z",
        "20060102T150405Z",
        "99999-01-02T15:04:05Z",
        "null",
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(bad); i++) {
        is_refused(bad[i]);
    }
}

TEST(refuses_a_time_cut_at_any_place)
{
    static const char text[] = "2006-01-02T15:04:05.123456+02:00";
    int64_t us;
    for (size_t len = 0; len < sizeof(text) - 1; len++) {
        /* Memory of just that size, so that a byte read too far is found. */
        char *cut = malloc(len ? len : 1);
        memcpy(cut, text, len);
        assert_int_equal(sw_time_parse(cut, len, &us), -EINVAL);
        free(cut);
    }
    assert_int_equal(sw_time_parse("2006-01-02T15:04:05Z\0", 21, &us), -EINVAL);
    assert_int_equal(sw_time_parse("2006-01-02\0"
                                   "15:04:05Z",
                                   20, &us),
                     -EINVAL);
}

TEST(reads_durations_as_go_does)
{
    static const struct {
        const char *text;
        uint64_t ms;
    } good[] = {
        {"0", 0},
        {"+0", 0},
        {"0s", 0},
        {"1s", 1000},
        {"+5s", 5000},
        {"300ms", 300},
        {"1.5h", 5400000},
        {"1m30s", 90000},
        {"1h2m3s4ms", 3723004},
        {".5s", 500},
        {"1.s", 1000},
        {"0.25m", 15000},
        {"100us", 1},
        {"1500us", 2},
        {"1500\xc2\xb5s", 2},
        {"1500\xce\xbcs", 2},
        {"1ns", 1},
        {"1000000ns", 1},
        {"1000001ns", 2},
        {"0.1h", 360000},
        {"0.3333333333333333333h", 1200000},
        {"87600h", UINT64_C(315360000000)},
        {"9223372036s", UINT64_C(9223372036000)},
        {"1s1s", 2000},
        {"2562047h47m16.854775807s", UINT64_C(9223372036855)},
        {"0.000000000000000000000000000001h", 0},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(good); i++) {
        uint64_t ms = UINT64_MAX;
        if (sw_duration_parse(good[i].text, &ms) || ms != good[i].ms) {
            fail_msg("\"%s\": got %llu, wanted %llu", good[i].text, (unsigned long long)ms,
                     (unsigned long long)good[i].ms);
        }
    }
}

TEST(refuses_what_is_no_duration)
{
    static const char *const bad[] = {
        "",
        "+",
        "-",
        "-1s",
        "1",
        "s",
        ".s",
        ".",
        "1 s",
        " 1s",
        "1s ",
        "1d",
        "1w",
        "1x",
        "1S",
        "1e3s",
        "1..5s",
        "1.5.5s",
        "1m-1s",
        "1m+1s",
        "++1s",
        "1sm",
        "0x1s",
        "1,5s",
        "nans",
        "infs",
        "-0",
        "9223372037s",
        "99999999999999999999h",
        "2562048h",
        "1h2562047h47m16s",
        "1\xc2s",
        "18446744073709551616ns",
        "9223372036854775808ns",
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(bad); i++) {
        uint64_t ms = 42;
        if (sw_duration_parse(bad[i], &ms) != -EINVAL) {
            fail_msg("\"%s\" was taken for %llu ms", bad[i], (unsigned long long)ms);
        }
        assert_int_equal(ms, 42);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("time", writes_the_two_forms),
        CASE("time", keeps_to_years_of_four_digits),
        CASE("time", agrees_with_the_c_library),
        CASE("time", reads_fractions_and_offsets),
        CASE("time", reads_leap_days_and_leap_seconds),
        CASE("time", refuses_what_is_not_rfc_3339),
        CASE("time", refuses_a_time_cut_at_any_place),
        CASE("duration", reads_durations_as_go_does),
        CASE("duration", refuses_what_is_no_duration),
    };
    return RUN(tests);
}
