/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The incremental HTTP/1.1 parser: llhttp for the grammar, and around it what llhttp leaves to its
 * caller: one buffer for the head, limits, and the checks on which both ends of a connection must
 * agree, or a message is smuggled past one of them (RFC 9112 section 11.2).
 *
 * llhttp gets the head and the trailers line by line, everything else as it comes. So the places
 * where a line begins and ends are known here, and the rules of lines that versions of llhttp treat
 * differently (folding, a line feed without a carriage return) are decided here. It also stops
 * llhttp at each change between the two ways of feeding, wherever the bytes were cut.
 *
 *     phase         fed       ends with
 *     START_LINE    by line   the first line that is not empty
 *     FIELDS        by line   the empty line: on_head
 *     BODY          freely    the last byte (on_message_end), or the chunk of size 0
 *     TRAILERS      by line   the empty line: on_message_end
 */
#include "net/http.h"

#include <llhttp.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"

#define HEAD_BYTES_DEFAULT ((size_t)64 * 1024)
#define FIELD_COUNT_DEFAULT 100
/* An ordinary head has about 500 bytes and 10 fields; what was needed for more is given back. */
#define HEAD_BYTES_KEPT 4096
#define FIELD_COUNT_KEPT 32

enum phase {
    START_LINE,
    FIELDS,
    BODY,
    TRAILERS,
};

struct sw_http_parser {
    llhttp_t llhttp;
    enum sw_http_role role;
    struct sw_http_limits limits;
    const struct sw_http_parser_events *events;
    void *arg;

    enum phase phase;
    struct sw_buf text;           /* target, then name and value of each field; NUL after each */
    struct sw_http_field *fields; /* point into text once it is complete */
    size_t field_count;
    size_t field_room;
    size_t line_bytes;    /* of this phase, as received; for the limit */
    size_t line_len;      /* of this line so far */
    char tail[10];        /* the last bytes of this line */
    size_t extension_len; /* of this chunk */
    uint64_t body_len;
    uint64_t body_limit;
    bool expects_head_answer;
    bool is_in_message; /* llhttp would not know while it is stopped at an end */
    bool is_swallowed;  /* a 1xx response */
    bool is_paused;
    bool is_stopped; /* llhttp was, and may have an event to tell without a further byte */

    int failed;
    int refusal;
    const char *why;
};

static const llhttp_settings_t settings;

struct sw_http_parser *sw_http_parser_new(enum sw_http_role role,
                                          const struct sw_http_limits *limits,
                                          const struct sw_http_parser_events *events, void *arg)
{
    struct sw_http_parser *p = SW_NEW(struct sw_http_parser);

    p->role = role;
    if (limits) {
        p->limits = *limits;
    }
    if (p->limits.head_bytes == 0) {
        p->limits.head_bytes = HEAD_BYTES_DEFAULT;
    }
    if (p->limits.field_count == 0) {
        p->limits.field_count = FIELD_COUNT_DEFAULT;
    }
    p->body_limit = p->limits.body_bytes;
    p->events = events;
    p->arg = arg;
    p->why = "";
    /* llhttp adds nothing to what was received; what we add is one NUL a string. */
    sw_buf_init(&p->text, p->limits.head_bytes + 2 * p->limits.field_count + 2);
    llhttp_init(&p->llhttp, role == SW_HTTP_REQUESTS ? HTTP_REQUEST : HTTP_RESPONSE, &settings);
    p->llhttp.data = p;
    return p;
}

struct sw_http_parser *sw_http_parser_free(struct sw_http_parser *p)
{
    if (!p) {
        return NULL;
    }
    sw_buf_done(&p->text);
    sw_free(p->fields);
    return sw_free(p);
}

void sw_http_parser_expect(struct sw_http_parser *p, bool is_head, uint64_t body_bytes)
{
    p->expects_head_answer = is_head;
    p->body_limit = body_bytes;
}

void sw_http_parser_pause(struct sw_http_parser *p)
{
    p->is_paused = true;
}

void sw_http_parser_resume(struct sw_http_parser *p)
{
    p->is_paused = false;
}

const char *sw_http_parser_why(const struct sw_http_parser *p)
{
    return p->why;
}

int sw_http_parser_refusal(const struct sw_http_parser *p)
{
    return p->refusal;
}

