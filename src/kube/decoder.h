/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a decoder, for the files that read objects (decode.c) and the frames around them
 * (decode_list.c, decode_frame.c, decode_review.c). Private to them.
 */
#ifndef SW_KUBE_DECODER_H
#define SW_KUBE_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kube/decode.h"
#include "kube/table.h"

struct sw_arena;

struct sw_decoder {
    const struct sw_kind *kind;
    struct sw_intern *intern;
    struct sw_table *table; /* of the kind: struct, and behind it struct sw_object_notes */
    size_t notes_at;
    struct sw_run run;
    /* The next two are made when they are first needed. */
    struct sw_table *identity_table;
    struct sw_run identity;
    struct sw_table *review_table;
    struct sw_run review;
    struct sw_object *review_objects[2];
    bool review_has_annotations;
    bool is_object_bad; /* of the review: run knows why */
    bool is_secret;     /* objects are overwritten before they are freed */
};

/* What is known of an object while it is read, and not kept. */
struct sw_object_notes {
    const char *kind;
    bool has_annotations;
};

/* One object at the cursor; the namespace is left empty where it has none. NULL: scan->why, and
 * sw_run_explain(&decoder->run, ...). */
struct sw_object *sw_decoder_read(struct sw_decoder *decoder, struct sw_scan *scan);
/* The object is of another kind than the decoder's. */
bool sw_decoder_is_other_kind(const struct sw_decoder *decoder);
/* SW_E_SYNTAX, and in words why sw_decoder_read has returned NULL. */
int sw_decoder_explain(const struct sw_decoder *decoder, const struct sw_scan *scan,
                       struct sw_error *error);
/* For one that has no namespace. */
void sw_decoder_put_namespace(struct sw_decoder *decoder, struct sw_object *object,
                              const char *namespace_);

/* Who an object is, and what a bookmark says; "" where that cannot be read, or is longer than it
 * may be. The text may be broken off or bad elsewhere. */
struct sw_identity {
    char namespace_[256];
    char name[256];
    char resource_version[64];
    bool ends_initial_events;
};

void sw_decoder_identify(struct sw_decoder *decoder, const char *bytes, size_t len,
                         struct sw_identity *ret_identity);

#endif
