/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reflector against an API server played by hand, on virtual time: each thing that can happen
 * to a list or a watch, and what the store, the next request and the owner see of it.
 */
#include "kube/reflector.h"

#include <errno.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/map.h"
#include "base/metrics.h"
#include "base/util.h"
#include "kube/client.h"
#include "kube/decode.h"
#include "kube/reflector_rules.h"
#include "kube/store.h"

#include "fake_transport.h"
#include "test.h"

struct thing {
    struct sw_object meta;
    int64_t value;
};

static const struct sw_bind thing_fields[] = {
    SW_BIND("/spec/value", SW_BIND_INT64, struct thing, value),
    SW_BIND_END,
};

static const struct sw_kind things = {.group = "t.example",
                                      .version = "v1",
                                      .kind = "Thing",
                                      .plural = "things",
                                      .size = sizeof(struct thing),
                                      .fields = thing_fields};

#define PATH "/apis/t.example/v1/things?"

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
    struct sw_buf changes; /* "+a=1 ~a=2 -a " */
    unsigned listed, consistent;
    unsigned frees_at_change; /* the n-th change frees the reflector; 0: never */
    bool frees_when_listed;
    bool relists_at_change;
};

static void on_change(void *arg, const struct sw_change *change)
{
    struct fixture *f = arg;
    const struct sw_object *object = change->now ? change->now : change->old;
    long long value = ((const struct thing *)(const void *)object)->value;
    if (change->type == SW_CHANGE_DELETED) {
        sw_buf_printf(&f->changes, "-%s ", object->name);
    } else {
        sw_buf_printf(&f->changes, "%c%s=%lld ", change->type == SW_CHANGE_ADDED ? '+' : '~',
                      object->name, value);
    }
    if (f->frees_at_change && --f->frees_at_change == 0) {
        f->reflector = sw_reflector_free(f->reflector);
    }
    if (f->relists_at_change) {
        f->relists_at_change = false;
        sw_reflector_relist(f->reflector);
    }
}

static void on_listed(void *arg, bool is_consistent)
{
    struct fixture *f = arg;
    f->listed++;
    f->consistent += is_consistent;
    if (f->frees_when_listed) {
        f->reflector = sw_reflector_free(f->reflector);
    }
}

static void start(struct fixture *f, const struct sw_reflector_options *options)
{
    struct sw_reflector_options o = options ? *options : (struct sw_reflector_options){0};
    o.kind = &things;
    f->reflector = sw_reflector_new(f->loop, f->client, f->decoder, f->store, &o, f->metrics,
                                    &f->log.log, on_listed, f);
    sw_loop_virtual_advance(f->loop, 0);
}

static void prepare(struct fixture *f)
{
    memset(f, 0, sizeof(*f));
    f->loop = sw_loop_virtual_new(INT64_C(1767225600000000), 3);
    f->transport = fake_transport_new(f->loop);
    f->metrics = sw_metrics_new();
    fake_log_init(&f->log, f->loop);
    f->client = sw_client_new(f->loop, &f->transport->base, NULL, f->metrics, &f->log.log);
    f->intern = sw_intern_new();
    f->decoder = sw_decoder_new(&things, f->intern);
    f->store = sw_store_new(f->loop, f->decoder, on_change, f);
    sw_buf_init(&f->changes, SIZE_MAX);
}

static void setup(struct fixture *f)
{
    prepare(f);
    start(f, NULL);
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
    sw_buf_done(&f->changes);
    assert_int_equal(sw_loop_close(f->loop), 0);
}

static void advance(struct fixture *f, uint64_t ms)
{
    sw_loop_virtual_advance(f->loop, ms);
}

/* ---- texts of the server ---- */

#define ITEM(name, version, value)                                               \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"n\",\"uid\":\"u-" name \
    "\",\"resourceVersion\":\"" version "\"},\"spec\":{\"value\":" value "}}"
#define LIST(version, next, items)                                           \
    "{\"kind\":\"ThingList\",\"apiVersion\":\"t.example/v1\",\"metadata\":{" \
    "\"resourceVersion\":\"" version "\",\"continue\":\"" next "\"},\"items\":[" items "]}"
#define EVENT(type, name, version, value) \
    "{\"type\":\"" type "\",\"object\":" ITEM(name, version, value) "}\n"
#define BOOKMARK(version)                                                                    \
    "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Thing\",\"apiVersion\":\"t.example/v1\"," \
    "\"metadata\":{\"resourceVersion\":\"" version "\"}}}\n"
#define STATUS(code, reason, rest)                                                       \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\"," \
    "\"message\":\"no\",\"reason\":\"" reason "\"" rest ",\"code\":" code "}"
#define ERROR_EVENT(code, reason, rest) \
    "{\"type\":\"ERROR\",\"object\":" STATUS(code, reason, rest) "}\n"
#define TOO_LARGE                                                                          \
    ",\"details\":{\"causes\":[{\"reason\":\"ResourceVersionTooLarge\",\"message\":\"Too " \
    "large resource version\"}],\"retryAfterSeconds\":1}"

static struct fake_request *list_request(struct fixture *f)
{
    struct fake_request *r = fake_the(f->transport, PATH);
    assert_string_equal(fake_query(r, "watch"), "");
    assert_null(r->lane);
    return r;
}

static struct fake_request *watch_request(struct fixture *f)
{
    struct fake_request *r = fake_the(f->transport, PATH "watch=true");
    return r;
}

static void check_version(struct fixture *f, const char *version)
{
    assert_string_equal(fake_query(watch_request(f), "resourceVersion"), version);
}

/* A list without a version. */
static void check_fresh_list(struct fixture *f)
{
    assert_string_equal(fake_query(list_request(f), "resourceVersion"), "");
    assert_string_equal(fake_query(list_request(f), "limit"), "500");
}

/* A list that may be served from the cache, but not from before that version. */
static void check_list_since(struct fixture *f, const char *version)
{
    assert_string_equal(fake_query(list_request(f), "resourceVersion"), version);
    assert_string_equal(fake_query(list_request(f), "limit"), "");
    assert_null(strstr(list_request(f)->target, "resourceVersionMatch"));
}

static void check_changes(struct fixture *f, const char *want)
{
    assert_string_equal(f->changes.bytes, want);
    sw_buf_clear(&f->changes);
}

static bool exposes(struct fixture *f, const char *line)
{
    struct sw_buf text;
    sw_buf_init(&text, SIZE_MAX);
    sw_metrics_write(f->metrics, SW_METRICS_TEXT, &text);
    bool has = strstr(text.bytes, line) != NULL;
    sw_buf_done(&text);
    return has;
}

static unsigned lists(struct fixture *f, const char *reason)
{
    static const char *const labels[] = {"kind", "reason", NULL};
    const char *const values[] = {"things.t.example", reason};
    return (unsigned)sw_metric_value(sw_metric_child(
        sw_metrics_family(f->metrics, SW_METRIC_COUNTER, "slipway_lists_total",
                          "Lists begun, by kind and by what made them necessary.", labels, NULL, 0),
        values));
}

/* Until a watch runs with a=1 at version 10. */
static struct fake_request *watching(struct fixture *f)
{
    fake_answer(list_request(f), 200, NULL, LIST("10", "", ITEM("a", "5", "1")));
    check_changes(f, "+a=1 ");
    check_version(f, "10");
    fake_head(watch_request(f), 200, NULL);
    return watch_request(f);
}

static void send(struct fixture *f, const char *text)
{
    fake_body(watch_request(f), text);
    advance(f, 0);
}

/* ---- the ordinary way ---- */

TEST(lists_in_pages_and_watches_from_the_first_pages_version)
{
    struct fixture f;
    setup(&f);
    check_fresh_list(&f);
    assert_string_equal(fake_query(list_request(&f), "continue"), "");
    fake_answer(list_request(&f), 200, NULL, LIST("10", "to/ken=", ITEM("a", "5", "1")));
    check_changes(&f, ""); /* not before the last page */
    assert_false(sw_reflector_is_synced(f.reflector));
    assert_string_equal(fake_query(list_request(&f), "continue"), "to/ken=");
    assert_string_equal(fake_query(list_request(&f), "limit"), "500");
    assert_string_equal(fake_query(list_request(&f), "resourceVersion"), "");
    assert_non_null(strstr(list_request(&f)->target, "continue=to%2Fken%3D"));
    fake_answer(list_request(&f), 200, NULL,
                LIST("11", "", ITEM("b", "6", "2") "," ITEM("c", "7", "3")));
    check_changes(&f, "+a=1 +b=2 +c=3 ");
    assert_true(sw_reflector_is_synced(f.reflector));
    assert_int_equal(f.listed, 1);
    assert_int_equal(f.consistent, 1);

    struct fake_request *w = watch_request(&f);
    check_version(&f, "10");
    assert_string_equal(fake_query(w, "allowWatchBookmarks"), "true");
    assert_in_range(strtol(fake_query(w, "timeoutSeconds"), NULL, 10), 300, 599);
    assert_string_equal(w->lane, "watch /apis/t.example/v1/things");
    fake_head(w, 200, NULL);
    fake_body(w, EVENT("ADDED", "d", "12", "4") EVENT("MODIFIED", "a", "13", "9"));
    fake_body(w, EVENT("DELETED", "b", "14", "2"));
    check_changes(&f, "+d=4 ~a=9 -b ");
    assert_int_equal(sw_store_size(f.store), 3);
    assert_true(exposes(&f, "slipway_store_objects{kind=\"things.t.example\"} 3"));
    assert_true(exposes(&f, "slipway_watch_events_total{kind=\"things.t.example\"} 3"));
    assert_int_equal(lists(&f, "start"), 1);
    teardown(&f);
}

