/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 against the definition, for every character and every pair of bytes. */
#include "base/utf8.h"

#include "base/util.h"
#include "test.h"

static size_t encode(uint32_t code, char text[4])
{
    if (code < 0x80) {
        text[0] = (char)code;
        return 1;
    }
    size_t len = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--, code >>= 6) {
        text[i] = (char)(0x80 | (code & 0x3f));
    }
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    text[0] = (char)(lead[len] | code);
    return len;
}

TEST(knows_every_character)
{
    for (uint32_t code = 0; code < 0x120000; code++) {
        char text[4];
        size_t len = encode(code, text);
        bool is_character = code < 0x110000 && (code < 0xd800 || code > 0xdfff);
        assert_int_equal(sw_utf8_length(text, len, NULL), is_character ? len : 0);
        for (size_t cut = 1; cut < len; cut++) {
            assert_int_equal(sw_utf8_length(text, cut, NULL), 0);
        }
    }
}

TEST(refuses_overlong_forms)
{
    assert_false(sw_utf8_is_valid("\xc0\xaf", 2));
    assert_false(sw_utf8_is_valid("\xc1\xbf", 2));
    assert_false(sw_utf8_is_valid("\xe0\x80\xaf", 3));
    assert_false(sw_utf8_is_valid("\xe0\x9f\xbf", 3));
    assert_false(sw_utf8_is_valid("\xf0\x80\x80\xaf", 4));
    assert_false(sw_utf8_is_valid("\xf0\x8f\xbf\xbf", 4));
    assert_true(sw_utf8_is_valid("", 0));
    assert_true(sw_utf8_is_valid("a\0b", 3));
}

/* The example of Unicode 15.0, table 3-8. */
TEST(replaces_maximal_parts)
{
    static const char text[] = "\x61\xf1\x80\x80\xe1\x80\xc2\x62\x80\x63\x80\xbf\x64";
    SW_AUTO(char, sw_free) got = sw_utf8_repair(text, sizeof(text) - 1);
#define U SW_UTF8_REPLACEMENT
    assert_string_equal(got, "a" U U U "b" U "c" U U "d");
#undef U
    assert_null(sw_utf8_repair("fine", 4));
}

TEST(makes_any_bytes_valid)
{
    for (unsigned a = 0; a < 256; a++) {
        for (unsigned b = 0; b < 256; b++) {
            char text[4] = {(char)a, (char)b, 'x', '\0'};
            SW_AUTO(char, sw_free) got = sw_utf8_repair(text, 3);
            assert_true(!got || sw_utf8_is_valid(got, strlen(got)));
        }
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("utf8", knows_every_character),
        CASE("utf8", refuses_overlong_forms),
        CASE("utf8", replaces_maximal_parts),
        CASE("utf8", makes_any_bytes_valid),
    };
    return RUN(tests);
}
