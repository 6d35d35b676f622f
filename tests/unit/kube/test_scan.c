/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of the scanner, against jansson where it has an opinion. Built twice, as test_span.c. */
#include "test.h"

#include <jansson.h>

#include "base/util.h"
#include "documents.h"
#include "generate.h"
#include "kube/scan.h"

/* ---- strings ---- */

/* The string in the text (with quotes) as the scanner reads it; NULL where it refuses. The caller
 * frees it. */
static char *scanned(const char *text, size_t len, size_t *ret_size)
{
    struct sw_scan scan;
    struct sw_text string;
    char *copy = exact_copy(text, len);
    char *plain = NULL;
    sw_scan_init(&scan, copy, len);
    if (sw_scan_string(&scan, &string) && sw_scan_end(&scan)) {
        plain = malloc(string.size + 1);
        assert_non_null(plain);
        sw_text_copy(&string, plain);
        plain[string.size] = 0;
        *ret_size = string.size;
        assert_int_equal(sw_text_has_nul(&string), memchr(plain, 0, string.size) != NULL);
        assert_true(sw_text_is(&string, plain, string.size));
        assert_false(sw_text_is(&string, plain, string.size + 1));
    } else {
        assert_non_null(scan.why);
    }
    free(copy);
    return plain;
}

static void check_string(const char *text, size_t len)
{
    size_t size = 0;
    char *have = scanned(text, len, &size);
    json_t *want = json_loadb(text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    if ((have != NULL) != (want != NULL)) {
        fail_msg("%.*s: %s, jansson %s", (int)len, text, have ? "accepted" : "refused",
                 want ? "accepts" : "refuses");
    }
    if (have) {
        assert_int_equal(size, json_string_length(want));
        assert_memory_equal(have, json_string_value(want), size);
    }
    json_decref(want);
    free(have);
}

/* What is between the quotes, alone and at every place of a longer string. */
static void check_inside(const char *inside, size_t len)
{
    char text[200];
    for (size_t before = 0; before < 40; before += before < 18 ? 1 : 7) {
        size_t at = 0;
        text[at++] = '"';
        memset(text + at, 'x', before);
        at += before;
        memcpy(text + at, inside, len);
        at += len;
        memset(text + at, 'y', 17);
        at += before % 2 ? 17 : 0;
        text[at++] = '"';
        check_string(text, at);
    }
}

TEST(reads_every_escape)
{
    char inside[16];
    for (int c = 0; c < 256; c++) {
        inside[0] = '\\';
        inside[1] = (char)c;
        check_inside(inside, 2);
        inside[0] = (char)c;
        check_inside(inside, 1);
    }
}

TEST(reads_every_code_unit)
{
    char text[32];
    for (unsigned unit = 0; unit < 0x10000; unit++) {
        int len = snprintf(text, sizeof(text), unit % 2 ? "\"\\u%04X\"" : "\"\\u%04x\"", unit);
        check_string(text, (size_t)len);
    }
}

TEST(reads_surrogates_in_pairs_only)
{
    static const char *const insides[] = {
        "\\ud83d\\ude00",
        "\\uD800\\uDC00",
        "\\udbff\\udfff",
        "\\ud83d",
        "\\ud83dx",
        "\\ud83d\\n",
        "\\ud83d\\ud83d",
        "\\ude00",
        "\\ude00\\ud83d",
        "\\ud83d\\u0041",
        "\\ud83d\\u",
        "\\ud83d\\ude0",
        "\\ud83d\\ude0g",
        "\\u12",
        "\\u12g4",
        "\\u",
        "\\",
        "\\u-123",
        "\\u 123",
        "\\U1234",
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(insides); i++) {
        check_inside(insides[i], strlen(insides[i]));
    }
}

TEST(checks_utf8)
{
    static const char *const insides[] = {
        "\x80",
        "\xbf",
        "\xc0\xaf",
        "\xc1\xbf",
        "\xc2\x80",
        "\xc3\xa9",
        "\xc3",
        "\xe0\x80\x80",
        "\xe0\x9f\xbf",
        "\xe0\xa0\x80",
        "\xe2\x82\xac",
        "\xe2\x82",
        "\xe2",
        "\xed\x9f\xbf",
        "\xed\xa0\x80",
        "\xee\x80\x80",
        "\xef\xbf\xbf",
        "\xf0\x8f\xbf\xbf",
        "\xf0\x90\x80\x80",
        "\xf0\x9f\x98\x80",
        "\xf0\x9f\x98",
        "\xf4\x8f\xbf\xbf",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xff",
        "\xfe",
        "\xc3\xc3",
        "\xe2\x82\xe2",
        "\xc3\xa9\xc3\xa9\xe2\x82\xac",
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(insides); i++) {
        check_inside(insides[i], strlen(insides[i]));
    }
    char pair[2];
    for (int a = 0x80; a < 256; a++) {
        for (int b = 0; b < 256; b++) {
            pair[0] = (char)a;
            pair[1] = (char)b;
            check_inside(pair, 2);
        }
    }
}

TEST(reads_random_strings)
{
    static const char *const pieces[] = {"a", "\\\\", "\\\"", "\\n", "\\u00e9", "\\ud83d\\ude00",
                                         "é", "😀",    "\"",   "\\",  "\x80",    "0123456789abcdef",
                                         "\n"};
    struct chance chance = {5};
    for (int round = 0; round < 30000; round++) {
        char text[400] = "\"";
        for (unsigned n = chance_below(&chance, 12); n > 0; n--) {
            /* The last ones are mistakes. */
            unsigned kind = chance_below(&chance, chance_below(&chance, 5) ? 8 : 13);
            strncat(text, pieces[kind], sizeof(text) - strlen(text) - 1);
        }
        strncat(text, "\"", sizeof(text) - strlen(text) - 1);
        check_string(text, strlen(text));
    }
}

/* ---- numbers ---- */

TEST(reads_integers)
{
    static const struct {
        const char *text;
        bool is_in_range;
        int64_t value;
    } known[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"7", true, 7},
        {"-12", true, -12},
        {"2147483648", true, 2147483648},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"99999999999999999999999999999999", false, 0},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(known); i++) {
        struct sw_scan scan;
        struct sw_number number;
        char *copy = exact_copy(known[i].text, strlen(known[i].text));
        sw_scan_init(&scan, copy, strlen(known[i].text));
        assert_true(sw_scan_number(&scan, &number));
        assert_true(number.is_integer);
        assert_int_equal(number.is_in_range, known[i].is_in_range);
        if (number.is_in_range) {
            assert_int_equal(number.integer, known[i].value);
        }
        free(copy);
    }
}