TEST(scopes_and_selectors_are_asked_for)
{
    struct fixture f;
    prepare(&f);
    start(&f, &(struct sw_reflector_options){.namespace_ = "web",
                                             .label_selector = "app in (a,b),!c",
                                             .field_selector = "metadata.name=x",
                                             .page_size = 7});
    struct fake_request *r = fake_the(f.transport, "/apis/t.example/v1/namespaces/web/things?");
    assert_string_equal(fake_query(r, "labelSelector"), "app in (a,b),!c");
    assert_string_equal(fake_query(r, "fieldSelector"), "metadata.name=x");
    assert_string_equal(fake_query(r, "limit"), "7");
    fake_answer(r, 200, NULL, LIST("10", "", ""));
    r = fake_the(f.transport, "watch=true");
    assert_string_equal(fake_query(r, "labelSelector"), "app in (a,b),!c");
    assert_string_equal(fake_query(r, "fieldSelector"), "metadata.name=x");
    teardown(&f);
}

TEST(an_ended_watch_resumes_from_the_last_event)
{
    struct fixture f;
    setup(&f);
    struct fake_request *w = watching(&f);
    send(&f, EVENT("DELETED", "a", "20", "1"));
    check_changes(&f, "-a ");
    fake_end(w, 0);
    advance(&f, 100); /* jitter, no back-off */
    check_version(&f, "20");
    assert_int_equal(lists(&f, "expired") + lists(&f, "failed"), 0);
    teardown(&f);
}

TEST(bookmarks_move_the_version_and_nothing_else)
{
    struct fixture f;
    setup(&f);
    struct fake_request *w = watching(&f);
    send(&f, BOOKMARK("30"));
    send(&f, BOOKMARK("25")); /* never backwards */
    send(&f, BOOKMARK(""));
    check_changes(&f, "");
    fake_end(w, 0);
    advance(&f, 100);
    check_version(&f, "30");
    fake_head(watch_request(&f), 200, NULL);
    send(&f, BOOKMARK("opaque")); /* what cannot be compared is believed */
    fake_end(watch_request(&f), 0);
    advance(&f, 100);
    check_version(&f, "opaque");
    teardown(&f);
}

TEST(a_watch_that_ends_at_once_is_a_failure)
{
    struct fixture f;
    setup(&f);
    watching(&f);
    for (unsigned i = 0; i < 3; i++) {
        uint64_t lived_ms = sw_now_ms(f.loop) - watch_request(&f)->sent_ms;
        advance(&f, 999 - SW_MIN(lived_ms, UINT64_C(999)));
        fake_end(watch_request(&f), 0);
        advance(&f, (UINT64_C(800) << i) - 1);
        assert_int_equal(fake_open_count(f.transport), 0);
        while (fake_open_count(f.transport) == 0) {
            assert_true(sw_loop_virtual_step(f.loop));
        }
        if (i < 2) {
            check_version(&f, "10");
            fake_head(watch_request(&f), 200, NULL);
        }
    }
    check_list_since(&f, "10"); /* perhaps a list helps */
    fake_answer(list_request(&f), 200, NULL, LIST("10", "", ITEM("a", "5", "1")));
    fake_head(watch_request(&f), 200, NULL);
    advance(&f, 1000); /* long enough to count as alive */
    fake_end(watch_request(&f), 0);
    advance(&f, 100);
    check_version(&f, "10");
    teardown(&f);
}

TEST(a_broken_watch_goes_on_from_the_last_event_after_a_back_off)
{
    struct fixture f;
    setup(&f);
    watching(&f);
    send(&f, EVENT("ADDED", "b", "11", "2") "{\"type\":\"ADDED\",\"obj");
    fake_break(watch_request(&f), SW_E_TRUNCATED);
    advance(&f, 799);
    assert_int_equal(fake_open_count(f.transport), 0);
    advance(&f, 801);
    check_version(&f, "11");
    fake_break(watch_request(&f), -ECONNREFUSED);
    advance(&f, 1599);
    assert_int_equal(fake_open_count(f.transport), 0);
    advance(&f, 1601);
    check_version(&f, "11");
    check_changes(&f, "+b=2 ");
    assert_int_equal(sw_store_size(f.store), 2); /* kept all the while */
    teardown(&f);
}

/* ---- any pieces, any cut ---- */

static const char whole_list[] = LIST("10", "", ITEM("a", "5", "1") "," ITEM("b", "6", "2"));
static const char whole_watch[] = EVENT("MODIFIED", "a", "11", "7") BOOKMARK("12")
    EVENT("DELETED", "b", "13", "2") EVENT("ADDED", "c", "14", "3");

TEST(bytes_one_by_one_make_the_same_state)
{
    struct fixture f;
    setup(&f);
    fake_head(list_request(&f), 200, NULL);
    for (size_t i = 0; whole_list[i]; i++) {
        fake_body(list_request(&f), (char[]){whole_list[i], 0});
    }
    fake_end(list_request(&f), 0);
    check_changes(&f, "+a=1 +b=2 ");
    fake_head(watch_request(&f), 200, NULL);
    for (size_t i = 0; whole_watch[i]; i++) {
        fake_body(watch_request(&f), (char[]){whole_watch[i], 0});
    }
    check_changes(&f, "~a=7 -b +c=3 ");
    fake_end(watch_request(&f), 0);
    advance(&f, 100);
    check_version(&f, "14");
    teardown(&f);
}

TEST(a_list_cut_anywhere_is_not_applied)
{
    for (size_t cut = 0; cut < sizeof(whole_list) - 1; cut++) {
        struct fixture f;
        setup(&f);
        SW_AUTO(char, sw_free) part = sw_strndup(whole_list, cut);
        fake_head(list_request(&f), 200, NULL);
        if (cut) {
            fake_body(list_request(&f), part);
        }
        /* Every other time the end even looks like one. */
        fake_break(list_request(&f), cut % 2 ? 0 : SW_E_TRUNCATED);
        check_changes(&f, "");
        assert_int_equal(f.listed, 0);
        advance(&f, 1600);
        check_fresh_list(&f);
        fake_answer(list_request(&f), 200, NULL, whole_list);
        check_changes(&f, "+a=1 +b=2 ");
        teardown(&f);
    }
}

TEST(a_watch_cut_anywhere_goes_on_where_it_was)
{
    static const struct {
        const char *version, *rest;
    } next[] = {
        {"10", whole_watch},
        {"11", BOOKMARK("12") EVENT("DELETED", "b", "13", "2") EVENT("ADDED", "c", "14", "3")},
        {"12", EVENT("DELETED", "b", "13", "2") EVENT("ADDED", "c", "14", "3")},
        {"13", EVENT("ADDED", "c", "14", "3")},
        {"14", ""},
    };
    for (size_t cut = 0; cut < sizeof(whole_watch); cut++) {
        struct fixture f;
        setup(&f);
        fake_answer(list_request(&f), 200, NULL, whole_list);
        sw_buf_clear(&f.changes);
        SW_AUTO(char, sw_free) part = sw_strndup(whole_watch, cut);
        fake_head(watch_request(&f), 200, NULL);
        if (cut) {
            fake_body(watch_request(&f), part);
        }
        fake_break(watch_request(&f), SW_E_TRUNCATED);
        advance(&f, 1600);
        const char *version = fake_query(watch_request(&f), "resourceVersion");
        size_t at = (size_t)(strtol(version, NULL, 10) - 10);
        assert_string_equal(version, next[at].version);
        if (*next[at].rest) {
            fake_head(watch_request(&f), 200, NULL);
            send(&f, next[at].rest);
        }
        check_changes(&f, "~a=7 -b +c=3 "); /* none lost, none twice */
        teardown(&f);
    }
}

