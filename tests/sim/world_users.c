/* SPDX-License-Identifier: Apache-2.0 */
/*
 * People, GitOps appliers and autoscalers: they speak to the API server as kubectl and the
 * controllers of a cluster do, know nothing of slipway, and now and then do what nobody should.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <slipway/memory.h>

#include "api.h"
#include "base/util.h"
#include "document.h"
#include "pods.h"
#include "workloads.h"
#include "world_steps.h"

#define MERGE "application/merge-patch+json"
#define APPLY "application/apply-patch+yaml"

/* ---- requests ---- */

struct request {
    struct world *world;
    struct sw_sim_call *call;
    char what[160];
    int status;
};

static void on_head(void *arg, int status, const char *content_type, unsigned retry_after_s,
                    const char *const *warnings, size_t warning_count)
{
    struct request *request = arg;

    (void)content_type;
    (void)retry_after_s;
    request->status = status;
    for (size_t i = 0; i < warning_count; i++)
        world_say(request->world, "%s: warning: %s", request->what, warnings[i]);
}

static void on_body(void *arg, const char *bytes, size_t len)
{
    struct request *request = arg;

    if (request->status >= 400)
        world_say(request->world, "%s: %.*s", request->what, (int)SW_MIN(len, 400), bytes);
}

static void on_end(void *arg, bool is_whole)
{
    struct request *request = arg;

    (void)is_whole;
    world_say(request->world, "%s: %d", request->what, request->status);
    sw_free(request);
}

void user_sends(struct world *world, const char *user, const char *method, const char *path,
                const char *content_type, json_t *body_take)
{
    static const struct sw_sim_answer_events events = {on_head, on_body, on_end};
    struct request *request = SW_NEW(struct request);
    char *text = body_take ? json_dumps(body_take, JSON_COMPACT) : NULL;
    char agent[64];

    json_decref(body_take);
    request->world = world;
    snprintf(request->what, sizeof request->what, "%s: %s %s", user, method, path);
    snprintf(agent, sizeof agent, "%s/v1 (linux/amd64)", user);
    world_say(world, "%s %.300s", request->what, text ? text : "");
    const struct sw_sim_request wire = {
        .method = method,
        .target = path,
        .content_type = content_type,
        .user_agent = agent,
        .username = user,
        .body = text,
        .body_len = text ? strlen(text) : 0,
    };
    sw_sim_api_send(world->api, &wire, &events, request, &request->call);
    free(text);
}

static const char *path_of(int index, const char *more)
{
    static char path[160];

    snprintf(path, sizeof path, "/apis/apps/v1/namespaces/" NAMESPACE "/deployments/%s%s",
             deployment_name(index), more);
    return path;
}

static const char *path_of_group(int g)
{
    static char path[160];

    snprintf(path, sizeof path,
             "/apis/apps.containerinfra.nl/v1/namespaces/" NAMESPACE "/deploymentcoordinations/%s",
             group_name(g));
    return path;
}

static void patch(struct world *world, int index, json_t *body_take)
{
    user_sends(world, "jane", "PATCH", path_of(index, ""), MERGE, body_take);
}

static void annotate(struct world *world, int index, const char *key, const char *value)
{
    patch(world, index, json_pack("{s:{s:{s:s?}}}", "metadata", "annotations", key, value));
}

/* ---- Deployments ---- */

static json_t *template_of(int index, int number, bool is_bad)
{
    char image[64];

    snprintf(image, sizeof image, "example.org/app:%d", number);
    json_t *template =
        json_pack("{s:{s:{s:s}}, s:{s:[{s:s, s:s}]}}", "metadata", "labels", "app",
                  deployment_name(index), "spec", "containers", "name", "app", "image", image);
    if (is_bad)
        json_object_set_new(json_object_get(template, "metadata"), "annotations",
                            json_pack("{s:s}", "kubelets.slipway.dev/fail", "CrashLoopBackOff"));
    return template;
}

static json_t *labels_of(struct world *world, int index, uint32_t b)
{
    json_t *labels = json_pack("{s:s}", "app", deployment_name(index));

    for (int g = 0; g < world->case_.groups; g++)
        if (g == 0 ? b % 8 != 0 : b >> (3 + g) & 1)
            json_object_set_new(labels, group_name(g), json_string("yes"));
    return labels;
}

