/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children, on a real loop, with /bin/sh as the program.
 */
#include "base/child.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/loop.h"
#include "base/util.h"
#include "test.h"

static struct {
    struct sw_loop *loop;
    struct sw_child *child;
    unsigned calls;
    struct sw_child_result result;
    char output[200], complaint[200];
} w;

static void on_result(void *arg, const struct sw_child_result *result)
{
    (void)arg;
    w.calls++;
    w.result = *result;
    snprintf(w.output, sizeof(w.output), "%s", result->output);
    snprintf(w.complaint, sizeof(w.complaint), "%s", result->complaint);
}

static int run(const char *script, uint64_t timeout_ms)
{
    char name[] = "sh", option[] = "-c", env[] = "A=b";
    char *copy = sw_strdup(script);
    char *argv[] = {name, option, copy, NULL};
    char *envp[] = {env, NULL};
    struct sw_child_options options = {"/bin/sh", argv, envp, timeout_ms, 100, 50};
    int rc = sw_child_run(w.loop, &options, on_result, NULL, &w.child);
    sw_free(copy);
    return rc;
}

static int setup(void **state)
{
    (void)state;
    memset(&w, 0, sizeof(w));
    return sw_loop_open(&w.loop);
}

static int teardown(void **state)
{
    (void)state;
    return sw_loop_close(w.loop);
}

static void run_to_the_end(const char *script, uint64_t timeout_ms)
{
    assert_int_equal(run(script, timeout_ms), 0);
    assert_int_equal(w.calls, 0); /* not from within */
    sw_loop_run(w.loop);
    assert_int_equal(w.calls, 1);
}

TEST(what_it_prints_and_how_it_ends_is_told)
{
    run_to_the_end("echo out $A $(cat | wc -c); echo err >&2; exit 3", 60000);
    assert_int_equal(w.result.code, 0);
    assert_int_equal(w.result.exit_status, 3);
    assert_int_equal(w.result.signal, 0);
    assert_string_equal(w.output, "out b 0\n"); /* nothing to read */
    assert_string_equal(w.complaint, "err\n");
}

TEST(a_signal_that_ends_it_is_told)
{
    run_to_the_end("kill -9 $$", 60000);
    assert_int_equal(w.result.code, 0);
    assert_int_equal(w.result.signal, 9);
}

TEST(too_much_output_ends_it)
{
    run_to_the_end("while :; do echo 0123456789; done", 60000);
    assert_int_equal(w.result.code, SW_E_TOO_LARGE);
    assert_int_equal(w.result.output_len, 100);
}

TEST(too_many_complaints_are_dropped)
{
    run_to_the_end("i=0; while [ $i -lt 2000 ]; do echo 0123456789 >&2; i=$((i + 1)); done; echo x",
                   60000);
    assert_int_equal(w.result.code, 0);
    assert_int_equal(w.result.complaint_len, 50);
    assert_string_equal(w.output, "x\n");
}

