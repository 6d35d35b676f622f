/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is asked of Prometheus, and what its answers mean.
 */
#include <errno.h>
#include <slipway/workloads.h>

#include "../test.h"
#include "provider.h"
#include "sample.h"

static struct sw_arena *arena;

static int setup(void **state)
{
    (void)state;
    arena = sw_arena_new(0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena = sw_arena_free(arena);
    return 0;
}

/* ---- requests ---- */

static struct step_query query_for(const char *address, const char *query)
{
    struct sample s;
    struct step_query made;
    const char *why = NULL;

    sample_init(&s);
    sample_metric(&s, "m", address, query);
    if (step_query_make(&s.object, &s.measures[0], NULL, arena, &made, &why))
        fail_msg("%s %s: %s", address, query, why);
    return made;
}

static void assert_url(const char *address, const char *query, const char *want)
{
    assert_string_equal(query_for(address, query).url, want);
}

static void assert_refused(const struct sample *s, const struct step_metric_template *template_,
                           const char *want)
{
    struct step_query made;
    const char *why = NULL;

    assert_int_equal(step_query_make(&s->object, &s->measures[0], template_, arena, &made, &why),
                     -EINVAL);
    if (!strstr(why, want))
        fail_msg("\"%s\" is not in \"%s\"", want, why);
}

TEST(asks_below_the_path_of_the_address)
{
    assert_url("http://p:9090", "up", "http://p:9090/api/v1/query?query=up");
    assert_url("http://p:9090/", "up", "http://p:9090/api/v1/query?query=up");
    assert_url("https://h/select/0/prometheus//", "up",
               "https://h/select/0/prometheus/api/v1/query?query=up");
    assert_url("http://[::1]:9090/x", "up", "http://[::1]:9090/x/api/v1/query?query=up");
}

TEST(keeps_the_query_and_the_user_of_the_address)
{
    assert_url("http://h/p/?tenant=a%20b", "up", "http://h/p/api/v1/query?tenant=a%20b&query=up");
    assert_url("http://u:p%40w@h:1", "up", "http://u:p%40w@h:1/api/v1/query?query=up");
    assert_string_equal(query_for("https://u:secret@h:1/x", "up").place, "https://h:1");
}

TEST(escapes_the_query)
{
    assert_url("http://h", "sum(rate(a{b=~\"5..\"}[1m])) > 0 & 1 + 1 #x\n",
               "http://h/api/v1/query?query="
               "sum%28rate%28a%7Bb%3D~%225..%22%7D%5B1m%5D%29%29%20%3E%200%20%26%201%20%2B%201%20%"
               "23x%0A");
}

TEST(fills_the_query_in)
{
    assert_url("http://h", "{{ name }}.{{ namespace }}.{{ target }}.{{ service }}.{{ interval }}",
               "http://h/api/v1/query?query=web.shop.web-target.web-target.1m");
}

TEST(gives_the_interval_in_one_unit_of_promql)
{
    static const struct {
        uint64_t ms;
        const char *want;
    } cases[] = {{30000, "30s"},  {90000, "90s"},   {300000, "5m"},    {5400000, "90m"},
                 {7200000, "2h"}, {1500, "1500ms"}, {60001, "60001ms"}};
    struct sample s;

    sample_init(&s);
    sample_metric(&s, "m", "http://h", "up");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct step_template_model model;
        s.measures[0].interval_ms = cases[i].ms;
        step_metric_model(&s.object, &s.measures[0], arena, &model);
        assert_string_equal(model.interval, cases[i].want);
    }
}

TEST(names_the_field_that_is_wrong)
{
    struct sample s;

    sample_init(&s);
    struct step_metric *metric = sample_metric(&s, "m", "http://h", "up{{ x }}");
    assert_refused(&s, NULL, "query: {{ x }} is unknown");
    metric->query = "{{ variables.nothing }}";
    assert_refused(&s, NULL, "query: {{ variables.nothing }}: templateVariables has no");
    metric->query = " \n";
    assert_refused(&s, NULL, "query: there is none");
    metric->query = "up";
    metric->provider_type = "datadog";
    assert_refused(&s, NULL, "provider.type: \"datadog\" is unknown");
    metric->provider_type = "prometheus";
    metric->provider_address = "prometheus:9090";
    assert_refused(&s, NULL, "provider.address: ");
    metric->provider_address = "";
    assert_refused(&s, NULL, "provider.address: ");
    metric->provider_address = "ftp://h";
    assert_refused(&s, NULL, "provider.address: ");
}