static json_t *manifest_of(struct world *world, int index, int number, uint32_t b)
{
    bool is_recreate = b / 64 % 8 == 0;
    json_t *d = json_pack(
        "{s:s, s:s, s:{s:s, s:s, s:o}, s:{s:i, s:i, s:{s:{s:s}}, s:{s:s}, s:o}}", "apiVersion",
        "apps/v1", "kind", "Deployment", "metadata", "name", deployment_name(index), "namespace",
        NAMESPACE, "labels", labels_of(world, index, b), "spec", "replicas", 1 + (int)(b / 512 % 3),
        "progressDeadlineSeconds", b / 2048 % 4 ? 600 : 60, "selector", "matchLabels", "app",
        deployment_name(index), "strategy", "type", is_recreate ? "Recreate" : "RollingUpdate",
        "template", template_of(index, number, false));
    if (!is_recreate && b / 8192 % 2)
        json_object_set_new(sw_sim_at(d, "spec.strategy"), "rollingUpdate",
                            json_pack("{s:i, s:i}", "maxSurge", 0, "maxUnavailable", 1));
    if (world->stepping)
        steps_shape(world, index, d, b);
    return d;
}

static void create(struct world *world, int index, uint32_t b)
{
    json_t *d = manifest_of(world, index, b / 16384 % 3 ? 1 : ++world->templates, b);
    json_t *metadata = json_object_get(d, "metadata");

    world->users_pause[index] = false;
    if (b / 65536 % 8 == 0) { /* a copy of another one, with all that was on it */
        json_object_set_new(metadata, "annotations",
                            json_pack("{s:s, s:s}", "slipway.dev/released-by", "coordination/g0",
                                      "slipway.dev/coordinated-by", "g0"));
        world->judge.members[index].is_forged = true;
    } else if (b / 65536 % 8 == 1) {
        json_object_set_new(metadata, "annotations",
                            json_pack("{s:s}", "slipway.dev/held-by", "coordination/g0"));
        json_object_set_new(json_object_get(d, "spec"), "paused", json_true());
    }
    user_sends(world, "jane", "POST", "/apis/apps/v1/namespaces/" NAMESPACE "/deployments",
               "application/json", d);
}

static void set_template(struct world *world, int index, int number, bool is_bad)
{
    json_t *template = template_of(index, number, is_bad);

    if (!is_bad)
        json_object_set_new(json_object_get(template, "metadata"), "annotations",
                            json_pack("{s:n}", "kubelets.slipway.dev/fail"));
    patch(world, index, json_pack("{s:{s:o}}", "spec", "template", template));
}

static void pause_or_resume(struct world *world, int index, const json_t *d, bool is_paused)
{
    if (is_paused && !sw_sim_bool_at(d, "spec.paused"))
        world->users_pause[index] = true;
    else if (!is_paused)
        world->users_pause[index] = false;
    patch(world, index, json_pack("{s:{s:b}}", "spec", "paused", is_paused));
}

static void scale(struct world *world, int index, int replicas)
{
    patch(world, index, json_pack("{s:{s:i}}", "spec", "replicas", replicas));
}

static void relabel(struct world *world, int index, const json_t *d, uint32_t b)
{
    const char *key = group_name((int)(b % (uint32_t)world->case_.groups));
    bool has = json_object_get(sw_sim_at(d, "metadata.labels"), key);

    patch(world, index, json_pack("{s:{s:{s:s?}}}", "metadata", "labels", key, has ? NULL : "yes"));
}

/* kubectl replace of what was read before, as far as a person edits it: annotations of somebody
 * else are old, or gone. */
static void replace(struct world *world, int index, const json_t *d, uint32_t b)
{
    json_t *copy = json_deep_copy(d);
    json_t *metadata = json_object_get(copy, "metadata");

    json_object_del(metadata, "resourceVersion");
    json_object_del(metadata, "managedFields");
    json_object_del(copy, "status");
    if (b % 2)
        json_object_del(metadata, "annotations");
    if (b / 2 % 3 == 0)
        json_object_set_new(json_object_get(copy, "spec"), "template",
                            template_of(index, ++world->templates, false));
    if (b / 8 % 3 == 0)
        json_object_set_new(json_object_get(copy, "spec"), "paused", json_false());
    user_sends(world, "jane", "PUT", path_of(index, ""), "application/json", copy);
}

