/* SPDX-License-Identifier: Apache-2.0 */
/* What stands around objects: lists, watch frames, Status, AdmissionReview; in any pieces. */
#include "test.h"

#include <errno.h>

#include <slipway/apps.h>
#include <slipway/arena.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/map.h"
#include "base/util.h"
#include "documents.h"
#include "kube/decode.h"

struct bench {
    struct sw_intern *intern;
    struct sw_decoder *decoder;
    struct sw_arena *arena;
    struct sw_buf said; /* what was delivered, as text */
    struct sw_list_reader *list;
    struct sw_frame_reader *frames;
    int frees_at, stops_at, count;
};

static struct bench *bench_new(void)
{
    struct bench *b = SW_NEW(struct bench);
    b->intern = sw_intern_new();
    b->decoder = sw_decoder_new(&sw_kind_deployment, b->intern);
    b->arena = sw_arena_new(0);
    b->frees_at = b->stops_at = -1;
    sw_buf_init(&b->said, SIZE_MAX);
    return b;
}

static void bench_done(struct bench *b)
{
    sw_decoder_free(b->decoder);
    sw_arena_free(b->arena);
    assert_int_equal(sw_intern_size(b->intern), 0);
    sw_intern_free(b->intern);
    sw_buf_done(&b->said);
    sw_free(b);
}

static void say_object(struct bench *b, const struct sw_object *object)
{
    const struct sw_deployment *d = (const struct sw_deployment *)(const void *)object;
    sw_assert(sw_buf_printf(&b->said, "%s/%s@%s:%d;", object->namespace_, object->name,
                            object->resource_version, (int)d->replicas) == 0);
}

/* ---- lists ---- */

static void count_item(struct bench *b)
{
    if (b->count++ == b->frees_at) {
        b->list = sw_list_reader_free(b->list);
    }
}

static void on_item(void *arg, struct sw_object *object_taken)
{
    struct bench *b = arg;
    say_object(b, object_taken);
    sw_object_free(b->decoder, object_taken);
    count_item(b);
}

static void on_bad(void *arg, const struct sw_bad_item *bad)
{
    struct bench *b = arg;
    sw_assert(sw_buf_printf(&b->said, "!%s;", bad->error->text) == 0);
    count_item(b);
}

static const struct sw_list_events list_events = {on_item, on_bad};

/* Fed first up to cut, then in steps. What was delivered is in b->said, then the outcome. */
static const char *read_list(struct bench *b, const char *text, size_t len, size_t limit,
                             size_t cut, size_t step)
{
    struct sw_error error = {0};
    const char *version;
    const char *more;
    int code = 0;
    sw_buf_clear(&b->said);
    b->list = sw_list_reader_new(b->decoder, limit, &list_events, b);
    for (size_t at = 0; at < len && code == 0;) {
        size_t n = at < cut ? cut - at : step;
        n = SW_MIN(n, len - at);
        char *piece = exact_copy(text + at, n);
        code = sw_list_reader_feed(b->list, piece, n, &error);
        free(piece);
        at += n;
    }
    int end = sw_list_reader_finish(b->list, &version, &more, &error);
    if (code == 0 && end == 0) {
        assert_int_equal(sw_buf_printf(&b->said, "%s|%s", version, more), 0);
    } else {
        assert_int_equal(end, code ? code : SW_E_TRUNCATED == end ? SW_E_TRUNCATED : SW_E_SYNTAX);
        assert_int_equal(sw_buf_printf(&b->said, "?%s", error.text), 0);
    }
    b->list = sw_list_reader_free(b->list);
    return b->said.bytes;
}

static void check_list(const char *text, const char *want)
{
    struct bench *b = bench_new();
    size_t len = strlen(text);
    for (size_t cut = 0; cut <= len; cut++) {
        assert_string_equal(read_list(b, text, len, 1 << 20, cut, len), want);
    }
    assert_string_equal(read_list(b, text, len, 1 << 20, 0, 1), want);
    assert_string_equal(read_list(b, text, len, 1 << 20, 0, 3), want);
    bench_done(b);
}

