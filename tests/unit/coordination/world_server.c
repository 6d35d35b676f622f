/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API server: every write makes a new version; a precondition holds if it names the stored one.
 * Admission is asked with the stored object and applied in the same step, as the API server does it
 * by asking again when the object has changed.
 */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slipway/json.h>

static const char *text_of(struct world *world, uint64_t number)
{
    return sw_arena_printf(world->arena, "%llu", (unsigned long long)number);
}

static const char *keep(struct world *world, const char *text)
{
    return text && text[0] ? sw_arena_strdup(world->arena, text) : "";
}

/* ---- versions ---- */

static void annotate(struct sw_label *list, uint32_t *count, const char *key, const char *value)
{
    if (value[0])
        list[(*count)++] = (struct sw_label){key, value};
}

static const char *const label_keys[GROUPS_MAX] = {"g0", "g1", "g2"};

static void set_labels(struct world *world, unsigned labels, struct sw_labels *to)
{
    struct sw_label *list = SW_ARENA_ARRAY(world->arena, GROUPS_MAX, struct sw_label);
    uint32_t count = 0;

    for (int g = 0; g < GROUPS_MAX; g++)
        if (labels & 1U << g)
            list[count++] = (struct sw_label){label_keys[g], "1"};
    *to = (struct sw_labels){list, count};
}

/* Sorted by key, as the decoder delivers them. */
static void set_annotations(struct world *world, const struct deployment *d,
                            const struct submission *what, struct sw_labels *to)
{
    struct sw_label *list = SW_ARENA_ARRAY(world->arena, 10, struct sw_label);
    uint32_t count = 0;

    if (d->revision > 0)
        annotate(list, &count, COORD_REVISION, text_of(world, (uint64_t)d->revision));
    annotate(list, &count, SW_COORDINATED_BY, what->coordinated_by);
    annotate(list, &count, SW_FENCE, what->fence);
    annotate(list, &count, SW_HELD_BY, what->held_by);
    annotate(list, &count, SW_HOLD_BY_USER, what->hold);
    annotate(list, &count, SW_IGNORE, what->ignore);
    annotate(list, &count, SW_ORDER, what->order);
    annotate(list, &count, SW_RELEASED_BY, what->released_by);
    annotate(list, &count, SW_SKIP, what->skip);
    annotate(list, &count, SW_STEPPED_BY, what->stepped_by);
    *to = (struct sw_labels){list, count};
}

static void set_conditions(struct world *world, const struct deployment *d,
                           struct sw_conditions *to)
{
    struct sw_condition *list = SW_ARENA_ARRAY(world->arena, 2, struct sw_condition);
    uint32_t count = 0;

    if (d->observed_generation > 0)
        list[count++] = (struct sw_condition){
            .type = "Available",
            .status = d->is_available ? "True" : "False",
            .reason = d->is_available ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
            .message = "",
        };
    if (d->progressing_reason)
        list[count++] = (struct sw_condition){
            .type = "Progressing",
            .status = d->progressing_status,
            .reason = d->progressing_reason,
            .message = "",
            .last_update_us = d->progressing_us,
        };
    *to = (struct sw_conditions){list, count};
}

static void view_deployment(struct world *world, const struct deployment *d,
                            const struct submission *what, struct sw_deployment *view)
{
    *view = (struct sw_deployment){
        .meta =
            {
                .kind = &sw_kind_deployment,
                .namespace_ = NAMESPACE,
                .name = d->name,
                .uid = text_of(world, d->uid),
                .resource_version = text_of(world, world->versions),
                .generation = d->generation,
                .created_us = d->created_us,
                .owner_uid = "",
            },
        .replicas = d->replicas,
        .is_paused = what->is_paused,
        .template_hash = {.high = 7, .low = (uint64_t)what->template_ + 1},
        .strategy = d->is_recreate ? "Recreate" : "RollingUpdate",
        .progress_deadline_seconds = d->deadline_s,
        .observed_generation = d->observed_generation,
        .status_replicas = d->s_replicas,
        .updated_replicas = d->s_updated,
        .ready_replicas = d->s_available,
        .available_replicas = d->s_available,
    };
    set_labels(world, what->labels, &view->meta.labels);
    set_annotations(world, d, what, &view->meta.annotations);
    set_conditions(world, d, &view->conditions);
}

