/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Server-side apply, and who owns what after other writes. A manager of metadata.managedFields is
 * known by its name, its operation and, for updates, the version that it wrote in. Like the real
 * server of v1.20, subresources are not told apart, and an object that was never tracked stays so
 * until it is applied ("before-first-apply" then owns what was there).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/time.h"
#include "base/util.h"
#include "cursor.h"
#include "document.h"
#include "field_set.h"
#include "kind.h"
#include "patch.h"

#define MANAGERS_MAX 10 /* updaters; the oldest beyond are put together */

/* ---- the list of managers ---- */

/* {"manager", "operation", "apiVersion", "time", "set"}; the set in our form (field_set.h). */
static json_t *new_manager(const char *name, const char *operation, const char *version,
                           json_t *set_take)
{
    return json_pack("{s:s, s:s, s:s, s:o}", "manager", name, "operation", operation, "apiVersion",
                     version, "set", set_take);
}

static json_t *read_managers(const json_t *object)
{
    json_t *list = json_array();
    const json_t *given = sw_sim_at(object, "metadata.managedFields");
    for (size_t i = 0; i < json_array_size(given); i++) {
        const json_t *entry = json_array_get(given, i);
        const json_t *fields = sw_sim_at(entry, "fieldsV1");
        if (!json_is_object(fields)) {
            continue;
        }
        json_t *made =
            new_manager(sw_sim_text_at(entry, "manager"), sw_sim_text_at(entry, "operation"),
                        sw_sim_text_at(entry, "apiVersion"), sw_sim_set_read(fields));
        json_object_set(made, "time", json_object_get(entry, "time"));
        json_array_append_new(list, made);
    }
    return list;
}

static bool is_text(const json_t *entry, const char *name, const char *text)
{
    return strcmp(sw_sim_text_at(entry, name), text) == 0;
}

static int find_manager(const json_t *list, const char *name, const char *operation,
                        const char *version)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        if (is_text(entry, "manager", name) && is_text(entry, "operation", operation) &&
            (strcmp(operation, "Apply") == 0 || is_text(entry, "apiVersion", version))) {
            return (int)i;
        }
    }
    return -1;
}

/* Those who apply first; then by age, then by name. */
static int compare_managers(const void *a, const void *b)
{
    static const char *const keys[] = {"operation", "time", "manager", "apiVersion"};
    json_t *const *left = a;
    json_t *const *right = b;
    for (size_t i = 0; i < SW_ARRAY_SIZE(keys); i++) {
        int order = strcmp(sw_sim_text_at(*left, keys[i]), sw_sim_text_at(*right, keys[i]));
        if (order) {
            return order;
        }
    }
    return 0;
}

static void sort_managers(json_t *list)
{
    size_t count = json_array_size(list);
    json_t **entries = sw_calloc(count + 1, sizeof(*entries));
    for (size_t i = 0; i < count; i++) {
        entries[i] = json_incref(json_array_get(list, i));
    }
    qsort(entries, count, sizeof(json_t *), compare_managers);
    json_array_clear(list);
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(list, entries[i]);
    }
    sw_free(entries);
}

static size_t count_updaters(const json_t *list)
{
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        count += is_text(json_array_get(list, i), "operation", "Update");
    }
    return count;
}

/* The oldest updaters of one version become "ancient-changes". */
static void cap_managers(json_t *list)
{
    sort_managers(list);
    size_t count = count_updaters(list);
    size_t first = json_array_size(list) - count;
    for (; count > MANAGERS_MAX; count--) {
        json_t *oldest = json_array_get(list, first);
        json_t *next = json_array_get(list, first + 1);
        json_t *both =
            sw_sim_set_union(json_object_get(oldest, "set"), json_object_get(next, "set"));
        json_object_set_new(next, "set", both);
        json_object_set_new(next, "manager", json_string("ancient-changes"));
        json_array_remove(list, first);
    }
}

static void write_managers(json_t *list, json_t *object)
{
    cap_managers(list);
    json_t *written = json_array();
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        json_t *made = json_pack(
            "{s:s, s:s, s:s, s:s, s:o}", "manager", sw_sim_text_at(entry, "manager"), "operation",
            sw_sim_text_at(entry, "operation"), "apiVersion", sw_sim_text_at(entry, "apiVersion"),
            "fieldsType", "FieldsV1", "fieldsV1", sw_sim_set_write(json_object_get(entry, "set")));
        if (sw_sim_at(entry, "time")) {
            json_object_set(made, "time", json_object_get(entry, "time"));
        }
        json_array_append_new(written, made);
    }
    json_t *metadata = sw_sim_need_object(object, "metadata");
    if (json_array_size(written) > 0) {
        json_object_set(metadata, "managedFields", written);
    } else {
        json_object_del(metadata, "managedFields");
    }
    json_decref(written);
}

