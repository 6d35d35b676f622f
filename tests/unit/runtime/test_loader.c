/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules as shared objects: one that works, called and calling across the border, and all those
 * that must be refused with a reason.
 */
#include <errno.h>

#include "base/error.h"
#include "base/util.h"
#include "runtime/module_loader.h"
#include "runtime/module_set.h"
#include "runtime/settings.h"

#include "../test.h"
#include "fixture.h"

/* Where the build puts the modules of tests/unit/runtime/modules. */
static const char *modules(void)
{
    const char *dir = getenv("TEST_MODULES");

    assert_non_null(dir);
    return dir;
}

static const struct sw_module *load(const char *name)
{
    const struct sw_module *module = NULL;
    struct sw_error error = {0};

    if (sw_module_find(modules(), name, &module, &error))
        fail_msg("%s", error.text);
    return module;
}

static void expect_refused(const char *name, int code, const char *words)
{
    const struct sw_module *module = NULL;
    struct sw_error error = {0};

    assert_int_equal(sw_module_find(modules(), name, &module, &error), code);
    assert_null(module);
    if (!strstr(error.text, words))
        fail_msg("got \"%s\", wanted \"%s\"", error.text, words);
}

/* ---- a module that works ---- */

static void greet(const struct sw_module *module, void *config, const char *wanted)
{
    struct fixture f;
    struct sw_error error = {0};

    fixture_init(&f, NULL);
    if (sw_core_add(f.core, module, config, &error))
        fail_msg("%s", error.text);
    fixture_open(&f);
    struct fake_request *watch =
        serve_deployments(&f, "10", deployment("n", "web", "u1", "5", "{}"));
    assert_true(fake_log_has(&f.log, wanted));
    fake_body(watch, event("ADDED", deployment("n", "api", "u2", "11", "{}")));
    fixture_turn(&f);
    assert_int_equal(fake_log_count(&f.log, wanted), 2);
    fixture_done(&f);
}

TEST(runs_a_module_from_a_shared_object)
{
    const struct sw_module *module = load("hello");
    struct sw_error error = {0};
    void *config;

    assert_string_equal(module->summary, "greets every Deployment that it sees");
    assert_ptr_equal(load("hello"), module);
    assert_int_equal(sw_module_config_load("/nonexistent", module, &config, &error), 0);
    greet(module, config, "hello: hello ");
    assert_null(sw_module_config_free(module, config));
}

TEST(runs_the_example_of_the_readme)
{
    static const char sized[] =
        "{\"kind\":\"Deployment\",\"metadata\":{\"namespace\":\"n\",\"name\":\"web\",\"uid\":"
        "\"u1\","
        "\"resourceVersion\":\"11\"},\"spec\":{\"replicas\":3,\"template\":{}}}";
    struct fixture f;
    struct sw_error error = {0};

    fixture_init(&f, NULL);
    if (sw_core_add(f.core, load("sizes"), NULL, &error))
        fail_msg("%s", error.text);
    fixture_open(&f);
    struct fake_request *watch =
        serve_deployments(&f, "10", deployment("n", "web", "u1", "5", "{}"));
    fake_body(watch, event("MODIFIED", sized));
    fixture_turn(&f);
    assert_int_equal(fake_log_count(&f.log, "3 replicas were 1"), 1);
    fixture_done(&f);
}

TEST(gives_a_module_its_configuration)
{
    const struct sw_module *module = load("hello");
    static const char yaml[] = "greeting: good morning\n";
    static const char wrong[] = "\ngreting: good morning\n";
    char *folder = test_folder_new();
    SW_AUTO(char, sw_free) path = sw_asprintf("%s/hello.yaml", folder);
    struct sw_error error = {0};
    void *config;

    test_write_file(path, yaml, strlen(yaml));
    assert_int_equal(sw_module_config_load(folder, module, &config, &error), 0);
    greet(module, config, "hello: good morning ");
    sw_module_config_free(module, config);

    test_write_file(path, wrong, strlen(wrong));
    assert_int_equal(sw_module_config_load(folder, module, &config, &error), SW_E_CONFIG);
    assert_non_null(strstr(error.text, "hello.yaml:2: greting: "));
    test_folder_done(folder);
}

