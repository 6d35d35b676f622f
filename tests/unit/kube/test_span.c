/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks and spans against the obvious way of doing it, byte by byte. Built twice: with the
 * machine's own instructions, and portable.
 */
#include "test.h"

#include "base/util.h"
#include "documents.h"
#include "generate.h"
#include "kube/scan_block.h"
#include "kube/span.h"

/* ---- blocks ---- */

static uint64_t where(const char *bytes, bool (*is_it)(unsigned char c))
{
    uint64_t bits = 0;
    for (unsigned i = 0; i < 64; i++) {
        bits |= (uint64_t)is_it((unsigned char)bytes[i]) << i;
    }
    return bits;
}

static bool is_quote(unsigned char c)
{
    return c == '"';
}

static bool is_backslash(unsigned char c)
{
    return c == '\\';
}

static bool is_control(unsigned char c)
{
    return c < 0x20;
}

static bool is_open(unsigned char c)
{
    return c == '{' || c == '[';
}

static bool is_close(unsigned char c)
{
    return c == '}' || c == ']';
}

static bool is_curly(unsigned char c)
{
    return c == '{' || c == '}';
}

static bool is_stop(unsigned char c)
{
    return is_quote(c) || is_backslash(c) || is_control(c);
}

static bool is_stop_ascii(unsigned char c)
{
    return is_stop(c) || c >= 0x80;
}

static void check_block(const char *bytes)
{
    struct sw_block block;
    sw_block_read(bytes, &block);
    uint64_t brackets = block.open | block.close;
    assert_int_equal(block.quote, where(bytes, is_quote));
    assert_int_equal(block.backslash, where(bytes, is_backslash));
    assert_int_equal(block.control, where(bytes, is_control));
    assert_int_equal(block.open, where(bytes, is_open));
    assert_int_equal(block.close, where(bytes, is_close));
    assert_int_equal(block.curly & brackets, where(bytes, is_curly));
    assert_int_equal(sw_stop16(bytes), where(bytes, is_stop) & 0xffff);
    assert_int_equal(sw_stop16_ascii(bytes), where(bytes, is_stop_ascii) & 0xffff);
}

TEST(sees_every_byte_in_every_place)
{
    char bytes[64];
    for (int c = 0; c < 256; c++) {
        for (int at = 0; at < 64; at++) {
            memset(bytes, 'a', sizeof(bytes));
            bytes[at] = (char)c;
            check_block(bytes);
        }
        memset(bytes, c, sizeof(bytes));
        check_block(bytes);
    }
}

TEST(sees_random_bytes)
{
    struct chance chance = {1};
    char bytes[64];
    for (int round = 0; round < 20000; round++) {
        for (int i = 0; i < 64; i++) {
            bytes[i] =
                round % 2 ? (char)chance_next(&chance) : "{}[]\"\\\n a"[chance_below(&chance, 9)];
        }
        check_block(bytes);
    }
}

TEST(knows_which_bytes_are_escaped)
{
    struct chance chance = {2};
    uint64_t carry = 0;
    bool is_escaped = false;
    for (int round = 0; round < 20000; round++) {
        uint64_t backslash = chance_next(&chance);
        backslash |= round % 3 ? chance_next(&chance) : 0;
        uint64_t want = 0;
        for (unsigned i = 0; i < 64; i++) {
            want |= (uint64_t)is_escaped << i;
            is_escaped = !is_escaped && (backslash >> i & 1);
        }
        assert_int_equal(sw_block_escaped(backslash, &carry), want);
        assert_int_equal(carry, is_escaped);
    }
}

/* ---- spans ---- */

/* The obvious way. Returns the length of the container that text begins with, 0: it is none. */
static size_t slow_span(const char *text, size_t len, unsigned limit)
{
    char stack[300];
    unsigned depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (in_string) {
            if (is_control((unsigned char)c)) {
                return 0;
            }
            if (c == '\\') {
                if (i + 1 < len && is_control((unsigned char)text[i + 1])) {
                    return 0;
                }
                i++;
            } else if (c == '"') {
                in_string = false;
            }
        } else if (c == '"') {
            in_string = true;
        } else if (c == '\\') {
            return 0;
        } else if (is_open((unsigned char)c)) {
            if (depth == limit) {
                return 0;
            }
            stack[depth++] = c;
        } else if (is_close((unsigned char)c)) {
            if (stack[--depth] != (c == '}' ? '{' : '[')) {
                return 0;
            }
            if (depth == 0) {
                return i + 1;
            }
        }
    }
    return 0;
}

/* Fed in pieces of step bytes (0: first cut, then the rest). Returns the length, 0: none. */
static size_t span_of(const char *text, size_t len, unsigned limit, size_t step, size_t cut)
{
    struct sw_span span;
    uint8_t kinds[SW_JSON_DEPTH + 2];
    size_t at = 0;
    sw_span_init(&span, limit, kinds);
    while (at < len && span.state != SW_SPAN_DONE && span.state != SW_SPAN_BAD) {
        size_t end = step ? at + step : at < cut ? cut : len;
        end = end < len ? end : len;
        char *piece = exact_copy(text + at, end - at);
        size_t used = sw_span_feed(&span, piece, end - at);
        free(piece);
        assert_true(used <= end - at);
        assert_true(used == end - at || span.state == SW_SPAN_DONE || span.state == SW_SPAN_BAD);
        at += used;
    }
    sw_span_finish(&span);
    assert_true(span.state == SW_SPAN_DONE || span.state == SW_SPAN_BAD);
    assert_int_equal(span.state == SW_SPAN_BAD, span.why != NULL);
    return span.state == SW_SPAN_DONE ? at : 0;
}

