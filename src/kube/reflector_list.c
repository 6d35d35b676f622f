/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list in pages, and what it shares with one that comes as a stream: items are decoded into the
 * store's other side as they come, and replace its contents when the last one is there. Nothing of
 * a list that broke off is ever seen.
 *
 * Two ways of asking. Without a version, in pages: the newest state, which costs the server a
 * quorum read. With "at least this version" after a broken watch, in one piece, so that the
 * server's cache can answer.
 *
 * The newest state cannot be older than what was known when it was asked for, unless the cluster
 * itself has gone back: etcd was restored from a backup, and its versions begin again where the
 * backup was made. Since what is known would otherwise be taken for newer than all that comes, the
 * store then begins anew. It takes two such lists, in case the server made a mistake.
 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/metrics.h"
#include "base/util.h"
#include "kube/decode.h"
#include "kube/reflector_internal.h"
#include "kube/store.h"
#include "net/url.h"

#define PAGE_TIMEOUT_MS UINT64_C(60000) /* after which the API server cuts a request */
#define PAGE_SILENCE_MS UINT64_C(30000)

static void on_item(void *arg, struct sw_object *object_taken)
{
    struct sw_reflector *r = arg;
    r->items++;
    sw_store_replace_add_take(r->store, object_taken);
}

static void on_bad(void *arg, const struct sw_bad_item *bad)
{
    struct sw_reflector *r = arg;
    sw_reflector_note_bad(r, bad->error);
    sw_store_replace_keep(r->store, bad->namespace_, bad->name);
}

static void on_list_bytes(void *arg, const char *bytes, size_t len)
{
    struct sw_reflector *r = arg;
    struct sw_error error = {0};
    r->last_byte_ms = sw_now_ms(r->loop);
    r->has_bytes = true;
    int rc = sw_list_reader_feed(r->list, bytes, len, &error);
    if (rc) {
        struct sw_stream_end end = {.is_list = true, .code = rc, .message = error.text};
        sw_reflector_ended(r, &end);
    }
}

static void request_page(struct sw_reflector *r);

static void on_list_end(void *arg, const struct sw_stream_reply *reply)
{
    struct sw_reflector *r = arg;
    const char *version;
    const char *next;
    struct sw_error words = {0};
    r->stream = NULL;
    if (reply->code || reply->status != 200) {
        sw_reflector_broke_off(r, true, reply);
        return;
    }
    int rc = sw_list_reader_finish(r->list, &version, &next, &words);
    if (!rc && (!version[0] || strcmp(version, "0") == 0)) {
        /* Watching from "" or "0" means synthetic events in no order. */
        rc = sw_error_set(&words, SW_E_SYNTAX, "the list has no resourceVersion");
    }
    if (rc) {
        struct sw_stream_end end = {.is_list = true, .code = rc, .message = words.text};
        sw_reflector_ended(r, &end);
        return;
    }
    if (!r->list_version[0]) {
        sw_reflector_set_text(&r->list_version,
                              version); /* that of the first page, which all pages are of */
    }
    sw_reflector_set_text(&r->list_continue, next);
    r->list = sw_list_reader_free(r->list);
    if (r->list_continue[0]) {
        request_page(r);
    } else {
        sw_reflector_list_is_whole(r);
    }
}

static void request_page(struct sw_reflector *r)
{
    static const struct sw_client_stream_events events = {sw_reflector_on_open, on_list_bytes,
                                                          on_list_end};
    static const struct sw_list_events list_events = {on_item, on_bad};
    struct sw_buf path;
    sw_buf_init(&path, SIZE_MAX);
    sw_buf_puts(&path, r->path);
    if (r->is_fresh) {
        sw_buf_printf(&path, "?limit=%u", r->page_size);
    } else {
        /* Without a limit, so that the server's cache may answer. */
        sw_buf_puts(&path, "?resourceVersion=");
        sw_url_encode(&path, r->version);
    }
    if (r->list_continue[0]) {
        sw_buf_puts(&path, "&continue=");
        sw_url_encode(&path, r->list_continue);
    }
    sw_buf_puts(&path, r->selectors);
    struct sw_client_stream_options options = {
        .path = path.bytes,
        .silence_timeout_ms = PAGE_SILENCE_MS,
        .total_timeout_ms = PAGE_TIMEOUT_MS,
    };
    r->list = sw_list_reader_new(r->decoder, SW_DECODE_LIMIT_BYTES, &list_events, r);
    sw_reflector_open_stream(r, &options, &events);
    sw_buf_done(&path);
}

