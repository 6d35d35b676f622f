/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of <slipway/json.h> only the core needs.
 */
#ifndef SW_BASE_JSON_H
#define SW_BASE_JSON_H

#include <slipway/json.h>

/* An object of the arena with the same members: what is set in the one is not set in the other, but
 * what is set in a member that both have is. */
SW_NONNULL struct sw_json *sw_json_copy(struct sw_arena *arena, const struct sw_json *object);

#endif
