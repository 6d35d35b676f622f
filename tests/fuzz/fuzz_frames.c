/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists and watch streams: what is delivered does not depend on the pieces in which the bytes come.
 * The first byte says how large the pieces are; the limit is small, so that it is met.
 */
#include <string.h>

#include <slipway/apps.h>
#include <slipway/arena.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/map.h"
#include "base/util.h"
#include "fuzz.h"
#include "kube/decode.h"

enum { LIMIT_BYTES = 2000 };

struct reading {
    struct sw_decoder *decoder;
    struct sw_buf said;
};

static void say(struct reading *reading, const char *what, const char *more)
{
    sw_assert(sw_buf_printf(&reading->said, "%s %s;", what, more) == 0);
}

static void on_item(void *arg, struct sw_object *object_taken)
{
    struct reading *reading = arg;
    say(reading, "item", object_taken->name);
    sw_object_free(reading->decoder, object_taken);
}

static void on_bad(void *arg, const struct sw_bad_item *bad)
{
    struct reading *reading = arg;
    say(reading, bad->name, bad->error->text);
}

static void on_frame(void *arg, const struct sw_frame *frame)
{
    struct reading *reading = arg;
    sw_assert(sw_buf_printf(&reading->said, "%d %s/%s@%s ", frame->type, frame->namespace_,
                            frame->name, frame->resource_version) == 0);
    if (frame->type == SW_FRAME_BAD) {
        say(reading, "bad", frame->error->text);
    } else if (frame->type == SW_FRAME_ERROR) {
        say(reading, frame->status.reason, frame->status.message);
    } else if (frame->type != SW_FRAME_BOOKMARK) {
        say(reading, "object", frame->object_taken->uid);
        sw_object_free(reading->decoder, frame->object_taken);
    }
}

static void read_list(struct reading *reading, const char *bytes, size_t len, size_t step)
{
    static const struct sw_list_events events = {on_item, on_bad};
    struct sw_error error = {0};
    const char *version;
    const char *more;
    struct sw_list_reader *list =
        sw_list_reader_new(reading->decoder, LIMIT_BYTES, &events, reading);
    for (size_t at = 0; at < len; at += step) {
        (void)sw_list_reader_feed(list, bytes + at, SW_MIN(step, len - at), &error);
    }
    if (sw_list_reader_finish(list, &version, &more, &error) == 0) {
        say(reading, version, more);
    } else {
        say(reading, "list", error.text);
    }
    sw_list_reader_free(list);
}

static void read_frames(struct reading *reading, const char *bytes, size_t len, size_t step)
{
    struct sw_error error = {0};
    struct sw_frame_reader *frames =
        sw_frame_reader_new(reading->decoder, LIMIT_BYTES, on_frame, reading);
    for (size_t at = 0; at < len; at += step) {
        (void)sw_frame_reader_feed(frames, bytes + at, SW_MIN(step, len - at), &error);
    }
    say(reading, "frames", error.text);
    sw_frame_reader_free(frames);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct sw_intern *intern = sw_intern_new();
    struct reading whole = {.decoder = sw_decoder_new(&sw_kind_deployment, intern)};
    struct reading pieces = {.decoder = whole.decoder};
    const char *text = (const char *)bytes + (len > 0);
    size_t text_len = len - (len > 0);
    size_t step = len > 0 ? (size_t)bytes[0] % 97 + 1 : 1;
    sw_buf_init(&whole.said, SIZE_MAX);
    sw_buf_init(&pieces.said, SIZE_MAX);
    read_list(&whole, text, text_len, SIZE_MAX / 2);
    read_frames(&whole, text, text_len, SIZE_MAX / 2);
    read_list(&pieces, text, text_len, step);
    read_frames(&pieces, text, text_len, step);
    sw_assert(strcmp(whole.said.bytes, pieces.said.bytes) == 0);
    struct sw_arena *arena = sw_arena_new(0);
    struct sw_status_view status;
    sw_decode_status(arena, text, text_len, &status);
    sw_assert(status.reason && status.message);
    sw_arena_free(arena);
    sw_buf_done(&whole.said);
    sw_buf_done(&pieces.said);
    sw_decoder_free(whole.decoder);
    sw_intern_free(intern);
    return 0;
}
