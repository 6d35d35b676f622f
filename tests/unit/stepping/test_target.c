/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets of the three kinds, read by their tables: what they are to the policy, what holding,
 * letting go and putting back are as a patch, and what becomes of them at admission.
 */
#include "test.h"

#include <errno.h>

#include "base/error.h"
#include "base/map.h"
#include "kube/decode.h"

#include "look.h"
#include "review.h"
#include "target.h"

enum { OBJECTS_MAX = 16 };

struct fixture {
    struct sw_intern *intern;
    struct sw_arena *arena;
    struct sw_decoder *decoders[OBJECTS_MAX];
    struct sw_object *objects[OBJECTS_MAX];
    unsigned count;
};

static struct fixture f;

static void begin(void)
{
    f = (struct fixture){.intern = sw_intern_new(), .arena = sw_arena_new(0)};
}

static void end(void)
{
    for (unsigned i = 0; i < f.count; i++) {
        sw_object_free(f.decoders[i], f.objects[i]);
        sw_decoder_free(f.decoders[i]);
    }
    sw_intern_free(f.intern);
    sw_arena_free(f.arena);
}

/* In single quotes for double ones; "`" for a quote within. */
static char *quoted(const char *text)
{
    char *copy = sw_arena_strdup(f.arena, text),
         *out = sw_arena_alloc(f.arena, strlen(text) * 2 + 1);
    char *to = out;

    for (const char *p = copy; *p; p++) {
        if (*p == '`')
            *to++ = '\\';
        *to++ = *p == '\'' || *p == '`' ? '"' : *p;
    }
    *to = '\0';
    return out;
}

static const struct sw_object *decode(const struct sw_kind *kind, const char *text)
{
    struct sw_error error = {0};
    const char *json = quoted(text);

    assert_true(f.count < OBJECTS_MAX);
    f.decoders[f.count] = sw_decoder_new(kind, f.intern);
    if (sw_decode_object(f.decoders[f.count], json, strlen(json), NULL, &f.objects[f.count],
                         &error))
        fail_msg("%s: %s", json, error.text);
    return f.objects[f.count++];
}

static const struct sw_object *object_of(const struct sw_kind *kind, const char *annotations,
                                         const char *spec, const char *status)
{
    return decode(kind,
                  sw_arena_printf(f.arena,
                                  "{'apiVersion':'apps/v1','kind':'%s','metadata':{'name':'web',"
                                  "'namespace':'n','uid':'u','resourceVersion':'7','generation':3,"
                                  "'annotations':{%s}},'spec':{%s},'status':{%s}}",
                                  kind->kind, annotations, spec, status));
}

static const struct sw_deployment *deployment(const char *annotations, const char *spec)
{
    return sw_as_deployment(object_of(&sw_kind_deployment, annotations, spec,
                                      "'observedGeneration':3,'replicas':10,'updatedReplicas':4,"
                                      "'readyReplicas':9,'availableReplicas':8"));
}

static const struct sw_stateful_set *stateful_set(const char *annotations, const char *spec)
{
    return step_as_stateful_set(object_of(&sw_kind_stateful_set, annotations, spec,
                                          "'observedGeneration':3,'replicas':5,'readyReplicas':5,"
                                          "'updatedReplicas':2,'updateRevision':'web-2'"));
}

static const struct sw_daemon_set *daemon_set(const char *annotations, const char *spec)
{
    return step_as_daemon_set(object_of(&sw_kind_daemon_set, annotations, spec,
                                        "'observedGeneration':2,'desiredNumberScheduled':7,"
                                        "'currentNumberScheduled':7,'updatedNumberScheduled':3,"
                                        "'numberReady':6,'numberAvailable':6"));
}

static struct step_target target_of(const void *object)
{
    struct step_target target;

    step_target_of(object, "web", f.arena, &target);
    return target;
}

static const char *dump(const struct sw_json *value)
{
    return value ? sw_json_dump(value, f.arena, NULL) : "nothing";
}

#define assert_json(value, text) assert_string_equal(dump(value), quoted(text))

/* ---- Deployments ---- */

TEST(a_deployment_is_read_as_its_controller_resolves_it)
{
    begin();
    struct step_target t = target_of(deployment(
        "", "'replicas':10,'strategy':{'type':'RollingUpdate','rollingUpdate':{'maxSurge':'25%',"
            "'maxUnavailable':'25%'}},'template':{'a':1}"));
    assert_int_equal(t.kind, STEP_DEPLOYMENT);
    assert_int_equal(t.surge, 3);
    assert_int_equal(t.unavailable, 2);
    assert_int_equal(t.updated, 4);
    assert_int_equal(t.ready, 9);
    assert_int_equal(t.available, 8);
    assert_int_equal(t.allowed, 10);
    assert_true(t.is_observed);
    assert_false(t.is_held || t.is_ours || t.is_released || t.is_users_pause || t.has_saved);
    assert_int_equal(strlen(t.hash), 32);
    t = target_of(deployment("", "'replicas':3,'strategy':{'rollingUpdate':{'maxSurge':0,"
                                 "'maxUnavailable':0}}"));
    assert_int_equal(t.surge, 0);
    assert_int_equal(t.unavailable, 1);
    t = target_of(deployment("", "'replicas':3,'strategy':{'rollingUpdate':{'maxSurge':0,"
                                 "'maxUnavailable':5}}"));
    assert_int_equal(t.unavailable, 3);
    assert_true(target_of(deployment("", "'strategy':{'type':'Recreate'}")).is_recreate);
    end();
}

