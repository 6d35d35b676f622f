/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP streams: connecting by name with fallback between addresses (Happy Eyeballs, RFC 8305),
 * listening, and keep-alive that finds a dead peer (idle 30 s, every 10 s, 3 times;
 * TCP_USER_TIMEOUT 60 s).
 */
#ifndef SW_NET_TCP_H
#define SW_NET_TCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sw_error;
struct sw_loop;
struct sw_stream;
struct sw_tcp_connect;
struct sw_tcp_listener;

/* stream: new, not started, NULL on failure; error: borrowed, says which addresses were tried and
 * why each failed. Comes exactly once, after sw_tcp_connect has returned 0; never after a cancel.
 */
typedef void (*sw_tcp_connected_fn)(void *arg, struct sw_stream *stream,
                                    const struct sw_error *error);

struct sw_tcp_options {
    const char *host; /* name, IPv4 or IPv6 literal without brackets */
    uint16_t port;
    uint64_t timeout_ms;      /* of look-up and connecting together; 0: 10 000 */
    size_t write_limit_bytes; /* 0: 8 MiB */
    const char *avoid; /* an address (as sw_stream_peer names it) to try last: it failed just now;
                          or NULL */
};

int sw_tcp_connect(struct sw_loop *loop, const struct sw_tcp_options *options,
                   sw_tcp_connected_fn fn, void *arg, struct sw_tcp_connect **ret_connect);
void sw_tcp_connect_cancel(struct sw_tcp_connect *connect); /* not after the callback has come */

/* stream: new, not started; to refuse it, close it. */
typedef void (*sw_tcp_accept_fn)(void *arg, struct sw_stream *stream);

/* address: "HOST:PORT", ":PORT" (all addresses, IPv6 and IPv4), "[::1]:0". -EADDRINUSE and its kin.
 */
int sw_tcp_listen(struct sw_loop *loop, const char *address, size_t write_limit_bytes,
                  sw_tcp_accept_fn fn, void *arg, struct sw_tcp_listener **ret_listener,
                  struct sw_error *error);
/* The port really bound (for ":0"). */
uint16_t sw_tcp_listener_port(const struct sw_tcp_listener *listener);
/* Stops or resumes accepting; connections wait in the kernel's queue meanwhile. */
void sw_tcp_listener_set_accepting(struct sw_tcp_listener *listener, bool is_on);
void sw_tcp_listener_close(struct sw_tcp_listener *listener); /* takes NULL */

#endif
