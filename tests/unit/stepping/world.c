/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two objects and their versions, what people and the second arbiter do to them, and time.
 */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define START_US INT64_C(1700000000000000)
#define ROUND_MS 1000
#define DEADLINE_MS 20000

uint32_t world_random(struct world *world, uint32_t below)
{
    uint64_t x = world->random += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)((x ^ x >> 31) >> 32) % below;
}

bool world_chance(struct world *world, uint32_t percent)
{
    return world_random(world, 100) < percent;
}

int64_t world_wall_us(const struct world *world)
{
    return START_US + (int64_t)world->now_ms * 1000;
}

void world_fail(struct world *world, const char *format, ...)
{
    va_list args;

    if (world->failure[0])
        return;
    va_start(args, format);
    int len = snprintf(world->failure, sizeof world->failure,
                       "at %.1f s: ", (double)world->now_ms / 1000);
    vsnprintf(world->failure + len, sizeof world->failure - (size_t)len, format, args);
    va_end(args);
    world_note(world, "FAILURE %s", world->failure);
}

void world_note(const struct world *world, const char *format, ...)
{
    va_list args;

    if (!world->is_loud)
        return;
    va_start(args, format);
    fprintf(stderr, "# %7.1f  ", (double)world->now_ms / 1000);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
}

/* ---- the target ---- */

static const struct sw_kind *const kinds[] = {&sw_kind_deployment, &sw_kind_stateful_set,
                                              &sw_kind_daemon_set};

struct version *world_change(struct world *world)
{
    struct version *next = SW_ARENA_NEW(world->arena, struct version);

    *next = *world->target;
    return next;
}

static struct sw_hash128 hash_of(int template_)
{
    return (struct sw_hash128){0, (uint64_t)template_ + 1};
}

static void annotate(struct version *v, uint32_t *count, const char *key, const char *value)
{
    v->annotations[(*count)++] = (struct sw_label){key, value};
}

/* What the decoder would have made of it. */
static void dress(const struct world *world, struct version *v)
{
    uint32_t count = 0;

    if (v->is_released)
        annotate(v, &count, SW_RELEASED_BY, "stepping/s");
    if (v->has_saved)
        annotate(v, &count, SW_SAVED, "{\"minReadySeconds\":0,\"progressDeadlineSeconds\":600}");
    if (v->is_marked)
        annotate(v, &count, SW_STEPPED_BY, "s");
    v->object.meta = (struct sw_object){
        .kind = kinds[world->config.kind],
        .namespace_ = "n",
        .name = "t",
        .uid = "t",
        .resource_version = v->text,
        .generation = v->generation,
        .annotations = {v->annotations, count},
        .owner_uid = "",
    };
    if (world->config.kind == STEP_DEPLOYMENT) {
        v->object.deployment.is_paused = v->is_paused;
        v->object.deployment.template_hash = hash_of(v->template_);
        v->object.deployment.min_ready_seconds = v->is_raised ? STEP_RAISED_READY_SECONDS : 0;
        v->object.deployment.progress_deadline_seconds =
            v->is_raised ? STEP_RAISED_DEADLINE_SECONDS : 600;
    } else if (world->config.kind == STEP_STATEFUL_SET) {
        v->object.stateful_set.template_hash = hash_of(v->template_);
    } else {
        v->object.daemon_set.template_hash = hash_of(v->template_);
    }
}

void world_store(struct world *world, struct version *v, bool is_spec)
{
    v->number = ++world->numbers;
    v->generation += is_spec;
    snprintf(v->text, sizeof v->text, "%llu", (unsigned long long)v->number);
    dress(world, v);
    if (is_spec)
        world_note(world, "target: template %d replicas %d%s%s%s%s%s%s partition %d", v->template_,
                   v->replicas, v->is_paused ? " paused" : "", v->is_on_delete ? " OnDelete" : "",
                   v->is_raised ? " raised" : "", v->is_held_by_us ? " held by us" : "",
                   v->is_held_by_other ? " held by other" : "", v->is_released ? " released" : "",
                   v->partition);
    if (world->target && world->target->template_ != v->template_) {
        world->by_hand = world->has_scaled = false;
        /* It was under way before, or a DaemonSet's Pods were just deleted for another one. */
        world->is_excused = world_count(world, v->template_) > 0 ||
                            world_count(world, -1) < v->replicas ||
                            (world->rollout && !world->rollout->last_promoted_hash[0]) ||
                            (world->config.kind == STEP_DAEMON_SET && world->rollout &&
                             world->rollout->activity[0]);
        world->allowed = 0;
    }
    world->is_excused = world->is_excused || world->is_missed;
    world->kept[v->template_] = true;
    world->is_missed = false;
    world->before = world->target;
    world->target = v;
}

