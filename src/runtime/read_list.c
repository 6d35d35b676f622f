/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a list: page after page, each decoded as it comes, all lent in one call.
 *
 *   a page ends with        then
 *   continue                the next page
 *   no continue             done
 *   410 behind the first    from the beginning: the version that the pages are of is gone; a few
 *                           times
 *   429, 5xx with a wait    the same page again, after that
 *   anything else           done, without objects
 */
#include "runtime/read.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/util.h"
#include "kube/client.h"
#include "kube/decode.h"
#include "net/url.h"
#include "runtime/core.h"
#include "runtime/instance.h"

enum {
    MOST = 10 * 1000,
    MOST_BYTES = 64 * 1024 * 1024, /* of decoded objects: 10 000 with 6 KiB */
    PAGE_SIZE = 500,               /* as client-go's pager */
    RESTARTS_MAX = 3,
    DEADLINE_MS = 60 * 1000,
    RETRY_UNNAMED_MS = 1000,
};

struct listing {
    struct sw_link link;
    struct sw_core *core;
    struct sw_instance *instance;
    struct sw_kind_entry *entry;
    char *path; /* with the selector: "/api/v1/pods?labelSelector=a%3Db&" */
    sw_list_fn fn;
    void *arg;
    size_t most;
    uint64_t due_ms;
    unsigned restarts;

    struct sw_object **objects;
    size_t count, room, bytes;
    bool is_cut;

    char *continue_; /* NULL: the first page */
    struct sw_list_reader *reader;
    struct sw_client_stream_call *stream; /* NULL: none is under way */
    struct sw_timer retry;
    struct sw_defer fail;
    int not_sent; /* for fail */
};

/* ---- memory ---- */

static void drop_objects(struct listing *listing)
{
    for (size_t i = 0; i < listing->count; i++)
        sw_object_free(listing->entry->decoder, listing->objects[i]);
    listing->count = listing->bytes = 0;
}

/* Nothing comes any more. */
static void detach(struct listing *listing)
{
    sw_client_stream_call_cancel(sw_steal(&listing->stream));
    listing->reader = sw_list_reader_free(listing->reader);
    sw_timer_stop(&listing->retry);
    sw_defer_stop(&listing->fail);
    sw_link_remove(&listing->link);
}

static void listing_free(struct listing *listing)
{
    detach(listing);
    drop_objects(listing);
    sw_free(listing->objects);
    sw_free(listing->continue_);
    sw_free(listing->path);
    sw_free(listing);
}

/* ---- the end ---- */

static void finish(struct listing *listing, const struct sw_list_answer *answer)
{
    detach(listing);
    listing->fn(listing->instance, listing->arg, answer);
    listing_free(listing);
}

static void finish_whole(struct listing *listing)
{
    const struct sw_list_answer answer = {
        .outcome = SW_OK,
        .status = 200,
        .reason = "",
        .message = "",
        .objects = (const struct sw_object *const *)listing->objects,
        .count = listing->count,
        .is_cut = listing->is_cut,
    };

    finish(listing, &answer);
}

static void finish_failed(struct listing *listing, const char *message)
{
    const struct sw_list_answer answer = {.outcome = SW_UNKNOWN, .reason = "", .message = message};

    finish(listing, &answer);
}

static void finish_refused(struct listing *listing, const struct sw_stream_reply *stream)
{
    const struct sw_reply reply = {
        .code = stream->code, .status = stream->status, .was_sent = true};
    const struct sw_list_answer answer = {
        .outcome = stream->code ? SW_UNKNOWN : sw_write_outcome(&reply, false),
        .status = stream->code ? 0 : stream->status,
        .reason = stream->code ? "" : stream->why.reason,
        .message = stream->code ? stream->error->text : stream->why.message,
    };

    finish(listing, &answer);
}

/* ---- a page ---- */

static void on_item(void *arg, struct sw_object *object_taken)
{
    struct listing *listing = arg;
    size_t size = sw_object_size(object_taken);

    listing->is_cut =
        listing->is_cut || listing->count == listing->most || listing->bytes + size > MOST_BYTES;
    if (listing->is_cut) {
        sw_object_free(listing->entry->decoder, object_taken);
        return;
    }
    if (listing->count == listing->room) {
        listing->room = SW_MAX(listing->room * 2, 16U);
        listing->objects = sw_realloc(listing->objects, listing->room, sizeof(*listing->objects));
    }
    listing->objects[listing->count++] = object_taken;
    listing->bytes += size;
}

static void on_bad(void *arg, const struct sw_bad_item *bad)
{
    struct listing *listing = arg;

    sw_log_warn(&listing->instance->log, "object cannot be read, left out",
                SW_STR("kind", listing->entry->name), SW_STR("why", bad->error->text));
}

static void on_open(void *arg, int status)
{
    (void)arg;
    (void)status;
}

static void on_bytes(void *arg, const char *bytes, size_t len)
{
    struct listing *listing = arg;
    struct sw_error error = {0};

    if (sw_list_reader_feed(listing->reader, bytes, len, &error))
        finish_failed(listing, error.text);
    else if (listing->is_cut)
        finish_whole(listing);
}

static void request_page(struct listing *listing);

static void next_page(struct listing *listing)
{
    const char *version, *next;
    struct sw_error error = {0};

    if (sw_list_reader_finish(listing->reader, &version, &next, &error)) {
        finish_failed(listing, error.text);
        return;
    }
    if (!next[0]) {
        finish_whole(listing);
        return;
    }
    sw_free(listing->continue_);
    listing->continue_ = sw_strdup(next);
    request_page(listing);
}

