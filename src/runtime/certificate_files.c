/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the pair, and telling of a new one.
 */
#include "runtime/certificate_files.h"

#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/time.h"
#include "base/util.h"
#include "net/tls.h"
#include "net/tls_issue.h"

enum {
    FILE_LIMIT_BYTES = 1024 * 1024,
    POLL_MS = 10 * 1000,   /* as cert-manager's users expect; mounts may send no events */
    LOOK_MS = 3600 * 1000, /* at its end, at least so often: wall clocks are set */
    SAY_MS = 24 * LOOK_MS,
    /* cert-manager renews when a third of its life is left, the authors of scripts some weeks
     * before. */
    LAST_PART = 6,
};
#define LAST_US_MOST (14 * INT64_C(86400000000))

/* In this order. */
enum age {
    AGE_GOOD,
    AGE_LAST, /* of its life, and nobody has renewed it */
    AGE_OVER,
};

struct sw_certificate_files {
    struct sw_loop *loop;
    struct sw_log log;
    struct sw_file_watch *watch;
    const char *whose;
    char *certificate_path, *key_path;
    sw_certificate_files_fn fn;
    void *arg;
    struct sw_error error; /* of the last try */
    bool is_usable;        /* one was found at some time */
    int64_t last_us, not_after_us;
    enum age age; /* as it was said */
    uint64_t said_ms;
    struct sw_timer look;
    struct sw_metric *reads, *failures, *not_after;
};

/* ---- its end ---- */

static void say_age(struct sw_certificate_files *c)
{
    char until[SW_TIME_SIZE];

    sw_time_format(c->not_after_us, until);
    if (c->age == AGE_OVER)
        sw_log_error(&c->log, "certificate has expired, clients refuse it", SW_STR("of", c->whose),
                     SW_STR("file", c->certificate_path), SW_STR("until", until));
    else
        sw_log_warn(&c->log, "certificate expires soon, and has not been renewed",
                    SW_STR("of", c->whose), SW_STR("file", c->certificate_path),
                    SW_STR("until", until));
}

static void look(struct sw_timer *timer)
{
    struct sw_certificate_files *c = container_of(timer, struct sw_certificate_files, look);
    int64_t now_us = sw_wall_us(c->loop), next_us = INT64_C(1000) * LOOK_MS;
    uint64_t now_ms = sw_now_ms(c->loop);
    enum age age = AGE_OVER;

    if (now_us < c->not_after_us) {
        bool is_last = now_us >= c->last_us;
        age = is_last ? AGE_LAST : AGE_GOOD;
        next_us = SW_MIN(next_us, (is_last ? c->not_after_us : c->last_us) - now_us);
    }
    if (age != AGE_GOOD && (age != c->age || now_ms - c->said_ms >= SAY_MS)) {
        c->age = age;
        c->said_ms = now_ms;
        say_age(c);
    }
    c->age = age;
    sw_timer_start(timer, (uint64_t)next_us / 1000 + 1);
}

/* ---- reading ---- */

/* From when on it should have been renewed. */
static void read_times(struct sw_certificate_files *c, const char *pem)
{
    struct sw_tls_facts facts = {0};
    struct sw_error error;

    if (sw_tls_facts_of(pem, &facts, &error))
        return; /* it has been read a moment ago */
    int64_t last_us = (facts.not_after_us - facts.not_before_us) / LAST_PART;
    c->not_after_us = facts.not_after_us;
    c->last_us = facts.not_after_us - SW_MIN(last_us, LAST_US_MOST);
}

