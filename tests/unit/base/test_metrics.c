/* SPDX-License-Identifier: Apache-2.0 */
/* The exposition of metrics, to the byte, and which one a scraper gets. */
#include "base/metrics.h"

#include <errno.h>
#include <math.h>

#include "base/buf.h"
#include "base/util.h"
#include "test.h"

static const char *const no_labels[] = {NULL};

static void is_written(struct sw_metrics *metrics, enum sw_metrics_format format,
                       const char *wanted)
{
    struct sw_buf buf;
    sw_buf_init(&buf, SIZE_MAX);
    assert_int_equal(sw_metrics_write(metrics, format, &buf), 0);
    assert_string_equal(buf.bytes, wanted);
    sw_buf_done(&buf);
}

TEST(writes_counters_and_gauges)
{
    struct sw_metrics *m = sw_metrics_new();
    const char *const labels[] = {"module", "result", NULL};
    struct sw_metric_family *f = sw_metrics_family(m, SW_METRIC_COUNTER, "slipway_runs_total",
                                                   "Runs of a module.", labels, NULL, 0);
    sw_metric_add(sw_metric_child(f, (const char *const[]){"pausing", "ok"}), 1);
    sw_metric_add(sw_metric_child(f, (const char *const[]){"pausing", "ok"}), 2);
    sw_metric_add(sw_metric_child(f, (const char *const[]){"pausing", "failed"}), 0.5);
    struct sw_metric_family *g =
        sw_metrics_family(m, SW_METRIC_GAUGE, "slipway_leader", "1 if leading.", NULL, NULL, 0);
    struct sw_metric *leader = sw_metric_child(g, NULL);
    sw_metric_set(leader, 2);
    sw_metric_add(leader, -1);
    assert_true(sw_metric_value(leader) == 1);
    sw_metrics_family(m, SW_METRIC_GAUGE, "slipway_unused", "No series yet.", labels, NULL, 0);
    is_written(m, SW_METRICS_TEXT,
               "# HELP slipway_runs_total Runs of a module.\n"
               "# TYPE slipway_runs_total counter\n"
               "slipway_runs_total{module=\"pausing\",result=\"ok\"} 3\n"
               "slipway_runs_total{module=\"pausing\",result=\"failed\"} 0.5\n"
               "# HELP slipway_leader 1 if leading.\n"
               "# TYPE slipway_leader gauge\n"
               "slipway_leader 1\n");
    is_written(m, SW_METRICS_OPENMETRICS,
               "# HELP slipway_runs Runs of a module.\n"
               "# TYPE slipway_runs counter\n"
               "slipway_runs_total{module=\"pausing\",result=\"ok\"} 3\n"
               "slipway_runs_total{module=\"pausing\",result=\"failed\"} 0.5\n"
               "# HELP slipway_leader 1 if leading.\n"
               "# TYPE slipway_leader gauge\n"
               "slipway_leader 1\n"
               "# EOF\n");
    assert_null(sw_metrics_free(m));
    sw_metrics_free(NULL);
}

TEST(writes_histograms)
{
    struct sw_metrics *m = sw_metrics_new();
    const double bounds[] = {0.5, 1, 10};
    const char *const labels[] = {"path", NULL};
    struct sw_metric_family *f =
        sw_metrics_family(m, SW_METRIC_HISTOGRAM, "took_seconds", "Time.", labels, bounds, 3);
    struct sw_metric *h = sw_metric_child(f, (const char *const[]){"/a"});
    sw_metric_observe(h, 0.25);
    sw_metric_observe(h, 0.5); /* a bound belongs to its bucket */
    sw_metric_observe(h, 1.5);
    sw_metric_observe(h, 100);
    assert_true(sw_metric_value(h) == 4);
    is_written(m, SW_METRICS_TEXT,
               "# HELP took_seconds Time.\n"
               "# TYPE took_seconds histogram\n"
               "took_seconds_bucket{path=\"/a\",le=\"0.5\"} 2\n"
               "took_seconds_bucket{path=\"/a\",le=\"1\"} 2\n"
               "took_seconds_bucket{path=\"/a\",le=\"10\"} 3\n"
               "took_seconds_bucket{path=\"/a\",le=\"+Inf\"} 4\n"
               "took_seconds_sum{path=\"/a\"} 102.25\n"
               "took_seconds_count{path=\"/a\"} 4\n");
    is_written(m, SW_METRICS_OPENMETRICS,
               "# HELP took_seconds Time.\n"
               "# TYPE took_seconds histogram\n"
               "took_seconds_bucket{path=\"/a\",le=\"0.5\"} 2\n"
               "took_seconds_bucket{path=\"/a\",le=\"1.0\"} 2\n"
               "took_seconds_bucket{path=\"/a\",le=\"10.0\"} 3\n"
               "took_seconds_bucket{path=\"/a\",le=\"+Inf\"} 4\n"
               "took_seconds_sum{path=\"/a\"} 102.25\n"
               "took_seconds_count{path=\"/a\"} 4\n"
               "# EOF\n");
    sw_metrics_free(m);
}

