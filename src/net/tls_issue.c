/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificates by mbedTLS. 2.28 writes neither subject alternative names nor extended key usage, so
 * both are encoded here.
 */
#include "net/tls_issue.h"

#include <string.h>

#include "base/error.h"
#include "base/time.h"
#include "base/util.h"
#include "net/tls_config.h"
#include "net/tls_mbedtls.h"
#include "net/tls_name.h"

enum {
    PEM_BYTES = 4096, /* with the longest names it has 1.6 KB */
    SERIAL_BYTES = 16,
    NAMES_BYTES = 1024,
    NAME_MAX_BYTES = 253,
};

/* SEQUENCE { id-kp-serverAuth }: RFC 5280 section 4.2.1.12. */
static const unsigned char server_auth[] = {0x30, 0x0a, 0x06, 0x08, 0x2b, 0x06,
                                            0x01, 0x05, 0x05, 0x07, 0x03, 0x01};
static const char oid_subject_alt_name[] = {0x55, 0x1d, 0x11};
static const char oid_extended_key_usage[] = {0x55, 0x1d, 0x25};

/* All that making one needs. */
struct issue {
    const struct sw_tls_issue_options *options;
    mbedtls_entropy_context entropy;
    mbedtls_ctr_drbg_context random;
    mbedtls_pk_context key;
    mbedtls_x509_crt issuer;
    mbedtls_pk_context issuer_key;
    mbedtls_x509write_cert writer;
    unsigned char serial[SERIAL_BYTES];
};

static int explain(struct sw_error *error, int code, const char *what, int rc)
{
    char text[128];

    mbedtls_strerror(rc, text, sizeof(text));
    return sw_error_set(error, code, "%s: %s", what, text);
}

static const unsigned char *bytes_of(const char *text)
{
    return (const unsigned char *)text;
}

static int parse_key(const char *pem, mbedtls_pk_context *key, mbedtls_ctr_drbg_context *random)
{
#if MBEDTLS_VERSION_MAJOR >= 3
    return mbedtls_pk_parse_key(key, bytes_of(pem), strlen(pem) + 1, NULL, 0,
                                mbedtls_ctr_drbg_random, random);
#else
    (void)random;
    return mbedtls_pk_parse_key(key, bytes_of(pem), strlen(pem) + 1, NULL, 0);
#endif
}

/* ---- names ---- */

static size_t put_head(unsigned char *to, unsigned char tag, size_t len)
{
    size_t at = 0;

    to[at++] = tag;
    if (len > 0xff) {
        to[at++] = 0x82;
        to[at++] = (unsigned char)(len >> 8);
    } else if (len > 0x7f) {
        to[at++] = 0x81;
    }
    to[at++] = (unsigned char)(len & 0xff);
    return at;
}

/* GeneralNames ::= SEQUENCE OF [2] IA5String: RFC 5280 section 4.2.1.6. 0: they do not fit. */
static size_t encode_names(const char *const *names, unsigned char der[NAMES_BYTES])
{
    unsigned char body[NAMES_BYTES];
    size_t len = 0;

    for (size_t i = 0; names[i]; i++) {
        size_t name_len = strlen(names[i]);
        if (name_len == 0 || name_len > NAME_MAX_BYTES || len + name_len + 8 > sizeof(body))
            return 0;
        len += put_head(body + len, 0x82, name_len);
        memcpy(body + len, names[i], name_len);
        len += name_len;
    }
    size_t head = put_head(der, 0x30, len);
    memcpy(der + head, body, len);
    return head + len;
}

static int set_names(struct issue *issue, struct sw_error *error)
{
    unsigned char der[NAMES_BYTES];
    size_t len = encode_names(issue->options->dns_names, der);

    if (len == 0)
        return sw_error_set(error, SW_E_SYNTAX, "a certificate for a name that is none");
    int rc = mbedtls_x509write_crt_set_extension(&issue->writer, oid_subject_alt_name,
                                                 sizeof(oid_subject_alt_name), 0, der, len);
    if (!rc)
        rc = mbedtls_x509write_crt_set_extension(&issue->writer, oid_extended_key_usage,
                                                 sizeof(oid_extended_key_usage), 0, server_auth,
                                                 sizeof(server_auth));
    return rc ? explain(error, SW_E_TLS, "names of a certificate", rc) : 0;
}

/* ---- the rest of a certificate ---- */

static int set_serial(struct issue *issue)
{
    int rc = mbedtls_ctr_drbg_random(&issue->random, issue->serial, sizeof(issue->serial));

    if (rc)
        return rc;
    issue->serial[0] =
        (unsigned char)((issue->serial[0] & 0x7f) | 0x40); /* positive, full length */
#if MBEDTLS_VERSION_MAJOR >= 3
    return mbedtls_x509write_crt_set_serial_raw(&issue->writer, issue->serial,
                                                sizeof(issue->serial));
#else
    mbedtls_mpi serial;
    mbedtls_mpi_init(&serial);
    rc = mbedtls_mpi_read_binary(&serial, issue->serial, sizeof(issue->serial));
    if (!rc)
        rc = mbedtls_x509write_crt_set_serial(&issue->writer, &serial);
    mbedtls_mpi_free(&serial);
    return rc;
#endif
}

