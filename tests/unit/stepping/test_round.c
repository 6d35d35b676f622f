/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounds in a core on virtual time: what is asked of whom, what comes of it, and what is left when
 * a round, a SteppedRollout or the module ends in the middle.
 */
#include <errno.h>

#include "base/error.h"

#include "../runtime/fixture.h"
#include "../test.h"
#include "metric_template.h"
#include "round.h"
#include "sample.h"

#include <slipway/watch.h>

#define YES                                                                                        \
    "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{\"value\":[1,\"0\"]" \
    "}]}}"
#define NO                                                                                       \
    "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{\"value\":[1,\"0." \
    "5\"]}]}}"

struct stage {
    struct fixture f;
    struct made_up made_up;
    struct step_rounds *rounds;
    struct step_runner *runner;
    struct sample s;
    struct step_round_order order;
    bool starts_again, frees_runner;

    unsigned ends;
    char checks_seen[256]; /* by on_check: "a+ b- " */
    /* Of the last result. */
    enum step_round_type type;
    bool has_passed;
    char checks[256];                                       /* "a+ b- " */
    char type_text[64], value[64], range[64], message[256]; /* of the last check */
    char failed[256], words[1024], rollback_by[64];
    int64_t at_us;
};

static void note_check(char *text, size_t size, const struct step_check *check)
{
    size_t len = strlen(text);

    snprintf(text + len, size - len, "%s%s ", check->name, check->has_passed ? "+" : "-");
}

static void on_check(struct sw_instance *self, void *arg, const struct step_check *check,
                     uint64_t took_ms)
{
    struct stage *stage = arg;

    (void)self;
    (void)took_ms;
    note_check(stage->checks_seen, sizeof(stage->checks_seen), check);
}

static void on_end(struct sw_instance *self, void *arg, const struct step_round_result *result)
{
    struct stage *stage = arg;

    assert_ptr_equal(self, stage->made_up.self);
    assert_false(step_runner_is_busy(stage->runner));
    stage->ends++;
    stage->type = result->type;
    stage->has_passed = result->has_passed;
    stage->checks[0] = 0;
    for (size_t i = 0; i < result->check_count; i++) {
        note_check(stage->checks, sizeof(stage->checks), &result->checks[i]);
        snprintf(stage->value, sizeof(stage->value), "%s", result->checks[i].value);
        snprintf(stage->type_text, sizeof(stage->type_text), "%s", result->checks[i].type);
        snprintf(stage->range, sizeof(stage->range), "%s", result->checks[i].range);
        snprintf(stage->message, sizeof(stage->message), "%s", result->checks[i].message);
        stage->at_us = result->checks[i].at_us;
    }
    snprintf(stage->failed, sizeof(stage->failed), "%s", result->failed);
    snprintf(stage->words, sizeof(stage->words), "%s", result->words);
    snprintf(stage->rollback_by, sizeof(stage->rollback_by), "%s", result->rollback_by);
    if (stage->starts_again) {
        stage->starts_again = false;
        assert_int_equal(step_runner_start(stage->runner, &stage->order), 0);
    }
    if (stage->frees_runner)
        stage->runner = step_runner_free(stage->runner);
}

static int start(struct sw_instance *self, void *arg)
{
    struct stage *stage = arg;
    const struct sw_watch_options options = {.is_optional = true};

    stage->rounds = step_rounds_new(self);
    stage->runner = step_runner_new(stage->rounds, on_end, on_check, stage);
    return sw_watch(self, &step_metric_template_kind, &options);
}

static void stop(struct sw_instance *self, void *arg)
{
    struct stage *stage = arg;

    (void)self;
    stage->rounds = step_rounds_free(stage->rounds);
}

#define TEMPLATE                                                                                  \
    "{\"metadata\":{\"namespace\":\"flagger\",\"name\":\"errors\",\"uid\":\"u\","                 \
    "\"resourceVersion\":\"5\"},\"spec\":{\"provider\":{\"type\":\"prometheus\",\"address\":"     \
    "\"http://p:9090\",\"secretRef\":{\"name\":\"login\"},\"headers\":{\"X-Scope-OrgID\":[\"t\"]" \
    "}},\"query\":\"errors{ns=\\\"{{ namespace }}\\\"}\"}}"

static struct stage *begin(void)
{
    struct stage *stage = calloc(1, sizeof(*stage));

