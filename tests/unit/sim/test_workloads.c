/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the traces (test_traces.c) do not tell of the controllers: adoption and release, Nodes that
 * come and go, collisions, a controller manager that was away, conflicts, and many at once.
 */
#include "cluster.h"

#define WEB                                                                                    \
    "{'metadata': {'name': '%s'}, 'spec': {'replicas': %d, "                                   \
    "'selector': {'matchLabels': {'app': '%s'}}, 'template': {'metadata': {'labels': {'app': " \
    "'%s'}}, 'spec': {'containers': [{'name': 'web', 'image': 'web:1'}]}}}}"

static void make_web(const struct cluster *cluster, const char *name, int replicas)
{
    SW_AUTO(char, sw_free) text = sw_asprintf(WEB, name, replicas, name, name);
    make(cluster, "deployments", json_of(text));
}

static int64_t status_of(const struct cluster *cluster, const char *plural, const char *name,
                         const char *key)
{
    const struct sw_sim_object *object = find(cluster, plural, name);
    assert_non_null(object);
    return sw_look_int(json_object_get(sw_sim_object_json(object), "status"), key, 0);
}

static void settle(const struct cluster *cluster)
{
    sw_loop_virtual_advance(cluster->loop, 5000);
    assert_true(sw_sim_workloads_is_quiet(cluster->workloads));
}

/* ---- walking the store ---- */

struct found {
    const struct sw_sim_object *first;
    size_t count;
    const char *node; /* NULL: any */
};

static int count_one(void *arg, const struct sw_sim_object *object)
{
    struct found *found = arg;
    const char *node =
        sw_look_string(json_object_get(sw_sim_object_json(object), "spec"), "nodeName");
    if (found->node && strcmp(found->node, node) != 0)
        return 0;
    if (!found->count++)
        found->first = object;
    return 0;
}

static struct found all_of(const struct cluster *cluster, const char *plural, const char *node)
{
    struct found found = {.node = node};
    sw_sim_store_each(cluster->store, kind_of(cluster, plural), NULL, NULL, count_one, &found);
    return found;
}

/* ---- adoption ---- */

TEST(a_replica_set_adopts_orphans_and_releases_what_lost_its_labels)
{
    struct cluster cluster;
    cluster_init(&cluster, 1);
    make(&cluster, "pods",
         json_of("{'metadata': {'name': 'lone', 'labels': {'app': 'web'}}, 'spec': {'containers': "
                 "[{'name': 'web', 'image': 'web:1'}]}}"));
    settle(&cluster);
    make(&cluster, "replicasets",
         json_of("{'metadata': {'name': 'web'}, 'spec': {'replicas': 2, 'selector': "
                 "{'matchLabels': {'app': 'web'}}, 'template': {'metadata': {'labels': {'app': "
                 "'web'}}, 'spec': {'containers': [{'name': 'web', 'image': 'web:1'}]}}}}"));
    settle(&cluster);
    assert_int_equal(all_of(&cluster, "pods", NULL).count, 2);
    assert_int_equal(status_of(&cluster, "replicasets", "web", "availableReplicas"), 2);
    assert_string_equal(
        sw_look_string(sw_look_controller_of(sw_sim_object_json(find(&cluster, "pods", "lone"))),
                       "uid"),
        find(&cluster, "replicasets", "web")->uid);

    patch(&cluster, "pods", "lone", "{'metadata': {'labels': {'app': 'other'}}}");
    settle(&cluster);
    assert_null(sw_look_controller_of(sw_sim_object_json(find(&cluster, "pods", "lone"))));
    assert_int_equal(all_of(&cluster, "pods", NULL).count, 3);
    assert_int_equal(status_of(&cluster, "replicasets", "web", "replicas"), 2);
    cluster_done(&cluster);
}

TEST(a_deployment_adopts_a_replica_set_with_its_template)
{
    struct cluster cluster;
    cluster_init(&cluster, 1);
    make(
        &cluster, "replicasets",
        json_of("{'metadata': {'name': 'web', 'labels': {'app': 'web'}}, 'spec': {'replicas': 2, "
                "'selector': {'matchLabels': {'app': 'web'}}, 'template': {'metadata': {'labels': "
                "{'app': 'web'}}, 'spec': {'containers': [{'name': 'web', 'image': 'web:1'}]}}}}"));
    settle(&cluster);
    make_web(&cluster, "web", 3);
    settle(&cluster);
    assert_int_equal(all_of(&cluster, "replicasets", NULL).count, 1);
    assert_int_equal(status_of(&cluster, "deployments", "web", "updatedReplicas"), 3);
    const json_t *condition =
        sw_look_element(sw_look_at(sw_sim_object_json(find(&cluster, "deployments", "web")),
                                   "status", "conditions", NULL),
                        "type", "Progressing");
    assert_string_equal(sw_look_string(condition, "reason"), "NewReplicaSetAvailable");
    cluster_done(&cluster);
}

