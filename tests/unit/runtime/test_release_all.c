/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Letting go of everything: what is patched, and what the table says.
 */
#include "runtime/release_all.h"

#include <slipway/arena.h>
#include <slipway/json.h>

#include "base/buf.h"
#include "base/metrics.h"
#include "kube/client.h"

#include "../kube/fake_transport.h"
#include "../test.h"

struct releaser {
    struct sw_loop *loop;
    struct fake_transport *transport;
    struct sw_metrics *metrics;
    struct fake_log log;
    struct sw_client *client;
    struct sw_buf out;
    unsigned done;
    struct sw_release_all_result result;
};

static void on_done(void *arg, const struct sw_release_all_result *result)
{
    struct releaser *r = arg;

    r->done++;
    r->result = *result;
}

static struct releaser *begin(struct sw_release_all_options options)
{
    struct releaser *r = calloc(1, sizeof(*r));

    r->loop = sw_loop_virtual_new(0, 1);
    r->transport = fake_transport_new(r->loop);
    r->metrics = sw_metrics_new();
    fake_log_init(&r->log, r->loop);
    r->client = sw_client_new(r->loop, &r->transport->base, &(struct sw_client_options){0},
                              r->metrics, &r->log.log);
    sw_buf_init(&r->out, SIZE_MAX);
    sw_release_all(r->loop, r->client, &options, &r->out, on_done, r);
    assert_int_equal(r->done, 0);
    sw_loop_virtual_advance(r->loop, 0);
    return r;
}

static void end(struct releaser *r)
{
    assert_int_equal(r->done, 1);
    assert_int_equal(fake_open_count(r->transport), 0);
    sw_client_free(r->client);
    fake_transport_free(r->transport);
    sw_metrics_free(r->metrics);
    fake_log_done(&r->log);
    sw_buf_done(&r->out);
    assert_int_equal(sw_loop_close(r->loop), 0);
    free(r);
}

static const char *deployment(const char *name, const char *version, const char *annotations,
                              const char *spec)
{
    static char texts[8][1024];
    static unsigned at;
    char *text = texts[at++ % 8];

    snprintf(
        text, 1024,
        "{\"kind\":\"Deployment\",\"apiVersion\":\"apps/v1\",\"metadata\":{\"name\":\"%s\","
        "\"namespace\":\"shop\",\"uid\":\"u-%s\",\"resourceVersion\":\"%s\",\"annotations\":{%s}},"
        "\"spec\":{%s}}",
        name, name, version, annotations, spec);
    return text;
}

static const char *list(const char *next, const char *items)
{
    static char text[16384];

    snprintf(text, sizeof(text),
             "{\"kind\":\"DeploymentList\",\"apiVersion\":\"apps/v1\",\"metadata\":{"
             "\"resourceVersion\":\"10\",\"continue\":\"%s\"},\"items\":[%s]}",
             next, items);
    return text;
}

#define HELD                                                                           \
    "\"slipway.dev/held-by\":\"coordination/x\",\"slipway.dev/coordinated-by\":\"x\"," \
    "\"slipway.dev/order\":\"3\""
#define HELD_FIRST "\"slipway.dev/held-by\":\"coordination/x\",\"slipway.dev/order\":\"-1\""
#define PAUSED "\"paused\":true"

/* Of the other kinds there is nothing. */
static void answer_asides(struct releaser *r)
{
    static const char *const plurals[] = {"/steppedrollouts?", "/statefulsets?", "/daemonsets?"};

    for (size_t i = 0; i < sizeof plurals / sizeof plurals[0]; i++) {
        struct fake_request *request = fake_find(r->transport, plurals[i]);
        if (request)
            fake_answer(request, 404, NULL, "{}");
    }
}

static struct fake_request *the_list(struct releaser *r)
{
    answer_asides(r);
    return fake_the(r->transport, "/deployments?limit=500");
}

