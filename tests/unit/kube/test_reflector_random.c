/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reflector against an API server in memory that changes objects, forgets old versions, fails
 * and breaks off at random, from a seed.
 *
 * All the while: every change that is delivered follows from the one before (nothing is added
 * twice, modified or deleted without being there), shows a state that the object really had, and
 * never an older one than before; a list that was asked for shows everything from before the
 * asking. In the end, when the server is well again: the store is the server's state.
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
#include "kube/store.h"

#include "fake_transport.h"
#include "test.h"

enum {
    NAMES = 6,
    EVENTS_MAX = 4000,
    STEPS = 400,
    STREAMS_MAX = 4000,
};

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

/* What happened at version at + 1. */
struct event {
    char type; /* + ~ - */
    int name;
    unsigned uid;
};

struct world {
    uint64_t seed;
    struct sw_loop *dice; /* random numbers of the server alone */
    struct sw_loop *loop;
    struct fake_transport *transport;
    struct sw_metrics *metrics;
    struct fake_log log;
    struct sw_client *client;
    struct sw_intern *intern;
    struct sw_decoder *decoder;
    struct sw_store *store;
    struct sw_reflector *reflector;

    struct event events[EVENTS_MAX];
    unsigned version;   /* of the newest event */
    unsigned compacted; /* versions before it are forgotten */
    unsigned uids;
    unsigned told[STREAMS_MAX]; /* to the watch of that request: up to this version */
    bool is_dead[STREAMS_MAX];  /* the network swallows it */

    unsigned seen_uid[NAMES]; /* by the changes; 0: not there */
    unsigned seen_version[NAMES];
    bool is_asked;
    unsigned asked_version;
    unsigned consistent, changes;
};

static unsigned roll(struct world *w, unsigned sides)
{
    return (unsigned)sw_random_between(w->dice, 0, sides - 1);
}

/* ---- what was when ---- */

/* The last event of the name up to a version, or 0. */
static unsigned last_event(const struct world *w, int name, unsigned version)
{
    for (unsigned v = version; v > 0; v--) {
        if (w->events[v - 1].name == name) {
            return v;
        }
    }
    return 0;
}

static bool exists_at(const struct world *w, int name, unsigned version)
{
    unsigned v = last_event(w, name, version);
    return v && w->events[v - 1].type != '-';
}

static void happen(struct world *w, char type, int name, unsigned uid)
{
    sw_assert(w->version < EVENTS_MAX);
    w->events[w->version++] = (struct event){type, name, uid};
}

static void change_something(struct world *w)
{
    int name = (int)roll(w, NAMES);
    unsigned v = last_event(w, name, w->version);
    if (!exists_at(w, name, w->version)) {
        happen(w, '+', name, ++w->uids);
    } else if (roll(w, 3)) {
        happen(w, '~', name, w->events[v - 1].uid);
    } else {
        happen(w, '-', name, w->events[v - 1].uid);
        if (roll(w, 2)) {
            happen(w, '+', name, ++w->uids); /* a namesake, at once */
        }
    }
}

/* ---- what the client sees ---- */

static void object_text(struct sw_buf *out, int name, unsigned uid, unsigned version)
{
    sw_buf_printf(out,
                  "{\"metadata\":{\"name\":\"x%d\",\"namespace\":\"n\",\"uid\":\"%u\","
                  "\"resourceVersion\":\"%u\"},\"spec\":{\"value\":%u}}",
                  name, uid, version, version);
}

static void event_text(const struct world *w, struct sw_buf *out, unsigned version)
{
    const struct event *e = &w->events[version - 1];
    const char *type = e->type == '+' ? "ADDED" : e->type == '~' ? "MODIFIED" : "DELETED";
    sw_buf_printf(out, "{\"type\":\"%s\",\"object\":", type);
    object_text(out, e->name, e->uid, version);
    sw_buf_puts(out, "}\n");
}

static void fail_with(struct world *w, const char *what, int name)
{
    fail_msg("seed %llu: x%d: %s", (unsigned long long)w->seed, name, what);
}