/* A zombie is not: whoever adopts it may be slow to reap it. */
static bool is_alive(int pid)
{
    SW_AUTO(char, sw_free) path = sw_asprintf("/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    char letter = 'X';
    if (file) {
        if (fscanf(file, "%*d (%*[^)]) %c", &letter) != 1) {
            letter = 'X';
        }
        fclose(file);
    }
    return letter != 'Z' && letter != 'X';
}

TEST(after_its_time_it_is_killed_with_all_it_started)
{
    char *folder = test_folder_new();
    SW_AUTO(char, sw_free)
    script = sw_asprintf("sleep 1000 & echo $! >%s/pid; echo began; wait", folder);
    SW_AUTO(char, sw_free) path = sw_asprintf("%s/pid", folder);
    run_to_the_end(script, 2000);
    assert_int_equal(w.result.code, -ETIMEDOUT);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    int pid = 0;
    assert_int_equal(fscanf(file, "%d", &pid), 1);
    fclose(file);
    while (is_alive(pid)) { /* it has been killed, and takes a moment to go */
        usleep(1000);
    }
    test_folder_done(folder);
}

/* As those do that leave an agent behind. */
TEST(an_heir_of_its_output_is_not_waited_for)
{
    run_to_the_end("sleep 1000 & echo $!", 60000);
    assert_int_equal(w.result.code, 0);
    int heir = (int)strtol(w.output, NULL, 10);
    assert_true(heir > 1);
    assert_int_equal(kill(heir, SIGKILL), 0); /* it was left alone */
}

TEST(killed_it_says_nothing_any_more_and_is_reaped)
{
    assert_int_equal(run("sleep 1000", 60000), 0);
    sw_child_kill(w.child);
    sw_child_kill(NULL);
    sw_loop_run(w.loop);
    assert_int_equal(w.calls, 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

TEST(what_is_not_there_cannot_be_run)
{
    char name[] = "x";
    char *argv[] = {name, NULL};
    struct sw_child_options options = {"/nowhere/x", argv, &argv[1], 1000, 100, 100};
    assert_int_equal(sw_child_run(w.loop, &options, on_result, NULL, &w.child), -ENOENT);
    sw_loop_run(w.loop);
    assert_int_equal(w.calls, 0);
    struct sw_loop *virtual = sw_loop_virtual_new(0, 1);
    assert_int_equal(sw_child_run(virtual, &options, on_result, NULL, &w.child), -ENOTSUP);
    assert_int_equal(sw_loop_close(virtual), 0);
}

TEST(commands_are_found_as_a_shell_finds_them)
{
    char *folder = test_folder_new();
    SW_AUTO(char, sw_free) good = sw_asprintf("%s/good", folder);
    SW_AUTO(char, sw_free) bad = sw_asprintf("%s/bad", folder);
    SW_AUTO(char, sw_free) list = sw_asprintf("/nowhere::.:%s:/bin", folder);
    SW_AUTO(char, sw_free) old = sw_strdup(getenv("PATH"));
    char *found = NULL;
    test_write_file(good, "", 0);
    test_write_file(bad, "", 0);
    assert_int_equal(chmod(good, 0700), 0);
    assert_int_equal(chmod(bad, 0600), 0);
    setenv("PATH", list, 1);
    assert_int_equal(sw_child_find("good", &found), 0);
    assert_string_equal(found, good);
    sw_free(found);
    assert_int_equal(sw_child_find(good, &found), 0);
    assert_string_equal(found, good);
    sw_free(found);
    assert_int_equal(sw_child_find("nobody-has-this", &found), -ENOENT);
    assert_int_equal(sw_child_find("/nowhere/at/all", &found), -ENOENT);
    assert_int_equal(sw_child_find(folder, &found), -EACCES);
    assert_int_equal(sw_child_find(bad, &found), -EACCES);
    assert_int_equal(sw_child_find("bad", &found), -EACCES);
    unsetenv("PATH");
    assert_int_equal(sw_child_find("good", &found), -ENOENT);
    setenv("PATH", old, 1);
    test_folder_done(folder);
}

#define WITH_LOOP(does_this)                                                         \
    {                                                                                \
        .name = "child: " #does_this, .test_func = (does_this), .setup_func = setup, \
        .teardown_func = teardown                                                    \
    }

int main(void)
{
    static const struct CMUnitTest tests[] = {
        WITH_LOOP(what_it_prints_and_how_it_ends_is_told),
        WITH_LOOP(a_signal_that_ends_it_is_told),
        WITH_LOOP(too_much_output_ends_it),
        WITH_LOOP(too_many_complaints_are_dropped),
        WITH_LOOP(after_its_time_it_is_killed_with_all_it_started),
        WITH_LOOP(an_heir_of_its_output_is_not_waited_for),
        WITH_LOOP(killed_it_says_nothing_any_more_and_is_reaped),
        WITH_LOOP(what_is_not_there_cannot_be_run),
        WITH_LOOP(commands_are_found_as_a_shell_finds_them),
    };
    return RUN(tests);
}
