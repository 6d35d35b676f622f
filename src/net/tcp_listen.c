/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listening: binds an address and hands on each connection as a stream. While accepting is off,
 * libuv holds one connection that it has accepted already and stops to look for more, so that the
 * others wait in the kernel's queue.
 */
#include <errno.h>
#include <string.h>
#include <uv.h>

#include "base/error.h"
#include "base/loop.h"
#include "base/util.h"
#include "net/stream.h"
#include "net/tcp.h"
#include "net/tcp_stream.h"
#include "net/url.h"

/* The kernel cuts it to net.core.somaxconn. A burst of reviews opens connections by the hundred. */
enum { BACKLOG = 1024 };

struct sw_tcp_listener {
    uv_tcp_t handle;
    struct sw_loop *loop;
    size_t write_limit_bytes;
    sw_tcp_accept_fn fn;
    void *arg;
    uint16_t port;
    bool is_paused;
    bool has_waiting; /* libuv holds an accepted connection */
};

static void on_closed(uv_handle_t *handle)
{
    sw_free(container_of((uv_tcp_t *)handle, struct sw_tcp_listener, handle));
}

void sw_tcp_listener_close(struct sw_tcp_listener *listener)
{
    if (listener && !uv_is_closing((uv_handle_t *)&listener->handle)) {
        uv_close((uv_handle_t *)&listener->handle, on_closed);
    }
}

static void accept_one(struct sw_tcp_listener *listener)
{
    struct sw_tcp *tcp;
    /* Neither fails: the handle is initialised on the same loop and a connection is there. */
    sw_assert(sw_tcp_new(listener->loop, listener->write_limit_bytes, &tcp) == 0);
    int rc = uv_accept((uv_stream_t *)&listener->handle, (uv_stream_t *)sw_tcp_handle(tcp));
    if (rc) {
        sw_stream_close(sw_tcp_stream(tcp));
        return;
    }
    listener->fn(listener->arg, sw_tcp_established(tcp));
}

static void on_connection(uv_stream_t *handle, int status)
{
    struct sw_tcp_listener *listener =
        container_of((uv_tcp_t *)handle, struct sw_tcp_listener, handle);
    if (status) {
        return; /* of that one connection: it was gone again, or we are out of descriptors */
    }
    if (listener->is_paused) {
        listener->has_waiting = true;
    } else {
        accept_one(listener);
    }
}

void sw_tcp_listener_set_accepting(struct sw_tcp_listener *listener, bool is_on)
{
    listener->is_paused = !is_on;
    if (is_on && listener->has_waiting) {
        listener->has_waiting = false;
        accept_one(listener);
    }
}

uint16_t sw_tcp_listener_port(const struct sw_tcp_listener *listener)
{
    return listener->port;
}

/* ---- binding ---- */

/* The addresses of host in the order in which they are tried. A name is looked up at once:
 * listening begins at start and nothing else runs yet. */
static int look_up(struct sw_loop *loop, const char *host, uint16_t port,
                   struct sockaddr_storage addresses[2], size_t *ret_count)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)&addresses[0];
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&addresses[0];
    *ret_count = 1;
    if (!*host) {
        /* [::] serves IPv4 as well; a node without IPv6 has 0.0.0.0 alone. */
        *ret_count = 2;
        uv_ip6_addr("::", port, v6);
        return uv_ip4_addr("0.0.0.0", port, (struct sockaddr_in *)&addresses[1]);
    }
    if (uv_ip4_addr(host, port, v4) == 0 || uv_ip6_addr(host, port, v6) == 0) {
        return 0;
    }
    uv_getaddrinfo_t request;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    int rc = uv_getaddrinfo(sw_loop_uv(loop), &request, NULL, host, NULL, &hints);
    if (rc) {
        return rc;
    }
    memcpy(&addresses[0], request.addrinfo->ai_addr, request.addrinfo->ai_addrlen);
    if (addresses[0].ss_family == AF_INET6) {
        v6->sin6_port = htons(port);
    } else {
        v4->sin_port = htons(port);
    }
    uv_freeaddrinfo(request.addrinfo);
    return 0;
}

static int bind_and_listen(struct sw_tcp_listener *listener, const struct sockaddr_storage *address)
{
    int rc = uv_tcp_bind(&listener->handle, (const struct sockaddr *)address, 0);
    if (!rc) {
        rc = uv_listen((uv_stream_t *)&listener->handle, BACKLOG, on_connection);
    }
    struct sockaddr_storage bound = {0};
    int len = sizeof(bound);
    if (!rc) {
        rc = uv_tcp_getsockname(&listener->handle, (struct sockaddr *)&bound, &len);
    }
    if (!rc) {
        listener->port =
            ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                              : ((struct sockaddr_in *)&bound)->sin_port);
    }
    return rc;
}

static int try_address(struct sw_loop *loop, const struct sockaddr_storage *address,
                       struct sw_tcp_listener **ret_listener)
{
    struct sw_tcp_listener *listener = SW_NEW(struct sw_tcp_listener);
    int rc = uv_tcp_init(sw_loop_uv(loop), &listener->handle);
    if (rc) {
        sw_free(listener);
        return rc;
    }
    rc = bind_and_listen(listener, address);
    if (rc) {
        sw_tcp_listener_close(listener);
        return rc;
    }
    *ret_listener = listener;
    return 0;
}

int sw_tcp_listen(struct sw_loop *loop, const char *address, size_t write_limit_bytes,
                  sw_tcp_accept_fn fn, void *arg, struct sw_tcp_listener **ret_listener,
                  struct sw_error *error)
{
    char host[256];
    uint16_t port;
    int rc = sw_address_parse(address, host, &port, error);
    if (rc) {
        return rc;
    }
    if (!sw_loop_uv(loop)) {
        return sw_error_set(error, -ENOTSUP, "cannot listen on a virtual loop");
    }
    struct sockaddr_storage addresses[2];
    size_t count;
    rc = look_up(loop, host, port, addresses, &count);
    if (rc) {
        return sw_error_set(error, rc, "cannot listen on %s: no address for \"%s\": %s", address,
                            host, sw_strerror(rc));
    }
    struct sw_tcp_listener *listener = NULL;
    for (size_t i = 0; i < count && !listener; i++) {
        rc = try_address(loop, &addresses[i], &listener);
        if (rc == -EADDRINUSE || rc == -EACCES) {
            break; /* the next one is no way round that */
        }
    }
    if (rc) {
        return sw_error_set(error, rc, "cannot listen on %s: %s", address, sw_strerror(rc));
    }
    listener->loop = loop;
    listener->write_limit_bytes = write_limit_bytes;
    listener->fn = fn;
    listener->arg = arg;
    *ret_listener = listener;
    return 0;
}
