/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reviews: from the simulated API server to any replica that is alive, without a socket. The
 * replica answers as it does over HTTPS (sw_admission_answer), from caches that are as old as they
 * are. One that sleeps does not answer in time; one that is dead, or not reached, is an error at
 * once or silence.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slipway/arena.h>
#include <slipway/memory.h>
#include <slipway/watch.h>

#include "api.h"
#include "base/buf.h"
#include "base/util.h"
#include "kind.h"
#include "runtime/admission.h"
#include "runtime/core.h"
#include "runtime/instance.h"
#include "world_steps.h"

/* Of modules/coordination; its kind alone. */
extern const struct sw_kind coord_kind;

struct review {
    struct world *world;
    struct sw_timer timer;
    json_t *request; /* of the review */
    char *body;
    size_t len;
    char path[128];
    uint64_t due_ms;
    struct replica *replica; /* NULL: nobody */
    int status;
    struct sw_buf answer;
    char why[64];
    sw_sim_admission_done_fn done;
    void *done_arg;
};

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

static const char *name_of(const struct review *review)
{
    const char *name = text_of(review->request, "name");

    if (name[0])
        return name;
    return text_of(json_object_get(json_object_get(review->request, "object"), "metadata"), "name");
}

/* The Deployment it is about; -1: none of ours. */
static int subject(const struct review *review)
{
    return deployment_index(name_of(review));
}

/* The target of a SteppedRollout of which somebody else changes the spec; -1: none. */
static int stepped_subject(const struct review *review)
{
    const json_t *user = json_object_get(review->request, "userInfo");
    const json_t *object = json_object_get(review->request, "object");
    const json_t *old = json_object_get(review->request, "oldObject");

    if (!review->world->stepping || strcmp(text_of(user, "username"), OUR_NAME) == 0 ||
        json_equal(json_object_get(object, "spec"), json_object_get(old, "spec")))
        return -1;
    return steps_target_named(review->world, name_of(review));
}

/* Does the replica know all that the review hangs on, as it is stored now? */
static bool knows_groups(const struct world *world, const struct replica *replica)
{
    const struct sw_instance *self = replica->core->instances[0];

    for (int g = 0; g < world->case_.groups; g++) {
        const json_t *stored = world_group(world, g);
        const struct sw_object *known = sw_lookup(self, &coord_kind, NAMESPACE, group_name(g));
        const json_t *metadata = stored ? json_object_get(stored, "metadata") : NULL;
        if (!stored != !known)
            return false;
        if (stored &&
            (strcmp(known->uid, text_of(metadata, "uid")) != 0 ||
             known->generation != json_integer_value(json_object_get(metadata, "generation"))))
            return false;
    }
    return true;
}

/* Every group that selects it, as stored or as submitted, stands in its mark. */
static bool is_marked(const struct world *world, const struct review *review)
{
    const json_t *old = json_object_get(review->request, "oldObject");
    const json_t *new = json_object_get(review->request, "object");
    const char *marks = json_is_object(old) ? annotation_of(old, "slipway.dev/coordinated-by") : "";

    for (int g = 0; g < world->case_.groups; g++) {
        const json_t *group = world_group(world, g);
        if (group && judge_selects(group, new) && !list_has(marks, group_name(g)))
            return false;
    }
    return true;
}

static void finish(struct review *review)
{
    struct world *world = review->world;
    int index = subject(review);

    if (index >= 0 && review->status != 200)
        judge_excuse(world, index);
    int t = stepped_subject(review);
    if (t >= 0 && review->status != 200)
        steps_excuse(world, t);
    world_say(world, "review of %s: %s%d %s", name_of(review),
              review->replica ? "answered " : "not answered ", review->status, review->why);
    world->reviews--;
    review->done(review->done_arg, review->status, review->answer.bytes, review->answer.len,
                 review->why);
    sw_buf_done(&review->answer);
    json_decref(review->request);
    sw_free(review->body);
    sw_free(review);
}

static void on_done(struct sw_timer *timer)
{
    finish(container_of(timer, struct review, timer));
}

static void fail_in(struct review *review, const char *why, uint64_t after_ms)
{
    review->status = 0;
    snprintf(review->why, sizeof review->why, "%s", why);
    sw_timer_init(&review->timer, review->world->loop, on_done);
    sw_timer_start(&review->timer, after_ms);
}

static void allow(struct review *review)
{
    sw_buf_clear(&review->answer);
    sw_buf_printf(&review->answer,
                  "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\","
                  "\"response\":{\"uid\":\"%s\",\"allowed\":true}}",
                  text_of(review->request, "uid"));
    review->status = 200;
}

