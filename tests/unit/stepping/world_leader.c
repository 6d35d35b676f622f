/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A slipway: what it sees, when it runs its plan, and what becomes of its requests. It may die at
 * any moment, with requests on the way that are carried out or not; the next one knows nothing.
 */
#include "world.h"

#include <stdio.h>
#include <string.h>

/* ---- what it sees ---- */

static void look(struct world *world)
{
    const struct version *v = world->target;
    size_t count = 0;

    for (int t = TEMPLATES - 1; t >= 0; t--) {
        const struct set *set = &world->sets[t];
        bool is_deployment = world->config.kind == STEP_DEPLOYMENT;
        int32_t pods = world_count(world, t), ready = 0;
        bool is_kept = world->kept[t] || pods > 0;
        for (int i = 0; i < PODS_MAX; i++)
            ready += world->pods[i].template_ == t && world_is_ready(world, &world->pods[i]);
        if (is_deployment ? !set->exists : !is_kept && t != v->template_)
            continue;
        snprintf(world->versions[count], sizeof world->versions[count], "%llu",
                 (unsigned long long)set->number);
        snprintf(world->names[count], sizeof world->names[count], "r%d", t);
        world->looked_at[count] = (struct step_revision){
            .name = world->names[count],
            .resource_version = world->versions[count],
            .wanted = is_deployment ? set->wanted : pods,
            .pods = is_deployment ? set->pods : pods,
            .ready = is_deployment ? set->ready : ready,
            .available = is_deployment ? set->available : ready,
            .created_us = (int64_t)set->created_ms * 1000,
            .revision = set->revision,
            .is_newest = t == v->template_,
            .is_observed = is_deployment ? set->is_observed : true,
        };
        count++;
    }
    world->revision_count = count;
    world->revisions_sent_ms = world->look_sent_ms;
    world->revisions_came_ms = world->now_ms;
    world->revisions_version = world->look_version;
    world->has_revisions = true;
    world->is_looking = false;
    world->must_plan = true;
}

/* Of the last two versions mostly the last, never an older one than before. */
static void see(struct world *world)
{
    const struct version *v = world->target;
    const struct stepped *s = world->rollout;

    if (world->before && world_chance(world, 25) &&
        (!world->seen || world->seen->number < world->before->number))
        v = world->before;
    if (world->seen != v && (!world->seen || world->seen->number < v->number)) {
        world->seen = v;
        world->must_plan = true;
    }
    if (world->seen_rollout != s && world_chance(world, 75)) {
        world->seen_rollout = s;
        world->must_plan = true;
    }
}

/* ---- requests ---- */

static const struct stepped *status_of(struct world *world, const struct step_status *from)
{
    struct stepped *to = world_change_rollout(world);
    struct sw_arena *arena = world->arena;
    struct sw_condition *conditions = SW_ARENA_ARRAY(arena, 2, struct sw_condition);
    struct step_check *checks = SW_ARENA_ARRAY(arena, from->check_count + 1, struct step_check);
    uint32_t count = 0;

    to->phase = sw_arena_strdup(arena, from->phase);
    to->activity = sw_arena_strdup(arena, from->activity);
    to->message = sw_arena_strdup(arena, from->message);
    to->current_step = from->current_step;
    to->step_count = from->step_count;
    to->stop = from->stop;
    to->updated_replicas = from->updated_replicas;
    to->replicas = from->replicas;
    to->passed_rounds = from->passed_rounds;
    to->failed_checks = from->failed_checks;
    to->last_applied_hash = sw_arena_strdup(arena, from->last_applied_hash);
    to->last_promoted_hash = sw_arena_strdup(arena, from->last_promoted_hash);
    to->failed_hash = sw_arena_strdup(arena, from->failed_hash);
    to->promoted_revision = sw_arena_strdup(arena, from->promoted_revision);
    to->step_started_us = from->step_started_us;
    to->last_round_us = from->last_round_us;
    to->last_transition_us = from->last_transition_us;
    to->observed_generation = from->observed_generation;
    to->step_text = from->step_count > 0
                        ? sw_arena_printf(arena, "%d/%d", from->current_step, from->step_count)
                        : "";
    to->updated_text = sw_arena_printf(arena, "%d/%d", from->updated_replicas, from->replicas);
    for (size_t i = 0; i < 2; i++)
        if (from->conditions[i].type[0]) {
            conditions[count] = from->conditions[i];
            conditions[count].reason = sw_arena_strdup(arena, from->conditions[i].reason);
            conditions[count].message = sw_arena_strdup(arena, from->conditions[i].message);
            count++;
        }
    to->conditions = (struct sw_conditions){conditions, count};
    for (size_t i = 0; i < from->check_count; i++)
        checks[i] = (struct step_check){
            .name = sw_arena_strdup(arena, from->checks[i].name),
            .type = sw_arena_strdup(arena, from->checks[i].type),
            .value = "",
            .range = "",
            .has_passed = from->checks[i].has_passed,
            .message = "",
        };
    to->checks = (struct sw_list){checks, (uint32_t)from->check_count};
    return to;
}

