/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes: from what a module asks for to a call of the client, and from the reply to one of the
 * outcomes. An object in an answer goes into the store, whose changes are delivered to all who
 * watch, before the module's callback comes: so in the callback everybody has seen the write.
 */
#include "runtime/write.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/util.h"
#include "kube/client.h"
#include "kube/decode.h"
#include "kube/store.h"
#include "net/url.h"
#include "runtime/core.h"
#include "runtime/instance.h"

/* etcd refuses requests above 1.5 MiB and the API server bodies above 3 MiB: so far, and no
 * further, is an object worth sending. */
enum { BODY_LIMIT_BYTES = 3 * 1024 * 1024 };

struct write {
    struct sw_link link;
    struct sw_core *core;
    struct sw_instance *instance; /* NULL: it has stopped, nobody is told */
    struct sw_kind_entry *entry;
    enum sw_write_verb verb;
    enum sw_subresource subresource;
    bool has_test;
    bool is_fenced; /* only the leader may send it */
    char *namespace_;
    char *name;
    char *uid; /* of the object that the store had when this was sent; "" */
    sw_answer_fn fn;
    void *arg;
    struct sw_call *call; /* NULL: answered without a request */
    struct sw_defer later;
    enum sw_outcome outcome; /* for later */
    const char *message;     /* for later; a constant */
};

static void write_free(struct write *write)
{
    sw_defer_stop(&write->later);
    sw_link_remove(&write->link);
    sw_free(write->namespace_);
    sw_free(write->name);
    sw_free(write->uid);
    sw_free(write);
}

/* The write is freed before its callback comes: the callback may do anything. */
static void answer_and_free(struct write *write, const struct sw_answer *answer)
{
    struct sw_core *core = write->core;
    struct sw_instance *instance = write->instance;
    sw_answer_fn fn = write->fn;
    void *arg = write->arg;

    write_free(write);
    if (instance && fn)
        fn(instance, arg, answer);
    sw_core_look_at_quiesce(core);
}

/* ---- what a reply means ---- */

/* A JSON patch whose "test" fails is answered with 422, and as nothing else that is: by API servers
 * of today with a sentence that names nothing, by others with their patch library's words. An
 * object that is not valid is answered with 422 and the object's name.
 * https://github.com/kubernetes/apimachinery/blob/v0.20.2/pkg/api/errors/errors.go
 * (NewGenericServerResponse) */
static bool is_failed_test(const struct sw_reply *reply)
{
    static const char *const words[] = {
        "the server rejected our request due to an error in our request",
        "test failed",
        "testing value",
        "testing path",
    };

    for (size_t i = 0; reply->body && i < SW_ARRAY_SIZE(words); i++)
        if (strstr(reply->body, words[i]))
            return true;
    return false;
}

enum sw_outcome sw_write_outcome(const struct sw_reply *reply, bool has_test)
{
    int status = reply->status;

    if ((reply->code == -ECANCELED || reply->code == SW_E_NOT_LEADER) && !reply->was_sent)
        return SW_NOT_LEADER;
    if (reply->code)
        return SW_UNKNOWN;
    if (status >= 200 && status < 300)
        return SW_OK;
    if (status == 404)
        return SW_NOT_FOUND;
    if (status == 409 || (status == 422 && has_test && is_failed_test(reply)))
        return SW_CONFLICT;
    /* 408 and 429 speak of the moment, not of the request. */
    if (status >= 400 && status < 500 && status != 408 && status != 429)
        return SW_REFUSED;
    return SW_UNKNOWN;
}

/* Whether a successful reply carries the object itself. */
static bool carries_object(const struct write *write)
{
    return write->subresource != SW_SCALE;
}

static bool is_status(const struct sw_reply *reply)
{
    struct sw_arena *arena = sw_arena_new(0);
    struct sw_json *value;
    bool is = reply->body_len < 4096 &&
              !sw_json_parse(arena, reply->body, reply->body_len, &value, NULL) &&
              sw_json_get_string(value, "kind") &&
              strcmp(sw_json_get_string(value, "kind"), "Status") == 0;

    sw_arena_free(arena);
    return is;
}

/* The object of a successful reply, as it is known now, and its version in the reply (the caller
 * frees it). False: it is not what was asked for. */
static bool learn(struct write *write, const struct sw_reply *reply, struct sw_answer *answer,
                  struct sw_object **ret_own, char **ret_version)
{
    struct sw_object *object = NULL;
    struct sw_error error = {0};

