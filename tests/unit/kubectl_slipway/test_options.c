/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line, the help, the man page, completion without a cluster.
 */
#include "test.h"

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"
#include "completion.h"
#include "options.h"

/* As main gets them. */
#define ARGS(...) \
    ((char *const *)(uintptr_t)((const char *const[]){"kubectl-slipway", __VA_ARGS__, NULL}))

static int parse(char *const argv[], struct ks_options *options, struct sw_error *error)
{
    int argc = 0;

    while (argv[argc])
        argc++;
    *error = (struct sw_error){0};
    return ks_options_parse(argc, argv, options, error);
}

static void assert_refused(char *const argv[], const char *words)
{
    struct ks_options options;
    struct sw_error error;

    assert_int_not_equal(parse(argv, &options, &error), 0);
    if (!strstr(error.text, words))
        fail_msg("\"%s\" does not say \"%s\"", error.text, words);
    ks_options_done(&options);
}

TEST(reads_flags_in_every_form_and_place)
{
    struct ks_options options;
    struct sw_error error;

    assert_int_equal(parse(ARGS("-n", "shop", "status", "-Aw", "--kubeconfig=/k", "a", "--context",
                                "c", "--", "-b"),
                           &options, &error),
                     0);
    assert_string_equal(options.command->name, "status");
    assert_string_equal(options.values[KS_NAMESPACE], "shop");
    assert_string_equal(options.values[KS_KUBECONFIG], "/k");
    assert_string_equal(options.values[KS_CONTEXT], "c");
    assert_non_null(options.values[KS_ALL_NAMESPACES]);
    assert_non_null(options.values[KS_WATCH]);
    assert_int_equal(options.name_count, 2);
    assert_string_equal(options.names[1], "-b");
    ks_options_done(&options);
    assert_int_equal(parse(ARGS("why", "-nshop", "-ojson", "deploy/cart"), &options, &error), 0);
    assert_string_equal(options.values[KS_NAMESPACE], "shop");
    assert_string_equal(options.values[KS_OUTPUT], "json");
    assert_string_equal(options.names[0], "cart");
    ks_options_done(&options);
}

TEST(takes_a_bare_dry_run_for_that_of_the_server)
{
    struct ks_options options;
    struct sw_error error;

    assert_int_equal(parse(ARGS("hold", "--dry-run", "cart"), &options, &error), 0);
    assert_string_equal(options.values[KS_DRY_RUN], "server");
    assert_int_equal(options.name_count, 1);
    ks_options_done(&options);
}

TEST(says_what_is_wrong_and_what_was_meant)
{
    assert_refused(ARGS("stats"), "did you mean status?");
    assert_refused(ARGS("xyzzy"), "kubectl slipway --help");
    assert_refused(ARGS("status", "--all-namespace"), "--all-namespaces?");
    assert_refused(ARGS("status", "-z"), "-z");
    assert_refused(ARGS("status", "-n"), "--namespace NAME");
    assert_refused(ARGS("status", "--watch=maybe"), "maybe");
    assert_refused(ARGS("status", "-o", "wide"), "json and yaml");
    assert_refused(ARGS("status", "-w", "-ojson"), "do not go together");
    assert_refused(ARGS("why"), "why DEPLOYMENT");
    assert_refused(ARGS("why", "a", "b"), "why DEPLOYMENT");
    assert_refused(ARGS("why", "a", "-A"), "means nothing to why");
    assert_refused(ARGS("why", "pod/a"), "Deployment");
    assert_refused(ARGS("release"), "--all");
    assert_refused(ARGS("release", "a", "--all"), "not both");
    assert_refused(ARGS("release", "a", "-A"), "with --all only");
    assert_refused(ARGS("release", "--all", "--time-limit", "soon"), "such as 90s");
    assert_refused(ARGS("hold", "a", "--dry-run=client"), "client");
    assert_refused(ARGS("promote"), "promote STEPPEDROLLOUT");
    assert_refused(ARGS("promote", "a", "--release"), "means nothing to promote");
    assert_refused(ARGS("abort", "a", "--timeout", "x"), "such as 90s, or 0");
}

