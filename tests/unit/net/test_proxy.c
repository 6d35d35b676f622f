/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proxies: their URLs, who is reached without them, the environment; and tunnels through them, with
 * a scripted proxy at the other end of a pipe.
 */
#include "net/proxy.h"

#include <errno.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/loop.h"
#include "base/util.h"
#include "net/stream.h"
#include "net/tunnel.h"
#include "test.h"

/* ---- URLs ---- */

static struct sw_proxy proxy;
static struct sw_error error;

static void check_url(const char *url, enum sw_proxy_kind kind, const char *host, int port,
                      const char *username, const char *password)
{
    if (sw_proxy_parse(url, &proxy, &error)) {
        fail_msg("%s: %s", url, error.text);
    }
    assert_int_equal(proxy.kind, kind);
    assert_string_equal(proxy.host, host);
    assert_int_equal(proxy.port, port);
    assert_string_equal(proxy.username ? proxy.username : "-", username);
    assert_string_equal(proxy.password ? proxy.password : "-", password);
    sw_proxy_done(&proxy);
}

TEST(urls_name_kind_place_and_user)
{
    check_url("http://proxy", SW_PROXY_HTTP, "proxy", 80, "-", "-");
    check_url("HTTP://proxy:3128/", SW_PROXY_HTTP, "proxy", 3128, "-", "-");
    check_url("https://proxy", SW_PROXY_HTTPS, "proxy", 443, "-", "-");
    check_url("https://proxy:80", SW_PROXY_HTTPS, "proxy", 80, "-", "-");
    check_url("socks5://[::1]", SW_PROXY_SOCKS5, "::1", 1080, "-", "-");
    check_url("socks5h://10.0.0.1:9", SW_PROXY_SOCKS5, "10.0.0.1", 9, "-", "-");
    check_url("http://a%40b:c%3Ad@e@proxy:1", SW_PROXY_HTTP, "proxy", 1, "a@b", "c:d@e");
    check_url("http://jane@proxy", SW_PROXY_HTTP, "proxy", 80, "jane", "-");
}

TEST(a_url_that_is_none_is_refused_without_its_password)
{
    static const char *const urls[] = {
        "",
        "proxy:3128",
        "ftp://u:SECRET@proxy",
        "http://",
        "http://u:SECRET@",
        "http://u:SECRET@pro xy",
        "http://u:SECRET%zz@proxy",
        "http://u%3a:SECRET@proxy",
        "http://u:SECRET@proxy:0",
        "socks5://u:SECRET@::1",
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(urls); i++) {
        memset(&error, 0, sizeof(error));
        assert_int_equal(sw_proxy_parse(urls[i], &proxy, &error), SW_E_SYNTAX);
        assert_non_null(strstr(error.text, "the proxy's URL"));
        assert_null(strstr(error.text, "SECRET"));
    }
}

/* ---- NO_PROXY ---- */

static void check_bypass(const char *no_proxy, const char *host, int port, bool want)
{
    if (sw_proxy_is_bypassed(no_proxy, host, (uint16_t)port) != want) {
        fail_msg("NO_PROXY=\"%s\" %s %s:%d", no_proxy ? no_proxy : "", want ? "misses" : "takes",
                 host, port);
    }
}

TEST(who_is_here_needs_no_proxy)
{
    check_bypass(NULL, "localhost", 443, true);
    check_bypass(NULL, "LOCALHOST", 443, true);
    check_bypass("", "127.0.0.1", 443, true);
    check_bypass("", "127.9.9.9", 443, true);
    check_bypass("", "::1", 443, true);
    check_bypass("", "::ffff:127.0.0.1", 443, true);
    check_bypass("", "localhost.example", 443, false);
    check_bypass(NULL, "10.0.0.1", 443, false);
    check_bypass(" , ,", "example.com", 443, false);
}

TEST(names_take_what_is_below_them_with_them)
{
    check_bypass("example.com", "example.com", 443, true);
    check_bypass("a, Example.COM ", "www.EXAMPLE.com", 443, true);
    check_bypass("example.com", "notexample.com", 443, false);
    check_bypass("example.com", "com", 443, false);
    check_bypass(".example.com", "example.com", 443, false);
    check_bypass(".example.com", "a.b.example.com", 443, true);
    check_bypass("*.example.com", "example.com", 443, false);
    check_bypass("*.example.com", "a.example.com", 443, true);
    check_bypass("x*.example.com", "xa.example.com", 443, false);
    check_bypass("*", "example.com", 443, true);
    check_bypass("a,*", "10.0.0.1", 443, true);
    check_bypass(".", "example.com", 443, false);
    check_bypass("cluster.local", "10.0.0.1", 443, false);
}

