/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TCP connection as a stream: reading, writing gathered by turns of the loop, the four ways to
 * end. How it comes into being is the business of tcp_connect.c and tcp_listen.c.
 *
 * Bytes to be written pass through two buffers. `out` gathers what is written in this turn. At its
 * end one write(2) is tried; what the kernel does not take moves, buffer and all, to `sending`,
 * which belongs to libuv until on_sent; meanwhile `out` gathers again. Nothing is copied twice.
 *
 * Closing after finish (a "lingering" stream): what is pending is sent, then the FIN, then what
 * still arrives is thrown away until the peer has ended too. Without that last step the kernel
 * answers an unread byte with a reset, and the reset overtakes our last bytes (RFC 9112 section
 * 9.6). The peer has 5 s to take the bytes and 1 s to end.
 */
#include "net/tcp.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <uv.h>

#include "base/buf.h"
#include "base/loop.h"
#include "base/util.h"
#include "net/stream.h"
#include "net/tcp_stream.h"

enum {
    KEPT_BYTES = 4 * 1024, /* an empty buffer of that size stays; a larger one is given back */
    FLUSH_MS = 5000,
    DISCARD_MS = 1000,
};

struct sw_tcp {
    struct sw_stream stream;
    struct sw_loop *loop;
    uv_tcp_t handle;
    uv_write_t send;
    uv_shutdown_t shutdown;
    struct sw_defer flush;  /* ends the turn */
    struct sw_timer linger; /* of a closed stream that still sends or discards */
    struct sw_buf out;
    struct sw_buf sending;
    size_t sending_left; /* not 0: libuv has it */
    size_t limit_bytes;
    int broken;     /* why nothing can be written any more */
    int unreadable; /* why reading could not even begin */
    bool is_started;
    bool is_paused;
    bool has_ended;   /* on_end has come */
    bool is_finished; /* FIN after what is pending */
    bool is_fin_asked;
    bool is_fin_sent;
    bool is_closed; /* the owner has gone */
    bool wants_drain;
    char peer[SW_TCP_NAME_SIZE];
};

static struct sw_tcp *tcp_of(struct sw_stream *stream)
{
    return container_of(stream, struct sw_tcp, stream);
}

static const struct sw_tcp *tcp_peek(const struct sw_stream *stream)
{
    return (const struct sw_tcp *)(const void *)stream; /* its first member */
}

static uv_stream_t *uv_stream(struct sw_tcp *tcp)
{
    return (uv_stream_t *)&tcp->handle;
}

/* ---- the end of it ---- */

static void on_closed(uv_handle_t *handle)
{
    struct sw_tcp *tcp = container_of((uv_tcp_t *)handle, struct sw_tcp, handle);
    sw_buf_done(&tcp->out);
    sw_buf_done(&tcp->sending);
    sw_free(tcp);
}

static void destroy(struct sw_tcp *tcp)
{
    sw_timer_stop(&tcp->linger);
    sw_defer_stop(&tcp->flush);
    if (!uv_is_closing((uv_handle_t *)&tcp->handle)) {
        uv_close((uv_handle_t *)&tcp->handle, on_closed);
    }
}

static void on_linger_timeout(struct sw_timer *timer)
{
    destroy(container_of(timer, struct sw_tcp, linger));
}

/* Tells the owner, once. */
static void end(struct sw_tcp *tcp, int code)
{
    if (tcp->is_closed) {
        destroy(tcp);
        return;
    }
    if (tcp->has_ended || !tcp->stream.events) {
        return;
    }
    tcp->has_ended = true;
    uv_read_stop(uv_stream(tcp));
    tcp->stream.events->on_end(tcp->stream.arg, code);
}

/* ---- reading ---- */

/* libuv reads at once and calls on_bytes, whatever came; an end it may tell without a buffer, too.
 */
static void give_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buf)
{
    const struct sw_tcp *tcp = container_of((uv_tcp_t *)handle, struct sw_tcp, handle);
    (void)suggested;
    *ret_buf = uv_buf_init(sw_loop_scratch_take(tcp->loop), SW_SCRATCH_BYTES);
}

