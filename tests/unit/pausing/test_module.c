/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module whole, in a core on virtual time: a person's wish in slipway.dev/hold, from the watch
 * to the patch, without any policy beside it.
 */
#include <errno.h>

#include <slipway/arbiter.h>
#include <slipway/workloads.h>

#include "base/error.h"

#include "../runtime/fixture.h"
#include "../test.h"

extern const struct sw_module sw_module_pausing;

#define HOLD "\"slipway.dev/hold\":\"database first\""
#define HELD_BY_USER "\"slipway.dev/held-by\":\"user\""

struct stage {
    struct fixture f;
    struct fake_request *watch;
};

static const char *subject(const char *version, const char *annotations, bool is_paused)
{
    static char texts[4][512];
    static unsigned at;
    char *text = texts[at++ % 4];

    snprintf(
        text, sizeof(texts[0]),
        "{\"kind\":\"Deployment\",\"apiVersion\":\"apps/v1\",\"metadata\":{\"namespace\":\"n\","
        "\"name\":\"d\",\"uid\":\"u\",\"resourceVersion\":\"%s\",\"annotations\":{%s}},"
        "\"spec\":{\"replicas\":1,\"paused\":%s,\"template\":{}}}",
        version, annotations, is_paused ? "true" : "false");
    return text;
}

/* The list holds the Deployment as it was while nobody led. */
static struct stage *begin(const char *annotations, bool is_paused)
{
    struct stage *s = calloc(1, sizeof(*s));
    struct sw_error error = {0};

    fixture_init(&s->f, NULL);
    assert_int_equal(sw_core_add(s->f.core, &sw_module_pausing, NULL, &error), 0);
    fixture_open(&s->f);
    s->watch = serve_deployments(&s->f, "10", subject("5", annotations, is_paused));
    return s;
}

static void end(struct stage *s)
{
    fixture_done(&s->f);
    free(s);
}

static void changed(struct stage *s, const char *version, const char *annotations, bool is_paused)
{
    fake_body(s->watch, event("MODIFIED", subject(version, annotations, is_paused)));
    fixture_turn(&s->f);
}

static struct fake_request *patch_of(struct stage *s)
{
    struct fake_request *request = fake_the(s->f.transport, "/namespaces/n/deployments/d?");

    assert_string_equal(request->method, "PATCH");
    return request;
}

static bool is_quiet(struct stage *s)
{
    return fake_find(s->f.transport, "/namespaces/n/deployments/d?") == NULL;
}

static void check_holds(const struct fake_request *patch, const char *version)
{
    char wanted[64];

    snprintf(wanted, sizeof(wanted), "\"resourceVersion\":\"%s\"", version);
    assert_non_null(strstr(patch->body, wanted));
    assert_non_null(strstr(patch->body, "\"paused\":true"));
    assert_non_null(strstr(patch->body, HELD_BY_USER));
}

static void check_lets_go(const struct fake_request *patch)
{
    assert_non_null(strstr(patch->body, "\"paused\":false"));
    assert_non_null(strstr(patch->body, "\"slipway.dev/held-by\":null"));
}

TEST(a_wish_pauses_and_its_end_resumes)
{
    struct stage *s = begin("", false);

    assert_true(is_quiet(s));
    changed(s, "6", HOLD, false);
    check_holds(patch_of(s), "6");
    fake_answer(patch_of(s), 200, NULL, subject("7", HOLD "," HELD_BY_USER, true));
    assert_true(is_quiet(s));
    changed(s, "8", HELD_BY_USER, true);
    check_lets_go(patch_of(s));
    fake_answer(patch_of(s), 200, NULL, subject("9", "", false));
    assert_true(is_quiet(s));
    end(s);
}

TEST(a_wish_of_while_nobody_led_is_found)
{
    struct stage *s = begin(HOLD, false);

    check_holds(patch_of(s), "5");
    end(s);
}

TEST(the_end_of_a_wish_while_nobody_led_is_found)
{
    struct stage *s = begin(HELD_BY_USER, true);

    check_lets_go(patch_of(s));
    end(s);
}

