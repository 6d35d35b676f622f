/* SPDX-License-Identifier: Apache-2.0 */
/* Patches that know the kind: strategic merge patch, apply, and who owns what. */
#include <errno.h>

#include "base/error.h"
#include "documents.h"
#include "patch.h"

/* ---- strategic merge patch ---- */

#define POD(containers) \
    "{'apiVersion': 'v1', 'kind': 'Pod', 'spec': {'containers': " containers "}}"

static void check(const char *given, const char *patch_text, const char *wanted)
{
    json_t *before = document(given);
    json_t *patch = document(patch_text);
    struct sw_error error = {0};
    json_t *after = sw_sim_strategic_patch(before, patch, &error);
    assert_string_equal(error.text, "");
    assert_json(after, wanted);
    assert_json(before, given);
    assert_json(patch, patch_text);
    json_decref(after);
    json_decref(before);
    json_decref(patch);
}

static void check_refused(const char *given, const char *patch_text, const char *why)
{
    json_t *before = document(given);
    json_t *patch = document(patch_text);
    struct sw_error error = {0};
    assert_null(sw_sim_strategic_patch(before, patch, &error));
    assert_string_equal(error.text, why);
    json_decref(before);
    json_decref(patch);
}

TEST(merges_lists_by_their_keys)
{
    check(POD("[{'name': 'a', 'image': '1', 'env': [{'name': 'E', 'value': '1'}]}, {'name': 'b'}]"),
          "{'spec': {'containers': [{'name': 'a', 'image': '2', 'env': [{'name': 'F'}]}]}}",
          POD("[{'name': 'a', 'image': '2', 'env': [{'name': 'F'}, {'name': 'E', 'value': '1'}]}, "
              "{'name': 'b'}]"));
}

TEST(follows_the_directives)
{
    const char *abc = POD("[{'name': 'a'}, {'name': 'b'}, {'name': 'c'}]");
    check(abc, "{'spec': {'containers': [{'name': 'b', '$patch': 'delete'}]}}",
          POD("[{'name': 'a'}, {'name': 'c'}]"));
    check(abc, "{'spec': {'containers': [{'name': 'z'}, {'$patch': 'replace'}]}}",
          POD("[{'name': 'z'}]"));
    check(abc,
          "{'spec': {'$setElementOrder/containers': [{'name': 'c'}, {'name': 'a'}], "
          "'containers': [{'name': 'a', 'image': '1'}]}}",
          POD("[{'name': 'b'}, {'name': 'c'}, {'name': 'a', 'image': '1'}]"));
    check("{'apiVersion': 'apps/v1', 'kind': 'Deployment', 'spec': {'strategy': {'type': 'A', "
          "'rollingUpdate': {}}}}",
          "{'spec': {'strategy': {'$retainKeys': ['type'], 'type': 'B'}}}",
          "{'apiVersion': 'apps/v1', 'kind': 'Deployment', 'spec': {'strategy': {'type': 'B'}}}");
    check("{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'finalizers': ['a', 'b']}}",
          "{'metadata': {'$deleteFromPrimitiveList/finalizers': ['a'], 'finalizers': ['c']}}",
          "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'finalizers': ['c', 'b']}}");
    check("{'a': {'b': 1}}", "{'a': {'$patch': 'replace', 'c': 2}}", "{'a': {'c': 2}}");
    check("{'a': {'b': 1}}", "{'a': {'$patch': 'delete'}}", "{'a': {}}");
}

TEST(refuses_what_makes_no_sense)
{
    const char *a = POD("[{'name': 'a'}]");
    check_refused(a, "{'spec': {'containers': [{'image': '1'}]}}",
                  "map: {\"image\":\"1\"} does not contain declared merge key: name");
    check_refused(a, "{'spec': {'containers': [{'name': 'a', '$patch': 'melt'}]}}",
                  "unknown patch type found: melt");
    check_refused(a, "{'spec': {'$retainKeys': ['x'], 'y': 1}}",
                  "invalid patch format of $retainKeys");
    check_refused(a,
                  "{'spec': {'$setElementOrder/containers': [{'name': 'z'}], "
                  "'containers': [{'name': 'a'}]}}",
                  "The order in patch list:\ncontainers doesn't match $setElementOrder/ list");
}

/* ---- apply ---- */

#define MAP(data) \
    "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'm'}, 'data': " data "}"

static struct sw_sim_apply by(const char *manager, bool is_forced)
{
    return (struct sw_sim_apply){.kind = kind_of("", "ConfigMap"),
                                 .manager = manager,
                                 .subresource = "",
                                 .is_forced = is_forced,
                                 .wall_us = 1000000};
}

/* Takes before. */
static json_t *applied(json_t *before_take, const char *text, const char *manager, bool is_forced)
{
    json_t *patch = document(text);
    const struct sw_sim_apply apply = by(manager, is_forced);
    struct sw_error error = {0};
    json_t *after = sw_sim_apply_patch(before_take, patch, &apply, &error);
    assert_string_equal(error.text, "");
    json_decref(patch);
    json_decref(before_take);
    return after;
}

