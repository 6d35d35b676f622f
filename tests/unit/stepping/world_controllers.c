/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controllers of apps/v1, as far as they matter here, and the kubelets. They act in batches,
 * one look each time, on what they saw last.
 */
#include "world.h"

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* ---- Pods ---- */

int world_add_pod(struct world *world, int template_, int ordinal)
{
    for (int i = 0; i < PODS_MAX; i++)
        if (!world->pods[i].exists) {
            world->pods[i] = (struct pod){
                .exists = true,
                .is_broken = world->config.is_bad[template_],
                .template_ = template_,
                .ordinal = ordinal,
                .ready_ms = world->now_ms + 1500 + world_random(world, 1500),
            };
            return i;
        }
    world_fail(world, "the model has too few places for Pods");
    return 0;
}

void world_remove_pod(struct world *world, int which)
{
    world->pods[which].exists = false;
}

bool world_is_ready(const struct world *world, const struct pod *pod)
{
    return pod->exists && !pod->is_broken && world->now_ms >= pod->ready_ms;
}

int32_t world_count(const struct world *world, int template_)
{
    int32_t count = 0;

    for (int i = 0; i < PODS_MAX; i++)
        count += world->pods[i].exists && (template_ < 0 || world->pods[i].template_ == template_);
    return count;
}

static int32_t count_ready(const struct world *world, int template_)
{
    int32_t count = 0;

    for (int i = 0; i < PODS_MAX; i++)
        count += world_is_ready(world, &world->pods[i]) &&
                 (template_ < 0 || world->pods[i].template_ == template_);
    return count;
}

static void set_status(struct world *world, const struct version *seen, int32_t replicas,
                       int32_t updated, int32_t ready, int32_t available)
{
    const struct version *now = world->target;

    if (now->observed == seen->generation && now->status_replicas == replicas &&
        now->updated == updated && now->ready == ready && now->available == available)
        return;
    struct version *next = world_change(world);
    next->observed = seen->generation;
    next->status_replicas = replicas;
    next->updated = updated;
    next->ready = ready;
    next->available = available;
    world_store(world, next, false);
}

/* ---- ReplicaSets ---- */

static void resize(struct world *world, int t, int32_t wanted)
{
    struct set *set = &world->sets[t];

    if (set->wanted == wanted)
        return;
    world_note(world, "rs%d: %d -> %d", t, set->wanted, wanted);
    set->wanted = wanted;
    set->number = ++world->numbers;
    set->is_observed = false;
}

static void remove_one(struct world *world, int t)
{
    int which = -1;

    for (int i = 0; i < PODS_MAX; i++) {
        const struct pod *pod = &world->pods[i];
        if (!pod->exists || pod->template_ != t)
            continue;
        if (which < 0 ||
            (world_is_ready(world, &world->pods[which]) && !world_is_ready(world, pod)))
            which = i;
    }
    world_remove_pod(world, which);
}

static void sync_sets(struct world *world)
{
    for (int t = 0; t < TEMPLATES; t++) {
        struct set *set = &world->sets[t];
        if (!set->exists)
            continue;
        int32_t pods = world_count(world, t);
        for (; pods < set->wanted; pods++)
            world_add_pod(world, t, 0);
        for (; pods > set->wanted; pods--)
            remove_one(world, t);
        set->pods = pods;
        set->ready = count_ready(world, t);
        set->available = set->is_raised ? 0 : set->ready;
        set->is_observed = true;
    }
}

/* ---- Deployment ---- */

struct look {
    struct world *world;
    const struct version *d;
    int by_age[TEMPLATES];
    int count;
};

static int32_t wanted_of_all(const struct look *look)
{
    int32_t sum = 0;

    for (int i = 0; i < look->count; i++)
        sum += look->world->sets[look->by_age[i]].wanted;
    return sum;
}

