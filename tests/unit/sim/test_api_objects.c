/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated API server: create, get, update, patch, delete, subresources, and their errors. */
#include "api_client.h"

#include <errno.h>

TEST(completes_what_is_created)
{
    struct sim sim = sim_new();
    char *body = NULL;
    assert_true(asprintf(&body, DEPLOYMENT, "a", "a", "a", "a") > 0);
    struct answer *answer = ask(&sim, "POST", DEPLOYMENTS, body);
    free(body);
    assert_int_equal(answer->status, 201);
    assert_string_equal(answer->content_type, "application/json");
    check_at(answer->json, "kind", "Deployment");
    check_at(answer->json, "metadata.namespace", "default");
    check_at(answer->json, "metadata.generation", "1");
    check_at(answer->json, "metadata.creationTimestamp", "2023-11-14T22:13:20Z");
    check_at(answer->json, "metadata.resourceVersion", "105");
    check_at(answer->json, "spec.replicas", "1");
    check_at(answer->json, "status", "{}");
    assert_int_equal(strlen(sw_sim_text_at(answer->json, "metadata.uid")), 36);
    struct answer *got = ask(&sim, "GET", DEPLOYMENTS "/a", NULL);
    assert_int_equal(got->status, 200);
    assert_string_equal(got->body.bytes, answer->body.bytes);
    answer_free(got);
    answer_free(answer);
    sim_free(&sim);
}

TEST(words_errors_as_the_real_server_does)
{
    struct sim sim = sim_new();
    check_ask(&sim, "GET", DEPLOYMENTS "/a", NULL, 404, "",
              "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
              "\"message\":\"deployments.apps \\\"a\\\" not found\",\"reason\":\"NotFound\","
              "\"details\":{\"name\":\"a\",\"group\":\"apps\",\"kind\":\"deployments\"},"
              "\"code\":404}");
    make_deployment(&sim, "a");
    char *body = NULL;
    assert_true(asprintf(&body, DEPLOYMENT, "a", "a", "a", "a") > 0);
    check_ask(&sim, "POST", DEPLOYMENTS, body, 409, "message",
              "deployments.apps \"a\" already exists");
    check_ask(&sim, "POST", DEPLOYMENTS, body, 409, "reason", "AlreadyExists");
    check_ask(&sim, "POST", "/apis/apps/v1/namespaces/nowhere/deployments", body, 404, "message",
              "namespaces \"nowhere\" not found");
    check_ask(&sim, "PUT", DEPLOYMENTS "/b", body, 404, "message",
              "deployments.apps \"b\" not found");
    check_ask(&sim, "PUT", "/apis/apps/v1/namespaces/kube-system/deployments/a", body, 404,
              "reason", "NotFound");
    free(body);
    check_ask(&sim, "POST", CONFIG_MAPS, "{", 400, "reason", "BadRequest");
    check_ask(&sim, "POST", CONFIG_MAPS, "{\"metadata\":{}}", 422, "",
              "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
              "\"message\":\"ConfigMap \\\"\\\" is invalid: metadata.name: Required value: name or "
              "generateName is required\",\"reason\":\"Invalid\",\"details\":{\"kind\":"
              "\"ConfigMap\",\"causes\":[{\"reason\":\"FieldValueRequired\",\"message\":\"Required "
              "value: name or generateName is required\",\"field\":\"metadata.name\"}]},\"code\":"
              "422}");
    check_ask(&sim, "POST", CONFIG_MAPS, "{\"apiVersion\":\"v2\",\"metadata\":{\"name\":\"x\"}}",
              400, "message",
              "ConfigMap in version \"v2\" cannot be handled as a ConfigMap: no kind "
              "\"ConfigMap\" is registered for version \"v2\" in scheme "
              "\"k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30\"");
    check_ask(&sim, "POST", CONFIG_MAPS, "{\"kind\":\"Secret\",\"metadata\":{\"name\":\"x\"}}", 400,
              "message",
              "Secret in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Secret) "
              "to (core.ConfigMap): unknown conversion");
    check_ask(&sim, "POST", CONFIG_MAPS,
              "{\"metadata\":{\"name\":\"x\",\"namespace\":\"kube-system\"}}", 400, "message",
              "the namespace of the provided object does not match the namespace sent on the "
              "request");
    check_ask(&sim, "GET", "/apis/apps/v1/namespaces/default/nothings", NULL, 404, "message",
              "the server could not find the requested resource");
    check_ask(&sim, "POST", DEPLOYMENTS "/a", "{}", 405, "reason", "MethodNotAllowed");
    sim_free(&sim);
}

