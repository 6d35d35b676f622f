/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Get and list. A list is the texts of its objects, one after the other; they are made once for
 * each state of an object. Pages of one list show the state at which its first page was read: what
 * has changed since is taken back with the window of changes, and where that is not known any more
 * the client gets 410 and a token that goes on with the present.
 * https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks
 */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slipway/selector.h>

#include "api_internal.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/util.h"
#include "kube/base64.h"
#include "value.h"

/* ---- versions in the query ---- */

/* "": none. */
static json_t *read_version(const struct sw_sim_call *call, const char *name, uint64_t *ret_version,
                            bool *ret_is_given)
{
    const char *text = sw_sim_query_get(&call->query, name);
    *ret_is_given = text && *text;
    *ret_version = 0;
    if (!*ret_is_given) {
        return NULL;
    }
    char *end = NULL;
    errno = 0;
    *ret_version = strtoull(text, &end, 10);
    if (errno || *end || strspn(text, "0123456789") != strlen(text)) {
        return sw_sim_statusf(500, "",
                              "resourceVersion: Invalid value: \"%s\": strconv.ParseUint: parsing "
                              "\"%s\": invalid syntax",
                              text, text);
    }
    uint64_t current = sw_sim_store_version(call->api->store);
    return *ret_version > current ? sw_sim_too_large_version(*ret_version, current) : NULL;
}

/* ---- get ---- */

static int64_t replicas_at(const json_t *object, const char *path, const char *otherwise)
{
    const char *given = path ? path : otherwise;
    return sw_sim_int_at(object, given + (*given == '.'), 0);
}

/* The selector in text form, as scale has it in its status. */
static char *selector_text(const json_t *object)
{
    json_t *selector = sw_sim_at(object, "spec.selector");
    if (!selector) {
        return sw_strdup("");
    }
    size_t len = 0;
    SW_AUTO(char, sw_free) json = sw_sim_dump_text(selector, &len);
    struct sw_selector *read = NULL;
    char why[256];
    if (sw_selector_parse(json, len, &read, why, sizeof(why))) {
        return sw_strdup("");
    }
    char *text = sw_selector_text(read);
    sw_selector_free(read);
    return text;
}

json_t *sw_sim_scale(const struct sw_sim_kind *kind, const json_t *object)
{
    static const char *const copied[] = {"name", "namespace", "uid", "resourceVersion",
                                         "creationTimestamp"};
    json_t *metadata = json_object();
    for (size_t i = 0; i < SW_ARRAY_SIZE(copied); i++) {
        json_t *value = json_object_get(json_object_get(object, "metadata"), copied[i]);
        if (value) {
            json_object_set(metadata, copied[i], value);
        }
    }
    int64_t wanted = replicas_at(object, kind->scale_spec_path, ".spec.replicas");
    int64_t there = replicas_at(object, kind->scale_status_path, ".status.replicas");
    json_t *scale =
        json_pack("{s:s,s:s,s:o,s:{},s:{s:I}}", "kind", "Scale", "apiVersion", "autoscaling/v1",
                  "metadata", metadata, "spec", "status", "replicas", (json_int_t)there);
    if (wanted) {
        json_object_set_new(json_object_get(scale, "spec"), "replicas", json_integer(wanted));
    }
    SW_AUTO(char, sw_free) selector = selector_text(object);
    if (*selector) {
        sw_sim_put_text(json_object_get(scale, "status"), "selector", selector);
    }
    return scale;
}

/* With a version the cache answers. */
static const struct sw_sim_object *look_up(const struct sw_sim_call *call, bool is_given)
{
    const struct sw_sim_route *route = &call->route;
    return call->cache && is_given
               ? sw_sim_cache_get(call->cache, route->stored, route->namespace_, route->name)
               : sw_sim_store_get(call->api->store, route->stored, route->namespace_, route->name);
}