static void on_bytes(uv_stream_t *handle, ssize_t len, const uv_buf_t *buf)
{
    struct sw_tcp *tcp = container_of((uv_tcp_t *)handle, struct sw_tcp, handle);
    struct sw_loop *loop = tcp->loop;
    if (len > 0) {
        if (!tcp->is_closed) {
            tcp->stream.events->on_read(tcp->stream.arg, buf->base, (size_t)len);
        }
    } else if (len == UV_EOF) {
        if (!tcp->is_closed || tcp->is_fin_sent) {
            end(tcp, tcp->broken);
        } else {
            tcp->has_ended = true; /* still sending; then there is nothing to wait for */
        }
    } else if (len < 0) {
        end(tcp, tcp->broken ? tcp->broken : (int)len);
    }
    if (buf->base) {
        sw_loop_scratch_give(loop);
    }
}

static void begin_reading(struct sw_tcp *tcp)
{
    int rc = uv_read_start(uv_stream(tcp), give_buffer, on_bytes);
    if (rc && rc != UV_EALREADY) {
        tcp->unreadable = rc;
        sw_defer_start(&tcp->flush);
    }
}

static void tcp_start(struct sw_stream *stream)
{
    struct sw_tcp *tcp = tcp_of(stream);
    tcp->is_started = true;
    if (!tcp->is_paused) {
        begin_reading(tcp);
    }
    if (tcp->wants_drain) {
        sw_defer_start(&tcp->flush);
    }
}

static void tcp_set_reading(struct sw_stream *stream, bool is_on)
{
    struct sw_tcp *tcp = tcp_of(stream);
    tcp->is_paused = !is_on;
    if (!tcp->is_started || tcp->has_ended || tcp->is_closed) {
        return;
    }
    if (is_on) {
        begin_reading(tcp);
    } else {
        uv_read_stop(uv_stream(tcp));
    }
}

/* ---- writing ---- */

static void empty(struct sw_buf *buf)
{
    if (buf->room > KEPT_BYTES) {
        sw_buf_done(buf);
    } else {
        sw_buf_clear(buf);
    }
}

static size_t tcp_pending(const struct sw_stream *stream)
{
    const struct sw_tcp *tcp = tcp_peek(stream);
    return tcp->out.len + tcp->sending_left;
}

static size_t tcp_limit(const struct sw_stream *stream)
{
    return tcp_peek(stream)->limit_bytes;
}

static void tcp_ask_drain(struct sw_stream *stream)
{
    struct sw_tcp *tcp = tcp_of(stream);
    tcp->wants_drain = true;
    sw_defer_start(&tcp->flush);
}

static int tcp_write(struct sw_stream *stream, const void *bytes, size_t len)
{
    struct sw_tcp *tcp = tcp_of(stream);
    if (tcp->broken || tcp->is_finished) {
        return tcp->broken ? tcp->broken : -EPIPE;
    }
    if (len > tcp->limit_bytes - tcp_pending(stream)) {
        tcp_ask_drain(stream);
        return -ENOBUFS;
    }
    sw_defer_start(&tcp->flush);
    return sw_buf_append(&tcp->out, bytes, len);
}

/*
 * Nothing can be written any more. If the peer has reset the connection, what it had sent before
 * may still wait to be read (an early answer, say); the reading side then meets the end by itself
 * and reports it after the last byte. Any other error, or a paused reader, is told at once.
 */
static void fail(struct sw_tcp *tcp, int code)
{
    tcp->broken = code;
    sw_buf_done(&tcp->out);
    bool is_peers = code == UV_EPIPE || code == UV_ECONNRESET || code == UV_ETIMEDOUT;
    if (tcp->is_closed || !is_peers || tcp->is_paused) {
        end(tcp, code);
    }
}

static void flush(struct sw_tcp *tcp);

static void on_sent(uv_write_t *request, int status)
{
    struct sw_tcp *tcp = container_of(request, struct sw_tcp, send);
    tcp->sending_left = 0;
    empty(&tcp->sending);
    if (uv_is_closing((uv_handle_t *)&tcp->handle)) {
        return;
    }
    if (status) {
        fail(tcp, status);
    } else {
        flush(tcp);
    }
}

