/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of ten thousand, in pages and as a stream, with objects of a mebibyte and bad ones among
 * them: what is kept of it, what is left out and said, and how much memory that takes at most. The
 * contract (decode.h, store.h): of the text only the item that is being read; of the objects what
 * the store says that it holds, during a relist twice.
 */
#include "kube/reflector.h"

#include <slipway/apps.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/metrics.h"
#include "base/util.h"
#include "kube/client.h"
#include "kube/decode.h"
#include "kube/store.h"

#include "fake_transport.h"
#include "memory.h"
#include "test.h"

enum {
    OBJECTS = 10000,
    PAGE = 500,
    LARGE_EVERY = 400, /* the others are of about 1 KiB, as Deployments are */
    PIECE = 16 << 10,  /* as the connection hands them on */
    DEEP = 200,        /* decode.h */
};
#define MEBIBYTE ((size_t)1 << 20)

/* Some of a kind; where they stand. */
enum {
    AT_MARK = 17,       /* 1 MiB that is kept: an annotation of ours */
    AT_TWICE = 1234,    /* spec.replicas comes twice */
    AT_DEEP = 2345,     /* as deep as may be */
    AT_TOO_DEEP = 3456, /* bad, as those that follow */
    AT_BAD_LABEL = 4567,
    AT_BAD_KEY = 5678,
    AT_BAD_TYPE = 6789,
    AT_LAST_BAD = OBJECTS - 1,
    BAD = 5,
};

struct fixture {
    struct sw_loop *loop;
    struct fake_transport *transport;
    struct sw_metrics *metrics;
    struct fake_log log;
    struct sw_client *client;
    struct sw_intern *intern;
    struct sw_decoder *decoder;
    struct sw_store *store;
    struct sw_reflector *reflector;
    unsigned listed, changes;
    size_t peak, sent;
    struct sw_buf page;
};

static void on_change(void *arg, const struct sw_change *change)
{
    (void)change;
    ((struct fixture *)arg)->changes++;
}

static void on_listed(void *arg, bool is_consistent)
{
    (void)is_consistent;
    ((struct fixture *)arg)->listed++;
}

static void setup(struct fixture *f, bool streams_lists)
{
    memset(f, 0, sizeof(*f));
    f->loop = sw_loop_virtual_new(INT64_C(1767225600000000), 3);
    f->transport = fake_transport_new(f->loop);
    f->metrics = sw_metrics_new();
    fake_log_init(&f->log, f->loop);
    f->client = sw_client_new(f->loop, &f->transport->base, NULL, f->metrics, &f->log.log);
    f->intern = sw_intern_new();
    f->decoder = sw_decoder_new(&sw_kind_deployment, f->intern);
    f->store = sw_store_new(f->loop, f->decoder, on_change, f);
    sw_buf_init(&f->page, SIZE_MAX);
    struct sw_reflector_options options = {.kind = &sw_kind_deployment,
                                           .streams_lists = streams_lists};
    f->reflector = sw_reflector_new(f->loop, f->client, f->decoder, f->store, &options, f->metrics,
                                    &f->log.log, on_listed, f);
    sw_loop_virtual_advance(f->loop, 0);
}

static void teardown(struct fixture *f)
{
    sw_reflector_free(f->reflector);
    sw_store_free(f->store);
    sw_decoder_free(f->decoder);
    sw_intern_free(f->intern);
    sw_client_free(f->client);
    fake_transport_free(f->transport);
    sw_metrics_free(f->metrics);
    fake_log_done(&f->log);
    sw_buf_done(&f->page);
    assert_int_equal(sw_loop_close(f->loop), 0);
}

/* ---- the server ---- */

static void put_many(struct sw_buf *to, char c, size_t count)
{
    char some[1024];

    memset(some, c, sizeof some);
    for (; count > 0; count -= SW_MIN(count, sizeof some)) {
        assert_int_equal(sw_buf_append(to, some, SW_MIN(count, sizeof some)), 0);
    }
}

static void put_nested(struct sw_buf *to, unsigned depth)
{
    put_many(to, '[', depth);
    put_many(to, ']', depth);
}