    stage->made_up = (struct made_up){.start = start, .arg = stage, .stop = stop};
    fixture_init(&stage->f, NULL);
    fixture_add(&stage->f, &module_one, &stage->made_up);
    fixture_open(&stage->f);
    fake_answer(fake_the(stage->f.transport, "/metrictemplates?limit="), 200, NULL,
                "{\"kind\":\"MetricTemplateList\",\"apiVersion\":\"flagger.app/v1beta1\","
                "\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[" TEMPLATE "]}");
    fake_head(fake_the(stage->f.transport, "/metrictemplates?watch="), 200, NULL);
    fixture_turn(&stage->f);
    sample_init(&stage->s);
    stage->order = (struct step_round_order){
        .type = STEP_ROUND_ANALYSIS,
        .spec = &stage->s.spec,
        .phase = "Progressing",
        .checksum = "0123",
    };
    return stage;
}

static void end(struct stage *stage)
{
    fixture_done(&stage->f);
    assert_null(stage->rounds);
    free(stage);
}

static void go(struct stage *stage)
{
    unsigned before = stage->ends;

    assert_int_equal(step_runner_start(stage->runner, &stage->order), 0);
    assert_int_equal(stage->ends, before);
    fixture_turn(&stage->f);
}

static void pass_time(struct stage *stage, uint64_t ms)
{
    sw_loop_virtual_advance(stage->f.loop, ms);
}

static struct fake_fetch *asked(struct stage *stage, const char *text)
{
    return fake_fetch_the(stage->f.fetcher, text);
}

static void answer(struct stage *stage, const char *text, int status, const char *body)
{
    fake_fetch_answer(asked(stage, text), status, NULL, body);
}

/* ---- metrics ---- */

TEST(passes_when_every_metric_is_within_its_range)
{
    struct stage *stage = begin();

    sample_metric(&stage->s, "errors", "http://a", "one{ns=\"{{ namespace }}\"}");
    sample_metric(&stage->s, "latency", "http://b/x", "two");
    go(stage);
    assert_true(step_runner_is_busy(stage->runner));
    struct fake_fetch *one = asked(stage, "//a/");
    assert_string_equal(one->method, "GET");
    assert_string_equal(one->url, "http://a/api/v1/query?query=one%7Bns%3D%22shop%22%7D");
    answer(stage, "//b/x/api/v1/query?query=two", 200, YES);
    assert_int_equal(stage->ends, 0);
    assert_string_equal(stage->checks_seen, "latency+ ");
    fake_fetch_answer(one, 200, NULL, YES);
    assert_int_equal(stage->ends, 1);
    assert_int_equal(stage->type, STEP_ROUND_ANALYSIS);
    assert_true(stage->has_passed);
    assert_string_equal(stage->checks, "errors+ latency+ ");
    assert_string_equal(stage->type_text, "metric");
    assert_string_equal(stage->value, "0");
    assert_string_equal(stage->range, "<= 0.01");
    assert_string_equal(stage->failed, "");
    assert_string_equal(stage->words, "");
    assert_string_equal(stage->rollback_by, "");
    assert_true(stage->at_us > 0);
    end(stage);
}

TEST(says_value_and_range_of_what_failed)
{
    struct stage *stage = begin();

    sample_metric(&stage->s, "errors", "http://a", "one");
    sample_metric(&stage->s, "other", "http://b", "two{{ pod }}");
    go(stage);
    answer(stage, "//a/", 200, NO);
    assert_false(stage->has_passed);
    assert_string_equal(stage->checks, "errors- other- ");
    assert_string_equal(stage->failed, "errors, other");
    assert_non_null(strstr(stage->words,
                           "errors: 0.5 is more than 0.01; other: query: {{ pod }} is "
                           "unknown"));
    end(stage);
}

TEST(fails_a_check_whose_provider_hangs_and_keeps_the_others)
{
    struct stage *stage = begin();

    sample_metric(&stage->s, "hangs", "http://a", "one");
    sample_metric(&stage->s, "fine", "http://b", "two");
    go(stage);
    answer(stage, "//b/", 200, YES);
    pass_time(stage, STEP_CHECK_TIMEOUT_MS - 1);
    assert_int_equal(stage->ends, 0);
    pass_time(stage, 1);
    assert_int_equal(stage->ends, 1);
    assert_string_equal(stage->checks, "hangs- fine+ ");
    assert_non_null(strstr(stage->words, "hangs: http://a: no answer within 10 s"));
    end(stage);
}

TEST(does_not_show_the_password_of_an_address)
{
    struct stage *stage = begin();

    sample_metric(&stage->s, "m", "http://user:secret@a", "one");
    go(stage);
    fake_fetch_break(asked(stage, "//a/"), -ECONNREFUSED);
    assert_string_equal(stage->checks, "m- ");
    assert_non_null(strstr(stage->words, "m: http://a: "));
    assert_null(strstr(stage->words, "secret"));
    end(stage);
}

