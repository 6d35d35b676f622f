/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of Pods: reading them, and which count for a Pod. */
#include "pod_rules.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/list.h"
#include "base/util.h"
#include "dump.h"
#include "kube/selector.h"
#include "look.h"
#include "store.h"

#define PREFIX "kubelets.slipway.dev/"

enum setting { START, STOP, READY, FAIL, FLAP, SETTINGS };

static const char *const names[SETTINGS] = {"start", "stop", "ready", "fail", "flap"};

static const struct {
    const char *name;
    bool never_runs;
} reasons[] = {
    {"CreateContainerConfigError", true},
    {"CreateContainerError", true},
    {"ErrImagePull", true},
    {"ImagePullBackOff", true},
    {"InvalidImageName", true},
    {"CrashLoopBackOff", false},
    {"OOMKilled", false},
    {"RunContainerError", false},
};

struct told {
    bool has[SETTINGS];
    struct sw_sim_pod_settings values;
};

struct rule {
    struct sw_link link;
    char *name;
    json_t *json;                 /* as told */
    const char *namespace_, *pod; /* of json; "": any */
    struct sw_selector *selector; /* NULL: any */
    struct told told;
};

struct sw_sim_pod_rules {
    struct sw_link rules; /* from the oldest to the newest */
    struct sw_sim_pod_settings defaults;
};

/* ---- values ---- */

static int read_number(const char **at, double *ret_number)
{
    size_t whole = strspn(*at, "0123456789");
    size_t len = whole;
    if (whole && (*at)[len] == '.') {
        size_t part = strspn(*at + len + 1, "0123456789");
        if (!part)
            return -EINVAL;
        len += 1 + part;
    }
    if (!whole || len > 15)
        return -EINVAL;
    *ret_number = strtod(*at, NULL);
    *at += len;
    return 0;
}

