/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks by walking tree and schema side by side. What is accepted here libcyaml accepts as well,
 * and with the same meaning; the reverse is not so: libcyaml takes any word for a boolean, "010"
 * for eight, and the word "null" for a text.
 */
#include "base/config_check.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <slipway/arena.h>
#include <slipway/config.h>

#include "base/error.h"
#include "base/nearest.h"
#include "base/time.h"
#include "base/util.h"
#include "base/yaml.h"

struct checker {
    struct sw_arena *arena;
    const char *name;
    struct sw_error *error;
};

/* ---- the schema ---- */

const struct sw_config_value *sw_config_own_value(const struct cyaml_schema_value *schema)
{
    if (schema->type != CYAML_IGNORE || !schema->sequence.entry) {
        return NULL;
    }
    /* head is its first member */
    const struct sw_config_value *own = (const void *)schema->sequence.entry;
    sw_assert(own->kind >= SW_CONFIG_KIND_INT && own->kind <= SW_CONFIG_KIND_DURATION);
    return own;
}

static bool is_case_free(const struct cyaml_schema_value *schema)
{
    return schema->flags & CYAML_FLAG_CASE_INSENSITIVE;
}

static const struct cyaml_schema_field *find_field(const struct cyaml_schema_value *schema,
                                                   const char *key)
{
    for (const struct cyaml_schema_field *f = schema->mapping.fields; f->key; f++) {
        if ((is_case_free(schema) ? strcasecmp(f->key, key) : strcmp(f->key, key)) == 0) {
            return f;
        }
    }
    return NULL;
}

static const struct sw_yaml *find_member(const struct cyaml_schema_value *schema,
                                         const struct sw_yaml *mapping, const char *key)
{
    for (const struct sw_yaml *m = mapping ? mapping->first : NULL; m; m = m->next) {
        if ((is_case_free(schema) ? strcasecmp(m->key, key) : strcmp(m->key, key)) == 0) {
            return m;
        }
    }
    return NULL;
}

static bool may_be_null(const struct cyaml_schema_value *schema)
{
    /* _NULL and _NULL_STR contain the bit of POINTER: all bits have to be there. */
    return (schema->flags & CYAML_FLAG_POINTER_NULL) == CYAML_FLAG_POINTER_NULL;
}

/* ---- numbers, booleans ---- */

/* Decimal or 0x. A leading zero means eight to some readers of YAML and ten to others: refused. */
static bool is_integer(const char *text)
{
    text += *text == '-' || *text == '+';
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        return text[2] && text[2 + strspn(text + 2, "0123456789abcdefABCDEF")] == '\0';
    }
    return *text && (text[0] != '0' || !text[1]) && text[strspn(text, "0123456789")] == '\0';
}

static bool read_int(const char *text, int64_t *ret_value)
{
    errno = 0;
    *ret_value = strtoll(text, NULL, 0);
    return is_integer(text) && errno == 0;
}

static bool read_uint(const char *text, uint64_t *ret_value)
{
    errno = 0;
    *ret_value = strtoull(text, NULL, 0); /* makes a large number of -1 */
    return is_integer(text) && errno == 0 && (*text != '-' || *ret_value == 0);
}

/* The words that libcyaml and YAML 1.1 agree on. */
static bool read_bool(const char *text, int64_t *ret_value)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};
    for (size_t i = 0; i < SW_ARRAY_SIZE(words); i++) {
        if (strcasecmp(text, words[i]) == 0) {
            *ret_value = i & 1;
            return true;
        }
    }
    return false;
}

static bool read_own(const struct sw_config_value *own, const char *text, int64_t *ret_value)
{
    uint64_t ms;
    switch (own->kind) {
    case SW_CONFIG_KIND_INT:
        return read_int(text, ret_value) && *ret_value >= own->min && *ret_value <= own->max;
    case SW_CONFIG_KIND_BOOL:
        return read_bool(text, ret_value);
    case SW_CONFIG_KIND_DURATION:
        if (sw_duration_parse(text, &ms)) {
            return false;
        }
        *ret_value = (int64_t)ms; /* at most 292 years */
        return *ret_value >= own->min && *ret_value <= own->max;
    }
    return false;
}

/* ---- saying what was expected ---- */

static const char *int_range(struct checker *c, int64_t min, int64_t max)
{
    if (min == INT64_MIN && max == INT64_MAX) {
        return "an integer";
    }
    if (max == INT64_MAX) {
        return sw_arena_printf(c->arena, "an integer of at least %lld", (long long)min);
    }
    return sw_arena_printf(c->arena, "an integer from %lld to %lld", (long long)min,
                           (long long)max);
}

