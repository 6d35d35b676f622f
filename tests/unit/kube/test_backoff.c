/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Back-off, the gate and the rate limit: everything that makes us wait.
 */
#include "kube/backoff.h"

#include "base/loop.h"
#include "base/util.h"
#include "kube/gate.h"
#include "kube/rate_limit.h"

#include "test.h"

static struct sw_loop *loop_new(void)
{
    return sw_loop_virtual_new(0, 1);
}

/* ---- back-off ---- */

TEST(waits_double_up_to_the_limit_with_full_jitter)
{
    struct sw_loop *loop = loop_new();
    static const uint64_t want[] = {800, 1600, 3200, 6400, 12800, 25600, 30000, 30000};
    bool has_low = false;
    bool has_high = false;
    for (int round = 0; round < 50; round++) {
        struct sw_backoff backoff = {.first_ms = 800, .limit_ms = 30000};
        for (size_t i = 0; i < SW_ARRAY_SIZE(want); i++) {
            uint64_t wait = sw_backoff_fail(&backoff, loop, 0);
            assert_in_range(wait, want[i], 2 * want[i]);
            has_low = has_low || wait < want[i] * 5 / 4;
            has_high = has_high || wait > want[i] * 7 / 4;
        }
    }
    assert_true(has_low && has_high);
    assert_int_equal(sw_loop_close(loop), 0);
}

TEST(what_the_server_asks_for_counts_where_it_is_longer)
{
    struct sw_loop *loop = loop_new();
    struct sw_backoff backoff = {.first_ms = 800, .limit_ms = 30000};
    assert_in_range(sw_backoff_fail(&backoff, loop, 20000), 20000, 20800);
    assert_in_range(sw_backoff_fail(&backoff, loop, 10), 1600, 3200);
    assert_int_equal(sw_loop_close(loop), 0);
}

TEST(only_two_minutes_of_health_forget_failures)
{
    struct sw_loop *loop = loop_new();
    struct sw_backoff backoff = {.first_ms = 800, .limit_ms = 30000};
    sw_backoff_fail(&backoff, loop, 0);
    sw_backoff_fail(&backoff, loop, 0);
    sw_loop_virtual_advance(loop, 600000); /* long, but never well */
    assert_in_range(sw_backoff_fail(&backoff, loop, 0), 3200, 6400);
    sw_backoff_succeed(&backoff, loop);
    sw_loop_virtual_advance(loop, 119999);
    assert_in_range(sw_backoff_fail(&backoff, loop, 0), 6400, 12800);
    sw_backoff_succeed(&backoff, loop);
    sw_loop_virtual_advance(loop, 60000);
    sw_backoff_succeed(&backoff, loop); /* does not begin anew */
    sw_loop_virtual_advance(loop, 60000);
    assert_in_range(sw_backoff_fail(&backoff, loop, 0), 800, 1600);
    assert_int_equal(sw_loop_close(loop), 0);
}

/* ---- gate ---- */

struct visitor {
    struct sw_gate_pass pass;
    unsigned passes;
};

static void on_pass(struct sw_gate_pass *pass)
{
    container_of(pass, struct visitor, pass)->passes++;
}

struct gate_case {
    struct sw_loop *loop;
    struct sw_gate *gate;
    struct visitor at[5];
};

static void gate_init(struct gate_case *c)
{
    memset(c, 0, sizeof(*c));
    c->loop = loop_new();
    c->gate = sw_gate_new(c->loop, 800, 30000);
    for (size_t i = 0; i < SW_ARRAY_SIZE(c->at); i++) {
        sw_gate_pass_init(&c->at[i].pass, on_pass);
    }
}

static void gate_done(struct gate_case *c)
{
    for (size_t i = 0; i < SW_ARRAY_SIZE(c->at); i++) {
        sw_gate_forget(c->gate, &c->at[i].pass);
    }
    sw_gate_free(c->gate);
    assert_int_equal(sw_loop_close(c->loop), 0);
}