TEST(fails_on_an_answer_that_is_too_long)
{
    struct stage *stage = begin();
    char *much = malloc((10 << 20) + 1);

    memset(much, ' ', 10 << 20);
    much[10 << 20] = 0;
    sample_metric(&stage->s, "m", "http://a", "one");
    go(stage);
    answer(stage, "//a/", 200, much);
    assert_string_equal(stage->checks, "m- ");
    assert_non_null(strstr(stage->words, "longer than 1048576 bytes"));
    free(much);
    end(stage);
}

/* ---- templates and Secrets ---- */

#define SECRET(data)                                                                      \
    "{\"kind\":\"Secret\",\"apiVersion\":\"v1\",\"metadata\":{\"namespace\":\"flagger\"," \
    "\"name\":\"login\",\"resourceVersion\":\"3\"},\"data\":{" data "}}"

static struct fake_request *secret(struct stage *stage)
{
    return fake_the(stage->f.transport, "/api/v1/namespaces/flagger/secrets/login");
}

static struct stage *begin_with_template(void)
{
    struct stage *stage = begin();
    struct step_metric *metric = sample_metric(&stage->s, "m", "", "");

    metric->template_name = "errors";
    metric->template_namespace = "flagger";
    return stage;
}

TEST(asks_with_the_credentials_of_the_template)
{
    struct stage *stage = begin_with_template();

    go(stage);
    assert_int_equal(fake_fetch_open_count(stage->f.fetcher), 0);
    fake_answer(secret(stage), 200, NULL, SECRET("\"token\":\"YWJj\""));
    struct fake_fetch *query = asked(stage, "//p:9090/");
    assert_string_equal(query->url, "http://p:9090/api/v1/query?query=errors%7Bns%3D%22shop%22%7D");
    assert_string_equal(fake_fetch_field(query, "Authorization"), "Bearer abc");
    assert_string_equal(fake_fetch_field(query, "X-Scope-OrgID"), "t");
    fake_fetch_answer(query, 200, NULL, YES);
    assert_true(stage->has_passed);
    assert_false(fake_log_has(&stage->f.log, "abc"));
    end(stage);
}

TEST(has_one_timeout_for_the_secret_and_the_query)
{
    struct stage *stage = begin_with_template();

    go(stage);
    pass_time(stage, 6000);
    fake_answer(secret(stage), 200, NULL, SECRET("\"token\":\"YWJj\""));
    pass_time(stage, 3999);
    assert_int_equal(stage->ends, 0);
    pass_time(stage, 1);
    assert_int_equal(stage->ends, 1);
    assert_string_equal(stage->checks, "m- ");
    assert_non_null(strstr(stage->words, "m: http://p:9090: no answer within"));
    end(stage);
}

TEST(says_what_is_wrong_with_the_secret)
{
    static const struct {
        int status;
        const char *body, *want;
    } cases[] = {
        {404, "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"code\":404,\"message\":\"gone\"}",
         "m: Secret flagger/login: there is none"},
        {403,
         "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"code\":403,\"message\":\"you may not\"}",
         "m: Secret flagger/login: you may not"},
        {200, SECRET("\"username\":\"dQ==\""),
         "m: Secret flagger/login: it needs token, or username and password"},
        {200, SECRET("\"token\":\"YQpi\""), "m: Secret flagger/login: its token is empty, or"},
    };
    struct stage *stage = begin_with_template();

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        go(stage);
        fake_answer(secret(stage), cases[i].status, NULL, cases[i].body);
        assert_int_equal(stage->ends, i + 1);
        if (!strstr(stage->words, cases[i].want))
            fail_msg("\"%s\" is not in \"%s\"", cases[i].want, stage->words);
    }
    end(stage);
}

TEST(fails_where_the_api_server_is_silent)
{
    struct stage *stage = begin_with_template();

    go(stage);
    pass_time(stage, STEP_CHECK_TIMEOUT_MS);
    assert_int_equal(stage->ends, 1);
    assert_non_null(strstr(stage->words, "Secret flagger/login: no answer from the API server"));
    /* What comes now finds nobody. */
    struct fake_request *late = fake_find(stage->f.transport, "/secrets/login");
    if (late)
        fake_answer(late, 200, NULL, SECRET("\"token\":\"YWJj\""));
    assert_int_equal(fake_fetch_open_count(stage->f.fetcher), 0);
    assert_int_equal(stage->ends, 1);
    end(stage);
}

TEST(names_the_template_that_is_missing)
{
    struct stage *stage = begin_with_template();

    stage->s.metrics[0].template_namespace = "";
    go(stage);
    assert_int_equal(stage->ends, 1);
    assert_string_equal(stage->words, "m: MetricTemplate shop/errors: there is none");
    end(stage);
}

/* ---- webhooks ---- */

