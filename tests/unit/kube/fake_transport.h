/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transport in memory for tests: it records what is sent, and the test plays the server by hand
 * (fake_head, fake_body, fake_end) or with a function that is called for every request. Requests
 * stay readable after their end.
 */
#ifndef TESTS_UNIT_KUBE_FAKE_TRANSPORT_H
#define TESTS_UNIT_KUBE_FAKE_TRANSPORT_H

#include "base/log.h"
#include "base/loop.h"
#include "kube/transport.h"

struct fake_request {
    struct fake_transport *transport;
    unsigned number; /* from 0, in the order of sending */
    char *method, *target, *body, *content_type, *lane;
    bool may_replay;
    uint64_t head_timeout_ms, total_timeout_ms, silence_timeout_ms;
    uint64_t sent_ms;

    bool is_open; /* neither ended nor cancelled */
    bool was_cancelled, was_aborted;
    bool was_sent; /* what the transport says of it; true unless the test changes it */

    /* private */
    struct sw_http_exchange_events events;
    void *arg;
    struct sw_defer hook;
};

struct fake_transport {
    struct sw_transport base;
    struct sw_loop *loop;
    struct fake_request *requests[4096];
    unsigned count;
    int send_result;      /* what send returns, while it is not 0 */
    bool refresh_result;  /* of refresh_credentials */
    unsigned refreshes;   /* times it was called */
    unsigned credentials; /* their number; goes up with each refresh that is true */
    void (*on_request)(void *arg, struct fake_request *request); /* deferred; NULL: by hand */
    void *arg;
};

struct fake_transport *fake_transport_new(struct sw_loop *loop);
void fake_transport_free(struct fake_transport *t);

unsigned fake_open_count(const struct fake_transport *t);
/* The one open request whose target holds the text; fails unless there is exactly one. */
struct fake_request *fake_the(struct fake_transport *t, const char *text);
/* As fake_the, or NULL where there is none. */
struct fake_request *fake_find(struct fake_transport *t, const char *text);
/* The value of a parameter of the query, decoded; "" where there is none. Until the next call. */
const char *fake_query(const struct fake_request *request, const char *name);

/* A connection is free for it: true if it may still be sent; else it has ended. */
bool fake_leaves(struct fake_request *request);
/* fields: "Name: value\nName: value", or NULL. */
void fake_head(struct fake_request *request, int status, const char *fields);
void fake_body(struct fake_request *request, const char *text);
void fake_end(struct fake_request *request, int code);
/* All three, and the loop turns. */
void fake_answer(struct fake_request *request, int status, const char *fields, const char *body);
/* The connection breaks, and the loop turns. */
void fake_break(struct fake_request *request, int code);

/* A log that remembers: whether a line holds the text is asked with fake_log_has. */
struct fake_log {
    struct sw_log_sink *sink;
    struct sw_log log;
    char text[65536];
    size_t len;
};
void fake_log_init(struct fake_log *log, struct sw_loop *loop);
void fake_log_done(struct fake_log *log);
bool fake_log_has(const struct fake_log *log, const char *text);
/* How many lines hold it. */
unsigned fake_log_count(const struct fake_log *log, const char *text);

#endif
