/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of RFC 8259. Plain parts of strings are passed 16 bytes at a time. */
#include "kube/scan.h"

#include <string.h>

#include "base/utf8.h"
#include "base/util.h"
#include "kube/scan_block.h"

void sw_scan_init(struct sw_scan *scan, const char *bytes, size_t len)
{
    sw_assert(len < UINT32_MAX);
    *scan = (struct sw_scan){.start = bytes, .at = bytes, .end = bytes + len};
}

bool sw_scan_fail(struct sw_scan *scan, const char *why)
{
    if (!scan->why) {
        scan->why = why;
    }
    return false;
}

static bool fail_token(struct sw_scan *scan, const char *why)
{
    return sw_scan_fail(scan, scan->at < scan->end ? why : "ends too early");
}

/* ---- strings ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Of the four digits behind \u; negative where they are not four. */
static int32_t hex4(const char *p, const char *end)
{
    int32_t value = 0;
    if (end - p < 4) {
        return -1;
    }
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(p[i]);
        if (digit < 0) {
            return -1;
        }
        value = value * 16 + digit;
    }
    return value;
}

static bool is_high_surrogate(int32_t unit)
{
    return unit >= 0xd800 && unit <= 0xdbff;
}

static bool is_low_surrogate(int32_t unit)
{
    return unit >= 0xdc00 && unit <= 0xdfff;
}

/* The code point behind the backslash at p, which is a \u; *ret_len: bytes with the backslash.
 * Negative: not a character. */
static int32_t escaped_point(const char *p, const char *end, size_t *ret_len)
{
    int32_t unit = hex4(p + 2, end);
    *ret_len = 6;
    if (is_low_surrogate(unit)) {
        return -1;
    }
    if (!is_high_surrogate(unit)) {
        return unit;
    }
    if (end - p < 12 || p[6] != '\\' || p[7] != 'u') {
        return -1;
    }
    int32_t low = hex4(p + 8, end);
    *ret_len = 12;
    return is_low_surrogate(low) ? 0x10000 + (unit - 0xd800) * 0x400 + (low - 0xdc00) : -1;
}

static size_t point_size(int32_t point)
{
    return point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
}

/* What the letter behind a backslash stands for; 0: nothing of one byte. */
static char escaped_char(char letter)
{
    switch (letter) {
    case '"':
    case '\\':
    case '/':
        return letter;
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return 0;
    }
}

/* The escape at p. Returns its length, and how many bytes it stands for; 0: it is none. */
static size_t check_escape(const char *p, const char *end, size_t *ret_size)
{
    if (end - p < 2) {
        return 0;
    }
    if (p[1] != 'u') {
        *ret_size = 1;
        return escaped_char(p[1]) ? 2 : 0;
    }
    size_t len;
    int32_t point = escaped_point(p, end, &len);
    if (point < 0) {
        return 0;
    }
    *ret_size = point_size(point);
    return len;
}

/* From p to the next byte that is not plain: a quote, a backslash, a control character or one
 * beyond ASCII; or to end. */
static const char *pass_plain(const char *p, const char *end)
{
    for (; end - p >= 16; p += 16) {
        uint32_t stop = sw_stop16_ascii(p);
        if (stop) {
            return p + __builtin_ctz(stop);
        }
    }
    while (p < end && (unsigned char)*p >= 0x20 && (unsigned char)*p < 0x80 && *p != '"' &&
           *p != '\\') {
        p++;
    }
    return p;
}

/* Passes the escape or the character beyond ASCII at p, and counts in *saved the bytes that
 * unescaping takes away. */
static const char *pass_special(struct sw_scan *scan, const char *p, uint32_t *saved)
{
    size_t step;
    if (*p == '\\') {
        size_t size = 0;
        step = check_escape(p, scan->end, &size);
        if (step == 0) {
            sw_scan_fail(scan, "bad escape in a string");
        }
        *saved += (uint32_t)(step - size);
    } else if ((unsigned char)*p < 0x20) {
        step = 0;
        sw_scan_fail(scan, "control character in a string");
    } else {
        step = sw_utf8_length(p, (size_t)(scan->end - p), NULL);
        if (step == 0) {
            sw_scan_fail(scan, "a string that is not UTF-8");
        }
    }
    scan->at = p;
    return step > 0 ? p + step : NULL;
}

