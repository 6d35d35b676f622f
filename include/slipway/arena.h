/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An arena: memory for one unit of work (a review, a reconcile, a page of a list) that is freed in
 * one go. Nothing that lives longer may point into it. Memory is zeroed and aligned for any type.
 * The functions do not return NULL: out of memory ends the process.
 */
#ifndef SLIPWAY_ARENA_H
#define SLIPWAY_ARENA_H

#include <stdarg.h>
#include <stddef.h>

#include <slipway/attr.h>

struct sw_arena;

/* first_bytes: size of the first block (0: a default of 4 KiB); blocks grow from there. */
SW_API struct sw_arena *sw_arena_new(size_t first_bytes);
/* Frees all that was allocated in it, after the cleanups in reverse order. Takes NULL; returns
 * NULL. */
SW_API struct sw_arena *sw_arena_free(struct sw_arena *arena);
/* As free and new, but keeps the first block: for one that is used again and again. */
SW_API void sw_arena_reset(struct sw_arena *arena);

SW_API SW_NONNULL void *sw_arena_alloc(struct sw_arena *arena, size_t size);
/* count * size with a check for overflow. */
SW_API SW_NONNULL void *sw_arena_array(struct sw_arena *arena, size_t count, size_t size);
SW_API SW_NONNULL char *sw_arena_strdup(struct sw_arena *arena, const char *text);
/* Copies len bytes and adds the NUL. */
SW_API SW_NONNULL char *sw_arena_strndup(struct sw_arena *arena, const char *text, size_t len);
SW_API SW_NONNULL SW_PRINTF(2, 3) char *sw_arena_printf(struct sw_arena *arena, const char *format,
                                                        ...);
SW_API SW_NONNULL SW_PRINTF(2, 0) char *sw_arena_vprintf(struct sw_arena *arena, const char *format,
                                                         va_list args);

/* Calls fn(arg) when the arena is freed or reset. */
SW_API void sw_arena_on_free(struct sw_arena *arena, void (*fn)(void *arg), void *arg);

/* Bytes taken from the system; for metrics and tests. */
SW_API size_t sw_arena_size(const struct sw_arena *arena);

#define SW_ARENA_NEW(arena, type) ((type *)sw_arena_alloc((arena), sizeof(type)))
#define SW_ARENA_ARRAY(arena, count, type) ((type *)sw_arena_array((arena), (count), sizeof(type)))

#endif
