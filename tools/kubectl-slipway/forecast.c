/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stage on which the plan is played: copies of the objects, a clock of its own, and every request
 * answered at once as a cluster would that nothing disturbs.
 */
#include "forecast.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "hold.h" /* of modules/pausing */
#include "plan.h" /* of modules/coordination */

enum {
    START_MS = 1000000000,   /* of the monotonic clock: any time that has a past */
    ROUNDS_OF_A_MEMBER = 16, /* a turn takes four to seven: (a), (b), (c), its end, statuses */
    ROUNDS_MORE = 64,
    ROUNDS_MOST = 6000, /* a thousand turns and more; a round looks at every member */
};

struct actor {
    struct sw_deployment d;
    struct sw_condition conditions[2];
    bool had_turn_at_first;
    uint32_t batch; /* in which it was released; 0: not */
};

struct stage_group {
    struct coordination c;
    const struct ks_group *origin;
    struct sw_arena *status; /* of what c points to, once it was written */
};

struct stage {
    struct sw_arena *arena;
    const char *namespace_;
    struct actor *actors;
    size_t actor_count;
    struct stage_group *groups;
    size_t group_count;
    struct coord_memory *memory;
    uint64_t now_ms;
    int64_t wall_us;
    uint64_t version;
    uint32_t batch;
    bool is_batch_used;
    bool is_cut; /* more rounds would have followed */
};

/* ---- the objects ---- */

static const char *next_version(struct stage *stage)
{
    return sw_arena_printf(stage->arena, "forecast-%llu", (unsigned long long)++stage->version);
}

/* value "": the annotation goes. */
static void annotate(struct stage *stage, struct sw_object *object, const char *key,
                     const char *value)
{
    const struct sw_labels *old = &object->annotations;
    struct sw_label *labels = SW_ARENA_ARRAY(stage->arena, old->count + 1, struct sw_label);
    const struct sw_label new = {key, value[0] ? sw_arena_strdup(stage->arena, value) : ""};
    uint32_t count = 0;
    bool is_put = !value[0];

    if (strcmp(ks_annotation(object, key), value) == 0)
        return;
    for (uint32_t i = 0; i < old->count; i++) {
        int order = strcmp(old->at[i].key, key);
        if (order >= 0 && !is_put) {
            labels[count++] = new;
            is_put = true;
        }
        if (order != 0)
            labels[count++] = old->at[i];
    }
    if (!is_put)
        labels[count++] = new;
    object->annotations = (struct sw_labels){labels, count};
}

static void set_progressing(struct actor *actor, const char *status, const char *reason,
                            int64_t wall_us)
{
    actor->conditions[0] = (struct sw_condition){
        .type = "Progressing",
        .status = status,
        .reason = reason,
        .message = "",
        .last_update_us = wall_us,
        .last_transition_us = wall_us,
    };
    actor->conditions[1] =
        (struct sw_condition){.type = "Available", .status = "True", .reason = "", .message = ""};
    actor->d.conditions = (struct sw_conditions){actor->conditions, 2};
}

static bool has_failed(const struct sw_deployment *d)
{
    const struct sw_condition *progressing = sw_condition_get(&d->conditions, "Progressing");

    return progressing && strcmp(progressing->status, "False") == 0 &&
           strcmp(progressing->reason, "ProgressDeadlineExceeded") == 0;
}

static bool is_complete(const struct sw_deployment *d)
{
    return d->updated_replicas == d->replicas && d->status_replicas == d->replicas &&
           d->available_replicas == d->replicas;
}

static bool is_outdated(const struct sw_deployment *d)
{
    return d->status_replicas > d->updated_replicas || d->updated_replicas < d->replicas ||
           (d->replicas > 0 && !sw_annotation(&d->meta, COORD_REVISION));
}

/* Whoever is unpaused, and whose template does not run yet, gets there; but what has failed needs a
 * person, and Pods that crash no rollout. False: there was nobody. */
