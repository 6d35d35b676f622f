/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting from the outside in (log, modules, sockets for probes, way to the API server, core) and
 * stopping in the order of process.h. Whatever fails on the way up ends in the same close_all.
 */
#include "runtime/process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/util.h"
#include "kube/credentials.h"
#include "kube/lease.h"
#include "kube/transport.h"
#include "net/url.h"
#include "runtime/core.h"
#include "runtime/endpoints.h"
#include "runtime/health.h"
#include "runtime/identity.h"
#include "runtime/module_set.h"
#include "runtime/process_metrics.h"
#include "runtime/reload.h"
#include "runtime/self_signed.h"
#include "runtime/settings.h"
#include "runtime/webhook.h"
#include "runtime/webhook_configuration.h"

#include <slipway/module.h>

enum {
    /* Kubernetes kills a Pod 30 s after SIGTERM. Of them 2 s are for the records, 5 s for the
     * lease, 2.5 s for reviews that have begun: API servers wait no longer for them. */
    WRITES_TIMEOUT_MS = 20 * 1000,
    FINISH_TIMEOUT_MS = 2500,
    /* How long it takes until no API server sends reviews here any more, after readiness failed. */
    STOP_DELAY_IN_POD_MS = 5 * 1000,
    READY_LOOK_MS = 50,
    READY_COMPLAIN_MS = 10 * 1000,
    /* kubernetes-client: a lease that is overdue by more than this is a fault of ours. */
    LEASE_OVERDUE_MS = 20 * 1000,
};

struct process {
    const struct sw_arguments *arguments;
    struct sw_settings settings; /* in force; the file's strings are the caller's */
    struct sw_loop *loop;
    struct sw_log_sink *sink;
    struct sw_log log;
    struct sw_metrics *metrics;
    struct sw_process_metrics *process_metrics;
    struct sw_module_set modules;
    struct sw_health health;
    struct sw_endpoints *endpoints;
    struct sw_credentials *credentials;
    struct sw_transport *transport;
    struct sw_core *core;
    struct sw_webhook *webhook; /* NULL: not asked for */
    struct sw_webhook_configuration_options webhook_configuration;
    struct sw_self_signed_options self_signed;
    struct sw_identity *identity;
    struct sw_reload *reload; /* NULL: stopping, or not there yet */
    struct sw_signal *signals[4];
    struct sw_timer ready;
    uint64_t started_ms, complained_ms;
    bool is_stopping;
    bool is_quiet; /* the core has nothing to do any more */
    struct sw_timer stop_delay;
    struct sw_defer close;
    int exit_status;
};

/* ---- checks ---- */

static bool check_ping(void *arg, struct sw_buf *why)
{
    (void)arg;
    (void)why;
    return true; /* the loop has come to this place */
}

static bool check_lease(void *arg, struct sw_buf *why)
{
    struct process *p = arg;
    uint64_t overdue = p->core ? sw_leading_overdue_ms(&p->core->leading) : 0;

    if (overdue <= LEASE_OVERDUE_MS)
        return true;
    sw_buf_printf(why, "leads although the lease ran out %llu s ago",
                  (unsigned long long)(overdue / 1000));
    return false;
}

static bool check_informers(void *arg, struct sw_buf *why)
{
    const struct process *p = arg;

    if (p->core && p->core->is_open && sw_kinds_are_listed(&p->core->kinds))
        return true;
    if (!p->core || !p->core->is_open) {
        sw_buf_puts(why, "not started");
        return false;
    }
    struct sw_buf names;
    sw_buf_init(&names, 512);
    sw_kinds_unlisted_text(&p->core->kinds, &names);
    sw_buf_printf(why, "not listed yet: %s", names.bytes);
    sw_buf_done(&names);
    return false;
}

static bool check_identity(void *arg, struct sw_buf *why)
{
    const struct process *p = arg;

    if (p->core && p->core->username)
        return true;
    sw_buf_puts(why, "the API server has not said yet who we are");
    return false;
}

static bool check_webhook(void *arg, struct sw_buf *why)
{
    const struct process *p = arg;

    if (sw_address_is_off(p->settings.webhook_address))
        return true;
    if (p->webhook)
        return sw_webhook_check(p->webhook, why);
    sw_buf_puts(why, "not started");
    return false;
}

static bool check_stopping(void *arg, struct sw_buf *why)
{
    const struct process *p = arg;

    if (!p->is_stopping)
        return true;
    sw_buf_puts(why, "stopping");
    return false;
}

static void add_checks(struct process *p)
{
    const struct sw_check checks[] = {
        /* alive */
        {"ping", true, check_ping, p},
        {"lease", true, check_lease, p},
        /* ready */
        {"ping", false, check_ping, p},
        {"informers", false, check_informers, p},
        {"identity", false, check_identity, p},
        {"webhook", false, check_webhook, p},
        {"stopping", false, check_stopping, p},
    };

    for (size_t i = 0; i < SW_ARRAY_SIZE(checks); i++)
        sw_health_add(&p->health, &checks[i]);
}

