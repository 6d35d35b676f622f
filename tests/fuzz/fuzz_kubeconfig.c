/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kubeconfigs: any bytes are read or refused with a message that names the file; what is read obeys
 * the rules that the rest relies on. Also base64, by way of the *-data.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "fuzz.h"
#include "kube/base64.h"
#include "kube/kubeconfig.h"

#define CHECK(condition) ((condition) ? (void)0 : abort())

static bool is_absolute(const char *path)
{
    return !path || path[0] == '/';
}

static bool is_something(const char *text)
{
    return !text || text[0];
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct sw_kubeconfig config;
    struct sw_error error = {0};
    char *decoded;
    size_t decoded_len;
    int rc = sw_kubeconfig_parse("a file", (const char *)bytes, len, "/folder", &config, &error);
    if (rc) {
        CHECK(rc == SW_E_SYNTAX || rc == SW_E_CONFIG);
        CHECK(error.code == rc && strncmp(error.text, "a file:", 7) == 0);
    } else {
        CHECK(config.server && config.server[0] && config.cluster && config.context);
        CHECK(is_absolute(config.ca_path) && is_absolute(config.token_path));
        CHECK(is_absolute(config.certificate_path) && is_absolute(config.key_path));
        CHECK(!config.is_insecure || (!config.ca_pem && !config.ca_path));
        CHECK(!config.username || (!config.token && !config.token_path));
        CHECK(is_something(config.token) && is_something(config.namespace_));
        sw_kubeconfig_done(&config);
        CHECK(!config.server);
    }
    if (sw_base64_decode((const char *)bytes, len, &decoded, &decoded_len) == 0) {
        CHECK(decoded_len <= len / 4 * 3 + 3 && decoded[decoded_len] == '\0');
        sw_free(decoded);
    }
    return 0;
}