void sw_http_parser_trim(struct sw_http_parser *p)
{
    sw_assert(p->phase == START_LINE);
    if (p->text.room > HEAD_BYTES_KEPT) {
        sw_buf_done(&p->text);
        sw_buf_init(&p->text, p->limits.head_bytes + 2 * p->limits.field_count + 2);
    }
    if (p->field_room > FIELD_COUNT_KEPT) {
        p->fields = sw_free(p->fields);
        p->field_room = 0;
        p->field_count = 0;
    }
}

static int fail(struct sw_http_parser *p, int code, int refusal, const char *why)
{
    if (p->failed == 0) {
        p->failed = code;
        p->refusal = refusal;
        p->why = why;
    }
    return p->failed;
}

static int fail_malformed(struct sw_http_parser *p, const char *why)
{
    return fail(p, SW_E_PROTOCOL, 400, why);
}

/* ---- what llhttp calls; a return of -1 stops it, and p->failed says why ---- */

/* Bytes of a trailer are checked by llhttp and dropped. */
static int add_text(struct sw_http_parser *p, const char *bytes, size_t len)
{
    if (p->phase == TRAILERS) {
        return 0;
    }
    if (sw_buf_append(&p->text, bytes, len) < 0) {
        fail(p, SW_E_TOO_LARGE, 431, "head too large");
        return -1;
    }
    return 0;
}

static int on_message_begin(llhttp_t *llhttp)
{
    struct sw_http_parser *p = llhttp->data;

    sw_buf_clear(&p->text);
    p->field_count = 0;
    p->is_in_message = true;
    return 0;
}

static int on_text(llhttp_t *llhttp, const char *bytes, size_t len)
{
    return add_text(llhttp->data, bytes, len);
}

static int on_text_end(llhttp_t *llhttp)
{
    return add_text(llhttp->data, "", 1);
}

static int on_name_end(llhttp_t *llhttp)
{
    struct sw_http_parser *p = llhttp->data;

    if (p->phase == TRAILERS) {
        return 0;
    }
    /* The value of the field before, or the target, has just ended. */
    if (p->text.len == 0 || p->text.bytes[p->text.len - 1] == '\0') {
        fail_malformed(p, "header field without a name");
        return -1;
    }
    if (p->field_count == p->limits.field_count) {
        fail(p, SW_E_TOO_LARGE, 431, "too many header fields");
        return -1;
    }
    p->field_count++;
    return add_text(p, "", 1);
}

static int on_value_end(llhttp_t *llhttp)
{
    struct sw_http_parser *p = llhttp->data;

    if (p->phase == TRAILERS) {
        return 0;
    }
    while (p->text.len > 0 &&
           (p->text.bytes[p->text.len - 1] == ' ' || p->text.bytes[p->text.len - 1] == '\t')) {
        p->text.len--;
    }
    return add_text(p, "", 1);
}

/* The strings of the buffer, one after the other, become the target and the fields. */
static const char *bind_text(struct sw_http_parser *p)
{
    const char *at = p->text.bytes;
    const char *target = NULL;

    if (p->role == SW_HTTP_REQUESTS) {
        target = at;
        at += strlen(at) + 1;
    }
    if (p->field_count > p->field_room) {
        p->field_room = SW_MIN(p->field_count + 8, p->limits.field_count);
        p->fields = sw_realloc(p->fields, p->field_room, sizeof(*p->fields));
    }
    for (size_t i = 0; i < p->field_count; i++) {
        p->fields[i].name = at;
        at += strlen(at) + 1;
        p->fields[i].value = at;
        at += strlen(at) + 1;
    }
    return target;
}

/* What the fields say about framing, and what must not be said twice. */
struct framing {
    unsigned hosts;
    unsigned lengths;
    unsigned codings;
    bool is_chunked;
    bool expects_continue;
};

static void look_at_field(const struct sw_http_field *field, struct framing *framing)
{
    switch (strlen(field->name)) {
    case 4:
        framing->hosts += strcasecmp(field->name, "host") == 0;
        break;
    case 6:
        if (strcasecmp(field->name, "expect") == 0) {
            framing->expects_continue |= strcasecmp(field->value, "100-continue") == 0;
        }
        break;
    case 14:
        framing->lengths += strcasecmp(field->name, "content-length") == 0;
        break;
    case 17:
        if (strcasecmp(field->name, "transfer-encoding") == 0) {
            framing->codings++;
            framing->is_chunked = strcasecmp(field->value, "chunked") == 0;
        }
        break;
    default:
        break;
    }
}

