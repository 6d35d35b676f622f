/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which proxy a connection goes through: the URL of one, and HTTPS_PROXY, HTTP_PROXY and NO_PROXY
 * (or in lower case) as Go's http.ProxyFromEnvironment reads them, so that what works for kubectl
 * works here. What happens on the connection: tunnel.h.
 */
#ifndef SW_NET_PROXY_H
#define SW_NET_PROXY_H

#include <stdbool.h>
#include <stdint.h>

struct sw_error;

enum sw_proxy_kind {
    SW_PROXY_NONE,
    SW_PROXY_HTTP,   /* CONNECT */
    SW_PROXY_HTTPS,  /* the same over TLS */
    SW_PROXY_SOCKS5, /* the proxy looks up the name */
};

struct sw_proxy {
    enum sw_proxy_kind kind;
    char host[256];
    uint16_t port;
    char *username, *password; /* NULL: none */
};

/* "http://user:password@proxy:3128", "https://...", "socks5://..." (or socks5h). SW_E_SYNTAX with
 * what is wrong, and without the URL, which may hold a password. Ended with sw_proxy_done. */
int sw_proxy_parse(const char *url, struct sw_proxy *ret_proxy, struct sw_error *error);
/* Overwrites the password. */
void sw_proxy_done(struct sw_proxy *proxy);

/* What the environment says for this server; SW_PROXY_NONE: to be reached directly. */
int sw_proxy_from_environment(bool is_https, const char *host, uint16_t port,
                              struct sw_proxy *ret_proxy, struct sw_error *error);
/* A list with commas: "*"; an address or CIDR; "example.com" (it and all below), ".example.com" or
 * "*.example.com" (all below); each but a CIDR may have ":PORT". localhost and loopback addresses
 * are always reached directly. */
bool sw_proxy_is_bypassed(const char *no_proxy, const char *host, uint16_t port);

#endif