TEST(knows_what_is_a_number)
{
    static const char *const numbers[] = {
        "0.5",     "-0.0", "1e5", "1E+5",   "1.25e-3",
        "10.0e00", "1e0",  "0e1", "-1.5e9", "123456789.123456789"};
    static const char *const others[] = {"",     "-",    "+1",  "01",  "-01", "1.",
                                         ".5",   "1.e5", "1e",  "1e+", "e5",  "0x1",
                                         "1..2", "--1",  "NaN", "1 2", "1a",  "Infinity"};
    struct sw_number number;
    struct sw_scan scan;
    for (size_t i = 0; i < SW_ARRAY_SIZE(numbers); i++) {
        sw_scan_init(&scan, numbers[i], strlen(numbers[i]));
        assert_true(sw_scan_number(&scan, &number) && sw_scan_end(&scan));
        assert_false(number.is_integer);
    }
    for (size_t i = 0; i < SW_ARRAY_SIZE(others); i++) {
        sw_scan_init(&scan, others[i], strlen(others[i]));
        if (sw_scan_number(&scan, &number) && sw_scan_end(&scan)) {
            fail_msg("%s was taken for a number", others[i]);
        }
    }
}

/* ---- values ---- */

static bool accepts(bool (*pass)(struct sw_scan *scan), const char *text, size_t len)
{
    struct sw_scan scan;
    char *copy = exact_copy(text, len);
    sw_scan_init(&scan, copy, len);
    bool is_accepted = pass(&scan) && sw_scan_end(&scan);
    assert_int_equal(is_accepted, scan.why == NULL);
    free(copy);
    return is_accepted;
}

