/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What modules say and show: what their lines are about, and series that come and go.
 */
#include <slipway/telemetry.h>

#include <slipway/apps.h>
#include <slipway/queue.h>
#include <slipway/record.h>

#include "../test.h"
#include "base/error.h"
#include "base/log.h"

#include "fixture.h"

struct stage {
    struct fixture f;
    struct made_up made_up;
    struct sw_metric_family *waiting, *turns;
    struct sw_queue *queue;
    unsigned collected;
    char run_ids[2][17];
    unsigned run_count;
};

static struct stage *stage; /* sw_on_collect has no argument of its own */

static void collect(struct sw_instance *self)
{
    const char *const values[] = {"shop", "web", NULL};

    assert_ptr_equal(self, stage->made_up.self);
    stage->collected++;
    sw_measure(sw_series(stage->waiting, values), stage->collected);
}

static enum sw_result work(struct sw_instance *self, void *arg, struct sw_run *run)
{
    struct stage *s = arg;

    snprintf(s->run_ids[s->run_count++], sizeof(s->run_ids[0]), "%s", sw_run_id(run));
    sw_info(self, "worked");
    return SW_DONE;
}

static int start(struct sw_instance *self, void *arg)
{
    static const char *const labels[] = {"namespace", "coordination", NULL};
    struct stage *s = arg;
    struct sw_queue_options queue = {.name = "test", .fn = work, .arg = s};

    s->waiting = sw_gauge_family(self, "slipway_test_waiting", "Those that wait.", labels);
    s->turns = sw_counter_family(self, "slipway_test_turns_total", "Turns.", labels);
    s->queue = sw_queue_new(self, &queue);
    sw_on_collect(self, collect);
    return 0;
}

static struct stage *begin(void)
{
    stage = test_calloc(1, sizeof(*stage));
    stage->made_up = (struct made_up){.start = start, .arg = stage};
    fixture_init(&stage->f, NULL);
    fixture_add(&stage->f, &module_one, &stage->made_up);
    fixture_open(&stage->f);
    return stage;
}

static void forget_lines(struct stage *s)
{
    s->f.log.len = 0;
    s->f.log.text[0] = '\0';
}

static void end(struct stage *s)
{
    fixture_done(&s->f);
    test_free(s);
}

TEST(series_come_go_and_come_again_from_nothing)
{
    static const char *const web[] = {"shop", "web", NULL};
    static const char *const api[] = {"shop", "api", NULL};
    struct stage *s = begin();

    sw_count(sw_series(s->turns, web), 2);
    sw_count(sw_series(s->turns, web), 1);
    sw_count(sw_series(s->turns, api), 1);
    assert_true(fixture_shows(
        &s->f, "slipway_test_turns_total{namespace=\"shop\",coordination=\"web\"} 3"));
    sw_series_remove(s->turns, web);
    sw_series_remove(s->turns, web);
    assert_false(fixture_shows(
        &s->f, "slipway_test_turns_total{namespace=\"shop\",coordination=\"web\"} 3"));
    assert_true(fixture_shows(
        &s->f, "slipway_test_turns_total{namespace=\"shop\",coordination=\"api\"} 1"));
    sw_count(sw_series(s->turns, web), 1);
    assert_true(fixture_shows(
        &s->f, "slipway_test_turns_total{namespace=\"shop\",coordination=\"web\"} 1"));
    end(s);
}

TEST(a_module_is_asked_each_time_before_metrics_are_read)
{
    struct stage *s = begin();

    assert_true(
        fixture_shows(&s->f, "slipway_test_waiting{namespace=\"shop\",coordination=\"web\"} 1"));
    assert_true(
        fixture_shows(&s->f, "slipway_test_waiting{namespace=\"shop\",coordination=\"web\"} 2"));
    end(s);
}

TEST(lines_of_a_run_bear_its_identifier_and_no_others)
{
    struct stage *s = begin();
    char wanted[64];

    for (int i = 0; i < 2; i++) {
        sw_queue_add(s->queue, "key");
        sw_loop_virtual_advance(s->f.loop, 1);
        snprintf(wanted, sizeof(wanted), " reconcileID=%s", s->run_ids[i]);
        assert_int_equal(strlen(s->run_ids[i]), 16);
        assert_non_null(strstr(s->f.log.text, wanted));
    }
    assert_string_not_equal(s->run_ids[0], s->run_ids[1]);
    forget_lines(s);
    sw_info(s->made_up.self, "outside");
    assert_non_null(strstr(s->f.log.text, "outside"));
    assert_null(strstr(s->f.log.text, "reconcileID"));
    end(s);
}

TEST(lines_and_records_say_which_rollout_they_are_about)
{
    struct stage *s = begin();
    const struct sw_object object = {
        .kind = &sw_kind_deployment,
        .namespace_ = "shop",
        .name = "cart",
        .uid = "u",
        .resource_version = "1",
    };

    sw_say_about(s->made_up.self, "0123456789abcdef", "fedcba9876543210");
    sw_info(s->made_up.self, "line");
    assert_true(fake_log_has(&s->f.log, "rollout=0123456789abcdef reconcileID=fedcba9876543210"));
    sw_say_about(s->made_up.self, "0123456789abcdef", NULL);
    sw_record(s->made_up.self, &object, SW_NORMAL, "Seen", "it was");
    assert_true(fake_log_has(&s->f.log, "rollout=0123456789abcdef reason=Seen message=\"it was\""));
    forget_lines(s);
    sw_say_about(s->made_up.self, NULL, NULL);
    sw_info(s->made_up.self, "line");
    assert_null(strstr(s->f.log.text, "rollout"));
    end(s);
}

TEST(a_rollout_is_named_by_namespace_name_and_template)
{
    struct sw_deployment a = {
        .meta = {.namespace_ = "shop", .name = "cart"},
        .template_hash = {.high = 1, .low = 2},
    };
    struct sw_deployment b = a;
    char first[SW_ROLLOUT_SIZE], other[SW_ROLLOUT_SIZE];

    sw_rollout_text(&a, first);
    assert_string_equal(first,
                        "f52c868cd5d709d4"); /* for ever: logs of several releases are read */
    b.meta.uid = "u";
    b.meta.generation = 7;
    b.is_paused = true;
    b.replicas = 5;
    sw_rollout_text(&b, other);
    assert_string_equal(first, other);
    b.template_hash.low = 3;
    sw_rollout_text(&b, other);
    assert_string_not_equal(first, other);
    b = a;
    b.meta.namespace_ = "sho";
    b.meta.name = "pcart";
    sw_rollout_text(&b, other);
    assert_string_not_equal(first, other);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("telemetry", series_come_go_and_come_again_from_nothing),
        CASE("telemetry", a_module_is_asked_each_time_before_metrics_are_read),
        CASE("telemetry", lines_of_a_run_bear_its_identifier_and_no_others),
        CASE("telemetry", lines_and_records_say_which_rollout_they_are_about),
        CASE("telemetry", a_rollout_is_named_by_namespace_name_and_template),
    };
    return RUN(tests);
}