static void scale_in_proportion(struct look *look)
{
    struct world *world = look->world;
    int32_t replicas = look->d->replicas;
    int32_t all = replicas > 0 ? replicas + world->config.surge : 0;
    int32_t to_add = all - wanted_of_all(look), added = 0;
    int order[TEMPLATES], count = 0;

    for (int i = 0; i < look->count; i++) {
        int t = look->by_age[i], j = count;
        if (world->sets[t].wanted == 0)
            continue;
        /* by size, the largest first; of equal ones the newer first when adding */
        while (j > 0 &&
               (world->sets[order[j - 1]].wanted < world->sets[t].wanted ||
                (to_add > 0 && world->sets[order[j - 1]].wanted == world->sets[t].wanted))) {
            order[j] = order[j - 1];
            j--;
        }
        order[j] = t;
        count++;
    }
    int32_t sizes[TEMPLATES] = {0};
    for (int i = 0; i < count; i++) {
        const struct set *set = &world->sets[order[i]];
        int32_t part = 0;
        if (to_add != 0 && added != to_add) {
            if (replicas == 0)
                part = -set->wanted;
            else if (set->most > 0)
                part = (set->wanted * all * 2 + set->most) / (set->most * 2) - set->wanted;
            int32_t left = to_add - added;
            part = to_add > 0 ? least(part, left) : (part > left ? part : left);
        }
        sizes[i] = set->wanted + part;
        added += part;
    }
    if (count > 0 && to_add != 0) {
        sizes[0] += to_add - added;
        sizes[0] = sizes[0] > 0 ? sizes[0] : 0;
    }
    for (int i = 0; i < count; i++) {
        resize(world, order[i], sizes[i]);
        world->sets[order[i]].desired = replicas;
        world->sets[order[i]].most = all;
    }
}

static void scale(struct look *look)
{
    struct world *world = look->world;
    int active = 0, only = -1, t = look->d->template_;
    struct set *new = &world->sets[t];

    for (int i = 0; i < look->count; i++)
        if (world->sets[look->by_age[i]].wanted > 0) {
            active++;
            only = look->by_age[i];
        }
    if (active == 0)
        only = new->exists ? t : look->by_age[look->count - 1];
    if (active <= 1) {
        resize(world, only, look->d->replicas);
        world->sets[only].desired = look->d->replicas;
        world->sets[only].most = look->d->replicas + world->config.surge;
    } else if (new->exists &&new->wanted == look->d->replicas &&new->available ==
               look->d->replicas &&new->desired == look->d->replicas) {
        for (int i = 0; i < look->count; i++)
            if (look->by_age[i] != t)
                resize(world, look->by_age[i], 0);
    } else {
        scale_in_proportion(look);
    }
}

static bool grow(struct look *look)
{
    struct world *world = look->world;
    struct set *new = &world->sets[look->d->template_];
    int32_t size = new->wanted;

    if (size > look->d->replicas) {
        size = look->d->replicas;
    } else {
        int32_t room = look->d->replicas + world->config.surge - wanted_of_all(look);
        if (room > 0)
            size += least(room, look->d->replicas - size);
    }
    if (size == new->wanted)
        return false;
    resize(world, look->d->template_, size);
    return true;
}

static bool shrink(struct look *look)
{
    struct world *world = look->world;
    const struct set *new = &world->sets[look->d->template_];
    int32_t minimum = look->d->replicas - world->config.unavailable, available = 0;
    bool did = false;

    if (wanted_of_all(look) == new->wanted)
        return false;
    int32_t surplus = wanted_of_all(look) - minimum - (new->wanted - new->available);
    if (surplus <= 0)
        return false;
    for (int i = 0; i < look->count; i++)
        available += world->sets[look->by_age[i]].available;
    int32_t free = available - minimum;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < look->count; i++) {
            int t = look->by_age[i];
            struct set *set = &world->sets[t];
            int32_t most = pass == 0 ? set->wanted - set->available : set->wanted;
            int32_t *limit = pass == 0 ? &surplus : &free;
            if (t == look->d->template_ || set->wanted == 0 || most <= 0 || *limit <= 0)
                continue;
            int32_t part = least(most, *limit);
            resize(world, t, set->wanted - part);
            *limit -= part;
            did = true;
        }
    return did;
}

/* By the second, then by name, as its times are. */
static bool is_older(const struct world *world, int a, int b)
{
    uint64_t of_a = world->sets[a].created_ms / 1000, of_b = world->sets[b].created_ms / 1000;

    return of_a != of_b ? of_a < of_b : a < b;
}

