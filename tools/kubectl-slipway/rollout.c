/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Phase and activity of the status say where it stands, its message what it waits for; what is
 * added here is arithmetic, and what a person can do.
 */
#include "rollout.h"

#include <string.h>

#include <slipway/json.h>

#include "base/buf.h"
#include "base/time.h"
#include "base/util.h"
#include "text.h"

static bool is(const char *text, const char *other)
{
    return strcmp(text, other) == 0;
}

/* ---- the state ---- */

static const struct sw_condition *not_ready(const struct stepped *r)
{
    const struct sw_condition *ready = sw_condition_get(&r->conditions, "Ready");

    return ready && is(ready->status, "False") ? ready : NULL;
}

/* What it says; not_ready has found one. */
static const struct sw_condition *obstacle(const struct stepped *r)
{
    static const struct sw_condition unnamed = {.reason = "NotReady", .message = ""};
    const struct sw_condition *found = not_ready(r);

    return found && found->reason[0] ? found : &unnamed;
}

/* One that is deleted and stays for its failed template is not Ready either: its phase says more.
 */
static bool is_disobeyed(const struct stepped *r)
{
    return not_ready(r) && !is(obstacle(r)->reason, "FailedTemplate");
}

enum ks_rollout_state ks_rollout_state_of(const struct stepped *r)
{
    static const struct {
        const char *phase;
        enum ks_rollout_state state;
    } phases[] = {
        {"Initializing", KS_ROLLOUT_BEGINS},
        {"Initialized", KS_ROLLOUT_RESTS},
        {"Waiting", KS_ROLLOUT_WAITS},
        {"Progressing", KS_ROLLOUT_STEPS},
        {"WaitingPromotion", KS_ROLLOUT_WAITS},
        {"Promoting", KS_ROLLOUT_STEPS},
        {"Succeeded", KS_ROLLOUT_RESTS},
        {"Failed", KS_ROLLOUT_FAILED},
        {"Held", KS_ROLLOUT_HELD},
    };

    if (r->observed_generation < r->meta.generation)
        return KS_ROLLOUT_UNSEEN;
    if (is_disobeyed(r))
        return KS_ROLLOUT_DISOBEYED;
    if (r->is_suspended)
        return KS_ROLLOUT_SUSPENDED;
    for (size_t i = 0; i < SW_ARRAY_SIZE(phases); i++)
        if (is(r->phase, phases[i].phase))
            return phases[i].state;
    return r->phase[0] ? KS_ROLLOUT_STEPS : KS_ROLLOUT_UNSEEN;
}

const char *ks_rollout_word(const struct stepped *r)
{
    switch (ks_rollout_state_of(r)) {
    case KS_ROLLOUT_UNSEEN:
        return "Unseen";
    case KS_ROLLOUT_SUSPENDED:
        return "Suspended";
    case KS_ROLLOUT_DISOBEYED:
        return obstacle(r)->reason;
    default:
        return r->phase;
    }
}

static enum ks_colour colour_of(const struct stepped *r)
{
    switch (ks_rollout_state_of(r)) {
    case KS_ROLLOUT_RESTS:
        return KS_DIM;
    case KS_ROLLOUT_BEGINS:
    case KS_ROLLOUT_STEPS:
        return KS_CYAN;
    case KS_ROLLOUT_WAITS:
    case KS_ROLLOUT_HELD:
    case KS_ROLLOUT_SUSPENDED:
        return KS_YELLOW;
    default:
        return KS_RED;
    }
}

/* ---- finding one ---- */

const struct stepped *ks_rollout_named(const struct ks_world *world, const char *namespace_,
                                       const char *name)
{
    for (size_t i = 0; i < world->rollout_count; i++)
        if (is(world->rollouts[i]->meta.namespace_, namespace_) &&
            is(world->rollouts[i]->meta.name, name))
            return world->rollouts[i];
    return NULL;
}

const struct stepped *ks_rollout_on(const struct ks_world *world, const char *namespace_,
                                    const char *kind, const char *name)
{
    const struct stepped *found = NULL;

    for (size_t i = 0; i < world->rollout_count; i++) {
        const struct stepped *r = world->rollouts[i];
        if (!is(r->meta.namespace_, namespace_) || !is(r->target_kind, kind) ||
            !is(r->target_name, name))
            continue;
        if (!found || r->meta.created_us < found->meta.created_us)
            found = r; /* of the same second the first by name, as they are sorted */
    }
    return found;
}

/* ---- words ---- */

