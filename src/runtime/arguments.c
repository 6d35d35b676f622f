/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flags and help.
 */
#include "runtime/arguments.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/util.h"

enum group {
    WHERE,
    LISTEN,
    CLIENT,
    REPLICAS,
    TALK,
    INSTEAD,
    GROUP_COUNT,
};

static const char *const group_titles[] = {
    [WHERE] = "Where things are",
    [LISTEN] = "What it listens on (\"0\": not at all)",
    [CLIENT] = "How much it asks of the API server",
    [REPLICAS] = "Several replicas",
    [TALK] = "What it says",
    [INSTEAD] = "Instead of running",
};

static const struct flag {
    const char *name;
    const char *value; /* what stands for it in the help; NULL: the flag takes none */
    enum group group;
    const char *key;       /* of the file */
    const char *otherwise; /* the default */
    const char *help[4];   /* lines */
} flags[] = {
    [SW_FLAG_CONFIG] = {"config",
                        "FILE",
                        WHERE,
                        NULL,
                        "/etc/slipway/slipway.yaml",
                        {"configuration; that of a module is modules.d/NAME.yaml",
                         "beside it. May be missing if it is not named here.",
                         "Read again when it changes, and on SIGHUP"}},
    [SW_FLAG_KUBECONFIG] = {"kubeconfig",
                            "FILE",
                            WHERE,
                            "kubeconfig",
                            NULL,
                            {"how to reach the API server. Else: $KUBECONFIG (a list of",
                             "files is merged), the Pod's ServiceAccount,",
                             "~/.kube/config, in this order"}},
    [SW_FLAG_CONTEXT] = {"context",
                         "NAME",
                         WHERE,
                         "client.context",
                         NULL,
                         {"which context of the kubeconfig. Else: its current one"}},
    [SW_FLAG_NAMESPACE] =
        {"namespace", "NAME", WHERE, "namespace", NULL, {"look at this namespace only. Else: all"}},
    [SW_FLAG_MODULE_DIR] = {"module-dir",
                            "DIR",
                            WHERE,
                            "moduleDir",
                            NULL,
                            {"where modules lie as NAME.so. Else: where they were",
                             "installed, or built"}},
    [SW_FLAG_WEBHOOK_ADDRESS] = {"webhook-bind-address",
                                 "ADDRESS",
                                 LISTEN,
                                 "webhook.bindAddress",
                                 ":9443",
                                 {"admission reviews, over TLS"}},
    [SW_FLAG_WEBHOOK_CERT_DIR] = {"webhook-cert-dir",
                                  "DIR",
                                  LISTEN,
                                  "webhook.certDir",
                                  "/etc/slipway/tls",
                                  {"with tls.crt, tls.key and, if there is one, ca.crt; read",
                                   "again when they change"}},
    [SW_FLAG_WEBHOOK_CONFIGURATION_NAME] =
        {"webhook-configuration-name",
         "NAME",
         LISTEN,
         "webhook.configurationName",
         NULL,
         {"keep rules, path and caBundle (ca.crt) of our entries in",
          "the MutatingWebhookConfiguration of this name as they",
          "should be. Else: nobody keeps it. It is never made here"}},
    [SW_FLAG_WEBHOOK_CERTIFICATES] =
        {"webhook-certificates",
         "HOW",
         LISTEN,
         "webhook.certificates",
         "files",
         {"files: those of --webhook-cert-dir. self: made here, kept in",
          "the Secret webhook.secretName, renewed in time, for the",
          "Service webhook.serviceName"}},
    [SW_FLAG_HEALTH_ADDRESS] = {"health-probe-bind-address",
                                "ADDRESS",
                                LISTEN,
                                "healthProbe.bindAddress",
                                ":7713",
                                {"/healthz, /readyz, /readyz?verbose, /readyz/NAME; plain HTTP"}},
    [SW_FLAG_METRICS_ADDRESS] = {"metrics-bind-address",
                                 "ADDRESS",
                                 LISTEN,
                                 "metrics.bindAddress",
                                 ":7712",
                                 {"/metrics, for Prometheus"}},
    [SW_FLAG_METRICS_SECURE] = {"metrics-secure",
                                NULL,
                                LISTEN,
                                "metrics.secure",
                                "true",
                                {"metrics over HTTPS, for those who show a bearer token and may",
                                 "\"get\" /metrics (ClusterRole slipway-metrics-reader).",
                                 "--metrics-secure=false: plain HTTP, for everybody"}},
    [SW_FLAG_METRICS_CERT_DIR] = {"metrics-cert-dir",
                                  "DIR",
                                  LISTEN,
                                  "metrics.certDir",
                                  NULL,
                                  {"with tls.crt and tls.key, read again when they change. Else:",
                                   "a certificate is made at the start, which scrapers cannot",
                                   "verify"}},
    [SW_FLAG_KUBE_API_QPS] = {"kube-api-qps",
                              "NUMBER",
                              CLIENT,
                              "client.qps",
                              "50",
                              {"requests a second; those for the Lease do not count"}},
    [SW_FLAG_KUBE_API_BURST] = {"kube-api-burst",
                                "NUMBER",
                                CLIENT,
                                "client.burst",
                                "100",
                                {"so many at once after a pause"}},
    [SW_FLAG_LEADER_ELECT] = {"leader-elect",
                              NULL,
                              REPLICAS,
                              "leaderElection.enabled",
                              "false",
                              {"write only while holding the Lease; all replicas answer",
                               "reviews. Needed as soon as there are two"}},
    [SW_FLAG_LEADER_ELECTION_ID] = {"leader-election-id",
                                    "NAME",
                                    REPLICAS,
                                    "leaderElection.id",
                                    "slipway",
                                    {"name of the Lease, in our own namespace"}},
    [SW_FLAG_LOG_LEVEL] =
        {"log-level", "LEVEL", TALK, "log.level", "info", {"debug, info, warn or error"}},
    [SW_FLAG_LOG_FORMAT] = {"log-format",
                            "FORMAT",
                            TALK,
                            "log.format",
                            "console on a terminal, else json",
                            {"json or console"}},
    [SW_FLAG_CHECK_CONFIG] = {"check-config",
                              NULL,
                              INSTEAD,
                              NULL,
                              NULL,
                              {"read every configuration file, say what is wrong, end"}},
    [SW_FLAG_LIST_MODULES] =
        {"list-modules", NULL, INSTEAD, NULL, NULL, {"show the modules that were found, end"}},
    [SW_FLAG_DRY_RUN] = {"dry-run",
                         NULL,
                         INSTEAD,
                         NULL,
                         NULL,
                         {"with release-all: show what would be done, do nothing"}},
    [SW_FLAG_TIME_LIMIT] = {"time-limit",
                            "TIME",
                            INSTEAD,
                            NULL,
                            NULL,
                            {"with release-all: in order, and only what still waits after",
                             "so long at once. Else: all at once"}},
    [SW_FLAG_STOP] = {"stop",
                      "NAME",
                      INSTEAD,
                      NULL,
                      NULL,
                      {"with release-all: before, delete the webhook configuration",
                       "webhook.configurationName, scale the Deployment of this",
                       "name in our own namespace to 0, and wait for its Pods"}},
    [SW_FLAG_VERSION] = {"version", NULL, INSTEAD, NULL, NULL, {"show the version, end"}},
    [SW_FLAG_HELP] = {"help", NULL, INSTEAD, NULL, NULL, {"show this, end"}},
};