/* Everything that has come is of a version that is gone. */
static void start_over(struct listing *listing)
{
    drop_objects(listing);
    listing->continue_ = sw_free(listing->continue_);
    request_page(listing);
}

static bool waits_for_retry(struct listing *listing, const struct sw_stream_reply *reply)
{
    uint64_t wait_ms = reply->retry_after_ms ? reply->retry_after_ms : RETRY_UNNAMED_MS;
    struct sw_loop *loop = listing->core->loop;

    if (reply->status != 429 && (reply->status < 500 || !reply->retry_after_ms))
        return false;
    wait_ms += sw_random_between(loop, 0, SW_MAX(wait_ms / 4, 250));
    if (sw_now_ms(loop) + wait_ms >= listing->due_ms)
        return false;
    sw_timer_start(&listing->retry, wait_ms);
    return true;
}

static void on_end(void *arg, const struct sw_stream_reply *reply)
{
    struct listing *listing = arg;

    listing->stream = NULL;
    if (!reply->code && reply->status == 200)
        next_page(listing);
    else if (!reply->code && reply->status == 410 && listing->continue_ &&
             listing->restarts++ < RESTARTS_MAX)
        start_over(listing);
    else if (reply->code || !waits_for_retry(listing, reply))
        finish_refused(listing, reply);
}

static void request_page(struct listing *listing)
{
    static const struct sw_client_stream_events events = {on_open, on_bytes, on_end};
    static const struct sw_list_events list_events = {on_item, on_bad};
    uint64_t now = sw_now_ms(listing->core->loop);
    uint64_t left_ms = listing->due_ms > now ? listing->due_ms - now : 1;
    struct sw_buf path;

    sw_buf_init(&path, SIZE_MAX);
    sw_buf_printf(&path, "%slimit=%d", listing->path, PAGE_SIZE);
    if (listing->continue_) {
        sw_buf_puts(&path, "&continue=");
        sw_url_encode(&path, listing->continue_);
    }
    const struct sw_client_stream_options options = {
        .path = path.bytes, .head_timeout_ms = left_ms, .total_timeout_ms = left_ms};
    sw_list_reader_free(listing->reader);
    listing->reader =
        sw_list_reader_new(listing->entry->decoder, SW_DECODE_LIMIT_BYTES, &list_events, listing);
    int code =
        sw_client_stream(listing->core->client, &options, &events, listing, &listing->stream);
    sw_buf_done(&path);
    if (code) {
        listing->not_sent = code;
        sw_defer_start(&listing->fail); /* never from within the caller's call */
    }
}

static void on_fail(struct sw_defer *defer)
{
    struct listing *listing = container_of(defer, struct listing, fail);

    finish_failed(listing, sw_strerror(listing->not_sent));
}

static void on_retry(struct sw_timer *timer)
{
    request_page(container_of(timer, struct listing, retry));
}

/* ---- read.h ---- */

/* Up to where limit and continue follow. */
static int path_of(const struct sw_instance *self, const struct sw_kind *kind,
                   const char *namespace_, const char *label_selector, char **ret_path)
{
    const char *in = namespace_ ? namespace_ : self->core->namespace_;
    struct sw_selector *selector = NULL;
    struct sw_buf text;
    char *path;

    if (label_selector) {
        int code = sw_selector_parse_text(label_selector, &selector, (char[256]){0}, 256);
        sw_selector_free(selector);
        if (code)
            return -EINVAL;
    }
    int code = sw_client_path(kind, kind->is_cluster_scoped ? NULL : in, NULL, NULL, &path);
    if (code)
        return code;
    sw_buf_init(&text, SIZE_MAX);
    sw_buf_printf(&text, "%s?", path);
    sw_free(path);
    if (label_selector && label_selector[0]) {
        sw_buf_puts(&text, "labelSelector=");
        sw_url_encode(&text, label_selector);
        sw_buf_puts(&text, "&");
    }
    *ret_path = sw_buf_steal(&text);
    return 0;
}

int sw_list_now(struct sw_instance *self, const struct sw_kind *kind, const char *namespace_,
                const char *label_selector, size_t most, sw_list_fn fn, void *arg)
{
    struct sw_core *core = self->core;
    char *path;
    int code = path_of(self, kind, namespace_, label_selector, &path);

    if (code)
        return code;
    struct listing *listing = SW_NEW(struct listing);
    listing->core = core;
    listing->instance = self;
    listing->entry = sw_kinds_entry(&core->kinds, kind);
    listing->path = path;
    listing->fn = fn;
    listing->arg = arg;
    listing->most = most ? most : MOST;
    listing->due_ms = sw_now_ms(core->loop) + DEADLINE_MS;
    sw_timer_init(&listing->retry, core->loop, on_retry);
    sw_defer_init(&listing->fail, core->loop, on_fail);
    sw_link_init(&listing->link);
    sw_link_add_last(&core->reads.lists, &listing->link);
    request_page(listing);
    return 0;
}

void sw_read_lists_forget(struct sw_reads *reads, const struct sw_instance *instance)
{
    SW_LIST_EACH (l, &reads->lists) {
        struct listing *listing = container_of(l, struct listing, link);
        if (!instance || listing->instance == instance)
            listing_free(listing);
    }
}