static const char *duration(struct checker *c, int64_t ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
    const char *text = "";
    for (size_t i = 0; i < SW_ARRAY_SIZE(units); i++) {
        if (ms >= units[i].ms) {
            text = sw_arena_printf(c->arena, "%s%lld%s", text, (long long)(ms / units[i].ms),
                                   units[i].name);
            ms %= units[i].ms;
        }
    }
    return *text ? text : "0";
}

static const char *own_expectation(struct checker *c, const struct sw_config_value *own)
{
    switch (own->kind) {
    case SW_CONFIG_KIND_INT:
        return int_range(c, own->min, own->max);
    case SW_CONFIG_KIND_BOOL:
        return "true or false";
    case SW_CONFIG_KIND_DURATION:
        if (own->max == INT64_MAX) {
            return own->min > 0 ? sw_arena_printf(c->arena, "a duration of at least %s",
                                                  duration(c, own->min))
                                : "a duration like 90s or 1m30s";
        }
        return sw_arena_printf(c->arena, "a duration from %s to %s", duration(c, own->min),
                               duration(c, own->max));
    }
    return "";
}

static const char *one_of(struct checker *c, const struct cyaml_schema_value *schema)
{
    const char *text = "";
    for (uint32_t i = 0; i < schema->enumeration.count; i++) {
        text = sw_arena_printf(c->arena, "%s%s\"%s\"", text, i ? ", " : "",
                               schema->enumeration.strings[i].str);
    }
    return text;
}

/* "1 to 3", "at least 1", "3"; NULL where everything goes. */
static const char *amount(struct checker *c, uint32_t min, uint32_t max)
{
    if (max == CYAML_UNLIMITED) {
        return min ? sw_arena_printf(c->arena, "at least %u", min) : NULL;
    }
    return min == max ? sw_arena_printf(c->arena, "%u", min)
           : min      ? sw_arena_printf(c->arena, "%u to %u", min, max)
                      : sw_arena_printf(c->arena, "at most %u", max);
}

static const char *expectation(struct checker *c, const struct cyaml_schema_value *schema)
{
    const struct sw_config_value *own = sw_config_own_value(schema);
    if (own) {
        return own_expectation(c, own);
    }
    unsigned bits = schema->data_size * 8;
    const char *many;
    switch (schema->type) {
    case CYAML_INT:
        return bits >= 64
                   ? int_range(c, INT64_MIN, INT64_MAX)
                   : int_range(c, -(INT64_C(1) << (bits - 1)), (INT64_C(1) << (bits - 1)) - 1);
    case CYAML_UINT:
        return bits >= 64 ? int_range(c, 0, INT64_MAX) : int_range(c, 0, (INT64_C(1) << bits) - 1);
    case CYAML_BOOL:
        return "true or false";
    case CYAML_FLOAT:
        return "a number";
    case CYAML_ENUM:
        return sw_arena_printf(c->arena, "one of %s", one_of(c, schema));
    case CYAML_FLAGS:
        return sw_arena_printf(c->arena, "a list of %s", one_of(c, schema));
    case CYAML_STRING:
        many = amount(c, schema->string.min, schema->string.max);
        return !many ? "a text"
               : schema->string.min == 1 && schema->string.max == CYAML_UNLIMITED
                   ? "a text that is not empty"
                   : sw_arena_printf(c->arena, "a text of %s bytes", many);
    case CYAML_SEQUENCE:
    case CYAML_SEQUENCE_FIXED:
        many = amount(c, schema->sequence.min, schema->sequence.max);
        return many ? sw_arena_printf(c->arena, "a list of %s", many) : "a list ([] for none)";
    case CYAML_MAPPING:
    case CYAML_BITFIELD:
        return "a mapping ({} for an empty one)";
    default:
        return "something else";
    }
}

static const char *shown(struct checker *c, const struct sw_yaml *node)
{
    switch (node->type) {
    case SW_YAML_MAPPING:
        return "a mapping";
    case SW_YAML_SEQUENCE:
        return sw_arena_printf(c->arena, "a list of %zu", node->count);
    case SW_YAML_SCALAR:
        break;
    }
    return sw_yaml_is_null(node)
               ? "nothing"
               : sw_arena_printf(c->arena, "\"%s\"", sw_yaml_show(c->arena, node->text));
}

static int refuse(struct checker *c, const struct cyaml_schema_value *schema,
                  const struct sw_yaml *node)
{
    const char *path = sw_yaml_path(c->arena, node, NULL);
    return sw_error_set(c->error, SW_E_CONFIG, "%s:%zu: %s%sexpected %s, got %s", c->name,
                        node->line, path, *path ? ": " : "", expectation(c, schema),
                        shown(c, node));
}

