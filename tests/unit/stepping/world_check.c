/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must hold at every moment, at every step of the status, and when everything has come to
 * rest.
 */
#include "world.h"

#include <string.h>

#include "mode.h"

#define QUIET_MS 60000
#define PATIENCE_TICKS 12000

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* ---- the bound ---- */

/* While a slipway lives and hears, or with deadMan also while none does. */
static void note_excuses(struct world *world, const struct step_target *t, enum step_mode mode)
{
    bool is_running = world->config.kind == STEP_DEPLOYMENT && !world->target->is_paused;
    const struct stepped *s = world->rollout;

    if (s->is_suspended || s->meta.deleted_us || step_is_unsteppable(t))
        world->is_excused = true;
    if (is_running && mode != STEP_MODE_REST && !world->leader && !t->is_raised)
        world->is_excused = true;
}

void world_check(struct world *world)
{
    struct step_target t;
    const struct version *v = world->target;

    if (!world->rollout)
        return;
    world_view(world, v, &t);
    enum step_mode mode = step_mode_of(world->rollout, &t);
    if (mode == STEP_MODE_UNKNOWN)
        world->is_excused = true;
    if (mode == STEP_MODE_UNKNOWN || mode == STEP_MODE_REST)
        return;
    note_excuses(world, &t, mode);
    if (world->is_excused || world->has_scaled || world->by_hand)
        return;
    int32_t batch =
        world->config.kind == STEP_DEPLOYMENT ? world->config.surge + world->config.unavailable : 0;
    int32_t updated = world_count(world, v->template_);
    world->checks++;
    if (updated > world->allowed + (world->allowed > 0 ? batch : 0))
        world_fail(world, "%d Pods are updated; the stop is %d, a batch %d%s", updated,
                   world->allowed, batch, world->leader ? "" : ", and no slipway lives");
}

/* ---- the status ---- */

void world_check_status(struct world *world, const struct stepped *from, const struct stepped *to)
{
    enum step_activity a = step_activity_of(from), b = step_activity_of(to);
    bool is_same = is(from->last_applied_hash, to->last_applied_hash);
    bool goes_on = b == STEP_ADVANCING || b == STEP_PROMOTING;
    bool is_back = b == STEP_ADVANCING && to->current_step <= from->current_step;
    struct step_target t;

    world_view(world, world->target, &t);
    bool is_excused =
        world->by_hand || from->skips_analysis || !is_same || !is(to->last_applied_hash, t.hash);
    if (b == STEP_ADVANCING && is(to->last_applied_hash, t.hash) && to->stop > world->allowed)
        world->allowed = to->stop;
    if (b == STEP_PROMOTING && is(to->last_applied_hash, t.hash))
        world->allowed = INT32_MAX / 2;
    if (a == STEP_ANALYSING && goes_on && !is_back) {
        if (!is_excused && world->rounds_in_row < world->config.iterations)
            world_fail(world, "step %d was passed after %d rounds of %d", from->current_step,
                       world->rounds_in_row, world->config.iterations);
        world->passed++;
    }
    if (a == STEP_ADVANCING && b == STEP_PROMOTING && !is_excused &&
        from->current_step < to->step_count)
        world_fail(world, "step %d was never analysed", from->current_step);
    if (a == STEP_QUESTIONS && b == STEP_PROMOTING && !is_excused && to->step_count > 1)
        world_fail(world, "no step was made");
    if (a != b || !is_same)
        world->rounds_in_row = 0;
    if (is(to->phase, "Succeeded") && !is(from->phase, "Succeeded")) {
        world->succeeded++;
        /* Another one came at that moment, one that was the promoted one until then perhaps. */
        if (!is(to->last_promoted_hash, t.hash))
            world->is_excused = true;
        if (is(to->last_promoted_hash, t.hash) &&
            world_count(world, world->target->template_) != world_count(world, -1))
            world_fail(world, "succeeded, with Pods of another template");
    }
    if (is(to->phase, "Failed") && !is(from->phase, "Failed"))
        world->failed++;
    if (is(to->activity, "Retreated") && !is(from->activity, "Retreated"))
        world->retreated++;
    if (is(to->activity, "RolledBack") && !is(from->activity, "RolledBack"))
        world->rolled_back++;
    if (is(to->phase, "Held") && !to->message[0])
        world_fail(world, "held, and nobody says by whom");
}

/* ---- at rest ---- */

static void come_to_rest(struct world *world)
{
    for (int i = 0; i < PATIENCE_TICKS && !world->failure[0]; i++) {
        world_tick(world);
        if (world->now_ms > world->last_write_ms + QUIET_MS)
            return;
    }
    world_fail(world, "never comes to rest: %s %s", world->rollout ? world->rollout->phase : "gone",
               world->rollout ? world->rollout->activity : "");
}

