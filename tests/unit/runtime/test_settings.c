/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flags and slipway.yaml: what wins, what is refused, and with which words.
 */
#include "runtime/settings.h"

#include <errno.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"
#include "runtime/arguments.h"

#include "../test.h"

#define ARGUMENTS_MAX 24

/* words: separated by spaces. */
static int parse(const char *words, struct sw_arguments *arguments, struct sw_error *error)
{
    static char program[] = "slipway", text[1024];
    char *argv[ARGUMENTS_MAX] = {program};
    int argc = 1;

    *error = (struct sw_error){0};
    snprintf(text, sizeof(text), "%s", words);
    for (char *at = text; *at;) {
        assert_true(argc < ARGUMENTS_MAX);
        size_t len = strcspn(at, " ");
        argv[argc++] = at;
        at += len;
        if (*at)
            *at++ = '\0';
    }
    return sw_arguments_parse(argc, argv, arguments, error);
}

static void expect_refused(const char *words, const char *message)
{
    struct sw_arguments arguments;
    struct sw_error error;

    assert_int_equal(parse(words, &arguments, &error), -EINVAL);
    assert_string_equal(error.text, message);
}

TEST(take_values_with_and_without_an_equals_sign)
{
    struct sw_arguments a;
    struct sw_error error;

    assert_int_equal(
        parse("--config=/a --log-level debug -namespace shop --leader-elect", &a, &error), 0);
    assert_string_equal(a.values[SW_FLAG_CONFIG], "/a");
    assert_string_equal(a.values[SW_FLAG_LOG_LEVEL], "debug");
    assert_string_equal(a.values[SW_FLAG_NAMESPACE], "shop");
    assert_true(sw_arguments_has(&a, SW_FLAG_LEADER_ELECT));
    assert_false(sw_arguments_has(&a, SW_FLAG_HELP));
    assert_int_equal(a.command, SW_COMMAND_RUN);
    assert_int_equal(
        parse("--namespace a --namespace b --leader-elect --leader-elect=false", &a, &error), 0);
    assert_string_equal(a.values[SW_FLAG_NAMESPACE], "b");
    assert_false(sw_arguments_has(&a, SW_FLAG_LEADER_ELECT));
    assert_int_equal(parse("release-all --dry-run", &a, &error), 0);
    assert_int_equal(a.command, SW_COMMAND_RELEASE_ALL);
}

TEST(suggest_what_may_have_been_meant)
{
    expect_refused("--log-levl debug", "there is no flag --log-levl: did you mean --log-level?");
    expect_refused("--leader_elect",
                   "there is no flag --leader_elect: did you mean --leader-elect?");
    expect_refused("--xyzzy=1", "there is no flag --xyzzy=1; slipway --help shows what there is");
    expect_refused("relase-all",
                   "there is no command relase-all: did you mean slipway release-all?");
    expect_refused("--config", "--config needs a value: --config FILE");
    expect_refused("--namespace=", "--namespace needs a value: --namespace NAME");
    expect_refused("--leader-elect=maybe", "--leader-elect: expected true or false, got \"maybe\"");
    expect_refused("--dry-run", "--dry-run goes with slipway release-all only");
    expect_refused("--time-limit 4m", "--time-limit goes with slipway release-all only");
    expect_refused("release-all --leader-elect",
                   "--leader-elect means nothing to slipway release-all");
}

TEST(all_stand_in_the_help)
{
    struct sw_buf text;

    sw_buf_init(&text, 100000);
    sw_arguments_help(SW_COMMAND_RUN, &text);
    for (int flag = 0; flag < SW_FLAG_COUNT; flag++) {
        bool is_other =
            flag == SW_FLAG_DRY_RUN || flag == SW_FLAG_TIME_LIMIT || flag == SW_FLAG_STOP;
        if (is_other == (strstr(text.bytes, sw_flag_name((enum sw_flag)flag)) != NULL))
            fail_msg("%s is missing, or there", sw_flag_name((enum sw_flag)flag));
    }
    for (const char *line = text.bytes; *line; line += strcspn(line, "\n") + 1)
        assert_in_range(strcspn(line, "\n"), 0, 100);
    sw_buf_clear(&text);
    sw_arguments_help(SW_COMMAND_RELEASE_ALL, &text);
    assert_non_null(strstr(text.bytes, "--dry-run"));
    assert_non_null(strstr(text.bytes, "--time-limit TIME"));
    assert_non_null(strstr(text.bytes, "--stop NAME"));
    assert_null(strstr(text.bytes, "--leader-elect"));
    sw_buf_done(&text);
}