TEST(reads_a_list_cut_anywhere)
{
    static const char want[] = "shop/frontend-web@1048213:3;shop-data/postgresql-reader@1048999:2;"
                               "default/hello@501:0;1049000|eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ==";
    struct bench *b = bench_new();
    struct document document = document_read("list.json");
    for (size_t cut = 0; cut <= document.len; cut += 3) {
        assert_string_equal(read_list(b, document.text, document.len, 1 << 20, cut, 1 << 20), want);
    }
    for (size_t step = 1; step < 200; step += 33) {
        assert_string_equal(read_list(b, document.text, document.len, 1 << 20, 0, step), want);
    }
    document_done(&document);
    bench_done(b);
}

#define ITEM(name) \
    "{\"metadata\":{\"namespace\":\"n\",\"name\":\"" name "\",\"resourceVersion\":\"5\"}}"

TEST(reads_metadata_before_and_behind_the_items)
{
    check_list("{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[" ITEM("a") "]}",
               "n/a@5:1;7|");
    check_list("{\"items\":[" ITEM("a") "," ITEM("b") "],\"metadata\":{\"continue\":\"c\\u0061\","
                                                      "\"resourceVersion\":\"7\",\"x\":[{}]}}",
               "n/a@5:1;n/b@5:1;7|ca");
    check_list(" {\n\"items\" : [ ] ,\r\n \"kind\":\"DeploymentList\" }\n\n", "|");
    check_list("{\"items\":null}", "|");
    check_list("{\"it\\u0065ms\":[ " ITEM("a") " , " ITEM("b") " ]}", "n/a@5:1;n/b@5:1;|");
    check_list("{\"a\":1,\"b\":\"x]}\\\"\",\"c\":[[{}]],\"d\":true,\"items\":[],\"e\":-1.5}", "|");
    check_list("{\"metadata\":null,\"kind\":null,\"items\":[]}", "|");
}

TEST(goes_on_behind_a_bad_item)
{
    check_list("{\"items\":[" ITEM("a") ",{\"metadata\":{\"namespace\":\"n\",\"name\":\"bad\"},"
                                        "\"spec\":{\"replicas\":\"3\"}}," ITEM("b") "]}",
               "n/a@5:1;!n/bad: /spec/replicas: expected an integer, found a string (byte 62);"
               "n/b@5:1;|");
    check_list("{\"items\":[1,\"x\",null,[],true," ITEM("b") "]}",
               "!expected an object, found a number (byte 0);"
               "!expected an object, found a string (byte 0);"
               "!expected an object, found null (byte 0);"
               "!expected an object, found an array (byte 0);"
               "!expected an object, found a boolean (byte 0);n/b@5:1;|");
    check_list("{\"items\":[{\"metadata\":{\"name\":\"a\\x\"}}," ITEM("b") "]}",
               "!/metadata/name: bad escape in a string (byte 22);n/b@5:1;|");
}

/* A deployment whose managedFields stand before its name, and are nested so deep. */
static char *deep_item(const char *name, unsigned depth)
{
    struct sw_buf text;
    sw_buf_init(&text, SIZE_MAX);
    (void)sw_buf_puts(&text, "{\"metadata\":{\"managedFields\":");
    for (unsigned i = 2; i < depth; i++) {
        (void)sw_buf_puts(&text, "[");
    }
    for (unsigned i = 2; i < depth; i++) {
        (void)sw_buf_puts(&text, "]");
    }
    (void)sw_buf_printf(&text, ",\"namespace\":\"n\",\"name\":\"%s\",\"resourceVersion\":\"6\"}}",
                        name);
    char *item = sw_buf_steal(&text);
    sw_buf_done(&text);
    return item;
}

