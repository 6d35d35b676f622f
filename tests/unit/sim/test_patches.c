/* SPDX-License-Identifier: Apache-2.0 */
/* The patches that need to know nothing of the kind: merge patch and JSON patch. */
#include "base/error.h"
#include "documents.h"
#include "patch.h"

static void check_merge(const char *given, const char *patch_text, const char *wanted)
{
    json_t *before = document(given);
    json_t *patch = document(patch_text);
    json_t *after = sw_sim_merge_patch(before, patch);
    assert_json(after, wanted);
    assert_json(before, given);
    assert_json(patch, patch_text);
    json_decref(after);
    json_decref(before);
    json_decref(patch);
}

static void check_json(const char *given, const char *patch_text, const char *wanted)
{
    json_t *before = document(given);
    json_t *patch = document(patch_text);
    struct sw_error error = {0};
    json_t *after = sw_sim_json_patch(before, patch, &error);
    assert_string_equal(error.text, "");
    assert_json(after, wanted);
    assert_json(before, given);
    json_decref(after);
    json_decref(before);
    json_decref(patch);
}

static void check_refused(const char *given, const char *patch_text, const char *why)
{
    json_t *before = document(given);
    json_t *patch = document(patch_text);
    struct sw_error error = {0};
    assert_null(sw_sim_json_patch(before, patch, &error));
    assert_string_equal(error.text, why);
    assert_json(before, given);
    json_decref(before);
    json_decref(patch);
}

TEST(changes_members_and_drops_nulls)
{
    check_merge("{'a': {'b': 1, 'c': 2}, 'd': 3}", "{'a': {'b': null, 'e': 4}, 'd': [1]}",
                "{'a': {'c': 2, 'e': 4}, 'd': [1]}");
    check_merge("{'a': [1]}", "{'a': [{'x': null, 'y': 1}, null]}", "{'a': [{'y': 1}]}");
    check_merge("{'a': 1}", "{'a': {'b': null, 'c': {}}}", "{'a': {'c': {}}}");
    check_merge("{'a': 1}", "{}", "{'a': 1}");
    check_merge("{'a': {'b': 1}}", "{'a': {}}", "{'a': {'b': 1}}");
}

TEST(does_each_operation)
{
    check_json("{'a': [1, 2]}", "[{'op': 'add', 'path': '/a/1', 'value': 9}]", "{'a': [1, 9, 2]}");
    check_json("{'a': [1]}", "[{'op': 'add', 'path': '/a/-', 'value': 9}]", "{'a': [1, 9]}");
    check_json("{'a': [1]}", "[{'op': 'add', 'path': '/a/-1', 'value': 9}]", "{'a': [1, 9]}");
    check_json("{}", "[{'op': 'add', 'path': '/x~1y~0z', 'value': {}}]", "{'x/y~z': {}}");
    check_json("{'a': [1, 2]}", "[{'op': 'remove', 'path': '/a/0'}]", "{'a': [2]}");
    check_json("{'a': {'b': 1}}", "[{'op': 'remove', 'path': '/a/b'}]", "{'a': {}}");
    check_json("{'a': [1, 2]}", "[{'op': 'replace', 'path': '/a/1', 'value': 3}]", "{'a': [1, 3]}");
    check_json("{}", "[{'op': 'replace', 'path': '/a', 'value': 3}]", "{'a': 3}");
    check_json("{'a': {'b': 1}}", "[{'op': 'move', 'from': '/a/b', 'path': '/c'}]",
               "{'a': {}, 'c': 1}");
    check_json("{'a': {'b': 1}}",
               "[{'op': 'copy', 'from': '/a', 'path': '/c'}, "
               "{'op': 'add', 'path': '/c/d', 'value': 2}]",
               "{'a': {'b': 1}, 'c': {'b': 1, 'd': 2}}");
    check_json("{'a': {'b': [1, 2.0]}}",
               "[{'op': 'test', 'path': '/a', 'value': {'b': [1, 2]}}, "
               "{'op': 'test', 'path': '/none', 'value': null}]",
               "{'a': {'b': [1, 2.0]}}");
}

TEST(refuses_what_does_not_fit)
{
    check_refused("{}", "[{'op': 'remove', 'path': '/a'}]",
                  "error in remove for path: '/a': Unable to remove nonexistent key: a: missing "
                  "value");
    check_refused("{}", "[{'op': 'add', 'path': '/a/b', 'value': 1}]",
                  "add operation does not apply: doc is missing path: \"/a/b\": missing value");
    check_refused("{}", "[{'op': 'replace', 'path': '/a/b', 'value': 1}]",
                  "replace operation does not apply: doc is missing path: /a/b: missing value");
    check_refused("{'a': []}", "[{'op': 'replace', 'path': '/a/0', 'value': 1}]",
                  "replace operation does not apply: doc is missing key: /a/0: missing value");
    check_refused("{'a': 1}", "[{'op': 'test', 'path': '/a', 'value': 2}]",
                  "testing value /a failed: test failed");
    check_refused("{'a': 1}", "[{'op': 'test', 'path': '/b', 'value': 2}]",
                  "testing value /b failed: test failed");
    check_refused("{'a': []}", "[{'op': 'add', 'path': '/a/2', 'value': 1}]",
                  "error in add for path: '/a/2': Unable to access invalid index: 2: invalid "
                  "index referenced");
    check_refused("{}", "[{'op': 'melt', 'path': '/a'}]", "Unexpected kind: melt");
    check_refused("{}", "[{'op': 'copy', 'path': '/a'}]",
                  "copy operation failed to decode from: operation, missing from field: missing "
                  "value");
    check_refused("{}", "[{'op': 'remove'}]",
                  "remove operation failed to decode path: missing value");
}

TEST(undoes_all_where_one_fails)
{
    check_refused("{'a': 1}",
                  "[{'op': 'replace', 'path': '/a', 'value': 2}, "
                  "{'op': 'test', 'path': '/a', 'value': 1}]",
                  "testing value /a failed: test failed");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("merge patch", changes_members_and_drops_nulls),
        CASE("JSON patch", does_each_operation),
        CASE("JSON patch", refuses_what_does_not_fit),
        CASE("JSON patch", undoes_all_where_one_fails),
    };
    return RUN(tests);
}
