/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workloads of the three kinds and their SteppedRollouts, and what people do with them: templates
 * good and bad, sizes, whole manifests by an applier, holds, promotions, aborts, retries, and the
 * SteppedRollout taken away in the middle.
 */
#include "world_steps.h"

#include <stdio.h>
#include <string.h>

#include <slipway/apps.h>
#include <slipway/memory.h>
#include <slipway/workloads.h>

#include "api.h"
#include "base/map.h"
#include "base/util.h"
#include "document.h"
#include "kind.h"
#include "kube/decode.h"
#include "pods.h"

#define MERGE "application/merge-patch+json"
#define APPLY "application/apply-patch+yaml"

/* Longer than a review takes at its slowest, and the pause behind it: what comes up after the
 * pause was written cannot be blamed on it. */
#define POD_START "4s"
#define MEND_MS 60000
#define MENDS 5

const char *const question_names[QUESTIONS] = {
    [ASK_METRIC_0] = "m0",
    [ASK_METRIC_1] = "m1",
    [ASK_ROLLOUT] = "rollout",
    [ASK_CONFIRM_ROLLOUT] = "confirm-rollout",
    [ASK_PRE_ROLLOUT] = "pre-rollout",
    [ASK_CONFIRM_STEP] = "confirm-step",
    [ASK_CONFIRM_PROMOTION] = "confirm-promotion",
    [ASK_ROLLBACK] = "rollback",
    [ASK_POST_ROLLOUT] = "post-rollout",
    [ASK_EVENT] = "event",
};

static const char *const kind_names[] = {"Deployment", "StatefulSet", "DaemonSet"};
static const char *const plurals[] = {"deployments", "statefulsets", "daemonsets"};

/* ---- objects ---- */

const json_t *steps_target(const struct world *world, int t)
{
    const struct target *target = &world->stepping->targets[t];
    const struct sw_sim_object *object = sw_sim_store_get(
        world->store, world->stepping->kinds[target->kind], NAMESPACE, target->name);

    return object ? sw_sim_object_json(object) : NULL;
}

int steps_target_named(const struct world *world, const char *name)
{
    for (int t = 0; t < world->stepping->count; t++)
        if (strcmp(world->stepping->targets[t].name, name) == 0)
            return t;
    return -1;
}

struct search {
    const char *target;
    const struct sw_sim_object *oldest;
    const char *since;
};

static int find_oldest(void *arg, const struct sw_sim_object *object)
{
    struct search *search = arg;
    const json_t *json = sw_sim_object_json(object);
    const char *since = sw_sim_text_at(json, "metadata.creationTimestamp");

    /* In the order of names: of the same second the first counts. */
    if (strcmp(sw_sim_text_at(json, "spec.targetRef.name"), search->target) == 0 &&
        (!search->oldest || strcmp(since, search->since) < 0)) {
        search->oldest = object;
        search->since = since;
    }
    return 0;
}

const json_t *steps_stepped(const struct world *world, int t)
{
    struct search search = {.target = world->stepping->targets[t].name};

    sw_sim_store_each(world->store, world->stepping->stepped, NAMESPACE, NULL, find_oldest,
                      &search);
    return search.oldest ? sw_sim_object_json(search.oldest) : NULL;
}

int64_t steps_replicas(const struct target *target, const json_t *object)
{
    return target->kind == TARGET_DAEMON_SET
               ? sw_sim_int_at(object, "status.desiredNumberScheduled", 0)
               : sw_sim_int_at(object, "spec.replicas", 1);
}

int64_t steps_updated(const struct target *target, const json_t *object)
{
    return sw_sim_int_at(object,
                         target->kind == TARGET_DAEMON_SET ? "status.updatedNumberScheduled"
                                                           : "status.updatedReplicas",
                         0);
}

bool steps_is_observed(const json_t *object)
{
    return sw_sim_int_at(object, "status.observedGeneration", 0) >=
           sw_sim_int_at(object, "metadata.generation", 0);
}

