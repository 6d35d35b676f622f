/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far each target may be, from the cluster's side and from that of the servers outside: how
 * many Pods are updated is read from the target, and a step counts as passed when the servers have
 * given so many good answers to each question since it was reached. Of what slipway writes down
 * three things are believed, each of which shows elsewhere if it is wrong: which template was
 * promoted, which has failed, and the annotations by which people ask for something.
 *
 *     before its questions were answered      none
 *     at step k                               stop k; of a Deployment and one batch of surge plus
 *                                             unavailable, since its controller goes on by itself
 *     failed                                  no more than it has
 *
 * Excused is an update that went past a webhook, or one that could not know; what others do to its
 * size and its Pods; and what happens while no slipway leads, is awake, and hears from the API
 * server: that is what a Deployment's `deadMan` is for, and with it nothing of that is excused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slipway/apps.h>
#include <slipway/memory.h>
#include <slipway/watch.h>
#include <slipway/workloads.h>

#include "base/error.h"
#include "base/util.h"
#include "document.h"
#include "kind.h"
#include "kube/decode.h"
#include "runtime/core.h"
#include "runtime/instance.h"
#include "world_steps.h"

/* Of modules/stepping; its kind alone. */
extern const struct sw_kind step_kind;

/* After a fault: until watches are back, and what others began is over. */
#define WELL_MS 12000
/* A watch that has fallen silent is found dead after its own time, 10 minutes at most. */
#define SILENT_MS 640000
#define PASSING_MS 3000
/* A Pod's start and its end, twice. */
#define STIR_MS 12000

/* ---- who is well ---- */

static bool has_faults(const struct world *world, const struct replica *replica)
{
    return replica->asleep_until_ms || replica->cut_until_ms || replica->frozen_until_ms ||
           replica->deaf_until_ms || replica->is_stopping || !replica->core ||
           (!world->is_ending && replica->fault_scale > 0);
}

static bool hears(struct world *world, const struct replica *replica)
{
    struct steps *steps = world->stepping;
    uint64_t frozen = sw_sim_wire_counts(replica->wire).frozen;

    /* A connection that was cut may be half open afterwards. */
    if (frozen != steps->frozen[replica->index] || replica->cut_until_ms) {
        steps->frozen[replica->index] = frozen;
        steps->ill_ms = world->now_ms + SILENT_MS;
    }
    return !has_faults(world, replica);
}

/* All of them: what one writes is reviewed by any other. */
static bool are_well(struct world *world)
{
    bool is_led = false, is_expected;
    bool are_well = !world->webhook_down_until_ms && !world->controllers_down_until_ms &&
                    (!(world->case_.faults & FAULT_BEHIND) || world->is_ending);

    for (int i = 0; i < world->case_.replicas; i++) {
        const struct replica *replica = &world->replicas[i];
        is_expected = !(world->is_ending && !replica->core && !replica->dead_until_ms);
        are_well &= hears(world, replica) || !is_expected;
        is_led |= replica_is_leading(replica);
    }
    return are_well && is_led;
}

void steps_look(struct world *world)
{
    if (!are_well(world))
        world->stepping->ill_ms = SW_MAX(world->stepping->ill_ms, world->now_ms);
}

static bool is_well(const struct world *world)
{
    return world->now_ms >= world->stepping->ill_ms + WELL_MS;
}

/* ---- stops, by the specification ---- */

/* percentages round up */
static int64_t pods_of(const json_t *value, int64_t replicas)
{
    if (json_is_integer(value))
        return json_integer_value(value);
    return (atoll(json_string_value(value)) * replicas + 99) / 100;
}

/* The cumulative Pods of step number k; `replicas` beyond the last. */
static int64_t stop_of(const json_t *stepped, int64_t replicas, int k)
{
    const json_t *steps = sw_sim_at(stepped, "spec.steps");
    const json_t *size = sw_sim_at(stepped, "spec.stepSize");
    int64_t stop = 0;

    for (int i = 0; i < k && (i == 0 || stop < replicas); i++) {
        int64_t next;
        if (!steps)
            next = stop + (size ? SW_MAX(pods_of(size, replicas), 1) : 1);
        else if ((size_t)i < json_array_size(steps))
            next = SW_MAX(pods_of(json_array_get(steps, (size_t)i), replicas), stop + 1);
        else
            next = replicas;
        stop = SW_MIN(next, replicas);
    }
    return stop;
}

