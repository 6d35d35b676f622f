/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream of bytes in both directions, and nothing more: TCP, TLS over another stream, or one end
 * of a pipe in memory. Layers are stacked: each knows the stream below it and the events of whoever
 * is above it, never its neighbours' kind. Bytes come in any pieces.
 *
 * Reading. After sw_stream_start, on_read comes with at least one byte at a time, borrowed for the
 * call, until on_end, which comes exactly once: 0 means that the peer ended its side in an orderly
 * way (FIN; for TLS: close_notify), a negative code that the stream broke (a FIN without
 * close_notify is SW_E_TRUNCATED). After on_end nothing comes any more but on_drain, and the owner
 * still has to close. After on_end with 0 our side may still be written.
 *
 * Writing. sw_stream_write copies. What was written in one turn of the loop leaves in as few
 * segments as possible at its end. Beyond the limit of the constructor it fails with -ENOBUFS and
 * takes nothing; on_drain comes, once for each time, when what is pending has fallen to half of the
 * limit or less after a refused write. On a stream that broke or that was finished it fails with a
 * negative code too. No event comes from within any of the functions here.
 *
 * Closing. sw_stream_close may be called from any callback and, until that callback returns, twice;
 * no event comes after it has returned; what is still pending is dropped unless sw_stream_finish
 * was called before (then it is sent, within 5 s). The memory is freed by the stream itself once
 * its handles are closed; the pointer is dead for the owner when close has returned. Closing takes
 * turns of the loop: a loop is not closed before it has run dry.
 */
#ifndef SW_NET_STREAM_H
#define SW_NET_STREAM_H

#include <stdbool.h>
#include <stddef.h>

struct sw_stream;

struct sw_stream_events {
    void (*on_read)(void *arg, const char *bytes, size_t len);
    void (*on_end)(void *arg, int code);
    void (*on_drain)(void *arg); /* may be NULL */
};

/* What a kind of stream implements; each is called through the functions below. */
struct sw_stream_ops {
    void (*start)(struct sw_stream *stream);
    int (*write)(struct sw_stream *stream, const void *bytes, size_t len);
    size_t (*pending)(const struct sw_stream *stream);
    size_t (*limit)(const struct sw_stream *stream);
    void (*ask_drain)(struct sw_stream *stream);
    void (*set_reading)(struct sw_stream *stream, bool is_on);
    void (*finish)(struct sw_stream *stream);
    void (*close)(struct sw_stream *stream, bool with_reset);
    const char *(*peer)(const struct sw_stream *stream);
};

/* First member of every kind of stream. */
struct sw_stream {
    const struct sw_stream_ops *ops;
    const struct sw_stream_events *events; /* NULL: not started, or closed */
    void *arg;
};

/* Sets who is told and begins to read. Once, except that a layer may hand a stream on with
 * set_events; with none (NULL), whoever gets it starts it again before the call returns. */
void sw_stream_start(struct sw_stream *stream, const struct sw_stream_events *events, void *arg);
void sw_stream_set_events(struct sw_stream *stream, const struct sw_stream_events *events,
                          void *arg);
int sw_stream_write(struct sw_stream *stream, const void *bytes, size_t len);
size_t sw_stream_pending(const struct sw_stream *stream); /* bytes not yet given to the kernel */
size_t sw_stream_limit(const struct sw_stream *stream);   /* what pending may not exceed */
/* on_drain as after a refused write: for a layer that refuses on behalf of this stream. */
void sw_stream_ask_drain(struct sw_stream *stream);
/* Back pressure: false stops on_read; the peer's bytes wait in the kernel. on_end may still come.
 * May be called before the start. */
void sw_stream_set_reading(struct sw_stream *stream, bool is_on);
/* Ends our side after what is pending (FIN; TLS: close_notify first). Reading goes on. */
void sw_stream_finish(struct sw_stream *stream);
void sw_stream_close(struct sw_stream *stream); /* takes NULL */
/* Closes with a TCP reset (SO_LINGER 0), so that nothing on its way is delivered any more. */
void sw_stream_reset(struct sw_stream *stream); /* takes NULL */
/* "192.0.2.1:443", "[2001:db8::1]:443"; for messages. */
const char *sw_stream_peer(const struct sw_stream *stream);

/* ---- in memory, for tests and the simulator ---- */

struct sw_loop;

/* Two ends; what is written to one is read at the other in a later deferred call, in pieces of at
 * most max_piece bytes, one a deferred call (0: all that is there). limit_bytes as above, for each
 * direction. Works on a virtual loop. A closed end has ended its side for the other (0); a reset
 * one has broken it (-ECONNRESET). */
void sw_pipe_open(struct sw_loop *loop, size_t limit_bytes, size_t max_piece,
                  struct sw_stream **ret_a, struct sw_stream **ret_b);

#endif
