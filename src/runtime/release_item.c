/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One object that is let go of. A patch that meets a newer version is decided anew on that
 * version.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <slipway/apps.h>
#include <slipway/arbiter.h>
#include <slipway/arena.h>
#include <slipway/json.h>
#include <slipway/workloads.h>

#include "kube/client.h"
#include "kube/decode.h"
#include "runtime/release_all_internal.h"

/* ---- kinds ---- */

/* What keeps a SteppedRollout until module stepping has let go of its target. */
#define FINALIZER "slipway.dev/stepping"

struct stepped_rollout {
    struct sw_object meta;
    struct sw_strings finalizers;
};

static const struct sw_bind stepped_rollout_fields[] = {
    SW_BIND("/metadata/finalizers", SW_BIND_STRINGS, struct stepped_rollout, finalizers),
    SW_BIND_END,
};

static const struct sw_kind stepped_rollouts = {
    .group = "slipway.dev",
    .version = "v1alpha1",
    .kind = "SteppedRollout",
    .plural = "steppedrollouts",
    .size = sizeof(struct stepped_rollout),
    .fields = stepped_rollout_fields,
};

const struct sw_kind *const sw_release_kinds[] = {
    &stepped_rollouts,
    &sw_kind_stateful_set,
    &sw_kind_daemon_set,
    &sw_kind_deployment,
};

/* ---- the patch ---- */

static const char *const marks[] = {SW_HELD_BY,    SW_RELEASED_BY, SW_COORDINATED_BY,
                                    SW_STEPPED_BY, SW_FENCE,       SW_SAVED};

static bool is_marked(const struct sw_object *object)
{
    for (size_t i = 0; i < SW_ARRAY_SIZE(marks); i++)
        if (sw_annotation(object, marks[i]))
            return true;
    return false;
}

/* A copy of a member, to be put elsewhere; JSON null where it is absent. */
static struct sw_json *member(struct sw_arena *arena, const struct sw_json *object, const char *key)
{
    const struct sw_json *value = sw_json_get(object, key);
    struct sw_json *to = NULL;
    size_t len;

    if (!value)
        return sw_json_null(arena);
    const char *text = sw_json_dump(value, arena, &len);
    int code = sw_json_parse(arena, text, len, &to, NULL);
    sw_assert(code == 0); /* it was parsed before */
    return to;
}

/* Of the object itself nothing is left: a merge patch would keep what it does not name. */
static struct sw_json *strategy(struct sw_arena *arena, const struct sw_json *saved)
{
    static const char *const members[] = {"partition", "maxUnavailable", "maxSurge"};
    struct sw_json *to = member(arena, saved, "updateStrategy");

    if (sw_json_type(to) != SW_JSON_OBJECT)
        return to;
    if (sw_json_type(sw_json_get(to, "rollingUpdate")) != SW_JSON_OBJECT) {
        sw_json_set(to, "rollingUpdate", NULL);
        return to;
    }
    struct sw_json *rolling = sw_json_set_object(to, "rollingUpdate");
    for (size_t i = 0; i < SW_ARRAY_SIZE(members); i++)
        if (!sw_json_get(rolling, members[i]))
            sw_json_set(rolling, members[i], NULL);
    return to;
}

/* What was saved goes back into spec. False: it cannot be read. */
static bool put_back(struct sw_arena *arena, const struct sw_object *object, struct sw_json *patch)
{
    static const char *const members[] = {"minReadySeconds", "progressDeadlineSeconds"};
    const char *text = sw_annotation(object, SW_SAVED);
    struct sw_json *saved = NULL;

    if (!text)
        return true;
    if (sw_json_parse(arena, text, strlen(text), &saved, NULL) ||
        sw_json_type(saved) != SW_JSON_OBJECT)
        return false;
    struct sw_json *spec = sw_json_set_object(patch, "spec");
    if (object->kind != &sw_kind_deployment) {
        const struct sw_json *own = sw_json_get(saved, "updateStrategy");
        if (!own || (sw_json_type(own) != SW_JSON_OBJECT && sw_json_type(own) != SW_JSON_NULL))
            return false; /* what stands there would hold it for ever */
        sw_json_set(spec, "updateStrategy", strategy(arena, saved));
        return true;
    }
    for (size_t i = 0; i < SW_ARRAY_SIZE(members); i++)
        if (sw_json_get(saved, members[i]))
            sw_json_set(spec, members[i], member(arena, saved, members[i]));
    return true;
}