/* The first step that asks for more than there is. */
static int step_beyond(const json_t *stepped, int64_t replicas, int64_t updated)
{
    int k = 1;

    while (stop_of(stepped, replicas, k) <= updated && stop_of(stepped, replicas, k) < replicas)
        k++;
    return k;
}

static int64_t part_of(const json_t *value, int64_t replicas, bool rounds_up)
{
    if (!value || json_is_integer(value))
        return value ? json_integer_value(value) : (replicas + (rounds_up ? 3 : 0)) / 4;
    return (atoll(json_string_value(value)) * replicas + (rounds_up ? 99 : 0)) / 100;
}

static int64_t batch_of(const struct target *target, const json_t *object)
{
    int64_t replicas = steps_replicas(target, object);

    if (target->kind != TARGET_DEPLOYMENT)
        return 0;
    const json_t *rolling = sw_sim_at(object, "spec.strategy.rollingUpdate");
    int64_t batch = part_of(json_object_get(rolling, "maxSurge"), replicas, true) +
                    part_of(json_object_get(rolling, "maxUnavailable"), replicas, false);
    return SW_MAX(batch, 1);
}

/* ---- templates ---- */

static void hash_of(struct world *world, const struct target *target,
                    const struct sw_sim_object *stored, char ret[33])
{
    struct sw_decoder *decoder = world->stepping->decoders[target->kind];
    struct sw_object *object;
    struct sw_error error = {0};
    struct sw_hash128 hash;
    size_t len;
    const char *text = sw_sim_object_text(stored, &len);

    if (sw_decode_object(decoder, text, len, NAMESPACE, &object, &error)) {
        world_fail(world, "%s cannot be decoded: %s", target->name, error.text);
        return;
    }
    if (target->kind == TARGET_DEPLOYMENT)
        hash = sw_as_deployment(object)->template_hash;
    else if (target->kind == TARGET_STATEFUL_SET)
        hash = ((const struct sw_stateful_set *)(const void *)object)->template_hash;
    else
        hash = ((const struct sw_daemon_set *)(const void *)object)->template_hash;
    sw_hash128_text(hash, ret);
    sw_object_free(decoder, object);
}

static struct run *run_of(struct world *world, struct target *target)
{
    struct run *oldest = &target->runs[0];

    for (size_t i = 0; i < RUNS_MAX; i++) {
        struct run *run = &target->runs[i];
        if (strcmp(run->hash, target->hash) == 0) {
            run->used = ++world->stepping->uses;
            return run;
        }
        if (run->used < oldest->used)
            oldest = run;
    }
    *oldest = (struct run){.used = ++world->stepping->uses};
    snprintf(oldest->hash, sizeof oldest->hash, "%s", target->hash);
    return oldest;
}

static void forget_runs(struct target *target, const char *but)
{
    for (size_t i = 0; i < RUNS_MAX; i++)
        if (strcmp(target->runs[i].hash, but) != 0)
            target->runs[i] = (struct run){0};
}

/* ---- what has been answered ---- */

static bool asks(const json_t *stepped, enum question question)
{
    const char *key = question <= ASK_METRIC_1 ? "spec.analysis.metrics" : "spec.analysis.webhooks";
    size_t i;
    json_t *item;

    json_array_foreach(sw_sim_at(stepped, key), i, item)
    {
        const char *name = sw_sim_text_at(item, question <= ASK_METRIC_1 ? "name" : "type");
        if (strcmp(name, question_names[question]) == 0)
            return true;
    }
    return false;
}

static bool has(const json_t *stepped, const struct run *run, enum question question,
                uint64_t times)
{
    return !asks(stepped, question) || run->goods[question] >= times;
}

static bool may_begin(const json_t *stepped, const struct run *run)
{
    return has(stepped, run, ASK_CONFIRM_ROLLOUT, 1) && has(stepped, run, ASK_PRE_ROLLOUT, 1);
}

static bool may_go_on(const json_t *stepped, const struct run *run, int64_t replicas)
{
    uint64_t rounds = (uint64_t)sw_sim_int_at(stepped, "spec.analysis.iterations", 1);
    bool is_last = stop_of(stepped, replicas, run->step + 1) >= replicas;

    return has(stepped, run, ASK_METRIC_0, rounds) && has(stepped, run, ASK_METRIC_1, rounds) &&
           has(stepped, run, ASK_ROLLOUT, rounds) && has(stepped, run, ASK_CONFIRM_STEP, 1) &&
           (!is_last || has(stepped, run, ASK_CONFIRM_PROMOTION, 1));
}

