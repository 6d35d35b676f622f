/* SPDX-License-Identifier: Apache-2.0 */
/* The transport in memory: what arrives, what does not, and what its client is told. */
#include "direct.h"

#include <errno.h>

#include "api.h"
#include "base/error.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/util.h"
#include "cache.h"
#include "kube/transport.h"
#include "store.h"
#include "test.h"

#define MAPS "/api/v1/namespaces/default/configmaps"

struct scene {
    struct sw_loop *server, *client;
    struct sw_sim_store *store;
    struct sw_sim_api *api;
    struct sw_sim_wire *wire;
    struct sw_transport *transport;
};

struct exchange {
    struct scene *scene;
    void *exchange;
    int status, ends, code;
    uint64_t ended_ms;
    char body[8192];
    size_t len;
};

static void scene_init(struct scene *s, const struct sw_sim_wire_faults *faults)
{
    static const struct sw_log quiet;
    s->server = sw_loop_virtual_new(0, 1);
    s->client = sw_loop_virtual_new(0, 2);
    s->store = sw_sim_store_new(1, 100);
    s->api = sw_sim_api_new(s->server, s->store, &(struct sw_sim_api_options){0}, &quiet);
    s->wire = sw_sim_wire_new(s->server, s->api, 3);
    sw_sim_wire_set_faults(s->wire, faults);
    s->transport = sw_sim_wire_open(s->wire, s->client, "jane", "test");
}

static void close_client(struct scene *s)
{
    if (s->transport) {
        s->transport->ops->close(s->transport);
        s->transport = NULL;
    }
}

static void scene_done(struct scene *s)
{
    close_client(s);
    sw_loop_virtual_advance(s->server, 1000);
    sw_sim_wire_free(s->wire);
    sw_sim_api_free(s->api);
    sw_sim_store_free(s->store);
    assert_int_equal(sw_loop_close(s->client), 0);
    assert_int_equal(sw_loop_close(s->server), 0);
}

/* Both clocks, millisecond by millisecond. */
static void pass(struct scene *s, uint64_t ms)
{
    for (uint64_t i = 0; i < ms; i++) {
        sw_loop_virtual_advance(s->server, 1);
        sw_loop_virtual_advance(s->client, 1);
    }
}

static void on_head(void *arg, const struct sw_http_head *head)
{
    ((struct exchange *)arg)->status = head->status;
}

static void on_body(void *arg, const char *bytes, size_t len)
{
    struct exchange *e = arg;
    assert_true(e->len + len < sizeof(e->body));
    memcpy(e->body + e->len, bytes, len);
    e->len += len;
}

static void on_end(void *arg, int code, const struct sw_error *error)
{
    struct exchange *e = arg;
    assert_true(!code == !error);
    e->ends++;
    e->code = code;
    e->ended_ms = sw_now_ms(e->scene->client);
}

static void send(struct scene *s, struct exchange *e, const char *method, const char *target,
                 const char *body)
{
    static const struct sw_http_exchange_events events = {on_head, on_body, on_end};
    struct sw_http_field json = {"Content-Type", "application/json"};
    const struct sw_http_request request = {
        .method = method,
        .target = target,
        .fields = &json,
        .field_count = body ? 1 : 0,
        .body = body,
        .body_len = body ? strlen(body) : 0,
        .head_timeout_ms = 500,
        .silence_timeout_ms = 5000,
    };
    *e = (struct exchange){.scene = s};
    assert_int_equal(s->transport->ops->send(s->transport, &request, &events, e, &e->exchange), 0);
}

static const char map_a[] =
    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"}}";

static bool is_stored(struct scene *s)
{
    return sw_sim_store_get(s->store, sw_sim_api_kind(s->api, "", "v1", "configmaps"), "default",
                            "a") != NULL;
}

TEST(carries_a_request_and_its_answer)
{
    struct scene s;
    struct exchange e;
    scene_init(&s, &(struct sw_sim_wire_faults){.delay_min_ms = 10, .delay_max_ms = 10});
    uint64_t began = sw_now_ms(s.client);
    send(&s, &e, "POST", MAPS, map_a);
    pass(&s, 9);
    assert_false(is_stored(&s));
    pass(&s, 2);
    assert_true(is_stored(&s));
    assert_int_equal(e.ends, 0);
    pass(&s, 20);
    assert_int_equal(e.ends, 1);
    assert_int_equal(e.code, 0);
    assert_int_equal(e.status, 201);
    assert_non_null(strstr(e.body, "\"name\":\"a\""));
    assert_in_range(e.ended_ms, began + 19, began + 22);
    assert_int_equal(sw_sim_wire_counts(s.wire).requests, 1);
    scene_done(&s);
}

