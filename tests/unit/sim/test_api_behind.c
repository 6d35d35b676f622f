/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated API server where several serve one cluster and the one that is asked is behind: how
 * old an answer may be, and how long it waits for a newer one.
 */
#include "api_client.h"
#include "cache.h"

struct scene {
    struct sim sim;
    struct sw_sim_cache *cache;
};

static void begin(struct scene *s, size_t window)
{
    s->sim = sim_new_with(window, NULL);
    s->cache = sw_sim_cache_new(s->sim.api);
    sw_sim_cache_set_lag(s->cache, 10000);
}

static void end(struct scene *s)
{
    sw_sim_cache_free(s->cache);
    sim_free(&s->sim);
}

static struct answer *send_behind(struct scene *s, const char *target)
{
    struct sw_sim_request request = request_of("GET", target, NULL);
    request.cache = s->cache;
    struct answer *answer = send_request(&s->sim, &request);
    sw_loop_virtual_advance(s->sim.loop, 0);
    return answer;
}

/* "a b" of a list, "MODIFIED a" of a watch, and forgets it. */
static void check_names(struct scene *s, struct answer *answer, const char *want)
{
    char text[256] = "";
    size_t i;
    json_t *item;

    sw_loop_virtual_advance(s->sim.loop, 0);
    if (answer->json) {
        json_array_foreach(json_object_get(answer->json, "items"), i, item)
        {
            size_t len = strlen(text);
            snprintf(text + len, sizeof(text) - len, "%s%s", len ? " " : "",
                     sw_sim_text_at(item, "metadata.name"));
        }
        assert_string_equal(text, want);
        return;
    }
    char *line = answer->body.len ? answer->body.bytes : (char[]){""};
    for (char *stop = strchr(line, '\n'); stop; line = stop + 1, stop = strchr(line, '\n')) {
        json_t *event = json_loadb(line, (size_t)(stop - line), 0, NULL);
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

#define check_list(s, query, names, version)                        \
    do {                                                            \
        struct answer *list_ = send_behind(s, CONFIG_MAPS query);   \
        assert_int_equal(list_->status, 200);                       \
        check_names(s, list_, names);                               \
        check_at(list_->json, "metadata.resourceVersion", version); \
        answer_free(list_);                                         \
    } while (0)

static void leave(struct scene *s, struct answer *answer)
{
    assert_false(answer->has_ended);
    sw_sim_api_cancel(s->sim.api, answer->call);
    answer_free(answer);
}

/* a since 105, known; then b 106, a changed 107, a deleted 108, none of which is known. */
static void make_past(struct scene *s)
{
    make_config_map(&s->sim, "a", "x");
    sw_loop_virtual_advance(s->sim.loop, 20000);
    assert_int_equal(sw_sim_cache_version(s->cache), 105);
    make_config_map(&s->sim, "b", "x");
    check_ask(&s->sim, "PATCH", CONFIG_MAPS "/a", "{\"data\":{\"k\":\"v\"}}", 200, "data.k", "v");
    check_ask(&s->sim, "DELETE", CONFIG_MAPS "/a", NULL, 200, "status", "Success");
    assert_int_equal(sw_sim_cache_version(s->cache), 105);
}

TEST(lists_from_the_cache_only_where_any_age_will_do)
{
    struct scene s;
    begin(&s, 1000);
    make_past(&s);
    check_list(&s, "", "b", "108");
    check_list(&s, "?limit=5", "b", "108");
    check_list(&s, "?resourceVersion=0", "a", "105");
    check_list(&s, "?resourceVersion=0&limit=5", "a", "105");
    check_list(&s, "?resourceVersion=105", "a", "105");
    check_list(&s, "?resourceVersion=104&resourceVersionMatch=NotOlderThan", "a", "105");
    check_list(&s, "?resourceVersion=107&resourceVersionMatch=Exact", "a b", "107");
    check_list(&s, "?resourceVersion=0&labelSelector=l=y", "", "105");
    check_ask(&s.sim, "GET", CONFIG_MAPS "?resourceVersion=0", NULL, 200,
              "metadata.resourceVersion", "108");
    sw_loop_virtual_advance(s.sim.loop, 10000);
    check_list(&s, "?resourceVersion=0", "b", "108");
    end(&s);
}

TEST(gets_from_the_cache_only_where_any_age_will_do)
{
    struct scene s;
    begin(&s, 1000);
    make_past(&s);
    struct answer *answer = send_behind(&s, CONFIG_MAPS "/a");
    assert_int_equal(answer->status, 404);
    answer_free(answer);
    answer = send_behind(&s, CONFIG_MAPS "/a?resourceVersion=0");
    assert_int_equal(answer->status, 200);
    check_at(answer->json, "metadata.resourceVersion", "105");
    answer_free(answer);
    answer = send_behind(&s, CONFIG_MAPS "/b?resourceVersion=0");
    assert_int_equal(answer->status, 404);
    answer_free(answer);
    end(&s);
}

TEST(waits_three_seconds_for_what_it_does_not_know_yet)
{
    struct scene s;
    begin(&s, 1000);
    make_past(&s);
    struct answer *answer = send_behind(&s, CONFIG_MAPS "?resourceVersion=107");
    sw_loop_virtual_advance(s.sim.loop, 2999);
    assert_false(answer->has_ended);
    sw_loop_virtual_advance(s.sim.loop, 1);
    assert_true(answer->has_ended);
    assert_int_equal(answer->status, 504);
    assert_int_equal(answer->retry_after_s, 1);
    check_at(answer->json, "message", "Timeout: Too large resource version: 107, current: 105");
    check_at(answer->json, "reason", "Timeout");
    check_at(answer->json, "details.causes",
             "[{\"reason\":\"ResourceVersionTooLarge\",\"message\":\"Too large resource "
             "version\"}]");
    answer_free(answer);
    answer = send_behind(&s, CONFIG_MAPS "/b?resourceVersion=106");
    struct answer *gone = send_behind(&s, CONFIG_MAPS "?resourceVersion=106");
    sw_loop_virtual_advance(s.sim.loop, 1000);
    assert_false(answer->has_ended);
    leave(&s, gone);
    sw_sim_cache_set_lag(s.cache, 5000); /* it catches up: after 5 s, of which 4 are over */
    sw_loop_virtual_advance(s.sim.loop, 2000);
    assert_true(answer->has_ended);
    assert_int_equal(answer->status, 200);
    check_at(answer->json, "metadata.resourceVersion", "106");
    answer_free(answer);
    end(&s);
}

TEST(watches_hear_of_changes_when_the_cache_does)
{
    struct scene s;
    begin(&s, 1000);
    make_past(&s);
    struct answer *all = send_behind(&s, CONFIG_MAPS "?watch=1");
    struct answer *past = send_behind(&s, CONFIG_MAPS "?watch=1&resourceVersion=104");
    struct answer *known = send_behind(&s, CONFIG_MAPS "?watch=1&resourceVersion=105");
    struct answer *coming = send_behind(&s, CONFIG_MAPS "?watch=1&resourceVersion=107");
    struct sw_sim_request request =
        request_of("GET", CONFIG_MAPS "?watch=1&resourceVersion=105", NULL);
    struct answer *present = send_request(&s.sim, &request);
    check_names(&s, all, "ADDED a");
    check_names(&s, past, "ADDED a");
    check_names(&s, known, "");
    check_names(&s, coming, "");
    check_names(&s, present, "ADDED b, MODIFIED a, DELETED a");
    sw_sim_store_compact(s.sim.store, 108); /* of etcd: what the cache waits for is on its way */
    sw_loop_virtual_advance(s.sim.loop, 9999);
    check_names(&s, known, "");
    sw_loop_virtual_advance(s.sim.loop, 1);
    check_names(&s, all, "ADDED b, MODIFIED a, DELETED a");
    check_names(&s, past, "ADDED b, MODIFIED a, DELETED a");
    check_names(&s, known, "ADDED b, MODIFIED a, DELETED a");
    check_names(&s, coming, "DELETED a");
    check_names(&s, present, "");
    struct answer *old = send_behind(&s, CONFIG_MAPS "?watch=1&resourceVersion=105");
    assert_non_null(strstr(old->body.bytes, "\"code\":410"));
    assert_true(old->has_ended);
    answer_free(old);
    leave(&s, all);
    leave(&s, past);
    leave(&s, known);
    leave(&s, coming);
    leave(&s, present);
    end(&s);
}

TEST(bookmarks_say_how_far_it_is)
{
    struct scene s;
    begin(&s, 1000);
    sw_sim_cache_set_lag(s.cache, 90000);
    make_config_map(&s.sim, "a", "x");
    struct answer *known =
        send_behind(&s, CONFIG_MAPS "?watch=1&resourceVersion=104&allowWatchBookmarks=true");
    struct answer *coming =
        send_behind(&s, CONFIG_MAPS "?watch=1&resourceVersion=105&allowWatchBookmarks=true");
    sw_loop_virtual_advance(s.sim.loop, 60000);
    check_names(&s, known, "BOOKMARK 104");
    check_names(&s, coming, ""); /* never one that goes back */
    sw_loop_virtual_advance(s.sim.loop, 60000);
    check_names(&s, known, "ADDED a, BOOKMARK 105");
    check_names(&s, coming, "BOOKMARK 105");
    leave(&s, known);
    leave(&s, coming);
    end(&s);
}

TEST(without_lag_it_is_as_new_as_what_is_stored)
{
    struct scene s;
    begin(&s, 1000);
    make_config_map(&s.sim, "a", "x");
    struct answer *watch = send_behind(&s, CONFIG_MAPS "?watch=1&resourceVersion=104");
    check_names(&s, watch, "");
    sw_sim_cache_set_lag(s.cache, 0);
    check_names(&s, watch, "ADDED a");
    make_config_map(&s.sim, "b", "x");
    check_names(&s, watch, "ADDED b");
    check_list(&s, "?resourceVersion=0", "a b", "106");
    leave(&s, watch);
    end(&s);
}

/* The picture is marked as whole when it is as new as was asked for. */
TEST(streams_a_list_and_marks_it_when_it_has_caught_up)
{
    static const char stream[] = "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true"
                                 "&resourceVersionMatch=NotOlderThan";
    struct scene s;
    begin(&s, 1000);
    make_past(&s);
    SW_AUTO(char, sw_free) newest = sw_asprintf(CONFIG_MAPS "%s", stream);
    SW_AUTO(char, sw_free) old = sw_asprintf(CONFIG_MAPS "%s&resourceVersion=105", stream);
    SW_AUTO(char, sw_free) coming = sw_asprintf(CONFIG_MAPS "%s&resourceVersion=107", stream);
    struct answer *a = send_behind(&s, newest);
    struct answer *b = send_behind(&s, old);
    struct answer *c = send_behind(&s, coming);
    check_names(&s, a, "ADDED a");
    check_names(&s, b, "ADDED a, BOOKMARK 105");
    check_names(&s, c, "ADDED a");
    sw_loop_virtual_advance(s.sim.loop, 9999);
    check_names(&s, a, "");
    sw_loop_virtual_advance(s.sim.loop, 1);
    check_names(&s, a, "ADDED b, MODIFIED a, DELETED a, BOOKMARK 108");
    check_names(&s, b, "ADDED b, MODIFIED a, DELETED a");
    check_names(&s, c, "ADDED b, MODIFIED a, DELETED a, BOOKMARK 108");
    leave(&s, a);
    leave(&s, b);
    leave(&s, c);
    end(&s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("behind", lists_from_the_cache_only_where_any_age_will_do),
        CASE("behind", gets_from_the_cache_only_where_any_age_will_do),
        CASE("behind", waits_three_seconds_for_what_it_does_not_know_yet),
        CASE("behind", watches_hear_of_changes_when_the_cache_does),
        CASE("behind", bookmarks_say_how_far_it_is),
        CASE("behind", without_lag_it_is_as_new_as_what_is_stored),
        CASE("behind", streams_a_list_and_marks_it_when_it_has_caught_up),
    };
    return RUN(tests);
}
