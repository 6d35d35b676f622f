/* SPDX-License-Identifier: Apache-2.0 */
/* Files read whole, and watched through what Kubernetes does to mounted ones. */
#include "base/file.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/loop.h"
#include "base/util.h"
#include "test.h"

struct scene {
    char *folder;
    struct sw_loop *loop;
    struct sw_file_watch *watch;
    struct sw_timer guard; /* keeps a real loop alive, and ends a test that waits in vain */
    int calls;
    bool has_timed_out;
    void (*next)(struct scene *s);
};

static const char *path_of(const struct scene *s, const char *name)
{
    static char path[4][512];
    static unsigned turn;
    char *p = path[turn++ % 4];
    snprintf(p, sizeof(path[0]), "%s/%s", s->folder, name);
    return p;
}

static void put(const struct scene *s, const char *name, const char *text)
{
    test_write_file(path_of(s, name), text, strlen(text));
}

/* ---- reading ---- */

TEST(reads_files_whole)
{
    struct scene s = {.folder = test_folder_new()};
    static const size_t sizes[] = {0, 1, 4094, 4095, 4096, 4097, 8191, 8192, 100000};
    static char bytes[100000];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (char)(i * 7);
    }
    for (size_t i = 0; i < SW_ARRAY_SIZE(sizes); i++) {
        test_write_file(path_of(&s, "f"), bytes, sizes[i]);
        char *got = NULL;
        size_t len = 99;
        assert_int_equal(sw_file_read(path_of(&s, "f"), sizes[i], &got, &len, NULL), 0);
        assert_int_equal(len, sizes[i]);
        assert_memory_equal(got, bytes, len);
        assert_int_equal(got[len], '\0');
        sw_free_secret(got, len);
        if (sizes[i] > 0) {
            assert_int_equal(sw_file_read(path_of(&s, "f"), sizes[i] - 1, &got, &len, NULL),
                             SW_E_TOO_LARGE);
        }
    }
    test_folder_done(s.folder);
}

TEST(reads_files_that_do_not_know_their_size)
{
    char *got = NULL;
    size_t len = 0;
    assert_int_equal(sw_file_read("/proc/self/status", 1 << 20, &got, &len, NULL), 0);
    assert_true(len > 100);
    assert_int_equal(strlen(got), len);
    sw_free(got);
    assert_int_equal(sw_file_read("/dev/zero", 10000, &got, &len, NULL), SW_E_TOO_LARGE);
}

TEST(says_which_file_it_is_about)
{
    struct scene s = {.folder = test_folder_new()};
    struct sw_error error = {0};
    char *got = NULL;
    size_t len;
    char wanted[700];
    const char *path = path_of(&s, "absent");
    assert_int_equal(sw_file_read(path, 10, &got, &len, &error), -ENOENT);
    snprintf(wanted, sizeof(wanted), "%s: no such file or directory", path);
    assert_string_equal(error.text, wanted);
    assert_int_equal(error.code, -ENOENT);
    assert_int_equal(sw_file_read(s.folder, 10, &got, &len, &error), -EISDIR);
    put(&s, "big", "12345678901");
    path = path_of(&s, "big");
    assert_int_equal(sw_file_read(path, 10, &got, &len, &error), SW_E_TOO_LARGE);
    snprintf(wanted, sizeof(wanted), "%s: larger than 10 bytes", path);
    assert_string_equal(error.text, wanted);
    assert_null(got);
    test_folder_done(s.folder);
}

TEST(does_not_wait_for_the_writer_of_a_pipe)
{
    struct scene s = {.folder = test_folder_new()};
    char *got = NULL;
    size_t len = 99;
    assert_int_equal(mkfifo(path_of(&s, "pipe"), 0600), 0);
    assert_int_equal(sw_file_read(path_of(&s, "pipe"), 10, &got, &len, NULL), 0);
    assert_int_equal(len, 0);
    sw_free(got);
    test_folder_done(s.folder);
}

/* ---- watching ---- */

static void on_change(void *arg)
{
    struct scene *s = arg;
    s->calls++;
    if (s->next) {
        s->next(s);
    }
}

static void on_guard(struct sw_timer *timer)
{
    container_of(timer, struct scene, guard)->has_timed_out = true;
}

static void stop_guard(struct scene *s)
{
    sw_timer_stop(&s->guard);
}

