/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status that slipway writes says who rolls and who waits; the Deployments say how far they
 * are.
 */
#include "view.h"

#include <stdlib.h>
#include <string.h>

#include <slipway/json.h>

#include "base/buf.h"
#include "base/time.h"
#include "base/util.h"
#include "text.h"

/* ---- the state ---- */

static const struct {
    const char *text;
    enum ks_colour colour;
} states[] = {
    [KS_IDLE] = {"Idle", KS_DIM},          [KS_ROLLING] = {"Rolling", KS_CYAN},
    [KS_PENDING] = {"Pending", KS_CYAN},   [KS_SUSPENDED] = {"Suspended", KS_YELLOW},
    [KS_BLOCKED] = {"Blocked", KS_YELLOW}, [KS_FAILING] = {"Failed", KS_RED},
    [KS_BROKEN] = {"Error", KS_RED},       [KS_UNSEEN] = {"Unseen", KS_RED},
};

const char *ks_state_text(enum ks_state state)
{
    return states[state].text;
}

static const struct sw_condition *degraded(const struct coordination *c)
{
    const struct sw_condition *condition = sw_condition_get(&c->conditions, "Degraded");

    return condition && strcmp(condition->status, "True") == 0 ? condition : NULL;
}

enum ks_state ks_state_of(const struct coordination *c)
{
    const struct sw_condition *why = degraded(c);
    const char *reason = why ? why->reason : "";

    if (c->observed_generation < c->meta.generation)
        return KS_UNSEEN;
    if (strcmp(reason, "Error") == 0 || strcmp(reason, "InvalidSelector") == 0 ||
        strcmp(reason, "TakeOverFailed") == 0)
        return KS_BROKEN;
    if (strcmp(reason, "RolloutFailed") == 0 && strcmp(c->failure_policy, "Skip") != 0)
        return KS_FAILING;
    if (c->is_suspended)
        return KS_SUSPENDED;
    if (strcmp(reason, "PeerUnavailable") == 0 || strcmp(reason, "PausedByUser") == 0)
        return KS_BLOCKED;
    if (c->active_deployment[0] || c->active_deployments.count > 0)
        return KS_ROLLING;
    return c->pending > 0 ? KS_PENDING : KS_IDLE;
}

/* ---- members ---- */

static int compare_positions(const void *a, const void *b)
{
    const struct ks_member_view *x = a, *y = b;
    uint32_t at_x = x->position < 0 ? UINT32_MAX : (uint32_t)x->position;
    uint32_t at_y = y->position < 0 ? UINT32_MAX : (uint32_t)y->position;

    return at_x != at_y ? (at_x < at_y ? -1 : 1) : strcmp(x->name, y->name);
}

static void look_at(const struct ks_world *world, const struct ks_group *group,
                    const struct coord_entry *entry, struct ks_member_view *view)
{
    const char *name = ks_bare_name(entry->name);
    const struct sw_deployment *d = ks_world_deployment(world, group->c->meta.namespace_, name);

    *view = (struct ks_member_view){
        .name = name,
        .position = entry->position,
        .since_us = entry->position == 0  ? entry->started_us
                    : entry->position > 0 ? entry->pending_since_us
                                          : 0,
        .message = entry->message,
    };
    if (d) {
        view->is_known = true;
        view->done = ks_done(d);
        view->want = d->replicas;
    }
}

struct ks_group_view *ks_view(struct sw_arena *arena, const struct ks_world *world,
                              const struct ks_group *group)
{
    struct ks_group_view *view = SW_ARENA_NEW(arena, struct ks_group_view);
    const struct coordination *c = group->c;
    const struct coord_entry *entries = c->states.at;
    struct ks_member_view *members =
        SW_ARENA_ARRAY(arena, c->states.count + 1, struct ks_member_view);
    const struct sw_condition *why = degraded(c);

    *view = (struct ks_group_view){
        .namespace_ = c->meta.namespace_,
        .name = c->meta.name,
        .state = ks_state_of(c),
        .reason = why ? why->reason : "",
        .message = why ? why->message : "",
        .is_suspended = c->is_suspended,
        .is_truncated = c->is_truncated,
        .max_active = c->max_active,
        .selected = c->selected,
        .pending = c->pending,
        .members = members,
    };
    for (uint32_t i = 0; i < c->states.count; i++) {
        if (entries[i].position < 0 && !entries[i].message[0])
            continue;
        look_at(world, group, &entries[i], &members[view->member_count++]);
        view->active += entries[i].position == 0;
    }
    qsort(members, view->member_count, sizeof(*members), compare_positions);
    if (view->state == KS_SUSPENDED) {
        view->reason = "Suspended";
        view->message = "nobody new starts until it is resumed";
    } else if (view->state == KS_UNSEEN) {
        view->reason = "NotObserved";
        view->message = "slipway has not looked at it since it was last changed; if that lasts: "
                        "kubectl slipway doctor";
    }
    return view;
}

