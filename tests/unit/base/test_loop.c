/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of both kinds: order, starting and stopping from callbacks, its end, and what it keeps
 * alive. The tests of order run on either kind. */
#include "base/loop.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <uv.h>

#include "base/random.h"
#include "base/util.h"
#include "test.h"

/* A timer or deferred call that writes its letter, and then does what the test wants. */
struct actor {
    struct sw_timer timer;
    struct sw_defer defer;
    char letter;
    int repeats;
    void (*then)(struct actor *self);
    struct actor *other;
    struct scene *scene;
};

struct scene {
    struct sw_loop *loop;
    struct actor actors[8];
    char text[256];
    uint64_t started_ms;
};

static void leave(struct actor *self)
{
    size_t len = strlen(self->scene->text);
    assert_true(len + 1 < sizeof(self->scene->text));
    self->scene->text[len] = self->letter;
    if (self->then) {
        self->then(self);
    }
}

static void on_timer(struct sw_timer *timer)
{
    leave(container_of(timer, struct actor, timer));
}

static void on_defer(struct sw_defer *defer)
{
    leave(container_of(defer, struct actor, defer));
}

static void scene_init(struct scene *s, bool is_real)
{
    *s = (struct scene){0};
    if (is_real) {
        assert_int_equal(sw_loop_open(&s->loop), 0);
    } else {
        s->loop = sw_loop_virtual_new(0, 1);
    }
    for (size_t i = 0; i < SW_ARRAY_SIZE(s->actors); i++) {
        struct actor *a = &s->actors[i];
        a->scene = s;
        a->letter = (char)('a' + i);
        sw_timer_init(&a->timer, s->loop, on_timer);
        sw_defer_init(&a->defer, s->loop, on_defer);
    }
    s->started_ms = sw_now_ms(s->loop);
}

static void scene_run(struct scene *s)
{
    if (sw_loop_uv(s->loop)) {
        sw_loop_run(s->loop);
    } else {
        sw_loop_virtual_advance(s->loop, 1000);
    }
}

static void scene_done(struct scene *s)
{
    assert_int_equal(sw_loop_close(s->loop), 0);
}

/* ---- order ---- */

static void timers_in_order(bool is_real)
{
    struct scene s;
    scene_init(&s, is_real);
    sw_timer_start(&s.actors[0].timer, 4);
    sw_timer_start(&s.actors[1].timer, 2);
    sw_timer_start(&s.actors[2].timer, 2);
    sw_timer_start(&s.actors[3].timer, 0);
    sw_timer_start(&s.actors[4].timer, 2);
    sw_timer_start(&s.actors[1].timer, 2); /* anew: now the last of its millisecond */
    assert_true(sw_timer_is_active(&s.actors[1].timer));
    assert_string_equal(s.text, "");
    scene_run(&s);
    assert_string_equal(s.text, "dceba");
    assert_false(sw_timer_is_active(&s.actors[1].timer));
    scene_done(&s);
}

TEST(runs_timers_in_order)
{
    timers_in_order(false);
    timers_in_order(true);
}

static void defer_other(struct actor *self)
{
    sw_defer_start(&self->other->defer);
    sw_defer_start(&self->other->defer); /* still one call */
    assert_true(sw_defer_is_active(&self->other->defer));
}

static void defers_between_timers(bool is_real)
{
    struct scene s;
    scene_init(&s, is_real);
    /* Timers a, b at once; a defers c, which defers d: both come before b. */
    s.actors[0].then = s.actors[2].then = defer_other;
    s.actors[0].other = &s.actors[2];
    s.actors[2].other = &s.actors[3];
    sw_timer_start(&s.actors[0].timer, 0);
    sw_timer_start(&s.actors[1].timer, 0);
    sw_defer_start(&s.actors[5].defer);
    sw_defer_start(&s.actors[4].defer);
    sw_defer_start(&s.actors[6].defer);
    sw_defer_stop(&s.actors[6].defer);
    sw_defer_stop(&s.actors[6].defer);
    scene_run(&s);
    assert_string_equal(s.text, "feacdb");
    scene_done(&s);
}

