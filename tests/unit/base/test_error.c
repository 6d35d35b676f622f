/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of error codes, and error texts that are put together. */
#include "base/error.h"

#include <errno.h>
#include <uv.h>

#include "base/utf8.h"
#include "test.h"

TEST(has_a_text_for_every_code)
{
    for (int code = SW_E_FIRST; code <= SW_E_LAST; code++) {
        assert_string_not_equal(sw_strerror(code), "unknown error");
    }
    assert_string_equal(sw_strerror(0), "success");
    assert_string_equal(sw_strerror(-ENOENT), "no such file or directory");
    assert_string_equal(sw_strerror(UV_EOF), "end of file");
    assert_string_equal(sw_strerror(UV_EAI_NONAME), "unknown node or service");
    assert_string_equal(sw_strerror(-EUCLEAN), "Structure needs cleaning");
    assert_string_equal(sw_strerror(SW_E_LAST + 1), "unknown error");
    assert_string_equal(sw_strerror(SW_E_FIRST - 1), "unknown error");
    assert_string_equal(sw_strerror(17), "unknown error");
}

TEST(returns_the_code_and_keeps_the_text)
{
    struct sw_error error = {0};
    assert_int_equal(sw_error_set(&error, -EINVAL, "port %d", 70000), -EINVAL);
    assert_int_equal(error.code, -EINVAL);
    assert_string_equal(error.text, "port 70000");
    assert_int_equal(sw_error_set(NULL, -EINVAL, "nobody asks"), -EINVAL);
    sw_error_prefix(NULL, "nobody asks");
}

TEST(puts_a_prefix_in_front)
{
    struct sw_error error = {0};
    sw_error_set(&error, -EINVAL, "bad port");
    sw_error_prefix(&error, "webhook %d", 3);
    sw_error_prefix(&error, "slipway.yaml");
    assert_string_equal(error.text, "slipway.yaml: webhook 3: bad port");
    assert_int_equal(error.code, -EINVAL);
}

TEST(may_quote_itself)
{
    struct sw_error error = {0};
    sw_error_set(&error, -EIO, "inner");
    sw_error_set(&error, -EIO, "outer (%s)", error.text);
    assert_string_equal(error.text, "outer (inner)");
}

TEST(cuts_at_the_end_of_a_character)
{
    /* Characters of 1 to 4 bytes over the end of the text at every offset. */
    static const char *const characters[] = {"a", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x9a\xa2"};
    for (size_t c = 0; c < 4; c++) {
        for (size_t shift = 0; shift < 4; shift++) {
            char text[2000] = "";
            memset(text, '-', shift);
            for (size_t at = shift; at < 1000; at += strlen(characters[c])) {
                memcpy(text + at, characters[c], strlen(characters[c]) + 1);
            }
            struct sw_error error = {0};
            sw_error_set(&error, -EIO, "%s", text);
            size_t len = strlen(error.text);
            assert_true(sw_utf8_is_valid(error.text, len));
            assert_in_range(len, sizeof(error.text) - 4, sizeof(error.text) - 1);
            sw_error_prefix(&error, "%s", text);
            assert_true(sw_utf8_is_valid(error.text, strlen(error.text)));
        }
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("error", has_a_text_for_every_code),
        CASE("error", returns_the_code_and_keeps_the_text),
        CASE("error", puts_a_prefix_in_front),
        CASE("error", may_quote_itself),
        CASE("error", cuts_at_the_end_of_a_character),
    };
    return RUN(tests);
}