static void put_object(struct sw_buf *to, unsigned number, const char *before)
{
    bool is_large = number % LARGE_EVERY == 0;

    sw_buf_printf(to,
                  "%s{\"metadata\":{\"name\":\"d%05u\",\"namespace\":\"n\",\"uid\":\"u%05u\","
                  "\"resourceVersion\":\"%u\",\"generation\":1,\"labels\":{\"app\":\"a%05u\"%s},"
                  "\"annotations\":{\"%s\":\"",
                  before, number, number, number + 1, number,
                  number == AT_BAD_LABEL ? ",\"x\":\"caf\xe9\"" : "",
                  number == AT_MARK ? "slipway.dev/large" : "example.org/large");
    put_many(to, 'x', number == AT_MARK || is_large ? MEBIBYTE : 300);
    sw_buf_printf(to, "\"%s},\"managedFields\":", number == AT_BAD_KEY ? ",\"\xff\":\"\"" : "");
    /* Of the object, of metadata, and so many more. */
    put_nested(to, number == AT_DEEP                                ? DEEP - 2
                   : number == AT_TOO_DEEP || number == AT_LAST_BAD ? DEEP - 1
                                                                    : 3);
    sw_buf_printf(to, "},\"spec\":{\"replicas\":1,%s\"template\":{\"x\":\"",
                  number == AT_TWICE ? "\"replicas\":7," : "");
    put_many(to, 'y', 300);
    sw_buf_printf(to, "\"}},\"status\":{\"replicas\":%s}}",
                  number == AT_BAD_TYPE ? "\"many\"" : "1");
}

static bool is_bad(unsigned number)
{
    return number == AT_TOO_DEEP || number == AT_BAD_LABEL || number == AT_BAD_KEY ||
           number == AT_BAD_TYPE || number == AT_LAST_BAD;
}

static void put_page(struct sw_buf *to, unsigned number, bool is_last)
{
    sw_buf_clear(to);
    sw_buf_printf(to,
                  "{\"kind\":\"DeploymentList\",\"apiVersion\":\"apps/v1\",\"metadata\":{"
                  "\"resourceVersion\":\"20000\",\"continue\":\"%s\"},\"items\":[",
                  is_last ? "" : "more");
    for (unsigned i = 0; i < PAGE; i++) {
        put_object(to, number * PAGE + i, i > 0 ? "," : "");
    }
    sw_buf_puts(to, "]}");
}

/* In pieces, looking at the memory behind each. The page itself is the server's. */
static void serve(struct fixture *f, struct fake_request *request)
{
    size_t own = f->page.room;

    fake_head(request, 200, NULL);
    for (size_t at = 0; at < f->page.len; at += PIECE) {
        size_t n = SW_MIN(f->page.len - at, (size_t)PIECE);
        request->events.on_body(request->arg, f->page.bytes + at, n);
        if (!request->is_open) {
            fail_msg("the list was given up: %s", f->log.text);
        }
        f->peak = SW_MAX(f->peak, test_allocated() - own);
    }
    f->sent += f->page.len;
    fake_end(request, 0);
    f->peak = SW_MAX(f->peak, test_allocated() - own);
    sw_loop_virtual_advance(f->loop, 0);
}

/* As often as asked for more. */
static void serve_all(struct fixture *f)
{
    unsigned pages = OBJECTS / PAGE;

    f->peak = f->sent = 0;
    for (unsigned i = 0; i < pages; i++) {
        struct fake_request *request = fake_the(f->transport, "/deployments?");
        assert_string_equal(fake_query(request, "watch"), "");
        assert_string_equal(fake_query(request, "limit"), "500");
        put_page(&f->page, i, i == pages - 1);
        serve(f, request);
    }
}

/* One event for each object, then the mark. */
static void serve_stream(struct fixture *f)
{
    struct fake_request *request = fake_the(f->transport, "/deployments?watch=true");
    assert_string_equal(fake_query(request, "sendInitialEvents"), "true");
    f->peak = f->sent = 0;
    fake_head(request, 200, NULL);
    for (unsigned i = 0; i <= OBJECTS; i++) {
        sw_buf_clear(&f->page);
        if (i < OBJECTS) {
            put_object(&f->page, i, "{\"type\":\"ADDED\",\"object\":");
            sw_buf_puts(&f->page, "}\n");
        } else {
            sw_buf_puts(&f->page, "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{"
                                  "\"resourceVersion\":\"20000\",\"annotations\":{"
                                  "\"k8s.io/initial-events-end\":\"true\"}}}}\n");
        }
        for (size_t at = 0; at < f->page.len; at += PIECE) {
            size_t n = SW_MIN(f->page.len - at, (size_t)PIECE);
            request->events.on_body(request->arg, f->page.bytes + at, n);
            f->peak = SW_MAX(f->peak, test_allocated() - f->page.room);
        }
        f->sent += f->page.len;
    }
    assert_true(request->is_open); /* it goes on as a watch */
    sw_loop_virtual_advance(f->loop, 0);
}

