/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credential plugins: what they are told and what they answer as text, and scripts that are run on
 * a real loop.
 */
#include <errno.h>
#include <sys/stat.h>
#include <uv.h>

#include <slipway/json.h>

#include "base/error.h"
#include "base/loop.h"
#include "base/time.h"
#include "base/util.h"
#include "kube/credentials.h"
#include "kube/exec_credential.h"
#include "kube/kubeconfig.h"
#include "kube/transport.h"
#include "net/tls.h"

#include "fake_transport.h"
#include "test.h"
#include "test_pem.h"

#define V1 "client.authentication.k8s.io/v1"

/* ---- what they answer ---- */

static struct sw_exec_credential credential;
static struct sw_error error;

static int parse(const char *text)
{
    memset(&error, 0, sizeof(error));
    return sw_exec_credential_parse(V1, text, strlen(text), &credential, &error);
}

#define ANSWER(status) \
    "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\",\"status\":" status "}"

TEST(a_token_with_its_end_is_read)
{
    assert_int_equal(
        parse(" " ANSWER(
            "{\"expirationTimestamp\":\"2026-01-02T03:04:05Z\",\"token\":\"abc \"}") "\n"),
        0);
    assert_string_equal(credential.token, "abc");
    assert_null(credential.key_pem);
    int64_t want;
    assert_int_equal(sw_time_parse("2026-01-02T03:04:05Z", 20, &want), 0);
    assert_int_equal(credential.expires_us, want);
    sw_exec_credential_done(&credential);
    assert_null(credential.token);
}

TEST(a_certificate_is_read)
{
    assert_int_equal(parse(ANSWER("{\"clientCertificateData\":\"c\",\"clientKeyData\":\"k\","
                                  "\"token\":\"\",\"expirationTimestamp\":null}")),
                     0);
    assert_null(credential.token);
    assert_string_equal(credential.certificate_pem, "c");
    assert_string_equal(credential.key_pem, "k");
    assert_true(credential.expires_us == INT64_MAX);
    sw_exec_credential_done(&credential);
}

TEST(what_is_wrong_with_an_answer_is_said_without_quoting_it)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "printed nothing"},
        {" \n\t", "printed nothing"},
        {"SECRET: log in first", "not JSON"},
        {"{\"token\":\"SECRET\"", "not JSON"},
        {"[\"SECRET\"]", "no ExecCredential"},
        {"{\"kind\":\"SECRET\"}", "no ExecCredential"},
        {"{\"kind\":\"ExecCredential\"}", "it speaks apiVersion \"\""},
        {"{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1beta1\","
         "\"status\":{\"token\":\"SECRET\"}}",
         "it speaks apiVersion \"client.authentication.k8s.io/v1beta1\", but the kubeconfig says "
         "\"" V1 "\""},
        {ANSWER("null"), "has no status"},
        {ANSWER("\"SECRET\""), "has no status"},
        {ANSWER("{}"), "neither a token nor a client certificate"},
        {ANSWER("{\"token\":7}"), "neither a token nor a client certificate"},
        {ANSWER("{\"token\":\"SE CRET\"}"), "characters that no token has"},
        {ANSWER("{\"clientKeyData\":\"SECRET\"}"), "not both"},
        {ANSWER("{\"token\":\"SECRET\",\"clientCertificateData\":\"SECRET\"}"), "not both"},
        {ANSWER("{\"token\":\"SECRET\",\"expirationTimestamp\":\"tomorrow\"}"),
         "expirationTimestamp is not a time: \"tomorrow\""},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(cases); i++) {
        assert_int_equal(parse(cases[i].text), SW_E_SYNTAX);
        if (!strstr(error.text, cases[i].says)) {
            fail_msg("\"%s\" does not say \"%s\"", error.text, cases[i].says);
        }
        assert_null(strstr(error.text, "SECRET"));
    }
}

/* ---- what they are told ---- */

static char server[] = "https://h/p", name[] = "n", version[] = V1, proxy[] = "http://p";
static char word[] = "{\"audience\":[1,null]}";

