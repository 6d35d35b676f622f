/* SPDX-License-Identifier: Apache-2.0 */
/* The table of built-in kinds, and what their defaults fill in. */
#include "documents.h"

static void check(const char *group, const char *kind, const char *given, const char *wanted)
{
    json_t *object = document(given);
    kind_of(group, kind)->set_defaults(object);
    assert_json(object, wanted);
    kind_of(group, kind)->set_defaults(object);
    assert_json(object, wanted); /* once is enough */
    json_decref(object);
}

/* A kind may be served in two versions; then it is one and the same. */
TEST(names_no_kind_twice)
{
    size_t count;
    const struct sw_sim_kind *kinds = sw_sim_builtin_kinds(&count);
    assert_true(count > 20);
    for (size_t i = 0; i < count; i++) {
        assert_non_null(kinds[i].singular);
        for (size_t j = 0; j < i; j++) {
            if (strcmp(kinds[i].group, kinds[j].group) == 0 &&
                strcmp(kinds[i].plural, kinds[j].plural) == 0) {
                assert_string_not_equal(kinds[i].version, kinds[j].version);
                assert_ptr_equal(kinds[i].fields, kinds[j].fields);
                assert_string_equal(kinds[i].kind, kinds[j].kind);
            }
        }
    }
}

TEST(fills_in_a_deployment)
{
    check("apps", "Deployment",
          "{'spec': {'replicas': null, 'template': {'spec': {'containers': "
          "[{'name': 'a', 'image': 'r:5000/b', 'ports': [{'containerPort': 80}]}]}}}}",
          "{'spec': {'replicas': 1, 'revisionHistoryLimit': 10, 'progressDeadlineSeconds': 600, "
          "'strategy': {'type': 'RollingUpdate', 'rollingUpdate': {'maxSurge': '25%', "
          "'maxUnavailable': '25%'}}, 'template': {'spec': {'restartPolicy': 'Always', "
          "'dnsPolicy': 'ClusterFirst', 'schedulerName': 'default-scheduler', "
          "'securityContext': {}, 'terminationGracePeriodSeconds': 30, 'containers': "
          "[{'name': 'a', 'image': 'r:5000/b', 'imagePullPolicy': 'Always', 'resources': {}, "
          "'terminationMessagePath': '/dev/termination-log', 'terminationMessagePolicy': 'File', "
          "'ports': [{'containerPort': 80, 'protocol': 'TCP'}]}]}}}}");
}

TEST(leaves_what_is_said)
{
    check("apps", "Deployment",
          "{'spec': {'replicas': 0, 'revisionHistoryLimit': 0, 'progressDeadlineSeconds': 5, "
          "'strategy': {'type': 'Recreate'}}}",
          "{'spec': {'replicas': 0, 'revisionHistoryLimit': 0, 'progressDeadlineSeconds': 5, "
          "'strategy': {'type': 'Recreate'}}}");
}

TEST(fills_in_the_other_workloads)
{
    check("apps", "ReplicaSet", "{}", "{'spec': {'replicas': 1}}");
    check("apps", "StatefulSet", "{}",
          "{'spec': {'replicas': 1, 'revisionHistoryLimit': 10, 'podManagementPolicy': "
          "'OrderedReady', 'updateStrategy': {'type': 'RollingUpdate', 'rollingUpdate': "
          "{'partition': 0}}}}");
    check("apps", "StatefulSet", "{'spec': {'updateStrategy': {'type': 'RollingUpdate'}}}",
          "{'spec': {'replicas': 1, 'revisionHistoryLimit': 10, 'podManagementPolicy': "
          "'OrderedReady', 'updateStrategy': {'type': 'RollingUpdate'}}}");
    check("apps", "DaemonSet", "{}",
          "{'spec': {'revisionHistoryLimit': 10, 'updateStrategy': {'type': 'RollingUpdate', "
          "'rollingUpdate': {'maxUnavailable': 1}}}}");
}

TEST(tells_the_latest_image_from_others)
{
    static const struct {
        const char *image, *policy;
    } images[] = {
        {"a", "Always"},         {"a:latest", "Always"},         {"r:5000/a", "Always"},
        {"a:1", "IfNotPresent"}, {"r:5000/a:1", "IfNotPresent"}, {"a@sha256:0", "IfNotPresent"},
    };
    for (size_t i = 0; i < sizeof(images) / sizeof(*images); i++) {
        json_t *pod = json_pack("{s:{s:[{s:s}]}}", "spec", "containers", "image", images[i].image);
        kind_of("", "Pod")->set_defaults(pod);
        const json_t *container =
            json_array_get(json_object_get(json_object_get(pod, "spec"), "containers"), 0);
        assert_string_equal(json_string_value(json_object_get(container, "imagePullPolicy")),
                            images[i].policy);
        json_decref(pod);
    }
}

TEST(fills_in_a_service)
{
    check("", "Service", "{'spec': {'ports': [{'port': 80}, {'port': 1, 'targetPort': 'web'}]}}",
          "{'spec': {'type': 'ClusterIP', 'sessionAffinity': 'None', 'ports': [{'port': 80, "
          "'protocol': 'TCP', 'targetPort': 80}, {'port': 1, 'protocol': 'TCP', "
          "'targetPort': 'web'}]}}");
}

TEST(fills_in_what_extends_the_api)
{
    check("apiextensions.k8s.io", "CustomResourceDefinition",
          "{'spec': {'names': {'kind': 'Wid'}}}",
          "{'spec': {'names': {'kind': 'Wid', 'singular': 'wid', 'listKind': 'WidList'}, "
          "'conversion': {'strategy': 'None'}}}");
    check("admissionregistration.k8s.io", "MutatingWebhookConfiguration",
          "{'webhooks': [{'clientConfig': {'service': {'name': 'a'}}, 'rules': [{}]}]}",
          "{'webhooks': [{'clientConfig': {'service': {'name': 'a', 'port': 443}}, 'rules': "
          "[{'scope': '*'}], 'failurePolicy': 'Fail', 'matchPolicy': 'Equivalent', "
          "'namespaceSelector': {}, 'objectSelector': {}, 'timeoutSeconds': 10, "
          "'reinvocationPolicy': 'Never'}]}");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("kinds", names_no_kind_twice),
        CASE("defaults", fills_in_a_deployment),
        CASE("defaults", leaves_what_is_said),
        CASE("defaults", fills_in_the_other_workloads),
        CASE("defaults", tells_the_latest_image_from_others),
        CASE("defaults", fills_in_a_service),
        CASE("defaults", fills_in_what_extends_the_api),
    };
    return RUN(tests);
}
