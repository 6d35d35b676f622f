/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A way through a proxy: on a stream to the proxy it is asked to connect to a server, and from then
 * on the stream is one to that server. HTTP CONNECT (RFC 9110 section 9.3.6) and SOCKS version 5
 * (RFC 1928; user and password: RFC 1929).
 */
#ifndef SW_NET_TUNNEL_H
#define SW_NET_TUNNEL_H

#include <stdint.h>

struct sw_error;
struct sw_loop;
struct sw_proxy;
struct sw_stream;
struct sw_tunnel;

/* stream: that of sw_tunnel_open, to be started (again) or closed before this returns; NULL on
 * failure, with words that name what the proxy said. Exactly once, after the call has returned 0;
 * never after a cancel. */
typedef void (*sw_tunnel_fn)(void *arg, struct sw_stream *stream, const struct sw_error *error);

/* lower is a stream to the proxy (of the kind https: over TLS already), not started; taken, also on
 * failure. proxy, host and user_agent (NULL: none) are borrowed for the call. timeout_ms 0: 10 000.
 */
int sw_tunnel_open(struct sw_loop *loop, struct sw_stream *lower, const struct sw_proxy *proxy,
                   const char *host, uint16_t port, const char *user_agent, uint64_t timeout_ms,
                   sw_tunnel_fn fn, void *arg, struct sw_tunnel **ret_tunnel);
void sw_tunnel_cancel(struct sw_tunnel *tunnel); /* closes lower */

#endif
