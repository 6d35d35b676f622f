/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Deployment controller and the kubelets. The controller acts on what it saw last, which may be
 * older than what is stored; its status write fails when the object has changed meanwhile, but what
 * it has done by then stays done.
 */
#include "world.h"

#include <string.h>

static int sum(const int counts[TEMPLATES])
{
    int all = 0;

    for (int t = 0; t < TEMPLATES; t++)
        all += counts[t];
    return all;
}

bool world_needs_rollout(const struct deployment *d)
{
    if (!d->exists)
        return false;
    if (d->is_mid || !d->has_set[d->template_])
        return true;
    return sum(d->pods) > d->pods[d->template_];
}

bool world_controller_sees(struct world *world, struct deployment *d)
{
    if (!d->exists || d->c_version == d->now)
        return false;
    bool is_other = !d->c_exists || d->c_paused != d->is_paused || d->c_template != d->template_ ||
                    d->c_replicas != d->replicas;
    d->c_exists = true;
    d->c_version = d->now;
    d->c_paused = d->is_paused;
    d->c_template = d->template_;
    d->c_replicas = d->replicas;
    if (d->c_paused)
        d->has_slipped = false;
    if (is_other)
        world_say(world, "controller: sees %s paused %d template %d replicas %d", d->name,
                  d->c_paused, d->c_template, d->c_replicas);
    world_check_rolling(world, d);
    return true;
}

/* ---- ReplicaSets ---- */

static void remove_pods(struct deployment *d, int t, int count)
{
    d->pods[t] -= count;
    if (d->ready[t] > d->pods[t])
        d->ready[t] = d->pods[t];
}

static bool scale_set(struct deployment *d, int t, int want)
{
    if (d->pods[t] == want)
        return false;
    if (want < d->pods[t])
        remove_pods(d, t, d->pods[t] - want);
    else
        d->pods[t] = want;
    return true;
}

/* While paused: the newest set that has Pods takes the difference; without Pods the newest of all.
 */
static bool scale_paused(struct deployment *d)
{
    int with_pods = -1, count = 0;

    for (int t = 0; t < TEMPLATES; t++)
        if (d->pods[t] > 0) {
            count++;
            if (with_pods < 0 || t == d->newest)
                with_pods = t;
        }
    if (count == 0)
        return d->newest >= 0 && scale_set(d, d->newest, d->c_replicas);
    if (count == 1)
        return scale_set(d, with_pods, d->c_replicas);
    /* In mid-rollout the total stays at want plus surge. */
    int most = d->c_replicas + (d->is_surging ? 1 : 0);
    int all = sum(d->pods), want = d->pods[with_pods];
    if (all > most)
        want = want > all - most ? want - (all - most) : 0;
    else if (all < d->c_replicas)
        want += d->c_replicas - all;
    return scale_set(d, with_pods, want);
}

static bool recreate(struct deployment *d)
{
    int t = d->c_template, others = sum(d->pods) - d->pods[t];

    if (others > 0) {
        for (int i = 0; i < TEMPLATES; i++)
            if (i != t)
                scale_set(d, i, 0);
        d->terminating += others;
        return true;
    }
    if (d->terminating > 0)
        return false;
    return scale_set(d, t, d->c_replicas);
}

static bool roll(struct deployment *d)
{
    int t = d->c_template, want = d->c_replicas;
    int surge = d->is_surging ? 1 : 0, unavailable = d->is_surging ? 0 : 1;
    int all = sum(d->pods), others = all - d->pods[t];

    if (others == 0)
        return scale_set(d, t, want);
    if (d->pods[t] > want)
        return scale_set(d, t, want);
    int room = want + surge - all;
    if (d->pods[t] < want && room > 0)
        return scale_set(d, t, d->pods[t] + (room < want - d->pods[t] ? room : want - d->pods[t]));
    /* Old ones go: those that are not ready at once, the others while enough remain. */
    for (int i = 0; i < TEMPLATES; i++) {
        if (i == t || d->pods[i] == 0)
            continue;
        if (d->pods[i] > d->ready[i]) {
            d->pods[i]--;
            return true;
        }
        if (sum(d->ready) > want - unavailable) {
            d->pods[i]--;
            d->ready[i]--;
            return true;
        }
    }
    return false;
}

/* Whether it is paused or not: when all Pods are there the rollout is over. */
static void note_complete(struct world *world, struct deployment *d)
{
    int t = d->c_template;

    if (!d->is_mid || sum(d->pods) != d->pods[t] || d->pods[t] != d->c_replicas ||
        d->ready[t] != d->c_replicas)
        return;
    d->is_mid = d->has_slipped = false;
    world_say(world, "controller: %s rolled out template %d", d->name, t);
}