TEST(a_persons_own_pause_stays_as_it_is)
{
    struct stage *s = begin(HOLD, true);

    assert_true(is_quiet(s));
    changed(s, "6", "", true);
    assert_true(is_quiet(s));
    end(s);
}

TEST(a_wish_counts_also_on_the_ignored)
{
    struct stage *s = begin(HOLD ",\"slipway.dev/ignore\":\"true\"", false);

    check_holds(patch_of(s), "5");
    end(s);
}

TEST(whoever_else_holds_goes_on_holding)
{
    struct stage *s = begin("\"slipway.dev/held-by\":\"coordination/web,user\"", true);

    assert_null(strstr(patch_of(s)->body, "\"paused\""));
    assert_non_null(strstr(patch_of(s)->body, "\"slipway.dev/held-by\":\"coordination/web\""));
    end(s);
}

TEST(what_met_a_newer_version_is_decided_on_that)
{
    struct stage *s = begin(HOLD, false);
    struct fake_request *first = patch_of(s);

    changed(s, "6", "", false);
    fake_answer(first, 409, NULL,
                "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\","
                "\"reason\":\"Conflict\",\"code\":409}");
    sw_loop_virtual_advance(s->f.loop, 1000);
    assert_true(is_quiet(s));
    end(s);
}

TEST(a_lost_answer_is_tried_again)
{
    struct stage *s = begin(HOLD, false);

    for (int i = 0; i < 10 && !is_quiet(s); i++)
        fake_break(patch_of(s), -ECONNRESET);
    sw_loop_virtual_advance(s->f.loop, 60000);
    check_holds(patch_of(s), "5");
    end(s);
}

TEST(it_may_stop_during_a_write)
{
    struct stage *s = begin(HOLD, false);

    assert_false(is_quiet(s));
    end(s);
}

TEST(a_wish_counts_also_for_the_kinds_that_others_hold)
{
    const struct sw_kind *const kinds[] = {&sw_kind_stateful_set, &sw_kind_daemon_set};
    const struct sw_label wish = {SW_HOLD_BY_USER, "freeze"};
    struct made_up other = {0};
    struct sw_error error = {0};
    struct sw_arena *arena = sw_arena_new(0);
    struct fixture f;

    fixture_init(&f, NULL);
    assert_int_equal(sw_core_add(f.core, &sw_module_pausing, NULL, &error), 0);
    fixture_add(&f, &module_one, &other);
    for (size_t i = 0; i < 2; i++) {
        struct sw_object object = {.kind = kinds[i], .namespace_ = "n", .name = "d"};
        const struct sw_question question = {.object = &object, .arena = arena};
        struct sw_opinion opinion;
        sw_arbiters_ask_others(other.self, &question, &opinion);
        assert_int_equal(opinion.verdict, SW_VERDICT_FREE);
        object.annotations = (struct sw_labels){&wish, 1};
        sw_arbiters_ask_others(other.self, &question, &opinion);
        assert_int_equal(opinion.verdict, SW_VERDICT_HOLD_OUT_OF_LINE);
        assert_string_equal(opinion.owners, "user");
        assert_string_equal(opinion.words, "freeze");
        assert_false(opinion.has_given_up);
    }
    sw_arena_free(arena);
    fixture_done(&f);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("pausing", a_wish_pauses_and_its_end_resumes),
        CASE("pausing", a_wish_of_while_nobody_led_is_found),
        CASE("pausing", the_end_of_a_wish_while_nobody_led_is_found),
        CASE("pausing", a_persons_own_pause_stays_as_it_is),
        CASE("pausing", a_wish_counts_also_on_the_ignored),
        CASE("pausing", whoever_else_holds_goes_on_holding),
        CASE("pausing", what_met_a_newer_version_is_decided_on_that),
        CASE("pausing", a_lost_answer_is_tried_again),
        CASE("pausing", it_may_stop_during_a_write),
        CASE("pausing", a_wish_counts_also_for_the_kinds_that_others_hold),
    };
    return RUN(tests);
}