/* What was not written at once becomes libuv's. */
static int send_rest(struct sw_tcp *tcp, size_t written)
{
    struct sw_buf was_sent = tcp->sending;
    tcp->sending = tcp->out;
    tcp->out = was_sent;
    tcp->sending_left = tcp->sending.len - written;
    uv_buf_t rest = uv_buf_init(tcp->sending.bytes + written, (unsigned)tcp->sending_left);
    int rc = uv_write(&tcp->send, uv_stream(tcp), &rest, 1, on_sent);
    if (rc) {
        tcp->sending_left = 0;
        empty(&tcp->sending);
    }
    return rc;
}

static int send_out(struct sw_tcp *tcp)
{
    uv_buf_t all = uv_buf_init(tcp->out.bytes, (unsigned)tcp->out.len);
    int written = uv_try_write(uv_stream(tcp), &all, 1);
    if (written >= 0 && (size_t)written == tcp->out.len) {
        empty(&tcp->out);
        return 0;
    }
    if (written < 0 && written != UV_EAGAIN) {
        return written;
    }
    return send_rest(tcp, written < 0 ? 0 : (size_t)written);
}

static void on_fin_sent(uv_shutdown_t *request, int status)
{
    struct sw_tcp *tcp = container_of(request, struct sw_tcp, shutdown);
    tcp->is_fin_sent = true;
    if (!tcp->is_closed || uv_is_closing((uv_handle_t *)&tcp->handle)) {
        return;
    }
    if (status || tcp->has_ended) {
        destroy(tcp);
    } else {
        sw_timer_start(&tcp->linger, DISCARD_MS);
    }
}

static void drain(struct sw_tcp *tcp)
{
    if (!tcp->wants_drain || !tcp->stream.events ||
        tcp_pending(&tcp->stream) > tcp->limit_bytes / 2) {
        return;
    }
    tcp->wants_drain = false;
    if (tcp->stream.events->on_drain) {
        tcp->stream.events->on_drain(tcp->stream.arg);
    }
}

/* Moves what can be moved. May tell the owner, so it is the last thing its callers do. */
static void flush(struct sw_tcp *tcp)
{
    if (tcp->unreadable) {
        end(tcp, tcp->unreadable);
        return;
    }
    if (tcp->broken) {
        return;
    }
    if (tcp->out.len > 0 && tcp->sending_left == 0) {
        int rc = send_out(tcp);
        if (rc) {
            fail(tcp, rc);
            return;
        }
    }
    if (tcp->is_finished && !tcp->is_fin_asked && tcp_pending(&tcp->stream) == 0) {
        tcp->is_fin_asked = true;
        int rc = uv_shutdown(&tcp->shutdown, uv_stream(tcp), on_fin_sent);
        if (rc) {
            fail(tcp, rc);
            return;
        }
    }
    drain(tcp);
}

static void on_turn_end(struct sw_defer *defer)
{
    flush(container_of(defer, struct sw_tcp, flush));
}

static void tcp_finish(struct sw_stream *stream)
{
    struct sw_tcp *tcp = tcp_of(stream);
    tcp->is_finished = true;
    sw_defer_start(&tcp->flush);
}

/* ---- closing ---- */

static void tcp_close(struct sw_stream *stream, bool with_reset)
{
    struct sw_tcp *tcp = tcp_of(stream);
    if (tcp->is_closed) {
        return;
    }
    tcp->is_closed = true;
    stream->events = NULL;
    if (with_reset) {
        /* As uv_tcp_close_reset, which refuses a stream that has sent its FIN. */
        struct linger at_once = {.l_onoff = 1};
        int fd;
        if (uv_fileno((uv_handle_t *)&tcp->handle, &fd) == 0) {
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
        }
    }
    if (with_reset || !tcp->is_finished || tcp->is_fin_sent || tcp->broken) {
        destroy(tcp);
        return;
    }
    sw_timer_start(&tcp->linger, FLUSH_MS);
    if (!tcp->has_ended) {
        begin_reading(tcp);
    }
}

