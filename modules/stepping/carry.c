/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carrying the plan's actions out: what each is as a request, and the way of its answer back to the
 * plan.
 *
 *                  Deployment                StatefulSet               DaemonSet
 *     HOLD         SW_HOLD_PAUSE             patch: partition          patch: OnDelete
 *     ADVANCE      SW_HOLD_RELEASE           patch: partition          look, delete old Pods
 *     SETTLE       SW_HOLD_FREE              patch: what is saved      patch: what is saved
 *     BITE         scale of a ReplicaSet     look, delete new Pods     -
 *     CLEAR        -                         look, delete broken Pods  -
 *     ROLL_BACK    read a revision, then replace the template by a JSON patch
 */
#include "shell.h"

#include <errno.h>
#include <string.h>

#include <slipway/arbiter.h>
#include <slipway/memory.h>
#include <slipway/queue.h>
#include <slipway/read.h>
#include <slipway/telemetry.h>
#include <slipway/time.h>
#include <slipway/watch.h>

#include "target.h"

/* ---- actions under way ---- */

struct step_call {
    struct step_call *next, **link; /* of those under way */
    struct step_kept *kept;         /* this struct, and its action, are in its arena */
    const struct step_action *action;
    const char *namespace_, *name; /* of the SteppedRollout */
    uint64_t number;               /* of its entry */
    uint64_t leading;
    uint64_t sent_ms;
    const char *run_id; /* NULL: at once, from a change */
    enum step_target_kind kind;
    const char *target_name;
    int64_t generation;                   /* of the target when it was decided */
    const char *old_phase, *old_activity; /* STATUS */
    int32_t old_step;                     /* STATUS */
    int32_t deletes;                      /* Pods whose deletion is not answered yet */
    enum sw_outcome outcome;              /* of those that are: the worst */
    const char *message;
};

struct step_kept *step_kept_new(void)
{
    struct sw_arena *arena = sw_arena_new(0);
    struct step_kept *kept = SW_ARENA_NEW(arena, struct step_kept);

    *kept = (struct step_kept){.arena = arena, .users = 1};
    return kept;
}

void step_kept_unref(struct step_kept *kept)
{
    if (--kept->users == 0)
        sw_arena_free(kept->arena);
}

static struct step_call *call_new(struct sw_instance *self, const struct step_entry *entry,
                                  const struct step_action *action, struct step_kept *kept,
                                  const char *run_id)
{
    struct step_state *state = sw_state(self);
    struct step_call *call = SW_ARENA_NEW(kept->arena, struct step_call);
    bool has_target = entry->has_target;

    *call = (struct step_call){
        .next = state->calls,
        .link = &state->calls,
        .kept = kept,
        .action = action,
        .namespace_ = sw_arena_strdup(kept->arena, entry->namespace_),
        .name = sw_arena_strdup(kept->arena, entry->name),
        .number = entry->number,
        .leading = state->leading,
        .sent_ms = sw_time_ms(self),
        .run_id = run_id ? sw_arena_strdup(kept->arena, run_id) : NULL,
        .kind = entry->target_kind,
        .target_name = sw_arena_strdup(kept->arena, has_target ? entry->target_name : ""),
        .old_phase = "",
        .message = "",
    };
    kept->users++;
    if (call->next)
        call->next->link = &call->next;
    state->calls = call;
    return call;
}

static void call_free(struct step_call *call)
{
    *call->link = call->next;
    if (call->next)
        call->next->link = call->link;
    step_kept_unref(call->kept);
}

void step_calls_free(struct step_state *state)
{
    while (state->calls)
        call_free(state->calls);
}

/* The entry that the call was made for; NULL: it is gone, or this process has lost the lead
 * meanwhile. */
static struct step_entry *entry_of(struct sw_instance *self, const struct step_call *call)
{
    struct step_state *state = sw_state(self);
    struct step_entry *entry = step_index_get(state->index, call->namespace_, call->name);

    if (call->leading != state->leading || !entry || entry->number != call->number)
        return NULL;
    return entry->memory ? entry : NULL;
}

static const struct sw_object *target_of(struct sw_instance *self, const struct step_call *call)
{
    return sw_lookup(self, step_kind_of(call->kind), call->namespace_, call->target_name);
}

/* ---- answers ---- */

static const char *const texts[] = {
    [STEP_HOLD] = "hold written",
    [STEP_ADVANCE] = "let go on",
    [STEP_SETTLE] = "left to itself",
    [STEP_BITE] = "retreat: bite taken",
    [STEP_CLEAR] = "broken Pods cleared away",
    [STEP_ROLL_BACK] = "rolled back",
    [STEP_STATUS] = "status written",
    [STEP_META] = "annotations obeyed",
    [STEP_LOOK] = "looked",
    [STEP_ROUND] = "round begun",
    [STEP_CANCEL] = "round cancelled",
};