TEST(runs_deferred_calls_before_the_next_timer)
{
    defers_between_timers(false);
    defers_between_timers(true);
}

static void stop_other(struct actor *self)
{
    sw_timer_stop(&self->other->timer);
    sw_defer_stop(&self->other->defer);
}

static void stopping_others(bool is_real)
{
    struct scene s;
    scene_init(&s, is_real);
    s.actors[0].then = s.actors[2].then = stop_other;
    s.actors[0].other = &s.actors[1];
    s.actors[2].other = &s.actors[3];
    sw_timer_start(&s.actors[0].timer, 1);
    sw_timer_start(&s.actors[1].timer, 1);
    sw_timer_start(&s.actors[4].timer, 1);
    sw_defer_start(&s.actors[2].defer);
    sw_defer_start(&s.actors[3].defer);
    scene_run(&s);
    assert_string_equal(s.text, "cae");
    scene_done(&s);
}

TEST(lets_a_callback_stop_what_is_due_with_it)
{
    stopping_others(false);
    stopping_others(true);
}

static void repeat(struct actor *self)
{
    if (self->repeats-- > 0) {
        sw_timer_start(&self->timer, 0);
    }
}

static void restarting(bool is_real)
{
    struct scene s;
    scene_init(&s, is_real);
    s.actors[0].then = repeat;
    s.actors[0].repeats = 3;
    sw_timer_start(&s.actors[0].timer, 0);
    sw_timer_start(&s.actors[1].timer, 0);
    scene_run(&s);
    assert_string_equal(s.text, "abaaa");
    scene_done(&s);
}

TEST(lets_a_timer_start_itself_anew)
{
    restarting(false);
    restarting(true);
}

static void start_in_the_past(struct actor *self)
{
    sw_timer_start_at(&self->other->timer, 1);
}

static void past(bool is_real)
{
    struct scene s;
    scene_init(&s, is_real);
    s.actors[0].then = start_in_the_past;
    s.actors[0].other = &s.actors[1];
    sw_timer_start(&s.actors[0].timer, 3);
    sw_timer_start(&s.actors[2].timer, 3);
    scene_run(&s);
    assert_string_equal(s.text, "acb");
    scene_done(&s);
}

TEST(takes_the_past_for_now)
{
    past(false);
    past(true);
}

static void free_self(struct actor *self)
{
    sw_timer_stop(&self->timer);
    free(self);
}

TEST(lets_an_owner_free_itself_in_its_callback)
{
    for (int is_real = 0; is_real < 2; is_real++) {
        struct scene s;
        scene_init(&s, is_real);
        for (int i = 0; i < 10; i++) {
            struct actor *a = calloc(1, sizeof(*a));
            a->scene = &s;
            a->letter = 'x';
            a->then = free_self;
            sw_timer_init(&a->timer, s.loop, on_timer);
            sw_defer_init(&a->defer, s.loop, on_defer);
            if (i % 2) {
                sw_timer_start(&a->timer, 1);
            } else {
                sw_defer_start(&a->defer);
            }
        }
        scene_run(&s);
        assert_string_equal(s.text, "xxxxxxxxxx");
        scene_done(&s);
    }
}

TEST(never_comes_for_a_timer_at_the_end_of_time)
{
    struct scene s;
    scene_init(&s, false);
    sw_timer_start(&s.actors[0].timer, UINT64_MAX);
    sw_loop_virtual_advance(s.loop, UINT64_C(1) << 40);
    assert_string_equal(s.text, "");
    sw_timer_stop(&s.actors[0].timer);
    sw_timer_stop(&s.actors[0].timer);
    scene_done(&s);
}

struct numbered {
    struct sw_timer timer;
    uint64_t order; /* what the model knows of it */
    uint64_t due_ms;
    bool is_active;
};

static struct numbered *last_fired;

static void on_numbered(struct sw_timer *timer)
{
    last_fired = container_of(timer, struct numbered, timer);
}

