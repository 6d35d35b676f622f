/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may read the metrics: verdicts, how long they hold, and how little strangers cost, on virtual
 * time with an API server that the test plays.
 */
#include "runtime/metrics_access.h"

#include <errno.h>

#include "base/metrics.h"
#include "base/util.h"
#include "kube/caller_review.h"
#include "kube/client.h"

#include "../kube/fake_transport.h"
#include "../memory.h"
#include "../test.h"

struct visitor {
    struct sw_access_waiter waiter;
    struct gate *gate;
    const char *authorization;
    int status; /* 0: not told yet */
    unsigned told;
    char why[128];
    struct visitor *next; /* comes from within the callback */
};

/* The API server: a token "mia" is mia's, one that begins with "bad" is nobody's; mia may, and
 * whoever else is named. */
struct gate {
    struct sw_loop *loop;
    struct fake_transport *transport;
    struct sw_metrics *metrics;
    struct fake_log log;
    struct sw_client *client;
    struct sw_metrics_access *access;
    const char *may; /* part of the name */
    bool is_silent;
    int status;  /* of all answers; 0: of success */
    int failure; /* the connection breaks with that code */
    unsigned identities, rights;
};

static void answer(struct fake_request *request, int status, const char *body)
{
    fake_head(request, status, NULL);
    fake_body(request, body);
    fake_end(request, 0);
}

static void answer_identity(struct fake_request *request)
{
    const char *token = strstr(request->body, "\"token\":\"") + 9;
    char body[512];

    if (strncmp(token, "bad", 3) == 0)
        snprintf(body, sizeof(body),
                 "{\"kind\":\"TokenReview\",\"status\":{\"user\":{},\"error\":\"no\"}}");
    else
        snprintf(body, sizeof(body),
                 "{\"kind\":\"TokenReview\",\"status\":{\"authenticated\":true,\"user\":{"
                 "\"username\":\"%.*s\",\"groups\":[\"all\"]}}}",
                 (int)strcspn(token, "\""), token);
    answer(request, 201, body);
}

static void on_request(void *arg, struct fake_request *request)
{
    struct gate *g = arg;
    bool is_identity = strcmp(request->target, SW_TOKEN_REVIEWS) == 0;

    assert_true(is_identity || strcmp(request->target, SW_SUBJECT_ACCESS_REVIEWS) == 0);
    assert_string_equal(request->lane, "metrics");
    assert_true(request->may_replay);
    *(is_identity ? &g->identities : &g->rights) += 1;
    if (g->is_silent)
        return;
    if (g->failure) {
        fake_end(request, g->failure);
    } else if (g->status) {
        answer(request, g->status,
               "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"slipway may not\"}");
    } else if (is_identity) {
        answer_identity(request);
    } else {
        assert_non_null(strstr(request->body, "{\"path\":\"/metrics\",\"verb\":\"get\"}"));
        assert_non_null(strstr(request->body, "\"groups\":[\"all\"]"));
        answer(request, 201,
               g->may && strstr(request->body, g->may)
                   ? "{\"kind\":\"SubjectAccessReview\",\"status\":{\"allowed\":true}}"
                   : "{\"kind\":\"SubjectAccessReview\",\"status\":{\"allowed\":false}}");
    }
}

static void begin(struct gate *g)
{
    *g = (struct gate){.may = "mia"};
    g->loop = sw_loop_virtual_new(0, 1);
    g->transport = fake_transport_new(g->loop);
    g->transport->on_request = on_request;
    g->transport->arg = g;
    g->metrics = sw_metrics_new();
    fake_log_init(&g->log, g->loop);
    g->client = sw_client_new(g->loop, &g->transport->base, NULL, g->metrics, &g->log.log);
    g->access = sw_metrics_access_new(g->loop, g->client, &g->log.log);
}

static void end(struct gate *g)
{
    g->access = sw_metrics_access_free(g->access);
    sw_client_free(g->client);
    sw_loop_virtual_advance(g->loop, 0);
    assert_int_equal(fake_open_count(g->transport), 0);
    fake_transport_free(g->transport);
    sw_metrics_free(g->metrics);
    fake_log_done(&g->log);
    assert_int_equal(sw_loop_close(g->loop), 0);
}

static void come(struct gate *g, struct visitor *v, const char *authorization);

