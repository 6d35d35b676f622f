/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading, comparing, applying. Who owns a module's configuration is settled in one place, keep():
 * the one that the module has by then belongs to the set, every other one is freed.
 */
#include "runtime/reload.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/config.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/util.h"
#include "runtime/core.h"
#include "runtime/module_loader.h"
#include "runtime/module_set.h"
#include "runtime/settings.h"
#include "runtime/settings_change.h"

#include <slipway/module.h>

enum {
    /* Two mounts are swapped one after the other, and an editor saves one file after the other. The
     * kubelet takes up to a minute to bring a change here: nobody waits for this. */
    SETTLE_MS = 250,
    POLL_MS = 60 * 1000, /* some mounts send no events */
    KEYS_LIMIT_BYTES = 4096,
};

enum result {
    APPLIED,
    INVALID, /* a file is wrong */
    REFUSED, /* by a module */
    RESULT_COUNT,
};

struct sw_reload {
    struct sw_loop *loop;
    struct sw_log log;
    struct sw_reload_options options;
    struct sw_settings read; /* last, where that was applied */
    void **waiting;          /* of each module: read last, and told of; NULL: none */
    struct sw_file_watch *watch;
    struct sw_timer settle;
    bool is_debugging;
    struct sw_metric *success, *succeeded_at, *results[RESULT_COUNT];
};

/* One run. */
struct attempt {
    struct sw_settings settings;
    void **configs;       /* as read; NULL once they belong to somebody else */
    const void **offered; /* what each module is to have */
    struct sw_buf applied, later;
    struct sw_error error;
};

/* ---- what changes ---- */

static bool is_same(const struct sw_module *module, const void *a, const void *b)
{
    return a == b || (a && b && sw_config_is_same(module->config_schema, a, b));
}

static void add_module(struct sw_buf *keys, const struct sw_module *module)
{
    SW_AUTO(char, sw_free) file = sw_asprintf("modules.d/%s.yaml", module->name);

    sw_settings_add_key(keys, file);
}

/* What cannot be applied is remembered, so that it is said once. */
static void let_wait(struct sw_reload *reload, struct attempt *a, size_t i)
{
    const struct sw_module *module = reload->options.modules->modules[i];
    bool is_new = !reload->waiting[i] || !is_same(module, reload->waiting[i], a->configs[i]);

    if (is_new)
        add_module(&a->later, module);
    sw_module_config_free(module, reload->waiting[i]);
    reload->waiting[i] = sw_steal(&a->configs[i]);
}

static void forget_waiting(struct sw_reload *reload, size_t i)
{
    reload->waiting[i] =
        sw_module_config_free(reload->options.modules->modules[i], reload->waiting[i]);
}

static void offer(struct sw_reload *reload, struct attempt *a)
{
    const struct sw_module_set *set = reload->options.modules;

    a->offered = sw_calloc(set->count, sizeof(void *));
    for (size_t i = 0; i < set->count; i++) {
        bool changes = !is_same(set->modules[i], set->configs[i], a->configs[i]);
        a->offered[i] = changes && set->modules[i]->reconfigure ? a->configs[i] : set->configs[i];
    }
}

/* ---- applying ---- */

/* The set gets what each module has now; what is left in the attempt is nobody's. */
static void keep(struct sw_reload *reload, struct attempt *a)
{
    struct sw_module_set *set = reload->options.modules;

    for (size_t i = 0; i < set->count; i++) {
        if (sw_core_config(reload->options.core, i) == set->configs[i])
            continue;
        void *old = set->configs[i];
        set->configs[i] = a->configs[i];
        a->configs[i] = old;
    }
}

static void look_at_modules(struct sw_reload *reload, struct attempt *a)
{
    const struct sw_module_set *set = reload->options.modules;

    for (size_t i = 0; i < set->count; i++) {
        bool was_offered = a->offered[i] != set->configs[i];
        if (was_offered)
            add_module(&a->applied, set->modules[i]);
        else if (!is_same(set->modules[i], set->configs[i], a->configs[i]))
            let_wait(reload, a, i);
        else
            forget_waiting(reload, i);
    }
}

