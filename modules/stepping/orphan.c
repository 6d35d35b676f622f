/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A SteppedRollout that is deleted by force, or gets another target, leaves its traces on the old
 * one: a hold that nobody would ever end. They are found when such a target or its SteppedRollout
 * changes, and when this process begins to lead.
 */
#include "shell.h"

#include <errno.h>
#include <string.h>

#include <slipway/arbiter.h>
#include <slipway/queue.h>
#include <slipway/telemetry.h>
#include <slipway/watch.h>

#include "target.h"

static bool names_us(const struct sw_object *object, const char *key)
{
    const char *list = sw_annotation(object, key);

    return list && strstr(list, STEP_POLICY "/");
}

static bool is_orphan(struct sw_instance *self, enum step_target_kind kind,
                      const struct sw_object *object)
{
    const struct step_state *state = sw_state(self);

    if (!sw_annotation(object, SW_STEPPED_BY) && !names_us(object, SW_HELD_BY) &&
        !names_us(object, SW_RELEASED_BY))
        return false;
    return !step_index_oldest(state->index, kind, object->namespace_, object->name);
}

static bool kind_of(const struct sw_object *object, enum step_target_kind *ret_kind)
{
    for (int kind = STEP_DEPLOYMENT; kind <= STEP_DAEMON_SET; kind++)
        if (object->kind == step_kind_of((enum step_target_kind)kind)) {
            *ret_kind = (enum step_target_kind)kind;
            return true;
        }
    return false;
}

/* ---- letting go ---- */

static void let_go(struct sw_instance *self, void *arg, const struct sw_answer *answer)
{
    bool is_again = answer->outcome == SW_UNKNOWN || answer->outcome == SW_CONFLICT;

    sw_info(self, "let go: its SteppedRollout is gone", SW_STR("target", sw_run_key(arg) + 2),
            SW_STR("outcome", sw_outcome_text(answer->outcome)), SW_STR("why", answer->message));
    sw_run_finish(arg, is_again ? SW_RETRY : SW_DONE);
}

static int send_deployment(struct sw_instance *self, const struct sw_object *object,
                           struct sw_run *run)
{
    const struct sw_hold_request request = {
        .kind = object->kind,
        .namespace_ = object->namespace_,
        .name = object->name,
        .resource_version = object->resource_version,
        .verb = SW_HOLD_FREE,
        .policy = STEP_POLICY,
        .owners = "",
        .marks = "",
        .also = step_deployment_restore(sw_as_deployment(object), sw_run_arena(run)),
    };

    return sw_hold_send(self, &request, let_go, run);
}

static int send_set(struct sw_instance *self, const struct sw_object *object, struct sw_run *run)
{
    const struct step_grip grip = {
        .type = STEP_GRIP_NONE,
        .name = "",
        .others_owners = "",
    };
    struct sw_arena *arena = sw_run_arena(run);
    bool is_daemon_set = object->kind == &sw_kind_daemon_set;
    const struct sw_write write = {
        .verb = SW_MERGE_PATCH,
        .kind = object->kind,
        .namespace_ = object->namespace_,
        .name = object->name,
        .body = is_daemon_set ? step_daemon_set_patch(step_as_daemon_set(object), &grip, arena)
                              : step_stateful_set_patch(step_as_stateful_set(object), &grip, arena),
        .resource_version = object->resource_version,
    };

    return write.body ? sw_write(self, &write, let_go, run) : -ENOENT;
}

/* Key: digit of the kind, "/", namespace, "/", name. */
static enum sw_result look(struct sw_instance *self, void *arg, struct sw_run *run)
{
    const char *key = sw_run_key(run);
    enum step_target_kind kind = (enum step_target_kind)(key[0] - '0');
    const char *name = strchr(key + 2, '/') + 1;
    const char *namespace_ = sw_arena_strndup(sw_run_arena(run), key + 2, (size_t)(name - key) - 3);
    const struct sw_object *object = sw_lookup(self, step_kind_of(kind), namespace_, name);

    (void)arg;
    if (!object || object->deleted_us || !sw_is_synced(self, &step_kind) ||
        !is_orphan(self, kind, object))
        return SW_DONE;
    int code =
        kind == STEP_DEPLOYMENT ? send_deployment(self, object, run) : send_set(self, object, run);
    return code ? SW_DONE : SW_LATER;
}

/* ---- what wakes it ---- */

void step_orphans_look_at(struct sw_instance *self, const struct sw_object *object)
{
    struct step_state *state = sw_state(self);
    enum step_target_kind kind;

    if (!state->is_leading || !kind_of(object, &kind) || !is_orphan(self, kind, object))
        return;
    struct sw_arena *arena = sw_arena_new(0);
    sw_queue_add(state->orphans,
                 sw_arena_printf(arena, "%d/%s/%s", (int)kind, object->namespace_, object->name));
    sw_arena_free(arena);
}

static bool visit(void *arg, const struct sw_object *object)
{
    step_orphans_look_at(arg, object);
    return true;
}

void step_orphans_look_at_all(struct sw_instance *self)
{
    for (int kind = STEP_DEPLOYMENT; kind <= STEP_DAEMON_SET; kind++)
        sw_each(self, step_kind_of((enum step_target_kind)kind), NULL, NULL, visit, self);
}

void step_orphans_start(struct sw_instance *self)
{
    struct step_state *state = sw_state(self);
    const struct sw_queue_options options = {.name = "stepping-orphans", .fn = look};

    state->orphans = sw_queue_new(self, &options);
}
