/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the module API says in words. Needs no core: tests of a plan, and tools that play one, link
 * this file alone.
 */
#include <string.h>

#include <slipway/time.h>
#include <slipway/write.h>

#include "base/time.h"
#include "base/util.h"

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
    static const char *const texts[] = {
        [SW_OK] = "ok",           [SW_CONFLICT] = "conflict",      [SW_NOT_FOUND] = "not found",
        [SW_REFUSED] = "refused", [SW_NOT_LEADER] = "not leading", [SW_UNKNOWN] = "unknown",
        [SW_HELD] = "held",       [SW_UNCHANGED] = "unchanged",
    };

    return (size_t)outcome < SW_ARRAY_SIZE(texts) ? texts[outcome] : "?";
}
