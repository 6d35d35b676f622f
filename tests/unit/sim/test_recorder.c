/* SPDX-License-Identifier: Apache-2.0 */
/* What the controllers say in Events, how it is counted, and that it goes after a time. */
#include "cluster.h"

enum { TTL_MS = 60 * 60 * 1000 };

static void start(struct cluster *cluster)
{
    static const struct sw_sim_api_options options = {.event_ttl_ms = TTL_MS};
    static const struct sw_sim_workloads_options workloads = {.records_events = true};
    cluster_init_as(cluster, 3, &options, &workloads);
}

static void make_workload(struct cluster *cluster, const char *plural, const char *kind, int count)
{
    json_t *object =
        json_of("{'metadata': {'name': 'web'}, 'spec': {'selector': {'matchLabels': {'app': 'web'}}"
                ", 'template': {'metadata': {'labels': {'app': 'web'}}, 'spec': {'containers': "
                "[{'name': 'c', 'image': 'i:1'}]}}}}");
    json_object_set_new(object, "kind", json_string(kind));
    if (count >= 0)
        json_object_set_new(json_object_get(object, "spec"), "replicas", json_integer(count));
    make(cluster, plural, object);
}

struct said {
    const char *kind, *reason, *message; /* what it begins with */
    size_t events;
    int64_t count;
};

static int add(void *arg, const struct sw_sim_object *event)
{
    struct said *said = arg;
    const json_t *json = sw_sim_object_json(event);
    const char *kind = sw_look_string(json_object_get(json, "involvedObject"), "kind");
    if (strcmp(kind, said->kind) == 0 &&
        strcmp(sw_look_string(json, "reason"), said->reason) == 0 &&
        strncmp(sw_look_string(json, "message"), said->message, strlen(said->message)) == 0) {
        said->events++;
        said->count += sw_look_int(json, "count", 0);
    }
    return 0;
}

static struct said look(const struct cluster *cluster, const char *kind, const char *reason,
                        const char *message)
{
    struct said said = {.kind = kind, .reason = reason, .message = message};
    sw_sim_store_each(cluster->store, kind_of(cluster, "events"), "default", NULL, add, &said);
    return said;
}

#define check_said(cluster, kind, reason, message, want_events, want_count) \
    do {                                                                    \
        struct said said_ = look(cluster, kind, reason, message);           \
        assert_int_equal(said_.events, want_events);                        \
        assert_int_equal(said_.count, want_count);                          \
    } while (0)

TEST(a_rollout_is_told_step_by_step)
{
    struct cluster cluster;
    start(&cluster);
    make_workload(&cluster, "deployments", "Deployment", 3);
    sw_loop_virtual_advance(cluster.loop, 60000);
    check_said(&cluster, "Deployment", "ScalingReplicaSet", "Scaled up replica set web-", 1, 1);
    check_said(&cluster, "ReplicaSet", "SuccessfulCreate", "Created pod: web-", 3, 3);
    patch(&cluster, "deployments", "web",
          "{'spec': {'template': {'metadata': {'labels': {'v': '2'}}}}}");
    sw_loop_virtual_advance(cluster.loop, 60000);
    check_said(&cluster, "Deployment", "ScalingReplicaSet", "Scaled up replica set web-", 4, 4);
    check_said(&cluster, "Deployment", "ScalingReplicaSet", "Scaled down replica set web-", 3, 3);
    check_said(&cluster, "ReplicaSet", "SuccessfulDelete", "Deleted pod: web-", 3, 3);
    cluster_done(&cluster);
}

