/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Create, update and patch from outside. The steps are those of the real server: the mutating
 * webhooks see what the client sent with its defaults, the validating ones what will be stored.
 *
 *   create   decode, mutate, complete (name, uid, ...), validate, store
 *   update   read the object, build the new one (body or patch), mutate, compare the version,
 *            complete, validate, store
 *
 * Where the object has changed between its reading and the storing, an update begins anew with the
 * newer one: a precondition then fails with 409, and a patch without one is applied again.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "patch.h"
#include "value.h"
#include "write_internal.h"

enum { ATTEMPTS = 100 };

const struct sw_sim_kind sw_sim_scale_kind = {
    .group = "autoscaling", .version = "v1", .kind = "Scale", .plural = "scales"};

static bool is_scale(const struct sw_sim_write *write)
{
    return strcmp(write->of.subresource, "scale") == 0;
}

static void show(struct sw_sim_write *write)
{
    write->asked.object = write->object;
    sw_sim_write_show_old(write);
}

/* ---- answers ---- */

static void answer_document(struct sw_sim_write *write, int status, const json_t *document)
{
    if (is_scale(write)) {
        json_t *scale = sw_sim_scale(write->of.kind, document);
        sw_sim_answer_json(write->call, status, scale);
        json_decref(scale);
    } else {
        json_t *shown = sw_sim_version_json(document, write->of.kind);
        sw_sim_answer_document(write->call, status, shown);
        json_decref(shown);
    }
    sw_sim_write_free(write);
}

static void answer_object(struct sw_sim_write *write, int status,
                          const struct sw_sim_object *object)
{
    if (is_scale(write)) {
        answer_document(write, status, sw_sim_object_json(object));
        return;
    }
    sw_sim_answer_object(write->call, status, object);
    sw_sim_write_free(write);
}

/* ---- create ---- */

static void create_store(struct sw_sim_write *write)
{
    const char *name = sw_sim_text_at(write->object, "metadata.name");
    if (sw_sim_store_get(write->api->store, write->of.stored, write->of.namespace_, name)) {
        sw_sim_write_refuse(write, sw_sim_already_exists(write->of.kind, name));
        return;
    }
    if (write->is_dry_run) {
        answer_document(write, 201, write->object);
        return;
    }
    const struct sw_sim_object *made =
        sw_sim_commit_create(write->api, write->of.stored, sw_steal(&write->object));
    sw_sim_object_ref(made);
    answer_object(write, 201, made);
    sw_sim_object_unref(made);
}

static void create_complete(struct sw_sim_write *write)
{
    json_t *refusal = write->is_mutated ? sw_sim_rules_decode(&write->of, &write->object) : NULL;
    refusal = refusal ? refusal : sw_sim_rules_create(write->api, &write->of, &write->object);
    if (refusal) {
        sw_sim_write_refuse(write, refusal);
        return;
    }
    sw_free(write->name);
    write->name = sw_strdup(sw_sim_text_at(write->object, "metadata.name"));
    write->asked.name = write->name;
    show(write);
    sw_sim_write_ask(write, false, create_store);
}

/* Of write->object, which nobody has looked at yet. */
static void create(struct sw_sim_write *write)
{
    json_t *refusal = sw_sim_rules_decode(&write->of, &write->object);
    if (refusal) {
        sw_sim_write_refuse(write, refusal);
        return;
    }
    const char *name = sw_sim_text_at(write->object, "metadata.name");
    write->name = sw_strdup(name);
    refusal = sw_sim_rules_namespace(write->api, &write->of, name);
    if (refusal) {
        sw_sim_write_refuse(write, refusal);
        return;
    }
    write->operation = SW_SIM_CREATE;
    write->asked.operation = SW_SIM_CREATE;
    write->asked.name = write->name;
    show(write);
    sw_sim_write_ask(write, true, create_complete);
}

void sw_sim_write_create(struct sw_sim_write *write)
{
    if (write->of.kind->is_virtual) {
        json_t *answer = sw_sim_review(write->call, sw_steal(&write->body));
        sw_sim_answer_json(write->call, 201, answer);
        json_decref(answer);
        sw_sim_write_free(write);
        return;
    }
    write->object = sw_sim_share(write->body);
    create(write);
}

/* ---- update: the new object ---- */

static json_t *patch_error(const struct sw_sim_write *write, const struct sw_error *error)
{
    if (write->patch_type == SW_SIM_APPLY_PATCH && error->code == -EEXIST) {
        return sw_sim_apply_conflict(error->text);
    }
    if (write->patch_type == SW_SIM_JSON_PATCH) {
        return sw_sim_plain_status(
            422, "Invalid", "the server rejected our request due to an error in our request");
    }
    return sw_sim_status(400, "BadRequest", error->text);
}

static json_t *apply_patch(struct sw_sim_write *write, const json_t *document, json_t **ret)
{
    struct sw_error error = {0};
    json_t *made = NULL;
    if (write->patch_type == SW_SIM_JSON_PATCH) {
        made = sw_sim_json_patch(document, write->body, &error);
    } else if (write->patch_type == SW_SIM_MERGE_PATCH) {
        made = sw_sim_merge_patch(document, write->body);
    } else if (write->patch_type == SW_SIM_STRATEGIC_PATCH) {
        made = sw_sim_strategic_patch(document, write->body, &error);
    } else {
        made = sw_sim_apply_patch(document, write->body,
                                  &(struct sw_sim_apply){
                                      .kind = is_scale(write) ? &sw_sim_scale_kind : write->of.kind,
                                      .manager = write->manager,
                                      .subresource = write->of.subresource,
                                      .is_forced = write->is_forced,
                                      .wall_us = sw_wall_us(write->api->loop),
                                  },
                                  &error);
        write->of.is_applied = true;
    }
    if (!made) {
        return patch_error(write, &error);
    }
    *ret = made;
    return NULL;
}

