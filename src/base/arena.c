/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arenas: a list of blocks, the newest first, filled from the front. Blocks double in size up to
 * 256 KiB, which keeps both the number of calls to malloc and the waste at the end of the last
 * block small. What is large beside a block gets one of its own, so that it does not throw away the
 * rest of the current one.
 */
#include <slipway/arena.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/poison.h"
#include "base/util.h"

/* Under AddressSanitizer what was not handed out may not be touched, and a gap after each
 * allocation finds the byte too many. */
enum { GAP = SW_HAS_ASAN ? 16 : 0 };

enum {
    DEFAULT_BLOCK = 4096,
    LEAST_BLOCK = 256,
    LARGEST_BLOCK = 256 * 1024,
    ALIGN = _Alignof(max_align_t),
};

struct block {
    struct block *next;
    size_t size; /* of bytes */
    size_t used;
    _Alignas(max_align_t) char bytes[];
};

struct cleanup {
    struct cleanup *next;
    void (*fn)(void *arg);
    void *arg;
};

struct sw_arena {
    struct block *blocks; /* the one that is being filled comes first */
    struct block *first;  /* kept by a reset */
    struct cleanup *cleanups;
    size_t next_size;
    size_t total;
};

static struct block *block_new(struct sw_arena *arena, size_t size)
{
    sw_assert(size <= SIZE_MAX - sizeof(struct block));
    struct block *block = sw_realloc(NULL, 1, sizeof(struct block) + size); /* not zeroed yet */
    *block = (struct block){.size = size};
    ASAN_POISON_MEMORY_REGION(block->bytes, size);
    arena->total += sizeof(struct block) + size;
    return block;
}

static void block_free(struct sw_arena *arena, struct block *block)
{
    arena->total -= sizeof(struct block) + block->size;
    ASAN_UNPOISON_MEMORY_REGION(block->bytes, block->size);
    sw_free(block);
}

struct sw_arena *sw_arena_new(size_t first_bytes)
{
    struct sw_arena *arena = SW_NEW(struct sw_arena);
    size_t size = first_bytes ? SW_MAX(first_bytes, (size_t)LEAST_BLOCK) : (size_t)DEFAULT_BLOCK;
    arena->total = sizeof(*arena);
    arena->first = arena->blocks = block_new(arena, size);
    arena->next_size = SW_MIN(size * 2, (size_t)LARGEST_BLOCK);
    return arena;
}

/* Newest first; a cleanup may register another. */
static void run_cleanups(struct sw_arena *arena)
{
    while (arena->cleanups) {
        struct cleanup *c = arena->cleanups;
        arena->cleanups = c->next;
        c->fn(c->arg);
    }
}

struct sw_arena *sw_arena_free(struct sw_arena *arena)
{
    if (arena) {
        sw_arena_reset(arena);
        block_free(arena, arena->first);
        sw_free(arena);
    }
    return NULL;
}

void sw_arena_reset(struct sw_arena *arena)
{
    run_cleanups(arena);
    struct block *next;
    for (struct block *block = arena->blocks; block; block = next) {
        next = block->next;
        if (block != arena->first) {
            block_free(arena, block);
        }
    }
    arena->blocks = arena->first;
    arena->first->next = NULL;
    arena->first->used = 0;
    arena->next_size = SW_MIN(arena->first->size * 2, (size_t)LARGEST_BLOCK);
    ASAN_POISON_MEMORY_REGION(arena->first->bytes, arena->first->size);
}

static void *take(struct block *block, size_t at, size_t size)
{
    char *memory = block->bytes + at;
    block->used = at + size;
    ASAN_UNPOISON_MEMORY_REGION(memory, size);
    return memory;
}

/* Not zeroed. align is a power of two. */
static void *allocate(struct sw_arena *arena, size_t size, size_t align)
{
    struct block *block = arena->blocks;
    size_t at = (block->used + GAP + align - 1) & ~(align - 1);
    if (at <= block->size && size <= block->size - at) {
        return take(block, at, size);
    }
    if (size > arena->next_size / 4) {
        struct block *own = block_new(arena, size);
        own->next = block->next;
        block->next = own;
        return take(own, 0, size);
    }
    struct block *next = block_new(arena, arena->next_size);
    arena->next_size = SW_MIN(arena->next_size * 2, (size_t)LARGEST_BLOCK);
    next->next = block;
    arena->blocks = next;
    return take(next, 0, size);
}

void *sw_arena_alloc(struct sw_arena *arena, size_t size)
{
    /* Zero bytes are one, so that every answer is a pointer of its own. */
    size = size ? size : 1;
    return memset(allocate(arena, size, ALIGN), 0, size);
}

void *sw_arena_array(struct sw_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    sw_assert(!__builtin_mul_overflow(count, size, &bytes));
    return sw_arena_alloc(arena, bytes);
}

char *sw_arena_strdup(struct sw_arena *arena, const char *text)
{
    return sw_arena_strndup(arena, text, strlen(text));
}

char *sw_arena_strndup(struct sw_arena *arena, const char *text, size_t len)
{
    sw_assert(len < SIZE_MAX);
    char *copy = allocate(arena, len + 1, 1);
    if (len > 0) {
        memcpy(copy, text, len);
    }
    copy[len] = '\0';
    return copy;
}

char *sw_arena_printf(struct sw_arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = sw_arena_vprintf(arena, format, args);
    va_end(args);
    return text;
}

char *sw_arena_vprintf(struct sw_arena *arena, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, again);
    va_end(again);
    sw_assert(len >= 0);
    char *text = allocate(arena, (size_t)len + 1, 1);
    vsnprintf(text, (size_t)len + 1, format, args);
    return text;
}

void sw_arena_on_free(struct sw_arena *arena, void (*fn)(void *arg), void *arg)
{
    struct cleanup *c = SW_ARENA_NEW(arena, struct cleanup);
    *c = (struct cleanup){.next = arena->cleanups, .fn = fn, .arg = arg};
    arena->cleanups = c;
}

size_t sw_arena_size(const struct sw_arena *arena)
{
    return arena->total;
}
