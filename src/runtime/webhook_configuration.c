/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One key in a queue for each object; its run looks at the store, and at most one patch is under
 * way. The queue is the leader's; the metric is every replica's.
 */
#include "runtime/webhook_configuration.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <slipway/queue.h>
#include <slipway/telemetry.h>
#include <slipway/time.h>
#include <slipway/write.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/file.h"
#include "base/util.h"
#include "kube/backoff.h"
#include "kube/base64.h"
#include "net/tls.h"
#include "runtime/admission.h"
#include "runtime/core.h"
#include "runtime/instance.h"
#include "runtime/self_signed.h"
#include "runtime/webhook_mend.h"

enum {
    CA_LIMIT_BYTES = 512 * 1024, /* a third of what etcd takes for one object, before base64 */
    POLL_MS = 10 * 1000,         /* as for the certificate */
    /* Between two patches of one object, doubled each time, and as much again by chance; two quiet
     * minutes forget it. So that one who resets the object every minute (a GitOps controller at its
     * busiest) is answered at once, and one who resets it at each change makes four patches a
     * minute at most, not thousands. */
    PACE_FIRST_MS = 1000,
    PACE_LIMIT_MS = 15 * 1000,
    /* Two may be a person at work. */
    CONTENDED_AFTER = 3,
    /* A role may be on its way, applied together with us; or may never come. */
    REFUSED_FIRST_MS = 1000,
    REFUSED_LIMIT_MS = 300 * 1000,
};

/* What was said last of an object, so that it is said once. */
enum said {
    NOTHING,
    ABSENT,
    LACKING,
    UNTRUSTED,
    WHOLE,
};

/* One of the two objects. */
struct target {
    const struct sw_kind *kind;
    const struct sw_admission **wanted;
    size_t count; /* 0: not watched */
    enum said said;
    struct sw_backoff pace, refusals;
    uint64_t not_before_ms; /* of the next patch */
    int refused_status;     /* of the last answer, where it was a refusal; else 0 */
    const char *changes;    /* of the patch under way; in its run's arena */
};

struct state {
    struct sw_instance *self;
    const struct sw_webhook_configuration_options *options;
    struct target targets[2];
    struct sw_queue *queue;
    struct sw_self_signed *self_signed; /* NULL: the CA is a file */
    char *ca_path;
    struct sw_file_watch *ca_watch;
    char *ca_bundle;   /* base64; NULL: there is none */
    bool is_ca_missed; /* that there is none has been said */
    struct sw_metric *up_to_date, *patches;
};

/* ---- the picture ---- */

static const struct sw_webhook_object *object_of(const struct state *state,
                                                 const struct target *target)
{
    const struct sw_object *object = sw_lookup(state->self, target->kind, "", state->options->name);

    return (const struct sw_webhook_object *)object; /* of which it is the first member */
}

static struct sw_webhook_mend mend_of(const struct state *state, const struct target *target,
                                      const struct sw_webhook_object *object,
                                      struct sw_arena *arena)
{
    return sw_webhook_mend(arena, object, target->wanted, target->count, state->ca_bundle);
}

/* We sign for ourselves, and somebody else says who is trusted. */
static bool is_untrusted(const struct state *state, const struct sw_webhook_mend *mend)
{
    return state->self_signed && mend->is_injected;
}

static bool is_right(const struct state *state, const struct target *target)
{
    const struct sw_webhook_object *object = object_of(state, target);

    if (!object)
        return false;
    struct sw_arena *arena = sw_arena_new(0);
    struct sw_webhook_mend mend = mend_of(state, target, object, arena);
    bool is = !mend.patch && !mend.missing[0] && !is_untrusted(state, &mend);

    sw_arena_free(arena);
    return is;
}

static bool are_synced(const struct state *state)
{
    for (size_t i = 0; i < SW_ARRAY_SIZE(state->targets); i++)
        if (state->targets[i].count > 0 && !sw_is_synced(state->self, state->targets[i].kind))
            return false;
    return true;
}