static void pass(struct world *world, const struct target *target, struct run *run,
                 const json_t *stepped, int64_t updated)
{
    int64_t replicas = target->replicas;

    if (run->step == 0 && may_begin(stepped, run)) {
        run->step = 1;
        world_say(world, "judge: %s may begin", target->name);
    } else if (run->is_reached && may_go_on(stepped, run, replicas)) {
        run->step = SW_MAX(run->step + 1, step_beyond(stepped, replicas, updated));
        run->is_reached = false;
        world_say(world, "judge: %s may go on to step %d, %lld of %lld", target->name, run->step,
                  (long long)stop_of(stepped, replicas, run->step), (long long)replicas);
    }
}

static void reach(struct run *run, const json_t *stepped, int64_t replicas, int64_t updated)
{
    if (run->is_reached || run->step == 0 || updated < stop_of(stepped, replicas, run->step))
        return;
    run->is_reached = true;
    memset(run->goods, 0, sizeof run->goods);
}

void steps_answered(struct world *world, int t, enum question question, bool is_good)
{
    struct target *target = &world->stepping->targets[t];
    const json_t *stepped = steps_stepped(world, t), *object = steps_target(world, t);

    world->stepping->answers++;
    if (!is_good || !stepped || !object || !target->hash[0])
        return;
    world->stepping->goods++;
    struct run *run = run_of(world, target);
    run->goods[question]++;
    pass(world, target, run, stepped, steps_updated(target, object));
}

/* ---- excuses ---- */

void steps_excuse(struct world *world, int t)
{
    world->stepping->targets[t].excused_until_ms = world->now_ms + PASSING_MS;
    if (world->stepping->targets[t].hash[0])
        run_of(world, &world->stepping->targets[t])->is_excused = true;
    world_say(world, "judge: %s is excused for its steps", world->stepping->targets[t].name);
}

bool steps_knows(const struct world *world, const struct replica *replica, int t)
{
    const json_t *stepped = steps_stepped(world, t);
    const struct sw_instance *self = replica->core->instances[0];
    const struct sw_object *known;

    if (!stepped)
        return true;
    known = sw_lookup(self, &step_kind, NAMESPACE, sw_sim_text_at(stepped, "metadata.name"));
    return known && strcmp(known->resource_version,
                           sw_sim_text_at(stepped, "metadata.resourceVersion")) == 0;
}

/* What it must be seen with: as the SteppedRollout is now. */
static bool is_out_of_hand(const json_t *stepped)
{
    return !stepped || sw_sim_at(stepped, "metadata.deletionTimestamp") ||
           sw_sim_bool_at(stepped, "spec.suspend") ||
           sw_sim_bool_at(stepped, "spec.skipAnalysis") ||
           !sw_sim_text_at(stepped, "status.lastPromotedHash")[0] ||
           strcmp(condition_of(stepped, "Ready", "reason"), "InvalidSpec") == 0;
}

static bool is_stirred(const struct world *world, const struct target *target)
{
    return world->now_ms < target->stirred_ms + STIR_MS || world->drain.node;
}

static bool is_helpless(const struct world *world, const struct target *target,
                        const json_t *stepped)
{
    bool is_dead_man = target->kind == TARGET_DEPLOYMENT && sw_sim_bool_at(stepped, "spec.deadMan");
    uint64_t now = world->now_ms;

    return (!is_dead_man && !is_well(world)) || now < target->scaled_ms + STIR_MS ||
           is_stirred(world, target);
}

/* ---- the bound ---- */

static int64_t limit_of(const struct target *target, const struct run *run, const json_t *stepped,
                        const json_t *object)
{
    int64_t replicas = target->replicas;
    int64_t limit =
        run->step ? stop_of(stepped, replicas, run->step) + batch_of(target, object) : 0;

    if (run->is_whole)
        return replicas;
    if (run->is_failed)
        return run->base;
    return SW_MAX(limit, run->base);
}

/* What was let go before may still come; afterwards it can only become less. */
static void see_failure(struct world *world, struct target *target, struct run *run,
                        const json_t *stepped, const json_t *object, int64_t updated)
{
    bool is_failed = strcmp(sw_sim_text_at(stepped, "status.failedHash"), run->hash) == 0;

    if (is_failed && !run->is_failed) {
        run->base = SW_MAX(limit_of(target, run, stepped, object), updated);
        run->failed_ms = world->now_ms;
    } else if (is_failed && !is_stirred(world, target) && world->now_ms > run->failed_ms + STIR_MS)
        run->base = SW_MIN(run->base, updated + batch_of(target, object));
    run->is_failed = is_failed;
}