/* Random starts and stops; what fires is compared with a plain search for the first. */
TEST(agrees_with_a_model)
{
    enum { TIMERS = 300, STEPS = 30000 };
    static struct numbered timers[TIMERS];
    struct sw_loop *loop = sw_loop_virtual_new(0, 7);
    struct sw_rng rng;
    sw_rng_seed(&rng, 31);
    for (size_t i = 0; i < TIMERS; i++) {
        sw_timer_init(&timers[i].timer, loop, on_numbered);
    }
    for (uint64_t step = 1; step <= STEPS; step++) {
        struct numbered *t = &timers[sw_rng_between(&rng, 0, TIMERS - 1)];
        uint64_t what = sw_rng_between(&rng, 0, 9);
        if (what < 6) {
            uint64_t after = sw_rng_between(&rng, 0, 40);
            sw_timer_start(&t->timer, after);
            t->due_ms = sw_now_ms(loop) + after;
            t->order = step;
            t->is_active = true;
            continue;
        }
        if (what < 8) {
            sw_timer_stop(&t->timer);
            t->is_active = false;
            continue;
        }
        struct numbered *first = NULL;
        for (size_t i = 0; i < TIMERS; i++) {
            struct numbered *o = &timers[i];
            assert_int_equal(sw_timer_is_active(&o->timer), o->is_active);
            if (o->is_active && (!first || o->due_ms < first->due_ms ||
                                 (o->due_ms == first->due_ms && o->order < first->order))) {
                first = o;
            }
        }
        last_fired = NULL;
        assert_int_equal(sw_loop_virtual_step(loop), first != NULL);
        assert_ptr_equal(last_fired, first);
        if (first) {
            assert_int_equal(sw_now_ms(loop), first->due_ms);
            first->is_active = false;
        }
    }
    for (size_t i = 0; i < TIMERS; i++) {
        sw_timer_stop(&timers[i].timer);
    }
    assert_int_equal(sw_loop_close(loop), 0);
}

/* ---- virtual ---- */

TEST(moves_a_virtual_clock_only_when_told)
{
    struct scene s;
    scene_init(&s, false);
    assert_int_equal(sw_now_ms(s.loop), 1000000);
    sw_timer_start(&s.actors[0].timer, 10);
    sw_timer_start(&s.actors[1].timer, 20);
    sw_loop_virtual_advance(s.loop, 9);
    assert_string_equal(s.text, "");
    sw_loop_virtual_advance(s.loop, 1);
    assert_string_equal(s.text, "a");
    assert_int_equal(sw_now_ms(s.loop), 1000010);
    assert_true(sw_now_ns(s.loop) == UINT64_C(1000010000000));
    sw_defer_start(&s.actors[2].defer);
    sw_loop_virtual_advance(s.loop, 0);
    assert_string_equal(s.text, "ac");
    assert_true(sw_loop_virtual_step(s.loop));
    assert_string_equal(s.text, "acb");
    assert_int_equal(sw_now_ms(s.loop), 1000020);
    assert_false(sw_loop_virtual_step(s.loop));
    scene_done(&s);
}

TEST(tells_when_a_virtual_loop_has_something_to_do)
{
    struct scene s;
    scene_init(&s, false);
    uint64_t now = sw_now_ms(s.loop);
    assert_int_equal(sw_loop_virtual_next(s.loop), UINT64_MAX);
    sw_timer_start(&s.actors[0].timer, 20);
    sw_timer_start(&s.actors[1].timer, 10);
    assert_int_equal(sw_loop_virtual_next(s.loop), now + 10);
    sw_defer_start(&s.actors[2].defer);
    assert_int_equal(sw_loop_virtual_next(s.loop), now);
    sw_loop_virtual_stall(s.loop, 15);
    assert_int_equal(sw_loop_virtual_next(s.loop), now + 15);
    assert_true(sw_loop_virtual_step(s.loop)); /* the deferred call, then the first timer */
    assert_string_equal(s.text, "cb");
    assert_int_equal(sw_loop_virtual_next(s.loop), now + 20);
    sw_timer_start(&s.actors[1].timer, 1);
    sw_loop_virtual_stall(s.loop, 15);
    assert_int_equal(sw_loop_virtual_next(s.loop), now + 16); /* has passed already */
    sw_loop_virtual_advance(s.loop, 0);
    assert_string_equal(s.text, "cbba");
    assert_int_equal(sw_loop_virtual_next(s.loop), UINT64_MAX);
    scene_done(&s);
}