/* ---- requests ---- */

static const char *path_of(const struct target *target, const char *more)
{
    static char path[160];

    snprintf(path, sizeof path, "/apis/apps/v1/namespaces/" NAMESPACE "/%s%s%s%s",
             plurals[target->kind], more[0] == '!' ? "" : "/", more[0] == '!' ? "" : target->name,
             more[0] == '!' ? "" : more);
    return path;
}

static const char *path_of_stepped(const char *name)
{
    static char path[160];

    snprintf(path, sizeof path,
             "/apis/slipway.dev/v1alpha1/namespaces/" NAMESPACE "/steppedrollouts%s%s",
             name[0] ? "/" : "", name);
    return path;
}

static const char *stepped_name(int t, bool is_second)
{
    static char names[2][16];

    snprintf(names[is_second], sizeof names[0], "%c%d", is_second ? 'x' : 'r', t);
    return names[is_second];
}

static void patch(struct world *world, int t, json_t *body_take)
{
    user_sends(world, "jane", "PATCH", path_of(&world->stepping->targets[t], ""), MERGE, body_take);
}

static void patch_stepped(struct world *world, int t, json_t *body_take)
{
    user_sends(world, "jane", "PATCH", path_of_stepped(stepped_name(t, false)), MERGE, body_take);
}

static void annotate(struct world *world, int t, const char *key, const char *value)
{
    patch(world, t, json_pack("{s:{s:{s:s?}}}", "metadata", "annotations", key, value));
}

static void annotate_stepped(struct world *world, int t, const char *key, const char *value)
{
    patch_stepped(world, t, json_pack("{s:{s:{s:s?}}}", "metadata", "annotations", key, value));
}

/* ---- workloads ---- */

int steps_some_replicas(uint32_t b)
{
    return 3 + (int)(b % 5);
}

static json_t *template_of(const struct target *target, int number, bool is_bad)
{
    char image[64];

    snprintf(image, sizeof image, "example.org/%s:%d", target->name, number);
    return json_pack("{s:{s:{s:s}, s:{s:s?}}, s:{s:[{s:s, s:s}]}}", "metadata", "labels", "app",
                     target->name, "annotations", "kubelets.slipway.dev/fail",
                     is_bad ? "CrashLoopBackOff" : NULL, "spec", "containers", "name", "app",
                     "image", image);
}

/* Rolled in steps it must be larger than a batch; with "90%" it mostly is not. */
static json_t *strategy_of(enum target_kind kind, uint32_t b)
{
    static const struct {
        const char *surge, *unavailable;
    } some[] = {{"1", "0"}, {"1", "0"}, {"25%", "25%"}, {"0", "1"}, {"2", "1"}, {"90%", "0"}};
    json_t *rolling = json_object();

    if (kind == TARGET_DEPLOYMENT) {
        const char *texts[] = {some[b % 6].surge, some[b % 6].unavailable};
        static const char *const keys[] = {"maxSurge", "maxUnavailable"};
        for (size_t i = 0; i < 2; i++)
            json_object_set_new(rolling, keys[i],
                                strchr(texts[i], '%') ? json_string(texts[i])
                                                      : json_integer(texts[i][0] - '0'));
    } else if (kind == TARGET_STATEFUL_SET) {
        json_object_set_new(rolling, "partition", json_integer(0));
    } else {
        json_object_set_new(rolling, "maxUnavailable", json_integer(1 + (int)(b % 2)));
    }
    return json_pack("{s:s, s:o}", "type", "RollingUpdate", "rollingUpdate", rolling);
}

static const char *strategy_key(const struct target *target)
{
    return target->kind == TARGET_DEPLOYMENT ? "strategy" : "updateStrategy";
}

/* What its people want of it, but for the template. Decided once: they do not change their minds,
 * so that what is put back can be known. */
