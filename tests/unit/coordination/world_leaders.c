/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leaders: each has a store that only goes forward, a memory of its own, and requests under way. A
 * crashed one's requests still arrive.
 */
#include "world.h"

#include <string.h>

#include <slipway/memory.h>

/* ---- its life ---- */

void world_leader_start(struct world *world, struct leader *leader)
{
    leader->is_alive = true;
    leader->memory = coord_memory_new();
    for (int i = 0; i < world->config.deployments; i++)
        leader->deployments[i] = world->deployments[i].now;
    for (int i = 0; i < world->config.groups; i++)
        leader->groups[i] = world->groups[i].now;
    leader->lists = 1;
    leader->listed_ms = world->now_ms;
    leader->term = ++world->terms;
    leader->wake_ms = UINT64_MAX;
    leader->wants_relist = false;
    leader->is_dirty = true;
    leader->idle_runs = 0;
    world_say(world, "L%d leads", leader->index);
}

void world_leader_crash(struct world *world, struct leader *leader)
{
    for (uint32_t i = 0; i < world->request_count; i++)
        if (world->requests[i].leader == leader->index)
            world->requests[i].leader = -1;
    leader->memory = coord_memory_free(leader->memory);
    leader->is_alive = false;
    world_say(world, "L%d crashes", leader->index);
}

/* ---- its store ---- */

static bool move(struct version **seen, struct version *now, bool is_latest)
{
    if (!*seen) {
        *seen = now;
        return now != NULL;
    }
    if (!(*seen)->next)
        return false;
    *seen = is_latest ? now : (*seen)->next;
    return true;
}

bool world_leader_sees(struct world *world, struct leader *leader, uint32_t which, bool is_latest)
{
    uint32_t deployments = (uint32_t)world->config.deployments;
    uint32_t i = which % (deployments + (uint32_t)world->config.groups);
    bool has_moved;

    if (i < deployments) {
        has_moved = move(&leader->deployments[i], world->deployments[i].now, is_latest);
    } else {
        struct version **seen = &leader->groups[i - deployments];
        bool existed = *seen && (*seen)->exists;
        has_moved = move(seen, world->groups[i - deployments].now, is_latest);
        if (has_moved && existed && !(*seen)->exists)
            coord_saw_deleted(leader->memory, world->groups[i - deployments].name);
    }
    leader->is_dirty |= has_moved;
    return has_moved;
}

bool world_leader_relists(struct world *world, struct leader *leader)
{
    if (!leader->wants_relist)
        return false;
    leader->wants_relist = false;
    leader->lists++;
    leader->listed_ms = world->now_ms;
    leader->is_dirty = true;
    for (int i = 0; i < world->config.groups; i++)
        move(&leader->groups[i], world->groups[i].now, true);
    return true;
}

static void put(struct version **seen, struct version *version)
{
    if (version && (!*seen || (*seen)->number < version->number))
        *seen = version;
}

/* ---- its plan ---- */

static struct request *request_add(struct world *world)
{
    for (uint32_t i = 0; i < world->request_count; i++)
        if (world->requests[i].state == FREE_SLOT)
            return &world->requests[i];
    if (world->request_count == REQUESTS_MAX) {
        world_fail(world, "too many requests under way");
        return NULL;
    }
    return &world->requests[world->request_count++];
}

static void batch_close(struct batch *batch)
{
    if (--batch->open > 0)
        return;
    sw_arena_free(batch->arena);
    sw_free(batch);
}

/* As sw_hold_send: what would change nothing, or is held by others, is answered without a request.
 */
static void ask_hand(struct world *world, struct leader *leader, struct request *request)
{
    const struct coord_action *action = request->action;
    const struct sw_hold_request what = {
        .verb = action->verb,
        .owners = action->owners,
        .marks = action->marks,
        .fence = action->fence,
    };
    struct version *seen = NULL;
    const struct deployment *deployment = NULL;
    struct hold_state from, to;

    for (int i = 0; i < world->config.deployments; i++)
        if (strcmp(world->deployments[i].name, action->name) == 0) {
            deployment = &world->deployments[i];
            seen = leader->deployments[i];
        }
    if (!seen || !seen->exists || strcmp(seen->d.meta.resource_version, action->resource_version)) {
        world_fail(world, "L%d: %s is written on a version that is not in the store", leader->index,
                   action->name);
        return;
    }
    request->others = world_others(world, deployment, &seen->d.meta);
    hold_state_of(&seen->d, &from);
    enum hold_outcome outcome =
        hold_apply(request->batch->arena, &from, &what, COORD_POLICY, &request->others, &to);
    if (outcome == HOLD_CHANGES)
        return;
    request->state = ANSWERED;
    request->outcome = outcome == HOLD_REFUSED ? SW_HELD : SW_UNCHANGED;
    request->version = seen;
    world_say(world, "L%d: %s of %s: %s without a request", leader->index, "hold", action->name,
              sw_outcome_text(request->outcome));
}