static void send(struct world *world, const struct step_action *action)
{
    struct request *request = world->requests;

    for (int i = 0; i < REQUESTS_MAX; i++) {
        const struct request *other = &world->requests[i];
        bool is_own = action->type == STEP_STATUS || action->type == STEP_META;
        bool other_is_own = other->action.type == STEP_STATUS || other->action.type == STEP_META;
        if (other->stage != FREE_SLOT && other->leader == world->leader && is_own == other_is_own)
            world_fail(world, "two requests for one object at a time");
    }
    while (request->stage != FREE_SLOT)
        if (++request == world->requests + REQUESTS_MAX) {
            world_fail(world, "the model has too few places for requests");
            return;
        }
    *request = (struct request){
        .stage = UNDER_WAY,
        .leader = world->leader,
        .action = *action,
        .arena = sw_arena_new(512),
        .apply_ms = world->now_ms + TICK_MS * world_random(world, 2),
        .is_lost = !world->config.is_calm && world_chance(world, 3),
    };
    request->answer_ms = request->apply_ms + TICK_MS * world_random(world, 2);
    request->action.resource_version = sw_arena_strdup(request->arena, action->resource_version);
    request->action.name = sw_arena_strdup(request->arena, action->name);
    if (action->type == STEP_STATUS)
        request->status = status_of(world, action->status);
    world->actions++;
    world->last_write_ms = world->now_ms;
}

/* Pods that are (or are not) of a template, broken ones first, then the highest ordinal. */
static int pick(const struct world *world, int template_, bool of_it, bool only_broken)
{
    int found = -1;

    for (int i = 0; i < PODS_MAX; i++) {
        const struct pod *pod = &world->pods[i];
        bool is_ready = world_is_ready(world, pod);
        if (!pod->exists || (pod->template_ == template_) != of_it || (only_broken && is_ready))
            continue;
        if (found >= 0) {
            bool found_ready = world_is_ready(world, &world->pods[found]);
            if (is_ready != found_ready ? is_ready : pod->ordinal < world->pods[found].ordinal)
                continue;
        }
        found = i;
    }
    return found;
}

static enum sw_outcome delete_pods(struct world *world, const struct step_action *action)
{
    const struct version *v = world->target;
    int32_t left = action->pods, count = 0;

    if (action->type == STEP_BITE) {
        for (int which; left-- > 0; count++) {
            which = pick(world, action->name[1] - '0', false, false);
            if (which < 0)
                break;
            world_remove_pod(world, which);
        }
    } else if (action->type == STEP_CLEAR) {
        for (int which; left-- > 0; count++) {
            which = pick(world, v->template_, false, true);
            if (which < 0)
                break;
            world_remove_pod(world, which);
        }
    } else { /* a DaemonSet's */
        int32_t unready = 0, old = 0;
        for (int i = 0; i < PODS_MAX; i++) {
            const struct pod *pod = &world->pods[i];
            unready += pod->exists && !world_is_ready(world, pod);
            old += pod->exists && pod->template_ != v->template_;
        }
        unready += v->replicas - world_count(world, -1);
        int32_t most = world->config.unavailable > 0 ? world->config.unavailable : 1;
        for (int which; left-- > 0 && old > v->replicas - action->stop; old--, count++) {
            which = pick(world, v->template_, false, false);
            if (which < 0)
                break;
            if (world_is_ready(world, &world->pods[which]) && unready++ >= most)
                break;
            world_remove_pod(world, which);
        }
    }
    return count > 0 ? SW_OK : SW_UNCHANGED;
}

