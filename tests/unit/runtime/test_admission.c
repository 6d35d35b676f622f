/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission: what is answered to whatever comes, and the form of the answer.
 */
#include <errno.h>
#include <slipway/admission.h>
#include <slipway/watch.h>
#include <slipway/workloads.h>

#include "base/buf.h"
#include "base/error.h"
#include "runtime/admission.h"

#include "../test.h"
#include "fixture.h"

struct reviewer {
    struct fixture f;
    struct made_up made_up;
    struct sw_arena *arena;
    struct sw_buf out;
    const char *content_type;
    unsigned asked;
    char review[512]; /* what the handler was asked */
    void (*answer)(struct sw_arena *arena, struct sw_review_answer *answer);
};

static void handler(struct sw_instance *self, const struct sw_review *review,
                    struct sw_review_answer *answer)
{
    struct reviewer *r = (*(struct made_up **)sw_state(self))->arg;
    static const char *const operations[] = {"create", "update", "delete"};

    r->asked++;
    snprintf(r->review, sizeof(r->review), "%s %s/%s by %s with %s%s, object %s/%s, old %s",
             operations[review->operation], review->namespace_, review->name, review->username,
             review->field_manager, review->is_dry_run ? " dry" : "",
             review->object ? review->object->namespace_ : "-",
             review->object ? review->object->name : "-", review->old ? review->old->name : "-");
    if (r->answer)
        r->answer(review->arena, answer);
}

static int start(struct sw_instance *self, void *arg)
{
    struct sw_watch_options watch = {.arg = arg};
    struct sw_admission admission = {
        .path = "/mutate",
        .webhook_name = "w",
        .kind = &sw_kind_deployment,
        .is_mutating = true,
        .on_create = true,
        .on_update = true,
        .on_delete = true,
        .fn = handler,
    };

    assert_int_equal(sw_admission_register(self, &admission), 0);
    assert_int_equal(sw_admission_register(self, &admission), -EEXIST);
    return sw_watch(self, &sw_kind_deployment, &watch);
}

static struct reviewer *begin_unsynced(void)
{
    struct reviewer *r = calloc(1, sizeof(*r));

    r->made_up = (struct made_up){.start = start, .arg = r};
    r->arena = sw_arena_new(0);
    sw_buf_init(&r->out, SIZE_MAX);
    fixture_init(&r->f, NULL);
    fixture_add(&r->f, &module_one, &r->made_up);
    fixture_open(&r->f);
    return r;
}

static struct reviewer *begin(void)
{
    struct reviewer *r = begin_unsynced();

    serve_deployments(&r->f, "10", "");
    return r;
}

static void end(struct reviewer *r)
{
    fixture_done(&r->f);
    sw_buf_done(&r->out);
    sw_arena_free(r->arena);
    free(r);
}

static int ask_with(struct reviewer *r, struct sw_admission_request request)
{
    request.method = request.method ? request.method : "POST";
    request.path = request.path ? request.path : "/mutate";
    request.content_type = request.content_type ? request.content_type : "application/json";
    request.body = request.body ? request.body : "";
    request.body_len = strlen(request.body);
    request.arena = r->arena;
    sw_buf_clear(&r->out);
    return sw_admission_answer(r->f.core, &request, &r->out, &r->content_type);
}

static int ask(struct reviewer *r, const char *body)
{
    return ask_with(r, (struct sw_admission_request){.body = body});
}

/* A review; fields: members of the request in front of the usual ones, of which the last counts. */
static const char *review_with(const char *api_version, const char *fields)
{
    static char text[16384];

    snprintf(text, sizeof(text),
             "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"%s\",\"request\":{\"uid\":\"the-uid\","
             "\"kind\":{\"group\":\"apps\",\"version\":\"v1\",\"kind\":\"Deployment\"},"
             "\"resource\":{\"group\":\"apps\",\"version\":\"v1\",\"resource\":\"deployments\"},"
             "\"name\":\"web\",\"namespace\":\"shop\",\"userInfo\":{\"username\":\"mia\"},"
             "\"options\":{\"fieldManager\":\"kubectl\"},%s}}",
             api_version, fields);
    return text;
}

static const char *review(const char *fields)
{
    return review_with("admission.k8s.io/v1", fields);
}

