/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running a credential plugin.
 *
 *   state     what happens                          next
 *   idle      the timer waits for the time before   running: at that time; when somebody wants
 *             the expiry, or for the end of the     credentials; after a 401
 *             back-off after a failure
 *   running   one child                             idle, and the owner is told
 *
 * client-go runs a plugin when a request finds its credentials expired, and lets requests wait for
 * it meanwhile. Here it runs before, so that none has to wait while all is well.
 *
 * Standard error is for people: it goes into the message where the plugin fails, and into the log
 * at debug level where it does not. Standard output is a secret and goes nowhere.
 */
#include "kube/exec_plugin.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/error.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/util.h"
#include "kube/backoff.h"
#include "kube/exec_credential.h"
#include "kube/kubeconfig.h"

enum {
    OUTPUT_LIMIT = 1 << 20, /* a chain of certificates is some KiB */
    COMPLAINT_LIMIT = 4096,
    COMPLAINT_SHOWN = 300, /* the end of it: the last words say why */
};

/* Clouds answer within seconds; some plugins wait for a person who never comes. */
#define TIMEOUT_MS UINT64_C(60000)
#define REFUSED_GAP_MS UINT64_C(10000)
/* Credentials that end at once would run it all the time. */
#define EARLIEST_MS UINT64_C(1000)
#define LATEST_MS (UINT64_C(24) * 3600 * 1000) /* then another look at the clock */

struct sw_exec_plugin {
    struct sw_loop *loop;
    struct sw_log log;
    const struct sw_kubeconfig *config;
    const struct sw_exec_plugin_events *events;
    void *arg;
    char *path;   /* of the command */
    char *ca_pem; /* as said last */
    struct sw_child *child;
    struct sw_timer timer;
    struct sw_backoff backoff;
    uint64_t not_before_ms; /* after a failure */
    uint64_t refused_ms;    /* when it last ran for a 401; 0: never */
    int64_t expires_us;     /* INT64_MAX: nobody knows */
    struct sw_error error;
};

/* ---- what it is started with ---- */

static bool is_set_by(char *const *env, const char *variable)
{
    size_t len = strcspn(variable, "=");
    for (; env && *env; env++) {
        if (strncmp(*env, variable, len) == 0 && (*env)[len] == '=') {
            return true;
        }
    }
    return false;
}

static size_t count_of(char *const *texts)
{
    size_t count = 0;
    while (texts && texts[count]) {
        count++;
    }
    return count;
}

/* Ours, but for what the kubeconfig says, and KUBERNETES_EXEC_INFO. The texts are borrowed. */
static char **environment(const struct sw_exec_plugin *plugin, char *info)
{
    char **own = plugin->config->exec->env;
    char **env = sw_calloc(count_of(environ) + count_of(own) + 2, sizeof(*env));
    size_t count = 0;
    for (char **e = environ; e && *e; e++) {
        if (!is_set_by(own, *e) && strncmp(*e, "KUBERNETES_EXEC_INFO=", 21) != 0) {
            env[count++] = *e;
        }
    }
    for (char **e = own; e && *e; e++) {
        env[count++] = *e;
    }
    env[count] = info;
    return env;
}

static char **arguments(const struct sw_exec_plugin *plugin)
{
    char **args = plugin->config->exec->args;
    char **argv = sw_calloc(count_of(args) + 2, sizeof(*argv));
    argv[0] = plugin->config->exec->command;
    for (size_t i = 0; args && args[i]; i++) {
        argv[i + 1] = args[i];
    }
    return argv;
}

/* ---- how it went ---- */

/* The last words, on one line, as UTF-8. */
static void last_words(const struct sw_child_result *result, char text[COMPLAINT_SHOWN + 1])
{
    const char *from = result->complaint;
    size_t len = result->complaint_len;
    while (len > 0 && strchr(" \t\r\n", from[len - 1])) {
        len--;
    }
    if (len > COMPLAINT_SHOWN) {
        from += len - COMPLAINT_SHOWN;
        len = COMPLAINT_SHOWN;
    }
    for (size_t i = 0; i < len; i++) {
        bool is_control = (unsigned char)from[i] < ' ' || from[i] == 0x7f;
        text[i] = is_control ? ' ' : from[i];
    }
    text[len] = '\0';
}