static void scene_open(struct scene *s, bool is_real, uint64_t poll_ms, const char *name,
                       const char *other)
{
    if (is_real) {
        assert_int_equal(sw_loop_open(&s->loop), 0);
    } else {
        s->loop = sw_loop_virtual_new(0, 1);
    }
    char *paths[] = {strdup(path_of(s, name)), strdup(path_of(s, other ? other : name))};
    sw_timer_init(&s->guard, s->loop, on_guard);
    assert_int_equal(sw_file_watch_open(s->loop, (const char *const *)paths, other ? 2 : 1, poll_ms,
                                        on_change, s, &s->watch),
                     0);
    free(paths[0]);
    free(paths[1]);
}

static void scene_close(struct scene *s)
{
    sw_file_watch_close(s->watch);
    sw_timer_stop(&s->guard);
    assert_int_equal(sw_loop_close(s->loop), 0);
    test_folder_done(s->folder);
}

TEST(polls_on_virtual_time)
{
    struct scene s = {.folder = test_folder_new()};
    put(&s, "f", "one");
    scene_open(&s, false, 1000, "f", NULL);
    sw_loop_virtual_advance(s.loop, 5000);
    assert_int_equal(s.calls, 0);
    put(&s, "f", "two");
    sw_loop_virtual_advance(s.loop, 5000);
    assert_int_equal(s.calls, 1);
    put(&s, "f", "two"); /* written again, the same */
    sw_loop_virtual_advance(s.loop, 5000);
    assert_int_equal(s.calls, 1);
    unlink(path_of(&s, "f"));
    sw_loop_virtual_advance(s.loop, 5000);
    assert_int_equal(s.calls, 2);
    put(&s, "f", "two");
    sw_loop_virtual_advance(s.loop, 5000);
    assert_int_equal(s.calls, 3);
    scene_close(&s);
}

TEST(calls_once_for_several_files)
{
    struct scene s = {.folder = test_folder_new()};
    put(&s, "tls.crt", "a");
    scene_open(&s, false, 1000, "tls.crt", "tls.key");
    put(&s, "tls.crt", "b");
    put(&s, "tls.key", "b");
    sw_loop_virtual_advance(s.loop, 1000);
    assert_int_equal(s.calls, 1);
    scene_close(&s);
}

TEST(watches_relative_paths)
{
    struct scene s = {.folder = test_folder_new()};
    char *before = getcwd(NULL, 0);
    assert_int_equal(chdir(s.folder), 0);
    assert_int_equal(sw_loop_open(&s.loop), 0);
    sw_timer_init(&s.guard, s.loop, on_guard);
    s.next = stop_guard;
    const char *const path = "f";
    assert_int_equal(sw_file_watch_open(s.loop, &path, 1, 0, on_change, &s, &s.watch), 0);
    put(&s, "f", "x");
    sw_timer_start(&s.guard, 20000);
    sw_loop_run(s.loop);
    assert_false(s.has_timed_out);
    assert_int_equal(s.calls, 1);
    assert_int_equal(chdir(before), 0);
    free(before);
    scene_close(&s);
}

TEST(does_not_poll_unless_asked)
{
    struct scene s = {.folder = test_folder_new()};
    scene_open(&s, false, 0, "f", NULL);
    assert_false(sw_loop_virtual_step(s.loop));
    scene_close(&s);
    sw_file_watch_close(NULL);
}

static void close_it(struct scene *s)
{
    sw_file_watch_close(s->watch);
    s->watch = NULL;
    sw_timer_stop(&s->guard);
}

TEST(may_be_closed_from_its_callback)
{
    for (int is_real = 0; is_real < 2; is_real++) {
        struct scene s = {.folder = test_folder_new(), .next = close_it};
        scene_open(&s, is_real, 5, "f", NULL);
        put(&s, "f", "x");
        if (is_real) {
            sw_timer_start(&s.guard, 20000);
            sw_loop_run(s.loop);
        } else {
            sw_loop_virtual_advance(s.loop, 100);
        }
        assert_int_equal(s.calls, 1);
        assert_false(s.has_timed_out);
        scene_close(&s);
    }
}

TEST(does_not_keep_the_loop_alive)
{
    struct scene s = {.folder = test_folder_new()};
    scene_open(&s, true, 10, "f", NULL);
    sw_loop_run(s.loop);
    scene_close(&s);
}

/* As the kubelet does it: tls.crt -> ..data/tls.crt, ..data -> ..1; then ..data is swapped. */
static void publish(const struct scene *s, const char *version, const char *text)
{
    char inner[300];
    assert_int_equal(mkdir(path_of(s, version), 0700), 0);
    snprintf(inner, sizeof(inner), "%s/tls.crt", version);
    put(s, inner, text);
    assert_int_equal(symlink(version, path_of(s, "..data_tmp")), 0);
    assert_int_equal(rename(path_of(s, "..data_tmp"), path_of(s, "..data")), 0);
}