    if (write->verb == SW_DELETE && is_status(reply)) {
        sw_kind_learn_gone(write->entry, write->namespace_, write->name, write->uid);
        return true;
    }
    int code = sw_decode_object(write->entry->decoder, reply->body, reply->body_len,
                                write->namespace_, &object, &error);
    if (!code && write->name[0] && strcmp(object->name, write->name) != 0) {
        code = sw_error_set(&error, SW_E_SYNTAX, "it is named %s", object->name);
        object = sw_object_free(write->entry->decoder, object);
    }
    if (code) {
        sw_log_warn(&write->core->log, "answer does not hold the object asked for",
                    SW_STR("kind", write->entry->name), SW_STR("namespace", write->namespace_),
                    SW_STR("name", write->name), SW_STR("why", error.text));
        return false;
    }
    *ret_version = sw_strdup(object->resource_version);
    answer->resource_version = *ret_version;
    answer->object = sw_kind_learn_take(write->entry, object, ret_own);
    return true;
}

static void on_reply(void *arg, const struct sw_reply *reply)
{
    struct write *write = arg;
    struct sw_decoder *decoder = write->entry->decoder;
    struct sw_object *own = NULL;
    SW_AUTO(char, sw_free) version = NULL;
    struct sw_answer answer = {
        .outcome = sw_write_outcome(reply, write->has_test),
        .status = reply->code ? 0 : reply->status,
        .reason = "",
        .message = "",
        .resource_version = "",
    };

    write->call = NULL;
    if (reply->code) {
        answer.message = reply->error ? reply->error->text : sw_strerror(reply->code);
    } else if (reply->status >= 400) {
        answer.reason = reply->why.reason ? reply->why.reason : "";
        answer.message = reply->why.message ? reply->why.message : "";
    }
    if (answer.outcome == SW_OK && carries_object(write) &&
        !learn(write, reply, &answer, &own, &version)) {
        answer.outcome = SW_UNKNOWN;
        answer.message = "the answer does not hold the object";
    }
    /* Only the API server itself says NotFound; a missing path is "404 page not found". */
    if (answer.outcome == SW_NOT_FOUND && write->subresource == SW_MAIN &&
        strcmp(answer.reason, "NotFound") == 0)
        sw_kind_learn_gone(write->entry, write->namespace_, write->name, write->uid);
    answer_and_free(write, &answer);
    sw_object_free(decoder, own);
}

/* ---- bodies ---- */

static struct sw_json *copy_of(struct sw_arena *arena, const struct sw_json *body)
{
    return body ? sw_json_copy(arena, body) : sw_json_object(arena);
}

/* A member of a copy, which is an object and may be changed: the caller's is left alone. */
static struct sw_json *own_member(struct sw_arena *arena, struct sw_json *copy, const char *key)
{
    const struct sw_json *there = sw_json_get(copy, key);

    if (sw_json_type(there) == SW_JSON_OBJECT)
        sw_json_set(copy, key, sw_json_copy(arena, there));
    return sw_json_set_object(copy, key);
}

static void set_if_absent(struct sw_json *object, const char *key, const char *text)
{
    if (!sw_json_get(object, key))
        sw_json_set_string(object, key, text);
}

static void set_type(struct sw_arena *arena, struct sw_json *body, const struct sw_kind *kind)
{
    set_if_absent(body, "apiVersion",
                  kind->group[0] ? sw_arena_printf(arena, "%s/%s", kind->group, kind->version)
                                 : kind->version);
    set_if_absent(body, "kind", kind->kind);
}

static const char *with_test(struct sw_arena *arena, const struct sw_write *write, size_t *ret_len)
{
    struct sw_json *test = sw_json_object(arena);
    struct sw_json *patch = sw_json_array(arena);

    if (!write->resource_version)
        return sw_json_dump(write->body, arena, ret_len);
    sw_json_set_string(test, "op", "test");
    sw_json_set_string(test, "path", "/metadata/resourceVersion");
    sw_json_set_string(test, "value", write->resource_version);
    sw_json_append(patch, test);
    const char *head = sw_json_dump(patch, arena, NULL);
    const char *rest = sw_json_dump(write->body, arena, NULL);
    bool is_empty = sw_json_size(write->body) == 0;
    char *text = sw_arena_printf(arena, "%.*s%s%s", (int)strlen(head) - 1, head,
                                 is_empty ? "" : ",", rest + 1);
    *ret_len = strlen(text);
    return text;
}