static void judge_end(struct sw_exec_plugin *plugin, const struct sw_child_result *result)
{
    struct sw_error *error = &plugin->error;
    char words[COMPLAINT_SHOWN + 1];
    last_words(result, words);
    const char *colon = words[0] ? ": " : "";
    if (result->code == -ETIMEDOUT) {
        sw_error_set(error, -ETIMEDOUT, "it was killed, having taken more than %llu s%s%s",
                     (unsigned long long)(TIMEOUT_MS / 1000), colon, words);
    } else if (result->code) {
        sw_error_set(error, result->code, "it was killed, having printed more than %d bytes",
                     OUTPUT_LIMIT);
    } else if (result->signal) {
        sw_error_set(error, SW_E_CREDENTIALS, "it was ended by signal %d%s%s", result->signal,
                     colon, words);
    } else if (result->exit_status) {
        sw_error_set(error, SW_E_CREDENTIALS, "it failed with exit status %d%s%s",
                     result->exit_status, colon, words);
    } else {
        error->code = 0;
    }
}

static void failed(struct sw_exec_plugin *plugin)
{
    uint64_t wait = sw_backoff_fail(&plugin->backoff, plugin->loop, 0);
    plugin->not_before_ms = sw_now_ms(plugin->loop) + wait;
    sw_error_prefix(&plugin->error, "credential plugin \"%.128s\"", plugin->config->exec->command);
    plugin->error.code = SW_E_CREDENTIALS;
    sw_log_error(&plugin->log, "no new credentials", SW_STR("why", plugin->error.text),
                 SW_MS("again_after", wait));
    sw_timer_start(&plugin->timer, wait);
}

static void read_answer(struct sw_exec_plugin *plugin, const struct sw_child_result *result)
{
    struct sw_error *error = &plugin->error;
    struct sw_exec_credential credential;
    error->code = sw_exec_credential_parse(plugin->config->exec->api_version, result->output,
                                           result->output_len, &credential, error);
    if (!error->code) {
        error->code = plugin->events->take(plugin->arg, &credential, error);
        sw_exec_credential_done(&credential);
    }
}

static void on_child(void *arg, const struct sw_child_result *result)
{
    struct sw_exec_plugin *plugin = arg;
    plugin->child = NULL;
    judge_end(plugin, result);
    if (!plugin->error.code) {
        read_answer(plugin, result);
    }
    if (plugin->error.code) {
        failed(plugin);
    } else {
        char words[COMPLAINT_SHOWN + 1];
        last_words(result, words);
        sw_log_debug(&plugin->log, "the credential plugin has answered",
                     SW_STR("command", plugin->config->exec->command), SW_STR("stderr", words));
        plugin->backoff.failures = 0;
        plugin->not_before_ms = 0;
    }
    plugin->events->on_done(plugin->arg);
}

/* ---- running ---- */

static int start(struct sw_exec_plugin *plugin)
{
    SW_AUTO(char, sw_free) value = sw_exec_info(plugin->config, plugin->ca_pem);
    SW_AUTO(char, sw_free) info = sw_asprintf("KUBERNETES_EXEC_INFO=%s", value);
    char **argv = arguments(plugin);
    char **env = environment(plugin, info);
    struct sw_child_options options = {
        .path = plugin->path,
        .argv = argv,
        .env = env,
        .timeout_ms = TIMEOUT_MS,
        .output_limit_bytes = OUTPUT_LIMIT,
        .complaint_limit_bytes = COMPLAINT_LIMIT,
    };
    int rc = sw_child_run(plugin->loop, &options, on_child, plugin, &plugin->child);
    sw_free(argv);
    sw_free(env);
    return rc;
}

