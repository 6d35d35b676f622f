/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leader election: candidates with clocks of their own against an API server in memory that holds
 * one Lease and can be made to fail.
 */
#include "kube/lease.h"

#include <errno.h>
#include <slipway/json.h>

#include "base/error.h"
#include "base/metrics.h"
#include "base/util.h"
#include "kube/client.h"
#include "kube/lease_record.h"

#include "fake_transport.h"
#include "test.h"

#define COLLECTION "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
#define START_US INT64_C(1767225600000000)

/* ---- the server ---- */

enum mode {
    MODE_WELL,
    MODE_DOWN,      /* refuses connections */
    MODE_SILENT,    /* never answers, does nothing */
    MODE_LOSES,     /* does it, and the answer is lost */
    MODE_DISTURBED, /* somebody else writes right before every PUT, leaving the spec alone */
    MODE_FORBIDDEN,
    MODE_BROKEN, /* 500 */
};

struct server {
    struct sw_arena *arena;
    struct sw_json *lease; /* NULL: there is none */
    int64_t version;
    unsigned gets, posts, puts;
    struct candidate *watchers[2]; /* NULL: none */
};

struct candidate {
    struct server *server;
    struct sw_loop *loop;
    struct fake_transport *transport;
    struct sw_metrics *metrics;
    struct fake_log log;
    struct sw_client *client;
    struct sw_lease *lease;
    enum mode mode;
    unsigned wins, losses, watches;
    unsigned done;
    bool frees_itself;
    bool may_watch;
    uint64_t changed_ms; /* when it won or lost last */
};

static void server_init(struct server *s)
{
    memset(s, 0, sizeof(*s));
    s->arena = sw_arena_new(0);
}

static void server_done(struct server *s)
{
    sw_arena_free(s->arena);
}

/* An event, to whoever watches. */
static void tell(struct server *s, const char *type)
{
    const char *text = sw_json_dump(s->lease, s->arena, NULL);
    for (size_t i = 0; i < SW_ARRAY_SIZE(s->watchers); i++) {
        struct candidate *c = s->watchers[i];
        struct fake_request *r = c ? fake_find(c->transport, "watch=true") : NULL;
        if (r && c->mode == MODE_WELL) {
            fake_body(r,
                      sw_arena_printf(s->arena, "{\"type\":\"%s\",\"object\":%s}\n", type, text));
        }
    }
}

static void stamp(struct server *s)
{
    char version[32];
    snprintf(version, sizeof(version), "%lld", (long long)++s->version);
    sw_json_set_string(sw_json_set_object(s->lease, "metadata"), "resourceVersion", version);
    tell(s, "MODIFIED");
}

static const struct sw_json *spec(const struct server *s)
{
    return sw_json_get(s->lease, "spec");
}

static const char *holder(const struct server *s)
{
    const char *name = s->lease ? sw_json_get_string(spec(s), "holderIdentity") : NULL;
    return name ? name : "";
}

static int64_t transitions(const struct server *s)
{
    return sw_json_get_int(spec(s), "leaseTransitions", -1);
}

/* As the API server does: exactly six decimals. */
static void check_time(const char *text)
{
    assert_non_null(text);
    assert_int_equal(strlen(text), strlen("2006-01-02T15:04:05.000000Z"));
    assert_int_equal(text[19], '.');
    assert_int_equal(text[26], 'Z');
}

static void check_lease(const struct sw_json *lease)
{
    const struct sw_json *s = sw_json_get(lease, "spec");
    const struct sw_json *who = sw_json_get(s, "holderIdentity");
    assert_string_equal(sw_json_get_string(lease, "apiVersion"), "coordination.k8s.io/v1");
    assert_string_equal(sw_json_get_string(lease, "kind"), "Lease");
    check_time(sw_json_get_string(s, "renewTime"));
    check_time(sw_json_get_string(s, "acquireTime"));
    assert_true(sw_json_get_int(s, "leaseDurationSeconds", 0) > 0);
    assert_true(sw_json_type(who) == SW_JSON_NULL || sw_json_text(who)[0]);
}

static void say(struct fake_request *r, int status)
{
    char body[128];
    snprintf(body, sizeof(body), "{\"kind\":\"Status\",\"code\":%d,\"reason\":\"R%d\"}", status,
             status);
    fake_answer(r, status, NULL, body);
}

static void disturb(struct server *s)
{
    if (s->lease) {
        sw_json_set_int(sw_json_set_object(s->lease, "metadata"), "generation", s->version);
        stamp(s);
    }
}