static void decide(struct target *target, uint32_t b)
{
    if (target->strategy)
        return;
    target->strategy = strategy_of(target->kind, b);
    /* StatefulSets of the oldest servers have none. */
    target->min_ready_seconds = target->kind == TARGET_STATEFUL_SET || b / 8 % 4 ? 0 : 3;
    target->deadline_seconds = b / 32 % 4 ? 600 : 60;
}

void steps_shape(struct world *world, int t, json_t *manifest, uint32_t b)
{
    struct target *target = &world->stepping->targets[t];
    json_t *spec = json_object_get(manifest, "spec");

    decide(target, b);
    if (target->kind != TARGET_DAEMON_SET)
        json_object_set_new(spec, "replicas", json_integer(steps_some_replicas(b / 128)));
    json_object_set(spec, strategy_key(target), target->strategy);
    json_object_set_new(spec, "minReadySeconds", json_integer(target->min_ready_seconds));
    if (target->kind == TARGET_DEPLOYMENT)
        json_object_set_new(spec, "progressDeadlineSeconds",
                            json_integer(target->deadline_seconds));
    if (target->kind == TARGET_STATEFUL_SET) {
        json_object_set_new(spec, "serviceName", json_string(target->name));
        json_object_set_new(spec, "podManagementPolicy",
                            json_string(b / 1024 % 2 ? "OrderedReady" : "Parallel"));
    }
}

static json_t *manifest_of(struct world *world, int t, int number, uint32_t b)
{
    struct target *target = &world->stepping->targets[t];
    json_t *manifest = json_pack("{s:s, s:s, s:{s:s, s:s, s:{s:s}}, s:{s:{s:{s:s}}, s:o}}",
                                 "apiVersion", "apps/v1", "kind", kind_names[target->kind],
                                 "metadata", "name", target->name, "namespace", NAMESPACE, "labels",
                                 "app", target->name, "spec", "selector", "matchLabels", "app",
                                 target->name, "template", template_of(target, number, false));

    steps_shape(world, t, manifest, b);
    return manifest;
}

static void create(struct world *world, int t, uint32_t b)
{
    struct target *target = &world->stepping->targets[t];

    user_sends(world, "jane", "POST", path_of(target, "!"), "application/json",
               manifest_of(world, t, ++target->templates, b));
}

static void set_template(struct world *world, int t, int number, bool is_bad)
{
    patch(world, t,
          json_pack("{s:{s:o}}", "spec", "template",
                    template_of(&world->stepping->targets[t], number, is_bad)));
}

/* Argo CD, with all that is in git: it names what we have changed, too; not the size. */
static void apply(struct world *world, int t, uint32_t b)
{
    struct target *target = &world->stepping->targets[t];
    int number = b % 3 ? target->templates : ++target->templates;
    json_t *manifest = manifest_of(world, t, number, b);
    json_t *spec = json_object_get(manifest, "spec");

    json_object_del(spec, "replicas");
    json_object_del(spec, "podManagementPolicy");
    json_object_del(sw_sim_at(spec, "template.metadata"), "annotations");
    user_sends(world, "argocd", "PATCH", path_of(target, "?fieldManager=argocd&force=true"), APPLY,
               manifest);
}

static void scale(struct world *world, int t, int replicas)
{
    if (world->stepping->targets[t].kind != TARGET_DAEMON_SET)
        patch(world, t, json_pack("{s:{s:i}}", "spec", "replicas", replicas));
}

/* ---- SteppedRollouts ---- */

static void add_metrics(json_t *analysis, const char *name, uint32_t b)
{
    json_t *metrics = json_array();
    size_t count = b % 3;
    char address[96];

    for (size_t i = 0; i < count; i++) {
        snprintf(address, sizeof address, "http://prometheus.example:9090/%s/%s", name,
                 question_names[ASK_METRIC_0 + i]);
        json_array_append_new(metrics,
                              json_pack("{s:s, s:{s:i}, s:s, s:{s:s, s:s}}", "name",
                                        question_names[ASK_METRIC_0 + i], "thresholdRange", "max",
                                        1, "query", "errors{name=\"{{ name }}\"}[{{ interval }}]",
                                        "provider", "type", "prometheus", "address", address));
    }
    if (count > 0)
        json_object_set(analysis, "metrics", metrics);
    json_decref(metrics);
}