void sw_sim_get(struct sw_sim_call *call)
{
    const struct sw_sim_route *route = &call->route;
    uint64_t version = 0;
    bool is_given = false;
    json_t *refusal = read_version(call, "resourceVersion", &version, &is_given);
    const struct sw_sim_object *object = refusal ? NULL : look_up(call, is_given);
    if (!refusal && !object) {
        refusal = sw_sim_not_found(route->kind, route->name);
    }
    if (refusal) {
        sw_sim_answer_refusal(call, refusal);
    } else if (strcmp(route->subresource, "scale") == 0) {
        json_t *scale = sw_sim_scale(route->kind, sw_sim_object_json(object));
        sw_sim_answer_json(call, 200, scale);
        json_decref(scale);
    } else if (strcmp(route->subresource, "finalize") == 0 ||
               strcmp(route->subresource, "eviction") == 0) {
        sw_sim_answer_refusal(call, sw_sim_status(405, "MethodNotAllowed",
                                                  "the server does not allow this method on the "
                                                  "requested resource"));
    } else {
        sw_sim_answer_object(call, 200, object);
    }
}

/* ---- continue ---- */

static char *encode_base64(const char *bytes, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    struct sw_buf out;
    sw_buf_init(&out, SIZE_MAX);
    for (size_t i = 0; i < len; i += 3) {
        uint32_t group = 0;
        size_t count = SW_MIN(len - i, (size_t)3);
        for (size_t k = 0; k < 3; k++) {
            group = group << 8 | (k < count ? (unsigned char)bytes[i + k] : 0U);
        }
        for (size_t k = 0; k <= count; k++) {
            sw_buf_append(&out, &digits[group >> (18 - 6 * k) & 63], 1);
        }
    }
    return sw_buf_steal(&out);
}

/* As the real server writes it: {"v":"meta.k8s.io/v1","rv":123,"start":"ns/name\u0000"} */
static char *make_token(uint64_t version, bool has_version, const char *after)
{
    json_t *token = json_pack("{s:s,s:I,s:s}", "v", "meta.k8s.io/v1", "rv",
                              has_version ? (json_int_t)version : -1, "start", after);
    size_t len = 0;
    SW_AUTO(char, sw_free) text = sw_sim_dump_text(token, &len);
    json_decref(token);
    return encode_base64(text, len);
}

/* -EINVAL. *ret_after is new. *ret_version -1: the present. */
static int read_token(const char *token, int64_t *ret_version, char **ret_after)
{
    char *text = NULL;
    size_t len = 0;
    if (sw_base64_decode(token, strlen(token), &text, &len)) {
        return -EINVAL;
    }
    json_t *json = json_loadb(text, len, 0, NULL);
    sw_free(text);
    const char *start = sw_sim_text(json, "start", NULL);
    json_t *version = json_object_get(json, "rv");
    bool is_right = start && json_is_integer(version) &&
                    strcmp(sw_sim_text(json, "v", ""), "meta.k8s.io/v1") == 0;
    if (is_right) {
        *ret_version = json_integer_value(version);
        *ret_after = sw_strdup(start);
    }
    json_decref(json);
    return is_right ? 0 : -EINVAL;
}

/* ---- list ---- */

struct listing {
    struct sw_sim_call *call;
    struct sw_sim_filter filter;
    uint64_t version; /* of the state that is shown */
    char *after;      /* NULL: from the beginning */
    int64_t limit;    /* 0: none */
    struct sw_buf items;
    char *scratch;
    char *last; /* key of the last object in the page */
    size_t count;
    size_t left;  /* how many come behind the page */
    char *prefix; /* what an item leaves out: its kind */
    size_t prefix_len;
    struct sw_map *past; /* key -> object as it was then, or &nothing; NULL: the present */
    bool is_cached;      /* the state is that of the call's cache */
};

static char nothing;

