/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What wakes the plan of a namespace is a change of one of its objects, an answer, or a deadline
 * that the plan itself has named; never a poll.
 */
#include "shell.h"

#include <errno.h>
#include <string.h>

#include <slipway/memory.h>
#include <slipway/queue.h>
#include <slipway/record.h>
#include <slipway/telemetry.h>
#include <slipway/time.h>
#include <slipway/watch.h>

#include "opinion.h"
#include "plan.h"
#include "space.h"

/* ---- requests under way ---- */

/* One request, and what is kept of its action, in an arena of its own: many may wait for long. */
struct coord_call {
    struct coord_call *next, **link; /* of those under way */
    struct sw_arena *arena;          /* this struct is in it */
    const struct coord_action *action;
    const char *namespace_;
    uint64_t leading;
    uint64_t sent_ms;
    char run_id[24]; /* of the run that made it */
};

static struct coord_call *call_new(struct sw_instance *self, const char *namespace_,
                                   const struct coord_action *action, const char *run_id)
{
    struct coord_state *state = sw_state(self);
    enum { CALL_BYTES = 768 }; /* what most take, so that the arena needs no second block */
    struct sw_arena *arena = sw_arena_new(CALL_BYTES);
    struct coord_call *call = SW_ARENA_NEW(arena, struct coord_call);

    *call = (struct coord_call){
        .next = state->calls,
        .link = &state->calls,
        .arena = arena,
        .action = coord_action_keep(action, arena),
        .namespace_ = sw_arena_strdup(arena, namespace_),
        .leading = state->leading,
        .sent_ms = sw_time_ms(self),
    };
    strncpy(call->run_id, run_id, sizeof call->run_id - 1);
    if (call->next)
        call->next->link = &call->next;
    state->calls = call;
    return call;
}

static void call_free(struct coord_call *call)
{
    *call->link = call->next;
    if (call->next)
        call->next->link = call->link;
    sw_arena_free(call->arena);
}

static void say(struct sw_instance *self, const char *namespace_, const struct coord_remark *remark,
                const char *run_id)
{
    for (; remark; remark = remark->next) {
        const struct sw_kind *kind = remark->is_of_coordination ? &coord_kind : &sw_kind_deployment;
        const struct sw_object *object = sw_lookup(self, kind, namespace_, remark->name);
        sw_say_about(self, remark->rollout[0] ? remark->rollout : NULL, run_id);
        if (object)
            sw_record(self, object, remark->type, remark->reason, "%s", remark->message);
    }
    sw_say_about(self, NULL, run_id);
}

static const char *step_text(const struct coord_action *action)
{
    if (action->type == COORD_STATUS)
        return action->is_record ? "turn recorded" : "status written";
    if (action->type != COORD_HOLD)
        return "read again";
    if (action->verb == SW_HOLD_RELEASE)
        return "turn given";
    return action->is_chain ? "turn taken back" : "hold written";
}

/* Steps of a hand-over are worth a line each; the rest is for whoever looks closely. */
static void log_step(struct sw_instance *self, const struct coord_call *call, const char *name,
                     const char *rollout, const struct sw_answer *answer)
{
    const struct coord_action *action = call->action;
    bool is_step = action->is_chain && answer->outcome == SW_OK;
    const struct sw_field fields[] = {
        SW_STR("namespace", call->namespace_),
        SW_STR("name", name),
        SW_STR("coordination", action->group_count > 0 ? action->groups[0] : NULL),
        SW_STR("outcome", sw_outcome_text(answer->outcome)),
        SW_MS("took", sw_time_ms(self) - call->sent_ms),
        SW_FIELD_LAST,
    };

    sw_say_about(self, rollout[0] ? rollout : NULL, call->run_id);
    sw_say(self, is_step ? SW_LEVEL_INFO : SW_LEVEL_DEBUG, step_text(action), fields);
    sw_say_about(self, NULL, call->run_id);
}

/* A record is about each one whose turn it begins. */
static void log_answer(struct sw_instance *self, const struct coord_call *call,
                       const struct sw_answer *answer)
{
    const struct coord_action *action = call->action;

    for (uint32_t i = 0; i < action->begun_count; i++)
        log_step(self, call, action->begun[i], action->begun_rollouts[i], answer);
    if (action->begun_count == 0)
        log_step(self, call, action->name, action->rollout, answer);
}