TEST(refuses_a_file_for_a_module_that_has_nothing_to_configure)
{
    char *folder = test_folder_new();
    SW_AUTO(char, sw_free) path = sw_asprintf("%s/one.yaml", folder);
    struct sw_error error = {0};
    void *config;

    assert_int_equal(sw_module_config_load(folder, &module_one, &config, &error), 0);
    assert_null(config);
    test_write_file(path, "a: b\n", 5);
    assert_int_equal(sw_module_config_load(folder, &module_one, &config, &error), SW_E_CONFIG);
    assert_non_null(strstr(error.text, "one.yaml: module one has nothing to configure"));
    test_folder_done(folder);
}

static void expect_stray(const char *folder, const char *file, const char *words)
{
    SW_AUTO(char, sw_free) path = sw_asprintf("%s/%s", folder, file);
    struct sw_error error = {0};
    int code = words ? SW_E_CONFIG : 0;

    test_write_file(path, "a: b\n", 5);
    assert_int_equal(sw_module_config_check_names(folder, modules(), &error), code);
    if (words && !strstr(error.text, words))
        fail_msg("got \"%s\", wanted \"%s\"", error.text, words);
    unlink(path);
}

TEST(refuses_a_file_that_belongs_to_no_module)
{
    char *folder = test_folder_new();

    expect_stray(folder, "hello.yaml", NULL);
    expect_stray(folder, ".hidden.yaml", NULL);
    expect_stray(folder, "README", NULL);
    expect_stray(folder, "helo.yaml",
                 "/helo.yaml: there is no module helo: did you mean hello.yaml?");
    expect_stray(folder, "xyzzy.yaml",
                 "/xyzzy.yaml: there is no module xyzzy; slipway --list-modules shows");
    expect_stray(folder, "hello.yml", "/hello.yml: the name must end in .yaml");
    assert_int_equal(sw_module_config_check_names("/nonexistent", modules(), NULL), 0);
    test_folder_done(folder);
}

/* ---- modules that are refused ---- */

TEST(refuses_what_is_no_module_of_this_slipway)
{
    expect_refused("old", SW_E_ABI, "old.so: built for another slipway (ABI 5, descriptor of 24");
    expect_refused("nothing", -ENOEXEC,
                   "nothing.so: not a module: it does not export "
                   "sw_module_nothing");
    expect_refused("alias", -ENOEXEC, "alias.so: the module inside is called somebody_else");
    expect_refused("unlinked", -ENOEXEC, "sw_function_that_nobody_has");
    expect_refused("missing", -ENOENT, "there is no module missing in ");
    expect_refused("../hello", -EINVAL, "\"../hello\" is no name of a module");
    expect_refused("Hello", -EINVAL, "is no name of a module");
    expect_refused("", -EINVAL, "is no name of a module");
}

TEST(takes_everything_back_from_a_module_that_fails_to_start)
{
    const struct sw_module *module = load("failing");
    struct sw_error error = {0};
    struct fixture f;

    fixture_init(&f, NULL);
    assert_int_equal(sw_core_add(f.core, module, NULL, &error), -EINVAL);
    assert_string_equal(error.text, "module failing does not start: the thing is missing");
    /* Nothing that it asked for is left: no stream is opened, its path is free. */
    assert_int_equal(sw_core_add(f.core, module, NULL, &error), -EINVAL);
    assert_string_equal(error.text, "module failing does not start: the thing is missing");
    fixture_open(&f);
    assert_int_equal(fake_open_count(f.transport), 0);
    fixture_done(&f);
}

static void note(void *arg, const char *name, const char *path, const struct sw_module *module,
                 const struct sw_error *error)
{
    char *seen = arg;
    size_t len = strlen(seen);

    assert_non_null(path);
    assert_true(module || error->text[0]);
    snprintf(seen + len, 1024 - len, "%s%s ", module ? "" : "!", name);
}

TEST(shows_all_that_lie_in_the_folder)
{
    char seen[1024] = "";

    sw_module_each(modules(), note, seen);
    assert_string_equal(seen, "!alias failing hello !nothing !old sizes !unlinked ");
    seen[0] = '\0';
    sw_module_each("/nonexistent", note, seen);
    assert_string_equal(seen, "");
}