/* Made anew, or scaled to nothing: where no Pod is old its controller makes all at once. */
static bool has_nothing_old(const struct target *target, const json_t *object)
{
    return target->kind == TARGET_DEPLOYMENT && sw_sim_int_at(object, "status.replicas", 0) == 0;
}

static void judge(struct world *world, struct target *target, const json_t *object,
                  const json_t *stepped)
{
    int64_t updated = steps_updated(target, object);
    struct run *run = run_of(world, target);

    if (is_out_of_hand(stepped) || world->now_ms < target->excused_until_ms ||
        has_nothing_old(target, object))
        run->is_excused = true;
    if (strcmp(sw_sim_text_at(stepped, "status.lastPromotedHash"), target->hash) == 0) {
        forget_runs(target, "");
        return;
    }
    if (run->is_excused)
        return;
    if (!run->is_seen && annotation_of(object, "slipway.dev/held-by")[0])
        run->base = updated; /* an older template, of which there are Pods yet */
    run->is_seen = true;
    see_failure(world, target, run, stepped, object, updated);
    pass(world, target, run, stepped, updated);
    int64_t limit = limit_of(target, run, stepped, object);
    if (run->step && !run->is_failed && !run->is_whole)
        world->stepping->overshoot_most =
            SW_MAX(world->stepping->overshoot_most,
                   (uint64_t)SW_MAX(updated - stop_of(stepped, target->replicas, run->step), 0));
    if (updated > limit && is_helpless(world, target, stepped)) {
        world_say(world, "judge: nobody can help it that %s has %lld updated", target->name,
                  (long long)updated);
        run->base = updated;
    } else if (updated > limit) {
        world_fail(world, "%s has %lld of %lld updated, and may have %lld: step %d%s, %s",
                   target->name, (long long)updated, (long long)target->replicas, (long long)limit,
                   run->step, run->is_failed ? " of what has failed" : "",
                   run->is_reached ? "whose checks are not passed" : "not yet reached");
    }
    reach(run, stepped, target->replicas, updated);
}

/* ---- releases ---- */

/* The status is written first, so that whoever takes over at any moment finds what was meant. */
static void see_release(struct world *world, struct target *target, const json_t *before,
                        const json_t *object, const json_t *stepped)
{
    char owner[32];
    const char *activity = sw_sim_text_at(stepped, "status.activity");

    snprintf(owner, sizeof owner, "stepping/%s", sw_sim_text_at(stepped, "metadata.name"));
    if (!stepped || !list_has(annotation_of(object, "slipway.dev/released-by"), owner) ||
        (before && list_has(annotation_of(before, "slipway.dev/released-by"), owner)))
        return;
    world->stepping->releases++;
    /* Where several lead, another one may have begun anew meanwhile. */
    if (is_out_of_hand(stepped) || run_of(world, target)->is_excused ||
        (world->case_.faults & FAULT_NO_LEASE && world->case_.replicas > 1) ||
        strcmp(sw_sim_text_at(stepped, "status.lastPromotedHash"), target->hash) == 0)
        return;
    /* It may have failed since: then the release was on its way, and the hold follows. */
    if (strcmp(sw_sim_text_at(stepped, "status.lastAppliedHash"), target->hash) != 0 ||
        !activity[0] || strcmp(activity, "Questions") == 0 || strcmp(activity, "Analysing") == 0)
        world_fail(world, "%s is released before its status says so: it says '%s'", target->name,
                   activity);
}

/* ---- changes ---- */

static void see_target(struct world *world, int t, const struct sw_sim_change *change)
{
    struct target *target = &world->stepping->targets[t];
    const json_t *object = sw_sim_object_json(change->object);
    const json_t *before = change->before ? sw_sim_object_json(change->before) : NULL;
    const json_t *stepped = steps_stepped(world, t);

    if (change->type == SW_SIM_DELETED) {
        target->hash[0] = '\0';
        forget_runs(target, "");
        return;
    }
    if (!before || sw_sim_int_at(before, "metadata.generation", 0) !=
                       sw_sim_int_at(object, "metadata.generation", 0))
        hash_of(world, target, change->object, target->hash);
    int64_t replicas = steps_replicas(target, object);
    if (replicas != target->replicas)
        target->scaled_ms = world->now_ms;
    target->replicas = replicas;
    if (!before) /* all its Pods are new: there is nothing to be stepped */
        run_of(world, target)->is_excused = true;
    see_release(world, target, before, object, stepped);
    if (steps_is_observed(object))
        judge(world, target, object, stepped);
    else if (is_out_of_hand(stepped) || world->now_ms < target->excused_until_ms)
        run_of(world, target)->is_excused = true;
}

