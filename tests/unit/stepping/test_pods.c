/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How new Pods are judged, at one look and over several. Times are seconds; Pods start at 1 000.
 */
#include "../test.h"
#include "pods.h"

#define START 1000

struct pod {
    struct sw_pod pod;
    struct sw_condition ready;
    struct sw_container_status containers[2], init;
};

struct stage {
    struct sw_arena *arena;
    struct step_pods_memory *memory;
    struct pod pods[4];
    size_t count;
    int32_t max_restarts;
    uint64_t max_unready_ms;
    struct step_check checks[STEP_POD_CHECKS];
};

static int setup(void **state)
{
    struct stage *s = calloc(1, sizeof(*s));

    s->arena = sw_arena_new(0);
    s->memory = step_pods_memory_new();
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    struct stage *s = *state;

    step_pods_memory_free(s->memory);
    sw_arena_free(s->arena);
    free(s);
    return 0;
}

static void turn(struct pod *pod, bool is_ready, int64_t at_s)
{
    pod->ready.status = is_ready ? "True" : "False";
    pod->ready.last_transition_us = at_s * 1000000;
}

/* Ready since five seconds after its start. */
static struct pod *add(struct stage *s, const char *name)
{
    struct pod *pod = &s->pods[s->count++];

    *pod = (struct pod){
        .ready = {.type = "Ready"},
        .containers = {{.name = "app", .is_ready = true, .waiting_reason = ""},
                       {.name = "side", .is_ready = true, .waiting_reason = ""}},
        .init = {.name = "init", .waiting_reason = ""},
    };
    pod->pod = (struct sw_pod){
        .meta = {.namespace_ = "n", .name = name, .uid = name, .owner_uid = "rs"},
        .phase = "Running",
        .started_us = (int64_t)START * 1000000,
        .conditions = {&pod->ready, 1},
        .containers = {pod->containers, 2},
        .init_containers = {&pod->init, 1},
    };
    turn(pod, true, START + 5);
    return pod;
}

static void look_of(struct stage *s, int64_t at_s, const char *owner_uid)
{
    const struct sw_object *objects[4];

    for (size_t i = 0; i < s->count; i++)
        objects[i] = &s->pods[i].pod.meta;
    step_pods_judge(s->memory, objects, s->count, owner_uid, s->max_restarts, s->max_unready_ms,
                    at_s * 1000000, s->arena, s->checks);
    assert_int_equal(s->checks[0].at_us, at_s * 1000000);
    for (int i = 0; i < STEP_POD_CHECKS; i++)
        assert_int_equal(s->checks[i].has_passed, s->checks[i].message[0] == 0);
}

static void look(struct stage *s, int64_t at_s)
{
    look_of(s, at_s, "");
}

static void assert_unready(struct stage *s, int64_t at_s, const char *want)
{
    look(s, at_s);
    assert_string_equal(s->checks[1].value, want);
}

TEST(passes_pods_that_do_well)
{
    struct stage *s = *state;

    add(s, "a");
    add(s, "b");
    look(s, 1100);
    assert_true(s->checks[0].has_passed);
    assert_string_equal(s->checks[0].name, "pods/maxRestarts");
    assert_string_equal(s->checks[0].value, "0");
    assert_string_equal(s->checks[0].range, "<= 0");
    assert_true(s->checks[1].has_passed);
    assert_string_equal(s->checks[1].name, "pods/maxUnready");
    assert_string_equal(s->checks[1].value, "0s");
    assert_string_equal(s->checks[1].range, "<= 0s");
}

TEST(counts_the_restarts_of_all_containers_of_all_pods)
{
    struct stage *s = *state;
    struct pod *a = add(s, "a");
    struct pod *b = add(s, "b");

    a->containers[0].restart_count = 1;
    b->containers[1].restart_count = 3;
    b->containers[1].waiting_reason = "CrashLoopBackOff";
    b->init.restart_count = 2;
    s->max_restarts = 6;
    look(s, 1100);
    assert_true(s->checks[0].has_passed);
    assert_string_equal(s->checks[0].value, "6");
    s->max_restarts = 5;
    look(s, 1100);
    assert_false(s->checks[0].has_passed);
    assert_string_equal(s->checks[0].range, "<= 5");
    assert_string_equal(
        s->checks[0].message,
        "new Pods were restarted 6 times, container side of b 3 times: CrashLoopBackOff");
}

TEST(counts_what_is_unready_now)
{
    struct stage *s = *state;

    turn(add(s, "a"), false, 1040);
    turn(add(s, "b"), false, 1050);
    s->max_unready_ms = 60000;
    assert_unready(s, 1100, "60s");
    assert_true(s->checks[1].has_passed);
    assert_unready(s, 1101, "61s");
    assert_false(s->checks[1].has_passed);
    assert_string_equal(s->checks[1].range, "<= 60s");
    assert_string_equal(s->checks[1].message,
                        "the new Pod a was unready for 61s since it was first ready");
}