TEST(a_plugin_is_told_of_the_cluster_only_where_it_is_wanted)
{
    struct sw_kubeconfig_exec exec = {.api_version = version, .cluster_config = word};
    struct sw_kubeconfig config = {
        .server = server, .tls_name = name, .proxy_url = proxy, .exec = &exec};
    char *info = sw_exec_info(&config, "PEM");
    assert_string_equal(info, "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
                              "\",\"spec\":{\"interactive\":false}}");
    sw_free(info);
    exec.provides_cluster = true;
    info = sw_exec_info(&config, "PEM");
    assert_string_equal(
        info, "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
              "\",\"spec\":{\"cluster\":{\"server\":\"https://h/p\",\"tls-server-name\":\"n\","
              "\"proxy-url\":\"http://p\",\"certificate-authority-data\":\"UEVN\","
              "\"config\":{\"audience\":[1,null]}},\"interactive\":false}}");
    sw_free(info);
}

/* ---- scripts ---- */

static struct {
    struct sw_loop *loop;
    struct fake_log log;
    char *folder;
    struct sw_credentials *credentials;
    unsigned changes;
    struct sw_error error;
} w;

static int setup(void **state)
{
    (void)state;
    memset(&w, 0, sizeof(w));
    assert_int_equal(sw_loop_open(&w.loop), 0);
    fake_log_init(&w.log, w.loop);
    w.folder = test_folder_new();
    return 0;
}

static void close_credentials(void)
{
    sw_credentials_close(w.credentials);
    w.credentials = NULL;
}

static int teardown(void **state)
{
    (void)state;
    close_credentials();
    sw_loop_run(w.loop);
    fake_log_done(&w.log);
    test_folder_done(w.folder);
    return sw_loop_close(w.loop);
}

static void on_change(void *arg)
{
    (void)arg;
    w.changes++;
}

static void write_script(const char *text)
{
    SW_AUTO(char, sw_free) path = sw_asprintf("%s/plugin", w.folder);
    SW_AUTO(char, sw_free) whole = sw_asprintf("#!/bin/sh\n%s\n", text);
    test_write_file(path, whole, strlen(whole));
    assert_int_equal(chmod(path, 0700), 0);
}

/* A kubeconfig beside the script, with these further keys of the user's exec and of the user. */
static int open_with(const char *scheme, const char *exec, const char *user)
{
    SW_AUTO(char, sw_free)
    text = sw_asprintf("current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
                       "clusters: [{name: c, cluster: {server: '%s://127.0.0.1:1'}}]\n"
                       "users: [{name: u, user: {exec: {apiVersion: " V1
                       ", interactiveMode: Never, command: ./plugin%s}%s}}]\n",
                       scheme, exec, user);
    close_credentials();
    int rc = sw_credentials_parse(w.loop, "config", text, strlen(text), w.folder, &w.log.log,
                                  &w.credentials, &w.error);
    if (!rc) {
        sw_credentials_on_change(w.credentials, on_change, NULL);
    }
    return rc;
}

static void on_time(struct sw_timer *timer)
{
    (void)timer;
    fail_msg("nothing has happened for 60 s");
}

/* Turns the loop until the condition holds. */
#define UNTIL(condition)                             \
    do {                                             \
        struct sw_timer late_;                       \
        sw_timer_init(&late_, w.loop, on_time);      \
        sw_timer_start(&late_, 60000);               \
        while (!(condition)) {                       \
            uv_run(sw_loop_uv(w.loop), UV_RUN_ONCE); \
        }                                            \
        sw_timer_stop(&late_);                       \
    } while (0)

static void until_change(void)
{
    unsigned before = w.changes;
    UNTIL(w.changes != before);
}

#define SAY(status) "cat <<'END'\n" ANSWER(status) "\nEND"

