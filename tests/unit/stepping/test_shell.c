/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shell, in a core on virtual time, around a plan that the test makes up: what it is shown,
 * what its actions are as requests, and which answers come back to it. What the real plan decides
 * is tests/unit/stepping/test_world.c.
 */
#include <slipway/memory.h>

#include "base/error.h"

#include "../runtime/fixture.h"
#include "../test.h"

#include "plan.h"

extern const struct sw_module sw_module_pausing, sw_module_stepping;

/* ---- the plan of the test ---- */

struct step_memory {
    uint64_t number;
    bool has_acted;
};

static struct {
    void (*plan)(struct step_memory *memory, const struct step_snapshot *snapshot,
                 struct sw_arena *arena, struct step_result *result);
    char heard[512]; /* "1:ok 2:conflict" */
    char said[256];  /* what the plan of the test notes */
    unsigned plans, memories;
} script;

static void note(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void note(char *text, size_t size, const char *format, ...)
{
    size_t len = strlen(text);
    va_list args;

    va_start(args, format);
    vsnprintf(text + len, size - len, format, args);
    va_end(args);
}

#define HEARD(...) note(script.heard, sizeof(script.heard), __VA_ARGS__)
#define SAID(...) note(script.said, sizeof(script.said), __VA_ARGS__)

struct step_memory *step_memory_new(void)
{
    script.memories++;
    return SW_NEW(struct step_memory);
}

struct step_memory *step_memory_free(struct step_memory *memory)
{
    script.memories -= memory != NULL;
    return sw_free(memory);
}

void step_plan(struct step_memory *memory, const struct step_snapshot *snapshot,
               struct sw_arena *arena, struct step_result *ret_result)
{
    *ret_result = (struct step_result){.look_again_ms = UINT64_MAX};
    script.plans++;
    if (script.plan)
        script.plan(memory, snapshot, arena, ret_result);
}

void step_answered(struct step_memory *memory, const struct step_action *action,
                   enum sw_outcome outcome, const char *message)
{
    (void)memory;
    (void)message;
    HEARD("%d:%s ", (int)action->number, sw_outcome_text(outcome));
}

void step_round_ended(struct step_memory *memory, uint64_t number,
                      const struct step_round_result *result)
{
    (void)memory;
    HEARD("round %d:%s ", (int)number, result->has_passed ? "passed" : "failed");
}

struct sw_json *step_status_patch(struct sw_arena *arena, const struct step_status *status,
                                  const struct stepped *stored)
{
    struct sw_json *patch = sw_json_object(arena);

    (void)stored;
    sw_json_set_string(sw_json_set_object(patch, "status"), "phase", status->phase);
    return patch;
}

void step_opinion(const struct stepped *object, const struct step_spec *spec,
                  const struct step_target *target, const struct sw_question *question,
                  struct sw_opinion *opinion)
{
    (void)object;
    (void)spec;
    (void)target;
    (void)question;
    opinion->is_selected = opinion->rests_running = true;
    opinion->owners = "stepping/web";
}

static struct step_action *act(struct step_memory *memory, const struct step_snapshot *snapshot,
                               struct sw_arena *arena, struct step_result *result,
                               enum step_action_type type)
{
    struct step_action *action = SW_ARENA_NEW(arena, struct step_action);
    bool is_own = type == STEP_STATUS || type == STEP_META;

    memory->has_acted = true;
    *action = (struct step_action){
        .type = type,
        .number = ++memory->number,
        .resource_version = is_own             ? snapshot->object->meta.resource_version
                            : snapshot->target ? snapshot->target->object->resource_version
                                               : "",
        .has_finalizer = -1,
        .next = result->actions,
    };
    result->actions = action;
    return action;
}

/* ---- the stage ---- */

struct stage {
    struct fixture f;
    struct fake_request *watches[4];
};

enum { STEPPED, DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS };

static const struct {
    const char *plural, *list, *version;
} kinds[] = {
    {"/steppedrollouts", "SteppedRolloutList", "slipway.dev/v1alpha1"},
    {"/deployments", "DeploymentList", "apps/v1"},
    {"/statefulsets", "StatefulSetList", "apps/v1"},
    {"/daemonsets", "DaemonSetList", "apps/v1"},
};

static const char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));

