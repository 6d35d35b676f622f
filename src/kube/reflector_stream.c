/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list that comes as a stream (watch-list, KEP-3157): a watch that begins with an ADDED for each
 * object, then a bookmark with the annotation k8s.io/initial-events-end, and goes on as any watch.
 * The server answers it from its cache, without a page of JSON in its memory; client-go asks so by
 * default since 1.35.
 *
 * What comes before the mark goes into the store's other side, as the pages of a list do; at the
 * mark it replaces the contents. Nothing of a stream that ends before is ever seen.
 *
 * Not every server can do it (reflector_rules.c says how that looks). Then the list is read in
 * pages, and for an hour nobody who shares the client asks again: an upgrade may turn it on.
 */
#include <errno.h>
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

/* A server that does not know the mark may go on for ever with what really happens. */
#define MARK_LIMIT_MS UINT64_C(180000)
/* Streams that were dropped, in a row: a list in pages may get through where a long one does not.
 */
#define DROPS_MAX 2

bool sw_reflector_may_stream(const struct sw_reflector *r)
{
    return r->streams && r->drops < DROPS_MAX && sw_client_may_stream_lists(r->client);
}

/* ---- before the mark ---- */

static void on_mark(struct sw_reflector *r, const char *version)
{
    sw_reflector_set_text(&r->list_version, version);
    r->state = SW_REFLECTOR_WATCHING;
    r->drops = 0;
    /* May free the reflector, or find that the cluster has gone back. */
    sw_reflector_list_is_whole(r);
}

void sw_reflector_on_initial(struct sw_reflector *r, const struct sw_frame *frame)
{
    switch (frame->type) {
    case SW_FRAME_ADDED:
    case SW_FRAME_MODIFIED: /* of what happens while the rest is on its way */
        r->items++;
        sw_store_replace_add_take(r->store, frame->object_taken);
        break;
    case SW_FRAME_DELETED:
        sw_store_replace_remove(r->store, frame->namespace_, frame->name);
        sw_object_free(r->decoder, frame->object_taken);
        break;
    case SW_FRAME_BAD:
        sw_reflector_note_bad(r, frame->error);
        if (frame->is_deletion) {
            sw_store_replace_remove(r->store, frame->namespace_, frame->name);
        } else if (frame->name[0]) {
            sw_store_replace_keep(r->store, frame->namespace_, frame->name);
        }
        break;
    case SW_FRAME_BOOKMARK:
        if (frame->ends_initial_events) {
            on_mark(r, frame->resource_version);
        }
        break;
    case SW_FRAME_ERROR:
        break;
    }
}

/* ---- without a mark ---- */

/* When it is certain that none comes. */
uint64_t sw_reflector_mark_due(const struct sw_reflector *r)
{
    uint64_t heard_ms = SW_MAX(r->last_byte_ms, r->watch_began_ms);
    return SW_MIN(heard_ms + SW_REFLECTOR_MARK_MS, r->watch_began_ms + MARK_LIMIT_MS);
}

void sw_reflector_fall_back(struct sw_reflector *r, const struct sw_stream_end *end,
                            enum sw_stream_next next)
{
    if (next == SW_NEXT_LIST_PAGED) {
        sw_client_refuse_streamed_lists(r->client, end->message);
        r->reason = "fallback";
    } else if (end->status != 429 && next != SW_NEXT_REFUSED && next != SW_NEXT_ABSENT &&
               next != SW_NEXT_LIST_FRESH) {
        r->drops++;
    }
}

/* ---- the beginning of it ---- */

void sw_reflector_start_stream(struct sw_reflector *r)
{
    struct sw_buf path;
    sw_buf_init(&path, SIZE_MAX);
    sw_buf_printf(&path, "%s?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
                  r->path);
    if (!r->is_fresh) {
        sw_buf_puts(&path, "&resourceVersion=");
        sw_url_encode(&path, r->version);
    }
    r->state = SW_REFLECTOR_STREAMING;
    sw_reflector_open_watch(r, &path);
    sw_buf_done(&path);
}
