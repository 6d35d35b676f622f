/* SPDX-License-Identifier: Apache-2.0 */
/* Delete and deletecollection from outside: each object passes admission on its own. */
#include <string.h>

#include "base/util.h"
#include "value.h"
#include "write_internal.h"

/* {"status":"Success"} with what it was. */
static json_t *success(const struct sw_sim_object *object)
{
    json_t *details = json_pack("{s:s}", "name", object->name);
    if (*object->kind->group) {
        sw_sim_put_text(details, "group", object->kind->group);
    }
    sw_sim_put_text(details, "kind", object->kind->plural);
    sw_sim_put_text(details, "uid", object->uid);
    return json_pack("{s:s,s:s,s:{},s:s,s:o}", "kind", "Status", "apiVersion", "v1", "metadata",
                     "status", "Success", "details", details);
}

static void next_target(struct sw_sim_write *write);

static void answer_one(struct sw_sim_write *write, const struct sw_sim_object *before,
                       const struct sw_sim_object *left)
{
    bool is_pod = !*before->kind->group && strcmp(before->kind->plural, "pods") == 0;
    if (left || is_pod) { /* a Pod is returned even when it is gone */
        sw_sim_answer_object(write->call, 200, left ? left : before);
    } else {
        json_t *status = success(before);
        sw_sim_answer_json(write->call, 200, status);
        json_decref(status);
    }
    sw_sim_write_free(write);
}

static void remove_one(struct sw_sim_write *write)
{
    const struct sw_sim_object *now = sw_sim_store_get(write->api->store, write->old->kind,
                                                       write->old->namespace_, write->old->name);
    json_t *refusal = now ? sw_sim_delete_check(now, &write->deletion)
                          : sw_sim_not_found(write->of.kind, write->old->name);
    if (refusal && write->is_collection) {
        json_decref(refusal); /* somebody else was faster */
        next_target(write);
        return;
    }
    if (refusal) {
        sw_sim_write_refuse(write, refusal);
        return;
    }
    sw_sim_object_ref(now);
    const struct sw_sim_object *left = NULL;
    sw_sim_commit_delete(write->api, now, &write->deletion, &left);
    if (write->is_collection) {
        json_t *shown = sw_sim_version_json(
            left ? sw_sim_object_json(left) : sw_sim_object_json(now), write->of.kind);
        json_array_append_new(write->deleted, shown);
        next_target(write);
    } else {
        answer_one(write, now, left);
    }
    sw_sim_object_unref(left);
    sw_sim_object_unref(now);
}

static void ask_validating(struct sw_sim_write *write)
{
    sw_sim_write_ask(write, false, remove_one);
}

/* Of write->old. */
static void ask(struct sw_sim_write *write)
{
    write->asked.name = write->old->name;
    write->asked.namespace_ = write->old->namespace_;
    sw_sim_write_show_old(write);
    sw_sim_write_ask(write, true, ask_validating);
}

/* ---- collections ---- */

static void answer_collection(struct sw_sim_write *write)
{
    const struct sw_sim_kind *kind = write->of.kind;
    SW_AUTO(char, sw_free) list_kind = sw_asprintf("%sList", kind->kind);
    SW_AUTO(char, sw_free)
    version =
        *kind->group ? sw_asprintf("%s/%s", kind->group, kind->version) : sw_strdup(kind->version);
    SW_AUTO(char, sw_free)
    at = sw_asprintf("%llu", (unsigned long long)sw_sim_store_version(write->api->store));
    json_t *list = json_pack("{s:s,s:s,s:{s:s},s:O}", "kind", list_kind, "apiVersion", version,
                             "metadata", "resourceVersion", at, "items", write->deleted);
    sw_sim_answer_json(write->call, 200, list);
    json_decref(list);
    sw_sim_write_free(write);
}

static void next_target(struct sw_sim_write *write)
{
    if (write->target_at == write->target_count) {
        answer_collection(write);
        return;
    }
    sw_sim_object_unref(write->old);
    write->old = sw_sim_object_ref(write->targets[write->target_at++]);
    ask(write);
}

struct collecting {
    struct sw_sim_write *write;
    struct sw_sim_filter filter;
    size_t room;
};

static int add_target(void *arg, const struct sw_sim_object *object)
{
    struct collecting *collecting = arg;
    struct sw_sim_write *write = collecting->write;
    if (!sw_sim_filter_matches(&collecting->filter, object)) {
        return 0;
    }
    if (write->target_count == collecting->room) {
        collecting->room = collecting->room ? 2 * collecting->room : 16;
        write->targets = sw_realloc(write->targets, collecting->room, sizeof(*write->targets));
    }
    write->targets[write->target_count++] = sw_sim_object_ref(object);
    return 0;
}

static void delete_collection(struct sw_sim_write *write)
{
    struct collecting collecting = {.write = write};
    json_t *refusal = sw_sim_filter_read(&collecting.filter, &write->call->query, write->of.kind);
    if (refusal) {
        sw_sim_write_refuse(write, refusal);
        return;
    }
    const char *namespace_ = *write->of.namespace_ ? write->of.namespace_ : NULL;
    sw_sim_store_each(write->api->store, write->of.stored, namespace_, NULL, add_target,
                      &collecting);
    sw_sim_filter_done(&collecting.filter);
    write->deleted = json_array();
    next_target(write);
}

void sw_sim_write_delete(struct sw_sim_write *write)
{
    if (write->is_collection) {
        delete_collection(write);
        return;
    }
    const struct sw_sim_object *object =
        sw_sim_store_get(write->api->store, write->of.stored, write->of.namespace_, write->of.name);
    if (!object) {
        sw_sim_write_refuse(write, sw_sim_not_found(write->of.kind, write->of.name));
        return;
    }
    write->old = sw_sim_object_ref(object);
    ask(write);
}