static void append(struct version **now, struct version *version)
{
    if (*now)
        (*now)->next = version;
    *now = version;
}

struct submission world_submission(const struct deployment *d)
{
    return (struct submission){
        .template_ = d->template_,
        .is_paused = d->is_paused,
        .labels = d->labels,
        .held_by = d->held_by,
        .released_by = d->released_by,
        .coordinated_by = d->coordinated_by,
        .stepped_by = d->stepped_by,
        .fence = d->fence,
        .hold = d->hold,
        .ignore = d->ignore,
        .skip = d->skip,
        .order = d->order,
    };
}

void world_store_deployment(struct world *world, struct deployment *d, bool is_spec_changed)
{
    struct version *version = SW_ARENA_NEW(world->arena, struct version);
    struct submission what = world_submission(d);

    world->versions++;
    if (is_spec_changed)
        d->generation++;
    version->number = world->versions;
    version->exists = true;
    version->template_ = d->template_;
    version->needs_rollout = world_needs_rollout(d);
    version->has_begun = d->has_begun;
    view_deployment(world, d, &what, &version->d);
    append(&d->now, version);
}

void world_delete_deployment(struct world *world, struct deployment *d)
{
    struct version *version = SW_ARENA_NEW(world->arena, struct version);

    version->number = ++world->versions;
    append(&d->now, version);
    d->exists = false;
    d->is_users_pause = d->is_references = d->has_slipped = d->has_begun = false;
    d->has_passed = false;
    d->c_exists = d->is_mid = false;
    memset(d->pods, 0, sizeof d->pods);
    memset(d->ready, 0, sizeof d->ready);
    memset(d->has_set, 0, sizeof d->has_set);
    d->newest = -1;
    d->terminating = 0;
}

void world_store_group(struct world *world, struct group_object *g)
{
    struct version *version = SW_ARENA_NEW(world->arena, struct version);
    struct coordination *c = &version->c;

    version->number = ++world->versions;
    version->exists = g->exists;
    *c = g->status;
    c->meta = (struct sw_object){
        .kind = &coord_kind,
        .namespace_ = NAMESPACE,
        .name = g->name,
        .uid = text_of(world, g->uid),
        .resource_version = text_of(world, version->number),
        .generation = g->generation,
        .owner_uid = "",
    };
    if (g->skips_guard) {
        struct sw_label *list = SW_ARENA_ARRAY(world->arena, 1, struct sw_label);
        list[0] = (struct sw_label){COORD_SKIP_GUARD, "true"};
        c->meta.annotations = (struct sw_labels){list, 1};
    }
    c->min_ready_seconds = g->min_ready_s;
    c->max_active = g->max_active;
    c->is_suspended = g->is_suspended;
    c->availability_guard = g->has_guard ? "Enforce" : "Off";
    c->at_rest = g->is_running ? "Running" : "Paused";
    c->failure_policy = g->skips_failed ? "Skip" : "Stop";
    if (g->exists && !g->is_invalid) {
        static struct sw_selector *parsed[GROUPS_MAX + 1];
        int which = g->selects ? __builtin_ctz(g->selects) : GROUPS_MAX;
        char why[256];
        const char *text = which < GROUPS_MAX ? label_keys[which] : "";
        if (!parsed[which] && sw_selector_parse_text(text, &parsed[which], why, sizeof why))
            world_fail(world, "selector: %s", why);
        version->selector = parsed[which];
    }
    append(&g->now, version);
}

void world_forget_reference(struct world *world)
{
    for (int i = 0; i < world->config.deployments; i++)
        world->deployments[i].is_references = false;
}

bool world_selects(const struct world *world, const struct group_object *g,
                   const struct deployment *d)
{
    (void)world;
    if (!g->exists || g->is_invalid || !d->exists || strcmp(d->ignore, "true") == 0)
        return false;
    return g->selects == 0 || (g->selects & d->labels);
}

/* ---- our writes ---- */

static struct deployment *deployment_named(struct world *world, const char *name)
{
    for (int i = 0; i < world->config.deployments; i++)
        if (strcmp(world->deployments[i].name, name) == 0)
            return &world->deployments[i];
    abort();
}

static struct group_object *group_named(struct world *world, const char *name)
{
    for (int i = 0; i < world->config.groups; i++)
        if (strcmp(world->groups[i].name, name) == 0)
            return &world->groups[i];
    abort();
}

