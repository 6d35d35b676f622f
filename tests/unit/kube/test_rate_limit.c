/* SPDX-License-Identifier: Apache-2.0 */
/* The token bucket: who waits how long, and another rate in the middle. */
#include "kube/rate_limit.h"

#include "base/util.h"

#include "../test.h"

struct waiter {
    struct sw_rate_waiter base;
    struct sw_loop *loop;
    uint64_t got_ms; /* 0: waits */
};

static void got(struct sw_rate_waiter *base)
{
    struct waiter *waiter = container_of(base, struct waiter, base);

    waiter->got_ms = sw_now_ms(waiter->loop);
}

struct scene {
    struct sw_loop *loop;
    uint64_t begun_ms;
    struct sw_rate_limit limit;
    struct waiter waiters[8];
};

static void scene_init(struct scene *s, double per_second, unsigned burst)
{
    *s = (struct scene){.loop = sw_loop_virtual_new(0, 1)};
    s->begun_ms = sw_now_ms(s->loop);
    sw_rate_limit_init(&s->limit, s->loop, per_second, burst);
    for (size_t i = 0; i < SW_ARRAY_SIZE(s->waiters); i++) {
        s->waiters[i].loop = s->loop;
        sw_rate_waiter_init(&s->waiters[i].base, got);
    }
}

static void scene_done(struct scene *s)
{
    for (size_t i = 0; i < SW_ARRAY_SIZE(s->waiters); i++)
        sw_rate_limit_forget(&s->limit, &s->waiters[i].base);
    sw_rate_limit_done(&s->limit);
    assert_int_equal(sw_loop_close(s->loop), 0);
}

static bool take(struct scene *s, size_t i)
{
    bool bites_first;

    return sw_rate_limit_take(&s->limit, &s->waiters[i].base, &bites_first);
}

/* After how many milliseconds from the beginning. */
static void expect_at(struct scene *s, size_t i, uint64_t ms)
{
    assert_int_equal(s->waiters[i].got_ms, s->begun_ms + ms);
}

TEST(serves_in_the_order_of_asking)
{
    struct scene s;

    scene_init(&s, 10, 2);
    assert_true(take(&s, 0));
    assert_true(take(&s, 1));
    for (size_t i = 2; i < 5; i++)
        assert_false(take(&s, i));
    sw_loop_virtual_advance(s.loop, 1000);
    for (size_t i = 2; i < 5; i++)
        expect_at(&s, i, (i - 1) * 100);
    scene_done(&s);
}

TEST(gives_those_who_wait_the_new_rate)
{
    struct scene s;

    scene_init(&s, 1, 1);
    assert_true(take(&s, 0));
    for (size_t i = 1; i < 4; i++)
        assert_false(take(&s, i));
    sw_loop_virtual_advance(s.loop, 500); /* half a token is there */
    sw_rate_limit_set(&s.limit, 10, 1);
    sw_loop_virtual_advance(s.loop, 5000);
    expect_at(&s, 1, 550);
    expect_at(&s, 2, 650);
    expect_at(&s, 3, 750);
    scene_done(&s);
}

TEST(slows_down_those_who_wait)
{
    struct scene s;

    scene_init(&s, 10, 1);
    assert_true(take(&s, 0));
    assert_false(take(&s, 1));
    sw_rate_limit_set(&s.limit, 1, 1);
    sw_loop_virtual_advance(s.loop, 5000);
    expect_at(&s, 1, 1000);
    scene_done(&s);
}

TEST(holds_no_more_than_the_new_burst)
{
    struct scene s;

    scene_init(&s, 1, 5);
    sw_rate_limit_set(&s.limit, 1, 2);
    assert_true(take(&s, 0));
    assert_true(take(&s, 1));
    assert_false(take(&s, 2));
    sw_rate_limit_set(&s.limit, 1, 3);
    sw_loop_virtual_advance(s.loop, 4000); /* one for who waits, three more */
    expect_at(&s, 2, 1000);
    for (size_t i = 3; i < 6; i++)
        assert_true(take(&s, i));
    assert_false(take(&s, 6));
    scene_done(&s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("rate limit", serves_in_the_order_of_asking),
        CASE("rate limit", gives_those_who_wait_the_new_rate),
        CASE("rate limit", slows_down_those_who_wait),
        CASE("rate limit", holds_no_more_than_the_new_burst),
    };
    return RUN(tests);
}
