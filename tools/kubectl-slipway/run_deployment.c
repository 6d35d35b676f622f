/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold, release, skip, restart: what a person writes on a Deployment.
 */
#include <string.h>

#include <slipway/arbiter.h>
#include <slipway/json.h>

#include "base/time.h"
#include "base/util.h"
#include "edit.h"
#include "run.h"
#include "session.h"
#include "world.h"

#define RESTARTED_AT "kubectl.kubernetes.io/restartedAt"

struct work {
    struct ks_session *session;
    enum ks_command_id command;
    const char *reason;           /* of hold */
    char now[SW_TIME_SIZE];       /* of restart */
    const struct ks_world *world; /* of skip */
    const char *name;             /* of the one in hand */
    const char *until;            /* of skip */
    bool is_alone;                /* of skip: nobody else waits */
};

static const char *annotation_of(const struct sw_json *object, const char *key)
{
    return sw_json_get_string(sw_json_at(object, "metadata", "annotations", NULL), key);
}

static void annotate(struct sw_json *patch, const char *key, const char *value)
{
    struct sw_json *annotations =
        sw_json_set_object(sw_json_set_object(patch, "metadata"), "annotations");

    if (value)
        sw_json_set_string(annotations, key, value);
    else
        sw_json_set(annotations, key, NULL);
}

static bool set_annotation(const struct sw_json *object, struct sw_json *patch, const char *key,
                           const char *value)
{
    const char *before = annotation_of(object, key);

    if (before == value || (before && value && strcmp(before, value) == 0))
        return false;
    annotate(patch, key, value);
    return true;
}

/* ---- skip ---- */

/* This moment; but no earlier than the newest of those that wait began to, by the clock that wrote
 * it down. */
static const char *skip_until(struct work *work)
{
    const struct ks_world *world = work->world;
    const char *namespace_ = ks_namespace(work->session);
    const struct sw_deployment *d = ks_world_deployment(world, namespace_, work->name);
    int64_t until_us = ks_now_us(work->session);
    char text[SW_TIME_SIZE];

    work->is_alone = true;
    for (size_t i = 0; d && i < world->group_count; i++) {
        const struct coordination *c = world->groups[i].c;
        const struct coord_entry *entries = c->states.at;
        for (uint32_t k = 0; ks_selects(&world->groups[i], d) && k < c->states.count; k++) {
            if (entries[k].position <= 0 || strcmp(ks_bare_name(entries[k].name), work->name) == 0)
                continue;
            work->is_alone = false;
            until_us = SW_MAX(until_us, entries[k].pending_since_us);
        }
    }
    sw_time_format(until_us, text);
    return sw_arena_strdup(work->session->arena, text);
}

/* ---- the patches ---- */

static bool change(void *arg, const struct sw_json *object, struct sw_json *patch)
{
    struct work *work = arg;

    switch (work->command) {
    case KS_HOLD:
        return set_annotation(object, patch, SW_HOLD_BY_USER, work->reason);
    case KS_RELEASE:
        return set_annotation(object, patch, SW_HOLD_BY_USER, NULL);
    case KS_SKIP:
        return set_annotation(object, patch, SW_SKIP, work->until);
    default:
        break;
    }
    struct sw_json *template = sw_json_set_object(sw_json_set_object(patch, "spec"), "template");
    annotate(template, RESTARTED_AT, work->now);
    return true;
}

/* ---- what is said of it ---- */

static bool is_paused(const struct sw_json *object)
{
    return sw_json_get_bool(sw_json_get(object, "spec"), "paused", false);
}

static const char *result(const struct work *work, const struct sw_json *object, bool is_changed)
{
    const char *held_by = annotation_of(object, SW_HELD_BY);
    bool is_held = is_paused(object) && held_by && held_by[0];
    bool has_turn = annotation_of(object, SW_RELEASED_BY) != NULL;
    bool is_coordinated = held_by && strstr(held_by, "coordination/");

    switch (work->command) {
    case KS_HOLD:
        if (!is_changed)
            return "held: it was already, for the same reason";
        return has_turn ? "held: in the middle of its turn; it keeps its place" : "held";
    case KS_RELEASE:
        if (!is_changed && is_held)
            return "unchanged: no person holds it; kubectl slipway why tells who does";
        if (!is_changed)
            return "unchanged: no person holds it";
        return is_coordinated ? "released: it rolls in its turn" : "released";
    case KS_SKIP:
        if (!is_changed)
            return "unchanged: it is behind all that wait already";
        if (has_turn)
            return "skipped: but it has its turn now, and goes on";
        return work->is_alone ? "skipped: but nobody else waits now" : "skipped";
    default:
        break;
    }
    if (is_paused(object) && !is_held)
        return "restarted: paused by a person, so not before kubectl rollout resume";
    return is_held ? "restarted: in its turn" : "restarted";
}

enum ks_exit ks_run_deployment(struct ks_session *session)
{
    const struct ks_options *options = session->options;
    struct work work = {
        .session = session,
        .command = ks_command_id(options->command),
        .reason = options->values[KS_REASON],
    };
    enum ks_exit worst = KS_DONE;

    if (!work.reason)
        work.reason = "no reason given";
    sw_time_format(ks_now_us(session), work.now);
    if (work.command == KS_SKIP && !(work.world = ks_world_fetch(session, ks_namespace(session))))
        return KS_FAILED;
    for (size_t i = 0; i < options->name_count; i++) {
        const struct sw_json *object;
        bool is_changed;
        work.name = options->names[i];
        if (work.command == KS_SKIP)
            work.until = skip_until(&work);
        enum ks_exit status =
            ks_edit(session, &sw_kind_deployment, work.name, change, &work, &object, &is_changed);
        if (status == KS_DONE)
            ks_tell(session, &sw_kind_deployment, work.name, result(&work, object, is_changed));
        else
            worst = status;
    }
    return worst;
}