static void report(struct sw_instance *self, struct coord_call *call,
                   const struct sw_answer *answer)
{
    struct coord_state *state = sw_state(self);
    struct space *space = coord_space_get(state->spaces, call->namespace_);
    const struct coord_answer what = {
        .outcome = answer->outcome,
        .reason = answer->reason ? answer->reason : "",
        .message = answer->message ? answer->message : "",
        .resource_version = answer->resource_version,
    };

    log_answer(self, call, answer);
    coord_meter_answer(&state->meter, space, call->action, answer->outcome,
                       sw_time_ms(self) - call->sent_ms);
    if (call->leading != state->leading || !space || !space->memory)
        return;
    const struct coord_remark *remarks =
        coord_answered(space->memory, call->action, &what, call->arena);
    /* The next step of a chain comes before what is told of this one. */
    sw_queue_add(state->queue, call->namespace_);
    say(self, call->namespace_, remarks, call->run_id);
}

static void answered(struct sw_instance *self, void *arg, const struct sw_answer *answer)
{
    struct coord_call *call = arg;

    report(self, call, answer);
    sw_say_about(self, NULL, NULL);
    call_free(call);
}

static int send_hold(struct sw_instance *self, const struct coord_action *action,
                     struct coord_call *call)
{
    const struct sw_hold_request request = {
        .kind = &sw_kind_deployment,
        .namespace_ = call->namespace_,
        .name = action->name,
        .resource_version = action->resource_version,
        .verb = action->verb,
        .policy = COORD_POLICY,
        .owners = action->owners,
        .marks = action->marks,
        .fence = action->fence,
    };

    return sw_hold_send(self, &request, answered, call);
}

static int send_status(struct sw_instance *self, const struct coord_action *action,
                       struct coord_call *call, struct sw_arena *arena)
{
    const struct sw_object *stored = sw_lookup(self, &coord_kind, call->namespace_, action->name);

    if (!stored)
        return -ENOENT;
    const struct sw_write write = {
        .verb = SW_MERGE_PATCH,
        .kind = &coord_kind,
        .namespace_ = call->namespace_,
        .name = action->name,
        .subresource = SW_STATUS,
        .body = coord_status_patch(arena, action->status,
                                   (const struct coordination *)(const void *)stored),
        .resource_version = action->resource_version,
    };

    return sw_write(self, &write, answered, call);
}

/* arena: of the run. */
static int send(struct sw_instance *self, const struct coord_action *action,
                struct coord_call *call, struct sw_arena *arena)
{
    switch (action->type) {
    case COORD_HOLD:
        return send_hold(self, action, call);
    case COORD_STATUS:
        return send_status(self, action, call, arena);
    case COORD_GET_DEPLOYMENT:
        return sw_get(self, &sw_kind_deployment, call->namespace_, action->name, answered, call);
    case COORD_GET_COORDINATION:
        return sw_get(self, &coord_kind, call->namespace_, action->name, answered, call);
    }
    return -EINVAL;
}

static void carry_out(struct sw_instance *self, const char *namespace_,
                      const struct coord_action *action, const char *run_id, struct sw_arena *arena)
{
    struct coord_call *call = call_new(self, namespace_, action, run_id);
    int code = send(self, action, call, arena);
    if (code == 0)
        return;
    sw_say_about(self, action->rollout[0] ? action->rollout : NULL, run_id);
    sw_error(self, "request not made", SW_STR("namespace", namespace_),
             SW_STR("name", action->name), SW_ERR(code));
    const struct sw_answer refused = {
        .outcome = SW_REFUSED,
        .message = "request not made",
        .resource_version = "",
    };
    report(self, call, &refused);
    call_free(call);
    sw_say_about(self, NULL, run_id);
}

/* ---- the snapshot ---- */

struct collector {
    struct sw_instance *self;
    struct sw_arena *arena;
    struct coord_seen_deployment *deployments;
    size_t count, room;
};

static bool collect(void *arg, const struct sw_object *object)
{
    struct collector *collector = arg;
    struct sw_question question = {.object = object, .arena = collector->arena};
    struct sw_opinion opinion;

    if (collector->count == collector->room) {
        struct coord_seen_deployment *old = collector->deployments;
        collector->room = collector->room ? collector->room * 2 : 16;
        collector->deployments =
            SW_ARENA_ARRAY(collector->arena, collector->room, struct coord_seen_deployment);
        if (old)
            memcpy(collector->deployments, old, collector->count * sizeof *old);
    }
    sw_arbiters_ask_others(collector->self, &question, &opinion);
    collector->deployments[collector->count++] = (struct coord_seen_deployment){
        .object = sw_as_deployment(object),
        .others = opinion.verdict,
        .others_words = opinion.words,
        .others_owners = opinion.owners,
        .others_select = opinion.is_selected,
        .others_gave_it_up = opinion.has_given_up,
    };
    return true;
}