/* ---- expired versions ---- */

TEST(a_410_relists_whether_in_the_head_or_in_the_stream)
{
    for (int in_stream = 0; in_stream < 2; in_stream++) {
        struct fixture f;
        setup(&f);
        if (in_stream) {
            watching(&f);
            send(&f, EVENT("ADDED", "b", "12", "2"));
            send(&f, ERROR_EVENT("410", "Expired", "") EVENT("ADDED", "z", "99", "2"));
        } else {
            watching(&f);
            send(&f, EVENT("ADDED", "b", "12", "2"));
            fake_end(watch_request(&f), 0);
            advance(&f, 100);
            fake_answer(watch_request(&f), 410, NULL, STATUS("410", "Expired", ""));
        }
        check_changes(&f, "+b=2 ");
        check_list_since(&f, "12"); /* at once */
        assert_int_equal(lists(&f, "expired"), 1);
        /* Meanwhile: a deleted, b changed, c new, d came and went. */
        fake_answer(list_request(&f), 200, NULL,
                    LIST("40", "", ITEM("b", "30", "5") "," ITEM("c", "31", "6")));
        check_changes(&f, "-a ~b=5 +c=6 ");
        assert_int_equal(f.listed, 2);
        assert_int_equal(f.consistent, 1);
        check_version(&f, "40");
        teardown(&f);
    }
}

TEST(versions_that_expire_again_and_again_are_no_hot_loop)
{
    struct fixture f;
    setup(&f);
    watching(&f);
    send(&f, ERROR_EVENT("410", "Gone", ""));
    for (unsigned i = 0; i < 3; i++) {
        fake_answer(list_request(&f), 200, NULL, LIST("10", "", ITEM("a", "5", "1")));
        fake_answer(watch_request(&f), 410, NULL, STATUS("410", "Expired", ""));
        advance(&f, (UINT64_C(800) << i) - 1);
        assert_int_equal(fake_open_count(f.transport), 0);
        advance(&f, (UINT64_C(800) << i) + 1);
    }
    fake_answer(list_request(&f), 200, NULL, LIST("10", "", ITEM("a", "5", "1")));
    fake_head(watch_request(&f), 200, NULL);
    send(&f, BOOKMARK("11"));
    send(&f, ERROR_EVENT("410", "Gone", ""));
    check_list_since(&f, "11"); /* an event in between: at once again */
    teardown(&f);
}

TEST(a_410_on_a_later_page_throws_the_list_away)
{
    struct fixture f;
    setup(&f);
    fake_answer(list_request(&f), 200, NULL, LIST("10", "t1", ITEM("a", "5", "1")));
    fake_answer(list_request(&f), 200, NULL, LIST("10", "t2", ITEM("b", "6", "1")));
    fake_answer(list_request(&f), 410, NULL,
                "{\"kind\":\"Status\",\"metadata\":{\"continue\":\"tempting\"},\"code\":410,"
                "\"reason\":\"Expired\"}");
    check_changes(&f, "");
    check_fresh_list(&f);
    assert_string_equal(fake_query(list_request(&f), "continue"), "");
    fake_answer(list_request(&f), 200, NULL, LIST("50", "", ITEM("b", "40", "2")));
    check_changes(&f, "+b=2 ");
    check_version(&f, "50");
    teardown(&f);
}

TEST(a_version_that_is_too_large_is_dropped)
{
    for (int in_stream = 0; in_stream < 2; in_stream++) {
        struct fixture f;
        setup(&f);
        watching(&f);
        if (in_stream) {
            send(&f, ERROR_EVENT("504", "Timeout", TOO_LARGE));
        } else {
            advance(&f, 1000);
            fake_end(watch_request(&f), 0);
            advance(&f, 100);
            fake_answer(watch_request(&f), 504, NULL, STATUS("504", "Timeout", TOO_LARGE));
        }
        assert_int_equal(fake_open_count(f.transport), 0);
        advance(&f, 2000); /* that server lags: about a second */
        check_fresh_list(&f);
        assert_int_equal(lists(&f, "too_large"), 1);
        teardown(&f);
    }
}

TEST(a_list_since_an_expired_version_is_done_without_one)
{
    for (int too_large = 0; too_large < 2; too_large++) {
        struct fixture f;
        setup(&f);
        watching(&f);
        send(&f, BOOKMARK("30"));
        send(&f, ERROR_EVENT("410", "Gone", ""));
        check_list_since(&f, "30");
        if (too_large) {
            fake_answer(list_request(&f), 504, NULL, STATUS("504", "Timeout", TOO_LARGE));
        } else {
            fake_answer(list_request(&f), 410, NULL, STATUS("410", "Expired", ""));
        }
        advance(&f, 2000);
        check_fresh_list(&f);
        fake_answer(list_request(&f), 200, NULL, LIST("60", "", ITEM("a", "5", "1")));
        check_changes(&f, "");
        check_version(&f, "60");
        teardown(&f);
    }
}

TEST(a_namesake_is_a_deletion_and_an_addition)
{
    struct fixture f;
    setup(&f);
    watching(&f);
    send(&f, ERROR_EVENT("410", "Gone", ""));
    fake_answer(list_request(&f), 200, NULL,
                LIST("40", "",
                     "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"uid\":\"other\","
                     "\"resourceVersion\":\"30\"},\"spec\":{\"value\":8}}"));
    check_changes(&f, "-a +a=8 ");
    teardown(&f);
}

TEST(a_stale_replica_does_not_take_the_store_back)
{
    struct fixture f;
    setup(&f);
    watching(&f);
    send(&f, EVENT("MODIFIED", "a", "50", "9"));
    check_changes(&f, "~a=9 ");
    send(&f, ERROR_EVENT("410", "Gone", ""));
    /* It should not have answered so; but replicas of all ages have been seen. */
    fake_answer(list_request(&f), 200, NULL, LIST("45", "", ITEM("a", "40", "3")));
    check_changes(&f, "");
    teardown(&f);
}

TEST(a_list_in_one_piece_that_breaks_off_is_read_in_pages)
{
    struct fixture f;
    setup(&f);
    watching(&f);
    send(&f, ERROR_EVENT("410", "Gone", ""));
    check_list_since(&f, "10");
    fake_break(list_request(&f), -ECONNRESET); /* before it began: that was not its length */
    advance(&f, 1600);
    check_list_since(&f, "10");
    fake_head(list_request(&f), 200, NULL);
    fake_body(list_request(&f), "{\"kind\":\"ThingList\",\"items\":[" ITEM("b", "30", "5"));
    fake_break(list_request(&f), -ETIMEDOUT);
    advance(&f, 3200);
    check_fresh_list(&f);
    fake_answer(list_request(&f), 200, NULL, LIST("40", "more", ITEM("a", "5", "1")));
    fake_answer(list_request(&f), 200, NULL, LIST("40", "", ITEM("b", "30", "5")));
    check_changes(&f, "+b=5 ");
    check_version(&f, "40");
    teardown(&f);
}

/* ---- versions that go back ---- */

/* Until the watch has told of versions up to 70 and then finds a server that has never heard of
 * them: a changed, b and c new, then b deleted. */
static void watching_beyond(struct fixture *f)
{
    watching(f);
    send(f, EVENT("MODIFIED", "a", "50", "2") EVENT("ADDED", "b", "60", "1")
                EVENT("ADDED", "c", "65", "1") EVENT("DELETED", "b", "70", "1"));
    check_changes(f, "~a=2 +b=1 +c=1 -b ");
    advance(f, 1000);
    fake_end(watch_request(f), 0);
    advance(f, 100);
    fake_answer(watch_request(f), 504, NULL, STATUS("504", "Timeout", TOO_LARGE));
    advance(f, 2000);
    check_fresh_list(f);
}

TEST(a_restored_cluster_is_begun_anew)
{
    struct fixture f;
    setup(&f);
    watching_beyond(&f);
    /* The backup was made at 20; c has not come yet, x is made at 50, and a as it was at 5. */
#define RESTORED \
    LIST("55", "", ITEM("a", "5", "1") "," ITEM("b", "20", "9") "," ITEM("x", "50", "3"))
    fake_answer(list_request(&f), 200, NULL, RESTORED);
    check_changes(&f, ""); /* too much for one answer */
    assert_true(fake_log_has(&f.log, "version 55, but 70 has been seen"));
    advance(&f, 10000);
    check_fresh_list(&f);
    fake_answer(list_request(&f), 200, NULL, RESTORED);
    check_changes(&f, "-c ~a=1 +b=9 +x=3 ");
    assert_true(fake_log_has(&f.log, "the cluster has gone back"));
    assert_int_equal(f.consistent, 2);
    check_version(&f, "55");
    fake_head(watch_request(&f), 200, NULL);
    send(&f, EVENT("MODIFIED", "a", "56", "7") BOOKMARK("58"));
    check_changes(&f, "~a=7 ");
    fake_end(watch_request(&f), 0);
    advance(&f, 1600);
    check_version(&f, "58");
    /* And once more. */
    sw_reflector_relist(f.reflector);
    advance(&f, 0);
    fake_answer(list_request(&f), 200, NULL, LIST("57", "", ""));
    advance(&f, 10000);
    fake_answer(list_request(&f), 200, NULL, LIST("57", "", ""));
    check_changes(&f, "-a -b -x ");
    teardown(&f);
}

