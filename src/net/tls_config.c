/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a configuration out of PEM texts, and says in words what is wrong with them: they come from
 * people's files and from cluster operators' tools. Also keeps the sessions.
 */
#include "net/tls_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/map.h"
#include "base/time.h"
#include "base/util.h"

#define SYSTEM_CAS "/etc/ssl/certs/ca-certificates.crt"

enum {
    SYSTEM_CAS_BYTES = 8 * 1024 * 1024, /* 40 times what Debian's has */
    SESSIONS_MAX = 32,                  /* a client has one server, seldom a few */
    TICKET_SECONDS = 24 * 60 * 60,
};

/*
 * ECDHE with AEAD and nothing else. ChaCha20-Poly1305 first: mbedTLS multiplies for GCM one block
 * at a time, so that AES-128-GCM with the processor's instructions takes 23.6 us for the 7.2 KB of
 * a review and ChaCha20-Poly1305 13.5 us (2.28; 17.4 and 11.3 us with 3.6), which is a third of all
 * that a review costs. mbedTLS passes over what it was built without.
 */
static const int ciphers[] = {
#if defined(MBEDTLS_SSL_PROTO_TLS1_3)
    MBEDTLS_TLS1_3_CHACHA20_POLY1305_SHA256,
    MBEDTLS_TLS1_3_AES_128_GCM_SHA256,
    MBEDTLS_TLS1_3_AES_256_GCM_SHA384,
#endif
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    MBEDTLS_TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    MBEDTLS_TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    MBEDTLS_TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    0,
};

/* For the key exchange, and for the keys in certificates: 2.28 has one list for both. */
#if MBEDTLS_VERSION_MAJOR >= 3
static const uint16_t groups[] = {
    MBEDTLS_SSL_IANA_TLS_GROUP_X25519,    MBEDTLS_SSL_IANA_TLS_GROUP_SECP256R1,
    MBEDTLS_SSL_IANA_TLS_GROUP_SECP384R1, MBEDTLS_SSL_IANA_TLS_GROUP_SECP521R1,
    MBEDTLS_SSL_IANA_TLS_GROUP_NONE,
};

/* PKCS#1 stands before PSS because servers of TLS 1.2 take the first they know, and 3.6.6 offers
 * PSS but refuses it there (Mbed-TLS/mbedtls issue 10668). TLS 1.3 knows no PKCS#1 and passes over
 * it. */
static const uint16_t signatures[] = {
    MBEDTLS_TLS1_3_SIG_ECDSA_SECP256R1_SHA256, MBEDTLS_TLS1_3_SIG_ECDSA_SECP384R1_SHA384,
    MBEDTLS_TLS1_3_SIG_ECDSA_SECP521R1_SHA512, MBEDTLS_TLS1_3_SIG_RSA_PKCS1_SHA256,
    MBEDTLS_TLS1_3_SIG_RSA_PKCS1_SHA384,       MBEDTLS_TLS1_3_SIG_RSA_PKCS1_SHA512,
    MBEDTLS_TLS1_3_SIG_RSA_PSS_RSAE_SHA256,    MBEDTLS_TLS1_3_SIG_RSA_PSS_RSAE_SHA384,
    MBEDTLS_TLS1_3_SIG_RSA_PSS_RSAE_SHA512,    MBEDTLS_TLS1_3_SIG_NONE,
};
#else
static const mbedtls_ecp_group_id groups[] = {
    MBEDTLS_ECP_DP_CURVE25519, MBEDTLS_ECP_DP_SECP256R1, MBEDTLS_ECP_DP_SECP384R1,
    MBEDTLS_ECP_DP_SECP521R1,  MBEDTLS_ECP_DP_NONE,
};
#endif

/* ---- life ---- */

static struct sw_tls_config *config_new(void)
{
    struct sw_tls_config *config = SW_NEW(struct sw_tls_config);
    config->refs = 1;
    config->not_after_us = INT64_MAX;
    config->protocols[0] = "http/1.1";
    mbedtls_ssl_config_init(&config->ssl);
    mbedtls_entropy_init(&config->entropy);
    mbedtls_ctr_drbg_init(&config->random);
    mbedtls_x509_crt_init(&config->certificate);
    mbedtls_pk_init(&config->key);
    mbedtls_x509_crt_init(&config->trusted);
    mbedtls_ssl_ticket_init(&config->tickets);
    return config;
}

static void session_free(mbedtls_ssl_session *session)
{
    if (session) {
        mbedtls_ssl_session_free(session);
        sw_free_secret(session, sizeof(*session));
    }
}

