/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status, plan and why: what is read and shown.
 */
#include <string.h>

#include <slipway/arbiter.h>
#include <slipway/json.h>

#include "base/time.h"
#include "base/util.h"
#include "forecast.h"
#include "output.h"
#include "rollout.h"
#include "run.h"
#include "session.h"
#include "text.h"
#include "view.h"
#include "why.h"

/* ---- those that were asked for ---- */

static const char *where(const struct ks_session *session)
{
    const char *namespace_ = ks_namespace(session);

    return namespace_ ? sw_arena_printf(session->arena, "namespace %s", namespace_)
                      : "any namespace";
}

static bool is_group(const struct ks_world *world, const char *name)
{
    for (size_t i = 0; i < world->group_count; i++)
        if (strcmp(world->groups[i].c->meta.name, name) == 0)
            return true;
    return false;
}

static bool is_rollout(const struct ks_world *world, const char *name)
{
    for (size_t i = 0; i < world->rollout_count; i++)
        if (strcmp(world->rollouts[i]->meta.name, name) == 0)
            return true;
    return false;
}

/* Names that no coordination bears, and of a command for both no SteppedRollout. */
static enum ks_exit check_wanted(struct ks_session *session, const struct ks_world *world)
{
    const struct ks_options *options = session->options;
    bool are_both = options->command->names == KS_GROUPS;
    enum ks_exit status = KS_DONE;

    for (size_t i = 0; i < options->name_count; i++) {
        const char *name = options->names[i], *kind = options->kinds[i];
        bool is_one = strcmp(kind, step_kind.kind) != 0, is_other = strcmp(kind, coord_kind.kind);
        if ((is_one && is_group(world, name)) || (are_both && is_other && is_rollout(world, name)))
            continue;
        ks_complain("there is no %s %s in %s%s", is_one ? "coordination" : "SteppedRollout", name,
                    where(session),
                    is_one && are_both && is_other ? ", nor a SteppedRollout of that name" : "");
        status = KS_NOT_FOUND;
    }
    return status;
}

static bool says_nothing(struct ks_session *session, const struct ks_world *world)
{
    if (world->group_count > 0)
        return false;
    ks_complain("there are no coordinations in %s", where(session));
    return true;
}

/* ---- status ---- */

enum ks_exit ks_run_status(struct ks_session *session)
{
    if (ks_flag(session, KS_WATCH))
        return ks_watch(session);
    const struct ks_world *world = ks_world_fetch(session, ks_namespace(session));
    if (!world)
        return KS_FAILED;
    struct ks_group_view **views =
        SW_ARENA_ARRAY(session->arena, world->group_count + 1, struct ks_group_view *);
    const struct ks_look look = {
        .now_us = ks_now_us(session),
        .is_coloured = session->is_coloured,
        .is_utf8 = session->is_utf8,
        .has_namespaces = ks_flag(session, KS_ALL_NAMESPACES),
    };
    const struct stepped **rollouts =
        SW_ARENA_ARRAY(session->arena, world->rollout_count + 1, const struct stepped *);
    enum ks_exit status = check_wanted(session, world);
    size_t count = 0, rollout_count = 0;

    for (size_t i = 0; i < world->group_count; i++)
        if (ks_is_wanted(session, coord_kind.kind, world->groups[i].c->meta.name))
            views[count++] = ks_view(session->arena, world, &world->groups[i]);
    for (size_t i = 0; i < world->rollout_count; i++)
        if (ks_is_wanted(session, step_kind.kind, world->rollouts[i]->meta.name))
            rollouts[rollout_count++] = world->rollouts[i];
    if (ks_flag(session, KS_OUTPUT)) {
        struct sw_json *json = ks_view_json(session->arena, views, count, look.now_us);
        sw_json_set(json, "rollouts",
                    ks_rollouts_json(session->arena, rollouts, rollout_count, look.now_us));
        ks_put(session->options->values[KS_OUTPUT], json, &session->out);
    } else if (world->group_count + world->rollout_count == 0) {
        ks_complain("there are no coordinations and no SteppedRollouts in %s", where(session));
    } else {
        ks_status_print(session->arena, views, count, rollouts, rollout_count, &look,
                        &session->out);
    }
    return status;
}

/* ---- plan ---- */

static const char *turn_note(const struct ks_world *world, const struct ks_forecast *forecast,
                             const struct ks_turn *turn)
{
    const struct sw_deployment *d = ks_world_deployment(world, forecast->namespace_, turn->name);
    const struct sw_condition *progressing =
        d ? sw_condition_get(&d->conditions, "Progressing") : NULL;

    if (turn->step == 0 && progressing &&
        strcmp(progressing->reason, "ProgressDeadlineExceeded") == 0)
        return "has failed";
    return turn->step == 0 ? "has its turn" : "";
}

