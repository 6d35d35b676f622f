/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a list as it arrives. Of the text only the value that is being received is kept, and that
 * only if it is cut by the pieces it comes in. What surrounds the items is a small state machine:
 *
 *   state         waits for                          then
 *   START         {                                  FIRST_KEY
 *   FIRST_KEY     a key, or }                        KEY, or END
 *   NEXT_KEY      a key                              KEY
 *   KEY           the end of the key                 COLON
 *   COLON         :                                  VALUE, or OPEN before the items
 *   VALUE         the end of the value               BEHIND
 *   BEHIND        a comma, or }                      NEXT_KEY, or END
 *   OPEN          [, or null                         FIRST_ITEM, or VALUE
 *   FIRST_ITEM    an item, or ]                      ITEM, or BEHIND
 *   NEXT_ITEM     an item                            ITEM
 *   ITEM          the end of the item                BEHIND_ITEM
 *   BEHIND_ITEM   a comma, or ]                      NEXT_ITEM, or BEHIND
 *   END           nothing but white space
 */
#include <errno.h>
#include <string.h>

#include <slipway/arena.h>

#include "base/error.h"
#include "base/util.h"
#include "kube/capture.h"
#include "kube/decoder.h"

enum state {
    START,
    FIRST_KEY,
    NEXT_KEY,
    KEY,
    COLON,
    VALUE,
    BEHIND,
    OPEN,
    FIRST_ITEM,
    NEXT_ITEM,
    ITEM,
    BEHIND_ITEM,
    END,
};

enum field {
    OTHER,
    KIND,
    METADATA,
    ITEMS,
};

enum { SMALL_LIMIT = 64 * 1024 }; /* of a key, the kind, the metadata: a few hundred bytes really */

struct sw_list_reader {
    struct sw_decoder *decoder;
    const struct sw_list_events *events;
    void *arg;
    size_t item_limit_bytes;
    struct sw_capture capture;
    struct sw_arena *arena;
    const char *resource_version;
    const char *continue_;
    enum state state;
    enum field field;
    bool has_items;
    bool is_feeding;
    bool is_freed;         /* from an event: feed frees it when it is back */
    struct sw_error error; /* with code != 0 nothing more is read */
};

struct sw_list_reader *sw_list_reader_new(struct sw_decoder *decoder, size_t item_limit_bytes,
                                          const struct sw_list_events *events, void *arg)
{
    sw_assert(item_limit_bytes > 0 && item_limit_bytes < UINT32_MAX);
    struct sw_list_reader *reader = SW_NEW(struct sw_list_reader);
    reader->decoder = decoder;
    reader->events = events;
    reader->arg = arg;
    reader->item_limit_bytes = item_limit_bytes;
    reader->arena = sw_arena_new(256);
    reader->resource_version = "";
    reader->continue_ = "";
    sw_capture_init(&reader->capture, decoder->is_secret);
    return reader;
}

struct sw_list_reader *sw_list_reader_free(struct sw_list_reader *reader)
{
    if (reader && reader->is_feeding) {
        reader->is_freed = true;
    } else if (reader) {
        sw_capture_done(&reader->capture);
        sw_arena_free(reader->arena);
        sw_free(reader);
    }
    return NULL;
}

static int fail(struct sw_list_reader *reader, const char *what)
{
    return sw_error_set(&reader->error, SW_E_SYNTAX, "the list: %s", what);
}

/* ---- what is captured ---- */

struct list_view {
    const char *resource_version, *continue_;
};

static const struct sw_bind list_fields[] = {
    SW_BIND("/resourceVersion", SW_BIND_STRING, struct list_view, resource_version),
    SW_BIND("/continue", SW_BIND_STRING, struct list_view, continue_),
    SW_BIND_END,
};

static int take_metadata(struct sw_list_reader *reader, const char *bytes, size_t len)
{
    struct sw_scan scan;
    struct sw_run run;
    struct sw_table *table = sw_table_new(NULL, list_fields, sizeof(struct list_view));
    sw_run_init(&run, table);
    sw_scan_init(&scan, bytes, len);
    int code = 0;
    if (sw_scan_peek(&scan) == 'n') {
        reader->resource_version = reader->continue_ = "";
    } else if (sw_run_read(&run, &scan)) {
        const struct list_view *view = sw_run_settle_in(&run, reader->arena);
        reader->resource_version = view->resource_version;
        reader->continue_ = view->continue_;
    } else {
        code = sw_run_explain(&run, &scan, &reader->error);
        sw_error_prefix(&reader->error, "the list: metadata");
    }
    sw_run_done(&run);
    sw_table_free(table);
    return code;
}

