/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of faults: what can be told, what is refused and how, which requests are hit.
 */
#include "test.h"

#include <errno.h>

#include "base/error.h"
#include "base/loop.h"
#include "fault_rules.h"

struct fixture {
    struct sw_loop *loop;
    struct sw_sim_fault_rules *rules;
    struct sw_error error;
};

static void init(struct fixture *f)
{
    *f = (struct fixture){.loop = sw_loop_virtual_new(0, 1)};
    f->rules = sw_sim_fault_rules_new(f->loop);
}

static void done(struct fixture *f)
{
    sw_sim_fault_rules_free(f->rules);
    sw_loop_close(f->loop);
}

static int set(struct fixture *f, const char *name, const char *text)
{
    json_t *rule = json_loads(text, JSON_DECODE_ANY, NULL);
    int code = sw_sim_fault_rules_set(f->rules, name, rule, &f->error);

    json_decref(rule);
    return code;
}

static enum sw_sim_fault_action draw(struct fixture *f, const char *method, const char *path,
                                     const char *query, const char *agent)
{
    return sw_sim_fault_rules_draw(f->rules, method, path, query, agent).action;
}

TEST(a_rule_hits_what_it_names)
{
    struct fixture f;

    init(&f);
    assert_int_equal(set(&f, "a",
                         "{\"method\":\"PATCH\",\"path\":\"/deployments\",\"userAgent\":"
                         "\"slipway\",\"status\":429,\"retryAfter\":2}"),
                     0);
    struct sw_sim_fault fault =
        sw_sim_fault_rules_draw(f.rules, "PATCH", "/apis/apps/v1/deployments", "", "slipway/1");
    assert_int_equal(fault.action, SW_SIM_FAULT_STATUS);
    assert_int_equal(fault.status, 429);
    assert_int_equal(fault.retry_after_s, 2);
    assert_int_equal(draw(&f, "GET", "/deployments", "", "slipway/1"), SW_SIM_FAULT_NONE);
    assert_int_equal(draw(&f, "PATCH", "/pods", "", "slipway/1"), SW_SIM_FAULT_NONE);
    assert_int_equal(draw(&f, "PATCH", "/deployments", "", "kubectl"), SW_SIM_FAULT_NONE);
    assert_int_equal(draw(&f, "PATCH", "/deployments", "", NULL), SW_SIM_FAULT_NONE);
    done(&f);
}

TEST(watches_apart)
{
    struct fixture f;

    init(&f);
    assert_int_equal(set(&f, "a", "{\"watch\":true,\"cutAfter\":0}"), 0);
    assert_int_equal(draw(&f, "GET", "/pods", "watch=true", NULL), SW_SIM_FAULT_CUT);
    assert_int_equal(draw(&f, "GET", "/pods", "limit=5&watch=1", NULL), SW_SIM_FAULT_CUT);
    assert_int_equal(draw(&f, "GET", "/pods", "nowatch=true", NULL), SW_SIM_FAULT_NONE);
    assert_int_equal(set(&f, "a", "{\"watch\":false,\"silent\":true}"), 0);
    assert_int_equal(draw(&f, "GET", "/pods", "watch=true", NULL), SW_SIM_FAULT_NONE);
    assert_int_equal(draw(&f, "GET", "/pods", "", NULL), SW_SIM_FAULT_SILENCE);
    done(&f);
}

TEST(so_many_times_and_no_more)
{
    struct fixture f;

    init(&f);
    assert_int_equal(set(&f, "a", "{\"times\":2,\"delay\":\"200ms\"}"), 0);
    assert_int_equal(sw_sim_fault_rules_draw(f.rules, "GET", "/", "", NULL).delay_ms, 200);
    assert_int_equal(draw(&f, "GET", "/", "", NULL), SW_SIM_FAULT_DELAY);
    assert_int_equal(draw(&f, "GET", "/", "", NULL), SW_SIM_FAULT_NONE);
    json_t *shown = sw_sim_fault_rules_show(f.rules);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(shown, "a"), "hits")), 2);
    json_decref(shown);
    assert_true(sw_sim_fault_rules_remove(f.rules, "a"));
    assert_false(sw_sim_fault_rules_remove(f.rules, "a"));
    done(&f);
}

TEST(a_share_of_the_requests)
{
    struct fixture f;
    unsigned hits = 0;

    init(&f);
    assert_int_equal(set(&f, "a", "{\"percent\":10,\"status\":500}"), 0);
    for (unsigned i = 0; i < 10000; i++)
        hits += draw(&f, "GET", "/", "", NULL) != SW_SIM_FAULT_NONE;
    assert_in_range(hits, 800, 1200);
    done(&f);
}

TEST(mistakes_are_named)
{
    static const struct {
        const char *rule, *why;
    } cases[] = {
        {"[]", "a fault rule is a JSON object"},
        {"{\"status\":429,\"pathh\":\"x\"}", "fault rule: \"pathh\" is not known"},
        {"{}", "fault rule: one of \"status\", \"delay\", \"cutAfter\", \"silent\" says what shall "
               "happen"},
        {"{\"status\":429,\"silent\":true}",
         "fault rule: one of \"status\", \"delay\", \"cutAfter\", \"silent\" says what shall "
         "happen"},
        {"{\"status\":200}", "fault rule: \"status\" must be a status from 400 to 599"},
        {"{\"status\":500,\"percent\":101}",
         "fault rule: \"percent\" must be a number from 0 to 100"},
        {"{\"status\":500,\"times\":0}", "fault rule: \"times\" must be a number from 1"},
        {"{\"status\":500,\"path\":1}", "fault rule: \"path\" must be a text"},
        {"{\"delay\":\"soon\"}", "fault rule: \"delay\" must be a time such as \"200ms\""},
        {"{\"delay\":5}", "fault rule: \"delay\" must be a time such as \"200ms\""},
        {"{\"silent\":false}", "fault rule: \"silent\" must be true"},
        {"{\"watch\":1,\"silent\":true}", "fault rule: \"watch\" must be true or false"},
    };
    struct fixture f;

    init(&f);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(set(&f, "a", cases[i].rule), -EINVAL);
        assert_string_equal(f.error.text, cases[i].why);
    }
    assert_int_equal(draw(&f, "GET", "/", "", NULL), SW_SIM_FAULT_NONE);
    done(&f);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("fault_rules", a_rule_hits_what_it_names),
        CASE("fault_rules", watches_apart),
        CASE("fault_rules", so_many_times_and_no_more),
        CASE("fault_rules", a_share_of_the_requests),
        CASE("fault_rules", mistakes_are_named),
    };

    return RUN(tests);
}
