/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queues: what is called, how often and when. The function under the queue notes each call and
 * answers as the test says.
 */
#include <slipway/queue.h>

#include "../test.h"
#include "base/buf.h"

#include "fixture.h"

struct worker {
    struct fixture f;
    struct made_up made_up;
    struct sw_queue *queue;
    bool also_on_followers;
    enum sw_result result;
    char calls[65536]; /* "a b a " */
    unsigned call_count;
    uint64_t called_ms;      /* the last call */
    struct sw_run *runs[16]; /* those that returned SW_LATER */
    unsigned run_count;
    void (*within)(struct worker *w, struct sw_run *run);
};

static enum sw_result work(struct sw_instance *self, void *arg, struct sw_run *run)
{
    struct worker *w = arg;
    size_t len = strlen(w->calls);

    assert_ptr_equal(self, w->made_up.self);
    assert_non_null(sw_arena_strdup(sw_run_arena(run), "usable"));
    snprintf(w->calls + len, sizeof(w->calls) - len, "%s ", sw_run_key(run));
    w->call_count++;
    w->called_ms = sw_now_ms(w->f.loop);
    if (w->result == SW_LATER)
        w->runs[w->run_count++] = run;
    if (w->within)
        w->within(w, run);
    return w->result;
}

static int start(struct sw_instance *self, void *arg)
{
    struct worker *w = arg;
    struct sw_queue_options options = {
        .name = "test", .fn = work, .arg = w, .also_on_followers = w->also_on_followers};

    w->queue = sw_queue_new(self, &options);
    return 0;
}

static void begin_with(struct worker *w, const struct sw_core_options *options)
{
    w->made_up = (struct made_up){.start = start, .arg = w};
    fixture_init(&w->f, options);
    fixture_add(&w->f, &module_one, &w->made_up);
    fixture_open(&w->f);
}

static struct worker *begin(void)
{
    struct worker *w = calloc(1, sizeof(*w));

    begin_with(w, NULL);
    return w;
}

static void end(struct worker *w)
{
    fixture_done(&w->f);
    free(w);
}

static void expect(struct worker *w, const char *calls)
{
    assert_string_equal(w->calls, calls);
    w->calls[0] = '\0';
}

static void advance(struct worker *w, uint64_t ms)
{
    sw_loop_virtual_advance(w->f.loop, ms);
}

TEST(calls_once_for_a_key_that_waits_already)
{
    struct worker *w = begin();

    sw_queue_add(w->queue, "a");
    sw_queue_add(w->queue, "b");
    sw_queue_add(w->queue, "a");
    expect(w, "");
    advance(w, 0);
    expect(w, "a b ");
    advance(w, 600000);
    expect(w, "");
    end(w);
}

TEST(calls_again_for_a_key_that_was_added_while_it_ran)
{
    struct worker *w = begin();

    w->result = SW_LATER;
    sw_queue_add(w->queue, "a");
    advance(w, 0);
    sw_queue_add(w->queue, "a");
    sw_queue_add(w->queue, "a");
    sw_queue_add(w->queue, "b");
    advance(w, 1000);
    expect(w, "a b ");
    w->result = SW_DONE;
    sw_run_finish(w->runs[0], SW_DONE);
    advance(w, 0);
    expect(w, "a ");
    sw_run_finish(w->runs[1], SW_DONE);
    advance(w, 600000);
    expect(w, "");
    end(w);
}

static void finish_within(struct worker *w, struct sw_run *run)
{
    (void)w;
    sw_run_finish(run, SW_DONE);
}

TEST(takes_a_run_that_finishes_before_its_call_has_returned)
{
    struct worker *w = begin();

    w->result = SW_LATER;
    w->within = finish_within;
    sw_queue_add(w->queue, "a");
    advance(w, 0);
    sw_queue_add(w->queue, "a");
    advance(w, 0);
    expect(w, "a a ");
    end(w);
}

static void add_itself_later(struct worker *w, struct sw_run *run)
{
    sw_queue_add_after(w->queue, sw_run_key(run), 30000);
    w->within = NULL;
}

TEST(calls_again_after_the_time_that_a_run_asked_for)
{
    struct worker *w = begin();

    w->within = add_itself_later;
    sw_queue_add(w->queue, "a");
    advance(w, 29999);
    expect(w, "a ");
    advance(w, 1);
    expect(w, "a ");
    end(w);
}

TEST(lets_the_earliest_of_several_wishes_count)
{
    struct worker *w = begin();

    sw_queue_add_after(w->queue, "a", 1000);
    sw_queue_add_after(w->queue, "a", 100);
    sw_queue_add_after(w->queue, "a", 500);
    advance(w, 99);
    expect(w, "");
    advance(w, 1);
    expect(w, "a ");
    advance(w, 10000);
    expect(w, "");
    sw_queue_add_after(w->queue, "a", 1000);
    sw_queue_add(w->queue, "a");
    advance(w, 10000);
    expect(w, "a ");
    end(w);
}

TEST(forgets_what_was_removed)
{
    struct worker *w = begin();

    sw_queue_add(w->queue, "a");
    sw_queue_add_after(w->queue, "b", 10);
    sw_queue_remove(w->queue, "a");
    sw_queue_remove(w->queue, "b");
    sw_queue_remove(w->queue, "never seen");
    advance(w, 1000);
    expect(w, "");
    sw_queue_add(w->queue, "a");
    advance(w, 0);
    expect(w, "a ");
    end(w);
}

