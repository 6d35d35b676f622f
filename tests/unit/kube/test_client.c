/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API client against a server played by hand, on virtual time.
 */
#include "kube/client.h"

#include <errno.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/metrics.h"
#include "base/util.h"

#include "fake_transport.h"
#include "test.h"

static const struct sw_kind deployments = {
    .group = "apps", .version = "v1", .kind = "Deployment", .plural = "deployments"};
static const struct sw_kind nodes = {
    .group = "", .version = "v1", .kind = "Node", .plural = "nodes", .is_cluster_scoped = true};

struct answer {
    unsigned count;
    int code, status;
    bool was_sent;
    char body[512], message[512], reason[64], audit_id[64], error[512];
};

struct fixture {
    struct sw_loop *loop;
    struct fake_transport *transport;
    struct sw_metrics *metrics;
    struct fake_log log;
    struct sw_client *client;
};

static void setup(struct fixture *f, const struct sw_client_options *options)
{
    f->loop = sw_loop_virtual_new(INT64_C(1767225600000000), 7);
    f->transport = fake_transport_new(f->loop);
    f->metrics = sw_metrics_new();
    fake_log_init(&f->log, f->loop);
    f->client = sw_client_new(f->loop, &f->transport->base, options, f->metrics, &f->log.log);
}

static void teardown(struct fixture *f)
{
    sw_client_free(f->client);
    fake_transport_free(f->transport);
    sw_metrics_free(f->metrics);
    fake_log_done(&f->log);
    assert_int_equal(sw_loop_close(f->loop), 0);
}

static void on_reply(void *arg, const struct sw_reply *reply)
{
    struct answer *a = arg;
    a->count++;
    a->code = reply->code;
    a->status = reply->status;
    a->was_sent = reply->was_sent;
    snprintf(a->body, sizeof(a->body), "%s", reply->body ? reply->body : "");
    snprintf(a->message, sizeof(a->message), "%s", reply->why.message);
    snprintf(a->reason, sizeof(a->reason), "%s", reply->why.reason);
    snprintf(a->audit_id, sizeof(a->audit_id), "%s", reply->audit_id);
    snprintf(a->error, sizeof(a->error), "%s", reply->error ? reply->error->text : "");
}

static struct sw_call *call_with(struct fixture *f, const struct sw_call_options *options,
                                 struct answer *a)
{
    struct sw_call *call;
    memset(a, 0, sizeof(*a));
    assert_int_equal(sw_client_call(f->client, options, on_reply, a, &call), 0);
    assert_int_equal(a->count, 0);
    return call;
}

static struct sw_call *get(struct fixture *f, const char *path, struct answer *a)
{
    struct sw_call_options options = {.method = "GET", .path = path};
    return call_with(f, &options, a);
}

static struct sw_call *patch(struct fixture *f, const char *path, struct answer *a)
{
    struct sw_call_options options = {
        .method = "PATCH",
        .path = path,
        .content_type = "application/merge-patch+json",
        .body = "{}",
        .body_len = 2,
        .is_fenced = true,
    };
    return call_with(f, &options, a);
}

static bool exposes(struct fixture *f, const char *line)
{
    struct sw_buf text;
    sw_buf_init(&text, SIZE_MAX);
    sw_metrics_write(f->metrics, SW_METRICS_TEXT, &text);
    bool has = strstr(text.bytes, line) != NULL;
    sw_buf_done(&text);
    return has;
}

/* ---- paths ---- */

static void check_path(const struct sw_kind *kind, const char *ns, const char *name,
                       const char *subresource, const char *want)
{
    char *path = NULL;
    int rc = sw_client_path(kind, ns, name, subresource, &path);
    if (want) {
        assert_int_equal(rc, 0);
        assert_string_equal(path, want);
    } else {
        assert_int_equal(rc, -EINVAL);
        assert_null(path);
    }
    sw_free(path);
}

TEST(paths_name_what_they_should)
{
    check_path(&deployments, NULL, NULL, NULL, "/apis/apps/v1/deployments");
    check_path(&deployments, "web", NULL, NULL, "/apis/apps/v1/namespaces/web/deployments");
    check_path(&deployments, "web", "a", NULL, "/apis/apps/v1/namespaces/web/deployments/a");
    check_path(&deployments, "web", "a", "status",
               "/apis/apps/v1/namespaces/web/deployments/a/status");
    check_path(&nodes, NULL, "n1", NULL, "/api/v1/nodes/n1");
    check_path(&nodes, "ignored", "n1", NULL, "/api/v1/nodes/n1");
    check_path(&nodes, NULL, "system:node", NULL, "/api/v1/nodes/system%3Anode");
    check_path(&nodes, NULL, "a b", NULL, NULL);
}

