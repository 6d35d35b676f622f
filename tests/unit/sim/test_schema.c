/* SPDX-License-Identifier: Apache-2.0 */
/* Structural schemas, and the kinds that CustomResourceDefinitions make. */
#include "base/error.h"
#include "documents.h"
#include "schema.h"

static const char widget[] =
    "{'type': 'object', 'properties': {'spec': {'type': 'object', 'required': ['size'], "
    "'properties': {"
    "'size': {'type': 'integer', 'minimum': 1, 'maximum': 9, 'default': 3}, "
    "'mode': {'type': 'string', 'enum': ['On', 'Off'], 'nullable': true, 'default': 'On'}, "
    "'name': {'type': 'string', 'pattern': '^\\\\d+-[\\\\w.]+$', 'minLength': 3, 'maxLength': 5}, "
    "'at': {'type': 'string', 'format': 'date-time'}, "
    "'any': {'x-kubernetes-preserve-unknown-fields': true, 'type': 'object', 'properties': "
    "{'in': {'type': 'object', 'properties': {'x': {'type': 'integer', 'default': 1}}}}}, "
    "'port': {'x-kubernetes-int-or-string': true}, "
    "'labels': {'type': 'object', 'additionalProperties': {'type': 'string'}}, "
    "'parts': {'type': 'array', 'maxItems': 3, 'x-kubernetes-list-type': 'map', "
    "'x-kubernetes-list-map-keys': ['name'], 'items': {'type': 'object', 'properties': "
    "{'name': {'type': 'string'}, 'count': {'type': 'integer', 'default': 1}}}}, "
    "'tags': {'type': 'array', 'x-kubernetes-list-type': 'set', 'items': {'type': 'string'}}}}}}";

static struct sw_sim_schema *schema_of(const char *text)
{
    json_t *openapi = document(text);
    struct sw_sim_schema *schema = NULL;
    struct sw_error error = {0};
    if (sw_sim_schema_new(openapi, &schema, &error)) {
        fail_msg("%s", error.text);
    }
    json_decref(openapi);
    return schema;
}

static void check(void (*step)(const struct sw_sim_schema *, json_t *), const char *given,
                  const char *wanted)
{
    struct sw_sim_schema *schema = schema_of(widget);
    json_t *object = document(given);
    step(schema, object);
    assert_json(object, wanted);
    json_decref(object);
    sw_sim_schema_free(schema);
}

TEST(drops_what_it_does_not_name)
{
    check(sw_sim_schema_prune,
          "{'apiVersion': 'a/v1', 'kind': 'Widget', 'metadata': {'x': 1}, 'other': 1, "
          "'spec': {'size': 1, 'no': 1, 'labels': {'a': 'b'}, 'parts': [{'name': 'a', 'y': 1}], "
          "'any': {'z': {'z': 1}, 'in': {'x': 2, 'y': 3}}}}",
          "{'apiVersion': 'a/v1', 'kind': 'Widget', 'metadata': {'x': 1}, "
          "'spec': {'size': 1, 'labels': {'a': 'b'}, 'parts': [{'name': 'a'}], "
          "'any': {'z': {'z': 1}, 'in': {'x': 2}}}}");
}

TEST(fills_in_from_the_outside_in)
{
    check(sw_sim_schema_default, "{}", "{}");
    check(sw_sim_schema_default, "{'spec': {}}", "{'spec': {'size': 3, 'mode': 'On'}}");
    check(sw_sim_schema_default,
          "{'spec': {'size': null, 'mode': null, 'name': null, 'parts': [{}], 'any': {'in': {}}}}",
          "{'spec': {'size': 3, 'mode': null, 'parts': [{'count': 1}], 'any': {'in': {'x': 1}}}}");
}

static void check_causes(const char *given, const char *wanted)
{
    struct sw_sim_schema *schema = schema_of(widget);
    json_t *object = document(given);
    json_t *causes = json_array();
    sw_sim_schema_validate(schema, object, causes);
    json_t *texts = json_array();
    for (size_t i = 0; i < json_array_size(causes); i++) {
        const json_t *cause = json_array_get(causes, i);
        assert_true(
            strncmp(json_string_value(json_object_get(cause, "reason")), "FieldValue", 10) == 0);
        json_array_append_new(
            texts, json_sprintf("%s: %s", json_string_value(json_object_get(cause, "field")),
                                json_string_value(json_object_get(cause, "message"))));
    }
    char *got = json_dumps(texts, JSON_COMPACT);
    for (char *c = got; *c; c++) {
        *c = *c == '"' ? '\'' : *c;
    }
    assert_string_equal(got, wanted);
    free(got);
    json_decref(texts);
    json_decref(causes);
    json_decref(object);
    sw_sim_schema_free(schema);
}

