/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reflector: one list or one watch at a time, and what lies between.
 *
 *   state      what happens                          next
 *   WAITING    a back-off of our own runs, or the    begin()
 *              short jitter before a watch resumes,
 *              or 30 s until an absent kind is
 *              asked for again
 *   GATED      the server is down; the gate that     begin()
 *              all kinds share lets us through
 *   LISTING    pages are read into the store's       LISTING the next page; WATCHING after the
 * last; other side, then it is replaced       LISTING anew where somebody asked meanwhile; else by
 * sw_stream_judge STREAMING  the same, from a watch that begins    WATCHING at the mark, on the
 * same stream; else with all there is                     by sw_stream_judge, LISTING among it
 *   WATCHING   events are applied                    LISTING or STREAMING when somebody asks; else
 * by sw_stream_judge
 *
 * begin(): LISTING (or STREAMING) if a list is due or no version is known, else WATCHING from the
 * version. The
 * version is that of the last event applied, of the last bookmark, or of the list. The store and
 * the version survive everything but 410 (of a list) and "version too large", which drop the
 * version. reflector_rules.c says what follows from which end.
 *
 * Callbacks of the store and of the owner may free the reflector: `depth` counts how deep we are in
 * them, and the memory goes when the last one has returned.
 */
#include "kube/reflector.h"

#include <slipway/kind.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/metrics.h"
#include "base/util.h"
#include "kube/decode.h"
#include "kube/reflector_internal.h"
#include "kube/store.h"
#include "net/url.h"

enum {
    PAGE_SIZE = 500,
    WATCH_SECONDS = 300,
    /* An API server that cannot watch a kind at the moment (its conversion webhook is down, say)
     * may be able to list it. */
    WATCH_FAILURES_MAX = 3,
};

#define SILENCE_MS UINT64_C(75000)
#define ALIVE_MS UINT64_C(1000)
#define RESUME_JITTER_MS UINT64_C(100)
#define LAGGING_MS UINT64_C(1000) /* what the API server itself suggests with "too large" */
#define ABSENT_MS UINT64_C(30000)
#define REFUSED_FIRST_MS UINT64_C(1000) /* RBAC may be on its way, applied together with us */
#define REFUSED_LIMIT_MS UINT64_C(120000)

/* ---- small things ---- */

void sw_reflector_set_text(char **to, const char *text)
{
    if (strcmp(*to, text) != 0) {
        sw_free(*to);
        *to = sw_strdup(text);
    }
}

void sw_reflector_set_version(struct sw_reflector *r, const char *version)
{
    bool is_known;
    bool is_older = sw_version_compare(version, r->newest, &is_known) < 0 && is_known;
    sw_reflector_set_text(&r->version, version);
    if (version[0] && !is_older) {
        sw_reflector_set_text(&r->newest, version);
    }
}

void sw_reflector_note_bad(struct sw_reflector *r, const struct sw_error *error)
{
    sw_metric_add(r->bad_objects, 1);
    sw_log_warn(&r->log, "object cannot be read, leaving it out", SW_STR("kind", r->kind_name),
                SW_STR("why", error ? error->text : ""));
}

/* Drops what is under way. Not from within a reader. */
static void stop_stream(struct sw_reflector *r)
{
    if (r->stream) {
        sw_client_stream_call_cancel(sw_steal(&r->stream));
    }
    sw_timer_stop(&r->dead_man);
    r->list = sw_list_reader_free(r->list);
    r->frames = sw_frame_reader_free(r->frames);
}

static void destroy(struct sw_reflector *r)
{
    stop_stream(r);
    sw_free(r->kind_name);
    sw_free(r->path);
    sw_free(r->selectors);
    sw_free(r->lane);
    sw_free(r->version);
    sw_free(r->newest);
    sw_free(r->list_floor);
    sw_free(r->list_version);
    sw_free(r->list_continue);
    sw_free(r);
}

/* After a call that may have freed the reflector: true if it is gone. */
bool sw_reflector_leave(struct sw_reflector *r)
{
    r->depth--;
    if (r->is_freed && r->depth == 0) {
        destroy(r);
        return true;
    }
    return r->is_freed;
}