static const struct step_metric_template template_one = {
    .meta = {.namespace_ = "flagger", .name = "errors"},
    .type = "prometheus",
    .address = "http://p",
    .secret = "",
    .query = "errors{ns=\"{{ namespace }}\"}",
};

TEST(takes_everything_from_the_metric_template)
{
    static const char headers[] = "{\"X-Scope-OrgID\":[\"a\",\"b\"],\"X-One\":\"c\"}";
    struct step_metric_template t = template_one;
    struct step_query made;
    const char *why = NULL;
    struct sample s;

    sample_init(&s);
    sample_metric(&s, "m", "", "");
    t.secret = "login";
    t.insecure_skip_verify = true;
    t.headers = (struct sw_raw){headers, sizeof(headers) - 1};
    assert_int_equal(step_query_make(&s.object, &s.measures[0], &t, arena, &made, &why), 0);
    assert_string_equal(made.url, "http://p/api/v1/query?query=errors%7Bns%3D%22shop%22%7D");
    assert_string_equal(made.secret_namespace, "flagger");
    assert_string_equal(made.secret, "login");
    assert_true(made.insecure_skip_verify);
    assert_int_equal(made.field_count, 3);
    assert_string_equal(made.fields[1].name, "X-Scope-OrgID");
    assert_string_equal(made.fields[1].value, "b");
    assert_string_equal(made.fields[2].value, "c");
}

TEST(lets_a_secret_go_before_an_authorization_among_the_headers)
{
    static const char headers[] = "{\"authorization\":[\"Basic x\"],\"X-One\":[\"c\"]}";
    struct step_metric_template t = template_one;
    struct step_query made;
    const char *why = NULL;
    struct sample s;

    sample_init(&s);
    sample_metric(&s, "m", "", "");
    t.headers = (struct sw_raw){headers, sizeof(headers) - 1};
    assert_int_equal(step_query_make(&s.object, &s.measures[0], &t, arena, &made, &why), 0);
    assert_int_equal(made.field_count, 2);
    t.secret = "login";
    assert_int_equal(step_query_make(&s.object, &s.measures[0], &t, arena, &made, &why), 0);
    assert_int_equal(made.field_count, 1);
    assert_string_equal(made.fields[0].name, "X-One");
}

TEST(reads_the_secret_of_its_own_namespace)
{
    struct step_query made;
    const char *why = NULL;
    struct sample s;

    sample_init(&s);
    sample_metric(&s, "m", "http://h", "up")->provider_secret = "login";
    assert_int_equal(step_query_make(&s.object, &s.measures[0], NULL, arena, &made, &why), 0);
    assert_string_equal(made.secret_namespace, "shop");
    assert_string_equal(made.secret, "login");
    assert_false(made.insecure_skip_verify);
}

TEST(takes_a_template_without_a_type_for_prometheus)
{
    struct step_metric_template t = template_one;
    struct step_query made;
    const char *why = NULL;
    struct sample s;

    sample_init(&s);
    sample_metric(&s, "m", "", "");
    t.type = "";
    assert_int_equal(step_query_make(&s.object, &s.measures[0], &t, arena, &made, &why), 0);
}

TEST(names_the_metric_template_that_is_wrong)
{
    static const char *const bad_headers[] = {"[]", "{\"a\":1}", "{\"a\":[1]}", "{\"a\":null}",
                                              "1"};
    struct step_metric_template t = template_one;
    struct sample s;

    sample_init(&s);
    sample_metric(&s, "m", "", "");
    t.type = "graphite";
    assert_refused(&s, &t, "MetricTemplate flagger/errors: provider.type: \"graphite\" is unknown");
    t = template_one;
    t.query = "{{ pod }}";
    assert_refused(&s, &t, "MetricTemplate flagger/errors: query: {{ pod }} is unknown");
    t = template_one;
    for (size_t i = 0; i < sizeof(bad_headers) / sizeof(bad_headers[0]); i++) {
        t.headers = (struct sw_raw){bad_headers[i], (uint32_t)strlen(bad_headers[i])};
        assert_refused(&s, &t, "MetricTemplate flagger/errors: provider.headers: ");
    }
}

