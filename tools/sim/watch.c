/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches. An event is written the moment the store changes, into the buffer of the watch, and
 * goes out in the next turn of the loop, in one piece with the others of that turn.
 *
 *   from             what comes first
 *   ---------------  ----------------------------------------------------------------
 *   no version, "0"  ADDED for each object, then what happens
 *   sendInitial...   the same, and a bookmark that says that they are all there: once the cache
 *                    has reached the version that was asked for, without one what is newest now
 *   version N        what happened behind N; ERROR with 410 where that is not known
 *
 * A label selector makes an object appear (ADDED) and vanish (DELETED) for its watcher.
 * https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
 */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api_internal.h"
#include "base/buf.h"
#include "base/util.h"
#include "value.h"

enum {
    TIMEOUT_MIN_S = 1800, /* --min-request-timeout; the real server adds up to as much again */
};

struct sw_sim_watch {
    struct sw_link link;
    struct sw_sim_call *call;
    struct sw_sim_filter filter;
    struct sw_buf out;
    struct sw_defer flush;
    struct sw_timer timeout, bookmark, mark;
    uint64_t mark_version; /* that the mark waits for */
    uint64_t version;      /* what is not newer has been told */
    bool wants_bookmarks;
    bool has_sent_columns;
    bool ends; /* after what is in the buffer */
    char *scratch;
};

/* ---- events ---- */

static const char *const type_names[] = {"ADDED", "MODIFIED", "DELETED"};

static void write_formed(struct sw_sim_watch *watch, const json_t *document)
{
    struct sw_sim_call *call = watch->call;
    if (call->form == SW_SIM_AS_METADATA) {
        json_t *partial = sw_sim_partial(document);
        sw_sim_dump(&watch->out, partial);
        json_decref(partial);
        return;
    }
    const char *include = sw_sim_query_get(&call->query, "includeObject");
    /* Only the first event says what the columns are. */
    json_t *table = json_pack(
        "{s:s,s:s,s:{s:O},s:o,s:[o]}", "kind", "Table", "apiVersion", "meta.k8s.io/v1", "metadata",
        "resourceVersion", sw_sim_at(document, "metadata.resourceVersion"), "columnDefinitions",
        watch->has_sent_columns ? json_null() : sw_sim_table_columns(call->route.kind), "rows",
        sw_sim_table_row(call->route.kind, document, include ? include : "Metadata",
                         sw_wall_us(call->api->loop)));
    watch->has_sent_columns = true;
    sw_sim_dump(&watch->out, table);
    json_decref(table);
}

static void write_event(struct sw_sim_watch *watch, enum sw_sim_change_type type,
                        const struct sw_sim_object *object)
{
    const struct sw_sim_kind *kind = watch->call->route.kind;
    sw_buf_printf(&watch->out, "{\"type\":\"%s\",\"object\":", type_names[type]);
    if (watch->call->form != SW_SIM_AS_IS) {
        json_t *whole = sw_sim_object_share(object);
        json_t *document = sw_sim_version_json(whole, kind);
        write_formed(watch, document);
        json_decref(document);
        json_decref(whole);
    } else {
        size_t len = 0;
        const char *text = sw_sim_version_text(object, kind, &watch->scratch, &len);
        sw_buf_append(&watch->out, text, len);
    }
    sw_buf_append(&watch->out, "}\n", 2);
    sw_defer_start(&watch->flush);
}

/* An object that no longer fits the selector: its state before, with the version of the change. */
static void write_vanished(struct sw_sim_watch *watch, const struct sw_sim_change *change)
{
    json_t *last = sw_sim_own(sw_sim_object_json(change->before));
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, change->version);
    json_object_set_new(json_object_get(last, "metadata"), "resourceVersion", json_string(text));
    json_t *document = sw_sim_version_json(last, watch->call->route.kind);
    sw_buf_puts(&watch->out, "{\"type\":\"DELETED\",\"object\":");
    if (watch->call->form != SW_SIM_AS_IS) {
        write_formed(watch, document);
    } else {
        sw_sim_dump(&watch->out, document);
    }
    sw_buf_append(&watch->out, "}\n", 2);
    sw_defer_start(&watch->flush);
    json_decref(document);
    json_decref(last);
}

