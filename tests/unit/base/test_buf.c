/* SPDX-License-Identifier: Apache-2.0 */
/* Growing runs of bytes and their limit. */
#include "base/buf.h"

#include <errno.h>

#include "base/util.h"
#include "overwritten.h"
#include "test.h"

TEST(is_an_empty_text_at_first)
{
    struct sw_buf buf;
    sw_buf_init(&buf, 10);
    assert_string_equal(buf.bytes, "");
    assert_int_equal(buf.len, 0);
    sw_buf_clear(&buf);
    sw_buf_consume(&buf, 0);
    assert_int_equal(sw_buf_append(&buf, NULL, 0), 0);
    assert_string_equal(buf.bytes, "");
    sw_buf_done(&buf);
    sw_buf_done(&buf);
}

TEST(appends_and_ends_with_nul)
{
    struct sw_buf buf;
    sw_buf_init(&buf, SIZE_MAX);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(sw_buf_append(&buf, "abc", 3), 0);
        assert_int_equal(buf.bytes[buf.len], '\0');
    }
    assert_int_equal(buf.len, 3000);
    assert_int_equal(strlen(buf.bytes), 3000);
    sw_buf_done(&buf);
    assert_string_equal(buf.bytes, "");
}

TEST(refuses_what_is_beyond_the_limit_and_adds_nothing)
{
    struct sw_buf buf;
    sw_buf_init(&buf, 8);
    assert_int_equal(sw_buf_puts(&buf, "123456"), 0);
    assert_int_equal(sw_buf_puts(&buf, "789"), -ENOBUFS);
    assert_string_equal(buf.bytes, "123456");
    assert_int_equal(sw_buf_printf(&buf, "%d", 789), -ENOBUFS);
    assert_string_equal(buf.bytes, "123456");
    assert_int_equal(sw_buf_printf(&buf, "%d", 78), 0);
    assert_string_equal(buf.bytes, "12345678");
    assert_int_equal(sw_buf_puts(&buf, "9"), -ENOBUFS);
    assert_int_equal(sw_buf_append(&buf, "", 0), 0);
    assert_int_equal(sw_buf_append(&buf, "x", SIZE_MAX), -ENOBUFS);
    assert_true(buf.room <= 9);
    sw_buf_done(&buf);
}

TEST(takes_nothing_where_the_limit_is_zero)
{
    struct sw_buf buf;
    sw_buf_init(&buf, 0);
    assert_int_equal(sw_buf_puts(&buf, "1"), -ENOBUFS);
    assert_int_equal(sw_buf_puts(&buf, ""), 0);
    assert_int_equal(sw_buf_printf(&buf, "%s", ""), 0);
    assert_string_equal(buf.bytes, "");
    sw_buf_done(&buf);
}

TEST(formats_texts_of_any_length)
{
    struct sw_buf buf;
    sw_buf_init(&buf, SIZE_MAX);
    char wanted[400] = "";
    for (size_t len = 0; len < 300; len++) {
        memset(wanted, 'x', len);
        wanted[len] = '\0';
        sw_buf_clear(&buf);
        assert_int_equal(sw_buf_printf(&buf, "%s", wanted), 0);
        assert_string_equal(buf.bytes, wanted);
        assert_int_equal(buf.len, len);
    }
    sw_buf_done(&buf);
}

TEST(counts_what_was_written_into_reserved_space)
{
    struct sw_buf buf;
    sw_buf_init(&buf, 100);
    char *space;
    assert_int_equal(sw_buf_reserve(&buf, 50, &space), 0);
    memset(space, 'a', 50);
    sw_buf_commit(&buf, 20);
    assert_int_equal(buf.len, 20);
    assert_int_equal(strlen(buf.bytes), 20);
    assert_int_equal(sw_buf_reserve(&buf, 81, &space), -ENOBUFS);
    assert_int_equal(sw_buf_reserve(&buf, 80, &space), 0);
    memset(space, 'b', 80);
    sw_buf_commit(&buf, 80);
    assert_int_equal(strlen(buf.bytes), 100);
    assert_aborts(sw_buf_commit(&buf, 1));
    sw_buf_done(&buf);
}

TEST(drops_bytes_from_the_front)
{
    struct sw_buf buf;
    sw_buf_init(&buf, 100);
    sw_buf_puts(&buf, "GET / HTTP");
    sw_buf_consume(&buf, 4);
    assert_string_equal(buf.bytes, "/ HTTP");
    sw_buf_consume(&buf, 6);
    assert_string_equal(buf.bytes, "");
    assert_aborts(sw_buf_consume(&buf, 1));
    sw_buf_done(&buf);
}

TEST(hands_over_its_bytes)
{
    struct sw_buf buf;
    sw_buf_init(&buf, 100);
    SW_AUTO(char, sw_free) nothing = sw_buf_steal(&buf);
    assert_string_equal(nothing, "");
    sw_buf_puts(&buf, "mine");
    SW_AUTO(char, sw_free) mine = sw_buf_steal(&buf);
    assert_string_equal(mine, "mine");
    assert_int_equal(buf.len, 0);
    assert_int_equal(sw_buf_puts(&buf, "again"), 0);
    assert_string_equal(buf.bytes, "again");
    sw_buf_done(&buf);
}

/* Rooms are 64, 128, 256, 512 and 1024 bytes long: four are left behind, and one at the end. */
TEST(a_secret_is_overwritten_wherever_it_was)
{
    static const char secret[] = "sesame";
    struct sw_buf buf;
    sw_buf_init(&buf, SIZE_MAX);
    buf.is_secret = true;
    overwritten_text = secret;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(sw_buf_puts(&buf, secret), 0);
        assert_memory_equal(buf.bytes + buf.len - strlen(secret), secret, sizeof(secret));
    }
    assert_int_equal(buf.len, 100 * strlen(secret));
    assert_int_equal(overwritten(), 4);
    sw_buf_done(&buf);
    assert_int_equal(overwritten(), 1);
    assert_true(buf.is_secret);
    assert_int_equal(buf.len, 0);
    assert_int_equal(sw_buf_puts(&buf, secret), 0);
    char *bytes = sw_buf_steal(&buf);
    assert_string_equal(bytes, secret);
    assert_true(buf.is_secret);
    sw_free(bytes);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("buf", is_an_empty_text_at_first),
        CASE("buf", appends_and_ends_with_nul),
        CASE("buf", refuses_what_is_beyond_the_limit_and_adds_nothing),
        CASE("buf", takes_nothing_where_the_limit_is_zero),
        CASE("buf", formats_texts_of_any_length),
        CASE("buf", counts_what_was_written_into_reserved_space),
        CASE("buf", drops_bytes_from_the_front),
        CASE("buf", hands_over_its_bytes),
        CASE("buf", a_secret_is_overwritten_wherever_it_was),
    };
    return RUN(tests);
}