static void add_item(struct listing *list, const struct sw_sim_object *object)
{
    const struct sw_sim_kind *kind = list->call->route.kind;
    if (list->count++) {
        sw_buf_append(&list->items, ",", 1);
    }
    if (list->call->form != SW_SIM_AS_IS) {
        json_t *whole = sw_sim_object_share(object);
        json_t *document = sw_sim_version_json(whole, kind);
        const char *include = sw_sim_query_get(&list->call->query, "includeObject");
        json_t *formed = list->call->form == SW_SIM_AS_TABLE
                             ? sw_sim_table_row(kind, document, include ? include : "Metadata",
                                                sw_wall_us(list->call->api->loop))
                             : sw_sim_partial(document);
        sw_sim_dump(&list->items, formed);
        json_decref(formed);
        json_decref(document);
        json_decref(whole);
        return;
    }
    size_t len = 0;
    const char *text = sw_sim_version_text(object, kind, &list->scratch, &len);
    if (len > list->prefix_len && memcmp(text, list->prefix, list->prefix_len) == 0) {
        sw_buf_append(&list->items, "{", 1);
        sw_buf_append(&list->items, text + list->prefix_len, len - list->prefix_len);
    } else {
        sw_buf_append(&list->items, text, len);
    }
}

static int each(void *arg, const struct sw_sim_object *object)
{
    struct listing *list = arg;
    if (!sw_sim_filter_matches(&list->filter, object)) {
        return 0;
    }
    if (list->limit > 0 && list->count == (size_t)list->limit) {
        list->left++;
        /* Only a list without selectors says how many are left. */
        return sw_sim_filter_is_empty(&list->filter) ? 0 : 1;
    }
    add_item(list, object);
    if (list->limit > 0) {
        sw_free(list->last);
        list->last = sw_strdup(object->key);
    }
    return 0;
}

/* ---- the past ---- */

static int note_change(void *arg, const struct sw_sim_change *change)
{
    struct listing *list = arg;
    if (!sw_map_get(list->past, change->object->key)) {
        void *before = change->before ? (void *)(uintptr_t)change->before : (void *)&nothing;
        sw_map_set(list->past, change->object->key, before);
    }
    return 0;
}

struct ordered {
    const struct sw_sim_object **at;
    size_t count, room;
    struct listing *list;
};

static void add_ordered(struct ordered *ordered, const struct sw_sim_object *object)
{
    if (ordered->count == ordered->room) {
        ordered->room = ordered->room ? 2 * ordered->room : 64;
        ordered->at = sw_realloc(ordered->at, ordered->room, sizeof(*ordered->at));
    }
    ordered->at[ordered->count++] = object;
}

static int add_unchanged(void *arg, const struct sw_sim_object *object)
{
    struct ordered *ordered = arg;
    if (!sw_map_get(ordered->list->past, object->key)) {
        add_ordered(ordered, object);
    }
    return 0;
}

static int by_key(const void *a, const void *b)
{
    const struct sw_sim_object *const *left = a;
    const struct sw_sim_object *const *right = b;
    return strcmp((*left)->key, (*right)->key);
}

static bool is_asked_for(const struct listing *list, const struct sw_sim_object *object)
{
    const char *namespace_ = list->call->route.namespace_;
    return (!*namespace_ || strcmp(namespace_, object->namespace_) == 0) &&
           (!list->after || strcmp(object->key, list->after) > 0);
}

/* -ESTALE where that state is not known any more. */
static int list_past(struct listing *list)
{
    const struct sw_sim_route *route = &list->call->route;
    const struct sw_sim_store *store = list->call->api->store;
    list->past = sw_map_new();
    int code = list->is_cached
                   ? sw_sim_cache_missing(list->call->cache, route->stored, note_change, list)
                   : sw_sim_store_changes(store, route->stored, list->version, note_change, list);
    struct ordered ordered = {.list = list};
    if (code == 0) {
        sw_sim_store_each(store, route->stored, *route->namespace_ ? route->namespace_ : NULL,
                          list->after, add_unchanged, &ordered);
        struct sw_map_iter it = {0};
        while (sw_map_next(list->past, &it)) {
            const struct sw_sim_object *object = it.value;
            if (it.value != (void *)&nothing && is_asked_for(list, object)) {
                add_ordered(&ordered, object);
            }
        }
        if (ordered.count) {
            qsort(ordered.at, ordered.count, sizeof(*ordered.at), by_key);
        }
        for (size_t i = 0; i < ordered.count && each(list, ordered.at[i]) == 0; i++) {
        }
    }
    sw_free(ordered.at);
    list->past = sw_map_free(list->past);
    return code;
}

