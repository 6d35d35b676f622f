/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slipway.yaml, flags and defaults become one set of settings.
 */
#include "runtime/settings.h"

#include <cyaml/cyaml.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <slipway/config.h>

#include "base/config.h"
#include "base/error.h"
#include "base/util.h"
#include "kube/lease_record.h"
#include "net/url.h"
#include "runtime/arguments.h"
#include "runtime/endpoints.h"

/* ---- the file ---- */

struct listener {
    char *bind_address;
};

struct sw_settings_file {
    char *kubeconfig;
    char *namespace_;
    char *module_dir;
    const char **modules;
    unsigned modules_count;
    struct {
        char *bind_address;
        char *cert_dir;
        char *configuration_name;
        unsigned certificates;
        char *secret_name, *service_name;
    } webhook;
    struct listener health_probe;
    struct metrics_file {
        char *bind_address;
        bool is_secure;
        char *cert_dir;
    } metrics;
    struct client_file {
        char *context;
        unsigned watch_list;
        unsigned qps, burst; /* 0: not given */
    } client;
    struct leader_election {
        bool is_enabled;
        char *id;
        char *namespace_;
        uint64_t lease_duration_ms, renew_deadline_ms, retry_period_ms;
    } leader_election;
    struct {
        unsigned level;
        unsigned format;
    } log;
    int64_t stop_delay_ms;
};

#define MOST_REQUESTS 100000

#define OPTIONAL_TEXT (CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL)
#define TEXT(key, structure, member) \
    CYAML_FIELD_STRING_PTR(key, OPTIONAL_TEXT, structure, member, 1, 4096)

static const cyaml_schema_value_t module_name = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, 63),
};

typedef __typeof__(((struct sw_settings_file *)NULL)->webhook) webhook_file;
typedef __typeof__(((struct sw_settings_file *)NULL)->log) log_file;

/* As levels. */
enum { FILES = 1, SELF };
static const cyaml_strval_t certificates[] = {{"files", FILES}, {"self", SELF}};