static bool complete_rolling(struct stage *stage)
{
    bool is_any = false;

    for (size_t i = 0; i < stage->actor_count; i++) {
        struct actor *actor = &stage->actors[i];
        struct sw_deployment *d = &actor->d;
        bool is_released = ks_annotation(&d->meta, SW_RELEASED_BY)[0] != '\0';
        if (d->is_paused || d->meta.deleted_us || has_failed(d) ||
            (is_complete(d) && !is_outdated(d)) || !(is_released || is_outdated(d)))
            continue;
        d->updated_replicas = d->status_replicas = d->ready_replicas = d->available_replicas =
            d->replicas;
        if (!sw_annotation(&d->meta, COORD_REVISION))
            annotate(stage, &d->meta, COORD_REVISION, "1");
        set_progressing(actor, "True", "NewReplicaSetAvailable", stage->wall_us);
        d->meta.resource_version = next_version(stage);
        is_any = true;
    }
    if (is_any && stage->is_batch_used) {
        stage->batch++;
        stage->is_batch_used = false;
    }
    return is_any;
}

/* ---- requests ---- */

static struct actor *actor_of(struct stage *stage, const char *name)
{
    for (size_t i = 0; i < stage->actor_count; i++)
        if (strcmp(stage->actors[i].d.meta.name, name) == 0)
            return &stage->actors[i];
    return NULL;
}

static void wish_of(const struct sw_deployment *d, struct sw_opinion *opinion)
{
    const char *hold = sw_annotation(&d->meta, SW_HOLD_BY_USER);

    *opinion = (struct sw_opinion){.owners = "", .words = ""};
    if (!hold)
        return;
    opinion->verdict = SW_VERDICT_HOLD_OUT_OF_LINE;
    opinion->owners = "user";
    opinion->words = hold;
}

static void write_hold(struct stage *stage, struct actor *actor, const struct hold_state *state)
{
    struct sw_deployment *d = &actor->d;

    if (d->is_paused != state->is_paused) {
        d->is_paused = state->is_paused;
        d->observed_generation = ++d->meta.generation;
        if (!has_failed(d))
            set_progressing(actor, d->is_paused ? "Unknown" : "True",
                            d->is_paused ? "DeploymentPaused" : "DeploymentResumed",
                            stage->wall_us);
    }
    annotate(stage, &d->meta, SW_HELD_BY, state->held_by);
    annotate(stage, &d->meta, SW_RELEASED_BY, state->released_by);
    for (size_t i = 0; i < HOLD_POLICIES; i++)
        annotate(stage, &d->meta, hold_policies[i].annotation, state->marks[i]);
    annotate(stage, &d->meta, SW_FENCE, state->fence);
    d->meta.resource_version = next_version(stage);
}

static enum sw_outcome hold(struct stage *stage, const struct coord_action *action,
                            struct sw_arena *arena, const char **ret_version)
{
    const struct sw_hold_request request = {
        .verb = action->verb,
        .owners = action->owners,
        .marks = action->marks,
        .fence = action->fence,
    };
    struct actor *actor = actor_of(stage, action->name);
    struct hold_state from, to;
    struct sw_opinion others;

    if (!actor)
        return SW_NOT_FOUND;
    wish_of(&actor->d, &others);
    hold_state_of(&actor->d, &from);
    switch (hold_apply(arena, &from, &request, COORD_POLICY, &others, &to)) {
    case HOLD_UNCHANGED:
        return SW_UNCHANGED;
    case HOLD_REFUSED:
        return SW_HELD;
    case HOLD_CHANGES:
        break;
    }
    write_hold(stage, actor, &to);
    if (action->verb == SW_HOLD_RELEASE && !actor->had_turn_at_first && actor->batch == 0) {
        actor->batch = stage->batch;
        stage->is_batch_used = true;
    }
    *ret_version = actor->d.meta.resource_version;
    return SW_OK;
}

static const char *const *copy_names(struct sw_arena *arena, const char *const *names,
                                     uint32_t count)
{
    const char **copy = SW_ARENA_ARRAY(arena, count + 1, const char *);

    for (uint32_t i = 0; i < count; i++)
        copy[i] = sw_arena_strdup(arena, names[i]);
    return copy;
}

