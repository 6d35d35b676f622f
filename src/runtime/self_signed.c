/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Secret is read through the store and written by calls of our own: what sw_write makes of a
 * body cannot be wiped.
 * https://kubernetes.io/docs/concepts/configuration/secret/#tls-secrets
 */
#include "runtime/self_signed.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <slipway/queue.h>
#include <slipway/telemetry.h>
#include <slipway/time.h>
#include <slipway/write.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/time.h"
#include "base/util.h"
#include "kube/backoff.h"
#include "kube/base64.h"
#include "kube/client.h"
#include "kube/decode.h"
#include "net/tls.h"
#include "runtime/core.h"
#include "runtime/instance.h"

enum {
    LONGEST_WAIT_MS = 3600 * 1000, /* wall clocks are set */
    BODY_BYTES = 256 * 1024,       /* some 10 KB, as a rule */
    /* Between two new authorities, as between two patches of webhook_configuration.c: somebody may
     * delete or garble the Secret again and again. */
    PACE_FIRST_MS = 1000,
    PACE_LIMIT_MS = 15 * 1000,
};

static const char key[] = "certificates";

/* As the Secret has them: base64; "": absent. */
struct secret {
    struct sw_object meta;
    const char *certificate, *key, *authorities, *authority_key;
};

static const struct sw_bind fields[] = {
    SW_BIND("/data/tls.crt", SW_BIND_STRING, struct secret, certificate),
    SW_BIND("/data/tls.key", SW_BIND_STRING, struct secret, key),
    SW_BIND("/data/ca.crt", SW_BIND_STRING, struct secret, authorities),
    SW_BIND("/data/ca.key", SW_BIND_STRING, struct secret, authority_key),
    SW_BIND_END,
};

static const struct sw_kind kind = {
    .group = "",
    .version = "v1",
    .kind = "Secret",
    .plural = "secrets",
    .size = sizeof(struct secret),
    .fields = fields,
};

struct sw_self_signed {
    struct sw_instance *self;
    const struct sw_self_signed_options *options;
    sw_authorities_fn fn;
    void *arg;
    struct sw_queue *queue;
    struct sw_kind_entry *entry;
    char *names[3]; /* of the service; the last is NULL */
    struct sw_signed_parts parts, before;
    char *version; /* of the Secret; "": there is none */
    char **bundles;
    size_t bundle_count;
    bool is_stored_known;
    uint64_t since_ms; /* when Secret or caBundle changed last */
    char *served;      /* certificate */
    struct sw_call *call;
    struct sw_run *run; /* that waits for the call */
    enum sw_signed_step step;
    struct sw_backoff pace;
    uint64_t not_before_ms; /* of the next authority */
    int refused_status;     /* of the last answer, where it was a refusal */
    struct sw_metric *not_after;
};

/* ---- reading ---- */

/* New; NULL where it is absent or garbled. */
static char *decoded(const char *base64)
{
    char *text = NULL;
    size_t len = 0;

    if (!base64[0] || sw_base64_decode(base64, strlen(base64), &text, &len))
        return NULL;
    return text;
}

static void read_parts(struct sw_self_signed *s)
{
    const struct sw_object *object =
        sw_lookup(s->self, &kind, s->options->namespace_, s->options->secret_name);
    const struct secret *secret = (const struct secret *)object;

    sw_signed_parts_done(&s->parts);
    sw_free(s->version);
    s->version = sw_strdup(object ? object->resource_version : "");
    if (!secret)
        return;
    s->parts.certificate = decoded(secret->certificate);
    s->parts.key = decoded(secret->key);
    s->parts.authorities = decoded(secret->authorities);
    s->parts.authority_key = decoded(secret->authority_key);
}

/* ---- serving ---- */

