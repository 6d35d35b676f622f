/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hand: the only writer of spec.paused. It carries out what policies ask for, answers the
 * reviews of Deployments, and is itself the arbiter of one policy, a person's wish in the
 * annotation slipway.dev/hold. It keeps no state beside the queue of Deployments with such a wish:
 * everything else is on the objects.
 */
#include <string.h>

#include <slipway/queue.h>
#include <slipway/telemetry.h>
#include <slipway/watch.h>
#include <slipway/workloads.h>

#include "hold.h"

/* Owner and policy of a hold that a person wishes for. */
#define USER "user"

struct state {
    struct sw_queue *wishes; /* Deployments whose hold for USER is not what the annotation says */
    struct sw_metric *held;
    struct sw_metric *released;
    struct sw_metric *reviews_held;
};

/* ---- the arbiter ---- */

/* Of StatefulSets and DaemonSets too, which are not paused by us: whoever holds them otherwise asks
 * for it. */

static void ask(struct sw_instance *self, const struct sw_question *question,
                struct sw_opinion *opinion)
{
    const char *reason = sw_annotation(question->object, SW_HOLD_BY_USER);

    (void)self;
    if (!reason)
        return;
    opinion->verdict = SW_VERDICT_HOLD_OUT_OF_LINE;
    opinion->owners = USER;
    opinion->words = reason;
}

/* ---- the hand ---- */

static void count_change(struct state *state, const struct hold_state *from,
                         const struct hold_state *to)
{
    if (!from->is_paused && to->is_paused)
        sw_count(state->held, 1);
    else if (from->is_paused && !to->is_paused)
        sw_count(state->released, 1);
}

static enum sw_outcome hand(struct sw_instance *self, struct sw_instance *asker,
                            const struct sw_hold_request *request, const struct sw_object *object,
                            struct sw_arena *arena, struct sw_json **ret_patch)
{
    struct sw_question question = {.object = object, .arena = arena};
    const char *policy = request->policy ? request->policy : sw_name(asker);
    struct sw_opinion others;
    struct hold_state from, to;

    if (object->kind != &sw_kind_deployment) {
        sw_error(self, "only Deployments are paused and resumed", SW_STR("module", sw_name(asker)),
                 SW_STR("kind", object->kind->kind), SW_STR("name", object->name));
        return SW_REFUSED;
    }
    sw_arbiters_ask_others(asker, &question, &others);
    hold_state_of(sw_as_deployment(object), &from);
    if (hold_apply(arena, &from, request, policy, &others, &to) == HOLD_REFUSED)
        return SW_HELD;
    *ret_patch = hold_merge_patch(arena, &from, &to, request->also);
    if (!*ret_patch)
        return SW_UNCHANGED;
    count_change(sw_state(self), &from, &to);
    return SW_OK;
}

/* ---- a person's wish ---- */

static bool wish_differs(const struct sw_deployment *deployment, enum sw_hold_verb *ret_verb)
{
    struct hold_state state;
    bool is_wished = sw_annotation(&deployment->meta, SW_HOLD_BY_USER) != NULL;

    hold_state_of(deployment, &state);
    bool is_held = hold_list_has(state.held_by, USER);
    *ret_verb = is_wished ? SW_HOLD_PAUSE : SW_HOLD_FREE;
    if (is_wished)
        return !hold_is_users_pause(&state) && !(is_held && state.is_paused);
    return is_held;
}

static void wish_written(struct sw_instance *self, void *arg, const struct sw_answer *answer)
{
    struct sw_run *run = arg;

    if (answer->outcome == SW_REFUSED)
        sw_warn(self, "hold wished for by a person not written, trying again",
                SW_STR("deployment", sw_run_key(run)), SW_STR("reason", answer->reason),
                SW_STR("message", answer->message));
    bool is_again = answer->outcome == SW_REFUSED || answer->outcome == SW_UNKNOWN ||
                    answer->outcome == SW_CONFLICT;
    sw_run_finish(run, is_again ? SW_RETRY : SW_DONE);
}

static enum sw_result look_at_wish(struct sw_instance *self, void *arg, struct sw_run *run)
{
    const char *key = sw_run_key(run);
    const char *name = strchr(key, '/') + 1;
    const char *namespace_ = sw_arena_strndup(sw_run_arena(run), key, (size_t)(name - key) - 1);
    const struct sw_object *object = sw_lookup(self, &sw_kind_deployment, namespace_, name);
    enum sw_hold_verb verb;

    (void)arg;
    if (!object || object->deleted_us || !wish_differs(sw_as_deployment(object), &verb))
        return SW_DONE;
    struct sw_hold_request request = {
        .kind = &sw_kind_deployment,
        .namespace_ = namespace_,
        .name = name,
        .resource_version = object->resource_version,
        .verb = verb,
        .policy = USER,
        .owners = USER,
    };
    return sw_hold_send(self, &request, wish_written, run) ? SW_RETRY : SW_LATER;
}

