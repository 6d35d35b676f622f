/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A watch: events are applied one by one, and the version to go on from moves with each that has
 * been. What comes after the end is decided in reflector.c.
 *
 * HTTP/1.1 has no ping, so a dead man's timer watches over the stream: it must end within the time
 * that the server was asked for, and where the server sends bookmarks, it may not be silent for
 * three of their intervals.
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

#define WATCH_GRACE_MS UINT64_C(15000)

static void apply(struct sw_reflector *r, const struct sw_frame *frame)
{
    struct sw_object *object = frame->object_taken;
    SW_AUTO(char, sw_free) version = sw_strdup(frame->resource_version);
    if (frame->type == SW_FRAME_DELETED) {
        sw_store_delete(r->store, object->namespace_, object->name, object->uid, version);
        sw_object_free(r->decoder, object);
    } else {
        sw_store_put_take(r->store, object);
    }
    if (!r->is_freed) {
        sw_reflector_set_version(r, version);
        sw_metric_set(r->objects, (double)sw_store_size(r->store));
    }
}

/* What cannot be read stays as it was when it could, as with a list: whoever took it for deleted
 * would forget a rollout that goes on. The version goes on, or the watch would meet the same event
 * for ever. */
static void apply_bad(struct sw_reflector *r, const struct sw_frame *frame)
{
    SW_AUTO(char, sw_free) version = sw_strdup(frame->resource_version);
    sw_reflector_note_bad(r, frame->error);
    if (frame->is_deletion && frame->name[0]) {
        sw_store_delete(r->store, frame->namespace_, frame->name, "", version);
    }
    if (!r->is_freed && version[0]) {
        sw_reflector_set_version(r, version);
    }
}

static void apply_bookmark(struct sw_reflector *r, const struct sw_frame *frame)
{
    uint64_t now = sw_now_ms(r->loop);
    if (r->bookmark_ms) {
        r->bookmark_gap_ms = SW_MAX(r->bookmark_gap_ms, now - r->bookmark_ms);
    }
    r->bookmark_ms = now;
    bool is_known;
    bool is_older = sw_version_compare(frame->resource_version, r->version, &is_known) < 0;
    if (frame->resource_version[0] && !(is_known && is_older)) {
        sw_reflector_set_version(r, frame->resource_version);
    }
}

static void note_error(struct sw_reflector *r, const struct sw_status_view *status)
{
    r->error = (struct sw_stream_end){
        /* 200 would be an end in order. */
        .status = status->code >= 400 ? status->code : 500,
        .is_version_too_large = status->is_version_too_large,
        .retry_after_ms = (uint64_t)SW_MAX(status->retry_after_seconds, 0) * 1000,
        .message = r->error_message,
    };
    snprintf(r->error_message, sizeof(r->error_message), "%s", status->message);
    sw_frame_reader_stop(r->frames);
}

static void on_frame(void *arg, const struct sw_frame *frame)
{
    struct sw_reflector *r = arg;
    if (frame->type == SW_FRAME_ERROR) {
        note_error(r, &frame->status);
        return;
    }
    if (r->state == SW_REFLECTOR_STREAMING) {
        sw_reflector_on_initial(r, frame);
        return;
    }
    r->had_event = true;
    r->expirations = 0;
    r->watch_failures = 0;
    sw_metric_add(r->events, 1);
    switch (frame->type) {
    case SW_FRAME_ADDED:
    case SW_FRAME_MODIFIED:
    case SW_FRAME_DELETED:
        apply(r, frame);
        break;
    case SW_FRAME_BOOKMARK:
        apply_bookmark(r, frame);
        break;
    case SW_FRAME_BAD:
        apply_bad(r, frame);
        break;
    case SW_FRAME_ERROR:
        break;
    }
}

static void on_watch_bytes(void *arg, const char *bytes, size_t len)
{
    struct sw_reflector *r = arg;
    struct sw_error error = {0};
    r->last_byte_ms = sw_now_ms(r->loop);
    r->depth++;
    int rc = sw_frame_reader_feed(r->frames, bytes, len, &error);
    if (sw_reflector_leave(r)) {
        return;
    }
    struct sw_stream_end end = r->error;
    if (!end.status && !end.code) {
        end = (struct sw_stream_end){.code = rc, .message = error.text};
    }
    if (end.status || end.code) {
        end.is_list = end.is_streamed = r->state == SW_REFLECTOR_STREAMING;
        sw_reflector_ended(r, &end);
    }
}