static void on_change(void *arg, const struct sw_change *change)
{
    struct world *w = arg;
    const struct sw_object *o = change->now ? change->now : change->old;
    int name = o->name[1] - '0';
    unsigned uid = (unsigned)strtoul(o->uid, NULL, 10);
    unsigned version = (unsigned)strtoul(o->resource_version, NULL, 10);
    unsigned *seen_uid = &w->seen_uid[name];
    w->changes++;
    if (w->events[version - 1].name != name || w->events[version - 1].uid != uid) {
        fail_with(w, "a state it never had", name);
    }
    switch (change->type) {
    case SW_CHANGE_ADDED:
        if (*seen_uid) {
            fail_with(w, "added though it is there", name);
        }
        break;
    case SW_CHANGE_MODIFIED:
        if (*seen_uid != uid) {
            fail_with(w, "modified though it is not there", name);
        }
        break;
    case SW_CHANGE_DELETED:
        if (*seen_uid != uid) {
            fail_with(w, "deleted though it is not there", name);
        }
        *seen_uid = 0;
        return;
    }
    if (version <= w->seen_version[name]) {
        fail_with(w, "older than before", name);
    }
    *seen_uid = uid;
    w->seen_version[name] = version;
}

static void on_listed(void *arg, bool is_consistent)
{
    struct world *w = arg;
    if (!is_consistent) {
        return;
    }
    w->consistent++;
    for (int name = 0; w->is_asked && name < NAMES; name++) {
        unsigned v = last_event(w, name, w->asked_version);
        if (w->seen_uid[name]) {
            if (w->seen_version[name] < v) {
                fail_with(w, "older than when the list was asked for", name);
            }
        } else if (exists_at(w, name, w->asked_version) && last_event(w, name, w->version) == v) {
            fail_with(w, "not in the list that was asked for", name);
        }
    }
    w->is_asked = false;
}

/* ---- the server ---- */

/* Sends it in pieces; false if the request is not open any more. */
static bool pieces(struct world *w, struct fake_request *r, const char *text, size_t len)
{
    while (len > 0 && r->is_open) {
        size_t piece = 1 + roll(w, roll(w, 4) ? 400 : 3);
        piece = SW_MIN(piece, len);
        SW_AUTO(char, sw_free) part = sw_strndup(text, piece);
        fake_body(r, part);
        text += piece;
        len -= piece;
    }
    return r->is_open;
}

static const char status_text[] =
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"no\","
    "\"reason\":\"x\",\"code\":%d%s}";
static const char too_large[] =
    ",\"details\":{\"causes\":[{\"reason\":\"ResourceVersionTooLarge\"}],\"retryAfterSeconds\":1}";

static void refuse(struct fake_request *r, int status, const char *more)
{
    char body[512];
    snprintf(body, sizeof(body), status_text, status, more);
    fake_answer(r, status, status == 429 ? "Retry-After: 1" : NULL, body);
}

/* True if the request met one of the accidents that happen to all of them. */
static bool has_accident(struct world *w, struct fake_request *r)
{
    static const int statuses[] = {500, 503, 429, 504, 401, 400, 502};
    switch (roll(w, 30)) {
    case 0:
        fake_break(r, -ECONNREFUSED);
        return true;
    case 1:
        refuse(r, statuses[roll(w, SW_ARRAY_SIZE(statuses))], "");
        return true;
    case 2:
        refuse(r, 504, too_large);
        return true;
    case 3:
        fake_answer(r, 200, NULL, "<html>welcome</html>");
        return true;
    case 4:
        refuse(r, 410, "");
        return true;
    case 5:
        w->is_dead[r->number] = true;
        return true;
    default:
        return false;
    }
}

