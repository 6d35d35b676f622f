/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated API server: watches, bookmarks, what is too old, and who goes away when. */
#include "api_client.h"

static struct answer *watch(struct sim *sim, const char *target)
{
    struct sw_sim_request request = request_of("GET", target, NULL);
    struct answer *answer = send_request(sim, &request);
    sw_loop_virtual_advance(sim->loop, 0);
    return answer;
}

/* "ADDED a, MODIFIED a" of what has come so far, and forgets it. */
static void check_events(struct sim *sim, struct answer *answer, const char *want)
{
    sw_loop_virtual_advance(sim->loop, 0);
    char text[512] = "";
    char *line = answer->body.bytes;
    for (char *end = strchr(line, '\n'); end; line = end + 1, end = strchr(line, '\n')) {
        json_t *event = json_loadb(line, (size_t)(end - line), 0, NULL);
        assert_non_null(event);
        const char *name = sw_sim_text_at(event, "object.metadata.name");
        size_t len = strlen(text);
        snprintf(text + len, sizeof(text) - len, "%s%s %s", len ? ", " : "",
                 sw_sim_text_at(event, "type"),
                 *name ? name : sw_sim_text_at(event, "object.metadata.resourceVersion"));
        json_decref(event);
    }
    assert_string_equal(text, want);
    sw_buf_clear(&answer->body);
}

static void check_end(struct sim *sim, struct answer *answer, bool is_whole)
{
    sw_loop_virtual_advance(sim->loop, 0);
    assert_true(answer->has_ended);
    assert_int_equal(answer->is_whole, is_whole);
    answer_free(answer);
}

static void leave(struct sim *sim, struct answer *answer)
{
    assert_false(answer->has_ended);
    sw_sim_api_cancel(sim->api, answer->call);
    answer_free(answer);
}

TEST(tells_what_is_there_and_what_happens)
{
    struct sim sim = sim_new();
    make_config_map(&sim, "a", "x"); /* 105 */
    struct answer *all = watch(&sim, CONFIG_MAPS "?watch=true");
    assert_int_equal(all->status, 200);
    check_events(&sim, all, "ADDED a");
    struct answer *later = watch(&sim, CONFIG_MAPS "?watch=1&resourceVersion=105");
    check_events(&sim, later, "");
    struct answer *one = watch(&sim, CONFIG_MAPS "/b?watch=1&resourceVersion=105");
    make_config_map(&sim, "b", "x");
    check_ask(&sim, "PATCH", CONFIG_MAPS "/a", "{\"data\":{\"k\":\"v\"}}", 200, "data.k", "v");
    check_ask(&sim, "DELETE", CONFIG_MAPS "/a", NULL, 200, "status", "Success");
    make_deployment(&sim, "other");
    check_events(&sim, all, "ADDED b, MODIFIED a, DELETED a");
    check_events(&sim, later, "ADDED b, MODIFIED a, DELETED a");
    check_events(&sim, one, "ADDED b");
    struct answer *past = watch(&sim, "/api/v1/watch/configmaps?resourceVersion=106");
    check_events(&sim, past, "MODIFIED a, DELETED a");
    leave(&sim, all);
    leave(&sim, later);
    leave(&sim, one);
    leave(&sim, past);
    sim_free(&sim);
}

TEST(objects_come_and_go_with_their_labels)
{
    struct sim sim = sim_new();
    make_config_map(&sim, "a", "x");
    struct answer *seen = watch(&sim, CONFIG_MAPS "?watch=1&labelSelector=l=x");
    struct answer *other = watch(&sim, CONFIG_MAPS "?watch=1&labelSelector=l=y");
    check_events(&sim, seen, "ADDED a");
    check_events(&sim, other, "");
    check_ask(&sim, "PATCH", CONFIG_MAPS "/a", "{\"metadata\":{\"labels\":{\"l\":\"y\"}}}", 200,
              "metadata.labels.l", "y");
    assert_non_null(strstr(seen->body.bytes, "\"resourceVersion\":\"106\""));
    assert_non_null(strstr(seen->body.bytes, "\"l\":\"x\""));
    check_events(&sim, seen, "DELETED a");
    check_events(&sim, other, "ADDED a");
    check_ask(&sim, "DELETE", CONFIG_MAPS "/a", NULL, 200, "status", "Success");
    check_events(&sim, seen, "");
    check_events(&sim, other, "DELETED a");
    leave(&sim, seen);
    leave(&sim, other);
    sim_free(&sim);
}

TEST(sends_bookmarks_and_ends_in_time)
{
    struct sim sim = sim_new();
    struct answer *answer =
        watch(&sim, CONFIG_MAPS
              "?watch=1&resourceVersion=104&allowWatchBookmarks=true&timeoutSeconds=100");
    make_deployment(&sim, "a");
    check_events(&sim, answer, "");
    sw_loop_virtual_advance(sim.loop, 60000);
    check_events(&sim, answer, "BOOKMARK 105");
    assert_false(answer->has_ended);
    sw_loop_virtual_advance(sim.loop, 40000);
    check_events(&sim, answer, "BOOKMARK 105");
    check_end(&sim, answer, true);
    make_config_map(&sim, "a", "x");
    answer = watch(&sim, CONFIG_MAPS "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true"
                                     "&resourceVersionMatch=NotOlderThan&resourceVersion=104");
    assert_non_null(strstr(answer->body.bytes, "\"k8s.io/initial-events-end\":\"true\""));
    check_events(&sim, answer, "ADDED a, BOOKMARK 106");
    sw_sim_api_end_watches(sim.api, sw_sim_api_kind(sim.api, "", "v1", "pods"), true);
    assert_false(answer->has_ended);
    sw_sim_api_end_watches(sim.api, sw_sim_api_kind(sim.api, "", "v1", "configmaps"), false);
    check_end(&sim, answer, false);
    sim_free(&sim);
}