TEST(paths_cannot_be_left)
{
    char long_name[300];
    memset(long_name, 'a', sizeof(long_name));
    long_name[254] = '\0';
    static const char *const bad_names[] = {"",      ".",    "..",    "a/b", "../x",
                                            "a%2fb", "a\nb", "a\x7f", "a b", NULL};
    static const char *const bad_namespaces[] = {"",     ".",  "..", "a/b",  "kube.system",
                                                 "Kube", "-a", "a-", "a%2f", NULL};
    for (size_t i = 0; bad_names[i]; i++) {
        check_path(&deployments, "web", bad_names[i], NULL, NULL);
    }
    check_path(&deployments, "web", long_name, NULL, NULL);
    for (size_t i = 0; bad_namespaces[i]; i++) {
        check_path(&deployments, bad_namespaces[i], "a", NULL, NULL);
    }
    check_path(&deployments, "web", "a", "../b", NULL);
    check_path(&deployments, "web", "a", "", NULL);
    check_path(&deployments, "web", NULL, "status", NULL); /* of what? */
    check_path(&deployments, NULL, "a", NULL, NULL);       /* where? */
}

/* ---- one answer ---- */

TEST(an_answer_is_delivered_once)
{
    struct fixture f;
    struct answer a;
    setup(&f, &(struct sw_client_options){.path_prefix = "/k8s/clusters/c-1", .host = "api:6443"});
    patch(&f, "/api/v1/x", &a);
    struct fake_request *r = fake_the(f.transport, "/api/v1/x");
    assert_string_equal(r->method, "PATCH");
    assert_string_equal(r->target, "/k8s/clusters/c-1/api/v1/x");
    assert_string_equal(r->body, "{}");
    assert_string_equal(r->content_type, "application/merge-patch+json");
    assert_null(r->lane);
    assert_false(r->may_replay);
    assert_int_equal(r->total_timeout_ms, 60000);
    assert_int_equal(r->head_timeout_ms, 30000);
    fake_answer(r, 200, "Audit-Id: 77", "{\"a\":1}");
    assert_int_equal(a.count, 1);
    assert_int_equal(a.code, 0);
    assert_int_equal(a.status, 200);
    assert_true(a.was_sent);
    assert_string_equal(a.body, "{\"a\":1}");
    assert_string_equal(a.audit_id, "77");
    assert_true(exposes(&f, "rest_client_requests_total{code=\"200\",method=\"PATCH\","
                            "host=\"api:6443\"} 1"));
    assert_true(exposes(&f, "rest_client_request_duration_seconds_count{verb=\"PATCH\","
                            "host=\"api:6443\"} 1"));
    teardown(&f);
}

TEST(a_status_says_why)
{
    struct fixture f;
    struct answer a;
    setup(&f, NULL);
    get(&f, "/api/v1/x", &a);
    fake_answer(fake_the(f.transport, "/x"), 409, "Audit-Id: 99",
                "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\","
                "\"message\":\"the object has been modified\",\"reason\":\"Conflict\","
                "\"code\":409}");
    assert_int_equal(a.status, 409);
    assert_string_equal(a.reason, "Conflict");
    assert_string_equal(a.message, "the object has been modified");
    assert_false(fake_log_has(&f.log, "99")); /* the caller's business */
    teardown(&f);
}

TEST(a_page_of_a_proxy_is_a_message)
{
    struct fixture f;
    struct answer a;
    setup(&f, NULL);
    get(&f, "/api/v1/x?limit=1", &a);
    fake_answer(fake_the(f.transport, "/x"), 502, "Audit-Id: ab-cd", "<html>Bad Gateway</html>");
    assert_int_equal(a.count, 1);
    assert_int_equal(a.status, 502);
    assert_string_equal(a.message, "<html>Bad Gateway</html>");
    assert_true(fake_log_has(&f.log, "ab-cd"));
    assert_true(fake_log_has(&f.log, "path=/api/v1/x "));
    teardown(&f);
}

