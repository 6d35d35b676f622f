/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking what we may do: one question for each thing, one message for all that is missing.
 */
#include <slipway/read.h>
#include <slipway/watch.h>
#include <slipway/workloads.h>
#include <slipway/write.h>

#include "../test.h"
#include "fixture.h"

#define REVIEWS "/selfsubjectaccessreviews"

/* The answers that the API server gives: allowed unless the question holds one of these. */
struct server {
    const char *denied[4];
    int status;
    unsigned asked;
    char questions[16384];
};

static void on_request(void *arg, struct fake_request *request)
{
    struct server *server = arg;
    bool is_allowed = true;

    if (!strstr(request->target, REVIEWS))
        return;
    server->asked++;
    strcat(strcat(server->questions, request->body), "\n");
    for (int i = 0; i < 4 && server->denied[i]; i++)
        is_allowed = is_allowed && !strstr(request->body, server->denied[i]);
    fake_head(request, server->status ? server->status : 201, NULL);
    fake_body(request, is_allowed ? "{\"status\":{\"allowed\":true}}"
                                  : "{\"status\":{\"allowed\":false,\"reason\":\"no\"}}");
    fake_end(request, 0);
}

static int start(struct sw_instance *self, void *arg)
{
    struct sw_watch_options watch = {.arg = arg};

    sw_write_declare(self, &sw_kind_deployment, SW_MERGE_PATCH, SW_MAIN);
    sw_write_declare(self, &sw_kind_deployment, SW_JSON_PATCH, SW_MAIN);
    sw_write_declare(self, &sw_kind_deployment, SW_APPLY, SW_STATUS);
    return sw_watch(self, &sw_kind_deployment, &watch);
}

static const struct sw_lease_options lease = {.namespace_ = "sys", .name = "l", .identity = "i"};

static void run(struct fixture *f, struct server *server, const char *namespace_)
{
    struct sw_core_options options = {
        .username = "me", .namespace_ = namespace_, .lease = &lease, .checks_permissions = true};
    static struct made_up made_up;

    made_up = (struct made_up){.start = start};
    fixture_init(f, &options);
    f->transport->on_request = on_request;
    f->transport->arg = server;
    fixture_add(f, &module_one, &made_up);
    fixture_open(f);
    fixture_turn(f);
}

TEST(are_asked_for_what_will_be_needed)
{
    struct fixture f;
    struct server server = {0};

    run(&f, &server, NULL);
    assert_string_equal(
        server.questions,
        "{\"spec\":{\"resourceAttributes\":{\"verb\":\"list\",\"group\":\"apps\",\"resource\":"
        "\"deployments\"}},\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":"
        "\"SelfSubjectAccessReview\"}\n"
        "{\"spec\":{\"resourceAttributes\":{\"verb\":\"watch\",\"group\":\"apps\",\"resource\":"
        "\"deployments\"}},\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":"
        "\"SelfSubjectAccessReview\"}\n"
        "{\"spec\":{\"resourceAttributes\":{\"verb\":\"patch\",\"group\":\"apps\",\"resource\":"
        "\"deployments\"}},\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":"
        "\"SelfSubjectAccessReview\"}\n"
        "{\"spec\":{\"resourceAttributes\":{\"verb\":\"patch\",\"group\":\"apps\",\"resource\":"
        "\"deployments\",\"subresource\":\"status\"}},\"apiVersion\":\"authorization.k8s.io/v1\","
        "\"kind\":\"SelfSubjectAccessReview\"}\n"
        "{\"spec\":{\"resourceAttributes\":{\"verb\":\"get\",\"group\":\"coordination.k8s.io\","
        "\"resource\":\"leases\",\"namespace\":\"sys\",\"name\":\"l\"}},\"apiVersion\":"
        "\"authorization.k8s.io/v1\",\"kind\":\"SelfSubjectAccessReview\"}\n"
        "{\"spec\":{\"resourceAttributes\":{\"verb\":\"create\",\"group\":\"coordination.k8s.io\","
        "\"resource\":\"leases\",\"namespace\":\"sys\"}},\"apiVersion\":"
        "\"authorization.k8s.io/v1\",\"kind\":\"SelfSubjectAccessReview\"}\n"
        "{\"spec\":{\"resourceAttributes\":{\"verb\":\"update\",\"group\":\"coordination.k8s.io\","
        "\"resource\":\"leases\",\"namespace\":\"sys\",\"name\":\"l\"}},\"apiVersion\":"
        "\"authorization.k8s.io/v1\",\"kind\":\"SelfSubjectAccessReview\"}\n"
        "{\"spec\":{\"resourceAttributes\":{\"verb\":\"watch\",\"group\":\"coordination.k8s.io\","
        "\"resource\":\"leases\",\"namespace\":\"sys\",\"name\":\"l\"}},\"apiVersion\":"
        "\"authorization.k8s.io/v1\",\"kind\":\"SelfSubjectAccessReview\"}\n");
    assert_false(fake_log_has(&f.log, "permissions are missing"));
    fixture_done(&f);
}