TEST(keeps_the_wall_clock_in_step_and_shifts_it)
{
    struct sw_loop *loop = sw_loop_virtual_new(INT64_C(1700000000000000), 1);
    assert_true(sw_wall_us(loop) == INT64_C(1700000000000000));
    sw_loop_virtual_advance(loop, 1500);
    assert_true(sw_wall_us(loop) == INT64_C(1700000001500000));
    sw_loop_virtual_shift_wall(loop, -INT64_C(3600000000));
    assert_true(sw_wall_us(loop) == INT64_C(1699996401500000));
    assert_int_equal(sw_now_ms(loop), 1001500);
    assert_int_equal(sw_loop_close(loop), 0);
}

static void advance_more(struct actor *self)
{
    sw_loop_virtual_advance(self->scene->loop, 100);
}

TEST(may_be_advanced_from_a_callback)
{
    struct scene s;
    scene_init(&s, false);
    s.actors[0].then = advance_more;
    sw_timer_start(&s.actors[0].timer, 10);
    sw_timer_start(&s.actors[1].timer, 50);
    sw_timer_start(&s.actors[2].timer, 109);
    sw_timer_start(&s.actors[3].timer, 111);
    sw_loop_virtual_advance(s.loop, 20);
    assert_string_equal(s.text, "abc");
    assert_int_equal(sw_now_ms(s.loop), s.started_ms + 110);
    sw_loop_virtual_advance(s.loop, 1);
    assert_string_equal(s.text, "abcd");
    scene_done(&s);
}

TEST(repeats_its_random_numbers_from_a_seed)
{
    struct sw_loop *a = sw_loop_virtual_new(0, 5);
    struct sw_loop *b = sw_loop_virtual_new(0, 5);
    struct sw_loop *c = sw_loop_virtual_new(0, 6);
    bool has_other = false;
    for (int i = 0; i < 100; i++) {
        uint64_t n = sw_random(a);
        assert_true(n == sw_random(b));
        has_other |= n != sw_random(c);
        assert_in_range(sw_random_between(a, 3, 9), 3, 9);
        sw_random_between(b, 3, 9);
    }
    assert_true(has_other);
    sw_loop_close(a);
    sw_loop_close(b);
    sw_loop_close(c);
}

static void defer_self(struct actor *self)
{
    sw_defer_start(&self->defer);
    self->scene->text[0] = '\0';
}

TEST(notices_an_endless_chain)
{
    struct scene s;
    scene_init(&s, false);
    s.actors[0].then = defer_self;
    sw_defer_start(&s.actors[0].defer);
    assert_aborts(sw_loop_virtual_advance(s.loop, 0));
    sw_defer_stop(&s.actors[0].defer);
    scene_done(&s);
}

TEST(counts_turns)
{
    struct scene s;
    scene_init(&s, false);
    uint64_t before = sw_loop_turn(s.loop);
    sw_timer_start(&s.actors[0].timer, 1);
    sw_timer_start(&s.actors[1].timer, 1);
    assert_true(sw_loop_turn(s.loop) == before);
    sw_loop_virtual_advance(s.loop, 5);
    assert_true(sw_loop_turn(s.loop) >= before + 2);
    scene_done(&s);
}

/* ---- real ---- */

TEST(returns_from_a_run_with_nothing_to_do)
{
    struct sw_loop *loop;
    assert_int_equal(sw_loop_open(&loop), 0);
    sw_loop_run(loop);
    sw_loop_run(loop);
    assert_int_equal(sw_loop_close(loop), 0);
    assert_int_equal(sw_loop_close(NULL), 0);
}

TEST(waits_on_the_real_clock)
{
    struct scene s;
    scene_init(&s, true);
    uint64_t before_ns = sw_now_ns(s.loop);
    int64_t wall = sw_wall_us(s.loop);
    assert_true(wall > INT64_C(1700000000000000));
    sw_timer_start(&s.actors[0].timer, 30);
    sw_loop_run(s.loop);
    assert_string_equal(s.text, "a");
    assert_true(sw_now_ms(s.loop) >= s.started_ms + 30);
    assert_true(sw_now_ns(s.loop) - before_ns >= 29000000);
    assert_true(sw_random(s.loop) != sw_random(s.loop));
    scene_done(&s);
}