static void forge(struct world *world, int index, uint32_t b)
{
    static const char *const keys[] = {"slipway.dev/released-by", "slipway.dev/held-by",
                                       "slipway.dev/coordinated-by", "slipway.dev/fence"};
    const char *key = keys[b % 4];
    static const char *const owners[] = {"coordination/g0", "coordination/g1", NULL};
    static const char *const names[] = {"g0", "g1", NULL};

    if (b % 4 == 0)
        world->judge.members[index].is_forged = true;
    annotate(world, index, key, b % 4 < 2 ? owners[b / 4 % 3] : names[b / 4 % 3]);
}

static void restart(struct world *world, int index)
{
    char stamp[32];

    snprintf(stamp, sizeof stamp, "%llu", (unsigned long long)world->now_ms);
    patch(world, index,
          json_pack("{s:{s:{s:{s:{s:s}}}}}", "spec", "template", "metadata", "annotations",
                    "kubectl.kubernetes.io/restartedAt", stamp));
}

/* ---- coordinations ---- */

static json_t *spec_of_group(struct world *world, int g, uint32_t b)
{
    static const char *const rest[] = {"Paused", "Running", "Running"};
    json_t *spec =
        json_pack("{s:i, s:i, s:s, s:s, s:s}", "maxActive", b % 8 == 0 ? 2 : 1, "minReadySeconds",
                  b / 8 % 3 ? 0 : 5, "availabilityGuard", b / 32 % 4 ? "Enforce" : "Off",
                  "failurePolicy", b / 128 % 3 ? "Stop" : "Skip", "atRest", rest[b / 512 % 3]);

    (void)world;
    json_object_set_new(spec, "labelSelector",
                        b / 2048 % 16 == 0
                            ? json_pack("{}")
                            : json_pack("{s:{s:s}}", "matchLabels", group_name(g), "yes"));
    return spec;
}

void user_creates_group(struct world *world, int g, uint32_t b)
{
    user_sends(world, "jane", "POST",
               "/apis/apps.containerinfra.nl/v1/namespaces/" NAMESPACE "/deploymentcoordinations",
               "application/json",
               json_pack("{s:s, s:s, s:{s:s, s:s}, s:o}", "apiVersion", "apps.containerinfra.nl/v1",
                         "kind", "DeploymentCoordination", "metadata", "name", group_name(g),
                         "namespace", NAMESPACE, "spec", spec_of_group(world, g, b)));
}

void user_deletes_group(struct world *world, int g)
{
    user_sends(world, "jane", "DELETE", path_of_group(g), NULL, NULL);
}

static void change_group(struct world *world, int g, const json_t *group, uint32_t b)
{
    json_t *spec = NULL;

    if (b / 8 % 8 == 7) { /* out of the guard's way, and back */
        bool skips = annotation_of(group, "slipway.dev/skip-guard")[0];
        user_sends(world, "jane", "PATCH", path_of_group(g), MERGE,
                   json_pack("{s:{s:{s:s?}}}", "metadata", "annotations", "slipway.dev/skip-guard",
                             skips ? NULL : "true"));
        return;
    }
    switch (b % 8) {
    case 0:
        user_deletes_group(world, g);
        return;
    case 1:
        spec = json_pack("{s:b}", "suspend", !sw_sim_bool_at(group, "spec.suspend"));
        break;
    case 2:
        spec = json_pack("{s:i}", "maxActive", 1 + (int)(b / 8 % 2));
        break;
    case 3: /* nobody accepts this selector, or the one it should be */
        spec = sw_sim_at(group, "spec.labelSelector.matchExpressions")
                   ? json_pack("{s:{s:n, s:{s:s}}}", "labelSelector", "matchExpressions",
                               "matchLabels", group_name(g), "yes")
                   : json_pack("{s:{s:[{s:s, s:s}]}}", "labelSelector", "matchExpressions", "key",
                               "app", "operator", "Like");
        break;
    case 4:
        spec = json_pack("{s:{s:n}}", "labelSelector", "matchLabels");
        break;
    default:
        spec = spec_of_group(world, g, b / 8);
        break;
    }
    user_sends(world, "jane", "PATCH", path_of_group(g), MERGE, json_pack("{s:o}", "spec", spec));
}