#define OBJECT "{\"metadata\":{\"name\":\"web\"},\"spec\":{\"template\":{}}}"
#define CREATE "\"operation\":\"CREATE\",\"object\":" OBJECT ",\"oldObject\":null,\"dryRun\":false"
#define UPDATE "\"operation\":\"UPDATE\",\"object\":" OBJECT ",\"oldObject\":" OBJECT

/* ---- what is asked ---- */

TEST(hands_the_review_to_the_module)
{
    struct reviewer *r = begin();

    assert_int_equal(ask(r, review(CREATE)), 200);
    assert_string_equal(r->content_type, "application/json");
    assert_string_equal(r->review, "create shop/web by mia with kubectl, object shop/web, old -");
    assert_int_equal(ask(r, review(UPDATE ",\"dryRun\":true")), 200);
    assert_string_equal(r->review,
                        "update shop/web by mia with kubectl dry, object shop/web, old web");
    assert_int_equal(
        ask(r, review("\"operation\":\"DELETE\",\"object\":null,\"oldObject\":" OBJECT)), 200);
    assert_string_equal(r->review, "delete shop/web by mia with kubectl, object -/-, old web");
    end(r);
}

TEST(reads_a_review_of_an_object_without_a_name)
{
    struct reviewer *r = begin();

    assert_int_equal(
        ask(r, review("\"operation\":\"CREATE\",\"object\":{\"metadata\":{\"generateName\":\"x-\"},"
                      "\"spec\":{}},\"name\":\"\"")),
        200);
    assert_string_equal(r->review, "create shop/ by mia with kubectl, object shop/, old -");
    end(r);
}

TEST(allows_what_was_not_registered_for)
{
    static const char *const others[] = {
        "\"operation\":\"CONNECT\",\"object\":null",
        UPDATE ",\"subResource\":\"scale\"",
        UPDATE ",\"resource\":{\"group\":\"\",\"version\":\"v1\",\"resource\":\"pods\"}",
        UPDATE
        ",\"resource\":{\"group\":\"apps\",\"version\":\"v1beta1\",\"resource\":\"deployments\"}",
    };
    struct reviewer *r = begin();

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_int_equal(ask(r, review(others[i])), 200);
        assert_string_equal(r->out.bytes,
                            "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\","
                            "\"response\":{\"uid\":\"the-uid\",\"allowed\":true}}");
    }
    assert_int_equal(r->asked, 0);
    end(r);
}

/* ---- what is refused ---- */

TEST(refuses_what_is_no_review)
{
    static const char *const bodies[] = {
        "",
        "{",
        "[]",
        "null",
        "<html></html>",
        "{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}",
        "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\"}",
        "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{}}",
        "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/"
        "v1\",\"request\":{\"uid\":\"\","
        "\"operation\":\"CREATE\",\"object\":" OBJECT "}}",
    };
    static const char *const requests[] = {
        "\"operation\":\"CREATE\",\"object\":null",
        "\"operation\":\"UPDATE\",\"object\":" OBJECT ",\"oldObject\":null",
        "\"operation\":\"UPDATE\",\"object\":7,\"oldObject\":" OBJECT,
        "\"operation\":\"CREATE\",\"object\":{\"metadata\":{\"name\":\"web\"},\"spec\":{"
        "\"replicas\":"
        "\"many\"}}",
    };
    struct reviewer *r = begin();

    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        if (ask(r, bodies[i]) != 400)
            fail_msg("body %zu was answered with %s", i, r->out.bytes);
        assert_true(r->out.len > 0);
    }
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
        if (ask(r, review(requests[i])) != 400)
            fail_msg("request %zu was answered with %s", i, r->out.bytes);
    assert_int_equal(r->asked, 0);
    assert_string_equal(r->content_type, "text/plain; charset=utf-8");
    end(r);
}

TEST(says_that_only_v1_is_answered)
{
    struct reviewer *r = begin();

    assert_int_equal(ask(r, review_with("admission.k8s.io/v1beta1", CREATE)), 400);
    assert_non_null(strstr(r->out.bytes, "admissionReviewVersions: [v1]"));
    end(r);
}

