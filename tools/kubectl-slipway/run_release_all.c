/* SPDX-License-Identifier: Apache-2.0 */
/*
 * release --all: asks, and does what slipway release-all does, by the same code.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/loop.h"
#include "base/time.h"
#include "run.h"
#include "runtime/release_all.h"
#include "session.h"

struct releasing {
    struct ks_session *session;
    struct sw_release_all_result result;
    bool is_over;
};

static void on_released(void *arg, const struct sw_release_all_result *result)
{
    struct releasing *releasing = arg;

    releasing->result = *result;
    releasing->is_over = true;
    sw_loop_stop(releasing->session->loop);
}

static bool is_dry_run(const struct ks_session *session)
{
    const char *dry_run = session->options->values[KS_DRY_RUN];

    return dry_run && strcmp(dry_run, "server") == 0;
}

static enum ks_exit confirm(const struct ks_session *session)
{
    const char *namespace_ = ks_namespace(session);
    char answer[16];

    if (ks_flag(session, KS_YES) || is_dry_run(session))
        return KS_DONE;
    if (!isatty(STDIN_FILENO)) {
        ks_complain("release --all asks first, and there is nobody to ask: say --yes, or look at "
                    "it with --dry-run");
        return KS_USAGE;
    }
    fprintf(stderr,
            "Let go of everything that slipway holds in %s%s? What has a change rolls %s. [y/N] ",
            namespace_ ? "namespace " : "the whole cluster", namespace_ ? namespace_ : "",
            ks_flag(session, KS_TIME_LIMIT) ? "one after the other" : "at once");
    if (fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
        return KS_DONE;
    ks_complain("nothing was done");
    return KS_FAILED;
}

enum ks_exit ks_run_release_all(struct ks_session *session)
{
    struct sw_release_all_options options = {
        .namespace_ = ks_namespace(session),
        .is_dry_run = is_dry_run(session),
        .field_manager = KS_FIELD_MANAGER,
    };
    struct releasing releasing = {.session = session};
    enum ks_exit status = confirm(session);

    if (status != KS_DONE)
        return status;
    if (ks_flag(session, KS_TIME_LIMIT)) /* it has been looked at with the other flags */
        sw_duration_parse(session->options->values[KS_TIME_LIMIT], &options.in_order_ms);
    sw_release_all(session->loop, session->client, &options, &session->out, on_released,
                   &releasing);
    while (!releasing.is_over)
        sw_loop_run(session->loop);
    return releasing.result.is_list_complete && releasing.result.failed == 0 ? KS_DONE : KS_FAILED;
}