bool sw_exec_plugin_run(struct sw_exec_plugin *plugin, const char *ca_pem)
{
    if (plugin->child) {
        return true;
    }
    if (sw_now_ms(plugin->loop) < plugin->not_before_ms) {
        return false;
    }
    if (ca_pem != plugin->ca_pem) {
        sw_free(plugin->ca_pem);
        plugin->ca_pem = ca_pem ? sw_strdup(ca_pem) : NULL;
    }
    sw_timer_stop(&plugin->timer);
    int rc = start(plugin);
    if (rc) {
        const char *hint = plugin->config->exec->install_hint;
        sw_error_set(&plugin->error, rc, "it cannot be run: %s%s%s", sw_strerror(rc),
                     hint ? "; " : "", hint ? hint : "");
        failed(plugin);
    }
    return !rc;
}

bool sw_exec_plugin_run_refused(struct sw_exec_plugin *plugin, const char *ca_pem)
{
    uint64_t now = sw_now_ms(plugin->loop);
    if (plugin->child) {
        return true;
    }
    if (plugin->refused_ms && now - plugin->refused_ms < REFUSED_GAP_MS) {
        return false;
    }
    plugin->refused_ms = now;
    return sw_exec_plugin_run(plugin, ca_pem);
}

static void on_timer(struct sw_timer *timer)
{
    struct sw_exec_plugin *plugin = container_of(timer, struct sw_exec_plugin, timer);
    if (!plugin->error.code &&
        plugin->expires_us - sw_wall_us(plugin->loop) > (int64_t)LATEST_MS * 1000) {
        sw_exec_plugin_expect(plugin, plugin->expires_us);
        return;
    }
    sw_exec_plugin_run(plugin, plugin->ca_pem);
}

void sw_exec_plugin_expect(struct sw_exec_plugin *plugin, int64_t expires_us)
{
    plugin->expires_us = expires_us;
    if (expires_us == INT64_MAX) {
        sw_timer_stop(&plugin->timer);
        return;
    }
    int64_t left_ms = (expires_us - sw_wall_us(plugin->loop)) / 1000;
    uint64_t wait_ms = left_ms > 0 ? (uint64_t)left_ms / 5 * 4 : 0;
    sw_timer_start(&plugin->timer, SW_MIN(SW_MAX(wait_ms, EARLIEST_MS), LATEST_MS));
}

/* ---- life ---- */

const struct sw_error *sw_exec_plugin_error(const struct sw_exec_plugin *plugin)
{
    return &plugin->error;
}

int sw_exec_plugin_open(struct sw_loop *loop, const struct sw_kubeconfig *config,
                        const struct sw_log *log, const struct sw_exec_plugin_events *events,
                        void *arg, struct sw_exec_plugin **ret_plugin, struct sw_error *error)
{
    const struct sw_kubeconfig_exec *exec = config->exec;
    char *path;
    int rc = sw_child_find(exec->command, &path);
    if (rc) {
        const char *hint = exec->install_hint;
        return sw_error_set(error, rc, "user \"%.64s\": the credential plugin \"%.128s\" %s%s%s",
                            config->user, exec->command,
                            rc == -EACCES ? "cannot be run: permission denied" : "is not there",
                            hint                         ? "; "
                            : strchr(exec->command, '/') ? ""
                                                         : ": it lies in no folder of PATH",
                            hint ? hint : "");
    }
    struct sw_exec_plugin *plugin = SW_NEW(struct sw_exec_plugin);
    plugin->loop = loop;
    plugin->log = *log;
    plugin->config = config;
    plugin->events = events;
    plugin->arg = arg;
    plugin->path = path;
    plugin->expires_us = INT64_MAX;
    plugin->backoff = (struct sw_backoff){.first_ms = 1000, .limit_ms = 60000};
    sw_timer_init_weak(&plugin->timer, loop, on_timer);
    *ret_plugin = plugin;
    return 0;
}

void sw_exec_plugin_close(struct sw_exec_plugin *plugin)
{
    if (!plugin) {
        return;
    }
    sw_child_kill(plugin->child);
    sw_timer_stop(&plugin->timer);
    sw_free(plugin->path);
    sw_free(plugin->ca_pem);
    sw_free(plugin);
}
