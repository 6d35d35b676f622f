/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules in a list, checked when they are told so that drawing needs no errors.
 */
#include "fault_rules.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/list.h"
#include "base/loop.h"
#include "base/time.h"
#include "base/util.h"

struct rule {
    struct sw_link link;
    char *name;
    json_t *told;
    const char *method, *path, *user_agent; /* of told; NULL: any */
    int watch;                              /* 1, 0; -1: any */
    unsigned percent;
    uint64_t times; /* left; UINT64_MAX: for ever */
    uint64_t hits;
    struct sw_sim_fault fault;
};

struct sw_sim_fault_rules {
    struct sw_loop *loop;
    struct sw_link rules;
};

static void rule_free(struct rule *rule)
{
    sw_link_remove(&rule->link);
    sw_free(rule->name);
    json_decref(rule->told);
    sw_free(rule);
}

struct sw_sim_fault_rules *sw_sim_fault_rules_new(struct sw_loop *loop)
{
    struct sw_sim_fault_rules *rules = SW_NEW(struct sw_sim_fault_rules);

    rules->loop = loop;
    sw_link_init(&rules->rules);
    return rules;
}

struct sw_sim_fault_rules *sw_sim_fault_rules_free(struct sw_sim_fault_rules *rules)
{
    if (rules)
        sw_sim_fault_rules_remove(rules, NULL);
    return sw_free(rules);
}

/* ---- what was told ---- */

static int refuse(struct sw_error *error, const char *key, const char *wanted)
{
    return sw_error_set(error, -EINVAL, "fault rule: \"%s\" must be %s", key, wanted);
}

static int read_text(const json_t *told, const char *key, const char **ret, struct sw_error *error)
{
    const json_t *value = json_object_get(told, key);

    if (value && !json_is_string(value))
        return refuse(error, key, "a text");
    *ret = json_string_value(value);
    return 0;
}

static int read_number(const json_t *told, const char *key, json_int_t min, json_int_t max,
                       const char *wanted, json_int_t *inout, struct sw_error *error)
{
    const json_t *value = json_object_get(told, key);

    if (!value)
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) < min ||
        json_integer_value(value) > max)
        return refuse(error, key, wanted);
    *inout = json_integer_value(value);
    return 0;
}

static int check_keys(json_t *told, struct sw_error *error)
{
    static const char *const known[] = {
        "method", "path",       "userAgent", "watch",    "percent", "times",
        "status", "retryAfter", "delay",     "cutAfter", "silent",
    };
    const char *key;
    json_t *value;

    if (!json_is_object(told))
        return sw_error_set(error, -EINVAL, "a fault rule is a JSON object");
    json_object_foreach(told, key, value)
    {
        size_t i = 0;
        while (i < SW_ARRAY_SIZE(known) && strcmp(known[i], key) != 0)
            i++;
        if (i == SW_ARRAY_SIZE(known))
            return sw_error_set(error, -EINVAL, "fault rule: \"%s\" is not known", key);
    }
    return 0;
}

static int read_action(const json_t *told, struct sw_sim_fault *fault, struct sw_error *error)
{
    static const char *const actions[] = {"status", "delay", "cutAfter", "silent"};
    const json_t *delay = json_object_get(told, "delay");
    json_int_t status = 0, retry = 0, cut = 0;
    unsigned count = 0;

    for (size_t i = 0; i < SW_ARRAY_SIZE(actions); i++)
        count += json_object_get(told, actions[i]) != NULL;
    if (count != 1)
        return sw_error_set(error, -EINVAL,
                            "fault rule: one of \"status\", \"delay\", \"cutAfter\", \"silent\" "
                            "says what shall happen");
    int code = read_number(told, "status", 400, 599, "a status from 400 to 599", &status, error);
    if (!code)
        code = read_number(told, "retryAfter", 0, 3600, "seconds up to 3600", &retry, error);
    if (!code)
        code = read_number(told, "cutAfter", 0, INT32_MAX, "a number of bytes", &cut, error);
    if (code)
        return code;
    fault->status = (int)status;
    fault->retry_after_s = (unsigned)retry;
    fault->cut_after = (size_t)cut;
    if (status)
        fault->action = SW_SIM_FAULT_STATUS;
    else if (json_object_get(told, "cutAfter"))
        fault->action = SW_SIM_FAULT_CUT;
    else if (delay)
        fault->action = SW_SIM_FAULT_DELAY;
    else if (json_is_true(json_object_get(told, "silent")))
        fault->action = SW_SIM_FAULT_SILENCE;
    else
        return refuse(error, "silent", "true");
    if (delay &&
        (!json_is_string(delay) || sw_duration_parse(json_string_value(delay), &fault->delay_ms)))
        return refuse(error, "delay", "a time such as \"200ms\"");
    return 0;
}

