/* SPDX-License-Identifier: Apache-2.0 */
/* What include/slipway/object.h and kind.h offer to read a decoded object with. */
#include <slipway/object.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <slipway/kind.h>

const char *sw_labels_get(const struct sw_labels *labels, const char *key)
{
    uint32_t low = 0;
    uint32_t high = labels->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = strcmp(labels->at[middle].key, key);
        if (order == 0) {
            return labels->at[middle].value;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

const char *sw_annotation(const struct sw_object *object, const char *key)
{
    return sw_labels_get(&object->annotations, key);
}

const struct sw_condition *sw_condition_get(const struct sw_conditions *conditions,
                                            const char *type)
{
    for (uint32_t i = 0; i < conditions->count; i++) {
        if (strcmp(conditions->at[i].type, type) == 0) {
            return &conditions->at[i];
        }
    }
    return NULL;
}

bool sw_condition_is(const struct sw_conditions *conditions, const char *type, const char *status)
{
    const struct sw_condition *condition = sw_condition_get(conditions, type);
    return condition && strcmp(condition->status, status) == 0;
}

bool sw_hash128_equal(struct sw_hash128 a, struct sw_hash128 b)
{
    return a.high == b.high && a.low == b.low;
}

void sw_hash128_text(struct sw_hash128 hash, char text[33])
{
    snprintf(text, 33, "%016" PRIx64 "%016" PRIx64, hash.high, hash.low);
}

int32_t sw_int_or_percent_of(struct sw_int_or_percent value, int32_t want, bool rounds_up)
{
    if (!value.is_set || !value.is_percent) {
        return value.is_set ? value.value : 0;
    }
    int64_t hundredths = (int64_t)value.value * want;
    int64_t share = hundredths / 100;
    share += rounds_up && hundredths % 100 > 0;
    return share > INT32_MAX ? INT32_MAX : share < INT32_MIN ? INT32_MIN : (int32_t)share;
}
