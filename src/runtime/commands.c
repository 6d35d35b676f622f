/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --check-config, --list-modules, and slipway release-all.
 */
#include "runtime/commands.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/time.h"
#include "base/util.h"
#include "kube/client.h"
#include "kube/credentials.h"
#include "kube/transport.h"
#include "net/url.h"
#include "runtime/arguments.h"
#include "runtime/module_loader.h"
#include "runtime/module_set.h"
#include "runtime/process.h"
#include "runtime/release_all.h"
#include "runtime/release_stop.h"
#include "runtime/settings.h"

#include <slipway/module.h>

/* ---- --check-config ---- */

int sw_command_check_config(const struct sw_settings *settings)
{
    struct sw_module_set set;
    struct sw_error error = {0};

    if (sw_module_set_load(&set, settings, &error)) {
        fprintf(stderr, "slipway: %s\n", error.text);
        return SW_EXIT_USAGE;
    }
    fprintf(stdout, "%s: good; modules:", settings->config_path);
    for (size_t i = 0; i < set.count; i++)
        fprintf(stdout, "%s %s", i > 0 ? "," : "", set.modules[i]->name);
    fprintf(stdout, "\n");
    sw_module_set_done(&set);
    return SW_EXIT_OK;
}

/* ---- --list-modules ---- */

static void show_needs(const struct sw_module *module)
{
    const char *before = " (needs ";

    for (const char *const *need = module->needs; need && *need; need++) {
        fprintf(stdout, "%s%s", before, *need);
        before = ", ";
    }
    if (module->needs && module->needs[0])
        fprintf(stdout, ")");
}

static void show_module(void *arg, const char *name, const char *path,
                        const struct sw_module *module, const struct sw_error *error)
{
    unsigned *count = arg;

    (*count)++;
    if (module) {
        fprintf(stdout, "%-14s %s", name, module->summary ? module->summary : "");
        show_needs(module);
        fprintf(stdout, "\n%-14s   %s\n", "", path ? path : "linked in");
    } else {
        fprintf(stdout, "%-14s refused: %s\n", name, error->text);
    }
}

int sw_command_list_modules(const struct sw_settings *settings)
{
    SW_AUTO(char, sw_free) found = settings->module_dir ? NULL : sw_module_default_dir();
    const char *dir = found ? found : settings->module_dir;
    unsigned count = 0;

    sw_module_each(dir, show_module, &count);
    if (count > 0)
        return SW_EXIT_OK;
    fprintf(stderr, "slipway: there are no modules in %s\n", dir);
    return SW_EXIT_FAILED;
}

/* ---- release-all ---- */

struct release {
    struct sw_loop *loop;
    struct sw_log_sink *sink;
    struct sw_log log;
    struct sw_metrics *metrics;
    struct sw_credentials *credentials;
    struct sw_transport *transport;
    struct sw_client *client;
    struct sw_buf out;
    struct sw_release_stop_options stop;
    struct sw_release_all_options all;
    struct sw_defer close;
    int exit_status;
};

/* Deferred: on_released comes from within a callback of the client. */
static void close_release(struct sw_defer *defer)
{
    struct release *r = container_of(defer, struct release, close);

    r->client = sw_client_free(r->client);
    if (r->transport)
        r->transport->ops->close(r->transport);
    r->transport = NULL;
    sw_credentials_close(r->credentials);
    r->credentials = NULL;
}

/* What has been done so far, also for whoever reads the log of a Job meanwhile. */
static void show(struct release *r)
{
    fwrite(r->out.bytes, 1, r->out.len, stdout);
    fflush(stdout);
    sw_buf_clear(&r->out);
}

static void on_released(void *arg, const struct sw_release_all_result *result)
{
    struct release *r = arg;

    show(r);
    if (result->is_list_complete && result->failed == 0)
        r->exit_status = SW_EXIT_OK;
    sw_defer_start(&r->close);
}

static void on_stopped(void *arg, const struct sw_error *error)
{
    struct release *r = arg;

    show(r);
    if (error) {
        fprintf(stderr, "slipway: %s\n", error->text);
        sw_defer_start(&r->close);
        return;
    }
    sw_release_all(r->loop, r->client, &r->all, &r->out, on_released, r);
}

static int begin_release(struct release *r, const struct sw_settings *settings,
                         struct sw_error *error)
{
    struct sw_credentials_options where = {settings->kubeconfig, settings->context};
    int code = sw_credentials_open(r->loop, &where, &r->log, &r->credentials, error);

    if (!code)
        code = sw_transport_http_open(r->loop, r->credentials, "release-all", &r->log,
                                      &r->transport, error);
    if (code)
        return code;
    struct sw_client_options client = {
        .requests_per_second = settings->kube_api_qps,
        .burst = settings->kube_api_burst,
        .path_prefix = sw_credentials_server(r->credentials)->path,
    };
    r->client = sw_client_new(r->loop, r->transport, &client, r->metrics, &r->log);
    r->stop.namespace_ = sw_credentials_namespace(r->credentials);
    r->stop.webhook_configuration = settings->webhook_configuration_name;
    if (r->stop.deployment && !r->all.is_dry_run)
        sw_release_stop(r->loop, r->client, &r->stop, &r->out, on_stopped, r);
    else
        sw_release_all(r->loop, r->client, &r->all, &r->out, on_released, r);
    return 0;
}

static int release_options(const struct sw_arguments *arguments, const struct sw_settings *settings,
                           struct release *r, struct sw_error *error)
{
    const char *limit = arguments->values[SW_FLAG_TIME_LIMIT];

    r->all.namespace_ = settings->namespace_;
    r->all.is_dry_run = sw_arguments_has(arguments, SW_FLAG_DRY_RUN);
    r->stop.deployment = arguments->values[SW_FLAG_STOP];
    if (limit && (sw_duration_parse(limit, &r->all.in_order_ms) || r->all.in_order_ms == 0))
        return sw_error_set(error, -EINVAL,
                            "--time-limit: expected a time such as 4m or 90s, got \"%s\"", limit);
    return 0;
}

int sw_command_release_all(const struct sw_arguments *arguments, const struct sw_settings *settings)
{
    struct release r = {.exit_status = SW_EXIT_FAILED};
    struct sw_error error = {0};
    enum sw_level level = SW_MAX(settings->log_level, SW_LEVEL_WARN);

    if (release_options(arguments, settings, &r, &error)) {
        fprintf(stderr, "slipway: %s\n", error.text);
        return SW_EXIT_USAGE;
    }
    if (sw_loop_open(&r.loop))
        return SW_EXIT_FAILED;
    r.sink = sw_log_sink_new(r.loop, fileno(stderr),
                             settings->has_log_format ? settings->log_format : SW_LOG_CONSOLE,
                             settings->log_level == SW_LEVEL_DEBUG ? SW_LEVEL_DEBUG : level);
    r.log = (struct sw_log){.sink = r.sink, .name = "release-all"};
    r.metrics = sw_metrics_new();
    sw_buf_init(&r.out, SIZE_MAX);
    sw_defer_init(&r.close, r.loop, close_release);
    if (begin_release(&r, settings, &error)) {
        fprintf(stderr, "slipway: %s\n", error.text);
        r.exit_status = sw_exit_status_of(error.code);
        close_release(&r.close);
    }
    sw_loop_run(r.loop);
    sw_buf_done(&r.out);
    sw_metrics_free(r.metrics);
    sw_log_sink_free(r.sink);
    if (sw_loop_close(r.loop))
        r.exit_status = SW_EXIT_FAILED;
    return r.exit_status;
}