static const char *const verbs[] = {"pause", "take back", "release", "free",
                                    "fence", "mark",      "adopt"};

/* Scaled in the moment between the end of its pause and the next look of its controller, it cannot
 * be told from the tail of a rollout. */
static bool looks_busy(const struct version *version)
{
    const struct sw_condition *progressing =
        sw_condition_get(&version->d.conditions, "Progressing");

    return !version->d.is_paused && progressing && strcmp(progressing->status, "Unknown") != 0 &&
           strcmp(progressing->reason, "NewReplicaSetAvailable") != 0;
}

/* Recorded before, or seen in its first rollout and paused in it, and nobody has seen its
 * completion since. */
static bool has_begun(const struct world *world, const struct leader *leader,
                      const struct deployment *d)
{
    const struct version *known = leader->deployments[d->index];
    const char *revision = sw_annotation(&known->d.meta, COORD_REVISION);
    if (d->has_begun || known->has_begun || (revision && strcmp(revision, "1") == 0))
        return true;
    /* When its turn ended is not in a status that lists the active ones only: the next leader, if
     * it has not seen the completion itself, knows the beginning alone. */
    if (world->config.is_small)
        return true;
    for (int g = 0; g < world->config.groups; g++) {
        const struct version *seen = leader->groups[g];
        const struct coord_entry *entries = seen ? seen->c.states.at : NULL;
        for (uint32_t i = 0; entries && i < seen->c.states.count; i++)
            if (strcmp(entries[i].name, d->full) == 0 &&
                entries[i].started_us > entries[i].finished_us)
                return true;
    }
    return false;
}

/* The mutation in which the leader goes on before its take back is done. */
static void pretend_taken_back(struct world *world, struct leader *leader, struct request *request)
{
    struct version **seen = NULL;
    struct request *early = request_add(world);

    for (int i = 0; i < world->config.deployments; i++)
        if (strcmp(world->deployments[i].name, request->action->name) == 0)
            seen = &leader->deployments[i];
    if (!early || !seen)
        return;
    *early = *request;
    early->state = ANSWERED;
    early->outcome = SW_OK;
    early->version = NULL;
    early->batch->open++;
    request->leader = -1;
    struct version *pretended = SW_ARENA_NEW(world->arena, struct version);
    *pretended = **seen;
    struct sw_labels *annotations = &pretended->d.meta.annotations;
    struct sw_label *list = SW_ARENA_ARRAY(world->arena, annotations->count + 1, struct sw_label);
    uint32_t count = 0;
    for (uint32_t i = 0; i < annotations->count; i++)
        if (strcmp(annotations->at[i].key, SW_RELEASED_BY) != 0)
            list[count++] = annotations->at[i];
    *annotations = (struct sw_labels){list, count};
    *seen = pretended;
}

static void send(struct world *world, struct leader *leader, struct batch *batch,
                 const struct coord_action *action)
{
    struct request *request = request_add(world);

    if (!request)
        return;
    *request = (struct request){
        .state = UNDER_WAY,
        .leader = leader->index,
        .batch = batch,
        .action = action,
    };
    batch->open++;
    if (action->status) {
        request->status = SW_ARENA_NEW(world->arena, struct coordination);
        world_keep_status(world, action->status, request->status);
    }
    if (action->marks)
        request->marks = sw_arena_strdup(world->arena, action->marks);
    if (action->fence)
        request->fence = sw_arena_strdup(world->arena, action->fence);
    world_say(world, "L%d: %s %s at %s", leader->index,
              action->type == COORD_HOLD     ? verbs[action->verb]
              : action->type == COORD_STATUS ? action->is_record ? "record" : "status"
                                             : "get",
              action->name, action->resource_version ? action->resource_version : "-");
    if (action->type == COORD_HOLD)
        ask_hand(world, leader, request);
    for (uint32_t i = 0; i < action->begun_count; i++)
        for (int k = 0; k < world->config.deployments; k++)
            if (strcmp(world->deployments[k].name, action->begun[i]) == 0 &&
                !leader->deployments[k]->needs_rollout && !looks_busy(leader->deployments[k]) &&
                !has_begun(world, leader, &world->deployments[k]))
                world_fail(world, "L%d: %s gets a turn, but has nothing to roll", leader->index,
                           action->begun[i]);
    if (world->config.mutation == TAKE_BACK_AFTER_RECORD && action->type == COORD_HOLD &&
        action->is_chain && action->verb != SW_HOLD_RELEASE && request->state == UNDER_WAY)
        pretend_taken_back(world, leader, request);
}