TEST(posts_to_the_webhooks_of_the_analysis)
{
    static const struct sw_label metadata[] = {{"cmd", "x"}};
    struct stage *stage = begin();
    struct step_webhook *hook = sample_hook(&stage->s, STEP_ROLLOUT, "load", "https://h/load");

    hook->metadata = (struct sw_labels){metadata, 1};
    hook->disable_tls = true;
    stage->s.hooks[0].timeout_ms = 3000;
    sample_hook(&stage->s, STEP_PRE_ROLLOUT, "pre", "https://h/pre");
    sample_hook(&stage->s, STEP_CONFIRM_STEP, "step", "https://h/step");
    sample_hook(&stage->s, STEP_EVENT, "event", "https://h/event");
    go(stage);
    struct fake_fetch *post = asked(stage, "https://");
    assert_string_equal(post->method, "POST");
    assert_string_equal(post->url, "https://h/load");
    assert_string_equal(fake_fetch_field(post, "Content-Type"), "application/json");
    assert_string_equal(post->body,
                        "{\"name\":\"web\",\"namespace\":\"shop\",\"phase\":\"Progressing\","
                        "\"checksum\":\"0123\",\"metadata\":{\"cmd\":\"x\"}}");
    assert_true(post->insecure_skip_verify);
    fake_fetch_answer(post, 202, NULL, "");
    assert_true(stage->has_passed);
    assert_string_equal(stage->checks, "load+ ");
    assert_string_equal(stage->type_text, "sample");
    assert_string_equal(stage->value, "202");
    assert_string_equal(stage->range, "2xx");
    end(stage);
}

TEST(asks_in_each_round_whom_it_is_for)
{
    static const struct {
        enum step_hook_type hook;
        enum step_round_type round;
    } pairs[] = {
        {STEP_CONFIRM_ROLLOUT, STEP_ROUND_CONFIRM_ROLLOUT},
        {STEP_PRE_ROLLOUT, STEP_ROUND_PRE_ROLLOUT},
        {STEP_ROLLOUT, STEP_ROUND_ANALYSIS},
        {STEP_CONFIRM_STEP, STEP_ROUND_CONFIRM_STEP},
        {STEP_CONFIRM_PROMOTION, STEP_ROUND_CONFIRM_PROMOTION},
        {STEP_POST_ROLLOUT, STEP_ROUND_POST_ROLLOUT},
    };
    static const char *const urls[] = {"http://h/0", "http://h/1", "http://h/2",
                                       "http://h/3", "http://h/4", "http://h/5"};
    struct stage *stage = begin();

    for (size_t i = 0; i < 6; i++)
        sample_hook(&stage->s, pairs[i].hook, urls[i], urls[i]);
    sample_hook(&stage->s, STEP_EVENT, "event", "http://h/event");
    sample_metric(&stage->s, "m", "http://p", "up");
    for (size_t i = 0; i < 6; i++) {
        stage->order.type = pairs[i].round;
        go(stage);
        if (pairs[i].round == STEP_ROUND_ANALYSIS)
            answer(stage, "//p/", 200, YES);
        assert_string_equal(asked(stage, "//h/")->url, urls[i]);
        answer(stage, "//h/", 200, "");
        assert_int_equal(stage->ends, i + 1);
        assert_int_equal(stage->type, pairs[i].round);
        assert_true(stage->has_passed);
    }
    end(stage);
}

TEST(says_who_refuses)
{
    struct stage *stage = begin();

    stage->order.type = STEP_ROUND_CONFIRM_ROLLOUT;
    stage->order.phase = "Waiting";
    sample_hook(&stage->s, STEP_CONFIRM_ROLLOUT, "gate", "http://h/gate");
    sample_hook(&stage->s, STEP_CONFIRM_ROLLOUT, "boss", "http://h/boss");
    go(stage);
    assert_non_null(strstr(asked(stage, "boss")->body, "\"phase\":\"Waiting\""));
    answer(stage, "boss", 403, "not before nine");
    answer(stage, "gate", 200, "");
    assert_false(stage->has_passed);
    assert_string_equal(stage->checks, "gate+ boss- ");
    assert_string_equal(stage->failed, "boss");
    assert_string_equal(stage->words, "boss: HTTP 403: not before nine");
    assert_string_equal(stage->value, "403");
    end(stage);
}

TEST(asks_a_webhook_again_as_often_as_it_may)
{
    struct stage *stage = begin();

    sample_hook(&stage->s, STEP_ROLLOUT, "h", "http://h")->retries = 2;
    go(stage);
    answer(stage, "//h", 503, "");
    pass_time(stage, 999);
    assert_int_equal(fake_fetch_open_count(stage->f.fetcher), 0);
    pass_time(stage, 1);
    fake_fetch_break(asked(stage, "//h"), -ECONNRESET);
    pass_time(stage, 2000);
    assert_int_equal(stage->ends, 0);
    answer(stage, "//h", 500, "broken");
    assert_int_equal(stage->ends, 1);
    assert_string_equal(stage->words, "h: HTTP 500: broken");
    assert_int_equal(stage->f.fetcher->count, 3);
    end(stage);
}

