/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A SteppedRollout as the API server has it, read by its table and checked: what is accepted, what
 * is refused and with which words, and where a rollout of so many Pods stops.
 */
#include "test.h"

#include <errno.h>

#include <slipway/arena.h>
#include <slipway/json.h>

#include "base/error.h"
#include "base/map.h"
#include "kube/decode.h"

#include "spec.h"

struct fixture {
    struct sw_intern *intern;
    struct sw_decoder *decoder;
    struct sw_object *object;
    struct sw_arena *arena;
    struct step_spec spec;
    const char *error;
};

static void begin(struct fixture *f)
{
    *f = (struct fixture){.intern = sw_intern_new(), .arena = sw_arena_new(0)};
    f->decoder = sw_decoder_new(&step_kind, f->intern);
}

static void end(struct fixture *f)
{
    sw_object_free(f->decoder, f->object);
    sw_decoder_free(f->decoder);
    sw_intern_free(f->intern);
    sw_arena_free(f->arena);
}

#define HEAD                                                                    \
    "{'apiVersion':'slipway.dev/v1alpha1','kind':'SteppedRollout','metadata':{" \
    "'name':'web','namespace':'n','finalizers':['a','b']},'spec':{"
#define TARGET "'targetRef':{'apiVersion':'apps/v1','kind':'Deployment','name':'web'}"