static void assert_data(const json_t *object, const char *wanted)
{
    assert_json(json_object_get(object, "data"), wanted);
}

/* The fields of that manager of managedFields. */
static void assert_owns(const json_t *object, const char *manager, const char *wanted)
{
    const json_t *list = json_object_get(json_object_get(object, "metadata"), "managedFields");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        if (strcmp(json_string_value(json_object_get(entry, "manager")), manager) == 0) {
            assert_json(json_object_get(entry, "fieldsV1"), wanted);
            return;
        }
    }
    assert_string_equal(wanted, "nothing");
}

TEST(takes_away_what_is_applied_no_more)
{
    json_t *object = applied(NULL, MAP("{'a': '1', 'b': '1'}"), "one", false);
    assert_owns(object, "one", "{'f:data': {'f:a': {}, 'f:b': {}}}");
    object = applied(object, MAP("{'a': '2'}"), "one", false);
    assert_data(object, "{'a': '2'}");
    assert_owns(object, "one", "{'f:data': {'f:a': {}}}");
    json_decref(object);
}

TEST(keeps_what_another_applies)
{
    json_t *object = applied(NULL, MAP("{'a': '1', 'b': '1'}"), "one", false);
    object = applied(object, MAP("{'b': '1', 'c': '1'}"), "two", false);
    object = applied(object, MAP("{'a': '1'}"), "one", false);
    assert_data(object, "{'a': '1', 'b': '1', 'c': '1'}");
    assert_owns(object, "two", "{'f:data': {'f:b': {}, 'f:c': {}}}");
    json_decref(object);
}

TEST(names_conflicts_and_forces_them)
{
    json_t *object = applied(NULL, MAP("{'a': '1', 'b': '1'}"), "one", false);
    json_t *patch = document(MAP("{'a': '2'}"));
    const struct sw_sim_apply apply = by("two", false);
    struct sw_error error = {0};
    assert_null(sw_sim_apply_patch(object, patch, &apply, &error));
    assert_int_equal(error.code, -EEXIST);
    assert_string_equal(error.text, "Apply failed with 1 conflict: conflict with \"one\": .data.a");
    json_decref(patch);
    object = applied(object, MAP("{'a': '2', 'b': '2'}"), "two", true);
    assert_data(object, "{'a': '2', 'b': '2'}");
    assert_owns(object, "one", "nothing");
    json_decref(object);
}

TEST(tracks_other_writes)
{
    const struct sw_sim_apply first = by("first", false);
    const struct sw_sim_apply second = by("second", false);
    json_t *before = document(MAP("{'a': '1', 'b': '1'}"));
    sw_sim_track_fields(NULL, before, &first);
    assert_owns(before, "first", "{'f:data': {'.': {}, 'f:a': {}, 'f:b': {}}}");
    json_t *after = document(MAP("{'a': '1', 'b': '2', 'c': '3'}"));
    sw_sim_track_fields(before, after, &second);
    assert_owns(after, "first", "{'f:data': {'.': {}, 'f:a': {}}}");
    assert_owns(after, "second", "{'f:data': {'f:b': {}, 'f:c': {}}}");
    json_t *last = document(MAP("{'b': '2', 'c': '3'}"));
    sw_sim_track_fields(after, last, &second);
    assert_owns(last, "first", "{'f:data': {}}"); /* the member itself */
    json_decref(before);
    json_decref(after);
    json_decref(last);
}

TEST(keeps_ten_managers_besides)
{
    json_t *object = document(MAP("{'k': '0'}"));
    struct sw_sim_apply apply = by("m0", false);
    sw_sim_track_fields(NULL, object, &apply);
    for (int i = 1; i < 15; i++) {
        char name[8];
        char value[64];
        snprintf(name, sizeof(name), "m%d", i);
        snprintf(value, sizeof(value), "{'data': {'k%d': '1'}}", i);
        json_t *patch = document(value);
        json_t *after = sw_sim_merge_patch(object, patch);
        apply.manager = name;
        apply.wall_us += 1000000;
        sw_sim_track_fields(object, after, &apply);
        json_decref(patch);
        json_decref(object);
        object = after;
    }
    const json_t *list = json_object_get(json_object_get(object, "metadata"), "managedFields");
    assert_int_equal(json_array_size(list), 10);
    assert_owns(object, "ancient-changes",
                "{'f:data': {'.': {}, 'f:k': {}, 'f:k1': {}, 'f:k2': {}, 'f:k3': {}, 'f:k4': {}, "
                "'f:k5': {}}}");
    json_decref(object);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("strategic merge patch", merges_lists_by_their_keys),
        CASE("strategic merge patch", follows_the_directives),
        CASE("strategic merge patch", refuses_what_makes_no_sense),
        CASE("apply", takes_away_what_is_applied_no_more),
        CASE("apply", keeps_what_another_applies),
        CASE("apply", names_conflicts_and_forces_them),
        CASE("apply", tracks_other_writes),
        CASE("apply", keeps_ten_managers_besides),
    };
    return RUN(tests);
}