TEST(resumes_what_slipway_paused_and_nothing_else)
{
    struct releaser *r = begin((struct sw_release_all_options){0});
    char items[4096];

    snprintf(items, sizeof(items), "%s,%s,%s", deployment("held", "1", HELD, PAUSED),
             deployment("users", "2", "\"slipway.dev/coordinated-by\":\"x\"", PAUSED),
             deployment("free", "3", "\"slipway.dev/order\":\"1\"", ""));
    fake_answer(the_list(r), 200, NULL, list("", items));
    struct fake_request *held = fake_the(r->transport, "/deployments/held");
    assert_string_equal(held->method, "PATCH");
    assert_string_equal(held->content_type, "application/merge-patch+json");
    assert_string_equal(held->target,
                        "/apis/apps/v1/namespaces/shop/deployments/held?fieldManager=slipway");
    assert_string_equal(held->body,
                        "{\"metadata\":{\"annotations\":{\"slipway.dev/held-by\":null,"
                        "\"slipway.dev/coordinated-by\":null},\"resourceVersion\":\"1\"},"
                        "\"spec\":{\"paused\":false}}");
    struct fake_request *users = fake_the(r->transport, "/deployments/users");
    assert_string_equal(users->body, "{\"metadata\":{\"annotations\":{"
                                     "\"slipway.dev/coordinated-by\":null},"
                                     "\"resourceVersion\":\"2\"}}");
    fake_answer(held, 200, NULL, deployment("held", "11", "\"slipway.dev/order\":\"3\"", ""));
    fake_answer(users, 200, NULL, deployment("users", "12", "", PAUSED));
    assert_string_equal(r->out.bytes, "NAMESPACE  DEPLOYMENT  HELD BY         RESULT\n"
                                      "shop       held        coordination/x  resumed\n"
                                      "shop       users       -               annotations removed\n"
                                      "done: 1 resumed, 1 unmarked, 0 failed\n");
    assert_true(r->result.is_list_complete);
    end(r);
}

TEST(shows_what_it_would_do_without_doing_it)
{
    struct releaser *r = begin((struct sw_release_all_options){.is_dry_run = true});

    fake_answer(the_list(r), 200, NULL, list("", deployment("held", "1", HELD, PAUSED)));
    assert_string_equal(r->out.bytes, "NAMESPACE  DEPLOYMENT  HELD BY         RESULT\n"
                                      "shop       held        coordination/x  would be resumed\n"
                                      "would be: 1 resumed, 0 unmarked, 0 failed\n");
    end(r);
}

TEST(decides_anew_when_the_deployment_has_changed)
{
    struct releaser *r = begin((struct sw_release_all_options){.namespace_ = "shop"});

    answer_asides(r);
    fake_answer(fake_the(r->transport, "/namespaces/shop/deployments?limit=500"), 200, NULL,
                list("", deployment("held", "1", HELD, PAUSED)));
    fake_answer(fake_the(r->transport, "/deployments/held"), 409, NULL, "{}");
    struct fake_request *get = fake_the(r->transport, "/deployments/held");
    assert_string_equal(get->method, "GET");
    fake_answer(get, 200, NULL, deployment("held", "5", HELD, PAUSED));
    struct fake_request *again = fake_the(r->transport, "/deployments/held");
    assert_non_null(strstr(again->body, "\"resourceVersion\":\"5\""));
    fake_answer(again, 200, NULL, deployment("held", "6", "", ""));
    assert_int_equal(r->result.resumed, 1);
    assert_int_equal(r->result.failed, 0);
    end(r);
}

TEST(says_who_holds_again_and_what_was_refused)
{
    struct releaser *r = begin((struct sw_release_all_options){0});
    char items[4096];

    snprintf(items, sizeof(items), "%s,%s,%s", deployment("a", "1", HELD, PAUSED),
             deployment("b", "2", HELD, PAUSED), deployment("c", "3", HELD, PAUSED));
    fake_answer(the_list(r), 200, NULL, list("", items));
    fake_answer(fake_the(r->transport, "/deployments/a"), 200, NULL,
                deployment("a", "11", HELD, PAUSED));
    fake_answer(fake_the(r->transport, "/deployments/b"), 403, NULL,
                "{\"kind\":\"Status\",\"code\":403,\"reason\":\"Forbidden\",\"message\":\"you may "
                "not\"}");
    fake_answer(fake_the(r->transport, "/deployments/c"), 404, NULL,
                "{\"kind\":\"Status\",\"code\":404,\"reason\":\"NotFound\",\"message\":\"\"}");
    assert_non_null(strstr(r->out.bytes, "failed: held again at once: slipway still runs"));
    assert_non_null(strstr(r->out.bytes, "failed: you may not"));
    assert_non_null(strstr(r->out.bytes, "deleted meanwhile"));
    assert_int_equal(r->result.failed, 2);
    end(r);
}

