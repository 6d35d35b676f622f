/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes from outside: what a request asks for, and the way through admission and back.
 */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "value.h"
#include "write_internal.h"

/* ---- life ---- */

static void drop_admission(struct sw_sim_write *write)
{
    if (write->admission) {
        sw_sim_admission_drop(write->admission);
        write->admission = NULL;
    }
}

void sw_sim_write_free(struct sw_sim_write *write)
{
    drop_admission(write);
    sw_link_remove(&write->link);
    for (size_t i = 0; i < write->target_count; i++) {
        sw_sim_object_unref(write->targets[i]);
    }
    sw_free(write->targets);
    json_decref(write->deleted);
    sw_sim_object_unref(write->old);
    json_decref(write->old_json);
    json_decref(write->object);
    json_decref(write->body);
    json_decref(write->options);
    sw_free(write->manager);
    sw_free(write->name);
    sw_sim_call_release(write->call);
    sw_free(write);
}

void sw_sim_write_refuse(struct sw_sim_write *write, json_t *refusal)
{
    sw_sim_answer_refusal(write->call, refusal);
    sw_sim_write_free(write);
}

void sw_sim_writes_drop(struct sw_sim_api *api)
{
    SW_LIST_EACH (link, &api->writes) {
        sw_sim_write_free(container_of(link, struct sw_sim_write, link));
    }
}

/* ---- admission ---- */

static void on_admitted(void *arg, json_t *refusal, json_t *object)
{
    struct sw_sim_write *write = arg;
    write->admission = NULL;
    sw_link_remove(&write->link);
    if (refusal) {
        json_decref(object);
        sw_sim_write_refuse(write, refusal);
        return;
    }
    if (object) {
        write->is_mutated = object != write->object;
        json_decref(write->object);
        write->object = object;
    }
    write->next(write);
}

void sw_sim_write_show_old(struct sw_sim_write *write)
{
    json_decref(write->old_json);
    write->old_json = write->old ? sw_sim_share(sw_sim_object_json(write->old)) : NULL;
    write->asked.old_object = write->old_json;
}

void sw_sim_write_ask(struct sw_sim_write *write, bool is_mutating,
                      void (*next)(struct sw_sim_write *write))
{
    write->next = next;
    write->is_mutated = false;
    json_t *refusal = NULL;
    if (sw_sim_admit(write->api, &write->asked, is_mutating, write->call, on_admitted, write,
                     &refusal, &write->admission)) {
        sw_link_add_last(&write->api->writes, &write->link);
    } else if (refusal) {
        sw_sim_write_refuse(write, refusal);
    } else {
        next(write);
    }
}

/* ---- reading ---- */

static json_t *read_body(const struct sw_sim_call *call, json_t **ret_body)
{
    SW_AUTO(char, sw_free) why = NULL;
    json_t *body = sw_sim_read_body(call, &why);
    if (!body) {
        return sw_sim_statusf(400, "BadRequest",
                              "the object provided is unrecognized (must be of type %s): %s",
                              call->route.kind->kind, why);
    }
    *ret_body = body;
    return NULL;
}

/* The name before the slash, as the real server makes a manager of a client. */
static char *read_manager(const struct sw_sim_call *call)
{
    const char *given = sw_sim_query_get(&call->query, "fieldManager");
    if (given && *given) {
        return sw_strdup(given);
    }
    size_t len = strcspn(call->user_agent, "/");
    return len ? sw_strndup(call->user_agent, SW_MIN(len, (size_t)128)) : sw_strdup("unknown");
}

static json_t *options_of(const struct sw_sim_write *write, const char *kind)
{
    json_t *options = json_pack("{s:s,s:s}", "kind", kind, "apiVersion", "meta.k8s.io/v1");
    if (write->is_dry_run) {
        json_object_set_new(options, "dryRun", json_pack("[s]", "All"));
    }
    const char *manager = sw_sim_query_get(&write->call->query, "fieldManager");
    if (manager && *manager && write->operation != SW_SIM_DELETE) {
        sw_sim_put_text(options, "fieldManager", manager);
    }
    if (write->is_forced) {
        json_object_set_new(options, "force", json_true());
    }
    if (write->operation == SW_SIM_DELETE) {
        json_object_update_missing(options, write->body);
        if (write->deletion.propagation && *write->deletion.propagation) {
            sw_sim_put_text(options, "propagationPolicy", write->deletion.propagation);
        }
        if (write->deletion.grace_s >= 0) {
            json_object_set_new(options, "gracePeriodSeconds",
                                json_integer(write->deletion.grace_s));
        }
    }
    return options;
}

