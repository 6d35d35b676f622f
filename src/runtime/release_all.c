/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One list, read in pages; then one patch for each Deployment that needs it, a few at a time. A
 * patch that meets a newer version is decided anew on that version.
 *
 *   state     in order only                                 next
 *   WAITING   for its place, or for a pause after a failure ASKING
 *   ASKING    a GET or a PATCH is under way                 WAITING, ROLLING or DONE
 *   ROLLING   looked at each second                         DONE: complete, or the time is over
 */
#include "runtime/release_all.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
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
#include "runtime/release_order.h"

enum {
    PAGE_SIZE = 500,
    AT_ONCE = 4,
    TRIES_MAX = 10,
    ROUNDS_MAX = 5, /* of the whole, where somebody marks more and more */
    TICK_MS = 1000,
    ITEM_LIMIT_BYTES = 32 * 1024 * 1024,
};

enum state { WAITING, ASKING, ROLLING, DONE };

/* One Deployment of the list that has something of ours. */
struct item {
    struct sw_release_all *all;
    char *namespace_, *name, *held_by;
    char *body; /* of the patch; NULL: read it again first */
    size_t body_len;
    bool resumes;
    char *wish; /* slipway.dev/hold; NULL: none */
    enum sw_release_turn turn;
    int64_t order;
    enum state state;
    bool is_resting;                               /* until the next tick, after a failure */
    uint64_t began_ms;                             /* ROLLING: since when */
    bool is_left_paused, is_left_rolling, is_late; /* DONE: in order */
    bool is_hidden;                                /* another of a later or earlier round says it */
    unsigned tries;
    struct sw_call *call;
    bool has_failed;
    char result[200];
};

struct sw_release_all {
    struct sw_client *client;
    struct sw_release_all_options options;
    char *namespace_, *field_manager;
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
    bool is_listing;
    struct sw_error list_error;
    struct sw_release_all_result result;
    /* in order */
    struct sw_loop *loop;
    struct sw_timer tick;
    uint64_t end_ms;
    bool is_over; /* the time is */
    size_t first; /* items of this round; those before it are done */
    size_t again; /* items of all rounds but the first */
    unsigned rounds;
};

/* ---- what is to be done with one ---- */

static const char *const marks[] = {SW_HELD_BY, SW_RELEASED_BY, SW_COORDINATED_BY, SW_FENCE};

static bool is_marked(const struct sw_object *object)
{
    for (size_t i = 0; i < SW_ARRAY_SIZE(marks); i++)
        if (sw_annotation(object, marks[i]))
            return true;
    return false;
}

struct sw_json *sw_release_all_patch(struct sw_arena *arena, const struct sw_deployment *deployment,
                                     bool keeps_wishes, bool *ret_resumes)
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
    *ret_resumes = deployment->is_paused && held_by && held_by[0] &&
                   !(keeps_wishes && sw_annotation(&deployment->meta, SW_HOLD_BY_USER));
    if (*ret_resumes)
        sw_json_set_bool(sw_json_set_object(patch, "spec"), "paused", false);
    return patch;
}

static bool is_in_order(const struct sw_release_all *all)
{
    return all->options.in_order_ms > 0;
}

/* False: there is nothing of ours on it. */
static bool decide(struct item *item, const struct sw_object *object)
{
    struct sw_arena *arena = sw_arena_new(0);
    const struct sw_deployment *deployment = sw_as_deployment(object);
    const char *held_by = sw_annotation(object, SW_HELD_BY);
    const char *wish = sw_annotation(object, SW_HOLD_BY_USER);
    struct sw_json *patch =
        sw_release_all_patch(arena, deployment, is_in_order(item->all), &item->resumes);

    item->turn = sw_release_turn_of(deployment);
    if (item->turn == SW_RELEASE_WAITS && !item->resumes)
        item->turn = SW_RELEASE_AT_REST; /* it stays paused */
    item->order = sw_release_order_of(deployment);
    sw_free(item->wish);
    item->wish = wish ? sw_strdup(wish) : NULL;

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
        if (item->is_hidden)
            continue;
        sw_buf_printf(all->out, "%-*s  %-*s  %-*s  %s\n", namespace_, item->namespace_, name,
                      item->name, held_by, item->held_by[0] ? item->held_by : "-", item->result);
    }
}