/* Until it is ready, and never again. */
static void look_for_ready(struct sw_timer *timer)
{
    struct process *p = container_of(timer, struct process, ready);
    uint64_t now = sw_now_ms(p->loop);
    struct sw_buf why;

    sw_buf_init(&why, 1024);
    if (sw_health_is_ready(&p->health, &why)) {
        sw_log_info(&p->log, "ready", SW_MS("took", now - p->started_ms));
    } else {
        if (now - p->complained_ms >= READY_COMPLAIN_MS) {
            p->complained_ms = now;
            sw_log_warn(&p->log, "not ready yet", SW_STR("why", why.bytes));
        }
        sw_timer_start(timer, READY_LOOK_MS);
    }
    sw_buf_done(&why);
}

/* ---- signals ---- */

static const int signums[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};

/* Until somebody listens to them they wait: as the first process of a container we would lose one
 * that comes before, and be killed after 30 s. And when nobody listens any more those that do not
 * end us wait for ever. */
static void hold_signals(int how, const int *first, size_t count)
{
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < count; i++)
        sigaddset(&set, first[i]);
    sigprocmask(how, &set, NULL);
}

static void close_signals(struct process *p)
{
    static const int harmless[] = {SIGHUP, SIGUSR1};

    hold_signals(SIG_BLOCK, harmless, SW_ARRAY_SIZE(harmless));
    for (size_t i = 0; i < SW_ARRAY_SIZE(p->signals); i++) {
        sw_signal_close(p->signals[i]);
        p->signals[i] = NULL;
    }
}

/* ---- stopping ---- */

/* What changes from now on is for the next process. */
static void close_reload(struct process *p)
{
    sw_reload_close(p->reload);
    p->reload = NULL;
}

static void close_all(struct process *p)
{
    sw_timer_stop(&p->ready);
    sw_timer_stop(&p->stop_delay);
    close_signals(p);
    close_reload(p);
    sw_identity_close(p->identity);
    p->identity = NULL;
    sw_webhook_close(p->webhook);
    p->webhook = NULL;
    sw_endpoints_close(p->endpoints);
    p->endpoints = NULL;
    p->core = sw_core_free(p->core);
    if (p->transport)
        p->transport->ops->close(p->transport);
    p->transport = NULL;
    sw_credentials_close(p->credentials);
    p->credentials = NULL;
}

static void on_finished(void *arg)
{
    struct process *p = arg;

    sw_defer_start(&p->close);
}

/* The webhook is the last to end: our own last writes are reviewed, too. */
static void finish_if_quiet(struct process *p)
{
    if (!p->is_quiet || sw_timer_is_active(&p->stop_delay))
        return;
    if (p->webhook)
        sw_webhook_finish(p->webhook, FINISH_TIMEOUT_MS, on_finished, p);
    else
        on_finished(p);
}

/* Deferred: that the core is quiet is said from within a callback of its client. */
static void close_stopped(struct sw_defer *defer)
{
    struct process *p = container_of(defer, struct process, close);

    sw_log_info(&p->log, "stopped");
    close_all(p);
}

static void on_stop_delay(struct sw_timer *timer)
{
    finish_if_quiet(container_of(timer, struct process, stop_delay));
}

static void on_quiet(void *arg)
{
    struct process *p = arg;

    p->is_quiet = true;
    finish_if_quiet(p);
}

static uint64_t stop_delay_of(const struct process *p)
{
    if (p->settings.has_stop_delay)
        return p->settings.stop_delay_ms;
    return getenv("KUBERNETES_SERVICE_HOST") && p->webhook ? STOP_DELAY_IN_POD_MS : 0;
}

static void stop(struct process *p)
{
    uint64_t delay_ms = stop_delay_of(p);

    p->is_stopping = true;
    close_reload(p);
    sw_timer_stop(&p->ready);
    sw_log_info(&p->log, "stopping", SW_MS("reviews_answered_for", delay_ms));
    if (p->webhook)
        sw_webhook_drain(p->webhook);
    if (delay_ms > 0)
        sw_timer_start(&p->stop_delay, delay_ms);
    sw_core_quiesce(p->core, WRITES_TIMEOUT_MS, on_quiet, p);
}

static void on_signal(void *arg, int signum)
{
    struct process *p = arg;

    if (signum == SIGHUP || signum == SIGUSR1) {
        if (p->reload)
            (signum == SIGHUP ? sw_reload_now : sw_reload_toggle_debug)(p->reload);
        return;
    }
    if (p->is_stopping) {
        sw_log_warn(&p->log, "told again, ending at once", SW_INT("signal", signum));
        _exit(128 + signum);
    }
    stop(p);
}

