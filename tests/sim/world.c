/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cluster, the clocks, and what happens next: always what is due first, whoever's it is; of
 * what is due in the same millisecond the seed decides.
 */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <slipway/memory.h>

#include "api.h"
#include "base/util.h"
#include "cache.h"
#include "document.h"
#include "kind.h"
#include "pods.h"
#include "workloads.h"
#include "world_steps.h"

#define WALL_US INT64_C(1767225600000000)
#define LOOK_MS 1000 /* how often the judge looks at what lasts too long */

void world_fail(struct world *world, const char *format, ...)
{
    va_list args;

    if (world->failure[0])
        return;
    va_start(args, format);
    vsnprintf(world->failure, sizeof world->failure, format, args);
    va_end(args);
    world->failed_step = world->steps;
    world_say(world, "FAILED: %s", world->failure);
}

void world_say(const struct world *world, const char *format, ...)
{
    va_list args;

    if (!world->is_loud)
        return;
    printf("# %9.3f ", (double)(world->now_ms - world->started_ms) / 1000);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
}

uint64_t world_random(struct world *world, uint64_t from, uint64_t to)
{
    return sw_rng_between(&world->rng, from, to);
}

/* ---- the network, looked at ---- */

static bool on_request(void *arg, struct sw_sim_wire_request *request, int *ret_status,
                       char **ret_body)
{
    struct replica *replica = arg;
    struct world *world = replica->world;

    if (strcmp(request->method, "GET") != 0 && !strstr(request->target, "/leases")) {
        world->writes_by_us++;
        world_say(world, "replica %d: %s %s %.600s", replica->index, request->method,
                  request->target, request->body ? request->body : "");
    }
    if (world->stepping && strcmp(request->method, "DELETE") == 0)
        steps_see_delete(world, request->target);
    trap_look(world, replica, request);
    return bugs_on_request(world, replica, request, ret_status, ret_body);
}

static uint64_t on_postpone(void *arg, const struct sw_sim_wire_request *request)
{
    struct replica *replica = arg;

    return plot_look(replica->world, replica, request);
}

static const char *version_in(const char *text, size_t *ret_len)
{
    static const char key[] = "\"resourceVersion\":\"";
    const char *at = text ? strstr(text, key) : NULL;

    if (!at)
        return NULL;
    at += sizeof key - 1;
    *ret_len = strcspn(at, "\"");
    return at;
}

/* What slipway sends is decided on the very version that is its precondition: if it changes
 * nothing, it was not to be sent. Bugs that are about something else make such patches, too. */
static void look_for_idle_patch(struct world *world, const struct sw_sim_wire_request *request,
                                int status, const char *body)
{
    size_t asked_len = 0, told_len = 0;
    enum bug bug = world->case_.bug;

    if ((bug != NO_BUG && bug != BUG_OWN_WRITE_STALE) || status != 200 || request->is_watch ||
        strcmp(request->method, "PATCH") != 0 || strstr(request->target, "/leases"))
        return;
    /* Two that lead write down the same answer of the same second. */
    if (world->stepping && world->case_.replicas > 1 && world->case_.faults & FAULT_NO_LEASE)
        return;
    const char *asked = version_in(request->body, &asked_len);
    const char *told = version_in(body, &told_len);
    if (asked && told && asked_len == told_len && memcmp(asked, told, told_len) == 0)
        world_fail(world, "a patch changes nothing: %s %.300s", request->target, request->body);
}

static void on_answer(void *arg, const struct sw_sim_wire_request *request, int *status,
                      char **body, size_t *len)
{
    struct replica *replica = arg;

    look_for_idle_patch(replica->world, request, *status, *body);
    bugs_on_answer(replica->world, replica, request, status, body, len);
}

/* ---- the beginning ---- */

static void must(struct world *world, int code, const char *what)
{
    if (code)
        world_fail(world, "%s cannot be made: %d", what, code);
}

static void make_webhook(struct world *world)
{
    json_t *configuration = manifest_read("install.yaml", "MutatingWebhookConfiguration");
    size_t i;
    json_t *webhook;

    json_array_foreach(json_object_get(configuration, "webhooks"), i, webhook)
    {
        json_object_set_new(webhook, "failurePolicy",
                            json_string(world->case_.faults & FAULT_IGNORE ? "Ignore" : "Fail"));
        json_object_del(webhook, "namespaceSelector"); /* there is one namespace of theirs */
    }
    must(world,
         sw_sim_create(world->api,
                       sw_sim_api_kind(world->api, "admissionregistration.k8s.io", "v1",
                                       "mutatingwebhookconfigurations"),
                       configuration, NULL),
         "the webhook configuration");
}