static struct sw_json *patch_of_rollout(struct sw_arena *arena, const struct sw_object *object)
{
    const struct stepped_rollout *rollout = (const struct stepped_rollout *)(const void *)object;
    struct sw_json *patch = sw_json_object(arena);
    struct sw_json *metadata = sw_json_set_object(patch, "metadata");
    struct sw_json *finalizers = sw_json_set_array(metadata, "finalizers");
    bool is_there = false;

    for (uint32_t i = 0; i < rollout->finalizers.count; i++)
        if (strcmp(rollout->finalizers.at[i], FINALIZER) == 0)
            is_there = true;
        else
            sw_json_append_string(finalizers, rollout->finalizers.at[i]);
    sw_json_set_string(metadata, "resourceVersion", object->resource_version);
    return is_there ? patch : NULL;
}

static bool resumes(const struct sw_object *object, bool keeps_wishes)
{
    const char *held_by = sw_annotation(object, SW_HELD_BY);

    if (object->kind != &sw_kind_deployment)
        return sw_annotation(object, SW_SAVED) != NULL;
    return sw_as_deployment(object)->is_paused && held_by && held_by[0] &&
           !(keeps_wishes && sw_annotation(object, SW_HOLD_BY_USER));
}

struct sw_json *sw_release_all_patch(struct sw_arena *arena, const struct sw_object *object,
                                     bool keeps_wishes, bool *ret_resumes, const char **ret_error)
{
    *ret_error = NULL;
    *ret_resumes = false;
    if (object->kind == &stepped_rollouts)
        return patch_of_rollout(arena, object);
    if (!is_marked(object))
        return NULL;
    struct sw_json *patch = sw_json_object(arena);
    struct sw_json *metadata = sw_json_set_object(patch, "metadata");
    struct sw_json *annotations = sw_json_set_object(metadata, "annotations");

    for (size_t i = 0; i < SW_ARRAY_SIZE(marks); i++)
        if (sw_annotation(object, marks[i]))
            sw_json_set(annotations, marks[i], NULL);
    sw_json_set_string(metadata, "resourceVersion", object->resource_version);
    *ret_resumes = resumes(object, keeps_wishes);
    if (!put_back(arena, object, patch))
        *ret_error = SW_SAVED " cannot be read: put spec right by hand, then remove it";
    if (*ret_resumes && object->kind == &sw_kind_deployment)
        sw_json_set_bool(sw_json_set_object(patch, "spec"), "paused", false);
    return patch;
}

/* ---- one object ---- */

static const char *done_text(const struct sw_release_item *item)
{
    if (item->kind == &stepped_rollouts)
        return "finalizer removed";
    if (!item->resumes)
        return "annotations removed";
    return item->kind == &sw_kind_deployment ? "resumed" : "strategy put back";
}

static const char *would_text(const struct sw_release_item *item)
{
    if (item->kind == &stepped_rollouts)
        return "would lose its finalizer";
    if (!item->resumes)
        return "would lose its annotations";
    return item->kind == &sw_kind_deployment ? "would be resumed" : "would get its strategy back";
}

void sw_release_item_done(struct sw_release_item *item, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(item->result, sizeof(item->result), format, args);
    va_end(args);
    item->state = SW_RELEASE_ITEM_DONE;
}

static void item_failed(struct sw_release_item *item, const char *why)
{
    item->has_failed = true;
    sw_release_item_done(item, "failed: %s", why);
}