static void assert_names(const char *command, const char *word, const char *kind)
{
    struct ks_options options;
    struct sw_error error;

    if (parse(ARGS((char *)(uintptr_t)command, (char *)(uintptr_t)word), &options, &error))
        fail_msg("%s %s: %s", command, word, error.text);
    assert_string_equal(options.names[0], "a");
    assert_string_equal(options.kinds[0], kind);
    ks_options_done(&options);
}

TEST(takes_a_kind_in_all_forms_in_which_kubectl_prints_it)
{
    static const char *const stepped[] = {"sr/a", "steppedrollout/a", "steppedrollouts/a",
                                          "steppedrollout.slipway.dev/a",
                                          "steppedrollouts.slipway.dev/a"};

    for (size_t i = 0; i < SW_ARRAY_SIZE(stepped); i++) {
        assert_names("promote", stepped[i], "SteppedRollout");
        assert_names("why", stepped[i], "SteppedRollout");
        assert_names("status", stepped[i], "SteppedRollout");
        assert_refused(ARGS("hold", (char *)(uintptr_t)stepped[i]), "for a Deployment;");
    }
    assert_names("why", "a", "");
    assert_names("why", "deployments.apps/a", "Deployment");
    assert_names("why", "sts/a", "StatefulSet");
    assert_names("why", "daemonset.apps/a", "DaemonSet");
    assert_names("status", "deploymentcoordination.apps.containerinfra.nl/a",
                 "DeploymentCoordination");
    assert_refused(ARGS("promote", "deploy/a"), "for a SteppedRollout;");
    assert_refused(ARGS("status", "deploy/a"), "DeploymentCoordination or SteppedRollout");
    assert_refused(ARGS("why", "deployment.apps.example.org/a"), "namespace is named by -n");
    assert_refused(ARGS("why", "deployment.app/a"), "namespace is named by -n");
    assert_refused(ARGS("why", "/a"), "namespace is named by -n");
}

TEST(gives_help_without_the_names_that_a_command_needs)
{
    struct ks_options options;
    struct sw_error error;

    assert_int_equal(parse(ARGS("why", "--help"), &options, &error), 0);
    assert_non_null(options.values[KS_HELP]);
    ks_options_done(&options);
    assert_int_equal(parse(ARGS("help", "why"), &options, &error), 0);
    assert_non_null(options.values[KS_HELP]);
    assert_string_equal(options.command->name, "why");
    ks_options_done(&options);
}

/* ---- help and man page ---- */

static void assert_has(const struct sw_buf *text, const char *words, const char *of)
{
    if (!strstr(text->bytes, words))
        fail_msg("%s lacks \"%s\"", of, words);
}

TEST(explains_every_command_with_an_example_that_it_takes)
{
    for (size_t i = 0; i < KS_COMMAND_COUNT; i++) {
        const struct ks_command *command = &ks_commands[i];
        struct sw_buf text;
        sw_buf_init(&text, SIZE_MAX);
        ks_help(command, &text);
        assert_has(&text, command->usage, command->name);
        assert_has(&text, "Exit status", command->name);
        assert_non_null(command->text[0]);
        assert_non_null(command->examples[0].line);
        for (size_t k = 0; k < SW_ARRAY_SIZE(command->examples) && command->examples[k].line; k++)
            assert_has(&text, command->examples[k].line, command->name);
        for (const char *p = text.bytes, *end; *p; p = end + 1) {
            end = strchr(p, '\n');
            assert_true(end - p <= 120);
        }
        sw_buf_done(&text);
    }
}

/* roff's own signs taken off. */
static void plain(const struct sw_buf *page, struct sw_buf *out)
{
    for (const char *p = page->bytes; *p; p++) {
        if (p[0] == '\\' && p[1] == '-')
            p++;
        else if (p[0] == '\\' && p[1] == '&') {
            p++;
            continue;
        }
        sw_buf_append(out, p, 1);
    }
}

