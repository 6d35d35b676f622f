/* SPDX-License-Identifier: Apache-2.0 */
/* URLs, addresses to bind, percent-encoding: what is taken and what is refused. */
#include "net/url.h"

#include <errno.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"
#include "test.h"

TEST(takes_urls_apart)
{
    static const struct {
        const char *text, *host, *path, *authority;
        uint16_t port;
        bool is_https;
    } rows[] = {
        {"https://10.96.0.1", "10.96.0.1", "", "10.96.0.1", 443, true},
        {"https://10.96.0.1:6443/", "10.96.0.1", "", "10.96.0.1:6443", 6443, true},
        {"http://localhost:8080", "localhost", "", "localhost:8080", 8080, false},
        {"http://localhost:80/", "localhost", "", "localhost", 80, false},
        {"HTTPS://[2001:db8::1]:443", "2001:db8::1", "", "[2001:db8::1]", 443, true},
        {"https://[::1]:8443/a", "::1", "/a", "[::1]:8443", 8443, true},
        {"https://api.example.com:/x//", "api.example.com", "/x", "api.example.com", 443, true},
        {"https://rancher/k8s/clusters/c-m-1%2f/", "rancher", "/k8s/clusters/c-m-1%2f", "rancher",
         443, true},
        {"https://a_b.c./...", "a_b.c.", "/...", "a_b.c.", 443, true},
        {"https://h:65535/@:", "h", "/@:", "h:65535", 65535, true},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
        struct sw_url url;
        struct sw_error error = {0};
        if (sw_url_parse(rows[i].text, &url, &error)) {
            fail_msg("%s: %s", rows[i].text, error.text);
        }
        assert_string_equal(url.host, rows[i].host);
        assert_string_equal(url.path, rows[i].path);
        assert_int_equal(url.port, rows[i].port);
        assert_int_equal(url.is_https, rows[i].is_https);
        struct sw_buf authority;
        sw_buf_init(&authority, SIZE_MAX);
        assert_int_equal(sw_url_authority(&url, &authority), 0);
        assert_string_equal(authority.bytes, rows[i].authority);
        sw_buf_done(&authority);
        sw_url_done(&url);
        sw_url_done(&url);
    }
}

TEST(refuses_urls_and_says_why)
{
    static char long_host[400];
    memset(long_host, 'a', sizeof(long_host) - 1);
    memcpy(long_host, "https://", 8);
    const struct {
        const char *text, *why;
    } rows[] = {
        {"", "neither \"https://\" nor"},
        {"localhost:8080", "neither"},
        {"ftp://x", "neither"},
        {"https:/x", "neither"},
        {"https://", "no host"},
        {"https:///path", "no host"},
        {"https://:443", "no host"},
        {"https://user:secret@h", "user name or password"},
        {"https://h?x=1", "query"},
        {"https://h/p#f", "fragment"},
        {"https://h:0", "port"},
        {"https://h:65536", "port"},
        {"https://h:99999999999999999999", "port"},
        {"https://h:-1", "port"},
        {"https://h:+1", "port"},
        {"https://h: 1", "port"},
        {"https://1.2.3", "IPv4"},
        {"https://1.2.3.256", "IPv4"},
        {"https://::1", "brackets"},
        {"https://[::1", "brackets"},
        {"https://[::1]x", "between"},
        {"https://[::g]", "IPv6"},
        {"https://[]", "IPv6"},
        {"https://[1.2.3.4]", "IPv6"},
        {"https://[fe80::1%eth0]", "IPv6"},
        {"https://a..b", "empty label"},
        {"https://.a", "empty label"},
        {"https://a b", "no name has"},
        {"https://h\xc3\xa4", "no name has"},
        {"https://h/a b", "0x20"},
        {"https://h/\n", "0x0a"},
        {"https://h/\x80", "0x80"},
        {"https://h/%", "%"},
        {"https://h/%4", "%"},
        {"https://h/%zz", "%"},
        {"https://h/a/../b", "\"..\""},
        {"https://h/.", "\".\""},
        {"https://h/x/..", "\"..\""},
        {long_host, "longer"},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
        struct sw_url url = {.port = 7};
        struct sw_error error = {0};
        assert_int_equal(sw_url_parse(rows[i].text, &url, &error), SW_E_SYNTAX);
        if (!strstr(error.text, rows[i].why)) {
            fail_msg("%s: wanted \"%s\", got \"%s\"", rows[i].text, rows[i].why, error.text);
        }
        assert_null(strstr(error.text, "secret"));
        assert_int_equal(url.port, 7);
        assert_int_equal(sw_url_parse(rows[i].text, &url, NULL), SW_E_SYNTAX);
    }
}