TEST(loses_requests_and_answers)
{
    struct scene s;
    struct exchange e;
    for (int i = 0; i < 20; i++) {
        bool is_answer = i % 2;
        scene_init(&s, &(struct sw_sim_wire_faults){.lose_request = is_answer ? 0 : 10000,
                                                    .lose_answer = is_answer ? 10000 : 0});
        send(&s, &e, "POST", MAPS, map_a);
        pass(&s, 501);
        assert_int_equal(is_stored(&s), is_answer);
        assert_int_equal(e.ends, 1);
        assert_true(e.code == -ETIMEDOUT || e.code == -ECONNRESET);
        assert_int_equal(sw_sim_wire_counts(s.wire).lost_answers, is_answer);
        assert_int_equal(sw_sim_wire_counts(s.wire).lost_requests, !is_answer);
        scene_done(&s);
    }
}

TEST(delivers_late_packets_of_the_dead_where_it_is_told_to)
{
    struct scene s;
    struct exchange e;
    for (int is_on = 0; is_on < 2; is_on++) {
        scene_init(&s, &(struct sw_sim_wire_faults){.delay_min_ms = 10, .delay_max_ms = 10});
        sw_sim_wire_set_late_packets(s.wire, is_on);
        send(&s, &e, "POST", MAPS, map_a);
        pass(&s, 5);
        close_client(&s);
        pass(&s, 50);
        assert_int_equal(is_stored(&s), is_on);
        assert_int_equal(e.ends, 0);
        scene_done(&s);
    }
}

TEST(answers_with_errors_instead)
{
    struct scene s;
    struct exchange e;
    scene_init(&s, &(struct sw_sim_wire_faults){.answer_409 = 10000});
    send(&s, &e, "POST", MAPS, map_a);
    pass(&s, 20);
    assert_int_equal(e.status, 409);
    assert_false(is_stored(&s));
    assert_non_null(strstr(e.body, "\"reason\":\"Conflict\""));
    sw_sim_wire_set_faults(s.wire, &(struct sw_sim_wire_faults){.answer_429 = 10000});
    send(&s, &e, "GET", MAPS, NULL);
    pass(&s, 20);
    assert_int_equal(e.status, 429);
    assert_int_equal(sw_sim_wire_counts(s.wire).errors, 2);
    scene_done(&s);
}

TEST(breaks_every_connection_and_makes_none_until_it_is_whole)
{
    struct scene s;
    struct exchange before, during, after;
    scene_init(&s, &(struct sw_sim_wire_faults){.delay_min_ms = 10, .delay_max_ms = 10});
    send(&s, &before, "POST", MAPS, map_a);
    pass(&s, 5);
    sw_sim_wire_set_broken(s.wire, true);
    send(&s, &during, "GET", MAPS, NULL);
    assert_false(s.transport->ops->was_sent(s.transport, during.exchange));
    pass(&s, 600);
    assert_int_equal(before.ends, 1);
    assert_int_not_equal(before.code, 0);
    assert_int_equal(during.ends, 1);
    assert_int_not_equal(during.code, 0);
    assert_false(is_stored(&s));
    sw_sim_wire_set_broken(s.wire, false);
    send(&s, &after, "POST", MAPS, map_a);
    pass(&s, 100);
    assert_int_equal(after.code, 0);
    assert_true(is_stored(&s));
    scene_done(&s);
}

TEST(cuts_watches_or_lets_them_fall_silent)
{
    struct scene s;
    struct exchange watch, create;
    for (int is_cut = 0; is_cut < 2; is_cut++) {
        scene_init(&s, &(struct sw_sim_wire_faults){0});
        send(&s, &watch, "GET", MAPS "?watch=true&resourceVersion=0", NULL);
        pass(&s, 20);
        assert_int_equal(watch.status, 200);
        sw_sim_wire_set_faults(s.wire,
                               &(struct sw_sim_wire_faults){.break_stream = is_cut ? 10000 : 0,
                                                            .freeze_stream = is_cut ? 0 : 10000});
        send(&s, &create, "POST", MAPS, map_a);
        pass(&s, 4000);
        assert_int_equal(watch.ends, is_cut);
        assert_null(strchr(watch.body, '\n'));
        pass(&s, 2000);
        assert_int_equal(watch.ends, 1);
        assert_int_equal(watch.code, is_cut ? SW_E_TRUNCATED : -ETIMEDOUT);
        scene_done(&s);
    }
}