TEST(goes_on_behind_an_item_nested_too_deep)
{
    static const unsigned depths[] = {200, 201, 1000, 10000};
    for (size_t i = 0; i < SW_ARRAY_SIZE(depths); i++) {
        struct bench *b = bench_new();
        SW_AUTO(char, sw_free) deep = deep_item("deep", depths[i]);
        SW_AUTO(char, sw_free) text = sw_asprintf("{\"items\":[%s," ITEM("b") "]}", deep);
        for (size_t step = 1; step <= strlen(text); step = step * 3 + 1) {
            assert_string_equal(read_list(b, text, strlen(text), 1 << 20, 0, step),
                                depths[i] == 200 ? "n/deep@6:1;n/b@5:1;|"
                                                 : "!n/deep: /metadata: nested too "
                                                   "deep (byte 227);n/b@5:1;|");
        }
        bench_done(b);
    }
}

TEST(passes_an_item_beyond_the_limit)
{
    struct bench *b = bench_new();
    struct document document = document_read("list.json");
    for (size_t step = 1; step <= document.len; step = step * 3 + 1) {
        assert_string_equal(read_list(b, document.text, document.len, 8000, 0, step),
                            "!shop/frontend-web: larger than 8000 bytes;"
                            "shop-data/postgresql-reader@1048999:2;default/hello@501:0;"
                            "1049000|eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ==");
    }
    document_done(&document);
    bench_done(b);
}

TEST(refuses_what_is_no_list)
{
    check_list("", "?the list ends too early");
    check_list("{\"items\":[" ITEM("a"), "n/a@5:1;?the list ends too early");
    check_list("{\"items\":[]", "?the list ends too early");
    check_list("<html>", "?the list: expected an object");
    check_list("[]", "?the list: expected an object");
    check_list("{}", "?the list: no items");
    check_list("{\"kind\":\"Status\",\"code\":410}", "?a Status, not a DeploymentList");
    check_list("{\"kind\":\"PodList\",\"items\":[]}", "?a PodList, not a DeploymentList");
    check_list("{\"kind\":5,\"items\":[]}", "?the list: its kind is no string");
    check_list("{\"items\":{}}", "?the list: items are no array");
    check_list("{\"items\":[],\"items\":[]}", "?the list: items twice");
    check_list("{\"items\":[" ITEM("a") " " ITEM("b") "]}",
               "n/a@5:1;?the list: expected , or ] behind an item");
    check_list("{\"items\":[" ITEM("a") ",]}", "n/a@5:1;?the list: no value");
    check_list("{\"items\":[{\"a\":[}]}", "?the list: brackets do not match");
    check_list("{\"items\":[]}x", "?the list: something follows it");
    check_list("{\"items\" []}", "?the list: expected :");
    check_list("{items:[]}", "?the list: expected a key");
    check_list("{\"metadata\":[],\"items\":[]}",
               "?the list: metadata: expected an object, found an array (byte 0)");
}

TEST(lets_the_list_be_freed_from_an_item)
{
    struct document document = document_read("list.json");
    for (int at = 0; at < 3; at++) {
        struct bench *b = bench_new();
        b->frees_at = at;
        b->list = sw_list_reader_new(b->decoder, 1 << 20, &list_events, b);
        assert_int_equal(sw_list_reader_feed(b->list, document.text, document.len, NULL),
                         -ECANCELED);
        assert_int_equal(b->count, at + 1);
        assert_null(b->list);
        bench_done(b);
    }
    document_done(&document);
}