TEST(gives_each_attempt_the_whole_timeout)
{
    struct stage *stage = begin();

    sample_hook(&stage->s, STEP_ROLLOUT, "h", "http://h")->retries = 1;
    stage->s.hooks[0].timeout_ms = 5000;
    go(stage);
    pass_time(stage, 5000);
    pass_time(stage, 1000);
    pass_time(stage, 4999);
    assert_int_equal(stage->ends, 0);
    answer(stage, "//h", 200, "");
    assert_true(stage->has_passed);
    end(stage);
}

TEST(does_not_ask_again_after_a_no)
{
    struct stage *stage = begin();

    sample_hook(&stage->s, STEP_ROLLOUT, "h", "http://h")->retries = 5;
    go(stage);
    answer(stage, "//h", 404, "");
    assert_int_equal(stage->ends, 1);
    assert_string_equal(stage->words, "h: HTTP 404");
    end(stage);
}

TEST(fails_a_webhook_whose_url_is_none)
{
    struct stage *stage = begin();

    sample_hook(&stage->s, STEP_ROLLOUT, "h", "not a url");
    go(stage);
    assert_int_equal(stage->ends, 1);
    assert_string_equal(stage->checks, "h- ");
    end(stage);
}

/* ---- rollback ---- */

TEST(ends_at_once_when_a_webhook_asks_for_a_rollback)
{
    struct stage *stage = begin();

    sample_metric(&stage->s, "fine", "http://a", "one");
    sample_metric(&stage->s, "hangs", "http://b", "two");
    sample_hook(&stage->s, STEP_ROLLBACK_HOOK, "undo", "http://h");
    go(stage);
    answer(stage, "//a/", 200, YES);
    struct fake_fetch *hanging = asked(stage, "//b/");
    answer(stage, "//h", 200, "");
    assert_int_equal(stage->ends, 1);
    assert_true(hanging->was_cancelled);
    assert_false(stage->has_passed);
    assert_string_equal(stage->rollback_by, "undo");
    assert_string_equal(stage->checks, "fine+ undo- ");
    assert_string_equal(stage->words, "undo: asks for a rollback");
    assert_string_equal(stage->checks_seen, "fine+ undo- ");
    end(stage);
}

TEST(takes_everything_but_a_2xx_for_no_rollback)
{
    struct stage *stage = begin();

    stage->order.type = STEP_ROUND_CONFIRM_PROMOTION;
    sample_hook(&stage->s, STEP_ROLLBACK_HOOK, "undo", "http://h/a");
    sample_hook(&stage->s, STEP_ROLLBACK_HOOK, "dead", "http://h/b");
    go(stage);
    answer(stage, "//h/a", 403, "");
    fake_fetch_break(asked(stage, "//h/b"), -ECONNREFUSED);
    assert_int_equal(stage->ends, 1);
    assert_true(stage->has_passed);
    assert_string_equal(stage->checks, "");
    assert_string_equal(stage->checks_seen, "");
    end(stage);
}

TEST(asks_nobody_for_a_rollback_after_the_rollout)
{
    struct stage *stage = begin();

    stage->order.type = STEP_ROUND_POST_ROLLOUT;
    sample_hook(&stage->s, STEP_ROLLBACK_HOOK, "undo", "http://h/a");
    go(stage);
    assert_int_equal(stage->f.fetcher->count, 0);
    assert_int_equal(stage->ends, 1);
    assert_true(stage->has_passed);
    end(stage);
}

/* ---- Pods ---- */

#define PODS "/api/v1/namespaces/shop/pods?"

static struct stage *begin_with_pods(void)
{
    struct stage *stage = begin();

    stage->s.spec.has_pods = true;
    stage->order.pod_selector = "app=web,pod-template-hash=5";
    return stage;
}

#define POD(name, owner, restarts, since)                                                         \
    "{\"metadata\":{\"namespace\":\"shop\",\"name\":\"" name "\",\"uid\":\"" name                 \
    "\",\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"r\"," \
    "\"controller\":true,\"uid\":\"" owner "\"}]},\"status\":{\"phase\":\"Running\","             \
    "\"startTime\":\"2020-01-01T00:00:00Z\",\"conditions\":[{\"type\":\"Ready\",\"status\":"      \
    "\"True\",\"lastTransitionTime\":\"" since "\"}],\"containerStatuses\":[{\"name\":\"app\","   \
    "\"restartCount\":" restarts ",\"ready\":true}]}}"