TEST(reads_all_pages_and_begins_anew_when_a_page_has_expired)
{
    struct releaser *r = begin((struct sw_release_all_options){.is_dry_run = true});

    fake_answer(the_list(r), 200, NULL, list("a token", deployment("a", "1", HELD, PAUSED)));
    fake_answer(fake_the(r->transport, "continue=a%20token"), 410, NULL, "{}");
    fake_answer(the_list(r), 200, NULL, list("next", deployment("a", "1", HELD, PAUSED)));
    fake_answer(fake_the(r->transport, "continue=next"), 200, NULL,
                list("", deployment("b", "1", HELD, PAUSED)));
    assert_int_equal(r->result.resumed, 2);
    end(r);
}

TEST(says_why_there_is_no_list)
{
    struct releaser *r = begin((struct sw_release_all_options){0});

    fake_answer(
        the_list(r), 403, NULL,
        "{\"kind\":\"Status\",\"code\":403,\"reason\":\"Forbidden\",\"message\":\"deployments "
        "is forbidden\"}");
    assert_false(r->result.is_list_complete);
    assert_string_equal(r->out.bytes, "cannot list Deployments: 403 deployments is forbidden\n");
    end(r);
}

TEST(says_so_where_nothing_is_held)
{
    struct releaser *r = begin((struct sw_release_all_options){0});

    fake_answer(the_list(r), 200, NULL, list("", ""));
    assert_string_equal(r->out.bytes, "slipway holds nothing here\n");
    end(r);
}

/* ---- in order ---- */

#define IN_ORDER                            \
    ((struct sw_release_all_options){       \
        .in_order_ms = (uint64_t)60 * 1000, \
    })
#define OLD_TEMPLATE "\"replicas\":1},\"status\":{\"replicas\":1,\"availableReplicas\":1"
#define NEW_TEMPLATE OLD_TEMPLATE ",\"updatedReplicas\":1"

static struct fake_request *find(struct releaser *r, const char *name)
{
    char target[64];

    snprintf(target, sizeof(target), "/deployments/%s", name);
    return fake_find(r->transport, target);
}

/* It is being let go of; the API server says how it is then. */
static void let_go(struct releaser *r, const char *name, const char *spec)
{
    struct fake_request *request = find(r, name);

    assert_non_null(request);
    assert_string_equal(request->method, "PATCH");
    fake_answer(request, 200, NULL, deployment(name, "20", "", spec));
}

TEST(in_order_lets_one_of_a_namespace_roll_at_a_time)
{
    struct releaser *r = begin(IN_ORDER);
    char items[4096];

    snprintf(
        items, sizeof(items), "%s,%s,%s,%s",
        deployment("last", "1", "\"slipway.dev/held-by\":\"coordination/x\"",
                   PAUSED "," OLD_TEMPLATE),
        deployment("first", "2", HELD_FIRST, PAUSED "," OLD_TEMPLATE),
        deployment("rest", "3", HELD, PAUSED "," NEW_TEMPLATE),
        deployment("rolls", "4", "\"slipway.dev/released-by\":\"coordination/x\"", OLD_TEMPLATE));
    fake_answer(the_list(r), 200, NULL, list("", items));
    /* What has nothing to roll, and what rolls already. */
    let_go(r, "rest", NEW_TEMPLATE);
    let_go(r, "rolls", OLD_TEMPLATE);
    assert_int_equal(fake_open_count(r->transport), 0);
    sw_loop_virtual_advance(r->loop, 1000);
    assert_string_equal(find(r, "rolls")->method, "GET");
    fake_answer(find(r, "rolls"), 200, NULL, deployment("rolls", "21", "", OLD_TEMPLATE));
    assert_int_equal(fake_open_count(r->transport), 0);
    sw_loop_virtual_advance(r->loop, 1000);
    fake_answer(find(r, "rolls"), 200, NULL, deployment("rolls", "22", "", NEW_TEMPLATE));
    assert_null(find(r, "last"));
    let_go(r, "first", OLD_TEMPLATE);
    assert_null(find(r, "last"));
    sw_loop_virtual_advance(r->loop, 1000);
    fake_answer(find(r, "first"), 200, NULL, deployment("first", "23", "", NEW_TEMPLATE));
    let_go(r, "last", NEW_TEMPLATE);
    sw_loop_virtual_advance(r->loop, 1000);
    fake_answer(find(r, "last"), 200, NULL, deployment("last", "24", "", NEW_TEMPLATE));
    /* What was under way while the list was read may have marked one more. */
    fake_answer(the_list(r), 200, NULL, list("", deployment("late", "5", HELD, PAUSED)));
    let_go(r, "late", NEW_TEMPLATE);
    sw_loop_virtual_advance(r->loop, 1000);
    fake_answer(find(r, "late"), 200, NULL, deployment("late", "25", "", NEW_TEMPLATE));
    fake_answer(the_list(r), 200, NULL, list("", ""));
    assert_string_equal(r->out.bytes,
                        "NAMESPACE  DEPLOYMENT  HELD BY         RESULT\n"
                        "shop       rolls       -               complete after 2 s\n"
                        "shop       rest        coordination/x  resumed\n"
                        "shop       first       coordination/x  resumed, complete after 1 s\n"
                        "shop       last        coordination/x  resumed, complete after 1 s\n"
                        "shop       late        coordination/x  resumed, complete after 1 s\n"
                        "done: 4 resumed, 1 unmarked, 0 failed\n"
                        "left: 0 paused by people, 0 rolling; resumed together when the time was "
                        "over: 0\n");
    end(r);
}

