/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API client: calls with a whole answer, and streams. It knows paths, media types, Status, the
 * rate limit and Retry-After; what an answer means for the caller is the caller's business.
 *
 * Retried here, at most 10 times within the deadline: 429, and 5xx with Retry-After; a 401 once,
 * after the credentials were read again. Nothing else.
 */
#ifndef SW_KUBE_CLIENT_H
#define SW_KUBE_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slipway/kind.h>

#include "kube/decode.h"

struct sw_backoff;
struct sw_call;
struct sw_client;
struct sw_error;
struct sw_gate;
struct sw_log;
struct sw_loop;
struct sw_metrics;
struct sw_transport;

struct sw_client_options {
    double requests_per_second; /* 0: 50 */
    unsigned burst;             /* 0: 100 */
    const char *path_prefix;    /* of the server's URL; NULL: "" */
    const char *host;           /* the label "host" of its metrics; NULL: "" */
    /* Of those who list and watch: the first wait after a failure, and the longest; both are
     * doubled at most by chance. */
    uint64_t backoff_first_ms; /* 0: 800 */
    uint64_t backoff_limit_ms; /* 0: 30 000 */
};

/* transport is borrowed and must outlive the client. */
struct sw_client *sw_client_new(struct sw_loop *loop, struct sw_transport *transport,
                                const struct sw_client_options *options, struct sw_metrics *metrics,
                                const struct sw_log *log);
/* From now on, for all that is not sent yet; as in the options, but not 0. */
void sw_client_set_rate(struct sw_client *client, double requests_per_second, unsigned burst);
/* Cancels what is under way, without callbacks. Reflectors and leases must be gone. */
struct sw_client *sw_client_free(struct sw_client *client);

/* A path of the API: /api/v1/... or /apis/GROUP/VERSION/..., each part checked and encoded.
 * namespace_ NULL: all; name NULL: the collection; subresource NULL: none. -EINVAL on a name that
 * is none. New memory. */
int sw_client_path(const struct sw_kind *kind, const char *namespace_, const char *name,
                   const char *subresource, char **ret_path);

struct sw_call_options {
    const char *method;       /* "GET", "POST", "PUT", "PATCH", "DELETE" */
    const char *path;         /* without the server's prefix, with the query */
    const char *content_type; /* of the body; NULL: application/json */
    const char *body;         /* borrowed for the call */
    size_t body_len;
    const char *lane; /* connection of its own, past the rate limit: "lease"; NULL: ordinary */
    bool is_guarded;  /* a write that may be repeated by the transport on a connection that broke
                         before an  answer: it has a precondition */
    bool is_fenced;   /* dropped by sw_client_fence */
    bool is_secret;   /* the answer is overwritten before its memory is given back */
    bool logs_itself; /* the caller says what an answer that means trouble has led to */
    uint64_t deadline_ms; /* for all tries together; 0: 60 000 */
};

struct sw_reply {
    int code;         /* 0: an HTTP answer came, whatever its status; else why none came */
    int status;       /* of HTTP; 0 without an answer */
    const char *body; /* whole, NUL-terminated; at most 32 MiB */
    size_t body_len;
    struct sw_status_view why;    /* for status >= 400 */
    bool was_sent;                /* false: the server has seen no try that it did not refuse */
    const char *audit_id;         /* by which the server's audit log knows the request; "" */
    const struct sw_error *error; /* with code != 0: words */
};

/* Exactly once, after sw_client_call has returned 0; not after a cancel. Borrowed for the call. */
typedef void (*sw_reply_fn)(void *arg, const struct sw_reply *reply);
int sw_client_call(struct sw_client *client, const struct sw_call_options *options, sw_reply_fn fn,
                   void *arg, struct sw_call **ret_call);
/* No callback comes any more; what was sent may still happen at the server. Not after the callback
 * has begun. */
void sw_call_cancel(struct sw_call *call);

/* Stops leading: every fenced call that waits is dropped, connections that carry one are reset,
 * their callbacks get -ECANCELED (was_sent says which may have reached the server). The callbacks
 * come before the loop turns, not from within this call. */
void sw_client_fence(struct sw_client *client);
/* Asked before each try of a fenced call, and once more right before its first byte leaves, which
 * may be long after where all connections are busy: a stall of the process may have changed the
 * answer, and no timer has fired yet. False: the call ends with SW_E_NOT_LEADER. NULL: nobody is
 * asked. */
void sw_client_set_may_write(struct sw_client *client, bool (*fn)(void *arg), void *arg);

/* For those who list and watch: the gate that they share, and the back-off to begin with for what
 * fails for one kind alone. */
struct sw_gate *sw_client_gate(struct sw_client *client);
struct sw_backoff sw_client_backoff(const struct sw_client *client);

/* Whether lists may be asked for as streams: until somebody has found that this server cannot do
 * it, and an hour after that again. why: what it said. */
bool sw_client_may_stream_lists(const struct sw_client *client);
void sw_client_refuse_streamed_lists(struct sw_client *client, const char *why);

/* ---- streams: a list page or a watch ---- */

struct sw_client_stream_call;

struct sw_stream_reply {
    int code;                  /* 0: the body ended in order */
    int status;                /* of HTTP; 0 without an answer */
    struct sw_status_view why; /* with status >= 400 */
    uint64_t retry_after_ms;   /* 0: none named */
    /* To be logged with trouble, which is not done here. "": not said. Of 429: who in the server's
     * flow control refused. */
    const char *audit_id, *flow_schema, *priority_level;
    const struct sw_error *error; /* with code != 0: words */
};

/* Each may cancel the stream, or free the client. */
struct sw_client_stream_events {
    /* The head has come: status 200, or an error whose body follows as a Status in on_end. */
    void (*on_open)(void *arg, int status);
    void (*on_bytes)(void *arg, const char *bytes, size_t len);     /* status 200 only */
    void (*on_end)(void *arg, const struct sw_stream_reply *reply); /* borrowed for the call */
};

struct sw_client_stream_options {
    const char *path;
    const char *lane; /* connection of its own, for a watch, past the rate limit; NULL: ordinary */
    uint64_t head_timeout_ms;    /* 0: 30 000 */
    uint64_t silence_timeout_ms; /* 0: none */
    uint64_t total_timeout_ms;   /* 0: none */
};
/* A 401 is tried once more after the credentials were read again; nothing else is. */
int sw_client_stream(struct sw_client *client, const struct sw_client_stream_options *options,
                     const struct sw_client_stream_events *events, void *arg,
                     struct sw_client_stream_call **ret_call);
/* Takes NULL. Not after on_end has returned. */
void sw_client_stream_call_cancel(struct sw_client_stream_call *call);

#endif