TEST(a_token_is_asked_for_when_it_is_needed)
{
    write_script(
        "echo \"$KUBERNETES_EXEC_INFO $GREETING $1 $HOME\" >&2; " SAY("{\"token\":\"abc\"}"));
    setenv("HOME", "/home/x", 1);
    setenv("GREETING", "ours", 1);
    setenv("KUBERNETES_EXEC_INFO", "of somebody else", 1);
    assert_int_equal(open_with("http", ", args: ['a b'], env: [{name: GREETING, value: hi}]", ""),
                     0);
    unsetenv("GREETING");
    assert_true(sw_credentials_may_wait(w.credentials));
    assert_null(sw_credentials_authorization(w.credentials));
    unsigned number = sw_credentials_number(w.credentials);
    assert_int_equal(sw_credentials_prepare(w.credentials, &w.error), -EAGAIN);
    assert_int_equal(sw_credentials_prepare(w.credentials, &w.error), -EAGAIN); /* one run */
    until_change();
    assert_int_equal(w.changes, 1);
    assert_int_equal(sw_credentials_prepare(w.credentials, &w.error), 0);
    assert_string_equal(sw_credentials_authorization(w.credentials), "Bearer abc");
    assert_int_not_equal(sw_credentials_number(w.credentials), number);
    assert_true(fake_log_has(&w.log, "interactive\\\":false}} hi a b /home/x"));
    assert_false(fake_log_has(&w.log, "abc"));
}

TEST(a_refused_token_is_asked_for_anew_once)
{
    write_script("echo x >>${0%plugin}runs; n=$(wc -l <${0%plugin}runs); "
                 "printf '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
                 "\",\"status\":{\"token\":\"t%d\"}}' $n");
    assert_int_equal(open_with("http", "", ""), 0);
    assert_int_equal(sw_credentials_prepare(w.credentials, &w.error), -EAGAIN);
    until_change();
    assert_string_equal(sw_credentials_authorization(w.credentials), "Bearer t1");
    unsigned number = sw_credentials_number(w.credentials);
    for (int i = 0; i < 5; i++) {
        assert_true(sw_credentials_refresh(w.credentials)); /* a storm of 401s */
        assert_int_equal(sw_credentials_prepare(w.credentials, &w.error), -EAGAIN);
    }
    until_change();
    assert_string_equal(sw_credentials_authorization(w.credentials), "Bearer t2");
    assert_int_equal(sw_credentials_number(w.credentials), number + 1);
    /* Refused again at once: it is tried as it is. */
    assert_false(sw_credentials_refresh(w.credentials));
    assert_int_equal(sw_credentials_prepare(w.credentials, &w.error), 0);
    assert_string_equal(sw_credentials_authorization(w.credentials), "Bearer t2");
}

TEST(credentials_are_replaced_before_they_expire)
{
    /* Good for 5 s each, and nobody asks for the second. */
    write_script("echo x >>${0%plugin}runs; n=$(wc -l <${0%plugin}runs); "
                 "printf '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
                 "\",\"status\":{\"token\":\"t%d\",\"expirationTimestamp\":\"%s\"}}' $n "
                 "$(date -u -d '+5 seconds' +%Y-%m-%dT%H:%M:%SZ)");
    assert_int_equal(open_with("http", "", ""), 0);
    assert_int_equal(sw_credentials_prepare(w.credentials, &w.error), -EAGAIN);
    until_change();
    assert_string_equal(sw_credentials_authorization(w.credentials), "Bearer t1");
    until_change();
    assert_string_equal(sw_credentials_authorization(w.credentials), "Bearer t2");
}

TEST(credentials_that_have_expired_already_are_tried)
{
    write_script(SAY("{\"token\":\"abc\",\"expirationTimestamp\":\"2020-01-01T00:00:00Z\"}"));
    assert_int_equal(open_with("http", "", ""), 0);
    assert_int_equal(sw_credentials_prepare(w.credentials, &w.error), -EAGAIN);
    until_change();
    assert_int_equal(sw_credentials_prepare(w.credentials, &w.error), 0);
    assert_true(fake_log_has(&w.log, "have expired already"));
}