TEST(are_asked_for_what_verifies_callers)
{
    struct fixture f;
    struct server server = {.denied = {"\"tokenreviews\""}};
    struct sw_core_options options = {
        .username = "me", .checks_permissions = true, .verifies_callers = true};

    fixture_init(&f, &options);
    f.transport->on_request = on_request;
    f.transport->arg = &server;
    fixture_open(&f);
    fixture_turn(&f);
    assert_string_equal(
        server.questions,
        "{\"spec\":{\"resourceAttributes\":{\"verb\":\"create\",\"group\":"
        "\"authentication.k8s.io\",\"resource\":\"tokenreviews\"}},\"apiVersion\":"
        "\"authorization.k8s.io/v1\",\"kind\":\"SelfSubjectAccessReview\"}\n"
        "{\"spec\":{\"resourceAttributes\":{\"verb\":\"create\",\"group\":"
        "\"authorization.k8s.io\",\"resource\":\"subjectaccessreviews\"}},\"apiVersion\":"
        "\"authorization.k8s.io/v1\",\"kind\":\"SelfSubjectAccessReview\"}\n");
    assert_true(fake_log_has(&f.log, "create tokenreviews.authentication.k8s.io"));
    fixture_done(&f);
}

TEST(that_are_missing_stand_in_one_message)
{
    struct fixture f;
    struct server server = {.denied = {"\"watch\"", "\"status\"", "\"update\"", "\"get\""}};

    run(&f, &server, "shop");
    assert_int_equal(fake_log_count(&f.log, "permissions are missing"), 1);
    assert_true(fake_log_has(&f.log, "watch deployments.apps in namespace shop; "
                                     "patch deployments/status.apps in namespace shop; "
                                     "get, update, watch leases.coordination.k8s.io in namespace "
                                     "sys"));
    fixture_done(&f);
}

static int start_reader(struct sw_instance *self, void *arg)
{
    (void)arg;
    sw_read_declare(self, &sw_kind_pod, true);
    sw_read_declare(self, &sw_kind_secret, false);
    return 0;
}

TEST(are_asked_for_what_is_read)
{
    static const struct sw_core_options options = {
        .username = "me", .namespace_ = "shop", .checks_permissions = true};
    struct made_up made_up = {.start = start_reader};
    struct server server = {.denied = {"\"list\"", "\"secrets\""}};
    struct fixture f;

    fixture_init(&f, &options);
    f.transport->on_request = on_request;
    f.transport->arg = &server;
    fixture_add(&f, &module_one, &made_up);
    fixture_open(&f);
    fixture_turn(&f);
    assert_int_equal(server.asked, 3);
    assert_non_null(strstr(server.questions, "{\"verb\":\"get\",\"group\":\"\",\"resource\":"
                                             "\"pods\",\"namespace\":\"shop\"}"));
    assert_true(fake_log_has(&f.log, "list pods in namespace shop; get secrets in namespace shop"));
    fixture_done(&f);
}

TEST(are_not_complained_about_if_nobody_answers)
{
    struct fixture f;
    struct server server = {.denied = {"verb"}, .status = 403};

    run(&f, &server, NULL);
    assert_int_equal(server.asked, 8);
    assert_false(fake_log_has(&f.log, "permissions are missing"));
    fixture_done(&f);
}

TEST(are_asked_for_again_until_the_server_answers)
{
    struct fixture f;
    struct server server = {.denied = {"\"watch\""}, .status = 500};

    run(&f, &server, NULL);
    sw_loop_virtual_advance(f.loop, 15000);
    assert_int_equal(server.asked, 8);
    assert_false(fake_log_has(&f.log, "permissions"));
    server.status = 0;
    sw_loop_virtual_advance(f.loop, 15000);
    assert_int_equal(server.asked, 16);
    assert_int_equal(fake_log_count(&f.log, "permissions are missing"), 1);
    sw_loop_virtual_advance(f.loop, 60000);
    assert_int_equal(server.asked, 16);
    fixture_done(&f);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("permissions", are_asked_for_what_will_be_needed),
        CASE("permissions", are_asked_for_what_verifies_callers),
        CASE("permissions", that_are_missing_stand_in_one_message),
        CASE("permissions", are_asked_for_what_is_read),
        CASE("permissions", are_not_complained_about_if_nobody_answers),
        CASE("permissions", are_asked_for_again_until_the_server_answers),
    };
    return RUN(tests);
}