TEST(a_broken_connection_says_whether_it_was_sent)
{
    struct fixture f;
    struct answer a;
    setup(&f, NULL);
    patch(&f, "/x", &a);
    fake_the(f.transport, "/x")->was_sent = false;
    fake_break(fake_the(f.transport, "/x"), -ECONNREFUSED);
    assert_int_equal(a.code, -ECONNREFUSED);
    assert_int_equal(a.status, 0);
    assert_false(a.was_sent);
    assert_non_null(strstr(a.error, "the test broke it"));

    patch(&f, "/x", &a);
    fake_head(fake_the(f.transport, "/x"), 200, NULL);
    fake_break(fake_the(f.transport, "/x"), SW_E_TRUNCATED);
    assert_int_equal(a.code, SW_E_TRUNCATED);
    assert_int_equal(a.status, 0);
    assert_true(a.was_sent);
    assert_string_equal(a.body, "");
    assert_true(exposes(&f, "rest_client_requests_total{code=\"<error>\",method=\"PATCH\","
                            "host=\"\"} 2"));
    teardown(&f);
}

TEST(a_refused_send_is_returned)
{
    struct fixture f;
    struct sw_call *call = NULL;
    struct answer a = {0};
    setup(&f, NULL);
    f.transport->send_result = -ENOMEM;
    struct sw_call_options options = {.method = "GET", .path = "/x"};
    assert_int_equal(sw_client_call(f.client, &options, on_reply, &a, &call), -ENOMEM);
    assert_null(call);
    sw_loop_virtual_advance(f.loop, 100000);
    assert_int_equal(a.count, 0);
    teardown(&f);
}

TEST(a_cancelled_call_is_silent)
{
    struct fixture f;
    struct answer a;
    setup(&f, NULL);
    struct sw_call *call = get(&f, "/x", &a);
    struct fake_request *r = fake_the(f.transport, "/x");
    sw_call_cancel(call);
    assert_true(r->was_cancelled);
    sw_loop_virtual_advance(f.loop, 100000);
    assert_int_equal(a.count, 0);
    get(&f, "/y", &a); /* teardown frees the client with it */
    teardown(&f);
}

/* ---- trying again ---- */

static const char too_many[] =
    "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"TooManyRequests\",\"code\":429}";

TEST(retry_after_is_waited_for)
{
    struct fixture f;
    struct answer a;
    setup(&f, NULL);
    patch(&f, "/x", &a);
    fake_answer(fake_the(f.transport, "/x"), 429,
                "Retry-After: 3\nX-Kubernetes-PF-FlowSchema-UID: fs-1\n"
                "X-Kubernetes-PF-PriorityLevel-UID: pl-2",
                too_many);
    assert_int_equal(fake_open_count(f.transport), 0);
    sw_loop_virtual_advance(f.loop, 2999);
    assert_int_equal(fake_open_count(f.transport), 0);
    sw_loop_virtual_advance(f.loop, 751);
    struct fake_request *r = fake_the(f.transport, "/x");
    assert_string_equal(r->body, "{}");
    assert_in_range(r->total_timeout_ms, 60000 - 3750, 60000 - 3000);
    assert_int_equal(a.count, 0);
    fake_answer(r, 503, "Retry-After: 0", "");
    sw_loop_virtual_advance(f.loop, 250);
    fake_answer(fake_the(f.transport, "/x"), 200, NULL, "{}");
    assert_int_equal(a.count, 1);
    assert_int_equal(a.status, 200);
    assert_true(fake_log_has(&f.log, "fs-1"));
    assert_true(fake_log_has(&f.log, "pl-2"));
    assert_true(exposes(&f, "rest_client_request_retries_total{code=\"429\",verb=\"PATCH\","
                            "host=\"\"} 1"));
    teardown(&f);
}

TEST(retry_after_may_be_a_date_or_garbage)
{
    struct fixture f;
    struct answer a;
    setup(&f, NULL); /* 2026-01-01T00:00:00Z */
    get(&f, "/x", &a);
    fake_answer(fake_the(f.transport, "/x"), 503, "Retry-After: Thu, 01 Jan 2026 00:00:20 GMT", "");
    sw_loop_virtual_advance(f.loop, 19999);
    assert_int_equal(fake_open_count(f.transport), 0);
    sw_loop_virtual_advance(f.loop, 5001);
    fake_answer(fake_the(f.transport, "/x"), 503, "Retry-After: soon", "");
    assert_int_equal(a.count, 1); /* 5xx without a time is the caller's decision */
    assert_int_equal(a.status, 503);

    get(&f, "/x", &a);
    fake_answer(fake_the(f.transport, "/x"), 429, "Retry-After: soon", "");
    sw_loop_virtual_advance(f.loop, 1250);
    fake_answer(fake_the(f.transport, "/x"), 200, NULL, "{}");
    assert_int_equal(a.status, 200);
    teardown(&f);
}

