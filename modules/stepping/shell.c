/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What wakes the plan of a SteppedRollout is a change of it or of its target, an answer, the end of
 * a round, or a deadline that the plan itself has named; never a poll. A change that shows that the
 * target has reached its stop does not even wait for the queue: each Pod's turn counts.
 */
#include "shell.h"

#include <string.h>

#include <slipway/admission.h>
#include <slipway/arbiter.h>
#include <slipway/memory.h>
#include <slipway/queue.h>
#include <slipway/record.h>
#include <slipway/telemetry.h>
#include <slipway/time.h>
#include <slipway/watch.h>

#include "metric_template.h"
#include "review.h"
#include "target.h"

/* ---- what there is ---- */

const struct stepped *step_shell_object(struct sw_instance *self, const struct step_entry *entry)
{
    const struct sw_object *object = sw_lookup(self, &step_kind, entry->namespace_, entry->name);

    return object && strcmp(object->uid, entry->uid) == 0 ? step_as_stepped(object) : NULL;
}

static const struct sw_object *target_object(struct sw_instance *self,
                                             const struct step_entry *entry)
{
    if (!entry->has_target)
        return NULL;
    return sw_lookup(self, step_kind_of(entry->target_kind), entry->namespace_, entry->target_name);
}

bool step_shell_target(struct sw_instance *self, const struct step_entry *entry,
                       struct sw_arena *arena, struct step_target *ret_target)
{
    const struct sw_object *object = target_object(self, entry);
    struct sw_question question = {.object = object, .arena = arena};
    struct sw_opinion others;

    if (!object)
        return false;
    step_target_of(object, entry->name, arena, ret_target);
    sw_arbiters_ask_others(self, &question, &others);
    ret_target->others = others.verdict;
    ret_target->others_words = others.words;
    ret_target->others_owners = others.owners;
    return true;
}

/* ---- what is said ---- */

static void say_one(struct sw_instance *self, const struct step_remark *remark,
                    const struct stepped *object, const struct sw_object *target)
{
    sw_record(self, &object->meta, remark->type, remark->reason, "%s", remark->message);
    if (remark->is_also_of_target && target)
        sw_record(self, target, remark->type, remark->reason, "%s", remark->message);
}

static void tell_webhooks(struct sw_instance *self, const struct step_remark *remarks,
                          const struct stepped *object, const char *phase, const char *hash)
{
    struct step_state *state = sw_state(self);
    struct sw_arena *arena = sw_arena_new(0);
    struct step_spec spec;
    const char *error;

    if (object->webhooks.count > 0 && !step_spec_parse(object, arena, &spec, &error))
        for (; remarks; remarks = remarks->next)
            step_rounds_tell(state->rounds, &spec, phase, hash, remarks->type == SW_WARNING,
                             remarks->message);
    sw_arena_free(arena);
}

void step_shell_say(struct sw_instance *self, const struct step_entry *entry, const char *phase,
                    const struct step_remark *remarks)
{
    const struct stepped *object = step_shell_object(self, entry);
    const struct sw_object *target = target_object(self, entry);

    if (!object || !remarks)
        return;
    tell_webhooks(self, remarks, object, phase, object->last_applied_hash);
    if (target && entry->target_kind == STEP_DEPLOYMENT) {
        char rollout[SW_ROLLOUT_SIZE];
        sw_rollout_text(sw_as_deployment(target), rollout);
        sw_say_about(self, rollout, NULL);
        for (; remarks; remarks = remarks->next)
            say_one(self, remarks, object, target);
        sw_say_about(self, NULL, NULL);
        return;
    }
    for (; remarks; remarks = remarks->next)
        say_one(self, remarks, object, target);
}

/* ---- the snapshot ---- */

static void add_look(struct sw_instance *self, const struct step_entry *entry,
                     const struct stepped *object, struct sw_arena *arena,
                     struct step_target *target)
{
    const struct step_look *look = entry->look;