/* What caBundle of the entry is, if that can be read. New memory. */
static char *bundle_of(const struct sw_webhook_entry *entry)
{
    char *pem = NULL;
    size_t len;

    if (sw_base64_decode(entry->ca_bundle, strlen(entry->ca_bundle), &pem, &len))
        pem = sw_strdup("");
    return pem;
}

/* Whoever makes certificates waits for what is stored. */
static void tell_stored(struct state *state)
{
    char **bundles = NULL;
    size_t count = 0;

    if (!state->self_signed || !are_synced(state))
        return;
    for (size_t i = 0; i < SW_ARRAY_SIZE(state->targets); i++) {
        const struct target *target = &state->targets[i];
        const struct sw_webhook_object *object = object_of(state, target);
        for (size_t k = 0; object && k < target->count; k++) {
            const struct sw_webhook_entry *entry = sw_webhook_find(object, target->wanted[k]);
            if (!entry)
                continue;
            bundles = sw_realloc(bundles, count + 1, sizeof(*bundles));
            bundles[count++] = bundle_of(entry);
        }
    }
    sw_self_signed_set_stored_take(state->self_signed, bundles, count);
}

/* Something has changed: show it, and let the leader look. */
static void look(struct state *state)
{
    bool are_right = true;

    for (size_t i = 0; i < SW_ARRAY_SIZE(state->targets); i++) {
        const struct target *target = &state->targets[i];
        if (target->count == 0)
            continue;
        are_right = are_right && is_right(state, target);
        if (sw_is_synced(state->self, target->kind))
            sw_queue_add(state->queue, target->kind->plural);
    }
    sw_measure(state->up_to_date, are_right);
    tell_stored(state);
}

static void on_delta(struct sw_instance *self, void *arg, const struct sw_delta *delta)
{
    (void)self;
    (void)delta;
    look(arg);
}

static void on_listed(struct sw_instance *self, void *arg)
{
    (void)self;
    look(arg);
}

static void on_leading(struct sw_instance *self, bool is_leading)
{
    struct state *state = sw_state(self);

    if (!is_leading)
        return;
    look(state);
    if (state->self_signed)
        sw_self_signed_look(state->self_signed);
}

/* ---- words ---- */

static void say_absent(struct state *state, struct target *target)
{
    if (target->said != ABSENT)
        sw_warn(state->self,
                "webhook configuration is not there, so nobody asks us: apply it; slipway keeps it "
                "up to date but does not make it",
                SW_STR("kind", target->kind->kind), SW_STR("name", state->options->name));
    target->said = ABSENT;
}

static void say_lacking(struct state *state, struct target *target, const char *missing)
{
    if (target->said != LACKING)
        sw_warn(state->self,
                "webhook configuration lacks entries of ours: apply it as it comes with this "
                "slipway; where they are to be asked only its author knows",
                SW_STR("kind", target->kind->kind), SW_STR("name", state->options->name),
                SW_STR("missing", missing));
    target->said = LACKING;
}

static void say_untrusted(struct state *state, struct target *target)
{
    if (target->said != UNTRUSTED)
        sw_warn(state->self,
                "cert-manager is told to fill in caBundle, so nobody will trust the certificates "
                "that slipway makes: remove its annotation, or serve its files "
                "(--webhook-certificates files)",
                SW_STR("kind", target->kind->kind), SW_STR("name", state->options->name));
    target->said = UNTRUSTED;
}

static void say_whole(struct state *state, struct target *target)
{
    if (target->said != WHOLE)
        sw_info(state->self, "webhook configuration is up to date",
                SW_STR("kind", target->kind->kind), SW_STR("name", state->options->name));
    target->said = WHOLE;
}

static void say_mended(struct state *state, const struct target *target)
{
    const struct sw_field fields[] = {SW_STR("kind", target->kind->kind),
                                      SW_STR("name", state->options->name),
                                      SW_STR("changes", target->changes), SW_FIELD_LAST};

    if (target->pace.failures < CONTENDED_AFTER)
        sw_say(state->self, SW_LEVEL_INFO, "webhook configuration mended", fields);
    else if (target->pace.failures == CONTENDED_AFTER)
        sw_say(state->self, SW_LEVEL_WARN,
               "webhook configuration mended; somebody changes it back again and again: from now "
               "on it is mended less often, and without a word",
               fields);
    else
        sw_say(state->self, SW_LEVEL_DEBUG, "webhook configuration mended", fields);
}

