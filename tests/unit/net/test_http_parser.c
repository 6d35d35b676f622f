/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP parser. Every case of the tables is fed whole, byte by byte, cut once at every position,
 * and with a pause after every event; the transcript of the events must always be the same.
 */
#include "net/http.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"

#include "test.h"

struct recorder {
    struct sw_http_parser *parser;
    struct sw_buf text;
    bool is_in_body;
    bool pauses;
    bool was_paused;
};

static void pause_maybe(struct recorder *r)
{
    if (!r->pauses) {
        return;
    }
    sw_http_parser_pause(r->parser);
    r->was_paused = true;
}

static void end_body(struct recorder *r)
{
    if (r->is_in_body) {
        sw_buf_puts(&r->text, "]");
    }
    r->is_in_body = false;
}

static int record_head(void *arg, const struct sw_http_head *head)
{
    struct recorder *r = arg;

    if (head->method) {
        sw_buf_printf(&r->text, "%s %s", head->method, head->target);
    } else {
        sw_buf_printf(&r->text, "%d", head->status);
    }
    if (head->content_length >= 0) {
        sw_buf_printf(&r->text, " length=%lld", (long long)head->content_length);
    }
    if (!head->keeps_alive) {
        sw_buf_puts(&r->text, " close");
    }
    if (head->has_body) {
        sw_buf_puts(&r->text, " body");
    }
    if (head->expects_continue) {
        sw_buf_puts(&r->text, " continue");
    }
    for (size_t i = 0; i < head->fields.count; i++) {
        sw_buf_printf(&r->text, " {%s:%s}", head->fields.at[i].name, head->fields.at[i].value);
    }
    pause_maybe(r);
    return 0;
}

static int record_body(void *arg, const char *bytes, size_t len)
{
    struct recorder *r = arg;

    if (!r->is_in_body) {
        sw_buf_puts(&r->text, " [");
    }
    r->is_in_body = true;
    sw_buf_append(&r->text, bytes, len);
    pause_maybe(r);
    return 0;
}

static int record_end(void *arg)
{
    struct recorder *r = arg;

    end_body(r);
    sw_buf_puts(&r->text, " end\n");
    pause_maybe(r);
    return 0;
}

static const struct sw_http_parser_events recording = {record_head, record_body, record_end};

/* Small enough to be passed in a test, large enough for all other cases. */
static const struct sw_http_limits small = {.head_bytes = 200, .field_count = 6, .body_bytes = 40};

struct parsing {
    enum sw_http_role role;
    bool is_head; /* the (first) response is one to HEAD */
    bool pauses;
    const struct sw_http_limits *limits;
};

static int feed(struct recorder *r, const char *bytes, size_t len)
{
    size_t used = 0;
    int rc;

    do {
        size_t n;
        sw_http_parser_resume(r->parser);
        r->was_paused = false;
        rc = sw_http_parser_feed(r->parser, bytes + used, len - used, &n);
        used += n;
        assert_true(rc != 0 || r->was_paused || used == len);
    } while (rc == 0 && r->was_paused);
    return rc;
}

/* Feeds text in pieces that end at the given positions, and describes what happened. */
static char *parse(const struct parsing *how, const char *text, size_t len, const size_t *cuts,
                   size_t cut_count)
{
    struct recorder r = {.pauses = how->pauses};
    size_t at = 0;
    int rc = 0;

    sw_buf_init(&r.text, SIZE_MAX);
    r.parser = sw_http_parser_new(how->role, how->limits, &recording, &r);
    if (how->is_head) {
        sw_http_parser_expect(r.parser, true, 0);
    }
    for (size_t i = 0; i <= cut_count && rc == 0; i++) {
        size_t to = i < cut_count ? cuts[i] : len;
        /* Its own memory, so that a look beyond the piece is seen by the sanitizer. */
        char *piece = sw_malloc(to - at);
        memcpy(piece, text + at, to - at);
        rc = feed(&r, piece, to - at);
        sw_free(piece);
        at = to;
    }
    if (rc == 0) {
        rc = sw_http_parser_finish(r.parser);
    }
    end_body(&r);
    if (rc == SW_E_TRUNCATED) {
        sw_buf_puts(&r.text, " truncated");
    } else if (rc != 0) {
        sw_buf_printf(&r.text, " %d %s", sw_http_parser_refusal(r.parser),
                      sw_http_parser_why(r.parser));
    }
    sw_http_parser_free(r.parser);
    return sw_buf_steal(&r.text);
}

