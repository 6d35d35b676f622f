/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verdicts on certificates, and words for failures. "certificate verify failed" has cost people
 * days and made them switch verification off; so each message says what was checked, what was found
 * and, where there is one, the usual cause.
 */
#include "net/tls_verify.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/time.h"
#include "base/util.h"
#include "net/tls_config.h"
#include "net/tls_name.h"

#define UNSUPPORTED "a kind of key or signature that is not supported, Ed25519 for example"

#if defined(MBEDTLS_SSL_PROTO_TLS1_3)
#define OUR_VERSIONS "TLS 1.2 or 1.3 (older ones are not safe)"
#else
#define OUR_VERSIONS                                                       \
    "TLS 1.2, the newest that mbedTLS " MBEDTLS_VERSION_STRING " speaks; " \
    "it may demand TLS 1.3 (kube-apiserver: --tls-min-version)"
#endif

/* ---- the certificate ---- */

/* Several things may be wrong at once; all are told. */
SW_PRINTF(2, 3) static void add_reason(struct sw_tls_check *check, const char *format, ...)
{
    char *at = check->why.text;
    size_t room = sizeof(check->why.text);
    size_t len = strlen(at);
    if (len > 0 && len < room - 1) {
        len += (size_t)snprintf(at + len, room - len, "; ");
        len = SW_MIN(len, room - 1);
    }
    va_list args;
    va_start(args, format);
    vsnprintf(at + len, room - len, format, args);
    va_end(args);
    check->why.code = SW_E_CERTIFICATE;
}

static const char *print_dn(const mbedtls_x509_name *name, char text[160])
{
    if (mbedtls_x509_dn_gets(text, 160, name) <= 0) {
        snprintf(text, 160, "(a name that cannot be printed)");
    }
    return text;
}

static bool is_same(const mbedtls_x509_buf *a, const mbedtls_x509_buf *b)
{
    return a->len == b->len && memcmp(a->p, b->p, a->len) == 0;
}

/* "certificate", or for one further up "certificate of CN=issuing CA". */
static const char *call_it(const mbedtls_x509_crt *certificate, int depth, char text[192])
{
    char name[160];
    if (depth == 0) {
        return "certificate";
    }
    snprintf(text, 192, "certificate of %s", print_dn(&certificate->subject, name));
    return text;
}

static bool is_named_like_trusted(const struct sw_tls_config *config,
                                  const mbedtls_x509_crt *certificate)
{
    for (const mbedtls_x509_crt *ca = &config->trusted; ca && ca->raw.p; ca = ca->next) {
        if (is_same(&ca->subject_raw, &certificate->issuer_raw)) {
            return true;
        }
    }
    return false;
}

static void tell_not_trusted(struct sw_tls_check *check, const mbedtls_x509_crt *certificate,
                             int depth)
{
    char name[192], issuer[160];
    const char *it = call_it(certificate, depth, name);
    print_dn(&certificate->issuer, issuer);
    if (is_named_like_trusted(check->config, certificate)) {
        /* Every cluster's CA is called "kubernetes". */
        add_reason(check,
                   "%s is not trusted: a CA named %s is, but with another key (was the CA "
                   "replaced, or is this another cluster?)",
                   it, issuer);
    } else if (depth == 0 && is_same(&certificate->issuer_raw, &certificate->subject_raw)) {
        add_reason(check,
                   "certificate is not trusted: it is self-signed by %s, which is not among "
                   "the CAs",
                   issuer);
    } else {
        add_reason(check, "%s is not trusted: its issuer %s is not among the CAs", it, issuer);
    }
    if (check->config->unusable > 0) {
        add_reason(check,
                   "%d of the trusted certificates cannot be read (Ed25519 is not supported)",
                   check->config->unusable);
    }
}

static void check_time(struct sw_tls_check *check, const mbedtls_x509_crt *certificate, int depth,
                       uint32_t *flags)
{
    char name[192], date[SW_TIME_SIZE], now[SW_TIME_SIZE];
    int64_t from = sw_tls_time_us(&certificate->valid_from);
    int64_t to = sw_tls_time_us(&certificate->valid_to);
    *flags &= ~(uint32_t)(MBEDTLS_X509_BADCERT_EXPIRED | MBEDTLS_X509_BADCERT_FUTURE);
    sw_time_format(check->now_us, now);
    if (check->now_us > to) {
        sw_time_format(to, date);
        add_reason(check, "%s expired on %s (now it is %s)", call_it(certificate, depth, name),
                   date, now);
        *flags |= MBEDTLS_X509_BADCERT_EXPIRED;
    } else if (check->now_us < from) {
        sw_time_format(from, date);
        add_reason(check, "%s is not valid before %s (now it is %s)",
                   call_it(certificate, depth, name), date, now);
        *flags |= MBEDTLS_X509_BADCERT_FUTURE;
    }
}

