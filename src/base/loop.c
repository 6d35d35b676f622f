/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop. Timers (a binary heap), deferred calls (a list) and the count of turns are ours and the
 * same for both kinds, so that what a test sees on virtual time is what happens on the real one.
 *
 * The real kind hangs on libuv by three handles:
 *     uv_timer    for the timer that is due next
 *     uv_prepare  before polling: runs deferred calls, arms the uv_timer
 *     uv_check    after polling: the same
 * prepare and check are unreferenced and cost nothing while the process sleeps. A deferred call
 * that is made after the check (by a callback of a closed handle) is found before timers or by
 * prepare, whichever comes first, and both are before the next poll.
 *
 * The uv_timer is never armed from its own callback: libuv 1.44 would run it again in the same
 * round for as long as something is due at once, and I/O would starve.
 */
#include "base/loop.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <uv.h>

#include "base/hash.h"
#include "base/poison.h"
#include "base/random.h"
#include "base/util.h"

#define VIRTUAL_START_MS UINT64_C(1000000)

/* So many deferred calls, or timers due at once, without the clock moving on are an endless chain:
 * at 10 ns each this is a tenth of a second in which nothing else ran. */
#define CHAIN_LIMIT UINT64_C(10000000)

struct sw_loop {
    struct sw_timer **heap; /* from place 1 */
    uint32_t timers;
    uint32_t weak_timers;
    uint32_t room;
    uint64_t order; /* of the timer started last */
    uint64_t turn;
    struct sw_defer defers; /* the list's head */
    struct sw_rng rng;
    char *scratch; /* NULL until it is wanted */
    bool is_scratch_taken;
    void *kept; /* NULL: nothing */
    void (*at_close)(void *kept);

    bool is_real;
    bool is_running;
    bool is_stopped;

    /* virtual */
    uint64_t now_ms;
    uint64_t suspended_ms;
    int64_t wall_start_us;

    /* real */
    uv_loop_t uv;
    uv_timer_t wake;
    uv_prepare_t prepare;
    uv_check_t check;
    uint64_t armed_ms; /* what wake is set to; only while it is active */
};

/* ---- the heap: ordered by time, then by the order of starting ---- */

static bool comes_before(const struct sw_timer *a, const struct sw_timer *b)
{
    return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->order < b->order;
}

static void place(struct sw_loop *loop, struct sw_timer *timer, uint32_t at)
{
    loop->heap[at] = timer;
    timer->at = at;
}

static void sift_up(struct sw_loop *loop, struct sw_timer *timer, uint32_t at)
{
    while (at > 1 && comes_before(timer, loop->heap[at / 2])) {
        place(loop, loop->heap[at / 2], at);
        at /= 2;
    }
    place(loop, timer, at);
}

static void sift_down(struct sw_loop *loop, struct sw_timer *timer, uint32_t at)
{
    while (at <= loop->timers / 2) {
        uint32_t child = at * 2;
        if (child < loop->timers && comes_before(loop->heap[child + 1], loop->heap[child])) {
            child++;
        }
        if (!comes_before(loop->heap[child], timer)) {
            break;
        }
        place(loop, loop->heap[child], at);
        at = child;
    }
    place(loop, timer, at);
}

static void heap_insert(struct sw_loop *loop, struct sw_timer *timer)
{
    if (loop->timers + 1 >= loop->room) {
        sw_assert(loop->room < UINT32_C(1) << 30);
        loop->room = loop->room ? loop->room * 2 : 32;
        loop->heap = sw_realloc(loop->heap, loop->room, sizeof(struct sw_timer *));
    }
    loop->timers++;
    loop->weak_timers += timer->is_weak;
    sift_up(loop, timer, loop->timers);
}

