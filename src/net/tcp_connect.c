/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connecting by name: looks it up (look_up.h), then races the addresses as RFC 8305 has it. The
 * families alternate; an attempt gets 250 ms before the next one joins it; one that fails makes
 * room at once; the first that connects wins and the others are closed. An IP literal needs no
 * look-up.
 *
 *     looking up --+--> racing --+--> connected   fn(stream)
 *                  |             +--> all failed, or timeout   fn(NULL, error)
 *                  +--> not found, or timeout     fn(NULL, error)
 *
 * An attempt is memory of its own: libuv has its request until the callback, which comes when the
 * handle is closed at the latest.
 */
#include "net/tcp_connect.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/loop.h"
#include "base/util.h"
#include "net/look_up.h"
#include "net/stream.h"
#include "net/tcp_stream.h"

enum {
    ADDRESSES_MAX = 16,
    HEAD_START_MS = 250, /* RFC 8305 section 5, "Connection Attempt Delay" */
    TIMEOUT_MS = 10000,
};

/* One connect(2). */
struct attempt {
    uv_connect_t request;
    struct sw_tcp *tcp;
    struct candidate *candidate; /* NULL: nobody wants to know any more */
};

struct candidate {
    struct sw_tcp_connect *connect;
    struct sockaddr_storage address;
    struct attempt *attempt; /* while it runs */
    int code;                /* how it failed; 0: not tried, or running */
};

struct sw_tcp_connect {
    struct sw_loop *loop;
    char *host;
    char *avoid;
    uint16_t port;
    uint64_t timeout_ms;
    size_t write_limit_bytes;
    sw_tcp_connected_fn fn;
    void *arg;

    struct sw_look_up *look_up; /* NULL: none, or it is done */

    struct candidate candidates[ADDRESSES_MAX];
    size_t count;
    size_t next; /* to be tried */
    struct sw_defer first_turn;
    struct sw_timer next_turn; /* of the next candidate */
    struct sw_timer deadline;  /* of it all */
};

/* ---- the end of it ---- */

static void abandon(struct candidate *candidate)
{
    struct attempt *attempt = candidate->attempt;
    if (attempt) {
        candidate->attempt = NULL;
        attempt->candidate = NULL;
        sw_stream_close(sw_tcp_stream(attempt->tcp));
    }
}

static void destroy(struct sw_tcp_connect *connect)
{
    sw_defer_stop(&connect->first_turn);
    sw_timer_stop(&connect->next_turn);
    sw_timer_stop(&connect->deadline);
    for (size_t i = 0; i < connect->count; i++) {
        abandon(&connect->candidates[i]);
    }
    if (connect->look_up) {
        sw_look_up_cancel(connect->look_up);
    }
    sw_free(connect->host);
    sw_free(connect->avoid);
    sw_free(connect);
}

void sw_tcp_connect_cancel(struct sw_tcp_connect *connect)
{
    destroy(connect);
}

static void finish(struct sw_tcp_connect *connect, struct sw_stream *stream,
                   const struct sw_error *error)
{
    sw_tcp_connected_fn fn = connect->fn;
    void *arg = connect->arg;
    destroy(connect);
    fn(arg, stream, error);
}

/* "192.0.2.1:443: connection refused; [2001:db8::1]:443: no answer" */
static void describe(const struct sw_tcp_connect *connect, struct sw_buf *out)
{
    for (size_t i = 0; i < connect->next; i++) {
        const struct candidate *candidate = &connect->candidates[i];
        char name[SW_TCP_NAME_SIZE];
        sw_tcp_name((const struct sockaddr *)&candidate->address, name);
        sw_buf_printf(out, "%s%s: %s", i > 0 ? "; " : "", name,
                      candidate->code ? sw_strerror(candidate->code) : "no answer");
    }
}

static void fail(struct sw_tcp_connect *connect, int code)
{
    struct sw_buf tried;
    sw_buf_init(&tried, sizeof(((struct sw_error *)NULL)->text));
    describe(connect, &tried);
    struct sw_error error;
    if (tried.len > 0) {
        sw_error_set(&error, code, "cannot connect to %s: %s", connect->host, tried.bytes);
    } else {
        sw_error_set(&error, code, "cannot look up the address of %s: %s", connect->host,
                     sw_strerror(code));
    }
    sw_buf_done(&tried);
    finish(connect, NULL, &error);
}