TEST(lands_on_a_server_that_is_behind)
{
    struct scene s;
    struct exchange watch, list, create;
    scene_init(&s, &(struct sw_sim_wire_faults){.behind = 10000});
    struct sw_sim_cache *cache = sw_sim_cache_new(s.api);
    sw_sim_cache_set_lag(cache, 1000);
    sw_sim_wire_set_caches(s.wire, &cache, 1);
    send(&s, &watch, "GET", MAPS "?watch=true&resourceVersion=0", NULL);
    pass(&s, 20);
    send(&s, &create, "POST", MAPS, map_a);
    pass(&s, 20);
    send(&s, &list, "GET", MAPS "?resourceVersion=0", NULL);
    pass(&s, 20);
    assert_int_equal(create.status, 201);
    assert_int_equal(list.status, 200);
    assert_null(strstr(list.body, "\"name\":\"a\""));
    assert_null(strstr(watch.body, "\"name\":\"a\""));
    assert_int_equal(sw_sim_wire_counts(s.wire).behind, 2);
    pass(&s, 1000);
    assert_non_null(strstr(watch.body, "\"name\":\"a\""));
    close_client(&s);
    sw_sim_cache_free(cache);
    scene_done(&s);
}

TEST(lets_a_process_that_was_stopped_find_everything_afterwards)
{
    struct scene s;
    struct exchange e;
    scene_init(&s, &(struct sw_sim_wire_faults){.delay_min_ms = 2, .delay_max_ms = 2});
    send(&s, &e, "POST", MAPS, map_a);
    sw_loop_virtual_advance(s.server, 400);
    assert_true(is_stored(&s));
    assert_int_equal(e.ends, 0);
    sw_loop_virtual_stall(s.client, 400);
    sw_loop_virtual_advance(s.client, 0);
    assert_int_equal(e.ends, 1);
    assert_int_equal(e.status, 201);
    scene_done(&s);
}

static bool refuse(void *arg, struct sw_sim_wire_request *request, int *ret_status, char **ret_body)
{
    ++*(int *)arg;
    assert_string_equal(request->method, "POST");
    *ret_status = 418;
    *ret_body = sw_strdup("{}");
    return false;
}

TEST(lies_when_it_is_told_to)
{
    struct scene s;
    struct exchange e;
    int asked = 0;
    const struct sw_sim_wire_liar liar = {.on_request = refuse, .arg = &asked};
    scene_init(&s, &(struct sw_sim_wire_faults){0});
    sw_sim_wire_set_liar(s.wire, &liar);
    send(&s, &e, "POST", MAPS, map_a);
    pass(&s, 20);
    assert_int_equal(asked, 1);
    assert_int_equal(e.status, 418);
    assert_string_equal(e.body, "{}");
    assert_false(is_stored(&s));
    scene_done(&s);
}

static uint64_t postpone(void *arg, const struct sw_sim_wire_request *request)
{
    ++*(int *)arg;
    return strcmp(request->method, "POST") == 0 ? 100 : 0;
}

TEST(lets_a_chosen_request_travel_longer)
{
    struct scene s;
    struct exchange late, list;
    int asked = 0;
    const struct sw_sim_wire_liar liar = {.postpone = postpone, .arg = &asked};
    scene_init(&s, &(struct sw_sim_wire_faults){0});
    sw_sim_wire_set_liar(s.wire, &liar);
    send(&s, &late, "POST", MAPS, map_a);
    send(&s, &list, "GET", MAPS, NULL);
    pass(&s, 99);
    assert_int_equal(list.status, 200);
    assert_false(is_stored(&s));
    assert_int_equal(late.ends, 0);
    pass(&s, 10);
    assert_int_equal(late.status, 201);
    assert_int_equal(asked, 2);
    scene_done(&s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("direct", carries_a_request_and_its_answer),
        CASE("direct", loses_requests_and_answers),
        CASE("direct", delivers_late_packets_of_the_dead_where_it_is_told_to),
        CASE("direct", answers_with_errors_instead),
        CASE("direct", breaks_every_connection_and_makes_none_until_it_is_whole),
        CASE("direct", cuts_watches_or_lets_them_fall_silent),
        CASE("direct", lands_on_a_server_that_is_behind),
        CASE("direct", lets_a_process_that_was_stopped_find_everything_afterwards),
        CASE("direct", lies_when_it_is_told_to),
        CASE("direct", lets_a_chosen_request_travel_longer),
    };
    return RUN(tests);
}