static void take(struct visitor *v, const struct sw_access_verdict *verdict)
{
    v->status = verdict->status;
    v->told++;
    snprintf(v->why, sizeof(v->why), "%s", verdict->why);
    if (v->next)
        come(v->gate, v->next, v->next->authorization);
}

static void on_verdict(struct sw_access_waiter *waiter, const struct sw_access_verdict *verdict)
{
    take(container_of(waiter, struct visitor, waiter), verdict);
}

static void come(struct gate *g, struct visitor *v, const char *authorization)
{
    struct sw_access_verdict verdict;

    *v = (struct visitor){{.fn = on_verdict}, g, authorization, .next = v->next};
    if (sw_metrics_access_ask(g->access, authorization, &v->waiter, &verdict))
        take(v, &verdict);
}

/* The verdict, and how many requests it has taken. */
static int ask(struct gate *g, const char *authorization, unsigned *ret_requests)
{
    unsigned before = g->transport->count;
    struct visitor v = {0};

    come(g, &v, authorization);
    sw_loop_virtual_advance(g->loop, 0);
    assert_int_equal(v.told, 1);
    if (ret_requests)
        *ret_requests = g->transport->count - before;
    return v.status;
}

static void expect(struct gate *g, const char *authorization, int status, unsigned requests)
{
    unsigned sent;

    assert_int_equal(ask(g, authorization, &sent), status);
    assert_int_equal(sent, requests);
}

TEST(lets_in_who_may_and_nobody_else)
{
    struct gate g;

    begin(&g);
    expect(&g, "Bearer mia", 200, 2);
    expect(&g, "bearer  max", 403, 2);
    expect(&g, "Bearer bad.token", 401, 1);
    assert_true(fake_log_has(&g.log,
                             "max may not get /metrics: bind it to a ClusterRole that may, such as "
                             "slipway-metrics-reader"));
    assert_false(fake_log_has(&g.log, "bad.token"));
    end(&g);
}

TEST(asks_for_a_token_before_it_asks_anybody)
{
    static const char *const none[] = {NULL,         "",         "Bearer",       "Bearer ",
                                       "Basic bWlh", "mia",      "Bearer mia x", "Bearer m\"ia",
                                       "Bearer a,b", "Bearermia"};
    struct gate g;

    begin(&g);
    for (size_t i = 0; i < SW_ARRAY_SIZE(none); i++)
        expect(&g, none[i], 401, 0);
    char *large = calloc(1, 70000);
    memset(large, 'a', 17000);
    memcpy(large, "Bearer ", 7);
    expect(&g, large, 401, 0);
    free(large);
    end(&g);
}

TEST(remembers_for_a_while)
{
    struct gate g;

    begin(&g);
    expect(&g, "Bearer mia", 200, 2);
    expect(&g, "Bearer max", 403, 2);
    expect(&g, "Bearer bad", 401, 1);
    sw_loop_virtual_advance(g.loop, 9999);
    expect(&g, "Bearer bad", 401, 0);
    sw_loop_virtual_advance(g.loop, 1);
    expect(&g, "Bearer bad", 401, 1);
    sw_loop_virtual_advance(g.loop, 19999);
    expect(&g, "Bearer max", 403, 0);
    sw_loop_virtual_advance(g.loop, 1);
    expect(&g, "Bearer max", 403, 2);
    sw_loop_virtual_advance(g.loop, 29999);
    expect(&g, "Bearer mia", 200, 0);
    sw_loop_virtual_advance(g.loop, 1);
    expect(&g, "Bearer mia", 200, 2);
    /* Once, not at each scrape. */
    assert_int_equal(fake_log_count(&g.log, "max may not"), 1);
    end(&g);
}

TEST(notices_a_right_that_is_given_or_taken)
{
    struct gate g;

    begin(&g);
    expect(&g, "Bearer mia", 200, 2);
    expect(&g, "Bearer max", 403, 2);
    g.may = "max";
    expect(&g, "Bearer mia", 200, 0);
    sw_loop_virtual_advance(g.loop, 60000);
    expect(&g, "Bearer mia", 403, 2);
    expect(&g, "Bearer max", 200, 2);
    end(&g);
}