/* A line that says so comes by the more talkative of the two levels, old and new. */
static void apply_settings(struct sw_reload *reload, struct attempt *a)
{
    struct sw_settings *in_force = reload->options.settings;
    enum sw_level old = in_force->log_level;

    sw_settings_list_waiting(in_force, &reload->read, &a->settings, &a->later);
    sw_settings_take_over(in_force, &a->settings, &a->applied);
    sw_core_set_rate(reload->options.core, in_force->kube_api_qps, in_force->kube_api_burst);
    if (!reload->is_debugging)
        sw_log_sink_set_level(reload->options.sink, SW_MIN(old, in_force->log_level));
}

static void count(struct sw_reload *reload, enum result result)
{
    sw_metric_add(reload->results[result], 1);
    sw_metric_set(reload->success, result == APPLIED);
    if (result == APPLIED)
        sw_metric_set(reload->succeeded_at, (double)sw_wall_us(reload->loop) / 1e6);
}

static void tell(struct sw_reload *reload, const struct attempt *a)
{
    sw_log_info(&reload->log, "configuration read again",
                SW_STR("applied", a->applied.len > 0 ? a->applied.bytes : "nothing new"));
    if (a->later.len > 0)
        sw_log_warn(&reload->log, "changed, and applies after a restart",
                    SW_STR("keys", a->later.bytes));
    if (!reload->is_debugging)
        sw_log_sink_set_level(reload->options.sink, reload->options.settings->log_level);
}

static int read_all(struct sw_reload *reload, struct attempt *a)
{
    const struct sw_reload_options *o = &reload->options;
    int code = sw_settings_load(o->arguments, &a->settings, &a->error);

    if (code)
        return code;
    bool are_others = sw_settings_name_other_modules(o->settings, &a->settings);
    return sw_module_set_read(o->modules, &a->settings, are_others, &a->configs, &a->error);
}

static enum result try_it(struct sw_reload *reload, struct attempt *a)
{
    if (read_all(reload, a)) {
        sw_log_error(&reload->log, "configuration cannot be used, keeping the one in force",
                     SW_STR("why", a->error.text));
        return INVALID;
    }
    offer(reload, a);
    if (sw_core_reconfigure(reload->options.core, a->offered, reload->options.modules->count,
                            &a->error)) {
        sw_log_error(&reload->log, "configuration refused, keeping the one in force",
                     SW_STR("why", a->error.text));
        keep(reload, a);
        return REFUSED;
    }
    look_at_modules(reload, a);
    keep(reload, a);
    apply_settings(reload, a);
    tell(reload, a);
    sw_settings_done(&reload->read);
    reload->read = a->settings;
    a->settings.file = NULL;
    return APPLIED;
}

static void attempt_init(struct attempt *a)
{
    *a = (struct attempt){0};
    sw_buf_init(&a->applied, KEYS_LIMIT_BYTES);
    sw_buf_init(&a->later, KEYS_LIMIT_BYTES);
}

static void attempt_done(struct sw_reload *reload, struct attempt *a)
{
    sw_settings_done(&a->settings);
    sw_module_set_free_configs(reload->options.modules, a->configs);
    sw_free(a->offered);
    sw_buf_done(&a->applied);
    sw_buf_done(&a->later);
}

void sw_reload_now(struct sw_reload *reload)
{
    struct attempt a;

    sw_timer_stop(&reload->settle);
    sw_file_watch_see(reload->watch);
    attempt_init(&a);
    count(reload, try_it(reload, &a));
    attempt_done(reload, &a);
}

/* Whether the files say what is in force. Changes nothing. */
static bool is_in_force(struct sw_reload *reload)
{
    const struct sw_module_set *set = reload->options.modules;
    const struct sw_settings *in_force = reload->options.settings;
    struct sw_settings copy = *in_force;
    struct attempt a;

    attempt_init(&a);
    bool is_same_all = read_all(reload, &a) == 0;
    if (is_same_all) {
        sw_settings_list_waiting(in_force, in_force, &a.settings, &a.later);
        sw_settings_take_over(&copy, &a.settings, &a.applied);
        is_same_all = a.later.len + a.applied.len == 0;
    }
    for (size_t i = 0; i < set->count && is_same_all; i++)
        is_same_all = is_same(set->modules[i], set->configs[i], a.configs[i]);
    attempt_done(reload, &a);
    return is_same_all;
}

/* ---- the level of the log ---- */