static enum sw_outcome resize(struct world *world, const struct step_action *action)
{
    struct set *set = &world->sets[action->name[1] - '0'];
    char text[24];

    snprintf(text, sizeof text, "%llu", (unsigned long long)set->number);
    if (strcmp(text, action->resource_version) != 0)
        return SW_CONFLICT;
    world_note(world, "bite: %s %d -> %d", action->name, set->wanted, action->size);
    set->wanted = action->size;
    set->number = ++world->numbers;
    set->is_observed = false;
    return SW_OK;
}

static void hold(struct world *world, const struct step_action *action, struct version *next)
{
    next->is_released = false;
    next->is_marked = true;
    switch (world->config.kind) {
    case STEP_DEPLOYMENT:
        next->is_raised = next->has_saved = action->is_raised;
        if (next->is_paused && !next->is_held_by_us && !next->is_held_by_other)
            break; /* its user's */
        next->is_paused = next->is_held_by_us = true;
        break;
    case STEP_STATEFUL_SET:
        next->has_saved = next->is_held_by_us = true;
        next->partition = action->stop > 0 ? next->replicas - action->stop : PARTITION_MAX;
        break;
    case STEP_DAEMON_SET:
        next->has_saved = next->is_held_by_us = next->is_on_delete = true;
        break;
    }
}

static enum sw_outcome advance(struct world *world, const struct step_action *action,
                               struct version *next)
{
    next->is_marked = true;
    if (world->config.kind == STEP_DEPLOYMENT) {
        bool is_users = next->is_paused && !next->is_held_by_us && !next->is_held_by_other;
        if (world->other_holds || is_users)
            return SW_HELD;
        next->is_paused = next->is_held_by_us = next->is_held_by_other = false;
        next->is_raised = next->has_saved = action->is_raised;
    } else {
        next->has_saved = true;
        next->is_held_by_us = false;
        next->partition = action->stop < next->replicas ? next->replicas - action->stop : 0;
    }
    next->is_released = true;
    return SW_OK;
}

static void settle(struct world *world, const struct step_action *action, struct version *next)
{
    next->is_released = next->is_raised = next->has_saved = next->is_on_delete = false;
    next->partition = 0;
    next->is_marked = action->has_marks;
    if (world->config.kind == STEP_DEPLOYMENT && next->is_held_by_us && !next->is_held_by_other)
        next->is_paused = false;
    next->is_held_by_us = false;
}

static bool is_same(const struct version *a, const struct version *b)
{
    return a->template_ == b->template_ && a->is_paused == b->is_paused &&
           a->partition == b->partition && a->is_on_delete == b->is_on_delete &&
           a->is_raised == b->is_raised && a->has_saved == b->has_saved &&
           a->is_held_by_us == b->is_held_by_us && a->is_held_by_other == b->is_held_by_other &&
           a->is_released == b->is_released && a->is_marked == b->is_marked;
}

static enum sw_outcome write_target(struct world *world, const struct step_action *action)
{
    enum sw_outcome outcome = SW_OK;

    if (action->type == STEP_BITE && world->config.kind == STEP_DEPLOYMENT)
        return resize(world, action);
    if (strcmp(world->target->text, action->resource_version) != 0)
        return SW_CONFLICT;
    struct version *next = world_change(world);
    switch (action->type) {
    case STEP_HOLD:
        hold(world, action, next);
        break;
    case STEP_ADVANCE:
        if (world->config.kind == STEP_DAEMON_SET)
            return delete_pods(world, action);
        outcome = advance(world, action, next);
        break;
    case STEP_SETTLE:
        settle(world, action, next);
        break;
    case STEP_ROLL_BACK:
        next->template_ = action->name[1] - '0';
        break;
    default:
        return delete_pods(world, action);
    }
    if (outcome != SW_OK)
        return outcome;
    if (is_same(next, world->target))
        return SW_UNCHANGED;
    world_store(world, next, true);
    return SW_OK;
}