/* ---- the table ---- */

struct printer {
    struct sw_arena *arena;
    struct ks_table *table;
    const struct ks_look *look;
};

static void add_row(struct printer *p, const struct ks_cell *cells)
{
    ks_table_add(p->table, p->look->has_namespaces ? cells : cells + 1);
}

static const char *duration(struct printer *p, int64_t since_us)
{
    char *text = sw_arena_alloc(p->arena, KS_DURATION_SIZE);

    if (!since_us)
        return "-";
    ks_duration(p->look->now_us - since_us, text);
    return text;
}

static const char *bar(struct printer *p, const struct ks_member_view *member)
{
    char *text = sw_arena_alloc(p->arena, KS_BAR_SIZE);

    if (!member->is_known)
        return "-";
    ks_bar(member->done, member->want, p->look->is_utf8, text);
    return text;
}

/* The group's own columns stand in its first row. */
static void begin_row(const struct ks_group_view *view, bool is_first, struct ks_cell *cells)
{
    cells[0] = (struct ks_cell){is_first ? view->namespace_ : "", KS_PLAIN};
    cells[1] = (struct ks_cell){is_first ? view->name : "", KS_PLAIN};
    cells[2] =
        (struct ks_cell){is_first ? states[view->state].text : "", states[view->state].colour};
}

static void add_member(struct printer *p, const struct ks_group_view *view, uint32_t at)
{
    const struct ks_member_view *member = &view->members[at];
    bool has_turn = member->position == 0, waits = member->position > 0;
    struct ks_cell cells[KS_COLUMNS_MAX] = {0};

    begin_row(view, at == 0, cells);
    cells[3].text = has_turn ? "now"
                    : waits  ? sw_arena_printf(p->arena, "%d", member->position)
                             : "-";
    cells[3].colour = has_turn ? KS_CYAN : KS_PLAIN;
    cells[4] = (struct ks_cell){member->name, has_turn ? KS_BOLD : KS_PLAIN};
    cells[5] =
        (struct ks_cell){has_turn || waits ? bar(p, member) : "-", has_turn ? KS_GREEN : KS_DIM};
    cells[6] = (struct ks_cell){duration(p, member->since_us), KS_PLAIN};
    cells[7] = (struct ks_cell){member->message, KS_YELLOW};
    if (at == 0 && !member->message[0])
        cells[7].text = view->message;
    add_row(p, cells);
}

static void add_group(struct printer *p, const struct ks_group_view *view)
{
    int32_t rest = view->selected - view->pending - (int32_t)view->active;
    struct ks_cell cells[KS_COLUMNS_MAX] = {0};

    for (uint32_t i = 0; i < view->member_count; i++)
        add_member(p, view, i);
    if (view->member_count > 0 && view->members[0].message[0] && view->message[0]) {
        begin_row(view, false, cells);
        cells[7] = (struct ks_cell){view->message, KS_YELLOW};
        add_row(p, cells);
    }
    if (view->member_count > 0)
        return;
    begin_row(view, true, cells);
    cells[3].text = cells[5].text = cells[6].text = "-";
    cells[4] = (struct ks_cell){
        view->state == KS_UNSEEN ? "-" : sw_arena_printf(p->arena, "%d at rest", (int)rest),
        KS_DIM};
    cells[7] = (struct ks_cell){view->message, KS_YELLOW};
    add_row(p, cells);
}

