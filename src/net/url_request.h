/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The URL of one request (RFC 3986, http and https only), taken apart into where it goes, what is
 * asked for there, and who asks; and where a redirect leads.
 */
#ifndef SW_NET_URL_REQUEST_H
#define SW_NET_URL_REQUEST_H

#include <stdbool.h>

#include "net/url.h"

struct sw_buf;
struct sw_error;

enum { SW_URL_LIMIT = 32 * 1024 }; /* most servers take less: 8 KiB to 1 MiB of a whole head */

struct sw_url_request {
    struct sw_url origin;      /* path: NULL */
    char *target;              /* path and query, without "." and "..": "/api/v1/query?query=up" */
    char *username, *password; /* decoded; NULL: none */
};

/* SW_E_SYNTAX with what is wrong, and without the URL, which may hold a password. A fragment is
 * left out. Ended with sw_url_request_done. */
int sw_url_request_parse(const char *text, struct sw_url_request *ret_url, struct sw_error *error);
/* Overwrites the password. */
void sw_url_request_done(struct sw_url_request *url);

/* Where the Location of an answer from base leads (section 5.2). Who is named in it is nobody. */
int sw_url_request_follow(const struct sw_url_request *base, const char *location,
                          struct sw_url_request *ret_url, struct sw_error *error);
/* Scheme, host and port (RFC 6454). */
bool sw_url_is_same_origin(const struct sw_url *a, const struct sw_url *b);

/* For logs and messages: scheme, host, port and path; nothing that may be a secret. */
int sw_url_request_text(const struct sw_url_request *url, struct sw_buf *out);

#endif
