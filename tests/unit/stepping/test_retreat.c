/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The retreat in place against a model of the paused Deployment controller: every row of the table
 * that was tried on a real one, and every start of two to four ReplicaSets up to a few replicas.
 */
#include "test.h"

#include "retreat.h"

struct trial {
    struct step_size sizes[4]; /* the oldest first */
    size_t count;
    int32_t replicas, surge, unavailable;
    unsigned failing; /* bits: those whose Pods are never available */
    int32_t lowest;   /* available Pods */
    char path[256];
};

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* The controller by itself, written down a second time and more plainly than what it tests. */
static void control(struct trial *t)
{
    for (int looks = 0; looks < 50; looks++) {
        int32_t sum = 0;
        size_t active = 0, only = 0, large = 0;
        bool changed = false;
        for (size_t i = 0; i < t->count; i++) {
            sum += t->sizes[i].wanted;
            active += t->sizes[i].wanted > 0;
            if (t->sizes[i].wanted > 0)
                only = i;
        }
        int32_t all = t->replicas + t->surge;
        for (size_t i = 1; i < t->count; i++)
            if (t->sizes[i].wanted > t->sizes[large].wanted ||
                (sum < all && t->sizes[i].wanted == t->sizes[large].wanted))
                large = i;
        size_t is_template = 0;
        while (!t->sizes[is_template].is_template)
            is_template++;
        if (active == 0)
            only = is_template;
        struct step_size before[4];
        memcpy(before, t->sizes, sizeof before);
        if (active <= 1)
            t->sizes[only].wanted = t->replicas;
        else if (t->sizes[is_template].available == t->replicas &&
                 t->sizes[is_template].wanted == t->replicas)
            for (size_t i = 0; i < t->count; i++)
                t->sizes[i].wanted = i == is_template ? t->replicas : 0;
        else
            t->sizes[large].wanted +=
                all - sum > -t->sizes[large].wanted ? all - sum : -t->sizes[large].wanted;
        for (size_t i = 0; i < t->count; i++) {
            changed = changed || before[i].wanted != t->sizes[i].wanted;
            t->sizes[i].available = least(t->sizes[i].available, t->sizes[i].wanted);
        }
        if (!changed)
            return;
    }
    fail_msg("the controller of the model does not come to rest");
}

static int32_t available(const struct trial *t)
{
    int32_t sum = 0;

    for (size_t i = 0; i < t->count; i++)
        sum += t->sizes[i].available;
    return sum;
}

/* All Pods are available that ever will be. */
static void fill(struct trial *t)
{
    for (size_t i = 0; i < t->count; i++)
        t->sizes[i].available = t->failing & 1U << i ? 0 : t->sizes[i].wanted;
}

static void note(struct trial *t, bool newest_first)
{
    size_t len = strlen(t->path);

    for (size_t i = 0; i < t->count; i++) {
        size_t which = newest_first ? t->count - 1 - i : i;
        len += (size_t)snprintf(t->path + len, sizeof t->path - len, "%s%d",
                                i     ? ","
                                : len ? " "
                                      : "",
                                t->sizes[which].wanted);
    }
}

/* Bite after bite to the end, with all Pods available after each; the number of bites, -1 where it
 * says that it is impossible. */
static int go(struct trial *t)
{
    t->lowest = available(t);
    for (int bites = 0; bites < 100; bites++) {
        struct step_bite bite;
        int32_t predicted[4];
        enum step_retreat answer =
            step_retreat(t->sizes, t->count, t->replicas, t->surge, t->unavailable, &bite);
        if (answer == STEP_RETREAT_DONE)
            return bites;
        if (answer == STEP_RETREAT_IMPOSSIBLE)
            return -1;
        if (answer != STEP_RETREAT_BITE)
            fail_msg("waits, with all Pods available, after %s", t->path);
        step_retreat_predict(t->sizes, t->count, t->replicas, t->surge, &bite, predicted);
        t->sizes[bite.which].wanted = bite.size;
        t->sizes[bite.which].available = least(t->sizes[bite.which].available, bite.size);
        control(t);
        t->lowest = least(t->lowest, available(t));
        for (size_t i = 0; i < t->count; i++) {
            if (predicted[i] != t->sizes[i].wanted)
                fail_msg("predicted %d for %zu, came %d, after %s", predicted[i], i,
                         t->sizes[i].wanted, t->path);
        }
        fill(t);
        if (t->count > 1)
            note(t, true);
    }
    fail_msg("never ends: %s", t->path);
    return -1;
}