struct parser_case {
    const char *input;
    const char *want; /* without the last line feed; a "..." at its end stands for any words */
    bool is_head;
    bool uses_small_limits;
};

static void check(const struct parser_case *c, const char *got, const char *how, size_t at)
{
    size_t len = strlen(c->want);
    bool is_equal =
        len > 3 && strcmp(c->want + len - 3, "...") == 0
            ? strncmp(got, c->want, len - 3) == 0
            : strncmp(got, c->want, len) == 0 && (got[len] == '\0' || strcmp(got + len, "\n") == 0);
    if (!is_equal) {
        fail_msg("input <<%s>> fed %s %zu:\n got <<%s>>\nwant <<%s>>", c->input, how, at, got,
                 c->want);
    }
}

static void check_one(const struct parser_case *c, enum sw_http_role role, bool pauses)
{
    struct parsing how = {role, c->is_head, pauses, c->uses_small_limits ? &small : NULL};
    size_t len = strlen(c->input);
    size_t *cuts = sw_calloc(len, sizeof(*cuts));
    char *whole = parse(&how, c->input, len, NULL, 0);

    check(c, whole, pauses ? "whole with pauses" : "whole", 0);
    for (size_t i = 1; i < len; i++) {
        SW_AUTO(char, sw_free) got = parse(&how, c->input, len, &i, 1);
        check(c, got, pauses ? "with pauses and cut at" : "cut at", i);
        assert_string_equal(got, whole);
        cuts[i - 1] = i;
    }
    if (len > 1) {
        SW_AUTO(char, sw_free) got = parse(&how, c->input, len, cuts, len - 1);
        check(c, got, pauses ? "with pauses by byte" : "by byte", 0);
        assert_string_equal(got, whole);
    }
    sw_free(whole);
    sw_free(cuts);
}

static void check_table(const struct parser_case *cases, size_t count, enum sw_http_role role)
{
    for (size_t i = 0; i < count; i++) {
        check_one(&cases[i], role, false);
        check_one(&cases[i], role, true);
    }
}

#define H "Host: a\r\n"
#define RQ(x) "POST / HTTP/1.1\r\n" H x
#define CHUNKED "Transfer-Encoding: chunked\r\n\r\n"
#define TE "POST / body {Host:a} {Transfer-Encoding:chunked}"