/* ---- what comes next ---- */

static void wait(struct sw_reflector *r, uint64_t ms)
{
    r->state = SW_REFLECTOR_WAITING;
    sw_timer_start(&r->timer, ms);
}

static void go(struct sw_reflector *r)
{
    if (sw_gate_enter(sw_client_gate(r->client), &r->pass)) {
        sw_reflector_begin(r);
    } else {
        r->state = SW_REFLECTOR_GATED;
    }
}

static void on_timer(struct sw_timer *timer)
{
    go(container_of(timer, struct sw_reflector, timer));
}

static void on_pass(struct sw_gate_pass *pass)
{
    sw_reflector_begin(container_of(pass, struct sw_reflector, pass));
}

static void want_list(struct sw_reflector *r, const char *reason)
{
    r->wants_list = true;
    r->reason = reason;
}

static void forget_version(struct sw_reflector *r)
{
    sw_reflector_set_version(r, "");
}

/* The kind is not served: empty, and asked for again later. A proxy's 404 must not pass for one, so
 * what is there goes only at the second. The last thing the caller does. */
static void absent(struct sw_reflector *r)
{
    bool is_sure = r->is_absent || sw_store_size(r->store) == 0;
    bool is_news = !r->is_synced || r->is_asked;
    bool is_consistent = !r->is_asked_again;
    if (!r->is_absent) {
        sw_log_info(&r->log, "kind is not served, waiting for it", SW_STR("kind", r->kind_name));
    }
    r->is_absent = true;
    r->last_byte_ms = sw_now_ms(r->loop);
    want_list(r, "absent");
    forget_version(r);
    if (is_sure) {
        r->is_synced = true;
        r->is_asked = false;
    }
    r->is_asked = r->is_asked || r->is_asked_again;
    r->is_asked_again = false;
    wait(r, r->is_asked && is_sure ? RESUME_JITTER_MS : ABSENT_MS);
    if (!is_sure) {
        return;
    }
    r->depth++;
    if (sw_store_size(r->store) > 0) {
        sw_store_replace_begin(r->store);
        sw_store_replace_commit(r->store, "");
    }
    if (!r->is_freed && is_news) {
        r->fn(r->arg, is_consistent);
    }
    sw_reflector_leave(r);
}

