/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first that applies is the reason:
 *
 *   HeldByPerson       slipway.dev/hold                 (keeps its place in the middle of its turn)
 *   PausedByPerson     paused, and held-by is absent
 *   Ignored            slipway.dev/ignore
 *   CoordinationGone   held or released by what selects it no more
 *   NotCoordinated     nobody selects it
 *   RolloutFailed      its turn, and its rollout has failed
 *   TurnEnds           its turn, and complete: minReadySeconds run
 *   Rolling            its turn
 *   PutAside           failed before, under failurePolicy Skip
 *   waits, because of  Unseen, Suspended, PeerFailed, PeerPaused, PeerUnavailable, another reason
 * of Degraded, or nothing else: WaitsForTurn RollsWithoutTurn   changed while no webhook was
 * reached ScaledToZero       no Pods: nothing could roll AtRest             nothing to roll
 *
 * One that a SteppedRollout steps has a reason of that (rollout.h) behind the two of people, as
 * long as that has something to say; while it waits for its turn or is held by somebody else, the
 * reasons above stand, with a line about its step.
 */
#include "why.h"

#include <string.h>

#include <slipway/arbiter.h>

#include "base/util.h"
#include "rollout.h"
#include "text.h"

struct asker {
    struct sw_arena *arena;
    const struct ks_world *world;
    const struct sw_deployment *d;
    const char *name;
    int64_t now_us;
    const struct ks_group **groups; /* that select it */
    size_t group_count;
    struct ks_why *why;
    size_t line_count;
};

static SW_PRINTF(2, 3) const char *text(struct asker *a, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    const char *made = sw_arena_vprintf(a->arena, format, args);
    va_end(args);
    return made;
}

static void say(struct asker *a, const char *line)
{
    if (line[0] && a->line_count + 1 < SW_ARRAY_SIZE(a->why->lines))
        a->why->lines[a->line_count++] = line;
}

static void decide(struct asker *a, const char *reason, const char *headline, const char *advice)
{
    a->why->reason = reason;
    a->why->headline = headline;
    a->why->advice = advice;
}

static const char *age(struct asker *a, int64_t since_us)
{
    char *made = sw_arena_alloc(a->arena, KS_DURATION_SIZE);

    ks_duration(a->now_us - since_us, made);
    return made;
}

/* ---- what the Deployment is doing ---- */

static const struct sw_condition *progressing(const struct sw_deployment *d)
{
    return sw_condition_get(&d->conditions, "Progressing");
}

static bool is_complete(const struct sw_deployment *d)
{
    return d->observed_generation >= d->meta.generation && d->updated_replicas == d->replicas &&
           d->status_replicas == d->replicas && d->available_replicas == d->replicas;
}

static bool is_outdated(const struct sw_deployment *d)
{
    return d->replicas > 0 &&
           (d->status_replicas > d->updated_replicas || !sw_annotation(&d->meta, COORD_REVISION));
}

static bool has_failed(const struct sw_deployment *d)
{
    const struct sw_condition *condition = progressing(d);

    return condition && strcmp(condition->reason, "ProgressDeadlineExceeded") == 0;
}

static int64_t paused_since(const struct sw_deployment *d)
{
    const struct sw_condition *condition = progressing(d);

    return condition && strcmp(condition->reason, "DeploymentPaused") == 0
               ? condition->last_update_us
               : 0;
}

static const struct coord_entry *entry_in(const struct asker *a, const struct ks_group *group)
{
    return ks_entry(group->c, a->d);
}

/* Of the first coordination that has one. */
static const struct coord_entry *entry_of(const struct asker *a)
{
    const struct coord_entry *entry = NULL;

    for (size_t i = 0; i < a->group_count && !entry; i++)
        entry = entry_in(a, a->groups[i]);
    return entry;
}

static bool is_active(const struct asker *a)
{
    for (size_t i = 0; i < a->group_count; i++)
        if (ks_is_active(a->groups[i]->c, a->d))
            return true;
    return false;
}

static const char *names_of_groups(struct asker *a)
{
    const char *names = "";

    for (size_t i = 0; i < a->group_count; i++)
        names = text(a, "%s%s%s", names, i > 0 ? ", " : "", a->groups[i]->c->meta.name);
    return names;
}

/* ---- a person's wish ---- */

