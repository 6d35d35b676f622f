/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small model of another policy beside coordination, one that rolls out in steps: what it says of
 * a Deployment, and what it asks the hand for. It holds a new template until its questions are
 * answered, lets it roll to a stop, pauses it there and analyses, lets it go on, or gives it up.
 * How it decides is drawn from the event; that it does so at any time is the point.
 */
#include "world.h"

#include <string.h>

#define OWNER "stepping/x"

/* ---- opinions ---- */

static void join_one(struct world *world, struct sw_opinion *sum, const struct sw_opinion *one)
{
    bool sum_holds = sum->verdict != SW_VERDICT_FREE, one_holds = one->verdict != SW_VERDICT_FREE;

    if (one->is_selected)
        sum->rests_running = one->rests_running && (sum->rests_running || !sum->is_selected);
    sum->is_selected |= one->is_selected;
    sum->has_given_up |= one->has_given_up;
    if (one->marks)
        sum->marks = hold_list_union(world->arena, sum->marks ? sum->marks : "", one->marks);
    if (one_holds && !sum_holds)
        sum->owners = one->owners;
    else if (one_holds == sum_holds)
        sum->owners = hold_list_union(world->arena, sum->owners, one->owners);
    if (one->verdict > sum->verdict)
        sum->verdict = one->verdict;
}

static void wish_of(const struct sw_object *object, struct sw_opinion *opinion)
{
    const char *hold = sw_annotation(object, SW_HOLD_BY_USER);

    if (!hold)
        return;
    opinion->verdict = SW_VERDICT_HOLD_OUT_OF_LINE;
    opinion->owners = "user";
    opinion->words = hold;
}

static void stepping_of(const struct deployment *d, const struct sw_object *object,
                        struct sw_opinion *opinion)
{
    const struct stepper *s = &d->stepper;
    const struct sw_deployment *view = sw_as_deployment(object);
    const char *ignore = sw_annotation(object, SW_IGNORE);
    int template_ = (int)view->template_hash.low - 1;

    if (!s->exists || s->promoted < 0 || (ignore && strcmp(ignore, "true") == 0))
        return;
    opinion->is_selected = opinion->rests_running = true;
    opinion->owners = opinion->marks = OWNER;
    if (template_ == s->promoted)
        return;
    if (template_ == s->failed) {
        opinion->verdict = SW_VERDICT_HOLD_OUT_OF_LINE;
        opinion->has_given_up = true;
    } else if (template_ != s->applied) {
        opinion->verdict = s->asks ? SW_VERDICT_HOLD_OUT_OF_LINE : SW_VERDICT_HOLD;
    } else if (view->updated_replicas >= s->stop) {
        opinion->verdict = SW_VERDICT_HOLD;
    }
}

struct sw_opinion world_others(struct world *world, const struct deployment *d,
                               const struct sw_object *object)
{
    struct sw_opinion sum = {.owners = "", .words = ""}, one = {.owners = "", .words = ""};

    wish_of(object, &sum);
    stepping_of(d, object, &one);
    join_one(world, &sum, &one);
    return sum;
}

struct sw_opinion world_all(struct world *world, const struct deployment *d,
                            const struct sw_object *object, const struct sw_opinion *coordination)
{
    struct sw_opinion sum = world_others(world, d, object);

    join_one(world, &sum, coordination);
    return sum;
}

/* ---- what it asks for ---- */

/* With what the others say now; its store is as new as can be. */
static bool ask_hand(struct world *world, struct deployment *d, enum sw_hold_verb verb,
                     const char *marks)
{
    const struct sw_hold_request what = {.verb = verb, .owners = OWNER, .marks = marks};
    struct sw_opinion others = world_coordination_of(world, &d->now->d.meta, NULL);
    struct sw_opinion wish = {.owners = "", .words = ""};
    struct hold_state from, to;

    wish_of(&d->now->d.meta, &wish);
    join_one(world, &others, &wish);
    if (world->config.mutation == OTHER_POLICY_UNASKED)
        others = (struct sw_opinion){.owners = "", .words = ""};
    hold_state_of(&d->now->d, &from);
    if (hold_apply(world->arena, &from, &what, "stepping", &others, &to) != HOLD_CHANGES)
        return false;
    if (verb == SW_HOLD_RELEASE && from.is_paused)
        world_check_release(world, d);
    if (d->is_users_pause && (!to.is_paused || to.held_by[0]))
        world_fail(world, "%s: the other policy undoes a user's pause", d->name);
    world_store_state(world, d, &to);
    world_say(world, "stepping: %s paused %d held-by '%s' released-by '%s' marks '%s' '%s'",
              d->name, d->is_paused, d->held_by, d->released_by, d->coordinated_by, d->stepped_by);
    return true;
}