#define PART                                                                               \
    "{'metadata': {'name': 'web-%d', 'labels': {'app': 'web'}}, 'spec': {'replicas': %d, " \
    "'selector': {'matchLabels': {'app': 'web', 'pod-template-hash': '%d'}}, 'template': " \
    "{'metadata': {'labels': {'app': 'web', 'pod-template-hash': '%d'}}, 'spec': "         \
    "{'containers': [{'name': 'web', 'image': 'web:%d'}]}}}}"

/* Their status changes all the while: an adoption that a conflict refused would leave a part of
 * them, which were then filled as if it were the whole. */
TEST(a_paused_deployment_adopts_all_replica_sets_or_scales_none)
{
    static const int sizes[] = {2, 1, 6};
    for (int ms = 0; ms < 150; ms++) {
        struct cluster cluster;
        cluster_init(&cluster, 1);
        for (int i = 0; i < 3; i++) {
            SW_AUTO(char, sw_free) text = sw_asprintf(PART, i, sizes[i], i, i, i);
            make(&cluster, "replicasets", json_of(text));
        }
        sw_loop_virtual_advance(cluster.loop, (uint64_t)ms);
        make(&cluster, "deployments",
             json_of("{'metadata': {'name': 'web'}, 'spec': {'replicas': 7, 'paused': true, "
                     "'selector': {'matchLabels': {'app': 'web'}}, 'strategy': {'rollingUpdate': "
                     "{'maxSurge': 2, 'maxUnavailable': 0}}, 'template': {'metadata': {'labels': "
                     "{'app': 'web'}}, 'spec': {'containers': [{'name': 'web', 'image': "
                     "'web:2'}]}}}}"));
        settle(&cluster);
        for (int i = 0; i < 3; i++) {
            SW_AUTO(char, sw_free) name = sw_asprintf("web-%d", i);
            assert_int_equal(status_of(&cluster, "replicasets", name, "replicas"), sizes[i]);
        }
        cluster_done(&cluster);
    }
}

/* ---- names ---- */

TEST(a_name_that_is_taken_counts_as_a_collision)
{
    struct cluster cluster;
    cluster_init(&cluster, 1);
    make_web(&cluster, "web", 1);
    settle(&cluster);
    const struct sw_sim_object *set = all_of(&cluster, "replicasets", NULL).first;
    SW_AUTO(char, sw_free) name = sw_strdup(set->name);
    assert_int_equal(
        sw_sim_delete(cluster.api, find(&cluster, "deployments", "web"), -1, "Background"), 0);
    settle(&cluster);
    assert_int_equal(all_of(&cluster, "replicasets", NULL).count, 0);
    SW_AUTO(char, sw_free)
    text = sw_asprintf("{'metadata': {'name': '%s'}, 'spec': {'replicas': 0, 'selector': "
                       "{'matchLabels': {'app': 'x'}}, 'template': {'metadata': {'labels': {'app': "
                       "'x'}}, 'spec': {'containers': [{'name': 'x', 'image': 'x'}]}}}}",
                       name);
    make(&cluster, "replicasets", json_of(text));
    make_web(&cluster, "web", 1);
    settle(&cluster);
    assert_int_equal(status_of(&cluster, "deployments", "web", "collisionCount"), 1);
    assert_int_equal(status_of(&cluster, "deployments", "web", "availableReplicas"), 1);
    assert_int_equal(all_of(&cluster, "replicasets", NULL).count, 2);
    cluster_done(&cluster);
}

/* ---- a manager that was away ---- */