static bool has_ours(const struct version *v)
{
    return v->is_held_by_us || v->is_released || v->is_marked || v->has_saved || v->is_raised ||
           v->is_on_delete || v->partition != 0;
}

static void check_gone(struct world *world)
{
    if (has_ours(world->target))
        world_fail(world, "the rollout is gone, and something of ours is left");
    if (world->target->is_paused)
        world_fail(world, "the rollout is gone, and its target is paused");
}

static void check_failed(struct world *world, const struct step_target *t)
{
    const struct stepped *s = world->rollout;
    int promoted = s->promoted_revision[1] - '0';
    bool is_back = is(t->hash, s->last_promoted_hash);

    if (is(s->activity, "RolledBack") && !is_back)
        world_fail(world, "rolled back, and the template is another");
    if (!is(s->activity, "RolledBack") && !is(t->hash, s->failed_hash))
        world_fail(world, "failed, and the template is another");
    if (is(s->activity, "Retreated") && world_count(world, promoted) != world_count(world, -1))
        world_fail(world, "retreated, and there are Pods that are not of the promoted template");
    if (!is(s->activity, "RolledBack") && !t->is_held && world->config.kind != STEP_STATEFUL_SET)
        world_fail(world, "failed, and not held");
    if (!s->message[0])
        world_fail(world, "failed, and nobody says why");
    if (!is(s->activity, "Retreated") && !is(s->activity, "RolledBack") && !is(s->activity, "Held"))
        world_fail(world, "stays in %s", s->activity);
}

static void check_rest(struct world *world)
{
    const struct stepped *s = world->rollout;
    const struct sw_condition *ready = sw_condition_get(&s->conditions, "Ready");
    struct step_target t;

    world_view(world, world->target, &t);
    if (!ready) {
        world_fail(world, "no condition Ready");
    } else if (is(ready->status, "False") && is(ready->reason, "InvalidSpec")) {
        if (!step_is_unsteppable(&t))
            world_fail(world, "InvalidSpec: %s", ready->message);
    } else if (is(s->phase, "Failed")) {
        check_failed(world, &t);
    } else if (is(s->phase, "Succeeded") || is(s->phase, "Initialized")) {
        struct version clean = *world->target;
        clean.is_marked = false;
        if (!is(t.hash, s->last_promoted_hash))
            world_fail(world, "%s, and the template is another", s->phase);
        if (has_ours(&clean) || t.is_held)
            world_fail(world, "%s, and something of ours is left", s->phase);
        if (!step_is_complete(&t) && !world->config.is_bad[world->target->template_] &&
            world->config.kind != STEP_STATEFUL_SET)
            world_fail(world, "%s, and not complete", s->phase);
    } else if (is(s->phase, "Initializing")) {
        if (step_is_complete(&t))
            world_fail(world, "complete, and not initialised: %s", s->message);
    } else if (t.replicas == 0 && is(s->phase, "Held") && s->message[0]) {
        return; /* waits, with a word, until it has Pods */
    } else if (t.replicas > 0 || !is(s->activity, "Analysing")) {
        world_fail(world, "stalls in phase %s, %s: %s", s->phase, s->activity, s->message);
    }
}

static void delete_it(struct world *world, const char *abort)
{
    struct stepped *next = world_change_rollout(world);
    struct sw_label *label = SW_ARENA_NEW(world->arena, struct sw_label);

    *label = (struct sw_label){STEP_ABORT, abort};
    if (abort)
        next->meta.annotations = (struct sw_labels){label, 1};
    if (!next->meta.deleted_us)
        next->meta.deleted_us = world_wall_us(world);
    world_store_rollout(world, next);
    world->last_write_ms = world->now_ms;
    come_to_rest(world);
}

void world_check_end(struct world *world)
{
    world->last_write_ms = world->now_ms;
    come_to_rest(world);
    if (world->rollout && !world->rollout->meta.deleted_us && !world->failure[0])
        check_rest(world);
    if (world->rollout && !world->rollout->meta.deleted_us && !world->failure[0])
        delete_it(world, NULL);
    if (world->rollout && !world->failure[0]) {
        const struct sw_condition *ready = sw_condition_get(&world->rollout->conditions, "Ready");
        if (!ready || !is(ready->reason, "FailedTemplate"))
            world_fail(world, "deleted, and stays without a word");
        delete_it(world, "release");
    }
    if (world->failure[0])
        return;
    if (world->rollout)
        world_fail(world, "deleted and released, and stays");
    else
        check_gone(world);
}