/* What the server does, and the status it answers. */
static int handle(struct server *s, const struct fake_request *r)
{
    struct sw_json *sent;
    bool is_get = strcmp(r->method, "GET") == 0;
    bool is_post = strcmp(r->method, "POST") == 0;
    assert_string_equal(r->target, is_post ? COLLECTION : COLLECTION "/slipway");
    if (is_get) {
        s->gets++;
        return s->lease ? 200 : 404;
    }
    assert_int_equal(sw_json_parse(s->arena, r->body, strlen(r->body), &sent, NULL), 0);
    check_lease(sent);
    const char *version = sw_json_get_string(sw_json_get(sent, "metadata"), "resourceVersion");
    if (is_post) {
        s->posts++;
        assert_null(version);
        assert_string_equal(sw_json_text(sw_json_at(sent, "metadata", "name", NULL)), "slipway");
        if (s->lease) {
            return 409;
        }
    } else {
        s->puts++;
        if (!s->lease) {
            return 404;
        }
        assert_non_null(version);
        const char *now = sw_json_text(sw_json_at(s->lease, "metadata", "resourceVersion", NULL));
        if (strcmp(version, now) != 0) {
            return 409;
        }
    }
    s->lease = sent;
    stamp(s);
    return is_post ? 201 : 200;
}

/* Of that one Lease, behind the version that was read. */
static void on_watch(struct candidate *c, struct fake_request *r)
{
    struct server *s = c->server;
    c->watches++;
    assert_string_equal(r->lane, "lease-watch");
    assert_string_equal(fake_query(r, "fieldSelector"), "metadata.name=slipway");
    assert_true(fake_query(r, "resourceVersion")[0]);
    if (!c->may_watch) {
        say(r, 403);
        return;
    }
    s->watchers[s->watchers[0] && s->watchers[0] != c] = c;
    fake_head(r, 200, NULL);
}

static void on_request(void *arg, struct fake_request *r)
{
    struct candidate *c = arg;
    struct server *s = c->server;
    if (strstr(r->target, "watch=true")) {
        on_watch(c, r);
        return;
    }
    assert_string_equal(r->lane, "lease");
    assert_true(r->may_replay);
    assert_int_equal(r->total_timeout_ms, 5000);
    switch (c->mode) {
    case MODE_DOWN:
        r->was_sent = false;
        fake_break(r, -ECONNREFUSED);
        return;
    case MODE_SILENT:
        return;
    case MODE_LOSES:
        handle(s, r);
        fake_break(r, -ECONNRESET);
        return;
    case MODE_FORBIDDEN:
        say(r, 403);
        return;
    case MODE_BROKEN:
        say(r, 500);
        return;
    case MODE_DISTURBED:
        if (strcmp(r->method, "PUT") == 0) {
            disturb(s);
        }
        break;
    case MODE_WELL:
        break;
    }
    int status = handle(s, r);
    if (status < 300) {
        fake_answer(r, status, NULL, sw_json_dump(s->lease, s->arena, NULL));
    } else {
        say(r, status);
    }
}

/* ---- candidates ---- */

static void on_lease(void *arg, bool is_leading)
{
    struct candidate *c = arg;
    assert_int_equal(sw_lease_is_held(c->lease), is_leading);
    c->changed_ms = sw_now_ms(c->loop);
    if (is_leading) {
        c->wins++;
    } else {
        c->losses++;
        sw_client_fence(c->client);
    }
    if (c->frees_itself) {
        c->lease = sw_lease_free(c->lease);
    }
}

static void on_done(void *arg)
{
    struct candidate *c = arg;
    c->done++;
    if (c->frees_itself) {
        c->lease = sw_lease_free(c->lease);
    }
}

static void candidate_init(struct candidate *c, struct server *s, const char *identity,
                           int64_t wall_us, uint64_t seed)
{
    struct sw_lease_options options = {
        .namespace_ = "kube-system", .name = "slipway", .identity = identity};
    memset(c, 0, sizeof(*c));
    c->server = s;
    c->loop = sw_loop_virtual_new(wall_us, seed);
    c->transport = fake_transport_new(c->loop);
    c->transport->on_request = on_request;
    c->transport->arg = c;
    c->metrics = sw_metrics_new();
    fake_log_init(&c->log, c->loop);
    c->client = sw_client_new(c->loop, &c->transport->base, NULL, c->metrics, &c->log.log);
    c->lease = sw_lease_new(c->loop, c->client, &options, c->metrics, &c->log.log, on_lease, c);
}

static void candidate_done(struct candidate *c)
{
    sw_lease_free(c->lease);
    sw_client_free(c->client);
    fake_transport_free(c->transport);
    sw_metrics_free(c->metrics);
    fake_log_done(&c->log);
    assert_int_equal(sw_loop_close(c->loop), 0);
}

/* Requests that nobody answers end at their deadline, as the transport ends them. */
static void expire(struct candidate *c)
{
    struct fake_request *r =
        fake_find(c->transport, c->may_watch ? COLLECTION "/slipway" : COLLECTION);
    if (r && sw_now_ms(c->loop) - r->sent_ms >= r->total_timeout_ms) {
        fake_break(r, -ETIMEDOUT);
    }
}

static bool leads(const struct candidate *c)
{
    return sw_lease_is_held(c->lease);
}

/* Both clocks move on together; never do two lead. */
static void run(struct candidate *a, struct candidate *b, uint64_t ms)
{
    for (uint64_t i = 0; i < ms; i += 100) {
        sw_loop_virtual_advance(a->loop, 100);
        expire(a);
        if (b) {
            sw_loop_virtual_advance(b->loop, 100);
            expire(b);
            assert_false(leads(a) && leads(b));
        }
    }
}

/* ---- alone ---- */

