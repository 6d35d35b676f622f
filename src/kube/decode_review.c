/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An AdmissionReview: a table over struct sw_review_view, in which the two objects are read by the
 * decoder of their kind where they stand.
 * https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/
 */
#include <string.h>

#include <slipway/arena.h>

#include "base/error.h"
#include "base/util.h"
#include "kube/decoder.h"

struct review {
    struct sw_review_view view;
    const char *kind;
};

enum { NOW, OLD };

#define VIEW(path, type, member) SW_BIND(path, type, struct review, view.member)

static const struct sw_bind review_fields[] = {
    SW_BIND("/kind", SW_BIND_STRING, struct review, kind),
    VIEW("/apiVersion", SW_BIND_STRING, api_version),
    VIEW("/request/uid", SW_BIND_STRING, uid),
    VIEW("/request/operation", SW_BIND_STRING, operation),
    VIEW("/request/name", SW_BIND_STRING, name),
    VIEW("/request/namespace", SW_BIND_STRING, namespace_),
    VIEW("/request/userInfo/username", SW_BIND_STRING, username),
    VIEW("/request/options/fieldManager", SW_BIND_STRING, field_manager),
    VIEW("/request/resource/group", SW_BIND_STRING, resource_group),
    VIEW("/request/resource/version", SW_BIND_STRING, resource_version_),
    VIEW("/request/resource/resource", SW_BIND_STRING, resource),
    VIEW("/request/subResource", SW_BIND_STRING, subresource),
    VIEW("/request/dryRun", SW_BIND_BOOL, is_dry_run),
    {.path = "/request/object", .type = (enum sw_bind_type)SW_BIND_OBJECT, .limit = NOW},
    {.path = "/request/oldObject", .type = (enum sw_bind_type)SW_BIND_OBJECT, .limit = OLD},
    SW_BIND_END,
};

static bool forget_object(struct sw_run *run, size_t which)
{
    struct sw_decoder *decoder = container_of(run, struct sw_decoder, review);
    decoder->review_objects[which] = sw_object_free(decoder, decoder->review_objects[which]);
    return true;
}

static bool read_object(struct sw_run *run, size_t which)
{
    struct sw_decoder *decoder = container_of(run, struct sw_decoder, review);
    decoder->review_objects[which] = sw_decoder_read(decoder, run->scan);
    decoder->is_object_bad = !decoder->review_objects[which];
    if (which == NOW && !decoder->is_object_bad) {
        memcpy(&decoder->review_has_annotations,
               decoder->run.root.bytes + decoder->notes_at +
                   offsetof(struct sw_object_notes, has_annotations),
               sizeof(bool));
    }
    return !decoder->is_object_bad;
}

static struct sw_run *review_run(struct sw_decoder *decoder)
{
    if (!decoder->review_table) {
        decoder->review_table = sw_table_new(NULL, review_fields, sizeof(struct review));
        sw_run_init(&decoder->review, decoder->review_table);
        decoder->review.on_object = read_object;
        decoder->review.on_no_object = forget_object;
    }
    return &decoder->review;
}

/* What a review must have for us to answer it. */
static const char *missing(const struct review *review)
{
    static const char group[] = "admission.k8s.io/";
    if (strcmp(review->kind, "AdmissionReview") != 0) {
        return "kind is not AdmissionReview";
    }
    if (strncmp(review->view.api_version, group, sizeof(group) - 1) != 0) {
        return "apiVersion is not admission.k8s.io/v1";
    }
    if (!review->view.uid[0]) {
        return "no request.uid";
    }
    return review->view.operation[0] ? NULL : "no request.operation";
}

static int explain(struct sw_decoder *decoder, const struct sw_scan *scan, struct sw_error *error)
{
    if (!decoder->is_object_bad) {
        return sw_run_explain(&decoder->review, scan, error);
    }
    int code = sw_decoder_explain(decoder, scan, error);
    sw_error_prefix(error, "%s", decoder->review.path);
    return code;
}

int sw_decode_review(struct sw_decoder *decoder, struct sw_arena *arena, const char *bytes,
                     size_t len, struct sw_review_view *ret_review, struct sw_error *error)
{
    struct sw_scan scan;
    struct sw_run *run = review_run(decoder);
    decoder->is_object_bad = false;
    decoder->review_has_annotations = false;
    sw_scan_init(&scan, bytes, len);
    int code = 0;
    struct review *review = NULL;
    if (!sw_run_read(run, &scan) || !sw_scan_end(&scan)) {
        code = explain(decoder, &scan, error);
    } else {
        review = sw_run_settle_in(run, arena);
        const char *why = missing(review);
        if (why) {
            code = sw_error_set(error, SW_E_SYNTAX, "not a review: %s", why);
        }
    }
    if (code) {
        forget_object(run, NOW);
        forget_object(run, OLD);
        return code;
    }
    review->view.object = sw_steal(&decoder->review_objects[NOW]);
    review->view.old = sw_steal(&decoder->review_objects[OLD]);
    review->view.has_annotations = review->view.object && decoder->review_has_annotations;
    if (review->view.object) {
        sw_decoder_put_namespace(decoder, review->view.object, review->view.namespace_);
    }
    if (review->view.old) {
        sw_decoder_put_namespace(decoder, review->view.old, review->view.namespace_);
    }
    *ret_review = review->view;
    return 0;
}
