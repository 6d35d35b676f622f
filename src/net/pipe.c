/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream in memory: two ends, each with the bytes that wait to be read at it. It stands in for a
 * socket in tests and in the simulator and therefore promises what a socket does, no more: bytes in
 * any pieces, an end after the last byte, a reset that overtakes what is on its way.
 */
#include <errno.h>

#include "base/buf.h"
#include "base/loop.h"
#include "base/util.h"
#include "net/stream.h"

struct pipe;

struct end {
    struct sw_stream stream;
    struct pipe *pipe;
    struct end *other;
    struct sw_defer deliver; /* to this end */
    struct sw_buf in;        /* written at the other end, not yet read here */
    size_t in_at;            /* so much of it has been read */
    int broken;              /* the other end was reset: this instead of an orderly end */
    bool is_started;
    bool is_paused;
    bool has_ended;   /* on_end has come */
    bool is_finished; /* nothing more will be written at this end */
    bool is_closed;
    bool wants_drain;
};

struct pipe {
    struct end ends[2];
    size_t max_piece;
    struct sw_defer reap; /* frees both once both are closed */
};

static struct end *end_of(struct sw_stream *stream)
{
    return container_of(stream, struct end, stream);
}

static const struct end *end_peek(const struct sw_stream *stream)
{
    return (const struct end *)(const void *)stream; /* its first member */
}

static size_t waiting(const struct end *end)
{
    return end->in.len - end->in_at;
}

static void end_start(struct sw_stream *stream)
{
    struct end *end = end_of(stream);
    end->is_started = true;
    sw_defer_start(&end->deliver);
}

static int end_write(struct sw_stream *stream, const void *bytes, size_t len)
{
    struct end *end = end_of(stream);
    struct end *other = end->other;
    if (end->is_finished || other->is_closed) {
        return -EPIPE;
    }
    if (len > other->in.limit_bytes - waiting(other)) {
        sw_stream_ask_drain(stream);
        return -ENOBUFS;
    }
    if (other->in_at > 0) {
        sw_buf_consume(&other->in, other->in_at);
        other->in_at = 0;
    }
    int rc = sw_buf_append(&other->in, bytes, len);
    sw_defer_start(&other->deliver);
    return rc;
}

static size_t end_pending(const struct sw_stream *stream)
{
    return waiting(end_peek(stream)->other);
}

static size_t end_limit(const struct sw_stream *stream)
{
    return end_peek(stream)->other->in.limit_bytes;
}

static void end_ask_drain(struct sw_stream *stream)
{
    struct end *end = end_of(stream);
    end->wants_drain = true;
    sw_defer_start(&end->other->deliver);
}

static void end_set_reading(struct sw_stream *stream, bool is_on)
{
    struct end *end = end_of(stream);
    end->is_paused = !is_on;
    sw_defer_start(&end->deliver);
}

static void end_finish(struct sw_stream *stream)
{
    struct end *end = end_of(stream);
    end->is_finished = true;
    sw_defer_start(&end->other->deliver);
}

static void end_close(struct sw_stream *stream, bool with_reset)
{
    struct end *end = end_of(stream);
    struct end *other = end->other;
    if (end->is_closed) {
        return;
    }
    if (with_reset) {
        other->broken = -ECONNRESET;
    }
    if (with_reset || !end->is_finished) {
        sw_buf_clear(&other->in);
        other->in_at = 0;
    }
    end->is_closed = end->is_finished = true;
    stream->events = NULL;
    sw_defer_stop(&end->deliver);
    sw_buf_done(&end->in);
    end->in_at = 0;
    if (other->is_closed) {
        sw_defer_start(&end->pipe->reap);
    } else {
        sw_defer_start(&other->deliver);
    }
}

static const char *end_peer(const struct sw_stream *stream)
{
    (void)stream;
    return "pipe";
}

static const struct sw_stream_ops end_ops = {
    .start = end_start,
    .write = end_write,
    .pending = end_pending,
    .limit = end_limit,
    .ask_drain = end_ask_drain,
    .set_reading = end_set_reading,
    .finish = end_finish,
    .close = end_close,
    .peer = end_peer,
};

static void drain(struct end *writer)
{
    if (!writer->wants_drain || writer->is_closed ||
        waiting(writer->other) > writer->other->in.limit_bytes / 2) {
        return;
    }
    writer->wants_drain = false;
    if (writer->stream.events && writer->stream.events->on_drain) {
        writer->stream.events->on_drain(writer->stream.arg);
    }
}

/* The bytes leave the buffer before the call, since the reader may write, close, or be told more
 * from within; so a piece that is all there is goes without being copied, any other with. */
static void deliver_piece(struct end *end)
{
    size_t len = waiting(end);
    size_t max = end->pipe->max_piece;
    struct sw_buf piece = end->in;
    size_t at = end->in_at;
    if (max == 0 || len <= max) {
        sw_buf_init(&end->in, piece.limit_bytes);
        end->in_at = 0;
        end->stream.events->on_read(end->stream.arg, piece.bytes + at, len);
        sw_buf_done(&piece);
        return;
    }
    sw_buf_init(&piece, SIZE_MAX);
    sw_buf_append(&piece, end->in.bytes + at, max);
    end->in_at += max;
    sw_defer_start(&end->deliver);
    end->stream.events->on_read(end->stream.arg, piece.bytes, max);
    sw_buf_done(&piece);
}

static void deliver(struct sw_defer *defer)
{
    struct end *end = container_of(defer, struct end, deliver);
    struct end *other = end->other;
    if (end->is_started && !end->has_ended && !end->is_closed) {
        if (end->broken) {
            end->has_ended = true;
            end->stream.events->on_end(end->stream.arg, end->broken);
        } else if (waiting(end) > 0) {
            if (!end->is_paused) {
                if (other->is_finished) {
                    sw_defer_start(&end->deliver); /* the end comes next */
                }
                deliver_piece(end);
            }
        } else if (other->is_finished) {
            end->has_ended = true;
            end->stream.events->on_end(end->stream.arg, 0);
        }
    }
    drain(other);
}

static void reap(struct sw_defer *defer)
{
    struct pipe *pipe = container_of(defer, struct pipe, reap);
    for (int i = 0; i < 2; i++) {
        sw_defer_stop(&pipe->ends[i].deliver);
        sw_buf_done(&pipe->ends[i].in);
    }
    sw_free(pipe);
}

void sw_pipe_open(struct sw_loop *loop, size_t limit_bytes, size_t max_piece,
                  struct sw_stream **ret_a, struct sw_stream **ret_b)
{
    struct pipe *pipe = SW_NEW(struct pipe);
    pipe->max_piece = max_piece;
    sw_defer_init(&pipe->reap, loop, reap);
    for (int i = 0; i < 2; i++) {
        struct end *end = &pipe->ends[i];
        end->stream.ops = &end_ops;
        end->pipe = pipe;
        end->other = &pipe->ends[1 - i];
        sw_defer_init(&end->deliver, loop, deliver);
        sw_buf_init(&end->in, limit_bytes);
    }
    *ret_a = &pipe->ends[0].stream;
    *ret_b = &pipe->ends[1].stream;
}