static void add_webhooks(json_t *analysis, const char *name, uint32_t b)
{
    json_t *webhooks = json_array();
    char url[96];

    for (int question = ASK_ROLLOUT; question < QUESTIONS; question++) {
        uint32_t bits = b >> 2 * (question - ASK_ROLLOUT);
        if (bits % 4)
            continue;
        snprintf(url, sizeof url, "http://gate.example/%s/%s", name, question_names[question]);
        json_array_append_new(webhooks, json_pack("{s:s, s:s, s:s, s:s, s:i}", "name", "gate",
                                                  "type", question_names[question], "url", url,
                                                  "timeout", "3s", "retries", (int)(b % 2)));
    }
    if (json_array_size(webhooks) > 0)
        json_object_set(analysis, "webhooks", webhooks);
    json_decref(webhooks);
}

static void add_stops(json_t *spec, uint32_t b)
{
    switch (b % 5) {
    case 0:
        json_object_set_new(spec, "stepSize", json_integer(2));
        break;
    case 1:
        json_object_set_new(spec, "stepSize", json_string("25%"));
        break;
    case 2:
        json_object_set_new(spec, "steps", json_pack("[i, s]", 1, "50%"));
        break;
    case 3:
        json_object_set_new(spec, "steps", json_pack("[s, s, i]", "30%", "60%", 5));
        break;
    default:
        break;
    }
}

static json_t *analysis_of(const char *name, uint32_t b, uint32_t hooks)
{
    static const char *const intervals[] = {"2s", "5s", "15s"};
    json_t *analysis = json_pack("{s:s, s:i, s:i}", "interval", intervals[b % 3], "iterations",
                                 1 + (int)(b / 3 % 2), "threshold", 1 + (int)(b / 6 % 3));

    if (b / 18 % 2)
        json_object_set_new(analysis, "pods", json_object());
    add_metrics(analysis, name, b / 36);
    add_webhooks(analysis, name, hooks);
    return analysis;
}

static void create_stepped(struct world *world, int t, bool is_second, uint32_t b)
{
    static const char *const endings[] = {"Retreat", "Retreat", "Rollback", "Hold"};
    const struct target *target = &world->stepping->targets[t];
    const char *name = stepped_name(t, is_second);
    json_t *spec =
        json_pack("{s:{s:s, s:s, s:s}, s:i, s:s, s:b}", "targetRef", "apiVersion", "apps/v1",
                  "kind", kind_names[target->kind], "name", target->name, "progressDeadlineSeconds",
                  b % 4 ? 600 : 45, "onFailure", endings[b / 4 % 4], "deadMan",
                  target->kind == TARGET_DEPLOYMENT && b / 16 % 3 == 0);

    if (!is_second) {
        uint32_t hooks = (uint32_t)world_random(world, 0, UINT32_MAX);
        add_stops(spec, b / 64);
        json_object_set_new(spec, "analysis", analysis_of(name, b / 512, hooks));
    }
    user_sends(world, "jane", "POST", path_of_stepped(""), "application/json",
               json_pack("{s:s, s:s, s:{s:s, s:s}, s:o}", "apiVersion", "slipway.dev/v1alpha1",
                         "kind", "SteppedRollout", "metadata", "name", name, "namespace", NAMESPACE,
                         "spec", spec));
}

static const json_t *stored_stepped(const struct world *world, int t, bool is_second)
{
    const struct sw_sim_object *object = sw_sim_store_get(world->store, world->stepping->stepped,
                                                          NAMESPACE, stepped_name(t, is_second));

    return object ? sw_sim_object_json(object) : NULL;
}