/* Two objects a page; the token is "version:next name". */
static void answer_list(struct world *w, struct fake_request *r, bool is_well)
{
    unsigned version = w->version;
    unsigned first = 0;
    bool is_paged = fake_query(r, "limit")[0];
    const char *token = fake_query(r, "continue");
    if (*token) {
        assert_int_equal(sscanf(token, "%u:%u", &version, &first), 2);
    }
    if (*token && version < w->compacted) {
        refuse(r, 410, "");
        return;
    }
    struct sw_buf text;
    sw_buf_init(&text, SIZE_MAX);
    sw_buf_puts(&text, "{\"kind\":\"ThingList\",\"items\":[");
    unsigned count = 0;
    unsigned at = first;
    for (; at < NAMES && (!is_paged || count < 2); at++) {
        if (exists_at(w, (int)at, version)) {
            unsigned v = last_event(w, (int)at, version);
            sw_buf_puts(&text, count++ ? "," : "");
            object_text(&text, (int)at, w->events[v - 1].uid, v);
        }
    }
    sw_buf_printf(&text, "],\"metadata\":{\"resourceVersion\":\"%u\"", version);
    if (at < NAMES) {
        sw_buf_printf(&text, ",\"continue\":\"%u:%u\"", version, at);
    }
    sw_buf_puts(&text, "}}");
    size_t len = is_well || roll(w, 10) ? text.len : roll(w, (unsigned)text.len);
    fake_head(r, 200, NULL);
    if (pieces(w, r, text.bytes, len)) {
        fake_end(r, len == text.len ? 0 : SW_E_TRUNCATED);
    }
    sw_buf_done(&text);
    sw_loop_virtual_advance(w->loop, 0);
}

static void go_on_with_watch(struct world *w, struct fake_request *r, bool is_well)
{
    unsigned *told = &w->told[r->number];
    struct sw_buf text;
    sw_buf_init(&text, SIZE_MAX);
    if (!*told) {
        *told = (unsigned)strtoul(fake_query(r, "resourceVersion"), NULL, 10);
        assert_true(*told > 0 && *told <= w->version);
        if (*told < w->compacted && roll(w, 2)) {
            refuse(r, 410, "");
            sw_buf_done(&text);
            return;
        }
        fake_head(r, 200, NULL);
    }
    if (*told < w->compacted) {
        sw_buf_puts(&text, "{\"type\":\"ERROR\",\"object\":");
        sw_buf_printf(&text, status_text, 410, "");
        sw_buf_puts(&text, "}");
    } else {
        while (*told < w->version && (is_well || roll(w, 8))) {
            event_text(w, &text, ++*told);
        }
        if (*told == w->version && !roll(w, 4)) {
            sw_buf_printf(&text,
                          "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Thing\",\"metadata\":{"
                          "\"resourceVersion\":\"%u\"}}}\n",
                          *told);
        }
    }
    bool is_cut = !is_well && !roll(w, 12);
    size_t len = is_cut ? roll(w, (unsigned)text.len + 1) : text.len;
    bool is_open = pieces(w, r, text.bytes, len);
    sw_buf_done(&text);
    if (is_open && is_cut) {
        fake_break(r, SW_E_TRUNCATED);
    } else if (is_open && !is_well && !roll(w, 25)) {
        fake_break(r, 0);
    } else if (is_open && !is_well && !roll(w, 40)) {
        char event[600];
        char status[512];
        snprintf(status, sizeof(status), status_text, roll(w, 2) ? 500 : 429, "");
        snprintf(event, sizeof(event), "{\"type\":\"ERROR\",\"object\":%s}", status);
        fake_body(r, event);
    }
    sw_loop_virtual_advance(w->loop, 0);
}

static void serve(struct world *w, bool is_well)
{
    for (unsigned i = 0; i < w->transport->count; i++) {
        struct fake_request *r = w->transport->requests[i];
        if (!r->is_open) {
            continue;
        }
        bool is_watch = strstr(r->target, "watch=true");
        bool is_timed_out =
            r->total_timeout_ms && sw_now_ms(w->loop) - r->sent_ms >= r->total_timeout_ms;
        if (w->is_dead[i]) {
            if (is_timed_out) {
                fake_break(r, -ETIMEDOUT);
            }
            continue;
        }
        if (!is_well && (!is_watch || !w->told[i]) && has_accident(w, r)) {
            continue;
        }
        if (is_watch) {
            go_on_with_watch(w, r, is_well);
        } else {
            answer_list(w, r, is_well);
        }
    }
}