TEST(has_buckets_from_1_ms_to_60_s)
{
    struct sw_metrics *m = sw_metrics_new();
    struct sw_metric_family *f =
        sw_metrics_family(m, SW_METRIC_HISTOGRAM, "h", "H.", no_labels, NULL, 0);
    sw_metric_observe(sw_metric_child(f, NULL), 0.001);
    sw_metric_observe(sw_metric_child(f, NULL), 60);
    struct sw_buf buf;
    sw_buf_init(&buf, SIZE_MAX);
    sw_metrics_write(m, SW_METRICS_TEXT, &buf);
    assert_non_null(strstr(buf.bytes, "h_bucket{le=\"0.001\"} 1\n"));
    assert_non_null(strstr(buf.bytes, "h_bucket{le=\"30\"} 1\nh_bucket{le=\"60\"} 2\n"
                                      "h_bucket{le=\"+Inf\"} 2\nh_sum 60.001\nh_count 2\n"));
    sw_buf_done(&buf);
    sw_metrics_free(m);
}

TEST(takes_an_infinite_bound_for_the_one_that_is_there)
{
    struct sw_metrics *m = sw_metrics_new();
    const double bounds[] = {1, (double)INFINITY};
    struct sw_metric_family *f =
        sw_metrics_family(m, SW_METRIC_HISTOGRAM, "h", "H.", NULL, bounds, 2);
    sw_metric_observe(sw_metric_child(f, NULL), 2);
    is_written(m, SW_METRICS_TEXT,
               "# HELP h H.\n# TYPE h histogram\nh_bucket{le=\"1\"} 0\nh_bucket{le=\"+Inf\"} 1\n"
               "h_sum 2\nh_count 1\n");
    const double falling[] = {2, 1};
    assert_aborts(sw_metrics_family(m, SW_METRIC_HISTOGRAM, "i", "I.", NULL, falling, 2));
    sw_metrics_free(m);
}

TEST(escapes_help_and_labels)
{
    struct sw_metrics *m = sw_metrics_new();
    const char *const labels[] = {"v", NULL};
    struct sw_metric_family *f =
        sw_metrics_family(m, SW_METRIC_GAUGE, "g", "A \"b\" \\ c\nd", labels, NULL, 0);
    sw_metric_set(sw_metric_child(f, (const char *const[]){"x\"y\\z\n\xff"}), 1);
    is_written(m, SW_METRICS_TEXT,
               "# HELP g A \"b\" \\\\ c\\nd\n# TYPE g gauge\n"
               "g{v=\"x\\\"y\\\\z\\n\xef\xbf\xbd\"} 1\n");
    is_written(m, SW_METRICS_OPENMETRICS,
               "# HELP g A \\\"b\\\" \\\\ c\\nd\n# TYPE g gauge\n"
               "g{v=\"x\\\"y\\\\z\\n\xef\xbf\xbd\"} 1\n# EOF\n");
    sw_metrics_free(m);
}