/* shown: the value as the real server shows it. */
static json_t *invalid_option(const char *options, const char *field, const char *shown,
                              const char *known)
{
    const struct sw_sim_kind kind = {.group = "meta.k8s.io", .kind = options};
    json_t *causes = json_array();
    sw_sim_cause(causes, field, "FieldValueNotSupported",
                 "Unsupported value: %s: supported values: %s", shown, known);
    json_t *refusal = sw_sim_invalid(&kind, "", causes);
    json_decref(causes);
    return refusal;
}

static const char *options_kind(const struct sw_sim_write *write)
{
    return write->operation == SW_SIM_DELETE   ? "DeleteOptions"
           : write->operation == SW_SIM_CREATE ? "CreateOptions"
           : write->patch_type                 ? "PatchOptions"
                                               : "UpdateOptions";
}

static json_t *read_dry_run(struct sw_sim_write *write, const char *value)
{
    if (!value || !*value) {
        return NULL;
    }
    if (strcmp(value, "All") != 0) {
        SW_AUTO(char, sw_free) shown = sw_asprintf("[]string{\"%s\"}", value);
        return invalid_option(options_kind(write), "dryRun", shown, "\"All\"");
    }
    write->is_dry_run = true;
    return NULL;
}

static bool is_media(const char *content_type, const char *media)
{
    size_t len = strlen(media);
    return strncmp(content_type, media, len) == 0 &&
           (!content_type[len] || content_type[len] == ';' || content_type[len] == ' ');
}

static json_t *read_patch_type(struct sw_sim_write *write)
{
    static const struct {
        const char *media;
        enum sw_sim_patch_type type;
    } known[] = {
        {"application/json-patch+json", SW_SIM_JSON_PATCH},
        {"application/merge-patch+json", SW_SIM_MERGE_PATCH},
        {"application/strategic-merge-patch+json", SW_SIM_STRATEGIC_PATCH},
        {"application/apply-patch+yaml", SW_SIM_APPLY_PATCH},
    };
    bool is_custom = write->of.kind->schema != NULL;
    for (size_t i = 0; i < SW_ARRAY_SIZE(known); i++) {
        bool is_known = !is_custom || known[i].type != SW_SIM_STRATEGIC_PATCH;
        if (is_known && is_media(write->call->content_type, known[i].media)) {
            write->patch_type = known[i].type;
            return NULL;
        }
    }
    return sw_sim_plain_status(415, "UnsupportedMediaType", "415: Unsupported Media Type");
}

/* kubectl from 1.32 on writes so with the commands that make an object themselves; what it reads
 * from a file goes as JSON. */
#define PROTOBUF_HINT                                                                \
    " (slipway-sim reads no protobuf; with kubectl: create ... --dry-run=client -o " \
    "yaml | kubectl create -f -)"

static json_t *check_media(const struct sw_sim_call *call)
{
    const char *type = call->content_type;
    if (!*type || is_media(type, "application/json") || is_media(type, "application/yaml") ||
        is_media(type, "*/*")) {
        return NULL;
    }
    bool is_protobuf = is_media(type, "application/vnd.kubernetes.protobuf");
    return sw_sim_statusf(415, "UnsupportedMediaType",
                          "the body of the request was in an unknown format - accepted media types "
                          "include: application/json, application/yaml%s",
                          is_protobuf ? PROTOBUF_HINT : "");
}

static json_t *read_change(struct sw_sim_write *write)
{
    json_t *refusal = strcmp(write->call->method, "PATCH") == 0 ? read_patch_type(write)
                                                                : check_media(write->call);
    refusal =
        refusal ? refusal : read_dry_run(write, sw_sim_query_get(&write->call->query, "dryRun"));
    if (!refusal && write->patch_type == SW_SIM_APPLY_PATCH) {
        write->is_forced = sw_sim_query_is_true(&write->call->query, "force");
        const char *manager = sw_sim_query_get(&write->call->query, "fieldManager");
        if (!manager || !*manager) {
            const struct sw_sim_kind kind = {.group = "meta.k8s.io", .kind = "PatchOptions"};
            json_t *causes = json_array();
            sw_sim_cause_required(causes, "fieldManager", "is required for apply patch");
            refusal = sw_sim_invalid(&kind, "", causes);
            json_decref(causes);
        }
    }
    return refusal ? refusal : read_body(write->call, &write->body);
}

/* ---- deletion ---- */

