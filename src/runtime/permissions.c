/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One SelfSubjectAccessReview for each thing to do, all at once; the message when the last answer
 * has come. What got none, because the API server was not there, is asked again.
 * https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access
 */
#include "runtime/permissions.h"

#include <stdbool.h>
#include <string.h>

#include <slipway/json.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/util.h"
#include "kube/client.h"
#include "kube/lease.h"
#include "runtime/core.h"

enum { TEXT_LIMIT_BYTES = 4096, RETRY_MS = 30 * 1000 };

static const char path[] = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/* What is asked about; the strings belong to kinds, options and constants. */
struct access {
    const char *verb;
    const char *group, *resource, *subresource;
    const char *namespace_; /* NULL: all */
    const char *name;       /* NULL: any */
};

struct question {
    struct sw_permissions *permissions;
    struct access access;
    struct sw_call *call; /* NULL: none is under way */
    bool is_answered, is_denied;
};

struct sw_permissions {
    struct sw_core *core;
    struct question *questions;
    size_t count, open;
    bool is_unsaid; /* some answer said neither yes nor no */
    struct sw_timer retry;
};

/* ---- answers ---- */

static bool is_same_resource(const struct access *a, const struct access *b)
{
    return strcmp(a->group, b->group) == 0 && strcmp(a->resource, b->resource) == 0 &&
           strcmp(a->subresource, b->subresource) == 0;
}

/* "list, watch deployments.apps in namespace shop", for the question at this place and those behind
 * it about the same; nothing if one before it was about the same. */
static void put_resource(const struct sw_permissions *p, size_t at, struct sw_buf *out)
{
    const struct access *a = &p->questions[at].access;
    const char *before = out->len ? "; " : "";

    for (size_t i = 0; i < at; i++)
        if (p->questions[i].is_denied && is_same_resource(&p->questions[i].access, a))
            return;
    for (size_t i = at; i < p->count; i++) {
        const struct question *q = &p->questions[i];
        if (!q->is_denied || !is_same_resource(&q->access, a))
            continue;
        sw_buf_printf(out, "%s%s", before, q->access.verb);
        before = ", ";
    }
    sw_buf_printf(out, " %s%s%s%s%s", a->resource, a->subresource[0] ? "/" : "", a->subresource,
                  a->group[0] ? "." : "", a->group);
    if (a->namespace_)
        sw_buf_printf(out, " in namespace %s", a->namespace_);
}

static void say(const struct sw_permissions *p)
{
    const struct sw_log *log = &p->core->log;
    struct sw_buf missing;

    sw_buf_init(&missing, TEXT_LIMIT_BYTES);
    for (size_t i = 0; i < p->count; i++)
        if (p->questions[i].is_denied)
            put_resource(p, i, &missing);
    if (missing.len == 0 && p->is_unsaid)
        sw_log_debug(log, "the API server does not say which permissions are there");
    else if (missing.len == 0)
        sw_log_debug(log, "all permissions are there", SW_INT("checked", p->count));
    else
        sw_log_warn(log, "permissions are missing: give them to our role",
                    SW_STR("missing", missing.bytes));
    sw_buf_done(&missing);
}

static bool is_answer(const struct sw_reply *reply)
{
    return !reply->code && reply->status < 500 && reply->status != 429 && reply->status != 401;
}

/* An answer that says nothing (an authorizer of another kind) is no reason to complain. */
static void take_answer(struct question *question, const struct sw_reply *reply)
{
    struct sw_arena *arena = sw_arena_new(0);
    struct sw_json *body;

    question->is_answered = true;
    if (reply->status < 300 && !sw_json_parse(arena, reply->body, reply->body_len, &body, NULL))
        question->is_denied = !sw_json_get_bool(sw_json_get(body, "status"), "allowed", true);
    else
        question->permissions->is_unsaid = true;
    sw_arena_free(arena);
}

static bool are_all_answered(const struct sw_permissions *p)
{
    size_t i = 0;

    while (i < p->count && p->questions[i].is_answered)
        i++;
    return i == p->count;
}

/* No call is under way any more. */
static void look(struct sw_permissions *p)
{
    if (are_all_answered(p))
        say(p);
    else
        sw_timer_start(&p->retry, RETRY_MS);
}

static void on_reply(void *arg, const struct sw_reply *reply)
{
    struct question *question = arg;
    struct sw_permissions *p = question->permissions;

    question->call = NULL;
    if (is_answer(reply))
        take_answer(question, reply);
    if (--p->open == 0)
        look(p);
}

/* ---- questions ---- */

static void add(struct sw_permissions *p, struct access access)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct access *a = &p->questions[i].access;
        if (strcmp(a->verb, access.verb) == 0 && is_same_resource(a, &access))
            return;
    }
    p->questions = sw_realloc(p->questions, p->count + 1, sizeof(*p->questions));
    p->questions[p->count++] = (struct question){.permissions = p, .access = access};
}

static void add_watched(struct sw_permissions *p)
{
    const struct sw_link *all = &p->core->kinds.all;

    for (struct sw_link *l = all->next; l != all; l = l->next) {
        const struct sw_kind_entry *entry = container_of(l, struct sw_kind_entry, link);
        struct access access = {.group = entry->kind->group,
                                .resource = entry->kind->plural,
                                .subresource = "",
                                .namespace_ = entry->namespace_,
                                .name = entry->object_name};
        if (!entry->reflector)
            continue;
        access.verb = "list";
        add(p, access);
        access.verb = "watch";
        add(p, access);
    }
}