TEST(says_what_is_wrong)
{
    check_causes("{'spec': {'size': 1, 'mode': null, 'name': '1-a', 'port': 'web', "
                 "'at': '2020-01-01T00:00:00Z', 'tags': ['a', 'b']}}",
                 "[]");
    check_causes("{'spec': {}}", "['spec.size: Required value']");
    check_causes("{'spec': {'size': 0}}",
                 "['spec.size: Invalid value: 0: spec.size in body should be greater than or "
                 "equal to 1']");
    check_causes("{'spec': {'size': 10}}",
                 "['spec.size: Invalid value: 10: spec.size in body should be less than or equal "
                 "to 9']");
    check_causes("{'spec': {'size': '1'}}",
                 "['spec.size: Invalid value: \\'string\\': spec.size in body must be of type "
                 "integer: \\'string\\'']");
    check_causes("{'spec': {'size': 1, 'mode': 'on'}}",
                 "['spec.mode: Unsupported value: \\'on\\': supported values: \\'On\\', "
                 "\\'Off\\'']");
    check_causes("{'spec': {'size': 1, 'name': 'x-aaa'}}",
                 "['spec.name: Invalid value: \\'x-aaa\\': spec.name in body should match "
                 "'^\\\\d+-[\\\\w.]+$'']");
}

TEST(limits_texts_and_lists)
{
    check_causes("{'spec': {'size': 1, 'name': '1-äöüß'}}",
                 "['spec.name: Invalid value: \\'1-äöüß\\': spec.name in body should be at most 5 "
                 "chars long','spec.name: Invalid value: \\'1-äöüß\\': spec.name in body should "
                 "match '^\\\\d+-[\\\\w.]+$'']");
    check_causes("{'spec': {'size': 1, 'at': 'now'}}",
                 "['spec.at: Invalid value: \\'now\\': spec.at in body must be of type date-time: "
                 "\\'now\\'']");
    check_causes("{'spec': {'size': 1, 'port': true}}",
                 "['spec.port: Invalid value: \\'boolean\\': spec.port in body must be of type "
                 "integer,string: \\'boolean\\'']");
    check_causes("{'spec': {'size': 1, 'tags': ['a', 'b', 'a']}}",
                 "['spec.tags[2]: Duplicate value: \\'a\\'']");
    check_causes("{'spec': {'size': 1, 'parts': [{'name': 'a'}, {'name': 1}, {'name': 'a'}]}}",
                 "['spec.parts[2]: Duplicate value: map[string]interface {}{\\'name\\':\\'a\\'}',"
                 "'spec.parts.name: Invalid value: \\'integer\\': spec.parts.name in body "
                 "must be of type string: \\'integer\\'']");
}

TEST(tells_lists_apart)
{
    struct sw_sim_schema *schema = schema_of(widget);
    json_t *path = document("['spec', 'parts']");
    const json_t *keys = NULL;
    assert_string_equal(sw_sim_schema_list_type(schema, path, &keys), "map");
    assert_json(keys, "['name']");
    json_decref(path);
    path = document("['spec', 'tags']");
    assert_string_equal(sw_sim_schema_list_type(schema, path, &keys), "set");
    json_decref(path);
    path = document("['spec', 'parts', '[]', 'none']");
    assert_string_equal(sw_sim_schema_list_type(schema, path, &keys), "atomic");
    json_decref(path);
    sw_sim_schema_free(schema);
}

