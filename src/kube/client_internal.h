/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the API client share: client.c (the client itself, paths, what every answer is
 * looked at for), client_call.c and client_stream.c.
 */
#ifndef SW_KUBE_CLIENT_INTERNAL_H
#define SW_KUBE_CLIENT_INTERNAL_H

#include "base/list.h"
#include "base/log.h"
#include "kube/backoff.h"
#include "kube/client.h"
#include "kube/rate_limit.h"
#include "kube/transport.h"

struct sw_gate;
struct sw_map;
struct sw_metric;
struct sw_metric_family;

struct sw_client {
    struct sw_loop *loop;
    struct sw_transport *transport;
    struct sw_log log;
    char *path_prefix;
    char *host;
    struct sw_rate_limit limit;
    struct sw_gate *gate;
    struct sw_backoff backoff;
    struct sw_link calls;
    struct sw_link streams;
    bool (*may_write)(void *arg);
    void *may_write_arg;

    uint64_t refused_ms; /* 401: when the credentials last did not change on our asking; 0: never */

    uint64_t no_streams_until_ms; /* 0: lists as streams were never refused */

    struct sw_map *warnings; /* texts that were logged already */
    uint64_t error_window_ms;
    unsigned error_lines;
    unsigned error_lines_left_out;

    struct sw_metric_family *requests_total;
    struct sw_metric_family *request_duration;
    struct sw_metric_family *retries_total;
    struct sw_metric_family *limiter_duration;
};

/* What the head of an answer says that matters to us. */
struct sw_answer {
    int status;
    bool has_retry_after;
    uint64_t retry_after_ms;
    char audit_id[64];
    char flow_schema[64]; /* with 429: who in the server's flow control refused */
    char priority_level[64];
};

void sw_client_read_head(struct sw_client *client, const struct sw_http_head *head,
                         struct sw_answer *ret_answer);
/* status 0: no answer came. */
void sw_client_count(struct sw_client *client, const char *method, int status);
void sw_client_observe(struct sw_client *client, const char *method, uint64_t started_ns);
/* Of the credentials that what is sent now carries. */
unsigned sw_client_credentials(const struct sw_client *client);
/* A 401 came to a request with those credentials: true if others are there now. */
bool sw_client_refresh(struct sw_client *client, unsigned credentials);
/* An answer that means trouble, with what finds it in the server's logs; not more than ten in ten
 * seconds. */
void sw_client_log_answer(struct sw_client *client, const char *method, const char *target,
                          const struct sw_answer *answer, const char *message);
/* A token of the rate limit, or waits for it; says so where it bites. */
bool sw_client_take_token(struct sw_client *client, const char *method,
                          struct sw_rate_waiter *waiter);
/* Having waited since then, and got it. */
void sw_client_got_token(struct sw_client *client, const char *method, uint64_t since_ns);
/* The path behind the server's prefix. New memory. */
char *sw_client_target(const struct sw_client *client, const char *path);

void sw_call_free(struct sw_call *call);
struct sw_call *sw_call_of_link(struct sw_link *link);
void sw_client_stream_call_free(struct sw_client_stream_call *call);
struct sw_client_stream_call *sw_client_stream_call_of_link(struct sw_link *link);

#endif
