/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is asked in which order. Mutating webhooks one after the other, each with what those before
 * it made of the object; where one changed it, those before it that want to (reinvocationPolicy
 * IfNeeded) are asked once more. Validating webhooks all at once; the refusal of the first in their
 * order counts.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "admission_internal.h"
#include "base/error.h"
#include "base/log.h"
#include "base/util.h"
#include "patch.h"
#include "value.h"

/* One call under way. It outlives the admission when that is dropped, until the caller is done. */
struct asking {
    struct sw_sim_admission *admission; /* NULL: nobody waits for it */
    size_t number;                      /* in wanted */
    char uid[40];
    struct sw_defer unreachable; /* where there is no caller */
};

struct wanted {
    const struct sw_sim_hook *hook;
    struct sw_sim_view view;
    struct asking *asking;
    bool must_repeat;
    json_t *refusal;
};

struct sw_sim_admission {
    struct sw_sim_api *api;
    const struct sw_sim_admission_request *request;
    struct sw_sim_call *call;
    struct sw_sim_hooks *hooks;
    sw_sim_admission_end_fn done;
    void *arg;
    bool is_mutating, is_second_pass;
    struct wanted *wanted;
    size_t count, at;
    size_t under_way;
    json_t *object; /* as changed so far */
};

static void admission_free(struct sw_sim_admission *admission)
{
    for (size_t i = 0; i < admission->count; i++) {
        struct asking *asking = admission->wanted[i].asking;
        if (asking) {
            asking->admission = NULL;
            if (sw_defer_is_active(&asking->unreachable)) {
                sw_defer_stop(&asking->unreachable);
                sw_free(asking);
            }
        }
        json_decref(admission->wanted[i].refusal);
    }
    sw_free(admission->wanted);
    sw_sim_hooks_unref(admission->hooks);
    json_decref(admission->object);
    sw_free(admission);
}

void sw_sim_admission_drop(struct sw_sim_admission *admission)
{
    admission_free(admission);
}

/* Takes the refusal. */
static void finish(struct sw_sim_admission *admission, json_t *refusal)
{
    sw_sim_admission_end_fn done = admission->done;
    void *arg = admission->arg;
    json_t *object = refusal ? NULL : json_incref(admission->object);
    admission_free(admission);
    done(arg, refusal, object);
}

/* ---- one webhook ---- */

static void next(struct sw_sim_admission *admission);

static void on_verdict(struct sw_sim_admission *admission, struct wanted *wanted,
                       struct sw_sim_verdict *verdict);

static void on_answer(void *arg, int status, const char *body, size_t len, const char *why)
{
    struct asking *asking = arg;
    struct sw_sim_admission *admission = asking->admission;
    if (admission) {
        struct wanted *wanted = &admission->wanted[asking->number];
        struct sw_sim_verdict verdict;
        sw_sim_verdict_read(wanted->hook, asking->uid, status, body, len, why, &verdict);
        wanted->asking = NULL;
        sw_free(asking);
        on_verdict(admission, wanted, &verdict);
        return;
    }
    sw_free(asking);
}

static void on_unreachable(struct sw_defer *defer)
{
    on_answer(container_of(defer, struct asking, unreachable), 0, "", 0,
              "dial tcp: connect: connection refused");
}

static void ask(struct sw_sim_admission *admission, size_t number)
{
    struct sw_sim_api *api = admission->api;
    struct wanted *wanted = &admission->wanted[number];
    const struct sw_sim_admission_caller *caller = &api->options.admission;
    struct asking *asking = SW_NEW(struct asking);
    asking->admission = admission;
    asking->number = number;
    sw_sim_make_uid(api, asking->uid);
    sw_defer_init(&asking->unreachable, api->loop, on_unreachable);
    wanted->asking = asking;
    admission->under_way++;
    if (!caller->call) {
        sw_defer_start(&asking->unreachable);
        return;
    }
    size_t len = 0;
    SW_AUTO(char, sw_free)
    review =
        sw_sim_review_text(admission->request, &wanted->view, admission->object, asking->uid, &len);
    int64_t timeout_s = sw_sim_int_at(wanted->hook->json, "timeoutSeconds", 10);
    caller->call(caller->arg, json_object_get(wanted->hook->json, "clientConfig"), review, len,
                 (uint64_t)timeout_s * 1000, on_answer, asking);
}

/* What the failurePolicy makes of a webhook that cannot be called. */
static json_t *judge_failure(struct sw_sim_admission *admission, const struct sw_sim_hook *hook,
                             const char *failure)
{
    if (strcmp(sw_sim_text(hook->json, "failurePolicy", "Fail"), "Ignore") == 0) {
        sw_log_debug(admission->api->log, "a webhook failed and is ignored",
                     SW_STR("why", failure));
        return NULL;
    }
    return sw_sim_internal_error(failure);
}

static void warn(struct sw_sim_admission *admission, const json_t *warnings)
{
    for (size_t i = 0; i < json_array_size(warnings); i++) {
        const char *text = json_string_value(json_array_get(warnings, i));
        if (text) {
            sw_sim_call_warn(admission->call, text);
        }
    }
}

/* Those that were asked before see the object anew, if they want to. */
static void note_change(struct sw_sim_admission *admission)
{
    for (size_t i = 0; !admission->is_second_pass && i < admission->at; i++) {
        const struct sw_sim_hook *hook = admission->wanted[i].hook;
        if (strcmp(sw_sim_text(hook->json, "reinvocationPolicy", "Never"), "IfNeeded") == 0) {
            admission->wanted[i].must_repeat = true;
        }
    }
}