TEST(requests_are_understood)
{
    static const struct parser_case cases[] = {
        {"GET / HTTP/1.1\r\n" H "\r\n", "GET / {Host:a} end"},
        {"\r\n\r\nGET /a?b=%20c HTTP/1.1\r\n" H "\r\n", "GET /a?b=%20c {Host:a} end"},
        {"OPTIONS * HTTP/1.1\r\n" H "\r\n", "OPTIONS * {Host:a} end"},
        {"GET http://h/p HTTP/1.1\r\n" H "\r\n", "GET http://h/p {Host:a} end"},
        {"GET / HTTP/1.1\r\n" H "E:\r\nF: \t \r\nG:\t b c \t\r\n\r\n",
         "GET / {Host:a} {E:} {F:} {G:b c} end"},
        {"GET / HTTP/1.1\r\n" H "X: \xc3\xa4\r\n\r\n", "GET / {Host:a} {X:\xc3\xa4} end"},
        {RQ("Content-Length: 3\r\n\r\nabc"), "POST / length=3 body {Host:a} {Content-Length:3} "
                                             "[abc] end"},
        {RQ("Content-Length: 0\r\n\r\n"), "POST / length=0 {Host:a} {Content-Length:0} end"},
        {RQ("\r\n"), "POST / {Host:a} end"},
        {RQ("content-length: 2\r\nExpect: 100-Continue\r\n\r\nok"),
         "POST / length=2 body continue {Host:a} {content-length:2} {Expect:100-Continue} [ok] "
         "end"},
        /* two and three on one connection */
        {"GET /1 HTTP/1.1\r\n" H "\r\nGET /2 HTTP/1.1\r\n" H "\r\n",
         "GET /1 {Host:a} end\nGET /2 {Host:a} end"},
        {RQ("Content-Length: 3\r\n\r\nabc") "\r\n" RQ("Content-Length: 1\r\n\r\nx")
             RQ(CHUNKED) "0\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n",
         "POST / length=3 body {Host:a} {Content-Length:3} [abc] end\n"
         "POST / length=1 body {Host:a} {Content-Length:1} [x] end\n" TE " end\n"
         "GET / {Host:a} end"},
        /* chunks */
        {RQ(CHUNKED) "3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n", TE " [abc0123456789] end"},
        {RQ(CHUNKED) "3;x=y\r\nabc\r\n0\r\nT: v\r\nU:\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n",
         TE " [abc] end\nGET / {Host:a} end"},
        {RQ(CHUNKED) "000003\r\na\r\n\r\n0\r\n\r\n", TE " [a\r\n] end"},
        {RQ("Transfer-Encoding: Chunked\r\n\r\n") "0\r\n\r\n",
         "POST / body {Host:a} {Transfer-Encoding:Chunked} end"},
        /* life of the connection */
        {"GET / HTTP/1.1\r\n" H "Connection: close\r\n\r\n", "GET / close {Host:a} "
                                                             "{Connection:close} end"},
        {"GET / HTTP/1.1\r\n" H "Connection: x, Close\r\n\r\n", "GET / close {Host:a} "
                                                                "{Connection:x, Close} end"},
        {"GET / HTTP/1.0\r\n\r\n", "GET / close end"},
        {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "GET / close "
                                                             "{Connection:keep-alive} end"},
        /* offers that are not taken */
        {"GET / HTTP/1.1\r\n" H "Connection: Upgrade\r\nUpgrade: h2c\r\n\r\nGET /2 HTTP/1.1\r\n" H
         "\r\n",
         "GET / {Host:a} {Connection:Upgrade} {Upgrade:h2c} end\nGET /2 {Host:a} end"},
        {"CONNECT a:1 HTTP/1.1\r\n" H "\r\nGET / HTTP/1.1\r\n" H "\r\n",
         "CONNECT a:1 {Host:a} end\nGET / {Host:a} end"},
    };

    check_table(cases, SW_ARRAY_SIZE(cases), SW_HTTP_REQUESTS);
}