static bool writes_target(const struct step_action *action)
{
    return action->type == STEP_HOLD || action->type == STEP_ADVANCE ||
           action->type == STEP_SETTLE || action->type == STEP_BITE || action->type == STEP_CLEAR ||
           action->type == STEP_ROLL_BACK;
}

/* What happens to the target is worth a line; the rest is for whoever looks closely. */
static void log_answer(struct sw_instance *self, const struct step_call *call,
                       enum sw_outcome outcome, const char *message)
{
    const struct step_action *action = call->action;
    bool is_step = writes_target(action) && outcome == SW_OK;
    const struct sw_field fields[] = {
        SW_STR("namespace", call->namespace_),
        SW_STR("name", call->name),
        SW_STR("target", call->target_name),
        SW_INT("stop", action->stop),
        SW_STR("phase", action->status ? action->status->phase : NULL),
        SW_STR("outcome", sw_outcome_text(outcome)),
        SW_STR("why", message[0] ? message : NULL),
        SW_MS("took", sw_time_ms(self) - call->sent_ms),
        SW_FIELD_LAST,
    };

    sw_say_about(self, NULL, call->run_id);
    sw_say(self, is_step ? SW_LEVEL_INFO : SW_LEVEL_DEBUG, texts[action->type], fields);
    sw_say_about(self, NULL, NULL);
}

static void measure(struct sw_instance *self, struct step_entry *entry,
                    const struct step_call *call)
{
    struct step_state *state = sw_state(self);
    const struct step_action *action = call->action;

    if (action->type == STEP_STATUS) {
        step_meter_status(&state->meter, call->old_phase, call->old_activity, call->old_step,
                          action->status);
    } else if (action->type == STEP_HOLD && entry->stop_seen_us) {
        step_meter_hold(&state->meter, sw_time_wall_us(self) - entry->stop_seen_us);
        entry->stop_seen_us = 0;
        entry->is_stopping = true;
    }
}

/* What was seen before a write, or is being looked at, is not what is there now. */
static void forget_look(struct step_entry *entry)
{
    entry->look = step_look_free(entry->look);
    step_look_cancel(entry->looking);
    entry->looking = NULL;
}

static void report(struct sw_instance *self, struct step_call *call, enum sw_outcome outcome,
                   const char *message)
{
    const struct step_action *action = call->action;
    struct step_entry *entry = entry_of(self, call);

    log_answer(self, call, outcome, message);
    if (!entry)
        return;
    if (outcome == SW_OK)
        measure(self, entry, call);
    if (writes_target(action))
        forget_look(entry);
    step_answered(entry->memory, action, outcome, message);
    /* What follows comes before what is told of this one. */
    step_shell_wake(self, entry);
    if (outcome == SW_OK || outcome == SW_UNCHANGED) {
        const struct stepped *object = step_shell_object(self, entry);
        const char *phase = action->status ? action->status->phase : object ? object->phase : "";
        step_shell_say(self, entry, phase, action->remarks);
    }
}

static void end(struct sw_instance *self, struct step_call *call, enum sw_outcome outcome,
                const char *message)
{
    report(self, call, outcome, message ? message : "");
    call_free(call);
}

static void answered(struct sw_instance *self, void *arg, const struct sw_answer *answer)
{
    end(self, arg, answer->outcome, answer->message);
}

/* ---- Deployments ---- */

static int send_hold(struct sw_instance *self, struct step_call *call, enum sw_hold_verb verb)
{
    const struct step_action *action = call->action;
    struct sw_arena *arena = call->kept->arena;
    const struct sw_deployment *deployment = sw_as_deployment(target_of(self, call));
    const char *owner = step_owner(arena, call->name);
    const struct sw_hold_request request = {
        .kind = &sw_kind_deployment,
        .namespace_ = call->namespace_,
        .name = call->target_name,
        .resource_version = action->resource_version,
        .verb = verb,
        .policy = STEP_POLICY,
        .owners = owner,
        .marks = verb == SW_HOLD_FREE && !action->has_marks ? "" : owner,
        .also = !deployment         ? NULL
                : action->is_raised ? step_deployment_raise(deployment, arena)
                                    : step_deployment_restore(deployment, arena),
    };

    return sw_hold_send(self, &request, answered, call);
}