/* "DeploymentList"; "List" and the list of partial objects say nothing of the kind. */
static bool is_list_kind(const struct sw_list_reader *reader, const char *text)
{
    const char *kind = reader->decoder->kind->kind;
    size_t len = strlen(kind);
    return strcmp(text, "List") == 0 || strcmp(text, "PartialObjectMetadataList") == 0 ||
           (strncmp(text, kind, len) == 0 && strcmp(text + len, "List") == 0);
}

static int take_kind(struct sw_list_reader *reader, const char *bytes, size_t len)
{
    struct sw_scan scan;
    struct sw_text text;
    char kind[128] = "";
    sw_scan_init(&scan, bytes, len);
    if (sw_scan_peek(&scan) == 'n') {
        return 0;
    }
    if (!sw_scan_string(&scan, &text)) {
        return fail(reader, "its kind is no string");
    }
    if (text.size < sizeof(kind)) {
        sw_text_copy(&text, kind);
    }
    if (!is_list_kind(reader, kind)) {
        return sw_error_set(&reader->error, SW_E_SYNTAX, "a %s, not a %sList", kind,
                            reader->decoder->kind->kind);
    }
    return 0;
}

static int take_key(struct sw_list_reader *reader, const char *bytes, size_t len)
{
    struct sw_scan scan;
    struct sw_text text;
    sw_scan_init(&scan, bytes, len);
    if (!sw_scan_string(&scan, &text)) {
        return fail(reader, scan.why);
    }
    reader->field = sw_text_is(&text, "items", 5)      ? ITEMS
                    : sw_text_is(&text, "metadata", 8) ? METADATA
                    : sw_text_is(&text, "kind", 4)     ? KIND
                                                       : OTHER;
    if (reader->field == ITEMS && reader->has_items) {
        return fail(reader, "items twice"); /* the first were delivered already */
    }
    reader->has_items |= reader->field == ITEMS;
    return 0;
}

static int take_value(struct sw_list_reader *reader, const char *bytes, size_t len)
{
    if (reader->capture.is_too_large) {
        return fail(reader, "its metadata are too large");
    }
    switch (reader->field) {
    case KIND:
        return take_kind(reader, bytes, len);
    case METADATA:
        return take_metadata(reader, bytes, len);
    case ITEMS:
    case OTHER:
        break;
    }
    return 0;
}

static void take_item(struct sw_list_reader *reader, const char *bytes, size_t len)
{
    struct sw_error error = {0};
    struct sw_object *object = NULL;
    struct sw_identity identity;
    bool is_too_large = reader->capture.is_too_large;
    if (!is_too_large) {
        (void)sw_decode_object(reader->decoder, bytes, len, NULL, &object, &error);
    }
    if (object) {
        reader->events->on_item(reader->arg, object);
        return;
    }
    sw_decoder_identify(reader->decoder, bytes, len, &identity);
    if (is_too_large) {
        sw_error_set(&error, SW_E_TOO_LARGE, "%s%s%s: larger than %zu bytes", identity.namespace_,
                     identity.namespace_[0] ? "/" : "", identity.name, reader->item_limit_bytes);
    }
    const struct sw_bad_item bad = {identity.namespace_, identity.name, &error};
    reader->events->on_bad(reader->arg, &bad);
}

static int take(struct sw_list_reader *reader, const char *bytes, size_t len)
{
    switch (reader->state) {
    case KEY:
        reader->state = COLON;
        return take_key(reader, bytes, len);
    case ITEM:
        reader->state = BEHIND_ITEM;
        take_item(reader, bytes, len);
        return 0;
    default:
        reader->state = BEHIND;
        return take_value(reader, bytes, len);
    }
}

/* ---- what is between ---- */

static int expect(struct sw_list_reader *reader, bool is_it, enum state next, const char *what)
{
    reader->state = next;
    return is_it ? 0 : fail(reader, what);
}

static void begin(struct sw_list_reader *reader, enum state state, size_t limit)
{
    reader->state = state;
    sw_capture_begin(&reader->capture, limit);
}

