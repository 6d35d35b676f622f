/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS as a stream over another stream. One struct is first the handshake and then the stream.
 *
 *     HANDSHAKE --+--> OPEN      fn(stream)
 *                 +--> CLOSED    fn(NULL, error), or cancelled
 *     OPEN -------+--> CLOSED    closed; nothing pending, or it is dropped
 *                 +--> LINGERING closed after finish: what is pending still goes down
 *     LINGERING ------> CLOSED   all handed down, or 5 s have passed
 *
 * Bytes upwards: what the stream below lends us is decrypted from where it lies; only what is left
 * over because the reader paused, or is not there yet, is kept, and as the stream below is paused
 * too, that is one piece at most. Bytes downwards: what is written in one turn is gathered, so that
 * head and body of an answer are one record, and encrypted at its end.
 *
 * mbedTLS is never entered twice: it calls nothing of ours but the functions that move bytes, and
 * our owner is called only after it has returned. What dies is freed in a deferred call, when no
 * frame of it is on the stack any more.
 */
#include "net/tls.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/loop.h"
#include "base/util.h"
#include "net/stream.h"
#include "net/tls_config.h"
#include "net/tls_mbedtls.h"
#include "net/tls_verify.h"
#include "net/url.h"

enum {
    RECORD_BYTES = 16384,  /* RFC 8446 section 5.1: the most plaintext that a record holds */
    KEPT_BYTES = 4 * 1024, /* an empty buffer of that size stays; a larger one is given back */
    HANDSHAKE_MS = 10000,
    LINGER_MS = 5000,
    FIRST_BYTES = 6,
};

enum state {
    HANDSHAKE,
    OPEN,
    LINGERING,
    CLOSED,
};

struct sw_tls_handshake {
    struct sw_stream stream;
    struct sw_loop *loop;
    struct sw_stream *lower;
    struct sw_tls_config *config;
    mbedtls_ssl_context ssl;
    enum state state;
    struct sw_defer work; /* ends the turn */
    struct sw_defer reap;
    struct sw_timer timer; /* of the handshake; of lingering */

    /* handshake */
    sw_tls_ready_fn fn;
    void *arg;
    char *name; /* clients */
    struct sw_tls_check *check;
    unsigned char first[FIRST_BYTES]; /* that the peer sent */
    size_t first_len;

    /* encrypted, from the peer */
    const char *in; /* lent for the call, or in kept */
    size_t in_len;
    bool has_run_dry; /* mbedTLS asked for more than there was */
    struct sw_buf kept;
    bool has_lower_ended;
    int lower_code; /* how; also why it could not be written */

    /* to be encrypted */
    struct sw_buf out;
    size_t out_at;      /* so much of it is */
    size_t blocked_len; /* mbedTLS wants to hear that length again */
    bool is_finished;
    bool is_notified; /* close_notify has gone */
    int broken;       /* why nothing can be written any more */

    bool is_started;
    bool is_paused;
    bool has_ended; /* on_end has come */
    bool wants_drain;
};

static struct sw_tls_handshake *tls_of(struct sw_stream *stream)
{
    return container_of(stream, struct sw_tls_handshake, stream);
}

static const struct sw_tls_handshake *tls_peek(const struct sw_stream *stream)
{
    return (const struct sw_tls_handshake *)(const void *)stream; /* its first member */
}

/* ---- what mbedTLS calls ---- */

static int send_down(void *arg, const unsigned char *bytes, size_t len)
{
    struct sw_tls_handshake *tls = arg;
    size_t pending = sw_stream_pending(tls->lower);
    size_t limit = sw_stream_limit(tls->lower);
    if (pending >= limit) {
        sw_stream_ask_drain(tls->lower);
        return MBEDTLS_ERR_SSL_WANT_WRITE;
    }
    /* In parts, so that a record larger than the limit passes. */
    len = SW_MIN(SW_MIN(len, limit - pending), (size_t)INT32_MAX);
    int rc = sw_stream_write(tls->lower, bytes, len);
    if (rc) {
        tls->lower_code = rc;
        return MBEDTLS_ERR_SSL_INTERNAL_ERROR;
    }
    return (int)len;
}