static bool is_held_by_person(struct asker *a)
{
    const char *reason = sw_annotation(&a->d->meta, SW_HOLD_BY_USER);

    if (!reason)
        return false;
    decide(a, "HeldByPerson",
           reason[0] ? text(a, "%s is held by a person: %s", a->name, reason)
                     : text(a, "%s is held by a person (" SW_HOLD_BY_USER ")", a->name),
           text(a, "let it go: kubectl slipway release %s -n %s", a->name, a->d->meta.namespace_));
    if (a->group_count > 0 && is_active(a))
        say(a, text(a, "it is in the middle of its turn and keeps its place: the others of %s wait",
                    names_of_groups(a)));
    else if (a->group_count > 0)
        say(a, text(a, "it is passed over; the others of %s go on", names_of_groups(a)));
    a->why->since_us = paused_since(a->d);
    return true;
}

static bool is_paused_by_person(struct asker *a)
{
    if (!a->d->is_paused || a->why->held_by[0])
        return false;
    decide(a, "PausedByPerson",
           text(a, "%s is paused, and not by slipway: somebody has set spec.paused", a->name),
           text(a,
                "slipway never resumes what it did not pause: kubectl rollout resume "
                "deployment/%s -n %s",
                a->name, a->d->meta.namespace_));
    a->why->since_us = paused_since(a->d);
    if (a->group_count > 0 && is_active(a) && !is_complete(a->d))
        say(a, text(a, "it is in the middle of its turn and keeps its place: the others of %s wait",
                    names_of_groups(a)));
    else if (a->group_count > 0)
        say(a, text(a, "it is not in the queue of %s, and blocks nobody", names_of_groups(a)));
    return true;
}

/* ---- nobody's ---- */

static void say_broken_selectors(struct asker *a)
{
    for (size_t i = 0; i < a->world->group_count; i++) {
        const struct ks_group *group = &a->world->groups[i];
        if (!group->selector && strcmp(group->c->meta.namespace_, a->d->meta.namespace_) == 0)
            say(a, text(a, "coordination %s selects nobody: %s", group->c->meta.name,
                        group->selector_error));
    }
}

static bool is_nobodys(struct asker *a)
{
    const struct ks_why *why = a->why;

    if (a->group_count > 0)
        return false;
    if (why->held_by[0] || why->released_by[0]) {
        decide(a, "CoordinationGone",
               text(a, "%s is %s by %s, which does not select it any more", a->name,
                    why->held_by[0] ? "held" : "released",
                    why->held_by[0] ? why->held_by : why->released_by),
               "slipway lets such ones go, those with a change one at a time; if nothing happens: "
               "kubectl slipway doctor");
        a->why->since_us = paused_since(a->d);
    } else if (strcmp(ks_annotation(&a->d->meta, SW_IGNORE), "true") == 0) {
        decide(a, "Ignored", text(a, "%s is not coordinated: " SW_IGNORE " is on it", a->name),
               text(a, "kubectl annotate deployment %s -n %s " SW_IGNORE "-", a->name,
                    a->d->meta.namespace_));
    } else {
        decide(a, "NotCoordinated",
               text(a, "no coordination selects %s: it rolls whenever it is changed", a->name), "");
        say_broken_selectors(a);
    }
    return true;
}

/* ---- stepped ---- */

/* What it says is the answer where something is under way, or nobody else has anything to say. */
static bool is_stepped(struct asker *a)
{
    const struct stepped *r = ks_rollout_on(a->world, a->d->meta.namespace_, "Deployment", a->name);
    enum ks_rollout_state state = r ? ks_rollout_state_of(r) : KS_ROLLOUT_RESTS;
    bool is_under_way =
        state == KS_ROLLOUT_WAITS || state == KS_ROLLOUT_STEPS || state == KS_ROLLOUT_FAILED;

    if (!r)
        return false;
    if (is_under_way || a->group_count == 0) {
        ks_rollout_why(a->arena, r, a->now_us, a->why);
        return true;
    }
    if (state == KS_ROLLOUT_HELD)
        say(a, text(a, "its SteppedRollout %s waits meanwhile%s%s", r->meta.name,
                    r->message[0] ? ": " : "", r->message));
    return false;
}

/* ---- its turn ---- */

static void say_who_waits(struct asker *a)
{
    for (size_t i = 0; i < a->group_count; i++)
        if (a->groups[i]->c->pending > 0)
            say(a, text(a, "%d of %s wait behind it", (int)a->groups[i]->c->pending,
                        a->groups[i]->c->meta.name));
}