static void say_refused(struct state *state, struct target *target, const struct sw_answer *answer)
{
    const char *message =
        answer->status == 403
            ? "webhook configuration cannot be mended: our role needs the verb patch on it"
            : "webhook configuration cannot be mended: the API server refuses the patch";

    if (target->refused_status != answer->status)
        sw_error(state->self, message, SW_STR("kind", target->kind->kind),
                 SW_STR("name", state->options->name), SW_STR("changes", target->changes),
                 SW_INT("status", answer->status), SW_STR("why", answer->message));
    target->refused_status = answer->status;
}

/* ---- mending ---- */

static struct target *target_of(struct state *state, const char *key)
{
    size_t i = strcmp(state->targets[0].kind->plural, key) != 0;

    return &state->targets[i];
}

/* What is there is not what the patch was made for: read it, then decide anew. */
static void on_read(struct sw_instance *self, void *arg, const struct sw_answer *answer)
{
    (void)self;
    (void)answer;
    sw_run_finish(arg, SW_RETRY);
}

static enum sw_result read_again(struct state *state, const struct target *target,
                                 struct sw_run *run)
{
    int code = sw_get(state->self, target->kind, NULL, state->options->name, on_read, run);

    return code ? SW_RETRY : SW_LATER;
}

static void wait_after(struct state *state, struct target *target, struct sw_backoff *backoff)
{
    struct sw_loop *loop = state->self->core->loop;

    target->not_before_ms = sw_now_ms(loop) + sw_backoff_fail(backoff, loop, 0);
}

static enum sw_result take(struct state *state, struct target *target,
                           const struct sw_answer *answer, struct sw_run *run)
{
    switch (answer->outcome) {
    case SW_OK:
        sw_count(state->patches, 1);
        target->refused_status = 0;
        wait_after(state, target, &target->pace);
        say_mended(state, target);
        return SW_DONE;
    case SW_REFUSED:
        wait_after(state, target, &target->refusals);
        say_refused(state, target, answer);
        sw_queue_add(state->queue, sw_run_key(run)); /* which waits for its time */
        return SW_DONE;
    case SW_CONFLICT:
    case SW_UNKNOWN:
        return read_again(state, target, run);
    default:
        return SW_DONE; /* it is gone, or others lead: we shall be told */
    }
}

static void on_patched(struct sw_instance *self, void *arg, const struct sw_answer *answer)
{
    struct state *state = sw_state(self);
    struct sw_run *run = arg;
    enum sw_result result = take(state, target_of(state, sw_run_key(run)), answer, run);

    if (result != SW_LATER)
        sw_run_finish(run, result);
}

static enum sw_result patch(struct state *state, struct target *target,
                            const struct sw_webhook_object *object,
                            const struct sw_webhook_mend *mend, struct sw_run *run)
{
    uint64_t now = sw_time_ms(state->self);
    struct sw_write write = {
        .verb = SW_JSON_PATCH,
        .kind = target->kind,
        .name = state->options->name,
        .body = mend->patch,
        .resource_version = object->meta.resource_version,
    };

    if (now < target->not_before_ms) {
        sw_queue_add_after(state->queue, sw_run_key(run), target->not_before_ms - now);
        return SW_DONE;
    }
    target->changes = mend->changes;
    int code = sw_write(state->self, &write, on_patched, run);
    if (!code)
        return SW_LATER;
    sw_error(state->self, "webhook configuration cannot be mended", SW_ERR(code),
             SW_STR("kind", target->kind->kind), SW_STR("name", state->options->name));
    return SW_RETRY;
}

static enum sw_result reconcile(struct sw_instance *self, void *arg, struct sw_run *run)
{
    struct state *state = arg;
    struct target *target = target_of(state, sw_run_key(run));
    const struct sw_webhook_object *object = object_of(state, target);

