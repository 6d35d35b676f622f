/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configurations: any bytes are loaded or refused with a message that names the file and a line
 * that exists. The schema has every type that schemas of slipway use.
 */
#include <stdlib.h>
#include <string.h>

#include <slipway/config.h>

#include "base/config.h"
#include "base/error.h"
#include "base/utf8.h"
#include "base/util.h"
#include "fuzz.h"

struct hook {
    uint16_t port;
    uint64_t timeout_ms;
    bool has_tls;
    char *host;
};

struct config {
    struct hook hook;
    struct hook *spare;
    int8_t small;
    uint32_t flags;
    int level;
    double factor;
    bool is_on;
    char code[4];
    char **words;
    unsigned words_count;
    struct hook *hooks;
    unsigned hooks_count;
};

static const cyaml_strval_t levels[] = {{"debug", 1}, {"info", 2}, {"warn", 4}};

static const cyaml_schema_field_t hook_fields[] = {
    SW_CONFIG_INT("port", CYAML_FLAG_DEFAULT, struct hook, port, 1, 65535, 0),
    SW_CONFIG_DURATION("timeout", CYAML_FLAG_OPTIONAL, struct hook, timeout_ms, 1, INT64_MAX, 5),
    SW_CONFIG_BOOL("tls", CYAML_FLAG_OPTIONAL, struct hook, has_tls, true),
    CYAML_FIELD_STRING_PTR("host", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct hook, host, 1,
                           CYAML_UNLIMITED),
    CYAML_FIELD_END,
};

static const cyaml_schema_value_t word = {CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 0, 9)};
static const cyaml_schema_value_t hook = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct hook, hook_fields),
};

static const cyaml_schema_field_t fields[] = {
    CYAML_FIELD_MAPPING("hook", CYAML_FLAG_OPTIONAL, struct config, hook, hook_fields),
    CYAML_FIELD_MAPPING_PTR("spare", CYAML_FLAG_POINTER_NULL_STR | CYAML_FLAG_OPTIONAL,
                            struct config, spare, hook_fields),
    CYAML_FIELD_INT("small", CYAML_FLAG_OPTIONAL, struct config, small),
    CYAML_FIELD_FLAGS("flags", CYAML_FLAG_OPTIONAL, struct config, flags, levels,
                      SW_ARRAY_SIZE(levels)),
    CYAML_FIELD_ENUM("level", CYAML_FLAG_OPTIONAL, struct config, level, levels,
                     SW_ARRAY_SIZE(levels)),
    CYAML_FIELD_FLOAT("factor", CYAML_FLAG_OPTIONAL, struct config, factor),
    CYAML_FIELD_BOOL("on", CYAML_FLAG_OPTIONAL, struct config, is_on),
    CYAML_FIELD_STRING("code", CYAML_FLAG_OPTIONAL, struct config, code, 0),
    CYAML_FIELD_SEQUENCE("words", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct config, words,
                         &word, 0, 5),
    CYAML_FIELD_SEQUENCE("hooks", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct config, hooks,
                         &hook, 0, CYAML_UNLIMITED),
    CYAML_FIELD_END,
};

static const cyaml_schema_value_t schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct config, fields),
};

static size_t count_lines(const uint8_t *bytes, size_t len)
{
    size_t lines = 1;
    for (size_t i = 0; i < len; i++) {
        /* All that YAML takes for a new line; a UTF-16 text has at most one a byte as well. */
        lines += bytes[i] == '\n' || bytes[i] == '\r' || bytes[i] == 0x85 || bytes[i] == 0xa8 ||
                 bytes[i] == 0xa9;
    }
    return lines;
}

static void check_loaded(const struct config *config)
{
    sw_assert(config->hook.timeout_ms >= 1);
    sw_assert(config->words_count <= 5);
    for (unsigned i = 0; i < config->words_count; i++) {
        sw_assert(strlen(config->words[i]) <= 9);
    }
    for (unsigned i = 0; i < config->hooks_count; i++) {
        sw_assert(config->hooks[i].port >= 1 && config->hooks[i].timeout_ms >= 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    void *value = NULL;
    struct sw_error error = {0};
    int rc = sw_config_parse("f", (const char *)bytes, len, &schema, &value, &error);
    if (rc) {
        char *end;
        sw_assert(rc == SW_E_CONFIG && !value && strncmp(error.text, "f:", 2) == 0);
        unsigned long line = strtoul(error.text + 2, &end, 10);
        sw_assert(line >= 1 && line <= count_lines(bytes, len) && strncmp(end, ": ", 2) == 0);
        sw_assert(sw_utf8_is_valid(error.text, strlen(error.text)));
    } else {
        check_loaded(value);
    }
    sw_config_free(&schema, value);
    return 0;
}
