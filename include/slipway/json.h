/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON that we build to send, and small JSON that we read. A value belongs to the arena it was made
 * in and is freed with it. Setting a member to NULL where a value is expected means JSON null.
 * What the API server sends in bulk is never read through this: kinds (kind.h) bind it to C
 * structs.
 *
 * Strings must be UTF-8; what is not is replaced by U+FFFD. A value that was made with an arena may
 * be put into several places and stays usable when it is taken out of one; what sw_json_set_object
 * and its kin return is gone once its member is set to something else. A value must not be put into
 * itself, directly or by a detour.
 */
#ifndef SLIPWAY_JSON_H
#define SLIPWAY_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slipway/arena.h>

struct sw_json;

enum sw_json_type {
    SW_JSON_NULL,
    SW_JSON_BOOL,
    SW_JSON_INT,
    SW_JSON_REAL,
    SW_JSON_STRING,
    SW_JSON_ARRAY,
    SW_JSON_OBJECT,
};

SW_API SW_NONNULL struct sw_json *sw_json_object(struct sw_arena *arena);
SW_API SW_NONNULL struct sw_json *sw_json_array(struct sw_arena *arena);
SW_API SW_NONNULL struct sw_json *sw_json_string(struct sw_arena *arena, const char *text);
SW_API SW_NONNULL struct sw_json *sw_json_int(struct sw_arena *arena, int64_t value);
/* value is finite: JSON knows no other. */
SW_API SW_NONNULL struct sw_json *sw_json_real(struct sw_arena *arena, double value);
SW_API SW_NONNULL struct sw_json *sw_json_bool(struct sw_arena *arena, bool value);
SW_API SW_NONNULL struct sw_json *sw_json_null(struct sw_arena *arena);

/* Members of an object. A key set twice keeps the last value. NULL value: JSON null. */
SW_API void sw_json_set(struct sw_json *object, const char *key, struct sw_json *value);
SW_API void sw_json_set_string(struct sw_json *object, const char *key, const char *text);
SW_API void sw_json_set_int(struct sw_json *object, const char *key, int64_t value);
SW_API void sw_json_set_bool(struct sw_json *object, const char *key, bool value);
/* Nothing happens where there is none. */
SW_API void sw_json_remove(struct sw_json *object, const char *key);
/* Makes the member an object unless it is one already, and returns it. */
SW_API SW_NONNULL struct sw_json *sw_json_set_object(struct sw_json *object, const char *key);
SW_API SW_NONNULL struct sw_json *sw_json_set_array(struct sw_json *object, const char *key);

/* Elements of an array. */
SW_API void sw_json_append(struct sw_json *array, struct sw_json *value);
SW_API void sw_json_append_string(struct sw_json *array, const char *text);
SW_API SW_NONNULL struct sw_json *sw_json_append_object(struct sw_json *array);

/* Reading. A missing member, or one of another type, is NULL or the given default. */
SW_API enum sw_json_type sw_json_type(const struct sw_json *value); /* NULL: SW_JSON_NULL */
SW_API const struct sw_json *sw_json_get(const struct sw_json *object, const char *key);
/* By path of object keys: "metadata", "name", NULL. */
SW_API const struct sw_json *sw_json_at(const struct sw_json *object, ...)
    __attribute__((sentinel));
SW_API const char *sw_json_get_string(const struct sw_json *object, const char *key); /* or NULL */
SW_API int64_t sw_json_get_int(const struct sw_json *object, const char *key, int64_t otherwise);
SW_API bool sw_json_get_bool(const struct sw_json *object, const char *key, bool otherwise);
SW_API const char *sw_json_text(const struct sw_json *string); /* of a string value, or NULL */
SW_API size_t sw_json_size(const struct sw_json *value);       /* of an array or object, else 0 */
SW_API const struct sw_json *sw_json_element(const struct sw_json *array, size_t index);
/* Calls visit for each member of an object, in the order they were written, until it returns false.
 * Nothing may be set meanwhile. */
typedef bool (*sw_json_visit_fn)(void *arg, const char *key, const struct sw_json *value);
SW_API void sw_json_each(const struct sw_json *object, sw_json_visit_fn visit, void *arg);

SW_API bool sw_json_equal(const struct sw_json *a, const struct sw_json *b);

/* Parses any one value; nesting is limited to 200 levels, duplicate keys: the last counts (as the
 * API server does). \u0000, a lone surrogate and an integer beyond 64 bits are refused. On failure
 * -EINVAL, and *ret_why (if not NULL) says what and where; it belongs to the arena. */
SW_API SW_MUST_USE int sw_json_parse(struct sw_arena *arena, const char *text, size_t len,
                                     struct sw_json **ret_value, const char **ret_why);
/* Compact text with NUL, in the arena the value belongs to; ret_len may be NULL. */
SW_API SW_NONNULL char *sw_json_dump(const struct sw_json *value, struct sw_arena *arena,
                                     size_t *ret_len);

#endif