static bool is_stored(const struct version *now, const char *resource_version)
{
    char text[24];

    snprintf(text, sizeof text, "%llu", (unsigned long long)now->number);
    return strcmp(text, resource_version) == 0;
}

void world_store_state(struct world *world, struct deployment *d, const struct hold_state *to)
{
    bool is_spec_changed = d->is_paused != to->is_paused;

    d->is_paused = to->is_paused;
    d->held_by = keep(world, to->held_by);
    d->released_by = keep(world, to->released_by);
    d->coordinated_by = keep(world, to->marks[0]);
    d->stepped_by = keep(world, to->marks[1]);
    d->fence = keep(world, to->fence);
    d->is_users_pause = d->is_paused && !d->held_by[0];
    d->is_references = d->is_references && d->is_users_pause;
    d->is_forged = d->is_forged && d->released_by[0];
    d->has_passed = d->has_passed && d->released_by[0];
    world_store_deployment(world, d, is_spec_changed);
}

static void apply_hold(struct world *world, struct request *request)
{
    const struct coord_action *action = request->action;
    struct deployment *d = deployment_named(world, action->name);
    bool is_checked = !(world->config.mutation == RELEASE_WITHOUT_PRECONDITION &&
                        action->verb == SW_HOLD_RELEASE);

    request->outcome = SW_NOT_FOUND;
    if (!d->exists)
        return;
    if (world->config.mutation == FENCE_LEFT_OUT && action->verb == SW_HOLD_FENCE) {
        request->outcome = SW_OK;
        return;
    }
    request->outcome = SW_CONFLICT;
    if (is_checked && !is_stored(d->now, action->resource_version))
        return;
    const struct sw_hold_request what = {
        .verb = action->verb,
        .owners = action->owners,
        .marks = request->marks,
        .fence = request->fence,
    };
    struct hold_state from, to;
    hold_state_of(&d->now->d, &from);
    enum hold_outcome outcome =
        hold_apply(world->arena, &from, &what, COORD_POLICY, &request->others, &to);
    request->outcome = outcome == HOLD_REFUSED ? SW_HELD : SW_UNCHANGED;
    request->version = d->now;
    if (outcome != HOLD_CHANGES)
        return;
    if (d->is_users_pause && action->verb != SW_HOLD_ADOPT && (!to.is_paused || to.held_by[0]))
        world_fail(world, "%s: a write of ours undoes or adopts a user's pause", d->name);
    if (action->verb == SW_HOLD_RELEASE) {
        /* (It may have come under one more coordination since.) */
        bool has_right = strcmp(hold_list_union(world->arena, from.released_by, action->owners),
                                hold_list_union(world->arena, from.released_by, "")) == 0;
        if (has_right && request->others.is_selected && from.is_paused &&
            hold_list_has_policy(from.held_by, "stepping") &&
            !hold_list_has_policy(from.held_by, COORD_POLICY))
            world_fail(world, "%s: we resume what another policy has paused", d->name);
        world_check_release(world, d);
        d->has_passed = false;
    }
    world_store_state(world, d, &to);
    world->writes++;
    world->releases += action->verb == SW_HOLD_RELEASE;
    request->outcome = SW_OK;
    request->version = d->now;
    world_say(world, "  stored: %s paused %d held-by '%s' released-by '%s' marks '%s'", d->name,
              d->is_paused, d->held_by, d->released_by, d->coordinated_by);
}

static const char *const *copy_names(struct world *world, const char *const *names, uint32_t count)
{
    const char **copy = SW_ARENA_ARRAY(world->arena, count + 1, const char *);

    for (uint32_t i = 0; i < count; i++)
        copy[i] = keep(world, names[i]);
    return copy;
}

void world_keep_status(struct world *world, const struct coord_status *from,
                       struct coordination *to)
{
    struct coord_entry *entries =
        SW_ARENA_ARRAY(world->arena, from->entry_count + 1, struct coord_entry);
    struct sw_condition *conditions =
        SW_ARENA_ARRAY(world->arena, from->condition_count + 1, struct sw_condition);

