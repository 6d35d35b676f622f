/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kind by kind: one list, read in pages; then one patch for each object that needs it, a few at a
 * time.
 */
#include "runtime/release_all.h"

#include <stdlib.h>
#include <string.h>

#include <slipway/apps.h>
#include <slipway/arbiter.h>
#include <slipway/json.h>
#include <slipway/workloads.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/list.h"
#include "base/loop.h"
#include "base/map.h"
#include "base/util.h"
#include "kube/client.h"
#include "kube/decode.h"
#include "net/url.h"
#include "runtime/release_all_internal.h"

enum {
    PAGE_SIZE = 500,
    AT_ONCE = 4,
    ROUNDS_MAX = 5, /* of the whole, where somebody marks more and more */
    TICK_MS = 1000,
    ITEM_LIMIT_BYTES = 32 * 1024 * 1024,
};

/* ---- the end ---- */

static void forget_items(struct sw_release_all *all, size_t from)
{
    for (size_t i = from; i < all->item_count; i++)
        sw_release_item_free(all->items[i]);
    all->item_count = from;
}

static void end(struct sw_release_all *all)
{
    if (!all->result.is_list_complete)
        forget_items(all, all->first); /* those of a list that was not read to its end */
    sw_release_report(all);
    struct sw_release_all_result result = all->result;
    sw_release_all_fn fn = all->fn;
    void *arg = all->arg;

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

/* Of one whose patch failed nobody knows whether it rolls. */
static bool takes_place(const struct sw_release_item *item)
{
    return item->state == SW_RELEASE_ITEM_ROLLING ||
           (item->turn != SW_RELEASE_AT_REST &&
            (item->state == SW_RELEASE_ITEM_ASKING ||
             (item->state == SW_RELEASE_ITEM_WAITING && item->tries > 0)));
}

static bool is_same_namespace(const struct sw_release_item *a, const struct sw_release_item *b)
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
        struct sw_release_item *item = all->items[i];
        bool must_wait = item->turn == SW_RELEASE_WAITS && is_taken && item->tries == 0;
        if (item->state != SW_RELEASE_ITEM_WAITING || item->is_resting ||
            (must_wait && !all->is_over))
            continue;
        is_taken |= item->turn != SW_RELEASE_AT_REST;
        sw_release_item_begin(item);
    }
    return end;
}

static void begin_items(struct sw_release_all *all)
{
    size_t i = all->first;

    while (i < all->item_count && sw_release_is_in_order(all) && !all->options.is_dry_run)
        i = begin_namespace(all, i);
    for (; i < all->item_count && all->asking < AT_ONCE; i++)
        if (all->items[i]->state == SW_RELEASE_ITEM_WAITING)
            sw_release_item_begin(all->items[i]);
}

/* ---- in order ---- */

/* By namespace; in one who rolls already comes first. */
static int compare(const void *a, const void *b)
{
    const struct sw_release_item *x = *(struct sw_release_item *const *)a,
                                 *y = *(struct sw_release_item *const *)b;
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
        struct sw_release_item *item = all->items[i];
        if (item->state != SW_RELEASE_ITEM_ROLLING)
            continue;
        if (item->call)
            sw_call_cancel(item->call);
        item->call = NULL;
        item->is_left_rolling = true;
        sw_release_item_done(item, "%sstill rolling", item->resumes ? "resumed, " : "");
    }
}

static void on_tick(struct sw_timer *timer)
{
    struct sw_release_all *all = container_of(timer, struct sw_release_all, tick);

    if (sw_now_ms(all->loop) >= all->end_ms && !all->is_over)
        time_is_over(all);
    for (size_t i = all->first; i < all->item_count; i++) {
        all->items[i]->is_resting = false;
        if (all->items[i]->state == SW_RELEASE_ITEM_ROLLING && !all->items[i]->call)
            sw_release_item_look(all->items[i]);
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
    struct sw_release_item *item;

    item = SW_NEW(struct sw_release_item);
    item->all = all;
    item->kind = *all->kind;
    item->namespace_ = sw_strdup(object->namespace_);
    item->name = sw_strdup(object->name);
    item->held_by = sw_strdup("");
    if (sw_release_item_decide(item, object)) {
        all->items = sw_realloc(all->items, all->item_count + 1, sizeof(struct sw_release_item *));
        all->items[all->item_count++] = item;
    } else {
        sw_release_item_free(item);
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

static void use_kind(struct sw_release_all *all, const struct sw_kind *const *kind)
{
    all->kind = kind;
    all->first = all->item_count;
    all->list_tries = 0;
    all->result.is_list_complete = false;
    sw_decoder_free(all->decoder);
    all->decoder = sw_decoder_new(*kind, all->intern);
}

/* Deployments are let go of whatever becomes of the other kinds. One that the API server does not
 * know has nothing to be let go of. */
static void list_failed(struct sw_release_all *all, int status)
{
    if (*all->kind == &sw_kind_deployment) {
        end(all);
        return;
    }
    if (status != 404) {
        sw_buf_printf(all->out, "cannot list %ss: %s\n", (*all->kind)->kind, all->list_error.text);
        all->result.failed++;
    }
    forget_items(all, all->first);
    all->continue_ = sw_free(all->continue_);
    all->list_error = (struct sw_error){0};
    use_kind(all, all->kind + 1);
    list(all);
}

static void on_page(void *arg, const struct sw_reply *reply)
{
    struct sw_release_all *all = arg;

    all->is_listing = false;
    if (reply->code) {
        sw_error_set(&all->list_error, reply->code, "%s",
                     reply->error ? reply->error->text : sw_strerror(reply->code));
        list_failed(all, 0);
    } else if (reply->status == 410 && ++all->list_tries < SW_RELEASE_TRIES_MAX) {
        /* The token of the next page has expired: what was read does not fit what would come. */
        forget_items(all, all->first);
        all->continue_ = sw_free(all->continue_);
        list(all);
    } else if (reply->status >= 300) {
        sw_error_set(&all->list_error, SW_E_STATUS, "%d %s", reply->status, reply->why.message);
        list_failed(all, reply->status);
    } else if (read_page(all, reply)) {
        list_failed(all, 0);
    } else if (all->continue_) {
        list(all);
    } else {
        all->result.is_list_complete = true;
        if (*all->kind == &sw_kind_deployment && all->rounds++ == 0)
            all->again = all->item_count;
        if (sw_release_is_in_order(all) && all->item_count > all->first)
            qsort(all->items + all->first, all->item_count - all->first,
                  sizeof(struct sw_release_item *), compare);
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
    code = sw_client_path(*all->kind, all->namespace_, NULL, NULL, &collection);
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
    return sw_release_is_in_order(all) && !all->options.is_dry_run &&
           all->result.is_list_complete && all->item_count > all->first && all->rounds < ROUNDS_MAX;
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
        if (all->result.is_list_complete && all->items[i]->state != SW_RELEASE_ITEM_DONE)
            return;
    if (all->result.is_list_complete && *all->kind != &sw_kind_deployment) {
        use_kind(all, all->kind + 1);
        list(all);
    } else if (wants_round(all)) {
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
    use_kind(all, sw_release_kinds);
    sw_defer_init(&all->step, loop, step);
    all->loop = loop;
    sw_timer_init(&all->tick, loop, on_tick);
    all->end_ms = sw_now_ms(loop) + options->in_order_ms;
    if (options->in_order_ms > 0)
        sw_timer_start(&all->tick, TICK_MS);
    list(all);
}