TEST(nobody_waits_beyond_the_deadline)
{
    struct fixture f;
    struct answer a;
    setup(&f, NULL);
    struct sw_call_options options = {.method = "GET", .path = "/x", .deadline_ms = 5000};
    call_with(&f, &options, &a);
    assert_int_equal(fake_the(f.transport, "/x")->total_timeout_ms, 5000);
    assert_int_equal(fake_the(f.transport, "/x")->head_timeout_ms, 5000);
    fake_answer(fake_the(f.transport, "/x"), 429, "Retry-After: 5", too_many);
    assert_int_equal(a.count, 1);
    assert_int_equal(a.status, 429);
    assert_string_equal(a.reason, "TooManyRequests");
    assert_false(a.was_sent); /* it was refused */
    teardown(&f);
}

TEST(ten_retries_are_enough)
{
    struct fixture f;
    struct answer a;
    setup(&f, NULL);
    get(&f, "/x", &a);
    for (unsigned i = 0; i < 11; i++) {
        assert_int_equal(a.count, 0);
        fake_answer(fake_the(f.transport, "/x"), 429, "Retry-After: 0", too_many);
        sw_loop_virtual_advance(f.loop, 250);
    }
    assert_int_equal(a.count, 1);
    assert_int_equal(a.status, 429);
    assert_int_equal(f.transport->count, 11);
    /* Ten lines in ten seconds, and how many more there were. */
    assert_int_equal(fake_log_count(&f.log, "asks for patience"), 10);
    teardown(&f);
}

TEST(what_may_have_happened_stays_so)
{
    struct fixture f;
    struct answer a;
    setup(&f, NULL);
    patch(&f, "/x", &a);
    fake_answer(fake_the(f.transport, "/x"), 500, "Retry-After: 1", "");
    sw_loop_virtual_advance(f.loop, 1250);
    fake_the(f.transport, "/x")->was_sent = false;
    fake_break(fake_the(f.transport, "/x"), -ECONNREFUSED);
    assert_int_equal(a.code, -ECONNREFUSED);
    assert_true(a.was_sent);
    teardown(&f);
}

/* ---- 401 ---- */

TEST(a_401_reads_the_credentials_again_and_retries_once)
{
    struct fixture f;
    struct answer a;
    setup(&f, NULL);
    f.transport->refresh_result = true;
    get(&f, "/x", &a);
    fake_answer(fake_the(f.transport, "/x"), 401, NULL, "Unauthorized");
    assert_int_equal(f.transport->refreshes, 1);
    assert_int_equal(a.count, 0);
    fake_answer(fake_the(f.transport, "/x"), 401, NULL, "Unauthorized");
    assert_int_equal(a.count, 1);
    assert_int_equal(a.status, 401);
    assert_int_equal(f.transport->count, 2);
    teardown(&f);
}

TEST(a_401_with_the_same_credentials_is_final)
{
    struct fixture f;
    struct answer a;
    setup(&f, NULL);
    get(&f, "/x", &a);
    fake_answer(fake_the(f.transport, "/x"), 401, NULL, "Unauthorized");
    assert_int_equal(a.count, 1);
    assert_int_equal(f.transport->count, 1);
    teardown(&f);
}

TEST(a_storm_of_401s_is_one_reload)
{
    struct fixture f;
    struct answer a[20];
    setup(&f, NULL);
    f.transport->refresh_result = true;
    for (unsigned i = 0; i < 20; i++) {
        char path[16];
        snprintf(path, sizeof(path), "/x%02u", i);
        get(&f, path, &a[i]);
    }
    for (unsigned i = 0; i < 20; i++) {
        fake_answer(f.transport->requests[i], 401, NULL, "Unauthorized");
    }
    assert_int_equal(f.transport->refreshes, 1);
    assert_int_equal(f.transport->count, 40);
    f.transport->refresh_result = false;
    for (unsigned i = 0; i < 20; i++) {
        fake_answer(f.transport->requests[20 + i], 401, NULL, "Unauthorized");
        assert_int_equal(a[i].count, 1);
    }
    assert_int_equal(f.transport->refreshes, 1); /* none of them asks a second time */
    for (unsigned i = 0; i < 5; i++) {
        get(&f, "/y", &a[i]);
        fake_answer(fake_the(f.transport, "/y"), 401, NULL, "Unauthorized");
    }
    assert_int_equal(f.transport->refreshes, 2); /* and in vain once a second */
    sw_loop_virtual_advance(f.loop, 1000);
    get(&f, "/y", &a[0]);
    fake_answer(fake_the(f.transport, "/y"), 401, NULL, "Unauthorized");
    assert_int_equal(f.transport->refreshes, 3);
    teardown(&f);
}