static void serve(struct sw_self_signed *s)
{
    struct sw_tls_server_options options = {.certificate_pem = s->parts.certificate,
                                            .key_pem = s->parts.key};
    struct sw_tls_config *config;
    struct sw_error error = {0};
    char until[SW_TIME_SIZE];

    if (s->served && strcmp(s->served, s->parts.certificate) == 0)
        return;
    if (sw_tls_server_config_new(&options, &config, &error)) {
        sw_warn(s->self, "certificate in the Secret cannot be used", SW_STR("why", error.text));
        return;
    }
    sw_time_format(sw_tls_config_not_after(config), until);
    sw_info(s->self, s->served ? "webhook certificate replaced" : "webhook certificate read",
            SW_STR("secret", s->options->secret_name), SW_STR("until", until));
    sw_measure(s->not_after, (double)sw_tls_config_not_after(config) / 1e6);
    sw_free(s->served);
    s->served = sw_strdup(s->parts.certificate);
    s->options->on_pair(s->options->arg, config);
    sw_tls_config_unref(config);
}

/* Only what belongs together is taken over; else what is served stays. */
static void adopt(struct sw_self_signed *s)
{
    int64_t now_us = sw_time_wall_us(s->self);

    if (!sw_signed_has_authority(&s->parts, now_us))
        return;
    s->fn(s->arg, s->parts.authorities);
    if (!sw_signed_has_pair(&s->parts, now_us))
        return;
    sw_signed_parts_copy(&s->before, &s->parts);
    serve(s);
}

static void changed(struct sw_self_signed *s)
{
    s->since_ms = sw_time_ms(s->self);
    sw_self_signed_look(s);
}

static void on_delta(struct sw_instance *self, void *arg, const struct sw_delta *delta)
{
    struct sw_self_signed *s = arg;

    (void)self;
    (void)delta;
    read_parts(s);
    adopt(s);
    changed(s);
}

static void on_listed(struct sw_instance *self, void *arg)
{
    (void)self;
    sw_self_signed_look(arg);
}

/* ---- writing ---- */

static int put_part(struct sw_buf *out, const char *before, const char *name, const char *pem)
{
    int code = sw_buf_printf(out, "%s\"%s\":\"", before, name);

    if (!code && pem)
        code = sw_base64_encode(out, pem, strlen(pem));
    return code ? code : sw_buf_puts(out, "\"");
}

/* -ENOBUFS: more than a Secret of ours can hold. */
static int put_body(const struct sw_self_signed *s, const struct sw_signed_parts *parts,
                    struct sw_buf *out)
{
    const char *const all[][2] = {{"tls.crt", parts->certificate},
                                  {"tls.key", parts->key},
                                  {"ca.crt", parts->authorities},
                                  {"ca.key", parts->authority_key}};
    int code;

    if (s->version[0])
        code = sw_buf_printf(out, "{\"metadata\":{\"resourceVersion\":\"%s\"},", s->version);
    else
        code = sw_buf_printf(out,
                             "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":"
                             "\"%s\"},\"type\":\"kubernetes.io/tls\",",
                             s->options->secret_name);
    for (size_t i = 0; i < SW_ARRAY_SIZE(all) && !code; i++)
        code = put_part(out, i == 0 ? "\"data\":{" : ",", all[i][0], all[i][1]);
    return code ? code : sw_buf_puts(out, "}}");
}

static void say_made(const struct sw_self_signed *s)
{
    static const char *const messages[] = {
        [SW_SIGNED_NEW_AUTHORITY] = "a new authority for the webhook is made",
        [SW_SIGNED_ISSUE] = "a new certificate for the webhook is made",
        [SW_SIGNED_DROP_OLD] = "older authorities of the webhook are dropped",
    };

    sw_info(s->self, messages[s->step], SW_STR("secret", s->options->secret_name));
}

/* The Secret as the answer has it goes into the store, and from there to on_delta. */
static void learn(struct sw_self_signed *s, const struct sw_reply *reply)
{
    struct sw_object *object, *own = NULL;
    struct sw_error error = {0};

    if (sw_decode_object(s->entry->decoder, reply->body, reply->body_len, s->options->namespace_,
                         &object, &error))
        return; /* the watch will tell */
    sw_kind_learn_take(s->entry, object, &own);
    sw_object_free(s->entry->decoder, own);
}

