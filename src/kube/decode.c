/* SPDX-License-Identifier: Apache-2.0 */
/* Decoders and objects: what every object has (struct sw_object) is bound here, beside the kind's
 * own table. */
#include "kube/decode.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/map.h"
#include "base/util.h"
#include "kube/decoder.h"

enum { OBJECT_MAGIC = 0x6f626a31 };

/* In front of each object. */
struct head {
    uint32_t magic;
    uint32_t size; /* of the block */
};

static const struct sw_bind object_fields[] = {
    SW_BIND("/metadata/namespace", SW_BIND_ENUM, struct sw_object, namespace_),
    SW_BIND("/metadata/name", SW_BIND_STRING, struct sw_object, name),
    SW_BIND("/metadata/uid", SW_BIND_STRING, struct sw_object, uid),
    SW_BIND("/metadata/resourceVersion", SW_BIND_STRING, struct sw_object, resource_version),
    SW_BIND("/metadata/generation", SW_BIND_INT64, struct sw_object, generation),
    SW_BIND("/metadata/creationTimestamp", SW_BIND_TIME, struct sw_object, created_us),
    SW_BIND("/metadata/deletionTimestamp", SW_BIND_TIME, struct sw_object, deleted_us),
    SW_BIND("/metadata/labels", SW_BIND_LABELS, struct sw_object, labels),
    SW_BIND("/metadata/annotations", (enum sw_bind_type)SW_BIND_ANNOTATIONS, struct sw_object,
            annotations),
    SW_BIND("/metadata/ownerReferences", (enum sw_bind_type)SW_BIND_CONTROLLER, struct sw_object,
            owner_uid),
};

/* Their offsets count from where the notes lie behind the kind's struct. */
static const struct sw_bind note_fields[] = {
    SW_BIND("/kind", SW_BIND_STRING, struct sw_object_notes, kind),
    SW_BIND("/metadata/annotations", SW_BIND_PRESENT, struct sw_object_notes, has_annotations),
};

/* ---- decoders ---- */

struct sw_decoder *sw_decoder_new(const struct sw_kind *kind, struct sw_intern *intern)
{
    sw_assert(kind->size >= sizeof(struct sw_object));
    struct sw_decoder *decoder = SW_NEW(struct sw_decoder);
    struct sw_bind own[SW_ARRAY_SIZE(object_fields) + SW_ARRAY_SIZE(note_fields) + 1] = {0};
    struct sw_bind *notes = own + SW_ARRAY_SIZE(object_fields);
    decoder->kind = kind;
    decoder->intern = intern;
    decoder->notes_at = (kind->size + 7) & ~(size_t)7;
    memcpy(own, object_fields, sizeof(object_fields));
    memcpy(notes, note_fields, sizeof(note_fields));
    for (size_t i = 0; i < SW_ARRAY_SIZE(note_fields); i++) {
        notes[i].offset += decoder->notes_at;
    }
    decoder->table =
        sw_table_new(own, kind->fields, decoder->notes_at + sizeof(struct sw_object_notes));
    if (kind->is_secret) {
        sw_table_set_secret(decoder->table);
        sw_decoder_set_secret(decoder);
    }
    sw_run_init(&decoder->run, decoder->table);
    decoder->run.kept = kind->size;
    decoder->run.annotations = kind->annotations;
    return decoder;
}

void sw_decoder_set_secret(struct sw_decoder *decoder)
{
    decoder->is_secret = true;
}

struct sw_decoder *sw_decoder_free(struct sw_decoder *decoder)
{
    if (decoder) {
        sw_run_done(&decoder->run);
        sw_run_done(&decoder->identity);
        sw_run_done(&decoder->review);
        sw_table_free(decoder->table);
        sw_table_free(decoder->identity_table);
        sw_table_free(decoder->review_table);
        sw_free(decoder);
    }
    return NULL;
}

/* ---- objects ---- */

static struct head *head_of(const struct sw_object *object)
{
    struct head *head = (struct head *)((uintptr_t)object - sizeof(struct head));
    sw_assert(head->magic == OBJECT_MAGIC);
    return head;
}

size_t sw_object_size(const struct sw_object *object)
{
    return head_of(object)->size;
}

struct sw_object *sw_object_free(struct sw_decoder *decoder, struct sw_object *object)
{
    if (object) {
        struct head *head = head_of(object);
        sw_assert(object->kind == decoder->kind);
        sw_table_release(decoder->table, decoder->intern, object);
        head->magic = 0;
        if (decoder->is_secret) {
            sw_free_secret(head, head->size);
        } else {
            sw_free(head);
        }
    }
    return NULL;
}

static const struct sw_text *kind_text(const struct sw_decoder *decoder)
{
    return sw_run_text(&decoder->run, decoder->notes_at + offsetof(struct sw_object_notes, kind));
}

bool sw_decoder_is_other_kind(const struct sw_decoder *decoder)
{
    static const char partial[] = "PartialObjectMetadata"; /* what we may have asked for */
    const struct sw_text *kind = kind_text(decoder);
    return kind && !sw_text_is(kind, decoder->kind->kind, strlen(decoder->kind->kind)) &&
           !sw_text_is(kind, partial, sizeof(partial) - 1);
}

