/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for jansson values (value.h). */
#include "value.h"

#include <stdint.h>
#include <string.h>

#include "base/util.h"

json_t *sw_sim_share(const json_t *value)
{
    /* A reference count is not part of the value, but jansson's type knows no such difference. */
    return json_incref((json_t *)(uintptr_t)value);
}

const char *sw_sim_text(const json_t *object, const char *key, const char *otherwise)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : otherwise;
}

json_t *sw_sim_shallow(const json_t *object)
{
    return json_copy((json_t *)(uintptr_t)object);
}

json_t *sw_sim_own_member(json_t *object, const char *key)
{
    json_t *member = json_object_get(object, key);
    if (json_is_object(member) && member->refcount == 1) {
        return member;
    }
    member = json_is_object(member) ? json_copy(member) : json_object();
    json_object_set_new_nocheck(object, key, member);
    return member;
}

json_t *sw_sim_own(const json_t *object)
{
    json_t *copy = sw_sim_shallow(object);
    sw_sim_own_member(copy, "metadata");
    return copy;
}

json_t *sw_sim_own_take(json_t *object)
{
    if (object->refcount == 1) {
        sw_sim_own_member(object, "metadata");
        return object;
    }
    json_t *copy = sw_sim_own(object);
    json_decref(object);
    return copy;
}

void sw_sim_put(json_t *object, const char *key, json_t *value)
{
    if (value) {
        json_object_set_new_nocheck(object, key, value);
    } else {
        json_object_del(object, key);
    }
}

void sw_sim_put_text(json_t *object, const char *key, const char *text)
{
    sw_sim_put(object, key, text ? json_string_nocheck(text) : NULL);
}

bool sw_sim_holds(const json_t *array, const char *text)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        const char *element = json_string_value(json_array_get(array, i));
        if (element && strcmp(element, text) == 0) {
            return true;
        }
    }
    return false;
}

json_t *sw_sim_without_text(const json_t *array, const char *text)
{
    json_t *left = json_array();
    for (size_t i = 0; i < json_array_size(array); i++) {
        json_t *element = json_array_get(array, i);
        const char *value = json_string_value(element);
        if (!value || strcmp(value, text) != 0) {
            json_array_append(left, element);
        }
    }
    return left;
}