TEST(says_410_where_the_past_is_forgotten)
{
    struct sim sim = sim_new_with(2, NULL);
    make_config_map(&sim, "a", "x");
    make_config_map(&sim, "b", "x");
    make_config_map(&sim, "c", "x");
    struct answer *answer = watch(&sim, CONFIG_MAPS "?watch=1&resourceVersion=104");
    assert_int_equal(answer->status, 200);
    assert_string_equal(answer->body.bytes,
                        "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\","
                        "\"metadata\":{},\"status\":\"Failure\",\"message\":\"too old resource "
                        "version: 104 (106)\",\"reason\":\"Expired\",\"code\":410}}\n");
    check_end(&sim, answer, true);
    answer = watch(&sim, CONFIG_MAPS "?watch=1&resourceVersion=105");
    check_events(&sim, answer, "ADDED b, ADDED c");
    leave(&sim, answer);
    check_ask(&sim, "GET", CONFIG_MAPS "?watch=1&resourceVersion=x", NULL, 500, "message",
              "resourceVersion: Invalid value: \"x\": strconv.ParseUint: parsing \"x\": invalid "
              "syntax");
    sim_free(&sim);
}

TEST(is_silent_about_versions_that_are_to_come)
{
    struct sim sim = sim_new();
    struct answer *answer = watch(&sim, CONFIG_MAPS "?watch=1&resourceVersion=105");
    make_config_map(&sim, "a", "x"); /* 105 */
    check_events(&sim, answer, "");
    make_config_map(&sim, "b", "x");
    check_events(&sim, answer, "ADDED b");
    leave(&sim, answer);
    sim_free(&sim);
}

TEST(a_write_is_done_although_its_client_has_gone)
{
    struct sim sim = sim_new();
    struct sw_sim_request request =
        request_of("POST", CONFIG_MAPS, "{\"metadata\":{\"name\":\"a\"}}");
    struct answer *answer = send_request(&sim, &request);
    sw_sim_api_cancel(sim.api, answer->call);
    sw_loop_virtual_advance(sim.loop, 0);
    assert_int_equal(answer->status, 0);
    answer_free(answer);
    check_ask(&sim, "GET", CONFIG_MAPS "/a", NULL, 200, "metadata.name", "a");
    request = request_of("GET", CONFIG_MAPS "/a", NULL);
    answer = send_request(&sim, &request);
    sw_sim_api_cancel(sim.api, answer->call);
    sw_loop_virtual_advance(sim.loop, 0);
    assert_int_equal(answer->status, 0);
    answer_free(answer);
    /* What is under way when the server ends hears nothing more. */
    answer = watch(&sim, CONFIG_MAPS "?watch=1");
    struct answer *unread = send_request(&sim, &request);
    sim_free(&sim);
    assert_false(answer->has_ended);
    answer_free(answer);
    answer_free(unread);
}

static void cancel_at_head(void *arg, int status, const char *content_type, unsigned retry_after_s,
                           const char *const *warnings, size_t count)
{
    (void)content_type, (void)retry_after_s, (void)warnings, (void)count;
    struct answer *answer = arg;
    answer->status = status;
    sw_sim_api_cancel(answer->arg_api, answer->call);
}

static void cancel_at_body(void *arg, const char *bytes, size_t len)
{
    struct answer *answer = arg;
    sw_buf_append(&answer->body, bytes, len);
    sw_sim_api_cancel(answer->arg_api, answer->call);
}

TEST(may_be_left_from_each_callback)
{
    static const char *const targets[] = {CONFIG_MAPS "?watch=1", CONFIG_MAPS, CONFIG_MAPS "/a",
                                          CONFIG_MAPS "/none", "/version"};
    struct sim sim = sim_new();
    make_config_map(&sim, "a", "x");
    for (size_t i = 0; i < SW_ARRAY_SIZE(targets); i++) {
        for (int at_body = 0; at_body < 2; at_body++) {
            struct sw_sim_request request = request_of("GET", targets[i], NULL);
            struct sw_sim_answer_events events = {
                .on_head = at_body ? client_head : cancel_at_head,
                .on_body = cancel_at_body,
                .on_end = client_end,
            };
            struct answer *answer = SW_NEW(struct answer);
            answer->arg_api = sim.api;
            sw_buf_init(&answer->body, SIZE_MAX);
            sw_sim_api_send(sim.api, &request, &events, answer, &answer->call);
            sw_loop_virtual_advance(sim.loop, 0);
            assert_true(answer->status != 0);
            assert_false(answer->has_ended);
            assert_int_equal(answer->body.len > 0, at_body);
            answer_free(answer);
        }
    }
    sim_free(&sim);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("watch", tells_what_is_there_and_what_happens),
        CASE("watch", objects_come_and_go_with_their_labels),
        CASE("watch", sends_bookmarks_and_ends_in_time),
        CASE("watch", says_410_where_the_past_is_forgotten),
        CASE("watch", is_silent_about_versions_that_are_to_come),
        CASE("call", a_write_is_done_although_its_client_has_gone),
        CASE("call", may_be_left_from_each_callback),
    };
    return RUN(tests);
}