/* The bug anybody-is-us. */
static void pretend_to_be_us(struct review *review)
{
    json_t *document = json_loadb(review->body, review->len, 0, NULL);
    json_t *request = json_object_get(document, "request");

    json_object_set_new(json_object_get(request, "userInfo"), "username", json_string(OUR_NAME));
    json_object_set_new(json_object_get(request, "options"), "fieldManager",
                        json_string("slipway"));
    char *text = json_dumps(document, JSON_COMPACT);
    sw_free(review->body);
    review->body = sw_strdup(text);
    review->len = strlen(text);
    free(text);
    json_decref(document);
}

static void on_arrival(struct sw_timer *timer)
{
    struct review *review = container_of(timer, struct review, timer);
    struct world *world = review->world;
    struct replica *replica = review->replica;
    uint64_t now = sw_now_ms(world->loop);
    uint64_t left = review->due_ms > now ? review->due_ms - now : 0;
    const char *content_type;

    if (!replica->core || replica->lives == 0) {
        review->replica = NULL;
        fail_in(review, "connection refused", 1);
        return;
    }
    if (!replica_is_awake(replica)) {
        review->replica = NULL;
        fail_in(review, "context deadline exceeded", left);
        return;
    }
    if (world->case_.bug == BUG_ANYBODY_IS_US)
        pretend_to_be_us(review);
    struct sw_arena *arena = sw_arena_new(0);
    const struct sw_admission_request request = {
        .method = "POST",
        .path = review->path,
        .content_type = "application/json",
        .body = review->body,
        .body_len = review->len,
        .arena = arena,
    };
    review->status = sw_admission_answer(replica->core, &request, &review->answer, &content_type);
    int index = subject(review);
    if (review->status == 200 && index >= 0 && !knows_groups(world, replica) &&
        !is_marked(world, review))
        judge_excuse(world, index);
    int t = stepped_subject(review);
    if (t >= 0 && review->status == 200 && !steps_knows(world, replica, t))
        steps_excuse(world, t);
    sw_arena_free(arena);
    if (world->case_.bug == BUG_REVIEW_PATCH_DROPPED && review->status == 200)
        allow(review);
    uint64_t delay = world_random(world, 1, 4);
    if (delay > left) {
        fail_in(review, "context deadline exceeded", left);
        return;
    }
    sw_timer_init(&review->timer, world->loop, on_done);
    sw_timer_start(&review->timer, delay);
}

static struct replica *any_replica(struct world *world)
{
    int count = world->case_.replicas;
    int first = (int)world_random(world, 0, (uint64_t)count - 1);

    /* A Service sends to those that were ready a short time ago; mostly they still are. */
    for (int i = 0; i < count; i++) {
        struct replica *replica = &world->replicas[(first + i) % count];
        if (replica->core && !replica->deaf_until_ms &&
            (sw_core_is_ready(replica->core) || world_random(world, 0, 9) == 0))
            return replica;
    }
    return &world->replicas[first];
}

static void call(void *arg, const json_t *client_config, const char *text, size_t len,
                 uint64_t timeout_ms, sw_sim_admission_done_fn done, void *done_arg)
{
    struct world *world = arg;
    struct review *review = SW_NEW(struct review);
    json_t *document = json_loadb(text, len, 0, NULL);
    const char *path = text_of(json_object_get(client_config, "service"), "path");

    review->world = world;
    review->request = json_incref(json_object_get(document, "request"));
    json_decref(document);
    review->body = sw_strndup(text, len);
    review->len = len;
    snprintf(review->path, sizeof review->path, "%s", path);
    review->due_ms = sw_now_ms(world->loop) + timeout_ms;
    review->done = done;
    review->done_arg = done_arg;
    sw_buf_init(&review->answer, SIZE_MAX);
    world->reviews++;
    if (world->case_.bug == BUG_REVIEW_SKIPPED && world_random(world, 0, 1)) {
        allow(review); /* nobody was asked */
        sw_timer_init(&review->timer, world->loop, on_done);
        sw_timer_start(&review->timer, 1);
        return;
    }
    if (world->webhook_down_until_ms) {
        bool is_silent = world_random(world, 0, 1);
        fail_in(review, is_silent ? "context deadline exceeded" : "no route to host",
                is_silent ? timeout_ms : 1);
        return;
    }
    review->replica = any_replica(world);
    sw_timer_init(&review->timer, world->loop, on_arrival);
    uint64_t slow_ms = world->stepping ? 900 : 2900; /* world_steps.c: of a Pod's start */
    bool is_slow = !world->is_ending && !world->case_.is_prompt && world_random(world, 0, 30) == 0;
    sw_timer_start(&review->timer, world_random(world, 1, is_slow ? slow_ms : 4));
}

struct sw_sim_admission_caller admission_caller(struct world *world)
{
    return (struct sw_sim_admission_caller){.call = call, .arg = world};
}
