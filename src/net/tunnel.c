/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tunnels.
 *
 *   state      what is awaited                      next
 *   CONNECT    the head of an HTTP response         done with 2xx, else failed
 *   METHOD     SOCKS: which way to log in           LOGIN with 2, REPLY with 0
 *   LOGIN      SOCKS: whether that was right        REPLY
 *   REPLY      SOCKS: whether it is connected       done
 *
 * Who speaks first behind a tunnel is we: bytes behind the proxy's last word are a fault of the
 * proxy's.
 */
#include "net/tunnel.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/loop.h"
#include "base/util.h"
#include "net/http.h"
#include "net/proxy.h"
#include "net/stream.h"

#define TIMEOUT_MS UINT64_C(10000)

enum state {
    TUNNEL_CONNECT,
    TUNNEL_METHOD,
    TUNNEL_LOGIN,
    TUNNEL_REPLY,
};

struct sw_tunnel {
    struct sw_loop *loop;
    struct sw_stream *lower;
    enum state state;
    char *host;
    uint16_t port;
    char *username, *password; /* for SOCKS */
    struct sw_http_parser *parser;
    int status;
    struct sw_buf in; /* of SOCKS, not understood yet */
    struct sw_timer timer;
    sw_tunnel_fn fn;
    void *arg;
};

/* ---- the end of it ---- */

static void destroy(struct sw_tunnel *tunnel)
{
    sw_timer_stop(&tunnel->timer);
    sw_http_parser_free(tunnel->parser);
    sw_buf_done(&tunnel->in);
    sw_free(tunnel->host);
    sw_free(tunnel->username);
    sw_free_secret(tunnel->password, tunnel->password ? strlen(tunnel->password) : 0);
    sw_free(tunnel);
}

void sw_tunnel_cancel(struct sw_tunnel *tunnel)
{
    sw_stream_close(tunnel->lower);
    destroy(tunnel);
}

static void fail(struct sw_tunnel *tunnel, const struct sw_error *error)
{
    sw_tunnel_fn fn = tunnel->fn;
    void *arg = tunnel->arg;
    sw_tunnel_cancel(tunnel);
    fn(arg, NULL, error);
}

SW_PRINTF(3, 4)
static void fail_because(struct sw_tunnel *tunnel, int code, const char *format, ...)
{
    struct sw_error error;
    char why[300];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    sw_error_set(&error, code, "the proxy at %s %s", sw_stream_peer(tunnel->lower), why);
    fail(tunnel, &error);
}

static void succeed(struct sw_tunnel *tunnel)
{
    struct sw_stream *stream = tunnel->lower;
    sw_tunnel_fn fn = tunnel->fn;
    void *arg = tunnel->arg;
    sw_stream_set_events(stream, NULL, NULL);
    destroy(tunnel);
    fn(arg, stream, NULL);
}

static void on_timer(struct sw_timer *timer)
{
    fail_because(container_of(timer, struct sw_tunnel, timer), -ETIMEDOUT,
                 "did not answer in time");
}

/* ---- HTTP ---- */

static int on_head(void *arg, const struct sw_http_head *head)
{
    struct sw_tunnel *tunnel = arg;
    tunnel->status = head->status;
    sw_http_parser_pause(tunnel->parser);
    return 0;
}

static void read_http(struct sw_tunnel *tunnel, const char *bytes, size_t len)
{
    size_t used;
    int rc = sw_http_parser_feed(tunnel->parser, bytes, len, &used);
    if (rc) {
        fail_because(tunnel, SW_E_PROTOCOL, "does not speak HTTP: %s",
                     sw_http_parser_why(tunnel->parser));
    } else if (tunnel->status == 407 || tunnel->status == 401) { /* tinyproxy's word for it */
        fail_because(tunnel, -EACCES,
                     "wants another user or password (%d); write them into its URL",
                     tunnel->status);
    } else if (tunnel->status && (tunnel->status < 200 || tunnel->status > 299)) {
        fail_because(tunnel, -ECONNREFUSED, "does not connect to %s:%u: %d %s", tunnel->host,
                     (unsigned)tunnel->port, tunnel->status, sw_http_reason(tunnel->status));
    } else if (tunnel->status && used < len) {
        fail_because(tunnel, SW_E_PROTOCOL, "says more than that it is connected");
    } else if (tunnel->status) {
        succeed(tunnel);
    }
}

