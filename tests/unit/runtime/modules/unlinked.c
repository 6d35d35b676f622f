/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A module that calls what no core has: it must be refused when it is opened, not in the middle of
 * its work.
 */
#include <slipway/module.h>

int sw_function_that_nobody_has(void);

static int start(struct sw_instance *self, const void *config)
{
    (void)self;
    (void)config;
    return sw_function_that_nobody_has();
}

SW_API extern const struct sw_module sw_module_unlinked;
const struct sw_module sw_module_unlinked = {SW_MODULE_HEAD("unlinked"), .start = start};