TEST(keeps_little_of_a_huge_list)
{
    struct bench *b = bench_new();
    struct sw_buf item;
    sw_buf_init(&item, SIZE_MAX);
    assert_int_equal(sw_buf_puts(&item, ",{\"metadata\":{\"name\":\"big\"},\"x\":\""), 0);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(sw_buf_printf(&item, "%01000d", 0), 0);
    }
    assert_int_equal(sw_buf_puts(&item, "\"}"), 0);
    b->list = sw_list_reader_new(b->decoder, SW_DECODE_LIMIT_BYTES, &list_events, b);
    assert_int_equal(
        sw_list_reader_feed(b->list, "{\"items\":[" ITEM("a"), 10 + strlen(ITEM("a")), NULL), 0);
    for (int i = 0; i < 50; i++) {
        for (size_t at = 0; at < item.len; at += 16384) {
            size_t n = SW_MIN(item.len - at, (size_t)16384);
            assert_int_equal(sw_list_reader_feed(b->list, item.bytes + at, n, NULL), 0);
        }
    }
    assert_int_equal(b->count, 51);
    sw_list_reader_free(b->list);
    sw_buf_done(&item);
    bench_done(b);
}

/* ---- watch frames ---- */

static void on_frame(void *arg, const struct sw_frame *frame)
{
    static const char *const names[] = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "BAD"};
    struct bench *b = arg;
    int code = sw_buf_printf(&b->said, "%s ", names[frame->type]);
    switch (frame->type) {
    case SW_FRAME_ADDED:
    case SW_FRAME_MODIFIED:
    case SW_FRAME_DELETED:
        assert_string_equal(frame->resource_version, frame->object_taken->resource_version);
        say_object(b, frame->object_taken);
        sw_object_free(b->decoder, frame->object_taken);
        break;
    case SW_FRAME_BOOKMARK:
        code |= sw_buf_printf(&b->said, "%s%s;", frame->resource_version,
                              frame->ends_initial_events ? "!" : "");
        break;
    case SW_FRAME_ERROR:
        code |= sw_buf_printf(&b->said, "%d %s %s;", frame->status.code, frame->status.reason,
                              frame->status.message);
        break;
    case SW_FRAME_BAD:
        code |= sw_buf_printf(&b->said, "%s%s/%s@%s %s;", frame->is_deletion ? "gone " : "",
                              frame->namespace_, frame->name, frame->resource_version,
                              frame->error->text);
        break;
    }
    assert_int_equal(code, 0);
    if (b->count == b->stops_at) {
        sw_frame_reader_stop(b->frames);
    }
    if (b->count++ == b->frees_at) {
        b->frames = sw_frame_reader_free(b->frames);
    }
}

static const char *read_frames(struct bench *b, const char *text, size_t len, size_t limit,
                               size_t cut, size_t step)
{
    struct sw_error error = {0};
    int code = 0;
    sw_buf_clear(&b->said);
    b->frames = sw_frame_reader_new(b->decoder, limit, on_frame, b);
    for (size_t at = 0; at < len && code == 0;) {
        size_t n = at < cut ? cut - at : step;
        n = SW_MIN(n, len - at);
        char *piece = exact_copy(text + at, n);
        code = sw_frame_reader_feed(b->frames, piece, n, &error);
        free(piece);
        at += n;
    }
    if (code) {
        assert_int_equal(code, SW_E_SYNTAX);
        assert_int_equal(sw_buf_printf(&b->said, "?%s", error.text), 0);
    }
    b->frames = sw_frame_reader_free(b->frames);
    return b->said.bytes;
}

static void check_frames(const char *text, const char *want)
{
    struct bench *b = bench_new();
    size_t len = strlen(text);
    for (size_t cut = 0; cut <= len; cut++) {
        assert_string_equal(read_frames(b, text, len, 1 << 20, cut, len), want);
    }
    assert_string_equal(read_frames(b, text, len, 1 << 20, 0, 1), want);
    bench_done(b);
}

TEST(reads_a_watch_cut_anywhere)
{
    static const char want[] =
        "ADDED default/hello@501:0;MODIFIED shop/frontend-web@1048213:3;BOOKMARK 1050000!;"
        "DELETED default/hello@501:0;ERROR 410 Expired too old resource version: 1 (2);";
    struct bench *b = bench_new();
    struct document document = document_read("watch.json");
    for (size_t cut = 0; cut <= document.len; cut += 3) {
        assert_string_equal(read_frames(b, document.text, document.len, 1 << 20, cut, 1 << 20),
                            want);
    }
    for (size_t step = 1; step < 200; step += 33) {
        assert_string_equal(read_frames(b, document.text, document.len, 1 << 20, 0, step), want);
    }
    document_done(&document);
    bench_done(b);
}

