/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of keys, and walks over it.
 */
#include "runtime/settings_change.h"

#include <stddef.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "runtime/settings.h"

enum form {
    BYTES, /* numbers, booleans, enums */
    TEXT,  /* const char *, may be NULL */
    NAMES, /* the list of modules */
};

static const struct setting {
    const char *key; /* several rows of one key follow each other */
    enum form form;
    bool is_at_once;
    size_t offset, size;
} settings[] = {
#define AT(key, form, is_at_once, member)                            \
    {                                                                \
        key, form, is_at_once, offsetof(struct sw_settings, member), \
            sizeof(((struct sw_settings *)NULL)->member)             \
    }
#define AT_ONCE(key, member) AT(key, BYTES, true, member)
#define LATER(key, form, member) AT(key, form, false, member)
    AT_ONCE("log.level", log_level),
    AT_ONCE("client.qps", kube_api_qps),
    AT_ONCE("client.burst", kube_api_burst),
    AT_ONCE("stopDelay", has_stop_delay),
    AT_ONCE("stopDelay", stop_delay_ms),
    /* The connection, what is listed and the modules are there from the first moment on. */
    LATER("kubeconfig", TEXT, kubeconfig),
    LATER("client.context", TEXT, context),
    LATER("client.watchList", BYTES, watch_list),
    LATER("namespace", TEXT, namespace_),
    LATER("moduleDir", TEXT, module_dir),
    LATER("modules", NAMES, modules),
    /* Sockets stay open: who is connected would be cut off. */
    LATER("webhook.bindAddress", TEXT, webhook_address),
    LATER("webhook.certDir", TEXT, webhook_cert_dir),
    LATER("webhook.configurationName", TEXT, webhook_configuration_name),
    LATER("webhook.certificates", BYTES, webhook_is_self_signed),
    LATER("webhook.secretName", TEXT, webhook_secret_name),
    LATER("webhook.serviceName", TEXT, webhook_service_name),
    LATER("healthProbe.bindAddress", TEXT, health_address),
    LATER("metrics.bindAddress", TEXT, metrics_address),
    LATER("metrics.secure", BYTES, metrics_is_secure),
    LATER("metrics.certDir", TEXT, metrics_cert_dir),
    /* Other times or another Lease in the middle of a term: two could lead. */
    LATER("leaderElection.enabled", BYTES, leader_elect),
    LATER("leaderElection.id", TEXT, leader_election_id),
    LATER("leaderElection.namespace", TEXT, leader_election_namespace),
    LATER("leaderElection.leaseDuration", BYTES, lease_duration_ms),
    LATER("leaderElection.renewDeadline", BYTES, renew_deadline_ms),
    LATER("leaderElection.retryPeriod", BYTES, retry_period_ms),
    /* Half a log in each form is of use to nobody. */
    LATER("log.format", BYTES, has_log_format),
    LATER("log.format", BYTES, log_format),
};

static bool are_names_same(const struct sw_settings *a, const struct sw_settings *b)
{
    if (a->module_count != b->module_count)
        return false;
    for (size_t i = 0; i < a->module_count; i++)
        if (strcmp(a->modules[i], b->modules[i]) != 0)
            return false;
    return true;
}

static bool are_texts_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static const void *member(const struct setting *setting, const struct sw_settings *of)
{
    return (const char *)of + setting->offset;
}

static bool is_same(const struct setting *setting, const struct sw_settings *a,
                    const struct sw_settings *b)
{
    const char *text_a, *text_b;

    switch (setting->form) {
    case BYTES:
        return memcmp(member(setting, a), member(setting, b), setting->size) == 0;
    case TEXT:
        memcpy(&text_a, member(setting, a), sizeof(text_a));
        memcpy(&text_b, member(setting, b), sizeof(text_b));
        return are_texts_same(text_a, text_b);
    case NAMES:
        return are_names_same(a, b);
    }
    return false;
}

void sw_settings_add_key(struct sw_buf *keys, const char *key)
{
    sw_buf_printf(keys, "%s%s", keys->len > 0 ? ", " : "", key);
}

/* Rows of one key count once. */
static void add(struct sw_buf *keys, const struct setting *setting, const char **last)
{
    if (!*last || strcmp(*last, setting->key) != 0)
        sw_settings_add_key(keys, setting->key);
    *last = setting->key;
}

void sw_settings_take_over(struct sw_settings *in_force, const struct sw_settings *read,
                           struct sw_buf *keys)
{
    const char *last = NULL;

    for (size_t i = 0; i < SW_ARRAY_SIZE(settings); i++) {
        const struct setting *s = &settings[i];
        if (!s->is_at_once || is_same(s, in_force, read))
            continue;
        memcpy((char *)in_force + s->offset, member(s, read), s->size);
        add(keys, s, &last);
    }
}

void sw_settings_list_waiting(const struct sw_settings *in_force, const struct sw_settings *before,
                              const struct sw_settings *read, struct sw_buf *keys)
{
    const char *last = NULL;

    for (size_t i = 0; i < SW_ARRAY_SIZE(settings); i++) {
        const struct setting *s = &settings[i];
        if (!s->is_at_once && !is_same(s, in_force, read) && !is_same(s, before, read))
            add(keys, s, &last);
    }
}

bool sw_settings_name_other_modules(const struct sw_settings *a, const struct sw_settings *b)
{
    return !are_names_same(a, b) || !are_texts_same(a->module_dir, b->module_dir);
}
