/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call: the request, copied, and its answer. It is looked at in the next turn of the loop, and
 * then handed to whoever answers such a target. Who works on it beyond one callback (a watch, a
 * write that waits for admission) holds it; it is freed when it has ended and nobody does.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api_internal.h"
#include "base/buf.h"
#include "base/util.h"
#include "event_form.h"
#include "value.h"

enum {
    FRESH_TIMEOUT_MS = 3000, /* blockTimeout of the real server's watch cache */
};

static char *copy(const char *text)
{
    return sw_strdup(text ? text : "");
}

void sw_sim_call_hold(struct sw_sim_call *call)
{
    call->holds++;
}

void sw_sim_call_release(struct sw_sim_call *call)
{
    sw_assert(call->holds > 0);
    if (--call->holds > 0) {
        return;
    }
    sw_link_remove(&call->link);
    sw_defer_stop(&call->run);
    sw_sim_route_done(&call->route);
    sw_sim_query_done(&call->query);
    for (size_t i = 0; i < call->warning_count; i++) {
        sw_free(call->warning_texts[i]);
    }
    json_decref(call->user.groups);
    sw_free(call->user.name);
    sw_free(call->method);
    sw_free(call->target);
    sw_free(call->accept);
    sw_free(call->content_type);
    sw_free(call->user_agent);
    sw_free(call->body);
    sw_free(call);
}

/* ---- answers ---- */

void sw_sim_call_warn(struct sw_sim_call *call, const char *text)
{
    for (size_t i = 0; i < call->warning_count; i++) {
        if (strcmp(call->warnings[i], text) == 0) {
            return;
        }
    }
    if (call->warning_count < SW_ARRAY_SIZE(call->warnings)) {
        call->warning_texts[call->warning_count] = sw_strdup(text);
        call->warnings[call->warning_count] = call->warning_texts[call->warning_count];
        call->warning_count++;
    }
}

void sw_sim_answer_head(struct sw_sim_call *call, int status, const char *content_type,
                        unsigned retry_after_s)
{
    if (!call->is_cancelled && call->events.on_head) {
        call->events.on_head(call->arg, status, content_type, retry_after_s, call->warnings,
                             call->warning_count);
    }
}

void sw_sim_answer_body(struct sw_sim_call *call, const char *bytes, size_t len)
{
    if (!call->is_cancelled && call->events.on_body && len) {
        call->events.on_body(call->arg, bytes, len);
    }
}

/* Gives the hold of the answer back: the call may be gone afterwards. */
void sw_sim_answer_end(struct sw_sim_call *call, bool is_whole)
{
    if (call->is_cancelled || call->is_ended) {
        return;
    }
    call->is_ended = true;
    if (call->events.on_end) {
        call->events.on_end(call->arg, is_whole);
    }
    if (!call->is_cancelled) {
        sw_sim_call_release(call);
    }
}

void sw_sim_answer_text(struct sw_sim_call *call, int status, const char *content_type,
                        const char *text, size_t len)
{
    sw_sim_call_hold(call);
    sw_sim_answer_head(call, status, content_type, 0);
    sw_sim_answer_body(call, text, len);
    sw_sim_answer_end(call, true);
    sw_sim_call_release(call);
}

static void answer_json(struct sw_sim_call *call, int status, const json_t *json,
                        unsigned retry_after_s)
{
    size_t len = 0;
    char *text = NULL;
    if (call->is_pretty) {
        struct sw_buf out;
        sw_buf_init(&out, SIZE_MAX);
        char *dumped = sw_sim_dump_as(json, JSON_INDENT(2) | JSON_ENCODE_ANY);
        sw_buf_puts(&out, dumped);
        sw_free(dumped);
        len = out.len;
        text = sw_buf_steal(&out);
    } else {
        text = sw_sim_dump_text(json, &len);
    }
    sw_sim_call_hold(call);
    sw_sim_answer_head(call, status, "application/json", retry_after_s);
    sw_sim_answer_body(call, text, len);
    sw_sim_answer_body(call, "\n", 1);
    sw_sim_answer_end(call, true);
    sw_sim_call_release(call);
    sw_free(text);
}

void sw_sim_answer_json(struct sw_sim_call *call, int status, const json_t *json)
{
    answer_json(call, status, json, 0);
}

void sw_sim_answer_refusal(struct sw_sim_call *call, json_t *refusal)
{
    int64_t retry_s = sw_sim_int_at(refusal, "details.retryAfterSeconds", 0);
    answer_json(call, sw_sim_status_code(refusal), refusal, (unsigned)SW_MAX(retry_s, 0));
    json_decref(refusal);
}

/* ---- versions ---- */

