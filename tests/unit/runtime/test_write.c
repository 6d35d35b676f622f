/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes: what is sent, what an answer means, and what the store knows when the callback comes.
 */
#include <errno.h>
#include <slipway/watch.h>
#include <slipway/write.h>

#include "base/error.h"
#include "kube/client.h"

#include "../test.h"
#include "fixture.h"

struct writer {
    struct fixture f;
    struct made_up made_up;
    struct fake_request *watch;
    struct sw_arena *arena;
    unsigned answers;
    enum sw_outcome outcome;
    int status;
    char reason[64], message[256], version[64], own_version[64];
    bool has_object;
    char seen[1024]; /* deltas and answers in their order: "+a ~a answer " */
};

static void on_delta(struct sw_instance *self, void *arg, const struct sw_delta *delta)
{
    struct writer *w = arg;
    const struct sw_object *object = delta->now ? delta->now : delta->old;
    size_t len = strlen(w->seen);

    (void)self;
    snprintf(w->seen + len, sizeof(w->seen) - len, "%c%s ",
             delta->type == SW_ADDED      ? '+'
             : delta->type == SW_MODIFIED ? '~'
                                          : '-',
             object->name);
}

static void on_answer(struct sw_instance *self, void *arg, const struct sw_answer *answer)
{
    struct writer *w = arg;

    assert_ptr_equal(self, w->made_up.self);
    w->answers++;
    w->outcome = answer->outcome;
    w->status = answer->status;
    snprintf(w->reason, sizeof(w->reason), "%s", answer->reason);
    snprintf(w->message, sizeof(w->message), "%s", answer->message);
    w->has_object = answer->object != NULL;
    snprintf(w->version, sizeof(w->version), "%s",
             answer->object ? answer->object->resource_version : "");
    snprintf(w->own_version, sizeof(w->own_version), "%s", answer->resource_version);
    strcat(w->seen, "answer ");
}

static int start(struct sw_instance *self, void *arg)
{
    struct sw_watch_options options = {.on_delta = on_delta, .arg = arg};

    return sw_watch(self, &sw_kind_deployment, &options);
}

static struct writer *begin_with(const struct sw_core_options *options)
{
    struct writer *w = calloc(1, sizeof(*w));

    w->made_up = (struct made_up){.start = start, .arg = w};
    w->arena = sw_arena_new(0);
    fixture_init(&w->f, options);
    fixture_add(&w->f, &module_one, &w->made_up);
    fixture_open(&w->f);
    w->watch = serve_deployments(&w->f, "10", deployment("n", "a", "u1", "5", "{}"));
    w->seen[0] = '\0';
    return w;
}

static struct writer *begin(void)
{
    return begin_with(NULL);
}

static void end(struct writer *w)
{
    fixture_done(&w->f);
    sw_arena_free(w->arena);
    free(w);
}

static struct sw_json *json(struct writer *w, const char *text)
{
    struct sw_json *value;

    assert_int_equal(sw_json_parse(w->arena, text, strlen(text), &value, NULL), 0);
    return value;
}

static struct fake_request *write_to(struct writer *w, struct sw_write write)
{
    write.kind = write.kind ? write.kind : &sw_kind_deployment;
    write.namespace_ = write.namespace_ ? write.namespace_ : "n";
    write.name = write.name ? write.name : "a";
    assert_int_equal(sw_write(w->made_up.self, &write, on_answer, w), 0);
    assert_int_equal(w->answers, 0);
    fixture_turn(&w->f);
    return fake_find(w->f.transport, "/namespaces/n/deployments");
}

static struct fake_request *patch(struct writer *w)
{
    return write_to(w, (struct sw_write){.verb = SW_MERGE_PATCH,
                                         .body = json(w, "{\"spec\":{\"paused\":true}}"),
                                         .resource_version = "5"});
}

/* ---- what is sent ---- */

TEST(puts_the_precondition_into_a_merge_patch)
{
    struct writer *w = begin();
    struct fake_request *r = patch(w);

    assert_string_equal(r->method, "PATCH");
    assert_string_equal(r->target, "/apis/apps/v1/namespaces/n/deployments/a?fieldManager=slipway");
    assert_string_equal(r->content_type, "application/merge-patch+json");
    assert_string_equal(r->body,
                        "{\"spec\":{\"paused\":true},\"metadata\":{\"resourceVersion\":\"5\"}}");
    assert_true(r->may_replay);
    end(w);
}