static void make_cluster(struct world *world)
{
    const struct sw_sim_api_options options = {.admission = admission_caller(world),
                                               .keeps_no_managed_fields = true};
    static const struct sw_log quiet;

    world->loop = sw_loop_virtual_new(WALL_US, world_random(world, 0, UINT64_MAX - 1));
    world->now_ms = sw_now_ms(world->loop);
    world->store = sw_sim_store_new(1000, 2000);
    world->api = sw_sim_api_new(world->loop, world->store, &options, &quiet);
    for (size_t i = 0; i < CACHES_MAX; i++)
        world->caches[i] = sw_sim_cache_new(world->api);
    world->pods = sw_sim_pods_new(world->loop, world->store, world->api, NODES);
    world->workloads = sw_sim_workloads_new(world->loop, world->store, world->api, NULL);
    must(world,
         sw_sim_create(
             world->api,
             sw_sim_api_kind(world->api, "apiextensions.k8s.io", "v1", "customresourcedefinitions"),
             manifest_read("crds/deploymentcoordinations.yaml", "CustomResourceDefinition"), NULL),
         "the CRD");
    must(world,
         sw_sim_create(world->api, sw_sim_api_kind(world->api, "", "v1", "namespaces"),
                       json_pack("{s:s, s:s, s:{s:s}}", "apiVersion", "v1", "kind", "Namespace",
                                 "metadata", "name", NAMESPACE),
                       NULL),
         "the namespace");
    if (!world->case_.is_stepped)
        make_webhook(world);
    sw_loop_virtual_advance(world->loop, 1000); /* the CRD is established, Nodes are ready */
    if (world->case_.is_stepped)
        steps_begin(world);
    world->now_ms = world->started_ms = sw_now_ms(world->loop);
    world->deployments = sw_sim_api_kind(world->api, "apps", "v1", "deployments");
    world->replicasets = sw_sim_api_kind(world->api, "apps", "v1", "replicasets");
    world->leases = sw_sim_api_kind(world->api, "coordination.k8s.io", "v1", "leases");
    world->coordinations =
        sw_sim_api_kind(world->api, "apps.containerinfra.nl", "v1", "deploymentcoordinations");
    if (!world->coordinations)
        world_fail(world, "the CRD is not served");
}

void world_begin(struct world *world, const struct case_ *case_, bool is_loud)
{
    *world = (struct world){.case_ = *case_, .is_loud = is_loud};
    sw_rng_seed(&world->rng, case_->seed);
    for (size_t i = 0; i < TRAPS_MAX; i++)
        world->traps[i].what = -1;
    make_cluster(world);
    judge_begin(world);
    for (int i = 0; i < case_->replicas; i++) {
        world->liars[i] =
            (struct sw_sim_wire_liar){on_request, on_answer, &world->replicas[i], on_postpone};
        replica_init(&world->replicas[i], world, i);
        replica_start(&world->replicas[i]);
    }
    world_say(world, "%d Deployments, %d coordinations, %d replicas, faults %u, bug %s",
              case_->deployments, case_->groups, case_->replicas, case_->faults,
              bug_names[case_->bug]);
}

/* ---- time ---- */

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return b && b < a ? b : a;
}

static uint64_t server_next_ms(const struct world *world)
{
    return sw_loop_virtual_next(world->loop);
}

static uint64_t next_ms(const struct world *world)
{
    uint64_t next = SW_MIN(server_next_ms(world), users_next_ms(world));

    next = SW_MIN(next, plot_next_ms(world));
    next = earlier(next, world->webhook_down_until_ms);
    next = earlier(next, world->controllers_down_until_ms);
    for (int i = 0; i < world->case_.replicas; i++) {
        next = SW_MIN(next, replica_next_ms(&world->replicas[i]));
        next = earlier(next, world->replicas[i].deaf_until_ms);
    }
    if (!world->is_ending && world->next_event < world->case_.count)
        next = SW_MIN(next, world->started_ms + world->case_.events[world->next_event].at_ms);
    return SW_MAX(next, world->now_ms);
}