static const char *delete_options(struct sw_arena *arena, const struct sw_write *write,
                                  size_t *ret_len)
{
    struct sw_json *options = copy_of(arena, write->body);

    sw_json_set_string(options, "apiVersion", "v1");
    sw_json_set_string(options, "kind", "DeleteOptions");
    if (write->uid)
        sw_json_set_string(own_member(arena, options, "preconditions"), "uid", write->uid);
    if (write->resource_version)
        sw_json_set_string(own_member(arena, options, "preconditions"), "resourceVersion",
                           write->resource_version);
    return sw_json_dump(options, arena, ret_len);
}

const char *sw_write_body(struct sw_arena *arena, const struct sw_write *write, size_t *ret_len)
{
    struct sw_json *body = NULL;

    switch (write->verb) {
    case SW_GET:
        *ret_len = 0;
        return NULL;
    case SW_DELETE:
        return delete_options(arena, write, ret_len);
    case SW_JSON_PATCH:
        return with_test(arena, write, ret_len);
    case SW_CREATE:
        body = copy_of(arena, write->body);
        set_type(arena, body, write->kind);
        if (write->name[0])
            set_if_absent(own_member(arena, body, "metadata"), "name", write->name);
        break;
    case SW_APPLY:
        body = copy_of(arena, write->body);
        set_type(arena, body, write->kind);
        set_if_absent(own_member(arena, body, "metadata"), "name", write->name);
        break;
    case SW_MERGE_PATCH:
        body = copy_of(arena, write->body);
        break;
    }
    if (write->resource_version && write->verb != SW_CREATE)
        sw_json_set_string(own_member(arena, body, "metadata"), "resourceVersion",
                           write->resource_version);
    return sw_json_dump(body, arena, ret_len);
}

/* ---- calls ---- */

static const struct {
    const char *method;
    const char *content_type;
} verbs[] = {
    [SW_GET] = {"GET", NULL},
    [SW_CREATE] = {"POST", "application/json"},
    [SW_MERGE_PATCH] = {"PATCH", "application/merge-patch+json"},
    [SW_JSON_PATCH] = {"PATCH", "application/json-patch+json"},
    [SW_APPLY] = {"PATCH", "application/apply-patch+yaml"},
    [SW_DELETE] = {"DELETE", "application/json"},
};

static int path_of(const struct sw_write *write, struct sw_arena *arena, const char **ret_path)
{
    static const char *const subresources[] = {NULL, "status", "scale"};
    bool is_create = write->verb == SW_CREATE;
    const char *namespace_ = write->kind->is_cluster_scoped ? NULL : write->namespace_;
    char *path;

    if (!is_create && !write->name[0])
        return -EINVAL;
    int code = sw_client_path(write->kind, namespace_, is_create ? NULL : write->name,
                              subresources[write->subresource], &path);
    if (code)
        return code;
    const char *query = write->verb == SW_GET || write->verb == SW_DELETE ? ""
                        : write->verb == SW_APPLY && write->is_forced
                            ? "?fieldManager=" SW_FIELD_MANAGER "&force=true"
                            : "?fieldManager=" SW_FIELD_MANAGER;
    *ret_path = sw_arena_printf(arena, "%s%s", path, query);
    sw_free(path);
    return 0;
}

static struct write *write_new(struct sw_instance *self, const struct sw_kind *kind,
                               const char *namespace_, const char *name, sw_answer_fn fn, void *arg)
{
    struct sw_core *core = self->core;
    struct write *write = SW_NEW(struct write);

    write->core = core;
    write->instance = self;
    write->entry = sw_kinds_entry(&core->kinds, kind);
    write->namespace_ = sw_strdup(namespace_ ? namespace_ : "");
    write->name = sw_strdup(name ? name : "");
    const struct sw_object *known =
        write->entry->store ? sw_store_get(write->entry->store, write->namespace_, write->name)
                            : NULL;
    write->uid = sw_strdup(known ? known->uid : "");
    write->fn = fn;
    write->arg = arg;
    sw_link_init(&write->link);
    sw_link_add_last(&core->writes.all, &write->link);
    return write;
}

static void answer_now(struct sw_defer *defer)
{
    struct write *write = container_of(defer, struct write, later);
    struct sw_answer answer = {
        .outcome = write->outcome,
        .reason = "",
        .message = write->message,
        .resource_version = "",
    };

    if (write->outcome == SW_UNCHANGED && write->entry->store)
        answer.object = sw_store_get(write->entry->store, write->namespace_, write->name);
    if (answer.object)
        answer.resource_version = answer.object->resource_version;
    answer_and_free(write, &answer);
}