TEST(in_order_namespaces_do_not_wait_for_each_other)
{
    struct releaser *r = begin(IN_ORDER);
    char items[4096], other[1024];

    snprintf(other, sizeof(other), "%s", deployment("b", "2", HELD, PAUSED "," OLD_TEMPLATE));
    char *namespace_ = strstr(other, "\"namespace\":\"shop\"") + strlen("\"namespace\":\"");
    memcpy(namespace_, "mall", 4);
    snprintf(items, sizeof(items), "%s,%s", deployment("a", "1", HELD, PAUSED "," OLD_TEMPLATE),
             other);
    fake_answer(the_list(r), 200, NULL, list("", items));
    assert_non_null(fake_find(r->transport, "/namespaces/shop/deployments/a"));
    assert_non_null(fake_find(r->transport, "/namespaces/mall/deployments/b"));
    fake_answer(find(r, "a"), 404, NULL, "{}");
    fake_answer(find(r, "b"), 404, NULL, "{}");
    fake_answer(the_list(r), 200, NULL, list("", ""));
    end(r);
}

TEST(in_order_the_rest_goes_when_the_time_is_over)
{
    struct releaser *r = begin(IN_ORDER);
    char items[4096];

    snprintf(items, sizeof(items), "%s,%s,%s", deployment("a", "1", HELD, PAUSED "," OLD_TEMPLATE),
             deployment("b", "2", HELD, PAUSED "," OLD_TEMPLATE),
             deployment("c", "3", HELD, PAUSED "," OLD_TEMPLATE));
    fake_answer(the_list(r), 200, NULL, list("", items));
    let_go(r, "a", OLD_TEMPLATE);
    for (int i = 0; i < 59; i++) {
        sw_loop_virtual_advance(r->loop, 1000);
        fake_answer(find(r, "a"), 200, NULL, deployment("a", "21", "", OLD_TEMPLATE));
        assert_null(find(r, "b"));
    }
    sw_loop_virtual_advance(r->loop, 1000);
    assert_null(find(r, "a"));
    let_go(r, "b", OLD_TEMPLATE);
    let_go(r, "c", OLD_TEMPLATE);
    fake_answer(the_list(r), 200, NULL, list("", ""));
    assert_non_null(strstr(r->out.bytes, "a           coordination/x  resumed, still rolling\n"));
    assert_non_null(
        strstr(r->out.bytes, "b           coordination/x  resumed when the time was over\n"));
    assert_non_null(
        strstr(r->out.bytes, "c           coordination/x  resumed when the time was over\n"));
    assert_non_null(strstr(r->out.bytes, "1 rolling; resumed together when the time was over: 2"));
    assert_int_equal(r->result.failed, 0);
    end(r);
}