TEST(writes_numbers_that_read_back)
{
    static const struct {
        double value;
        const char *text;
    } numbers[] = {
        {0, "0"},
        {-1, "-1"},
        {0.1, "0.1"},
        {1.0 / 3, "0.3333333333333333"},
        {123456789012345, "123456789012345"},
        {1e15, "1e+15"},
        {9007199254740992, "9007199254740992"},
        {5e-324, "4.94065645841247e-324"},
        {(double)INFINITY, "+Inf"},
        {-(double)INFINITY, "-Inf"},
        {(double)NAN, "NaN"},
    };
    struct sw_metrics *m = sw_metrics_new();
    struct sw_metric *g =
        sw_metric_child(sw_metrics_family(m, SW_METRIC_GAUGE, "g", "G.", NULL, NULL, 0), NULL);
    for (size_t i = 0; i < SW_ARRAY_SIZE(numbers); i++) {
        sw_metric_set(g, numbers[i].value);
        char wanted[100];
        snprintf(wanted, sizeof(wanted), "# HELP g G.\n# TYPE g gauge\ng %s\n", numbers[i].text);
        is_written(m, SW_METRICS_TEXT, wanted);
    }
    sw_metrics_free(m);
}

TEST(keeps_series_apart_whatever_their_values)
{
    struct sw_metrics *m = sw_metrics_new();
    const char *const labels[] = {"a", "b", NULL};
    struct sw_metric_family *f =
        sw_metrics_family(m, SW_METRIC_COUNTER, "c", "C.", labels, NULL, 0);
    struct sw_metric *x = sw_metric_child(f, (const char *const[]){"1:x", ""});
    struct sw_metric *y = sw_metric_child(f, (const char *const[]){"", "1:x"});
    struct sw_metric *z = sw_metric_child(f, (const char *const[]){"1", ":x"});
    assert_ptr_not_equal(x, y);
    assert_ptr_not_equal(y, z);
    assert_ptr_equal(sw_metric_child(f, (const char *const[]){"1:x", ""}), x);
    sw_metrics_free(m);
}

TEST(forgets_a_series)
{
    struct sw_metrics *m = sw_metrics_new();
    const char *const labels[] = {"a", NULL};
    struct sw_metric_family *f = sw_metrics_family(m, SW_METRIC_GAUGE, "g", "G.", labels, NULL, 0);
    sw_metric_set(sw_metric_child(f, (const char *const[]){"x"}), 1);
    sw_metric_set(sw_metric_child(f, (const char *const[]){"y"}), 2);
    sw_metric_remove(f, (const char *const[]){"x"});
    sw_metric_remove(f, (const char *const[]){"x"});
    is_written(m, SW_METRICS_TEXT, "# HELP g G.\n# TYPE g gauge\ng{a=\"y\"} 2\n");
    assert_true(sw_metric_value(sw_metric_child(f, (const char *const[]){"x"})) == 0);
    sw_metrics_free(m);
}

TEST(puts_the_thousand_and_first_series_with_all_others)
{
    struct sw_metrics *m = sw_metrics_new();
    const char *const labels[] = {"a", "b", NULL};
    struct sw_metric_family *f =
        sw_metrics_family(m, SW_METRIC_COUNTER, "c", "C.", labels, NULL, 0);
    struct sw_metric *last = NULL;
    for (int i = 0; i < 1005; i++) {
        char text[16];
        snprintf(text, sizeof(text), "%d", i);
        struct sw_metric *child = sw_metric_child(f, (const char *const[]){text, "x"});
        sw_metric_add(child, 1);
        assert_true(i <= 1000 || child == last);
        last = child;
    }
    assert_true(sw_metric_value(last) == 5);
    struct sw_buf buf;
    sw_buf_init(&buf, SIZE_MAX);
    sw_metrics_write(m, SW_METRICS_TEXT, &buf);
    assert_non_null(strstr(buf.bytes, "\nc_total{a=\"(other)\",b=\"(other)\"} 5\n"));
    sw_buf_done(&buf);
    sw_metrics_free(m);
}

