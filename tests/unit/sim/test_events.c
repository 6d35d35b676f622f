/* SPDX-License-Identifier: Apache-2.0 */
/* Events: one object under two groups. */
#include "api_client.h"

#define EVENTS "/api/v1/namespaces/default/events"
#define NEW_EVENTS "/apis/events.k8s.io/v1/namespaces/default/events"

static const char old_form[] =
    "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"e\"},\"reason\":\"R\","
    "\"message\":\"m\",\"type\":\"Normal\",\"count\":2,"
    "\"involvedObject\":{\"kind\":\"Pod\",\"namespace\":\"default\",\"name\":\"p\"}}";

static const char new_form[] =
    "{\"apiVersion\":\"events.k8s.io/v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"f\"},"
    "\"reason\":\"R\",\"note\":\"n\",\"type\":\"Warning\",\"action\":\"A\","
    "\"eventTime\":\"2026-01-02T03:04:05.000001Z\",\"reportingController\":\"c/d\","
    "\"reportingInstance\":\"i\",\"series\":{\"count\":3,\"lastObservedTime\":"
    "\"2026-01-02T03:04:06.000000Z\"},"
    "\"regarding\":{\"kind\":\"Pod\",\"namespace\":\"default\",\"name\":\"q\"}}";

TEST(one_of_the_core_group_is_seen_through_the_other)
{
    struct sim sim = sim_new();
    check_ask(&sim, "POST", EVENTS, old_form, 201, "apiVersion", "v1");
    struct answer *answer = ask(&sim, "GET", NEW_EVENTS "/e", NULL);
    check_at(answer->json, "apiVersion", "events.k8s.io/v1");
    check_at(answer->json, "note", "m");
    check_at(answer->json, "deprecatedCount", "2");
    check_at(answer->json, "regarding.name", "p");
    assert_null(json_object_get(answer->json, "message"));
    assert_null(json_object_get(answer->json, "involvedObject"));
    answer_free(answer);
    check_ask(&sim, "PATCH", NEW_EVENTS "/e", "{\"note\":\"other\"}", 200, "note", "other");
    check_ask(&sim, "GET", EVENTS "/e", NULL, 200, "message", "other");
    check_ask(&sim, "DELETE", NEW_EVENTS "/e", NULL, 200, "status", "Success");
    check_ask(&sim, "GET", EVENTS "/e", NULL, 404, "reason", "NotFound");
    sim_free(&sim);
}

TEST(one_of_the_new_group_is_seen_through_the_core)
{
    struct sim sim = sim_new();
    struct answer *made = ask(&sim, "POST", NEW_EVENTS, new_form);
    assert_int_equal(made->status, 201);
    check_at(made->json, "note", "n");
    check_at(made->json, "deprecatedSource", "{}");
    const json_t *entry = json_array_get(sw_sim_at(made->json, "metadata.managedFields"), 0);
    check_at(entry, "apiVersion", "events.k8s.io/v1");
    assert_non_null(json_object_get(json_object_get(entry, "fieldsV1"), "f:note"));
    answer_free(made);
    struct answer *answer = ask(&sim, "GET", EVENTS "/f", NULL);
    check_at(answer->json, "message", "n");
    check_at(answer->json, "involvedObject.name", "q");
    check_at(answer->json, "reportingComponent", "c/d");
    check_at(answer->json, "eventTime", "2026-01-02T03:04:05.000001Z");
    check_at(answer->json, "series.count", "3");
    answer_free(answer);
    sim_free(&sim);
}

static void check_count(struct sim *sim, const char *target, size_t want)
{
    struct answer *answer = ask(sim, "GET", target, NULL);
    assert_int_equal(answer->status, 200);
    assert_int_equal(json_array_size(json_object_get(answer->json, "items")), want);
    answer_free(answer);
}

TEST(fields_select_in_both_groups_by_their_own_names)
{
    struct sim sim = sim_new();
    check_ask(&sim, "POST", EVENTS, old_form, 201, "metadata.name", "e");
    check_ask(&sim, "POST", NEW_EVENTS, new_form, 201, "metadata.name", "f");
    check_count(&sim, EVENTS, 2);
    check_count(&sim, NEW_EVENTS, 2);
    check_count(&sim, EVENTS "?fieldSelector=involvedObject.name%3Dq", 1);
    check_count(&sim, NEW_EVENTS "?fieldSelector=regarding.name%3Dq,type%3DWarning", 1);
    check_count(&sim, NEW_EVENTS "?fieldSelector=regarding.name%3Dq,type%3DNormal", 0);
    sim_free(&sim);
}

TEST(a_watch_of_one_group_hears_of_the_other)
{
    struct sim sim = sim_new();
    struct sw_sim_request request = request_of("GET", NEW_EVENTS "?watch=true", NULL);
    struct answer *watch = send_request(&sim, &request);
    check_ask(&sim, "POST", EVENTS, old_form, 201, "metadata.name", "e");
    assert_non_null(strstr(watch->body.bytes, "\"note\":\"m\""));
    assert_non_null(strstr(watch->body.bytes, "\"apiVersion\":\"events.k8s.io/v1\""));
    sw_sim_api_cancel(sim.api, watch->call);
    answer_free(watch);
    sim_free(&sim);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("events", one_of_the_core_group_is_seen_through_the_other),
        CASE("events", one_of_the_new_group_is_seen_through_the_core),
        CASE("events", fields_select_in_both_groups_by_their_own_names),
        CASE("events", a_watch_of_one_group_hears_of_the_other),
    };
    return RUN(tests);
}