#define POD_LIST(items)                                                              \
    "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":" \
    "\"1\"},\"items\":[" items "]}"

TEST(looks_at_the_new_pods)
{
    struct stage *stage = begin_with_pods();

    stage->order.pod_owner_uid = "mine";
    go(stage);
    struct fake_request *list = fake_the(stage->f.transport, PODS);
    assert_string_equal(fake_query(list, "labelSelector"), "app=web,pod-template-hash=5");
    fake_answer(list, 200, NULL,
                POD_LIST(POD("a", "mine", "2", "2020-01-01T00:00:09Z") "," POD(
                    "b", "other", "9", "2020-01-01T00:00:09Z")));
    assert_int_equal(stage->ends, 1);
    assert_string_equal(stage->checks, "pods/maxRestarts- pods/maxUnready+ ");
    assert_string_equal(stage->type_text, "pods");
    assert_string_equal(stage->words,
                        "pods/maxRestarts: new Pods were restarted 2 times, container app of a 2 "
                        "times");
    end(stage);
}

TEST(remembers_pods_from_round_to_round_of_one_template)
{
    struct stage *stage = begin_with_pods();
    static const char *const since[] = {
        POD_LIST(POD("a", "r", "0", "2020-01-01T00:00:09Z")),
        POD_LIST(POD("a", "r", "0", "2020-01-01T00:01:09Z")),
        POD_LIST(POD("a", "r", "0", "2020-01-01T00:01:09Z")),
        POD_LIST(POD("a", "r", "0", "2020-01-01T00:02:09Z")),
    };

    for (int i = 0; i < 4; i++) {
        stage->order.checksum = i == 3 ? "another" : "0123";
        go(stage);
        fake_answer(fake_the(stage->f.transport, PODS), 200, NULL, since[i]);
        assert_string_equal(stage->value, i == 0 || i == 3 ? "0s" : "1s");
    }
    end(stage);
}

TEST(fails_where_pods_cannot_be_listed)
{
    struct stage *stage = begin_with_pods();

    go(stage);
    fake_answer(fake_the(stage->f.transport, PODS), 403, NULL,
                "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"code\":403,\"message\":\"no\"}");
    assert_string_equal(stage->message, "the Pods cannot be listed: no");
    assert_string_equal(stage->checks, "pods/maxRestarts- pods/maxUnready- ");
    stage->order.pod_selector = NULL;
    go(stage);
    assert_string_equal(stage->message, "it is not known yet which Pods are the new ones");
    stage->order.pod_selector = "";
    go(stage);
    assert_string_equal(stage->message, "it is not known yet which Pods are the new ones");
    stage->order.pod_selector = "=";
    go(stage);
    assert_string_equal(stage->message, "the selector of the new Pods is none");
    stage->order.pod_selector = "a";
    go(stage);
    pass_time(stage, STEP_CHECK_TIMEOUT_MS);
    assert_int_equal(stage->ends, 5);
    assert_non_null(strstr(stage->message, "no answer from the API server in time"));
    assert_true(stage->at_us > 0);
    end(stage);
}

TEST(does_not_look_at_pods_outside_of_the_analysis)
{
    struct stage *stage = begin_with_pods();

    stage->order.type = STEP_ROUND_CONFIRM_STEP;
    go(stage);
    assert_null(fake_find(stage->f.transport, PODS));
    assert_int_equal(stage->ends, 1);
    end(stage);
}

/* ---- rounds ---- */

TEST(ends_a_round_without_questions_as_passed)
{
    struct stage *stage = begin();

    go(stage);
    assert_int_equal(stage->ends, 1);
    assert_true(stage->has_passed);
    assert_string_equal(stage->checks, "");
    end(stage);
}

TEST(runs_one_round_at_a_time)
{
    struct stage *stage = begin();

    sample_metric(&stage->s, "m", "http://a", "one");
    go(stage);
    assert_int_equal(step_runner_start(stage->runner, &stage->order), -EBUSY);
    assert_int_equal(stage->f.fetcher->count, 1);
    answer(stage, "//a/", 200, YES);
    assert_int_equal(stage->ends, 1);
    end(stage);
}

TEST(starts_another_round_from_the_end_of_one)
{
    struct stage *stage = begin();

    sample_metric(&stage->s, "m", "http://a", "one");
    stage->starts_again = true;
    go(stage);
    answer(stage, "//a/", 200, YES);
    assert_int_equal(stage->ends, 1);
    assert_true(step_runner_is_busy(stage->runner));
    answer(stage, "//a/", 200, NO);
    assert_int_equal(stage->ends, 2);
    assert_false(stage->has_passed);
    end(stage);
}