static void delete_stepped(struct world *world, int t, bool is_second)
{
    user_sends(world, "jane", "DELETE", path_of_stepped(stepped_name(t, is_second)), NULL, NULL);
}

static void flip(struct world *world, int t, const char *key)
{
    char path[64];
    const json_t *stepped = stored_stepped(world, t, false);

    snprintf(path, sizeof path, "spec.%s", key);
    patch_stepped(world, t, json_pack("{s:{s:b}}", "spec", key, !sw_sim_bool_at(stepped, path)));
}

/* ---- acts ---- */

/* 404: none of the Pods runs. */
static void tell_kubelets(struct world *world, const char *method, const char *path,
                          json_t *body_take)
{
    json_t *answer = NULL;
    int status = sw_sim_pods_tell(world->pods, method, path, body_take, &answer);

    if (status >= 400 && status != 404)
        world_fail(world, "%s is refused", path);
    json_decref(answer);
    json_decref(body_take);
}

static void delete_pods(struct world *world, int t)
{
    char path[96];

    snprintf(path, sizeof path, "/api/v1/namespaces/" NAMESPACE "/pods?labelSelector=app%%3D%s",
             world->stepping->targets[t].name);
    world->stepping->targets[t].stirred_ms = world->now_ms;
    user_sends(world, "jane", "DELETE", path, NULL, NULL);
}

static void change_mood(struct world *world, int t, uint32_t b)
{
    struct target *target = &world->stepping->targets[t];

    target->mood = b % 3 == 0 ? (enum mood)(b / 4 % MOODS) : b % 3 == 1 ? MOOD_MIXED : MOOD_GOOD;
    target->is_gate_open = b / 64 % 4;
    world_say(world, "of %s the servers think %d, the gate is %s", target->name, target->mood,
              target->is_gate_open ? "open" : "shut");
}

static void act_on_target(struct world *world, int t, uint32_t what, uint32_t b)
{
    struct target *target = &world->stepping->targets[t];

    switch (what) {
    case 0: /* back to an older one */
        set_template(world, t, 1 + (int)(b % (uint32_t)target->templates), false);
        break;
    case 1:
        apply(world, t, b);
        break;
    case 2:
        scale(world, t, b % 16 == 0 ? 0 : steps_some_replicas(b / 16));
        break;
    case 3:
        annotate(world, t, "slipway.dev/hold",
                 annotation_of(steps_target(world, t), "slipway.dev/hold")[0] ? NULL : "freeze");
        break;
    case 4:
        delete_pods(world, t);
        break;
    case 5:
        tell_kubelets(
            world, "POST", "/crash",
            json_pack("{s:s, s:{s:s}}", "namespace", NAMESPACE, "selector", "app", target->name));
        break;
    case 6:
        user_sends(world, "jane", "DELETE", path_of(target, ""), NULL, NULL);
        break;
    default:
        set_template(world, t, ++target->templates, b % 5 == 0);
        break;
    }
}

static void act_on_stepped(struct world *world, int t, uint32_t what, uint32_t b)
{
    switch (what) {
    case 0:
        annotate_stepped(world, t, "slipway.dev/promote", b % 3 ? "step" : "full");
        break;
    case 1:
        annotate_stepped(world, t, "slipway.dev/abort", "true");
        break;
    case 2:
        annotate_stepped(world, t, "slipway.dev/retry", "true");
        break;
    case 3:
        flip(world, t, b % 3 ? "suspend" : "skipAnalysis");
        break;
    case 4:
        delete_stepped(world, t, false);
        if (b % 2)
            annotate_stepped(world, t, "slipway.dev/abort", "release");
        break;
    case 5:
        if (stored_stepped(world, t, true))
            delete_stepped(world, t, true);
        else
            create_stepped(world, t, true, b);
        break;
    default:
        change_mood(world, t, b);
        break;
    }
}

