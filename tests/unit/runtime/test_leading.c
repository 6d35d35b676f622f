/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leading: from the lease to the modules and back, and stopping in order.
 */
#include <errno.h>
#include <slipway/queue.h>
#include <slipway/watch.h>
#include <slipway/write.h>

#include "base/error.h"

#include "../test.h"
#include "fixture.h"

struct leader {
    struct fixture f;
    struct made_up made_up;
    struct sw_queue *queue;
    bool also_on_followers;
    unsigned runs;
    enum sw_result result;
    struct sw_run *run;
    char told[64]; /* "+" leads, "-" does not */
    unsigned answers;
    enum sw_outcome outcome;
    unsigned quiet;
};

static const struct sw_lease_options lease = {
    .namespace_ = "ns", .name = "slipway", .identity = "i"};

static enum sw_result work(struct sw_instance *self, void *arg, struct sw_run *run)
{
    struct leader *l = arg;

    (void)self;
    l->runs++;
    l->run = run;
    return l->result;
}

static void on_leading(struct sw_instance *self, bool is_leading)
{
    struct leader *l = (*(struct made_up **)sw_state(self))->arg;

    assert_int_equal(sw_is_leading(self), is_leading);
    strcat(l->told, is_leading ? "+" : "-");
    if (is_leading)
        sw_queue_add(l->queue, "first");
}

static int start(struct sw_instance *self, void *arg)
{
    struct leader *l = arg;
    struct sw_watch_options options = {.arg = l};
    struct sw_queue_options queue = {
        .name = "q", .fn = work, .arg = l, .also_on_followers = l->also_on_followers};

    l->queue = sw_queue_new(self, &queue);
    sw_on_leading(self, on_leading);
    return sw_watch(self, &sw_kind_deployment, &options);
}

static void on_answer(struct sw_instance *self, void *arg, const struct sw_answer *answer)
{
    struct leader *l = arg;

    (void)self;
    l->answers++;
    l->outcome = answer->outcome;
}

static struct leader *begin_as(const struct sw_core_options *options, bool also_on_followers)
{
    struct leader *l = calloc(1, sizeof(*l));

    l->also_on_followers = also_on_followers;
    l->made_up = (struct made_up){.start = start, .arg = l};
    fixture_init(&l->f, options);
    fixture_add(&l->f, &module_one, &l->made_up);
    fixture_open(&l->f);
    return l;
}

static struct leader *begin(const struct sw_core_options *options)
{
    return begin_as(options, false);
}

static void end(struct leader *l)
{
    fixture_done(&l->f);
    free(l);
}

static struct fake_request *find(struct leader *l, const char *method, const char *text)
{
    struct fake_request *r = fake_find(l->f.transport, text);

    return r && strcmp(r->method, method) == 0 ? r : NULL;
}

#define LEASE_PATH "/coordination.k8s.io/v1/namespaces/ns/leases"

/* The API server has no lease, and stores ours. */
static void win_lease(struct leader *l)
{
    fake_answer(fake_the(l->f.transport, LEASE_PATH), 404, NULL,
                "{\"kind\":\"Status\",\"code\":404,\"reason\":\"NotFound\"}");
    struct fake_request *create = find(l, "POST", LEASE_PATH);
    const char *body = create ? create->body : "";
    char answer[4096];
    assert_int_not_equal(strlen(body), 0);
    snprintf(answer, sizeof(answer), "%.*s,\"status\":{}}", (int)strlen(body) - 1, body);
    char *metadata = strstr(answer, "\"name\":\"slipway\"");
    assert_non_null(metadata);
    char with_version[4200];
    snprintf(with_version, sizeof(with_version), "%.*s\"resourceVersion\":\"1\",\"uid\":\"l\",%s",
             (int)(metadata - answer), answer, metadata);
    fake_answer(create, 201, NULL, with_version);
}

static void send_patch(struct leader *l)
{
    struct sw_arena *arena = sw_arena_new(0);
    struct sw_write write = {.verb = SW_MERGE_PATCH,
                             .kind = &sw_kind_deployment,
                             .namespace_ = "n",
                             .name = "a",
                             .resource_version = "5",
                             .body = sw_json_object(arena)};

    assert_int_equal(sw_write(l->made_up.self, &write, on_answer, l), 0);
    sw_arena_free(arena);
    fixture_turn(&l->f);
}

TEST(begins_with_the_first_lists_where_there_is_no_election)
{
    struct leader *l = begin(NULL);

    assert_string_equal(l->told, "");
    serve_deployments(&l->f, "10", "");
    assert_string_equal(l->told, "+");
    assert_int_equal(sw_term(l->made_up.self), 0);
    assert_int_equal(l->runs, 1);
    end(l);
}