TEST(tests_the_precondition_first_in_a_json_patch)
{
    struct writer *w = begin();
    struct fake_request *r = write_to(
        w, (struct sw_write){.verb = SW_JSON_PATCH,
                             .body = json(w, "[{\"op\":\"remove\",\"path\":\"/spec/paused\"}]"),
                             .resource_version = "5"});

    assert_string_equal(r->content_type, "application/json-patch+json");
    assert_string_equal(r->body,
                        "[{\"op\":\"test\",\"path\":\"/metadata/resourceVersion\",\"value\":\"5\"},"
                        "{\"op\":\"remove\",\"path\":\"/spec/paused\"}]");
    end(w);
}

TEST(names_type_and_object_in_an_apply)
{
    struct writer *w = begin();
    struct fake_request *r = write_to(w, (struct sw_write){.verb = SW_APPLY,
                                                           .subresource = SW_STATUS,
                                                           .body = json(w, "{\"status\":{}}"),
                                                           .is_forced = true});

    assert_string_equal(
        r->target,
        "/apis/apps/v1/namespaces/n/deployments/a/status?fieldManager=slipway&force=true");
    assert_string_equal(r->content_type, "application/apply-patch+yaml");
    assert_string_equal(r->body, "{\"status\":{},\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\""
                                 ",\"metadata\":{\"name\":\"a\"}}");
    end(w);
}

TEST(creates_in_the_collection)
{
    struct writer *w = begin();
    struct fake_request *r =
        write_to(w, (struct sw_write){.verb = SW_CREATE,
                                      .name = "",
                                      .body = json(w, "{\"metadata\":{\"generateName\":\"x-\"}}")});

    assert_string_equal(r->method, "POST");
    assert_string_equal(r->target, "/apis/apps/v1/namespaces/n/deployments?fieldManager=slipway");
    assert_string_equal(r->body,
                        "{\"metadata\":{\"generateName\":\"x-\"},\"apiVersion\":\"apps/v1\""
                        ",\"kind\":\"Deployment\"}");
    assert_false(r->may_replay);
    fake_answer(r, 201, NULL, deployment("n", "x-1", "u9", "20", "{}"));
    assert_string_equal(w->seen, "+x-1 answer ");
    end(w);
}

TEST(deletes_with_preconditions)
{
    struct writer *w = begin();
    struct fake_request *r =
        write_to(w, (struct sw_write){.verb = SW_DELETE,
                                      .body = json(w, "{\"propagationPolicy\":\"Background\"}"),
                                      .uid = "u1",
                                      .resource_version = "5"});

    assert_string_equal(r->method, "DELETE");
    assert_string_equal(r->target, "/apis/apps/v1/namespaces/n/deployments/a");
    assert_string_equal(r->body,
                        "{\"propagationPolicy\":\"Background\",\"apiVersion\":\"v1\",\"kind\":"
                        "\"DeleteOptions\",\"preconditions\":{\"uid\":\"u1\","
                        "\"resourceVersion\":\"5\"}}");
    fake_answer(r, 200, NULL, "{\"kind\":\"Status\",\"status\":\"Success\"}");
    assert_int_equal(w->outcome, SW_OK);
    assert_string_equal(w->seen, "-a answer ");
    end(w);
}

TEST(refuses_what_cannot_be_sent)
{
    struct writer *w = begin();
    struct sw_write write = {.verb = SW_MERGE_PATCH,
                             .kind = &sw_kind_deployment,
                             .namespace_ = "n",
                             .name = "",
                             .body = json(w, "{}")};

    assert_int_equal(sw_write(w->made_up.self, &write, on_answer, w), -EINVAL);
    write.name = "../../secrets";
    assert_int_equal(sw_write(w->made_up.self, &write, on_answer, w), -EINVAL);
    write.name = "a";
    write.namespace_ = NULL;
    assert_int_equal(sw_write(w->made_up.self, &write, on_answer, w), -EINVAL);
    write.namespace_ = "n";
    char *large = calloc(1, 4000000);
    memset(large, 'x', 3999999);
    struct sw_json *body = sw_json_object(w->arena);
    sw_json_set_string(body, "large", large);
    write.body = body;
    assert_int_equal(sw_write(w->made_up.self, &write, on_answer, w), SW_E_TOO_LARGE);
    free(large);
    fixture_turn(&w->f);
    assert_int_equal(w->answers, 0);
    assert_int_equal(fake_open_count(w->f.transport), 1);
    end(w);
}

/* ---- what an answer means ---- */