static SW_PRINTF(2, 3) const char *text(struct sw_arena *arena, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    const char *made = sw_arena_vprintf(arena, format, args);
    va_end(args);
    return made;
}

static const char *step_text(struct sw_arena *arena, const struct stepped *r)
{
    return r->step_count > 0 ? text(arena, "%d/%d", (int)r->current_step, (int)r->step_count) : "-";
}

/* "error-rate 0.52 (<= 0.01)", "gate" */
static const char *check_text(struct sw_arena *arena, const struct step_check *check)
{
    return text(arena, "%s%s%s%s%s%s%s%s", check->name, check->value[0] ? " " : "", check->value,
                check->range[0] ? " (" : "", check->range, check->range[0] ? ")" : "",
                check->message[0] ? ": " : "", check->message);
}

static bool has_checks_to_show(const struct stepped *r)
{
    enum ks_rollout_state state = ks_rollout_state_of(r);

    return r->checks.count > 0 &&
           (state == KS_ROLLOUT_WAITS || state == KS_ROLLOUT_STEPS || state == KS_ROLLOUT_FAILED);
}

static const char *rounds_text(struct sw_arena *arena, const struct stepped *r)
{
    return text(arena, "%d of %d rounds have passed", (int)r->passed_rounds, (int)r->iterations);
}

static const char *failed_rounds(struct sw_arena *arena, const struct stepped *r)
{
    return text(arena, "failed rounds: %d of %d", (int)r->failed_checks, (int)r->threshold);
}

/* Where the status has no message. */
static const char *computed(struct sw_arena *arena, const struct stepped *r)
{
    if (is(r->activity, "Questions"))
        return "asks whether it may begin";
    if (is(r->activity, "Advancing"))
        return text(arena, "goes on to %d of %d Pods", (int)r->stop, (int)r->replicas);
    if (is(r->activity, "Analysing"))
        return rounds_text(arena, r);
    if (is(r->activity, "Retreating"))
        return "its Pods go back to the old revision";
    if (is(r->activity, "RollingBack"))
        return "the last promoted template is put back";
    return "";
}

static const char *note(struct sw_arena *arena, const struct stepped *r)
{
    switch (ks_rollout_state_of(r)) {
    case KS_ROLLOUT_UNSEEN:
        return "slipway has not looked at it since it was last changed; if that lasts, is the "
               "module stepping enabled?";
    case KS_ROLLOUT_DISOBEYED:
        return obstacle(r)->message;
    case KS_ROLLOUT_SUSPENDED:
        return "new templates are not stepped until it is resumed";
    default:
        return r->message[0] ? r->message : computed(arena, r);
    }
}

static int64_t since(const struct stepped *r)
{
    switch (ks_rollout_state_of(r)) {
    case KS_ROLLOUT_STEPS:
        return r->step_started_us ? r->step_started_us : r->last_transition_us;
    case KS_ROLLOUT_UNSEEN:
    case KS_ROLLOUT_DISOBEYED:
    case KS_ROLLOUT_SUSPENDED:
        return 0;
    default:
        return r->last_transition_us;
    }
}

static const char *kind_text(struct sw_arena *arena, const struct stepped *r)
{
    char *lower = sw_arena_strdup(arena, r->target_kind);

    for (char *p = lower; *p; p++)
        *p |= *p >= 'A' && *p <= 'Z' ? 0x20 : 0;
    return text(arena, "%s/%s", lower, r->target_name);
}

/* ---- the table ---- */

struct printer {
    struct sw_arena *arena;
    struct ks_table *table;
    const struct ks_look *look;
};

static void add_row(struct printer *p, const struct ks_cell *cells)
{
    ks_table_add(p->table, p->look->has_namespaces ? cells : cells + 1);
}

static void add_note(struct printer *p, const char *words, enum ks_colour colour)
{
    const struct ks_cell cells[KS_COLUMNS_MAX] = {[7] = {words, colour}};

    add_row(p, cells);
}

static void add_check(struct printer *p, const struct step_check *check)
{
    const char *sign =
        check->has_passed ? (p->look->is_utf8 ? "✓" : "+") : (p->look->is_utf8 ? "✗" : "!");

    add_note(p, text(p->arena, "%s %s", sign, check_text(p->arena, check)),
             check->has_passed ? KS_GREEN : KS_RED);
}

