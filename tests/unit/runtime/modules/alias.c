/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A module that was copied without changing its name.
 */
#include <slipway/module.h>

SW_API extern const struct sw_module sw_module_alias;
const struct sw_module sw_module_alias = {SW_MODULE_HEAD("somebody_else")};
