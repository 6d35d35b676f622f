/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated API server: lists, pages, selectors, tables, discovery. */
#include "api_client.h"

static void check_items(struct sim *sim, const char *target, const char *want)
{
    struct answer *answer = ask(sim, "GET", target, NULL);
    if (answer->status != 200) {
        fail_msg("%s: %d %s", target, answer->status, answer->body.bytes);
    }
    char names[512] = "";
    const json_t *items = json_object_get(answer->json, "items");
    for (size_t i = 0; i < json_array_size(items); i++) {
        size_t len = strlen(names);
        snprintf(names + len, sizeof(names) - len, "%s%s", len ? " " : "",
                 sw_sim_text_at(json_array_get(items, i), "metadata.name"));
    }
    assert_string_equal(names, want);
    answer_free(answer);
}

TEST(lists_whole_objects_without_their_kind)
{
    struct sim sim = sim_new();
    make_config_map(&sim, "b", "x");
    make_config_map(&sim, "a", "y");
    struct answer *answer = ask(&sim, "GET", CONFIG_MAPS, NULL);
    check_at(answer->json, "kind", "ConfigMapList");
    check_at(answer->json, "apiVersion", "v1");
    check_at(answer->json, "metadata", "{\"resourceVersion\":\"106\"}");
    const json_t *first = json_array_get(json_object_get(answer->json, "items"), 0);
    check_at(first, "kind", "");
    check_at(first, "metadata.name", "a");
    answer_free(answer);
    check_items(&sim, CONFIG_MAPS, "a b");
    check_items(&sim, "/api/v1/configmaps", "a b");
    check_items(&sim, "/api/v1/namespaces/kube-system/configmaps", "");
    check_items(&sim, "/api/v1/namespaces", "default kube-node-lease kube-public kube-system");
    check_items(&sim, CONFIG_MAPS "?labelSelector=l%20in%20(x,z)", "b");
    check_items(&sim, CONFIG_MAPS "?labelSelector=l!=x", "a");
    check_items(&sim, CONFIG_MAPS "?fieldSelector=metadata.name=a", "a");
    check_items(&sim, CONFIG_MAPS "?fieldSelector=metadata.name!=a,metadata.namespace=default",
                "b");
    check_ask(&sim, "GET", CONFIG_MAPS "?fieldSelector=data.x=a", NULL, 400, "message",
              "\"data.x\" is not a known field selector: only \"metadata.name\", "
              "\"metadata.namespace\"");
    check_ask(&sim, "GET", PODS "?fieldSelector=data.x=a", NULL, 400, "message",
              "Unable to find \"v1, Resource=pods\" that match label selector \"\", field "
              "selector \"data.x=a\": field label not supported: data.x");
    check_ask(&sim, "GET", CONFIG_MAPS "?resourceVersion=0&resourceVersionMatch=Exact", NULL, 422,
              "details.kind", "ListOptions");
    check_ask(&sim, "GET", CONFIG_MAPS "?labelSelector=a%20in", NULL, 400, "reason", "BadRequest");
    check_ask(&sim, "GET", CONFIG_MAPS "?limit=x", NULL, 400, "reason", "BadRequest");
    check_ask(&sim, "GET", CONFIG_MAPS "?resourceVersion=999999", NULL, 504, "message",
              "Timeout: Too large resource version: 999999, current: 106");
    sim_free(&sim);
}

static char *token_of(struct sim *sim, const char *target, const char *want_first,
                      const char *want_left)
{
    struct answer *answer = ask(sim, "GET", target, NULL);
    assert_int_equal(answer->status, 200);
    const json_t *first = json_array_get(json_object_get(answer->json, "items"), 0);
    check_at(first, "metadata.name", want_first);
    check_at(answer->json, "metadata.remainingItemCount", want_left);
    char *token = strdup(sw_sim_text_at(answer->json, "metadata.continue"));
    answer_free(answer);
    return token;
}