TEST(a_deployments_hold_is_ours_only_where_it_names_us)
{
    begin();
    struct step_target t = target_of(
        deployment("'slipway.dev/held-by':'coordination/a,stepping/web'", "'paused':true"));
    assert_true(t.is_held && t.is_ours && t.is_shared && !t.is_users_pause);
    assert_int_equal(t.allowed, 4);
    t = target_of(deployment("'slipway.dev/held-by':'stepping/web,user'", "'paused':true"));
    assert_true(t.is_ours && !t.is_shared);
    t = target_of(deployment("'slipway.dev/held-by':'stepping/webby'", "'paused':true"));
    assert_true(t.is_held && !t.is_ours && !t.is_users_pause);
    t = target_of(deployment("", "'paused':true"));
    assert_true(t.is_held && !t.is_ours && t.is_users_pause);
    t = target_of(deployment("'slipway.dev/released-by':'stepping/web'", ""));
    assert_true(t.is_released && !t.is_held);
    end();
}

TEST(a_dead_mans_raise_is_saved_and_put_back)
{
    begin();
    const struct sw_deployment *d =
        deployment("", "'minReadySeconds':5,'progressDeadlineSeconds':600");
    assert_json(step_deployment_raise(d, f.arena),
                "{'metadata':{'annotations':{'slipway.dev/saved':"
                "'{`minReadySeconds`:5,`progressDeadlineSeconds`:600}'}},"
                "'spec':{'minReadySeconds':86400,'progressDeadlineSeconds':87000}}");
    assert_null(step_deployment_restore(d, f.arena));
    d = deployment("'slipway.dev/saved':'{`minReadySeconds`:5,`progressDeadlineSeconds`:601}'",
                   "'minReadySeconds':86400,'progressDeadlineSeconds':87000");
    assert_true(target_of(d).is_raised);
    assert_null(step_deployment_raise(d, f.arena));
    assert_json(step_deployment_restore(d, f.arena),
                "{'metadata':{'annotations':{'slipway.dev/saved':null}},"
                "'spec':{'minReadySeconds':5,'progressDeadlineSeconds':601}}");
    end();
}

TEST(what_somebody_has_changed_since_the_raise_stays)
{
    begin();
    const struct sw_deployment *d =
        deployment("'slipway.dev/saved':'{`minReadySeconds`:5,`progressDeadlineSeconds`:601}'",
                   "'minReadySeconds':9,'progressDeadlineSeconds':87000");
    assert_false(target_of(d).is_raised);
    assert_json(step_deployment_restore(d, f.arena),
                "{'metadata':{'annotations':{'slipway.dev/saved':null}},"
                "'spec':{'progressDeadlineSeconds':601}}");
    assert_json(step_deployment_raise(d, f.arena),
                "{'metadata':{'annotations':{'slipway.dev/saved':"
                "'{`minReadySeconds`:9,`progressDeadlineSeconds`:601}'}},"
                "'spec':{'minReadySeconds':86400,'progressDeadlineSeconds':87000}}");
    /* A deadline that is longer already stays as it is. */
    d = deployment("", "'progressDeadlineSeconds':2147483647");
    assert_json(step_deployment_raise(d, f.arena),
                "{'metadata':{'annotations':{'slipway.dev/saved':"
                "'{`minReadySeconds`:0,`progressDeadlineSeconds`:2147483647}'}},"
                "'spec':{'minReadySeconds':86400,'progressDeadlineSeconds':2147483647}}");
    end();
}

TEST(what_was_saved_and_is_none_becomes_the_default)
{
    begin();
    const struct sw_deployment *d =
        deployment("'slipway.dev/saved':'tampered'",
                   "'minReadySeconds':86400,'progressDeadlineSeconds':87000");
    assert_json(step_deployment_restore(d, f.arena),
                "{'metadata':{'annotations':{'slipway.dev/saved':null}},"
                "'spec':{'minReadySeconds':0,'progressDeadlineSeconds':600}}");
    end();
}

/* ---- StatefulSets ---- */

#define SET_MARKS                                         \
    "'slipway.dev/stepped-by':'web','slipway.dev/saved':" \
    "'{`updateStrategy`:{`type`:`RollingUpdate`,`rollingUpdate`:{`partition`:1}}}'"

static const char *strategy(int partition)
{
    return sw_arena_printf(f.arena,
                           "'replicas':5,'updateStrategy':{'type':'RollingUpdate',"
                           "'rollingUpdate':{'partition':%d}},'template':{'a':1}",
                           partition);
}