static void copy_status(struct sw_arena *arena, const struct coord_status *status,
                        struct coordination *c)
{
    struct coord_entry *entries =
        SW_ARENA_ARRAY(arena, status->entry_count + 1, struct coord_entry);
    struct sw_condition *conditions =
        SW_ARENA_ARRAY(arena, status->condition_count + 1, struct sw_condition);

    for (uint32_t i = 0; i < status->entry_count; i++) {
        entries[i] = status->entries[i];
        entries[i].name = sw_arena_strdup(arena, entries[i].name);
        entries[i].message = sw_arena_strdup(arena, entries[i].message);
        entries[i].failed_template = sw_arena_strdup(arena, entries[i].failed_template);
    }
    for (uint32_t i = 0; i < status->condition_count; i++) {
        conditions[i] = status->conditions[i];
        conditions[i].type = sw_arena_strdup(arena, conditions[i].type);
        conditions[i].status = sw_arena_strdup(arena, conditions[i].status);
        conditions[i].reason = sw_arena_strdup(arena, conditions[i].reason);
        conditions[i].message = sw_arena_strdup(arena, conditions[i].message);
    }
    c->active_deployments = (struct sw_strings){
        copy_names(arena, status->active, status->active_count), status->active_count};
    c->active_deployment = status->active_count > 0 ? c->active_deployments.at[0] : "";
    c->deployments = (struct sw_strings){
        copy_names(arena, status->deployments, status->deployment_count), status->deployment_count};
    c->states = (struct sw_list){entries, status->entry_count};
    c->conditions = (struct sw_conditions){conditions, status->condition_count};
    c->selected = status->selected;
    c->pending = status->pending;
    c->is_truncated = status->is_truncated;
    c->turn = status->turn;
    c->observed_generation = status->observed_generation;
}

static struct stage_group *group_of(struct stage *stage, const char *name)
{
    for (size_t i = 0; i < stage->group_count; i++)
        if (strcmp(stage->groups[i].c.meta.name, name) == 0)
            return &stage->groups[i];
    return NULL;
}

/* What the status says now, and what it said before, for as long as the answer is not told. */
static struct sw_arena *write_status(struct stage *stage, struct stage_group *group,
                                     const struct coord_status *status)
{
    struct sw_arena *before = group->status;

    group->status = sw_arena_new(0);
    copy_status(group->status, status, &group->c);
    group->c.meta.resource_version = next_version(stage);
    return before;
}

static void carry_out(struct stage *stage, const struct coord_action *action,
                      struct sw_arena *arena)
{
    struct coord_answer answer = {.outcome = SW_OK, .reason = "", .message = ""};
    struct stage_group *group;
    struct actor *actor;
    struct sw_arena *before = NULL;

    answer.resource_version = "";
    switch (action->type) {
    case COORD_HOLD:
        answer.outcome = hold(stage, action, arena, &answer.resource_version);
        break;
    case COORD_STATUS:
        group = group_of(stage, action->name);
        sw_assert(group);
        before = write_status(stage, group, action->status);
        answer.resource_version = group->c.meta.resource_version;
        break;
    case COORD_GET_DEPLOYMENT:
        actor = actor_of(stage, action->name);
        answer.outcome = actor ? SW_OK : SW_NOT_FOUND;
        answer.resource_version = actor ? actor->d.meta.resource_version : "";
        break;
    case COORD_GET_COORDINATION:
        group = group_of(stage, action->name);
        answer.outcome = group ? SW_OK : SW_NOT_FOUND;
        answer.resource_version = group ? group->c.meta.resource_version : "";
        break;
    }
    coord_answered(stage->memory, action, &answer, arena);
    sw_arena_free(before);
}

/* ---- a round ---- */