TEST(the_same_again_is_counted)
{
    struct cluster cluster;
    start(&cluster);
    make_workload(&cluster, "deployments", "Deployment", 1);
    for (int i = 0; i < 3; i++) {
        sw_loop_virtual_advance(cluster.loop, 60000);
        patch(&cluster, "deployments", "web", "{'spec': {'replicas': 2}}");
        sw_loop_virtual_advance(cluster.loop, 60000);
        patch(&cluster, "deployments", "web", "{'spec': {'replicas': 1}}");
    }
    sw_loop_virtual_advance(cluster.loop, 60000);
    /* "to 1" at first and by shrinking, "to 2" by growing. */
    check_said(&cluster, "Deployment", "ScalingReplicaSet", "Scaled up", 2, 4);
    check_said(&cluster, "Deployment", "ScalingReplicaSet", "Scaled down", 1, 3);
    cluster_done(&cluster);
}

TEST(many_of_a_kind_are_combined_and_then_silent)
{
    struct cluster cluster;
    start(&cluster);
    make_workload(&cluster, "deployments", "Deployment", 40);
    sw_loop_virtual_advance(cluster.loop, 60000);
    check_said(&cluster, "ReplicaSet", "SuccessfulCreate", "Created pod: ", 9, 9);
    check_said(&cluster, "ReplicaSet", "SuccessfulCreate", "(combined from similar events): ", 1,
               25 - 9);
    cluster_done(&cluster);
}

TEST(sets_of_other_kinds_speak_as_well)
{
    struct cluster cluster;
    start(&cluster);
    make_workload(&cluster, "statefulsets", "StatefulSet", 2);
    make_workload(&cluster, "daemonsets", "DaemonSet", -1);
    sw_loop_virtual_advance(cluster.loop, 60000);
    check_said(&cluster, "StatefulSet", "SuccessfulCreate",
               "create Pod web-1 in StatefulSet web successful", 1, 1);
    check_said(&cluster, "DaemonSet", "SuccessfulCreate", "Created pod: web-", 3, 3);
    patch(&cluster, "statefulsets", "web", "{'spec': {'replicas': 1}}");
    sw_loop_virtual_advance(cluster.loop, 60000);
    check_said(&cluster, "StatefulSet", "SuccessfulDelete",
               "delete Pod web-1 in StatefulSet web successful", 1, 1);
    cluster_done(&cluster);
}

TEST(events_go_after_their_time_unless_they_are_written_again)
{
    struct cluster cluster;
    start(&cluster);
    make_workload(&cluster, "deployments", "Deployment", 1);
    sw_loop_virtual_advance(cluster.loop, TTL_MS / 2);
    patch(&cluster, "deployments", "web", "{'spec': {'replicas': 0}}");
    sw_loop_virtual_advance(cluster.loop, 60000);
    patch(&cluster, "deployments", "web", "{'spec': {'replicas': 1}}");
    sw_loop_virtual_advance(cluster.loop, TTL_MS / 2);
    /* Of the first ones that of the Deployment was counted again, that of the first Pod was not. */
    check_said(&cluster, "Deployment", "ScalingReplicaSet", "Scaled up", 1, 2);
    check_said(&cluster, "ReplicaSet", "SuccessfulCreate", "Created pod: ", 1, 1);
    sw_loop_virtual_advance(cluster.loop, TTL_MS);
    assert_int_equal(sw_sim_store_count(cluster.store, kind_of(&cluster, "events")), 0);
    cluster_done(&cluster);
}

TEST(nothing_is_said_unless_it_is_asked_for)
{
    struct cluster cluster;
    cluster_init(&cluster, 3);
    make_workload(&cluster, "deployments", "Deployment", 3);
    sw_loop_virtual_advance(cluster.loop, 60000);
    assert_int_equal(sw_sim_store_count(cluster.store, kind_of(&cluster, "events")), 0);
    cluster_done(&cluster);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("recorder", a_rollout_is_told_step_by_step),
        CASE("recorder", the_same_again_is_counted),
        CASE("recorder", many_of_a_kind_are_combined_and_then_silent),
        CASE("recorder", sets_of_other_kinds_speak_as_well),
        CASE("recorder", events_go_after_their_time_unless_they_are_written_again),
        CASE("recorder", nothing_is_said_unless_it_is_asked_for),
    };
    return RUN(tests);
}