static void print_left(const struct sw_release_all *all)
{
    size_t paused = 0, rolling = 0, late = 0;

    for (size_t i = 0; i < all->item_count; i++) {
        const struct item *item = all->items[i];
        paused += item->is_left_paused && !item->is_hidden;
        rolling += item->is_left_rolling && !item->is_hidden;
        late += item->is_late && !item->is_hidden;
    }
    sw_buf_printf(all->out,
                  "left: %zu paused by people, %zu rolling; resumed together when the time was "
                  "over: %zu\n",
                  paused, rolling, late);
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
    if (is_in_order(all) && !all->options.is_dry_run && all->item_count > 0)
        print_left(all);
}

static void item_free(struct item *item)
{
    sw_free(item->namespace_);
    sw_free(item->name);
    sw_free(item->held_by);
    sw_free(item->wish);
    sw_free(item->body);
    sw_free(item);
}

static void forget_items(struct sw_release_all *all, size_t from)
{
    for (size_t i = from; i < all->item_count; i++)
        item_free(all->items[i]);
    all->item_count = from;
}

/* One that was marked again after it was let go of is told of once: with what mattered. */
static void hide_repeats(struct sw_release_all *all)
{
    for (size_t i = all->again; i < all->item_count; i++) {
        struct item *later = all->items[i];
        for (size_t k = 0; k < i; k++) {
            struct item *earlier = all->items[k];
            if (strcmp(earlier->name, later->name) != 0 ||
                strcmp(earlier->namespace_, later->namespace_) != 0)
                continue;
            (later->resumes || later->has_failed ? earlier : later)->is_hidden = true;
        }
    }
}

static void count(struct sw_release_all *all)
{
    for (size_t i = 0; i < all->item_count; i++) {
        const struct item *item = all->items[i];
        if (item->is_hidden)
            continue;
        if (item->has_failed)
            all->result.failed++;
        else if (item->resumes)
            all->result.resumed++;
        else
            all->result.unmarked++;
    }
}

static void end(struct sw_release_all *all)
{
    if (!all->result.is_list_complete)
        forget_items(all, all->first); /* those of a list that was not read to its end */
    hide_repeats(all);
    count(all);
    struct sw_release_all_result result = all->result;
    sw_release_all_fn fn = all->fn;
    void *arg = all->arg;

    print_table(all);
    print_sum(all);
    forget_items(all, 0);
    sw_defer_stop(&all->step);
    sw_timer_stop(&all->tick);
    sw_decoder_free(all->decoder);
    sw_intern_free(all->intern);
    sw_free(all->items);
    sw_free(all->continue_);
    sw_free(all->namespace_);
    sw_free(all->field_manager);
    sw_free(all);
    fn(arg, &result);
}

/* ---- patches ---- */

static SW_PRINTF(2, 3) void item_done(struct item *item, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(item->result, sizeof(item->result), format, args);
    va_end(args);
    item->state = DONE;
}

static void item_failed(struct item *item, const char *why)
{
    item->has_failed = true;
    item_done(item, "failed: %s", why);
}

