/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A figure, not a test: how many Pods are updated beyond the stop when the hold stands. In a quiet
 * cluster one Deployment of each surge is rolled out in steps of one Pod; at each hold the
 * Deployment's own status is asked as soon as its controller has seen the pause.
 */
#include <stdio.h>
#include <string.h>

#include "api.h"
#include "base/util.h"
#include "document.h"
#include "kind.h"
#include "pods.h"
#include "world_steps.h"

#define REPLICAS 10
#define PATIENCE_MS 900000

/* 100 % is refused: all Pods at once have no steps. This is the most there is. */
const char *const overshoot_surges[OVERSHOOTS] = {"1", "25%", "90%"};

struct sight {
    struct sw_sim_store_watcher watcher;
    struct world *world;
    struct overshoot *found; /* of OVERSHOOTS */
    int64_t generations[OVERSHOOTS];
};

static void on_change(struct sw_sim_store_watcher *watcher, const struct sw_sim_change *change)
{
    struct sight *sight = container_of(watcher, struct sight, watcher);
    struct world *world = sight->world;
    const json_t *d = sw_sim_object_json(change->object);
    int t =
        change->object->kind == world->deployments ? deployment_index(change->object->name) : -1;

    if (t < 0 || change->type == SW_SIM_DELETED || !sw_sim_bool_at(d, "spec.paused") ||
        !judge_is_observed(d))
        return;
    int64_t generation = sw_sim_int_at(d, "metadata.generation", 0);
    const json_t *stepped = steps_stepped(world, t);
    int64_t stop = sw_sim_int_at(stepped, "status.stop", 0);
    if (generation == sight->generations[t] || stop == 0)
        return;
    sight->generations[t] = generation;
    int64_t beyond = SW_MAX(sw_sim_int_at(d, "status.updatedReplicas", 0) - stop, 0);
    struct overshoot *found = &sight->found[t];
    found->holds++;
    found->sum += (uint64_t)beyond;
    found->most = SW_MAX(found->most, (uint64_t)beyond);
}

static void run_until(struct world *world, const char *phase)
{
    uint64_t until = world->now_ms + PATIENCE_MS;
    bool is_there = false;

    while (!world->failure[0] && !is_there && world->now_ms < until) {
        uint64_t next = world->now_ms + 1000;
        while (!world->failure[0] && world_turn(world, next))
            ;
        is_there = true;
        for (int t = 0; t < OVERSHOOTS; t++)
            is_there &= strcmp(sw_sim_text_at(steps_stepped(world, t), "status.phase"), phase) == 0;
    }
    if (!is_there)
        world_fail(world, "not all are %s", phase);
}

static json_t *deployment(int t)
{
    const char *surge = overshoot_surges[t];
    json_t *maximum = strchr(surge, '%') ? json_string(surge) : json_integer(surge[0] - '0');

    return json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:i, s:{s:{s:s}}, s:{s:s, s:{s:o, s:i}},"
                     " s:{s:{s:{s:s}}, s:{s:[{s:s, s:s}]}}}}",
                     "apiVersion", "apps/v1", "kind", "Deployment", "metadata", "name",
                     deployment_name(t), "namespace", NAMESPACE, "spec", "replicas", REPLICAS,
                     "selector", "matchLabels", "app", deployment_name(t), "strategy", "type",
                     "RollingUpdate", "rollingUpdate", "maxSurge", maximum, "maxUnavailable", 0,
                     "template", "metadata", "labels", "app", deployment_name(t), "spec",
                     "containers", "name", "app", "image", "example.org/app:1");
}

static json_t *stepped(int t)
{
    char name[8];

    snprintf(name, sizeof name, "r%d", t);
    return json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:{s:s, s:s, s:s}, s:i, s:{s:s}}}", "apiVersion",
                     "slipway.dev/v1alpha1", "kind", "SteppedRollout", "metadata", "name", name,
                     "namespace", NAMESPACE, "spec", "targetRef", "apiVersion", "apps/v1", "kind",
                     "Deployment", "name", deployment_name(t), "stepSize", 1, "analysis",
                     "interval", "1s");
}

static void make_all(struct world *world)
{
    json_t *settings = json_pack("{s:f}", "start", (double)world_random(world, 50, 2000) / 1000);
    json_t *answer = NULL;

    if (sw_sim_pods_tell(world->pods, "PATCH", "/settings", settings, &answer) >= 400)
        world_fail(world, "the settings of Pods are refused");
    json_decref(answer);
    json_decref(settings);
    for (int t = 0; t < OVERSHOOTS; t++) {
        user_sends(world, "jane", "POST", "/apis/apps/v1/namespaces/" NAMESPACE "/deployments",
                   "application/json", deployment(t));
        user_sends(world, "jane", "POST",
                   "/apis/slipway.dev/v1alpha1/namespaces/" NAMESPACE "/steppedrollouts",
                   "application/json", stepped(t));
    }
}

void world_overshoot(struct world *world, uint64_t seed, bool is_loud, struct overshoot *found)
{
    const struct case_ case_ = {.seed = seed,
                                .deployments = OVERSHOOTS,
                                .groups = 1,
                                .replicas = 1,
                                .is_stepped = true,
                                .is_alone = true,
                                .is_prompt = true};
    struct sight sight = {.watcher = {.on_change = on_change}, .world = world, .found = found};

    world_begin(world, &case_, is_loud);
    while (!world->failure[0] && world_turn(world, world->started_ms + 1500))
        ; /* until reviews are answered */
    make_all(world);
    run_until(world, "Initialized");
    sw_sim_store_watch(world->store, &sight.watcher);
    world->templates = 1; /* as they have it */
    for (int t = 0; t < OVERSHOOTS; t++)
        user_sets_template(world, t);
    run_until(world, "Succeeded");
    sw_sim_store_unwatch(world->store, &sight.watcher);
    for (int t = 0; t < OVERSHOOTS; t++)
        found[t].rollouts++;
}