static void add_rollout(struct printer *p, const struct stepped *r)
{
    enum ks_rollout_state state = ks_rollout_state_of(r);
    bool is_known = state != KS_ROLLOUT_UNSEEN && state != KS_ROLLOUT_DISOBEYED;
    char *time = sw_arena_alloc(p->arena, KS_DURATION_SIZE);
    char *bar = sw_arena_alloc(p->arena, KS_BAR_SIZE);
    const struct step_check *checks = r->checks.at;

    ks_duration(p->look->now_us - since(r), time);
    ks_bar(r->updated_replicas, r->replicas, p->look->is_utf8, bar);
    const struct ks_cell cells[KS_COLUMNS_MAX] = {
        {r->meta.namespace_, KS_PLAIN},
        {r->meta.name, KS_BOLD},
        {kind_text(p->arena, r), KS_PLAIN},
        {ks_rollout_word(r), colour_of(r)},
        {is_known ? step_text(p->arena, r) : "-", KS_PLAIN},
        {is_known ? bar : "-", state == KS_ROLLOUT_RESTS ? KS_DIM : KS_GREEN},
        {since(r) ? time : "-", KS_PLAIN},
        {note(p->arena, r), KS_YELLOW},
    };
    add_row(p, cells);
    if (!has_checks_to_show(r))
        return;
    for (uint32_t i = 0; i < r->checks.count; i++)
        add_check(p, &checks[i]);
    if (r->failed_checks > 0 && state == KS_ROLLOUT_STEPS)
        add_note(p, failed_rounds(p->arena, r), KS_RED);
}

void ks_rollouts_print(struct sw_arena *arena, const struct stepped *const *rollouts, size_t count,
                       const struct ks_look *look, struct sw_buf *out)
{
    static const char *const heads[] = {"NAMESPACE", "ROLLOUT", "TARGET", "PHASE", "STEP",
                                        "UPDATED",   "TIME",    "NOTE",   NULL};
    struct printer p = {
        .arena = arena,
        .table = ks_table_new(arena, look->has_namespaces ? heads : heads + 1),
        .look = look,
    };

    for (size_t i = 0; i < count; i++)
        add_rollout(&p, rollouts[i]);
    ks_table_print(p.table, look->is_coloured, look->columns, out);
}

void ks_status_print(struct sw_arena *arena, struct ks_group_view *const *views, size_t count,
                     const struct stepped *const *rollouts, size_t rollout_count,
                     const struct ks_look *look, struct sw_buf *out)
{
    if (count > 0)
        ks_view_print(arena, views, count, look, out);
    if (count > 0 && rollout_count > 0)
        sw_buf_puts(out, "\n");
    if (rollout_count > 0)
        ks_rollouts_print(arena, rollouts, rollout_count, look, out);
}

/* ---- JSON ---- */

static void set_time(struct sw_json *json, const char *key, int64_t at_us)
{
    char at[SW_TIME_SIZE];

    if (!at_us)
        return;
    sw_time_format(at_us, at);
    sw_json_set_string(json, key, at);
}

static void set_text(struct sw_json *json, const char *key, const char *value)
{
    if (value[0])
        sw_json_set_string(json, key, value);
}

static void check_json(const struct step_check *check, struct sw_json *json)
{
    sw_json_set_string(json, "name", check->name);
    set_text(json, "type", check->type);
    set_text(json, "value", check->value);
    set_text(json, "range", check->range);
    sw_json_set_bool(json, "passed", check->has_passed);
    set_time(json, "at", check->at_us);
    set_text(json, "message", check->message);
}

static void rollout_json(struct sw_arena *arena, const struct stepped *r, int64_t now_us,
                         struct sw_json *json)
{
    const struct step_check *checks = r->checks.at;

    sw_json_set_string(json, "namespace", r->meta.namespace_);
    sw_json_set_string(json, "name", r->meta.name);
    struct sw_json *target = sw_json_set_object(json, "target");
    sw_json_set_string(target, "kind", r->target_kind);
    sw_json_set_string(target, "name", r->target_name);
    sw_json_set_string(json, "state", ks_rollout_word(r));
    set_text(json, "phase", r->phase);
    set_text(json, "activity", r->activity);
    set_text(json, "message", note(arena, r));
    sw_json_set_bool(json, "suspended", r->is_suspended);
    sw_json_set_int(json, "step", r->current_step);
    sw_json_set_int(json, "steps", r->step_count);
    sw_json_set_int(json, "stop", r->stop);
    sw_json_set_int(json, "updated", r->updated_replicas);
    sw_json_set_int(json, "replicas", r->replicas);
    sw_json_set_int(json, "passedRounds", r->passed_rounds);
    sw_json_set_int(json, "failedRounds", r->failed_checks);
    if (since(r)) {
        set_time(json, "since", since(r));
        sw_json_set_int(json, "seconds", SW_MAX(now_us - since(r), 0) / 1000000);
    }
    struct sw_json *list = sw_json_set_array(json, "checks");
    for (uint32_t i = 0; i < r->checks.count; i++)
        check_json(&checks[i], sw_json_append_object(list));
}