static void item_again(struct item *item)
{
    item->state = WAITING;
    item->is_resting = is_in_order(item->all);
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

/* In order: it bears nothing of ours any more. */
static void item_released(struct item *item, const struct sw_deployment *deployment)
{
    struct sw_release_all *all = item->all;

    if (!item->resumes && deployment->is_paused) {
        item->is_left_paused = true;
        if (item->wish)
            item_done(item, "left paused, as slipway.dev/hold wishes: %.100s", item->wish);
        else
            item_done(item, "left paused by whoever paused it");
    } else if (all->is_over && item->turn == SW_RELEASE_WAITS) {
        item->is_late = true;
        item_done(item, "resumed when the time was over");
    } else if (item->turn == SW_RELEASE_AT_REST) {
        item_done(item, item->resumes ? "resumed" : "annotations removed");
    } else {
        item->state = ROLLING;
        item->began_ms = sw_now_ms(all->loop);
    }
}

/* Whatever stands between us and the store may have put the hold back. */
static void on_patched(struct item *item, const struct sw_reply *reply)
{
    struct sw_object *object = object_in(item, reply);

    if (!object)
        return;
    if (sw_annotation(object, SW_HELD_BY))
        item_failed(item, "held again at once: slipway still runs; stop it first");
    else if (is_in_order(item->all))
        item_released(item, sw_as_deployment(object));
    else
        item_done(item, item->resumes ? "resumed" : "annotations removed");
    sw_object_free(item->all->decoder, object);
}

/* Of one that rolls. What could not be read is looked at again. */
static void on_look(struct item *item, const struct sw_reply *reply)
{
    struct sw_release_all *all = item->all;
    struct sw_object *object = NULL;
    uint64_t took_ms = sw_now_ms(all->loop) - item->began_ms;

    if (reply->code == 0 && reply->status == 404)
        item_done(item, "%sdeleted since", item->resumes ? "resumed, " : "");
    if (reply->code || reply->status >= 300 ||
        sw_decode_object(all->decoder, reply->body, reply->body_len, item->namespace_, &object,
                         NULL))
        return;
    if (is_marked(object)) {
        item_again(item); /* by one that was still stopping */
    } else if (sw_as_deployment(object)->is_paused) {
        item_done(item, "%spaused by somebody since", item->resumes ? "resumed, " : "");
        item->is_left_paused = true;
    } else if (sw_release_is_complete(sw_as_deployment(object))) {
        item_done(item, "%scomplete after %llu s", item->resumes ? "resumed, " : "",
                  (unsigned long long)(took_ms + 500) / 1000);
    }
    sw_object_free(all->decoder, object);
}

static void on_reply(void *arg, const struct sw_reply *reply)
{
    struct item *item = arg;
    struct sw_release_all *all = item->all;

    item->call = NULL;
    if (item->state == ROLLING) {
        on_look(item, reply);
        sw_defer_start(&all->step);
        return;
    }
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

/* A look that cannot be sent is sent with the next tick. */
static void item_look(struct item *item)
{
    struct sw_call_options options = {.method = "GET"};
    SW_AUTO(char, sw_free) path = NULL;

    if (sw_client_path(&sw_kind_deployment, item->namespace_, item->name, NULL, &path))
        return;
    options.path = path;
    if (sw_client_call(item->all->client, &options, on_reply, item, &item->call))
        item->call = NULL;
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
    with_manager =
        item->body ? sw_asprintf("%s?fieldManager=%s", path, all->field_manager) : sw_strdup(path);
    options.path = with_manager;
    item->state = ASKING;
    code = sw_client_call(all->client, &options, on_reply, item, &item->call);
    sw_free(path);
    if (code)
        item_failed(item, sw_strerror(code));
    else
        all->asking++;
}

static void item_begin(struct item *item)
{
    if (!item->all->options.is_dry_run)
        item_ask(item);
    else if (is_in_order(item->all) && item->turn == SW_RELEASE_WAITS)
        item_done(item, "would be resumed in its turn");
    else
        item_done(item, item->resumes ? "would be resumed" : "would lose its annotations");
}

/* Of one whose patch failed nobody knows whether it rolls. */
static bool takes_place(const struct item *item)
{
    return item->state == ROLLING ||
           (item->turn != SW_RELEASE_AT_REST &&
            (item->state == ASKING || (item->state == WAITING && item->tries > 0)));
}

static bool is_same_namespace(const struct item *a, const struct item *b)
{
    return strcmp(a->namespace_, b->namespace_) == 0;
}

/* From there to the end of its namespace; returns that. */
static size_t begin_namespace(struct sw_release_all *all, size_t from)
{
    bool is_taken = false;
    size_t end = from;

    for (; end < all->item_count && is_same_namespace(all->items[from], all->items[end]); end++)
        is_taken |= takes_place(all->items[end]);
    for (size_t i = from; i < end && all->asking < AT_ONCE; i++) {
        struct item *item = all->items[i];
        bool must_wait = item->turn == SW_RELEASE_WAITS && is_taken && item->tries == 0;
        if (item->state != WAITING || item->is_resting || (must_wait && !all->is_over))
            continue;
        is_taken |= item->turn != SW_RELEASE_AT_REST;
        item_begin(item);
    }
    return end;
}

static void begin_items(struct sw_release_all *all)
{
    size_t i = all->first;

    while (i < all->item_count && is_in_order(all) && !all->options.is_dry_run)
        i = begin_namespace(all, i);
    for (; i < all->item_count && all->asking < AT_ONCE; i++)
        if (all->items[i]->state == WAITING)
            item_begin(all->items[i]);
}

/* ---- in order ---- */

/* By namespace; in one who rolls already comes first. */
static int compare(const void *a, const void *b)
{
    const struct item *x = *(struct item *const *)a, *y = *(struct item *const *)b;
    int names = strcmp(x->namespace_, y->namespace_);
    bool x_waits = x->turn == SW_RELEASE_WAITS, y_waits = y->turn == SW_RELEASE_WAITS;

    if (names)
        return names;
    if (x_waits != y_waits)
        return x_waits ? 1 : -1;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void time_is_over(struct sw_release_all *all)
{
    all->is_over = true;
    for (size_t i = all->first; i < all->item_count; i++) {
        struct item *item = all->items[i];
        if (item->state != ROLLING)
            continue;
        if (item->call)
            sw_call_cancel(item->call);
        item->call = NULL;
        item->is_left_rolling = true;
        item_done(item, "%sstill rolling", item->resumes ? "resumed, " : "");
    }
}

static void on_tick(struct sw_timer *timer)
{
    struct sw_release_all *all = container_of(timer, struct sw_release_all, tick);

    if (sw_now_ms(all->loop) >= all->end_ms && !all->is_over)
        time_is_over(all);
    for (size_t i = all->first; i < all->item_count; i++) {
        all->items[i]->is_resting = false;
        if (all->items[i]->state == ROLLING && !all->items[i]->call)
            item_look(all->items[i]);
    }
    sw_timer_start(timer, TICK_MS);
    sw_defer_start(&all->step);
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

    all->is_listing = false;
    if (reply->code) {
        sw_error_set(&all->list_error, reply->code, "%s",
                     reply->error ? reply->error->text : sw_strerror(reply->code));
        end(all);
    } else if (reply->status == 410 && ++all->list_tries < TRIES_MAX) {
        /* The token of the next page has expired: what was read does not fit what would come. */
        forget_items(all, all->first);
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
        if (all->rounds++ == 0)
            all->again = all->item_count;
        if (is_in_order(all) && all->item_count > all->first)
            qsort(all->items + all->first, all->item_count - all->first, sizeof(struct item *),
                  compare);
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
        all->is_listing = code == 0;
    }
    sw_free(collection);
    sw_buf_done(&path);
    if (code) {
        sw_error_set(&all->list_error, code, "%s", sw_strerror(code));
        sw_defer_start(&all->step);
    }
}

/* Whether one more list is worth it: the last found something, and all of that was let go of. */
static bool wants_round(const struct sw_release_all *all)
{
    for (size_t i = all->first; i < all->item_count; i++)
        if (all->items[i]->has_failed)
            return false;
    return is_in_order(all) && !all->options.is_dry_run && all->result.is_list_complete &&
           all->item_count > all->first && all->rounds < ROUNDS_MAX;
}

/* Decides what comes next; runs after every reply. */
static void step(struct sw_defer *defer)
{
    struct sw_release_all *all = container_of(defer, struct sw_release_all, step);

    if (all->is_listing)
        return;
    if (all->result.is_list_complete)
        begin_items(all);
    for (size_t i = all->first; i < all->item_count; i++)
        if (all->result.is_list_complete && all->items[i]->state != DONE)
            return;
    if (wants_round(all)) {
        all->first = all->item_count;
        all->result.is_list_complete = false;
        list(all);
    } else {
        end(all);
    }
}

void sw_release_all(struct sw_loop *loop, struct sw_client *client,
                    const struct sw_release_all_options *options, struct sw_buf *out,
                    sw_release_all_fn fn, void *arg)
{
    struct sw_release_all *all = SW_NEW(struct sw_release_all);

    all->client = client;
    all->options = *options;
    all->namespace_ = options->namespace_ ? sw_strdup(options->namespace_) : NULL;
    all->field_manager =
        sw_strdup(options->field_manager ? options->field_manager : SW_FIELD_MANAGER);
    all->out = out;
    all->fn = fn;
    all->arg = arg;
    all->intern = sw_intern_new();
    all->decoder = sw_decoder_new(&sw_kind_deployment, all->intern);
    sw_defer_init(&all->step, loop, step);
    all->loop = loop;
    sw_timer_init(&all->tick, loop, on_tick);
    all->end_ms = sw_now_ms(loop) + options->in_order_ms;
    if (is_in_order(all))
        sw_timer_start(&all->tick, TICK_MS);
    list(all);
}