TEST(the_first_one_creates_the_lease_and_leads)
{
    struct server s;
    struct candidate a;
    server_init(&s);
    candidate_init(&a, &s, "a_1", START_US, 1);
    assert_int_equal(a.wins, 0); /* not from within the constructor */
    run(&a, NULL, 100);
    assert_int_equal(a.wins, 1);
    assert_true(leads(&a));
    assert_string_equal(holder(&s), "a_1");
    assert_int_equal(transitions(&s), 0);
    assert_int_equal(sw_json_get_int(spec(&s), "leaseDurationSeconds", 0), 15);
    char before[64];
    snprintf(before, sizeof(before), "%s", sw_json_get_string(spec(&s), "acquireTime"));
    run(&a, NULL, 60000);
    assert_int_equal(a.wins, 1);
    assert_int_equal(a.losses, 0);
    assert_in_range(s.puts, 29, 30); /* every two seconds */
    assert_int_equal(s.gets, 1);
    assert_string_equal(sw_json_get_string(spec(&s), "acquireTime"), before);
    assert_string_not_equal(sw_json_get_string(spec(&s), "renewTime"), before);
    candidate_done(&a);
    server_done(&s);
}

TEST(what_others_wrote_into_the_lease_stays)
{
    struct server s;
    struct candidate a;
    server_init(&s);
    static const char text[] =
        "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\","
        "\"metadata\":{\"name\":\"slipway\",\"labels\":{\"a\":\"b\"}},"
        "\"spec\":{\"leaseTransitions\":4,\"strategy\":\"OldestEmulation\"}}";
    assert_int_equal(sw_json_parse(s.arena, text, strlen(text), &s.lease, NULL), 0);
    stamp(&s);
    candidate_init(&a, &s, "a_1", START_US, 1);
    run(&a, NULL, 10000);
    assert_true(leads(&a));
    assert_string_equal(sw_json_text(sw_json_at(s.lease, "metadata", "labels", "a", NULL)), "b");
    assert_string_equal(sw_json_get_string(spec(&s), "strategy"), "OldestEmulation");
    assert_int_equal(transitions(&s), 5);
    assert_int_equal(sw_lease_transitions(a.lease), 5);
    candidate_done(&a);
    server_done(&s);
}

TEST(a_leader_without_a_server_stops_at_its_deadline)
{
    static const enum mode modes[] = {MODE_DOWN, MODE_SILENT, MODE_BROKEN, MODE_FORBIDDEN};
    for (size_t i = 0; i < SW_ARRAY_SIZE(modes); i++) {
        struct server s;
        struct candidate a;
        server_init(&s);
        candidate_init(&a, &s, "a_1", START_US, i);
        run(&a, NULL, 9000);
        uint64_t renewed_ms = a.transport->requests[a.transport->count - 1]->sent_ms;
        a.mode = modes[i];
        run(&a, NULL, 20000);
        assert_int_equal(a.losses, 1);
        assert_int_equal(a.changed_ms, renewed_ms + 10000);
        assert_true(fake_log_has(&a.log, "leadership lost"));
        a.mode = MODE_WELL;
        run(&a, NULL, 11000);
        assert_int_equal(a.wins, 2); /* nobody else took it */
        assert_true(leads(&a));
        assert_int_equal(transitions(&s), 0);
        candidate_done(&a);
        server_done(&s);
    }
}

TEST(short_outages_are_bridged)
{
    struct server s;
    struct candidate a;
    server_init(&s);
    candidate_init(&a, &s, "a_1", START_US, 1);
    run(&a, NULL, 5000);
    for (int i = 0; i < 10; i++) {
        a.mode = i % 2 ? MODE_DOWN : MODE_BROKEN;
        run(&a, NULL, 5500);
        a.mode = MODE_WELL;
        run(&a, NULL, 4000);
    }
    assert_int_equal(a.losses, 0);
    assert_int_equal(fake_log_count(&a.log, "lease request failed, trying on"), 10);
    assert_int_equal(fake_log_count(&a.log, "lease can be written again"), 10);
    assert_false(fake_log_has(&a.log, "answered with an error")); /* one line, not two */
    candidate_done(&a);
    server_done(&s);
}

TEST(lost_answers_do_not_lose_the_lease)
{
    struct server s;
    struct candidate a;
    server_init(&s);
    candidate_init(&a, &s, "a_1", START_US, 1);
    a.mode = MODE_LOSES; /* the creation included */
    run(&a, NULL, 3000);
    a.mode = MODE_WELL;
    run(&a, NULL, 5000);
    assert_true(leads(&a));
    assert_int_equal(transitions(&s), 0);
    for (int i = 0; i < 5; i++) {
        a.mode = MODE_LOSES;
        run(&a, NULL, 5000);
        a.mode = MODE_WELL;
        run(&a, NULL, 5000);
    }
    assert_int_equal(a.losses, 0);
    assert_int_equal(transitions(&s), 0);
    candidate_done(&a);
    server_done(&s);
}