TEST(pages_show_the_state_of_the_first)
{
    struct sim sim = sim_new();
    for (int i = 0; i < 5; i++) {
        char name[2] = {(char)('a' + 2 * i), 0};
        make_config_map(&sim, name, "x");
    }
    char *token = token_of(&sim, CONFIG_MAPS "?limit=2", "a", "3");
    assert_true(*token);
    make_config_map(&sim, "f", "x");
    check_ask(&sim, "DELETE", CONFIG_MAPS "/g", NULL, 200, "status", "Success");
    check_ask(&sim, "PATCH", CONFIG_MAPS "/i", "{\"data\":{\"k\":\"v\"}}", 200, "data.k", "v");
    char *target = NULL;
    assert_true(asprintf(&target, CONFIG_MAPS "?limit=2&continue=%s", token) > 0);
    check_items(&sim, target, "e g");
    char *next = token_of(&sim, target, "e", "1");
    free(target);
    assert_true(asprintf(&target, CONFIG_MAPS "?limit=2&continue=%s", next) > 0);
    struct answer *answer = ask(&sim, "GET", target, NULL);
    const json_t *last = json_array_get(json_object_get(answer->json, "items"), 0);
    check_at(last, "metadata.name", "i");
    check_at(last, "data", "");
    check_at(answer->json, "metadata.continue", "");
    answer_free(answer);
    free(target);
    check_items(&sim, CONFIG_MAPS, "a c e f i");
    /* What was is forgotten: the token that the error brings goes on with the present. */
    sw_sim_store_compact(sim.store, sw_sim_store_version(sim.store));
    assert_true(asprintf(&target, CONFIG_MAPS "?limit=2&continue=%s", token) > 0);
    answer = ask(&sim, "GET", target, NULL);
    assert_int_equal(answer->status, 410);
    check_at(answer->json, "reason", "Expired");
    free(target);
    assert_true(asprintf(&target, CONFIG_MAPS "?continue=%s",
                         sw_sim_text_at(answer->json, "metadata.continue")) > 0);
    check_items(&sim, target, "e f i");
    answer_free(answer);
    free(target);
    free(token);
    free(next);
    check_ask(&sim, "GET", CONFIG_MAPS "?continue=zzz", NULL, 400, "reason", "BadRequest");
    check_ask(&sim, "GET", CONFIG_MAPS "?resourceVersion=101&resourceVersionMatch=Exact", NULL, 410,
              "message", "The resourceVersion for the provided list is too old.");
    check_items(&sim, CONFIG_MAPS "?limit=1&resourceVersion=0", "a c e f i");
    sim_free(&sim);
}

static struct answer *ask_as(struct sim *sim, const char *target, const char *accept)
{
    struct sw_sim_request request = request_of("GET", target, NULL);
    request.accept = accept;
    struct answer *answer = send_request(sim, &request);
    sw_loop_virtual_advance(sim->loop, 0);
    assert_true(answer->has_ended);
    return answer;
}

#define TABLE "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