/* ---- settings ---- */

struct case_ {
    char *folder;
    char *path;
    struct sw_arguments arguments;
    struct sw_settings settings;
    struct sw_error error;
};

/* yaml NULL: no file. */
static int load(struct case_ *c, const char *yaml, const char *flags)
{
    SW_AUTO(char, sw_free) words = NULL;

    *c = (struct case_){.folder = test_folder_new()};
    c->path = sw_asprintf("%s/slipway.yaml", c->folder);
    words = sw_asprintf("--config %s%s%s", c->path, flags[0] ? " " : "", flags);
    if (yaml)
        test_write_file(c->path, yaml, strlen(yaml));
    assert_int_equal(parse(words, &c->arguments, &c->error), 0);
    c->arguments.values[SW_FLAG_CONFIG] = c->path;
    return sw_settings_load(&c->arguments, &c->settings, &c->error);
}

static void done(struct case_ *c)
{
    sw_settings_done(&c->settings);
    sw_free(c->path);
    test_folder_done(c->folder);
}

TEST(have_defaults)
{
    struct case_ c;

    assert_int_equal(load(&c, "", ""), 0);
    const struct sw_settings *s = &c.settings;
    assert_null(s->kubeconfig);
    assert_null(s->namespace_);
    assert_null(s->module_dir);
    assert_int_equal(s->module_count, 0);
    assert_string_equal(s->webhook_address, ":9443");
    assert_null(s->webhook_configuration_name);
    assert_false(s->webhook_is_self_signed);
    assert_string_equal(s->webhook_secret_name, "slipway-webhook");
    assert_string_equal(s->webhook_service_name, "slipway");
    assert_string_equal(s->health_address, ":7713");
    assert_string_equal(s->metrics_address, ":7712");
    assert_true(s->metrics_is_secure);
    assert_null(s->metrics_cert_dir);
    assert_false(s->leader_elect);
    assert_string_equal(s->leader_election_id, "slipway");
    assert_int_equal(s->lease_duration_ms, 15000);
    assert_int_equal(s->renew_deadline_ms, 10000);
    assert_int_equal(s->retry_period_ms, 2000);
    assert_true(s->watch_list);
    assert_int_equal(s->kube_api_qps, 50);
    assert_int_equal(s->kube_api_burst, 100);
    assert_int_equal(s->log_level, SW_LEVEL_INFO);
    assert_false(s->has_log_format);
    assert_false(s->has_stop_delay);
    done(&c);
}

static const char every_key[] = "kubeconfig: /kc\n"
                                "namespace: shop\n"
                                "moduleDir: /modules\n"
                                "modules: [pausing, events]\n"
                                "webhook:\n"
                                "  bindAddress: \"127.0.0.1:1\"\n"
                                "  certDir: /certs\n"
                                "  configurationName: hooks.example.org\n"
                                "  certificates: self\n"
                                "  secretName: certificates\n"
                                "  serviceName: hook\n"
                                "healthProbe: {bindAddress: \":2\"}\n"
                                "metrics: {bindAddress: \":3\", secure: false, certDir: /m}\n"
                                "client: {context: prod, watchList: 'off', qps: 400, burst: 800}\n"
                                "leaderElection:\n"
                                "  enabled: true\n"
                                "  id: other\n"
                                "  namespace: system\n"
                                "  leaseDuration: 6s\n"
                                "  renewDeadline: 4s\n"
                                "  retryPeriod: 500ms\n"
                                "log: {level: warn, format: console}\n"
                                "stopDelay: 0s\n";