TEST(says_the_same_in_help_and_man_page)
{
    struct sw_buf page, text;

    sw_buf_init(&page, SIZE_MAX);
    sw_buf_init(&text, SIZE_MAX);
    ks_man_page(&page);
    plain(&page, &text);
    for (size_t i = 0; i < KS_COMMAND_COUNT; i++) {
        const struct ks_command *command = &ks_commands[i];
        assert_has(&text, command->usage, "the man page");
        for (size_t k = 0; k < SW_ARRAY_SIZE(command->text) && command->text[k]; k++)
            assert_has(&text, command->text[k], "the man page");
        for (size_t k = 0; k < SW_ARRAY_SIZE(command->examples) && command->examples[k].line; k++)
            assert_has(&text, command->examples[k].line, "the man page");
    }
    for (size_t i = 0; i < KS_FLAG_COUNT; i++) {
        assert_has(&text, ks_flags[i].name, "the man page");
        for (size_t k = 0; k < SW_ARRAY_SIZE(ks_flags[i].help) && ks_flags[i].help[k]; k++)
            assert_has(&text, ks_flags[i].help[k], "the man page");
    }
    sw_buf_done(&text);
    sw_buf_done(&page);
}

/* ---- completion ---- */

static void assert_completes(char *const argv[], enum ks_names names, const char *expected)
{
    struct ks_options options;
    enum ks_names found;
    struct sw_buf out;
    int argc = 0;

    while (argv[argc])
        argc++;
    sw_buf_init(&out, SIZE_MAX);
    ks_complete_words(argc - 1, argv + 1, &out, &found, &options);
    assert_string_equal(out.bytes, expected);
    assert_int_equal(found, names);
    sw_buf_done(&out);
    ks_options_done(&options);
}

TEST(completes_commands_flags_values_and_asks_for_names)
{
    assert_completes(ARGS("wh"), KS_NO_NAMES,
                     "why\twho holds a workload, since when, and what it waits for\n");
    assert_completes(ARGS("status", "--wa"), KS_NO_NAMES,
                     "--watch\tstay and show each change: drawn anew on a terminal, one\n");
    assert_completes(ARGS("status", "-o", ""), KS_NO_NAMES, "json\nyaml\n");
    assert_completes(ARGS("status", "--output=y"), KS_NO_NAMES, "--output=yaml\n");
    assert_completes(ARGS("why", "--dry"), KS_NO_NAMES, "");
    assert_completes(ARGS("why", "-n", "shop", ""), KS_WORKLOADS, "");
    assert_completes(ARGS("status", ""), KS_GROUPS, "");
    assert_completes(ARGS("promote", "a", ""), KS_ROLLOUTS, "");
    assert_completes(ARGS("abort", "--rel"), KS_NO_NAMES,
                     "--release\tlet the SteppedRollout be deleted although its template has\n");
    assert_completes(ARGS("why", "a", ""), KS_NO_NAMES, "");
    assert_completes(ARGS("hold", "a", ""), KS_DEPLOYMENTS, "");
    assert_completes(ARGS("suspend", ""), KS_COORDINATIONS, "");
    assert_completes(ARGS("completion", "z"), KS_NO_NAMES, "zsh\n");
    assert_completes(ARGS("-n", ""), KS_NO_NAMES, "");
}

TEST(keeps_the_namespace_that_was_typed_for_the_names)
{
    struct ks_options options;
    enum ks_names names;
    struct sw_buf out;

    sw_buf_init(&out, SIZE_MAX);
    ks_complete_words(4, ARGS("why", "-n", "shop", "") + 1, &out, &names, &options);
    assert_string_equal(options.values[KS_NAMESPACE], "shop");
    ks_options_done(&options);
    ks_complete_words(3, ARGS("why", "--namespace=shop", "") + 1, &out, &names, &options);
    assert_string_equal(options.values[KS_NAMESPACE], "shop");
    ks_options_done(&options);
    sw_buf_done(&out);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("options", reads_flags_in_every_form_and_place),
        CASE("options", takes_a_bare_dry_run_for_that_of_the_server),
        CASE("options", says_what_is_wrong_and_what_was_meant),
        CASE("options", takes_a_kind_in_all_forms_in_which_kubectl_prints_it),
        CASE("options", gives_help_without_the_names_that_a_command_needs),
        CASE("help", explains_every_command_with_an_example_that_it_takes),
        CASE("help", says_the_same_in_help_and_man_page),
        CASE("completion", completes_commands_flags_values_and_asks_for_names),
        CASE("completion", keeps_the_namespace_that_was_typed_for_the_names),
    };
    return RUN(tests);
}