static unsigned passes(const struct gate_case *c)
{
    unsigned sum = 0;
    for (size_t i = 0; i < SW_ARRAY_SIZE(c->at); i++) {
        sum += c->at[i].passes;
    }
    return sum;
}

/* All find the server dead at once, and come back. */
static void all_fail(struct gate_case *c)
{
    for (size_t i = 0; i < SW_ARRAY_SIZE(c->at); i++) {
        assert_true(sw_gate_enter(c->gate, &c->at[i].pass));
    }
    for (size_t i = 0; i < SW_ARRAY_SIZE(c->at); i++) {
        sw_gate_fail(c->gate, &c->at[i].pass, 0);
        assert_false(sw_gate_enter(c->gate, &c->at[i].pass));
    }
}

TEST(a_dead_server_is_probed_by_one)
{
    struct gate_case c;
    gate_init(&c);
    all_fail(&c);
    sw_loop_virtual_advance(c.loop, 799);
    assert_int_equal(passes(&c), 0);
    sw_loop_virtual_advance(c.loop, 801);
    assert_int_equal(passes(&c), 1); /* one failure has been counted, not five */
    assert_int_equal(c.at[0].passes, 1);
    sw_loop_virtual_advance(c.loop, 600000);
    assert_int_equal(passes(&c), 1);

    sw_gate_fail(c.gate, &c.at[0].pass, 0);
    assert_false(sw_gate_enter(c.gate, &c.at[0].pass));
    sw_loop_virtual_advance(c.loop, 1599);
    assert_int_equal(passes(&c), 1);
    sw_loop_virtual_advance(c.loop, 1601);
    assert_int_equal(passes(&c), 2);
    assert_int_equal(c.at[1].passes, 1); /* the next in line */

    sw_gate_succeed(c.gate);
    sw_loop_virtual_advance(c.loop, 0);
    assert_int_equal(passes(&c), 6);
    assert_true(sw_gate_enter(c.gate, &c.at[3].pass));
    gate_done(&c);
}

TEST(a_probe_that_gives_up_makes_way)
{
    struct gate_case c;
    gate_init(&c);
    all_fail(&c);
    sw_loop_virtual_advance(c.loop, 1600);
    assert_int_equal(c.at[0].passes, 1);
    sw_gate_forget(c.gate, &c.at[0].pass);
    sw_loop_virtual_advance(c.loop, 0);
    assert_int_equal(c.at[1].passes, 1);
    assert_int_equal(passes(&c), 2);
    gate_done(&c);
}

TEST(who_comes_after_the_back_off_is_the_probe)
{
    struct gate_case c;
    gate_init(&c);
    sw_gate_fail(c.gate, &c.at[0].pass, 0);
    sw_loop_virtual_advance(c.loop, 1600);
    assert_true(sw_gate_enter(c.gate, &c.at[0].pass));
    assert_false(sw_gate_enter(c.gate, &c.at[1].pass));
    sw_gate_succeed(c.gate);
    sw_loop_virtual_advance(c.loop, 0);
    assert_int_equal(c.at[1].passes, 1);
    gate_done(&c);
}

TEST(somebody_elses_success_opens_the_gate)
{
    struct gate_case c;
    gate_init(&c);
    all_fail(&c);
    sw_gate_succeed(c.gate);
    sw_loop_virtual_advance(c.loop, 0);
    assert_int_equal(passes(&c), 5);
    gate_done(&c);
}

static struct gate_case *freed_case;

static void on_pass_free(struct sw_gate_pass *pass)
{
    (void)pass;
    for (size_t i = 0; i < SW_ARRAY_SIZE(freed_case->at); i++) {
        sw_gate_forget(freed_case->gate, &freed_case->at[i].pass);
    }
    freed_case->gate = sw_gate_free(freed_case->gate);
}

TEST(the_gate_may_be_freed_by_who_passes)
{
    struct gate_case c;
    gate_init(&c);
    all_fail(&c);
    freed_case = &c;
    c.at[0].pass.fn = on_pass_free;
    sw_loop_virtual_advance(c.loop, 1600);
    assert_null(c.gate);
    assert_int_equal(passes(&c), 0);
    assert_int_equal(sw_loop_close(c.loop), 0);
}