static void add_declared(struct sw_permissions *p)
{
    static const char *const verbs[] = {
        [SW_GET] = "get",          [SW_CREATE] = "create", [SW_MERGE_PATCH] = "patch",
        [SW_JSON_PATCH] = "patch", [SW_APPLY] = "patch",   [SW_DELETE] = "delete",
    };
    static const char *const subresources[] = {"", "status", "scale"};
    const struct sw_link *ring = &p->core->registry.writes;

    for (struct sw_link *l = ring->next; l != ring; l = l->next) {
        struct sw_registration *registration = container_of(l, struct sw_registration, link);
        const struct sw_declared_write *declared =
            container_of(registration, struct sw_declared_write, registration);
        bool is_scoped = !declared->kind->is_cluster_scoped;
        const struct sw_kind_entry *watched = sw_kinds_find(&p->core->kinds, declared->kind);
        /* Who watches one object of a kind writes to that one; nobody creates by name. */
        bool is_one = watched && watched->object_name;
        add(p, (struct access){.verb = verbs[declared->verb],
                               .group = declared->kind->group,
                               .resource = declared->kind->plural,
                               .subresource = subresources[declared->subresource],
                               .namespace_ = is_one      ? watched->namespace_
                                             : is_scoped ? p->core->namespace_
                                                         : NULL,
                               .name = is_one && declared->verb != SW_CREATE ? watched->object_name
                                                                             : NULL});
    }
}

static void add_reads(struct sw_permissions *p)
{
    const struct sw_link *ring = &p->core->registry.reads;

    for (struct sw_link *l = ring->next; l != ring; l = l->next) {
        struct sw_registration *registration = container_of(l, struct sw_registration, link);
        const struct sw_declared_read *declared =
            container_of(registration, struct sw_declared_read, registration);
        struct access access = {.verb = "get",
                                .group = declared->kind->group,
                                .resource = declared->kind->plural,
                                .subresource = "",
                                .namespace_ =
                                    declared->kind->is_cluster_scoped ? NULL : p->core->namespace_};
        add(p, access);
        access.verb = "list";
        if (declared->also_lists)
            add(p, access);
    }
}

static void add_lease(struct sw_permissions *p)
{
    static const char *const verbs[] = {"get", "create", "update", "watch"};
    const struct sw_lease_options *lease = p->core->leading.options;

    for (size_t i = 0; lease && i < SW_ARRAY_SIZE(verbs); i++) {
        bool is_create = strcmp(verbs[i], "create") == 0; /* is not asked for by name */
        add(p, (struct access){.verb = verbs[i],
                               .group = "coordination.k8s.io",
                               .resource = "leases",
                               .subresource = "",
                               .namespace_ = lease->namespace_,
                               .name = is_create ? NULL : lease->name});
    }
}

static void add_callers(struct sw_permissions *p)
{
    static const struct access reviews[] = {
        {"create", "authentication.k8s.io", "tokenreviews", "", NULL, NULL},
        {"create", "authorization.k8s.io", "subjectaccessreviews", "", NULL, NULL},
    };

    for (size_t i = 0; p->core->verifies_callers && i < SW_ARRAY_SIZE(reviews); i++)
        add(p, reviews[i]);
}

static const char *body_of(struct sw_arena *arena, const struct access *access)
{
    struct sw_json *body = sw_json_object(arena);
    struct sw_json *what =
        sw_json_set_object(sw_json_set_object(body, "spec"), "resourceAttributes");

    sw_json_set_string(body, "apiVersion", "authorization.k8s.io/v1");
    sw_json_set_string(body, "kind", "SelfSubjectAccessReview");
    sw_json_set_string(what, "verb", access->verb);
    sw_json_set_string(what, "group", access->group);
    sw_json_set_string(what, "resource", access->resource);
    if (access->subresource[0])
        sw_json_set_string(what, "subresource", access->subresource);
    if (access->namespace_)
        sw_json_set_string(what, "namespace", access->namespace_);
    if (access->name)
        sw_json_set_string(what, "name", access->name);
    return sw_json_dump(body, arena, NULL);
}

static void ask(struct sw_permissions *p, struct question *question)
{
    struct sw_arena *arena = sw_arena_new(0);
    const char *body = body_of(arena, &question->access);
    struct sw_call_options options = {
        .method = "POST", .path = path, .body = body, .body_len = strlen(body)};

    if (!sw_client_call(p->core->client, &options, on_reply, question, &question->call))
        p->open++;
    sw_arena_free(arena);
}

static void ask_all(struct sw_permissions *p)
{
    for (size_t i = 0; i < p->count; i++)
        if (!p->questions[i].is_answered)
            ask(p, &p->questions[i]);
    if (p->open == 0)
        look(p);
}

static void on_retry(struct sw_timer *timer)
{
    ask_all(container_of(timer, struct sw_permissions, retry));
}

struct sw_permissions *sw_permissions_check(struct sw_core *core)
{
    struct sw_permissions *p = SW_NEW(struct sw_permissions);

    p->core = core;
    add_watched(p);
    add_declared(p);
    add_reads(p);
    add_lease(p);
    add_callers(p);
    sw_timer_init(&p->retry, core->loop, on_retry);
    ask_all(p);
    return p;
}

struct sw_permissions *sw_permissions_free(struct sw_permissions *permissions)
{
    if (!permissions)
        return NULL;
    sw_timer_stop(&permissions->retry);
    for (size_t i = 0; i < permissions->count; i++)
        if (permissions->questions[i].call)
            sw_call_cancel(permissions->questions[i].call);
    sw_free(permissions->questions);
    return sw_free(permissions);
}