static void heap_remove(struct sw_loop *loop, struct sw_timer *timer)
{
    uint32_t at = timer->at;
    sw_assert(at <= loop->timers && loop->heap[at] == timer);
    struct sw_timer *last = loop->heap[loop->timers--];
    loop->weak_timers -= timer->is_weak;
    timer->at = 0;
    if (last == timer) {
        return;
    }
    if (at > 1 && comes_before(last, loop->heap[at / 2])) {
        sift_up(loop, last, at);
    } else {
        sift_down(loop, last, at);
    }
}

/* ---- timers ---- */

void sw_timer_init(struct sw_timer *timer, struct sw_loop *loop, sw_timer_fn fn)
{
    *timer = (struct sw_timer){.fn = fn, .loop = loop};
}

void sw_timer_init_weak(struct sw_timer *timer, struct sw_loop *loop, sw_timer_fn fn)
{
    *timer = (struct sw_timer){.fn = fn, .loop = loop, .is_weak = true};
}

void sw_timer_start(struct sw_timer *timer, uint64_t after_ms)
{
    uint64_t now = sw_now_ms(timer->loop);
    sw_timer_start_at(timer, after_ms < UINT64_MAX - now ? now + after_ms : UINT64_MAX);
}

void sw_timer_start_at(struct sw_timer *timer, uint64_t due_ms)
{
    struct sw_loop *loop = timer->loop;
    uint64_t now = sw_now_ms(loop);
    sw_timer_stop(timer);
    timer->due_ms = SW_MAX(due_ms, now); /* a past time must not overtake what is due already */
    timer->order = ++loop->order;
    heap_insert(loop, timer);
}

void sw_timer_stop(struct sw_timer *timer)
{
    if (timer->at) {
        heap_remove(timer->loop, timer);
    }
}

bool sw_timer_is_active(const struct sw_timer *timer)
{
    return timer->at != 0;
}

/* ---- deferred calls ---- */

void sw_defer_init(struct sw_defer *defer, struct sw_loop *loop, sw_defer_fn fn)
{
    *defer = (struct sw_defer){.fn = fn, .loop = loop};
}

void sw_defer_start(struct sw_defer *defer)
{
    if (defer->next) {
        return;
    }
    struct sw_defer *head = &defer->loop->defers;
    defer->next = head;
    defer->prev = head->prev;
    head->prev->next = defer;
    head->prev = defer;
}

void sw_defer_stop(struct sw_defer *defer)
{
    if (defer->next) {
        defer->prev->next = defer->next;
        defer->next->prev = defer->prev;
        defer->next = defer->prev = NULL;
    }
}

bool sw_defer_is_active(const struct sw_defer *defer)
{
    return defer->next != NULL;
}

static bool has_defers(const struct sw_loop *loop)
{
    return loop->defers.next != &loop->defers;
}

/* Ends a turn: runs the deferred calls, and those that they make. */
static void turn(struct sw_loop *loop)
{
    uint64_t calls = 0;
    while (has_defers(loop)) {
        struct sw_defer *defer = loop->defers.next;
        sw_defer_stop(defer);
        sw_assert(++calls < CHAIN_LIMIT);
        defer->fn(defer); /* may free itself, and any other */
    }
    loop->turn++;
}

uint64_t sw_loop_turn(const struct sw_loop *loop)
{
    return loop->turn;
}

static void fire(struct sw_loop *loop, struct sw_timer *timer)
{
    heap_remove(loop, timer);
    timer->fn(timer); /* may free itself, and any other */
    turn(loop);
}

/* ---- both kinds ---- */

static struct sw_loop *loop_new(uint64_t seed)
{
    struct sw_loop *loop = SW_NEW(struct sw_loop);
    loop->defers.next = loop->defers.prev = &loop->defers;
    sw_rng_seed(&loop->rng, seed);
    return loop;
}

char *sw_loop_scratch_take(struct sw_loop *loop)
{
    sw_assert(!loop->is_scratch_taken);
    if (!loop->scratch) {
        loop->scratch = sw_realloc(NULL, 1, SW_SCRATCH_BYTES);
    }
    ASAN_UNPOISON_MEMORY_REGION(loop->scratch, SW_SCRATCH_BYTES);
    loop->is_scratch_taken = true;
    return loop->scratch;
}