TEST(asks_once_for_all_who_come_with_one_token)
{
    struct gate g;
    struct visitor v[10] = {0};

    begin(&g);
    for (size_t i = 0; i < SW_ARRAY_SIZE(v); i++)
        come(&g, &v[i], i % 2 ? "Bearer mia" : "BEARER mia");
    sw_loop_virtual_advance(g.loop, 0);
    for (size_t i = 0; i < SW_ARRAY_SIZE(v); i++) {
        assert_int_equal(v[i].status, 200);
        assert_int_equal(v[i].told, 1);
    }
    assert_int_equal(g.transport->count, 2);
    end(&g);
}

TEST(is_asked_again_from_its_own_callback)
{
    struct gate g;
    struct visitor third = {.authorization = "Bearer bad"};
    struct visitor second = {.authorization = "Bearer mia", .next = &third};
    struct visitor first = {.next = &second};

    begin(&g);
    come(&g, &first, "Bearer mia");
    sw_loop_virtual_advance(g.loop, 0);
    assert_int_equal(first.status, 200);
    assert_int_equal(second.status, 200);
    assert_int_equal(third.status, 401);
    assert_int_equal(first.told + second.told + third.told, 3);
    end(&g);
}

TEST(answers_those_it_knows_while_the_api_server_is_away)
{
    struct gate g;

    begin(&g);
    expect(&g, "Bearer mia", 200, 2);
    g.failure = -ECONNREFUSED;
    expect(&g, "Bearer mia", 200, 0);
    expect(&g, "Bearer eve", 503, 1);
    expect(&g, "Bearer eve", 503, 1);
    sw_loop_virtual_advance(g.loop, 60000);
    expect(&g, "Bearer mia", 200, 1);
    /* Not at each scrape. */
    sw_loop_virtual_advance(g.loop, 9999);
    expect(&g, "Bearer mia", 200, 0);
    sw_loop_virtual_advance(g.loop, 1);
    expect(&g, "Bearer mia", 200, 1);
    sw_loop_virtual_advance(g.loop, 229999);
    expect(&g, "Bearer mia", 200, 1);
    sw_loop_virtual_advance(g.loop, 1);
    expect(&g, "Bearer mia", 503, 1);
    assert_int_equal(fake_log_count(&g.log, "cannot be verified now"), 1);
    g.failure = 0;
    expect(&g, "Bearer mia", 200, 2);
    assert_int_equal(fake_log_count(&g.log, "can be verified again"), 1);
    end(&g);
}

TEST(says_so_where_the_api_server_does_not_answer)
{
    struct gate g;
    struct visitor v = {0};

    begin(&g);
    g.is_silent = true;
    come(&g, &v, "Bearer mia");
    sw_loop_virtual_advance(g.loop, 5000);
    answer_identity(fake_the(g.transport, SW_TOKEN_REVIEWS));
    sw_loop_virtual_advance(g.loop, 0);
    assert_int_equal(v.told, 0);
    /* Both have 8 s; the transport sees to it. */
    struct fake_request *right = fake_the(g.transport, SW_SUBJECT_ACCESS_REVIEWS);
    assert_int_equal(right->total_timeout_ms, 3000);
    fake_break(right, -ETIMEDOUT);
    assert_int_equal(v.status, 503);
    assert_string_equal(v.why, "the API server does not say now who you are and what you may");
    g.is_silent = false;
    static const int statuses[] = {500, 503, 429, 401};
    for (size_t i = 0; i < SW_ARRAY_SIZE(statuses); i++) {
        g.status = statuses[i];
        come(&g, &v, "Bearer mia");
        sw_loop_virtual_advance(g.loop, 8000);
        assert_int_equal(v.told, 1);
        assert_int_equal(v.status, 503);
    }
    end(&g);
}

TEST(says_which_permission_of_ours_is_missing)
{
    struct gate g;

    begin(&g);
    g.status = 403;
    expect(&g, "Bearer mia", 500, 1);
    expect(&g, "Bearer mia", 500, 1);
    assert_int_equal(fake_log_count(&g.log, "give the permission to our role"), 1);
    assert_true(fake_log_has(&g.log, "slipway may not"));
    assert_true(fake_log_has(&g.log, SW_TOKEN_REVIEWS));
    end(&g);
}

