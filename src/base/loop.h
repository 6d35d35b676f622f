/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop: timers, deferred calls, clock and random numbers. Everything that waits or asks for the
 * time does it here, so that a test can replace all of it.
 *
 * Two kinds: the real one turns a uv_loop_t; the virtual one has a clock that moves only when told,
 * and random numbers from a seed, so that a run repeats to the byte. One thread.
 *
 * Order: deferred calls run after the callback that made them has returned, first in first out,
 * those they make themselves included, before any timer and before the loop looks for I/O again.
 * (The callbacks of I/O that the kernel reported in one go follow each other without a pause, and
 * so do those of closed handles: libuv offers no place in between. So what a callback of libuv
 * defers comes after the rest of its batch.) Timers run in the order of the milliseconds at which
 * they are due, and those of the same millisecond in the order in which they were started. A timer
 * that is started anew for now from its own callback comes after the loop has looked for I/O.
 *
 * "The loop turns" means: the deferred calls are done and the loop looks for timers and I/O. It
 * turns after every timer and after every batch of I/O.
 */
#ifndef SW_BASE_LOOP_H
#define SW_BASE_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sw_loop;
struct sw_timer;
struct sw_defer;

/* ---- real ---- */

int sw_loop_open(struct sw_loop **ret_loop);
/* Runs until nothing is active: no timer (but weak ones), no handle, no deferred call. Sleeps while
 * nothing is due. Not from a callback. */
void sw_loop_run(struct sw_loop *loop);
/* From a callback: sw_loop_run returns soon, with everything as it is; run again, it goes on. For
 * programs that do one thing after the other. */
void sw_loop_stop(struct sw_loop *loop);
/* Either kind; deferred calls and closings under way are finished first. Returns 0, or -EBUSY if a
 * handle is still open or a timer waits: a leak, of which stderr tells the kind. Frees the loop
 * either way. Takes NULL. */
int sw_loop_close(struct sw_loop *loop);
/* The uv_loop_t of a real loop, as void * so that this header needs no uv.h; NULL of a virtual one.
 * Only src/base and src/net may use it. */
void *sw_loop_uv(struct sw_loop *loop);

/* Memory for what is read and used up in one callback, always the same: it stays in the processor's
 * cache, and the heap is left alone (glibc tidies all of it whenever so much becomes free). Given
 * back before it is taken again. */
enum {
    SW_SCRATCH_BYTES = 64 * 1024, /* libuv's own suggestion for a read: four full TLS records */
};
char *sw_loop_scratch_take(struct sw_loop *loop);
void sw_loop_scratch_give(struct sw_loop *loop);

/* What one part of src/net keeps for each loop; NULL at first. at_close comes from sw_loop_close,
 * before handles are looked at. */
void sw_loop_keep(struct sw_loop *loop, void *kept, void (*at_close)(void *kept));
void *sw_loop_kept(const struct sw_loop *loop);

/* ---- virtual ---- */

/* Monotonic time begins at 1 000 000 ms; wall_us: the wall clock then. */
struct sw_loop *sw_loop_virtual_new(int64_t wall_us, uint64_t seed);
/* Runs what is due, moving the clock from one timer to the next, until now + ms; ms 0: what is due
 * now. A callback may call it again: then the inner call runs what is due, and the outer one what
 * is left. */
void sw_loop_virtual_advance(struct sw_loop *loop, uint64_t ms);
/* Moves to the next timer and runs it. False where none is waiting. */
bool sw_loop_virtual_step(struct sw_loop *loop);
/* When step would run something, on the clock of sw_now_ms: now while a deferred call waits, else
 * when the next timer is due (that may have passed, after a stall). UINT64_MAX: never. */
uint64_t sw_loop_virtual_next(const struct sw_loop *loop);
/* Moves the clock on without running anything: the process was stopped, and nobody has noticed yet.
 */
void sw_loop_virtual_stall(struct sw_loop *loop, uint64_t ms);
/* The machine was suspended: sw_now_ns and the wall clock go on, sw_now_ms and with it the timers
 * stand still. */
void sw_loop_virtual_suspend(struct sw_loop *loop, uint64_t ms);
/* Shifts the wall clock alone, as NTP would. */
void sw_loop_virtual_shift_wall(struct sw_loop *loop, int64_t us);

/* ---- clock and chance ---- */

uint64_t sw_now_ms(const struct sw_loop *loop); /* monotonic, of this turn of the loop */
/* Monotonic, right now: for measuring, and for what ends at a certain time whatever happens. Time
 * in which the machine was suspended counts here, and does not in sw_now_ms: compare neither with
 * the other. */
uint64_t sw_now_ns(const struct sw_loop *loop);
int64_t sw_wall_us(const struct sw_loop *loop); /* microseconds since 1970-01-01T00:00:00Z */
uint64_t sw_random(struct sw_loop *loop);
/* Uniform in [from, to], from <= to. */
uint64_t sw_random_between(struct sw_loop *loop, uint64_t from, uint64_t to);

/* Turns so far; what is "valid until the loop turns" was got in the same one. */
uint64_t sw_loop_turn(const struct sw_loop *loop);

/* ---- timers and deferred calls: members of their owner; zeroed memory is stopped ---- */

typedef void (*sw_timer_fn)(struct sw_timer *timer);

struct sw_timer {
    sw_timer_fn fn;
    /* private */
    struct sw_loop *loop;
    uint64_t due_ms;
    uint64_t order;
    uint32_t at; /* place in the heap, from 1; 0: stopped */
    bool is_weak;
};

void sw_timer_init(struct sw_timer *timer, struct sw_loop *loop, sw_timer_fn fn);
/* The same, but this timer does not keep the loop alive. */
void sw_timer_init_weak(struct sw_timer *timer, struct sw_loop *loop, sw_timer_fn fn);
/* (Re)starts it; it fires once. Never calls back before it has returned. */
void sw_timer_start(struct sw_timer *timer, uint64_t after_ms);
/* At an absolute time of sw_now_ms; the past means at once. */
void sw_timer_start_at(struct sw_timer *timer, uint64_t due_ms);
/* May be called at any time, and before the owner is freed must be. */
void sw_timer_stop(struct sw_timer *timer);
bool sw_timer_is_active(const struct sw_timer *timer);

typedef void (*sw_defer_fn)(struct sw_defer *defer);

struct sw_defer {
    sw_defer_fn fn;
    /* private */
    struct sw_loop *loop;
    struct sw_defer *next, *prev;
};

void sw_defer_init(struct sw_defer *defer, struct sw_loop *loop, sw_defer_fn fn);
/* Asks for one call; asked again before it came, it still comes once. */
void sw_defer_start(struct sw_defer *defer);
void sw_defer_stop(struct sw_defer *defer);
bool sw_defer_is_active(const struct sw_defer *defer);

/* ---- signals (real loop only) ---- */

typedef void (*sw_signal_fn)(void *arg, int signum);
struct sw_signal;
/* Calls fn each time the signal arrives; does not keep the loop alive. */
int sw_signal_open(struct sw_loop *loop, int signum, sw_signal_fn fn, void *arg,
                   struct sw_signal **ret_signal);
void sw_signal_close(struct sw_signal *signal); /* takes NULL */

#endif