TEST(finds_frames_by_structure)
{
    check_frames("{\"type\":\"ADDED\",\"object\":" ITEM("a") "}{\"object\":" ITEM(
                     "b") ",\"type\":"
                          "\"DELETED\"} \r\n\n { \"type\" : "
                          "\"MODIFIED\" , \"object\" :\n" ITEM("c") " }",
                 "ADDED n/a@5:1;DELETED n/b@5:1;MODIFIED n/c@5:1;");
    check_frames("{\"x\":[],\"typ\\u0065\":\"ADDED\",\"obj\\u0065ct\":" ITEM("a") ",\"y\":0}",
                 "ADDED n/a@5:1;");
    check_frames("{\"type\":\"ADDED\",\"type\":\"DELETED\",\"object\":" ITEM(
                     "b") ",\"object\":" ITEM("a") "}",
                 "DELETED n/a@5:1;");
    check_frames("  \n\n", "");
    check_frames("{\"type\":\"ADDED\"", "");
}

TEST(reads_bookmarks)
{
    check_frames("{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Deployment\",\"metadata\":{"
                 "\"resourceVersion\":\"12746\"}}}"
                 "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"9\","
                 "\"annotations\":{\"k8s.io/initial-events-end\":\"false\"}}}}"
                 "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{}}}",
                 "BOOKMARK 12746;BOOKMARK 9;BAD /@ a bookmark without a resourceVersion;");
}

TEST(reports_bad_frames_and_goes_on)
{
    check_frames(
        "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"namespace\":\"n\",\"name\":\"a\","
        "\"resourceVersion\":\"8\"},\"spec\":{\"paused\":1}}}"
        "{\"type\":\"DELETED\",\"object\":{\"spec\":[],\"metadata\":{\"name\":\"a\"}}}"
        "{\"type\":\"ADDED\"}{\"type\":\"NEW\",\"object\":" ITEM(
            "x") "}"
                 "{\"object\":" ITEM(
                     "x") "}{\"type\":5,\"object\":{}}[1] 7 \"x\""
                          "{\"kind\":\"Status\",\"code\":500}{\"type\":\"ADDED\",\"object\":" ITEM(
                              "b") "}",
        "BAD n/a@8 n/a: /spec/paused: expected a boolean, found a number (byte 80);"
        "BAD gone /a@ a: /spec: expected an object, found an array (byte 8);"
        "BAD /@ not an event of a watch: no object;"
        "BAD n/x@5 not an event of a watch: a type that is not known;"
        "BAD n/x@5 not an event of a watch: no type;"
        "BAD /@ not an event of a watch: no type;"
        "BAD /@ not an event of a watch: expected an object;"
        "BAD /@ not an event of a watch: expected an object;"
        "BAD /@ not an event of a watch: expected an object;"
        "BAD /@ not an event of a watch: no type;ADDED n/b@5:1;");
}

TEST(goes_on_behind_a_frame_nested_too_deep)
{
    struct bench *b = bench_new();
    SW_AUTO(char, sw_free) deep = deep_item("deep", 10000);
    SW_AUTO(char, sw_free)
    text = sw_asprintf(
        "{\"type\":\"DELETED\",\"object\":%s}{\"type\":\"ADDED\",\"object\":" ITEM("b") "}", deep);
    for (size_t step = 1; step <= strlen(text); step = step * 3 + 1) {
        assert_string_equal(read_frames(b, text, strlen(text), 1 << 20, 0, step),
                            "BAD gone n/deep@6 n/deep: /metadata: nested too deep "
                            "(byte 227);ADDED n/b@5:1;");
    }
    bench_done(b);
}

