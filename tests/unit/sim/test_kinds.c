/* SPDX-License-Identifier: Apache-2.0 */
/* Built-in kinds: how they are read, what they refuse, and the rows of their tables. */
#include <errno.h>

#include "base/error.h"
#include "documents.h"
#include "quantity.h"
#include "rows.h"

static void check_read(const char *group, const char *kind, const char *given, const char *wanted)
{
    json_t *object = document(given);
    struct sw_error error = {0};
    assert_int_equal(sw_sim_decode(kind_of(group, kind), object, &error), 0);
    assert_json(object, wanted);
    json_decref(object);
}

TEST(reads_as_the_server_does)
{
    check_read("", "ConfigMap",
               "{'metadata': {'name': 'a', 'labels': {}}, 'data': {'a': ''}, 'b': 1}",
               "{'metadata': {'name': 'a'}, 'data': {'a': ''}}");
    check_read(
        "apps", "Deployment",
        "{'spec': {'replicas': 0, 'paused': false, 'selector': {'matchLabels': {}}, "
        "'template': {'spec': {'containers': [{'name': 'a', 'args': [], 'stdin': false}]}}}}",
        "{'metadata': {}, 'status': {}, 'spec': {'replicas': 0, 'selector': {}, 'strategy': "
        "{}, 'template': {'metadata': {'creationTimestamp': null}, 'spec': {'containers': "
        "[{'name': 'a', 'resources': {}}]}}}}");
    check_read("coordination.k8s.io", "Lease",
               "{'spec': {'leaseTransitions': 0, 'holderIdentity': '', 'renewTime': "
               "'2020-01-01T02:00:00.000001+02:00', 'acquireTime': null}}",
               "{'metadata': {}, 'spec': {'leaseTransitions': 0, 'holderIdentity': '', "
               "'renewTime': '2020-01-01T00:00:00.000001Z'}}");
}

TEST(says_where_a_type_is_wrong)
{
    json_t *object = document("{'spec': {'template': {'spec': {'containers': [{'name': 1}]}}}}");
    struct sw_error error = {0};
    assert_int_equal(sw_sim_decode(kind_of("apps", "Deployment"), object, &error), -EINVAL);
    assert_string_equal(error.text,
                        "Deployment in version \"v1\" cannot be handled as a Deployment: "
                        "spec.template.spec.containers[0].name: cannot be read as string");
    json_decref(object);
}

TEST(writes_quantities_in_one_way)
{
    static const struct {
        const char *given, *wanted;
    } amounts[] = {
        {"'1000m'", "1"},  {"'1500m'", "1500m"}, {"0.5", "500m"},
        {"2", "2"},        {"'1024Mi'", "1Gi"},  {"'1.5Gi'", "1536Mi"},
        {"'1000k'", "1M"}, {"'0'", "0"},         {"'0.1Gi'", "107374182400m"},
        {"'1e3'", "1e3"},  {"'512'", "512"},     {"'100M'", "100M"},
    };
    for (size_t i = 0; i < sizeof(amounts) / sizeof(*amounts); i++) {
        json_t *given = document(amounts[i].given);
        json_t *written = sw_sim_quantity_write(given);
        assert_non_null(written);
        assert_string_equal(json_string_value(written), amounts[i].wanted);
        json_decref(given);
        json_decref(written);
    }
    static const char *const bad[] = {"''", "'x'", "'1Q'", "'1.1.1'", "'99999999999999999999Ei'"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        json_t *given = document(bad[i]);
        assert_null(sw_sim_quantity_write(given));
        json_decref(given);
    }
}

TEST(holds_on_to_selectors)
{
    const char *text =
        "{'spec': {'selector': {'matchLabels': {'a': 'b'}}, 'template': {'metadata': "
        "{'labels': {'a': 'b'}}, 'spec': {'restartPolicy': 'Always', 'containers': "
        "[{'name': 'a', 'image': 'a'}]}}}}";
    json_t *old = document(text);
    json_t *new = document(text);
    json_t *causes = json_array();
    const struct sw_sim_kind *kind = kind_of("apps", "ReplicaSet");
    kind->validate(new, old, causes);
    assert_json(causes, "[]");
    json_object_set_new(json_object_get(json_object_get(old, "spec"), "selector"), "matchLabels",
                        document("{'a': 'c'}"));
    kind->validate(new, old, causes);
    assert_int_equal(json_array_size(causes), 1);
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(causes, 0), "message")),
        "Invalid value: v1.LabelSelector{MatchLabels:map[string]string{\"a\":\"b\"}, "
        "MatchExpressions:[]v1.LabelSelectorRequirement(nil)}: field is immutable");
    json_decref(causes);
    json_decref(old);
    json_decref(new);
}