/* ---- rate limit and lanes ---- */

TEST(the_rate_limit_holds_back_all_but_lanes)
{
    struct fixture f;
    struct answer a[5];
    struct answer lease;
    setup(&f, &(struct sw_client_options){.requests_per_second = 10, .burst = 3});
    for (unsigned i = 0; i < 5; i++) {
        char path[8];
        snprintf(path, sizeof(path), "/x%u", i);
        get(&f, path, &a[i]);
    }
    assert_int_equal(f.transport->count, 3);
    assert_int_equal(fake_log_count(&f.log, "rate limit"), 1);
    struct sw_call_options options = {.method = "PUT",
                                      .path = "/lease",
                                      .body = "{}",
                                      .body_len = 2,
                                      .lane = "lease",
                                      .is_guarded = true};
    call_with(&f, &options, &lease);
    assert_int_equal(f.transport->count, 4);
    struct fake_request *r = fake_the(f.transport, "/lease");
    assert_string_equal(r->lane, "lease");
    assert_true(r->may_replay);
    assert_string_equal(r->content_type, "application/json");
    sw_loop_virtual_advance(f.loop, 100);
    assert_int_equal(f.transport->count, 5);
    sw_loop_virtual_advance(f.loop, 100);
    assert_int_equal(f.transport->count, 6);
    for (unsigned i = 0; i < f.transport->count; i++) {
        fake_answer(f.transport->requests[i], 200, NULL, "{}");
    }
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(a[i].count, 1);
    }
    assert_int_equal(lease.count, 1);
    assert_true(
        exposes(&f, "rest_client_rate_limiter_duration_seconds_count{verb=\"GET\",host=\"\"} 5"));
    teardown(&f);
}

TEST(a_call_that_waits_too_long_for_its_turn_fails_unsent)
{
    struct fixture f;
    struct answer first;
    struct answer second;
    setup(&f, &(struct sw_client_options){.requests_per_second = 0.1, .burst = 1});
    get(&f, "/1", &first);
    struct sw_call_options options = {.method = "GET", .path = "/2", .deadline_ms = 1000};
    call_with(&f, &options, &second);
    sw_loop_virtual_advance(f.loop, 999);
    assert_int_equal(second.count, 0);
    sw_loop_virtual_advance(f.loop, 1);
    assert_int_equal(second.count, 1);
    assert_int_equal(second.code, -ETIMEDOUT);
    assert_false(second.was_sent);
    teardown(&f);
}

/* ---- fencing ---- */

TEST(fenced_calls_are_dropped_wherever_they_are)
{
    struct fixture f;
    struct answer sent;
    struct answer unsent;
    struct answer waiting;
    struct answer queued;
    struct answer other;
    setup(&f, &(struct sw_client_options){.requests_per_second = 0.001, .burst = 4});
    patch(&f, "/sent", &sent);
    patch(&f, "/unsent", &unsent);
    patch(&f, "/waiting", &waiting);
    get(&f, "/other", &other);
    patch(&f, "/queued", &queued);
    struct fake_request *s = fake_the(f.transport, "/sent");
    struct fake_request *u = fake_the(f.transport, "/unsent");
    u->was_sent = false;
    fake_answer(fake_the(f.transport, "/waiting"), 429, "Retry-After: 1", too_many);
    sw_client_fence(f.client);
    assert_int_equal(sent.count + unsent.count + waiting.count + queued.count, 0);
    assert_true(s->was_aborted);
    assert_true(u->was_aborted);
    sw_loop_virtual_advance(f.loop, 0);
    struct answer *const all[] = {&sent, &unsent, &waiting, &queued};
    for (size_t i = 0; i < SW_ARRAY_SIZE(all); i++) {
        assert_int_equal(all[i]->count, 1);
        assert_int_equal(all[i]->code, -ECANCELED);
        assert_int_equal(all[i]->was_sent, all[i] == &sent);
    }
    sw_loop_virtual_advance(f.loop, 100000);
    assert_int_equal(f.transport->count, 4); /* nothing more was sent */
    assert_int_equal(other.count, 0);
    fake_answer(fake_the(f.transport, "/other"), 200, NULL, "{}");
    assert_int_equal(other.count, 1);
    teardown(&f);
}