void sw_loop_scratch_give(struct sw_loop *loop)
{
    sw_assert(loop->is_scratch_taken);
    ASAN_POISON_MEMORY_REGION(loop->scratch, SW_SCRATCH_BYTES);
    loop->is_scratch_taken = false;
}

uint64_t sw_now_ms(const struct sw_loop *loop)
{
    return loop->is_real ? uv_now(&loop->uv) : loop->now_ms;
}

uint64_t sw_now_ns(const struct sw_loop *loop)
{
    if (!loop->is_real) {
        return (loop->now_ms + loop->suspended_ms) * 1000000;
    }
    /* Not uv_hrtime: CLOCK_MONOTONIC stands still while the machine is suspended. */
    struct timespec now;
    int rc = clock_gettime(CLOCK_BOOTTIME, &now);
    sw_assert(rc == 0);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int64_t sw_wall_us(const struct sw_loop *loop)
{
    if (!loop->is_real) {
        return loop->wall_start_us + (int64_t)(loop->now_ms - VIRTUAL_START_MS) * 1000;
    }
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

uint64_t sw_random(struct sw_loop *loop)
{
    return sw_rng_next(&loop->rng);
}

uint64_t sw_random_between(struct sw_loop *loop, uint64_t from, uint64_t to)
{
    return sw_rng_between(&loop->rng, from, to);
}

/* Lets go of what still waits, so that a late stop by its owner touches no freed loop. */
static int drop_waiting(struct sw_loop *loop)
{
    int rc = 0;
    if (loop->timers > 0) {
        fprintf(stderr, "slipway: loop closed while %u timers wait\n", loop->timers);
        rc = -EBUSY;
    }
    while (loop->timers > 0) {
        heap_remove(loop, loop->heap[loop->timers]);
    }
    while (has_defers(loop)) {
        fprintf(stderr, "slipway: loop closed while a deferred call waits\n");
        sw_defer_stop(loop->defers.next);
        rc = -EBUSY;
    }
    return rc;
}

/* ---- virtual ---- */

struct sw_loop *sw_loop_virtual_new(int64_t wall_us, uint64_t seed)
{
    struct sw_loop *loop = loop_new(seed);
    loop->now_ms = VIRTUAL_START_MS;
    loop->wall_start_us = wall_us;
    return loop;
}

void sw_loop_virtual_advance(struct sw_loop *loop, uint64_t ms)
{
    sw_assert(!loop->is_real && ms <= UINT64_MAX - loop->now_ms);
    uint64_t until = loop->now_ms + ms;
    uint64_t calls = 0;
    turn(loop);
    while (loop->timers > 0 && loop->heap[1]->due_ms <= until) {
        struct sw_timer *timer = loop->heap[1];
        if (timer->due_ms > loop->now_ms) {
            loop->now_ms = timer->due_ms;
            calls = 0;
        }
        sw_assert(++calls < CHAIN_LIMIT);
        fire(loop, timer);
    }
    /* A callback that advanced the clock itself may have gone further. */
    loop->now_ms = SW_MAX(loop->now_ms, until);
}

bool sw_loop_virtual_step(struct sw_loop *loop)
{
    sw_assert(!loop->is_real);
    turn(loop);
    if (loop->timers == 0) {
        return false;
    }
    loop->now_ms = SW_MAX(loop->now_ms, loop->heap[1]->due_ms);
    fire(loop, loop->heap[1]);
    return true;
}

uint64_t sw_loop_virtual_next(const struct sw_loop *loop)
{
    sw_assert(!loop->is_real);
    if (has_defers(loop)) {
        return loop->now_ms;
    }
    return loop->timers > 0 ? loop->heap[1]->due_ms : UINT64_MAX;
}

void sw_loop_virtual_stall(struct sw_loop *loop, uint64_t ms)
{
    sw_assert(!loop->is_real && ms <= UINT64_MAX - loop->now_ms);
    loop->now_ms += ms;
}

void sw_loop_virtual_suspend(struct sw_loop *loop, uint64_t ms)
{
    sw_assert(!loop->is_real && ms <= UINT64_MAX - loop->suspended_ms);
    loop->suspended_ms += ms;
    loop->wall_start_us += (int64_t)ms * 1000;
}

void sw_loop_virtual_shift_wall(struct sw_loop *loop, int64_t us)
{
    sw_assert(!loop->is_real);
    loop->wall_start_us += us;
}

/* ---- real ---- */

static void on_wake(uv_timer_t *wake)
{
    struct sw_loop *loop = container_of(wake, struct sw_loop, wake);
    /* What a callback starts anew for this millisecond waits until I/O had its turn. */
    uint64_t newest = loop->order;
    turn(loop);
    while (loop->timers > 0 && loop->heap[1]->due_ms <= uv_now(&loop->uv) &&
           loop->heap[1]->order <= newest) {
        fire(loop, loop->heap[1]);
    }
}

static void arm(struct sw_loop *loop)
{
    if (loop->timers == 0) {
        uv_timer_stop(&loop->wake);
        return;
    }
    uint64_t due = loop->heap[1]->due_ms;
    if (!uv_is_active((uv_handle_t *)&loop->wake) || loop->armed_ms != due) {
        uint64_t now = uv_now(&loop->uv);
        sw_assert(uv_timer_start(&loop->wake, on_wake, due > now ? due - now : 0, 0) == 0);
        loop->armed_ms = due;
    }
    if (loop->timers > loop->weak_timers) {
        uv_ref((uv_handle_t *)&loop->wake);
    } else {
        uv_unref((uv_handle_t *)&loop->wake);
    }
}

static void on_prepare(uv_prepare_t *prepare)
{
    struct sw_loop *loop = container_of(prepare, struct sw_loop, prepare);
    turn(loop);
    arm(loop);
}

static void on_check(uv_check_t *check)
{
    struct sw_loop *loop = container_of(check, struct sw_loop, check);
    turn(loop);
    arm(loop);
}

int sw_loop_open(struct sw_loop **ret_loop)
{
    uint64_t seed;
    sw_entropy(&seed, sizeof(seed));
    struct sw_loop *loop = loop_new(seed);
    loop->is_real = true;
    int rc = uv_loop_init(&loop->uv);
    if (rc) {
        sw_free(loop);
        return rc;
    }
    /* None of these can fail: they only link the handle into the loop. */
    uv_timer_init(&loop->uv, &loop->wake);
    uv_prepare_init(&loop->uv, &loop->prepare);
    uv_prepare_start(&loop->prepare, on_prepare);
    uv_unref((uv_handle_t *)&loop->prepare);
    uv_check_init(&loop->uv, &loop->check);
    uv_check_start(&loop->check, on_check);
    uv_unref((uv_handle_t *)&loop->check);
    *ret_loop = loop;
    return 0;
}

void *sw_loop_uv(struct sw_loop *loop)
{
    return loop->is_real ? &loop->uv : NULL;
}

void sw_loop_run(struct sw_loop *loop)
{
    sw_assert(loop->is_real && !loop->is_running);
    loop->is_running = true;
    loop->is_stopped = false;
    /* libuv stops when it sees nothing active. It does not see deferred calls, nor timers that were
     * started after it was armed: look again. */
    do {
        turn(loop);
        arm(loop);
        uv_run(&loop->uv, UV_RUN_DEFAULT);
    } while (!loop->is_stopped && (has_defers(loop) || loop->timers > loop->weak_timers));
    loop->is_running = false;
}

void sw_loop_stop(struct sw_loop *loop)
{
    sw_assert(loop->is_real && loop->is_running);
    loop->is_stopped = true;
    uv_stop(&loop->uv);
}

static bool is_own(const struct sw_loop *loop, const uv_handle_t *handle)
{
    return handle == (const uv_handle_t *)&loop->wake ||
           handle == (const uv_handle_t *)&loop->prepare ||
           handle == (const uv_handle_t *)&loop->check;
}

struct leaks {
    struct sw_loop *loop;
    bool has_any;
};

static void close_leaked(uv_handle_t *handle, void *arg)
{
    struct leaks *leaks = arg;
    if (uv_is_closing(handle)) {
        return;
    }
    if (!is_own(leaks->loop, handle)) {
        fprintf(stderr, "slipway: loop closed while a handle is open: %s\n",
                uv_handle_type_name(uv_handle_get_type(handle)));
        leaks->has_any = true;
    }
    uv_close(handle, NULL);
}

static int close_uv(struct sw_loop *loop)
{
    /* Closings that are under way end in the first round, in which no timer runs; a callback may
     * begin another. Our own handles and what leaked go with the walk, after which nothing can keep
     * the loop alive. */
    uv_timer_stop(&loop->wake);
    uv_prepare_stop(&loop->prepare);
    uv_check_stop(&loop->check);
    uv_run(&loop->uv, UV_RUN_NOWAIT);
    turn(loop);
    struct leaks leaks = {.loop = loop};
    uv_walk(&loop->uv, close_leaked, &leaks);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    int rc = uv_loop_close(&loop->uv);
    return leaks.has_any ? -EBUSY : rc;
}

void sw_loop_keep(struct sw_loop *loop, void *kept, void (*at_close)(void *kept))
{
    sw_assert(!loop->kept);
    loop->kept = kept;
    loop->at_close = at_close;
}

void *sw_loop_kept(const struct sw_loop *loop)
{
    return loop->kept;
}

int sw_loop_close(struct sw_loop *loop)
{
    if (!loop) {
        return 0;
    }
    sw_assert(!loop->is_running);
    if (loop->kept) {
        loop->at_close(sw_steal(&loop->kept));
    }
    turn(loop);
    int uv_rc = loop->is_real ? close_uv(loop) : 0;
    int rc = drop_waiting(loop);
    if (loop->scratch) {
        ASAN_UNPOISON_MEMORY_REGION(loop->scratch, SW_SCRATCH_BYTES);
        sw_free(loop->scratch);
    }
    sw_free(loop->heap);
    sw_free(loop);
    return uv_rc ? uv_rc : rc;
}

/* ---- signals ---- */

struct sw_signal {
    uv_signal_t handle;
    sw_signal_fn fn;
    void *arg;
    bool is_closing;
};

static void on_signal(uv_signal_t *handle, int signum)
{
    struct sw_signal *signal = container_of(handle, struct sw_signal, handle);
    signal->fn(signal->arg, signum);
}

static void on_signal_closed(uv_handle_t *handle)
{
    sw_free(container_of((uv_signal_t *)handle, struct sw_signal, handle));
}

int sw_signal_open(struct sw_loop *loop, int signum, sw_signal_fn fn, void *arg,
                   struct sw_signal **ret_signal)
{
    sw_assert(loop->is_real);
    struct sw_signal *signal = SW_NEW(struct sw_signal);
    signal->fn = fn;
    signal->arg = arg;
    int rc = uv_signal_init(&loop->uv, &signal->handle);
    if (rc) {
        sw_free(signal);
        return rc;
    }
    rc = uv_signal_start(&signal->handle, on_signal, signum);
    if (rc) {
        uv_close((uv_handle_t *)&signal->handle, on_signal_closed);
        return rc;
    }
    uv_unref((uv_handle_t *)&signal->handle);
    *ret_signal = signal;
    return 0;
}

void sw_signal_close(struct sw_signal *signal)
{
    if (signal && !signal->is_closing) {
        signal->is_closing = true;
        uv_close((uv_handle_t *)&signal->handle, on_signal_closed);
    }
}
