/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One list, read in pages; then one patch for each Deployment that needs it, a few at a time. A
 * patch that meets a newer version is decided anew on that version.
 */
#include "runtime/release_all.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <slipway/apps.h>
#include <slipway/arbiter.h>
#include <slipway/json.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/list.h"
#include "base/loop.h"
#include "base/map.h"
#include "base/util.h"
#include "kube/client.h"
#include "kube/decode.h"
#include "net/url.h"

enum {
    PAGE_SIZE = 500,
    AT_ONCE = 4,
    TRIES_MAX = 10,
    ITEM_LIMIT_BYTES = 32 * 1024 * 1024,
};

enum state { WAITING, ASKING, DONE };

/* One Deployment of the list that has something of ours. */
struct item {
    struct sw_release_all *all;
    char *namespace_, *name, *held_by;
    char *body; /* of the patch; NULL: read it again first */
    size_t body_len;
    bool resumes;
    enum state state;
    unsigned tries;
    struct sw_call *call;
    bool has_failed;
    char result[200];
};

struct sw_release_all {
    struct sw_client *client;
    struct sw_release_all_options options;
    char *namespace_;
    struct sw_buf *out;
    sw_release_all_fn fn;
    void *arg;
    struct sw_intern *intern;
    struct sw_decoder *decoder;
    struct sw_defer step;
    struct item **items;
    size_t item_count, asking;
    unsigned list_tries;
    char *continue_; /* of the next page */
    struct sw_error list_error;
    struct sw_release_all_result result;
};

/* ---- what is to be done with one ---- */

static const char *const marks[] = {SW_HELD_BY, SW_RELEASED_BY, SW_COORDINATED_BY, SW_FENCE};

struct sw_json *sw_release_all_patch(struct sw_arena *arena, const struct sw_deployment *deployment,
                                     bool *ret_resumes)
{
    const char *held_by = sw_annotation(&deployment->meta, SW_HELD_BY);
    struct sw_json *patch = sw_json_object(arena);
    struct sw_json *metadata = sw_json_set_object(patch, "metadata");
    struct sw_json *annotations = sw_json_set_object(metadata, "annotations");

    for (size_t i = 0; i < SW_ARRAY_SIZE(marks); i++)
        if (sw_annotation(&deployment->meta, marks[i]))
            sw_json_set(annotations, marks[i], NULL);
    if (sw_json_size(annotations) == 0)
        return NULL;
    sw_json_set_string(metadata, "resourceVersion", deployment->meta.resource_version);
    *ret_resumes = deployment->is_paused && held_by && held_by[0];
    if (*ret_resumes)
        sw_json_set_bool(sw_json_set_object(patch, "spec"), "paused", false);
    return patch;
}

/* False: there is nothing of ours on it. */
static bool decide(struct item *item, const struct sw_object *object)
{
    struct sw_arena *arena = sw_arena_new(0);
    const char *held_by = sw_annotation(object, SW_HELD_BY);
    struct sw_json *patch = sw_release_all_patch(arena, sw_as_deployment(object), &item->resumes);

    item->body = sw_free(item->body);
    if (patch) {
        item->body = sw_strdup(sw_json_dump(patch, arena, &item->body_len));
        sw_free(item->held_by);
        item->held_by = sw_strdup(held_by ? held_by : "");
    }
    sw_arena_free(arena);
    return patch != NULL;
}

/* ---- the end ---- */

static void print_table(const struct sw_release_all *all)
{
    int namespace_ = (int)strlen("NAMESPACE"), name = (int)strlen("DEPLOYMENT");
    int held_by = (int)strlen("HELD BY");

    for (size_t i = 0; i < all->item_count; i++) {
        const struct item *item = all->items[i];
        namespace_ = SW_MAX(namespace_, (int)strlen(item->namespace_));
        name = SW_MAX(name, (int)strlen(item->name));
        held_by = SW_MAX(held_by, (int)strlen(item->held_by));
    }
    if (all->item_count > 0)
        sw_buf_printf(all->out, "%-*s  %-*s  %-*s  RESULT\n", namespace_, "NAMESPACE", name,
                      "DEPLOYMENT", held_by, "HELD BY");
    for (size_t i = 0; i < all->item_count; i++) {
        const struct item *item = all->items[i];
        sw_buf_printf(all->out, "%-*s  %-*s  %-*s  %s\n", namespace_, item->namespace_, name,
                      item->name, held_by, item->held_by[0] ? item->held_by : "-", item->result);
    }
}