/* ---- objects without it ---- */

/* A copy without metadata.managedFields; NULL gives an object as the server makes one, empty. */
static json_t *bare(const struct sw_sim_kind *kind, const json_t *object)
{
    json_t *made = object ? json_copy((json_t *)(uintptr_t)object) : json_object();
    json_t *metadata = json_copy(json_object_get(made, "metadata"));
    json_object_del(metadata, "managedFields");
    json_object_set_new(made, "metadata", metadata ? metadata : json_object());
    if (!object) {
        sw_sim_decode(kind, made, NULL);
        json_t *version = *kind->group ? json_sprintf("%s/%s", kind->group, kind->version)
                                       : json_string(kind->version);
        json_object_set_new(made, "apiVersion", version);
        json_object_set_new(made, "kind", json_string(kind->kind));
    }
    return made;
}

/* What the server itself writes belongs to nobody. */
static json_t *strip(json_t *set_take)
{
    static const char own[] =
        "{\"f:apiVersion\":{},\"f:kind\":{},\"f:metadata\":{\".\":{},\"f:name\":{},"
        "\"f:namespace\":{},\"f:creationTimestamp\":{},\"f:selfLink\":{},\"f:uid\":{},"
        "\"f:clusterName\":{},\"f:generation\":{},\"f:managedFields\":{},\"f:resourceVersion\":{}}"
        "}";
    json_t *text = json_loads(own, 0, NULL);
    json_t *set = sw_sim_set_read(text);
    json_t *made = sw_sim_set_difference(set_take, set);
    json_decref(text);
    json_decref(set);
    json_decref(set_take);
    return made;
}

/* ---- taking fields from managers ---- */

static void take_from(json_t *list, int except, const json_t *taken)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *entry = json_array_get(list, i);
        if ((int)i != except) {
            json_object_set_new(entry, "set",
                                sw_sim_set_difference(json_object_get(entry, "set"), taken));
        }
    }
}

static void drop_empty(json_t *list)
{
    for (size_t i = json_array_size(list); i-- > 0;) {
        if (sw_sim_set_is_empty(json_object_get(json_array_get(list, i), "set"))) {
            json_array_remove(list, i);
        }
    }
}

static void set_time(json_t *entry, int64_t wall_us)
{
    char text[SW_TIME_SIZE];
    sw_time_format(wall_us, text);
    json_object_set_new(entry, "time", json_string(text));
}

static json_t *version_text(const struct sw_sim_kind *kind)
{
    return *kind->group ? json_sprintf("%s/%s", kind->group, kind->version)
                        : json_string(kind->version);
}

/* ---- other writes ---- */

static bool is_reset(const json_t *object)
{
    const json_t *given = sw_sim_at(object, "metadata.managedFields");
    return given &&
           (json_array_size(given) == 0 ||
            (json_array_size(given) == 1 && json_object_size(json_array_get(given, 0)) == 0));
}

/* The manager owns the fields besides those that it owned already. */
static void give(json_t *list, const json_t *former, json_t *fields, const char *name,
                 const char *version, int64_t wall_us)
{
    if (sw_sim_set_is_empty(fields)) {
        return;
    }
    int at = find_manager(list, name, "Update", version);
    if (at < 0) {
        json_array_append_new(list, new_manager(name, "Update", version, json_object()));
        at = (int)json_array_size(list) - 1;
    }
    json_t *entry = json_array_get(list, (size_t)at);
    json_t *set = sw_sim_set_union(json_object_get(entry, "set"), fields);
    bool is_same = former && sw_sim_is_same(set, json_object_get(former, "set"));
    json_object_set(entry, "time", json_object_get(former, "time"));
    if (!is_same || !sw_sim_at(entry, "time")) {
        set_time(entry, wall_us);
    }
    json_object_set_new(entry, "set", set);
}

static void update_managers(json_t *list, const struct sw_sim_kind *kind, const json_t *before,
                            const json_t *after, const char *name, int64_t wall_us)
{
    struct sw_sim_cursor root = sw_sim_cursor_root(kind);
    struct sw_sim_comparison found;
    if (sw_sim_compare(&root, before, after, &found, NULL)) {
        return; /* lists without keys: as the real server, it leaves the managers as they are */
    }
    json_t *version = version_text(kind);
    int own = find_manager(list, name, "Update", json_string_value(version));
    json_t *former = own >= 0 ? json_copy(json_array_get(list, (size_t)own)) : NULL;
    json_t *written = sw_sim_set_union(found.added, found.modified);
    take_from(list, -1, written);
    take_from(list, -1, found.removed);
    drop_empty(list);
    json_t *fields = strip(sw_sim_set_difference(written, found.removed));
    give(list, former, fields, name, json_string_value(version), wall_us);
    json_decref(fields);
    json_decref(written);
    json_decref(former);
    json_decref(version);
    sw_sim_comparison_done(&found);
}

