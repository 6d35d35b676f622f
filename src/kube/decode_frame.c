/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the frames of a watch: JSON values one behind the other. One that is no good is reported
 * and the next is read; only where the structure itself is broken (no end can be found) the stream
 * is of no use any more.
 */
#include <errno.h>
#include <string.h>

#include <slipway/arena.h>

#include "base/error.h"
#include "base/util.h"
#include "kube/capture.h"
#include "kube/decoder.h"

struct sw_frame_reader {
    struct sw_decoder *decoder;
    size_t frame_limit_bytes;
    sw_frame_fn fn;
    void *arg;
    struct sw_capture capture;
    struct sw_arena *arena; /* of one frame */
    bool is_feeding;
    bool is_stopped;
    bool is_freed; /* from fn: feed frees it when it is back */
    struct sw_error error;
};

struct sw_frame_reader *sw_frame_reader_new(struct sw_decoder *decoder, size_t frame_limit_bytes,
                                            sw_frame_fn fn, void *arg)
{
    sw_assert(frame_limit_bytes > 0 && frame_limit_bytes < UINT32_MAX);
    struct sw_frame_reader *reader = SW_NEW(struct sw_frame_reader);
    reader->decoder = decoder;
    reader->frame_limit_bytes = frame_limit_bytes;
    reader->fn = fn;
    reader->arg = arg;
    reader->arena = sw_arena_new(1024);
    sw_capture_init(&reader->capture, decoder->is_secret);
    sw_capture_begin(&reader->capture, frame_limit_bytes);
    return reader;
}

struct sw_frame_reader *sw_frame_reader_free(struct sw_frame_reader *reader)
{
    if (reader && reader->is_feeding) {
        reader->is_freed = true;
        reader->is_stopped = true;
    } else if (reader) {
        sw_capture_done(&reader->capture);
        sw_arena_free(reader->arena);
        sw_free(reader);
    }
    return NULL;
}

void sw_frame_reader_stop(struct sw_frame_reader *reader)
{
    reader->is_stopped = true;
}

/* ---- a frame ---- */

struct parts {
    struct sw_text type;
    const char *object; /* NULL: none */
    size_t object_len;
};

/* The last of equal keys counts. */
static bool read_parts(struct sw_scan *scan, struct parts *parts)
{
    bool is_first = true;
    struct sw_text key;
    if (!sw_scan_enter(scan, '{')) {
        return false;
    }
    while (sw_scan_next_member(scan, &is_first, &key)) {
        bool is_type = sw_text_is(&key, "type", 4);
        bool is_object = sw_text_is(&key, "object", 6);
        char first = sw_scan_peek(scan);
        const char *begin = scan->at;
        if (is_type && first == '"' ? !sw_scan_string(scan, &parts->type) : !sw_scan_skip(scan)) {
            return false;
        }
        if (is_type && first != '"') {
            parts->type = (struct sw_text){0};
        }
        if (is_object) {
            parts->object = first == '{' ? begin : NULL;
            parts->object_len = (size_t)(scan->at - begin);
        }
    }
    return !scan->why && sw_scan_end(scan);
}

static enum sw_frame_type frame_type(const struct sw_text *type)
{
    static const struct {
        const char *text;
        enum sw_frame_type type;
    } types[] = {
        {"ADDED", SW_FRAME_ADDED},     {"MODIFIED", SW_FRAME_MODIFIED},
        {"DELETED", SW_FRAME_DELETED}, {"BOOKMARK", SW_FRAME_BOOKMARK},
        {"ERROR", SW_FRAME_ERROR},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(types) && type->at; i++) {
        if (sw_text_is(type, types[i].text, strlen(types[i].text))) {
            return types[i].type;
        }
    }
    return SW_FRAME_BAD;
}

/* Tells of a frame that cannot be used; whose it was is asked of bytes, which may be NULL. */
static void deliver_bad(struct sw_frame_reader *reader, const char *bytes, size_t len,
                        bool is_deletion, const struct sw_error *error)
{
    struct sw_identity identity = {0};
    if (bytes) {
        sw_decoder_identify(reader->decoder, bytes, len, &identity);
    }
    struct sw_frame frame = {
        .type = SW_FRAME_BAD,
        .resource_version = identity.resource_version,
        .namespace_ = identity.namespace_,
        .name = identity.name,
        .is_deletion = is_deletion,
        .error = error,
    };
    reader->fn(reader->arg, &frame);
}

