/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What HTTP/1.1 client and server (RFC 9110, 9112) share: header fields and the incremental parser,
 * which is llhttp with limits.
 */
#ifndef SW_NET_HTTP_H
#define SW_NET_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sw_http_field {
    const char *name;  /* as received; compared without case */
    const char *value; /* without white space around it */
};

struct sw_http_fields {
    const struct sw_http_field *at;
    size_t count;
};

/* The first of that name, or NULL. */
const char *sw_http_field_get(const struct sw_http_fields *fields, const char *name);
/* "text/html; charset=utf-8" has type "text/html"; no case. */
bool sw_http_media_type_is(const char *content_type, const char *type);
/* Retry-After: seconds or an HTTP date (wall_us: now); result in ms, at most 5 minutes; -EINVAL on
 * garbage. */
int sw_http_retry_after(const char *value, int64_t wall_us, uint64_t *ret_ms);
const char *sw_http_reason(int status); /* "Not Found"; "" if unknown */

/* What may be sent: a name is a token (RFC 9110 section 5.6.2); a value has no control characters
 * but the tab, so that nobody puts a line of his own into the head. */
bool sw_http_is_token(const char *text);
bool sw_http_is_field_value(const char *text);

/* "Basic ..." (RFC 7617), of a name without a colon. New memory, a secret. */
char *sw_http_basic(const char *username, const char *password);

/* ---- parser ---- */

enum sw_http_role {
    SW_HTTP_REQUESTS,
    SW_HTTP_RESPONSES,
};

/* Its pointers, and those of the fields, are valid until a byte of the next message is fed, or the
 * parser is freed. */
struct sw_http_head {
    /* requests */
    const char *method;
    const char *target;
    bool expects_continue;
    /* responses */
    int status;
    /* both */
    bool is_http10;
    struct sw_http_fields fields;
    bool keeps_alive;       /* after this message the connection may carry another; never with
                               HTTP/1.0 */
    bool has_body;          /* bytes of a body follow, be it none of them */
    int64_t content_length; /* -1: not said */
};

/* Each may be NULL. Bytes are borrowed for the call. A return other than 0 stops the parser: it
 * returns that code from sw_http_parser_feed. None of them may free the parser. */
struct sw_http_parser_events {
    /* 1xx responses are swallowed; 101, which nobody asks for, is an error */
    int (*on_head)(void *arg, const struct sw_http_head *head);
    int (*on_body)(void *arg, const char *bytes, size_t len);
    int (*on_message_end)(void *arg);
};

struct sw_http_limits {
    size_t head_bytes;   /* 0: 64 KiB: start line and all fields; the same again for trailers */
    size_t field_count;  /* 0: 100 */
    uint64_t body_bytes; /* 0: no limit */
};

struct sw_http_parser;
struct sw_http_parser *sw_http_parser_new(enum sw_http_role role,
                                          const struct sw_http_limits *limits,
                                          const struct sw_http_parser_events *events, void *arg);
struct sw_http_parser *sw_http_parser_free(struct sw_http_parser *parser);
/* Before each response: the answer to HEAD has no body; body_bytes: limit of this body, 0: none. */
void sw_http_parser_expect(struct sw_http_parser *parser, bool is_head, uint64_t body_bytes);
/* Bytes in any pieces; the events are the same for any cutting, but for the pieces of a body.
 * SW_E_PROTOCOL (malformed; Content-Length and chunked together; obsolete folding),
 * SW_E_TOO_LARGE, or what an event returned. After a failure it takes nothing more. After
 * pause, *ret_used says how many were taken; ret_used may be NULL where nobody pauses. */
int sw_http_parser_feed(struct sw_http_parser *parser, const char *bytes, size_t len,
                        size_t *ret_used);
/* From within an event: stop after it. The rest of the bytes is not taken and is fed after the
 * resume; feed also where no byte is left, since the end of the message may still have to be told.
 */
void sw_http_parser_pause(struct sw_http_parser *parser);
void sw_http_parser_resume(struct sw_http_parser *parser);
/* The stream ended: 0 if that was the end of a message (then on_message_end comes from here) or
 * between two, else SW_E_TRUNCATED. Not while paused. */
int sw_http_parser_finish(struct sw_http_parser *parser);
/* What was wrong, for people: "Invalid header value char". */
const char *sw_http_parser_why(const struct sw_http_parser *parser);
/* After a failure: the status with which a server refuses it (400, 413, 414, 431, 501, 505). */
int sw_http_parser_refusal(const struct sw_http_parser *parser);
/* Gives back what a large head took; between two messages only, and its head is gone then. */
void sw_http_parser_trim(struct sw_http_parser *parser);

#endif