static void config_free(struct sw_tls_config *config)
{
    struct sw_map_iter iter = {0};
    while (config->sessions && sw_map_next(config->sessions, &iter)) {
        session_free(iter.value);
    }
    sw_map_free(config->sessions);
    mbedtls_ssl_ticket_free(&config->tickets);
    mbedtls_ssl_config_free(&config->ssl);
    mbedtls_x509_crt_free(&config->trusted);
    mbedtls_pk_free(&config->key);
    mbedtls_x509_crt_free(&config->certificate);
    mbedtls_ctr_drbg_free(&config->random);
    mbedtls_entropy_free(&config->entropy);
    sw_free(config);
}

struct sw_tls_config *sw_tls_config_ref(struct sw_tls_config *config)
{
    config->refs++;
    return config;
}

struct sw_tls_config *sw_tls_config_unref(struct sw_tls_config *config)
{
    if (config && --config->refs == 0) {
        config_free(config);
    }
    return NULL;
}

SW_AUTO_DEFINE(struct sw_tls_config, sw_tls_config_unref)

int64_t sw_tls_config_not_after(const struct sw_tls_config *config)
{
    return config->not_after_us;
}

int64_t sw_tls_time_us(const mbedtls_x509_time *time)
{
    char text[96]; /* room for six ints of any value */
    int64_t us = INT64_MAX;
    snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02dZ", time->year, time->mon, time->day,
             time->hour, time->min, time->sec);
    sw_time_parse(text, strlen(text), &us);
    return us;
}

/* ---- PEM ---- */

/* mbedTLS wants the NUL to be counted. */
static const unsigned char *pem_bytes(const char *pem)
{
    return (const unsigned char *)pem;
}

/* Is any of the blocks about an Ed25519 key? mbedTLS calls it an unknown algorithm, like any other
 * it does not know; people need the name. */
static bool has_ed25519(const char *pem, const char *header, const char *footer)
{
    static const unsigned char oid[] = {0x06, 0x03, 0x2b, 0x65, 0x70}; /* 1.3.101.112, RFC 8410 */
    bool is_found = false;
    for (const char *at = strstr(pem, header); at && !is_found;) {
        mbedtls_pem_context block;
        size_t used = 0;
        mbedtls_pem_init(&block);
        if (mbedtls_pem_read_buffer(&block, header, footer, pem_bytes(at), NULL, 0, &used) == 0) {
            is_found =
                memmem(block.MBEDTLS_PRIVATE(buf), block.MBEDTLS_PRIVATE(buflen), oid, sizeof(oid));
        }
        mbedtls_pem_free(&block);
        at = used ? strstr(at + used, header) : NULL;
    }
    return is_found;
}

static int explain(struct sw_error *error, const char *what, int rc)
{
    char text[128];
    mbedtls_strerror(rc, text, sizeof(text));
    return sw_error_set(error, SW_E_SYNTAX, "%s cannot be used: %s", what, text);
}

/* The blocks that are no certificates (a key in the same file) are passed over. *ret_unusable: how
 * many could not be read while others could. */
static int parse_certificates(const char *pem, const char *what, mbedtls_x509_crt *into,
                              int *ret_unusable, struct sw_error *error)
{
    static const char header[] = "-----BEGIN CERTIFICATE-----";
    static const char footer[] = "-----END CERTIFICATE-----";
    if (!strstr(pem, header)) {
        return sw_error_set(error, SW_E_SYNTAX, "%s is not PEM: there is no \"%s\" in it", what,
                            header);
    }
    int rc = mbedtls_x509_crt_parse(into, pem_bytes(pem), strlen(pem) + 1);
    if (rc >= 0) {
        *ret_unusable = rc;
        return 0;
    }
    if (has_ed25519(pem, header, footer)) {
        return sw_error_set(error, SW_E_SYNTAX,
                            "%s has an Ed25519 key or signature, which is not supported; use ECDSA "
                            "P-256 or RSA",
                            what);
    }
    return explain(error, what, rc);
}

static int parse_key(const char *pem, struct sw_tls_config *config, struct sw_error *error)
{
    static const char header[] = "-----BEGIN PRIVATE KEY-----";
    static const char footer[] = "-----END PRIVATE KEY-----";
    if (!strstr(pem, "PRIVATE KEY-----")) {
        return sw_error_set(error, SW_E_SYNTAX,
                            "private key is not PEM: there is no \"PRIVATE KEY\" in it");
    }
    if (strstr(pem, "ENCRYPTED")) {
        return sw_error_set(error, SW_E_SYNTAX,
                            "private key is encrypted with a password, which is not supported");
    }
#if MBEDTLS_VERSION_MAJOR >= 3
    int rc = mbedtls_pk_parse_key(&config->key, pem_bytes(pem), strlen(pem) + 1, NULL, 0,
                                  mbedtls_ctr_drbg_random, &config->random);
#else
    int rc = mbedtls_pk_parse_key(&config->key, pem_bytes(pem), strlen(pem) + 1, NULL, 0);
#endif
    if (rc && has_ed25519(pem, header, footer)) {
        return sw_error_set(
            error, SW_E_SYNTAX,
            "private key is an Ed25519 key, which is not supported; use ECDSA P-256 "
            "or RSA");
    }
    return rc ? explain(error, "private key", rc) : 0;
}