TEST(puts_the_answer_into_the_store_before_the_callback)
{
    struct writer *w = begin();

    fake_answer(patch(w), 200, NULL, deployment("n", "a", "u1", "20", "{}"));
    assert_string_equal(w->seen, "~a answer ");
    assert_int_equal(w->outcome, SW_OK);
    assert_int_equal(w->status, 200);
    assert_string_equal(w->version, "20");
    /* The event of the same write brings nothing new; an older one neither. */
    fake_body(w->watch, event("MODIFIED", deployment("n", "a", "u1", "20", "{}")));
    fake_body(w->watch, event("MODIFIED", deployment("n", "a", "u1", "15", "{}")));
    fixture_turn(&w->f);
    assert_string_equal(w->seen, "~a answer ");
    end(w);
}

TEST(gives_the_newer_state_if_the_watch_was_quicker)
{
    struct writer *w = begin();
    struct fake_request *r = patch(w);

    fake_body(w->watch, event("MODIFIED", deployment("n", "a", "u1", "30", "{}")));
    fixture_turn(&w->f);
    fake_answer(r, 200, NULL, deployment("n", "a", "u1", "20", "{}"));
    assert_string_equal(w->version, "30");
    assert_string_equal(w->own_version, "20");
    assert_string_equal(w->seen, "~a answer ");
    end(w);
}

#define NOT_FOUND "{\"kind\":\"Status\",\"code\":404,\"reason\":\"NotFound\",\"message\":\"gone\"}"

TEST(takes_what_is_not_found_out_of_the_store)
{
    struct writer *w = begin();

    fake_answer(patch(w), 404, NULL, NOT_FOUND);
    assert_int_equal(w->outcome, SW_NOT_FOUND);
    assert_string_equal(w->reason, "NotFound");
    assert_string_equal(w->message, "gone");
    assert_string_equal(w->seen, "-a answer ");
    end(w);
}

TEST(keeps_what_was_made_anew_while_the_question_was_under_way)
{
    struct writer *w = begin();

    assert_int_equal(sw_get(w->made_up.self, &sw_kind_deployment, "n", "b", on_answer, w), 0);
    fixture_turn(&w->f);
    fake_body(w->watch, event("ADDED", deployment("n", "b", "u2", "30", "{}")));
    fixture_turn(&w->f);
    fake_answer(fake_the(w->f.transport, "/deployments/b"), 404, NULL, NOT_FOUND);
    assert_int_equal(w->outcome, SW_NOT_FOUND);
    assert_string_equal(w->seen, "+b answer ");
    assert_non_null(sw_lookup(w->made_up.self, &sw_kind_deployment, "n", "b"));
    end(w);
}

TEST(keeps_the_object_if_only_the_path_is_missing)
{
    struct writer *w = begin();

    fake_answer(patch(w), 404, NULL, "404 page not found");
    assert_int_equal(w->outcome, SW_NOT_FOUND);
    assert_string_equal(w->seen, "answer ");
    end(w);
}

TEST(does_not_believe_a_success_without_the_object)
{
    static const char *const bodies[] = {
        "<html>welcome</html>",
        "",
        "{\"kind\":\"Deployment\",\"metadata\":{\"name\":\"other\",\"uid\":\"u\"}}",
    };

    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        struct writer *w = begin();
        fake_answer(patch(w), 200, NULL, bodies[i]);
        assert_int_equal(w->outcome, SW_UNKNOWN);
        assert_false(w->has_object);
        assert_string_equal(w->own_version, "");
        assert_string_equal(w->seen, "answer ");
        end(w);
    }
}

TEST(does_not_take_a_scale_for_the_object)
{
    struct writer *w = begin();
    struct fake_request *r =
        write_to(w, (struct sw_write){.verb = SW_MERGE_PATCH,
                                      .subresource = SW_SCALE,
                                      .body = json(w, "{\"spec\":{\"replicas\":3}}")});

    assert_string_equal(r->target,
                        "/apis/apps/v1/namespaces/n/deployments/a/scale?fieldManager=slipway");
    fake_answer(
        r, 200, NULL,
        "{\"kind\":\"Scale\",\"apiVersion\":\"autoscaling/v1\",\"metadata\":{\"name\":\"a\","
        "\"namespace\":\"n\",\"uid\":\"u1\",\"resourceVersion\":\"20\"}}");
    assert_int_equal(w->outcome, SW_OK);
    assert_false(w->has_object);
    assert_string_equal(w->seen, "answer ");
    end(w);
}

#define WORDS_OF_422 "the server rejected our request due to an error in our request"

