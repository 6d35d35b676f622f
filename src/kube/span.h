/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where does a JSON value end? Answered from its structure alone, in pieces of any size, at several
 * bytes a nanosecond: brackets must match, strings must be closed and hold no control character,
 * nothing may be nested deeper than the limit. What stands between brackets and strings is not
 * looked at, nor are escapes, numbers and UTF-8: that is left to whoever reads the value.
 */
#ifndef SW_KUBE_SPAN_H
#define SW_KUBE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of all that is read here. Kubernetes' own objects stay below 20; a CRD's schema reaches 50. */
enum { SW_JSON_DEPTH = 200 };
/* How deep brackets are matched to find where a value ends: as deep as the API server's own
 * decoders go (10 000, as Go's encoding/json), and what stands around an object. So one that is
 * nested deeper than SW_JSON_DEPTH is bad alone, and the list or the stream goes on behind it. */
enum { SW_SPAN_DEPTH = 10000 + 2 };

enum sw_span_state {
    SW_SPAN_START, /* before the value: white space */
    SW_SPAN_CONTAINER,
    SW_SPAN_STRING,
    SW_SPAN_ATOM, /* a number or a word: ends before a bracket, a comma, a colon, white space */
    SW_SPAN_DONE,
    SW_SPAN_BAD,
};

struct sw_span {
    enum sw_span_state state;
    const char *why; /* BAD: a constant text */
    uint64_t in_string;
    uint64_t is_escaped; /* the next byte is */
    unsigned depth;
    unsigned limit;
    uint8_t *kinds; /* by depth from 1: 1 a brace, 0 a bracket */
};

/* limit: how deep the value may be nested. kinds: room for limit + 2, borrowed as long as the span
 * is fed. */
void sw_span_init(struct sw_span *span, unsigned limit, uint8_t *kinds);
/* Returns how many of the bytes belong to the value or stand before it. Less than len only with
 * DONE or BAD. An atom is DONE when the byte behind it is there, or by sw_span_finish. */
size_t sw_span_feed(struct sw_span *span, const char *bytes, size_t len);
/* There will be no more bytes: a started atom is DONE, anything else unfinished is BAD. */
void sw_span_finish(struct sw_span *span);

/* Of a string's bytes behind the opening quote: how many there are with the closing one, or 0 where
 * it does not come (*ret_why says what came instead). */
size_t sw_span_string(const char *bytes, size_t len, const char **ret_why);

#endif