TEST(malformed_requests_are_refused)
{
    static const struct parser_case cases[] = {
        {"", ""},
        {"\r\n", ""},
        {"GET", " truncated"},
        {"GET / HTTP/1.1\r\n" H, " truncated"},
        {RQ("Content-Length: 3\r\n\r\nab"), "POST / length=3 body {Host:a} {Content-Length:3} "
                                            "[ab] truncated"},
        {RQ(CHUNKED) "3\r\nabc\r\n0\r\n", TE " [abc] truncated"},
        {"\x16\x03\x01\x02", " 400 ..."},
        {"get / HTTP/1.1\r\n" H "\r\n", " 400 ..."},
        {"FROB / HTTP/1.1\r\n" H "\r\n", " 400 ..."},
        {"GET /\r\n\r\n", " 400 malformed request line"},
        {"GET / RTSP/1.0\r\n\r\n", " 400 ..."},
        {"SOURCE / ICE/1.0\r\n\r\n", " 400 ..."},
        {"GET foo HTTP/1.1\r\n" H "\r\n", " 400 ..."},
        {"GET /\x80 HTTP/1.1\r\n" H "\r\n", " 400 ..."},
        {"GET /a\tb HTTP/1.1\r\n" H "\r\n", " 400 ..."},
        {"GET / HTTP/2.0\r\n" H "\r\n", " 505 ..."},
        {"GET / HTTP/0.9\r\n\r\n", " 505 ..."},
        {"GET / HTTP/1.2\r\n" H "\r\n", " 505 ..."},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", " 505 ..."},
        /* lines */
        {"GET / HTTP/1.1\n" H "\r\n", " 400 ..."},
        {"GET / HTTP/1.1\r\nHost: a\n\r\n", " 400 ..."},
        {"GET / HTTP/1.1\r\n" H "\n", " 400 line feed without carriage return"},
        {"\nGET / HTTP/1.1\r\n" H "\r\n", " 400 line feed without carriage return"},
        {"GET / HTTP/1.1\r\n" H "X: 1\r\n 2\r\n\r\n", " 400 folded header field"},
        {"GET / HTTP/1.1\r\n" H "X: 1\r\n\t2\r\n\r\n", " 400 folded header field"},
        {"GET / HTTP/1.1\r\n X: 1\r\n" H "\r\n", " 400 folded header field"},
        {RQ(CHUNKED) "0\r\nT: a\r\n b\r\n\r\n", TE " 400 folded header field"},
        {RQ(CHUNKED) "0\r\nT: a\n\r\n", TE " 400 ..."},
        {"GET / HTTP/1.1\r\n" H "X: a\rb\r\n\r\n", " 400 ..."},
        /* fields */
        {"GET / HTTP/1.1\r\n" H "X : 1\r\n\r\n", " 400 ..."},
        {"GET / HTTP/1.1\r\n" H ": 1\r\n\r\n", " 400 ..."},
        {"GET / HTTP/1.1\r\n" H "abc\r\n\r\n", " 400 ..."},
        {"GET / HTTP/1.1\r\n" H "X\x80: 1\r\n\r\n", " 400 ..."},
        {"GET / HTTP/1.1\r\n" H "X: \x01\r\n\r\n", " 400 ..."},
        {"GET / HTTP/1.1\r\n\r\n", " 400 not exactly one Host field"},
        {"GET / HTTP/1.1\r\n" H H "\r\n", " 400 not exactly one Host field"},
        /* framing */
        {RQ("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"), " 400 ..."},
        {RQ("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n"), " 400 ..."},
        {RQ("Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc"), " 400 ..."},
        {RQ("Content-Length: 3, 3\r\n\r\nabc"), " 400 ..."},
        {RQ("Content-Length: +3\r\n\r\nabc"), " 400 ..."},
        {RQ("Content-Length: -3\r\n\r\nabc"), " 400 ..."},
        {RQ("Content-Length: 0x3\r\n\r\nabc"), " 400 ..."},
        {RQ("Content-Length:\r\n\r\n"), " 400 ..."},
        {RQ("Content-Length: 18446744073709551616\r\n\r\n"), " 400 ..."},
        {RQ("Content-Length: 9223372036854775808\r\n\r\n"), " 400 Content-Length out of range"},
        {RQ("Transfer-Encoding: gzip, chunked\r\n\r\n"), " 501 ..."},
        {RQ("Transfer-Encoding: gzip\r\n\r\n"), " 501 ..."},
        {RQ("Transfer-Encoding: xchunked\r\n\r\n"), " 501 ..."},
        {RQ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"), " 501 ..."},
        {RQ("Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n"), " 501 ..."},
        {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
         " 400 Transfer-Encoding with HTTP/1.0"},
        {RQ(CHUNKED) "x\r\n", TE " 400 ..."},
        {RQ(CHUNKED) "0x1\r\na\r\n", TE " 400 ..."},
        {RQ(CHUNKED) "-1\r\na\r\n", TE " 400 ..."},
        {RQ(CHUNKED) " 1\r\na\r\n", TE " 400 ..."},
        {RQ(CHUNKED) "1\na\r\n", TE " 400 ..."},
        {RQ(CHUNKED) "1\r\nab\r\n", TE " [a] 400 ..."},
        {RQ(CHUNKED) "fffffffffffffffff\r\n", TE " 400 ..."},
        /* nothing follows the last message of a connection */
        {"GET / HTTP/1.1\r\n" H "Connection: close\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n",
         "GET / close {Host:a} {Connection:close} end\n 400 ..."},
    };

    check_table(cases, SW_ARRAY_SIZE(cases), SW_HTTP_REQUESTS);
}

TEST(responses_are_understood)
{
    static const struct parser_case cases[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "200 length=2 body "
                                                           "{Content-Length:2} [ok] end"},
        {"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", "200 length=0 body {Content-Length:0} end"},
        {"HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", "200 length=0 body {Content-Length:0} end"},
        {"HTTP/1.1 404 Not \xc3\xa4 Found\r\n\r\n", "404 close body end"},
        {"HTTP/1.1 200 OK\r\n\r\nuntil the end", "200 close body [until the end] end"},
        {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok",
         "200 length=2 close body {Content-Length:2} {Connection:keep-alive} [ok] end"},
        {"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"
         "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n"
         "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
         "204 end\n304 length=5 {Content-Length:5} end\n204 length=5 {Content-Length:5} end\n"
         "200 length=1 body {Content-Length:1} [x] end"},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
         "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
         "200 length=0 body {Content-Length:0} end"},
        {"HTTP/1.1 103 Odd\r\nContent-Length: 5\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", "204 end"},
        {"HTTP/1.1 200 OK\r\n" CHUNKED "2\r\nok\r\n0\r\nGrpc-Status: 0\r\n\r\n",
         "200 body {Transfer-Encoding:chunked} [ok] end"},
        {"HTTP/1.1 200 OK\r\nConnection: close\r\n" CHUNKED "0\r\n\r\n",
         "200 close body {Connection:close} {Transfer-Encoding:chunked} end"},
        /* to HEAD */
        {"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: "
         "1\r\n\r\nx",
         "200 length=7 {Content-Length:7} end\n200 length=1 body {Content-Length:1} [x] end",
         .is_head = true},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n" CHUNKED,
         "200 {Transfer-Encoding:chunked} end", .is_head = true},
        {"HTTP/1.1 200 OK\r\n\r\n", "200 end", .is_head = true},
        /* not at its end yet, and then not at all */
        {"", ""},
        {"HTTP/1.1 200 OK\r\nContent-Le", " truncated"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", "200 length=3 body "
                                                           "{Content-Length:3} [ok] truncated"},
        {"HTTP/1.1 200 OK\r\n" CHUNKED "2\r\nok\r\n", "200 body {Transfer-Encoding:chunked} [ok] "
                                                      "truncated"},
        {"HTTP/1.1 200 OK\r\n" CHUNKED "2\r\nok\r\n0\r\n\r",
         "200 body {Transfer-Encoding:chunked} [ok] truncated"},
    };

    check_table(cases, SW_ARRAY_SIZE(cases), SW_HTTP_RESPONSES);
}

