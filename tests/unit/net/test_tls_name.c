/* SPDX-License-Identifier: Apache-2.0 */
/* Names in certificates: DER put together by hand, whole and broken at every place. */
#include "net/tls_name.h"

#include <errno.h>

#include "base/error.h"
#include "base/util.h"
#include "test.h"

/* Extensions with a basicConstraints, critical, before the names: DNS server.test, *.wild.test;
 * mail; IP 127.0.0.1, ::1, and one of 5 octets. */
static const unsigned char extensions[] =
    "\x30\x5a"
    "\x30\x0f\x06\x03\x55\x1d\x13\x01\x01\xff\x04\x05\x30\x03\x01\x01\xff"
    "\x30\x47\x06\x03\x55\x1d\x11\x04\x40\x30\x3e"
    "\x82\x0bserver.test"
    "\x82\x0b*.wild.test"
    "\x81\x03"
    "a@b"
    "\x87\x04\x7f\x00\x00\x01"
    "\x87\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"
    "\x87\x05\x01\x02\x03\x04\x05";
enum { EXTENSIONS_LEN = sizeof(extensions) - 1 };

static int check(const char *host, struct sw_error *error)
{
    return sw_tls_name_check(extensions, EXTENSIONS_LEN, host, error);
}

TEST(walks_dns_names_and_addresses)
{
    struct sw_san_iter iter;
    struct sw_san san;
    assert_int_equal(sw_san_find(extensions, EXTENSIONS_LEN, &iter), 0);
    assert_true(sw_san_next(&iter, &san));
    assert_int_equal(san.kind, SW_SAN_DNS);
    assert_int_equal(san.len, 11);
    assert_memory_equal(san.bytes, "server.test", 11);
    assert_true(sw_san_next(&iter, &san));
    assert_true(sw_san_next(&iter, &san));
    assert_int_equal(san.kind, SW_SAN_IP);
    assert_int_equal(san.len, 4);
    assert_true(sw_san_next(&iter, &san));
    assert_true(sw_san_next(&iter, &san));
    assert_int_equal(san.len, 5);
    assert_false(sw_san_next(&iter, &san));
    assert_false(sw_san_next(&iter, &san));
}

TEST(matches_names_and_addresses)
{
    static const char *const good[] = {"server.test", "SERVER.TEST",   "server.test.",
                                       "a.wild.test", "A-9.Wild.test", "127.0.0.1",
                                       "::1",         "0:0::1",        "xn--1.wild.test."};
    static const char *const bad[] = {"",
                                      ".",
                                      "server",
                                      "server.tes",
                                      "xserver.test",
                                      "a.server.test",
                                      "wild.test",
                                      ".wild.test",
                                      "a.b.wild.test",
                                      "127.0.0.2",
                                      "127.0.0.1.",
                                      "::2",
                                      "::ffff:127.0.0.1",
                                      "1.2.3.4",
                                      "server.test..",
                                      "a@b"};
    for (size_t i = 0; i < SW_ARRAY_SIZE(good); i++) {
        struct sw_error error;
        if (check(good[i], &error)) {
            fail_msg("%s: %s", good[i], error.text);
        }
    }
    for (size_t i = 0; i < SW_ARRAY_SIZE(bad); i++) {
        if (check(bad[i], NULL) != SW_E_CERTIFICATE) {
            fail_msg("\"%s\" was accepted", bad[i]);
        }
    }
}

TEST(takes_the_wildcard_for_the_leftmost_label_alone)
{
    static const struct {
        const char *pattern, *host;
        bool is_match;
    } rows[] = {
        {"*.test", "a.test", true},
        {"*.test", "test", false},
        {"*", "a", false},
        {"*.", "a.", false},
        {"*", "a.test", false},
        {"a*.test", "ab.test", false},
        {"a.*.test", "a.b.test", false},
        {"*.*.test", "a.b.test", false},
        {"*.0.0.1", "127.0.0.1", false},
        {"127.0.0.1", "127.0.0.1", false},
        {"", "", false},
        {"a", "A", true},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
        struct sw_san san = {.kind = SW_SAN_DNS,
                             .bytes = (const unsigned char *)rows[i].pattern,
                             .len = strlen(rows[i].pattern)};
        if (sw_san_matches(&san, rows[i].host) != rows[i].is_match) {
            fail_msg("%s for %s", rows[i].pattern, rows[i].host);
        }
    }
    struct sw_san nul = {.kind = SW_SAN_DNS, .bytes = (const unsigned char *)"a.test\0b", .len = 8};
    assert_false(sw_san_matches(&nul, "a.test"));
}