    target->look_error = entry->look_error;
    if (!look || strcmp(look->target_uid, target->object->uid) != 0)
        return;
    struct step_revision *revisions =
        SW_ARENA_ARRAY(arena, look->revision_count + 1, struct step_revision);
    for (size_t i = 0; i < look->revision_count; i++) {
        revisions[i] = look->revisions[i];
        revisions[i].is_promoted = object->promoted_revision[0] &&
                                   strcmp(revisions[i].name, object->promoted_revision) == 0;
    }
    target->revisions = revisions;
    target->revision_count = look->revision_count;
    target->revisions_age_ms = sw_time_ms(self) - look->at_ms;
    target->revisions_idle_ms = sw_time_ms(self) - look->came_ms;
    target->revisions_version = look->target_version;
}

static void measure_overshoot(struct sw_instance *self, struct step_entry *entry,
                              const struct stepped *object, const struct step_target *target)
{
    struct step_state *state = sw_state(self);

    if (!entry->is_stopping || !target->is_observed)
        return;
    entry->is_stopping = false;
    if (target->is_held)
        step_meter_overshoot(&state->meter, target->updated - object->stop);
}

static void run_plan(struct sw_instance *self, struct step_entry *entry, const char *run_id)
{
    struct step_state *state = sw_state(self);
    const struct stepped *object = step_shell_object(self, entry);

    if (!object)
        return;
    struct step_kept *kept = step_kept_new();
    struct step_spec spec;
    struct step_target target;
    struct step_result result = {0};
    struct step_snapshot snapshot = {
        .object = object,
        .spec_error = "",
        .target_kinds_are_synced =
            !entry->has_target || sw_is_synced(self, step_kind_of(entry->target_kind)),
        .now_ms = sw_time_ms(self),
        .wall_us = sw_time_wall_us(self),
        .random = sw_time_random(self),
        .term = sw_term(self),
    };
    if (step_spec_parse(object, kept->arena, &spec, &snapshot.spec_error) == 0)
        snapshot.spec = &spec;
    if (step_shell_target(self, entry, kept->arena, &target)) {
        const struct step_entry *oldest = step_index_oldest(state->index, entry->target_kind,
                                                            entry->namespace_, entry->target_name);
        snapshot.target = &target;
        snapshot.conflict = oldest != entry ? sw_arena_strdup(kept->arena, oldest->name) : NULL;
        add_look(self, entry, object, kept->arena, &target);
        measure_overshoot(self, entry, object, &target);
    }
    if (!entry->memory)
        entry->memory = step_memory_new();
    step_plan(entry->memory, &snapshot, kept->arena, &result);
    for (const struct step_action *action = result.actions; action; action = action->next)
        step_carry_out(self, entry, action, kept, run_id);
    step_shell_say(self, entry, object->phase, result.remarks);
    if (result.look_again_ms != UINT64_MAX)
        sw_queue_add_after(state->queue,
                           sw_arena_printf(kept->arena, "%s/%s", entry->namespace_, entry->name),
                           result.look_again_ms);
    step_kept_unref(kept);
}

static enum sw_result reconcile(struct sw_instance *self, void *arg, struct sw_run *run)
{
    struct step_state *state = sw_state(self);
    const char *key = sw_run_key(run);
    const char *name = strchr(key, '/') + 1;
    const char *namespace_ = sw_arena_strndup(sw_run_arena(run), key, (size_t)(name - key) - 1);
    struct step_entry *entry = step_index_get(state->index, namespace_, name);

    (void)arg;
    if (entry)
        run_plan(self, entry, sw_run_id(run));
    return SW_DONE;
}

void step_shell_wake(struct sw_instance *self, const struct step_entry *entry)
{
    struct step_state *state = sw_state(self);
    struct sw_arena *arena = sw_arena_new(256);

    sw_queue_add(state->queue, sw_arena_printf(arena, "%s/%s", entry->namespace_, entry->name));
    sw_arena_free(arena);
}

static void wake(void *arg, struct step_entry *entry)
{
    step_shell_wake(arg, entry);
}

/* ---- SteppedRollouts ---- */

/* What hangs on it for the leader. */
static void forget(struct sw_instance *self, struct step_entry *entry)
{
    step_ask_free(self, entry);
    step_look_cancel(entry->looking);
    entry->looking = NULL;
    entry->look = step_look_free(entry->look);
    entry->look_error = sw_free(entry->look_error);
    entry->memory = step_memory_free(entry->memory);
    entry->stop_seen_us = 0;
    entry->is_stopping = false;
}

