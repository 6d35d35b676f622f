/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 64 bytes are turned into masks (scan_block.h); what stands inside strings is masked out; what is
 * left of the brackets is walked bit by bit. The walk has no branch on what kind of bracket it is:
 * in managedFields they come in an order that no predictor learns.
 */
#include "kube/span.h"

#include <string.h>

#include "base/util.h"
#include "kube/scan_block.h"

static const char unclosed[] = "ends within a string";
static const char control[] = "control character in a string";

void sw_span_init(struct sw_span *span, unsigned limit, uint8_t *kinds)
{
    span->state = SW_SPAN_START;
    span->why = NULL;
    span->in_string = 0;
    span->is_escaped = 0;
    span->depth = 0;
    span->limit = limit;
    span->kinds = kinds;
}

static void spoil(struct sw_span *span, const char *why)
{
    span->state = SW_SPAN_BAD;
    span->why = why;
}

/* The bits 0 to n - 1. */
static uint64_t low_bits(size_t n)
{
    return n >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1;
}

/* Fewer than 64 bytes are left: the block is filled up with spaces, which mean nothing. */
static const char *block_at(const char *bytes, size_t len, char room[SW_BLOCK])
{
    if (len >= SW_BLOCK) {
        return bytes;
    }
    memset(room, ' ', SW_BLOCK);
    memcpy(room, bytes, len);
    return room;
}

/* The quotes of a block that no backslash escapes; n: how much of it is there. */
static inline uint64_t quotes(struct sw_span *span, const struct sw_block *block, size_t n)
{
    if (!(block->backslash | span->is_escaped)) {
        return block->quote;
    }
    uint64_t escaped = sw_block_escaped(block->backslash, &span->is_escaped);
    if (n < SW_BLOCK) {
        span->is_escaped = escaped >> n & 1;
    }
    return block->quote & ~escaped;
}

/* ---- containers ---- */

/* Walks the brackets of a block. Returns the bit at which the depth came to 0, or of the first
 * mistake (then the state is BAD); 0: neither. */
static uint64_t walk(struct sw_span *span, const struct sw_block *block, uint64_t brackets)
{
    unsigned depth = span->depth;
    const unsigned limit = span->limit;
    uint8_t *kinds = span->kinds;
    while (brackets) {
        uint64_t bit = brackets & (~brackets + 1);
        unsigned is_open = (block->open & bit) != 0;
        unsigned kind = (block->curly & bit) != 0;
        depth += is_open;
        unsigned expected = is_open ? kind : kinds[depth];
        kinds[depth] = (uint8_t)expected;
        depth -= !is_open;
        if (expected != kind) {
            spoil(span, "brackets do not match");
            return bit;
        }
        if (depth == 0) {
            span->state = SW_SPAN_DONE;
            return bit;
        }
        if (depth > limit) {
            spoil(span, "nested too deep");
            return bit;
        }
        brackets ^= bit;
    }
    span->depth = depth;
    return 0;
}

static size_t feed_container(struct sw_span *span, const char *bytes, size_t len)
{
    size_t at = 0;
    for (; at < len; at += SW_BLOCK) {
        char room[SW_BLOCK];
        struct sw_block block;
        size_t n = SW_MIN(len - at, (size_t)SW_BLOCK);
        sw_block_read(block_at(bytes + at, len - at, room), &block);
        uint64_t quote = quotes(span, &block, n);
        uint64_t inside = sw_block_parity(quote) ^ (UINT64_C(0) - span->in_string);
        uint64_t seen = low_bits(n);
        uint64_t last = walk(span, &block, (block.open | block.close) & ~inside);
        if (last) {
            seen &= last | (last - 1);
        }
        uint64_t in = block.control & inside & seen;
        uint64_t out = block.backslash & ~inside & seen;
        if (in | out) { /* before whatever the walk has found; the first counts */
            spoil(span,
                  (in | out) & (~(in | out) + 1) & in ? control : "backslash outside a string");
        }
        if (span->state != SW_SPAN_CONTAINER) {
            return at + (last ? (size_t)__builtin_ctzll(last) + (span->state == SW_SPAN_DONE) : 0);
        }
        span->in_string = inside >> (n - 1) & 1;
    }
    return len;
}

