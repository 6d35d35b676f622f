/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who has nothing to roll, who rolls, and who waits: by what a Deployment says of itself.
 */
#include "runtime/release_order.h"

#include <slipway/apps.h>
#include <slipway/arbiter.h>

#include "../test.h"

/* Three Pods of its template, all there. */
static struct sw_deployment at_rest(bool is_paused)
{
    return (struct sw_deployment){.meta = {.generation = 4},
                                  .replicas = 3,
                                  .is_paused = is_paused,
                                  .observed_generation = 4,
                                  .status_replicas = 3,
                                  .updated_replicas = 3,
                                  .available_replicas = 3};
}

static struct sw_deployment annotated(const char *key, const char *value)
{
    static struct sw_label label;
    struct sw_deployment d = at_rest(false);

    label = (struct sw_label){key, value};
    d.meta.annotations = (struct sw_labels){&label, 1};
    return d;
}

static void set_reason(struct sw_deployment *d, const char *reason)
{
    static struct sw_condition condition;

    condition = (struct sw_condition){.type = "Progressing", .status = "True", .reason = reason};
    d->conditions = (struct sw_conditions){&condition, 1};
}

TEST(a_paused_one_waits_if_it_has_another_template_than_its_pods)
{
    struct sw_deployment d = at_rest(true);

    assert_int_equal(sw_release_turn_of(&d), SW_RELEASE_AT_REST);
    d.updated_replicas = 0;
    assert_int_equal(sw_release_turn_of(&d), SW_RELEASE_WAITS);
    d.updated_replicas = d.status_replicas = 0; /* never started */
    assert_int_equal(sw_release_turn_of(&d), SW_RELEASE_WAITS);
    d.replicas = 0;
    assert_int_equal(sw_release_turn_of(&d), SW_RELEASE_AT_REST);
    d = at_rest(true);
    d.meta.generation = 5; /* changed since its controller looked */
    assert_int_equal(sw_release_turn_of(&d), SW_RELEASE_WAITS);
    d = at_rest(true);
    d.available_replicas = 0; /* its Pods crash */
    assert_int_equal(sw_release_turn_of(&d), SW_RELEASE_AT_REST);
}

TEST(one_that_is_not_paused_rolls_until_it_is_complete)
{
    struct sw_deployment d = at_rest(false);

    assert_int_equal(sw_release_turn_of(&d), SW_RELEASE_AT_REST);
    d.updated_replicas = 1;
    assert_int_equal(sw_release_turn_of(&d), SW_RELEASE_ROLLS);
    d.updated_replicas = 3;
    d.available_replicas = 2;
    set_reason(&d, "ReplicaSetUpdated");
    assert_int_equal(sw_release_turn_of(&d), SW_RELEASE_ROLLS);
    set_reason(&d, "NewReplicaSetAvailable"); /* it has lost a Pod since */
    assert_int_equal(sw_release_turn_of(&d), SW_RELEASE_AT_REST);
    d = annotated(SW_RELEASED_BY, "coordination/x");
    set_reason(&d, "NewReplicaSetAvailable");
    assert_int_equal(sw_release_turn_of(&d), SW_RELEASE_AT_REST);
    d.available_replicas = 2;
    assert_int_equal(sw_release_turn_of(&d), SW_RELEASE_ROLLS);
}

TEST(complete_is_all_pods_of_the_template_and_available)
{
    struct sw_deployment d = at_rest(false);

    assert_true(sw_release_is_complete(&d));
    d.status_replicas = 4; /* an old one still ends */
    assert_false(sw_release_is_complete(&d));
    d = at_rest(false);
    d.available_replicas = 2;
    assert_false(sw_release_is_complete(&d));
    d = at_rest(false);
    d.meta.generation = 5;
    assert_false(sw_release_is_complete(&d));
}

TEST(the_order_is_a_number_or_0)
{
    static const struct {
        const char *text;
        int64_t order;
    } cases[] = {{"-1", -1},   {"7", 7},   {"", 0},
                 {"first", 0}, {"1st", 0}, {"9999999999999999999", 0}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sw_deployment d = annotated(SW_ORDER, cases[i].text);
        assert_int_equal(sw_release_order_of(&d), cases[i].order);
    }
    struct sw_deployment none = at_rest(false);
    assert_int_equal(sw_release_order_of(&none), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("release-order", a_paused_one_waits_if_it_has_another_template_than_its_pods),
        CASE("release-order", one_that_is_not_paused_rolls_until_it_is_complete),
        CASE("release-order", complete_is_all_pods_of_the_template_and_available),
        CASE("release-order", the_order_is_a_number_or_0),
    };
    return RUN(tests);
}