static void expired(struct sw_reflector *r, bool is_lagging, uint64_t retry_after_ms)
{
    want_list(r, is_lagging ? "too_large" : "expired");
    if (r->expirations++ > 0) {
        wait(r, sw_backoff_fail(&r->backoff, r->loop, retry_after_ms));
    } else if (is_lagging) {
        wait(r, LAGGING_MS + sw_random_between(r->loop, 0, LAGGING_MS));
    } else {
        go(r);
    }
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static void say_why(struct sw_reflector *r, const struct sw_stream_end *end,
                    enum sw_stream_next next)
{
    const char *what = end->is_list ? "list failed" : "watch lost";
    const char *message = or_empty(end->message);
    const char *audit_id = or_empty(end->audit_id);
    if (next == SW_NEXT_LIST_PAGED) {
        sw_log_debug(&r->log, "no list as a stream", SW_STR("kind", r->kind_name),
                     SW_INT("status", end->status), SW_STR("message", message));
    } else if (next == SW_NEXT_RESUME) {
        sw_log_debug(&r->log, "watch ended, resuming", SW_STR("kind", r->kind_name));
    } else if (next == SW_NEXT_REFUSED) {
        sw_log_error(&r->log,
                     "not allowed to read a kind: it needs the verbs list and watch, trying again",
                     SW_STR("kind", r->kind_name), SW_INT("status", end->status),
                     SW_STR("message", message), SW_STR("auditID", audit_id));
    } else if (end->code) {
        sw_log_warn(&r->log, what, SW_STR("next", sw_stream_next_name(next)),
                    SW_STR("kind", r->kind_name), SW_ERR(end->code), SW_STR("message", message));
    } else if (end->status == 429) {
        sw_log_warn(
            &r->log, what, SW_STR("next", sw_stream_next_name(next)), SW_STR("kind", r->kind_name),
            SW_INT("status", end->status), SW_MS("retryAfter", end->retry_after_ms),
            SW_STR("flowSchemaUID", or_empty(end->flow_schema)),
            SW_STR("priorityLevelUID", or_empty(end->priority_level)), SW_STR("auditID", audit_id));
    } else {
        sw_log_warn(&r->log, what, SW_STR("next", sw_stream_next_name(next)),
                    SW_STR("kind", r->kind_name), SW_INT("status", end->status),
                    SW_STR("message", message), SW_STR("auditID", audit_id));
    }
}

/* A list or a watch has ended, by itself or because we gave up on it. The last thing the caller
 * does. */
void sw_reflector_ended(struct sw_reflector *r, const struct sw_stream_end *end)
{
    enum sw_stream_next next = sw_stream_judge(end);
    uint64_t retry_after_ms = end->retry_after_ms;
    if (next == SW_NEXT_ABSENT && !r->is_optional) {
        next = SW_NEXT_AGAIN;
    }
    if (next != SW_NEXT_ABSENT) {
        say_why(r, end, next);
    }
    stop_stream(r);
    if (end->is_list) {
        sw_store_replace_abort(r->store);
        if (end->code && r->has_bytes && !r->is_fresh && !end->is_streamed) {
            /* A list in one piece may be too long for the minute that the server gives it, again
             * and again: the next one comes in pages. */
            forget_version(r);
        }
        r->reason = "failed";
        if (end->is_streamed) {
            sw_reflector_fall_back(r, end, next);
        }
        if (next != SW_NEXT_ABSENT) {
            r->is_asked = r->is_asked || r->is_asked_again;
            r->is_asked_again = false;
        }
    } else if (next != SW_NEXT_RESUME && ++r->watch_failures >= WATCH_FAILURES_MAX) {
        want_list(r, "failed");
    }
    switch (next) {
    case SW_NEXT_RESUME:
        r->expirations = 0;
        r->watch_failures = 0;
        wait(r, sw_random_between(r->loop, 0, RESUME_JITTER_MS));
        break;
    case SW_NEXT_AGAIN_GATED:
        sw_gate_fail(sw_client_gate(r->client), &r->pass, retry_after_ms);
        go(r);
        break;
    case SW_NEXT_REFUSED:
        wait(r, sw_backoff_fail(&r->refusals, r->loop, retry_after_ms));
        break;
    case SW_NEXT_LIST_PAGED:
        go(r);
        break;
    case SW_NEXT_LIST:
        expired(r, false, retry_after_ms);
        break;
    case SW_NEXT_LIST_FRESH:
        forget_version(r);
        expired(r, end->is_version_too_large, retry_after_ms);
        break;
    case SW_NEXT_LIST_LATER:
        if (end->is_list) {
            forget_version(r);
        }
        want_list(r, "failed");
        wait(r, sw_backoff_fail(&r->backoff, r->loop, retry_after_ms));
        break;
    case SW_NEXT_ABSENT:
        absent(r);
        break;
    case SW_NEXT_AGAIN:
        wait(r, sw_backoff_fail(&r->backoff, r->loop, retry_after_ms));
        break;
    }
}

/* ---- what lists and watches share ---- */

void sw_reflector_on_open(void *arg, int status)
{
    struct sw_reflector *r = arg;
    if (status != 429 && status != 503) {
        sw_gate_succeed(sw_client_gate(r->client));
    }
    if (status == 200) {
        r->is_answered = true;
        r->last_byte_ms = sw_now_ms(r->loop);
        sw_backoff_succeed(&r->backoff, r->loop);
        sw_backoff_succeed(&r->refusals, r->loop);
    }
}

/* The transport's end of a stream that did not end in order. */
void sw_reflector_broke_off(struct sw_reflector *r, bool is_list,
                            const struct sw_stream_reply *reply)
{
    const struct sw_status_view *why = &reply->why;
    struct sw_stream_end end = {
        .is_list = is_list,
        .is_streamed = r->state == SW_REFLECTOR_STREAMING,
        .code = reply->code,
        .status = reply->status,
        .is_version_too_large = !reply->code && why->is_version_too_large,
        .was_alive = r->had_event || sw_now_ms(r->loop) - r->watch_began_ms >= ALIVE_MS,
        .retry_after_ms = reply->retry_after_ms,
        .message = reply->code ? reply->error->text : why->message,
        .audit_id = reply->audit_id,
        .flow_schema = reply->flow_schema,
        .priority_level = reply->priority_level,
    };
    /* A 401 may come without on_open, and so may nonsense. Whoever was let through as the probe
     * must say how it went, or nobody passes any more. */
    if (sw_stream_judge(&end) != SW_NEXT_AGAIN_GATED) {
        sw_gate_succeed(sw_client_gate(r->client));
    }
    if (!reply->code && !end.retry_after_ms) {
        end.retry_after_ms = (uint64_t)SW_MAX(why->retry_after_seconds, 0) * 1000;
    }
    sw_reflector_ended(r, &end);
}

void sw_reflector_open_stream(struct sw_reflector *r,
                              const struct sw_client_stream_options *options,
                              const struct sw_client_stream_events *events)
{
    int rc = sw_client_stream(r->client, options, events, r, &r->stream);
    if (rc) {
        struct sw_stream_end end = {
            .is_list = r->state != SW_REFLECTOR_WATCHING,
            .is_streamed = r->state == SW_REFLECTOR_STREAMING,
            .code = rc,
            .message = sw_strerror(rc),
        };
        sw_reflector_ended(r, &end);
    }
}

void sw_reflector_begin(struct sw_reflector *r)
{
    if (r->wants_list || r->is_asked || !r->version[0]) {
        sw_reflector_start_list(r);
    } else {
        sw_reflector_start_watch(r);
    }
}

/* ---- from outside ---- */

/* A watch that is well makes way; everything else finds the wish when it begins anew. */
static void on_relist(struct sw_defer *defer)
{
    struct sw_reflector *r = container_of(defer, struct sw_reflector, relist);
    if (r->state == SW_REFLECTOR_WATCHING) {
        stop_stream(r);
        sw_reflector_begin(r);
    } else if (r->state == SW_REFLECTOR_WAITING && r->is_absent) {
        sw_timer_stop(&r->timer);
        go(r);
    }
}

void sw_reflector_relist(struct sw_reflector *r)
{
    if (r->state == SW_REFLECTOR_LISTING || r->state == SW_REFLECTOR_STREAMING) {
        r->is_asked_again = true;
    } else {
        r->is_asked = true;
        sw_defer_start(&r->relist);
    }
}

bool sw_reflector_is_synced(const struct sw_reflector *r)
{
    return r->is_synced;
}

uint64_t sw_reflector_age_ms(const struct sw_reflector *r)
{
    return sw_now_ms(r->loop) - r->last_byte_ms;
}

/* ---- life ---- */

static void on_collect(void *arg)
{
    struct sw_reflector *r = arg;
    sw_metric_set(r->age, (double)sw_reflector_age_ms(r) / 1000.0);
}

static struct sw_metric *by_kind(struct sw_reflector *r, enum sw_metric_type type, const char *name,
                                 const char *help)
{
    static const char *const labels[] = {"kind", NULL};
    const char *const values[] = {r->kind_name};
    return sw_metric_child(sw_metrics_family(r->metrics, type, name, help, labels, NULL, 0),
                           values);
}

static void open_metrics(struct sw_reflector *r)
{
    static const char *const labels[] = {"kind", "reason", NULL};
    r->relists =
        sw_metrics_family(r->metrics, SW_METRIC_COUNTER, "slipway_lists_total",
                          "Lists begun, by kind and by what made them necessary.", labels, NULL, 0);
    r->events = by_kind(r, SW_METRIC_COUNTER, "slipway_watch_events_total",
                        "Events of watches, bookmarks included.");
    r->bad_objects = by_kind(r, SW_METRIC_COUNTER, "slipway_bad_objects_total",
                             "Objects left out because they could not be read.");
    r->objects = by_kind(r, SW_METRIC_GAUGE, "slipway_store_objects", "Objects in the store.");
    r->age = by_kind(r, SW_METRIC_GAUGE, "slipway_watch_age_seconds",
                     "Time since the last byte from the API server about this kind.");
    sw_metrics_on_collect(r->metrics, on_collect, r);
}

static void add_selector(struct sw_buf *out, const char *key, const char *selector)
{
    if (selector && selector[0]) {
        sw_buf_printf(out, "&%s=", key);
        sw_url_encode(out, selector);
    }
}

static void set_scope(struct sw_reflector *r, const struct sw_reflector_options *options)
{
    const struct sw_kind *kind = options->kind;
    struct sw_buf text;
    sw_buf_init(&text, SIZE_MAX);
    r->kind_name = sw_asprintf("%s%s%s", kind->plural, kind->group[0] ? "." : "", kind->group);
    /* Namespaces come from the configuration, which has been checked. */
    sw_assert(sw_client_path(kind, options->namespace_, NULL, NULL, &r->path) == 0);
    add_selector(&text, "labelSelector", options->label_selector);
    add_selector(&text, "fieldSelector", options->field_selector);
    r->selectors = sw_buf_steal(&text);
    sw_buf_done(&text);
    r->lane = sw_asprintf("watch %s%s", r->path, r->selectors);
}

struct sw_reflector *sw_reflector_new(struct sw_loop *loop, struct sw_client *client,
                                      struct sw_decoder *decoder, struct sw_store *store,
                                      const struct sw_reflector_options *options,
                                      struct sw_metrics *metrics, const struct sw_log *log,
                                      sw_reflector_listed_fn fn, void *arg)
{
    struct sw_reflector *r = SW_NEW(struct sw_reflector);
    r->loop = loop;
    r->client = client;
    r->decoder = decoder;
    r->store = store;
    r->metrics = metrics;
    r->log = *log;
    r->log.name = "watch";
    r->fn = fn;
    r->arg = arg;
    r->is_optional = options->is_optional;
    r->streams = options->streams_lists;
    r->page_size = options->page_size ? options->page_size : PAGE_SIZE;
    r->watch_seconds = options->watch_seconds ? options->watch_seconds : WATCH_SECONDS;
    r->silence_ms = options->silence_ms ? options->silence_ms : SILENCE_MS;
    r->version = sw_strdup("");
    r->newest = sw_strdup("");
    r->list_floor = sw_strdup("");
    r->list_version = sw_strdup("");
    r->list_continue = sw_strdup("");
    r->last_byte_ms = sw_now_ms(loop);
    r->backoff = sw_client_backoff(client);
    r->refusals = (struct sw_backoff){.first_ms = REFUSED_FIRST_MS, .limit_ms = REFUSED_LIMIT_MS};
    sw_timer_init(&r->timer, loop, on_timer);
    sw_timer_init(&r->dead_man, loop, sw_reflector_on_dead_man);
    sw_defer_init(&r->relist, loop, on_relist);
    sw_gate_pass_init(&r->pass, on_pass);
    set_scope(r, options);
    open_metrics(r);
    want_list(r, "start");
    wait(r, 0);
    return r;
}

struct sw_reflector *sw_reflector_free(struct sw_reflector *r)
{
    if (!r || r->is_freed) {
        return NULL;
    }
    sw_timer_stop(&r->timer);
    sw_timer_stop(&r->dead_man);
    sw_defer_stop(&r->relist);
    sw_gate_forget(sw_client_gate(r->client), &r->pass);
    sw_metrics_off_collect(r->metrics, on_collect, r);
    if (r->depth == 0) {
        if (r->state == SW_REFLECTOR_LISTING || r->state == SW_REFLECTOR_STREAMING) {
            sw_store_replace_abort(r->store);
        }
        destroy(r);
        return NULL;
    }
    /* From within a callback of the store: what called it goes on with nothing. */
    r->is_freed = true;
    sw_client_stream_call_cancel(sw_steal(&r->stream));
    if (r->frames) {
        sw_frame_reader_stop(r->frames);
    }
    return NULL;
}