/* What the Scale says, put into the object. */
static json_t *take_scale(const struct sw_sim_write *write, const json_t *scale)
{
    const char *path = write->of.kind->scale_spec_path;
    path = path ? path : ".spec.replicas";
    path += *path == '.';
    json_t *object = sw_sim_own(sw_sim_object_json(write->old));
    json_t *at = object;
    const char *rest = path;
    while (strchr(rest, '.')) {
        size_t len = strcspn(rest, ".");
        SW_AUTO(char, sw_free) key = sw_strndup(rest, len);
        at = sw_sim_own_member(at, key);
        rest += len + 1;
    }
    json_object_set_new(at, rest, json_integer(sw_sim_int_at(scale, "spec.replicas", 0)));
    const char *version = sw_sim_text_at(scale, "metadata.resourceVersion");
    sw_sim_put_text(json_object_get(object, "metadata"), "resourceVersion",
                    *version ? version : NULL);
    return object;
}

static json_t *check_name(const struct sw_sim_write *write, const json_t *object)
{
    const char *name = sw_sim_text_at(object, "metadata.name");
    if (strcmp(name, write->of.name) == 0) {
        return NULL;
    }
    if (!*name) {
        return sw_sim_statusf(400, "BadRequest",
                              "the name of the object (%s based on URL) was undeterminable: name "
                              "must be provided",
                              write->of.name);
    }
    return sw_sim_statusf(400, "BadRequest",
                          "the name of the object (%s) does not match the name on the URL (%s)",
                          name, write->of.name);
}

/* Sets write->object from the body and write->old. */
static json_t *build(struct sw_sim_write *write)
{
    json_decref(write->object);
    write->object = NULL;
    json_t *refusal = NULL;
    if (!write->patch_type) {
        write->object = sw_sim_share(write->body);
    } else {
        json_t *document =
            is_scale(write) ? sw_sim_scale(write->of.kind, sw_sim_object_json(write->old))
                            : sw_sim_version_json(sw_sim_object_json(write->old), write->of.kind);
        refusal = apply_patch(write, document, &write->object);
        json_decref(document);
    }
    if (refusal || is_scale(write)) {
        return refusal;
    }
    refusal = sw_sim_rules_decode(&write->of, &write->object);
    return refusal ? refusal : check_name(write, write->object);
}

/* ---- update: the steps ---- */

static void update_store(struct sw_sim_write *write)
{
    const struct sw_sim_object *now =
        sw_sim_store_get(write->api->store, write->of.stored, write->of.namespace_, write->of.name);
    if (now != write->old) {
        if (++write->attempts < ATTEMPTS) {
            sw_sim_write_update(write);
        } else {
            sw_sim_write_refuse(write, sw_sim_modified(write->of.kind, write->of.name));
        }
        return;
    }
    if (write->is_dry_run) {
        answer_document(write, 200, write->object);
        return;
    }
    bool is_gone = false;
    const struct sw_sim_object *left =
        sw_sim_commit_update(write->api, write->old, sw_steal(&write->object), &is_gone);
    answer_object(write, 200, left);
    sw_sim_object_unref(left);
}

static void update_complete(struct sw_sim_write *write)
{
    json_t *refusal = NULL;
    if (is_scale(write)) {
        json_t *object = take_scale(write, write->object);
        json_decref(write->object);
        write->object = object;
    } else if (write->is_mutated) {
        refusal = sw_sim_rules_decode(&write->of, &write->object);
    }
    refusal =
        refusal ? refusal : sw_sim_rules_update(write->api, &write->of, write->old, &write->object);
    if (refusal) {
        sw_sim_write_refuse(write, refusal);
        return;
    }
    show(write);
    sw_sim_write_ask(write, false, update_store);
}

/* There is none of that name. */
static void update_missing(struct sw_sim_write *write)
{
    bool may_create = !*write->of.subresource &&
                      (write->patch_type == SW_SIM_APPLY_PATCH ||
                       (!write->patch_type && sw_sim_may_create_on_update(write->of.kind)));
    if (!may_create) {
        sw_sim_write_refuse(write, sw_sim_not_found(write->of.kind, write->of.name));
        return;
    }
    json_decref(write->object);
    write->object = NULL;
    json_t *refusal = NULL;
    if (write->patch_type) {
        refusal = apply_patch(write, NULL, &write->object);
    } else {
        write->object = sw_sim_share(write->body);
    }
    refusal = refusal ? refusal : check_name(write, write->object);
    if (refusal) {
        sw_sim_write_refuse(write, refusal);
        return;
    }
    create(write);
}

void sw_sim_write_update(struct sw_sim_write *write)
{
    sw_sim_object_unref(write->old);
    write->old = NULL;
    const struct sw_sim_object *old =
        sw_sim_store_get(write->api->store, write->of.stored, write->of.namespace_, write->of.name);
    if (!old) {
        update_missing(write);
        return;
    }
    write->old = sw_sim_object_ref(old);
    json_t *refusal = build(write);
    if (refusal) {
        sw_sim_write_refuse(write, refusal);
        return;
    }
    show(write);
    sw_sim_write_ask(write, true, update_complete);
}