TEST(a_dropped_call_may_still_be_cancelled)
{
    struct fixture f;
    struct answer a;
    setup(&f, NULL);
    struct sw_call *call = patch(&f, "/x", &a);
    sw_client_fence(f.client);
    sw_call_cancel(call);
    sw_loop_virtual_advance(f.loop, 1000);
    assert_int_equal(a.count, 0);
    patch(&f, "/y", &a);
    sw_client_fence(f.client); /* teardown frees the client before the callback */
    teardown(&f);
}

static bool may_write(void *arg)
{
    return *(bool *)arg;
}

TEST(leadership_is_asked_for_before_each_try)
{
    struct fixture f;
    struct answer a;
    struct answer b;
    struct sw_call *call;
    bool is_leading = true;
    setup(&f, NULL);
    sw_client_set_may_write(f.client, may_write, &is_leading);
    patch(&f, "/x", &a);
    fake_answer(fake_the(f.transport, "/x"), 429, "Retry-After: 1", too_many);
    is_leading = false; /* the process was stopped meanwhile, say: no timer has fired yet */
    sw_loop_virtual_advance(f.loop, 10000);
    assert_int_equal(f.transport->count, 1);
    assert_int_equal(a.count, 1);
    assert_int_equal(a.code, SW_E_NOT_LEADER);
    assert_false(a.was_sent);
    struct sw_call_options options = {
        .method = "PATCH", .path = "/x", .body = "{}", .body_len = 2, .is_fenced = true};
    assert_int_equal(sw_client_call(f.client, &options, on_reply, &b, &call), SW_E_NOT_LEADER);
    get(&f, "/read", &b);
    assert_int_equal(f.transport->count, 2);
    teardown(&f);
}

TEST(leadership_is_asked_for_again_when_a_connection_is_free)
{
    struct fixture f;
    struct answer a;
    struct answer b;
    struct answer c;
    bool is_leading = true;
    setup(&f, NULL);
    sw_client_set_may_write(f.client, may_write, &is_leading);
    patch(&f, "/early", &a);
    patch(&f, "/late", &b);
    get(&f, "/read", &c);
    assert_true(fake_leaves(fake_the(f.transport, "/early")));
    is_leading = false; /* the process was stopped while all connections were busy */
    assert_false(fake_leaves(fake_the(f.transport, "/late")));
    assert_int_equal(b.count, 1);
    assert_int_equal(b.code, SW_E_NOT_LEADER);
    assert_false(b.was_sent);
    assert_true(fake_leaves(fake_the(f.transport, "/read")));
    fake_answer(fake_the(f.transport, "/early"), 200, NULL, "{}");
    fake_answer(fake_the(f.transport, "/read"), 200, NULL, "{}");
    assert_int_equal(a.status, 200);
    assert_int_equal(c.status, 200);
    teardown(&f);
}

/* ---- warnings ---- */

TEST(warnings_are_surfaced_once_per_text)
{
    struct fixture f;
    struct answer a;
    setup(&f, NULL);
    for (int i = 0; i < 3; i++) {
        get(&f, "/x", &a);
        fake_answer(fake_the(f.transport, "/x"), 200,
                    "Warning: 299 - \"apps/v1beta1 is \\\"old\\\"\"\n"
                    "warning: 299 kube \"second one\"\nWarning: 199 - \"not ours\"",
                    "{}");
    }
    assert_int_equal(fake_log_count(&f.log, "the API server warns"), 2);
    assert_true(fake_log_has(&f.log, "second one"));
    assert_false(fake_log_has(&f.log, "not ours"));
    teardown(&f);
}

/* ---- streams ---- */

struct watcher {
    struct sw_client *client;
    struct sw_client_stream_call *stream;
    unsigned opens, ends;
    int open_status, code, status;
    uint64_t retry_after_ms;
    char bytes[256];
    char message[512];
    char ids[256];
    char cancel_in; /* o, b, e; 0: nowhere */
};

static void w_open(void *arg, int status)
{
    struct watcher *w = arg;
    w->opens++;
    w->open_status = status;
    if (w->cancel_in == 'o') {
        sw_client_stream_call_cancel(w->stream);
    }
}

static void w_bytes(void *arg, const char *bytes, size_t len)
{
    struct watcher *w = arg;
    strncat(w->bytes, bytes, len);
    if (w->cancel_in == 'b') {
        sw_client_stream_call_cancel(w->stream);
    }
}