static void write_change(struct sw_sim_watch *watch, const struct sw_sim_change *change)
{
    const char *namespace_ = watch->call->route.namespace_;
    if (change->version <= watch->version ||
        (*namespace_ && strcmp(namespace_, change->object->namespace_) != 0)) {
        return;
    }
    watch->version = change->version;
    if (sw_sim_filter_is_empty(&watch->filter)) {
        write_event(watch, change->type, change->object);
        return;
    }
    bool matches =
        change->type != SW_SIM_DELETED && sw_sim_filter_matches(&watch->filter, change->object);
    bool matched = change->before && sw_sim_filter_matches(&watch->filter, change->before);
    if (matches) {
        write_event(watch, matched ? SW_SIM_MODIFIED : SW_SIM_ADDED, change->object);
    } else if (matched && change->type == SW_SIM_DELETED) {
        write_event(watch, SW_SIM_DELETED, change->object);
    } else if (matched) {
        write_vanished(watch, change);
    }
}

static uint64_t known_version(const struct sw_sim_watch *watch)
{
    const struct sw_sim_call *call = watch->call;
    return call->cache ? sw_sim_cache_version(call->cache) : sw_sim_store_version(call->api->store);
}

static void write_bookmark(struct sw_sim_watch *watch, bool ends_initial)
{
    const struct sw_sim_kind *kind = watch->call->route.kind;
    uint64_t version = known_version(watch);
    if (version < watch->version) {
        return; /* a server that is behind has nothing to say yet */
    }
    sw_buf_printf(&watch->out,
                  "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"%s\",\"apiVersion\":\"%s%s%s\","
                  "\"metadata\":{\"resourceVersion\":\"%" PRIu64 "\",\"creationTimestamp\":null%s}}"
                  "}\n",
                  kind->kind, kind->group, *kind->group ? "/" : "", kind->version, version,
                  ends_initial ? ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}" : "");
    sw_defer_start(&watch->flush);
}

/* The stream ends behind it. */
static void write_error(struct sw_sim_watch *watch, json_t *status)
{
    sw_buf_puts(&watch->out, "{\"type\":\"ERROR\",\"object\":");
    sw_sim_dump(&watch->out, status);
    sw_buf_append(&watch->out, "}\n", 2);
    json_decref(status);
    watch->ends = true;
    sw_defer_start(&watch->flush);
}

/* ---- life ---- */

void sw_sim_watch_close(struct sw_sim_watch *watch)
{
    struct sw_sim_call *call = watch->call;
    call->watch = NULL;
    sw_link_remove(&watch->link);
    sw_defer_stop(&watch->flush);
    sw_timer_stop(&watch->timeout);
    sw_timer_stop(&watch->bookmark);
    sw_timer_stop(&watch->mark);
    sw_sim_filter_done(&watch->filter);
    sw_buf_done(&watch->out);
    sw_free(watch->scratch);
    sw_free(watch);
}

static void end(struct sw_sim_watch *watch, bool is_whole)
{
    struct sw_sim_call *call = watch->call;
    sw_sim_watch_close(watch);
    sw_sim_answer_end(call, is_whole);
}

static void on_flush(struct sw_defer *defer)
{
    struct sw_sim_watch *watch = container_of(defer, struct sw_sim_watch, flush);
    struct sw_sim_call *call = watch->call;
    bool ends = watch->ends;
    size_t len = watch->out.len;
    SW_AUTO(char, sw_free) text = sw_buf_steal(&watch->out);
    sw_sim_call_hold(call);
    sw_sim_answer_body(call, text, len);
    if (ends && call->watch) { /* the client may have gone away meanwhile */
        end(watch, true);
    }
    sw_sim_call_release(call);
}

static void on_timeout(struct sw_timer *timer)
{
    struct sw_sim_watch *watch = container_of(timer, struct sw_sim_watch, timeout);
    if (watch->wants_bookmarks) {
        write_bookmark(watch, false);
    }
    watch->ends = true;
    sw_defer_start(&watch->flush);
}

static void on_bookmark(struct sw_timer *timer)
{
    struct sw_sim_watch *watch = container_of(timer, struct sw_sim_watch, bookmark);
    write_bookmark(watch, false);
    sw_timer_start(&watch->bookmark, watch->call->api->options.bookmark_ms);
}