static void deliver_object(struct sw_frame_reader *reader, enum sw_frame_type type,
                           const struct parts *parts)
{
    struct sw_error error = {0};
    struct sw_object *object;
    int code =
        sw_decode_object(reader->decoder, parts->object, parts->object_len, NULL, &object, &error);
    if (code) {
        deliver_bad(reader, parts->object, parts->object_len, type == SW_FRAME_DELETED, &error);
        return;
    }
    struct sw_frame frame = {
        .type = type,
        .object_taken = object,
        .resource_version = object->resource_version,
        .namespace_ = object->namespace_,
        .name = object->name,
    };
    reader->fn(reader->arg, &frame);
}

static void deliver_bookmark(struct sw_frame_reader *reader, const struct parts *parts)
{
    struct sw_identity identity;
    sw_decoder_identify(reader->decoder, parts->object, parts->object_len, &identity);
    if (!identity.resource_version[0]) {
        struct sw_error error;
        sw_error_set(&error, SW_E_SYNTAX, "a bookmark without a resourceVersion");
        deliver_bad(reader, NULL, 0, false, &error);
        return;
    }
    struct sw_frame frame = {
        .type = SW_FRAME_BOOKMARK,
        .resource_version = identity.resource_version,
        .namespace_ = "",
        .name = "",
        .ends_initial_events = identity.ends_initial_events,
    };
    reader->fn(reader->arg, &frame);
}

static void deliver_error(struct sw_frame_reader *reader, const struct parts *parts)
{
    struct sw_frame frame = {
        .type = SW_FRAME_ERROR,
        .resource_version = "",
        .namespace_ = "",
        .name = "",
    };
    sw_decode_status(reader->arena, parts->object, parts->object_len, &frame.status);
    reader->fn(reader->arg, &frame);
    if (!reader->is_freed) {
        sw_arena_reset(reader->arena);
    }
}

static void deliver(struct sw_frame_reader *reader, const char *bytes, size_t len)
{
    struct sw_scan scan;
    struct parts parts = {0};
    struct sw_error error;
    if (reader->capture.is_too_large) {
        /* The frame's beginning is the object's, but for the few bytes around it. */
        const char *object = memmem(bytes, len, "\"object\"", 8);
        object = object ? memchr(object, '{', len - (size_t)(object - bytes)) : NULL;
        sw_error_set(&error, SW_E_TOO_LARGE, "an event larger than %zu bytes",
                     reader->frame_limit_bytes);
        deliver_bad(reader, object, object ? len - (size_t)(object - bytes) : 0,
                    memmem(bytes, SW_MIN(len, (size_t)64), "\"DELETED\"", 9) != NULL, &error);
        return;
    }
    sw_scan_init(&scan, bytes, len);
    scan.skips_deep = true; /* one that is nested too deep is a bad object, and is named */
    bool is_read = read_parts(&scan, &parts);
    enum sw_frame_type type = is_read ? frame_type(&parts.type) : SW_FRAME_BAD;
    if (!is_read || !parts.object || type == SW_FRAME_BAD) {
        sw_error_set(&error, SW_E_SYNTAX, "not an event of a watch: %s",
                     !is_read         ? scan.why
                     : !parts.type.at ? "no type"
                     : !parts.object  ? "no object"
                                      : "a type that is not known");
        deliver_bad(reader, parts.object, parts.object_len, type == SW_FRAME_DELETED, &error);
    } else if (type == SW_FRAME_BOOKMARK) {
        deliver_bookmark(reader, &parts);
    } else if (type == SW_FRAME_ERROR) {
        deliver_error(reader, &parts);
    } else {
        deliver_object(reader, type, &parts);
    }
}

/* ---- the stream ---- */

static size_t feed_some(struct sw_frame_reader *reader, const char *bytes, size_t len)
{
    const char *value;
    size_t value_len;
    size_t used = sw_capture_feed(&reader->capture, bytes, len, &value, &value_len);
    if (reader->capture.span.state == SW_SPAN_BAD) {
        sw_error_set(&reader->error, SW_E_SYNTAX, "the watch's stream: %s",
                     reader->capture.span.why);
    } else if (reader->capture.span.state == SW_SPAN_DONE) {
        deliver(reader, value, value_len);
        sw_capture_begin(&reader->capture, reader->frame_limit_bytes);
    }
    return used;
}

int sw_frame_reader_feed(struct sw_frame_reader *reader, const char *bytes, size_t len,
                         struct sw_error *error)
{
    sw_assert(!reader->is_feeding);
    reader->is_feeding = true;
    for (size_t at = 0; at < len && !reader->error.code && !reader->is_stopped;) {
        at += feed_some(reader, bytes + at, len - at);
    }
    reader->is_feeding = false;
    int code = reader->is_stopped ? -ECANCELED : reader->error.code;
    if (code == reader->error.code && code && error) {
        *error = reader->error;
    }
    if (reader->is_freed) {
        sw_frame_reader_free(reader);
    }
    return code;
}