static void has_turn(struct asker *a)
{
    const struct sw_deployment *d = a->d;
    const struct coord_entry *entry = entry_of(a);

    a->why->position = 0;
    a->why->since_us = entry ? entry->started_us : 0;
    if (!is_complete(d) && has_failed(d)) {
        decide(a, "RolloutFailed",
               text(a, "%s has its turn in %s, and its rollout has failed", a->name,
                    names_of_groups(a)),
               text(a,
                    "a new template goes on in the same turn: kubectl rollout undo "
                    "deployment/%s -n %s, or fix it; failurePolicy: Skip would have put it aside",
                    a->name, d->meta.namespace_));
        say(a, progressing(d)->message);
    } else if (is_complete(d)) {
        decide(a, "TurnEnds",
               text(a,
                    "%s has rolled out, and keeps its turn until it has been complete for the "
                    "minReadySeconds of %s",
                    a->name, names_of_groups(a)),
               "");
    } else {
        decide(a, "Rolling",
               text(a, "%s has its turn in %s and rolls", a->name, names_of_groups(a)), "");
        say(a, text(a, "%d of %d Pods are new and available", (int)ks_done(d), (int)d->replicas));
    }
    say_who_waits(a);
}

/* ---- waiting ---- */

/* "catalog, which has been rolling for 1m12s (2 of 3)" */
static const char *active_text(struct asker *a, const struct ks_group *group, const char *full)
{
    const char *name = ks_bare_name(full);
    const struct sw_deployment *d = ks_world_deployment(a->world, group->c->meta.namespace_, name);
    const struct coord_entry *entry = d ? ks_entry(group->c, d) : NULL;

    if (!d)
        return text(a, "%s has the turn", name);
    return text(a, "%s has the turn%s%s: %d of %d Pods are new and available", name,
                entry && entry->started_us ? ", for " : "",
                entry && entry->started_us ? age(a, entry->started_us) : "", (int)ks_done(d),
                (int)d->replicas);
}

static void say_who_rolls(struct asker *a, const struct ks_group *group)
{
    const struct coordination *c = group->c;

    for (uint32_t i = 0; i < c->active_deployments.count; i++)
        say(a, active_text(a, group, c->active_deployments.at[i]));
    if (c->active_deployments.count == 0 && c->active_deployment[0])
        say(a, active_text(a, group, c->active_deployment));
}

static void say_who_is_before(struct asker *a, const struct ks_group *group, int32_t position)
{
    const struct coord_entry *entries = group->c->states.at;
    const char *names = "";

    for (int32_t at = 1; at < position && at < 6; at++)
        for (uint32_t i = 0; i < group->c->states.count; i++)
            if (entries[i].position == at)
                names =
                    text(a, "%s%s%s", names, names[0] ? ", " : "", ks_bare_name(entries[i].name));
    if (names[0])
        say(a, text(a, "before it in the queue: %s%s", names, position > 6 ? ", ..." : ""));
}

/* What keeps this coordination from going on, beside one turn after the other. */
static bool decide_obstacle(struct asker *a, const struct ks_group *group)
{
    const struct coordination *c = group->c;
    const struct sw_condition *degraded = sw_condition_get(&c->conditions, "Degraded");
    const char *reason = degraded && strcmp(degraded->status, "True") == 0 ? degraded->reason : "";
    const char *advice = NULL, *name = c->meta.name;

    if (c->observed_generation < c->meta.generation) {
        decide(a, "Unseen", a->why->headline,
               "if this lasts, no slipway runs: kubectl slipway doctor");
        say(a, text(a, "slipway has not looked at coordination %s since it was changed", name));
        return true;
    }
    if (c->is_suspended) {
        decide(
            a, "Suspended", a->why->headline,
            text(a, "end the freeze: kubectl slipway resume %s -n %s", name, c->meta.namespace_));
        say(a, text(a, "coordination %s is suspended: nobody starts", name));
        return true;
    }
    /* With Skip it is put aside, and no longer in the way. */
    if (strcmp(reason, "RolloutFailed") == 0 && strcmp(c->failure_policy, "Skip") == 0)
        return false;
    if (strcmp(reason, "RolloutFailed") == 0) {
        a->why->reason = "PeerFailed";
        advice = "cure it, or give it a new template; failurePolicy: Skip would put it aside";
    } else if (strcmp(reason, "PausedByUser") == 0) {
        a->why->reason = "PeerPaused";
        advice = "resume it: kubectl rollout resume, or kubectl slipway release";
    } else if (strcmp(reason, "PeerUnavailable") == 0) {
        a->why->reason = "PeerUnavailable";
        advice = text(a,
                      "cure it, or go on all the same: kubectl annotate deploymentcoordination "
                      "%s -n %s " COORD_SKIP_GUARD "=true",
                      name, c->meta.namespace_);
    } else if (reason[0]) {
        a->why->reason = reason;
        advice = "kubectl slipway doctor may say more";
    }
    if (!advice)
        return false;
    a->why->advice = advice;
    say(a, degraded->message);
    return true;
}

