/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cursor over JSON text that is there as a whole. Its user says at each value what to do with it:
 * read it, go into it, or pass over it. It makes no copy and allocates nothing.
 *
 * Two ways of passing over a value: sw_scan_value checks all of RFC 8259 (and that strings are
 * UTF-8 and surrogates come in pairs), sw_scan_skip only what span.h says. Every function returns
 * false after a mistake in the text; then `why` says what is wrong and `at` is near to where.
 */
#ifndef SW_KUBE_SCAN_H
#define SW_KUBE_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kube/span.h"

struct sw_scan {
    const char *start;
    const char *at;
    const char *end;
    const char *why; /* a constant text; NULL while all is well */
    unsigned depth;  /* of what was entered and not left */
    bool skips_deep; /* what is skipped may be nested as deep as SW_SPAN_DEPTH */
    bool has_space;  /* white space between tokens was passed, but for what was skipped */
};

/* A string as it stands in the text, without its quotes. */
struct sw_text {
    const char *at;
    uint32_t len;
    uint32_t size; /* bytes when unescaped; equal to len without escapes */
};

struct sw_number {
    int64_t integer;
    bool is_integer; /* no fraction, no exponent */
    bool is_in_range;
};

/* len is below 4 GiB. */
void sw_scan_init(struct sw_scan *scan, const char *bytes, size_t len);
bool sw_scan_fail(struct sw_scan *scan, const char *why); /* the first counts; returns false */

/* The first byte of the next token; 0 at the end. */
static inline char sw_scan_peek(struct sw_scan *scan)
{
    while (scan->at < scan->end) {
        char c = *scan->at;
        if ((unsigned char)c > ' ' || (c != ' ' && c != '\n' && c != '\r' && c != '\t')) {
            return c;
        }
        scan->has_space = true;
        scan->at++;
    }
    return 0;
}

/* ---- structure ---- */

/* Objects and arrays: enter, then next until it says no; is_first is the caller's, true at first.
 *     bool is_first = true;
 *     if (!sw_scan_enter(s, '{')) ...
 *     while (sw_scan_next_member(s, &is_first, &key)) { ... exactly one value ... }
 *     if (s->why) ...
 */
bool sw_scan_enter(struct sw_scan *scan, char bracket);
bool sw_scan_next_member(struct sw_scan *scan, bool *is_first, struct sw_text *ret_key);
bool sw_scan_next_element(struct sw_scan *scan, bool *is_first);

/* ---- values ---- */

bool sw_scan_string(struct sw_scan *scan, struct sw_text *ret_text);
bool sw_scan_number(struct sw_scan *scan, struct sw_number *ret_number);
/* "true", "false", "null" */
bool sw_scan_word(struct sw_scan *scan, const char *word);
bool sw_scan_value(struct sw_scan *scan);
bool sw_scan_skip(struct sw_scan *scan);
/* Nothing but white space is left. */
bool sw_scan_end(struct sw_scan *scan);

/* Unescapes into size bytes; no NUL is added. A text that contains \u0000 has a NUL in it. */
void sw_text_copy(const struct sw_text *text, char *to);
bool sw_text_has_nul(const struct sw_text *text);
bool sw_text_is(const struct sw_text *text, const char *what, size_t len);

#endif