TEST(refuses_other_paths_methods_and_types)
{
    struct reviewer *r = begin();
    const char *body = review(CREATE);

    assert_int_equal(ask_with(r, (struct sw_admission_request){.path = "/", .body = body}), 404);
    assert_int_equal(ask_with(r, (struct sw_admission_request){.method = "GET"}), 405);
    assert_int_equal(
        ask_with(r, (struct sw_admission_request){.content_type = "text/plain", .body = body}),
        400);
    assert_int_equal(
        ask_with(r, (struct sw_admission_request){.content_type = "Application/JSON; charset=utf-8",
                                                  .body = body}),
        200);
    end(r);
}

TEST(refuses_before_everything_is_listed)
{
    struct reviewer *r = begin_unsynced();

    assert_int_equal(ask(r, review(CREATE)), 503);
    serve_deployments(&r->f, "10", "");
    assert_int_equal(ask(r, review(CREATE)), 200);
    end(r);
}

/* ---- the answer ---- */

static void patch(struct sw_arena *arena, struct sw_review_answer *answer)
{
    static const char text[] = "[{\"op\":\"add\",\"path\":\"/spec/paused\",\"value\":true}]";

    assert_int_equal(sw_json_parse(arena, text, strlen(text), &answer->patch, NULL), 0);
    answer->warnings[1] = "held by coordination/nginx: \"position 2\"";
    answer->warnings[3] = "second";
}

TEST(carries_patch_and_warnings)
{
    struct reviewer *r = begin();

    r->answer = patch;
    assert_int_equal(ask(r, review(CREATE)), 200);
    assert_string_equal(
        r->out.bytes,
        "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"response\":{"
        "\"uid\":\"the-uid\",\"allowed\":true,\"patchType\":\"JSONPatch\",\"patch\":"
        "\"W3sib3AiOiJhZGQiLCJwYXRoIjoiL3NwZWMvcGF1c2VkIiwidmFsdWUiOnRydWV9XQ==\","
        "\"warnings\":[\"held by coordination/nginx: \\\"position 2\\\"\",\"second\"]}}");
    end(r);
}

static void empty_patch(struct sw_arena *arena, struct sw_review_answer *answer)
{
    answer->patch = sw_json_array(arena);
}

TEST(leaves_an_empty_patch_out)
{
    struct reviewer *r = begin();

    r->answer = empty_patch;
    assert_int_equal(ask(r, review(CREATE)), 200);
    assert_null(strstr(r->out.bytes, "patch"));
    end(r);
}

static void denial(struct sw_arena *arena, struct sw_review_answer *answer)
{
    patch(arena, answer);
    answer->is_denied = true;
    answer->deny_message = "no\nway";
}

TEST(denies_without_a_patch)
{
    struct reviewer *r = begin();

    r->answer = denial;
    assert_int_equal(ask(r, review(CREATE)), 200);
    assert_non_null(strstr(r->out.bytes,
                           "\"allowed\":false,\"status\":{\"code\":403,\"reason\":\"Forbidden\","
                           "\"message\":\"no\\u000away\"}"));
    assert_null(strstr(r->out.bytes, "patch"));
    end(r);
}

/* 120 characters, not bytes, and none of them in half. */
static void warning_of_lines(struct sw_arena *arena, struct sw_review_answer *answer)
{
    (void)arena;
    answer->warnings[0] = "held by user: two\n\tlines\x7f and \xc2\x85 \xc3\xa9\r\n";
}

/* The API server drops a warning with a control character in it. */
TEST(shows_a_warning_of_several_lines_in_one)
{
    struct reviewer *r = begin();

    r->answer = warning_of_lines;
    assert_int_equal(ask(r, review(CREATE)), 200);
    assert_non_null(
        strstr(r->out.bytes, "\"warnings\":[\"held by user: two  lines  and   \xc3\xa9\"]"));
    end(r);
}

static void long_warning(struct sw_arena *arena, struct sw_review_answer *answer)
{
    char *text = sw_arena_alloc(arena, 1000);

    for (int i = 0; i < 130; i++)
        strcat(text, "\xc3\xa4");
    answer->warnings[0] = text;
}

TEST(cuts_a_warning_between_characters)
{
    struct reviewer *r = begin();

    r->answer = long_warning;
    assert_int_equal(ask(r, review(CREATE)), 200);
    const char *warning = strstr(r->out.bytes, "[\"") + 2;
    assert_int_equal(strcspn(warning, "\""), 240);
    end(r);
}