static void swap_then_stop(struct scene *s)
{
    if (s->calls == 1) {
        publish(s, "..3", "third");
    } else {
        sw_timer_stop(&s->guard);
    }
}

/* No polling here: it has to come from the folder's events. */
TEST(sees_a_mounted_file_being_swapped)
{
    struct scene s = {.folder = test_folder_new(), .next = swap_then_stop};
    publish(&s, "..1", "first");
    assert_int_equal(symlink("..data/tls.crt", path_of(&s, "tls.crt")), 0);
    scene_open(&s, true, 0, "tls.crt", NULL);
    sw_timer_start(&s.guard, 20000);
    publish(&s, "..2", "second");
    sw_loop_run(s.loop);
    assert_false(s.has_timed_out);
    assert_int_equal(s.calls, 2);
    scene_close(&s);
}

TEST(finds_a_folder_that_appears_later)
{
    struct scene s = {.folder = test_folder_new(), .next = stop_guard};
    scene_open(&s, true, 5, "later/f", NULL);
    assert_int_equal(mkdir(path_of(&s, "later"), 0700), 0);
    put(&s, "later/f", "x");
    sw_timer_start(&s.guard, 20000);
    sw_loop_run(s.loop);
    assert_false(s.has_timed_out);
    assert_int_equal(s.calls, 1);
    scene_close(&s);
}

/* What is written into a file of the folder is not the folder's content, nor is what is hidden. */
TEST(sees_which_names_are_in_a_folder)
{
    struct scene s = {.folder = test_folder_new()};
    scene_open(&s, false, 1000, "d/", NULL);
    assert_int_equal(mkdir(path_of(&s, "d"), 0700), 0);
    sw_loop_virtual_advance(s.loop, 3000);
    assert_int_equal(s.calls, 1); /* it is there */
    put(&s, "d/f", "one");
    sw_loop_virtual_advance(s.loop, 3000);
    assert_int_equal(s.calls, 2);
    put(&s, "d/f", "two");
    put(&s, "d/.g", "hidden");
    sw_loop_virtual_advance(s.loop, 3000);
    assert_int_equal(s.calls, 2);
    assert_int_equal(rename(path_of(&s, "d/f"), path_of(&s, "d/e")), 0);
    sw_loop_virtual_advance(s.loop, 3000);
    assert_int_equal(s.calls, 3);
    scene_close(&s);
}

static void put_into_folder(struct scene *s)
{
    if (s->calls == 1)
        put(s, "d/second", "");
    else
        sw_timer_stop(&s->guard);
}

TEST(compares_with_what_somebody_else_has_seen)
{
    struct scene s = {.folder = test_folder_new()};
    put(&s, "f", "one");
    scene_open(&s, false, 1000, "f", NULL);
    put(&s, "f", "two");
    sw_file_watch_see(s.watch);
    sw_loop_virtual_advance(s.loop, 3000);
    assert_int_equal(s.calls, 0);
    put(&s, "f", "one"); /* as it was at first */
    sw_loop_virtual_advance(s.loop, 3000);
    assert_int_equal(s.calls, 1);
    scene_close(&s);
}

/* No polling here either. */
TEST(hears_of_names_in_a_folder)
{
    struct scene s = {.folder = test_folder_new(), .next = put_into_folder};
    assert_int_equal(mkdir(path_of(&s, "d"), 0700), 0);
    scene_open(&s, true, 0, "d/", NULL);
    sw_timer_start(&s.guard, 20000);
    put(&s, "d/first", "");
    sw_loop_run(s.loop);
    assert_false(s.has_timed_out);
    assert_int_equal(s.calls, 2);
    scene_close(&s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("file", reads_files_whole),
        CASE("file", reads_files_that_do_not_know_their_size),
        CASE("file", says_which_file_it_is_about),
        CASE("file", does_not_wait_for_the_writer_of_a_pipe),
        CASE("file watch", polls_on_virtual_time),
        CASE("file watch", calls_once_for_several_files),
        CASE("file watch", watches_relative_paths),
        CASE("file watch", does_not_poll_unless_asked),
        CASE("file watch", may_be_closed_from_its_callback),
        CASE("file watch", does_not_keep_the_loop_alive),
        CASE("file watch", sees_a_mounted_file_being_swapped),
        CASE("file watch", finds_a_folder_that_appears_later),
        CASE("file watch", sees_which_names_are_in_a_folder),
        CASE("file watch", compares_with_what_somebody_else_has_seen),
        CASE("file watch", hears_of_names_in_a_folder),
    };
    return RUN(tests);
}