TEST(bounds_the_headers)
{
    char text[1024] = "{\"a\":[";
    struct step_metric_template t = template_one;
    struct step_query made;
    const char *why = NULL;
    struct sample s;

    sample_init(&s);
    sample_metric(&s, "m", "", "");
    for (int i = 0; i < STEP_QUERY_FIELDS; i++)
        strncat(text, i ? ",\"x\"" : "\"x\"", sizeof(text) - strlen(text) - 1);
    size_t len = strlen(text);
    strncat(text, "]}", 3);
    t.headers = (struct sw_raw){text, (uint32_t)strlen(text)};
    assert_int_equal(step_query_make(&s.object, &s.measures[0], &t, arena, &made, &why), 0);
    assert_int_equal(made.field_count, STEP_QUERY_FIELDS);
    text[len] = 0;
    strncat(text, ",\"x\"]}", 7);
    t.headers.len = (uint32_t)strlen(text);
    assert_refused(&s, &t, "provider.headers: ");
}

/* ---- credentials ---- */

static struct sw_secret secret_of(const struct sw_label *labels, uint32_t count)
{
    return (struct sw_secret){.meta = {.namespace_ = "shop", .name = "login"},
                              .data = {labels, count}};
}

static void assert_authorization(const struct sw_label *labels, uint32_t count, const char *want)
{
    struct sw_secret secret = secret_of(labels, count);
    const char *value = NULL;
    const char *why = NULL;

    if (step_query_authorization(&secret, arena, &value, &why))
        fail_msg("%s", why);
    assert_string_equal(value, want);
}

static void assert_no_authorization(const struct sw_label *labels, uint32_t count, const char *want)
{
    struct sw_secret secret = secret_of(labels, count);
    const char *value = NULL;
    const char *why = NULL;

    assert_int_equal(step_query_authorization(&secret, arena, &value, &why), -EINVAL);
    assert_null(value);
    if (!strstr(why, want))
        fail_msg("\"%s\" is not in \"%s\"", want, why);
}