struct sw_json *ks_rollouts_json(struct sw_arena *arena, const struct stepped *const *rollouts,
                                 size_t count, int64_t now_us)
{
    struct sw_json *list = sw_json_array(arena);

    for (size_t i = 0; i < count; i++)
        rollout_json(arena, rollouts[i], now_us, sw_json_append_object(list));
    return list;
}

/* ---- a line ---- */

const char *ks_rollout_line(struct sw_arena *arena, const struct stepped *r)
{
    const char *words = note(arena, r);
    const char *line =
        text(arena, "%s/%s: %s", r->meta.namespace_, r->meta.name, ks_rollout_word(r));
    enum ks_rollout_state state = ks_rollout_state_of(r);

    if (state != KS_ROLLOUT_UNSEEN && state != KS_ROLLOUT_DISOBEYED)
        line = text(arena, "%s, step %s, %s %s %d/%d updated", line, step_text(arena, r),
                    r->target_kind, r->target_name, (int)r->updated_replicas, (int)r->replicas);
    return words[0] ? text(arena, "%s (%s)", line, words) : line;
}

/* ---- why ---- */

struct asker {
    struct sw_arena *arena;
    const struct stepped *r;
    const char *name, *namespace_; /* of the rollout, for advice */
    int64_t now_us;
    struct ks_why *why;
    size_t line_count;
};

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

static const char *on_or_off(struct asker *a)
{
    return text(a->arena,
                "go on without it: kubectl slipway promote %s -n %s; give up: kubectl slipway "
                "abort %s -n %s",
                a->name, a->namespace_, a->name, a->namespace_);
}

/* The message of the status says it best; words where there is none. */
static void say_message(struct asker *a, const char *words)
{
    say(a, a->r->message[0] ? a->r->message : words);
}

static void say_where(struct asker *a)
{
    const struct stepped *r = a->r;

    if (r->step_count > 0 && r->current_step > 0)
        say(a, text(a->arena, "step %d of %d, which stops at %d of %d Pods; updated: %d",
                    (int)r->current_step, (int)r->step_count, (int)r->stop, (int)r->replicas,
                    (int)r->updated_replicas));
    else
        say(a,
            text(a->arena, "updated Pods: %d of %d", (int)r->updated_replicas, (int)r->replicas));
}

static void say_checks(struct asker *a)
{
    const struct step_check *checks = a->r->checks.at;
    char age[KS_DURATION_SIZE];

    for (uint32_t i = 0; i < a->r->checks.count; i++) {
        ks_duration(a->now_us - checks[i].at_us, age);
        say(a, text(a->arena, "%s: %s%s%s%s", checks[i].has_passed ? "passed" : "failed",
                    check_text(a->arena, &checks[i]), checks[i].at_us ? ", " : "",
                    checks[i].at_us ? age : "", checks[i].at_us ? " ago" : ""));
    }
    if (a->r->failed_checks > 0)
        say(a, failed_rounds(a->arena, a->r));
}

static void steps(struct asker *a)
{
    const struct stepped *r = a->r;
    const char *target = r->target_name, *words = "";

    if (is(r->phase, "Promoting")) {
        decide(a, "Promoting", text(a->arena, "%s is promoted and rolls to the end", target), "");
    } else if (is(r->activity, "Analysing")) {
        decide(a, "Analysing",
               text(a->arena, "%s stands at step %d of %d and is analysed", target,
                    (int)r->current_step, (int)r->step_count),
               on_or_off(a));
        words = rounds_text(a->arena, r);
    } else if (is(r->activity, "Questions")) {
        decide(a, "Asking", text(a->arena, "webhooks are asked before the first Pod of %s", target),
               on_or_off(a));
    } else {
        decide(a, "Advancing",
               text(a->arena, "%s rolls to step %d of %d", target, (int)r->current_step,
                    (int)r->step_count),
               "");
    }
    say_message(a, words);
    say_where(a);
    say_checks(a);
}