void sw_reload_toggle_debug(struct sw_reload *reload)
{
    enum sw_level level = reload->options.settings->log_level;

    reload->is_debugging = !reload->is_debugging;
    sw_log_sink_set_level(reload->options.sink, SW_LEVEL_DEBUG);
    if (reload->is_debugging) {
        sw_log_info(&reload->log, "logging everything until told again",
                    SW_STR("configured", sw_log_level_name(level)));
        return;
    }
    sw_log_info(&reload->log, "logging as configured again",
                SW_STR("level", sw_log_level_name(level)));
    sw_log_sink_set_level(reload->options.sink, level);
}

/* ---- life ---- */

static void on_settled(struct sw_timer *timer)
{
    sw_reload_now(container_of(timer, struct sw_reload, settle));
}

static void on_change(void *arg)
{
    struct sw_reload *reload = arg;

    sw_timer_start(&reload->settle, SETTLE_MS);
}

static struct sw_metric *gauge(struct sw_metrics *metrics, const char *name, const char *help)
{
    return sw_metric_child(sw_metrics_family(metrics, SW_METRIC_GAUGE, name, help, NULL, NULL, 0),
                           NULL);
}

static void open_metrics(struct sw_reload *reload, struct sw_metrics *metrics)
{
    static const char *const labels[] = {"result", NULL};
    static const char *const names[RESULT_COUNT] = {"applied", "invalid", "refused"};
    struct sw_metric_family *results = sw_metrics_family(
        metrics, SW_METRIC_COUNTER, "slipway_config_reloads_total",
        "Times the configuration was read again: applied; invalid: a file is wrong; refused: by a "
        "module.",
        labels, NULL, 0);

    for (size_t i = 0; i < RESULT_COUNT; i++)
        reload->results[i] = sw_metric_child(results, (const char *const[]){names[i]});
    reload->success = gauge(metrics, "slipway_config_reload_success",
                            "1 if the configuration that was read last is in force.");
    reload->succeeded_at = gauge(metrics, "slipway_config_reload_success_timestamp_seconds",
                                 "When one was last taken, in seconds since 1970.");
    sw_metric_set(reload->success, 1);
    sw_metric_set(reload->succeeded_at, (double)sw_wall_us(reload->loop) / 1e6);
}

/* slipway.yaml, the names in modules.d (one that belongs to no module is a mistake), and what may
 * stand in it for the modules that run. */
static int open_watch(struct sw_reload *reload)
{
    const struct sw_module_set *set = reload->options.modules;
    SW_AUTO(char, sw_free) folder = sw_settings_module_folder(reload->options.settings);
    size_t count = 0;
    char **paths = sw_calloc(set->count + 2, sizeof(char *));

    paths[count++] = sw_strdup(reload->options.settings->config_path);
    paths[count++] = sw_asprintf("%s/", folder);
    for (size_t i = 0; i < set->count; i++)
        paths[count++] = sw_asprintf("%s/%s.yaml", folder, set->modules[i]->name);
    int code = sw_file_watch_open(reload->loop, (const char *const *)paths, count, POLL_MS,
                                  on_change, reload, &reload->watch);
    while (count > 0)
        sw_free(paths[--count]);
    sw_free(paths);
    return code;
}

int sw_reload_open(struct sw_loop *loop, const struct sw_reload_options *options,
                   struct sw_metrics *metrics, const struct sw_log *log,
                   struct sw_reload **ret_reload, struct sw_error *error)
{
    struct sw_reload *reload = SW_NEW(struct sw_reload);

    reload->loop = loop;
    reload->options = *options;
    reload->log = *log;
    reload->read = *options->settings;
    reload->read.file = NULL; /* its strings stay the caller's */
    reload->waiting = sw_calloc(options->modules->count, sizeof(void *));
    sw_timer_init_weak(&reload->settle, loop, on_settled);
    open_metrics(reload, metrics);
    int code = open_watch(reload);
    if (code) {
        sw_reload_close(reload);
        return sw_error_set(error, code, "configuration cannot be watched: %s", sw_strerror(code));
    }
    /* Of a change between the first reading and now there is no event. */
    if (!is_in_force(reload))
        on_change(reload);
    *ret_reload = reload;
    return 0;
}

void sw_reload_close(struct sw_reload *reload)
{
    if (!reload)
        return;
    sw_timer_stop(&reload->settle);
    sw_file_watch_close(reload->watch);
    sw_settings_done(&reload->read);
    sw_module_set_free_configs(reload->options.modules, reload->waiting);
    sw_free(reload);
}