static bool act(struct world *world, struct deployment *d)
{
    int t = d->c_template;
    bool has_changed = false;

    if (d->c_paused) {
        has_changed = scale_paused(d);
        note_complete(world, d);
        return has_changed;
    }
    if (!d->has_set[t] || d->newest != t) {
        if (!d->has_set[t] || sum(d->pods) > d->pods[t])
            d->is_mid = true;
        if (!d->has_set[t]) {
            d->progressing_status = "True";
            d->progressing_reason = "NewReplicaSetCreated";
            d->progressing_us = world_wall_us(world);
        }
        d->has_set[t] = true;
        d->newest = t;
        d->revision++;
        has_changed = true;
    }
    if (sum(d->pods) > d->pods[t])
        d->is_mid = true;
    has_changed |= d->is_recreate ? recreate(d) : roll(d);
    note_complete(world, d);
    return has_changed;
}

/* ---- status ---- */

static void set_progressing(struct world *world, struct deployment *d, const char *status,
                            const char *reason, bool renews)
{
    if (!renews && d->progressing_reason && strcmp(d->progressing_reason, reason) == 0 &&
        strcmp(d->progressing_status, status) == 0)
        return;
    d->progressing_status = status;
    d->progressing_reason = reason;
    d->progressing_us = world_wall_us(world);
}

static bool has_reason(const struct deployment *d, const char *reason)
{
    return d->progressing_reason && strcmp(d->progressing_reason, reason) == 0;
}

static void set_pause_condition(struct world *world, struct deployment *d)
{
    if (has_reason(d, "ProgressDeadlineExceeded"))
        return;
    if (d->c_paused)
        set_progressing(world, d, "Unknown", "DeploymentPaused", false);
    else if (has_reason(d, "DeploymentPaused"))
        set_progressing(world, d, "Unknown", "DeploymentResumed", false);
}

static void set_progress(struct world *world, struct deployment *d, int replicas, int updated,
                         int available)
{
    bool is_done = replicas == updated && has_reason(d, "NewReplicaSetAvailable");
    bool has_progressed = updated > d->s_updated || available > d->s_available ||
                          replicas - updated < d->s_replicas - d->s_updated;

    if (is_done)
        return;
    if (updated == d->c_replicas && replicas == d->c_replicas && available == d->c_replicas)
        set_progressing(world, d, "True", "NewReplicaSetAvailable", false);
    else if (has_progressed)
        set_progressing(world, d, "True", "ReplicaSetUpdated", true);
    else if (d->progressing_reason && !has_reason(d, "NewReplicaSetAvailable") &&
             world_wall_us(world) - d->progressing_us > (int64_t)d->deadline_s * 1000000)
        set_progressing(world, d, "False", "ProgressDeadlineExceeded", false);
}

bool world_controller_syncs(struct world *world, struct deployment *d, bool writes_status)
{
    const char *status = d->progressing_status, *reason = d->progressing_reason;
    int64_t progressing_us = d->progressing_us;
    int revision = d->revision;

    if (!d->exists || !d->c_exists)
        return false;
    bool has_changed = act(world, d);
    world_check_rolling(world, d);
    int replicas = sum(d->pods), available = sum(d->ready);
    int updated = d->has_set[d->c_template] ? d->pods[d->c_template] : 0;
    if (!writes_status || d->c_version != d->now) {
        /* The write fails; what the status said is as before. */
        d->progressing_status = status;
        d->progressing_reason = reason;
        d->progressing_us = progressing_us;
        d->revision = revision;
        if (d->has_set[d->c_template] && d->revision == 0)
            d->revision = 1;
        return has_changed;
    }
    set_pause_condition(world, d);
    if (!d->c_paused)
        set_progress(world, d, replicas, updated, available);
    bool is_available = available >= d->c_replicas - (d->is_surging ? 0 : 1);
    bool differs = d->observed_generation != d->generation || d->s_replicas != replicas ||
                   d->s_updated != updated || d->s_available != available ||
                   d->is_available != is_available || d->progressing_reason != reason ||
                   d->progressing_us != progressing_us || d->revision != revision;
    if (!differs)
        return has_changed;
    d->observed_generation = d->generation;
    d->s_replicas = replicas;
    d->s_updated = updated;
    d->s_available = available;
    d->is_available = is_available;
    if (updated == d->c_replicas && replicas == updated && available == updated)
        d->has_begun = false;
    world_store_deployment(world, d, false);
    d->c_version = d->now;
    world_say(world, "controller: %s status generation %lld/%lld: %d/%d/%d of %d, %s", d->name,
              (long long)d->observed_generation, (long long)d->generation, updated, replicas,
              available, d->c_replicas, d->progressing_reason ? d->progressing_reason : "-");
    return true;
}

/* Time enough for everything to happen that is under way there. */
void world_settle(struct world *world, struct deployment *d)
{
    for (int i = 0; i < 40; i++) {
        world_controller_sees(world, d);
        world_controller_syncs(world, d, true);
        world_kubelet(world, d, false);
    }
}

/* ---- kubelets ---- */

bool world_kubelet(struct world *world, struct deployment *d, bool crashes)
{
    if (!d->exists)
        return false;
    if (d->terminating > 0) {
        d->terminating--;
        return true;
    }
    for (int t = 0; t < TEMPLATES; t++) {
        if (crashes && d->ready[t] > 0) {
            d->ready[t]--;
            return true;
        }
        if (!crashes && d->ready[t] < d->pods[t] && !world->is_bad[t]) {
            d->ready[t]++;
            return true;
        }
    }
    return false;
}