TEST(takes_it_back_where_nothing_can_be_sent)
{
    struct gate g;

    begin(&g);
    g.transport->send_result = -ENOTCONN;
    expect(&g, "Bearer mia", 503, 0);
    g.transport->send_result = 0;
    expect(&g, "Bearer mia", 200, 2);
    end(&g);
}

/* ---- strangers ---- */

enum { STRANGERS = 1000 };

struct crowd {
    struct visitor at[STRANGERS];
    char tokens[STRANGERS][64];
};

static struct crowd *crowd_new(void)
{
    struct crowd *crowd = calloc(1, sizeof(*crowd));

    assert_non_null(crowd);
    for (unsigned i = 0; i < STRANGERS; i++)
        snprintf(crowd->tokens[i], sizeof(crowd->tokens[i]), "Bearer bad%u", i);
    return crowd;
}

static unsigned count(const struct crowd *crowd, int status)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < STRANGERS; i++)
        sum += crowd->at[i].status == status;
    return sum;
}

TEST(asks_about_few_of_a_thousand_strangers_at_once)
{
    struct crowd *crowd = crowd_new();
    struct gate g;
    size_t most = 0;

    begin(&g);
    g.is_silent = true;
    for (unsigned i = 0; i < STRANGERS; i++)
        come(&g, &crowd->at[i], crowd->tokens[i]);
    sw_loop_virtual_advance(g.loop, 0);
    assert_int_equal(fake_open_count(g.transport), SW_ACCESS_ASKED_MAX);
    assert_int_equal(count(crowd, 0), SW_ACCESS_STRANGERS_MAX);
    assert_int_equal(count(crowd, 503), STRANGERS - SW_ACCESS_STRANGERS_MAX);
    /* Now they are answered, one after the other. */
    g.is_silent = false;
    for (unsigned i = 0; i < SW_ACCESS_ASKED_MAX; i++)
        answer_identity(g.transport->requests[i]);
    for (unsigned i = 0; i < 100; i++) {
        sw_loop_virtual_advance(g.loop, 100);
        most = SW_MAX(most, fake_open_count(g.transport));
    }
    assert_in_range(most, 0, SW_ACCESS_ASKED_MAX);
    assert_int_equal(count(crowd, 0), 0);
    assert_int_equal(g.identities, SW_ACCESS_STRANGERS_MAX);
    assert_int_equal(count(crowd, 401), SW_ACCESS_STRANGERS_MAX);
    for (unsigned i = 0; i < STRANGERS; i++)
        assert_int_equal(crowd->at[i].told, 1);
    end(&g);
    free(crowd);
}

/* 20 at once, and 10 a second. */
TEST(asks_about_ten_strangers_a_second)
{
    struct crowd *crowd = crowd_new();
    struct gate g;
    unsigned i = 0;

    begin(&g);
    for (unsigned tick = 0; tick < 50; tick++) {
        for (unsigned k = 0; k < 20; k++, i++)
            come(&g, &crowd->at[i], crowd->tokens[i]);
        sw_loop_virtual_advance(g.loop, 100);
        assert_in_range(g.identities, 0, 20 + tick + 1);
    }
    assert_int_equal(i, STRANGERS);
    assert_in_range(g.identities, 65, 70);
    end(&g);
    free(crowd);
}

/* Because the API server does not answer. */
TEST(lets_nobody_wait_who_could_not_be_answered)
{
    struct crowd *crowd = crowd_new();
    struct gate g;

    begin(&g);
    expect(&g, "Bearer mia", 200, 2);
    sw_loop_virtual_advance(g.loop, 60000);
    g.is_silent = true;
    for (unsigned i = 0; i < 200; i++)
        come(&g, &crowd->at[i], "Bearer mia");
    sw_loop_virtual_advance(g.loop, 0);
    assert_int_equal(count(crowd, 503), 200 - SW_ACCESS_WAITING_MAX);
    /* They still may, so they need not wait long. */
    struct fake_request *identity = fake_the(g.transport, SW_TOKEN_REVIEWS);
    assert_int_equal(identity->total_timeout_ms, 3000);
    fake_break(identity, -ETIMEDOUT);
    assert_int_equal(count(crowd, 200), SW_ACCESS_WAITING_MAX);
    /* A stranger waits until it is too late. */
    for (unsigned i = 0; i < 10; i++)
        come(&g, &crowd->at[i], crowd->tokens[i]);
    sw_loop_virtual_advance(g.loop, 7999);
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(crowd->at[i].told, 0);
    sw_loop_virtual_advance(g.loop, 1);
    for (unsigned i = SW_ACCESS_ASKED_MAX; i < 10; i++)
        assert_int_equal(crowd->at[i].status, 503);
    end(&g);
    for (unsigned i = 0; i < SW_ACCESS_ASKED_MAX; i++)
        assert_int_equal(crowd->at[i].status, 503);
    free(crowd);
}