json_t *sw_sim_version_json(const json_t *document, const struct sw_sim_kind *kind)
{
    SW_AUTO(char, sw_free)
    version =
        *kind->group ? sw_asprintf("%s/%s", kind->group, kind->version) : sw_strdup(kind->version);
    if (strcmp(sw_sim_text(document, "apiVersion", ""), version) == 0) {
        return sw_sim_share(document);
    }
    if (sw_sim_is_event(kind)) {
        return sw_sim_event_as(document, kind);
    }
    json_t *other = sw_sim_shallow(document);
    sw_sim_put_text(other, "apiVersion", version);
    return other;
}

const char *sw_sim_version_text(const struct sw_sim_object *object, const struct sw_sim_kind *kind,
                                char **scratch, size_t *ret_len)
{
    if (strcmp(object->kind->version, kind->version) == 0 &&
        strcmp(object->kind->group, kind->group) == 0) {
        return sw_sim_object_text(object, ret_len);
    }
    json_t *whole = sw_sim_object_share(object);
    json_t *other = sw_sim_version_json(whole, kind);
    sw_free(*scratch);
    *scratch = sw_sim_dump_text(other, ret_len);
    json_decref(other);
    json_decref(whole);
    return *scratch;
}

static void answer_formed(struct sw_sim_call *call, int status, const json_t *document)
{
    json_t *formed = NULL;
    if (call->form == SW_SIM_AS_TABLE) {
        const char *include = sw_sim_query_get(&call->query, "includeObject");
        const json_t *metadata = json_object_get(document, "metadata");
        formed = json_pack(
            "{s:s,s:s,s:{},s:o,s:[o]}", "kind", "Table", "apiVersion", "meta.k8s.io/v1", "metadata",
            "columnDefinitions", sw_sim_table_columns(call->route.kind), "rows",
            sw_sim_table_row(call->route.kind, document, include ? include : "Metadata",
                             sw_wall_us(call->api->loop)));
        json_object_set(json_object_get(formed, "metadata"), "resourceVersion",
                        json_object_get(metadata, "resourceVersion"));
    } else {
        formed = sw_sim_partial(document);
    }
    sw_sim_answer_json(call, status, formed);
    json_decref(formed);
}

void sw_sim_answer_document(struct sw_sim_call *call, int status, const json_t *document)
{
    if (call->form != SW_SIM_AS_IS && !*call->route.subresource) {
        answer_formed(call, status, document);
    } else {
        sw_sim_answer_json(call, status, document);
    }
}

void sw_sim_answer_object(struct sw_sim_call *call, int status, const struct sw_sim_object *object)
{
    if (call->form != SW_SIM_AS_IS || call->is_pretty) {
        json_t *document = sw_sim_version_json(sw_sim_object_json(object), call->route.kind);
        sw_sim_answer_document(call, status, document);
        json_decref(document);
        return;
    }
    char *scratch = NULL;
    size_t len = 0;
    sw_sim_call_hold(call);
    sw_sim_object_ref(object);
    const char *text = sw_sim_version_text(object, call->route.kind, &scratch, &len);
    sw_sim_answer_head(call, status, "application/json", 0);
    sw_sim_answer_body(call, text, len);
    sw_sim_answer_body(call, "\n", 1);
    sw_sim_answer_end(call, true);
    sw_free(scratch);
    sw_sim_object_unref(object);
    sw_sim_call_release(call);
}

/* ---- reading the request ---- */

static bool has_parameter(const char *media, const char *name, const char *value)
{
    SW_AUTO(char, sw_free) text = sw_asprintf("%s=%s", name, value);
    const char *at = strstr(media, text);
    return at && (at == media || at[-1] == ';' || at[-1] == ' ');
}

/* The first media type that can be served decides, as in the real server without q values. False
 * where there is none. */
static bool read_accept(struct sw_sim_call *call)
{
    const char *rest = call->accept;
    if (!*rest) {
        return true;
    }
    while (*rest) {
        size_t len = strcspn(rest, ",");
        SW_AUTO(char, sw_free) media = sw_strndup(rest, len);
        const char *type = media + strspn(media, " ");
        bool is_json = strncmp(type, "application/json", 16) == 0;
        if (is_json && has_parameter(type, "as", "Table")) {
            call->form = SW_SIM_AS_TABLE;
            return true;
        }
        if (is_json && (has_parameter(type, "as", "PartialObjectMetadata") ||
                        has_parameter(type, "as", "PartialObjectMetadataList"))) {
            call->form = SW_SIM_AS_METADATA;
            return true;
        }
        if (is_json || strncmp(type, "*/*", 3) == 0 || strncmp(type, "application/*", 13) == 0) {
            return true;
        }
        rest += len;
        rest += *rest == ',';
    }
    return false;
}

/* The version that the cache must have reached before it answers; 0: any, or it is not asked. */
static uint64_t version_awaited(const struct sw_sim_call *call)
{
    const char *text = sw_sim_query_get(&call->query, "resourceVersion");
    const char *match = sw_sim_query_get(&call->query, "resourceVersionMatch");
    const char *limit = sw_sim_query_get(&call->query, "limit");
    bool is_from_etcd = !*call->route.name && ((limit && *limit) || (match && *match == 'E'));
    return call->cache && text && !is_from_etcd ? strtoull(text, NULL, 10) : 0;
}

