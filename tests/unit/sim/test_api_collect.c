/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated API server: what goes after its owner, its namespace or its definition, and kinds
 * that definitions add.
 */
#include "api_client.h"

#define OWNED                                                                                  \
    "{\"metadata\":{\"name\":\"%s\",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":"     \
    "\"ConfigMap\",\"name\":\"%s\",\"uid\":\"%s\",\"controller\":true,\"blockOwnerDeletion\":" \
    "true}]}}"

static bool is_there(struct sim *sim, const char *name)
{
    const struct sw_sim_kind *kind = sw_sim_api_kind(sim->api, "", "v1", "configmaps");
    return sw_sim_store_get(sim->store, kind, "default", name) != NULL;
}

static void make_owned(struct sim *sim, const char *name, const char *owner)
{
    const struct sw_sim_kind *kind = sw_sim_api_kind(sim->api, "", "v1", "configmaps");
    const struct sw_sim_object *object = sw_sim_store_get(sim->store, kind, "default", owner);
    char *body = NULL;
    assert_true(asprintf(&body, OWNED, name, owner, object ? object->uid : "nobody") > 0);
    check_ask(sim, "POST", CONFIG_MAPS, body, 201, "metadata.name", name);
    free(body);
}

static void settle(struct sim *sim)
{
    sw_loop_virtual_advance(sim->loop, 100);
}

TEST(dependents_go_after_their_owner)
{
    struct sim sim = sim_new();
    make_config_map(&sim, "a", "x");
    make_owned(&sim, "b", "a");
    make_owned(&sim, "c", "b");
    settle(&sim);
    assert_true(is_there(&sim, "c"));
    check_ask(&sim, "DELETE", CONFIG_MAPS "/a", NULL, 200, "status", "Success");
    assert_true(is_there(&sim, "b"));
    settle(&sim);
    assert_false(is_there(&sim, "b"));
    assert_false(is_there(&sim, "c"));
    make_owned(&sim, "d", "nobody"); /* its owner never was */
    settle(&sim);
    assert_false(is_there(&sim, "d"));
    sim_free(&sim);
}

TEST(orphans_forget_their_owner)
{
    struct sim sim = sim_new();
    make_config_map(&sim, "a", "x");
    make_owned(&sim, "b", "a");
    check_ask(&sim, "DELETE", CONFIG_MAPS "/a?propagationPolicy=Orphan", NULL, 200,
              "metadata.finalizers", "[\"orphan\"]");
    settle(&sim);
    assert_false(is_there(&sim, "a"));
    check_ask(&sim, "GET", CONFIG_MAPS "/b", NULL, 200, "metadata.ownerReferences", "");
    sim_free(&sim);
}

TEST(an_owner_waits_in_the_foreground)
{
    struct sim sim = sim_new();
    make_config_map(&sim, "a", "x");
    make_owned(&sim, "b", "a");
    check_ask(&sim, "PATCH", CONFIG_MAPS "/b", "{\"metadata\":{\"finalizers\":[\"x.io/f\"]}}", 200,
              "metadata.name", "b");
    check_ask(&sim, "DELETE", CONFIG_MAPS "/a", "{\"propagationPolicy\":\"Foreground\"}", 200,
              "metadata.finalizers", "[\"foregroundDeletion\"]");
    settle(&sim);
    assert_true(is_there(&sim, "a"));
    check_ask(&sim, "GET", CONFIG_MAPS "/b", NULL, 200, "metadata.deletionGracePeriodSeconds", "0");
    check_ask(&sim, "PATCH", CONFIG_MAPS "/b", "{\"metadata\":{\"finalizers\":null}}", 200,
              "metadata.name", "b");
    assert_false(is_there(&sim, "b"));
    settle(&sim);
    assert_false(is_there(&sim, "a"));
    sim_free(&sim);
}

TEST(nothing_is_collected_while_the_collector_is_off)
{
    struct sim sim = sim_new();
    make_config_map(&sim, "a", "x");
    make_owned(&sim, "b", "a");
    sw_sim_api_set_collecting(sim.api, false);
    check_ask(&sim, "DELETE", CONFIG_MAPS "/a", NULL, 200, "status", "Success");
    settle(&sim);
    assert_true(is_there(&sim, "b"));
    sw_sim_api_set_collecting(sim.api, true);
    settle(&sim);
    assert_false(is_there(&sim, "b"));
    sim_free(&sim);
}

TEST(a_namespace_goes_with_its_content)
{
    struct sim sim = sim_new();
    check_ask(&sim, "POST", "/api/v1/namespaces", "{\"metadata\":{\"name\":\"s\"}}", 201,
              "spec.finalizers", "[\"kubernetes\"]");
    check_ask(&sim, "POST", "/api/v1/namespaces/s/pods",
              "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"nodeName\":\"n\",\"containers\":[{"
              "\"name\":\"c\",\"image\":\"i\"}]}}",
              201, "metadata.namespace", "s");
    check_ask(&sim, "DELETE", "/api/v1/namespaces/s", NULL, 200, "status.phase", "Terminating");
    settle(&sim);
    check_ask(&sim, "POST", "/api/v1/namespaces/s/configmaps", "{\"metadata\":{\"name\":\"a\"}}",
              403, "message",
              "configmaps \"a\" is forbidden: unable to create new content in namespace s because "
              "it is being terminated");
    const struct sw_sim_kind *pods = sw_sim_api_kind(sim.api, "", "v1", "pods");
    const struct sw_sim_object *pod = sw_sim_store_get(sim.store, pods, "s", "p");
    assert_non_null(sw_sim_at(sw_sim_object_json(pod), "metadata.deletionTimestamp"));
    check_ask(&sim, "GET", "/api/v1/namespaces/s", NULL, 200, "status.phase", "Terminating");
    sw_sim_finish_delete(sim.api, pod);
    settle(&sim);
    check_ask(&sim, "GET", "/api/v1/namespaces/s", NULL, 404, "reason", "NotFound");
    sim_free(&sim);
}

