/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "Did you mean": which of the known words a mistyped one was meant to be.
 */
#ifndef SW_BASE_NEAREST_H
#define SW_BASE_NEAREST_H

#include <stddef.h>

/* Compares word with one candidate more. *best and *distance (NULL and SIZE_MAX before the first)
 * change if it is nearer than those before, and near enough to be worth saying. Case, '-' and '_'
 * do not count. */
void sw_nearest(const char *word, const char *candidate, const char **best, size_t *distance);

#endif