/* ---- those that come again and again ---- */

static void start_hpa(struct world *world, int index, uint32_t b)
{
    world->hpas[index] = (struct hpa){world->now_ms + 30000, world->now_ms, b};
}

static void start_gitops(struct world *world, int index, uint32_t b)
{
    static const uint64_t paces[] = {5, 200, 3000, 10000};

    world->gitops[index] = (struct gitops){.next_ms = world->now_ms,
                                           .every_ms = paces[b % 4],
                                           .until_ms = world->now_ms + paces[b % 4] * 20,
                                           .template_ = ++world->templates};
}

static void tell_node(struct world *world, int node, const char *what)
{
    char path[64];
    json_t *answer = NULL;

    snprintf(path, sizeof path, "/nodes/node-%d/%s", node, what);
    world_say(world, "somebody: kubectl %s node-%d", what, node);
    if (sw_sim_pods_tell(world->pods, "POST", path, NULL, &answer) >= 400)
        world_fail(world, "%s is refused", path);
    json_decref(answer);
}

/* Somebody renews the Nodes. */
static void start_drain(struct world *world, uint32_t b)
{
    static const uint64_t paces[] = {300, 2000, 6000, 12000};

    if (world->drain.node)
        return;
    world->drain = (struct drain){.node = 1, .every_ms = paces[b % 4]};
    world->drain.next_ms = world->now_ms + world->drain.every_ms;
    tell_node(world, 1, "drain");
}

static void go_on_draining(struct world *world)
{
    struct drain *drain = &world->drain;

    tell_node(world, drain->node, "uncordon");
    drain->node = drain->node < NODES ? drain->node + 1 : 0;
    drain->next_ms += drain->every_ms;
    if (drain->node)
        tell_node(world, drain->node, "drain");
}

static void delete_pods(struct world *world, int index)
{
    char path[96];

    snprintf(path, sizeof path, "/api/v1/namespaces/" NAMESPACE "/pods?labelSelector=app%%3D%s",
             deployment_name(index));
    if (world->stepping)
        world->stepping->targets[index].stirred_ms = world->now_ms;
    user_sends(world, "jane", "DELETE", path, NULL, NULL);
}

uint64_t users_next_ms(const struct world *world)
{
    uint64_t next = world->drain.node ? world->drain.next_ms : UINT64_MAX;

    for (int i = 0; i < world->case_.deployments; i++) {
        if (world->hpas[i].until_ms)
            next = SW_MIN(next, world->hpas[i].next_ms);
        if (world->gitops[i].until_ms)
            next = SW_MIN(next, world->gitops[i].next_ms);
    }
    return next;
}

static void apply(struct world *world, int index, struct gitops *gitops)
{
    /* What the applier does not name is left alone: replicas are the autoscaler's. */
    json_t *d =
        json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:{s:{s:s}}, s:o}}", "apiVersion", "apps/v1", "kind",
                  "Deployment", "metadata", "name", deployment_name(index), "namespace", NAMESPACE,
                  "spec", "selector", "matchLabels", "app", deployment_name(index), "template",
                  template_of(index, gitops->template_, false));

    user_sends(world, "argocd", "PATCH", path_of(index, "?fieldManager=argocd&force=true"), APPLY,
               d);
    if (world_random(world, 0, 7) == 0)
        gitops->template_ = ++world->templates;
}

