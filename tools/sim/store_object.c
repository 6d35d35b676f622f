/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects: names, text, and the document that is made from the text when it is not there. Those
 * that have a document are on the shelf of their store; trimming it goes round like a clock: what
 * was used since the last round stays for another.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "kind.h"
#include "store_internal.h"
#include "text_path.h"
#include "value.h"

/* ---- the shelf ---- */

struct sw_sim_shelf *sw_sim_shelf_new(void)
{
    struct sw_sim_shelf *shelf = SW_NEW(struct sw_sim_shelf);
    shelf->refs = 1;
    shelf->max = SIZE_MAX;
    sw_buf_init(&shelf->scratch, SIZE_MAX);
    sw_link_init(&shelf->objects);
    return shelf;
}

void sw_sim_shelf_unref(struct sw_sim_shelf *shelf)
{
    sw_assert(shelf->refs > 0);
    if (--shelf->refs == 0) {
        sw_buf_done(&shelf->scratch);
        sw_free(shelf);
    }
}

static void put_on_shelf(struct sw_sim_object *object)
{
    struct sw_sim_shelf *shelf = object->shelf;
    if (!object->kind->is_namespaced) {
        return;
    }
    sw_link_add_last(&shelf->objects, &object->link);
    shelf->count++;
    if (shelf->count > shelf->max && !shelf->is_told && shelf->on_full) {
        shelf->is_told = true;
        shelf->on_full(shelf->arg);
    }
}

static void take_from_shelf(struct sw_sim_object *object)
{
    if (sw_link_is_used(&object->link)) {
        sw_link_remove(&object->link);
        object->shelf->count--;
    }
}

void sw_sim_shelf_trim(struct sw_sim_shelf *shelf)
{
    shelf->is_told = false;
    if (shelf->count <= shelf->max) {
        return;
    }
    /* A few more than are too many, so that the next one does not begin this anew. */
    size_t goal = shelf->max - shelf->max / 8;
    while (shelf->count > goal) {
        struct sw_sim_object *object =
            container_of(shelf->objects.next, struct sw_sim_object, link);
        if (object->was_used) {
            object->was_used = false;
            sw_link_add_last(&shelf->objects, &object->link);
            continue;
        }
        sw_sim_object_text(object, NULL);
        take_from_shelf(object);
        json_decref(object->document);
        object->document = NULL;
    }
}

/* ---- life ---- */

/* Those who share an object see the same; that it has a document or not is no difference. */
static struct sw_sim_object *own(const struct sw_sim_object *object)
{
    return (struct sw_sim_object *)(uintptr_t)object;
}

const struct sw_sim_object *sw_sim_object_ref(const struct sw_sim_object *object)
{
    own(object)->refs++;
    return object;
}

void sw_sim_object_unref(const struct sw_sim_object *object)
{
    if (!object) {
        return;
    }
    struct sw_sim_object *mine = own(object);
    sw_assert(mine->refs > 0);
    if (--mine->refs == 0) {
        take_from_shelf(mine);
        sw_sim_shelf_unref(mine->shelf);
        json_decref(mine->document);
        sw_free(mine->text);
        sw_free(mine);
    }
}

/* The key and what stands alone: "namespace/name", "namespace", "uid". */
static void write_names(struct sw_sim_object *object, const char *namespace_, const char *name,
                        const char *uid)
{
    size_t space_size = strlen(namespace_) + 1, name_size = strlen(name) + 1;
    char *at = object->names;
    object->key = at;
    if (object->kind->is_namespaced) {
        memcpy(at, namespace_, space_size - 1);
        at[space_size - 1] = '/';
        at += space_size;
    }
    object->name = memcpy(at, name, name_size);
    at += name_size;
    object->namespace_ = memcpy(at, namespace_, space_size);
    at += space_size;
    object->uid = memcpy(at, uid, strlen(uid) + 1);
}

struct sw_sim_object *sw_sim_object_new(struct sw_sim_shelf *shelf, const struct sw_sim_kind *kind,
                                        json_t *json, uint64_t version)
{
    json = sw_sim_own_take(json);
    json_t *metadata = json_object_get(json, "metadata");
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, version);
    json_object_set_new_nocheck(metadata, "resourceVersion", json_string_nocheck(text));
    const char *namespace_ = kind->is_namespaced ? sw_sim_text(metadata, "namespace", "") : "";
    const char *name = sw_sim_text(metadata, "name", "");
    const char *uid = sw_sim_text(metadata, "uid", "");
    size_t size = 2 * (strlen(namespace_) + 1) + strlen(name) + 1 + strlen(uid) + 1;
    struct sw_sim_object *object = sw_calloc(1, sizeof(*object) + size);
    object->kind = kind;
    object->version = version;
    object->document = json;
    object->refs = 1;
    object->shelf = shelf;
    shelf->refs++;
    sw_link_init(&object->link);
    write_names(object, namespace_, name, uid);
    put_on_shelf(object);
    return object;
}

/* ---- as text and as document ---- */

const char *sw_sim_object_text(const struct sw_sim_object *object, size_t *ret_len)
{
    struct sw_sim_object *mine = own(object);
    if (!mine->text) {
        struct sw_buf *out = &mine->shelf->scratch;
        sw_buf_clear(out);
        sw_sim_dump(out, mine->document);
        mine->text = sw_strndup(out->bytes, out->len);
        mine->text_len = out->len;
    }
    if (ret_len) {
        *ret_len = mine->text_len;
    }
    return mine->text;
}

/* Of a text that was made here. */
static json_t *parse(const char *text, size_t len)
{
    json_t *json = json_loadb(text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    sw_assert(json);
    return json;
}

const json_t *sw_sim_object_json(const struct sw_sim_object *object)
{
    struct sw_sim_object *mine = own(object);
    if (!mine->document) {
        mine->document = parse(mine->text, mine->text_len);
        put_on_shelf(mine);
    }
    mine->was_used = true;
    return mine->document;
}

json_t *sw_sim_object_share(const struct sw_sim_object *object)
{
    return object->document ? sw_sim_share(object->document)
                            : parse(object->text, object->text_len);
}

json_t *sw_sim_object_at(const struct sw_sim_object *object, const char *path)
{
    if (object->document) {
        return sw_sim_share(sw_sim_at(object->document, path));
    }
    const char *value;
    size_t len;
    if (!sw_sim_text_path(object->text, object->text_len, path, &value, &len) || *value == 'n') {
        return NULL;
    }
    return parse(value, len);
}