bool sw_scan_string(struct sw_scan *scan, struct sw_text *ret_text)
{
    if (sw_scan_peek(scan) != '"') {
        return fail_token(scan, "expected a string");
    }
    const char *begin = scan->at + 1;
    const char *p = begin;
    uint32_t saved = 0;
    while ((p = pass_plain(p, scan->end)) < scan->end) {
        if (*p == '"') {
            *ret_text = (struct sw_text){begin, (uint32_t)(p - begin), (uint32_t)(p - begin)};
            ret_text->size -= saved;
            scan->at = p + 1;
            return true;
        }
        p = pass_special(scan, p, &saved);
        if (!p) {
            return false;
        }
    }
    scan->at = scan->end;
    return sw_scan_fail(scan, "ends within a string");
}

static char *put_point(char *to, int32_t point)
{
    if (point < 0x80) {
        *to++ = (char)point;
    } else if (point < 0x800) {
        *to++ = (char)(0xc0 | point >> 6);
        *to++ = (char)(0x80 | (point & 0x3f));
    } else if (point < 0x10000) {
        *to++ = (char)(0xe0 | point >> 12);
        *to++ = (char)(0x80 | (point >> 6 & 0x3f));
        *to++ = (char)(0x80 | (point & 0x3f));
    } else {
        *to++ = (char)(0xf0 | point >> 18);
        *to++ = (char)(0x80 | (point >> 12 & 0x3f));
        *to++ = (char)(0x80 | (point >> 6 & 0x3f));
        *to++ = (char)(0x80 | (point & 0x3f));
    }
    return to;
}

/* The text was checked when it was scanned. */
void sw_text_copy(const struct sw_text *text, char *to)
{
    if (text->size == text->len) {
        memcpy(to, text->at, text->len);
        return;
    }
    const char *end = text->at + text->len;
    for (const char *p = text->at; p < end;) {
        if (*p != '\\') {
            *to++ = *p++;
        } else if (p[1] != 'u') {
            *to++ = escaped_char(p[1]);
            p += 2;
        } else {
            size_t len;
            to = put_point(to, escaped_point(p, end, &len));
            p += len;
        }
    }
}

bool sw_text_has_nul(const struct sw_text *text)
{
    const char *end = text->at + text->len;
    if (text->size == text->len) {
        return false; /* a NUL byte itself is a control character */
    }
    for (const char *p = text->at; (p = memchr(p, '\\', (size_t)(end - p))); p += 2) {
        if (p[1] == 'u' && memcmp(p + 2, "0000", 4) == 0) {
            return true;
        }
    }
    return false;
}

bool sw_text_is(const struct sw_text *text, const char *what, size_t len)
{
    if (text->size == text->len) {
        return text->len == len && memcmp(text->at, what, len) == 0;
    }
    if (text->size != len) {
        return false;
    }
    char *plain = sw_malloc(len + 1); /* a key with escapes in it: nobody writes that */
    sw_text_copy(text, plain);
    bool is_equal = memcmp(plain, what, len) == 0;
    sw_free(plain);
    return is_equal;
}

/* ---- numbers and words ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *pass_digits(const char *p, const char *end)
{
    while (p < end && is_digit(*p)) {
        p++;
    }
    return p;
}

static const char *pass_fraction(const char *p, const char *end)
{
    if (p == end || *p != '.') {
        return p;
    }
    const char *digits = p + 1;
    p = pass_digits(digits, end);
    return p > digits ? p : NULL;
}

static const char *pass_exponent(const char *p, const char *end)
{
    if (p == end || (*p != 'e' && *p != 'E')) {
        return p;
    }
    p++;
    p += p < end && (*p == '+' || *p == '-');
    const char *digits = p;
    p = pass_digits(digits, end);
    return p > digits ? p : NULL;
}

/* The digits from p to end, negated where they say so. */
static bool integer_of(const char *p, const char *end, bool is_negative, int64_t *ret_integer)
{
    int64_t value = 0;
    for (; p < end; p++) {
        /* Downwards, because the negative range reaches one further. */
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, *p - '0', &value)) {
            return false;
        }
    }
    if (!is_negative && value == INT64_MIN) {
        return false;
    }
    *ret_integer = is_negative ? value : -value;
    return true;
}

bool sw_scan_number(struct sw_scan *scan, struct sw_number *ret_number)
{
    sw_scan_peek(scan);
    const char *end = scan->end;
    const char *digits = scan->at + (scan->at < end && *scan->at == '-');
    const char *whole = pass_digits(digits, end);
    if (whole == digits || (*digits == '0' && whole > digits + 1)) {
        return fail_token(scan, "not a number");
    }
    const char *p = pass_fraction(whole, end);
    p = p ? pass_exponent(p, end) : NULL;
    if (!p) {
        return sw_scan_fail(scan, "not a number");
    }
    *ret_number = (struct sw_number){.is_integer = p == whole};
    ret_number->is_in_range = ret_number->is_integer &&
                              integer_of(digits, whole, digits > scan->at, &ret_number->integer);
    scan->at = p;
    return true;
}