TEST(makes_basic_authentication_of_username_and_password)
{
    /* RFC 7617, section 2: Aladdin and "open sesame" */
    static const struct sw_label aladdin[] = {{"password", "b3BlbiBzZXNhbWU="},
                                              {"username", "QWxhZGRpbg=="}};
    static const struct sw_label empty[] = {{"password", ""}, {"username", "dQ=="}};
    static const struct sw_label longer[] = {{"password", "cHc="}, {"username", "dQ=="}};

    assert_authorization(aladdin, 2, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    assert_authorization(empty, 2, "Basic dTo=");
    assert_authorization(longer, 2, "Basic dTpwdw==");
}

TEST(prefers_a_token)
{
    static const struct sw_label both[] = {
        {"password", "cHc="}, {"token", "YWJjLmRlZg=="}, {"username", "dQ=="}};
    static const struct sw_label with_line_end[] = {{"token", "YWJjCg=="}};

    assert_authorization(both, 3, "Bearer abc.def");
    assert_authorization(with_line_end, 1, "Bearer abc");
}

TEST(says_which_credentials_are_missing_or_cannot_be_sent)
{
    static const struct sw_label user[] = {{"username", "dQ=="}};
    static const struct sw_label colon[] = {{"password", "cHc="}, {"username", "YTpi"}};
    static const struct sw_label no_token[] = {{"token", ""}};
    static const struct sw_label two_lines[] = {{"token", "YQpi"}};

    assert_no_authorization(NULL, 0, "token, or username and password");
    assert_no_authorization(user, 1, "token, or username and password");
    assert_no_authorization(colon, 2, "colon");
    assert_no_authorization(no_token, 1, "token is empty");
    assert_no_authorization(two_lines, 1, "no header can carry");
}

/* ---- answers ---- */

static int read_answer(int status, const char *body, struct step_value *ret_value,
                       const char **ret_text, const char **ret_why)
{
    const struct sw_fetch_answer answer = {
        .status = status, .why = "", .body = body, .body_len = strlen(body)};

    *ret_why = NULL;
    return step_prometheus_read(&answer, arena, ret_value, ret_text, ret_why);
}

#define VECTOR(values) \
    "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[" values "]}}"
#define SAMPLE(value) "{\"metric\":{\"a\":\"b\"},\"value\":[1435781451.781,\"" value "\"]}"

static void assert_value(const char *body, double want, const char *text, size_t count)
{
    struct step_value value;
    const char *said = NULL;
    const char *why = NULL;

    if (read_answer(200, body, &value, &said, &why))
        fail_msg("%s: %s", body, why);
    assert_true(value.number == want);
    assert_string_equal(value.text, text);
    assert_string_equal(said, text);
    assert_int_equal(value.count, count);
}

static void assert_no_value(int status, const char *body, const char *text, const char *want)
{
    struct step_value value;
    const char *said = NULL;
    const char *why = NULL;

    assert_int_equal(read_answer(status, body, &value, &said, &why), -EINVAL);
    assert_string_equal(said, text);
    if (!strstr(why, want))
        fail_msg("\"%s\" is not in \"%s\"", want, why);
}

TEST(reads_a_vector)
{
    assert_value(VECTOR(SAMPLE("0.52")), 0.52, "0.52", 1);
    assert_value(VECTOR(SAMPLE("-1e-05")), -1e-05, "-1e-05", 1);
    assert_value(VECTOR(SAMPLE("100")), 100, "100", 1);
}

TEST(reads_a_scalar)
{
    assert_value(
        "{\"status\":\"success\",\"data\":{\"resultType\":\"scalar\",\"result\":[1,\"2.5\"]}}", 2.5,
        "2.5", 1);
}

TEST(takes_the_last_of_several_values)
{
    assert_value(VECTOR(SAMPLE("1") "," SAMPLE("NaN") "," SAMPLE("3")), 3, "3", 3);
    assert_no_value(200, VECTOR(SAMPLE("1") "," SAMPLE("NaN")), "NaN", "NaN");
}

TEST(says_that_there_is_no_value)
{
    assert_no_value(200, VECTOR(""), "", "the query yields no value");
    assert_no_value(200, VECTOR(SAMPLE("NaN")), "NaN", "the query yields NaN");
    assert_no_value(200, VECTOR(SAMPLE("+Inf")), "+Inf", "infinite");
    assert_no_value(200, VECTOR(SAMPLE("-Inf")), "-Inf", "infinite");
    assert_no_value(200, VECTOR(SAMPLE("1e999")), "1e999", "larger than any number");
}

TEST(says_what_the_query_yields_instead)
{
    assert_no_value(200,
                    "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{"
                    "\"metric\":{},\"values\":[[1,\"2\"]]}]}}",
                    "", "yields a matrix");
    assert_no_value(
        200, "{\"status\":\"success\",\"data\":{\"resultType\":\"string\",\"result\":[1,\"a\"]}}",
        "", "yields a string");
}

TEST(passes_on_what_prometheus_says)
{
    assert_no_value(400,
                    "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"1:5: parse "
                    "error\"}",
                    "", "HTTP 400: bad_data: 1:5: parse error");
    assert_no_value(200, "{\"status\":\"error\"}", "", "HTTP 200: error: ");
    assert_no_value(503, "", "", "HTTP 503");
    assert_no_value(502, "<html>\n<h1>Bad\tGateway</h1>", "",
                    "HTTP 502: <html> <h1>Bad Gateway</h1>");
    assert_no_value(404, VECTOR(SAMPLE("1")), "", "HTTP 404: {");
    assert_no_value(302, "", "", "HTTP 302");
}

TEST(says_that_it_is_not_prometheus)
{
    static const char *const bodies[] = {
        "",
        "hello",
        "[]",
        "null",
        "{}",
        "{\"status\":1}",
        "{\"status\":\"success\"",
        "{\"status\":\"success\"}",
        "{\"status\":\"success\",\"data\":[]}",
        "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\"}}",
        "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":{}}}",
        "{\"status\":\"success\",\"data\":{\"resultType\":1,\"result\":[]}}",
        VECTOR("1"),
        VECTOR("{}"),
        VECTOR("{\"value\":[]}"),
        VECTOR("{\"value\":[1]}"),
        VECTOR("{\"value\":[1,2]}"),
        VECTOR("{\"value\":\"1\"}"),
        VECTOR("{\"histogram\":[1,{\"count\":\"3\"}]}"),
    };

    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
        assert_no_value(200, bodies[i], "", "not an answer of Prometheus");
}