/* The coordinations of the namespace that the store has, with their parsed selectors. */
static const struct coord_seen_group *seen_groups(struct sw_instance *self,
                                                  const struct space *space, struct sw_arena *arena,
                                                  size_t *ret_count)
{
    struct coord_seen_group *seen =
        SW_ARENA_ARRAY(arena, (size_t)space->group_count + 1, struct coord_seen_group);

    *ret_count = 0;
    for (uint32_t i = 0; i < space->group_count; i++) {
        const struct space_group *group = &space->groups[i];
        const struct sw_object *object =
            sw_lookup(self, &coord_kind, space->namespace_, group->name);
        if (object)
            seen[(*ret_count)++] = (struct coord_seen_group){
                .object = (const struct coordination *)(const void *)object,
                .selector = group->selector,
                .selector_error = group->error ? group->error : "",
            };
    }
    return seen;
}

static void run_plan(struct sw_instance *self, struct space *space, const char *run_id)
{
    struct coord_state *state = sw_state(self);
    struct sw_arena *arena = sw_arena_new(0);
    struct collector collector = {.self = self, .arena = arena};
    struct coord_result result;

    sw_each(self, &sw_kind_deployment, space->namespace_, NULL, collect, &collector);
    struct coord_snapshot snapshot = {
        .namespace_ = space->namespace_,
        .now_ms = sw_time_ms(self),
        .wall_us = sw_time_wall_us(self),
        .random = sw_time_random(self),
        .term = sw_term(self),
        .rests_running = state->rests_running,
        .lists = state->lists,
        .deployments = collector.deployments,
        .deployment_count = collector.count,
    };
    snapshot.list_age_ms = snapshot.now_ms - state->listed_ms;
    snapshot.groups = seen_groups(self, space, arena, &snapshot.group_count);
    coord_plan(space->memory, &snapshot, arena, &result);
    for (const struct coord_action *action = result.actions; action; action = action->next)
        carry_out(self, space->namespace_, action, run_id, arena);
    coord_meter_plan(&state->meter, space, &result);
    say(self, space->namespace_, result.remarks, run_id);
    if (result.wants_relist)
        sw_relist(self, &coord_kind);
    if (result.look_again_ms != UINT64_MAX)
        sw_queue_add_after(state->queue, space->namespace_, result.look_again_ms);
    sw_arena_free(arena);
}

static enum sw_result reconcile(struct sw_instance *self, void *arg, struct sw_run *run)
{
    struct coord_state *state = sw_state(self);
    struct space *space = coord_space_add(state->spaces, sw_run_key(run));

    (void)arg;
    if (!space->memory)
        space->memory = coord_memory_new();
    run_plan(self, space, sw_run_id(run));
    coord_space_tidy(state->spaces, space);
    return SW_DONE;
}

/* ---- what wakes it ---- */

static void on_coordination(struct sw_instance *self, void *arg, const struct sw_delta *delta)
{
    struct coord_state *state = sw_state(self);
    const struct sw_object *object = delta->now ? delta->now : delta->old;
    struct space *space = coord_space_add(state->spaces, object->namespace_);

    (void)arg;
    if (delta->now) {
        coord_space_put(space, (const struct coordination *)(const void *)delta->now);
    } else {
        coord_meter_forget(&state->meter, space, object->name);
        coord_space_remove(space, object->name);
        if (space->memory && !delta->is_from_list)
            coord_saw_deleted(space->memory, object->name);
    }
    coord_meter_look(&state->meter, space);
    sw_queue_add(state->queue, object->namespace_);
    coord_space_tidy(state->spaces, space);
}

static void on_coordinations_listed(struct sw_instance *self, void *arg);

static bool bears_traces(const struct sw_object *object)
{
    const char *held = sw_annotation(object, SW_HELD_BY);
    const char *released = sw_annotation(object, SW_RELEASED_BY);

    return (held && strstr(held, COORD_POLICY "/")) ||
           (released && strstr(released, COORD_POLICY "/")) ||
           sw_annotation(object, SW_COORDINATED_BY);
}

/* A namespace without coordinations costs nothing. */
static void on_deployment(struct sw_instance *self, void *arg, const struct sw_delta *delta)
{
    struct coord_state *state = sw_state(self);
    const struct sw_object *object = delta->now ? delta->now : delta->old;
    struct space *space = coord_space_get(state->spaces, object->namespace_);

    (void)arg;
    if (space)
        coord_meter_see(&state->meter, space, sw_as_deployment(delta->old),
                        sw_as_deployment(delta->now), delta->is_from_list);
    if (space || bears_traces(object))
        sw_queue_add(state->queue, object->namespace_);
}

