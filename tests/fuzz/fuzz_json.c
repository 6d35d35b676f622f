/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small JSON: any bytes are parsed or refused with a reason; what was parsed is the same after it
 * was written and read again.
 */
#include <errno.h>
#include <string.h>

#include <slipway/json.h>

#include "base/util.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct sw_arena *arena = sw_arena_new(0);
    struct sw_json *value = NULL;
    const char *why = NULL;
    int rc = sw_json_parse(arena, (const char *)bytes, len, &value, &why);
    if (rc) {
        sw_assert(rc == -EINVAL && !value && why && *why);
    } else {
        size_t size = 0;
        struct sw_json *again = NULL;
        const char *text = sw_json_dump(value, arena, &size);
        sw_assert(strlen(text) == size);
        sw_assert(sw_json_parse(arena, text, size, &again, &why) == 0);
        sw_assert(sw_json_equal(value, again));
    }
    sw_arena_free(arena);
    return 0;
}
