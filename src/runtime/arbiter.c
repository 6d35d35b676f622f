/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking all arbiters, telling of a change of mind, and the way from a policy's request over the
 * hand to a patch.
 */
#include <slipway/arbiter.h>

#include <errno.h>
#include <string.h>

#include <slipway/watch.h>

#include "base/json.h"
#include "base/util.h"
#include "runtime/core.h"
#include "runtime/instance.h"

struct arbiter {
    struct sw_registration registration;
    const struct sw_kind *kind;
    sw_arbiter_fn fn;
};

int sw_arbiter_register(struct sw_instance *self, const struct sw_kind *kind, sw_arbiter_fn fn)
{
    struct arbiter *arbiter =
        sw_registry_add(&self->core->registry.arbiters, self, sizeof(*arbiter));

    arbiter->kind = kind;
    arbiter->fn = fn;
    return 0;
}

struct listener {
    struct sw_registration registration;
    const struct sw_kind *kind;
    sw_opinion_fn fn;
};

int sw_on_opinion(struct sw_instance *self, const struct sw_kind *kind, sw_opinion_fn fn)
{
    struct listener *listener =
        sw_registry_add(&self->core->registry.listeners, self, sizeof(*listener));

    listener->kind = kind;
    listener->fn = fn;
    return 0;
}

void sw_opinion_changed(struct sw_instance *self, const struct sw_kind *kind,
                        const char *namespace_, const char *name)
{
    const struct sw_link *ring = &self->core->registry.listeners;

    for (struct sw_link *l = ring->next; l != ring; l = l->next) {
        struct sw_registration *registration = container_of(l, struct sw_registration, link);
        const struct listener *listener = container_of(registration, struct listener, registration);
        if (registration->instance != self && listener->kind == kind)
            listener->fn(registration->instance, namespace_, name);
    }
}

/* ---- asking ---- */

static const char *join(struct sw_arena *arena, const char *a, const char *b, const char *between)
{
    if (!b[0])
        return a;
    return a[0] ? sw_arena_printf(arena, "%s%s%s", a, between, b) : b;
}

static const char *join_said(struct sw_arena *arena, const char *a, const char *b)
{
    return a && b ? join(arena, a, b, "; ") : a ? a : b;
}

static struct sw_json *join_patches(struct sw_arena *arena, struct sw_json *a,
                                    const struct sw_json *b)
{
    for (size_t i = 0; i < sw_json_size(b); i++) {
        if (!a)
            a = sw_json_array(arena);
        sw_json_append(a, sw_json_copy(arena, sw_json_element(b, i)));
    }
    return a;
}

/* Owners and words are those of the arbiters that hold; while nobody holds, of all that select. So
 * held-by always names who must agree before the workload rolls. */
static void add(struct sw_arena *arena, struct sw_opinion *sum, const struct sw_opinion *one)
{
    bool sum_holds = sum->verdict != SW_VERDICT_FREE;
    bool one_holds = one->verdict != SW_VERDICT_FREE;

    if (one->is_selected) {
        sum->rests_running = one->rests_running && (sum->rests_running || !sum->is_selected);
        sum->is_selected = true;
    }
    if (one->marks)
        sum->marks = sum->marks ? join(arena, sum->marks, one->marks, ",") : one->marks;
    sum->has_given_up |= one->has_given_up;
    sum->refusal = join_said(arena, sum->refusal, one->refusal);
    sum->warning = join_said(arena, sum->warning, one->warning);
    sum->patch = join_patches(arena, sum->patch, one->patch);
    if (one_holds && !sum_holds) {
        sum->owners = one->owners;
        sum->words = one->words;
    } else if (one_holds == sum_holds) {
        sum->owners = join(arena, sum->owners, one->owners, ",");
        sum->words = join(arena, sum->words, one->words, "; ");
    }
    sum->verdict = SW_MAX(sum->verdict, one->verdict);
}

static void ask(struct sw_core *core, const struct sw_instance *but,
                const struct sw_question *question, struct sw_opinion *ret_opinion)
{
    const struct sw_link *ring = &core->registry.arbiters;
    struct sw_opinion sum = {.owners = "", .words = ""};

    for (struct sw_link *l = ring->next; l != ring; l = l->next) {
        struct sw_registration *registration = container_of(l, struct sw_registration, link);
        const struct arbiter *arbiter = container_of(registration, struct arbiter, registration);
        struct sw_opinion one = {.owners = "", .words = ""};
        if (registration->instance == but || arbiter->kind != question->object->kind)
            continue;
        arbiter->fn(registration->instance, question, &one);
        add(question->arena, &sum, &one);
    }
    *ret_opinion = sum;
}

void sw_arbiters_ask_others(struct sw_instance *self, const struct sw_question *question,
                            struct sw_opinion *ret_opinion)
{
    ask(self->core, self, question, ret_opinion);
}

void sw_arbiters_ask(struct sw_instance *self, const struct sw_question *question,
                     struct sw_opinion *ret_opinion)
{
    ask(self->core, NULL, question, ret_opinion);
}

/* ---- the hand ---- */

int sw_hand_register(struct sw_instance *self, sw_hand_fn fn)
{
    struct sw_registry *registry = &self->core->registry;

    sw_assert(self->is_starting);
    if (registry->hand)
        return -EEXIST;
    registry->hand = self;
    registry->hand_fn = fn;
    return 0;
}

static int send(struct sw_instance *self, const struct sw_hold_request *request,
                const struct sw_json *patch, sw_answer_fn fn, void *arg)
{
    struct sw_write write = {
        .verb = SW_MERGE_PATCH,
        .kind = request->kind,
        .namespace_ = request->namespace_,
        .name = request->name,
        .body = patch,
        .resource_version = request->resource_version,
    };

    return sw_write(self, &write, fn, arg);
}

static int ask_hand(struct sw_instance *self, const struct sw_hold_request *request,
                    const struct sw_object *object, struct sw_arena *arena, sw_answer_fn fn,
                    void *arg)
{
    const struct sw_registry *registry = &self->core->registry;
    struct sw_json *patch = NULL;
    enum sw_outcome outcome =
        registry->hand_fn(registry->hand, self, request, object, arena, &patch);

    if (outcome == SW_OK)
        return send(self, request, patch, fn, arg);
    sw_write_answer_later(self, request->kind, request->namespace_, request->name, outcome, "", fn,
                          arg);
    return 0;
}

int sw_hold_send(struct sw_instance *self, const struct sw_hold_request *request, sw_answer_fn fn,
                 void *arg)
{
    const struct sw_object *object =
        sw_lookup(self, request->kind, request->namespace_, request->name);

    if (!self->core->registry.hand || !request->resource_version)
        return -EINVAL;
    /* Not behind the look at the store: a follower must not learn from it that it may write. */
    if (!sw_is_leading(self)) {
        sw_write_answer_later(self, request->kind, request->namespace_, request->name,
                              SW_NOT_LEADER, "another process leads", fn, arg);
        return 0;
    }
    if (!object || strcmp(object->resource_version, request->resource_version) != 0) {
        sw_write_answer_later(self, request->kind, request->namespace_, request->name,
                              object ? SW_CONFLICT : SW_NOT_FOUND, "the store knows a newer state",
                              fn, arg);
        return 0;
    }
    struct sw_arena *arena = sw_arena_new(0);
    int code = ask_hand(self, request, object, arena, fn, arg);
    sw_arena_free(arena);
    return code;
}
