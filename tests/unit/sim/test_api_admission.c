/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated API server: which webhooks are asked, what they see, what their answers do. */
#include "api_client.h"

/* ---- webhooks of this test ---- */

enum { ASKED_MAX = 16 };

struct asked {
    json_t *review;
    char path[64];
    uint64_t timeout_ms;
    sw_sim_admission_done_fn done;
    void *done_arg;
};

struct hooks {
    struct asked at[ASKED_MAX];
    size_t count;
};

static void on_call(void *arg, const json_t *client_config, const char *review, size_t len,
                    uint64_t timeout_ms, sw_sim_admission_done_fn done, void *done_arg)
{
    struct hooks *hooks = arg;
    assert_in_range(hooks->count, 0, ASKED_MAX - 1);
    struct asked *asked = &hooks->at[hooks->count++];
    asked->review = json_loadb(review, len, 0, NULL);
    assert_non_null(asked->review);
    snprintf(asked->path, sizeof(asked->path), "%s", sw_sim_text_at(client_config, "service.path"));
    asked->timeout_ms = timeout_ms;
    asked->done = done;
    asked->done_arg = done_arg;
}

static struct sim new_sim(struct hooks *hooks)
{
    const struct sw_sim_api_options options = {.admission = {.call = on_call, .arg = hooks}};
    return sim_new_with(1000, &options);
}

static void hooks_done(struct hooks *hooks)
{
    for (size_t i = 0; i < hooks->count; i++) {
        json_decref(hooks->at[i].review);
    }
}

/* Answers the call of that number with the members of response but uid. */
static void reply(struct sim *sim, struct hooks *hooks, size_t number, const char *response)
{
    struct asked *asked = &hooks->at[number];
    assert_in_range(number, 0, hooks->count - 1);
    char *body = NULL;
    assert_true(asprintf(&body,
                         "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\","
                         "\"response\":{\"uid\":\"%s\",%s}}",
                         sw_sim_text_at(asked->review, "request.uid"), response) > 0);
    asked->done(asked->done_arg, 200, body, strlen(body), NULL);
    free(body);
    sw_loop_virtual_advance(sim->loop, 0);
}

static struct answer *begin(struct sim *sim, const char *method, const char *target,
                            const char *body)
{
    struct sw_sim_request request = request_of(method, target, body);
    static const char *const groups[] = {"system:authenticated", NULL};
    request.groups = groups;
    if (strcmp(method, "PATCH") == 0) {
        request.content_type = "application/merge-patch+json";
    }
    struct answer *answer = send_request(sim, &request);
    sw_loop_virtual_advance(sim->loop, 0);
    return answer;
}

#define HOOK(name, path, operations, resources, more)                                           \
    "{\"name\":\"" name "\",\"clientConfig\":{\"service\":{\"name\":\"s\",\"namespace\":\"n\"," \
    "\"path\":\"" path "\"}},\"rules\":[{\"operations\":" operations                            \
    ",\"apiGroups\":[\"\",\"apps\"],\"apiVersions\":[\"*\"],\"resources\":" resources           \
    "}],\"sideEffects\":\"None\",\"admissionReviewVersions\":[\"v1\"]" more "}"

#define CONFIGURATIONS "/apis/admissionregistration.k8s.io/v1/"

static void configure(struct sim *sim, bool is_mutating, const char *hooks)
{
    char *body = NULL;
    assert_true(asprintf(&body, "{\"metadata\":{\"name\":\"c\"},\"webhooks\":[%s]}", hooks) > 0);
    check_ask(sim, "POST",
              is_mutating ? CONFIGURATIONS "mutatingwebhookconfigurations"
                          : CONFIGURATIONS "validatingwebhookconfigurations",
              body, 201, "metadata.name", "c");
    free(body);
}

#define A_MAP "{\"metadata\":{\"name\":\"a\",\"labels\":{\"l\":\"x\"}}}"

/* ---- tests ---- */