void sw_sim_track_fields(const json_t *before, json_t *after, const struct sw_sim_apply *apply)
{
    json_t *metadata = sw_sim_need_object(after, "metadata");
    if (is_reset(after)) {
        json_object_del(metadata, "managedFields");
        return;
    }
    json_t *list = read_managers(after);
    if (json_array_size(list) == 0) {
        json_decref(list);
        list = read_managers(before);
    }
    if (json_array_size(list) == 0 && before) {
        json_object_del(metadata, "managedFields");
        json_decref(list);
        return;
    }
    json_t *old = bare(apply->kind, before);
    json_t *new = bare(apply->kind, after);
    update_managers(list, apply->kind, old, new, apply->manager, apply->wall_us);
    write_managers(list, after);
    json_decref(list);
    json_decref(old);
    json_decref(new);
}

/* ---- apply ---- */

static void put_manager(struct sw_buf *text, const json_t *entry)
{
    sw_buf_printf(text, "\"%s\"", sw_sim_text_at(entry, "manager"));
    if (is_text(entry, "operation", "Update")) {
        sw_buf_printf(text, " using %s", sw_sim_text_at(entry, "apiVersion"));
    }
}

/* conflicts: for each manager its entry, the set being what is disputed. */
static int say_conflicts(const json_t *conflicts, struct sw_error *error)
{
    struct sw_buf text;
    sw_buf_init(&text, SIZE_MAX);
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(conflicts); i++) {
        const json_t *entry = json_array_get(conflicts, i);
        json_t *paths = json_array();
        sw_sim_set_paths(json_object_get(entry, "set"), paths);
        count += json_array_size(paths);
        sw_buf_puts(&text, i ? "\nconflicts with " : "conflicts with ");
        put_manager(&text, entry);
        sw_buf_puts(&text, ":");
        for (size_t p = 0; p < json_array_size(paths); p++) {
            sw_buf_printf(&text, "\n- %s", json_string_value(json_array_get(paths, p)));
        }
        json_decref(paths);
    }
    int code =
        sw_error_set(error, -EEXIST, "Apply failed with %zu conflicts: %s", count, text.bytes);
    if (count == 1) {
        const json_t *entry = json_array_get(conflicts, 0);
        json_t *paths = json_array();
        sw_sim_set_paths(json_object_get(entry, "set"), paths);
        sw_buf_clear(&text);
        put_manager(&text, entry);
        code = sw_error_set(error, -EEXIST, "Apply failed with 1 conflict: conflict with %s: %s",
                            text.bytes, json_string_value(json_array_get(paths, 0)));
        json_decref(paths);
    }
    sw_buf_done(&text);
    return code;
}

static int check_conflicts(const json_t *list, int own, const json_t *written,
                           struct sw_error *error)
{
    json_t *conflicts = json_array();
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *entry = json_array_get(list, i);
        json_t *both = sw_sim_set_intersection(json_object_get(entry, "set"), written);
        if ((int)i != own && !sw_sim_set_is_empty(both)) {
            json_t *conflict = json_copy(entry);
            json_object_set(conflict, "set", both);
            json_array_append_new(conflicts, conflict);
        }
        json_decref(both);
    }
    sort_managers(conflicts);
    int code = json_array_size(conflicts) ? say_conflicts(conflicts, error) : 0;
    json_decref(conflicts);
    return code;
}

/* new_take without what the manager applied the last time and nobody names any more. */
static json_t *prune(const struct sw_sim_cursor *root, json_t *new_take, const json_t *list,
                     const json_t *last)
{
    json_t *managed = json_object();
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *more = sw_sim_set_union(managed, json_object_get(json_array_get(list, i), "set"));
        json_decref(managed);
        managed = more;
    }
    json_t *all = NULL;
    json_t *left = NULL;
    json_t *pruned = sw_sim_without(root, new_take, last);
    if (sw_sim_set_of(root, new_take, &all, NULL) || sw_sim_set_of(root, pruned, &left, NULL)) {
        json_decref(all);
        json_decref(managed);
        json_decref(pruned);
        return new_take;
    }
    /* Back comes what others own, then what the manager never owned. */
    json_t *kept = sw_sim_set_union(left, managed);
    json_t *gone = sw_sim_set_difference(all, kept);
    json_t *owned = sw_sim_without(root, new_take, gone);
    json_t *left_owned = NULL;
    if (sw_sim_set_of(root, owned, &left_owned, NULL)) {
        left_owned = json_incref(left);
    }
    json_t *missing = sw_sim_set_difference(all, left_owned);
    json_t *own = sw_sim_set_intersection(missing, last);
    json_t *made = sw_sim_without(root, new_take, own);
    json_t *const done[] = {managed, all,   left,       pruned,  kept,
                            gone,    owned, left_owned, missing, own};
    for (size_t i = 0; i < SW_ARRAY_SIZE(done); i++) {
        json_decref(done[i]);
    }
    json_decref(new_take);
    return made;
}