TEST(waits_until_our_name_is_known)
{
    struct sw_core_options options = {0};
    struct leader *l = begin(&options);

    serve_deployments(&l->f, "10", "");
    assert_string_equal(l->told, "");
    assert_false(sw_core_is_ready(l->f.core));
    assert_string_equal(sw_self_username(l->made_up.self), "");
    sw_core_set_username(l->f.core, "system:serviceaccount:kube-system:slipway");
    assert_string_equal(l->told, "+");
    assert_true(sw_core_is_ready(l->f.core));
    assert_string_equal(sw_self_username(l->made_up.self),
                        "system:serviceaccount:kube-system:slipway");
    sw_core_set_username(l->f.core, "another");
    assert_string_equal(l->told, "+");
    end(l);
}

TEST(lists_anew_after_the_lease_was_won_and_leads_then)
{
    struct sw_core_options options = {.username = "me", .lease = &lease};
    struct leader *l = begin(&options);

    serve_deployments(&l->f, "10", "");
    assert_true(sw_core_is_ready(l->f.core));
    assert_string_equal(l->told, "");
    win_lease(l);
    assert_string_equal(l->told, "");
    assert_false(sw_is_leading(l->made_up.self));
    serve_deployments(&l->f, "11", deployment("n", "a", "u1", "5", "{}"));
    assert_string_equal(l->told, "+");
    assert_int_equal(l->runs, 1);
    end(l);
}

TEST(does_not_believe_a_list_that_was_sent_before_the_lease_was_won)
{
    struct sw_core_options options = {.username = "me", .lease = &lease};
    struct leader *l = begin(&options);

    win_lease(l); /* while the first list is under way */
    fake_answer(fake_the(l->f.transport, "/deployments?limit="), 200, NULL, list_of("10", ""));
    assert_string_equal(l->told, "");
    serve_deployments(&l->f, "11", "");
    assert_string_equal(l->told, "+");
    end(l);
}

static struct leader *begin_leading_as(bool also_on_followers)
{
    struct sw_core_options options = {.username = "me", .lease = &lease};
    struct leader *l = begin_as(&options, also_on_followers);

    serve_deployments(&l->f, "10", "");
    win_lease(l);
    serve_deployments(&l->f, "11", deployment("n", "a", "u1", "5", "{}"));
    assert_string_equal(l->told, "+");
    l->runs = 0;
    return l;
}

static struct leader *begin_leading(void)
{
    return begin_leading_as(false);
}

/* Renewals are not answered: the lease runs out. */
TEST(stops_writing_when_the_lease_runs_out)
{
    struct leader *l = begin_leading();

    send_patch(l);
    struct fake_request *patch = fake_the(l->f.transport, "/deployments/a");
    sw_queue_add_after(l->queue, "later", 20000);
    sw_loop_virtual_advance(l->f.loop, 11000);
    assert_string_equal(l->told, "+-");
    assert_false(sw_is_leading(l->made_up.self));
    assert_true(patch->was_aborted);
    assert_int_equal(l->answers, 1);
    assert_int_equal(l->outcome, SW_UNKNOWN); /* it may have arrived */
    sw_loop_virtual_advance(l->f.loop, 30000);
    assert_int_equal(l->runs, 0);
    send_patch(l);
    assert_int_equal(l->outcome, SW_NOT_LEADER);
    end(l);
}

/* ---- stopping ---- */

static void on_quiet(void *arg)
{
    struct leader *l = arg;

    l->quiet++;
}

static void answer_release(struct leader *l)
{
    struct fake_request *release = fake_find(l->f.transport, LEASE_PATH);

    if (!release)
        fail_msg("the lease is not given back");
    assert_string_equal(release->method, "PUT");
    assert_null(strstr(release->body, "\"holderIdentity\":\"i\""));
    assert_non_null(strstr(release->body, "\"leaseDurationSeconds\":1,"));
    fake_answer(release, 200, NULL, release->body);
}

TEST(finishes_writes_before_it_gives_the_lease_back)
{
    struct leader *l = begin_leading();

    send_patch(l);
    sw_core_quiesce(l->f.core, 20000, on_quiet, l);
    assert_string_equal(l->told, "+-");
    sw_queue_add(l->queue, "new");
    fixture_turn(&l->f);
    assert_int_equal(l->runs, 0);
    assert_null(fake_find(l->f.transport, LEASE_PATH));
    send_patch(l);
    assert_int_equal(l->outcome, SW_NOT_LEADER);
    fake_answer(fake_the(l->f.transport, "/deployments/a"), 200, NULL,
                deployment("n", "a", "u1", "20", "{}"));
    assert_int_equal(l->outcome, SW_OK);
    assert_int_equal(l->quiet, 0);
    answer_release(l);
    assert_int_equal(l->quiet, 1);
    end(l);
}