void ks_view_print(struct sw_arena *arena, struct ks_group_view *const *views, size_t count,
                   const struct ks_look *look, struct sw_buf *out)
{
    static const char *const heads[] = {"NAMESPACE", "COORDINATION", "STATE", "TURN", "DEPLOYMENT",
                                        "PROGRESS",  "TIME",         "NOTE",  NULL};
    struct printer p = {
        .arena = arena,
        .table = ks_table_new(arena, look->has_namespaces ? heads : heads + 1),
        .look = look,
    };

    for (size_t i = 0; i < count; i++)
        add_group(&p, views[i]);
    ks_table_print(p.table, look->is_coloured, look->columns, out);
}

/* ---- JSON ---- */

static struct sw_json *member_json(struct sw_arena *arena, const struct ks_member_view *member,
                                   int64_t now_us)
{
    struct sw_json *json = sw_json_object(arena);
    char since[SW_TIME_SIZE];

    sw_json_set_string(json, "name", member->name);
    if (member->position > 0)
        sw_json_set_int(json, "position", member->position);
    if (member->since_us) {
        sw_time_format(member->since_us, since);
        sw_json_set_string(json, "since", since);
        sw_json_set_int(json, "seconds", SW_MAX(now_us - member->since_us, 0) / 1000000);
    }
    if (member->is_known) {
        sw_json_set_int(json, "available", member->done);
        sw_json_set_int(json, "replicas", member->want);
    }
    if (member->message[0])
        sw_json_set_string(json, "message", member->message);
    return json;
}

static void view_json(struct sw_arena *arena, const struct ks_group_view *view, int64_t now_us,
                      struct sw_json *json)
{
    sw_json_set_string(json, "namespace", view->namespace_);
    sw_json_set_string(json, "name", view->name);
    sw_json_set_string(json, "state", ks_state_text(view->state));
    if (view->reason[0])
        sw_json_set_string(json, "reason", view->reason);
    if (view->message[0])
        sw_json_set_string(json, "message", view->message);
    sw_json_set_bool(json, "suspended", view->is_suspended);
    sw_json_set_int(json, "maxActive", view->max_active);
    sw_json_set_int(json, "selected", view->selected);
    sw_json_set_int(json, "pending", view->pending);
    if (view->is_truncated)
        sw_json_set_bool(json, "truncated", true);
    struct sw_json *active = sw_json_set_array(json, "active");
    struct sw_json *waiting = sw_json_set_array(json, "waiting");
    struct sw_json *others = sw_json_set_array(json, "others");
    for (uint32_t i = 0; i < view->member_count; i++) {
        const struct ks_member_view *member = &view->members[i];
        sw_json_append(member->position == 0  ? active
                       : member->position > 0 ? waiting
                                              : others,
                       member_json(arena, member, now_us));
    }
}

struct sw_json *ks_view_json(struct sw_arena *arena, struct ks_group_view *const *views,
                             size_t count, int64_t now_us)
{
    struct sw_json *json = sw_json_object(arena);

    sw_json_set_string(json, "kind", "SlipwayStatus");
    struct sw_json *items = sw_json_set_array(json, "items");
    for (size_t i = 0; i < count; i++)
        view_json(arena, views[i], now_us, sw_json_append_object(items));
    return json;
}

/* ---- a line ---- */

const char *ks_view_line(struct sw_arena *arena, const struct ks_group_view *view)
{
    struct sw_buf text;
    const char *before = ": ";
    bool has_waiting = false;

    sw_buf_init(&text, SIZE_MAX);
    sw_buf_printf(&text, "%s/%s: %s", view->namespace_, view->name, ks_state_text(view->state));
    for (uint32_t i = 0; i < view->member_count && view->members[i].position >= 0; i++) {
        const struct ks_member_view *member = &view->members[i];
        if (member->position > 0 && !has_waiting)
            before = i > 0 ? "; then " : ": ";
        has_waiting |= member->position > 0;
        sw_buf_printf(&text, "%s%s", before, member->name);
        if (member->position == 0 && member->is_known)
            sw_buf_printf(&text, " %d/%d", (int)member->done, (int)member->want);
        before = ", ";
    }
    if (view->message[0])
        sw_buf_printf(&text, " (%s)", view->message);
    const char *line = sw_arena_strdup(arena, text.bytes);
    sw_buf_done(&text);
    return line;
}