TEST(a_webhook_sees_the_request_as_the_real_server_sends_it)
{
    struct hooks hooks = {0};
    struct sim sim = new_sim(&hooks);
    configure(&sim, false,
              HOOK("v.x.io", "/v", "[\"*\"]", "[\"configmaps\"]", ",\"timeoutSeconds\":3"));
    struct answer *answer = begin(&sim, "POST", CONFIG_MAPS "?fieldManager=m", A_MAP);
    assert_int_equal(hooks.count, 1);
    assert_int_equal(hooks.at[0].timeout_ms, 3000);
    assert_string_equal(hooks.at[0].path, "/v");
    const json_t *request = json_object_get(hooks.at[0].review, "request");
    check_at(hooks.at[0].review, "kind", "AdmissionReview");
    check_at(hooks.at[0].review, "apiVersion", "admission.k8s.io/v1");
    check_at(request, "kind", "{\"group\":\"\",\"version\":\"v1\",\"kind\":\"ConfigMap\"}");
    check_at(request, "resource",
             "{\"group\":\"\",\"version\":\"v1\",\"resource\":\"configmaps\"}");
    check_at(request, "requestResource.resource", "configmaps");
    check_at(request, "name", "a");
    check_at(request, "namespace", "default");
    check_at(request, "operation", "CREATE");
    check_at(request, "userInfo",
             "{\"username\":\"tester\",\"groups\":[\"system:authenticated\"]}");
    check_at(request, "object.metadata.name", "a");
    assert_true(json_is_null(json_object_get(request, "oldObject")));
    check_at(request, "dryRun", "false");
    check_at(request, "options",
             "{\"kind\":\"CreateOptions\",\"apiVersion\":\"meta.k8s.io/v1\",\"fieldManager\":"
             "\"m\"}");
    assert_int_equal(answer->status, 0);
    reply(&sim, &hooks, 0, "\"allowed\":true,\"warnings\":[\"one\",\"two\"]");
    assert_int_equal(answer->status, 201);
    assert_string_equal(answer->warnings, "one|two");
    answer_free(answer);
    answer = begin(&sim, "DELETE", CONFIG_MAPS "/a?propagationPolicy=Foreground", NULL);
    request = json_object_get(hooks.at[1].review, "request");
    check_at(request, "operation", "DELETE");
    assert_true(json_is_null(json_object_get(request, "object")));
    check_at(request, "oldObject.metadata.name", "a");
    check_at(request, "options.kind", "DeleteOptions");
    check_at(request, "options.propagationPolicy", "Foreground");
    reply(&sim, &hooks, 1,
          "\"allowed\":false,\"status\":{\"message\":\"no way\",\"code\":403,\"reason\":"
          "\"Forbidden\"}");
    assert_int_equal(answer->status, 403);
    check_at(answer->json, "message", "admission webhook \"v.x.io\" denied the request: no way");
    check_at(answer->json, "reason", "Forbidden");
    answer_free(answer);
    answer = begin(&sim, "PATCH", CONFIG_MAPS "/a", "{\"data\":{\"k\":\"v\"}}");
    request = json_object_get(hooks.at[2].review, "request");
    check_at(request, "operation", "UPDATE");
    check_at(request, "options.kind", "PatchOptions");
    check_at(request, "object.data.k", "v");
    check_at(request, "oldObject.data", "");
    reply(&sim, &hooks, 2, "\"allowed\":false");
    assert_int_equal(answer->status, 400);
    check_at(answer->json, "message",
             "admission webhook \"v.x.io\" denied the request without explanation");
    answer_free(answer);
    hooks_done(&hooks);
    sim_free(&sim);
}

/* [{"op":"add","path":"/data","value":{"k":"v"}}] */
#define PATCH_DATA                           \
    "\"patchType\":\"JSONPatch\",\"patch\":" \
    "\"W3sib3AiOiJhZGQiLCJwYXRoIjoiL2RhdGEiLCJ2YWx1ZSI6eyJrIjoidiJ9fV0=\""