static void waits(struct asker *a, const struct coord_entry *entry)
{
    int32_t position = entry ? entry->position : -1;
    int32_t of = 0;

    for (size_t i = 0; i < a->group_count; i++)
        of = SW_MAX(of, a->groups[i]->c->pending);
    a->why->position = position;
    a->why->of = of;
    a->why->since_us =
        entry && entry->pending_since_us ? entry->pending_since_us : paused_since(a->d);
    decide(a, "WaitsForTurn",
           position > 0 ? text(a, "%s waits for its turn in %s: position %d of %d", a->name,
                               names_of_groups(a), (int)position, (int)SW_MAX(of, position))
                        : text(a, "%s waits for its turn in %s", a->name, names_of_groups(a)),
           text(a, "nothing has to be done; kubectl slipway plan -n %s shows the order",
                a->d->meta.namespace_));
    for (size_t i = 0; i < a->group_count; i++)
        if (decide_obstacle(a, a->groups[i]))
            return;
    for (size_t i = 0; i < a->group_count; i++) {
        say_who_rolls(a, a->groups[i]);
        say_who_is_before(a, a->groups[i], position);
    }
    if (entry)
        say(a, entry->message);
}

static bool is_put_aside(struct asker *a)
{
    const struct coord_entry *entry = entry_of(a);

    if (!entry || !entry->failed_template[0] || is_complete(a->d))
        return false;
    decide(a, "PutAside",
           text(a, "%s has failed in its turn and was put aside by %s (failurePolicy: Skip)",
                a->name, names_of_groups(a)),
           "it gets another turn with another template");
    a->why->since_us = entry->finished_us ? entry->finished_us : entry->started_us;
    return true;
}

/* ---- at rest ---- */

static void rests(struct asker *a)
{
    const struct sw_deployment *d = a->d;

    if (d->replicas == 0 && d->status_replicas == 0) {
        decide(a, "ScaledToZero",
               text(a, "%s has no Pods, so nothing could roll: it is not held", a->name), "");
    } else if (!d->is_paused && is_outdated(d)) {
        decide(a, "RollsWithoutTurn",
               text(a, "%s rolls without a turn: it was changed while no webhook was reached",
                    a->name),
               "slipway gives it the turn or pauses it, as soon as it sees it; if it does not: "
               "kubectl slipway doctor");
    } else {
        decide(a, "AtRest",
               text(a, "%s has nothing to roll%s", a->name,
                    d->is_paused ? "; it rests paused, which is no fault (atRest: Paused)" : ""),
               text(a, "it scales all the same; to restart it: kubectl slipway restart %s -n %s",
                    a->name, d->meta.namespace_));
        a->why->since_us = entry_of(a) ? entry_of(a)->finished_us : 0;
    }
}

static bool is_waiting(const struct asker *a, const struct coord_entry *entry)
{
    if (entry && (entry->position > 0 || (entry->has_pending_changes && a->d->is_paused)))
        return true;
    return a->d->is_paused && is_outdated(a->d);
}

void ks_why(struct sw_arena *arena, const struct ks_world *world,
            const struct sw_deployment *deployment, int64_t now_us, struct ks_why *ret_why)
{
    struct asker a = {
        .arena = arena,
        .world = world,
        .d = deployment,
        .name = deployment->meta.name,
        .now_us = now_us,
        .groups = SW_ARENA_ARRAY(arena, world->group_count + 1, const struct ks_group *),
        .why = ret_why,
    };

    *ret_why = (struct ks_why){
        .held_by = ks_annotation(&deployment->meta, SW_HELD_BY),
        .released_by = ks_annotation(&deployment->meta, SW_RELEASED_BY),
        .coordinations = ks_annotation(&deployment->meta, SW_COORDINATED_BY),
        .position = -1,
    };
    for (size_t i = 0; i < world->group_count; i++)
        if (ks_selects(&world->groups[i], deployment))
            a.groups[a.group_count++] = &world->groups[i];
    if (is_held_by_person(&a) || is_paused_by_person(&a) || is_stepped(&a) || is_nobodys(&a))
        return;
    const struct coord_entry *entry = entry_of(&a);
    if (ret_why->released_by[0])
        has_turn(&a);
    else if (is_put_aside(&a))
        return;
    else if (is_waiting(&a, entry))
        waits(&a, entry);
    else
        rests(&a);
}