static const struct {
    const char *name;
    enum sw_command command;
} commands[] = {
    {"release-all", SW_COMMAND_RELEASE_ALL},
};

static bool is_for_release_all_only(size_t flag)
{
    return flag == SW_FLAG_DRY_RUN || flag == SW_FLAG_TIME_LIMIT || flag == SW_FLAG_STOP;
}

/* Which flags mean something to release-all. */
static bool is_for_release_all(size_t flag)
{
    switch (flag) {
    case SW_FLAG_CONFIG:
    case SW_FLAG_KUBECONFIG:
    case SW_FLAG_CONTEXT:
    case SW_FLAG_NAMESPACE:
    case SW_FLAG_KUBE_API_QPS:
    case SW_FLAG_KUBE_API_BURST:
    case SW_FLAG_LOG_LEVEL:
    case SW_FLAG_LOG_FORMAT:
    case SW_FLAG_DRY_RUN:
    case SW_FLAG_TIME_LIMIT:
    case SW_FLAG_STOP:
    case SW_FLAG_VERSION:
    case SW_FLAG_HELP:
        return true;
    default:
        return false;
    }
}

/* ---- parsing ---- */

static int unknown(struct sw_error *error, const char *what, const char *given, const char *nearest,
                   const char *dashes)
{
    if (nearest)
        return sw_error_set(error, -EINVAL, "%s %s: did you mean %s%s?", what, given, dashes,
                            nearest);
    return sw_error_set(error, -EINVAL, "%s %s; slipway --help shows what there is", what, given);
}