TEST(one_answer_that_goes_back_is_not_believed)
{
    struct fixture f;
    setup(&f);
    watching_beyond(&f);
    for (int i = 0; i < 3; i++) {
        fake_answer(list_request(&f), 200, NULL, RESTORED);
        check_changes(&f, "");
        advance(&f, 20000);
        check_fresh_list(&f);
        fake_answer(list_request(&f), 200, NULL,
                    LIST("71", "", ITEM("a", "50", "2") "," ITEM("c", "65", "1")));
        check_changes(&f, "");
        check_version(&f, "71");
        sw_reflector_relist(f.reflector);
        advance(&f, 0);
    }
    assert_false(fake_log_has(&f.log, "the cluster has gone back"));
    teardown(&f);
}

TEST(what_is_seen_during_a_list_may_be_newer)
{
    struct fixture f;
    setup(&f);
    watching(&f);
    for (int i = 0; i < 2; i++) {
        sw_reflector_relist(f.reflector);
        advance(&f, 0);
        struct sw_object *object;
        static const char text[] = ITEM("a", "40", "4");
        assert_int_equal(sw_decode_object(f.decoder, text, sizeof(text) - 1, NULL, &object, NULL),
                         0);
        sw_store_put_take(f.store, object);
        check_changes(&f, i ? "" : "~a=4 ");
        fake_answer(list_request(&f), 200, NULL, LIST("30", "", ITEM("a", "5", "1")));
        check_changes(&f, "");
        check_version(&f, "30");
    }
    teardown(&f);
}

/* ---- other errors ---- */

TEST(errors_of_the_server_are_waited_out)
{
    static const struct {
        int status;
        const char *event;
    } cases[] = {
        {500, ERROR_EVENT("500", "InternalError", "")},
        {504, ERROR_EVENT("504", "Timeout", "")},
        {429, ERROR_EVENT("429", "TooManyRequests", ",\"details\":{\"retryAfterSeconds\":1}")},
        {503, ERROR_EVENT("503", "ServiceUnavailable", "")},
    };
    for (size_t i = 0; i < SW_ARRAY_SIZE(cases); i++) {
        struct fixture f;
        setup(&f);
        watching(&f);
        send(&f, BOOKMARK("20"));
        send(&f, cases[i].event);
        assert_int_equal(fake_open_count(f.transport), 0);
        advance(&f, 2000);
        check_version(&f, "20"); /* the watch, not a list */
        fake_answer(watch_request(&f), cases[i].status, NULL, STATUS("500", "X", ""));
        assert_int_equal(fake_open_count(f.transport), 0);
        advance(&f, 3200);
        check_version(&f, "20");
        fake_answer(watch_request(&f), cases[i].status, NULL, STATUS("500", "X", ""));
        advance(&f, 6400);
        /* Three in a row: perhaps a list works. */
        check_list_since(&f, "20");
        assert_int_equal(lists(&f, "failed"), 1);
        teardown(&f);
    }
}

TEST(retry_after_of_a_list_is_waited_for)
{
    struct fixture f;
    setup(&f);
    fake_answer(list_request(&f), 429,
                "Retry-After: 20\nX-Kubernetes-PF-FlowSchema-UID: fs\n"
                "X-Kubernetes-PF-PriorityLevel-UID: pl\nAudit-Id: an-id",
                STATUS("429", "TooManyRequests", ""));
    assert_true(fake_log_has(&f.log, "flowSchemaUID=fs priorityLevelUID=pl auditID=an-id"));
    assert_int_equal(fake_log_count(&f.log, "an-id"), 1);
    advance(&f, 19999);
    assert_int_equal(fake_open_count(f.transport), 0);
    advance(&f, 801);
    check_fresh_list(&f);
    fake_answer(list_request(&f), 500, "Retry-After: 10", "");
    advance(&f, 9999);
    assert_int_equal(fake_open_count(f.transport), 0);
    advance(&f, 801);
    check_fresh_list(&f);
    teardown(&f);
}

TEST(what_nobody_understands_leads_to_a_list)
{
    struct fixture f;
    setup(&f);
    watching(&f);
    advance(&f, 1000);
    fake_end(watch_request(&f), 0);
    advance(&f, 100);
    fake_answer(watch_request(&f), 400, NULL, STATUS("400", "BadRequest", ""));
    advance(&f, 1600);
    check_list_since(&f, "10");
    fake_answer(list_request(&f), 400, NULL, STATUS("400", "BadRequest", ""));
    advance(&f, 3200);
    check_fresh_list(&f);
    teardown(&f);
}

TEST(missing_permissions_are_named)
{
    struct fixture f;
    setup(&f);
    fake_answer(list_request(&f), 403, "Audit-Id: an-id",
                "{\"kind\":\"Status\",\"code\":403,\"reason\":\"Forbidden\",\"message\":"
                "\"things.t.example is forbidden: User \\\"u\\\" cannot list\"}");
    assert_true(fake_log_has(&f.log, "it needs the verbs list and watch"));
    assert_true(fake_log_has(&f.log, "kind=things.t.example"));
    assert_int_equal(fake_log_count(&f.log, "cannot list"), 1); /* said once */
    assert_int_equal(fake_log_count(&f.log, "auditID=an-id"), 1);
    for (unsigned i = 0; i < 12; i++) {
        unsigned sent = f.transport->count;
        uint64_t wait = SW_MIN(UINT64_C(1000) << i, UINT64_C(120000));
        advance(&f, wait - 1);
        assert_int_equal(f.transport->count, sent);
        advance(&f, wait + 1);
        assert_int_equal(f.transport->count, sent + 1);
        fake_answer(list_request(&f), 403, NULL, "{}");
    }
    teardown(&f);
}

TEST(a_page_of_html_is_no_list)
{
    static const char *const answers[] = {
        "<html>",
        "{}",
        "[]",
        "null",
        "\"list\"",
        "{\"kind\":\"ThingList\",\"metadata\":{\"resourceVersion\":\"\"},\"items\":[]}",
        LIST("0", "", ""),
        LIST("", "", "")};
    for (size_t i = 0; i < SW_ARRAY_SIZE(answers); i++) {
        struct fixture f;
        setup(&f);
        fake_answer(list_request(&f), 200, NULL, answers[i]);
        assert_int_equal(f.listed, 0);
        assert_int_equal(fake_open_count(f.transport), 0);
        assert_true(fake_log_has(&f.log, "list failed"));
        advance(&f, 1600);
        check_fresh_list(&f);
        teardown(&f);
    }
}

TEST(rubbish_in_a_watch_is_waited_out)
{
    struct fixture f;
    setup(&f);
    watching(&f);
    send(&f, EVENT("MODIFIED", "a", "15", "4") "<html>");
    check_changes(&f, "~a=4 ");
    assert_int_equal(fake_open_count(f.transport), 0);
    advance(&f, 1600);
    check_version(&f, "15");
    teardown(&f);
}

/* ---- bad objects ---- */

#define BAD(name, version)                                                       \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"n\",\"uid\":\"u-" name \
    "\",\"resourceVersion\":\"" version "\"},\"spec\":{\"value\":\"many\"}}"