bool sw_scan_word(struct sw_scan *scan, const char *word)
{
    size_t len = strlen(word);
    sw_scan_peek(scan);
    if ((size_t)(scan->end - scan->at) < len || memcmp(scan->at, word, len) != 0) {
        return fail_token(scan, "not a value");
    }
    scan->at += len;
    return true;
}

/* ---- structure ---- */

bool sw_scan_enter(struct sw_scan *scan, char bracket)
{
    if (sw_scan_peek(scan) != bracket) {
        return fail_token(scan, bracket == '{' ? "expected an object" : "expected an array");
    }
    if (scan->depth == SW_JSON_DEPTH) {
        return sw_scan_fail(scan, "nested too deep");
    }
    scan->depth++;
    scan->at++;
    return true;
}

/* Behind the bracket or an item: to the next item, or out. */
static bool next_item(struct sw_scan *scan, bool *is_first, char closing)
{
    char c = sw_scan_peek(scan);
    if (c == closing) {
        scan->depth--;
        scan->at++;
        return false;
    }
    if (!*is_first) {
        if (c != ',') {
            return fail_token(scan, closing == '}' ? "expected , or }" : "expected , or ]");
        }
        scan->at++;
    }
    *is_first = false;
    return true;
}

bool sw_scan_next_member(struct sw_scan *scan, bool *is_first, struct sw_text *ret_key)
{
    if (!next_item(scan, is_first, '}')) {
        return false;
    }
    if (!sw_scan_string(scan, ret_key)) {
        return false;
    }
    if (sw_scan_peek(scan) != ':') {
        return fail_token(scan, "expected :");
    }
    scan->at++;
    return true;
}

bool sw_scan_next_element(struct sw_scan *scan, bool *is_first)
{
    return next_item(scan, is_first, ']');
}

/* ---- passing over ---- */

static bool pass_atom(struct sw_scan *scan, char first)
{
    struct sw_number number;
    switch (first) {
    case 't':
        return sw_scan_word(scan, "true");
    case 'f':
        return sw_scan_word(scan, "false");
    case 'n':
        return sw_scan_word(scan, "null");
    default:
        return sw_scan_number(scan, &number);
    }
}

static bool skip_within(struct sw_scan *scan, unsigned limit, uint8_t *kinds)
{
    struct sw_span span;
    sw_span_init(&span, limit, kinds);
    scan->at += sw_span_feed(&span, scan->at, (size_t)(scan->end - scan->at));
    sw_span_finish(&span);
    return span.state == SW_SPAN_DONE || sw_scan_fail(scan, span.why);
}

/* By itself, so that the stack is as large only where it is needed. */
static __attribute__((noinline)) bool skip_deep(struct sw_scan *scan)
{
    uint8_t kinds[SW_SPAN_DEPTH + 2];
    return skip_within(scan, SW_SPAN_DEPTH, kinds);
}

static bool skip_container(struct sw_scan *scan)
{
    uint8_t kinds[SW_JSON_DEPTH + 2];
    if (scan->skips_deep) {
        return skip_deep(scan);
    }
    return skip_within(scan, SW_JSON_DEPTH - scan->depth, kinds);
}

bool sw_scan_skip(struct sw_scan *scan)
{
    char first = sw_scan_peek(scan);
    if (first == '{' || first == '[') {
        return skip_container(scan);
    }
    if (first != '"') {
        return pass_atom(scan, first);
    }
    const char *why;
    size_t len = sw_span_string(scan->at + 1, (size_t)(scan->end - scan->at) - 1, &why);
    scan->at += len > 0 ? len + 1 : 0;
    return len > 0 || sw_scan_fail(scan, why);
}

bool sw_scan_value(struct sw_scan *scan)
{
    bool is_first = true;
    struct sw_text text;
    char first = sw_scan_peek(scan);
    switch (first) {
    case '"':
        return sw_scan_string(scan, &text);
    case '{':
        if (!sw_scan_enter(scan, '{')) {
            return false;
        }
        while (sw_scan_next_member(scan, &is_first, &text)) {
            if (!sw_scan_value(scan)) {
                return false;
            }
        }
        return !scan->why;
    case '[':
        if (!sw_scan_enter(scan, '[')) {
            return false;
        }
        while (sw_scan_next_element(scan, &is_first)) {
            if (!sw_scan_value(scan)) {
                return false;
            }
        }
        return !scan->why;
    default:
        return pass_atom(scan, first);
    }
}

bool sw_scan_end(struct sw_scan *scan)
{
    sw_scan_peek(scan);
    return scan->at == scan->end || sw_scan_fail(scan, "something follows the value");
}