static const char *tcp_peer(const struct sw_stream *stream)
{
    return tcp_peek(stream)->peer;
}

static const struct sw_stream_ops tcp_ops = {
    .start = tcp_start,
    .write = tcp_write,
    .pending = tcp_pending,
    .limit = tcp_limit,
    .ask_drain = tcp_ask_drain,
    .set_reading = tcp_set_reading,
    .finish = tcp_finish,
    .close = tcp_close,
    .peer = tcp_peer,
};

/* ---- the beginning of it ---- */

int sw_tcp_new(struct sw_loop *loop, size_t write_limit_bytes, struct sw_tcp **ret_tcp)
{
    if (!sw_loop_uv(loop)) {
        return -ENOTSUP;
    }
    struct sw_tcp *tcp = SW_NEW(struct sw_tcp);
    int rc = uv_tcp_init(sw_loop_uv(loop), &tcp->handle);
    if (rc) {
        sw_free(tcp);
        return rc;
    }
    tcp->stream.ops = &tcp_ops;
    tcp->loop = loop;
    /* libuv counts the bytes of one write in an int. */
    tcp->limit_bytes = write_limit_bytes ? SW_MIN(write_limit_bytes, (size_t)INT32_MAX)
                                         : (size_t)SW_TCP_WRITE_LIMIT;
    sw_defer_init(&tcp->flush, loop, on_turn_end);
    sw_timer_init(&tcp->linger, loop, on_linger_timeout);
    sw_buf_init(&tcp->out, SIZE_MAX); /* tcp_write keeps the limit, of both buffers together */
    sw_buf_init(&tcp->sending, SIZE_MAX);
    *ret_tcp = tcp;
    return 0;
}

uv_tcp_t *sw_tcp_handle(struct sw_tcp *tcp)
{
    return &tcp->handle;
}

struct sw_stream *sw_tcp_stream(struct sw_tcp *tcp)
{
    return &tcp->stream;
}

void sw_tcp_name(const struct sockaddr *address, char ret_name[SW_TCP_NAME_SIZE])
{
    char host[64] = "?";
    uint16_t port = 0;
    bool is_v6 = address->sa_family == AF_INET6;
    if (is_v6) {
        const struct sockaddr_in6 *v6 = (const void *)address;
        uv_ip6_name(v6, host, sizeof(host));
        port = ntohs(v6->sin6_port);
    } else if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)address;
        uv_ip4_name(v4, host, sizeof(host));
        port = ntohs(v4->sin_port);
    }
    snprintf(ret_name, SW_TCP_NAME_SIZE, is_v6 ? "[%s]:%u" : "%s:%u", host, (unsigned)port);
}

/*
 * A connection may be silent for long (a watch on a quiet cluster), so the kernel probes: 30 s
 * idle, then every 10 s, dead after 3 unanswered. Bytes on their way that nobody acknowledges are
 * waited for 60 s. Both are options of the socket that cannot fail on a TCP one; a kernel that
 * refuses leaves the deadlines of the layers above.
 */
static void set_options(struct sw_tcp *tcp)
{
    static const struct {
        int level, name, value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},    {IPPROTO_TCP, TCP_KEEPIDLE, 30},
        {IPPROTO_TCP, TCP_KEEPINTVL, 10}, {IPPROTO_TCP, TCP_KEEPCNT, 3},
        {SOL_SOCKET, SO_KEEPALIVE, 1},    {IPPROTO_TCP, TCP_USER_TIMEOUT, 60000},
    };
    int fd;
    if (uv_fileno((uv_handle_t *)&tcp->handle, &fd)) {
        return;
    }
    for (size_t i = 0; i < SW_ARRAY_SIZE(options); i++) {
        setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
    }
}

struct sw_stream *sw_tcp_established(struct sw_tcp *tcp)
{
    struct sockaddr_storage peer = {0};
    int len = sizeof(peer);
    uv_tcp_getpeername(&tcp->handle, (struct sockaddr *)&peer, &len);
    sw_tcp_name((struct sockaddr *)&peer, tcp->peer);
    set_options(tcp);
    return &tcp->stream;
}