TEST(a_stateful_set_may_update_what_is_above_its_partition)
{
    begin();
    struct step_target t = target_of(stateful_set("", strategy(3)));
    assert_int_equal(t.kind, STEP_STATEFUL_SET);
    assert_int_equal(t.replicas, 5);
    assert_int_equal(t.allowed, 2);
    assert_int_equal(t.unavailable, 1);
    assert_int_equal(t.available, 5);
    assert_false(t.is_ours || t.is_held || t.is_recreate);
    t = target_of(stateful_set(SET_MARKS, strategy(3)));
    assert_true(t.is_ours && t.is_held && t.has_saved);
    t = target_of(stateful_set(SET_MARKS, strategy(1)));
    assert_true(t.is_ours && !t.is_held);
    assert_int_equal(t.allowed, 4);
    t = target_of(stateful_set(SET_MARKS, strategy(INT32_MAX)));
    assert_true(t.is_held);
    assert_int_equal(t.allowed, 0);
    assert_true(target_of(stateful_set("", "'updateStrategy':{'type':'OnDelete'}")).is_recreate);
    end();
}

TEST(a_stateful_set_is_held_released_and_left_by_its_partition)
{
    begin();
    const struct sw_stateful_set *own = stateful_set("", strategy(1));
    const struct sw_stateful_set *ours =
        stateful_set(SET_MARKS ",'slipway.dev/held-by':'stepping/web'", strategy(INT32_MAX));
    struct step_grip held = {
        .type = STEP_GRIP_HELD,
        .name = "web",
        .has_mark = true,
        .others_owners = "",
        .partition = INT32_MAX,
    };
    struct step_grip released = {
        .type = STEP_GRIP_RELEASED,
        .name = "web",
        .has_mark = true,
        .others_owners = "",
        .partition = step_partition(5, 2),
    };
    struct step_grip none = {.type = STEP_GRIP_NONE, .name = "web", .others_owners = ""};

    assert_json(step_stateful_set_patch(own, &held, f.arena),
                "{'spec':{'updateStrategy':{'type':'RollingUpdate','rollingUpdate':"
                "{'partition':2147483647}}},'metadata':{'annotations':{'slipway.dev/held-by':"
                "'stepping/web','slipway.dev/stepped-by':'web','slipway.dev/saved':"
                "'{`updateStrategy`:{`type`:`RollingUpdate`,`rollingUpdate`:{`partition`:1}}}'}}}");
    assert_null(step_stateful_set_patch(ours, &held, f.arena));
    assert_json(step_stateful_set_patch(ours, &released, f.arena),
                "{'spec':{'updateStrategy':{'type':'RollingUpdate','rollingUpdate':"
                "{'partition':3}}},'metadata':{'annotations':{'slipway.dev/held-by':null,"
                "'slipway.dev/released-by':'stepping/web'}}}");
    assert_json(step_stateful_set_patch(ours, &none, f.arena),
                "{'spec':{'updateStrategy':{'type':'RollingUpdate','rollingUpdate':{'partition':1,"
                "'maxUnavailable':null,'maxSurge':null}}},'metadata':{'annotations':"
                "{'slipway.dev/held-by':null,'slipway.dev/stepped-by':null,"
                "'slipway.dev/saved':null}}}");
    assert_null(step_stateful_set_patch(own, &none, f.arena));
    held.others_owners = "user";
    assert_json(step_stateful_set_patch(ours, &held, f.arena),
                "{'metadata':{'annotations':{'slipway.dev/held-by':'stepping/web,user'}}}");
    assert_int_equal(step_partition(5, 5), 0);
    assert_int_equal(step_partition(5, 9), 0);
    end();
}

/* ---- DaemonSets ---- */

TEST(a_daemon_set_says_how_many_at_once_in_an_annotation)
{
    static const struct {
        const char *text;
        int32_t most;
    } cases[] = {{"3", 3},  {"25%", 2},  {"100%", 7}, {"900%", 7}, {"0", 1},
                 {"-1", 1}, {"many", 1}, {"99", 7},   {"1%", 1},   {"2x", 1}};

    begin();
    assert_int_equal(target_of(daemon_set("", "")).unavailable, 1);
    end();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin();
        const char *annotation =
            sw_arena_printf(f.arena, "'slipway.dev/max-unavailable':'%s'", cases[i].text);
        assert_int_equal(target_of(daemon_set(annotation, "")).unavailable, cases[i].most);
        end();
    }
}

TEST(a_daemon_set_is_held_by_on_delete)
{
    begin();
    const struct sw_daemon_set *own =
        daemon_set("", "'updateStrategy':{'type':'RollingUpdate','rollingUpdate':"
                       "{'maxUnavailable':2}}");
    const struct sw_daemon_set *ours = daemon_set(
        "'slipway.dev/stepped-by':'web','slipway.dev/held-by':'stepping/web','slipway.dev/saved':"
        "'{`updateStrategy`:{`type`:`RollingUpdate`,`rollingUpdate`:{`maxUnavailable`:2}}}'",
        "'updateStrategy':{'type':'OnDelete'}");
    struct step_grip grip = {
        .type = STEP_GRIP_HELD, .name = "web", .has_mark = true, .others_owners = ""};

    assert_false(target_of(own).is_held);
    assert_true(target_of(ours).is_held && target_of(ours).is_ours);
    assert_int_equal(target_of(ours).allowed, 3);
    assert_false(target_of(ours).is_observed);
    assert_json(step_daemon_set_patch(own, &grip, f.arena),
                "{'spec':{'updateStrategy':{'type':'OnDelete','rollingUpdate':null}},'metadata':"
                "{'annotations':{'slipway.dev/held-by':'stepping/web',"
                "'slipway.dev/stepped-by':'web','slipway.dev/saved':'{`updateStrategy`:"
                "{`type`:`RollingUpdate`,`rollingUpdate`:{`maxUnavailable`:2}}}'}}}");
    assert_null(step_daemon_set_patch(ours, &grip, f.arena));
    grip = (struct step_grip){.type = STEP_GRIP_NONE, .name = "web", .others_owners = ""};
    assert_json(step_daemon_set_patch(ours, &grip, f.arena),
                "{'spec':{'updateStrategy':{'type':'RollingUpdate','rollingUpdate':"
                "{'maxUnavailable':2,'partition':null,'maxSurge':null}}},'metadata':{'annotations':"
                "{'slipway.dev/held-by':null,'slipway.dev/stepped-by':null,"
                "'slipway.dev/saved':null}}}");
    end();
}