/* ---- order ---- */

static void order(const struct sw_module *const *modules_in, size_t count, int code,
                  const char *wanted)
{
    const struct sw_module *sorted[8];
    struct sw_error error = {0};
    char names[256] = "";

    memcpy(sorted, modules_in, count * sizeof(sorted[0]));
    assert_int_equal(sw_module_order(sorted, count, &error), code);
    for (size_t i = 0; i < count; i++) {
        strcat(names, sorted[i]->name);
        strcat(names, " ");
    }
    assert_string_equal(code ? error.text : names, wanted);
}

#define NEEDS(...)                 \
    .needs = (const char *const[]) \
    {                              \
        __VA_ARGS__, NULL          \
    }

TEST(starts_a_module_behind_those_that_it_needs)
{
    const struct sw_module a = {.name = "a", NEEDS("c")};
    const struct sw_module b = {.name = "b", NEEDS("a", "d")};
    const struct sw_module c = {.name = "c"};
    const struct sw_module d = {.name = "d"};
    const struct sw_module e = {.name = "e", NEEDS("f")};
    const struct sw_module f = {.name = "f", NEEDS("e")};

    order((const struct sw_module *const[]){&a, &b, &c, &d}, 4, 0, "c a d b ");
    order((const struct sw_module *const[]){&d, &c}, 2, 0, "d c ");
    order((const struct sw_module *const[]){&a, &b}, 2, -ENOENT,
          "module a needs module c, which does not run: add it to modules, or take a out");
    order((const struct sw_module *const[]){&d, &e, &f}, 3, -ELOOP,
          "modules need each other in a circle: e, f");
}

TEST(says_which_entry_of_the_list_is_wrong)
{
    const char *names[] = {"hello", "helo"};
    struct sw_settings settings = {.config_path = "/c/slipway.yaml",
                                   .module_dir = modules(),
                                   .modules = names,
                                   .module_count = 2};
    struct sw_module_set set;
    struct sw_error error = {0};

    assert_int_equal(sw_module_set_load(&set, &settings, &error), -ENOENT);
    assert_non_null(strstr(error.text, "/c/slipway.yaml: modules[1]: there is no module helo in "));
    char *folder = test_folder_new();
    SW_AUTO(char, sw_free) path = sw_asprintf("%s/slipway.yaml", folder);
    static const char yaml[] = "modules:\n  - hello\n  - helo\n";
    test_write_file(path, yaml, strlen(yaml));
    settings.config_path = path;
    assert_int_equal(sw_module_set_load(&set, &settings, &error), -ENOENT);
    assert_non_null(strstr(error.text, "/slipway.yaml:3: modules[1]: there is no module helo in "));
    names[1] = "hello";
    assert_int_equal(sw_module_set_load(&set, &settings, &error), -EEXIST);
    settings.module_count = 1;
    assert_int_equal(sw_module_set_load(&set, &settings, &error), 0);
    assert_int_equal(set.count, 1);
    sw_module_set_done(&set);
    settings.module_count = 0;
    settings.module_dir = "/nonexistent";
    assert_int_equal(sw_module_set_load(&set, &settings, &error), -ENOENT);
    assert_string_equal(error.text, "there are no modules in /nonexistent: say with --module-dir "
                                    "where they are");
    test_folder_done(folder);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("loader", runs_a_module_from_a_shared_object),
        CASE("loader", runs_the_example_of_the_readme),
        CASE("loader", gives_a_module_its_configuration),
        CASE("loader", refuses_a_file_for_a_module_that_has_nothing_to_configure),
        CASE("loader", refuses_a_file_that_belongs_to_no_module),
        CASE("loader", refuses_what_is_no_module_of_this_slipway),
        CASE("loader", takes_everything_back_from_a_module_that_fails_to_start),
        CASE("loader", shows_all_that_lie_in_the_folder),
        CASE("loader", starts_a_module_behind_those_that_it_needs),
        CASE("loader", says_which_entry_of_the_list_is_wrong),
    };
    return RUN(tests);
}