static void add_plan_row(struct ks_session *session, struct ks_table *table,
                         const struct ks_forecast *forecast, bool is_first, const char *step,
                         const char *name, const char *note)
{
    const struct ks_cell cells[] = {
        {is_first ? forecast->namespace_ : "", KS_PLAIN},
        {is_first ? forecast->coordination : "", KS_PLAIN},
        {step, strcmp(step, "now") == 0 ? KS_CYAN : KS_PLAIN},
        {name, KS_PLAIN},
        {note, KS_YELLOW},
        {0},
        {0},
        {0},
        {0},
    };

    ks_table_add(table, ks_flag(session, KS_ALL_NAMESPACES) ? cells : cells + 1);
}

static void add_plan(struct ks_session *session, struct ks_table *table,
                     const struct ks_world *world, const struct ks_forecast *forecast)
{
    bool is_first = true;

    for (uint32_t i = 0; i < forecast->turn_count; i++, is_first = false) {
        const struct ks_turn *turn = &forecast->turns[i];
        add_plan_row(session, table, forecast, is_first,
                     turn->step == 0 ? "now" : sw_arena_printf(session->arena, "%u", turn->step),
                     turn->name, turn_note(world, forecast, turn));
    }
    for (uint32_t i = 0; i < forecast->left_count; i++, is_first = false) {
        const struct ks_left *left = &forecast->left[i];
        add_plan_row(session, table, forecast, is_first, "-", left->name,
                     left->reason[0] ? left->reason : forecast->still);
    }
    if (is_first)
        add_plan_row(session, table, forecast, true, "-", "-", "nobody waits");
}

static void plan_json(const struct ks_forecast *forecast, struct sw_json *json)
{
    sw_json_set_string(json, "namespace", forecast->namespace_);
    sw_json_set_string(json, "name", forecast->coordination);
    if (forecast->still[0])
        sw_json_set_string(json, "message", forecast->still);
    struct sw_json *turns = sw_json_set_array(json, "turns");
    for (uint32_t i = 0; i < forecast->turn_count; i++) {
        struct sw_json *turn = sw_json_append_object(turns);
        sw_json_set_string(turn, "name", forecast->turns[i].name);
        sw_json_set_int(turn, "step", forecast->turns[i].step);
    }
    struct sw_json *left = sw_json_set_array(json, "left");
    for (uint32_t i = 0; i < forecast->left_count; i++) {
        struct sw_json *one = sw_json_append_object(left);
        sw_json_set_string(one, "name", forecast->left[i].name);
        if (forecast->left[i].reason[0])
            sw_json_set_string(one, "message", forecast->left[i].reason);
    }
}

enum ks_exit ks_run_plan(struct ks_session *session)
{
    static const char *const heads[] = {"NAMESPACE",  "COORDINATION", "STEP",
                                        "DEPLOYMENT", "NOTE",         NULL};
    const struct ks_world *world = ks_world_fetch(session, ks_namespace(session));

    if (!world)
        return KS_FAILED;
    struct ks_table *table =
        ks_table_new(session->arena, ks_flag(session, KS_ALL_NAMESPACES) ? heads : heads + 1);
    struct sw_json *json = sw_json_object(session->arena);
    sw_json_set_string(json, "kind", "SlipwayPlan");
    struct sw_json *items = sw_json_set_array(json, "items");
    enum ks_exit status = check_wanted(session, world);
    const char *namespace_ = "";
    for (size_t i = 0; i < world->group_count; i++) {
        uint32_t count;
        if (strcmp(world->groups[i].c->meta.namespace_, namespace_) == 0)
            continue;
        namespace_ = world->groups[i].c->meta.namespace_;
        const struct ks_forecast *forecasts =
            ks_forecast(session->arena, world, namespace_, ks_now_us(session), &count);
        for (uint32_t k = 0; k < count; k++) {
            if (!ks_is_wanted(session, coord_kind.kind, forecasts[k].coordination))
                continue;
            add_plan(session, table, world, &forecasts[k]);
            plan_json(&forecasts[k], sw_json_append_object(items));
        }
    }
    if (ks_flag(session, KS_OUTPUT))
        ks_put(session->options->values[KS_OUTPUT], json, &session->out);
    else if (!says_nothing(session, world) && ks_table_rows(table) > 0)
        ks_table_print(table, session->is_coloured, 0, &session->out);
    return status;
}

/* ---- why ---- */

static void print_why(struct ks_session *session, const struct ks_why *why)
{
    struct sw_buf *out = &session->out;
    char age[KS_DURATION_SIZE];

    ks_paint(out, why->headline, KS_BOLD, session->is_coloured);
    if (why->since_us) {
        ks_duration(ks_now_us(session) - why->since_us, age);
        sw_buf_printf(out, ", since %s", age);
    }
    sw_buf_puts(out, "\n");
    for (size_t i = 0; why->lines[i]; i++)
        sw_buf_printf(out, "  %s\n", why->lines[i]);
    if (why->held_by[0])
        sw_buf_printf(out, "  held by %s\n", why->held_by);
    if (why->released_by[0])
        sw_buf_printf(out, "  released by %s\n", why->released_by);
    if (why->advice[0]) {
        sw_buf_puts(out, "  ");
        ks_paint(out, why->advice, KS_CYAN, session->is_coloured);
        sw_buf_puts(out, "\n");
    }
}