/* Who counts for a target may be another now; and what the arbiter says of it. */
static void wake_target(struct sw_instance *self, enum step_target_kind kind,
                        const char *namespace_, const char *name)
{
    struct step_state *state = sw_state(self);
    const struct sw_object *object = sw_lookup(self, step_kind_of(kind), namespace_, name);

    step_index_each_of(state->index, kind, namespace_, name, wake, self);
    if (object)
        step_orphans_look_at(self, object);
    sw_opinion_changed(self, step_kind_of(kind), namespace_, name);
}

static void on_stepped(struct sw_instance *self, void *arg, const struct sw_delta *delta)
{
    struct step_state *state = sw_state(self);
    const struct stepped *now = step_as_stepped(delta->now), *old = step_as_stepped(delta->old);
    enum step_target_kind kind;

    (void)arg;
    if (now) {
        struct step_entry *entry = step_index_put(state->index, now);
        if (entry->has_target)
            wake_target(self, entry->target_kind, entry->namespace_, entry->target_name);
        step_shell_wake(self, entry);
    } else {
        struct step_entry *entry =
            step_index_get(state->index, old->meta.namespace_, old->meta.name);
        if (entry) {
            forget(self, entry);
            step_index_remove(state->index, entry);
        }
    }
    bool has_moved = old && (!now || strcmp(now->target_name, old->target_name) != 0 ||
                             strcmp(now->target_kind, old->target_kind) != 0);
    if (has_moved && step_target_kind_named(old->target_api_version, old->target_kind, &kind))
        wake_target(self, kind, old->meta.namespace_, old->target_name);
}

static void on_stepped_listed(struct sw_instance *self, void *arg)
{
    (void)arg;
    step_orphans_look_at_all(self);
}

/* ---- targets ---- */

static bool has_reached(struct sw_instance *self, const struct step_entry *entry,
                        const struct sw_deployment *deployment)
{
    const struct stepped *object = step_shell_object(self, entry);

    return object && object->stop > 0 && object->stop < deployment->replicas &&
           !deployment->is_paused && deployment->updated_replicas >= object->stop &&
           deployment->observed_generation >= deployment->meta.generation;
}

/* The hold leaves before the next change is even looked at. */
static void hold_at_stop(struct sw_instance *self, const struct sw_delta *delta)
{
    struct step_state *state = sw_state(self);
    const struct sw_deployment *deployment = sw_as_deployment(delta->now);
    struct step_entry *entry = step_index_oldest(
        state->index, STEP_DEPLOYMENT, deployment->meta.namespace_, deployment->meta.name);

    if (!entry || !entry->memory || !has_reached(self, entry, deployment))
        return;
    if (!entry->stop_seen_us)
        entry->stop_seen_us = sw_time_wall_us(self);
    run_plan(self, entry, NULL);
}

static void on_target(struct sw_instance *self, void *arg, const struct sw_delta *delta)
{
    struct step_state *state = sw_state(self);
    const struct sw_object *object = delta->now ? delta->now : delta->old;
    enum step_target_kind kind = object->kind == &sw_kind_stateful_set ? STEP_STATEFUL_SET
                                 : object->kind == &sw_kind_daemon_set ? STEP_DAEMON_SET
                                                                       : STEP_DEPLOYMENT;

    (void)arg;
    step_index_each_of(state->index, kind, object->namespace_, object->name, wake, self);
    if (!delta->now)
        return;
    step_orphans_look_at(self, object);
    if (state->is_leading && kind == STEP_DEPLOYMENT)
        hold_at_stop(self, delta);
}

/* What others say of a target is part of what the plan looks at. */
static void on_opinion(struct sw_instance *self, enum step_target_kind kind, const char *namespace_,
                       const char *name)
{
    struct step_state *state = sw_state(self);

    step_index_each_of(state->index, kind, namespace_, name, wake, self);
}

static void on_opinion_of_deployment(struct sw_instance *self, const char *namespace_,
                                     const char *name)
{
    on_opinion(self, STEP_DEPLOYMENT, namespace_, name);
}

static void on_opinion_of_stateful_set(struct sw_instance *self, const char *namespace_,
                                       const char *name)
{
    on_opinion(self, STEP_STATEFUL_SET, namespace_, name);
}