TEST(a_bad_object_stays_as_it_was_or_is_left_out_and_the_rest_goes_on)
{
    struct fixture f;
    setup(&f);
    fake_answer(list_request(&f), 200, NULL,
                LIST("10", "", ITEM("a", "5", "1") "," BAD("x", "6") "," ITEM("b", "7", "2")));
    check_changes(&f, "+a=1 +b=2 ");
    fake_head(watch_request(&f), 200, NULL);
    send(&f,
         "{\"type\":\"MODIFIED\",\"object\":" BAD("a", "20") "}" EVENT("ADDED", "c", "21", "3"));
    check_changes(&f, "+c=3 "); /* a, which could be read before, stays */
    send(&f, "{\"type\":\"ADDED\",\"object\":" BAD("z", "22") "}");
    check_changes(&f, "");
    assert_int_equal(fake_log_count(&f.log, "object cannot be read"), 3);
    assert_true(exposes(&f, "slipway_bad_objects_total{kind=\"things.t.example\"} 3"));
    fake_end(watch_request(&f), 0);
    advance(&f, 100);
    check_version(&f, "22"); /* or the watch would meet it for ever */
    fake_head(watch_request(&f), 200, NULL);
    send(&f, ERROR_EVENT("410", "Gone", ""));
    fake_answer(list_request(&f), 200, NULL,
                LIST("30", "", BAD("a", "20") "," ITEM("b", "7", "2") "," BAD("z", "22")));
    check_changes(&f, "-c "); /* the only one that is gone */
    fake_head(watch_request(&f), 200, NULL);
    send(&f, "{\"type\":\"DELETED\",\"object\":" BAD("a", "31") "}");
    check_changes(&f, "-a ");
    teardown(&f);
}

TEST(everything_gone_is_applied_and_said)
{
    struct fixture f;
    setup(&f);
    watching(&f);
    send(&f, ERROR_EVENT("410", "Gone", ""));
    fake_answer(list_request(&f), 200, NULL, LIST("40", "", ""));
    check_changes(&f, "-a ");
    assert_true(fake_log_has(&f.log, "everything of a kind has vanished"));
    teardown(&f);
}

/* ---- kinds that are not there ---- */

TEST(an_optional_kind_may_be_absent)
{
    struct fixture f;
    prepare(&f);
    start(&f, &(struct sw_reflector_options){.is_optional = true});
    fake_answer(list_request(&f), 404, NULL, "404 page not found");
    assert_int_equal(f.listed, 1);
    assert_int_equal(f.consistent, 1);
    assert_true(sw_reflector_is_synced(f.reflector));
    for (int i = 0; i < 5; i++) {
        advance(&f, 29999);
        assert_int_equal(fake_open_count(f.transport), 0);
        advance(&f, 1);
        assert_int_equal(sw_reflector_age_ms(f.reflector), 30000);
        fake_answer(list_request(&f), 404, NULL, "404 page not found");
        assert_int_equal(sw_reflector_age_ms(f.reflector), 0);
    }
    assert_int_equal(f.listed, 1); /* said once */
    assert_int_equal(fake_log_count(&f.log, "not served"), 1);
    sw_reflector_relist(f.reflector); /* and on request, at once */
    advance(&f, 0);
    fake_answer(list_request(&f), 404, NULL, "404 page not found");
    assert_int_equal(f.listed, 2);
    assert_int_equal(f.consistent, 2);
    advance(&f, 30000);
    fake_answer(list_request(&f), 200, NULL, LIST("10", "", ITEM("a", "5", "1")));
    check_changes(&f, "+a=1 ");
    check_version(&f, "10");
    assert_int_equal(f.listed, 3);
    teardown(&f);
}

TEST(a_kind_that_vanishes_takes_its_objects_along_after_a_second_look)
{
    struct fixture f;
    prepare(&f);
    start(&f, &(struct sw_reflector_options){.is_optional = true});
    watching(&f);
    advance(&f, 1000);
    fake_end(watch_request(&f), 0);
    advance(&f, 100);
    fake_answer(watch_request(&f), 404, NULL, "404 page not found");
    fake_answer(list_request(&f), 404, NULL, "404 page not found");
    check_changes(&f, "");
    advance(&f, 30000);
    check_fresh_list(&f);
    fake_answer(list_request(&f), 404, NULL, "404 page not found");
    check_changes(&f, "-a ");
    advance(&f, 30000);
    check_fresh_list(&f);
    teardown(&f);
}

TEST(a_needed_kind_is_asked_for_until_it_is_there)
{
    struct fixture f;
    setup(&f);
    fake_answer(list_request(&f), 404, NULL, "404 page not found");
    assert_int_equal(f.listed, 0);
    assert_false(sw_reflector_is_synced(f.reflector));
    assert_true(fake_log_has(&f.log, "status=404"));
    advance(&f, 1600);
    fake_answer(list_request(&f), 200, NULL, LIST("10", "", ""));
    assert_int_equal(f.listed, 1);
    teardown(&f);
}

/* ---- silence ---- */

TEST(a_watch_beyond_its_time_is_given_up)
{
    struct fixture f;
    setup(&f);
    struct fake_request *w = watching(&f);
    uint64_t seconds = (uint64_t)strtol(fake_query(w, "timeoutSeconds"), NULL, 10);
    assert_int_equal(w->head_timeout_ms, 75000);
    advance(&f, seconds * 1000 + 14999);
    assert_true(w->is_open); /* no bookmark has ever come: silence proves nothing */
    advance(&f, 1);
    assert_true(w->was_cancelled);
    assert_true(fake_log_has(&f.log, "silent for too long"));
    advance(&f, 1600);
    check_version(&f, "10");
    teardown(&f);
}

TEST(a_short_watch_is_given_up_as_soon)
{
    struct fixture f;
    prepare(&f);
    start(&f, &(struct sw_reflector_options){.watch_seconds = 1});
    struct fake_request *w = watching(&f);
    assert_string_equal(fake_query(w, "timeoutSeconds"), "1");
    advance(&f, 15999);
    assert_true(w->is_open);
    advance(&f, 1);
    assert_true(w->was_cancelled);
    teardown(&f);
}

TEST(three_bookmarks_that_do_not_come_are_death)
{
    struct fixture f;
    setup(&f);
    struct fake_request *w = watching(&f);
    advance(&f, 30000);
    send(&f, BOOKMARK("11"));
    advance(&f, 40000);
    send(&f, BOOKMARK("12"));
    advance(&f, 119999);
    assert_true(w->is_open);
    advance(&f, 1);
    assert_true(w->was_cancelled);
    assert_int_equal(sw_reflector_age_ms(f.reflector), 120000);
    advance(&f, 1600);
    check_version(&f, "12");
    /* What was learnt holds for the next stream, from its beginning. */
    w = watch_request(&f);
    uint64_t waited = sw_now_ms(f.loop) - w->sent_ms;
    advance(&f, 119999 - waited);
    assert_true(w->is_open);
    assert_int_equal(sw_reflector_age_ms(f.reflector) > 120000, true); /* still blind */
    advance(&f, 1);
    assert_true(w->was_cancelled);
    teardown(&f);
}

TEST(frequent_bookmarks_make_nobody_nervous)
{
    struct fixture f;
    setup(&f);
    struct fake_request *w = watching(&f);
    send(&f, BOOKMARK("11"));
    advance(&f, 1000);
    send(&f, BOOKMARK("12"));
    advance(&f, 74999);
    assert_true(w->is_open); /* not before 75 s */
    send(&f, EVENT("ADDED", "b", "13", "1"));
    advance(&f, 74999);
    assert_true(w->is_open);
    advance(&f, 1);
    assert_true(w->was_cancelled);
    teardown(&f);
}

/* ---- several kinds ---- */

TEST(a_dead_server_is_probed_once_for_all_kinds)
{
    struct fixture f;
    struct sw_reflector *others[4];
    struct sw_store *stores[4];
    setup(&f);
    for (size_t i = 0; i < SW_ARRAY_SIZE(others); i++) {
        char ns[8];
        snprintf(ns, sizeof(ns), "n%zu", i);
        stores[i] = sw_store_new(f.loop, f.decoder, on_change, &f);
        struct sw_reflector_options options = {.kind = &things, .namespace_ = ns};
        others[i] = sw_reflector_new(f.loop, f.client, f.decoder, stores[i], &options, f.metrics,
                                     &f.log.log, on_listed, &f);
    }
    advance(&f, 0);
    assert_int_equal(fake_open_count(f.transport), 5);
    for (unsigned i = 0; i < 5; i++) {
        fake_break(f.transport->requests[i], -ECONNREFUSED);
    }
    for (unsigned i = 0; i < 20; i++) {
        unsigned sent = f.transport->count;
        advance(&f, 60000);
        assert_int_equal(f.transport->count, sent + 1);
        fake_break(f.transport->requests[sent], -ECONNREFUSED);
    }
    advance(&f, 60000);
    assert_int_equal(fake_open_count(f.transport), 1);
    fake_answer(f.transport->requests[f.transport->count - 1], 200, NULL, LIST("10", "", ""));
    /* The watch of the one, and the lists of the others. */
    assert_int_equal(fake_open_count(f.transport), 5);
    for (size_t i = 0; i < SW_ARRAY_SIZE(others); i++) {
        sw_reflector_free(others[i]);
        sw_store_free(stores[i]);
    }
    teardown(&f);
}

