/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Look-ups of names, with a resolver of our own in the place of the C library's: names that begin
 * with "hang" are not answered before the test says so.
 */
#include "net/look_up.h"

#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <uv.h>

#include "base/loop.h"
#include "base/util.h"
#include "net/tcp.h"
#include "test.h"

enum { GUARD_MS = 60000 };

/* ---- the resolver, on threads ---- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned asked, hanging; /* times */
    bool is_released;
} resolver = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, false};

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **list)
{
    static int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    int rc = 0;
    pthread_mutex_lock(&resolver.lock);
    if (!real) {
        void *found = dlsym(RTLD_NEXT, "getaddrinfo");
        memcpy(&real, &found, sizeof(real));
    }
    resolver.asked++;
    if (strncmp(name, "hang", 4) == 0) {
        resolver.hanging++;
        pthread_cond_broadcast(&resolver.changed);
        while (!resolver.is_released) {
            pthread_cond_wait(&resolver.changed, &resolver.lock);
        }
        resolver.hanging--;
        pthread_cond_broadcast(&resolver.changed);
    }
    pthread_mutex_unlock(&resolver.lock);
    if (strcmp(name, "none") == 0) {
        return EAI_NONAME;
    }
    if (strcmp(name, "again") == 0) {
        return EAI_AGAIN;
    }
    rc = real("127.0.0.1", service, hints, list);
    return rc;
}

/* Until so many of them hang. */
static void until_hanging(unsigned count)
{
    pthread_mutex_lock(&resolver.lock);
    while (resolver.hanging != count) {
        pthread_cond_wait(&resolver.changed, &resolver.lock);
    }
    pthread_mutex_unlock(&resolver.lock);
}

static void set_released(bool is_released)
{
    pthread_mutex_lock(&resolver.lock);
    resolver.is_released = is_released;
    pthread_cond_broadcast(&resolver.changed);
    pthread_mutex_unlock(&resolver.lock);
}

static unsigned times_asked(void)
{
    pthread_mutex_lock(&resolver.lock);
    unsigned asked = resolver.asked;
    pthread_mutex_unlock(&resolver.lock);
    return asked;
}

/* ---- who asks ---- */

struct asker {
    struct sw_look_up *look_up;
    unsigned answers;
    int code;
    unsigned addresses;
    struct asker *victim; /* cancelled when this one is told */
};

static struct {
    struct sw_loop *loop;
    struct sw_timer guard;
    unsigned answers, wanted;
} w;

static void too_long(struct sw_timer *timer)
{
    (void)timer;
    fail_msg("waited in vain: %u of %u answers", w.answers, w.wanted);
}

static void begin(void)
{
    memset(&w, 0, sizeof(w));
    set_released(false);
    resolver.asked = 0;
    assert_int_equal(sw_loop_open(&w.loop), 0);
    sw_timer_init(&w.guard, w.loop, too_long);
    sw_timer_start(&w.guard, GUARD_MS);
}

static void end(void)
{
    sw_timer_stop(&w.guard);
    assert_int_equal(sw_loop_close(w.loop), 0);
    set_released(true);
    until_hanging(0);
}

static void on_looked_up(void *arg, int code, const struct addrinfo *list)
{
    struct asker *asker = arg;
    assert_true(!code == (list != NULL));
    asker->answers++;
    asker->code = code;
    asker->look_up = NULL;
    for (; list; list = list->ai_next) {
        asker->addresses++;
    }
    if (asker->victim) {
        sw_look_up_cancel(asker->victim->look_up);
    }
    if (++w.answers == w.wanted) {
        sw_loop_stop(w.loop);
    }
}

static void ask(struct asker *asker, const char *name)
{
    assert_int_equal(sw_look_up(w.loop, name, on_looked_up, asker, &asker->look_up), 0);
    assert_int_equal(asker->answers, 0);
}

static void run_until(unsigned answers)
{
    w.wanted = answers;
    sw_loop_run(w.loop);
    assert_int_equal(w.answers, answers);
}

TEST(finds_addresses)
{
    struct asker known = {0}, none = {0}, again = {0};
    begin();
    ask(&known, "known");
    ask(&none, "none");
    ask(&again, "again");
    run_until(3);
    assert_int_equal(known.code, 0);
    assert_int_equal(known.addresses, 1);
    assert_int_equal(none.code, UV_EAI_NONAME);
    assert_int_equal(again.code, UV_EAI_AGAIN);
    end();
}

TEST(one_thread_does_for_all_who_ask_for_a_name)
{
    struct asker askers[8] = {0};
    begin();
    for (int i = 0; i < 8; i++) {
        ask(&askers[i], "hang");
    }
    until_hanging(1);
    set_released(true);
    run_until(8);
    assert_int_equal(times_asked(), 1);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(askers[i].addresses, 1);
    }
    /* What was found is not kept. */
    askers[0] = (struct asker){0};
    ask(&askers[0], "hang");
    run_until(9);
    assert_int_equal(times_asked(), 2);
    end();
}