static void on_opinion_of_daemon_set(struct sw_instance *self, const char *namespace_,
                                     const char *name)
{
    on_opinion(self, STEP_DAEMON_SET, namespace_, name);
}

/* ---- leadership ---- */

static void forget_one(void *arg, struct step_entry *entry)
{
    forget(arg, entry);
}

/* The memory belongs to one leadership: who leads again knows nothing of before. */
static void on_leading(struct sw_instance *self, bool is_leading)
{
    struct step_state *state = sw_state(self);

    step_index_each(state->index, forget_one, self);
    state->is_leading = is_leading;
    state->leading++;
    if (!is_leading)
        return;
    step_index_each(state->index, wake, self);
    step_orphans_look_at_all(self);
}

/* ---- the arbiter ---- */

static const struct step_entry *stepping(struct sw_instance *self, const struct sw_object *object,
                                         const char *namespace_)
{
    const struct step_state *state = sw_state(self);
    enum step_target_kind kind = object->kind == &sw_kind_stateful_set ? STEP_STATEFUL_SET
                                 : object->kind == &sw_kind_daemon_set ? STEP_DAEMON_SET
                                                                       : STEP_DEPLOYMENT;

    return step_index_oldest(state->index, kind, namespace_, object->name);
}

static void ask(struct sw_instance *self, const struct sw_question *question,
                struct sw_opinion *opinion)
{
    const struct step_entry *entry = stepping(self, question->object, question->object->namespace_);
    struct step_spec spec;
    struct step_target target;
    const char *error;

    if (!entry)
        return;
    const struct stepped *object = step_shell_object(self, entry);
    bool is_valid = object && !step_spec_parse(object, question->arena, &spec, &error);
    step_target_of(question->object, entry->name, question->arena, &target);
    step_opinion(object, is_valid ? &spec : NULL, &target, question, opinion);
}

/* ---- admission ---- */

static bool is_by_us(struct sw_instance *self, const struct sw_review *review)
{
    const char *username = sw_self_username(self);

    return username[0] && strcmp(review->username, username) == 0 &&
           strcmp(review->field_manager, SW_FIELD_MANAGER) == 0;
}

static void review_set(struct sw_instance *self, const struct sw_review *review,
                       struct sw_review_answer *answer)
{
    struct sw_question question = {
        .object = review->object,
        .old = review->old,
        .is_review = true,
        .arena = review->arena,
    };
    struct sw_opinion opinion;

    if (!review->object || is_by_us(self, review))
        return;
    const struct step_entry *entry = stepping(self, review->object, review->namespace_);
    sw_arbiters_ask(self, &question, &opinion);
    step_review_set(review, &opinion, entry ? entry->name : NULL, answer);
    if (answer->is_denied || answer->warnings[0])
        sw_info(self, answer->is_denied ? "refused at admission" : "changed at admission",
                SW_STR("kind", review->object->kind->kind), SW_STR("namespace", review->namespace_),
                SW_STR("name", review->name),
                SW_STR("why", answer->is_denied ? answer->deny_message : answer->warnings[0]),
                SW_BOOL("dryRun", review->is_dry_run));
}

static void review_stepped(struct sw_instance *self, const struct sw_review *review,
                           struct sw_review_answer *answer)
{
    const struct step_state *state = sw_state(self);
    const struct stepped *object = step_as_stepped(review->object);
    enum step_target_kind kind;
    const char *older = NULL;
    bool has_target = true;

    if (object && step_target_kind_named(object->target_api_version, object->target_kind, &kind)) {
        const struct step_entry *oldest =
            step_index_oldest(state->index, kind, review->namespace_, object->target_name);
        bool is_other = oldest && strcmp(oldest->name, object->meta.name) != 0;
        bool is_older =
            is_other && (!object->meta.created_us || oldest->created_us <= object->meta.created_us);
        older = is_older ? oldest->name : NULL;
        has_target =
            sw_lookup(self, step_kind_of(kind), review->namespace_, object->target_name) != NULL;
    }
    step_review_stepped(review, older, has_target, answer);
}