TEST(in_order_people_keep_what_they_paused_or_wished_to_be_held)
{
    struct releaser *r = begin(IN_ORDER);
    char items[4096];

    snprintf(items, sizeof(items), "%s,%s",
             deployment("mine", "1", "\"slipway.dev/coordinated-by\":\"x\"", PAUSED),
             deployment("wished", "2", HELD ",\"slipway.dev/hold\":\"an audit\"",
                        PAUSED "," OLD_TEMPLATE));
    fake_answer(the_list(r), 200, NULL, list("", items));
    assert_null(strstr(find(r, "wished")->body, "paused"));
    let_go(r, "mine", PAUSED);
    let_go(r, "wished", PAUSED "," OLD_TEMPLATE);
    fake_answer(the_list(r), 200, NULL, list("", ""));
    assert_non_null(strstr(r->out.bytes, "left paused by whoever paused it\n"));
    assert_non_null(strstr(r->out.bytes, "left paused, as slipway.dev/hold wishes: an audit\n"));
    assert_non_null(strstr(r->out.bytes, "left: 2 paused by people, 0 rolling"));
    end(r);
}

TEST(in_order_one_that_is_marked_again_afterwards_is_told_of_once)
{
    struct releaser *r = begin(IN_ORDER);
    static const char marked[] = "\"slipway.dev/coordinated-by\":\"x\"";
    char items[4096];

    snprintf(items, sizeof(items), "%s,%s", deployment("mine", "1", marked, PAUSED),
             deployment("rest", "2", HELD, PAUSED "," NEW_TEMPLATE));
    fake_answer(the_list(r), 200, NULL, list("", items));
    let_go(r, "mine", PAUSED);
    let_go(r, "rest", NEW_TEMPLATE);
    snprintf(items, sizeof(items), "%s,%s", deployment("mine", "21", marked, PAUSED),
             deployment("rest", "22", marked, NEW_TEMPLATE));
    fake_answer(the_list(r), 200, NULL, list("", items));
    let_go(r, "mine", PAUSED);
    let_go(r, "rest", NEW_TEMPLATE);
    fake_answer(the_list(r), 200, NULL, list("", ""));
    assert_string_equal(r->out.bytes,
                        "NAMESPACE  DEPLOYMENT  HELD BY         RESULT\n"
                        "shop       mine        -               left paused by whoever paused it\n"
                        "shop       rest        coordination/x  resumed\n"
                        "done: 1 resumed, 1 unmarked, 0 failed\n"
                        "left: 1 paused by people, 0 rolling; resumed together when the time was "
                        "over: 0\n");
    end(r);
}

TEST(in_order_one_that_is_held_again_or_paused_is_noticed)
{
    struct releaser *r = begin(IN_ORDER);
    char items[4096];

    snprintf(items, sizeof(items), "%s,%s", deployment("a", "1", HELD, PAUSED "," OLD_TEMPLATE),
             deployment("b", "2", HELD, PAUSED "," OLD_TEMPLATE));
    fake_answer(the_list(r), 200, NULL, list("", items));
    let_go(r, "a", OLD_TEMPLATE);
    sw_loop_virtual_advance(r->loop, 1000);
    fake_answer(find(r, "a"), 200, NULL, deployment("a", "21", HELD, PAUSED "," OLD_TEMPLATE));
    assert_null(find(r, "b"));
    sw_loop_virtual_advance(r->loop, 1000);
    assert_string_equal(find(r, "a")->method, "GET");
    fake_answer(find(r, "a"), 200, NULL, deployment("a", "21", HELD, PAUSED "," OLD_TEMPLATE));
    assert_non_null(strstr(find(r, "a")->body, "\"resourceVersion\":\"21\""));
    let_go(r, "a", OLD_TEMPLATE);
    assert_null(find(r, "b"));
    sw_loop_virtual_advance(r->loop, 1000);
    fake_answer(find(r, "a"), 200, NULL, deployment("a", "22", "", PAUSED "," OLD_TEMPLATE));
    let_go(r, "b", NEW_TEMPLATE);
    sw_loop_virtual_advance(r->loop, 1000);
    fake_answer(find(r, "b"), 404, NULL, "{}");
    fake_answer(the_list(r), 200, NULL, list("", ""));
    assert_non_null(strstr(r->out.bytes, "resumed, paused by somebody since\n"));
    assert_non_null(strstr(r->out.bytes, "resumed, deleted since\n"));
    end(r);
}

