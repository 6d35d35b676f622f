/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and changing Kubernetes objects as jansson documents. */
#include "look.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "base/util.h"
#include "store.h"

const json_t *sw_look_at(const json_t *json, ...)
{
    va_list keys;
    va_start(keys, json);
    for (const char *key; json && (key = va_arg(keys, const char *));)
        json = json_object_get(json, key);
    va_end(keys);
    return json;
}

const char *sw_look_string(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

int64_t sw_look_int(const json_t *object, const char *key, int64_t otherwise)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

bool sw_look_bool(const json_t *object, const char *key, bool otherwise)
{
    const json_t *value = json_object_get(object, key);
    return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

const json_t *sw_look_element(const json_t *array, const char *key, const char *value)
{
    size_t at;
    json_t *one;
    json_array_foreach(array, at, one)
    {
        if (strcmp(sw_look_string(one, key), value) == 0)
            return one;
    }
    return NULL;
}

const json_t *sw_look_meta(const struct sw_sim_object *object)
{
    return json_object_get(sw_sim_object_json(object), "metadata");
}

bool sw_look_is_deleted(const struct sw_sim_object *object)
{
    return json_is_string(json_object_get(sw_look_meta(object), "deletionTimestamp"));
}

int64_t sw_look_generation(const struct sw_sim_object *object)
{
    return sw_look_int(sw_look_meta(object), "generation", 0);
}

int64_t sw_look_created_us(const struct sw_sim_object *object)
{
    return sw_look_time_us(sw_look_meta(object), "creationTimestamp");
}

const json_t *sw_look_controller_of(const json_t *json)
{
    size_t at;
    json_t *one;
    json_array_foreach(sw_look_at(json, "metadata", "ownerReferences", NULL), at, one)
    {
        if (json_is_true(json_object_get(one, "controller")))
            return one;
    }
    return NULL;
}

int64_t sw_look_time_us(const json_t *object, const char *key)
{
    const char *text = sw_look_string(object, key);
    int64_t wall_us = 0;
    return sw_time_parse(text, strlen(text), &wall_us) ? 0 : wall_us;
}

int64_t sw_look_scaled(const json_t *value, int64_t total, bool rounds_up, int64_t otherwise)
{
    if (json_is_integer(value))
        return json_integer_value(value);
    const char *text = json_string_value(value);
    if (!text)
        return otherwise;
    int64_t product = strtoll(text, NULL, 10) * total;
    return rounds_up ? (product + 99) / 100 : product / 100;
}

/* ---- selectors and templates ---- */

static bool has_value(const json_t *values, const char *value)
{
    size_t at;
    json_t *one;
    json_array_foreach(values, at, one)
    {
        if (json_is_string(one) && strcmp(json_string_value(one), value) == 0)
            return true;
    }
    return false;
}

static bool expression_matches(const json_t *expression, const json_t *labels)
{
    const char *value =
        json_string_value(json_object_get(labels, sw_look_string(expression, "key")));
    const char *operation = sw_look_string(expression, "operator");
    const json_t *values = json_object_get(expression, "values");
    if (strcmp(operation, "In") == 0)
        return value && has_value(values, value);
    if (strcmp(operation, "NotIn") == 0)
        return !value || !has_value(values, value);
    if (strcmp(operation, "Exists") == 0)
        return value != NULL;
    return strcmp(operation, "DoesNotExist") == 0 && !value;
}

bool sw_look_selects(const json_t *selector, const json_t *labels)
{
    const json_t *wanted = json_object_get(selector, "matchLabels");
    const json_t *expressions = json_object_get(selector, "matchExpressions");
    if (json_object_size(wanted) == 0 && json_array_size(expressions) == 0)
        return false;
    const char *key;
    json_t *value;
    json_object_foreach(sw_look_loose(wanted), key, value)
    {
        if (!json_equal(value, json_object_get(labels, key)))
            return false;
    }
    size_t at;
    json_array_foreach(expressions, at, value)
    {
        if (!expression_matches(value, labels))
            return false;
    }
    return true;
}

/* Of metadata alone: absent, null and empty are one, and the hash label does not count. */
static bool same_members(const json_t *a, const json_t *b, bool is_labels)
{
    size_t counts[2] = {0, 0};
    const json_t *sides[2] = {a, b};
    for (int side = 0; side < 2; side++) {
        const char *key;
        json_t *value;
        json_object_foreach(sw_look_loose(sides[side]), key, value)
        {
            bool is_nothing =
                json_is_null(value) || (json_is_object(value) && !json_object_size(value));
            if (is_nothing || (is_labels && strcmp(key, "pod-template-hash") == 0))
                continue;
            if (!is_labels && strcmp(key, "labels") == 0)
                continue;
            counts[side]++;
            if (side == 0 && !json_equal(value, json_object_get(b, key)))
                return false;
        }
    }
    return counts[0] == counts[1];
}

bool sw_look_same_template(const json_t *a, const json_t *b)
{
    const json_t *meta_a = json_object_get(a, "metadata"), *meta_b = json_object_get(b, "metadata");
    const json_t *spec_a = json_object_get(a, "spec"), *spec_b = json_object_get(b, "spec");
    return (spec_a == spec_b || json_equal(spec_a, spec_b)) &&
           same_members(json_object_get(meta_a, "labels"), json_object_get(meta_b, "labels"),
                        true) &&
           same_members(meta_a, meta_b, false);
}

/* ---- changing ---- */

json_t *sw_look_share(const json_t *json)
{
    return json_incref(sw_look_loose(json));
}

json_t *sw_look_copy(const json_t *json)
{
    return json_copy(sw_look_loose(json));
}

json_t *sw_look_own(json_t *object, const char *key)
{
    const json_t *before = json_object_get(object, key);
    json_t *mine =
        json_is_object(before) || json_is_array(before) ? sw_look_copy(before) : json_object();
    json_object_set_new(object, key, mine);
    return mine;
}

void sw_look_set_count(json_t *object, const char *key, int64_t count)
{
    if (count)
        json_object_set_new(object, key, json_integer(count));
    else
        json_object_del(object, key);
}

json_t *sw_look_with_status(const struct sw_sim_object *object, json_t *status_take)
{
    json_t *json = sw_look_copy(sw_sim_object_json(object));
    json_object_set_new(json, "status", status_take);
    return json;
}

json_t *sw_look_time(int64_t wall_us)
{
    char text[SW_TIME_SIZE];
    sw_time_format(wall_us, text);
    return json_string(text);
}

json_t *sw_look_controller_reference(const struct sw_sim_object *owner)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:b, s:b}", "apiVersion",
                     sw_look_string(sw_sim_object_json(owner), "apiVersion"), "kind",
                     sw_look_string(sw_sim_object_json(owner), "kind"), "name", owner->name, "uid",
                     owner->uid, "controller", 1, "blockOwnerDeletion", 1);
}

/* FNV-1a in 32 bits over the canonical text; the decimal digits then become letters that make no
 * words, as https://github.com/kubernetes/kubernetes/pull/50670 has it. */
static int feed_hash(const char *bytes, size_t len, void *arg)
{
    uint32_t *hash = arg;
    for (size_t i = 0; i < len; i++)
        *hash = (*hash ^ (unsigned char)bytes[i]) * 16777619u;
    return 0;
}

void sw_look_hash(const json_t *json, int64_t collisions, char text[SW_LOOK_HASH_SIZE])
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    uint32_t hash = 2166136261u;
    json_dump_callback(json, feed_hash, &hash, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    feed_hash((const char *)&collisions, sizeof(collisions), &hash);
    snprintf(text, SW_LOOK_HASH_SIZE, "%" PRIu32, hash);
    for (char *digit = text; *digit; digit++)
        *digit = letters[(unsigned char)*digit % (sizeof(letters) - 1)];
}