TEST(gives_up_where_there_is_no_structure)
{
    check_frames("{\"type\":\"ADDED\",\"object\":" ITEM("a") "}<html>{}",
                 "ADDED n/a@5:1;?the watch's stream: no value");
    check_frames("{]", "?the watch's stream: brackets do not match");
    check_frames("}", "?the watch's stream: no value");
}

TEST(passes_a_frame_beyond_the_limit)
{
    struct bench *b = bench_new();
    struct document document = document_read("watch.json");
    for (size_t step = 1; step <= document.len; step = step * 3 + 1) {
        assert_string_equal(
            read_frames(b, document.text, document.len, 8000, 0, step),
            "ADDED default/hello@501:0;"
            "BAD shop/frontend-web@1048213 an event larger than 8000 bytes;BOOKMARK 1050000!;"
            "DELETED default/hello@501:0;ERROR 410 Expired too old resource version: 1 (2);");
    }
    document_done(&document);
    bench_done(b);
}

TEST(lets_the_watch_be_stopped_and_freed_from_a_frame)
{
    struct document document = document_read("watch.json");
    for (int at = 0; at < 10; at++) {
        struct bench *b = bench_new();
        b->frees_at = at % 2 ? at / 2 : -1;
        b->stops_at = at % 2 ? -1 : at / 2;
        b->frames = sw_frame_reader_new(b->decoder, 1 << 20, on_frame, b);
        assert_int_equal(sw_frame_reader_feed(b->frames, document.text, document.len, NULL),
                         -ECANCELED);
        assert_int_equal(b->count, at / 2 + 1);
        sw_frame_reader_free(b->frames);
        bench_done(b);
    }
    document_done(&document);
}

/* ---- Status ---- */

static struct sw_status_view status_of(struct bench *b, const char *text)
{
    struct sw_status_view status;
    char *copy = exact_copy(text, strlen(text));
    sw_decode_status(b->arena, copy, strlen(text), &status);
    free(copy);
    return status;
}

TEST(reads_a_status)
{
    struct bench *b = bench_new();
    struct sw_status_view s =
        status_of(b, "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"slow "
                     "\\u00e9\",\"reason\":\"TooManyRequests\","
                     "\"details\":{\"retryAfterSeconds\":7},\"code\":429}");
    assert_int_equal(s.code, 429);
    assert_int_equal(s.retry_after_seconds, 7);
    assert_string_equal(s.reason, "TooManyRequests");
    assert_string_equal(s.message, "slow é");
    assert_false(s.is_version_too_large);
    s = status_of(
        b, "{\"kind\":\"Status\",\"reason\":\"Timeout\",\"code\":504,\"details\":{\"causes\":["
           "{\"reason\":\"Other\"},{\"reason\":\"ResourceVersionTooLarge\",\"message\":\"m\"}]}}");
    assert_true(s.is_version_too_large);
    s = status_of(b, "{\"kind\":\"Status\",\"reason\":\"Timeout\",\"code\":504,"
                     "\"message\":\"Timeout: Too large resource version: 9, current: 5\"}");
    assert_true(s.is_version_too_large);
    bench_done(b);
}

TEST(makes_a_status_of_anything)
{
    struct bench *b = bench_new();
    struct sw_status_view s = status_of(b, "<html>\n<b>502\xff\x01 Bad</b>");
    assert_int_equal(s.code, 0);
    assert_string_equal(s.reason, "");
    assert_string_equal(s.message, "<html> <b>502\xef\xbf\xbd  Bad</b>");
    s = status_of(b, "");
    assert_string_equal(s.message, "");
    s = status_of(b, "{\"kind\":\"Deployment\"}");
    assert_string_equal(s.message, "{\"kind\":\"Deployment\"}");
    char *large = sw_asprintf("%03000d", 0);
    s = status_of(b, large);
    assert_int_equal(strlen(s.message), 1024);
    memcpy(large + 1022, "\xe2\x82\xac", 3); /* not cut in the middle */
    s = status_of(b, large);
    assert_int_equal(strlen(s.message), 1022);
    sw_free(large);
    bench_done(b);
}

