/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the server share: http_server.c owns the server, its listener and its lists of
 * connections; http_server_session.c owns one connection and the request on it; http_answer.c
 * sends the answers. Nobody else includes this.
 */
#ifndef SW_NET_HTTP_SERVER_INTERNAL_H
#define SW_NET_HTTP_SERVER_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/util.h"
#include "net/http_server.h"

struct sw_http_session;
struct sw_tcp_listener;
struct sw_tls_handshake;

/* What a request needs while it lasts. Connections hand it on, so that a thousand idle ones hold
 * nothing and a busy server works in memory that is warm. */
struct sw_http_workspace {
    struct sw_http_workspace *next;
    struct sw_buf body;
    struct sw_arena *arena;
};

struct sw_http_server {
    struct sw_loop *loop;
    const struct sw_log *log;
    struct sw_http_server_options options; /* without address and tls */
    struct sw_tls_config *tls;
    sw_http_request_fn fn;
    void *arg;

    struct sw_tcp_listener *listener;
    bool is_accepting;
    bool is_draining;
    bool is_closing;
    struct sw_link silent;  /* connections that have not sent a byte, longest first */
    struct sw_link quiet;   /* those that owe us the head of a request, longest first */
    struct sw_link waiting; /* those that owe us the rest of a body, or do not read an answer */
    struct sw_link active;  /* those with a request that we have not answered */
    unsigned open;          /* of all four lists */
    unsigned alive;         /* and those that are closed but wait for an answer */

    struct sw_timer patience; /* until somebody may make room; only where there is none */
    uint64_t tick_ms;         /* when it is due */
    uint64_t late_ms;         /* by how much its ticks have come late, together */

    void (*finished)(void *arg); /* NULL: not finishing, or told already */
    void *finished_arg;
    struct sw_timer finish_timer;
    struct sw_defer finish_defer;

    uint64_t bodies_bytes; /* in all workspaces that are in use */
    struct sw_http_workspace *spares;
    unsigned spare_count;
    struct sw_buf out; /* where answers are put together */

    struct sw_defer finish;
    void (*fn_closed)(void *arg);
    void *closed_arg;
};

/* ---- http_server.c ---- */

struct sw_http_workspace *sw_http_workspace_take(struct sw_http_server *server);
void sw_http_workspace_give(struct sw_http_server *server, struct sw_http_workspace *workspace);
/* Counts what c has received. -ENOBUFS: too much is there, and nobody else can go for it. */
int sw_http_server_count_body(struct sw_http_server *server, const struct sw_http_session *c,
                              size_t len);
/* For how long we have waited for somebody: stands still while we were busy and nobody could make
 * room. */
uint64_t sw_http_server_clock_ms(const struct sw_http_server *server);
/* Accepts or not, by how many connections there are; frees the server after its last one. */
void sw_http_server_update(struct sw_http_server *server);

#define SW_HTTP_SESSION_MAGIC SW_MAGIC('h', 's', 'r', 'v')

/* The table is in http_server_session.c. */
enum sw_http_session_state {
    SW_SESSION_HANDSHAKE,
    SW_SESSION_IDLE,
    SW_SESSION_HEAD,
    SW_SESSION_BODY,
    SW_SESSION_HANDLING,
    SW_SESSION_ANSWERING,
    SW_SESSION_SENDING,
    SW_SESSION_LINGERING,
    SW_SESSION_CLOSED,
};

struct sw_http_session {
    uint32_t magic;
    enum sw_http_session_state state;
    struct sw_http_server *server;
    struct sw_link link;
    struct sw_tls_handshake *handshake;
    struct sw_stream *stream;
    struct sw_http_parser *parser;
    char peer[64];
    unsigned calls; /* of ours, on the stack */

    /* The timer is not moved at each request: it fires, finds due_ms later, and sleeps again. */
    struct sw_timer timer;
    uint64_t due_ms;   /* 0: no limit */
    uint64_t armed_ms; /* what the timer is set to; only while it is active */

    uint64_t spared_until_ms; /* so long it is not closed to make room, by the server's clock; 0:
                                 idle */

    struct sw_buf held; /* received, and not for the request in hand */
    struct sw_buf out;  /* of the answer, not taken by the stream yet */
    size_t out_at;
    struct sw_defer later; /* goes on with held; tells on_gone */

    struct sw_http_incoming request;
    struct sw_http_workspace *workspace;
    bool has_message; /* the parser stands at the end of one */
    bool has_request; /* the handler has it and has not answered */
    bool is_head;     /* HEAD */
    bool is_http10;
    bool owes_continue;  /* the client waits with its body */
    bool closes;         /* after this answer */
    bool is_chunked;     /* the answer in pieces */
    bool was_refused;    /* one of its writes, and on_drain is due */
    bool peer_has_ended; /* nothing more to read */
    bool is_consuming_held;
    bool has_told_gone;
    const struct sw_http_answer_events *events; /* of the answer in pieces */
    void *events_arg;
};

/* ---- http_server_session.c ---- */

void sw_http_session_open(struct sw_http_server *server, struct sw_stream *stream);
void sw_http_session_close(struct sw_http_session *c);
void sw_http_session_reset(struct sw_http_session *c);
struct sw_http_session *sw_http_session_of(struct sw_link *link);
/* Those of the silent ones whose handshake has begun are quiet from now on: as far as it matters,
 * which is who stands first. */
void sw_http_session_hear(struct sw_http_server *server);
/* The server begins to drain: see there. */
void sw_http_session_drain(struct sw_http_session *c);
/* 0: none. */
void sw_http_session_set_deadline(struct sw_http_session *c, uint64_t ms);
/* The stream has not taken all of the answer; the client is to read. As the two below, the last
 * thing that is done with c, unless calls is above 0: it may make room for another one. */
void sw_http_session_send_rest(struct sw_http_session *c);
/* Our side is done; what the client still sends is thrown away. */
void sw_http_session_linger(struct sw_http_session *c);
/* Everything that belongs to the last request is sent: the next one may come. */
void sw_http_session_go_on(struct sw_http_session *c);
/* Once it is closed, nobody of ours is on the stack, and its request is answered. */
void sw_http_session_free_maybe(struct sw_http_session *c);

/* ---- http_answer.c ---- */

/* Returns 0, -ENOBUFS where some is left (on_drain comes), or what broke the stream. */
int sw_http_session_push_out(struct sw_http_session *c);
/* Answers instead of the handler; the connection ends. */
void sw_http_session_refuse(struct sw_http_session *c, int status, const char *why);

#endif
