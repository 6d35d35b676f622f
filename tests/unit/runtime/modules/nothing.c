/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shared object that is no module.
 */
#include <slipway/attr.h>

SW_API extern const int some_number;
const int some_number = 1;