/* ---- reviews ---- */

static int review(struct bench *b, const char *text, size_t len, struct sw_review_view *view,
                  struct sw_error *error)
{
    char *copy = exact_copy(text, len);
    *error = (struct sw_error){0};
    int code = sw_decode_review(b->decoder, b->arena, copy, len, view, error);
    free(copy);
    return code;
}

static void review_done(struct bench *b, struct sw_review_view *view)
{
    sw_object_free(b->decoder, view->object);
    sw_object_free(b->decoder, view->old);
}

TEST(views_a_review_of_an_update)
{
    struct bench *b = bench_new();
    struct sw_review_view v;
    struct sw_error error;
    struct document document = document_read("review-update.json");
    assert_int_equal(review(b, document.text, document.len, &v, &error), 0);
    assert_string_equal(v.api_version, "admission.k8s.io/v1");
    assert_string_equal(v.uid, "705ab4f5-6393-11e8-b7cc-42010a800002");
    assert_string_equal(v.operation, "UPDATE");
    assert_string_equal(v.name, "frontend-web");
    assert_string_equal(v.namespace_, "shop");
    assert_string_equal(v.username, "system:serviceaccount:ci:deployer");
    assert_string_equal(v.field_manager, "kubectl-client-side-apply");
    assert_string_equal(v.resource_group, "apps");
    assert_string_equal(v.resource_version_, "v1");
    assert_string_equal(v.resource, "deployments");
    assert_string_equal(v.subresource, "");
    assert_false(v.is_dry_run);
    assert_true(v.has_annotations);
    const struct sw_deployment *now = (const struct sw_deployment *)(const void *)v.object;
    const struct sw_deployment *old = (const struct sw_deployment *)(const void *)v.old;
    assert_int_equal(now->meta.generation, 13);
    assert_int_equal(old->meta.generation, 12);
    assert_false(sw_hash128_equal(now->template_hash, old->template_hash));
    review_done(b, &v);
    document_done(&document);
    bench_done(b);
}

TEST(views_reviews_without_one_of_the_objects)
{
    struct bench *b = bench_new();
    struct sw_review_view v;
    struct sw_error error;
    struct document create = document_read("review-create.json");
    struct document delete = document_read("review-delete.json");
    assert_int_equal(review(b, create.text, create.len, &v, &error), 0);
    assert_string_equal(v.operation, "CREATE");
    assert_true(v.is_dry_run);
    assert_null(v.old);
    assert_string_equal(v.object->name, ""); /* generateName */
    assert_string_equal(v.object->namespace_, "default");
    assert_false(v.has_annotations);
    review_done(b, &v);
    assert_int_equal(review(b, delete.text, delete.len, &v, &error), 0);
    assert_null(v.object);
    assert_false(v.has_annotations);
    assert_string_equal(v.old->name, "hello");
    review_done(b, &v);
    document_done(&create);
    document_done(&delete);
    bench_done(b);
}

TEST(refuses_every_part_of_a_review)
{
    struct bench *b = bench_new();
    struct sw_review_view v;
    struct sw_error error;
    struct document document = document_read("review-create.json");
    for (size_t len = 0; len + 1 < document.len; len++) {
        assert_int_equal(review(b, document.text, len, &v, &error), SW_E_SYNTAX);
        assert_true(error.text[0]);
    }
    document_done(&document);
    bench_done(b);
}

#define REVIEW(request)                                                                          \
    "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{" request \
    "}}"

static void refused(const char *text, const char *words)
{
    struct bench *b = bench_new();
    struct sw_review_view v;
    struct sw_error error;
    assert_int_equal(review(b, text, strlen(text), &v, &error), SW_E_SYNTAX);
    if (!strstr(error.text, words)) {
        fail_msg("%s\nsays: %s\nnot:  %s", text, error.text, words);
    }
    bench_done(b);
}