TEST(lets_its_runner_be_freed_from_the_end_of_a_round)
{
    struct stage *stage = begin();

    sample_metric(&stage->s, "m", "http://a", "one");
    stage->frees_runner = true;
    go(stage);
    answer(stage, "//a/", 200, YES);
    assert_int_equal(stage->ends, 1);
    end(stage);
}

/* One of each, under way. */
static struct stage *begin_in_the_middle(void)
{
    struct stage *stage = begin_with_template();

    stage->s.spec.has_pods = true;
    stage->order.pod_selector = "a";
    sample_metric(&stage->s, "n", "http://a", "one");
    sample_hook(&stage->s, STEP_ROLLOUT, "h", "http://h")->retries = 1;
    sample_hook(&stage->s, STEP_ROLLOUT, "again", "http://again")->retries = 1;
    sample_hook(&stage->s, STEP_ROLLBACK_HOOK, "undo", "http://undo");
    go(stage);
    answer(stage, "//again", 500, "");
    assert_int_equal(stage->ends, 0);
    return stage;
}

static void assert_quiet(struct stage *stage)
{
    struct fake_request *pods = fake_find(stage->f.transport, PODS);
    struct fake_request *login = fake_find(stage->f.transport, "/secrets/login");

    assert_int_equal(fake_fetch_open_count(stage->f.fetcher), 0);
    if (pods)
        fake_answer(pods, 200, NULL, POD_LIST(POD("a", "r", "0", "2020-01-01T00:00:09Z")));
    if (login)
        fake_answer(login, 200, NULL, SECRET("\"token\":\"YWJj\""));
    pass_time(stage, 100000);
    assert_int_equal(fake_fetch_open_count(stage->f.fetcher), 0);
    assert_int_equal(stage->ends, 0);
}

TEST(is_silent_after_it_was_cancelled)
{
    struct stage *stage = begin_in_the_middle();

    step_runner_cancel(stage->runner);
    step_runner_cancel(stage->runner);
    assert_false(step_runner_is_busy(stage->runner));
    assert_quiet(stage);
    sample_init(&stage->s);
    go(stage);
    assert_int_equal(stage->ends, 1);
    end(stage);
}

TEST(cancels_a_round_that_has_nothing_to_ask)
{
    struct stage *stage = begin();

    assert_int_equal(step_runner_start(stage->runner, &stage->order), 0);
    step_runner_cancel(stage->runner);
    fixture_turn(&stage->f);
    assert_int_equal(stage->ends, 0);
    end(stage);
}

TEST(is_silent_after_its_runner_was_freed)
{
    struct stage *stage = begin_in_the_middle();

    stage->runner = step_runner_free(stage->runner);
    assert_null(step_runner_free(stage->runner));
    assert_quiet(stage);
    end(stage);
}

TEST(leaves_nothing_behind_when_the_module_stops_in_the_middle)
{
    struct stage *stage = begin_in_the_middle();

    sample_hook(&stage->s, STEP_EVENT, "event", "http://event");
    step_rounds_tell(stage->rounds, &stage->s.spec, "Progressing", "0123", false, "hello");
    fixture_turn(&stage->f);
    end(stage);
}

TEST(leaves_nothing_behind_when_the_module_stops_after_a_runner)
{
    struct stage *stage = begin_in_the_middle();

    stage->runner = step_runner_free(stage->runner);
    end(stage);
}

TEST(keeps_rounds_of_several_rollouts_apart)
{
    struct stage *stage = begin();
    struct step_runner *other = step_runner_new(stage->rounds, on_end, NULL, stage);
    struct step_round_order order = stage->order;
    struct sample s;

    sample_init(&s);
    sample_metric(&s, "other", "http://b", "two");
    order.spec = &s.spec;
    sample_metric(&stage->s, "m", "http://a", "one");
    go(stage);
    assert_int_equal(step_runner_start(other, &order), 0);
    fixture_turn(&stage->f);
    step_runner_cancel(stage->runner);
    answer(stage, "//b/", 200, YES);
    assert_int_equal(stage->ends, 1);
    assert_string_equal(stage->checks, "other+ ");
    step_runner_free(other);
    end(stage);
}

TEST(copies_what_it_is_told_to_ask)
{
    struct stage *stage = begin_with_template();
    char name[] = "m";
    char url[] = "http://h";

    stage->s.metrics[0].name = name;
    sample_hook(&stage->s, STEP_ROLLOUT, name, url)->retries = 1;
    assert_int_equal(step_runner_start(stage->runner, &stage->order), 0);
    memset(&stage->s, 0xa5, sizeof(stage->s));
    memset(&stage->order, 0xa5, sizeof(stage->order));
    name[0] = url[0] = 'x';
    fixture_turn(&stage->f);
    answer(stage, "//h", 500, "");
    pass_time(stage, 1000);
    answer(stage, "//h", 200, "");
    fake_answer(secret(stage), 200, NULL, SECRET("\"token\":\"YWJj\""));
    answer(stage, "//p:9090/", 200, NO);
    assert_string_equal(stage->checks, "m- m+ ");
    end(stage);
}

