/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heads and chunks through the HTTP parser. The first byte says what is read ('q': requests, 's':
 * responses, 'h': a response to HEAD; in capitals with small limits), the second how it is cut. Fed
 * whole, byte by byte, in pieces, and in pieces with pauses, the same must come of it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"
#include "fuzz.h"
#include "net/http.h"

struct recorder {
    struct sw_http_parser *parser;
    struct sw_buf text;
    bool pauses;
    bool was_paused;
    bool is_in_body;
};

static void pause_maybe(struct recorder *r)
{
    r->was_paused = r->pauses;
    if (r->pauses) {
        sw_http_parser_pause(r->parser);
    }
}

static int on_head(void *arg, const struct sw_http_head *head)
{
    struct recorder *r = arg;
    sw_buf_printf(&r->text, "\n%s %s %d %d%d%d%d %lld", head->method ? head->method : "",
                  head->target ? head->target : "", head->status, head->keeps_alive, head->has_body,
                  head->is_http10, head->expects_continue, (long long)head->content_length);
    for (size_t i = 0; i < head->fields.count; i++) {
        const struct sw_http_field *field = &head->fields.at[i];
        sw_assert(sw_http_is_token(field->name));
        sw_assert(sw_http_is_field_value(field->value));
        sw_buf_printf(&r->text, "\n%s: %s", field->name, field->value);
    }
    r->is_in_body = false;
    pause_maybe(r);
    return 0;
}

static int on_body(void *arg, const char *bytes, size_t len)
{
    struct recorder *r = arg;
    sw_assert(len > 0);
    sw_buf_puts(&r->text, r->is_in_body ? "" : "\n\n");
    r->is_in_body = true;
    sw_buf_append(&r->text, bytes, len);
    pause_maybe(r);
    return 0;
}

static int on_message_end(void *arg)
{
    struct recorder *r = arg;
    sw_buf_puts(&r->text, "\nend");
    pause_maybe(r);
    return 0;
}

static const struct sw_http_parser_events events = {on_head, on_body, on_message_end};

static int feed(struct recorder *r, const char *bytes, size_t len)
{
    /* Its own memory: a look beyond the piece, or at one fed before, is seen. */
    char *piece = sw_malloc(len + (len == 0));
    memcpy(piece, bytes, len);
    size_t used = 0;
    int rc;
    do {
        size_t n;
        r->was_paused = false;
        sw_http_parser_resume(r->parser);
        rc = sw_http_parser_feed(r->parser, piece + used, len - used, &n);
        used += n;
        sw_assert(used <= len);
    } while (rc == 0 && r->was_paused);
    sw_assert(rc != 0 || used == len);
    sw_http_parser_resume(r->parser);
    sw_free(piece);
    return rc;
}

/* max_piece: each piece has from 1 to so many bytes, by cuts. */
static struct sw_buf read_all(uint8_t what, const char *bytes, size_t len, size_t max_piece,
                              unsigned cuts, bool pauses)
{
    static const struct sw_http_limits small = {
        .head_bytes = 100, .field_count = 4, .body_bytes = 20};
    struct recorder r = {.pauses = pauses};
    size_t at = 0;
    int rc = 0;
    bool has_small_limits = what < 'a';
    what |= 0x20;
    sw_buf_init(&r.text, SIZE_MAX);
    r.parser = sw_http_parser_new(what == 'q' ? SW_HTTP_REQUESTS : SW_HTTP_RESPONSES,
                                  has_small_limits ? &small : NULL, &events, &r);
    if (what == 'h') {
        sw_http_parser_expect(r.parser, true, 0);
    }
    while (rc == 0 && at < len) {
        cuts = cuts * 1103515245 + 12345;
        size_t n = SW_MIN(1 + (cuts >> 16) % max_piece, len - at);
        rc = feed(&r, bytes + at, n);
        at += n;
    }
    if (rc == 0) {
        rc = sw_http_parser_finish(r.parser);
    } else {
        sw_assert(sw_http_parser_feed(r.parser, "x", 1, NULL) == rc);
        sw_assert(sw_http_parser_finish(r.parser) == rc);
    }
    sw_buf_printf(&r.text, "\n%d %d %s", rc, sw_http_parser_refusal(r.parser),
                  sw_http_parser_why(r.parser));
    sw_assert(rc == 0 || rc == SW_E_PROTOCOL || rc == SW_E_TOO_LARGE || rc == SW_E_TRUNCATED);
    sw_http_parser_free(r.parser);
    return r.text;
}

static void compare(const struct sw_buf *want, struct sw_buf got, const char *how)
{
    if (want->len != got.len || memcmp(want->bytes, got.bytes, got.len) != 0) {
        fprintf(stderr, "---- whole:\n%s\n---- %s:\n%s\n", want->bytes, how, got.bytes);
        abort();
    }
    sw_buf_done(&got);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    if (len < 2 || !strchr("qshQSH", bytes[0]) || bytes[0] == '\0') {
        return 0;
    }
    uint8_t what = bytes[0];
    unsigned cuts = bytes[1];
    const char *text = (const char *)bytes + 2;
    len -= 2;
    struct sw_buf whole = read_all(what, text, len, 1, cuts, false);
    compare(&whole, read_all(what, text, len, 7, cuts, false), "in small pieces");
    compare(&whole, read_all(what, text, len, 90, cuts, true), "in pieces with pauses");
    compare(&whole, read_all(what, text, len, SIZE_MAX, cuts, true), "whole with pauses");
    sw_buf_done(&whole);
    return 0;
}