TEST(names_that_hang_delay_no_other)
{
    struct asker hanging[SW_LOOK_UPS_MAX - 1] = {0}, known = {0};
    begin();
    for (int i = 0; i < SW_LOOK_UPS_MAX - 1; i++) {
        SW_AUTO(char, sw_free) name = sw_asprintf("hang-%d", i);
        ask(&hanging[i], name);
    }
    until_hanging(SW_LOOK_UPS_MAX - 1);
    ask(&known, "known");
    run_until(1);
    assert_int_equal(known.addresses, 1);
    for (int i = 0; i < SW_LOOK_UPS_MAX - 1; i++) {
        sw_look_up_cancel(hanging[i].look_up);
    }
    end();
}

TEST(beyond_the_most_they_wait)
{
    struct asker askers[SW_LOOK_UPS_MAX] = {0}, known = {0}, dropped = {0};
    begin();
    for (int i = 0; i < SW_LOOK_UPS_MAX; i++) {
        SW_AUTO(char, sw_free) name = sw_asprintf("hang-%d", i);
        ask(&askers[i], name);
    }
    ask(&known, "known");
    ask(&dropped, "dropped");
    until_hanging(SW_LOOK_UPS_MAX);
    sw_look_up_cancel(dropped.look_up);
    assert_int_equal(times_asked(), SW_LOOK_UPS_MAX);
    set_released(true);
    run_until(SW_LOOK_UPS_MAX + 1);
    assert_int_equal(known.addresses, 1);
    assert_int_equal(times_asked(), SW_LOOK_UPS_MAX + 1);
    end();
}

TEST(who_cancels_is_not_told_and_who_comes_later_joins)
{
    struct asker gone = {0}, later = {0};
    begin();
    ask(&gone, "hang");
    until_hanging(1);
    sw_look_up_cancel(gone.look_up);
    sw_timer_stop(&w.guard);
    sw_loop_run(w.loop); /* has nothing to wait for */
    sw_timer_start(&w.guard, GUARD_MS);
    ask(&later, "hang");
    set_released(true);
    run_until(1);
    assert_int_equal(later.addresses, 1);
    assert_int_equal(gone.answers, 0);
    assert_int_equal(times_asked(), 1);
    end();
}

TEST(one_that_is_told_may_cancel_another)
{
    struct asker first = {0}, second = {0};
    begin();
    first.victim = &second;
    ask(&first, "known");
    ask(&second, "known");
    run_until(1);
    assert_int_equal(second.answers, 0);
    end();
}

/* The threads outlive the loop; end() lets them go. */
TEST(a_loop_is_closed_while_the_resolver_hangs)
{
    struct asker askers[3] = {0};
    begin();
    for (int i = 0; i < 3; i++) {
        ask(&askers[i], i == 0 ? "hang-a" : "hang-b");
    }
    until_hanging(2);
    for (int i = 0; i < 3; i++) {
        sw_look_up_cancel(askers[i].look_up);
    }
    end();
    assert_int_equal(w.answers, 0);
}

static void on_connected(void *arg, struct sw_stream *stream, const struct sw_error *error)
{
    (void)stream;
    (void)error;
    ++*(unsigned *)arg;
    sw_loop_stop(w.loop);
}

TEST(a_connect_by_a_name_that_hangs_ends_at_its_deadline)
{
    const struct sw_tcp_options options = {.host = "hang", .port = 1, .timeout_ms = 20};
    struct sw_tcp_connect *connect;
    unsigned ends = 0;
    begin();
    assert_int_equal(sw_tcp_connect(w.loop, &options, on_connected, &ends, &connect), 0);
    sw_loop_run(w.loop);
    assert_int_equal(ends, 1);
    assert_int_equal(sw_tcp_connect(w.loop, &options, on_connected, &ends, &connect), 0);
    sw_tcp_connect_cancel(connect);
    end();
    assert_int_equal(ends, 1);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("look-up", finds_addresses),
        CASE("look-up", one_thread_does_for_all_who_ask_for_a_name),
        CASE("look-up", names_that_hang_delay_no_other),
        CASE("look-up", beyond_the_most_they_wait),
        CASE("look-up", who_cancels_is_not_told_and_who_comes_later_joins),
        CASE("look-up", one_that_is_told_may_cancel_another),
        CASE("look-up", a_loop_is_closed_while_the_resolver_hangs),
        CASE("look-up", a_connect_by_a_name_that_hangs_ends_at_its_deadline),
    };
    return RUN(tests);
}