/* ---- strings ---- */

/* Returns the bytes up to and with the closing quote, or len where it has not come. */
static size_t feed_string(struct sw_span *span, const char *bytes, size_t len)
{
    for (size_t at = 0; at < len; at += SW_BLOCK) {
        char room[SW_BLOCK];
        struct sw_block block;
        size_t n = SW_MIN(len - at, (size_t)SW_BLOCK);
        sw_block_read(block_at(bytes + at, len - at, room), &block);
        uint64_t quote = quotes(span, &block, n);
        uint64_t before = quote ? (quote & (~quote + 1)) - 1 : low_bits(n);
        if (block.control & before & low_bits(n)) {
            spoil(span, control);
            return at;
        }
        if (quote) {
            span->state = SW_SPAN_DONE;
            return at + (size_t)__builtin_ctzll(quote) + 1;
        }
    }
    return len;
}

size_t sw_span_string(const char *bytes, size_t len, const char **ret_why)
{
    /* Most strings are short and plain. */
    size_t at = 0;
    for (; len - at >= 16; at += 16) {
        uint32_t stop = sw_stop16(bytes + at);
        if (stop) {
            at += (size_t)__builtin_ctz(stop);
            if (bytes[at] == '"') {
                return at + 1;
            }
            break;
        }
    }
    struct sw_span span = {.state = SW_SPAN_STRING};
    size_t used = feed_string(&span, bytes + at, len - at);
    if (span.state == SW_SPAN_DONE) {
        return at + used;
    }
    *ret_why = span.state == SW_SPAN_BAD ? span.why : unclosed;
    return 0;
}

/* ---- any value ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static void start(struct sw_span *span, char c)
{
    if (c == '{' || c == '[') {
        span->state = SW_SPAN_CONTAINER;
    } else if (c == '"') {
        span->state = SW_SPAN_STRING;
    } else if ((c >= '0' && c <= '9') || c == '-' || (c >= 'a' && c <= 'z')) {
        span->state = SW_SPAN_ATOM;
    } else {
        spoil(span, "no value");
    }
}

static size_t feed_atom(struct sw_span *span, const char *bytes, size_t len)
{
    for (size_t at = 0; at < len; at++) {
        if (is_space(bytes[at]) || memchr(",:]}[{\"", bytes[at], 7)) {
            span->state = SW_SPAN_DONE;
            return at;
        }
    }
    return len;
}

size_t sw_span_feed(struct sw_span *span, const char *bytes, size_t len)
{
    size_t at = 0;
    if (span->state == SW_SPAN_START) {
        while (at < len && is_space(bytes[at])) {
            at++;
        }
        if (at == len) {
            return len;
        }
        start(span, bytes[at]);
        at += span->state == SW_SPAN_STRING;
    }
    switch (span->state) {
    case SW_SPAN_CONTAINER:
        return at + feed_container(span, bytes + at, len - at);
    case SW_SPAN_STRING:
        return at + feed_string(span, bytes + at, len - at);
    case SW_SPAN_ATOM:
        return at + feed_atom(span, bytes + at, len - at);
    case SW_SPAN_START:
    case SW_SPAN_DONE:
    case SW_SPAN_BAD:
        break;
    }
    return at;
}

void sw_span_finish(struct sw_span *span)
{
    if (span->state == SW_SPAN_ATOM) {
        span->state = SW_SPAN_DONE;
    } else if (span->state != SW_SPAN_DONE && span->state != SW_SPAN_BAD) {
        spoil(span,
              span->in_string || span->state == SW_SPAN_STRING ? unclosed : "ends within a value");
    }
}