static bool names_it(const struct deployment *d)
{
    return hold_list_has_policy(d->held_by, "stepping") ||
           hold_list_has_policy(d->released_by, "stepping");
}

static void think(struct world *world, const struct deployment *d, const char *what)
{
    world_say(world, "stepping: %s %s, stop %d", d->name, what, d->stepper.stop);
    for (int i = 0; i < world->config.leaders; i++)
        world->leaders[i].is_dirty |= world->leaders[i].is_alive;
}

static bool is_complete(const struct deployment *d)
{
    return d->observed_generation >= d->generation && d->s_updated == d->replicas &&
           d->s_replicas == d->replicas && d->s_available == d->replicas;
}

static bool let_go(struct world *world, struct deployment *d)
{
    const char *marks = d->stepper.exists && d->stepper.promoted >= 0 && !d->ignore[0] ? OWNER : "";

    if (names_it(d))
        return ask_hand(world, d, SW_HOLD_FREE, marks);
    return ask_hand(world, d, SW_HOLD_MARK, marks);
}

static bool hold(struct world *world, struct deployment *d)
{
    if (hold_list_has_policy(d->held_by, "stepping") && d->is_paused &&
        !hold_list_has_policy(d->released_by, "stepping"))
        return false;
    return ask_hand(world, d, SW_HOLD_PAUSE, OWNER);
}

static bool step(struct world *world, struct deployment *d, uint32_t b)
{
    struct stepper *s = &d->stepper;

    if (s->applied != d->template_) {
        if (hold(world, d) || (!world->is_ending && b % 3 == 0))
            return true;
        s->applied = d->template_;
        s->stop = 1;
        think(world, d, "is answered");
        return true;
    }
    if (d->observed_generation < d->generation)
        return false;
    if (is_complete(d) && s->stop > d->replicas) {
        s->promoted = d->template_;
        think(world, d, "is promoted");
        return let_go(world, d) || true;
    }
    if (d->s_updated < s->stop)
        return ask_hand(world, d, SW_HOLD_RELEASE, OWNER);
    if (hold(world, d))
        return true;
    if (!world->is_ending && b % 8 == 0) {
        s->failed = d->template_;
        think(world, d, "is given up");
    } else {
        s->stop++;
        think(world, d, "has passed a stop");
    }
    return true;
}

bool world_stepper_acts(struct world *world, struct deployment *d, uint32_t b)
{
    struct stepper *s = &d->stepper;

    if (!d->exists || !world->config.is_stepped)
        return false;
    if (s->exists && d->uid != s->uid) { /* another one of that name */
        *s = (struct stepper){true, b / 16 % 2, d->uid, -1, -1, -1, 0};
        think(world, d, "is another one");
    }
    if (s->exists && s->promoted < 0 && is_complete(d)) {
        s->promoted = d->template_;
        think(world, d, "is initialised");
    }
    if (!s->exists || s->promoted < 0 || d->template_ == s->promoted || d->ignore[0])
        return let_go(world, d);
    if (d->template_ == s->failed)
        return hold(world, d);
    return step(world, d, b);
}

/* A SteppedRollout comes or goes, or what failed is to be tried again. */
void world_stepper_changes(struct world *world, struct deployment *d, uint32_t b)
{
    struct stepper *s = &d->stepper;

    if (!world->config.is_stepped)
        return;
    if (!s->exists)
        *s = (struct stepper){true, b / 16 % 2, d->uid, -1, -1, -1, 0};
    else if (b % 4 == 0)
        s->exists = false;
    else
        s->failed = s->applied = -1;
    think(world, d, s->exists ? "is to be stepped" : "is stepped no more");
}