TEST(ports_count_where_they_are_named)
{
    check_bypass("example.com:443", "example.com", 443, true);
    check_bypass("example.com:443", "example.com", 6443, false);
    check_bypass(".example.com:6443", "a.example.com", 6443, true);
    check_bypass("10.0.0.1:6443", "10.0.0.1", 6443, true);
    check_bypass("10.0.0.1:6443", "10.0.0.1", 443, false);
    check_bypass("[fd00::1]:6443", "fd00::1", 6443, true);
    check_bypass("[fd00::1]:6443", "fd00::1", 443, false);
    check_bypass("[fd00::1]", "fd00::1", 443, true);
    check_bypass(":443", "example.com", 443, false);
}

TEST(addresses_and_nets_are_compared_as_such)
{
    check_bypass("10.0.0.1", "10.0.0.1", 443, true);
    check_bypass("10.0.0.1", "10.0.0.10", 443, false);
    check_bypass("fd00::1", "fd00:0::1", 443, true);
    check_bypass("10.0.0.0/8", "10.255.0.1", 443, true);
    check_bypass("10.0.0.0/8", "11.0.0.1", 443, false);
    check_bypass("10.0.0.0/9", "10.127.0.1", 443, true);
    check_bypass("10.0.0.0/9", "10.128.0.1", 443, false);
    check_bypass("0.0.0.0/0", "8.8.8.8", 443, true);
    check_bypass("0.0.0.0/0", "example.com", 443, false);
    check_bypass("0.0.0.0/0", "fd00::1", 443, false);
    check_bypass("fd00::/8", "fdff::1", 443, true);
    check_bypass("10.0.0.1/32", "10.0.0.1", 443, true);
    check_bypass("10.0.0.1/33", "10.0.0.1", 443, false);
    check_bypass("::ffff:10.0.0.1", "10.0.0.1", 443, true);
}

/* ---- the environment ---- */

static void clear_environment(void)
{
    static const char *const names[] = {"HTTPS_PROXY", "https_proxy", "HTTP_PROXY",
                                        "http_proxy",  "NO_PROXY",    "no_proxy"};
    for (size_t i = 0; i < SW_ARRAY_SIZE(names); i++) {
        unsetenv(names[i]);
    }
}

static const char *chosen(bool is_https, const char *host)
{
    static char text[300];
    if (sw_proxy_from_environment(is_https, host, 443, &proxy, &error)) {
        return error.text;
    }
    snprintf(text, sizeof(text), "%s", proxy.kind ? proxy.host : "none");
    sw_proxy_done(&proxy);
    return text;
}

TEST(the_environment_is_read_as_go_reads_it)
{
    clear_environment();
    assert_string_equal(chosen(true, "api"), "none");
    setenv("HTTPS_PROXY", "", 1);
    setenv("https_proxy", "lower:1", 1);
    setenv("HTTP_PROXY", "http://plain", 1);
    assert_string_equal(chosen(true, "api"), "lower");
    assert_string_equal(chosen(false, "api"), "plain");
    setenv("HTTPS_PROXY", "https://upper", 1);
    assert_string_equal(chosen(true, "api"), "upper");
    setenv("no_proxy", "api", 1);
    assert_string_equal(chosen(true, "api"), "none");
    setenv("NO_PROXY", "other", 1);
    assert_string_equal(chosen(true, "api"), "upper");
    setenv("HTTPS_PROXY", "gopher://x", 1);
    assert_string_equal(chosen(true, "api"),
                        "HTTPS_PROXY in the environment: the proxy's URL begins with none of "
                        "http://, https:// and socks5://");
    clear_environment();
}

/* ---- tunnels ---- */

static struct {
    struct sw_loop *loop;
    struct sw_stream *far;
    struct sw_buf heard; /* by the proxy */
    bool has_ended;
    struct sw_tunnel *tunnel;
    struct sw_stream *stream; /* the tunnel's result */
    struct sw_buf got;        /* through it */
    unsigned calls;
    struct sw_error error;
} w;

static void far_read(void *arg, const char *bytes, size_t len)
{
    (void)arg;
    sw_buf_append(&w.heard, bytes, len);
}

static void far_end(void *arg, int code)
{
    (void)arg;
    (void)code;
    w.has_ended = true;
}