/* RFC 4648 section 10. */
TEST(encodes_patches_in_base64)
{
    static const char *const texts[] = {"[1]", "[12]", "[123]"};
    static const char *const wanted[] = {"\"WzFd\"", "\"WzEyXQ==\"", "\"WzEyM10=\""};
    struct sw_arena *arena = sw_arena_new(0);
    struct sw_buf out;

    sw_buf_init(&out, SIZE_MAX);
    for (int i = 0; i < 3; i++) {
        struct sw_review_answer answer = {0};
        assert_int_equal(sw_json_parse(arena, texts[i], strlen(texts[i]), &answer.patch, NULL), 0);
        sw_buf_clear(&out);
        sw_admission_write(&out, arena, "u", &answer, true);
        assert_non_null(strstr(out.bytes, wanted[i]));
        sw_buf_clear(&out);
        sw_admission_write(&out, arena, "u", &answer, false);
        assert_null(strstr(out.bytes, "patch"));
    }
    sw_buf_done(&out);
    sw_arena_free(arena);
}

/* Cut anywhere it is refused, never answered. */
TEST(refuses_a_review_cut_at_any_place)
{
    struct reviewer *r = begin();
    const char *whole = review(UPDATE);

    for (size_t len = 0; len < strlen(whole); len++) {
        char *part = strndup(whole, len);
        assert_int_equal(ask(r, part), 400);
        free(part);
        sw_arena_reset(r->arena);
    }
    assert_int_equal(r->asked, 0);
    end(r);
}

TEST(counts_answers_by_status)
{
    struct reviewer *r = begin();

    ask(r, review(CREATE));
    ask(r, "{");
    sw_buf_clear(&r->out);
    sw_metrics_write(r->f.metrics, SW_METRICS_TEXT, &r->out);
    assert_non_null(
        strstr(r->out.bytes,
               "controller_runtime_webhook_requests_total{webhook=\"/mutate\",code=\"200\"} 1\n"));
    assert_non_null(
        strstr(r->out.bytes,
               "controller_runtime_webhook_requests_total{webhook=\"/mutate\",code=\"400\"} 1\n"));
    assert_non_null(strstr(
        r->out.bytes, "controller_runtime_webhook_latency_seconds_count{webhook=\"/mutate\"} 2\n"));
    end(r);
}

/* ---- several modules, several kinds ---- */

struct widget {
    struct sw_object meta;
    int32_t size;
};

static const struct sw_bind widget_fields[] = {
    SW_BIND("/spec/size", SW_BIND_INT32, struct widget, size),
    SW_BIND_END,
};

static const struct sw_kind widgets = {
    .group = "example.org",
    .version = "v1alpha1",
    .kind = "Widget",
    .plural = "widgets",
    .size = sizeof(struct widget),
    .fields = widget_fields,
};

static void say_what_was_read(struct sw_instance *self, const struct sw_review *review,
                              struct sw_review_answer *answer)
{
    const struct sw_object *object = review->object;
    struct sw_json *operation;
    int size = 0;

    if (object->kind == &sw_kind_stateful_set)
        size = ((const struct sw_stateful_set *)(const void *)object)->partition;
    else if (object->kind == &sw_kind_daemon_set)
        size = ((const struct sw_daemon_set *)(const void *)object)->min_ready_seconds;
    else
        size = ((const struct widget *)(const void *)object)->size;
    answer->warnings[0] = sw_arena_printf(review->arena, "%s saw %s %s of %d", sw_name(self),
                                          object->kind->kind, object->name, size);
    answer->patch = sw_json_array(review->arena);
    operation = sw_json_append_object(answer->patch);
    sw_json_set_string(operation, "op", "remove");
    sw_json_set_string(operation, "path", "/a");
}

static int start_routes(struct sw_instance *self, void *arg)
{
    const struct sw_admission *admission = arg;

    for (; admission->path; admission++)
        assert_int_equal(sw_admission_register(self, admission), 0);
    return 0;
}