TEST(a_daemon_set_that_is_on_delete_by_its_owners_wish_has_no_steps)
{
    begin();
    static const char *const on_delete = "'updateStrategy':{'type':'OnDelete'}";
    assert_true(target_of(daemon_set("", on_delete)).is_recreate);
    assert_true(target_of(daemon_set("'slipway.dev/saved':'{`updateStrategy`:{`type`:`OnDelete`}}'",
                                     on_delete))
                    .is_recreate);
    assert_false(
        target_of(daemon_set("'slipway.dev/saved':'{`updateStrategy`:{`type`:`RollingUpdate`}}'",
                             on_delete))
            .is_recreate);
    assert_false(target_of(daemon_set("'slipway.dev/saved':'[]'", on_delete)).is_recreate);
    assert_false(target_of(daemon_set("", "")).is_recreate);
    end();
}

TEST(a_strategy_that_is_lost_becomes_the_default)
{
    begin();
    const struct sw_daemon_set *ours =
        daemon_set("'slipway.dev/stepped-by':'web','slipway.dev/saved':'[]'",
                   "'updateStrategy':{'type':'OnDelete'}");
    const struct step_grip none = {.type = STEP_GRIP_NONE, .name = "web", .others_owners = ""};
    const struct sw_json *patch = step_daemon_set_patch(ours, &none, f.arena);
    assert_string_equal(
        sw_json_get_string(sw_json_at(patch, "spec", "updateStrategy", NULL), "type"),
        "RollingUpdate");
    end();
}

/* ---- templates ---- */

static struct sw_raw raw(const char *text)
{
    const char *json = quoted(text);

    return (struct sw_raw){json, (uint32_t)strlen(json)};
}

TEST(a_template_is_put_back_without_what_its_revision_added)
{
    begin();
    struct sw_raw of_replica_set = raw("{'metadata':{'creationTimestamp':null,'labels':{'app':'a',"
                                       "'pod-template-hash':'x'}},'spec':{'c':[1]}}");
    struct sw_raw of_deployment = raw("{'metadata':{'labels':{'app':'a'}},'spec':{'c':[1]}}");
    struct sw_raw of_revision = raw("{'spec':{'template':{'$patch':'replace','metadata':{'labels':"
                                    "{'app':'a'}},'spec':{'c':[1]}}}}");
    struct sw_raw of_nothing = raw("{'spec':{}}");
    struct sw_json *patch;

    assert_int_equal(step_template_patch(STEP_DEPLOYMENT, &of_replica_set, f.arena, &patch), 0);
    assert_json(patch, "[{'op':'replace','path':'/spec/template','value':{'metadata':{'labels':"
                       "{'app':'a'}},'spec':{'c':[1]}}}]");
    assert_int_equal(step_template_patch(STEP_STATEFUL_SET, &of_revision, f.arena, &patch), 0);
    assert_json(patch, "[{'op':'replace','path':'/spec/template','value':{'metadata':{'labels':"
                       "{'app':'a'}},'spec':{'c':[1]}}}]");
    assert_int_equal(step_template_patch(STEP_DAEMON_SET, &of_nothing, f.arena, &patch), -EINVAL);
    assert_true(step_template_is(&of_replica_set, &of_deployment));
    assert_false(step_template_is(&of_replica_set, &of_nothing));
    end();
}

/* ---- which Pods go ---- */

static struct step_pod pod(const char *name, int32_t ordinal, bool is_updated, bool is_available)
{
    return (struct step_pod){
        .name = name,
        .uid = name,
        .revision = is_updated ? "new" : "old",
        .ordinal = ordinal,
        .is_updated = is_updated,
        .is_ready = is_available,
        .is_available = is_available,
    };
}

static const char *chosen(const struct step_pod *pods, size_t count, enum step_action_type type,
                          int32_t unavailable, size_t most)
{
    const struct step_look look = {.pods = pods, .pod_count = count};
    const struct step_choice choice = {
        .type = type,
        .name = "old",
        .replicas = 5,
        .unavailable = unavailable,
        .most = most,
    };
    const struct step_pod *out[8];
    size_t n = step_look_choose(&look, &choice, out);
    char *text = sw_arena_strdup(f.arena, "");

    for (size_t i = 0; i < n; i++)
        text = sw_arena_printf(f.arena, "%s%s", text, out[i]->name);
    return text;
}