static void on_idle_end(struct sw_timer *timer)
{
    (void)timer;
}

/* CPU time and context switches of a loop that waits 200 ms with a prepare, a check, a weak timer
 * and a stopped timer in it: a loop that spins uses all of that. */
TEST(sleeps_while_nothing_is_due)
{
    struct sw_loop *loop;
    assert_int_equal(sw_loop_open(&loop), 0);
    struct sw_timer end, weak;
    sw_timer_init(&end, loop, on_idle_end);
    sw_timer_init_weak(&weak, loop, on_idle_end);
    sw_timer_start(&end, 200);
    sw_timer_start(&weak, 100000);
    struct rusage before, after;
    uint64_t turns = sw_loop_turn(loop);
    getrusage(RUSAGE_SELF, &before);
    sw_loop_run(loop);
    getrusage(RUSAGE_SELF, &after);
    int64_t used_us = (after.ru_utime.tv_sec - before.ru_utime.tv_sec) * INT64_C(1000000) +
                      after.ru_utime.tv_usec - before.ru_utime.tv_usec;
    assert_true(used_us < 100000);
    assert_true(sw_loop_turn(loop) - turns < 12);
    sw_timer_stop(&weak);
    assert_int_equal(sw_loop_close(loop), 0);
}

TEST(is_not_kept_alive_by_a_weak_timer)
{
    struct scene s;
    scene_init(&s, true);
    sw_timer_init_weak(&s.actors[0].timer, s.loop, on_timer);
    sw_timer_init_weak(&s.actors[1].timer, s.loop, on_timer);
    sw_timer_start(&s.actors[0].timer, 1);
    sw_timer_start(&s.actors[1].timer, 100000);
    sw_timer_start(&s.actors[2].timer, 20);
    sw_loop_run(s.loop);
    assert_string_equal(s.text, "ac");
    sw_timer_stop(&s.actors[1].timer);
    scene_done(&s);
}

struct wire {
    struct scene own_scene; /* of one test */
    struct scene *scene;
    uv_async_t async;
    int left;
};

static void on_async_closed(uv_handle_t *handle)
{
    struct wire *wire = container_of((uv_async_t *)handle, struct wire, async);
    /* The last handle is gone, and the loop still has to make this call. */
    sw_defer_start(&wire->scene->actors[2].defer);
}

static void on_async(uv_async_t *async)
{
    struct wire *wire = container_of(async, struct wire, async);
    sw_defer_start(&wire->scene->actors[0].defer);
    sw_timer_start(&wire->scene->actors[1].timer, 0);
    if (--wire->left == 0) {
        uv_close((uv_handle_t *)async, on_async_closed);
    } else {
        uv_async_send(async);
    }
}

TEST(runs_deferred_calls_of_io_before_timers)
{
    struct scene s;
    scene_init(&s, true);
    struct wire wire = {.scene = &s, .left = 3};
    assert_int_equal(uv_async_init(sw_loop_uv(s.loop), &wire.async, on_async), 0);
    uv_async_send(&wire.async);
    sw_loop_run(s.loop);
    /* Each time the deferred call, then the timer, then I/O again; the close callback's call (c)
     * before the last timer. */
    assert_string_equal(s.text, "ababacb");
    scene_done(&s);
}

static void on_zero_timer(struct actor *self)
{
    if (self->repeats-- > 0) {
        sw_timer_start(&self->timer, 0);
    }
}

TEST(looks_for_io_between_timers_that_start_themselves)
{
    struct scene s;
    scene_init(&s, true);
    struct wire wire = {.scene = &s, .left = 1};
    s.actors[3].then = on_zero_timer;
    s.actors[3].repeats = 50;
    assert_int_equal(uv_async_init(sw_loop_uv(s.loop), &wire.async, on_async), 0);
    uv_async_send(&wire.async);
    sw_timer_start(&s.actors[3].timer, 0);
    sw_loop_run(s.loop);
    /* The wire's callback (a) comes after the first few of the 51 turns of d. */
    const char *a = strchr(s.text, 'a');
    assert_non_null(a);
    assert_true(a - s.text <= 3);
    scene_done(&s);
}