TEST(shows_tables_and_metadata)
{
    struct sim sim = sim_new();
    make_config_map(&sim, "a", "x");
    sw_loop_virtual_advance(sim.loop, 90000);
    struct answer *answer = ask_as(&sim, CONFIG_MAPS, TABLE);
    check_at(answer->json, "kind", "Table");
    check_at(json_array_get(json_object_get(answer->json, "columnDefinitions"), 0), "name", "Name");
    const json_t *row = json_array_get(json_object_get(answer->json, "rows"), 0);
    check_at(json_array_get(json_object_get(row, "cells"), 0), "", "a");
    check_at(row, "object.kind", "PartialObjectMetadata");
    check_at(row, "object.metadata.name", "a");
    answer_free(answer);
    answer = ask_as(&sim, CONFIG_MAPS "/a", TABLE);
    check_at(answer->json, "kind", "Table");
    answer_free(answer);
    answer = ask_as(&sim, CONFIG_MAPS "?includeObject=None", TABLE);
    row = json_array_get(json_object_get(answer->json, "rows"), 0);
    assert_true(json_is_null(json_object_get(row, "object")));
    answer_free(answer);
    answer = ask_as(&sim, CONFIG_MAPS,
                    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io");
    check_at(answer->json, "kind", "PartialObjectMetadataList");
    check_at(json_array_get(json_object_get(answer->json, "items"), 0), "data", "");
    answer_free(answer);
    answer = ask_as(&sim, CONFIG_MAPS "/a",
                    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io");
    check_at(answer->json, "kind", "PartialObjectMetadata");
    answer_free(answer);
    answer = ask_as(&sim, CONFIG_MAPS, "application/xml");
    assert_int_equal(answer->status, 406);
    answer_free(answer);
    answer = ask_as(&sim, CONFIG_MAPS "/a?pretty=true", NULL);
    assert_memory_equal(answer->body.bytes, "{\n  \"kind\"", 10);
    answer_free(answer);
    sim_free(&sim);
}

TEST(tells_what_it_serves)
{
    struct sim sim = sim_new();
    check_ask(&sim, "GET", "/api", NULL, 200, "versions", "[\"v1\"]");
    check_ask(&sim, "GET", "/apis/apps", NULL, 200, "preferredVersion",
              "{\"groupVersion\":\"apps/v1\",\"version\":\"v1\"}");
    check_ask(&sim, "GET", "/version", NULL, 200, "gitVersion", "v1.20.2");
    check_ask(&sim, "GET", "/version", NULL, 200, "minor", "20");
    check_ask(&sim, "GET", "/apis/nothing", NULL, 404, "", "");
    struct answer *answer = ask(&sim, "GET", "/healthz", NULL);
    assert_string_equal(answer->body.bytes, "ok");
    answer_free(answer);
    answer = ask(&sim, "GET", "/apis/apps/v1", NULL);
    check_at(answer->json, "groupVersion", "apps/v1");
    bool has_scale = false;
    const json_t *resources = json_object_get(answer->json, "resources");
    for (size_t i = 0; i < json_array_size(resources); i++) {
        const json_t *entry = json_array_get(resources, i);
        if (strcmp(sw_sim_text_at(entry, "name"), "deployments/scale") == 0) {
            has_scale = true;
            check_at(entry, "kind", "Scale");
            check_at(entry, "verbs", "[\"get\",\"patch\",\"update\"]");
        }
    }
    assert_true(has_scale);
    answer_free(answer);
    check_ask(&sim, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
              "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SelfSubjectAccessReview\","
              "\"spec\":{}}",
              201, "status.allowed", "true");
    check_ask(&sim, "POST", "/apis/authentication.k8s.io/v1/tokenreviews",
              "{\"spec\":{\"token\":\"me/a,b\"}}", 201, "status.user",
              "{\"username\":\"me\",\"groups\":[\"a\",\"b\",\"system:authenticated\"]}");
    /* Of system:serviceaccount:n:a, until the year 2100, and until 1970. */
    check_ask(&sim, "POST", "/apis/authentication.k8s.io/v1/tokenreviews",
              "{\"spec\":{\"token\":\"eyJhbGciOiJub25lIn0."
              "eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQ6bjphIiwiZXhwIjo0MTAyNDQ0ODAwfQ.\"}}",
              201, "status.user",
              "{\"username\":\"system:serviceaccount:n:a\",\"groups\":[\"system:serviceaccounts\","
              "\"system:authenticated\"]}");
    check_ask(&sim, "POST", "/apis/authentication.k8s.io/v1/tokenreviews",
              "{\"spec\":{\"token\":\"eyJhbGciOiJub25lIn0."
              "eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQ6bjphIiwiZXhwIjoxfQ.\"}}",
              201, "status.user", "{}");
    check_ask(&sim, "GET", "/apis/authentication.k8s.io/v1/tokenreviews", NULL, 405, "reason",
              "MethodNotAllowed");
    sim_free(&sim);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("api", lists_whole_objects_without_their_kind),
        CASE("api", pages_show_the_state_of_the_first),
        CASE("api", shows_tables_and_metadata),
        CASE("api", tells_what_it_serves),
    };
    return RUN(tests);
}