TEST(mutating_webhooks_come_first_and_one_after_the_other)
{
    struct hooks hooks = {0};
    struct sim sim = new_sim(&hooks);
    configure(&sim, true,
              HOOK("a.x.io", "/a", "[\"CREATE\"]", "[\"*\"]",
                   ",\"reinvocationPolicy\":\"IfNeeded\"") "," HOOK("b.x.io", "/b", "[\"CREATE\"]",
                                                                    "[\"configmaps\"]", ""));
    configure(&sim, false, HOOK("v.x.io", "/v", "[\"CREATE\"]", "[\"configmaps\"]", ""));
    struct answer *answer = begin(&sim, "POST", CONFIG_MAPS, A_MAP);
    assert_int_equal(hooks.count, 1);
    check_at(hooks.at[0].review, "request.object.metadata.uid", "");
    reply(&sim, &hooks, 0, "\"allowed\":true");
    assert_int_equal(hooks.count, 2);
    assert_string_equal(hooks.at[1].path, "/b");
    reply(&sim, &hooks, 1, "\"allowed\":true," PATCH_DATA);
    assert_int_equal(hooks.count, 3); /* the first wants to see what the second did */
    assert_string_equal(hooks.at[2].path, "/a");
    check_at(hooks.at[2].review, "request.object.data.k", "v");
    reply(&sim, &hooks, 2, "\"allowed\":true");
    assert_int_equal(hooks.count, 4);
    assert_string_equal(hooks.at[3].path, "/v");
    check_at(hooks.at[3].review, "request.object.data.k", "v");
    assert_int_equal(strlen(sw_sim_text_at(hooks.at[3].review, "request.object.metadata.uid")), 36);
    reply(&sim, &hooks, 3, "\"allowed\":true");
    assert_int_equal(answer->status, 201);
    check_at(answer->json, "data.k", "v");
    answer_free(answer);
    hooks_done(&hooks);
    sim_free(&sim);
}

TEST(selectors_and_rules_choose)
{
    struct hooks hooks = {0};
    struct sim sim = new_sim(&hooks);
    configure(
        &sim, false,
        HOOK("o.x.io", "/o", "[\"UPDATE\"]", "[\"configmaps\"]",
             ",\"objectSelector\":{\"matchLabels\":{\"l\":\"x\"}}") "," HOOK("n.x.io", "/n",
                                                                             "[\"CREATE\"]",
                                                                             "[\"configmaps\""
                                                                             "]",
                                                                             ",\"namespaceSel"
                                                                             "ector\":{"
                                                                             "\"matchLabels\""
                                                                             ":{\"on\":\"1\"}"
                                                                             "}") "," HOOK("s"
                                                                                           "."
                                                                                           "x"
                                                                                           "."
                                                                                           "i"
                                                                                           "o",
                                                                                           "/"
                                                                                           "s",
                                                                                           "["
                                                                                           "\"UPDAT"
                                                                                           "E\"]",
                                                                                           "["
                                                                                           "\"deplo"
                                                                                           "yments/"
                                                                                           "scale\""
                                                                                           ",\"*/"
                                                                                           "status"
                                                                                           "\"]",
                                                                                           ""));
    make_config_map(&sim, "a", "x"); /* nobody is asked */
    assert_int_equal(hooks.count, 0);
    check_ask(&sim, "PATCH", "/api/v1/namespaces/default",
              "{\"metadata\":{\"labels\":{\"on\":\"1\"}}}", 200, "metadata.labels.on", "1");
    struct answer *answer = begin(&sim, "POST", CONFIG_MAPS, "{\"metadata\":{\"name\":\"b\"}}");
    assert_int_equal(hooks.count, 1);
    assert_string_equal(hooks.at[0].path, "/n");
    reply(&sim, &hooks, 0, "\"allowed\":true");
    assert_int_equal(answer->status, 201);
    answer_free(answer);
    check_ask(&sim, "PATCH", CONFIG_MAPS "/b", "{\"data\":{\"k\":\"v\"}}", 200, "data.k", "v");
    /* The label goes: its old state still fits. */
    answer = begin(&sim, "PATCH", CONFIG_MAPS "/a", "{\"metadata\":{\"labels\":null}}");
    assert_int_equal(hooks.count, 2);
    assert_string_equal(hooks.at[1].path, "/o");
    reply(&sim, &hooks, 1, "\"allowed\":true");
    assert_int_equal(answer->status, 200);
    answer_free(answer);
    make_deployment(&sim, "d");
    check_ask(&sim, "PATCH", DEPLOYMENTS "/d", "{\"spec\":{\"replicas\":2}}", 200, "spec.replicas",
              "2");
    answer = begin(&sim, "PATCH", DEPLOYMENTS "/d/scale", "{\"spec\":{\"replicas\":3}}");
    assert_int_equal(hooks.count, 3);
    const json_t *request = json_object_get(hooks.at[2].review, "request");
    check_at(request, "subResource", "scale");
    check_at(request, "kind", "{\"group\":\"autoscaling\",\"version\":\"v1\",\"kind\":\"Scale\"}");
    check_at(request, "object.kind", "Scale");
    check_at(request, "object.spec.replicas", "3");
    check_at(request, "oldObject.spec.replicas", "2");
    reply(&sim, &hooks, 2, "\"allowed\":true");
    check_at(answer->json, "spec.replicas", "3");
    answer_free(answer);
    hooks_done(&hooks);
    sim_free(&sim);
}

