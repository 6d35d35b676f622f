/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the peer's certificate is accepted, and why a handshake failed, in words.
 */
#ifndef SW_NET_TLS_VERIFY_H
#define SW_NET_TLS_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "net/tls_mbedtls.h"

struct sw_tls_config;

/* What is asked of one peer, and what came out. */
struct sw_tls_check {
    const struct sw_tls_config *config;
    const char *host; /* to be named in the certificate; NULL: none (a client) */
    int64_t now_us;
    struct sw_error why; /* all that is wrong with the chain */
};

/* mbedTLS's verify callback; arg is a struct sw_tls_check. The library's verdict on signatures and
 * usage stands; time and name are decided here, by the loop's clock and by the SAN alone. */
int sw_tls_verify(void *arg, mbedtls_x509_crt *certificate, int depth, uint32_t *flags);

struct sw_tls_failure {
    const mbedtls_ssl_context *ssl;
    const struct sw_tls_check *check;
    int code;                   /* mbedTLS's; 0: the stream below ended */
    int lower_code;             /* how the stream below ended */
    const unsigned char *first; /* what the peer's first bytes were */
    size_t first_len;
};

/* Fills *error with SW_E_CERTIFICATE, SW_E_TLS, SW_E_TRUNCATED or the code of the stream below. */
void sw_tls_explain(const struct sw_tls_failure *failure, struct sw_error *error);

#endif