TEST(reports_a_handle_that_was_left_open)
{
    struct sw_loop *loop;
    assert_int_equal(sw_loop_open(&loop), 0);
    static uv_async_t async;
    assert_int_equal(uv_async_init(sw_loop_uv(loop), &async, NULL), 0);
    uv_unref((uv_handle_t *)&async);
    sw_loop_run(loop);
    assert_int_equal(sw_loop_close(loop), -EBUSY);
}

TEST(reports_what_still_waits)
{
    for (int is_real = 0; is_real < 2; is_real++) {
        struct scene s;
        scene_init(&s, is_real);
        sw_timer_start(&s.actors[0].timer, 100);
        sw_timer_start(&s.actors[1].timer, 100);
        assert_int_equal(sw_loop_close(s.loop), -EBUSY);
        sw_timer_stop(&s.actors[0].timer); /* late, but harmless */
    }
}

static void on_closed(uv_handle_t *handle)
{
    struct wire *wire = container_of((uv_async_t *)handle, struct wire, async);
    sw_defer_start(&wire->scene->actors[1].defer);
}

static void close_wire(struct actor *self)
{
    struct wire *wire = container_of(self->scene, struct wire, own_scene);
    uv_close((uv_handle_t *)&wire->async, on_closed);
}

TEST(finishes_deferred_calls_and_closings_when_it_is_closed)
{
    for (int is_real = 0; is_real < 2; is_real++) {
        struct wire wire = {0};
        struct scene *s = wire.scene = &wire.own_scene;
        scene_init(s, is_real);
        sw_timer_start(&s->actors[2].timer, 0); /* not called any more */
        if (is_real) {
            assert_int_equal(uv_async_init(sw_loop_uv(s->loop), &wire.async, on_async), 0);
            s->actors[0].then = close_wire;
        }
        sw_defer_start(&s->actors[0].defer);
        assert_int_equal(sw_loop_close(s->loop), -EBUSY); /* for the timer */
        assert_string_equal(s->text, is_real ? "ab" : "a");
    }
}

struct signals {
    struct sw_loop *loop;
    struct sw_signal *signal;
    struct sw_timer guard;
    int count;
};

static void on_signal(void *arg, int signum)
{
    struct signals *signals = arg;
    assert_int_equal(signum, SIGUSR1);
    if (++signals->count == 2) {
        sw_signal_close(signals->signal);
        sw_signal_close(signals->signal);
        sw_timer_stop(&signals->guard);
    } else {
        kill(getpid(), SIGUSR1);
    }
}

/* In place of the C library's, for all that is linked into this program: the machine can be
 * suspended. */
static time_t suspended_s;

int clock_gettime(clockid_t clock, struct timespec *ret_now)
{
    long rc = syscall(SYS_clock_gettime, clock, ret_now);
    ret_now->tv_sec += clock == CLOCK_BOOTTIME || clock == CLOCK_REALTIME ? suspended_s : 0;
    return (int)rc;
}

TEST(counts_the_time_of_a_suspended_machine)
{
    struct sw_loop *loop;
    assert_int_equal(sw_loop_open(&loop), 0);
    uint64_t before_ns = sw_now_ns(loop);
    int64_t before_us = sw_wall_us(loop);
    suspended_s = 3600;
    assert_true(sw_now_ns(loop) - before_ns >= UINT64_C(3600000000000));
    assert_true(sw_wall_us(loop) - before_us >= INT64_C(3600000000));
    suspended_s = 0;
    assert_int_equal(sw_loop_close(loop), 0);

    loop = sw_loop_virtual_new(0, 1);
    before_ns = sw_now_ns(loop);
    uint64_t before_ms = sw_now_ms(loop);
    sw_loop_virtual_suspend(loop, 5000);
    assert_int_equal(sw_now_ns(loop) - before_ns, UINT64_C(5000000000));
    assert_int_equal(sw_now_ms(loop), before_ms);
    assert_int_equal(sw_wall_us(loop), 5000000);
    assert_int_equal(sw_loop_close(loop), 0);
}

