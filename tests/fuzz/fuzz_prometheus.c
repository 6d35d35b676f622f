/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers of Prometheus: any bytes are a finite value, or are refused with a reason on one line.
 * The first two bytes are the status.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include <slipway/memory.h>

#include "base/util.h"
#include "fuzz.h"
#include "provider.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct sw_arena *arena = sw_arena_new(0);
    int status = len >= 2 ? (bytes[0] << 8 | bytes[1]) % 600 : 0;
    size_t body_len = len >= 2 ? len - 2 : 0;
    char *body = sw_strndup(len >= 2 ? (const char *)bytes + 2 : "", body_len);
    const struct sw_fetch_answer answer = {
        .status = status, .why = "none", .body = body, .body_len = body_len};
    const struct step_measure measure = {.has_min = true, .min = -1, .has_max = true, .max = 1};
    struct step_value value = {0};
    const char *text = NULL;
    const char *why = NULL;
    int code = step_prometheus_read(&answer, arena, &value, &text, &why);

    sw_assert(text && strlen(text) <= 32);
    if (code == 0) {
        sw_assert(status >= 200 && status < 300 && !why);
        sw_assert(isfinite(value.number) && value.count > 0 && value.text[0]);
        bool is_within = step_value_is_within(&value, &measure, arena, &why);
        sw_assert(is_within == (value.number >= -1 && value.number <= 1) && is_within == !why);
    } else {
        sw_assert(code == -EINVAL && why && why[0] && !strchr(why, '\n'));
    }
    sw_free(body);
    sw_arena_free(arena);
    return 0;
}