TEST(malformed_responses_are_refused)
{
    static const struct parser_case cases[] = {
        {"ICY 200 OK\r\n\r\n", " 400 ..."},
        {"HTTP/2.0 200 OK\r\n\r\n", " 505 ..."},
        {"HTTP/1.1 20 OK\r\n\r\n", " 400 ..."},
        {"HTTP/1.1 2000 OK\r\n\r\n", " 400 ..."},
        {"HTTP/1.1 099 OK\r\n\r\n", " 400 ..."},
        {"HTTP/1.1 -20 OK\r\n\r\n", " 400 ..."},
        {"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nabc",
         " 400 switch of protocols that was not asked for"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc", " 501 ..."},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\nabc", " 501 ..."},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n", " 400 ..."},
        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n", " 400 ..."},
        {"HTTP/1.1 200 OK\nContent-Length: 3\r\n\r\n", " 400 ..."},
        {"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n", " 400 folded header field"},
        {"<html>no</html>", " 400 ..."},
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok!",
         "200 length=2 body {Content-Length:2} [ok] end\n 400 ..."},
        {"HTTP/1.1 204 No Content\r\n" CHUNKED "0\r\n\r\n",
         "204 {Transfer-Encoding:chunked} end\n 400 ..."},
    };

    check_table(cases, SW_ARRAY_SIZE(cases), SW_HTTP_RESPONSES);
}

#define TEN "0123456789"
#define FIFTY TEN TEN TEN TEN TEN
#define SHORT_HEAD "POST / HTTP/1.1\r\nHost:\r\n" /* 24 bytes */