/* "20060102150405" */
static void put_time(int64_t us, char text[16])
{
    char rfc3339[SW_TIME_SIZE];
    size_t len = 0;

    sw_time_format(us, rfc3339);
    for (const char *c = rfc3339; *c && len < 14; c++)
        if (*c >= '0' && *c <= '9')
            text[len++] = *c;
    text[len] = '\0';
}

static int set_validity(struct issue *issue)
{
    char from[16], to[16];

    put_time(issue->options->not_before_us, from);
    put_time(issue->options->not_after_us, to);
    return mbedtls_x509write_crt_set_validity(&issue->writer, from, to);
}

static int set_subjects(struct issue *issue)
{
    SW_AUTO(char, sw_free) subject = sw_asprintf("CN=%s", issue->options->common_name);
    char issuer[256];
    int rc = mbedtls_x509write_crt_set_subject_name(&issue->writer, subject);

    if (rc || !issue->options->issuer)
        return rc ? rc : mbedtls_x509write_crt_set_issuer_name(&issue->writer, subject);
    rc = mbedtls_x509_dn_gets(issuer, sizeof(issuer), &issue->issuer.subject);
    return rc < 0 ? rc : mbedtls_x509write_crt_set_issuer_name(&issue->writer, issuer);
}

static int set_usage(struct issue *issue)
{
    bool is_authority = !issue->options->dns_names;
    unsigned usage = is_authority ? MBEDTLS_X509_KU_KEY_CERT_SIGN | MBEDTLS_X509_KU_CRL_SIGN
                                  : MBEDTLS_X509_KU_DIGITAL_SIGNATURE;
    /* An authority signs servers' certificates alone. */
    int rc = mbedtls_x509write_crt_set_basic_constraints(&issue->writer, is_authority,
                                                         is_authority ? 0 : -1);

    if (!rc)
        rc = mbedtls_x509write_crt_set_key_usage(&issue->writer, (unsigned char)usage);
    if (!rc)
        rc = mbedtls_x509write_crt_set_subject_key_identifier(&issue->writer);
    if (!rc)
        rc = mbedtls_x509write_crt_set_authority_key_identifier(&issue->writer);
    return rc;
}

static int fill(struct issue *issue, struct sw_error *error)
{
    mbedtls_x509write_cert *writer = &issue->writer;

    mbedtls_x509write_crt_set_version(writer, MBEDTLS_X509_CRT_VERSION_3);
    mbedtls_x509write_crt_set_md_alg(writer, MBEDTLS_MD_SHA256);
    mbedtls_x509write_crt_set_subject_key(writer, &issue->key);
    mbedtls_x509write_crt_set_issuer_key(writer,
                                         issue->options->issuer ? &issue->issuer_key : &issue->key);
    int rc = set_subjects(issue);
    if (!rc)
        rc = set_serial(issue);
    if (!rc)
        rc = set_validity(issue);
    if (!rc)
        rc = set_usage(issue);
    if (rc)
        return explain(error, SW_E_TLS, "contents of a certificate", rc);
    return issue->options->dns_names ? set_names(issue, error) : 0;
}

/* ---- making one ---- */

static int make_key(struct issue *issue, struct sw_error *error)
{
    int rc = mbedtls_pk_setup(&issue->key, mbedtls_pk_info_from_type(MBEDTLS_PK_ECKEY));

    if (!rc)
        rc = mbedtls_ecp_gen_key(MBEDTLS_ECP_DP_SECP256R1, mbedtls_pk_ec(issue->key),
                                 mbedtls_ctr_drbg_random, &issue->random);
    return rc ? explain(error, SW_E_TLS, "key of a certificate", rc) : 0;
}

static int read_issuer(struct issue *issue, struct sw_error *error)
{
    const struct sw_tls_pair *issuer = issue->options->issuer;

    if (!issuer)
        return 0;
    int rc = mbedtls_x509_crt_parse(&issue->issuer, bytes_of(issuer->certificate_pem),
                                    strlen(issuer->certificate_pem) + 1);
    if (rc == 0)
        rc = parse_key(issuer->key_pem, &issue->issuer_key, &issue->random);
    return rc ? explain(error, SW_E_SYNTAX, "the authority cannot be used", rc) : 0;
}

static int write_pems(struct issue *issue, struct sw_tls_pair *ret_pair, struct sw_error *error)
{
    char *certificate = sw_malloc(PEM_BYTES), *key = sw_malloc(PEM_BYTES);
    int rc = mbedtls_x509write_crt_pem(&issue->writer, (unsigned char *)certificate, PEM_BYTES,
                                       mbedtls_ctr_drbg_random, &issue->random);

    if (!rc)
        rc = mbedtls_pk_write_key_pem(&issue->key, (unsigned char *)key, PEM_BYTES);
    if (!rc) {
        ret_pair->certificate_pem = sw_strdup(certificate);
        ret_pair->key_pem = sw_strdup(key);
    }
    sw_free(certificate);
    sw_free_secret(key, PEM_BYTES);
    return rc ? explain(error, SW_E_TLS, "writing a certificate", rc) : 0;
}