/* ---- starting ---- */

static void begin_log(struct process *p)
{
    const struct sw_settings *s = &p->settings;
    enum sw_log_format format = isatty(STDERR_FILENO) ? SW_LOG_CONSOLE : SW_LOG_JSON;

    if (s->has_log_format)
        format = s->log_format;
    p->sink = sw_log_sink_new(p->loop, STDERR_FILENO, format, s->log_level);
    p->log = (struct sw_log){.sink = p->sink, .name = "slipway"};
    sw_log_info(&p->log, "starting", SW_STR("version", SW_VERSION),
                SW_STR("config", s->config_path));
}

/* "POD_RANDOM": the name for people, the rest so that a Pod that comes again is another. */
static char *identity_of_lease(void)
{
    const char *pod = getenv("POD_NAME");
    char host[256] = "slipway";
    uint64_t random[2];

    gethostname(host, sizeof(host) - 1);
    sw_entropy(random, sizeof(random));
    return sw_asprintf("%s_%016llx%016llx", pod && pod[0] ? pod : host,
                       (unsigned long long)random[0], (unsigned long long)random[1]);
}

static int connect(struct process *p, struct sw_error *error)
{
    struct sw_credentials_options where = {p->settings.kubeconfig, p->settings.context};
    int code = sw_credentials_open(p->loop, &where, &p->log, &p->credentials, error);

    if (!code)
        code = sw_transport_http_open(p->loop, p->credentials, "slipway", &p->log, &p->transport,
                                      error);
    if (code)
        return code;
    const struct sw_url *server = sw_credentials_server(p->credentials);
    sw_log_info(&p->log, "using API server", SW_STR("host", server->host),
                SW_INT("port", server->port));
    return 0;
}

static void make_core(struct process *p)
{
    const struct sw_settings *s = &p->settings;
    SW_AUTO(char, sw_free) identity = identity_of_lease();
    const char *own = sw_credentials_namespace(p->credentials);
    struct sw_lease_options lease = {
        .namespace_ = s->leader_election_namespace ? s->leader_election_namespace : own,
        .name = s->leader_election_id,
        .identity = identity,
        .duration_ms = s->lease_duration_ms,
        .renew_deadline_ms = s->renew_deadline_ms,
        .retry_ms = s->retry_period_ms,
    };
    struct sw_core_options options = {
        .host = sw_credentials_server(p->credentials)->host,
        .path_prefix = sw_credentials_server(p->credentials)->path,
        .requests_per_second = s->kube_api_qps,
        .burst = s->kube_api_burst,
        .namespace_ = s->namespace_,
        .lease = s->leader_elect ? &lease : NULL,
        .streams_lists = s->watch_list,
        .checks_permissions = true,
        .verifies_callers = s->metrics_is_secure && !sw_address_is_off(s->metrics_address),
    };

    p->core = sw_core_new(p->loop, p->transport, &options, p->metrics, &p->log);
}

static int start_modules(struct process *p, struct sw_error *error)
{
    int code = 0;

    for (size_t i = 0; i < p->modules.count && !code; i++) {
        code = sw_core_add(p->core, p->modules.modules[i], p->modules.configs[i], error);
        if (!code)
            sw_log_info(&p->log, "module started", SW_STR("module", p->modules.modules[i]->name));
    }
    return code;
}

static void on_own_certificate(void *arg, struct sw_tls_config *config)
{
    struct process *p = arg;

    if (p->webhook)
        sw_webhook_set_tls(p->webhook, config);
}

/* For tests, which have no year: "AUTHORITY,CERTIFICATE,SETTLE,DROP", in seconds. */
static struct sw_signed_times certificate_times(void)
{
    const char *text = getenv("SLIPWAY_TEST_CERTIFICATE_SECONDS");
    long long s[4];

    if (!text || sscanf(text, "%lld,%lld,%lld,%lld", &s[0], &s[1], &s[2], &s[3]) != 4)
        return sw_signed_times;
    return (struct sw_signed_times){s[0] * 1000000, s[1] * 1000000, s[2] * 1000000, s[3] * 1000000};
}

/* Last: by now every module has registered its paths. */
static int start_webhook_configuration(struct process *p, struct sw_error *error)
{
    const struct sw_settings *s = &p->settings;

    if (!s->webhook_configuration_name)
        return 0;
    if (sw_address_is_off(s->webhook_address)) {
        sw_log_info(&p->log, "without a webhook its configuration is not kept either",
                    SW_STR("name", s->webhook_configuration_name));
        return 0;
    }
    p->webhook_configuration = (struct sw_webhook_configuration_options){
        .name = s->webhook_configuration_name,
        .cert_folder = s->webhook_is_self_signed ? NULL : s->webhook_cert_dir,
        .self_signed = &p->self_signed};
    p->self_signed =
        (struct sw_self_signed_options){.namespace_ = sw_credentials_namespace(p->credentials),
                                        .secret_name = s->webhook_secret_name,
                                        .service_name = s->webhook_service_name,
                                        .times = certificate_times(),
                                        .on_pair = on_own_certificate,
                                        .arg = p};
    return sw_core_add(p->core, &sw_webhook_configuration, &p->webhook_configuration, error);
}