TEST(limits_are_kept)
{
    static const struct parser_case cases[] = {
        /* "GET /" 5, " HTTP/1.1\r\n" 11, "Host:\r\n" 7, "\r\n" 2: 175 more are just allowed */
        {"GET /" FIFTY FIFTY FIFTY TEN TEN "01234 HTTP/1.1\r\nHost:\r\n\r\n",
         "GET /" FIFTY FIFTY FIFTY TEN TEN "01234 {Host:} end"},
        {"GET /" FIFTY FIFTY FIFTY TEN TEN "012345 HTTP/1.1\r\nHost:\r\n\r\n",
         " 431 header fields too large"},
        {"GET /" FIFTY FIFTY FIFTY FIFTY " HTTP/1.1\r\n", " 414 request line too large"},
        {"GET / HTTP/1.1\r\nHost:\r\nX: " FIFTY FIFTY FIFTY FIFTY, " 431 header fields too large"},
        {"\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n"
         "\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n"
         "\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n"
         "\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n"
         "\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n",
         " 414 request line too large"},
        {"GET / HTTP/1.1\r\nHost:\r\n1:\r\n2:\r\n3:\r\n4:\r\n5:\r\n\r\n",
         "GET / {Host:} {1:} {2:} {3:} {4:} {5:} end"},
        {"GET / HTTP/1.1\r\nHost:\r\n1:\r\n2:\r\n3:\r\n4:\r\n5:\r\n6:\r\n\r\n",
         " 431 too many header fields"},
        {"POST / HTTP/1.1\r\nHost:\r\nContent-Length: 40\r\n\r\n" TEN TEN TEN TEN,
         "POST / length=40 body {Host:} {Content-Length:40} [" TEN TEN TEN TEN "] end"},
        {"POST / HTTP/1.1\r\nHost:\r\nContent-Length: 41\r\n\r\n", " 413 body too large"},
        {"POST / HTTP/1.1\r\nHost:\r\n" CHUNKED "14\r\n" TEN TEN "\r\n14\r\n" TEN TEN
         "\r\n0\r\n\r\n",
         "POST / body {Host:} {Transfer-Encoding:chunked} [" TEN TEN TEN TEN "] end"},
        {"POST / HTTP/1.1\r\nHost:\r\n" CHUNKED "29\r\n" TEN TEN TEN TEN "x\r\n0\r\n\r\n",
         "POST / body {Host:} {Transfer-Encoding:chunked} [" TEN TEN TEN TEN
         "] 413 body too large"},
        /* trailers and extensions have limits of their own */
        {"POST / HTTP/1.1\r\nHost:\r\n" CHUNKED "0\r\nT: " FIFTY FIFTY FIFTY FIFTY "\r\n\r\n",
         "POST / body {Host:} {Transfer-Encoding:chunked} 431 header fields too large"},
        {"POST / HTTP/1.1\r\nHost:\r\n" CHUNKED "1;" FIFTY FIFTY FIFTY FIFTY "a\r\n",
         "POST / body {Host:} {Transfer-Encoding:chunked} 413 chunk extension too large"},
        {"POST / HTTP/1.1\r\nHost:\r\n" CHUNKED "1;" FIFTY FIFTY FIFTY TEN
         "\r\na\r\n1;" FIFTY FIFTY FIFTY TEN "\r\nb\r\n0\r\n\r\n",
         "POST / body {Host:} {Transfer-Encoding:chunked} [ab] end"},
    };

    for (size_t i = 0; i < SW_ARRAY_SIZE(cases); i++) {
        struct parser_case c = cases[i];
        c.uses_small_limits = true;
        check_one(&c, SW_HTTP_REQUESTS, false);
        check_one(&c, SW_HTTP_REQUESTS, true);
    }
}

TEST(body_limit_of_one_response_is_kept)
{
    static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd";
    struct recorder r = {0};

    sw_buf_init(&r.text, SIZE_MAX);
    r.parser = sw_http_parser_new(SW_HTTP_RESPONSES, NULL, &recording, &r);
    sw_http_parser_expect(r.parser, false, 4);
    assert_int_equal(sw_http_parser_feed(r.parser, text, strlen(text), NULL), 0);
    sw_http_parser_expect(r.parser, false, 3);
    assert_int_equal(sw_http_parser_feed(r.parser, text, strlen(text), NULL), SW_E_TOO_LARGE);
    assert_int_equal(sw_http_parser_feed(r.parser, text, strlen(text), NULL), SW_E_TOO_LARGE);
    assert_int_equal(sw_http_parser_finish(r.parser), SW_E_TOO_LARGE);
    sw_http_parser_free(r.parser);
    sw_buf_done(&r.text);
}

/* The head stays while its message lasts, and trim between two messages gives it back. */
static int keep_head(void *arg, const struct sw_http_head *head)
{
    *(struct sw_http_head *)arg = *head;
    return 0;
}