TEST(maps_every_status_to_an_outcome)
{
    static const struct {
        int code, status;
        bool was_sent, has_test;
        const char *body;
        enum sw_outcome outcome;
    } rows[] = {
        {0, 200, true, false, "", SW_OK},
        {0, 201, true, false, "", SW_OK},
        {0, 400, true, false, "", SW_REFUSED},
        {0, 401, true, false, "", SW_REFUSED},
        {0, 403, true, false, "", SW_REFUSED},
        {0, 404, true, false, "", SW_NOT_FOUND},
        {0, 408, true, false, "", SW_UNKNOWN},
        {0, 409, true, false, "", SW_CONFLICT},
        {0, 413, true, false, "", SW_REFUSED},
        {0, 422, true, false, "testing value /spec/paused failed", SW_REFUSED},
        {0, 422, true, true, "Deployment.apps \"a\" is invalid: spec.x", SW_REFUSED},
        {0, 422, true, true, "testing value /metadata/resourceVersion failed", SW_CONFLICT},
        {0, 422, true, true, "testing value /m failed: test failed", SW_CONFLICT},
        {0, 422, true, true, WORDS_OF_422, SW_CONFLICT},
        {0, 422, true, false, WORDS_OF_422, SW_REFUSED},
        {0, 429, true, false, "", SW_UNKNOWN},
        {0, 500, true, false, "", SW_UNKNOWN},
        {0, 503, true, false, "", SW_UNKNOWN},
        {0, 504, true, false, "", SW_UNKNOWN},
        {0, 302, true, false, "", SW_UNKNOWN},
        {-ECONNRESET, 0, true, false, "", SW_UNKNOWN},
        {-ETIMEDOUT, 0, false, false, "", SW_UNKNOWN},
        {-ECANCELED, 0, false, false, "", SW_NOT_LEADER},
        {-ECANCELED, 0, true, false, "", SW_UNKNOWN},
        {SW_E_NOT_LEADER, 0, false, false, "", SW_NOT_LEADER},
        {SW_E_NOT_LEADER, 0, true, false, "", SW_UNKNOWN},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sw_reply reply = {.code = rows[i].code,
                                 .status = rows[i].status,
                                 .was_sent = rows[i].was_sent,
                                 .body = rows[i].body,
                                 .body_len = strlen(rows[i].body)};
        enum sw_outcome got = sw_write_outcome(&reply, rows[i].has_test);
        if (got != rows[i].outcome)
            fail_msg("row %zu: got %s, wanted %s", i, sw_outcome_text(got),
                     sw_outcome_text(rows[i].outcome));
    }
}

/* ---- who may write ---- */

static const struct sw_lease_options lease = {.namespace_ = "n", .name = "l", .identity = "i"};

TEST(sends_nothing_for_a_follower_but_records_and_reads)
{
    struct sw_core_options options = {.username = "me", .lease = &lease};
    struct writer *w = begin_with(&options);

    assert_null(patch(w));
    assert_int_equal(w->answers, 1);
    assert_int_equal(w->outcome, SW_NOT_LEADER);
    w->answers = 0;
    assert_int_equal(sw_get(w->made_up.self, &sw_kind_deployment, "n", "a", on_answer, w), 0);
    fixture_turn(&w->f);
    fake_answer(fake_the(w->f.transport, "/deployments/a"), 200, NULL,
                deployment("n", "a", "u1", "6", "{}"));
    assert_int_equal(w->outcome, SW_OK);
    w->answers = 0;
    struct fake_request *r = write_to(
        w, (struct sw_write){
               .verb = SW_CREATE, .name = "e", .body = json(w, "{}"), .also_on_followers = true});
    fake_answer(r, 201, NULL, deployment("n", "e", "u5", "40", "{}"));
    assert_int_equal(w->outcome, SW_OK);
    end(w);
}

TEST(tells_nobody_once_its_module_has_stopped)
{
    struct writer *w = begin();

    patch(w);
    fixture_done(&w->f);
    assert_int_equal(w->answers, 0);
    sw_arena_free(w->arena);
    free(w);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("write", puts_the_precondition_into_a_merge_patch),
        CASE("write", tests_the_precondition_first_in_a_json_patch),
        CASE("write", names_type_and_object_in_an_apply),
        CASE("write", creates_in_the_collection),
        CASE("write", deletes_with_preconditions),
        CASE("write", refuses_what_cannot_be_sent),
        CASE("write", puts_the_answer_into_the_store_before_the_callback),
        CASE("write", gives_the_newer_state_if_the_watch_was_quicker),
        CASE("write", takes_what_is_not_found_out_of_the_store),
        CASE("write", keeps_what_was_made_anew_while_the_question_was_under_way),
        CASE("write", keeps_the_object_if_only_the_path_is_missing),
        CASE("write", does_not_believe_a_success_without_the_object),
        CASE("write", does_not_take_a_scale_for_the_object),
        CASE("write", maps_every_status_to_an_outcome),
        CASE("write", sends_nothing_for_a_follower_but_records_and_reads),
        CASE("write", tells_nobody_once_its_module_has_stopped),
    };
    return RUN(tests);
}