static int find_flag(const char *given, const char *name, size_t len, size_t *ret_flag,
                     struct sw_error *error)
{
    SW_AUTO(char, sw_free) word = sw_strndup(name, len);
    const char *nearest = NULL;
    size_t distance = SIZE_MAX;

    for (size_t i = 0; i < SW_FLAG_COUNT; i++) {
        if (strcmp(flags[i].name, word) == 0) {
            *ret_flag = i;
            return 0;
        }
        sw_nearest(word, flags[i].name, &nearest, &distance);
    }
    return unknown(error, "there is no flag", given, nearest, "--");
}

static int set_switch(size_t flag, const char *text, struct sw_arguments *arguments,
                      struct sw_error *error)
{
    if (!text || strcmp(text, "true") == 0 || strcmp(text, "1") == 0)
        arguments->values[flag] = "true";
    else if (strcmp(text, "false") == 0 || strcmp(text, "0") == 0)
        arguments->values[flag] = "false";
    else
        return sw_error_set(error, -EINVAL, "--%s: expected true or false, got \"%s\"",
                            flags[flag].name, text);
    return 0;
}

static int parse_flag(int argc, char *const argv[], int *at, struct sw_arguments *arguments,
                      struct sw_error *error)
{
    const char *given = argv[*at];
    const char *name = given + (given[1] == '-' ? 2 : 1);
    size_t len = strcspn(name, "=");
    const char *value = name[len] ? name + len + 1 : NULL;
    size_t flag = 0;
    int code = find_flag(given, name, len, &flag, error);

    if (code)
        return code;
    if (!flags[flag].value)
        return set_switch(flag, value, arguments, error);
    if (!value && *at + 1 < argc)
        value = argv[++*at];
    if (!value || !value[0])
        return sw_error_set(error, -EINVAL, "--%s needs a value: --%s %s", flags[flag].name,
                            flags[flag].name, flags[flag].value);
    arguments->values[flag] = value;
    return 0;
}

static int parse_command(const char *given, struct sw_arguments *arguments, struct sw_error *error)
{
    const char *nearest = NULL;
    size_t distance = SIZE_MAX;

    for (size_t i = 0; i < SW_ARRAY_SIZE(commands); i++) {
        if (strcmp(commands[i].name, given) == 0) {
            arguments->command = commands[i].command;
            return 0;
        }
        sw_nearest(given, commands[i].name, &nearest, &distance);
    }
    return unknown(error, "there is no command", given, nearest, "slipway ");
}

/* A flag that this command would not look at was meant for something. */
static int check_command(const struct sw_arguments *arguments, struct sw_error *error)
{
    bool is_release_all = arguments->command == SW_COMMAND_RELEASE_ALL;

    for (size_t i = 0; i < SW_FLAG_COUNT; i++)
        if (!is_release_all && sw_arguments_has(arguments, (enum sw_flag)i) &&
            is_for_release_all_only(i))
            return sw_error_set(error, -EINVAL, "--%s goes with slipway release-all only",
                                flags[i].name);
    for (size_t i = 0; i < SW_FLAG_COUNT; i++)
        if (is_release_all && arguments->values[i] && !is_for_release_all(i))
            return sw_error_set(error, -EINVAL, "--%s means nothing to slipway release-all",
                                flags[i].name);
    return 0;
}

int sw_arguments_parse(int argc, char *const argv[], struct sw_arguments *ret_arguments,
                       struct sw_error *error)
{
    struct sw_arguments arguments = {.command = SW_COMMAND_RUN};
    int code = 0;

    for (int at = 1; at < argc && !code; at++) {
        const char *given = argv[at];
        if (given[0] == '-' && given[1])
            code = parse_flag(argc, argv, &at, &arguments, error);
        else
            code = parse_command(given, &arguments, error);
    }
    if (!code)
        code = check_command(&arguments, error);
    if (!code)
        *ret_arguments = arguments;
    return code;
}

bool sw_arguments_has(const struct sw_arguments *arguments, enum sw_flag flag)
{
    return arguments->values[flag] && strcmp(arguments->values[flag], "false") != 0;
}

const char *sw_flag_default(enum sw_flag flag)
{
    /* That of the format depends on where the log goes. */
    return flag == SW_FLAG_LOG_FORMAT ? NULL : flags[flag].otherwise;
}

const char *sw_flag_name(enum sw_flag flag)
{
    static char names[SW_FLAG_COUNT][32];

    if (!names[flag][0]) {
        names[flag][0] = names[flag][1] = '-';
        memcpy(names[flag] + 2, flags[flag].name, strlen(flags[flag].name) + 1);
    }
    return names[flag];
}