static void run_plan(struct stage *stage, struct sw_arena *arena, struct coord_result *ret_result)
{
    struct coord_seen_group *groups =
        SW_ARENA_ARRAY(arena, stage->group_count + 1, struct coord_seen_group);
    struct coord_seen_deployment *deployments =
        SW_ARENA_ARRAY(arena, stage->actor_count + 1, struct coord_seen_deployment);
    struct sw_opinion others;

    for (size_t i = 0; i < stage->group_count; i++)
        groups[i] =
            (struct coord_seen_group){&stage->groups[i].c, stage->groups[i].origin->selector,
                                      stage->groups[i].origin->selector_error};
    for (size_t i = 0; i < stage->actor_count; i++) {
        wish_of(&stage->actors[i].d, &others);
        deployments[i] = (struct coord_seen_deployment){
            .object = &stage->actors[i].d,
            .others = others.verdict,
            .others_words = others.words,
            .others_owners = others.owners,
        };
    }
    const struct coord_snapshot snapshot = {
        .namespace_ = stage->namespace_,
        .now_ms = stage->now_ms,
        .wall_us = stage->wall_us,
        .term = 1,
        .lists = 1,
        .groups = groups,
        .group_count = stage->group_count,
        .deployments = deployments,
        .deployment_count = stage->actor_count,
    };
    coord_plan(stage->memory, &snapshot, arena, ret_result);
}

/* False: nothing would happen any more. */
static bool play_round(struct stage *stage)
{
    struct sw_arena *arena = sw_arena_new(0);
    struct coord_result result;
    bool goes_on = true;

    run_plan(stage, arena, &result);
    for (const struct coord_action *action = result.actions; action; action = action->next)
        carry_out(stage, action, arena);
    if (!result.actions && !complete_rolling(stage)) {
        goes_on = result.look_again_ms != UINT64_MAX;
        if (goes_on) {
            stage->now_ms += result.look_again_ms;
            stage->wall_us += (int64_t)result.look_again_ms * 1000;
        }
    }
    sw_arena_free(arena);
    return goes_on;
}

/* ---- setting the stage ---- */

static void add_actor(struct stage *stage, const struct sw_deployment *deployment)
{
    struct actor *actor = &stage->actors[stage->actor_count++];

    actor->d = *deployment;
    /* What has been written a moment ago will have been looked at a moment later. */
    actor->d.observed_generation = deployment->meta.generation;
    actor->had_turn_at_first = ks_annotation(&deployment->meta, SW_RELEASED_BY)[0] != '\0';
}

static struct stage *stage_new(struct sw_arena *arena, const struct ks_world *world,
                               const char *namespace_, int64_t now_us)
{
    struct stage *stage = SW_ARENA_NEW(arena, struct stage);

    *stage = (struct stage){
        .arena = arena,
        .namespace_ = namespace_,
        .actors = SW_ARENA_ARRAY(arena, world->deployment_count + 1, struct actor),
        .groups = SW_ARENA_ARRAY(arena, world->group_count + 1, struct stage_group),
        .memory = coord_memory_new(),
        .now_ms = START_MS,
        .wall_us = now_us,
        .batch = 1,
    };
    for (size_t i = 0; i < world->deployment_count; i++)
        if (strcmp(world->deployments[i]->meta.namespace_, namespace_) == 0)
            add_actor(stage, world->deployments[i]);
    for (size_t i = 0; i < world->group_count; i++)
        if (strcmp(world->groups[i].c->meta.namespace_, namespace_) == 0)
            stage->groups[stage->group_count++] =
                (struct stage_group){.c = *world->groups[i].c, .origin = &world->groups[i]};
    return stage;
}

static void stage_done(struct stage *stage)
{
    for (size_t i = 0; i < stage->group_count; i++)
        sw_arena_free(stage->groups[i].status);
    coord_memory_free(stage->memory);
}

/* ---- what came of it ---- */

struct candidate {
    const char *name;
    uint32_t batch; /* 0: at first */
};

static int compare_candidates(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    return x->batch != y->batch ? (x->batch < y->batch ? -1 : 1) : strcmp(x->name, y->name);
}

/* Batches are counted over the namespace; steps in the coordination, without gaps. */
static void tell_turns(struct stage *stage, const struct stage_group *group,
                       struct ks_forecast *forecast)
{
    struct candidate *candidates =
        SW_ARENA_ARRAY(stage->arena, stage->actor_count + 1, struct candidate);
    struct ks_turn *turns = SW_ARENA_ARRAY(stage->arena, stage->actor_count + 1, struct ks_turn);
    uint32_t count = 0, step = 0, batch = 0;

