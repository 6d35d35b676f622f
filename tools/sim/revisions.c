/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The history of a StatefulSet or DaemonSet: a ControllerRevision for each template it had. Putting
 * an older template back renews the revision of that template.
 * https://kubernetes.io/docs/tasks/manage-daemon/rollback-daemon-set/
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "base/util.h"
#include "controllers.h"
#include "look.h"

const json_t *sw_sim_revision_template(const struct sw_sim_object *revision)
{
    return sw_look_at(sw_sim_object_json(revision), "data", "spec", "template", NULL);
}

static int64_t number_of(const struct sw_sim_object *revision)
{
    return sw_look_int(sw_sim_object_json(revision), "revision", 0);
}

static int by_number(const void *left, const void *right)
{
    const struct sw_sim_object *a = *(const struct sw_sim_object *const *)left;
    const struct sw_sim_object *b = *(const struct sw_sim_object *const *)right;
    if (number_of(a) != number_of(b))
        return number_of(a) < number_of(b) ? -1 : 1;
    int64_t age_a = sw_look_created_us(a), age_b = sw_look_created_us(b);
    if (age_a != age_b)
        return age_a < age_b ? -1 : 1;
    return strcmp(a->name, b->name);
}

static void add(struct sw_sim_revisions *revisions, const struct sw_sim_object *object)
{
    revisions->at = sw_realloc(revisions->at, revisions->count + 1, sizeof(struct sw_sim_object *));
    revisions->at[revisions->count++] = sw_sim_object_ref(object);
}

static json_t *make(const struct sw_sim_object *owner, const char *label, int64_t number,
                    const char *hash, const char *name)
{
    const json_t *template = sw_look_at(sw_sim_object_json(owner), "spec", "template", NULL);
    json_t *data = json_deep_copy(sw_look_loose(template));
    json_object_set_new(data, "$patch", json_string("replace"));
    json_t *labels = json_object();
    json_object_update(labels, sw_look_loose(sw_look_at(template, "metadata", "labels", NULL)));
    json_object_set_new(labels, label, json_string(hash));
    json_t *references = json_array();
    json_array_append_new(references, sw_look_controller_reference(owner));
    json_t *revision =
        json_pack("{s:s, s:s, s:{s:s, s:s, s:o, s:o}, s:{s:{s:o}}, s:I}", "apiVersion", "apps/v1",
                  "kind", "ControllerRevision", "metadata", "name", name, "namespace",
                  owner->namespace_, "labels", labels, "ownerReferences", references, "data",
                  "spec", "template", data, "revision", (json_int_t)number);
    const json_t *annotations = json_object_get(sw_look_meta(owner), "annotations");
    if (annotations)
        json_object_set_new(json_object_get(revision, "metadata"), "annotations",
                            sw_look_copy(annotations));
    return revision;
}

/* A name that another template has already is passed over. */
static int create(struct sw_sim_workloads *workloads, const struct sw_sim_object *owner,
                  const char *label, int64_t number, struct sw_sim_revisions *revisions)
{
    const struct sw_sim_kind *kind = sw_sim_kind_of(workloads, SW_SIM_REVISIONS);
    const json_t *template = sw_look_at(sw_sim_object_json(owner), "spec", "template", NULL);
    for (;;) {
        char hash[SW_LOOK_HASH_SIZE];
        sw_look_hash(template, revisions->collisions, hash);
        SW_AUTO(char, sw_free) name = sw_asprintf("%s-%s", owner->name, hash);
        const struct sw_sim_object *made = NULL;
        int result =
            sw_sim_create(workloads->api, kind, make(owner, label, number, hash, name), &made);
        if (result == -EEXIST) {
            made = sw_sim_store_get(workloads->store, kind, owner->namespace_, name);
            if (!made)
                return result;
            if (!sw_look_same_template(template, sw_sim_revision_template(made))) {
                revisions->collisions++;
                continue;
            }
            result = 0;
        }
        if (result)
            return result;
        add(revisions, made);
        revisions->update = made;
        return 0;
    }
}

static int renew(struct sw_sim_workloads *workloads, struct sw_sim_revisions *revisions, size_t at,
                 int64_t number)
{
    const struct sw_sim_object *old = revisions->at[at];
    json_t *json = sw_look_copy(sw_sim_object_json(old));
    json_object_set_new(json, "revision", json_integer(number));
    int result = sw_sim_update(workloads->api, old->kind, json);
    revisions->update = old; /* its name is what counts */
    return result;
}

int sw_sim_revisions_find(struct sw_sim_workloads *workloads, const struct sw_sim_object *owner,
                          const char *label, struct sw_sim_revisions *revisions)
{
    *revisions = (struct sw_sim_revisions){
        .collisions =
            sw_look_int(json_object_get(sw_sim_object_json(owner), "status"), "collisionCount", 0)};
    struct sw_sim_items items;
    int result = sw_sim_claim(workloads, SW_SIM_REVISIONS, owner, NULL, &items);
    for (size_t i = 0; i < items.count; i++)
        add(revisions, items.at[i]->object);
    sw_sim_items_done(&items);
    if (result)
        return result;
    if (revisions->count)
        qsort(revisions->at, revisions->count, sizeof(struct sw_sim_object *), by_number);

    const json_t *template = sw_look_at(sw_sim_object_json(owner), "spec", "template", NULL);
    size_t last = revisions->count, found = revisions->count;
    for (size_t i = 0; i < last; i++) {
        if (sw_look_same_template(template, sw_sim_revision_template(revisions->at[i])))
            found = i;
    }
    int64_t next = last ? number_of(revisions->at[last - 1]) + 1 : 1;
    if (found == last)
        return create(workloads, owner, label, next, revisions);
    if (found + 1 < last)
        return renew(workloads, revisions, found, next);
    revisions->update = revisions->at[found];
    return 0;
}

void sw_sim_revisions_truncate(struct sw_sim_workloads *workloads,
                               const struct sw_sim_object *owner,
                               const struct sw_sim_revisions *revisions,
                               bool (*is_live)(void *arg, const struct sw_sim_object *revision),
                               void *arg)
{
    int64_t surplus = -sw_look_int(json_object_get(sw_sim_object_json(owner), "spec"),
                                   "revisionHistoryLimit", 10);
    for (size_t i = 0; i < revisions->count; i++)
        surplus += !is_live(arg, revisions->at[i]);
    for (size_t i = 0; i < revisions->count && surplus > 0; i++) {
        if (!is_live(arg, revisions->at[i])) {
            sw_sim_delete(workloads->api, revisions->at[i], -1, NULL);
            surplus--;
        }
    }
}

void sw_sim_revisions_done(struct sw_sim_revisions *revisions)
{
    for (size_t i = 0; i < revisions->count; i++)
        sw_sim_object_unref(revisions->at[i]);
    sw_free(revisions->at);
    *revisions = (struct sw_sim_revisions){0};
}