TEST(a_conflict_at_each_renewal_is_survived)
{
    struct server s;
    struct candidate a;
    server_init(&s);
    candidate_init(&a, &s, "a_1", START_US, 1);
    run(&a, NULL, 1000);
    int64_t before = s.version;
    /* Somebody writes right before each first try, and leaves the second alone. */
    for (int i = 0; i < 20; i++) {
        disturb(&s);
        run(&a, NULL, 2000);
    }
    assert_int_equal(a.losses, 0);
    assert_in_range(s.version - before, 38, 42);
    /* Before each and every try: then it cannot be renewed. */
    a.mode = MODE_DISTURBED;
    run(&a, NULL, 15000);
    assert_int_equal(a.losses, 1);
    a.mode = MODE_WELL;
    run(&a, NULL, 15000);
    assert_true(leads(&a));
    candidate_done(&a);
    server_done(&s);
}

TEST(a_deleted_lease_is_made_again)
{
    struct server s;
    struct candidate a;
    struct candidate b;
    server_init(&s);
    candidate_init(&a, &s, "a_1", START_US, 1);
    candidate_init(&b, &s, "b_1", START_US, 2);
    run(&a, &b, 5000);
    struct candidate *leader = leads(&a) ? &a : &b;
    for (int i = 0; i < 5; i++) {
        s.lease = NULL;
        run(&a, &b, 7000);
        assert_non_null(s.lease);
        assert_true(leads(leader));
    }
    assert_int_equal(a.losses + b.losses, 0);
    /* Deleted, and the leader is cut off: the other one waits until it has stopped. */
    leader->mode = MODE_SILENT;
    s.lease = NULL;
    run(&a, &b, 30000);
    assert_int_equal(leader->losses, 1);
    assert_false(leads(leader));
    assert_true(leads(leader == &a ? &b : &a));
    assert_int_equal(transitions(&s), 1);
    candidate_done(&a);
    candidate_done(&b);
    server_done(&s);
}

TEST(an_emptied_lease_is_filled_again)
{
    struct server s;
    struct candidate a;
    server_init(&s);
    candidate_init(&a, &s, "a_1", START_US, 1);
    run(&a, NULL, 5000);
    sw_json_set(s.lease, "spec", sw_json_object(s.arena));
    stamp(&s);
    run(&a, NULL, 5000);
    assert_true(leads(&a));
    assert_int_equal(a.losses, 0);
    assert_string_equal(holder(&s), "a_1");
    assert_int_equal(transitions(&s), 1);
    candidate_done(&a);
    server_done(&s);
}

TEST(a_foreign_holder_is_respected_until_it_is_silent)
{
    struct server s;
    struct candidate a;
    server_init(&s);
    static const char text[] =
        "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{},"
        "\"spec\":{\"holderIdentity\":\"somebody\",\"leaseDurationSeconds\":40,"
        "\"renewTime\":\"1999-01-01T00:00:00.000000Z\",\"leaseTransitions\":2}}";
    assert_int_equal(sw_json_parse(s.arena, text, strlen(text), &s.lease, NULL), 0);
    stamp(&s);
    candidate_init(&a, &s, "a_1", START_US, 1);
    run(&a, NULL, 39900); /* its renewTime is of another century, its silence is not */
    assert_int_equal(a.wins, 0);
    sw_json_set_string(sw_json_set_object(s.lease, "spec"), "renewTime",
                       "1999-01-01T00:00:01.000000Z");
    stamp(&s);
    run(&a, NULL, 35000);
    assert_int_equal(a.wins, 0);
    assert_true(fake_log_has(&a.log, "holder=somebody"));
    run(&a, NULL, 15000);
    assert_int_equal(a.wins, 1);
    assert_int_equal(transitions(&s), 3);
    candidate_done(&a);
    server_done(&s);
}

TEST(what_nobody_can_have_meant_is_not_waited_for)
{
    static const char *const seconds[] = {"0", "-5", "601", "2147483647", "\"a while\""};
    for (size_t i = 0; i < SW_ARRAY_SIZE(seconds); i++) {
        struct server s;
        struct candidate a;
        server_init(&s);
        const char *text = sw_arena_printf(
            s.arena,
            "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{},"
            "\"spec\":{\"holderIdentity\":\"nobody\",\"leaseDurationSeconds\":%s,"
            "\"renewTime\":\"2099-01-01T00:00:00.000000Z\",\"leaseTransitions\":2147483647}}",
            seconds[i]);
        assert_int_equal(sw_json_parse(s.arena, text, strlen(text), &s.lease, NULL), 0);
        stamp(&s);
        candidate_init(&a, &s, "a_1", START_US, 1);
        run(&a, NULL, 14900);
        assert_int_equal(a.wins, 0);
        run(&a, NULL, 1000);
        assert_int_equal(a.wins, 1);
        assert_int_equal(transitions(&s), 1); /* no int32 is larger than that which was there */
        assert_int_equal(sw_lease_transitions(a.lease), 1);
        assert_int_equal(sw_json_get_int(spec(&s), "leaseDurationSeconds", 0), 15);
        candidate_done(&a);
        server_done(&s);
    }
}

