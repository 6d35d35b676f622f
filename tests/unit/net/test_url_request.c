/* SPDX-License-Identifier: Apache-2.0 */
/* URLs of requests: what is taken apart, what is refused, and where redirects lead. */
#include "net/url_request.h"

#include <errno.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"
#include "test.h"

static char *text_of(const struct sw_url_request *url)
{
    struct sw_buf text;
    sw_buf_init(&text, SIZE_MAX);
    assert_int_equal(sw_url_request_text(url, &text), 0);
    return sw_buf_steal(&text);
}

TEST(takes_urls_apart)
{
    static const struct {
        const char *text, *place, *target, *username, *password;
    } rows[] = {
        {"http://h", "http://h/", "/", NULL, NULL},
        {"https://h:443?a=b", "https://h/", "/?a=b", NULL, NULL},
        {"HTTP://h:8080/a/b/?c#d?e", "http://h:8080/a/b/", "/a/b/?c", NULL, NULL},
        {"https://[::1]:9090/x", "https://[::1]:9090/x", "/x", NULL, NULL},
        {"http://ann@h/", "http://h/", "/", "ann", NULL},
        {"http://ann:@h/", "http://h/", "/", "ann", ""},
        {"http://a%20b:p%40s:s@h:81", "http://h:81/", "/", "a b", "p@s:s"},
        {"http://ann:p@ss@h/", "http://h/", "/", "ann", "p@ss"},
        {"http://h/?a@b", "http://h/", "/?a@b", NULL, NULL},
        {"http://h/a%20b?c=%7B{}|[]^`", "http://h/a%20b", "/a%20b?c=%7B{}|[]^`", NULL, NULL},
        {"http://h/a/./b/../c", "http://h/a/c", "/a/c", NULL, NULL},
        {"http://h/../../a/..", "http://h/", "/", NULL, NULL},
        {"http://h/a/b/.?../x", "http://h/a/b/", "/a/b/?../x", NULL, NULL},
        {"http://h//a//..///b...", "http://h//a///b...", "//a///b...", NULL, NULL},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
        struct sw_url_request url;
        struct sw_error error = {0};
        if (sw_url_request_parse(rows[i].text, &url, &error)) {
            fail_msg("%s: %s", rows[i].text, error.text);
        }
        SW_AUTO(char, sw_free) text = text_of(&url);
        assert_string_equal(text, rows[i].place);
        assert_string_equal(url.target, rows[i].target);
        assert_string_equal(url.username ? url.username : "-",
                            rows[i].username ? rows[i].username : "-");
        assert_string_equal(url.password ? url.password : "-",
                            rows[i].password ? rows[i].password : "-");
        sw_url_request_done(&url);
        sw_url_request_done(&url);
    }
}

TEST(refuses_urls_and_says_why)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "neither"},
        {"prometheus:9090/api", "neither"},
        {"ftp://h/", "neither"},
        {"http:/h/", "neither"},
        {"http://", "no host"},
        {"http:///x", "no host"},
        {"http://?x", "no host"},
        {"http://ann:pw@/", "no host"},
        {"http://h:0/", "port"},
        {"http://h:99999/", "port"},
        {"http://h:80a/", "port"},
        {"http://h h/", "character"},
        {"http://h\r\nX: y/", "character"},
        {"http://h\\@evil/", "user has a character that must be escaped: 0x5c"},
        {"http://a%zz@h/", "user has a broken % escape"},
        {"http://a%00@h/", "broken % escape"},
        {"http://h/a b", "path has a character that must be escaped: 0x20"},
        {"http://h/a\r\nHost: x", "path has a character that must be escaped: 0x0d"},
        {"http://h/\xc3\xa4", "path has a character that must be escaped: 0xc3"},
        {"http://h/a%2", "path has a broken % escape"},
        {"http://h/?a=100%", "query has a broken % escape"},
        {"http://h/?a=\"b\"", "query has a character that must be escaped: 0x22"},
        {"http://::1/", "brackets"},
        {"http://[::1/", "brackets"},
        {"http://a%3ab:pw@h/", "a user with a colon"},
        {"http://300.1.1.1/", "IPv4"},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
        struct sw_url_request url;
        struct sw_error error = {0};
        if (sw_url_request_parse(rows[i].text, &url, &error) != SW_E_SYNTAX) {
            fail_msg("%s was taken", rows[i].text);
        }
        if (!strstr(error.text, rows[i].why)) {
            fail_msg("%s: %s", rows[i].text, error.text);
        }
        assert_int_equal(sw_url_request_parse(rows[i].text, &url, NULL), SW_E_SYNTAX);
    }
}

TEST(no_password_is_told)
{
    static const char *const texts[] = {"http://ann:sesame@h h/", "http://ann:sesame@h:x/",
                                        "http://ann:sesame%@h/", "http://ann:sesame @h/",
                                        "http://ann:sesame@h/a b"};
    for (size_t i = 0; i < SW_ARRAY_SIZE(texts); i++) {
        struct sw_url_request url;
        struct sw_error error = {0};
        assert_int_equal(sw_url_request_parse(texts[i], &url, &error), SW_E_SYNTAX);
        assert_null(strstr(error.text, "sesame"));
    }
}

