/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the command line, as kubectl's: --flag VALUE, --flag=VALUE, -f VALUE, -fVALUE, -f=VALUE,
 * switches in one word (-Aw), flags before and behind names.
 */
#include "options.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/nearest.h"
#include "base/time.h"
#include "base/util.h"

bool ks_takes(const struct ks_command *command, enum ks_flag flag)
{
    return ks_flags[flag].is_global || (command && (command->flags & 1U << flag));
}

const struct ks_command *ks_command_find(const char *name)
{
    for (size_t i = 0; i < KS_COMMAND_COUNT; i++)
        if (strcmp(ks_commands[i].name, name) == 0)
            return &ks_commands[i];
    return NULL;
}

enum ks_command_id ks_command_id(const struct ks_command *command)
{
    return (enum ks_command_id)(command - ks_commands);
}

/* ---- flags ---- */

struct words {
    int argc;
    char *const *argv;
    int at;
};

static int unknown_flag(const char *given, const char *name, size_t len, struct sw_error *error)
{
    SW_AUTO(char, sw_free) word = sw_strndup(name, len);
    const char *nearest = NULL;
    size_t distance = SIZE_MAX;

    for (size_t i = 0; i < KS_FLAG_COUNT; i++)
        sw_nearest(word, ks_flags[i].name, &nearest, &distance);
    if (nearest)
        return sw_error_set(error, -EINVAL, "there is no flag %s: did you mean --%s?", given,
                            nearest);
    return sw_error_set(error, -EINVAL, "there is no flag %s; kubectl slipway --help shows all",
                        given);
}

static int set_flag(struct words *words, enum ks_flag flag, const char *value,
                    struct ks_options *options, struct sw_error *error)
{
    const struct ks_flag_text *text = &ks_flags[flag];

    if (!text->value) {
        if (value && strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
            return sw_error_set(error, -EINVAL, "--%s: expected true or false, got \"%s\"",
                                text->name, value);
        options->values[flag] = value && strcmp(value, "false") == 0 ? NULL : "true";
        return 0;
    }
    if (!value && text->without_value)
        value = text->without_value;
    if (!value && words->at + 1 < words->argc)
        value = words->argv[++words->at];
    if (!value || !value[0])
        return sw_error_set(error, -EINVAL, "--%s needs a value: --%s %s", text->name, text->name,
                            text->value);
    options->values[flag] = value;
    return 0;
}

static int long_flag(struct words *words, const char *given, struct ks_options *options,
                     struct sw_error *error)
{
    const char *name = given + 2;
    size_t len = strcspn(name, "=");
    const char *value = name[len] ? name + len + 1 : NULL;