TEST(doubles_the_time_between_failures_up_to_five_minutes)
{
    struct worker *w = begin();

    w->result = SW_RETRY;
    sw_queue_add(w->queue, "a");
    advance(w, 0);
    for (unsigned n = 0; n < 20; n++) {
        uint64_t before_ms = w->called_ms;
        unsigned before = w->call_count;
        uint64_t most = n < 16 ? UINT64_C(5) << n : 300000;
        most = most < 300000 ? most : 300000;
        while (w->call_count == before)
            assert_true(sw_loop_virtual_step(w->f.loop));
        assert_in_range(w->called_ms - before_ms, most - most / 2, most);
    }
    end(w);
}

TEST(forgets_failures_after_a_success)
{
    struct worker *w = begin();

    w->result = SW_RETRY;
    sw_queue_add(w->queue, "a");
    advance(w, 10000);
    assert_in_range(w->call_count, 8, 20);
    w->result = SW_DONE;
    advance(w, 600000);
    w->calls[0] = '\0';
    w->result = SW_RETRY;
    sw_queue_add(w->queue, "a");
    advance(w, 5);
    assert_memory_equal(w->calls, "a a ", 4);
    end(w);
}

/* 100 at once, then ten a second; wishes are not delayed by that. */
TEST(paces_retries_of_many_keys_and_nothing_else)
{
    struct worker *w = begin();
    char key[16];

    w->result = SW_RETRY;
    for (int i = 0; i < 300; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        sw_queue_add(w->queue, key);
    }
    advance(w, 0);
    assert_int_equal(w->call_count, 300);
    w->result = SW_DONE;
    advance(w, 100);
    assert_in_range(w->call_count, 395, 405);
    advance(w, 5000);
    assert_in_range(w->call_count, 440, 460);
    sw_queue_add(w->queue, "fresh");
    advance(w, 0);
    assert_string_equal(w->calls + strlen(w->calls) - 6, "fresh ");
    advance(w, 60000);
    assert_int_equal(w->call_count, 601);
    end(w);
}

static const struct sw_lease_options lease = {.namespace_ = "n", .name = "l", .identity = "i"};

TEST(drops_what_a_follower_is_given)
{
    struct worker *w = calloc(1, sizeof(*w));
    struct sw_core_options options = {.username = "me", .lease = &lease};

    begin_with(w, &options);
    sw_queue_add(w->queue, "a");
    sw_queue_add_after(w->queue, "b", 10);
    advance(w, 1000);
    expect(w, "");
    end(w);
}

TEST(works_on_followers_if_asked_to)
{
    struct worker *w = calloc(1, sizeof(*w));
    struct sw_core_options options = {.username = "me", .lease = &lease};

    w->also_on_followers = true;
    begin_with(w, &options);
    sw_queue_add(w->queue, "a");
    advance(w, 0);
    expect(w, "a ");
    end(w);
}

TEST(is_freed_with_keys_in_every_state)
{
    struct worker *w = begin();

    w->result = SW_LATER;
    sw_queue_add(w->queue, "runs");
    advance(w, 0);
    sw_queue_add(w->queue, "runs");
    sw_queue_add(w->queue, "waits");
    sw_queue_add_after(w->queue, "sleeps", 1000);
    end(w);
}

TEST(shows_itself_in_metrics)
{
    struct worker *w = begin();
    struct sw_buf out;

    sw_queue_add(w->queue, "a");
    advance(w, 0);
    w->result = SW_LATER;
    sw_queue_add(w->queue, "b");
    advance(w, 0);
    sw_queue_add(w->queue, "c");
    sw_buf_init(&out, SIZE_MAX);
    sw_metrics_write(w->f.metrics, SW_METRICS_TEXT, &out);
    assert_non_null(strstr(out.bytes, "workqueue_depth{name=\"test\",controller=\"one\"} 1\n"));
    assert_non_null(
        strstr(out.bytes, "workqueue_adds_total{name=\"test\",controller=\"one\"} 3\n"));
    assert_non_null(
        strstr(out.bytes,
               "controller_runtime_reconcile_total{controller=\"test\",result=\"success\"} 1\n"));
    assert_non_null(
        strstr(out.bytes,
               "controller_runtime_reconcile_total{controller=\"test\",result=\"requeue\"} 0\n"));
    assert_non_null(strstr(
        out.bytes, "controller_runtime_reconcile_time_seconds_count{controller=\"test\"} 1\n"));
    assert_non_null(strstr(out.bytes, "controller_runtime_reconcile_time_seconds_bucket{"
                                      "controller=\"test\",le=\"0.005\"} 1\n"));
    assert_non_null(strstr(out.bytes, "workqueue_work_duration_seconds_bucket{name=\"test\","
                                      "controller=\"one\",le=\"1000\"} 1\n"));
    assert_non_null(
        strstr(out.bytes, "controller_runtime_active_workers{controller=\"test\"} 1\n"));
    sw_buf_done(&out);
    end(w);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("queue", calls_once_for_a_key_that_waits_already),
        CASE("queue", calls_again_for_a_key_that_was_added_while_it_ran),
        CASE("queue", takes_a_run_that_finishes_before_its_call_has_returned),
        CASE("queue", calls_again_after_the_time_that_a_run_asked_for),
        CASE("queue", lets_the_earliest_of_several_wishes_count),
        CASE("queue", forgets_what_was_removed),
        CASE("queue", doubles_the_time_between_failures_up_to_five_minutes),
        CASE("queue", forgets_failures_after_a_success),
        CASE("queue", paces_retries_of_many_keys_and_nothing_else),
        CASE("queue", drops_what_a_follower_is_given),
        CASE("queue", works_on_followers_if_asked_to),
        CASE("queue", is_freed_with_keys_in_every_state),
        CASE("queue", shows_itself_in_metrics),
    };
    return RUN(tests);
}