void world_view(const struct world *world, const struct version *v, struct step_target *t)
{
    *t = (struct step_target){
        .kind = world->config.kind,
        .object = &v->object.meta,
        .is_observed = v->observed >= v->generation,
        .replicas = v->replicas,
        .status_replicas = v->status_replicas,
        .updated = v->updated,
        .ready = v->ready,
        .available = v->available,
        .surge = world->config.kind == STEP_DEPLOYMENT ? world->config.surge : 0,
        .unavailable = world->config.kind == STEP_DEPLOYMENT
                           ? world->config.unavailable
                           : (world->config.unavailable > 0 ? world->config.unavailable : 1),
        .is_ours = v->is_held_by_us,
        .is_released = v->is_released,
        .is_raised = v->is_raised,
        .has_saved = v->has_saved,
        .others = world->other_holds ? SW_VERDICT_HOLD_OUT_OF_LINE : SW_VERDICT_FREE,
        .others_words = world->other_holds ? "its user" : "",
        .others_owners = world->other_holds ? "user" : "",
        .revisions_age_ms = UINT64_MAX,
    };
    sw_hash128_text(hash_of(v->template_), t->hash);
    switch (world->config.kind) {
    case STEP_DEPLOYMENT:
        t->is_held = v->is_paused;
        t->is_users_pause = v->is_paused && !v->is_held_by_us && !v->is_held_by_other;
        t->allowed = v->is_paused ? v->updated : v->replicas;
        break;
    case STEP_STATEFUL_SET:
        t->is_ours = v->has_saved;
        t->allowed = v->partition < v->replicas ? v->replicas - v->partition : 0;
        t->is_held = v->has_saved && t->allowed <= v->updated;
        break;
    case STEP_DAEMON_SET:
        t->is_ours = t->is_held = v->has_saved && v->is_on_delete;
        t->allowed = v->updated;
        break;
    }
}

/* ---- the SteppedRollout ---- */

struct stepped *world_change_rollout(struct world *world)
{
    struct stepped *next = SW_ARENA_NEW(world->arena, struct stepped);

    *next = *world->rollout;
    return next;
}

void world_store_rollout(struct world *world, struct stepped *rollout)
{
    rollout->meta.resource_version =
        sw_arena_printf(world->arena, "%llu", (unsigned long long)++world->numbers);
    world->rollout_before = world->rollout;
    world->rollout = rollout;
    if (rollout->meta.deleted_us && rollout->finalizers.count == 0) {
        world_note(world, "rollout: gone");
        world->rollout = NULL;
    }
}

static void annotate_rollout(struct world *world, const char *key, const char *value)
{
    struct stepped *next = world_change_rollout(world);
    const struct sw_labels *old = &next->meta.annotations;
    struct sw_label *labels = SW_ARENA_ARRAY(world->arena, old->count + 1, struct sw_label);
    uint32_t count = 0;

    for (uint32_t i = 0; i < old->count; i++) /* sorted, as the decoder has them */
        if (strcmp(old->at[i].key, key) < 0)
            labels[count++] = old->at[i];
    labels[count++] = (struct sw_label){key, value};
    for (uint32_t i = 0; i < old->count; i++)
        if (strcmp(old->at[i].key, key) > 0)
            labels[count++] = old->at[i];
    next->meta.annotations = (struct sw_labels){labels, count};
    world_note(world, "people: %s=%s", key, value);
    world_store_rollout(world, next);
}

/* ---- admission ---- */

/* What the arbiter says in a review of the next version. */
static void ask(struct world *world, const struct version *now, const struct version *old,
                struct sw_opinion *opinion)
{
    struct version submitted = *now;
    struct sw_question question = {&submitted.object.meta, &old->object.meta, true, world->arena};
    struct step_target target;

    submitted.generation++;
    dress(world, &submitted);
    world_view(world, &submitted, &target);
    *opinion = (struct sw_opinion){.owners = "", .words = ""};
    step_opinion(world->rollout, &world->spec, &target, &question, opinion);
}

