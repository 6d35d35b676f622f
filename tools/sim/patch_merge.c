/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON merge patch. In one point the real server is not RFC 7386: a list of the patch that replaces
 * or adds a value loses its null elements as well. What does not change is shared with the
 * document.
 */
#include "document.h"
#include "patch.h"

static json_t *without_nulls(const json_t *value)
{
    if (json_is_object(value)) {
        json_t *made = json_object();
        const char *name;
        json_t *member;
        json_object_foreach((json_t *)(uintptr_t)value, name, member)
        {
            if (!json_is_null(member)) {
                json_object_set_new_nocheck(made, name, without_nulls(member));
            }
        }
        return made;
    }
    if (json_is_array(value)) {
        json_t *made = json_array();
        size_t i;
        json_t *element;
        json_array_foreach((json_t *)(uintptr_t)value, i, element)
        {
            if (!json_is_null(element)) {
                json_array_append_new(made, without_nulls(element));
            }
        }
        return made;
    }
    return json_incref((json_t *)(uintptr_t)value);
}

static json_t *merge(const json_t *document, const json_t *patch)
{
    if (!json_is_object(document) || !json_is_object(patch)) {
        return without_nulls(patch);
    }
    json_t *made = json_copy((json_t *)(uintptr_t)document);
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)(uintptr_t)patch, name, member)
    {
        if (json_is_null(member)) {
            json_object_del(made, name);
        } else {
            json_object_set_new_nocheck(made, name, merge(json_object_get(document, name), member));
        }
    }
    return made;
}

json_t *sw_sim_merge_patch(const json_t *document, const json_t *patch)
{
    return merge(document, patch);
}
