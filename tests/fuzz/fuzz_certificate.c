/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificates and keys: the DER of extensions with names in it, and PEM as it comes from files and
 * from kubeconfigs. The first byte says what the rest is.
 *     'x'  DER of extensions
 *     'c'  certificates, and a key for them, in one PEM text
 */
#include "fuzz.h"

#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "net/tls.h"
#include "net/tls_name.h"
#include "net/url.h"

static void walk_names(const uint8_t *bytes, size_t len)
{
    static const char *const hosts[] = {"server.test", "a.wild.test", "127.0.0.1", "::1", ""};
    struct sw_error error;
    for (size_t i = 0; i < SW_ARRAY_SIZE(hosts); i++) {
        int rc = sw_tls_name_check(bytes, len, hosts[i], &error);
        sw_assert(rc == 0 || (rc == SW_E_CERTIFICATE && error.text[0]));
        sw_assert(rc == sw_tls_name_check(bytes, len, hosts[i], NULL));
    }
    struct sw_san_iter iter;
    struct sw_san san;
    if (sw_san_find(bytes, len, &iter)) {
        return;
    }
    /* A name lies within the input, and matches itself if it is one that could be asked for. */
    while (sw_san_next(&iter, &san)) {
        sw_assert(san.bytes >= bytes && san.len <= (size_t)(bytes + len - san.bytes));
        char host[256];
        if (san.kind == SW_SAN_DNS && san.len > 0 && san.len < sizeof(host) &&
            !memchr(san.bytes, '\0', san.len) && san.bytes[san.len - 1] != '.' &&
            san.bytes[0] != '*') {
            memcpy(host, san.bytes, san.len);
            host[san.len] = '\0';
            sw_assert(sw_host_is_ip(host) || sw_san_matches(&san, host));
        }
    }
}

static void read_pem(const char *pem)
{
    struct sw_tls_config *config = NULL;
    struct sw_error error = {0};
    struct sw_tls_client_options trust = {.ca_pem = pem};
    int rc = sw_tls_client_config_new(&trust, &config, &error);
    sw_assert(rc == 0 ? config != NULL : config == NULL && error.text[0]);
    config = sw_tls_config_unref(config);
    struct sw_tls_server_options own = {.certificate_pem = pem, .key_pem = pem};
    rc = sw_tls_server_config_new(&own, &config, &error);
    sw_assert(rc == 0 ? config != NULL : config == NULL && error.text[0]);
    sw_tls_config_unref(config);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    if (len == 0) {
        return 0;
    }
    if (bytes[0] == 'c') {
        SW_AUTO(char, sw_free) pem = sw_strndup((const char *)bytes + 1, len - 1);
        read_pem(pem);
    } else {
        walk_names(bytes + 1, len - 1);
    }
    return 0;
}