TEST(in_order_one_that_gets_marks_back_while_it_rolls_loses_them_again)
{
    struct releaser *r = begin(IN_ORDER);
    static const char released[] = "\"slipway.dev/released-by\":\"coordination/x\"";

    fake_answer(the_list(r), 200, NULL, list("", deployment("a", "1", released, OLD_TEMPLATE)));
    let_go(r, "a", OLD_TEMPLATE);
    sw_loop_virtual_advance(r->loop, 1000);
    fake_answer(find(r, "a"), 200, NULL, deployment("a", "21", released, OLD_TEMPLATE));
    assert_null(find(r, "a"));
    sw_loop_virtual_advance(r->loop, 1000);
    fake_answer(find(r, "a"), 200, NULL, deployment("a", "21", released, OLD_TEMPLATE));
    assert_non_null(strstr(find(r, "a")->body, "\"slipway.dev/released-by\":null"));
    let_go(r, "a", OLD_TEMPLATE);
    sw_loop_virtual_advance(r->loop, 1000);
    fake_answer(find(r, "a"), 200, NULL, deployment("a", "22", "", NEW_TEMPLATE));
    fake_answer(the_list(r), 200, NULL, list("", ""));
    assert_non_null(strstr(r->out.bytes, "complete after 1 s\n"));
    end(r);
}

TEST(in_order_a_write_that_failed_is_sent_again_after_a_pause)
{
    struct releaser *r = begin(IN_ORDER);

    fake_answer(the_list(r), 200, NULL,
                list("", deployment("a", "1", HELD, PAUSED "," OLD_TEMPLATE)));
    fake_answer(find(r, "a"), 500, NULL, "{}"); /* a webhook that nobody answers */
    assert_null(find(r, "a"));
    sw_loop_virtual_advance(r->loop, 1000);
    fake_answer(find(r, "a"), 200, NULL, deployment("a", "1", HELD, PAUSED "," NEW_TEMPLATE));
    let_go(r, "a", NEW_TEMPLATE);
    fake_answer(the_list(r), 403, NULL,
                "{\"kind\":\"Status\",\"code\":403,\"message\":\"not any more\"}");
    assert_non_null(strstr(r->out.bytes, "shop       a           coordination/x  resumed\n"));
    assert_non_null(strstr(r->out.bytes, "cannot list Deployments: 403 not any more\n"));
    assert_false(r->result.is_list_complete);
    end(r);
}

/* ---- the other kinds, and what a policy has saved ---- */

static const char *object_of(const char *kind, const char *name, const char *metadata,
                             const char *spec)
{
    static char texts[8][1024];
    static unsigned at;
    char *text = texts[at++ % 8];

    snprintf(text, 1024,
             "{\"kind\":\"%s\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"shop\",\"uid\":\"u\","
             "\"resourceVersion\":\"1\",%s},\"spec\":{%s}}",
             kind, name, metadata, spec);
    return text;
}

static const char *list_of(const char *kind, const char *items)
{
    static char text[8192];

    snprintf(text, sizeof(text),
             "{\"kind\":\"%sList\",\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[%s]}", kind,
             items);
    return text;
}

#define STEPPED "\"slipway.dev/held-by\":\"stepping/x\",\"slipway.dev/stepped-by\":\"x\""