TEST(does_what_was_tried_on_a_real_controller)
{
    static const struct {
        int32_t replicas, surge, unavailable, sizes[3]; /* the newest first; -1: none */
        const char *path;
        int32_t lowest;
    } rows[] = {
        {4, 1, 0, {1, 4, -1}, "0,4", 4},
        {7, 2, 0, {6, 3, -1}, "4,5 2,7 0,7", 7},
        {10, 3, 2, {11, 2, -1}, "6,7 1,12 0,10", 8},
        {10, 0, 1, {7, 3, -1}, "6,4 5,5 4,6 3,7 2,8 1,9 0,10", 9},
        {10, 1, 0, {8, 3, -1}, "7,4 6,5 4,7 3,8 2,9 1,10 0,10", 9},
        {8, 1, 0, {2, 2, 5}, "1,2,6 0,2,7 0,1,8 0,0,8", 8},
        {8, 2, 1, {3, 3, 4}, "0,3,7 0,0,8", 7},
        {10, 1, 1, {4, 2, 5}, "2,2,7 0,2,9 0,0,10", 9},
        {6, 2, 0, {4, 0, 4}, "2,0,6 0,0,6", 6},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct trial t = {.replicas = rows[i].replicas,
                          .surge = rows[i].surge,
                          .unavailable = rows[i].unavailable,
                          .count = rows[i].sizes[2] < 0 ? 2 : 3};
        for (size_t j = 0; j < t.count; j++) {
            int32_t size = rows[i].sizes[t.count - 1 - j];
            t.sizes[j] = (struct step_size){size, size, j == 0, j == t.count - 1};
        }
        assert_true(go(&t) > 0);
        assert_string_equal(t.path, rows[i].path);
        assert_int_equal(t.lowest, rows[i].lowest);
    }
}

struct tally {
    int starts, longest, below_one, worst, impossible;
    bool has_failing; /* of each start also with every choice of those that fail */
};

static void try_start(struct trial start, struct tally *tally)
{
    struct trial t = start;

    fill(&t);
    int32_t floor = least(t.replicas - t.unavailable, available(&t));
    int bites = go(&t);
    tally->starts++;
    tally->impossible += bites < 0;
    tally->longest = bites > tally->longest ? bites : tally->longest;
    int32_t short_of = floor - t.lowest;
    tally->below_one += short_of == 1;
    tally->worst = short_of > tally->worst ? short_of : tally->worst;
}

/* Every division of what is left over the ReplicaSets from `i` on, every target and template. */
static void divide(struct trial *t, size_t i, int32_t left, struct tally *tally)
{
    if (i + 1 < t->count) {
        for (int32_t size = 0; size <= left; size++) {
            t->sizes[i] = (struct step_size){size, size, false, false};
            divide(t, i + 1, left - size, tally);
        }
        return;
    }
    t->sizes[i] = (struct step_size){left, left, false, false};
    for (size_t target = 0; target < t->count; target++)
        for (size_t new = 0; new < t->count; new ++) {
            struct trial start = *t;
            if (new == target || t->sizes[target].wanted < 1 ||
                t->sizes[target].wanted == t->replicas + t->surge ||
                t->sizes[new].wanted == t->replicas)
                continue;
            start.sizes[target].is_target = start.sizes[new].is_template = true;
            for (unsigned failing = 0; failing < (tally->has_failing ? 1U << t->count : 1U);
                 failing++)
                if (!(failing & 1U << target)) {
                    start.failing = failing;
                    try_start(start, tally);
                }
        }
}

static void try_all(struct tally *tally, int32_t most, int32_t most_of_four, int32_t most_below)
{
    for (size_t count = 2; count <= 4; count++)
        for (int32_t replicas = 1; replicas <= (count < 4 ? most : most_of_four); replicas++)
            for (int32_t surge = 0; surge <= 3; surge++)
                for (int32_t unavailable = 0; unavailable <= 3 && unavailable < replicas;
                     unavailable++) {
                    struct trial t = {.replicas = replicas,
                                      .surge = surge,
                                      .unavailable = unavailable,
                                      .count = count};
                    if (surge + unavailable > 0)
                        divide(&t, 0, replicas + surge, tally);
                }
    print_message("# %d starts, %d bites at most, %d with one Pod below the floor\n", tally->starts,
                  tally->longest, tally->below_one);
    assert_true(tally->starts > 40000);
    assert_int_equal(tally->impossible, 0);
    assert_true(tally->worst <= most_below);
}