TEST(grows_by_no_number_of_strangers)
{
    struct crowd *crowd = crowd_new();
    struct gate g;
    size_t before = 0;

    begin(&g);
    for (unsigned i = 0; i < STRANGERS; i++) {
        /* What is known of so many is kept, and no more; the fake transport keeps all requests. */
        if (i == SW_ACCESS_KNOWN_MAX)
            before = test_allocated();
        come(&g, &crowd->at[i], crowd->tokens[i]);
        sw_loop_virtual_advance(g.loop, 100);
        assert_int_equal(crowd->at[i].status, 401);
    }
    size_t requests = (STRANGERS - SW_ACCESS_KNOWN_MAX) * (sizeof(struct fake_request) + 512);
    assert_in_range(test_allocated(), 0, before + requests);
    expect(&g, "Bearer bad999", 401, 0);
    expect(&g, "Bearer bad1", 401, 1);
    end(&g);
    free(crowd);
}

TEST(keeps_those_who_may_whoever_else_comes)
{
    struct crowd *crowd = crowd_new();
    struct gate g;

    begin(&g);
    expect(&g, "Bearer mia", 200, 2);
    for (unsigned i = 0; i < 400; i++) {
        come(&g, &crowd->at[i], crowd->tokens[i]);
        sw_loop_virtual_advance(g.loop, 100);
        assert_int_equal(crowd->at[i].status, 401);
    }
    expect(&g, "Bearer mia", 200, 0);
    /* When it is time to ask again, that is done before all strangers who wait. */
    sw_loop_virtual_advance(g.loop, 20000);
    g.is_silent = true;
    for (unsigned i = 400; i < 500; i++)
        come(&g, &crowd->at[i], crowd->tokens[i]);
    sw_loop_virtual_advance(g.loop, 0);
    g.is_silent = false;
    expect(&g, "Bearer mia", 200, 2);
    end(&g);
    free(crowd);
}

TEST(tells_all_who_wait_when_it_ends)
{
    struct crowd *crowd = crowd_new();
    struct gate g;

    begin(&g);
    g.is_silent = true;
    for (unsigned i = 0; i < 50; i++)
        come(&g, &crowd->at[i], crowd->tokens[i / 2]);
    sw_loop_virtual_advance(g.loop, 0);
    g.access = sw_metrics_access_free(g.access);
    for (unsigned i = 0; i < 50; i++) {
        assert_int_equal(crowd->at[i].status, 503);
        assert_int_equal(crowd->at[i].told, 1);
    }
    end(&g);
    free(crowd);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("metrics_access", lets_in_who_may_and_nobody_else),
        CASE("metrics_access", asks_for_a_token_before_it_asks_anybody),
        CASE("metrics_access", remembers_for_a_while),
        CASE("metrics_access", notices_a_right_that_is_given_or_taken),
        CASE("metrics_access", asks_once_for_all_who_come_with_one_token),
        CASE("metrics_access", is_asked_again_from_its_own_callback),
        CASE("metrics_access", answers_those_it_knows_while_the_api_server_is_away),
        CASE("metrics_access", says_so_where_the_api_server_does_not_answer),
        CASE("metrics_access", says_which_permission_of_ours_is_missing),
        CASE("metrics_access", takes_it_back_where_nothing_can_be_sent),
        CASE("metrics_access", asks_about_few_of_a_thousand_strangers_at_once),
        CASE("metrics_access", asks_about_ten_strangers_a_second),
        CASE("metrics_access", lets_nobody_wait_who_could_not_be_answered),
        CASE("metrics_access", grows_by_no_number_of_strangers),
        CASE("metrics_access", keeps_those_who_may_whoever_else_comes),
        CASE("metrics_access", tells_all_who_wait_when_it_ends),
    };
    return RUN(tests);
}