static int send_scale(struct sw_instance *self, struct step_call *call)
{
    const struct step_action *action = call->action;
    struct sw_json *body = sw_json_object(call->kept->arena);
    const struct sw_write write = {
        .verb = SW_MERGE_PATCH,
        .kind = &sw_kind_replica_set,
        .namespace_ = call->namespace_,
        .name = action->name,
        .subresource = SW_SCALE,
        .body = body,
        .resource_version = action->resource_version,
    };

    sw_json_set_int(sw_json_set_object(body, "spec"), "replicas", action->size);
    return sw_write(self, &write, answered, call);
}

/* ---- StatefulSets and DaemonSets ---- */

static struct sw_json *grip_patch(struct sw_instance *self, struct step_call *call,
                                  const struct sw_object *object, enum step_grip_type type)
{
    const struct step_action *action = call->action;
    struct sw_arena *arena = call->kept->arena;
    struct sw_question question = {.object = object, .arena = arena};
    struct sw_opinion others;
    struct step_grip grip = {
        .type = type,
        .name = call->name,
        .has_mark = type != STEP_GRIP_NONE || action->has_marks,
        .others_owners = "",
    };

    sw_arbiters_ask_others(self, &question, &others);
    if (others.verdict != SW_VERDICT_FREE)
        grip.others_owners = others.owners;
    if (call->kind == STEP_DAEMON_SET)
        return step_daemon_set_patch(step_as_daemon_set(object), &grip, arena);
    const struct sw_stateful_set *set = step_as_stateful_set(object);
    grip.partition = type == STEP_GRIP_HELD && action->stop == 0
                         ? STEP_PARTITION_HELD
                         : step_partition(set->replicas, action->stop);
    return step_stateful_set_patch(set, &grip, arena);
}

static int send_grip(struct sw_instance *self, struct step_call *call, enum step_grip_type type)
{
    const struct sw_object *object = target_of(self, call);
    struct sw_json *patch = object ? grip_patch(self, call, object, type) : NULL;

    if (!object || strcmp(object->resource_version, call->action->resource_version) != 0) {
        end(self, call, object ? SW_CONFLICT : SW_NOT_FOUND, "the store knows a newer state");
        return 0;
    }
    if (!patch) {
        end(self, call, SW_UNCHANGED, "");
        return 0;
    }
    const struct sw_write write = {
        .verb = SW_MERGE_PATCH,
        .kind = object->kind,
        .namespace_ = call->namespace_,
        .name = call->target_name,
        .body = patch,
        .resource_version = call->action->resource_version,
    };
    return sw_write(self, &write, answered, call);
}

/* ---- Pods ---- */

/* A Pod that is gone is what was wanted; so is one that another has taken the place of. */
static void pod_deleted(struct sw_instance *self, void *arg, const struct sw_answer *answer)
{
    struct step_call *call = arg;
    bool is_gone = answer->outcome == SW_OK || answer->outcome == SW_NOT_FOUND ||
                   answer->outcome == SW_CONFLICT;

    if (!is_gone) {
        call->outcome = answer->outcome;
        call->message = sw_arena_strdup(call->kept->arena, answer->message);
    }
    if (--call->deletes == 0)
        end(self, call, call->outcome, call->message);
}

static bool delete_pod(struct sw_instance *self, struct step_call *call, const struct step_pod *pod)
{
    const struct sw_write write = {
        .verb = SW_DELETE,
        .kind = &sw_kind_pod,
        .namespace_ = call->namespace_,
        .name = pod->name,
        .uid = pod->uid,
    };

    return sw_write(self, &write, pod_deleted, call) == 0;
}

static void delete_pods(struct sw_instance *self, struct step_call *call,
                        const struct step_look *look)
{
    struct sw_arena *arena = call->kept->arena;
    const struct sw_object *object = target_of(self, call);
    struct step_target target;

    /* Another template meanwhile, or somebody else's strategy: what was decided holds no more. */
    if (!entry_of(self, call) || !object || object->generation != call->generation ||
        look->target_generation != call->generation) {
        end(self, call, SW_CONFLICT, "the target has changed meanwhile");
        return;
    }
    step_target_of(object, call->name, arena, &target);
    size_t most = call->action->pods > 0 ? (size_t)call->action->pods : 0;
    if (call->kind == STEP_DAEMON_SET)
        most = step_look_most(look, target.replicas, call->action->stop, most);
    const struct step_pod **pods = SW_ARENA_ARRAY(arena, most + 1, const struct step_pod *);
    const struct step_choice choice = {
        .type = call->action->type,
        .name = call->action->name ? call->action->name : "",
        .partition = call->kind == STEP_STATEFUL_SET ? step_as_stateful_set(object)->partition : 0,
        .replicas = target.replicas,
        .unavailable = target.unavailable,
        .most = most,
    };
    size_t count = step_look_choose(look, &choice, pods);
    if (count == 0) {
        end(self, call, SW_UNCHANGED, "no Pod may go now");
        return;
    }
    call->deletes = 1; /* so that no answer ends it before all are sent */
    for (size_t i = 0; i < count; i++)
        if (delete_pod(self, call, pods[i]))
            call->deletes++;
    if (--call->deletes == 0)
        end(self, call, SW_REFUSED, "Pods could not be deleted");
}

