/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scheduler and kubelets: where Pods go, how they start, crash, flap and end, and the settings by
 * which they are told to.
 */
#include "cluster.h"

#define POD                                                                             \
    "{'metadata': {'name': 'p', 'labels': {'app': 'web'}%s}, 'spec': {%s'containers': " \
    "[{'name': 'c', 'image': 'c:1'}]}}"

static void make_pod(const struct cluster *cluster, const char *meta, const char *spec)
{
    SW_AUTO(char, sw_free) text = sw_asprintf(POD, meta, spec);
    make(cluster, "pods", json_of(text));
}

static const json_t *status_of(const struct cluster *cluster)
{
    const struct sw_sim_object *pod = find(cluster, "pods", "p");
    return pod ? json_object_get(sw_sim_object_json(pod), "status") : NULL;
}

static const char *phase_of(const struct cluster *cluster)
{
    return sw_look_string(status_of(cluster), "phase");
}

static const char *condition_of(const struct cluster *cluster, const char *type, const char *key)
{
    return sw_look_string(
        sw_look_element(json_object_get(status_of(cluster), "conditions"), "type", type), key);
}

static bool is_ready(const struct cluster *cluster)
{
    return strcmp(condition_of(cluster, "Ready", "status"), "True") == 0;
}

static const json_t *container_of_pod(const struct cluster *cluster)
{
    return json_array_get(json_object_get(status_of(cluster), "containerStatuses"), 0);
}

static const char *waiting_of(const struct cluster *cluster)
{
    return sw_look_string(sw_look_at(container_of_pod(cluster), "state", "waiting", NULL),
                          "reason");
}

static const char *node_of(const struct cluster *cluster)
{
    return sw_look_string(json_object_get(sw_sim_object_json(find(cluster, "pods", "p")), "spec"),
                          "nodeName");
}

static void wait_ms(const struct cluster *cluster, uint64_t ms)
{
    sw_loop_virtual_advance(cluster->loop, ms);
}

TEST(a_pod_is_bound_starts_and_becomes_ready)
{
    struct cluster cluster;
    cluster_init(&cluster, 1);
    make_pod(&cluster, "", "");
    assert_string_equal(phase_of(&cluster), "Pending");
    wait_ms(&cluster, 50);
    assert_string_equal(node_of(&cluster), "node-1");
    assert_string_equal(phase_of(&cluster), "Pending");
    assert_string_equal(waiting_of(&cluster), "ContainerCreating");
    assert_string_equal(condition_of(&cluster, "PodScheduled", "status"), "True");
    wait_ms(&cluster, 100);
    assert_string_equal(phase_of(&cluster), "Running");
    assert_true(is_ready(&cluster));
    assert_true(sw_look_bool(container_of_pod(&cluster), "ready", false));
    assert_string_equal(sw_look_string(status_of(&cluster), "podIP"), "10.1.0.1");
    cluster_done(&cluster);
}

TEST(a_pod_goes_only_where_it_may)
{
    struct cluster cluster;
    cluster_init(&cluster, 1);
    make_pod(&cluster, "", "'nodeSelector': {'topology.kubernetes.io/zone': 'c'}, ");
    wait_ms(&cluster, 50);
    assert_string_equal(node_of(&cluster), "node-3");
    cluster_done(&cluster);

    cluster_init(&cluster, 1);
    for (int i = 1; i <= 3; i++) {
        char path[40];
        snprintf(path, sizeof(path), "/nodes/node-%d/cordon", i);
        assert_int_equal(tell(&cluster, "POST", path, NULL), 200);
    }
    make_pod(&cluster, "", "");
    wait_ms(&cluster, 1000);
    assert_string_equal(node_of(&cluster), "");
    assert_string_equal(condition_of(&cluster, "PodScheduled", "reason"), "Unschedulable");
    assert_int_equal(tell(&cluster, "POST", "/nodes/node-2/uncordon", NULL), 200);
    wait_ms(&cluster, 1000);
    assert_string_equal(node_of(&cluster), "node-2");
    assert_true(is_ready(&cluster));
    cluster_done(&cluster);
}

TEST(rules_come_before_annotations_and_these_before_defaults)
{
    struct cluster cluster;
    cluster_init(&cluster, 1);
    assert_int_equal(tell(&cluster, "PATCH", "/settings", "{'start': '10s'}"), 200);
    make_pod(&cluster, ", 'annotations': {'kubelets.slipway.dev/start': '1s'}", "");
    wait_ms(&cluster, 1100);
    assert_true(is_ready(&cluster));
    assert_int_equal(
        tell(&cluster, "PUT", "/settings/broken", "{'selector': 'app in (web)', 'ready': false}"),
        200);
    wait_ms(&cluster, 50);
    assert_false(is_ready(&cluster));
    assert_int_equal(tell(&cluster, "PUT", "/settings/other", "{'pod': 'p', 'ready': 'true'}"),
                     200);
    wait_ms(&cluster, 50);
    assert_true(is_ready(&cluster));
    assert_int_equal(tell(&cluster, "DELETE", "/settings/other", NULL), 200);
    assert_int_equal(tell(&cluster, "DELETE", "/settings/other", NULL), 404);
    wait_ms(&cluster, 50);
    assert_false(is_ready(&cluster));
    cluster_done(&cluster);
}

