/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 server, plain or over TLS, for webhooks, probes and metrics: bounded in connections,
 * header, body and time. A request is delivered whole and answered once, at once or later, in one
 * go or in pieces. Requests of one connection are handled one after the other.
 */
#ifndef SW_NET_HTTP_SERVER_H
#define SW_NET_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/http.h"

struct sw_arena;
struct sw_error;
struct sw_http_server;
struct sw_log;
struct sw_loop;
struct sw_stream;
struct sw_tls_config;

/* Lives from on_request until it is answered. */
struct sw_http_incoming {
    const char *method;
    const char *path;  /* decoded, without the query; begins with "/", or is "*" */
    const char *query; /* as received, without "?"; "" where there is none */
    struct sw_http_fields fields;
    const char *body; /* with a NUL behind it */
    size_t body_len;
    const char *peer;
    struct sw_arena *arena; /* of this request; freed after the answer is handed over */
};

/* Must answer with sw_http_answer exactly once, now or later. If the client goes away meanwhile,
 * the answer is simply dropped. */
typedef void (*sw_http_request_fn)(void *arg, struct sw_http_incoming *request);

struct sw_http_answer {
    int status;                         /* 200 to 599 */
    const char *content_type;           /* NULL: none */
    const struct sw_http_field *fields; /* more fields; may be NULL */
    size_t field_count;
    const void *body; /* copied */
    size_t body_len;
};
/* A field that could not be sent (sw_http_is_field_value) is a mistake of the caller. */
void sw_http_answer(struct sw_http_incoming *request, const struct sw_http_answer *answer);
/* text/plain with a line feed. */
void sw_http_answer_text(struct sw_http_incoming *request, int status, const char *text);

/* ---- an answer in pieces, instead of sw_http_answer ---- */

struct sw_http_answer_events {
    void (*on_drain)(void *arg); /* after a write that was refused: there is room again */
    void (*on_gone)(void *arg);  /* the client has gone away; sw_http_answer_end is still due */
};

/* The head; body and body_len of the answer are not looked at. Events come until
 * sw_http_answer_end, never from within a call. */
void sw_http_answer_start(struct sw_http_incoming *request, const struct sw_http_answer *answer,
                          const struct sw_http_answer_events *events, void *arg);
/* One piece. -ENOBUFS: too much is on its way already, nothing was taken; -EPIPE: gone. */
int sw_http_answer_write(struct sw_http_incoming *request, const void *bytes, size_t len);
/* The request is dead afterwards. Not whole: the connection is cut, so that the client can tell. */
void sw_http_answer_end(struct sw_http_incoming *request, bool is_whole);

/* ---- server ---- */

struct sw_http_server_options {
    const char *address;       /* as sw_tcp_listen; NULL: none, see sw_http_server_serve */
    struct sw_tls_config *tls; /* a reference is taken; NULL: plain */
    unsigned max_connections;  /* 0: 256, which over TLS hold 10 MiB. For one more, the oldest idle
                                  one is closed; where none is idle, the one that we have waited
                                  for longest, for a body or for it to read its answer; where we
                                  are to answer all, the one more waits in the kernel's queue */
    uint64_t patience_ms; /* so long nobody is closed for one more in the middle of a handshake,
                             a head, a body or an answer; 0: 1 000 */
    uint64_t silence_ms;  /* the same for one that has not sent a byte yet; 0: 200 */
    uint64_t body_limit_bytes; /* 0: 8 MiB: two objects of 3 MiB, the API server's limit, and their
                                  frame */
    uint64_t bodies_limit_bytes; /* of all requests that are being received or answered; 0: four
                                    times the limit of one, 1 MiB at least. Beyond it the one that
                                    has been received for longest is closed */
    uint64_t head_timeout_ms;    /* first byte to end of head; 0: 10 000 */
    uint64_t body_timeout_ms; /* of the request, and of an answer between two signs of life of its
                                 reader; 0: 30 000 */
    uint64_t idle_timeout_ms; /* between requests; 0: 120 000, above the 90 s of Go's clients */
};

int sw_http_server_open(struct sw_loop *loop, const struct sw_http_server_options *options,
                        sw_http_request_fn fn, void *arg, const struct sw_log *log,
                        struct sw_http_server **ret_server, struct sw_error *error);
uint16_t sw_http_server_port(const struct sw_http_server *server);
/* For new connections; old ones keep theirs. */
void sw_http_server_set_tls(struct sw_http_server *server, struct sw_tls_config *tls);
/* Answers carry "Connection: close" from now on. Connections without a request are closed once they
 * have been quiet for a second: at once would hit requests that are on their way. The listener
 * stays. */
void sw_http_server_drain(struct sw_http_server *server);
/* Closes the listener, drains, and lets those go to their end who are in the middle of a handshake,
 * a request or an answer. done comes once: when the last connection has gone, or after timeout_ms;
 * never from within a call. sw_http_server_close is still due, and may come before. */
void sw_http_server_finish(struct sw_http_server *server, uint64_t timeout_ms,
                           void (*done)(void *arg), void *arg);
/* Closes the listener and all connections; unanswered requests must still be answered, into the
 * void. fn_closed (may be NULL) comes when all is freed, after the last of these answers. */
void sw_http_server_close(struct sw_http_server *server, void (*fn_closed)(void *arg), void *arg);
unsigned sw_http_server_connections(const struct sw_http_server *server);

/* Serves a stream (taken, not started) as if it had been accepted: for tests and the simulator. */
void sw_http_server_serve(struct sw_http_server *server, struct sw_stream *stream);

#endif
