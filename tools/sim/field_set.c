/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of paths: reading, writing, and what is done with two of them. */
#include "field_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "document.h"
#include "dump.h"

json_t *sw_sim_set_read(const json_t *fields_v1)
{
    json_t *made = json_object();
    const char *name;
    json_t *below;
    json_object_foreach((json_t *)(uintptr_t)fields_v1, name, below)
    {
        json_t *set = sw_sim_set_read(below);
        if (sw_sim_set_is_empty(set) && strcmp(name, ".") != 0) {
            json_object_set_new(set, ".", json_object());
        }
        json_object_set_new_nocheck(made, name, set);
    }
    return made;
}

json_t *sw_sim_set_write(const json_t *set)
{
    json_t *made = json_object();
    const char *name;
    json_t *below;
    json_object_foreach((json_t *)(uintptr_t)set, name, below)
    {
        bool is_end = json_object_size(below) == 1 && json_object_get(below, ".");
        json_object_set_new_nocheck(made, name, is_end ? json_object() : sw_sim_set_write(below));
    }
    return made;
}

json_t *sw_sim_set_union(const json_t *a, const json_t *b)
{
    json_t *made = json_copy((json_t *)(uintptr_t)a);
    const char *name;
    json_t *below;
    json_object_foreach((json_t *)(uintptr_t)b, name, below)
    {
        json_t *other = json_object_get(a, name);
        json_object_set_new_nocheck(made, name,
                                    other ? sw_sim_set_union(other, below) : json_incref(below));
    }
    return made;
}

static json_t *filter(const json_t *a, const json_t *b, bool wants_common)
{
    json_t *made = json_object();
    const char *name;
    json_t *below;
    json_object_foreach((json_t *)(uintptr_t)a, name, below)
    {
        const json_t *other = json_object_get(b, name);
        if (strcmp(name, ".") == 0 || !other) {
            if ((other != NULL) == wants_common) {
                json_object_set_nocheck(made, name, below);
            }
            continue;
        }
        json_t *rest = filter(below, other, wants_common);
        if (!sw_sim_set_is_empty(rest)) {
            json_object_set_nocheck(made, name, rest);
        }
        json_decref(rest);
    }
    return made;
}

json_t *sw_sim_set_difference(const json_t *a, const json_t *b)
{
    return filter(a, b, false);
}

json_t *sw_sim_set_intersection(const json_t *a, const json_t *b)
{
    return filter(a, b, true);
}

/* ---- paths as text ---- */

static void put_name(struct sw_buf *path, const char *name)
{
    if (*name == 'f') {
        sw_buf_printf(path, ".%s", name + 2);
        return;
    }
    if (*name != 'k') {
        sw_buf_printf(path, "[=%s]", name + 2);
        return;
    }
    json_t *keys = json_loads(name + 2, 0, NULL);
    const char *key;
    json_t *value;
    const char *before = "[";
    json_object_foreach(keys, key, value)
    {
        char *text = sw_sim_dump_as(value, JSON_ENCODE_ANY);
        sw_buf_printf(path, "%s%s=%s", before, key, text ? text : "");
        sw_free(text);
        before = ",";
    }
    sw_buf_puts(path, "]");
    json_decref(keys);
}

static int compare_names(const void *a, const void *b)
{
    const char *const *left = a;
    const char *const *right = b;
    return strcmp(*left, *right);
}

static void put_paths(const json_t *set, struct sw_buf *path, json_t *texts)
{
    if (json_object_get(set, ".")) {
        json_array_append_new(texts, json_string(path->bytes));
    }
    size_t count = json_object_size(set);
    const char **names = sw_calloc(count + 1, sizeof(*names));
    const char *name;
    json_t *below;
    size_t at = 0;
    json_object_foreach((json_t *)(uintptr_t)set, name, below)
    {
        names[at++] = name;
    }
    qsort(names, count, sizeof(*names), compare_names);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], ".") == 0) {
            continue;
        }
        struct sw_buf longer;
        sw_buf_init(&longer, SIZE_MAX);
        sw_buf_puts(&longer, path->bytes);
        put_name(&longer, names[i]);
        put_paths(json_object_get(set, names[i]), &longer, texts);
        sw_buf_done(&longer);
    }
    sw_free(names);
}

void sw_sim_set_paths(const json_t *set, json_t *ret_texts)
{
    struct sw_buf path;
    sw_buf_init(&path, SIZE_MAX);
    put_paths(set, &path, ret_texts);
    sw_buf_done(&path);
}