TEST(ends_from_every_start_and_costs_one_pod_at_most)
{
    struct tally tally = {0};

    try_all(&tally, 10, 6, 1);
}

/* Where the refill goes to one that fails, and nothing else leads back, it is two: in 33 of them.
 */
TEST(ends_and_costs_two_pods_at_most_while_pods_fail)
{
    struct tally tally = {.has_failing = true};

    try_all(&tally, 8, 4, 2);
}

/* A bite of 5 from the largest would be the proposal, and leave 8 available of the 10 that must be:
 * the two that fail are no help. */
TEST(counts_on_no_pod_that_fails)
{
    struct step_size sizes[] = {{6, 6, true, false}, {2, 0, false, false}, {7, 7, false, true}};
    struct step_bite bite;
    int32_t after[3];

    assert_int_equal(step_retreat(sizes, 3, 12, 3, 2, &bite), STEP_RETREAT_BITE);
    step_retreat_predict(sizes, 3, 12, 3, &bite, after);
    assert_true(least(after[0], 6) + least(after[2], 7) >= 10);
    sizes[2].available = 2; /* fewer than the floor are available: no more of them go */
    assert_int_equal(step_retreat(sizes, 3, 12, 3, 2, &bite), STEP_RETREAT_BITE);
    step_retreat_predict(sizes, 3, 12, 3, &bite, after);
    assert_true(least(after[0], 6) + least(after[2], 2) >= 8);
}

TEST(waits_for_the_controller_and_for_available_pods)
{
    struct step_size sizes[] = {{3, 3, true, false}, {6, 6, false, true}};
    struct step_bite bite;

    assert_int_equal(step_retreat(sizes, 2, 7, 2, 0, &bite), STEP_RETREAT_BITE);
    sizes[0].available = 2;
    assert_int_equal(step_retreat(sizes, 2, 7, 2, 0, &bite), STEP_RETREAT_WAIT);
    sizes[0].available = 3;
    sizes[1].wanted = 4; /* the controller has not filled up yet */
    assert_int_equal(step_retreat(sizes, 2, 7, 2, 0, &bite), STEP_RETREAT_WAIT);
    sizes[1].wanted = 0; /* it will fill the target alone */
    assert_int_equal(step_retreat(sizes, 2, 7, 2, 0, &bite), STEP_RETREAT_WAIT);
    sizes[0] = (struct step_size){7, 6, true, false};
    assert_int_equal(step_retreat(sizes, 2, 7, 2, 0, &bite), STEP_RETREAT_WAIT);
    sizes[0].available = 7;
    assert_int_equal(step_retreat(sizes, 2, 7, 2, 0, &bite), STEP_RETREAT_DONE);
}

TEST(is_impossible_without_a_pod_and_beside_a_complete_one)
{
    struct step_size none[] = {{0, 0, true, false}, {7, 7, false, true}};
    struct step_size complete[] = {{2, 2, true, false}, {7, 7, false, true}};
    struct step_bite bite;

    assert_int_equal(step_retreat(none, 2, 7, 2, 0, &bite), STEP_RETREAT_IMPOSSIBLE);
    assert_int_equal(step_retreat(complete, 2, 7, 2, 0, &bite), STEP_RETREAT_IMPOSSIBLE);
    complete[1].available = 6; /* as large, but failing: it can be taken from */
    assert_int_equal(step_retreat(complete, 2, 7, 2, 0, &bite), STEP_RETREAT_BITE);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("stepping retreat", does_what_was_tried_on_a_real_controller),
        CASE("stepping retreat", ends_from_every_start_and_costs_one_pod_at_most),
        CASE("stepping retreat", ends_and_costs_two_pods_at_most_while_pods_fail),
        CASE("stepping retreat", counts_on_no_pod_that_fails),
        CASE("stepping retreat", waits_for_the_controller_and_for_available_pods),
        CASE("stepping retreat", is_impossible_without_a_pod_and_beside_a_complete_one),
    };
    return RUN(tests);
}