#define DEFINITIONS "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
#define VERSION(name, storage)                                                                    \
    "{\"name\":\"" name "\",\"served\":true,\"storage\":" storage                                 \
    ",\"subresources\":{\"status\":{"                                                             \
    "}},\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":" \
    "\"object\",\"properties\":{\"n\":{\"type\":\"integer\",\"minimum\":1,\"default\":5}}},"      \
    "\"status\":{\"type\":\"object\",\"properties\":{\"m\":{\"type\":\"integer\"}}}}}}}"

static const char definition[] =
    "{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"CustomResourceDefinition\","
    "\"metadata\":{\"name\":\"things.x.io\"},\"spec\":{\"group\":\"x.io\",\"scope\":\"Namespaced\","
    "\"names\":{\"plural\":\"things\",\"singular\":\"thing\",\"kind\":\"Thing\",\"listKind\":"
    "\"ThingList\"},\"versions\":[" VERSION("v1", "true") "," VERSION("v1beta1", "false") "]}}";

#define THINGS(version) "/apis/x.io/" version "/namespaces/default/things"

TEST(a_definition_adds_a_kind)
{
    struct sim sim = sim_new();
    check_ask(&sim, "POST", DEFINITIONS, definition, 201, "spec.names.kind", "Thing");
    check_ask(&sim, "GET", THINGS("v1"), NULL, 404, "", "");
    settle(&sim);
    check_ask(&sim, "GET", DEFINITIONS "/things.x.io", NULL, 200, "status.storedVersions",
              "[\"v1\"]");
    check_ask(&sim, "GET", THINGS("v1"), NULL, 200, "kind", "ThingList");
    check_ask(&sim, "POST", THINGS("v1beta1"),
              "{\"apiVersion\":\"x.io/v1beta1\",\"kind\":\"Thing\",\"metadata\":{\"name\":\"t\"},"
              "\"spec\":{\"other\":1}}",
              201, "apiVersion", "x.io/v1beta1");
    check_ask(&sim, "GET", THINGS("v1") "/t", NULL, 200, "apiVersion", "x.io/v1");
    check_ask(&sim, "GET", THINGS("v1") "/t", NULL, 200, "spec", "{\"n\":5}");
    check_ask(&sim, "PATCH", THINGS("v1") "/t", "{\"spec\":{\"n\":0}}", 422, "details.kind",
              "Thing");
    check_ask(&sim, "PATCH", THINGS("v1") "/t", "{\"spec\":{\"n\":2},\"status\":{\"m\":1}}", 200,
              "status", "");
    check_ask(&sim, "PATCH", THINGS("v1") "/t/status", "{\"spec\":{\"n\":3},\"status\":{\"m\":1}}",
              200, "spec.n", "2");
    check_ask(&sim, "GET", THINGS("v1") "/t", NULL, 200, "metadata.generation", "2");
    check_ask(&sim, "PUT", THINGS("v1") "/t",
              "{\"apiVersion\":\"x.io/v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":\"t\"}}", 422,
              "message",
              "Thing.x.io \"t\" is invalid: metadata.resourceVersion: Invalid value: 0x0: must be "
              "specified for an update");
    struct answer *answer = ask(&sim, "GET", THINGS("v1beta1"), NULL);
    const json_t *item = json_array_get(json_object_get(answer->json, "items"), 0);
    check_at(item, "apiVersion", "x.io/v1beta1");
    check_at(item, "kind", "Thing");
    answer_free(answer);
    /* It goes with its objects, and nobody is asked about the kind any more. Who watches is told of
     * the objects, and that this was all. */
    struct sw_sim_request request = request_of("GET", THINGS("v1") "?watch=true", NULL);
    struct answer *watch = send_request(&sim, &request);
    check_ask(&sim, "DELETE", DEFINITIONS "/things.x.io", NULL, 200, "metadata.name",
              "things.x.io");
    settle(&sim);
    assert_true(watch->has_ended && watch->is_whole);
    assert_non_null(strstr(watch->body.bytes, "\"type\":\"DELETED\""));
    answer_free(watch);
    check_ask(&sim, "GET", DEFINITIONS "/things.x.io", NULL, 404, "reason", "NotFound");
    check_ask(&sim, "GET", THINGS("v1"), NULL, 404, "", "");
    check_ask(&sim, "POST", DEFINITIONS, definition, 201, "spec.names.kind", "Thing");
    settle(&sim);
    check_ask(&sim, "GET", THINGS("v1"), NULL, 200, "items", "[]");
    sim_free(&sim);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("garbage", dependents_go_after_their_owner),
        CASE("garbage", orphans_forget_their_owner),
        CASE("garbage", an_owner_waits_in_the_foreground),
        CASE("garbage", nothing_is_collected_while_the_collector_is_off),
        CASE("garbage", a_namespace_goes_with_its_content),
        CASE("definitions", a_definition_adds_a_kind),
    };
    return RUN(tests);
}