TEST(a_probe_that_meets_nonsense_makes_way)
{
    struct fixture f;
    setup(&f);
    fake_break(list_request(&f), -ECONNREFUSED);
    advance(&f, 1600);
    fake_break(list_request(&f), SW_E_TOO_LARGE); /* a head of megabytes: somebody is there */
    for (int i = 0; i < 3; i++) {
        advance(&f, 60000);
        fake_answer(list_request(&f), 503, NULL,
                    STATUS("503", "Unavailable", TOO_LARGE)); /* it is, and lags */
    }
    advance(&f, 60000);
    fake_answer(list_request(&f), 200, NULL, LIST("10", "", ITEM("a", "5", "1")));
    check_changes(&f, "+a=1 ");
    teardown(&f);
}

/* ---- relisting on request ---- */

TEST(a_requested_list_is_consistent_and_loses_no_event)
{
    struct fixture f;
    setup(&f);
    struct fake_request *w = watching(&f);
    send(&f, EVENT("ADDED", "b", "15", "2"));
    check_changes(&f, "+b=2 ");
    sw_reflector_relist(f.reflector);
    sw_reflector_relist(f.reflector);
    assert_int_equal(fake_open_count(f.transport), 1); /* not from within */
    advance(&f, 0);
    assert_true(w->was_cancelled);
    check_fresh_list(&f);
    /* b was deleted, c added and a changed while nobody watched. */
    fake_answer(list_request(&f), 200, NULL,
                LIST("20", "", ITEM("a", "16", "5") "," ITEM("c", "18", "6")));
    check_changes(&f, "-b ~a=5 +c=6 ");
    assert_int_equal(f.listed, 2);
    assert_int_equal(f.consistent, 2);
    check_version(&f, "20");
    assert_int_equal(lists(&f, "requested"), 1);
    teardown(&f);
}

TEST(a_request_during_a_list_is_met_by_the_next_one)
{
    struct fixture f;
    setup(&f);
    fake_answer(list_request(&f), 200, NULL, LIST("10", "more", ITEM("a", "5", "1")));
    sw_reflector_relist(f.reflector);
    advance(&f, 0);
    fake_answer(list_request(&f), 200, NULL, LIST("10", "", ITEM("b", "6", "1")));
    assert_int_equal(f.listed, 1);
    assert_int_equal(f.consistent, 0); /* that one was sent before the call */
    check_fresh_list(&f);
    fake_answer(list_request(&f), 200, NULL, LIST("11", "", ITEM("a", "5", "1")));
    assert_int_equal(f.listed, 2);
    assert_int_equal(f.consistent, 1);
    check_version(&f, "11");
    teardown(&f);
}

TEST(a_request_from_a_change_is_met_too)
{
    struct fixture f;
    setup(&f);
    f.relists_at_change = true;
    fake_answer(list_request(&f), 200, NULL, LIST("10", "", ITEM("a", "5", "1")));
    assert_int_equal(f.listed, 1);
    assert_int_equal(f.consistent, 0);
    check_fresh_list(&f);
    fake_answer(list_request(&f), 200, NULL, LIST("11", "", ITEM("a", "5", "1")));
    assert_int_equal(f.consistent, 1);
    fake_head(watch_request(&f), 200, NULL);
    f.relists_at_change = true;
    send(&f, EVENT("ADDED", "b", "12", "2") EVENT("ADDED", "c", "13", "3"));
    check_changes(&f, "+a=1 +b=2 +c=3 ");
    check_fresh_list(&f);
    teardown(&f);
}

TEST(a_request_outlives_failures)
{
    struct fixture f;
    setup(&f);
    watching(&f);
    sw_reflector_relist(f.reflector);
    advance(&f, 0);
    fake_break(list_request(&f), -ECONNRESET);
    advance(&f, 1600);
    check_fresh_list(&f);
    fake_answer(list_request(&f), 500, NULL, "");
    sw_reflector_relist(f.reflector); /* while it backs off: no sooner */
    advance(&f, 799);
    assert_int_equal(fake_open_count(f.transport), 0);
    advance(&f, 801);
    check_fresh_list(&f);
    fake_answer(list_request(&f), 200, NULL, LIST("20", "", ITEM("a", "5", "1")));
    assert_int_equal(f.consistent, 2);
    check_version(&f, "20");
    teardown(&f);
}

/* ---- our own writes ---- */

static void put(struct fixture *f, const char *text)
{
    struct sw_object *object;
    struct sw_error error;
    assert_int_equal(sw_decode_object(f->decoder, text, strlen(text), NULL, &object, &error), 0);
    sw_store_put_take(f->store, object);
}

TEST(answers_to_our_own_writes_may_be_ahead_of_the_watch)
{
    struct fixture f;
    setup(&f);
    watching(&f);
    put(&f, ITEM("a", "30", "9"));
    check_changes(&f, "~a=9 ");
    send(&f, EVENT("MODIFIED", "a", "20", "4")); /* older: what we know is newer */
    send(&f, EVENT("MODIFIED", "a", "30", "9")); /* our own, again */
    check_changes(&f, "");
    send(&f, EVENT("MODIFIED", "a", "31", "5"));
    check_changes(&f, "~a=5 ");
    teardown(&f);
}

TEST(an_answer_during_a_list_survives_it)
{
    struct fixture f;
    setup(&f);
    watching(&f);
    sw_reflector_relist(f.reflector);
    advance(&f, 0);
    put(&f, ITEM("new", "30", "9"));
    put(&f, ITEM("a", "31", "7"));
    fake_answer(list_request(&f), 200, NULL, LIST("25", "", ITEM("a", "5", "1")));
    check_changes(&f, "+new=9 ~a=7 ");
    assert_int_equal(sw_store_size(f.store), 2);
    teardown(&f);
}

/* ---- freed from within ---- */

TEST(may_be_freed_by_a_change_from_a_watch)
{
    struct fixture f;
    setup(&f);
    watching(&f);
    f.frees_at_change = 2;
    send(&f, EVENT("ADDED", "b", "11", "2") EVENT("ADDED", "c", "12", "3")
                 EVENT("ADDED", "d", "13", "4"));
    check_changes(&f, "+b=2 +c=3 ");
    assert_null(f.reflector);
    assert_int_equal(fake_open_count(f.transport), 0);
    teardown(&f);
}

TEST(may_be_freed_by_a_change_from_a_list_or_by_the_list_itself)
{
    for (int i = 0; i < 2; i++) {
        struct fixture f;
        setup(&f);
        f.frees_at_change = i ? 0 : 1;
        f.frees_when_listed = i;
        fake_answer(list_request(&f), 200, NULL,
                    LIST("10", "", ITEM("a", "5", "1") "," ITEM("b", "6", "2")));
        assert_null(f.reflector);
        assert_int_equal(f.listed, i);
        assert_int_equal(fake_open_count(f.transport), 0);
        advance(&f, 1000000);
        assert_int_equal(f.transport->count, 1 + i);
        teardown(&f);
    }
}

TEST(may_be_freed_in_every_state)
{
    for (int i = 0; i < 6; i++) {
        struct fixture f;
        prepare(&f);
        start(&f, &(struct sw_reflector_options){.is_optional = true});
        switch (i) {
        case 0: /* listing */
            fake_head(list_request(&f), 200, NULL);
            fake_body(list_request(&f), "{\"items\":[");
            break;
        case 1:
            watching(&f);
            fake_body(watch_request(&f), "{\"type\":");
            break;
        case 2: /* back-off */
            fake_answer(list_request(&f), 500, NULL, "");
            break;
        case 3: /* at the gate */
            fake_break(list_request(&f), -ECONNRESET);
            break;
        case 4:
            fake_answer(list_request(&f), 404, NULL, "");
            break;
        default:
            watching(&f);
            sw_reflector_relist(f.reflector);
            break;
        }
        unsigned sent = f.transport->count;
        f.reflector = sw_reflector_free(f.reflector);
        assert_int_equal(fake_open_count(f.transport), 0);
        advance(&f, 1000000);
        assert_int_equal(f.transport->count, sent);
        teardown(&f);
    }
}

TEST(the_age_is_that_of_the_last_byte)
{
    struct fixture f;
    setup(&f);
    watching(&f);
    advance(&f, 5000);
    assert_int_equal(sw_reflector_age_ms(f.reflector), 5000);
    assert_true(exposes(&f, "slipway_watch_age_seconds{kind=\"things.t.example\"} 5"));
    fake_body(watch_request(&f), "{");
    assert_int_equal(sw_reflector_age_ms(f.reflector), 0);
    fake_break(watch_request(&f), -ECONNRESET);
    advance(&f, 1600);
    fake_break(watch_request(&f), -ECONNREFUSED);
    advance(&f, 3200);
    assert_int_equal(sw_reflector_age_ms(f.reflector), 4800); /* trying is not hearing */
    teardown(&f);
}