static void w_end(void *arg, const struct sw_stream_reply *reply)
{
    struct watcher *w = arg;
    w->ends++;
    w->code = reply->code;
    w->status = reply->status;
    w->retry_after_ms = reply->retry_after_ms;
    snprintf(w->ids, sizeof(w->ids), "%s %s %s", reply->audit_id, reply->flow_schema,
             reply->priority_level);
    snprintf(w->message, sizeof(w->message), "%s",
             reply->code ? reply->error->text : reply->why.message);
    if (w->cancel_in == 'e') {
        sw_client_stream_call_cancel(w->stream);
    }
}

static void stream(struct fixture *f, struct watcher *w, const char *path, const char *lane)
{
    static const struct sw_client_stream_events events = {w_open, w_bytes, w_end};
    struct sw_client_stream_options options = {
        .path = path, .lane = lane, .head_timeout_ms = 75000, .total_timeout_ms = 5};
    char cancel_in = w->cancel_in;
    memset(w, 0, sizeof(*w));
    w->cancel_in = cancel_in;
    w->client = f->client;
    assert_int_equal(sw_client_stream(f->client, &options, &events, w, &w->stream), 0);
}

TEST(a_stream_hands_on_what_comes)
{
    struct fixture f;
    struct watcher w = {0};
    setup(&f, &(struct sw_client_options){.path_prefix = "/p"});
    stream(&f, &w, "/x?watch=true", "watch x");
    struct fake_request *r = fake_the(f.transport, "/p/x?watch=true");
    assert_string_equal(r->lane, "watch x");
    assert_int_equal(r->head_timeout_ms, 75000);
    assert_int_equal(r->total_timeout_ms, 5);
    fake_head(r, 200, NULL);
    assert_int_equal(w.open_status, 200);
    fake_body(r, "ab");
    fake_body(r, "c");
    assert_string_equal(w.bytes, "abc");
    fake_end(r, 0);
    assert_int_equal(w.ends, 1);
    assert_int_equal(w.code, 0);
    assert_int_equal(w.status, 200);
    teardown(&f);
}

TEST(a_stream_that_is_refused_says_why)
{
    struct fixture f;
    struct watcher w = {0};
    setup(&f, NULL);
    stream(&f, &w, "/x", NULL);
    fake_answer(fake_the(f.transport, "/x"), 429,
                "Retry-After: 7\nAudit-Id: xyz\nX-Kubernetes-PF-FlowSchema-UID: fs\n"
                "X-Kubernetes-PF-PriorityLevel-UID: pl",
                too_many);
    assert_int_equal(w.opens, 1);
    assert_int_equal(w.ends, 1);
    assert_int_equal(w.status, 429);
    assert_int_equal(w.retry_after_ms, 7000);
    assert_string_equal(w.bytes, "");
    assert_string_equal(w.ids, "xyz fs pl");
    assert_string_equal(f.log.text, ""); /* whoever asked says what follows */
    assert_int_equal(f.transport->count, 1);
    teardown(&f);
}

TEST(a_stream_with_an_old_token_is_tried_again)
{
    struct fixture f;
    struct watcher w = {0};
    setup(&f, NULL);
    f.transport->refresh_result = true;
    stream(&f, &w, "/x", NULL);
    fake_answer(fake_the(f.transport, "/x"), 401, NULL, "Unauthorized");
    assert_int_equal(w.opens, 0);
    assert_int_equal(w.ends, 0);
    fake_answer(fake_the(f.transport, "/x"), 200, NULL, "ok");
    assert_int_equal(w.opens, 1);
    assert_string_equal(w.bytes, "ok");
    assert_int_equal(w.status, 200);

    f.transport->refresh_result = false;
    sw_loop_virtual_advance(f.loop, 2000);
    stream(&f, &w, "/x", NULL);
    fake_answer(fake_the(f.transport, "/x"), 401, NULL, "Unauthorized");
    assert_int_equal(w.ends, 1);
    assert_int_equal(w.status, 401);
    teardown(&f);
}

TEST(a_401_to_credentials_that_were_replaced_meanwhile_is_retried)
{
    struct fixture f;
    struct answer a;
    struct watcher w = {0};
    setup(&f, NULL);
    get(&f, "/x", &a);
    stream(&f, &w, "/s", NULL);
    f.transport
        ->credentials++; /* the token file was read again; to do so once more changes nothing */
    fake_answer(fake_the(f.transport, "/x"), 401, NULL, "Unauthorized");
    fake_answer(fake_the(f.transport, "/s"), 401, NULL, "Unauthorized");
    assert_int_equal(a.count, 0);
    assert_int_equal(w.ends, 0);
    fake_answer(fake_the(f.transport, "/x"), 200, NULL, "{}");
    fake_answer(fake_the(f.transport, "/s"), 200, NULL, "{}");
    assert_int_equal(a.status, 200);
    assert_int_equal(w.status, 200);
    assert_int_equal(f.transport->refreshes, 0);
    teardown(&f);
}

