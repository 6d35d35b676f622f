/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembered is only who is unpaused and not at rest; they are few, in an array by name.
 */
#include "observer.h"

#include <stdlib.h>
#include <string.h>

#include <slipway/arbiter.h>
#include <slipway/memory.h>

#include "kind.h"

struct sight {
    char *name;
    char *uid;
    int64_t complete_revision; /* that was complete last; -1: not seen */
    bool rolls;
};

struct coord_observer {
    struct sight *sights; /* by name */
    uint32_t count;
};

struct coord_observer *coord_observer_new(void)
{
    return SW_NEW(struct coord_observer);
}

static void sight_done(struct sight *sight)
{
    sw_free(sight->name);
    sw_free(sight->uid);
}

struct coord_observer *coord_observer_free(struct coord_observer *observer)
{
    if (!observer)
        return NULL;
    for (uint32_t i = 0; i < observer->count; i++)
        sight_done(&observer->sights[i]);
    sw_free(observer->sights);
    return sw_free(observer);
}

/* ---- what one Deployment does ---- */

static bool is_observed(const struct sw_deployment *d)
{
    return d->observed_generation >= d->meta.generation;
}

static bool is_complete(const struct sw_deployment *d)
{
    return is_observed(d) && d->updated_replicas == d->replicas &&
           d->status_replicas == d->replicas && d->available_replicas == d->replicas;
}

/* Its controller makes Pods of a new template, or waits for them. */
static bool is_rolling(const struct sw_deployment *d)
{
    const struct sw_condition *progressing = sw_condition_get(&d->conditions, "Progressing");

    if (d->is_paused || d->meta.deleted_us)
        return false;
    if (d->status_replicas > d->updated_replicas)
        return true;
    if (d->replicas == 0 || is_complete(d))
        return false;
    if (!progressing)
        return d->updated_replicas < d->replicas;
    if (strcmp(d->strategy, "Recreate") == 0 && d->status_replicas == 0)
        return true;
    return strcmp(progressing->status, "Unknown") != 0 &&
           strcmp(progressing->reason, "NewReplicaSetAvailable") != 0;
}

static int64_t revision_of(const struct sw_deployment *d)
{
    const char *text = sw_annotation(&d->meta, COORD_REVISION);

    return text ? strtoll(text, NULL, 10) : -1;
}

/* Resumed at no Pods and then scaled up, it reports progress as in a rollout. It is none while its
 * revision is the one that was complete. */
static bool is_scaled(const struct sight *sight, const struct sw_deployment *d)
{
    return sight->complete_revision >= 0 && sight->complete_revision == revision_of(d) &&
           d->status_replicas == d->updated_replicas && d->updated_replicas > 0;
}

/* ---- who is remembered ---- */

/* Where it stands, or would. */
static uint32_t position_of(const struct coord_observer *observer, const char *name)
{
    uint32_t from = 0, to = observer->count;

    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (strcmp(observer->sights[middle].name, name) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static struct sight *find(const struct coord_observer *observer, const char *name)
{
    uint32_t i = position_of(observer, name);
    bool is_there = i < observer->count && strcmp(observer->sights[i].name, name) == 0;

    return is_there ? &observer->sights[i] : NULL;
}

static struct sight *add(struct coord_observer *observer, const struct sw_deployment *d)
{
    uint32_t i = position_of(observer, d->meta.name);

    observer->sights =
        sw_realloc(observer->sights, (size_t)observer->count + 1, sizeof *observer->sights);
    memmove(observer->sights + i + 1, observer->sights + i,
            (observer->count - i) * sizeof *observer->sights);
    observer->count++;
    observer->sights[i] = (struct sight){
        .name = sw_strdup(d->meta.name),
        .uid = sw_strdup(d->meta.uid),
        .complete_revision = -1,
    };
    return &observer->sights[i];
}

static void forget(struct coord_observer *observer, struct sight *sight)
{
    size_t i = (size_t)(sight - observer->sights);

    sight_done(sight);
    observer->count--;
    memmove(sight, sight + 1, (observer->count - i) * sizeof *sight);
}

/* Nothing is to be remembered of such a one. */
static bool is_at_rest(const struct sw_deployment *d)
{
    return is_observed(d) && (d->is_paused || is_complete(d));
}

static bool look(struct coord_observer *observer, struct sight *sight,
                 const struct sw_deployment *old, const struct sw_deployment *now)
{
    if (!sight && is_at_rest(now))
        return false;
    if (!sight) {
        sight = add(observer, now);
        if (old && is_complete(old))
            sight->complete_revision = revision_of(old);
    }
    if (is_complete(now))
        sight->complete_revision = revision_of(now);
    if (is_observed(now))
        sight->rolls = is_rolling(now) && !is_scaled(sight, now);
    bool rolls = sight->rolls;
    if (!rolls && is_at_rest(now))
        forget(observer, sight);
    return rolls;
}

bool coord_observer_see(struct coord_observer *observer, const struct sw_deployment *old,
                        const struct sw_deployment *now)
{
    struct sight *sight = find(observer, now ? now->meta.name : old->meta.name);
    bool did_roll = sight && sight->rolls;

    if (sight && (!now || strcmp(sight->uid, now->meta.uid) != 0)) {
        forget(observer, sight);
        sight = NULL;
    }
    bool rolls = now && look(observer, sight, old, now);
    return rolls || did_roll;
}

static bool is_ignored(const struct sw_object *object)
{
    const char *value = sw_annotation(object, SW_IGNORE);

    return value && strcmp(value, "true") == 0;
}

uint32_t coord_observer_count(const struct coord_observer *observer,
                              const struct sw_selector *selector, coord_find_fn find_now, void *arg)
{
    uint32_t count = 0;

    for (uint32_t i = 0; selector && i < observer->count; i++) {
        if (!observer->sights[i].rolls)
            continue;
        const struct sw_object *object = find_now(arg, observer->sights[i].name);
        count += object && !is_ignored(object) && sw_selector_matches(selector, &object->labels);
    }
    return count;
}