TEST(reads_no_number_that_prometheus_does_not_write)
{
    static const char *const texts[] = {"",   "0x10", "1 ", " 1", "1,5",   "nan(1)", "--1",
                                        "1e", "e",    ".",  "+",  "1.2.3", "in",     "infinit"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_no_value(200, sw_arena_printf(arena, VECTOR(SAMPLE("%s")), texts[i]), texts[i],
                        "the value is no number");
}

TEST(says_why_there_is_no_answer)
{
    const struct sw_fetch_answer answer = {.why = "no answer within 10 s", .body = ""};
    struct step_value value;
    const char *text = NULL;
    const char *why = NULL;

    assert_int_equal(step_prometheus_read(&answer, arena, &value, &text, &why), -EINVAL);
    assert_string_equal(why, "no answer within 10 s");
    assert_string_equal(text, "");
}

TEST(says_no_more_than_the_first_words_of_a_body)
{
    char body[1000];

    memset(body, 'x', sizeof(body));
    assert_int_equal(strlen(step_body_words(arena, body, sizeof(body))), 200);
    memcpy(body + 199, "\xc3\xa4", 2);
    assert_int_equal(strlen(step_body_words(arena, body, sizeof(body))), 199);
    assert_string_equal(step_body_words(arena, " \n a\x01\x7f b \n", 9), "a   b");
    assert_string_equal(step_body_words(arena, "", 0), "");
}

/* ---- ranges ---- */

static bool is_within(double number, bool has_min, double min, bool has_max, double max,
                      const char **ret_why)
{
    const struct step_value value = {.number = number, .text = "V", .count = 1};
    const struct step_measure measure = {
        .has_min = has_min, .min = min, .has_max = has_max, .max = max};

    return step_value_is_within(&value, &measure, arena, ret_why);
}

TEST(takes_both_ends_of_a_range_as_within)
{
    const char *why = NULL;

    assert_true(is_within(1, true, 1, true, 2, &why));
    assert_true(is_within(2, true, 1, true, 2, &why));
    assert_true(is_within(99, true, 1, false, 0, &why));
    assert_true(is_within(-99, false, 0, true, 2, &why));
    assert_null(why);
}

TEST(says_on_which_side_a_value_is_outside)
{
    const struct step_value several = {.number = 3, .text = "3", .count = 4};
    const struct step_measure measure = {.has_max = true, .max = 2.5};
    const char *why = NULL;

    assert_false(is_within(0.5, true, 1, true, 2, &why));
    assert_string_equal(why, "V is less than 1");
    assert_false(is_within(2.5, true, 1, true, 2.25, &why));
    assert_string_equal(why, "V is more than 2.25");
    assert_false(step_value_is_within(&several, &measure, arena, &why));
    assert_string_equal(why, "3 is more than 2.5 (the last of 4 values)");
}

#define IN_ARENA(does_this)                                                             \
    {                                                                                   \
        .name = "provider: " #does_this, .test_func = (does_this), .setup_func = setup, \
        .teardown_func = teardown                                                       \
    }

int main(void)
{
    static const struct CMUnitTest tests[] = {
        IN_ARENA(asks_below_the_path_of_the_address),
        IN_ARENA(keeps_the_query_and_the_user_of_the_address),
        IN_ARENA(escapes_the_query),
        IN_ARENA(fills_the_query_in),
        IN_ARENA(gives_the_interval_in_one_unit_of_promql),
        IN_ARENA(names_the_field_that_is_wrong),
        IN_ARENA(takes_everything_from_the_metric_template),
        IN_ARENA(lets_a_secret_go_before_an_authorization_among_the_headers),
        IN_ARENA(reads_the_secret_of_its_own_namespace),
        IN_ARENA(takes_a_template_without_a_type_for_prometheus),
        IN_ARENA(names_the_metric_template_that_is_wrong),
        IN_ARENA(bounds_the_headers),
        IN_ARENA(makes_basic_authentication_of_username_and_password),
        IN_ARENA(prefers_a_token),
        IN_ARENA(says_which_credentials_are_missing_or_cannot_be_sent),
        IN_ARENA(reads_a_vector),
        IN_ARENA(reads_a_scalar),
        IN_ARENA(takes_the_last_of_several_values),
        IN_ARENA(says_that_there_is_no_value),
        IN_ARENA(says_what_the_query_yields_instead),
        IN_ARENA(passes_on_what_prometheus_says),
        IN_ARENA(says_that_it_is_not_prometheus),
        IN_ARENA(reads_no_number_that_prometheus_does_not_write),
        IN_ARENA(says_why_there_is_no_answer),
        IN_ARENA(says_no_more_than_the_first_words_of_a_body),
        IN_ARENA(takes_both_ends_of_a_range_as_within),
        IN_ARENA(says_on_which_side_a_value_is_outside),
    };
    return RUN(tests);
}
