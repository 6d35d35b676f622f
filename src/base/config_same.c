/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two loaded configurations side by side, by the schema: which bytes mean something only it knows.
 */
#include <cyaml/cyaml.h>
#include <string.h>

#include <slipway/config.h>

#include "base/config.h"
#include "base/config_check.h"
#include "base/util.h"

static bool is_same(const struct cyaml_schema_value *schema, const char *a, const char *b,
                    uint64_t count);

static const char *target_of(const char *data)
{
    const char *target;

    memcpy(&target, data, sizeof(target));
    return target;
}

/* How many entries a list has stands beside it, in an integer of any size. */
static uint64_t count_of(const struct cyaml_schema_field *field, const char *data)
{
    uint64_t count = 0;

    if (field->value.type == CYAML_SEQUENCE_FIXED)
        return field->value.sequence.max;
    if (field->value.type != CYAML_SEQUENCE)
        return 0;
    sw_assert(field->count_size <= sizeof(count));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(&count, data + field->count_offset, field->count_size);
#else
    memcpy((char *)&count + sizeof(count) - field->count_size, data + field->count_offset,
           field->count_size);
#endif
    return count;
}

static bool are_members_same(const struct cyaml_schema_value *schema, const char *a, const char *b)
{
    for (const struct cyaml_schema_field *f = schema->mapping.fields; f->key; f++) {
        uint64_t count = count_of(f, a);
        if (count != count_of(f, b) ||
            !is_same(&f->value, a + f->data_offset, b + f->data_offset, count))
            return false;
    }
    return true;
}

static bool are_entries_same(const struct cyaml_schema_value *entry, const char *a, const char *b,
                             uint64_t count)
{
    size_t stride = entry->flags & CYAML_FLAG_POINTER ? sizeof(void *) : entry->data_size;
    /* libcyaml knows no list of lists, but of such with a fixed length. */
    uint64_t inner = entry->type == CYAML_SEQUENCE_FIXED ? entry->sequence.max : 0;

    for (uint64_t i = 0; i < count; i++)
        if (!is_same(entry, a + i * stride, b + i * stride, inner))
            return false;
    return true;
}

/* count: of a list. */
static bool is_same(const struct cyaml_schema_value *schema, const char *a, const char *b,
                    uint64_t count)
{
    if (schema->flags & CYAML_FLAG_POINTER) {
        a = target_of(a);
        b = target_of(b);
        if (!a || !b)
            return a == b;
    }
    switch (schema->type) {
    case CYAML_STRING:
        return strcmp(a, b) == 0;
    case CYAML_MAPPING:
        return are_members_same(schema, a, b);
    case CYAML_SEQUENCE:
    case CYAML_SEQUENCE_FIXED:
        return are_entries_same(schema->sequence.entry, a, b, count);
    case CYAML_IGNORE:
        return !sw_config_own_value(schema) || memcmp(a, b, schema->data_size) == 0;
    default:
        return memcmp(a, b, schema->data_size) == 0;
    }
}

bool sw_config_is_same(const struct cyaml_schema_value *schema, const void *a, const void *b)
{
    return are_members_same(schema, a, b);
}
