/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kubectl-slipway: what was asked for, and who does it.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/buf.h"
#include "base/error.h"
#include "completion.h"
#include "options.h"
#include "run.h"
#include "session.h"

static enum ks_exit put(struct sw_buf *text)
{
    bool is_lost;

    fwrite(text->bytes, 1, text->len, stdout);
    is_lost = fflush(stdout) || ferror(stdout);
    sw_buf_done(text);
    if (is_lost)
        ks_complain("cannot write to standard output");
    return is_lost ? KS_FAILED : KS_DONE;
}

static enum ks_exit dispatch(struct ks_session *session)
{
    switch (ks_command_id(session->options->command)) {
    case KS_STATUS:
        return ks_run_status(session);
    case KS_WHY:
        return ks_run_why(session);
    case KS_PLAN:
        return ks_run_plan(session);
    case KS_RELEASE:
        if (ks_flag(session, KS_ALL))
            return ks_run_release_all(session);
        return ks_run_deployment(session);
    case KS_HOLD:
    case KS_SKIP:
    case KS_RESTART:
        return ks_run_deployment(session);
    case KS_SUSPEND:
    case KS_RESUME:
        return ks_run_coordination(session);
    case KS_PROMOTE:
    case KS_ABORT:
    case KS_RETRY:
        return ks_run_rollout(session);
    case KS_DOCTOR:
        return ks_run_doctor(session);
    case KS_COMPLETION:
    case KS_COMMAND_COUNT:
        break;
    }
    return KS_USAGE;
}

static enum ks_exit run(const struct ks_options *options)
{
    struct ks_session session;
    struct sw_error error = {0};
    enum ks_exit status = KS_FAILED;

    if (ks_session_open(&session, options, &error)) {
        ks_complain("%s", error.text);
    } else {
        status = dispatch(&session);
        if (!ks_flush(&session) && status == KS_DONE) {
            ks_complain("cannot write to standard output");
            status = KS_FAILED;
        }
    }
    ks_session_close(&session);
    return status;
}

static enum ks_exit obey(const struct ks_options *options)
{
    struct sw_buf text;

    sw_buf_init(&text, SIZE_MAX);
    if (options->values[KS_VERSION]) {
        sw_buf_puts(&text, "kubectl-slipway " SW_VERSION "\n");
        return put(&text);
    }
    if (options->values[KS_HELP] || !options->command) {
        ks_help(options->command, &text);
        return put(&text) != KS_DONE ? KS_FAILED : options->values[KS_HELP] ? KS_DONE : KS_USAGE;
    }
    if (ks_command_id(options->command) == KS_COMPLETION) {
        if (ks_completion_script(options->names[0], &text) == 0)
            return put(&text);
        sw_buf_done(&text);
        ks_complain("completion: bash and zsh are known, not %s", options->names[0]);
        return KS_USAGE;
    }
    sw_buf_done(&text);
    return run(options);
}

int main(int argc, char *argv[])
{
    struct ks_options options;
    struct sw_error error = {0};
    struct sw_buf text;

    signal(SIGPIPE, SIG_IGN);  /* as the client needs it; a full pipe shows when it is flushed */
    prctl(PR_SET_DUMPABLE, 0); /* no core file, which would hold tokens and keys: prctl(2) */
    if (argc == 2 && strcmp(argv[1], "--man-page") == 0) {
        sw_buf_init(&text, SIZE_MAX);
        ks_man_page(&text);
        return (int)put(&text);
    }
    if (argc >= 2 && strcmp(argv[1], "__complete") == 0)
        return (int)ks_complete(argc - 2, argv + 2);
    int code = ks_options_parse(argc, argv, &options, &error);
    if (code)
        ks_complain("%s", error.text);
    enum ks_exit status = code ? KS_USAGE : obey(&options);
    ks_options_done(&options);
    return (int)status;
}