TEST(a_manager_that_was_away_finds_what_changed)
{
    struct cluster cluster;
    cluster_init(&cluster, 1);
    make_web(&cluster, "web", 2);
    settle(&cluster);
    sw_sim_workloads_set_running(cluster.workloads, false);
    patch(&cluster, "deployments", "web", "{'spec': {'replicas': 4}}");
    make_web(&cluster, "other", 1);
    settle(&cluster);
    assert_int_equal(status_of(&cluster, "deployments", "web", "observedGeneration"), 1);
    assert_int_equal(all_of(&cluster, "pods", NULL).count, 2);
    sw_sim_workloads_set_running(cluster.workloads, true);
    settle(&cluster);
    assert_int_equal(status_of(&cluster, "deployments", "web", "availableReplicas"), 4);
    assert_int_equal(status_of(&cluster, "deployments", "other", "availableReplicas"), 1);
    cluster_done(&cluster);
}

TEST(a_deletion_in_the_middle_leaves_nothing)
{
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct cluster cluster;
        cluster_init(&cluster, seed);
        make_web(&cluster, "web", 5);
        sw_loop_virtual_advance(cluster.loop, seed * 7);
        patch(&cluster, "deployments", "web",
              "{'spec': {'template': {'metadata': {'labels': {'v': '2'}}}}}");
        sw_loop_virtual_advance(cluster.loop, seed * 11 % 200);
        assert_int_equal(
            sw_sim_delete(cluster.api, find(&cluster, "deployments", "web"), -1, "Background"), 0);
        sw_loop_virtual_advance(cluster.loop, 60000);
        assert_int_equal(all_of(&cluster, "pods", NULL).count, 0);
        assert_int_equal(all_of(&cluster, "replicasets", NULL).count, 0);
        assert_true(sw_sim_workloads_is_quiet(cluster.workloads));
        cluster_done(&cluster);
    }
}

/* ---- limits of a rollout, whatever the lags ---- */

struct limits {
    struct sw_sim_store_watcher watcher;
    int64_t most_wanted; /* by all ReplicaSets together, ever */
    int64_t least_available;
    const struct cluster *cluster;
    bool is_on;
};

static int sum_wanted(void *arg, const struct sw_sim_object *object)
{
    *(int64_t *)arg +=
        sw_look_int(json_object_get(sw_sim_object_json(object), "spec"), "replicas", 0);
    return 0;
}

static int sum_ready(void *arg, const struct sw_sim_object *object)
{
    const json_t *ready = sw_look_element(
        sw_look_at(sw_sim_object_json(object), "status", "conditions", NULL), "type", "Ready");
    *(int64_t *)arg +=
        !sw_look_is_deleted(object) && strcmp(sw_look_string(ready, "status"), "True") == 0;
    return 0;
}

static void watch_limits(struct sw_sim_store_watcher *watcher, const struct sw_sim_change *change)
{
    struct limits *limits = container_of(watcher, struct limits, watcher);
    (void)change;
    if (!limits->is_on)
        return;
    int64_t wanted = 0, ready = 0;
    sw_sim_store_each(limits->cluster->store, kind_of(limits->cluster, "replicasets"), NULL, NULL,
                      sum_wanted, &wanted);
    sw_sim_store_each(limits->cluster->store, kind_of(limits->cluster, "pods"), NULL, NULL,
                      sum_ready, &ready);
    limits->most_wanted = SW_MAX(limits->most_wanted, wanted);
    limits->least_available = SW_MIN(limits->least_available, ready);
}

TEST(a_rollout_keeps_its_limits_whatever_the_lags)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct cluster cluster;
        cluster_init(&cluster, seed);
        make_web(&cluster, "web", 8);
        patch(&cluster, "deployments", "web",
              "{'spec': {'strategy': {'rollingUpdate': {'maxSurge': '20%', 'maxUnavailable': "
              "'15%'}}}}");
        settle(&cluster);
        struct limits limits = {
            .watcher = {.on_change = watch_limits}, .least_available = 8, .cluster = &cluster};
        sw_sim_store_watch(cluster.store, &limits.watcher);
        limits.is_on = true;
        patch(&cluster, "deployments", "web",
              "{'spec': {'template': {'metadata': {'labels': {'v': '2'}}}}}");
        settle(&cluster);
        assert_int_equal(status_of(&cluster, "deployments", "web", "updatedReplicas"), 8);
        assert_int_equal(limits.most_wanted, 10);    /* 20% of 8, rounded up */
        assert_int_equal(limits.least_available, 7); /* 15% of 8, rounded down */
        sw_sim_store_unwatch(cluster.store, &limits.watcher);
        cluster_done(&cluster);
    }
}

/* ---- DaemonSets and Nodes ---- */