/* target and inside make the spec; in single quotes for double ones. */
static int parse_with(struct fixture *f, const char *target, const char *inside)
{
    struct sw_error error = {0};
    char *text = sw_arena_printf(f->arena, HEAD "%s%s%s}}", target, inside[0] ? "," : "", inside);

    for (char *p = text; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    f->object = sw_object_free(f->decoder, f->object);
    if (sw_decode_object(f->decoder, text, strlen(text), NULL, &f->object, &error))
        fail_msg("%s: %s", text, error.text);
    f->error = "";
    return step_spec_parse(step_as_stepped(f->object), f->arena, &f->spec, &f->error);
}

static int parse(struct fixture *f, const char *inside)
{
    return parse_with(f, TARGET, inside);
}

TEST(fills_in_what_is_absent)
{
    struct fixture f;

    begin(&f);
    assert_int_equal(parse(&f, ""), 0);
    assert_null(f.spec.steps);
    assert_int_equal(f.spec.step_size.value, 1);
    assert_int_equal(f.spec.deadline_ms, 600000);
    assert_int_equal(f.spec.interval_ms, 60000);
    assert_int_equal(f.spec.iterations, 1);
    assert_int_equal(f.spec.threshold, 1);
    assert_int_equal(f.spec.on_failure, STEP_RETREAT);
    assert_false(f.spec.has_pods);
    assert_int_equal(step_as_stepped(f.object)->finalizers.count, 2);
    end(&f);
}

TEST(reads_all_of_it)
{
    struct fixture f;

    begin(&f);
    assert_int_equal(
        parse(&f,
              "'steps':[1,'25%','50%'],'progressDeadlineSeconds':30,'onFailure':'Rollback',"
              "'analysis':{'interval':'1m30s','iterations':3,'threshold':2,'pods':{'maxRestarts':1,"
              "'maxUnready':'5s'},'metrics':[{'name':'errors','thresholdRange':{'max':0.05},"
              "'interval':'30s','query':'up','provider':{'type':'prometheus','address':"
              "'http://p:9090','secretRef':{'name':'s'},'insecureSkipVerify':true}},{'name':'rate',"
              "'thresholdRange':{'min':1,'max':2.5},'templateRef':{'name':'t','namespace':'m'},"
              "'templateVariables':{'a':'b'}}],'webhooks':[{'name':'gate','type':"
              "'confirm-traffic-increase','url':'https://g/x','timeout':'3s','retries':2,"
              "'metadata':{'k':'v'},'muteAlert':true,'disableTLS':true}]}"),
        0);
    const struct step_spec *spec = &f.spec;
    assert_int_equal(spec->step_count, 3);
    assert_true(spec->steps[1].is_percent);
    assert_int_equal(spec->steps[2].value, 50);
    assert_int_equal(spec->deadline_ms, 30000);
    assert_int_equal(spec->interval_ms, 90000);
    assert_int_equal(spec->iterations, 3);
    assert_int_equal(spec->threshold, 2);
    assert_int_equal(spec->on_failure, STEP_ROLLBACK);
    assert_true(spec->has_pods);
    assert_int_equal(spec->max_restarts, 1);
    assert_int_equal(spec->max_unready_ms, 5000);
    assert_int_equal(spec->measure_count, 2);
    assert_string_equal(spec->measures[0].range, "<= 0.05");
    assert_true(spec->measures[0].has_max && !spec->measures[0].has_min);
    assert_int_equal(spec->measures[0].interval_ms, 30000);
    assert_string_equal(spec->measures[0].object->provider_secret, "s");
    assert_true(spec->measures[0].object->insecure_skip_verify);
    assert_string_equal(spec->measures[1].range, "1 .. 2.5");
    assert_int_equal(spec->measures[1].interval_ms, 90000);
    assert_string_equal(spec->measures[1].object->template_namespace, "m");
    assert_string_equal(sw_labels_get(&spec->measures[1].object->variables, "a"), "b");
    assert_int_equal(spec->hook_count, 1);
    assert_int_equal(spec->hooks[0].type, STEP_CONFIRM_STEP);
    assert_int_equal(spec->hooks[0].timeout_ms, 3000);
    assert_int_equal(spec->hooks[0].object->retries, 2);
    assert_true(spec->hooks[0].object->disable_tls && spec->hooks[0].object->mute_alert);
    assert_string_equal(sw_labels_get(&spec->hooks[0].object->metadata, "k"), "v");
    assert_int_equal(parse(&f, "'analysis':{'pods':{'maxUnready':2.5}}"), 0);
    assert_int_equal(f.spec.max_unready_ms, 2500);
    end(&f);
}

#define METRIC "'analysis':{'metrics':[{'name':'m','thresholdRange':{'max':1},"
#define HOOK "'analysis':{'webhooks':[{'name':'h','url':'http://h',"

TEST(names_the_field_that_is_wrong)
{
    static const struct {
        const char *inside, *error;
    } rows[] = {
        {"'steps':[]", "spec.steps: must be a list"},
        {"'steps':5", "spec.steps: must be a list"},
        {"'steps':[0]", "spec.steps[0]: 0 is not at least 1 Pod"},
        {"'steps':[-3]", "spec.steps[0]: -3 is not at least 1 Pod"},
        {"'steps':[1.5]", "spec.steps[0]: 1.5 is neither a number of Pods nor a percentage"},
        {"'steps':[null]", "spec.steps[0]: null is neither"},
        {"'steps':[99999999999]", "spec.steps[0]: 99999999999 is not at least 1 Pod, or is too"},
        {"'steps':['101%']", "spec.steps[0]: 101% is more than 100%"},
        {"'steps':['0%']", "spec.steps[0]: 0% would update no Pod"},
        {"'steps':['5']", "spec.steps[0]: \"5\" is neither a number of Pods nor a percentage"},
        {"'steps':['%']", "spec.steps[0]: \"%\" is neither"},
        {"'steps':['-5%']", "spec.steps[0]: \"-5%\" is neither"},
        {"'steps':['5%%']", "spec.steps[0]: \"5%%\" is neither"},
        {"'steps':['50%','25%']", "spec.steps[1]: 25% is not more than the step before it (50%)"},
        {"'steps':[1,'50%',1]", "spec.steps[2]: 1 is not more than the step before it (1)"},
        {"'steps':[1],'stepSize':2", "spec.stepSize: is not possible beside spec.steps"},
        {"'stepSize':0", "spec.stepSize: 0 is not at least 1 Pod"},
        {"'stepSize':'200%'", "spec.stepSize: 200% is more than 100%"},
        {"'progressDeadlineSeconds':0", "spec.progressDeadlineSeconds: 0 must be at least 1"},
        {"'onFailure':'Explode'", "spec.onFailure: \"Explode\" is none of"},
        {"'analysis':{'interval':'soon'}", "spec.analysis.interval: \"soon\" is no duration"},
        {"'analysis':{'interval':'0s'}", "spec.analysis.interval: 0s is too short"},
        {"'analysis':{'iterations':0}", "spec.analysis.iterations: 0 must be at least 1"},
        {"'analysis':{'threshold':0}", "spec.analysis.threshold: 0 must be at least 1"},
        {"'analysis':{'pods':{'maxRestarts':-1}}",
         "spec.analysis.pods.maxRestarts: -1 must be at least 0"},
        {"'analysis':{'pods':{'maxUnready':'x'}}",
         "spec.analysis.pods.maxUnready: \"x\" is no duration"},
        {"'analysis':{'pods':{'maxUnready':-1}}", "spec.analysis.pods.maxUnready: -1 is neither"},
        {"'analysis':{'metrics':[{'name':''}]}", "spec.analysis.metrics[0].name: is missing"},
        {"'analysis':{'metrics':[{'name':'m'}]}",
         "spec.analysis.metrics[0].thresholdRange: neither min nor max is there"},
        {"'analysis':{'metrics':[{'name':'m','thresholdRange':{'min':'1'}}]}",
         "spec.analysis.metrics[0].thresholdRange.min: \"1\" is no number"},
        {"'analysis':{'metrics':[{'name':'m','thresholdRange':{'min':2,'max':1}}]}",
         "spec.analysis.metrics[0].thresholdRange: min (2) is more than max (1)"},
        {METRIC "'interval':'1y'}]}", "spec.analysis.metrics[0].interval: \"1y\" is no duration"},
        {METRIC "'x':1}]}", "spec.analysis.metrics[0]: there is neither a query"},
        {METRIC "'query':'up'}]}", "spec.analysis.metrics[0].provider: is missing"},
        {METRIC "'query':'up','provider':{'type':'datadog'}}]}",
         "spec.analysis.metrics[0].provider.type: \"datadog\" is unknown"},
        {METRIC "'query':'up','provider':{'type':'prometheus'}}]}",
         "spec.analysis.metrics[0].provider.address: is missing"},
        {METRIC "'query':'up','provider':{'type':'prometheus','address':'p:9090'}}]}",
         "spec.analysis.metrics[0].provider.address: "},
        {METRIC "'query':'{{ nonsense }}','provider':{'type':'prometheus','address':'http://p'}}]}",
         "spec.analysis.metrics[0].query: {{ nonsense }} is unknown"},
        {METRIC "'query':'up','templateRef':{'name':'t'}}]}",
         "spec.analysis.metrics[0].templateRef: is not possible beside query"},
        {METRIC "'templateRef':{'namespace':'t'}}]}",
         "spec.analysis.metrics[0].templateRef.name: is missing"},
        {METRIC "'templateRef':{'name':'t'}},{'name':'m','thresholdRange':{'max':1}}]}",
         "spec.analysis.metrics[1].name: \"m\" is the name of metrics[0] already"},
        {"'analysis':{'webhooks':[{'url':'http://h'}]}",
         "spec.analysis.webhooks[0].name: is missing"},
        {HOOK "'type':'confirm'}]}", "spec.analysis.webhooks[0].type: \"confirm\" is none of"},
        {"'analysis':{'webhooks':[{'name':'h'}]}", "spec.analysis.webhooks[0].url: is missing"},
        {"'analysis':{'webhooks':[{'name':'h','url':'ftp://h'}]}",
         "spec.analysis.webhooks[0].url: URL "},
        {HOOK "'timeout':'0s'}]}", "spec.analysis.webhooks[0].timeout: 0s must be more than 0"},
        {HOOK "'timeout':'2h'}]}", "spec.analysis.webhooks[0].timeout: 2h must be more than 0"},
        {HOOK "'timeout':'x'}]}", "spec.analysis.webhooks[0].timeout: \"x\" is no duration"},
        {HOOK "'retries':-1}]}", "spec.analysis.webhooks[0].retries: -1 must be between"},
        {HOOK "'type':'rollout'},{'name':'h','type':'rollout','url':'http://h'}]}",
         "spec.analysis.webhooks[1].name: \"h\" is the name of webhooks[0] already"},
    };
    struct fixture f;

    begin(&f);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(parse(&f, rows[i].inside), -EINVAL);
        if (strncmp(f.error, rows[i].error, strlen(rows[i].error)) != 0)
            fail_msg("%s: got \"%s\", wanted \"%s...\"", rows[i].inside, f.error, rows[i].error);
    }
    end(&f);
}