void sw_sim_watch_change(struct sw_sim_api *api, const struct sw_sim_cache *cache,
                         const struct sw_sim_change *change)
{
    SW_LIST_EACH (link, &api->watches) {
        struct sw_sim_watch *watch = container_of(link, struct sw_sim_watch, link);
        if (!watch->ends && watch->call->cache == cache &&
            sw_sim_same_resource(watch->call->route.stored, change->object->kind)) {
            write_change(watch, change);
        }
    }
}

void sw_sim_api_end_watches(struct sw_sim_api *api, const struct sw_sim_kind *kind, bool is_whole)
{
    /* One that ends may let its client open another: only those that are here now. */
    struct sw_link ending;
    sw_link_init(&ending);
    SW_LIST_EACH (link, &api->watches) {
        struct sw_sim_watch *watch = container_of(link, struct sw_sim_watch, link);
        if (!kind || sw_sim_same_resource(watch->call->route.stored, kind)) {
            sw_link_add_last(&ending, link);
        }
    }
    struct sw_link *link;
    while ((link = sw_link_first(&ending)) != NULL) {
        end(container_of(link, struct sw_sim_watch, link), is_whole);
    }
}

void sw_sim_watches_finish(struct sw_sim_api *api, const struct sw_sim_kind *kind)
{
    SW_LIST_EACH (link, &api->watches) {
        struct sw_sim_watch *watch = container_of(link, struct sw_sim_watch, link);
        if (sw_sim_same_resource(watch->call->route.stored, kind)) {
            watch->ends = true;
            sw_defer_start(&watch->flush);
        }
    }
}

/* ---- opening ---- */

static int add_initial(void *arg, const struct sw_sim_object *object)
{
    struct sw_sim_watch *watch = arg;
    if (sw_sim_filter_matches(&watch->filter, object)) {
        write_event(watch, SW_SIM_ADDED, object);
    }
    return 0;
}

/* What is there is told as the cache knows it. */
static int add_initial_known(void *arg, const struct sw_sim_object *object)
{
    const struct sw_sim_watch *watch = arg;
    const struct sw_sim_object *known =
        sw_sim_cache_get(watch->call->cache, object->kind, object->namespace_, object->name);
    return known ? add_initial(arg, known) : 0;
}

/* And what is gone, but not for the cache: once, at the first that it has missed of it. */
static int add_initial_gone(void *arg, const struct sw_sim_change *change)
{
    const struct sw_sim_call *call = ((const struct sw_sim_watch *)arg)->call;
    const struct sw_sim_object *o = change->object;
    bool is_first = change->before && change->before == sw_sim_cache_get(call->cache, o->kind,
                                                                         o->namespace_, o->name);
    bool is_asked_for =
        !*call->route.namespace_ || strcmp(call->route.namespace_, o->namespace_) == 0;
    if (is_first && is_asked_for &&
        !sw_sim_store_get(call->api->store, o->kind, o->namespace_, o->name)) {
        add_initial(arg, change->before);
    }
    return 0;
}

static void write_initial(struct sw_sim_watch *watch)
{
    const struct sw_sim_call *call = watch->call;
    const char *namespace_ = *call->route.namespace_ ? call->route.namespace_ : NULL;
    sw_sim_store_each(call->api->store, call->route.stored, namespace_, NULL,
                      call->cache ? add_initial_known : add_initial, watch);
    if (call->cache) {
        sw_sim_cache_missing(call->cache, call->route.stored, add_initial_gone, watch);
    }
    watch->version = known_version(watch);
}

static int add_past(void *arg, const struct sw_sim_change *change)
{
    if (change->version > known_version(arg)) {
        return 1; /* the cache will hear of it, and of what follows */
    }
    write_change(arg, change);
    return 0;
}

/* The end of the initial events, as soon as the cache knows enough. */
static void on_mark(struct sw_timer *timer)
{
    struct sw_sim_watch *watch = container_of(timer, struct sw_sim_watch, mark);
    const struct sw_sim_cache *cache = watch->call->cache;
    uint64_t due_ms = cache ? sw_sim_cache_reaches_ms(cache, watch->mark_version) : 0;
    uint64_t now_ms = sw_now_ms(watch->call->api->loop);
    if (due_ms > 0) {
        sw_timer_start_at(&watch->mark, SW_MAX(due_ms, now_ms + 1));
    } else {
        write_bookmark(watch, true);
    }
}

