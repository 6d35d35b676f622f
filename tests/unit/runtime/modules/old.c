/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As a module that was built for another slipway: the rest of its descriptor must not be looked at.
 */
#include <slipway/module.h>

SW_API extern const struct sw_module sw_module_old;
const struct sw_module sw_module_old = {.abi = SW_ABI + 1, .size = 24, .name = (const char *)1};