TEST(a_setting_that_makes_no_sense_is_refused_or_shown)
{
    struct cluster cluster;
    cluster_init(&cluster, 1);
    static const char *const wrong[] = {
        "{'start': '3 s'}", "{'stop': 'soon'}",  "{'ready': 'maybe'}", "{'fail': 'Tired'}",
        "{'flap': '10ms'}", "{'colour': 'red'}", "{'start': '1.s'}",   "{'start': ''}",
        "{'start': '1s2'}", "{'start': '-1s'}",
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(wrong); i++)
        assert_int_equal(tell(&cluster, "PATCH", "/settings", wrong[i]), 400);
    assert_int_equal(tell(&cluster, "PUT", "/settings/x", "{'pod': 'p'}"), 400);
    assert_int_equal(tell(&cluster, "PUT", "/settings/x", "{'selector': '=', 'ready': true}"), 400);
    make_pod(&cluster, ", 'annotations': {'kubelets.slipway.dev/start': 'soon'}", "");
    wait_ms(&cluster, 1000);
    assert_string_equal(phase_of(&cluster), "Pending");
    assert_string_equal(waiting_of(&cluster), "BadKubeletSettings");
    cluster_done(&cluster);
}

TEST(durations_are_read_as_tools_kubelets_reads_them)
{
    struct cluster cluster;
    cluster_init(&cluster, 1);
    static const struct {
        const char *text;
        double seconds;
    } right[] = {{"2", 2},       {"0.5", 0.5}, {"1m30s", 90}, {"200ms", 0.2},
                 {"1.5h", 5400}, {"1.1", 1.1}, {"0", 0}};
    for (size_t i = 0; i < SW_ARRAY_SIZE(right); i++) {
        json_t *body = json_pack("{s:s}", "start", right[i].text), *answer = NULL;
        assert_int_equal(sw_sim_pods_tell(cluster.pods, "PATCH", "/settings", body, &answer), 200);
        assert_true(json_number_value(sw_look_at(answer, "defaults", "start", NULL)) ==
                    right[i].seconds);
        json_decref(body);
        json_decref(answer);
    }
    cluster_done(&cluster);
}

TEST(a_failing_pod_crashes_again_and_again_and_recovers)
{
    struct cluster cluster;
    cluster_init(&cluster, 1);
    tell(&cluster, "PUT", "/settings/bad", "{'pod': 'p', 'fail': 'CrashLoopBackOff'}");
    make_pod(&cluster, "", "");
    wait_ms(&cluster, 500);
    assert_string_equal(phase_of(&cluster), "Running");
    assert_string_equal(waiting_of(&cluster), "CrashLoopBackOff");
    assert_int_equal(sw_look_int(container_of_pod(&cluster), "restartCount", 0), 0);
    wait_ms(&cluster, 3500); /* after 1 s, and 2 s later */
    assert_int_equal(sw_look_int(container_of_pod(&cluster), "restartCount", 0), 2);
    assert_false(is_ready(&cluster));
    tell(&cluster, "DELETE", "/settings", NULL);
    wait_ms(&cluster, 50);
    assert_true(is_ready(&cluster));
    cluster_done(&cluster);
}

TEST(a_pod_that_never_ran_stays_pending)
{
    struct cluster cluster;
    cluster_init(&cluster, 1);
    make_pod(&cluster, ", 'annotations': {'kubelets.slipway.dev/fail': 'ImagePullBackOff'}", "");
    wait_ms(&cluster, 60000);
    assert_string_equal(phase_of(&cluster), "Pending");
    assert_string_equal(waiting_of(&cluster), "ImagePullBackOff");
    cluster_done(&cluster);
}

TEST(a_crash_makes_it_unready_for_a_while)
{
    struct cluster cluster;
    cluster_init(&cluster, 1);
    make_pod(&cluster, "", "");
    assert_int_equal(tell(&cluster, "POST", "/crash", "{'pod': 'p'}"), 404); /* runs not yet */
    wait_ms(&cluster, 200);
    assert_int_equal(tell(&cluster, "POST", "/crash", "{'pod': 'p', 'down': '3s'}"), 200);
    wait_ms(&cluster, 100);
    assert_false(is_ready(&cluster));
    assert_int_equal(sw_look_int(container_of_pod(&cluster), "restartCount", 0), 1);
    wait_ms(&cluster, 3000);
    assert_true(is_ready(&cluster));
    assert_int_equal(tell(&cluster, "POST", "/crash", "{}"), 400);
    assert_int_equal(tell(&cluster, "POST", "/crash", "{'colour': 'red'}"), 400);
    cluster_done(&cluster);
}

