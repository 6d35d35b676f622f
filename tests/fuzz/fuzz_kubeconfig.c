/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kubeconfigs: any bytes are read or refused with a message that names the file; what is read obeys
 * the rules that the rest relies on. With a second file the first one still counts. Also base64, by
 * way of the *-data.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "fuzz.h"
#include "kube/base64.h"
#include "kube/kubeconfig.h"
#include "net/http.h"

#define CHECK(condition) ((condition) ? (void)0 : abort())

static bool is_absolute(const char *path)
{
    return !path || path[0] == '/';
}

static bool is_something(const char *text)
{
    return !text || text[0];
}

static void check_exec(const struct sw_kubeconfig_exec *exec)
{
    CHECK(exec->command && exec->command[0] && exec->api_version);
    CHECK(!strchr(exec->command, '/') || exec->command[0] == '/');
    CHECK(exec->args && exec->env);
    for (char **variable = exec->env; *variable; variable++) {
        CHECK(strchr(*variable, '=') > *variable);
    }
}

/* All of it may be sent as it is. */
static void check_impersonation(const struct sw_kubeconfig *config)
{
    CHECK((config->impersonation_count > 0) == (config->as != NULL));
    for (size_t i = 0; i < config->impersonation_count; i++) {
        CHECK(sw_http_is_token(config->impersonation[i].name));
        CHECK(strncmp(config->impersonation[i].name, "Impersonate-", 12) == 0);
        CHECK(sw_http_is_field_value(config->impersonation[i].value));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct sw_kubeconfig config;
    struct sw_error error = {0};
    char *context = NULL;
    char *decoded;
    size_t decoded_len;
    struct sw_kubeconfig_text text = {"a file", (const char *)bytes, len, "/folder"};
    int rc = sw_kubeconfig_parse(&text, 1, NULL, &config, &error);
    if (rc) {
        CHECK(rc == SW_E_SYNTAX || rc == SW_E_CONFIG);
        CHECK(error.code == rc && strncmp(error.text, "a file:", 7) == 0);
    } else {
        CHECK(config.server && config.server[0] && config.cluster && config.context);
        CHECK(is_absolute(config.ca_path) && is_absolute(config.token_path));
        CHECK(is_absolute(config.certificate_path) && is_absolute(config.key_path));
        CHECK(!config.is_insecure || (!config.ca_pem && !config.ca_path));
        CHECK(!config.username || (!config.token && !config.token_path));
        if (config.exec) {
            check_exec(config.exec);
        }
        check_impersonation(&config);
        CHECK(is_something(config.token) && is_something(config.namespace_));
        context = sw_strdup(config.context);
        sw_kubeconfig_done(&config);
        CHECK(!config.server);
    }
    static const char other[] = "current-context: zzz\nusers: [{name: u, user: {token: zzz}}]\n";
    struct sw_kubeconfig_text texts[] = {text, {"b file", other, sizeof(other) - 1, "/other"}};
    if (sw_kubeconfig_parse(texts, 2, NULL, &config, &error) == 0) {
        CHECK(!context || strcmp(config.context, context) == 0);
        sw_kubeconfig_done(&config);
    }
    sw_free(context);
    if (sw_base64_decode((const char *)bytes, len, &decoded, &decoded_len) == 0) {
        CHECK(decoded_len <= len / 4 * 3 + 3 && decoded[decoded_len] == '\0');
        sw_free(decoded);
    }
    return 0;
}
