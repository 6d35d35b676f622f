/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One JSON value out of bytes that come in pieces. A value that lies in one piece is not copied.
 * Private to the readers of lists and frames.
 */
#ifndef SW_KUBE_CAPTURE_H
#define SW_KUBE_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "kube/span.h"

struct sw_capture {
    struct sw_span span;
    uint8_t kinds[SW_SPAN_DEPTH + 2]; /* of the span */
    struct sw_buf buf;
    size_t limit_bytes;
    size_t seen_bytes;
    bool is_too_large; /* then only its beginning is there */
};

/* is_secret: what is kept of a value is overwritten before its memory is given back. */
void sw_capture_init(struct sw_capture *capture, bool is_secret);
void sw_capture_done(struct sw_capture *capture);
/* A new value. limit_bytes 0: it is not wanted, only passed. */
void sw_capture_begin(struct sw_capture *capture, size_t limit_bytes);
/* Returns how many bytes it took. capture->span.state says whether the value is DONE or BAD; DONE:
 * *ret_value is its text, borrowed until the next call and no longer than the bytes are. */
size_t sw_capture_feed(struct sw_capture *capture, const char *bytes, size_t len,
                       const char **ret_value, size_t *ret_len);

#endif