static void waits(struct asker *a)
{
    bool is_last = is(a->r->phase, "WaitingPromotion"), is_first = is(a->r->activity, "Questions");

    decide(a, "WaitsForConfirmation",
           text(a->arena, "%s waits for a confirmation before its %s", a->r->target_name,
                is_last    ? "last step (confirm-promotion)"
                : is_first ? "first Pod (confirm-rollout)"
                           : "next step (confirm-step)"),
           on_or_off(a));
    say_message(a, "");
    if (!is_first)
        say_where(a);
    say_checks(a);
}

static void failed(struct asker *a)
{
    static const struct {
        const char *activity, *reason, *words;
    } ends[] = {
        {"Retreating", "Retreating",
         "its Pods go back to the old revision, while the template stays as it is"},
        {"Retreated", "StepFailed",
         "its Pods are those of the old revision; the failed template is held"},
        {"RollingBack", "RollingBack", "the last promoted template is being put back"},
        {"RolledBack", "StepFailed", "the last promoted template was put back"},
    };
    const struct stepped *r = a->r;
    const char *reason = "StepFailed", *words = "it is held where it stands";

    for (size_t i = 0; i < SW_ARRAY_SIZE(ends); i++)
        if (is(r->activity, ends[i].activity)) {
            reason = ends[i].reason;
            words = ends[i].words;
        }
    decide(a, reason,
           text(a->arena, "the rollout of %s has failed at step %s", r->target_name,
                step_text(a->arena, r)),
           text(a->arena,
                "another template starts anew; where the checks were wrong and not the "
                "template: kubectl slipway retry %s -n %s",
                a->name, a->namespace_));
    say_message(a, words);
    say_where(a);
    say_checks(a);
}

static void say_pending(struct asker *a)
{
    static const char *const keys[] = {STEP_PROMOTE, STEP_ABORT, STEP_RETRY};

    for (size_t i = 0; i < SW_ARRAY_SIZE(keys); i++) {
        const char *value = sw_annotation(&a->r->meta, keys[i]);
        if (value)
            say(a, text(a->arena, "%s: \"%s\" is set, and not obeyed yet", keys[i], value));
    }
}

void ks_rollout_why(struct sw_arena *arena, const struct stepped *r, int64_t now_us,
                    struct ks_why *why)
{
    struct asker a = {
        .arena = arena,
        .r = r,
        .name = r->meta.name,
        .namespace_ = r->meta.namespace_,
        .now_us = now_us,
        .why = why,
    };

    why->since_us = since(r);
    switch (ks_rollout_state_of(r)) {
    case KS_ROLLOUT_RESTS:
        decide(
            &a, "Stepped",
            text(arena, "%s has nothing to roll; its next update comes in steps", r->target_name),
            "");
        break;
    case KS_ROLLOUT_BEGINS:
        decide(&a, "StepBegins",
               text(arena, "%s was never seen complete: it rolls natively until it is",
                    r->target_name),
               "");
        break;
    case KS_ROLLOUT_WAITS:
        waits(&a);
        break;
    case KS_ROLLOUT_STEPS:
        steps(&a);
        break;
    case KS_ROLLOUT_FAILED:
        failed(&a);
        break;
    case KS_ROLLOUT_HELD:
        decide(&a, "HeldByOther",
               text(arena, "%s is held, and not by its SteppedRollout", r->target_name), "");
        say_message(&a, "");
        say_where(&a);
        break;
    case KS_ROLLOUT_SUSPENDED:
        decide(
            &a, "Suspended",
            text(arena, "%s is not stepped now: its SteppedRollout is suspended", r->target_name),
            text(arena,
                 "kubectl patch steppedrollout %s -n %s --type merge -p "
                 "'{\"spec\":{\"suspend\":false}}'",
                 a.name, a.namespace_));
        break;
    case KS_ROLLOUT_DISOBEYED:
        decide(
            &a, ks_rollout_word(r),
            text(arena, "%s is not stepped: its SteppedRollout cannot be obeyed", r->target_name),
            "");
        say(&a, obstacle(r)->message);
        break;
    case KS_ROLLOUT_UNSEEN:
        decide(&a, "Unseen",
               text(arena,
                    "slipway has not looked at the SteppedRollout of %s since it was last "
                    "changed",
                    r->target_name),
               "if this lasts, no slipway runs, or its module stepping is not enabled: kubectl "
               "slipway doctor");
        break;
    }
    if (!is(a.name, r->target_name))
        say(&a, text(arena, "stepped by SteppedRollout %s", a.name));
    say_pending(&a);
}
