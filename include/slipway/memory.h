/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory from the heap, for what lives longer than a unit of work. Part of the vocabulary: src/base
 * implements it, and every layer and module may include it.
 */
#ifndef SLIPWAY_MEMORY_H
#define SLIPWAY_MEMORY_H

#include <stddef.h>

#include <slipway/attr.h>

/* Out of memory or an overflowing size ends the process with a message. Memory is zeroed. */
SW_API SW_NONNULL void *sw_malloc(size_t size);
SW_API SW_NONNULL void *sw_calloc(size_t count, size_t size);
/* New bytes are not zeroed. */
SW_API SW_NONNULL void *sw_realloc(void *old, size_t count, size_t size);
SW_API SW_NONNULL char *sw_strdup(const char *text);
SW_API SW_NONNULL char *sw_strndup(const char *text, size_t len);
SW_API SW_NONNULL SW_PRINTF(1, 2) char *sw_asprintf(const char *format, ...);
/* Takes NULL; returns NULL: p = sw_free(p). */
SW_API void *sw_free(void *memory);

#define SW_NEW(type) ((type *)sw_calloc(1, sizeof(type)))

#endif
