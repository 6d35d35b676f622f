/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module in a core on virtual time, with the hand and another policy beside it: what the other
 * policy says is asked when it says that it has changed, and what is written is what both say.
 */
#include <slipway/arbiter.h>
#include <slipway/json.h>

#include "base/error.h"

#include "../runtime/fixture.h"
#include "../test.h"
#include "shell.h"

extern const struct sw_module sw_module_pausing, sw_module_coordination;

#define HELD \
    "\"slipway.dev/coordinated-by\":\"a\",\"slipway.dev/held-by\":\"coordination/a,stepping/x\""

struct stage {
    struct fixture f;
    struct made_up made_up;
    enum sw_verdict verdict;
    int version;
};

static void ask(struct sw_instance *self, const struct sw_question *question,
                struct sw_opinion *opinion)
{
    const struct stage *s = (*(struct made_up **)sw_state(self))->arg;

    (void)question;
    opinion->is_selected = opinion->rests_running = true;
    opinion->owners = opinion->marks = "stepping/x";
    opinion->verdict = s->verdict;
}

static int start(struct sw_instance *self, void *arg)
{
    (void)arg;
    return sw_arbiter_register(self, &sw_kind_deployment, ask);
}

/* Two of two Pods are of an older template. */
static const char *subject(struct stage *s, const char *annotations, bool is_paused)
{
    static char text[1024];

    snprintf(
        text, sizeof(text),
        "{\"metadata\":{\"namespace\":\"n\",\"name\":\"d\",\"uid\":\"u\",\"generation\":2,"
        "\"resourceVersion\":\"%d\",\"annotations\":{\"deployment.kubernetes.io/revision\":"
        "\"3\",%s}},\"spec\":{\"replicas\":2,\"paused\":%s,\"template\":{}},\"status\":{"
        "\"observedGeneration\":2,\"replicas\":2,\"readyReplicas\":2,\"availableReplicas\":2}}",
        ++s->version, annotations, is_paused ? "true" : "false");
    return text;
}

/* status: JSON, "{}" before ours. */
static const char *coordination(struct stage *s, const char *status)
{
    static char text[8192];

    snprintf(text, sizeof(text),
             "{\"metadata\":{\"namespace\":\"n\",\"name\":\"a\",\"uid\":\"v\",\"generation\":1,"
             "\"resourceVersion\":\"%d\"},\"spec\":{\"labelSelector\":{}},\"status\":%s}",
             ++s->version, status);
    return text;
}

static void serve_coordination(struct stage *s)
{
    char list[8192];

    snprintf(list, sizeof(list),
             "{\"kind\":\"DeploymentCoordinationList\",\"metadata\":{\"resourceVersion\":\"1\"},"
             "\"items\":[%.4096s]}",
             coordination(s, "{}"));
    fake_answer(fake_the(s->f.transport, "/deploymentcoordinations?limit="), 200, NULL, list);
    fake_head(fake_the(s->f.transport, "/deploymentcoordinations?watch="), 200, NULL);
}

static struct stage *begin(void)
{
    struct stage *s = calloc(1, sizeof(*s));
    struct coord_config config = {0};
    struct sw_error error = {0};

    s->made_up = (struct made_up){.start = start, .arg = s};
    s->verdict = SW_VERDICT_HOLD_OUT_OF_LINE;
    fixture_init(&s->f, NULL);
    assert_int_equal(sw_core_add(s->f.core, &sw_module_pausing, NULL, &error), 0);
    assert_int_equal(sw_core_add(s->f.core, &sw_module_coordination, &config, &error), 0);
    fixture_add(&s->f, &module_one, &s->made_up);
    fixture_open(&s->f);
    serve_coordination(s);
    serve_deployments(&s->f, "1", subject(s, HELD, true));
    return s;
}

static void end(struct stage *s)
{
    fixture_done(&s->f);
    free(s);
}

/* Takes the status that is being written; true if it names an active one. */
static bool store_status(struct stage *s)
{
    struct fake_request *patch = fake_the(s->f.transport, "/deploymentcoordinations/a/status");
    struct sw_arena *arena = sw_arena_new(0);
    struct sw_json *body;

    assert_int_equal(sw_json_parse(arena, patch->body, strlen(patch->body), &body, NULL), 0);
    const struct sw_json *status = sw_json_get(body, "status");
    bool is_active = sw_json_get_string(status, "activeDeployment") != NULL;
    fake_answer(patch, 200, NULL, coordination(s, sw_json_dump(status, arena, NULL)));
    sw_arena_free(arena);
    fixture_turn(&s->f);
    return is_active;
}

static bool is_quiet(struct stage *s)
{
    return !fake_find(s->f.transport, "/deploymentcoordinations/a") &&
           !fake_find(s->f.transport, "/deployments/d");
}

TEST(looks_again_when_another_policy_has_changed_its_mind)
{
    struct stage *s = begin();

    assert_false(store_status(s));
    sw_loop_virtual_advance(s->f.loop, 60000);
    assert_true(is_quiet(s));
    s->verdict = SW_VERDICT_FREE;
    sw_loop_virtual_advance(s->f.loop, 60000);
    assert_true(is_quiet(s)); /* nobody has told it */
    sw_opinion_changed(s->made_up.self, &sw_kind_deployment, "n", "d");
    fixture_turn(&s->f);
    assert_true(store_status(s));
    struct fake_request *release = fake_the(s->f.transport, "/deployments/d");
    assert_non_null(strstr(release->body, "\"paused\":false"));
    assert_non_null(
        strstr(release->body, "\"slipway.dev/released-by\":\"coordination/a,stepping/x\""));
    assert_null(strstr(release->body, "slipway.dev/coordinated-by"));
    end(s);
}

TEST(is_not_woken_for_what_is_none_of_its_business)
{
    struct stage *s = begin();

    assert_false(store_status(s));
    sw_opinion_changed(s->made_up.self, &sw_kind_deployment, "n", "another");
    sw_opinion_changed(s->made_up.self, &sw_kind_deployment, "elsewhere", "d");
    fixture_turn(&s->f);
    assert_true(is_quiet(s));
    end(s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("coordination", looks_again_when_another_policy_has_changed_its_mind),
        CASE("coordination", is_not_woken_for_what_is_none_of_its_business),
    };
    return RUN(tests);
}