TEST(puts_back_what_stepping_has_saved_and_removes_its_finalizers)
{
    struct releaser *r = begin((struct sw_release_all_options){0});

    fake_answer(fake_the(r->transport, "/apis/slipway.dev/v1alpha1/steppedrollouts?limit=500"), 200,
                NULL,
                list_of("SteppedRollout",
                        object_of("SteppedRollout", "x",
                                  "\"finalizers\":[\"a/b\",\"slipway.dev/stepping\"]", "")));
    struct fake_request *patch = fake_the(r->transport, "/steppedrollouts/x");
    assert_string_equal(patch->body,
                        "{\"metadata\":{\"finalizers\":[\"a/b\"],\"resourceVersion\":\"1\"}}");
    fake_answer(patch, 200, NULL, object_of("SteppedRollout", "x", "\"finalizers\":[]", ""));

    fake_answer(
        fake_the(r->transport, "/statefulsets?limit=500"), 200, NULL,
        list_of("StatefulSet",
                object_of("StatefulSet", "db",
                          "\"annotations\":{" STEPPED
                          ",\"slipway.dev/saved\":\"{\\\"updateStrategy\\\":{\\\"type\\\":"
                          "\\\"RollingUpdate\\\",\\\"rollingUpdate\\\":{\\\"partition\\\":1}}}\"}",
                          "\"updateStrategy\":{\"type\":\"RollingUpdate\"}")));
    patch = fake_the(r->transport, "/statefulsets/db");
    assert_string_equal(patch->body,
                        "{\"metadata\":{\"annotations\":{\"slipway.dev/held-by\":null,"
                        "\"slipway.dev/stepped-by\":null,\"slipway.dev/saved\":null},"
                        "\"resourceVersion\":\"1\"},\"spec\":{\"updateStrategy\":{\"type\":"
                        "\"RollingUpdate\",\"rollingUpdate\":{\"partition\":1,"
                        "\"maxUnavailable\":null,\"maxSurge\":null}}}}");
    fake_answer(patch, 200, NULL, object_of("StatefulSet", "db", "\"labels\":{}", ""));

    char items[4096];
    snprintf(items, sizeof(items), "%s,%s,%s",
             object_of("DaemonSet", "absent",
                       "\"annotations\":{\"slipway.dev/saved\":\"{\\\"updateStrategy\\\":null}\"}",
                       ""),
             object_of("DaemonSet", "by-hand",
                       "\"annotations\":{\"slipway.dev/saved\":\"{\\\"updateStrategy\\\":{"
                       "\\\"type\\\":\\\"OnDelete\\\"}}\"}",
                       ""),
             object_of("DaemonSet", "other", "\"annotations\":{\"slipway.dev/hold\":\"x\"}", ""));
    fake_answer(fake_the(r->transport, "/daemonsets?limit=500"), 200, NULL,
                list_of("DaemonSet", items));
    patch = fake_the(r->transport, "/daemonsets/absent");
    assert_non_null(strstr(patch->body, "\"spec\":{\"updateStrategy\":null}"));
    fake_answer(patch, 200, NULL, object_of("DaemonSet", "absent", "\"labels\":{}", ""));
    patch = fake_the(r->transport, "/daemonsets/by-hand");
    assert_non_null(
        strstr(patch->body,
               "\"spec\":{\"updateStrategy\":{\"type\":\"OnDelete\",\"rollingUpdate\":null}}"));
    fake_answer(patch, 200, NULL, object_of("DaemonSet", "by-hand", "\"labels\":{}", ""));

    snprintf(items, sizeof(items), "%s,%s",
             deployment("web", "1",
                        STEPPED ",\"slipway.dev/saved\":\"{\\\"minReadySeconds\\\":null,"
                                "\\\"progressDeadlineSeconds\\\":600}\"",
                        PAUSED),
             deployment("odd", "1", STEPPED ",\"slipway.dev/saved\":\"{\"", PAUSED));
    fake_answer(fake_the(r->transport, "/deployments?limit=500"), 200, NULL, list("", items));
    patch = fake_the(r->transport, "/deployments/web");
    assert_non_null(strstr(patch->body, "\"spec\":{\"minReadySeconds\":null,"
                                        "\"progressDeadlineSeconds\":600,\"paused\":false}"));
    assert_null(find(r, "odd"));
    fake_answer(patch, 200, NULL, deployment("web", "2", "", ""));
    assert_string_equal(
        r->out.bytes,
        "NAMESPACE  DEPLOYMENT         HELD BY     RESULT\n"
        "shop       SteppedRollout x   -           finalizer removed\n"
        "shop       StatefulSet db     stepping/x  strategy put back\n"
        "shop       DaemonSet absent   -           strategy put back\n"
        "shop       DaemonSet by-hand  -           strategy put back\n"
        "shop       web                stepping/x  resumed\n"
        "shop       odd                stepping/x  failed: slipway.dev/saved cannot be read: put "
        "spec right by hand, then remove it\n"
        "done: 4 resumed, 1 unmarked, 1 failed\n");
    end(r);
}

