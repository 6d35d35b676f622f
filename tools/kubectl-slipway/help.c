/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --help and the man page, from the tables of commands.c.
 */
#include <stdarg.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "options.h"

static const struct {
    enum ks_exit status;
    const char *meaning;
} exits[] = {
    {KS_DONE, "done"},
    {KS_FAILED, "something could not be done: the message says what"},
    {KS_USAGE, "the command line is wrong; nothing was done"},
    {KS_FINDINGS, "doctor has found something that is wrong"},
    {KS_NOT_FOUND, "there is no such Deployment, coordination or SteppedRollout"},
};

static const struct {
    const char *name, *meaning;
} variables[] = {
    {"KUBECONFIG", "the kubeconfig, where --kubeconfig names none"},
    {"NO_COLOR", "not empty: no colours, also on a terminal"},
};

/* ---- --help ---- */

static void help_of_flag(const struct ks_flag_text *flag, struct sw_buf *out)
{
    char left[48];
    struct sw_buf text;

    sw_buf_init(&text, sizeof(left));
    if (flag->letter)
        sw_buf_printf(&text, "-%c, ", flag->letter);
    else
        sw_buf_puts(&text, "    ");
    sw_buf_printf(&text, "--%s", flag->name);
    if (flag->value)
        sw_buf_printf(&text, "%s%s%s", flag->without_value ? "[=" : " ", flag->value,
                      flag->without_value ? "]" : "");
    sw_buf_printf(out, "  %-30s %s\n", text.bytes, flag->help[0]);
    for (size_t i = 1; i < SW_ARRAY_SIZE(flag->help) && flag->help[i]; i++)
        sw_buf_printf(out, "  %-30s %s\n", "", flag->help[i]);
    sw_buf_done(&text);
}

static void help_of_flags(const struct ks_command *command, bool is_global, const char *title,
                          struct sw_buf *out)
{
    for (size_t i = 0; i < KS_FLAG_COUNT; i++) {
        if (ks_flags[i].is_global != is_global || !ks_takes(command, (enum ks_flag)i))
            continue;
        if (title)
            sw_buf_printf(out, "\n%s\n", title);
        title = NULL;
        help_of_flag(&ks_flags[i], out);
    }
}

static void help_of_exits(const struct ks_command *command, struct sw_buf *out)
{
    sw_buf_puts(out, "\nExit status\n");
    for (size_t i = 0; i < SW_ARRAY_SIZE(exits); i++) {
        bool is_doctor = command && ks_command_id(command) == KS_DOCTOR;
        bool has_names = command && command->names != KS_NO_NAMES && command->names != KS_SHELLS;
        if (command && ((exits[i].status == KS_FINDINGS && !is_doctor) ||
                        (exits[i].status == KS_NOT_FOUND && !has_names)))
            continue;
        sw_buf_printf(out, "  %d  %s\n", (int)exits[i].status, exits[i].meaning);
    }
}

static void help_of_command(const struct ks_command *command, struct sw_buf *out)
{
    sw_buf_printf(out, "%s: %s\n\nUsage\n  kubectl slipway %s %s\n\n", command->name,
                  command->summary, command->name, command->usage);
    for (size_t i = 0; i < SW_ARRAY_SIZE(command->text) && command->text[i]; i++)
        sw_buf_printf(out, "%s\n", command->text[i]);
    sw_buf_puts(out, "\nExamples\n");
    for (size_t i = 0; i < SW_ARRAY_SIZE(command->examples) && command->examples[i].line; i++)
        sw_buf_printf(out, "  %s\n    %s\n", command->examples[i].what, command->examples[i].line);
    help_of_flags(command, false, "Flags", out);
    help_of_flags(command, true, "Flags of every command", out);
    help_of_exits(command, out);
}

static void help_of_all(struct sw_buf *out)
{
    sw_buf_puts(out, "kubectl slipway shows and steers what slipway decides: which Deployments of "
                     "a\ncoordination roll out, which are held until it is their turn, and how "
                     "far\nstepped rollouts are.\n\n"
                     "Usage\n  kubectl slipway COMMAND [names] [flags]\n\nCommands\n");
    for (size_t i = 0; i < KS_COMMAND_COUNT; i++)
        sw_buf_printf(out, "  %-12s %s\n", ks_commands[i].name, ks_commands[i].summary);
    sw_buf_puts(out, "\nkubectl slipway COMMAND --help explains one, with examples.\n");
    help_of_flags(NULL, true, "Flags of every command", out);
    sw_buf_puts(out, "\nEnvironment\n");
    for (size_t i = 0; i < SW_ARRAY_SIZE(variables); i++)
        sw_buf_printf(out, "  %-12s %s\n", variables[i].name, variables[i].meaning);
    help_of_exits(NULL, out);
}