struct sw_object *sw_decoder_read(struct sw_decoder *decoder, struct sw_scan *scan)
{
    if (!sw_run_read(&decoder->run, scan)) {
        return NULL;
    }
    if (sw_decoder_is_other_kind(decoder)) {
        sw_scan_fail(scan, "an object of another kind");
        return NULL;
    }
    size_t size = sizeof(struct head) + sw_run_size(&decoder->run);
    struct head *head = sw_malloc(size);
    *head = (struct head){.magic = OBJECT_MAGIC, .size = (uint32_t)size};
    struct sw_object *object = (struct sw_object *)(void *)(head + 1);
    sw_run_settle(&decoder->run, decoder->intern, object);
    object->kind = decoder->kind;
    return object;
}

int sw_decoder_explain(const struct sw_decoder *decoder, const struct sw_scan *scan,
                       struct sw_error *error)
{
    if (scan->why && decoder->run.root.len > 0 && !decoder->run.type_why &&
        sw_decoder_is_other_kind(decoder)) {
        const struct sw_text *kind = kind_text(decoder);
        return sw_error_set(error, SW_E_SYNTAX, "a %.*s, not a %s", (int)SW_MIN(kind->len, 100U),
                            kind->at, decoder->kind->kind);
    }
    return sw_run_explain(&decoder->run, scan, error);
}

void sw_decoder_put_namespace(struct sw_decoder *decoder, struct sw_object *object,
                              const char *namespace_)
{
    if (object->namespace_[0] == 0 && namespace_ && namespace_[0] &&
        !decoder->kind->is_cluster_scoped) {
        object->namespace_ = sw_intern_ref(decoder->intern, namespace_, strlen(namespace_));
    }
}

static void prefix_identity(struct sw_decoder *decoder, const char *bytes, size_t len,
                            const char *namespace_, struct sw_error *error)
{
    struct sw_identity identity;
    sw_decoder_identify(decoder, bytes, len, &identity);
    const char *in = identity.namespace_[0] || !namespace_ ? identity.namespace_ : namespace_;
    if (identity.name[0]) {
        sw_error_prefix(error, "%s%s%s", in, in[0] ? "/" : "", identity.name);
    }
}

int sw_decode_object(struct sw_decoder *decoder, const char *bytes, size_t len,
                     const char *namespace_, struct sw_object **ret_object, struct sw_error *error)
{
    struct sw_scan scan;
    sw_scan_init(&scan, bytes, len);
    struct sw_object *object = sw_decoder_read(decoder, &scan);
    if (object && sw_scan_end(&scan) && !object->name[0]) {
        sw_scan_fail(&scan, "no metadata.name");
    }
    if (!object || scan.why) {
        sw_object_free(decoder, object);
        int code = sw_decoder_explain(decoder, &scan, error);
        prefix_identity(decoder, bytes, len, namespace_, error);
        return code;
    }
    sw_decoder_put_namespace(decoder, object, namespace_);
    *ret_object = object;
    return 0;
}

/* ---- identity ---- */

struct identity_view {
    const char *namespace_, *name, *resource_version, *ends_initial_events;
};

static const struct sw_bind identity_fields[] = {
    SW_BIND("/metadata/namespace", SW_BIND_STRING, struct identity_view, namespace_),
    SW_BIND("/metadata/name", SW_BIND_STRING, struct identity_view, name),
    SW_BIND("/metadata/resourceVersion", SW_BIND_STRING, struct identity_view, resource_version),
    SW_BIND("/metadata/annotations/k8s.io~1initial-events-end", SW_BIND_STRING,
            struct identity_view, ends_initial_events),
    SW_BIND_END,
};

static void identify(const struct sw_run *run, size_t offset, char *to, size_t size)
{
    const struct sw_text *text = sw_run_text(run, offset);
    to[0] = 0;
    if (text && text->size < size) {
        sw_text_copy(text, to);
        to[text->size] = 0;
    }
}

void sw_decoder_identify(struct sw_decoder *decoder, const char *bytes, size_t len,
                         struct sw_identity *ret_identity)
{
    struct sw_scan scan;
    struct sw_run *run = &decoder->identity;
    if (!decoder->identity_table) {
        decoder->identity_table = sw_table_new(NULL, identity_fields, sizeof(struct identity_view));
        sw_run_init(run, decoder->identity_table);
    }
    sw_scan_init(&scan, bytes, len);
    scan.skips_deep = true;
    (void)sw_run_read(run, &scan); /* what was read before a mistake counts */
    char ends[8];
    identify(run, offsetof(struct identity_view, namespace_), ret_identity->namespace_,
             sizeof(ret_identity->namespace_));
    identify(run, offsetof(struct identity_view, name), ret_identity->name,
             sizeof(ret_identity->name));
    identify(run, offsetof(struct identity_view, resource_version), ret_identity->resource_version,
             sizeof(ret_identity->resource_version));
    identify(run, offsetof(struct identity_view, ends_initial_events), ends, sizeof(ends));
    ret_identity->ends_initial_events = strcmp(ends, "true") == 0;
}