void sw_reflector_start_list(struct sw_reflector *r)
{
    const char *const values[] = {r->kind_name, r->is_asked ? "requested" : r->reason};
    sw_metric_add(sw_metric_child(r->relists, values), 1);
    r->is_fresh = r->is_asked || !r->version[0];
    r->has_bytes = false;
    r->items = 0;
    sw_reflector_set_text(&r->list_floor, r->newest);
    sw_reflector_set_text(&r->list_version, "");
    sw_reflector_set_text(&r->list_continue, "");
    sw_store_replace_begin(r->store);
    if (sw_reflector_may_stream(r)) {
        sw_reflector_start_stream(r);
        return;
    }
    r->state = SW_REFLECTOR_LISTING;
    r->drops = 0;
    request_page(r);
}

static bool has_gone_back(const struct sw_reflector *r)
{
    bool is_known;
    bool is_older = sw_version_compare(r->list_version, r->list_floor, &is_known) < 0;
    return r->is_fresh && is_known && is_older;
}

static void doubt(struct sw_reflector *r)
{
    struct sw_error words = {0};
    sw_error_set(&words, SW_E_SYNTAX, "the newest state is of version %s, but %s has been seen",
                 r->list_version, r->list_floor);
    struct sw_stream_end end = {.is_list = true, .code = words.code, .message = words.text};
    r->is_doubtful = true;
    if (r->frames) {
        /* From within its reader: the end is noted, and told when that is back. */
        r->state = SW_REFLECTOR_STREAMING;
        snprintf(r->error_message, sizeof(r->error_message), "%.*s",
                 (int)sizeof(r->error_message) - 1, words.text);
        r->error = end;
        r->error.message = r->error_message;
        sw_frame_reader_stop(r->frames);
        return;
    }
    sw_reflector_ended(r, &end);
}

static void commit(struct sw_reflector *r, bool is_restored)
{
    if (is_restored) {
        sw_log_warn(&r->log, "the cluster has gone back to an earlier state, beginning anew",
                    SW_STR("kind", r->kind_name), SW_STR("version", r->list_version),
                    SW_STR("seen", r->list_floor));
        sw_reflector_set_text(&r->newest, "");
        sw_store_replace_commit_anew(r->store, r->list_version);
    } else {
        sw_store_replace_commit(r->store, r->list_version);
    }
}

/* The last page, or the mark of a stream, has come. */
void sw_reflector_list_is_whole(struct sw_reflector *r)
{
    bool is_consistent = r->is_fresh && !r->is_asked_again;
    bool is_restored = has_gone_back(r);
    if (is_restored && !r->is_doubtful) {
        doubt(r);
        return;
    }
    if (r->items == 0 && sw_store_size(r->store) > 0) {
        sw_log_warn(&r->log, "everything of a kind has vanished", SW_STR("kind", r->kind_name),
                    SW_INT("objects", sw_store_size(r->store)));
    }
    r->is_doubtful = false;
    r->depth++;
    commit(r, is_restored);
    if (sw_reflector_leave(r)) {
        return;
    }
    is_consistent = is_consistent && !r->is_asked_again;
    sw_metric_set(r->objects, (double)sw_store_size(r->store));
    sw_reflector_set_version(r, r->list_version);
    r->wants_list = r->is_absent = false;
    r->is_synced = true;
    r->is_asked = r->is_asked_again;
    r->is_asked_again = false;
    if (r->state == SW_REFLECTOR_LISTING) {
        sw_reflector_begin(r);
    } else if (r->is_asked) {
        sw_defer_start(&r->relist); /* else the stream goes on as a watch */
    }
    r->fn(r->arg, is_consistent);
}
