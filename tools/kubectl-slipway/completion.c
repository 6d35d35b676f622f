/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Candidates, and the scripts. An error is no candidate: then nothing is offered.
 */
#include "completion.h"

#include <stdio.h>
#include <string.h>

#include <slipway/arena.h>
#include <slipway/kind.h>

#include "base/buf.h"
#include "base/util.h"
#include "session.h"
#include "world.h"

static bool begins(const char *word, const char *with)
{
    return strncmp(word, with, strlen(with)) == 0;
}

static void offer(struct sw_buf *out, const char *prefix, const char *word, const char *description)
{
    if (!begins(word, prefix))
        return;
    sw_buf_puts(out, word);
    if (description)
        sw_buf_printf(out, "\t%s", description);
    sw_buf_puts(out, "\n");
}

/* ---- from the tables ---- */

static void offer_flags(struct sw_buf *out, const char *prefix, const struct ks_command *command)
{
    for (size_t i = 0; i < KS_FLAG_COUNT; i++) {
        char word[40];
        if (!ks_takes(command, (enum ks_flag)i))
            continue;
        snprintf(word, sizeof(word), "--%s", ks_flags[i].name);
        offer(out, prefix, word, ks_flags[i].help[0]);
    }
}

/* The alternatives of "json|yaml"; nothing where the value is a word in capitals. */
static void offer_values(struct sw_buf *out, const char *lead, const char *prefix,
                         const char *values)
{
    while (*values >= 'a' && *values <= 'z') {
        size_t len = strcspn(values, "|");
        if (strncmp(values, prefix, strlen(prefix)) == 0)
            sw_buf_printf(out, "%s%.*s\n", lead, (int)len, values);
        values += len + (values[len] == '|');
    }
}

/* The flag whose value the last word is: "-o", or "--output"; KS_FLAG_COUNT: none. */
static enum ks_flag flag_before(const char *word)
{
    size_t flag = 0;

    for (; flag < KS_FLAG_COUNT; flag++) {
        const struct ks_flag_text *text = &ks_flags[flag];
        if (!text->value || text->without_value)
            continue;
        if (word[0] == '-' && word[1] == '-' && strcmp(word + 2, text->name) == 0)
            break;
        if (text->letter && word[0] == '-' && word[1] == text->letter && !word[2])
            break;
    }
    return (enum ks_flag)flag;
}

/* Words and flags before the last one; mistakes in them do not matter here. */
static void read_words(int argc, char *const argv[], struct ks_options *options)
{
    *options = (struct ks_options){
        .names = sw_calloc((size_t)argc + 1, sizeof(char *)),
        .kinds = sw_calloc((size_t)argc + 1, sizeof(char *)),
    };
    for (int i = 0; i + 1 < argc; i++) {
        enum ks_flag flag = flag_before(argv[i]);
        const char *equal = strchr(argv[i], '=');
        if (flag < KS_FLAG_COUNT) {
            options->values[flag] = i + 2 < argc ? argv[i + 1] : NULL;
            i++;
        } else if (argv[i][0] == '-') {
            for (size_t k = 0; k < KS_FLAG_COUNT && equal; k++)
                if (strncmp(argv[i] + 2, ks_flags[k].name, strlen(ks_flags[k].name)) == 0 &&
                    argv[i] + 2 + strlen(ks_flags[k].name) == equal)
                    options->values[k] = equal + 1;
        } else if (!options->command) {
            options->command = ks_command_find(argv[i]);
        } else {
            options->names[options->name_count++] = argv[i];
        }
    }
}

static void offer_commands(struct sw_buf *out, const char *prefix)
{
    for (size_t i = 0; i < KS_COMMAND_COUNT; i++)
        offer(out, prefix, ks_commands[i].name, ks_commands[i].summary);
}

void ks_complete_words(int argc, char *const argv[], struct sw_buf *out, enum ks_names *ret_names,
                       struct ks_options *ret_options)
{
    const char *last = argc > 0 ? argv[argc - 1] : "";
    enum ks_flag flag = argc > 1 ? flag_before(argv[argc - 2]) : KS_FLAG_COUNT;
    const char *equal = strchr(last, '=');

    read_words(argc, argv, ret_options);
    const struct ks_command *command = ret_options->command;
    *ret_names = KS_NO_NAMES;
    if (flag < KS_FLAG_COUNT) {
        offer_values(out, "", last, ks_flags[flag].value);
    } else if (last[0] == '-' && equal) {
        SW_AUTO(char, sw_free) lead = sw_strndup(last, (size_t)(equal - last) + 1);
        for (size_t i = 0; i < KS_FLAG_COUNT; i++)
            if (ks_flags[i].value && begins(lead + 2, ks_flags[i].name) &&
                strlen(lead) == strlen(ks_flags[i].name) + 3)
                offer_values(out, lead, equal + 1, ks_flags[i].value);
    } else if (last[0] == '-') {
        offer_flags(out, last, command);
    } else if (!command) {
        offer_commands(out, last);
    } else if (command->names == KS_SHELLS && ret_options->name_count == 0) {
        offer_values(out, "", last, command->usage);
    } else if (ret_options->name_count < command->most) {
        *ret_names = command->names;
    }
}

/* ---- from the cluster ---- */