static json_t *too_old(const struct listing *list)
{
    SW_AUTO(char, sw_free) token = make_token(0, false, list->after ? list->after : "");
    json_t *status = sw_sim_expired(
        "The provided continue parameter is too old to display a consistent list result. You can "
        "start a new list without the continue parameter, or use the continue token in this "
        "response to retrieve the remainder of the results. Continuing with the provided token "
        "results in an inconsistent list - objects that were created, modified, or deleted between "
        "the time the first chunk was returned and now may show up in the list.");
    sw_sim_put_text(json_object_get(status, "metadata"), "continue", token);
    return status;
}

static json_t *collect(struct listing *list)
{
    const struct sw_sim_route *route = &list->call->route;
    const struct sw_sim_store *store = list->call->api->store;
    if (list->version == sw_sim_store_version(store)) {
        sw_sim_store_each(store, route->stored, *route->namespace_ ? route->namespace_ : NULL,
                          list->after, each, list);
        return NULL;
    }
    if (list_past(list) == 0) {
        return NULL;
    }
    if (list->after) {
        return too_old(list);
    }
    return sw_sim_statusf(410, "Expired", "The resourceVersion for the provided list is too old.");
}

/* ---- the query ---- */

static json_t *bad_match(const char *why)
{
    const struct sw_sim_kind options = {.group = "meta.k8s.io", .kind = "ListOptions"};
    json_t *causes = json_array();
    sw_sim_cause(causes, "resourceVersionMatch", "FieldValueForbidden", "%s", why);
    json_t *refusal = sw_sim_invalid(&options, "", causes);
    json_decref(causes);
    return refusal;
}

static json_t *read_query(struct listing *list)
{
    const struct sw_sim_call *call = list->call;
    uint64_t current = sw_sim_store_version(call->api->store);
    list->version = current;
    uint64_t version = 0;
    bool is_given = false;
    json_t *refusal = read_version(call, "resourceVersion", &version, &is_given);
    if (refusal) {
        return refusal;
    }
    if (sw_sim_query_number(&call->query, "limit", 0, &list->limit)) {
        return sw_sim_statusf(400, "BadRequest", "strconv.ParseInt: parsing \"%s\": invalid syntax",
                              sw_sim_query_get(&call->query, "limit"));
    }
    const char *token = sw_sim_query_get(&call->query, "continue");
    const char *match = sw_sim_query_get(&call->query, "resourceVersionMatch");
    if (match && *match && !is_given) {
        return bad_match("Forbidden: resourceVersionMatch is forbidden unless resourceVersion is "
                         "provided");
    }
    if (token && *token) {
        int64_t at = 0;
        if (is_given && version != 0) {
            return sw_sim_status(400, "BadRequest",
                                 "specifying resource version is not allowed when using continue");
        }
        if (read_token(token, &at, &list->after)) {
            return sw_sim_status(
                400, "BadRequest",
                "invalid continue token: continue key is not valid: it was not made "
                "by this server");
        }
        if (at > 0) {
            list->version = SW_MIN((uint64_t)at, current);
        }
        return NULL;
    }
    if (is_given && match && strcmp(match, "Exact") == 0) {
        if (version == 0) {
            return bad_match("Forbidden: resourceVersionMatch \"exact\" is forbidden for "
                             "resourceVersion \"0\"");
        }
        list->version = version;
    } else if (is_given && version > 0 && list->limit > 0 && !(match && *match)) {
        list->version = version; /* a limit makes it exact: "legacy exact match" */
    } else if (is_given) {
        list->limit = version == 0 ? 0 : list->limit; /* the watch cache knows no pages */
        list->is_cached = call->cache && list->limit == 0;
    }
    if (list->is_cached) {
        list->version = sw_sim_cache_version(call->cache);
    }
    return NULL;
}