TEST(the_highest_ordinal_goes_first_and_no_more_than_may_be_missing)
{
    begin();
    struct step_pod pods[] = {pod("a", 0, false, true), pod("b", 1, false, true),
                              pod("c", 2, true, true), pod("d", 3, true, true),
                              pod("e", 4, true, true)};
    assert_string_equal(chosen(pods, 5, STEP_BITE, 1, 8), "e");
    assert_string_equal(chosen(pods, 5, STEP_BITE, 2, 8), "ed");
    assert_string_equal(chosen(pods, 5, STEP_BITE, 3, 2), "ed");
    /* One is on its way already. */
    pods[4].is_deleting = true;
    assert_string_equal(chosen(pods, 5, STEP_BITE, 1, 8), "");
    /* One that serves nobody costs nothing. */
    pods[4] = pod("e", 4, true, false);
    assert_string_equal(chosen(pods, 5, STEP_BITE, 1, 8), "e");
    pods[2] = pod("c", 2, true, false);
    assert_string_equal(chosen(pods, 5, STEP_BITE, 3, 8), "ecd");
    /* One that is missing counts. */
    assert_string_equal(chosen(pods, 4, STEP_BITE, 2, 8), "c");
    end();
}

TEST(broken_ones_of_former_revisions_go_at_once)
{
    begin();
    struct step_pod pods[] = {pod("a", 0, false, true), pod("b", 1, false, false),
                              pod("c", 2, true, false), pod("d", 3, false, false),
                              pod("e", 4, true, true)};
    assert_string_equal(chosen(pods, 5, STEP_CLEAR, 1, 8), "db");
    assert_string_equal(chosen(pods, 5, STEP_CLEAR, 1, 1), "d");
    end();
}

TEST(a_pod_that_would_come_back_as_it_is_stays)
{
    begin();
    struct step_pod pods[] = {pod("a", 5, false, false), pod("b", 6, false, false),
                              pod("c", 7, false, false), pod("d", 8, false, false)};
    struct step_look look = {
        .pods = pods, .pod_count = 4, .current_revision = "old", .first_ordinal = 5};
    const struct step_choice choice = {
        .type = STEP_CLEAR, .partition = 3, .replicas = 4, .unavailable = 1, .most = 4};
    const struct step_pod *out[4];
    assert_int_equal(step_look_choose(&look, &choice, out), 1);
    assert_string_equal(out[0]->name, "d");
    look.current_revision = "older";
    assert_int_equal(step_look_choose(&look, &choice, out), 4);
    end();
}

TEST(of_a_daemon_set_old_ones_go_and_as_many_as_the_stop_says)
{
    begin();
    struct step_pod pods[] = {pod("a", -1, false, true), pod("b", -1, false, false),
                              pod("c", -1, false, true), pod("d", -1, true, true),
                              pod("e", -1, false, true)};
    const struct step_look look = {.pods = pods, .pod_count = 5};
    assert_string_equal(chosen(pods, 5, STEP_ADVANCE, 1, 8), "b");
    assert_string_equal(chosen(pods, 5, STEP_ADVANCE, 3, 8), "bac");
    assert_int_equal(step_look_most(&look, 5, 2, 8), 1);
    assert_int_equal(step_look_most(&look, 5, 5, 8), 4);
    assert_int_equal(step_look_most(&look, 5, 5, 3), 3);
    assert_int_equal(step_look_most(&look, 5, 1, 8), 0);
    pods[1].is_deleting = true;
    assert_int_equal(step_look_most(&look, 5, 2, 8), 0);
    end();
}

/* ---- admission ---- */

static const struct sw_opinion holds = {
    .verdict = SW_VERDICT_HOLD_OUT_OF_LINE,
    .is_selected = true,
    .owners = "stepping/web",
    .marks = "stepping/web",
    .words = "questions",
};
static const struct sw_opinion is_free = {
    .owners = "stepping/web", .words = "", .is_selected = true};

static struct sw_review_answer review(const void *now, const void *old,
                                      const struct sw_opinion *opinion, const char *name)
{
    const struct sw_review r = {
        .operation = old ? SW_OPERATION_UPDATE : SW_OPERATION_CREATE,
        .namespace_ = "n",
        .name = "web",
        .username = "somebody",
        .object = now,
        .old = old,
        .has_annotations = true,
        .arena = f.arena,
    };
    struct sw_review_answer answer = {0};

    step_review_set(&r, opinion, name, &answer);
    return answer;
}

#define SAVED_1 "'{`updateStrategy`:{`type`:`RollingUpdate`,`rollingUpdate`:{`partition`:1}}}'"

#define STEPPED "'slipway.dev/stepped-by':'web','slipway.dev/saved':" SAVED_1

static const char *with_template(int partition, int template_)
{
    return sw_arena_printf(f.arena,
                           "'replicas':5,'updateStrategy':{'type':'RollingUpdate',"
                           "'rollingUpdate':{'partition':%d}},'template':{'a':%d}",
                           partition, template_);
}

