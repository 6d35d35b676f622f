/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificates that are made here, looked at by openssl.
 */
#include "net/tls_issue.h"

#include "base/error.h"
#include "base/util.h"

#include "../test.h"

#define HOUR_US INT64_C(3600000000)
#define NOW_US INT64_C(1767225600000000) /* 2026-01-01 */
#define SHELL_BYTES 8192

static const char *const names[] = {"slipway.kube-system.svc",
                                    "slipway.kube-system.svc.cluster.local", NULL};

static void issue(const struct sw_tls_issue_options *options, struct sw_tls_pair *pair)
{
    struct sw_error error = {0};

    if (sw_tls_issue(options, pair, &error))
        fail_msg("%s", error.text);
}

static void authority(const char *name, struct sw_tls_pair *pair)
{
    struct sw_tls_issue_options options = {.common_name = name,
                                           .not_before_us = NOW_US - HOUR_US,
                                           .not_after_us = NOW_US + 24 * HOUR_US};
    issue(&options, pair);
}

static void server(const struct sw_tls_pair *issuer, const char *const *dns_names,
                   struct sw_tls_pair *pair)
{
    struct sw_tls_issue_options options = {.common_name = "slipway",
                                           .dns_names = dns_names,
                                           .issuer = issuer,
                                           .not_before_us = NOW_US - HOUR_US,
                                           .not_after_us = NOW_US + HOUR_US};
    issue(&options, pair);
}

/* What the shell prints, with ca.pem, ca.key, tls.pem and tls.key in its folder. */
static void shell(const struct sw_tls_pair *ca, const struct sw_tls_pair *tls, const char *script,
                  char output[SHELL_BYTES])
{
    const struct {
        const char *name, *text;
    } files[] = {{"ca.pem", ca->certificate_pem},
                 {"ca.key", ca->key_pem},
                 {"tls.pem", tls->certificate_pem},
                 {"tls.key", tls->key_pem}};
    char *folder = test_folder_new();

    for (size_t i = 0; i < SW_ARRAY_SIZE(files); i++) {
        SW_AUTO(char, sw_free) path = sw_asprintf("%s/%s", folder, files[i].name);
        test_write_file(path, files[i].text, strlen(files[i].text));
    }
    SW_AUTO(char, sw_free) command = sw_asprintf("cd %s && exec 2>&1 && %s", folder, script);
    FILE *pipe = popen(command, "re");
    assert_non_null(pipe);
    size_t len = fread(output, 1, SHELL_BYTES - 1, pipe);
    output[len] = '\0';
    int status = pclose(pipe);
    if (status)
        fail_msg("%s: status %d: %s", script, status, output);
    test_folder_done(folder);
}

static void expect(const char *output, const char *text)
{
    if (!strstr(output, text))
        fail_msg("\"%s\" is not in: %s", text, output);
}

TEST(are_accepted_by_openssl)
{
    struct sw_tls_pair ca, tls;
    char output[SHELL_BYTES];

    authority("slipway CA", &ca);
    server(&ca, names, &tls);
    shell(&ca, &tls,
          "openssl verify -x509_strict -purpose sslserver -verify_hostname slipway.kube-system.svc "
          "-attime 1767225600 -CAfile ca.pem tls.pem",
          output);
    expect(output, "tls.pem: OK");
    shell(&ca, &tls,
          "openssl verify -verify_hostname slipway.kube-system.svc.cluster.local "
          "-attime 1767225600 -CAfile ca.pem tls.pem",
          output);
    expect(output, "tls.pem: OK");
    shell(&ca, &tls,
          "! openssl verify -verify_hostname slipway -attime 1767225600 -CAfile ca.pem tls.pem",
          output);
    expect(output, "hostname mismatch");
    shell(&ca, &tls, "openssl ec -in tls.key -check -noout && openssl ec -in ca.key -check -noout",
          output);
    expect(output, "EC Key valid");
    sw_tls_pair_done(&ca);
    sw_tls_pair_done(&tls);
}

TEST(say_what_they_are_for)
{
    struct sw_tls_pair ca, tls;
    char output[SHELL_BYTES];

    authority("slipway CA", &ca);
    server(&ca, names, &tls);
    shell(&ca, &tls, "openssl x509 -in ca.pem -noout -text -nameopt RFC2253", output);
    expect(output, "Subject: CN=slipway CA");
    expect(output, "CA:TRUE, pathlen:0");
    expect(output, "Certificate Sign, CRL Sign");
    expect(output, "ASN1 OID: prime256v1");
    expect(output, "ecdsa-with-SHA256");
    expect(output, "Not Before: Dec 31 23:00:00 2025 GMT");
    expect(output, "Not After : Jan  2 00:00:00 2026 GMT");
    shell(&ca, &tls, "openssl x509 -in tls.pem -noout -text -nameopt RFC2253", output);
    expect(output, "Issuer: CN=slipway CA");
    expect(output, "CA:FALSE");
    expect(output, "Digital Signature");
    expect(output, "TLS Web Server Authentication");
    expect(output, "DNS:slipway.kube-system.svc, DNS:slipway.kube-system.svc.cluster.local");
    expect(output, "X509v3 Subject Key Identifier");
    expect(output, "X509v3 Authority Key Identifier");
    sw_tls_pair_done(&ca);
    sw_tls_pair_done(&tls);
}

