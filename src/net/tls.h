/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS 1.2 and, with mbedTLS 3.6, TLS 1.3, as a stream over another stream. The peer's certificate
 * is verified always unless insecure_skip_verify was asked for: chain, validity and name (RFC 6125,
 * 9525: SAN only, the common name is not looked at; an IP address must be among the iPAddress SANs,
 * which mbedTLS 2.28 does not do by itself).
 *
 * A configuration is immutable and counted: a stream keeps the one it began with, so credentials
 * are replaced by making a new one.
 */
#ifndef SW_NET_TLS_H
#define SW_NET_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sw_error;
struct sw_loop;
struct sw_stream;
struct sw_tls_config;

struct sw_tls_client_options {
    const char *ca_pem;          /* trusted certificates; NULL: those of the system:
                                    SSL_CERT_FILE of the environment, or
                                    /etc/ssl/certs/ca-certificates.crt */
    const char *certificate_pem; /* client certificate and chain; NULL: none */
    const char *key_pem;         /* its private key; PKCS#8, PKCS#1 or SEC1 */
    bool insecure_skip_verify;   /* together with ca_pem: an error */
};
struct sw_tls_server_options {
    const char *certificate_pem; /* certificate and chain */
    const char *key_pem;
    const char *client_ca_pem; /* if set, clients must show a certificate of it */
};

/* Texts are borrowed for the call. SW_E_SYNTAX with what is wrong: not PEM, key does not fit the
 * certificate, Ed25519 (not supported by mbedTLS: named), encrypted key. */
int sw_tls_client_config_new(const struct sw_tls_client_options *options,
                             struct sw_tls_config **ret_config, struct sw_error *error);
int sw_tls_server_config_new(const struct sw_tls_server_options *options,
                             struct sw_tls_config **ret_config, struct sw_error *error);
struct sw_tls_config *sw_tls_config_ref(struct sw_tls_config *config);
struct sw_tls_config *
sw_tls_config_unref(struct sw_tls_config *config); /* takes NULL; returns NULL */
/* When the (own) certificate ends, in microseconds since 1970; INT64_MAX where there is none. */
int64_t sw_tls_config_not_after(const struct sw_tls_config *config);

/* The stream of decrypted bytes, not started; or NULL with the reason, in words that name the
 * failed check
 * ("certificate is for kubernetes, kubernetes.default; not for 10.0.0.1"). Exactly once, after the
 * call has returned 0; never after a cancel. */
typedef void (*sw_tls_ready_fn)(void *arg, struct sw_stream *stream, const struct sw_error *error);
struct sw_tls_handshake;

/* lower is taken, also on failure. name: the host to verify and, unless it is an IP literal (RFC
 * 6066), to send as SNI. ALPN: http/1.1 only. timeout_ms 0: 10 000. Sessions are resumed per config
 * and name. */
int sw_tls_connect(struct sw_loop *loop, struct sw_stream *lower, struct sw_tls_config *config,
                   const char *name, uint64_t timeout_ms, sw_tls_ready_fn fn, void *arg,
                   struct sw_tls_handshake **ret_handshake);
int sw_tls_accept(struct sw_loop *loop, struct sw_stream *lower, struct sw_tls_config *config,
                  uint64_t timeout_ms, sw_tls_ready_fn fn, void *arg,
                  struct sw_tls_handshake **ret_handshake);
void sw_tls_handshake_cancel(struct sw_tls_handshake *handshake); /* closes lower */
/* The other side has sent something, whatever it was. */
bool sw_tls_handshake_has_begun(const struct sw_tls_handshake *handshake);

#endif