void steps_users_act(struct world *world, uint32_t a, uint32_t b)
{
    int t = (int)(a % (uint32_t)world->stepping->count);
    bool is_there = steps_target(world, t);

    if (!is_there && world->stepping->targets[t].kind != TARGET_DEPLOYMENT)
        create(world, t, b);
    else if (!stored_stepped(world, t, false))
        create_stepped(world, t, false, b);
    else if (is_there && a / 64 % 5 < 3)
        act_on_target(world, t, a / 512 % 16, b);
    else
        act_on_stepped(world, t, a / 512 % 10, b);
}

/* ---- the beginning and the end ---- */

static void add_target(struct steps *steps, enum target_kind kind, int number)
{
    static const char letters[] = {'d', 's', 'm'};
    struct target *target = &steps->targets[steps->count++];

    target->kind = kind;
    target->is_gate_open = true;
    snprintf(target->name, sizeof target->name, "%c%d", letters[kind], number);
}

static void add_decoder(struct steps *steps, enum target_kind kind, const struct sw_kind *of)
{
    steps->decoders[kind] = sw_decoder_new(of, steps->intern);
}

static void install(struct world *world, const char *group, const char *plural, const char *file,
                    const char *kind)
{
    const struct sw_sim_kind *of = sw_sim_api_kind(world->api, group, "v1", plural);
    json_t *manifest = manifest_read(file, kind);
    size_t i;
    json_t *webhook;

    json_array_foreach(json_object_get(manifest, "webhooks"), i, webhook)
    {
        json_object_set_new(webhook, "failurePolicy",
                            json_string(world->case_.faults & FAULT_IGNORE ? "Ignore" : "Fail"));
        json_object_del(webhook, "namespaceSelector");
    }
    if (sw_sim_create(world->api, of, manifest, NULL))
        world_fail(world, "%s of %s cannot be made", kind, file);
}

void steps_begin(struct world *world)
{
    struct steps *steps = world->stepping = SW_NEW(struct steps);

    steps->world = world;
    for (int i = 0; i < world->case_.deployments; i++)
        add_target(steps, TARGET_DEPLOYMENT, i);
    for (int i = 0; i < world->case_.stateful_sets; i++)
        add_target(steps, TARGET_STATEFUL_SET, i);
    for (int i = 0; i < world->case_.daemon_sets; i++)
        add_target(steps, TARGET_DAEMON_SET, i);
    install(world, "apiextensions.k8s.io", "customresourcedefinitions", "crds/steppedrollouts.yaml",
            "CustomResourceDefinition");
    install(world, "admissionregistration.k8s.io", "mutatingwebhookconfigurations",
            "install-stepping.yaml", "MutatingWebhookConfiguration");
    install(world, "admissionregistration.k8s.io", "validatingwebhookconfigurations",
            "install-stepping.yaml", "ValidatingWebhookConfiguration");
    tell_kubelets(world, "PATCH", "/settings",
                  json_pack("{s:s, s:s}", "start", POD_START, "stop", "300ms"));
    sw_loop_virtual_advance(world->loop, 1000);
    for (size_t i = 0; i < SW_ARRAY_SIZE(plurals); i++)
        steps->kinds[i] = sw_sim_api_kind(world->api, "apps", "v1", plurals[i]);
    steps->stepped = sw_sim_api_kind(world->api, "slipway.dev", "v1alpha1", "steppedrollouts");
    steps->pods = sw_sim_api_kind(world->api, "", "v1", "pods");
    steps->revisions = sw_sim_api_kind(world->api, "apps", "v1", "controllerrevisions");
    steps->intern = sw_intern_new();
    add_decoder(steps, TARGET_DEPLOYMENT, &sw_kind_deployment);
    add_decoder(steps, TARGET_STATEFUL_SET, &sw_kind_stateful_set);
    add_decoder(steps, TARGET_DAEMON_SET, &sw_kind_daemon_set);
    if (!steps->stepped)
        world_fail(world, "the CRD of SteppedRollouts is not served");
}

