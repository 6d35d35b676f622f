/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files first; making one where they have nothing, and another one in time.
 */
#include "runtime/metrics_certificate.h"

#include "base/error.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/util.h"
#include "net/tls.h"
#include "net/tls_issue.h"

/* A year, as controller-runtime's; another one at two thirds of it. Clocks may differ by an hour.
 */
#define LIFE_US (INT64_C(365) * 24 * 3600 * 1000000)
#define RENEW_MS (UINT64_C(365) * 24 * 3600 * 1000 / 3 * 2)
#define RETRY_MS (UINT64_C(3600) * 1000)
#define SKEW_US (INT64_C(3600) * 1000000)

struct sw_metrics_certificate {
    struct sw_loop *loop;
    struct sw_log log;
    struct sw_certificate_files *files; /* NULL: none are looked for */
    bool is_from_files;
    struct sw_timer renew; /* of one that was made here */
    sw_certificate_files_fn fn;
    void *arg;
    struct sw_metric *not_after;
};

static void on_files(void *arg, struct sw_tls_config *config)
{
    struct sw_metrics_certificate *c = arg;

    c->is_from_files = true;
    sw_timer_stop(&c->renew);
    c->fn(c->arg, config);
}

static int make(struct sw_metrics_certificate *c, struct sw_error *error)
{
    static const char *const names[] = {"localhost", NULL};
    int64_t now_us = sw_wall_us(c->loop);
    struct sw_tls_issue_options issue = {.common_name = "slipway metrics",
                                         .dns_names = names,
                                         .not_before_us = now_us - SKEW_US,
                                         .not_after_us = now_us + LIFE_US};
    struct sw_tls_config *config;
    struct sw_tls_pair pair;
    int code = sw_tls_issue(&issue, &pair, error);

    if (code)
        return code;
    struct sw_tls_server_options server = {.certificate_pem = pair.certificate_pem,
                                           .key_pem = pair.key_pem};
    code = sw_tls_server_config_new(&server, &config, error);
    sw_tls_pair_done(&pair);
    if (code)
        return code;
    sw_log_info(&c->log, "certificate for the metrics is made: it proves nothing to scrapers");
    sw_metric_set(c->not_after, (double)issue.not_after_us / 1e6);
    sw_timer_start(&c->renew, RENEW_MS);
    c->fn(c->arg, config);
    sw_tls_config_unref(config);
    return 0;
}

static void on_renew(struct sw_timer *timer)
{
    struct sw_metrics_certificate *c = container_of(timer, struct sw_metrics_certificate, renew);
    struct sw_error error = {0};

    if (!make(c, &error))
        return;
    sw_log_error(&c->log, "certificate for the metrics cannot be renewed, trying again",
                 SW_STR("why", error.text));
    sw_timer_start(timer, RETRY_MS);
}

int sw_metrics_certificate_open(struct sw_loop *loop, const char *folder,
                                struct sw_metrics *metrics, const struct sw_log *log,
                                sw_certificate_files_fn fn, void *arg,
                                struct sw_metrics_certificate **ret_certificate,
                                struct sw_error *error)
{
    struct sw_metrics_certificate *c = SW_NEW(struct sw_metrics_certificate);
    int code = 0;

    c->loop = loop;
    c->log = *log;
    c->fn = fn;
    c->arg = arg;
    c->not_after = sw_metric_child(
        sw_metrics_family(metrics, SW_METRIC_GAUGE, "slipway_metrics_certificate_not_after_seconds",
                          "When it ends, in seconds since 1970.", NULL, NULL, 0),
        NULL);
    sw_timer_init_weak(&c->renew, loop, on_renew);
    if (folder)
        code = sw_certificate_files_open(loop, folder, "metrics", metrics, log, on_files, c,
                                         &c->files);
    if (code)
        sw_error_set(error, code, "cannot watch %s: %s", folder, sw_strerror(code));
    else if (!c->is_from_files)
        code = make(c, error);
    if (code)
        sw_metrics_certificate_close(c);
    else
        *ret_certificate = c;
    return code;
}

void sw_metrics_certificate_close(struct sw_metrics_certificate *certificate)
{
    if (!certificate)
        return;
    sw_certificate_files_close(certificate->files);
    sw_timer_stop(&certificate->renew);
    sw_free(certificate);
}