    if (!object) {
        say_absent(state, target);
        return SW_DONE;
    }
    struct sw_webhook_mend mend = mend_of(state, target, object, sw_run_arena(run));
    if (mend.missing[0])
        say_lacking(state, target, mend.missing);
    else if (is_untrusted(state, &mend))
        say_untrusted(state, target);
    if (mend.patch)
        return patch(state, target, object, &mend, run);
    if (!mend.missing[0] && !is_untrusted(state, &mend))
        say_whole(state, target);
    sw_backoff_succeed(&target->pace, self->core->loop);
    sw_backoff_succeed(&target->refusals, self->core->loop);
    return SW_DONE;
}

/* ---- the CA ---- */

/* Whether it may be shown to everybody, and the API server will be able to use it. */
static int check_ca(const char *pem, struct sw_error *error)
{
    struct sw_tls_client_options options = {.ca_pem = pem};
    struct sw_tls_config *config;

    if (strstr(pem, "PRIVATE KEY"))
        return sw_error_set(error, SW_E_SYNTAX, "it holds a private key");
    int code = sw_tls_client_config_new(&options, &config, error);
    if (!code)
        sw_tls_config_unref(config);
    return code;
}

/* Another CA is our own wish, which nobody undoes: it is written at once. */
static void forget_pace(struct state *state)
{
    for (size_t i = 0; i < SW_ARRAY_SIZE(state->targets); i++) {
        state->targets[i].pace.failures = 0;
        state->targets[i].not_before_ms = 0;
    }
}

static void set_ca(struct state *state, const char *pem, size_t len)
{
    struct sw_buf text;

    sw_buf_init(&text, SIZE_MAX);
    int code = sw_base64_encode(&text, pem, len);
    sw_assert(code == 0); /* the buffer has no limit */
    if (!state->ca_bundle || strcmp(state->ca_bundle, text.bytes) != 0)
        forget_pace(state);
    sw_free(state->ca_bundle);
    state->ca_bundle = sw_buf_steal(&text);
    sw_buf_done(&text);
    state->is_ca_missed = false;
}

/* An issuer that does not tell its CA leaves the file empty. */
static void miss_ca(struct state *state)
{
    if (!state->is_ca_missed)
        sw_info(state->self, "no CA beside the webhook's certificate: caBundle stays as it is",
                SW_STR("file", state->ca_path));
    state->is_ca_missed = true;
    state->ca_bundle = sw_free(state->ca_bundle);
}

static void load_ca(struct state *state)
{
    char *pem = NULL;
    size_t len = 0;
    struct sw_error error = {0};
    int code = sw_file_read(state->ca_path, CA_LIMIT_BYTES, &pem, &len, &error);

    if (code == -ENOENT || (!code && len == 0)) {
        miss_ca(state);
    } else {
        if (!code) {
            code = check_ca(pem, &error);
            if (code)
                sw_error_prefix(&error, "%s", state->ca_path);
        }
        if (code)
            sw_warn(state->self,
                    state->ca_bundle ? "CA of the webhook cannot be used, keeping the one before"
                                     : "CA of the webhook cannot be used: caBundle stays as it is",
                    SW_STR("why", error.text));
        else
            set_ca(state, pem, len);
    }
    sw_free_secret(pem, len);
}

static void on_ca_change(void *arg)
{
    struct state *state = arg;

    load_ca(state);
    look(state);
}

static void on_authorities(void *arg, const char *authorities)
{
    struct state *state = arg;

    set_ca(state, authorities, strlen(authorities));
    look(state);
}

static int open_ca(struct state *state)
{
    if (!state->options->cert_folder) {
        state->self_signed =
            sw_self_signed_new(state->self, state->options->self_signed, on_authorities, state);
        return 0;
    }
    state->ca_path = sw_asprintf("%s/ca.crt", state->options->cert_folder);
    const char *const *paths = (const char *const[]){state->ca_path};
    int code = sw_file_watch_open(state->self->core->loop, paths, 1, POLL_MS, on_ca_change, state,
                                  &state->ca_watch);

    if (code)
        return sw_fail(state->self, code, "cannot watch %s: %s", state->ca_path, sw_strerror(code));
    load_ca(state);
    return 0;
}