TEST(says_what_is_wrong_with_a_review)
{
    refused(REVIEW("\"operation\":\"CREATE\""), "no request.uid");
    refused(REVIEW("\"uid\":\"u\""), "no request.operation");
    refused("{\"kind\":\"Deployment\"}", "kind is not AdmissionReview");
    refused("{\"kind\":\"AdmissionReview\",\"apiVersion\":\"v1\"}", "apiVersion is not admission");
    refused(REVIEW("\"uid\":5"), "/request/uid: expected a string, found a number");
    refused(
        REVIEW("\"uid\":\"u\",\"operation\":\"CREATE\",\"object\":{\"metadata\":{\"name\":\"d\"},"
               "\"spec\":{\"replicas\":\"x\"}},\"oldObject\":" ITEM("a")),
        "/request/object: /spec/replicas: expected an integer, found a string");
    refused(REVIEW("\"uid\":\"u\",\"oldObject\":" ITEM("a") ",\"object\":{\"kind\":\"Scale\"}"),
            "/request/object: a Scale, not a Deployment");
    refused(REVIEW("\"object\":7"), "/request/object: expected an object, found a number");
    refused("", "ends too early");
    refused(REVIEW("") "x", "something follows");
}

TEST(lets_the_last_of_equal_objects_count)
{
    struct bench *b = bench_new();
    struct sw_review_view v;
    struct sw_error error;
    static const char twice[] = REVIEW(
        "\"uid\":\"u\",\"operation\":\"UPDATE\",\"object\":{\"metadata\":{\"annotations\":{}}},"
        "\"object\":" ITEM("b") ",\"oldObject\":" ITEM("c") ",\"oldObject\":null");
    static const char request_twice[] = REVIEW("\"uid\":\"1\",\"object\":" ITEM(
        "a") "},\"request\":{\"uid\":\"2\",\"operation\":\"DELETE\"");
    assert_int_equal(review(b, twice, sizeof(twice) - 1, &v, &error), 0);
    assert_string_equal(v.object->name, "b");
    assert_null(v.old);
    assert_false(v.has_annotations);
    review_done(b, &v);
    assert_int_equal(review(b, request_twice, sizeof(request_twice) - 1, &v, &error), 0);
    assert_string_equal(v.uid, "2");
    assert_null(v.object);
    bench_done(b);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("list", reads_a_list_cut_anywhere),
        CASE("list", reads_metadata_before_and_behind_the_items),
        CASE("list", goes_on_behind_a_bad_item),
        CASE("list", goes_on_behind_an_item_nested_too_deep),
        CASE("list", passes_an_item_beyond_the_limit),
        CASE("list", refuses_what_is_no_list),
        CASE("list", lets_the_list_be_freed_from_an_item),
        CASE("list", keeps_little_of_a_huge_list),
        CASE("watch", reads_a_watch_cut_anywhere),
        CASE("watch", finds_frames_by_structure),
        CASE("watch", reads_bookmarks),
        CASE("watch", reports_bad_frames_and_goes_on),
        CASE("watch", goes_on_behind_a_frame_nested_too_deep),
        CASE("watch", gives_up_where_there_is_no_structure),
        CASE("watch", passes_a_frame_beyond_the_limit),
        CASE("watch", lets_the_watch_be_stopped_and_freed_from_a_frame),
        CASE("status", reads_a_status),
        CASE("status", makes_a_status_of_anything),
        CASE("review", views_a_review_of_an_update),
        CASE("review", views_reviews_without_one_of_the_objects),
        CASE("review", refuses_every_part_of_a_review),
        CASE("review", says_what_is_wrong_with_a_review),
        CASE("review", lets_the_last_of_equal_objects_count),
    };
    return RUN(tests);
}
