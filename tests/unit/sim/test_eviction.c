/* SPDX-License-Identifier: Apache-2.0 */
/* Evictions, and the PodDisruptionBudgets that are asked about them. */
#include "test.h"

#include <string.h>

#include "api_client.h"
#include "pods.h"
#include "workloads.h"

#define BUDGETS "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
#define EVICTION "{\"apiVersion\":\"policy/v1beta1\",\"kind\":\"Eviction\"}"

struct world {
    struct sim sim;
    struct sw_sim_workloads *workloads;
    struct sw_sim_pods *pods;
};

static struct world world_new(void)
{
    struct world world = {.sim = sim_new()};
    struct sim *sim = &world.sim;
    world.workloads = sw_sim_workloads_new(sim->loop, sim->store, sim->api, NULL);
    world.pods = sw_sim_pods_new(sim->loop, sim->store, sim->api, 3);
    make_deployment(sim, "web");
    check_ask(sim, "PATCH", DEPLOYMENTS "/web", "{\"spec\":{\"replicas\":3}}", 200, "spec.replicas",
              "3");
    sw_loop_virtual_advance(sim->loop, 60000);
    return world;
}

static void world_free(struct world *world)
{
    sw_sim_pods_free(world->pods);
    sw_sim_workloads_free(world->workloads);
    sim_free(&world->sim);
}

static void make_budget(struct world *world, const char *name, const char *limit)
{
    SW_AUTO(char, sw_free)
    body = sw_asprintf("{\"metadata\":{\"name\":\"%s\"},\"spec\":{%s,"
                       "\"selector\":{\"matchLabels\":{\"app\":\"web\"}}}}",
                       name, limit);
    check_ask(&world->sim, "POST", BUDGETS, body, 201, "metadata.name", name);
    sw_loop_virtual_advance(world->sim.loop, 100);
}

static int name_first(void *arg, const struct sw_sim_object *pod)
{
    json_t *since = sw_sim_object_at(pod, "metadata.deletionTimestamp");
    json_decref(since);
    if (since) {
        return 0;
    }
    snprintf(arg, 128, PODS "/%s/eviction", pod->name);
    return 1;
}

/* Of a Pod that is not being deleted. */
static struct answer *evict(struct world *world)
{
    char target[128] = "";
    const struct sw_sim_kind *pods = sw_sim_api_kind(world->sim.api, "", "v1", "pods");
    sw_sim_store_each(world->sim.store, pods, "default", NULL, name_first, target);
    return ask(&world->sim, "POST", target, EVICTION);
}

static void check_evict(struct world *world, int want_status, const char *path, const char *want)
{
    struct answer *answer = evict(world);
    assert_int_equal(answer->status, want_status);
    check_at(answer->json, path, want);
    answer_free(answer);
}

TEST(without_a_budget_the_pod_goes)
{
    struct world world = world_new();
    check_evict(&world, 201, "status", "Success");
    check_ask(&world.sim, "POST", PODS "/none/eviction", EVICTION, 404, "reason", "NotFound");
    check_ask(&world.sim, "GET", PODS "/none/eviction", NULL, 404, "reason", "NotFound");
    world_free(&world);
}

TEST(a_budget_is_spent_and_refilled)
{
    struct world world = world_new();
    make_budget(&world, "b", "\"minAvailable\":2");
    check_ask(&world.sim, "GET", BUDGETS "/b", NULL, 200, "status.disruptionsAllowed", "1");
    check_evict(&world, 201, "status", "Success");
    struct answer *refused = evict(&world);
    assert_int_equal(refused->status, 429);
    check_at(refused->json, "reason", "TooManyRequests");
    check_at(refused->json, "message",
             "Cannot evict pod as it would violate the pod's disruption budget.");
    check_at(json_array_get(sw_sim_at(refused->json, "details.causes"), 0), "reason",
             "DisruptionBudget");
    answer_free(refused);
    sw_loop_virtual_advance(world.sim.loop, 100);
    refused = evict(&world);
    check_at(json_array_get(sw_sim_at(refused->json, "details.causes"), 0), "message",
             "The disruption budget b needs 2 healthy pods and has 2 currently");
    answer_free(refused);
    sw_loop_virtual_advance(world.sim.loop, 120 * 1000);
    check_ask(&world.sim, "GET", BUDGETS "/b", NULL, 200, "status.currentHealthy", "3");
    check_ask(&world.sim, "GET", BUDGETS "/b", NULL, 200, "status.disruptedPods", "");
    check_evict(&world, 201, "status", "Success");
    world_free(&world);
}

TEST(percentages_are_of_what_the_workload_asks_for)
{
    struct world world = world_new();
    make_budget(&world, "b", "\"maxUnavailable\":\"34%\"");
    check_ask(&world.sim, "GET", BUDGETS "/b", NULL, 200, "status.desiredHealthy", "1");
    check_ask(&world.sim, "GET", BUDGETS "/b", NULL, 200, "status.expectedPods", "3");
    check_ask(&world.sim, "GET", "/apis/policy/v1beta1/namespaces/default/poddisruptionbudgets/b",
              NULL, 200, "status.disruptionsAllowed", "2");
    world_free(&world);
}

TEST(two_budgets_for_one_pod_are_an_error)
{
    struct world world = world_new();
    make_budget(&world, "a", "\"maxUnavailable\":1");
    make_budget(&world, "b", "\"maxUnavailable\":1");
    check_evict(&world, 500, "message",
                "This pod has more than one PodDisruptionBudget, which the eviction subresource "
                "does not support.");
    world_free(&world);
}

TEST(a_budget_that_was_not_counted_yet_is_waited_for)
{
    struct world world = world_new();
    sw_sim_workloads_set_running(world.workloads, false);
    make_budget(&world, "b", "\"maxUnavailable\":1");
    check_evict(&world, 429, "details.retryAfterSeconds", "10");
    sw_sim_workloads_set_running(world.workloads, true);
    sw_loop_virtual_advance(world.sim.loop, 100);
    check_evict(&world, 201, "status", "Success");
    world_free(&world);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("eviction", without_a_budget_the_pod_goes),
        CASE("eviction", a_budget_is_spent_and_refilled),
        CASE("eviction", percentages_are_of_what_the_workload_asks_for),
        CASE("eviction", two_budgets_for_one_pod_are_an_error),
        CASE("eviction", a_budget_that_was_not_counted_yet_is_waited_for),
    };
    return RUN(tests);
}
