/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which those that wait would roll.
 */
#include "fixture.h"

#include "base/buf.h"
#include "forecast.h"

/* "now:a 1:b 2:c -:d(reason) still" of the coordination at this place. */
static const char *order(struct cluster *cluster, uint32_t at)
{
    uint32_t count;
    const struct ks_forecast *forecast =
        ks_forecast(cluster->arena, world_of(cluster), "shop", NOW_US, &count);
    struct sw_buf text;

    assert_true(at < count);
    forecast += at;
    sw_buf_init(&text, SIZE_MAX);
    for (uint32_t i = 0; i < forecast->turn_count; i++)
        sw_buf_printf(&text, "%s%u:%s", i > 0 ? " " : "", (unsigned)forecast->turns[i].step,
                      forecast->turns[i].name);
    for (uint32_t i = 0; i < forecast->left_count; i++)
        sw_buf_printf(&text, "%s-:%s%s%s", text.len ? " " : "", forecast->left[i].name,
                      forecast->left[i].reason[0] ? "=" : "", forecast->left[i].reason);
    if (forecast->still[0])
        sw_buf_printf(&text, " | %s", forecast->still);
    const char *made = sw_arena_strdup(cluster->arena, text.bytes);
    sw_buf_done(&text);
    return made;
}

TEST(plays_one_after_the_other_in_the_controllers_order)
{
    struct cluster *cluster = cluster_new();

    group(cluster, "g", "", "\"turn\":3");
    waits(cluster, "b", "");
    waits(cluster, "a", "");
    waits(cluster, "z", ",\"slipway.dev/order\":\"-1\"");
    rests(cluster, "r");
    assert_string_equal(order(cluster, 0), "1:z 2:a 3:b");
    cluster_free(cluster);
}

TEST(begins_with_who_has_the_turn)
{
    struct cluster *cluster = cluster_new();

    group(cluster, "g", "\"minReadySeconds\":3600",
          "\"activeDeployment\":\"shop/b\",\"activeDeployments\":[\"shop/"
          "b\"],\"deploymentStates\":[" STATE("b", 0) "]");
    rolls(cluster, "b");
    waits(cluster, "a", "");
    waits(cluster, "c", "");
    assert_string_equal(order(cluster, 0), "0:b 1:a 2:c");
    cluster_free(cluster);
}

TEST(lets_as_many_go_together_as_may)
{
    struct cluster *cluster = cluster_new();

    group(cluster, "g", "\"maxActive\":2", "");
    waits(cluster, "a", "");
    waits(cluster, "b", "");
    waits(cluster, "c", "");
    assert_string_equal(order(cluster, 0), "1:a 1:b 2:c");
    cluster_free(cluster);
}

TEST(puts_one_that_skips_behind_those_that_waited)
{
    struct cluster *cluster = cluster_new();

    group(cluster, "g", "", "\"deploymentStates\":[" STATE("a", 1) "," STATE("b", 2) "]");
    waits(cluster, "a", ",\"slipway.dev/skip\":\"2030-01-01T00:00:30Z\"");
    waits(cluster, "b", "");
    assert_string_equal(order(cluster, 0), "1:b 2:a");
    cluster_free(cluster);
}

TEST(passes_over_what_people_hold_or_have_paused)
{
    struct cluster *cluster = cluster_new();

    group(cluster, "g", "", "");
    waits(cluster, "a", ",\"slipway.dev/hold\":\"the database\"");
    waits(cluster, "b", "");
    deployment(cluster, "c", MARK, true, 0, 2, "DeploymentPaused");
    assert_string_equal(order(cluster, 0),
                        "1:b -:a=held by user: the database -:c=paused by its owner");
    cluster_free(cluster);
}