/* ---- events ---- */

TEST(tells_event_webhooks_and_logs_who_did_not_take_it)
{
    struct stage *stage = begin();

    sample_hook(&stage->s, STEP_EVENT, "one", "http://one");
    sample_hook(&stage->s, STEP_EVENT, "two", "http://two");
    sample_hook(&stage->s, STEP_ROLLOUT, "three", "http://three");
    step_rounds_tell(stage->rounds, &stage->s.spec, "Progressing", "0123", true, "it happened");
    fixture_turn(&stage->f);
    assert_int_equal(stage->f.fetcher->count, 2);
    assert_non_null(strstr(asked(stage, "//one")->body,
                           "\"metadata\":{\"eventMessage\":\"it happened\",\"eventType\":"
                           "\"Warning\",\"timestamp\":\""));
    answer(stage, "//one", 200, "");
    assert_false(fake_log_has(&stage->f.log, "did not take"));
    answer(stage, "//two", 500, "a body");
    assert_int_equal(fake_log_count(&stage->f.log, "did not take"), 1);
    assert_true(fake_log_has(&stage->f.log, "shop/web"));
    assert_false(fake_log_has(&stage->f.log, "a body"));
    end(stage);
}

TEST(drops_events_where_too_many_are_on_their_way)
{
    struct stage *stage = begin();

    sample_hook(&stage->s, STEP_EVENT, "one", "http://one");
    for (int i = 0; i < STEP_EVENTS_AT_ONCE + 1; i++)
        step_rounds_tell(stage->rounds, &stage->s.spec, "Progressing", "0123", false, "again");
    assert_int_equal(fake_log_count(&stage->f.log, "too many events"), 1);
    pass_time(stage, 10000);
    step_rounds_tell(stage->rounds, &stage->s.spec, "Progressing", "0123", false, "again");
    fixture_turn(&stage->f);
    answer(stage, "//one", 200, "");
    assert_int_equal(fake_log_count(&stage->f.log, "too many events"), 1);
    end(stage);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("round", passes_when_every_metric_is_within_its_range),
        CASE("round", says_value_and_range_of_what_failed),
        CASE("round", fails_a_check_whose_provider_hangs_and_keeps_the_others),
        CASE("round", does_not_show_the_password_of_an_address),
        CASE("round", fails_on_an_answer_that_is_too_long),
        CASE("round", asks_with_the_credentials_of_the_template),
        CASE("round", has_one_timeout_for_the_secret_and_the_query),
        CASE("round", says_what_is_wrong_with_the_secret),
        CASE("round", fails_where_the_api_server_is_silent),
        CASE("round", names_the_template_that_is_missing),
        CASE("round", posts_to_the_webhooks_of_the_analysis),
        CASE("round", asks_in_each_round_whom_it_is_for),
        CASE("round", says_who_refuses),
        CASE("round", asks_a_webhook_again_as_often_as_it_may),
        CASE("round", gives_each_attempt_the_whole_timeout),
        CASE("round", does_not_ask_again_after_a_no),
        CASE("round", fails_a_webhook_whose_url_is_none),
        CASE("round", ends_at_once_when_a_webhook_asks_for_a_rollback),
        CASE("round", takes_everything_but_a_2xx_for_no_rollback),
        CASE("round", asks_nobody_for_a_rollback_after_the_rollout),
        CASE("round", looks_at_the_new_pods),
        CASE("round", remembers_pods_from_round_to_round_of_one_template),
        CASE("round", fails_where_pods_cannot_be_listed),
        CASE("round", does_not_look_at_pods_outside_of_the_analysis),
        CASE("round", ends_a_round_without_questions_as_passed),
        CASE("round", runs_one_round_at_a_time),
        CASE("round", starts_another_round_from_the_end_of_one),
        CASE("round", lets_its_runner_be_freed_from_the_end_of_a_round),
        CASE("round", is_silent_after_it_was_cancelled),
        CASE("round", cancels_a_round_that_has_nothing_to_ask),
        CASE("round", is_silent_after_its_runner_was_freed),
        CASE("round", leaves_nothing_behind_when_the_module_stops_in_the_middle),
        CASE("round", leaves_nothing_behind_when_the_module_stops_after_a_runner),
        CASE("round", keeps_rounds_of_several_rollouts_apart),
        CASE("round", copies_what_it_is_told_to_ask),
        CASE("round", tells_event_webhooks_and_logs_who_did_not_take_it),
        CASE("round", drops_events_where_too_many_are_on_their_way),
    };
    return RUN(tests);
}