TEST(hears_signals)
{
    struct signals signals = {0};
    assert_int_equal(sw_loop_open(&signals.loop), 0);
    sw_timer_init(&signals.guard, signals.loop, on_idle_end);
    sw_timer_start(&signals.guard, 10000);
    assert_int_equal(sw_signal_open(signals.loop, SIGUSR1, on_signal, &signals, &signals.signal),
                     0);
    kill(getpid(), SIGUSR1);
    sw_loop_run(signals.loop);
    assert_int_equal(signals.count, 2);
    assert_int_equal(sw_loop_close(signals.loop), 0);
}

TEST(is_not_kept_alive_by_a_signal)
{
    struct sw_loop *loop;
    struct sw_signal *signal;
    assert_int_equal(sw_loop_open(&loop), 0);
    assert_int_equal(sw_signal_open(loop, SIGUSR1, on_signal, NULL, &signal), 0);
    sw_loop_run(loop);
    sw_signal_close(signal); /* ends within sw_loop_close */
    sw_signal_close(NULL);
    assert_int_equal(sw_signal_open(loop, SIGKILL, on_signal, NULL, &signal), -EINVAL);
    assert_int_equal(sw_loop_close(loop), 0);
}

struct stopped {
    struct sw_loop *loop;
    struct sw_timer timer;
    int count;
};

static void on_stopped_timer(struct sw_timer *timer)
{
    struct stopped *stopped = container_of(timer, struct stopped, timer);

    if (++stopped->count < 3)
        sw_timer_start(timer, 0);
    sw_loop_stop(stopped->loop);
}

TEST(stops_with_everything_as_it_is_and_goes_on_when_it_is_run_again)
{
    struct stopped stopped = {0};

    assert_int_equal(sw_loop_open(&stopped.loop), 0);
    sw_timer_init(&stopped.timer, stopped.loop, on_stopped_timer);
    sw_timer_start(&stopped.timer, 0);
    for (int runs = 1; runs <= 3; runs++) {
        sw_loop_run(stopped.loop);
        assert_int_equal(stopped.count, runs);
        assert_int_equal(sw_timer_is_active(&stopped.timer), runs < 3);
    }
    sw_loop_run(stopped.loop);
    assert_int_equal(stopped.count, 3);
    assert_int_equal(sw_loop_close(stopped.loop), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("loop", runs_timers_in_order),
        CASE("loop", runs_deferred_calls_before_the_next_timer),
        CASE("loop", lets_a_callback_stop_what_is_due_with_it),
        CASE("loop", lets_a_timer_start_itself_anew),
        CASE("loop", takes_the_past_for_now),
        CASE("loop", lets_an_owner_free_itself_in_its_callback),
        CASE("loop", never_comes_for_a_timer_at_the_end_of_time),
        CASE("loop", agrees_with_a_model),
        CASE("loop", moves_a_virtual_clock_only_when_told),
        CASE("loop", tells_when_a_virtual_loop_has_something_to_do),
        CASE("loop", keeps_the_wall_clock_in_step_and_shifts_it),
        CASE("loop", may_be_advanced_from_a_callback),
        CASE("loop", repeats_its_random_numbers_from_a_seed),
        CASE("loop", notices_an_endless_chain),
        CASE("loop", counts_turns),
        CASE("loop", returns_from_a_run_with_nothing_to_do),
        CASE("loop", waits_on_the_real_clock),
        CASE("loop", sleeps_while_nothing_is_due),
        CASE("loop", is_not_kept_alive_by_a_weak_timer),
        CASE("loop", runs_deferred_calls_of_io_before_timers),
        CASE("loop", looks_for_io_between_timers_that_start_themselves),
        CASE("loop", reports_a_handle_that_was_left_open),
        CASE("loop", reports_what_still_waits),
        CASE("loop", finishes_deferred_calls_and_closings_when_it_is_closed),
        CASE("loop", counts_the_time_of_a_suspended_machine),
        CASE("loop", hears_signals),
        CASE("loop", is_not_kept_alive_by_a_signal),
        CASE("loop", stops_with_everything_as_it_is_and_goes_on_when_it_is_run_again),
    };
    return RUN(tests);
}
