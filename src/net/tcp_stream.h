/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TCP stream before it is handed to its owner: what tcp_connect.c and tcp_listen.c share with
 * tcp.c. Nobody else includes this.
 */
#ifndef SW_NET_TCP_STREAM_H
#define SW_NET_TCP_STREAM_H

#include <stddef.h>
#include <uv.h>

struct sockaddr;
struct sw_loop;
struct sw_stream;
struct sw_tcp;

enum {
    SW_TCP_NAME_SIZE = 80, /* "[" IPv6 with scope "]:" port; 46 + IF_NAMESIZE 16 + 9 */
    SW_TCP_WRITE_LIMIT = 8 * 1024 * 1024,
};

/* With an initialised handle that is neither connected nor accepted; -ENOTSUP on a virtual loop. */
int sw_tcp_new(struct sw_loop *loop, size_t write_limit_bytes, struct sw_tcp **ret_tcp);
uv_tcp_t *sw_tcp_handle(struct sw_tcp *tcp);
/* Connected or accepted now: sets the socket's options, notes the peer. The stream is tcp itself,
 * and it is closed as a stream in every case, also where this was never called. */
struct sw_stream *sw_tcp_established(struct sw_tcp *tcp);
struct sw_stream *sw_tcp_stream(struct sw_tcp *tcp);

/* "192.0.2.1:443", "[2001:db8::1]:443". */
void sw_tcp_name(const struct sockaddr *address, char ret_name[SW_TCP_NAME_SIZE]);

#endif