/* ---- checking ---- */

static int check_value(struct checker *c, const struct cyaml_schema_value *schema,
                       const struct sw_yaml *node);

static bool is_listed(const struct cyaml_schema_value *schema, const char *text)
{
    for (uint32_t i = 0; i < schema->enumeration.count; i++) {
        const char *word = schema->enumeration.strings[i].str;
        if ((is_case_free(schema) ? strcasecmp(word, text) : strcmp(word, text)) == 0) {
            return true;
        }
    }
    return false;
}

static bool fits_bits(const struct cyaml_schema_value *schema, const char *text)
{
    unsigned bits = schema->data_size * 8;
    int64_t i;
    uint64_t u;
    if (schema->type == CYAML_UINT) {
        return read_uint(text, &u) && (bits >= 64 || u >> bits == 0);
    }
    return read_int(text, &i) &&
           (bits >= 64 || (i >= -(INT64_C(1) << (bits - 1)) && i < INT64_C(1) << (bits - 1)));
}

static bool is_number(const struct cyaml_schema_value *schema, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    double largest = schema->data_size == sizeof(float) ? (double)FLT_MAX : DBL_MAX;
    return *text && strchr("+-.0123456789", *text) && !*end && fabs(value) <= largest;
}

static bool is_good_scalar(const struct cyaml_schema_value *schema, const struct sw_yaml *node)
{
    const struct sw_config_value *own = sw_config_own_value(schema);
    size_t len = strlen(node->text);
    int64_t value;
    if (own) {
        return read_own(own, node->text, &value);
    }
    switch (schema->type) {
    case CYAML_INT:
    case CYAML_UINT:
        return fits_bits(schema, node->text);
    case CYAML_BOOL:
        return read_bool(node->text, &value);
    case CYAML_FLOAT:
        return is_number(schema, node->text);
    case CYAML_ENUM:
        return is_listed(schema, node->text);
    case CYAML_STRING:
        return !sw_yaml_is_null(node) && len >= schema->string.min && len <= schema->string.max;
    default:
        return false;
    }
}

static int refuse_unknown(struct checker *c, const struct cyaml_schema_value *schema,
                          const struct sw_yaml *node)
{
    const char *known = "";
    const char *nearest = NULL;
    size_t distance = SIZE_MAX;
    for (const struct cyaml_schema_field *f = schema->mapping.fields; f->key; f++) {
        sw_nearest(node->key, f->key, &nearest, &distance);
        known = sw_arena_printf(c->arena, "%s%s%s", known, *known ? ", " : "", f->key);
    }
    const char *hint = nearest  ? sw_arena_printf(c->arena, "did you mean \"%s\"?", nearest)
                       : *known ? sw_arena_printf(c->arena, "known here: %s", known)
                                : "no key is known here";
    return sw_error_set(c->error, SW_E_CONFIG, "%s:%zu: %s: unknown key; %s", c->name,
                        node->key_line, sw_yaml_path(c->arena, node, NULL), hint);
}

/* node NULL: no root. */
static int check_required(struct checker *c, const struct cyaml_schema_value *schema,
                          const struct sw_yaml *node)
{
    for (const struct cyaml_schema_field *f = schema->mapping.fields; f->key; f++) {
        bool is_ignored = f->value.type == CYAML_IGNORE && !sw_config_own_value(&f->value);
        if ((f->value.flags & CYAML_FLAG_OPTIONAL) || is_ignored ||
            find_member(schema, node, f->key)) {
            continue;
        }
        size_t line = !node ? 1 : node->key ? node->key_line : node->line;
        return sw_error_set(c->error, SW_E_CONFIG, "%s:%zu: %s: missing; expected %s", c->name,
                            line, sw_yaml_path(c->arena, node, f->key), expectation(c, &f->value));
    }
    return 0;
}

static int check_mapping(struct checker *c, const struct cyaml_schema_value *schema,
                         const struct sw_yaml *node)
{
    for (const struct sw_yaml *m = node->first; m; m = m->next) {
        const struct cyaml_schema_field *field = find_field(schema, m->key);
        int rc = field ? check_value(c, &field->value, m) : refuse_unknown(c, schema, m);
        if (rc) {
            return rc;
        }
    }
    return check_required(c, schema, node);
}

static int check_sequence(struct checker *c, const struct cyaml_schema_value *schema,
                          const struct sw_yaml *node)
{
    if (node->count < schema->sequence.min || node->count > schema->sequence.max) {
        return refuse(c, schema, node);
    }
    int rc = 0;
    for (const struct sw_yaml *m = node->first; m && !rc; m = m->next) {
        rc = check_value(c, schema->sequence.entry, m);
    }
    return rc;
}