void ks_help(const struct ks_command *command, struct sw_buf *out)
{
    if (command)
        help_of_command(command, out);
    else
        help_of_all(out);
}

/* ---- the man page: man(7) macros ---- */

/* Text as roff shows it: no line may begin with a control character, and a hyphen stays one. */
static void roff(struct sw_buf *out, const char *text)
{
    if (text[0] == '.' || text[0] == '\'')
        sw_buf_puts(out, "\\&");
    for (; *text; text++) {
        if (*text == '\\')
            sw_buf_puts(out, "\\e");
        else if (*text == '-')
            sw_buf_puts(out, "\\-");
        else
            sw_buf_append(out, text, 1);
    }
}

static SW_PRINTF(3, 4) void line(struct sw_buf *out, const char *macro, const char *format, ...)
{
    struct sw_buf text;
    va_list args;

    sw_buf_init(&text, SIZE_MAX);
    va_start(args, format);
    sw_buf_vprintf(&text, format, args);
    va_end(args);
    sw_buf_puts(out, macro);
    roff(out, text.bytes);
    sw_buf_puts(out, "\n");
    sw_buf_done(&text);
}

static void man_of_flag(const struct ks_flag_text *flag, struct sw_buf *out)
{
    sw_buf_puts(out, ".TP\n\\fB");
    if (flag->letter)
        sw_buf_printf(out, "\\-%c\\fR, \\fB", flag->letter);
    line(out, "", "--%s%s%s%s", flag->name, flag->value ? (flag->without_value ? "[=" : " ") : "",
         flag->value ? flag->value : "", flag->without_value ? "]" : "");
    sw_buf_puts(out, "\\fR");
    for (size_t i = 0; i < SW_ARRAY_SIZE(flag->help) && flag->help[i]; i++)
        line(out, "", "%s", flag->help[i]);
}

static void man_of_command(const struct ks_command *command, struct sw_buf *out)
{
    line(out, ".SS ", "%s %s", command->name, command->usage);
    line(out, "", "%s.", command->summary);
    sw_buf_puts(out, ".PP\n");
    for (size_t i = 0; i < SW_ARRAY_SIZE(command->text) && command->text[i]; i++) {
        if (command->text[i][0])
            line(out, "", "%s", command->text[i]);
        else
            sw_buf_puts(out, ".PP\n");
    }
    for (size_t i = 0; i < KS_FLAG_COUNT; i++)
        if (!ks_flags[i].is_global && ks_takes(command, (enum ks_flag)i))
            man_of_flag(&ks_flags[i], out);
    for (size_t i = 0; i < SW_ARRAY_SIZE(command->examples) && command->examples[i].line; i++) {
        line(out, ".PP\n", "%s:", command->examples[i].what);
        line(out, ".PP\n.RS 4\n.nf\n", "%s", command->examples[i].line);
        sw_buf_puts(out, ".fi\n.RE\n");
    }
}

void ks_man_page(struct sw_buf *out)
{
    sw_buf_puts(out, ".TH KUBECTL\\-SLIPWAY 1 \"\" \"slipway " SW_VERSION "\" \"slipway\"\n"
                     ".SH NAME\n"
                     "kubectl\\-slipway \\- show and steer what slipway decides\n"
                     ".SH SYNOPSIS\n"
                     ".B kubectl slipway\n.I COMMAND\n.RI [ names ]\n.RI [ flags ]\n"
                     ".SH DESCRIPTION\n"
                     "slipway decides when the Deployments of a Kubernetes cluster may roll out: "
                     "of those that a\nDeploymentCoordination selects one at a time, and one that "
                     "a SteppedRollout names in\nsteps that are analysed. This plugin of kubectl "
                     "shows who rolls, who\nwaits and why, and says to slipway what "
                     "a person wants.\n"
                     ".SH COMMANDS\n");
    for (size_t i = 0; i < KS_COMMAND_COUNT; i++)
        man_of_command(&ks_commands[i], out);
    sw_buf_puts(out, ".SH FLAGS OF EVERY COMMAND\n");
    for (size_t i = 0; i < KS_FLAG_COUNT; i++)
        if (ks_flags[i].is_global)
            man_of_flag(&ks_flags[i], out);
    sw_buf_puts(out, ".SH ENVIRONMENT\n");
    for (size_t i = 0; i < SW_ARRAY_SIZE(variables); i++) {
        line(out, ".TP\n.B ", "%s", variables[i].name);
        line(out, "", "%s", variables[i].meaning);
    }
    sw_buf_puts(out, ".SH EXIT STATUS\n");
    for (size_t i = 0; i < SW_ARRAY_SIZE(exits); i++) {
        line(out, ".TP\n.B ", "%d", (int)exits[i].status);
        line(out, "", "%s", exits[i].meaning);
    }
    sw_buf_puts(out, ".SH SEE ALSO\n.BR kubectl (1)\n");
}