TEST(a_flapping_pod_is_ready_and_not_ready_in_turn)
{
    struct cluster cluster;
    cluster_init(&cluster, 1);
    make_pod(&cluster, ", 'annotations': {'kubelets.slipway.dev/flap': '1s'}", "");
    wait_ms(&cluster, 600);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(is_ready(&cluster), i % 2 == 0);
        wait_ms(&cluster, 1000);
    }
    cluster_done(&cluster);
}

TEST(a_readiness_gate_is_waited_for)
{
    struct cluster cluster;
    cluster_init(&cluster, 1);
    make_pod(&cluster, "", "'readinessGates': [{'conditionType': 'example.com/open'}], ");
    wait_ms(&cluster, 1000);
    assert_false(is_ready(&cluster));
    assert_string_equal(condition_of(&cluster, "Ready", "reason"), "ReadinessGatesNotReady");
    const struct sw_sim_object *pod = find(&cluster, "pods", "p");
    json_t *status = json_deep_copy(json_object_get(sw_sim_object_json(pod), "status"));
    json_array_append_new(json_object_get(status, "conditions"),
                          json_of("{'type': 'example.com/open', 'status': 'True'}"));
    assert_int_equal(sw_sim_update_status(cluster.api, pod->kind, sw_look_with_status(pod, status)),
                     0);
    wait_ms(&cluster, 50);
    assert_true(is_ready(&cluster));
    assert_string_equal(condition_of(&cluster, "example.com/open", "status"), "True");
    cluster_done(&cluster);
}

static void delete_pod(const struct cluster *cluster)
{
    assert_int_equal(sw_sim_delete(cluster->api, find(cluster, "pods", "p"), -1, NULL), 0);
}

TEST(a_deleted_pod_is_there_until_it_has_stopped)
{
    struct cluster cluster;
    cluster_init(&cluster, 1);
    make_pod(&cluster, ", 'annotations': {'kubelets.slipway.dev/stop': '2s'}",
             "'terminationGracePeriodSeconds': 10, ");
    wait_ms(&cluster, 500);
    delete_pod(&cluster);
    wait_ms(&cluster, 1900);
    assert_true(sw_look_is_deleted(find(&cluster, "pods", "p")));
    wait_ms(&cluster, 200);
    assert_null(find(&cluster, "pods", "p"));

    make_pod(&cluster, ", 'annotations': {'kubelets.slipway.dev/stop': 'grace'}",
             "'terminationGracePeriodSeconds': 10, ");
    wait_ms(&cluster, 500);
    delete_pod(&cluster);
    wait_ms(&cluster, 9900);
    assert_non_null(find(&cluster, "pods", "p"));
    wait_ms(&cluster, 200);
    assert_null(find(&cluster, "pods", "p"));
    cluster_done(&cluster);
}

TEST(a_node_that_is_drained_loses_its_pods)
{
    struct cluster cluster;
    cluster_init(&cluster, 1);
    make_pod(&cluster, "", "");
    wait_ms(&cluster, 500);
    assert_int_equal(tell(&cluster, "POST", "/nodes/node-1/drain", NULL), 200);
    assert_int_equal(tell(&cluster, "POST", "/nodes/nowhere/drain", NULL), 404);
    assert_int_equal(tell(&cluster, "POST", "/nodes/node-1/paint", NULL), 404);
    wait_ms(&cluster, 500);
    assert_null(find(&cluster, "pods", "p"));
    make_pod(&cluster, "", "");
    wait_ms(&cluster, 500);
    assert_string_equal(node_of(&cluster), "node-2");
    cluster_done(&cluster);
}

TEST(a_node_that_others_create_is_made_ready)
{
    struct cluster cluster;
    cluster_init(&cluster, 1);
    make(&cluster, "nodes",
         json_of("{'metadata': {'name': 'big', 'labels': {'size': 'big'}}, 'spec': {'taints': "
                 "[{'key': 'node.kubernetes.io/not-ready', 'effect': 'NoSchedule'}]}}"));
    make_pod(&cluster, "", "'nodeSelector': {'size': 'big'}, ");
    wait_ms(&cluster, 500);
    assert_string_equal(node_of(&cluster), "big");
    assert_true(is_ready(&cluster));
    cluster_done(&cluster);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("pods", a_pod_is_bound_starts_and_becomes_ready),
        CASE("pods", a_pod_goes_only_where_it_may),
        CASE("pods", rules_come_before_annotations_and_these_before_defaults),
        CASE("pods", a_setting_that_makes_no_sense_is_refused_or_shown),
        CASE("pods", durations_are_read_as_tools_kubelets_reads_them),
        CASE("pods", a_failing_pod_crashes_again_and_again_and_recovers),
        CASE("pods", a_pod_that_never_ran_stays_pending),
        CASE("pods", a_crash_makes_it_unready_for_a_while),
        CASE("pods", a_flapping_pod_is_ready_and_not_ready_in_turn),
        CASE("pods", a_readiness_gate_is_waited_for),
        CASE("pods", a_deleted_pod_is_there_until_it_has_stopped),
        CASE("pods", a_node_that_is_drained_loses_its_pods),
        CASE("pods", a_node_that_others_create_is_made_ready),
    };
    return RUN(tests);
}