static void start_initial(struct sw_sim_watch *watch, const char *from)
{
    write_initial(watch);
    if (sw_sim_query_is_true(&watch->call->query, "sendInitialEvents") && watch->wants_bookmarks) {
        watch->mark_version =
            *from ? strtoull(from, NULL, 10) : sw_sim_store_version(watch->call->api->store);
        on_mark(&watch->mark);
    }
}

static void start_from(struct sw_sim_watch *watch, const char *from)
{
    const struct sw_sim_call *call = watch->call;
    const struct sw_sim_store *store = call->api->store;
    bool wants_initial = sw_sim_query_is_true(&call->query, "sendInitialEvents");
    if (!*from || strcmp(from, "0") == 0 || wants_initial) {
        start_initial(watch, from);
        return;
    }
    watch->version = strtoull(from, NULL, 10);
    /* From the future: silent until then, as the real server's watch cache is. */
    if (watch->version < known_version(watch) &&
        sw_sim_store_changes(store, call->route.stored, watch->version, add_past, watch) < 0) {
        char text[96];
        snprintf(text, sizeof(text), "too old resource version: %s (%" PRIu64 ")", from,
                 sw_sim_store_floor(store) + 1);
        write_error(watch, sw_sim_expired(text));
    }
}

/* The object of a watch on one name is chosen by a field, like in a query. */
static void narrow_to_name(struct sw_sim_watch *watch)
{
    const char *name = watch->call->route.name;
    if (*name) {
        if (!watch->filter.fields) {
            watch->filter.fields = json_array();
        }
        json_array_append_new(watch->filter.fields, json_pack("[s,b,s]", "metadata.name", 1, name));
    }
}

static json_t *check_query(const struct sw_sim_call *call, const char *from, int64_t *ret_timeout_s)
{
    if (strspn(from, "0123456789") != strlen(from)) {
        return sw_sim_statusf(500, "",
                              "resourceVersion: Invalid value: \"%s\": strconv.ParseUint: parsing "
                              "\"%s\": invalid syntax",
                              from, from);
    }
    if (sw_sim_query_number(&call->query, "timeoutSeconds", 0, ret_timeout_s)) {
        return sw_sim_statusf(400, "BadRequest", "strconv.ParseInt: parsing \"%s\": invalid syntax",
                              sw_sim_query_get(&call->query, "timeoutSeconds"));
    }
    return NULL;
}

void sw_sim_watch_open(struct sw_sim_call *call)
{
    struct sw_sim_api *api = call->api;
    const char *from = sw_sim_query_get(&call->query, "resourceVersion");
    from = from ? from : "";
    int64_t timeout_s = 0;
    struct sw_sim_filter filter = {0};
    json_t *refusal = check_query(call, from, &timeout_s);
    refusal = refusal ? refusal : sw_sim_filter_read(&filter, &call->query, call->route.kind);
    if (refusal) {
        sw_sim_answer_refusal(call, refusal);
        return;
    }
    if (timeout_s <= 0) {
        timeout_s = (int64_t)sw_random_between(api->loop, TIMEOUT_MIN_S, 2 * TIMEOUT_MIN_S);
    }
    struct sw_sim_watch *watch = SW_NEW(struct sw_sim_watch);
    watch->call = call;
    watch->filter = filter;
    watch->wants_bookmarks = sw_sim_query_is_true(&call->query, "allowWatchBookmarks");
    call->watch = watch;
    sw_link_init(&watch->link);
    sw_buf_init(&watch->out, SIZE_MAX);
    sw_defer_init(&watch->flush, api->loop, on_flush);
    sw_timer_init(&watch->timeout, api->loop, on_timeout);
    sw_timer_init(&watch->bookmark, api->loop, on_bookmark);
    sw_timer_init(&watch->mark, api->loop, on_mark);
    narrow_to_name(watch);
    sw_sim_answer_head(call, 200, "application/json", 0);
    if (!call->watch) {
        return; /* the client went away when it saw the head */
    }
    sw_link_add_last(&api->watches, &watch->link);
    start_from(watch, from);
    sw_timer_start(&watch->timeout, (uint64_t)timeout_s * 1000);
    if (watch->wants_bookmarks) {
        sw_timer_start(&watch->bookmark, api->options.bookmark_ms);
    }
}