TEST(updates_only_the_version_that_the_client_knows)
{
    struct sim sim = sim_new();
    make_deployment(&sim, "a");
    struct answer *got = ask(&sim, "GET", DEPLOYMENTS "/a", NULL);
    json_t *object = json_incref(got->json);
    answer_free(got);
    json_object_set_new(json_object_get(object, "spec"), "replicas", json_integer(3));
    char *body = json_dumps(object, 0);
    check_ask(&sim, "PUT", DEPLOYMENTS "/a", body, 200, "metadata.generation", "2");
    check_ask(&sim, "PUT", DEPLOYMENTS "/a", body, 409, "message",
              "Operation cannot be fulfilled on deployments.apps \"a\": the object has been "
              "modified; please apply your changes to the latest version and try again");
    free(body);
    json_object_del(json_object_get(object, "metadata"), "resourceVersion");
    body = json_dumps(object, 0);
    uint64_t version = sw_sim_store_version(sim.store);
    check_ask(&sim, "PUT", DEPLOYMENTS "/a", body, 200, "spec.replicas", "3");
    assert_int_equal(sw_sim_store_version(sim.store), version); /* nothing differs */
    free(body);
    json_object_set_new(json_object_get(object, "metadata"), "uid", json_string("other"));
    body = json_dumps(object, 0);
    check_ask(&sim, "PUT", DEPLOYMENTS "/a", body, 409, "reason", "Conflict");
    free(body);
    json_decref(object);
    sim_free(&sim);
}

TEST(keeps_status_and_spec_apart)
{
    struct sim sim = sim_new();
    make_deployment(&sim, "a");
    check_ask(&sim, "PATCH", DEPLOYMENTS "/a",
              "{\"spec\":{\"replicas\":2},\"status\":{\"replicas\":7}}", 200, "status", "{}");
    check_ask(&sim, "PATCH", DEPLOYMENTS "/a/status",
              "{\"spec\":{\"replicas\":5},\"status\":{\"replicas\":7}}", 200, "spec.replicas", "2");
    check_ask(&sim, "GET", DEPLOYMENTS "/a/status", NULL, 200, "status.replicas", "7");
    check_ask(&sim, "GET", DEPLOYMENTS "/a", NULL, 200, "metadata.generation", "2");
    check_ask(&sim, "GET", DEPLOYMENTS "/a/scale", NULL, 200, "spec", "{\"replicas\":2}");
    check_ask(&sim, "GET", DEPLOYMENTS "/a/scale", NULL, 200, "status",
              "{\"replicas\":7,\"selector\":\"app=a\"}");
    check_ask(&sim, "PATCH", DEPLOYMENTS "/a/scale", "{\"spec\":{\"replicas\":4}}", 200, "kind",
              "Scale");
    check_ask(&sim, "GET", DEPLOYMENTS "/a", NULL, 200, "spec.replicas", "4");
    sim_free(&sim);
}