TEST(waits_for_a_run_under_way)
{
    struct leader *l = begin_leading();

    l->result = SW_LATER;
    sw_queue_add(l->queue, "key");
    fixture_turn(&l->f);
    assert_int_equal(l->runs, 1);
    sw_core_quiesce(l->f.core, 20000, on_quiet, l);
    fixture_turn(&l->f);
    assert_null(fake_find(l->f.transport, LEASE_PATH));
    sw_run_finish(l->run, SW_RETRY);
    fixture_turn(&l->f);
    answer_release(l);
    assert_int_equal(l->quiet, 1);
    end(l);
}

/* The queue is that of a sink: it works without the lead, too. */
static struct leader *begin_with_a_record_under_way(void)
{
    struct leader *l = begin_leading_as(true);

    l->result = SW_LATER;
    sw_queue_add(l->queue, "record");
    fixture_turn(&l->f);
    assert_int_equal(l->runs, 1);
    sw_core_quiesce(l->f.core, 20000, on_quiet, l);
    fixture_turn(&l->f);
    return l;
}

TEST(waits_a_moment_for_a_record_before_it_gives_the_lease_back)
{
    struct leader *l = begin_with_a_record_under_way();

    sw_loop_virtual_advance(l->f.loop, 249);
    assert_null(fake_find(l->f.transport, LEASE_PATH));
    sw_run_finish(l->run, SW_DONE);
    fixture_turn(&l->f);
    answer_release(l);
    assert_int_equal(l->quiet, 1);
    end(l);
}

TEST(a_record_that_takes_long_holds_up_the_end_but_not_the_lease)
{
    for (int is_lost = 0; is_lost < 2; is_lost++) {
        struct leader *l = begin_with_a_record_under_way();

        sw_loop_virtual_advance(l->f.loop, 250);
        answer_release(l);
        assert_int_equal(l->quiet, 0);
        sw_loop_virtual_advance(l->f.loop, 1749);
        assert_int_equal(l->quiet, 0);
        if (is_lost)
            sw_loop_virtual_advance(l->f.loop, 1);
        else
            sw_run_finish(l->run, SW_DONE);
        fixture_turn(&l->f);
        assert_int_equal(l->quiet, 1);
        end(l);
    }
}

TEST(cuts_off_what_is_not_answered_in_time)
{
    struct leader *l = begin_leading();

    send_patch(l);
    sw_core_quiesce(l->f.core, 5000, on_quiet, l);
    sw_loop_virtual_advance(l->f.loop, 1500);
    /* The lease is kept meanwhile, so that nobody else begins to write. */
    struct fake_request *renewal = fake_find(l->f.transport, LEASE_PATH);
    if (renewal)
        fake_answer(renewal, 200, NULL, renewal->body);
    assert_int_equal(l->quiet, 0);
    sw_loop_virtual_advance(l->f.loop, 3500);
    assert_int_equal(l->answers, 1);
    assert_int_equal(l->outcome, SW_UNKNOWN);
    sw_loop_virtual_advance(l->f.loop, 10000);
    assert_int_equal(l->quiet, 1);
    end(l);
}

TEST(is_quiet_at_once_with_nothing_to_do)
{
    struct leader *l = begin(NULL);

    serve_deployments(&l->f, "10", "");
    sw_core_quiesce(l->f.core, 20000, on_quiet, l);
    assert_int_equal(l->quiet, 0);
    fixture_turn(&l->f);
    assert_int_equal(l->quiet, 1);
    assert_string_equal(l->told, "+-");
    assert_true(sw_core_is_ready(l->f.core)); /* reviews are answered on */
    end(l);
}

TEST(may_be_freed_while_it_waits)
{
    struct leader *l = begin_leading();

    send_patch(l);
    sw_core_quiesce(l->f.core, 20000, on_quiet, l);
    fixture_turn(&l->f);
    end(l);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("leading", begins_with_the_first_lists_where_there_is_no_election),
        CASE("leading", waits_until_our_name_is_known),
        CASE("leading", lists_anew_after_the_lease_was_won_and_leads_then),
        CASE("leading", does_not_believe_a_list_that_was_sent_before_the_lease_was_won),
        CASE("leading", stops_writing_when_the_lease_runs_out),
        CASE("stopping", finishes_writes_before_it_gives_the_lease_back),
        CASE("stopping", waits_for_a_run_under_way),
        CASE("stopping", waits_a_moment_for_a_record_before_it_gives_the_lease_back),
        CASE("stopping", a_record_that_takes_long_holds_up_the_end_but_not_the_lease),
        CASE("stopping", cuts_off_what_is_not_answered_in_time),
        CASE("stopping", is_quiet_at_once_with_nothing_to_do),
        CASE("stopping", may_be_freed_while_it_waits),
    };
    return RUN(tests);
}
