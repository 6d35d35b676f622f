/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kubeconfigs as text: merging lists of them, plugins, impersonation. (What credentials make of
 * them, and mistakes: test_credentials.c.)
 */
#include "kube/kubeconfig.h"

#include "base/error.h"
#include "base/util.h"
#include "test.h"

static struct sw_kubeconfig config;
static struct sw_error error;

static int parse(const char *const *texts, size_t count, const char *context)
{
    static const char *const names[] = {"first", "second", "third"};
    static const char *const folders[] = {"/1", "/2", "/3"};
    struct sw_kubeconfig_text list[3];
    for (size_t i = 0; i < count; i++) {
        list[i] = (struct sw_kubeconfig_text){names[i], texts[i], strlen(texts[i]), folders[i]};
    }
    memset(&error, 0, sizeof(error));
    memset(&config, 0, sizeof(config));
    return sw_kubeconfig_parse(list, count, context, &config, &error);
}

static int parse_one(const char *text)
{
    return parse(&text, 1, NULL);
}

/* A user with these keys. */
static int parse_user(const char *user)
{
    SW_AUTO(char, sw_free)
    text = sw_asprintf("{current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}],"
                       "clusters: [{name: c, cluster: {server: 'https://h', extensions: [{name: "
                       "client.authentication.k8s.io/exec, extension: {audience: me, n: 1, "
                       "half: 0.5, yes: true, text: '1', none: null, list: [a, {}]}}]}}],"
                       "users: [{name: u, user: {%s}}]}",
                       user);
    return parse_one(text);
}

/* ---- lists ---- */

#define CONTEXT(name, cluster, user) \
    "contexts: [{name: " name ", context: {cluster: " cluster ", user: " user "}}]\n"

TEST(the_first_to_say_something_is_right)
{
    static const char *const texts[] = {
        "users: [{name: red, user: {token: one}}]\n",
        "current-context: b\n" CONTEXT("b", "c", "red") "users: [{name: red, user: {username: x, "
                                                        "password: y}}, {name: blue, user: {}}]\n",
        "current-context: a\n" CONTEXT(
            "a", "c", "red") "clusters: [{name: c, cluster: {server: 'https://third', "
                             "certificate-authority: ca.crt}}]\n",
    };
    assert_int_equal(parse(texts, 3, NULL), 0);
    assert_string_equal(config.context, "b");
    assert_string_equal(config.token, "one");
    assert_null(config.username); /* nothing of the second red is mixed in */
    assert_string_equal(config.server, "https://third");
    assert_string_equal(config.ca_path, "/3/ca.crt"); /* beside the file that it stands in */
    sw_kubeconfig_done(&config);
    assert_int_equal(parse(texts, 3, "a"), 0);
    assert_string_equal(config.context, "a");
    sw_kubeconfig_done(&config);
}

TEST(empty_files_of_a_list_say_nothing)
{
    static const char *const texts[] = {
        "", "current-context: ''\ncontexts: null\n",
        "current-context: a\n" CONTEXT("a", "c", "''") "clusters: [{name: c, cluster: {server: "
                                                       "'https://h'}}]\n"};
    assert_int_equal(parse(texts, 3, NULL), 0);
    assert_string_equal(config.server, "https://h");
    sw_kubeconfig_done(&config);
    assert_int_equal(parse(texts, 1, NULL), SW_E_CONFIG);
    assert_non_null(strstr(error.text, "first: it is empty"));
}

TEST(what_no_file_of_a_list_has_is_named)
{
    static const char *const texts[] = {CONTEXT("a", "c", "u"),
                                        CONTEXT("b", "c", "u") "clusters: [{name: d}]\n"};
    assert_int_equal(parse(texts, 2, NULL), SW_E_CONFIG);
    assert_non_null(strstr(error.text, "first:second: it has no current-context"));
    assert_non_null(strstr(error.text, "there are: \"a\", \"b\""));
    assert_int_equal(parse(texts, 2, "c"), SW_E_CONFIG);
    assert_non_null(strstr(error.text, "no context \"c\"; there are: \"a\", \"b\""));
    assert_int_equal(parse(texts, 2, "b"), SW_E_CONFIG);
    assert_non_null(strstr(error.text, "no cluster \"c\"; there are: \"d\""));
}

TEST(a_mistake_in_any_file_of_a_list_counts)
{
    static const char *const texts[] = {"current-context: a\n", "{", "a: b\n"};
    assert_int_equal(parse(texts, 3, NULL), SW_E_SYNTAX);
    assert_non_null(strstr(error.text, "second:"));
    static const char *const others[] = {"a: b\n", "- x\n"};
    assert_int_equal(parse(others, 2, NULL), SW_E_SYNTAX);
    assert_non_null(strstr(error.text, "second:1: this is not a kubeconfig"));
}

/* ---- plugins ---- */