TEST(failures_are_judged_by_the_policy)
{
    struct hooks hooks = {0};
    struct sim sim = new_sim(&hooks);
    configure(&sim, false,
              HOOK("f.x.io", "/f", "[\"CREATE\"]", "[\"configmaps\"]",
                   "") "," HOOK("i.x.io", "/i", "[\"CREATE\"]", "[\"configmaps\"]",
                                ",\"failurePolicy\":\"Ignore\""));
    struct answer *answer = begin(&sim, "POST", CONFIG_MAPS, A_MAP);
    assert_int_equal(hooks.count, 2); /* all at once */
    hooks.at[0].done(hooks.at[0].done_arg, 0, NULL, 0, "context deadline exceeded");
    assert_int_equal(answer->status, 0);
    reply(&sim, &hooks, 1, "\"allowed\":true");
    assert_int_equal(answer->status, 500);
    check_at(answer->json, "message",
             "Internal error occurred: failed calling webhook \"f.x.io\": Post "
             "\"https://s.n.svc:443/f?timeout=10s\": context deadline exceeded");
    check_at(answer->json, "reason", "InternalError");
    answer_free(answer);
    answer = begin(&sim, "POST", CONFIG_MAPS, A_MAP);
    hooks.at[3].done(hooks.at[3].done_arg, 200, "nonsense", 8, NULL);
    reply(&sim, &hooks, 2, "\"allowed\":true");
    assert_int_equal(answer->status, 201);
    answer_free(answer);
    hooks_done(&hooks);
    sim_free(&sim);
}

TEST(a_dry_run_asks_only_those_without_side_effects)
{
    struct hooks hooks = {0};
    struct sim sim = new_sim(&hooks);
    configure(&sim, false,
              "{\"name\":\"x.x.io\",\"clientConfig\":{\"url\":\"https://x\"},\"rules\":[{"
              "\"operations\":[\"*\"],\"apiGroups\":[\"*\"],\"apiVersions\":[\"*\"],\"resources\":"
              "[\"configmaps\"]}],\"sideEffects\":\"Some\"}");
    check_ask(&sim, "POST", CONFIG_MAPS "?dryRun=All", A_MAP, 400, "message",
              "admission webhook \"x.x.io\" does not support dry run");
    check_ask(&sim, "DELETE", CONFIGURATIONS "validatingwebhookconfigurations/c", NULL, 200,
              "status", "Success");
    configure(&sim, false, HOOK("y.x.io", "/y", "[\"*\"]", "[\"configmaps\"]", ""));
    struct answer *answer = begin(&sim, "POST", CONFIG_MAPS "?dryRun=All", A_MAP);
    check_at(hooks.at[0].review, "request.dryRun", "true");
    check_at(hooks.at[0].review, "request.options.dryRun", "[\"All\"]");
    reply(&sim, &hooks, 0, "\"allowed\":true");
    assert_int_equal(answer->status, 201);
    answer_free(answer);
    assert_int_equal(hooks.count, 1);
    hooks_done(&hooks);
    sim_free(&sim);
}