#define AGENT                                                                                  \
    "{'metadata': {'name': 'agent'}, 'spec': {'selector': {'matchLabels': {'app': 'agent'}}, " \
    "'template': {'metadata': {'labels': {'app': 'agent'}}, 'spec': {'containers': [{'name': " \
    "'a', "                                                                                    \
    "'image': 'a:1'}]}}}}"

TEST(a_daemon_set_follows_the_nodes)
{
    struct cluster cluster;
    cluster_init(&cluster, 1);
    make(&cluster, "daemonsets", json_of(AGENT));
    settle(&cluster);
    assert_int_equal(status_of(&cluster, "daemonsets", "agent", "numberAvailable"), 3);
    assert_int_equal(all_of(&cluster, "pods", "node-2").count, 1);

    assert_int_equal(tell(&cluster, "POST", "/nodes", "{'count': 5}"), 200);
    settle(&cluster);
    assert_int_equal(status_of(&cluster, "daemonsets", "agent", "numberAvailable"), 5);

    const struct sw_sim_object *node =
        sw_sim_store_get(cluster.store, kind_of(&cluster, "nodes"), "", "node-2");
    assert_int_equal(sw_sim_delete(cluster.api, node, 0, NULL), 0);
    settle(&cluster);
    assert_int_equal(status_of(&cluster, "daemonsets", "agent", "desiredNumberScheduled"), 4);
    assert_int_equal(all_of(&cluster, "pods", NULL).count, 4);

    node = sw_sim_store_get(cluster.store, kind_of(&cluster, "nodes"), "", "node-3");
    json_t *tainted = sw_look_copy(sw_sim_object_json(node));
    json_object_set_new(sw_look_own(tainted, "spec"), "taints",
                        json_of("[{'key': 'only', 'value': 'db', 'effect': 'NoExecute'}]"));
    assert_int_equal(sw_sim_update(cluster.api, kind_of(&cluster, "nodes"), tainted), 0);
    settle(&cluster);
    assert_int_equal(status_of(&cluster, "daemonsets", "agent", "desiredNumberScheduled"), 3);
    assert_int_equal(all_of(&cluster, "pods", "node-3").count, 0);
    cluster_done(&cluster);
}

TEST(a_daemon_set_keeps_no_more_revisions_than_it_may)
{
    struct cluster cluster;
    cluster_init(&cluster, 1);
    make(&cluster, "daemonsets", json_of(AGENT));
    patch(&cluster, "daemonsets", "agent", "{'spec': {'revisionHistoryLimit': 1}}");
    settle(&cluster);
    for (int i = 2; i < 6; i++) {
        SW_AUTO(char, sw_free)
        text = sw_asprintf("{'spec': {'template': {'metadata': {'labels': {'v': '%d'}}}}}", i);
        patch(&cluster, "daemonsets", "agent", text);
        settle(&cluster);
    }
    assert_int_equal(all_of(&cluster, "controllerrevisions", NULL).count, 2);
    assert_int_equal(status_of(&cluster, "daemonsets", "agent", "updatedNumberScheduled"), 3);
    cluster_done(&cluster);
}

/* ---- many ---- */

TEST(a_thousand_deployments_settle)
{
    enum { COUNT = 1000 };
    struct cluster cluster;
    cluster_init(&cluster, 1);
    char name[24];
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof(name), "web-%04d", i);
        make_web(&cluster, name, 2);
    }
    settle(&cluster);
    assert_int_equal(all_of(&cluster, "pods", NULL).count, 2 * COUNT);
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof(name), "web-%04d", i);
        assert_int_equal(status_of(&cluster, "deployments", name, "availableReplicas"), 2);
    }
    cluster_done(&cluster);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("workloads", a_replica_set_adopts_orphans_and_releases_what_lost_its_labels),
        CASE("workloads", a_deployment_adopts_a_replica_set_with_its_template),
        CASE("workloads", a_paused_deployment_adopts_all_replica_sets_or_scales_none),
        CASE("workloads", a_name_that_is_taken_counts_as_a_collision),
        CASE("workloads", a_manager_that_was_away_finds_what_changed),
        CASE("workloads", a_deletion_in_the_middle_leaves_nothing),
        CASE("workloads", a_rollout_keeps_its_limits_whatever_the_lags),
        CASE("workloads", a_daemon_set_follows_the_nodes),
        CASE("workloads", a_daemon_set_keeps_no_more_revisions_than_it_may),
        CASE("workloads", a_thousand_deployments_settle),
    };
    return RUN(tests);
}