TEST(come_from_the_file)
{
    struct case_ c;

    if (load(&c, every_key, ""))
        fail_msg("%s", c.error.text);
    const struct sw_settings *s = &c.settings;
    assert_string_equal(s->kubeconfig, "/kc");
    assert_string_equal(s->context, "prod");
    assert_false(s->watch_list);
    assert_string_equal(s->namespace_, "shop");
    assert_string_equal(s->module_dir, "/modules");
    assert_int_equal(s->module_count, 2);
    assert_string_equal(s->modules[1], "events");
    assert_string_equal(s->webhook_address, "127.0.0.1:1");
    assert_string_equal(s->webhook_cert_dir, "/certs");
    assert_string_equal(s->webhook_configuration_name, "hooks.example.org");
    assert_true(s->webhook_is_self_signed);
    assert_string_equal(s->webhook_secret_name, "certificates");
    assert_string_equal(s->webhook_service_name, "hook");
    assert_string_equal(s->health_address, ":2");
    assert_string_equal(s->metrics_address, ":3");
    assert_false(s->metrics_is_secure);
    assert_string_equal(s->metrics_cert_dir, "/m");
    assert_int_equal(s->kube_api_qps, 400);
    assert_int_equal(s->kube_api_burst, 800);
    assert_true(s->leader_elect);
    assert_string_equal(s->leader_election_id, "other");
    assert_string_equal(s->leader_election_namespace, "system");
    assert_int_equal(s->lease_duration_ms, 6000);
    assert_int_equal(s->renew_deadline_ms, 4000);
    assert_int_equal(s->retry_period_ms, 500);
    assert_int_equal(s->log_level, SW_LEVEL_WARN);
    assert_true(s->has_log_format);
    assert_int_equal(s->log_format, SW_LOG_CONSOLE);
    assert_true(s->has_stop_delay);
    assert_int_equal(s->stop_delay_ms, 0);
    SW_AUTO(char, sw_free) folder = sw_settings_module_folder(s);
    SW_AUTO(char, sw_free) wanted = sw_asprintf("%s/modules.d", c.folder);
    assert_string_equal(folder, wanted);
    done(&c);
}

TEST(give_way_to_flags)
{
    struct case_ c;

    assert_int_equal(load(&c, every_key,
                          "--kubeconfig /k2 --namespace n2 --webhook-bind-address :11 "
                          "--metrics-bind-address 0 --metrics-secure --metrics-cert-dir /n "
                          "--leader-elect=false --log-level error "
                          "--log-format json --context test --kube-api-qps 7 --kube-api-burst=9"),
                     0);
    assert_string_equal(c.settings.kubeconfig, "/k2");
    assert_string_equal(c.settings.context, "test");
    assert_string_equal(c.settings.namespace_, "n2");
    assert_string_equal(c.settings.webhook_address, ":11");
    assert_string_equal(c.settings.metrics_address, "0");
    assert_true(c.settings.metrics_is_secure);
    assert_string_equal(c.settings.metrics_cert_dir, "/n");
    assert_false(c.settings.leader_elect);
    assert_int_equal(c.settings.log_level, SW_LEVEL_ERROR);
    assert_int_equal(c.settings.log_format, SW_LOG_JSON);
    assert_int_equal(c.settings.kube_api_qps, 7);
    assert_int_equal(c.settings.kube_api_burst, 9);
    done(&c);
}

static void expect_mistake(const char *yaml, const char *flags, const char *message)
{
    struct case_ c;

    if (!load(&c, yaml, flags))
        fail_msg("accepted: %s", yaml);
    if (!strstr(c.error.text, message))
        fail_msg("got \"%s\", wanted \"%s\"", c.error.text, message);
    done(&c);
}

#define ONE_ADDRESS "probes are plain HTTP at :1, and metrics HTTPS: give them another address"

TEST(give_probes_and_secure_metrics_two_addresses)
{
    static const char both[] = "healthProbe: {bindAddress: ':1'}\nmetrics: {bindAddress: ':1'}\n";
    struct case_ c;

    expect_mistake(both, "", "slipway.yaml:2: metrics.bindAddress: " ONE_ADDRESS);
    expect_mistake(both, "--metrics-secure", "slipway.yaml:2: metrics.bindAddress: ");
    expect_mistake("healthProbe: {bindAddress: ':1'}\n", "--metrics-bind-address :1",
                   "--metrics-bind-address: " ONE_ADDRESS);
    expect_mistake("metrics: {bindAddress: ':1'}\n", "--health-probe-bind-address :1",
                   "--health-probe-bind-address: " ONE_ADDRESS);
    assert_int_equal(load(&c, both, "--metrics-secure=false"), 0);
    assert_false(c.settings.metrics_is_secure);
    done(&c);
    assert_int_equal(
        load(&c, "", "--health-probe-bind-address 0 --metrics-bind-address 0 --metrics-secure"), 0);
    done(&c);
}

