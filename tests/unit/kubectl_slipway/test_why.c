/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why one does not roll: each reason from the state that it stands for. And what status shows.
 */
#include "fixture.h"

#include <slipway/json.h>

#include "base/buf.h"
#include "rollout.h"
#include "view.h"
#include "why.h"

static void ask(struct cluster *cluster, const char *name, struct ks_why *why)
{
    const struct ks_world *world = world_of(cluster);
    const struct sw_deployment *d = ks_world_deployment(world, "shop", name);

    assert_non_null(d);
    ks_why(cluster->arena, world, d, NOW_US, why);
}

static void assert_reason(struct cluster *cluster, const char *name, const char *reason,
                          const char *words)
{
    struct ks_why why;
    struct sw_buf text;

    ask(cluster, name, &why);
    sw_buf_init(&text, SIZE_MAX);
    sw_buf_printf(&text, "%s\n", why.headline);
    for (size_t i = 0; why.lines[i]; i++)
        sw_buf_printf(&text, "%s\n", why.lines[i]);
    sw_buf_puts(&text, why.advice);
    if (strcmp(why.reason, reason) != 0 || !strstr(text.bytes, words))
        fail_msg("%s instead of %s; \"%s\" instead of \"%s\"", why.reason, reason, text.bytes,
                 words);
    sw_buf_done(&text);
}

#define ACTIVE_B                                                                        \
    "\"pending\":2,\"activeDeployment\":\"shop/b\",\"activeDeployments\":[\"shop/b\"]," \
    "\"deploymentStates\":[" STATE("a", 2) "," STATE("b", 0) "," STATE("c", 1) "]"
#define DEGRADED(why, text)                                                              \
    "\"conditions\":[{\"type\":\"Degraded\",\"status\":\"True\",\"reason\":\"" why "\"," \
    "\"message\":\"" text "\"}]"

TEST(names_who_has_the_turn_and_who_is_before)
{
    struct cluster *cluster = cluster_new();
    struct ks_why why;

    group(cluster, "g", "", ACTIVE_B);
    waits(cluster, "a", "");
    rolls(cluster, "b");
    waits(cluster, "c", "");
    ask(cluster, "a", &why);
    assert_string_equal(why.reason, "WaitsForTurn");
    assert_string_equal(why.headline, "a waits for its turn in g: position 2 of 2");
    assert_string_equal(why.lines[0], "b has the turn, for 60s: 1 of 2 Pods are new and available");
    assert_string_equal(why.lines[1], "before it in the queue: c");
    assert_null(why.lines[2]);
    assert_int_equal(why.position, 2);
    assert_int_equal(NOW_US - why.since_us, INT64_C(60000000));
    assert_string_equal(why.held_by, "coordination/g");
    assert_reason(cluster, "b", "Rolling", "2 of g wait behind it");
    cluster_free(cluster);
}