static int read_rule(struct rule *rule, struct sw_error *error)
{
    json_t *told = rule->told;
    const json_t *watch = json_object_get(told, "watch");
    json_int_t percent = 100, times = -1;
    int code = check_keys(told, error);

    if (!code)
        code = read_text(told, "method", &rule->method, error);
    if (!code)
        code = read_text(told, "path", &rule->path, error);
    if (!code)
        code = read_text(told, "userAgent", &rule->user_agent, error);
    if (!code)
        code = read_number(told, "percent", 0, 100, "a number from 0 to 100", &percent, error);
    if (!code)
        code = read_number(told, "times", 1, INT32_MAX, "a number from 1", &times, error);
    if (!code && watch && !json_is_boolean(watch))
        code = refuse(error, "watch", "true or false");
    if (code)
        return code;
    rule->watch = watch ? json_is_true(watch) : -1;
    rule->percent = (unsigned)percent;
    rule->times = times < 0 ? UINT64_MAX : (uint64_t)times;
    return read_action(told, &rule->fault, error);
}

int sw_sim_fault_rules_set(struct sw_sim_fault_rules *rules, const char *name, const json_t *told,
                           struct sw_error *error)
{
    struct rule *rule = SW_NEW(struct rule);

    sw_link_init(&rule->link);
    rule->name = sw_strdup(name);
    rule->told = json_deep_copy(told);
    int code = read_rule(rule, error);
    if (code) {
        rule_free(rule);
        return code;
    }
    sw_sim_fault_rules_remove(rules, name);
    sw_link_add_last(&rules->rules, &rule->link);
    return 0;
}

bool sw_sim_fault_rules_remove(struct sw_sim_fault_rules *rules, const char *name)
{
    bool was_there = false;

    SW_LIST_EACH (link, &rules->rules) {
        struct rule *rule = container_of(link, struct rule, link);
        if (name && strcmp(rule->name, name) != 0)
            continue;
        rule_free(rule);
        was_there = true;
    }
    return was_there;
}

json_t *sw_sim_fault_rules_show(const struct sw_sim_fault_rules *rules)
{
    json_t *all = json_object();

    SW_LIST_EACH (link, &rules->rules) {
        const struct rule *rule = container_of(link, struct rule, link);
        json_t *one = json_copy(rule->told);
        json_object_set_new(one, "hits", json_integer((json_int_t)rule->hits));
        json_object_set_new(all, rule->name, one);
    }
    return all;
}

/* ---- drawing ---- */

static bool is_watch(const char *query)
{
    const char *at = strstr(query, "watch=");

    return at && (at == query || at[-1] == '&') &&
           (strncmp(at + 6, "true", 4) == 0 || at[6] == '1');
}

static bool matches(const struct rule *rule, const char *method, const char *path,
                    const char *query, const char *user_agent)
{
    return (!rule->method || strcmp(rule->method, method) == 0) &&
           (!rule->path || strstr(path, rule->path)) &&
           (!rule->user_agent || (user_agent && strstr(user_agent, rule->user_agent))) &&
           (rule->watch < 0 || (rule->watch == 1) == is_watch(query));
}

struct sw_sim_fault sw_sim_fault_rules_draw(struct sw_sim_fault_rules *rules, const char *method,
                                            const char *path, const char *query,
                                            const char *user_agent)
{
    SW_LIST_EACH (link, &rules->rules) {
        struct rule *rule = container_of(link, struct rule, link);
        if (!rule->times || !matches(rule, method, path, query, user_agent) ||
            sw_random_between(rules->loop, 1, 100) > rule->percent)
            continue;
        rule->hits++;
        if (rule->times != UINT64_MAX)
            rule->times--;
        return rule->fault;
    }
    return (struct sw_sim_fault){.action = SW_SIM_FAULT_NONE};
}