static double unit_of(const char **at)
{
    static const struct {
        const char *name;
        double ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
    for (size_t i = 0; i < SW_ARRAY_SIZE(units); i++) {
        size_t len = strlen(units[i].name);
        if (strncmp(*at, units[i].name, len) == 0) {
            *at += len;
            return units[i].ms;
        }
    }
    return 0;
}

int sw_sim_pod_duration(const char *text, uint64_t *ret_ms, struct sw_error *error)
{
    const char *at = text;
    double sum = 0, number;
    bool has_unit = false;
    do {
        if (read_number(&at, &number))
            goto wrong;
        double unit = unit_of(&at);
        if (unit == 0 && (*at || has_unit))
            goto wrong;
        sum += number * (unit > 0 ? unit : 1000); /* seconds without one */
        has_unit = true;
    } while (*at);
    *ret_ms = (uint64_t)ceil(sum - 1e-6); /* 1.1 s is 1100 ms, not a hair more */
    return 0;
wrong:
    return sw_error_set(error, -EINVAL, "\"%s\" is not a time such as 3s, 200ms or 1m30s", text);
}

static int read_boolean(const char *text, bool *ret_value, struct sw_error *error)
{
    *ret_value = strcasecmp(text, "true") == 0;
    if (!*ret_value && strcasecmp(text, "false") != 0)
        return sw_error_set(error, -EINVAL, "\"%s\" is neither true nor false", text);
    return 0;
}

static int read_reason(const char *text, struct sw_sim_pod_settings *values, struct sw_error *error)
{
    values->fail = "";
    values->never_runs = false;
    if (!*text || strcmp(text, "no") == 0 || strcmp(text, "none") == 0)
        return 0;
    for (size_t i = 0; i < SW_ARRAY_SIZE(reasons); i++) {
        if (strcmp(text, reasons[i].name) == 0) {
            values->fail = reasons[i].name;
            values->never_runs = reasons[i].never_runs;
            return 0;
        }
    }
    return sw_error_set(error, -EINVAL,
                        "\"%s\" is not one of CrashLoopBackOff, CreateContainerConfigError, "
                        "CreateContainerError, ErrImagePull, ImagePullBackOff, InvalidImageName, "
                        "OOMKilled, RunContainerError",
                        text);
}

static int read_setting(enum setting setting, const char *text, struct told *told,
                        struct sw_error *error)
{
    struct sw_sim_pod_settings *values = &told->values;
    int result = 0;
    switch (setting) {
    case START:
        result = sw_sim_pod_duration(text, &values->start_ms, error);
        break;
    case STOP:
        if (strcmp(text, "grace") == 0)
            values->stop_ms = SW_SIM_STOP_GRACE;
        else
            result = sw_sim_pod_duration(text, &values->stop_ms, error);
        break;
    case READY:
        result = read_boolean(text, &values->is_ready, error);
        break;
    case FAIL:
        result = read_reason(text, values, error);
        break;
    case FLAP:
        result = sw_sim_pod_duration(text, &values->flap_ms, error);
        if (!result && values->flap_ms > 0 && values->flap_ms < 50)
            result =
                sw_error_set(error, -EINVAL, "\"%s\" is too short; 50ms is the shortest", text);
        break;
    case SETTINGS:
        break;
    }
    if (result && error)
        sw_error_prefix(error, "%s", names[setting]);
    told->has[setting] = result == 0;
    return result;
}

/* Numbers and booleans may be told as such. */
static char *text_of(const json_t *value)
{
    if (json_is_string(value))
        return sw_strdup(json_string_value(value));
    char *dumped = sw_sim_dump_as(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(12));
    char *text = sw_strdup(dumped ? dumped : "");
    sw_free(dumped);
    return text;
}

static int read_member(const char *name, const json_t *value, struct told *told,
                       struct sw_error *error)
{
    for (size_t i = 0; i < SETTINGS; i++) {
        if (strcmp(name, names[i]) == 0) {
            SW_AUTO(char, sw_free) text = text_of(value);
            return read_setting((enum setting)i, text, told, error);
        }
    }
    return sw_error_set(error, -EINVAL,
                        "there is no setting \"%s\"; there are fail, flap, ready, start, stop",
                        name);
}

static void merge(struct sw_sim_pod_settings *into, const struct told *told)
{
    if (told->has[START])
        into->start_ms = told->values.start_ms;
    if (told->has[STOP])
        into->stop_ms = told->values.stop_ms;
    if (told->has[READY])
        into->is_ready = told->values.is_ready;
    if (told->has[FLAP])
        into->flap_ms = told->values.flap_ms;
    if (told->has[FAIL]) {
        into->fail = told->values.fail;
        into->never_runs = told->values.never_runs;
    }
}

/* ---- rules ---- */

static struct rule *rule_free(struct rule *rule)
{
    if (!rule)
        return NULL;
    sw_link_remove(&rule->link);
    sw_selector_free(rule->selector);
    json_decref(rule->json);
    sw_free(rule->name);
    return sw_free(rule);
}

SW_AUTO_DEFINE(struct rule, rule_free)

static int read_where(struct rule *rule, const char *key, const json_t *value, bool *ret_is_where,
                      struct sw_error *error)
{
    *ret_is_where = true;
    const char *text = json_string_value(value);
    if (strcmp(key, "namespace") == 0) {
        rule->namespace_ = text ? text : "";
    } else if (strcmp(key, "pod") == 0) {
        rule->pod = text ? text : "";
    } else if (strcmp(key, "selector") == 0) {
        char why[256];
        if (text && *text && sw_selector_parse_text(text, &rule->selector, why, sizeof(why)))
            return sw_error_set(error, -EINVAL,
                                "\"%s\" is not a label selector such as app=web,tier!=db", text);
    } else {
        *ret_is_where = false;
    }
    return 0;
}

static int read_rule(struct rule *rule, struct sw_error *error)
{
    const char *key;
    json_t *value;
    bool sets = false;
    json_object_foreach(rule->json, key, value)
    {
        bool is_where;
        int result = read_where(rule, key, value, &is_where, error);
        if (!result && !is_where && !json_is_null(value)) {
            result = read_member(key, value, &rule->told, error);
            sets = true;
        }
        if (result)
            return result;
    }
    if (!sets)
        return sw_error_set(error, -EINVAL,
                            "the rule sets nothing; it may set fail, flap, ready, start, stop");
    return 0;
}

int sw_sim_pod_rules_set(struct sw_sim_pod_rules *rules, const char *name, const json_t *told,
                         struct sw_error *error)
{
    SW_AUTO(struct rule, rule_free) rule = SW_NEW(struct rule);
    sw_link_init(&rule->link);
    rule->name = sw_strdup(name);
    rule->json = json_deep_copy(sw_look_loose(told));
    rule->namespace_ = rule->pod = "";
    int result = read_rule(rule, error);
    if (result)
        return result;
    sw_sim_pod_rules_remove(rules, name);
    sw_link_add_last(&rules->rules, &rule->link);
    sw_steal(&rule);
    return 0;
}

size_t sw_sim_pod_rules_remove(struct sw_sim_pod_rules *rules, const char *name)
{
    size_t count = 0;
    SW_LIST_EACH (link, &rules->rules) {
        struct rule *rule = container_of(link, struct rule, link);
        if (!name || strcmp(rule->name, name) == 0) {
            rule_free(rule);
            count++;
        }
    }
    return count;
}

int sw_sim_pod_rules_default(struct sw_sim_pod_rules *rules, const json_t *told,
                             struct sw_error *error)
{
    struct told read = {0};
    const char *key;
    json_t *value;
    json_object_foreach(sw_look_loose(told), key, value)
    {
        int result = read_member(key, value, &read, error);
        if (result)
            return result;
    }
    merge(&rules->defaults, &read);
    return 0;
}

json_t *sw_sim_pod_rules_defaults(const struct sw_sim_pod_rules *rules)
{
    return sw_sim_pod_settings_json(&rules->defaults);
}

json_t *sw_sim_pod_rules_list(const struct sw_sim_pod_rules *rules)
{
    json_t *list = json_array();
    SW_LIST_EACH (link, &rules->rules) {
        const struct rule *rule = container_of(link, struct rule, link);
        json_t *one = json_pack("{s:s}", "name", rule->name);
        json_object_update(one, rule->json);
        json_array_append_new(list, one);
    }
    return list;
}

/* ---- Pods ---- */

bool sw_sim_pod_selected(const struct sw_selector *selector, const json_t *labels)
{
    for (size_t i = 0; i < selector->count; i++) {
        const struct sw_requirement *one = &selector->at[i];
        const char *value = json_string_value(json_object_get(labels, one->key));
        bool is_listed = false;
        for (size_t k = 0; value && k < one->count; k++)
            is_listed = is_listed || strcmp(one->values[k], value) == 0;
        bool holds = one->operation == SW_SELECTOR_IN       ? is_listed
                     : one->operation == SW_SELECTOR_NOT_IN ? !is_listed
                     : one->operation == SW_SELECTOR_EXISTS ? value != NULL
                                                            : value == NULL;
        if (!holds)
            return false;
    }
    return true;
}

static bool rule_applies(const struct rule *rule, const struct sw_sim_object *pod)
{
    return (!*rule->namespace_ || strcmp(rule->namespace_, pod->namespace_) == 0) &&
           (!*rule->pod || strcmp(rule->pod, pod->name) == 0) &&
           (!rule->selector ||
            sw_sim_pod_selected(rule->selector, json_object_get(sw_look_meta(pod), "labels")));
}

int sw_sim_pod_rules_resolve(const struct sw_sim_pod_rules *rules, const struct sw_sim_object *pod,
                             struct sw_sim_pod_settings *ret_settings, struct sw_error *error)
{
    struct told read = {0};
    int result = 0;
    const char *key;
    json_t *value;
    json_object_foreach(sw_look_loose(json_object_get(sw_look_meta(pod), "annotations")), key,
                        value)
    {
        if (strncmp(key, PREFIX, strlen(PREFIX)) != 0)
            continue;
        int one = read_member(key + strlen(PREFIX), value, &read, result ? NULL : error);
        if (one && !result) {
            sw_error_prefix(error, "annotation " PREFIX);
            result = one;
        }
    }
    *ret_settings = rules->defaults;
    if (!result)
        merge(ret_settings, &read);
    SW_LIST_EACH (link, &rules->rules) {
        const struct rule *rule = container_of(link, struct rule, link);
        if (rule_applies(rule, pod))
            merge(ret_settings, &rule->told);
    }
    return result;
}

static json_t *seconds(uint64_t ms)
{
    return json_real((double)ms / 1000);
}

json_t *sw_sim_pod_settings_json(const struct sw_sim_pod_settings *settings)
{
    json_t *stop =
        settings->stop_ms == SW_SIM_STOP_GRACE ? json_string("grace") : seconds(settings->stop_ms);
    return json_pack("{s:o, s:o, s:b, s:s, s:o}", "start", seconds(settings->start_ms), "stop",
                     stop, "ready", settings->is_ready, "fail", settings->fail, "flap",
                     seconds(settings->flap_ms));
}

struct sw_sim_pod_rules *sw_sim_pod_rules_new(void)
{
    struct sw_sim_pod_rules *rules = SW_NEW(struct sw_sim_pod_rules);
    sw_link_init(&rules->rules);
    rules->defaults =
        (struct sw_sim_pod_settings){.start_ms = 100, .stop_ms = 100, .is_ready = true, .fail = ""};
    return rules;
}

struct sw_sim_pod_rules *sw_sim_pod_rules_free(struct sw_sim_pod_rules *rules)
{
    if (!rules)
        return NULL;
    sw_sim_pod_rules_remove(rules, NULL);
    return sw_free(rules);
}