TEST(a_lease_taken_by_somebody_else_is_lost_at_once)
{
    struct server s;
    struct candidate a;
    server_init(&s);
    candidate_init(&a, &s, "a_1", START_US, 1);
    run(&a, NULL, 5000);
    sw_json_set_string(sw_json_set_object(s.lease, "spec"), "holderIdentity", "kubectl");
    stamp(&s);
    run(&a, NULL, 2100);
    assert_int_equal(a.losses, 1);
    assert_true(fake_log_has(&a.log, "somebody else has taken the lease"));
    run(&a, NULL, 20000);
    assert_true(leads(&a));
    assert_int_equal(transitions(&s), 1);
    candidate_done(&a);
    server_done(&s);
}

TEST(nonsense_is_no_lease)
{
    struct server s;
    struct candidate a;
    server_init(&s);
    candidate_init(&a, &s, "a_1", START_US, 1);
    a.transport->on_request = NULL;
    static const char *const answers[] = {"<html>", "{}", "[]", "", "{\"metadata\":{}}"};
    for (size_t i = 0; i < SW_ARRAY_SIZE(answers); i++) {
        sw_loop_virtual_advance(a.loop, 5000);
        fake_answer(fake_the(a.transport, COLLECTION), 200, NULL, answers[i]);
        assert_int_equal(a.wins, 0);
    }
    assert_true(fake_log_has(&a.log, "lease is unreadable"));
    a.transport->on_request = on_request;
    run(&a, NULL, 5000);
    assert_true(leads(&a));
    candidate_done(&a);
    server_done(&s);
}

/* ---- two ---- */

TEST(clocks_may_differ_by_hours)
{
    struct server s;
    struct candidate a;
    struct candidate b;
    server_init(&s);
    candidate_init(&a, &s, "a_1", START_US, 1);
    candidate_init(&b, &s, "b_1", START_US - INT64_C(3600000000), 2);
    run(&a, &b, 60000);
    assert_int_equal(a.wins + b.wins, 1);
    assert_int_equal(a.losses + b.losses, 0);
    sw_loop_virtual_shift_wall(a.loop, -INT64_C(7200000000));
    sw_loop_virtual_shift_wall(b.loop, INT64_C(7200000000));
    run(&a, &b, 60000);
    assert_int_equal(a.wins + b.wins, 1);
    assert_int_equal(a.losses + b.losses, 0);
    struct candidate *leader = leads(&a) ? &a : &b;
    struct candidate *other = leads(&a) ? &b : &a;
    leader->mode = MODE_DOWN;
    run(&a, &b, 25000);
    assert_false(leads(leader));
    assert_true(leads(other));
    leader->mode = MODE_WELL;
    run(&a, &b, 60000);
    assert_true(leads(other));
    assert_int_equal(transitions(&s), 1);
    candidate_done(&a);
    candidate_done(&b);
    server_done(&s);
}

TEST(a_suspended_leader_knows_at_once_that_it_does_not_lead)
{
    struct server s;
    struct candidate a;
    struct candidate b;
    server_init(&s);
    candidate_init(&a, &s, "a_1", START_US, 1);
    run(&a, NULL, 3000);
    candidate_init(&b, &s, "b_1", START_US, 2);
    run(&a, &b, 10000);
    assert_true(leads(&a));
    run(&b, NULL, 20000); /* a stands still */
    assert_true(leads(&b));
    sw_loop_virtual_stall(a.loop, 20000);
    assert_false(leads(&a)); /* before any of its timers */
    assert_int_equal(a.losses, 0);
    run(&a, &b, 100);
    assert_int_equal(a.losses, 1);
    run(&a, &b, 60000);
    assert_int_equal(a.wins, 1);
    assert_true(leads(&b));
    candidate_done(&a);
    candidate_done(&b);
    server_done(&s);
}

TEST(a_renewal_that_was_on_its_way_during_a_stall_is_worth_what_is_left)
{
    struct server s;
    struct candidate a;
    server_init(&s);
    candidate_init(&a, &s, "a_1", START_US, 1);
    run(&a, NULL, 1000);
    a.transport->on_request = NULL;
    sw_loop_virtual_advance(a.loop, 1500);
    struct fake_request *r = fake_the(a.transport, COLLECTION);
    sw_loop_virtual_stall(a.loop, 12000);
    /* The answer is read before the timers run. */
    on_request(&a, r);
    assert_false(leads(&a));
    assert_int_equal(a.losses, 1);
    a.transport->on_request = on_request;
    run(&a, NULL, 10000);
    assert_true(leads(&a));
    assert_int_equal(transitions(&s), 0);
    candidate_done(&a);
    server_done(&s);
}

/* The machine of a sleeps, b goes on. */
static void run_suspended(struct candidate *a, struct candidate *b, uint64_t ms)
{
    for (uint64_t i = 0; i < ms; i += 100) {
        sw_loop_virtual_suspend(a->loop, 100);
        sw_loop_virtual_advance(b->loop, 100);
        assert_false(leads(a) && leads(b));
    }
}