static int check_pair(struct sw_tls_config *config, struct sw_error *error)
{
#if MBEDTLS_VERSION_MAJOR >= 3
    int rc = mbedtls_pk_check_pair(&config->certificate.pk, &config->key, mbedtls_ctr_drbg_random,
                                   &config->random);
#else
    int rc = mbedtls_pk_check_pair(&config->certificate.pk, &config->key);
#endif
    if (!rc) {
        return 0;
    }
    char subject[160];
    if (mbedtls_x509_dn_gets(subject, sizeof(subject), &config->certificate.subject) < 0) {
        subject[0] = '\0';
    }
    return sw_error_set(error, SW_E_SYNTAX,
                        "private key does not fit the certificate (%s): they are not a pair",
                        subject);
}

static int set_certificate(struct sw_tls_config *config, const char *certificate_pem,
                           const char *key_pem, struct sw_error *error)
{
    if (!certificate_pem != !key_pem) {
        return sw_error_set(error, SW_E_SYNTAX, "%s without %s",
                            certificate_pem ? "certificate" : "private key",
                            certificate_pem ? "its private key" : "its certificate");
    }
    if (!certificate_pem) {
        return 0;
    }
    int unusable = 0;
    int rc =
        parse_certificates(certificate_pem, "certificate", &config->certificate, &unusable, error);
    if (!rc && unusable > 0) {
        rc = sw_error_set(error, SW_E_SYNTAX,
                          "certificate chain cannot be used: %d of its certificates cannot be read",
                          unusable);
    }
    if (!rc) {
        rc = parse_key(key_pem, config, error);
    }
    if (!rc) {
        rc = check_pair(config, error);
    }
    if (rc) {
        return rc;
    }
    config->has_certificate = true;
    config->not_after_us = sw_tls_time_us(&config->certificate.valid_to);
    rc = mbedtls_ssl_conf_own_cert(&config->ssl, &config->certificate, &config->key);
    return rc ? explain(error, "certificate", rc) : 0;
}

static int set_trusted(struct sw_tls_config *config, const char *pem, const char *what,
                       struct sw_error *error)
{
    int rc = parse_certificates(pem, what, &config->trusted, &config->unusable, error);
    if (!rc) {
        mbedtls_ssl_conf_ca_chain(&config->ssl, &config->trusted, NULL);
        mbedtls_ssl_conf_authmode(&config->ssl, MBEDTLS_SSL_VERIFY_REQUIRED);
    }
    return rc;
}

/* As OpenSSL and Go name another file. */
static const char *system_cas(void)
{
    const char *named = getenv("SSL_CERT_FILE");
    return named && named[0] ? named : SYSTEM_CAS;
}

static int set_system_trusted(struct sw_tls_config *config, struct sw_error *error)
{
    const char *path = system_cas();
    SW_AUTO(char, sw_free) pem = NULL;
    size_t len;
    int rc = sw_file_read(path, SYSTEM_CAS_BYTES, &pem, &len, error);
    if (rc) {
        sw_error_prefix(error, "no CA was named, and those of the system cannot be read");
        return rc;
    }
    return set_trusted(config, pem, path, error);
}

/* ---- both kinds ---- */