/* RFC 9112 sections 2.3, 3.2, 6.1 and 6.3. Some of it llhttp has checked already. */
static int check_head(struct sw_http_parser *p, const struct framing *framing)
{
    const llhttp_t *llhttp = &p->llhttp;

    if (llhttp->http_major != 1 || llhttp->http_minor > 1) {
        return fail(p, SW_E_PROTOCOL, 505, "HTTP version other than 1.0 and 1.1");
    }
    if (framing->lengths > 1) {
        return fail_malformed(p, "Content-Length twice");
    }
    if (framing->lengths > 0 && framing->codings > 0) {
        return fail_malformed(p, "Content-Length and Transfer-Encoding together");
    }
    if (framing->codings > 0 && llhttp->http_minor == 0) {
        return fail_malformed(p, "Transfer-Encoding with HTTP/1.0");
    }
    if (framing->codings > 0 && (framing->codings > 1 || !framing->is_chunked)) {
        return fail(p, SW_E_PROTOCOL, 501, "transfer coding other than chunked");
    }
    if (framing->lengths > 0 && llhttp->content_length > INT64_MAX) {
        return fail_malformed(p, "Content-Length out of range");
    }
    if (p->role == SW_HTTP_REQUESTS) {
        if (framing->hosts > 1 || (framing->hosts == 0 && llhttp->http_minor == 1)) {
            return fail_malformed(p, "not exactly one Host field");
        }
    } else {
        if (llhttp->status_code < 100) {
            return fail_malformed(p, "status code out of range");
        }
        if (llhttp->status_code == 101) {
            return fail_malformed(p, "switch of protocols that was not asked for");
        }
    }
    return 0;
}

static bool has_body(const struct sw_http_parser *p, const struct framing *framing)
{
    if (p->role == SW_HTTP_REQUESTS) {
        return framing->codings > 0 || (framing->lengths > 0 && p->llhttp.content_length > 0);
    }
    return !p->expects_head_answer && p->llhttp.status_code / 100 != 1 &&
           p->llhttp.status_code != 204 && p->llhttp.status_code != 304;
}

static int on_headers_complete(llhttp_t *llhttp)
{
    struct sw_http_parser *p = llhttp->data;
    struct framing framing = {0};
    struct sw_http_head head = {.target = bind_text(p)};

    for (size_t i = 0; i < p->field_count; i++) {
        look_at_field(&p->fields[i], &framing);
    }
    if (check_head(p, &framing) < 0) {
        return -1;
    }

    head.is_http10 = llhttp->http_minor == 0;
    head.fields = (struct sw_http_fields){p->fields, p->field_count};
    head.has_body = has_body(p, &framing);
    head.content_length = framing.lengths > 0 ? (int64_t)llhttp->content_length : -1;
    bool until_end = p->role == SW_HTTP_RESPONSES && head.has_body && framing.lengths == 0 &&
                     framing.codings == 0;
    head.keeps_alive =
        llhttp->http_minor == 1 && !(llhttp->flags & F_CONNECTION_CLOSE) && !until_end;
    if (p->role == SW_HTTP_REQUESTS) {
        head.method = llhttp_method_name((llhttp_method_t)llhttp->method);
        head.expects_continue = framing.expects_continue && llhttp->http_minor == 1;
    } else {
        head.status = llhttp->status_code;
    }
    if (head.has_body && p->body_limit > 0 && head.content_length > 0 &&
        (uint64_t)head.content_length > p->body_limit) {
        fail(p, SW_E_TOO_LARGE, 413, "body too large");
        return -1;
    }

    /* We do not switch protocols: an offer to do so is ignored, and CONNECT is a method like any
     * other. F_SKIPBODY is what a return of 1 would set, but that one would hide the pause. */
    llhttp->upgrade = 0;
    if (!head.has_body) {
        llhttp->flags |= F_SKIPBODY;
    }
    p->phase = BODY;
    p->is_swallowed = p->role == SW_HTTP_RESPONSES && head.status / 100 == 1;
    if (p->is_swallowed || !p->events->on_head) {
        return 0;
    }
    int rc = p->events->on_head(p->arg, &head);
    if (rc != 0) {
        fail(p, rc, 500, "stopped by its user");
        return -1;
    }
    return p->is_paused ? HPE_PAUSED : 0;
}