TEST(patches_with_and_without_a_precondition)
{
    struct sim sim = sim_new();
    make_config_map(&sim, "a", "x");
    check_ask(&sim, "PATCH", CONFIG_MAPS "/a", "{\"data\":{\"k\":\"v\"}}", 200, "data.k", "v");
    check_ask(&sim, "PATCH", CONFIG_MAPS "/a",
              "{\"metadata\":{\"resourceVersion\":\"1\"},\"data\":{\"k\":\"w\"}}", 409, "reason",
              "Conflict");
    check_ask(&sim, "PATCH", CONFIG_MAPS "/b", "{}", 404, "reason", "NotFound");
    struct sw_sim_request request =
        request_of("PATCH", CONFIG_MAPS "/a",
                   "[{\"op\":\"replace\",\"path\":\"/data/k\",\"value\":\"json\"}]");
    request.content_type = "application/json-patch+json";
    struct answer *answer = send_request(&sim, &request);
    sw_loop_virtual_advance(sim.loop, 0);
    check_at(answer->json, "data.k", "json");
    answer_free(answer);
    request.content_type = "text/plain";
    answer = send_request(&sim, &request);
    sw_loop_virtual_advance(sim.loop, 0);
    assert_int_equal(answer->status, 415);
    answer_free(answer);
    sim_free(&sim);
}

TEST(makes_names_and_dry_runs)
{
    struct sim sim = sim_new();
    uint64_t version = sw_sim_store_version(sim.store);
    struct answer *answer =
        ask(&sim, "POST", CONFIG_MAPS "?dryRun=All", "{\"metadata\":{\"generateName\":\"a-\"}}");
    assert_int_equal(answer->status, 201);
    const char *name = sw_sim_text_at(answer->json, "metadata.name");
    assert_int_equal(strlen(name), 7);
    assert_memory_equal(name, "a-", 2);
    assert_null(sw_sim_at(answer->json, "metadata.resourceVersion"));
    answer_free(answer);
    assert_int_equal(sw_sim_store_version(sim.store), version);
    make_config_map(&sim, "a", "x");
    check_ask(&sim, "PATCH", CONFIG_MAPS "/a?dryRun=All", "{\"data\":{\"k\":\"v\"}}", 200, "data.k",
              "v");
    check_ask(&sim, "DELETE", CONFIG_MAPS "/a?dryRun=All", NULL, 200, "status", "Success");
    check_ask(&sim, "GET", CONFIG_MAPS "/a", NULL, 200, "data", "");
    check_ask(
        &sim, "POST", CONFIG_MAPS "?dryRun=Some", "{\"metadata\":{\"name\":\"b\"}}", 422, "message",
        "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: []string{\"Some\"}: "
        "supported values: \"All\"");
    sim_free(&sim);
}

TEST(deletes_at_once_or_when_finalizers_are_gone)
{
    struct sim sim = sim_new();
    make_config_map(&sim, "a", "x");
    check_ask(&sim, "DELETE", CONFIG_MAPS "/a", "{\"preconditions\":{\"uid\":\"x\"}}", 409,
              "reason", "Conflict");
    check_ask(&sim, "DELETE", CONFIG_MAPS "/a", NULL, 200, "details.name", "a");
    check_ask(&sim, "DELETE", CONFIG_MAPS "/a", NULL, 404, "message", "configmaps \"a\" not found");
    check_ask(&sim, "POST", CONFIG_MAPS,
              "{\"metadata\":{\"name\":\"f\",\"finalizers\":[\"x.io/f\"]}}", 201, "kind",
              "ConfigMap");
    check_ask(&sim, "DELETE", CONFIG_MAPS "/f", NULL, 200, "metadata.deletionTimestamp",
              "2023-11-14T22:13:20Z");
    check_ask(&sim, "PATCH", CONFIG_MAPS "/f",
              "{\"metadata\":{\"finalizers\":[\"x.io/f\",\"x.io/g\"]}}", 422, "message",
              "ConfigMap \"f\" is invalid: metadata.finalizers: Forbidden: no new finalizers can "
              "be added if the object is being deleted, found new finalizers "
              "[]string{\"x.io/g\"}");
    check_ask(&sim, "PATCH", CONFIG_MAPS "/f", "{\"metadata\":{\"finalizers\":null}}", 200,
              "metadata.name", "f");
    check_ask(&sim, "GET", CONFIG_MAPS "/f", NULL, 404, "reason", "NotFound");
    make_config_map(&sim, "b", "x");
    make_config_map(&sim, "c", "y");
    check_ask(&sim, "DELETE", CONFIG_MAPS "?labelSelector=l=x", NULL, 200, "kind", "ConfigMapList");
    check_ask(&sim, "GET", CONFIG_MAPS "/b", NULL, 404, "reason", "NotFound");
    check_ask(&sim, "GET", CONFIG_MAPS "/c", NULL, 200, "metadata.name", "c");
    sim_free(&sim);
}