/* One of our own writes is answered: its object is newer than what the watch has told. */
static void write_ourselves(struct world *w)
{
    int name = (int)roll(w, NAMES);
    if (!exists_at(w, name, w->version)) {
        return;
    }
    unsigned uid = w->events[last_event(w, name, w->version) - 1].uid;
    happen(w, '~', name, uid);
    struct sw_buf text;
    sw_buf_init(&text, SIZE_MAX);
    object_text(&text, name, uid, w->version);
    struct sw_object *object;
    assert_int_equal(sw_decode_object(w->decoder, text.bytes, text.len, NULL, &object, NULL), 0);
    sw_store_put_take(w->store, object);
    sw_buf_done(&text);
}

/* ---- a life ---- */

static void world_init(struct world *w, uint64_t seed)
{
    static const struct sw_reflector_options options = {.kind = &things, .watch_seconds = 60};
    memset(w, 0, sizeof(*w));
    w->seed = seed;
    w->dice = sw_loop_virtual_new(0, seed);
    w->loop = sw_loop_virtual_new(0, seed);
    w->transport = fake_transport_new(w->loop);
    w->metrics = sw_metrics_new();
    fake_log_init(&w->log, w->loop);
    w->client = sw_client_new(w->loop, &w->transport->base, NULL, w->metrics, &w->log.log);
    w->intern = sw_intern_new();
    w->decoder = sw_decoder_new(&things, w->intern);
    w->store = sw_store_new(w->loop, w->decoder, on_change, w);
    for (int i = 0; i < 3; i++) {
        change_something(w);
    }
    w->reflector = sw_reflector_new(w->loop, w->client, w->decoder, w->store, &options, w->metrics,
                                    &w->log.log, on_listed, w);
}

static void world_done(struct world *w)
{
    sw_reflector_free(w->reflector);
    sw_store_free(w->store);
    sw_decoder_free(w->decoder);
    sw_intern_free(w->intern);
    sw_client_free(w->client);
    fake_transport_free(w->transport);
    sw_metrics_free(w->metrics);
    fake_log_done(&w->log);
    assert_int_equal(sw_loop_close(w->loop), 0);
    assert_int_equal(sw_loop_close(w->dice), 0);
}

static void live(struct world *w)
{
    for (int i = 0; i < STEPS; i++) {
        for (unsigned n = roll(w, 4); n > 0; n--) {
            change_something(w);
        }
        if (!roll(w, 20)) {
            w->compacted = w->version - roll(w, SW_MIN(w->version, 10u));
        }
        if (!roll(w, 15)) {
            write_ourselves(w);
        }
        if (!roll(w, 30)) {
            w->is_asked = true;
            w->asked_version = w->version;
            sw_reflector_relist(w->reflector);
        }
        sw_loop_virtual_advance(w->loop, roll(w, roll(w, 10) ? 2000 : 40000));
        serve(w, false);
    }
}

static bool is_equal(const struct world *w)
{
    for (int name = 0; name < NAMES; name++) {
        unsigned v = last_event(w, name, w->version);
        unsigned uid = exists_at(w, name, w->version) ? w->events[v - 1].uid : 0;
        if (w->seen_uid[name] != uid || (uid && w->seen_version[name] != v)) {
            return false;
        }
    }
    return true;
}

/* The server is well again: ten minutes are enough for whatever was under way. */
static void recover(struct world *w)
{
    for (int i = 0; i < 600; i++) {
        sw_loop_virtual_advance(w->loop, 1000);
        serve(w, true);
    }
    if (!is_equal(w)) {
        fail_msg("seed %llu: the store is not what the server has", (unsigned long long)w->seed);
    }
    if (w->is_asked) {
        fail_msg("seed %llu: the list that was asked for never came", (unsigned long long)w->seed);
    }
}

TEST(whatever_happens_the_store_becomes_the_cluster)
{
    static struct world w;
    unsigned changes = 0;
    unsigned consistent = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        world_init(&w, seed);
        live(&w);
        recover(&w);
        changes += w.changes;
        consistent += w.consistent;
        world_done(&w);
    }
    assert_true(changes > 30000); /* else nothing much was tried */
    assert_true(consistent > 1500);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("reflector", whatever_happens_the_store_becomes_the_cluster),
    };
    return RUN(tests);
}