static void on_deployments_listed(struct sw_instance *self, void *arg)
{
    struct coord_state *state = sw_state(self);

    (void)arg;
    coord_meter_listed(&state->meter);
}

static void wake_space(void *arg, struct space *space)
{
    struct coord_state *state = sw_state(arg);

    sw_queue_add(state->queue, space->namespace_);
}

static bool wake_traced(void *arg, const struct sw_object *object)
{
    struct coord_state *state = sw_state(arg);

    if (bears_traces(object))
        sw_queue_add(state->queue, object->namespace_);
    return true;
}

static void wake_remembering(void *arg, struct space *space)
{
    struct coord_state *state = sw_state(arg);

    if (space->memory)
        sw_queue_add(state->queue, space->namespace_);
}

/* A list settles whether something that seemed missing is gone. */
static void on_coordinations_listed(struct sw_instance *self, void *arg)
{
    struct coord_state *state = sw_state(self);

    (void)arg;
    state->lists++;
    state->listed_ms = sw_time_ms(self);
    if (state->is_leading)
        coord_spaces_each(state->spaces, wake_remembering, self);
}

void coord_shell_look_at_all(struct sw_instance *self)
{
    struct coord_state *state = sw_state(self);

    coord_spaces_each(state->spaces, wake_space, self);
    sw_each(self, &sw_kind_deployment, NULL, NULL, wake_traced, self);
}

static void forget(void *arg, struct space *space)
{
    struct coord_state *state = arg;

    coord_meter_plan(&state->meter, space, NULL);
    space->memory = coord_memory_free(space->memory);
    coord_space_tidy(state->spaces, space);
}

/* The memory belongs to one leadership: who leads again knows nothing of before. */
static void on_leading(struct sw_instance *self, bool is_leading)
{
    struct coord_state *state = sw_state(self);

    coord_spaces_each(state->spaces, forget, state);
    state->is_leading = is_leading;
    state->leading++;
    if (is_leading)
        coord_shell_look_at_all(self);
}

/* Another policy sees it otherwise than before. */
static void on_opinion(struct sw_instance *self, const char *namespace_, const char *name)
{
    struct coord_state *state = sw_state(self);
    const struct sw_object *object = sw_lookup(self, &sw_kind_deployment, namespace_, name);

    if (object && (coord_space_get(state->spaces, namespace_) || bears_traces(object)))
        sw_queue_add(state->queue, namespace_);
}

/* ---- the arbiter ---- */

static void ask(struct sw_instance *self, const struct sw_question *question,
                struct sw_opinion *opinion)
{
    struct coord_state *state = sw_state(self);
    const struct space *space = coord_space_get(state->spaces, question->object->namespace_);
    const struct coord_seen_group *groups = NULL;
    size_t count = 0;

    if (space)
        groups = seen_groups(self, space, question->arena, &count);
    coord_opinion(groups, count, state->rests_running, question, opinion);
}

/* ---- start ---- */

int coord_shell_start(struct sw_instance *self)
{
    struct coord_state *state = sw_state(self);
    struct sw_queue_options queue = {.name = "coordination", .fn = reconcile};
    struct sw_watch_options coordinations = {
        .on_delta = on_coordination,
        .on_listed = on_coordinations_listed,
        .is_optional = true,
    };
    struct sw_watch_options deployments = {
        .on_delta = on_deployment,
        .on_listed = on_deployments_listed,
    };
    int code;

    state->spaces = coord_spaces_new();
    state->queue = sw_queue_new(self, &queue);
    coord_meter_start(&state->meter, self, state->spaces, state->series_limit);
    sw_on_leading(self, on_leading);
    if ((code = sw_arbiter_register(self, &sw_kind_deployment, ask)) ||
        (code = sw_on_opinion(self, &sw_kind_deployment, on_opinion)))
        return code;
    sw_write_declare(self, &coord_kind, SW_GET, SW_MAIN);
    sw_write_declare(self, &coord_kind, SW_MERGE_PATCH, SW_STATUS);
    sw_write_declare(self, &sw_kind_deployment, SW_GET, SW_MAIN);
    if ((code = sw_watch(self, &coord_kind, &coordinations)))
        return code;
    return sw_watch(self, &sw_kind_deployment, &deployments);
}

void coord_shell_stop(struct sw_instance *self)
{
    struct coord_state *state = sw_state(self);

    while (state->calls) /* no answer comes any more */
        call_free(state->calls);
    state->spaces = coord_spaces_free(state->spaces);
}