TEST(head_is_valid_until_the_next_message)
{
    static const struct sw_http_parser_events events = {.on_head = keep_head};
    struct sw_http_head head = {0};
    struct sw_http_parser *parser = sw_http_parser_new(SW_HTTP_REQUESTS, NULL, &events, &head);
    char text[20000] = "POST /long HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nX: ";
    size_t len = strlen(text);

    memset(text + len, 'x', 10000);
    len += 10000;
    memcpy(text + len, "\r\n\r\nabc", 7);
    len += 7;
    assert_int_equal(sw_http_parser_feed(parser, text, len - 1, NULL), 0);
    memset(text, 0, len - 1);
    assert_int_equal(sw_http_parser_feed(parser, text + len - 1, 1, NULL), 0);
    assert_string_equal(head.target, "/long");
    assert_int_equal(head.fields.count, 3);
    assert_int_equal(strlen(sw_http_field_get(&head.fields, "x")), 10000);
    sw_http_parser_trim(parser);
    assert_int_equal(sw_http_parser_feed(parser, "GET /2 HTTP/1.1\r\nHost: b\r\n\r\n", 28, NULL),
                     0);
    assert_string_equal(head.target, "/2");
    sw_http_parser_free(parser);
}

struct stopper {
    const char *where;
    int calls;
};

static int stop_at(struct stopper *s, const char *where)
{
    s->calls++;
    return strcmp(s->where, where) == 0 ? -ECANCELED : 0;
}

static int stop_head(void *arg, const struct sw_http_head *head)
{
    (void)head;
    return stop_at(arg, "head");
}

static int stop_body(void *arg, const char *bytes, size_t len)
{
    (void)bytes;
    (void)len;
    return stop_at(arg, "body");
}

static int stop_end(void *arg)
{
    return stop_at(arg, "end");
}

TEST(an_event_stops_the_parser_with_its_code)
{
    static const struct sw_http_parser_events events = {stop_head, stop_body, stop_end};
    static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
                               "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    static const char *const places[] = {"head", "body", "end"};

    for (int i = 0; i < 3; i++) {
        struct stopper s = {.where = places[i]};
        struct sw_http_parser *parser = sw_http_parser_new(SW_HTTP_RESPONSES, NULL, &events, &s);
        assert_int_equal(sw_http_parser_feed(parser, text, strlen(text), NULL), -ECANCELED);
        assert_int_equal(s.calls, i + 1);
        assert_int_equal(sw_http_parser_feed(parser, "x", 1, NULL), -ECANCELED);
        assert_int_equal(sw_http_parser_finish(parser), -ECANCELED);
        assert_int_equal(s.calls, i + 1);
        sw_http_parser_free(parser);
    }
    assert_null(sw_http_parser_free(NULL));
}

TEST(pause_leaves_the_rest_untaken)
{
    static const char text[] = "GET /1 HTTP/1.1\r\n" H "\r\nGET /2 HTTP/1.1\r\n" H "\r\n";
    struct recorder r = {.pauses = true};
    size_t used, more;

    sw_buf_init(&r.text, SIZE_MAX);
    r.parser = sw_http_parser_new(SW_HTTP_REQUESTS, NULL, &recording, &r);
    assert_int_equal(sw_http_parser_feed(r.parser, text, strlen(text), &used), 0);
    assert_string_equal(r.text.bytes, "GET /1 {Host:a}");
    assert_int_equal(sw_http_parser_feed(r.parser, text + used, strlen(text) - used, &more), 0);
    assert_int_equal(more, 0);
    sw_http_parser_resume(r.parser);
    assert_int_equal(sw_http_parser_feed(r.parser, text + used, strlen(text) - used, &more), 0);
    assert_string_equal(r.text.bytes, "GET /1 {Host:a} end\n");
    assert_int_equal(used + more, strlen(text) / 2);
    sw_http_parser_free(r.parser);
    sw_buf_done(&r.text);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("http parser", requests_are_understood),
        CASE("http parser", malformed_requests_are_refused),
        CASE("http parser", responses_are_understood),
        CASE("http parser", malformed_responses_are_refused),
        CASE("http parser", limits_are_kept),
        CASE("http parser", body_limit_of_one_response_is_kept),
        CASE("http parser", head_is_valid_until_the_next_message),
        CASE("http parser", an_event_stops_the_parser_with_its_code),
        CASE("http parser", pause_leaves_the_rest_untaken),
    };

    return RUN(tests);
}
