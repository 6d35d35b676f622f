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
};

static struct coord_call *call_new(struct coord_state *state, const char *namespace_,
                                   const struct coord_action *action)
{
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
    };
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

static void say(struct sw_instance *self, const char *namespace_, const struct coord_remark *remark)
{
    for (; remark; remark = remark->next) {
        const struct sw_kind *kind = remark->is_of_coordination ? &coord_kind : &sw_kind_deployment;
        const struct sw_object *object = sw_lookup(self, kind, namespace_, remark->name);
        if (object)
            sw_record(self, object, remark->type, remark->reason, "%s", remark->message);
    }
}

static void count_answer(struct coord_state *state, const struct coord_action *action,
                         enum sw_outcome outcome)
{
    bool is_release = action->type == COORD_HOLD && action->verb == SW_HOLD_RELEASE;

    if (outcome == SW_CONFLICT)
        sw_count(state->lost, 1);
    else if (outcome == SW_REFUSED || outcome == SW_UNKNOWN)
        sw_count(state->failed, 1);
    if (outcome != SW_OK)
        return;
    if (action->type == COORD_STATUS && action->is_record)
        sw_count(state->records, 1);
    if (is_release) {
        sw_count(state->releases, 1);
        if (action->waited_us > 0)
            sw_observe(state->waited, (double)action->waited_us / 1e6);
    }
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

    count_answer(state, call->action, answer->outcome);
    if (call->leading != state->leading || !space || !space->memory)
        return;
    const struct coord_remark *remarks =
        coord_answered(space->memory, call->action, &what, call->arena);
    /* The next step of a chain comes before what is told of this one. */
    sw_queue_add(state->queue, call->namespace_);
    say(self, call->namespace_, remarks);
}

static void answered(struct sw_instance *self, void *arg, const struct sw_answer *answer)
{
    struct coord_call *call = arg;

    report(self, call, answer);
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
                      const struct coord_action *action, struct sw_arena *arena)
{
    struct coord_call *call = call_new(sw_state(self), namespace_, action);
    int code = send(self, action, call, arena);
    if (code == 0)
        return;
    sw_error(self, "request not made", SW_STR("namespace", namespace_),
             SW_STR("name", action->name), SW_ERR(code));
    const struct sw_answer refused = {
        .outcome = SW_REFUSED,
        .message = "request not made",
        .resource_version = "",
    };
    report(self, call, &refused);
    call_free(call);
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

static void add_facts(struct coord_state *state, const struct coord_result *facts, int sign)
{
    state->total.selected += sign * (int64_t)facts->selected;
    state->total.pending += sign * (int64_t)facts->pending;
    state->total.active += sign * (int64_t)facts->active;
    state->total.groups += sign * (int64_t)facts->groups;
}

static void measure(struct coord_state *state, struct space *space,
                    const struct coord_result *result)
{
    add_facts(state, &space->facts, -1);
    space->facts = *result;
    add_facts(state, &space->facts, 1);
    sw_measure(state->selected, (double)state->total.selected);
    sw_measure(state->pending, (double)state->total.pending);
    sw_measure(state->active, (double)state->total.active);
    sw_measure(state->groups, (double)state->total.groups);
}

static void run_plan(struct sw_instance *self, struct space *space)
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
        carry_out(self, space->namespace_, action, arena);
    measure(state, space, &result);
    say(self, space->namespace_, result.remarks);
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
    run_plan(self, space);
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
        coord_space_remove(space, object->name);
        if (space->memory && !delta->is_from_list)
            coord_saw_deleted(space->memory, object->name);
    }
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

    (void)arg;
    if (coord_space_get(state->spaces, object->namespace_) || bears_traces(object))
        sw_queue_add(state->queue, object->namespace_);
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

    add_facts(state, &space->facts, -1);
    space->facts = (struct coord_result){0};
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

/* ---- the arbiter ---- */

static void ask(struct sw_instance *self, const struct sw_question *question,
                struct sw_opinion *opinion)
{
    struct coord_state *state = sw_state(self);
    const struct space *space = coord_space_get(state->spaces, question->object->namespace_);
    size_t count;

    if (!space)
        return;
    const struct coord_seen_group *groups = seen_groups(self, space, question->arena, &count);
    coord_opinion(groups, count, state->rests_running, question, opinion);
}

/* ---- start ---- */

static void make_metrics(struct sw_instance *self, struct coord_state *state)
{
    /* From a blink to a night's queue. */
    static const double waits[] = {1, 5, 15, 60, 300, 900, 3600, 14400, 43200};

    state->groups = sw_gauge(self, "slipway_coordinations", "Coordinations.", NULL, NULL);
    state->selected = sw_gauge(self, "slipway_coordinated_deployments",
                               "Deployments that a coordination selects.", NULL, NULL);
    state->pending = sw_gauge(self, "slipway_waiting_deployments",
                              "Deployments that wait for their turn.", NULL, NULL);
    state->active =
        sw_gauge(self, "slipway_active_deployments", "Deployments whose turn it is.", NULL, NULL);
    state->releases = sw_counter(self, "slipway_turns_total", "Turns given.", NULL, NULL);
    state->records = sw_counter(self, "slipway_records_total",
                                "Records of an active set, each before a release.", NULL, NULL);
    state->lost = sw_counter(self, "slipway_lost_writes_total",
                             "Writes whose precondition no longer held.", NULL, NULL);
    state->failed = sw_counter(self, "slipway_failed_writes_total",
                               "Writes that were refused or not answered.", NULL, NULL);
    state->waited = sw_histogram(self, "slipway_wait_seconds",
                                 "From the moment a Deployment began to wait to its turn.", waits,
                                 sizeof waits / sizeof waits[0]);
}

int coord_shell_start(struct sw_instance *self)
{
    struct coord_state *state = sw_state(self);
    struct sw_queue_options queue = {.name = "coordination", .fn = reconcile};
    struct sw_watch_options coordinations = {
        .on_delta = on_coordination,
        .on_listed = on_coordinations_listed,
        .is_optional = true,
    };
    struct sw_watch_options deployments = {.on_delta = on_deployment};
    int code;

    state->spaces = coord_spaces_new();
    state->queue = sw_queue_new(self, &queue);
    make_metrics(self, state);
    sw_on_leading(self, on_leading);
    if ((code = sw_arbiter_register(self, &sw_kind_deployment, ask)))
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