/* People have asked for it. */
static void see_promotion(struct world *world, struct target *target, const json_t *stepped)
{
    const char *promote = annotation_of(stepped, "slipway.dev/promote");
    bool is_asked = promote[0];

    if (is_asked && !target->is_granted && target->hash[0]) {
        struct run *run = run_of(world, target);
        if (strcmp(promote, "full") == 0)
            run->is_whole = true;
        run->step++;
        run->is_reached = false;
    }
    target->is_granted = is_asked;
}

static void see_stepped(struct world *world, const struct sw_sim_change *change)
{
    const json_t *json = sw_sim_object_json(change->object);
    int t = steps_target_named(world, sw_sim_text_at(json, "spec.targetRef.name"));

    if (t < 0)
        return;
    struct target *target = &world->stepping->targets[t];
    const json_t *stepped = steps_stepped(world, t);
    const char *uid = stepped ? sw_sim_text_at(stepped, "metadata.uid") : "";
    if (strcmp(target->stepped_uid, uid) != 0) { /* another one counts */
        snprintf(target->stepped_uid, sizeof target->stepped_uid, "%s", uid);
        target->is_granted = false;
        forget_runs(target, "");
    }
    if (!stepped || !target->hash[0])
        return;
    see_promotion(world, target, stepped);
    if (is_out_of_hand(stepped) ||
        strcmp(annotation_of(stepped, "slipway.dev/abort"), "release") == 0)
        run_of(world, target)->is_excused = true;
    const json_t *object = steps_target(world, t);
    if (object && steps_is_observed(object))
        judge(world, target, object, stepped);
}

static void tell(const struct world *world, const struct sw_sim_change *change)
{
    static const char *const verbs[] = {"added", "modified", "deleted"};
    const json_t *o = sw_sim_object_json(change->object);

    if (change->object->kind == world->stepping->stepped) {
        world_say(
            world,
            "store: %llu %s %s: %s %s step %s updated %s rounds %lld failed %lld Ready %s %s: "
            "%s",
            (unsigned long long)change->version, change->object->name, verbs[change->type],
            sw_sim_text_at(o, "status.phase"), sw_sim_text_at(o, "status.activity"),
            sw_sim_text_at(o, "status.step"), sw_sim_text_at(o, "status.updated"),
            (long long)sw_sim_int_at(o, "status.iterations", 0),
            (long long)sw_sim_int_at(o, "status.failedChecks", 0),
            condition_of(o, "Ready", "status"), condition_of(o, "Ready", "reason"),
            sw_sim_text_at(o, "status.message"));
        return;
    }
    char *strategy = json_dumps(sw_sim_at(o, "spec.updateStrategy"), JSON_COMPACT);
    world_say(world,
              "store: %llu %s %s: %s want %lld replicas %lld updated %lld ready %lld, held "
              "'%s' released '%s' saved %s",
              (unsigned long long)change->version, change->object->name, verbs[change->type],
              strategy ? strategy : "", (long long)sw_sim_int_at(o, "spec.replicas", -1),
              (long long)sw_sim_int_at(o, "status.replicas", -1),
              (long long)(sw_sim_int_at(o, "status.updatedReplicas", 0) +
                          sw_sim_int_at(o, "status.updatedNumberScheduled", 0)),
              (long long)(sw_sim_int_at(o, "status.readyReplicas", 0) +
                          sw_sim_int_at(o, "status.numberReady", 0)),
              annotation_of(o, "slipway.dev/held-by"), annotation_of(o, "slipway.dev/released-by"),
              annotation_of(o, "slipway.dev/saved"));
    free(strategy);
}

void steps_see(struct world *world, const struct sw_sim_change *change)
{
    const struct sw_sim_kind *kind = change->object->kind;
    const struct steps *steps = world->stepping;
    bool is_target = kind == steps->kinds[0] || kind == steps->kinds[1] || kind == steps->kinds[2];
    int t = is_target ? steps_target_named(world, change->object->name) : -1;

    if (world->is_loud && (kind == steps->stepped || (t >= 0 && kind != steps->kinds[0])))
        tell(world, change);
    if (t >= 0)
        see_target(world, t, change);
    else if (kind == steps->stepped)
        see_stepped(world, change);
}