static const char *text(const char *format, ...)
{
    static char texts[64][4096];
    static unsigned at;
    char *out = texts[at++ % 64];
    va_list args;

    va_start(args, format);
    assert_in_range(vsnprintf(out, sizeof(texts[0]), format, args), 0, sizeof(texts[0]) - 1);
    va_end(args);
    for (char *p = out; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    return out;
}

/* Answers the lists that are asked for, each with what `items` has of its kind, and opens the
 * watches. */
static void serve(struct stage *s, const char *const items[4])
{
    for (unsigned i = 0; i < 4; i++) {
        fake_answer(fake_the(s->f.transport, text("%s?limit=", kinds[i].plural)), 200, NULL,
                    text("{'kind':'%s','apiVersion':'%s','metadata':{'resourceVersion':'10'},"
                         "'items':[%s]}",
                         kinds[i].list, kinds[i].version, items[i] ? items[i] : ""));
        s->watches[i] = fake_the(s->f.transport, text("%s?watch=", kinds[i].plural));
        fake_head(s->watches[i], 200, NULL);
    }
    struct fake_request *templates = fake_find(s->f.transport, "/metrictemplates?limit=");
    if (templates)
        fake_answer(templates, 404, NULL, "404 page not found");
    fixture_turn(&s->f);
}

static struct stage *begin_as(const struct sw_core_options *options)
{
    struct stage *s = calloc(1, sizeof(*s));
    struct sw_error error = {0};

    memset(&script, 0, sizeof(script));
    fixture_init(&s->f, options);
    assert_int_equal(sw_core_add(s->f.core, &sw_module_pausing, NULL, &error), 0);
    if (sw_core_add(s->f.core, &sw_module_stepping, NULL, &error))
        fail_msg("%s", error.text);
    fixture_open(&s->f);
    return s;
}

static struct stage *begin(const char *stepped, unsigned kind, const char *target)
{
    struct stage *s = begin_as(NULL);
    const char *items[4] = {stepped};

    if (target)
        items[kind] = target;
    serve(s, items);
    return s;
}

static void end(struct stage *s)
{
    fixture_done(&s->f);
    assert_int_equal(script.memories, 0);
    free(s);
}

static void change(struct stage *s, unsigned kind, const char *type, const char *object)
{
    fake_body(s->watches[kind], text("{'type':'%s','object':%s}\n", type, object));
}

static void changed(struct stage *s, unsigned kind, const char *type, const char *object)
{
    change(s, kind, type, object);
    fixture_turn(&s->f);
}

static const char *stepped_as(const char *name, int created, const char *version, const char *kind,
                              const char *spec, const char *status)
{
    return text("{'kind':'SteppedRollout','apiVersion':'slipway.dev/v1alpha1','metadata':{"
                "'namespace':'n','name':'%s','uid':'s-%s','resourceVersion':'%s','generation':1,"
                "'creationTimestamp':'2026-01-01T00:00:0%dZ','finalizers':['other']},'spec':{"
                "'targetRef':{'apiVersion':'apps/v1','kind':'%s','name':'d'},"
                "'analysis':{'interval':'1s'%s}},'status':{%s}}",
                name, name, version, created, kind, spec, status);
}

static const char *stepped(const char *version, const char *kind, const char *status)
{
    return stepped_as("web", 1, version, kind, "", status);
}

static const char *deployment_at(const char *version, const char *annotations, const char *spec,
                                 int updated)
{
    return text("{'kind':'Deployment','apiVersion':'apps/v1','metadata':{'namespace':'n',"
                "'name':'d','uid':'u','resourceVersion':'%s','generation':2,'annotations':{%s}},"
                "'spec':{'replicas':10,%s'template':{}},'status':{'observedGeneration':2,"
                "'updatedReplicas':%d}}",
                version, annotations, spec, updated);
}

static const char *set_at(const char *kind, const char *version, int generation)
{
    return text("{'kind':'%s','apiVersion':'apps/v1','metadata':{'namespace':'n','name':'d',"
                "'uid':'u','resourceVersion':'%s','generation':%d},'spec':{'replicas':3,"
                "'selector':{'matchLabels':{'app':'a'}},'updateStrategy':{'type':'RollingUpdate'},"
                "'template':{}},'status':{'observedGeneration':%d,'updateRevision':'d-2',"
                "'desiredNumberScheduled':3,'replicas':3}}",
                kind, version, generation, generation);
}

static const char *pod(const char *name, const char *hash, bool is_ready)
{
    return text("{'kind':'Pod','apiVersion':'v1','metadata':{'namespace':'n','name':'%s','uid':"
                "'p-%s','resourceVersion':'1','labels':{'app':'a','controller-revision-hash':'%s'},"
                "'ownerReferences':[{'controller':true,'uid':'u'}]},'status':{'conditions':[{"
                "'type':'Ready','status':'%s','lastTransitionTime':'2025-01-01T00:00:00Z'}]}}",
                name, name, hash, is_ready ? "True" : "False");
}

static const char *revision(const char *name, const char *hash, int number)
{
    return text("{'kind':'ControllerRevision','apiVersion':'apps/v1','metadata':{'namespace':'n',"
                "'name':'%s','uid':'r-%s','resourceVersion':'1','labels':{"
                "'controller-revision-hash':'%s'},'ownerReferences':[{'controller':true,'uid':'u'}]"
                "},'revision':%d}",
                name, name, hash, number);
}

static const char *list(const char *kind, const char *items)
{
    return text("{'kind':'%sList','metadata':{'resourceVersion':'20'},'items':[%s]}", kind, items);
}

/* Answers the three reads of a look at a set. */
static void show(struct stage *s, const char *path, const char *target, const char *pods)
{
    fake_answer(fake_the(s->f.transport, path), 200, NULL, target);
    fake_answer(fake_the(s->f.transport, "/controllerrevisions?"), 200, NULL,
                list("ControllerRevision",
                     text("%s,%s", revision("d-1", "1", 1), revision("d-2", "2", 2))));
    fake_answer(fake_the(s->f.transport, "/pods?"), 200, NULL, list("Pod", pods));
}

/* ---- holds ---- */

static void hold_at_stop(struct step_memory *memory, const struct step_snapshot *snapshot,
                         struct sw_arena *arena, struct step_result *result)
{
    const struct step_target *t = snapshot->target;

    if (t && !memory->has_acted && !t->is_held && t->updated >= snapshot->object->stop)
        act(memory, snapshot, arena, result, STEP_HOLD);
}

TEST(a_hold_leaves_with_the_change_that_shows_the_stop)
{
    struct stage *s = begin(stepped("3", "Deployment", "'stop':4"), DEPLOYMENTS,
                            deployment_at("5", "'slipway.dev/released-by':'stepping/web'", "", 3));
    struct fake_request *patch;

    script.plan = hold_at_stop;
    changed(s, DEPLOYMENTS, "MODIFIED",
            deployment_at("6", "'slipway.dev/released-by':'stepping/web'", "", 4));
    patch = fake_the(s->f.transport, "/deployments/d?");
    assert_non_null(strstr(patch->body, "\"resourceVersion\":\"6\""));
    assert_non_null(strstr(patch->body, "\"paused\":true"));
    assert_non_null(strstr(patch->body, "\"slipway.dev/held-by\":\"stepping/web\""));
    assert_non_null(strstr(patch->body, "\"slipway.dev/stepped-by\":\"web\""));
    fake_answer(patch, 200, NULL,
                deployment_at("7", "'slipway.dev/held-by':'stepping/web'", "'paused':true,", 4));
    assert_string_equal(script.heard, "1:ok ");
    assert_true(fixture_shows(&s->f, "slipway_stepping_hold_seconds_count 1"));
    changed(s, DEPLOYMENTS, "MODIFIED",
            deployment_at("8", "'slipway.dev/held-by':'stepping/web'", "'paused':true,", 5));
    assert_true(fixture_shows(&s->f, "slipway_stepping_overshoot_pods_count 1"));
    end(s);
}

static void hold_an_older_state(struct step_memory *memory, const struct step_snapshot *snapshot,
                                struct sw_arena *arena, struct step_result *result)
{
    if (snapshot->target && !memory->has_acted)
        act(memory, snapshot, arena, result, STEP_HOLD)->resource_version = "4";
}

TEST(what_was_decided_on_an_older_state_is_a_conflict)
{
    struct stage *s;

    s = begin_as(NULL);
    script.plan = hold_an_older_state;
    serve(s,
          (const char *[4]){stepped("3", "StatefulSet", ""), NULL, set_at("StatefulSet", "5", 1)});
    assert_null(fake_find(s->f.transport, "/statefulsets/d?"));
    assert_string_equal(script.heard, "1:conflict ");
    end(s);
}

static void hold_once(struct step_memory *memory, const struct step_snapshot *snapshot,
                      struct sw_arena *arena, struct step_result *result)
{
    if (snapshot->target && !memory->has_acted)
        act(memory, snapshot, arena, result, STEP_HOLD);
}

TEST(a_stateful_set_is_held_by_a_patch_of_that_very_state)
{
    struct stage *s = begin_as(NULL);

    script.plan = hold_once;
    serve(s,
          (const char *[4]){stepped("3", "StatefulSet", ""), NULL, set_at("StatefulSet", "5", 1)});
    struct fake_request *patch = fake_the(s->f.transport, "/statefulsets/d?");
    assert_non_null(strstr(patch->body, "\"partition\":2147483647"));
    assert_non_null(strstr(patch->body, "\"resourceVersion\":\"5\""));
    fake_answer(patch, 409, NULL, "{\"kind\":\"Status\",\"code\":409,\"reason\":\"Conflict\"}");
    assert_string_equal(script.heard, "1:conflict ");
    end(s);
}

TEST(a_refusal_comes_back_as_one)
{
    struct stage *s = begin_as(NULL);

    script.plan = hold_once;
    serve(s, (const char *[4]){stepped("3", "DaemonSet", ""), NULL, NULL,
                               set_at("DaemonSet", "5", 1)});
    struct fake_request *patch = fake_the(s->f.transport, "/daemonsets/d?");
    assert_non_null(strstr(patch->body, "\"type\":\"OnDelete\""));
    fake_answer(patch, 403, NULL,
                "{\"kind\":\"Status\",\"code\":403,\"reason\":\"Forbidden\",\"message\":\"no\"}");
    assert_string_equal(script.heard, "1:refused ");
    end(s);
}

/* ---- Pods ---- */

static void advance_two(struct step_memory *memory, const struct step_snapshot *snapshot,
                        struct sw_arena *arena, struct step_result *result)
{
    struct step_action *action;

    if (!snapshot->target || memory->has_acted)
        return;
    action = act(memory, snapshot, arena, result, STEP_ADVANCE);
    action->stop = 3;
    action->pods = 2;
}

#define DELETED "{\"kind\":\"Status\",\"status\":\"Success\"}"
#define NOT_FOUND "{\"kind\":\"Status\",\"code\":404,\"reason\":\"NotFound\"}"

static struct stage *begin_advancing(void)
{
    struct stage *s = begin_as(NULL);

    script.plan = advance_two;
    serve(s, (const char *[4]){stepped("3", "DaemonSet", ""), NULL, NULL,
                               set_at("DaemonSet", "5", 1)});
    return s;
}

TEST(pods_that_serve_nobody_are_deleted_and_the_answers_come_in_any_order)
{
    struct stage *s = begin_advancing();

    show(s, "/daemonsets/d", set_at("DaemonSet", "5", 1),
         text("%s,%s,%s", pod("a", "1", false), pod("b", "1", false), pod("c", "2", true)));
    struct fake_request *a = fake_the(s->f.transport, "/pods/a");
    struct fake_request *b = fake_the(s->f.transport, "/pods/b");
    assert_string_equal(a->method, "DELETE");
    assert_non_null(strstr(a->body, "\"uid\":\"p-a\""));
    fake_answer(b, 404, NULL, NOT_FOUND);
    assert_string_equal(script.heard, "");
    fake_answer(a, 200, NULL, DELETED);
    assert_string_equal(script.heard, "1:ok ");
    end(s);
}

TEST(one_pod_at_a_time_goes_where_all_serve)
{
    struct stage *s = begin_advancing();

    show(s, "/daemonsets/d", set_at("DaemonSet", "5", 1),
         text("%s,%s,%s", pod("a", "1", true), pod("b", "1", true), pod("c", "2", true)));
    fake_answer(fake_the(s->f.transport, "/pods/a"), 500, NULL, "");
    assert_null(fake_find(s->f.transport, "/pods/b"));
    end(s);
}

TEST(nothing_is_deleted_where_the_template_has_changed_meanwhile)
{
    struct stage *s = begin_advancing();

    changed(s, DAEMON_SETS, "MODIFIED", set_at("DaemonSet", "6", 2));
    show(s, "/daemonsets/d", set_at("DaemonSet", "6", 2), pod("a", "1", false));
    assert_null(fake_find(s->f.transport, "/pods/a"));
    assert_string_equal(script.heard, "1:conflict ");
    end(s);
}

/* ---- looks ---- */

static void look_until_seen(struct step_memory *memory, const struct step_snapshot *snapshot,
                            struct sw_arena *arena, struct step_result *result)
{
    const struct step_target *t = snapshot->target;

    if (!t)
        return;
    if (t->look_error)
        SAID("error: %s ", t->look_error);
    if (t->revision_count > 0)
        SAID("%s: %d Pods, %d ready, promoted %d ", t->revisions[0].name, (int)t->revisions[0].pods,
             (int)t->revisions[0].ready, t->revisions[1].is_promoted);
    else
        act(memory, snapshot, arena, result, STEP_LOOK);
}

TEST(a_look_that_fails_is_said_and_tried_again)
{
    struct stage *s = begin_as(NULL);

    script.plan = look_until_seen;
    serve(s, (const char *[4]){stepped("3", "StatefulSet", "'promotedRevision':'d-1'"), NULL,
                               set_at("StatefulSet", "5", 1)});
    fake_answer(fake_the(s->f.transport, "/statefulsets/d"), 403, NULL,
                "{\"kind\":\"Status\",\"code\":403,\"reason\":\"Forbidden\",\"message\":\"no\"}");
    assert_string_equal(script.said, "");
    sw_loop_virtual_advance(s->f.loop, 1000);
    assert_string_equal(script.said, "error: no ");
    script.said[0] = '\0';
    show(s, "/statefulsets/d", set_at("StatefulSet", "5", 1),
         text("%s,%s,%s", pod("d-0", "d-1", true), pod("d-1", "d-2", false),
              pod("d-2", "d-2", true)));
    assert_string_equal(script.said, "d-2: 2 Pods, 1 ready, promoted 1 ");
    end(s);
}

/* ---- going back ---- */

static void roll_back_once(struct step_memory *memory, const struct step_snapshot *snapshot,
                           struct sw_arena *arena, struct step_result *result)
{
    if (snapshot->target && !memory->has_acted)
        act(memory, snapshot, arena, result, STEP_ROLL_BACK)->name = "d-old";
}

TEST(a_rollback_puts_the_template_of_the_revision_back)
{
    struct stage *s = begin_as(NULL);

    script.plan = roll_back_once;
    serve(s, (const char *[4]){stepped("3", "Deployment", ""), deployment_at("5", "", "", 3)});
    fake_answer(fake_the(s->f.transport, "/replicasets/d-old"), 200, NULL,
                text("{'kind':'ReplicaSet','apiVersion':'apps/v1','metadata':{'namespace':'n',"
                     "'name':'d-old','uid':'o'},'spec':{'template':{'metadata':{'labels':{'app':"
                     "'a','pod-template-hash':'x'}},'spec':{'c':1}}}}"));
    struct fake_request *patch = fake_the(s->f.transport, "/deployments/d?");
    assert_string_equal(patch->content_type, "application/json-patch+json");
    assert_string_equal(
        patch->body,
        text("[{'op':'test','path':'/metadata/resourceVersion','value':'5'},{'op':'replace','path':"
             "'/spec/template','value':{'metadata':{'labels':{'app':'a'}},'spec':{'c':1}}}]"));
    fake_answer(patch, 200, NULL, deployment_at("6", "", "", 0));
    assert_string_equal(script.heard, "1:ok ");
    end(s);
}

TEST(a_revision_that_is_gone_is_not_found)
{
    struct stage *s = begin_as(NULL);

    script.plan = roll_back_once;
    serve(s, (const char *[4]){stepped("3", "Deployment", ""), deployment_at("5", "", "", 3)});
    fake_answer(fake_the(s->f.transport, "/replicasets/d-old"), 404, NULL, NOT_FOUND);
    assert_string_equal(script.heard, "1:not found ");
    end(s);
}

/* ---- the SteppedRollout ---- */

static void write_own(struct step_memory *memory, const struct step_snapshot *snapshot,
                      struct sw_arena *arena, struct step_result *result)
{
    static const struct step_status status = {.phase = "Succeeded", .activity = ""};
    struct step_action *meta;

    if (memory->has_acted)
        return;
    act(memory, snapshot, arena, result, STEP_STATUS)->status = &status;
    meta = act(memory, snapshot, arena, result, STEP_META);
    meta->removes_retry = true;
    meta->has_finalizer = 1;
}

TEST(its_own_writes_are_answered_in_any_order)
{
    struct stage *s = begin_as(NULL);

    script.plan = write_own;
    serve(s, (const char *[4]){stepped("3", "Deployment", "'phase':'Promoting','currentStep':2"),
                               deployment_at("5", "", "", 3)});
    struct fake_request *status = fake_the(s->f.transport, "/steppedrollouts/web/status");
    struct fake_request *meta = fake_the(s->f.transport, "/steppedrollouts/web?");
    assert_string_equal(
        meta->body,
        text("{'metadata':{'annotations':{'slipway.dev/retry':null},'finalizers':['other',"
             "'slipway.dev/stepping'],'resourceVersion':'3'}}"));
    fake_answer(meta, 409, NULL, "{\"kind\":\"Status\",\"code\":409,\"reason\":\"Conflict\"}");
    fake_answer(status, 200, NULL, stepped("4", "Deployment", "'phase':'Succeeded'"));
    assert_string_equal(script.heard, "2:conflict 1:ok ");
    assert_true(fixture_shows(&s->f, "slipway_stepping_results_total{result=\"succeeded\"} 1"));
    assert_true(fixture_shows(&s->f, "slipway_stepping_rollouts{phase=\"Succeeded\"} 1"));
    end(s);
}

TEST(an_answer_for_one_that_was_made_anew_is_not_for_it)
{
    struct stage *s = begin_as(NULL);

    script.plan = hold_once;
    serve(s,
          (const char *[4]){stepped("3", "StatefulSet", ""), NULL, set_at("StatefulSet", "5", 1)});
    struct fake_request *patch = fake_the(s->f.transport, "/statefulsets/d?");
    changed(s, STEPPED, "DELETED", stepped("4", "StatefulSet", ""));
    assert_int_equal(script.memories, 0);
    script.plan = NULL;
    changed(s, STEPPED, "ADDED",
            text("{'kind':'SteppedRollout','apiVersion':'slipway.dev/v1alpha1','metadata':{"
                 "'namespace':'n','name':'web','uid':'another','resourceVersion':'6'},'spec':{"
                 "'targetRef':{'apiVersion':'apps/v1','kind':'StatefulSet','name':'d'}}}"));
    assert_int_equal(script.memories, 1);
    fake_answer(patch, 200, NULL, set_at("StatefulSet", "7", 2));
    assert_string_equal(script.heard, "");
    end(s);
}

/* ---- several on one target ---- */

static void say_conflict(struct step_memory *memory, const struct step_snapshot *snapshot,
                         struct sw_arena *arena, struct step_result *result)
{
    (void)memory;
    (void)arena;
    (void)result;
    SAID("%s:%s ", snapshot->object->meta.name, snapshot->conflict ? snapshot->conflict : "counts");
}

TEST(the_oldest_counts_and_the_next_when_it_goes)
{
    struct stage *s = begin_as(NULL);

    script.plan = say_conflict;
    serve(s, (const char *[4]){text("%s,%s", stepped_as("young", 2, "3", "Deployment", "", ""),
                                    stepped_as("old", 1, "4", "Deployment", "", "")),
                               deployment_at("5", "", "", 3)});
    assert_non_null(strstr(script.said, "young:old "));
    assert_non_null(strstr(script.said, "old:counts "));
    assert_null(strstr(script.said, "young:counts "));
    changed(s, STEPPED, "DELETED", stepped_as("old", 1, "6", "Deployment", "", ""));
    assert_non_null(strstr(script.said, "young:counts "));
    end(s);
}

/* ---- traces ---- */

TEST(what_a_vanished_one_has_left_is_put_back)
{
    struct stage *s = begin_as(NULL);

    serve(s,
          (const char *[4]){
              NULL, deployment_at("5",
                                  "'slipway.dev/held-by':'stepping/gone','slipway.dev/stepped-by':"
                                  "'gone','slipway.dev/saved':'{\\'minReadySeconds\\':5}'",
                                  "'paused':true,'minReadySeconds':86400,", 3)});
    struct fake_request *patch = fake_the(s->f.transport, "/deployments/d?");
    assert_non_null(strstr(patch->body, "\"paused\":false"));
    assert_non_null(strstr(patch->body, "\"slipway.dev/stepped-by\":null"));
    assert_non_null(strstr(patch->body, "\"slipway.dev/saved\":null"));
    assert_non_null(strstr(patch->body, "\"minReadySeconds\":5"));
    fake_answer(patch, 200, NULL, deployment_at("6", "", "", 3));
    assert_null(fake_find(s->f.transport, "/deployments/d?"));
    end(s);
}

TEST(one_that_is_stepped_is_no_orphan)
{
    struct stage *s = begin(stepped("3", "Deployment", ""), DEPLOYMENTS,
                            deployment_at("5",
                                          "'slipway.dev/held-by':'stepping/web',"
                                          "'slipway.dev/stepped-by':'web'",
                                          "'paused':true,", 3));

    assert_null(fake_find(s->f.transport, "/deployments/d?"));
    changed(s, STEPPED, "DELETED", stepped("4", "Deployment", ""));
    fake_answer(fake_the(s->f.transport, "/deployments/d?"), 200, NULL,
                deployment_at("6", "", "", 3));
    end(s);
}

/* ---- rounds ---- */

static void ask_once(struct step_memory *memory, const struct step_snapshot *snapshot,
                     struct sw_arena *arena, struct step_result *result)
{
    if (snapshot->target && !memory->has_acted)
        act(memory, snapshot, arena, result, STEP_ROUND)->round = STEP_ROUND_ANALYSIS;
}

#define HOOK ",'webhooks':[{'name':'load','type':'rollout','url':'http://load.test/gate'}]"

TEST(a_round_is_asked_and_its_end_told)
{
    struct stage *s = begin_as(NULL);

    script.plan = ask_once;
    serve(s,
          (const char *[4]){stepped_as("web", 1, "3", "Deployment", HOOK, "'phase':'Progressing'"),
                            deployment_at("5", "", "", 3)});
    fake_fetch_answer(fake_fetch_the(s->f.fetcher, "/gate"), 200, NULL, "");
    assert_string_equal(script.heard, "round 1:passed ");
    assert_true(fixture_shows(
        &s->f, "slipway_stepping_checks_total{type=\"rollout\",result=\"passed\"} 1"));
    end(s);
}

TEST(a_round_of_one_that_is_deleted_ends_with_it)
{
    struct stage *s = begin_as(NULL);

    script.plan = ask_once;
    serve(s,
          (const char *[4]){stepped_as("web", 1, "3", "Deployment", HOOK, "'phase':'Progressing'"),
                            deployment_at("5", "", "", 3)});
    struct fake_fetch *fetch = fake_fetch_the(s->f.fetcher, "/gate");
    changed(s, STEPPED, "DELETED", stepped("4", "Deployment", ""));
    assert_true(fetch->was_cancelled);
    assert_string_equal(script.heard, "");
    end(s);
}

TEST(an_analysis_of_pods_looks_first_which_are_the_new_ones)
{
    struct stage *s = begin_as(NULL);

    script.plan = ask_once;
    serve(s, (const char *[4]){stepped_as("web", 1, "3", "StatefulSet", ",'pods':{}", ""), NULL,
                               set_at("StatefulSet", "5", 1)});
    show(s, "/statefulsets/d", set_at("StatefulSet", "5", 1), pod("d-1", "d-2", true));
    struct fake_request *pods = fake_the(s->f.transport, "/pods?");
    assert_string_equal(fake_query(pods, "labelSelector"), "app=a,controller-revision-hash=d-2");
    fake_answer(pods, 200, NULL, list("Pod", pod("d-1", "d-2", true)));
    assert_string_equal(script.heard, "round 1:passed ");
    end(s);
}

TEST(a_look_without_an_answer_is_no_failed_check)
{
    struct stage *s = begin_as(NULL);

    script.plan = ask_once;
    serve(s, (const char *[4]){stepped_as("web", 1, "3", "StatefulSet", ",'pods':{}", ""), NULL,
                               set_at("StatefulSet", "5", 1)});
    for (int i = 0; i < 100 && !script.heard[0]; i++) {
        struct fake_request *read = fake_find(s->f.transport, "/statefulsets/d");
        if (read)
            fake_answer(read, 500, NULL, "");
        sw_loop_virtual_advance(s->f.loop, 200);
    }
    assert_string_equal(script.heard, "");
    end(s);
}

/* ---- leadership ---- */

static const struct sw_lease_options lease = {
    .namespace_ = "ns", .name = "slipway", .identity = "i"};

#define LEASE_PATH "/coordination.k8s.io/v1/namespaces/ns/leases"

static void win_lease(struct stage *s)
{
    fake_answer(fake_the(s->f.transport, LEASE_PATH), 404, NULL, NOT_FOUND);
    struct fake_request *create = fake_the(s->f.transport, LEASE_PATH);
    const char *name = strstr(create->body, "\"name\":\"slipway\"");
    assert_non_null(name);
    fake_answer(create, 201, NULL,
                text("%.*s'resourceVersion':'1','uid':'l',%s", (int)(name - create->body),
                     create->body, name));
}

TEST(what_comes_after_the_lead_is_lost_is_for_nobody)
{
    struct sw_core_options options = {.username = "me", .lease = &lease};
    struct stage *s = begin_as(&options);
    const char *items[4] = {stepped("3", "StatefulSet", ""), NULL, set_at("StatefulSet", "5", 1)};

    script.plan = hold_once;
    serve(s, items);
    assert_int_equal(script.plans, 0); /* a follower decides nothing */
    win_lease(s);
    serve(s, items);
    struct fake_request *patch = fake_the(s->f.transport, "/statefulsets/d?");
    assert_int_equal(script.memories, 1);
    for (int i = 0; i < 60 && script.memories > 0; i++)
        sw_loop_virtual_advance(s->f.loop, 1000);
    assert_int_equal(script.memories, 0);
    if (patch->is_open)
        fake_answer(patch, 200, NULL, set_at("StatefulSet", "6", 2));
    assert_string_equal(script.heard, "");
    end(s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("shell", a_hold_leaves_with_the_change_that_shows_the_stop),
        CASE("shell", what_was_decided_on_an_older_state_is_a_conflict),
        CASE("shell", a_stateful_set_is_held_by_a_patch_of_that_very_state),
        CASE("shell", a_refusal_comes_back_as_one),
        CASE("shell", pods_that_serve_nobody_are_deleted_and_the_answers_come_in_any_order),
        CASE("shell", one_pod_at_a_time_goes_where_all_serve),
        CASE("shell", nothing_is_deleted_where_the_template_has_changed_meanwhile),
        CASE("shell", a_look_that_fails_is_said_and_tried_again),
        CASE("shell", a_rollback_puts_the_template_of_the_revision_back),
        CASE("shell", a_revision_that_is_gone_is_not_found),
        CASE("shell", its_own_writes_are_answered_in_any_order),
        CASE("shell", an_answer_for_one_that_was_made_anew_is_not_for_it),
        CASE("shell", the_oldest_counts_and_the_next_when_it_goes),
        CASE("shell", what_a_vanished_one_has_left_is_put_back),
        CASE("shell", one_that_is_stepped_is_no_orphan),
        CASE("shell", a_round_is_asked_and_its_end_told),
        CASE("shell", a_round_of_one_that_is_deleted_ends_with_it),
        CASE("shell", an_analysis_of_pods_looks_first_which_are_the_new_ones),
        CASE("shell", a_look_without_an_answer_is_no_failed_check),
        CASE("shell", what_comes_after_the_lead_is_lost_is_for_nobody),
    };
    return RUN(tests);
}