/* ---- starting ---- */

static bool is_wanted(const struct target *target, const char *name)
{
    for (size_t i = 0; i < target->count; i++)
        if (strcmp(target->wanted[i]->webhook_name, name) == 0)
            return true;
    return false;
}

static int want(struct state *state, const struct sw_admission *admission)
{
    struct target *target = &state->targets[!admission->is_mutating];

    if (!admission->webhook_name[0])
        return 0; /* its author keeps the configuration by hand */
    if (is_wanted(target, admission->webhook_name))
        return sw_fail(state->self, -EEXIST,
                       "two paths are registered for the webhook %s, which can have one",
                       admission->webhook_name);
    target->wanted = sw_realloc(target->wanted, target->count + 1, sizeof(*target->wanted));
    target->wanted[target->count++] = admission;
    return 0;
}

static int want_all(struct state *state)
{
    struct sw_link *ring = &state->self->core->registry.admissions;
    int code = 0;

    for (struct sw_link *l = ring->next; l != ring && !code; l = l->next) {
        struct sw_registration *registration = container_of(l, struct sw_registration, link);
        code = want(
            state, &container_of(registration, struct sw_admission_route, registration)->admission);
    }
    return code;
}

static void watch(struct state *state, const struct target *target)
{
    struct sw_watch_options options = {.on_delta = on_delta, .on_listed = on_listed, .arg = state};

    sw_kinds_watch_aside(state->self, target->kind, state->options->name, &options);
    sw_write_declare(state->self, target->kind, SW_GET, SW_MAIN);
    sw_write_declare(state->self, target->kind, SW_JSON_PATCH, SW_MAIN);
}

static void stop(struct sw_instance *self)
{
    struct state *state = sw_state(self);

    sw_self_signed_free(state->self_signed);
    sw_file_watch_close(state->ca_watch);
    for (size_t i = 0; i < SW_ARRAY_SIZE(state->targets); i++)
        sw_free(state->targets[i].wanted);
    sw_free(state->ca_path);
    sw_free(state->ca_bundle);
}

static int start(struct sw_instance *self, const void *config)
{
    static const struct sw_backoff pace = {PACE_FIRST_MS, PACE_LIMIT_MS, 0, 0};
    static const struct sw_backoff refusals = {REFUSED_FIRST_MS, REFUSED_LIMIT_MS, 0, 0};
    struct state *state = sw_state(self);
    struct sw_queue_options queue = {
        .name = "webhook-configuration", .fn = reconcile, .arg = state};

    state->self = self;
    state->options = config;
    state->targets[0] =
        (struct target){.kind = &sw_kind_mutating_webhooks, .pace = pace, .refusals = refusals};
    state->targets[1] =
        (struct target){.kind = &sw_kind_validating_webhooks, .pace = pace, .refusals = refusals};
    state->queue = sw_queue_new(self, &queue);
    state->up_to_date = sw_gauge(
        self, "slipway_webhook_configuration_up_to_date",
        "1 while the webhook configuration in the cluster is as it should be.", NULL, NULL);
    state->patches = sw_counter(self, "slipway_webhook_configuration_patches_total",
                                "Times the webhook configuration was mended.", NULL, NULL);
    sw_on_leading(self, on_leading);
    int code = want_all(state);
    if (!code)
        code = open_ca(state);
    if (code) {
        stop(self);
        return code;
    }
    for (size_t i = 0; i < SW_ARRAY_SIZE(state->targets); i++)
        if (state->targets[i].count > 0)
            watch(state, &state->targets[i]);
    return 0;
}

const struct sw_module sw_webhook_configuration = {
    SW_MODULE_HEAD("webhook-configuration"),
    .summary = "keeps the webhook configuration in the cluster up to date",
    .state_size = sizeof(struct state),
    .start = start,
    .stop = stop,
};
