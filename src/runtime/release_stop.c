/* SPDX-License-Identifier: Apache-2.0 */
/*
 *   state      asks                                          next
 *   WEBHOOK    DELETE of the mutating webhook configuration  VALIDATING
 *   VALIDATING DELETE of the validating one                  SCALE
 *   SCALE      PATCH of our Deployment: replicas 0           PODS; no such Deployment: the end
 *   PODS       GET of the first Pod that its selector        the end: there is none, or the time
 *              selects, each second                          is over
 *
 * A Pod that is being deleted counts, as it may still run: status.replicas does not count it.
 */
#include "runtime/release_stop.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <slipway/apps.h>
#include <slipway/arbiter.h>
#include <slipway/json.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/loop.h"
#include "base/map.h"
#include "base/util.h"
#include "kube/client.h"
#include "kube/decode.h"
#include "net/url.h"
#include "runtime/webhook_mend.h"

enum { LIMIT_MS = 60 * 1000, TICK_MS = 1000, TRIES_MAX = 30 };

enum state { WEBHOOK, VALIDATING, SCALE, PODS };

struct stop {
    struct sw_client *client;
    const struct sw_release_stop_options *options;
    struct sw_buf *out;
    sw_release_stop_fn fn;
    void *arg;
    struct sw_loop *loop;
    struct sw_timer timer; /* the next question */
    struct sw_call *call;
    enum state state;
    unsigned tries;
    char *selector; /* of the Pods, encoded */
    uint64_t end_ms;
};

struct own {
    struct sw_object meta;
    struct sw_labels selector;
};

static const struct sw_bind own_fields[] = {
    SW_BIND("/spec/selector/matchLabels", SW_BIND_LABELS, struct own, selector),
    SW_BIND_END,
};

/* Our own Deployment, of which only the selector counts. */
static const struct sw_kind own_deployment = {.group = "apps",
                                              .version = "v1",
                                              .kind = "Deployment",
                                              .plural = "deployments",
                                              .size = sizeof(struct own),
                                              .fields = own_fields};
static const struct sw_kind pods = {.group = "", .version = "v1", .kind = "Pod", .plural = "pods"};

/* ---- the end ---- */

static void end(struct stop *stop, const struct sw_error *error)
{
    sw_release_stop_fn fn = stop->fn;
    void *arg = stop->arg;

    sw_timer_stop(&stop->timer);
    sw_free(stop->selector);
    sw_free(stop);
    fn(arg, error);
}

static void fail(struct stop *stop, const struct sw_reply *reply)
{
    static const char *const what[] = {
        [WEBHOOK] = "webhook configuration cannot be deleted",
        [VALIDATING] = "validating webhook configuration cannot be deleted",
        [SCALE] = "slipway's Deployment cannot be scaled to 0",
        [PODS] = "slipway's Pods cannot be listed",
    };
    struct sw_error error = {0};

    if (reply->code)
        sw_error_set(&error, reply->code, "%s: %s; nothing was released", what[stop->state],
                     reply->error ? reply->error->text : sw_strerror(reply->code));
    else
        sw_error_set(&error, SW_E_STATUS, "%s: %d %s; nothing was released", what[stop->state],
                     reply->status, reply->why.message ? reply->why.message : "");
    end(stop, &error);
}

static void next(struct stop *stop, enum state state, uint64_t after_ms)
{
    stop->state = state;
    stop->tries = 0;
    sw_timer_start(&stop->timer, after_ms);
}

/* ---- answers ---- */

static void on_deleted(struct stop *stop, const struct sw_reply *reply)
{
    sw_buf_printf(stop->out, "webhook configuration %s: %s\n", stop->options->webhook_configuration,
                  reply->status == 404 ? "not there" : "deleted");
    next(stop, VALIDATING, 0);
}

/* It is there only where a module has registered a validating path. */
static void on_validating_deleted(struct stop *stop, const struct sw_reply *reply)
{
    if (reply->status != 404)
        sw_buf_printf(stop->out, "validating webhook configuration %s: deleted\n",
                      stop->options->webhook_configuration);
    next(stop, SCALE, 0);
}

/* "a=b,c=d", encoded for a query; "" where it cannot be read. */
static char *selector_of(const struct stop *stop, const struct sw_reply *reply)
{
    struct sw_intern *intern = sw_intern_new();
    struct sw_decoder *decoder = sw_decoder_new(&own_deployment, intern);
    struct sw_object *object = NULL;
    struct sw_buf text, encoded;

    sw_buf_init(&text, SIZE_MAX);
    sw_buf_init(&encoded, SIZE_MAX);
    if (!sw_decode_object(decoder, reply->body, reply->body_len, stop->options->namespace_, &object,
                          NULL)) {
        const struct sw_labels *labels = &((const struct own *)(const void *)object)->selector;
        for (uint32_t i = 0; i < labels->count; i++)
            sw_buf_printf(&text, "%s%s=%s", i > 0 ? "," : "", labels->at[i].key,
                          labels->at[i].value);
        sw_object_free(decoder, object);
    }
    sw_url_encode(&encoded, text.bytes ? text.bytes : "");
    char *selector = sw_strdup(encoded.bytes ? encoded.bytes : "");
    sw_buf_done(&text);
    sw_buf_done(&encoded);
    sw_decoder_free(decoder);
    sw_intern_free(intern);
    return selector;
}