static int on_body(llhttp_t *llhttp, const char *bytes, size_t len)
{
    struct sw_http_parser *p = llhttp->data;
    /* As much as is allowed is handed on, so that it is the same for any cutting. */
    uint64_t room = p->body_limit > 0 ? p->body_limit - p->body_len : UINT64_MAX;
    size_t taken = (size_t)SW_MIN((uint64_t)len, room);
    int rc = 0;

    p->body_len += taken;
    if (taken > 0 && p->events->on_body) {
        rc = p->events->on_body(p->arg, bytes, taken);
    }
    if (rc != 0) {
        fail(p, rc, 500, "stopped by its user");
        return -1;
    }
    if (taken < len) {
        fail(p, SW_E_TOO_LARGE, 413, "body too large");
        return -1;
    }
    return p->is_paused ? HPE_PAUSED : 0;
}

/* Nobody reads extensions; without a limit one chunk could go on for ever. */
static int on_chunk_extension(llhttp_t *llhttp, const char *bytes, size_t len)
{
    struct sw_http_parser *p = llhttp->data;

    (void)bytes;
    p->extension_len += len;
    if (p->extension_len > p->limits.head_bytes) {
        fail(p, SW_E_TOO_LARGE, 413, "chunk extension too large");
        return -1;
    }
    return 0;
}

static int on_chunk_header(llhttp_t *llhttp)
{
    struct sw_http_parser *p = llhttp->data;

    p->extension_len = 0;
    if (llhttp->content_length > 0) {
        return 0;
    }
    p->phase = TRAILERS;
    p->line_bytes = 0;
    p->line_len = 0;
    return HPE_PAUSED;
}

static int on_message_complete(llhttp_t *llhttp)
{
    struct sw_http_parser *p = llhttp->data;
    bool was_swallowed = p->is_swallowed;

    p->phase = START_LINE;
    p->line_bytes = 0;
    p->line_len = 0;
    p->body_len = 0;
    p->is_in_message = false;
    p->is_swallowed = false;
    if (!was_swallowed) {
        p->expects_head_answer = false;
    }
    if (was_swallowed || !p->events->on_message_end) {
        return HPE_PAUSED;
    }
    int rc = p->events->on_message_end(p->arg);
    if (rc != 0) {
        fail(p, rc, 500, "stopped by its user");
        return -1;
    }
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_message_begin = on_message_begin,
    .on_url = on_text,
    .on_url_complete = on_text_end,
    .on_header_field = on_text,
    .on_header_field_complete = on_name_end,
    .on_header_value = on_text,
    .on_header_value_complete = on_value_end,
    .on_headers_complete = on_headers_complete,
    .on_body = on_body,
    .on_chunk_header = on_chunk_header,
    .on_chunk_extension_name = on_chunk_extension,
    .on_chunk_extension_value = on_chunk_extension,
    .on_message_complete = on_message_complete,
};

/* ---- feeding ---- */

/* HPE_PAUSED is our own request to look at the phase again; it goes no further. */
static int feed_llhttp(struct sw_http_parser *p, const char *bytes, size_t len, size_t *ret_used)
{
    llhttp_errno_t error = llhttp_execute(&p->llhttp, bytes, len);
    const char *why;

    switch (error) {
    case HPE_OK:
        *ret_used = len;
        return 0;
    case HPE_PAUSED:
        *ret_used = (size_t)(llhttp_get_error_pos(&p->llhttp) - bytes);
        llhttp_resume(&p->llhttp);
        p->is_stopped = p->is_paused;
        return 0;
    case HPE_INVALID_VERSION:
    case HPE_PAUSED_H2_UPGRADE:
        return fail(p, SW_E_PROTOCOL, 505, "HTTP version other than 1.0 and 1.1");
    case HPE_INVALID_TRANSFER_ENCODING:
        if (p->llhttp.flags & F_CONTENT_LENGTH) { /* llhttp 9 names the two together so, too */
            return fail_malformed(p, "Content-Length and Transfer-Encoding together");
        }
        return fail(p, SW_E_PROTOCOL, 501, "transfer coding other than chunked");
    default:
        /* One of our own callbacks has said why already. */
        why = llhttp_get_error_reason(&p->llhttp);
        return fail_malformed(p, why ? why : "malformed");
    }
}