TEST(returns_the_family_that_is_there)
{
    struct sw_metrics *m = sw_metrics_new();
    const char *const labels[] = {"a", NULL};
    const char *const others[] = {"b", NULL};
    struct sw_metric_family *f =
        sw_metrics_family(m, SW_METRIC_COUNTER, "c_total", "C.", labels, NULL, 0);
    assert_ptr_equal(sw_metrics_family(m, SW_METRIC_COUNTER, "c", "C.", labels, NULL, 0), f);
    assert_aborts(sw_metrics_family(m, SW_METRIC_GAUGE, "c", "C.", labels, NULL, 0));
    assert_aborts(sw_metrics_family(m, SW_METRIC_COUNTER, "c", "C.", others, NULL, 0));
    assert_aborts(sw_metrics_family(m, SW_METRIC_COUNTER, "c", "C.", NULL, NULL, 0));
    sw_metrics_free(m);
}

TEST(refuses_bad_names)
{
    struct sw_metrics *m = sw_metrics_new();
    static const char *const names[] = {"", "1a", "a-b", "a b", "\xc3\xa4"};
    for (size_t i = 0; i < SW_ARRAY_SIZE(names); i++) {
        assert_aborts(sw_metrics_family(m, SW_METRIC_GAUGE, names[i], "X.", NULL, NULL, 0));
        const char *const labels[] = {names[i], NULL};
        assert_aborts(sw_metrics_family(m, SW_METRIC_GAUGE, "g", "X.", labels, NULL, 0));
    }
    const char *const le[] = {"le", NULL};
    const char *const reserved[] = {"__name", NULL};
    assert_aborts(sw_metrics_family(m, SW_METRIC_GAUGE, "g", "X.", le, NULL, 0));
    assert_aborts(sw_metrics_family(m, SW_METRIC_GAUGE, "g", "X.", reserved, NULL, 0));
    sw_metrics_family(m, SW_METRIC_GAUGE, "a:b_c9", "X.", NULL, NULL, 0);
    sw_metrics_free(m);
}

TEST(does_not_let_a_counter_fall)
{
    struct sw_metrics *m = sw_metrics_new();
    struct sw_metric *c =
        sw_metric_child(sw_metrics_family(m, SW_METRIC_COUNTER, "c", "C.", NULL, NULL, 0), NULL);
    assert_aborts((sw_metric_add(c, -1), 0));
    assert_aborts((sw_metric_set(c, 1), 0));
    assert_aborts((sw_metric_observe(c, 1), 0));
    sw_metrics_free(m);
}

static void set_to_next(void *arg)
{
    struct sw_metric *g = arg;
    sw_metric_set(g, sw_metric_value(g) + 1);
}

TEST(asks_collectors_before_each_exposition)
{
    struct sw_metrics *m = sw_metrics_new();
    struct sw_metric *g =
        sw_metric_child(sw_metrics_family(m, SW_METRIC_GAUGE, "g", "G.", NULL, NULL, 0), NULL);
    struct sw_metric *h =
        sw_metric_child(sw_metrics_family(m, SW_METRIC_GAUGE, "h", "H.", NULL, NULL, 0), NULL);
    sw_metrics_on_collect(m, set_to_next, g);
    sw_metrics_on_collect(m, set_to_next, h);
    struct sw_buf buf;
    sw_buf_init(&buf, SIZE_MAX);
    sw_metrics_write(m, SW_METRICS_TEXT, &buf);
    sw_metrics_off_collect(m, set_to_next, g);
    sw_metrics_off_collect(m, set_to_next, g);
    sw_metrics_write(m, SW_METRICS_TEXT, &buf);
    assert_true(sw_metric_value(g) == 1);
    assert_true(sw_metric_value(h) == 2);
    sw_buf_done(&buf);
    sw_metrics_free(m);
}

TEST(adds_nothing_to_a_buffer_that_is_too_small)
{
    struct sw_metrics *m = sw_metrics_new();
    sw_metric_child(sw_metrics_family(m, SW_METRIC_GAUGE, "g", "G.", NULL, NULL, 0), NULL);
    struct sw_buf buf;
    sw_buf_init(&buf, 20);
    sw_buf_puts(&buf, "before");
    assert_int_equal(sw_metrics_write(m, SW_METRICS_TEXT, &buf), -ENOBUFS);
    assert_string_equal(buf.bytes, "before");
    sw_buf_done(&buf);
    sw_metrics_free(m);
}