static int make_config(struct sw_certificate_files *c, struct sw_tls_config **ret_config)
{
    struct sw_tls_server_options options = {0};
    char *certificate = NULL, *key = NULL;
    size_t certificate_len, key_len = 0;
    int code;

    code = sw_file_read(c->certificate_path, FILE_LIMIT_BYTES, &certificate, &certificate_len,
                        &c->error);
    if (!code)
        code = sw_file_read(c->key_path, FILE_LIMIT_BYTES, &key, &key_len, &c->error);
    if (!code) {
        options.certificate_pem = certificate;
        options.key_pem = key;
        code = sw_tls_server_config_new(&options, ret_config, &c->error);
        if (code)
            sw_error_prefix(&c->error, "%s and its key", c->certificate_path);
        else
            read_times(c, certificate);
    }
    sw_free(certificate);
    sw_free_secret(key, key_len);
    return code;
}

static void take_over(struct sw_certificate_files *c, struct sw_tls_config *config)
{
    char until[SW_TIME_SIZE];

    sw_time_format(c->not_after_us, until);
    sw_log_info(&c->log, c->is_usable ? "certificate replaced" : "certificate read",
                SW_STR("of", c->whose), SW_STR("file", c->certificate_path),
                SW_STR("until", until));
    sw_metric_set(c->not_after, (double)c->not_after_us / 1e6);
    c->is_usable = true;
    c->age = AGE_GOOD;
    look(&c->look);
    c->fn(c->arg, config);
}

static void load(struct sw_certificate_files *c)
{
    struct sw_tls_config *config = NULL;

    c->error = (struct sw_error){0};
    sw_metric_add(c->reads, 1);
    if (make_config(c, &config)) {
        sw_metric_add(c->failures, 1);
        sw_log_warn(&c->log,
                    c->is_usable ? "certificate cannot be used, keeping the one before"
                                 : "no certificate yet, waiting for it",
                    SW_STR("of", c->whose), SW_STR("why", c->error.text));
        return;
    }
    take_over(c, config);
    sw_tls_config_unref(config);
}

static void on_change(void *arg)
{
    load(arg);
}

static struct sw_metric *plain_metric(struct sw_metrics *metrics, enum sw_metric_type type,
                                      const char *name, const char *help)
{
    return sw_metric_child(sw_metrics_family(metrics, type, name, help, NULL, NULL, 0), NULL);
}

int sw_certificate_files_open(struct sw_loop *loop, const char *folder, const char *whose,
                              struct sw_metrics *metrics, const struct sw_log *log,
                              sw_certificate_files_fn fn, void *arg,
                              struct sw_certificate_files **ret_files)
{
    struct sw_certificate_files *c = SW_NEW(struct sw_certificate_files);
    SW_AUTO(char, sw_free)
    ends = sw_asprintf("slipway_%s_certificate_not_after_seconds", whose);

    c->loop = loop;
    c->log = *log;
    c->whose = whose;
    sw_timer_init_weak(&c->look, loop, look);
    c->fn = fn;
    c->arg = arg;
    c->certificate_path = sw_asprintf("%s/tls.crt", folder);
    c->key_path = sw_asprintf("%s/tls.key", folder);
    c->reads = plain_metric(metrics, SW_METRIC_COUNTER, "certwatcher_read_certificate_total",
                            "Times a serving certificate was read from its files.");
    c->failures =
        plain_metric(metrics, SW_METRIC_COUNTER, "certwatcher_read_certificate_errors_total",
                     "Times it could not be used.");
    c->not_after =
        plain_metric(metrics, SW_METRIC_GAUGE, ends, "When it ends, in seconds since 1970.");

    const char *const paths[] = {c->certificate_path, c->key_path};
    int code =
        sw_file_watch_open(loop, paths, SW_ARRAY_SIZE(paths), POLL_MS, on_change, c, &c->watch);
    if (code) {
        sw_certificate_files_close(c);
        return code;
    }
    load(c);
    *ret_files = c;
    return 0;
}

void sw_certificate_files_close(struct sw_certificate_files *files)
{
    if (!files)
        return;
    sw_file_watch_close(files->watch);
    sw_timer_stop(&files->look);
    sw_free(files->certificate_path);
    sw_free(files->key_path);
    sw_free(files);
}

const char *sw_certificate_files_why(const struct sw_certificate_files *files)
{
    return files->is_usable ? "" : files->error.text;
}