void users_look(struct world *world)
{
    if (world->drain.node && world->drain.next_ms <= world->now_ms)
        go_on_draining(world);
    for (int i = 0; i < world->case_.deployments; i++) {
        struct hpa *hpa = &world->hpas[i];
        struct gitops *gitops = &world->gitops[i];
        if (hpa->until_ms && hpa->next_ms <= world->now_ms) {
            if (world_deployment(world, i))
                user_sends(world, "hpa", "PATCH", path_of(i, "/scale"), MERGE,
                           json_pack("{s:{s:i}}", "spec", "replicas",
                                     world->stepping ? steps_some_replicas(hpa->state++)
                                                     : 1 + (int)(hpa->state++ % 4)));
            hpa->next_ms += 5000;
            if (hpa->next_ms > hpa->until_ms)
                hpa->until_ms = 0;
        }
        if (gitops->until_ms && gitops->next_ms <= world->now_ms) {
            if (world_deployment(world, i))
                apply(world, i, gitops);
            gitops->next_ms += gitops->every_ms;
            if (gitops->next_ms > gitops->until_ms)
                gitops->until_ms = 0;
        }
    }
}

/* ---- one act ---- */

static void wave(struct world *world, uint32_t b)
{
    /* All at once, as a chart that raises a version. */
    for (int i = 0; i < world->case_.deployments; i++)
        if (world_deployment(world, i) && b >> i & 1)
            set_template(world, i, ++world->templates, false);
}

/* RFC 3339, so many seconds from now. */
static const char *time_text(const struct world *world, int64_t from_now_s)
{
    static char text[32];
    time_t at = (time_t)(sw_wall_us(world->loop) / 1000000 + from_now_s);
    struct tm parts;

    gmtime_r(&at, &parts);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text;
}

static void act_on(struct world *world, int index, const json_t *d, uint32_t what, uint32_t b)
{
    switch (what) {
    case 0:
        restart(world, index);
        break;
    case 1:
        pause_or_resume(world, index, d, b % 2);
        break;
    case 2:
        scale(world, index,
              b % 6 == 0        ? 0
              : world->stepping ? steps_some_replicas(b)
                                : 1 + (int)(b % 3));
        break;
    case 3:
        relabel(world, index, d, b);
        break;
    case 4:
        annotate(world, index, "slipway.dev/hold",
                 annotation_of(d, "slipway.dev/hold")[0] ? NULL : "freeze");
        break;
    case 5:
        annotate(world, index, "slipway.dev/ignore",
                 annotation_of(d, "slipway.dev/ignore")[0] ? NULL : "true");
        break;
    case 6:
        annotate(world, index, "slipway.dev/order", b % 2 ? "-1" : "1");
        break;
    case 7:
        forge(world, index, b);
        break;
    case 8:
        replace(world, index, d, b);
        break;
    case 9:
        set_template(world, index, ++world->templates, b % 3 == 0);
        break;
    case 10: /* back to an older one */
        set_template(world, index, 1 + (int)(b % (uint32_t)SW_MAX(world->templates, 1)), false);
        break;
    case 11:
        start_hpa(world, index, b);
        break;
    case 12:
        start_gitops(world, index, b);
        break;
    case 13: {
        json_t *ret = NULL;
        json_t *body = json_pack("{s:s, s:{s:s}}", "namespace", NAMESPACE, "selector", "app",
                                 deployment_name(index));
        sw_sim_pods_tell(world->pods, "POST", "/crash", body, &ret);
        json_decref(body);
        json_decref(ret);
        break;
    }
    case 14:
        user_sends(world, "jane", "DELETE", path_of(index, ""), NULL, NULL);
        if (b % 2) /* and at once again */
            create(world, index, b / 2);
        break;
    case 15:
        wave(world, b);
        break;
    case 16: /* it lets the others go first; a person's clock, and what people write there */
        annotate(world, index, "slipway.dev/skip",
                 b % 8 == 0   ? "tomorrow"
                 : b % 8 == 1 ? NULL
                              : time_text(world, (int64_t)(b / 8 % 7200) - 3600));
        break;
    case 17:
        start_drain(world, b);
        break;
    case 18:
        delete_pods(world, index);
        break;
    default:
        set_template(world, index, ++world->templates, false);
        break;
    }
}

void users_act(struct world *world, uint32_t a, uint32_t b)
{
    int index = (int)(a % (uint32_t)world->case_.deployments);
    uint32_t what = a / 16 % 24;
    const json_t *d = world_deployment(world, index);

    if (world->stepping && a & STEPPED_ACT) {
        steps_users_act(world, a, b);
        return;
    }

    if (what == 22) {
        int g = (int)(a / 512 % (uint32_t)world->case_.groups);
        const json_t *group = world_group(world, g);
        if (group)
            change_group(world, g, group, b);
        else
            user_creates_group(world, g, b);
    } else if (!d) {
        create(world, index, b);
    } else {
        act_on(world, index, d, what, b);
    }
}