static struct answer *patch_as(struct sim *sim, const char *target, const char *media,
                               const char *body)
{
    struct sw_sim_request request = request_of("PATCH", target, body);
    request.content_type = media;
    struct answer *answer = send_request(sim, &request);
    sw_loop_virtual_advance(sim->loop, 0);
    assert_true(answer->has_ended);
    return answer;
}

TEST(merges_strategically_and_applies)
{
    struct sim sim = sim_new();
    make_deployment(&sim, "a");
    struct answer *answer = patch_as(
        &sim, DEPLOYMENTS "/a", "application/strategic-merge-patch+json",
        "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"d\",\"image\":\"j\"}]}}}}");
    assert_int_equal(answer->status, 200);
    assert_int_equal(json_array_size(sw_sim_at(answer->json, "spec.template.spec.containers")), 2);
    answer_free(answer);
    static const char media[] = "application/apply-patch+yaml";
    static const char map[] = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\ndata:\n"
                              "  a: \"1\"\n  b: x\n";
    answer = patch_as(&sim, CONFIG_MAPS "/m?fieldManager=one", media, map);
    assert_int_equal(answer->status, 201);
    check_at(answer->json, "data", "{\"a\":\"1\",\"b\":\"x\"}");
    check_at(json_array_get(sw_sim_at(answer->json, "metadata.managedFields"), 0), "manager",
             "one");
    answer_free(answer);
    answer = patch_as(&sim, CONFIG_MAPS "/m", media, map);
    assert_int_equal(answer->status, 422);
    answer_free(answer);
    static const char other[] = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{"
                                "\"name\":\"m\"},\"data\":{\"a\":\"2\"}}";
    answer = patch_as(&sim, CONFIG_MAPS "/m?fieldManager=two", media, other);
    assert_int_equal(answer->status, 409);
    check_at(answer->json, "message",
             "Apply failed with 1 conflict: conflict with \"one\": .data.a");
    check_at(answer->json, "details.causes",
             "[{\"reason\":\"FieldManagerConflict\",\"message\":\"conflict with \\\"one\\\"\","
             "\"field\":\".data.a\"}]");
    answer_free(answer);
    answer = patch_as(&sim, CONFIG_MAPS "/m?fieldManager=two&force=true", media, other);
    assert_int_equal(answer->status, 200);
    check_at(answer->json, "data", "{\"a\":\"2\",\"b\":\"x\"}");
    answer_free(answer);
    sim_free(&sim);
}

static const char running_pod[] =
    "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"name\":\"c\","
    "\"image\":\"i\"}]}}";

TEST(lets_pods_stop_gracefully)
{
    struct sim sim = sim_new();
    check_ask(&sim, "POST", PODS, running_pod, 201, "status.phase", "Pending");
    check_ask(&sim, "DELETE", PODS "/p", NULL, 200, "metadata.deletionGracePeriodSeconds", "30");
    check_ask(&sim, "GET", PODS "/p", NULL, 200, "metadata.deletionTimestamp",
              "2023-11-14T22:13:50Z");
    check_ask(&sim, "DELETE", PODS "/p?gracePeriodSeconds=5", NULL, 200,
              "metadata.deletionTimestamp", "2023-11-14T22:13:25Z");
    check_ask(&sim, "DELETE", PODS "/p?gracePeriodSeconds=9", NULL, 200,
              "metadata.deletionGracePeriodSeconds", "5");
    const struct sw_sim_kind *pods = sw_sim_api_kind(sim.api, "", "v1", "pods");
    sw_sim_finish_delete(sim.api, sw_sim_store_get(sim.store, pods, "default", "p"));
    assert_null(sw_sim_store_get(sim.store, pods, "default", "p"));
    check_ask(&sim, "POST", PODS, running_pod, 201, "metadata.name", "p");
    check_ask(&sim, "DELETE", PODS "/p?gracePeriodSeconds=0", NULL, 200, "metadata.name", "p");
    check_ask(&sim, "GET", PODS "/p", NULL, 404, "reason", "NotFound");
    sim_free(&sim);
}

TEST(says_what_is_wrong_with_a_body_in_protobuf)
{
    struct sim sim = sim_new();
    struct sw_sim_request request = request_of("POST", CONFIG_MAPS, "k8s");
    request.content_type = "application/vnd.kubernetes.protobuf";
    struct answer *answer = send_request(&sim, &request);
    sw_loop_virtual_advance(sim.loop, 0);
    assert_int_equal(answer->status, 415);
    check_at(answer->json, "reason", "UnsupportedMediaType");
    assert_non_null(strstr(sw_sim_text_at(answer->json, "message"), "reads no protobuf"));
    answer_free(answer);
    sim_free(&sim);
}

TEST(serves_the_control_plane_at_once)
{
    struct sim sim = sim_new();
    const struct sw_sim_kind *kind = sw_sim_api_kind(sim.api, "", "v1", "configmaps");
    assert_null(sw_sim_api_kind(sim.api, "", "v2", "configmaps"));
    const struct sw_sim_object *object = NULL;
    json_t *wanted = json_pack("{s:{s:s,s:s}}", "metadata", "name", "a", "namespace", "default");
    assert_int_equal(sw_sim_create(sim.api, kind, json_incref(wanted), &object), 0);
    assert_string_equal(object->name, "a");
    assert_string_equal(object->namespace_, "default");
    assert_int_equal(sw_sim_create(sim.api, kind, wanted, NULL), -EEXIST);
    json_t *stale = json_deep_copy(sw_sim_object_json(object));
    json_t *next = json_deep_copy(sw_sim_object_json(object));
    json_object_set_new(next, "data", json_pack("{s:s}", "k", "v"));
    assert_int_equal(sw_sim_update(sim.api, kind, next), 0);
    object = sw_sim_store_get(sim.store, kind, "default", "a");
    check_at(sw_sim_object_json(object), "data.k", "v");
    assert_int_equal(sw_sim_update(sim.api, kind, stale), -EAGAIN);
    assert_int_equal(sw_sim_update(sim.api, kind,
                                   json_pack("{s:{s:s,s:s}}", "metadata", "name", "none",
                                             "namespace", "default")),
                     -ENOENT);
    assert_int_equal(
        sw_sim_create(sim.api, kind,
                      json_pack("{s:{s:s,s:s}}", "metadata", "name", "A", "namespace", "default"),
                      NULL),
        -EINVAL);
    assert_int_equal(
        sw_sim_create(sim.api, kind,
                      json_pack("{s:{s:s,s:s}}", "metadata", "name", "a", "namespace", "nowhere"),
                      NULL),
        -ENOENT);
    sw_sim_object_ref(object);
    assert_int_equal(sw_sim_delete(sim.api, object, -1, NULL), 0);
    assert_int_equal(sw_sim_delete(sim.api, object, -1, NULL), -ENOENT);
    sw_sim_object_unref(object);
    sim_free(&sim);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("api", completes_what_is_created),
        CASE("api", words_errors_as_the_real_server_does),
        CASE("api", updates_only_the_version_that_the_client_knows),
        CASE("api", keeps_status_and_spec_apart),
        CASE("api", patches_with_and_without_a_precondition),
        CASE("api", merges_strategically_and_applies),
        CASE("api", makes_names_and_dry_runs),
        CASE("api", deletes_at_once_or_when_finalizers_are_gone),
        CASE("api", lets_pods_stop_gracefully),
        CASE("api", says_what_is_wrong_with_a_body_in_protobuf),
        CASE("api", serves_the_control_plane_at_once),
    };
    return RUN(tests);
}