bool world_admit(struct world *world, struct version *now, const struct version *old)
{
    struct sw_opinion opinion;

    /* Where no slipway lives, or it is not reached, what is submitted passes. */
    if (!world->leader || (world->config.is_open && world_chance(world, 30))) {
        world->is_missed = now->template_ != old->template_;
        return true;
    }
    ask(world, now, old, &opinion);
    if (opinion.refusal)
        return false;
    if (opinion.patch)
        now->is_raised = now->has_saved = true;
    bool is_other = now->template_ != old->template_;
    if (world->config.kind == STEP_DEPLOYMENT) {
        if (old->is_held_by_us || old->is_held_by_other)
            now->is_paused = true;
        else if (!now->is_paused && opinion.verdict != SW_VERDICT_FREE)
            now->is_paused = now->is_held_by_us = now->is_marked = true;
        if (now->is_paused)
            now->is_released = false;
    } else if (opinion.verdict != SW_VERDICT_FREE && is_other) {
        now->has_saved = now->is_marked = true;
        now->is_held_by_us = true;
        now->is_released = false;
        now->is_on_delete = world->config.kind == STEP_DAEMON_SET;
        now->partition = world->config.kind == STEP_STATEFUL_SET ? PARTITION_MAX : 0;
    }
    return true;
}

/* Holds what runs, and leaves what it holds when it holds no more: then it stays paused where the
 * policy holds it. It lives in the same process, and asks the same arbiter. */
void world_other_hand(struct world *world)
{
    const struct version *old = world->target;
    struct sw_opinion opinion;

    if (world->config.kind != STEP_DEPLOYMENT || !world->leader)
        return;
    if (world->other_holds && !old->is_paused) {
        struct version *next = world_change(world);
        next->is_paused = next->is_held_by_other = true;
        next->is_released = false;
        world_store(world, next, true);
    } else if (!world->other_holds && old->is_held_by_other) {
        struct version *next = world_change(world);
        next->is_held_by_other = false;
        next->is_paused = false;
        ask(world, next, old, &opinion);
        next->is_held_by_us = next->is_held_by_us || opinion.verdict != SW_VERDICT_FREE;
        next->is_paused = next->is_held_by_us;
        if (opinion.patch)
            next->is_raised = next->has_saved = true;
        world_store(world, next, true);
    }
}

/* ---- people ---- */

static void submit(struct world *world, struct version *next)
{
    if (world_admit(world, next, world->target))
        world_store(world, next, true);
    else
        world_note(world, "people: refused");
}

static void scale(struct world *world)
{
    struct version *next = world_change(world);

    next->replicas = 1 + (int32_t)world_random(world, 9);
    if (world_chance(world, 5))
        next->replicas = 0;
    world_note(world, "people: %d replicas", next->replicas);
    submit(world, next);
    world->has_scaled = true;
}

static void apply_template(struct world *world)
{
    struct version *next = world_change(world);

    next->template_ = (int)world_random(world, TEMPLATES);
    world_note(world, "people: template %d", next->template_);
    submit(world, next);
}

static void suspend(struct world *world)
{
    struct stepped *next = world_change_rollout(world);

    next->is_suspended = !next->is_suspended;
    world_note(world, "people: suspend %d", next->is_suspended);
    world_store_rollout(world, next);
}

static void delete (struct world *world)
{
    struct stepped *next = world_change_rollout(world);

    if (next->meta.deleted_us)
        return;
    next->meta.deleted_us = world_wall_us(world);
    world_note(world, "people: delete the rollout");
    world_store_rollout(world, next);
}

static void pause(struct world *world)
{
    struct version *next = world_change(world);

    if (world->config.kind != STEP_DEPLOYMENT || next->is_held_by_us || next->is_held_by_other)
        return;
    next->is_paused = !next->is_paused;
    world_note(world, "people: paused %d", next->is_paused);
    submit(world, next);
}

static void people(struct world *world)
{
    if (!world->rollout) {
        if (world_chance(world, 30))
            apply_template(world);
        return;
    }
    uint32_t what = world_random(world, world->config.is_calm ? 40 : 100);
    if (what < 30)
        apply_template(world);
    else if (what < 34)
        annotate_rollout(world, STEP_PROMOTE, world_chance(world, 60) ? "step" : "full");
    else if (what < 36)
        annotate_rollout(world, STEP_ABORT, "true");
    else if (what < 40)
        annotate_rollout(world, STEP_RETRY, "true");
    else if (what < 60)
        scale(world);
    else if (what < 70)
        world->other_holds = !world->other_holds;
    else if (what < 75)
        suspend(world);
    else if (what < 77)
        delete (world);
    else if (what < 82)
        pause(world);
    else if (what < 92)
        world_leader_dies(world);
    else
        annotate_rollout(world, world_chance(world, 50) ? STEP_PROMOTE : STEP_ABORT, "nonsense");
    if (world->rollout && sw_annotation(&world->rollout->meta, STEP_PROMOTE))
        world->by_hand = true;
    world->must_plan = true;
}