TEST(does_not_count_a_pod_that_was_never_ready)
{
    struct stage *s = *state;
    struct pod *a = add(s, "a");
    struct pod *b = add(s, "b");

    turn(a, false, START + 1);
    b->pod.conditions.count = 0;
    assert_unready(s, 1100, "0s");
    assert_true(s->checks[1].has_passed);
}

TEST(sees_that_a_pod_which_never_was_seen_ready_had_been)
{
    struct stage *s = *state;
    struct pod *a = add(s, "a");

    turn(a, false, START + 1);
    assert_unready(s, 1010, "0s");
    turn(a, false, START + 2); /* ready and unready again within a second */
    assert_unready(s, 1012, "10s");
}

TEST(counts_a_pod_that_became_unready_for_the_clocks_of_two_machines)
{
    struct stage *s = *state;
    struct pod *a = add(s, "a");

    assert_unready(s, 1100, "0s");
    turn(a, false, 1105); /* its node is ahead of us */
    assert_unready(s, 1101, "1s");
    assert_false(s->checks[1].has_passed);
}

TEST(remembers_how_long_a_pod_was_unready)
{
    struct stage *s = *state;
    struct pod *a = add(s, "a");

    assert_unready(s, 1100, "0s");
    turn(a, false, 1110);
    assert_unready(s, 1120, "10s");
    turn(a, true, 1125);
    assert_unready(s, 1160, "15s");
    assert_unready(s, 1170, "15s");
    turn(a, false, 1180);
    assert_unready(s, 1190, "25s");
}

TEST(finds_out_that_a_pod_was_unready_between_two_looks)
{
    struct stage *s = *state;
    struct pod *a = add(s, "a");

    assert_unready(s, 1100, "0s");
    turn(a, true, 1130);
    assert_unready(s, 1160, "1s");
    assert_false(s->checks[1].has_passed);
    turn(a, true, 1190);
    assert_unready(s, 1220, "2s");
    turn(a, false, 1225);
    assert_unready(s, 1226, "3s");
    turn(a, false, 1230); /* ready in between */
    assert_unready(s, 1234, "7s");
}

TEST(forgets_pods_that_are_gone)
{
    struct stage *s = *state;
    struct pod *a = add(s, "a");
    struct pod *b = add(s, "b");

    look(s, 1100);
    turn(a, true, 1130);
    assert_unready(s, 1160, "1s");
    a->pod.meta.uid = "another";
    turn(b, true, 1170);
    s->max_unready_ms = 1000;
    assert_unready(s, 1180, "1s");
    assert_true(s->checks[1].has_passed);
}

TEST(passes_over_pods_that_are_not_the_targets)
{
    struct stage *s = *state;

    for (int i = 0; i < 4; i++) {
        struct pod *pod = add(s, i == 0 ? "a" : i == 1 ? "b" : i == 2 ? "c" : "d");
        turn(pod, false, 1050);
        pod->containers[0].restart_count = 1;
    }
    s->pods[0].pod.meta.deleted_us = 1;
    s->pods[1].pod.phase = "Failed";
    s->pods[2].pod.phase = "Succeeded";
    s->pods[3].pod.meta.owner_uid = "other";
    look_of(s, 1100, "other");
    assert_string_equal(s->checks[0].value, "1");
    assert_string_equal(s->checks[1].value, "50s");
    look_of(s, 1100, "rs");
    assert_string_equal(s->checks[0].message, "there is no new Pod");
    assert_string_equal(s->checks[1].message, "there is no new Pod");
    assert_string_equal(s->checks[0].value, "");
}

TEST(fails_both_checks_where_pods_cannot_be_seen)
{
    struct stage *s = *state;

    step_pods_unseen(1, 1500, 7, "why", s->arena, s->checks);
    for (int i = 0; i < STEP_POD_CHECKS; i++) {
        assert_false(s->checks[i].has_passed);
        assert_string_equal(s->checks[i].message, "why");
    }
    assert_string_equal(s->checks[0].range, "<= 1");
    assert_string_equal(s->checks[1].range, "<= 1.5s");
}

#define ON_STAGE(does_this)                                                         \
    {                                                                               \
        .name = "pods: " #does_this, .test_func = (does_this), .setup_func = setup, \
        .teardown_func = teardown                                                   \
    }

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ON_STAGE(passes_pods_that_do_well),
        ON_STAGE(counts_the_restarts_of_all_containers_of_all_pods),
        ON_STAGE(counts_what_is_unready_now),
        ON_STAGE(does_not_count_a_pod_that_was_never_ready),
        ON_STAGE(sees_that_a_pod_which_never_was_seen_ready_had_been),
        ON_STAGE(counts_a_pod_that_became_unready_for_the_clocks_of_two_machines),
        ON_STAGE(remembers_how_long_a_pod_was_unready),
        ON_STAGE(finds_out_that_a_pod_was_unready_between_two_looks),
        ON_STAGE(forgets_pods_that_are_gone),
        ON_STAGE(passes_over_pods_that_are_not_the_targets),
        ON_STAGE(fails_both_checks_where_pods_cannot_be_seen),
    };
    return RUN(tests);
}