TEST(a_stream_may_be_cancelled_from_each_callback)
{
    struct fixture f;
    struct watcher w = {0};
    setup(&f, NULL);
    for (const char *where = "obe"; *where; where++) {
        w.cancel_in = *where;
        stream(&f, &w, "/x", NULL);
        fake_answer(fake_the(f.transport, "/x"), 200, NULL, "abc");
        assert_int_equal(w.ends, *where == 'e');
        assert_int_equal(fake_open_count(f.transport), 0);
    }
    stream(&f, &w, "/x", NULL); /* and with the client */
    teardown(&f);
}

TEST(pages_wait_for_the_rate_limit_and_watches_do_not)
{
    struct fixture f;
    struct watcher a = {0};
    struct watcher b = {0};
    struct watcher c = {0};
    setup(&f, &(struct sw_client_options){.requests_per_second = 1, .burst = 1});
    stream(&f, &a, "/a", NULL);
    stream(&f, &b, "/b", NULL);
    stream(&f, &c, "/c", "watch c");
    assert_int_equal(f.transport->count, 2);
    sw_loop_virtual_advance(f.loop, 1000);
    assert_int_equal(f.transport->count, 3);
    sw_client_stream_call_cancel(b.stream);
    stream(&f, &b, "/b", NULL);
    sw_client_stream_call_cancel(b.stream); /* while it waits */
    sw_loop_virtual_advance(f.loop, 5000);
    assert_int_equal(f.transport->count, 3);
    teardown(&f);
}

/* ---- freeing from within ---- */

static void on_reply_free(void *arg, const struct sw_reply *reply)
{
    struct fixture *f = arg;
    (void)reply;
    f->client = sw_client_free(f->client);
}

TEST(the_client_may_be_freed_by_a_callback)
{
    struct fixture f;
    struct answer other;
    struct sw_call *call;
    setup(&f, NULL);
    struct sw_call_options options = {.method = "GET", .path = "/x"};
    get(&f, "/other", &other);
    assert_int_equal(sw_client_call(f.client, &options, on_reply_free, &f, &call), 0);
    fake_answer(fake_the(f.transport, "/x"), 404, NULL, "gone");
    assert_null(f.client);
    assert_int_equal(other.count, 0);
    teardown(&f);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("client", paths_name_what_they_should),
        CASE("client", paths_cannot_be_left),
        CASE("client", an_answer_is_delivered_once),
        CASE("client", a_status_says_why),
        CASE("client", a_page_of_a_proxy_is_a_message),
        CASE("client", a_broken_connection_says_whether_it_was_sent),
        CASE("client", a_refused_send_is_returned),
        CASE("client", a_cancelled_call_is_silent),
        CASE("client", retry_after_is_waited_for),
        CASE("client", retry_after_may_be_a_date_or_garbage),
        CASE("client", nobody_waits_beyond_the_deadline),
        CASE("client", ten_retries_are_enough),
        CASE("client", what_may_have_happened_stays_so),
        CASE("client", a_401_reads_the_credentials_again_and_retries_once),
        CASE("client", a_401_with_the_same_credentials_is_final),
        CASE("client", a_401_to_credentials_that_were_replaced_meanwhile_is_retried),
        CASE("client", a_storm_of_401s_is_one_reload),
        CASE("client", the_rate_limit_holds_back_all_but_lanes),
        CASE("client", a_call_that_waits_too_long_for_its_turn_fails_unsent),
        CASE("client", fenced_calls_are_dropped_wherever_they_are),
        CASE("client", a_dropped_call_may_still_be_cancelled),
        CASE("client", leadership_is_asked_for_before_each_try),
        CASE("client", leadership_is_asked_for_again_when_a_connection_is_free),
        CASE("client", warnings_are_surfaced_once_per_text),
        CASE("client", a_stream_hands_on_what_comes),
        CASE("client", a_stream_that_is_refused_says_why),
        CASE("client", a_stream_with_an_old_token_is_tried_again),
        CASE("client", a_stream_may_be_cancelled_from_each_callback),
        CASE("client", pages_wait_for_the_rate_limit_and_watches_do_not),
        CASE("client", the_client_may_be_freed_by_a_callback),
    };
    return RUN(tests);
}