/* ---- the beginning, time, the end ---- */

static void choose(struct world *world)
{
    static struct sw_int_or_percent steps[] = {
        {1, false, true}, {25, true, true}, {50, true, true}};
    struct config *c = &world->config;
    struct step_spec *spec = &world->spec;

    c->kind = world_chance(world, 60) ? STEP_DEPLOYMENT
                                      : (enum step_target_kind)(1 + world_random(world, 2));
    c->replicas = 1 + (int32_t)world_random(world, 10);
    c->surge = (int32_t)world_random(world, 4);
    c->unavailable = (int32_t)world_random(world, 3);
    if (c->surge + c->unavailable == 0)
        c->surge = 1;
    c->on_failure = (enum step_on_failure)world_random(world, 3);
    if (world_chance(world, 40))
        c->on_failure = STEP_RETREAT;
    c->iterations = 1 + (int32_t)world_random(world, 2);
    c->threshold = 1 + (int32_t)world_random(world, 2);
    c->has_dead_man = world_chance(world, 30);
    c->skips_analysis = world_chance(world, 5);
    c->has_gates = world_chance(world, 20);
    c->is_calm = world_chance(world, 40);
    c->is_open = !c->is_calm && world_chance(world, 30);
    c->fail_percent = world_chance(world, 50) ? 0 : 10;
    for (int t = 1; t < TEMPLATES; t++) {
        c->is_bad[t] = world_chance(world, 20);
        c->is_wrong[t] = world_chance(world, 25);
    }
    *spec = (struct step_spec){
        .step_size = {1 + (int32_t)world_random(world, 3), false, true},
        .deadline_ms = DEADLINE_MS,
        .interval_ms = ROUND_MS,
        .iterations = c->iterations,
        .threshold = c->threshold,
        .on_failure = c->on_failure,
    };
    if (world_chance(world, 60)) {
        spec->steps = steps;
        spec->step_count = 3;
    }
}

void world_begin(struct world *world, uint64_t seed)
{
    struct version *first;
    struct stepped *rollout;

    *world = (struct world){.arena = sw_arena_new((size_t)64 * 1024), .random = seed};
    choose(world);
    first = SW_ARENA_NEW(world->arena, struct version);
    first->replicas = world->config.replicas;
    world_store(world, first, true);
    rollout = SW_ARENA_NEW(world->arena, struct stepped);
    *rollout = (struct stepped){
        .meta = {.kind = &step_kind,
                 .namespace_ = "n",
                 .name = "s",
                 .uid = "s",
                 .generation = 1,
                 .owner_uid = ""},
        .target_api_version = "apps/v1",
        .target_kind = "Deployment",
        .target_name = "t",
        .has_dead_man = world->config.has_dead_man,
        .skips_analysis = world->config.skips_analysis,
        .phase = "",
        .activity = "",
        .message = "",
        .last_applied_hash = "",
        .last_promoted_hash = "",
        .failed_hash = "",
        .promoted_revision = "",
        .step_text = "",
        .updated_text = "",
    };
    world->spec.object = rollout;
    world_store_rollout(world, rollout);
    world->rollout_before = NULL;
    world->look_again_ms = UINT64_MAX;
}

void world_tick(struct world *world)
{
    world->now_ms += TICK_MS;
    /* It begins when everything runs. */
    if (!world->is_ending && world->now_ms > 8000 &&
        world_random(world, world->config.is_calm ? 150 : 60) == 0)
        people(world);
    world_other_hand(world);
    world_controllers(world);
    world_leader(world);
    world_check(world);
}

void world_end(struct world *world)
{
    world->is_ending = true;
    world->other_holds = false;
    if (world->rollout && world->rollout->is_suspended)
        suspend(world);
    if (world->config.kind == STEP_DEPLOYMENT && world->target->is_paused &&
        !world->target->is_held_by_us && !world->target->is_held_by_other)
        pause(world);
    world->must_plan = true;
}

void world_done(struct world *world)
{
    world->memory = step_memory_free(world->memory);
    for (int i = 0; i < REQUESTS_MAX; i++)
        sw_arena_free(world->requests[i].arena);
    sw_arena_free(world->arena);
}