static void say_refused(struct sw_self_signed *s, const struct sw_reply *reply)
{
    const char *message = reply->status == 403 && !s->version[0]
                              ? "Secret with the webhook's certificates cannot be written: it is "
                                "not there, and we may not create it; make an empty one"
                              : "Secret with the webhook's certificates cannot be written";

    if (s->refused_status != reply->status)
        sw_error(s->self, message, SW_STR("namespace", s->options->namespace_),
                 SW_STR("name", s->options->secret_name), SW_INT("status", reply->status),
                 SW_STR("why", reply->why.message ? reply->why.message : ""));
    s->refused_status = reply->status;
}

static void on_reply(void *arg, const struct sw_reply *reply)
{
    struct sw_self_signed *s = arg;
    struct sw_run *run = s->run;
    enum sw_result result = SW_RETRY;

    s->call = NULL;
    s->run = NULL;
    if (reply->code == 0 && reply->status < 300) {
        s->refused_status = 0;
        say_made(s);
        learn(s, reply);
        result = SW_DONE;
    } else if (reply->code == 0 && reply->status >= 400 && reply->status < 500 &&
               reply->status != 409 && reply->status != 404 && reply->status != 429) {
        say_refused(s, reply);
    } else {
        sw_relist(s->self, &kind); /* somebody was faster, or nobody knows what happened */
    }
    sw_run_finish(run, result);
}

static int send(struct sw_self_signed *s, const struct sw_signed_parts *parts)
{
    SW_AUTO(char, sw_free) path = NULL;
    bool is_new = !s->version[0];
    struct sw_buf body;
    char *room;
    int code = sw_client_path(&kind, s->options->namespace_,
                              is_new ? NULL : s->options->secret_name, NULL, &path);

    if (code)
        return code;
    sw_buf_init(&body, BODY_BYTES);
    /* All at once, so that no copy is left behind where it grows. */
    code = sw_buf_reserve(&body, BODY_BYTES - 1, &room);
    sw_assert(code == 0);
    code = put_body(s, parts, &body);
    SW_AUTO(char, sw_free) target = sw_asprintf("%s?fieldManager=" SW_FIELD_MANAGER, path);
    struct sw_call_options options = {
        .method = is_new ? "POST" : "PATCH",
        .path = target,
        .content_type = is_new ? "application/json" : "application/merge-patch+json",
        .body = body.bytes,
        .body_len = body.len,
        .is_guarded = true, /* by the name, or by the version */
        .is_fenced = true,
    };
    if (!code)
        code = sw_client_call(s->self->core->client, &options, on_reply, s, &s->call);
    explicit_bzero(body.bytes, body.len);
    sw_buf_done(&body);
    return code;
}

/* ---- the leader ---- */

static const char *stored_of(const struct sw_self_signed *s)
{
    for (size_t i = 0; i < s->bundle_count; i++)
        if (s->bundles[i][0])
            return s->bundles[i];
    return "";
}

static bool is_trusted(const struct sw_self_signed *s)
{
    for (size_t i = 0; i < s->bundle_count; i++)
        if (!sw_signed_is_trusted(s->bundles[i], &s->parts))
            return false;
    return true;
}

static enum sw_result reconcile(struct sw_instance *self, void *arg, struct sw_run *run)
{
    struct sw_self_signed *s = arg;
    int64_t again_us;