static enum sw_outcome write_meta(struct world *world, const struct step_action *action)
{
    static const char *const ours[] = {STEP_FINALIZER};
    struct stepped *next = world_change_rollout(world);
    const struct sw_labels *old = &next->meta.annotations;
    struct sw_label *labels = SW_ARENA_ARRAY(world->arena, old->count + 1, struct sw_label);
    uint32_t count = 0;

    for (uint32_t i = 0; i < old->count; i++) {
        const char *key = old->at[i].key;
        if ((action->removes_promote && strcmp(key, STEP_PROMOTE) == 0) ||
            (action->removes_abort && strcmp(key, STEP_ABORT) == 0) ||
            (action->removes_retry && strcmp(key, STEP_RETRY) == 0))
            continue;
        labels[count++] = old->at[i];
    }
    next->meta.annotations = (struct sw_labels){labels, count};
    if (action->has_finalizer >= 0)
        next->finalizers = (struct sw_strings){ours, action->has_finalizer ? 1 : 0};
    world_store_rollout(world, next);
    return SW_OK;
}

static enum sw_outcome write_rollout(struct world *world, const struct request *request)
{
    if (!world->rollout)
        return SW_NOT_FOUND;
    if (strcmp(world->rollout->meta.resource_version, request->action.resource_version) != 0)
        return SW_CONFLICT;
    if (request->action.type == STEP_META)
        return write_meta(world, &request->action);
    struct stepped *next = world_change_rollout(world);
    struct sw_object meta = next->meta;
    struct sw_strings finalizers = next->finalizers;
    const struct stepped *from = world->rollout;
    *next = *request->status;
    next->meta = meta;
    next->finalizers = finalizers;
    next->is_suspended = from->is_suspended;
    world_note(world, "status: %s %s step %s stop %d updated %s rounds %d failed %d: %s",
               next->phase, next->activity, next->step_text, next->stop, next->updated_text,
               next->passed_rounds, next->failed_checks, next->message);
    world_check_status(world, from, next);
    world_store_rollout(world, next);
    return SW_OK;
}

static void apply(struct world *world, struct request *request)
{
    const struct step_action *action = &request->action;

    request->stage = APPLIED;
    if (!world->config.is_calm && world_chance(world, 2))
        request->outcome = SW_UNKNOWN; /* and was not done */
    else if (action->type == STEP_STATUS || action->type == STEP_META)
        request->outcome = write_rollout(world, request);
    else
        request->outcome = write_target(world, action);
    world->writes += request->outcome == SW_OK;
    if (request->is_lost)
        request->outcome = SW_UNKNOWN;
}

static void requests(struct world *world)
{
    for (int i = 0; i < REQUESTS_MAX; i++) {
        struct request *request = &world->requests[i];
        if (request->stage == UNDER_WAY && world->now_ms >= request->apply_ms)
            apply(world, request);
        if (request->stage != APPLIED || world->now_ms < request->answer_ms)
            continue;
        if (request->leader == world->leader && world->memory) {
            /* What the answer holds is in the store before it is told. */
            if (request->outcome == SW_OK) {
                world->seen = world->target;
                world->seen_rollout = world->rollout;
            }
            step_answered(world->memory, &request->action, request->outcome, "said by the model");
            world->must_plan = true;
        }
        request->stage = FREE_SLOT;
        request->arena = sw_arena_free(request->arena);
    }
}

/* ---- rounds ---- */

static void begin_round(struct world *world, const struct step_action *action)
{
    if (world->round)
        world_fail(world, "two rounds at a time");
    world->round = action->number;
    world->round_type = action->round;
    world->round_ends_ms = world->now_ms + TICK_MS * (1 + world_random(world, 4));
    world->round_template = world->target->template_;
}

