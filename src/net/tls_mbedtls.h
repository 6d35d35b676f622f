/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mbedTLS for the tls_*.c files: its headers, and what 2.28 and 3.6 call differently. 3.x hides the
 * members of its structs behind a macro; the few that are read here have no function that tells
 * them (the alert that the peer sent, the bytes of a PEM block).
 */
#ifndef SW_NET_TLS_MBEDTLS_H
#define SW_NET_TLS_MBEDTLS_H

#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <mbedtls/error.h>
#include <mbedtls/pem.h>
#include <mbedtls/pk.h>
#include <mbedtls/ssl.h>
#include <mbedtls/ssl_ciphersuites.h>
#include <mbedtls/ssl_ticket.h>
#include <mbedtls/version.h>
#include <mbedtls/x509_crt.h>

#if MBEDTLS_VERSION_MAJOR >= 3
#include <psa/crypto.h>
#define SW_MBEDTLS_ERR_VERSION MBEDTLS_ERR_SSL_BAD_PROTOCOL_VERSION
#define SW_MBEDTLS_ERR_CERTIFICATE MBEDTLS_ERR_SSL_BAD_CERTIFICATE
#else
#define MBEDTLS_PRIVATE(member) member
#define SW_MBEDTLS_ERR_VERSION MBEDTLS_ERR_SSL_BAD_HS_PROTOCOL_VERSION
#define SW_MBEDTLS_ERR_CERTIFICATE MBEDTLS_ERR_SSL_BAD_HS_CERTIFICATE
#endif

#endif