TEST(says_what_is_wrong_with_a_url_and_not_who_asks)
{
    static const char *const urls[] = {"ftp://u:geheim@h", "http://u:geheim@", "http://u:gehe%zz@h",
                                       "http://u:geheim@h:99999"};
    struct fixture f;

    begin(&f);
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        char *inside =
            sw_arena_printf(f.arena, "'analysis':{'webhooks':[{'name':'h','url':'%s'}]}", urls[i]);
        assert_int_equal(parse(&f, inside), -EINVAL);
        assert_non_null(strstr(f.error, "spec.analysis.webhooks[0].url: "));
        assert_null(strstr(f.error, "gehe"));
    }
    end(&f);
}

TEST(names_what_is_wrong_with_the_target)
{
    static const struct {
        const char *inside, *error;
    } rows[] = {
        {"", "spec.targetRef.kind: \"\" is none of Deployment, StatefulSet, DaemonSet"},
        {"'targetRef':{'apiVersion':'apps/v1','kind':'Job','name':'web'}",
         "spec.targetRef.kind: \"Job\" is none of"},
        {"'targetRef':{'apiVersion':'apps/v1beta1','kind':'Deployment','name':'web'}",
         "spec.targetRef.apiVersion: \"apps/v1beta1\" must be apps/v1"},
        {"'targetRef':{'apiVersion':'apps/v1','kind':'Deployment'}",
         "spec.targetRef.name: is missing"},
    };
    struct fixture f;

    begin(&f);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(parse_with(&f, rows[i].inside, ""), -EINVAL);
        if (strncmp(f.error, rows[i].error, strlen(rows[i].error)) != 0)
            fail_msg("%s: got \"%s\", wanted \"%s...\"", rows[i].inside, f.error, rows[i].error);
    }
    end(&f);
}