TEST(a_new_template_is_held_in_the_same_write)
{
    begin();
    const void *old = stateful_set("", with_template(1, 1));
    const void *now = stateful_set("", with_template(1, 2));
    struct sw_review_answer a = review(now, old, &holds, "web");
    assert_json(a.patch,
                "[{'op':'add','path':'/spec/updateStrategy','value':{'type':'RollingUpdate',"
                "'rollingUpdate':{'partition':2147483647}}},"
                "{'op':'add','path':'/metadata/annotations/slipway.dev~1held-by','value':"
                "'stepping/web'},"
                "{'op':'add','path':'/metadata/annotations/slipway.dev~1stepped-by','value':'web'},"
                "{'op':'add','path':'/metadata/annotations/slipway.dev~1saved','value':" SAVED_1
                "}]");
    assert_string_equal(a.warnings[0], "held by stepping/web: questions");
    assert_null(a.warnings[1]);
    /* Nothing to hold: nothing is changed. */
    assert_json(review(now, old, &is_free, "web").patch, "[]");
    assert_json(review(old, old, &holds, "web").patch, "[]");
    assert_json(review(now, old, &holds, NULL).patch, "[]");
    assert_json(review(now, NULL, &holds, "web").patch, "[]");
    end();
}

TEST(our_own_answer_that_comes_again_stays_as_it_is)
{
    begin();
    const void *old = stateful_set("", with_template(1, 1));
    const void *now =
        stateful_set(STEPPED ",'slipway.dev/held-by':'stepping/web'", with_template(INT32_MAX, 2));
    assert_json(review(now, old, &holds, "web").patch, "[]");
    end();
}

/* We are asked again because another webhook has changed what we answered. */
TEST(what_another_webhook_has_changed_in_our_answer_is_saved_as_well)
{
    begin();
    const void *old = stateful_set("", with_template(1, 1));
    const void *now = stateful_set(STEPPED ",'slipway.dev/held-by':'stepping/web'",
                                   "'replicas':5,'updateStrategy':{'type':'RollingUpdate',"
                                   "'rollingUpdate':{'partition':2147483647,'maxUnavailable':2}},"
                                   "'template':{'a':2}");
    assert_json(review(now, old, &holds, "web").patch,
                "[{'op':'add','path':'/metadata/annotations/slipway.dev~1saved','value':"
                "'{`updateStrategy`:{`type`:`RollingUpdate`,`rollingUpdate`:{"
                "`maxUnavailable`:2,`partition`:1}}}'}]");
    /* The same where it is ours already, and a newer template comes. */
    const void *ours =
        stateful_set(STEPPED ",'slipway.dev/held-by':'stepping/web'", with_template(3, 1));
    assert_json(review(now, ours, &holds, "web").patch,
                "[{'op':'add','path':'/metadata/annotations/slipway.dev~1saved','value':"
                "'{`updateStrategy`:{`type`:`RollingUpdate`,`rollingUpdate`:{"
                "`maxUnavailable`:2,`partition`:1}}}'}]");
    /* Its own partition. */
    now = stateful_set(STEPPED ",'slipway.dev/held-by':'stepping/web'", with_template(2, 2));
    assert_json(review(now, old, &holds, "web").patch,
                "[{'op':'add','path':'/spec/updateStrategy','value':{'type':'RollingUpdate',"
                "'rollingUpdate':{'partition':2147483647}}},"
                "{'op':'add','path':'/metadata/annotations/slipway.dev~1saved','value':"
                "'{`updateStrategy`:{`type`:`RollingUpdate`,`rollingUpdate`:{`partition`:2}}}'}]");
    end();
}

/* What its owner updates by hand stays so. */
TEST(the_type_that_is_saved_is_not_lost_with_what_is_changed_beside_it)
{
    begin();
    const void *old =
        stateful_set("", "'replicas':5,'updateStrategy':{'type':'OnDelete'},'template':{'a':1}");
    const void *now = stateful_set(
        "'slipway.dev/stepped-by':'web','slipway.dev/held-by':'stepping/web','slipway.dev/saved':"
        "'{`updateStrategy`:{`type`:`OnDelete`}}'",
        "'replicas':5,'updateStrategy':{'type':'RollingUpdate','rollingUpdate':{"
        "'partition':2147483647,'maxUnavailable':2}},'template':{'a':2}");
    assert_json(review(now, old, &holds, "web").patch, "[]");
    end();
}

TEST(what_another_webhook_makes_of_a_daemon_set_is_saved)
{
    begin();
    const char *marks = "'slipway.dev/stepped-by':'web','slipway.dev/held-by':'stepping/web',"
                        "'slipway.dev/saved':'{`updateStrategy`:{`type`:`RollingUpdate`}}'";
    const void *old =
        daemon_set("", "'updateStrategy':{'type':'RollingUpdate'},'template':{'a':1}");
    const void *now = daemon_set(marks, "'updateStrategy':{'type':'OnDelete','rollingUpdate':{"
                                        "'maxUnavailable':3}},'template':{'a':2}");
    assert_json(review(now, old, &holds, "web").patch,
                "[{'op':'add','path':'/spec/updateStrategy','value':{'type':'OnDelete'}},"
                "{'op':'add','path':'/metadata/annotations/slipway.dev~1saved','value':"
                "'{`updateStrategy`:{`type`:`RollingUpdate`,`rollingUpdate`:{"
                "`maxUnavailable`:3}}}'}]");
    now = daemon_set(marks, "'updateStrategy':{'type':'OnDelete'},'template':{'a':2}");
    assert_json(review(now, old, &holds, "web").patch, "[]");
    end();
}