TEST(makes_a_cell_for_each_column)
{
    size_t count;
    const struct sw_sim_kind *kinds = sw_sim_builtin_kinds(&count);
    json_t *nothing = json_object();
    for (size_t i = 0; i < count; i++) {
        size_t wanted = 0;
        for (size_t c = 0; c < kinds[i].column_count; c++) {
            wanted += kinds[i].columns[c].json_path == NULL;
        }
        assert_true(wanted == 0 || kinds[i].make_row != NULL);
        json_t *row = kinds[i].make_row ? kinds[i].make_row(nothing, 0) : json_array();
        assert_non_null(row);
        assert_int_equal(json_array_size(row), wanted);
        json_decref(row);
    }
    json_decref(nothing);
}

TEST(shows_pods_as_they_are)
{
    static const struct {
        const char *pod, *row;
    } pods[] = {
        {"{'spec': {'containers': [{}]}, 'status': {'phase': 'Running', 'podIP': '1.2.3.4', "
         "'containerStatuses': [{'ready': true, 'restartCount': 2, 'state': {'running': {}}}]}}",
         "['1/1', 'Running', 2, '<unknown>', '1.2.3.4', '<none>', '<none>', '<none>']"},
        {"{'spec': {'containers': [{}]}, 'status': {'phase': 'Running', 'containerStatuses': "
         "[{'state': {'waiting': {'reason': 'CrashLoopBackOff'}}}]}}",
         "['0/1', 'CrashLoopBackOff', 0, '<unknown>', '<none>', '<none>', '<none>', '<none>']"},
        {"{'metadata': {'deletionTimestamp': 'x'}, 'spec': {'containers': [{}, {}]}, 'status': "
         "{'phase': 'Running'}}",
         "['0/2', 'Terminating', 0, '<unknown>', '<none>', '<none>', '<none>', '<none>']"},
        {"{'spec': {'containers': [{}], 'initContainers': [{}, {}]}, 'status': {'phase': "
         "'Pending', "
         "'initContainerStatuses': [{'state': {'terminated': {'exitCode': 0}}}, {'state': "
         "{'running': {}}}]}}",
         "['0/1', 'Init:1/2', 0, '<unknown>', '<none>', '<none>', '<none>', '<none>']"},
    };
    for (size_t i = 0; i < sizeof(pods) / sizeof(*pods); i++) {
        json_t *pod = document(pods[i].pod);
        json_t *row = sw_sim_row_pod(pod, 0);
        assert_json(row, pods[i].row);
        json_decref(row);
        json_decref(pod);
    }
}

TEST(writes_ages_as_kubectl_does)
{
    static const struct {
        int64_t seconds;
        const char *text;
    } ages[] = {
        {-5, "<invalid>"}, {0, "0s"},       {119, "119s"},    {120, "2m"},     {599, "9m59s"},
        {600, "10m"},      {10799, "179m"}, {10800, "3h"},    {10860, "3h1m"}, {28800, "8h"},
        {172799, "47h"},   {172800, "2d"},  {176400, "2d1h"}, {691200, "8d"},  {63072000, "2y"},
    };
    for (size_t i = 0; i < sizeof(ages) / sizeof(*ages); i++) {
        json_t *cell = sw_sim_cell_since("1970-01-01T00:00:00Z", ages[i].seconds * 1000000);
        assert_string_equal(json_string_value(cell), ages[i].text);
        json_decref(cell);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("decode", reads_as_the_server_does),       CASE("decode", says_where_a_type_is_wrong),
        CASE("quantity", writes_quantities_in_one_way), CASE("validate", holds_on_to_selectors),
        CASE("table", makes_a_cell_for_each_column),    CASE("table", shows_pods_as_they_are),
        CASE("table", writes_ages_as_kubectl_does),
    };
    return RUN(tests);
}