TEST(tells_what_stands_in_the_way_of_the_whole_group)
{
    static const struct {
        const char *spec, *status, *reason, *words;
    } cases[] = {
        {"\"suspend\":true", "\"pending\":1", "Suspended", "kubectl slipway resume g -n shop"},
        {"", DEGRADED("RolloutFailed", "b has failed"), "PeerFailed", "b has failed"},
        {"", DEGRADED("PausedByUser", "b is paused"), "PeerPaused", "b is paused"},
        {"", DEGRADED("PeerUnavailable", "x is down"), "PeerUnavailable", "skip-guard=true"},
        {"\"failurePolicy\":\"Skip\"", DEGRADED("RolloutFailed", "b has failed"), "WaitsForTurn",
         "nothing has to be done"},
        {"", DEGRADED("TakeOverFailed", "refused"), "TakeOverFailed", "refused"},
        {"", "\"observedGeneration\":0", "Unseen", "doctor"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cluster *cluster = cluster_new();
        group(cluster, "g", cases[i].spec, cases[i].status);
        waits(cluster, "a", "");
        assert_reason(cluster, "a", cases[i].reason, cases[i].words);
        cluster_free(cluster);
    }
}

TEST(puts_the_wish_of_a_person_first)
{
    struct cluster *cluster = cluster_new();

    group(cluster, "g", "\"suspend\":true", "");
    waits(cluster, "a", ",\"slipway.dev/hold\":\"the database\"");
    deployment(cluster, "b", MARK, true, 0, 2, "DeploymentPaused");
    assert_reason(cluster, "a", "HeldByPerson", "a is held by a person: the database");
    assert_reason(cluster, "a", "HeldByPerson", "kubectl slipway release a -n shop");
    assert_reason(cluster, "b", "PausedByPerson", "kubectl rollout resume deployment/b");
    cluster_free(cluster);
}

TEST(knows_those_that_nobody_coordinates)
{
    struct cluster *cluster = cluster_new();

    deployment(cluster, "a", "", false, 2, 2, "NewReplicaSetAvailable");
    deployment(cluster, "b", HELD, true, 0, 2, "DeploymentPaused");
    assert_reason(cluster, "a", "NotCoordinated", "no coordination selects a");
    assert_reason(cluster, "b", "CoordinationGone", "held by coordination/g");
    group(cluster, "g", "", "");
    deployment(cluster, "c", "\"slipway.dev/ignore\":\"true\"", false, 2, 2, "X");
    assert_reason(cluster, "c", "Ignored", "slipway.dev/ignore-");
    cluster_free(cluster);
}

TEST(names_a_selector_that_selects_nobody)
{
    struct cluster *cluster = cluster_new();

    group(cluster, "g", "\"labelSelector\":null", "");
    deployment(cluster, "a", "", false, 2, 2, "NewReplicaSetAvailable");
    assert_reason(cluster, "a", "NotCoordinated", "coordination g selects nobody");
    cluster_free(cluster);
}

TEST(tells_the_states_of_a_turn_apart)
{
    struct cluster *cluster = cluster_new();

    group(cluster, "g", "", ACTIVE_B);
    deployment(cluster, "a", RIGHT, false, 2, 2, "NewReplicaSetAvailable");
    deployment(cluster, "b", RIGHT, false, 1, 1, "ProgressDeadlineExceeded");
    assert_reason(cluster, "a", "TurnEnds", "minReadySeconds of g");
    assert_reason(cluster, "b", "RolloutFailed", "has timed out");
    cluster_free(cluster);
}

TEST(tells_rest_from_trouble)
{
    struct cluster *cluster = cluster_new();

    group(cluster, "g", "",
          "\"deploymentStates\":[{\"name\":\"shop/c\",\"failedTemplate\":"
          "\"0123456789abcdef0123456789abcdef\"}]");
    rests(cluster, "a");
    deployment(cluster, "b", MARK, false, 0, 2, "ReplicaSetUpdated");
    waits(cluster, "c", "");
    assert_reason(cluster, "a", "AtRest", "which is no fault");
    assert_reason(cluster, "b", "RollsWithoutTurn", "no webhook was reached");
    assert_reason(cluster, "c", "PutAside", "another template");
    cluster_free(cluster);
}

/* ---- status ---- */

static const char *shown(struct cluster *cluster, bool has_namespaces)
{
    const struct ks_world *world = world_of(cluster);
    struct ks_group_view *views[OBJECTS];
    const struct ks_look look = {.now_us = NOW_US, .has_namespaces = has_namespaces};
    struct sw_buf out;

    for (size_t i = 0; i < world->group_count; i++)
        views[i] = ks_view(cluster->arena, world, &world->groups[i]);
    sw_buf_init(&out, SIZE_MAX);
    ks_view_print(cluster->arena, views, world->group_count, &look, &out);
    const char *text = sw_arena_strdup(cluster->arena, out.bytes);
    sw_buf_done(&out);
    return text;
}

TEST(shows_a_queue_as_a_table)
{
    struct cluster *cluster = cluster_new();

    group(cluster, "g", "", "\"selected\":3," ACTIVE_B);
    group(cluster, "idle", "\"labelSelector\":{\"matchLabels\":{\"app\":\"x\"}}", "\"selected\":4");
    waits(cluster, "a", "");
    rolls(cluster, "b");
    waits(cluster, "c", "");
    assert_string_equal(
        shown(cluster, false),
        "COORDINATION   STATE     TURN   DEPLOYMENT   PROGRESS         TIME   NOTE\n"
        "g              Rolling   now    b            #####----- 1/2   60s\n"
        "                         1      c            ---------- 0/2   60s\n"
        "                         2      a            ---------- 0/2   60s\n"
        "idle           Idle      -      4 at rest    -                -\n");
    assert_true(strncmp(shown(cluster, true), "NAMESPACE   COORDINATION", 24) == 0);
    cluster_free(cluster);
}

TEST(names_the_state_of_a_coordination)
{
    static const struct {
        const char *spec, *status;
        enum ks_state state;
    } cases[] = {
        {"", "", KS_IDLE},
        {"", "\"pending\":1", KS_PENDING},
        {"", "\"activeDeployment\":\"shop/a\"", KS_ROLLING},
        {"\"suspend\":true", "\"activeDeployment\":\"shop/a\"", KS_SUSPENDED},
        {"", DEGRADED("PeerUnavailable", ""), KS_BLOCKED},
        {"", DEGRADED("PausedByUser", ""), KS_BLOCKED},
        {"", DEGRADED("RolloutFailed", ""), KS_FAILING},
        {"\"suspend\":true", DEGRADED("RolloutFailed", ""), KS_FAILING},
        {"\"failurePolicy\":\"Skip\"", "\"pending\":1," DEGRADED("RolloutFailed", ""), KS_PENDING},
        {"", DEGRADED("InvalidSelector", ""), KS_BROKEN},
        {"", DEGRADED("TakeOverFailed", ""), KS_BROKEN},
        {"", "\"observedGeneration\":0", KS_UNSEEN},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cluster *cluster = cluster_new();
        group(cluster, "g", cases[i].spec, cases[i].status);
        assert_string_equal(ks_state_text(ks_state_of(world_of(cluster)->groups[0].c)),
                            ks_state_text(cases[i].state));
        cluster_free(cluster);
    }
}

TEST(says_a_group_in_one_line)
{
    struct cluster *cluster = cluster_new();

    group(cluster, "g", "", ACTIVE_B);
    waits(cluster, "a", "");
    rolls(cluster, "b");
    waits(cluster, "c", "");
    const struct ks_world *world = world_of(cluster);
    assert_string_equal(
        ks_view_line(cluster->arena, ks_view(cluster->arena, world, &world->groups[0])),
        "shop/g: Rolling: b 1/2; then c, a");
    cluster_free(cluster);
}

/* ---- stepped ones ---- */

TEST(lets_a_step_answer_while_something_is_under_way)
{
    static const struct {
        const char *phase, *status, *alone, *in_a_group;
    } cases[] = {
        {"Progressing", "\"activity\":\"Analysing\"", "Analysing", "Analysing"},
        {"Waiting", "", "WaitsForConfirmation", "WaitsForConfirmation"},
        {"Failed", "\"activity\":\"Retreated\"", "StepFailed", "StepFailed"},
        {"Held", "\"message\":\"held by coordination/g\"", "HeldByOther", "WaitsForTurn"},
        {"Succeeded", "", "Stepped", "WaitsForTurn"},
        {"", "", "Unseen", "WaitsForTurn"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int is_in_group = 0; is_in_group < 2; is_in_group++) {
            struct cluster *cluster = cluster_new();
            if (is_in_group)
                group(cluster, "g", "", ACTIVE_B);
            rollout(cluster, "steps", "a", MINUTE_AGO, cases[i].phase, cases[i].status);
            waits(cluster, "a", "");
            rolls(cluster, "b");
            assert_reason(cluster, "a", is_in_group ? cases[i].in_a_group : cases[i].alone, "");
            cluster_free(cluster);
        }
    }
}

TEST(says_that_a_stepped_one_waits_for_the_others_of_its_group)
{
    struct cluster *cluster = cluster_new();

    group(cluster, "g", "", ACTIVE_B);
    rollout(cluster, "steps", "a", MINUTE_AGO, "Held", "\"message\":\"position 2 of 2\"");
    waits(cluster, "a", "");
    rolls(cluster, "b");
    assert_reason(cluster, "a", "WaitsForTurn",
                  "its SteppedRollout steps waits meanwhile: position 2 of 2");
    cluster_free(cluster);
}

TEST(asks_the_oldest_of_several_rollouts)
{
    struct cluster *cluster = cluster_new();

    rollout(cluster, "a-newer", "a", "2029-06-02T00:00:00Z", "Failed", "");
    rollout(cluster, "b-oldest", "a", "2029-06-01T00:00:00Z", "Waiting", "");
    rollout(cluster, "c-other", "b", "2029-01-01T00:00:00Z", "Failed", "");
    waits(cluster, "a", "");
    assert_reason(cluster, "a", "WaitsForConfirmation", "b-oldest");
    assert_string_equal(ks_rollout_on(world_of(cluster), "shop", "Deployment", "b")->meta.name,
                        "c-other");
    assert_null(ks_rollout_on(world_of(cluster), "shop", "StatefulSet", "b"));
    assert_null(ks_rollout_on(world_of(cluster), "mail", "Deployment", "b"));
    cluster_free(cluster);
}

TEST(keeps_a_person_in_front_of_a_step)
{
    struct cluster *cluster = cluster_new();

    rollout(cluster, "steps", "a", MINUTE_AGO, "Progressing", "");
    deployment(cluster, "a", "\"slipway.dev/hold\":\"lunch\"", true, 1, 2, "DeploymentPaused");
    assert_reason(cluster, "a", "HeldByPerson", "lunch");
    cluster_free(cluster);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("why", names_who_has_the_turn_and_who_is_before),
        CASE("why", tells_what_stands_in_the_way_of_the_whole_group),
        CASE("why", puts_the_wish_of_a_person_first),
        CASE("why", knows_those_that_nobody_coordinates),
        CASE("why", names_a_selector_that_selects_nobody),
        CASE("why", tells_the_states_of_a_turn_apart),
        CASE("why", tells_rest_from_trouble),
        CASE("status", shows_a_queue_as_a_table),
        CASE("status", names_the_state_of_a_coordination),
        CASE("status", says_a_group_in_one_line),
        CASE("why", lets_a_step_answer_while_something_is_under_way),
        CASE("why", says_that_a_stepped_one_waits_for_the_others_of_its_group),
        CASE("why", asks_the_oldest_of_several_rollouts),
        CASE("why", keeps_a_person_in_front_of_a_step),
    };
    return RUN(tests);
}