/* ---- Pods that we delete ---- */

struct pods {
    const char *owner, *newest;
    int64_t revision, old;
};

static bool is_owned(const json_t *object, const char *uid)
{
    const json_t *owner = json_array_get(sw_sim_at(object, "metadata.ownerReferences"), 0);

    return strcmp(sw_sim_text_at(owner, "uid"), uid) == 0;
}

static const char *revision_label(const json_t *object)
{
    const char *text = json_string_value(
        json_object_get(sw_sim_at(object, "metadata.labels"), "controller-revision-hash"));

    return text ? text : "";
}

static int find_newest(void *arg, const struct sw_sim_object *object)
{
    struct pods *pods = arg;
    const json_t *json = sw_sim_object_json(object);

    if (is_owned(json, pods->owner) && sw_sim_int_at(json, "revision", 0) > pods->revision) {
        pods->revision = sw_sim_int_at(json, "revision", 0);
        pods->newest = revision_label(json);
    }
    return 0;
}

static int count_old(void *arg, const struct sw_sim_object *object)
{
    struct pods *pods = arg;
    const json_t *json = sw_sim_object_json(object);

    pods->old += is_owned(json, pods->owner) && !sw_sim_at(json, "metadata.deletionTimestamp") &&
                 strcmp(revision_label(json), pods->newest) != 0;
    return 0;
}

/* Of a DaemonSet old ones, down to the stop; of a StatefulSet those of what has failed, and broken
 * ones of before, behind which others would wait for ever. */
static void judge_delete(struct world *world, int t, const json_t *object, const json_t *pod)
{
    struct target *target = &world->stepping->targets[t];
    const json_t *stepped = steps_stepped(world, t);
    struct run *run = run_of(world, target);
    struct pods pods = {.owner = sw_sim_text_at(object, "metadata.uid"), .newest = ""};

    if (is_out_of_hand(stepped) || run->is_excused || !steps_is_observed(object) ||
        sw_sim_at(pod, "metadata.deletionTimestamp"))
        return;
    if (target->kind == TARGET_STATEFUL_SET) {
        bool is_old =
            strcmp(revision_label(pod), sw_sim_text_at(object, "status.updateRevision")) != 0;
        if (strcmp(sw_sim_text_at(stepped, "status.failedHash"), target->hash) != 0 &&
            (!is_old || strcmp(condition_of(pod, "Ready", "status"), "True") == 0))
            world_fail(world, "a Pod of %s is deleted, which has not failed", target->name);
        return;
    }
    sw_sim_store_each(world->store, world->stepping->revisions, NAMESPACE, NULL, find_newest,
                      &pods);
    sw_sim_store_each(world->store, world->stepping->pods, NAMESPACE, NULL, count_old, &pods);
    bool is_old = strcmp(revision_label(pod), pods.newest) != 0;
    bool is_promoted =
        strcmp(sw_sim_text_at(stepped, "status.lastPromotedHash"), target->hash) == 0;
    int64_t may_be = is_promoted ? target->replicas : limit_of(target, run, stepped, object);
    if (!is_old)
        world_fail(world, "a Pod of %s is deleted that is updated already", target->name);
    else if (target->replicas - (pods.old - 1) > may_be && !is_helpless(world, target, stepped))
        world_fail(world, "%s: a Pod is deleted although %lld of %lld are old, and %lld may be new",
                   target->name, (long long)pods.old, (long long)target->replicas,
                   (long long)may_be);
}

void steps_see_delete(struct world *world, const char *path)
{
    const char *at = strstr(path, "/pods/");
    char name[128];

    if (!at)
        return;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(at + 6, "?"), at + 6);
    const struct sw_sim_object *pod =
        sw_sim_store_get(world->store, world->stepping->pods, NAMESPACE, name);
    const char *app = pod ? json_string_value(json_object_get(
                                sw_sim_at(sw_sim_object_json(pod), "metadata.labels"), "app"))
                          : NULL;
    int t = app ? steps_target_named(world, app) : -1;
    const json_t *object = t >= 0 ? steps_target(world, t) : NULL;
    if (!object)
        return;
    if (world->stepping->targets[t].kind == TARGET_DEPLOYMENT)
        world_fail(world, "slipway deletes the Pod %s of a Deployment", name);
    else
        judge_delete(world, t, object, sw_sim_object_json(pod));
}
