/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few functions of the module API that the plan of modules/coordination calls and that the
 * runtime implements: here on top of the same parts of base, without a runtime.
 */
#include <string.h>

#include <slipway/time.h>
#include <slipway/write.h>

#include "base/time.h"

const char *sw_time_text(struct sw_arena *arena, int64_t wall_us)
{
    char *text = sw_arena_alloc(arena, SW_TIME_SIZE);

    sw_time_format(wall_us, text);
    return text;
}

int sw_time_from_text(const char *text, int64_t *ret_wall_us)
{
    return sw_time_parse(text, strlen(text), ret_wall_us);
}

const char *sw_outcome_text(enum sw_outcome outcome)
{
    static const char *const texts[] = {"ok",         "conflict", "not found", "refused",
                                        "not leader", "unknown",  "held",      "unchanged"};

    return texts[outcome];
}
