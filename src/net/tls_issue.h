/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making certificates (RFC 5280): an authority, and servers' certificates that it signs. Keys are
 * EC P-256, signatures ECDSA with SHA-256, serial numbers 16 random bytes. Looking at certificates
 * that were made here, too.
 */
#ifndef SW_NET_TLS_ISSUE_H
#define SW_NET_TLS_ISSUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sw_error;

/* PEM texts, new. */
struct sw_tls_pair {
    char *certificate_pem;
    char *key_pem;
};

struct sw_tls_issue_options {
    const char *common_name;             /* told to people; no client looks at it */
    const char *const *dns_names;        /* NULL-terminated; NULL: an authority */
    const struct sw_tls_pair *issuer;    /* NULL: it signs itself */
    int64_t not_before_us, not_after_us; /* since 1970; cut to whole seconds */
};

/* SW_E_TLS with what failed (no random numbers, above all); SW_E_SYNTAX: the issuer cannot be used,
 * or a name is none. */
int sw_tls_issue(const struct sw_tls_issue_options *options, struct sw_tls_pair *ret_pair,
                 struct sw_error *error);
/* Wipes the key. The pair is empty afterwards. */
void sw_tls_pair_done(struct sw_tls_pair *pair);

struct sw_tls_facts {
    int64_t not_before_us, not_after_us;
    bool is_authority;
};

/* Of the first certificate in the text. SW_E_SYNTAX: it cannot be read. */
int sw_tls_facts_of(const char *certificate_pem, struct sw_tls_facts *ret_facts,
                    struct sw_error *error);
/* Whether the key fits the first certificate; SW_E_SYNTAX with what is wrong. */
int sw_tls_pair_check(const struct sw_tls_pair *pair, struct sw_error *error);
/* Whether one of the authorities has signed the first certificate, whatever the time. */
bool sw_tls_is_issued_by(const char *certificate_pem, const char *authorities_pem);
/* Whether the first certificate names the host (RFC 9525). */
bool sw_tls_is_for(const char *certificate_pem, const char *host);

#endif
