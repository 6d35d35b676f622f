/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One end of a connection in a test of streams: counts what it is told, checks what every stream
 * promises, and closes itself, twice, from the event it is asked to.
 */
#ifndef TESTS_UNIT_NET_SIDE_H
#define TESTS_UNIT_NET_SIDE_H

#include "base/buf.h"
#include "base/error.h"
#include "net/stream.h"
#include "test.h"

enum close_when {
    NEVER,
    ON_READY, /* of a handshake */
    ON_READ,
    ON_END,
    ON_DRAIN,
};

struct side {
    struct sw_stream *stream;
    struct sw_buf got;
    unsigned reads;
    unsigned drains;
    bool has_ended;
    int end_code;
    enum close_when close_when;
    /* with TLS */
    const char *name;
    struct sw_tls_handshake *handshake;
    unsigned ready_calls;
    bool is_idle; /* does not start its stream */
    struct sw_error error;
};

static void close_side(struct side *side)
{
    sw_stream_close(side->stream);
    sw_stream_close(side->stream);
    side->stream = NULL;
}

static void side_read(void *arg, const char *bytes, size_t len)
{
    struct side *side = arg;
    assert_non_null(side->stream);
    assert_false(side->has_ended);
    assert_true(len > 0);
    side->reads++;
    sw_buf_append(&side->got, bytes, len);
    if (side->close_when == ON_READ) {
        close_side(side);
    }
}

static void side_end(void *arg, int code)
{
    struct side *side = arg;
    assert_non_null(side->stream);
    assert_false(side->has_ended);
    side->has_ended = true;
    side->end_code = code;
    if (side->close_when == ON_END) {
        close_side(side);
    }
}

static void side_drain(void *arg)
{
    struct side *side = arg;
    assert_non_null(side->stream);
    assert_true(sw_stream_pending(side->stream) <= sw_stream_limit(side->stream) / 2);
    side->drains++;
    if (side->close_when == ON_DRAIN) {
        close_side(side);
    }
}

static const struct sw_stream_events side_events = {side_read, side_end, side_drain};

#endif
