/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queues of keys. Each key has its own timer in the loop's heap, so that "again after" costs
 * nothing until it is due. Retries share one pace over all queues, so that many failing keys do not
 * become a storm; wishes that come from changes are never delayed.
 */
#include "runtime/queue.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <slipway/arena.h>
#include <slipway/telemetry.h>

#include "base/map.h"
#include "base/metrics.h"
#include "base/util.h"
#include "runtime/core.h"
#include "runtime/instance.h"

enum {
    RETRY_FIRST_MS = 5,
    RETRY_LAST_MS = 5 * 60 * 1000,
    /* client-go: 10 retries a second over all keys, 100 at once */
    PACE_INTERVAL_MS = 100,
    PACE_BURST = 100,
    /* Calls in one go before the loop may look for I/O: at 20 us a call about a millisecond. */
    RUNS_PER_TURN = 64,
};

struct sw_run {
    struct sw_link link; /* in ready or running */
    struct sw_queue *queue;
    char *key;
    enum { IDLE, READY, RUNNING } state;
    bool is_dirty;    /* wished for while it runs */
    bool is_in_call;  /* fn has not returned */
    bool is_finished; /* sw_run_finish came before fn had returned */
    enum sw_result result;
    unsigned failures;
    uint64_t ready_ns, started_ns;
    char id[17]; /* of this call */
    struct sw_arena *arena;
    struct sw_timer timer;
};

static bool is_open(const struct sw_queue *queue)
{
    return queue->also_on_followers || sw_leading_is_on(&queue->core->leading);
}

/* ---- one key ---- */

static void run_free(struct sw_run *run)
{
    sw_timer_stop(&run->timer);
    sw_link_remove(&run->link);
    sw_map_remove(run->queue->runs, run->key);
    sw_arena_free(run->arena);
    sw_free(run->key);
    sw_free(run);
}

static void forget_if_nothing_left(struct sw_run *run)
{
    if (run->state == IDLE && run->failures == 0 && !sw_timer_is_active(&run->timer))
        run_free(run);
}

static void wish(struct sw_run *run)
{
    struct sw_queue *queue = run->queue;

    sw_timer_stop(&run->timer);
    if (run->state == RUNNING)
        run->is_dirty = true;
    if (run->state != IDLE)
        return;
    run->state = READY;
    run->ready_ns = sw_now_ns(queue->core->loop);
    sw_link_add_last(&queue->ready, &run->link);
    queue->ready_count++;
    sw_metric_set(queue->metrics.depth, (double)queue->ready_count);
    sw_metric_add(queue->metrics.adds, 1);
    if (!sw_timer_is_active(&queue->work))
        sw_timer_start(&queue->work, 0);
}

static void run_is_due(struct sw_timer *timer)
{
    wish(container_of(timer, struct sw_run, timer));
}

static struct sw_run *run_get(struct sw_queue *queue, const char *key)
{
    struct sw_run *run = sw_map_get(queue->runs, key);

    if (run)
        return run;
    run = SW_NEW(struct sw_run);
    run->queue = queue;
    run->key = sw_strdup(key);
    sw_link_init(&run->link);
    sw_timer_init_weak(&run->timer, queue->core->loop, run_is_due);
    sw_map_set(queue->runs, key, run);
    return run;
}

static void wish_at(struct sw_run *run, uint64_t due_ms)
{
    if (sw_timer_is_active(&run->timer) && run->timer.due_ms <= due_ms)
        return;
    sw_timer_start_at(&run->timer, due_ms);
}

/* ---- failures ---- */

static uint64_t retry_delay(struct sw_run *run)
{
    struct sw_core *core = run->queue->core;
    uint64_t delay = RETRY_LAST_MS;

    if (run->failures < 16) /* 5 ms * 2^16 is beyond the last one */
        delay = SW_MIN((uint64_t)RETRY_FIRST_MS << run->failures, (uint64_t)RETRY_LAST_MS);
    run->failures++;
    return sw_random_between(core->loop, delay - delay / 2, delay);
}