static void on_deadline(struct sw_timer *timer)
{
    fail(container_of(timer, struct sw_tcp_connect, deadline), -ETIMEDOUT);
}

/* ---- racing ---- */

static void try_next(struct sw_tcp_connect *connect);

static void on_connected(uv_connect_t *request, int status)
{
    struct attempt *attempt = container_of(request, struct attempt, request);
    struct candidate *candidate = attempt->candidate;
    struct sw_tcp *tcp = attempt->tcp;
    sw_free(attempt);
    if (!candidate) {
        return;
    }
    candidate->attempt = NULL;
    if (status == 0) {
        finish(candidate->connect, sw_tcp_established(tcp), NULL);
        return;
    }
    candidate->code = status;
    sw_stream_close(sw_tcp_stream(tcp));
    try_next(candidate->connect);
}

static int begin(struct candidate *candidate)
{
    struct sw_tcp_connect *connect = candidate->connect;
    struct sw_tcp *tcp;
    int rc = sw_tcp_new(connect->loop, connect->write_limit_bytes, &tcp);
    if (rc) {
        return rc;
    }
    struct attempt *attempt = SW_NEW(struct attempt);
    attempt->tcp = tcp;
    attempt->candidate = candidate;
    rc = uv_tcp_connect(&attempt->request, sw_tcp_handle(tcp),
                        (const struct sockaddr *)&candidate->address, on_connected);
    if (rc) {
        sw_stream_close(sw_tcp_stream(tcp));
        sw_free(attempt);
        return rc;
    }
    candidate->attempt = attempt;
    return 0;
}

static bool is_any_running(const struct sw_tcp_connect *connect)
{
    for (size_t i = 0; i < connect->next; i++) {
        if (connect->candidates[i].attempt) {
            return true;
        }
    }
    return false;
}

/* Never from within sw_tcp_connect: it may call back. */
static void try_next(struct sw_tcp_connect *connect)
{
    while (connect->next < connect->count) {
        struct candidate *candidate = &connect->candidates[connect->next++];
        candidate->code = begin(candidate);
        if (candidate->code == 0) {
            if (connect->next < connect->count) {
                sw_timer_start(&connect->next_turn, HEAD_START_MS);
            }
            return;
        }
    }
    sw_timer_stop(&connect->next_turn);
    if (!is_any_running(connect)) {
        fail(connect, connect->candidates[0].code);
    }
}

static void on_first_turn(struct sw_defer *defer)
{
    try_next(container_of(defer, struct sw_tcp_connect, first_turn));
}

static void on_next_turn(struct sw_timer *timer)
{
    try_next(container_of(timer, struct sw_tcp_connect, next_turn));
}

/* ---- the order of the addresses ---- */

static void add(struct sw_tcp_connect *connect, const struct sockaddr *address)
{
    struct candidate *candidate = &connect->candidates[connect->count++];
    candidate->connect = connect;
    if (address->sa_family == AF_INET6) {
        memcpy(&candidate->address, address, sizeof(struct sockaddr_in6));
        ((struct sockaddr_in6 *)&candidate->address)->sin6_port = htons(connect->port);
    } else {
        memcpy(&candidate->address, address, sizeof(struct sockaddr_in));
        ((struct sockaddr_in *)&candidate->address)->sin_port = htons(connect->port);
    }
}

/* The next of that family (or of any other, if is_same is false) from *at on. */
static const struct addrinfo *next_of(const struct addrinfo **at, int family, bool is_same)
{
    for (; *at; *at = (*at)->ai_next) {
        const struct addrinfo *info = *at;
        bool is_known = info->ai_family == AF_INET || info->ai_family == AF_INET6;
        if (is_known && (info->ai_family == family) == is_same) {
            *at = info->ai_next;
            return info;
        }
    }
    return NULL;
}

/* The resolver has ordered them (RFC 6724); the families alternate, beginning with its favourite.
 */