static void sync_deployment(struct world *world, const struct version *d)
{
    struct set *new = &world->sets[d->template_];
    struct look look = {world, d, {0}, 0};
    bool is_scaling = false;

    if (!d->is_paused && !new->exists) {
        *new = (struct set){
            .exists = true,
            .created_ms = world->now_ms,
            .desired = d->replicas,
            .most = d->replicas + world->config.surge,
            .number = ++world->numbers,
        };
        int32_t others = 0;
        for (int t = 0; t < TEMPLATES; t++)
            others += world->sets[t].wanted;
        int32_t room = d->replicas + world->config.surge - others;
        resize(world, d->template_, room > 0 ? least(room, d->replicas) : 0);
    }
    if (new->exists) {
        int64_t highest = 0;
        for (int t = 0; t < TEMPLATES; t++)
            if (t != d->template_ && world->sets[t].revision > highest)
                highest = world->sets[t].revision;
        if (new->revision <= highest)
            new->revision = highest + 1;
        new->is_raised = d->is_raised;
    }
    for (int t = 0; t < TEMPLATES; t++) {
        int i = look.count;
        if (!world->sets[t].exists)
            continue;
        for (; i > 0 && is_older(world, t, look.by_age[i - 1]); i--)
            look.by_age[i] = look.by_age[i - 1];
        look.by_age[i] = t;
        look.count++;
    }
    if (look.count == 0)
        return;
    for (int i = 0; i < look.count; i++) {
        const struct set *set = &world->sets[look.by_age[i]];
        is_scaling = is_scaling || (set->wanted > 0 && set->desired != d->replicas);
    }
    if (d->is_paused || is_scaling)
        scale(&look);
    else if (!grow(&look))
        shrink(&look);

    int32_t pods = 0, ready = 0, available = 0;
    for (int i = 0; i < look.count; i++) {
        const struct set *set = &world->sets[look.by_age[i]];
        pods += set->pods;
        ready += set->ready;
        available += set->available;
    }
    set_status(world, d, pods, new->exists ? new->pods : 0, ready, available);
}

/* ---- StatefulSet ---- */

static int pod_at(const struct world *world, int ordinal)
{
    for (int i = 0; i < PODS_MAX; i++)
        if (world->pods[i].exists && world->pods[i].ordinal == ordinal)
            return i;
    return -1;
}

static void act_on_ordinals(struct world *world, const struct version *s)
{
    for (int i = 0; i < s->replicas; i++) {
        int pod = pod_at(world, i);
        if (pod < 0) {
            world_add_pod(world, i < s->partition ? world->current : s->template_, i);
            return;
        }
        if (!world_is_ready(world, &world->pods[pod]))
            return; /* OrderedReady */
    }
    for (int i = PODS_MAX - 1; i >= s->replicas; i--)
        if (pod_at(world, i) >= 0) {
            world_remove_pod(world, pod_at(world, i));
            return;
        }
    for (int i = s->replicas - 1; i >= s->partition; i--) {
        int pod = pod_at(world, i);
        if (world->pods[pod].template_ != s->template_) {
            world_remove_pod(world, pod);
            return;
        }
        if (!world_is_ready(world, &world->pods[pod]))
            return;
    }
}

static void sync_stateful_set(struct world *world, const struct version *s)
{
    act_on_ordinals(world, s);
    int32_t pods = world_count(world, -1), updated = world_count(world, s->template_);
    int32_t ready = count_ready(world, -1);
    if (updated == pods && ready == pods && pods == s->replicas)
        world->current = s->template_;
    set_status(world, s, pods, updated, ready, ready);
}

/* ---- DaemonSet ---- */

static void sync_daemon_set(struct world *world, const struct version *d)
{
    int32_t unready = 0;

    for (int i = 0; i < d->replicas; i++) {
        int pod = pod_at(world, i);
        if (pod < 0)
            pod = world_add_pod(world, d->template_, i);
        unready += !world_is_ready(world, &world->pods[pod]);
    }
    for (int i = d->replicas; i < PODS_MAX; i++)
        if (pod_at(world, i) >= 0)
            world_remove_pod(world, pod_at(world, i));
    for (int i = 0; i < d->replicas && !d->is_on_delete; i++) {
        int pod = pod_at(world, i);
        bool is_ready = world_is_ready(world, &world->pods[pod]);
        if (world->pods[pod].template_ == d->template_ ||
            (is_ready &&
             unready >= (world->config.unavailable > 0 ? world->config.unavailable : 1)))
            continue;
        unready += is_ready;
        world_remove_pod(world, pod);
    }
    int32_t ready = count_ready(world, -1);
    set_status(world, d, world_count(world, -1), world_count(world, d->template_), ready, ready);
}

/* ---- */

void world_controllers(struct world *world)
{
    /* Now and then it acts on the version before. */
    const struct version *seen =
        world->before && world_chance(world, 15) ? world->before : world->target;

    if (world->now_ms < world->next_sync_ms)
        return;
    world->next_sync_ms = world->now_ms + TICK_MS * (1 + world_random(world, 2));
    switch (world->config.kind) {
    case STEP_DEPLOYMENT:
        if (seen->generation < world->target->observed)
            seen = world->target;
        sync_sets(world);
        sync_deployment(world, seen);
        break;
    case STEP_STATEFUL_SET:
        sync_stateful_set(world, world->target);
        break;
    case STEP_DAEMON_SET:
        sync_daemon_set(world, world->target);
        break;
    }
}