static bool is_over(const struct world *world, uint64_t *until_ms)
{
    if (!*until_ms || *until_ms > world->now_ms)
        return false;
    *until_ms = 0;
    return true;
}

static void set_clock(struct world *world, uint64_t now_ms)
{
    if (now_ms > sw_now_ms(world->loop))
        sw_loop_virtual_stall(world->loop, now_ms - sw_now_ms(world->loop));
    world->now_ms = now_ms;
    is_over(world, &world->webhook_down_until_ms);
    if (is_over(world, &world->controllers_down_until_ms)) {
        world_say(world, "kube-controller-manager is back");
        sw_sim_workloads_set_running(world->workloads, true);
    }
    for (int i = 0; i < world->case_.replicas; i++) {
        is_over(world, &world->replicas[i].deaf_until_ms);
        replica_look(&world->replicas[i]);
    }
}

static void act(struct world *world, const struct event *event)
{
    switch (event->kind) {
    case EVENT_USER:
        users_act(world, event->a, event->b);
        break;
    case EVENT_TROUBLE:
        trouble_act(world, event->a, event->b);
        break;
    case EVENT_TRAP:
        trap_set(world, event->a, event->b);
        break;
    case EVENT_NETWORK:
        network_change(world, event->a, event->b);
        break;
    case EVENT_PLOT:
        plot_set(world, event->a, event->b);
        break;
    case EVENT_KINDS:
        break;
    }
}

static void events_look(struct world *world)
{
    while (!world->is_ending && world->next_event < world->case_.count &&
           world->started_ms + world->case_.events[world->next_event].at_ms <= world->now_ms) {
        act(world, &world->case_.events[world->next_event++]);
        world->steps++;
    }
}

static void turn_server(struct world *world)
{
    uint64_t turns = sw_loop_turn(world->loop);

    sw_loop_virtual_advance(world->loop, 0);
    world->steps += sw_loop_turn(world->loop) - turns;
}

bool world_turn(struct world *world, uint64_t until_ms)
{
    uint64_t next = next_ms(world);
    int count = world->case_.replicas;

    if (next > until_ms) {
        set_clock(world, until_ms);
        return false;
    }
    set_clock(world, next);
    events_look(world);
    users_look(world);
    plot_go_on(world);
    int first = (int)world_random(world, 0, (uint64_t)count);
    for (int i = 0; i <= count && !world->failure[0]; i++) {
        int who = (first + i) % (count + 1);
        if (who == count) {
            if (server_next_ms(world) <= world->now_ms)
                turn_server(world);
        } else if (replica_next_ms(&world->replicas[who]) <= world->now_ms) {
            replica_turn(&world->replicas[who]);
        }
    }
    trap_spring(world);
    if (world->stepping)
        steps_look(world);
    return true;
}

void world_run(struct world *world)
{
    uint64_t end_ms = world->started_ms + world->case_.duration_ms;
    uint64_t look_ms;

    if (world->stepping) /* until reviews are answered: what they then make is never made again */
        while (!world->failure[0] && world_turn(world, world->started_ms + 1500))
            ;
    users_begin(world);
    if (world->stepping)
        steps_users_begin(world);
    look_ms = world->now_ms;
    while (!world->failure[0]) {
        look_ms += LOOK_MS;
        while (!world->failure[0] && world_turn(world, SW_MIN(look_ms, end_ms)))
            ;
        judge_look(world);
        if (look_ms >= end_ms)
            break;
    }
    if (!world->failure[0])
        world_end(world);
}

void world_done(struct world *world)
{
    for (int i = 0; i < world->case_.replicas; i++)
        replica_done(&world->replicas[i]);
    /* What is under way at the server is finished by it, so that nothing is left behind. */
    sw_loop_virtual_advance(world->loop, 60000);
    if (world->reviews > 0)
        world_fail(world, "%u reviews are never finished", world->reviews);
    bugs_done(world);
    judge_done(world);
    if (world->stepping)
        steps_done(world);
    world->workloads = sw_sim_workloads_free(world->workloads);
    world->pods = sw_sim_pods_free(world->pods);
    for (size_t i = 0; i < CACHES_MAX; i++)
        world->caches[i] = sw_sim_cache_free(world->caches[i]);
    world->api = sw_sim_api_free(world->api);
    world->store = sw_sim_store_free(world->store);
    if (sw_loop_close(world->loop))
        world_fail(world, "the cluster leaves a timer behind");
}