static int register_reviews(struct sw_instance *self)
{
    const struct sw_admission admissions[] = {
        {
            .path = "/mutate-apps-v1-statefulset",
            .webhook_name = "statefulsets.slipway.dev",
            .kind = &sw_kind_stateful_set,
            .is_mutating = true,
            .on_create = true,
            .on_update = true,
            .is_reinvoked = true,
            .fn = review_set,
        },
        {
            .path = "/mutate-apps-v1-daemonset",
            .webhook_name = "daemonsets.slipway.dev",
            .kind = &sw_kind_daemon_set,
            .is_mutating = true,
            .on_create = true,
            .on_update = true,
            .is_reinvoked = true,
            .fn = review_set,
        },
        {
            .path = "/validate-slipway-dev-v1alpha1-steppedrollout",
            .webhook_name = "steppedrollouts.slipway.dev",
            .kind = &step_kind,
            .on_create = true,
            .on_update = true,
            .fn = review_stepped,
        },
    };

    for (size_t i = 0; i < sizeof admissions / sizeof admissions[0]; i++) {
        int code = sw_admission_register(self, &admissions[i]);
        if (code)
            return sw_fail(self, code, "the path %s is taken by another module",
                           admissions[i].path);
    }
    return 0;
}

/* ---- start ---- */

static void collect(struct sw_instance *self)
{
    struct step_state *state = sw_state(self);

    step_meter_collect(self, &state->meter);
}

static void declare(struct sw_instance *self)
{
    sw_write_declare(self, &step_kind, SW_MERGE_PATCH, SW_MAIN);
    sw_write_declare(self, &step_kind, SW_MERGE_PATCH, SW_STATUS);
    for (int kind = STEP_DEPLOYMENT; kind <= STEP_DAEMON_SET; kind++)
        sw_write_declare(self, step_kind_of((enum step_target_kind)kind), SW_MERGE_PATCH, SW_MAIN);
    sw_write_declare(self, &sw_kind_replica_set, SW_MERGE_PATCH, SW_SCALE);
    sw_write_declare(self, &sw_kind_pod, SW_DELETE, SW_MAIN);
    step_look_declare(self);
}

static int watch(struct sw_instance *self)
{
    const struct sw_watch_options stepped = {
        .on_delta = on_stepped,
        .on_listed = on_stepped_listed,
        .is_optional = true,
    };
    const struct sw_watch_options targets = {.on_delta = on_target};
    int code = sw_watch(self, &step_kind, &stepped);

    sw_on_opinion(self, &sw_kind_deployment, on_opinion_of_deployment);
    sw_on_opinion(self, &sw_kind_stateful_set, on_opinion_of_stateful_set);
    sw_on_opinion(self, &sw_kind_daemon_set, on_opinion_of_daemon_set);
    for (int kind = STEP_DEPLOYMENT; kind <= STEP_DAEMON_SET && !code; kind++) {
        code = sw_arbiter_register(self, step_kind_of((enum step_target_kind)kind), ask);
        if (!code)
            code = sw_watch(self, step_kind_of((enum step_target_kind)kind), &targets);
    }
    return code;
}

int step_shell_start(struct sw_instance *self, bool watches_metric_templates)
{
    struct step_state *state = sw_state(self);
    const struct sw_queue_options queue = {.name = "stepping", .fn = reconcile};
    const struct sw_watch_options templates = {.is_optional = true};
    int code;

    state->index = step_index_new();
    state->waiting_end = &state->waiting;
    state->queue = sw_queue_new(self, &queue);
    state->rounds = step_rounds_new(self);
    step_orphans_start(self);
    step_meter_start(&state->meter, self);
    sw_on_collect(self, collect);
    sw_on_leading(self, on_leading);
    declare(self);
    if ((code = register_reviews(self)) || (code = watch(self)))
        return code;
    return watches_metric_templates ? sw_watch(self, &step_metric_template_kind, &templates) : 0;
}

static void drop(void *arg, struct step_entry *entry)
{
    (void)arg;
    step_ask_drop(entry);
    step_look_free(entry->look);
    sw_free(entry->look_error);
    step_memory_free(entry->memory);
}

void step_shell_stop(struct sw_instance *self)
{
    struct step_state *state = sw_state(self);

    if (!state->index)
        return;
    step_index_each(state->index, drop, NULL);
    state->index = step_index_free(state->index);
    step_calls_free(state);
    step_lookings_free(&state->lookings);
    state->rounds = step_rounds_free(state->rounds);
}