static void print_sum(const struct sw_release_all *all)
{
    const struct sw_release_all_result *result = &all->result;

    if (!result->is_list_complete)
        sw_buf_printf(all->out, "cannot list Deployments: %s\n", all->list_error.text);
    else if (all->item_count == 0)
        sw_buf_puts(all->out, "slipway holds nothing here\n");
    else
        sw_buf_printf(all->out, "%s: %zu resumed, %zu unmarked, %zu failed\n",
                      all->options.is_dry_run ? "would be" : "done", result->resumed,
                      result->unmarked, result->failed);
}

static void item_free(struct item *item)
{
    sw_free(item->namespace_);
    sw_free(item->name);
    sw_free(item->held_by);
    sw_free(item->body);
    sw_free(item);
}

static void forget_items(struct sw_release_all *all)
{
    for (size_t i = 0; i < all->item_count; i++)
        item_free(all->items[i]);
    all->item_count = 0;
}

static void end(struct sw_release_all *all)
{
    struct sw_release_all_result result = all->result;
    sw_release_all_fn fn = all->fn;
    void *arg = all->arg;

    if (result.is_list_complete)
        print_table(all);
    print_sum(all);
    forget_items(all);
    sw_defer_stop(&all->step);
    sw_decoder_free(all->decoder);
    sw_intern_free(all->intern);
    sw_free(all->items);
    sw_free(all->continue_);
    sw_free(all->namespace_);
    sw_free(all);
    fn(arg, &result);
}

/* ---- patches ---- */

static SW_PRINTF(2, 3) void item_done(struct item *item, const char *format, ...)
{
    struct sw_release_all *all = item->all;
    va_list args;

    va_start(args, format);
    vsnprintf(item->result, sizeof(item->result), format, args);
    va_end(args);
    item->state = DONE;
    if (item->has_failed)
        all->result.failed++;
    else if (item->resumes)
        all->result.resumed++;
    else
        all->result.unmarked++;
}

static void item_failed(struct item *item, const char *why)
{
    item->has_failed = true;
    item_done(item, "failed: %s", why);
}

static void item_again(struct item *item)
{
    item->state = WAITING;
    item->body = sw_free(item->body);
    if (++item->tries >= TRIES_MAX)
        item_failed(item, "others keep changing it");
}

/* The object of a reply, or NULL; then the item has failed. */
static struct sw_object *object_in(struct item *item, const struct sw_reply *reply)
{
    struct sw_object *object = NULL;
    struct sw_error error = {0};

    if (sw_decode_object(item->all->decoder, reply->body, reply->body_len, item->namespace_,
                         &object, &error))
        item_failed(item, error.text);
    return object;
}

static void on_read(struct item *item, const struct sw_reply *reply)
{
    struct sw_object *object = object_in(item, reply);

    if (!object)
        return;
    if (decide(item, object))
        item->state = WAITING;
    else
        item_done(item, "somebody else released it");
    sw_object_free(item->all->decoder, object);
}

/* Whatever stands between us and the store may have put the hold back. */
static void on_patched(struct item *item, const struct sw_reply *reply)
{
    struct sw_object *object = object_in(item, reply);

    if (!object)
        return;
    if (sw_annotation(object, SW_HELD_BY))
        item_failed(item, "held again at once: slipway still runs; stop it first");
    else
        item_done(item, item->resumes ? "resumed" : "annotations removed");
    sw_object_free(item->all->decoder, object);
}

static void on_reply(void *arg, const struct sw_reply *reply)
{
    struct item *item = arg;
    struct sw_release_all *all = item->all;

    item->call = NULL;
    all->asking--;
    if (reply->code == 0 && reply->status == 404)
        item_done(item, "deleted meanwhile");
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

static void item_ask(struct item *item)
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
    int code = sw_client_path(&sw_kind_deployment, item->namespace_, item->name, NULL, &path);

    if (code) {
        item_failed(item, sw_strerror(code));
        return;
    }
    SW_AUTO(char, sw_free)
    with_manager = sw_asprintf("%s%s", path, item->body ? "?fieldManager=" SW_FIELD_MANAGER : "");
    options.path = with_manager;
    item->state = ASKING;
    code = sw_client_call(all->client, &options, on_reply, item, &item->call);
    sw_free(path);
    if (code)
        item_failed(item, sw_strerror(code));
    else
        all->asking++;
}

static void begin_items(struct sw_release_all *all)
{
    for (size_t i = 0; i < all->item_count && all->asking < AT_ONCE; i++) {
        struct item *item = all->items[i];
        if (item->state != WAITING)
            continue;
        if (all->options.is_dry_run)
            item_done(item, item->resumes ? "would be resumed" : "would lose its annotations");
        else
            item_ask(item);
    }
}