TEST(says_what_it_is_for)
{
    struct sw_error error;
    assert_int_equal(check("x.test", &error), SW_E_CERTIFICATE);
    assert_string_equal(error.text,
                        "certificate is for server.test, *.wild.test, 127.0.0.1, ::1, (a broken "
                        "address); not for x.test");
}

TEST(prints_foreign_bytes_as_question_marks_and_shortens)
{
    static const unsigned char strange[] = "\x30\x21\x30\x1f\x06\x03\x55\x1d\x11\x04\x18\x30\x16"
                                           "\x82\x03\x1b\n%"
                                           "\x82\x00\x82\x01z\x82\x01z\x82\x01z\x82\x01z\x82\x01z";
    struct sw_error error;
    assert_int_equal(sw_tls_name_check(strange, sizeof(strange) - 1, "x", &error),
                     SW_E_CERTIFICATE);
    assert_string_equal(error.text, "certificate is for ?"
                                    "?%, , z, z, z, z and 1 more; not for x");
}

TEST(has_no_names)
{
    struct sw_error error;
    assert_int_equal(sw_san_find(NULL, 0, NULL), -ENOENT);
    assert_int_equal(sw_tls_name_check(extensions, 0, "server.test", &error), SW_E_CERTIFICATE);
    assert_non_null(strstr(error.text, "no subject alternative name"));
    /* An empty list, and one with mail alone. */
    assert_int_equal(
        sw_tls_name_check(
            (const unsigned char *)"\x30\x0b\x30\x09\x06\x03\x55\x1d\x11\x04\x02\x30\x00", 13, "x",
            &error),
        SW_E_CERTIFICATE);
    assert_non_null(strstr(error.text, "no DNS name and no address"));
}

/* Each copy is as long as it says and no longer, so that the sanitizer sees a byte read beyond. */
TEST(survives_every_cut)
{
    for (size_t len = 0; len < EXTENSIONS_LEN; len++) {
        unsigned char *copy = sw_malloc(len ? len : 1);
        memcpy(copy, extensions, len);
        if (sw_tls_name_check(copy, len, "server.test", NULL) != SW_E_CERTIFICATE) {
            fail_msg("the first %zu bytes were accepted", len);
        }
        sw_free(copy);
    }
}

TEST(survives_every_changed_byte)
{
    unsigned char *copy = sw_malloc(EXTENSIONS_LEN);
    size_t accepted = 0;
    for (size_t at = 0; at < EXTENSIONS_LEN; at++) {
        for (unsigned value = 0; value < 256; value++) {
            memcpy(copy, extensions, EXTENSIONS_LEN);
            copy[at] = (unsigned char)value;
            struct sw_error error;
            int rc = sw_tls_name_check(copy, EXTENSIONS_LEN, "other.test", &error);
            assert_int_equal(rc, SW_E_CERTIFICATE);
            accepted += sw_tls_name_check(copy, EXTENSIONS_LEN, "server.test", NULL) == 0;
        }
    }
    /* Most bytes are lengths' contents and other names. */
    assert_true(accepted > 0 && accepted < (size_t)EXTENSIONS_LEN * 256);
    sw_free(copy);
}

TEST(refuses_lengths_that_der_forbids)
{
    static const struct {
        const char *bytes;
        size_t len;
    } rows[] = {
        {"\x30", 1},
        {"\x30\x80\x00\x00", 4},                     /* indefinite */
        {"\x30\x85\x00\x00\x00\x00\x00", 7},         /* five bytes of length */
        {"\x30\x84\xff\xff\xff\xff", 6},             /* beyond the end */
        {"\x30\x82\x00", 3},                         /* cut in the length */
        {"\x3f\x81\x00\x00", 4},                     /* a long tag */
        {"\x31\x00", 2},                             /* a set */
        {"\x30\x02\x30\x01", 4},                     /* an element beyond its list */
        {"\x30\x04\x30\x02\x04\x00", 6},             /* an extension without OID */
        {"\x30\x07\x30\x05\x06\x03\x55\x1d\x11", 9}, /* and without value */
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
        struct sw_san_iter iter;
        if (sw_san_find((const unsigned char *)rows[i].bytes, rows[i].len, &iter) != SW_E_SYNTAX) {
            fail_msg("row %zu was taken", i);
        }
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("tls name", walks_dns_names_and_addresses),
        CASE("tls name", matches_names_and_addresses),
        CASE("tls name", takes_the_wildcard_for_the_leftmost_label_alone),
        CASE("tls name", says_what_it_is_for),
        CASE("tls name", prints_foreign_bytes_as_question_marks_and_shortens),
        CASE("tls name", has_no_names),
        CASE("tls name", survives_every_cut),
        CASE("tls name", survives_every_changed_byte),
        CASE("tls name", refuses_lengths_that_der_forbids),
    };
    return RUN(tests);
}
