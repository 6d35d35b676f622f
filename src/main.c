/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slipway: arguments, settings, and then what they ask for. Everything else is in src/runtime.
 */
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "base/buf.h"
#include "base/error.h"
#include "runtime/arguments.h"
#include "runtime/commands.h"
#include "runtime/process.h"
#include "runtime/settings.h"

static int complain(const struct sw_error *error)
{
    fprintf(stderr, "slipway: %s\n", error->text);
    return SW_EXIT_USAGE;
}

/* Help, a list or a result that nobody gets is a failure, as of any tool. */
static int end(int status)
{
    bool is_lost = fflush(stdout) || ferror(stdout);

    if (!is_lost || status != SW_EXIT_OK)
        return status;
    fprintf(stderr, "slipway: cannot write to standard output\n");
    return SW_EXIT_FAILED;
}

static int help(enum sw_command command)
{
    struct sw_buf text;

    sw_buf_init(&text, SIZE_MAX);
    sw_arguments_help(command, &text);
    fwrite(text.bytes, 1, text.len, stdout);
    sw_buf_done(&text);
    return SW_EXIT_OK;
}

static int run(const struct sw_arguments *arguments, const struct sw_settings *settings)
{
    if (sw_arguments_has(arguments, SW_FLAG_LIST_MODULES))
        return sw_command_list_modules(settings);
    if (sw_arguments_has(arguments, SW_FLAG_CHECK_CONFIG))
        return sw_command_check_config(settings);
    if (arguments->command == SW_COMMAND_RELEASE_ALL)
        return sw_command_release_all(arguments, settings);
    return sw_process_run(arguments, settings);
}

int main(int argc, char *argv[])
{
    struct sw_arguments arguments;
    struct sw_settings settings;
    struct sw_error error = {0};

    if (sw_arguments_parse(argc, argv, &arguments, &error))
        return complain(&error);
    if (sw_arguments_has(&arguments, SW_FLAG_HELP))
        return end(help(arguments.command));
    if (sw_arguments_has(&arguments, SW_FLAG_VERSION)) {
        printf("slipway %s\n", SW_VERSION);
        return end(SW_EXIT_OK);
    }
    prctl(PR_SET_DUMPABLE, 0); /* no core file, which would hold tokens and keys: prctl(2) */
    if (sw_settings_load(&arguments, &settings, &error))
        return complain(&error);
    int status = run(&arguments, &settings);
    sw_settings_done(&settings);
    return end(status);
}