/* When the shared pace lets the next retry through, at the earliest. */
static uint64_t retry_pace(struct sw_core *core)
{
    uint64_t now = sw_now_ms(core->loop);
    uint64_t ahead = (uint64_t)PACE_INTERVAL_MS * PACE_BURST;

    core->retry_pace_ms = SW_MAX(core->retry_pace_ms, now) + PACE_INTERVAL_MS;
    return core->retry_pace_ms > now + ahead ? core->retry_pace_ms - ahead : now;
}

static void retry(struct sw_run *run)
{
    struct sw_core *core = run->queue->core;
    uint64_t due = sw_now_ms(core->loop) + retry_delay(run);

    sw_metric_add(run->queue->metrics.retries, 1);
    uint64_t paced = retry_pace(core);
    wish_at(run, SW_MAX(due, paced));
}

/* ---- calls ---- */

static void count_result(struct sw_run *run, enum sw_result result)
{
    struct sw_queue *queue = run->queue;
    double seconds = (double)(sw_now_ns(queue->core->loop) - run->started_ns) / 1e9;

    sw_metric_observe(queue->metrics.worked, seconds);
    sw_metric_observe(queue->metrics.took, seconds);
    sw_metric_add(queue->metrics.active, -1);
    if (result == SW_RETRY) {
        sw_metric_add(queue->metrics.error, 1);
        sw_metric_add(queue->metrics.errors, 1);
    } else if (sw_timer_is_active(&run->timer)) {
        sw_metric_add(queue->metrics.requeue_after, 1);
    } else {
        sw_metric_add(queue->metrics.success, 1);
    }
}

static void finish(struct sw_run *run, enum sw_result result)
{
    struct sw_queue *queue = run->queue;
    bool is_dirty = run->is_dirty;

    count_result(run, result);
    run->arena = sw_arena_free(run->arena);
    run->state = IDLE;
    run->is_dirty = false;
    sw_link_remove(&run->link);
    if (result == SW_DONE)
        run->failures = 0;
    else if (is_open(queue))
        retry(run);
    if (is_dirty && is_open(queue))
        wish(run);
    forget_if_nothing_left(run);
    sw_core_look_at_quiesce(queue->core);
}

/* Not two of one process alike, and hardly two of several: a counter from the time of the start on,
 * stirred as splitmix64 does. Not by chance, so that a simulation repeats. */
static void name_run(struct sw_run *run)
{
    struct sw_core *core = run->queue->core;
    uint64_t number = core->run_number++ * UINT64_C(0x9e3779b97f4a7c15);

    number += (uint64_t)core->started_us;
    number = (number ^ (number >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ (number >> 27)) * UINT64_C(0x94d049bb133111eb);
    snprintf(run->id, sizeof(run->id), "%016" PRIx64, number ^ (number >> 31));
}

static void call(struct sw_run *run)
{
    struct sw_queue *queue = run->queue;
    struct sw_loop *loop = queue->core->loop;

    sw_link_remove(&run->link);
    queue->ready_count--;
    sw_metric_set(queue->metrics.depth, (double)queue->ready_count);
    run->state = RUNNING;
    run->started_ns = sw_now_ns(loop);
    run->is_finished = false;
    run->arena = sw_arena_new(1024);
    sw_link_add_last(&queue->running, &run->link);
    sw_metric_observe(queue->metrics.waited, (double)(run->started_ns - run->ready_ns) / 1e9);
    sw_metric_add(queue->metrics.active, 1);

    name_run(run);
    sw_say_about(queue->instance, NULL, run->id);
    run->is_in_call = true;
    enum sw_result result = queue->fn(queue->instance, queue->arg, run);
    run->is_in_call = false;
    sw_say_about(queue->instance, NULL, NULL);
    if (result == SW_LATER && run->is_finished)
        result = run->result;
    if (result != SW_LATER)
        finish(run, result);
}

/* Between two batches the loop looks for I/O. */
static void work(struct sw_timer *timer)
{
    struct sw_queue *queue = container_of(timer, struct sw_queue, work);

    for (int i = 0; i < RUNS_PER_TURN && sw_link_is_used(&queue->ready); i++)
        call(container_of(queue->ready.next, struct sw_run, link));
    if (sw_link_is_used(&queue->ready))
        sw_timer_start(&queue->work, 0);
}

/* ---- metrics ---- */

/* As client-go has them: from 10 ns to 1 000 s. */
static const double durations[] = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3,
                                   1e-2, 1e-1, 1,    10,   100,  1000};
