/* SPDX-License-Identifier: Apache-2.0 */
/*
 * promote, abort, retry: an annotation on a SteppedRollout, which slipway takes off when it has
 * obeyed. What it would not obey is refused before anything is written.
 */
#include <string.h>

#include <slipway/arena.h>
#include <slipway/json.h>

#include "base/loop.h"
#include "base/time.h"
#include "base/util.h"
#include "edit.h"
#include "rollout.h"
#include "run.h"
#include "session.h"
#include "text.h"

enum { POLL_MS = 200, TIMEOUT_MS = 30000 };

struct work {
    struct ks_session *session;
    enum ks_command_id command;
    const char *name, *key, *value;
    bool is_release;     /* of abort: obeyed when the object is deleted */
    const char *refusal; /* why nothing was written; NULL */
};

static bool is(const char *text, const char *other)
{
    return text && strcmp(text, other) == 0;
}

static const char *status_text(const struct sw_json *object, const char *key)
{
    const char *text = sw_json_get_string(sw_json_get(object, "status"), key);

    return text ? text : "";
}

static const char *annotation(const struct sw_json *object, const char *key)
{
    return sw_json_get_string(sw_json_at(object, "metadata", "annotations", NULL), key);
}

/* ---- what would not be obeyed ---- */

static const struct sw_json *not_ready(const struct sw_json *object)
{
    const struct sw_json *conditions = sw_json_at(object, "status", "conditions", NULL);

    for (size_t i = 0; i < sw_json_size(conditions); i++) {
        const struct sw_json *one = sw_json_element(conditions, i);
        if (is(sw_json_get_string(one, "type"), "Ready") &&
            is(sw_json_get_string(one, "status"), "False"))
            return one;
    }
    return NULL;
}

/* Reasons with which nothing at all is obeyed. */
static bool is_disobeyed(const struct sw_json *ready)
{
    const char *reason = sw_json_get_string(ready, "reason");

    return is(reason, "InvalidSpec") || is(reason, "Conflict") || is(reason, "TargetNotFound");
}

static bool is_rolled_back(const char *activity)
{
    return is(activity, "RollingBack") || is(activity, "RolledBack");
}

static const char *promote_refusal(struct sw_arena *arena, const struct work *work,
                                   const struct sw_json *object)
{
    const char *phase = status_text(object, "phase"), *activity = status_text(object, "activity");

    if (is(phase, "Promoting"))
        return "it is being promoted already";
    if (is(phase, "Failed") && is_rolled_back(activity))
        return "its template was rolled back: apply it again, after kubectl slipway retry";
    if (is(work->value, "step") && is(phase, "Progressing") && is(activity, "Advancing"))
        return sw_arena_printf(arena, "it advances already, to step %s; --full goes to the end",
                               status_text(object, "step"));
    return NULL;
}

static const char *abort_refusal(const struct sw_json *object)
{
    const struct sw_json *status = sw_json_get(object, "status");

    if (is(status_text(object, "phase"), "Failed") &&
        !(is(status_text(object, "activity"), "Held") &&
          sw_json_get_int(status, "updatedReplicas", 0) > 0))
        return "its rollout has failed already";
    return NULL;
}

static const char *refusal(const struct work *work, const struct sw_json *object)
{
    static const char *const under_way[] = {"Waiting",   "Progressing", "WaitingPromotion",
                                            "Promoting", "Held",        "Failed"};
    struct sw_arena *arena = work->session->arena;
    const char *phase = status_text(object, "phase");
    const struct sw_json *ready = not_ready(object);
    bool is_under_way = false;

    if (work->is_release)
        return NULL;
    if (ready && is_disobeyed(ready))
        return sw_arena_printf(arena, "it cannot be obeyed: %s: %s",
                               sw_json_get_string(ready, "reason"),
                               sw_json_get_string(ready, "message"));
    if (!phase[0])
        return "slipway has not looked at it yet: does it run, with the module stepping? kubectl "
               "slipway doctor";
    if (sw_json_get_bool(sw_json_get(object, "spec"), "suspend", false))
        return "it is suspended (spec.suspend): slipway does nothing with it";
    if (work->command == KS_RETRY)
        return status_text(object, "failedHash")[0]
                   ? NULL
                   : "no template of it has failed: nothing to try again";
    for (size_t i = 0; i < SW_ARRAY_SIZE(under_way); i++)
        is_under_way = is_under_way || is(phase, under_way[i]);
    if (!is_under_way)
        return sw_arena_printf(arena, "nothing is under way, it is %s", phase);
    return work->command == KS_PROMOTE ? promote_refusal(arena, work, object)
                                       : abort_refusal(object);
}

static bool change(void *arg, const struct sw_json *object, struct sw_json *patch)
{
    struct work *work = arg;

    work->refusal = refusal(work, object);
    if (work->refusal || is(annotation(object, work->key), work->value))
        return false;
    sw_json_set_string(sw_json_set_object(sw_json_set_object(patch, "metadata"), "annotations"),
                       work->key, work->value);
    return true;
}