    for (size_t i = 0; i < KS_FLAG_COUNT; i++)
        if (strlen(ks_flags[i].name) == len && memcmp(ks_flags[i].name, name, len) == 0)
            return set_flag(words, (enum ks_flag)i, value, options, error);
    return unknown_flag(given, name, len, error);
}

static int short_flags(struct words *words, const char *given, struct ks_options *options,
                       struct sw_error *error)
{
    for (const char *p = given + 1; *p; p++) {
        size_t i = 0;
        while (i < KS_FLAG_COUNT && (!ks_flags[i].letter || ks_flags[i].letter != *p))
            i++;
        if (i == KS_FLAG_COUNT)
            return sw_error_set(error, -EINVAL,
                                "there is no flag -%c; kubectl slipway --help shows all", *p);
        if (ks_flags[i].value) {
            const char *value = p[1] == '=' ? p + 2 : p[1] ? p + 1 : NULL;
            return set_flag(words, (enum ks_flag)i, value, options, error);
        }
        options->values[i] = "true";
    }
    return 0;
}

/* ---- names ---- */

static const struct {
    enum ks_names names; /* of one kind alone */
    const char *kind, *plural, *short_name, *group;
} kinds[] = {
    {KS_DEPLOYMENTS, "Deployment", "deployments", "deploy", "apps"},
    {KS_COORDINATIONS, "DeploymentCoordination", "deploymentcoordinations", "",
     "apps.containerinfra.nl"},
    {KS_ROLLOUTS, "SteppedRollout", "steppedrollouts", "sr", "slipway.dev"},
    {KS_WORKLOADS, "StatefulSet", "statefulsets", "sts", "apps"},
    {KS_WORKLOADS, "DaemonSet", "daemonsets", "ds", "apps"},
};

static bool takes_kind(enum ks_names names, size_t at)
{
    if (names == KS_GROUPS)
        return kinds[at].names == KS_COORDINATIONS || kinds[at].names == KS_ROLLOUTS;
    if (names == KS_WORKLOADS)
        return kinds[at].names != KS_COORDINATIONS;
    return kinds[at].names == names;
}

static const char *wanted_kinds(enum ks_names names)
{
    switch (names) {
    case KS_DEPLOYMENTS:
        return "Deployment";
    case KS_COORDINATIONS:
        return "DeploymentCoordination";
    case KS_ROLLOUTS:
        return "SteppedRollout";
    case KS_GROUPS:
        return "DeploymentCoordination or SteppedRollout";
    default:
        return "Deployment, StatefulSet, DaemonSet or SteppedRollout";
    }
}

/* "deployment", "deployments", "deploy", and the long ones with ".apps" behind. */
static bool names_kind(size_t at, const char *word, size_t len)
{
    const char *dot = memchr(word, '.', len);
    size_t stem = dot ? (size_t)(dot - word) : len;
    bool is_plural = strlen(kinds[at].plural) == stem && memcmp(kinds[at].plural, word, stem) == 0;
    bool is_singular =
        strlen(kinds[at].plural) == stem + 1 && memcmp(kinds[at].plural, word, stem) == 0;

    if (!dot)
        return is_plural || is_singular ||
               (len > 0 && strlen(kinds[at].short_name) == len &&
                memcmp(kinds[at].short_name, word, len) == 0);
    return (is_plural || is_singular) && strlen(kinds[at].group) == len - stem - 1 &&
           memcmp(kinds[at].group, dot + 1, len - stem - 1) == 0;
}

/* As kubectl writes them, "deployment.apps/cart", with the kind in any of its forms. */
static int take_off_kind(enum ks_names names, const char *given, const char **ret_name,
                         const char **ret_kind, struct sw_error *error)
{
    const char *slash = strchr(given, '/');

    *ret_name = given;
    *ret_kind = "";
    if (!slash || names == KS_NO_NAMES || names == KS_SHELLS)
        return 0;
    *ret_name = slash + 1;
    for (size_t i = 0; i < SW_ARRAY_SIZE(kinds); i++) {
        if (!takes_kind(names, i) || !names_kind(i, given, (size_t)(slash - given)))
            continue;
        *ret_kind = kinds[i].kind;
        return 0;
    }
    return sw_error_set(error, -EINVAL, "%s: this command is for a %s; a namespace is named by -n",
                        given, wanted_kinds(names));
}

static int check_names(struct ks_options *options, struct sw_error *error)
{
    const struct ks_command *command = options->command;
    bool is_release = ks_command_id(command) == KS_RELEASE;
    int code = 0;

    if (options->values[KS_HELP])
        return 0;
    if (is_release && options->values[KS_ALL] && options->name_count > 0)
        return sw_error_set(error, -EINVAL, "release: either names or --all, not both");
    if (is_release && !options->values[KS_ALL] && options->name_count == 0)
        return sw_error_set(error, -EINVAL, "release: name a Deployment, or say --all");
    if (is_release && !options->values[KS_ALL] &&
        (options->values[KS_ALL_NAMESPACES] || options->values[KS_TIME_LIMIT]))
        return sw_error_set(error, -EINVAL, "release: -A and --time-limit go with --all only");
    if (options->name_count < command->least || options->name_count > command->most)
        return sw_error_set(error, -EINVAL, "usage: kubectl slipway %s %s", command->name,
                            command->usage);
    for (size_t i = 0; i < options->name_count && !code; i++)
        code = take_off_kind(command->names, options->names[i], &options->names[i],
                             &options->kinds[i], error);
    return code;
}

/* A flag that this command would not look at was meant for something. */
static int check_flags(const struct ks_options *options, struct sw_error *error)
{
    const char *output = options->values[KS_OUTPUT], *dry_run = options->values[KS_DRY_RUN];
    const char *limit = options->values[KS_TIME_LIMIT], *timeout = options->values[KS_TIMEOUT];
    uint64_t limit_ms;

    for (size_t i = 0; i < KS_FLAG_COUNT; i++)
        if (options->values[i] && !ks_takes(options->command, (enum ks_flag)i))
            return sw_error_set(error, -EINVAL, "--%s means nothing to %s", ks_flags[i].name,
                                options->command ? options->command->name : "kubectl slipway");
    if (output && strcmp(output, "json") != 0 && strcmp(output, "yaml") != 0)
        return sw_error_set(error, -EINVAL, "--output %s: json and yaml are known", output);
    if (output && options->values[KS_WATCH])
        return sw_error_set(error, -EINVAL, "--watch and --output do not go together");
    if (dry_run && strcmp(dry_run, "server") != 0 && strcmp(dry_run, "none") != 0)
        return sw_error_set(error, -EINVAL, "--dry-run=%s: server and none are known", dry_run);
    if (limit && (sw_duration_parse(limit, &limit_ms) || limit_ms == 0))
        return sw_error_set(error, -EINVAL,
                            "--time-limit %s: a duration is wanted, such as 90s, 10m", limit);
    if (timeout && sw_duration_parse(timeout, &limit_ms))
        return sw_error_set(error, -EINVAL, "--timeout %s: a duration is wanted, such as 90s, or 0",
                            timeout);
    return 0;
}

static int take_word(const char *given, struct ks_options *options, struct sw_error *error)
{
    const char *nearest = NULL;
    size_t distance = SIZE_MAX;

    if (options->command) {
        options->names[options->name_count++] = given;
        return 0;
    }
    if (strcmp(given, "help") == 0) {
        options->values[KS_HELP] = "true";
        return 0;
    }
    options->command = ks_command_find(given);
    if (options->command)
        return 0;
    for (size_t i = 0; i < KS_COMMAND_COUNT; i++)
        sw_nearest(given, ks_commands[i].name, &nearest, &distance);
    if (nearest)
        return sw_error_set(error, -EINVAL, "there is no command %s: did you mean %s?", given,
                            nearest);
    return sw_error_set(error, -EINVAL, "there is no command %s; kubectl slipway --help shows all",
                        given);
}

int ks_options_parse(int argc, char *const argv[], struct ks_options *ret_options,
                     struct sw_error *error)
{
    struct words words = {.argc = argc, .argv = argv, .at = 1};
    bool are_flags_over = false;
    int code = 0;

    *ret_options = (struct ks_options){
        .names = sw_calloc((size_t)argc + 1, sizeof(char *)),
        .kinds = sw_calloc((size_t)argc + 1, sizeof(char *)),
    };
    for (; words.at < argc && !code; words.at++) {
        const char *given = argv[words.at];
        if (!are_flags_over && strcmp(given, "--") == 0)
            are_flags_over = true;
        else if (!are_flags_over && given[0] == '-' && given[1] == '-')
            code = long_flag(&words, given, ret_options, error);
        else if (!are_flags_over && given[0] == '-' && given[1])
            code = short_flags(&words, given, ret_options, error);
        else
            code = take_word(given, ret_options, error);
    }
    if (!code)
        code = check_flags(ret_options, error);
    if (!code && ret_options->command)
        code = check_names(ret_options, error);
    return code;
}

void ks_options_done(struct ks_options *options)
{
    sw_free(options->names);
    sw_free(options->kinds);
    options->names = options->kinds = NULL;
}