/* ---- the list ---- */

static void on_bad(void *arg, const struct sw_bad_item *bad)
{
    struct sw_release_all *all = arg;

    sw_buf_printf(all->out, "skipped: %s\n", bad->error->text);
    all->result.failed++;
}

static void on_item(void *arg, struct sw_object *object)
{
    struct sw_release_all *all = arg;
    struct item *item;

    item = SW_NEW(struct item);
    item->all = all;
    item->namespace_ = sw_strdup(object->namespace_);
    item->name = sw_strdup(object->name);
    item->held_by = sw_strdup("");
    if (decide(item, object)) {
        all->items = sw_realloc(all->items, all->item_count + 1, sizeof(struct item *));
        all->items[all->item_count++] = item;
    } else {
        item_free(item);
    }
    sw_object_free(all->decoder, object);
}

/* 0, or the code with all->list_error said. */
static int read_page(struct sw_release_all *all, const struct sw_reply *reply)
{
    static const struct sw_list_events events = {.on_item = on_item, .on_bad = on_bad};
    struct sw_list_reader *reader =
        sw_list_reader_new(all->decoder, ITEM_LIMIT_BYTES, &events, all);
    const char *version, *next = "";
    int code = sw_list_reader_feed(reader, reply->body, reply->body_len, &all->list_error);

    if (!code)
        code = sw_list_reader_finish(reader, &version, &next, &all->list_error);
    sw_free(all->continue_);
    all->continue_ = !code && next[0] ? sw_strdup(next) : NULL;
    sw_list_reader_free(reader);
    return code;
}

static void list(struct sw_release_all *all);

static void on_page(void *arg, const struct sw_reply *reply)
{
    struct sw_release_all *all = arg;

    if (reply->code) {
        sw_error_set(&all->list_error, reply->code, "%s",
                     reply->error ? reply->error->text : sw_strerror(reply->code));
        end(all);
    } else if (reply->status == 410 && ++all->list_tries < TRIES_MAX) {
        /* The token of the next page has expired: what was read does not fit what would come. */
        forget_items(all);
        all->continue_ = sw_free(all->continue_);
        list(all);
    } else if (reply->status >= 300) {
        sw_error_set(&all->list_error, SW_E_STATUS, "%d %s", reply->status, reply->why.message);
        end(all);
    } else if (read_page(all, reply)) {
        end(all);
    } else if (all->continue_) {
        list(all);
    } else {
        all->result.is_list_complete = true;
        sw_defer_start(&all->step);
    }
}

static void list(struct sw_release_all *all)
{
    struct sw_call_options options = {.method = "GET"};
    struct sw_call *call;
    struct sw_buf path;
    char *collection = NULL;
    int code;

    sw_buf_init(&path, SIZE_MAX);
    code = sw_client_path(&sw_kind_deployment, all->namespace_, NULL, NULL, &collection);
    if (!code) {
        sw_buf_printf(&path, "%s?limit=%d", collection, PAGE_SIZE);
        if (all->continue_) {
            sw_buf_puts(&path, "&continue=");
            sw_url_encode(&path, all->continue_);
        }
        options.path = path.bytes;
        code = sw_client_call(all->client, &options, on_page, all, &call);
    }
    sw_free(collection);
    sw_buf_done(&path);
    if (code) {
        sw_error_set(&all->list_error, code, "%s", sw_strerror(code));
        sw_defer_start(&all->step);
    }
}

/* Decides what comes next; runs after every reply. */
static void step(struct sw_defer *defer)
{
    struct sw_release_all *all = container_of(defer, struct sw_release_all, step);

    if (all->result.is_list_complete)
        begin_items(all);
    for (size_t i = 0; i < all->item_count; i++)
        if (all->result.is_list_complete && all->items[i]->state != DONE)
            return;
    end(all);
}

void sw_release_all(struct sw_loop *loop, struct sw_client *client,
                    const struct sw_release_all_options *options, struct sw_buf *out,
                    sw_release_all_fn fn, void *arg)
{
    struct sw_release_all *all = SW_NEW(struct sw_release_all);

    all->client = client;
    all->options = *options;
    all->namespace_ = options->namespace_ ? sw_strdup(options->namespace_) : NULL;
    all->out = out;
    all->fn = fn;
    all->arg = arg;
    all->intern = sw_intern_new();
    all->decoder = sw_decoder_new(&sw_kind_deployment, all->intern);
    sw_defer_init(&all->step, loop, step);
    list(all);
}