static void ask_http(struct sw_tunnel *tunnel, const struct sw_proxy *proxy, const char *user_agent)
{
    bool is_v6 = strchr(tunnel->host, ':');
    SW_AUTO(char, sw_free)
    place = sw_asprintf(is_v6 ? "[%s]:%u" : "%s:%u", tunnel->host, (unsigned)tunnel->port);
    struct sw_buf out;
    sw_buf_init(&out, SIZE_MAX);
    sw_buf_printf(&out, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n", place, place);
    if (user_agent) {
        sw_buf_printf(&out, "User-Agent: %s\r\n", user_agent);
    }
    if (proxy->username) {
        char *basic = sw_http_basic(proxy->username, proxy->password ? proxy->password : "");
        sw_buf_printf(&out, "Proxy-Authorization: %s\r\n", basic);
        sw_free_secret(basic, strlen(basic));
    }
    sw_buf_puts(&out, "\r\n");
    sw_stream_write(tunnel->lower, out.bytes, out.len);
    size_t len = out.len;
    sw_free_secret(sw_buf_steal(&out), len);
}

/* ---- SOCKS ---- */

static void say(struct sw_tunnel *tunnel, enum state next, const void *bytes, size_t len)
{
    tunnel->state = next;
    sw_stream_write(tunnel->lower, bytes, len);
}

static void ask_socks(struct sw_tunnel *tunnel)
{
    static const unsigned char both[] = {5, 2, 0, 2};
    static const unsigned char open[] = {5, 1, 0};
    if (tunnel->username) {
        say(tunnel, TUNNEL_METHOD, both, sizeof(both));
    } else {
        say(tunnel, TUNNEL_METHOD, open, sizeof(open));
    }
}

static void ask_connect(struct sw_tunnel *tunnel)
{
    unsigned char out[4 + 1 + 255 + 2] = {5, 1, 0};
    size_t len = 4;
    if (inet_pton(AF_INET, tunnel->host, out + len) == 1) {
        out[3] = 1;
        len += 4;
    } else if (inet_pton(AF_INET6, tunnel->host, out + len) == 1) {
        out[3] = 4;
        len += 16;
    } else {
        size_t name_len = strlen(tunnel->host); /* at most 253 */
        out[3] = 3;
        out[len++] = (unsigned char)name_len;
        memcpy(out + len, tunnel->host, name_len);
        len += name_len;
    }
    out[len++] = (unsigned char)(tunnel->port >> 8);
    out[len++] = (unsigned char)(tunnel->port & 0xff);
    say(tunnel, TUNNEL_REPLY, out, len);
}

static void ask_login(struct sw_tunnel *tunnel)
{
    unsigned char out[3 + 255 + 255];
    size_t name_len = strlen(tunnel->username);
    size_t word_len = tunnel->password ? strlen(tunnel->password) : 0;
    size_t len = 0;
    if (name_len == 0 || name_len > 255 || word_len > 255) {
        fail_because(tunnel, -EACCES, "takes no user or password of more than 255 bytes");
        return;
    }
    out[len++] = 1;
    out[len++] = (unsigned char)name_len;
    memcpy(out + len, tunnel->username, name_len);
    len += name_len;
    out[len++] = (unsigned char)word_len;
    if (word_len > 0) {
        memcpy(out + len, tunnel->password, word_len);
        len += word_len;
    }
    say(tunnel, TUNNEL_LOGIN, out, len);
    explicit_bzero(out, sizeof(out));
}

static void on_method(struct sw_tunnel *tunnel, unsigned char method)
{
    if (method == 0) {
        ask_connect(tunnel);
    } else if (method == 2 && tunnel->username) {
        ask_login(tunnel);
    } else {
        fail_because(tunnel, -EACCES,
                     "wants another way to log in than %s; write them into its URL",
                     tunnel->username ? "user and password" : "without user and password");
    }
}

static const char *socks_text(unsigned char reply)
{
    static const char *const texts[] = {
        "",
        "general failure",
        "not allowed by its rules",
        "network unreachable",
        "host unreachable",
        "connection refused",
        "it took too long",
        "it cannot connect",
        "it knows no such addresses",
    };
    return reply < SW_ARRAY_SIZE(texts) ? texts[reply] : "for a reason of its own";
}

/* How long the reply is, as far as that is known; its address is of no use to us. */
static size_t reply_len(const unsigned char *in, size_t len)
{
    if (len < 5) {
        return 5;
    }
    switch (in[3]) {
    case 1:
        return 4 + 4 + 2;
    case 4:
        return 4 + 16 + 2;
    default:
        return 4 + 1 + (size_t)in[4] + 2;
    }
}

static void read_socks(struct sw_tunnel *tunnel)
{
    const unsigned char *in = (const unsigned char *)tunnel->in.bytes;
    size_t len = tunnel->in.len;
    bool is_reply = tunnel->state == TUNNEL_REPLY;
    if (len == 0) {
        return;
    }
    if (in[0] != (tunnel->state == TUNNEL_LOGIN ? 1 : 5)) {
        fail_because(tunnel, SW_E_PROTOCOL, "does not speak SOCKS version 5");
        return;
    }
    if (is_reply && len >= 2 && in[1] != 0) {
        fail_because(tunnel, -ECONNREFUSED, "does not connect to %s:%u: %s", tunnel->host,
                     (unsigned)tunnel->port, socks_text(in[1]));
        return;
    }
    size_t wanted = is_reply ? reply_len(in, len) : 2;
    if (len < wanted) {
        return;
    }
    unsigned char answer = in[1];
    sw_buf_consume(&tunnel->in, wanted);
    if (tunnel->in.len > 0) {
        fail_because(tunnel, SW_E_PROTOCOL, "says more than it was asked");
    } else if (is_reply) {
        succeed(tunnel);
    } else if (tunnel->state == TUNNEL_METHOD) {
        on_method(tunnel, answer);
    } else if (answer == 0) {
        ask_connect(tunnel);
    } else {
        fail_because(tunnel, -EACCES, "takes neither this user nor this password");
    }
}

/* ---- the stream ---- */

static void on_read(void *arg, const char *bytes, size_t len)
{
    struct sw_tunnel *tunnel = arg;
    if (tunnel->state == TUNNEL_CONNECT) {
        read_http(tunnel, bytes, len);
    } else if (sw_buf_append(&tunnel->in, bytes, len)) {
        fail_because(tunnel, SW_E_PROTOCOL, "says more than it was asked");
    } else {
        read_socks(tunnel);
    }
}

static void on_end(void *arg, int code)
{
    fail_because(arg, code ? code : -ECONNRESET, "ended the connection: %s",
                 code ? sw_strerror(code) : "without a word");
}

int sw_tunnel_open(struct sw_loop *loop, struct sw_stream *lower, const struct sw_proxy *proxy,
                   const char *host, uint16_t port, const char *user_agent, uint64_t timeout_ms,
                   sw_tunnel_fn fn, void *arg, struct sw_tunnel **ret_tunnel)
{
    static const struct sw_stream_events events = {on_read, on_end, NULL};
    static const struct sw_http_parser_events parser_events = {.on_head = on_head};
    static const struct sw_http_limits limits = {.head_bytes = 65536};
    struct sw_tunnel *tunnel = SW_NEW(struct sw_tunnel);
    tunnel->loop = loop;
    tunnel->lower = lower;
    tunnel->host = sw_strdup(host);
    tunnel->port = port;
    tunnel->fn = fn;
    tunnel->arg = arg;
    sw_buf_init(&tunnel->in, 1024);
    sw_timer_init(&tunnel->timer, loop, on_timer);
    sw_timer_start(&tunnel->timer, timeout_ms ? timeout_ms : TIMEOUT_MS);
    if (proxy->kind == SW_PROXY_SOCKS5) {
        tunnel->username = proxy->username ? sw_strdup(proxy->username) : NULL;
        tunnel->password = proxy->password ? sw_strdup(proxy->password) : NULL;
        ask_socks(tunnel);
    } else {
        tunnel->parser = sw_http_parser_new(SW_HTTP_RESPONSES, &limits, &parser_events, tunnel);
        ask_http(tunnel, proxy, user_agent);
    }
    sw_stream_start(lower, &events, tunnel);
    *ret_tunnel = tunnel;
    return 0;
}