void steps_done(struct world *world)
{
    struct steps *steps = world->stepping;

    for (int t = 0; t < steps->count; t++)
        json_decref(steps->targets[t].strategy);
    for (size_t i = 0; i < SW_ARRAY_SIZE(steps->decoders); i++)
        sw_decoder_free(steps->decoders[i]);
    sw_intern_free(steps->intern);
    world->stepping = sw_free(steps);
}

void steps_users_begin(struct world *world)
{
    for (int t = 0; t < world->stepping->count; t++) {
        struct target *target = &world->stepping->targets[t];
        uint32_t b = (uint32_t)world_random(world, 0, UINT32_MAX);
        if (target->kind != TARGET_DEPLOYMENT)
            create(world, t, b);
        else if (target->templates == 0)
            target->templates = 1;
        create_stepped(world, t, false, (uint32_t)world_random(world, 0, UINT32_MAX));
        if (world_random(world, 0, 2) == 0)
            change_mood(world, t, b);
    }
}

static void put_right(struct world *world, int t)
{
    struct target *target = &world->stepping->targets[t];
    const json_t *object = steps_target(world, t), *first = stored_stepped(world, t, false);
    const json_t *stepped = steps_stepped(world, t);

    target->mood = MOOD_GOOD;
    target->is_gate_open = true;
    if (first &&
        (sw_sim_bool_at(first, "spec.suspend") || sw_sim_bool_at(first, "spec.skipAnalysis")))
        patch_stepped(world, t,
                      json_pack("{s:{s:b, s:b}}", "spec", "suspend", 0, "skipAnalysis", 0));
    if (object && annotation_of(object, "slipway.dev/hold")[0])
        annotate(world, t, "slipway.dev/hold", NULL);
    bool is_bad =
        object && annotation_of(sw_sim_at(object, "spec.template"), "kubelets.slipway.dev/fail")[0];
    if (is_bad || (stepped && strcmp(sw_sim_text_at(stepped, "status.phase"), "Failed") == 0))
        set_template(world, t, ++target->templates, false);
    /* What has no Pods waits for some. */
    if (object && stepped && steps_replicas(target, object) == 0 &&
        strcmp(sw_sim_text_at(stepped, "status.phase"), "Held") == 0)
        scale(world, t, 3);
    /* Where nobody steps it, a StatefulSet waits for a broken Pod for ever, whatever its template:
     * https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#forced-rollback */
    if (object && target->kind == TARGET_STATEFUL_SET &&
        sw_sim_int_at(object, "status.readyReplicas", 0) < steps_replicas(target, object))
        delete_pods(world, t);
}

void steps_users_stop(struct world *world)
{
    world->stepping->is_quiet = true;
    for (int t = 0; t < world->stepping->count; t++)
        put_right(world, t);
}

/* What was heard late, as through a watch that had long been silent, may have failed after people
 * have gone: they hear of it, and come back. */
void steps_users_mend(struct world *world)
{
    for (int t = 0; t < world->stepping->count; t++) {
        struct target *target = &world->stepping->targets[t];
        const json_t *stepped = steps_stepped(world, t);
        const char *activity = stepped ? sw_sim_text_at(stepped, "status.activity") : "";
        if (!stepped || strcmp(sw_sim_text_at(stepped, "status.phase"), "Failed") != 0 ||
            strcmp(activity, "Retreating") == 0 || strcmp(activity, "RollingBack") == 0 ||
            world->now_ms < target->mended_ms + MEND_MS || target->mends == MENDS)
            continue;
        target->mended_ms = world->now_ms;
        target->mends++;
        set_template(world, t, ++target->templates, false);
    }
}

void steps_delete_all(struct world *world)
{
    for (int t = 0; t < world->stepping->count; t++) {
        if (stored_stepped(world, t, false))
            delete_stepped(world, t, false);
        if (stored_stepped(world, t, true))
            delete_stepped(world, t, true);
    }
}
