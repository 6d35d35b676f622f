/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a certificate for this host? Reads the subject alternative names out of the DER of a
 * certificate's extensions and compares. Knows nothing of mbedTLS, whose 2.28 leaves iPAddress
 * names out and whose every version falls back to the common name.
 */
#ifndef SW_NET_TLS_NAME_H
#define SW_NET_TLS_NAME_H

#include <stdbool.h>
#include <stddef.h>

struct sw_error;

/* One name; the bytes lie in the certificate. */
struct sw_san {
    enum {
        SW_SAN_DNS,
        SW_SAN_IP,
    } kind;
    const unsigned char *bytes;
    size_t len;
};

/* Walks the dNSName and iPAddress entries. */
struct sw_san_iter {
    const unsigned char *at;
    const unsigned char *end;
};

/* extensions: the DER of Extensions (RFC 5280 section 4.1), a SEQUENCE with its tag; len 0: none.
 * -ENOENT where there is no subject alternative name, SW_E_SYNTAX where the DER is broken, all
 * names included. */
int sw_san_find(const unsigned char *extensions, size_t len, struct sw_san_iter *ret_iter);
bool sw_san_next(struct sw_san_iter *iter, struct sw_san *ret_san);

/* RFC 9525: a DNS name without regard to case, "*" for exactly the left-most label; an address by
 * its octets. */
bool sw_san_matches(const struct sw_san *san, const char *host);

/* SW_E_CERTIFICATE with what the certificate is for instead. */
int sw_tls_name_check(const unsigned char *extensions, size_t len, const char *host,
                      struct sw_error *error);

#endif