/* As controller-runtime has them. */
static const double times[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3,  0.35,
                               0.4,   0.45, 0.5,   0.6,  0.7, 0.8,  0.9, 1,    1.25, 1.5,
                               1.75,  2,    2.5,   3,    3.5, 4,    4.5, 5,    6,    7,
                               8,     9,    10,    15,   20,  25,   30,  40,   50,   60};

static struct sw_metric *metric_of(struct sw_queue *queue, enum sw_metric_type type,
                                   const char *name, const char *help)
{
    static const char *const labels[] = {"name", "controller", NULL};
    const char *values[] = {queue->name, queue->instance->module->name, NULL};
    struct sw_metric_family *family = sw_metrics_family(
        queue->core->metrics, type, name, help, labels, durations, SW_ARRAY_SIZE(durations));

    return sw_metric_child(family, values);
}

static struct sw_metric *result_of(struct sw_queue *queue, const char *result)
{
    static const char *const labels[] = {"controller", "result", NULL};
    const char *values[] = {queue->name, result, NULL};
    struct sw_metric_family *family = sw_metrics_family(
        queue->core->metrics, SW_METRIC_COUNTER, "controller_runtime_reconcile_total",
        "Calls for a key, by result.", labels, NULL, 0);

    return sw_metric_child(family, values);
}

static struct sw_metric *controller_metric(struct sw_queue *queue, enum sw_metric_type type,
                                           const char *name, const char *help)
{
    static const char *const labels[] = {"controller", NULL};
    const char *values[] = {queue->name, NULL};

    return sw_metric_child(sw_metrics_family(queue->core->metrics, type, name, help, labels, times,
                                             SW_ARRAY_SIZE(times)),
                           values);
}

static void collect(void *arg)
{
    struct sw_queue *queue = arg;
    uint64_t now = sw_now_ns(queue->core->loop);
    double sum = 0, longest = 0;

    for (struct sw_link *l = queue->running.next; l != &queue->running; l = l->next) {
        struct sw_run *run = container_of(l, struct sw_run, link);
        double seconds = (double)(now - run->started_ns) / 1e9;
        sum += seconds;
        longest = SW_MAX(longest, seconds);
    }
    sw_metric_set(queue->metrics.unfinished, sum);
    sw_metric_set(queue->metrics.longest, longest);
}

static void make_metrics(struct sw_queue *queue)
{
    queue->metrics.depth = metric_of(queue, SW_METRIC_GAUGE, "workqueue_depth", "Keys that wait.");
    queue->metrics.adds =
        metric_of(queue, SW_METRIC_COUNTER, "workqueue_adds_total", "Keys added.");
    queue->metrics.retries =
        metric_of(queue, SW_METRIC_COUNTER, "workqueue_retries_total", "Keys tried again.");
    queue->metrics.waited =
        metric_of(queue, SW_METRIC_HISTOGRAM, "workqueue_queue_duration_seconds",
                  "How long a key waited for its call.");
    queue->metrics.worked = metric_of(queue, SW_METRIC_HISTOGRAM, "workqueue_work_duration_seconds",
                                      "How long a key took, answers waited for included.");
    queue->metrics.unfinished =
        metric_of(queue, SW_METRIC_GAUGE, "workqueue_unfinished_work_seconds",
                  "How long the keys under way have taken so far, together.");
    queue->metrics.longest =
        metric_of(queue, SW_METRIC_GAUGE, "workqueue_longest_running_processor_seconds",
                  "How long the longest of them has taken so far.");
    queue->metrics.success = result_of(queue, "success");
    queue->metrics.error = result_of(queue, "error");
    result_of(queue, "requeue"); /* stays 0: what is to come again is an error, or has a time */
    queue->metrics.requeue_after = result_of(queue, "requeue_after");
    queue->metrics.errors =
        controller_metric(queue, SW_METRIC_COUNTER, "controller_runtime_reconcile_errors_total",
                          "Calls for a key that failed.");
    queue->metrics.took =
        controller_metric(queue, SW_METRIC_HISTOGRAM, "controller_runtime_reconcile_time_seconds",
                          "How long a key took, answers waited for included.");
    queue->metrics.active = controller_metric(
        queue, SW_METRIC_GAUGE, "controller_runtime_active_workers", "Keys that are worked on.");
    sw_metrics_on_collect(queue->core->metrics, collect, queue);
}