static int begin_key(struct sw_list_reader *reader, char c)
{
    begin(reader, KEY, SMALL_LIMIT);
    return c == '"' ? 0 : fail(reader, "expected a key");
}

static void begin_value(struct sw_list_reader *reader)
{
    bool is_wanted = reader->field == KIND || reader->field == METADATA;
    begin(reader, VALUE, is_wanted ? (size_t)SMALL_LIMIT : 0);
}

/* One byte that is no white space, outside of captured values. Returns a code; *ret_is_used: the
 * byte has been dealt with; else it begins a value. */
static int step(struct sw_list_reader *reader, char c, bool *ret_is_used)
{
    *ret_is_used = true;
    switch (reader->state) {
    case START:
        return expect(reader, c == '{', FIRST_KEY, "expected an object");
    case FIRST_KEY:
        if (c == '}') {
            reader->state = END;
            return 0;
        }
        *ret_is_used = false;
        return begin_key(reader, c);
    case NEXT_KEY:
        *ret_is_used = false;
        return begin_key(reader, c);
    case COLON:
        begin_value(reader);
        return expect(reader, c == ':', reader->field == ITEMS ? OPEN : VALUE, "expected :");
    case BEHIND:
        return expect(reader, c == ',' || c == '}', c == ',' ? NEXT_KEY : END, "expected , or }");
    case OPEN:
        if (c == 'n') {
            *ret_is_used = false;
            reader->state = VALUE; /* null: no items */
            return 0;
        }
        return expect(reader, c == '[', FIRST_ITEM, "items are no array");
    case FIRST_ITEM:
        if (c == ']') {
            reader->state = BEHIND;
            return 0;
        }
        *ret_is_used = false;
        begin(reader, ITEM, reader->item_limit_bytes);
        return 0;
    case NEXT_ITEM:
        *ret_is_used = false;
        begin(reader, ITEM, reader->item_limit_bytes);
        return 0;
    case BEHIND_ITEM:
        return expect(reader, c == ',' || c == ']', c == ',' ? NEXT_ITEM : BEHIND,
                      "expected , or ] behind an item");
    case END:
        return fail(reader, "something follows it");
    case KEY:
    case VALUE:
    case ITEM:
        break;
    }
    sw_assert(false); /* captured values do not come here */
    return -EINVAL;
}

static bool is_capturing(const struct sw_list_reader *reader)
{
    return reader->state == KEY || reader->state == VALUE || reader->state == ITEM;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static int feed_some(struct sw_list_reader *reader, const char *bytes, size_t len, size_t *ret_used)
{
    if (!is_capturing(reader)) {
        bool is_used = true;
        int code = is_space(bytes[0]) ? 0 : step(reader, bytes[0], &is_used);
        *ret_used = is_used;
        return code;
    }
    const char *value;
    size_t value_len;
    *ret_used = sw_capture_feed(&reader->capture, bytes, len, &value, &value_len);
    switch (reader->capture.span.state) {
    case SW_SPAN_DONE:
        return take(reader, value, value_len);
    case SW_SPAN_BAD:
        return fail(reader, reader->capture.span.why);
    default:
        return 0;
    }
}

int sw_list_reader_feed(struct sw_list_reader *reader, const char *bytes, size_t len,
                        struct sw_error *error)
{
    sw_assert(!reader->is_feeding);
    reader->is_feeding = true;
    for (size_t at = 0; at < len && !reader->error.code && !reader->is_freed;) {
        size_t used;
        (void)feed_some(reader, bytes + at, len - at, &used); /* a failure is in reader->error */
        at += used;
    }
    reader->is_feeding = false;
    if (reader->is_freed) {
        sw_list_reader_free(reader);
        return -ECANCELED;
    }
    if (reader->error.code && error) {
        *error = reader->error;
    }
    return reader->error.code;
}

int sw_list_reader_finish(struct sw_list_reader *reader, const char **ret_resource_version,
                          const char **ret_continue, struct sw_error *error)
{
    if (!reader->error.code && reader->state != END) {
        sw_error_set(&reader->error, SW_E_TRUNCATED, "the list ends too early");
    } else if (!reader->error.code && !reader->has_items) {
        fail(reader, "no items");
    }
    if (reader->error.code) {
        if (error) {
            *error = reader->error;
        }
        return reader->error.code;
    }
    *ret_resource_version = reader->resource_version;
    *ret_continue = reader->continue_;
    return 0;
}