static void looked_for_pods(struct sw_instance *self, void *arg, struct step_look *look,
                            enum sw_outcome outcome, const char *message)
{
    struct step_call *call = arg;

    if (outcome != SW_OK) {
        end(self, call, outcome, message);
        return;
    }
    delete_pods(self, call, look);
    step_look_free(look);
}

static int send_deletes(struct sw_instance *self, struct step_call *call)
{
    struct step_state *state = sw_state(self);
    const struct sw_object *object = target_of(self, call);

    if (!object || strcmp(object->resource_version, call->action->resource_version) != 0) {
        end(self, call, object ? SW_CONFLICT : SW_NOT_FOUND, "the store knows a newer state");
        return 0;
    }
    call->generation = object->generation;
    return step_look_start(self, &state->lookings, call->kind, call->namespace_, call->target_name,
                           looked_for_pods, call)
               ? 0
               : -EINVAL;
}

/* ---- templates ---- */

static void template_read(struct sw_instance *self, void *arg, const struct sw_answer *answer)
{
    struct step_call *call = arg;
    struct sw_json *patch;

    if (answer->outcome != SW_OK) {
        end(self, call, answer->outcome, answer->message);
        return;
    }
    if (!entry_of(self, call)) {
        end(self, call, SW_NOT_LEADER, "");
        return;
    }
    if (step_template_patch(call->kind, step_template_of(answer->object), call->kept->arena,
                            &patch)) {
        end(self, call, SW_REFUSED, "there is no template in the revision");
        return;
    }
    const struct sw_write write = {
        .verb = SW_JSON_PATCH,
        .kind = step_kind_of(call->kind),
        .namespace_ = call->namespace_,
        .name = call->target_name,
        .body = patch,
        .resource_version = call->action->resource_version,
    };
    if (sw_write(self, &write, answered, call))
        end(self, call, SW_REFUSED, "the template could not be sent");
}

/* ---- the SteppedRollout ---- */

static int send_status(struct sw_instance *self, struct step_call *call,
                       const struct stepped *object)
{
    const struct sw_write write = {
        .verb = SW_MERGE_PATCH,
        .kind = &step_kind,
        .namespace_ = call->namespace_,
        .name = call->name,
        .subresource = SW_STATUS,
        .body = step_status_patch(call->kept->arena, call->action->status, object),
        .resource_version = call->action->resource_version,
    };

    call->old_phase = sw_arena_strdup(call->kept->arena, object->phase);
    call->old_activity = sw_arena_strdup(call->kept->arena, object->activity);
    call->old_step = object->current_step;
    return sw_write(self, &write, answered, call);
}

static void set_finalizers(struct sw_json *metadata, const struct sw_strings *old, bool has_ours)
{
    struct sw_json *list = sw_json_set_array(metadata, "finalizers");

    for (uint32_t i = 0; i < old->count; i++)
        if (strcmp(old->at[i], STEP_FINALIZER) != 0)
            sw_json_append_string(list, old->at[i]);
    if (has_ours)
        sw_json_append_string(list, STEP_FINALIZER);
}

static int send_meta(struct sw_instance *self, struct step_call *call, const struct stepped *object)
{
    const struct step_action *action = call->action;
    struct sw_json *body = sw_json_object(call->kept->arena);
    struct sw_json *metadata = sw_json_set_object(body, "metadata");
    const struct sw_write write = {
        .verb = SW_MERGE_PATCH,
        .kind = &step_kind,
        .namespace_ = call->namespace_,
        .name = call->name,
        .body = body,
        .resource_version = action->resource_version,
    };

    if (action->removes_promote)
        sw_json_set(sw_json_set_object(metadata, "annotations"), STEP_PROMOTE, NULL);
    if (action->removes_abort)
        sw_json_set(sw_json_set_object(metadata, "annotations"), STEP_ABORT, NULL);
    if (action->removes_retry)
        sw_json_set(sw_json_set_object(metadata, "annotations"), STEP_RETRY, NULL);
    if (action->has_finalizer >= 0)
        set_finalizers(metadata, &object->finalizers, action->has_finalizer > 0);
    return sw_write(self, &write, answered, call);
}

