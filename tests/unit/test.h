/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every unit test includes, instead of cmocka.h: one program a subject, TAP output, names that
 * read as sentences.
 *
 *     TEST(finds_what_was_set)
 *     {
 *         assert_ptr_equal(sw_map_get(map, "a"), &value);
 *     }
 *
 *     int main(void)
 *     {
 *         static const struct CMUnitTest tests[] = {
 *             CASE("map", finds_what_was_set), // ok 1 - map: finds_what_was_set
 *         };
 *         return RUN(tests);
 *     }
 */
#ifndef TESTS_UNIT_TEST_H
#define TESTS_UNIT_TEST_H

/* cmocka.h needs these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEST(does_this) static void does_this(__attribute__((unused)) void **state)
#define CASE(subject, does_this)                                  \
    {                                                             \
        .name = subject ": " #does_this, .test_func = (does_this) \
    }

#define RUN(tests) \
    (cmocka_set_message_output(CM_OUTPUT_TAP), cmocka_run_group_tests((tests), NULL, NULL) ? 1 : 0)

/* That the call ends the process by abort(), as a broken sw_assert does. What it says is not shown.
 */
#define assert_aborts(call)                                            \
    do {                                                               \
        pid_t pid_ = fork();                                           \
        assert_true(pid_ >= 0);                                        \
        if (pid_ == 0) {                                               \
            int null_ = open("/dev/null", O_WRONLY);                   \
            dup2(null_, STDERR_FILENO);                                \
            (void)(call);                                              \
            _exit(0);                                                  \
        }                                                              \
        int status_ = 0;                                               \
        assert_int_equal(waitpid(pid_, &status_, 0), pid_);            \
        if (!WIFSIGNALED(status_) || WTERMSIG(status_) != SIGABRT) {   \
            fail_msg("%s: did not abort (status %d)", #call, status_); \
        }                                                              \
    } while (0)

/* A folder of this test's own; test_folder_done removes it with all that is in it. */
static inline __attribute__((unused)) char *test_folder_new(void)
{
    const char *top = getenv("TMPDIR");
    char *path = NULL;
    assert_true(asprintf(&path, "%s/slipway-test-XXXXXX", top && *top ? top : "/tmp") > 0);
    assert_non_null(mkdtemp(path));
    return path;
}

static inline int test_remove_(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static inline __attribute__((unused)) void test_folder_done(char *path)
{
    assert_int_equal(nftw(path, test_remove_, 16, FTW_DEPTH | FTW_PHYS), 0);
    free(path);
}

/* Writes the file whole, in place of one that is there. */
static inline __attribute__((unused)) void test_write_file(const char *path, const void *bytes,
                                                           size_t len)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

#endif