/* ---- until it is obeyed ---- */

static void on_poll(struct sw_timer *timer)
{
    sw_loop_stop(timer->loop);
}

static void pause_a_moment(struct ks_session *session)
{
    struct sw_timer timer;

    sw_timer_init(&timer, session->loop, on_poll);
    sw_timer_start(&timer, POLL_MS);
    while (sw_timer_is_active(&timer))
        sw_loop_run(session->loop);
}

static uint64_t timeout_ms(const struct ks_session *session)
{
    const char *given = session->options->values[KS_TIMEOUT];
    uint64_t ms = TIMEOUT_MS;

    if (given)
        sw_duration_parse(given, &ms);
    return ms;
}

/* The object without the annotation, NULL where it is gone; KS_FAILED: it has been said why. */
static enum ks_exit wait(const struct work *work, const struct sw_json **ret_object)
{
    struct ks_session *session = work->session;
    const char *path = ks_path(session, &step_kind, ks_namespace(session), work->name);
    uint64_t until_ms = sw_now_ms(session->loop) + timeout_ms(session);
    struct ks_answer answer;
    char limit[KS_DURATION_SIZE];

    for (;;) {
        *ret_object = ks_get(session, path, &answer);
        if (!*ret_object && answer.status == 404)
            return KS_DONE;
        if (*ret_object && !annotation(*ret_object, work->key))
            return KS_DONE;
        if (sw_now_ms(session->loop) >= until_ms)
            break;
        pause_a_moment(session);
    }
    ks_duration((int64_t)timeout_ms(session) * 1000, limit);
    if (!*ret_object)
        ks_complain("SteppedRollout %s: %s", work->name, answer.message);
    else
        ks_complain("SteppedRollout %s: slipway has not obeyed within %s. %s stays set, and is "
                    "obeyed when it can be; kubectl slipway why steppedrollout/%s and kubectl "
                    "slipway doctor say more",
                    work->name, limit, work->key, work->name);
    return KS_FAILED;
}

/* ---- what is said of it ---- */

static const char *verb(const struct work *work)
{
    switch (work->command) {
    case KS_PROMOTE:
        return is(work->value, "full") ? "promoted to the end" : "promoted";
    case KS_ABORT:
        return work->is_release ? "released" : "aborted";
    default:
        return "tried again";
    }
}

static void tell(const struct work *work, const struct sw_json *object)
{
    struct sw_arena *arena = work->session->arena;
    const char *step = object ? status_text(object, "step") : "";
    const char *words =
        object ? sw_arena_printf(arena, "%s: now %s%s%s", verb(work), status_text(object, "phase"),
                                 step[0] ? ", step " : "", step)
               : sw_arena_printf(arena, "%s: it is gone", verb(work));

    ks_tell(work->session, &step_kind, work->name, words);
}

static enum ks_exit run(struct work *work)
{
    struct ks_session *session = work->session;
    const char *dry_run = session->options->values[KS_DRY_RUN];
    const struct sw_json *object;
    bool is_changed;
    enum ks_exit status =
        ks_edit(session, &step_kind, work->name, change, work, &object, &is_changed);

    if (status != KS_DONE)
        return status;
    if (work->refusal) {
        ks_complain("SteppedRollout %s: %s", work->name, work->refusal);
        return KS_FAILED;
    }
    if (is(dry_run, "server")) {
        ks_tell(session, &step_kind, work->name, verb(work));
        return KS_DONE;
    }
    bool is_deleted = sw_json_get_string(sw_json_get(object, "metadata"), "deletionTimestamp");
    if (work->is_release && !is_deleted) {
        ks_tell(session, &step_kind, work->name,
                "released: once it is deleted, its target rolls as it is; kubectl delete "
                "steppedrollout");
        return KS_DONE;
    }
    if (timeout_ms(session) == 0) {
        ks_tell(session, &step_kind, work->name,
                sw_arena_printf(session->arena, "%s: %s is set", "annotated", work->key));
        return KS_DONE;
    }
    status = wait(work, &object);
    if (status == KS_DONE)
        tell(work, object);
    return status;
}

enum ks_exit ks_run_rollout(struct ks_session *session)
{
    const struct ks_options *options = session->options;
    struct work work = {.session = session, .command = ks_command_id(options->command)};
    enum ks_exit worst = KS_DONE;

    switch (work.command) {
    case KS_PROMOTE:
        work.key = STEP_PROMOTE;
        work.value = ks_flag(session, KS_FULL) ? "full" : "step";
        break;
    case KS_ABORT:
        work.key = STEP_ABORT;
        work.is_release = ks_flag(session, KS_LET_ROLL);
        work.value = work.is_release ? "release" : "true";
        break;
    default:
        work.key = STEP_RETRY;
        work.value = "true";
    }
    for (size_t i = 0; i < options->name_count; i++) {
        work.name = options->names[i];
        enum ks_exit status = run(&work);
        worst = status != KS_DONE ? status : worst;
    }
    return worst;
}