static json_t *apply(struct sw_sim_admission *admission, const json_t *patch)
{
    struct sw_error error = {0};
    json_t *made = sw_sim_json_patch(admission->object, patch, &error);
    if (!made) {
        return sw_sim_internal_error(error.text);
    }
    if (!json_equal(made, admission->object)) {
        note_change(admission);
    }
    json_decref(admission->object);
    admission->object = made;
    return NULL;
}

static void finish_validating(struct sw_sim_admission *admission)
{
    for (size_t i = 0; i < admission->count; i++) {
        if (admission->wanted[i].refusal) {
            finish(admission, sw_steal(&admission->wanted[i].refusal));
            return;
        }
    }
    finish(admission, NULL);
}

static void on_verdict(struct sw_sim_admission *admission, struct wanted *wanted,
                       struct sw_sim_verdict *verdict)
{
    admission->under_way--;
    warn(admission, verdict->warnings);
    json_t *refusal = verdict->failure ? judge_failure(admission, wanted->hook, verdict->failure)
                                       : sw_steal(&verdict->refusal);
    if (!refusal && verdict->patch && admission->is_mutating && admission->object) {
        refusal = apply(admission, verdict->patch);
    }
    sw_sim_verdict_done(verdict);
    if (!admission->is_mutating) {
        wanted->refusal = refusal;
        if (admission->under_way == 0 && admission->at == admission->count) {
            finish_validating(admission);
        }
    } else if (refusal) {
        finish(admission, refusal);
    } else {
        admission->at++;
        next(admission);
    }
}

/* ---- all of them ---- */

/* The next mutating webhook, or the end. */
static void next(struct sw_sim_admission *admission)
{
    while (admission->is_second_pass && admission->at < admission->count &&
           !admission->wanted[admission->at].must_repeat) {
        admission->at++;
    }
    if (admission->at < admission->count) {
        ask(admission, admission->at);
        return;
    }
    bool repeats = false;
    for (size_t i = 0; !admission->is_second_pass && i < admission->count; i++) {
        repeats |= admission->wanted[i].must_repeat;
    }
    if (repeats) {
        admission->is_second_pass = true;
        admission->at = 0;
        next(admission);
        return;
    }
    finish(admission, NULL);
}

/* One that does more than answer cannot be asked about a dry run. */
static json_t *check_dry_run(const struct sw_sim_admission *admission)
{
    for (size_t i = 0; admission->request->is_dry_run && i < admission->count; i++) {
        const struct sw_sim_hook *hook = admission->wanted[i].hook;
        const char *effects = sw_sim_text(hook->json, "sideEffects", "Unknown");
        if (strcmp(effects, "None") != 0 && strcmp(effects, "NoneOnDryRun") != 0) {
            return sw_sim_statusf(400, "BadRequest",
                                  "admission webhook \"%s\" does not support dry run", hook->name);
        }
    }
    return NULL;
}

static struct sw_sim_hooks *current_hooks(struct sw_sim_api *api)
{
    if (!api->hooks) {
        api->hooks = sw_sim_hooks_read(api);
    }
    return api->hooks;
}

static void choose(struct sw_sim_admission *admission)
{
    const struct sw_sim_hooks *hooks = admission->hooks;
    for (size_t i = 0; i < hooks->count; i++) {
        const struct sw_sim_hook *hook = &hooks->at[i];
        struct sw_sim_view view;
        if (hook->is_mutating == admission->is_mutating &&
            sw_sim_hook_wants(admission->api, hook, admission->request, &view)) {
            admission->wanted =
                sw_realloc(admission->wanted, admission->count + 1, sizeof(struct wanted));
            admission->wanted[admission->count++] = (struct wanted){.hook = hook, .view = view};
        }
    }
}

void sw_sim_admission_change(struct sw_sim_api *api, const struct sw_sim_change *change)
{
    if (strcmp(change->object->kind->group, "admissionregistration.k8s.io") == 0) {
        sw_sim_hooks_unref(api->hooks);
        api->hooks = NULL;
    }
}

bool sw_sim_admit(struct sw_sim_api *api, const struct sw_sim_admission_request *request,
                  bool is_mutating, struct sw_sim_call *call, sw_sim_admission_end_fn done,
                  void *arg, json_t **ret_refusal, struct sw_sim_admission **ret_admission)
{
    struct sw_sim_hooks *hooks = current_hooks(api);
    *ret_refusal = NULL;
    if (hooks->count == 0 || strcmp(request->kind->group, "admissionregistration.k8s.io") == 0) {
        return false;
    }
    struct sw_sim_admission *admission = SW_NEW(struct sw_sim_admission);
    *admission = (struct sw_sim_admission){
        .api = api,
        .request = request,
        .call = call,
        .hooks = hooks,
        .done = done,
        .arg = arg,
        .is_mutating = is_mutating,
        .object = request->object ? sw_sim_share(request->object) : NULL,
    };
    hooks->refs++;
    choose(admission);
    *ret_refusal = check_dry_run(admission);
    if (*ret_refusal || admission->count == 0) {
        admission_free(admission);
        return false;
    }
    *ret_admission = admission;
    if (is_mutating) {
        next(admission);
        return true;
    }
    admission->at = admission->count;
    for (size_t i = 0; i < admission->count; i++) {
        ask(admission, i);
    }
    return true;
}