static void check_span(const char *text, size_t len, unsigned limit)
{
    size_t want = slow_span(text, len, limit);
    assert_int_equal(span_of(text, len, limit, len, 0), want);
    for (size_t step = 1; step <= 70; step += step < 4 ? 1 : 31) {
        assert_int_equal(span_of(text, len, limit, step, 0), want);
    }
}

TEST(finds_the_end_of_documents_cut_anywhere)
{
    static const char *const names[] = {"deployment-applied.json", "deployment-helm.json",
                                        "deployment-new.json"};
    for (size_t n = 0; n < SW_ARRAY_SIZE(names); n++) {
        struct document document = document_read(names[n]);
        size_t want = document.len - 1; /* behind it is a newline */
        assert_int_equal(slow_span(document.text, document.len, 200), want);
        for (size_t cut = 0; cut <= document.len; cut++) {
            assert_int_equal(span_of(document.text, document.len, 200, 0, cut), want);
        }
        document_done(&document);
    }
}

TEST(does_not_find_the_end_of_a_part)
{
    struct document document = document_read("deployment-helm.json");
    for (size_t len = 0; len + 1 < document.len; len++) {
        assert_int_equal(span_of(document.text, len, 200, len ? len : 1, 0), 0);
    }
    document_done(&document);
}

TEST(agrees_with_the_obvious_way_on_random_bytes)
{
    static const char likely[] = "{}[]{}[]\"\"\"\\\\aaaa,:  \n";
    struct chance chance = {3};
    char text[300];
    for (int round = 0; round < 20000; round++) {
        size_t len = 1 + chance_below(&chance, sizeof(text));
        text[0] = chance_below(&chance, 2) ? '{' : '[';
        for (size_t i = 1; i < len; i++) {
            text[i] = likely[chance_below(&chance, sizeof(likely) - 1)];
        }
        check_span(text, len, 1 + chance_below(&chance, 200));
    }
}

TEST(agrees_with_the_obvious_way_on_balanced_text)
{
    struct chance chance = {4};
    char text[400];
    for (int round = 0; round < 20000; round++) {
        char stack[100];
        size_t depth = 0;
        size_t len = 0;
        do {
            unsigned dice = chance_below(&chance, 10);
            if (len < 200 && (depth == 0 || dice < 4)) {
                stack[depth++] = chance_below(&chance, 2) ? '{' : '[';
                text[len++] = stack[depth - 1];
            } else if (dice < 8) {
                text[len++] = stack[--depth] == '{' ? '}' : ']';
            } else {
                static const char *const strings[] = {"\"\"", "\"\\\\\"", "\"]\\\"}\"",
                                                      "\"\\\"[{\""};
                const char *string = strings[chance_below(&chance, 4)];
                memcpy(text + len, string, strlen(string));
                len += strlen(string);
            }
        } while (depth > 0 && depth < 90 && len < 380);
        if (depth == 0) {
            assert_int_equal(slow_span(text, len, 200), len);
        }
        check_span(text, len, 200);
    }
}

TEST(counts_the_depth)
{
    char text[402];
    memset(text, '[', 201);
    memset(text + 201, ']', 201);
    assert_int_equal(span_of(text + 1, 400, 200, 400, 0), 400);
    assert_int_equal(span_of(text, 402, 200, 402, 0), 0);
    assert_int_equal(span_of("[]", 2, 1, 2, 0), 2);
    assert_int_equal(span_of("[]", 2, 0, 2, 0), 0);
    assert_int_equal(span_of("[[]]", 4, 1, 4, 0), 0);
}

TEST(knows_other_values)
{
    assert_int_equal(span_of("\"a\\\"b\" ", 7, 0, 1, 0), 6);
    assert_int_equal(span_of("  12,", 5, 0, 1, 0), 4);
    assert_int_equal(span_of("true", 4, 0, 4, 0), 4);
    assert_int_equal(span_of("-1e5]", 5, 0, 2, 0), 4);
    assert_int_equal(span_of("<html>", 6, 0, 6, 0), 0);
    assert_int_equal(span_of("\"a\nb\"", 5, 0, 1, 0), 0);
    assert_int_equal(span_of("\"ab", 3, 0, 1, 0), 0);
    assert_int_equal(span_of("   ", 3, 0, 1, 0), 0);
}

TEST(finds_the_end_of_a_string)
{
    char text[200];
    const char *why;
    for (size_t len = 0; len < 150; len++) {
        memset(text, 'x', sizeof(text));
        text[len] = '"';
        char *copy = exact_copy(text, len + 1);
        assert_int_equal(sw_span_string(copy, len + 1, &why), len + 1);
        assert_int_equal(sw_span_string(copy, len, &why), 0);
        assert_string_equal(why, "ends within a string");
        for (size_t at = 0; at < len; at++) {
            copy[at] = '\n';
            assert_int_equal(sw_span_string(copy, len + 1, &why), 0);
            assert_string_equal(why, "control character in a string");
            copy[at] = '\\';
            assert_int_equal(sw_span_string(copy, len + 1, &why), at + 1 == len ? 0 : len + 1);
            copy[at] = 'x';
        }
        free(copy);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("block", sees_every_byte_in_every_place),
        CASE("block", sees_random_bytes),
        CASE("block", knows_which_bytes_are_escaped),
        CASE("span", finds_the_end_of_documents_cut_anywhere),
        CASE("span", does_not_find_the_end_of_a_part),
        CASE("span", agrees_with_the_obvious_way_on_random_bytes),
        CASE("span", agrees_with_the_obvious_way_on_balanced_text),
        CASE("span", counts_the_depth),
        CASE("span", knows_other_values),
        CASE("span", finds_the_end_of_a_string),
    };
    return RUN(tests);
}
