/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of names. The C library's resolver blocks, and may do so for half a minute where a name
 * server is silent; so each name that is looked up has a thread, which several who ask for the same
 * name share and which ends with the answer. One name that hangs delays no other, as long as fewer
 * than SW_LOOK_UPS_MAX hang. (libuv lets two look-ups run at a time.)
 */
#ifndef SW_NET_LOOK_UP_H
#define SW_NET_LOOK_UP_H

struct addrinfo;
struct sw_look_up;
struct sw_loop;

enum { SW_LOOK_UPS_MAX = 16 }; /* names at a time; the rest waits */

/* list: of stream sockets, borrowed; NULL with a code of libuv's, UV_EAI_NONAME and its kin. */
typedef void (*sw_looked_up_fn)(void *arg, int code, const struct addrinfo *list);

/* Real loops only. fn comes once, after the call has returned 0. The loop may be closed while the
 * resolver still blocks. */
int sw_look_up(struct sw_loop *loop, const char *host, sw_looked_up_fn fn, void *arg,
               struct sw_look_up **ret_look_up);
/* fn does not come any more. Not after it has begun. */
void sw_look_up_cancel(struct sw_look_up *look_up);

#endif