static void near_read(void *arg, const char *bytes, size_t len)
{
    (void)arg;
    sw_buf_append(&w.got, bytes, len);
}

static void near_end(void *arg, int code)
{
    (void)arg;
    (void)code;
}

static void on_tunnel(void *arg, struct sw_stream *stream, const struct sw_error *why)
{
    static const struct sw_stream_events events = {near_read, near_end, NULL};
    (void)arg;
    w.calls++;
    w.tunnel = NULL;
    w.stream = stream;
    if (stream) {
        sw_stream_start(stream, &events, NULL);
    } else {
        w.error = *why;
    }
}

static void turn(void)
{
    sw_loop_virtual_advance(w.loop, 0);
}

static void begin(const char *url, const char *host)
{
    static const struct sw_stream_events events = {far_read, far_end, NULL};
    struct sw_stream *near;
    memset(&w, 0, sizeof(w));
    w.loop = sw_loop_virtual_new(0, 1);
    sw_buf_init(&w.heard, SIZE_MAX);
    sw_buf_init(&w.got, SIZE_MAX);
    assert_int_equal(sw_proxy_parse(url, &proxy, &error), 0);
    sw_pipe_open(w.loop, 65536, 1, &near, &w.far); /* a byte at a time */
    sw_stream_start(w.far, &events, NULL);
    assert_int_equal(
        sw_tunnel_open(w.loop, near, &proxy, host, 6443, "test/1", 0, on_tunnel, NULL, &w.tunnel),
        0);
    sw_proxy_done(&proxy);
    turn();
}

static void say(const void *bytes, size_t len)
{
    assert_int_equal(sw_stream_write(w.far, bytes, len), 0);
    turn();
}

static void expect(const void *bytes, size_t len)
{
    assert_int_equal(w.heard.len, len);
    assert_memory_equal(w.heard.bytes, bytes, len);
    sw_buf_clear(&w.heard);
}

/* Through it bytes go to and fro, and nothing else. */
static void expect_open(void)
{
    assert_int_equal(w.calls, 1);
    assert_non_null(w.stream);
    assert_int_equal(sw_stream_write(w.stream, "hello", 5), 0);
    turn();
    expect("hello", 5);
    say("world", 5);
    assert_string_equal(w.got.bytes, "world");
}

static void expect_failure(int code, const char *text)
{
    assert_int_equal(w.calls, 1);
    assert_null(w.stream);
    assert_int_equal(w.error.code, code);
    if (!strstr(w.error.text, text)) {
        fail_msg("\"%s\" does not say \"%s\"", w.error.text, text);
    }
    turn();
    assert_true(w.has_ended);
}

static void end(void)
{
    sw_stream_close(w.stream);
    sw_stream_close(w.far);
    sw_buf_done(&w.heard);
    sw_buf_done(&w.got);
    turn();
    assert_int_equal(sw_loop_close(w.loop), 0);
}

#define SAY(text) say(text, sizeof(text) - 1)
#define EXPECT(text) expect(text, sizeof(text) - 1)

TEST(http_proxies_are_asked_by_connect)
{
    begin("http://proxy", "api.example");
    EXPECT("CONNECT api.example:6443 HTTP/1.1\r\nHost: api.example:6443\r\nUser-Agent: test/1\r\n"
           "\r\n");
    SAY("HTTP/1.0 200 Connection established\r\nProxy-agent: x\r\n\r\n");
    expect_open();
    end();
}

TEST(http_proxies_are_told_who_asks)
{
    begin("https://Aladdin:open%20sesame@proxy", "fd00::1");
    EXPECT("CONNECT [fd00::1]:6443 HTTP/1.1\r\nHost: [fd00::1]:6443\r\nUser-Agent: test/1\r\n"
           "Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n");
    SAY("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 Fine\r\nContent-Length: 0\r\n\r\n");
    expect_open();
    end();
}

TEST(what_an_http_proxy_refuses_is_said)
{
    static const struct {
        const char *answer;
        int code;
        const char *says;
    } cases[] = {
        {"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 9\r\n\r\n", -EACCES,
         "wants another user or password (407)"},
        {"HTTP/1.1 403 Filtered\r\nContent-Length: 2\r\n\r\n", -ECONNREFUSED,
         "does not connect to api:6443: 403 Forbidden"},
        {"HTTP/1.1 502 x\r\n\r\n", -ECONNREFUSED, "502 Bad Gateway"},
        {"SSH-2.0-OpenSSH\r\n", SW_E_PROTOCOL, "does not speak HTTP"},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(cases); i++) {
        begin("http://u:SECRET@proxy", "api");
        say(cases[i].answer, strlen(cases[i].answer));
        expect_failure(cases[i].code, cases[i].says);
        assert_null(strstr(w.error.text, "SECRET"));
        end();
    }
    begin("http://proxy", "api");
    sw_stream_close(w.far);
    turn();
    w.has_ended = true;
    expect_failure(-ECONNRESET, "ended the connection: without a word");
    w.far = NULL;
    end();
}