static void read(struct sw_sim_call *call)
{
    uint64_t due_ms = 0;
    uint64_t awaited = version_awaited(call);
    if (awaited > 0) {
        due_ms = sw_sim_cache_reaches_ms(call->cache, awaited);
    }
    uint64_t now_ms = sw_now_ms(call->api->loop);
    if (due_ms > 0 && now_ms < call->wait_until_ms) {
        /* What the cache waits for may come later than it looks now: then it is asked again. */
        sw_sim_call_hold(call);
        sw_timer_start_at(&call->wait, SW_MIN(SW_MAX(due_ms, now_ms + 1), call->wait_until_ms));
    } else if (due_ms > 0) {
        sw_sim_answer_refusal(call,
                              sw_sim_too_large_version(awaited, sw_sim_cache_version(call->cache)));
    } else if (*call->route.name) {
        sw_sim_get(call);
    } else {
        sw_sim_list(call);
    }
}

static void on_wait(struct sw_timer *timer)
{
    struct sw_sim_call *call = container_of(timer, struct sw_sim_call, wait);
    read(call);
    sw_sim_call_release(call);
}

static void answer_resource(struct sw_sim_call *call)
{
    const struct sw_sim_route *route = &call->route;
    bool is_get = strcmp(call->method, "GET") == 0 || strcmp(call->method, "HEAD") == 0;
    if (is_get && !route->kind->is_virtual) {
        if (route->is_watch_path || sw_sim_query_is_true(&call->query, "watch")) {
            sw_sim_watch_open(call);
        } else {
            call->wait_until_ms = sw_now_ms(call->api->loop) + FRESH_TIMEOUT_MS;
            read(call);
        }
        return;
    }
    sw_sim_write_begin(call);
}

static void run(struct sw_defer *defer)
{
    struct sw_sim_call *call = container_of(defer, struct sw_sim_call, run);
    size_t path_len = strcspn(call->target, "?");
    sw_sim_query_read(&call->query, call->target + path_len + (call->target[path_len] == '?'));
    const char *pretty = sw_sim_query_get(&call->query, "pretty");
    call->is_pretty = pretty && strcmp(pretty, "false") != 0 && strcmp(pretty, "0") != 0;
    sw_sim_route_read(call->api, call->target, path_len, &call->route);
    if (call->route.target != SW_SIM_RESOURCE) {
        sw_sim_discover(call);
    } else if (!read_accept(call)) {
        sw_sim_answer_refusal(
            call, sw_sim_status(406, "NotAcceptable",
                                "only the following media types are accepted: application/json"));
    } else {
        answer_resource(call);
    }
    sw_sim_call_release(call);
}

void sw_sim_api_send(struct sw_sim_api *api, const struct sw_sim_request *request,
                     const struct sw_sim_answer_events *events, void *arg,
                     struct sw_sim_call **ret_call)
{
    struct sw_sim_call *call = SW_NEW(struct sw_sim_call);
    call->api = api;
    call->events = *events;
    call->arg = arg;
    call->cache = request->cache;
    call->holds = 2; /* of the answer, and of run */
    call->method = copy(request->method);
    call->target = copy(request->target);
    call->accept = copy(request->accept);
    call->content_type = copy(request->content_type);
    call->user_agent = copy(request->user_agent);
    call->body = request->body_len ? sw_strndup(request->body, request->body_len) : copy("");
    call->body_len = request->body_len;
    call->user.name = sw_strdup(request->username ? request->username : "system:anonymous");
    call->user.groups = json_array();
    for (size_t i = 0; request->groups && request->groups[i]; i++) {
        json_array_append_new(call->user.groups, json_string(request->groups[i]));
    }
    sw_link_init(&call->link);
    sw_link_add_last(&api->calls, &call->link);
    sw_timer_init(&call->wait, api->loop, on_wait);
    sw_defer_init(&call->run, api->loop, run);
    sw_defer_start(&call->run);
    if (ret_call) {
        *ret_call = call;
    }
}

void sw_sim_api_cancel(struct sw_sim_api *api, struct sw_sim_call *call)
{
    if (call->is_cancelled) {
        return;
    }
    call->is_cancelled = true;
    bool is_read = strcmp(call->method, "GET") == 0;
    if (sw_defer_is_active(&call->run) && (is_read || api->is_closing)) {
        /* A write that has arrived is carried out all the same; only nobody hears of it. */
        sw_defer_stop(&call->run);
        sw_sim_call_release(call);
    }
    if (call->watch) {
        sw_sim_watch_close(call->watch);
    }
    if (sw_timer_is_active(&call->wait)) {
        sw_timer_stop(&call->wait);
        sw_sim_call_release(call);
    }
    sw_sim_call_release(call);
}