static int check_flags(struct checker *c, const struct cyaml_schema_value *schema,
                       const struct sw_yaml *node)
{
    for (const struct sw_yaml *m = node->first; m; m = m->next) {
        if (m->type != SW_YAML_SCALAR || !is_listed(schema, m->text)) {
            return sw_error_set(c->error, SW_E_CONFIG, "%s:%zu: %s: expected one of %s, got %s",
                                c->name, m->line, sw_yaml_path(c->arena, m, NULL),
                                one_of(c, schema), shown(c, m));
        }
    }
    return 0;
}

static int check_value(struct checker *c, const struct cyaml_schema_value *schema,
                       const struct sw_yaml *node)
{
    if (may_be_null(schema) && sw_yaml_is_null(node)) {
        return 0;
    }
    switch (schema->type) {
    case CYAML_MAPPING:
        return node->type == SW_YAML_MAPPING ? check_mapping(c, schema, node)
                                             : refuse(c, schema, node);
    case CYAML_SEQUENCE:
    case CYAML_SEQUENCE_FIXED:
        return node->type == SW_YAML_SEQUENCE ? check_sequence(c, schema, node)
                                              : refuse(c, schema, node);
    case CYAML_FLAGS:
        return node->type == SW_YAML_SEQUENCE ? check_flags(c, schema, node)
                                              : refuse(c, schema, node);
    case CYAML_BITFIELD: /* its members are left to libcyaml: nobody uses one */
        return node->type == SW_YAML_MAPPING ? 0 : refuse(c, schema, node);
    case CYAML_IGNORE:
        if (!sw_config_own_value(schema)) {
            return 0;
        }
        break;
    default:
        break;
    }
    return node->type == SW_YAML_SCALAR && is_good_scalar(schema, node) ? 0
                                                                        : refuse(c, schema, node);
}

int sw_config_check(struct sw_arena *arena, const char *name,
                    const struct cyaml_schema_value *schema, const struct sw_yaml *root,
                    struct sw_error *error)
{
    struct checker c = {.arena = arena, .name = name, .error = error};
    return root ? check_value(&c, schema, root) : check_required(&c, schema, NULL);
}

/* ---- storing ---- */

static void store(void *at, uint32_t size, int64_t value)
{
    uint8_t u8 = (uint8_t)value;
    uint16_t u16 = (uint16_t)value;
    uint32_t u32 = (uint32_t)value;
    switch (size) {
    case 1:
        memcpy(at, &u8, size);
        return;
    case 2:
        memcpy(at, &u16, size);
        return;
    case 4:
        memcpy(at, &u32, size);
        return;
    default:
        sw_assert(size == sizeof(value));
        memcpy(at, &value, size);
    }
}

static void fill_value(const struct cyaml_schema_value *schema, char *data,
                       const struct sw_yaml *node);

static void fill_mapping(const struct cyaml_schema_value *schema, char *data,
                         const struct sw_yaml *node)
{
    for (const struct cyaml_schema_field *f = schema->mapping.fields; f->key; f++) {
        const struct sw_yaml *member = find_member(schema, node, f->key);
        const struct sw_config_value *own = sw_config_own_value(&f->value);
        if (own) {
            int64_t value = own->otherwise;
            sw_assert(!member || read_own(own, member->text, &value));
            store(data + f->data_offset, f->value.data_size, value);
        } else {
            fill_value(&f->value, data + f->data_offset, member);
        }
    }
}

static void fill_value(const struct cyaml_schema_value *schema, char *data,
                       const struct sw_yaml *node)
{
    if (schema->flags & CYAML_FLAG_POINTER) {
        void *target;
        memcpy(&target, data, sizeof(target));
        if (!target) {
            return;
        }
        data = target;
    }
    if (schema->type == CYAML_MAPPING) {
        fill_mapping(schema, data, node);
    } else if (schema->type == CYAML_SEQUENCE || schema->type == CYAML_SEQUENCE_FIXED) {
        const struct cyaml_schema_value *entry = schema->sequence.entry;
        size_t stride = entry->flags & CYAML_FLAG_POINTER ? sizeof(void *) : entry->data_size;
        for (const struct sw_yaml *m = node ? node->first : NULL; m; m = m->next) {
            fill_value(entry, data + m->index * stride, m);
        }
    }
}

void sw_config_fill(const struct cyaml_schema_value *schema, void *value,
                    const struct sw_yaml *root)
{
    fill_mapping(schema, value, root);
}