void world_leader_runs(struct world *world, struct leader *leader)
{
    struct coord_seen_group groups[GROUPS_MAX];
    struct coord_seen_deployment deployments[DEPLOYMENTS_MAX];
    struct sw_deployment observed[DEPLOYMENTS_MAX];
    struct coord_snapshot snapshot = {
        .namespace_ = NAMESPACE,
        .now_ms = world->now_ms,
        .wall_us = world_wall_us(world),
        .random = (world->runs + 1) * UINT64_C(0xd1342543de82ef95),
        .term = leader->term,
        .rests_running = world->rests_running,
        .lists = leader->lists,
        .list_age_ms = world->now_ms - leader->listed_ms,
        .groups = groups,
        .deployments = deployments,
    };
    struct coord_result result;

    for (int i = 0; i < world->config.groups; i++) {
        const struct version *seen = leader->groups[i];
        if (seen && seen->exists)
            groups[snapshot.group_count++] = (struct coord_seen_group){
                &seen->c, seen->selector, seen->selector ? "" : "is absent"};
    }
    for (int i = 0; i < world->config.deployments; i++) {
        const struct version *seen = leader->deployments[i];
        if (!seen || !seen->exists)
            continue;
        struct sw_opinion others = world_others(world, &world->deployments[i], &seen->d.meta);
        observed[i] = seen->d;
        if (world->config.mutation == PAUSE_TAKEN_AS_OBSERVED && seen->d.is_paused)
            observed[i].observed_generation = seen->d.meta.generation;
        deployments[snapshot.deployment_count++] = (struct coord_seen_deployment){
            .object = &observed[i],
            .others = others.verdict,
            .others_owners = others.owners,
            .others_words = others.words,
            .others_select = others.is_selected,
            .others_gave_it_up = others.has_given_up,
        };
    }
    struct batch *batch = SW_NEW(struct batch);
    *batch = (struct batch){.arena = sw_arena_new(0), .open = 1};
    coord_plan(leader->memory, &snapshot, batch->arena, &result);
    world->runs++;
    leader->is_dirty = false;
    leader->wants_relist |= result.wants_relist;
    leader->wake_ms =
        result.look_again_ms == UINT64_MAX ? UINT64_MAX : world->now_ms + result.look_again_ms;
    leader->idle_runs = result.actions ? 0 : leader->idle_runs + 1;
    for (const struct coord_action *action = result.actions; action; action = action->next)
        send(world, leader, batch, action);
    batch_close(batch);
}

/* ---- answers ---- */

static void learn(struct world *world, struct leader *leader, const struct request *request)
{
    const char *name = request->action->name;
    bool is_group =
        request->action->type == COORD_STATUS || request->action->type == COORD_GET_COORDINATION;

    if (world->config.mutation == OWN_WRITE_STALE &&
        request->action->type != COORD_GET_DEPLOYMENT &&
        request->action->type != COORD_GET_COORDINATION)
        return;
    for (int i = 0; is_group && i < world->config.groups; i++)
        if (strcmp(world->groups[i].name, name) == 0)
            put(&leader->groups[i], request->version);
    for (int i = 0; !is_group && i < world->config.deployments; i++)
        if (strcmp(world->deployments[i].name, name) == 0)
            put(&leader->deployments[i], request->version);
}

static void answer(struct world *world, struct request *request, enum sw_outcome outcome)
{
    if (request->leader >= 0) {
        struct leader *leader = &world->leaders[request->leader];
        const struct version *version = request->version;
        struct coord_answer what = {
            .outcome = outcome,
            .reason = outcome != SW_OK && request->reason ? request->reason : "",
            .message = outcome != SW_OK && request->message ? request->message : "",
            .resource_version = "",
        };
        if (outcome == SW_OK && version && version->exists)
            what.resource_version = request->action->type == COORD_STATUS
                                        ? version->c.meta.resource_version
                                        : version->d.meta.resource_version;
        if (outcome != SW_UNKNOWN)
            learn(world, leader, request);
        coord_answered(leader->memory, request->action, &what, request->batch->arena);
        leader->is_dirty = true;
        world_say(world, "L%d: answer for %s: %s", leader->index, request->action->name,
                  sw_outcome_text(outcome));
    }
}

bool world_deliver(struct world *world, struct request *request)
{
    if (request->state != ANSWERED)
        return false;
    answer(world, request, request->outcome);
    request->state = FREE_SLOT;
    batch_close(request->batch);
    return true;
}

/* The leader gives up on it; what is under way stays under way. */
void world_lose(struct world *world, struct request *request)
{
    if (request->state == FREE_SLOT || request->leader < 0)
        return;
    answer(world, request, SW_UNKNOWN);
    request->leader = -1;
    if (request->state == ANSWERED) {
        request->state = FREE_SLOT;
        batch_close(request->batch);
    }
}

bool world_webhook_sees(struct world *world, int webhook, uint32_t group)
{
    uint32_t g = group % (uint32_t)world->config.groups;

    return move(&world->webhooks[webhook][g], world->groups[g].now, true);
}