static int open_sockets(struct process *p, struct sw_error *error)
{
    const struct sw_settings *s = &p->settings;
    struct sw_endpoints_options endpoints = {
        .health_address = s->health_address,
        .metrics_address = s->metrics_address,
        .is_metrics_secure = s->metrics_is_secure,
        .metrics_cert_folder = s->metrics_cert_dir,
        .client = p->core->client,
    };
    struct sw_webhook_options webhook = {s->webhook_address,
                                         s->webhook_is_self_signed ? NULL : s->webhook_cert_dir};
    int code = sw_endpoints_open(p->loop, &endpoints, &p->health, p->metrics, &p->log,
                                 &p->endpoints, error);

    if (!code && !sw_address_is_off(s->webhook_address))
        code = sw_webhook_open(p->loop, p->core, &webhook, p->metrics, &p->log, &p->webhook, error);
    return code;
}

static int open_signals(struct process *p, struct sw_error *error)
{
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < SW_ARRAY_SIZE(signums); i++) {
        int code = sw_signal_open(p->loop, signums[i], on_signal, p, &p->signals[i]);
        if (code)
            return sw_error_set(error, code, "cannot wait for signals: %s", sw_strerror(code));
    }
    hold_signals(SIG_UNBLOCK, signums, SW_ARRAY_SIZE(signums));
    return 0;
}

static int open_reload(struct process *p, struct sw_error *error)
{
    struct sw_reload_options options = {p->arguments, &p->settings, &p->modules, p->core, p->sink};

    return sw_reload_open(p->loop, &options, p->metrics, &p->log, &p->reload, error);
}

static void on_username(void *arg, const char *username)
{
    struct process *p = arg;

    sw_core_set_username(p->core, username);
}

static int start(struct process *p, struct sw_error *error)
{
    int code = open_signals(p, error);

    if (!code)
        code = connect(p, error);
    if (code)
        return code;
    make_core(p);
    code = start_modules(p, error);
    if (!code)
        code = start_webhook_configuration(p, error);
    if (!code)
        code = open_sockets(p, error);
    if (!code)
        code = open_reload(p, error);
    if (code)
        return code;
    sw_core_open(p->core);
    p->identity =
        sw_identity_open(p->loop, p->core->client, p->credentials, &p->log, on_username, p);
    sw_timer_start(&p->ready, READY_LOOK_MS);
    return 0;
}

static void end(struct process *p)
{
    sw_process_metrics_free(p->process_metrics);
    sw_metrics_free(p->metrics);
    sw_module_set_done(&p->modules);
    sw_log_sink_free(p->sink);
    if (sw_loop_close(p->loop)) {
        fprintf(stderr, "slipway: handles were left open\n");
        p->exit_status = SW_EXIT_FAILED;
    }
}

int sw_exit_status_of(int code)
{
    return code == SW_E_SYNTAX || code == SW_E_CONFIG ? SW_EXIT_USAGE : SW_EXIT_FAILED;
}

int sw_process_run(const struct sw_arguments *arguments, const struct sw_settings *settings)
{
    struct process p = {.arguments = arguments, .settings = *settings};
    struct sw_error error = {0};

    hold_signals(SIG_BLOCK, signums, SW_ARRAY_SIZE(signums));
    if (sw_module_set_load(&p.modules, settings, &error)) {
        fprintf(stderr, "slipway: %s\n", error.text);
        return SW_EXIT_USAGE;
    }
    int code = sw_loop_open(&p.loop);
    if (code) {
        fprintf(stderr, "slipway: cannot make a loop: %s\n", sw_strerror(code));
        sw_module_set_done(&p.modules);
        return SW_EXIT_FAILED;
    }
    begin_log(&p);
    p.metrics = sw_metrics_new();
    p.process_metrics = sw_process_metrics_new(p.loop, p.metrics);
    p.started_ms = p.complained_ms = sw_now_ms(p.loop);
    sw_timer_init(&p.ready, p.loop, look_for_ready);
    sw_timer_init(&p.stop_delay, p.loop, on_stop_delay);
    sw_defer_init(&p.close, p.loop, close_stopped);
    add_checks(&p);
    if (start(&p, &error)) {
        sw_log_error(&p.log, "cannot start", SW_STR("why", error.text));
        p.exit_status = sw_exit_status_of(error.code);
        close_all(&p);
    }
    sw_loop_run(p.loop);
    end(&p);
    return p.exit_status;
}