/* jansson also looks at the size of numbers. */
static bool jansson_accepts(const char *text, size_t len)
{
    json_t *json =
        json_loadb(text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
    json_decref(json);
    return json;
}

TEST(checks_values_as_jansson_does)
{
    static const char *const texts[] = {
        "{}",
        "[]",
        "{\"a\":1}",
        "[1,2]",
        " [ 1 , { \"a\" : [ ] } ] ",
        "{\"a\":1,}",
        "[1,]",
        "{,}",
        "[,1]",
        "{\"a\"}",
        "{\"a\":}",
        "{a:1}",
        "{\"a\" 1}",
        "{\"a\":1 2}",
        "[1 2]",
        "[1}",
        "{\"a\":1]",
        "[",
        "{",
        "]",
        "tru",
        "true",
        "nul",
        "null",
        "falsex",
        "[true]",
        "[t]",
        "\"a\"",
        "{\"a\":1}}",
        "[]]",
        "",
        " ",
        "{\"a\":\"\\x\"}",
        "{1:2}",
        "[\"\xff\"]",
        "{\"\":0}",
        "[-]",
        "[1.]",
        "[\x0b]",
        "[\x0c 1]",
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(texts); i++) {
        bool want = jansson_accepts(texts[i], strlen(texts[i]));
        if (accepts(sw_scan_value, texts[i], strlen(texts[i])) != want) {
            fail_msg("%s: jansson %s it", texts[i], want ? "accepts" : "refuses");
        }
        if (want) {
            assert_true(accepts(sw_scan_skip, texts[i], strlen(texts[i])));
        }
    }
}

TEST(refuses_every_part_of_a_document)
{
    struct document document = document_read("deployment-applied.json");
    assert_true(accepts(sw_scan_value, document.text, document.len));
    assert_true(accepts(sw_scan_skip, document.text, document.len));
    for (size_t len = 0; len + 1 < document.len; len++) {
        assert_false(accepts(sw_scan_value, document.text, len));
        assert_false(accepts(sw_scan_skip, document.text, len));
    }
    document_done(&document);
}

TEST(nests_as_deep_as_the_limit)
{
    char text[402];
    memset(text, '[', 201);
    memset(text + 201, ']', 201);
    assert_true(accepts(sw_scan_value, text + 1, 400));
    assert_true(accepts(sw_scan_skip, text + 1, 400));
    assert_false(accepts(sw_scan_value, text, 402));
    assert_false(accepts(sw_scan_skip, text, 402));
}

TEST(notes_white_space_between_tokens)
{
    static const struct {
        const char *text;
        bool has_space;
    } known[] = {
        {"{\"a b\":[1,\"c d\",{}]}", false},
        {"{ \"a\":1}", true},
        {"{\"a\" :1}", true},
        {"{\"a\": 1}", true},
        {"{\"a\":1 }", true},
        {"[1, 2]", true},
        {"[1\n,2]", true},
        {"[ ]", true},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(known); i++) {
        struct sw_scan scan;
        sw_scan_init(&scan, known[i].text, strlen(known[i].text));
        assert_true(sw_scan_value(&scan));
        assert_int_equal(scan.has_space, known[i].has_space);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("scanner", reads_every_escape),
        CASE("scanner", reads_every_code_unit),
        CASE("scanner", reads_surrogates_in_pairs_only),
        CASE("scanner", checks_utf8),
        CASE("scanner", reads_random_strings),
        CASE("scanner", reads_integers),
        CASE("scanner", knows_what_is_a_number),
        CASE("scanner", checks_values_as_jansson_does),
        CASE("scanner", refuses_every_part_of_a_document),
        CASE("scanner", nests_as_deep_as_the_limit),
        CASE("scanner", notes_white_space_between_tokens),
    };
    return RUN(tests);
}