/* ---- rate limit ---- */

struct rate_case {
    struct sw_loop *loop;
    struct sw_rate_limit limit;
    struct sw_rate_waiter at[40];
    unsigned order[40];
    unsigned count;
};

static struct rate_case *rate;

static void on_token(struct sw_rate_waiter *waiter)
{
    rate->order[rate->count++] = (unsigned)(waiter - rate->at);
}

static void rate_init(struct rate_case *c, double per_second, unsigned burst)
{
    memset(c, 0, sizeof(*c));
    rate = c;
    c->loop = loop_new();
    sw_rate_limit_init(&c->limit, c->loop, per_second, burst);
    for (size_t i = 0; i < SW_ARRAY_SIZE(c->at); i++) {
        sw_rate_waiter_init(&c->at[i], on_token);
    }
}

TEST(a_burst_passes_and_the_rest_waits_in_order)
{
    struct rate_case c;
    rate_init(&c, 50, 10);
    unsigned first = 0;
    for (size_t i = 0; i < 40; i++) {
        bool bites;
        bool is_free = sw_rate_limit_take(&c.limit, &c.at[i], &bites);
        assert_int_equal(is_free, i < 10);
        first += bites;
        assert_int_equal(bites, i == 10);
    }
    assert_int_equal(first, 1);
    sw_loop_virtual_advance(c.loop, 19);
    assert_int_equal(c.count, 0);
    sw_loop_virtual_advance(c.loop, 301);
    assert_in_range(c.count, 15, 16);
    sw_rate_limit_forget(&c.limit, &c.at[38]);
    sw_loop_virtual_advance(c.loop, 1000);
    assert_int_equal(c.count, 29);
    for (unsigned i = 0; i < 28; i++) {
        assert_int_equal(c.order[i], i + 10);
    }
    assert_int_equal(c.order[28], 39);
    sw_rate_limit_done(&c.limit);
    assert_int_equal(sw_loop_close(c.loop), 0);
}

TEST(an_episode_ends_when_the_bucket_is_full)
{
    struct rate_case c;
    bool bites;
    rate_init(&c, 50, 2);
    assert_true(sw_rate_limit_take(&c.limit, &c.at[0], &bites));
    assert_true(sw_rate_limit_take(&c.limit, &c.at[1], &bites));
    assert_false(sw_rate_limit_take(&c.limit, &c.at[2], &bites));
    assert_true(bites);
    sw_loop_virtual_advance(c.loop, 40);
    assert_true(sw_rate_limit_take(&c.limit, &c.at[3], &bites));
    assert_false(sw_rate_limit_take(&c.limit, &c.at[4], &bites));
    assert_false(bites); /* still the same */
    sw_loop_virtual_advance(c.loop, 1000);
    assert_true(sw_rate_limit_take(&c.limit, &c.at[5], &bites));
    assert_true(sw_rate_limit_take(&c.limit, &c.at[6], &bites));
    assert_false(sw_rate_limit_take(&c.limit, &c.at[7], &bites));
    assert_true(bites);
    sw_rate_limit_forget(&c.limit, &c.at[7]);
    sw_rate_limit_done(&c.limit);
    assert_int_equal(sw_loop_close(c.loop), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("backoff", waits_double_up_to_the_limit_with_full_jitter),
        CASE("backoff", what_the_server_asks_for_counts_where_it_is_longer),
        CASE("backoff", only_two_minutes_of_health_forget_failures),
        CASE("gate", a_dead_server_is_probed_by_one),
        CASE("gate", a_probe_that_gives_up_makes_way),
        CASE("gate", who_comes_after_the_back_off_is_the_probe),
        CASE("gate", somebody_elses_success_opens_the_gate),
        CASE("gate", the_gate_may_be_freed_by_who_passes),
        CASE("rate_limit", a_burst_passes_and_the_rest_waits_in_order),
        CASE("rate_limit", an_episode_ends_when_the_bucket_is_full),
    };
    return RUN(tests);
}