    if (!s->is_stored_known || !sw_is_synced(self, &kind))
        return SW_DONE; /* we shall be told */
    struct sw_signed_view view = {
        .parts = &s->parts,
        .before = &s->before,
        .stored = stored_of(s),
        .is_trusted = is_trusted(s),
        .names = (const char *const *)s->names,
        .times = &s->options->times,
        .now_us = sw_time_wall_us(self),
        .unchanged_us = (int64_t)(sw_time_ms(self) - s->since_ms) * 1000,
    };
    s->step = sw_signed_plan(&view, &again_us);
    if (s->step == SW_SIGNED_NOTHING) {
        uint64_t again_ms = (uint64_t)again_us / 1000 + 1;
        sw_backoff_succeed(&s->pace, self->core->loop);
        sw_queue_add_after(s->queue, key, SW_MIN(again_ms, (uint64_t)LONGEST_WAIT_MS));
        return SW_DONE;
    }
    uint64_t now_ms = sw_time_ms(self);
    if (s->step == SW_SIGNED_NEW_AUTHORITY && now_ms < s->not_before_ms) {
        sw_queue_add_after(s->queue, key, s->not_before_ms - now_ms);
        return SW_DONE;
    }
    if (s->step == SW_SIGNED_NEW_AUTHORITY)
        s->not_before_ms = now_ms + sw_backoff_fail(&s->pace, self->core->loop, 0);
    struct sw_signed_parts made;
    struct sw_error error = {0};
    int code = sw_signed_make(&view, s->step, &made, &error);
    if (code) {
        sw_error(self, "webhook certificate cannot be made", SW_STR("why", error.text));
        return SW_RETRY;
    }
    s->run = run;
    code = send(s, &made);
    sw_signed_parts_done(&made);
    return code ? SW_RETRY : SW_LATER;
}

void sw_self_signed_look(struct sw_self_signed *s)
{
    sw_queue_add(s->queue, key);
}

static void free_bundles(struct sw_self_signed *s)
{
    for (size_t i = 0; i < s->bundle_count; i++)
        sw_free(s->bundles[i]);
    sw_free(s->bundles);
}

static bool are_same(const struct sw_self_signed *s, char *const *bundles, size_t count)
{
    size_t i = 0;

    while (i < count && i < s->bundle_count && strcmp(s->bundles[i], bundles[i]) == 0)
        i++;
    return i == count && i == s->bundle_count;
}

void sw_self_signed_set_stored_take(struct sw_self_signed *s, char **bundles_taken, size_t count)
{
    bool has_changed = !s->is_stored_known || !are_same(s, bundles_taken, count);

    free_bundles(s);
    s->bundles = bundles_taken;
    s->bundle_count = count;
    s->is_stored_known = true;
    if (has_changed)
        changed(s);
}

/* ---- life ---- */

struct sw_self_signed *sw_self_signed_new(struct sw_instance *self,
                                          const struct sw_self_signed_options *options,
                                          sw_authorities_fn fn, void *arg)
{
    struct sw_self_signed *s = SW_NEW(struct sw_self_signed);
    struct sw_queue_options queue = {.name = "webhook-certificates", .fn = reconcile, .arg = s};
    struct sw_watch_options watch = {
        .namespace_ = options->namespace_, .on_delta = on_delta, .on_listed = on_listed, .arg = s};

    s->self = self;
    s->options = options;
    s->fn = fn;
    s->arg = arg;
    s->pace = (struct sw_backoff){.first_ms = PACE_FIRST_MS, .limit_ms = PACE_LIMIT_MS};
    s->version = sw_strdup("");
    s->names[0] = sw_asprintf("%s.%s.svc", options->service_name, options->namespace_);
    s->names[1] =
        sw_asprintf("%s.%s.svc.cluster.local", options->service_name, options->namespace_);
    s->queue = sw_queue_new(self, &queue);
    s->entry = sw_kinds_entry(&self->core->kinds, &kind);
    sw_decoder_set_secret(s->entry->decoder);
    s->not_after = sw_gauge(self, "slipway_webhook_certificate_not_after_seconds",
                            "When it ends, in seconds since 1970.", NULL, NULL);
    sw_kinds_watch_aside(self, &kind, options->secret_name, &watch);
    /* Not SW_CREATE: where the Secret is made by the manifest nobody need be allowed to make it,
     * and who is not is told when it is missing. */
    sw_write_declare(self, &kind, SW_MERGE_PATCH, SW_MAIN);
    return s;
}

struct sw_self_signed *sw_self_signed_free(struct sw_self_signed *s)
{
    if (!s)
        return NULL;
    if (s->call)
        sw_call_cancel(s->call);
    sw_signed_parts_done(&s->parts);
    sw_signed_parts_done(&s->before);
    free_bundles(s);
    sw_free(s->names[0]);
    sw_free(s->names[1]);
    sw_free(s->version);
    sw_free(s->served);
    return sw_free(s);
}