TEST(refuses_what_is_no_schema)
{
    static const struct {
        const char *openapi, *why;
    } bad[] = {
        {"{'type': 'object', 'properties': {'a': {}}}",
         "openAPIV3Schema.properties[a].type: Required value: must not be empty for specified "
         "object fields"},
        {"{'type': 'object', 'properties': {'a': {'type': 'text'}}}",
         "openAPIV3Schema.properties[a].type: Unsupported value: \"text\": supported values: "
         "\"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\""},
        {"{'type': 'object', '$ref': '#'}", "openAPIV3Schema.$ref: Forbidden: not known in a "
                                            "schema"},
        {"{'type': 'string'}", "openAPIV3Schema.type: Invalid value: \"string\": must be object "
                               "at the root"},
        {"{'type': 'object', 'properties': {'a': {'type': 'array'}}}",
         "openAPIV3Schema.properties[a].items: Required value: must be specified"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        json_t *openapi = document(bad[i].openapi);
        struct sw_sim_schema *schema = NULL;
        struct sw_error error = {0};
        assert_true(sw_sim_schema_new(openapi, &schema, &error) < 0);
        assert_string_equal(error.text, bad[i].why);
        json_decref(openapi);
    }
}

/* ---- definitions ---- */

static const char definition[] =
    "{'metadata': {'name': 'wids.x.org'}, 'spec': {'group': 'x.org', 'scope': 'Namespaced', "
    "'names': {'plural': 'wids', 'kind': 'Wid', 'singular': 'wid', 'shortNames': ['w'], "
    "'categories': ['all']}, 'versions': ["
    "{'name': 'v1', 'served': true, 'storage': true, 'schema': {'openAPIV3Schema': "
    "{'type': 'object'}}, 'subresources': {'status': {}, 'scale': {'specReplicasPath': "
    "'.spec.n', 'statusReplicasPath': '.status.n'}}, 'additionalPrinterColumns': "
    "[{'name': 'N', 'type': 'integer', 'jsonPath': '.spec.n', 'priority': 1}]}, "
    "{'name': 'v0', 'served': false, 'storage': false, 'schema': {'openAPIV3Schema': "
    "{'type': 'object'}}}, "
    "{'name': 'v2', 'served': true, 'storage': false, 'schema': {'openAPIV3Schema': "
    "{'type': 'object'}}}]}}";

TEST(makes_a_kind_of_each_served_version)
{
    json_t *crd = document(definition);
    struct sw_sim_kind *kinds = NULL;
    size_t count = 0;
    assert_int_equal(sw_sim_crd_kinds(crd, &kinds, &count, NULL), 0);
    json_decref(crd); /* they live on without it */
    assert_int_equal(count, 2);
    assert_string_equal(kinds[0].group, "x.org");
    assert_string_equal(kinds[0].version, "v1");
    assert_string_equal(kinds[0].kind, "Wid");
    assert_string_equal(kinds[0].short_names[0], "w");
    assert_null(kinds[0].short_names[1]);
    assert_string_equal(kinds[0].categories[0], "all");
    assert_true(kinds[0].is_namespaced && kinds[0].has_status && kinds[0].has_scale);
    assert_string_equal(kinds[0].scale_spec_path, ".spec.n");
    assert_int_equal(kinds[0].column_count, 1);
    assert_string_equal(kinds[0].columns[0].json_path, ".spec.n");
    assert_int_equal(kinds[0].columns[0].priority, 1);
    assert_string_equal(kinds[1].version, "v2");
    assert_false(kinds[1].has_status || kinds[1].has_scale);
    assert_string_equal(kinds[1].columns[0].name, "Age");
    sw_sim_crd_kinds_free(kinds, count);
}

TEST(refuses_a_definition_that_makes_no_sense)
{
    static const struct {
        const char *path, *value, *why;
    } bad[] = {
        {"metadata.name", "'wids.y.org'", "metadata.name: Invalid value"},
        {"spec.scope", "'World'", "spec.scope: Unsupported value: \"World\""},
        {"spec.names.kind", "''", "spec.names.kind: Required value"},
        {"spec.versions", "[]", "spec.versions: Invalid value: must have exactly one"},
        {"spec.versions", "[{'name': 'v1', 'storage': true, 'served': true}]",
         "spec.versions[0].schema.openAPIV3Schema: Required value"},
        {"spec.versions",
         "[{'name': 'v1', 'storage': true, 'served': true, 'schema': {'openAPIV3Schema': {}}}]",
         "spec.versions[0].schema: openAPIV3Schema.type: Required value"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        json_t *crd = document(definition);
        char *path = strdup(bad[i].path);
        char *last = strrchr(path, '.');
        *last = '\0';
        json_t *holder = crd;
        for (char *step = strtok(path, "."); step; step = strtok(NULL, ".")) {
            holder = json_object_get(holder, step);
        }
        json_object_set_new(holder, last + 1, document(bad[i].value));
        free(path);
        struct sw_sim_kind *kinds = NULL;
        size_t count = 0;
        struct sw_error error = {0};
        assert_true(sw_sim_crd_kinds(crd, &kinds, &count, &error) < 0);
        if (strncmp(error.text, bad[i].why, strlen(bad[i].why)) != 0) {
            fail_msg("%s instead of %s", error.text, bad[i].why);
        }
        json_decref(crd);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("schema", drops_what_it_does_not_name),
        CASE("schema", fills_in_from_the_outside_in),
        CASE("schema", says_what_is_wrong),
        CASE("schema", limits_texts_and_lists),
        CASE("schema", tells_lists_apart),
        CASE("schema", refuses_what_is_no_schema),
        CASE("definition", makes_a_kind_of_each_served_version),
        CASE("definition", refuses_a_definition_that_makes_no_sense),
    };
    return RUN(tests);
}