static int send_to_stepped(struct sw_instance *self, struct step_call *call)
{
    const struct sw_object *object = sw_lookup(self, &step_kind, call->namespace_, call->name);

    if (!object) {
        end(self, call, SW_NOT_FOUND, "");
        return 0;
    }
    return call->action->type == STEP_STATUS ? send_status(self, call, step_as_stepped(object))
                                             : send_meta(self, call, step_as_stepped(object));
}

/* ---- looks ---- */

enum { LOOK_AGAIN_MS = 1000 };

static void looked(struct sw_instance *self, void *arg, struct step_look *look,
                   enum sw_outcome outcome, const char *message)
{
    struct step_entry *entry = arg;
    struct step_state *state = sw_state(self);

    entry->looking = NULL;
    entry->look_error = sw_free(entry->look_error);
    if (outcome == SW_OK) {
        step_look_free(entry->look);
        entry->look = look;
        step_shell_wake(self, entry);
        return;
    }
    sw_warn(self, "revisions not read, trying again", SW_STR("namespace", entry->namespace_),
            SW_STR("name", entry->name), SW_STR("outcome", sw_outcome_text(outcome)),
            SW_STR("why", message));
    entry->look_error = sw_strdup(message[0] ? message : sw_outcome_text(outcome));
    struct sw_arena *arena = sw_arena_new(0);
    sw_queue_add_after(state->queue,
                       sw_arena_printf(arena, "%s/%s", entry->namespace_, entry->name),
                       LOOK_AGAIN_MS);
    sw_arena_free(arena);
}

static void look(struct sw_instance *self, struct step_entry *entry)
{
    struct step_state *state = sw_state(self);

    if (!entry->looking)
        entry->looking = step_look_start(self, &state->lookings, entry->target_kind,
                                         entry->namespace_, entry->target_name, looked, entry);
}

/* ---- all of them ---- */

static int send_to_deployment(struct sw_instance *self, struct step_call *call)
{
    switch (call->action->type) {
    case STEP_HOLD:
        return send_hold(self, call, SW_HOLD_PAUSE);
    case STEP_ADVANCE:
        return send_hold(self, call, SW_HOLD_RELEASE);
    case STEP_SETTLE:
        return send_hold(self, call, SW_HOLD_FREE);
    case STEP_BITE:
        return send_scale(self, call);
    default:
        return -EINVAL;
    }
}

static int send_to_set(struct sw_instance *self, struct step_call *call)
{
    switch (call->action->type) {
    case STEP_HOLD:
        return send_grip(self, call, STEP_GRIP_HELD);
    case STEP_ADVANCE:
        return call->kind == STEP_DAEMON_SET ? send_deletes(self, call)
                                             : send_grip(self, call, STEP_GRIP_RELEASED);
    case STEP_SETTLE:
        return send_grip(self, call, STEP_GRIP_NONE);
    case STEP_BITE:
    case STEP_CLEAR:
        return call->kind == STEP_STATEFUL_SET ? send_deletes(self, call) : -EINVAL;
    default:
        return -EINVAL;
    }
}

static int send(struct sw_instance *self, struct step_call *call)
{
    if (call->action->type == STEP_STATUS || call->action->type == STEP_META)
        return send_to_stepped(self, call);
    if (call->action->type == STEP_ROLL_BACK)
        return sw_read(self, step_template_kind(call->kind), call->namespace_, call->action->name,
                       template_read, call);
    return call->kind == STEP_DEPLOYMENT ? send_to_deployment(self, call) : send_to_set(self, call);
}

void step_carry_out(struct sw_instance *self, struct step_entry *entry,
                    const struct step_action *action, struct step_kept *kept, const char *run_id)
{
    switch (action->type) {
    case STEP_LOOK:
        look(self, entry);
        return;
    case STEP_ROUND:
        step_ask(self, entry, action);
        return;
    case STEP_CANCEL:
        step_ask_cancel(self, entry);
        return;
    default:
        break;
    }
    struct step_call *call = call_new(self, entry, action, kept, run_id);
    int code = action->resource_version ? send(self, call) : -EINVAL;
    if (code == 0)
        return;
    sw_error(self, "request not made", SW_STR("namespace", entry->namespace_),
             SW_STR("name", entry->name), SW_STR("what", texts[action->type]), SW_ERR(code));
    end(self, call, SW_REFUSED, "request not made");
}