static void check_name(struct sw_tls_check *check, const mbedtls_x509_crt *certificate,
                       uint32_t *flags)
{
    struct sw_error error;
    *flags &= ~(uint32_t)MBEDTLS_X509_BADCERT_CN_MISMATCH;
    if (check->host &&
        sw_tls_name_check(certificate->v3_ext.p, certificate->v3_ext.len, check->host, &error)) {
        add_reason(check, "%s", error.text);
        *flags |= MBEDTLS_X509_BADCERT_CN_MISMATCH;
    }
}

/* Usage is judged by mbedTLS after the callback, the others before it. */
static const struct {
    uint32_t flag;
    const char *words;
} other_reasons[] = {
    {MBEDTLS_X509_BADCERT_BAD_MD, "is signed with a hash that is no longer accepted (SHA-1, MD5)"},
    {MBEDTLS_X509_BADCERT_BAD_PK, "is signed by a kind of key that is not accepted"},
    {MBEDTLS_X509_BADCERT_BAD_KEY, "has a key that is too short or on an unknown curve"},
    {MBEDTLS_X509_BADCERT_KEY_USAGE, "may not be used for this (key usage)"},
    {MBEDTLS_X509_BADCERT_EXT_KEY_USAGE, "may not be used for this (extended key usage)"},
    {MBEDTLS_X509_BADCERT_NS_CERT_TYPE, "may not be used for this (Netscape certificate type)"},
};

int sw_tls_verify(void *arg, mbedtls_x509_crt *certificate, int depth, uint32_t *flags)
{
    struct sw_tls_check *check = arg;
    char name[192];
    if (!certificate->raw.p) {
        /* It was shown, but mbedTLS cannot read it, and what it cannot read it passes over. */
        add_reason(check, "certificate has " UNSUPPORTED);
        return 0;
    }
    check_time(check, certificate, depth, flags);
    if (*flags & MBEDTLS_X509_BADCERT_NOT_TRUSTED) {
        tell_not_trusted(check, certificate, depth);
    }
    for (size_t i = 0; i < SW_ARRAY_SIZE(other_reasons); i++) {
        if (*flags & other_reasons[i].flag) {
            add_reason(check, "%s %s", call_it(certificate, depth, name), other_reasons[i].words);
        }
    }
    if (depth == 0) {
        check_name(check, certificate, flags);
    }
    return 0;
}

static void explain_certificate(const struct sw_tls_failure *failure, struct sw_error *error)
{
    struct sw_tls_check check = *failure->check;
    uint32_t flags = mbedtls_ssl_get_verify_result(failure->ssl);
    for (size_t i = 0; i < SW_ARRAY_SIZE(other_reasons) && check.why.text[0] == '\0'; i++) {
        if (flags & other_reasons[i].flag) {
            add_reason(&check, "certificate %s", other_reasons[i].words);
        }
    }
    sw_error_set(error, SW_E_CERTIFICATE, "%s",
                 check.why.text[0] ? check.why.text : "certificate was refused");
}

/* ---- alerts ---- */

static const char *peer_of(const struct sw_tls_failure *failure)
{
    return failure->check->config->is_server ? "client" : "server";
}

enum {
    ALERT_CERTIFICATE_REQUIRED = 116, /* TLS 1.3; 2.28 has no name for it */
};

/* Before the hellos are done an alert is about what we offered, later about what we showed. */
static bool is_past_hellos(const struct sw_tls_failure *failure)
{
    return failure->ssl->MBEDTLS_PRIVATE(state) > MBEDTLS_SSL_SERVER_HELLO_DONE;
}

static void explain_no_common_ground(const struct sw_tls_failure *failure, struct sw_error *error)
{
    const struct sw_tls_config *config = failure->check->config;
    if (config->is_server) {
        sw_error_set(error, SW_E_TLS,
                     "TLS handshake failed: the client shares no cipher or curve with us");
    } else if (!is_past_hellos(failure)) {
        sw_error_set(
            error, SW_E_TLS,
            "TLS handshake failed: the server shares no cipher, curve or signature with us "
            "(a server certificate with an Ed25519 key is not supported)");
    } else if (!config->has_certificate) {
        sw_error_set(error, SW_E_TLS,
                     "TLS handshake failed: the server demands a client certificate");
    } else {
        sw_error_set(error, SW_E_TLS,
                     "TLS handshake failed: the server refused it, perhaps for our "
                     "client certificate (alert handshake_failure)");
    }
}