TEST(a_plugin_is_read_whole)
{
    assert_int_equal(
        parse_user(
            "exec: {apiVersion: client.authentication.k8s.io/v1, command: bin/aws, "
            "args: [eks, get-token, 7, ''], env: [{name: A, value: b=c}, {name: B}], "
            "installHint: 'get it there', provideClusterInfo: true, interactiveMode: Never}"),
        0);
    const struct sw_kubeconfig_exec *exec = config.exec;
    assert_string_equal(exec->api_version, "client.authentication.k8s.io/v1");
    assert_string_equal(exec->command, "/1/bin/aws"); /* beside the kubeconfig */
    assert_string_equal(exec->args[0], "eks");
    assert_string_equal(exec->args[2], "7");
    assert_string_equal(exec->args[3], "");
    assert_null(exec->args[4]);
    assert_string_equal(exec->env[0], "A=b=c");
    assert_string_equal(exec->env[1], "B=");
    assert_null(exec->env[2]);
    assert_string_equal(exec->install_hint, "get it there");
    assert_true(exec->provides_cluster);
    assert_string_equal(exec->cluster_config,
                        "{\"audience\":\"me\",\"n\":1,\"half\":0.5,\"yes\":true,\"text\":\"1\","
                        "\"none\":null,\"list\":[\"a\",{}]}");
    sw_kubeconfig_done(&config);
    assert_null(config.exec);
}

TEST(a_command_without_a_path_is_searched_for)
{
    assert_int_equal(
        parse_user("exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: aws, "
                   "args: null, env: null}"),
        0);
    assert_string_equal(config.exec->command, "aws");
    assert_null(config.exec->args[0]);
    assert_null(config.exec->env[0]);
    assert_null(config.exec->cluster_config);
    sw_kubeconfig_done(&config);
    assert_int_equal(parse_user("exec: null"), 0);
    assert_null(config.exec);
    sw_kubeconfig_done(&config);
}

TEST(a_plugin_of_the_wrong_shape_is_named_with_its_line)
{
    static const struct {
        const char *user, *says;
    } cases[] = {
        {"exec: aws", "first:1: exec is not a mapping"},
        {"exec: {command: [a]}", "command is not a text"},
        {"exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: a, args: b}",
         "args is not a list"},
        {"exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: a, args: [[b]]}",
         "an argument is not a text"},
        {"exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: a, env: {A: b}}",
         "env is not a list"},
        {"exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: a, "
         "provideClusterInfo: 2}",
         "provideClusterInfo is neither true nor false"},
        {"as: [a]", "as is not a text"},
        {"as: a, as-groups: b", "as-groups is not a list"},
        {"as: a, as-groups: [[b]]", "a value for Impersonate-Group is not a text"},
        {"as: a, as-user-extra: [b]", "as-user-extra is not a mapping"},
        {"as: a, as-user-extra: {b: c}", "b of as-user-extra is not a list"},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(cases); i++) {
        assert_int_equal(parse_user(cases[i].user), SW_E_SYNTAX);
        if (!strstr(error.text, cases[i].says)) {
            fail_msg("\"%s\" does not say \"%s\"", error.text, cases[i].says);
        }
    }
}

/* ---- impersonation ---- */

static void check_header(size_t index, const char *name, const char *value)
{
    assert_true(index < config.impersonation_count);
    assert_string_equal(config.impersonation[index].name, name);
    assert_string_equal(config.impersonation[index].value, value);
}

TEST(whom_we_speak_for_becomes_headers)
{
    assert_int_equal(parse_user("as: jane, as-uid: 1-2, as-groups: [dev, 'system:masters'], "
                                "as-user-extra: {scopes: [view, edit], acme.com/project: [x], "
                                "'a%b c:ü': ['1'], none: []}"),
                     0);
    assert_string_equal(config.as, "jane");
    check_header(0, "Impersonate-User", "jane");
    check_header(1, "Impersonate-Uid", "1-2");
    check_header(2, "Impersonate-Group", "dev");
    check_header(3, "Impersonate-Group", "system:masters");
    check_header(4, "Impersonate-Extra-scopes", "view");
    check_header(5, "Impersonate-Extra-scopes", "edit");
    check_header(6, "Impersonate-Extra-acme.com%2Fproject", "x");
    check_header(7, "Impersonate-Extra-a%25b%20c%3A%C3%BC", "1");
    assert_int_equal(config.impersonation_count, 8);
    sw_kubeconfig_done(&config);
}

TEST(nobody_is_impersonated_unless_it_is_said)
{
    assert_int_equal(parse_user("as: '', as-groups: [], as-user-extra: {}, as-uid: ''"), 0);
    assert_null(config.as);
    assert_int_equal(config.impersonation_count, 0);
    sw_kubeconfig_done(&config);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("kubeconfig", the_first_to_say_something_is_right),
        CASE("kubeconfig", empty_files_of_a_list_say_nothing),
        CASE("kubeconfig", what_no_file_of_a_list_has_is_named),
        CASE("kubeconfig", a_mistake_in_any_file_of_a_list_counts),
        CASE("kubeconfig", a_plugin_is_read_whole),
        CASE("kubeconfig", a_command_without_a_path_is_searched_for),
        CASE("kubeconfig", a_plugin_of_the_wrong_shape_is_named_with_its_line),
        CASE("kubeconfig", whom_we_speak_for_becomes_headers),
        CASE("kubeconfig", nobody_is_impersonated_unless_it_is_said),
    };
    return RUN(tests);
}