TEST(goes_nowhere_while_suspended)
{
    struct cluster *cluster = cluster_new();

    group(cluster, "g", "\"suspend\":true", "");
    waits(cluster, "b", "");
    waits(cluster, "a", "");
    assert_string_equal(order(cluster, 0), "-:a -:b | suspended: kubectl slipway resume g -n shop");
    cluster_free(cluster);
}

TEST(stands_still_behind_one_that_has_failed)
{
    struct cluster *cluster = cluster_new();

    group(cluster, "g", "",
          "\"activeDeployment\":\"shop/b\",\"activeDeployments\":[\"shop/"
          "b\"],\"deploymentStates\":[" STATE("b", 0) "]");
    deployment(cluster, "b", RIGHT, false, 1, 2, "ProgressDeadlineExceeded");
    waits(cluster, "a", "");
    const char *found = order(cluster, 0);
    if (strncmp(found, "0:b -:a | ", 10) != 0 || !strstr(found, "b"))
        fail_msg("%s", found);
    cluster_free(cluster);
}

TEST(stands_still_while_a_member_is_unavailable)
{
    struct cluster *cluster = cluster_new();

    group(cluster, "g", "", "");
    deployment(cluster, "x", HELD, true, 2, 0, "DeploymentPaused");
    waits(cluster, "a", "");
    const char *found = order(cluster, 0);
    if (strncmp(found, "-:a | ", 6) != 0 || !strstr(found, "shop/x"))
        fail_msg("%s", found);
    cluster_free(cluster);
}

TEST(goes_on_without_a_guard)
{
    struct cluster *cluster = cluster_new();

    group(cluster, "g", "\"availabilityGuard\":\"Off\"", "");
    deployment(cluster, "x", HELD, true, 2, 0, "DeploymentPaused");
    waits(cluster, "a", "");
    assert_string_equal(order(cluster, 0), "1:a");
    cluster_free(cluster);
}

TEST(counts_steps_in_each_coordination_by_itself)
{
    struct cluster *cluster = cluster_new();

    group(cluster, "g", "", "");
    group(cluster, "h", "\"labelSelector\":{\"matchLabels\":{\"app\":\"other\"}}", "");
    waits(cluster, "a", "");
    waits(cluster, "b", "");
    assert_string_equal(order(cluster, 0), "1:a 2:b");
    assert_string_equal(order(cluster, 1), "");
    cluster_free(cluster);
}

TEST(says_nothing_where_nobody_waits)
{
    struct cluster *cluster = cluster_new();

    group(cluster, "g", "", "");
    rests(cluster, "a");
    assert_string_equal(order(cluster, 0), "");
    cluster_free(cluster);
}

TEST(leaves_the_world_as_it_was)
{
    struct cluster *cluster = cluster_new();

    group(cluster, "g", "", "");
    waits(cluster, "a", "");
    order(cluster, 0);
    const struct sw_deployment *d = world_of(cluster)->deployments[0];
    assert_true(d->is_paused);
    assert_string_equal(ks_annotation(&d->meta, "slipway.dev/held-by"), "coordination/g");
    assert_int_equal(d->updated_replicas, 0);
    assert_string_equal(order(cluster, 0), "1:a");
    cluster_free(cluster);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("forecast", plays_one_after_the_other_in_the_controllers_order),
        CASE("forecast", begins_with_who_has_the_turn),
        CASE("forecast", lets_as_many_go_together_as_may),
        CASE("forecast", puts_one_that_skips_behind_those_that_waited),
        CASE("forecast", passes_over_what_people_hold_or_have_paused),
        CASE("forecast", goes_nowhere_while_suspended),
        CASE("forecast", stands_still_behind_one_that_has_failed),
        CASE("forecast", stands_still_while_a_member_is_unavailable),
        CASE("forecast", goes_on_without_a_guard),
        CASE("forecast", counts_steps_in_each_coordination_by_itself),
        CASE("forecast", says_nothing_where_nobody_waits),
        CASE("forecast", leaves_the_world_as_it_was),
    };
    return RUN(tests);
}