    for (size_t i = 0; i < stage->actor_count; i++) {
        const struct actor *actor = &stage->actors[i];
        if ((actor->had_turn_at_first || actor->batch > 0) && ks_selects(group->origin, &actor->d))
            candidates[count++] = (struct candidate){actor->d.meta.name, actor->batch};
    }
    qsort(candidates, count, sizeof(*candidates), compare_candidates);
    for (uint32_t i = 0; i < count; i++) {
        if (candidates[i].batch != batch)
            step++;
        batch = candidates[i].batch;
        turns[i] = (struct ks_turn){candidates[i].name, step};
    }
    forecast->turns = turns;
    forecast->turn_count = count;
}

static int compare_left(const void *a, const void *b)
{
    const struct ks_left *x = a, *y = b;
    uint32_t at_x = x->position < 0 ? UINT32_MAX : (uint32_t)x->position;
    uint32_t at_y = y->position < 0 ? UINT32_MAX : (uint32_t)y->position;

    return at_x != at_y ? (at_x < at_y ? -1 : 1) : strcmp(x->name, y->name);
}

static const char *why_still(struct stage *stage, const struct stage_group *group)
{
    const struct sw_condition *degraded = sw_condition_get(&group->c.conditions, "Degraded");

    if (group->c.is_suspended)
        return sw_arena_printf(stage->arena, "suspended: kubectl slipway resume %s -n %s",
                               group->c.meta.name, group->c.meta.namespace_);
    if (degraded && strcmp(degraded->status, "True") == 0)
        return sw_arena_strdup(stage->arena, degraded->message);
    return stage->is_cut ? "later: so far ahead is not looked" : "";
}

static void tell_left(struct stage *stage, const struct stage_group *group,
                      struct ks_forecast *forecast)
{
    const struct coord_entry *entries = group->c.states.at;
    struct ks_left *left = SW_ARENA_ARRAY(stage->arena, group->c.states.count + 1, struct ks_left);
    bool is_waiting = false;

    for (uint32_t i = 0; i < group->c.states.count; i++) {
        const struct coord_entry *entry = &entries[i];
        bool is_passed_over = entry->position < 0 && entry->message[0] &&
                              (entry->has_pending_changes || entry->failed_template[0]);
        if (entry->position <= 0 && !is_passed_over)
            continue;
        is_waiting |= entry->position > 0;
        left[forecast->left_count++] = (struct ks_left){
            .name = sw_arena_strdup(stage->arena, ks_bare_name(entry->name)),
            .position = entry->position,
            .reason = sw_arena_strdup(stage->arena, entry->message),
        };
    }
    qsort(left, forecast->left_count, sizeof(*left), compare_left);
    forecast->left = left;
    forecast->still = is_waiting ? why_still(stage, group) : "";
}

const struct ks_forecast *ks_forecast(struct sw_arena *arena, const struct ks_world *world,
                                      const char *namespace_, int64_t now_us, uint32_t *ret_count)
{
    struct stage *stage = stage_new(arena, world, namespace_, now_us);
    struct ks_forecast *forecasts =
        SW_ARENA_ARRAY(arena, stage->group_count + 1, struct ks_forecast);
    size_t rounds =
        SW_MIN(ROUNDS_MORE + ROUNDS_OF_A_MEMBER * stage->actor_count, (size_t)ROUNDS_MOST);

    stage->is_cut = true;
    for (; rounds > 0 && stage->is_cut; rounds--)
        stage->is_cut = play_round(stage);
    for (size_t i = 0; i < stage->group_count; i++) {
        struct ks_forecast *forecast = &forecasts[i];
        forecast->namespace_ = stage->groups[i].c.meta.namespace_;
        forecast->coordination = stage->groups[i].c.meta.name;
        tell_turns(stage, &stage->groups[i], forecast);
        tell_left(stage, &stage->groups[i], forecast);
    }
    *ret_count = (uint32_t)stage->group_count;
    stage_done(stage);
    return forecasts;
}