/* ---- lists as streams ---- */

#define MARK(version)                                                                        \
    "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Thing\",\"apiVersion\":\"t.example/v1\"," \
    "\"metadata\":{\"resourceVersion\":\"" version                                           \
    "\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n"

static const struct sw_reflector_options streams = {.streams_lists = true};

static void check_stream_since(struct fixture *f, const char *version)
{
    struct fake_request *r = watch_request(f);
    assert_string_equal(fake_query(r, "sendInitialEvents"), "true");
    assert_string_equal(fake_query(r, "resourceVersionMatch"), "NotOlderThan");
    assert_string_equal(fake_query(r, "allowWatchBookmarks"), "true");
    assert_string_equal(fake_query(r, "resourceVersion"), version);
    assert_in_range(strtol(fake_query(r, "timeoutSeconds"), NULL, 10), 300, 599);
    assert_string_equal(r->lane, "watch /apis/t.example/v1/things");
}

static void check_plain_watch(struct fixture *f, const char *version)
{
    assert_string_equal(fake_query(watch_request(f), "sendInitialEvents"), "");
    check_version(f, version);
}

/* Until a=1 is known at version 10, from a stream that goes on. */
static struct fake_request *streaming(struct fixture *f)
{
    prepare(f);
    start(f, &streams);
    check_stream_since(f, "");
    struct fake_request *w = watch_request(f);
    fake_head(w, 200, NULL);
    fake_body(w, EVENT("ADDED", "a", "5", "1") MARK("10"));
    check_changes(f, "+a=1 ");
    assert_int_equal(f->listed, 1);
    return w;
}

TEST(a_list_may_come_as_a_stream_that_goes_on)
{
    struct fixture f;
    prepare(&f);
    start(&f, &streams);
    check_stream_since(&f, "");
    struct fake_request *w = watch_request(&f);
    fake_head(w, 200, NULL);
    fake_body(w, EVENT("ADDED", "a", "5", "1") EVENT("ADDED", "b", "6", "2"));
    /* What happens before the mark is part of the list. */
    fake_body(w, EVENT("ADDED", "c", "7", "3") EVENT("MODIFIED", "a", "11", "9")
                     EVENT("DELETED", "b", "12", "2") BOOKMARK("12"));
    check_changes(&f, "");
    assert_false(sw_reflector_is_synced(f.reflector));
    assert_int_equal(f.listed, 0);
    fake_body(w, MARK("12"));
    check_changes(&f, "+a=9 +c=3 ");
    assert_true(sw_reflector_is_synced(f.reflector));
    assert_int_equal(f.listed, 1);
    assert_int_equal(f.consistent, 1);
    assert_ptr_equal(watch_request(&f), w); /* the same stream */
    assert_int_equal(f.transport->count, 1);
    send(&f, EVENT("ADDED", "b", "13", "4") EVENT("DELETED", "c", "14", "3"));
    check_changes(&f, "+b=4 -c ");
    assert_int_equal(lists(&f, "start"), 1);
    /* It ends as watches do, and goes on from where it was. */
    fake_end(w, 0);
    advance(&f, 200);
    check_plain_watch(&f, "14");
    teardown(&f);
}

TEST(a_stream_of_nothing_is_an_empty_list)
{
    struct fixture f;
    prepare(&f);
    start(&f, &streams);
    fake_head(watch_request(&f), 200, NULL);
    fake_body(watch_request(&f), MARK("3"));
    assert_true(sw_reflector_is_synced(f.reflector));
    assert_int_equal(sw_store_size(f.store), 0);
    fake_end(watch_request(&f), 0);
    advance(&f, 1200);
    check_plain_watch(&f, "3");
    teardown(&f);
}

TEST(deletions_that_were_missed_are_found_at_the_mark)
{
    struct fixture f;
    struct fake_request *w = streaming(&f);
    fake_body(w, ERROR_EVENT("410", "Expired", ""));
    advance(&f, 0);
    check_stream_since(&f, "10");
    w = watch_request(&f);
    fake_head(w, 200, NULL);
    fake_body(w, EVENT("ADDED", "b", "11", "2"));
    check_changes(&f, "");
    assert_true(sw_reflector_is_synced(f.reflector)); /* the old picture stays */
    fake_body(w, MARK("12"));
    check_changes(&f, "-a +b=2 ");
    assert_int_equal(f.consistent, 1); /* from a cache: at least 10, perhaps no more */
    assert_int_equal(lists(&f, "expired"), 1);
    teardown(&f);
}

TEST(a_bad_object_of_a_stream_keeps_what_is_known)
{
    struct fixture f;
    struct fake_request *w = streaming(&f);
    fake_body(w, ERROR_EVENT("410", "Expired", ""));
    advance(&f, 0);
    w = watch_request(&f);
    fake_head(w, 200, NULL);
    fake_body(w, EVENT("ADDED", "a", "11", "true") MARK("12"));
    check_changes(&f, "");
    assert_int_equal(sw_store_size(f.store), 1);
    teardown(&f);
}

TEST(a_consistent_list_may_be_a_stream)
{
    struct fixture f;
    streaming(&f);
    sw_reflector_relist(f.reflector);
    advance(&f, 0);
    check_stream_since(&f, "");
    struct fake_request *w = watch_request(&f);
    fake_head(w, 200, NULL);
    fake_body(w, EVENT("ADDED", "a", "11", "2"));
    sw_reflector_relist(f.reflector); /* after it was sent: another one is due */
    fake_body(w, MARK("12"));
    advance(&f, 0);
    check_changes(&f, "~a=2 ");
    assert_int_equal(f.listed, 2);
    assert_int_equal(f.consistent, 1);
    check_stream_since(&f, "");
    assert_ptr_not_equal(watch_request(&f), w);
    fake_head(watch_request(&f), 200, NULL);
    fake_body(watch_request(&f), EVENT("ADDED", "a", "11", "2") MARK("13"));
    assert_int_equal(f.consistent, 2);
    teardown(&f);
}

/* The four ways in which a server cannot. */

static void check_fallback(struct fixture *f)
{
    check_fresh_list(f);
    check_changes(f, "");
    fake_answer(list_request(f), 200, NULL, LIST("10", "", ITEM("a", "5", "1")));
    check_changes(f, "+a=1 ");
    check_plain_watch(f, "10");
}

TEST(a_server_that_refuses_streams_is_asked_for_pages)
{
    static const int statuses[] = {400, 405, 422, 500, 501};
    for (size_t i = 0; i < SW_ARRAY_SIZE(statuses); i++) {
        struct fixture f;
        prepare(&f);
        start(&f, &streams);
        fake_answer(watch_request(&f), statuses[i], NULL, STATUS("422", "Invalid", ""));
        advance(&f, 0);
        check_fallback(&f);
        assert_true(fake_log_has(&f.log, "has no lists as streams"));
        /* For an hour it is not asked again; then it is. */
        sw_reflector_relist(f.reflector);
        advance(&f, 0);
        check_fresh_list(&f);
        fake_answer(list_request(&f), 200, NULL, LIST("10", "", ITEM("a", "5", "1")));
        sw_loop_virtual_stall(f.loop, 3600000);
        sw_reflector_relist(f.reflector);
        advance(&f, 0);
        check_stream_since(&f, "");
        teardown(&f);
    }
}

TEST(a_server_that_gives_up_in_the_stream_is_asked_for_pages)
{
    struct fixture f;
    prepare(&f);
    start(&f, &streams);
    fake_head(watch_request(&f), 200, NULL);
    fake_body(watch_request(&f),
              EVENT("ADDED", "a", "5", "1") ERROR_EVENT("500", "InternalError", ""));
    advance(&f, 0);
    check_fallback(&f);
    teardown(&f);
}

TEST(a_server_that_never_marks_the_end_is_asked_for_pages)
{
    struct fixture f;
    prepare(&f);
    start(&f, &streams);
    fake_head(watch_request(&f), 200, NULL);
    advance(&f, 50000);
    fake_body(watch_request(&f), EVENT("ADDED", "a", "5", "1"));
    advance(&f, 59999);
    check_stream_since(&f, "");
    advance(&f, 1);
    check_fallback(&f);
    teardown(&f);
}

TEST(a_server_that_goes_on_without_a_mark_is_asked_for_pages)
{
    struct fixture f;
    prepare(&f);
    start(&f, &streams);
    fake_head(watch_request(&f), 200, NULL);
    for (int i = 0; i < 17; i++) {
        fake_body(watch_request(&f), EVENT("MODIFIED", "a", "5", "1"));
        advance(&f, 10000);
    }
    check_stream_since(&f, "");
    advance(&f, 10000);
    check_fallback(&f);
    teardown(&f);
}