bool sw_release_item_decide(struct sw_release_item *item, const struct sw_object *object)
{
    struct sw_arena *arena = sw_arena_new(0);
    const char *held_by = sw_annotation(object, SW_HELD_BY);
    const char *wish = sw_annotation(object, SW_HOLD_BY_USER);
    const char *error;
    struct sw_json *patch = sw_release_all_patch(arena, object, sw_release_is_in_order(item->all),
                                                 &item->resumes, &error);

    if (object->kind == &sw_kind_deployment) {
        item->turn = sw_release_turn_of(sw_as_deployment(object));
        if (item->turn == SW_RELEASE_WAITS && !item->resumes)
            item->turn = SW_RELEASE_AT_REST; /* it stays paused */
        item->order = sw_release_order_of(sw_as_deployment(object));
    }
    sw_free(item->wish);
    item->wish = wish ? sw_strdup(wish) : NULL;

    item->body = sw_free(item->body);
    if (patch) {
        item->body = sw_strdup(sw_json_dump(patch, arena, &item->body_len));
        sw_free(item->held_by);
        item->held_by = sw_strdup(held_by ? held_by : "");
    }
    if (patch && error)
        item_failed(item, error);
    sw_arena_free(arena);
    return patch != NULL;
}

void sw_release_item_free(struct sw_release_item *item)
{
    sw_free(item->namespace_);
    sw_free(item->name);
    sw_free(item->held_by);
    sw_free(item->wish);
    sw_free(item->body);
    sw_free(item);
}

static void item_again(struct sw_release_item *item)
{
    item->state = SW_RELEASE_ITEM_WAITING;
    item->is_resting = sw_release_is_in_order(item->all);
    item->body = sw_free(item->body);
    if (++item->tries >= SW_RELEASE_TRIES_MAX)
        item_failed(item, "others keep changing it");
}

/* The object of a reply, or NULL; then the item has failed. */
static struct sw_object *object_in(struct sw_release_item *item, const struct sw_reply *reply)
{
    struct sw_object *object = NULL;
    struct sw_error error = {0};

    if (sw_decode_object(item->all->decoder, reply->body, reply->body_len, item->namespace_,
                         &object, &error))
        item_failed(item, error.text);
    return object;
}

static void on_read(struct sw_release_item *item, const struct sw_reply *reply)
{
    struct sw_object *object = object_in(item, reply);

    if (!object)
        return;
    item->state = SW_RELEASE_ITEM_WAITING;
    if (!sw_release_item_decide(item, object))
        sw_release_item_done(item, "somebody else released it");
    sw_object_free(item->all->decoder, object);
}

/* In order: it bears nothing of ours any more. */
static void item_released(struct sw_release_item *item, const struct sw_deployment *deployment)
{
    struct sw_release_all *all = item->all;

    if (!item->resumes && deployment->is_paused) {
        item->is_left_paused = true;
        if (item->wish)
            sw_release_item_done(item, "left paused, as slipway.dev/hold wishes: %.100s",
                                 item->wish);
        else
            sw_release_item_done(item, "left paused by whoever paused it");
    } else if (all->is_over && item->turn == SW_RELEASE_WAITS) {
        item->is_late = true;
        sw_release_item_done(item, "resumed when the time was over");
    } else if (item->turn == SW_RELEASE_AT_REST) {
        sw_release_item_done(item, "%s", done_text(item));
    } else {
        item->state = SW_RELEASE_ITEM_ROLLING;
        item->began_ms = sw_now_ms(all->loop);
    }
}

/* Whatever stands between us and the store may have put the hold back. */
static void on_patched(struct sw_release_item *item, const struct sw_reply *reply)
{
    struct sw_object *object = object_in(item, reply);

    if (!object)
        return;
    if (sw_annotation(object, SW_HELD_BY))
        item_failed(item, "held again at once: slipway still runs; stop it first");
    else if (sw_release_is_in_order(item->all))
        item_released(item, sw_as_deployment(object));
    else
        sw_release_item_done(item, "%s", done_text(item));
    sw_object_free(item->all->decoder, object);
}

