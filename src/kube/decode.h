/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From bytes to typed views: the scanner that the field table of a kind drives. It decodes what is
 * bound and skips the rest. Also the frames around objects: lists, watch events, reviews, Status.
 *
 * An object is one block of memory: the struct, its arrays and its strings; labels, annotation keys
 * and enumerated strings are references into the intern table.
 *
 * What is checked: what is bound, and every key on the way to it, wholly (RFC 8259, UTF-8, ranges,
 * pairs of surrogates; \u0000 in what becomes a C string is refused). What is skipped: that its
 * brackets match and are nested at most 200 deep, and that its strings are closed and hold no
 * control character. So a text with a mistake in a part that nobody bound is accepted. An object
 * that is nested deeper is bad alone: the list or the stream that it comes in goes on.
 *
 * Of a key that comes twice the last counts, and takes the place of the first with all below it;
 * null is as if the key were absent (in an array: as if it were not there). A value of the wrong
 * type is a mistake even where a second one of that key would be right.
 */
#ifndef SW_KUBE_DECODE_H
#define SW_KUBE_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <slipway/kind.h>

struct sw_arena;
struct sw_error;
struct sw_intern;
struct sw_decoder; /* a kind's table, compiled: a tree of keys */

/* Checks the table (asserts on a mistake in it) and compiles it. The intern table is borrowed. */
struct sw_decoder *sw_decoder_new(const struct sw_kind *kind, struct sw_intern *intern);
struct sw_decoder *sw_decoder_free(struct sw_decoder *decoder);
/* Its objects hold keys: they are overwritten before their memory is freed. As of a kind that
 * is_secret. */
void sw_decoder_set_secret(struct sw_decoder *decoder);

/* The object whose text is bytes. SW_E_SYNTAX with whose, where and what; one without a name, or of
 * another kind (where it says its kind) is refused. namespace_ (may be NULL) is used where the
 * object has none. The new object is freed with sw_object_free. */
int sw_decode_object(struct sw_decoder *decoder, const char *bytes, size_t len,
                     const char *namespace_, struct sw_object **ret_object, struct sw_error *error);
struct sw_object *sw_object_free(struct sw_decoder *decoder,
                                 struct sw_object *object); /* takes NULL; returns NULL */
/* Bytes it takes, without interned strings. */
size_t sw_object_size(const struct sw_object *object);

/* ---- lists ---- */

/* An incremental reader of a list: feed it the body in any pieces; it finds the items, decodes and
 * delivers each as soon as its last byte is there, and keeps only the bytes of the item it is in.
 */
struct sw_list_reader;

/* An item that could not be decoded, or is beyond the limit. */
struct sw_bad_item {
    const char *namespace_, *name; /* "" if unknown */
    const struct sw_error *error;
};

/* Both may free the reader: then feed returns -ECANCELED. */
struct sw_list_events {
    void (*on_item)(void *arg, struct sw_object *object_taken);
    void (*on_bad)(void *arg, const struct sw_bad_item *bad); /* the list goes on */
};

/* Limits of an item and of a frame; the API server accepts objects of about 3 MiB. */
#define SW_DECODE_LIMIT_BYTES ((size_t)32 * 1024 * 1024)

struct sw_list_reader *sw_list_reader_new(struct sw_decoder *decoder, size_t item_limit_bytes,
                                          const struct sw_list_events *events, void *arg);
struct sw_list_reader *sw_list_reader_free(struct sw_list_reader *reader);
/* SW_E_SYNTAX: not a list of this kind. After an error it stays that error. */
int sw_list_reader_feed(struct sw_list_reader *reader, const char *bytes, size_t len,
                        struct sw_error *error);
/* At the end of the body: SW_E_TRUNCATED unless the list was whole. Texts live as long as the
 * reader; "" where absent. */
int sw_list_reader_finish(struct sw_list_reader *reader, const char **ret_resource_version,
                          const char **ret_continue, struct sw_error *error);

/* ---- watch streams ---- */

enum sw_frame_type {
    SW_FRAME_ADDED,
    SW_FRAME_MODIFIED,
    SW_FRAME_DELETED,
    SW_FRAME_BOOKMARK,
    SW_FRAME_ERROR,
    SW_FRAME_BAD, /* an event that could not be decoded: error says why */
};

struct sw_status_view {
    int code;           /* 410 */
    const char *reason; /* "Expired"; "" */
    const char *message;
    int retry_after_seconds;   /* details.retryAfterSeconds; 0 */
    bool is_version_too_large; /* details.causes has ResourceVersionTooLarge */
};

struct sw_frame {
    enum sw_frame_type type;
    struct sw_object *object_taken; /* ADDED, MODIFIED, DELETED */
    const char *resource_version;   /* of the object; BOOKMARK and BAD too ("" if unknown) */
    const char *namespace_, *name;  /* of the object; BAD too ("" if unknown) */
    bool is_deletion;               /* BAD: the type was DELETED */
    bool ends_initial_events;       /* BOOKMARK with annotation k8s.io/initial-events-end */
    struct sw_status_view status;   /* ERROR */
    const struct sw_error *error;   /* BAD */
};

struct sw_frame_reader;
typedef void (*sw_frame_fn)(void *arg, const struct sw_frame *frame);
/* Frames are found by structure, whatever white space is between them. */
struct sw_frame_reader *sw_frame_reader_new(struct sw_decoder *decoder, size_t frame_limit_bytes,
                                            sw_frame_fn fn, void *arg);
struct sw_frame_reader *sw_frame_reader_free(struct sw_frame_reader *reader);
/* SW_E_SYNTAX: the stream is no JSON any more, and stays so. A frame beyond the limit is BAD. fn
 * may stop or free the reader: then -ECANCELED. */
int sw_frame_reader_feed(struct sw_frame_reader *reader, const char *bytes, size_t len,
                         struct sw_error *error);
void sw_frame_reader_stop(struct sw_frame_reader *reader); /* from fn: nothing more is delivered */

/* ---- others ---- */

/* A Status, from any text: where it is not one, message is its first KiB, made printable. In the
 * arena. */
void sw_decode_status(struct sw_arena *arena, const char *bytes, size_t len,
                      struct sw_status_view *ret_status);

struct sw_review_view {
    const char *api_version; /* "admission.k8s.io/v1" */
    const char *uid;
    const char *operation; /* "CREATE", "UPDATE", "DELETE", "CONNECT" */
    const char *name;
    const char *namespace_;
    const char *username;
    const char *field_manager;                                 /* options.fieldManager */
    const char *resource_group, *resource_version_, *resource; /* of request.resource */
    const char *subresource;
    bool is_dry_run;
    struct sw_object *object; /* NULL where null; freed by the caller with sw_object_free */
    struct sw_object *old;
    bool has_annotations; /* object.metadata.annotations is there */
};

/* SW_E_SYNTAX with what is wrong (not an AdmissionReview, no uid, an object that is bad or of
 * another kind, ...). Any version of admission.k8s.io passes. Strings in the arena. An object
 * without a namespace gets the request's; it may be without a name. One pass. */
int sw_decode_review(struct sw_decoder *decoder, struct sw_arena *arena, const char *bytes,
                     size_t len, struct sw_review_view *ret_review, struct sw_error *error);

#endif