static struct sw_json *why_json(struct ks_session *session, const struct sw_object *object,
                                const struct ks_why *why)
{
    struct sw_json *json = sw_json_object(session->arena);
    char since[SW_TIME_SIZE];

    sw_json_set_string(json, "kind", "SlipwayReason");
    sw_json_set_string(json, "namespace", object->namespace_);
    sw_json_set_string(json, "name", object->name);
    sw_json_set_string(json, "reason", why->reason);
    sw_json_set_string(json, "message", why->headline);
    struct sw_json *lines = sw_json_set_array(json, "details");
    for (size_t i = 0; why->lines[i]; i++)
        sw_json_append_string(lines, why->lines[i]);
    if (why->advice[0])
        sw_json_set_string(json, "advice", why->advice);
    if (why->since_us) {
        sw_time_format(why->since_us, since);
        sw_json_set_string(json, "since", since);
    }
    if (why->position >= 0)
        sw_json_set_int(json, "position", why->position);
    sw_json_set_string(json, "heldBy", why->held_by);
    sw_json_set_string(json, "releasedBy", why->released_by);
    sw_json_set_string(json, "coordinatedBy", why->coordinations);
    return json;
}

/* A Deployment; else the SteppedRollout of that name, or the one whose target that is. */
static enum ks_exit find(struct ks_session *session, const struct ks_world *world,
                         const struct sw_deployment **ret_deployment,
                         const struct stepped **ret_rollout)
{
    const char *namespace_ = ks_namespace(session), *name = session->options->names[0];
    const char *kind = session->options->kinds[0];
    bool is_any = !kind[0];

    *ret_deployment = NULL;
    *ret_rollout = NULL;
    if (is_any || strcmp(kind, "Deployment") == 0)
        *ret_deployment = ks_world_deployment(world, namespace_, name);
    else if (strcmp(kind, step_kind.kind) != 0)
        *ret_rollout = ks_rollout_on(world, namespace_, kind, name);
    if (!*ret_deployment && (is_any || strcmp(kind, step_kind.kind) == 0))
        *ret_rollout = ks_rollout_named(world, namespace_, name);
    if (*ret_deployment || *ret_rollout)
        return KS_DONE;
    if (is_any || strcmp(kind, "Deployment") == 0 || strcmp(kind, step_kind.kind) == 0)
        ks_complain("there is no %s %s in %s", is_any ? "Deployment" : kind, name, where(session));
    else
        ks_complain("no SteppedRollout of %s has the %s %s for its target: slipway does not hold "
                    "it",
                    where(session), kind, name);
    return KS_NOT_FOUND;
}

enum ks_exit ks_run_why(struct ks_session *session)
{
    const struct ks_world *world = ks_world_fetch(session, ks_namespace(session));
    const struct sw_deployment *d;
    const struct stepped *r;
    struct ks_why why = {.held_by = "", .released_by = "", .coordinations = "", .position = -1};

    if (!world)
        return KS_FAILED;
    enum ks_exit status = find(session, world, &d, &r);
    if (status != KS_DONE)
        return status;
    if (!d && strcmp(r->target_kind, "Deployment") == 0)
        d = ks_world_deployment(world, r->meta.namespace_, r->target_name);
    if (d && !r)
        ks_why(session->arena, world, d, ks_now_us(session), &why);
    else
        ks_rollout_why(session->arena, r, ks_now_us(session), &why);
    if (d && r) {
        why.held_by = ks_annotation(&d->meta, SW_HELD_BY);
        why.released_by = ks_annotation(&d->meta, SW_RELEASED_BY);
        why.coordinations = ks_annotation(&d->meta, SW_COORDINATED_BY);
    }
    if (!ks_flag(session, KS_OUTPUT)) {
        print_why(session, &why);
        return KS_DONE;
    }
    struct sw_json *json = why_json(session, r ? &r->meta : &d->meta, &why);
    if (d)
        sw_json_set_bool(json, "paused", d->is_paused);
    r = r ? r : ks_rollout_on(world, d->meta.namespace_, "Deployment", d->meta.name);
    if (r)
        sw_json_set(json, "rollout",
                    (struct sw_json *)(uintptr_t)sw_json_element(
                        ks_rollouts_json(session->arena, &r, 1, ks_now_us(session)), 0));
    ks_put(session->options->values[KS_OUTPUT], json, &session->out);
    return KS_DONE;
}