TEST(have_serial_numbers_of_their_own)
{
    struct sw_tls_pair ca, tls;
    char one[SHELL_BYTES], two[SHELL_BYTES];

    authority("slipway CA", &ca);
    server(&ca, names, &tls);
    shell(&ca, &tls, "openssl x509 -in ca.pem -noout -serial", one);
    shell(&ca, &tls, "openssl x509 -in tls.pem -noout -serial", two);
    assert_string_not_equal(one, two);
    assert_int_equal(strlen(one), strlen("serial=\n") + 32);
    assert_int_equal(strlen(two), strlen("serial=\n") + 32);
    sw_tls_pair_done(&ca);
    sw_tls_pair_done(&tls);
}

TEST(take_names_of_any_length_that_dns_allows)
{
    char longest[254];
    const char *const long_names[] = {longest, longest, "a", NULL};
    struct sw_tls_pair ca, tls;
    char output[SHELL_BYTES];
    struct sw_error error = {0};

    for (size_t len = 1; len < sizeof(longest); len++) {
        bool is_shown = len == 1 || len == 126 || len == 127 || len == 128 || len == 253;
        longest[len - 1] = 'a';
        longest[len] = '\0';
        if (!is_shown)
            continue;
        authority("slipway CA", &ca);
        server(&ca, long_names, &tls);
        shell(&ca, &tls, "openssl x509 -in tls.pem -noout -ext subjectAltName", output);
        expect(output, longest);
        assert_true(sw_tls_is_for(tls.certificate_pem, "a"));
        sw_tls_pair_done(&ca);
        sw_tls_pair_done(&tls);
    }
    const char *const bad[] = {"", NULL};
    struct sw_tls_issue_options options = {.common_name = "x", .dns_names = bad};
    assert_int_equal(sw_tls_issue(&options, &tls, &error), SW_E_SYNTAX);
}

TEST(can_be_told_apart)
{
    struct sw_tls_pair one, two, tls;
    struct sw_tls_facts facts;
    struct sw_error error = {0};

    authority("slipway CA", &one);
    authority("slipway CA", &two); /* of the same name */
    server(&one, names, &tls);
    SW_AUTO(char, sw_free) both = sw_asprintf("%s%s", two.certificate_pem, one.certificate_pem);
    assert_true(sw_tls_is_issued_by(tls.certificate_pem, one.certificate_pem));
    assert_false(sw_tls_is_issued_by(tls.certificate_pem, two.certificate_pem));
    assert_true(sw_tls_is_issued_by(tls.certificate_pem, both));
    assert_false(sw_tls_is_issued_by(tls.certificate_pem, "nothing"));
    assert_true(sw_tls_is_for(tls.certificate_pem, "slipway.kube-system.svc"));
    assert_false(sw_tls_is_for(tls.certificate_pem, "slipway.other.svc"));
    assert_int_equal(sw_tls_facts_of(one.certificate_pem, &facts, &error), 0);
    assert_true(facts.is_authority);
    assert_true(facts.not_before_us == NOW_US - HOUR_US);
    assert_true(facts.not_after_us == NOW_US + 24 * HOUR_US);
    assert_int_equal(sw_tls_facts_of(tls.certificate_pem, &facts, &error), 0);
    assert_false(facts.is_authority);
    assert_int_equal(sw_tls_facts_of("nothing", &facts, &error), SW_E_SYNTAX);
    assert_int_equal(sw_tls_pair_check(&tls, &error), 0);
    struct sw_tls_pair mixed = {tls.certificate_pem, one.key_pem};
    assert_int_equal(sw_tls_pair_check(&mixed, &error), SW_E_SYNTAX);
    sw_tls_pair_done(&one);
    sw_tls_pair_done(&two);
    sw_tls_pair_done(&tls);
    assert_null(tls.key_pem);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("tls_issue: certificates", are_accepted_by_openssl),
        CASE("tls_issue: certificates", say_what_they_are_for),
        CASE("tls_issue: certificates", have_serial_numbers_of_their_own),
        CASE("tls_issue: certificates", take_names_of_any_length_that_dns_allows),
        CASE("tls_issue: certificates", can_be_told_apart),
    };
    return RUN(tests);
}