/* ---- the core's side ---- */

/* What was asked for its key is forgotten, and the run with it unless it is under way. */
static void drop_wishes(struct sw_queue *queue, struct sw_run *run)
{
    sw_timer_stop(&run->timer);
    run->is_dirty = false;
    run->failures = 0;
    if (run->state == READY) {
        sw_link_remove(&run->link);
        run->state = IDLE;
        queue->ready_count--;
    }
    forget_if_nothing_left(run);
}

void sw_queue_drop(struct sw_queue *queue)
{
    struct sw_map_iter it = {0};

    while (sw_map_next(queue->runs, &it)) {
        drop_wishes(queue, it.value);
    }
    sw_timer_stop(&queue->work);
    sw_metric_set(queue->metrics.depth, (double)queue->ready_count);
}

bool sw_queue_is_idle(const struct sw_queue *queue)
{
    return !sw_link_is_used(&queue->ready) && !sw_link_is_used(&queue->running);
}

void sw_queue_free(struct sw_queue *queue)
{
    struct sw_map_iter it = {0};

    sw_metrics_off_collect(queue->core->metrics, collect, queue);
    while (sw_map_next(queue->runs, &it))
        run_free(it.value);
    sw_map_free(queue->runs);
    sw_timer_stop(&queue->work);
    sw_link_remove(&queue->link);
    sw_free(queue->name);
    sw_free(queue);
}

/* ---- queue.h ---- */

struct sw_queue *sw_queue_new(struct sw_instance *self, const struct sw_queue_options *options)
{
    struct sw_queue *queue = SW_NEW(struct sw_queue);

    sw_assert(options->fn && options->name);
    queue->instance = self;
    queue->core = self->core;
    queue->name = sw_strdup(options->name);
    queue->fn = options->fn;
    queue->arg = options->arg;
    queue->also_on_followers = options->also_on_followers;
    queue->runs = sw_map_new();
    sw_link_init(&queue->ready);
    sw_link_init(&queue->running);
    sw_timer_init_weak(&queue->work, self->core->loop, work);
    make_metrics(queue);
    sw_link_init(&queue->link);
    sw_link_add_last(&self->queues, &queue->link);
    return queue;
}

void sw_queue_add(struct sw_queue *queue, const char *key)
{
    if (is_open(queue))
        wish(run_get(queue, key));
}

void sw_queue_add_after(struct sw_queue *queue, const char *key, uint64_t after_ms)
{
    if (!is_open(queue))
        return;
    struct sw_run *run = run_get(queue, key);

    if (run->state == READY || run->is_dirty)
        return; /* comes sooner than any timer */
    wish_at(run, sw_now_ms(queue->core->loop) + after_ms);
}

void sw_queue_remove(struct sw_queue *queue, const char *key)
{
    struct sw_run *run = sw_map_get(queue->runs, key);

    if (!run)
        return;
    drop_wishes(queue, run);
    sw_metric_set(queue->metrics.depth, (double)queue->ready_count);
}

const char *sw_run_key(const struct sw_run *run)
{
    return run->key;
}

const char *sw_run_id(const struct sw_run *run)
{
    return run->id;
}

struct sw_arena *sw_run_arena(const struct sw_run *run)
{
    return run->arena;
}

void sw_run_finish(struct sw_run *run, enum sw_result result)
{
    sw_assert(run->state == RUNNING && !run->is_finished && result != SW_LATER);
    if (!run->is_in_call) {
        finish(run, result);
        return;
    }
    run->is_finished = true;
    run->result = result;
}