/* ---- the tests ---- */

static const struct sw_deployment *get(struct fixture *f, unsigned number)
{
    char name[16];

    snprintf(name, sizeof name, "d%05u", number);
    return sw_as_deployment(sw_store_get(f->store, "n", name));
}

static void check_contents(struct fixture *f)
{
    assert_int_equal(sw_store_size(f->store), OBJECTS - BAD);
    for (unsigned i = 0; i < OBJECTS; i++) {
        const struct sw_deployment *d = get(f, i);
        assert_int_equal(!d, is_bad(i));
        if (d) {
            assert_int_equal(d->replicas, i == AT_TWICE ? 7 : 1);
        }
    }
    const char *mark = sw_annotation(&get(f, AT_MARK)->meta, "slipway.dev/large");
    assert_int_equal(strlen(mark), MEBIBYTE);
    assert_null(sw_annotation(&get(f, 0)->meta, "example.org/large"));
}

static void check_bad_ones(struct fixture *f, unsigned count)
{
    SW_AUTO(char, sw_free)
    wanted = sw_asprintf("slipway_bad_objects_total{kind=\"deployments.apps\"} %u\n", count);
    struct sw_buf text;

    sw_buf_init(&text, SIZE_MAX);
    sw_metrics_write(f->metrics, SW_METRICS_TEXT, &text);
    assert_non_null(strstr(text.bytes, wanted));
    sw_buf_done(&text);
    assert_int_equal(fake_log_count(&f->log, "object cannot be read"), count);
    for (unsigned i = 0; i < OBJECTS; i++) {
        if (is_bad(i)) {
            SW_AUTO(char, sw_free) name = sw_asprintf("n/d%05u", i);
            assert_int_equal(fake_log_count(&f->log, name), count / BAD);
        }
    }
}

/* What may be allocated beyond what was before. `times`: the store, as often as it is there. */
static size_t bound(struct fixture *f, size_t times)
{
    /* A buffer that doubles has twice what it holds, and the old one beside it while it moves; a
     * mebibyte that is kept is there once more until it is in the store. */
    size_t reading = 4 * (MEBIBYTE + 2048);
    size_t strings = 64 * OBJECTS; /* interned: one label of each */
    return times * sw_store_bytes(f->store) + reading + strings;
}

static void check_memory(struct fixture *f, size_t times, size_t allocated_before,
                         size_t resident_before)
{
    size_t most = bound(f, times);

    assert_true(f->sent > 34 * MEBIBYTE); /* or the bound would say little */
    assert_true(most < f->sent / 2);
    if (f->peak - allocated_before > most) {
        fail_msg("%zu bytes are allocated, %zu may be", f->peak - allocated_before, most);
    }
#ifdef TEST_HAS_SANITIZER
    (void)resident_before; /* it keeps what is freed */
#else
    /* The server's page too; and a quarter more for what the allocator cannot give back. */
    size_t grown = test_resident("VmHWM:") - resident_before;
    most = (most + f->page.room) / 4 * 5;
    if (grown > most) {
        fail_msg("%zu bytes are resident, %zu may be", grown, most);
    }
#endif
}

static void check_two_lists(bool streams_lists, void (*serve_list)(struct fixture *f))
{
    struct fixture f;
    setup(&f, streams_lists);
    size_t allocated_before = test_allocated() - f.page.room;
    size_t resident_before = test_resident("VmRSS:");
    serve_list(&f);
    check_contents(&f);
    assert_int_equal(f.listed, 1);
    assert_int_equal(f.changes, OBJECTS - BAD);
    check_bad_ones(&f, BAD);
    check_memory(&f, 1, allocated_before, resident_before);

    /* Once more: what is there stays until the new list is whole. */
    sw_reflector_relist(f.reflector);
    sw_loop_virtual_advance(f.loop, 0);
    serve_list(&f);
    check_contents(&f);
    assert_int_equal(f.listed, 2);
    assert_int_equal(f.changes, OBJECTS - BAD);
    check_bad_ones(&f, 2 * BAD);
    check_memory(&f, 2, allocated_before, resident_before);
    teardown(&f);
}

TEST(ten_thousand_with_bad_ones_among_them_stay_within_their_memory)
{
    check_two_lists(false, serve_all);
}

TEST(as_a_stream_they_stay_within_the_same)
{
    check_two_lists(true, serve_stream);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("list_memory", ten_thousand_with_bad_ones_among_them_stay_within_their_memory),
        CASE("list_memory", as_a_stream_they_stay_within_the_same),
    };
    return RUN(tests);
}