static json_t *read_propagation(struct sw_sim_write *write, const json_t *body)
{
    static const char *const known[] = {"Foreground", "Background", "Orphan"};
    const char *given = sw_sim_query_get(&write->call->query, "propagationPolicy");
    const char *value = sw_sim_text(body, "propagationPolicy", given ? given : "");
    if (*value && strcmp(value, known[0]) != 0 && strcmp(value, known[1]) != 0 &&
        strcmp(value, known[2]) != 0) {
        SW_AUTO(char, sw_free) shown = sw_asprintf("\"%s\"", value);
        return invalid_option("DeleteOptions", "propagationPolicy", shown,
                              "\"Foreground\", \"Background\", \"Orphan\", \"nil\"");
    }
    write->deletion.propagation = value;
    const char *orphans = sw_sim_query_get(&write->call->query, "orphanDependents");
    write->deletion.orphans = json_is_true(json_object_get(body, "orphanDependents")) ||
                              (orphans && strcmp(orphans, "true") == 0);
    return NULL;
}

static json_t *read_deletion(struct sw_sim_write *write)
{
    const struct sw_sim_call *call = write->call;
    json_t *refusal = call->body_len ? read_body(call, &write->body) : NULL;
    if (refusal) {
        return refusal;
    }
    const json_t *body = write->body;
    const char *dry_run = json_string_value(json_array_get(json_object_get(body, "dryRun"), 0));
    refusal = read_dry_run(write, dry_run ? dry_run : sw_sim_query_get(&call->query, "dryRun"));
    refusal = refusal ? refusal : read_propagation(write, body);
    if (refusal) {
        return refusal;
    }
    int64_t grace_s = -1;
    if (sw_sim_query_number(&call->query, "gracePeriodSeconds", -1, &grace_s)) {
        return sw_sim_status(400, "BadRequest", "gracePeriodSeconds is no number");
    }
    write->deletion.grace_s = sw_sim_int_at(body, "gracePeriodSeconds", grace_s);
    const json_t *preconditions = json_object_get(body, "preconditions");
    write->deletion.uid = sw_sim_text(preconditions, "uid", NULL);
    write->deletion.version = sw_sim_text(preconditions, "resourceVersion", NULL);
    write->deletion.is_dry_run = write->is_dry_run;
    return NULL;
}

/* ---- beginning ---- */

/* NULL where the method does nothing there. */
static void (*choose(struct sw_sim_write *write))(struct sw_sim_write *)
{
    const struct sw_sim_route *route = &write->call->route;
    const char *method = write->call->method;
    bool is_named = *route->name != 0;
    bool is_sub = *route->subresource != 0;
    if (strcmp(method, "POST") == 0 && !is_named) {
        write->operation = SW_SIM_CREATE;
        return sw_sim_write_create;
    }
    if (route->kind->is_virtual) {
        return NULL;
    }
    if (strcmp(route->subresource, "eviction") == 0) {
        write->operation = SW_SIM_CREATE;
        return strcmp(method, "POST") == 0 ? sw_sim_write_evict : NULL;
    }
    if ((strcmp(method, "PUT") == 0 ||
         (strcmp(method, "PATCH") == 0 && strcmp(route->subresource, "finalize") != 0)) &&
        is_named) {
        write->operation = SW_SIM_UPDATE;
        return sw_sim_write_update;
    }
    if (strcmp(method, "DELETE") == 0 && !is_sub) {
        write->operation = SW_SIM_DELETE;
        write->is_collection = !is_named;
        return sw_sim_write_delete;
    }
    return NULL;
}

void sw_sim_write_begin(struct sw_sim_call *call)
{
    struct sw_sim_write *write = SW_NEW(struct sw_sim_write);
    sw_link_init(&write->link);
    write->api = call->api;
    write->call = call;
    sw_sim_call_hold(call);
    const struct sw_sim_route *route = &call->route;
    bool needs_namespace = route->kind->is_namespaced && !*route->namespace_ &&
                           !(strcmp(call->method, "DELETE") == 0 && !*route->name);
    void (*go)(struct sw_sim_write *) = choose(write);
    if (!go || needs_namespace) {
        sw_sim_write_refuse(write,
                            sw_sim_plain_status(405, "MethodNotAllowed",
                                                "the server does not allow this method on the "
                                                "requested resource"));
        return;
    }
    write->manager = read_manager(call);
    write->of = (struct sw_sim_change_of){
        .kind = route->kind,
        .stored = route->stored,
        .namespace_ = route->namespace_,
        .name = route->name,
        .subresource = route->subresource,
        .manager = write->manager,
    };
    write->asked = (struct sw_sim_admission_request){
        .operation = write->operation,
        .kind = route->kind,
        .stored = route->stored,
        .namespace_ = route->namespace_,
        .name = route->name,
        .subresource = route->subresource,
        .user = &call->user,
    };
    json_t *refusal = write->operation == SW_SIM_DELETE ? read_deletion(write) : read_change(write);
    if (refusal) {
        sw_sim_write_refuse(write, refusal);
        return;
    }
    write->options = options_of(write, options_kind(write));
    write->asked.options = write->options;
    write->asked.is_dry_run = write->is_dry_run;
    go(write);
}