static int receive_up(void *arg, unsigned char *bytes, size_t len)
{
    struct sw_tls_handshake *tls = arg;
    if (tls->in_len == 0) {
        tls->has_run_dry = true;
        return MBEDTLS_ERR_SSL_WANT_READ;
    }
    len = SW_MIN(SW_MIN(len, tls->in_len), (size_t)INT32_MAX);
    memcpy(bytes, tls->in, len);
    tls->in += len;
    tls->in_len -= len;
    return (int)len;
}

/* ---- the end of it ---- */

static void forget_check(struct sw_tls_handshake *tls)
{
    mbedtls_ssl_set_verify(&tls->ssl, NULL, NULL);
    tls->check = sw_free(tls->check);
}

static void reap(struct sw_defer *defer)
{
    struct sw_tls_handshake *tls = container_of(defer, struct sw_tls_handshake, reap);
    mbedtls_ssl_free(&tls->ssl);
    sw_tls_config_unref(tls->config);
    sw_buf_done(&tls->kept);
    sw_buf_done(&tls->out);
    sw_free(tls->check);
    sw_free(tls->name);
    sw_free(tls);
}

/* lower has been closed, one way or another. */
static void destroy(struct sw_tls_handshake *tls)
{
    tls->state = CLOSED;
    tls->stream.events = NULL;
    sw_timer_stop(&tls->timer);
    sw_defer_stop(&tls->work);
    sw_defer_start(&tls->reap);
}