TEST(a_leader_whose_machine_was_suspended_begins_anew)
{
    struct server s;
    struct candidate a;
    server_init(&s);
    candidate_init(&a, &s, "a_1", START_US, 1);
    run(&a, NULL, 5000);
    unsigned puts = s.puts;
    sw_loop_virtual_suspend(a.loop, 10000);
    assert_false(leads(&a)); /* before any of its timers, none of which is due */
    assert_int_equal(a.losses, 0);
    while (a.losses == 0) {
        assert_true(sw_loop_virtual_step(a.loop));
        assert_int_equal(s.puts, puts); /* no renewal hides that it was away */
    }
    run(&a, NULL, 10000);
    assert_int_equal(a.wins, 2);
    assert_true(leads(&a));
    assert_int_equal(transitions(&s), 0); /* nobody else led */
    candidate_done(&a);
    server_done(&s);
}

TEST(a_leader_whose_machine_is_suspended_is_succeeded)
{
    struct server s;
    struct candidate a;
    struct candidate b;
    server_init(&s);
    candidate_init(&a, &s, "a_1", START_US, 1);
    run(&a, NULL, 3000);
    candidate_init(&b, &s, "b_1", START_US, 2);
    run(&a, &b, 10000);
    run_suspended(&a, &b, 20000);
    assert_true(leads(&b));
    run(&a, &b, 60000);
    assert_int_equal(a.losses, 1);
    assert_int_equal(a.wins, 1);
    assert_true(leads(&b));
    assert_int_equal(transitions(&s), 1);
    candidate_done(&a);
    candidate_done(&b);
    server_done(&s);
}

TEST(an_answer_to_a_suspended_machine_does_not_hide_the_gap)
{
    struct server s;
    struct candidate a;
    server_init(&s);
    candidate_init(&a, &s, "a_1", START_US, 1);
    run(&a, NULL, 1000);
    a.transport->on_request = NULL;
    disturb(&s);
    sw_loop_virtual_advance(a.loop, 1500);
    on_request(&a, fake_the(a.transport, COLLECTION)); /* 409: it reads */
    struct fake_request *r = fake_the(a.transport, COLLECTION);
    assert_string_equal(r->method, "GET");
    sw_loop_virtual_suspend(a.loop, 20000);
    on_request(&a, r);
    assert_int_equal(a.losses, 0);
    r = fake_the(a.transport, COLLECTION);
    assert_string_equal(r->method, "PUT");
    on_request(&a, r); /* it succeeds, and is recent */
    assert_int_equal(a.losses, 1);
    assert_false(leads(&a));
    a.transport->on_request = on_request;
    run(&a, NULL, 10000);
    assert_int_equal(a.wins, 2);
    assert_int_equal(transitions(&s), 0);
    candidate_done(&a);
    server_done(&s);
}

TEST(a_follower_whose_machine_was_suspended_takes_nothing)
{
    struct server s;
    struct candidate a;
    struct candidate b;
    server_init(&s);
    candidate_init(&a, &s, "a_1", START_US, 1);
    run(&a, NULL, 3000);
    candidate_init(&b, &s, "b_1", START_US, 2);
    run(&a, &b, 10000);
    run_suspended(&b, &a, 100000);
    run(&a, &b, 60000);
    assert_int_equal(b.wins, 0);
    assert_int_equal(a.losses, 0);
    assert_true(leads(&a));
    candidate_done(&a);
    candidate_done(&b);
    server_done(&s);
}

TEST(twenty_random_outages_never_make_two_leaders)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct server s;
        struct candidate a;
        struct candidate b;
        server_init(&s);
        candidate_init(&a, &s, "a_1", START_US, seed);
        candidate_init(&b, &s, "b_1", START_US + INT64_C(999000000), seed + 100);
        struct sw_loop *dice = sw_loop_virtual_new(0, seed);
        for (int i = 0; i < 40; i++) {
            a.mode = (enum mode)sw_random_between(dice, 0, MODE_BROKEN);
            b.mode = (enum mode)sw_random_between(dice, 0, MODE_BROKEN);
            run(&a, &b, sw_random_between(dice, 0, 200) * 100);
            a.mode = sw_random_between(dice, 0, 1) ? MODE_WELL : a.mode;
            b.mode = sw_random_between(dice, 0, 1) ? MODE_WELL : b.mode;
            run(&a, &b, sw_random_between(dice, 0, 200) * 100);
        }
        a.mode = b.mode = MODE_WELL;
        run(&a, &b, 60000);
        assert_true(leads(&a) || leads(&b));
        assert_int_equal(sw_loop_close(dice), 0);
        candidate_done(&a);
        candidate_done(&b);
        server_done(&s);
    }
}

/* ---- release ---- */

TEST(a_released_lease_is_free_at_once)
{
    struct server s;
    struct candidate a;
    struct candidate b;
    server_init(&s);
    candidate_init(&a, &s, "a_1", START_US, 1);
    run(&a, NULL, 1000);
    candidate_init(&b, &s, "b_1", START_US, 2);
    run(&a, &b, 10000);
    assert_true(leads(&a));
    sw_lease_release(a.lease, on_done, &a);
    assert_false(leads(&a));
    assert_int_equal(a.done, 0);
    sw_loop_virtual_advance(a.loop, 0);
    assert_int_equal(a.done, 1);
    assert_int_equal(a.losses, 0);
    assert_string_equal(holder(&s), "");
    assert_int_equal(sw_json_get_int(spec(&s), "leaseDurationSeconds", 0), 1);
    run(&a, &b, 5000);
    assert_true(leads(&b));
    assert_int_equal(transitions(&s), 1);
    assert_int_equal(a.done, 1);
    candidate_done(&a);
    candidate_done(&b);
    server_done(&s);
}