static int prepare(struct sw_tls_config *config, struct sw_error *error)
{
#if MBEDTLS_VERSION_MAJOR >= 3
    /* TLS 1.3 is built on it. It is the library's own state, made once; more calls do nothing. */
    if (psa_crypto_init() != PSA_SUCCESS) {
        return sw_error_set(error, SW_E_TLS, "TLS cannot be used: no random numbers");
    }
#endif
    int rc =
        mbedtls_ctr_drbg_seed(&config->random, mbedtls_entropy_func, &config->entropy, NULL, 0);
    if (rc) {
        return sw_error_set(error, SW_E_TLS, "TLS cannot be used: no random numbers");
    }
    rc = mbedtls_ssl_config_defaults(
        &config->ssl, config->is_server ? MBEDTLS_SSL_IS_SERVER : MBEDTLS_SSL_IS_CLIENT,
        MBEDTLS_SSL_TRANSPORT_STREAM, MBEDTLS_SSL_PRESET_DEFAULT);
    if (!rc) {
        rc = mbedtls_ssl_conf_alpn_protocols(&config->ssl, config->protocols);
    }
    if (rc) {
        return explain(error, "TLS", rc);
    }
    mbedtls_ssl_conf_rng(&config->ssl, mbedtls_ctr_drbg_random, &config->random);
    mbedtls_ssl_conf_ciphersuites(&config->ssl, ciphers);
    mbedtls_ssl_conf_authmode(&config->ssl, MBEDTLS_SSL_VERIFY_NONE);
#if MBEDTLS_VERSION_MAJOR >= 3
    mbedtls_ssl_conf_min_tls_version(&config->ssl, MBEDTLS_SSL_VERSION_TLS1_2);
    mbedtls_ssl_conf_groups(&config->ssl, groups);
    mbedtls_ssl_conf_sig_algs(&config->ssl, signatures);
#else
    mbedtls_ssl_conf_min_version(&config->ssl, MBEDTLS_SSL_MAJOR_VERSION_3,
                                 MBEDTLS_SSL_MINOR_VERSION_3);
    mbedtls_ssl_conf_curves(&config->ssl, groups);
#endif
#if defined(MBEDTLS_SSL_PROTO_TLS1_3) && defined(MBEDTLS_SSL_SESSION_TICKETS)
    /* Else 3.6 throws them away, and no TLS 1.3 session is ever resumed. */
    mbedtls_ssl_conf_tls13_enable_signal_new_session_tickets(
        &config->ssl, MBEDTLS_SSL_TLS1_3_SIGNAL_NEW_SESSION_TICKETS_ENABLED);
#endif
    return 0;
}

int sw_tls_client_config_new(const struct sw_tls_client_options *options,
                             struct sw_tls_config **ret_config, struct sw_error *error)
{
    SW_AUTO(struct sw_tls_config, sw_tls_config_unref) config = config_new();
    if (options->insecure_skip_verify && options->ca_pem) {
        return sw_error_set(error, SW_E_CONFIG,
                            "a CA is named and its checking switched off: one of both must go");
    }
    int rc = prepare(config, error);
    if (!rc) {
        rc = set_certificate(config, options->certificate_pem, options->key_pem, error);
    }
    if (!rc && !options->insecure_skip_verify) {
        rc = options->ca_pem ? set_trusted(config, options->ca_pem, "CA", error)
                             : set_system_trusted(config, error);
    }
    if (rc) {
        return rc;
    }
    config->sessions = sw_map_new();
    *ret_config = sw_steal(&config);
    return 0;
}

/* Resumption by tickets, so that nothing is kept for clients that may never come back. The keys
 * live and die with the configuration. */
static int set_tickets(struct sw_tls_config *config, struct sw_error *error)
{
    int rc = mbedtls_ssl_ticket_setup(&config->tickets, mbedtls_ctr_drbg_random, &config->random,
                                      MBEDTLS_CIPHER_AES_256_GCM, TICKET_SECONDS);
    if (rc) {
        return explain(error, "TLS", rc);
    }
    mbedtls_ssl_conf_session_tickets_cb(&config->ssl, mbedtls_ssl_ticket_write,
                                        mbedtls_ssl_ticket_parse, &config->tickets);
    return 0;
}

int sw_tls_server_config_new(const struct sw_tls_server_options *options,
                             struct sw_tls_config **ret_config, struct sw_error *error)
{
    SW_AUTO(struct sw_tls_config, sw_tls_config_unref) config = config_new();
    config->is_server = true;
    if (!options->certificate_pem || !options->key_pem) {
        return sw_error_set(error, SW_E_SYNTAX, "a server needs a certificate and its private key");
    }
    int rc = prepare(config, error);
    if (!rc) {
        rc = set_certificate(config, options->certificate_pem, options->key_pem, error);
    }
    if (!rc && options->client_ca_pem) {
        rc = set_trusted(config, options->client_ca_pem, "CA of the clients", error);
    }
    if (!rc) {
        rc = set_tickets(config, error);
    }
    if (rc) {
        return rc;
    }
    *ret_config = sw_steal(&config);
    return 0;
}

/* ---- sessions ---- */

const mbedtls_ssl_session *sw_tls_session_get(const struct sw_tls_config *config, const char *name)
{
    return sw_map_get(config->sessions, name);
}

void sw_tls_session_keep(struct sw_tls_config *config, const char *name,
                         const mbedtls_ssl_context *ssl)
{
    mbedtls_ssl_session *session = SW_NEW(mbedtls_ssl_session);
    mbedtls_ssl_session_init(session);
    if (sw_map_size(config->sessions) >= SESSIONS_MAX && !sw_map_get(config->sessions, name)) {
        session_free(session);
        return;
    }
    if (mbedtls_ssl_get_session(ssl, session)) {
        session_free(session); /* not resumable; what was kept before may still be */
        return;
    }
    session_free(sw_map_set(config->sessions, name, session));
}

void sw_tls_session_forget(struct sw_tls_config *config, const char *name)
{
    session_free(sw_map_remove(config->sessions, name));
}