/* ---- the answer ---- */

static void set_prefix(struct listing *list)
{
    const struct sw_sim_kind *kind = list->call->route.kind;
    /* Items of built-in kinds have no kind of their own; those of custom resources do. */
    list->prefix = kind->schema
                       ? sw_strdup("\n")
                       : sw_asprintf("{\"kind\":\"%s\",\"apiVersion\":\"%s%s%s\",", kind->kind,
                                     kind->group, *kind->group ? "/" : "", kind->version);
    list->prefix_len = strlen(list->prefix);
}

static void write_head(struct listing *list, struct sw_buf *head)
{
    const struct sw_sim_kind *kind = list->call->route.kind;
    bool is_plain = list->call->form == SW_SIM_AS_IS;
    if (is_plain) {
        sw_buf_printf(head, "{\"kind\":\"%sList\",\"apiVersion\":\"%s%s%s\"", kind->kind,
                      kind->group, *kind->group ? "/" : "", kind->version);
    } else {
        sw_buf_printf(head, "{\"kind\":\"%s\",\"apiVersion\":\"meta.k8s.io/v1\"",
                      list->call->form == SW_SIM_AS_TABLE ? "Table" : "PartialObjectMetadataList");
    }
    sw_buf_printf(head, ",\"metadata\":{\"resourceVersion\":\"%" PRIu64 "\"", list->version);
    if (list->left) {
        SW_AUTO(char, sw_free) token = make_token(list->version, true, list->last);
        sw_buf_printf(head, ",\"continue\":\"%s\"", token);
        if (sw_sim_filter_is_empty(&list->filter)) {
            sw_buf_printf(head, ",\"remainingItemCount\":%zu", list->left);
        }
    }
    sw_buf_puts(head, "},");
    if (list->call->form == SW_SIM_AS_TABLE) {
        json_t *columns = sw_sim_table_columns(kind);
        sw_buf_puts(head, "\"columnDefinitions\":");
        sw_sim_dump(head, columns);
        sw_buf_puts(head, ",\"rows\":[");
        json_decref(columns);
    } else {
        sw_buf_puts(head, "\"items\":[");
    }
}

static void answer(struct listing *list)
{
    struct sw_sim_call *call = list->call;
    struct sw_buf head;
    sw_buf_init(&head, SIZE_MAX);
    write_head(list, &head);
    sw_buf_puts(&list->items, "]}");
    if (call->is_pretty) {
        sw_buf_append(&head, list->items.bytes, list->items.len);
        json_t *json = json_loadb(head.bytes, head.len, 0, NULL);
        sw_sim_answer_json(call, 200, json);
        json_decref(json);
    } else {
        sw_sim_call_hold(call);
        sw_sim_answer_head(call, 200, "application/json", 0);
        sw_sim_answer_body(call, head.bytes, head.len);
        sw_buf_append(&list->items, "\n", 1);
        sw_sim_answer_body(call, list->items.bytes, list->items.len);
        sw_sim_answer_end(call, true);
        sw_sim_call_release(call);
    }
    sw_buf_done(&head);
}

void sw_sim_list(struct sw_sim_call *call)
{
    struct listing list = {.call = call};
    sw_buf_init(&list.items, SIZE_MAX);
    json_t *refusal = sw_sim_filter_read(&list.filter, &call->query, call->route.kind);
    refusal = refusal ? refusal : read_query(&list);
    if (!refusal) {
        set_prefix(&list);
        refusal = collect(&list);
    }
    if (refusal) {
        sw_sim_answer_refusal(call, refusal);
    } else {
        answer(&list);
    }
    sw_sim_filter_done(&list.filter);
    sw_buf_done(&list.items);
    sw_free(list.after);
    sw_free(list.last);
    sw_free(list.scratch);
    sw_free(list.prefix);
}