/* Feeds what comes before a mistake that was found here, so that an earlier one of llhttp's counts
 * first, as it would have done had the bytes been cut between the two. */
static int feed_then_fail(struct sw_http_parser *p, const char *bytes, size_t len, int code,
                          int refusal, const char *why)
{
    size_t used;

    if (len > 0) {
        feed_llhttp(p, bytes, len, &used);
    }
    return fail(p, code, refusal, why);
}

static void remember_tail(struct sw_http_parser *p, const char *bytes, size_t len)
{
    size_t kept = sizeof(p->tail);

    if (len >= kept) {
        memcpy(p->tail, bytes + len - kept, kept);
    } else {
        memmove(p->tail, p->tail + len, kept - len);
        memcpy(p->tail + kept - len, bytes, len);
    }
}

/* "HTTP/1.1" at the end of a request line: llhttp would also take RTSP, ICE and no version. */
static bool names_http(const char tail[10])
{
    return memcmp(tail, "HTTP/", 5) == 0 && tail[6] == '.';
}

static int feed_line(struct sw_http_parser *p, const char *bytes, size_t len, size_t *ret_used)
{
    const char *end = memchr(bytes, '\n', len);
    size_t n = end ? (size_t)(end - bytes) + 1 : len;
    size_t room = p->limits.head_bytes - p->line_bytes;
    enum phase phase = p->phase;

    if (p->line_len == 0 && room > 0 && phase != START_LINE &&
        (bytes[0] == ' ' || bytes[0] == '\t')) {
        return fail_malformed(p, "folded header field");
    }
    if (n > room) {
        return feed_then_fail(p, bytes, room, SW_E_TOO_LARGE, phase == START_LINE ? 414 : 431,
                              phase == START_LINE ? "request line too large"
                                                  : "header fields too large");
    }
    remember_tail(p, bytes, n);
    if (end && p->line_len + n < 2) {
        return fail_malformed(p, "line feed without carriage return");
    }
    if (end && p->tail[sizeof(p->tail) - 2] != '\r') {
        return feed_then_fail(p, bytes, n - 1, SW_E_PROTOCOL, 400,
                              "line feed without carriage return");
    }
    bool is_empty_line = end && p->line_len + n == 2;
    if (end && phase == START_LINE && !is_empty_line && p->role == SW_HTTP_REQUESTS &&
        !names_http(p->tail)) {
        return feed_then_fail(p, bytes, n - 1, SW_E_PROTOCOL, 400, "malformed request line");
    }

    p->line_bytes += n;
    p->line_len = end ? 0 : p->line_len + n;
    if (end && phase == START_LINE && !is_empty_line) {
        p->phase = FIELDS;
    }
    return feed_llhttp(p, bytes, n, ret_used);
}

int sw_http_parser_feed(struct sw_http_parser *p, const char *bytes, size_t len, size_t *ret_used)
{
    size_t used = 0;

    while (p->failed == 0 && !p->is_paused && (used < len || p->is_stopped)) {
        size_t n = 0;
        bool was_stopped = p->is_stopped;
        p->is_stopped = false;
        if (was_stopped) {
            feed_llhttp(p, bytes, 0, &n);
        } else if (p->phase == BODY) {
            feed_llhttp(p, bytes + used, len - used, &n);
        } else {
            feed_line(p, bytes + used, len - used, &n);
        }
        used += n;
    }
    if (ret_used) {
        *ret_used = used;
    } else {
        sw_assert(p->failed != 0 || used == len);
    }
    return p->failed;
}

int sw_http_parser_finish(struct sw_http_parser *p)
{
    sw_assert(!p->is_paused);
    if (p->failed != 0) {
        return p->failed;
    }
    if (!p->is_in_message) {
        return 0;
    }
    llhttp_finish(&p->llhttp); /* calls on_message_complete where a body lasts until the end */
    if (!p->is_in_message || p->failed != 0) {
        return p->failed;
    }
    return fail(p, SW_E_TRUNCATED, 400, "the stream ended in the middle of a message");
}