static void on_watch_end(void *arg, const struct sw_stream_reply *reply)
{
    struct sw_reflector *r = arg;
    r->stream = NULL;
    sw_reflector_broke_off(r, r->state == SW_REFLECTOR_STREAMING, reply);
}

/* When the watch has to be given up: after its time, or, where bookmarks come, after three of their
 * intervals in silence. */
static uint64_t dead_at(const struct sw_reflector *r)
{
    if (r->state == SW_REFLECTOR_STREAMING) {
        return r->is_answered ? sw_reflector_mark_due(r) : r->watch_until_ms;
    }
    if (!r->bookmark_gap_ms) {
        return r->watch_until_ms;
    }
    uint64_t heard_ms = SW_MAX(r->last_byte_ms, r->watch_began_ms);
    uint64_t silent_ms = heard_ms + SW_MAX(3 * r->bookmark_gap_ms, r->silence_ms);
    return SW_MIN(silent_ms, r->watch_until_ms);
}

/* When it could be over earliest: bookmarks that begin to come only bring it nearer than that by
 * their silence, which is never shorter. */
static void look_again(struct sw_reflector *r)
{
    uint64_t silence_ms = SW_MIN(r->silence_ms, SW_REFLECTOR_MARK_MS);
    sw_timer_start_at(&r->dead_man, SW_MIN(dead_at(r), sw_now_ms(r->loop) + silence_ms));
}

void sw_reflector_on_dead_man(struct sw_timer *timer)
{
    struct sw_reflector *r = container_of(timer, struct sw_reflector, dead_man);
    if (sw_now_ms(r->loop) < dead_at(r)) {
        look_again(r);
        return;
    }
    struct sw_stream_end end = {.code = -ETIMEDOUT, .message = "the stream is silent for too long"};
    if (r->state == SW_REFLECTOR_STREAMING) {
        end = (struct sw_stream_end){.is_list = true,
                                     .is_streamed = true,
                                     .has_no_mark = true,
                                     .message = "no mark of the end of the initial events"};
    }
    sw_reflector_ended(r, &end);
}

void sw_reflector_open_watch(struct sw_reflector *r, struct sw_buf *path)
{
    static const struct sw_client_stream_events events = {sw_reflector_on_open, on_watch_bytes,
                                                          on_watch_end};
    unsigned seconds = r->watch_seconds +
                       (unsigned)sw_random_between(r->loop, 0, SW_MAX(r->watch_seconds, 1u) - 1);
    sw_buf_printf(path, "&allowWatchBookmarks=true&timeoutSeconds=%u%s", seconds, r->selectors);
    struct sw_client_stream_options options = {
        .path = path->bytes,
        .lane = r->lane,
        /* A proxy may hold the head back until the first event, which is a bookmark after a minute
         * at the latest. */
        .head_timeout_ms = r->silence_ms,
    };
    r->had_event = r->is_answered = false;
    r->bookmark_ms = 0;
    r->error = (struct sw_stream_end){0};
    r->watch_began_ms = sw_now_ms(r->loop);
    r->watch_until_ms = r->watch_began_ms + (uint64_t)seconds * 1000 + WATCH_GRACE_MS;
    r->frames = sw_frame_reader_new(r->decoder, SW_DECODE_LIMIT_BYTES, on_frame, r);
    look_again(r);
    sw_reflector_open_stream(r, &options, &events);
}

void sw_reflector_start_watch(struct sw_reflector *r)
{
    struct sw_buf path;
    sw_buf_init(&path, SIZE_MAX);
    sw_buf_printf(&path, "%s?watch=true&resourceVersion=", r->path);
    sw_url_encode(&path, r->version);
    r->state = SW_REFLECTOR_WATCHING;
    sw_reflector_open_watch(r, &path);
    sw_buf_done(&path);
}