    for (uint32_t i = 0; i < from->entry_count; i++) {
        entries[i] = from->entries[i];
        entries[i].name = keep(world, entries[i].name);
        entries[i].message = keep(world, entries[i].message);
        entries[i].failed_template = keep(world, entries[i].failed_template);
    }
    for (uint32_t i = 0; i < from->condition_count; i++) {
        conditions[i] = from->conditions[i];
        conditions[i].reason = keep(world, conditions[i].reason);
        conditions[i].message = keep(world, conditions[i].message);
    }
    to->active_deployments.at = copy_names(world, from->active, from->active_count);
    to->active_deployments.count = from->active_count;
    to->active_deployment = from->active_count > 0 ? to->active_deployments.at[0] : "";
    to->deployments.at = copy_names(world, from->deployments, from->deployment_count);
    to->deployments.count = from->deployment_count;
    to->states = (struct sw_list){entries, from->entry_count};
    to->selected = from->selected;
    to->pending = from->pending;
    to->is_truncated = from->is_truncated;
    to->turn = from->turn;
    to->observed_generation = from->observed_generation;
    to->conditions = (struct sw_conditions){conditions, from->condition_count};
}

/* "Once, those of its status that are paused without held-by are marked, then our status is
 * written." */
static void check_taken_over(struct world *world, const struct group_object *g)
{
    for (uint32_t i = 0; g->status.observed_generation == 0 && i < g->status.deployments.count; i++)
        for (int k = 0; k < world->config.deployments; k++) {
            const struct deployment *d = &world->deployments[k];
            if (strcmp(d->full, g->status.deployments.at[i]) == 0 && d->is_references &&
                world_selects(world, g, d))
                world_fail(world, "%s has our status before %s is marked", g->name, d->name);
        }
}

static void apply_status(struct world *world, struct request *request)
{
    const struct coord_action *action = request->action;
    struct group_object *g = group_named(world, action->name);
    bool is_checked = !(world->config.mutation == RECORD_WITHOUT_PRECONDITION && action->is_record);

    request->outcome = SW_NOT_FOUND;
    if (!g->exists)
        return;
    request->outcome = SW_CONFLICT;
    if (is_checked && !is_stored(g->now, action->resource_version))
        return;
    if (action->status->has_conditions_only) {
        g->status.conditions = request->status->conditions;
    } else {
        check_taken_over(world, g);
        g->status = *request->status;
    }
    world->writes++;
    world->records += action->is_record;
    for (uint32_t i = 0; i < action->begun_count; i++)
        deployment_named(world, action->begun[i])->has_begun = true;
    world_store_group(world, g);
    request->outcome = SW_OK;
    request->version = g->now;
    world_say(world, "  stored: %s %s turn %lld active %s%s, %d waiting", g->name,
              action->is_record ? "record" : "status", (long long)g->status.turn,
              g->status.active_deployment[0] ? g->status.active_deployment : "-",
              g->status.active_deployments.count > 1 ? " and others" : "", g->status.pending);
}

static void apply_get(struct world *world, struct request *request)
{
    const char *name = request->action->name;
    bool is_group = request->action->type == COORD_GET_COORDINATION;
    struct version *now =
        is_group ? group_named(world, name)->now : deployment_named(world, name)->now;

    if (!is_group && world->config.mutation == GONE_BY_CACHE && request->leader >= 0)
        now = world->leaders[request->leader].deployments[deployment_named(world, name)->index];
    request->version = now;
    request->outcome = now && now->exists ? SW_OK : SW_NOT_FOUND;
}

static bool refuse(struct request *request, bool is_answered, const char *reason,
                   const char *message)
{
    request->outcome = is_answered ? SW_REFUSED : SW_UNKNOWN;
    request->reason = reason;
    request->message = message;
    return true;
}

/* Each of them as the API server says it, and as src/runtime/write.c reads it. */
static bool is_refused(struct world *world, struct request *request)
{
    const struct coord_action *action = request->action;
    uint64_t random = (world->runs * 31 + action->number) * UINT64_C(0x9e3779b97f4a7c15) >> 40;

    if (world->config.is_small && action->type == COORD_STATUS &&
        action->status->entry_count > action->status->active_count)
        return random % 2 ? refuse(request, true, "RequestEntityTooLarge", "limit is 3145728")
                          : refuse(request, false, "", "etcdserver: request is too large");
    if (!world->config.is_refusing || world->is_ending || random % 8 > 1)
        return false;
    return random % 8 ? refuse(request, true, "Forbidden", "not yet")
                      : refuse(request, false, "InternalError", "no leader");
}