TEST(streams_that_are_dropped_give_way_to_pages)
{
    struct fixture f;
    prepare(&f);
    start(&f, &streams);
    fake_head(watch_request(&f), 200, NULL);
    fake_body(watch_request(&f), EVENT("ADDED", "a", "5", "1"));
    fake_break(watch_request(&f), SW_E_TRUNCATED);
    advance(&f, 2000);
    check_stream_since(&f, ""); /* once more */
    fake_head(watch_request(&f), 200, NULL);
    fake_end(watch_request(&f), 0); /* in order, but before the mark */
    advance(&f, 10000);
    check_fallback(&f);
    /* Which says nothing of the server. */
    assert_false(fake_log_has(&f.log, "has no lists as streams"));
    sw_reflector_relist(f.reflector);
    advance(&f, 0);
    check_stream_since(&f, "");
    teardown(&f);
}

TEST(a_stream_that_is_asked_to_wait_waits)
{
    struct fixture f;
    prepare(&f);
    start(&f, &streams);
    fake_answer(watch_request(&f), 429, "Retry-After: 7", STATUS("429", "TooManyRequests", ""));
    advance(&f, 6999);
    assert_int_equal(fake_open_count(f.transport), 0);
    advance(&f, 10000);
    check_stream_since(&f, "");
    teardown(&f);
}

TEST(a_stream_from_a_version_too_large_begins_without_one)
{
    struct fixture f;
    struct fake_request *w = streaming(&f);
    fake_body(w, ERROR_EVENT("410", "Expired", ""));
    advance(&f, 0);
    check_stream_since(&f, "10");
    fake_head(watch_request(&f), 200, NULL);
    fake_body(watch_request(&f), ERROR_EVENT("504", "Timeout", TOO_LARGE));
    advance(&f, 10000);
    check_stream_since(&f, "");
    teardown(&f);
}

TEST(a_cluster_that_went_back_is_noticed_in_a_stream)
{
    struct fixture f;
    struct fake_request *w = streaming(&f);
    fake_body(w, EVENT("MODIFIED", "a", "20", "2"));
    check_changes(&f, "~a=2 ");
    for (int i = 0; i < 2; i++) {
        sw_reflector_relist(f.reflector);
        advance(&f, 10000);
        check_stream_since(&f, "");
        fake_head(watch_request(&f), 200, NULL);
        fake_body(watch_request(&f), EVENT("ADDED", "a", "15", "3") MARK("16"));
        advance(&f, 0);
        check_changes(&f, i == 0 ? "" : "~a=3 ");
    }
    teardown(&f);
}

TEST(a_reflector_may_be_freed_at_the_mark)
{
    for (int when = 0; when < 2; when++) {
        struct fixture f;
        prepare(&f);
        f.frees_when_listed = when == 0;
        f.frees_at_change = when == 1;
        start(&f, &streams);
        fake_head(watch_request(&f), 200, NULL);
        fake_body(watch_request(&f), EVENT("ADDED", "a", "5", "1") EVENT("ADDED", "b", "6", "1")
                                         MARK("10") EVENT("ADDED", "c", "11", "1"));
        assert_null(f.reflector);
        assert_int_equal(fake_open_count(f.transport), 0);
        teardown(&f);
    }
}

TEST(a_reflector_may_be_freed_before_the_mark)
{
    struct fixture f;
    prepare(&f);
    start(&f, &streams);
    fake_head(watch_request(&f), 200, NULL);
    fake_body(watch_request(&f), EVENT("ADDED", "a", "5", "1"));
    f.reflector = sw_reflector_free(f.reflector);
    assert_int_equal(sw_store_size(f.store), 0);
    assert_int_equal(fake_open_count(f.transport), 0);
    teardown(&f);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("reflector", lists_in_pages_and_watches_from_the_first_pages_version),
        CASE("reflector", scopes_and_selectors_are_asked_for),
        CASE("reflector", an_ended_watch_resumes_from_the_last_event),
        CASE("reflector", bookmarks_move_the_version_and_nothing_else),
        CASE("reflector", a_watch_that_ends_at_once_is_a_failure),
        CASE("reflector", a_broken_watch_goes_on_from_the_last_event_after_a_back_off),
        CASE("reflector", bytes_one_by_one_make_the_same_state),
        CASE("reflector", a_list_cut_anywhere_is_not_applied),
        CASE("reflector", a_watch_cut_anywhere_goes_on_where_it_was),
        CASE("reflector", a_410_relists_whether_in_the_head_or_in_the_stream),
        CASE("reflector", versions_that_expire_again_and_again_are_no_hot_loop),
        CASE("reflector", a_410_on_a_later_page_throws_the_list_away),
        CASE("reflector", a_version_that_is_too_large_is_dropped),
        CASE("reflector", a_list_since_an_expired_version_is_done_without_one),
        CASE("reflector", a_namesake_is_a_deletion_and_an_addition),
        CASE("reflector", a_stale_replica_does_not_take_the_store_back),
        CASE("reflector", a_list_in_one_piece_that_breaks_off_is_read_in_pages),
        CASE("reflector", a_restored_cluster_is_begun_anew),
        CASE("reflector", one_answer_that_goes_back_is_not_believed),
        CASE("reflector", what_is_seen_during_a_list_may_be_newer),
        CASE("reflector", errors_of_the_server_are_waited_out),
        CASE("reflector", retry_after_of_a_list_is_waited_for),
        CASE("reflector", what_nobody_understands_leads_to_a_list),
        CASE("reflector", missing_permissions_are_named),
        CASE("reflector", a_page_of_html_is_no_list),
        CASE("reflector", rubbish_in_a_watch_is_waited_out),
        CASE("reflector", a_bad_object_stays_as_it_was_or_is_left_out_and_the_rest_goes_on),
        CASE("reflector", everything_gone_is_applied_and_said),
        CASE("reflector", an_optional_kind_may_be_absent),
        CASE("reflector", a_kind_that_vanishes_takes_its_objects_along_after_a_second_look),
        CASE("reflector", a_needed_kind_is_asked_for_until_it_is_there),
        CASE("reflector", a_watch_beyond_its_time_is_given_up),
        CASE("reflector", a_short_watch_is_given_up_as_soon),
        CASE("reflector", three_bookmarks_that_do_not_come_are_death),
        CASE("reflector", frequent_bookmarks_make_nobody_nervous),
        CASE("reflector", a_dead_server_is_probed_once_for_all_kinds),
        CASE("reflector", a_probe_that_meets_nonsense_makes_way),
        CASE("reflector", a_requested_list_is_consistent_and_loses_no_event),
        CASE("reflector", a_request_during_a_list_is_met_by_the_next_one),
        CASE("reflector", a_request_from_a_change_is_met_too),
        CASE("reflector", a_request_outlives_failures),
        CASE("reflector", answers_to_our_own_writes_may_be_ahead_of_the_watch),
        CASE("reflector", an_answer_during_a_list_survives_it),
        CASE("reflector", may_be_freed_by_a_change_from_a_watch),
        CASE("reflector", may_be_freed_by_a_change_from_a_list_or_by_the_list_itself),
        CASE("reflector", may_be_freed_in_every_state),
        CASE("reflector", the_age_is_that_of_the_last_byte),
        CASE("reflector", a_list_may_come_as_a_stream_that_goes_on),
        CASE("reflector", a_stream_of_nothing_is_an_empty_list),
        CASE("reflector", deletions_that_were_missed_are_found_at_the_mark),
        CASE("reflector", a_bad_object_of_a_stream_keeps_what_is_known),
        CASE("reflector", a_consistent_list_may_be_a_stream),
        CASE("reflector", a_server_that_refuses_streams_is_asked_for_pages),
        CASE("reflector", a_server_that_gives_up_in_the_stream_is_asked_for_pages),
        CASE("reflector", a_server_that_never_marks_the_end_is_asked_for_pages),
        CASE("reflector", a_server_that_goes_on_without_a_mark_is_asked_for_pages),
        CASE("reflector", streams_that_are_dropped_give_way_to_pages),
        CASE("reflector", a_stream_that_is_asked_to_wait_waits),
        CASE("reflector", a_stream_from_a_version_too_large_begins_without_one),
        CASE("reflector", a_cluster_that_went_back_is_noticed_in_a_stream),
        CASE("reflector", a_reflector_may_be_freed_at_the_mark),
        CASE("reflector", a_reflector_may_be_freed_before_the_mark),
    };
    return RUN(tests);
}