static void add_alternating(struct sw_tcp_connect *connect, const struct addrinfo *list)
{
    const struct addrinfo *same = list;
    const struct addrinfo *other = list;
    int family = list->ai_family;
    while (connect->count + 1 < ADDRESSES_MAX) {
        const struct addrinfo *a = next_of(&same, family, true);
        const struct addrinfo *b = next_of(&other, family, false);
        if (!a && !b) {
            return;
        }
        if (a) {
            add(connect, a->ai_addr);
        }
        if (b) {
            add(connect, b->ai_addr);
        }
    }
}

static void move_avoided_last(struct sw_tcp_connect *connect)
{
    for (size_t i = 0; connect->avoid && i + 1 < connect->count; i++) {
        char name[SW_TCP_NAME_SIZE];
        sw_tcp_name((const struct sockaddr *)&connect->candidates[i].address, name);
        if (strcmp(name, connect->avoid) == 0) {
            struct candidate avoided = connect->candidates[i];
            memmove(&connect->candidates[i], &connect->candidates[i + 1],
                    (connect->count - i - 1) * sizeof(avoided));
            connect->candidates[connect->count - 1] = avoided;
            return;
        }
    }
}

static void on_looked_up(void *arg, int code, const struct addrinfo *list)
{
    struct sw_tcp_connect *connect = arg;
    connect->look_up = NULL;
    if (list) {
        add_alternating(connect, list);
    }
    if (connect->count == 0) {
        fail(connect, code ? code : UV_EAI_NONAME);
        return;
    }
    move_avoided_last(connect);
    try_next(connect);
}

/* ---- the beginning of it ---- */

static struct sw_tcp_connect *connect_new(struct sw_loop *loop,
                                          const struct sw_tcp_options *options,
                                          sw_tcp_connected_fn fn, void *arg)
{
    struct sw_tcp_connect *connect = SW_NEW(struct sw_tcp_connect);
    connect->loop = loop;
    connect->host = sw_strdup(options->host);
    connect->avoid = options->avoid ? sw_strdup(options->avoid) : NULL;
    connect->port = options->port;
    connect->timeout_ms = options->timeout_ms ? options->timeout_ms : TIMEOUT_MS;
    connect->write_limit_bytes = options->write_limit_bytes;
    connect->fn = fn;
    connect->arg = arg;
    sw_defer_init(&connect->first_turn, loop, on_first_turn);
    sw_timer_init(&connect->next_turn, loop, on_next_turn);
    sw_timer_init(&connect->deadline, loop, on_deadline);
    sw_timer_start(&connect->deadline, connect->timeout_ms);
    return connect;
}

int sw_tcp_connect_to(struct sw_loop *loop, const struct sockaddr_storage *addresses, size_t count,
                      const struct sw_tcp_options *options, sw_tcp_connected_fn fn, void *arg,
                      struct sw_tcp_connect **ret_connect)
{
    if (!sw_loop_uv(loop)) {
        return -ENOTSUP;
    }
    if (count == 0 || count > ADDRESSES_MAX) {
        return -EINVAL;
    }
    struct sw_tcp_connect *connect = connect_new(loop, options, fn, arg);
    for (size_t i = 0; i < count; i++) {
        connect->candidates[i] = (struct candidate){.connect = connect, .address = addresses[i]};
    }
    connect->count = count;
    move_avoided_last(connect);
    sw_defer_start(&connect->first_turn);
    *ret_connect = connect;
    return 0;
}

int sw_tcp_connect(struct sw_loop *loop, const struct sw_tcp_options *options,
                   sw_tcp_connected_fn fn, void *arg, struct sw_tcp_connect **ret_connect)
{
    struct sockaddr_storage literal = {0};
    if (uv_ip4_addr(options->host, options->port, (struct sockaddr_in *)&literal) == 0 ||
        uv_ip6_addr(options->host, options->port, (struct sockaddr_in6 *)&literal) == 0) {
        return sw_tcp_connect_to(loop, &literal, 1, options, fn, arg, ret_connect);
    }
    if (!sw_loop_uv(loop)) {
        return -ENOTSUP;
    }
    struct sw_tcp_connect *connect = connect_new(loop, options, fn, arg);
    int rc = sw_look_up(loop, connect->host, on_looked_up, connect, &connect->look_up);
    if (rc) {
        destroy(connect);
        return rc;
    }
    *ret_connect = connect;
    return 0;
}
