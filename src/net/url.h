/* SPDX-License-Identifier: Apache-2.0 */
/*
 * URLs of servers (RFC 3986, http and https only), addresses to bind, and percent-encoding.
 */
#ifndef SW_NET_URL_H
#define SW_NET_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sw_buf;
struct sw_error;

struct sw_url {
    bool is_https;
    char host[256]; /* without brackets */
    uint16_t port;  /* the scheme's where none is named */
    char *path; /* new; begins with "/", without a "/" at the end ("" for the root); no query, no
                   fragment */
};

/* SW_E_SYNTAX with what is wrong. User information, query and fragment are refused. */
int sw_url_parse(const char *text, struct sw_url *ret_url, struct sw_error *error);
void sw_url_done(struct sw_url *url);
bool sw_host_is_ip(const char *host);
/* "host", "host:8443", "[::1]:8443": as in a Host header; the port only where it is not the
 * scheme's. */
int sw_url_authority(const struct sw_url *url, struct sw_buf *out);

/* "user:password" or "user", percent-encoded, as it stands before the @ of a URL. SW_E_SYNTAX: a
 * broken escape, or a user with a colon. New memory, which is to be freed whatever comes of it;
 * *ret_password stays as it is where there is none. */
int sw_url_user_parse(const char *text, size_t len, char **ret_username, char **ret_password,
                      struct sw_error *error);

/* "HOST:PORT", ":PORT", "[V6]:PORT" into its parts; ret_host "" means all addresses. */
int sw_address_parse(const char *text, char ret_host[256], uint16_t *ret_port,
                     struct sw_error *error);

/* Appends text with all but unreserved characters (RFC 3986 section 2.3) percent-encoded. */
int sw_url_encode(struct sw_buf *out, const char *text);
/* -EINVAL on a broken escape or an encoded NUL. New memory. */
int sw_url_decode(const char *text, size_t len, char **ret_text);

#endif