static void add_wish(struct sw_instance *self, const struct sw_object *object)
{
    struct state *state = sw_state(self);
    enum sw_hold_verb verb;

    if (!wish_differs(sw_as_deployment(object), &verb))
        return;
    struct sw_arena *arena = sw_arena_new(0);
    sw_queue_add(state->wishes, sw_arena_printf(arena, "%s/%s", object->namespace_, object->name));
    sw_arena_free(arena);
}

static void on_delta(struct sw_instance *self, void *arg, const struct sw_delta *delta)
{
    (void)arg;
    if (delta->now)
        add_wish(self, delta->now);
}

static bool visit(void *arg, const struct sw_object *object)
{
    add_wish(arg, object);
    return true;
}

static void on_leading(struct sw_instance *self, bool is_leading)
{
    if (is_leading)
        sw_each(self, &sw_kind_deployment, NULL, NULL, visit, self);
}

/* ---- admission ---- */

static bool is_by_us(struct sw_instance *self, const struct sw_review *review)
{
    const char *username = sw_self_username(self);

    return username[0] && strcmp(review->username, username) == 0 &&
           strcmp(review->field_manager, SW_FIELD_MANAGER) == 0;
}

/* answer: with a warning where the review holds. */
static void log_review(struct sw_instance *self, const struct sw_review *review,
                       const struct sw_opinion *opinion, const struct sw_review_answer *answer)
{
    const struct sw_deployment *now = sw_as_deployment(review->object);
    const struct sw_deployment *old = sw_as_deployment(review->old);
    bool is_new = !old || !sw_hash128_equal(now->template_hash, old->template_hash);
    char rollout[SW_ROLLOUT_SIZE];

    if (!answer->warnings[0] && !(is_new && opinion->is_selected))
        return;
    sw_rollout_text(now, rollout);
    sw_say_about(self, rollout, NULL);
    if (answer->warnings[0])
        sw_info(self, "held at admission", SW_STR("namespace", review->namespace_),
                SW_STR("name", now->meta.name), SW_STR("why", answer->warnings[0]),
                SW_BOOL("newTemplate", is_new), SW_BOOL("dryRun", review->is_dry_run));
    else
        sw_debug(self, "let through at admission", SW_STR("namespace", review->namespace_),
                 SW_STR("name", now->meta.name), SW_BOOL("dryRun", review->is_dry_run));
    sw_say_about(self, NULL, NULL);
}

static void review(struct sw_instance *self, const struct sw_review *review,
                   struct sw_review_answer *answer)
{
    struct state *state = sw_state(self);
    struct sw_question question = {
        .object = review->object,
        .old = review->old,
        .is_review = true,
        .arena = review->arena,
    };
    struct sw_opinion opinion;

    sw_arbiters_ask(self, &question, &opinion);
    hold_review(review, &opinion, is_by_us(self, review), answer);
    if (answer->warnings[0])
        sw_count(state->reviews_held, 1);
    if (review->object)
        log_review(self, review, &opinion, answer);
}

/* ---- the module ---- */

static int start(struct sw_instance *self, const void *config)
{
    struct state *state = sw_state(self);
    struct sw_queue_options queue = {.name = "pausing", .fn = look_at_wish};
    struct sw_watch_options watch = {.on_delta = on_delta};
    struct sw_admission admission = {
        .path = "/mutate-apps-v1-deployment",
        .webhook_name = "deployments.slipway.dev",
        .kind = &sw_kind_deployment,
        .is_mutating = true,
        .on_create = true,
        .on_update = true,
        .is_reinvoked = true,
        .fn = review,
    };
    int code;

    (void)config;
    state->wishes = sw_queue_new(self, &queue);
    state->held = sw_counter(self, "slipway_holds_total",
                             "Pauses that we asked the API server for.", NULL, NULL);
    state->released = sw_counter(self, "slipway_releases_total",
                                 "Resumptions that we asked the API server for.", NULL, NULL);
    state->reviews_held = sw_counter(self, "slipway_reviews_held_total",
                                     "Reviews answered with a hold and a warning.", NULL, NULL);
    sw_on_leading(self, on_leading);
    if ((code = sw_hand_register(self, hand)))
        return sw_fail(self, code, "another module already pauses and resumes");
    if ((code = sw_arbiter_register(self, &sw_kind_deployment, ask)) ||
        (code = sw_arbiter_register(self, &sw_kind_stateful_set, ask)) ||
        (code = sw_arbiter_register(self, &sw_kind_daemon_set, ask)))
        return code;
    if ((code = sw_admission_register(self, &admission)))
        return sw_fail(self, code, "the path %s is taken by another module", admission.path);
    sw_write_declare(self, &sw_kind_deployment, SW_MERGE_PATCH, SW_MAIN);
    return sw_watch(self, &sw_kind_deployment, &watch);
}

SW_API const struct sw_module sw_module_pausing = {
    SW_MODULE_HEAD("pausing"),
    .summary = "the one hand that pauses and resumes; mutating webhook for Deployments",
    .state_size = sizeof(struct state),
    .start = start,
};