TEST(gives_a_scraper_what_it_accepts)
{
    static const struct {
        const char *accept;
        enum sw_metrics_format format;
    } cases[] = {
        {NULL, SW_METRICS_TEXT},
        {"", SW_METRICS_TEXT},
        {"*/*", SW_METRICS_TEXT},
        {"text/plain", SW_METRICS_TEXT},
        {"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", SW_METRICS_TEXT},
        /* Prometheus 2 and 3 */
        {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
         "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         SW_METRICS_OPENMETRICS},
        {"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
         "application/openmetrics-text;version=0.0.1;q=0.5,"
         "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,"
         "*/*;q=0.2",
         SW_METRICS_OPENMETRICS},
        {"application/openmetrics-text", SW_METRICS_OPENMETRICS},
        {"APPLICATION/OpenMetrics-Text ; Version=\"1.0.0\" ; q=0.5", SW_METRICS_OPENMETRICS},
        {"application/openmetrics-text; version=0.0.1", SW_METRICS_TEXT},
        {"application/openmetrics-text; version=2.0.0, */*;q=0.1", SW_METRICS_TEXT},
        {"application/*", SW_METRICS_OPENMETRICS},
        {"application/*;q=0.5, text/plain;q=0.6", SW_METRICS_TEXT},
        {"application/openmetrics-text;q=0.2, text/plain;q=0.6", SW_METRICS_TEXT},
        {"application/openmetrics-text, text/plain", SW_METRICS_OPENMETRICS},
        {"application/openmetrics-text;q=0, */*", SW_METRICS_TEXT},
        {"application/openmetrics-text;q=0", SW_METRICS_TEXT},
        {"text/plain;q=0, */*;q=0.1", SW_METRICS_OPENMETRICS},
        {"application/json", SW_METRICS_TEXT},
        {"application/openmetrics-text;q=nonsense, text/plain", SW_METRICS_TEXT},
        {"application/openmetrics-text;q=1.5, text/plain;q=0.1", SW_METRICS_TEXT},
        {"application/openmetrics-text;q=0.001, text/plain;q=0.0", SW_METRICS_OPENMETRICS},
        {"text/plain;x=\",application/openmetrics-text,\\\"\"", SW_METRICS_TEXT},
        {",,;;,/,;q=1,\"", SW_METRICS_TEXT},
        {"application/openmetrics-text;", SW_METRICS_OPENMETRICS},
        {"*", SW_METRICS_TEXT},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(cases); i++) {
        if (sw_metrics_negotiate(cases[i].accept) != cases[i].format) {
            fail_msg("Accept: %s: wanted %s", cases[i].accept,
                     sw_metrics_content_type(cases[i].format));
        }
    }
}

TEST(survives_an_accept_header_cut_at_any_place)
{
    static const char accept[] =
        "application/openmetrics-text; version=\"1.0.0\";q=0.5, text/plain;x=\"a\\\"\",*/*;q=0.1";
    for (size_t len = 0; len < sizeof(accept); len++) {
        char *cut = strndup(accept, len);
        enum sw_metrics_format format = sw_metrics_negotiate(cut);
        assert_true(format == SW_METRICS_TEXT || format == SW_METRICS_OPENMETRICS);
        free(cut);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("metrics", writes_counters_and_gauges),
        CASE("metrics", writes_histograms),
        CASE("metrics", has_buckets_from_1_ms_to_60_s),
        CASE("metrics", takes_an_infinite_bound_for_the_one_that_is_there),
        CASE("metrics", escapes_help_and_labels),
        CASE("metrics", writes_numbers_that_read_back),
        CASE("metrics", keeps_series_apart_whatever_their_values),
        CASE("metrics", forgets_a_series),
        CASE("metrics", puts_the_thousand_and_first_series_with_all_others),
        CASE("metrics", returns_the_family_that_is_there),
        CASE("metrics", refuses_bad_names),
        CASE("metrics", does_not_let_a_counter_fall),
        CASE("metrics", asks_collectors_before_each_exposition),
        CASE("metrics", adds_nothing_to_a_buffer_that_is_too_small),
        CASE("metrics", gives_a_scraper_what_it_accepts),
        CASE("metrics", survives_an_accept_header_cut_at_any_place),
    };
    return RUN(tests);
}