TEST(a_proxy_that_says_nothing_is_given_up)
{
    begin("http://proxy", "api");
    sw_loop_virtual_advance(w.loop, 10000);
    expect_failure(-ETIMEDOUT, "did not answer in time");
    end();
    begin("socks5://proxy", "api");
    sw_tunnel_cancel(w.tunnel);
    turn();
    assert_int_equal(w.calls, 0);
    assert_true(w.has_ended);
    end();
}

TEST(socks_proxies_look_up_names)
{
    begin("socks5://proxy", "api");
    EXPECT("\5\1\0");
    SAY("\5\0");
    EXPECT("\5\1\0\3\3api\x19\x2b");
    SAY("\5\0\0\3\1x\0\1");
    expect_open();
    end();
    begin("socks5://proxy", "10.0.0.1");
    EXPECT("\5\1\0");
    SAY("\5\0");
    EXPECT("\5\1\0\1\x0a\0\0\1\x19\x2b");
    SAY("\5\0\0\1\1\2\3\4\0\1");
    expect_open();
    end();
    begin("socks5://proxy", "::1");
    EXPECT("\5\1\0");
    SAY("\5\0");
    EXPECT("\5\1\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\x19\x2b");
    SAY("\5\0\0\4\1\2\3\4\1\2\3\4\1\2\3\4\1\2\3\4\0\1");
    expect_open();
    end();
}

TEST(socks_proxies_are_told_who_asks)
{
    begin("socks5://jane:word@proxy", "api");
    EXPECT("\5\2\0\2");
    SAY("\5\2");
    EXPECT("\1\4jane\4word");
    SAY("\1\0");
    EXPECT("\5\1\0\3\3api\x19\x2b");
    SAY("\5\0\0\1\0\0\0\0\0\0");
    expect_open();
    end();
    begin("socks5://jane:word@proxy", "api"); /* one that does not care */
    EXPECT("\5\2\0\2");
    SAY("\5\0");
    EXPECT("\5\1\0\3\3api\x19\x2b");
    end();
}

TEST(what_a_socks_proxy_refuses_is_said)
{
    begin("socks5://proxy", "api");
    SAY("\5\xff");
    expect_failure(-EACCES, "another way to log in than without user and password");
    end();
    begin("socks5://jane:SECRET@proxy", "api");
    SAY("\5\2");
    SAY("\1\1");
    expect_failure(-EACCES, "takes neither this user nor this password");
    assert_null(strstr(w.error.text, "SECRET"));
    end();
    begin("socks5://proxy", "api");
    SAY("\5\0");
    SAY("\5\4");
    expect_failure(-ECONNREFUSED, "does not connect to api:6443: host unreachable");
    end();
    begin("socks5://proxy", "api");
    SAY("HTTP/1.1 400 Bad Request\r\n\r\n");
    expect_failure(SW_E_PROTOCOL, "does not speak SOCKS version 5");
    end();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("proxy", urls_name_kind_place_and_user),
        CASE("proxy", a_url_that_is_none_is_refused_without_its_password),
        CASE("proxy", who_is_here_needs_no_proxy),
        CASE("proxy", names_take_what_is_below_them_with_them),
        CASE("proxy", ports_count_where_they_are_named),
        CASE("proxy", addresses_and_nets_are_compared_as_such),
        CASE("proxy", the_environment_is_read_as_go_reads_it),
        CASE("tunnel", http_proxies_are_asked_by_connect),
        CASE("tunnel", http_proxies_are_told_who_asks),
        CASE("tunnel", what_an_http_proxy_refuses_is_said),
        CASE("tunnel", a_proxy_that_says_nothing_is_given_up),
        CASE("tunnel", socks_proxies_look_up_names),
        CASE("tunnel", socks_proxies_are_told_who_asks),
        CASE("tunnel", what_a_socks_proxy_refuses_is_said),
    };
    return RUN(tests);
}