TEST(a_client_certificate_may_come_from_a_plugin)
{
    SW_AUTO(char, sw_free) pem = sw_asprintf("%s/pem.json", w.folder);
    struct sw_arena *arena = sw_arena_new(0);
    struct sw_json *root = sw_json_object(arena);
    sw_json_set_string(root, "kind", "ExecCredential");
    sw_json_set_string(root, "apiVersion", V1);
    struct sw_json *status = sw_json_set_object(root, "status");
    sw_json_set_string(status, "clientCertificateData", TEST_CLIENT_1);
    sw_json_set_string(status, "clientKeyData", TEST_CLIENT_1_KEY);
    size_t len;
    const char *text = sw_json_dump(root, arena, &len);
    test_write_file(pem, text, len);
    write_script("cat ${0%plugin}pem.json");
    assert_int_equal(open_with("https", "", ""), 0);
    struct sw_tls_config *before = sw_credentials_tls(w.credentials);
    assert_true(sw_tls_config_not_after(before) == INT64_MAX);
    assert_int_equal(sw_credentials_prepare(w.credentials, &w.error), -EAGAIN);
    until_change();
    assert_true(sw_tls_config_not_after(sw_credentials_tls(w.credentials)) != INT64_MAX);
    assert_null(sw_credentials_authorization(w.credentials));

    /* One that does not fit its key is a failure, and what is there stays. */
    sw_json_set_string(status, "clientCertificateData", TEST_CLIENT_2);
    text = sw_json_dump(root, arena, &len);
    test_write_file(pem, text, len);
    assert_true(sw_credentials_refresh(w.credentials));
    until_change();
    assert_int_equal(sw_credentials_prepare(w.credentials, &w.error), 0);
    assert_true(fake_log_has(&w.log, "no new credentials"));
    assert_false(fake_log_has(&w.log, "MIGHAgEA"));
    sw_arena_free(arena);
}

TEST(what_a_failing_plugin_says_is_shown)
{
    write_script("echo 'SECRET'; echo 'please log in:' >&2; echo 'aws sso login' >&2; exit 7");
    assert_int_equal(open_with("http", "", ""), 0);
    assert_int_equal(sw_credentials_prepare(w.credentials, &w.error), -EAGAIN);
    until_change();
    assert_int_equal(sw_credentials_prepare(w.credentials, &w.error), SW_E_CREDENTIALS);
    assert_non_null(strstr(w.error.text,
                           "/plugin\": it failed with exit status 7: please log in: aws "
                           "sso login"));
    assert_true(fake_log_has(&w.log, "aws sso login"));
    assert_false(fake_log_has(&w.log, "SECRET"));
}

TEST(a_command_that_is_not_there_comes_with_its_hint)
{
    assert_int_equal(open_with("http", ", installHint: 'apt install it'", ""), -ENOENT);
    assert_non_null(strstr(w.error.text, "./plugin\" is not there; apt install it"));
    write_script("");
    SW_AUTO(char, sw_free) path = sw_asprintf("%s/plugin", w.folder);
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(open_with("http", "", ""), -EACCES);
    assert_non_null(strstr(w.error.text, "permission denied"));
}

TEST(a_user_with_a_token_asks_no_plugin)
{
    assert_int_equal(open_with("http", "", ", token: abc"), 0); /* though it is not even there */
    assert_false(sw_credentials_may_wait(w.credentials));
    assert_int_equal(sw_credentials_prepare(w.credentials, &w.error), 0);
    assert_string_equal(sw_credentials_authorization(w.credentials), "Bearer abc");
}