TEST(a_daemon_set_with_a_new_template_becomes_on_delete)
{
    begin();
    const void *old =
        daemon_set("", "'updateStrategy':{'type':'RollingUpdate'},'template':{'a':1}");
    const void *now =
        daemon_set("", "'updateStrategy':{'type':'RollingUpdate'},'template':{'a':2}");
    assert_json(review(now, old, &holds, "web").patch,
                "[{'op':'add','path':'/spec/updateStrategy','value':{'type':'OnDelete'}},"
                "{'op':'add','path':'/metadata/annotations/slipway.dev~1held-by','value':"
                "'stepping/web'},"
                "{'op':'add','path':'/metadata/annotations/slipway.dev~1stepped-by','value':'web'},"
                "{'op':'add','path':'/metadata/annotations/slipway.dev~1saved','value':"
                "'{`updateStrategy`:{`type`:`RollingUpdate`}}'}]");
    end();
}

TEST(a_manifest_that_names_its_strategy_gets_ours_and_a_warning)
{
    begin();
    const void *old = stateful_set(STEPPED, with_template(3, 1));
    const void *now = stateful_set(STEPPED, with_template(0, 1));
    struct sw_review_answer a = review(now, old, &is_free, "web");
    assert_json(a.patch,
                "[{'op':'add','path':'/spec/updateStrategy','value':{'type':'RollingUpdate',"
                "'rollingUpdate':{'partition':3}}},"
                "{'op':'add','path':'/metadata/annotations/slipway.dev~1saved','value':"
                "'{`updateStrategy`:{`type`:`RollingUpdate`,`rollingUpdate`:{`partition`:0}}}'}]");
    assert_non_null(strstr(a.warnings[0], "SteppedRollout web"));
    assert_null(a.warnings[1]);
    end();
}

/* Somebody changes a part of it: the partition in it is ours, and would hold the set for ever. */
TEST(what_is_ours_in_a_strategy_is_not_saved_as_its_users)
{
    begin();
    const void *old = stateful_set(STEPPED, with_template(3, 1));
    const void *now = stateful_set(STEPPED, "'replicas':5,'updateStrategy':{'type':'RollingUpdate',"
                                            "'rollingUpdate':{'partition':3,'maxUnavailable':2}},"
                                            "'template':{'a':1}");
    assert_json(review(now, old, &is_free, "web").patch,
                "[{'op':'add','path':'/metadata/annotations/slipway.dev~1saved','value':"
                "'{`updateStrategy`:{`type`:`RollingUpdate`,`rollingUpdate`:{"
                "`maxUnavailable`:2,`partition`:1}}}'}]");
    end();
}

TEST(a_newer_template_in_the_middle_is_held_where_it_is_ours_already)
{
    begin();
    const void *old =
        stateful_set(STEPPED ",'slipway.dev/released-by':'stepping/web'", with_template(3, 1));
    const void *now =
        stateful_set(STEPPED ",'slipway.dev/released-by':'stepping/web'", with_template(3, 2));
    struct sw_review_answer a = review(now, old, &holds, "web");
    assert_json(a.patch,
                "[{'op':'add','path':'/spec/updateStrategy','value':{'type':'RollingUpdate',"
                "'rollingUpdate':{'partition':2147483647}}},"
                "{'op':'add','path':'/metadata/annotations/slipway.dev~1held-by','value':"
                "'stepping/web'},"
                "{'op':'remove','path':'/metadata/annotations/slipway.dev~1released-by'}]");
    assert_string_equal(a.warnings[0], "held by stepping/web: questions");
    end();
}

TEST(nobody_else_grants_or_takes)
{
    begin();
    const void *plain = stateful_set("", with_template(0, 1));
    const void *ours =
        stateful_set(STEPPED ",'slipway.dev/held-by':'stepping/web'", with_template(INT32_MAX, 1));
    const void *granted =
        stateful_set(STEPPED ",'slipway.dev/released-by':'stepping/web'", with_template(0, 1));
    /* A replace that leaves our annotations out gets them back. */
    assert_json(review(plain, ours, &is_free, "web").patch,
                "[{'op':'add','path':'/spec/updateStrategy','value':{'type':'RollingUpdate',"
                "'rollingUpdate':{'partition':2147483647}}},"
                "{'op':'add','path':'/metadata/annotations/slipway.dev~1held-by','value':"
                "'stepping/web'},"
                "{'op':'add','path':'/metadata/annotations/slipway.dev~1stepped-by','value':'web'},"
                "{'op':'add','path':'/metadata/annotations/slipway.dev~1saved','value':"
                "'{`updateStrategy`:{`type`:`RollingUpdate`,`rollingUpdate`:{`partition`:0}}}'}]");
    assert_json(review(granted, plain, &is_free, "web").patch,
                "[{'op':'add','path':'/spec/updateStrategy','value':{'type':'RollingUpdate',"
                "'rollingUpdate':{'partition':1}}},"
                "{'op':'remove','path':'/metadata/annotations/slipway.dev~1released-by'},"
                "{'op':'remove','path':'/metadata/annotations/slipway.dev~1stepped-by'},"
                "{'op':'remove','path':'/metadata/annotations/slipway.dev~1saved'}]");
    end();
}