TEST(refuses_what_is_too_long)
{
    SW_AUTO(char, sw_free) text = sw_malloc(SW_URL_LIMIT + 2);
    struct sw_url_request url;
    memset(text, 'a', SW_URL_LIMIT + 1);
    memcpy(text, "http://h/", 9);
    struct sw_error error = {0};
    assert_int_equal(sw_url_request_parse(text, &url, &error), SW_E_SYNTAX);
    assert_non_null(strstr(error.text, "longer than 32768 bytes"));
    text[SW_URL_LIMIT] = '\0';
    assert_int_equal(sw_url_request_parse(text, &url, NULL), 0);
    assert_int_equal(strlen(url.target), SW_URL_LIMIT - 8);
    sw_url_request_done(&url);
}

/* Section 5.4 of RFC 3986, as far as it is about http, and what is special about an empty path. */
TEST(follows_references)
{
    static const struct {
        const char *reference, *place, *query;
    } rows[] = {
        {"http://g", "http://g/", ""},
        {"g", "http://a/b/c/g", ""},
        {"./g", "http://a/b/c/g", ""},
        {"g/", "http://a/b/c/g/", ""},
        {"/g", "http://a/g", ""},
        {"//g", "http://g/", ""},
        {"?y", "http://a/b/c/d;p", "?y"},
        {"g?y", "http://a/b/c/g", "?y"},
        {"#s", "http://a/b/c/d;p", "?q"},
        {"g#s", "http://a/b/c/g", ""},
        {"g?y#s", "http://a/b/c/g", "?y"},
        {";x", "http://a/b/c/;x", ""},
        {"g;x?y#s", "http://a/b/c/g;x", "?y"},
        {"", "http://a/b/c/d;p", "?q"},
        {".", "http://a/b/c/", ""},
        {"./", "http://a/b/c/", ""},
        {"..", "http://a/b/", ""},
        {"../", "http://a/b/", ""},
        {"../g", "http://a/b/g", ""},
        {"../..", "http://a/", ""},
        {"../../g", "http://a/g", ""},
        {"../../../g", "http://a/g", ""},
        {"/./g", "http://a/g", ""},
        {"/../g", "http://a/g", ""},
        {"g.", "http://a/b/c/g.", ""},
        {".g", "http://a/b/c/.g", ""},
        {"..g", "http://a/b/c/..g", ""},
        {"./../g", "http://a/b/g", ""},
        {"./g/.", "http://a/b/c/g/", ""},
        {"g/./h", "http://a/b/c/g/h", ""},
        {"g/../h", "http://a/b/c/h", ""},
        {"g;x=1/../y", "http://a/b/c/y", ""},
        {"g?y/./x", "http://a/b/c/g", "?y/./x"},
        {"HTTPS://b:8443/x?y", "https://b:8443/x", "?y"},
        {"//ann:pw@b/x", "http://b/x", ""},
    };
    struct sw_url_request base;
    assert_int_equal(sw_url_request_parse("http://u:p@a/b/c/d;p?q", &base, NULL), 0);
    for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
        struct sw_url_request url;
        struct sw_error error = {0};
        if (sw_url_request_follow(&base, rows[i].reference, &url, &error)) {
            fail_msg("%s: %s", rows[i].reference, error.text);
        }
        SW_AUTO(char, sw_free) text = text_of(&url);
        assert_string_equal(text, rows[i].place);
        assert_string_equal(url.target + strcspn(url.target, "?"), rows[i].query);
        assert_null(url.username);
        assert_null(url.password);
        sw_url_request_done(&url);
    }
    sw_url_request_done(&base);
}

TEST(follows_to_no_other_scheme)
{
    static const char *const references[] = {"mailto:ann@b", "javascript:x", "file:///etc/passwd",
                                             "g:h",          "http:g",       "a b",
                                             "//",           "//b:x/"};
    struct sw_url_request base, url;
    assert_int_equal(sw_url_request_parse("https://[::1]:8443", &base, NULL), 0);
    for (size_t i = 0; i < SW_ARRAY_SIZE(references); i++) {
        struct sw_error error = {0};
        assert_int_equal(sw_url_request_follow(&base, references[i], &url, &error), SW_E_SYNTAX);
        assert_true(error.text[0]);
    }
    assert_int_equal(sw_url_request_follow(&base, "x:/y", &url, NULL), SW_E_SYNTAX);
    assert_int_equal(sw_url_request_follow(&base, "./x:/y", &url, NULL), 0);
    SW_AUTO(char, sw_free) text = text_of(&url);
    assert_string_equal(text, "https://[::1]:8443/x:/y");
    sw_url_request_done(&url);
    sw_url_request_done(&base);
}

TEST(knows_origins)
{
    static const struct {
        const char *a, *b;
        bool is_same;
    } rows[] = {
        {"http://h/a", "http://H:80/b?c", true}, {"https://h:443", "https://h", true},
        {"http://h", "https://h", false},        {"http://h:443", "https://h", false},
        {"http://h", "http://h:8080", false},    {"http://h", "http://h.", false},
        {"http://ann@h", "http://bob@h", true},  {"http://h", "http://i", false},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
        struct sw_url_request a, b;
        assert_int_equal(sw_url_request_parse(rows[i].a, &a, NULL), 0);
        assert_int_equal(sw_url_request_parse(rows[i].b, &b, NULL), 0);
        assert_int_equal(sw_url_is_same_origin(&a.origin, &b.origin), rows[i].is_same);
        sw_url_request_done(&a);
        sw_url_request_done(&b);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("url of a request", takes_urls_apart),
        CASE("url of a request", refuses_urls_and_says_why),
        CASE("url of a request", no_password_is_told),
        CASE("url of a request", refuses_what_is_too_long),
        CASE("url of a request", follows_references),
        CASE("url of a request", follows_to_no_other_scheme),
        CASE("url of a request", knows_origins),
    };
    return RUN(tests);
}
