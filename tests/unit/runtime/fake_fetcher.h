/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fetcher in memory for tests of whatever calls sw_fetch: it records what is sent, and the test
 * answers by hand, or with a function that is called for every request. It stands below redirects,
 * deadlines and limits, which are those of slipway itself: a request that is not answered times out
 * on the virtual clock. Requests stay readable after their end.
 *
 *     struct fake_fetch *asked = fake_fetch_the(f.fetcher, "/api/v1/query");
 *     assert_string_equal(asked->url, "http://prometheus:9090/api/v1/query?query=up");
 *     fake_fetch_answer(asked, 200, NULL, "{\"status\":\"success\"}");
 */
#ifndef TESTS_UNIT_RUNTIME_FAKE_FETCHER_H
#define TESTS_UNIT_RUNTIME_FAKE_FETCHER_H

#include "base/loop.h"
#include "net/fetcher.h"

struct fake_fetch {
    struct fake_fetcher *fetcher;
    unsigned number; /* from 0, in the order of sending */
    char *method;
    char *url;    /* whole, without a user: "https://host:8443/path?query" */
    char *fields; /* "Name: value\nName: value\n" */
    char *body;   /* "" where there is none */
    size_t body_len;
    bool insecure_skip_verify;
    char *ca_pem; /* NULL: none */
    uint64_t timeout_ms;
    uint64_t sent_ms;

    bool is_open; /* neither ended nor cancelled */
    bool was_cancelled;

    /* private */
    struct sw_http_exchange_events events;
    void *arg;
    struct sw_defer hook;
};

struct fake_fetcher {
    struct sw_fetcher base;
    struct sw_loop *loop;
    struct fake_fetch **requests;
    unsigned count;
    int send_result; /* what send returns, while it is not 0 */
    void (*on_request)(void *arg, struct fake_fetch *request); /* deferred; NULL: by hand */
    void *arg;
};

struct fake_fetcher *fake_fetcher_new(struct sw_loop *loop);
/* Fails the test if a request is still open. */
void fake_fetcher_free(struct fake_fetcher *fetcher);

unsigned fake_fetch_open_count(const struct fake_fetcher *fetcher);
/* The one open request whose URL holds the text; fails unless there is exactly one. */
struct fake_fetch *fake_fetch_the(struct fake_fetcher *fetcher, const char *text);
/* As fake_fetch_the, or NULL where there is none. */
struct fake_fetch *fake_fetch_find(struct fake_fetcher *fetcher, const char *text);
/* The value of a field of the request; NULL where there is none. Until the next call. */
const char *fake_fetch_field(const struct fake_fetch *request, const char *name);

/* fields: "Name: value\nName: value", or NULL. */
void fake_fetch_head(struct fake_fetch *request, int status, const char *fields);
void fake_fetch_body(struct fake_fetch *request, const void *bytes, size_t len);
void fake_fetch_end(struct fake_fetch *request, int code);
/* All three, and the loop turns. */
void fake_fetch_answer(struct fake_fetch *request, int status, const char *fields,
                       const char *body);
/* The connection breaks, or was never made, and the loop turns. */
void fake_fetch_break(struct fake_fetch *request, int code);

#endif
