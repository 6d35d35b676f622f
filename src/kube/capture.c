/* SPDX-License-Identifier: Apache-2.0 */
/* Of a value that is too large the beginning is kept: it says whose value it was. */
#include "kube/capture.h"

#include <stdint.h>

#include "base/util.h"

enum {
    KEPT_BEGINNING = 64 * 1024,
    KEPT_ROOM = 256 * 1024, /* of the buffer, from value to value */
};

void sw_capture_init(struct sw_capture *capture, bool is_secret)
{
    *capture = (struct sw_capture){0};
    sw_buf_init(&capture->buf, SIZE_MAX);
    capture->buf.is_secret = is_secret;
}

void sw_capture_done(struct sw_capture *capture)
{
    sw_buf_done(&capture->buf);
}

static void empty(struct sw_capture *capture)
{
    if (capture->buf.room > KEPT_ROOM) {
        sw_buf_done(&capture->buf);
    }
    sw_buf_clear(&capture->buf);
}

void sw_capture_begin(struct sw_capture *capture, size_t limit_bytes)
{
    sw_span_init(&capture->span, SW_SPAN_DEPTH, capture->kinds);
    empty(capture);
    capture->limit_bytes = limit_bytes;
    capture->seen_bytes = 0;
    capture->is_too_large = false;
}

static void append(struct sw_capture *capture, const char *bytes, size_t len)
{
    (void)sw_buf_append(&capture->buf, bytes, len); /* without a limit it cannot fail */
}

/* Keeps the beginning alone; the same whatever pieces the value comes in. */
static void keep_beginning(struct sw_capture *capture, const char *bytes, size_t len)
{
    if (capture->buf.len > KEPT_BEGINNING) {
        struct sw_buf large = capture->buf;
        sw_buf_init(&capture->buf, SIZE_MAX);
        capture->buf.is_secret = large.is_secret;
        append(capture, large.bytes, KEPT_BEGINNING);
        sw_buf_done(&large);
    }
    append(capture, bytes, SW_MIN(len, (size_t)KEPT_BEGINNING - capture->buf.len));
    capture->is_too_large = true;
}

size_t sw_capture_feed(struct sw_capture *capture, const char *bytes, size_t len,
                       const char **ret_value, size_t *ret_len)
{
    size_t used = sw_span_feed(&capture->span, bytes, len);
    bool is_done = capture->span.state == SW_SPAN_DONE;
    bool is_whole = is_done && capture->seen_bytes == 0;
    capture->seen_bytes += used;
    if (capture->limit_bytes > 0 && capture->seen_bytes > capture->limit_bytes) {
        keep_beginning(capture, bytes, used);
    } else if (capture->limit_bytes > 0 && !is_whole) {
        append(capture, bytes, used);
    }
    if (is_done) {
        bool is_there = is_whole && capture->limit_bytes > 0 && !capture->is_too_large;
        *ret_value = is_there ? bytes : capture->buf.bytes;
        *ret_len = is_there ? used : capture->buf.len;
    }
    return used;
}