static int check_patch(const json_t *patch, const struct sw_sim_kind *kind, struct sw_error *error)
{
    json_t *version = version_text(kind);
    const char *given = sw_sim_text_at(patch, "apiVersion");
    int code = 0;
    if (strcmp(given, json_string_value(version)) != 0) {
        code = sw_error_set(error, -EINVAL,
                            "Incorrect version specified in apply patch. Specified patch version: "
                            "%s, expected: %s",
                            given, json_string_value(version));
    } else if (sw_sim_at(patch, "metadata.managedFields")) {
        code = sw_error_set(error, -EINVAL, "metadata.managedFields must be nil");
    }
    json_decref(version);
    return code;
}

/* The managers afterwards are in list; *ret_new is the object without them. */
static int apply_bare(const json_t *live, const json_t *patch, const struct sw_sim_apply *apply,
                      json_t *list, json_t **ret_new, struct sw_error *error)
{
    struct sw_sim_cursor root = sw_sim_cursor_root(apply->kind);
    json_t *set = NULL;
    json_t *made = NULL;
    int code = sw_sim_set_of(&root, patch, &set, error);
    code = code ? code : sw_sim_lay_over(&root, live, patch, &made, error);
    if (code) {
        sw_error_prefix(error, "failed to create typed patch object");
        json_decref(set);
        return code;
    }
    json_t *version = version_text(apply->kind);
    int own = find_manager(list, apply->manager, "Apply", "");
    json_t *former = own >= 0 ? json_deep_copy(json_array_get(list, (size_t)own)) : NULL;
    json_t *entry = new_manager(apply->manager, "Apply", json_string_value(version), set);
    json_object_set(entry, "time", json_object_get(former, "time"));
    json_decref(version);
    if (own >= 0) {
        json_array_set_new(list, (size_t)own, entry);
        made = prune(&root, made, list, json_object_get(former, "set"));
    } else {
        json_array_append_new(list, entry);
        own = (int)json_array_size(list) - 1;
    }
    struct sw_sim_comparison found;
    code = sw_sim_compare(&root, live, made, &found, error);
    if (!code) {
        json_t *written = sw_sim_set_union(found.added, found.modified);
        code = apply->is_forced ? 0 : check_conflicts(list, own, written, error);
        bool is_changed = !sw_sim_set_is_empty(written) || !sw_sim_set_is_empty(found.removed);
        take_from(list, own, written);
        take_from(list, own, found.removed);
        json_object_set_new(entry, "set", strip(json_incref(json_object_get(entry, "set"))));
        if (is_changed || !former ||
            !sw_sim_is_same(json_object_get(former, "set"), json_object_get(entry, "set"))) {
            set_time(entry, apply->wall_us);
        }
        drop_empty(list);
        json_decref(written);
        sw_sim_comparison_done(&found);
    }
    json_decref(former);
    if (code) {
        json_decref(made);
        return code;
    }
    *ret_new = made;
    return 0;
}

json_t *sw_sim_apply_patch(const json_t *document, const json_t *patch,
                           const struct sw_sim_apply *apply, struct sw_error *error)
{
    if (check_patch(patch, apply->kind, error)) {
        return NULL;
    }
    json_t *live = bare(apply->kind, document);
    json_t *list = read_managers(document);
    if (document && json_array_size(list) == 0) {
        json_t *nothing = bare(apply->kind, NULL);
        update_managers(list, apply->kind, nothing, live, "before-first-apply", apply->wall_us);
        json_decref(nothing);
    }
    json_t *made = NULL;
    json_t *new = NULL;
    if (!apply_bare(live, patch, apply, list, &made, error)) {
        new = bare(apply->kind, made); /* its metadata is our own to change */
        write_managers(list, new);
    }
    json_decref(made);
    json_decref(live);
    json_decref(list);
    return new;
}
