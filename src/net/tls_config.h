/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What many TLS connections share: certificates and keys, trusted CAs, random numbers, ciphers, and
 * the sessions that can be resumed. Contract of the public part in tls.h.
 */
#ifndef SW_NET_TLS_CONFIG_H
#define SW_NET_TLS_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "net/tls.h"
#include "net/tls_mbedtls.h"

struct sw_map;

struct sw_tls_config {
    unsigned refs;
    bool is_server;
    bool has_certificate;
    mbedtls_ssl_config ssl;
    mbedtls_entropy_context entropy;
    mbedtls_ctr_drbg_context random;
    mbedtls_x509_crt certificate; /* own, and its chain */
    mbedtls_pk_context key;
    mbedtls_x509_crt trusted;
    int unusable;                       /* of the trusted ones: mbedTLS cannot read them */
    mbedtls_ssl_ticket_context tickets; /* servers */
    struct sw_map *sessions;            /* clients: name -> mbedtls_ssl_session */
    const char *protocols[2];           /* for ALPN; mbedTLS keeps the pointer */
    int64_t not_after_us;
};

/* The session to resume with that name, or NULL. */
const mbedtls_ssl_session *sw_tls_session_get(const struct sw_tls_config *config, const char *name);
/* Remembers the connection's session, if it can be resumed, in place of the one before. */
void sw_tls_session_keep(struct sw_tls_config *config, const char *name,
                         const mbedtls_ssl_context *ssl);
void sw_tls_session_forget(struct sw_tls_config *config, const char *name);

/* Microseconds since 1970. */
int64_t sw_tls_time_us(const mbedtls_x509_time *time);

#endif