/* ---- help ---- */

static void help_of_flag(const struct flag *flag, struct sw_buf *out)
{
    char left[48];
    size_t len = strlen(flag->name);

    sw_assert(len + strlen(flag->value ? flag->value : "") + 4 < sizeof(left));
    memcpy(left, "--", 2);
    memcpy(left + 2, flag->name, len + 1);
    if (flag->value) {
        left[len + 2] = ' ';
        memcpy(left + len + 3, flag->value, strlen(flag->value) + 1);
    }
    sw_buf_printf(out, "  %-36s %s\n", left, flag->help[0]);
    for (size_t i = 1; i < SW_ARRAY_SIZE(flag->help) && flag->help[i]; i++)
        sw_buf_printf(out, "  %-36s %s\n", "", flag->help[i]);
    if (!flag->key && !flag->otherwise)
        return;
    sw_buf_printf(out, "  %-36s [", "");
    if (flag->key)
        sw_buf_printf(out, "key %s", flag->key);
    if (flag->otherwise)
        sw_buf_printf(out, "%sdefault %s", flag->key ? ", " : "", flag->otherwise);
    sw_buf_puts(out, "]\n");
}

static void help_of_group(enum group group, enum sw_command command, struct sw_buf *out)
{
    const char *title = group_titles[group];

    for (size_t i = 0; i < SW_FLAG_COUNT; i++) {
        bool is_shown =
            command == SW_COMMAND_RELEASE_ALL ? is_for_release_all(i) : !is_for_release_all_only(i);
        if (flags[i].group != group || !is_shown)
            continue;
        if (title)
            sw_buf_printf(out, "\n%s\n", title);
        title = NULL;
        help_of_flag(&flags[i], out);
    }
}

static const char run_usage[] =
    "slipway decides when the workloads of a Kubernetes cluster may roll out.\n"
    "\n"
    "Usage\n"
    "  slipway [flags]                      run, until told to stop\n"
    "  slipway release-all [flags]          let go of everything that slipway holds;\n"
    "                                       before it is removed from a cluster\n";

static const char run_examples[] =
    "\n"
    "Every flag but --config and those of the last group has a key in the configuration file;\n"
    "the flag wins. The modules that run are in the file: modules: [coordination, pausing].\n"
    "\n"
    "Examples\n"
    "  from a workstation, on the cluster of the current context, without a webhook:\n"
    "    slipway --webhook-bind-address 0 --log-level debug\n"
    "  as one of several replicas in a cluster:\n"
    "    slipway --leader-elect --webhook-cert-dir /etc/slipway/tls\n"
    "  is the configuration good?\n"
    "    slipway --config ./slipway.yaml --check-config\n"
    "\n"
    "Signals\n"
    "  SIGTERM, SIGINT    stop in order; a second one: at once\n"
    "  SIGHUP             read the configuration again; so does a change of its files. What the\n"
    "                     modules are told, log.level, client and stopDelay hold at once; what\n"
    "                     needs a restart is named in the log; a mistake leaves all as it was\n"
    "  SIGUSR1            log everything; once more: as configured again\n"
    "\n"
    "Exit status: 0 stopped as told, 1 something failed, 2 the command line or a\n"
    "configuration file is wrong.\n";

static const char release_all_usage[] =
    "slipway release-all lets go of every Deployment that slipway holds: it resumes those\n"
    "that slipway paused and removes slipway's annotations. A pause that a person made\n"
    "stays. Stop slipway before, or let --stop do it; else it holds them again.\n"
    "\n"
    "With --time-limit it goes in order: what has nothing to roll at once, of the others in\n"
    "a namespace one at a time, by slipway.dev/order and name, each when the one before is\n"
    "complete. A Deployment with slipway.dev/hold is then left paused, as that wishes.\n"
    "\n"
    "Usage\n"
    "  slipway release-all [--dry-run] [--time-limit TIME] [--stop NAME] [flags]\n";

static const char release_all_examples[] =
    "\n"
    "Exit status: 0 everything is released, 1 something could not be, 2 the command line\n"
    "or a configuration file is wrong.\n";

void sw_arguments_help(enum sw_command command, struct sw_buf *out)
{
    bool is_run = command == SW_COMMAND_RUN;

    sw_buf_puts(out, is_run ? run_usage : release_all_usage);
    for (int group = 0; group < GROUP_COUNT; group++)
        help_of_group((enum group)group, command, out);
    sw_buf_puts(out, is_run ? run_examples : release_all_examples);
}