static const char *review_of(const char *group, const char *version, const char *plural,
                             const char *object)
{
    static char text[2048];

    snprintf(text, sizeof(text),
             "\"operation\":\"UPDATE\",\"resource\":{\"group\":\"%s\",\"version\":\"%s\","
             "\"resource\":\"%s\"},\"object\":%s,\"oldObject\":%s",
             group, version, plural, object, object);
    return review(text);
}

static bool was_warned(const struct reviewer *r, const char *text)
{
    return r->out.bytes && strstr(r->out.bytes, text);
}

TEST(asks_each_module_at_its_own_path_about_its_own_kinds)
{
    static const char set[] = "{\"metadata\":{\"name\":\"db\"},\"spec\":{\"updateStrategy\":{"
                              "\"rollingUpdate\":{\"partition\":3}},\"template\":{}}}";
    static const char daemon[] =
        "{\"metadata\":{\"name\":\"log\"},\"spec\":{\"minReadySeconds\":5,\"template\":{}}}";
    static const char widget[] = "{\"metadata\":{\"name\":\"w\"},\"spec\":{\"size\":7}}";
    struct sw_admission of_one[] = {
        {"/sets", "sets.x", &sw_kind_stateful_set, true, true, true, false, false,
         say_what_was_read},
        {"/widgets", "widgets.x", &widgets, false, true, true, false, false, say_what_was_read},
        {0},
    };
    struct sw_admission of_two[] = {
        {"/daemons", "daemons.x", &sw_kind_daemon_set, true, true, true, false, false,
         say_what_was_read},
        {0},
    };
    struct made_up one = {.start = start_routes, .arg = of_one},
                   two = {.start = start_routes, .arg = of_two};
    struct reviewer r = {.arena = sw_arena_new(0)};

    sw_buf_init(&r.out, SIZE_MAX);
    fixture_init(&r.f, NULL);
    fixture_add(&r.f, &module_one, &one);
    fixture_add(&r.f, &module_two, &two);
    fixture_open(&r.f);
    struct sw_admission_request request = {.path = "/sets"};
    request.body = review_of("apps", "v1", "statefulsets", set);
    assert_int_equal(ask_with(&r, request), 200);
    assert_true(was_warned(&r, "one saw StatefulSet db of 3"));
    assert_true(was_warned(&r, "\"patch\":"));
    request = (struct sw_admission_request){.path = "/daemons"};
    request.body = review_of("apps", "v1", "daemonsets", daemon);
    assert_int_equal(ask_with(&r, request), 200);
    assert_true(was_warned(&r, "two saw DaemonSet log of 5"));
    request = (struct sw_admission_request){.path = "/widgets"};
    request.body = review_of("example.org", "v1alpha1", "widgets", widget);
    assert_int_equal(ask_with(&r, request), 200);
    assert_true(was_warned(&r, "one saw Widget w of 7"));
    assert_false(was_warned(&r, "\"patch\":")); /* who validates changes nothing */
    /* Another kind at a path is none of its business. */
    request.body = review_of("apps", "v1", "daemonsets", daemon);
    assert_int_equal(ask_with(&r, request), 200);
    assert_false(was_warned(&r, "saw"));
    request.body = review_of("example.org", "v1", "widgets", widget);
    assert_int_equal(ask_with(&r, request), 200);
    assert_false(was_warned(&r, "saw"));
    fixture_done(&r.f);
    sw_buf_done(&r.out);
    sw_arena_free(r.arena);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("admission", hands_the_review_to_the_module),
        CASE("admission", reads_a_review_of_an_object_without_a_name),
        CASE("admission", allows_what_was_not_registered_for),
        CASE("admission", refuses_what_is_no_review),
        CASE("admission", says_that_only_v1_is_answered),
        CASE("admission", refuses_other_paths_methods_and_types),
        CASE("admission", refuses_before_everything_is_listed),
        CASE("admission", carries_patch_and_warnings),
        CASE("admission", leaves_an_empty_patch_out),
        CASE("admission", denies_without_a_patch),
        CASE("admission", cuts_a_warning_between_characters),
        CASE("admission", shows_a_warning_of_several_lines_in_one),
        CASE("admission", encodes_patches_in_base64),
        CASE("admission", refuses_a_review_cut_at_any_place),
        CASE("admission", counts_answers_by_status),
        CASE("admission", asks_each_module_at_its_own_path_about_its_own_kinds),
    };
    return RUN(tests);
}
