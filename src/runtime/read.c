/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading one object: a GET whose answer is decoded, lent and forgotten.
 */
#include "runtime/read.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/util.h"
#include "kube/client.h"
#include "kube/decode.h"
#include "runtime/core.h"
#include "runtime/instance.h"

struct reading {
    struct sw_link link;
    struct sw_instance *instance;
    struct sw_kind_entry *entry;
    char *namespace_;
    char *name;
    sw_answer_fn fn;
    void *arg;
    struct sw_call *call; /* NULL: answered */
};

static void reading_free(struct reading *reading)
{
    if (reading->call)
        sw_call_cancel(reading->call);
    sw_link_remove(&reading->link);
    sw_free(reading->namespace_);
    sw_free(reading->name);
    sw_free(reading);
}

/* NULL: it is not what was asked for. */
static struct sw_object *decode(const struct reading *reading, const struct sw_reply *reply)
{
    struct sw_decoder *decoder = reading->entry->decoder;
    struct sw_object *object = NULL;
    struct sw_error error = {0};

    int code = sw_decode_object(decoder, reply->body, reply->body_len, reading->namespace_, &object,
                                &error);
    if (!code && strcmp(object->name, reading->name) != 0) {
        sw_error_set(&error, SW_E_SYNTAX, "it is named %s", object->name);
        object = sw_object_free(decoder, object);
    }
    if (!object)
        sw_log_warn(&reading->instance->log, "answer does not hold the object asked for",
                    SW_STR("kind", reading->entry->name), SW_STR("namespace", reading->namespace_),
                    SW_STR("name", reading->name), SW_STR("why", error.text));
    return object;
}

static void on_reply(void *arg, const struct sw_reply *reply)
{
    struct reading *reading = arg;
    struct sw_decoder *decoder = reading->entry->decoder;
    struct sw_object *object = NULL;
    struct sw_answer answer = {
        .outcome = sw_write_outcome(reply, false),
        .status = reply->code ? 0 : reply->status,
        .reason = "",
        .message = "",
        .resource_version = "",
    };

    reading->call = NULL;
    if (reply->code) {
        answer.message = reply->error->text;
    } else if (answer.outcome != SW_OK) {
        answer.reason = reply->why.reason;
        answer.message = reply->why.message;
    } else {
        object = decode(reading, reply);
        answer.outcome = object ? SW_OK : SW_UNKNOWN;
        answer.message = object ? "" : "the answer does not hold the object";
        answer.object = object;
        answer.resource_version = object ? object->resource_version : "";
    }
    sw_link_remove(&reading->link);
    reading->fn(reading->instance, reading->arg, &answer);
    sw_object_free(decoder, object);
    reading_free(reading);
}

int sw_read(struct sw_instance *self, const struct sw_kind *kind, const char *namespace_,
            const char *name, sw_answer_fn fn, void *arg)
{
    struct sw_core *core = self->core;
    const char *in = kind->is_cluster_scoped ? "" : namespace_;
    struct sw_call_options options = {.method = "GET", .is_secret = kind->is_secret};
    SW_AUTO(char, sw_free) path = NULL;

    if (!in || (!in[0] && !kind->is_cluster_scoped) || !name || !name[0])
        return -EINVAL;
    int code = sw_client_path(kind, in[0] ? in : NULL, name, NULL, &path);
    if (code)
        return code;
    options.path = path;
    struct reading *reading = SW_NEW(struct reading);
    reading->instance = self;
    reading->entry = sw_kinds_entry(&core->kinds, kind);
    reading->namespace_ = sw_strdup(in);
    reading->name = sw_strdup(name);
    reading->fn = fn;
    reading->arg = arg;
    sw_link_init(&reading->link);
    sw_link_add_last(&core->reads.objects, &reading->link);
    code = sw_client_call(core->client, &options, on_reply, reading, &reading->call);
    if (code)
        reading_free(reading);
    return code;
}

void sw_read_declare(struct sw_instance *self, const struct sw_kind *kind, bool also_lists)
{
    struct sw_declared_read *declared =
        sw_registry_add(&self->core->registry.reads, self, sizeof(*declared));

    declared->kind = kind;
    declared->also_lists = also_lists;
}

/* ---- the core's side ---- */

static void forget(struct sw_reads *reads, const struct sw_instance *instance)
{
    SW_LIST_EACH (l, &reads->objects) {
        struct reading *reading = container_of(l, struct reading, link);
        if (!instance || reading->instance == instance)
            reading_free(reading);
    }
    sw_read_lists_forget(reads, instance);
}

void sw_reads_init(struct sw_reads *reads, struct sw_core *core)
{
    reads->core = core;
    sw_link_init(&reads->objects);
    sw_link_init(&reads->lists);
}

void sw_reads_done(struct sw_reads *reads)
{
    forget(reads, NULL);
}

void sw_reads_forget(struct sw_reads *reads, const struct sw_instance *instance)
{
    forget(reads, instance);
}