/* It would stay as it is held for ever, and nothing would show it any more. */
TEST(a_set_of_which_no_strategy_is_saved_is_not_called_let_go)
{
    struct releaser *r = begin((struct sw_release_all_options){0});
    char items[4096];

    fake_answer(fake_the(r->transport, "/steppedrollouts?"), 404, NULL, "{}");
    snprintf(items, sizeof(items), "%s,%s",
             object_of("StatefulSet", "none",
                       "\"annotations\":{" STEPPED ",\"slipway.dev/saved\":\"{}\"}", ""),
             object_of("StatefulSet", "odd",
                       "\"annotations\":{" STEPPED
                       ",\"slipway.dev/saved\":\"{\\\"updateStrategy\\\":3}\"}",
                       ""));
    fake_answer(fake_the(r->transport, "/statefulsets?"), 200, NULL, list_of("StatefulSet", items));
    assert_null(fake_find(r->transport, "/statefulsets/none"));
    assert_null(fake_find(r->transport, "/statefulsets/odd"));
    fake_answer(fake_the(r->transport, "/daemonsets?"), 404, NULL, "{}");
    fake_answer(the_list(r), 200, NULL, list("", deployment("free", "1", "", "")));
    assert_int_equal(r->result.failed, 2);
    assert_non_null(strstr(r->out.bytes, "slipway.dev/saved cannot be read"));
    end(r);
}

TEST(lets_deployments_go_whatever_becomes_of_the_other_kinds)
{
    struct releaser *r = begin((struct sw_release_all_options){0});

    fake_answer(fake_the(r->transport, "/steppedrollouts?"), 404, NULL, "{}");
    fake_answer(fake_the(r->transport, "/statefulsets?"), 403, NULL,
                "{\"kind\":\"Status\",\"code\":403,\"message\":\"not these\"}");
    fake_break(fake_the(r->transport, "/daemonsets?"), -104);
    for (int i = 0; i < 20 && fake_find(r->transport, "/daemonsets?"); i++)
        fake_break(fake_the(r->transport, "/daemonsets?"), -104);
    sw_loop_virtual_advance(r->loop, 60000);
    while (fake_find(r->transport, "/daemonsets?")) {
        fake_break(fake_the(r->transport, "/daemonsets?"), -104);
        sw_loop_virtual_advance(r->loop, 60000);
    }
    fake_answer(the_list(r), 200, NULL, list("", deployment("held", "1", HELD, PAUSED)));
    fake_answer(find(r, "held"), 200, NULL, deployment("held", "2", "", ""));
    assert_non_null(strstr(r->out.bytes, "cannot list StatefulSets: 403 not these\n"));
    assert_non_null(strstr(r->out.bytes, "cannot list DaemonSets: "));
    assert_null(strstr(r->out.bytes, "SteppedRollouts"));
    assert_true(r->result.is_list_complete);
    assert_int_equal(r->result.resumed, 1);
    assert_int_equal(r->result.failed, 2);
    end(r);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("release-all", resumes_what_slipway_paused_and_nothing_else),
        CASE("release-all", shows_what_it_would_do_without_doing_it),
        CASE("release-all", decides_anew_when_the_deployment_has_changed),
        CASE("release-all", says_who_holds_again_and_what_was_refused),
        CASE("release-all", reads_all_pages_and_begins_anew_when_a_page_has_expired),
        CASE("release-all", says_why_there_is_no_list),
        CASE("release-all", says_so_where_nothing_is_held),
        CASE("release-all", in_order_lets_one_of_a_namespace_roll_at_a_time),
        CASE("release-all", in_order_namespaces_do_not_wait_for_each_other),
        CASE("release-all", in_order_the_rest_goes_when_the_time_is_over),
        CASE("release-all", in_order_people_keep_what_they_paused_or_wished_to_be_held),
        CASE("release-all", in_order_one_that_is_marked_again_afterwards_is_told_of_once),
        CASE("release-all", in_order_one_that_is_held_again_or_paused_is_noticed),
        CASE("release-all", in_order_one_that_gets_marks_back_while_it_rolls_loses_them_again),
        CASE("release-all", in_order_a_write_that_failed_is_sent_again_after_a_pause),
        CASE("release-all", puts_back_what_stepping_has_saved_and_removes_its_finalizers),
        CASE("release-all", a_set_of_which_no_strategy_is_saved_is_not_called_let_go),
        CASE("release-all", lets_deployments_go_whatever_becomes_of_the_other_kinds),
    };
    return RUN(tests);
}
