/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects: any bytes are decoded or refused with a reason; where jansson accepts them, both say the
 * same. Of the kind Deployment, and of a kind that binds one of everything.
 */
#include <slipway/apps.h>

#include "base/error.h"
#include "base/map.h"
#include "base/util.h"
#include "fuzz.h"
#include "kube/decode.h"
#include "oracle.h"
#include "widget.h"

static void decode(const struct sw_kind *kind, const char *bytes, size_t len)
{
    struct sw_intern *intern = sw_intern_new();
    struct sw_decoder *decoder = sw_decoder_new(kind, intern);
    struct sw_object *object = NULL;
    struct sw_error error = {0};
    int code = sw_decode_object(decoder, bytes, len, NULL, &object, &error);
    sw_assert(code == (object ? 0 : SW_E_SYNTAX));
    sw_assert((code != 0) == (error.text[0] != 0));
    sw_assert(!oracle_check(kind, bytes, len, object));
    sw_object_free(decoder, object);
    sw_decoder_free(decoder);
    sw_intern_free(intern);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    decode(&sw_kind_deployment, (const char *)bytes, len);
    decode(&widget_kind, (const char *)bytes, len);
    return 0;
}