static bool is_named_already(const struct ks_options *options, const char *name)
{
    for (size_t i = 0; i < options->name_count; i++)
        if (strcmp(options->names[i], name) == 0)
            return true;
    return false;
}

static void offer_kind(struct ks_session *session, const struct sw_kind *kind, const char *lead,
                       const char *prefix, struct sw_buf *out)
{
    const struct sw_object *const *objects;
    struct ks_answer answer;
    size_t count;

    if (!ks_list(session, kind, ks_namespace(session), &objects, &count, &answer))
        return;
    for (size_t i = 0; i < count; i++) {
        const char *word = sw_arena_printf(session->arena, "%s%s", lead, objects[i]->name);
        if (!is_named_already(session->options, word))
            offer(out, prefix, word, NULL);
    }
}

static void offer_objects(struct ks_options *options, const char *prefix, enum ks_names names,
                          struct sw_buf *out)
{
    struct ks_session session;

    if (ks_session_open(&session, options, NULL) == 0) {
        if (names == KS_DEPLOYMENTS || names == KS_WORKLOADS)
            offer_kind(&session, &sw_kind_deployment, "", prefix, out);
        if (names == KS_COORDINATIONS || names == KS_GROUPS)
            offer_kind(&session, &coord_kind, "", prefix, out);
        if (names == KS_ROLLOUTS || names == KS_GROUPS)
            offer_kind(&session, &step_kind, "", prefix, out);
        /* A rollout is mostly called like its Deployment. */
        if (names == KS_WORKLOADS && prefix[0] == 's')
            offer_kind(&session, &step_kind, "steppedrollout/", prefix, out);
    }
    ks_session_close(&session);
}

enum ks_exit ks_complete(int argc, char *const argv[])
{
    struct ks_options options;
    enum ks_names names;
    struct sw_buf out;

    sw_buf_init(&out, SIZE_MAX);
    ks_complete_words(argc, argv, &out, &names, &options);
    if (names != KS_NO_NAMES && names != KS_SHELLS)
        offer_objects(&options, argc > 0 ? argv[argc - 1] : "", names, &out);
    sw_buf_puts(&out, ":4\n");
    fwrite(out.bytes, 1, out.len, stdout);
    sw_buf_done(&out);
    ks_options_done(&options);
    return fflush(stdout) ? KS_FAILED : KS_DONE;
}

/* ---- scripts ---- */

static const char bash_script[] =
    "# Completion of kubectl slipway for bash; source it behind that of kubectl.\n"
    "_kubectl_slipway() {\n"
    "    local line\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r line; do\n"
    "        [[ $line == :* ]] || COMPREPLY+=(\"${line%%$'\\t'*}\")\n"
    "    done < <(kubectl-slipway __complete \"$@\" 2>/dev/null)\n"
    "}\n"
    "_kubectl_slipway_alone() {\n"
    "    _kubectl_slipway \"${COMP_WORDS[@]:1:COMP_CWORD}\"\n"
    "}\n"
    "complete -F _kubectl_slipway_alone kubectl-slipway\n"
    "_kubectl_or_slipway() {\n"
    "    if [[ ${COMP_WORDS[1]} == slipway && $COMP_CWORD -gt 1 ]]; then\n"
    "        _kubectl_slipway \"${COMP_WORDS[@]:2:COMP_CWORD-1}\"\n"
    "    elif declare -F __start_kubectl >/dev/null; then\n"
    "        __start_kubectl \"$@\"\n"
    "    fi\n"
    "}\n"
    "complete -o default -F _kubectl_or_slipway kubectl\n";

static const char zsh_script[] =
    "# Completion of kubectl slipway for zsh; source it behind that of kubectl.\n"
    "_kubectl_slipway() {\n"
    "    local line word\n"
    "    local -a found\n"
    "    for line in \"${(@f)$(kubectl-slipway __complete \"$@\" 2>/dev/null)}\"; do\n"
    "        [[ -z $line || $line == :* ]] && continue\n"
    "        word=${line%%$'\\t'*}\n"
    "        if [[ $line == *$'\\t'* ]]; then\n"
    "            found+=(\"${word//:/\\\\:}:${line#*$'\\t'}\")\n"
    "        else\n"
    "            found+=(\"${word//:/\\\\:}\")\n"
    "        fi\n"
    "    done\n"
    "    _describe 'kubectl slipway' found\n"
    "}\n"
    "_kubectl_slipway_alone() {\n"
    "    _kubectl_slipway \"${(@)words[2,CURRENT]}\"\n"
    "}\n"
    "compdef _kubectl_slipway_alone kubectl-slipway\n"
    "_kubectl_or_slipway() {\n"
    "    if [[ ${words[2]} == slipway && $CURRENT -gt 2 ]]; then\n"
    "        _kubectl_slipway \"${(@)words[3,CURRENT]}\"\n"
    "    elif (( $+functions[_kubectl] )); then\n"
    "        _kubectl \"$@\"\n"
    "    fi\n"
    "}\n"
    "compdef _kubectl_or_slipway kubectl\n";

int ks_completion_script(const char *shell, struct sw_buf *out)
{
    if (strcmp(shell, "bash") == 0)
        sw_buf_puts(out, bash_script);
    else if (strcmp(shell, "zsh") == 0)
        sw_buf_puts(out, zsh_script);
    else
        return -1;
    return 0;
}