void world_apply_request(struct world *world, struct request *request)
{
    if (is_refused(world, request)) {
        request->state = ANSWERED;
        world_say(world, "  refused: %s: %s", request->action->name, request->message);
        return;
    }
    switch (request->action->type) {
    case COORD_HOLD:
        apply_hold(world, request);
        break;
    case COORD_STATUS:
        apply_status(world, request);
        break;
    case COORD_GET_DEPLOYMENT:
    case COORD_GET_COORDINATION:
        apply_get(world, request);
        break;
    }
    request->state = ANSWERED;
    world_say(world, "  %s of %s: %s", "request", request->action->name,
              sw_outcome_text(request->outcome));
}

/* ---- the wish of a person, as module pausing carries it out ---- */

static struct sw_opinion opinion_of(struct world *world, const struct sw_object *object,
                                    const struct sw_object *old, bool is_review,
                                    struct version *const seen[GROUPS_MAX])
{
    struct coord_seen_group groups[GROUPS_MAX];
    struct sw_opinion opinion = {.owners = "", .words = ""};
    struct sw_question question = {
        .object = object,
        .old = old,
        .is_review = is_review,
        .arena = world->arena,
    };
    size_t count = 0;

    for (int g = 0; g < world->config.groups; g++)
        if (seen[g] && seen[g]->exists)
            groups[count++] = (struct coord_seen_group){&seen[g]->c, seen[g]->selector, ""};
    coord_opinion(groups, count, world->rests_running, &question, &opinion);
    return opinion;
}

struct sw_opinion world_coordination_of(struct world *world, const struct sw_object *object,
                                        const struct sw_object *old)
{
    struct version *seen[GROUPS_MAX];

    for (int g = 0; g < world->config.groups; g++)
        seen[g] = world->groups[g].now;
    return opinion_of(world, object, old, old != NULL, seen);
}

bool world_carry_wish(struct world *world, struct deployment *d)
{
    bool is_held = hold_list_has(d->held_by, "user");
    struct hold_state from, to;

    if (!d->exists || is_held == (d->hold[0] != '\0'))
        return false;
    const struct sw_hold_request what = {
        .verb = is_held ? SW_HOLD_FREE : SW_HOLD_PAUSE,
        .owners = "user",
    };
    struct sw_opinion others = world_coordination_of(world, &d->now->d.meta, NULL);
    others = world_all(world, d, &d->now->d.meta, &others);
    hold_state_of(&d->now->d, &from);
    if (hold_apply(world->arena, &from, &what, "user", &others, &to) != HOLD_CHANGES)
        return false;
    world_store_state(world, d, &to);
    world_say(world, "pausing: %s paused %d held-by '%s' released-by '%s'", d->name, d->is_paused,
              d->held_by, d->released_by);
    return true;
}

/* ---- admission ---- */

static const char **annotation_slot(struct submission *what, const char *path)
{
    if (strstr(path, "held-by"))
        return &what->held_by;
    if (strstr(path, "released-by"))
        return &what->released_by;
    if (strstr(path, "coordinated-by"))
        return &what->coordinated_by;
    if (strstr(path, "stepped-by"))
        return &what->stepped_by;
    return strstr(path, "fence") ? &what->fence : NULL;
}

static void apply_patch(struct world *world, struct submission *what, const struct sw_json *patch)
{
    for (size_t i = 0; i < sw_json_size(patch); i++) {
        const struct sw_json *operation = sw_json_element(patch, i);
        const char *path = sw_json_get_string(operation, "path");
        const char **slot = annotation_slot(what, path);
        bool is_removal = strcmp(sw_json_get_string(operation, "op"), "remove") == 0;
        if (strcmp(path, "/spec/paused") == 0)
            what->is_paused = sw_json_get_bool(operation, "value", false);
        else if (slot)
            *slot = is_removal ? "" : keep(world, sw_json_get_string(operation, "value"));
    }
}

/* The mutation in which a replica believes its cached status. */
static bool is_active_by_cache(const struct world *world, int webhook, const struct deployment *d)
{
    for (int g = 0; g < world->config.groups; g++) {
        const struct version *seen = world->webhooks[webhook][g];
        if (seen && seen->exists && strcmp(seen->c.active_deployment, d->full) == 0)
            return true;
    }
    return false;
}