static void end(struct sw_tls_handshake *tls, int code)
{
    if (tls->state != OPEN || tls->has_ended || !tls->stream.events) {
        return;
    }
    tls->has_ended = true;
    tls->stream.events->on_end(tls->stream.arg, code);
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

/* The connection cannot be written any more. If it is lower that broke, it says so itself once what
 * the peer had sent before is read. */
static void fail_writing(struct sw_tls_handshake *tls)
{
    tls->broken = tls->lower_code ? tls->lower_code : SW_E_TLS;
    sw_buf_done(&tls->out);
    tls->out_at = tls->blocked_len = 0;
    if (tls->state == LINGERING) {
        sw_stream_close(tls->lower);
        destroy(tls);
    } else if (!tls->lower_code) {
        end(tls, SW_E_TLS);
    }
}

/* 0: all is with lower. 1: lower is full and will say when it is not. */
static int encrypt(struct sw_tls_handshake *tls)
{
    while (tls->out_at < tls->out.len) {
        size_t len = tls->blocked_len ? tls->blocked_len : tls->out.len - tls->out_at;
        len = SW_MIN(len, (size_t)RECORD_BYTES);
        int rc = mbedtls_ssl_write(&tls->ssl, (unsigned char *)tls->out.bytes + tls->out_at, len);
        if (rc == MBEDTLS_ERR_SSL_WANT_WRITE || rc == MBEDTLS_ERR_SSL_WANT_READ) {
            tls->blocked_len = len;
            return 1;
        }
        if (rc < 0) {
            return rc;
        }
        tls->blocked_len = 0;
        tls->out_at += (size_t)rc;
    }
    tls->out_at = 0;
    empty(&tls->out);
    return 0;
}

/* After the last byte: close_notify, then lower's end. */
static int notify(struct sw_tls_handshake *tls)
{
    if (!tls->is_finished || tls->is_notified) {
        return 0;
    }
    int rc = mbedtls_ssl_close_notify(&tls->ssl);
    if (rc == MBEDTLS_ERR_SSL_WANT_WRITE) {
        return 1;
    }
    if (rc == 0) {
        tls->is_notified = true;
        sw_stream_finish(tls->lower);
    }
    return rc;
}

static size_t tls_pending(const struct sw_stream *stream)
{
    const struct sw_tls_handshake *tls = tls_peek(stream);
    return tls->out.len - tls->out_at + sw_stream_pending(tls->lower);
}

static size_t tls_limit(const struct sw_stream *stream)
{
    return sw_stream_limit(tls_peek(stream)->lower);
}

static void drain(struct sw_tls_handshake *tls)
{
    if (!tls->wants_drain || tls->state != OPEN || !tls->stream.events) {
        return;
    }
    if (tls_pending(&tls->stream) > tls_limit(&tls->stream) / 2) {
        sw_stream_ask_drain(tls->lower);
        return;
    }
    tls->wants_drain = false;
    if (tls->stream.events->on_drain) {
        tls->stream.events->on_drain(tls->stream.arg);
    }
}

/* May tell the owner, or free what lingers: the caller looks at the state again. */
static void flush(struct sw_tls_handshake *tls)
{
    if (tls->broken) {
        return;
    }
    int rc = encrypt(tls);
    if (rc == 0) {
        rc = notify(tls);
    }
    if (rc < 0) {
        fail_writing(tls);
        return;
    }
    if (rc == 0 && tls->state == LINGERING) {
        sw_stream_close(tls->lower);
        destroy(tls);
        return;
    }
    drain(tls);
}

static int tls_write(struct sw_stream *stream, const void *bytes, size_t len)
{
    struct sw_tls_handshake *tls = tls_of(stream);
    if (tls->broken || tls->is_finished) {
        return tls->broken ? tls->broken : -EPIPE;
    }
    size_t pending = tls_pending(stream);
    size_t limit = tls_limit(stream);
    if (pending > limit || len > limit - pending) {
        tls->wants_drain = true;
        sw_defer_start(&tls->work);
        return -ENOBUFS;
    }
    sw_defer_start(&tls->work);
    return sw_buf_append(&tls->out, bytes, len);
}

static void tls_ask_drain(struct sw_stream *stream)
{
    struct sw_tls_handshake *tls = tls_of(stream);
    tls->wants_drain = true;
    sw_defer_start(&tls->work);
}

static void tls_finish(struct sw_stream *stream)
{
    struct sw_tls_handshake *tls = tls_of(stream);
    tls->is_finished = true;
    sw_defer_start(&tls->work);
}

/* ---- reading ---- */

/* What mbedTLS has not taken yet must outlive the call that lent it. */
static void keep_rest(struct sw_tls_handshake *tls)
{
    if (tls->in_len == 0) {
        empty(&tls->kept);
    } else if (tls->kept.len == 0) {
        sw_buf_append(&tls->kept, tls->in, tls->in_len);
    } else {
        sw_buf_consume(&tls->kept, tls->kept.len - tls->in_len);
    }
    tls->in = tls->kept.bytes;
}

static bool is_readable(const struct sw_tls_handshake *tls)
{
    return tls->state == OPEN && tls->is_started && !tls->is_paused && !tls->has_ended;
}

/* All that was lent is read; how does it go on? */
static void on_dry(struct sw_tls_handshake *tls)
{
    if (tls->has_lower_ended) {
        end(tls, tls->lower_code ? tls->lower_code : SW_E_TRUNCATED);
    }
}

static void decrypt(struct sw_tls_handshake *tls)
{
    unsigned char plain[RECORD_BYTES];
    while (is_readable(tls)) {
        tls->has_run_dry = false;
        int rc = mbedtls_ssl_read(&tls->ssl, plain, sizeof(plain));
        if (rc > 0) {
            tls->stream.events->on_read(tls->stream.arg, (const char *)plain, (size_t)rc);
            continue;
        }
        switch (rc) {
#if defined(MBEDTLS_SSL_PROTO_TLS1_3)
        case MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET:
            sw_tls_session_keep(tls->config, tls->name, &tls->ssl);
            continue;
#endif
        case MBEDTLS_ERR_SSL_WANT_READ:
            if (!tls->has_run_dry) {
                continue; /* 3.6 says so between the steps of handling a ticket */
            }
            on_dry(tls);
            return;
        case MBEDTLS_ERR_SSL_WANT_WRITE:
            return; /* an answer of the protocol's own; on_drain leads here again */
        case MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY:
            end(tls, 0);
            return;
        default:
            tls->broken = tls->lower_code ? tls->lower_code : SW_E_TLS;
            end(tls, tls->broken);
            return;
        }
    }
}

static void tls_start(struct sw_stream *stream)
{
    struct sw_tls_handshake *tls = tls_of(stream);
    tls->is_started = true;
    sw_stream_set_reading(tls->lower, !tls->is_paused);
    sw_defer_start(&tls->work);
}

static void tls_set_reading(struct sw_stream *stream, bool is_on)
{
    struct sw_tls_handshake *tls = tls_of(stream);
    tls->is_paused = !is_on;
    if (tls->is_started) {
        sw_stream_set_reading(tls->lower, is_on);
        sw_defer_start(&tls->work);
    }
}

/* ---- the handshake ---- */

/* Takes lower's side of it as well: an alert of ours still leaves. */
static void fail_handshake(struct sw_tls_handshake *tls, const struct sw_error *error)
{
    sw_tls_ready_fn fn = tls->fn;
    void *arg = tls->arg;
    if (tls->name && !tls->config->is_server) {
        sw_tls_session_forget(tls->config, tls->name); /* perhaps it was to blame */
    }
    sw_stream_finish(tls->lower);
    sw_stream_close(tls->lower);
    destroy(tls);
    fn(arg, NULL, error);
}

static void explain_and_fail(struct sw_tls_handshake *tls, int code)
{
    struct sw_tls_failure failure = {
        .ssl = &tls->ssl,
        .check = tls->check,
        .code = tls->lower_code ? 0 : code,
        .lower_code = tls->lower_code,
        .first = tls->first,
        .first_len = tls->first_len,
    };
    struct sw_error error;
    sw_tls_explain(&failure, &error);
    fail_handshake(tls, &error);
}

/* In TLS 1.3 there is nothing to resume before a ticket has come; the session kept from the last
 * connection is better than that. */
static bool comes_with_tickets(const struct sw_tls_handshake *tls)
{
#if defined(MBEDTLS_SSL_PROTO_TLS1_3)
    return mbedtls_ssl_get_version_number(&tls->ssl) == MBEDTLS_SSL_VERSION_TLS1_3;
#else
    (void)tls;
    return false;
#endif
}

static void succeed(struct sw_tls_handshake *tls)
{
    tls->state = OPEN;
    sw_timer_stop(&tls->timer);
    forget_check(tls);
    if (!tls->config->is_server && !comes_with_tickets(tls)) {
        sw_tls_session_keep(tls->config, tls->name, &tls->ssl);
    }
    tls->fn(tls->arg, &tls->stream, NULL);
    if (tls->state == OPEN && !tls->is_started) {
        sw_stream_set_reading(tls->lower, false);
    }
}

static void shake_hands(struct sw_tls_handshake *tls)
{
    tls->check->now_us = sw_wall_us(tls->loop);
    int rc = mbedtls_ssl_handshake(&tls->ssl);
    if (rc == 0) {
        succeed(tls);
    } else if (rc == MBEDTLS_ERR_SSL_WANT_READ && tls->has_lower_ended) {
        explain_and_fail(tls, 0);
    } else if (rc != MBEDTLS_ERR_SSL_WANT_READ && rc != MBEDTLS_ERR_SSL_WANT_WRITE) {
        explain_and_fail(tls, rc);
    }
}

static void on_timer(struct sw_timer *timer)
{
    struct sw_tls_handshake *tls = container_of(timer, struct sw_tls_handshake, timer);
    if (tls->state == LINGERING) {
        sw_stream_close(tls->lower);
        destroy(tls);
        return;
    }
    struct sw_error error;
    sw_error_set(&error, -ETIMEDOUT, "TLS handshake failed: the %s did not answer in time%s",
                 tls->config->is_server ? "client" : "server",
                 tls->first_len ? "" : " (it sent nothing at all)");
    fail_handshake(tls, &error);
}

/* ---- what drives it ---- */

static void pump(struct sw_tls_handshake *tls)
{
    if (tls->state == HANDSHAKE) {
        shake_hands(tls);
    }
    if (tls->state == OPEN) {
        decrypt(tls);
    }
    if (tls->state != CLOSED) {
        keep_rest(tls);
    }
}

static void on_turn_end(struct sw_defer *defer)
{
    struct sw_tls_handshake *tls = container_of(defer, struct sw_tls_handshake, work);
    if (tls->state != HANDSHAKE) {
        flush(tls);
    }
    if (tls->state == HANDSHAKE || tls->in_len > 0 || tls->has_lower_ended) {
        pump(tls);
    }
}

static void on_lower_read(void *arg, const char *bytes, size_t len)
{
    struct sw_tls_handshake *tls = arg;
    if (tls->state == LINGERING) {
        return;
    }
    if (tls->first_len < FIRST_BYTES && tls->state == HANDSHAKE) {
        size_t count = SW_MIN(len, FIRST_BYTES - tls->first_len);
        memcpy(tls->first + tls->first_len, bytes, count);
        tls->first_len += count;
    }
    if (tls->kept.len > 0) {
        sw_buf_append(&tls->kept, bytes, len);
        tls->in = tls->kept.bytes;
        tls->in_len = tls->kept.len;
    } else {
        tls->in = bytes;
        tls->in_len = len;
    }
    pump(tls);
}

static void on_lower_end(void *arg, int code)
{
    struct sw_tls_handshake *tls = arg;
    tls->has_lower_ended = true;
    tls->lower_code = code;
    if (tls->state == LINGERING) {
        if (code) {
            sw_stream_close(tls->lower);
            destroy(tls);
        }
        return;
    }
    if (code && !tls->broken) {
        tls->broken = code;
    }
    pump(tls);
}

static void on_lower_drain(void *arg)
{
    struct sw_tls_handshake *tls = arg;
    on_turn_end(&tls->work);
}

static const struct sw_stream_events lower_events = {
    .on_read = on_lower_read,
    .on_end = on_lower_end,
    .on_drain = on_lower_drain,
};

/* ---- closing ---- */

static void tls_close(struct sw_stream *stream, bool with_reset)
{
    struct sw_tls_handshake *tls = tls_of(stream);
    if (tls->state != HANDSHAKE && tls->state != OPEN) {
        return;
    }
    stream->events = NULL;
    if (with_reset) {
        sw_stream_reset(tls->lower);
        destroy(tls);
        return;
    }
    if (tls->state == OPEN && tls->is_finished && !tls->is_notified && !tls->broken) {
        tls->state = LINGERING;
        sw_timer_start(&tls->timer, LINGER_MS);
        sw_defer_start(&tls->work);
        return;
    }
    sw_stream_close(tls->lower);
    destroy(tls);
}

bool sw_tls_handshake_has_begun(const struct sw_tls_handshake *tls)
{
    return tls->first_len > 0;
}

void sw_tls_handshake_cancel(struct sw_tls_handshake *handshake)
{
    tls_close(&handshake->stream, false);
}

static const char *tls_peer(const struct sw_stream *stream)
{
    return sw_stream_peer(tls_peek(stream)->lower);
}

static const struct sw_stream_ops tls_ops = {
    .start = tls_start,
    .write = tls_write,
    .pending = tls_pending,
    .limit = tls_limit,
    .ask_drain = tls_ask_drain,
    .set_reading = tls_set_reading,
    .finish = tls_finish,
    .close = tls_close,
    .peer = tls_peer,
};

/* ---- the beginning of it ---- */

static struct sw_tls_handshake *tls_new(struct sw_loop *loop, struct sw_stream *lower,
                                        struct sw_tls_config *config)
{
    struct sw_tls_handshake *tls = SW_NEW(struct sw_tls_handshake);
    tls->stream.ops = &tls_ops;
    tls->loop = loop;
    tls->lower = lower;
    tls->config = sw_tls_config_ref(config);
    tls->check = SW_NEW(struct sw_tls_check);
    tls->check->config = config;
    sw_defer_init(&tls->work, loop, on_turn_end);
    sw_defer_init(&tls->reap, loop, reap);
    sw_timer_init(&tls->timer, loop, on_timer);
    sw_buf_init(&tls->out, SIZE_MAX);  /* tls_write keeps lower's limit */
    sw_buf_init(&tls->kept, SIZE_MAX); /* one piece of lower, which is paused meanwhile */
    mbedtls_ssl_init(&tls->ssl);
    return tls;
}

static int set_up(struct sw_tls_handshake *tls)
{
    int rc = mbedtls_ssl_setup(&tls->ssl, &tls->config->ssl);
    if (rc || tls->config->is_server) {
        return rc;
    }
    /* NULL has to be said: since 3.6.3 mbedTLS takes an unset name for an oversight. */
    rc = mbedtls_ssl_set_hostname(&tls->ssl, sw_host_is_ip(tls->name) ? NULL : tls->name);
    const mbedtls_ssl_session *session = sw_tls_session_get(tls->config, tls->name);
    if (!rc && session && mbedtls_ssl_set_session(&tls->ssl, session)) {
        sw_tls_session_forget(tls->config, tls->name); /* then a full handshake */
    }
    return rc;
}

static int begin(struct sw_tls_handshake *tls, uint64_t timeout_ms, sw_tls_ready_fn fn, void *arg,
                 struct sw_tls_handshake **ret_handshake)
{
    tls->fn = fn;
    tls->arg = arg;
    int rc = set_up(tls);
    if (rc) {
        sw_stream_close(tls->lower);
        destroy(tls);
        return rc == MBEDTLS_ERR_SSL_ALLOC_FAILED ? -ENOMEM : SW_E_TLS;
    }
    mbedtls_ssl_set_verify(&tls->ssl, sw_tls_verify, tls->check);
    mbedtls_ssl_set_bio(&tls->ssl, tls, send_down, receive_up, NULL);
    sw_timer_start(&tls->timer, timeout_ms ? timeout_ms : HANDSHAKE_MS);
    sw_defer_start(&tls->work);
    sw_stream_start(tls->lower, &lower_events, tls);
    *ret_handshake = tls;
    return 0;
}

int sw_tls_connect(struct sw_loop *loop, struct sw_stream *lower, struct sw_tls_config *config,
                   const char *name, uint64_t timeout_ms, sw_tls_ready_fn fn, void *arg,
                   struct sw_tls_handshake **ret_handshake)
{
    sw_assert(!config->is_server);
    struct sw_tls_handshake *tls = tls_new(loop, lower, config);
    tls->name = sw_strdup(name);
    tls->check->host = tls->name;
    return begin(tls, timeout_ms, fn, arg, ret_handshake);
}

int sw_tls_accept(struct sw_loop *loop, struct sw_stream *lower, struct sw_tls_config *config,
                  uint64_t timeout_ms, sw_tls_ready_fn fn, void *arg,
                  struct sw_tls_handshake **ret_handshake)
{
    sw_assert(config->is_server);
    return begin(tls_new(loop, lower, config), timeout_ms, fn, arg, ret_handshake);
}
