/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the stepped half of a case must end. First, with users gone and faults off, but servers still
 * as they were: each SteppedRollout comes to an end, or says what it waits for. Then all is put
 * right, and all must be promoted. At last the SteppedRollouts are deleted, and nothing of ours may
 * be left anywhere.
 */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "document.h"
#include "kind.h"
#include "world_steps.h"

/* Rounds, retries of webhooks and deadlines of steps are minutes at most, one after the other. */
#define SETTLE_MS 3600000
#define LEAVE_MS 120000
#define LOOK_MS 2000

static void run_for(struct world *world, uint64_t ms)
{
    uint64_t until = world->now_ms + ms;

    while (!world->failure[0] && world_turn(world, until))
        ;
    judge_look(world);
}

/* ---- an end, or a word ---- */

static bool is_one_of(const char *text, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(*list, text) == 0)
            return true;
    return false;
}

static bool is_settled(const json_t *stepped, bool is_held_by_people)
{
    static const char *const ends[] = {"Initialized", "Succeeded", "Failed", NULL};
    static const char *const waits[] = {"Waiting", "WaitingPromotion", "Held", "Initializing",
                                        NULL};
    const char *phase = sw_sim_text_at(stepped, "status.phase");
    const char *activity = sw_sim_text_at(stepped, "status.activity");
    bool says_why = sw_sim_text_at(stepped, "status.message")[0] ||
                    condition_of(stepped, "Ready", "message")[0];

    if (says_why && (strcmp(condition_of(stepped, "Ready", "status"), "False") == 0 ||
                     sw_sim_bool_at(stepped, "spec.suspend")))
        return true;
    /* A rollback that waits for its turn says so. */
    bool is_held = is_held_by_people ||
                   strstr(sw_sim_text_at(stepped, "status.message"), "is back; held by") != NULL;

    if (is_one_of(phase, ends))
        return is_held ||
               (strcmp(activity, "Retreating") != 0 && strcmp(activity, "RollingBack") != 0);
    return is_one_of(phase, waits) && says_why;
}

struct settling {
    struct world *world;
    char why[256];
    bool is_over;
};

static int look_at(void *arg, const struct sw_sim_object *object)
{
    struct settling *settling = arg;
    const json_t *stepped = sw_sim_object_json(object);

    int t = steps_target_named(settling->world, sw_sim_text_at(stepped, "spec.targetRef.name"));
    const json_t *target = t >= 0 ? steps_target(settling->world, t) : NULL;
    if (is_settled(stepped, target && annotation_of(target, "slipway.dev/hold")[0]))
        return 0;
    settling->is_over = false;
    snprintf(settling->why, sizeof settling->why, "%s is %s, %s: %s", object->name,
             sw_sim_text_at(stepped, "status.phase"), sw_sim_text_at(stepped, "status.activity"),
             sw_sim_text_at(stepped, "status.message"));
    return 0;
}

void steps_settle(struct world *world)
{
    struct settling settling = {.world = world};

    /* Until what is heard late has been heard: a watch may be silent. */
    if (world->stepping->ill_ms > world->now_ms)
        run_for(world, world->stepping->ill_ms - world->now_ms);
    uint64_t until = world->now_ms + SETTLE_MS;
    while (!settling.is_over && !world->failure[0] && world->now_ms < until) {
        run_for(world, LOOK_MS);
        settling.is_over = true;
        sw_sim_store_each(world->store, world->stepping->stepped, NAMESPACE, NULL, look_at,
                          &settling);
    }
    if (!settling.is_over)
        world_fail(world, "it neither ends nor says what it waits for: %s", settling.why);
}

/* ---- promoted ---- */

static bool stepped_rests(const json_t *stepped, bool counts, char *why, size_t size)
{
    const char *phase = sw_sim_text_at(stepped, "status.phase");
    const char *reason = condition_of(stepped, "Ready", "reason");
    const char *name = sw_sim_text_at(stepped, "metadata.name");

    if (!counts && strcmp(reason, "Conflict") == 0)
        return true;
    if (counts && strcmp(reason, "InvalidSpec") == 0)
        return true;
    if (!counts || (strcmp(phase, "Succeeded") != 0 && strcmp(phase, "Initialized") != 0)) {
        snprintf(why, size, "%s ends %s, %s: %s, Ready %s: %s", name, phase,
                 sw_sim_text_at(stepped, "status.activity"),
                 sw_sim_text_at(stepped, "status.message"), reason,
                 condition_of(stepped, "Ready", "message"));
        return false;
    }
    return true;
}