static int run(struct issue *issue, struct sw_tls_pair *ret_pair, struct sw_error *error)
{
#if MBEDTLS_VERSION_MAJOR >= 3
    if (psa_crypto_init() != PSA_SUCCESS)
        return sw_error_set(error, SW_E_TLS, "no certificate can be made: no random numbers");
#endif
    if (mbedtls_ctr_drbg_seed(&issue->random, mbedtls_entropy_func, &issue->entropy, NULL, 0))
        return sw_error_set(error, SW_E_TLS, "no certificate can be made: no random numbers");
    int code = make_key(issue, error);
    if (!code)
        code = read_issuer(issue, error);
    if (!code)
        code = fill(issue, error);
    return code ? code : write_pems(issue, ret_pair, error);
}

int sw_tls_issue(const struct sw_tls_issue_options *options, struct sw_tls_pair *ret_pair,
                 struct sw_error *error)
{
    struct issue issue = {.options = options};

    mbedtls_entropy_init(&issue.entropy);
    mbedtls_ctr_drbg_init(&issue.random);
    mbedtls_pk_init(&issue.key);
    mbedtls_x509_crt_init(&issue.issuer);
    mbedtls_pk_init(&issue.issuer_key);
    mbedtls_x509write_crt_init(&issue.writer);
    int code = run(&issue, ret_pair, error);
    /* These wipe what they free. */
    mbedtls_x509write_crt_free(&issue.writer);
    mbedtls_pk_free(&issue.issuer_key);
    mbedtls_x509_crt_free(&issue.issuer);
    mbedtls_pk_free(&issue.key);
    mbedtls_ctr_drbg_free(&issue.random);
    mbedtls_entropy_free(&issue.entropy);
    return code;
}

void sw_tls_pair_done(struct sw_tls_pair *pair)
{
    sw_free(pair->certificate_pem);
    if (pair->key_pem)
        sw_free_secret(pair->key_pem, strlen(pair->key_pem));
    *pair = (struct sw_tls_pair){0};
}

/* ---- looking at one ---- */

static int parse(const char *pem, mbedtls_x509_crt *ret_certificate, struct sw_error *error)
{
    mbedtls_x509_crt_init(ret_certificate);
    int rc = mbedtls_x509_crt_parse(ret_certificate, bytes_of(pem), strlen(pem) + 1);

    return rc ? explain(error, SW_E_SYNTAX, "certificate cannot be read", rc) : 0;
}

int sw_tls_facts_of(const char *certificate_pem, struct sw_tls_facts *ret_facts,
                    struct sw_error *error)
{
    mbedtls_x509_crt certificate;
    int code = parse(certificate_pem, &certificate, error);

    if (!code)
        *ret_facts = (struct sw_tls_facts){
            .not_before_us = sw_tls_time_us(&certificate.valid_from),
            .not_after_us = sw_tls_time_us(&certificate.valid_to),
            .is_authority = certificate.MBEDTLS_PRIVATE(ca_istrue),
        };
    mbedtls_x509_crt_free(&certificate);
    return code;
}

int sw_tls_pair_check(const struct sw_tls_pair *pair, struct sw_error *error)
{
    struct sw_tls_server_options options = {.certificate_pem = pair->certificate_pem,
                                            .key_pem = pair->key_pem};
    struct sw_tls_config *config;
    int code = sw_tls_server_config_new(&options, &config, error);

    if (!code)
        sw_tls_config_unref(config);
    return code;
}

bool sw_tls_is_issued_by(const char *certificate_pem, const char *authorities_pem)
{
    mbedtls_x509_crt certificate, authorities;
    uint32_t flags = 0;
    int code = parse(certificate_pem, &certificate, NULL);
    int authorities_code = parse(authorities_pem, &authorities, NULL);
    bool is = false;

    if (!code && !authorities_code) {
        mbedtls_x509_crt_verify(&certificate, &authorities, NULL, NULL, &flags, NULL, NULL);
        is = (flags & ~(uint32_t)(MBEDTLS_X509_BADCERT_EXPIRED | MBEDTLS_X509_BADCERT_FUTURE)) == 0;
    }
    mbedtls_x509_crt_free(&certificate);
    mbedtls_x509_crt_free(&authorities);
    return is;
}

bool sw_tls_is_for(const char *certificate_pem, const char *host)
{
    mbedtls_x509_crt certificate;
    bool is = !parse(certificate_pem, &certificate, NULL) &&
              !sw_tls_name_check(certificate.v3_ext.p, certificate.v3_ext.len, host, NULL);

    mbedtls_x509_crt_free(&certificate);
    return is;
}