static void on_scaled(struct stop *stop, const struct sw_reply *reply)
{
    const struct sw_release_stop_options *o = stop->options;

    if (reply->status == 404) {
        sw_buf_printf(stop->out, "Deployment %s/%s: not there\n", o->namespace_, o->deployment);
        end(stop, NULL);
        return;
    }
    stop->selector = selector_of(stop, reply);
    stop->end_ms = sw_now_ms(stop->loop) + (o->limit_ms ? o->limit_ms : LIMIT_MS);
    if (stop->selector[0]) {
        next(stop, PODS, 0);
        return;
    }
    sw_buf_printf(stop->out,
                  "Deployment %s/%s: scaled to 0; its Pods were not waited for, since "
                  "its selector has no matchLabels\n",
                  o->namespace_, o->deployment);
    end(stop, NULL);
}

static bool has_pods(const struct sw_reply *reply)
{
    struct sw_arena *arena = sw_arena_new(0);
    struct sw_json *body;
    bool has = sw_json_parse(arena, reply->body, reply->body_len, &body, NULL) ||
               sw_json_size(sw_json_get(body, "items")) > 0;

    sw_arena_free(arena);
    return has;
}

static void on_pods(struct stop *stop, const struct sw_reply *reply)
{
    const struct sw_release_stop_options *o = stop->options;
    bool has = has_pods(reply);

    if (has && sw_now_ms(stop->loop) < stop->end_ms) {
        next(stop, PODS, TICK_MS);
        return;
    }
    sw_buf_printf(stop->out, "Deployment %s/%s: scaled to 0, %s\n", o->namespace_, o->deployment,
                  has ? "but a Pod of it does not end; going on without waiting for it"
                      : "its Pods are gone");
    end(stop, NULL);
}

static bool is_passing(const struct sw_reply *reply)
{
    return reply->code || reply->status == 409 || reply->status == 429 || reply->status >= 500;
}

static void on_reply(void *arg, const struct sw_reply *reply)
{
    static void (*const answered[])(struct stop *, const struct sw_reply *) = {
        [WEBHOOK] = on_deleted,
        [VALIDATING] = on_validating_deleted,
        [SCALE] = on_scaled,
        [PODS] = on_pods};
    struct stop *stop = arg;

    stop->call = NULL;
    if (is_passing(reply) && ++stop->tries < TRIES_MAX)
        sw_timer_start(&stop->timer, TICK_MS);
    else if (reply->code || (reply->status >= 300 && reply->status != 404))
        fail(stop, reply);
    else
        answered[stop->state](stop, reply);
}

/* ---- questions ---- */

static int ask(struct stop *stop)
{
    const struct sw_release_stop_options *o = stop->options;
    struct sw_call_options call = {.method = "GET"};
    SW_AUTO(char, sw_free) path = NULL;
    SW_AUTO(char, sw_free) with_query = NULL;
    int code = -EINVAL;

    switch (stop->state) {
    case WEBHOOK:
    case VALIDATING:
        call.method = "DELETE";
        code = sw_client_path(stop->state == WEBHOOK ? &sw_kind_mutating_webhooks
                                                     : &sw_kind_validating_webhooks,
                              NULL, o->webhook_configuration, NULL, &path);
        break;
    case SCALE:
        call.method = "PATCH";
        call.content_type = "application/merge-patch+json";
        call.body = "{\"spec\":{\"replicas\":0}}";
        call.body_len = strlen(call.body);
        call.is_guarded = true; /* said twice it means the same */
        code = sw_client_path(&sw_kind_deployment, o->namespace_, o->deployment, NULL, &path);
        break;
    case PODS:
        code = sw_client_path(&pods, o->namespace_, NULL, NULL, &path);
        break;
    }
    if (code)
        return code;
    with_query = stop->state == PODS
                     ? sw_asprintf("%s?limit=1&labelSelector=%s", path, stop->selector)
                     : sw_asprintf("%s?fieldManager=" SW_FIELD_MANAGER, path);
    call.path = call.method[0] == 'D' ? path : with_query;
    return sw_client_call(stop->client, &call, on_reply, stop, &stop->call);
}

static void on_timer(struct sw_timer *timer)
{
    struct stop *stop = container_of(timer, struct stop, timer);
    int code = ask(stop);

    if (code)
        fail(stop, &(struct sw_reply){.code = code});
}

void sw_release_stop(struct sw_loop *loop, struct sw_client *client,
                     const struct sw_release_stop_options *options, struct sw_buf *out,
                     sw_release_stop_fn fn, void *arg)
{
    struct stop *stop = SW_NEW(struct stop);

    stop->loop = loop;
    stop->client = client;
    stop->options = options;
    stop->out = out;
    stop->fn = fn;
    stop->arg = arg;
    sw_timer_init(&stop->timer, loop, on_timer);
    next(stop, options->webhook_configuration ? WEBHOOK : SCALE, 0);
}
