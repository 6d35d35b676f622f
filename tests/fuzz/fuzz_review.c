/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AdmissionReviews: any bytes give a view or a reason. Where jansson accepts them, the view's uid
 * and objects are those of the DOM.
 */
#include <string.h>

#include <jansson.h>

#include <slipway/apps.h>
#include <slipway/arena.h>

#include "base/error.h"
#include "base/map.h"
#include "base/util.h"
#include "fuzz.h"
#include "kube/decode.h"

/* The last of equal keys, as in the view. */
static void compare(json_t *request, const struct sw_review_view *view)
{
    const char *uid = json_string_value(json_object_get(request, "uid"));
    const char *operation = json_string_value(json_object_get(request, "operation"));
    sw_assert(uid && strcmp(uid, view->uid) == 0);
    sw_assert(operation && strcmp(operation, view->operation) == 0);
    sw_assert(json_is_object(json_object_get(request, "object")) == (view->object != NULL));
    sw_assert(json_is_object(json_object_get(request, "oldObject")) == (view->old != NULL));
    json_t *metadata = json_object_get(json_object_get(request, "object"), "metadata");
    json_t *annotations = json_object_get(metadata, "annotations");
    sw_assert(json_is_object(annotations) == view->has_annotations);
    if (view->object) {
        const char *name = json_string_value(json_object_get(metadata, "name"));
        sw_assert(strcmp(view->object->name, name ? name : "") == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct sw_intern *intern = sw_intern_new();
    struct sw_decoder *decoder = sw_decoder_new(&sw_kind_deployment, intern);
    struct sw_arena *arena = sw_arena_new(0);
    struct sw_review_view view = {0};
    struct sw_error error = {0};
    int code = sw_decode_review(decoder, arena, (const char *)bytes, len, &view, &error);
    sw_assert(code == 0 || (code == SW_E_SYNTAX && error.text[0]));
    if (code == 0) {
        json_t *json = json_loadb((const char *)bytes, len, 0, NULL);
        if (json) {
            compare(json_object_get(json, "request"), &view);
        }
        json_decref(json);
        sw_object_free(decoder, view.object);
        sw_object_free(decoder, view.old);
    }
    sw_arena_free(arena);
    sw_decoder_free(decoder);
    sw_intern_free(intern);
    return 0;
}