TEST(reads_durations_as_go_writes_them)
{
    static const struct {
        const char *text;
        int64_t ms; /* -1: none */
    } rows[] = {
        {"0", 0},           {"0s", 0},
        {"1s", 1000},       {"1m30s", 90000},
        {"500ms", 500},     {"1.5h", 5400000},
        {".5s", 500},       {"1.s", 1000},
        {"+2s", 2000},      {"1h0m0s", 3600000},
        {"1000000ns", 1},   {"1000us", 1},
        {"1000\u00b5s", 1}, {"", -1},
        {"s", -1},          {"1", -1},
        {"-1s", -1},        {"1 s", -1},
        {"1d", -1},         {".s", -1},
        {"1s ", -1},        {"9999999h", -1},
        {"1e3s", -1},       {"+", -1},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t ms = 77;
        int result = step_duration(rows[i].text, &ms);
        if (result != (rows[i].ms < 0 ? -EINVAL : 0) || (!result && (int64_t)ms != rows[i].ms))
            fail_msg("%s: got %d, %lld", rows[i].text, result, (long long)ms);
    }
}

TEST(stops_where_the_steps_say)
{
    static const struct {
        const char *inside;
        int32_t replicas;
        int32_t stops[8]; /* up to the last */
    } rows[] = {
        {"'steps':[1,'25%','50%']", 10, {1, 3, 5, 10}},
        {"'steps':[1,'25%','50%']", 4, {1, 2, 3, 4}}, /* each one more than the one before */
        {"'steps':[1,'25%','50%']", 3, {1, 2, 3}},
        {"'steps':[1,'25%','50%']", 1, {1}},
        {"'steps':[1,'25%','50%']", 0, {0}},
        {"'steps':['34%']", 3, {2, 3}}, /* rounded up */
        {"'steps':['50%','100%']", 4, {2, 4}},
        {"'steps':[5,20]", 10, {5, 10}},
        {"'steps':[5,'10%',6]", 10, {5, 6, 7, 10}},
        {"'stepSize':4", 10, {4, 8, 10}},
        {"'stepSize':'25%'", 10, {3, 6, 9, 10}},
        {"'stepSize':'1%'", 3, {1, 2, 3}},
        {"'stepSize':50", 3, {3}},
        {"'stepSize':1", 0, {0}},
    };
    struct fixture f;

    begin(&f);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int32_t count = 0, replicas = rows[i].replicas;
        assert_int_equal(parse(&f, rows[i].inside), 0);
        while (rows[i].stops[count++] != replicas)
            ;
        assert_int_equal(step_stop_count(&f.spec, replicas), count);
        for (int32_t step = 1; step <= count; step++)
            assert_int_equal(step_stop(&f.spec, replicas, step), rows[i].stops[step - 1]);
        assert_int_equal(step_stop(&f.spec, replicas, 0), 0);
        assert_int_equal(step_stop(&f.spec, replicas, count + 1), replicas);
        for (int32_t updated = 0; updated <= replicas + 2; updated++) {
            int32_t step = 1;
            while (step < count && rows[i].stops[step - 1] < updated)
                step++;
            assert_int_equal(step_of(&f.spec, replicas, updated), step);
        }
    }
    end(&f);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("stepping spec", fills_in_what_is_absent),
        CASE("stepping spec", reads_all_of_it),
        CASE("stepping spec", names_the_field_that_is_wrong),
        CASE("stepping spec", names_what_is_wrong_with_the_target),
        CASE("stepping spec", says_what_is_wrong_with_a_url_and_not_who_asks),
        CASE("stepping spec", reads_durations_as_go_writes_them),
        CASE("stepping spec", stops_where_the_steps_say),
    };
    return RUN(tests);
}
