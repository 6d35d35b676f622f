/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connecting to the first of several addresses that answers: the part of sw_tcp_connect behind the
 * look-up of the name. Apart so that tests can name the addresses.
 */
#ifndef SW_NET_TCP_CONNECT_H
#define SW_NET_TCP_CONNECT_H

#include <stddef.h>

#include "net/tcp.h"

struct sockaddr_storage;

/* As sw_tcp_connect, but options.host is only spoken of; the addresses, in the order in which they
 * are to be tried, carry their ports. */
int sw_tcp_connect_to(struct sw_loop *loop, const struct sockaddr_storage *addresses, size_t count,
                      const struct sw_tcp_options *options, sw_tcp_connected_fn fn, void *arg,
                      struct sw_tcp_connect **ret_connect);

#endif