static void explain_alert(const struct sw_tls_failure *failure, int alert, struct sw_error *error)
{
    static const struct {
        int alert;
        const char *words;
    } certificate_alerts[] = {
        {MBEDTLS_SSL_ALERT_MSG_BAD_CERT, "bad certificate"},
        {MBEDTLS_SSL_ALERT_MSG_UNSUPPORTED_CERT, "unsupported certificate"},
        {MBEDTLS_SSL_ALERT_MSG_CERT_REVOKED, "certificate revoked"},
        {MBEDTLS_SSL_ALERT_MSG_CERT_EXPIRED, "certificate expired"},
        {MBEDTLS_SSL_ALERT_MSG_CERT_UNKNOWN, "certificate unknown"},
        {MBEDTLS_SSL_ALERT_MSG_UNKNOWN_CA, "unknown CA"},
        {MBEDTLS_SSL_ALERT_MSG_ACCESS_DENIED, "access denied"},
        {MBEDTLS_SSL_ALERT_MSG_DECRYPT_ERROR, "a signature that it cannot verify"},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(certificate_alerts); i++) {
        if (certificate_alerts[i].alert == alert) {
            sw_error_set(error, SW_E_TLS,
                         "TLS handshake failed: the %s does not accept our certificate: %s",
                         peer_of(failure), certificate_alerts[i].words);
            return;
        }
    }
    switch (alert) {
    case MBEDTLS_SSL_ALERT_MSG_PROTOCOL_VERSION:
        sw_error_set(error, SW_E_TLS, "TLS handshake failed: the %s does not accept " OUR_VERSIONS,
                     peer_of(failure));
        return;
    case MBEDTLS_SSL_ALERT_MSG_HANDSHAKE_FAILURE:
    case MBEDTLS_SSL_ALERT_MSG_INSUFFICIENT_SECURITY:
        explain_no_common_ground(failure, error);
        return;
    case ALERT_CERTIFICATE_REQUIRED:
        sw_error_set(error, SW_E_TLS,
                     "TLS handshake failed: the server demands a client certificate");
        return;
    case MBEDTLS_SSL_ALERT_MSG_UNRECOGNIZED_NAME:
        sw_error_set(error, SW_E_TLS, "TLS handshake failed: the server does not know the name %s",
                     failure->check->host);
        return;
    case MBEDTLS_SSL_ALERT_MSG_NO_APPLICATION_PROTOCOL:
        sw_error_set(error, SW_E_TLS, "TLS handshake failed: the %s does not speak HTTP/1.1",
                     peer_of(failure));
        return;
    default:
        sw_error_set(error, SW_E_TLS, "TLS handshake failed: the %s sent alert %d",
                     peer_of(failure), alert);
        return;
    }
}

/* ---- all failures ---- */

static bool begins_with(const struct sw_tls_failure *failure, const char *text)
{
    size_t len = strlen(text);
    return failure->first_len >= len && memcmp(failure->first, text, len) == 0;
}

static bool speaks_plain_http(const struct sw_tls_failure *failure)
{
    static const char *const beginnings[] = {"HTTP/", "GET ", "POST ", "PUT ", "HEAD ", "PATCH"};
    for (size_t i = 0; i < SW_ARRAY_SIZE(beginnings); i++) {
        if (begins_with(failure, beginnings[i])) {
            return true;
        }
    }
    return false;
}

static void explain_end(const struct sw_tls_failure *failure, struct sw_error *error)
{
    if (failure->lower_code) {
        sw_error_set(error, failure->lower_code, "TLS handshake failed: %s",
                     sw_strerror(failure->lower_code));
    } else {
        sw_error_set(error, SW_E_TRUNCATED, "TLS handshake failed: the %s closed the connection%s",
                     peer_of(failure), failure->first_len ? " in the middle of it" : " at once");
    }
}

void sw_tls_explain(const struct sw_tls_failure *failure, struct sw_error *error)
{
    if (speaks_plain_http(failure)) {
        sw_error_set(error, SW_E_TLS, "TLS handshake failed: the %s speaks plain HTTP, not TLS",
                     peer_of(failure));
        return;
    }
    char text[128];
    /* Codes of lower layers are added in the low seven bits. */
    switch (-(-failure->code & 0xff80)) {
    case 0:
        explain_end(failure, error);
        return;
    case MBEDTLS_ERR_X509_CERT_VERIFY_FAILED:
    case SW_MBEDTLS_ERR_CERTIFICATE: /* the chain is good, its use is not */
        explain_certificate(failure, error);
        return;
    case MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE:
        explain_alert(failure, failure->ssl->MBEDTLS_PRIVATE(in_msg)[1], error);
        return;
    case SW_MBEDTLS_ERR_VERSION:
        sw_error_set(error, SW_E_TLS, "TLS handshake failed: the %s does not offer " OUR_VERSIONS,
                     peer_of(failure));
        return;
    case MBEDTLS_ERR_X509_UNKNOWN_SIG_ALG:
    case MBEDTLS_ERR_PK_UNKNOWN_PK_ALG:
    case MBEDTLS_ERR_PK_UNKNOWN_NAMED_CURVE:
        sw_error_set(error, SW_E_CERTIFICATE, "the %s's certificate has " UNSUPPORTED,
                     peer_of(failure));
        return;
    case MBEDTLS_ERR_SSL_NO_CLIENT_CERTIFICATE:
        sw_error_set(error, SW_E_CERTIFICATE, "the client shows no certificate");
        return;
    default:
        mbedtls_strerror(failure->code, text, sizeof(text));
        sw_error_set(error, SW_E_TLS, "TLS handshake failed: %s", text);
        return;
    }
}