TEST(a_follower_releases_nothing)
{
    struct server s;
    struct candidate a;
    struct candidate b;
    server_init(&s);
    candidate_init(&a, &s, "a_1", START_US, 1);
    run(&a, NULL, 1000);
    candidate_init(&b, &s, "b_1", START_US, 2);
    run(&a, &b, 3000);
    sw_lease_release(b.lease, on_done, &b);
    assert_int_equal(b.done, 0);
    sw_loop_virtual_advance(b.loop, 0);
    assert_int_equal(b.done, 1);
    run(&a, &b, 30000);
    assert_true(leads(&a));
    assert_int_equal(b.wins, 0);
    candidate_done(&a);
    candidate_done(&b);
    server_done(&s);
}

TEST(a_release_during_a_renewal_waits_for_it)
{
    struct server s;
    struct candidate a;
    server_init(&s);
    candidate_init(&a, &s, "a_1", START_US, 1);
    run(&a, NULL, 1000);
    a.transport->on_request = NULL;
    sw_loop_virtual_advance(a.loop, 1500);
    struct fake_request *r = fake_the(a.transport, COLLECTION);
    sw_lease_release(a.lease, on_done, &a);
    sw_loop_virtual_advance(a.loop, 1000);
    assert_int_equal(a.done, 0);
    a.transport->on_request = on_request;
    on_request(&a, r);
    sw_loop_virtual_advance(a.loop, 0);
    assert_int_equal(a.done, 1);
    assert_string_equal(holder(&s), "");
    candidate_done(&a);
    server_done(&s);
}

TEST(a_release_survives_conflicts_and_lost_answers)
{
    static const enum mode modes[] = {MODE_DISTURBED, MODE_LOSES, MODE_BROKEN, MODE_SILENT,
                                      MODE_DOWN};
    for (size_t i = 0; i < SW_ARRAY_SIZE(modes); i++) {
        struct server s;
        struct candidate a;
        server_init(&s);
        candidate_init(&a, &s, "a_1", START_US, 1);
        run(&a, NULL, 1000);
        a.mode = modes[i];
        a.frees_itself = true;
        uint64_t began_ms = sw_now_ms(a.loop);
        sw_lease_release(a.lease, on_done, &a);
        while (!a.done) {
            sw_loop_virtual_advance(a.loop, 100);
            assert_true(sw_now_ms(a.loop) - began_ms <= 5100);
        }
        assert_null(a.lease);
        if (a.mode == MODE_LOSES) {
            assert_string_equal(holder(&s), "");
        }
        candidate_done(&a);
        server_done(&s);
    }
}

TEST(a_lost_answer_to_the_release_is_looked_after)
{
    struct server s;
    struct candidate a;
    server_init(&s);
    candidate_init(&a, &s, "a_1", START_US, 1);
    run(&a, NULL, 1000);
    disturb(&s); /* the first try meets a conflict */
    sw_lease_release(a.lease, on_done, &a);
    sw_loop_virtual_advance(a.loop, 0);
    assert_int_equal(a.done, 1);
    assert_string_equal(holder(&s), "");
    candidate_done(&a);
    server_done(&s);
}

/* ---- followers that watch ---- */

/* a leads, b follows; both may watch. */
static void pair_init(struct candidate *a, struct candidate *b, struct server *s)
{
    server_init(s);
    candidate_init(a, s, "a_1", START_US, 1);
    a->may_watch = true;
    run(a, NULL, 1000);
    candidate_init(b, s, "b_1", START_US, 2);
    b->may_watch = true;
    run(a, b, 10000);
    assert_true(leads(a));
    assert_int_equal(a->watches, 0);
    assert_int_equal(b->watches, 1);
}

static void pair_done(struct candidate *a, struct candidate *b, struct server *s)
{
    candidate_done(a);
    candidate_done(b);
    server_done(s);
}

TEST(a_follower_that_watches_takes_a_released_lease_at_once)
{
    struct server s;
    struct candidate a, b;
    pair_init(&a, &b, &s);
    sw_lease_release(a.lease, on_done, &a);
    sw_loop_virtual_advance(a.loop, 0);
    assert_string_equal(holder(&s), "");
    run(&a, &b, 200);
    assert_true(leads(&b));
    assert_null(fake_find(b.transport, "watch=true")); /* it need not hear of itself */
    pair_done(&a, &b, &s);
}

TEST(a_follower_that_watches_takes_a_deleted_lease_when_its_holder_must_have_stopped)
{
    struct server s;
    struct candidate a, b;
    pair_init(&a, &b, &s);
    a.mode = MODE_DOWN;
    tell(&s, "DELETED");
    s.lease = NULL;
    run(&a, &b, 9000);
    assert_int_equal(b.wins, 0);
    run(&a, &b, 6500);
    assert_int_equal(b.wins, 1);
    pair_done(&a, &b, &s);
}