/* ---- the beginning and the end ---- */

void users_begin(struct world *world)
{
    for (int i = 0; i < world->case_.deployments; i++)
        create(world, i, (uint32_t)world_random(world, 0, UINT32_MAX) | 0x20000);
    bool is_later = world_random(world, 0, 3) == 0; /* they run already when it comes */
    for (int g = 0; g < world->case_.groups && !world->case_.is_alone; g++)
        if (g == 0 ? !is_later : world_random(world, 0, 1))
            user_creates_group(world, g, (uint32_t)world_random(world, 0, UINT32_MAX));
}

static void put_right(struct world *world, int index)
{
    const json_t *d = world_deployment(world, index);

    world->hpas[index].until_ms = world->gitops[index].until_ms = 0;
    if (!d)
        return;
    if (annotation_of(d, "slipway.dev/hold")[0])
        annotate(world, index, "slipway.dev/hold", NULL);
    if (annotation_of(sw_sim_at(d, "spec.template"), "kubelets.slipway.dev/fail")[0])
        set_template(world, index, ++world->templates, false);
    if (sw_sim_bool_at(d, "spec.paused") && !annotation_of(d, "slipway.dev/held-by")[0])
        pause_or_resume(world, index, d, false);
}

void user_sets_template(struct world *world, int index)
{
    set_template(world, index, ++world->templates, false);
}

struct running {
    const char *owner; /* uid */
    const json_t *template;
    int64_t replicas;
};

static int find_running(void *arg, const struct sw_sim_object *object)
{
    struct running *running = arg;
    const json_t *document = sw_sim_object_json(object);
    const json_t *owner = json_array_get(sw_sim_at(document, "metadata.ownerReferences"), 0);
    int64_t replicas = sw_sim_int_at(document, "status.replicas", 0);

    if (strcmp(sw_sim_text_at(owner, "uid"), running->owner) == 0 && replicas > running->replicas) {
        running->replicas = replicas;
        running->template = sw_sim_at(document, "spec.template");
    }
    return 0;
}

void user_undoes_template(struct world *world, int index)
{
    struct running running = {.owner =
                                  sw_sim_text_at(world_deployment(world, index), "metadata.uid")};

    sw_sim_store_each(world->store, world->replicasets, NAMESPACE, NULL, find_running, &running);
    if (!running.template)
        return;
    json_t *template = json_deep_copy(running.template);
    json_object_del(sw_sim_at(template, "metadata.labels"), "pod-template-hash");
    user_sends(world, "jane", "PATCH", path_of(index, ""), "application/json-patch+json",
               json_pack("[{s:s, s:s, s:o}]", "op", "replace", "path", "/spec/template", "value",
                         template));
}

void user_hurries(struct world *world, int index)
{
    char order[16];

    snprintf(order, sizeof order, "%d", -1 - ++world->templates);
    annotate(world, index, "slipway.dev/order", order);
}

void user_suspends(struct world *world, int g, bool is_suspended)
{
    user_sends(world, "jane", "PATCH", path_of_group(g), MERGE,
               json_pack("{s:{s:b}}", "spec", "suspend", is_suspended));
}

void users_stop(struct world *world)
{
    if (world->drain.node)
        tell_node(world, world->drain.node, "uncordon");
    world->drain.node = 0;
    if (world->stepping)
        steps_users_stop(world);
    for (int i = 0; i < world->case_.deployments; i++)
        put_right(world, i);
    for (int g = 0; g < world->case_.groups; g++) {
        const json_t *group = world_group(world, g);
        json_t *spec;
        if (!group)
            continue;
        spec = json_pack("{s:b}", "suspend", 0);
        if (sw_sim_at(group, "spec.labelSelector.matchExpressions"))
            json_object_set_new(spec, "labelSelector", json_pack("{s:n}", "matchExpressions"));
        user_sends(world, "jane", "PATCH", path_of_group(g), MERGE,
                   json_pack("{s:o}", "spec", spec));
    }
}
