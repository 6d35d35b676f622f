/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions through which every kind of stream is used. They only pass the call on; what a call
 * means is written in the header and kept by each kind (tcp.c, tls.c, pipe.c).
 */
#include "net/stream.h"

#include "base/util.h"

void sw_stream_start(struct sw_stream *stream, const struct sw_stream_events *events, void *arg)
{
    sw_assert(!stream->events && events->on_read && events->on_end);
    sw_stream_set_events(stream, events, arg);
    stream->ops->start(stream);
}

void sw_stream_set_events(struct sw_stream *stream, const struct sw_stream_events *events,
                          void *arg)
{
    stream->events = events;
    stream->arg = arg;
}

int sw_stream_write(struct sw_stream *stream, const void *bytes, size_t len)
{
    return stream->ops->write(stream, bytes, len);
}

size_t sw_stream_pending(const struct sw_stream *stream)
{
    return stream->ops->pending(stream);
}

size_t sw_stream_limit(const struct sw_stream *stream)
{
    return stream->ops->limit(stream);
}

void sw_stream_ask_drain(struct sw_stream *stream)
{
    stream->ops->ask_drain(stream);
}

void sw_stream_set_reading(struct sw_stream *stream, bool is_on)
{
    stream->ops->set_reading(stream, is_on);
}

void sw_stream_finish(struct sw_stream *stream)
{
    stream->ops->finish(stream);
}

void sw_stream_close(struct sw_stream *stream)
{
    if (stream) {
        stream->ops->close(stream, false);
    }
}

void sw_stream_reset(struct sw_stream *stream)
{
    if (stream) {
        stream->ops->close(stream, true);
    }
}

const char *sw_stream_peer(const struct sw_stream *stream)
{
    return stream->ops->peer(stream);
}