void sw_write_answer_later(struct sw_instance *self, const struct sw_kind *kind,
                           const char *namespace_, const char *name, enum sw_outcome outcome,
                           const char *message, sw_answer_fn fn, void *arg)
{
    struct write *write = write_new(self, kind, namespace_, name, fn, arg);

    write->outcome = outcome;
    write->message = message;
    sw_defer_init(&write->later, self->core->loop, answer_now);
    sw_defer_start(&write->later);
}

static bool may_send(const struct sw_instance *self, const struct sw_write *write)
{
    return write->verb == SW_GET || write->also_on_followers ||
           sw_leading_is_on(&self->core->leading);
}

static int send(struct sw_instance *self, const struct sw_write *write, struct sw_arena *arena,
                sw_answer_fn fn, void *arg)
{
    struct sw_call_options options = {
        .method = verbs[write->verb].method,
        .content_type = verbs[write->verb].content_type,
        .is_guarded = write->verb == SW_APPLY || write->resource_version || write->uid,
        .is_fenced = write->verb != SW_GET && !write->also_on_followers,
    };
    int code = path_of(write, arena, &options.path);

    if (code)
        return code;
    options.body = sw_write_body(arena, write, &options.body_len);
    if (options.body_len > BODY_LIMIT_BYTES)
        return SW_E_TOO_LARGE;
    struct write *w = write_new(self, write->kind, write->namespace_, write->name, fn, arg);
    w->verb = write->verb;
    w->subresource = write->subresource;
    w->is_fenced = options.is_fenced;
    w->has_test = write->verb == SW_JSON_PATCH;
    code = sw_client_call(self->core->client, &options, on_reply, w, &w->call);
    if (code)
        write_free(w);
    return code;
}

int sw_write(struct sw_instance *self, const struct sw_write *write, sw_answer_fn fn, void *arg)
{
    struct sw_write checked = *write;

    checked.namespace_ = write->namespace_ ? write->namespace_ : "";
    checked.name = write->name ? write->name : "";
    if (!checked.kind->is_cluster_scoped && !checked.namespace_[0])
        return -EINVAL;
    if (!may_send(self, &checked)) {
        sw_write_answer_later(self, checked.kind, checked.namespace_, checked.name, SW_NOT_LEADER,
                              "another process leads", fn, arg);
        return 0;
    }
    struct sw_arena *arena = sw_arena_new(0);
    int code = send(self, &checked, arena, fn, arg);
    sw_arena_free(arena);
    return code;
}

int sw_get(struct sw_instance *self, const struct sw_kind *kind, const char *namespace_,
           const char *name, sw_answer_fn fn, void *arg)
{
    struct sw_write get = {.verb = SW_GET, .kind = kind, .namespace_ = namespace_, .name = name};

    return sw_write(self, &get, fn, arg);
}

void sw_write_declare(struct sw_instance *self, const struct sw_kind *kind, enum sw_write_verb verb,
                      enum sw_subresource subresource)
{
    struct sw_declared_write *declared =
        sw_registry_add(&self->core->registry.writes, self, sizeof(*declared));

    declared->kind = kind;
    declared->verb = verb;
    declared->subresource = subresource;
}

/* ---- the core's side ---- */

void sw_writes_init(struct sw_writes *writes, struct sw_core *core)
{
    writes->core = core;
    sw_link_init(&writes->all);
}

void sw_writes_done(struct sw_writes *writes)
{
    while (sw_link_is_used(&writes->all)) {
        struct write *write = container_of(writes->all.next, struct write, link);
        if (write->call)
            sw_call_cancel(write->call);
        write_free(write);
    }
}

void sw_writes_forget(struct sw_writes *writes, const struct sw_instance *instance)
{
    for (struct sw_link *l = writes->all.next; l != &writes->all; l = l->next) {
        struct write *write = container_of(l, struct write, link);
        if (write->instance == instance)
            write->instance = NULL;
    }
}

bool sw_writes_are_idle(const struct sw_writes *writes, bool of_followers_too)
{
    for (struct sw_link *l = writes->all.next; l != &writes->all; l = l->next)
        if (of_followers_too || container_of(l, struct write, link)->is_fenced)
            return false;
    return true;
}