TEST(takes_addresses_apart)
{
    static const struct {
        const char *text, *host;
        uint16_t port;
    } rows[] = {
        {":8443", "", 8443},
        {":0", "", 0},
        {"127.0.0.1:9", "127.0.0.1", 9},
        {"localhost:1", "localhost", 1},
        {"[::]:65535", "::", 65535},
        {"[::1]:0", "::1", 0},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
        char host[256];
        uint16_t port;
        struct sw_error error = {0};
        if (sw_address_parse(rows[i].text, host, &port, &error)) {
            fail_msg("%s", error.text);
        }
        assert_string_equal(host, rows[i].host);
        assert_int_equal(port, rows[i].port);
    }
}

TEST(refuses_addresses_and_quotes_them)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "no port"},          {"8443", "IPv4"},       {"localhost", "no port"},
        {"localhost:", "port"},   {"::1:80", "brackets"}, {"[::1]", "no port"},
        {"[::1]80", "no port"},   {"[]:80", "IPv6"},      {"a:65536", "port"},
        {"a:b", "port"},          {"a b:1", "no name"},   {":", "port"},
        {"0x7f.1:80", "no port"}, {"[:80", "no name"},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(rows); i++) {
        char host[256] = "before";
        uint16_t port = 7;
        struct sw_error error = {0};
        int rc = sw_address_parse(rows[i].text, host, &port, &error);
        if (i == 12) { /* a name like any other, though it looks like a number */
            assert_int_equal(rc, 0);
            continue;
        }
        assert_int_equal(rc, SW_E_SYNTAX);
        if (!strstr(error.text, rows[i].why) || !strstr(error.text, rows[i].text)) {
            fail_msg("%s: wanted \"%s\", got \"%s\"", rows[i].text, rows[i].why, error.text);
        }
        assert_string_equal(host, "before");
        assert_int_equal(port, 7);
    }
}

TEST(tells_addresses_from_names)
{
    assert_true(sw_host_is_ip("10.0.0.1"));
    assert_true(sw_host_is_ip("::"));
    assert_true(sw_host_is_ip("2001:db8::10.0.0.1"));
    assert_false(sw_host_is_ip("10.0.0"));
    assert_false(sw_host_is_ip("[::1]"));
    assert_false(sw_host_is_ip("localhost"));
    assert_false(sw_host_is_ip(""));
}

TEST(encodes_all_but_unreserved_characters)
{
    struct sw_buf out;
    sw_buf_init(&out, 24);
    assert_int_equal(sw_url_encode(&out, "aZ09-._~"), 0);
    assert_int_equal(sw_url_encode(&out, "/ =\xc3\xa4"), 0);
    assert_string_equal(out.bytes, "aZ09-._~%2F%20%3D%C3%A4");
    assert_int_equal(sw_url_encode(&out, "++"), -ENOBUFS);
    assert_string_equal(out.bytes, "aZ09-._~%2F%20%3D%C3%A4");
    assert_int_equal(sw_url_encode(&out, ""), 0);
    sw_buf_done(&out);
}

TEST(decodes_and_refuses_broken_escapes)
{
    char *text = NULL;
    assert_int_equal(sw_url_decode("a%2Fb%c3%A4+", 12, &text), 0);
    assert_string_equal(text, "a/b\xc3\xa4+");
    sw_free(text);
    assert_int_equal(sw_url_decode("abc", 0, &text), 0);
    assert_string_equal(text, "");
    sw_free(text);
    text = NULL;
    static const char *const broken[] = {"%", "a%2", "%2g", "%g2", "%00", "a%%41", "% 1"};
    for (size_t i = 0; i < SW_ARRAY_SIZE(broken); i++) {
        assert_int_equal(sw_url_decode(broken[i], strlen(broken[i]), &text), -EINVAL);
    }
    assert_int_equal(sw_url_decode("%41", 2, &text), -EINVAL); /* the rest is not ours */
    assert_int_equal(sw_url_decode("a\0b", 3, &text), -EINVAL);
    assert_null(text);
}

TEST(decodes_what_it_encoded)
{
    char all[256];
    for (int i = 0; i < 255; i++) {
        all[i] = (char)(i + 1);
    }
    all[255] = '\0';
    struct sw_buf out;
    sw_buf_init(&out, SIZE_MAX);
    assert_int_equal(sw_url_encode(&out, all), 0);
    char *text;
    assert_int_equal(sw_url_decode(out.bytes, out.len, &text), 0);
    assert_string_equal(text, all);
    sw_free(text);
    sw_buf_done(&out);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("url", takes_urls_apart),
        CASE("url", refuses_urls_and_says_why),
        CASE("url", takes_addresses_apart),
        CASE("url", refuses_addresses_and_quotes_them),
        CASE("url", tells_addresses_from_names),
        CASE("url", encodes_all_but_unreserved_characters),
        CASE("url", decodes_and_refuses_broken_escapes),
        CASE("url", decodes_what_it_encoded),
    };
    return RUN(tests);
}