static void end_round(struct world *world)
{
    bool is_question = world->round_type != STEP_ROUND_ANALYSIS;
    bool is_analysis = !is_question;
    bool passes = !world_chance(world, (uint32_t)world->config.fail_percent);
    struct step_check check = {
        .name = "check", .type = "metric", .value = "1", .range = "", .message = ""};

    if (world->config.is_wrong[world->round_template] && is_analysis)
        passes = false;
    if (is_question && world->round_type != STEP_ROUND_PRE_ROLLOUT)
        passes = !(world->config.has_gates && !world->is_ending && world_chance(world, 60));
    check.has_passed = passes;
    struct step_round_result result = {
        .type = world->round_type,
        .has_passed = passes,
        .checks = &check,
        .check_count = 1,
        .failed = passes ? "" : "check",
        .words = passes ? "" : "check: no",
        .rollback_by =
            is_analysis && world_chance(world, 1) && world->config.fail_percent ? "undo" : "",
    };
    result.has_passed = passes && !result.rollback_by[0];
    world_note(world, "round %d: %s", world->round_type, result.has_passed ? "passed" : "failed");
    if (is_analysis)
        world->rounds_in_row = result.has_passed ? world->rounds_in_row + 1 : 0;
    uint64_t number = world->round;
    world->round = 0;
    step_round_ended(world->memory, number, &result);
    world->must_plan = true;
}

/* ---- the run ---- */

static void carry_out(struct world *world, const struct step_action *action)
{
    switch (action->type) {
    case STEP_LOOK:
        if (!world->is_looking) {
            world->is_looking = true;
            world->look_sent_ms = world->now_ms;
            world->look_version = world->seen->text;
            world->look_ends_ms = world->now_ms + TICK_MS * (1 + world_random(world, 3));
        }
        break;
    case STEP_ROUND:
        begin_round(world, action);
        break;
    case STEP_CANCEL:
        world->round = 0;
        break;
    default:
        send(world, action);
        break;
    }
}

static void plan(struct world *world)
{
    struct sw_arena *arena = sw_arena_new(0);
    struct step_target target;
    struct step_result result;
    struct step_snapshot snapshot = {
        .object = world->seen_rollout,
        .spec = &world->spec,
        .target = &target,
        .target_kinds_are_synced = true,
        .now_ms = world->now_ms,
        .wall_us = world_wall_us(world),
        .random = (uint64_t)world_random(world, UINT32_MAX) << 32,
    };

    world_view(world, world->seen, &target);
    if (world->has_revisions) {
        for (size_t i = 0; i < world->revision_count; i++) {
            world->revisions[i] = world->looked_at[i];
            world->revisions[i].is_promoted =
                strcmp(world->looked_at[i].name, world->seen_rollout->promoted_revision) == 0;
        }
        target.revisions = world->revisions;
        target.revision_count = world->revision_count;
        target.revisions_age_ms = world->now_ms - world->revisions_sent_ms;
        target.revisions_idle_ms = world->now_ms - world->revisions_came_ms;
        target.revisions_version = world->revisions_version;
    }
    world->must_plan = false;
    step_plan(world->memory, &snapshot, arena, &result);
    for (const struct step_action *action = result.actions; action; action = action->next)
        carry_out(world, action);
    world->look_again_ms =
        result.look_again_ms == UINT64_MAX ? UINT64_MAX : world->now_ms + result.look_again_ms;
    sw_arena_free(arena);
}

void world_leader_dies(struct world *world)
{
    if (!world->leader)
        return;
    world_note(world, "slipway: dies");
    for (int i = 0; i < REQUESTS_MAX; i++)
        if (world->requests[i].stage == UNDER_WAY && world_chance(world, 50)) {
            world->requests[i].stage = FREE_SLOT;
            world->requests[i].arena = sw_arena_free(world->requests[i].arena);
        }
    world->leader = 0;
    world->round = 0;
    world->is_looking = world->has_revisions = false;
    world->memory = step_memory_free(world->memory);
    world->reborn_ms = world->now_ms + world_random(world, world_chance(world, 70) ? 1000 : 30000);
}

static void be_born(struct world *world)
{
    world->leader = ++world->lives;
    world->memory = step_memory_new();
    world->seen = world->target;
    world->seen_rollout = world->rollout;
    world->look_again_ms = UINT64_MAX;
    world->must_plan = true;
    world_note(world, "slipway: lives");
}

void world_leader(struct world *world)
{
    requests(world);
    if (!world->leader) {
        if (world->now_ms >= world->reborn_ms || world->is_ending)
            be_born(world);
        return;
    }
    see(world);
    if (world->is_looking && world->now_ms >= world->look_ends_ms)
        look(world);
    if (world->round && world->now_ms >= world->round_ends_ms)
        end_round(world);
    if (world->seen_rollout && (world->must_plan || world->now_ms >= world->look_again_ms))
        plan(world);
}
