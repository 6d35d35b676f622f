/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to servers that are not the API server: metrics providers, webhooks of users. HTTP/1.1
 * over TCP or TLS; the proxies of the environment are used as for the API server. Asynchronous;
 * each has its own deadline, and one that hangs delays no other: at most SW_FETCH_AT_ONCE of one
 * origin (scheme, host, port) with one trust are under way, what comes then waits for its turn
 * within its deadline.
 *
 * Answers are bounded. Redirects of a GET are followed, at most five times and never from https to
 * http; Authorization, and every other field but Accept, goes to the origin that it was meant for
 * only (RFC 9110, 15.4). A redirect of a POST is an answer like any other. Followers fetch as well
 * as the leader. Nothing is sent a second time, but a GET on a kept connection that was dead.
 */
#ifndef SLIPWAY_FETCH_H
#define SLIPWAY_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slipway/module.h>

#define SW_FETCH_AT_ONCE 8

struct sw_fetch_field {
    const char *name;
    const char *value;
};

/* Borrowed for the call. */
struct sw_fetch {
    const char *method; /* "GET", without a body, or "POST" */
    const char *url;    /* http:// or https://; a user and password in it become Authorization */
    const struct sw_fetch_field *fields; /* Host, User-Agent, Content-Length are added */
    size_t field_count;
    const void *body; /* NULL: none */
    size_t body_len;
    uint32_t timeout_ms;       /* from the call to the last byte of the answer; 0: 10 000 */
    uint32_t body_limit_bytes; /* of the answer; 0: 1 MiB. Beyond it the fetch fails */
    bool insecure_skip_verify; /* the server's certificate is not verified, whatever ca_pem says */
    const char *ca_pem;        /* who is trusted; NULL: the system's authorities, SSL_CERT_FILE or
                                  /etc/ssl/certs/ca-certificates.crt */
};

struct sw_fetch_answer {
    int status;       /* of HTTP; 0: no whole answer, and why says so */
    const char *why;  /* for people: "no answer within 10 s", "answer longer than 1048576 bytes";
                         "" with an answer */
    const char *body; /* NUL-terminated */
    size_t body_len;
};

struct sw_fetching;

/* Exactly once, after sw_fetch has returned 0, unless it was cancelled or the module is stopped.
 * The answer is borrowed for the call. */
typedef void (*sw_fetch_fn)(struct sw_instance *self, void *arg,
                            const struct sw_fetch_answer *answer);

/* -EINVAL: the URL is none (sw_url_check says why), or method or a field would break the head.
 * ret_fetching may be NULL. */
SW_API SW_MUST_USE int sw_fetch(struct sw_instance *self, const struct sw_fetch *fetch,
                                sw_fetch_fn fn, void *arg, struct sw_fetching **ret_fetching);
/* fn does not come any more. Takes NULL; not to be called once fn has come. */
SW_API void sw_fetch_cancel(struct sw_fetching *fetching);

/* Percent-encoded, for a value in a query. In the arena. */
SW_API SW_NONNULL const char *sw_url_escape(struct sw_arena *arena, const char *text);

/* 0: an absolute http or https URL with a host. -EINVAL, and why (at least 256 bytes) says what is
 * wrong. */
SW_API SW_MUST_USE int sw_url_check(const char *url, char *why, size_t why_size);

#endif
