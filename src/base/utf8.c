/* SPDX-License-Identifier: Apache-2.0 */
/* The table of well-formed byte sequences, RFC 3629 section 4: only the second byte's range depends
 * on the first. */
#include "base/utf8.h"

#include <stdint.h>

#include "base/buf.h"

size_t sw_utf8_length(const char *text, size_t len, size_t *ret_skip)
{
    const unsigned char *p = (const unsigned char *)text;
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    size_t want;
    if (p[0] < 0x80) {
        return 1;
    }
    if (p[0] >= 0xc2 && p[0] <= 0xdf) {
        want = 2;
    } else if (p[0] >= 0xe0 && p[0] <= 0xef) {
        want = 3;
        low = p[0] == 0xe0 ? 0xa0 : low;   /* else overlong */
        high = p[0] == 0xed ? 0x9f : high; /* else a surrogate */
    } else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
        want = 4;
        low = p[0] == 0xf0 ? 0x90 : low;   /* else overlong */
        high = p[0] == 0xf4 ? 0x8f : high; /* else beyond U+10FFFF */
    } else {
        want = 1; /* cannot begin a character */
    }
    size_t have = 1;
    while (have < want && have < len && p[have] >= low && p[have] <= high) {
        have++;
        low = 0x80;
        high = 0xbf;
    }
    if (want > 1 && have == want) {
        return want;
    }
    if (ret_skip) {
        *ret_skip = have;
    }
    return 0;
}

bool sw_utf8_is_valid(const char *text, size_t len)
{
    for (size_t at = 0; at < len;) {
        size_t step = sw_utf8_length(text + at, len - at, NULL);
        if (step == 0) {
            return false;
        }
        at += step;
    }
    return true;
}

char *sw_utf8_repair(const char *text, size_t len)
{
    if (sw_utf8_is_valid(text, len)) {
        return NULL;
    }
    struct sw_buf buf;
    sw_buf_init(&buf, SIZE_MAX);
    for (size_t at = 0; at < len;) {
        size_t skip = 0;
        size_t step = sw_utf8_length(text + at, len - at, &skip);
        if (step) {
            sw_buf_append(&buf, text + at, step);
            at += step;
        } else {
            sw_buf_puts(&buf, SW_UTF8_REPLACEMENT);
            at += skip;
        }
    }
    return sw_buf_steal(&buf);
}