TEST(a_copy_from_a_backup_comes_without_our_strategy)
{
    begin();
    const void *copy =
        stateful_set(STEPPED ",'slipway.dev/held-by':'stepping/web'", with_template(INT32_MAX, 1));
    assert_json(review(copy, NULL, &is_free, NULL).patch,
                "[{'op':'add','path':'/spec/updateStrategy','value':{'type':'RollingUpdate',"
                "'rollingUpdate':{'partition':1}}},"
                "{'op':'remove','path':'/metadata/annotations/slipway.dev~1held-by'},"
                "{'op':'remove','path':'/metadata/annotations/slipway.dev~1stepped-by'},"
                "{'op':'remove','path':'/metadata/annotations/slipway.dev~1saved'}]");
    end();
}

TEST(a_template_that_failed_is_refused_during_a_rollback)
{
    begin();
    struct sw_opinion opinion = holds;
    opinion.refusal = "this template has failed";
    const void *old = stateful_set(STEPPED, with_template(3, 1));
    const void *now = stateful_set(STEPPED, with_template(3, 2));
    struct sw_review_answer a = review(now, old, &opinion, "web");
    assert_true(a.is_denied);
    assert_string_equal(a.deny_message, "this template has failed");
    /* Whoever leaves the template alone is not refused. */
    assert_false(review(old, old, &opinion, "web").is_denied);
    end();
}

/* ---- SteppedRollouts ---- */

static struct sw_review_answer review_stepped(const char *target, const char *old,
                                              const char *promoted)
{
    const char *const names[] = {target, old};
    const struct sw_object *objects[2];

    for (size_t i = 0; i < 2; i++)
        objects[i] =
            decode(&step_kind,
                   sw_arena_printf(
                       f.arena,
                       "{'apiVersion':'slipway.dev/v1alpha1','kind':'SteppedRollout','metadata'"
                       ":{'name':'web','namespace':'n','uid':'u','resourceVersion':'7'},'spec':"
                       "{'targetRef':{'apiVersion':'apps/v1',%s}},"
                       "'status':{'lastPromotedHash':'%s'}}",
                       names[i], promoted));
    const struct sw_review r = {.operation = SW_OPERATION_UPDATE,
                                .object = objects[0],
                                .old = objects[1],
                                .arena = f.arena};
    struct sw_review_answer answer = {0};
    step_review_stepped(&r, NULL, true, &answer);
    return answer;
}

/* All that its status says is of the target that it has. */
TEST(another_target_is_another_stepped_rollout)
{
    begin();
    const char *web = "'kind':'Deployment','name':'web'";
    struct sw_review_answer a = review_stepped("'kind':'Deployment','name':'api'", web, "1");
    assert_true(a.is_denied);
    assert_non_null(strstr(a.deny_message, "spec.targetRef: "));
    assert_true(review_stepped("'kind':'StatefulSet','name':'web'", web, "1").is_denied);
    assert_false(review_stepped(web, web, "1").is_denied);
    /* Nothing is known of it yet: a mistake may be mended. */
    assert_false(review_stepped("'kind':'StatefulSet','name':'web'", web, "").is_denied);
    end();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("target", a_deployment_is_read_as_its_controller_resolves_it),
        CASE("target", a_deployments_hold_is_ours_only_where_it_names_us),
        CASE("target", a_dead_mans_raise_is_saved_and_put_back),
        CASE("target", what_somebody_has_changed_since_the_raise_stays),
        CASE("target", what_was_saved_and_is_none_becomes_the_default),
        CASE("target", a_stateful_set_may_update_what_is_above_its_partition),
        CASE("target", a_stateful_set_is_held_released_and_left_by_its_partition),
        CASE("target", a_daemon_set_says_how_many_at_once_in_an_annotation),
        CASE("target", a_daemon_set_is_held_by_on_delete),
        CASE("target", a_daemon_set_that_is_on_delete_by_its_owners_wish_has_no_steps),
        CASE("target", a_strategy_that_is_lost_becomes_the_default),
        CASE("target", a_template_is_put_back_without_what_its_revision_added),
        CASE("target", the_highest_ordinal_goes_first_and_no_more_than_may_be_missing),
        CASE("target", broken_ones_of_former_revisions_go_at_once),
        CASE("target", a_pod_that_would_come_back_as_it_is_stays),
        CASE("target", of_a_daemon_set_old_ones_go_and_as_many_as_the_stop_says),
        CASE("target", a_new_template_is_held_in_the_same_write),
        CASE("target", our_own_answer_that_comes_again_stays_as_it_is),
        CASE("target", what_another_webhook_has_changed_in_our_answer_is_saved_as_well),
        CASE("target", the_type_that_is_saved_is_not_lost_with_what_is_changed_beside_it),
        CASE("target", what_another_webhook_makes_of_a_daemon_set_is_saved),
        CASE("target", a_daemon_set_with_a_new_template_becomes_on_delete),
        CASE("target", a_manifest_that_names_its_strategy_gets_ours_and_a_warning),
        CASE("target", what_is_ours_in_a_strategy_is_not_saved_as_its_users),
        CASE("target", a_newer_template_in_the_middle_is_held_where_it_is_ours_already),
        CASE("target", nobody_else_grants_or_takes),
        CASE("target", a_copy_from_a_backup_comes_without_our_strategy),
        CASE("target", a_template_that_failed_is_refused_during_a_rollback),
        CASE("target", another_target_is_another_stepped_rollout),
    };
    return RUN(tests);
}
