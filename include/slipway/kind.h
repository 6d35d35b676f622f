/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kind of object, declared once: where it lives in the API, and a table that binds JSON paths to
 * members of a C struct. The core decodes by that table straight from the bytes, skips the rest
 * (managedFields and the last-applied annotation first of all) and owns the memory. Labels,
 * annotation keys and enumerated strings are interned.
 *
 *     struct widget {
 *         struct sw_object meta;          -- always first; the core fills it
 *         int32_t size;
 *         const char *colour;
 *     };
 *     static const struct sw_bind widget_fields[] = {
 *         SW_BIND("/spec/size", SW_BIND_INT32, struct widget, size, .otherwise = 3),
 *         SW_BIND("/spec/colour", SW_BIND_STRING, struct widget, colour),
 *         SW_BIND_END,
 *     };
 *
 * A value of the wrong type makes the object bad: it stays in the store as it was when it could be
 * read, or is left out if it never could; that is logged and counted, and the rest goes on. null
 * counts as absent. The last of duplicate keys counts, as in the API server.
 */
#ifndef SLIPWAY_KIND_H
#define SLIPWAY_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slipway/object.h>

enum sw_bind_type {
    SW_BIND_NONE,           /* end of the table */
    SW_BIND_STRING,         /* const char *; absent: "" */
    SW_BIND_ENUM,           /* const char *, interned: for values that repeat; absent: "" */
    SW_BIND_INT32,          /* int32_t; out of range is a bad object */
    SW_BIND_INT64,          /* int64_t */
    SW_BIND_BOOL,           /* bool */
    SW_BIND_TIME,           /* int64_t: RFC 3339 as microseconds since 1970; absent: 0 */
    SW_BIND_INT_OR_PERCENT, /* struct sw_int_or_percent */
    SW_BIND_STRINGS,        /* struct sw_strings: array of strings */
    SW_BIND_LABELS,         /* struct sw_labels: object of strings, sorted by key */
    SW_BIND_CONDITIONS,     /* struct sw_conditions */
    SW_BIND_LIST,           /* struct sw_list: array of objects, each by the table .element */
    SW_BIND_HASH,           /* struct sw_hash128: of the value's tokens; without white space and
                               without "creationTimestamp": null, which not every server writes */
    SW_BIND_RAW, /* struct sw_raw: the value's text as received, limited to .limit bytes (0: 64 KiB)
                  */
    SW_BIND_PRESENT, /* bool: the key is there and not null */
};

struct sw_strings {
    const char *const *at;
    uint32_t count;
};

struct sw_list {
    const void *at; /* array of structs of the element's size */
    uint32_t count;
};

/* Stable over processes and machines (SipHash-2-4-128 under the zero key). All zero: the value is
 * absent. */
struct sw_hash128 {
    uint64_t high, low;
};

struct sw_raw {
    const char *text; /* NUL-terminated; NULL: absent */
    uint32_t len;
};

struct sw_int_or_percent {
    int32_t value;
    bool is_percent;
    bool is_set;
};

struct sw_bind {
    const char *path; /* JSON pointer from the object's root (RFC 6901), array indices excepted */
    enum sw_bind_type type;
    size_t offset;
    int64_t otherwise;             /* for the integers and bool: the value when absent */
    const struct sw_bind *element; /* SW_BIND_LIST: paths are relative to the element */
    size_t element_size;
    size_t limit; /* SW_BIND_RAW: bytes; lists and labels: entries (0: 10 000) */
};

#define SW_BIND(json_path, bind_type, struct_type, member, ...)                            \
    {                                                                                      \
        .path = (json_path), .type = (bind_type), .offset = offsetof(struct_type, member), \
        ##__VA_ARGS__                                                                      \
    }
#define SW_BIND_END  \
    {                \
        .path = NULL \
    }

struct sw_kind {
    const char *group; /* "" for core */
    const char *version;
    const char *kind;   /* "Deployment" */
    const char *plural; /* "deployments" */
    bool is_cluster_scoped;
    bool is_secret; /* its objects are overwritten before their memory is freed; for reading only */
    size_t size;    /* of the struct */
    const struct sw_bind *fields;
    const char *const *annotations; /* those to keep: whole keys, or prefixes that end in "/";
                                       NULL-terminated. NULL: none */
};

SW_API bool sw_hash128_equal(struct sw_hash128 a, struct sw_hash128 b);
/* 32 hexadecimal digits and NUL. */
SW_API void sw_hash128_text(struct sw_hash128 hash, char text[33]);
/* Of want, as Kubernetes rounds: surge up, unavailable down. */
SW_API int32_t sw_int_or_percent_of(struct sw_int_or_percent value, int32_t want, bool rounds_up);

#endif