TEST(say_where_a_mistake_is)
{
    expect_mistake("log:\n  level: loud\n", "", "slipway.yaml:2: log.level: ");
    expect_mistake("namspace: x\n", "", "slipway.yaml:1: namspace: ");
    expect_mistake("leaderElection:\n  enabled: perhaps\n", "",
                   "slipway.yaml:2: leaderElection.enabled: ");
    expect_mistake("leaderElection: {leaseDuration: 5s}\n", "",
                   "slipway.yaml:1: leaderElection: leaseDuration must be longer than "
                   "renewDeadline");
    expect_mistake("log: {}\nwebhook:\n  bindAddress: nonsense\n", "",
                   "slipway.yaml:3: webhook.bindAddress: address \"nonsense\": no port");
    expect_mistake("healthProbe: {bindAddress: ':99999'}\n", "",
                   "slipway.yaml:1: healthProbe.bindAddress: ");
    expect_mistake("\nmetrics:\n\n  bindAddress: '[::1]'\n", "",
                   "slipway.yaml:4: metrics.bindAddress: ");
    expect_mistake("metrics: {bindAddress: ':1'}\n", "--metrics-bind-address x",
                   "--metrics-bind-address: ");
    expect_mistake("metrics:\n  secure: sometimes\n", "", "slipway.yaml:2: metrics.secure: ");
    expect_mistake("namespace: shop/../kube-system\n", "",
                   "slipway.yaml:1: namespace: expected a name of at most 63 lower-case letters, "
                   "digits and -, got \"shop/../kube-system\"");
    expect_mistake("", "--namespace a.b", "--namespace: expected a name ");
    expect_mistake("", "--namespace --leader-elect", "--namespace: expected a name ");
    expect_mistake("leaderElection:\n  id: a..b\n", "",
                   "slipway.yaml:2: leaderElection.id: expected a name ");
    expect_mistake("", "--leader-election-id -a", "--leader-election-id: expected a name ");
    expect_mistake("webhook:\n  certificates: self\n", "",
                   "slipway.yaml:2: webhook.certificates: certificates of our own need "
                   "configurationName too");
    expect_mistake("", "--webhook-certificates self",
                   "--webhook-certificates: certificates of our own need configurationName too");
    expect_mistake("", "--webhook-certificates mine",
                   "--webhook-certificates: expected files or self, got \"mine\"");
    expect_mistake("webhook:\n  serviceName: a.b\n", "",
                   "slipway.yaml:2: webhook.serviceName: expected a name ");
    expect_mistake("webhook:\n  configurationName: a/b\n", "",
                   "slipway.yaml:2: webhook.configurationName: expected a name ");
    expect_mistake("", "--webhook-configuration-name A",
                   "--webhook-configuration-name: expected a name ");
    expect_mistake("leaderElection:\n  namespace: Shop\n", "",
                   "slipway.yaml:2: leaderElection.namespace: expected a name ");
    expect_mistake("", "--webhook-bind-address nonsense", "--webhook-bind-address: ");
    expect_mistake("", "--log-level loud",
                   "--log-level: expected debug, info, warn or error, got \"loud\"");
    expect_mistake("", "--log-format xml", "--log-format: expected json or console, got \"xml\"");
    expect_mistake("client:\n  qps: 0\n", "", "slipway.yaml:2: client.qps: ");
    expect_mistake("", "--kube-api-qps 0",
                   "--kube-api-qps: expected a number from 1 to 100000, got \"0\"");
    expect_mistake("", "--kube-api-burst 5x", "--kube-api-burst: expected a number ");
    expect_mistake("", "--kube-api-burst 99999999999999999999", "--kube-api-burst: expected ");
    expect_mistake("modules: []\n", "", "slipway.yaml:1: modules: ");
    expect_mistake(NULL, "", "slipway.yaml");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("flags", take_values_with_and_without_an_equals_sign),
        CASE("flags", suggest_what_may_have_been_meant),
        CASE("flags", all_stand_in_the_help),
        CASE("settings", have_defaults),
        CASE("settings", come_from_the_file),
        CASE("settings", give_way_to_flags),
        CASE("settings", give_probes_and_secure_metrics_two_addresses),
        CASE("settings", say_where_a_mistake_is),
    };
    return RUN(tests);
}