static bool is_at_rest(const struct target *target, const json_t *object)
{
    int64_t want = steps_replicas(target, object);
    bool is_daemon_set = target->kind == TARGET_DAEMON_SET;

    return steps_is_observed(object) && steps_updated(target, object) == want &&
           sw_sim_int_at(object, is_daemon_set ? "status.numberReady" : "status.readyReplicas",
                         0) == want;
}

/* As its people made it. (Marks stay while there is a SteppedRollout.) */
static bool is_restored(const struct target *target, const json_t *object, char *why, size_t size)
{
    const char *key = target->kind == TARGET_DEPLOYMENT ? "spec.strategy" : "spec.updateStrategy";
    const json_t *strategy = sw_sim_at(object, key);
    char *text;

    if (annotation_of(object, "slipway.dev/saved")[0]) {
        snprintf(why, size, "%s keeps saved", target->name);
        return false;
    }
    if (target->kind != TARGET_DEPLOYMENT &&
        (annotation_of(object, "slipway.dev/held-by")[0] ||
         annotation_of(object, "slipway.dev/released-by")[0])) {
        snprintf(why, size, "%s is left held by '%s', released by '%s'", target->name,
                 annotation_of(object, "slipway.dev/held-by"),
                 annotation_of(object, "slipway.dev/released-by"));
        return false;
    }
    if (sw_sim_int_at(object, "spec.minReadySeconds", 0) != target->min_ready_seconds ||
        (target->kind == TARGET_DEPLOYMENT &&
         sw_sim_int_at(object, "spec.progressDeadlineSeconds", 0) != target->deadline_seconds)) {
        snprintf(why, size, "%s ends with minReadySeconds %lld, progressDeadlineSeconds %lld",
                 target->name, (long long)sw_sim_int_at(object, "spec.minReadySeconds", 0),
                 (long long)sw_sim_int_at(object, "spec.progressDeadlineSeconds", 0));
        return false;
    }
    if (json_equal(strategy, target->strategy))
        return true;
    text = json_dumps(strategy, JSON_COMPACT);
    snprintf(why, size, "%s ends with the strategy %s", target->name, text ? text : "none");
    free(text);
    return false;
}

struct resting {
    struct world *world;
    char *why;
    size_t size;
};

static int look_at_rest(void *arg, const struct sw_sim_object *object)
{
    struct resting *resting = arg;
    const json_t *stepped = sw_sim_object_json(object);
    int t = steps_target_named(resting->world, sw_sim_text_at(stepped, "spec.targetRef.name"));
    bool counts = t >= 0 && steps_stepped(resting->world, t) == stepped;

    if (t < 0 || !steps_target(resting->world, t))
        return 0;
    return !stepped_rests(stepped, counts, resting->why, resting->size);
}

bool steps_rest(struct world *world, char *why, size_t size)
{
    struct resting resting = {world, why, size};

    for (int t = 0; t < world->stepping->count; t++) {
        const struct target *target = &world->stepping->targets[t];
        const json_t *object = steps_target(world, t);
        if (!object)
            continue;
        if (!is_at_rest(target, object)) {
            snprintf(why, size, "%s is left with something to roll", target->name);
            return false;
        }
        if (!is_restored(target, object, why, size))
            return false;
    }
    return !sw_sim_store_each(world->store, world->stepping->stepped, NAMESPACE, NULL, look_at_rest,
                              &resting);
}

/* ---- gone ---- */

static bool has_left(struct world *world, char *why, size_t size)
{
    static const char *const ours[] = {"slipway.dev/stepped-by", "slipway.dev/saved"};

    if (sw_sim_store_count(world->store, world->stepping->stepped) > 0) {
        snprintf(why, size, "a SteppedRollout does not go");
        return false;
    }
    for (int t = 0; t < world->stepping->count; t++) {
        const json_t *object = steps_target(world, t);
        if (!object)
            continue;
        for (size_t i = 0; i < SW_ARRAY_SIZE(ours); i++)
            if (annotation_of(object, ours[i])[0]) {
                snprintf(why, size, "%s keeps %s", world->stepping->targets[t].name, ours[i]);
                return false;
            }
        if (!is_restored(&world->stepping->targets[t], object, why, size))
            return false;
    }
    return true;
}

void steps_leave(struct world *world)
{
    uint64_t until = world->now_ms + LEAVE_MS;
    char why[256] = "";

    world_say(world, "the SteppedRollouts are deleted");
    steps_delete_all(world);
    do
        run_for(world, LOOK_MS);
    while (!world->failure[0] && !has_left(world, why, sizeof why) && world->now_ms < until);
    if (!world->failure[0] && !has_left(world, why, sizeof why))
        world_fail(world, "something of ours is left: %s", why);
}