static void review(struct world *world, struct deployment *d, struct submission *what, int webhook)
{
    struct sw_deployment now;
    const enum mutation mutation = world->config.mutation;

    if (mutation == ANYBODY_IS_US ||
        (mutation == WEBHOOK_BY_CACHED_STATUS && is_active_by_cache(world, webhook, d)))
        return;
    view_deployment(world, d, what, &now);
    struct sw_review review = {
        .operation = d->exists ? SW_OPERATION_UPDATE : SW_OPERATION_CREATE,
        .namespace_ = NAMESPACE,
        .name = d->name,
        .username = "somebody",
        .field_manager = "kubectl",
        .object = &now.meta,
        .old = d->exists ? &d->now->d.meta : NULL,
        .has_annotations = now.meta.annotations.count > 0,
        .arena = world->arena,
    };
    struct sw_opinion opinion =
        opinion_of(world, review.object, review.old, true, world->webhooks[webhook]);
    struct sw_review_answer answer = {0};
    opinion = world_all(world, d, review.object, &opinion);
    if (mutation == WEBHOOK_ABSENT_MARKS && !opinion.is_selected)
        return;
    const char *forged = what->released_by;
    hold_review(&review, &opinion, false, &answer);
    if (answer.patch)
        apply_patch(world, what, answer.patch);
    if (mutation == WEBHOOK_WITHOUT_STRIP && forged[0])
        what->released_by = forged;
}

static bool is_marked_by_all(const struct world *world, const struct deployment *d)
{
    for (int g = 0; g < world->config.groups; g++)
        if (world_selects(world, &world->groups[g], d) &&
            !hold_list_has(d->coordinated_by, world->groups[g].name))
            return false;
    return true;
}

void world_submit(struct world *world, struct deployment *d, struct submission what, int webhook,
                  bool is_reached)
{
    bool is_new = !d->exists;
    bool was_marked = d->exists && is_marked_by_all(world, d);

    if (is_new) {
        d->uid = ++world->uids;
        d->created_us = world_wall_us(world) / 1000000 * 1000000;
        d->generation = 0;
        d->revision = 0;
        d->observed_generation = 0;
        d->s_replicas = d->s_updated = d->s_available = 0;
        d->progressing_reason = NULL;
        d->is_available = false;
    }
    if (is_reached)
        review(world, d, &what, webhook);
    bool is_template_new = is_new || d->template_ != what.template_;
    bool is_started = is_new || is_template_new || (d->is_paused && !what.is_paused);
    bool is_spec_changed = is_template_new || d->is_paused != what.is_paused;
    bool is_label_new = d->labels != what.labels || strcmp(d->ignore, what.ignore) != 0;
    if (what.released_by[0] && (is_new || strcmp(what.released_by, d->released_by) != 0)) {
        d->is_forged = true;
        d->has_passed |= !is_reached;
    }
    d->exists = true;
    d->template_ = what.template_;
    d->is_paused = what.is_paused;
    d->labels = what.labels;
    d->held_by = keep(world, what.held_by);
    d->released_by = keep(world, what.released_by);
    d->coordinated_by = keep(world, what.coordinated_by);
    d->stepped_by = keep(world, what.stepped_by);
    d->fence = keep(world, what.fence);
    d->hold = keep(world, what.hold);
    d->ignore = keep(world, what.ignore);
    d->skip = keep(world, what.skip);
    d->order = keep(world, what.order);
    d->is_users_pause = d->is_paused && !d->held_by[0];
    d->is_references = false;
    if (is_started && (!is_reached || !was_marked || d->has_passed) && !d->is_paused)
        d->has_slipped = true;
    if (is_label_new && d->released_by[0])
        d->is_forged = true; /* it brings a right from elsewhere */
    if (is_label_new && (!d->is_paused || (d->c_exists && !d->c_paused)))
        d->has_slipped = true;
    world_store_deployment(world, d, is_spec_changed);
    world_say(world, "user: %s template %d paused %d labels %x held-by '%s' released-by '%s'%s",
              d->name, d->template_, d->is_paused, d->labels, d->held_by, d->released_by,
              is_reached ? "" : " (past the webhook)");
}