TEST(a_dead_leader_is_succeeded_when_its_time_is_over_and_not_later)
{
    struct server s;
    struct candidate a, b;
    pair_init(&a, &b, &s);
    unsigned puts = s.puts;
    while (s.puts == puts) {
        run(&a, &b, 100);
    }
    a.mode = MODE_DOWN;
    run(&a, &b, 14800);
    assert_int_equal(b.wins, 0);
    run(&a, &b, 500);
    assert_true(leads(&b));
    pair_done(&a, &b, &s);
}

TEST(a_watch_that_ends_is_opened_again_and_one_that_is_forbidden_is_left_alone)
{
    struct server s;
    struct candidate a, b;
    pair_init(&a, &b, &s);
    fake_end(fake_the(b.transport, "watch=true"), -ECONNRESET);
    run(&a, &b, 5000);
    assert_int_equal(b.watches, 2);
    assert_non_null(fake_find(b.transport, "watch=true"));
    b.may_watch = false;
    fake_end(fake_the(b.transport, "watch=true"), 0);
    run(&a, &b, 200000);
    assert_int_equal(b.watches, 3);
    b.may_watch = true;
    run(&a, &b, 200000);
    assert_int_equal(b.watches, 4);
    assert_int_equal(a.losses + b.wins, 0);
    pair_done(&a, &b, &s);
}

TEST(who_changes_the_lease_all_the_time_makes_nobody_read_it_all_the_time)
{
    struct server s;
    struct candidate a, b;
    pair_init(&a, &b, &s);
    unsigned gets = s.gets;
    for (int i = 0; i < 1000; i++) {
        stamp(&s);
        sw_loop_virtual_advance(b.loop, 10);
    }
    assert_in_range(s.gets - gets, 50, 101);
    pair_done(&a, &b, &s);
}

/* ---- life ---- */

TEST(the_lease_may_be_freed_when_it_is_won_or_lost)
{
    for (int at_loss = 0; at_loss < 2; at_loss++) {
        struct server s;
        struct candidate a;
        server_init(&s);
        candidate_init(&a, &s, "a_1", START_US, 1);
        a.frees_itself = !at_loss;
        run(&a, NULL, at_loss ? 5000 : 0);
        if (at_loss) {
            a.frees_itself = true;
            a.mode = MODE_DOWN;
        }
        sw_loop_virtual_advance(a.loop, 20000);
        assert_int_equal(a.wins, 1);
        assert_int_equal(a.losses, at_loss);
        assert_null(a.lease);
        candidate_done(&a);
        server_done(&s);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("lease", the_first_one_creates_the_lease_and_leads),
        CASE("lease", what_others_wrote_into_the_lease_stays),
        CASE("lease", a_leader_without_a_server_stops_at_its_deadline),
        CASE("lease", short_outages_are_bridged),
        CASE("lease", lost_answers_do_not_lose_the_lease),
        CASE("lease", a_conflict_at_each_renewal_is_survived),
        CASE("lease", a_deleted_lease_is_made_again),
        CASE("lease", an_emptied_lease_is_filled_again),
        CASE("lease", a_foreign_holder_is_respected_until_it_is_silent),
        CASE("lease", what_nobody_can_have_meant_is_not_waited_for),
        CASE("lease", a_lease_taken_by_somebody_else_is_lost_at_once),
        CASE("lease", nonsense_is_no_lease),
        CASE("lease", clocks_may_differ_by_hours),
        CASE("lease", a_suspended_leader_knows_at_once_that_it_does_not_lead),
        CASE("lease", a_renewal_that_was_on_its_way_during_a_stall_is_worth_what_is_left),
        CASE("lease", a_leader_whose_machine_was_suspended_begins_anew),
        CASE("lease", a_leader_whose_machine_is_suspended_is_succeeded),
        CASE("lease", an_answer_to_a_suspended_machine_does_not_hide_the_gap),
        CASE("lease", a_follower_whose_machine_was_suspended_takes_nothing),
        CASE("lease", twenty_random_outages_never_make_two_leaders),
        CASE("lease", a_released_lease_is_free_at_once),
        CASE("lease", a_follower_releases_nothing),
        CASE("lease", a_release_during_a_renewal_waits_for_it),
        CASE("lease", a_release_survives_conflicts_and_lost_answers),
        CASE("lease", a_lost_answer_to_the_release_is_looked_after),
        CASE("lease", a_follower_that_watches_takes_a_released_lease_at_once),
        CASE("lease",
             a_follower_that_watches_takes_a_deleted_lease_when_its_holder_must_have_stopped),
        CASE("lease", a_dead_leader_is_succeeded_when_its_time_is_over_and_not_later),
        CASE("lease", a_watch_that_ends_is_opened_again_and_one_that_is_forbidden_is_left_alone),
        CASE("lease", who_changes_the_lease_all_the_time_makes_nobody_read_it_all_the_time),
        CASE("lease", the_lease_may_be_freed_when_it_is_won_or_lost),
    };
    return RUN(tests);
}
