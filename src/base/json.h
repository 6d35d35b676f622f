/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of <slipway/json.h> only the core needs.
 */
#ifndef SW_BASE_JSON_H
#define SW_BASE_JSON_H

#include <slipway/json.h>

/* A value of the arena that shares nothing with this one. */
SW_NONNULL struct sw_json *sw_json_copy(struct sw_arena *arena, const struct sw_json *value);

#endif