static const cyaml_schema_field_t webhook_fields[] = {
    TEXT("bindAddress", webhook_file, bind_address),
    TEXT("certDir", webhook_file, cert_dir),
    TEXT("configurationName", webhook_file, configuration_name),
    CYAML_FIELD_ENUM("certificates", CYAML_FLAG_OPTIONAL | CYAML_FLAG_STRICT, webhook_file,
                     certificates, certificates, CYAML_ARRAY_LEN(certificates)),
    TEXT("secretName", webhook_file, secret_name),
    TEXT("serviceName", webhook_file, service_name),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t listener_fields[] = {
    TEXT("bindAddress", struct listener, bind_address),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t metrics_fields[] = {
    TEXT("bindAddress", struct metrics_file, bind_address),
    SW_CONFIG_BOOL("secure", CYAML_FLAG_OPTIONAL, struct metrics_file, is_secure, 1),
    TEXT("certDir", struct metrics_file, cert_dir),
    CYAML_FIELD_END,
};

enum { AUTO = 1, OFF };
static const cyaml_strval_t watch_list[] = {{"auto", AUTO}, {"off", OFF}};

static const cyaml_schema_field_t client_fields[] = {
    TEXT("context", struct client_file, context),
    CYAML_FIELD_ENUM("watchList", CYAML_FLAG_OPTIONAL | CYAML_FLAG_STRICT, struct client_file,
                     watch_list, watch_list, CYAML_ARRAY_LEN(watch_list)),
    SW_CONFIG_INT("qps", CYAML_FLAG_OPTIONAL, struct client_file, qps, 1, MOST_REQUESTS, 0),
    SW_CONFIG_INT("burst", CYAML_FLAG_OPTIONAL, struct client_file, burst, 1, MOST_REQUESTS, 0),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t leader_election_fields[] = {
    SW_CONFIG_BOOL("enabled", CYAML_FLAG_OPTIONAL, struct leader_election, is_enabled, 0),
    TEXT("id", struct leader_election, id),
    TEXT("namespace", struct leader_election, namespace_),
    SW_CONFIG_DURATION("leaseDuration", CYAML_FLAG_OPTIONAL, struct leader_election,
                       lease_duration_ms, 1000, SW_LEASE_DURATION_MAX_MS, 15000),
    SW_CONFIG_DURATION("renewDeadline", CYAML_FLAG_OPTIONAL, struct leader_election,
                       renew_deadline_ms, 500, 600000, 10000),
    SW_CONFIG_DURATION("retryPeriod", CYAML_FLAG_OPTIONAL, struct leader_election, retry_period_ms,
                       100, 600000, 2000),
    CYAML_FIELD_END,
};

/* 0 stands for a key that is not there. */
static const cyaml_strval_t levels[] = {
    {"debug", SW_LEVEL_DEBUG + 1},
    {"info", SW_LEVEL_INFO + 1},
    {"warn", SW_LEVEL_WARN + 1},
    {"error", SW_LEVEL_ERROR + 1},
};
static const cyaml_strval_t formats[] = {
    {"json", SW_LOG_JSON + 1},
    {"console", SW_LOG_CONSOLE + 1},
};

static const cyaml_schema_field_t log_fields[] = {
    CYAML_FIELD_ENUM("level", CYAML_FLAG_OPTIONAL | CYAML_FLAG_STRICT, log_file, level, levels,
                     CYAML_ARRAY_LEN(levels)),
    CYAML_FIELD_ENUM("format", CYAML_FLAG_OPTIONAL | CYAML_FLAG_STRICT, log_file, format, formats,
                     CYAML_ARRAY_LEN(formats)),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t fields[] = {
    TEXT("kubeconfig", struct sw_settings_file, kubeconfig),
    TEXT("namespace", struct sw_settings_file, namespace_),
    TEXT("moduleDir", struct sw_settings_file, module_dir),
    CYAML_FIELD_SEQUENCE("modules", OPTIONAL_TEXT, struct sw_settings_file, modules, &module_name,
                         1, 64),
    CYAML_FIELD_MAPPING("webhook", CYAML_FLAG_OPTIONAL, struct sw_settings_file, webhook,
                        webhook_fields),
    CYAML_FIELD_MAPPING("healthProbe", CYAML_FLAG_OPTIONAL, struct sw_settings_file, health_probe,
                        listener_fields),
    CYAML_FIELD_MAPPING("metrics", CYAML_FLAG_OPTIONAL, struct sw_settings_file, metrics,
                        metrics_fields),
    CYAML_FIELD_MAPPING("client", CYAML_FLAG_OPTIONAL, struct sw_settings_file, client,
                        client_fields),
    CYAML_FIELD_MAPPING("leaderElection", CYAML_FLAG_OPTIONAL, struct sw_settings_file,
                        leader_election, leader_election_fields),
    CYAML_FIELD_MAPPING("log", CYAML_FLAG_OPTIONAL, struct sw_settings_file, log, log_fields),
    SW_CONFIG_DURATION("stopDelay", CYAML_FLAG_OPTIONAL, struct sw_settings_file, stop_delay_ms, 0,
                       60000, -1),
    CYAML_FIELD_END,
};

static const cyaml_schema_value_t schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct sw_settings_file, fields),
};

/* The default file may be missing: then every key has its default. */
static int load_file(const struct sw_arguments *arguments, const char *path,
                     struct sw_settings_file **ret_file, struct sw_error *error)
{
    void *file = NULL;
    int code = sw_config_load(path, &schema, &file, error);

    if (code == -ENOENT && !arguments->values[SW_FLAG_CONFIG])
        code = sw_config_parse(path, "", 0, &schema, &file, error);
    if (!code)
        *ret_file = file;
    return code;
}

/* ---- putting together ---- */

static const char *choose(const struct sw_arguments *arguments, enum sw_flag flag, const char *key)
{
    if (arguments->values[flag])
        return arguments->values[flag];
    return key ? key : sw_flag_default(flag);
}

static int choose_log(const struct sw_arguments *arguments, const struct sw_settings_file *file,
                      struct sw_settings *s, struct sw_error *error)
{
    const char *level = arguments->values[SW_FLAG_LOG_LEVEL];
    const char *format = arguments->values[SW_FLAG_LOG_FORMAT];

    s->log_level = file->log.level ? (enum sw_level)(file->log.level - 1) : SW_LEVEL_INFO;
    if (level && sw_log_level_parse(level, &s->log_level))
        return sw_error_set(error, -EINVAL,
                            "--log-level: expected debug, info, warn or error, got \"%s\"", level);
    s->has_log_format = file->log.format || format;
    if (file->log.format)
        s->log_format = (enum sw_log_format)(file->log.format - 1);
    if (format && sw_log_format_parse(format, &s->log_format))
        return sw_error_set(error, -EINVAL, "--log-format: expected json or console, got \"%s\"",
                            format);
    return 0;
}

static int choose_number(const struct sw_arguments *arguments, enum sw_flag flag, unsigned key,
                         unsigned *ret_number, struct sw_error *error)
{
    const char *text = arguments->values[flag];

    *ret_number = key;
    if (!text && key)
        return 0;
    if (!text)
        text = sw_flag_default(flag);
    char *end = NULL;
    unsigned long number = strspn(text, "0123456789") ? strtoul(text, &end, 10) : 0;
    if (number < 1 || number > MOST_REQUESTS || *end)
        return sw_error_set(error, -EINVAL, "%s: expected a number from 1 to %d, got \"%s\"",
                            sw_flag_name(flag), MOST_REQUESTS, text);
    *ret_number = (unsigned)number;
    return 0;
}

static int choose_client(const struct sw_arguments *arguments, const struct sw_settings_file *file,
                         struct sw_settings *s, struct sw_error *error)
{
    int code =
        choose_number(arguments, SW_FLAG_KUBE_API_QPS, file->client.qps, &s->kube_api_qps, error);

    if (!code)
        code = choose_number(arguments, SW_FLAG_KUBE_API_BURST, file->client.burst,
                             &s->kube_api_burst, error);
    return code;
}

static int choose_certificates(const struct sw_arguments *arguments,
                               const struct sw_settings_file *file, struct sw_settings *s,
                               struct sw_error *error)
{
    const char *flag = arguments->values[SW_FLAG_WEBHOOK_CERTIFICATES];

    s->webhook_is_self_signed =
        flag ? strcmp(flag, "self") == 0 : file->webhook.certificates == SELF;
    if (flag && !s->webhook_is_self_signed && strcmp(flag, "files") != 0)
        return sw_error_set(error, -EINVAL,
                            "--webhook-certificates: expected files or self, got \"%s\"", flag);
    if (!s->webhook_is_self_signed || s->webhook_configuration_name)
        return 0;
    sw_error_set(error, SW_E_CONFIG,
                 "certificates of our own need configurationName too: nobody else writes their "
                 "authority into caBundle");
    if (flag)
        sw_error_prefix(error, "--webhook-certificates");
    else
        sw_config_blame(s->config_path, "webhook.certificates", error);
    return error->code;
}

static void choose_leader_election(const struct sw_arguments *arguments,
                                   const struct sw_settings_file *file, struct sw_settings *s)
{
    const struct leader_election *election = &file->leader_election;

    s->leader_elect = arguments->values[SW_FLAG_LEADER_ELECT]
                          ? sw_arguments_has(arguments, SW_FLAG_LEADER_ELECT)
                          : election->is_enabled;
    s->leader_election_id = choose(arguments, SW_FLAG_LEADER_ELECTION_ID, election->id);
    s->leader_election_namespace = election->namespace_;
    s->lease_duration_ms = election->lease_duration_ms;
    s->renew_deadline_ms = election->renew_deadline_ms;
    s->retry_period_ms = election->retry_period_ms;
}

static void choose_metrics(const struct sw_arguments *arguments,
                           const struct sw_settings_file *file, struct sw_settings *s)
{
    s->metrics_address = choose(arguments, SW_FLAG_METRICS_ADDRESS, file->metrics.bind_address);
    s->metrics_cert_dir = choose(arguments, SW_FLAG_METRICS_CERT_DIR, file->metrics.cert_dir);
    s->metrics_is_secure = arguments->values[SW_FLAG_METRICS_SECURE]
                               ? sw_arguments_has(arguments, SW_FLAG_METRICS_SECURE)
                               : file->metrics.is_secure;
}

/* A socket speaks HTTP or HTTPS. Probes over HTTPS that nobody has asked for would have kubelets
 * restart us for ever. */
static int check_one_address(const struct sw_arguments *arguments, const struct sw_settings *s,
                             struct sw_error *error)
{
    if (!s->metrics_is_secure || sw_address_is_off(s->metrics_address) ||
        strcmp(s->metrics_address, s->health_address) != 0)
        return 0;
    sw_error_set(
        error, SW_E_CONFIG,
        "probes are plain HTTP at %s, and metrics HTTPS: give them another address, or set "
        "metrics.secure to false",
        s->health_address);
    if (arguments->values[SW_FLAG_METRICS_ADDRESS])
        sw_error_prefix(error, "%s", sw_flag_name(SW_FLAG_METRICS_ADDRESS));
    else if (arguments->values[SW_FLAG_HEALTH_ADDRESS])
        sw_error_prefix(error, "%s", sw_flag_name(SW_FLAG_HEALTH_ADDRESS));
    else
        sw_config_blame(s->config_path, "metrics.bindAddress", error);
    return error->code;
}

/* client-go asks for the same, so that a renewal can be tried more than once. */
static int check_times(const struct sw_settings *s, struct sw_error *error)
{
    if (s->lease_duration_ms > s->renew_deadline_ms &&
        s->renew_deadline_ms * 10 > s->retry_period_ms * 12)
        return 0;
    sw_error_set(error, SW_E_CONFIG,
                 "leaseDuration must be longer than renewDeadline, and that longer than 1.2 times "
                 "retryPeriod");
    sw_config_blame(s->config_path, "leaderElection", error);
    return error->code;
}

static int check_address(const char *address, struct sw_error *error)
{
    char host[256];
    uint16_t port;

    return sw_address_is_off(address) ? 0 : sw_address_parse(address, host, &port, error);
}

/* A name becomes part of a path of the API: labels of RFC 1123, one or several. */
static bool are_labels(const char *name, bool may_have_dots)
{
    size_t len = strcspn(name, may_have_dots ? "." : "");
    bool is_label = len > 0 && len <= 63 && name[0] != '-' && name[len - 1] != '-' &&
                    strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") >= len;

    return is_label && (!name[len] || are_labels(name + len + 1, may_have_dots));
}

static int check_label(const char *name, struct sw_error *error)
{
    if (are_labels(name, false))
        return 0;
    return sw_error_set(error, SW_E_CONFIG,
                        "expected a name of at most 63 lower-case letters, digits and -, got "
                        "\"%.64s\"",
                        name);
}

static int check_subdomain(const char *name, struct sw_error *error)
{
    if (strlen(name) <= 253 && are_labels(name, true))
        return 0;
    return sw_error_set(error, SW_E_CONFIG,
                        "expected a name of lower-case letters, digits, - and ., got \"%.64s\"",
                        name);
}

static int check(const struct sw_arguments *arguments, const struct sw_settings *s,
                 struct sw_error *error)
{
    const struct {
        enum sw_flag flag; /* SW_FLAG_COUNT: there is none */
        const char *key;
        const char *value;
        int (*check)(const char *value, struct sw_error *error);
    } texts[] = {
        {SW_FLAG_NAMESPACE, "namespace", s->namespace_, check_label},
        {SW_FLAG_LEADER_ELECTION_ID, "leaderElection.id", s->leader_election_id, check_subdomain},
        {SW_FLAG_COUNT, "leaderElection.namespace", s->leader_election_namespace, check_label},
        {SW_FLAG_WEBHOOK_ADDRESS, "webhook.bindAddress", s->webhook_address, check_address},
        {SW_FLAG_WEBHOOK_CONFIGURATION_NAME, "webhook.configurationName",
         s->webhook_configuration_name, check_subdomain},
        {SW_FLAG_COUNT, "webhook.secretName", s->webhook_secret_name, check_subdomain},
        {SW_FLAG_COUNT, "webhook.serviceName", s->webhook_service_name, check_label},
        {SW_FLAG_HEALTH_ADDRESS, "healthProbe.bindAddress", s->health_address, check_address},
        {SW_FLAG_METRICS_ADDRESS, "metrics.bindAddress", s->metrics_address, check_address},
    };

    for (size_t i = 0; i < SW_ARRAY_SIZE(texts); i++) {
        enum sw_flag flag = texts[i].flag;
        if (!texts[i].value || !texts[i].check(texts[i].value, error))
            continue;
        if (flag != SW_FLAG_COUNT && arguments->values[flag])
            sw_error_prefix(error, "%s", sw_flag_name(flag));
        else
            sw_config_blame(s->config_path, texts[i].key, error);
        return error->code;
    }
    int code = check_times(s, error);
    return code ? code : check_one_address(arguments, s, error);
}

static void choose_all(const struct sw_arguments *arguments, const struct sw_settings_file *file,
                       struct sw_settings *s)
{
    s->kubeconfig = choose(arguments, SW_FLAG_KUBECONFIG, file->kubeconfig);
    s->watch_list = file->client.watch_list != OFF;
    s->context = choose(arguments, SW_FLAG_CONTEXT, file->client.context);
    s->namespace_ = choose(arguments, SW_FLAG_NAMESPACE, file->namespace_);
    s->module_dir = choose(arguments, SW_FLAG_MODULE_DIR, file->module_dir);
    s->modules = (const char *const *)file->modules;
    s->module_count = file->modules_count;
    s->webhook_address = choose(arguments, SW_FLAG_WEBHOOK_ADDRESS, file->webhook.bind_address);
    s->webhook_cert_dir = choose(arguments, SW_FLAG_WEBHOOK_CERT_DIR, file->webhook.cert_dir);
    s->webhook_configuration_name =
        choose(arguments, SW_FLAG_WEBHOOK_CONFIGURATION_NAME, file->webhook.configuration_name);
    s->webhook_secret_name =
        file->webhook.secret_name ? file->webhook.secret_name : "slipway-webhook";
    s->webhook_service_name = file->webhook.service_name ? file->webhook.service_name : "slipway";
    s->health_address = choose(arguments, SW_FLAG_HEALTH_ADDRESS, file->health_probe.bind_address);
    choose_metrics(arguments, file, s);
    s->has_stop_delay = file->stop_delay_ms >= 0;
    s->stop_delay_ms = s->has_stop_delay ? (uint64_t)file->stop_delay_ms : 0;
    choose_leader_election(arguments, file, s);
}

int sw_settings_load(const struct sw_arguments *arguments, struct sw_settings *ret_settings,
                     struct sw_error *error)
{
    struct sw_settings s = {.config_path = choose(arguments, SW_FLAG_CONFIG, NULL)};
    int code = load_file(arguments, s.config_path, &s.file, error);

    if (code)
        return code;
    choose_all(arguments, s.file, &s);
    code = choose_log(arguments, s.file, &s, error);
    if (!code)
        code = choose_client(arguments, s.file, &s, error);
    if (!code)
        code = choose_certificates(arguments, s.file, &s, error);
    if (!code)
        code = check(arguments, &s, error);
    if (code)
        sw_settings_done(&s);
    else
        *ret_settings = s;
    return code;
}

void sw_settings_done(struct sw_settings *settings)
{
    settings->file = sw_config_free(&schema, settings->file);
}

char *sw_settings_module_folder(const struct sw_settings *settings)
{
    const char *slash = strrchr(settings->config_path, '/');
    int len = slash ? (int)(slash - settings->config_path) : 0;

    return slash ? sw_asprintf("%.*s/modules.d", len, settings->config_path)
                 : sw_strdup("modules.d");
}