TEST(a_patch_begins_anew_where_the_object_has_changed)
{
    struct hooks hooks = {0};
    struct sim sim = new_sim(&hooks);
    make_config_map(&sim, "a", "x");
    configure(&sim, false, HOOK("v.x.io", "/v", "[\"UPDATE\"]", "[\"configmaps\"]", ""));
    struct answer *patch = begin(&sim, "PATCH", CONFIG_MAPS "/a", "{\"data\":{\"mine\":\"1\"}}");
    const struct sw_sim_kind *kind = sw_sim_api_kind(sim.api, "", "v1", "configmaps");
    struct answer *bound =
        begin(&sim, "PATCH", CONFIG_MAPS "/a",
              "{\"metadata\":{\"resourceVersion\":\"105\"},\"data\":{\"bound\":\"1\"}}");
    json_t *changed =
        json_deep_copy(sw_sim_object_json(sw_sim_store_get(sim.store, kind, "default", "a")));
    json_object_set_new(changed, "data", json_pack("{s:s}", "other", "1"));
    assert_int_equal(sw_sim_update(sim.api, kind, changed), 0);
    reply(&sim, &hooks, 0, "\"allowed\":true");
    reply(&sim, &hooks, 1, "\"allowed\":true");
    assert_int_equal(bound->status, 409);
    assert_int_equal(patch->status, 0);
    assert_int_equal(hooks.count, 3);
    check_at(hooks.at[2].review, "request.oldObject.data.other", "1");
    reply(&sim, &hooks, 2, "\"allowed\":true");
    assert_int_equal(patch->status, 200);
    check_at(patch->json, "data", "{\"other\":\"1\",\"mine\":\"1\"}");
    answer_free(patch);
    answer_free(bound);
    hooks_done(&hooks);
    sim_free(&sim);
}

TEST(a_write_goes_on_without_its_client_and_ends_with_the_server)
{
    struct hooks hooks = {0};
    struct sim sim = new_sim(&hooks);
    configure(&sim, true, HOOK("m.x.io", "/m", "[\"CREATE\"]", "[\"configmaps\"]", ""));
    struct answer *answer = begin(&sim, "POST", CONFIG_MAPS, A_MAP);
    sw_sim_api_cancel(sim.api, answer->call);
    reply(&sim, &hooks, 0, "\"allowed\":true");
    assert_int_equal(answer->status, 0);
    answer_free(answer);
    check_ask(&sim, "GET", CONFIG_MAPS "/a", NULL, 200, "metadata.name", "a");
    answer = begin(&sim, "POST", CONFIG_MAPS, "{\"metadata\":{\"name\":\"b\"}}");
    assert_int_equal(hooks.count, 2);
    sim_free(&sim);
    hooks.at[1].done(hooks.at[1].done_arg, 0, NULL, 0, "too late");
    assert_false(answer->has_ended);
    answer_free(answer);
    hooks_done(&hooks);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("admission", a_webhook_sees_the_request_as_the_real_server_sends_it),
        CASE("admission", mutating_webhooks_come_first_and_one_after_the_other),
        CASE("admission", selectors_and_rules_choose),
        CASE("admission", failures_are_judged_by_the_policy),
        CASE("admission", a_dry_run_asks_only_those_without_side_effects),
        CASE("admission", a_patch_begins_anew_where_the_object_has_changed),
        CASE("admission", a_write_goes_on_without_its_client_and_ends_with_the_server),
    };
    return RUN(tests);
}