TEST(a_running_plugin_is_killed_when_all_ends)
{
    write_script("sleep 1000");
    assert_int_equal(open_with("http", "", ""), 0);
    assert_int_equal(sw_credentials_prepare(w.credentials, &w.error), -EAGAIN);
    close_credentials();
    sw_loop_run(w.loop);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* ---- requests that wait ---- */

struct sent {
    unsigned ends;
    int code;
    char why[480];
};

static void on_end(void *arg, int code, const struct sw_error *why)
{
    struct sent *sent = arg;
    sent->ends++;
    sent->code = code;
    snprintf(sent->why, sizeof(sent->why), "%s", why->text);
}

static const struct sw_http_exchange_events events = {.on_end = on_end};

static struct sw_transport *transport;

static void *send_one(struct sent *sent, uint64_t head_timeout_ms)
{
    struct sw_http_field field = {"Accept", "x"};
    struct sw_http_request request = {.method = "POST",
                                      .target = "/",
                                      .fields = &field,
                                      .field_count = 1,
                                      .body = "body",
                                      .body_len = 4,
                                      .own_connection = "lane",
                                      .head_timeout_ms = head_timeout_ms};
    void *exchange;
    assert_int_equal(transport->ops->send(transport, &request, &events, sent, &exchange), 0);
    assert_false(transport->ops->was_sent(transport, exchange));
    assert_int_equal(sent->ends, 0);
    return exchange;
}

static void open_transport(void)
{
    assert_int_equal(
        sw_transport_http_open(w.loop, w.credentials, "test", &w.log.log, &transport, &w.error), 0);
}

static void until_ends(const struct sent *sent)
{
    UNTIL(sent->ends > 0);
    assert_int_equal(sent->ends, 1);
}

static void close_transport(void)
{
    transport->ops->close(transport);
    close_credentials();
    sw_loop_run(w.loop);
}

TEST(requests_wait_for_the_plugin_and_then_leave)
{
    struct sent one = {0}, two = {0}, cancelled = {0};
    write_script(SAY("{\"token\":\"abc\"}"));
    assert_int_equal(open_with("http", "", ", as: jane, as-groups: [a, b]"), 0);
    assert_string_equal(sw_credentials_subject(w.credentials), "jane");
    open_transport();
    send_one(&one, 0);
    void *gone = send_one(&cancelled, 0);
    send_one(&two, 0);
    transport->ops->cancel(transport, gone);
    until_ends(&one);
    until_ends(&two);
    assert_int_equal(one.code, -ECONNREFUSED); /* nobody is there, but it was tried */
    assert_int_equal(two.code, -ECONNREFUSED);
    assert_int_equal(cancelled.ends, 0);
    close_transport();
}

TEST(requests_end_with_the_plugins_words)
{
    struct sent one = {0}, two = {0};
    write_script("echo 'log in first' >&2; exit 1");
    assert_int_equal(open_with("http", "", ""), 0);
    open_transport();
    send_one(&one, 0);
    until_ends(&one);
    assert_int_equal(one.code, SW_E_CREDENTIALS);
    assert_non_null(strstr(one.why, "log in first"));
    send_one(&two, 0); /* within the back-off */
    until_ends(&two);
    assert_int_equal(two.code, SW_E_CREDENTIALS);
    assert_non_null(strstr(two.why, "log in first"));
    close_transport();
}

TEST(requests_do_not_wait_for_ever)
{
    struct sent one = {0}, dropped = {0};
    write_script("sleep 1000");
    assert_int_equal(open_with("http", "", ""), 0);
    open_transport();
    send_one(&one, 50);
    send_one(&dropped, 0);
    until_ends(&one);
    assert_int_equal(one.code, -ETIMEDOUT);
    assert_non_null(strstr(one.why, "still running"));
    close_transport();
    assert_int_equal(dropped.ends, 0);
}

#define SCRIPT(does_this)                                                             \
    {                                                                                 \
        .name = "plugin: " #does_this, .test_func = (does_this), .setup_func = setup, \
        .teardown_func = teardown                                                     \
    }

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("plugin", a_token_with_its_end_is_read),
        CASE("plugin", a_certificate_is_read),
        CASE("plugin", what_is_wrong_with_an_answer_is_said_without_quoting_it),
        CASE("plugin", a_plugin_is_told_of_the_cluster_only_where_it_is_wanted),
        SCRIPT(a_token_is_asked_for_when_it_is_needed),
        SCRIPT(a_refused_token_is_asked_for_anew_once),
        SCRIPT(credentials_are_replaced_before_they_expire),
        SCRIPT(credentials_that_have_expired_already_are_tried),
        SCRIPT(a_client_certificate_may_come_from_a_plugin),
        SCRIPT(what_a_failing_plugin_says_is_shown),
        SCRIPT(a_command_that_is_not_there_comes_with_its_hint),
        SCRIPT(a_user_with_a_token_asks_no_plugin),
        SCRIPT(a_running_plugin_is_killed_when_all_ends),
        SCRIPT(requests_wait_for_the_plugin_and_then_leave),
        SCRIPT(requests_end_with_the_plugins_words),
        SCRIPT(requests_do_not_wait_for_ever),
    };
    return RUN(tests);
}