/* Of one that rolls. What could not be read is looked at again. */
static void on_look(struct sw_release_item *item, const struct sw_reply *reply)
{
    struct sw_release_all *all = item->all;
    struct sw_object *object = NULL;
    uint64_t took_ms = sw_now_ms(all->loop) - item->began_ms;

    if (reply->code == 0 && reply->status == 404)
        sw_release_item_done(item, "%sdeleted since", item->resumes ? "resumed, " : "");
    if (reply->code || reply->status >= 300 ||
        sw_decode_object(all->decoder, reply->body, reply->body_len, item->namespace_, &object,
                         NULL))
        return;
    if (is_marked(object)) {
        item_again(item); /* by one that was still stopping */
    } else if (sw_as_deployment(object)->is_paused) {
        sw_release_item_done(item, "%spaused by somebody since", item->resumes ? "resumed, " : "");
        item->is_left_paused = true;
    } else if (sw_release_is_complete(sw_as_deployment(object))) {
        sw_release_item_done(item, "%scomplete after %llu s", item->resumes ? "resumed, " : "",
                             (unsigned long long)(took_ms + 500) / 1000);
    }
    sw_object_free(all->decoder, object);
}

static void on_reply(void *arg, const struct sw_reply *reply)
{
    struct sw_release_item *item = arg;
    struct sw_release_all *all = item->all;

    item->call = NULL;
    if (item->state == SW_RELEASE_ITEM_ROLLING) {
        on_look(item, reply);
        sw_defer_start(&all->step);
        return;
    }
    all->asking--;
    if (reply->code == 0 && reply->status == 404)
        sw_release_item_done(item, "deleted meanwhile");
    else if (reply->code || reply->status == 409 || reply->status == 429 || reply->status >= 500)
        item_again(item);
    else if (reply->status >= 400)
        item_failed(item, reply->why.message);
    else if (item->body)
        on_patched(item, reply);
    else
        on_read(item, reply);
    sw_defer_start(&all->step);
}

/* What cannot be sent is sent with the next tick. */
void sw_release_item_look(struct sw_release_item *item)
{
    struct sw_call_options options = {.method = "GET"};
    SW_AUTO(char, sw_free) path = NULL;

    if (sw_client_path(item->kind, item->namespace_, item->name, NULL, &path))
        return;
    options.path = path;
    if (sw_client_call(item->all->client, &options, on_reply, item, &item->call))
        item->call = NULL;
}

static void item_ask(struct sw_release_item *item)
{
    struct sw_release_all *all = item->all;
    struct sw_call_options options = {
        .method = item->body ? "PATCH" : "GET",
        .content_type = item->body ? "application/merge-patch+json" : NULL,
        .body = item->body,
        .body_len = item->body_len,
        .is_guarded = true,
    };
    char *path = NULL;
    int code = sw_client_path(item->kind, item->namespace_, item->name, NULL, &path);

    if (code) {
        item_failed(item, sw_strerror(code));
        return;
    }
    SW_AUTO(char, sw_free)
    with_manager =
        item->body ? sw_asprintf("%s?fieldManager=%s", path, all->field_manager) : sw_strdup(path);
    options.path = with_manager;
    item->state = SW_RELEASE_ITEM_ASKING;
    code = sw_client_call(all->client, &options, on_reply, item, &item->call);
    sw_free(path);
    if (code)
        item_failed(item, sw_strerror(code));
    else
        all->asking++;
}

void sw_release_item_begin(struct sw_release_item *item)
{
    if (!item->all->options.is_dry_run)
        item_ask(item);
    else if (sw_release_is_in_order(item->all) && item->turn == SW_RELEASE_WAITS)
        sw_release_item_done(item, "would be resumed in its turn");
    else
        sw_release_item_done(item, "%s", would_text(item));
}
